//! The store's directory, held by one process at a time.

use crate::{log, privacy};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Name of the file that is locked.
const LOCK_FILE: &str = "LOCK";
/// Room for a process number in it: always as long, so that a full disk takes it, too.
const HOLDER_CHARS: usize = 20;

/// Below the directory: the engine's files, and the log's.
const ENGINE_DIR: &str = "engine";
const LOG_DIR: &str = "log";

/// Says which layout the directory has.
const FORMAT_FILE: &str = "FORMAT";
/// The layout that this version writes.
const FORMAT: &str = "timeball store 1\n";

/// Why a store's directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreDirError {
    /// Another process serves it.
    #[error("the store {path} is in use by process {holder}: stop that one first, or choose another --store")]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Who wrote the lock file.
        holder: String,
    },
    /// Another version wrote it.
    #[error(
        "the store {path} has the format {found:?}, and this version reads {FORMAT:?}: use the version that wrote it"
    )]
    Format {
        /// The directory.
        path: PathBuf,
        /// What its file says.
        found: String,
    },
    /// What was flushed is gone: the log alone is not the store.
    #[error(
        "the store {path} has a log, and nothing in {ENGINE_DIR}, where most of its rows were: put back a copy of the whole store, both of one time, or choose an empty --store"
    )]
    EngineGone {
        /// The directory.
        path: PathBuf,
    },
    /// The directory cannot be made or locked.
    #[error("cannot open the store {path}: {error}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

/// A store's directory. The lock lives as long as the value; the system takes it back from a process that died.
#[derive(Debug)]
pub struct StoreDir {
    path: PathBuf,
    _lock: File,
}

impl StoreDir {
    /// Makes the directory where it is missing, and locks it.
    ///
    /// # Errors
    /// See [`StoreDirError`].
    pub fn open(path: &Path) -> Result<StoreDir, StoreDirError> {
        let failed = |error| StoreDirError::Io { path: path.to_owned(), error };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let whole = is_whole(path).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut lock = options.open(path.join(LOCK_FILE)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = lock.read_to_string(&mut holder);
                return Err(StoreDirError::InUse { path: path.to_owned(), holder: holder.trim().to_owned() });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // Who holds it is said to whoever comes second. A full disk may not take it, and the lock holds without.
        let holder = format!("{:<HOLDER_CHARS$}\n", std::process::id());
        if let Err(error) = lock.rewind().and_then(|()| lock.write_all(holder.as_bytes())) {
            log::warning("the lock file does not name this process", &[("cause", &error)]);
        }
        check_format(path)?;
        // A log is begun when the engine has been made. Its first records may be those that the engine lacks, but loads are in no log.
        if has_files(&path.join(LOG_DIR)).map_err(failed)? && !has_files(&path.join(ENGINE_DIR)).map_err(failed)? {
            return Err(StoreDirError::EngineGone { path: path.to_owned() });
        }
        close_to_others(path, whole);
        Ok(StoreDir { path: path.to_owned(), _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Where the engine's files are.
    pub fn engine(&self) -> PathBuf {
        self.path.join(ENGINE_DIR)
    }
    /// Where the log's files are.
    pub fn log(&self) -> PathBuf {
        self.path.join(LOG_DIR)
    }
}

/// Whether the directory as a whole is the store's: it is empty, or has been one before. In any other (`--store /data`) there may be what is
/// not ours, and is meant for others.
fn is_whole(path: &Path) -> std::io::Result<bool> {
    Ok(path.join(FORMAT_FILE).exists() || !has_files(path)?)
}

/// Whether there is anything in a directory, if it is there.
fn has_files(path: &Path) -> std::io::Result<bool> {
    match std::fs::read_dir(path) {
        Ok(mut files) => Ok(files.next().transpose()?.is_some()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// A store that others may read is closed to them: what is in it by its names, and the directory if it is the store's as a `whole`. Where
/// that is not ours to do (the files belong to somebody else), the operator is told, and the store is served: refusing would
/// not close it either.
fn close_to_others(path: &Path, whole: bool) {
    let mut tightened: std::io::Result<usize> = Ok(0);
    let own = [LOCK_FILE, FORMAT_FILE, ENGINE_DIR, LOG_DIR].map(|name| path.join(name));
    for file in own {
        tightened = tightened.and_then(|n| Ok(n + privacy::tighten(&file)?));
    }
    if whole {
        tightened = tightened.and_then(|n| Ok(n + privacy::tighten_one(path)?));
    }
    match tightened {
        Ok(0) => {}
        Ok(files) => log::warning(
            "the store was open to other users: it is closed to them now",
            &[("store", &path.display()), ("files", &files)],
        ),
        Err(error) => log::warning(
            "the store is open to other users and cannot be closed to them: give it to the user who runs the node",
            &[("store", &path.display()), ("cause", &error)],
        ),
    }
}

/// Reads the format, or writes it into a new store.
fn check_format(path: &Path) -> Result<(), StoreDirError> {
    let failed = |error| StoreDirError::Io { path: path.to_owned(), error };
    let file = path.join(FORMAT_FILE);
    match std::fs::read_to_string(&file) {
        // An empty file: the node died before it was written.
        Ok(found) if found == FORMAT => Ok(()),
        Ok(found) if !found.is_empty() => Err(StoreDirError::Format { path: path.to_owned(), found }),
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(failed(e)),
        _ => std::fs::write(&file, FORMAT).and_then(|()| File::open(&file)?.sync_all()).map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--store /data` must not take from others what lies there.
    #[test]
    fn what_is_not_ours_stays_open() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("timeball-store-dir-shared-{}", std::process::id()));
        let foreign = path.join("foreign");
        std::fs::create_dir_all(&foreign).unwrap();
        let open = || std::fs::Permissions::from_mode(0o755);
        [&path, &foreign].iter().for_each(|dir| std::fs::set_permissions(dir, open()).unwrap());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        drop(StoreDir::open(&path).unwrap());
        assert_eq!((mode(&path), mode(&foreign), mode(&path.join(LOCK_FILE))), (0o755, 0o755, 0o600));
        // One that was a store before is closed, but for what is not of it.
        drop(StoreDir::open(&path).unwrap());
        assert_eq!((mode(&path), mode(&foreign)), (0o700, 0o755));
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_log_without_its_engine_is_no_store() {
        let path = std::env::temp_dir().join(format!("timeball-store-dir-gone-{}", std::process::id()));
        let made = |name: &str| {
            std::fs::create_dir_all(path.join(name)).unwrap();
            std::fs::write(path.join(name).join("file"), "x").unwrap();
        };
        drop(StoreDir::open(&path).unwrap());
        made(ENGINE_DIR);
        drop(StoreDir::open(&path).unwrap());
        made(LOG_DIR);
        drop(StoreDir::open(&path).unwrap());
        std::fs::remove_file(path.join(ENGINE_DIR).join("file")).unwrap();
        for _ in 0..2 {
            assert!(matches!(StoreDir::open(&path), Err(StoreDirError::EngineGone { .. })));
            let _ = std::fs::remove_dir_all(path.join(ENGINE_DIR));
        }
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn one_holder_at_a_time() {
        let path = std::env::temp_dir().join(format!("timeball-store-dir-{}", std::process::id()));
        let first = StoreDir::open(&path).unwrap();
        let refused = StoreDir::open(&path).unwrap_err().to_string();
        assert!(refused.contains(&format!("in use by process {}", std::process::id())), "{refused}");
        drop(first);
        StoreDir::open(&path).unwrap();
        std::fs::write(path.join(FORMAT_FILE), "timeball store 99\n").unwrap();
        assert!(StoreDir::open(&path).unwrap_err().to_string().contains("store 99"));
        std::fs::remove_dir_all(&path).unwrap();
    }
}

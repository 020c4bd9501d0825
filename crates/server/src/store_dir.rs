//! The store's directory, held by one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Name of the file that is locked.
const LOCK_FILE: &str = "LOCK";

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
        std::fs::create_dir_all(path).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
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
        let pid = std::process::id();
        lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| writeln!(lock, "{pid}")).map_err(failed)?;
        check_format(path)?;
        Ok(StoreDir { path: path.to_owned(), _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
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

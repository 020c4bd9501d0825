//! The store's directory, held by one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Name of the file that is locked.
const LOCK_FILE: &str = "LOCK";

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
        Ok(StoreDir { path: path.to_owned(), _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
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
        std::fs::remove_dir_all(&path).unwrap();
    }
}

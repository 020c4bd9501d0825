//! Scratch space in files that have no name: the system takes them back, whatever happens to the process.

use sql::KvError;
use sql::transaction::Scratch;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Names tell apart what is made where files cannot begin without one.
static MADE: AtomicU64 = AtomicU64::new(0);

pub(crate) struct FileScratch(File);

impl FileScratch {
    /// A new one in a directory.
    pub fn open(dir: &Path) -> Result<FileScratch, KvError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        if let Ok(file) = options.clone().custom_flags(libc::O_TMPFILE).open(dir) {
            return Ok(FileScratch(file));
        }
        let number = MADE.fetch_add(1, Relaxed);
        let path = dir.join(format!("scratch-{}-{number}", std::process::id()));
        let file = options.create(true).truncate(true).open(&path).map_err(failed)?;
        std::fs::remove_file(&path).map_err(failed)?;
        Ok(FileScratch(file))
    }
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn failed(e: std::io::Error) -> KvError {
    match e.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => KvError::DiskFull,
        _ => KvError::Storage(format!("scratch space: {e}")),
    }
}

impl Scratch for FileScratch {
    fn append(&mut self, bytes: &[u8]) -> Result<(), KvError> {
        self.0.write_all(bytes).map_err(failed)
    }
    fn read(&self, from: u64, out: &mut [u8]) -> Result<(), KvError> {
        self.0.read_exact_at(out, from).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_leaves_no_name() {
        let dir = std::env::temp_dir().join(format!("timeball-scratch-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut scratch = FileScratch::open(&dir).unwrap();
        scratch.append(b"abc").unwrap();
        scratch.append(b"defg").unwrap();
        let mut out = [0; 4];
        scratch.read(2, &mut out).unwrap();
        assert_eq!(&out, b"cdef");
        assert!(matches!(scratch.read(5, &mut out), Err(KvError::Storage(_))));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        drop(scratch);
        std::fs::remove_dir(&dir).unwrap();
    }
}

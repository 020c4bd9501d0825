//! Scratch space in files that have no name: the system takes them back, whatever happens to the process.
//!
//! What is written there must not take what the log and the engine need: who asks for scratch space says whether the disk has room beside that
//! ([`HasRoom`]), and is asked before every [`CHECK_EVERY_BYTES`].

use sql::KvError;
use sql::transaction::Scratch;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Names tell apart what is made where files cannot begin without one.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Whether the disk has room for so many bytes more, beside what others will write.
pub(crate) type HasRoom = Box<dyn Fn(u64) -> bool + Send>;

/// Bytes of one file that are written between two looks at the disk.
const CHECK_EVERY_BYTES: usize = 1 << 20;

pub(crate) struct FileScratch {
    file: File,
    has_room: HasRoom,
    /// Written since it was asked for room.
    unasked_bytes: usize,
}

impl FileScratch {
    /// A new one in a directory.
    pub fn open(dir: &Path, has_room: HasRoom) -> Result<FileScratch, KvError> {
        let file = FileScratch::file(dir)?;
        // It is asked at once.
        Ok(FileScratch { file, has_room, unasked_bytes: CHECK_EVERY_BYTES })
    }

    fn file(dir: &Path) -> Result<File, KvError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        if let Ok(file) = options.clone().custom_flags(libc::O_TMPFILE).open(dir) {
            return Ok(file);
        }
        let number = MADE.fetch_add(1, Relaxed);
        let path = dir.join(format!("scratch-{}-{number}", std::process::id()));
        let file = options.create(true).truncate(true).open(&path).map_err(failed)?;
        std::fs::remove_file(&path).map_err(failed)?;
        Ok(file)
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
        self.unasked_bytes = self.unasked_bytes.saturating_add(bytes.len());
        if self.unasked_bytes >= CHECK_EVERY_BYTES {
            if !(self.has_room)((bytes.len() + CHECK_EVERY_BYTES) as u64) {
                return Err(KvError::DiskFull);
            }
            self.unasked_bytes = bytes.len() % CHECK_EVERY_BYTES;
        }
        self.file.write_all(bytes).map_err(failed)
    }
    fn read(&self, from: u64, out: &mut [u8]) -> Result<(), KvError> {
        self.file.read_exact_at(out, from).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_leaves_no_name() {
        let dir = std::env::temp_dir().join(format!("timeball-scratch-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut scratch = FileScratch::open(&dir, Box::new(|_| true)).unwrap();
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

    #[test]
    fn a_disk_that_is_nearly_full_takes_none_of_it() {
        let dir = std::env::temp_dir();
        let free = std::sync::Arc::new(AtomicU64::new(4 << 20));
        let left = free.clone();
        let has_room = move |bytes| bytes <= left.load(Relaxed);
        let mut scratch = FileScratch::open(&dir, Box::new(has_room)).unwrap();
        let piece = vec![7; 64 << 10];
        let mut written = 0;
        while scratch.append(&piece) != Err(KvError::DiskFull) {
            written += 1u64;
            free.fetch_sub(piece.len() as u64, Relaxed);
            assert!(written < 64, "it took the last of the disk");
        }
        // What it was granted at its last question it may have written.
        assert!(written > 16 && free.load(Relaxed) > 0, "{written}");
        let mut out = [0; 2];
        scratch.read(5, &mut out).unwrap();
        assert_eq!(out, [7, 7], "what was written is there");
        free.store(8 << 20, Relaxed);
        scratch.append(&piece).unwrap();
    }
}

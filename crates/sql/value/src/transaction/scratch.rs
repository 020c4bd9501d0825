//! Room beside the database for what one statement makes and does not fit its memory.

use super::KvError;

/// Bytes of one statement, written once from the front and read back anywhere. Gone when it is dropped, and after a crash.
pub trait Scratch: Send {
    /// Writes at the end.
    ///
    /// # Errors
    /// [`KvError::DiskFull`], [`KvError::Storage`].
    fn append(&mut self, bytes: &[u8]) -> Result<(), KvError>;
    /// Fills `out` from a place on; all of it must have been written.
    ///
    /// # Errors
    /// [`KvError::Storage`].
    fn read(&self, from: u64, out: &mut [u8]) -> Result<(), KvError>;
}

/// In memory: for tests, and nodes without a disk.
#[derive(Debug, Default)]
pub struct MemoryScratch(Vec<u8>);

impl Scratch for MemoryScratch {
    fn append(&mut self, bytes: &[u8]) -> Result<(), KvError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
    fn read(&self, from: u64, out: &mut [u8]) -> Result<(), KvError> {
        let short = || KvError::Storage(format!("scratch space ends before {from} + {}", out.len()));
        let from = usize::try_from(from).map_err(|_| short())?;
        let bytes = from.checked_add(out.len()).and_then(|to| self.0.get(from..to)).ok_or_else(short)?;
        out.copy_from_slice(bytes);
        Ok(())
    }
}

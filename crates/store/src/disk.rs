//! The disk that the log is given: files with positions, and a sync that means it.
//!
//! Two implementations: [`real::RealDisk`] (the only module of this crate that touches `std::fs`) and
//! [`fake::FakeDisk`], which loses what was not synced, tears the last write, fills up and flips bits, all from a seed.

pub mod fake;
pub mod real;

use std::sync::Arc;

/// The smallest unit that a disk writes whole or not at all, in bytes.
pub const SECTOR: usize = 512;

/// The room on a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// What this process may still take.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

/// What must stay free on the disk beside what is in memory: merges write new tables before the old ones go. A part of the disk, at most
/// so many bytes.
const MARGIN_PART: u64 = 12;
const MARGIN_BYTES_MAX: u64 = 64 << 20;
/// Of that, so much may be taken by nothing that waits in memory: the engine's tables have a head each, and what gives space back begins with some.
const LAST_BYTES: u64 = 4 << 20;
/// A table of the engine is at most this part of the disk, and what is in memory is written out at another: on a small disk little is merged
/// at a time, and little room is enough.
const TABLE_PART: u64 = 256;
const TABLE_BYTES_MIN: u64 = 1 << 20;
const TABLE_BYTES_MAX: u64 = 64 << 20;
const LAYER_PART: u64 = 64;
const LAYER_BYTES_MIN: u64 = 2 << 20;

impl Room {
    /// What has to be free, where so much in memory is yet to be written.
    pub fn needed(&self, unwritten_bytes: u64) -> u64 {
        unwritten_bytes.saturating_add(self.margin())
    }

    /// What has to be free, where so much is to be written of what frees space: so much that it can be written, and given back afterwards.
    pub fn needed_at_last(&self, unwritten_bytes: u64) -> u64 {
        unwritten_bytes.saturating_add(self.margin() / 4 + LAST_BYTES)
    }

    fn margin(&self) -> u64 {
        (self.total / MARGIN_PART).min(MARGIN_BYTES_MAX)
    }

    /// Size of the reserve that is set aside for what frees space.
    pub fn ballast_bytes(&self) -> u64 {
        self.margin() / 4
    }

    /// Size of the engine's tables, where it makes them.
    pub fn table_bytes(&self) -> u64 {
        (self.total / TABLE_PART).clamp(TABLE_BYTES_MIN, TABLE_BYTES_MAX)
    }

    /// What is gathered in memory at most before it is written out.
    pub fn layer_bytes_max(&self) -> u64 {
        (self.total / LAYER_PART).max(LAYER_BYTES_MIN)
    }
}

/// What a disk could not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// No space is left: nothing changed.
    #[error("no space is left on the disk")]
    Full,
    /// There is no such file.
    #[error("the file {0} does not exist")]
    NotFound(String),
    /// Anything else; what was written but not synced is in an unknown state.
    #[error("cannot {doing} {file}: {cause}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        file: String,
        /// What the system said.
        cause: String,
    },
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Its size in bytes.
    ///
    /// # Errors
    /// [`DiskError::Failed`].
    fn size(&self) -> Result<u64, DiskError>;
    /// Writes all of `data` at `offset`, which with `data` lies inside the file.
    ///
    /// # Errors
    /// [`DiskError::Full`] (possible on file systems that copy on write) or [`DiskError::Failed`].
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError>;
    /// Reads exactly `into.len()` bytes at `offset`.
    ///
    /// # Errors
    /// [`DiskError::Failed`], also where the file ends before.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), DiskError>;
    /// Cuts the file to so many bytes, which are no more than it has: durable when it returns.
    ///
    /// # Errors
    /// [`DiskError::Failed`].
    fn shrink(&self, bytes: u64) -> Result<(), DiskError>;
    /// Makes what was written durable. After an error nothing may be assumed of it: do not retry.
    ///
    /// # Errors
    /// [`DiskError::Failed`].
    fn sync_data(&self) -> Result<(), DiskError>;
}

/// A directory of files.
pub trait Disk: Send + Sync + 'static {
    /// The names of all files.
    ///
    /// # Errors
    /// [`DiskError::Failed`].
    fn list(&self) -> Result<Vec<String>, DiskError>;
    /// Opens a file.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] or [`DiskError::Failed`].
    fn open(&self, name: &str) -> Result<Arc<dyn DiskFile>, DiskError>;
    /// Creates a file of `bytes` zeroes that are allocated, written and synced; replaces one of the same name.
    ///
    /// # Errors
    /// [`DiskError::Full`], with nothing left behind, or [`DiskError::Failed`].
    fn create_zeroed(&self, name: &str, bytes: u64) -> Result<Arc<dyn DiskFile>, DiskError>;
    /// Renames a file, replacing one of the new name.
    ///
    /// # Errors
    /// [`DiskError::NotFound`] or [`DiskError::Failed`].
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;
    /// Deletes a file; one that does not exist is fine.
    ///
    /// # Errors
    /// [`DiskError::Failed`].
    fn delete(&self, name: &str) -> Result<(), DiskError>;
    /// Makes creations, renames and deletions durable.
    ///
    /// # Errors
    /// [`DiskError::Failed`].
    fn sync_names(&self) -> Result<(), DiskError>;
}

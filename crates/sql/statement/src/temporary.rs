//! Temporary files of statements: what sorts, groupings and joins write out where it does not fit their memory.
//!
//! A file is a [`Scratch`] of the layer below: on a node's disk without a name, in memory elsewhere. It is gone with its last reader, whichever
//! way the statement ends, and after a crash.
//!
//! **Bounds.** The files of one session together have at most `temp_file_limit` (53400; without a limit unless it is set); a disk that is nearly
//! full takes none of them (53100, [`Kv::scratch`](crate::Kv::scratch)), so that they never take what the log needs.

use crate::sessions::Backend;
use crate::statement::Statement;
use crate::transaction::Scratch;
use crate::{SqlError, SqlState};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The setting that bounds them.
pub const LIMIT_SETTING: &str = "temp_file_limit";

/// Written at its end, read anywhere.
pub struct TemporaryFile {
    scratch: Mutex<Box<dyn Scratch>>,
    bytes: AtomicU64,
    limit_bytes: Option<u64>,
    backend: Arc<Backend>,
}

impl TemporaryFile {
    /// A new one of a statement.
    ///
    /// # Errors
    /// 53100 if the disk is nearly full.
    pub fn of(statement: &Statement) -> Result<TemporaryFile, SqlError> {
        let scratch = Mutex::new(statement.kv.scratch()?);
        let limit_bytes = statement.settings.values.get(LIMIT_SETTING).and_then(|shown| limit_bytes(shown));
        Ok(TemporaryFile { scratch, bytes: AtomicU64::new(0), limit_bytes, backend: statement.backend.clone() })
    }

    /// Writes at the end; gives where that was.
    ///
    /// # Errors
    /// 53400 beyond the session's limit, 53100 if the disk is nearly full.
    pub fn append(&self, bytes: &[u8]) -> Result<u64, SqlError> {
        let more = bytes.len() as u64;
        let held = &self.backend.temporary_bytes;
        let all = held.fetch_add(more, Relaxed) + more;
        let written = match self.limit_bytes {
            Some(limit) if all > limit => Err(beyond(limit)),
            _ => self.scratch.lock().append(bytes).map_err(SqlError::from),
        };
        if let Err(error) = written {
            held.fetch_sub(more, Relaxed);
            return Err(error);
        }
        Ok(self.bytes.fetch_add(more, Relaxed))
    }

    /// Fills `out` from a place on.
    ///
    /// # Errors
    /// 58030
    pub fn read(&self, from: u64, out: &mut [u8]) -> Result<(), SqlError> {
        Ok(self.scratch.lock().read(from, out)?)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.backend.temporary_bytes.fetch_sub(bytes, Relaxed);
        self.backend.sessions.temporary.add(self.backend.database, bytes);
    }
}

/// The setting as it is shown; `None`: no limit.
fn limit_bytes(shown: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 5] = [("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("TB", 1 << 40), ("", 1 << 10)];
    let (unit, number) = UNITS.iter().find_map(|(name, unit)| Some((unit, shown.strip_suffix(name)?)))?;
    number.trim().parse::<u64>().ok()?.checked_mul(*unit)
}

#[cold]
fn beyond(limit: u64) -> SqlError {
    let message = format!("temporary file size exceeds temp_file_limit ({}kB)", limit >> 10);
    SqlError::new(SqlState::LIMIT_EXCEEDED, message)
        .hint("Sort, group or join fewer rows at a time, or raise temp_file_limit.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_as_it_is_shown() {
        let cases = [("-1", None), ("0", Some(0)), ("8kB", Some(8 << 10)), ("100MB", Some(100 << 20))];
        cases.into_iter().for_each(|(shown, bytes)| assert_eq!(limit_bytes(shown), bytes, "{shown}"));
    }
}

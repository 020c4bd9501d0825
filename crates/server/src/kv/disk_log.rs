//! The log on a real disk.

use super::log::RecordLog;
use super::open::{OpenError, Visit};
use bytes::Bytes;
use node::AppendError;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::disk::real::RealDisk;
use store::log::{SEGMENT_BYTES, SEGMENT_BYTES_SMALL};
use store::{Log, LogError, LogOptions};

/// A file system that copies on write may find itself full after the log has reserved its space; the write is tried again this often.
const FULL_TRIES: usize = 50;
/// A segment is at most this part of the file system: the log keeps several.
const SEGMENTS_PER_DISK: u64 = 32;
/// Between two tries.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// Opens the log in a directory and hands every record to `visit`.
pub(crate) fn open(dir: &Path, applied: u64, visit: &mut Visit<'_>) -> Result<Box<dyn RecordLog>, OpenError> {
    let failed = |e: LogError| OpenError::Log(e.to_string());
    let disk = RealDisk::open(dir).map_err(|e| OpenError::Log(e.to_string()))?;
    let salt = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    let part = disk.room().map_or(SEGMENT_BYTES, |room| room.total / SEGMENTS_PER_DISK);
    let segment_bytes = part.clamp(SEGMENT_BYTES_SMALL, SEGMENT_BYTES);
    let options = LogOptions { salt, segment_bytes, ..LogOptions::default() };
    let (log, recovery) = Log::open(Arc::new(disk), &options, visit).map_err(failed)?;
    if let Some((file, offset)) = &recovery.torn {
        crate::log::info("cut a torn write off the log", &[("file", file), ("offset", offset)]);
    }
    if recovery.last < applied {
        let last = recovery.last;
        return Err(OpenError::Log(format!(
            "the log ends at record {last} and the engine holds {applied}: files of the log are missing; restore them, or the store from a backup"
        )));
    }
    Ok(Box::new(log))
}

impl RecordLog for Log {
    fn append(&self, first: u64, records: Vec<Bytes>) -> Result<(), AppendError> {
        let count = records.len() as u64;
        let last = self.append_all(records).map_err(|e| match e {
            LogError::DiskFull => AppendError::Full,
            LogError::Busy { .. } | LogError::TooLarge { .. } => AppendError::Busy,
            _ => AppendError::Broken,
        })?;
        if last + 1 != first + count {
            crate::log::error(
                "the log and the node count differently",
                &[("log", &last), ("node", &(first + count - 1))],
            );
            return Err(AppendError::Broken);
        }
        for _ in 0..FULL_TRIES {
            match self.write_and_sync() {
                Ok(_) => return Ok(()),
                Err(LogError::DiskFull) => std::thread::sleep(FULL_PAUSE),
                Err(e) => {
                    crate::log::error("the log cannot be written", &[("cause", &e)]);
                    return Err(AppendError::Broken);
                }
            }
        }
        Err(AppendError::Broken)
    }
    fn truncate(&self, applied: u64) -> Result<(), String> {
        Log::truncate(self, applied).map(drop).map_err(|e| e.to_string())
    }
    fn prepare(&self) -> Result<(), String> {
        self.reserve().map_err(|e| e.to_string())
    }
    fn make_room(&self, bytes: usize) {
        let _ = Log::make_room(self, bytes);
    }
    fn has_room_for(&self, bytes: usize) -> bool {
        self.room_for(bytes).is_ok()
    }
    fn prepare_bytes(&self) -> u64 {
        self.reserve_bytes()
    }
    fn growth(&self, bytes: usize) -> u64 {
        Log::growth(self, bytes)
    }
    fn give_back_spares(&self) -> Result<(), String> {
        Log::give_back_spares(self).map_err(|e| e.to_string())
    }
    fn give_back_room(&self) -> Result<(), String> {
        Log::give_back_room(self).map(drop).map_err(|e| e.to_string())
    }
    fn segments(&self) -> usize {
        Log::segments(self)
    }
}

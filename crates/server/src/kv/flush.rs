//! Frozen versions go to the engine, and what the log had for them is given back: of the node that is alone, and of a member.

use super::RecordLog;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use store::{Engine, StoreError, Versions};

/// After a failed flush (a full disk) the thread for space waits this long.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(500);
/// The log may have this many segments before the versions in memory are written out however few they are.
pub(crate) const SEGMENTS_MAX: usize = 12;
/// Frozen layers at which commits wait for the engine.
const CROWDED_LAYERS: usize = 4;

/// Writes frozen versions to the engine until none is left. After each layer `flushed` says which record is the last that the log need not keep.
///
/// # Errors
/// [`StoreError::DiskFull`]: what is left stays in memory. Any other was told to `fail`.
pub(crate) fn flush_some<E: Engine>(
    versions: &Versions<E>,
    log: &dyn RecordLog,
    crowded: &AtomicBool,
    mut flushed: impl FnMut() -> u64,
    fail: impl FnOnce(&str),
) -> Result<(), StoreError> {
    loop {
        crowded.store(versions.frozen_layers() >= CROWDED_LAYERS, SeqCst);
        match versions.flush() {
            Ok(true) => {
                if let Err(e) = log.truncate(flushed()) {
                    crate::log::warning("the log's space could not be given back", &[("cause", &e)]);
                }
            }
            Ok(false) => return Ok(()),
            // They stay in memory.
            Err(StoreError::DiskFull) => return Err(StoreError::DiskFull),
            Err(e) => {
                fail(&e.to_string());
                return Err(e);
            }
        }
    }
}

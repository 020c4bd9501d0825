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

/// A layer that could not be written although all was given up for it is tried again after this long, then twice as long, up to the second one.
const LAST_PAUSE_NS: u64 = 1_000_000_000;
const LAST_PAUSE_NS_MAX: u64 = 8_000_000_000;

/// What is done where a flush found no room (decision 157): the log's spares and the reserve are given up, and the layer is tried without any
/// margin, then once more without what the log has ready. A reserve is set aside anew once there is room.
#[derive(Default)]
pub(crate) struct LastResort {
    not_before_ns: u64,
    pause_ns: u64,
    /// That it was needed was said.
    told: bool,
}

impl LastResort {
    /// After a flush that found no room. `true`: a layer was written, and others may be, too.
    ///
    /// # Errors
    /// What the engine says, but for a full disk.
    pub fn flush<E: Engine>(
        &mut self,
        versions: &Versions<E>,
        log: &dyn RecordLog,
        now_ns: u64,
    ) -> Result<bool, StoreError> {
        if let Err(e) = log.give_back_spares() {
            crate::log::warning("the log's space could not be given back", &[("cause", &e)]);
        }
        if now_ns < self.not_before_ns {
            return Ok(false);
        }
        // It may wait for something else: for who reads what it would end.
        let gave_up = !versions.has_room_at_last(0) && versions.give_up_ballast()?;
        if gave_up && !std::mem::replace(&mut self.told, true) {
            crate::log::warning("the disk is full: the reserve that was set aside for this is used", &[]);
        }
        let mut flushed = versions.flush_at_last();
        if flushed == Err(StoreError::DiskFull) {
            if let Err(e) = log.give_back_room() {
                crate::log::warning("the log's space could not be given back", &[("cause", &e)]);
            }
            flushed = versions.flush_at_last();
        }
        match flushed {
            Ok(written) => {
                (self.not_before_ns, self.pause_ns) = (0, 0);
                Ok(written)
            }
            Err(StoreError::DiskFull) => {
                self.pause_ns = (2 * self.pause_ns).clamp(LAST_PAUSE_NS, LAST_PAUSE_NS_MAX);
                self.not_before_ns = now_ns.saturating_add(self.pause_ns);
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }

    /// Where nothing waits for want of room: a reserve is set aside, if there is none. And one is given up where the log cannot grow, for what
    /// frees space begins with a record.
    pub fn look<E: Engine>(&mut self, versions: &Versions<E>, log: &dyn RecordLog) {
        let growth = log.growth(0);
        let done = match versions.engine().room().is_some_and(|room| room.free < growth) {
            false => versions.set_ballast().map(|set| self.told &= !set),
            true => versions.give_up_ballast().map(drop),
        };
        if let Err(e) = done {
            crate::log::warning("no reserve of the disk could be set aside", &[("cause", &e)]);
        }
    }
}

/// Writes frozen versions to the engine until none is left. After each layer `flushed` says which record is the last that the log need not keep.
///
/// # Errors
/// [`StoreError::DiskFull`]: what is left stays in memory. Any other was told to `fail`.
pub(crate) fn flush_some<E: Engine>(
    versions: &Versions<E>,
    log: &dyn RecordLog,
    crowded: &AtomicBool,
    (last, now_ns): (&mut LastResort, u64),
    mut flushed: impl FnMut() -> u64,
    fail: impl FnOnce(&str),
) -> Result<(), StoreError> {
    loop {
        crowded.store(versions.frozen_layers() >= CROWDED_LAYERS, SeqCst);
        let done = match versions.flush() {
            Err(StoreError::DiskFull) => match last.flush(versions, log, now_ns) {
                Ok(false) => Err(StoreError::DiskFull),
                done => done,
            },
            done => done,
        };
        match done {
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

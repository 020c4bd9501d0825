//! How much room the disk has for what is in memory.

use super::RecordLog;
use store::{Engine, Versions};

/// How much room is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Room {
    Enough,
    /// What is in memory fits the disk, but not twice: it is written out early.
    Tight,
    /// It would not fit for long: only what frees space is taken.
    Full,
}

impl Room {
    /// Invariant 4 of [`super`]: what is in memory fits the disk, for a full disk could not take it, nor give the log's space back. Nor could it
    /// where the log grows first.
    pub fn of<E: Engine>(versions: &Versions<E>, log: &dyn RecordLog) -> Room {
        match versions.engine().room() {
            Some(_) if versions.lacks_room(log.growth(0)) > 0 => Room::Full,
            Some(disk) if disk.free < 2 * disk.needed(versions.overlay_bytes() as u64) => Room::Tight,
            _ => Room::Enough,
        }
    }

    /// Whether ordinary writes are kept out, of which a thread said so a while ago: there may be room by now.
    pub fn is_full<E: Engine>(versions: &Versions<E>, log: &dyn RecordLog) -> bool {
        Room::of(versions, log) == Room::Full
    }

    /// Makes space ready for the log, where that leaves enough.
    pub fn prepare<E: Engine>(versions: &Versions<E>, log: &dyn RecordLog) -> Result<(), String> {
        if versions.lacks_room(log.prepare_bytes()) > 0 { Ok(()) } else { log.prepare() }
    }
}

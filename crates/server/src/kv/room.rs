//! How much room the disk has for what is in memory.

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
    /// Invariant 4 of [`super`]: what is in memory fits the disk, for a full disk could not take it, nor give the log's space back.
    pub fn of<E: Engine>(versions: &Versions<E>) -> Room {
        let Some(disk) = versions.engine().room() else { return Room::Enough };
        let needed = disk.needed(versions.overlay_bytes() as u64);
        match disk.free {
            free if free < needed => Room::Full,
            free if free < 2 * needed => Room::Tight,
            _ => Room::Enough,
        }
    }
}

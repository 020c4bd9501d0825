//! What a disk that fills gets back, and how soon: of the node that is alone, and of a member (decision 151).

use super::Room;
use store::versions::{Threshold, UNMERGED_RUNS_MAX};
use store::{Engine, StoreError, Versions};

/// With a full disk old versions are kept this long only, if that is shorter than usual.
pub(crate) const FULL_TTL_SECONDS: u64 = 10;
/// And so long where it is tight: what was dropped goes before the disk is full.
const TIGHT_TTL_SECONDS: u64 = 60;
/// And so much is merged where the disk is full, though nothing of it may go.
const UNMERGED_BYTES: u64 = 1 << 20;
/// After a write was refused for want of room, the disk is taken to be full for so long.
const PRESSED_NS: u64 = 30_000_000_000;
/// Where there is little room, layers of this size are written out.
const TIGHT_FREEZE_BYTES: usize = 4 << 20;

impl Room {
    /// Old versions are kept no longer than this, in seconds.
    pub fn ttl_seconds_max(self) -> u64 {
        match self {
            Room::Enough => u64::MAX,
            Room::Tight => TIGHT_TTL_SECONDS,
            Room::Full => FULL_TTL_SECONDS,
        }
    }

    /// Whether the versions in memory are to be written out before they have grown as large as elsewhere.
    pub fn is_freeze_due<E: Engine>(self, versions: &Versions<E>) -> bool {
        self != Room::Enough && versions.active_bytes() >= TIGHT_FREEZE_BYTES
    }
}

/// Whether writes want more room than there is.
#[derive(Default)]
pub(crate) struct Pressure {
    until_ns: u64,
}

impl Pressure {
    /// How much room there is to be taken to be, where space is given back: a disk that is too full for a large write is full, though smaller
    /// ones go on.
    pub fn look<E: Engine>(&mut self, versions: &Versions<E>, room: Room, now_ns: u64) -> Room {
        if versions.was_refused() {
            self.until_ns = now_ns.saturating_add(PRESSED_NS);
        }
        if now_ns < self.until_ns { Room::Full } else { room }
    }
}

/// Gives back what deletions that may go take up, where there is little room.
#[derive(Default)]
pub(crate) struct Reclaiming {
    /// That there is no room for it was said.
    told: bool,
    /// It was begun, and is not done.
    begun: bool,
}

impl Reclaiming {
    /// Gives the past below a threshold back, where one is known; where there is little room, what that freed in the engine at once. (A node that has
    /// just started knows none, and may have to merge all the same.)
    ///
    /// # Errors
    /// What the engine says, but for a full disk: then it is tried again.
    pub fn collect<E: Engine>(
        &mut self,
        versions: &Versions<E>,
        threshold: Option<Threshold>,
        room: Room,
    ) -> Result<(), StoreError> {
        match threshold.map(|threshold| versions.collect(threshold)) {
            None | Some(Ok(_) | Err(StoreError::DiskFull)) => self.look(versions, room),
            Some(Err(e)) => Err(e),
        }
    }

    /// Gives back some of it: some merges, which take a second or two at most.
    ///
    /// # Errors
    /// What the engine says, but for a full disk: then it is tried again.
    fn look<E: Engine>(&mut self, versions: &Versions<E>, room: Room) -> Result<(), StoreError> {
        // A merge may want more room than ordinary writes do: all that waits, and all that this overlaps.
        let room = if versions.engine().lacks_room_to_merge() { Room::Full } else { room };
        self.begun = match room {
            // What frees space may wait in memory behind runs that the engine leaves as they are.
            _ if versions.waits_in_vain() => true,
            Room::Enough => false,
            // Once begun it goes on to its end.
            Room::Tight => self.begun || versions.compaction_due(true),
            // What waits to be merged keeps room from being promised.
            Room::Full => {
                let engine = versions.engine();
                versions.garbage().buried > 0
                    || engine.unmerged_bytes() >= UNMERGED_BYTES
                    || engine.runs() >= UNMERGED_RUNS_MAX
            }
        };
        if !self.begun {
            return Ok(());
        }
        let buried = versions.garbage().buried;
        match versions.reclaim() {
            Ok(false) => {}
            Ok(true) => {
                (self.told, self.begun) = (false, false);
                if buried > 0 {
                    crate::log::info("space was reclaimed", &[("engine_bytes", &versions.engine().disk_bytes())]);
                }
            }
            // It is tried again and again.
            Err(StoreError::DiskFull) if !std::mem::replace(&mut self.told, true) => {
                crate::log::warning("there is no room to reclaim space: it waits for merges", &[])
            }
            Err(StoreError::DiskFull) => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

//! What fjall's merges are told: which entries to drop, and when to make way.
//!
//! Problem: a merge writes new tables before the old ones go. On a disk that is nearly full it took the room that what is in memory needs,
//! found no more, died, and began again once what it had written was deleted; what would have freed space (the end of a table) waited in
//! memory behind it. Idea: fjall asks nobody before it merges, but it passes each entry through a filter, and a filter may fail.
//!
//! 1. A merge goes on only while so much is free that what is in memory and what is promised can be written out, and ordinary commits are let
//!    in ([`Room::needed`](crate::disk::Room::needed)); else it ends. What is in memory is asked for at each look: it grows meanwhile.
//! 2. When one has ended so, the next end at their first entry, for [`PAUSE_LOOKS`] looks, and nobody waits for merges meanwhile: there are
//!    as many runs as the disk holds then, and reads are as slow as that makes them.
//! 3. What reclaims space on a full disk may take nearly all that is left, but for what is in memory and promised, and [`FLOOR_BYTES`] for fjall's
//!    lists. Only where memory cannot be written out at all it may take that, too: nothing else would give room.
//!
//! Caveat: fjall closes its database when a merge fails (the essay of [`super::fjall`]), and what it had written stays until it is opened.

use crate::disk::real;
use crate::keys::{self, Burial, Kept};
use crate::versions::Demand;
use fjall::LsmError;
use fjall::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};
use parking_lot::RwLock;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A merge that found no room is tried again after so many looks: there are about 20 in a second.
const PAUSE_LOOKS: u32 = 200;
/// What no merge takes: a table's end, and the new list of tables.
const FLOOR_BYTES: u64 = 2 << 20;
/// A merge looks at the disk again when it has passed this part of what there was to spare, in bytes of entries between these two: others take room
/// meanwhile, and look for themselves.
const SPARE_PART_PER_LOOK: u64 = 16;
const BYTES_PER_LOOK_MIN: u64 = 256 << 10;
const BYTES_PER_LOOK_MAX: u64 = 4 << 20;

/// What merges are told, and tell.
pub(super) struct Merges {
    path: PathBuf,
    /// Deletions in the present that may go.
    burial: RwLock<Arc<Burial>>,
    /// What is not of this in the past may go.
    kept: RwLock<Arc<Kept>>,
    /// What is in memory and what is promised, now.
    demand: RwLock<Arc<Demand>>,
    /// Looks until merges are tried again.
    pause: AtomicU32,
    /// Space is being reclaimed, by who would otherwise write out what is in memory.
    unleashed: AtomicBool,
    /// What is in memory could not be written out.
    stuck: AtomicBool,
}

/// Each is replaced as a whole: a panic leaves none half-done.
impl std::panic::RefUnwindSafe for Merges {}

impl Merges {
    pub fn new(path: &Path) -> Merges {
        Merges {
            path: path.to_path_buf(),
            burial: RwLock::default(),
            kept: RwLock::default(),
            demand: RwLock::default(),
            pause: AtomicU32::new(0),
            unleashed: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
        }
    }

    /// Gives whether more is dead than before.
    pub fn bury(&self, burial: Burial) -> bool {
        let mut known = self.burial.write();
        let more = !burial.dead.is_subset(&known.dead);
        *known = Arc::new(burial);
        more
    }

    pub fn keep(&self, kept: &Kept) {
        *self.kept.write() = Arc::new(kept.clone());
    }

    pub fn heed(&self, demand: &Arc<Demand>) {
        *self.demand.write() = demand.clone();
    }

    /// What is in memory could not be written out, though it was tried at last; or it was.
    pub fn set_stuck(&self, stuck: bool) {
        self.stuck.store(stuck, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }

    /// Merges under way end soon, and none begins for a while.
    pub fn pause(&self) {
        self.pause.store(PAUSE_LOOKS, Ordering::Release);
    }

    /// There may be room again.
    pub fn resume(&self) {
        self.pause.store(0, Ordering::Release);
    }

    pub fn are_paused(&self) -> bool {
        self.pause.load(Ordering::Acquire) > 0
    }

    /// Whether merges may be tried: to be asked now and then.
    pub fn look(&self) -> bool {
        let left = self.pause.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        left.is_err()
    }

    /// Runs a merge that may take all room.
    pub fn unleashed<R>(&self, merge: impl FnOnce() -> R) -> R {
        self.unleashed.store(true, Ordering::Release);
        let merged = merge();
        self.unleashed.store(false, Ordering::Release);
        merged
    }

    /// What it may still take, in bytes; `None`: nothing. Invariant 3 where it is `unleashed`, else invariant 1.
    fn spare(&self, unleashed: bool) -> Option<u64> {
        let room = real::room(&self.path).ok()?;
        let needed = match unleashed {
            true if self.stuck.load(Ordering::Relaxed) => FLOOR_BYTES,
            true => FLOOR_BYTES.saturating_add(self.demand.read().at_least()),
            false => room.needed(self.demand.read().at_ease()),
        };
        room.free.checked_sub(needed)
    }
}

/// Bytes of entries until the next look, of one that found so much to spare.
fn until_next_look(spare: u64) -> u64 {
    (spare / SPARE_PART_PER_LOOK).clamp(BYTES_PER_LOOK_MIN, BYTES_PER_LOOK_MAX)
}

/// Ends the merge that it is with.
struct Leash {
    merges: Arc<Merges>,
    /// Bytes of entries until it looks.
    bytes_left: u64,
}

impl Leash {
    fn of(merges: &Arc<Merges>) -> Leash {
        Leash { merges: merges.clone(), bytes_left: 0 }
    }

    fn pass(&mut self, bytes: usize) -> Result<(), LsmError> {
        let unleashed = self.merges.unleashed.load(Ordering::Acquire);
        let mut ends = false;
        match self.bytes_left.checked_sub(bytes as u64) {
            Some(left) => self.bytes_left = left,
            None => match self.merges.spare(unleashed) {
                Some(spare) => self.bytes_left = until_next_look(spare),
                None if unleashed => ends = true,
                None => self.merges.pause(),
            },
        }
        // Others may have paused it, too.
        ends |= !unleashed && self.merges.are_paused();
        if ends { Err(LsmError::Io(ErrorKind::StorageFull.into())) } else { Ok(()) }
    }
}

/// Drops deletions that nobody can look behind any more, while tables are merged. A deletion that hides an older table's entry
/// becomes fjall's own tombstone, which goes when it has met what it hides. What is dead hides only what is dead.
pub(super) struct PresentFilters(pub Arc<Merges>);

impl Factory for PresentFilters {
    fn name(&self) -> &'static str {
        "burial"
    }
    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let burial = self.0.burial.read().clone();
        Box::new(PresentFilter { burial, leash: Leash::of(&self.0) })
    }
}

struct PresentFilter {
    burial: Arc<Burial>,
    leash: Leash,
}

impl CompactionFilter for PresentFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        let value = item.value()?;
        self.leash.pass(item.key().len() + value.len())?;
        Ok(match () {
            () if self.burial.is_dead(item.key()) => Verdict::Destroy,
            () if self.burial.takes(item.key(), &value) => Verdict::Remove,
            () => Verdict::Keep,
        })
    }
}

/// Drops what is aged of the past, where that lies in one table with what is not.
pub(super) struct PastFilters(pub Arc<Merges>);

impl Factory for PastFilters {
    fn name(&self) -> &'static str {
        "classes"
    }
    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        let kept = self.0.kept.read().clone();
        Box::new(PastFilter { kept, leash: Leash::of(&self.0) })
    }
}

struct PastFilter {
    kept: Arc<Kept>,
    leash: Leash,
}

impl CompactionFilter for PastFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        self.leash.pass(item.key().len() + item.value()?.len())?;
        // Written once, or again by a replay as it was: nothing older can come to light that does not go, too.
        Ok(if keys::is_aged(item.key(), &self.kept) { Verdict::Destroy } else { Verdict::Keep })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A merge of small entries asked the system 64 entries apart.
    #[test]
    fn looks_are_rare_where_there_is_room_and_frequent_where_there_is_none() {
        assert_eq!(until_next_look(0), BYTES_PER_LOOK_MIN);
        assert_eq!(until_next_look(u64::MAX), BYTES_PER_LOOK_MAX);
        let spares = (0..40).map(|bits| 1u64 << bits).filter(|spare| *spare >= FLOOR_BYTES);
        assert!(spares.into_iter().all(|spare| until_next_look(spare) <= spare / 8));
    }

    /// One that found room goes on for as long without a look, and one that is paused ends at its next entry all the same.
    #[test]
    fn a_merge_looks_after_bytes_and_not_after_entries() {
        let dir = tempfile::tempdir().unwrap();
        let merges = Arc::new(Merges::new(dir.path()));
        let mut leash = Leash::of(&merges);
        leash.pass(1).unwrap();
        let first = leash.bytes_left;
        assert!(first >= BYTES_PER_LOOK_MIN);
        for _ in 0..1000 {
            leash.pass(1).unwrap();
        }
        assert_eq!(leash.bytes_left, first - 1000, "no look lay between");
        // No disk has room for so much.
        let demand = Arc::new(Demand::default());
        let _promise = demand.promise(u64::MAX, 0);
        merges.heed(&demand);
        leash.pass(1).unwrap();
        assert!(leash.pass(BYTES_PER_LOOK_MAX as usize).is_err());
        assert!(merges.are_paused());
        assert!(leash.pass(1).is_err(), "whoever paused it");
    }
}

//! What fjall's merges are told: which entries to drop, and when to make way.
//!
//! Problem: a merge writes new tables before the old ones go. On a disk that is nearly full it took the room that what is in memory needs,
//! found no more, died, and began again once what it had written was deleted; what would have freed space (the end of a table) waited in
//! memory behind it. Idea: fjall asks nobody before it merges, but it passes each entry through a filter, and a filter may fail.
//!
//! 1. A merge goes on only while so much is free that what is in memory can be written out, and ordinary commits are let in
//!    ([`Room::needed`](crate::disk::Room::needed)); else it ends.
//! 2. When one has ended so, the next end at their first entry, for [`PAUSE_LOOKS`] looks, and nobody waits for merges meanwhile: there are
//!    as many runs as the disk holds then, and reads are as slow as that makes them.
//! 3. What reclaims space on a full disk may take nearly all that is left ([`FLOOR_BYTES`] are for fjall's lists): it runs where what is in memory is written out, one after the other.
//!
//! Caveat: fjall closes its database when a merge fails (the essay of [`super::fjall`]), and what it had written stays until it is opened.

use crate::disk::real;
use crate::keys::{self, Burial, Kept};
use fjall::LsmError;
use fjall::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};
use parking_lot::RwLock;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A merge that found no room is tried again after so many looks: there are about 20 in a second.
const PAUSE_LOOKS: u32 = 200;
/// What no merge takes: a table's end, and the new list of tables.
const FLOOR_BYTES: u64 = 2 << 20;
/// A merge looks at the disk each time it has passed so many entries.
const ENTRIES_PER_LOOK: u32 = 64;

/// What merges are told, and tell.
pub(super) struct Merges {
    path: PathBuf,
    /// Deletions in the present that may go.
    burial: RwLock<Arc<Burial>>,
    /// What is not of this in the past may go.
    kept: RwLock<Arc<Kept>>,
    /// What is in memory and is to be written.
    unwritten_bytes: AtomicU64,
    /// Looks until merges are tried again.
    pause: AtomicU32,
    /// Space is being reclaimed, by who would otherwise write out what is in memory.
    unleashed: AtomicBool,
}

/// Each is replaced as a whole: a panic leaves none half-done.
impl std::panic::RefUnwindSafe for Merges {}

impl Merges {
    pub fn new(path: &Path) -> Merges {
        Merges {
            path: path.to_path_buf(),
            burial: RwLock::default(),
            kept: RwLock::default(),
            unwritten_bytes: AtomicU64::new(0),
            pause: AtomicU32::new(0),
            unleashed: AtomicBool::new(false),
        }
    }

    pub fn bury(&self, burial: Burial) {
        *self.burial.write() = Arc::new(burial);
    }

    pub fn keep(&self, kept: &Kept) {
        *self.kept.write() = Arc::new(kept.clone());
    }

    pub fn reserve(&self, unwritten_bytes: u64) {
        self.unwritten_bytes.store(unwritten_bytes, Ordering::Relaxed);
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

    /// Invariant 3.
    fn has_floor(&self) -> bool {
        real::room(&self.path).is_ok_and(|room| room.free >= FLOOR_BYTES)
    }

    /// Invariant 1.
    fn has_room(&self) -> bool {
        let unwritten_bytes = self.unwritten_bytes.load(Ordering::Relaxed);
        real::room(&self.path).is_ok_and(|room| room.free >= room.needed(unwritten_bytes))
    }
}

/// Ends the merge that it is with.
struct Leash {
    merges: Arc<Merges>,
    passed: u32,
}

impl Leash {
    fn pass(&mut self) -> Result<(), LsmError> {
        if self.merges.unleashed.load(Ordering::Acquire) {
            let looks = self.passed.is_multiple_of(ENTRIES_PER_LOOK);
            self.passed = self.passed.wrapping_add(1);
            return match looks && !self.merges.has_floor() {
                true => Err(LsmError::Io(ErrorKind::StorageFull.into())),
                false => Ok(()),
            };
        }
        if self.passed.is_multiple_of(ENTRIES_PER_LOOK) && !self.merges.has_room() {
            self.merges.pause();
        }
        self.passed = self.passed.wrapping_add(1);
        match self.merges.are_paused() {
            true => Err(LsmError::Io(ErrorKind::StorageFull.into())),
            false => Ok(()),
        }
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
        Box::new(PresentFilter { burial, leash: Leash { merges: self.0.clone(), passed: 0 } })
    }
}

struct PresentFilter {
    burial: Arc<Burial>,
    leash: Leash,
}

impl CompactionFilter for PresentFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        self.leash.pass()?;
        Ok(match () {
            () if self.burial.is_dead(item.key()) => Verdict::Destroy,
            () if self.burial.takes(item.key(), &item.value()?) => Verdict::Remove,
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
        Box::new(PastFilter { kept, leash: Leash { merges: self.0.clone(), passed: 0 } })
    }
}

struct PastFilter {
    kept: Arc<Kept>,
    leash: Leash,
}

impl CompactionFilter for PastFilter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        self.leash.pass()?;
        // Written once, or again by a replay as it was: nothing older can come to light that does not go, too.
        Ok(if keys::is_aged(item.key(), &self.kept) { Verdict::Destroy } else { Verdict::Keep })
    }
}

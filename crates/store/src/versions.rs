//! The multi-version store: an overlay of recent commits in memory over an [`Engine`].
//!
//! Problem: a commit must be visible in a microsecond, and a row that was just written is most often the row that is
//! read next; an engine on disk takes ten. Idea: the log makes commits durable, so the store may keep them in an ordered
//! map in memory (the *active layer*) and write them to the engine later, in bulk. [`Versions::freeze`] closes the
//! active layer together with the applied position of the log; [`Versions::flush`] writes the oldest frozen layer to the
//! engine in one atomic, synced step; after a crash the log is replayed from [`Versions::recovered`].
//!
//! The engine keeps two trees. The *present* has the newest version of each key, and nothing else; what was before it is in the *past*,
//! under the time at which it ended. So reads of the present never meet old versions, however many there are, and collection drops
//! stretches of the past without looking at keys (decision 0023).
//!
//! ```text
//!   show ──► listed, then placed in the active layer and the cache (`whole`)
//!   apply ──► active layer ──freeze──► frozen layers ──flush──┬─► present  (newest version of each key)
//!      └────► row cache (newest versions)  ◄───────fill───────┤      │ newer than the snapshot?
//!                                                             └─► past ◄──┘  (begin, end), dropped by buckets of time
//!   get: cache, active, frozen newest first, present, past: the first that holds a version at or below the snapshot answers
//! ```
//!
//! Invariants:
//! 1. A version lives in at least one place from `apply` on: a layer leaves memory only after the engine holds it, synced.
//! 2. The engine holds exactly the commands up to its position: a layer is flushed whole or not at all, in order, since
//!    certification of a replayed command must not meet versions of later commands. (And what was loaded past the log: `load`.)
//! 3. A reader looks at memory first and at the engine second; what moves in between moves towards it.
//! 4. A cached version is the newest of its key, but for what is shown and not in its place yet (`whole`).
//! 5. The engine has at most [`UNMERGED_RUNS_MAX`] runs to merge: above that, layers stay frozen, and then writers are held back.
//! 6. Collection removes only what ended at or below the threshold of its table, and never passes an open snapshot; a deletion stands in
//!    the present until that threshold has reached it. A read below it is refused.
//! 7. Of a key whose present version is newer than a snapshot, the past holds what that snapshot sees: versions reach the past
//!    before their successors reach the present.
//!
//! Caveats: `apply` makes a command visible key by key where it holds more than [`APPLY_KEYS_MAX`] keys; readers at or
//! above its timestamp are kept out by the caller (design §3: reads wait for undecided writes at or below their
//! snapshot) until `apply` returns.

mod cache;
mod changes;
mod collect;
mod copies;
mod erase;
mod export;
mod flush;
mod hot;
mod join;
mod leaves;
mod ledger;
mod load;
mod overlay;
mod packed;
mod past;
mod prefixes;
mod ranges;
mod recent;
mod retention;
mod scan;
mod snapshots;
mod sweep;
mod warm;
mod whole;

pub use collect::Garbage;
pub use erase::Erased;
pub use export::Histories;
pub use flush::GivenUp;
pub use ledger::{Demand, Promise};
pub use load::Loaded;
pub use recent::Arrivals;
pub use retention::{APART_MAX, Apart, Threshold, class_of};
pub use scan::Scan;
pub use snapshots::SnapshotGuard;
pub use sweep::{Pick, Sweep};
pub use whole::{SHOWN_MAX, Writes};

use crate::engine::Tree;
use crate::keys::{Bucket, Burial, Present};
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use cache::{RowCache, Together};
use clock::Timestamp;
use hot::HotSpans;
use overlay::Layer;
use parking_lot::{Mutex, RwLock};
use past::Buckets;
use prefixes::{Bounds, Prefix, Prefixes, prefix_of};
use recent::Recent;
use retention::Filing;
pub(crate) use retention::Thresholds;
use smallvec::SmallVec;
use snapshots::Snapshots;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A half-open span of user keys.
pub type Span = Range<Bytes>;
/// One write of a command: the key, and its value or `None` to delete it.
pub type Write = (Bytes, Option<Bytes>);

/// Keys that one hold of the overlay's lock takes in: bounds how long a reader waits.
pub const APPLY_KEYS_MAX: usize = 4096;
/// Writes of one command that are put into a layer together where they lie together; of fewer it is not asked how they lie.
const TOGETHER_MIN: usize = 64;
/// Writes of most commits: for so many nothing is allocated.
const SOME: usize = 8;
/// Default of [`VersionsConfig::freeze_bytes`].
pub const FREEZE_BYTES: usize = 64 << 20;
/// Frozen layers above which the caller should hold writers back until a flush is done.
pub const FROZEN_LAYERS_MAX: usize = 4;
/// So many full layers are all that memory is meant for: those that are frozen, the active one, and one that has just been left.
pub const OVERLAY_LAYERS_MAX: usize = FROZEN_LAYERS_MAX + 2;
/// Runs that the engine has still to merge, at which flushes wait for it: below memory, a read costs about a block per run.
/// Twice what makes the engine merge, so that it always has work while a flush may go on.
pub const UNMERGED_RUNS_MAX: usize = 8;
/// Default of [`VersionsConfig::hot_after`].
pub const HOT_AFTER: usize = 32;
/// Default of [`VersionsConfig::erase_max`].
pub const ERASE_MAX: usize = 65_536;
/// Default of [`VersionsConfig::show_min`]: applying fewer takes some ten milliseconds.
pub const SHOW_MIN: usize = 16_384;
/// Default of [`VersionsConfig::bucket_shift`]: about 9 seconds.
pub const BUCKET_SHIFT: u32 = 35;
/// This part of the cache's bytes at most goes to hot spans, where there are any.
const HOT_PART: usize = 4;
/// Keys that were written after what is asked about, of which the past is asked together.
pub const NEWER_KEYS_MAX: usize = 1024;
/// Default of [`VersionsConfig::cache_bytes`].
pub const CACHE_BYTES: usize = 512 << 20;

/// Sizes, in bytes.
#[derive(Clone, Debug)]
pub struct VersionsConfig {
    /// The row cache and the hot spans hold at most this.
    pub cache_bytes: usize,
    /// The active layer is due to be frozen at this size.
    pub freeze_bytes: usize,
    /// The past is gathered in buckets of 2 to the power of this many timestamps, below 64; it goes by whole buckets. What a
    /// store was made with stays.
    pub bucket_shift: u32,
    /// Entries that a scan passes in vain before the span is kept in memory as it is now.
    pub hot_after: usize,
    /// Short ranges that were read in the engine stay in memory while there is room: [`ranges`].
    pub keeps_ranges: bool,
    /// Entries of a dropped index that one call removes at most; where more are left than its files give back, merges drop them.
    pub erase_max: usize,
    /// A command of so many writes and more is worth to be shown before it is in its place ([`Versions::show`]).
    pub show_min: usize,
    /// Breaks a rule, for negative controls.
    #[doc(hidden)]
    pub sabotage: Option<Sabotage>,
}

/// Rules that tests break on purpose.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A flush writes the present before the past.
    PresentFirst,
    /// Hot spans miss writes.
    HotMissesWrites,
    /// Hot spans miss what is loaded past the log.
    HotMissesLoads,
    /// Hot spans forget deletions without saying up to when.
    HotForgets,
    /// Every class forgets as much as the one that is kept shortest.
    ClassesAgeAlike,
    /// A class forgets what an index left in it, and the index does not say so.
    ClassesForgetWhoLeft,
    /// An index comes to a class that has forgotten what the index has yet to file.
    ClassesTakeInEarly,
    /// A layer is closed while a command is shown that is not all in it.
    ClosesWhatIsHalfPlaced,
    /// Readers take what layers and cache say, whatever is shown.
    ReadersMissWhatIsShown,
    /// A scan looks at the list of what is shown first, and at the layers at another moment.
    ScansListFirst,
    /// Deletions go by the threshold of all tables.
    GravesAgeAlike,
}

impl Default for VersionsConfig {
    fn default() -> Self {
        VersionsConfig {
            cache_bytes: CACHE_BYTES,
            freeze_bytes: FREEZE_BYTES,
            bucket_shift: BUCKET_SHIFT,
            hot_after: HOT_AFTER,
            keeps_ranges: true,
            erase_max: ERASE_MAX,
            show_min: SHOW_MIN,
            sabotage: None,
        }
    }
}

/// One version of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// When it was committed.
    pub ts: Timestamp,
    /// The value; `None`: deleted.
    pub value: Option<Bytes>,
}

/// What a point read found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The newest version at or below the snapshot: a tombstone has no value.
    pub version: Option<Version>,
    /// The newest version in `(snapshot, limit]`: an uncertain one.
    pub newer: Option<Timestamp>,
}

/// What the engine held at the open: replay the log from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The last log position whose effects the engine holds.
    pub position: u64,
    /// What the caller gave to the [`Versions::freeze`] of that position.
    pub state: Bytes,
    /// Greatest commit timestamp in the engine.
    pub max_ts: Timestamp,
}

struct Frozen {
    layer: Layer,
    position: u64,
    state: Bytes,
}

#[derive(Default)]
struct Layers {
    active: Layer,
    /// Oldest first.
    frozen: Vec<Arc<Frozen>>,
    recent: Recent,
    /// Counts layers that were closed: who looks at the active one in several steps must look at the same one.
    freezes: u64,
    /// Counts layers that left memory: a reader that filled the cache across one must not.
    retired: u64,
}

/// All versions of all keys of this node.
pub struct Versions<E> {
    engine: E,
    config: VersionsConfig,
    layers: RwLock<Layers>,
    /// Commands that are seen and not in the layers yet.
    wholes: whole::Wholes,
    /// What layers hold of them.
    shown_bytes: AtomicUsize,
    cache: RowCache,
    /// What the two may hold now.
    cache_bytes_max: AtomicUsize,
    hot: HotSpans,
    /// Nothing is cached: see [`Versions::begin_replay`].
    cold: AtomicBool,
    prefixes: RwLock<Prefixes>,
    /// What the past consists of.
    buckets: RwLock<Buckets>,
    /// Where what ends is filed.
    filing: RwLock<Arc<Filing>>,
    /// Buckets below these were given back, by class.
    dropped: Mutex<BTreeMap<u8, u64>>,
    /// The engine was not told so yet, or had no time.
    drop_due: AtomicBool,
    /// What was logged last, once there is nothing left to be done for it: it is asked for often.
    settled: Mutex<Option<Threshold>>,
    /// Deletions in the present above the threshold, by class and bucket.
    graves: Mutex<BTreeMap<Bucket, u64>>,
    ledger: ledger::Ledger,
    given_up: Mutex<GivenUp>,
    /// The threshold that deletions go by, as it is on disk.
    logged: AtomicU64,
    /// Deletions in the present that merges may drop.
    buried: AtomicU64,
    /// Entries of the present that newer ones hide, at most: merges drop them, too, and do not say so.
    hidden: AtomicU64,
    /// The newest version of any key that is no longer than a prefix: see [`Versions::newest_bare`].
    newest_bare: AtomicU64,
    /// What was loaded and is not in the row cache yet.
    loaded: Mutex<warm::Loaded>,
    /// The prefix that is being erased, once its files were dropped.
    erasing: Mutex<Option<Prefix>>,
    /// What merges were told of deletions, and of prefixes that they may drop.
    buried_below: Mutex<Thresholds>,
    dead: Mutex<BTreeMap<Prefix, erase::Dead>>,
    /// How often the present was written anew.
    compactions: AtomicU64,
    snapshots: Arc<Snapshots>,
    recovered: Recovered,
    flushed: AtomicU64,
    /// One writer of the engine at a time, but for loads: flush, erase and collect.
    writer: Mutex<()>,
    /// One writer of the present at a time, a load as well. Taken behind [`Versions::writer`]. A flush has it only while it writes there: what it keeps of the past before may take
    /// a second, behind a large deletion, and a load is of keys of which there is none.
    present_writer: Mutex<()>,
}

impl<E: Engine> Versions<E> {
    /// Opens the store over an engine.
    ///
    /// # Errors
    /// What the engine says; [`StoreError::Corrupt`] where its header is damaged.
    pub fn open(engine: E, mut config: VersionsConfig) -> Result<Self, StoreError> {
        let header = match flush::Header::read(&engine)? {
            Some(header) => header,
            // Before anything else is there: a first flush that fails half-way leaves a past, which is read with the width it was filed by.
            None => flush::Header::make(&engine, config.bucket_shift.min(63))?,
        };
        config.bucket_shift = header.bucket_shift.min(63);
        if let Some(room) = engine.room() {
            config.freeze_bytes =
                config.freeze_bytes.min(usize::try_from(room.layer_bytes_max()).unwrap_or(usize::MAX));
        }
        let snapshots = Arc::new(Snapshots::default());
        let (common, apart) = (header.collected.max(header.floor), header.apart);
        // What was logged for those that are kept apart comes with the next threshold.
        let waiting = apart.keys().map(|prefix| (*prefix, Timestamp::MIN)).collect();
        let below = Thresholds { common: header.collected, apart: waiting };
        engine.bury(Burial { below: below.clone(), ..Burial::default() });
        snapshots.raise(|_, _| (Thresholds { common, apart }, ()));
        let buckets = RwLock::new(Buckets::read(&engine)?);
        let ledger = ledger::Ledger::of(&engine);
        Ok(Versions {
            engine,
            layers: RwLock::new(Layers { recent: Recent::after(header.max_ts), ..Layers::default() }),
            wholes: whole::Wholes::new(config.sabotage == Some(Sabotage::ReadersMissWhatIsShown)),
            shown_bytes: AtomicUsize::new(0),
            hot: HotSpans::new(config.cache_bytes / HOT_PART),
            cache: RowCache::new(config.cache_bytes),
            cache_bytes_max: AtomicUsize::new(config.cache_bytes),
            cold: AtomicBool::new(false),
            prefixes: RwLock::new(Prefixes::opened_at(header.max_ts)),
            buckets,
            filing: RwLock::new(Arc::new(header.filing)),
            dropped: Mutex::default(),
            drop_due: AtomicBool::new(false),
            settled: Mutex::default(),
            graves: Mutex::new(header.graves),
            ledger,
            given_up: Mutex::default(),
            buried: AtomicU64::new(header.buried),
            logged: AtomicU64::new(header.collected.as_u64()),
            hidden: AtomicU64::new(header.hidden),
            newest_bare: AtomicU64::new(header.max_ts.as_u64()),
            loaded: Mutex::default(),
            erasing: Mutex::new(None),
            buried_below: Mutex::new(below),
            dead: Mutex::default(),
            compactions: AtomicU64::new(0),
            snapshots,
            flushed: AtomicU64::new(header.position),
            recovered: Recovered { position: header.position, state: header.state, max_ts: header.max_ts },
            config,
            writer: Mutex::new(()),
            present_writer: Mutex::new(()),
        })
    }

    /// What the engine held at the open.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// The engine below, for checkpoints and figures.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Applies the writes of one command, committed at `ts`. Applying it again changes nothing.
    pub fn apply(&self, ts: Timestamp, writes: &[Write]) {
        self.apply_each(ts, writes.iter().map(|(key, value)| (key, value)));
    }

    /// As [`Versions::apply`], for writes that stand somewhere else.
    pub fn apply_each<'a>(&self, ts: Timestamp, writes: impl Iterator<Item = (&'a Bytes, &'a Option<Bytes>)>) {
        let thresholds = self.snapshots.thresholds();
        let cached = !self.cold.load(Ordering::Acquire);
        // A bulk change replaces what the cache has, and does not crowd it out.
        let many = writes.size_hint().0;
        let bulk = many > APPLY_KEYS_MAX;
        // Of more than are remembered only the last ones are.
        let mut passed = many.saturating_sub(recent::WRITES_MAX);
        let mut writes = writes.peekable();
        let mut lent = Vec::new();
        let (mut some, mut together) = (SmallVec::<[(&Bytes, &Option<Bytes>); SOME]>::new(), Together::default());
        while writes.peek().is_some() {
            some.clear();
            some.extend(writes.by_ref().take(APPLY_KEYS_MAX));
            let mut layers = self.layers.write();
            let before = layers.active.bytes();
            let Layers { active, recent, .. } = &mut *layers;
            if cached && bulk {
                lent.clear();
                lent.extend(some.iter().map(|(key, value)| (&key[..], value.as_ref())));
                self.cache.replace_all(&lent, ts, &mut together);
            }
            let puts = some.iter().enumerate().map(|(place, &(key, value))| {
                let version = Version { ts, value: value.clone() };
                if self.config.sabotage != Some(Sabotage::HotMissesWrites) {
                    self.hot.put(key, &version);
                }
                if key.len() <= prefixes::PREFIX_BYTES {
                    self.newest_bare.fetch_max(ts.as_u64(), Ordering::AcqRel);
                }
                match passed.checked_sub(1) {
                    Some(left) => {
                        recent.pass(ts);
                        passed = left;
                    }
                    None => recent.push(key, ts),
                }
                let base = match cached {
                    true if bulk => together.took[place].take(),
                    true => self.cache.put(key, version.clone()),
                    false => None,
                };
                (key, version, base)
            });
            match many < TOGETHER_MIN {
                true => puts.for_each(|(key, version, base)| active.insert(key, version, base, &thresholds)),
                false => active.insert_all(puts.map(|(key, version, base)| (&key[..], version, base)), &thresholds),
            }
            self.ledger.demand.change(before, layers.active.bytes());
        }
    }

    /// While a log is replayed nothing is cached: what nobody has asked for yet would take the memory and half the time. The cache
    /// is empty until [`Versions::end_replay`], so it holds nothing that what is applied now makes old.
    pub fn begin_replay(&self) {
        debug_assert!(self.cache.bytes() == 0, "a replay comes before the first read");
        self.cold.store(true, Ordering::Release);
    }

    /// From now on rows are cached. Nobody applies at the same time.
    pub fn end_replay(&self) {
        self.cold.store(false, Ordering::Release);
    }

    fn logged(&self) -> Timestamp {
        Timestamp::from_u64(self.logged.load(Ordering::Acquire))
    }

    /// Whether a log is being replayed.
    fn is_cold(&self) -> bool {
        self.cold.load(Ordering::Acquire)
    }

    /// The value of `key` at `snapshot` and when it was committed.
    ///
    /// # Errors
    /// What the engine says.
    pub fn get(&self, key: &[u8], snapshot: Timestamp) -> Result<Option<(Timestamp, Bytes)>, StoreError> {
        let version = self.version_at(key, snapshot)?;
        Ok(version.and_then(|v| Some((v.ts, v.value?))))
    }

    /// As [`Versions::get`], and whether a version lies in `(snapshot, limit]`.
    ///
    /// # Errors
    /// What the engine says.
    pub fn read(&self, key: &[u8], snapshot: Timestamp, limit: Timestamp) -> Result<Read, StoreError> {
        self.readable(key, snapshot)?;
        let shown = !self.wholes.is_empty();
        let cached = self.cache.get(key);
        if let Some(newest) = cached
            && newest.ts <= snapshot
            && !shown
        {
            return Ok(Read { version: Some(newest), newer: None });
        }
        let newer = self.version_between(key, snapshot, limit)?;
        Ok(Read { version: self.version_at(key, snapshot)?, newer })
    }

    /// The newest version of `key` at or below `snapshot`; a tombstone has no value.
    ///
    /// # Errors
    /// What the engine says; [`StoreError::Collected`] where the snapshot is too old for the key's table.
    pub fn version_at(&self, key: &[u8], snapshot: Timestamp) -> Result<Option<Version>, StoreError> {
        self.readable(key, snapshot)?;
        let shown = self.wholes.newest_of(key, Timestamp::MIN, snapshot);
        let placed = self.placed_at(key, snapshot)?;
        Ok(match (shown, placed) {
            (Some(shown), Some(placed)) if placed.ts > shown.ts => Some(placed),
            (Some(shown), _) => Some(shown),
            (None, placed) => placed,
        })
    }

    /// As [`Versions::version_at`], leaving out what is only shown.
    fn placed_at(&self, key: &[u8], snapshot: Timestamp) -> Result<Option<Version>, StoreError> {
        if let Some(newest) = self.cache.get(key)
            && newest.ts <= snapshot
        {
            return Ok(Some(newest));
        }
        let retired;
        let mut in_memory = false;
        {
            let layers = self.layers.read();
            for layer in layers.newest_first() {
                if let Some((version, _)) = layer.get(key, snapshot) {
                    if let Some(version) = version {
                        return Ok(Some(version.clone()));
                    }
                    in_memory = true;
                }
            }
            retired = layers.retired;
        }
        if !self.engine_may_hold(key)? {
            return Ok(None);
        }
        let Some((version, newest)) = self.engine_version(key, snapshot)? else {
            return Ok(None);
        };
        if newest && !in_memory {
            self.fill(key, &version, retired);
        }
        Ok(Some(version))
    }

    /// At or above the newest version of every key of at most four bytes, which name no row: what everybody looks at and few change. One load.
    pub fn newest_bare(&self) -> Timestamp {
        Timestamp::from_u64(self.newest_bare.load(Ordering::Acquire))
    }

    /// The newest version of `key`, tombstones included.
    ///
    /// # Errors
    /// What the engine says.
    pub fn newest(&self, key: &[u8]) -> Result<Option<Timestamp>, StoreError> {
        let shown = !self.wholes.is_empty();
        if let Some(ts) = self.cache.newest(key)
            && !shown
        {
            return Ok(Some(ts));
        }
        Ok(self.version_at(key, Timestamp::MAX)?.map(|v| v.ts))
    }

    /// Opens a snapshot: until the guard is dropped, what it can read is not collected.
    ///
    /// # Errors
    /// [`StoreError::Collected`] where it is too old.
    pub fn open_snapshot(&self, ts: Timestamp) -> Result<SnapshotGuard, StoreError> {
        self.snapshots.open(ts)
    }

    /// The oldest open snapshot.
    pub fn oldest_snapshot(&self) -> Option<Timestamp> {
        self.snapshots.oldest()
    }

    /// Snapshots below this are refused, but for tables that are kept apart.
    pub fn collected(&self) -> Timestamp {
        self.snapshots.collected()
    }

    /// Snapshots at or above this are refused for no table.
    pub fn collected_anywhere(&self) -> Timestamp {
        self.snapshots.highest()
    }

    /// The indexes that are kept apart, and what holds for each.
    pub fn collected_apart(&self) -> Vec<([u8; 4], Timestamp)> {
        self.snapshots.thresholds().apart.iter().map(|(index, ts)| (index.to_be_bytes(), *ts)).collect()
    }

    /// Snapshots of this key below this are refused.
    pub fn collected_of(&self, key: &[u8]) -> Timestamp {
        self.snapshots.thresholds().of(key)
    }

    /// Snapshots below this are refused for some key of the span.
    pub fn collected_in(&self, span: &Span) -> Timestamp {
        self.snapshots.thresholds().of_span(span)
    }

    /// Whether a key can be read at a snapshot.
    fn readable(&self, key: &[u8], snapshot: Timestamp) -> Result<(), StoreError> {
        if snapshot >= self.snapshots.highest() {
            return Ok(());
        }
        reach(snapshot, self.collected_of(key), key)
    }

    /// As [`Versions::readable`], of all keys of a span.
    fn readable_in(&self, span: &Span, snapshot: Timestamp) -> Result<(), StoreError> {
        if snapshot >= self.snapshots.highest() {
            return Ok(());
        }
        reach(snapshot, self.collected_in(span), &span.start)
    }

    /// Bytes that the row cache and the hot spans hold, about.
    pub fn cache_bytes(&self) -> usize {
        self.cache.bytes() + self.hot.bytes()
    }

    /// From now on the row cache and the hot spans hold at most so many bytes, and never more than they were opened with: for who sees
    /// that memory is scarce. What the row cache has too much goes before this returns.
    pub fn limit_cache(&self, bytes_max: usize) {
        let bytes_max = bytes_max.min(self.config.cache_bytes);
        if self.cache_bytes_max.swap(bytes_max, Ordering::Relaxed) != bytes_max {
            self.hot.limit(bytes_max / HOT_PART);
            self.share_cache();
            self.cache.shrink();
        }
    }

    /// The row cache may have what hot spans leave.
    fn share_cache(&self) {
        self.cache.set_bytes_max(self.cache_bytes_max.load(Ordering::Relaxed).saturating_sub(self.hot.bytes()));
    }

    /// Hot spans, for figures.
    pub fn hot_spans(&self) -> usize {
        self.hot.len()
    }

    /// Bytes of them in hot spans, about.
    pub fn hot_bytes(&self) -> usize {
        self.hot.bytes()
    }

    /// What the engine's present holds of a key.
    fn present(&self, key: &[u8]) -> Result<Option<Present>, StoreError> {
        let Some(entry) = self.engine.get(Tree::Present, &keys::present(key))? else {
            return Ok(None);
        };
        Present::decode(entry).map(Some).ok_or_else(|| damaged_key(key))
    }

    /// The newest version at or below `snapshot` in the engine, and whether it is the newest of all there. A key that was deleted or
    /// not there yet at the snapshot, and was written since, gives none.
    fn engine_version(&self, key: &[u8], snapshot: Timestamp) -> Result<Option<(Version, bool)>, StoreError> {
        let Some(present) = self.present(key)? else {
            return Ok(None);
        };
        if present.ts <= snapshot {
            return Ok(Some((Version { ts: present.ts, value: present.value }, true)));
        }
        let past = self.past_at(key, snapshot, present.ts)?;
        Ok(past.map(|past| (Version { ts: past.begin, value: Some(past.value) }, false)))
    }

    /// Whether the engine may hold `key`, by the bounds of its prefix.
    fn engine_may_hold(&self, key: &[u8]) -> Result<bool, StoreError> {
        let may = |p: &Prefixes| p.may_hold(key);
        self.ask_bounds(prefix_of(key), may)
    }

    /// Whether the engine may hold a key of `span`, which lies within one prefix.
    fn bounds_overlap(&self, span: &Span) -> Result<bool, StoreError> {
        let prefix = prefix_of(&span.start);
        self.ask_bounds(prefix, |p| p.may_overlap(prefix, span))
    }

    /// Asks what is known of a prefix; reads its bounds on first use.
    fn ask_bounds(&self, prefix: Prefix, ask: impl Fn(&Prefixes) -> Option<bool>) -> Result<bool, StoreError> {
        if let Some(known) = ask(&self.prefixes.read()) {
            return Ok(known);
        }
        // Holding the writers' locks keeps a flush, or a load, from widening the bounds between the read and the entry.
        let Some(_writer) = self.writer.try_lock() else {
            return Ok(true);
        };
        let Some(_present_writer) = self.present_writer.try_lock() else {
            return Ok(true);
        };
        let bounds = self.read_bounds(prefix)?;
        let mut prefixes = self.prefixes.write();
        prefixes.set_bounds(prefix, bounds);
        Ok(ask(&prefixes).unwrap_or(true))
    }

    /// Least and greatest user key of a prefix in the engine.
    fn read_bounds(&self, prefix: Prefix) -> Result<Bounds, StoreError> {
        Ok(self.end_of(prefix, false)?.zip(self.end_of(prefix, true)?))
    }

    /// The least or greatest user key of a prefix in the engine.
    fn end_of(&self, prefix: Prefix, greatest: bool) -> Result<Option<Bytes>, StoreError> {
        let (mut found, mut damaged) = (None, None);
        // Keys shorter than a prefix are filled up with zeroes in the map: they sort below it, so start from the shortest.
        let from = prefix.to_be_bytes();
        let shortest = &from[..from.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1)];
        let (lower, upper) = (keys::present(shortest), keys::present_upper(&from));
        self.engine.scan(Tree::Present, &lower, &upper, greatest, &mut |key, _| {
            match keys::user_key(key) {
                Ok(key) => found = Some(key),
                // No bound at all would say that the prefix is empty.
                Err(key) => damaged = Some(damaged_key(&key)),
            }
            ControlFlow::Break(())
        })?;
        damaged.map_or(Ok(found), Err)
    }

    /// Remembers what was read from the engine, unless something moved since memory was looked at.
    fn fill(&self, key: &[u8], version: &Version, retired: u64) {
        if self.cold.load(Ordering::Acquire) {
            return;
        }
        let layers = self.layers.read();
        if layers.retired == retired && layers.newest_first().all(|layer| layer.get(key, Timestamp::MAX).is_none()) {
            // A copy: what the engine gives may be a slice of a whole block, which the cache would keep.
            let value = version.value.as_deref().map(Bytes::copy_from_slice);
            self.cache.put(key, Version { ts: version.ts, value });
        }
    }
}

/// Whether a snapshot is not older than what is kept.
fn reach(asked: Timestamp, oldest: Timestamp, key: &[u8]) -> Result<(), StoreError> {
    match asked < oldest {
        true => Err(StoreError::Collected { asked, oldest, key: Some(Bytes::copy_from_slice(key)) }),
        false => Ok(()),
    }
}

fn damaged_key(key: &[u8]) -> StoreError {
    StoreError::Corrupt { place: format!("the versions of key {key:02x?}"), what: "an entry that is no version".into() }
}

impl Layers {
    fn newest_first(&self) -> impl Iterator<Item = &Layer> {
        std::iter::once(&self.active).chain(self.frozen.iter().rev().map(|f| &f.layer))
    }
}

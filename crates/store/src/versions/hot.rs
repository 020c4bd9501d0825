//! Hot spans: the present in memory and in order, where reading it from its layers costs more than it gives.
//!
//! Problem: a key that was deleted, or moved to another place of an index, leaves a deletion in memory and one in the engine's present
//! until nobody can look behind it. A scan steps over all of them: the head of a queue, or an index on a column that is updated often,
//! would become slower with every write. And of a row that is updated again and again each layer holds one version, of which a scan
//! needs one.
//!
//! Idea: a scan that passed much more than it found has the span that it covered kept as what it is now: its live keys in order. From
//! then on every write is made here, too, and scans read here only. Spans grow together, so that of a thousand deleted keys in front of
//! the first live one nothing is left. Memory is spent where garbage is, and, while there is room, where short ranges are read ([`super::ranges`]).
//!
//! Invariants:
//! 1. A span holds the newest version of each of its keys, deletions too, but for keys that were deleted at or below `since`: of those
//!    nothing. So a snapshot at or above `since` finds here all that it may see: an entry at or below it is what it sees, one above it
//!    says that the other layers must be asked about this key.
//! 2. Entries come in two ways: by [`HotSpans::put`], which the store calls while it holds its layers for writing, and by the one
//!    reading that fills the span after it was listed. What is newer stays.
//! 3. Spans do not overlap.
//! 4. What changes keys past the store's writes (loads, erasing) gives up the spans that lie there ([`HotSpans::give_up`]).
//!
//! Locks: the store's layers, then the list of spans, then one span; never the other way.
//!
//! Deletions are forgotten (and `since` rises) only below every open snapshot, so that no transaction under way is sent the long way.

use super::copies::Copies;
use super::leaves::{Cut, LEAF_KEYS_MAX, Leaves};
use super::prefixes::{end_of, prefix_of};
use super::scan::after;
use super::whole::Whole;
use super::{Span, Version};
use bytes::Bytes;
use clock::Timestamp;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Entries of a span: two that meet grow together up to here. One that grows far beyond by writes is given up.
const SPAN_ENTRIES_MAX: usize = 2048;
const SPAN_ENTRIES_LIMIT: usize = 8 * SPAN_ENTRIES_MAX;
/// Deletions that a scan passes before it has them forgotten.
const FORGET_MIN: usize = 32;
/// Rows of one reading that were written after its snapshot; with more of them the layers are read.
const NEWER_MAX: usize = 32;
/// Deletions that are put to a span before some are forgotten, though nobody reads there.
const FORGET_UNREAD_MIN: usize = 128;
/// What an entry costs beside its key and value.
const ENTRY_OVERHEAD: usize = 120;
/// What a span costs beside its entries.
const SPAN_OVERHEAD: usize = 300;
/// Of the calls of [`HotSpans::trim`], which come often, one in so many looks at all spans.
const TRIM_EVERY: usize = 20;
/// Leaves that one look takes, beside those that its rows need.
const CUT_LEAVES_MIN: usize = 8;
/// Hand steps of one eviction.
const EVICT_STEPS_MAX: usize = 64;
/// A span that was kept only because it had been read (see [`super::ranges`]) goes when nobody has read it for so many looks at all spans: about a
/// minute. Until then each write there is made in one more place.
const UNREAD_LOOKS_MAX: u32 = 60;
/// Spans that one hold of the list looks at.
const LOOKED_AT_ONCE: usize = 256;
/// Spans that one hold of the list gives up, or joins.
const TRIM_AT_ONCE: usize = 64;
/// Of the bytes, in fourths, that such spans may fill: beyond they would crowd out those that spare more.
const KEPT_PART: usize = 3;

#[derive(Default)]
struct Hot {
    end: Bytes,
    since: Timestamp,
    rows: Leaves<Version>,
    /// Its first reading is under way.
    loading: bool,
    /// Deletions that were put since some were forgotten, and what was left then.
    dead: usize,
    /// With so many of them they are looked at again.
    forget_at: usize,
}

impl Hot {
    /// Forgets the deletions at or below `floor`; gives the bytes freed.
    fn forget(&mut self, floor: Timestamp) -> usize {
        let (mut freed, mut since, mut dead) = (0, self.since, 0);
        self.rows.retain(|key, version| {
            let stays = version.value.is_some() || version.ts > floor;
            dead += usize::from(version.value.is_none() && stays);
            if !stays {
                freed += cost(key, version);
                // Without bound only under a negative control, which wants this to be missing.
                since = if floor == Timestamp::MAX { since } else { since.max(version.ts) };
            }
            stays
        });
        // What is too young to be forgotten is not looked at for each that is added.
        (self.since, self.dead, self.forget_at) = (since, dead, 2 * dead + self.rows.len() / 2);
        freed
    }
}

struct Listed {
    hot: RwLock<Hot>,
    bytes: AtomicUsize,
    used: AtomicBool,
    /// Looks at all spans since it was used.
    unread_looks: AtomicU32,
    /// It was listed because it was read, not because of garbage.
    kept: bool,
}

/// Where in a hot span a reading begins.
pub(super) struct Here {
    pub cut: Cut<Version>,
    /// Of what was cut.
    pub part: Span,
    listed: Arc<Listed>,
}

impl Here {
    /// The span that was read, if so many deletions were passed that it should forget them.
    pub fn stale(self, dead: usize) -> Option<Stale> {
        (dead >= FORGET_MIN).then_some(Stale(self.listed))
    }

    /// Whether many of its first rows were written after the snapshot: what that sees of each has to be looked up. Not of garbage: in the layers it is
    /// passed.
    pub fn looks_back(&self, snapshot: Timestamp, reverse: bool, limit: usize) -> bool {
        if !self.listed.kept {
            return false;
        }
        let (mut newer, mut seen) = (0, 0);
        let few = self.cut.visit(&self.part, reverse, &mut |_, version| {
            newer += usize::from(version.ts > snapshot);
            seen += usize::from(version.ts > snapshot || version.value.is_some());
            if newer < NEWER_MAX && seen < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        few.is_break() && newer >= NEWER_MAX
    }

    /// Where what was not cut begins (ends, where it goes down).
    pub fn end(&self, reverse: bool) -> Bytes {
        match &self.cut.rest {
            Some(rest) => Bytes::copy_from_slice(rest),
            None if reverse => self.part.start.clone(),
            None => self.part.end.clone(),
        }
    }
}

/// All hot spans, by their first key.
pub(super) struct HotSpans {
    spans: RwLock<BTreeMap<Bytes, Arc<Listed>>>,
    /// How many there are: most stores have none, and a write should not ask further.
    count: AtomicUsize,
    bytes: AtomicUsize,
    bytes_max: AtomicUsize,
    trims: AtomicUsize,
    /// Where the next eviction goes on.
    hand: Mutex<Bytes>,
    /// Deletions at or below are of no use to who reads now, as of the last look at all spans.
    floor: AtomicU64,
}

/// What a scan finds where it begins.
pub(super) enum Ahead {
    /// Entries up to a key, or to the span's end: what the snapshot may see, in the order asked for. A version above the snapshot stands
    /// for one to be looked up.
    Hot {
        found: Vec<(Bytes, Version)>,
        end: Bytes,
        /// It holds many deletions: see [`HotSpans::forget`].
        stale: Option<Stale>,
    },
    /// A hot span, with much in it that was written after the snapshot, down to where it is known here: the layers are to be read.
    Past(Bytes),
    /// No hot span here; the next one begins at this key (ends, where the scan goes down).
    Cold(Option<Bytes>),
}

/// A span with deletions that might be forgotten.
pub(super) struct Stale(Arc<Listed>);

fn cost(key: &[u8], version: &Version) -> usize {
    key.len() + version.value.as_ref().map_or(0, Bytes::len) + ENTRY_OVERHEAD
}

/// Whether a scan that passed so many entries and gave so many is worth a hot span: half as much again, and `entries`
/// ([`super::VersionsConfig::hot_after`]) more. Rows that were updated since the last flush stand in memory and in the engine: they count.
pub(super) fn is_costly(passed: usize, given: usize, entries: usize) -> bool {
    passed > given + given / 2 + entries
}

impl HotSpans {
    pub fn new(bytes_max: usize) -> Self {
        let [count, bytes, trims] = [const { AtomicUsize::new(0) }; 3];
        let bytes_max = AtomicUsize::new(bytes_max);
        HotSpans {
            spans: RwLock::default(),
            count,
            bytes,
            bytes_max,
            trims,
            hand: Mutex::default(),
            floor: AtomicU64::new(0),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// From now on they hold so much; what is too much goes before this returns.
    pub fn limit(&self, bytes_max: usize) {
        if self.bytes_max.swap(bytes_max, Ordering::Relaxed) <= bytes_max {
            return;
        }
        // The first turn may find that all were used lately.
        let mut idle = 0;
        while self.bytes() > bytes_max && idle < 2 {
            let before = self.len();
            self.evict(&mut self.spans.write(), &Bytes::new());
            idle = if self.len() < before { 0 } else { idle + 1 };
        }
    }

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A write is applied: the caller holds the layers for writing.
    pub fn put(&self, key: &[u8], version: &Version) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let spans = self.spans.read();
        let Some(listed) = at_or_below(&spans, key) else { return };
        let mut hot = listed.hot.write();
        if key >= &hot.end[..] {
            return;
        }
        if hot.rows.len() >= SPAN_ENTRIES_LIMIT && hot.rows.last_key().is_some_and(|last| last < key) {
            // Where a table grows at its end, the span does not go on with it for ever.
            hot.end = Bytes::copy_from_slice(key);
            return;
        }
        self.grow(listed, insert(&mut hot.rows, key, version.clone()));
        if version.value.is_none() {
            hot.dead += 1;
            // Nobody may scan here, who would have them forgotten.
            if hot.dead >= FORGET_UNREAD_MIN.max(hot.forget_at) {
                let freed = hot.forget(Timestamp::from_u64(self.floor.load(Ordering::Relaxed)));
                self.grow(listed, -(freed as isize));
            }
        }
    }

    /// A command of many writes is shown: the caller holds the layers for writing. Spans in which it changes much are given up, all in one hold of the
    /// list: who fills one meanwhile could join it with another that has the writes, and nobody would find it any more.
    pub fn put_whole(&self, whole: &Whole) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let (mut left, mut given_up) = (SPAN_ENTRIES_MAX, Vec::new());
        let mut spans = self.spans.write();
        let Some(ends) = whole.ends() else { return };
        let first = first_of(&spans, &after(&ends.start)).unwrap_or_else(|| ends.start.clone());
        for (start, listed) in spans.range::<Bytes, _>((Bound::Included(&first), Bound::Excluded(&ends.end))) {
            let mut hot = listed.hot.write();
            let within = whole.within(&(start.clone()..hot.end.clone()));
            if within.len() > left {
                given_up.push(start.clone());
                continue;
            }
            left -= within.len();
            let added = within.map(|number| {
                let (key, version) = whole.version(number);
                insert(&mut hot.rows, key, version)
            });
            let added = added.sum();
            self.grow(listed, added);
        }
        given_up.iter().for_each(|start| self.remove(&mut spans, start));
    }

    fn grow(&self, listed: &Listed, by: isize) {
        // Of a span that was given up meanwhile nothing is counted any more.
        let add = |n: usize| Some(n.saturating_add_signed(by));
        let before = listed.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).unwrap_or_default();
        match usize::try_from(by) {
            Ok(more) => self.bytes.fetch_add(more, Ordering::Relaxed),
            Err(_) => self.bytes.fetch_sub(before.min(by.unsigned_abs()), Ordering::Relaxed),
        };
    }

    /// Where a scan of `span` begins: up to `limit` live entries of a hot span, or how far it is to the next.
    pub fn ahead(&self, span: &Span, snapshot: Timestamp, reverse: bool, limit: usize) -> Ahead {
        if let Some(here) = self.here(span, snapshot, reverse, limit) {
            if here.looks_back(snapshot, reverse, limit) {
                return Ahead::Past(here.end(reverse));
            }
            let (found, end, dead) = read(&here, snapshot, reverse, limit);
            return Ahead::Hot { found, end, stale: here.stale(dead) };
        }
        Ahead::Cold(self.next(span, reverse))
    }

    /// The entries of a hot span in which a scan of `span` begins: enough for `limit` of them, if they are there. A version above the snapshot
    /// stands for one to be looked up.
    pub fn here(&self, span: &Span, snapshot: Timestamp, reverse: bool, limit: usize) -> Option<Here> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let spans = self.spans.read();
        let listed = match reverse {
            false => at_or_below(&spans, &span.start)?,
            true => spans.range::<Bytes, _>(..&span.end).next_back().map(|(_, listed)| listed)?,
        };
        let hot = listed.hot.read();
        let covers = if reverse { hot.end >= span.end } else { hot.end > span.start };
        if !covers || hot.loading || hot.since > snapshot {
            return None;
        }
        if !listed.used.load(Ordering::Relaxed) {
            listed.used.store(true, Ordering::Relaxed);
        }
        let first = if reverse { first_of(&spans, &span.end) } else { None };
        let part = first.unwrap_or_default().max(span.start.clone())..hot.end.clone().min(span.end.clone());
        let cut = hot.rows.cut(&part, reverse, CUT_LEAVES_MIN + limit / (LEAF_KEYS_MAX / 2));
        // Who writes need not wait while the rows are copied.
        Some(Here { cut, part, listed: listed.clone() })
    }

    /// Where the next hot span begins (ends, where it goes down), of one that is not in one. A span that this snapshot cannot use is passed as if it
    /// were not there, together with what follows it.
    pub fn next(&self, span: &Span, reverse: bool) -> Option<Bytes> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let spans = self.spans.read();
        if reverse {
            let before = spans.range::<Bytes, _>(..&span.end).next_back()?;
            let end = before.1.hot.read().end.clone();
            return (end > span.start && end < span.end).then_some(end);
        }
        let next = spans.range::<Bytes, _>((Bound::Excluded(&span.start), Bound::Excluded(&span.end))).next();
        next.map(|(start, _)| start.clone())
    }

    /// Forgets the deletions at or below `floor`, below which no snapshot is open.
    pub fn forget(&self, Stale(listed): &Stale, floor: Timestamp) {
        let freed = listed.hot.write().forget(floor);
        self.grow(listed, -(freed as isize));
    }

    /// Lists a span that will be filled; `None` where another one is in its way, or there is no room. One that is `kept` is only read, and has less
    /// room.
    pub fn begin(&self, span: &Span, kept: bool) -> Option<Filling<'_>> {
        if kept && !self.has_room() {
            return None;
        }
        let mut spans = self.spans.write();
        if spans.range::<Bytes, _>(&span.start..).next().is_some_and(|(start, _)| *start < span.end) {
            return None;
        }
        self.list(&mut spans, &span.start, span.end.clone(), kept)
    }

    /// As [`HotSpans::begin`], of one that is only read, and goes on up to the next one, or to `end`; `None`, too, where there is no room for such.
    pub fn begin_kept(&self, start: &Bytes, end: &Bytes) -> Option<Filling<'_>> {
        if !self.has_room() {
            return None;
        }
        let mut spans = self.spans.write();
        let next = spans.range::<Bytes, _>(start..).next().map(|(next, _)| next.clone());
        let end = next.map_or(end.clone(), |next| next.min(end.clone()));
        self.list(&mut spans, start, end, true)
    }

    /// Whether the span that begins (ends, where the scan goes down) at this key was only read; `None` if there is none.
    pub fn is_kept(&self, at: &Bytes, reverse: bool) -> Option<bool> {
        let spans = self.spans.read();
        let listed = match reverse {
            false => spans.get(at)?,
            true => spans.range::<Bytes, _>(..at).next_back()?.1,
        };
        Some(listed.kept)
    }

    /// Whether there is room for what is only read.
    pub fn has_room(&self) -> bool {
        self.bytes() < self.bytes_max() / 4 * KEPT_PART
    }

    /// The caller has looked up that none begins in between.
    fn list(
        &self,
        spans: &mut BTreeMap<Bytes, Arc<Listed>>,
        start: &Bytes,
        end: Bytes,
        kept: bool,
    ) -> Option<Filling<'_>> {
        let in_the_way = at_or_below(spans, start).is_some_and(|listed| listed.hot.read().end > *start);
        if self.bytes_max() == 0 || *start >= end || in_the_way {
            return None;
        }
        let listed = Arc::new(Listed {
            hot: RwLock::new(Hot { end, loading: true, ..Hot::default() }),
            bytes: AtomicUsize::new(0),
            used: AtomicBool::new(true),
            unread_looks: AtomicU32::new(0),
            kept,
        });
        self.grow(&listed, SPAN_OVERHEAD as isize);
        spans.insert(start.clone(), listed.clone());
        self.count.store(spans.len(), Ordering::Release);
        Some(Filling { all: self, start: start.clone(), listed, done: false })
    }

    /// Gives up all that lies in part in `from..to`, and what is being filled there: keys came, or went, past [`HotSpans::put`].
    pub fn give_up(&self, from: &[u8], to: &[u8]) {
        if self.count.load(Ordering::Acquire) == 0 || from >= to {
            return;
        }
        let mut spans = self.spans.write();
        let below = spans.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(from))).next_back();
        let below = below.filter(|(_, listed)| listed.hot.read().end[..] > *from).map(|(start, _)| start.clone());
        let within = spans.range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
        let gone: Vec<Bytes> = below.into_iter().chain(within.map(|(start, _)| start.clone())).collect();
        gone.iter().for_each(|start| self.remove(&mut spans, start));
    }

    /// The same of all that begins with these bytes.
    pub fn give_up_prefix(&self, prefix: [u8; 4]) {
        let end = end_of(prefix_of(&prefix)).unwrap_or_else(|| Bytes::from_static(&[0xff; 5]));
        self.give_up(&prefix, &end);
    }

    fn remove(&self, spans: &mut BTreeMap<Bytes, Arc<Listed>>, start: &Bytes) {
        if let Some(gone) = spans.remove(start) {
            self.bytes.fetch_sub(gone.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
            self.count.store(spans.len(), Ordering::Release);
        }
    }

    /// Gives up spans that nobody used lately, until what is left fits, or so many were looked at; each time further on in the order of keys.
    fn evict(&self, spans: &mut BTreeMap<Bytes, Arc<Listed>>, keep: &Bytes) {
        let (mut steps, bytes_max, mut hand) = (0, self.bytes_max(), self.hand.lock());
        while self.bytes() > bytes_max && spans.len() > usize::from(!keep.is_empty()) && steps < EVICT_STEPS_MAX {
            let (before, behind) = (spans.range::<Bytes, _>(..&*hand), spans.range::<Bytes, _>(&*hand..));
            let unused = behind.chain(before).find(|(start, listed)| {
                steps += 1;
                *start != keep && (!listed.used.swap(false, Ordering::Relaxed) || steps >= EVICT_STEPS_MAX)
            });
            let Some(start) = unused.map(|(start, _)| start.clone()) else { break };
            self.remove(spans, &start);
            *hand = start;
        }
    }
}

fn at_or_below<'a>(spans: &'a BTreeMap<Bytes, Arc<Listed>>, key: &[u8]) -> Option<&'a Arc<Listed>> {
    spans.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back().map(|(_, listed)| listed)
}

fn first_of(spans: &BTreeMap<Bytes, Arc<Listed>>, end: &Bytes) -> Option<Bytes> {
    spans.range::<Bytes, _>(..end).next_back().map(|(start, _)| start.clone())
}

/// Puts a version unless a newer one is there; gives what that adds in bytes.
fn insert(rows: &mut Leaves<Version>, key: &[u8], version: Version) -> isize {
    let mut added = cost(key, &version) as isize;
    let replace = |old: &mut Version, version: Version| match old.ts > version.ts {
        true => added = 0,
        false => added -= cost(key, &std::mem::replace(old, version)) as isize,
    };
    rows.put(key, version, replace, |version| version);
    added
}

/// Entries of a part of a span that the snapshot may see, the end of what was read, and how many deletions were passed.
fn read(here: &Here, snapshot: Timestamp, reverse: bool, limit: usize) -> (Vec<(Bytes, Version)>, Bytes, usize) {
    let (mut found, mut dead, mut copies) = (Vec::new(), 0, Copies::of(limit));
    let all = here.cut.visit(&here.part, reverse, &mut |key, version| {
        if version.value.is_none() && version.ts <= snapshot {
            dead += 1;
            return ControlFlow::Continue(());
        }
        found.push(copies.take(key, version));
        if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let end = match found.last() {
        Some((last, _)) if all.is_break() && reverse => last.clone(),
        Some((last, _)) if all.is_break() => after(last),
        _ => here.end(reverse),
    };
    (found, end, dead)
}

/// A span that is listed, and takes in writes, but cannot be read yet.
pub(super) struct Filling<'a> {
    all: &'a HotSpans,
    start: Bytes,
    listed: Arc<Listed>,
    done: bool,
}

impl Filling<'_> {
    /// Up to where it was listed.
    pub fn end(&self) -> Bytes {
        self.listed.hot.read().end.clone()
    }

    /// Takes in all newest versions of the span's keys, read after it was listed; deletions at or below `floor` are left out. It ends where `end`
    /// says, if it does: beyond, nothing was read.
    pub fn fill(mut self, entries: impl Iterator<Item = (Bytes, Version)>, end: Option<Bytes>, floor: Timestamp) {
        let mut spans = self.all.spans.write();
        self.done = true;
        if !spans.get(&self.start).is_some_and(|listed| Arc::ptr_eq(listed, &self.listed)) {
            return;
        }
        {
            let mut hot = self.listed.hot.write();
            let mut added = 0;
            if let Some(end) = end.filter(|end| *end < hot.end) {
                // Written meanwhile.
                hot.rows.retain(|key, version| {
                    let stays = key < &end[..];
                    added -= if stays { 0 } else { cost(key, version) as isize };
                    stays
                });
                hot.end = end;
            }
            // A write may have ended it since.
            let end = hot.end.clone();
            for (key, version) in entries.take_while(|(key, _)| *key < end) {
                if version.value.is_none() && version.ts <= floor {
                    if floor < Timestamp::MAX {
                        hot.since = hot.since.max(version.ts);
                    }
                } else {
                    added += insert(&mut hot.rows, &key, version);
                }
            }
            hot.loading = false;
            self.all.grow(&self.listed, added);
        }
        let mut start = self.start.clone();
        let before = spans.range::<Bytes, _>(..&start).next_back().map(|(start, _)| start.clone());
        if let Some(before) = before
            && self.all.join(&mut spans, &before, &start)
        {
            start = before;
        }
        let end = self.listed_end(&spans, &start);
        if let Some(end) = end.filter(|end| spans.contains_key(end)) {
            self.all.join(&mut spans, &start, &end);
        }
        self.all.evict(&mut spans, &start);
    }

    fn listed_end(&self, spans: &BTreeMap<Bytes, Arc<Listed>>, start: &Bytes) -> Option<Bytes> {
        spans.get(start).map(|listed| listed.hot.read().end.clone())
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        if !self.done {
            let mut spans = self.all.spans.write();
            if spans.get(&self.start).is_some_and(|listed| Arc::ptr_eq(listed, &self.listed)) {
                self.all.remove(&mut spans, &self.start);
            }
        }
    }
}

impl HotSpans {
    /// Makes one span of two that meet, where that is not too large; nobody writes or reads meanwhile.
    fn join(&self, spans: &mut BTreeMap<Bytes, Arc<Listed>>, first: &Bytes, second: &Bytes) -> bool {
        let (Some(a), Some(b)) = (spans.get(first).cloned(), spans.get(second).cloned()) else { return false };
        let (mut left, mut right) = (a.hot.write(), b.hot.write());
        // What was only read goes some day, and takes nothing with it.
        let alike = a.kept == b.kept;
        let fits = alike && left.rows.len() + right.rows.len() <= SPAN_ENTRIES_MAX;
        if left.end != *second || left.loading || right.loading || !fits {
            return false;
        }
        left.end = right.end.clone();
        left.since = left.since.max(right.since);
        left.rows.append(&mut right.rows);
        a.used.fetch_or(b.used.load(Ordering::Relaxed), Ordering::Relaxed);
        a.bytes.fetch_add(b.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        drop((left, right));
        self.grow(&a, -(SPAN_OVERHEAD as isize));
        spans.remove(second);
        self.count.store(spans.len(), Ordering::Release);
        true
    }

    /// Gives up the spans that writes made too large, and those that nobody reads any more; and joins those that became small. Who writes waits for
    /// what is changed, a few at a time, and not for what is looked at.
    pub fn trim(&self, floor: impl FnOnce() -> Timestamp) {
        if self.count.load(Ordering::Acquire) == 0
            || !self.trims.fetch_add(1, Ordering::Relaxed).is_multiple_of(TRIM_EVERY)
        {
            return;
        }
        self.floor.store(floor().as_u64(), Ordering::Relaxed);
        let unread = |listed: &Arc<Listed>| {
            let looks = match listed.used.swap(false, Ordering::Relaxed) {
                true => 0,
                false => listed.unread_looks.load(Ordering::Relaxed).saturating_add(1),
            };
            listed.unread_looks.store(looks, Ordering::Relaxed);
            looks > UNREAD_LOOKS_MAX && listed.kept
        };
        let (mut gone, mut small) = (Vec::new(), Vec::new());
        let mut last: Option<(Bytes, usize, Bytes)> = None;
        let mut from = Some(Bytes::new());
        while let Some(at) = from.take() {
            // Who wants to change the list holds back all who read it.
            let spans = self.spans.read();
            let mut some = spans.range::<Bytes, _>(&at..);
            for (start, listed) in some.by_ref().take(LOOKED_AT_ONCE) {
                let (rows, end) = {
                    let hot = listed.hot.read();
                    (hot.rows.len(), hot.end.clone())
                };
                if unread(listed) || rows > SPAN_ENTRIES_LIMIT {
                    gone.push(start.clone());
                    continue;
                }
                let meets =
                    |(_, before, end): &(Bytes, usize, Bytes)| end == start && before + rows <= SPAN_ENTRIES_MAX;
                if let Some((before, ..)) = last.as_ref().filter(|last| meets(last)) {
                    small.push((before.clone(), start.clone()));
                }
                last = Some((start.clone(), rows, end));
            }
            from = some.next().map(|(start, _)| start.clone());
        }
        for some in gone.chunks(TRIM_AT_ONCE) {
            let mut spans = self.spans.write();
            some.iter().for_each(|start| self.remove(&mut spans, start));
        }
        // Of several in a row those that were joined are looked up no more; the next look finds what is left.
        for some in small.chunks(TRIM_AT_ONCE) {
            let mut spans = self.spans.write();
            for (first, second) in some {
                self.join(&mut spans, first, second);
            }
        }
        self.evict(&mut self.spans.write(), &Bytes::new());
    }
}

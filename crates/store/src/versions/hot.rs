//! Hot spans: the present in memory and in order, where reading it from its layers costs more than it gives.
//!
//! Problem: a key that was deleted, or moved to another place of an index, leaves a deletion in memory and one in the engine's present
//! until nobody can look behind it. A scan steps over all of them: the head of a queue, or an index on a column that is updated often,
//! would become slower with every write. And of a row that is updated again and again each layer holds one version, of which a scan
//! needs one.
//!
//! Idea: a scan that passed much more than it found has the span that it covered kept as what it is now: its live keys in order. From
//! then on every write is made here, too, and scans read here only. Spans grow together, so that of a thousand deleted keys in front of
//! the first live one nothing is left. Memory is spent only where garbage is.
//!
//! Invariants:
//! 1. A span holds the newest version of each of its keys, deletions too, but for keys that were deleted at or below `since`: of those
//!    nothing. So a snapshot at or above `since` finds here all that it may see: an entry at or below it is what it sees, one above it
//!    says that the other layers must be asked about this key.
//! 2. Entries come in two ways: by [`HotSpans::put`], which the store calls while it holds its layers for writing, and by the one
//!    reading that fills the span after it was listed. What is newer stays.
//! 3. Spans do not overlap.
//!
//! Locks: the store's layers, then the list of spans, then one span; never the other way.
//!
//! Deletions are forgotten (and `since` rises) only below every open snapshot, so that no transaction under way is sent the long way.

use super::copies::Copies;
use super::leaves::{Cut, LEAF_KEYS_MAX, Leaves};
use super::whole::Whole;
use super::{Span, Version};
use bytes::Bytes;
use clock::Timestamp;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Entries of a span: two that meet grow together up to here. One that grows far beyond by writes is given up.
const SPAN_ENTRIES_MAX: usize = 2048;
const SPAN_ENTRIES_LIMIT: usize = 8 * SPAN_ENTRIES_MAX;
/// Deletions that a scan passes before it has them forgotten.
const FORGET_MIN: usize = 32;
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

#[derive(Default)]
struct Hot {
    end: Bytes,
    since: Timestamp,
    rows: Leaves<Version>,
    /// Its first reading is under way.
    loading: bool,
}

struct Listed {
    hot: RwLock<Hot>,
    bytes: AtomicUsize,
    used: AtomicBool,
}

/// All hot spans, by their first key.
pub(super) struct HotSpans {
    spans: RwLock<BTreeMap<Bytes, Arc<Listed>>>,
    /// How many there are: most stores have none, and a write should not ask further.
    count: AtomicUsize,
    bytes: AtomicUsize,
    bytes_max: usize,
    trims: AtomicUsize,
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
        HotSpans { spans: RwLock::default(), count, bytes, bytes_max, trims }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
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
        self.grow(listed, insert(&mut hot.rows, key, version.clone()));
    }

    /// A command of many writes is shown: the caller holds the layers for writing. Spans in which it changes much are given up.
    pub fn put_whole(&self, whole: &Whole) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let (mut left, mut given_up) = (SPAN_ENTRIES_MAX, Vec::new());
        let spans = self.spans.read();
        for (start, listed) in spans.iter() {
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
        drop(spans);
        if !given_up.is_empty() {
            let mut spans = self.spans.write();
            given_up.iter().for_each(|start| self.remove(&mut spans, start));
        }
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
        if self.count.load(Ordering::Acquire) == 0 {
            return Ahead::Cold(None);
        }
        let spans = self.spans.read();
        let below = match reverse {
            false => at_or_below(&spans, &span.start),
            true => spans.range::<Bytes, _>(..&span.end).next_back().map(|(_, listed)| listed),
        };
        if let Some(listed) = below {
            let hot = listed.hot.read();
            let covers = if reverse { hot.end >= span.end } else { hot.end > span.start };
            if covers && !hot.loading && hot.since <= snapshot {
                listed.used.store(true, Ordering::Relaxed);
                let listed = listed.clone();
                let first = if reverse { first_of(&spans, &span.end) } else { None };
                let part = first.unwrap_or_default().max(span.start.clone())..hot.end.clone().min(span.end.clone());
                let cut = hot.rows.cut(&part, reverse, CUT_LEAVES_MIN + limit / (LEAF_KEYS_MAX / 2));
                // Who writes need not wait while the rows are copied.
                drop(hot);
                drop(spans);
                let (found, end, dead) = read(&cut, &part, snapshot, reverse, limit);
                let stale = (dead >= FORGET_MIN).then_some(Stale(listed));
                return Ahead::Hot { found, end, stale };
            }
        }
        // A span that this snapshot cannot use is passed as if it were not there, together with what follows it.
        let next = match reverse {
            false => spans.range::<Bytes, _>((Bound::Excluded(&span.start), Bound::Excluded(&span.end))).next(),
            true => None,
        };
        let down = || {
            let before = spans.range::<Bytes, _>(..&span.end).next_back()?;
            let end = before.1.hot.read().end.clone();
            (end > span.start && end < span.end).then_some(end)
        };
        Ahead::Cold(if reverse { down() } else { next.map(|(start, _)| start.clone()) })
    }

    /// Forgets the deletions at or below `floor`, below which no snapshot is open.
    pub fn forget(&self, Stale(listed): &Stale, floor: Timestamp) {
        let mut hot = listed.hot.write();
        let (mut freed, mut since) = (0, hot.since);
        hot.rows.retain(|key, version| {
            let stays = version.value.is_some() || version.ts > floor;
            if !stays {
                freed += cost(key, version);
                // Without bound only under a negative control, which wants this to be missing.
                since = if floor == Timestamp::MAX { since } else { since.max(version.ts) };
            }
            stays
        });
        hot.since = since;
        self.grow(listed, -(freed as isize));
    }

    /// Lists a span that will be filled; `None` where another one is in its way, or there is no room.
    pub fn begin(&self, span: &Span) -> Option<Filling<'_>> {
        if self.bytes_max == 0 {
            return None;
        }
        let mut spans = self.spans.write();
        let below = spans.range::<Bytes, _>(..&span.end).next_back();
        if below.is_some_and(|(_, listed)| listed.hot.read().end > span.start) {
            return None;
        }
        let hot = Hot { end: span.end.clone(), loading: true, ..Hot::default() };
        let listed =
            Arc::new(Listed { hot: RwLock::new(hot), bytes: AtomicUsize::new(0), used: AtomicBool::new(true) });
        self.grow(&listed, SPAN_OVERHEAD as isize);
        spans.insert(span.start.clone(), listed.clone());
        self.count.store(spans.len(), Ordering::Release);
        Some(Filling { all: self, start: span.start.clone(), listed, done: false })
    }

    fn remove(&self, spans: &mut BTreeMap<Bytes, Arc<Listed>>, start: &Bytes) {
        if let Some(gone) = spans.remove(start) {
            self.bytes.fetch_sub(gone.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
            self.count.store(spans.len(), Ordering::Release);
        }
    }

    /// Gives up spans that nobody used lately, until what is left fits; and those that outgrew their bound.
    fn evict(&self, spans: &mut BTreeMap<Bytes, Arc<Listed>>, keep: &Bytes) {
        let mut steps = 0;
        while self.bytes() > self.bytes_max && spans.len() > 1 && steps < EVICT_STEPS_MAX {
            let unused = spans.iter().find(|(start, listed)| {
                steps += 1;
                *start != keep && (!listed.used.swap(false, Ordering::Relaxed) || steps >= EVICT_STEPS_MAX)
            });
            let Some(start) = unused.map(|(start, _)| start.clone()) else { break };
            self.remove(spans, &start);
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
fn read(
    cut: &Cut<Version>,
    part: &Span,
    snapshot: Timestamp,
    reverse: bool,
    limit: usize,
) -> (Vec<(Bytes, Version)>, Bytes, usize) {
    let (mut found, mut dead, mut copies) = (Vec::new(), 0, Copies::of(limit));
    let all = cut.visit(part, reverse, &mut |key, version| {
        if version.value.is_none() && version.ts <= snapshot {
            dead += 1;
            return ControlFlow::Continue(());
        }
        found.push(copies.take(key, version));
        if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let end = match (found.last(), &cut.rest) {
        (Some((last, _)), _) if all.is_break() && reverse => last.clone(),
        (Some((last, _)), _) if all.is_break() => super::scan::after(last),
        (_, Some(rest)) => Bytes::copy_from_slice(rest),
        (_, None) if reverse => part.start.clone(),
        (_, None) => part.end.clone(),
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
    /// Takes in all newest versions of the span's keys, read after it was listed; deletions at or below `floor` are left out.
    pub fn fill(mut self, entries: impl Iterator<Item = (Bytes, Version)>, floor: Timestamp) {
        let mut spans = self.all.spans.write();
        self.done = true;
        if !spans.get(&self.start).is_some_and(|listed| Arc::ptr_eq(listed, &self.listed)) {
            return;
        }
        {
            let mut hot = self.listed.hot.write();
            let mut added = 0;
            for (key, version) in entries {
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
        let fits = left.rows.len() + right.rows.len() <= SPAN_ENTRIES_MAX;
        if left.end != *second || left.loading || right.loading || !fits {
            return false;
        }
        left.end = right.end.clone();
        left.since = left.since.max(right.since);
        left.rows.append(&mut right.rows);
        a.bytes.fetch_add(b.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        drop((left, right));
        self.grow(&a, -(SPAN_OVERHEAD as isize));
        spans.remove(second);
        self.count.store(spans.len(), Ordering::Release);
        true
    }

    /// Gives up the spans that writes made too large, and joins those that became small.
    pub fn trim(&self) {
        if self.count.load(Ordering::Acquire) == 0
            || !self.trims.fetch_add(1, Ordering::Relaxed).is_multiple_of(TRIM_EVERY)
        {
            return;
        }
        let mut spans = self.spans.write();
        let large = |listed: &Arc<Listed>| listed.hot.read().rows.len() > SPAN_ENTRIES_LIMIT;
        let starts: Vec<Bytes> = spans.iter().filter(|(_, s)| large(s)).map(|(start, _)| start.clone()).collect();
        for start in starts {
            self.remove(&mut spans, &start);
        }
        let mut first = spans.keys().next().cloned();
        while let Some(at) = first {
            let next =
                spans.range::<Bytes, _>((Bound::Excluded(&at), Bound::Unbounded)).next().map(|(key, _)| key.clone());
            let joined = next.as_ref().is_some_and(|next| self.join(&mut spans, &at, next));
            first = if joined { Some(at) } else { next };
        }
        self.evict(&mut spans, &Bytes::new());
    }
}

//! Ordered reads: memory and the engine's present merged, one bounded chunk at a time.
//!
//! A chunk first takes up to `limit` live keys from each layer, then walks the present over the same stretch ([`Join`]). Where a layer had
//! more, the chunk ends at the first such end (the *horizon*), since beyond it that source was not looked at. The past is asked only
//! about keys whose present version is newer than the snapshot.

use super::hot::{self, Ahead};
use super::join::{self, Join};
use super::overlay::{Apart, Look, SEEN_KEYS_MAX, Seen, Sight};
use super::packed::Packed;
use super::prefixes::prefix_of;
use super::{Layers, Sabotage, Span, Version, Versions, damaged_key, ranges};
use crate::engine::Tree;
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use smallvec::SmallVec;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows in one chunk at most, whatever the caller asks for.
pub const CHUNK_ROWS_MAX: usize = 4096;
/// A chunk ends once its keys and values have this many bytes.
pub const CHUNK_BYTES_MAX: usize = 4 << 20;
/// A chunk ends once it has passed this many entries of the engine, visible or not.
pub const CHUNK_STEPS_MAX: usize = 65_536;

/// Who asks for so many rows at once reads many. Old versions beside them cost it no more than there are layers; to keep them in order
/// beside would cost as much again, for spans that the next chunk's crowd out.
const LARGE_ROWS: usize = 1024;
/// So many times the rows that it gives such a chunk must have passed to be worth a hot span: they are deletions then.
pub(super) const LARGE_GARBAGE: usize = 8;
/// So many entries passed for each that is given are garbage; fewer are rows that stand in several places, since they were updated. What is kept of
/// those goes when nobody reads it ([`super::ranges`]).
const GARBAGE: usize = 4;
/// A stretch in front of a hot span with at most this many entries becomes hot, too.
const GAP_ENTRIES_MAX: usize = 512;
/// Hot and cold stretches that one chunk goes through.
const STRETCHES_MAX: usize = 64;
/// Only a scan of the present, not one that looks back further than this, makes a span hot.
const PRESENT_US: u64 = 10_000_000;
/// Deletions younger than this are not forgotten in hot spans: a snapshot that is opened now may lie below them.
const FORGET_AFTER_US: u64 = 100_000;
/// Deletions older than this are forgotten in hot spans, whatever snapshot is open.
const FORGET_LATEST_US: u64 = 2_000_000;

/// Rows of a span at a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Keys, commit timestamps and values, in the order asked for; deleted keys are left out.
    pub rows: Vec<(Bytes, Timestamp, Bytes)>,
    /// What remains to be asked for; `None` at the end.
    pub rest: Option<Span>,
}

impl<E: Engine> Versions<E> {
    /// Up to `limit` rows of `span` at `snapshot`, highest key first where `reverse`. A chunk may end early (size), even
    /// without a row: ask for [`Scan::rest`] until it is `None`.
    ///
    /// # Errors
    /// What the engine says; [`StoreError::Corrupt`] on an entry that is no version; [`StoreError::Collected`] where the snapshot is too
    /// old for a table of the span.
    pub fn scan(&self, span: &Span, snapshot: Timestamp, reverse: bool, limit: usize) -> Result<Scan, StoreError> {
        self.readable_in(span, snapshot)?;
        let limit = limit.clamp(1, CHUNK_ROWS_MAX);
        let (mut rest, mut rows, mut bytes) = (span.clone(), Vec::<(Bytes, Timestamp, Bytes)>::new(), 0);
        for _ in 0..STRETCHES_MAX {
            if rest.start >= rest.end || rows.len() >= limit || bytes >= CHUNK_BYTES_MAX {
                break;
            }
            let whole = rest.clone();
            let left = limit - rows.len();
            let mut ended = false;
            match self.hot.ahead(&rest, snapshot, reverse, left) {
                Ahead::Hot { found, end, stale } => {
                    if let Some(stale) = stale {
                        self.hot.forget(&stale, self.forgettable());
                    }
                    for (key, mut version) in found {
                        if version.ts > snapshot {
                            let Some(older) = self.version_at(&key, snapshot)? else { continue };
                            version = older;
                        }
                        if let Some(value) = version.value {
                            bytes += key.len() + value.len();
                            rows.push((key, version.ts, value));
                        }
                    }
                    rest = if reverse { rest.start..end } else { end..rest.end };
                }
                Ahead::Past(end) => {
                    let stretch = if reverse { end..whole.end.clone() } else { whole.start.clone()..end };
                    let chunk = self.scan_cold(&stretch, snapshot, reverse, left)?;
                    ended = chunk.rest.is_some();
                    let covered = chunk.covered(&stretch, reverse);
                    bytes += chunk.bytes;
                    rows.extend(chunk.rows);
                    rest = if reverse { whole.start..covered.start } else { covered.end..whole.end };
                }
                Ahead::Cold(next) => {
                    let stretch = match &next {
                        Some(end) if reverse => end.clone()..whole.end.clone(),
                        Some(start) => whole.start.clone()..start.clone(),
                        None => whole.clone(),
                    };
                    let chunk = self.scan_cold(&stretch, snapshot, reverse, left)?;
                    ended = chunk.rest.is_some();
                    let covered = chunk.covered(&stretch, reverse);
                    // A gap between hot spans is closed, too: each would be a search of its own in the engine, for ever.
                    let gap = next.filter(|_| !ended && chunk.passed <= GAP_ENTRIES_MAX);
                    let (passed, given) = (chunk.passed, chunk.rows.len());
                    let large = limit >= LARGE_ROWS && passed < LARGE_GARBAGE * given;
                    let costly = !large && hot::is_costly(passed, given, self.config.hot_after);
                    if costly && (!self.config.keeps_ranges || passed > GARBAGE * given + self.config.hot_after) {
                        self.warm(&covered, snapshot, false)?;
                    } else if let Some(kept) = gap.and_then(|at| self.hot.is_kept(&at, reverse)) {
                        self.warm(&covered, snapshot, kept)?;
                    } else if chunk.asked && self.is_kept(passed, limit) {
                        self.keep_range(&covered, snapshot)?;
                    }
                    bytes += chunk.bytes;
                    match rows.is_empty() {
                        true => rows = chunk.rows,
                        false => rows.extend(chunk.rows),
                    }
                    rest = if reverse { whole.start..covered.start } else { covered.end..whole.end };
                }
            }
            if ended {
                break;
            }
        }
        Ok(Scan { rows, rest: (rest.start < rest.end).then_some(rest) })
    }

    /// Below this nothing deleted needs to be remembered for snapshots that are open now, or will be.
    pub(super) fn forgettable(&self) -> Timestamp {
        if self.config.sabotage == Some(Sabotage::HotForgets) {
            return Timestamp::MAX;
        }
        let now = self.layers.read().recent.greatest();
        let ago = |us| Timestamp::from_u64(now.as_u64().saturating_sub(Timestamp::new(us, 0).as_u64()));
        // One that is held for long is sent the long way, or it would keep all deletions for everybody.
        let oldest = self.snapshots.oldest().unwrap_or(Timestamp::MAX);
        ago(FORGET_AFTER_US).min(oldest).max(ago(FORGET_LATEST_US))
    }

    /// Whether who read at this snapshot makes spans hot: then below what deletions are left out.
    pub(super) fn warms_at(&self, snapshot: Timestamp) -> Option<Timestamp> {
        let now = self.layers.read().recent.greatest();
        let looks_back = snapshot.as_u64().saturating_add(Timestamp::new(PRESENT_US, 0).as_u64()) < now.as_u64();
        (!looks_back && !self.is_cold()).then(|| self.forgettable())
    }

    /// Makes a span hot that a scan found costly, or that lies beside one that is `kept` because it was read: reads all that it holds now.
    pub(super) fn warm(&self, span: &Span, snapshot: Timestamp, kept: bool) -> Result<(), StoreError> {
        let Some(floor) = self.warms_at(snapshot) else { return Ok(()) };
        let Some(filling) = self.hot.begin(span, kept) else { return Ok(()) };
        let (memory, cut, _) = self.memory(span, Timestamp::MAX, false, usize::MAX);
        if cut.is_some() {
            return Ok(());
        }
        let (mut below, mut steps, mut whole) = (Vec::new(), 0, true);
        if self.engine_may_hold_some(span)? {
            let (from, to) = (keys::present(&span.start), keys::present(&span.end));
            self.engine.scan(Tree::Present, &from, &to, false, &mut |physical, entry| {
                steps += 1;
                match keys::present_entry(physical, entry) {
                    Ok((key, present)) if steps <= CHUNK_STEPS_MAX => {
                        if memory.binary_search_by(|seen| seen.key.cmp(&key)).is_err() {
                            below.push((key, Version { ts: present.ts, value: present.value }));
                        }
                        ControlFlow::Continue(())
                    }
                    // Damaged, or too much: whoever reads it says so.
                    _ => {
                        whole = false;
                        ControlFlow::Break(())
                    }
                }
            })?;
        }
        if whole {
            filling.fill(ranges::in_order(memory, below), None, floor);
            self.share_cache();
        }
        Ok(())
    }

    /// As [`Versions::scan`], of a span that is not hot.
    fn scan_cold(&self, span: &Span, snapshot: Timestamp, reverse: bool, limit: usize) -> Result<Cold, StoreError> {
        if span.start >= span.end {
            return Ok(Cold::default());
        }
        let (memory, horizon, seen) = self.memory(span, snapshot, reverse, limit);
        let looked_at = match &horizon {
            None => span.clone(),
            Some(at) if reverse => at.clone()..span.end.clone(),
            Some(at) => span.start.clone()..at.clone(),
        };
        let mut join = Join::new(memory, snapshot, reverse, limit);
        let asked = self.engine_may_hold_some(&looked_at)?;
        if asked {
            self.walk(&looked_at, reverse, &mut join)?;
        }
        join.rest_of_memory();
        // The walk stayed within the horizon of memory: where it was cut, that is nearer.
        let end = join.end.take().map(|last| if reverse { last } else { after(&last) }).or(horizon);
        let rest = end.map(|at| if reverse { span.start.clone()..at } else { at..span.end.clone() });
        let passed = seen + join.steps;
        let (rows, bytes) = join.rows(|key, ts| {
            let past = self.past_at(key, snapshot, ts)?;
            Ok::<_, StoreError>(past.map(|past| Version { ts: past.begin, value: Some(past.value) }))
        })?;
        Ok(Cold { rows, bytes, rest: rest.filter(|r| r.start < r.end), passed, asked })
    }

    /// What the layers hold of a span, the newest of each key, where what is beyond was not looked at (the *horizon*: where the
    /// rest begins, or ends where the scan goes down), and how much was looked at.
    pub(super) fn memory(
        &self,
        span: &Span,
        snapshot: Timestamp,
        reverse: bool,
        limit: usize,
    ) -> (Vec<Seen>, Option<Bytes>, usize) {
        let looks = self.looks(span, snapshot, reverse, limit, || Apart::of(limit));
        let horizon = horizon(&looks, reverse);
        let looked_at = looks.iter().map(|look| look.sight.keys()).sum();
        let mut merged = Vec::new();
        for look in looks {
            merged = join::newest(merged, look.sight.seen, reverse);
        }
        if let Some(horizon) = &horizon {
            merged.retain(|seen| if reverse { seen.key >= *horizon } else { seen.key < *horizon });
        }
        (merged, horizon, looked_at)
    }

    /// The same upwards, in one piece.
    pub(super) fn packed_memory(
        &self,
        span: &Span,
        snapshot: Timestamp,
        limit: usize,
    ) -> (Packed, Option<Bytes>, usize) {
        let looks = self.looks(span, snapshot, false, limit, || Packed::of(limit));
        let horizon = horizon(&looks, false);
        let looked_at = looks.iter().map(|look| look.sight.keys()).sum();
        let mut merged = Packed::default();
        for look in looks {
            merged = Packed::newest(merged, look.sight);
        }
        if let Some(horizon) = &horizon {
            merged.end_at(horizon);
        }
        (merged, horizon, looked_at)
    }

    /// A look into each layer, the newest first, and into commands that are shown: all as they were at one moment. Were the list another
    /// moment's, what it hid could have gone to the engine in between, and what is seen of memory hides what the engine has.
    fn looks<S: Sight>(
        &self,
        span: &Span,
        snapshot: Timestamp,
        reverse: bool,
        limit: usize,
        sight: impl Fn() -> S,
    ) -> SmallVec<[Look<S>; 1]> {
        let too_early = (self.config.sabotage == Some(Sabotage::ScansListFirst)).then(|| {
            let listed = self.wholes.all();
            seam::pass();
            listed
        });
        let mut look = Look::new(snapshot, limit, sight());
        let (mut cut, frozen, freezes, shown) = {
            let layers: &Layers = &self.layers.read();
            let cut = layers.active.cut(span, reverse, look.wanted());
            let shown = too_early.unwrap_or_else(|| self.wholes.all());
            (cut, layers.frozen.iter().rev().map(Arc::clone).collect::<Vec<_>>(), layers.freezes, shown)
        };
        seam::pass();
        let mut part = span.clone();
        // Each round looks at twice as many leaves as the one before, so a span of deletions takes few.
        let mut keys = look.wanted();
        while cut.visit(&part, reverse, &mut |key, chain| look.meet(key, chain)).is_continue()
            && let Some(at) = cut.rest.take()
        {
            let at = Bytes::copy_from_slice(&at);
            keys = (2 * keys).min(SEEN_KEYS_MAX);
            let layers = self.layers.read();
            if layers.freezes != freezes {
                // The rest stands somewhere else by now.
                look.rest = Some(at);
                break;
            }
            part = if reverse { part.start..at } else { at..part.end };
            cut = layers.active.cut(&part, reverse, keys);
        }
        let mut looks = SmallVec::from_buf([look]);
        for frozen in &frozen {
            let mut look = Look::new(snapshot, limit, sight());
            frozen.layer.look(span, reverse, &mut look);
            looks.push(look);
        }
        for whole in shown.iter().filter(|whole| whole.ts <= snapshot) {
            let mut look = Look::new(snapshot, limit, sight());
            whole.look(span, reverse, &mut look);
            looks.push(look);
        }
        looks
    }

    /// Whether the engine may hold a key of a span: known for spans within one prefix.
    pub(super) fn engine_may_hold_some(&self, span: &Span) -> Result<bool, StoreError> {
        let prefix = prefix_of(&span.start);
        let last = if span.end.len() <= 4 { prefix_of(&span.end).saturating_sub(1) } else { prefix_of(&span.end) };
        if last != prefix {
            return Ok(true);
        }
        self.bounds_overlap(span)
    }

    /// Walks the present over a span.
    fn walk(&self, span: &Span, reverse: bool, join: &mut Join) -> Result<(), StoreError> {
        let mut damaged = None;
        let (from, to) = (keys::present(&span.start), keys::present(&span.end));
        self.engine.scan(Tree::Present, &from, &to, reverse, &mut |physical, entry| match keys::present_entry(
            physical, entry,
        ) {
            Ok((key, present)) => join.meet(key, present),
            Err(physical) => {
                damaged = Some(physical);
                ControlFlow::Break(())
            }
        })?;
        match damaged {
            Some(physical) => Err(damaged_key(&physical)),
            None => Ok(()),
        }
    }
}

/// The nearest end of what was looked at.
fn horizon<S: Sight>(looks: &[Look<S>], reverse: bool) -> Option<Bytes> {
    let ends = looks.iter().filter_map(|look| {
        let last = look.sight.last_key().filter(|_| look.more);
        last.map(|last| if reverse { Bytes::copy_from_slice(last) } else { after(last) }).or_else(|| look.rest.clone())
    });
    if reverse { ends.max() } else { ends.min() }
}

/// A chunk of a span that is not hot.
#[derive(Default)]
struct Cold {
    rows: Vec<(Bytes, Timestamp, Bytes)>,
    /// Of the rows.
    bytes: usize,
    rest: Option<Span>,
    /// Entries that were passed, visible or not.
    passed: usize,
    /// The engine was asked.
    asked: bool,
}

impl Cold {
    /// What was looked at of the stretch that was asked for.
    fn covered(&self, stretch: &Span, reverse: bool) -> Span {
        match (&self.rest, reverse) {
            (Some(more), false) => stretch.start.clone()..more.start.clone(),
            (Some(more), true) => more.end.clone()..stretch.end.clone(),
            (None, _) => stretch.clone(),
        }
    }
}

/// The least key above `key`.
pub(super) fn after(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

/// Where a test steps in: right after a scan learned what is listed.
#[cfg(not(test))]
mod seam {
    pub fn pass() {}
}

#[cfg(test)]
mod seam {
    use std::cell::RefCell;

    thread_local! {
        static STEP: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    }

    /// The next scan of this thread does that.
    pub fn set(step: impl FnOnce() + 'static) {
        STEP.set(Some(Box::new(step)));
    }
    pub fn pass() {
        if let Some(step) = STEP.take() {
            step();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryEngine, VersionsConfig};

    /// A row that a large command wrote and a small one deleted, both in memory. What a scan and the next ones give, if all goes to the engine in
    /// the midst of the first look into memory. `warmed`: that look fills a hot span.
    fn rows_while_all_is_flushed(sabotage: Option<Sabotage>, warmed: bool, reverse: bool) -> [usize; 2] {
        let ts = |n: u64| Timestamp::new(1_000_000 + n, 0);
        let config = VersionsConfig { hot_after: 0, sabotage, ..VersionsConfig::default() };
        let versions = Arc::new(Versions::open(MemoryEngine::new(), config).unwrap());
        let key = Bytes::from_static(&[0, 0, 0, 7, 1]);
        let span = Bytes::from_static(&[0, 0, 0, 7])..Bytes::from_static(&[0, 0, 0, 8]);
        versions.show(ts(1), Arc::new(vec![(key.clone(), Some(Bytes::from_static(b"gone")))]));
        versions.apply(ts(2), &[(key, None)]);
        let flushed = versions.clone();
        seam::set(move || {
            assert!(flushed.freeze(2, Bytes::new()) && flushed.flush().unwrap());
        });
        if warmed {
            versions.warm(&span, ts(2), false).unwrap();
            assert_eq!(versions.hot_spans(), 1);
        }
        let rows = || versions.scan(&span, ts(2), reverse, 10).unwrap().rows.len();
        let rows = [rows(), rows()];
        assert_eq!(versions.flushed_position(), 2, "it stepped in");
        rows
    }

    /// What is written while a range is read, to be kept, is in it: the span is listed before memory is looked at.
    #[test]
    fn what_is_written_while_a_range_is_read_is_kept_with_it() {
        let ts = |n: u64| Timestamp::new(1_000_000 + n, 0);
        let versions = Arc::new(Versions::open(MemoryEngine::new(), VersionsConfig::default()).unwrap());
        let key = |n: u8| Bytes::from(vec![0, 0, 0, 7, n]);
        let value = || Some(Bytes::from_static(b"v"));
        versions.apply(ts(1), &[(key(1), value()), (key(9), value())]);
        assert!(versions.freeze(1, Bytes::new()) && versions.flush().unwrap());
        let writer = versions.clone();
        seam::set(move || writer.apply(ts(2), &[(key(2), value()), (key(200), value())]));
        versions.keep_range(&(key(0)..key(9)), ts(1)).unwrap();
        assert_eq!(versions.hot_spans(), 1);
        let rows = versions.scan(&(key(0)..key(255)), ts(2), false, 100).unwrap().rows;
        assert_eq!(rows.len(), 4);
    }

    #[test]
    fn a_scan_that_a_flush_overtakes_gives_no_older_row() {
        for (warmed, reverse) in [(false, false), (false, true), (true, false), (true, true)] {
            assert_eq!(rows_while_all_is_flushed(None, warmed, reverse), [0, 0], "{warmed} {reverse}");
            let broken = rows_while_all_is_flushed(Some(Sabotage::ScansListFirst), warmed, reverse);
            assert!(broken[0] == 1, "the rule is of use: {broken:?} {warmed} {reverse}");
            assert_eq!(broken[1], usize::from(warmed), "what a hot span took in stays");
        }
    }
}

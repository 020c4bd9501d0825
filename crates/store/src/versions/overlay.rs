//! One layer of the overlay: recent versions in memory, in key order.

use super::copies::Copies;
use super::leaves::{Cut, LEAF_KEYS_MAX, Leaves};
use super::packed::Packed;
use super::prefixes::{Prefix, prefix_of};
use super::retention::Thresholds;
use super::scan::CHUNK_BYTES_MAX;
use super::{Span, Version};
use bytes::Bytes;
use clock::Timestamp;
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Deref};

/// A chain longer than this is trimmed when it grows: a hot row must not fill the overlay with what nobody can read.
const TRIM_ABOVE: usize = 32;
/// Keys of one layer in one chunk of a scan, live or deleted.
pub(super) const SEEN_KEYS_MAX: usize = 8192;
/// What an entry costs beside its key and value: map slot, chain, allocations.
const ENTRY_OVERHEAD: usize = 120;
/// What an entry of the present takes beside key and value, about.
pub(super) const ENTRY_BYTES: usize = 16;
/// What one more version in a chain costs beside its value.
const VERSION_OVERHEAD: usize = 40;

/// A key, inside the map's node while it is short: a search then follows no pointer per comparison.
pub(super) type Key = SmallVec<[u8; 24]>;
/// The versions of one key in this layer, oldest first.
#[derive(Clone, Default)]
pub(super) struct Chain {
    versions: SmallVec<[Version; 1]>,
    /// The first one was committed before this layer: it is here because who wrote the next one had it at hand, and because the flush
    /// must know what the next one ended.
    pub based: bool,
}

impl Chain {
    /// Adds a version; one with the same timestamp is replaced.
    fn add(&mut self, version: Version) {
        let (ts, versions) = (version.ts, &mut self.versions);
        match versions.last() {
            Some(last) if last.ts < ts => versions.push(version),
            _ => match versions.binary_search_by_key(&ts, |v| v.ts) {
                Ok(same) => versions[same] = version,
                Err(place) => {
                    self.based &= place > 0;
                    versions.insert(place, version);
                }
            },
        }
    }

    /// The versions that were committed in this layer.
    fn own(&self) -> &[Version] {
        &self.versions[usize::from(self.based)..]
    }
}

impl Deref for Chain {
    type Target = [Version];
    fn deref(&self) -> &[Version] {
        &self.versions
    }
}

/// What a layer knows of one key at a snapshot, for a scan.
pub(super) struct Seen {
    pub key: Bytes,
    pub version: Version,
}

/// Where a look puts what it sees, key by key.
pub(super) trait Sight {
    fn take(&mut self, key: &[u8], version: &Version);
    /// Keys, live or deleted.
    fn keys(&self) -> usize;
    /// Of what is to stand in one piece.
    fn bytes(&self) -> usize;
    fn last_key(&self) -> Option<&[u8]>;
}

/// Each with a key and a value of its own.
pub(super) struct Apart {
    pub seen: Vec<Seen>,
    copies: Copies,
}

impl Apart {
    /// For so many, about.
    pub fn of(keys: usize) -> Apart {
        Apart { seen: Vec::new(), copies: Copies::of(keys) }
    }
}

impl Sight for Apart {
    fn take(&mut self, key: &[u8], version: &Version) {
        let (key, version) = self.copies.take(key, version);
        self.seen.push(Seen { key, version });
    }
    fn keys(&self) -> usize {
        self.seen.len()
    }
    fn bytes(&self) -> usize {
        0
    }
    fn last_key(&self) -> Option<&[u8]> {
        self.seen.last().map(|seen| &seen.key[..])
    }
}

impl Sight for Packed {
    fn take(&mut self, key: &[u8], version: &Version) {
        self.push(key, version.value.as_deref());
    }
    fn keys(&self) -> usize {
        self.places.len()
    }
    fn bytes(&self) -> usize {
        self.bytes.len()
    }
    fn last_key(&self) -> Option<&[u8]> {
        self.key(self.places.len().checked_sub(1)?)
    }
}

/// A look at a span of one layer: takes in entries, in the order asked for, until it has enough.
pub(super) struct Look<S> {
    snapshot: Timestamp,
    /// Live keys wanted.
    limit: usize,
    live: usize,
    pub sight: S,
    /// The span holds more than what is wanted.
    pub more: bool,
    /// Where what was not looked at begins, for another reason.
    pub rest: Option<Bytes>,
}

impl<S: Sight> Look<S> {
    pub fn new(snapshot: Timestamp, limit: usize, sight: S) -> Look<S> {
        Look { snapshot, limit, live: 0, sight, more: false, rest: None }
    }

    /// Keys that are still wanted, at most.
    pub fn wanted(&self) -> usize {
        self.limit.saturating_sub(self.live).min(SEEN_KEYS_MAX)
    }

    /// Takes in what a key was at the snapshot, tombstones included.
    pub fn meet(&mut self, key: &[u8], chain: &Chain) -> ControlFlow<()> {
        match at(chain, self.snapshot) {
            Some(version) => self.see(key, version),
            None => ControlFlow::Continue(()),
        }
    }

    /// Takes in the version that the snapshot sees of a key, a tombstone too.
    pub fn see(&mut self, key: &[u8], version: &Version) -> ControlFlow<()> {
        let sight = &self.sight;
        if self.live >= self.limit || sight.keys() >= SEEN_KEYS_MAX || sight.bytes() >= CHUNK_BYTES_MAX {
            self.more = true;
            return ControlFlow::Break(());
        }
        self.live += usize::from(version.value.is_some());
        self.sight.take(key, version);
        ControlFlow::Continue(())
    }
}

pub(super) struct Layer {
    map: Leaves<Chain>,
    newest: BTreeMap<Prefix, Timestamp>,
    /// About what it holds of memory.
    pub bytes: usize,
    /// About what the engine's present is given of it.
    pub present_bytes: usize,
    /// What of `bytes` came of commands that were shown, about.
    pub shown_bytes: usize,
    /// Greatest timestamp held.
    pub max_ts: Timestamp,
    /// Least timestamp committed in it.
    pub min_ts: Timestamp,
}

impl Default for Layer {
    fn default() -> Self {
        let (map, newest) = Default::default();
        Layer {
            map,
            newest,
            bytes: 0,
            present_bytes: 0,
            shown_bytes: 0,
            max_ts: Timestamp::MIN,
            min_ts: Timestamp::MAX,
        }
    }
}

/// The newest version of a chain at or below `snapshot`.
fn at(chain: &[Version], snapshot: Timestamp) -> Option<&Version> {
    match chain.last() {
        Some(last) if last.ts <= snapshot => Some(last),
        _ => chain[..chain.partition_point(|v| v.ts <= snapshot)].last(),
    }
}

impl Layer {
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// What it holds: in memory, and of the engine's present.
    pub fn bytes(&self) -> (usize, usize) {
        (self.bytes, self.present_bytes)
    }

    /// Adds a version; one with the same timestamp is replaced (a replayed command). `base` is what it follows, if that is known and
    /// older than the layer. Versions that a newer one at or below the key's threshold hides may go.
    pub fn insert(&mut self, key: &Bytes, version: Version, base: Option<Version>, thresholds: &Thresholds) {
        self.insert_all(std::iter::once((&key[..], version, base)), thresholds);
    }

    /// As [`Layer::insert`] of each; those that come in key order are put in together.
    pub fn insert_all<'k>(
        &mut self,
        writes: impl Iterator<Item = (&'k [u8], Version, Option<Version>)>,
        thresholds: &Thresholds,
    ) {
        let (map, newest, times) = (&mut self.map, &mut self.newest, (&mut self.max_ts, &mut self.min_ts));
        let (held, present) = (Cell::new(self.bytes), Cell::new(self.present_bytes));
        let add = |cell: &Cell<usize>, more: usize, less: usize| cell.set((cell.get() + more).saturating_sub(less));
        let mut last: Option<(Prefix, Timestamp)> = None;
        let writes = writes.map(|(key, version, base)| {
            let (ts, prefix) = (version.ts, prefix_of(key));
            if last != Some((prefix, ts)) {
                (*times.0, *times.1) = (ts.max(*times.0), ts.min(*times.1));
                let newest = newest.entry(prefix).or_default();
                *newest = ts.max(*newest);
                last = Some((prefix, ts));
            }
            (key, (version, base))
        });
        let size = |version: &Version| version.value.as_ref().map_or(0, Bytes::len);
        let newest_bytes = |chain: &Chain| chain.last().map_or(0, size);
        let change = |key: &[u8], chain: &mut Chain, (version, _): (Version, Option<Version>)| {
            let (before, added) = (newest_bytes(chain), size(&version) + VERSION_OVERHEAD);
            chain.add(version);
            add(&present, newest_bytes(chain), before);
            let trims = chain.len() > TRIM_ABOVE && chain.len().is_power_of_two();
            add(&held, added, if trims { trim_chain(chain, thresholds.of(key)) } else { 0 });
        };
        let make = |key: &[u8], (version, base): (Version, Option<Version>)| {
            add(&held, key.len() + size(&version) + ENTRY_OVERHEAD, 0);
            add(&present, key.len() + size(&version) + ENTRY_BYTES, 0);
            let based = base.is_some();
            let versions = match base {
                None => SmallVec::from_buf([version]),
                Some(base) => {
                    add(&held, size(&base) + VERSION_OVERHEAD, 0);
                    SmallVec::from_vec(vec![base, version])
                }
            };
            Chain { versions, based }
        };
        map.put_all(writes, change, make);
        (self.bytes, self.present_bytes) = (held.get(), present.get());
    }

    /// The newest version of `key` at or below `snapshot`, and the newest of all.
    pub fn get(&self, key: &[u8], snapshot: Timestamp) -> Option<(Option<&Version>, Timestamp)> {
        let chain = self.map.get(key)?;
        Some((at(chain, snapshot), chain.last()?.ts))
    }

    /// The versions of `key` here, oldest first.
    pub fn chain(&self, key: &[u8]) -> Option<&[Version]> {
        self.map.get(key).map(|chain| &chain[..])
    }

    /// The newest version of `key` in `(lo, hi]`.
    pub fn between(&self, key: &[u8], lo: Timestamp, hi: Timestamp) -> Option<Timestamp> {
        if self.max_ts <= lo {
            return None;
        }
        at(self.map.get(key)?, hi).map(|v| v.ts).filter(|ts| *ts > lo)
    }

    /// The newest version of any key of `span` in `(lo, hi]` that was committed in this layer, and its key: what is older lies elsewhere, too.
    pub fn between_in(&self, span: &Span, lo: Timestamp, hi: Timestamp) -> Option<(&[u8], Timestamp)> {
        let candidates = self.newest.range(prefix_of(&span.start)..=prefix_of(&span.end));
        if span.start >= span.end || candidates.map(|(_, ts)| *ts).max().is_none_or(|ts| ts <= lo) {
            return None;
        }
        let range = self.map.range(span);
        let newest = range.filter_map(|(key, chain)| Some((key, at(chain.own(), hi)?.ts))).max_by_key(|(_, ts)| *ts);
        newest.filter(|(_, ts)| *ts > lo)
    }

    /// What holds the keys of a span, for a [`Look`] at so many of them: see [`Leaves::cut`].
    pub fn cut(&self, span: &Span, reverse: bool, keys: usize) -> Cut<Chain> {
        // Leaves may be half full, and the first one may lie before the span.
        self.map.cut(span, reverse, 2 + keys / (LEAF_KEYS_MAX / 2))
    }

    /// Shows the keys of a span.
    pub fn look<S: Sight>(&self, span: &Span, reverse: bool, look: &mut Look<S>) {
        let mut range = self.map.range(span);
        let mut meet = |(key, chain): (&[u8], &Chain)| look.meet(key, chain);
        let _enough = if reverse { range.rev().try_for_each(&mut meet) } else { range.try_for_each(&mut meet) };
    }

    /// The keys of a span that the layer holds, in order.
    pub fn keys_in(&self, span: &Span) -> impl Iterator<Item = &[u8]> {
        self.map.range(span).map(|(key, _)| key)
    }

    /// All that the layer holds, in key order.
    pub fn chains(&self) -> impl Iterator<Item = (&[u8], &Chain)> {
        self.map.iter()
    }

    /// The greatest timestamp of one prefix.
    pub fn newest_of(&self, prefix: Prefix) -> Timestamp {
        self.newest.get(&prefix).copied().unwrap_or_default()
    }

    /// The greatest timestamp per prefix.
    pub fn newest_by_prefix(&self) -> impl Iterator<Item = (Prefix, Timestamp)> + '_ {
        self.newest.iter().map(|(p, ts)| (*p, *ts))
    }
}

/// Drops the versions that a newer one at or below `threshold` hides; gives the bytes freed.
fn trim_chain(chain: &mut Chain, threshold: Timestamp) -> usize {
    let keep = visible_from(chain, threshold);
    chain.based &= keep == 0;
    chain.versions.drain(..keep).map(|v| VERSION_OVERHEAD + v.value.map_or(0, |b| b.len())).sum()
}

/// Where the versions of a chain begin that a snapshot at or above `threshold` may read.
fn visible_from(chain: &[Version], threshold: Timestamp) -> usize {
    chain.partition_point(|v| v.ts <= threshold).saturating_sub(1)
}

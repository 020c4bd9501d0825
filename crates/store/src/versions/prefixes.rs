//! What is known of the engine's content per prefix of four bytes (an index), so that most questions need no engine.
//!
//! The map starts empty after an open: bounds are then read once per prefix, and the newest timestamp is taken to be the
//! engine's own, which costs engine reads but is never wrong.

use super::Span;
use bytes::Bytes;
use clock::Timestamp;
use std::collections::BTreeMap;

/// The first four bytes of a key, shorter keys filled up with zeroes: keeps the order of keys.
pub(super) type Prefix = u32;

/// Bytes of a prefix.
pub(super) const PREFIX_BYTES: usize = 4;

pub(super) fn prefix_of(key: &[u8]) -> Prefix {
    let mut first = [0; 4];
    let n = key.len().min(4);
    first[..n].copy_from_slice(&key[..n]);
    Prefix::from_be_bytes(first)
}

/// The least key above all that have a prefix; `None`: there is none.
pub(super) fn end_of(prefix: Prefix) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(&prefix.checked_add(1)?.to_be_bytes()))
}

/// Least and greatest user key of one prefix in the engine; `None`: no key at all.
pub(super) type Bounds = Option<(Bytes, Bytes)>;

#[derive(Default)]
pub(super) struct Prefixes {
    /// Greatest timestamp flushed since the open.
    newest: BTreeMap<Prefix, Timestamp>,
    /// Greatest timestamp that was in the engine at the open.
    opened: Timestamp,
    bounds: BTreeMap<Prefix, Bounds>,
    /// Greatest timestamp in the engine.
    pub max_ts: Timestamp,
}

impl Prefixes {
    pub fn opened_at(max_ts: Timestamp) -> Self {
        Prefixes { opened: max_ts, max_ts, ..Self::default() }
    }

    /// Whether the engine may hold a version newer than `lo` of a key in these prefixes.
    pub fn may_hold_newer(&self, from: Prefix, to: Prefix, lo: Timestamp) -> bool {
        self.max_ts > lo && (self.opened > lo || self.newest.range(from..=to).any(|(_, ts)| *ts > lo))
    }

    /// Whether the engine may hold `key`; `None` where the bounds of its prefix were not read yet.
    pub fn may_hold(&self, key: &[u8]) -> Option<bool> {
        Some(match self.bounds.get(&prefix_of(key))? {
            None => false,
            Some((least, greatest)) => &least[..] <= key && key <= &greatest[..],
        })
    }

    /// Whether the engine may hold a key of a span within one prefix; `None` as above.
    pub fn may_overlap(&self, prefix: Prefix, span: &Span) -> Option<bool> {
        Some(match self.bounds.get(&prefix)? {
            None => false,
            Some((least, greatest)) => *least < span.end && span.start <= *greatest,
        })
    }

    /// Remembers what was read of the engine.
    pub fn set_bounds(&mut self, prefix: Prefix, bounds: Bounds) {
        self.bounds.entry(prefix).or_insert(bounds);
    }

    /// The engine holds nothing of a prefix any more.
    pub fn empty(&mut self, prefix: Prefix) {
        self.bounds.insert(prefix, None);
        self.newest.remove(&prefix);
    }

    /// A flush will write these keys: called before the engine holds them.
    pub fn widen(
        &mut self,
        newest: impl Iterator<Item = (Prefix, Timestamp)>,
        ends: Vec<(Prefix, Bytes, Bytes)>,
        max_ts: Timestamp,
    ) {
        for (prefix, ts) in newest {
            let known = self.newest.entry(prefix).or_default();
            *known = ts.max(*known);
        }
        for (prefix, least, greatest) in ends {
            let Some(known) = self.bounds.get_mut(&prefix) else {
                continue;
            };
            *known = Some(match known.take() {
                None => (least, greatest),
                Some((l, g)) => (l.min(least), g.max(greatest)),
            });
        }
        self.max_ts = self.max_ts.max(max_ts);
    }
}

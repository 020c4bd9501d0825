//! The last writes in the order in which they came: what certification asks about.
//!
//! A transaction that commits asks what changed in the spans that it read since its snapshot. That was milliseconds ago, so few writes
//! are newer, while a span may hold many keys, most of them deleted. So the question is answered from the end of this list, and only
//! a transaction older than the list looks into the spans.

use super::Span;
use super::overlay::Key;
use bytes::Bytes;
use clock::Timestamp;
use std::collections::VecDeque;

/// Writes remembered.
pub(super) const WRITES_MAX: usize = 8192;

struct Write {
    /// A copy: it is kept for longer than what it may be a slice of.
    key: Key,
    ts: Timestamp,
    /// The greatest timestamp of this write and all before it: order of arrival is not quite order of time.
    greatest: Timestamp,
}

/// See the module.
#[derive(Default)]
pub(super) struct Recent {
    writes: VecDeque<Write>,
    /// The greatest timestamp that was forgotten, or was there before the list.
    forgotten: Timestamp,
    /// Writes that ever came, and how many had when one was not listed.
    arrived: u64,
    unlisted: u64,
}

/// How many writes had come at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals(u64);

impl Recent {
    /// Writes at or below `forgotten` may exist that are not listed.
    pub fn after(forgotten: Timestamp) -> Self {
        Recent { forgotten, ..Recent::default() }
    }

    pub fn push(&mut self, key: &Bytes, ts: Timestamp) {
        if self.writes.len() >= WRITES_MAX
            && let Some(oldest) = self.writes.pop_front()
        {
            self.forgotten = self.forgotten.max(oldest.ts);
        }
        self.arrived += 1;
        let greatest = self.writes.back().map_or(ts, |last| last.greatest.max(ts));
        self.writes.push_back(Write { key: Key::from_slice(key), ts, greatest });
    }

    /// A write that would be forgotten at once, for those that are pushed after it.
    pub fn pass(&mut self, ts: Timestamp) {
        self.forgotten = self.forgotten.max(ts);
        self.arrived += 1;
        self.unlisted = self.arrived;
    }

    /// How many have come.
    pub fn arrivals(&self) -> Arrivals {
        Arrivals(self.arrived)
    }

    /// Whether one of the writes that came since is such a one; `None`: not all of them are listed.
    pub fn any_since(&self, arrivals: Arrivals, mut such: impl FnMut(&[u8], Timestamp) -> bool) -> Option<bool> {
        let came = usize::try_from(self.arrived - arrivals.0).unwrap_or(usize::MAX);
        let listed = self.unlisted <= arrivals.0 && came <= self.writes.len();
        listed.then(|| self.writes.iter().rev().take(came).any(|write| such(&write.key, write.ts)))
    }

    /// The greatest timestamp that was ever written.
    pub fn greatest(&self) -> Timestamp {
        self.writes.back().map_or(self.forgotten, |last| last.greatest.max(self.forgotten))
    }

    /// The newest write of a key of `span` in `(lo, hi]`, and its key; `None`: it cannot tell.
    pub fn between_in(&self, span: &Span, lo: Timestamp, hi: Timestamp) -> Option<Option<(Bytes, Timestamp)>> {
        if self.forgotten > lo {
            return None;
        }
        let newer = self.writes.iter().rev().take_while(|write| write.greatest > lo);
        let within = newer.filter(|write| {
            write.ts > lo && write.ts <= hi && span.start[..] <= write.key[..] && write.key[..] < span.end[..]
        });
        let newest = within.max_by_key(|write| write.ts);
        Some(newest.map(|write| (Bytes::copy_from_slice(&write.key), write.ts)))
    }
}

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
}

impl Recent {
    /// Writes at or below `forgotten` may exist that are not listed.
    pub fn after(forgotten: Timestamp) -> Self {
        Recent { writes: VecDeque::new(), forgotten }
    }

    pub fn push(&mut self, key: &Bytes, ts: Timestamp) {
        if self.writes.len() >= WRITES_MAX
            && let Some(oldest) = self.writes.pop_front()
        {
            self.forgotten = self.forgotten.max(oldest.ts);
        }
        let greatest = self.writes.back().map_or(ts, |last| last.greatest.max(ts));
        self.writes.push_back(Write { key: Key::from_slice(key), ts, greatest });
    }

    /// A write that would be forgotten at once, for those that are pushed after it.
    pub fn pass(&mut self, ts: Timestamp) {
        self.forgotten = self.forgotten.max(ts);
    }

    /// The greatest timestamp that was ever written.
    pub fn greatest(&self) -> Timestamp {
        self.writes.back().map_or(self.forgotten, |last| last.greatest.max(self.forgotten))
    }

    /// The newest write of a key of `span` in `(lo, hi]`; `None`: it cannot tell.
    pub fn between_in(&self, span: &Span, lo: Timestamp, hi: Timestamp) -> Option<Option<Timestamp>> {
        if self.forgotten > lo {
            return None;
        }
        let newer = self.writes.iter().rev().take_while(|write| write.greatest > lo);
        let within = newer.filter(|write| {
            write.ts > lo && write.ts <= hi && span.start[..] <= write.key[..] && write.key[..] < span.end[..]
        });
        Some(within.map(|write| write.ts).max())
    }
}

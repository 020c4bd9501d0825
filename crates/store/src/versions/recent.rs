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
/// Where so many are newer than what is asked, one key is looked for elsewhere: a search in memory costs about as much.
const LOOKED_AT_MAX: usize = 64;

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

    /// A write that would be forgotten at once, for those that are pushed after it; or several of one time, that came past the log.
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

    /// When a key was written in `(lo, hi]` the last time; `None`: it cannot tell, or not soon.
    pub fn between(&self, key: &[u8], lo: Timestamp, hi: Timestamp) -> Option<Option<Timestamp>> {
        if self.forgotten > lo {
            return None;
        }
        let mut newest = None;
        for (looked_at, write) in self.writes.iter().rev().take_while(|write| write.greatest > lo).enumerate() {
            if looked_at >= LOOKED_AT_MAX {
                return None;
            }
            if write.ts > lo && write.ts <= hi && write.key[..] == *key {
                newest = newest.max(Some(write.ts));
            }
        }
        Some(newest)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever it tells of a key is what all writes say, in any order of their times.
        #[test]
        fn what_is_told_of_a_key_is_what_was_written(
            writes in prop::collection::vec((0u8..5, 1u64..40, any::<bool>()), 0..90),
            forgotten in 0u64..20, key in 0u8..5, lo in 0u64..40, hi in 0u64..45,
        ) {
            let ts = Timestamp::from_u64;
            let mut recent = Recent::after(ts(forgotten));
            let mut all = Vec::new();
            for (key, at, listed) in writes {
                let at = at + forgotten;
                match listed || all.len() < 80 {
                    true => recent.push(&Bytes::from(vec![key]), ts(at)),
                    false => recent.pass(ts(at)),
                }
                all.push((key, at));
            }
            let told = recent.between(&[key], ts(lo), ts(hi));
            let newest = all.iter().filter(|(of, at)| *of == key && *at > lo && *at <= hi).map(|(_, at)| ts(*at)).max();
            let knows = recent.forgotten <= ts(lo);
            let newer = recent.writes.iter().rev().take_while(|write| write.greatest > ts(lo)).count();
            prop_assert_eq!(told, (knows && newer <= LOOKED_AT_MAX).then_some(newest));
        }
    }
}

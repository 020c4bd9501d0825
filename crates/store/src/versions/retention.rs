//! How long the past is kept: a threshold for all tables, and others for the tables that have a retention of their own.
//!
//! Problem: the past is given back by whole stretches of time, without a look at keys, so what is kept for an hour may not lie among what
//! is kept for seconds. Idea: an index (the first four bytes of its keys) whose versions are kept apart belongs to a *class* of about
//! equal retention, and what ends is filed under the class that its index has at that time. Each class ages by itself.
//!
//! An index may change its class. What was filed before stays where it is, and goes when that class forgets it: the store remembers up to
//! which end an index has versions in a class that it left ([`Filing`]). So its own threshold is the greatest of
//!
//! 1. what it was: a threshold never falls;
//! 2. what was logged for it;
//! 3. for each class that it left: how far that class has forgotten, but not further than what the index left there.
//!
//! Invariants:
//! 1. A class forgets only what ended at or below what was logged for each of its members, and at or below the threshold of each index
//!    that left something there; while there are members, these alone count, and (3) says what that costs others.
//! 2. No threshold passes an open snapshot, whichever table it reads.
//! 3. Which class an index has, and what it left in others, is on disk before anything is filed by it.
//! 4. An index comes to a class that has forgotten more than the index has only when all that is not filed yet ended later: else it would
//!    be filed where it is forgotten at once. Until a flush has filed it, the index stays in the class that it had.

use super::prefixes::{Prefix, prefix_of};
use super::{Sabotage, Span};
use crate::keys::Bucket;
use bytes::{Buf, BufMut, Bytes};
use clock::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Indexes that may have a threshold of their own.
pub const APART_MAX: usize = 4096;
/// The class of all others.
pub(super) const COMMON: u8 = 0;
/// Classes for each doubling of the retention: retentions of one class differ by less than a quarter.
const CLASSES_PER_DOUBLING: u64 = 4;

/// The class of versions that are kept for so many seconds.
pub fn class_of(seconds: u64) -> u8 {
    let seconds = seconds.max(1);
    let doublings = u64::from(seconds.ilog2());
    let quarter = (u128::from(seconds - (1 << doublings)) * u128::from(CLASSES_PER_DOUBLING)) >> doublings;
    u8::try_from(1 + CLASSES_PER_DOUBLING * doublings + quarter as u64).unwrap_or(u8::MAX)
}

/// The threshold of one index that is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The first four bytes of its keys.
    pub index: [u8; 4],
    /// See [`class_of`].
    pub class: u8,
    /// Snapshots of it below this may be refused.
    pub threshold: Timestamp,
}

/// Up to where the past may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    /// Of all indexes that are not listed.
    pub common: Timestamp,
    /// Of others, in order of their index; more than [`APART_MAX`] are not looked at.
    pub apart: Vec<Apart>,
}

impl Threshold {
    /// The highest of all.
    pub(super) fn highest(&self) -> Timestamp {
        self.apart.iter().map(|apart| apart.threshold).fold(self.common, Timestamp::max)
    }
}

impl From<Timestamp> for Threshold {
    fn from(common: Timestamp) -> Self {
        Threshold { common, apart: Vec::new() }
    }
}

/// Thresholds in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Thresholds {
    pub common: Timestamp,
    pub apart: BTreeMap<Prefix, Timestamp>,
}

impl Thresholds {
    fn of_prefix(&self, prefix: Prefix) -> Timestamp {
        self.apart.get(&prefix).copied().unwrap_or(self.common)
    }

    /// The threshold of a key.
    pub fn of(&self, key: &[u8]) -> Timestamp {
        if self.apart.is_empty() { self.common } else { self.of_prefix(prefix_of(key)) }
    }

    /// The highest threshold of any key of a span.
    pub fn of_span(&self, span: &Span) -> Timestamp {
        let (from, to) = (prefix_of(&span.start), prefix_of(&span.end));
        let end = if span.end.len() <= 4 { Bound::Excluded(to) } else { Bound::Included(to) };
        if self.apart.is_empty() || from > to || (from == to && span.end.len() <= 4) {
            return self.of_prefix(from);
        }
        let mut within = 0u64;
        let highest = self.apart.range((Bound::Included(from), end)).map(|(_, ts)| *ts).inspect(|_| within += 1).max();
        let prefixes = u64::from(to - from) + u64::from(span.end.len() > 4);
        let common = (within < prefixes).then_some(self.common);
        highest.max(common).unwrap_or(self.common)
    }

    pub fn lowest(&self) -> Timestamp {
        self.apart.values().copied().fold(self.common, Timestamp::min)
    }

    pub fn highest(&self) -> Timestamp {
        self.apart.values().copied().fold(self.common, Timestamp::max)
    }

    /// Raises those of some indexes to `floor` at least.
    pub fn lift(&mut self, floor: Timestamp, indexes: &BTreeSet<Prefix>) {
        for index in indexes {
            let known = self.apart.get_mut(index).unwrap_or(&mut self.common);
            *known = floor.max(*known);
        }
    }
}

/// Where what ends is filed, and what lies elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filing {
    /// Indexes that are not in the common class.
    pub classes: BTreeMap<Prefix, u8>,
    /// Up to which end an index has versions in a class that it left.
    left: BTreeMap<(Prefix, u8), Timestamp>,
}

/// How far each class has forgotten; those that are not listed, where nobody has anything, as far as the common one. (What is filed
/// there by who joins later ends above every threshold of now.)
pub(super) struct Aged {
    common: Timestamp,
    classes: BTreeMap<u8, Timestamp>,
}

impl Aged {
    pub fn of(&self, class: u8) -> Timestamp {
        self.classes.get(&class).copied().unwrap_or(self.common)
    }

    /// The first bucket of a class that must stay.
    pub fn first(&self, class: u8, shift: u32) -> Bucket {
        // The bucket that the threshold is in waits until it has passed all of it, so that little is written often.
        Bucket::of(class, self.of(class).next(), shift)
    }
}

/// What holds while [`Filing::turn`] goes over.
pub(super) struct Moment {
    /// The oldest open snapshot.
    pub oldest: Timestamp,
    /// The greatest end that was filed so far.
    pub newest: Timestamp,
    /// The least end that may still be filed.
    pub unfiled: Timestamp,
    /// Up to which end classes have forgotten, as far as it is known.
    pub forgotten: BTreeMap<u8, Timestamp>,
}

impl Filing {
    /// Where a version of `key` that ends now belongs.
    pub fn class(&self, key: &[u8]) -> u8 {
        if self.classes.is_empty() { COMMON } else { self.classes.get(&prefix_of(key)).copied().unwrap_or(COMMON) }
    }

    /// All classes that may hold versions of `key`.
    pub fn classes(&self, key: &[u8]) -> Vec<u8> {
        let prefix = prefix_of(key);
        let mut classes = vec![self.class(key)];
        classes.extend(self.left.range((prefix, 0)..=(prefix, u8::MAX)).map(|((_, class), _)| *class));
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Goes over to what was logged. Gives the thresholds after `before`, how far each class may forget, and whether an index still has to
    /// change its class (invariant 4): then this is called again after a flush.
    pub fn turn(
        &mut self,
        before: &Thresholds,
        logged: &Threshold,
        now: &Moment,
        sabotage: Option<Sabotage>,
    ) -> (Thresholds, Aged, bool) {
        let oldest = now.oldest;
        let apart = logged.apart.iter().take(APART_MAX);
        let wanted: BTreeMap<Prefix, &Apart> = apart.map(|apart| (prefix_of(&apart.index), apart)).collect();
        let own = |prefix: Prefix| wanted.get(&prefix).map_or(logged.common, |apart| apart.threshold).min(oldest);
        let of = |prefix: Prefix| before.of_prefix(prefix).max(own(prefix));
        let common = before.common.max(logged.common.min(oldest));
        let forgotten = |class: u8| {
            let known = now.forgotten.get(&class).copied().unwrap_or_default();
            if class == COMMON { known.max(before.common) } else { known }
        };
        let known: BTreeSet<Prefix> = self.classes.keys().chain(wanted.keys()).copied().collect();
        let mut waiting = BTreeSet::new();
        for prefix in known {
            let old = self.classes.get(&prefix).copied().unwrap_or(COMMON);
            let new = wanted.get(&prefix).map_or(COMMON, |apart| apart.class);
            let early = now.unfiled <= forgotten(new) && of(prefix) < forgotten(new);
            if old != new && early && sabotage != Some(Sabotage::ClassesTakeInEarly) {
                waiting.insert(prefix);
            } else if old != new {
                let until = self.left.entry((prefix, old)).or_default();
                *until = now.newest.max(*until);
                self.classes.insert(prefix, new);
            }
        }
        self.classes.retain(|_, class| *class != COMMON);
        // Who came back is a member like the others.
        let classes = &self.classes;
        self.left.retain(|(prefix, class), _| classes.get(prefix).copied().unwrap_or(COMMON) != *class);

        let left = self.left.keys().map(|(prefix, _)| *prefix);
        let named = wanted.keys().chain(before.apart.keys()).copied().chain(left);
        let mut after: BTreeMap<Prefix, Timestamp> = named.map(|prefix| (prefix, of(prefix))).collect();

        let mut aged = Aged { common: common.min(logged.common), classes: BTreeMap::new() };
        for prefix in waiting.iter().filter(|prefix| !self.classes.contains_key(prefix)) {
            aged.common = of(*prefix).min(aged.common);
        }
        let mut limit = |class: u8, ts: Timestamp| {
            let known = aged.classes.entry(class).or_insert(Timestamp::MAX);
            *known = ts.min(*known);
        };
        for (prefix, class) in &self.classes {
            limit(*class, own(*prefix));
        }
        let members: BTreeSet<u8> = self.classes.values().copied().chain([COMMON]).collect();
        for ((prefix, class), until) in &self.left {
            let ts = after.get(prefix).copied().unwrap_or(common);
            if ts < *until && !members.contains(class) {
                limit(*class, ts);
            }
        }
        if sabotage == Some(Sabotage::ClassesAgeAlike) {
            let highest = aged.classes.values().copied().fold(aged.common, Ord::max);
            aged.classes.values_mut().for_each(|ts| *ts = highest);
            aged.common = highest;
            return (Thresholds { common, apart: after }, aged, !waiting.is_empty());
        }
        for ((prefix, class), until) in &self.left {
            if let Some(ts) = after.get_mut(prefix)
                && sabotage != Some(Sabotage::ClassesForgetWhoLeft)
            {
                // What a class forgot above a snapshot that is open, it forgot before this index joined it.
                *ts = aged.of(*class).min(*until).min(oldest).max(*ts);
            }
        }
        self.left.retain(|(prefix, _), until| after.get(prefix).is_some_and(|ts| *ts < *until));
        after.retain(|prefix, ts| *ts != common || self.classes.contains_key(prefix));
        (Thresholds { common, apart: after }, aged, !waiting.is_empty())
    }

    /// Writes both into the store's header.
    pub fn encode(&self, apart: &BTreeMap<Prefix, Timestamp>, raw: &mut Vec<u8>) {
        raw.put_u32(apart.len() as u32);
        for (prefix, ts) in apart {
            raw.put_u32(*prefix);
            raw.put_u64(ts.as_u64());
        }
        raw.put_u32(self.classes.len() as u32);
        for (prefix, class) in &self.classes {
            raw.put_u32(*prefix);
            raw.put_u8(*class);
        }
        raw.put_u32(self.left.len() as u32);
        for ((prefix, class), until) in &self.left {
            raw.put_u32(*prefix);
            raw.put_u8(*class);
            raw.put_u64(until.as_u64());
        }
    }

    /// Reads what [`Filing::encode`] wrote; `None` where it is too short.
    pub fn decode(raw: &mut Bytes) -> Option<(Filing, BTreeMap<Prefix, Timestamp>)> {
        let mut filing = Filing::default();
        let mut apart = BTreeMap::new();
        for _ in 0..counted(raw, 12)? {
            apart.insert(raw.get_u32(), Timestamp::from_u64(raw.get_u64()));
        }
        for _ in 0..counted(raw, 5)? {
            filing.classes.insert(raw.get_u32(), raw.get_u8());
        }
        for _ in 0..counted(raw, 13)? {
            filing.left.insert((raw.get_u32(), raw.get_u8()), Timestamp::from_u64(raw.get_u64()));
        }
        Some((filing, apart))
    }
}

/// How many entries of `size` bytes follow; `None` where there are not so many.
pub(super) fn counted(raw: &mut Bytes, size: usize) -> Option<usize> {
    if raw.len() < 4 {
        return None;
    }
    let count = raw.get_u32() as usize;
    (raw.len() / size >= count).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retentions_of_one_class_are_about_equal() {
        assert!((1..200_000u64).all(|s| class_of(s) <= class_of(s + 1)));
        assert!((4..200_000u64).all(|s| class_of(s) < class_of(s + s / 4 + 1)));
        assert!((class_of(0), class_of(1)) == (1, 1) && class_of(u64::MAX) == u8::MAX && class_of(1 << 40) < u8::MAX);
    }
}

//! What was: versions that others have followed, in the engine's past, found by when they ended.
//!
//! A snapshot at `s` sees of a key the version that ended first after `s`, if that began at or below `s`; else the key was not there.
//! Ends are gathered in buckets, so the search goes from the snapshot's bucket upwards and stops at the first hit. Which buckets there
//! are is known in memory: time may jump, and nobody looks into years in which nothing ended.

use super::{Versions, damaged_key};
use crate::engine::Tree;
use crate::keys::{Bucket, Past, bucket_of, past_stem, stem_of};
use crate::{Engine, StoreError};
use bytes::Bytes;
use clock::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The buckets that the past holds, or may hold: known before their first version is there.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets(BTreeSet<Bucket>);

impl Buckets {
    /// Reads which there are: a seek for each.
    pub fn read(engine: &impl Engine) -> Result<Buckets, StoreError> {
        let mut found = BTreeSet::new();
        let mut from: Option<Bucket> = Some(Bucket { class: 0, number: 0 });
        while let Some(lower) = from.take() {
            let mut damaged = None;
            engine.scan(Tree::Past, &lower.lower(), &[0xff; 10], false, &mut |key, _| {
                match bucket_of(&key) {
                    Some(bucket) => {
                        found.insert(bucket);
                        from = Some(bucket.next()).filter(|next| *next != bucket);
                    }
                    None => damaged = Some(key),
                }
                ControlFlow::Break(())
            })?;
            if let Some(key) = damaged {
                return Err(damaged_key(&key));
            }
        }
        Ok(Buckets(found))
    }

    pub fn add(&mut self, buckets: impl IntoIterator<Item = Bucket>) {
        self.0.extend(buckets);
    }

    /// The classes that there are.
    pub fn classes(&self) -> Vec<u8> {
        let mut found = Vec::new();
        let mut next = Some(0);
        while let Some(least) = next {
            let first = self.0.range(Bucket { class: least, number: 0 }..).next();
            found.extend(first.map(|bucket| bucket.class));
            next = first.and_then(|bucket| bucket.class.checked_add(1));
        }
        found
    }

    /// Forgets the buckets of a class before `first`.
    pub fn forget(&mut self, first: Bucket) {
        let mut after = self.0.split_off(&Bucket { class: first.class, number: 0 });
        self.0.append(&mut after.split_off(&first));
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Those of some classes that may hold an end above `after` and up to `last`, in order of their time.
    fn between(&self, classes: &[u8], after: Timestamp, last: Timestamp, shift: u32) -> Vec<Bucket> {
        let (first, last) = (after.next().as_u64() >> shift, last.as_u64() >> shift);
        if first > last {
            return Vec::new();
        }
        let of = |class: u8| self.0.range(Bucket { class, number: first }..=Bucket { class, number: last });
        let mut found: Vec<Bucket> = classes.iter().flat_map(|class| of(*class)).copied().collect();
        if classes.len() > 1 {
            found.sort_unstable_by_key(|bucket| (bucket.number, bucket.class));
        }
        found
    }
}

impl<E: Engine> Versions<E> {
    /// Visits the past versions of `key` that ended above `after` and up to `last` (when its present version began), earliest end first.
    fn past_above(
        &self,
        key: &[u8],
        after: Timestamp,
        last: Timestamp,
        visit: &mut dyn FnMut(Past) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let classes = self.filing.read().classes(key);
        let buckets = self.buckets.read().between(&classes, after, last, self.config.bucket_shift);
        if classes.len() > 1 {
            return self.past_of_classes(key, after, &buckets, visit);
        }
        for bucket in buckets {
            let mut ended = false;
            self.past_in(key, after, bucket, &mut |past| {
                let flow = visit(past);
                ended = flow.is_break();
                flow
            })?;
            if ended {
                break;
            }
        }
        Ok(())
    }

    /// As [`Versions::past_above`], of a key whose table has changed its class: buckets of the same stretch of time are merged.
    fn past_of_classes(
        &self,
        key: &[u8],
        after: Timestamp,
        buckets: &[Bucket],
        visit: &mut dyn FnMut(Past) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        for together in buckets.chunk_by(|a, b| a.number == b.number) {
            let mut found = BTreeMap::new();
            for bucket in together {
                self.past_in(key, after, *bucket, &mut |past| {
                    found.insert(past.end, past);
                    ControlFlow::Continue(())
                })?;
            }
            if found.into_values().any(|past| visit(past).is_break()) {
                break;
            }
        }
        Ok(())
    }

    /// Visits the past versions of `key` in one bucket that ended above `after`.
    fn past_in(
        &self,
        key: &[u8],
        after: Timestamp,
        bucket: Bucket,
        visit: &mut dyn FnMut(Past) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut damaged = false;
        let from = bucket.key(key, after.next());
        self.engine.scan(Tree::Past, &from, &bucket.upper(key), false, &mut |physical, entry| {
            let Some(past) = Past::decode(&physical, entry) else {
                damaged = true;
                return ControlFlow::Break(());
            };
            visit(past)
        })?;
        if damaged { Err(damaged_key(key)) } else { Ok(()) }
    }

    /// The version of `key` that a snapshot sees, where the present one began at `present`, above the snapshot.
    pub(super) fn past_at(
        &self,
        key: &[u8],
        snapshot: Timestamp,
        present: Timestamp,
    ) -> Result<Option<Past>, StoreError> {
        let mut found = None;
        self.past_above(key, snapshot, present, &mut |past| {
            found = Some(past);
            ControlFlow::Break(())
        })?;
        Ok(found.filter(|past| past.begin <= snapshot))
    }

    /// The newest version of `key` in `(lo, hi]`, a deletion too, where the present one is newer than `hi`: a version began at its
    /// begin, and at its end another one did.
    pub(super) fn past_between(
        &self,
        key: &[u8],
        lo: Timestamp,
        hi: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let mut newest = None;
        self.past_above(key, lo, Timestamp::MAX, &mut |past| {
            if past.begin > hi {
                return ControlFlow::Break(());
            }
            let within = [past.begin, past.end].into_iter().filter(|ts| *ts > lo && *ts <= hi).max();
            newest = newest.max(within);
            if past.end > hi { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(newest)
    }

    /// All past versions of keys that are given in order, of each in no order; `None` where several have more than so many bytes together. One look at each bucket, however many keys.
    pub(super) fn past_of(&self, keys: &[Bytes], bytes: usize) -> Result<Option<Vec<Vec<Past>>>, StoreError> {
        let mut found = vec![Vec::new(); keys.len()];
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else { return Ok(Some(found)) };
        let classes: Vec<Vec<u8>> = {
            let filing = self.filing.read();
            keys.iter().map(|key| filing.classes(key)).collect()
        };
        let all: BTreeSet<u8> = classes.iter().flatten().copied().collect();
        let all: Vec<u8> = all.into_iter().collect();
        let places: BTreeMap<Bytes, usize> =
            keys.iter().enumerate().map(|(place, key)| (past_stem(key), place)).collect();
        let buckets = self.buckets.read().between(&all, Timestamp::MIN, Timestamp::MAX, self.config.bucket_shift);
        let (mut met, mut damaged, mut much) = (0, None, false);
        for bucket in buckets {
            let from = bucket.key(first, Timestamp::MIN);
            self.engine.scan(Tree::Past, &from, &bucket.upper(last), false, &mut |physical, entry| {
                met += physical.len() + entry.len();
                much = met > bytes && keys.len() > 1;
                let place = stem_of(&physical).and_then(|stem| places.get(stem));
                match (Past::decode(&physical, entry), place) {
                    (Some(past), Some(place)) if classes[*place].contains(&bucket.class) => found[*place].push(past),
                    (Some(_), _) => {}
                    (None, _) => damaged = Some(physical),
                }
                if much || damaged.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if let Some(key) = damaged {
                return Err(damaged_key(&key));
            }
            if much {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }
}

//! What was: versions that others have followed, in the engine's past, found by when they ended.
//!
//! A snapshot at `s` sees of a key the version that ended first after `s`, if that began at or below `s`; else the key was not there.
//! Ends are gathered in buckets, so the search goes from the snapshot's bucket upwards and stops at the first hit. Which buckets there
//! are is known in memory: time may jump, and nobody looks into years in which nothing ended.

use super::{Versions, damaged_key};
use crate::engine::Tree;
use crate::keys::{Bucket, Past, bucket_of};
use crate::{Engine, StoreError};
use clock::Timestamp;
use std::collections::BTreeSet;
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

    /// Forgets the buckets before `first`.
    pub fn forget(&mut self, first: Bucket) {
        self.0 = self.0.split_off(&first);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Those that may hold an end above `after` and up to `last`, in order.
    fn between(&self, after: Timestamp, last: Timestamp, shift: u32) -> Vec<Bucket> {
        let known = self.0.iter().copied();
        known.filter(|bucket| bucket.last_end(shift) > after && bucket.number <= last.as_u64() >> shift).collect()
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
        let buckets = self.buckets.read().between(after, last, self.config.bucket_shift);
        for bucket in buckets {
            let (mut ended, mut damaged) = (false, false);
            let from = bucket.key(key, after.next());
            self.engine.scan(Tree::Past, &from, &bucket.upper(key), false, &mut |physical, entry| {
                let Some(past) = Past::decode(&physical, entry) else {
                    damaged = true;
                    return ControlFlow::Break(());
                };
                let flow = visit(past);
                ended = flow.is_break();
                flow
            })?;
            if damaged {
                return Err(damaged_key(key));
            }
            if ended {
                break;
            }
        }
        Ok(())
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

    /// All past versions of `key` that are still there, oldest first.
    pub(super) fn past_of(&self, key: &[u8]) -> Result<Vec<Past>, StoreError> {
        let mut found = Vec::new();
        self.past_above(key, Timestamp::MIN, Timestamp::MAX, &mut |past| {
            found.push(past);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}

//! How a leader copies a range that another replica needs, a slice at a time, while it goes on.
//!
//! # Problem
//! A snapshot is all of a range at one place of its log, and may be a gigabyte. Who reads that at once does nothing else for a minute: it loses what it leads, the next leader is asked for the same, and
//! the range has none for good.
//!
//! # Idea
//! Log order is timestamp order, so what is applied later is written above the timestamp of the place, but for what was prepared before it. So the state is copied at once, and with it the keys that prepared
//! transactions hold; of all others the versions up to that timestamp are read afterwards, as many in a tick as [`super::LogLimits::copied_bytes_per_tick`] says.
//!
//! A version that has been followed by another one meanwhile is in the past then, but for one kind: a deletion of what was not there. No reader misses it, so the store forgets it when something follows. But
//! who certifies must meet it on each replica, or they decide differently. So what is written meanwhile is looked at before: a deletion that is its key's newest version is noted. (A commit of very many writes would
//! take long to look at: then the copy is begun anew, a few times.)
//!
//! # Invariants
//! 1. What is copied is what the range held at the place: a version at or below its timestamp that came later was held by a prepare then; and of each key the newest version, a deletion too.
//! 2. Nothing is collected on this store meanwhile: the copy has all that its thresholds promise. Where a full disk gave up some of the past, the copy is begun anew.
//!
//! 3. A range that fills its copy is split in two by its leader, and each part is copied by itself ([`super::LogLimits::copied_bytes`]). For that its leader takes no new prepares for a moment, as
//!    a range with an undecided transaction does not split. It is a split like any other: a replica that lags gets snapshots of both parts, the left one first.
//! 4. A split needs a majority, and the replica that lags may be part of it. So where the split comes to nothing the range is copied whole.
//!
//! # Caveats
//! The copy grows in memory. What cannot be split, for want of a majority or as it is the history of a single key, is copied up to [`SNAPSHOT_BYTES_MAX`]; beyond that it is not copied again for a while ([`TOO_LARGE_TICKS`]).

use super::core::{Core, group_of, range_of};
use super::snapshot::{SNAPSHOT_BYTES_MAX, Snapshots, put};
use crate::versions::{Store, bounded};
use bytes::{BufMut, Bytes};
use clock::{Reading, Timestamp};
use protocol::log::raft::{GroupId, Input};
use protocol::txn::{Batch, Range, RangeId, VersionStore, Write};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Engine, Span, StoreError, Version};

/// A range that was too large is refused without a look for so many ticks: a minute. So long it counts, too, how often a copy was begun anew.
const TOO_LARGE_TICKS: u64 = 600;
/// Versions looked at in a tick, at most, those that are left out among them: some 20 to 40 ms.
const LOOKS_MAX: usize = 4096;
/// Keys read together: where their values are large, or a tick's bytes are few, there are fewer.
const KEYS_MAX: usize = 256;
const KEYS_MIN: usize = 8;
/// Writes of what is shown that are put in their places in a tick, before anything is copied.
const PLACED_MAX: usize = 4096;
/// So many bytes of a tick are a key.
const KEY_BYTES: usize = 512;
/// Of one large commit so many writes are looked for deletions, in one step, beside those that were prepared when the copy began; with more it is begun anew.
const NOTED_MAX: usize = 8192;
/// But only so often, for one range: whoever writes such commits all the time would keep it from ever being copied. Then they are looked for all the same.
const ANEW_MAX: u32 = 4;
/// Deletions that were followed meanwhile and are noted, at most: where there are more, the copy is begun anew.
const GRAVES_MAX: usize = 65_536;
/// For so many ticks, two seconds, a leader tries to split a range that was too large.
const HALVING_TICKS: u64 = 20;

/// A copy under way.
#[derive(Debug)]
pub(super) struct Copying {
    group: GroupId,
    applied: u64,
    /// The timestamp of that place.
    at: Timestamp,
    /// What is not read yet.
    rest: Span,
    /// Of keys that prepared transactions held: what there was.
    held: BTreeMap<Bytes, Vec<Version>>,
    /// Deletions that were the newest version of their keys until something was written there meanwhile.
    graves: BTreeMap<Bytes, Timestamp>,
    /// How often a full disk had given up some of the past when it began.
    given_up: u64,
    /// More was written at once than was looked at: something may be missing.
    overrun: bool,
    /// It was begun anew for that so often.
    anew: u32,
    out: Vec<u8>,
    /// Where the number of keys goes.
    count_at: usize,
    keys: u64,
    /// A copy that is larger is given up, and the range split.
    fits: usize,
    /// The first key after half of that.
    middle: Option<Bytes>,
}

/// A range that is to be split, where, and since when, in ticks.
#[derive(Debug)]
pub(super) struct Halving {
    range: RangeId,
    at: Bytes,
    since: u64,
}

impl Copying {
    fn begin<E: Engine>(
        group: GroupId,
        range: &Range,
        applied: u64,
        versions: &store::Versions<E>,
        fits: usize,
    ) -> Result<Copying, StoreError> {
        let mut held = BTreeMap::new();
        for write in range.prepared().values().flat_map(|prepared| &prepared.batch.writes) {
            held.insert(write.key.clone(), versions.history(&write.key)?);
        }
        let mut out = Vec::new();
        super::snapshot::put_head(&mut out, applied, range);
        let count_at = out.len();
        out.put_u64_le(0);
        Ok(Copying {
            group,
            applied,
            at: range.applied(),
            rest: bounded(range.span()),
            held,
            graves: BTreeMap::new(),
            given_up: versions.given_up().times,
            overrun: false,
            anew: 0,
            out,
            count_at,
            keys: 0,
            fits,
            middle: None,
        })
    }

    /// Something is about to be written to a key: if that was deleted, it says so to the copy.
    fn note<E: Engine>(&mut self, versions: &store::Versions<E>, key: &Bytes) -> Result<(), StoreError> {
        if self.rest.contains(key) && !self.held.contains_key(key) {
            let newest = versions.version_at(key, Timestamp::MAX)?;
            if let Some(grave) = newest.filter(|newest| newest.value.is_none() && newest.ts <= self.at) {
                self.graves.insert(key.clone(), grave.ts);
            }
        }
        Ok(())
    }

    /// Those of many writes, in key order, of which it does not have anyway what there was.
    fn not_held<'a>(&self, writes: &'a [Write]) -> impl Iterator<Item = &'a Write> {
        let first = writes.first().map_or(Bytes::new(), |write| write.key.clone());
        let mut held = self.held.range(first..).map(|(key, _)| key).peekable();
        writes.iter().filter(move |write| {
            while held.next_if(|held| **held < write.key).is_some() {}
            held.peek().is_none_or(|held| **held != write.key)
        })
    }

    /// Whether there may be something missing that was there at the place.
    fn is_spoilt<E: Engine>(&self, versions: &store::Versions<E>) -> bool {
        self.overrun || self.graves.len() > GRAVES_MAX || self.given_up != versions.given_up().times
    }

    /// Copies so many bytes, or a little more, looking at no more than [`LOOKS_MAX`] versions; `true`: that was all.
    fn go_on<E: Engine>(&mut self, versions: &store::Versions<E>, bytes: usize) -> Result<bool, StoreError> {
        let until = self.out.len().saturating_add(bytes);
        // What is left out is work, too.
        let (mut left, keys_max) = (LOOKS_MAX, (bytes / KEY_BYTES).clamp(KEYS_MIN, KEYS_MAX));
        while self.out.len() < until && left > 0 {
            let store::Histories { keys, whole } = versions.histories_in(&self.rest, keys_max, bytes.max(KEY_BYTES))?;
            let last = keys.last().map(|(last, _)| crate::transaction::after(last));
            let looks: usize = keys.iter().map(|(_, history)| history.len().max(1)).sum();
            left = left.saturating_sub(looks);
            for (key, mut history) in keys {
                match self.held.remove(&key) {
                    Some(then) => history = then,
                    None => history.retain(|version| version.ts <= self.at),
                }
                let newest = history.last().map_or(Timestamp::MIN, |newest| newest.ts);
                if let Some(ts) = self.graves.remove(&key).filter(|grave| *grave > newest) {
                    history.push(Version { ts, value: None });
                }
                self.put(&key, &history);
            }
            match last.filter(|_| !whole) {
                Some(next) => self.rest.start = next,
                None => {
                    let count = self.keys.to_le_bytes();
                    self.out[self.count_at..self.count_at + count.len()].copy_from_slice(&count);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn put(&mut self, key: &[u8], history: &[Version]) {
        if history.is_empty() {
            return;
        }
        if self.middle.is_none() && self.keys > 0 && self.out.len() >= self.fits / 2 {
            self.middle = Some(Bytes::copy_from_slice(key));
        }
        self.keys += 1;
        put(&mut self.out, key);
        self.out.put_u32_le(u32::try_from(history.len()).unwrap_or(u32::MAX));
        for version in history {
            self.out.put_u64_le(version.ts.as_u64());
            self.out.put_u8(u8::from(version.value.is_some()));
            if let Some(value) = &version.value {
                put(&mut self.out, value);
            }
        }
    }
}

/// The store while something is copied from it.
pub(super) struct Copied<'a, E>(&'a Store<E>, RefCell<&'a mut Copying>);

impl<E: Engine> VersionStore for Copied<'_, E> {
    type Error = StoreError;

    fn changed_since(&self, key: &[u8], since: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.0.changed_since(key, since)
    }
    fn index_may_have_changed(&self, key: &[u8], since: Timestamp) -> bool {
        self.0.index_may_have_changed(key, since)
    }
    fn span_changed_since(
        &self,
        span: &protocol::txn::Span,
        since: Timestamp,
    ) -> Result<Option<(Bytes, Timestamp)>, StoreError> {
        self.0.span_changed_since(span, since)
    }
    fn is_present(&self, key: &[u8]) -> Result<bool, StoreError> {
        self.0.is_present(key)
    }
    fn write(&self, writes: &[Write], at: Timestamp, local: Timestamp) -> Result<(), StoreError> {
        let mut copying = self.1.borrow_mut();
        for write in writes {
            copying.note(&self.0.0, &write.key)?;
        }
        self.0.write(writes, at, local)
    }
    fn write_whole(&self, batch: &Arc<Batch>, at: Timestamp, local: Timestamp) -> Result<(), StoreError> {
        let mut copying = self.1.borrow_mut();
        let rest = &copying.rest;
        let from = batch.writes.partition_point(|write| write.key < rest.start);
        let to = batch.writes.partition_point(|write| write.key < rest.end).max(from);
        let writes = &batch.writes[from..to];
        let most = if copying.anew < ANEW_MAX { NOTED_MAX } else { usize::MAX };
        let looked_at: Vec<&Write> = match writes.len() > NOTED_MAX {
            true => copying.not_held(writes).take(most.saturating_add(1)).collect(),
            false => writes.iter().collect(),
        };
        match looked_at.len() > most {
            true => copying.overrun = true,
            false => {
                for write in looked_at {
                    copying.note(&self.0.0, &write.key)?;
                }
            }
        }
        self.0.write_whole(batch, at, local)
    }
}

impl Copying {
    /// The store for who writes to it while this goes on.
    pub(super) fn beside<'a, E>(&'a mut self, store: &'a Store<E>) -> Copied<'a, E> {
        Copied(store, RefCell::new(self))
    }
}

impl Snapshots {
    /// How often the copy of a range was begun anew by now. One that was given up says nothing of the next, a while later.
    fn times_anew(&mut self, group: GroupId, ticks: u64) -> u32 {
        self.anew.retain(|_, (_, last)| ticks.saturating_sub(*last) < TOO_LARGE_TICKS);
        self.anew.get(&group).map_or(0, |(times, _)| *times)
    }
}

impl<E: Engine> Core<E> {
    /// A replica needs the range as it is at a place of its log that is applied here, or later.
    pub(super) fn copy(&mut self, now: &Reading, group: GroupId, index: u64) -> Result<(), StoreError> {
        let ticks = self.ticks;
        self.snapshots.too_large.retain(|_, since| ticks.saturating_sub(*since) < TOO_LARGE_TICKS);
        let shard = self.shards.get(&range_of(group)).filter(|shard| shard.applied >= index);
        let halving = self.is_halving(range_of(group));
        let Some(shard) = shard.filter(|_| !halving && !self.snapshots.too_large.contains_key(&group)) else {
            self.log(now, Input::SnapshotFailed { group });
            return Ok(());
        };
        // What prepares hold is read at once, and would have all that is shown put in its places first.
        if !shard.range.prepared().is_empty() && self.store.0.place(PLACED_MAX) {
            self.log(now, Input::SnapshotFailed { group });
            return Ok(());
        }
        let splits = shard.led.is_some() && self.snapshots.unsplit != Some(group);
        let fits = if splits { self.options.limits.copied_bytes } else { usize::MAX };
        let mut copying = Copying::begin(group, &shard.range, shard.applied, &self.store.0, fits)?;
        if self.sabotage.copy_what_comes_later() {
            copying.at = Timestamp::MAX;
            copying.held.clear();
        }
        copying.anew = self.snapshots.times_anew(group, ticks);
        self.snapshots.copying = Some(copying);
        self.tick_copying(now)
    }

    pub(super) fn tick_copying(&mut self, now: &Reading) -> Result<(), StoreError> {
        // What is read here would else have it all put in its places first.
        if self.snapshots.copying.is_some() && self.store.0.place(PLACED_MAX) {
            return Ok(());
        }
        let Some(mut copying) = self.snapshots.copying.take() else { return Ok(()) };
        let (group, applied) = (copying.group, copying.applied);
        if copying.is_spoilt(&self.store.0) {
            // (What gives it up lets go of it, too: the count stays until the range is copied, or for a while.)
            if copying.overrun {
                self.snapshots.anew.insert(group, (copying.anew + 1, self.ticks));
            }
            self.log(now, Input::SnapshotFailed { group });
            return Ok(());
        }
        let whole = copying.go_on(&self.store.0, self.options.limits.copied_bytes_per_tick)?;
        let copied = copying.out.len();
        if whole {
            let bytes = Bytes::from(copying.out);
            let length = bytes.len() as u64;
            self.snapshots.outgoing.insert(group, bytes);
            self.snapshots.unsplit = None;
            self.snapshots.anew.remove(&group);
            self.log(now, Input::SnapshotTaken { group, index: applied, bytes: length });
        } else if let Some(at) = copying.middle.take_if(|_| copied > copying.fits) {
            // One at a time: two that cannot be split would else take each other's turn for ever, and neither be copied whole.
            if self.snapshots.halving.is_none() {
                self.counters.ranges_halved.one();
                self.snapshots.halving = Some(Halving { range: range_of(group), at, since: self.ticks });
            }
            self.log(now, Input::SnapshotFailed { group });
            self.halve(now)?;
        } else if copied as u64 > SNAPSHOT_BYTES_MAX {
            self.snapshots.too_large.insert(group, self.ticks);
            self.counters.snapshots_too_large.one();
            self.snapshots.unsplit = None;
            self.log(now, Input::SnapshotFailed { group });
        } else {
            self.snapshots.copying = Some(copying);
        }
        Ok(())
    }

    /// Invariant 3: whether the leader here is about to split a range.
    pub(super) fn is_halving(&self, range: RangeId) -> bool {
        self.snapshots.halving.as_ref().is_some_and(|halving| halving.range == range)
    }

    /// Splits the range that was too large, once nothing is undecided there; each tick, and when something was decided.
    pub(super) fn halve(&mut self, now: &Reading) -> Result<(), StoreError> {
        let Some(Halving { range, at, since }) = &self.snapshots.halving else { return Ok(()) };
        let (range, at, late) = (*range, at.clone(), self.ticks.saturating_sub(*since) > HALVING_TICKS);
        let Some(shard) = self.shards.get(&range).filter(|shard| shard.range.span().contains(&at)) else {
            (self.snapshots.halving, self.snapshots.unsplit) = (None, None);
            return Ok(());
        };
        if late || shard.led.is_none() {
            (self.snapshots.halving, self.snapshots.unsplit) = (None, Some(group_of(range)));
        } else if shard.range.prepared().is_empty()
            && let Ok(command) = self.plan_split(range, at)?
        {
            self.propose(now, None, range, command, Timestamp::MIN);
        }
        Ok(())
    }

    /// Nobody wants it any more.
    pub(super) fn end_copy(&mut self, group: GroupId) {
        self.snapshots.copying.take_if(|copying| copying.group == group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::txn::TxnId;
    use store::{MemoryEngine, Versions, VersionsConfig};

    fn at(us: u64) -> Timestamp {
        Timestamp::new(us, 0)
    }

    fn key(n: usize) -> Bytes {
        Bytes::from(format!("idx0{n:08}"))
    }

    /// How many deletions a copy knows of after a commit of so many keys, those from `held` on prepared when it began; `None`: it is begun anew.
    fn noted(held: std::ops::Range<usize>, anew: u32) -> Option<usize> {
        let versions = Arc::new(Versions::open(MemoryEngine::new(), VersionsConfig::default()).unwrap());
        let all = 0..3 * NOTED_MAX;
        let write = |n, since| Write { key: key(n), value: None, since };
        let store = Store(versions);
        // Of some keys there is a deletion.
        let graves: Vec<Write> = all.clone().step_by(100).map(|n| write(n, at(1))).collect();
        store.write(&graves, at(2), at(2)).unwrap();
        let range = Range::new(RangeId(1), protocol::txn::Span::ALL);
        let mut copying = Copying::begin(GroupId(1), &range, 1, &store.0, usize::MAX).unwrap();
        copying.at = at(3);
        copying.anew = anew;
        copying.held = held.map(|n| (key(n), Vec::new())).collect();
        let writes = all.map(|n| write(n, at(3))).collect();
        let batch = Arc::new(Batch { txn: TxnId { serial: 1, node: 1 }, writes, ..Batch::default() });
        copying.beside(&store).write_whole(&batch, at(4), at(4)).unwrap();
        (!copying.overrun).then_some(copying.graves.len())
    }

    #[test]
    fn how_often_a_copy_was_begun_anew_counts_for_its_range_and_for_a_while() {
        let mut snapshots = Snapshots::default();
        snapshots.anew.insert(GroupId(1), (ANEW_MAX, 100));
        snapshots.anew.insert(GroupId(2), (1, 500));
        assert_eq!([1, 2, 3].map(|group| snapshots.times_anew(GroupId(group), 600)), [ANEW_MAX, 1, 0]);
        assert_eq!([1, 2].map(|group| snapshots.times_anew(GroupId(group), 100 + TOO_LARGE_TICKS)), [0, 1]);
    }

    #[test]
    fn what_was_prepared_before_is_not_counted_among_what_is_to_be_looked_at() {
        let all = 3 * NOTED_MAX;
        assert_eq!(noted(0..0, 0), None);
        assert_eq!(noted(0..all, 0), Some(0));
        // Every hundredth of the others.
        assert_eq!(noted(100..all, 0), Some(1));
        assert_eq!(noted(NOTED_MAX..all, 0), Some(NOTED_MAX.div_ceil(100)));
        assert_eq!(noted(NOTED_MAX + 1..all, 0), None);
        assert_eq!(noted(0..0, ANEW_MAX), Some(all.div_ceil(100)));
    }
}

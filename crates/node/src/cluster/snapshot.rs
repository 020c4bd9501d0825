//! Snapshots of ranges: how a replica that lags, or is new, gets what the log does not have any more; and what a flush lets go of.
//!
//! # Idea
//! A snapshot is the range's state machine and all versions of its span, at one place of its log. The log core carries it in parts. What is installed goes the
//! way of everything else: into the overlay, in the order of time, and with the state and the applied place into one frozen layer. So it is durable as a
//! whole or not at all, in the order of what was frozen before (design 4a.9); the shell's next flush is asked for ([`super::Outputs::flush`]), and the
//! log core hears that it is installed when that is done. Until it is all in the overlay it goes there a slice at a time (`installing`).
//!
//! # Invariants
//! 1. What a replica holds of a range is a prefix of the range's history. So of each key only versions above its newest are added; a key of which the
//!    snapshot has nothing at the range's threshold, and this replica has a value, was deleted by then, and that was collected. It is deleted right behind that value, where nobody reads any more,
//!    whether it was written again above the threshold or not. Not at the threshold: what was prepared before may be decided later, and lies above the deletion only.
//! 2. A replica's state goes after the record of its removal is durable, not before: a restart that still finds the replica finds its state.
//! 3. The log keeps what is not flushed, and [`super::LogLimits::entries_kept`] entries more (or [`super::LogLimits::entry_bytes_kept`], where those are
//!    fewer), for replicas that lag a little. Where what is kept is written again, it is less, but for what a replica lacks that its leader has heard lately,
//!    so many bytes of all ranges together. Of a range that is idle as well.
//!
//! # Caveats
//! A snapshot is in memory at its leader, which copies it a slice at a time (`copying`), and at its receiver, as it came and then in the overlay. So larger ranges are split first.

use super::collect::Thresholds;
use super::copying::{Copying, Halving};
use super::core::{Core, group_of, range_of};
use super::installing::Installing;
use super::member::Member;
use super::rows::{Look, Lowest, Parts, Rows};
use super::state::{Kept, State};
use bytes::{Buf, BufMut, Bytes};
use clock::Reading;
use protocol::log::raft::{GroupId, Input, Record, RecordNumber, SnapshotTask};
use protocol::txn::{Range, RangeId, Span};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use store::{Engine, StoreError};

/// A greater range is not sent.
pub const SNAPSHOT_BYTES_MAX: u64 = 1 << 30;
/// A snapshot that was refused for the keys of another range is refused again without a look for so many ticks. Then it is looked at: the range may have been split
/// since, and what it lost may be here already.
const REFUSED_TICKS: u64 = 30;
/// So many bytes of a snapshot that came in are looked at in a tick, at most, or a row more: some 20 ms.
const LOOKED_AT_BYTES: usize = 8 << 20;
/// So often who freezes puts what was just shown in its places before he takes the core; then it is put there meanwhile.
const FREEZE_TRIES: usize = 8;
/// While more than so many bytes are staged, freezing is put off: they are written with each layer, once more.
const STAGED_PUT_OFF_BYTES: u64 = 8 << 20;
/// For so many ticks at most: a minute.
const PUT_OFF_TICKS_MAX: u64 = 600;
const VERSION: u8 = 1;

/// Why a layer is to be closed ([`Member::freeze`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreezeReason {
    /// It is time to, or somebody asks for it.
    Due,
    /// The disk has little room. What is staged, and written with the layer, would take more of it where it is more than what the log gives back.
    Tight,
    /// The disk has none; or nothing comes after it.
    Room,
}

/// What came of [`Member::freeze`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// There is a layer more.
    Layer,
    /// Nothing had changed, or a snapshot is half installed, of which a slice was.
    Nothing,
    /// Much is staged, and would be written with it: later.
    PutOff,
}

/// Snapshots on their way, and what was frozen.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    pub outgoing: BTreeMap<GroupId, Bytes>,
    /// What is being copied to go out.
    pub(super) copying: Option<Copying>,
    /// What was too large for that, and is split.
    pub(super) halving: Option<Halving>,
    /// What was not split in time: it is copied whole.
    pub(super) unsplit: Option<GroupId>,
    /// Ranges that were too large to be copied; and when, in ticks.
    pub too_large: BTreeMap<GroupId, u64>,
    incoming: BTreeMap<GroupId, Parts>,
    /// What is looked at before it is installed.
    looking: Option<Looking>,
    /// What is being installed.
    pub(super) current: Option<Installing>,
    /// Ranges whose copy was begun anew for a large commit: how often since one came to its end, and when last, in ticks.
    pub(super) anew: BTreeMap<GroupId, (u32, u64)>,
    /// Since when freezing is put off, in ticks.
    put_off_since: Option<u64>,
    /// What had been given out as records when a layer was closed last, bytes.
    logged_at_layer: u64,
    /// The keys of ranges whose snapshot was refused, as another range here still holds some of them; and when, in ticks.
    refused: BTreeMap<GroupId, (Span, u64)>,
    /// Installed in memory: the group (`None`: its replica was removed since), and the position of the layer that makes it durable.
    installing: Vec<(Option<GroupId>, u64)>,
    /// The part of a snapshot is in no layer that was closed, and nothing more comes of it: its replica was removed.
    half: bool,
    /// Bytes in the overlay that came from snapshots and are not durable: as told outside.
    pub(super) installed_bytes: Arc<AtomicUsize>,
    /// Ranges that a split made, and that are in no frozen layer yet: they wait for the next one, all for the same.
    made: Vec<RangeId>,
    /// Those that are: their groups begin here once the layer at this position is durable.
    creating: Vec<(RangeId, u64)>,
    /// What was frozen: the position, and of each range that had changed since the layer before what it had applied, and its thresholds of collection.
    frozen: VecDeque<(u64, Vec<(RangeId, u64)>, Arc<BTreeMap<RangeId, Thresholds>>)>,
    /// Ranges whose replica was removed, and the record that says so.
    doomed: Vec<(RecordNumber, RangeId)>,
    /// The last record given out.
    pub last_record: RecordNumber,
    pub written: Written,
    /// The log before the second may go once the first is durable: what was needed of it may have been written again.
    recycle: Option<(RecordNumber, RecordNumber)>,
    pub recyclable: RecordNumber,
    /// Of a broken rule.
    stale: Option<Bytes>,
}

/// A snapshot that is here, and of which nothing was written.
#[derive(Debug)]
struct Looking {
    group: GroupId,
    snapshot: Snapshot,
    thresholds: Thresholds,
    look: Look,
}

/// How many bytes were given out as records, up to which of them.
#[derive(Debug, Default)]
pub(crate) struct Written {
    bytes: u64,
    marks: VecDeque<(RecordNumber, u64)>,
}

impl Written {
    /// Between two marks, bytes.
    const STEP: u64 = 1 << 20;

    pub fn add(&mut self, records: &[Record]) {
        for record in records {
            self.bytes += record.bytes.len() as u64;
            if self.marks.back().is_none_or(|(_, at)| self.bytes - at >= Self::STEP) {
                self.marks.push_back((record.number, self.bytes));
            }
        }
    }

    /// Where more bytes than so many were written since a record: all before the one that is given should be written anew.
    pub fn too_old(&mut self, oldest: RecordNumber, kept: u64) -> Option<RecordNumber> {
        while self.marks.front().is_some_and(|(number, _)| *number < oldest) {
            self.marks.pop_front();
        }
        let (_, first) = self.marks.front()?;
        if self.bytes - first <= kept {
            return None;
        }
        let half = self.bytes - kept / 2;
        self.marks.iter().find(|(_, at)| *at >= half).or(self.marks.back()).map(|(number, _)| *number)
    }
}

/// A range as it was at a place of its log.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub range: Range,
    pub applied: u64,
    /// Every key, with its versions, oldest first; in key order.
    pub rows: Rows,
}

/// A text of bytes.
pub(super) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32_le(bytes.len() as u32);
    out.put_slice(bytes);
}

/// What comes before the number of keys.
pub(super) fn put_head(out: &mut Vec<u8>, applied: u64, range: &Range) {
    out.put_u8(VERSION);
    out.put_u64_le(applied);
    put(out, &range.encode());
}

impl Snapshot {
    /// `None`: it is damaged, or of a later form. Its rows were not looked at.
    pub fn decode(parts: Parts) -> Option<Snapshot> {
        let (version, applied, range, rows) = Rows::head(parts)?;
        let range = Range::decode(&range).ok().filter(|_| version == VERSION)?;
        Some(Snapshot { range, applied, rows })
    }
}

impl Snapshots {
    /// After a log that ends here.
    pub fn after(last_record: RecordNumber) -> Self {
        Snapshots { last_record, ..Snapshots::default() }
    }
}

impl<E: Engine> Core<E> {
    pub fn snapshot_task(&mut self, now: &Reading, task: SnapshotTask) -> Result<(), StoreError> {
        match task {
            SnapshotTask::Take { group, index } => {
                self.collect_before_snapshot(now, range_of(group));
                self.copy(now, group, index)?;
            }
            SnapshotTask::Read { group, offset, bytes } => {
                let part = self.snapshots.outgoing.get(&group).and_then(|whole| {
                    let from = usize::try_from(offset).ok().filter(|from| *from <= whole.len())?;
                    Some(whole.slice(from..whole.len().min(from.saturating_add(bytes))))
                });
                match part {
                    Some(bytes) => self.log(now, Input::SnapshotRead { group, offset, bytes }),
                    None => self.log(now, Input::SnapshotFailed { group }),
                }
            }
            SnapshotTask::Drop { group } => {
                self.end_copy(group);
                self.snapshots.outgoing.remove(&group);
            }
            SnapshotTask::Begin { group, bytes, .. } => {
                let refused = self.snapshots.refused.get(&group).is_some_and(|(span, since)| {
                    let fresh = self.ticks.saturating_sub(*since) < REFUSED_TICKS;
                    fresh && self.overlaps_another(range_of(group), span)
                });
                if refused || bytes > SNAPSHOT_BYTES_MAX {
                    self.log(now, Input::SnapshotFailed { group });
                } else {
                    self.snapshots.refused.remove(&group);
                    self.snapshots.incoming.insert(group, Parts::default());
                }
            }
            SnapshotTask::Write { group, offset, bytes } => {
                match self.snapshots.incoming.get_mut(&group).filter(|came| came.remaining() as u64 == offset) {
                    Some(came) => came.push(bytes),
                    None => self.log(now, Input::SnapshotFailed { group }),
                }
            }
            SnapshotTask::Install { group, index } => self.install(now, group, index)?,
            SnapshotTask::Abandon { group } => drop(self.snapshots.incoming.remove(&group)),
        }
        Ok(())
    }

    fn install(&mut self, now: &Reading, group: GroupId, index: u64) -> Result<(), StoreError> {
        let range = range_of(group);
        let parts = self.snapshots.incoming.remove(&group).unwrap_or_default();
        let snapshot =
            Snapshot::decode(parts).filter(|snapshot| (snapshot.applied, snapshot.range.id()) == (index, range));
        let Some(snapshot) = snapshot else {
            self.log(now, Input::SnapshotFailed { group });
            return Ok(());
        };
        let (look, thresholds) = (Look::at(&snapshot.rows), Thresholds::of(&snapshot.range));
        self.snapshots.looking = Some(Looking { group, snapshot, thresholds, look });
        self.tick_looking(now)
    }

    /// Looks at the next slice of a snapshot that is here, if there is one; at its end it is installed, or refused.
    pub(super) fn tick_looking(&mut self, now: &Reading) -> Result<(), StoreError> {
        let Some(mut looking) = self.snapshots.looking.take() else { return Ok(()) };
        let thresholds = &looking.thresholds;
        match looking.look.go_on(LOOKED_AT_BYTES, |index| thresholds.of_index(index)) {
            None => {
                self.snapshots.looking = Some(looking);
                Ok(())
            }
            Some(false) => {
                self.log(now, Input::SnapshotFailed { group: looking.group });
                Ok(())
            }
            Some(true) => self.install_sound(now, looking.group, looking.snapshot, &looking.look.lowest),
        }
    }

    fn install_sound(
        &mut self,
        now: &Reading,
        group: GroupId,
        snapshot: Snapshot,
        lowest: &Lowest,
    ) -> Result<(), StoreError> {
        let range = range_of(group);
        if let Some(place) = self.split_in_log(&snapshot.range) {
            self.log(now, Input::SnapshotFailed { group });
            self.log(now, Input::Known { group, index: place });
            self.counters.splits_caught_up.one();
            return Ok(());
        }
        // See `split`, invariant 4. The other range may need a snapshot itself, and there is one place for them: it is not taken in vain again.
        if self.overlaps_another(range, snapshot.range.span()) {
            self.snapshots.refused.insert(group, (snapshot.range.span().clone(), self.ticks));
            let span = snapshot.range.span().clone();
            self.wake_overlapping(now, range, &span);
            self.log(now, Input::SnapshotFailed { group });
            return Ok(());
        }
        let known = self.options.versions.contains(&snapshot.range.version());
        if !known || !self.may_take(group, &snapshot.range, lowest) {
            self.log(now, Input::SnapshotFailed { group });
            return Ok(());
        }
        let Snapshot { range: state, applied, rows } = snapshot;
        self.begin_installing(group, state, applied, rows);
        self.tick_installing()
    }

    /// All of a snapshot is in the layer that was closed last: it is installed when that is durable.
    pub(super) fn is_frozen_with(&mut self, group: GroupId) {
        self.snapshots.installing.push((Some(group), self.count));
    }

    /// A split made a range: its group begins here when that is durable.
    pub fn create_when_durable(&mut self, range: RangeId) {
        self.snapshots.made.push(range);
        self.out.flush = true;
    }

    /// Freezes the versions together with the state of all ranges. Not while a snapshot is half installed (`installing`, invariant 1).
    pub fn freeze(&mut self) -> bool {
        if self.snapshots.current.is_some() && !self.sabotage.close_half_a_snapshot() {
            return false;
        }
        let state: Vec<Kept<'_>> = self.shards.values().map(|shard| Kept::of(shard)).collect();
        let mut state = State::encode(self.options.cluster, self.me().0, self.incarnation, &state);
        if self.sabotage.state_apart() {
            let fresh = state.clone();
            state = self.snapshots.stale.replace(fresh).unwrap_or(state);
        }
        let frozen = self.store.0.freeze(self.count, state);
        let made = std::mem::take(&mut self.snapshots.made);
        self.snapshots.creating.extend(made.into_iter().map(|range| (range, self.count)));
        if !frozen {
            return false;
        }
        if std::mem::take(&mut self.snapshots.half) {
            self.snapshots.installing.push((None, self.count));
        }
        let (mut applied, mut thresholds) = (Vec::new(), BTreeMap::new());
        for (range, shard) in &mut self.shards {
            if shard.frozen.replace(shard.applied) != Some(shard.applied) {
                applied.push((*range, shard.applied));
                thresholds.insert(*range, Thresholds::of(&shard.range));
            }
        }
        self.snapshots.frozen.push_back((self.count, applied, Arc::new(thresholds)));
        self.snapshots.logged_at_layer = self.snapshots.written.bytes;
        true
    }

    /// The engine has something more: what the log had for it may go, and snapshots that waited are installed.
    pub fn flushed(&mut self, now: &Reading) {
        let flushed = self.store.0.flushed_position();
        let (done, waiting) =
            std::mem::take(&mut self.snapshots.installing).into_iter().partition(|(_, at)| *at <= flushed);
        self.snapshots.installing = waiting;
        let done: Vec<(Option<GroupId>, u64)> = done;
        for group in done.into_iter().filter_map(|(group, _)| group) {
            self.log(now, Input::SnapshotInstalled { group });
        }
        if self.snapshots.installing.is_empty() && self.snapshots.current.is_none() && !self.snapshots.half {
            self.snapshots.installed_bytes.store(0, SeqCst);
        }
        let creating = std::mem::take(&mut self.snapshots.creating).into_iter();
        let (ready, waiting) = creating.partition(|(_, at)| *at <= flushed);
        self.snapshots.creating = waiting;
        let ready: Vec<(RangeId, u64)> = ready;
        ready.into_iter().for_each(|(range, _)| self.create_group(now, range));
        let mut durable = BTreeSet::new();
        while self.snapshots.frozen.front().is_some_and(|(position, ..)| *position <= flushed) {
            let Some((_, applied, thresholds)) = self.snapshots.frozen.pop_front() else { break };
            self.thresholds_flushed(&thresholds);
            for (range, applied) in applied {
                // (Of a replica that was removed since it says nothing of the one that came after it.)
                let shard = self.shards.get_mut(&range);
                if let Some(shard) = shard.filter(|shard| shard.frozen.is_some_and(|frozen| frozen >= applied)) {
                    shard.flushed = applied;
                    durable.insert(range);
                }
            }
        }
        let (oldest, last) = (self.replicas.oldest_record(), self.snapshots.last_record);
        let by_number = (last.0.saturating_sub(oldest.0) > self.options.limits.records_kept)
            .then(|| RecordNumber(last.0 - self.options.limits.records_kept / 2));
        let by_bytes = self.snapshots.written.too_old(oldest, self.options.limits.record_bytes_kept);
        let below = by_number.max(by_bytes);
        let kept = self.options.limits.entries_kept;
        // All that is kept may be written again, what idle ranges have kept since before, too.
        let cut: Vec<(RangeId, u64)> = match below {
            Some(_) => self.shards.iter().map(|(range, shard)| (*range, shard.flushed)).collect(),
            None => durable.into_iter().filter_map(|range| Some((range, self.shards.get(&range)?.flushed))).collect(),
        };
        let mut more = below.map(|_| self.options.limits.entry_bytes_kept);
        for (range, flushed) in cut {
            let large = self.kept_from(group_of(range), more.as_mut());
            let index = flushed.saturating_sub(kept).max(large.unwrap_or(0)).min(flushed);
            let has = self.replicas.status(group_of(range)).is_some_and(|status| status.truncated < index);
            if has {
                self.log(now, Input::Truncate { group: group_of(range), index });
            }
        }
        if let Some(below) = below {
            self.log(now, Input::Carry { below });
        }
        self.recycle_later = true;
    }

    /// The place after which entries are kept for replicas that lag, by their bytes. Where they are written again: with so many bytes more than
    /// elsewhere, at most, of all ranges together, which are counted down.
    fn kept_from(&self, group: GroupId, more: Option<&mut usize>) -> Option<u64> {
        let limits = &self.options.limits;
        let Some(more) = more else { return self.replicas.place_before(group, limits.entry_bytes_kept) };
        let most = limits.carried_bytes.saturating_add(*more).min(limits.entry_bytes_kept);
        let furthest = self.replicas.place_before(group, most)?;
        let near = self.replicas.place_before(group, limits.carried_bytes)?.max(furthest);
        // Who puts entries off, as memory is full there, lags for just the time in which they are many: a copy of the range would be more for it.
        let from = self.replicas.least_matched(group, furthest).map_or(near, |lacked| lacked.min(near));
        let beyond = self.replicas.bytes_after(group, from).saturating_sub(self.replicas.bytes_after(group, near));
        *more = more.saturating_sub(beyond);
        Some(from)
    }

    /// After the log core was drained: what it wrote again is given out, and not durable yet.
    pub fn look_at_oldest(&mut self) {
        if std::mem::take(&mut self.recycle_later) {
            let (last, oldest) = (self.snapshots.last_record, self.replicas.oldest_record());
            self.snapshots.recycle.get_or_insert((last, oldest));
        }
    }

    /// The leader says that the replica here is a member no more.
    pub fn removed(&mut self, now: &Reading, group: GroupId) {
        self.log(now, Input::Remove { group });
        self.end_copy(group);
        self.snapshots.anew.remove(&group);
        self.snapshots.outgoing.remove(&group);
        self.snapshots.incoming.remove(&group);
        // Another replica may come, and be given another snapshot, before the layer with this one's is durable. Until then its bytes are in memory.
        for (installed, _) in &mut self.snapshots.installing {
            installed.take_if(|installed| *installed == group);
        }
        // Its record is given out next.
        let record = RecordNumber(self.snapshots.last_record.0 + 1);
        self.snapshots.looking.take_if(|looking| looking.group == group);
        match self.snapshots.current.as_mut().filter(|installing| installing.group() == group) {
            Some(_) if self.sabotage.forget_half_a_snapshot() => self.snapshots.current = None,
            Some(installing) => installing.end_with(record),
            None => {}
        }
        self.snapshots.doomed.push((record, range_of(group)));
    }

    /// Invariant 2; and what of the log may go.
    pub fn durable(&mut self, durable: RecordNumber) {
        self.snapshots.half |= self.snapshots.current.take_if(|installing| installing.is_over(durable)).is_some();
        if let Some((_, oldest)) = self.snapshots.recycle.take_if(|(needed, _)| *needed <= durable) {
            self.snapshots.recyclable = self.snapshots.recyclable.max(oldest);
        }
        let over: Vec<(RecordNumber, RangeId)> =
            self.snapshots.doomed.extract_if(.., |(record, _)| *record <= durable).collect();
        for (_, range) in over {
            if self.replicas.status(group_of(range)).is_none() {
                self.shards.remove(&range);
                self.no_replica(range);
            }
        }
    }
}

impl<E: Engine> Member<E> {
    /// Freezes the versions in memory together with the state of all ranges, ready for [`store::Versions::flush`]. What is shown is put in its places before, while others go on.
    pub fn freeze(&self, reason: FreezeReason) -> Frozen {
        let mut core = self.lock();
        for _ in 0..FREEZE_TRIES {
            if !self.versions().place(0) {
                break;
            }
            drop(core);
            self.versions().place(usize::MAX);
            core = self.lock();
        }
        if let Err(why) = core.tick_installing() {
            core.trouble = Some(why);
            return Frozen::Nothing;
        }
        if core.puts_off_freeze(reason) {
            return Frozen::PutOff;
        }
        let frozen = core.freeze();
        // Who asks flushes what there is.
        core.out.flush &= core.snapshots.current.is_some();
        if frozen { Frozen::Layer } else { Frozen::Nothing }
    }
}

impl<E: Engine> Core<E> {
    /// Whether no layer is closed now, as what is staged would be written with it, once more each time. Never where a layer is as large as one should be, or memory or disk are scarce (and the log gives back as much of the disk as is staged, if there is some left):
    /// parts may wait for just that, and all who write would wait for it once it had become one large layer. And not for long.
    fn puts_off_freeze(&mut self, reason: FreezeReason) -> bool {
        let staged = self.staged_here();
        // Somebody waits for the layer.
        let waits = !self.snapshots.made.is_empty() || self.snapshots.half || self.snapshots.current.is_some();
        let logged = self.snapshots.written.bytes - self.snapshots.logged_at_layer;
        let tight = reason == FreezeReason::Tight && logged >= staged;
        let room = reason == FreezeReason::Room || self.disk_full || tight;
        let scarce = || room || self.store.0.freeze_due() || self.is_crowded_for_parts();
        if staged <= STAGED_PUT_OFF_BYTES || waits || self.closed || scarce() {
            self.snapshots.put_off_since = None;
            return false;
        }
        let since = *self.snapshots.put_off_since.get_or_insert(self.ticks);
        if self.ticks - since < PUT_OFF_TICKS_MAX {
            return true;
        }
        self.snapshots.put_off_since = None;
        false
    }
}

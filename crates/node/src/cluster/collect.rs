//! Collection of the past: how far it may go in each range, and here (design 4a.8).
//!
//! # Idea
//! How long the past is kept is said by the shell, from its retention ([`Member::collect`]). The leader of a range limits that by the oldest snapshot
//! that anybody is known to have open, and logs it: below the logged threshold nothing can be read or certified, at no replica. Each
//! replica then forgets when it likes, up to what its ranges' thresholds allow ([`Member::collectable`]).
//!
//! Gateways say with a message which is the oldest snapshot that their transactions have open. It protects what it sees for [`HELD_TICKS`]; then it has
//! to be said again.
//!
//! # Invariants
//! 1. Nothing that a snapshot at or above the logged threshold of a range sees is forgotten by any of its replicas, nor a deletion above it: so certification
//!    says the same whoever has forgotten what. A read below fails, with the oldest that can be read.
//! 2. A store has one threshold for all of its ranges. It lies at or below that of each, as it was when the state was flushed from which a replay
//!    begins; or below what is closed in a range in which nothing lies above its threshold: nothing is forgotten there. So idle ranges need no records.
//! 3. A range that comes in a snapshot with a threshold below the store's, or below what the shell was given for it, is not taken. Until it comes with a higher one, which its leader is made to
//!    log by the same, the store's is not raised. One that is here already is always taken: by invariant 2 the store's lies below its threshold, or below what was closed for it, and
//!    so below all that its log still brings. (Its leader may need this very replica to log anything.)
//! 4. One in which nothing lies between its threshold and the store's, nor will, is taken, too: what was forgotten there was never in it. It is the same need: where a founder of what
//!    was split off has no replica of it yet, and another founder died, its leader logs nothing without this store, which would refuse the range for ever. So that it stays like that, the
//!    store's threshold is not raised while a replica here is blank, nor, for a while, where a snapshot jumped over a split: what was split off is about to be offered.
//!
//! # Caveats
//! A node that begins knows nobody's snapshots: for [`QUIET_TICKS`] it raises nothing.

use super::core::{Core, group_of, range_of};
use super::member::Member;
use super::rows::Lowest;
use super::seam::{Class, NodeId};
use super::shard::Shard;
use clock::{Reading, Timestamp};
use protocol::door::Body;
use protocol::log::raft::GroupId;
use protocol::txn::{Apart, Command, Range, RangeId, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::Engine;
use store::versions::{APART_MAX, Threshold};

/// Ticks between two words of a gateway about its oldest snapshot.
const SAY_TICKS: u64 = 10;
/// A word that was not said again for so many ticks holds nothing back.
const HELD_TICKS: u64 = 50;
/// A node raises nothing in its first ticks: by then everybody has spoken.
const QUIET_TICKS: u64 = 2 * SAY_TICKS;
/// A range that was not taken holds the threshold here for so many ticks, at most, until it comes again.
const AWAITED_TICKS: u64 = 600;
/// A range in which nothing was written since its last threshold gets another when that is this part of the retention later.
const IDLE_PART: u64 = 4;

/// The thresholds of a range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Thresholds {
    common: Timestamp,
    apart: BTreeMap<[u8; 4], Timestamp>,
}

impl Thresholds {
    pub fn of(range: &Range) -> Self {
        Thresholds { common: range.collected(), apart: range.apart().clone() }
    }
    pub(super) fn of_index(&self, index: [u8; 4]) -> Timestamp {
        self.apart.get(&index).copied().unwrap_or(self.common)
    }
    fn lowest(&self) -> Timestamp {
        self.apart.values().copied().fold(self.common, Timestamp::min)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Collection {
    /// The snapshots that transactions of this node have open.
    open: BTreeMap<Timestamp, usize>,
    /// The oldest of other nodes, and when they said so, in ticks.
    held: BTreeMap<NodeId, (Timestamp, u64)>,
    /// What the shell said last.
    wanted: Threshold,
    /// How long the past of what is kept shortest is kept by that, microseconds; `None`: nothing was said yet.
    kept_us: Option<u64>,
    /// What was given to the shell last, which may act by it at any time; and when, in ticks, unless it is to be looked at again.
    given: Threshold,
    given_tick: Option<u64>,
    /// Ranges that were not taken for their threshold, and when.
    awaited: BTreeMap<GroupId, u64>,
}

impl Collection {
    pub fn open(&mut self, snapshot: Timestamp) {
        *self.open.entry(snapshot).or_default() += 1;
    }
    pub fn close(&mut self, snapshot: Timestamp) {
        if let Some(count) = self.open.get_mut(&snapshot) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(&snapshot);
            }
        }
    }
    pub fn moved(&mut self, from: Timestamp, to: Timestamp) {
        self.open(to);
        self.close(from);
    }
    /// A snapshot that nobody asked to be of the past is at most so old, microseconds: half of what is kept, so that nothing is collected on the way to it.
    pub fn age_us_max(&self) -> u64 {
        self.kept_us.map_or(u64::MAX, |kept_us| kept_us / 2)
    }
    pub fn taken(&mut self, group: GroupId) {
        self.awaited.remove(&group);
    }
}

/// Whether a range holds keys of an index.
fn holds(span: &Span, index: [u8; 4]) -> bool {
    let next = u32::from_be_bytes(index).checked_add(1).map(|next| next.to_be_bytes().to_vec());
    span.overlaps(&Span::new(index.to_vec(), next.unwrap_or_default()))
}

/// Invariant 4: nothing of a range lies above its thresholds and not above these, nor will: timestamps of a log rise, and what is prepared may be decided for any time from then on.
fn is_spared(range: &Range, lowest: &Lowest, own: &Thresholds) -> bool {
    let highest = own.apart.values().copied().fold(own.common, Timestamp::max);
    let to_come = range.prepared().values().map(|prepared| prepared.at).fold(range.applied(), Timestamp::min);
    to_come >= highest && lowest.iter().all(|(index, lowest)| *lowest > own.of_index(*index))
}

impl<E: Engine> Core<E> {
    pub fn heard_oldest(&mut self, from: NodeId, oldest: Timestamp) {
        let ticks = self.ticks;
        self.collection.held.insert(from, (oldest, ticks));
    }

    pub fn tick_collection(&mut self, now: &Reading) {
        let ticks = self.ticks;
        self.collection.held.retain(|_, (_, said)| ticks.saturating_sub(*said) <= HELD_TICKS);
        let shards = &self.shards;
        let awaited = |group: &GroupId, since: u64| {
            ticks.saturating_sub(since) <= AWAITED_TICKS && !shards.contains_key(&range_of(*group))
        };
        self.collection.awaited.retain(|group, since| awaited(group, *since));
        let oldest = self.collection.open.keys().next().copied();
        if let Some(oldest) = oldest.filter(|_| ticks.is_multiple_of(SAY_TICKS)) {
            let me = self.me();
            let others: BTreeSet<NodeId> = self.routes.nodes().filter(|node| *node != me).collect();
            for node in others {
                self.send(now, node, Class::Request, Body::Oldest { snapshot: oldest }, None);
            }
        }
    }

    /// The oldest snapshot that is known to be open anywhere; `None`: it is too early to say.
    fn oldest_open(&self) -> Option<Timestamp> {
        let own = self.collection.open.keys().next().copied();
        let held = self.collection.held.values().map(|(oldest, _)| *oldest).min();
        let oldest = own.into_iter().chain(held).min().unwrap_or(Timestamp::MAX);
        (self.ticks >= QUIET_TICKS).then_some(oldest)
    }

    /// Proposes thresholds in the ranges that are led here.
    fn collect(&mut self, now: &Reading, mut wanted: Threshold) {
        let highest = wanted.apart.iter().map(|apart| apart.threshold).fold(wanted.common, Ord::max);
        let earliest_us = now.interval.earliest().physical_us();
        self.collection.kept_us = Some(earliest_us.saturating_sub(highest.physical_us()));
        let Some(oldest) = self.oldest_open() else { return };
        if wanted.apart.len() > APART_MAX {
            // All are kept as long as any of them, rather than one too short.
            let least = wanted.apart.iter().map(|apart| apart.threshold).fold(wanted.common, Ord::min);
            wanted = least.into();
        }
        wanted.common = wanted.common.min(oldest);
        wanted.apart.iter_mut().for_each(|apart| apart.threshold = apart.threshold.min(oldest));
        let led = self.shards.iter().filter(|(_, shard)| shard.led.is_some());
        let due = led.filter(|(_, shard)| shard.is_collect_due(&wanted, now.interval.earliest()));
        let due: Vec<RangeId> = due.map(|(range, _)| *range).collect();
        for range in due {
            self.log_threshold(now, range, &wanted);
        }
        self.collection.wanted = wanted;
        self.collection.given_tick = None;
    }

    fn log_threshold(&mut self, now: &Reading, range: RangeId, wanted: &Threshold) {
        let Some(shard) = self.shards.get_mut(&range) else { return };
        shard.collect_logged = shard.written;
        // Nothing that is still to be proposed lies at or below it. What is prepared may be decided at or below it: it is the newest of its keys then, and stays.
        let applied = shard.range.applied();
        let of = |apart: &store::versions::Apart| Apart {
            index: apart.index,
            class: apart.class,
            threshold: apart.threshold.min(applied),
        };
        let span = shard.range.span().clone();
        let apart = wanted.apart.iter().filter(|apart| holds(&span, apart.index)).map(of).collect();
        let command = Command::Collect { threshold: wanted.common.min(applied), apart };
        self.propose(now, None, range, command, Timestamp::MIN);
    }

    /// A snapshot of a range is asked for: whoever gets it may have forgotten more than it allows (invariant 3).
    pub fn collect_before_snapshot(&mut self, now: &Reading, range: RangeId) {
        let wanted = self.collection.wanted.clone();
        let led = self.shards.get(&range).filter(|shard| shard.led.is_some());
        if led.is_some_and(|shard| shard.range.collected() < wanted.common.min(shard.range.applied())) {
            self.log_threshold(now, range, &wanted);
        }
    }

    /// Invariants 3 and 4: whether a range with these thresholds and rows may be taken, of which these are the lowest timestamps above its thresholds. If not it is awaited.
    pub(super) fn may_take(&mut self, group: GroupId, range: &Range, lowest: &Lowest) -> bool {
        let (versions, given, state) = (&self.store.0, &self.collection.given, Thresholds::of(range));
        let store =
            Thresholds { common: versions.collected(), apart: versions.collected_apart().into_iter().collect() };
        let apart = given.apart.iter().map(|apart| (apart.index, apart.threshold)).collect();
        let given = Thresholds { common: given.common, apart };
        let reaches = |own: &Thresholds| {
            let indexes = own.apart.keys().chain(state.apart.keys()).filter(|index| holds(range.span(), **index));
            let mut indexes = indexes.copied();
            state.common >= own.common && indexes.all(|index| state.of_index(index) >= own.of_index(index))
        };
        let spared = |own: &Thresholds| !self.sabotage.refuse_what_was_spared() && is_spared(range, lowest, own);
        let fits = self.shards.contains_key(&range.id())
            || [&store, &given].into_iter().all(|own| reaches(own) || spared(own));
        if !fits {
            let ticks = self.ticks;
            self.collection.awaited.insert(group, ticks);
            self.counters.snapshots_too_old.one();
        }
        fits
    }

    /// Invariant 4: a snapshot replaces a range's state here. What was split off in between is awaited, if it did not come.
    pub fn jumps_over(&mut self, after: &Range) {
        let Some(before) = self.shards.get(&after.id()) else { return };
        let known: BTreeSet<RangeId> = before.range.heirs().collect();
        for heir in after.heirs().filter(|heir| !known.contains(heir) && !self.shards.contains_key(heir)) {
            self.collection.awaited.insert(group_of(heir), self.ticks);
        }
    }

    /// Invariant 4: a replica here has nothing of its range yet.
    fn has_blank(&self) -> bool {
        self.replicas.groups().any(|group| !self.shards.contains_key(&range_of(group)))
    }

    /// Invariant 2, of one range: as far as the store may go, but for indexes of which less is said.
    fn allows(&self, range: RangeId, shard: &Shard) -> Thresholds {
        let mut kept = shard.collected.clone();
        if shard.written > kept.lowest() || !shard.range.prepared().is_empty() {
            return kept;
        }
        if let Some((closed, _)) =
            self.replicas.closed(group_of(range)).filter(|(_, applied)| *applied <= shard.applied)
        {
            kept.common = kept.common.max(closed);
            kept.apart.values_mut().for_each(|at| *at = closed.max(*at));
        }
        kept
    }

    /// As far as this store may forget; `None`: it is too early to say, or a range is awaited.
    fn collectable(&mut self) -> Option<Threshold> {
        let oldest = self.oldest_open()?;
        if !self.collection.awaited.is_empty() || self.snapshots.copying.is_some() {
            return None;
        }
        // Ten thousand ranges are not looked at each time that somebody asks.
        let every = self.look_ticks(SAY_TICKS);
        let later = self.collection.given_tick.is_none_or(|tick| self.ticks.saturating_sub(tick) >= every);
        let all = self.collection.given_tick.is_some() && self.collection.given == self.collection.wanted;
        if later && !all && !self.has_blank() {
            self.collection.given = self.allowed(oldest);
            self.collection.given_tick = Some(self.ticks);
        }
        Some(self.collection.given.clone())
    }

    fn allowed(&self, oldest: Timestamp) -> Threshold {
        let mut wanted = self.collection.wanted.clone();
        if self.sabotage.collect_unlogged() {
            return wanted;
        }
        let all: Vec<(&Span, Thresholds)> =
            self.shards.iter().map(|(range, shard)| (shard.range.span(), self.allows(*range, shard))).collect();
        let limit = |of: &dyn Fn(&Thresholds) -> Timestamp, concerns: &dyn Fn(&Span) -> bool| {
            let concerned = all.iter().filter(|(span, _)| concerns(span));
            concerned.map(|(_, kept)| of(kept)).fold(oldest, Timestamp::min)
        };
        wanted.common = wanted.common.min(limit(&|kept| kept.common, &|_| true));
        for apart in &mut wanted.apart {
            let index = apart.index;
            let limit = limit(&|kept| kept.of_index(index), &|span| holds(span, index));
            apart.threshold = apart.threshold.min(limit);
        }
        wanted
    }

    /// A layer was flushed: from it a replay begins, so what its ranges' thresholds were counts from now on.
    pub fn thresholds_flushed(&mut self, thresholds: &Arc<BTreeMap<RangeId, Thresholds>>) {
        for (range, flushed) in thresholds.iter() {
            if let Some(shard) = self.shards.get_mut(range) {
                shard.collected = flushed.clone();
            }
        }
    }
}

impl Shard {
    /// Whether a threshold as wanted is worth a record: something lies between the last one and it, and was written since that was
    /// logged, or would be all below, or it is long ago.
    fn is_collect_due(&self, wanted: &Threshold, now: Timestamp) -> bool {
        let span = self.range.span();
        let apart = wanted.apart.iter().filter(|apart| holds(span, apart.index));
        let apart = apart.map(|apart| (self.range.collected_of(&apart.index), apart.threshold));
        [(self.range.collected(), wanted.common)].into_iter().chain(apart).any(|(last, next)| {
            let retention_us = now.physical_us().saturating_sub(next.physical_us());
            let later_us = next.physical_us().saturating_sub(last.physical_us());
            let due = self.written > self.collect_logged || next >= self.written || later_us > retention_us / IDLE_PART;
            last < next && last < self.written && due
        })
    }
}

impl<E: Engine> Member<E> {
    /// The shell says, now and then, from which timestamp on the past is to be kept: in ranges that are led here that is logged, as far as the snapshots
    /// allow that are known to be open, and where there is something to forget. Take the outputs. Afterwards what [`Member::collectable`] gives may be
    /// forgotten.
    pub fn collect(&self, now: &Reading, threshold: impl Into<Threshold>) {
        let mut core = self.lock();
        core.collect(now, threshold.into());
        // A store that fails says so at the next step.
        let _ = core.run(now);
    }

    /// Below this nobody can read a key, as the log of its range says at the place that is applied here; `None`: no replica here has it.
    pub fn collected_of(&self, key: &[u8]) -> Option<Timestamp> {
        let core = self.look();
        let of = core.shards.values().find(|shard| shard.range.span().contains(key));
        of.map(|shard| shard.range.collected_of(key))
    }

    /// The threshold for [`store::Versions::collect`], which may be called by another thread; `None`: nothing may be forgotten now.
    pub fn collectable(&self) -> Option<Threshold> {
        self.look().collectable()
    }
}

//! A member opens: its state, its log, the replicas that the cluster begins with.

use super::collect::Collection;
use super::core::{Core, group_of};
use super::follow::ResolvedHere;
use super::gateway::Gateway;
use super::gather::Gathering;
use super::holds::Holds;
use super::member::{Member, NODE_MAX};
use super::post::Post;
use super::routes::Routes;
use super::seam::{ClusterOptions, Founding, NodeId, Outputs};
use super::shard::Shard;
use super::silence::Silence;
use super::snapshot::Snapshots;
use super::split::FOUNDED;
use super::staged::StagedHere;
use super::state::{Kept, State};
use super::version::unknown;
use crate::core::damaged;
use crate::counters::Counters;
use crate::references::References;
use crate::sabotage::Sabotage;
use crate::timeline::Timeline;
use crate::versions::Store;
use crate::watch::Watch;
use bytes::Bytes;
use clock::{HybridClock, Reading, Timestamp};
use protocol::log::raft::{self, GroupId, Member as Seat, Options, RecordNumber, Recovery, ReplicaId};
use protocol::txn::{LockTable, Range, RangeId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use store::{Engine, StoreError, Versions};

/// A member on its way: [`Opening::replay`] each record of the log, then [`Opening::finish`].
pub struct Opening<E> {
    options: ClusterOptions,
    versions: Arc<Versions<E>>,
    state: State,
    count: u64,
    clock: Arc<HybridClock>,
    recovery: Recovery,
    last_record: RecordNumber,
    sabotage: Arc<Sabotage>,
}

fn not_ours(what: String) -> StoreError {
    StoreError::Failed { doing: "opening the store of a cluster's member", cause: what }
}

impl<E: Engine> Opening<E> {
    /// Begins: reads the state that the versions carry, and makes this life's incarnation durable.
    ///
    /// # Errors
    /// The state is damaged, or another cluster's or node's; the engine failed.
    pub fn new(options: ClusterOptions, versions: Arc<Versions<E>>, now: &Reading) -> Result<Self, StoreError> {
        Self::with(options, versions, now, Sabotage::default())
    }

    /// As [`Opening::new`], with rules to break in tests.
    ///
    /// # Errors
    /// As [`Opening::new`].
    pub fn with(
        mut options: ClusterOptions,
        versions: Arc<Versions<E>>,
        now: &Reading,
        sabotage: Sabotage,
    ) -> Result<Self, StoreError> {
        options.node_options.node = options.node.0;
        options.node_options.alone = false;
        let recovered = versions.recovered().clone();
        versions.begin_replay();
        let mut state = State::decode(&recovered.state)?;
        if state.cluster == 0 {
            (state.cluster, state.node) = (options.cluster, options.node.0);
        }
        if (state.cluster, state.node) != (options.cluster, options.node.0) {
            let (cluster, node) = (state.cluster, state.node);
            return Err(not_ours(format!("it belongs to node n{node} of cluster {cluster:x}")));
        }
        if options.node.0 == 0 || options.cluster == 0 || options.ranges.iter().any(|founding| founding.range.0 == 0) {
            return Err(not_ours("clusters, nodes and ranges are numbered from 1".to_owned()));
        }
        if options.node.0 > NODE_MAX {
            return Err(not_ours(format!("nodes are numbered up to {NODE_MAX}")));
        }
        if let Some((range, shard)) = state.shards.iter().find(|(_, s)| !options.versions.contains(&s.range.version()))
        {
            return Err(unknown(range, shard.range.version(), &options.versions));
        }
        if !sabotage.reuse_ids() {
            state.incarnation += 1;
        }
        let count = recovered.position + 1;
        let kept: Vec<Kept<'_>> = state.shards.values().map(|shard| Kept::of(shard)).collect();
        versions.freeze(count, State::encode(state.cluster, state.node, state.incarnation, &kept));
        while versions.frozen_layers() > 0 {
            if !versions.flush()? {
                return Err(not_ours("the engine has to merge first: try again".to_owned()));
            }
        }
        let clock = Arc::new(HybridClock::new(recovered.max_ts));
        let _ = now;
        let seed = options.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(state.incarnation);
        let recovery = Recovery::new(Options::new(options.node.store(), seed), clock.clone());
        let last_record = RecordNumber(0);
        Ok(Opening { options, versions, state, count, clock, recovery, last_record, sabotage: Arc::new(sabotage) })
    }

    /// One record of the log, in order, from the first that is there.
    ///
    /// # Errors
    /// It is damaged, or one before it is missing.
    pub fn replay(&mut self, position: u64, record: &Bytes) -> Result<(), StoreError> {
        self.last_record = RecordNumber(position);
        self.recovery.record(RecordNumber(position), record).map_err(|why| damaged(format!("record {position}: {why}")))
    }

    /// The log has no more records: opens. Take the outputs.
    ///
    /// # Errors
    /// State and log do not fit.
    pub fn finish(self, now: &Reading) -> Result<Arc<Member<E>>, StoreError> {
        // Where nothing is applied the log says itself where it begins: a replica that a leader has told of, and that has no log yet, begins
        // before the place at which its range was founded.
        let begun = self.state.shards.iter().filter(|(_, shard)| shard.applied > FOUNDED);
        let applied: BTreeMap<GroupId, u64> = begun.map(|(range, shard)| (group_of(*range), shard.applied)).collect();
        let replicas = self.recovery.finish(&applied).map_err(|why| damaged(why.to_string()))?;
        let routes = Routes::of(&self.options.ranges);
        // What was removed before the last life ended has a state and no replica; what a split made may have none yet.
        // The state of a replica that was removed is no state of one that came after it, and has nothing yet.
        let has = |(id, shard): &(RangeId, Box<Shard>)| {
            let status = replicas.status(group_of(*id));
            shard.founding.is_some() || status.is_some_and(|s| shard.applied <= FOUNDED || s.applied >= shard.applied)
        };
        let (shards, gone): (Vec<_>, Vec<_>) = self.state.shards.into_iter().partition(has);
        let gone: BTreeSet<RangeId> = gone.into_iter().map(|(id, _)| id).collect();
        let shards = shards.into_iter().collect();
        let watch = Watch::new(&self.options.node_options);
        watch.step(&self.options.node_options, now, Timestamp::MIN);
        self.versions.end_replay();
        let visible = self.versions.recovered().max_ts.min(now.interval.earliest());
        let mut core = Core {
            replicas,
            clock: self.clock,
            store: Store(self.versions),
            counters: Arc::new(Counters::default()),
            sabotage: self.sabotage,
            watch: Arc::new(watch),
            shards,
            routes,
            gateway: Gateway::default(),
            near: Default::default(),
            silence: Silence::default(),
            committing: BTreeMap::new(),
            sending: BTreeMap::new(),
            forget: BTreeMap::new(),
            gate: BTreeMap::new(),
            vouching: BTreeMap::new(),
            stirred: BTreeSet::new(),
            watched: BTreeSet::new(),
            waiting: BTreeSet::new(),
            reading: BTreeSet::new(),
            staged: StagedHere::default(),
            locks: LockTable::default(),
            lock_owners: BTreeMap::new(),
            carried: Default::default(),
            holds: Holds::default(),
            post: Post::default(),
            heirs: BTreeMap::new(),
            behind: BTreeMap::new(),
            collection: Collection::default(),
            snapshots: Snapshots::after(self.last_record),
            gathering: Gathering::after(self.last_record),
            out: Outputs::default(),
            todo: VecDeque::new(),
            moved: true,
            recycle_later: false,
            ticks: 0,
            commits_take_us: 0,
            stamped: Timestamp::MIN,
            references: References::default(),
            resolved_here: ResolvedHere::default(),
            newest_here: None,
            fenced_ticks: 0,
            chased: BTreeSet::new(),
            count: self.count,
            incarnation: self.state.incarnation,
            serial: 0,
            ranges_named: 0,
            visible,
            timeline: Timeline::default(),
            disk_full: false,
            closed: false,
            failed: false,
            trouble: None,
            options: self.options,
        };
        core.found(now, &gone)?;
        core.create_pending(now);
        core.learn_own();
        let ranges: Vec<RangeId> = core.shards.keys().copied().collect();
        ranges.iter().for_each(|range| core.staged.note(*range));
        ranges.into_iter().for_each(|range| core.leader_known(range, false));
        core.run(now)?;
        core.recall_resolved();
        Ok(Arc::new(Member::new(core)))
    }
}

impl<E: Engine> Core<E> {
    /// Groups that were to be created when the last life ended. (If one was removed since, the log core refuses.)
    fn create_pending(&mut self, now: &Reading) {
        let pending = self.shards.iter().filter(|(_, shard)| shard.founding.is_some()).map(|(range, _)| *range);
        for range in pending.collect::<Vec<_>>() {
            self.create_group(now, range);
            if self.replicas.status(group_of(range)).is_none() {
                self.shards.remove(&range);
            }
        }
    }

    /// What the replicas here know of ranges that were split.
    pub fn learn_own(&mut self) {
        for (range, shard) in &self.shards {
            let Some(members) = self.replicas.status(group_of(*range)).map(|status| status.members) else { continue };
            let nodes = members.voters.iter().chain(&members.learners).filter_map(|seat| NodeId::of_store(seat.store));
            self.routes.learn(*range, &shard.range.span().start, nodes.collect());
            if let Some((right, nodes)) = shard.range.right() {
                let nodes = nodes.iter().map(|node| NodeId(*node)).collect();
                self.routes.learn_origin(right, &shard.range.span().end, nodes);
            }
        }
    }

    /// Founds what the cluster begins with and this store does not have, nor ever had.
    fn found(&mut self, now: &Reading, gone: &BTreeSet<RangeId>) -> Result<(), StoreError> {
        // A founding replica without a state of its own has applied nothing yet; one that joined later gets its state in a snapshot.
        let fresh = |group: &GroupId| self.replicas.status(*group).is_some_and(|status| status.applied == FOUNDED);
        let fresh: Vec<GroupId> = self.replicas.groups().filter(fresh).collect();
        let (me, ranges) = (self.me(), self.options.ranges.clone());
        for Founding { range, replicas, .. } in ranges.iter().filter(|founding| founding.replicas.contains(&me)) {
            // It came from a node that ran alone, and begins above what that gave out.
            if self.shards.get(range).is_some_and(|shard| shard.founding.is_some()) {
                continue;
            }
            let group = group_of(*range);
            let seats =
                (1..).zip(replicas).map(|(number, node)| Seat { replica: ReplicaId(number), store: node.store() });
            let input = raft::Input::Create { group, voters: seats.collect(), floor: Timestamp::MIN };
            let known = self.replicas.status(group).is_some();
            self.log(now, input);
            let founded = !known && self.replicas.status(group).is_some();
            if founded && gone.contains(range) {
                return Err(damaged(format!("{range} has a state, and the log knows nothing of it")));
            }
            if !self.shards.contains_key(range)
                && (founded || fresh.contains(&group))
                && let Some(span) = self.routes.span(*range)
            {
                let state = Range::new(*range, span);
                self.shards.insert(*range, Box::new(Shard::new(state, FOUNDED)));
            }
        }
        Ok(())
    }
}

//! The part of a member that changes: one input, then everything that follows from it, then the outputs.
//!
//! ```text
//!   Input ──► Replicas (consensus) ──► committed entries ──► Shard: apply, answer ──┐
//!               ▲      └─► records, envelopes                  ▲                    │ answers
//!               │ propose                                      │ requests           ▼
//!           serve (the door of the ranges led here) ◄──────────┴──── gateway: calls of transactions, coordinators
//! ```
//!
//! Nothing here calls back into what called it: whatever follows is put on a list of work, and the list is worked off.

use super::carried::Carried;
use super::collect::Collection;
use super::commit::Committing;
use super::follow::{Newest, ResolvedHere};
use super::gateway::Gateway;
use super::gather::Gathering;
use super::holds::Holds;
use super::lent::Vouching;
use super::locks::Holder;
use super::near::Near;
use super::post::Post;
use super::routes::Routes;
use super::seam::{Class, ClusterOptions, Input, Message, NodeId, Outputs};
use super::shard::{Asker, Shard};
use super::silence::Silence;
use super::snapshot::Snapshots;
use super::stage::Sending;
use super::staged::StagedHere;
use crate::core::damaged;
use crate::counters::Counters;
use crate::references::References;
use crate::reply::Reply;
use crate::sabotage::Sabotage;
use crate::timeline::Timeline;
use crate::versions::Store;
use crate::watch::Watch;
use clock::{HybridClock, Reading, Timestamp};
use protocol::door::{Answer, Body, CommitWait, VERSION_OF_COMMIT_WAITS};
use protocol::log::raft::{self, GroupId, Replicas, Role};
use protocol::txn::{LockTable, RangeId, TxnId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use store::{Engine, StoreError};

/// The group of a range.
pub(crate) fn group_of(range: RangeId) -> GroupId {
    GroupId(range.0)
}
/// The range of a group.
pub(crate) fn range_of(group: GroupId) -> RangeId {
    RangeId(group.0)
}

/// So many ranges are looked at in a tick, at most, on average, by each of those that look at all of them: with ten thousand of them it is every five seconds.
const RANGES_A_TICK: u64 = 200;
/// A long commit is forgotten after some of so many short ones.
const COMMITS_OF_LATE: u64 = 32;

/// What is to be done next.
#[derive(Debug)]
pub(crate) enum Work {
    /// A call is to be sent to whoever may lead.
    Dispatch(u64),
    /// A call was answered, by this node.
    Answered(u64, NodeId, Answer),
    /// This node has something for itself.
    Own(Body),
}

/// How far a timestamp lies ahead of what is certainly past, nanoseconds: nothing can be said by a reading that is not trusted.
pub(crate) fn ahead_ns(now: &Reading, at: Timestamp) -> u64 {
    let ahead_us = |interval: clock::Interval| at.physical_us().saturating_sub(interval.earliest().physical_us());
    now.trusted().map_or(0, ahead_us).saturating_mul(1000)
}

/// A commit whose timestamp is not certainly past yet.
#[derive(Debug, Default)]
pub(crate) struct Gated {
    pub flights: Vec<(RangeId, Timestamp)>,
    pub answers: Vec<(Asker, Answer)>,
    pub reply: Option<Arc<Reply>>,
    pub since_ns: u64,
    /// How far the timestamp lay ahead of what was certainly past when it was given, nanoseconds.
    pub ahead_ns: u64,
    /// What that took, for whoever asked.
    pub wait: CommitWait,
}

/// See the module.
pub(crate) struct Core<E> {
    pub options: ClusterOptions,
    pub replicas: Replicas,
    pub clock: Arc<HybridClock>,
    pub store: Store<E>,
    pub counters: Arc<Counters>,
    pub sabotage: Arc<Sabotage>,
    pub watch: Arc<Watch>,
    pub shards: BTreeMap<RangeId, Box<Shard>>,
    pub routes: Routes,
    pub gateway: Gateway,
    pub near: Near,
    pub silence: Silence,
    pub gathering: Gathering,
    pub committing: BTreeMap<TxnId, Committing>,
    /// Large transactions whose parts are on their way.
    pub sending: BTreeMap<TxnId, Sending>,
    /// Outcomes that every participant has, to be forgotten.
    pub forget: BTreeMap<RangeId, Vec<TxnId>>,
    pub gate: BTreeMap<Timestamp, Vec<Gated>>,
    /// Commits of this node that somebody else has to say are past (`lent`).
    pub vouching: BTreeMap<TxnId, Vouching>,
    /// Ranges in which something changed for which parked requests may have waited.
    pub stirred: BTreeSet<RangeId>,
    /// Ranges that may have prepares or outcomes to look after: idle ones cost a tick nothing.
    pub watched: BTreeSet<RangeId>,
    /// Ranges in which requests may be parked.
    pub waiting: BTreeSet<RangeId>,
    /// Who asked for what is being read while others have the core (`serve`, invariant 5).
    pub reading: BTreeSet<Asker>,
    pub staged: StagedHere,
    pub locks: LockTable,
    /// Peers' transactions that may hold locks here.
    pub lock_owners: BTreeMap<TxnId, Holder>,
    /// Whom locks were asked of here in another's place.
    pub carried: Carried,
    pub holds: Holds,
    pub post: Post,
    /// Ranges that are led here and not of the cluster's version yet, and when that was proposed, in ticks.
    pub behind: BTreeMap<RangeId, Option<u64>>,
    /// Ranges that were split off of those led here, and for how many ticks more this node asks for their votes.
    pub heirs: BTreeMap<RangeId, u32>,
    pub snapshots: Snapshots,
    pub collection: Collection,
    pub out: Outputs,
    pub todo: VecDeque<Work>,
    /// A flush let go of something: look what of the log is still needed.
    pub recycle_later: bool,
    /// The log core was told something, and may have outputs.
    pub moved: bool,
    pub ticks: u64,
    /// So long do commits of this node's transactions take: the longest of late, microseconds. Each that is shorter takes a little off.
    pub commits_take_us: u64,
    /// The greatest timestamp that was stamped here in any range: a floor may lie above the clock.
    pub stamped: Timestamp,
    /// Who was referred to, and when last, in all ranges of which a replica is here.
    pub references: References,
    pub resolved_here: ResolvedHere,
    pub newest_here: Option<Newest>,
    /// For so many ticks the clock has not been believed.
    pub fenced_ticks: u64,
    /// Whom this round of probes was gone after here: with whom it began, and who (see `deadlock`).
    pub chased: BTreeSet<(TxnId, TxnId)>,
    /// Commands applied, of all ranges and lives: the position of the versions.
    pub count: u64,
    pub incarnation: u64,
    pub serial: u64,
    /// Ranges named in this life.
    pub ranges_named: u64,
    /// The greatest commit that was shown here, and what that was when.
    pub visible: Timestamp,
    pub timeline: Timeline,
    /// The disk is full: nobody waits for the engine (`crowding`).
    pub disk_full: bool,
    /// Nothing is committed any more.
    pub closed: bool,
    /// Nothing is served any more.
    pub failed: bool,
    /// The store failed where nobody could be told: the next input says so.
    pub trouble: Option<StoreError>,
}

impl<E: Engine> Core<E> {
    pub fn me(&self) -> NodeId {
        self.options.node
    }

    /// A commit of this node took so long, microseconds.
    pub fn took(&mut self, us: u64) {
        self.commits_take_us = us.max(self.commits_take_us - self.commits_take_us / COMMITS_OF_LATE);
    }

    /// One input, and all that follows.
    pub fn step(&mut self, now: &Reading, input: Input) -> Result<(), StoreError> {
        if self.failed {
            return Ok(());
        }
        // What an operator asked for since: the log core's outputs are seen to before its next input.
        self.run(now)?;
        match input {
            Input::Tick => self.tick(now)?,
            Input::Due => {}
            Input::Message(message) => self.receive(now, &message)?,
            Input::Durable(record) => {
                self.log(now, raft::Input::Persisted(record));
                self.durable(record);
                self.gathering.durable(record);
            }
            Input::DiskFailed => {
                self.log(now, raft::Input::PersistFailed);
                self.failed = true;
            }
            Input::Flushed => self.flushed(now),
        }
        self.run(now)
    }

    /// Tells the log core something. What it refuses has changed nothing: it was late, or about a replica that is gone.
    pub fn log(&mut self, now: &Reading, input: raft::Input) {
        self.moved = true;
        if self.replicas.step(now, input).is_err() {
            self.counters.log_refusals.one();
        }
    }

    /// Works off what is to be done.
    pub fn run(&mut self, now: &Reading) -> Result<(), StoreError> {
        loop {
            self.open_gate(now);
            if let Some(work) = self.todo.pop_front() {
                match work {
                    Work::Dispatch(call) => self.dispatch(now, call)?,
                    Work::Answered(call, from, answer) => self.answered(now, call, from, answer),
                    Work::Own(body) => self.take(now, self.me(), body)?,
                }
            } else if self.propose_gathered(now)? {
                continue;
            } else if std::mem::take(&mut self.moved) {
                self.see_to_log(now)?;
            } else if !self.serve_stirred(now)? {
                break;
            }
        }
        let told_by_time = now.trusted().is_some();
        self.out.timer = self.gate.keys().next().copied().filter(|_| told_by_time);
        Ok(())
    }

    /// Everything that the log core wants done, in its order.
    fn see_to_log(&mut self, now: &Reading) -> Result<(), StoreError> {
        let out = self.replicas.drain();
        self.snapshots.last_record = out.records.last().map_or(self.snapshots.last_record, |last| last.number);
        self.snapshots.written.add(&out.records);
        self.out.records.extend(out.records);
        for envelope in out.messages_now {
            self.send_envelope(now, envelope, None);
        }
        for (record, envelope) in out.messages_after {
            self.send_envelope(now, envelope, Some(record));
        }
        for run in out.committed {
            for entry in run.entries {
                self.apply(now, range_of(run.group), entry)?;
            }
        }
        let mut groups: Vec<GroupId> = out.roles.iter().map(|change| change.group).collect();
        for change in &out.roles {
            let leader = change.leader.and_then(NodeId::of_store);
            if leader.is_some() {
                self.routes.set_leader(range_of(change.group), leader);
            }
            self.leader_known(range_of(change.group), leader.is_some());
        }
        groups.extend(out.leases);
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            self.look_at_lead(range_of(group));
        }
        for fate in out.fates {
            if let raft::Fate::Absent { group, term, from } = fate {
                self.absent(range_of(group), term, from);
            }
        }
        for conf in out.configurations {
            let nodes = conf.voters.iter().chain(&conf.learners).filter_map(|m| NodeId::of_store(m.store));
            self.routes.set_replicas(range_of(conf.group), nodes.collect());
        }
        for task in out.snapshots {
            self.snapshot_task(now, task)?;
        }
        for (group, _) in out.removed {
            self.removed(now, group);
        }
        if !self.moved {
            self.look_at_oldest();
        }
        Ok(())
    }

    /// Whether the replica here leads and may serve: mirrors the log core's lease.
    pub fn look_at_lead(&mut self, range: RangeId) {
        let group = group_of(range);
        let term = match self.replicas.lease(group) {
            Some(_) => self.replicas.status(group).map(|status| status.term),
            None => None,
        };
        let me = self.me();
        let Some(shard) = self.shards.get_mut(&range) else { return };
        if shard.led == term {
            return;
        }
        match term {
            Some(term) => {
                shard.begin_to_lead(term);
                self.watched.insert(range);
                self.look_at_version(range);
                self.holds_led(range);
                self.routes.set_leader(range, Some(me));
                self.counters.leases_begun.one();
            }
            None => {
                shard.led = None;
                shard.flights.clear();
                self.holds_not_led(range);
                let Some(shard) = self.shards.get(&range) else { return };
                // Reads do not ratchet the clock: where it hands over, its release has to lie above them all the same.
                if !self.sabotage.release_below_reads() {
                    self.replicas.served(group, shard.floor);
                }
                let hint = self.hint(range);
                let parked = self.shards.get_mut(&range).map(|shard| std::mem::take(&mut shard.parked));
                for asker in parked.unwrap_or_default().into_keys() {
                    self.answer(asker, Answer::NotLeader { hint });
                }
            }
        }
    }

    /// Who may lead a range, as the replica here knows; where there is none any more, or it was removed, one of those that it heard of last: it knows more, or who does.
    pub fn hint(&self, range: RangeId) -> Option<u32> {
        let Some(status) = self.replicas.status(group_of(range)).filter(|status| !status.removed) else {
            let route = self.routes.get(range)?;
            let asks = |node: &NodeId| *node != self.me() && self.routes.is_member(*node);
            let others: Vec<NodeId> = route.replicas.iter().copied().filter(asks).collect();
            // In turn, as some of them may be gone.
            let turn = usize::try_from(self.ticks).unwrap_or(0) % others.len().max(1);
            return others.get(turn).map(|node| node.0);
        };
        let leader = status.leader.and_then(NodeId::of_store).filter(|leader| *leader != self.me());
        leader.map(|leader| leader.0)
    }

    /// Whether the replica here is its group's leader, with a lease or not.
    pub fn leads(&self, range: RangeId) -> bool {
        self.replicas.status(group_of(range)).is_some_and(|status| status.role == Role::Leader)
    }

    /// An answer goes to who asked.
    pub fn answer(&mut self, asker: Asker, answer: Answer) {
        match asker {
            Asker::Own(call) => self.todo.push_back(Work::Answered(call, self.options.node, answer)),
            Asker::Peer(node, id) => self.post.answers.push((node, Body::Answer { id, answer })),
        }
    }

    /// Rule 1: whether a commit may be acknowledged and shown.
    pub fn may_show(&self, now: &Reading, commit: Timestamp) -> bool {
        self.sabotage.skip_rule_one() || now.trusted().is_some_and(|interval| interval.is_past(commit))
    }

    /// At once if the timestamp is past, through the gate if not.
    pub fn acknowledge(&mut self, now: &Reading, commit: Timestamp, mut gated: Gated) {
        gated.since_ns = now.now_ns;
        gated.wait.hidden_ns = gated.ahead_ns.saturating_sub(ahead_ns(now, commit));
        self.counters.commit_wait_hidden_nanos.add(gated.wait.hidden_ns);
        if self.may_show(now, commit) {
            return self.show(commit, gated);
        }
        if let Some(reply) = &gated.reply {
            reply.committed(commit);
        }
        self.gate.entry(commit).or_default().push(gated);
    }

    pub(super) fn show(&mut self, commit: Timestamp, gated: Gated) {
        self.visible = self.visible.max(commit);
        for (range, flight) in gated.flights {
            self.leave(range, flight);
        }
        let tells = gated.wait != CommitWait::NONE && self.in_force(VERSION_OF_COMMIT_WAITS);
        for (asker, answer) in gated.answers {
            let answer = match answer {
                Answer::Committed(at) if tells => Answer::CommittedLate(at, gated.wait),
                answer => answer,
            };
            self.answer(asker, answer);
        }
        if let Some(reply) = gated.reply {
            reply.took(gated.wait);
            reply.give(Ok(commit), &mut self.out.wakers);
        }
    }

    /// A flight has ended: whoever waits for it goes on.
    pub fn leave(&mut self, range: RangeId, flight: Timestamp) {
        if self.shards.get_mut(&range).is_some_and(|shard| shard.flights.leave(flight)) {
            self.stirred.insert(range);
        }
    }

    fn open_gate(&mut self, now: &Reading) {
        while let Some((commit, _)) = self.gate.first_key_value() {
            let commit = *commit;
            if !self.may_show(now, commit) {
                return;
            }
            for mut one in self.gate.remove(&commit).unwrap_or_default() {
                one.wait.held_ns = now.now_ns.saturating_sub(one.since_ns);
                // Each replica keeps from its readers what is not past yet. It is a commit that waits where somebody waits for that.
                if one.reply.is_some() || !one.answers.is_empty() {
                    self.counters.txn_commit_waits.one();
                    self.counters.commit_wait_nanos.add(one.wait.held_ns);
                }
                self.show(commit, one);
            }
        }
    }

    /// A message of a peer.
    fn receive(&mut self, now: &Reading, message: &Message) -> Result<(), StoreError> {
        match self.open(now, message) {
            Some((from, body)) => {
                self.heard_from(from);
                self.pass_on(now, from, &body);
                self.take(now, from, body)
            }
            None => Ok(()),
        }
    }

    /// Something for another node, or for this one.
    pub fn deliver(&mut self, to: NodeId, body: Body) {
        if to == self.me() {
            self.todo.push_back(Work::Own(body));
        } else {
            self.post.answers.push((to, body));
        }
    }

    fn take(&mut self, now: &Reading, from: NodeId, body: Body) -> Result<(), StoreError> {
        match body {
            Body::Envelope(envelope) => {
                if (envelope.from, envelope.to) == (from.store(), self.me().store()) {
                    self.replicas.take_entries(!self.is_crowded());
                    self.log(now, raft::Input::Message(envelope));
                    self.counters.appends_put_off.add(self.replicas.take_put_off());
                }
            }
            Body::Request { id, range, request } => self.serve(now, Asker::Peer(from, id), range, request)?,
            Body::Relay { id, range, request } => self.relay(from, id, range, request),
            Body::Near { id, range, request } => self.asked_as_nearest(now, Asker::Peer(from, id), range, request)?,
            Body::Answer { id, answer } => self.todo.push_back(Work::Answered(id, from, answer)),
            Body::Locks { txns } => {
                for txn in txns.into_iter().filter(|txn| txn.node == from.0) {
                    if let Some(owner) = self.lock_owners.get_mut(&txn) {
                        owner.heard = self.ticks;
                    }
                }
            }
            Body::Unlock { txn, returned: None } if txn.node == from.0 => self.release_locks(txn),
            Body::Unlock { txn, returned: Some(returned) } if txn.node == from.0 => {
                if self.lock_owners.contains_key(&txn) {
                    self.returned(txn, returned);
                }
            }
            Body::Unlock { .. } => {}
            Body::Forward { from: says, to, word } => {
                let says = NodeId(says);
                if to == self.me().0 {
                    self.take(now, says, *word)?;
                } else if says == from {
                    // Once: by whoever heard it from who says it.
                    self.send(now, NodeId(to), Class::Request, Body::Forward { from: says.0, to, word }, None);
                }
            }
            Body::Oldest { snapshot } => self.heard_oldest(from, snapshot),
            Body::Probe { path, about } => self.probed(path, about),
            Body::Victim { txn, circle } => self.victim(now, txn, circle),
        }
        Ok(())
    }

    fn tick(&mut self, now: &Reading) -> Result<(), StoreError> {
        self.ticks += 1;
        self.watch.step(&self.options.node_options, now, self.clock.last());
        self.out.clock_changes.extend(self.watch.take_changes());
        self.timeline.note(now, self.visible);
        self.log(now, raft::Input::Tick);
        self.tick_fence(now);
        self.gathering.end();
        self.tick_locks();
        self.tick_carried();
        self.tick_deadlocks();
        self.tick_holds(now);
        self.tick_gateway(now);
        self.tick_commits(now);
        self.tick_lent(now);
        self.tick_resolved(now);
        self.tick_collection(now);
        self.tick_heirs(now);
        self.tick_version(now);
        self.tick_staged()?;
        self.tick_copying(now)?;
        self.tick_looking(now)?;
        self.tick_installing()?;
        self.halve(now)?;
        self.tick_shards(now)
    }

    /// Ticks from one look at all ranges to the next, where `least` would do if there were few.
    pub fn look_ticks(&self, least: u64) -> u64 {
        least.max(self.shards.len() as u64 / RANGES_A_TICK)
    }

    pub fn shard(&self, range: RangeId) -> Result<&Shard, StoreError> {
        self.shards.get(&range).map(|shard| &**shard).ok_or_else(|| damaged(format!("{range} has no state here")))
    }
}

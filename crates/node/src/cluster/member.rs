use super::core::{Core, group_of};
use super::seam::{Input, NodeId, Outputs};
use crate::counters::Counters;
use crate::sabotage::Sabotage;
use crate::watch::PeerClock;
use clock::{Reading, Timestamp};
use parking_lot::Mutex;
use protocol::log::raft::{self, RecordNumber, Role};
use protocol::txn::RangeId;
use std::sync::Arc;
use store::{Engine, StoreError, Versions};

/// A node of a cluster, without a disk, a network, a clock or a thread of its own. See the module `cluster`.
pub struct Member<E> {
    pub(crate) core: Mutex<Core<E>>,
    versions: Arc<Versions<E>>,
    counters: Arc<Counters>,
    sabotage: Arc<Sabotage>,
}

/// What the replica of a range here is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeStatus {
    /// Its role.
    pub role: Role,
    /// Its term.
    pub term: u64,
    /// The node that leads, as far as is known.
    pub leader: Option<NodeId>,
    /// The timestamps at which it may serve, if it leads under a lease.
    pub lease: Option<(Timestamp, Timestamp)>,
    /// The place in the log that is applied here.
    pub applied: u64,
    /// The place before the first that the log still has.
    pub truncated: u64,
    /// Transactions that are prepared and undecided.
    pub prepared: usize,
    /// Outcomes that are remembered.
    pub outcomes: usize,
    /// Of those, commits of which not every participant is known to have heard.
    pub untold: usize,
    /// Writes in flight, where it leads.
    pub flights: usize,
    /// Requests that wait here.
    pub parked: usize,
    /// The nodes whose replicas vote.
    pub voters: Vec<NodeId>,
    /// The nodes whose replicas do not, yet.
    pub learners: Vec<NodeId>,
    /// The configuration is being changed.
    pub joint: bool,
}

impl<E: Engine> Member<E> {
    pub(crate) fn new(core: Core<E>) -> Self {
        let (versions, counters, sabotage) = (core.store.0.clone(), core.counters.clone(), core.sabotage.clone());
        Member { core: Mutex::new(core), versions, counters, sabotage }
    }

    /// One input, and everything that it brings about.
    ///
    /// # Errors
    /// The store failed: stop the node.
    pub fn step(&self, now: &Reading, input: Input) -> Result<Outputs, StoreError> {
        let mut core = self.core.lock();
        core.step(now, input)?;
        Ok(core.drain(now))
    }

    /// What operations of transactions have left to be done.
    pub fn drain(&self, now: &Reading) -> Outputs {
        self.core.lock().drain(now)
    }

    /// The log before this record may go: look again after [`super::Input::Durable`].
    pub fn oldest_record(&self) -> RecordNumber {
        self.core.lock().snapshots.recyclable
    }

    /// This node.
    pub fn node(&self) -> NodeId {
        self.core.lock().me()
    }
    /// The versions.
    pub fn versions(&self) -> &Arc<Versions<E>> {
        &self.versions
    }
    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
    /// Rules to break, in tests.
    pub fn sabotage(&self) -> &Sabotage {
        &self.sabotage
    }
    /// Peers' clocks as last heard of.
    pub fn peer_clocks(&self) -> Vec<PeerClock> {
        self.core.lock().watch.peers()
    }
    /// The greatest timestamp given out or observed.
    pub fn clock_last(&self) -> Timestamp {
        self.core.lock().clock.last()
    }
    /// Row locks held here, and transactions that queue for one.
    pub fn lock_counts(&self) -> (usize, usize) {
        self.core.lock().locks.size()
    }
    /// Transactions that this node sees to: its own, and those that others left behind.
    pub fn committing(&self) -> usize {
        self.core.lock().committing.len()
    }
    /// Which life of the node this is.
    pub fn incarnation(&self) -> u64 {
        self.core.lock().incarnation
    }

    /// The ranges that have a replica here.
    pub fn ranges(&self) -> Vec<RangeId> {
        self.core.lock().shards.keys().copied().collect()
    }

    /// What the replica of a range here is doing.
    pub fn status(&self, range: RangeId) -> Option<RangeStatus> {
        let core = self.core.lock();
        let status = core.replicas.status(group_of(range))?;
        let shard = core.shards.get(&range)?;
        let nodes = |seats: &[raft::Member]| seats.iter().filter_map(|seat| NodeId::of_store(seat.store)).collect();
        Some(RangeStatus {
            role: status.role,
            term: status.term,
            leader: status.leader.and_then(NodeId::of_store),
            lease: core.replicas.lease(group_of(range)).filter(|_| shard.led.is_some()),
            applied: shard.applied,
            truncated: status.truncated,
            prepared: shard.range.prepared().len(),
            outcomes: shard.range.outcomes().len(),
            untold: shard.range.owed().count(),
            flights: shard.flights.len(),
            parked: shard.parked.len(),
            voters: nodes(&status.members.voters),
            learners: nodes(&status.members.learners),
            joint: !status.members.outgoing.is_empty(),
        })
    }
}

impl<E: Engine> Core<E> {
    /// Takes the outputs.
    pub fn drain(&mut self, now: &Reading) -> Outputs {
        self.send_answers(now);
        let timer = self.out.timer;
        std::mem::replace(&mut self.out, Outputs { timer, ..Outputs::default() })
    }
}

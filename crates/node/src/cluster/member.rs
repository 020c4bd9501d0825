use super::core::{Core, group_of};
use super::crowding::spared_bytes;
use super::gateway::Call;
use super::seam::{Input, NodeId, Outputs};
use crate::counters::Counters;
use crate::options::NodeOptions;
use crate::sabotage::Sabotage;
use crate::watch::{PeerClock, Watch};
use bytes::Bytes;
use clock::{HybridClock, Level, Reading, Reason, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use protocol::log::raft::{self, RecordNumber, Role};
use protocol::txn::{LockTable, RangeId, ShownLock, Span, TxnId, Waiter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use store::{Engine, StoreError, Versions};

/// A node of a cluster, without a disk, a network, a clock or a thread of its own. See the module `cluster`.
pub struct Member<E> {
    core: Mutex<Core<E>>,
    /// Somebody held the core and may have left outputs.
    touched: AtomicBool,
    /// Some range was led elsewhere when that was last looked at.
    far: AtomicBool,
    clock: Arc<HybridClock>,
    watch: Arc<Watch>,
    options: NodeOptions,
    versions: Arc<Versions<E>>,
    counters: Arc<Counters>,
    sabotage: Arc<Sabotage>,
    node: NodeId,
    incarnation: u64,
    /// Where the log ended when this life began.
    pub(super) began_after: RecordNumber,
    unique: AtomicU64,
    installed_bytes: Arc<AtomicUsize>,
    /// What parts take here, as of the last tick, and may.
    staged_bytes: Arc<AtomicU64>,
    staged_bytes_max: u64,
}

/// Who leads all looks again after so many ticks, or more where there are many ranges, whether he still does. (Where some are led elsewhere, one is soon found.)
const LOOK_TICKS: u64 = 10;
/// Nodes are numbered up to here: see [`Member::unique_id`].
pub const NODE_MAX: u32 = 6143;
/// Bits of a unique number that count within one life of a node, and below the node's number.
const COUNT_BITS: u32 = 33;
const NODE_SHIFT: u32 = 50;

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
    /// The keys that it has where its log is applied here.
    pub keys: Span,
    /// The place in the log that is applied here.
    pub applied: u64,
    /// So many places behind its leader it is, as far as that was said; a replica whose log is too short for it waits for a snapshot.
    pub behind: u64,
    /// A snapshot is being installed here: nobody reads the replica meanwhile.
    pub installing: bool,
    /// The place before the first that the log still has.
    pub truncated: u64,
    /// Nothing below this can be read, but of indexes that are kept apart.
    pub collected: Timestamp,
    /// A snapshot up to here is read by the replica here, whether it leads or not.
    pub resolved: Timestamp,
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
    /// Bytes of large transactions that wait for their commits, or were announced.
    pub staged_bytes: u64,
    /// The version of the cluster that is in force.
    pub version: u16,
    /// Commits since that was 2.
    pub commits: u64,
    /// The nodes whose replicas vote.
    pub voters: Vec<NodeId>,
    /// Those of them whose logs have all that is committed, where it leads: any of these can lead at once.
    pub complete: Vec<NodeId>,
    /// The nodes whose replicas do not, yet.
    pub learners: Vec<NodeId>,
    /// The nodes whose replicas voted until the change that is on its way.
    pub outgoing: Vec<NodeId>,
    /// The configuration is being changed, or not enough of the new voters know yet that it was: whoever was removed is still needed.
    pub joint: bool,
}

impl<E: Engine> Member<E> {
    pub(crate) fn new(core: Core<E>) -> Self {
        let (versions, counters, sabotage) = (core.store.0.clone(), core.counters.clone(), core.sabotage.clone());
        let (node, incarnation) = (core.me(), core.incarnation);
        let installed_bytes = core.snapshots.installed_bytes.clone();
        let (clock, watch, options) = (core.clock.clone(), core.watch.clone(), core.options.node_options.clone());
        let began_after = core.gathering.reached();
        let staged_bytes = core.staged.bytes().clone();
        let staged_bytes_max = core.options.limits.staged_bytes;
        Member {
            core: Mutex::new(core),
            touched: AtomicBool::new(true),
            far: AtomicBool::new(true),
            clock,
            watch,
            options,
            versions,
            counters,
            sabotage,
            node,
            incarnation,
            began_after,
            unique: AtomicU64::new(0),
            installed_bytes,
            staged_bytes,
            staged_bytes_max,
        }
    }

    /// The core, for whoever may leave something to be done.
    pub(super) fn lock(&self) -> MutexGuard<'_, Core<E>> {
        let core = self.core.lock();
        self.touch();
        core
    }

    /// The core, for whoever leaves nothing to be done, or says so while he holds it ([`Member::touch`]).
    pub(super) fn look(&self) -> MutexGuard<'_, Core<E>> {
        self.core.lock()
    }

    /// Something is to be done: whoever says so holds the core, so whoever drains it next finds what it is.
    pub(super) fn touch(&self) {
        self.touched.store(true, SeqCst);
    }

    /// Whether others may have to be asked for what a transaction reads: some range was led elsewhere when that was last looked at. Nothing but what is asked for ahead goes by it.
    pub fn is_far(&self) -> bool {
        self.far.load(SeqCst)
    }

    /// Whether [`Member::drain`] may find something.
    pub fn is_touched(&self) -> bool {
        self.touched.load(SeqCst)
    }

    pub(super) fn watch(&self) -> &Watch {
        &self.watch
    }

    pub(super) fn options(&self) -> &NodeOptions {
        &self.options
    }

    /// One input, and everything that it brings about.
    ///
    /// # Errors
    /// The store failed: stop the node.
    pub fn step(&self, now: &Reading, input: Input) -> Result<Outputs, StoreError> {
        let mut core = self.look();
        core.trouble.take().map_or(Ok(()), Err)?;
        let ticks = matches!(input, Input::Tick);
        core.step(now, input)?;
        if ticks && (self.is_far() || core.ticks.is_multiple_of(core.look_ticks(LOOK_TICKS))) {
            self.far.store(core.is_any_led_elsewhere(), SeqCst);
        }
        self.touched.store(false, SeqCst);
        Ok(core.drain(now))
    }

    /// What operations of transactions have left to be done; whoever waits for what they gave back gets it.
    pub fn drain(&self, now: &Reading) -> Outputs {
        let mut core = self.look();
        self.touched.store(false, SeqCst);
        if !core.stirred.is_empty()
            && let Err(why) = core.run(now)
        {
            core.trouble = Some(why);
        }
        core.drain(now)
    }

    /// The log before this record may go: look again after [`super::Input::Durable`].
    pub fn oldest_record(&self) -> RecordNumber {
        self.look().snapshots.recyclable
    }

    /// This node.
    pub fn node(&self) -> NodeId {
        self.node
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
        self.look().watch.peers()
    }
    /// The greatest timestamp given out or observed.
    pub fn clock_last(&self) -> Timestamp {
        self.clock.last()
    }
    /// Row locks held here, and transactions that queue for one.
    pub fn lock_counts(&self) -> (usize, usize) {
        self.look().locks.size()
    }
    /// Transactions of this node that wait for a row, wherever it is led.
    pub fn waiting_for_locks(&self) -> usize {
        self.look().waiting_for_locks()
    }
    /// Transactions that this node sees to: its own, and those that others left behind.
    pub fn committing(&self) -> usize {
        self.look().committing.len()
    }
    /// Which life of the node this is.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// A number that no other call returns, on this node or another, in this life of it or another (design 4a.10). It grows, on this node.
    ///
    /// 13 bits are the node's, 17 its life's, 33 count: so one life has 8 billion of them. None is a timestamp of our days, as which a node that
    /// runs alone gives them: [`NODE_MAX`] keeps below those.
    pub fn unique_id(&self) -> u64 {
        let count = self.unique.fetch_add(1, SeqCst) + 1;
        u64::from(self.node.0) << NODE_SHIFT | self.incarnation << COUNT_BITS | count
    }

    /// Whether layers hold as much as they may, beside what came in snapshots: whoever writes here is to wait. What a large transaction brought at once
    /// counts for the next `large` one only. Cheap.
    pub fn is_overlay_full(&self, large: bool) -> bool {
        let spared = || spared_bytes(&self.versions, self.staged_bytes.load(SeqCst), self.staged_bytes_max);
        let spared_bytes = if large { 0 } else { spared() };
        self.versions.is_overlay_full_beside(self.installed_bytes().saturating_add(spared_bytes))
    }

    /// Bytes in layers that came in snapshots, about. Nobody waits for these but who waits for the snapshot.
    pub fn installed_bytes(&self) -> usize {
        self.installed_bytes.load(SeqCst)
    }

    /// The greatest commit that was shown here.
    pub fn visible(&self) -> Timestamp {
        self.look().visible
    }

    /// The moment `age_us` microseconds ago, as a snapshot to read: the physical clock's, or what was visible here then where the clock was set back
    /// since (see `timeline`). Whatever was acknowledged here a second or more before that moment lies at or below it.
    pub fn ago(&self, now: &Reading, age_us: u64) -> Timestamp {
        let physical = Timestamp::new((now.interval.middle_ns() / 1000).saturating_sub(age_us), 0);
        let doubts = self.in_doubt(now);
        let mut core = self.look();
        // What the replicas here know of the present where the clock does not say it.
        let known_us = if doubts { core.present_by_closed_us(now) } else { None };
        let physical = known_us.map_or(physical, |us| Timestamp::new(us.saturating_sub(age_us), 0));
        if core.sabotage.ago_by_the_clock() {
            return physical;
        }
        physical.max(if age_us == 0 { core.visible } else { core.timeline.ago(now, age_us) })
    }

    /// Refuses every commit that is not on its way yet.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// What the clock allowed at the last look, and why.
    pub fn clock_level(&self) -> (Level, Reason) {
        self.watch.reason()
    }
    /// As [`Member::clock_level`], by the reading of this moment.
    pub(crate) fn clock_level_of(&self, now: &Reading) -> (Level, Reason) {
        self.watch.level(&self.options, now, self.clock.last());
        self.watch.reason()
    }

    /// Shows the row locks of the ranges that are led here, as they are at one moment: nobody takes or gives one back meanwhile. Sessions are known of
    /// this node's transactions. What these wait for elsewhere: [`Member::waits_elsewhere`].
    pub fn look_at_locks<R>(&self, look: impl FnOnce(&LockTable) -> R) -> R {
        look(&self.look().locks)
    }

    /// The locks of keys whose ranges are led here: see [`LockTable::shown`]. Those of others' transactions are of no session.
    pub fn shown_locks(&self, contended: bool, at: (&[u8], usize), max: usize) -> Vec<ShownLock> {
        let core = self.look();
        // Who led before keeps what was locked there until its owners end: it is locked elsewhere now.
        let led = |key: &[u8]| core.shards.get(&core.routes.of_key(key)).is_some_and(|shard| shard.led.is_some());
        core.locks.shown(contended, at, max, led)
    }

    /// Transactions that are prepared and undecided at ranges that are led here, and how many keys they write there; at most `max`.
    pub fn prepared(&self, max: usize) -> Vec<(RangeId, TxnId, usize)> {
        let core = self.look();
        let led = core.shards.iter().filter(|(_, shard)| shard.led.is_some());
        let all = led.flat_map(|(range, shard)| shard.range.prepared().iter().map(|one| (*range, one)));
        all.take(max).map(|(range, (txn, prepared))| (range, *txn, prepared.batch.writes.len())).collect()
    }

    /// This node's transactions that wait for a lock at another one.
    pub fn waits_elsewhere(&self) -> Vec<Waiter> {
        let core = self.look();
        let waits = |call: &Call| {
            let elsewhere = call.is_open() && call.sent_to != Some(core.me());
            let (txn, key, mode) = call.request.wanted_lock().filter(|_| elsewhere)?;
            Some(Waiter { txn, session: core.locks.session_of(txn), key: key.clone(), mode })
        };
        core.gateway.calls.values().filter_map(waits).collect()
    }

    /// The ranges that hold keys of a span, wherever their replicas are, as far as is known here: start keys and numbers, in key order.
    pub fn ranges_over(&self, span: &Span) -> Vec<(Bytes, RangeId)> {
        let core = self.look();
        let start = |range: RangeId| Some((core.routes.span(range)?.start, range));
        core.routes.over(span).into_iter().filter_map(start).collect()
    }

    /// Where a range is, as far as is known here: who leads it, and who replicates it. `None`: nothing is known of it.
    pub fn route(&self, range: RangeId) -> Option<(Option<NodeId>, Vec<NodeId>)> {
        self.look().routes.get(range).map(|route| (route.leader, route.replicas.clone()))
    }

    /// These are the nodes of the cluster from now on: others are not asked for anything. (Who replicates a range is another matter: [`Member::status`].)
    pub fn set_nodes(&self, nodes: impl IntoIterator<Item = NodeId>) {
        self.look().routes.set_members(nodes.into_iter().collect());
    }

    /// Whether the range of a key is led here, under a lease.
    pub fn leads(&self, key: &[u8]) -> bool {
        let core = self.look();
        core.shards.iter().any(|(range, shard)| {
            shard.range.span().contains(key) && shard.led.is_some() && core.replicas.lease(group_of(*range)).is_some()
        })
    }

    /// What is led here and not committed yet, in all ranges together, bytes, about.
    pub fn uncommitted_bytes(&self) -> u64 {
        self.look().replicas.uncommitted_bytes()
    }

    /// The ranges that have a replica here.
    pub fn ranges(&self) -> Vec<RangeId> {
        self.look().shards.keys().copied().collect()
    }

    /// What the replica of a range here is doing.
    pub fn status(&self, range: RangeId) -> Option<RangeStatus> {
        let core = self.look();
        let status = core.replicas.status(group_of(range))?;
        let shard = core.shards.get(&range)?;
        let closed_place = core.replicas.closed(group_of(range)).map_or(0, |(_, place)| place);
        let has_all = |seat: &&raft::Member| {
            status.matched.iter().any(|(replica, last)| *replica == seat.replica && *last >= status.committed)
        };
        let complete: Vec<raft::Member> = status.members.voters.iter().filter(has_all).copied().collect();
        let nodes = |seats: &[raft::Member]| seats.iter().filter_map(|seat| NodeId::of_store(seat.store)).collect();
        Some(RangeStatus {
            role: status.role,
            term: status.term,
            leader: status.leader.and_then(NodeId::of_store),
            lease: core.replicas.lease(group_of(range)).filter(|_| shard.led.is_some()),
            keys: shard.range.span().clone(),
            applied: shard.applied,
            behind: closed_place.saturating_sub(shard.applied),
            installing: core.is_installing(range),
            truncated: status.truncated,
            collected: shard.range.collected(),
            resolved: core.resolved(range).unwrap_or_default(),
            prepared: shard.range.prepared().len(),
            outcomes: shard.range.outcomes().len(),
            untold: shard.range.owed().count(),
            flights: shard.flights.len(),
            parked: shard.parked.len(),
            staged_bytes: shard.range.staged_bytes(),
            version: shard.range.version(),
            commits: shard.range.commits(),
            voters: nodes(&status.members.voters),
            complete: nodes(&complete),
            learners: nodes(&status.members.learners),
            outgoing: nodes(&status.members.outgoing),
            joint: status.changing,
        })
    }
}

impl<E: Engine> Core<E> {
    /// Takes the outputs.
    pub fn drain(&mut self, now: &Reading) -> Outputs {
        self.send_answers(now);
        self.out.place = self.store.0.place(0);
        let timer = self.out.timer;
        std::mem::replace(&mut self.out, Outputs { timer, ..Outputs::default() })
    }
}

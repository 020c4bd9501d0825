use crate::core::{Core, Input, LogBatch, Outputs, Shared};
use crate::counters::Counters;
use crate::large::Ready;
use crate::lease::Lease;
use crate::locks::Locks;
use crate::options::{Consistency, NodeOptions, Wanted};
use crate::reply::Reply;
use crate::sabotage::Sabotage;
use crate::state::State;
use crate::timeline::Timeline;
use crate::transaction::Limit;
use crate::transaction::writes::Whole;
use crate::versions::Store;
use crate::watch::{PeerClock, Watch};
use crate::{CommitError, TxnError};
use bytes::Bytes;
use clock::{Level, Reading, Reason, Timestamp};
use parking_lot::Mutex;
use protocol::log::{LogIndex, Single};
use protocol::txn::{Apart, Batch, Command, LockTable, Range, RangeId, Span, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Poll, Waker};
use store::versions::{APART_MAX, Threshold};
use store::{Engine, StoreError, Versions};

/// So often who freezes lets others commit to place what they have just shown; then it is placed while they wait.
const FREEZE_TRIES: usize = 8;

/// One whole node, without a disk, a clock or a thread of its own. See the crate.
pub struct Node<E> {
    pub(crate) shared: Arc<Shared<E>>,
    pub(crate) locks: Locks,
    pub(crate) core: Mutex<Core<E>>,
    watch: Watch,
    timeline: Mutex<Timeline>,
    serial: AtomicU64,
    unique: AtomicU64,
}

impl<E: Engine> Node<E> {
    /// A node over versions as the engine kept them. Before the first transaction: [`Input::Replay`] each record of the log after
    /// [`Node::applied`], then [`Input::Recovered`], and wait until [`Node::is_ready`].
    ///
    /// # Errors
    /// The state beside the versions is damaged.
    pub fn open(options: NodeOptions, versions: Arc<Versions<E>>, now: &Reading) -> Result<Self, StoreError> {
        let recovered = versions.recovered().clone();
        versions.begin_replay();
        let state = State::decode(&recovered.state)?;
        let last = state.ranges.values().map(|r| r.applied()).max().unwrap_or_default().max(recovered.max_ts);
        let applied = LogIndex(recovered.position);
        let shared = Arc::new(Shared {
            clock: clock::HybridClock::new(last),
            store: Store(versions),
            inflight: Default::default(),
            references: Default::default(),
            visible: AtomicU64::new(last.as_u64()),
            lease_end: AtomicU64::new(0),
            ready_at: AtomicU64::new(last.as_u64()),
            counters: Counters::default(),
            sabotage: Sabotage::default(),
            options,
        });
        let routes = state.ranges.values().map(|r| (r.span().start.clone(), r.id())).collect();
        let core = Core {
            converted: false,
            shared: shared.clone(),
            ranges: state.ranges,
            routes,
            next_range: state.next_range,
            log: Single::new(applied, last),
            applied,
            batch: LogBatch::default(),
            pending: BTreeMap::new(),
            gate: BTreeMap::new(),
            forget: BTreeMap::new(),
            owed: Vec::new(),
            collect_at: None,
            lease: Lease::default(),
            closed: None,
            held: Vec::new(),
            referred_from: last,
        };
        let first = last.max(now.interval.earliest()).as_u64();
        let watch = Watch::new(&shared.options);
        watch.step(&shared.options, now, Timestamp::MIN);
        Ok(Node {
            shared,
            locks: Locks::default(),
            core: Mutex::new(core),
            watch,
            timeline: Mutex::default(),
            serial: AtomicU64::new(first),
            unique: AtomicU64::new(first),
        })
    }

    /// One input to the part that changes in log order.
    ///
    /// # Errors
    /// The store failed: stop the node.
    pub fn step(&self, now: &Reading, input: Input) -> Result<Outputs, StoreError> {
        let mut out = Outputs::default();
        match &input {
            Input::Heard(word) if !self.shared.sabotage.ignore_proofs() => {
                self.watch.hear(&self.shared.sabotage, now, *word);
            }
            Input::Heard(_) => {}
            Input::Tick => {
                self.watch.step(&self.shared.options, now, self.shared.clock.last());
                out.clock_changes = self.watch.take_changes();
            }
            _ => {}
        }
        let mut core = self.core.lock();
        if matches!(input, Input::Recovered) {
            self.versions().end_replay();
            let last = core.log.closed().as_u64();
            self.serial.fetch_max(last, SeqCst);
            self.unique.fetch_max(last, SeqCst);
        }
        let passes = matches!(input, Input::Tick | Input::Recovered);
        core.step(now, input, &mut out)?;
        drop(core);
        if passes {
            self.timeline.lock().note(now, self.visible());
        }
        Ok(out)
    }

    /// Takes the records that wait for the disk into `spare`; empty if there are none. Append and sync them, then step
    /// [`Input::Durable`] with the last place (or [`Input::AppendFailed`] with the first): one taker at a time.
    pub fn take_batch(&self, spare: &mut LogBatch) {
        self.core.lock().take_batch(spare);
    }

    /// Whether records wait for the disk.
    pub fn has_batch(&self) -> bool {
        !self.core.lock().batch.is_empty()
    }

    /// The waker of somebody whose record waits for the disk: the one to take the next batch.
    pub fn next_in_batch(&self) -> (bool, Option<Waker>) {
        let core = self.core.lock();
        if core.batch.is_empty() {
            return (false, None);
        }
        let replies = core.log.entries_from(core.batch.first).filter_map(|e| e.payload.reply.as_ref());
        let waker = replies.filter_map(|r| r.waker()).next();
        (true, waker)
    }

    /// The last place applied.
    pub fn applied(&self) -> LogIndex {
        self.core.lock().applied
    }

    /// Whether the first transaction may begin: every record replayed is past (or the clock was set back, and nobody else reads).
    pub fn is_ready(&self, now: &Reading) -> bool {
        self.shared.may_show(now, self.ready_at())
    }
    /// Every record replayed is visible from here on, and every snapshot that an earlier life of this node served lies at or below.
    pub fn ready_at(&self) -> Timestamp {
        Timestamp::from_u64(self.shared.ready_at.load(SeqCst))
    }

    /// Freezes the versions in memory together with the ranges' state, ready for [`Versions::flush`]. `false`: nothing changed. What is shown is
    /// put in its place before, while others commit.
    pub fn freeze(&self) -> bool {
        for _ in 0..FREEZE_TRIES {
            let core = self.core.lock();
            if !self.versions().place(0) {
                return self.freeze_with(&core);
            }
            drop(core);
            self.versions().place(usize::MAX);
        }
        self.freeze_with(&self.core.lock())
    }

    fn freeze_with(&self, core: &Core<E>) -> bool {
        if core.converted {
            return false;
        }
        let state = core.encode_state();
        self.versions().freeze(core.applied.0, state)
    }

    /// The versions.
    pub fn versions(&self) -> &Arc<Versions<E>> {
        &self.shared.store.0
    }
    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }
    /// Rules to break, in tests.
    pub fn sabotage(&self) -> &Sabotage {
        &self.shared.sabotage
    }
    /// The node's settings.
    pub fn options(&self) -> &NodeOptions {
        &self.shared.options
    }
    /// What the clock allowed at the last look, and why.
    pub fn clock_level(&self) -> (Level, Reason) {
        self.watch.reason()
    }
    /// As [`Node::clock_level`], by the reading of this moment.
    pub(crate) fn clock_level_of(&self, now: &Reading) -> (Level, Reason) {
        self.watch.level(&self.shared.options, now, self.shared.clock.last());
        self.watch.reason()
    }
    /// Peers' clocks as last heard of.
    pub fn peer_clocks(&self) -> Vec<PeerClock> {
        self.watch.peers()
    }
    /// Shows the row locks as they are at one moment: nobody takes or gives one back meanwhile.
    pub fn look_at_locks<R>(&self, look: impl FnOnce(&LockTable) -> R) -> R {
        self.locks.look(look)
    }
    /// Transactions that are prepared and undecided, at each range, and how many keys they write there; at most `max`.
    pub fn prepared(&self, max: usize) -> Vec<(RangeId, TxnId, usize)> {
        let core = self.core.lock();
        let all = core.ranges.values().flat_map(|range| range.prepared().iter().map(|one| (range.id(), one)));
        all.take(max).map(|(range, (txn, prepared))| (range, *txn, prepared.batch.writes.len())).collect()
    }
    /// Row locks held, and transactions that queue for one.
    pub fn lock_counts(&self) -> (usize, usize) {
        self.locks.size()
    }
    /// The greatest timestamp given out or observed.
    pub fn clock_last(&self) -> Timestamp {
        self.shared.clock.last()
    }
    /// The greatest timestamp at or below which every acknowledged commit lies.
    pub fn visible(&self) -> Timestamp {
        Timestamp::from_u64(self.shared.visible.load(SeqCst))
    }

    /// The moment `age_us` microseconds ago, as a snapshot to read: the physical clock's, or what was visible then where the clock was set back
    /// since (see `timeline`). Whatever was acknowledged a second or more before that moment lies at or below it.
    ///
    /// Alone, never beyond what is visible now: nothing was acknowledged above that, and it is in the log. So a relative time asks for no lease,
    /// which a full disk could not give.
    pub fn ago(&self, now: &Reading, age_us: u64) -> Timestamp {
        let physical = Timestamp::new((now.interval.middle_ns() / 1000).saturating_sub(age_us), 0);
        if self.shared.sabotage.ago_by_the_clock() {
            return physical;
        }
        let visible = if age_us == 0 { self.visible() } else { self.timeline.lock().ago(now, age_us) };
        let at = physical.max(visible);
        if self.shared.options.alone { at.min(self.visible()) } else { at }
    }

    /// Refuses every commit from now on.
    pub fn close(&self) {
        self.core.lock().closed.get_or_insert(CommitError::ShuttingDown);
    }

    /// Ranges that overlap the span: start keys and numbers, in key order.
    pub fn ranges(&self, span: &Span) -> Vec<(Bytes, RangeId)> {
        let core = self.core.lock();
        let inside = core.routes.values().filter_map(|id| core.ranges.get(id)).filter(|r| r.span().overlaps(span));
        inside.map(|r| (r.span().start.clone(), r.id())).collect()
    }

    /// Proposes a split of the range that holds `key`, at it. Drive the log, then poll the ticket.
    pub fn split(&self, now: &Reading, key: Bytes, waker: &Waker) -> Ticket {
        let reply = Arc::new(Reply::new(waker));
        let mut core = self.core.lock();
        let range = core.route(&key);
        let right = RangeId(core.next_range);
        core.next_range += 1;
        core.propose(
            now,
            Timestamp::MIN,
            range,
            Command::Split { at: key, right, nodes: Vec::new() },
            Some(reply.clone()),
        );
        Ticket(reply)
    }

    /// Proposes, in every range, that versions that no snapshot from `threshold` on sees may go. Never above an open snapshot.
    /// Returns the common threshold proposed; `None` if nothing would change, or if the last one is not [`Node::collectable`] yet. Call
    /// [`Versions::collect`] with [`Node::collectable`] later.
    pub fn collect(&self, now: &Reading, threshold: impl Into<Threshold>) -> Option<Timestamp> {
        let mut threshold = threshold.into();
        let open = self.versions().oldest_snapshot().unwrap_or(Timestamp::MAX).min(self.visible());
        threshold.common = threshold.common.min(open);
        threshold.apart.iter_mut().for_each(|apart| apart.threshold = open.min(apart.threshold));
        if threshold.apart.len() > APART_MAX {
            // All are kept as long as any of them, rather than one too short.
            let least = threshold.apart.iter().map(|apart| apart.threshold).fold(threshold.common, Ord::min);
            threshold = least.into();
        }
        let mut core = self.core.lock();
        if core.collect_at.as_ref().is_some_and(|(_, index)| self.versions().flushed_position() < index.0) {
            return None;
        }
        let classes = |t: &Threshold| t.apart.iter().map(|apart| (apart.index, apart.class)).collect::<Vec<_>>();
        let logged = core.collect_at.as_ref().map(|(logged, _)| classes(logged)).unwrap_or_default();
        let moved = logged != classes(&threshold);
        let rises = |range: &&Range| {
            range.collected() < threshold.common
                || threshold.apart.iter().any(|apart| range.collected_of(&apart.index) < apart.threshold)
        };
        let ranges: Vec<RangeId> = core.ranges.values().filter(|r| moved || rises(r)).map(Range::id).collect();
        let of = |a: &store::versions::Apart| Apart { index: a.index, class: a.class, threshold: a.threshold };
        let apart: Vec<Apart> = threshold.apart.iter().map(of).collect();
        for range in &ranges {
            let command = Command::Collect { threshold: threshold.common, apart: apart.clone() };
            core.propose(now, Timestamp::MIN, *range, command, None);
        }
        (!ranges.is_empty()).then_some(threshold.common)
    }

    /// The thresholds that the store may collect by now: logged, applied, and below the point where a replay would begin, so that
    /// no replayed command is certified against less than it was at first.
    pub fn collectable(&self) -> Option<Threshold> {
        let core = self.core.lock();
        let (threshold, index) = core.collect_at.as_ref()?;
        (self.versions().flushed_position() >= index.0).then(|| threshold.clone())
    }

    /// A number that no other call on this node returned, before a restart or after.
    pub fn unique_id(&self, now: &Reading) -> u64 {
        let base = now.interval.earliest().as_u64();
        let next = |last: u64| Some(last.max(base) + 1);
        self.unique.fetch_update(SeqCst, SeqCst, next).map_or(base, |last| last.max(base) + 1)
    }

    pub(crate) fn next_txn(&self) -> TxnId {
        TxnId { serial: self.serial.fetch_add(1, SeqCst) + 1, node: self.shared.options.node }
    }

    /// Whether a commit must wait before it is proposed (see [`Shared::clock_tells`]); its waker is kept.
    pub(crate) fn holds_back(&self, now: &Reading, waker: &Waker) -> bool {
        if self.shared.clock_tells(now) {
            return false;
        }
        let mut core = self.core.lock();
        if core.closed.is_some() {
            return false;
        }
        if !core.held.iter().any(|held| held.will_wake(waker)) {
            core.held.push(waker.clone());
        }
        true
    }

    pub(crate) fn propose(
        &self,
        now: &Reading,
        floor: Timestamp,
        (batch, whole): (Batch, Option<Whole>),
        reply: &Arc<Reply>,
    ) {
        let mut out = Outputs::default();
        let ready = whole.map(|whole| Ready::of(&self.shared.store, &batch, whole));
        let batch = (batch, ready);
        self.core.lock().commit(now, floor, batch, reply, &mut out);
        out.wakers.into_iter().for_each(Waker::wake);
    }

    /// The mode in force: `auto` resolved, and refused where the clock cannot give it.
    pub(crate) fn settle(&self, now: &Reading, wanted: Wanted) -> Result<Consistency, TxnError> {
        let shared = &self.shared;
        self.watch.settle(&shared.options, &shared.sabotage, now, shared.clock.last(), wanted)
    }

    /// A snapshot of the present for this mode (rule 2), and the limit up to which a version is uncertain.
    ///
    /// Alone, every acknowledged commit is at or below `visible`, so a snapshot there misses none; it stays below what is on
    /// its way to the disk, so no read waits for that, and no crash forgets it. Otherwise: the mode's own snapshot, and what this node's clock says.
    pub(crate) fn present(
        &self,
        now: &Reading,
        mode: Consistency,
        wanted: Wanted,
        token: Timestamp,
    ) -> (Timestamp, Limit) {
        let shared = &self.shared;
        let earliest = now.interval.earliest();
        if mode == Consistency::None {
            // Alone, what is visible is all that there is, and needs no lease. Nor is it in the past of a clock that was set back, where
            // tables do not exist yet and versions are collected already.
            let set_back = || Watch::set_back_ns(&shared.options, now, shared.clock.last()) > 0;
            let snapshot = if shared.options.alone || set_back() { self.visible() } else { earliest };
            return (snapshot, Limit::NONE);
        }
        if shared.options.alone {
            return (self.visible().max(token), Limit::NONE);
        }
        let hybrid = shared.clock.last().max(earliest).max(token);
        match mode {
            // A strict transaction that goes on while the clock is lost moves up with the hybrid clock: the `latest` of a bound
            // that is void may be far in the future.
            Consistency::Strict => {
                let latest = now.trusted().map_or(hybrid, |interval| interval.latest());
                (latest.max(token), Limit::NONE)
            }
            Consistency::Hybrid | Consistency::Auto => (hybrid, Limit::up_to(wanted.uncertainty.limit(now, hybrid))),
            Consistency::Token | Consistency::None => (hybrid, Limit::NONE),
        }
    }
}

/// A proposal on its way.
pub struct Ticket(Arc<Reply>);

impl Ticket {
    pub(crate) fn new(reply: Arc<Reply>) -> Self {
        Ticket(reply)
    }
    /// Whether it is done.
    pub fn poll(&self, waker: &Waker) -> Poll<Result<(), CommitError>> {
        match self.0.poll(waker) {
            None => Poll::Pending,
            Some(result) => Poll::Ready(result.map(drop)),
        }
    }
}

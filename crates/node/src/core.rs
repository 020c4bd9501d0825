//! The part of a node that changes in log order: ranges, the log's queue, decisions, the gate of rule 1.
//!
//! One law: one input, then its outputs. Everything here runs under one lock and reads no clock; `now` comes with each input.
//!
//! ```text
//!   Commit ──route──► one range: Commit ─┐                                   ┌─► reply, once past (the gate)
//!                     many: Prepare ×n ──┴─► batch ─► disk ─► Durable ─apply─┤
//!                                                                            └─► all prepared: decide, reply, Outcome ×n
//! ```
//!
//! Invariants:
//! 1. A record's keys are in flight before it has a place in the log and until its outcome is visible (see `inflight`).
//! 2. A record is applied only when it and all before it are durable, in log order.
//! 3. A commit is acknowledged, and leaves flight, only when its timestamp is certainly past (rule 1), and never before it is
//!    durable and applied. The wait overlaps the sync: it counts from the timestamp on.
//! 4. A transaction of many ranges is acknowledged when its last prepare is durable: its outcome is then a function of the
//!    log. Its versions become visible at once, too (see `decide`).
//! 5. `visible` is at least every commit timestamp that was ever acknowledged.

use crate::counters::Counters;
use crate::inflight::{InFlight, KEYS_EACH_MAX};
use crate::large::{Large, Ready, Unwritten};
use crate::lease::Lease;
use crate::options::NodeOptions;
use crate::references::References;
use crate::reply::{CommitError, Reply};
use crate::sabotage::Sabotage;
use crate::versions::Store;
use crate::watch::{PeerWord, Watch};
use bytes::Bytes;
use clock::{HybridClock, Reading, Timestamp};
use protocol::door::CommitWait;
use protocol::log::{Entry, LogIndex, Single};
use protocol::txn::{
    Apart, Batch, Cause, Command, Coordinator, Range, RangeId, Read, Record, Refusal, TxnId, Verdict, encode_record,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::Waker;
use store::versions::Threshold;
use store::{Engine, StoreError};

/// Records proposed and not yet applied, at most; beyond it commits are refused, which only a stuck disk brings about.
pub const QUEUE_MAX: usize = 65_536;
/// A batch begins with as much memory as the last one took, up to so many bytes: what grows from nothing is copied each time that it doubles.
const BATCH_BYTES_READY_MAX: usize = 64 << 10;
/// Outcomes that every participant has are forgotten in groups of this many, or at the next tick.
pub(crate) const FORGET_GROUP: usize = 64;

/// What a core is told.
#[derive(Debug)]
pub enum Input {
    /// Everything up to this place is on the disk.
    Durable(LogIndex),
    /// The disk refused the records from this place on, and holds nothing of them.
    AppendFailed {
        /// The first place refused.
        from: LogIndex,
        /// Why.
        why: AppendError,
    },
    /// Time passed: the clock's level, the gate, undecided transactions, what is owed.
    Tick,
    /// A message of a peer arrived, with its clock's interval if it has one.
    Heard(PeerWord),
    /// One record read back from the log at start, in order.
    Replay(Record),
    /// The log has no more records: undecided transactions are resolved.
    Recovered,
}

/// Why an append failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendError {
    /// No space: nothing of it is on the disk, and later appends may succeed.
    Full,
    /// Too much waits for the disk: nothing of it is on the disk, and later appends may succeed.
    Busy,
    /// The disk is broken: what it holds is unknown, and no write is taken any more.
    Broken,
}

/// What a core wants done.
#[derive(Debug, Default)]
pub struct Outputs {
    /// To be woken, after every lock is free.
    pub wakers: Vec<Waker>,
    /// Step [`Input::Tick`] once this is past: what the gate waits for first.
    pub timer: Option<Timestamp>,
    /// Records wait for the disk: somebody must take a batch.
    pub records: bool,
    /// What happened to the clock's level, for the log.
    pub clock_changes: Vec<clock::Change>,
    /// Large batches that were applied: to be dropped when every lock is free and everybody is woken. The keys of a million writes take
    /// longer to free than some thousand small commits to be applied.
    pub spent: Vec<Batch>,
}

/// Records for the disk, to be appended and synced together.
#[derive(Debug, Default)]
pub struct LogBatch {
    /// Encoded records, one after the other.
    pub bytes: Vec<u8>,
    /// Where each ends in `bytes`.
    pub ends: Vec<usize>,
    /// The place of the first.
    pub first: LogIndex,
}

impl LogBatch {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// The place of the last record.
    pub fn last(&self) -> LogIndex {
        LogIndex(self.first.0 + self.ends.len() as u64 - 1)
    }
    /// Each record's bytes, in order.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A proposed record until it is applied.
#[derive(Debug)]
pub(crate) struct Proposed {
    pub range: RangeId,
    pub command: Command,
    pub reply: Option<Arc<Reply>>,
    /// Of a large commit, whose batch has no writes: see [`crate::large`].
    pub large: Option<Large>,
}

/// A transaction of many ranges that this node sees through.
#[derive(Debug)]
pub(crate) struct Pending {
    pub coordinator: Coordinator,
    pub reply: Option<Arc<Reply>>,
    pub refusal: Option<CommitError>,
    pub asked_ns: u64,
}

/// A commit whose timestamp is not certainly past yet.
#[derive(Debug)]
pub(crate) struct Gated {
    pub flights: Vec<Timestamp>,
    pub reply: Option<Arc<Reply>>,
    pub since_ns: u64,
}

/// What the core shares with readers.
pub(crate) struct Shared<E> {
    pub clock: HybridClock,
    pub store: Store<E>,
    pub inflight: InFlight,
    pub references: References,
    pub visible: AtomicU64,
    pub lease_end: AtomicU64,
    pub ready_at: AtomicU64,
    pub counters: Counters,
    pub sabotage: Sabotage,
    pub options: NodeOptions,
}

impl<E> Shared<E> {
    /// Whether the clock tells when a commit of this moment will be past. With peers it does not while it may not be relied upon, or
    /// where it was set back: then a commit would wait at the gate for nobody knows how long.
    pub fn clock_tells(&self, now: &Reading) -> bool {
        self.options.alone
            || self.sabotage.skip_rule_one()
            || (now.trusted().is_some() && Watch::set_back_ns(&self.options, now, self.clock.last()) == 0)
    }

    /// Rule 1: whether a commit may be acknowledged and shown.
    ///
    /// A reading that may not be relied upon proves nothing past: others may already know better, and read below the commit.
    /// A node that is alone has no others. It goes by any reading, and does not wait for a clock that was set back (it might be an
    /// hour): its own order is the hybrid clock's. Until the clock has caught up it is `Untrusted` and refuses `strict`.
    pub fn may_show(&self, now: &Reading, commit: Timestamp) -> bool {
        if self.sabotage.skip_rule_one() {
            return true;
        }
        match self.options.alone {
            true => now.interval.is_past(commit) || Watch::set_back_ns(&self.options, now, commit) > 0,
            false => now.trusted().is_some_and(|interval| interval.is_past(commit)),
        }
    }
}

/// See the module.
pub(crate) struct Core<E> {
    /// Its store is a member's of a cluster: nothing is written any more.
    pub converted: bool,
    pub(crate) shared: Arc<Shared<E>>,
    pub(crate) ranges: BTreeMap<RangeId, Range>,
    pub(crate) routes: BTreeMap<Bytes, RangeId>,
    pub(crate) next_range: u64,
    pub(crate) log: Single<Proposed>,
    pub(crate) applied: LogIndex,
    pub(crate) batch: LogBatch,
    pub(crate) pending: BTreeMap<TxnId, Pending>,
    pub(crate) gate: BTreeMap<Timestamp, Vec<Gated>>,
    pub(crate) forget: BTreeMap<RangeId, Vec<TxnId>>,
    pub(crate) owed: Vec<(RangeId, Command)>,
    pub(crate) collect_at: Option<(Threshold, LogIndex)>,
    pub(crate) lease: Lease,
    pub(crate) closed: Option<CommitError>,
    /// Commits that are held back until the clock tells when they would be past; woken at every tick. One for each caller, at most.
    pub(crate) held: Vec<Waker>,
    /// What was referred to before this is not remembered: an earlier life of the node saw to that.
    pub(crate) referred_from: Timestamp,
}

impl<E: Engine> Core<E> {
    /// Nothing is on its way: all records are applied, and all transactions decided.
    pub fn is_at_rest(&self) -> bool {
        let undecided = self.ranges.values().any(|range| !range.prepared().is_empty());
        self.batch.is_empty() && self.log.last_index() == self.applied && !undecided && self.owed.is_empty()
    }

    /// One input. Outputs accumulate in `out`.
    ///
    /// # Errors
    /// The store failed: the node must stop.
    pub fn step(&mut self, now: &Reading, input: Input, out: &mut Outputs) -> Result<(), StoreError> {
        match input {
            Input::Durable(index) => {
                self.log.durable(index);
                while let Some(entry) = self.log.pop_durable() {
                    self.apply(now, entry, out)?;
                }
            }
            Input::AppendFailed { from, why } => self.append_failed(from, why, out),
            Input::Tick => self.tick(now, out)?,
            Input::Heard(_) => {}
            Input::Replay(record) => self.replay(&record)?,
            Input::Recovered => self.recovered(now, out)?,
        }
        // Where nothing is certainly past whatever the clock shows, the ticks look at the gate.
        let told_by_time = self.shared.options.alone || now.trusted().is_some();
        out.timer = self.gate.keys().next().copied().filter(|_| told_by_time);
        out.records = !self.batch.is_empty();
        Ok(())
    }

    /// Gives a record its timestamp and its place.
    pub(crate) fn propose(
        &mut self,
        now: &Reading,
        floor: Timestamp,
        range: RangeId,
        command: Command,
        reply: Option<Arc<Reply>>,
    ) -> Timestamp {
        let begin = self.batch.bytes.len();
        encode_record(range, Timestamp::MIN, &command, &mut self.batch.bytes);
        let proposed = Proposed { range, command, reply, large: None };
        self.propose_encoded(now, floor, proposed, begin)
    }

    /// As `propose`, for a commit that was made ready before.
    pub(crate) fn propose_ready(
        &mut self,
        now: &Reading,
        floor: Timestamp,
        range: RangeId,
        (batch, ready): (Batch, Ready),
        reply: Arc<Reply>,
    ) -> Timestamp {
        let begin = self.batch.bytes.len();
        match begin {
            0 => self.batch.bytes = ready.encoded,
            _ => self.batch.bytes.extend_from_slice(&ready.encoded),
        }
        let (command, large) = (Command::Commit(batch), Some(Large { whole: ready.whole, unchanged: ready.unchanged }));
        self.propose_encoded(now, floor, Proposed { range, command, reply: Some(reply), large }, begin)
    }

    /// As `propose`, for a record whose bytes stand at the end of the batch from `begin` on.
    pub(crate) fn propose_encoded(
        &mut self,
        now: &Reading,
        floor: Timestamp,
        proposed: Proposed,
        begin: usize,
    ) -> Timestamp {
        let range = proposed.range;
        let shared = self.shared.clone();
        let tick = || shared.clock.tick(now.interval, floor);
        let at = match &proposed.command {
            Command::Commit(batch) | Command::Prepare { batch, .. } => {
                let announced = match &proposed.large {
                    None => shared.inflight.announce(&batch.writes[..]),
                    Some(large) => shared.inflight.announce(&*large.whole),
                };
                let at = shared.inflight.enter(announced, tick);
                shared.references.note(batch, at);
                at
            }
            _ => tick(),
        };
        protocol::txn::stamp_record(&mut self.batch.bytes[begin..], range, at);
        let index = self.log.propose(at, proposed);
        if self.batch.ends.is_empty() {
            self.batch.first = index;
        }
        shared.counters.log_records.one();
        shared.counters.log_bytes.add((self.batch.bytes.len() - begin) as u64);
        self.batch.ends.push(self.batch.bytes.len());
        at
    }

    /// Takes what the disk should append next; gives back a used batch for its memory.
    pub(crate) fn take_batch(&mut self, spare: &mut LogBatch) {
        spare.clear();
        std::mem::swap(spare, &mut self.batch);
        if !spare.is_empty() {
            // Who wrote the last one gave its bytes away.
            self.batch.bytes.reserve(spare.bytes.len().min(BATCH_BYTES_READY_MAX));
            self.shared.counters.log_batches.one();
        }
    }

    fn apply(&mut self, now: &Reading, entry: Entry<Proposed>, out: &mut Outputs) -> Result<(), StoreError> {
        let Entry { index, at, payload } = entry;
        let Some(range) = self.ranges.get_mut(&payload.range) else {
            return Err(damaged(format!("record {} names {}, which does not exist", index.0, payload.range)));
        };
        let flight = match &payload.command {
            Command::Outcome { txn, .. } => range.prepared().get(txn).map(|p| p.at),
            _ => None,
        };
        let store = &self.shared.store;
        let verdict = match (&payload.command, &payload.large) {
            (Command::Commit(batch), Some(large)) => {
                range.apply_lent(at, batch, &*large.whole, &Unwritten::new(store, large))?
            }
            (command, _) => range.apply(at, command, store)?,
        };
        self.applied = index;
        let id = payload.range;
        match payload.command {
            Command::Commit(batch) => self.commit_applied(now, at, (batch, payload.large), verdict, payload.reply, out),
            Command::Prepare { batch, .. } => self.prepare_applied(now, at, id, batch, verdict, out)?,
            Command::Fence { txn, .. } => self.fence_applied(now, id, txn, out)?,
            Command::Outcome { txn, .. } => self.outcome_applied(now, id, txn, flight, &verdict, out),
            Command::Split { .. } => self.split_applied(now, verdict, payload.reply, out),
            Command::Collect { threshold, apart } => {
                let of = |a: Apart| store::versions::Apart { index: a.index, class: a.class, threshold: a.threshold };
                let apart = apart.into_iter().map(of).collect();
                self.collect_at = Some((Threshold { common: threshold, apart }, index));
                // What was written last is in the past, too, though nothing is written after it.
                self.acknowledge(now, at, Gated { flights: Vec::new(), reply: None, since_ns: now.now_ns }, out);
            }
            Command::Lease { end } => self.lease_applied(end, out),
            // Alone, a transaction is one record whatever its size.
            Command::Forget { .. } | Command::Release | Command::Stage { .. } | Command::Raise { .. } => {}
        }
        Ok(())
    }

    fn commit_applied(
        &mut self,
        now: &Reading,
        at: Timestamp,
        (batch, large): (Batch, Option<Large>),
        verdict: Verdict,
        reply: Option<Arc<Reply>>,
        out: &mut Outputs,
    ) {
        match (verdict, reply) {
            // The range was split under it and nothing happened: again, by the new bounds and later.
            (Verdict::Refused(Refusal { cause: Cause::Moved, .. }), Some(reply)) => {
                self.shared.inflight.leave(at, &mut out.wakers);
                let ready = large.map(|large| Ready::again(&batch, large.whole));
                self.commit(now, at, (batch, ready), &reply, out);
            }
            (Verdict::Refused(refusal), reply) => {
                self.shared.inflight.leave(at, &mut out.wakers);
                self.shared.counters.txn_certification_failures.one();
                answer(reply, Err(CommitError::Refused(refusal)), out);
            }
            (verdict, reply) => {
                let gated = Gated { flights: vec![at], reply, since_ns: now.now_ns };
                if let Some(large) = large.filter(|_| verdict == Verdict::Committed) {
                    self.shared.store.0.show(at, large.whole);
                    return self.acknowledge(now, at, gated, out);
                }
                self.acknowledge(now, at, gated, out);
                if batch.writes.len() > KEYS_EACH_MAX {
                    out.spent.push(batch);
                }
            }
        }
    }

    /// Rule 1: at once if the timestamp is past, through the gate if not.
    pub(crate) fn acknowledge(&mut self, now: &Reading, commit: Timestamp, gated: Gated, out: &mut Outputs) {
        if self.shared.may_show(now, commit) {
            self.show(commit, gated, out);
        } else {
            if let Some(reply) = &gated.reply {
                reply.committed(commit);
            }
            self.gate.entry(commit).or_default().push(gated);
        }
    }

    fn show(&mut self, commit: Timestamp, gated: Gated, out: &mut Outputs) {
        self.shared.visible.fetch_max(commit.as_u64(), SeqCst);
        for flight in gated.flights {
            self.shared.inflight.leave(flight, &mut out.wakers);
        }
        answer(gated.reply, Ok(commit), out);
    }

    /// Opens the gate for what is past now.
    pub(crate) fn open_gate(&mut self, now: &Reading, out: &mut Outputs) {
        while let Some(entry) = self.gate.first_entry() {
            if !self.shared.may_show(now, *entry.key()) {
                return;
            }
            let (commit, gated) = entry.remove_entry();
            for one in gated {
                if let Some(reply) = &one.reply {
                    let waited_ns = now.now_ns.saturating_sub(one.since_ns);
                    reply.took(CommitWait { hidden_ns: 0, held_ns: waited_ns });
                    self.shared.counters.txn_commit_waits.one();
                    self.shared.counters.commit_wait_nanos.add(waited_ns);
                }
                self.show(commit, one, out);
            }
        }
    }

    fn split_applied(&mut self, now: &Reading, verdict: Verdict, reply: Option<Arc<Reply>>, out: &mut Outputs) {
        let result = match verdict {
            Verdict::Split(right) => {
                let id = right.id();
                self.insert_range(*right);
                self.release_too(now, id);
                Ok(Timestamp::MIN)
            }
            Verdict::Refused(refusal) => Err(CommitError::Refused(refusal)),
            _ => Ok(Timestamp::MIN),
        };
        answer(reply, result, out);
    }

    pub(crate) fn insert_range(&mut self, range: Range) {
        self.next_range = self.next_range.max(range.id().0 + 1);
        self.routes.insert(range.span().start.clone(), range.id());
        self.ranges.insert(range.id(), range);
    }

    /// The range that holds a key.
    pub(crate) fn route(&self, key: &[u8]) -> RangeId {
        let below = self.routes.range::<[u8], _>((std::ops::Bound::Unbounded, std::ops::Bound::Included(key)));
        below.last().map_or(RangeId(0), |(_, id)| *id)
    }

    /// Whether the batch lies in one range, and which; `ends` are the first and the last key that it writes.
    pub(crate) fn only_range(&self, batch: &Batch, ends: Option<(&[u8], &[u8])>) -> Option<RangeId> {
        let (first, last) = ends?;
        let id = self.route(first);
        if self.ranges.len() == 1 {
            return Some(id);
        }
        let span = self.ranges.get(&id)?.span();
        let writes = span.contains(last);
        let reads = batch.reads.iter().all(|r| match r {
            Read::Key { key, .. } | Read::Present { key, .. } | Read::Unreferred { key, .. } => span.contains(key),
            Read::Span { span: read, .. } | Read::Referred { span: read, .. } => span.covers(read),
        });
        (writes && reads).then_some(id)
    }
}

pub(crate) fn answer(reply: Option<Arc<Reply>>, result: Result<Timestamp, CommitError>, out: &mut Outputs) {
    if let Some(reply) = reply {
        reply.give(result, &mut out.wakers);
    }
}

pub(crate) fn damaged(what: String) -> StoreError {
    StoreError::Corrupt { place: "the log".to_owned(), what }
}

//! Large transactions: what they ask of a range goes there in parts, ahead of their commit.
//!
//! ```text
//!   gateway                       range A                     range B
//!     ├── Stage 1/3, 2/3 ────────►│      Stage 1/2 ──────────►│     a few at a time, each a command of the range's log
//!     │◄──────────── Done, Done ──┤◄──────────────────── Done ┤
//!     ├── Stage 3/3 ─────────────►│      Stage 2/2 ──────────►│
//!     │◄──────────────────── Done ┤◄──────────────────── Done ┤     all parts are in majorities
//!     ├── Prepare, of 3 parts ───►│      Prepare, of 2 ──────►│     small; from here on as any other
//! ```
//!
//! # Invariants
//! 1. Nothing is decided here. Until the commit is sent nothing was done, and will not be: whatever goes wrong is an abort, and certain.
//! 2. The commit goes out when every part was answered. Should one be lost meanwhile, the range refuses the commit (`protocol::txn`, invariant 9).
//! 3. At most [`PARTS_ON_THE_WAY`] parts of a transaction are on their way; those of several ranges in proportion, so that none waits for
//!    its command much longer than another.
//! 4. Of one range no part is sent that is [`PARTS_AHEAD`] behind the first that was not answered: as many may wait there for one that got lost, and are read at once
//!    when it comes.
//! 5. What is given up is fenced, so that its parts go at once. Of a gateway that dies they go [`STAGED_US`] after the last one came.

use super::core::Core;
use super::gateway::Owner;
use super::lent::Told;
use super::routes::Routes;
use super::seam::{LogLimits, NodeId};
use crate::TxnError;
use crate::reply::{CommitError, Reply};
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::door::{Answer, Request};
use protocol::txn::{Batch, Cause, Part, RangeId, Read, Refusal, Staged, TxnId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use store::Engine;

/// A part may be stamped so long after it was sent, and waits so long for its command, microseconds.
pub const STAGED_US: u64 = 30_000_000;
/// Parts of one transaction that are sent and not answered, at most.
pub(crate) const PARTS_ON_THE_WAY: usize = 8;
/// See invariant 4.
const PARTS_AHEAD: u32 = 2 * PARTS_ON_THE_WAY as u32;
/// A batch of so many reads and writes goes in parts, however few bytes they are: what is one entry is read, certified and applied in one step.
pub(crate) const ENTRY_KEYS_MAX: usize = 16_384;
/// For each of so many bytes a commit of staged parts may take a tick longer: its ranges have so much more to do.
const BYTES_PER_TICK: u64 = 512 << 10;
/// What a write or a read takes in a record beside its keys and value, at most.
const ENTRY_BYTES: usize = 32;

/// Bytes of a batch as a record, at most, without the names of participants.
pub(crate) fn record_bytes(batch: &Batch) -> usize {
    let writes = batch.writes.iter().map(|w| w.key.len() + w.value.as_ref().map_or(0, Bytes::len) + ENTRY_BYTES);
    let reads = batch.reads.iter().map(|read| match read {
        Read::Key { key, .. } | Read::Present { key, .. } | Read::Unreferred { key, .. } => key.len() + ENTRY_BYTES,
        Read::Span { span, .. } | Read::Referred { span, .. } => span.start.len() + span.end.len() + ENTRY_BYTES,
    });
    writes.chain(reads).sum()
}

/// Whether a batch goes as one entry.
pub(crate) fn fits_an_entry(batch: &Batch, limits: &LogLimits) -> bool {
    batch.writes.len() + batch.reads.len() <= ENTRY_KEYS_MAX && record_bytes(batch) <= limits.entry_bytes
}

/// What waits to be sent, of one range.
#[derive(Debug)]
struct Stack {
    range: RangeId,
    whole: Staged,
    parts: VecDeque<Bytes>,
}

/// A transaction divided by ranges, in the form in which it goes there.
#[derive(Debug)]
pub(crate) struct Divided {
    pub batches: BTreeMap<RangeId, Batch>,
    stacks: Vec<Stack>,
}

impl Divided {
    /// Divides a batch; what is too large for an entry becomes parts. It takes as long as the batch is large: not under the lock.
    pub fn of(batch: Batch, routes: &Routes, limits: &LogLimits) -> Divided {
        let mut divided = Divided { batches: routes.divide(batch), stacks: Vec::new() };
        for (range, batch) in &mut divided.batches {
            if fits_an_entry(batch, limits) {
                continue;
            }
            let (whole, parts) = batch.to_parts(limits.part_bytes);
            *batch = Batch { txn: batch.txn, until: batch.until, staged: Some(whole.clone()), ..Batch::default() };
            divided.stacks.push(Stack { range: *range, whole, parts: parts.into() });
        }
        divided
    }

    pub fn is_staged(&self) -> bool {
        !self.stacks.is_empty()
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Sending {
    divided: Divided,
    floor: Timestamp,
    reply: Arc<Reply>,
    /// Parts that were sent and not answered.
    calls: BTreeMap<u64, (RangeId, u32)>,
    /// What time a leader said it was, where the clock here is in doubt.
    told: Option<Told>,
    /// No part was sent after this.
    sent: Timestamp,
}

impl Sending {
    /// The next part: of the range that has sent the least of what it has to.
    fn next(&mut self) -> Option<(RangeId, Staged, u32, Bytes)> {
        let rest = |stack: &Stack| stack.parts.len() as f64 / f64::from(stack.whole.parts.max(1));
        let calls = &self.calls;
        let first = |of: RangeId| calls.values().filter(|(range, _)| *range == of).map(|(_, number)| *number).min();
        let may_go = |stack: &&mut Stack| {
            let next = stack.whole.parts - stack.parts.len() as u32;
            !stack.parts.is_empty() && first(stack.range).is_none_or(|first| next < first + PARTS_AHEAD)
        };
        let waiting = self.divided.stacks.iter_mut().filter(may_go);
        let stack = waiting.max_by(|a, b| rest(a).total_cmp(&rest(b)))?;
        let number = stack.whole.parts - stack.parts.len() as u32;
        let bytes = stack.parts.pop_front()?;
        Some((stack.range, stack.whole.clone(), number, bytes))
    }
}

impl<E: Engine> Core<E> {
    /// A large transaction of this node commits: its parts first.
    pub fn stage(
        &mut self,
        now: &Reading,
        txn: TxnId,
        floor: Timestamp,
        divided: Divided,
        reply: &Arc<Reply>,
        told: Option<Told>,
    ) {
        self.counters.txn_commits_staged.one();
        let reply = reply.clone();
        let sending = Sending { divided, floor, reply, calls: BTreeMap::new(), told, sent: Timestamp::MIN };
        self.sending.insert(txn, sending);
        self.send_parts(now, txn);
    }

    fn send_parts(&mut self, now: &Reading, txn: TxnId) {
        let told = self.sending.get(&txn).and_then(|sending| sending.told);
        let sent = told.map_or_else(|| now.interval.latest(), |told| told.latest(now));
        let until = Timestamp::new(sent.physical_us() + STAGED_US, 0);
        loop {
            let Some(sending) = self.sending.get_mut(&txn) else { return };
            if sending.calls.len() >= PARTS_ON_THE_WAY {
                return;
            }
            let Some((range, whole, number, bytes)) = sending.next() else { break };
            sending.sent = sending.sent.max(sent);
            let part = Part { txn, until, whole, number, bytes };
            self.counters.parts_sent.one();
            let call = self.call(range, Request::Stage(part), Owner::Sender(txn));
            if let Some(sending) = self.sending.get_mut(&txn) {
                sending.calls.insert(call, (range, number));
            }
        }
        let all = self.sending.get(&txn).is_some_and(|sending| sending.calls.is_empty());
        if all || self.sabotage.commit_unstaged() {
            self.commit_staged(now, txn);
        }
    }

    /// What became of a part.
    pub fn part_answered(&mut self, now: &Reading, txn: TxnId, call: u64, result: Result<(NodeId, Answer), TxnError>) {
        let Some(sending) = self.sending.get_mut(&txn) else { return };
        sending.calls.remove(&call);
        let bare = |cause| CommitError::Refused(Refusal { key: Bytes::new(), cause });
        let why = match result {
            Ok((_, Answer::Done)) => return self.send_parts(now, txn),
            Ok((_, Answer::Refused(refusal))) => CommitError::Refused(refusal),
            Ok((_, Answer::Moved(_))) => bare(Cause::Moved),
            Ok(_) => bare(Cause::Unstaged),
            Err(why) => CommitError::Unsent(Box::new(why)),
        };
        self.give_up_sending(txn, why);
    }

    /// All parts are there.
    fn commit_staged(&mut self, now: &Reading, txn: TxnId) {
        let told = self.sending.get(&txn).and_then(|sending| sending.told).map(|told| told.latest(now));
        let latest = match told.or_else(|| now.trusted().map(|interval| interval.latest())) {
            Some(latest) => latest,
            None => {
                self.give_up_sending(txn, CommitError::Unsent(Box::new(super::transaction::untrusted())));
                return;
            }
        };
        let Some(Sending { divided, floor, reply, calls, .. }) = self.sending.remove(&txn) else { return };
        // Their copies are asked for no more.
        calls.into_keys().for_each(|call| self.cancel(call));
        let bytes: u64 = divided.stacks.iter().map(|stack| stack.whole.bytes).sum();
        let more_ticks = bytes / BYTES_PER_TICK;
        // Whoever puts the parts together does nothing else meanwhile: its clock may be further by then.
        let until_us = latest.physical_us() + super::COMMIT_US + more_ticks * (super::TICK_NS / 1000);
        let until = Timestamp::new(until_us, 0);
        let mut batches = divided.batches;
        batches.values_mut().for_each(|batch| batch.until = Some(until));
        self.commit(now, txn, floor, batches, &reply, more_ticks);
    }

    /// It is not committed, and will not be. Nothing to do where its commit was sent.
    pub fn give_up_sending(&mut self, txn: TxnId, why: CommitError) -> bool {
        let Some(Sending { divided, reply, calls, sent, .. }) = self.sending.remove(&txn) else { return false };
        calls.into_keys().for_each(|call| self.cancel(call));
        // A part that comes later than this is remembered binds nobody, and goes by itself.
        let until = Timestamp::new(sent.physical_us() + super::COMMIT_US, 0);
        for stack in &divided.stacks {
            self.call(stack.range, Request::Fence { txn, until: Some(until) }, Owner::Nobody);
        }
        reply.give(Err(why), &mut self.out.wakers);
        true
    }
}

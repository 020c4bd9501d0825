//! Transactions on their way to an outcome: the coordinator's side, for those that began here and for those that somebody left behind.
//!
//! ```text
//!   gateway                      range A        range B
//!     ├── Prepare{A,B} ────────────►├──────────────►│     one record each, in parallel
//!     │◄──────────── Prepared(10) ──┤◄── Prepared(14)     applied: certified, durable in a majority
//!     │  committed at 14: a function of the two logs; the client hears as soon as 14 is past
//!     ├── Outcome(14) ─────────────►├──────────────►│     afterwards; versions appear
//!     │◄──────────────────── Done ──┤◄───────────── ┤
//!     └── Forget ──────────────────►├──────────────►│     everybody has it
//! ```
//!
//! Invariants:
//! 1. The decision is not made here: it is a function of what the participants' logs hold ([`Coordinator`]). So two coordinators decide alike,
//!    and none is needed for the outcome to be certain.
//! 2. A client is told "committed" or "aborted" only by what a log says. Where that cannot be learned in time, "unknown".
//! 3. Whoever leads a range with a prepare that is undecided for [`UNDECIDED_AFTER_US`] asks all participants; one without a prepare fences. A commit of
//!    which not all have heard is told on by whoever leads a range that remembers it. So nothing prepared, and no outcome, stays for ever, though gateways
//!    die at any step.
//! 4. Commands come until [`COMMIT_US`] after they were first sent, copies included (`protocol::txn`, invariant 8).

use super::core::{Core, Gated, ahead_ns};
use super::gateway::Owner;
use crate::reply::{CommitError, Reply};
use clock::{Reading, Timestamp};
use protocol::door::{Answer, Request};
use protocol::txn::{Answer as Said, Batch, Cause, Coordinator, Outcome, Prepared, RangeId, Refusal, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::Engine;

/// For so long after it was sent a command may be stamped, microseconds.
pub const COMMIT_US: u64 = 5_000_000;
/// A prepare is looked into when it is undecided for so long, microseconds.
pub const UNDECIDED_AFTER_US: u64 = 2_000_000;
/// A client waits so many ticks for what became of its commit, at most; then it is unknown to it: 10 seconds. No longer than for anything else
/// (`silence`) where a majority of one of its ranges has not been heard for about as long.
pub const COMMIT_TICKS_MAX: u64 = 100;
/// A coordinator that hears nothing of a prepare for so many ticks asks for a fence.
const FENCE_TICKS: u64 = 30;
/// A coordinator tells an outcome for so many ticks; after that whoever leads the ranges sees to it.
const TELL_TICKS_MAX: u64 = 300;
/// Transactions left behind that are seen to at a time.
const RECOVERIES_MAX: usize = 1024;
/// Outcomes that everybody has are forgotten in groups of this many, or at the next tick.
const FORGET_GROUP: usize = 64;

/// See the module.
#[derive(Debug)]
pub(crate) struct Committing {
    coordinator: Coordinator,
    until: Option<Timestamp>,
    /// One range alone: it decides.
    single: bool,
    reply: Option<Arc<Reply>>,
    refusal: Option<CommitError>,
    calls: BTreeSet<u64>,
    began_tick: u64,
    /// How far its floor lay ahead of what was certainly past when it was sent, nanoseconds.
    ahead_ns: u64,
    /// Its ranges may take so much longer, as it is large.
    more_ticks: u64,
    fencing: bool,
}

impl<E: Engine> Core<E> {
    /// A transaction of this node commits. For `more_ticks` it is given more time.
    pub fn commit(
        &mut self,
        now: &Reading,
        txn: TxnId,
        floor: Timestamp,
        parts: BTreeMap<RangeId, Batch>,
        reply: &Arc<Reply>,
        more_ticks: u64,
    ) {
        let until = parts.values().find_map(|batch| batch.until);
        let participants: Vec<RangeId> = parts.keys().copied().collect();
        let single = participants.len() == 1;
        let mut committing = Committing {
            coordinator: Coordinator::new(txn, &participants),
            until,
            single,
            reply: Some(reply.clone()),
            refusal: None,
            calls: BTreeSet::new(),
            began_tick: self.ticks,
            ahead_ns: ahead_ns(now, floor),
            more_ticks,
            fencing: false,
        };
        if !single {
            self.counters.txn_commits_multirange.one();
        }
        let early = self.sabotage.ack_before_durable();
        for (range, batch) in parts {
            let participants = participants.clone();
            let request = match single {
                true => Request::Commit { batch, floor },
                false => Request::Prepare { batch, participants, floor },
            };
            committing.calls.insert(self.call(range, request, Owner::Coordinator(txn)));
        }
        if early {
            reply.give(Ok(floor.max(now.interval.earliest())), &mut self.out.wakers);
            committing.reply = None;
        }
        self.committing.insert(txn, committing);
    }

    /// A participant's answer.
    pub fn coordinate(&mut self, now: &Reading, txn: TxnId, range: RangeId, call: u64, answer: Answer) {
        let Some(committing) = self.committing.get_mut(&txn) else { return };
        committing.calls.remove(&call);
        // Nothing of this part was done, nor will be: divided anew it is another transaction.
        let answer = match answer {
            Answer::Moved(_) => Answer::Refused(Refusal { key: bytes::Bytes::new(), cause: Cause::Moved }),
            answer => answer,
        };
        if committing.coordinator.decision().is_some() {
            if answer == Answer::Done {
                self.informed(txn, range);
            }
            return;
        }
        if committing.single {
            if let (Answer::CommittedLate(_, wait), Some(reply)) = (&answer, &committing.reply) {
                reply.took(*wait);
            }
            let result = match answer {
                Answer::Committed(at) | Answer::CommittedLate(at, _) => Ok(at),
                Answer::Refused(refusal) => Err(CommitError::Refused(refusal)),
                _ => Err(CommitError::Unanswered),
            };
            if let Ok(at) = result {
                self.saw(now, at);
            }
            self.conclude(txn, result);
            return;
        }
        let said = match answer {
            Answer::Prepared(at) => Said::Prepared(at),
            Answer::Committed(at) | Answer::CommittedLate(at, _) => Said::Known(Outcome::Committed(at)),
            Answer::Refused(refusal) => {
                committing.refusal.get_or_insert(CommitError::Refused(refusal));
                Said::Refused
            }
            // Nothing that is still undecided anywhere is forgotten as committed. But the client's own question may be that late.
            Answer::Forgotten => {
                committing.refusal.get_or_insert(CommitError::Unanswered);
                Said::Refused
            }
            _ => return,
        };
        if let Some(decision) = committing.coordinator.answer(range, said) {
            self.decided(now, txn, decision);
        }
    }

    /// What was committed is no future any more, for snapshots that are taken here.
    fn saw(&mut self, now: &Reading, commit: Timestamp) {
        if self.clock.observe(commit, now.interval, self.options.node_options.tolerance_us).is_err() {
            self.counters.clock_future_timestamps.one();
        }
    }

    fn conclude(&mut self, txn: TxnId, result: Result<Timestamp, CommitError>) {
        let Some(committing) = self.committing.remove(&txn) else { return };
        for call in committing.calls {
            self.cancel(call);
        }
        if let Ok(at) = result {
            self.visible = self.visible.max(at);
        }
        if let Some(reply) = committing.reply {
            reply.give(result, &mut self.out.wakers);
        }
    }

    /// The decision is a function of the logs now: the client hears, and so do the participants.
    fn decided(&mut self, now: &Reading, txn: TxnId, decision: Option<Timestamp>) {
        let Some(committing) = self.committing.get_mut(&txn) else { return };
        let reply = committing.reply.take();
        let refusal = committing.refusal.take();
        // Whoever finds out what another left behind waits for nothing.
        let ahead_ns = if reply.is_some() { committing.ahead_ns } else { 0 };
        let (participants, until) = (committing.coordinator.participants().collect::<Vec<_>>(), committing.until);
        let calls = std::mem::take(&mut committing.calls);
        committing.began_tick = self.ticks;
        calls.into_iter().for_each(|call| self.cancel(call));
        let commit = decision.filter(|_| reply.is_some() || !self.sabotage.abort_prepared());
        match decision {
            Some(at) => {
                self.saw(now, at);
                let gated = Gated { reply, ahead_ns, since_ns: now.now_ns, ..Gated::default() };
                match gated.reply.is_some() && self.in_doubt(now) {
                    true if self.sabotage.acknowledge_unvouched() => self.show(at, gated),
                    true => self.vouch(txn, at, participants.clone(), gated),
                    false => self.acknowledge(now, at, gated),
                }
            }
            None => {
                let fenced = CommitError::Refused(Refusal { key: bytes::Bytes::new(), cause: Cause::Fenced });
                if let Some(reply) = reply {
                    reply.give(Err(refusal.unwrap_or(fenced)), &mut self.out.wakers);
                }
            }
        }
        self.tell_outcome(txn, &participants, commit, until);
    }

    fn tell_outcome(
        &mut self,
        txn: TxnId,
        participants: &[RangeId],
        commit: Option<Timestamp>,
        until: Option<Timestamp>,
    ) {
        let request = Request::Outcome { txn, commit, until };
        let calls: Vec<u64> =
            participants.iter().map(|range| self.call(*range, request.clone(), Owner::Coordinator(txn))).collect();
        if let Some(committing) = self.committing.get_mut(&txn) {
            committing.calls.extend(calls);
        }
    }

    /// A participant has the outcome.
    fn informed(&mut self, txn: TxnId, range: RangeId) {
        let Some(committing) = self.committing.get_mut(&txn) else { return };
        if !committing.coordinator.informed(range) {
            return;
        }
        let committed = committing.coordinator.decision().flatten().is_some();
        let participants: Vec<RangeId> = committing.coordinator.participants().collect();
        self.committing.remove(&txn);
        // An abort is forgotten by itself, as it has an end.
        let forget = committed || self.sabotage.without_until();
        for range in participants.into_iter().filter(|_| forget) {
            let group = self.forget.entry(range).or_default();
            group.push(txn);
            if group.len() >= FORGET_GROUP {
                self.send_forget(range);
            }
        }
    }

    fn send_forget(&mut self, range: RangeId) {
        if let Some(txns) = self.forget.remove(&range).filter(|txns| !txns.is_empty()) {
            self.call(range, Request::Forget { txns }, Owner::Nobody);
        }
    }

    /// Deadlines of commits, and outcomes to be forgotten.
    pub fn tick_commits(&mut self, now: &Reading) {
        let _ = now;
        let ranges: Vec<RangeId> = self.forget.keys().copied().collect();
        ranges.into_iter().for_each(|range| self.send_forget(range));
        let ticks = self.ticks;
        let (mut late, mut over, mut unsure) = (Vec::new(), Vec::new(), Vec::new());
        for (txn, committing) in &self.committing {
            let age = ticks.saturating_sub(committing.began_tick).saturating_sub(committing.more_ticks);
            match committing.coordinator.decision() {
                Some(_) if age > TELL_TICKS_MAX => over.push(*txn),
                None if age > COMMIT_TICKS_MAX => late.push(*txn),
                None if committing.coordinator.unanswered().iter().any(|range| self.has_no_majority(*range, age)) => {
                    late.push(*txn);
                }
                None if age > FENCE_TICKS && !committing.single && !committing.fencing => unsure.push(*txn),
                _ => {}
            }
        }
        for txn in late {
            self.counters.commits_unanswered.one();
            self.conclude(txn, Err(CommitError::Unanswered));
        }
        for txn in over {
            self.conclude(txn, Err(CommitError::Unanswered));
        }
        for txn in unsure {
            self.fence_unanswered(txn);
        }
    }

    /// Asks those that have not answered for a fence, in place of a prepare.
    fn fence_unanswered(&mut self, txn: TxnId) {
        let Some(committing) = self.committing.get_mut(&txn) else { return };
        committing.fencing = true;
        let until = committing.until;
        let unanswered = committing.coordinator.unanswered();
        let calls = std::mem::take(&mut committing.calls);
        calls.into_iter().for_each(|call| self.cancel(call));
        let ask = |range: RangeId| (range, Request::Fence { txn, until });
        let calls: Vec<u64> = unanswered
            .into_iter()
            .map(ask)
            .map(|(range, request)| self.call(range, request, Owner::Coordinator(txn)))
            .collect();
        if let Some(committing) = self.committing.get_mut(&txn) {
            committing.calls.extend(calls);
        }
    }

    /// What others left behind in a range that is led here.
    pub fn recover_undecided(&mut self, now: &Reading, range: RangeId, earliest: Timestamp) {
        let _ = now;
        let Some(shard) = self.shards.get(&range) else { return };
        let old = |at: Timestamp, after_us: u64| at.physical_us().saturating_add(after_us) < earliest.physical_us();
        let prepared = shard.range.prepared().iter();
        let undecided = prepared.filter(|(_, prepared)| old(prepared.at, UNDECIDED_AFTER_US));
        let undecided =
            undecided.map(|(txn, Prepared { until, participants, .. })| (*txn, participants.clone(), *until, None));
        let untold = shard.range.owed().filter(|(_, at, _, until)| old(*until.max(at), UNDECIDED_AFTER_US));
        let untold = untold.map(|(txn, at, owed_to, until)| (txn, owed_to.to_vec(), Some(until), Some(at)));
        let found: Vec<_> = undecided.chain(untold).take(RECOVERIES_MAX).collect();
        for (txn, participants, until, commit) in found {
            if self.committing.contains_key(&txn) || self.committing.len() >= RECOVERIES_MAX {
                continue;
            }
            self.counters.txn_recoveries.one();
            let mut coordinator = Coordinator::new(txn, &participants);
            if let (Some(at), Some(first)) = (commit, participants.first()) {
                coordinator.answer(*first, Said::Known(Outcome::Committed(at)));
            }
            let committing = Committing {
                coordinator,
                until,
                single: false,
                reply: None,
                refusal: None,
                calls: BTreeSet::new(),
                began_tick: self.ticks,
                ahead_ns: 0,
                more_ticks: 0,
                fencing: true,
            };
            self.committing.insert(txn, committing);
            match commit {
                Some(_) => self.tell_outcome(txn, &participants, commit, until),
                None => self.fence_unanswered(txn),
            }
        }
    }
}

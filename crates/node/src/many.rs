//! Transactions of many ranges, and what a tick, a failed append and a restart make of them.

use crate::core::{AppendError, Core, FORGET_GROUP, Gated, Outputs, Pending, QUEUE_MAX, answer, damaged};
use crate::large::Ready;
use crate::references::refusal;
use crate::reply::{CommitError, Reply};
use crate::transaction::writes::Whole;
use clock::{Reading, Timestamp};
use protocol::log::LogIndex;
use protocol::txn::{
    Answer, Batch, Cause, Command, Coordinator, Prepared, RangeId, Read, Record, Refusal, Standing, TxnId, Verdict,
    VersionStore,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Engine, StoreError};

/// A prepare without an outcome is looked into after this long, nanoseconds.
pub const UNDECIDED_AFTER_NS: u64 = 1_000_000_000;

impl<E: Engine> Core<E> {
    /// A commit: one record where it lies in one range, else a prepare for each.
    pub(crate) fn commit(
        &mut self,
        now: &Reading,
        floor: Timestamp,
        (batch, ready): (Batch, Option<Ready>),
        reply: &Arc<Reply>,
        out: &mut Outputs,
    ) {
        if let Some(closed) = &self.closed {
            return answer(Some(reply.clone()), Err(closed.clone()), out);
        }
        if self.log.len() >= QUEUE_MAX {
            return answer(Some(reply.clone()), Err(CommitError::Overloaded), out);
        }
        self.propose_owed(now);
        if let Some(refusal) = self.against_references(&batch) {
            self.shared.counters.txn_certification_failures.one();
            return answer(Some(reply.clone()), Err(CommitError::Refused(refusal)), out);
        }
        let early = self.shared.sabotage.ack_before_durable();
        let only = match &ready {
            Some(ready) => self.only_range(&batch, ready.whole.ends()),
            None => {
                let ends = batch.writes.first().zip(batch.writes.last());
                self.only_range(&batch, ends.map(|(first, last)| (&first.key[..], &last.key[..])))
            }
        };
        let at = match (only, ready) {
            (Some(range), Some(ready)) => self.propose_ready(now, floor, range, (batch, ready), reply.clone()),
            (Some(range), None) => self.propose(now, floor, range, Command::Commit(batch), Some(reply.clone())),
            (None, ready) => {
                let mut batch = batch;
                if let Some(Ready { whole, .. }) = ready {
                    batch.writes = Arc::try_unwrap(whole).map_or_else(|whole| whole.to_writes(), Whole::into_writes);
                }
                self.prepare_all(now, floor, batch, reply.clone())
            }
        };
        if early {
            answer(Some(reply.clone()), Ok(at), out);
        }
    }

    /// A key that somebody has come to refer to since it was looked for who does. Nobody has seen the transaction yet, and there are no copies of it: so it need not stand in the log.
    fn against_references(&self, batch: &Batch) -> Option<Refusal> {
        match self.shared.sabotage.forget_who_refers() {
            true => None,
            false => self.shared.references.against(batch, self.referred_from).map(refusal),
        }
    }

    fn prepare_all(&mut self, now: &Reading, floor: Timestamp, batch: Batch, reply: Arc<Reply>) -> Timestamp {
        let txn = batch.txn;
        let parts = self.divide(batch);
        let participants: Vec<RangeId> = parts.keys().copied().collect();
        self.shared.counters.txn_commits_multirange.one();
        let coordinator = Coordinator::new(txn, &participants);
        self.pending
            .insert(txn, Pending { coordinator, reply: Some(reply.clone()), refusal: None, asked_ns: now.now_ns });
        let mut last = Timestamp::MIN;
        for (range, batch) in parts {
            let command = Command::Prepare { batch, participants: participants.clone() };
            last = self.propose(now, floor, range, command, Some(reply.clone()));
        }
        last
    }

    /// Each range's part of a batch, in range order.
    fn divide(&self, batch: Batch) -> BTreeMap<RangeId, Batch> {
        let mut parts: BTreeMap<RangeId, Batch> = BTreeMap::new();
        let txn = batch.txn;
        let mut part = |id: RangeId, f: &mut dyn FnMut(&mut Batch)| {
            f(parts.entry(id).or_insert_with(|| Batch { txn, ..Batch::default() }));
        };
        for write in batch.writes {
            let mut write = Some(write);
            let id = write.as_ref().map_or(RangeId(0), |w| self.route(&w.key));
            part(id, &mut |b| b.writes.extend(write.take()));
        }
        for read in batch.reads {
            match &read {
                Read::Key { key, .. } | Read::Present { key, .. } | Read::Unreferred { key, .. } => {
                    part(self.route(key), &mut |b| b.reads.push(read.clone()));
                }
                Read::Span { span, .. } | Read::Referred { span, .. } => {
                    let touched = self.ranges.values().filter(|r| r.span().overlaps(span));
                    for range in touched {
                        part(range.id(), &mut |b| b.reads.push(read.of_part(range.span())));
                    }
                }
            }
        }
        parts
    }

    pub(crate) fn prepare_applied(
        &mut self,
        now: &Reading,
        at: Timestamp,
        range: RangeId,
        batch: Batch,
        verdict: Verdict,
        out: &mut Outputs,
    ) -> Result<(), StoreError> {
        let reply = match verdict {
            Verdict::Refused(refusal) => {
                self.shared.inflight.leave(at, &mut out.wakers);
                self.shared.counters.txn_certification_failures.one();
                if let Some(pending) = self.pending.get_mut(&batch.txn) {
                    pending.refusal.get_or_insert(CommitError::Refused(refusal));
                }
                Answer::Refused
            }
            _ => {
                let decision = self.pending.get(&batch.txn).and_then(|p| p.coordinator.decision());
                if decision == Some(None) {
                    self.shared.inflight.leave(at, &mut out.wakers);
                }
                Answer::Prepared(at)
            }
        };
        self.participant_answered(now, batch.txn, range, reply, out)
    }

    pub(crate) fn fence_applied(
        &mut self,
        now: &Reading,
        range: RangeId,
        txn: TxnId,
        out: &mut Outputs,
    ) -> Result<(), StoreError> {
        let answer = self.standing(range, txn).unwrap_or(Answer::Refused);
        self.participant_answered(now, txn, range, answer, out)
    }

    fn standing(&self, range: RangeId, txn: TxnId) -> Option<Answer> {
        match self.ranges.get(&range)?.standing(txn) {
            Standing::Prepared(at) => Some(Answer::Prepared(at)),
            Standing::Decided(outcome) => Some(Answer::Known(outcome)),
            Standing::Unknown => None,
        }
    }

    fn participant_answered(
        &mut self,
        now: &Reading,
        txn: TxnId,
        range: RangeId,
        answer: Answer,
        out: &mut Outputs,
    ) -> Result<(), StoreError> {
        let Some(pending) = self.pending.get_mut(&txn) else { return Ok(()) };
        match pending.coordinator.answer(range, answer) {
            Some(decision) => self.decide(now, txn, decision, out),
            None => Ok(()),
        }
    }

    /// The decision is a function of the log now: answers the client, and tells the participants.
    ///
    /// A commit is also shown now, before its outcomes are durable: readers need not wait for another sync, nor for a full
    /// disk. It changes no verdict: until the outcome is applied the prepare refuses whatever touches these keys, here as in
    /// a replay, and a replay decides the same.
    fn decide(
        &mut self,
        now: &Reading,
        txn: TxnId,
        decision: Option<Timestamp>,
        out: &mut Outputs,
    ) -> Result<(), StoreError> {
        let Some(pending) = self.pending.get_mut(&txn) else { return Ok(()) };
        let reply = pending.reply.take();
        let decision = decision.filter(|_| reply.is_some() || !self.shared.sabotage.abort_prepared());
        let refusal = pending.refusal.take();
        let participants: Vec<RangeId> = pending.coordinator.participants().collect();
        let prepared = participants.iter().filter_map(|range| self.ranges.get(range)?.prepared().get(&txn));
        match decision {
            Some(commit) => {
                self.shared.clock.ratchet(commit);
                let mut flights = Vec::with_capacity(participants.len());
                for Prepared { at, batch, .. } in prepared {
                    self.shared.store.write(&batch.writes, commit, *at)?;
                    self.shared.references.note(batch, commit);
                    flights.push(*at);
                }
                self.acknowledge(now, commit, Gated { flights, reply, since_ns: now.now_ns }, out);
            }
            None => {
                prepared.for_each(|p| self.shared.inflight.leave(p.at, &mut out.wakers));
                let fenced = Refusal { key: bytes::Bytes::new(), cause: Cause::Fenced };
                answer(reply, Err(refusal.unwrap_or(CommitError::Refused(fenced))), out);
            }
        }
        for range in participants {
            self.propose(now, Timestamp::MIN, range, Command::Outcome { txn, commit: decision, until: None }, None);
        }
        Ok(())
    }

    /// `flight`: the timestamp of the prepare that this ends.
    pub(crate) fn outcome_applied(
        &mut self,
        now: &Reading,
        range: RangeId,
        txn: TxnId,
        flight: Option<Timestamp>,
        verdict: &Verdict,
        out: &mut Outputs,
    ) {
        let decided_here = self.pending.get(&txn).is_some_and(|p| p.coordinator.decision().is_some());
        if let (Some(flight), false) = (flight, decided_here) {
            match verdict {
                Verdict::Applied(commit) => {
                    let gated = Gated { flights: vec![flight], reply: None, since_ns: now.now_ns };
                    self.acknowledge(now, *commit, gated, out);
                }
                _ => self.shared.inflight.leave(flight, &mut out.wakers),
            }
        }
        let Some(pending) = self.pending.get_mut(&txn) else { return };
        if pending.coordinator.informed(range) {
            let participants: Vec<RangeId> = pending.coordinator.participants().collect();
            self.pending.remove(&txn);
            for range in participants {
                self.forget_later(now, range, txn);
            }
        }
    }

    fn forget_later(&mut self, now: &Reading, range: RangeId, txn: TxnId) {
        let remembered = self.ranges.get(&range).is_some_and(|r| r.outcomes().contains_key(&txn));
        if !remembered {
            return;
        }
        let group = self.forget.entry(range).or_default();
        group.push(txn);
        if group.len() >= FORGET_GROUP {
            let txns = std::mem::take(group);
            self.propose(now, Timestamp::MIN, range, Command::Forget { txns }, None);
        }
    }

    /// What a full disk refused, again: before anything new, which may rely on it.
    fn propose_owed(&mut self, now: &Reading) {
        for (range, command) in std::mem::take(&mut self.owed) {
            self.propose(now, Timestamp::MIN, range, command, None);
        }
    }

    pub(crate) fn tick(&mut self, now: &Reading, out: &mut Outputs) -> Result<(), StoreError> {
        self.open_gate(now, out);
        // All of them, also while the clock does not tell: who still waits comes again, who gave up does not stay.
        out.wakers.append(&mut self.held);
        if self.closed.is_some() {
            return Ok(());
        }
        self.propose_owed(now);
        self.renew_lease(now);
        for (range, txns) in std::mem::take(&mut self.forget) {
            if !txns.is_empty() {
                self.propose(now, Timestamp::MIN, range, Command::Forget { txns }, None);
            }
        }
        self.resolve_undecided(now, UNDECIDED_AFTER_NS, out)
    }

    /// Looks into every prepare that has been undecided for longer than `after_ns` and asks all its participants.
    fn resolve_undecided(&mut self, now: &Reading, after_ns: u64, out: &mut Outputs) -> Result<(), StoreError> {
        let prepared = self.ranges.values().flat_map(|r| r.prepared().iter());
        let undecided: BTreeMap<TxnId, Vec<RangeId>> =
            prepared.map(|(txn, p)| (*txn, p.participants.clone())).collect();
        for (txn, participants) in undecided {
            let fresh = || Pending {
                coordinator: Coordinator::new(txn, &participants),
                reply: None,
                refusal: None,
                asked_ns: 0,
            };
            let pending = self.pending.entry(txn).or_insert_with(fresh);
            if pending.coordinator.decision().is_some() || now.now_ns.saturating_sub(pending.asked_ns) < after_ns {
                continue;
            }
            pending.asked_ns = now.now_ns;
            self.shared.counters.txn_recoveries.one();
            for range in self.pending.get(&txn).map(|p| p.coordinator.unanswered()).unwrap_or_default() {
                match self.standing(range, txn) {
                    Some(answer) => self.participant_answered(now, txn, range, answer, out)?,
                    None => drop(self.propose(now, Timestamp::MIN, range, Command::Fence { txn, until: None }, None)),
                }
            }
        }
        Ok(())
    }

    /// The disk holds nothing from `from` on: what stood there never happened.
    pub(crate) fn append_failed(&mut self, from: LogIndex, why: AppendError, out: &mut Outputs) {
        let error = match why {
            AppendError::Full => CommitError::DiskFull,
            AppendError::Busy => CommitError::Overloaded,
            AppendError::Broken => {
                self.closed = Some(CommitError::Unknown);
                CommitError::Unknown
            }
        };
        self.batch = crate::core::LogBatch::default();
        for entry in self.log.failed(from) {
            let range = entry.payload.range;
            match entry.payload.command {
                Command::Commit(_) => {
                    self.shared.inflight.leave(entry.at, &mut out.wakers);
                    answer(entry.payload.reply, Err(error.clone()), out);
                }
                Command::Prepare { batch, .. } => {
                    self.shared.inflight.leave(entry.at, &mut out.wakers);
                    if let Some(pending) = self.pending.get_mut(&batch.txn) {
                        pending.refusal.get_or_insert(error.clone());
                    }
                    self.drop_prepare(batch.txn, range, &error, out);
                }
                Command::Split { .. } => answer(entry.payload.reply, Err(error.clone()), out),
                // Without the release the next life waits for the end of the lease.
                Command::Collect { .. } | Command::Release | Command::Raise { .. } => {}
                Command::Lease { .. } => self.lease_failed(&error, out),
                command => self.owed.push((range, command)),
            }
        }
    }

    /// A prepare that never reached the log: nobody else can decide on it, so the client hears at once.
    fn drop_prepare(&mut self, txn: TxnId, range: RangeId, error: &CommitError, out: &mut Outputs) {
        let Some(pending) = self.pending.get_mut(&txn) else { return };
        answer(pending.reply.take(), Err(error.clone()), out);
        let none_logged =
            pending.coordinator.participants().all(|r| r >= range) && pending.coordinator.decision().is_none();
        if none_logged {
            self.pending.remove(&txn);
            return;
        }
        let decided = pending.coordinator.answer(range, Answer::Refused).is_some();
        if decided {
            let participants: Vec<RangeId> = pending.coordinator.participants().collect();
            self.owed
                .extend(participants.into_iter().map(|r| (r, Command::Outcome { txn, commit: None, until: None })));
        }
    }

    pub(crate) fn replay(&mut self, record: &Record) -> Result<(), StoreError> {
        let index = LogIndex(self.log.last_index().0 + 1);
        if record.at <= self.log.closed() {
            return Err(damaged(format!("record {} at {} comes after {}", index.0, record.at, self.log.closed())));
        }
        self.log.replayed(index, record.at);
        self.shared.clock.ratchet(record.at);
        let Some(range) = self.ranges.get_mut(&record.range) else {
            return Err(damaged(format!("record {} names {}, which does not exist", index.0, record.range)));
        };
        if let Verdict::Split(right) = range.apply(record.at, &record.command, &self.shared.store)? {
            self.insert_range(*right);
        }
        self.applied = index;
        Ok(())
    }

    /// Undecided prepares go back into flight, at their timestamps, and are resolved.
    pub(crate) fn recovered(&mut self, now: &Reading, out: &mut Outputs) -> Result<(), StoreError> {
        let visible = self.log.closed();
        self.shared.clock.ratchet(visible);
        self.shared.visible.fetch_max(visible.as_u64(), std::sync::atomic::Ordering::SeqCst);
        self.referred_from = visible;
        self.adopt_lease();
        for prepared in self.ranges.values().flat_map(|r| r.prepared().values()) {
            let Prepared { at, batch, .. } = prepared;
            let announced = self.shared.inflight.announce(&batch.writes[..]);
            self.shared.inflight.enter(announced, || *at);
        }
        self.resolve_undecided(now, 0, out)?;
        self.forget_known(now);
        Ok(())
    }

    /// Outcomes remembered from before a crash: on this node every participant can be asked at once.
    fn forget_known(&mut self, now: &Reading) {
        let known: Vec<(RangeId, TxnId)> =
            self.ranges.values().flat_map(|r| r.outcomes().keys().map(|txn| (r.id(), *txn))).collect();
        let undecided = |txn: &TxnId| self.ranges.values().any(|r| r.prepared().contains_key(txn));
        let done: Vec<(RangeId, TxnId)> = known.into_iter().filter(|(_, txn)| !undecided(txn)).collect();
        for (range, txn) in done {
            self.forget_later(now, range, txn);
        }
    }
}

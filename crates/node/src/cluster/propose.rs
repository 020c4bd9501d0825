//! What changes a range: commands on their way through its log, and what applying them makes of them.
//!
//! Invariants:
//! 1. A command that was proposed is in flight until its outcome is visible; its timestamp lies above all that was read here.
//! 2. Whoever asks for a transaction that is on its way, or over, is not proposed a second time: he hears what comes of the first. (A copy that
//!    was proposed elsewhere, by a leader that fell, does nothing when it is applied: `protocol::txn`, invariant 8.)
//! 3. A verdict is told when the command is applied, by whoever proposed it, leader or not any more: it is a function of the log. What the log does
//!    not have any more is [`Answer::TryLater`]: asking again is safe.
//! 4. A commit is answered when it is certainly past; a prepare at once, since nothing of it is visible.
//! 5. Outcomes reach versions here and nowhere else, from this range's log.

use super::core::{Core, Gated, ahead_ns, group_of};
use super::flights::Kind;
use super::shard::{Asker, Proposal, Shard, Slot};
use crate::core::damaged;
use crate::references::refuse_in_log;
use clock::{Reading, Timestamp};
use protocol::door::{Answer, Request};
use protocol::log::raft::{Body, LogEntry, Refused};
use protocol::txn::{
    Batch, Cause, Command, Outcome, Part, Range, RangeId, Read, Record, Refusal, Span, Standing, Verdict, encode_record,
};
use store::{Engine, StoreError};

pub(crate) fn fenced() -> Answer {
    Answer::Refused(Refusal { key: bytes::Bytes::new(), cause: Cause::Fenced })
}

/// What a command is about, for its askers.
pub(crate) fn slot_of(command: &Command) -> Option<Slot> {
    match command {
        Command::Commit(batch) | Command::Prepare { batch, .. } => Some((batch.txn, 0)),
        Command::Stage { part, .. } => Some(slot_of_part(part)),
        _ => None,
    }
}

fn slot_of_part(part: &Part) -> Slot {
    (part.txn, part.number.saturating_add(1))
}

impl<E: Engine> Core<E> {
    /// A request that goes through the log.
    pub fn command(&mut self, now: &Reading, asker: Asker, range: RangeId, request: Request) -> Result<(), StoreError> {
        let shard = self.shard(range)?;
        let (command, floor) = match request {
            Request::Commit { batch, floor } => {
                if let Some(known) = self.known(range, &batch)? {
                    self.answer_standing(now, asker, known);
                    return Ok(());
                }
                if let Some(answer) = self.is_outside(range, &batch)?.or_else(|| self.awaits_parts(range, &batch)) {
                    self.answer(asker, answer);
                    return Ok(());
                }
                (Command::Commit(batch), floor)
            }
            Request::Prepare { batch, participants, floor } => {
                if let Some(known) = self.known(range, &batch)? {
                    let prepared = shard.range.prepared().get(&batch.txn);
                    match prepared.is_some_and(|first| first.participants != participants) {
                        true => self.answer(asker, fenced()),
                        false => self.answer_standing(now, asker, known),
                    }
                    return Ok(());
                }
                if let Some(answer) = self.is_outside(range, &batch)?.or_else(|| self.awaits_parts(range, &batch)) {
                    self.answer(asker, answer);
                    return Ok(());
                }
                if self.is_halving(range) {
                    self.answer(asker, Answer::TryLater);
                    return Ok(());
                }
                (Command::Prepare { batch, participants }, floor)
            }
            Request::Stage(part) => match self.take_part(range, part)? {
                Ok(command) => (command, Timestamp::MIN),
                Err(answer) => {
                    self.answer(asker, answer);
                    return Ok(());
                }
            },
            Request::Fence { txn, until } => match shard.range.standing(txn) {
                Standing::Unknown => (Command::Fence { txn, until }, Timestamp::MIN),
                known => {
                    self.answer_standing(now, asker, known);
                    return Ok(());
                }
            },
            Request::Outcome { txn, commit, until } => match (shard.range.prepared().get(&txn), commit) {
                // Prepared above its commit: no coordinator says so.
                (Some(prepared), Some(at)) if at < prepared.at => {
                    self.counters.messages_refused.one();
                    return Ok(());
                }
                (Some(_), _) => (Command::Outcome { txn, commit, until }, commit.unwrap_or_default()),
                (None, None) if shard.range.standing(txn) == Standing::Unknown => {
                    (Command::Outcome { txn, commit, until }, Timestamp::MIN)
                }
                (None, _) => {
                    self.answer(asker, Answer::Done);
                    return Ok(());
                }
            },
            Request::Split { at } => match self.plan_split(range, at)? {
                Ok(command) => (command, Timestamp::MIN),
                Err(answer) => {
                    self.answer(asker, answer);
                    return Ok(());
                }
            },
            Request::Forget { txns } => {
                let outcomes = shard.range.outcomes();
                if !txns.iter().any(|txn| outcomes.contains_key(txn)) {
                    self.answer(asker, Answer::Done);
                    return Ok(());
                }
                (Command::Forget { txns }, Timestamp::MIN)
            }
            Request::Get { .. }
            | Request::GetMany { .. }
            | Request::LockMany { .. }
            | Request::Present { .. }
            | Request::Scan { .. }
            | Request::Changed { .. }
            | Request::Settled { .. }
            | Request::Time
            | Request::Lock { .. }
            | Request::Hold { .. }
            | Request::Keep { .. } => return Ok(()),
        };
        if self.puts_off(now, range, &command) {
            self.counters.commands_put_off.one();
            self.answer(asker, Answer::Waiting);
            return Ok(());
        }
        let command = self.against_references(range, command);
        self.propose(now, Some(asker), range, command, floor);
        Ok(())
    }

    /// A command that relies on it that nobody has come to refer to a key, though somebody has, becomes one that the log refuses (`references`, invariant 2): a copy of it that another leader proposes comes to the same, or is
    /// told what became of this one.
    fn against_references(&self, range: RangeId, mut command: Command) -> Command {
        let (Command::Commit(batch) | Command::Prepare { batch, .. }) = &mut command else { return command };
        let Some(shard) = self.shards.get(&range).filter(|_| !self.sabotage.forget_who_refers()) else {
            return command;
        };
        // Without its parts it is refused as it is.
        let whole =
            if batch.staged.is_none() { Some(&*batch) } else { shard.range.staged(batch).map(|whole| &**whole) };
        if let Some(key) = whole.and_then(|whole| self.references.against(whole, shard.referred_from)) {
            refuse_in_log(batch, key);
        }
        command
    }

    /// Notes what a command refers to that has its place in the log (`references`, invariant 1).
    fn note_references(&self, shard: &Shard, command: &Command, at: Timestamp) {
        match command {
            Command::Commit(batch) | Command::Prepare { batch, .. } => {
                self.references.note(shard.range.staged(batch).map_or(batch, |whole| whole), at);
            }
            Command::Outcome { txn, commit: Some(commit), .. } => {
                let prepared = shard.range.prepared().get(txn);
                prepared.into_iter().for_each(|prepared| self.references.note(&prepared.batch, *commit));
            }
            _ => {}
        }
    }

    /// What is known of a transaction that asks to commit or prepare; `None`: it is new, or on its way.
    fn known(&self, range: RangeId, batch: &Batch) -> Result<Option<Standing>, StoreError> {
        let standing = self.shard(range)?.range.standing(batch.txn);
        Ok(Some(standing).filter(|known| *known != Standing::Unknown && batch.until.is_some()))
    }

    /// Divided by bounds that hold no more: nothing was done, nor will be, as whatever comes to this range is refused for the same reason. (Nothing was done: as long as the range would know of it.
    /// A copy that comes later than that may be one of what was done before the range was split.)
    fn is_outside(&self, range: RangeId, batch: &Batch) -> Result<Option<Answer>, StoreError> {
        let shard = self.shard(range)?;
        if shard.by_slot.contains_key(&(batch.txn, 0)) {
            return Ok(None);
        }
        if batch.until.is_some_and(|until| shard.range.may_have_forgotten(until)) && !self.sabotage.deny_the_forgotten()
        {
            return Ok(Some(Answer::Forgotten));
        }
        let span = shard.range.span();
        if let Some(staged) = batch.staged.as_ref().filter(|staged| !span.covers(&staged.span)) {
            return Ok(Some(self.moved_span(&staged.span)));
        }
        let write = batch.writes.iter().find(|write| !span.contains(&write.key)).map(|write| self.moved(&write.key));
        let read = || {
            batch.reads.iter().find_map(|read| match read {
                Read::Key { key, .. } | Read::Present { key, .. } | Read::Unreferred { key, .. } => {
                    (!span.contains(key)).then(|| self.moved(key))
                }
                Read::Span { span: read, .. } | Read::Referred { span: read, .. } => {
                    (!span.covers(read)).then(|| self.moved_span(read))
                }
            })
        };
        Ok(write.or_else(read))
    }

    /// A command whose parts are on their way through the log: proposed now it could find them when it is applied, and would not have been in flight.
    /// (Of parts that are not on their way none can come before it.)
    fn awaits_parts(&self, range: RangeId, batch: &Batch) -> Option<Answer> {
        batch.staged.as_ref().filter(|_| !self.sabotage.commit_unstaged())?;
        let shard = self.shards.get(&range)?;
        let parts = (batch.txn, 1)..=(batch.txn, u32::MAX);
        shard.by_slot.range(parts).next().map(|_| Answer::TryLater)
    }

    /// The command for a part; or the answer, where none is needed or possible.
    fn take_part(&self, range: RangeId, part: Part) -> Result<Result<Command, Answer>, StoreError> {
        let shard = self.shard(range)?;
        let state = &shard.range;
        if state.standing(part.txn) != Standing::Unknown {
            return Ok(Err(fenced()));
        }
        if !state.span().covers(&part.whole.span) {
            return Ok(Err(self.moved_span(&part.whole.span)));
        }
        if state.has_part(&part) {
            return Ok(Err(Answer::Done));
        }
        let quota = self.options.limits.staged_bytes;
        // It was let in when it came first, whatever others have staged since.
        let on_its_way = shard.by_slot.contains_key(&slot_of_part(&part));
        if !on_its_way && (!state.stages(part.txn) || part.number == 0) {
            // The range's log looks after the range. The node's memory is looked after here: short writes take several times their bytes.
            let (bytes, staged) = (part.memory_bytes(), self.staged_memory_beside(part.txn));
            if bytes.saturating_add(staged) > quota {
                let cause = Cause::Crowded { bytes, staged, quota };
                return Ok(Err(Answer::Refused(Refusal { key: bytes::Bytes::new(), cause })));
            }
        }
        Ok(Ok(Command::Stage { part, quota }))
    }

    fn answer_standing(&mut self, now: &Reading, asker: Asker, standing: Standing) {
        match standing {
            Standing::Decided(Outcome::Committed(at)) => {
                let answers = vec![(asker, Answer::Committed(at))];
                self.acknowledge(now, at, Gated { answers, ..Gated::default() });
            }
            Standing::Prepared(at) => self.answer(asker, Answer::Prepared(at)),
            Standing::Decided(Outcome::Aborted) | Standing::Unknown => self.answer(asker, fenced()),
        }
    }

    pub fn propose(&mut self, now: &Reading, asker: Option<Asker>, range: RangeId, command: Command, floor: Timestamp) {
        let Some(shard) = self.shards.get_mut(&range) else { return };
        let slot = slot_of(&command);
        let on_its_way = slot.and_then(|slot| shard.by_slot.get(&slot)).copied();
        if let Some(first) = on_its_way.and_then(|index| shard.proposals.get_mut(&index))
            && !self.sabotage.propose_copies()
        {
            first.askers.extend(asker.filter(|asker| !first.askers.contains(asker)));
            return;
        }
        let mut payload = Vec::new();
        encode_record(range, Timestamp::MIN, &command, &mut payload);
        self.counters.log_records.one();
        self.counters.log_bytes.add(payload.len() as u64);
        let floor = floor.max(shard.floor);
        self.moved = true;
        let middle = self.sabotage.stamp_by_the_middle().then(|| {
            let mut middle = *now;
            middle.interval.earliest_ns = now.interval.middle_ns();
            middle
        });
        match self.replicas.propose(middle.as_ref().unwrap_or(now), group_of(range), payload.into(), floor) {
            Ok(proposed) => {
                self.stamped = self.stamped.max(proposed.at);
                if shard.led == Some(proposed.term) {
                    let staged = match &command {
                        Command::Commit(batch) | Command::Prepare { batch, .. } => shard.range.staged(batch),
                        _ => None,
                    };
                    match (&command, staged) {
                        (Command::Commit(_), Some(whole)) => {
                            shard.flights.enter_whole(proposed.at, Kind::Commit, whole)
                        }
                        (_, Some(whole)) => shard.flights.enter_whole(proposed.at, Kind::Prepare, whole),
                        (Command::Commit(batch), None) => shard.flights.enter(proposed.at, Kind::Commit, &batch.writes),
                        (Command::Prepare { batch, .. }, None) => {
                            shard.flights.enter(proposed.at, Kind::Prepare, &batch.writes);
                        }
                        _ => {}
                    }
                }
                if let Some(shard) = self.shards.get(&range) {
                    self.note_references(shard, &command, proposed.at);
                }
                let Some(shard) = self.shards.get_mut(&range) else { return };
                if let Command::Split { .. } = &command {
                    shard.splitting = Some((proposed.index, proposed.at));
                }
                shard.proposed_tick = self.ticks;
                shard.by_slot.extend(slot.map(|slot| (slot, proposed.index)));
                let askers = asker.into_iter().collect();
                let ahead_ns = ahead_ns(now, proposed.at);
                let proposal = Proposal { term: proposed.term, at: proposed.at, slot, askers, ahead_ns };
                // What was proposed for this place in an earlier term is not in the log.
                if let Some(lost) = shard.take_proposal(proposed.index) {
                    self.lost(lost);
                }
                if let Some(shard) = self.shards.get_mut(&range) {
                    shard.proposals.insert(proposed.index, proposal);
                }
            }
            Err(why) => {
                let answer = match why {
                    Refused::NotLeader { .. } => Answer::NotLeader { hint: self.hint(range) },
                    // The gateway keeps below the limit: it is no request of ours.
                    Refused::TooLarge => fenced(),
                    Refused::NoLease | Refused::Transferring { .. } | Refused::Overloaded | Refused::Dropped => {
                        Answer::TryLater
                    }
                };
                if let Some(asker) = asker {
                    self.answer(asker, answer);
                }
            }
        }
    }

    /// A proposal is not in the log, and never will be.
    fn lost(&mut self, lost: Proposal) {
        for asker in lost.askers {
            self.answer(asker, Answer::TryLater);
        }
    }

    /// The proposals of a term, from a place on, are not in the log.
    pub fn absent(&mut self, range: RangeId, term: u64, from: u64) {
        let Some(shard) = self.shards.get_mut(&range) else { return };
        let of_term = |(_, proposal): &(&u64, &Proposal)| proposal.term == term;
        let gone: Vec<u64> = shard.proposals.range(from..).filter(of_term).map(|(index, _)| *index).collect();
        let gone: Vec<Proposal> = gone.into_iter().filter_map(|index| shard.take_proposal(index)).collect();
        gone.into_iter().for_each(|proposal| self.lost(proposal));
    }

    /// The state up to a place came in a snapshot: what became of proposals before it is asked anew.
    pub fn proposals_before(&mut self, range: RangeId, index: u64) {
        let Some(shard) = self.shards.get_mut(&range) else { return };
        let gone: Vec<u64> = shard.proposals.range(..=index).map(|(index, _)| *index).collect();
        let gone: Vec<Proposal> = gone.into_iter().filter_map(|index| shard.take_proposal(index)).collect();
        gone.into_iter().for_each(|proposal| self.lost(proposal));
    }

    /// The next entry of a range's log.
    pub fn apply(&mut self, now: &Reading, range: RangeId, entry: LogEntry) -> Result<(), StoreError> {
        let Some(shard) = self.shards.get_mut(&range) else {
            return Err(damaged(format!("{range} is applied, and has no state here")));
        };
        if entry.index != shard.applied + 1 {
            return Err(damaged(format!("{range} applied {}, and then {}", shard.applied, entry.index)));
        }
        shard.applied = entry.index;
        self.count += 1;
        let proposal = shard.take_proposal(entry.index);
        let proposal = match proposal {
            Some(proposal) if proposal.term != entry.term => {
                self.lost(proposal);
                None
            }
            proposal => proposal,
        };
        let (Body::Command(payload), Some(at)) = (&entry.body, entry.at) else { return Ok(()) };
        let record = Record::decode(payload).map_err(|why| damaged(format!("{range} {}: {why}", entry.index)))?;
        let mut command = record.command;
        command.unshare();
        if self.sabotage.commit_unstaged() {
            self.forget_missing_parts(range, &mut command);
        }
        if let Command::Raise { version } = &command {
            self.knows(range, *version)?;
        }
        let own = self.sabotage.apply_by_program().then_some(*self.options.versions.end());
        let Some(shard) = self.shards.get_mut(&range) else { return Ok(()) };
        own.into_iter().for_each(|own| shard.range.raise(own));
        if self.sabotage.overlook_what_came_since() {
            shard.range.overlook();
        }
        let prepared_at = match &command {
            Command::Outcome { txn, .. } => shard.range.prepared().get(txn).map(|prepared| prepared.at),
            _ => None,
        };
        // Whoever leads one day knows it by then.
        if let Some(shard) = self.shards.get(&range) {
            self.note_references(shard, &command, at);
        }
        let Some(shard) = self.shards.get_mut(&range) else { return Ok(()) };
        let forgets = self.sabotage.forget_what_is_followed();
        let mut verdict = match self.snapshots.copying.as_mut().filter(|_| !forgets) {
            Some(copying) => shard.range.apply(at, &command, &copying.beside(&self.store))?,
            None => shard.range.apply(at, &command, &self.store)?,
        };
        if shard.range.is_staging() {
            self.staged.note(range);
        }
        // Not when it was proposed: a tick in between finds nothing to look after yet.
        if shard.led.is_some() {
            self.watched.insert(range);
        }
        match &verdict {
            Verdict::Committed => shard.written = shard.written.max(at),
            Verdict::Applied(commit) => {
                shard.written = shard.written.max(*commit);
                shard.late.note(*commit, prepared_at.unwrap_or(*commit));
            }
            _ => {}
        }
        if let (Verdict::Split(right), Command::Split { nodes, .. }) = (&mut verdict, &command) {
            let right = std::mem::replace(&mut **right, Range::new(RangeId(0), Span::ALL));
            self.split_applied(range, at, right, nodes);
            self.stirred.insert(range);
        }
        if let Some(proposal) = &proposal {
            debug_assert_eq!(proposal.at, at, "the leader's stamp is the entry's");
        }
        self.tell(now, range, at, &command, verdict, prepared_at, proposal);
        if matches!(command, Command::Outcome { .. } | Command::Split { .. }) && self.is_halving(range) {
            self.halve(now)?;
        }
        Ok(())
    }

    /// A rule broken on purpose: what was not staged is not asked for.
    fn forget_missing_parts(&self, range: RangeId, command: &mut Command) {
        let Some(shard) = self.shards.get(&range) else { return };
        if let Command::Commit(batch) | Command::Prepare { batch, .. } = command
            && shard.range.staged(batch).is_none()
        {
            batch.staged = None;
        }
    }

    /// Ends or keeps the flight of what was applied, and answers whoever asked for it.
    #[expect(clippy::too_many_arguments, reason = "one call, of what one entry was and became")]
    fn tell(
        &mut self,
        now: &Reading,
        range: RangeId,
        at: Timestamp,
        command: &Command,
        verdict: Verdict,
        prepared_at: Option<Timestamp>,
        proposal: Option<Proposal>,
    ) {
        let (askers, ahead_ns) = proposal.map_or((Vec::new(), 0), |proposal| (proposal.askers, proposal.ahead_ns));
        let all = |answer: Answer| askers.iter().map(|asker| (*asker, answer.clone())).collect::<Vec<_>>();
        match (command, verdict) {
            (Command::Commit(_), Verdict::Committed) => {
                let answers = all(Answer::Committed(at));
                self.acknowledge(now, at, Gated { flights: vec![(range, at)], answers, ahead_ns, ..Gated::default() });
            }
            (Command::Prepare { .. }, Verdict::Prepared) => {
                askers.iter().for_each(|asker| self.answer(*asker, Answer::Prepared(at)));
            }
            (Command::Commit(_) | Command::Prepare { .. }, verdict) => {
                self.leave(range, at);
                match verdict {
                    Verdict::Already(known) => {
                        askers.iter().for_each(|asker| self.answer_standing(now, *asker, known));
                    }
                    Verdict::Refused(refusal) => {
                        self.counters.txn_certification_failures.one();
                        all(Answer::Refused(refusal))
                            .into_iter()
                            .for_each(|(asker, answer)| self.answer(asker, answer));
                    }
                    _ => askers.iter().for_each(|asker| self.answer(*asker, Answer::Forgotten)),
                }
            }
            (Command::Fence { .. }, Verdict::Forgotten) => {
                askers.iter().for_each(|asker| self.answer(*asker, Answer::Forgotten));
            }
            (Command::Fence { txn, .. }, _) => {
                let standing = self.shards.get(&range).map(|shard| shard.range.standing(*txn));
                let standing = standing.unwrap_or(Standing::Unknown);
                askers.iter().for_each(|asker| self.answer_standing(now, *asker, standing));
            }
            (Command::Outcome { .. }, verdict) => {
                match (verdict, prepared_at) {
                    (Verdict::Applied(commit), Some(flight)) => {
                        let flights = vec![(range, flight)];
                        self.acknowledge(now, commit, Gated { flights, ..Gated::default() });
                    }
                    (_, Some(flight)) => self.leave(range, flight),
                    (_, None) => {}
                }
                askers.iter().for_each(|asker| self.answer(*asker, Answer::Done));
            }
            (Command::Split { .. } | Command::Stage { .. }, Verdict::Refused(refusal)) => {
                all(Answer::Refused(refusal)).into_iter().for_each(|(asker, answer)| self.answer(asker, answer));
            }
            _ => askers.iter().for_each(|asker| self.answer(*asker, Answer::Done)),
        }
    }

    /// What leaders look after as time passes: prepares that nobody decides, outcomes that nobody forgets.
    pub fn tick_shards(&mut self, now: &Reading) -> Result<(), StoreError> {
        let Some(interval) = now.trusted() else { return Ok(()) };
        let earliest = interval.earliest();
        let empty = |shard: &Shard| {
            shard.range.prepared().is_empty() && shard.range.outcomes().is_empty() && !shard.range.is_staging()
        };
        self.watched.retain(|range| self.shards.get(range).is_some_and(|shard| shard.led.is_some() && !empty(shard)));
        for range in self.watched.iter().copied().collect::<Vec<_>>() {
            self.recover_undecided(now, range, earliest);
            let Some(shard) = self.shards.get(&range) else { continue };
            let quiet = self.ticks.saturating_sub(shard.proposed_tick) > SWEEP_QUIET_TICKS;
            if quiet && shard.range.is_sweepable(earliest) {
                // A record, so that all replicas forget alike.
                self.propose(now, None, range, Command::Forget { txns: Vec::new() }, Timestamp::MIN);
            }
        }
        Ok(())
    }
}

/// A range at which nothing was proposed for so many ticks sweeps its memory by a record made for that.
const SWEEP_QUIET_TICKS: u64 = 20;

//! The core of the replicated log on one machine: its records go to the disk, its messages to the others, its entries to the states.

use super::recovery::{doomed_of, file_of};
use super::serve::{Parked, Pending};
use super::state::{Done, State};
use super::{Registers, Talk};
use crate::cluster::{Act, Class, Input, Operation, Place};
use crate::machine::Failure;
use bytes::Bytes;
use clock::{HybridClock, Reading, Timestamp};
use protocol::log::raft::{
    Change, Committed, Envelope, Fate, GroupId, Input as Told, Member, Record, RecordNumber, ReplicaId, Replicas, Role,
    SnapshotTask, StoreId,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use store::{Log, LogError};

/// A leader looks every so many ticks whether a member is gone for good.
const REPAIR_TICKS: u64 = 5;

/// So many proposals of former terms are remembered.
const LOST_MAX: usize = 256;

/// What runs on one machine.
pub struct Body {
    pub store: StoreId,
    pub replicas: Replicas,
    pub hybrid: Arc<HybridClock>,
    pub log: Log,
    pub states: BTreeMap<GroupId, State>,
    /// Records that are not in the log yet: a sync is on its way, or the disk is full.
    waiting: VecDeque<Record>,
    /// The last record of the sync that is on its way.
    syncing: Option<u64>,
    held: Vec<(RecordNumber, Envelope)>,
    doomed: Vec<(RecordNumber, GroupId)>,
    taken: BTreeMap<GroupId, Bytes>,
    staged: BTreeMap<GroupId, Vec<u8>>,
    /// Proposals of this leader that are not applied, by group and place.
    pub pending: BTreeMap<(GroupId, u64), Pending>,
    /// Of terms in which this leads no more: they may be found to be absent, and then who asked is told.
    lost: BTreeMap<(GroupId, u64), Pending>,
    /// Snapshots that wait for what is in flight.
    pub parked: Vec<Parked>,
    /// Answers that wait until this is certainly past.
    pub answers: Vec<(Timestamp, GroupId, usize, Talk)>,
    /// The greatest timestamp that was shown to anybody, by group.
    pub shown: BTreeMap<GroupId, Timestamp>,
    pub timer: bool,
    ticks: u64,
    /// What the clock said last.
    seen: Reading,
}

impl Body {
    /// Nothing is asked of it yet.
    pub fn new(
        store: StoreId,
        replicas: Replicas,
        hybrid: Arc<HybridClock>,
        log: Log,
        states: BTreeMap<GroupId, State>,
    ) -> Self {
        let (waiting, held, doomed, taken, staged) = Default::default();
        let (pending, lost, parked, answers, shown, timer, ticks) = Default::default();
        Body {
            store,
            replicas,
            hybrid,
            log,
            states,
            waiting,
            syncing: None,
            held,
            doomed,
            taken,
            staged,
            pending,
            lost,
            parked,
            answers,
            shown,
            timer,
            ticks,
            seen: Reading::exact(0),
        }
    }

    /// Whether it leads a group with a lease.
    pub fn leads_any(&self) -> bool {
        self.replicas.groups().any(|group| self.replicas.lease(group).is_some())
    }

    /// What is on its way to the disk or to a client.
    pub fn unrest(&self) -> Option<String> {
        // Promises go to the disk all the time.
        let full = self.syncing.is_none() && !self.waiting.is_empty();
        let busy = full || !self.answers.is_empty() || !self.pending.is_empty();
        let (waiting, answers) = (self.waiting.len(), self.answers.len());
        busy.then(|| format!("{waiting} records, {answers} answers, proposals {:?} wait", self.pending))
    }

    /// What a group is here, for a report.
    pub fn describe(&self, group: GroupId) -> String {
        let Some(status) = self.replicas.status(group) else { return format!("{} has none", self.store) };
        let (lease, last) = (self.replicas.lease(group), self.hybrid.last());
        let interval = self.seen.trusted();
        format!(
            "{} is {:?} in {} up to {} lease {lease:?} clock {last} {interval:?}",
            self.store, status.role, status.term, status.last
        )
    }

    /// One input of the world.
    pub fn input(
        &mut self,
        system: &mut Registers,
        place: &mut Place<'_, Talk>,
        input: Input<Talk>,
    ) -> Result<(), Failure> {
        self.seen = place.now;
        match input {
            Input::Tick => {
                self.ticks += 1;
                self.tell(system, place, Told::Tick)?;
                if self.ticks.is_multiple_of(REPAIR_TICKS) {
                    self.repair(system, place)?;
                }
                self.recycle(place)?;
            }
            Input::Peer { bytes, .. } => {
                let envelope = Envelope::decode(&bytes).map_err(|e| Failure(format!("an envelope: {e}")))?;
                if envelope.to != self.store {
                    place.probes.hit("a message for a store that is gone");
                    return Ok(());
                }
                self.tell(system, place, Told::Message(envelope))?;
            }
            Input::Ask { client, talk: Talk::Ask(request, ask) } => self.ask(system, place, client, request, ask)?,
            Input::Ask { .. } => {}
            Input::Synced => self.synced(system, place)?,
            Input::Timer(_) => self.timer = false,
        }
        self.look_at_answers(system, place);
        if system.chronicle.verdict.is_good() {
            return Ok(());
        }
        Err(Failure("a rule was broken: see what the checker found".into()))
    }

    /// One input of the core, and all that comes of it.
    pub fn tell(&mut self, system: &mut Registers, place: &mut Place<'_, Talk>, told: Told) -> Result<(), Failure> {
        let mut next = VecDeque::from([told]);
        while let Some(told) = next.pop_front() {
            let removed = if let Told::Remove { group } = &told { Some(*group) } else { None };
            if let Err(why) = self.replicas.step(&place.now, told) {
                place.note(format!("refuses: {why}"));
            }
            if let Some(group) = removed {
                self.doom(place, group);
            }
            self.see_to(system, place, &mut next)?;
        }
        Ok(())
    }

    /// The replica here was removed: its state goes once the record of that is durable.
    fn doom(&mut self, place: &mut Place<'_, Talk>, group: GroupId) {
        if self.states.remove(&group).is_none() {
            return;
        }
        // The records up to the one of the removal are drained next.
        let number = RecordNumber(u64::MAX);
        self.doomed.push((number, group));
        let state = place.disk.content(&file_of(group)).unwrap_or_default();
        place.disk.set_content(&doomed_of(group), doomed(number, &state));
        place.disk.set_content(&file_of(group), Vec::new());
    }

    /// Sees to everything that has gathered; what answers it goes to `next`.
    pub fn see_to(
        &mut self,
        system: &mut Registers,
        place: &mut Place<'_, Talk>,
        next: &mut VecDeque<Told>,
    ) -> Result<(), Failure> {
        let out = self.replicas.drain();
        if let Some(last) = out.records.last().map(|record| record.number) {
            for (number, group) in self.doomed.iter_mut().filter(|(number, _)| number.0 == u64::MAX) {
                *number = last;
                let bytes = place.disk.content(&doomed_of(*group)).unwrap_or_default();
                place.disk.set_content(&doomed_of(*group), doomed(last, bytes.get(8..).unwrap_or_default()));
            }
        }
        self.waiting.extend(out.records);
        self.append(place)?;
        for envelope in out.messages_now {
            send(system, place, envelope);
        }
        self.held.extend(out.messages_after);
        for committed in out.committed {
            self.apply(system, place, &committed)?;
        }
        for change in out.roles {
            let leader = change.leader.map_or("nobody".into(), |leader| leader.to_string());
            place.note(format!("{}: {:?} in term {}, led by {leader}", change.group, change.role, change.term));
            if change.role != Role::Leader {
                self.parked.retain(|parked| parked.group != change.group);
            } else {
                place.probes.hit("a leader was elected");
            }
        }
        for group in out.leases {
            if self.replicas.lease(group).is_none() {
                place.probes.hit("a lease ended");
            }
        }
        for configuration in out.configurations {
            place.note(format!("{configuration:?}"));
            place.probes.hit("members changed");
        }
        for fate in out.fates {
            place.note(format!("{fate:?}"));
            self.fate(system, place, fate);
        }
        for task in out.snapshots {
            self.snapshot(system, place, task, next)?;
        }
        for (group, _) in out.removed {
            place.probes.hit("a replica was removed");
            next.push_back(Told::Remove { group });
        }
        self.note_leases(system);
        Ok(())
    }

    /// What waits goes to the log, unless a sync is on its way: what is written then belongs to the next.
    fn append(&mut self, place: &mut Place<'_, Talk>) -> Result<(), Failure> {
        let Some(last) = self.waiting.back().map(|record| record.number.0).filter(|_| self.syncing.is_none()) else {
            return Ok(());
        };
        match self.log.append_all(self.waiting.iter().map(|record| Bytes::copy_from_slice(&record.bytes))) {
            Ok(at) if at == last => {
                self.waiting.clear();
                self.syncing = Some(last);
                place.act(Act::Sync);
                Ok(())
            }
            Ok(at) => Err(Failure(format!("the log is at {at}, the core at {last}"))),
            Err(LogError::DiskFull) => {
                place.probes.hit("disk full refused records");
                Ok(())
            }
            Err(e) => Err(Failure(format!("append: {e}"))),
        }
    }

    fn synced(&mut self, system: &mut Registers, place: &mut Place<'_, Talk>) -> Result<(), Failure> {
        let Some(last) = self.syncing.take() else { return Ok(()) };
        self.log.write_and_sync().map_err(|e| Failure(format!("sync: {e}")))?;
        let durable = RecordNumber(last);
        let leave: Vec<Envelope> = self.held.extract_if(.., |(after, _)| *after <= durable).map(|(_, e)| e).collect();
        for envelope in leave {
            send(system, place, envelope);
        }
        for (_, group) in self.doomed.extract_if(.., |(number, _)| *number <= durable) {
            place.disk.set_content(&doomed_of(group), Vec::new());
        }
        self.append(place)?;
        self.tell(system, place, Told::Persisted(durable))
    }

    fn apply(&mut self, system: &mut Registers, place: &mut Place<'_, Talk>, run: &Committed) -> Result<(), Failure> {
        let broken = system.controls.broken;
        let salt = if broken.apply_by_machine { place.machine as u64 } else { 0 };
        for entry in &run.entries {
            let state = self.states.entry(run.group).or_default();
            let done = state
                .apply(entry, broken.forget_clients, salt)
                .map_err(|why| Failure(format!("{} on {}: {why}", run.group, self.store)))?;
            system.chronicle.applied(run.group, self.store, state, done.as_ref(), place);
            self.applied(system, run.group, entry.index, entry.term, done);
        }
        self.look_at_parked(system, place, run.group);
        Ok(())
    }

    fn applied(&mut self, system: &Registers, group: GroupId, index: u64, term: u64, done: Option<Done>) {
        // Whoever waits for this place waits for what this leader put there.
        if let Some(pending) = self.pending.remove(&(group, index))
            && let Some(done) = done.filter(|_| pending.term == term)
            && (done.client, done.request) == (pending.client as u64, pending.request)
            && !system.controls.broken.acknowledge_proposals
        {
            self.written(group, pending.client, pending.request, &done);
        }
    }

    fn fate(&mut self, system: &Registers, place: &mut Place<'_, Talk>, fate: Fate) {
        let (absent, group, of) = match fate {
            Fate::Absent { group, term, from } => (true, group, (term, from..u64::MAX)),
            Fate::Unknown { group, term, from, to } => (false, group, (term, from..to + 1)),
        };
        let gone = |(g, index): &(GroupId, u64), p: &Pending| *g == group && p.term == of.0 && of.1.contains(index);
        let of_it = |held: &BTreeMap<(GroupId, u64), Pending>| -> Vec<((GroupId, u64), Pending)> {
            held.iter().filter(|(k, p)| gone(k, p)).map(|(k, p)| (*k, *p)).collect()
        };
        for (key, pending) in of_it(&self.pending) {
            self.pending.remove(&key);
            place.probes.hit("a proposal's fate was unknown");
            self.lost.insert(key, pending);
        }
        if absent {
            for (key, pending) in of_it(&self.lost) {
                self.lost.remove(&key);
                place.probes.hit("a proposal was absent");
                self.not_here(system, place, group, pending.client, pending.request);
            }
        }
        while self.lost.len() > LOST_MAX {
            self.lost.pop_first();
        }
    }

    fn snapshot(
        &mut self,
        system: &mut Registers,
        place: &mut Place<'_, Talk>,
        task: SnapshotTask,
        next: &mut VecDeque<Told>,
    ) -> Result<(), Failure> {
        match task {
            SnapshotTask::Take { group, .. } => {
                let state = self.states.get(&group).ok_or_else(|| Failure(format!("no state of {group}")))?;
                let bytes = Bytes::from(state.encode());
                next.push_back(Told::SnapshotTaken { group, index: state.applied, bytes: bytes.len() as u64 });
                self.taken.insert(group, bytes);
            }
            SnapshotTask::Read { group, offset, bytes } => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                let taken = self.taken.get(&group).ok_or_else(|| Failure(format!("no snapshot of {group}")))?;
                next.push_back(Told::SnapshotRead { group, offset, bytes: taken.slice(from..from + bytes) });
            }
            SnapshotTask::Drop { group } => {
                self.taken.remove(&group);
            }
            SnapshotTask::Begin { group, .. } => {
                self.staged.insert(group, Vec::new());
            }
            SnapshotTask::Write { group, offset, bytes } => {
                let staged = self.staged.entry(group).or_default();
                if staged.len() as u64 != offset {
                    return Err(Failure(format!("a part of a snapshot of {group} at {offset}, not {}", staged.len())));
                }
                staged.extend_from_slice(&bytes);
            }
            SnapshotTask::Install { group, index } => {
                let bytes = self.staged.remove(&group).unwrap_or_default();
                let state = State::decode(&bytes).filter(|state| state.applied == index);
                let state = state.ok_or_else(|| Failure(format!("a snapshot of {group} at {index} cannot be read")))?;
                place.disk.set_content(&file_of(group), bytes);
                place.probes.hit("a snapshot was installed");
                system.chronicle.installed(group, self.store, &state);
                self.states.insert(group, state);
                next.push_back(Told::SnapshotInstalled { group });
            }
            SnapshotTask::Abandon { group } => {
                self.staged.remove(&group);
            }
        }
        Ok(())
    }

    /// Segments before the oldest record that is needed are given back.
    fn recycle(&mut self, place: &mut Place<'_, Talk>) -> Result<(), Failure> {
        if self.waiting.is_empty() && self.syncing.is_none() {
            let oldest = self.replicas.oldest_record().0;
            let recycled = self.log.truncate(oldest.saturating_sub(1)).map_err(|e| Failure(e.to_string()))?;
            place.probes.add("log segment recycled", recycled as u64);
        }
        self.append(place)
    }

    /// An operator asks.
    pub fn operate(
        &mut self,
        system: &mut Registers,
        place: &mut Place<'_, Talk>,
        operation: Operation,
    ) -> Result<(), Failure> {
        let groups: Vec<GroupId> = self.replicas.groups().collect();
        let Some(group) = place.rng.pick(&groups) else { return Ok(()) };
        match operation {
            Operation::Truncate => {
                for group in groups {
                    let Some(state) = self.states.get(&group) else { continue };
                    let index = state.applied;
                    place.disk.set_content(&file_of(group), state.encode());
                    self.tell(system, place, Told::Truncate { group, index })?;
                }
                let below = RecordNumber(self.log.durable());
                self.tell(system, place, Told::Carry { below })
            }
            Operation::Transfer => self.hand_over(system, place, group),
            Operation::Leave => groups.into_iter().try_for_each(|group| self.hand_over(system, place, group)),
            Operation::Members => self.change_members(system, place, group),
            // Groups are not split.
            Operation::Split => Ok(()),
        }
    }

    fn hand_over(
        &mut self,
        system: &mut Registers,
        place: &mut Place<'_, Talk>,
        group: GroupId,
    ) -> Result<(), Failure> {
        let Some(status) = self.replicas.status(group).filter(|_| self.replicas.lease(group).is_some()) else {
            return Ok(());
        };
        let Some(to) = place.rng.pick(&status.members.voters).filter(|to| to.store != self.store) else {
            return Ok(());
        };
        system.chronicle.released(group, status.term);
        place.probes.hit("a lease was handed over");
        self.tell(system, place, Told::Transfer { group, to: to.store })
    }

    /// A member more, or a voter less: drawn.
    fn change_members(
        &mut self,
        system: &mut Registers,
        place: &mut Place<'_, Talk>,
        group: GroupId,
    ) -> Result<(), Failure> {
        let Some(members) = self.replicas.status(group).filter(|s| s.role == Role::Leader).map(|s| s.members) else {
            return Ok(());
        };
        let all: Vec<Member> = [members.voters.clone(), members.learners.clone()].concat();
        let machines = 0..system.lives.len();
        let free = machines.map(|m| system.store_of(m)).filter(|s| all.iter().all(|member| member.store != *s));
        let free: Vec<StoreId> = free.collect();
        let mut changes = Vec::new();
        if let Some(learner) = place.rng.pick(&members.learners) {
            changes.push(Change::Promote(learner.replica));
            let voter =
                place.rng.pick(&members.voters).filter(|_| members.voters.len() as u64 >= system.workload.replicas);
            changes.extend(voter.map(|voter| Change::Remove(voter.replica)));
        } else if let Some(store) = place.rng.pick(&free) {
            changes.push(Change::AddLearner(Member { replica: system.next_replica(group), store }));
        }
        if changes.is_empty() { Ok(()) } else { self.tell(system, place, Told::Change { group, changes }) }
    }

    /// Where a member's store is gone for good, or a learner was left behind, the leader sees to it that the group is whole.
    fn repair(&mut self, system: &mut Registers, place: &mut Place<'_, Talk>) -> Result<(), Failure> {
        let groups: Vec<GroupId> = self.replicas.groups().collect();
        for group in groups {
            let Some(status) = self.replicas.status(group).filter(|s| s.role == Role::Leader) else { continue };
            let members = status.members;
            if !members.outgoing.is_empty() {
                continue;
            }
            let gone = members.voters.iter().find(|member| !system.is_current(member.store)).copied();
            let lost = members.learners.iter().find(|member| !system.is_current(member.store)).copied();
            let new = members.learners.iter().find(|member| system.is_current(member.store)).copied();
            let changes = match (gone, lost, new) {
                (_, Some(lost), _) => vec![Change::Remove(lost.replica)],
                (Some(gone), None, Some(new)) => vec![Change::Promote(new.replica), Change::Remove(gone.replica)],
                (Some(gone), None, None) => {
                    let store = system.store_of(system.machine_of(gone.store));
                    if members.voters.iter().any(|member| member.store == store) {
                        vec![Change::Remove(gone.replica)]
                    } else {
                        let replica: ReplicaId = system.next_replica(group);
                        vec![Change::AddLearner(Member { replica, store })]
                    }
                }
                (None, None, Some(new)) if (members.voters.len() as u64) < system.workload.replicas => {
                    vec![Change::Promote(new.replica)]
                }
                (None, None, None) if (members.voters.len() as u64) < system.workload.replicas => {
                    let stores = (0..system.lives.len()).map(|m| system.store_of(m));
                    let free: Vec<StoreId> =
                        stores.filter(|store| members.voters.iter().all(|member| member.store != *store)).collect();
                    let Some(store) = place.rng.pick(&free) else { continue };
                    vec![Change::AddLearner(Member { replica: system.next_replica(group), store })]
                }
                (None, None, _) => continue,
            };
            self.tell(system, place, Told::Change { group, changes })?;
        }
        Ok(())
    }
}

impl Registers {
    fn next_replica(&mut self, group: GroupId) -> ReplicaId {
        let greatest = self.greatest.entry(group).or_default();
        *greatest += 1;
        ReplicaId(*greatest)
    }
}

/// The state of a replica that is a member no more, behind the number of the record that says so.
fn doomed(number: RecordNumber, state: &[u8]) -> Vec<u8> {
    [&number.0.to_le_bytes(), state].concat()
}

/// An envelope leaves: what is bulky apart from the rest.
fn send(system: &Registers, place: &mut Place<'_, Talk>, envelope: Envelope) {
    let to = system.machine_of(envelope.to);
    let (bulk, rest) = envelope.apart();
    if let Some(bulk) = bulk {
        place.act(Act::Send(to, Class::Bulk, bulk.encode().into()));
    }
    for envelope in rest {
        place.act(Act::Send(to, Class::Normal, envelope.encode().into()));
    }
}

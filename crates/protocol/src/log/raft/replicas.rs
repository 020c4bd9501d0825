//! All replicas of one store.

use super::closed::Word;
use super::envelope::{Accept, Ask, Envelope, Grant, Letter};
use super::error::{Error, Refused};
use super::ids::{GroupId, Member, RecordNumber, ReplicaId, StoreId};
use super::input::Input;
use super::ledger::Durable;
use super::membership::Conf;
use super::options::{MEMBERS_MAX, Options};
use super::outputs::{Configuration, Outputs, Proposed, Role};
use super::promise::Held;
use super::record;
use super::replica::Replica;
use super::sabotage::Sabotage;
use super::snapshot;
use super::store::Store;
use super::support::Support;
use super::tail::{Cut, Tail};
use bytes::Bytes;
use clock::{Reading, Timestamp};
use raft::eraftpb::{HardState, MessageType};
use std::collections::BTreeMap;

/// The place before the first entry of a new group. Not 0: a new replica must get a snapshot, which tells it who its members are.
const FOUNDED: u64 = 1;

/// The replicas that are gone: by group the greatest number, and its record.
pub(crate) type Tombs = BTreeMap<GroupId, (ReplicaId, RecordNumber)>;

/// All replicas of one store. See the module's page for how it is driven.
#[derive(Debug)]
pub struct Replicas {
    store: Store,
    groups: BTreeMap<GroupId, Box<Replica>>,
    tombs: Tombs,
    ticks: u64,
    /// Ticks for which the store's promise to itself has been past.
    own_late_ticks: usize,
    /// The stores whose promises from here are running.
    running: Vec<StoreId>,
    /// The stores whose promises to here are running.
    held: Vec<StoreId>,
    failed: bool,
}

/// What a replica is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its number.
    pub replica: ReplicaId,
    /// Its term.
    pub term: u64,
    /// What it is.
    pub role: Role,
    /// Who leads.
    pub leader: Option<StoreId>,
    /// The place before the first that the log has.
    pub truncated: u64,
    /// The last place of the log.
    pub last: u64,
    /// The last place known to be committed.
    pub committed: u64,
    /// The last place handed out.
    pub applied: u64,
    /// Whether the group sleeps here.
    pub asleep: bool,
    /// The members.
    pub members: Configuration,
    /// At the leader: how far each member's log is known to agree.
    pub matched: Vec<(ReplicaId, u64)>,
}

/// A node keeps it behind a lock, and drives it from any thread.
const _: fn() = || {
    fn may_move<T: Send>() {}
    may_move::<Replicas>();
};

impl Replicas {
    pub(crate) fn from_parts(store: Store, groups: BTreeMap<GroupId, Box<Replica>>, tombs: Tombs) -> Self {
        Replicas {
            store,
            groups,
            tombs,
            ticks: 0,
            own_late_ticks: 0,
            running: Vec::new(),
            held: Vec::new(),
            failed: false,
        }
    }

    /// One input. Outputs gather until [`Replicas::drain`].
    ///
    /// # Errors
    /// The input was refused, and has changed nothing; but of an envelope the other parts were taken.
    pub fn step(&mut self, now: &Reading, input: Input) -> Result<(), Error> {
        if self.failed {
            return Err(Error::Failed);
        }
        self.flush();
        let result = self.take(now, input);
        self.flush();
        result
    }

    fn take(&mut self, now: &Reading, input: Input) -> Result<(), Error> {
        let (store, groups) = (&mut self.store, &mut self.groups);
        match input {
            Input::Tick => self.tick(now),
            Input::Message(envelope) => return self.receive(now, envelope),
            Input::Persisted(record) => return self.persisted(now, record),
            Input::PersistFailed => self.fail(),
            Input::Create { group, voters, floor } => return self.create(group, &voters, floor),
            Input::Remove { group } => return self.remove(group),
            Input::Change { group, changes } => {
                return Self::find(groups, group)?.change(store, now, changes);
            }
            Input::Transfer { group, to } => return Self::find(groups, group)?.transfer(store, to),
            Input::Campaign { group } => {
                let replica = Self::find(groups, group)?;
                let own = store.id();
                if !replica.support.forbids(own, own, &store.promises, replica.tail(), now.interval) {
                    replica.wake(store);
                    let result = replica.raw.campaign();
                    replica.after(store);
                    return result.map_err(|why| Error::Library { group, why: why.to_string() });
                }
            }
            Input::Truncate { group, index } => {
                let replica = Self::find(groups, group)?;
                let held = store.snapshots.holds_back(group).unwrap_or(u64::MAX);
                let index = index.min(held).min(replica.tail().applied).min(replica.raw.raft.raft_log.applied);
                if replica.raw.mut_store().truncate(index) {
                    let bytes = record::cut(group, replica.id, index);
                    replica.write(store, bytes);
                }
            }
            Input::Carry { below } => self.carry(below),
            Input::SnapshotTaken { group, index, bytes } => {
                return snapshot::taken(store, groups, group, index, bytes);
            }
            Input::SnapshotRead { group, offset, bytes } => return snapshot::sent(store, group, offset, bytes),
            Input::SnapshotInstalled { group } => return snapshot::installed(store, groups, group),
            Input::SnapshotFailed { group } => snapshot::failed(store, groups, group),
        }
        Ok(())
    }

    fn find(groups: &mut BTreeMap<GroupId, Box<Replica>>, group: GroupId) -> Result<&mut Replica, Error> {
        groups.get_mut(&group).map(|replica| &mut **replica).ok_or(Error::NoReplica(group))
    }

    /// Proposes a command to the leader here, with a timestamp above `floor`.
    ///
    /// # Errors
    /// It was not taken, and is certainly not in the log.
    pub fn propose(
        &mut self,
        now: &Reading,
        group: GroupId,
        payload: Bytes,
        floor: Timestamp,
    ) -> Result<Proposed, Refused> {
        match self.groups.get_mut(&group) {
            Some(replica) if !self.failed => replica.propose(&mut self.store, now, payload, floor),
            _ => Err(Refused::NotLeader { hint: None }),
        }
    }

    /// Everything that has gathered.
    pub fn drain(&mut self) -> Outputs {
        self.flush();
        snapshot::start(&mut self.store, &self.groups);
        let store = &mut self.store;
        let mut out = std::mem::take(&mut store.out);
        out.records = std::mem::take(&mut store.ledger.out);
        out.messages_now = store.post.take_now();
        out.messages_after = store.post.take_after();
        out.leases.sort_unstable();
        out.leases.dedup();
        out
    }

    fn flush(&mut self) {
        while let Some(group) = self.store.dirty.pop_first() {
            if let Some(replica) = self.groups.get_mut(&group) {
                replica.flush(&mut self.store);
            }
        }
    }

    fn create(&mut self, group: GroupId, voters: &[Member], floor: Timestamp) -> Result<(), Error> {
        let own = self.store.id();
        let conf = Conf::founding(voters);
        let stores: std::collections::BTreeSet<StoreId> = conf.stores.values().copied().collect();
        let sound = (1..=MEMBERS_MAX).contains(&voters.len())
            && stores.len() == voters.len()
            && conf.stores.len() == voters.len()
            && !conf.stores.contains_key(&0)
            && !stores.contains(&StoreId(0));
        let Some(id) = conf.replica_on(own).filter(|_| sound) else { return Err(Error::Members(group)) };
        let (commit, term) = (FOUNDED, 1);
        let hard = HardState { term, commit, ..HardState::default() };
        let cut = Cut { index: FOUNDED, term, floor };
        let tail = Tail { cut, hard, conf, applied: FOUNDED, ..Tail::default() };
        self.add(group, ReplicaId(id), tail)
    }

    /// A replica that knows nothing yet: its leader will tell it.
    fn add(&mut self, group: GroupId, id: ReplicaId, tail: Tail) -> Result<(), Error> {
        let here = self.groups.get(&group).map(|replica| replica.id);
        let gone = self.tombs.get(&group).map(|(replica, _)| *replica);
        if let Some(replica) = here.or(gone.filter(|gone| *gone >= id)) {
            return Err(Error::Exists { group, replica });
        }
        let mut replica = Replica::new(group, id, tail, Support::default(), &mut self.store)?;
        replica.write_image(&mut self.store);
        self.groups.insert(group, Box::new(replica));
        Ok(())
    }

    fn remove(&mut self, group: GroupId) -> Result<(), Error> {
        let mut replica = self.groups.remove(&group).ok_or(Error::NoReplica(group))?;
        let store = &mut self.store;
        replica.stop_leading(store);
        replica.forget_neighbours(store);
        store.snapshots.forget(group, &mut store.out.snapshots);
        store.awake.remove(&group);
        store.dirty.remove(&group);
        let number = store.ledger.write(record::removed(group, replica.id));
        self.tombs.insert(group, (replica.id, number));
        Ok(())
    }

    /// The disk is gone: what is not durable never was, and nothing leaves any more.
    fn fail(&mut self) {
        self.failed = true;
        for replica in self.groups.values_mut() {
            replica.stop_leading(&mut self.store);
        }
        self.store.post.clear();
        self.store.dirty.clear();
        self.store.ledger.out.clear();
    }

    fn persisted(&mut self, now: &Reading, record: RecordNumber) -> Result<(), Error> {
        let store = &mut self.store;
        for durable in store.ledger.persisted(record).ok_or(Error::NotWritten)? {
            match durable {
                Durable::Ready { group, replica, number } => {
                    if let Some(found) = self.groups.get_mut(&group).filter(|found| found.id == replica) {
                        found.persisted(store, number);
                    }
                }
                Durable::OwnPromise { epoch, until } => {
                    let own = store.id();
                    store.promises.hold(own, Held { epoch, until });
                }
                Durable::OwnAccept { group, replica, term, epoch } => {
                    if let Some(found) = self.groups.get_mut(&group)
                        && let Some(lead) = found.lead.as_mut().filter(|lead| lead.term == term)
                    {
                        lead.accepted.insert(replica.0, epoch);
                        found.look_at_lease(store, now.interval);
                    }
                }
                Durable::Installing { group, replica } => snapshot::intended(store, group, replica),
            }
        }
        Ok(())
    }

    fn tick(&mut self, now: &Reading) {
        self.ticks += 1;
        let store = &mut self.store;
        let due = store.ask_soon || self.ticks.is_multiple_of(store.options.ask_ticks.max(1) as u64);
        self.watch_promises(now);
        if due {
            self.renew(now);
        }
        let awake: Vec<GroupId> = self.store.awake.iter().copied().collect();
        for group in awake {
            if let Some(replica) = self.groups.get_mut(&group) {
                replica.tick(&mut self.store, now);
                replica.flush(&mut self.store);
            }
        }
        snapshot::tick(&mut self.store, &mut self.groups);
    }

    /// Promises itself more, and asks the others for more once that is durable.
    fn renew(&mut self, now: &Reading) {
        let Some(interval) = now.trusted() else { return };
        let store = &mut self.store;
        store.ask_soon = false;
        if self.groups.is_empty() {
            return;
        }
        let own = store.id();
        let until = Timestamp::new(interval.latest().physical_us() + store.options.promise_us, 0);
        store.promises.extend(own, until);
        let pair = store.promises.pair(own);
        let record = store.write_pair(own);
        store.ledger.then(record, Durable::OwnPromise { epoch: pair.epoch, until: pair.until });
        let behind_us = interval.earliest().physical_us().saturating_sub(store.options.close_after_us);
        store.words.close(record.0, Timestamp::new(behind_us, 0));
        for to in store.neighbours() {
            let mut word = store.words.word(to);
            if store.sabotage.forget_the_woken() {
                word.woken.clear();
            }
            store.post.after(record, to).ask = Some(Ask { until, word });
        }
    }

    /// Wakes what slept behind a promise that is past; gives up leading where the own disk takes no promise.
    fn watch_promises(&mut self, now: &Reading) {
        let store = &mut self.store;
        let earliest = now.interval.earliest();
        let own = store.id();
        let given = store.promises.given.iter();
        let running: Vec<StoreId> = given.filter(|(_, pair)| pair.until > earliest).map(|(of, _)| *of).collect();
        for over in self.running.iter().filter(|of| !running.contains(of)) {
            for replica in self.groups.values_mut().filter(|r| r.asleep && r.lead.is_none()) {
                if replica.leader() == Some(*over) {
                    replica.wake(store);
                }
            }
        }
        self.running = running;
        let held = store.promises.held.iter();
        let held: Vec<StoreId> = held.filter(|(_, held)| held.until > earliest).map(|(of, _)| *of).collect();
        if self.held.iter().any(|of| !held.contains(of)) {
            // Without a lease a leader does not sleep.
            for replica in self.groups.values_mut().filter(|replica| replica.asleep) {
                if replica.lead.as_ref().is_some_and(|lead| replica.lease_end(store, lead) <= earliest) {
                    replica.wake(store);
                }
            }
        }
        self.held = held;
        match store.promises.held.get(&own) {
            Some(held) if held.until <= earliest => self.own_late_ticks += 1,
            _ => self.own_late_ticks = 0,
        }
        if self.own_late_ticks >= store.options.election_ticks {
            self.own_late_ticks = 0;
            for replica in self.groups.values_mut().filter(|replica| replica.lead.is_some()) {
                replica.step_down(store);
            }
        }
    }

    fn receive(&mut self, now: &Reading, envelope: Envelope) -> Result<(), Error> {
        let Envelope { from, to, ask, grant, accepts, letters, parts, gone, pokes, ceased } = envelope;
        if to != self.store.id() || from == to || from == StoreId(0) {
            let why = "it is not for this store";
            return Err(Error::Message { from, group: GroupId(0), why });
        }
        let mut result = Ok(());
        if let Some(ask) = ask {
            self.asked(now, from, ask);
        }
        if let Some(grant) = grant {
            self.granted(now, from, grant);
        }
        for accept in accepts {
            self.accepted(now, from, accept);
        }
        for letter in letters {
            let done = self.letter(now, from, letter);
            result = result.and(done);
        }
        for part in parts {
            let done = snapshot::receive(&mut self.store, &mut self.groups, from, part);
            self.flush();
            result = result.and(done);
        }
        for (group, replica) in gone {
            if self.groups.get(&group).is_some_and(|found| found.id == replica && found.lead.is_none()) {
                self.store.tell_removed(group, replica);
            }
        }
        for poke in pokes {
            match self.groups.get(&poke.group) {
                Some(replica) => replica.poked(&mut self.store, from, poke),
                None => self.store.post.now(from).ceased.push((poke.group, poke.term)),
            }
        }
        for (group, term) in ceased {
            if let Some(replica) = self.groups.get_mut(&group) {
                replica.leader_ceased(&mut self.store, from, term);
            }
        }
        result
    }

    fn asked(&mut self, now: &Reading, from: StoreId, ask: Ask) {
        let store = &mut self.store;
        let Some(interval) = now.trusted().filter(|_| store.is_neighbour(from)) else { return };
        self.hear(from, &ask.word);
        let store = &mut self.store;
        let most = Timestamp::new(interval.latest().physical_us() + store.options.promise_us, 0);
        let record = match store.promises.extend(from, ask.until.min(most)) {
            true => store.write_pair(from),
            false => store.pair_records.get(&from).copied().unwrap_or_default(),
        };
        let pair = store.promises.pair(from);
        let heard = store.words.heard(from);
        let grant = Some(Grant { epoch: pair.epoch, until: pair.until, heard });
        if store.sabotage.promise_before_durable() || store.ledger.is_durable(record) {
            store.post.now(from).grant = grant;
        } else {
            store.post.after(record, from).grant = grant;
        }
    }

    /// A store's word on the groups that it leads and that sleep.
    fn hear(&mut self, from: StoreId, word: &Word) {
        let store = &mut self.store;
        for group in word.woken.iter().filter(|_| word.number > store.words.heard(from)) {
            if let Some(replica) =
                self.groups.get_mut(group).filter(|r| r.slept_after.is_some_and(|(on, _)| on == from))
            {
                replica.leave_the_words(store);
            }
        }
        store.words.hear(from, word);
    }

    fn granted(&mut self, now: &Reading, from: StoreId, grant: Grant) {
        let store = &mut self.store;
        store.words.was_heard(from, grant.heard);
        let held = store.promises.held.get(&from);
        // Leaders that slept without it, or were accepted under another epoch, have to be accepted anew.
        let anew = held.is_none_or(|h| h.until < now.interval.earliest() || h.epoch < grant.epoch);
        if anew {
            for replica in self.groups.values_mut().filter(|replica| replica.lead.is_some()) {
                if replica.tail().conf.replica_on(from).is_some() {
                    replica.settle(store);
                    replica.wake(store);
                }
            }
        }
        store.promises.hold(from, Held { epoch: grant.epoch, until: grant.until });
    }

    fn accepted(&mut self, now: &Reading, from: StoreId, accept: Accept) {
        let Some(replica) = self.groups.get_mut(&accept.group) else { return };
        if replica.tail().conf.stores.get(&accept.replica.0) != Some(&from) {
            return;
        }
        replica.settle(&self.store);
        if let Some(lead) = replica.lead.as_mut().filter(|lead| lead.term == accept.term) {
            let epoch = lead.accepted.entry(accept.replica.0).or_default();
            *epoch = accept.epoch.max(*epoch);
            replica.look_at_lease(&mut self.store, now.interval);
        }
    }

    fn letter(&mut self, now: &Reading, from: StoreId, letter: Letter) -> Result<(), Error> {
        let group = letter.group;
        let to = ReplicaId(letter.message.to);
        let of_leader = matches!(letter.message.msg_type, MessageType::MsgAppend | MessageType::MsgHeartbeat);
        if let Some((gone, _)) = self.tombs.get(&group)
            && to <= *gone
        {
            return Ok(());
        }
        if !self.groups.contains_key(&group) && of_leader && to.0 != 0 {
            self.add(group, to, Tail::default())?;
        }
        let replica = Self::find(&mut self.groups, group)?;
        let result = replica.receive(&mut self.store, now, from, letter);
        replica.flush(&mut self.store);
        replica.look_at_lease(&mut self.store, now.interval);
        result
    }

    fn carry(&mut self, below: RecordNumber) {
        let store = &mut self.store;
        for replica in self.groups.values_mut().filter(|replica| replica.base < below) {
            replica.write_image(store);
        }
        for (group, (replica, number)) in &mut self.tombs {
            if *number < below {
                *number = store.ledger.write(record::removed(*group, *replica));
            }
        }
        let old: Vec<StoreId> = store.pair_records.iter().filter(|(_, n)| **n < below).map(|(of, _)| *of).collect();
        for of in old {
            store.write_pair(of);
        }
    }

    /// The oldest record that is still needed: segments of the log before it can be recycled. See [`Input::Carry`].
    pub fn oldest_record(&self) -> RecordNumber {
        let groups = self.groups.values().map(|replica| replica.base);
        let tombs = self.tombs.values().map(|(_, number)| *number);
        let all = groups.chain(tombs).chain(self.store.pair_records.values().copied());
        all.min().unwrap_or(RecordNumber(self.store.ledger.last().0 + 1))
    }

    /// The timestamps at which the leader here may serve: above the first, up to the second. (At or below the first nothing is written
    /// any more, and all that was is applied here: the leader may serve that, too.) `None` where it does not lead, or not yet, or
    /// has handed over. A lease once given is good for ever up to its end, unless the group is in [`Outputs::leases`] again.
    pub fn lease(&self, group: GroupId) -> Option<(Timestamp, Timestamp)> {
        self.groups.get(&group)?.lease(&self.store)
    }

    /// What is closed here: no later entry of the group has a timestamp at or below the first; whoever has applied the group up to the
    /// place has all that have.
    pub fn closed(&self, group: GroupId) -> Option<(Timestamp, u64)> {
        let replica = self.groups.get(&group)?;
        let asleep = replica.closed_asleep(&self.store).map(|at| (at, replica.last_index()));
        let own = replica.lead.as_ref().map(|lead| lead.closed);
        let closed = replica.closed.max(asleep.unwrap_or_default()).max(own.unwrap_or_default());
        (closed.0 > Timestamp::MIN).then_some(closed)
    }

    /// What the replica of a group here is doing.
    pub fn status(&self, group: GroupId) -> Option<Status> {
        let replica = self.groups.get(&group)?;
        let role = match (&replica.lead, replica.raw.raft.state) {
            (Some(_), _) => Role::Leader,
            (None, raft::StateRole::Follower) => Role::Follower,
            (None, _) => Role::Candidate,
        };
        let prs = replica.raw.raft.prs();
        let members = replica.tail().conf.stores.keys();
        let matched = members.filter_map(|r| Some((ReplicaId(*r), prs.get(*r)?.matched)));
        Some(Status {
            replica: replica.id,
            term: replica.term(),
            role,
            leader: replica.leader(),
            truncated: replica.tail().cut.index,
            last: replica.last_index(),
            committed: replica.committed(),
            applied: replica.tail().applied,
            asleep: replica.asleep,
            members: replica.tail().conf.shown(group),
            matched: if replica.lead.is_some() { matched.collect() } else { Vec::new() },
        })
    }

    /// The groups that have a replica here.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.groups.keys().copied()
    }

    /// How many groups get ticks.
    pub fn awake(&self) -> usize {
        self.store.awake.len()
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.store.options
    }

    /// Rules to break on purpose.
    #[cfg(feature = "sabotage")]
    pub fn sabotage(&mut self) -> &mut Sabotage {
        &mut self.store.sabotage
    }

    /// The entries of a group's log that are here, for tests: place, term, timestamp.
    #[cfg(feature = "sabotage")]
    pub fn entries(&self, group: GroupId) -> Vec<(u64, u64, Option<Timestamp>)> {
        let found = self.groups.get(&group).into_iter().flat_map(|replica| replica.tail().entries.iter());
        found.map(|entry| (entry.index, entry.term, super::entry::stamp_of(entry))).collect()
    }
}

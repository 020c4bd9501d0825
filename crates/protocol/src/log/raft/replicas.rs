//! All replicas of one store.

use super::error::{Error, Refused};
use super::ids::{GroupId, Member, RecordNumber, ReplicaId, StoreId};
use super::input::Input;
use super::ledger::Durable;
use super::membership::Conf;
use super::options::MEMBERS_MAX;
use super::outputs::{Outputs, Proposed};
use super::promise::Held;
use super::record::{self, Form};
use super::replica::Replica;
#[cfg(feature = "sabotage")]
use super::sabotage::Sabotage;
use super::snapshot;
use super::store::Store;
use super::support::Support;
use super::tail::{Cut, Tail};
use bytes::Bytes;
use clock::{Reading, Timestamp};
use raft::eraftpb::HardState;
use std::collections::BTreeMap;

/// The place before the first entry of a new group. Not 0: a new replica must get a snapshot, which tells it who its members are.
pub(super) const FOUNDED: u64 = 1;

/// The replicas that are gone: by group the greatest number, and its record.
pub(crate) type Tombs = BTreeMap<GroupId, (ReplicaId, RecordNumber)>;

/// All replicas of one store. See the module's page for how it is driven.
#[derive(Debug)]
pub struct Replicas {
    pub(super) store: Store,
    pub(super) groups: BTreeMap<GroupId, Box<Replica>>,
    pub(super) tombs: Tombs,
    pub(super) ticks: u64,
    /// Ticks for which the store's promise to itself has been past.
    pub(super) own_late_ticks: usize,
    /// The stores whose promises from here are running.
    pub(super) running: Vec<StoreId>,
    /// The stores whose promises to here are running.
    pub(super) held: Vec<StoreId>,
    pub(super) failed: bool,
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
        self.hold_elections(now);
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
                if replica.may_campaign()
                    && !replica.support.forbids(own, own, &store.promises, replica.tail(), now.interval)
                {
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
            Input::Known { group, index } => {
                let replica = Self::find(groups, group)?;
                if index <= replica.last_index() && replica.lead.is_none() && !replica.installing {
                    let log = &mut replica.raw.raft.raft_log;
                    log.commit_to(index.max(log.committed));
                    replica.after(store);
                }
            }
            Input::Wanted { group } => Self::find(groups, group)?.is_wanted(store),
            Input::Wake { group } => Self::find(groups, group)?.wake(store),
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

    pub(super) fn find(groups: &mut BTreeMap<GroupId, Box<Replica>>, group: GroupId) -> Result<&mut Replica, Error> {
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

    /// The leader here served a read at this timestamp: what it stamps from now on lies above, its release above all.
    pub fn served(&mut self, group: GroupId, at: Timestamp) {
        if let Some(lead) = self.groups.get_mut(&group).and_then(|replica| replica.lead.as_mut()) {
            lead.last = lead.last.max(at);
        }
    }

    /// Whether entries that leaders elsewhere send are taken: where whoever applies them is behind, they are not. As if they were lost: nothing of them is acknowledged, and they are sent again.
    pub fn take_entries(&mut self, take: bool) {
        self.store.refuses_entries = !take;
    }

    /// What leaders here have proposed and is not committed, bytes, of all groups: as of the last tick, with what came since.
    pub fn uncommitted_bytes(&self) -> u64 {
        self.store.uncommitted_bytes
    }

    /// So many messages with entries were not taken since this was last asked.
    pub fn take_put_off(&mut self) -> u64 {
        std::mem::take(&mut self.store.put_off)
    }

    /// Everything that has gathered.
    pub fn drain(&mut self) -> Outputs {
        self.flush();
        snapshot::start(&mut self.store, &mut self.groups);
        let store = &mut self.store;
        let mut out = std::mem::take(&mut store.out);
        out.records = std::mem::take(&mut store.ledger.out);
        out.messages_now = store.post.take_now();
        out.messages_after = store.post.take_after();
        out.leases.sort_unstable();
        out.leases.dedup();
        out
    }

    pub(super) fn flush(&mut self) {
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
        if let Some(blank) =
            self.groups.get_mut(&group).filter(|r| r.id.0 == id && r.tail().is_blank() && !r.installing)
        {
            // Others that were earlier told of it, and may have its vote.
            if blank.term() < term {
                blank.raw.raft.become_follower(term, raft::INVALID_ID);
            }
            blank.restore(&mut self.store, Form { cut, conf });
            return Ok(());
        }
        let tail = Tail { cut, hard, conf, applied: FOUNDED, ..Tail::default() };
        self.add(group, ReplicaId(id), tail)
    }

    /// A replica that knows nothing yet: its leader will tell it.
    pub(super) fn add(&mut self, group: GroupId, id: ReplicaId, tail: Tail) -> Result<(), Error> {
        let here = self.groups.get(&group).map(|replica| replica.id);
        let gone = self.tombs.get(&group).map(|(replica, _)| *replica);
        let gone = gone.filter(|_| !self.store.sabotage.raise_the_removed());
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
        store.elections.forget(group);
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

    fn carry(&mut self, below: RecordNumber) {
        let store = &mut self.store;
        // An image says nothing of a snapshot that is being installed: written now it would hide that from whoever reads the log back.
        for replica in self.groups.values_mut().filter(|replica| replica.base < below && !replica.installing) {
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

    /// Rules to break on purpose.
    #[cfg(feature = "sabotage")]
    pub fn sabotage(&mut self) -> &mut Sabotage {
        &mut self.store.sabotage
    }
}

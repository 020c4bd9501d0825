//! What can be asked of a store's replicas.

use super::entry::is_command;
use super::ids::{GroupId, RecordNumber, ReplicaId, StoreId};
use super::options::Options;
use super::outputs::{Configuration, Role};
use super::replicas::Replicas;
use bytes::Bytes;
use clock::Timestamp;

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
    /// It was removed, and knows it: it stays until the others can do without it.
    pub removed: bool,
    /// Whether the group sleeps here.
    pub asleep: bool,
    /// The members.
    pub members: Configuration,
    /// They are being changed, or a majority of them does not know yet, as far as is known here, that they were: whoever was removed is still needed.
    pub changing: bool,
    /// At the leader: how far each member's log is known to agree.
    pub matched: Vec<(ReplicaId, u64)>,
}

impl Replicas {
    /// The oldest record that is still needed: segments of the log before it can be recycled. See [`super::Input::Carry`].
    pub fn oldest_record(&self) -> RecordNumber {
        let groups = self.groups.values().map(|replica| replica.base);
        let tombs = self.tombs.values().map(|(_, number)| *number);
        let all = groups.chain(tombs).chain(self.store.pair_records.values().copied());
        all.min().unwrap_or(RecordNumber(self.store.ledger.last().0 + 1))
    }

    /// The timestamps at which the leader here may serve: above the first, up to the second. (At or below the first nothing is written
    /// any more, and all that was is applied here: the leader may serve that, too.) `None` where it does not lead, or not yet, or
    /// has handed over. A lease once given is good for ever up to its end, unless the group is in [`super::Outputs::leases`] again.
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
            removed: replica.has_left(),
            asleep: replica.asleep,
            members: replica.tail().conf.shown(group),
            changing: replica.tail().conf.is_joint() || replica.lead.is_some() && !replica.conf_known,
            matched: if replica.lead.is_some() { matched.collect() } else { Vec::new() },
        })
    }

    /// The place after which the entries of a group here have so many bytes together, or fewer.
    pub fn place_before(&self, group: GroupId, bytes: usize) -> Option<u64> {
        let tail = self.groups.get(&group)?.tail();
        let mut left = bytes;
        let fits = tail.entries.iter().rev().take_while(|entry| {
            let room = left.checked_sub(entry.data.len());
            left = room.unwrap_or(0);
            room.is_some()
        });
        Some(tail.last_index() - fits.count() as u64)
    }

    /// How many bytes the entries of a group have here that lie behind a place.
    pub fn bytes_after(&self, group: GroupId, place: u64) -> usize {
        let entries = self.groups.get(&group).map(|replica| &replica.tail().entries);
        let behind =
            entries.into_iter().flat_map(|entries| entries.iter().rev().take_while(|entry| entry.index > place));
        behind.map(|entry| entry.data.len()).sum()
    }

    /// At the leader: the least place, at or behind `from`, up to which the log of a member that was heard lately is known to agree.
    pub fn least_matched(&self, group: GroupId, from: u64) -> Option<u64> {
        let replica = self.groups.get(&group).filter(|replica| replica.lead.is_some())?;
        let prs = replica.raw.raft.prs();
        let heard = |on: StoreId| on == self.store.id() || self.store.snapshots.heard_lately(on, &self.store.options);
        let members = replica.tail().conf.stores.iter().filter(|(_, on)| heard(**on));
        members.filter_map(|(member, _)| Some(prs.get(*member)?.matched)).filter(|matched| *matched >= from).min()
    }

    /// The commands in a group's log here that are not applied, as they were proposed, with their places: they may be committed or not.
    pub fn unapplied(&self, group: GroupId) -> impl Iterator<Item = (u64, &Bytes)> {
        let tail = self.groups.get(&group).map(|replica| replica.tail());
        let entries = tail.into_iter().flat_map(|tail| tail.entries.iter().filter(|entry| entry.index > tail.applied));
        entries.filter(|entry| is_command(entry)).map(|entry| (entry.index, &entry.data))
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

    /// The entries of a group's log that are here, for tests: place, term, timestamp.
    #[cfg(feature = "sabotage")]
    pub fn entries(&self, group: GroupId) -> Vec<(u64, u64, Option<Timestamp>)> {
        let found = self.groups.get(&group).into_iter().flat_map(|replica| replica.tail().entries.iter());
        found.map(|entry| (entry.index, entry.term, super::entry::stamp_of(entry))).collect()
    }
}

//! What the replicas of a store want done.

use super::entry::LogEntry;
use super::envelope::Envelope;
use super::ids::{GroupId, Member, RecordNumber, ReplicaId, StoreId};
use bytes::Bytes;
use clock::Timestamp;

/// What [`super::Replicas::drain`] hands out, to be seen to in this order; records and messages may overlap.
#[derive(Debug, Default)]
pub struct Outputs {
    /// For the store's one log, in order. One sync serves all groups. Report [`super::Input::Persisted`].
    pub records: Vec<Record>,
    /// May leave at once: one envelope per store.
    pub messages_now: Vec<Envelope>,
    /// May leave when their record, and all before it, are durable. What is not sent when the store stops is dropped.
    pub messages_after: Vec<(RecordNumber, Envelope)>,
    /// To be applied, in order. Committed by a quorum, and durable in this store's own log, too, so that a restart finds again
    /// whatever was applied.
    pub committed: Vec<Committed>,
    /// Replicas that changed their role, term or leader.
    pub roles: Vec<RoleChange>,
    /// Groups whose [`super::Replicas::lease`] is another: mirror it before the next input.
    pub leases: Vec<GroupId>,
    /// Groups whose members are others.
    pub configurations: Vec<Configuration>,
    /// What became of proposals whose leader here fell.
    pub fates: Vec<Fate>,
    /// Snapshots to take, read, write and install.
    pub snapshots: Vec<SnapshotTask>,
    /// The replica here is no member any more, says the leader: answer with [`super::Input::Remove`].
    pub removed: Vec<(GroupId, ReplicaId)>,
}

/// One record of the store's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number; dense.
    pub number: RecordNumber,
    /// Its bytes, with a version.
    pub bytes: Vec<u8>,
}

/// Entries of one group to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The group.
    pub group: GroupId,
    /// In order; places are dense. Apply commands; the others only move the applied place.
    pub entries: Vec<LogEntry>,
}

/// What a replica is in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Role {
    /// It follows, or waits.
    #[default]
    Follower,
    /// It looks for votes.
    Candidate,
    /// It leads. Whether it may serve says its lease.
    Leader,
}

/// A replica changed its role, term or leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleChange {
    /// The group.
    pub group: GroupId,
    /// The term.
    pub term: u64,
    /// What it is in it.
    pub role: Role,
    /// The store whose replica leads, as far as is known.
    pub leader: Option<StoreId>,
}

/// The members of a group from a place on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The group.
    pub group: GroupId,
    /// The place in the log.
    pub index: u64,
    /// Who votes.
    pub voters: Vec<Member>,
    /// Who votes as well, while the configuration is joint: the voters of before.
    pub outgoing: Vec<Member>,
    /// Who only gets the log.
    pub learners: Vec<Member>,
}

/// What became of the proposals of a leader that fell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Those of `term` in `from..=to` may be committed yet, or not.
    Unknown {
        /// The group.
        group: GroupId,
        /// The term in which they were proposed.
        term: u64,
        /// The first place.
        from: u64,
        /// The last place.
        to: u64,
    },
    /// Those of `term` at `from` and after are certainly not in the log, and never will be.
    Absent {
        /// The group.
        group: GroupId,
        /// The term in which they were proposed.
        term: u64,
        /// The first place.
        from: u64,
    },
}

/// What a proposal got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// Its timestamp: above all before it in its group.
    pub at: Timestamp,
    /// Its place, if it is committed in `term`.
    pub index: u64,
    /// The leader's term.
    pub term: u64,
}

/// What is to be done about a snapshot. At most one goes out of a store, and one comes in, at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotTask {
    /// Hold a snapshot of the group, all that is applied; [`super::Input::SnapshotTaken`].
    Take {
        /// The group.
        group: GroupId,
        /// Its applied place must not be below this.
        index: u64,
    },
    /// Read a part of it; [`super::Input::SnapshotRead`].
    Read {
        /// The group.
        group: GroupId,
        /// Where.
        offset: u64,
        /// How much.
        bytes: usize,
    },
    /// It is sent, or nobody needs it any more.
    Drop {
        /// The group.
        group: GroupId,
    },
    /// A snapshot begins to come in: set what came of an earlier one aside.
    Begin {
        /// The group.
        group: GroupId,
        /// Its applied place.
        index: u64,
        /// All its bytes.
        bytes: u64,
    },
    /// A part of it, in order.
    Write {
        /// The group.
        group: GroupId,
        /// Where.
        offset: u64,
        /// The part.
        bytes: Bytes,
    },
    /// All of it is here: the group's state is this one, durably and as a whole, and its applied place the snapshot's (design 4a.9);
    /// [`super::Input::SnapshotInstalled`].
    Install {
        /// The group.
        group: GroupId,
        /// The applied place.
        index: u64,
    },
    /// It will not be finished: throw away what came.
    Abandon {
        /// The group.
        group: GroupId,
    },
}

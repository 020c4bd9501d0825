//! What the replicas of a store are told.

use super::envelope::Envelope;
use super::ids::{GroupId, Member, RecordNumber, ReplicaId, StoreId};
use bytes::Bytes;
use clock::Timestamp;

/// One input of [`super::Replicas::step`]. (Proposals have a method of their own, because they have an answer.)
#[derive(Clone, Debug)]
pub enum Input {
    /// Time passed: one tick of [`super::Options`].
    Tick,
    /// A peer's envelope arrived. It may be late, or the same one again.
    Message(Envelope),
    /// All records up to this one are durable.
    Persisted(RecordNumber),
    /// The disk refused records for good. From here on nothing is taken, served or sent: start again from what the disk holds. Where it
    /// is only full or busy, keep the records and append them later: nothing that waits for them leaves meanwhile, and if it
    /// takes long the leaders here lose their leases and step down.
    PersistFailed,
    /// The first replicas of a new group: each founding store is given the same. Where it comes too late, and the others have a
    /// leader that has written to this store, it is refused ([`super::Error::Exists`]): the leader sends a snapshot.
    Create {
        /// The group.
        group: GroupId,
        /// Its voters, this store among them.
        voters: Vec<Member>,
        /// All timestamps of the group lie above this (a range that is split off goes on above its origin's).
        floor: Timestamp,
    },
    /// The replica here is a member no more (or its group is gone): it is forgotten, and none of its messages is ever heard again.
    /// Its state may be deleted once the record of this is durable.
    Remove {
        /// The group.
        group: GroupId,
    },
    /// The leader here should change the membership. Answered by [`super::Outputs::configurations`].
    Change {
        /// The group.
        group: GroupId,
        /// All together, through a joint configuration where voters change.
        changes: Vec<Change>,
    },
    /// The leader here should hand over.
    Transfer {
        /// The group.
        group: GroupId,
        /// To the replica there, a voter.
        to: StoreId,
    },
    /// The replica here should look for votes now, where no promise forbids it.
    Campaign {
        /// The group.
        group: GroupId,
    },
    /// Somebody asks for what the group has, and no leader is heard: if there is to be another, its election comes first.
    Wanted {
        /// The group.
        group: GroupId,
    },
    /// The log here is committed up to this place, as the driver knows from elsewhere: one of its entries is known to have been applied by others, and what
    /// stands before it in one log stands before it in all.
    Known {
        /// The group.
        group: GroupId,
        /// The place of that entry.
        index: u64,
    },
    /// The replica here may lag without knowing it: it does not sleep on, and asks.
    Wake {
        /// The group.
        group: GroupId,
    },
    /// Entries up to this place are applied, durably: the log need not keep them.
    Truncate {
        /// The group.
        group: GroupId,
        /// The last place that may go.
        index: u64,
    },
    /// Write again whatever is only in records before this one, so that the log's segments before it can be recycled although
    /// one idle group lags.
    Carry {
        /// The first record that stays.
        below: RecordNumber,
    },
    /// Answers [`super::SnapshotTask::Take`]: the driver holds a snapshot of the group at this place.
    SnapshotTaken {
        /// The group.
        group: GroupId,
        /// Its applied place, not below the one asked for.
        index: u64,
        /// All its bytes.
        bytes: u64,
    },
    /// Answers [`super::SnapshotTask::Read`].
    SnapshotRead {
        /// The group.
        group: GroupId,
        /// Where in the snapshot.
        offset: u64,
        /// At most as many as asked for; fewer only at the end.
        bytes: Bytes,
    },
    /// Answers [`super::SnapshotTask::Install`]: it is installed, durably, and the group's applied place is the snapshot's.
    SnapshotInstalled {
        /// The group.
        group: GroupId,
    },
    /// The driver gives up on a snapshot that it was asked to take, read or install.
    SnapshotFailed {
        /// The group.
        group: GroupId,
    },
}

/// One change of a group's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new replica that gets the log and has no vote.
    AddLearner(Member),
    /// A learner that has caught up gets a vote.
    Promote(ReplicaId),
    /// A member is one no more.
    Remove(ReplicaId),
}

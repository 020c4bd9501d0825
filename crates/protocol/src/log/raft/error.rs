//! What can go wrong, and what the caller does about it.

use super::ids::{GroupId, ReplicaId, StoreId};
use super::options::{CHUNK_BYTES_MAX, PAYLOAD_BYTES_MAX};

/// An input was refused. Nothing has changed, except where it says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// This store has no replica of the group.
    #[error("no replica of group {0} on this store: ask a store that has one")]
    NoReplica(GroupId),
    /// There is one already, or there was one with this or a later number.
    #[error("group {group} has or had replica {replica} or a later one here: take a new replica number")]
    Exists {
        /// The group.
        group: GroupId,
        /// The greatest replica number known here.
        replica: ReplicaId,
    },
    /// The members do not make a group: none, too many, one twice, or this store is not among them.
    #[error("group {0}: the members must be 1 to 32, each once, with this store among them")]
    Members(GroupId),
    /// Not the leader.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A change of membership that does not fit what there is.
    #[error("group {group}: {why}")]
    Change {
        /// The group.
        group: GroupId,
        /// What is wrong with it.
        why: ChangeError,
    },
    /// A message that no honest peer sends. It was dropped.
    #[error("a message from store {from} for group {group} was dropped: {why}")]
    Message {
        /// Who sent it.
        from: StoreId,
        /// Its group.
        group: GroupId,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Bytes that are not what they should be.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// A snapshot's part is too large, or not the next one.
    #[error("group {group}: a snapshot's parts come in order, 1 to {CHUNK_BYTES_MAX} bytes each")]
    Chunk {
        /// The group.
        group: GroupId,
    },
    /// Records were reported durable that were never given out.
    #[error("records were reported durable that were never given out")]
    NotWritten,
    /// The disk failed earlier: what it holds is unknown. Start again from what it holds.
    #[error("this store's log failed: nothing is taken until the store is started again")]
    Failed,
    /// The driver's state and the log do not fit.
    #[error(
        "group {group}: the state has applied the log up to {applied}, but the log begins after {first} and ends at {last}"
    )]
    Applied {
        /// The group.
        group: GroupId,
        /// Up to where the state has applied it.
        applied: u64,
        /// The place before the log's first.
        first: u64,
        /// The log's last place.
        last: u64,
    },
    /// The library refused a step.
    #[error("group {group}: {why}")]
    Library {
        /// The group.
        group: GroupId,
        /// Its words.
        why: String,
    },
}

/// Why a proposal was not taken. It is certainly not in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// This replica does not lead.
    #[error("this replica does not lead its group: ask the store that does")]
    NotLeader {
        /// Who might.
        hint: Option<StoreId>,
    },
    /// It leads, but no lease covers the present (yet, or any more). Try again.
    #[error("the leader holds no lease that covers the present: try again")]
    NoLease,
    /// Leadership is being handed over. Try again with `hint`.
    #[error("the leader hands over to another store: ask that one")]
    Transferring {
        /// To whom.
        hint: Option<StoreId>,
    },
    /// Too much waits for the disk or for followers. Try again later.
    #[error("too much waits for the disk or for followers: try again later")]
    Overloaded,
    /// The payload is too large for one entry.
    #[error("a payload has at most {PAYLOAD_BYTES_MAX} bytes: send it in parts")]
    TooLarge,
    /// The library dropped it.
    #[error("the proposal was dropped: try again")]
    Dropped,
}

/// Why a change of membership does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// An earlier one is not finished.
    #[error("an earlier change of membership is not finished: wait for it")]
    Unfinished,
    /// A new replica's number must be greater than every one the group has had.
    #[error("a new replica's number must be above {0}, the greatest that the group has had")]
    NumberUsed(ReplicaId),
    /// The store has a replica already.
    #[error("store {0} has a replica of the group already")]
    StoreUsed(StoreId),
    /// No such member.
    #[error("replica {0} is not a member")]
    NotMember(ReplicaId),
    /// Voters are learners first, until they have caught up.
    #[error("replica {0} is not a learner that has caught up: add it as a learner and wait")]
    NotCaughtUp(ReplicaId),
    /// No voter would be left.
    #[error("a group keeps at least one voter")]
    NoVoter,
    /// Nothing to do, or too much, or one replica twice.
    #[error("a change names each replica once, and leaves at most 32 members")]
    Shape,
}

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Written by a version that this one does not know.
    #[error("version {0} is not known: use a binary of this version or later")]
    Version(u8),
    /// Not what it should be.
    #[error("damaged or foreign bytes: {0} is missing or wrong")]
    Damaged(&'static str),
}

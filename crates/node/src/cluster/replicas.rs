//! Who replicates a range: changes that an operator, or a shell, asks for at its leader.

use super::core::group_of;
use super::member::Member;
use super::seam::NodeId;
use clock::Reading;
use protocol::log::raft::{Change, ChangeError, Error, Input, Member as Seat, ReplicaId};
use protocol::txn::RangeId;
use store::Engine;

/// One change of a range's replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaChange {
    /// A new replica, which gets the range and has no vote yet.
    Add(NodeId),
    /// A replica that has caught up gets a vote.
    Promote(NodeId),
    /// A replica goes.
    Remove(NodeId),
}

/// A change was not taken: nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefused {
    /// The log core says why.
    #[error(transparent)]
    Log(#[from] Error),
    /// The node has no replica of the range.
    #[error("{node} has no replica of {range}")]
    NoReplica {
        /// The range.
        range: RangeId,
        /// The node.
        node: NodeId,
    },
    /// The node that is to lead a range is not heard here: nobody would lead it for a while.
    #[error("{node} is to lead {range}, and is not heard here: try again when it is, or name another node")]
    Silent {
        /// The range.
        range: RangeId,
        /// The node.
        node: NodeId,
    },
}

/// Attempts to find a replica number that was never used.
const NUMBERS_TRIED_MAX: usize = 2;

impl<E: Engine> Member<E> {
    /// Asks the leader here to change the replicas of a range, all together. It is done when [`super::RangeStatus`] shows it. Take the outputs.
    ///
    /// # Errors
    /// It was not taken: this node does not lead the range, an earlier change is not done, a new replica has not caught up.
    pub fn change_replicas(
        &self,
        now: &Reading,
        range: RangeId,
        changes: &[ReplicaChange],
    ) -> Result<(), ChangeRefused> {
        let mut core = self.lock();
        let group = group_of(range);
        let Some(status) = core.replicas.status(group) else {
            return Err(Error::NoReplica(group).into());
        };
        // `split`, invariant 6. Learners have no vote anywhere: they may come, and go.
        let votes = changes.iter().any(|change| match change {
            ReplicaChange::Remove(node) => status.members.voters.iter().any(|seat| seat.store == node.store()),
            ReplicaChange::Add(_) | ReplicaChange::Promote(_) => false,
        });
        if votes && core.is_founding(range) {
            return Err(Error::Change { group, why: ChangeError::Unfinished }.into());
        }
        let members = status.members;
        let seats: Vec<Seat> =
            members.voters.iter().chain(&members.outgoing).chain(&members.learners).copied().collect();
        let on = |node: NodeId| {
            let seat = seats.iter().find(|seat| seat.store == node.store()).map(|seat| seat.replica);
            seat.ok_or(ChangeRefused::NoReplica { range, node })
        };
        let mut next = seats.iter().map(|seat| seat.replica.0).max().unwrap_or(0) + 1;
        for _ in 0..NUMBERS_TRIED_MAX {
            let mut number = next;
            let mut all = Vec::new();
            for change in changes {
                all.push(match change {
                    ReplicaChange::Add(node) => {
                        number += 1;
                        Change::AddLearner(Seat { replica: ReplicaId(number - 1), store: node.store() })
                    }
                    ReplicaChange::Promote(node) => Change::Promote(on(*node)?),
                    ReplicaChange::Remove(node) => Change::Remove(on(*node)?),
                });
            }
            core.moved = true;
            match core.replicas.step(now, Input::Change { group, changes: all }) {
                Err(Error::Change { why: ChangeError::NumberUsed(greatest), .. }) => next = greatest.0 + 1,
                Err(why) => return Err(why.into()),
                Ok(()) => {
                    // What follows is told with the outputs.
                    return Ok(());
                }
            }
        }
        Err(Error::Change { group, why: ChangeError::Shape }.into())
    }

    /// Asks the leader here to hand a range over to a node that has a replica with a vote. Take the outputs.
    ///
    /// # Errors
    /// It was not taken.
    pub fn hand_over(&self, now: &Reading, range: RangeId, to: NodeId) -> Result<(), ChangeRefused> {
        let mut core = self.lock();
        if !core.hears(to) {
            return Err(ChangeRefused::Silent { range, node: to });
        }
        core.moved = true;
        Ok(core.replicas.step(now, Input::Transfer { group: group_of(range), to: to.store() })?)
    }
}

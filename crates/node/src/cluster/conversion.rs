//! A node that ran alone becomes a member of a cluster (design 4a.11).
//!
//! # Problem
//! Alone, a node keeps the order of what it acknowledged by its own log, wherever its clock is set: after that was set back it is ahead of time. To others an acknowledged commit that
//! is not past does not exist: whoever reads on another node, at that node's time, misses it.
//!
//! # Idea
//! Versions, keys and ranges are the same, alone and in a cluster. What differs is the log, and the state beside the versions that says where its replay begins. So
//! nothing is copied: the node comes to rest (nothing is prepared, all is applied), waits until everything that it ever gave out is past, and puts in place of its state that of a member
//! whose ranges are still to be created, on itself alone, above all that it gave out: what a split leaves behind, too (`split`, invariant 3). With the flush of that it is a member; its
//! old log is of no use any more.
//!
//! # Invariants
//! 1. The member's ranges begin above everything that was committed, read or promised alone, and that is past by then.
//! 2. Before the flush the store is the lone node's, after it the member's, whole; and nobody writes in between.
//! 3. A store whose member has not opened yet has no record of it: what is in the log's directory is the lone node's.
//!
//! # Caveats
//! Its ranges may be large: they are split when others need them (`copying`, invariant 3).

use super::seam::NodeId;
use super::split::FOUNDED;
use super::state::{Kept, State};
use crate::Node;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::txn::Range;
use store::{Engine, StoreError};

/// It does not become a member yet. Ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotYet {
    /// A transaction is under way, or the log: drive it.
    #[error("something is still under way")]
    Busy,
    /// It is ahead of time.
    #[error("what was committed last, at {last}, is not past by this machine's clock")]
    Ahead {
        /// The greatest timestamp that it gave out.
        last: Timestamp,
    },
}

/// What a store's state says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// Nothing: it is new, or its node ran alone and wrote its log only.
    Unwritten,
    /// Its node ran alone.
    Alone,
    /// It became a member's, and no member has opened it.
    Converted {
        /// The cluster.
        cluster: u64,
    },
    /// It is a member's.
    Member {
        /// The cluster.
        cluster: u64,
        /// The node.
        node: u32,
    },
}

impl Past {
    /// Of the state that a store's versions carry.
    ///
    /// # Errors
    /// It is damaged, or of a later release.
    pub fn of(state: &Bytes) -> Result<Past, StoreError> {
        match state.first() {
            None => Ok(Past::Unwritten),
            Some(&crate::state::VERSION) => Ok(Past::Alone),
            Some(_) => State::decode(state).map(|State { cluster, node, incarnation, .. }| match incarnation {
                0 => Past::Converted { cluster },
                _ => Past::Member { cluster, node },
            }),
        }
    }
}

impl<E: Engine> Node<E> {
    /// Makes the store that of the member `node` of a cluster. Before: [`Node::close`], and drive the log to its end. Afterwards: flush until no layer is
    /// frozen, and use this value no more.
    ///
    /// # Errors
    /// Not yet: nothing was done.
    pub fn become_member(&self, now: &Reading, cluster: u64, node: NodeId) -> Result<(), NotYet> {
        let mut core = self.core.lock();
        if !core.is_at_rest() {
            return Err(NotYet::Busy);
        }
        let last = self.clock_last().max(self.ready_at()).max(core.log.closed());
        let is_past = now.trusted().is_some_and(|interval| interval.is_past(last));
        let floor = match self.sabotage().join_ahead_of_time() {
            true => now.interval.earliest(),
            false if is_past => last,
            false => return Err(NotYet::Ahead { last }),
        };
        let ranges: Option<Vec<Range>> = core.ranges.values().map(|range| range.begun_anew(&[node.0])).collect();
        let Some(ranges) = ranges else { return Err(NotYet::Busy) };
        let founding = Some((vec![node.0], floor));
        let kept: Vec<Kept<'_>> =
            ranges.iter().map(|range| Kept { range, applied: FOUNDED, founding: &founding }).collect();
        let state = State::encode(cluster, node.0, 0, &kept);
        core.converted = true;
        // The place after the last: there is no record of it.
        self.versions().freeze(core.applied.0 + 1, state);
        Ok(())
    }
}

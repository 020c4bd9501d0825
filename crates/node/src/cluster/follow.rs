//! Reads of the past by the replica that is here, whoever leads (design 4a.7).
//!
//! A leader closes what lies a few seconds behind: it stamps nothing there any more, and says so with what it sends; of groups that sleep its store says
//! it for all. A replica that has applied the log up to the place that goes with it has every entry at or below. But a transaction that is
//! prepared below may be committed below, too. So what is *resolved* is what is closed, and lies below everything that is prepared and undecided.
//!
//! Invariants:
//! 1. A snapshot at or below what is resolved here is read as the leader would read it: nothing at or below it is to come.
//! 2. Rule 1 holds here as well: the snapshot must be certainly past by this node's clock.
//! 3. What cannot be answered here is asked of the leader: nothing is left out, and nobody waits.

use super::core::{Core, group_of};
use clock::{Reading, Timestamp};
use protocol::door::{Answer, Request};
use protocol::txn::RangeId;
use store::{Engine, StoreError};

impl<E: Engine> Core<E> {
    /// Up to here the replica of a range here has everything; `None`: nothing is known of it.
    pub fn resolved(&self, range: RangeId) -> Option<Timestamp> {
        let shard = self.shards.get(&range)?;
        let (closed, _) = self.replicas.closed(group_of(range)).filter(|(_, place)| *place <= shard.applied)?;
        let undecided = shard.range.prepared().values().map(|prepared| prepared.at).min();
        match undecided.filter(|_| !self.sabotage.closed_is_resolved()) {
            Some(at) if at <= closed => Some(Timestamp::from_u64(at.as_u64().saturating_sub(1))),
            _ => Some(closed),
        }
    }

    /// The answer of the replica here to a read of the past, if it can give one.
    pub fn read_here(
        &mut self,
        now: &Reading,
        range: RangeId,
        request: &Request,
    ) -> Result<Option<Answer>, StoreError> {
        let (Request::Get { look, .. } | Request::Scan { look, .. }) = request else { return Ok(None) };
        let snapshot = look.snapshot;
        // What is uncertain is known to the leader only.
        if look.limit > snapshot {
            return Ok(None);
        }
        if self.resolved(range).is_none_or(|resolved| snapshot > resolved) || !self.may_show(now, snapshot) {
            return Ok(None);
        }
        let answer = self.look_up(range, request)?;
        Ok(answer.filter(|answer| matches!(answer, Answer::Value { .. } | Answer::Rows { .. })))
    }
}

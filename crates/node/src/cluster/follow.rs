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
//!
//! Who wants the freshest snapshot that costs no round trip ([`Member::freshest`]: bounded staleness) gets the oldest that a replica here has resolved. Ranges
//! whose replicas here lag behind what he accepts do not count, and those that are led here or have no replica here do not either: their leaders answer
//! for whatever snapshot comes of it. So one range that lags costs round trips to that range, and staleness of no other.

use super::core::{Core, group_of};
use super::member::Member;
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

impl<E: Engine> Member<E> {
    /// The newest snapshot that the replicas here can read without asking anybody, if it is not before `least`; else `least`.
    pub fn freshest(&self, now: &Reading, least: Timestamp) -> Timestamp {
        let mut core = self.look();
        if core.resolved_here.0 != Some(core.ticks) {
            let follows = |shard: &super::shard::Shard| shard.led.is_none();
            let followed = core.shards.iter().filter(|(_, shard)| follows(shard)).map(|(range, _)| *range);
            let mut resolved: Vec<Timestamp> = followed.filter_map(|range| core.resolved(range)).collect();
            resolved.sort_unstable();
            core.resolved_here = (Some(core.ticks), resolved);
        }
        let resolved = &core.resolved_here.1;
        let oldest = resolved.get(resolved.partition_point(|at| *at < least)).copied();
        // Rule 1 (invariant 2). And what was resolved once stays so.
        oldest.unwrap_or(Timestamp::MAX).min(now.interval.earliest()).max(least)
    }
}

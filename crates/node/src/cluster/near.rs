//! Reads of the past where no replica is here that could answer: the nearest one is asked, whoever leads (decision 202).
//!
//! # Problem
//! A node without a replica of a range asks its leader, wherever that is. The past is the same at every replica, and another one may be nearer.
//!
//! # Idea
//! A read at a snapshot that is as old as what leaders close goes to the replica that answers fastest ([`Body::Near`]). It answers by its own word ([`Core::read_here`]), or says who leads.
//! How long a node takes is measured with each read that it answers, and forgotten after a while, so that it is tried again: the way there may have changed.
//!
//! # Invariants
//! 1. Whoever is asked answers by what is resolved at *his* replica, not by what anybody believes of it: what this node knows of replicas costs a detour when it is wrong, nothing else.
//! 2. One is asked once for each call, in one hop; if he cannot answer, or says nothing for as long as a call waits before it is sent again, the call goes on as any other.
//! 3. Who answers for a range that he does not lead is not taken for its leader, nor for a sign that it has one.
//! 4. A replica that was removed and knows it answers nothing. One that does not know it yet has all the same what was closed to it.
//! 5. What is uncertain is the leader's to say: only reads whose limit is their snapshot are asked so.
//!
//! # Caveats
//! A node that was not measured for [`FORGOTTEN_TICKS`] counts as near, and costs one read the way to it. Nobody is told where nodes are (there are no localities): what is measured says it.

use super::core::{Core, group_of};
use super::gateway::{Call, Owner};
use super::seam::{Class, NodeId};
use super::shard::Asker;
use clock::Reading;
use protocol::door::{Answer, Body, Request, VERSION_OF_NEAR_READS};
use protocol::txn::RangeId;
use std::collections::BTreeMap;
use store::{Engine, StoreError};

/// What is younger is not closed anywhere, microseconds: leaders close what lies so far behind.
const NEAR_US: u64 = 3_000_000;
/// A replica that could not answer is not asked for so many ticks: one second.
const LAGS_TICKS: u64 = 10;
/// A node that said nothing is not asked for so many ticks: five seconds.
const SILENT_TICKS: u64 = 50;
/// What was measured so many ticks ago is forgotten: a minute.
const FORGOTTEN_TICKS: u64 = 600;
/// A slower answer counts for one part in so many, a faster one for the whole: reads wait for disks and for what is in flight, and no way is shorter than it is.
const SLOWER_COUNTS: u64 = 8;
/// Replicas that are known to lag, at most: beyond that all are tried again.
const LAGS_MAX: usize = 4096;
/// Nodes that are measured, at most.
const MEASURED_MAX: usize = 1024;

/// What is known of how near other nodes are.
#[derive(Debug, Default)]
pub(crate) struct Near {
    /// How long each takes to answer a read, nanoseconds, and when that was seen last, in ticks.
    takes: BTreeMap<NodeId, (u64, u64)>,
    /// Replicas that could not answer, and until when they are left alone, in ticks.
    lags: BTreeMap<(RangeId, NodeId), u64>,
    /// Nodes that said nothing, likewise.
    silent: BTreeMap<NodeId, u64>,
}

impl Near {
    /// A node answered a read after so long.
    pub fn took(&mut self, node: NodeId, took_ns: u64, ticks: u64) {
        if self.takes.len() >= MEASURED_MAX && !self.takes.contains_key(&node) {
            self.takes.clear();
        }
        let (known_ns, seen) = self.takes.entry(node).or_insert((took_ns, ticks));
        *known_ns = if took_ns < *known_ns { took_ns } else { *known_ns + (took_ns - *known_ns) / SLOWER_COUNTS };
        *seen = ticks;
    }

    /// How long it takes, nanoseconds; nothing where that is not known.
    fn takes(&self, node: NodeId) -> u64 {
        self.takes.get(&node).map_or(0, |(ns, _)| *ns)
    }

    fn is_left_alone(&self, range: RangeId, node: NodeId) -> bool {
        self.silent.contains_key(&node) || self.lags.contains_key(&(range, node))
    }

    fn tick(&mut self, ticks: u64) {
        self.takes.retain(|_, (_, seen)| ticks.saturating_sub(*seen) <= FORGOTTEN_TICKS);
        self.lags.retain(|_, until| ticks < *until);
        self.silent.retain(|_, until| ticks < *until);
    }
}

impl Call {
    /// Whether it reads what its leader need not be asked for (invariant 5).
    fn reads_the_past(&self, now: &Reading) -> bool {
        let (Request::Get { look, .. } | Request::Scan { look, .. }) = &self.request else { return false };
        let closed_us = now.interval.earliest().physical_us().saturating_sub(NEAR_US);
        look.limit <= look.snapshot && look.snapshot.physical_us() <= closed_us
    }
}

impl<E: Engine> Core<E> {
    /// Who is to be asked for a call before its leader is: a replica that is nearer (invariant 2).
    pub fn nearest(&self, now: &Reading, id: u64) -> Option<NodeId> {
        let call = self.gateway.calls.get(&id)?;
        let may = !call.near_tried && matches!(call.owner, Owner::Operation(_)) && call.reads_the_past(now);
        if !may || !self.in_force(VERSION_OF_NEAR_READS) {
            return None;
        }
        let route = self.routes.get(call.range)?;
        let able = |node: &NodeId| {
            let reached = *node != self.me() && self.routes.is_member(*node) && !self.gateway.is_mute(*node);
            reached && !self.near.is_left_alone(call.range, *node)
        };
        let all = route.replicas.iter().copied().filter(able);
        let (takes_ns, nearest) = all.map(|node| (self.near.takes(node), node)).min()?;
        let leader_ns = match route.leader.filter(|leader| self.routes.is_member(*leader)) {
            Some(leader) if leader == self.me() => 0,
            Some(leader) => self.near.takes(leader),
            None => u64::MAX,
        };
        (takes_ns < leader_ns).then_some(nearest)
    }

    /// Asks a replica that need not lead.
    pub fn ask_nearest(&mut self, now: &Reading, id: u64, to: NodeId) {
        let Some(call) = self.gateway.calls.get_mut(&id) else { return };
        (call.near, call.near_tried, call.sent_to) = (Some(to), true, Some(to));
        call.copies += 1;
        let (range, request) = (call.range, call.request.clone());
        self.counters.requests_sent.one();
        self.send(now, to, Class::Request, Body::Near { id, range, request }, None);
    }

    /// A peer asks the replica here, whoever leads.
    pub fn asked_as_nearest(
        &mut self,
        now: &Reading,
        asker: Asker,
        range: RangeId,
        request: Request,
    ) -> Result<(), StoreError> {
        if self.led_until(range).is_some() {
            return self.serve(now, asker, range, request);
        }
        let answer = match self.has_seat(range) {
            true if self.sabotage.answer_unresolved() => self.look_up(range, &request)?,
            true => self.read_here(now, range, &request)?,
            false => None,
        };
        if answer.is_some() {
            self.counters.follower_reads.one();
        }
        let hint = self.hint(range);
        self.answer(asker, answer.unwrap_or(Answer::NotLeader { hint }));
        Ok(())
    }

    /// Invariant 4: whether the replica here is one of its range's, as far as it knows.
    fn has_seat(&self, range: RangeId) -> bool {
        let me = self.me().store();
        let status = self.replicas.status(group_of(range)).filter(|status| !status.removed);
        let seats = |members: &protocol::log::raft::Configuration| {
            members.voters.iter().chain(&members.learners).any(|seat| seat.store == me)
        };
        status.is_some_and(|status| seats(&status.members))
    }

    /// Who was asked as the nearest could not answer: the leader is asked, whom he may know. Says whether it was so.
    pub fn nearest_lags(&mut self, id: u64, from: NodeId, hint: Option<NodeId>) -> bool {
        let until = self.ticks + LAGS_TICKS;
        let asked = self.gateway.calls.get_mut(&id).filter(|call| call.near == Some(from));
        let Some(call) = asked else { return false };
        let range = call.range;
        call.leave_nearest();
        if self.near.lags.len() >= LAGS_MAX {
            self.near.lags.clear();
        }
        self.near.lags.insert((range, from), until);
        if self.routes.get(range).is_some_and(|route| route.leader.is_none()) {
            self.routes.set_leader(range, hint);
        }
        self.counters.near_reads_in_vain.one();
        true
    }

    /// A call goes out again: whoever was asked as the nearest has said nothing.
    pub fn nearest_is_silent(&mut self, id: u64) {
        let until = self.ticks + SILENT_TICKS;
        let Some(call) = self.gateway.calls.get_mut(&id) else { return };
        if let Some(silent) = call.near {
            call.leave_nearest();
            self.near.silent.insert(silent, until);
            self.counters.near_reads_in_vain.one();
        }
    }

    pub fn tick_near(&mut self) {
        self.near.tick(self.ticks);
    }
}

#[cfg(test)]
mod tests {
    use super::{FORGOTTEN_TICKS, Near, NodeId};

    #[test]
    fn a_way_is_as_long_as_its_fastest_answers() {
        let (mut near, node) = (Near::default(), NodeId(7));
        assert_eq!(near.takes(node), 0, "who was never asked is tried");
        near.took(node, 8_000, 1);
        near.took(node, 80_000, 2);
        assert_eq!(near.takes(node), 17_000);
        near.took(node, 9_000, 3);
        assert_eq!(near.takes(node), 9_000);
        near.tick(3 + FORGOTTEN_TICKS);
        assert_eq!(near.takes(node), 9_000);
        near.tick(4 + FORGOTTEN_TICKS);
        assert_eq!(near.takes(node), 0, "it is tried again");
    }
}

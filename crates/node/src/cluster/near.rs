//! Reads of the past where no replica is here that could answer: the nearest one is asked, whoever leads (decision 202).
//!
//! # Problem
//! A node without a replica of a range asks its leader, wherever that is. The past is the same at every replica, and another one may be nearer.
//!
//! # Idea
//! A read at a snapshot that is as old as what leaders close goes to the replica that answers fastest ([`Body::Near`]). It answers by its own word ([`Core::read_here`]), or says who leads.
//! How long a node takes is measured with each read that it answers, and forgotten after a while, so that it is tried again: the way there may have changed. One
//! that said nothing is left alone, then tried again: it may only have stalled. Each time that it says nothing again it is left alone for twice as long, up to
//! a bound. Of those that are not measured, or on trial, one read tries one at a time.
//!
//! # Invariants
//! 1. Whoever is asked answers by what is resolved at *his* replica, not by what anybody believes of it: what this node knows of replicas costs a detour when it is wrong, nothing else.
//! 2. One is asked once for each call, in one hop; if he cannot answer, or says nothing for as long as a call waits before it is sent again, the call goes on as any other.
//! 3. Who answers for a range that he does not lead is not taken for its leader, nor for a sign that it has one: also not when his answer is late, and the leader has been asked since.
//! 4. A replica that was removed and knows it answers nothing. One that does not know it yet has all the same what was closed to it.
//! 5. What is uncertain is the leader's to say: only reads whose limit is their snapshot are asked so.
//!
//! # Caveats
//! A node that was not measured for [`FORGOTTEN_TICKS`] counts as near, and costs one read the way to it, or the wait for it; a leader like any other. Nobody is told where nodes are (there are no
//! localities): what is measured says it. A dead node costs one read the wait for it 5, 15, 35 and 75 seconds after it was missed first, then once a minute.

use super::core::{Core, group_of};
use super::gateway::{Call, Owner};
use super::seam::{Class, NodeId};
use super::shard::Asker;
use clock::{Reading, Timestamp};
use protocol::door::{Answer, Body, Request, VERSION_OF_NEAR_READS};
use protocol::txn::RangeId;
use std::collections::BTreeMap;
use store::{Engine, StoreError};

/// What is younger no other replica has for certain, microseconds: leaders close what lies three seconds behind, and word of it takes its time.
const NEAR_US: u64 = 3_500_000;
/// A replica that could not answer is not asked for as much, or more, for so many ticks: one second.
const LAGS_TICKS: u64 = 10;
/// A node that said nothing is not asked for so many ticks, five seconds; twice as long each time that it says nothing again.
const SILENT_TICKS: u64 = 50;
/// At most for so many: a minute.
const SILENT_TICKS_MAX: u64 = 600;
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
    /// The call that tries a node which was not measured.
    probe: Option<u64>,
    /// Replicas that could not answer at this snapshot, and until when they are left alone with it and with later ones, in ticks.
    lags: BTreeMap<(RangeId, NodeId), (Timestamp, u64)>,
    /// Nodes that said nothing, until they answer.
    silent: BTreeMap<NodeId, Silence>,
}

/// A node said nothing.
#[derive(Clone, Copy, Debug)]
struct Silence {
    /// For so many ticks it is left alone.
    ticks: u64,
    /// Until then.
    until: u64,
}

impl Near {
    /// A node answered a read after so long.
    pub fn took(&mut self, node: NodeId, took_ns: u64, ticks: u64) {
        let known_ns = self.takes.get(&node).map_or(took_ns, |(known_ns, _)| *known_ns);
        let slower_ns = took_ns.saturating_sub(known_ns) / SLOWER_COUNTS;
        self.measure(node, if took_ns < known_ns { took_ns } else { known_ns + slower_ns }, ticks);
    }

    fn measure(&mut self, node: NodeId, takes_ns: u64, ticks: u64) {
        if self.takes.len() >= MEASURED_MAX && !self.takes.contains_key(&node) {
            self.takes.clear();
        }
        self.takes.insert(node, (takes_ns, ticks));
    }

    /// It said nothing. What others have asked it at the same time does not count again.
    fn was_silent(&mut self, node: NodeId, ticks: u64) {
        let left_alone = match self.silent.get(&node) {
            Some(silence) if ticks < silence.until => return,
            Some(silence) => silence.ticks.saturating_mul(2).min(SILENT_TICKS_MAX),
            None => SILENT_TICKS,
        };
        self.silent.insert(node, Silence { ticks: left_alone, until: ticks + left_alone });
    }

    /// It has said something to what it was asked as the nearest.
    pub fn speaks(&mut self, node: NodeId) {
        self.silent.remove(&node);
    }

    /// How long it takes, nanoseconds; nothing where that is not known.
    fn takes(&self, node: NodeId) -> u64 {
        self.takes.get(&node).map_or(0, |(ns, _)| *ns)
    }

    /// Whether it is known how long it takes, and that it answers.
    fn is_known(&self, node: NodeId) -> bool {
        self.takes.contains_key(&node) && !self.silent.contains_key(&node)
    }

    /// It could not answer at a snapshot.
    fn lagged(&mut self, range: RangeId, node: NodeId, snapshot: Timestamp, ticks: u64) {
        if self.lags.len() >= LAGS_MAX {
            self.lags.clear();
        }
        self.lags.insert((range, node), (snapshot, ticks + LAGS_TICKS));
    }

    fn is_left_alone(&self, range: RangeId, node: NodeId, snapshot: Timestamp, ticks: u64) -> bool {
        let lags = self.lags.get(&(range, node)).is_some_and(|(failed, _)| snapshot >= *failed);
        lags || self.silent.get(&node).is_some_and(|silence| ticks < silence.until)
    }

    fn tick(&mut self, ticks: u64) {
        self.takes.retain(|_, (_, seen)| ticks.saturating_sub(*seen) <= FORGOTTEN_TICKS);
        self.lags.retain(|_, (_, until)| ticks < *until);
        self.silent.retain(|_, silence| ticks <= silence.until + FORGOTTEN_TICKS);
    }
}

impl Call {
    /// The snapshot at which it reads what its leader need not be asked for (invariant 5).
    fn past(&self) -> Option<Timestamp> {
        let look = self.request.look()?;
        (look.limit <= look.snapshot).then_some(look.snapshot)
    }
}

impl<E: Engine> Core<E> {
    /// Who is to be asked for a call before its leader is: a replica that is nearer (invariant 2).
    pub fn nearest(&self, now: &Reading, id: u64) -> Option<NodeId> {
        let call = self.gateway.calls.get(&id)?;
        let closed_us = now.interval.earliest().physical_us().saturating_sub(NEAR_US);
        let snapshot = call.past().filter(|snapshot| snapshot.physical_us() <= closed_us)?;
        let may = !call.near_tried && matches!(call.owner, Owner::Operation(_));
        if !may || !self.in_force(VERSION_OF_NEAR_READS) {
            return None;
        }
        let route = self.routes.get(call.range)?;
        let probes = self.probes();
        let able = |node: &NodeId| {
            let reached = *node != self.me() && self.routes.is_member(*node) && !self.gateway.is_mute(*node);
            let known = !probes || self.near.is_known(*node);
            reached && known && !self.near.is_left_alone(call.range, *node, snapshot, self.ticks)
        };
        let all = route.replicas.iter().copied().filter(able);
        let (takes_ns, nearest) = all.map(|node| (self.near.takes(node), node)).min()?;
        let leader_ns = match route.leader.filter(|leader| self.routes.is_member(*leader)) {
            Some(leader) if leader == self.me() => 0,
            Some(leader) if self.near.is_known(leader) => self.near.takes(leader),
            // What is not known is not near: it is tried as any other, by one read.
            _ => u64::MAX,
        };
        (takes_ns < leader_ns).then_some(nearest)
    }

    /// Whether some call tries a node of which it is not known how near it is, and has not heard of it.
    fn probes(&self) -> bool {
        let probe = self.near.probe.and_then(|id| self.gateway.calls.get(&id));
        probe.is_some_and(|call| call.is_open() && call.near.is_some())
    }

    /// Asks a replica that need not lead.
    pub fn ask_nearest(&mut self, now: &Reading, id: u64, to: NodeId) {
        let Some(call) = self.gateway.calls.get_mut(&id) else { return };
        if !self.near.is_known(to) {
            self.near.probe = Some(id);
        }
        (call.near, call.near_asked, call.near_tried, call.sent_to) = (Some(to), Some(to), true, Some(to));
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
        let asked = self.gateway.calls.get_mut(&id).filter(|call| call.near == Some(from));
        let Some(call) = asked else { return false };
        let (range, snapshot) = (call.range, call.past().unwrap_or(Timestamp::MIN));
        call.leave_nearest();
        self.near.lagged(range, from, snapshot, self.ticks);
        if self.routes.get(range).is_some_and(|route| route.leader.is_none()) {
            self.routes.set_leader(range, hint);
        }
        self.counters.near_reads_in_vain.one();
        true
    }

    /// A call goes out again: whoever was asked as the nearest has said nothing, or only that it has to wait.
    pub fn nearest_is_silent(&mut self, id: u64) {
        let Some(call) = self.gateway.calls.get_mut(&id) else { return };
        let Some(silent) = call.near else { return };
        let waits = call.was_told_to_wait();
        call.leave_nearest();
        if !waits {
            self.near.was_silent(silent, self.ticks);
            self.counters.near_reads_in_vain.one();
        }
    }

    /// Nobody waits any more for a call. If it tried a node, and that said nothing, the next one need not wait for it as well.
    pub fn nearest_is_given_up(&mut self, id: u64) {
        let call = self.gateway.calls.get(&id).filter(|call| call.is_open() && !call.was_told_to_wait());
        let Some((silent, ticks)) = call.and_then(|call| Some((call.near?, call.sent_for(self.ticks)))) else { return };
        if ticks > 0 && !self.near.is_known(silent) {
            self.near.was_silent(silent, self.ticks);
        }
    }

    pub fn tick_near(&mut self) {
        self.near.tick(self.ticks);
    }
}

#[cfg(test)]
mod tests {
    use super::{FORGOTTEN_TICKS, LAGS_TICKS, Near, NodeId, RangeId, SILENT_TICKS, SILENT_TICKS_MAX, Timestamp};

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

    #[test]
    fn who_says_nothing_is_left_alone_for_longer_and_longer() {
        let (mut near, node) = (Near::default(), NodeId(7));
        let alone = |near: &Near, ticks| near.is_left_alone(RangeId(1), node, Timestamp::MIN, ticks);
        near.took(node, 8_000, 1);
        let mut ticks = 2;
        for left_alone in [50, 100, 200, 400, 600, 600] {
            assert!(!alone(&near, ticks), "it is tried again");
            near.was_silent(node, ticks);
            // Of several that have asked it the last one hears nothing a little later.
            near.was_silent(node, ticks + 1);
            near.tick(ticks + left_alone - 1);
            assert!(alone(&near, ticks + left_alone - 1));
            assert!(!near.is_known(node), "one read at a time");
            ticks += left_alone;
        }
        near.took(node, 8_000, ticks);
        assert!(!near.is_known(node), "what it says of other things is no answer to this");
        near.speaks(node);
        assert!(near.is_known(node) && !alone(&near, ticks));
        assert_eq!(near.takes(node), 8_000, "it is as near as it was");
        near.was_silent(node, ticks);
        assert!(!alone(&near, ticks + SILENT_TICKS), "what was before is forgotten");
        near.tick(ticks + SILENT_TICKS + FORGOTTEN_TICKS + 1);
        assert!(near.silent.is_empty() && SILENT_TICKS_MAX <= FORGOTTEN_TICKS);
    }

    #[test]
    fn who_lags_is_left_alone_with_what_it_could_not_answer() {
        let (mut near, node, range) = (Near::default(), NodeId(7), RangeId(1));
        let at = |us| Timestamp::new(us, 0);
        near.lagged(range, node, at(100), 1);
        let asked = |near: &Near, us| !near.is_left_alone(range, node, at(us), 1);
        assert!(asked(&near, 99) && !asked(&near, 100) && !asked(&near, 101));
        assert!(!near.is_left_alone(RangeId(2), node, at(100), 1));
        near.tick(1 + LAGS_TICKS);
        assert!(asked(&near, 101));
    }
}

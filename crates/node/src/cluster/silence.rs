//! Ranges that give no sign of life here: how long a call to one is patient, and what its error says.
//!
//! # Problem
//! Who gets no answer does not know why. A leader may be on its way, which takes a few seconds; or this node may be cut off for hours. If every
//! statement waited for as long as an election may take at worst, a node that is cut off would need ten seconds for each.
//!
//! # Idea
//! What one call learned the next one need not learn again. A range is *silent* when its replica here knows of no leader any more; or, where there
//! is no replica, from when a call to it was last in vain. With a replica it counts as silent since a majority of them was heard last: a follower
//! learns that its leader is lost only when its promise is past, and that those seconds were silent, too. Whatever it answers ends that. A call to a range that has been silent for longer than
//! a call waits at all waits no more than it takes to ask around ([`PROBE_TICKS`]), and not at all where none of the others that hold
//! the range is heard: then nobody can relay it, either.
//!
//! Who can do without an answer says so ([`Call::hasty`]): he waits for [`HASTY_TICKS`], also where a leader is believed in who may just have died, and the
//! next ones do not wait until somebody has been asked again.
//!
//! # Invariants
//! 1. A range that answers, by whatever way, is not silent: of one that is reached through others no call is cut short.
//! 2. Only what was not sent is refused here. What became of a commit that was is the coordinator's to find out (`commit`).
//! 3. A call to a range without a majority ends [`UNAVAILABLE_TICKS`] and one after a majority was heard last, or [`PROBE_TICKS`] after it began, whichever is later,
//!    whether the node led or followed. Without a replica here the first call ends so long after it began: what others hear is not known here.
//! 4. What a hasty call did not wait for says nothing of the range: no other call is cut short by it.

use super::core::{Core, group_of};
use super::gateway::{Call, UNAVAILABLE_TICKS};
use super::member::Member;
use super::seam::{NodeId, TICK_NS};
use crate::TxnError;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::log::raft;
use protocol::txn::RangeId;
use std::collections::BTreeMap;
use std::time::Duration;
use store::Engine;

/// A call to a range that has long been silent is sent to its replicas for so many ticks: 1 second.
pub const PROBE_TICKS: u64 = 10;
/// A call that can do without an answer waits so long for one: 0.5 seconds. After one that was in vain the others wait for as long only to be asked again.
pub const HASTY_TICKS: u64 = 5;
/// Peers say something every half second. One that has said nothing for so many ticks is not heard.
const HEARD_TICKS: u64 = 20;
/// A node is not ready when its range of that key has been silent for so many ticks: longer than most changes of leaders.
const READY_TICKS: u64 = 40;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Since when, in ticks.
    since: BTreeMap<RangeId, u64>,
    /// When each peer was last heard.
    heard: BTreeMap<NodeId, u64>,
    /// When a hasty call to a range was last in vain.
    hasty: BTreeMap<RangeId, u64>,
}

impl<E: Engine> Core<E> {
    /// A peer has said something.
    pub fn heard_from(&mut self, node: NodeId) {
        self.silence.heard.insert(node, self.ticks);
    }

    /// The replica here knows who leads its range, or does not.
    pub fn leader_known(&mut self, range: RangeId, known: bool) {
        let since = self.majority_heard(range);
        match known {
            true => {
                self.silence.since.remove(&range);
                self.silence.hasty.remove(&range);
            }
            false => drop(self.silence.since.entry(range).or_insert(since)),
        }
    }

    /// When a peer was heard last, in ticks; one that was never heard: when this node was opened.
    fn last_heard(&self, node: NodeId) -> u64 {
        self.silence.heard.get(&node).copied().unwrap_or(0)
    }

    /// Somebody asks for a range that is not led here: if its leader is lost, its election comes first.
    pub fn is_wanted(&mut self, now: &Reading, range: RangeId) {
        if self.shards.contains_key(&range) {
            self.log(now, raft::Input::Wanted { group: group_of(range) });
        }
    }

    /// There is no replica of a range here any more.
    pub fn no_replica(&mut self, range: RangeId) {
        self.silence.since.remove(&range);
        self.silence.hasty.remove(&range);
    }

    /// A range has answered.
    pub fn spoke(&mut self, range: RangeId) {
        self.silence.hasty.remove(&range);
        let (ticks, here) = (self.ticks, self.shards.contains_key(&range));
        match self.silence.since.get_mut(&range) {
            Some(since) if here => *since = ticks,
            Some(_) => drop(self.silence.since.remove(&range)),
            None => {}
        }
    }

    /// A range has given a call no sign of life.
    pub fn in_vain(&mut self, range: RangeId, hasty: bool) {
        if hasty {
            let ticks = self.ticks;
            // From when it was asked last: who is refused meanwhile does not ask.
            let last = self.silence.hasty.entry(range).or_insert(ticks);
            if ticks.saturating_sub(*last) > HASTY_TICKS {
                *last = ticks;
            }
            return;
        }
        if !self.shards.contains_key(&range) {
            let since = self.ticks.saturating_sub(UNAVAILABLE_TICKS + 1);
            self.silence.since.entry(range).or_insert(since);
        }
    }

    /// Through whom to reach a node that may not be reached; `None`: it may, or nobody is known who could.
    pub fn third(&self, to: NodeId) -> Option<NodeId> {
        if !self.gateway.is_reached_by_third(to) && self.hears(to) {
            return None;
        }
        let able =
            |node: &NodeId| *node != self.me() && *node != to && self.hears(*node) && !self.gateway.is_mute(*node);
        self.routes.nodes().find(able)
    }

    pub fn hears(&self, node: NodeId) -> bool {
        node == self.me() || self.ticks.saturating_sub(self.last_heard(node)) <= HEARD_TICKS
    }

    /// Whether a majority of those that have a replica is heard.
    pub fn hears_majority(&self, range: RangeId) -> bool {
        self.ticks.saturating_sub(self.majority_heard(range)) <= HEARD_TICKS
    }

    /// Whether other nodes have replicas of a range, too.
    pub fn others_hold(&self, range: RangeId) -> bool {
        self.routes.get(range).is_some_and(|route| route.replicas.iter().any(|node| *node != self.me()))
    }

    /// When a majority of those that have a replica was heard last, in ticks; this node hears itself.
    ///
    /// It is asked where the replica here has no leader (any more). Stores that share a group ask each other for promises each half second, followers too, so
    /// those that live were heard within that, wherever they follow. One that was never heard counts as heard when this node was opened: the earliest that it can have been, so nothing is
    /// silent for longer than this node lives. (A replica that has just been made here has a leader, who made it.)
    fn majority_heard(&self, range: RangeId) -> u64 {
        let Some(route) = self.routes.get(range).filter(|route| !route.replicas.is_empty()) else { return self.ticks };
        let last = |node: &NodeId| match *node == self.me() {
            true => self.ticks,
            false => self.last_heard(*node),
        };
        let mut heard: Vec<u64> = route.replicas.iter().map(last).collect();
        heard.sort_unstable_by(|a, b| b.cmp(a));
        heard[heard.len() / 2]
    }

    /// Whether others hold a range that has a replica here, and none of them is heard. (Without one they have no reason to say anything: whoever concluded from that
    /// that nothing can be asked would never hear of them again.)
    fn is_cut_off_from(&self, range: RangeId) -> bool {
        if !self.shards.contains_key(&range) {
            return false;
        }
        let replicas = self.routes.get(range).map(|route| route.replicas.as_slice()).unwrap_or_default();
        let mut others = replicas.iter().filter(|node| **node != self.me()).peekable();
        others.peek().is_some() && !others.any(|node| self.hears(*node))
    }

    /// Whether the replica here knows who leads.
    pub fn has_leader(&self, range: RangeId) -> bool {
        self.replicas.status(group_of(range)).is_some_and(|status| status.leader.is_some())
    }

    fn silent_ticks(&self, range: RangeId) -> Option<u64> {
        let since = self.silence.since.get(&range)?;
        (!self.has_leader(range)).then(|| self.ticks.saturating_sub(*since))
    }

    /// For how many ticks a call waits for a sign of life of a range. `sent`: it has been asked already, and what others learned before does not end it.
    fn patience(&self, range: RangeId, hasty: bool, sent: bool) -> u64 {
        let silent = self.silent_ticks(range);
        match silent {
            Some(silent) if (hasty || silent > UNAVAILABLE_TICKS) && self.is_cut_off_from(range) => 0,
            _ if hasty => {
                let last = self.silence.hasty.get(&range).map(|last| self.ticks.saturating_sub(*last));
                if !sent && last.is_some_and(|ticks| ticks <= HASTY_TICKS) { 0 } else { HASTY_TICKS }
            }
            Some(silent) if silent > UNAVAILABLE_TICKS => PROBE_TICKS,
            _ => UNAVAILABLE_TICKS + 1,
        }
    }

    /// Whether what has waited for so many ticks for a range has waited for long enough, as its majority is lost.
    pub fn has_no_majority(&self, range: RangeId, waited_ticks: u64) -> bool {
        waited_ticks >= PROBE_TICKS && self.silent_ticks(range).is_some_and(|silent| silent > UNAVAILABLE_TICKS)
    }

    /// Whether a call has waited for long enough.
    pub fn is_in_vain(&self, call: &Call) -> bool {
        self.ticks.saturating_sub(call.alive_tick) >= self.patience(call.range, call.hasty, !call.is_new())
    }

    /// What is certain to have no answer; asked before anything is sent.
    pub fn out_of_reach(&self, range: RangeId, hasty: bool) -> bool {
        self.patience(range, hasty, false) == 0
    }

    /// The error of a call that was in vain.
    pub fn unavailable(&self, range: RangeId, key: Option<Bytes>) -> TxnError {
        let waited_ticks = self.silent_ticks(range).unwrap_or(0).max(UNAVAILABLE_TICKS);
        TxnError::Unavailable { range, waited_ticks, around: self.around(range), key }
    }

    /// Who holds a range, and who of them is not heard.
    fn around(&self, range: RangeId) -> String {
        let replicas = self.routes.get(range).map(|route| route.replicas.clone()).unwrap_or_default();
        let list = |nodes: &[NodeId]| nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ");
        let unheard: Vec<NodeId> = replicas.iter().copied().filter(|node| !self.hears(*node)).collect();
        let who = match unheard.is_empty() {
            true => "all of which are heard".to_owned(),
            false => format!("of which {} cannot be heard", list(&unheard)),
        };
        format!("node {} asks; its replicas are on {}, {who}", self.me(), list(&replicas))
    }

    /// The snapshot of one who takes what is there ([`crate::Consistency::None`]): a node that hears nobody gives what its silent ranges have resolved,
    /// which is all that it can.
    pub fn what_is_here(&self, now: Timestamp) -> Timestamp {
        if self.silence.since.is_empty() || !self.hears_nobody() {
            return now;
        }
        self.silence.since.keys().filter_map(|range| self.resolved(*range)).fold(now, Timestamp::min)
    }

    /// Whether there are others, and none of them is heard.
    pub fn hears_nobody(&self) -> bool {
        let mut others = self.routes.nodes().filter(|node| *node != self.me()).peekable();
        others.peek().is_some() && !others.any(|node| self.hears(node))
    }

    fn not_ready(&self, key: &[u8]) -> Option<String> {
        let range = self.routes.of_key(key);
        let silent = match self.silent_ticks(range) {
            Some(ticks) => ticks > READY_TICKS || self.is_cut_off_from(range),
            // Without a replica nothing is known of it until somebody asks: it needs a majority of those that have one.
            None if !self.shards.contains_key(&range) => {
                let replicas = self.routes.get(range).map(|route| route.replicas.as_slice()).unwrap_or_default();
                let heard = replicas.iter().filter(|node| self.hears(**node)).count();
                heard * 2 <= replicas.len()
            }
            None => false,
        };
        silent.then(|| format!("range {range} has no leader that can be heard: {}", self.around(range)))
    }
}

impl<E: Engine> Member<E> {
    /// Why what needs this key cannot be served here for now, in words; `None`: as far as is known it can.
    pub fn not_ready(&self, key: &[u8]) -> Option<String> {
        self.look().not_ready(key)
    }

    /// For how long nothing was heard from a node that ought to say something each half second, because it has replicas of ranges that are here, too;
    /// `None`: it is heard, or need not be. What its links say is another matter: they stand while its process sleeps.
    pub fn unheard_for(&self, node: NodeId) -> Option<Duration> {
        let core = self.look();
        let held = |range: &RangeId| core.routes.get(*range).is_some_and(|route| route.replicas.contains(&node));
        let silent = !core.hears(node) && core.shards.keys().any(held);
        let ticks = core.ticks.saturating_sub(core.last_heard(node));
        silent.then(|| Duration::from_nanos(ticks.saturating_mul(TICK_NS)))
    }

    /// Ranges of which this node knows no leader.
    pub fn silent_ranges(&self) -> usize {
        let core = self.look();
        let ranges = core.silence.since.keys();
        ranges.filter(|range| core.shards.contains_key(range) && !core.has_leader(**range)).count()
    }
}

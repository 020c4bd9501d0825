//! Elections in order: which of a store's groups look for votes, and when.
//!
//! # Problem
//! When a store is lost, a third of its neighbours' groups need a leader, thousands at once. If each began when its own patience ends, the two that are left would begin in the same
//! groups at the same moment and vote for themselves, again and again; and on a busy machine the votes of thousands of elections wait behind each other for longer than the patience of any of them.
//!
//! # Idea
//! A group whose patience ends gets in line. A few elections are under way at a time ([`ELECTIONS_MAX`]); each that ends makes room for the next at once, not at the next tick. So a lost store's groups
//! have leaders in a time that is proportional to their number, and each of them while its votes are still fresh.
//!
//! ```text
//!   patience ends ──┐                    ┌─► under way ──► a leader is known: out of line
//!   a store's promise ──► waits ──► in line     │
//!   is past         ┘   (its turn)  (ranked)  in vain: waits again, for longer
//! ```
//!
//! The line is ranked: groups that somebody asks for, then those that were awake, then sleepers; of each kind first those in which it is this store's turn. Whose turn it is follows from the group's number and
//! the stores that live: each of two stores begins with its own half, from the front, and goes on with the other's from the back.
//!
//! # Invariants
//! 1. Whoever is in line, or under way, does not tick: the library never begins an election by itself.
//! 2. Who waits for its turn gives its vote: it follows nobody, and knows no leader.
//! 3. Who has no trusted reading waits in line, and gives its vote: as a leader it would have no lease.
//! 4. Nobody else waits for ever: a turn that is another's is waited for [`TURN_TICKS`], an election in vain ends, and who cannot have a majority now stands behind all who can.
//!
//! # Caveats
//! Whose turn it is is a guess of each store for itself. If two guess differently, votes are split, and both wait by chance before the next time.

use super::ids::{GroupId, StoreId};
use super::replica::Replica;
use super::replicas::Replicas;
use super::store::Store;
use clock::Reading;
use raft::StateRole;
use std::collections::{BTreeMap, BTreeSet};

/// Elections of one store that are under way at a time.
pub const ELECTIONS_MAX: usize = 256;
/// Another store's turn is waited for so many ticks.
const TURN_TICKS: u64 = 4;
/// An election in vain doubles the wait before the next one so often.
const DOUBLINGS_MAX: u32 = 3;

/// Why a group is in a hurry: the less, the sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Somebody asks for it.
    Wanted,
    /// It was awake when its leader was lost.
    Awake,
    /// It slept.
    Asleep,
}

/// What comes first in the line: who can have a majority, who is in a hurry, whose turn it is here; and a number.
type Rank = (bool, Urgency, usize, u64);

/// The line.
#[derive(Debug, Default)]
pub(crate) struct Elections {
    line: BTreeSet<(Rank, GroupId)>,
    /// Those that wait, until this tick.
    waiting: BTreeSet<(u64, GroupId)>,
    /// Where each of both stands: from which tick on, and its rank.
    places: BTreeMap<GroupId, (u64, Rank)>,
    /// Those under way, and since when, in ticks.
    running: BTreeMap<GroupId, u64>,
    ticks: u64,
}

impl Elections {
    /// A group gets in line, from a tick on.
    fn queue(&mut self, group: GroupId, from: u64, rank: Rank) {
        self.forget(group);
        self.places.insert(group, (from, rank));
        match from > self.ticks {
            true => self.waiting.insert((from, group)),
            false => self.line.insert((rank, group)),
        };
    }

    /// It is not in line, nor under way.
    pub fn forget(&mut self, group: GroupId) {
        if let Some((from, rank)) = self.places.remove(&group) {
            self.waiting.remove(&(from, group));
            self.line.remove(&(rank, group));
        }
        self.running.remove(&group);
    }

    /// Its election is not under way any more.
    pub fn ended(&mut self, group: GroupId) {
        self.running.remove(&group);
    }

    pub fn tick(&mut self) {
        self.ticks += 1;
        while let Some((_, group)) = self.waiting.first().copied().filter(|(from, _)| *from <= self.ticks) {
            self.waiting.pop_first();
            if let Some((_, rank)) = self.places.get(&group) {
                self.line.insert((*rank, group));
            }
        }
    }

    /// Ticks of this life.
    pub fn now(&self) -> u64 {
        self.ticks
    }

    fn has_room(&self) -> bool {
        !self.line.is_empty() && self.running.len() < ELECTIONS_MAX
    }

    fn next(&mut self) -> Option<GroupId> {
        let (_, group) = self.line.pop_first()?;
        self.places.remove(&group);
        Some(group)
    }
}

impl Replica {
    /// Whether it waits for its election, or for its votes; and ends one that was in vain.
    pub(super) fn is_in_line(&mut self, store: &mut Store) -> bool {
        let Some(since) = store.elections.running.get(&self.group).copied() else {
            return store.elections.places.contains_key(&self.group);
        };
        let most = 2 * store.options.election_ticks;
        let patience = match self.raw.raft.state {
            StateRole::PreCandidate => (most / 4) << self.tries.min(DOUBLINGS_MAX),
            _ => most,
        };
        if self.is_hopeless(store) || store.elections.ticks - since >= patience.min(most) as u64 {
            self.try_again(store);
        }
        true
    }

    /// An election was in vain.
    fn try_again(&mut self, store: &mut Store) {
        self.tries += 1;
        let later = 1 + store.chance.below(2 << self.tries.min(DOUBLINGS_MAX)) as u64;
        self.get_in_line(store, later);
    }

    /// Those that live and have not refused are no majority: the others will not answer.
    fn is_hopeless(&self, store: &Store) -> bool {
        let (_, refused, _) = self.raw.raft.prs().tally_votes();
        let conf = &self.tail().conf;
        let live = |replica: &&u64| {
            let on = conf.stores.get(*replica);
            on.is_some_and(|on| *on == store.id() || store.elections_heard.contains(on))
        };
        let live = conf.state.voters.iter().filter(live).count();
        refused > 0 && !conf.is_joint() && live.saturating_sub(refused) * 2 <= conf.state.voters.len()
    }

    /// It looks for votes as soon as there is room for its election, and it is its turn.
    pub(super) fn get_in_line(&mut self, store: &mut Store, later: u64) {
        self.wake(store);
        // It knows no leader: it gives its vote to whoever comes first.
        let term = self.term();
        self.raw.raft.become_follower(term, raft::INVALID_ID);
        self.after(store);
        let (own, last) = (store.id(), self.support.last().map(|(leader, _)| leader));
        let conf = &self.tail().conf;
        let running = |on: &StoreId| *on == own || store.elections_heard.contains(on);
        let voters: Vec<StoreId> =
            conf.stores.iter().filter(|(replica, _)| conf.is_voter(**replica)).map(|(_, on)| *on).collect();
        let heard = voters.iter().filter(|on| running(on)).count();
        let able = heard * 2 > voters.len();
        let lives = |on: &&StoreId| **on == own || (!able || running(on)) && Some(**on) != last;
        let candidates: Vec<StoreId> = voters.iter().filter(lives).copied().collect();
        let first = (self.group.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % candidates.len().max(1);
        let at = candidates.iter().position(|on| *on == own).unwrap_or(0);
        let turn = (at + candidates.len() - first) % candidates.len().max(1);
        let order = if turn == 0 { self.group.0 } else { !self.group.0 };
        let from = store.elections.ticks + later + turn as u64 * TURN_TICKS;
        store.elections.queue(self.group, from, (!able, self.urgency, turn, order));
    }

    /// The promise to the leader's store is past: unless the leader is heard all the same, there is to be another.
    pub(super) fn lose_leader(&mut self, store: &mut Store) {
        // Heartbeats come twice as often. It may have been woken just now, by whoever looks for votes.
        let silent_ticks = store.elections.ticks - self.heard;
        let heard = !self.asleep && silent_ticks < 2 * store.options.heartbeat_ticks as u64;
        let may = self.may_campaign() && self.raw.raft.promotable() && !self.installing;
        if !may || store.sabotage.elections_at_once() {
            self.wake(store);
        } else if !heard {
            if self.asleep && self.urgency == Urgency::Awake {
                self.urgency = Urgency::Asleep;
            }
            // The others' promises to it are past a tick later, too.
            self.get_in_line(store, 1);
        }
    }

    /// Somebody asks for the group, and is not heard: its leader may be lost, and not known to be yet.
    pub(super) fn is_wanted(&mut self, store: &mut Store) {
        if self.lead.is_some() {
            return;
        }
        self.urgency = Urgency::Wanted;
        if let Some((from, (unable, _, turn, order))) = store.elections.places.get(&self.group).copied() {
            store.elections.queue(self.group, from, (unable, Urgency::Wanted, turn, order));
        }
    }

    /// What the library's last step says of its election.
    pub(super) fn look_at_election(&mut self, store: &mut Store, voted: bool, old_leader: u64) {
        let raft = &self.raw.raft;
        let elects = matches!(raft.state, StateRole::PreCandidate | StateRole::Candidate);
        if raft.leader_id != raft::INVALID_ID {
            store.elections.forget(self.group);
            if old_leader != raft.leader_id {
                self.was_idle = self.urgency == Urgency::Asleep;
                (self.tries, self.urgency) = (0, Urgency::Awake);
            }
        } else if voted && raft.vote != self.id.0 {
            store.elections.forget(self.group);
        } else if !elects {
            store.elections.ended(self.group);
        }
    }
}

impl Replicas {
    /// Elections begin, as many as there is room for.
    pub(super) fn hold_elections(&mut self, now: &Reading) {
        let (store, trusted) = (&mut self.store, now.trusted());
        // Without a clock it would have no lease. Others may have one.
        let Some(now) = trusted else { return };
        while store.elections.has_room() {
            let Some(group) = store.elections.next() else { return };
            let Some(replica) = self.groups.get_mut(&group) else { continue };
            let own = store.id();
            let may = replica.may_campaign() && !replica.installing && replica.lead.is_none();
            if !may || replica.support.forbids(own, own, &store.promises, replica.tail(), now) {
                continue;
            }
            store.elections.running.insert(group, store.elections.ticks);
            // Refused where a change of the members is not applied yet: its patience begins anew.
            let _ = replica.raw.campaign();
            replica.after(store);
            replica.flush(store);
        }
    }
}

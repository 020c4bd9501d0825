//! Idle groups sleep: no ticks, no messages.
//!
//! # Problem
//! 10,000 groups that heartbeat five times a second are 50,000 messages for nothing.
//!
//! # Idea
//! Where all members have everything, and have accepted the leader under the promises that it holds, the leader says so in a last
//! heartbeat and stops; the followers that agree stop, too. What keeps a follower from voting meanwhile is the promise between the stores,
//! which is extended once for all groups. When that ends, the groups whose leader was there wake up, and elect.
//!
//! # Invariants
//! 1. A group that sleeps costs nothing per tick: ticks go to the groups that are awake only.
//! 2. Everything that is said to a sleeper wakes it, but for late answers that say that nothing is new.
//! 3. A follower that is alive wakes when its store's promise to the leader's store is past. A leader wakes when a promise to it begins
//!    again, or under another epoch.
//!
//! # Caveats
//! A follower that misses the last heartbeat asks its leader whether it leads, once it would look for votes and its store's promise forbids it, and
//! again until it is told to sleep: a leader that fell, while its store lives on, would otherwise be waited for without end; and who slept untold
//! would take no part in the words (`closed`).

use super::envelope::Poke;
use super::farewell::ASKED;
use super::ids::StoreId;
use super::letter::Letter;
use super::replica::Replica;
use super::store::Store;
use clock::{Interval, Reading};
use raft::eraftpb::{Message, MessageType};
use std::collections::BTreeSet;

impl Replica {
    pub fn tick(&mut self, store: &mut Store, now: &Reading) {
        if self.installing {
            return;
        }
        if self.lead.is_some() {
            self.tell_commits_again();
            self.raw.tick();
            self.after(store);
            self.tick_leader(store, now);
            self.sleep_if_quiet(store, now.interval);
        } else {
            self.tick_follower(store, now.interval);
        }
    }

    fn tick_follower(&mut self, store: &mut Store, now: Interval) {
        if self.is_in_line(store) {
            return;
        }
        let raft = &self.raw.raft;
        let due = raft.promotable() && raft.election_elapsed + 1 >= raft.randomized_election_timeout();
        if due && self.support.forbids(store.id(), store.id(), &store.promises, self.raw.store(), now) {
            // Not all should ask at once.
            let later = store.chance.below(store.options.election_ticks / 2 + 1);
            self.raw.raft.election_elapsed = self.raw.raft.randomized_election_timeout().saturating_sub(1 + later);
            self.ask_whether_it_leads(store);
            return;
        }
        if due && !self.may_campaign() {
            return;
        }
        if due && !store.sabotage.elections_at_once() {
            return self.get_in_line(store, 0);
        }
        self.raw.tick();
        self.after(store);
        let raft = &self.raw.raft;
        if (self.tail().is_blank() || self.has_left()) && raft.election_elapsed >= raft.randomized_election_timeout() {
            // It does not look for votes, so nobody else forgets a leader that is silent: while the library knows of one it gives no vote, and the time for that
            // may never come between two questions.
            let term = self.term();
            self.raw.raft.become_follower(term, raft::INVALID_ID);
            self.after(store);
            self.ask_whether_removed(store);
        }
    }

    /// A blank replica knows no members, and those that a removed one knows may be gone: whoever may be one is asked.
    fn ask_whether_removed(&self, store: &mut Store) {
        let own = store.id();
        let mut whom: BTreeSet<StoreId> = store.neighbours().into_iter().collect();
        whom.extend(self.routes.values().copied().filter(|on| *on != own));
        for on in whom {
            let poke = Poke { group: self.group, replica: self.id, term: self.term().max(ASKED) };
            store.post.now(on).pokes.push(poke);
        }
    }

    fn has_all(&self) -> bool {
        let last = self.last_index();
        last == self.committed() && last == self.tail().applied
    }

    fn rest(&mut self, store: &mut Store) {
        self.asleep = true;
        // Half a kilobyte for each member.
        self.raw.raft.maybe_free_inflight_buffers();
        store.awake.remove(&self.group);
    }

    fn sleep_if_quiet(&mut self, store: &mut Store, now: Interval) {
        self.quiet_ticks += 1;
        let Some(lead) = &self.lead else { return };
        let conf = &self.tail().conf;
        let quiet = self.quiet_ticks >= store.options.quiet_ticks
            && lead.handover.is_none()
            && self.lease(store).is_some_and(|(_, end)| end > now.earliest())
            && !conf.is_joint()
            && self.conf_known
            && self.has_all();
        let last = self.last_index();
        let agrees = |(replica, on): (&u64, _)| {
            let held = store.promises.held.get(on);
            let dead = held.is_none_or(|held| held.until < now.earliest());
            let same_epoch = held.is_some_and(|held| lead.accepted.get(replica) == Some(&held.epoch));
            let has_all = self.raw.raft.prs().get(*replica).is_some_and(|progress| progress.matched == last);
            let heard = self.raw.raft.prs().get(*replica).is_some_and(|progress| progress.recent_active);
            has_all && same_epoch || dead && !heard && *replica != self.id.0
        };
        if !quiet || !conf.stores.iter().all(agrees) {
            return;
        }
        let others: Vec<_> = conf.stores.iter().filter(|(r, _)| **r != self.id.0).map(|(r, s)| (*r, *s)).collect();
        for (replica, on) in others {
            self.say_good_night(store, replica, on);
        }
        self.rest(store);
    }

    /// The last heartbeat: everything is there up to its place.
    fn say_good_night(&self, store: &mut Store, replica: u64, on: StoreId) {
        let Some(lead) = &self.lead else { return };
        let last = self.last_index();
        let matched = self.raw.raft.prs().get(replica).map_or(0, |progress| progress.matched);
        let mut letter = self.plain(MessageType::MsgHeartbeat, replica);
        letter.message.commit = matched.min(last);
        letter.accepted = lead.accepted.get(&replica).copied().unwrap_or(0);
        (letter.closed, letter.closed_index, letter.sleep) = (lead.closed.0, last, true);
        letter.word = store.words.number;
        store.post.now(on).letters.push(letter);
    }

    fn plain(&self, kind: MessageType, to: u64) -> Letter {
        let mut message = Message::default();
        message.set_msg_type(kind);
        (message.from, message.to, message.term) = (self.id.0, to, self.term());
        Letter::new(self.group, message)
    }

    /// The leader says that the group sleeps, with everything up to `index`.
    pub fn fall_asleep_after_leader(&mut self, store: &mut Store, leader: StoreId, index: u64, word: u64) {
        if self.last_index() != index || !self.has_all() {
            return;
        }
        if self.slept_after.is_none() && word < store.words.heard(leader) {
            // Late: it would sleep and take no part in the words. Awake, it asks, and is told again.
            self.wake(store);
            return;
        }
        self.slept_after.get_or_insert((leader, word));
        self.rest(store);
    }

    /// A follower that may not look for votes asks whether its leader leads: if that sleeps, it says good night again.
    fn ask_whether_it_leads(&self, store: &mut Store) {
        let Some((leader, term)) = self.support.last() else { return };
        let poke = Poke { group: self.group, replica: self.id, term };
        store.post.now(leader).pokes.push(poke);
    }

    /// A follower asks. Not to lead is an answer; a leader that sleeps need not wake for it.
    pub fn poked(&self, store: &mut Store, from: StoreId, poke: Poke) {
        if self.tail().conf.has_left(poke.replica.0) {
            self.see_off(store, from, poke.replica.0, poke.term);
        } else if self.lead.as_ref().is_none_or(|lead| lead.term != poke.term) {
            store.post.now(from).ceased.push((self.group, poke.term));
        } else if self.asleep {
            // It started anew, or missed the first one.
            self.say_good_night(store, poke.replica.0, from);
        }
    }

    /// The leader that was accepted leads no more.
    pub fn leader_ceased(&mut self, store: &mut Store, from: StoreId, term: u64) {
        self.support.ceased(from, term, &store.promises);
        self.wake(store);
    }

    /// Late answers, and the leader's good night again.
    pub fn is_idle_talk(&self, letter: &Letter) -> bool {
        let m = &letter.message;
        self.asleep
            && m.term == self.term()
            && match m.msg_type {
                MessageType::MsgHeartbeatResponse => true,
                MessageType::MsgAppendResponse => !m.reject && m.index == self.last_index(),
                MessageType::MsgHeartbeat => letter.sleep && letter.closed_index == self.last_index(),
                _ => false,
            }
    }
}

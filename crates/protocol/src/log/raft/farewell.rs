//! A replica that was removed goes when the others can do without it.
//!
//! # Problem
//! The entry that leaves a joint configuration is in the logs of a majority of the old members and of the new ones when a leader counts it as committed. The leader applies it, and
//! where that is the one that was removed, or tells one that was, the others may not have heard yet that it is committed. To them the configuration is joint: an
//! election needs a majority of the old members. If the removed one is gone by then, and another old member is dead, they never get one, though all of the
//! new members live.
//!
//! # Idea
//! Who was removed stays, steps down, and votes like everybody else, until it is told that a majority of the members that are left know of its removal *durably*. Its successor, who
//! leads under the new configuration, hears that from them: their answers say which change of the members their disks have ([`Replica::says_its_conf`]).
//!
//! # Invariants
//! 1. A replica goes only when a majority of the members after its removal have that change in their logs as committed. So, of those, any majority has one that
//!    needs none of the removed ones for its election; and who is elected tells the rest.
//! 2. "Known" is what a disk has: the configuration is a record when it is applied, and an answer leaves after the last record before it.
//! 3. Whoever leads finds that out anew: it is nobody's memory. A change of the members is shown as unfinished until then, so that an operator who waits for its end may switch off a
//!    machine after it.
//! 4. A removed replica asks every so often. Who leads answers; the others ask the leader, and remember its word.
//!
//! # Caveats
//! A removed replica that no neighbour of its store can tell anything stays, without a vote that anybody asks for: a tick now and then.

use super::envelope::Poke;
use super::ids::{ReplicaId, StoreId};
use super::options::MEMBERS_MAX;
use super::replica::Replica;
use super::store::Store;

/// The term of a poke that is passed on to the leader: it is passed on once. What is answered to it says nothing of any leader.
const PASSED_ON: u64 = 0;
/// The least term of one that is not.
pub(crate) const ASKED: u64 = 1;

impl Replica {
    /// Whether the replica here was removed, and knows it.
    pub fn has_left(&self) -> bool {
        self.tail().conf.has_left(self.id.0)
    }

    /// Of a member that has left: whether the others can do without it, as far as is known here.
    pub fn may_go(&self, replica: u64) -> bool {
        self.conf_known || self.released.contains(&replica)
    }

    /// Answers where the sender has left the group: it is told that it may go, or its question is passed on to the leader.
    pub fn see_off(&self, store: &mut Store, from: StoreId, replica: u64, term: u64) {
        if self.may_go(replica) {
            store.post.now(from).gone.push((self.group, ReplicaId(replica)));
            return;
        }
        let leader = self.leader().filter(|leader| *leader != store.id() && *leader != from);
        if let (None, Some(leader), true) = (&self.lead, leader, term != PASSED_ON) {
            let poke = Poke { group: self.group, replica: ReplicaId(replica), term: PASSED_ON };
            store.post.now(leader).pokes.push(poke);
        }
    }

    /// The leader's word on another one.
    pub fn is_released(&mut self, replica: u64) {
        if self.tail().conf.has_left(replica) {
            self.released.insert(replica);
            if self.released.len() > MEMBERS_MAX {
                self.released.pop_first();
            }
        }
    }

    /// What answers to the leader say of the configuration here: the place of the last change, which is a record.
    pub fn says_its_conf(&self) -> u64 {
        self.tail().conf.index
    }

    /// The leader looks whether a majority knows the last change of the members, and tells those that it removed.
    pub fn look_who_knows(&mut self, store: &mut Store) {
        let conf = &self.tail().conf;
        if self.lead.is_none() || conf.is_joint() || self.conf_known && self.leaving.is_empty() {
            return;
        }
        let prs = self.raw.raft.prs();
        let knows = |voter: &&u64| match **voter == self.id.0 {
            true => store.ledger.is_durable(self.conf_record),
            false => prs.get(**voter).is_some_and(|progress| progress.committed_index >= conf.index),
        };
        if conf.state.voters.iter().filter(knows).count() * 2 <= conf.state.voters.len() {
            return;
        }
        self.conf_known = true;
        for member in std::mem::take(&mut self.leaving) {
            store.post.now(member.store).gone.push((self.group, member.replica));
        }
    }
}

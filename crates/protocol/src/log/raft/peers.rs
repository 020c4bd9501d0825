//! What other stores say: requests and promises, acceptances, letters, parts of snapshots.
//!
//! # Who has no replica yet
//! A member may have missed how its group was founded: it was away, and got what founded it in a snapshot of another group (a split). It is a voter all
//! the same, and the others may need its vote. So a leader's letter, and one that asks for a vote, make a *blank* replica where there is none: it has
//! no log and no members, votes, and never looks for votes itself. Its leader sends it a snapshot; or the founding comes after all ([`Input::Create`](super::Input::Create)).
//!
//! Invariants:
//! 1. A blank replica has truly nothing: its number was never used on this store, or it is below the number of one that was removed (`Tombs`), and is not
//!    made again. So no vote and no acknowledgement of it is forgotten, and by Raft's argument it may vote as one whose log is empty.
//! 2. Its vote names no ends of promises: a store without a replica of a group has accepted no leader of it (`promise`, 5).
//! 3. Who looks for votes has the founding itself, a blank one cannot. So no election loses what was founded.
//! 4. A store has one replica of a group at a time, and numbers grow with the log. So a leader's letter to a higher number says that the blank one was
//!    removed: it goes, and its number is used up. That it voted may be forgotten then, as it never votes again.
//! 5. A blank one whose leader is silent asks its neighbours whether it was removed: who has applied that, says so.

use super::closed::Word;
use super::envelope::{Accept, Ask, Envelope, Grant};
use super::error::Error;
use super::ids::{GroupId, ReplicaId, StoreId};
use super::letter::Letter;
use super::promise::Held;
use super::replicas::Replicas;
use super::snapshot;
use super::tail::Tail;
use clock::{Reading, Timestamp};
use raft::eraftpb::MessageType;

impl Replicas {
    pub(super) fn receive(&mut self, now: &Reading, envelope: Envelope) -> Result<(), Error> {
        let Envelope { from, to, ask, grant, accepts, letters, parts, gone, pokes, ceased } = envelope;
        if to != self.store.id() || from == to || from == StoreId(0) {
            let why = "it is not for this store";
            return Err(Error::Message { from, group: GroupId(0), why });
        }
        self.store.snapshots.hears(from);
        let mut result = Ok(());
        if let Some(ask) = ask {
            self.asked(now, from, ask);
        }
        if let Some(grant) = grant {
            self.granted(now, from, grant);
        }
        for accept in accepts {
            self.accepted(now, from, accept);
        }
        for letter in letters {
            let done = self.letter(now, from, letter);
            result = result.and(done);
        }
        for part in parts {
            let done = snapshot::receive(&mut self.store, &mut self.groups, from, part);
            self.flush();
            result = result.and(done);
        }
        for (group, replica) in gone {
            let Some(found) = self.groups.get_mut(&group) else { continue };
            if found.id != replica {
                found.is_released(replica.0);
            } else if found.lead.is_none() {
                self.store.tell_removed(group, replica);
            }
        }
        for poke in pokes {
            match self.groups.get(&poke.group) {
                Some(replica) => replica.poked(&mut self.store, from, poke),
                None => self.store.post.now(from).ceased.push((poke.group, poke.term)),
            }
        }
        for (group, term) in ceased {
            if let Some(replica) = self.groups.get_mut(&group) {
                replica.leader_ceased(&mut self.store, from, term);
            }
        }
        result
    }

    pub(super) fn asked(&mut self, now: &Reading, from: StoreId, ask: Ask) {
        if !self.store.is_neighbour(from) {
            return;
        }
        // Who has no clock promises nothing; what the other's groups have closed it hears all the same.
        self.hear(from, &ask.word);
        let Some(interval) = now.trusted() else { return };
        let store = &mut self.store;
        let most = Timestamp::new(interval.latest().physical_us() + store.options.promise_us, 0);
        let record = match store.promises.extend(from, ask.until.min(most)) {
            true => store.write_pair(from),
            false => store.pair_records.get(&from).copied().unwrap_or_default(),
        };
        let pair = store.promises.pair(from);
        let heard = store.words.heard(from);
        let grant = Some(Grant { epoch: pair.epoch, until: pair.until, heard });
        if store.sabotage.promise_before_durable() || store.ledger.is_durable(record) {
            store.post.now(from).grant = grant;
        } else {
            store.post.after(record, from).grant = grant;
        }
    }

    /// A store's word on the groups that it leads and that sleep.
    pub(super) fn hear(&mut self, from: StoreId, word: &Word) {
        let store = &mut self.store;
        for group in word.woken.iter().filter(|_| word.number > store.words.heard(from)) {
            if let Some(replica) =
                self.groups.get_mut(group).filter(|r| r.slept_after.is_some_and(|(on, _)| on == from))
            {
                replica.leave_the_words(store);
            }
        }
        store.words.hear(from, word);
    }

    pub(super) fn granted(&mut self, now: &Reading, from: StoreId, grant: Grant) {
        let store = &mut self.store;
        store.words.was_heard(from, grant.heard);
        let held = store.promises.held.get(&from);
        // Leaders that slept without it, or were accepted under another epoch, have to be accepted anew.
        let anew = held.is_none_or(|h| h.until < now.interval.earliest() || h.epoch < grant.epoch);
        if anew {
            for replica in self.groups.values_mut().filter(|replica| replica.lead.is_some()) {
                if replica.tail().conf.replica_on(from).is_some() {
                    replica.settle(store);
                    replica.wake(store);
                }
            }
        }
        store.promises.hold(from, Held { epoch: grant.epoch, until: grant.until });
    }

    pub(super) fn accepted(&mut self, now: &Reading, from: StoreId, accept: Accept) {
        let Some(replica) = self.groups.get_mut(&accept.group) else { return };
        if replica.tail().conf.stores.get(&accept.replica.0) != Some(&from) {
            return;
        }
        replica.settle(&self.store);
        if let Some(lead) = replica.lead.as_mut().filter(|lead| lead.term == accept.term) {
            let epoch = lead.accepted.entry(accept.replica.0).or_default();
            *epoch = accept.epoch.max(*epoch);
            replica.look_at_lease(&mut self.store, now.interval);
        }
    }

    pub(super) fn letter(&mut self, now: &Reading, from: StoreId, letter: Letter) -> Result<(), Error> {
        let group = letter.group;
        let to = ReplicaId(letter.message.to);
        let of_leader = matches!(letter.message.msg_type, MessageType::MsgAppend | MessageType::MsgHeartbeat);
        if let Some((gone, _)) = self.tombs.get(&group)
            && to <= *gone
            && !self.store.sabotage.raise_the_removed()
        {
            return Ok(());
        }
        let kind = letter.message.msg_type;
        let of_candidate = matches!(kind, MessageType::MsgRequestVote | MessageType::MsgRequestPreVote);
        if !self.groups.contains_key(&group) && (of_leader || of_candidate) && to.0 != 0 {
            self.add(group, to, Tail::default())?;
        }
        let replica = Self::find(&mut self.groups, group)?;
        if of_leader && to > replica.id && replica.tail().is_blank() && !replica.installing {
            self.store.tell_removed(group, replica.id);
            return Ok(());
        }
        if of_leader && to > replica.id {
            // The replica that is to come here cannot while this one stays, which was removed and has not heard of it: awake, it asks.
            replica.wake(&mut self.store);
        }
        let result = replica.receive(&mut self.store, now, from, letter);
        replica.flush(&mut self.store);
        replica.look_at_lease(&mut self.store, now.interval);
        result
    }
}

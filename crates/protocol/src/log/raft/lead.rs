//! The leader's part: its lease, its timestamps, its closed timestamp, handing over (the leader's side of `promise`).

use super::entry::Body;
use super::error::{ChangeError, Error, Refused};
use super::fate::Lost;
use super::handover::Handover;
use super::ids::ReplicaId;
use super::input::Change;
use super::ledger::Durable;
use super::options::PAYLOAD_BYTES_MAX;
use super::outputs::Proposed;
use super::replica::Replica;
use super::replicas::FOUNDED;
use super::store::Store;
use bytes::Bytes;
use clock::{Interval, Reading, Timestamp};
use raft::eraftpb::{Entry, Message, MessageType};
use std::collections::BTreeMap;

/// For so many ticks a leader waits for founders of its group before they get a snapshot.
const FOUNDERS_TICKS_MAX: usize = 10;

/// A group that slept before its election, and that nobody asks for, sleeps again after so many ticks without anything to do.
const IDLE_TICKS: usize = 2;

/// What a leader knows of its term.
#[derive(Clone, Debug)]
pub(crate) struct Lead {
    pub term: u64,
    /// The entry with which it began.
    pub begin: u64,
    /// It stamps and serves above this.
    pub start: Timestamp,
    /// `start` was past.
    pub open: bool,
    /// The entry with which it began, and so all before it, was handed out.
    pub ready: bool,
    /// Promised once: what lost a quorum since is good up to here all the same.
    pub end: Timestamp,
    /// The greatest timestamp given out.
    pub last: Timestamp,
    /// The last place at which it put something: a later leader may cut it off before this one is told that it fell.
    pub to: u64,
    /// Nothing at or below this is stamped any more; all that was stands up to the place.
    pub closed: (Timestamp, u64),
    /// The epoch under which each replica's store accepted it.
    pub accepted: BTreeMap<u64, u64>,
    pub handover: Option<(ReplicaId, Handover)>,
    /// Whether its lease was told.
    pub told: bool,
    /// Ticks for which it has led.
    pub ticks: usize,
}

impl Replica {
    pub fn start_leading(&mut self, store: &mut Store) {
        let (term, begin) = (self.term(), self.last_index());
        let votes = self.candidacy.take().filter(|(of, _)| *of == term).map(|(_, votes)| votes).unwrap_or_default();
        let tail = self.raw.store();
        let of_term = |(of, end): &(u64, Timestamp)| tail.release_of(*of).unwrap_or(*end);
        let promised = votes.terms.iter().map(of_term).chain([votes.past]);
        let own = if store.sabotage.vote_without_ends() { Timestamp::MIN } else { self.support.past };
        let promised = promised.max().unwrap_or_default().max(own);
        let mut start = match store.sabotage.winner_does_not_ratchet() {
            true => tail.floor(),
            false => tail.floor().max(promised),
        };
        if store.sabotage.stamp_below_the_log() {
            start = Timestamp::MIN;
        }
        let own = store.id();
        self.lead = Some(Lead {
            term,
            begin,
            start,
            open: false,
            ready: false,
            end: Timestamp::MIN,
            last: start,
            to: begin,
            closed: (Timestamp::MIN, 0),
            accepted: BTreeMap::new(),
            handover: None,
            told: false,
            ticks: 0,
        });
        self.wait_for_founders();
        self.support.accept(own, self.id.0, term, &store.promises);
        self.write_support(store);
        let epoch = store.promises.pair(own).epoch;
        let what = Durable::OwnAccept { group: self.group, replica: self.id, term, epoch };
        store.ledger.then(self.record, what);
        self.wake(store);
        if self.was_idle {
            // Thousands may be elected together: heartbeats of all would keep the stores from anything else.
            self.quiet_ticks = store.options.quiet_ticks.saturating_sub(IDLE_TICKS);
        }
    }

    /// Where the log still has everything, a member that has nothing makes its replica itself as a rule, by what founded the group: it is late, and needs no
    /// snapshot. (Once members have changed it may be a new one.)
    pub(super) fn wait_for_founders(&mut self) {
        let young = self.lead.as_ref().is_some_and(|lead| lead.ticks < FOUNDERS_TICKS_MAX);
        let tail = self.raw.mut_store();
        tail.waits_for_founders = young && tail.cut.index == FOUNDED && tail.conf.index == 0;
    }

    pub fn stop_leading(&mut self, store: &mut Store) {
        if self.lead.is_some() {
            self.wake(store);
        }
        self.leaving.clear();
        self.settle(store);
        let Some(lead) = self.lead.take() else { return };
        let end = if store.sabotage.forget_the_own_lease() { Timestamp::MIN } else { lead.end };
        self.support.ceased_here(store.id(), lead.term, end);
        self.keep_closed(lead.closed);
        // Not what the log has there now: with its first message a later leader may have put something else in its place.
        let (from, to) = (lead.begin.max(self.tail().applied) + 1, lead.to);
        if from <= to {
            self.lose(store, Lost { term: lead.term, from, to });
        }
        store.out.leases.push(self.group);
        // Said once, so that others may vote; whoever misses it asks.
        let own = store.id();
        for on in self.tail().conf.stores.values().filter(|on| **on != own) {
            store.post.now(*on).ceased.push((self.group, lead.term));
        }
    }

    /// A timestamp above all in the log, and all that was served or closed.
    pub(super) fn stamp(&mut self, store: &Store, now: Interval, floor: Timestamp) -> Timestamp {
        let lead = self.lead.as_mut().expect("only a leader stamps");
        let floor = match store.sabotage.stamp_below_the_log() {
            true => floor,
            false => floor.max(lead.last).max(lead.closed.0).max(store.words.closed),
        };
        // What is above the floor of one group does not move the store's clock: the others would have to wait for it (design 4a.5).
        let at = store.clock.tick(now, Timestamp::MIN).max(floor.next());
        lead.last = at;
        at
    }

    pub fn propose(
        &mut self,
        store: &mut Store,
        now: &Reading,
        payload: Bytes,
        floor: Timestamp,
    ) -> Result<Proposed, Refused> {
        let Some(lead) = &self.lead else { return Err(Refused::NotLeader { hint: self.leader() }) };
        if let Some((to, _)) = lead.handover {
            return Err(Refused::Transferring { hint: self.store_of(to.0) });
        }
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        store.check_load()?;
        self.look_at_lease(store, now.interval);
        let (_, end) = self.lease(store).ok_or(Refused::NoLease)?;
        if now.interval.earliest().max(floor) >= end {
            return Err(Refused::NoLease);
        }
        let at = self.stamp(store, now.interval, floor);
        if at > end {
            return Err(Refused::NoLease);
        }
        let bytes = payload.len() as u64;
        let proposed = self.append(store, at, Body::Command(payload))?;
        store.uncommitted_bytes += bytes;
        Ok(proposed)
    }

    /// What was proposed to the leader here and is not committed, bytes.
    pub(super) fn uncommitted_bytes(&self) -> u64 {
        if self.lead.is_some() { self.raw.raft.uncommitted_size() as u64 } else { 0 }
    }

    /// Hands an entry to the library.
    pub(super) fn append(&mut self, store: &mut Store, at: Timestamp, body: Body) -> Result<Proposed, Refused> {
        self.wake(store);
        self.quiet_ticks = 0;
        let context = body.context(at);
        let result = match body.conf_change() {
            Some(change) => self.raw.propose_conf_change(context, change),
            None => {
                let mut message = Message::default();
                message.set_msg_type(MessageType::MsgPropose);
                message.from = self.id.0;
                let mut entry = Entry { context: context.into(), ..Entry::default() };
                if let Body::Command(payload) = body {
                    entry.data = payload;
                }
                message.set_entries(vec![entry].into());
                self.raw.raft.step(message)
            }
        };
        self.after(store);
        match result {
            Ok(()) => {
                let index = self.last_index();
                if let Some(lead) = &mut self.lead {
                    lead.to = index;
                }
                Ok(Proposed { at, index, term: self.term() })
            }
            Err(_) if self.raw.raft.uncommitted_size() > 0 => Err(Refused::Overloaded),
            Err(_) => Err(Refused::Dropped),
        }
    }

    pub fn change(&mut self, store: &mut Store, now: &Reading, changes: Vec<Change>) -> Result<(), Error> {
        let wrong = |why| Error::Change { group: self.group, why };
        let Some(lead) = &self.lead else { return Err(Refused::NotLeader { hint: self.leader() }.into()) };
        if lead.handover.is_some() {
            return Err(Refused::Transferring { hint: None }.into());
        }
        self.lease(store).ok_or(Refused::NoLease)?;
        if self.tail().conf.is_joint() || self.raw.raft.has_pending_conf() {
            return Err(wrong(ChangeError::Unfinished));
        }
        let caught_up = |replica| {
            let progress = self.raw.raft.prs().get(replica);
            progress.is_some_and(|progress| progress.matched >= self.tail().applied)
        };
        self.tail().conf.check(&changes, caught_up).map_err(wrong)?;
        let at = self.stamp(store, now.interval, Timestamp::MIN);
        self.append(store, at, Body::Change(changes))?;
        Ok(())
    }

    /// The joint configuration is left when the new voters alone support all that was served, and that end goes into the log.
    fn leave_joint(&mut self, store: &mut Store, now: Interval) {
        if !self.tail().conf.is_joint() || self.raw.raft.has_pending_conf() {
            return;
        }
        self.settle(store);
        let Some(lead) = self.lead.as_ref().filter(|lead| lead.ready && lead.handover.is_none()) else { return };
        let mut served = lead.end.max(lead.start).max(lead.last);
        let alone = self.quorum_end(store, lead, &self.tail().conf.state.voters);
        if store.sabotage.leave_joint_early() {
            served = Timestamp::MIN;
        }
        if alone >= served {
            let at = self.stamp(store, now, Timestamp::MIN);
            // Refused only where it leads no more, or the log is full: the next tick tries again.
            let _ = self.append(store, at, Body::Leave { served });
        }
    }

    /// Closes what lies far enough behind, inside the lease: no later leader begins below its end.
    fn close(&mut self, store: &mut Store, now: &Reading) {
        let Some((_, end)) = self.lease(store) else { return };
        let Some(interval) = now.trusted() else { return };
        let behind_us = interval.earliest().physical_us().saturating_sub(store.options.close_after_us);
        let at = Timestamp::new(behind_us, 0).min(end);
        let last_index = self.last_index();
        let lead = self.lead.as_mut().expect("it leads");
        if at > lead.closed.0 {
            let before = std::mem::replace(&mut lead.closed, (at, last_index));
            self.keep_closed(before);
        }
    }

    /// What a leader closed for the others stays closed for itself when it leads no more. Its log may have more than will ever be committed: what is closed at a
    /// place beyond that would be of no use.
    fn keep_closed(&mut self, closed: (Timestamp, u64)) {
        if closed.1 <= self.committed() {
            self.closed = self.closed.max(closed);
        }
    }

    pub fn tick_leader(&mut self, store: &mut Store, now: &Reading) {
        if let Some(lead) = &mut self.lead {
            lead.ticks = lead.ticks.saturating_add(1);
        }
        self.wait_for_founders();
        self.look_at_lease(store, now.interval);
        self.close(store, now);
        self.hand_over(store, now);
        if self.lead.is_some() {
            self.leave_joint(store, now.interval);
            self.look_who_knows(store);
        }
    }
}

//! What a machine answers to clients.

use super::body::Body;
use super::codec::Command;
use super::state::Done;
use super::{Answer, Ask, Registers, Talk};
use crate::cluster::{Act, Place};
use crate::machine::Failure;
use clock::Timestamp;
use protocol::log::raft::{GroupId, Role};
use std::collections::VecDeque;

/// A timestamp of somebody else may be so far ahead of what this clock takes for possible, microseconds.
const TOLERANCE_US: u64 = 500_000;
/// Looks again at answers that wait at least so late, nanoseconds, and at most so late.
const LOOK_NS: std::ops::RangeInclusive<u64> = 50_000..=500_000_000;

/// A proposal that is not applied yet.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub term: u64,
    pub at: Timestamp,
    pub client: usize,
    pub request: u64,
}

/// A snapshot that waits for what is in flight at or below it.
#[derive(Clone, Copy, Debug)]
pub struct Parked {
    pub group: GroupId,
    pub key: u64,
    pub at: Timestamp,
    pub client: usize,
    pub request: u64,
}

impl Body {
    /// A client asks.
    pub fn ask(
        &mut self,
        system: &mut Registers,
        place: &mut Place<'_, Talk>,
        client: usize,
        request: u64,
        ask: Ask,
    ) -> Result<(), Failure> {
        match ask {
            Ask::Write { key, value } => self.write(system, place, client, request, (key, None, value)),
            Ask::Swap { key, from, to } => self.write(system, place, client, request, (key, Some(from), to)),
            Ask::Read { key } => {
                self.read(system, place, client, request, key);
                Ok(())
            }
            Ask::Latest => {
                match place.now.trusted() {
                    Some(interval) => answer(place, client, request, Answer::Latest(interval.latest())),
                    None => answer(place, client, request, Answer::NotHere(None)),
                }
                Ok(())
            }
            Ask::Snapshot { key, at } => {
                self.read_at(system, place, Parked { group: system.group_of(key), key, at, client, request });
                Ok(())
            }
            Ask::Past { key } => {
                self.past(system, place, client, request, key);
                Ok(())
            }
        }
    }

    fn write(
        &mut self,
        system: &mut Registers,
        place: &mut Place<'_, Talk>,
        client: usize,
        request: u64,
        (key, expects, value): (u64, Option<Option<u64>>, u64),
    ) -> Result<(), Failure> {
        let group = system.group_of(key);
        let command = Command { client: client as u64, request, key, expects, value };
        match self.replicas.propose(&place.now, group, command.encode().into(), Timestamp::MIN) {
            Ok(proposed) => {
                let (term, at) = (proposed.term, proposed.at);
                self.pending.insert((group, proposed.index), Pending { term, at, client, request });
                if let Some(lease) = self.replicas.lease(group) {
                    system.chronicle.serves(group, term, self.store, lease, at);
                }
                if system.controls.broken.acknowledge_proposals {
                    let done = Done { client: client as u64, request, at, wrote: true, old: false };
                    self.written(group, client, request, &done);
                }
                let mut next = VecDeque::new();
                self.see_to(system, place, &mut next)?;
                match next.pop_front() {
                    Some(told) => self.tell(system, place, told),
                    None => Ok(()),
                }
            }
            Err(_) => {
                self.not_here(system, place, group, client, request);
                Ok(())
            }
        }
    }

    /// A command took effect: it is answered once that is certainly past.
    pub fn written(&mut self, group: GroupId, client: usize, request: u64, done: &Done) {
        let answer = if done.old { Answer::Old } else { Answer::Written(done.at, done.wrote) };
        self.answers.push((done.at, group, client, Talk::Answer(request, answer)));
    }

    /// A linearizable read: the leader, while its lease covers the present, at what it has shown or may show.
    fn read(&mut self, system: &mut Registers, place: &mut Place<'_, Talk>, client: usize, request: u64, key: u64) {
        let group = system.group_of(key);
        let interval = place.now.interval;
        let lease =
            self.replicas.lease(group).filter(|(_, end)| place.now.trusted().is_some() && interval.latest() <= *end);
        let leads = self.replicas.status(group).is_some_and(|status| status.role == Role::Leader);
        let lease = match lease {
            None if system.controls.broken.read_without_lease && leads => Some((Timestamp::MIN, Timestamp::MAX)),
            lease => lease,
        };
        let Some((start, end)) = lease else { return self.not_here(system, place, group, client, request) };
        let shown = self.shown.get(&group).copied().unwrap_or_default().max(start);
        // What is in flight below it would come into what was read.
        let open = self.pending.range((group, 0)..=(group, u64::MAX)).map(|(_, pending)| pending.at).min();
        let at = shown.max(interval.earliest().min(end)).min(open.map_or(Timestamp::MAX, Timestamp::prev));
        self.found(system, place, (group, key, at), (client, request), true);
    }

    /// A read at a timestamp that somebody else chose.
    fn read_at(&mut self, system: &mut Registers, place: &mut Place<'_, Talk>, parked: Parked) {
        let Parked { group, key, at, client, request } = parked;
        let lease = self.replicas.lease(group).filter(|(_, end)| at <= *end);
        let beyond = self.hybrid.observe(at, place.now.interval, TOLERANCE_US).is_err();
        if lease.is_none() || beyond {
            if beyond {
                place.probes.hit("a timestamp was refused");
            } else if self.replicas.lease(group).is_some() {
                place.probes.hit("a snapshot was beyond the lease");
            }
            return self.not_here(system, place, group, client, request);
        }
        let open = |(_, pending): (&(GroupId, u64), &Pending)| pending.at <= at;
        if !system.controls.broken.ignore_in_flight && self.pending.range((group, 0)..=(group, u64::MAX)).any(open) {
            place.probes.hit("a snapshot waited for what is in flight");
            self.parked.push(parked);
            return;
        }
        self.found(system, place, (group, key, at), (client, request), true);
    }

    /// Entries were applied: those that waited for them go on.
    pub fn look_at_parked(&mut self, system: &mut Registers, place: &mut Place<'_, Talk>, group: GroupId) {
        for parked in self.parked.extract_if(.., |parked| parked.group == group).collect::<Vec<_>>() {
            self.read_at(system, place, parked);
        }
    }

    /// A read of what is closed: at any replica.
    fn past(&mut self, system: &mut Registers, place: &mut Place<'_, Talk>, client: usize, request: u64, key: u64) {
        let group = system.group_of(key);
        let applied = self.states.get(&group).map(|state| state.applied);
        let closed = self.replicas.closed(group).zip(applied);
        let whole = |index, applied| applied >= index || system.controls.broken.serve_unapplied;
        match closed {
            Some(((at, index), applied)) if whole(index, applied) => {
                place.probes.hit("the past was read at a replica");
                self.found(system, place, (group, key, at), (client, request), false);
            }
            _ => self.not_here(system, place, group, client, request),
        }
    }

    /// A read found what it looked for: it is answered once that is certainly past.
    fn found(
        &mut self,
        system: &mut Registers,
        place: &mut Place<'_, Talk>,
        (group, key, at): (GroupId, u64, Timestamp),
        (client, request): (usize, u64),
        leader: bool,
    ) {
        let found = self.states.get(&group).and_then(|state| state.find(key, at));
        if leader {
            self.hybrid.ratchet(at);
            if let (Some(lease), Some(status)) = (self.replicas.lease(group), self.replicas.status(group)) {
                system.chronicle.serves(group, status.term, self.store, lease, at.min(lease.1));
            }
        }
        let answer = Talk::Answer(request, Answer::Found(at, found.map(|(_, value)| value)));
        let visible = found.map_or(Timestamp::MIN, |(at, _)| at);
        self.answers.push((visible, group, client, answer));
        self.look_at_answers(system, place);
    }

    /// Nothing was done: the client should ask whoever leads, or again.
    pub fn not_here(
        &self,
        system: &Registers,
        place: &mut Place<'_, Talk>,
        group: GroupId,
        client: usize,
        request: u64,
    ) {
        let leader = self.replicas.status(group).and_then(|status| status.leader);
        let leader = leader.filter(|leader| system.is_current(*leader) && *leader != self.store);
        answer(place, client, request, Answer::NotHere(leader));
    }

    /// Rule 1: answers leave once they are certainly past.
    pub fn look_at_answers(&mut self, system: &mut Registers, place: &mut Place<'_, Talk>) {
        // An interval that nobody vouches for says nothing.
        let (interval, trusted) = (place.now.interval, place.now.trusted().is_some());
        let early = system.controls.broken.skip_rule_one;
        let ready = |at: &Timestamp| early || *at == Timestamp::MIN || trusted && interval.is_past(*at);
        for (at, group, client, talk) in self.answers.extract_if(.., |(at, ..)| ready(at)) {
            let shown = self.shown.entry(group).or_default();
            *shown = at.max(*shown);
            system.chronicle.shown(at, place);
            place.act(Act::Tell(client, talk));
        }
        let first = self.answers.iter().map(|(at, ..)| *at).min().filter(|_| !self.timer);
        if let Some(first) = first {
            place.probes.hit("an answer waited for rule 1");
            let wait_ns = (first.physical_us() * 1000).saturating_sub(interval.earliest_ns);
            place.act(Act::After(wait_ns.clamp(*LOOK_NS.start(), *LOOK_NS.end()), 0));
            self.timer = true;
        }
    }

    /// Whatever leases there are: no two may share a timestamp.
    pub fn note_leases(&self, system: &mut Registers) {
        for group in self.replicas.groups() {
            if let (Some(lease), Some(status)) = (self.replicas.lease(group), self.replicas.status(group)) {
                system.chronicle.serves(group, status.term, self.store, lease, Timestamp::MIN);
            }
        }
    }
}

fn answer(place: &mut Place<'_, Talk>, client: usize, request: u64, answer: Answer) {
    place.act(Act::Tell(client, Talk::Answer(request, answer)));
}

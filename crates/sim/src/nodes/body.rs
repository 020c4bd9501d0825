//! A member of a cluster on one machine: its records go to the disk, its messages to the others; and the sessions at it.

use super::session::Turn;
use super::{Nodes, machine_of};
use crate::cluster::{Act, Class, Input, Place};
use crate::machine::{Engine, Failure};
use bytes::Bytes;
use clock::{Level, Reading, Reason, Timestamp};
use node::cluster::{
    Class as NodeClass, FreezeReason, Input as Told, MESSAGE_BYTES_MAX, Member, Message, NodeId, Outgoing, Outputs,
    Record, RecordNumber,
};
use parking_lot::Mutex;
use protocol::txn::RangeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Wake, Waker};
use store::{Log, LogError, Version};

/// It flushes every so many ticks.
const FLUSH_TICKS: u64 = 15;
/// It looks every so many ticks what of the past may go, which is kept for so long, microseconds.
const COLLECT_TICKS: u64 = 7;
const KEPT_US: u64 = 7_000_000;
/// Writes of large commits that find their places at a tick: some are left for the next freeze.
const PLACED_PER_TICK: usize = 2;
/// The timer of what rule 1 holds back; those of sessions are above it.
const DUE: u64 = 0;
/// The timer of a flush that somebody waits for, and how long it takes to begin, nanoseconds.
const FLUSH: u64 = u64::MAX;
const FLUSH_NS: u64 = 5_000_000;
/// A leader looks every so many ticks whether a replica is gone for good.
const REPAIR_TICKS: u64 = 5;

/// Sessions that may go on.
#[derive(Default)]
pub struct Woken(Mutex<BTreeSet<usize>>);

struct SessionWaker(Arc<Woken>, usize);

impl Wake for SessionWaker {
    fn wake(self: Arc<Self>) {
        self.0.0.lock().insert(self.1);
    }
}

/// What runs on one machine.
pub struct Body {
    pub member: Arc<Member<Engine>>,
    pub log: Log,
    /// Records that are not in the log yet: a sync is on its way, or the disk is full.
    waiting: VecDeque<Record>,
    syncing: Option<u64>,
    durable: RecordNumber,
    held: Vec<(RecordNumber, Message)>,
    woken: Arc<Woken>,
    due: Option<Timestamp>,
    /// Ranges that it hands over by itself, and its term: the judge is to hear.
    handovers: Vec<(RangeId, u64)>,
    ticks: u64,
    seen: Reading,
    /// What the node's counters were when they were looked at last.
    counted: BTreeMap<&'static str, u64>,
    /// Peers can have proof that its bound is broken.
    may_be_proved: bool,
}

impl Body {
    pub fn new(member: Arc<Member<Engine>>, log: Log, may_be_proved: bool) -> Self {
        let (waiting, syncing, held, woken, due, handovers, ticks, counted) = Default::default();
        let durable = RecordNumber(log.durable());
        let seen = Reading::exact(0);
        Body {
            member,
            log,
            waiting,
            syncing,
            durable,
            held,
            woken,
            due,
            handovers,
            ticks,
            seen,
            counted,
            may_be_proved,
        }
    }

    /// It has just opened.
    pub fn begin(&mut self, system: &mut Nodes, place: &mut Place<'_, ()>) -> Result<(), Failure> {
        let out = self.member.drain(&place.now);
        self.see_to(place, out)?;
        for n in 0..system.sessions[place.machine].len() {
            let delay_ns = place.rng.below(50_000_000) + 1_000_000;
            place.act(Act::After(delay_ns, n as u64 + 1));
        }
        Ok(())
    }

    /// Whether it leads a range with a lease.
    pub fn leads_any(&self) -> bool {
        self.member.ranges().into_iter().any(|range| self.member.status(range).is_some_and(|s| s.lease.is_some()))
    }

    /// What is not at rest here.
    pub fn unrest(&self) -> Option<String> {
        // Promises go to the disk all the time.
        let full = self.syncing.is_none() && !self.waiting.is_empty();
        let (locks, committing) = (self.member.lock_counts(), self.member.committing());
        (full || locks != (0, 0) || committing > 0)
            .then(|| format!("{} records wait, locks {locks:?}, {committing} transactions", self.waiting.len()))
    }

    /// What it is, for a report.
    pub fn describe(&self) -> String {
        let leads = self
            .member
            .ranges()
            .into_iter()
            .filter(|range| self.member.status(*range).is_some_and(|s| s.lease.is_some()));
        let (node, trusted, leads) = (self.member.node(), self.seen.trusted().is_some(), leads.collect::<Vec<_>>());
        format!("{node} trusts its clock: {trusted}, leads {leads:?} of {:?}", self.member.ranges())
    }

    /// The place that is applied, and the checksum of the state there.
    pub fn digest(&self, range: RangeId) -> Result<(u64, u64), Failure> {
        self.member.digest(range).map_err(|e| Failure(format!("{range} cannot be read: {e}")))
    }

    /// All versions of a key that a snapshot sees that can be read, and that say something: a deletion of what was not there goes when it is flushed
    /// behind a later version.
    /// None where no replica is here that has the key: what is left of one that was here says nothing.
    pub fn history(&self, key: &[u8]) -> Result<Vec<Version>, Failure> {
        let Some(threshold) = self.member.collected_of(key) else { return Ok(Vec::new()) };
        let mut found =
            self.member.versions().history(key).map_err(|e| Failure(format!("{key:?} cannot be read: {e}")))?;
        let below = found.partition_point(|version| version.ts <= threshold);
        let seen = below.checked_sub(1).filter(|at| found[*at].value.is_some()).unwrap_or(below);
        found.drain(..seen);
        let says = |at: usize| found[at].value.is_some() || at > 0 && found[at - 1].value.is_some();
        Ok((0..found.len()).filter(|at| says(*at)).map(|at| found[at].clone()).collect())
    }

    /// One input of the world.
    pub fn input(&mut self, system: &mut Nodes, place: &mut Place<'_, ()>, input: Input<()>) -> Result<(), Failure> {
        self.seen = place.now;
        system.draining = place.draining;
        match input {
            Input::Tick => {
                self.ticks += 1;
                self.tell(place, Told::Tick)?;
                if self.member.versions().place(PLACED_PER_TICK) {
                    place.probes.hit("large commit not in its place yet");
                }
                for (range, term) in std::mem::take(&mut self.handovers) {
                    system.chronicle.released(range, term);
                }
                self.append(place)?;
                if self.ticks.is_multiple_of(FLUSH_TICKS) {
                    self.flush(system, place)?;
                }
                if self.ticks.is_multiple_of(COLLECT_TICKS) {
                    self.collect(system, place)?;
                }
                if self.ticks.is_multiple_of(REPAIR_TICKS) {
                    self.repair(system, place)?;
                    self.hear_version(system, place);
                }
                system.chronicle.look(&self.member);
                self.look_for_leaders(system, place)?;
            }
            Input::Peer { bytes, .. } => {
                let message = unpack(&bytes).ok_or_else(|| Failure("a message that cannot be read".into()))?;
                if message.to == self.member.node() {
                    system.unread(place.machine, &message).map_or(Ok(()), Err)?;
                    self.tell(place, Told::Message(message))?;
                } else {
                    place.probes.hit("a message for a node that is gone");
                }
            }
            Input::Ask { .. } => {}
            Input::Synced => self.synced(place)?,
            Input::Timer(DUE) => {
                self.due = None;
                self.tell(place, Told::Due)?;
            }
            Input::Timer(FLUSH) => self.flush(system, place)?,
            Input::Timer(session) => {
                self.woken.0.lock().insert(usize::try_from(session - 1).unwrap_or(0));
            }
        }
        self.run_sessions(system, place)?;
        if system.chronicle.verdict.is_good() {
            return Ok(());
        }
        Err(Failure("a rule was broken: see what the checker found".into()))
    }

    /// Everybody who was woken goes on, and whoever that wakes.
    fn run_sessions(&mut self, system: &mut Nodes, place: &mut Place<'_, ()>) -> Result<(), Failure> {
        loop {
            let Some(n) = self.woken.0.lock().pop_first() else { return Ok(()) };
            let waker = Waker::from(Arc::new(SessionWaker(self.woken.clone(), n)));
            let mut sessions = std::mem::take(&mut system.sessions[place.machine]);
            if let Some(session) = sessions.get_mut(n) {
                let again_ns =
                    session.turn(system, &mut Turn { member: &self.member, place, waker: &waker, first: n == 0 });
                place.act(Act::After(again_ns, n as u64 + 1));
            }
            system.sessions[place.machine] = sessions;
            let out = self.member.drain(&place.now);
            self.see_to(place, out)?;
        }
    }

    pub(super) fn tell(&mut self, place: &mut Place<'_, ()>, told: Told) -> Result<(), Failure> {
        let out = self.member.step(&place.now, told).map_err(|e| Failure(format!("the node fails: {e}")))?;
        self.see_to(place, out)
    }

    pub(super) fn see_to(&mut self, place: &mut Place<'_, ()>, out: Outputs) -> Result<(), Failure> {
        self.waiting.extend(out.records);
        self.append(place)?;
        for Outgoing { message, after } in out.messages {
            if message.bytes.len() > MESSAGE_BYTES_MAX {
                return Err(Failure(format!("a message of {} bytes can never be sent", message.bytes.len())));
            }
            match after.filter(|after| *after > self.durable) {
                Some(after) => self.held.push((after, message)),
                None => send(place, &message),
            }
        }
        out.wakers.into_iter().for_each(Waker::wake);
        self.handovers.extend(out.handovers);
        if out.flush {
            place.act(Act::After(FLUSH_NS, FLUSH));
        }
        for change in out.clock_changes {
            place.note(change.to_string());
            if matches!((change.to, change.reason), (Level::Untrusted, Reason::Proofs { .. })) {
                if !self.may_be_proved {
                    return Err(Failure(format!("fenced although its bound holds: {change}")));
                }
                place.probes.hit("a liar was proved wrong by its peers");
            }
        }
        if let Some(due) = out.timer.filter(|due| self.due.is_none_or(|known| *due < known)) {
            self.due = Some(due);
            let wait_ns = (due.physical_us() * 1000).saturating_sub(place.now.interval.earliest_ns);
            place.act(Act::After(wait_ns.clamp(1_000, 500_000_000) + 1_000, DUE));
        }
        for read in out.reads {
            let out = self.member.read(|| place.now, read).map_err(|e| Failure(format!("read: {e}")))?;
            self.see_to(place, out)?;
        }
        Ok(())
    }

    /// What waits goes to the log, unless a sync is on its way: what is written then belongs to the next.
    fn append(&mut self, place: &mut Place<'_, ()>) -> Result<(), Failure> {
        let Some(last) = self.waiting.back().map(|record| record.number.0).filter(|_| self.syncing.is_none()) else {
            return Ok(());
        };
        match self.log.append_all(self.waiting.iter().map(|record| Bytes::copy_from_slice(&record.bytes))) {
            Ok(at) if at == last => {
                self.waiting.clear();
                self.syncing = Some(last);
                place.act(Act::Sync);
                Ok(())
            }
            Ok(at) => Err(Failure(format!("the log is at {at}, the node at {last}"))),
            Err(LogError::DiskFull) => {
                place.probes.hit("disk full refused records");
                Ok(())
            }
            Err(e) => Err(Failure(format!("append: {e}"))),
        }
    }

    fn synced(&mut self, place: &mut Place<'_, ()>) -> Result<(), Failure> {
        let Some(last) = self.syncing.take() else { return Ok(()) };
        self.log.write_and_sync().map_err(|e| Failure(format!("sync: {e}")))?;
        self.durable = RecordNumber(last);
        for (_, message) in self.held.extract_if(.., |(after, _)| after.0 <= last) {
            send(place, &message);
        }
        self.append(place)?;
        self.tell(place, Told::Durable(RecordNumber(last)))
    }

    /// The past goes, as far as its ranges' logs allow.
    fn collect(&mut self, system: &mut Nodes, place: &mut Place<'_, ()>) -> Result<(), Failure> {
        let keep = place.now.interval.earliest().physical_us().saturating_sub(KEPT_US);
        self.member.collect(&place.now, Timestamp::new(keep, 0));
        let out = self.member.drain(&place.now);
        self.see_to(place, out)?;
        let Some(threshold) = self.member.collectable() else { return Ok(()) };
        system.chronicle.remember(&self.member)?;
        let versions = self.member.versions();
        let before = versions.garbage().past;
        // A failed sync: the next call goes on.
        if versions.collect(threshold).is_ok() {
            place.probes.add("collected", before - versions.garbage().past.min(before));
        }
        // Deletions go, too, now and then.
        if self.ticks.is_multiple_of(4 * COLLECT_TICKS) && versions.compact().is_ok() {
            place.probes.hit("the present was written anew");
        }
        Ok(())
    }

    /// Freezes and flushes, and gives log segments back.
    pub fn flush(&mut self, system: &mut Nodes, place: &mut Place<'_, ()>) -> Result<(), Failure> {
        let installing = |range: &RangeId| self.member.status(*range).is_some_and(|status| status.installing);
        // What is half installed is of no place, and nobody reads it.
        for range in self.member.ranges().into_iter().filter(|range| !installing(range)) {
            let (applied, digest) = self.digest(range)?;
            place.note(format!("{range} at {applied} is {digest:016x}"));
            system.chronicle.digest(range, self.member.node(), applied, digest);
        }
        self.member.freeze(FreezeReason::Due);
        let versions = self.member.versions().clone();
        while versions.frozen_layers() > 0 {
            versions.flush().map_err(|e| Failure(format!("flush: {e}")))?;
        }
        place.probes.hit("flush");
        let counters =
            self.member.counters().all().filter(|(name, ..)| !name.ends_with("nanos") && !name.ends_with("bytes"));
        for (name, _, value) in counters {
            let before = self.counted.insert(name, value).unwrap_or(0);
            place.probes.add(name, value - before);
        }
        if self.member.counters().parts_sent.get() > 0 {
            place.probes.hit("a transaction came in parts");
        }
        self.tell(place, Told::Flushed)?;
        if self.waiting.is_empty() && self.syncing.is_none() {
            let oldest = self.member.oldest_record().0;
            let recycled = self.log.truncate(oldest.saturating_sub(1)).map_err(|e| Failure(e.to_string()))?;
            place.probes.add("log segment recycled", recycled as u64);
        }
        Ok(())
    }
}

/// Class, sender and receiver go first, as a transport's connection would tell them.
fn send(place: &mut Place<'_, ()>, message: &Message) {
    let (class, tag) = match message.class {
        NodeClass::Consensus => (Class::Urgent, 0),
        NodeClass::Request => (Class::Normal, 1),
        NodeClass::Bulk => (Class::Bulk, 2),
    };
    let (from, to) = (message.from.0.to_le_bytes(), message.to.0.to_le_bytes());
    let bytes = [&[tag], &from[..], &to[..], &message.bytes[..]].concat();
    place.act(Act::Send(machine_of(message.to), class, bytes.into()));
}

fn unpack(bytes: &Bytes) -> Option<Message> {
    let class = match bytes.first()? {
        0 => NodeClass::Consensus,
        1 => NodeClass::Request,
        _ => NodeClass::Bulk,
    };
    let node = |at: usize| Some(NodeId(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)));
    Some(Message { from: node(1)?, to: node(5)?, class, bytes: bytes.slice(9..) })
}

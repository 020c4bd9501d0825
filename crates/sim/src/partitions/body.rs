//! What runs on one machine: a member with the transactions of its clients, or the oracle.

use super::load::start as start_of;
use super::session::{Session, Standing};
use super::{Partitions, Protocol, Sessions, Talk};
use crate::cluster::{Act, Class, Input, Place};
use crate::machine::{Engine, Failure};
use bytes::Bytes;
use clock::{LadderLimits, Timestamp};
use node::NodeOptions;
use node::cluster::{
    Class as NodeClass, ClusterOptions, Founding, FreezeReason, Input as Told, LogLimits, Member, Message, NodeId,
    Opening, Outgoing, Outputs, Record, RecordNumber, VERSION_MAX, VERSION_MIN,
};
use parking_lot::Mutex;
use protocol::txn::RangeId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Wake, Waker};
use store::{Log, LogOptions, Versions, VersionsConfig};

/// The cluster's number.
const CLUSTER: u64 = 0x7a12;
/// Segments of the log, bytes.
const SEGMENT_BYTES: u64 = 4 << 20;
/// Timers below this are of what was held for a clock; this one is of what rule 1 holds back.
const DUE: u64 = u64::MAX;
/// Clocks that may be off by more serve nothing.
const ERROR_NS_MAX: u64 = 1_000_000_000;
/// A range that another is to lead is handed over to it every so many ticks, until it does.
const HAND_OVER_TICKS: u64 = 5;
/// It flushes every so many ticks.
const FLUSH_TICKS: u64 = 50;

/// First byte of a message: a member's; a request for timestamps; the answer.
const OF_MEMBER: u8 = 0;
const ASKS_ORACLE: u8 = 1;
const ORACLE_GIVES: u8 = 2;

type Woken = Arc<Mutex<BTreeSet<(usize, u64)>>>;

struct SessionWaker(Woken, (usize, u64));

impl Wake for SessionWaker {
    fn wake(self: Arc<Self>) {
        self.0.lock().insert(self.1);
    }
}

/// See the module.
pub enum Body {
    /// A partition.
    Partition(Box<Partition>),
    /// The oracle: it answers; what that costs is the world's.
    Oracle,
}

/// A partition.
pub struct Partition {
    /// The range that is led here.
    own: RangeId,
    member: Arc<Member<Engine>>,
    log: Log,
    waiting: VecDeque<Record>,
    syncing: Option<u64>,
    durable: RecordNumber,
    held: Vec<(RecordNumber, Timestamp, Message)>,
    woken: Woken,
    sessions: Sessions,
    /// Transactions that wait for a timestamp and were not asked for, and those that were.
    to_ask: VecDeque<(usize, u64)>,
    asked: VecDeque<Vec<(usize, u64)>>,
    /// Messages that wait for this machine's clock.
    early: BTreeMap<u64, Message>,
    last_early: u64,
    due: Option<Timestamp>,
    ticks: u64,
}

fn node_of(machine: usize) -> NodeId {
    NodeId(u32::try_from(machine).unwrap_or(0) + 1)
}

fn range_of(partition: usize) -> RangeId {
    RangeId(partition as u64 + 1)
}

fn machine_of(node: NodeId) -> usize {
    usize::try_from(node.0.saturating_sub(1)).unwrap_or(0)
}

/// How many timestamps a message asks for.
pub(super) fn timestamps(bytes: &Bytes) -> u64 {
    match bytes.split_first() {
        Some((&ASKS_ORACLE, count)) => count.try_into().map_or(0, u64::from_le_bytes),
        _ => 0,
    }
}

/// A machine starts.
pub(super) fn start(system: &mut Partitions, place: &mut Place<'_, Talk>) -> Result<Body, Failure> {
    if place.machine == system.setup.oracle() {
        return Ok(Body::Oracle);
    }
    let fail = |what: &dyn core::fmt::Display| Failure(format!("machine {} does not open: {what}", place.machine));
    let options =
        LogOptions { segment_bytes: SEGMENT_BYTES, first_segment_bytes: SEGMENT_BYTES, held_back_bytes: 0, salt: 7 };
    let (log, _) = Log::open(Arc::new(place.disk.clone()), &options, &mut |_, _| Ok(())).map_err(|e| fail(&e))?;
    let engine = system.engines[place.machine].clone();
    let versions = Versions::open(engine, VersionsConfig::default()).map_err(|e| fail(&e))?;
    let founding = |partition: usize| Founding {
        range: range_of(partition),
        start: start_of(partition),
        replicas: (0..system.setup.replicas).map(|n| node_of((partition + n) % system.setup.partitions)).collect(),
    };
    let options = ClusterOptions {
        cluster: CLUSTER,
        node: node_of(place.machine),
        ranges: (0..system.setup.partitions).map(founding).collect(),
        versions: VERSION_MIN..=VERSION_MAX,
        version: VERSION_MAX,
        seed: place.rng.draw(),
        limits: LogLimits::default(),
        // Whatever error a setup states is meant.
        node_options: NodeOptions {
            ladder: LadderLimits {
                strict_error_ns: ERROR_NS_MAX,
                hybrid_error_ns: ERROR_NS_MAX,
                ..LadderLimits::default()
            },
            ..NodeOptions::default()
        },
    };
    let opening = Opening::with(options, Arc::new(versions), &place.now, system.sabotage()).map_err(|e| fail(&e))?;
    let member = opening.finish(&place.now).map_err(|e| fail(&e))?;
    let (waiting, syncing, held, woken, sessions, to_ask) = Default::default();
    let (asked, early, last_early, due, ticks) = Default::default();
    let durable = RecordNumber(log.durable());
    let mut partition = Partition {
        own: range_of(place.machine),
        member,
        log,
        waiting,
        syncing,
        durable,
        held,
        woken,
        sessions,
        to_ask,
        asked,
        early,
        last_early,
        due,
        ticks,
    };
    let out = partition.member.drain(&place.now);
    partition.see_to(place, out, Timestamp::MIN)?;
    Ok(Body::Partition(Box::new(partition)))
}

impl Body {
    /// Whether it leads its range with a lease.
    pub(super) fn leads(&self) -> bool {
        let Body::Partition(p) = self else { return false };
        p.leads(p.own)
    }

    /// One input of the world.
    pub(super) fn input(
        &mut self,
        system: &mut Partitions,
        place: &mut Place<'_, Talk>,
        input: Input<Talk>,
    ) -> Result<(), Failure> {
        match (self, input) {
            (Body::Partition(partition), input) => partition.input(system, place, input),
            (Body::Oracle, Input::Peer { from, bytes }) if timestamps(&bytes) > 0 => {
                place.act(Act::Send(from, Class::Normal, Bytes::from_static(&[ORACLE_GIVES])));
                Ok(())
            }
            (Body::Oracle, _) => Ok(()),
        }
    }
}

impl Partition {
    fn input(
        &mut self,
        system: &mut Partitions,
        place: &mut Place<'_, Talk>,
        input: Input<Talk>,
    ) -> Result<(), Failure> {
        match input {
            Input::Tick => {
                self.ticks += 1;
                self.tell(place, Told::Tick)?;
                self.append(place)?;
                if self.ticks.is_multiple_of(HAND_OVER_TICKS) {
                    self.hand_over(place)?;
                }
                if self.ticks.is_multiple_of(FLUSH_TICKS) {
                    self.flush(place)?;
                }
            }
            Input::Peer { bytes, .. } if bytes.first() == Some(&ORACLE_GIVES) => {
                for id in self.asked.pop_front().unwrap_or_default() {
                    if let Some(session) = self.sessions.get_mut(&id) {
                        session.granted();
                        self.woken.lock().insert(id);
                    }
                }
                self.ask_oracle(system, place);
            }
            Input::Peer { bytes, .. } => self.heard(system, place, &bytes)?,
            Input::Ask { client, talk: Talk::Do(number, task) } => {
                // Of each client's transactions, and of each one's writes, fewer than 2^16.
                let id = (client as u64 + 1) << 48 | number << 16;
                let setup = &system.setup;
                let session =
                    Session::new(task, (setup.consistency, setup.uncertainty), setup.protocol.has_oracle(), id);
                self.sessions.insert((client, number), session);
                self.woken.lock().insert((client, number));
            }
            Input::Ask { .. } => {}
            Input::Synced => self.synced(place)?,
            Input::Timer(DUE) => {
                self.due = None;
                self.tell(place, Told::Due)?;
            }
            Input::Timer(number) => {
                if let Some(message) = self.early.remove(&number) {
                    self.tell(place, Told::Message(message))?;
                }
            }
        }
        self.run_sessions(system, place)
    }

    fn leads(&self, range: RangeId) -> bool {
        self.member.status(range).is_some_and(|status| status.lease.is_some())
    }

    /// Each partition's own machine is to lead it.
    fn hand_over(&mut self, place: &mut Place<'_, Talk>) -> Result<(), Failure> {
        let others = self.member.ranges().into_iter().filter(|range| *range != self.own);
        for range in others.filter(|range| self.leads(*range)).collect::<Vec<_>>() {
            let to = NodeId(u32::try_from(range.0).unwrap_or(0));
            // What is refused now is asked for again.
            let _ = self.member.hand_over(&place.now, range, to);
            let out = self.member.drain(&place.now);
            self.see_to(place, out, Timestamp::MIN)?;
        }
        Ok(())
    }

    /// A message of another member: at once, or once this machine's clock has passed the snapshot that it is of.
    fn heard(&mut self, system: &mut Partitions, place: &mut Place<'_, Talk>, bytes: &Bytes) -> Result<(), Failure> {
        let (message, snapshot) = unpack(bytes).ok_or_else(|| Failure("a message that cannot be read".into()))?;
        let counts = snapshot > Timestamp::MIN && system.is_counted(place.true_ns);
        system.outcome.visits += u64::from(counts);
        // Snapshots are taken from the lower bound, so that is the clock that has to pass them.
        let wait_ns = (snapshot.physical_us() * 1_000).saturating_sub(place.now.interval.earliest_ns);
        if system.setup.protocol != Protocol::Literal || snapshot == Timestamp::MIN || wait_ns == 0 {
            return self.tell(place, Told::Message(message));
        }
        if counts {
            system.outcome.clock_waits += 1;
            system.outcome.clock_wait_ns += wait_ns;
        }
        self.last_early += 1;
        self.early.insert(self.last_early, message);
        place.act(Act::After(wait_ns, self.last_early));
        Ok(())
    }

    fn ask_oracle(&mut self, system: &Partitions, place: &mut Place<'_, Talk>) {
        // Batched: one request at a time, for all that wait.
        let batched = system.setup.protocol == Protocol::Batched;
        while !(self.to_ask.is_empty() || batched && !self.asked.is_empty()) {
            let count = if batched { self.to_ask.len() } else { 1 };
            let batch: Vec<(usize, u64)> = self.to_ask.drain(..count).collect();
            let bytes = [&[ASKS_ORACLE][..], &(batch.len() as u64).to_le_bytes()].concat();
            self.asked.push_back(batch);
            place.act(Act::Send(system.setup.oracle(), Class::Normal, bytes.into()));
        }
    }

    /// Everybody who was woken goes on, and whoever that wakes.
    fn run_sessions(&mut self, system: &mut Partitions, place: &mut Place<'_, Talk>) -> Result<(), Failure> {
        loop {
            let Some(id) = self.woken.lock().pop_first() else { break };
            let Some(session) = self.sessions.get_mut(&id).filter(|session| !session.is_asking()) else { continue };
            let waker = Waker::from(Arc::new(SessionWaker(self.woken.clone(), id)));
            let standing = session.turn(&self.member, &place.now, &waker);
            // Clock-SI's transactions bring their snapshot along.
            let snapshot = session.snapshot().unwrap_or(Timestamp::MIN);
            match standing {
                Standing::Oracle => self.to_ask.push_back(id),
                Standing::Brain => {}
                Standing::Ended(committed) => {
                    let Some(session) = self.sessions.remove(&id) else { continue };
                    place.act(Act::Tell(id.0, Talk::Done(id.1, committed, session.uncertain)));
                    if system.history.is_some() {
                        system.seen.insert(id, session.seen);
                    }
                }
            }
            let out = self.member.drain(&place.now);
            self.see_to(place, out, snapshot)?;
        }
        self.ask_oracle(system, place);
        Ok(())
    }

    fn tell(&mut self, place: &mut Place<'_, Talk>, told: Told) -> Result<(), Failure> {
        let out = self.member.step(&place.now, told).map_err(|e| Failure(format!("the node fails: {e}")))?;
        self.see_to(place, out, Timestamp::MIN)
    }

    fn see_to(&mut self, place: &mut Place<'_, Talk>, out: Outputs, snapshot: Timestamp) -> Result<(), Failure> {
        // All of it: what is left out here is never done. (Large commits find their places when a layer is closed, clocks and handovers are other worlds' matter.)
        let Outputs { records, messages, wakers, timer, flush, reads, place: _, clock_changes: _, handovers: _ } = out;
        self.waiting.extend(records);
        self.append(place)?;
        for Outgoing { message, after } in messages {
            match after.filter(|after| *after > self.durable) {
                Some(after) => self.held.push((after, snapshot, message)),
                None => send(place, &message, snapshot),
            }
        }
        wakers.into_iter().for_each(Waker::wake);
        if flush {
            self.flush(place)?;
        }
        if let Some(due) = timer.filter(|due| self.due.is_none_or(|known| *due < known)) {
            self.due = Some(due);
            let wait_ns = (due.physical_us() * 1_000).saturating_sub(place.now.interval.earliest_ns);
            place.act(Act::After(wait_ns + 1_000, DUE));
        }
        for read in reads {
            let out = self.member.read(|| place.now, read).map_err(|e| Failure(format!("read: {e}")))?;
            self.see_to(place, out, snapshot)?;
        }
        Ok(())
    }

    /// What waits goes to the log, unless a sync is on its way: what is written then belongs to the next.
    fn append(&mut self, place: &mut Place<'_, Talk>) -> Result<(), Failure> {
        let Some(last) = self.waiting.back().map(|record| record.number.0).filter(|_| self.syncing.is_none()) else {
            return Ok(());
        };
        let records = self.waiting.iter().map(|record| Bytes::copy_from_slice(&record.bytes));
        let at = self.log.append_all(records).map_err(|e| Failure(format!("append: {e}")))?;
        if at != last {
            return Err(Failure(format!("the log is at {at}, the node at {last}")));
        }
        self.waiting.clear();
        self.syncing = Some(last);
        place.act(Act::Sync);
        Ok(())
    }

    fn synced(&mut self, place: &mut Place<'_, Talk>) -> Result<(), Failure> {
        let Some(last) = self.syncing.take() else { return Ok(()) };
        self.log.write_and_sync().map_err(|e| Failure(format!("sync: {e}")))?;
        self.durable = RecordNumber(last);
        let ready: Vec<_> = self.held.extract_if(.., |(after, ..)| after.0 <= last).collect();
        for (_, snapshot, message) in ready {
            send(place, &message, snapshot);
        }
        self.append(place)?;
        self.tell(place, Told::Durable(RecordNumber(last)))
    }

    fn flush(&mut self, place: &mut Place<'_, Talk>) -> Result<(), Failure> {
        self.member.freeze(FreezeReason::Due);
        let versions = self.member.versions().clone();
        while versions.frozen_layers() > 0 {
            versions.flush().map_err(|e| Failure(format!("flush: {e}")))?;
        }
        self.tell(place, Told::Flushed)?;
        if self.waiting.is_empty() && self.syncing.is_none() {
            let oldest = self.member.oldest_record().0;
            self.log.truncate(oldest.saturating_sub(1)).map_err(|e| Failure(e.to_string()))?;
        }
        Ok(())
    }
}

/// Kind, class, sender, receiver and snapshot go before the message.
fn send(place: &mut Place<'_, Talk>, message: &Message, snapshot: Timestamp) {
    let (class, tag) = match message.class {
        NodeClass::Consensus => (Class::Urgent, 0),
        NodeClass::Request => (Class::Normal, 1),
        NodeClass::Bulk => (Class::Bulk, 2),
    };
    let (from, to) = (message.from.0.to_le_bytes(), message.to.0.to_le_bytes());
    let snapshot = snapshot.as_u64().to_le_bytes();
    let bytes = [&[OF_MEMBER, tag], &from[..], &to[..], &snapshot[..], &message.bytes[..]].concat();
    place.act(Act::Send(machine_of(message.to), class, bytes.into()));
}

/// Bytes before a member's message.
const HEAD_BYTES: usize = 18;

fn unpack(bytes: &Bytes) -> Option<(Message, Timestamp)> {
    let class = match bytes.get(1)? {
        0 => NodeClass::Consensus,
        1 => NodeClass::Request,
        _ => NodeClass::Bulk,
    };
    let node = |at: usize| Some(NodeId(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)));
    let snapshot = Timestamp::from_u64(u64::from_le_bytes(bytes.get(10..HEAD_BYTES)?.try_into().ok()?));
    Some((Message { from: node(2)?, to: node(6)?, class, bytes: bytes.slice(HEAD_BYTES..) }, snapshot))
}

//! A small world of many nodes: virtual time, a network that loses, delays, doubles and reorders, disks that lose what is not synced,
//! clocks that are off within their bounds. One seed gives one run.

use bytes::Bytes;
use clock::{LadderLimits, Reading, Status};
use node::cluster::{
    ClusterOptions, Founding, FreezeReason, Input, LogLimits, LongRead, MESSAGE_BYTES_MAX, Member, Message, NodeId,
    Opening, Outputs, Record, RecordNumber, TICK_NS, VERSION_MAX, VERSION_MIN,
};
use node::{NodeOptions, RangeId, Sabotage};
use protocol::door::Frame;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use store::{MemoryEngine, Versions, VersionsConfig};

pub const BEGIN_US: u64 = 1_700_000_000_000_000;
pub const TICK_US: u64 = TICK_NS / 1000;
pub const CLUSTER: u64 = 0xba11;

pub type Engine = Arc<MemoryEngine>;
pub type Node = Arc<Member<Engine>>;

#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed ^ 0x5851_f42d_4c95_7f2d)
    }
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.draw() % n }
    }
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How network and disks behave.
#[derive(Clone, Debug)]
pub struct Weather {
    pub loss_percent: u64,
    pub double_percent: u64,
    pub latency_us: (u64, u64),
    pub late_percent: u64,
    pub late_us: u64,
    pub sync_us: (u64, u64),
    pub cuts: BTreeSet<(u32, u32)>,
    /// Links that take so much longer, both ways, microseconds.
    pub far: BTreeMap<(u32, u32), u64>,
}

impl Weather {
    pub fn calm() -> Self {
        Weather {
            loss_percent: 0,
            double_percent: 0,
            latency_us: (1_000, 1_001),
            late_percent: 0,
            late_us: 0,
            sync_us: (500, 501),
            cuts: BTreeSet::new(),
            far: BTreeMap::new(),
        }
    }
    pub fn rough() -> Self {
        Weather {
            loss_percent: 2,
            double_percent: 10,
            latency_us: (200, 10_000),
            late_percent: 2,
            late_us: 2_000_000,
            sync_us: (100, 8_000),
            cuts: BTreeSet::new(),
            far: BTreeMap::new(),
        }
    }
}

/// A node's clock: off by so much, and never by more than it says.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    pub offset_us: i64,
    pub error_us: u64,
    /// What its source says of itself, if it is not well.
    pub lost: Option<Status>,
}

impl Watch {
    pub fn read(&self, true_us: u64) -> Reading {
        let mut reading = Reading::with_error(true_us.wrapping_add_signed(self.offset_us) * 1000, self.error_us * 1000);
        // What passes is counted by another clock.
        (reading.now_ns, reading.as_of_ns) = (true_us * 1000, true_us * 1000);
        if let Some(status) = self.lost {
            reading.status = status;
        }
        if self.lost == Some(Status::Unknown) {
            (reading.interval.earliest_ns, reading.interval.latest_ns) = (0, u64::MAX);
        }
        reading
    }
}

pub struct Machine {
    pub watch: Watch,
    pub engine: Engine,
    pub member: Option<Node>,
    pub life: u64,
    pub log: Vec<Record>,
    pub unsynced: Vec<Record>,
    held: Vec<(RecordNumber, Message)>,
    pub paused: bool,
    mailbox: Vec<Message>,
    options: ClusterOptions,
}

/// Whether a future is to be polled.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

struct Job {
    node: u32,
    life: u64,
    future: Pin<Box<dyn Future<Output = ()>>>,
    flag: Arc<Flag>,
}

/// What a client has: its node, and that node's clock.
#[derive(Clone)]
pub struct Env {
    pub member: Node,
    pub watch: Watch,
    pub true_us: Rc<Cell<u64>>,
}

impl Env {
    pub fn now(&self) -> Reading {
        self.watch.read(self.true_us.get())
    }
}

enum Event {
    Tick(u32, u64),
    Due(u32, u64),
    Deliver(Message),
    Synced(u32, u64, RecordNumber),
    Flush(u32, u64),
}

pub type Prepare = fn(&Sabotage);

pub struct World {
    pub true_us: Rc<Cell<u64>>,
    pub rng: Rng,
    pub weather: Weather,
    pub machines: BTreeMap<u32, Machine>,
    pub prepare: Prepare,
    events: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    jobs: BTreeMap<u64, Job>,
    pub digest: u64,
    /// Messages that a test wants to keep, to send them again later.
    pub overheard: Option<Vec<Message>>,
    /// Nodes that freeze what they are to flush, and flush nothing by themselves.
    pub holds_flushes: BTreeSet<u32>,
    /// Messages for which this says so are lost.
    pub lose: Option<fn(&Message) -> bool>,
    /// Reads that may take long are not done by themselves ([`World::read`]).
    pub holds_reads: bool,
    pub reads: Vec<(u32, u64, LongRead)>,
    /// Now and then somebody puts what is shown in its places; else only who freezes does.
    pub places: bool,
    limits: LogLimits,
    /// The cluster's version when a node starts.
    version: u16,
    versions: VersionsConfig,
}

pub fn key(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Ranges with their first keys, on these nodes.
pub fn founding(starts: &[&str], nodes: &[u32]) -> Vec<Founding> {
    let replicas: Vec<NodeId> = nodes.iter().map(|node| NodeId(*node)).collect();
    (1..)
        .zip(starts)
        .map(|(n, start)| Founding { range: RangeId(n), start: key(start), replicas: replicas.clone() })
        .collect()
}

/// Little is kept, so that whoever lags needs a snapshot.
fn limits_of(seed: u64) -> LogLimits {
    LogLimits { entries_kept: seed % 3 * 20, records_kept: 200, copied_bytes_per_tick: 1, ..LogLimits::default() }
}

impl World {
    pub fn new(seed: u64, nodes: u32, ranges: Vec<Founding>, prepare: Prepare) -> Self {
        Self::with(seed, nodes, ranges, prepare, limits_of(seed))
    }

    pub fn with(seed: u64, nodes: u32, ranges: Vec<Founding>, prepare: Prepare, limits: LogLimits) -> Self {
        Self::made(VERSION_MAX, seed, nodes, ranges, prepare, limits)
    }

    /// Of the first version.
    pub fn first(seed: u64, nodes: u32, ranges: Vec<Founding>, prepare: Prepare) -> Self {
        Self::of_version(VERSION_MIN, seed, nodes, ranges, prepare)
    }

    pub fn of_version(version: u16, seed: u64, nodes: u32, ranges: Vec<Founding>, prepare: Prepare) -> Self {
        Self::made(version, seed, nodes, ranges, prepare, limits_of(seed))
    }

    fn made(version: u16, seed: u64, nodes: u32, ranges: Vec<Founding>, prepare: Prepare, limits: LogLimits) -> Self {
        let mut world = Self::empty(version, seed, prepare, limits, VersionsConfig::default());
        for node in 1..=nodes {
            world.add(seed, node, ranges.clone());
        }
        world
    }

    /// Of nodes with other settings of their stores.
    pub fn stored(
        seed: u64,
        nodes: u32,
        ranges: Vec<Founding>,
        prepare: Prepare,
        limits: LogLimits,
        versions: VersionsConfig,
    ) -> Self {
        let mut world = Self::empty(VERSION_MAX, seed, prepare, limits, versions);
        for node in 1..=nodes {
            world.add(seed, node, ranges.clone());
        }
        world
    }

    fn empty(version: u16, seed: u64, prepare: Prepare, limits: LogLimits, versions: VersionsConfig) -> Self {
        World {
            true_us: Rc::new(Cell::new(BEGIN_US)),
            rng: Rng::new(seed),
            weather: Weather::calm(),
            machines: BTreeMap::new(),
            prepare,
            events: BTreeMap::new(),
            sequence: 0,
            jobs: BTreeMap::new(),
            digest: 0,
            overheard: None,
            holds_flushes: BTreeSet::new(),
            lose: None,
            places: true,
            holds_reads: false,
            reads: Vec::new(),
            limits,
            version,
            versions,
        }
    }

    /// A new machine, with an empty disk.
    pub fn add(&mut self, seed: u64, node: u32, ranges: Vec<Founding>) {
        self.add_off(seed, node, ranges);
        self.start(node);
    }

    /// As [`World::add`]; nothing runs on it yet.
    pub fn add_off(&mut self, seed: u64, node: u32, ranges: Vec<Founding>) {
        let error_us = 500 + self.rng.below(20_000);
        let offset_us = self.rng.below(2 * error_us) as i64 - error_us as i64;
        let options = ClusterOptions {
            cluster: CLUSTER,
            node: NodeId(node),
            ranges,
            versions: VERSION_MIN..=VERSION_MAX,
            version: self.version,
            seed: seed * 100 + u64::from(node),
            limits: self.limits,
            node_options: NodeOptions {
                // Wide, for schedules that need it.
                ladder: LadderLimits { hybrid_error_ns: 10_000_000_000, ..LadderLimits::default() },
                ..NodeOptions::default()
            },
        };
        let machine = Machine {
            watch: Watch { offset_us, error_us, lost: None },
            engine: Engine::default(),
            member: None,
            life: 0,
            log: Vec::new(),
            unsynced: Vec::new(),
            held: Vec::new(),
            paused: false,
            mailbox: Vec::new(),
            options,
        };
        self.machines.insert(node, machine);
    }

    /// From its next start on a node's program knows the versions of the cluster up to this.
    pub fn set_program(&mut self, node: u32, newest: u16) {
        self.machines.get_mut(&node).unwrap().options.versions = VERSION_MIN..=newest;
    }

    /// A node's clock is off by so much, and says how much that may be.
    pub fn set_watch(&mut self, node: u32, offset_us: i64, error_us: u64) {
        assert!(offset_us.unsigned_abs() <= error_us, "bounds hold");
        self.machines.get_mut(&node).unwrap().watch = Watch { offset_us, error_us, lost: None };
    }

    /// A node's clock is wrong from now on, and says so or does not.
    pub fn break_watch(&mut self, node: u32, offset_us: i64, lost: Option<Status>) {
        let watch = &mut self.machines.get_mut(&node).unwrap().watch;
        (watch.offset_us, watch.lost) = (offset_us, lost);
    }

    pub fn now_us(&self) -> u64 {
        self.true_us.get()
    }

    fn later(&mut self, after_us: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now_us() + after_us, self.sequence), event);
    }

    pub fn member(&self, node: u32) -> &Node {
        self.machines[&node].member.as_ref().expect("it runs")
    }

    pub fn env(&self, node: u32) -> Env {
        let machine = &self.machines[&node];
        let member = machine.member.clone().expect("it runs");
        Env { member, watch: machine.watch.clone(), true_us: self.true_us.clone() }
    }

    /// The process starts: reads engine and log.
    pub fn start(&mut self, node: u32) {
        self.try_start(node).unwrap();
    }

    /// As [`World::start`]: what the store says against it.
    pub fn try_start(&mut self, node: u32) -> Result<(), store::StoreError> {
        let tick_us = self.rng.below(TICK_US);
        let now_us = self.now_us();
        let machine = self.machines.get_mut(&node).unwrap();
        machine.life += 1;
        let now = machine.watch.read(now_us);
        let versions = Versions::open(machine.engine.clone(), self.versions.clone()).unwrap();
        let sabotage = Sabotage::default();
        (self.prepare)(&sabotage);
        let mut opening = Opening::with(machine.options.clone(), Arc::new(versions), &now, sabotage)?;
        for record in &machine.log {
            opening.replay(record.number.0, &Bytes::from(record.bytes.clone()))?;
        }
        machine.member = Some(opening.finish(&now)?);
        let life = machine.life;
        self.later(tick_us, Event::Tick(node, life));
        self.drain(node);
        Ok(())
    }

    /// The process dies; of what was not synced the disk has some.
    pub fn crash(&mut self, node: u32) {
        let machine = self.machines.get_mut(&node).unwrap();
        let kept = self.rng.below(machine.unsynced.len() as u64 + 1) as usize;
        machine.member = None;
        machine.life += 1;
        machine.paused = false;
        machine.log.extend(machine.unsynced.drain(..).take(kept));
        machine.held.clear();
        machine.mailbox.clear();
        machine.engine.crash(0);
        self.jobs.retain(|_, job| job.node != node);
    }

    /// A copy of what the disk of a node holds: engine and log.
    pub fn disk(&self, node: u32) -> (Engine, Vec<Record>) {
        let machine = &self.machines[&node];
        let engine = machine.engine.copy();
        engine.crash(0);
        (Arc::new(engine), machine.log.clone())
    }

    /// The process has died, and its disk is as it was when the copy was made.
    pub fn go_back(&mut self, node: u32, (engine, log): (Engine, Vec<Record>)) {
        let machine = self.machines.get_mut(&node).unwrap();
        assert!(machine.member.is_none(), "it runs");
        (machine.engine, machine.log) = (engine, log);
    }

    /// Who of those that run would not hear a node that was just started: what it told them is not in its log (the transport asks that at each handshake).
    pub fn who_refuses(&self, node: u32) -> Vec<u32> {
        let end = self.member(node).began_after();
        let others = self.machines.iter().filter(|(other, machine)| **other != node && machine.member.is_some());
        others.filter(|(other, _)| self.member(**other).heard_of(NodeId(node)) > end).map(|(other, _)| *other).collect()
    }

    pub fn runs(&self, node: u32) -> bool {
        self.machines[&node].member.is_some()
    }

    pub fn pause(&mut self, node: u32) {
        self.machines.get_mut(&node).unwrap().paused = true;
    }

    pub fn resume(&mut self, node: u32) {
        let machine = self.machines.get_mut(&node).unwrap();
        machine.paused = false;
        for message in std::mem::take(&mut machine.mailbox) {
            self.event(Event::Deliver(message));
        }
    }

    /// Freezes, flushes, and lets go of the log.
    pub fn flush(&mut self, node: u32) {
        self.member(node).freeze(FreezeReason::Due);
        self.flush_frozen(node);
    }

    /// What is frozen already.
    pub fn flush_frozen(&mut self, node: u32) {
        let member = self.member(node).clone();
        while member.versions().frozen_layers() > 0 {
            member.versions().flush().unwrap();
        }
        self.input(node, Input::Flushed);
        let oldest = member.oldest_record();
        let machine = self.machines.get_mut(&node).unwrap();
        machine.log.retain(|record| record.number >= oldest);
    }

    pub fn input(&mut self, node: u32, input: Input) {
        let now_us = self.now_us();
        let machine = &self.machines[&node];
        let Some(member) = machine.member.clone() else { return };
        let now = machine.watch.read(now_us);
        let out = member.step(&now, input).unwrap_or_else(|why| panic!("n{node} fails: {why}"));
        self.handle(node, out);
    }

    pub fn drain(&mut self, node: u32) {
        let machine = &self.machines[&node];
        let Some(member) = machine.member.clone() else { return };
        let now = machine.watch.read(self.now_us());
        let out = member.drain(&now);
        self.handle(node, out);
    }

    fn handle(&mut self, node: u32, out: Outputs) {
        let life = self.machines[&node].life;
        for record in &out.records {
            self.mix(&record.bytes);
        }
        if let Some(last) = out.records.last().map(|record| record.number) {
            let (least, most) = self.weather.sync_us;
            let sync_us = least + self.rng.below(most - least);
            self.later(sync_us, Event::Synced(node, life, last));
        }
        let machine = self.machines.get_mut(&node).unwrap();
        machine.unsynced.extend(out.records);
        let durable = machine.log.last().map_or(RecordNumber(0), |record| record.number);
        let mut now = Vec::new();
        for outgoing in out.messages {
            assert!(outgoing.message.bytes.len() <= MESSAGE_BYTES_MAX, "a message that can never be sent");
            match outgoing.after {
                Some(after) if after > durable => machine.held.push((after, outgoing.message)),
                _ => now.push(outgoing.message),
            }
        }
        now.into_iter().for_each(|message| self.send(message));
        out.wakers.into_iter().for_each(Waker::wake);
        if out.place && self.places && self.rng.percent(30) {
            self.member(node).versions().place(1);
        }
        if out.flush {
            self.later(5_000, Event::Flush(node, life));
        }
        if let Some(timer) = out.timer {
            let now = self.machines[&node].watch.read(self.now_us()).interval.earliest();
            let after_us = timer.physical_us().saturating_sub(now.physical_us()) + 1;
            self.later(after_us.min(TICK_US), Event::Due(node, life));
        }
        self.reads.extend(out.reads.into_iter().map(|read| (node, life, read)));
        if !self.holds_reads {
            self.read();
        }
    }

    /// Does the reads that wait for somebody who does them.
    pub fn read(&mut self) {
        for (node, life, read) in std::mem::take(&mut self.reads) {
            let machine = &self.machines[&node];
            if let Some(member) = machine.member.clone().filter(|_| machine.life == life) {
                let now = || machine.watch.read(self.now_us());
                let out = member.read(now, read).unwrap_or_else(|why| panic!("n{node} fails: {why}"));
                self.handle(node, out);
            }
        }
    }

    /// An older program would drop what it cannot read, and whoever said it would wait for nothing.
    fn check_that_it_reads(&self, message: &Message) {
        let newest = *self.machines[&message.to.0].options.versions.end();
        let needs = || Frame::decode(&message.bytes).map_or(0, |frame| frame.body.needs_version());
        assert!(newest == VERSION_MAX || needs() <= newest, "{:?} was sent what its program cannot read", message.to);
    }

    fn mix(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub fn send(&mut self, message: Message) {
        self.mix(&message.bytes);
        if let Some(overheard) = &mut self.overheard {
            overheard.push(message.clone());
        }
        if self.lose.is_some_and(|lose| lose(&message)) {
            return;
        }
        if self.weather.cuts.contains(&(message.from.0, message.to.0)) || self.rng.percent(self.weather.loss_percent) {
            return;
        }
        let copies = 1 + u64::from(self.rng.percent(self.weather.double_percent));
        for _ in 0..copies {
            let (least, most) = self.weather.latency_us;
            let late =
                if self.rng.percent(self.weather.late_percent) { self.rng.below(self.weather.late_us) } else { 0 };
            let (from, to) = (message.from.0, message.to.0);
            let far = self.weather.far.get(&(from.min(to), from.max(to))).copied().unwrap_or(0);
            let latency_us = least + self.rng.below(most - least) + late + far;
            self.later(latency_us, Event::Deliver(message.clone()));
        }
    }

    /// Runs for so long.
    pub fn run(&mut self, us: u64) {
        let until = self.now_us() + us;
        self.poll_jobs();
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= until) {
            self.true_us.set(entry.key().0);
            let event = entry.remove();
            self.event(event);
            self.poll_jobs();
        }
        self.true_us.set(until);
    }

    /// Runs until something holds; for a minute at most.
    #[track_caller]
    pub fn until(&mut self, what: &str, holds: impl Fn(&World) -> bool) {
        for _ in 0..6000 {
            if holds(self) {
                return;
            }
            self.run(10_000);
        }
        panic!("it never came to it: {what}");
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Tick(node, life) if self.machines[&node].life == life => {
                self.later(TICK_US, Event::Tick(node, life));
                if !self.machines[&node].paused {
                    self.input(node, Input::Tick);
                }
            }
            Event::Due(node, life) if self.machines[&node].life == life && !self.machines[&node].paused => {
                self.input(node, Input::Due);
            }
            Event::Flush(node, life) if self.machines[&node].life == life => match self.holds_flushes.contains(&node) {
                true => drop(self.member(node).freeze(FreezeReason::Due)),
                false => self.flush(node),
            },
            Event::Tick(..) | Event::Due(..) | Event::Flush(..) => {}
            Event::Deliver(message) => {
                let to = message.to.0;
                let Some(machine) = self.machines.get_mut(&to) else { return };
                if machine.paused {
                    machine.mailbox.push(message);
                } else {
                    self.check_that_it_reads(&message);
                    self.input(to, Input::Message(message));
                }
            }
            Event::Synced(node, life, upto) => {
                let machine = self.machines.get_mut(&node).unwrap();
                if machine.life != life {
                    return;
                }
                if machine.paused {
                    return self.later(TICK_US, Event::Synced(node, life, upto));
                }
                let done = machine.unsynced.iter().take_while(|record| record.number <= upto).count();
                machine.log.extend(machine.unsynced.drain(..done));
                let (go, stay) = std::mem::take(&mut machine.held).into_iter().partition(|(after, _)| *after <= upto);
                machine.held = stay;
                let go: Vec<(RecordNumber, Message)> = go;
                go.into_iter().for_each(|(_, message)| self.send(message));
                self.input(node, Input::Durable(upto));
            }
        }
    }

    /// A client at a node.
    pub fn spawn(&mut self, node: u32, job: impl FnOnce(Env) -> Pin<Box<dyn Future<Output = ()>>>) {
        let future = job(self.env(node));
        let life = self.machines[&node].life;
        self.sequence += 1;
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        self.jobs.insert(self.sequence, Job { node, life, future, flag });
    }

    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    fn poll_jobs(&mut self) {
        loop {
            let due = |(_, job): &(&u64, &Job)| job.flag.0.load(SeqCst) && !self.machines[&job.node].paused;
            let Some(id) = self.jobs.iter().find(due).map(|(id, _)| *id) else { return };
            let mut job = self.jobs.remove(&id).expect("it is there");
            job.flag.0.store(false, SeqCst);
            let waker = Waker::from(job.flag.clone());
            let node = job.node;
            let done = job.future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
            if !done && self.machines[&node].life == job.life {
                self.jobs.insert(id, job);
            }
            self.drain(node);
        }
    }

    /// Runs a client to its end; its result.
    #[track_caller]
    pub fn ask<T: 'static>(&mut self, node: u32, job: impl AsyncFnOnce(Env) -> T + 'static) -> T {
        let result = Rc::new(Cell::new(None));
        let cell = result.clone();
        self.spawn(node, move |env| Box::pin(async move { cell.set(Some(job(env).await)) }));
        for _ in 0..6000 {
            self.run(10_000);
            if let Some(result) = result.take() {
                return result;
            }
        }
        panic!("the client at n{node} waits for ever");
    }

    /// The node that leads a range under a lease.
    pub fn leader(&self, range: u64) -> Option<u32> {
        let term = |node: &u32| {
            let member = self.machines[node].member.as_ref()?;
            let status = member.status(RangeId(range))?;
            status.lease.map(|_| status.term)
        };
        self.machines.keys().filter(|node| term(node).is_some()).max_by_key(|node| term(node)).copied()
    }

    pub fn await_leader(&mut self, range: u64) -> u32 {
        self.until("a leader with a lease", |world| world.leader(range).is_some());
        self.leader(range).expect("one")
    }

    pub fn cut_off(&mut self, node: u32) {
        for other in self.machines.keys().copied().filter(|other| *other != node) {
            self.weather.cuts.insert((node, other));
            self.weather.cuts.insert((other, node));
        }
    }

    pub fn heal(&mut self) {
        self.weather.cuts.clear();
    }

    fn show_difference(&self, one: u32, other: u32) {
        let all =
            |node| self.member(node).versions().histories_in(&(key("")..key("~")), 10_000, usize::MAX).unwrap().keys;
        let (one, other): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (all(one).into_iter().collect(), all(other).into_iter().collect());
        for (key, history) in &other {
            if one.get(key) != Some(history) {
                eprintln!("{key:?}:\n  {history:?}\n  {:?}", one.get(key));
            }
        }
        for (key, history) in &one {
            if other.get(key) != Some(history) {
                eprintln!("{key:?}:\n  {history:?}\n  {:?}", other.get(key));
            }
        }
    }

    /// All replicas that run have applied the same, and hold the same.
    #[track_caller]
    pub fn check_replicas(&self) {
        let mut seen: BTreeMap<(RangeId, u64), (u64, u32)> = BTreeMap::new();
        for (node, machine) in &self.machines {
            let Some(member) = &machine.member else { continue };
            for range in member.ranges() {
                let (applied, digest) = member.digest(range).unwrap();
                let (first, on) = *seen.entry((range, applied)).or_insert((digest, *node));
                if first != digest {
                    self.show_difference(on, *node);
                }
                assert_eq!(first, digest, "{range} at {applied} differs on n{on} and n{node}");
            }
        }
    }
}

/// Yields once: to be woken by the world.
pub async fn poll_fn<T>(f: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    std::future::poll_fn(f).await
}

//! The event loop: virtual time, one machine, several sessions, faults.
//!
//! What happens to the clock is in `weather`.
//!
//! One law: one event, then everything that it woke, later. Nothing here reads a real clock or an unseeded number, and all
//! containers are ordered, so one seed gives one trace.

mod weather;

use crate::agenda::Agenda;
use crate::client::{Client, Next, Turn};
use crate::clock::{Blind, MIDNIGHT_NS, SimClock};
use crate::machine::{Failure, Machine, Prepare};
use crate::plan::Plan;
use crate::probes::Probes;
use crate::references;
use crate::rng::Rng;
use crate::trace::{Show, Trace};
use crate::workload::{ACCOUNTS, ACCOUNTS_INDEX, REGISTERS, Script, Step, decode_value, encode_key};
use checker::storage::Stored;
use checker::{History, Key};
use clock::Timestamp;
use node::{NodeOptions, Outputs, Ticket};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use store::VersionsConfig;
use store::versions::SHOW_MIN;
use store::versions::{Apart, Threshold};

/// True time at which every run begins, nanoseconds since the Unix epoch.
pub const START_NS: u64 = MIDNIGHT_NS - 3_000_000_000;
/// A run that has not come to rest this long after its last fault hangs.
const REST_NS: u64 = 20_000_000_000;

/// Buckets of the past a quarter of a second wide: runs are short, and whole buckets should go.
const PAST_BUCKET_SHIFT: u32 = 30;

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A session goes on.
    Client(usize),
    /// The sync that was on its way is done; counts only for the life of the machine that began it.
    Synced(u64),
    /// Time passes for the node, now and then.
    Tick(u64),
    /// What the node's gate waits for is past.
    Timer(u64),
    /// Freeze, flush, truncate.
    Flush,
    /// Raise the threshold of collection, or collect.
    Collect,
    /// Split a range.
    Split,
    /// Something happens to the clock.
    Trouble,
    /// The clock's poller asks the daemon; counts only for the life of the process that began it.
    Poll(u64),
    /// A peer's message arrives, with its interval.
    Peer(u32),
    /// The disk fills up, or has space again.
    DiskFull(bool),
    /// Power fails.
    Crash,
    /// The node is asked to stop.
    Stop,
    /// Its process ends; counts only for the life of the machine that was asked to stop.
    Off(u64),
    /// Power returns, or the node is started again.
    Start,
}

/// Wakes sessions: written by the node's wakers, read by the loop.
#[derive(Default)]
struct Woken(Mutex<Vec<usize>>);

struct ClientWaker {
    woken: Arc<Woken>,
    client: usize,
}

impl Wake for ClientWaker {
    fn wake(self: Arc<Self>) {
        self.woken.0.lock().push(self.client);
    }
}

/// Rules to break in a run: none, unless the simulator itself is tested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controls {
    /// Called with each node that is opened.
    pub prepare: Option<Prepare>,
    /// What the clock's tracker is not told of.
    pub blind: Option<Blind>,
    /// A rule of the store's.
    pub store: Option<store::versions::Sabotage>,
}

/// The simulated world.
pub struct World {
    rng: Rng,
    plan: Plan,
    machine: Machine,
    clients: Vec<Client>,
    wakers: Vec<Waker>,
    woken: Arc<Woken>,
    agenda: Agenda<Event>,
    /// Counts the lives of the machine.
    era: u64,
    /// Before this the node may not serve: what was replayed is not certainly past.
    ready: bool,
    last_id: u64,
    draining: bool,
    tickets: Vec<Ticket>,
    /// Mean time between clean stops, nanoseconds; 0: none.
    stop_ns: u64,
    /// The node was asked to stop and has not ended; what a full disk had refused by then.
    stopping: Option<u64>,
    /// When each session's next planned event is.
    due: Vec<u64>,
    /// When the next timer rings.
    timer: Option<u64>,
    /// How long the machine slept altogether: no deadline counts it.
    slept_ns: u64,
    /// Since when all peers prove the node's bound wrong.
    proved_ns: Option<u64>,
    proofs: BTreeMap<u32, bool>,
    /// What each peer's next message says against the node's last claim, nanoseconds.
    accusations: BTreeMap<u32, u64>,
    earlier: BTreeMap<u64, u64>,
    /// What this life of the node acknowledged, and when.
    acknowledged: Vec<(u64, Timestamp)>,
    trace: Trace,
    /// Rare paths.
    pub probes: Probes,
}

impl World {
    /// A world from a seed.
    pub fn new(seed: u64, controls: Controls, show: Show) -> Self {
        let mut rng = Rng::new(seed);
        let mut plan = Plan::draw(&mut rng);
        if let Some(blind) = controls.blind {
            plan.expose(blind);
        }
        let mut clock = SimClock::new(plan.clock, START_NS, plan.leap, plan.alone, &mut rng);
        clock.blind(controls.blind);
        let lease_ns = rng.pick(&[10_000_000, 100_000_000]).unwrap_or(0);
        let options = NodeOptions { alone: plan.alone, ladder: plan.ladder, lease_ns, ..NodeOptions::default() };
        let stop_ns = rng.pick(&[0, 500_000_000, 2_000_000_000]).unwrap_or(0);
        let cache_bytes = rng.pick(&[0, 30_000, 1 << 20]).unwrap_or(0);
        let sabotage = controls.store;
        let bucket_shift = PAST_BUCKET_SHIFT;
        // In every other world commits of a few writes are large ones.
        let show_min = if seed.is_multiple_of(2) { 2 } else { SHOW_MIN };
        let config = VersionsConfig { cache_bytes, bucket_shift, show_min, sabotage, ..VersionsConfig::default() };
        let mut machine = Machine::new(rng.draw(), clock, options, config);
        machine.prepare_with(controls.prepare);
        let woken = Arc::new(Woken::default());
        let clients: Vec<Client> =
            (0..plan.clients).map(|n| Client::new(u32::try_from(n).unwrap_or(0), rng.fork())).collect();
        let waker = |client| Waker::from(Arc::new(ClientWaker { woken: woken.clone(), client }));
        let wakers = (0..plan.clients).map(waker).collect();
        let plan_clients = plan.clients;
        let mut world = World {
            rng,
            plan,
            machine,
            clients,
            wakers,
            woken,
            agenda: Agenda::new(START_NS),
            era: 0,
            ready: false,
            last_id: 0,
            draining: false,
            tickets: Vec::new(),
            stop_ns,
            stopping: None,
            due: vec![0; plan_clients],
            timer: None,
            slept_ns: 0,
            proved_ns: None,
            proofs: BTreeMap::new(),
            accusations: BTreeMap::new(),
            earlier: BTreeMap::new(),
            acknowledged: Vec::new(),
            trace: Trace::new(START_NS, show),
            probes: Probes::default(),
        };
        world.trace(&format!("seed {seed}, {:?}", world.plan));
        world
    }

    /// The layout of this run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Whether clock bounds hold in this run.
    pub fn bounds_hold(&self) -> bool {
        self.machine.clock.is_honest()
    }

    /// The hash of everything that happened, and the lines that were kept.
    pub fn traced(&self) -> (u64, Vec<String>) {
        (self.trace.hash(), self.trace.clone().lines())
    }

    /// How many events there were, and how much virtual time passed, nanoseconds.
    pub fn pace(&self) -> (u64, u64) {
        (self.agenda.happened(), self.true_ns() - START_NS)
    }

    fn true_ns(&self) -> u64 {
        self.agenda.now_ns()
    }

    fn trace(&mut self, what: &str) {
        self.trace.say(self.agenda.now_ns(), what);
    }

    fn at(&mut self, when: u64, event: Event) {
        self.agenda.at(when, event);
    }

    fn after(&mut self, ns: u64, event: Event) {
        self.agenda.after(ns, event);
    }

    /// Runs to the end: load, chaos, rest, a last crash; gives what clients saw and what is stored.
    ///
    /// # Errors
    /// The product broke a rule that ends the run: it says which.
    pub fn run(&mut self) -> Result<(History, Stored), Failure> {
        self.start()?;
        self.load()?;
        self.schedule_faults();
        let end = self.awake_ns() + self.plan.length_ns;
        self.until(|world| world.awake_ns() >= end, end + REST_NS)?;
        self.rest()?;
        let before = self.dump()?;
        self.crash();
        self.start()?;
        let deadline = self.awake_ns() + REST_NS;
        self.until(|world| world.ready && world.is_quiet(), deadline)?;
        let stored = self.dump()?;
        self.machine.count(&mut self.probes);
        if let Some(what) = differs(&before, &stored) {
            return Err(Failure(format!("the last crash changed what is stored: {what}")));
        }
        if let Some(node) = self.machine.node() {
            let failed = |e: store::StoreError| Failure(format!("what is stored cannot be read: {e}"));
            if let Some(orphan) = references::orphan(node).map_err(failed)? {
                return Err(Failure(orphan));
            }
        }
        let mut txns: Vec<checker::Txn> = self.clients.iter_mut().flat_map(|c| std::mem::take(&mut c.done)).collect();
        txns.sort_by_key(|t| t.id);
        for txn in &txns {
            self.trace(&format!("{txn:?}"));
        }
        Ok((History { txns }, stored))
    }

    /// Fills registers and accounts in one transaction, before there are faults.
    fn load(&mut self) -> Result<(), Failure> {
        let puts = (0..REGISTERS).chain(ACCOUNTS).map(Step::Put);
        let steps = std::iter::once(Step::Statement).chain(puts).chain([Step::Commit]).collect();
        // Whatever the clock is worth.
        let options = node::BeginOptions { consistency: node::Consistency::Token, ..node::BeginOptions::default() };
        self.clients[0].run(Script { options, past_us: 0, steps });
        self.draining = true;
        self.after(1000, Event::Client(0));
        let deadline = self.awake_ns() + REST_NS;
        self.until(|world| world.clients[0].done.len() == 1 && world.is_quiet(), deadline)?;
        self.draining = false;
        for n in 0..self.clients.len() {
            let delay = self.rng.below(5_000_000);
            self.after(delay, Event::Client(n));
        }
        Ok(())
    }

    fn schedule_faults(&mut self) {
        let length = self.plan.length_ns;
        let end = self.true_ns() + length;
        for (event, mean) in [
            (Event::Flush, 150_000_000),
            (Event::Collect, 300_000_000),
            (Event::Split, 400_000_000),
            (Event::Trouble, 300_000_000),
            (Event::DiskFull(true), 2_000_000_000),
            (Event::Crash, self.plan.crash_ns),
            (Event::Stop, self.stop_ns),
        ] {
            let mut when = self.true_ns();
            if mean == 0 {
                continue;
            }
            loop {
                when += self.rng.range(mean / 4, mean * 2);
                if when >= end {
                    break;
                }
                self.at(when, event);
            }
        }
    }

    /// No more faults and no new transactions: everything that runs must end.
    fn rest(&mut self) -> Result<(), Failure> {
        self.trace("rest");
        self.draining = true;
        self.machine.disk.set_capacity(None);
        let ends = |e: &Event| {
            matches!(
                e,
                Event::Crash | Event::Stop | Event::DiskFull(true) | Event::Split | Event::Collect | Event::Trouble
            )
        };
        self.agenda.retain(|e| !ends(e));
        self.machine.clock.heal(self.true_ns());
        let rests = |world: &World| world.ready && world.clients.iter().all(|c| !c.is_busy());
        let (patience, deadline) = (self.awake_ns() + REST_NS / 2, self.awake_ns() + 2 * REST_NS);
        self.until(|world| rests(world) || world.awake_ns() >= patience, deadline)?;
        if !rests(self) && self.ready && self.machine.now(self.true_ns()).trusted().is_none() {
            // After a step what was known before and what the source says may dispute for minutes, with nobody believed: an operator starts the machine again.
            self.crash();
            self.after(1_000_000, Event::Start);
        }
        let deadline = self.awake_ns() + REST_NS;
        self.until(rests, deadline)?;
        // Undecided transactions are looked into by ticks, and what a full disk refused is proposed again by them.
        let settled = self.awake_ns() + 3 * node::UNDECIDED_AFTER_NS;
        self.until(|world| world.awake_ns() >= settled && world.is_quiet(), deadline + REST_NS)
    }

    /// Nothing is on its way to the disk, and no prepare is undecided.
    fn is_quiet(&self) -> bool {
        self.machine.is_quiet()
    }

    fn until(&mut self, done: impl Fn(&World) -> bool, deadline: u64) -> Result<(), Failure> {
        while !done(self) {
            let Some(event) = self.agenda.advance() else {
                return Err(Failure("nothing is left to happen, and the run is not at its end".into()));
            };
            if self.awake_ns() > deadline {
                let busy = self.clients.iter().filter(|c| c.is_busy()).map(Client::describe);
                let busy = busy.collect::<Vec<_>>().join("; ");
                let node = self.machine.node().map(|n| (n.lock_counts(), n.ready_at(), n.clock_last()));
                return Err(Failure(format!("the run hangs: ready {}, node {node:?}: {busy}", self.ready)));
            }
            self.event(event)?;
            self.settle()?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event) -> Result<(), Failure> {
        if !matches!(event, Event::Client(_) | Event::Tick(_) | Event::Timer(_) | Event::Poll(_) | Event::Peer(_)) {
            self.trace(&format!("{event:?}"));
        }
        let mut out = Vec::new();
        match event {
            Event::Client(n) => self.client(n)?,
            Event::Synced(era) if era == self.era => self.machine.sync_done(self.true_ns(), &mut out)?,
            Event::Tick(era) if era == self.era => {
                self.machine.tick(self.true_ns(), &mut out)?;
                self.after(200_000_000, Event::Tick(era));
            }
            Event::Timer(era) if era == self.era => {
                self.timer = None;
                self.machine.tick(self.true_ns(), &mut out)?;
            }
            Event::Synced(_) | Event::Tick(_) | Event::Timer(_) => {}
            Event::Flush => self.machine.flush(&mut self.probes)?,
            Event::Collect => self.collect()?,
            Event::Split => self.split(),
            Event::Trouble => self.trouble()?,
            Event::Poll(era) if era == self.era => self.poll(),
            Event::Poll(_) => {}
            Event::Peer(peer) => self.peer(peer, &mut out)?,
            Event::DiskFull(full) => {
                self.machine.disk.set_capacity(full.then_some(0));
                self.machine.engine.set_full(full);
                if full {
                    let delay = self.rng.range(10_000_000, 300_000_000);
                    self.after(delay, Event::DiskFull(false));
                }
            }
            // A machine that is off cannot crash again: its start is on its way already.
            Event::Crash if self.machine.running.is_none() => {}
            Event::Crash => {
                self.crash();
                let delay = self.rng.range(1_000_000, 100_000_000);
                self.after(delay, Event::Start);
            }
            Event::Stop => self.stop(),
            Event::Off(era) if era == self.era => self.off()?,
            Event::Off(_) => {}
            Event::Start => self.start()?,
        }
        self.take(out)
    }

    /// Wakers and timers of the node's outputs.
    fn take(&mut self, outputs: Vec<Outputs>) -> Result<(), Failure> {
        for out in outputs {
            self.note_levels(&out.clock_changes)?;
            out.wakers.into_iter().for_each(Waker::wake);
            if let Some(timer) = out.timer {
                let when = self.machine.clock.when(timer.physical_us(), self.true_ns());
                if self.timer.is_none_or(|known| when < known) {
                    let era = self.era;
                    self.timer = Some(when);
                    self.at(when, Event::Timer(era));
                }
            }
        }
        Ok(())
    }

    /// What an event left to do: the log, the woken.
    fn settle(&mut self) -> Result<(), Failure> {
        let mut out = Vec::new();
        if self.machine.append(self.true_ns(), &mut out, &mut self.probes)? {
            let delay =
                if self.rng.chance(5) { self.rng.range(1, 40) * 1_000_000 } else { self.rng.range(60_000, 300_000) };
            let era = self.era;
            self.after(delay, Event::Synced(era));
        }
        self.take(out)?;
        let woken = std::mem::take(&mut *self.woken.0.lock());
        for n in woken {
            let delay = self.rng.below(50_000);
            self.after(delay, Event::Client(n));
        }
        // Spurious wake-ups are allowed, so they happen.
        if self.rng.chance(1) {
            let n = usize::try_from(self.rng.below(self.clients.len() as u64)).unwrap_or(0);
            if self.clients[n].is_busy() {
                self.after(1, Event::Client(n));
            }
        }
        self.probe_tickets();
        Ok(())
    }

    fn client(&mut self, n: usize) -> Result<(), Failure> {
        let Some(node) = self.machine.node().cloned() else { return Ok(()) };
        let now = self.machine.now(self.true_ns());
        self.check_bound()?;
        if !self.ready {
            if !node.is_ready(&now) {
                self.after(1_000_000, Event::Client(n));
                return Ok(());
            }
            self.ready = true;
        }
        let mut broken = None;
        let fenced = self.is_proved();
        let before = self.clients[n].done.len();
        let true_ns = self.true_ns();
        let next = self.clients[n].turn(&mut Turn {
            true_ns,
            now,
            node: &node,
            waker: &self.wakers[n],
            last_id: &mut self.last_id,
            probes: &mut self.probes,
            draining: self.draining,
            awake_ns: true_ns - self.slept_ns,
            acknowledged: &self.acknowledged,
            fenced,
            broken: &mut broken,
        });
        if let Some(what) = broken {
            return Err(Failure(what));
        }
        for at in before..self.clients[n].done.len() {
            let txn = &self.clients[n].done[at];
            if txn.outcome == checker::Outcome::Committed && txn.writes() && txn.ended != u64::MAX {
                self.acknowledged.push((self.true_ns() - self.slept_ns, Timestamp::from_u64(txn.position)));
            }
            let line = format!("session {n}: {} {:?} {:?} at {}", txn.id, txn.isolation, txn.outcome, txn.position);
            self.trace(&line);
        }
        // One event per session is planned, however often it was woken meanwhile: else events breed events.
        if let Next::At(when) = next
            && (self.due[n] <= self.true_ns() || when < self.due[n])
        {
            self.due[n] = when;
            self.at(when, Event::Client(n));
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), Failure> {
        self.era += 1;
        self.ready = false;
        let events = self.machine.clock.restart(self.true_ns(), &mut self.rng);
        self.note_clock(&events);
        let ready = self.machine.start(self.true_ns(), &mut self.probes)?;
        let era = self.era;
        self.after(1_000_000, Event::Tick(era));
        self.after(crate::clock::POLL_EVERY_NS, Event::Poll(era));
        if era == 1 && !self.plan.alone {
            (2..2 + weather::PEERS).for_each(|peer| self.after(weather::PEER_EVERY_NS, Event::Peer(peer)));
        }
        self.trace(&format!("started, serves from {ready}"));
        self.remember()?;
        for n in 0..self.clients.len() {
            let delay = self.rng.range(1_000, 2_000_000);
            self.after(delay, Event::Client(n));
        }
        Ok(())
    }

    fn crash(&mut self) {
        self.machine.crash(&mut self.rng, &mut self.probes);
        self.gone();
    }

    /// The process is gone, and what it knew.
    fn gone(&mut self) {
        self.timer = None;
        self.tickets.clear();
        self.acknowledged.clear();
        // The next life has to hear its peers anew.
        (self.proved_ns, self.proofs, self.accusations) = Default::default();
        for client in &mut self.clients {
            client.disconnected();
        }
        self.era += 1;
        (self.ready, self.stopping) = (false, None);
    }

    /// A clean stop begins: sessions that are still there go on reading until the process ends.
    fn stop(&mut self) {
        let Some(node) = self.machine.node().filter(|_| self.ready && self.stopping.is_none()).cloned() else { return };
        self.stopping = Some(self.refused());
        node.close();
        node.give_back_lease(&self.machine.now(self.true_ns()));
        let (delay, era) = (self.rng.range(1_000_000, 30_000_000), self.era);
        self.after(delay, Event::Off(era));
    }

    /// A clean stop ends, once nothing waits for the disk. The next life need not wait for the lease of this one.
    fn off(&mut self) -> Result<(), Failure> {
        if !self.is_quiet() {
            let era = self.era;
            self.after(1_000_000, Event::Off(era));
            return Ok(());
        }
        let last = self.machine.node().map(|node| node.clock_last());
        let refused = self.stopping != Some(self.refused());
        self.machine.off(&mut self.probes)?;
        self.gone();
        self.start()?;
        let ready = self.machine.node().map(|node| node.ready_at());
        if ready > last && !refused {
            return Err(Failure(format!("after a clean stop at {last:?} the node waits until {ready:?}")));
        }
        Ok(())
    }

    /// How often a full disk refused records, a release perhaps.
    fn refused(&self) -> u64 {
        self.probes.count("disk full refused a commit")
    }

    fn split(&mut self) {
        let Some(node) = self.machine.node().cloned() else { return };
        let key =
            if self.rng.chance(50) { self.rng.below(REGISTERS) } else { self.rng.range(ACCOUNTS.start, ACCOUNTS.end) };
        let now = self.machine.now(self.true_ns());
        self.tickets.push(node.split(&now, encode_key(key), Waker::noop()));
    }

    fn probe_tickets(&mut self) {
        let probes = &mut self.probes;
        self.tickets.retain(|ticket| match ticket.poll(Waker::noop()) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                if result.is_ok() {
                    probes.hit("split");
                }
                false
            }
        });
    }

    fn collect(&mut self) -> Result<(), Failure> {
        let Some(node) = self.machine.node().cloned() else { return Ok(()) };
        let now = self.machine.now(self.true_ns());
        let physical = now.interval.earliest().physical_us();
        let age = self.rng.below(1_500_000);
        let ago = |age: u64| Timestamp::new(physical.saturating_sub(age), 0);
        // Not by a draw, as below. Longer, shorter, as all others, with its class changing now and then.
        let apart = match age % 11 {
            0 | 1 => Some((9, 3 * age)),
            2 => Some((7, 2 * age)),
            3 | 4 => Some((2, age / 4)),
            5 => Some((3, age / 3)),
            _ => None,
        };
        let apart = apart.map(|(class, age)| Apart { index: ACCOUNTS_INDEX, class, threshold: ago(age) });
        let apart = apart.into_iter().collect();
        node.collect(&now, Threshold { common: ago(age), apart });
        if let Some(threshold) = node.collectable() {
            self.remember()?;
            // A full disk or a failed sync: the next call goes on.
            let versions = node.versions();
            let before = versions.garbage();
            if versions.collect(threshold).is_ok() {
                self.probes.add("collected", before.past - versions.garbage().past.min(before.past));
            }
            // Not by a draw: it may not change what else happens.
            if age.is_multiple_of(3) && versions.compact().is_ok() {
                let after = versions.garbage();
                self.probes.add("buried", before.graves - after.graves.min(before.graves));
            }
        }
        Ok(())
    }

    /// Remembers what is stored now: it may be collected before the end.
    fn remember(&mut self) -> Result<(), Failure> {
        let stored = self.dump()?;
        for (at, id) in stored.versions.into_values().flatten() {
            self.earlier.insert(id, at);
        }
        Ok(())
    }

    /// Everything that is stored.
    fn dump(&mut self) -> Result<Stored, Failure> {
        let Some(node) = self.machine.node() else { return Ok(Stored::default()) };
        let versions = node.versions();
        let mut stored =
            Stored { collected: versions.collected().as_u64(), earlier: self.earlier.clone(), ..Stored::default() };
        let failed = |e: store::StoreError| Failure(format!("what is stored cannot be read: {e}"));
        for name in (0..REGISTERS).chain(ACCOUNTS) {
            let chain: &mut Vec<(u64, u64)> = stored.versions.entry(name as Key).or_default();
            let collected = versions.collected_of(&encode_key(name));
            stored.collected_apart.insert(name as Key, collected.as_u64());
            for version in versions.history(&encode_key(name)).map_err(failed)? {
                let value = version.value.as_deref().and_then(decode_value);
                chain.push((version.ts.as_u64(), value.map_or(0, |v| v.id)));
            }
        }
        Ok(stored)
    }
}

/// What a snapshot at or above the threshold sees differently; what lies below it may be collected or not.
fn differs(before: &Stored, after: &Stored) -> Option<String> {
    let readable = |stored: &Stored, key: Key, threshold: u64| {
        let mut chain = stored.versions.get(&key).cloned().unwrap_or_default();
        chain.sort_unstable();
        chain.split_off(chain.partition_point(|(at, _)| *at <= threshold).saturating_sub(1))
    };
    let mut keys = before.versions.keys().chain(after.versions.keys());
    keys.find_map(|key| {
        let threshold = before.collected_of(*key).max(after.collected_of(*key));
        let (a, b) = (readable(before, *key, threshold), readable(after, *key, threshold));
        (a != b).then(|| format!("key {key}, from {threshold} on: {a:?} before, {b:?} after"))
    })
}

//! Partitions that clients ask: experiments about latency and throughput, measured on virtual time.
//!
//! Each partition is one range with one replica on a machine of its own, as 004 chapter 2 has it (or with several, led by the first: [`Setup::replicas`]). On the machine runs the product's brain, a
//! `node::cluster::Member`, over its log and store; a client asks the machine of its own partition, which runs the whole transaction and asks
//! other partitions for what lies there. So what a transaction does, certifies and waits for is the product's code, and what that costs in
//! messages, syncs and processor time is the world's ([`crate::cluster::Model`], and [`Costs`] for what requests cost).
//!
//! Beside the brain stand models of its opponents, here only ([`Protocol`]):
//!
//! * *conventional SI* takes its timestamps from an oracle, a machine of its own behind all others: one request before a transaction begins, and one more before
//!   an update commits, each a message each way and time on the oracle's only core. Storage, certification and commit are the brain's, so that the two
//!   differ by what timestamps cost and by nothing else. `Batched`: while a partition waits for an answer, further requests of its gather, and go as one.
//! * *literal waiting*: a request of another partition waits until the clock has passed its snapshot (004 algorithm 1, lines 19-22), where the brain
//!   sets its hybrid clock instead.
//!
//! Whether the brain's transactions keep what they promise is judged, too ([`judge`]): by `checker`, of what clients read and wrote.
//!
//! Invariants: a run is a function of its setup and seed; clients are closed loops; what ends before the ramp-up is over is not counted.
//!
//! Caveat: conventional SI's snapshot would be the oracle's number; here the brain's own snapshot is used after the oracle was asked. That is at
//! least as fresh, and costs the same.

mod body;
mod load;
mod session;

pub use load::{Kind, Shape, Task};
pub use node::{Consistency, Uncertainty};

use crate::clock::ClockKind;
use crate::cluster::{Cluster, Desk, Heard, Input, Latency, Layout, Model, Operation, Place, System, Weather};
use crate::machine::{Engine, Failure};
use crate::rng::Rng;
use crate::trace::{Show, Trace};
use crate::world::START_NS;
use body::Body;
use checker::{Action, History, Isolation, Op, Promises, Recency, Txn, Value, Verdict};
use node::Sabotage;
use std::collections::{BTreeMap, BTreeSet};

/// Where timestamps come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Each partition's clock, the product's way: a hybrid clock that a later snapshot sets.
    Ratchet,
    /// Each partition's clock, Clock-SI's way: who is asked waits for its clock.
    Literal,
    /// An oracle; each timestamp is a request of its own.
    Oracle,
    /// An oracle; requests that wait gather.
    Batched,
}

impl Protocol {
    /// Whether there is an oracle.
    pub fn has_oracle(self) -> bool {
        matches!(self, Protocol::Oracle | Protocol::Batched)
    }
}

/// What requests cost on a core, beyond [`Model`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// An update, on top of its message: new versions, their metadata, nanoseconds.
    pub update_ns: u64,
    /// A timestamp, at the oracle, nanoseconds: message and all.
    pub timestamp_ns: u64,
    /// A request for several timestamps, for each after the first, nanoseconds.
    pub further_ns: u64,
}

/// An experiment's world.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many partitions, each on a machine of its own.
    pub partitions: usize,
    /// Where timestamps come from.
    pub protocol: Protocol,
    /// Replicas of each: on its own machine, which leads, and on the next ones; an odd number, at most as many as there are partitions.
    pub replicas: usize,
    /// How transactions begin.
    pub consistency: Consistency,
    /// Where the uncertainty of `hybrid` ones ends.
    pub uncertainty: Uncertainty,
    /// Clients at each partition that has any; they stand at its site, and ask it.
    pub clients_each: usize,
    /// Which partitions have clients.
    pub homes: Vec<usize>,
    /// What clients do: those of a partition take these in turn.
    pub shapes: Vec<Shape>,
    /// A client pauses between two transactions: twice so long at most, and so long on average, microseconds.
    pub pause_us: u64,
    /// One way.
    pub latency: Latency,
    /// A machine.
    pub model: Model,
    /// What requests cost.
    pub costs: Costs,
    /// How far each partition's clock is off, microseconds; positive: ahead.
    pub clock_offsets_us: Vec<i64>,
    /// The error that clocks state, microseconds: at least as much.
    pub clock_error_us: u64,
    /// Not counted, nanoseconds.
    pub ramp_up_ns: u64,
    /// Counted, nanoseconds.
    pub length_ns: u64,
    /// A machine that dies for good, and when in the counted time, nanoseconds; the oracle's is [`Setup::oracle`].
    pub dies: Option<(usize, u64)>,
    /// Of all choices.
    pub seed: u64,
}

impl Setup {
    /// The oracle's machine.
    pub fn oracle(&self) -> usize {
        self.partitions
    }
    fn machines(&self) -> usize {
        self.partitions + usize::from(self.protocol.has_oracle())
    }
}

/// One transaction that ended while it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What it was.
    pub kind: Kind,
    /// Which partition's client asked.
    pub home: usize,
    /// When, nanoseconds after counting began.
    pub at_ns: u64,
    /// From the client's request to its answer, nanoseconds.
    pub took_ns: u64,
    /// It committed, and was not aborted.
    pub committed: bool,
    /// What uncertainty cost it.
    pub uncertain: Uncertain,
}

/// What uncertainty cost a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncertain {
    /// Uncertain versions that it met, each of which moved its snapshot up.
    pub met: u64,
    /// The most that it met between two begins.
    pub met_at_once_max: u64,
    /// How often its snapshot could not move, as something that it had read was changed since: it began anew.
    pub began_anew: u64,
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Transactions, in the order of their ends.
    pub ended: Vec<Ended>,
    /// Requests of other partitions that waited for a clock (literal waiting), and how long all together, nanoseconds.
    pub clock_waits: u64,
    /// See there.
    pub clock_wait_ns: u64,
    /// Requests of other partitions that could have.
    pub visits: u64,
}

/// What clients and machines say to each other.
#[derive(Clone, Debug)]
pub enum Talk {
    /// A transaction, by the client's own number for it.
    Do(u64, Task),
    /// It ended; whether it committed, and what uncertainty cost it.
    Done(u64, bool, Uncertain),
}

/// A client.
struct Client {
    rng: Rng,
    number: u64,
    began_ns: u64,
    kind: Kind,
}

/// How long a client waits for an answer, nanoseconds: then it asks anew.
const PATIENCE_NS: u64 = 2_000_000_000;
/// Bytes of a request, and of an answer, about.
const TALK_BYTES: usize = 100;
/// Ranges have leaders within so long, nanoseconds; before, nobody asks.
const FOUNDED_NS: u64 = 20_000_000_000;
/// Clients begin within so long, nanoseconds, not all at once.
const SPREAD_NS: u64 = 20_000_000;

/// The world.
pub struct Partitions {
    setup: Setup,
    clients: Vec<Client>,
    engines: Vec<Engine>,
    counting_from_ns: u64,
    outcome: Outcome,
    /// Called with the switches of each member before it opens: a negative control breaks a rule here.
    prepare: Option<fn(&Sabotage)>,
    /// What clients did and saw, where that is judged; what machines know of it until a client hears.
    history: Option<History>,
    seen: BTreeMap<(usize, u64), session::Seen>,
}

impl Partitions {
    fn new(setup: Setup, rng: &mut Rng) -> Self {
        let client = |rng: &mut Rng| Client { rng: rng.fork(), number: 0, began_ns: 0, kind: Kind::Read };
        let clients = (0..setup.clients_each * setup.partitions).map(|_| client(rng)).collect();
        let engines = (0..setup.machines()).map(|_| Engine::default()).collect();
        let (outcome, prepare, history, seen) = Default::default();
        Partitions { setup, clients, engines, counting_from_ns: u64::MAX, outcome, prepare, history, seen }
    }

    fn sabotage(&self) -> Sabotage {
        let sabotage = Sabotage::default();
        self.prepare.into_iter().for_each(|prepare| prepare(&sabotage));
        sabotage
    }

    /// A client heard how its transaction ended.
    fn note(&mut self, client: usize, number: u64, committed: bool, (began, ended): (u64, u64)) {
        let (Some(history), Some(seen)) = (&mut self.history, self.seen.remove(&(client, number))) else { return };
        let read = |(key, snapshot, found): (u64, u64, Option<u64>)| {
            let found = found.map(|id| Value { id, amount: 0 });
            Op { began, action: Action::Read { key, snapshot: Some(snapshot), found } }
        };
        let write = |(key, id): (u64, u64)| Op { began, action: Action::Write { key, value: Value { id, amount: 0 } } };
        history.txns.push(Txn {
            id: (client as u64) << 32 | number,
            session: u32::try_from(client).unwrap_or(u32::MAX),
            isolation: Isolation::Snapshot,
            recency: Recency::Any,
            began,
            ended,
            outcome: if committed { checker::Outcome::Committed } else { checker::Outcome::Aborted },
            position: seen.position,
            ops: seen.reads.into_iter().map(read).chain(seen.writes.into_iter().map(write)).collect(),
        });
    }

    fn is_counted(&self, true_ns: u64) -> bool {
        true_ns >= self.counting_from_ns && true_ns < self.counting_from_ns + self.setup.length_ns
    }

    fn home(&self, client: usize) -> usize {
        client % self.setup.partitions
    }

    /// A client's next transaction: now, or after a pause.
    fn next(&mut self, desk: &mut Desk<'_, Talk>) {
        if self.setup.pause_us == 0 {
            return self.ask(desk);
        }
        let client = &mut self.clients[desk.client];
        client.number += 1;
        desk.timers.push((client.rng.below(self.setup.pause_us * 2_000), client.number));
    }

    fn ask(&mut self, desk: &mut Desk<'_, Talk>) {
        let of_home = desk.client / self.setup.partitions;
        let shape = self.setup.shapes[of_home % self.setup.shapes.len()].clone();
        let (home, partitions) = (self.home(desk.client), self.setup.partitions);
        let client = &mut self.clients[desk.client];
        let task = shape.draw(home, partitions, &mut client.rng);
        client.number += 1;
        (client.began_ns, client.kind) = (desk.true_ns, task.kind);
        desk.timers.push((PATIENCE_NS, client.number));
        desk.asks.push((home, Talk::Do(client.number, task)));
    }
}

impl System for Partitions {
    type Body = Body;
    type Talk = Talk;

    fn start(&mut self, place: &mut Place<'_, Talk>) -> Result<Body, Failure> {
        body::start(self, place)
    }

    fn input(&mut self, body: &mut Body, place: &mut Place<'_, Talk>, input: Input<Talk>) -> Result<(), Failure> {
        body.input(self, place, input)
    }

    fn cost_ns(&self, machine: usize, input: &Input<Talk>, model: &Model) -> Option<u64> {
        match input {
            Input::Peer { bytes, .. } if machine == self.setup.oracle() => {
                let more = body::timestamps(bytes).saturating_sub(1);
                Some(self.setup.costs.timestamp_ns + more * self.setup.costs.further_ns)
            }
            Input::Ask { talk: Talk::Do(_, task), .. } if task.kind == Kind::Update => {
                Some(model.cost_ns(TALK_BYTES) + self.setup.costs.update_ns)
            }
            _ => None,
        }
    }

    fn half_synced(&mut self, _body: &mut Body) {}
    fn died(&mut self, _machine: usize, _body: Body, _true_ns: u64) {}
    fn wiped(&mut self, _machine: usize) {}
    fn may_wipe(&self, _bodies: &[Option<&Body>]) -> bool {
        false
    }
    fn leads(&self, body: &Body) -> bool {
        body.leads()
    }
    fn operate(&mut self, _: &mut Body, _: &mut Place<'_, Talk>, _: Operation) -> Result<(), Failure> {
        Ok(())
    }

    fn clients(&self) -> usize {
        self.clients.len()
    }

    fn client(&mut self, desk: &mut Desk<'_, Talk>, heard: Heard<Talk>) {
        match heard {
            Heard::Begin if !self.setup.homes.contains(&self.home(desk.client)) => {}
            Heard::Begin => desk.timers.push((desk.rng.below(SPREAD_NS), 0)),
            // Nobody answered: it asks anew, and an answer that comes yet is of an old number.
            Heard::Timer(number) if number == self.clients[desk.client].number => self.ask(desk),
            Heard::Answer(_, Talk::Done(number, committed, uncertain)) => {
                let (home, client) = (self.home(desk.client), &self.clients[desk.client]);
                if number != client.number {
                    return;
                }
                let times = (client.began_ns, desk.true_ns);
                if self.is_counted(desk.true_ns) {
                    let at_ns = desk.true_ns - self.counting_from_ns;
                    let took_ns = desk.true_ns - client.began_ns;
                    let kind = client.kind;
                    self.outcome.ended.push(Ended { kind, home, at_ns, took_ns, committed, uncertain });
                }
                self.note(desk.client, number, committed, times);
                self.next(desk);
            }
            Heard::Timer(_) | Heard::Answer(..) => {}
        }
    }

    fn talk_bytes(&self, _talk: &Talk) -> usize {
        TALK_BYTES
    }
    fn waits_for(&self, bodies: &[Option<&Body>], _healed_ns: u64) -> Option<String> {
        let idle = bodies.iter().take(self.setup.partitions).position(|body| !body.is_some_and(Body::leads));
        idle.map(|partition| format!("partition {partition} has no leader"))
    }
    fn restless(&self, _bodies: &[Option<&Body>]) -> Option<String> {
        None
    }
    fn stored(&self, _bodies: &[Option<&Body>]) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}

/// Runs it.
///
/// # Errors
/// The brain failed, or partitions have no leaders.
pub fn measure(setup: Setup) -> Result<Outcome, Failure> {
    measure_with(setup, None)
}

/// As [`measure`], with the switches of each member as `prepare` sets them.
fn measure_with(setup: Setup, prepare: Option<fn(&Sabotage)>) -> Result<Outcome, Failure> {
    let mut rng = Rng::new(setup.seed);
    let system = Partitions { prepare, ..Partitions::new(setup, &mut rng) };
    run(system, rng).map(|system| system.outcome)
}

/// As [`measure`], and judged: every transaction has one snapshot, which shows what was committed at or below it, whole, and nothing else. `prepare`
/// is called with the switches of each member.
///
/// # Errors
/// As those of [`measure`].
pub fn judge(setup: Setup, prepare: Option<fn(&Sabotage)>) -> Result<Verdict, Failure> {
    let mut rng = Rng::new(setup.seed);
    let system = Partitions { prepare, history: Some(History::default()), ..Partitions::new(setup, &mut rng) };
    let mut history = run(system, rng)?.history.unwrap_or_default();
    // What was under way at the end has no outcome; what it wrote may have been read.
    let ended: BTreeSet<u64> = written(&history);
    for op in history.txns.iter_mut().flat_map(|txn| &mut txn.ops) {
        if let Action::Read { key, snapshot: Some(_), found: Some(value) } = &op.action
            && !ended.contains(&value.id)
        {
            let (key, value) = (*key, *value);
            op.action = Action::Read { key, snapshot: None, found: Some(value) };
        }
    }
    let unread = |op: &Op| !matches!(op.action, Action::Read { snapshot: None, .. });
    history.txns.iter_mut().for_each(|txn| txn.ops.retain(unread));
    Ok(checker::judge(&history, &Promises { bounds_hold: true, bank: None }))
}

/// Numbers of all values that ended transactions wrote.
fn written(history: &History) -> BTreeSet<u64> {
    let ops = history.txns.iter().flat_map(|txn| &txn.ops);
    ops.filter_map(|op| match op.action {
        Action::Write { value, .. } => Some(value.id),
        _ => None,
    })
    .collect()
}

fn run(system: Partitions, rng: Rng) -> Result<Partitions, Failure> {
    let setup = &system.setup;
    let offset_us = |machine: usize| setup.clock_offsets_us.get(machine).copied().unwrap_or(0);
    let clocks = (0..setup.machines())
        .map(|machine| ClockKind::Fixed { offset_us: offset_us(machine), error_us: setup.clock_error_us });
    let layout = Layout {
        machines: setup.machines(),
        length_ns: 0,
        serves_again_ns: FOUNDED_NS,
        weather: Weather { latency: setup.latency.clone(), ..Weather::default() },
        model: setup.model.clone(),
        clocks: clocks.collect(),
        faults: Vec::new(),
    };
    let (dies, ramp_up_ns, length_ns) = (setup.dies, setup.ramp_up_ns, setup.length_ns);
    let mut world = Cluster::new(layout, system, rng, Trace::new(START_NS, Show::Nothing));
    world.found(FOUNDED_NS)?;
    world.begin_clients();
    world.go_on(ramp_up_ns)?;
    world.system.counting_from_ns = world.now_ns();
    let mut left_ns = length_ns;
    if let Some((machine, after_ns)) = dies.filter(|(_, after_ns)| *after_ns < length_ns) {
        world.go_on(after_ns)?;
        world.kill_for_good(machine);
        left_ns -= after_ns;
    }
    world.go_on(left_ns)?;
    Ok(world.system)
}

/// Sessions of a machine, by client.
type Sessions = BTreeMap<(usize, u64), session::Session>;

#[cfg(test)]
mod tests;

//! Whole nodes: members of a cluster, over the product's log and store, under transactions.
//!
//! Each machine runs a `node::cluster::Member`, the very one of the server, and a few sessions that begin transactions there: registers, transfers, audits and
//! looks into the past (the load of one node alone, `workload`), and lists that are only appended to. Ranges are cut through all of these, so that
//! transactions have participants with different leaders.
//!
//! What is judged: cycles, snapshots, real time, session order, bank totals and lost writes by the timestamps that the database tells; strict serializability of
//! the lists by what was read alone; leases; checksums of replicas at equal places; rule 1; and that at rest nothing is locked, prepared or remembered.

mod body;
mod chronicle;
mod load;
mod loss;
mod opening;
mod operate;
mod session;
mod table;

pub use chronicle::{Chronicle, Judged};

use crate::cluster::{Desk, Heard, Input, Operation, Place, System};
use crate::machine::{Engine, Failure};
use crate::references;
use body::Body;
use bytes::Bytes;
use checker::{Key, Recency};
use clock::{LadderLimits, Timestamp};
use node::cluster::{Founding, Message, NodeId, VERSION_MAX, VERSION_MIN};
use node::{Consistency, Sabotage, Uncertainty};
use protocol::door::Frame;
use protocol::txn::RangeId;
use serde::Deserialize;
use session::Session;
use std::collections::{BTreeMap, BTreeSet};
use store::Version;

/// What sessions do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Workload {
    /// Sessions at each machine.
    pub sessions: usize,
    /// A session waits up to so long between two transactions, milliseconds.
    pub think_ms: u64,
    /// Of a hundred transactions, how many append to lists.
    pub lists_percent: u64,
    /// Of a hundred transactions, how many move money or look at all of it.
    pub bank_percent: u64,
    /// Of a hundred transactions, how many write rows of a table whose version changes, or change it; the others are as said above.
    pub table_percent: u64,
    /// Of the reads of the past, those at a snapshot that leaders agree on.
    pub negotiated_percent: u64,
    /// What asks a range for more than so many bytes comes in parts of half as many; 0: as on real nodes.
    pub entry_bytes: usize,
    /// So many ranges more that nobody uses, on all machines in turn.
    pub idle_ranges: u64,
    /// When one machine dies and the others go on, all of its ranges are led again within so long, milliseconds; 0: nobody looks.
    pub led_again_ms: u64,
    /// The newest version of the cluster that each machine's program knows when it starts first, from the beginning again where there are more machines. A program that
    /// starts again knows all; when all do, an operator raises the version. None: all know all, and nobody raises it.
    pub programs: Vec<u16>,
}

impl Default for Workload {
    fn default() -> Self {
        Workload {
            sessions: 2,
            think_ms: 60,
            lists_percent: 30,
            bank_percent: 30,
            table_percent: 0,
            negotiated_percent: 0,
            entry_bytes: 0,
            idle_ranges: 0,
            led_again_ms: 0,
            programs: Vec::new(),
        }
    }
}

/// What is to be filled, and could not, is tried again so much later, nanoseconds.
const FILL_AGAIN_NS: u64 = 400_000_000;

/// Called with the switches of each node before it opens: the negative controls break a rule here.
pub type Prepare = fn(&Sabotage);

/// How all transactions begin, and as what they are judged: so that a mode which promises less shows what it does not promise.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Their consistency.
    pub consistency: Consistency,
    /// Where the uncertainty of `hybrid` ends.
    pub uncertainty: Uncertainty,
    /// `stale`: those that only read take the freshest that the replicas here have. The others are judged by their consistency.
    pub stale: bool,
    /// What is asked of them.
    pub judged_as: Recency,
}

/// Whole nodes.
pub struct Nodes {
    pub(self) workload: Workload,
    pub(self) prepare: Option<Prepare>,
    /// All but the lists, and what fills them, begin so.
    pub choice: Option<Choice>,
    /// The machines whose clocks may be further off than they say.
    pub liars: Vec<bool>,
    /// What was acknowledged of each key: its timestamp, and when by true time.
    pub(self) acknowledged: BTreeMap<Key, Vec<(u64, u64)>>,
    /// How often each machine came back empty: it is another node then.
    pub(self) lives: Vec<u32>,
    /// What each machine's engine holds: it outlives a crash, like a disk does.
    pub(self) engines: Vec<Engine>,
    /// What they held a while ago, to go back to it.
    before: BTreeMap<usize, Engine>,
    pub(self) sessions: Vec<Vec<Session>>,
    /// What happened, for the judge.
    pub chronicle: Chronicle,
    pub(self) seed: u64,
    /// Registers and accounts are filled.
    pub(self) loaded: bool,
    /// The machine whose first session fills them: another one where it could not.
    pub(self) filler: usize,
    /// It does not before this time.
    pub(self) fill_from_ns: u64,
    pub(self) last_id: u64,
    pub(self) draining: bool,
    /// The newest version that the program on each machine knows; `None`: it has not started yet.
    pub(self) programs: Vec<Option<u16>>,
    /// The cluster's version.
    pub(self) version: u16,
    pub(self) loss: loss::Loss,
}

impl Nodes {
    /// For so many machines; `bounds_hold`: their clocks are honest.
    pub fn new(workload: Workload, machines: usize, seed: u64, prepare: Option<Prepare>, bounds_hold: bool) -> Self {
        let number = |m: usize, n: usize| u32::try_from(m * workload.sessions + n).unwrap_or(u32::MAX);
        let of = |m| (0..workload.sessions).map(|n| Session::new(number(m, n), seed)).collect();
        Nodes {
            prepare,
            choice: None,
            liars: vec![false; machines],
            acknowledged: BTreeMap::new(),
            lives: vec![0; machines],
            engines: (0..machines).map(|_| Engine::default()).collect(),
            before: BTreeMap::new(),
            sessions: (0..machines).map(of).collect(),
            chronicle: Chronicle::new(bounds_hold),
            seed,
            loaded: false,
            filler: 0,
            fill_from_ns: 0,
            last_id: 0,
            draining: false,
            programs: vec![None; machines],
            loss: loss::Loss::new(machines),
            version: if workload.programs.is_empty() { VERSION_MAX } else { VERSION_MIN },
            workload,
        }
    }

    pub(self) fn ranges(&self) -> Vec<Founding> {
        let nodes = self.engines.len();
        let founding = |(n, start): (usize, bytes::Bytes)| Founding {
            range: RangeId(n as u64 + 1),
            start,
            // Three of them, from another one on for each range.
            replicas: (0..nodes.min(3)).map(|k| node_of((n + k) % nodes)).collect(),
        };
        load::cuts().into_iter().chain(load::idle(self.workload.idle_ranges)).enumerate().map(founding).collect()
    }

    /// The node on a machine.
    pub(self) fn node_of(&self, machine: usize) -> NodeId {
        NodeId(node_of(machine).0 + LIFE * self.lives[machine])
    }

    /// The program that a machine starts now: the newest version that it knows.
    pub(self) fn start_program(&mut self, machine: usize) -> u16 {
        let first = machine.checked_rem(self.workload.programs.len()).map(|at| self.workload.programs[at]);
        let newest = first.filter(|_| self.programs[machine].is_none()).unwrap_or(VERSION_MAX);
        self.programs[machine] = Some(newest);
        newest
    }

    /// All programs know the newest version, and nobody has raised the cluster to it.
    pub(self) fn may_raise(&self) -> bool {
        let all = self.programs.iter().all(|newest| *newest == Some(VERSION_MAX));
        all && self.version < VERSION_MAX && !self.workload.programs.is_empty()
    }

    /// What is wrong with a message that the program on a machine cannot read.
    pub(self) fn unread(&self, machine: usize, message: &Message) -> Option<Failure> {
        let newest = self.programs[machine].filter(|newest| *newest < VERSION_MAX)?;
        let needs = Frame::decode(&message.bytes).ok()?.body.needs_version();
        let why =
            || format!("machine {machine} was sent what only programs of version {needs} can read: its knows {newest}");
        (needs > newest).then(|| Failure(why()))
    }

    /// A transaction failed; if it was to fill, another machine does: this one's clock may not be trusted for the rest of the run.
    /// Not at once: attempts that meet what an earlier one left behind say nothing of what is answered.
    pub(self) fn next_filler(&mut self, fills: bool, true_ns: u64) {
        if fills {
            self.filler = (self.filler + 1) % self.engines.len();
            self.fill_from_ns = true_ns + FILL_AGAIN_NS;
        }
    }

    /// Whether a node is on a machine now.
    pub(self) fn is_current(&self, node: NodeId) -> bool {
        node == self.node_of(machine_of(node))
    }

    /// Whether peers can have proof against a machine's clock: it lies, or as many others do as it takes.
    pub(self) fn may_be_proved(&self, machine: usize) -> bool {
        let others = (0..self.liars.len()).filter(|other| *other != machine && self.liars[*other]).count();
        self.liars[machine] || others >= LadderLimits::default().fence_peers
    }

    /// How many replicas a range has.
    pub(self) fn copies(&self) -> usize {
        self.engines.len().min(3)
    }

    /// All versions of a key, as its leader has them; where nobody leads, as the replica that has the newest, and most.
    pub fn history(&self, bodies: &[Option<&Body>], key: &Bytes) -> Result<Vec<Version>, Failure> {
        // A replica that was removed and has not heard of it may lag, and has forgotten less than the others: who leads knows.
        if let Some(leader) = bodies.iter().flatten().find(|body| body.member.leads(key)) {
            return leader.history(key);
        }
        let all = bodies.iter().flatten().map(|body| body.history(key)).collect::<Result<Vec<_>, _>>()?;
        let newest = |history: &Vec<Version>| (history.last().map(|version| version.ts), history.len());
        Ok(all.into_iter().max_by_key(newest).unwrap_or_default())
    }

    /// Below this nobody can read a key, as those say that replicate it.
    pub fn collected(&self, bodies: &[Option<&Body>], key: &Bytes) -> Timestamp {
        bodies.iter().flatten().filter_map(|body| body.member.collected_of(key)).max().unwrap_or_default()
    }

    /// What some range lacks of one leader with a lease and equal replicas at rest.
    fn unwell(&self, bodies: &[Option<&Body>], deep: bool) -> Result<Option<String>, Failure> {
        let ranges: BTreeSet<RangeId> = bodies.iter().flatten().flat_map(|body| body.member.ranges()).collect();
        if ranges.len() < load::cuts().len() {
            return Ok(Some(format!("only {ranges:?} are there")));
        }
        for range in ranges {
            let status = |body: &Body| body.member.status(range);
            let led = bodies.iter().flatten().filter_map(|body| status(body)).find(|status| status.lease.is_some());
            let Some(led) = led else {
                return Ok(Some(format!("{range} has no leader with a lease: {}", orphans(bodies).join("; "))));
            };
            let seats: Vec<NodeId> = led.voters.iter().chain(&led.learners).copied().collect();
            if led.joint || led.voters.len() < self.copies() || !seats.iter().all(|node| self.is_current(*node)) {
                return Ok(Some(format!("{range} changes its replicas: {led:?}")));
            }
            let mut first = None;
            for node in seats.iter().filter(|_| deep) {
                let body = bodies[machine_of(*node)];
                let Some((body, status)) = body.and_then(|body| Some((body, status(body)?))) else {
                    let has = body.map(|body| {
                        let all = body.member.ranges().into_iter();
                        all.map(|range| (range, body.member.status(range))).collect::<Vec<_>>()
                    });
                    return Ok(Some(format!("{range} has no replica on {node}, which has {has:?}")));
                };
                if (status.prepared, status.outcomes, status.untold, status.flights, status.parked) != (0, 0, 0, 0, 0) {
                    return Ok(Some(format!("{range} holds something on {node}: {status:?}")));
                }
                if status.installing {
                    return Ok(Some(format!("{range} is being installed on {node}: {status:?}")));
                }
                let digest = body.digest(range)?;
                if *first.get_or_insert(digest) != digest {
                    return Ok(Some(format!("{range} is {digest:?} on {node}, elsewhere {first:?}")));
                }
            }
        }
        Ok(None)
    }
}

/// The replicas of ranges that nobody leads, for a report.
fn orphans(bodies: &[Option<&Body>]) -> Vec<String> {
    let status = |body: &Body, range| body.member.status(range);
    let ranges: BTreeSet<RangeId> = bodies.iter().flatten().flat_map(|body| body.member.ranges()).collect();
    let led = |range: &RangeId| bodies.iter().flatten().any(|b| status(b, *range).is_some_and(|s| s.lease.is_some()));
    let of = |range: RangeId| {
        let all = bodies.iter().flatten().map(move |body| (body.member.node(), status(body, range)));
        all.filter_map(move |(node, status)| Some(format!("{range} on {node}: {:?}", status?)))
    };
    ranges.into_iter().filter(|range| !led(range)).flat_map(of).collect()
}

/// A machine that came back empty is a node whose number is so much higher.
const LIFE: u32 = 100;

/// Machines are numbered from 0, nodes from 1.
fn node_of(machine: usize) -> NodeId {
    NodeId(u32::try_from(machine).unwrap_or(0) + 1)
}

fn machine_of(node: NodeId) -> usize {
    usize::try_from(node.0.saturating_sub(1) % LIFE).unwrap_or(0)
}

impl System for Nodes {
    type Body = Body;
    type Talk = ();

    fn start(&mut self, place: &mut Place<'_, ()>) -> Result<Body, Failure> {
        self.loss.started(place.machine, place.true_ns);
        opening::start(self, place)
    }

    fn input(&mut self, body: &mut Body, place: &mut Place<'_, ()>, input: Input<()>) -> Result<(), Failure> {
        body.input(self, place, input)
    }

    fn half_synced(&mut self, body: &mut Body) {
        let _ = body.log.write_and_sync();
    }

    fn died(&mut self, machine: usize, body: Body, true_ns: u64) {
        for session in &mut self.sessions[machine] {
            session.disconnected(&mut self.chronicle, true_ns);
        }
        drop(body);
        self.engines[machine].crash(0);
        self.loss.died(machine, true_ns);
    }

    fn keep(&mut self, machine: usize) {
        self.before.insert(machine, Engine::new(self.engines[machine].copy()));
    }

    fn goes_back(&mut self, machine: usize) {
        if let Some(engine) = self.before.remove(&machine) {
            engine.crash(0);
            self.engines[machine] = engine;
        }
    }

    fn is_refused(&self, bodies: &[Option<&Body>], machine: usize) -> bool {
        let Some(started) = bodies[machine] else { return false };
        let (node, end) = (started.member.node(), started.member.began_after());
        bodies.iter().flatten().any(|other| other.member.node() != node && other.member.heard_of(node) > end)
    }

    fn wiped(&mut self, machine: usize) {
        self.lives[machine] += 1;
        self.engines[machine] = Engine::default();
    }

    fn may_wipe(&self, bodies: &[Option<&Body>]) -> bool {
        bodies.iter().all(Option::is_some) && matches!(self.unwell(bodies, false), Ok(None))
    }

    fn leads(&self, body: &Body) -> bool {
        body.leads_any()
    }

    fn operate(&mut self, body: &mut Body, place: &mut Place<'_, ()>, operation: Operation) -> Result<(), Failure> {
        body.operate(self, place, operation)
    }

    /// Sessions are at the machines.
    fn clients(&self) -> usize {
        0
    }

    fn client(&mut self, _desk: &mut Desk<'_, ()>, _heard: Heard<()>) {}

    fn talk_bytes(&self, (): &()) -> usize {
        0
    }

    fn waits_for(&self, bodies: &[Option<&Body>], healed_ns: u64) -> Option<String> {
        let part = (0..load::cuts().len()).find(|part| !self.chronicle.served_since(*part, healed_ns))?;
        let all: Vec<String> = bodies.iter().flatten().map(|body| body.describe()).collect();
        let orphans = orphans(bodies).join("; ");
        Some(format!("no write to part {part} was acknowledged that began since: {}; {orphans}", all.join("; ")))
    }

    fn restless(&self, bodies: &[Option<&Body>]) -> Option<String> {
        if let Some(session) = self.sessions.iter().flatten().find(|session| session.is_busy()) {
            return Some(session.describe());
        }
        for (m, body) in bodies.iter().enumerate() {
            let Some(body) = body else { return Some(format!("machine {m} is off")) };
            if let Some(what) = body.unrest() {
                return Some(format!("machine {m}: {what}"));
            }
        }
        self.unwell(bodies, true).unwrap_or_else(|Failure(why)| Some(why))
    }

    fn stored(&self, bodies: &[Option<&Body>]) -> Result<Vec<String>, Failure> {
        let orphan = references::orphan_of(
            |key| self.history(bodies, key),
            |n| self.collected(bodies, &references::child(n)).max(self.collected(bodies, &references::parent(n))),
        )?;
        if let Some(orphan) = orphan {
            return Err(Failure(orphan));
        }
        // The past goes meanwhile, and with it deletions: a key that is deleted is as one that never was.
        let line = |key: bytes::Bytes| {
            let history = self.history(bodies, &key)?;
            Ok(format!("{key:?} {:?}", history.last().filter(|version| version.value.is_some())))
        };
        load::keys().into_iter().map(line).collect()
    }
}

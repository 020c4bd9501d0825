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
mod opening;
mod session;

pub use chronicle::{Chronicle, Judged};

use crate::cluster::{Desk, Heard, Input, Operation, Place, System};
use crate::machine::{Engine, Failure};
use crate::references;
use body::Body;
use node::Sabotage;
use node::cluster::{Founding, Member, NodeId};
use protocol::txn::RangeId;
use serde::Deserialize;
use session::Session;

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
}

impl Default for Workload {
    fn default() -> Self {
        Workload { sessions: 2, think_ms: 60, lists_percent: 30, bank_percent: 30 }
    }
}

/// Called with the switches of each node before it opens: the negative controls break a rule here.
pub type Prepare = fn(&Sabotage);

/// Whole nodes.
pub struct Nodes {
    pub(self) workload: Workload,
    pub(self) prepare: Option<Prepare>,
    /// What each machine's engine holds: it outlives a crash, like a disk does.
    pub(self) engines: Vec<Engine>,
    pub(self) sessions: Vec<Vec<Session>>,
    /// What happened, for the judge.
    pub chronicle: Chronicle,
    pub(self) seed: u64,
    /// Registers and accounts are filled.
    pub(self) loaded: bool,
    pub(self) last_id: u64,
    pub(self) draining: bool,
}

impl Nodes {
    /// For so many machines; `bounds_hold`: their clocks are honest.
    pub fn new(workload: Workload, machines: usize, seed: u64, prepare: Option<Prepare>, bounds_hold: bool) -> Self {
        let number = |m: usize, n: usize| u32::try_from(m * workload.sessions + n).unwrap_or(u32::MAX);
        let of = |m| (0..workload.sessions).map(|n| Session::new(number(m, n), seed)).collect();
        Nodes {
            prepare,
            engines: (0..machines).map(|_| Engine::default()).collect(),
            sessions: (0..machines).map(of).collect(),
            chronicle: Chronicle::new(bounds_hold),
            seed,
            loaded: false,
            last_id: 0,
            draining: false,
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
        load::cuts().into_iter().enumerate().map(founding).collect()
    }

    /// A replica of a range, to look at what is stored.
    pub fn replica<'b>(&self, bodies: &[Option<&'b Body>], range: RangeId) -> Option<&'b Member<Engine>> {
        self.replicas(bodies, range).first().map(|body| &*body.member)
    }

    /// The bodies that replicate a range.
    fn replicas<'b>(&self, bodies: &[Option<&'b Body>], range: RangeId) -> Vec<&'b Body> {
        bodies.iter().flatten().copied().filter(|body| body.member.status(range).is_some()).collect()
    }

    /// What a range lacks of one leader with a lease and equal replicas at rest.
    fn unwell(&self, bodies: &[Option<&Body>], founding: &Founding) -> Result<Option<String>, Failure> {
        let range = founding.range;
        let all = self.replicas(bodies, range);
        if all.len() < founding.replicas.len() {
            return Ok(Some(format!("{range} has {} replicas", all.len())));
        }
        let statuses: Vec<_> = all.iter().filter_map(|body| body.member.status(range)).collect();
        if !statuses.iter().any(|status| status.lease.is_some()) {
            return Ok(Some(format!("{range} has no leader with a lease: {statuses:?}")));
        }
        if statuses.windows(2).any(|pair| pair[0].applied != pair[1].applied) {
            return Ok(Some(format!("{range} is applied to different places: {statuses:?}")));
        }
        let busy = statuses.iter().find(|s| (s.prepared, s.outcomes, s.untold, s.flights, s.parked) != (0, 0, 0, 0, 0));
        if let Some(status) = busy {
            return Ok(Some(format!("{range} holds something: {status:?}")));
        }
        let digests = all.iter().map(|body| body.digest(range)).collect::<Result<Vec<_>, _>>()?;
        let equal = digests.windows(2).all(|pair| pair[0] == pair[1]);
        Ok((!equal).then(|| format!("{range} has different replicas: {digests:?}")))
    }
}

/// Machines are numbered from 0, nodes from 1.
fn node_of(machine: usize) -> NodeId {
    NodeId(u32::try_from(machine).unwrap_or(0) + 1)
}

fn machine_of(node: NodeId) -> usize {
    usize::try_from(node.0.saturating_sub(1)).unwrap_or(0)
}

impl System for Nodes {
    type Body = Body;
    type Talk = ();

    fn start(&mut self, place: &mut Place<'_, ()>) -> Result<Body, Failure> {
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
    }

    fn wiped(&mut self, _machine: usize) {}

    /// Members do not move yet.
    fn may_wipe(&self, _bodies: &[Option<&Body>]) -> bool {
        false
    }

    fn leads(&self, body: &Body) -> bool {
        body.leads_any()
    }

    fn operate(&mut self, body: &mut Body, place: &mut Place<'_, ()>, operation: Operation) -> Result<(), Failure> {
        match operation {
            Operation::Truncate => body.flush(self, place),
            Operation::Transfer | Operation::Members => Ok(()),
        }
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
        let waits = |founding: &Founding| !self.chronicle.served_since(founding.range, healed_ns);
        let founding = self.ranges().into_iter().find(waits)?;
        let all: Vec<String> = bodies.iter().flatten().map(|body| body.describe(founding.range)).collect();
        Some(format!("no write to {} was acknowledged that began since: {}", founding.range, all.join("; ")))
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
        let unwell = self.ranges().iter().find_map(|founding| self.unwell(bodies, founding).transpose());
        unwell.map(|found| found.unwrap_or_else(|Failure(why)| why))
    }

    fn stored(&self, bodies: &[Option<&Body>]) -> Result<Vec<String>, Failure> {
        let mut lines = Vec::new();
        for founding in self.ranges() {
            let all = self.replicas(bodies, founding.range);
            let Some(body) = all.first() else { return Err(Failure(format!("{} is gone", founding.range))) };
            lines.extend(body.histories(founding.range)?);
            if let Some(orphan) = references::orphan_in(body.member.versions()).map_err(|e| Failure(e.to_string()))? {
                return Err(Failure(orphan));
            }
        }
        Ok(lines)
    }
}

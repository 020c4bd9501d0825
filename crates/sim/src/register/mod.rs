//! Replicated registers: the replicated log's core alone on many machines.
//!
//! Problem: whether the log's core keeps its promises (`protocol::log::raft`) on machines that die, stop and sleep, with disks that tear and
//! clocks that lie, must be seen without a whole node around it: a defect found here is a defect of the core. Idea: the smallest
//! state that clients can ask, registers with all their versions, behind the core's outputs, over the product's own durable log.
//!
//! ```text
//!   Write, Swap ─► propose ─► log ─► applied on each machine ─► answered once certainly past (rule 1)
//!   Read        ─► the leader inside its lease, at what was shown last
//!   Snapshot    ─► leaders, at the `latest` of some machine: ratchet, wait for what is in flight at or below it
//!   Past        ─► any replica, at what is closed there
//! ```
//!
//! A command that comes twice takes effect once: each group remembers the last command of each client.
//!
//! What is judged: linearizability of each register, snapshots, real time and lost writes by the checker's rules for transactions
//! (an operation is a transaction of one step), leases, equal checksums at equal places, rule 1.

mod body;
mod chronicle;
mod client;
mod codec;
mod recovery;
mod serve;
mod state;
mod talk;

pub use chronicle::{Chronicle, Judged};
pub use talk::{Answer, Ask, Talk};

use crate::cluster::{Desk, Heard, Input, Operation, Place, System};
use crate::machine::Failure;
use body::Body;
use client::Client;
use protocol::log::raft::{GroupId, Member, Options, ReplicaId, Replicas, StoreId};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What clients do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Workload {
    /// Groups.
    pub groups: u64,
    /// Replicas of each.
    pub replicas: u64,
    /// Registers in each group.
    pub registers: u64,
    /// Clients.
    pub clients: usize,
    /// A client waits up to so long between two operations, milliseconds.
    pub think_ms: u64,
    /// Of a hundred operations, how many write.
    pub writes_percent: u64,
    /// How many read several registers at one snapshot.
    pub snapshots_percent: u64,
    /// How many read the past at any replica.
    pub past_percent: u64,
    /// The settings of the replicated log.
    pub log: LogSettings,
}

/// The settings of the replicated log: by default shorter than a server's, so that more happens in a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LogSettings {
    /// How far a promise reaches, milliseconds: so long a group waits when its leader dies.
    pub promise_ms: u64,
    /// Ticks (of 100 ms) between two requests for a longer promise.
    pub ask_ticks: usize,
    /// Ticks without a leader before a follower looks for votes.
    pub election_ticks: usize,
    /// Ticks without anything to do before a group goes to sleep.
    pub quiet_ticks: usize,
    /// How far behind now timestamps are closed, milliseconds.
    pub close_after_ms: u64,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings { promise_ms: 700, ask_ticks: 2, election_ticks: 4, quiet_ticks: 10, close_after_ms: 200 }
    }
}

impl LogSettings {
    pub(self) fn options(&self, store: StoreId, seed: u64) -> Options {
        Options {
            promise_us: self.promise_ms * 1000,
            ask_ticks: self.ask_ticks,
            election_ticks: self.election_ticks,
            quiet_ticks: self.quiet_ticks,
            close_after_us: self.close_after_ms * 1000,
            ..Options::new(store, seed)
        }
    }
}

impl Default for Workload {
    fn default() -> Self {
        Workload {
            groups: 3,
            replicas: 3,
            registers: 2,
            clients: 6,
            think_ms: 30,
            writes_percent: 50,
            snapshots_percent: 10,
            past_percent: 10,
            log: LogSettings::default(),
        }
    }
}

impl Workload {
    /// What is wrong with it on so many machines, if anything.
    pub fn wrong(&self, machines: usize) -> Option<String> {
        let fits = (1..=machines as u64).contains(&self.replicas);
        let percent = self.writes_percent + self.snapshots_percent + self.past_percent;
        match () {
            () if self.groups == 0 || self.registers == 0 || self.clients == 0 => {
                Some("workload: groups, registers and clients must be above 0".into())
            }
            () if !fits => Some(format!("workload: {} replicas on {machines} machines", self.replicas)),
            () if percent > 100 => Some(format!("workload: {percent} percent are more than 100")),
            () => None,
        }
    }
}

/// Rules of the registers' own to break: see the negative controls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// A leader reads whether or not a lease covers the present.
    pub read_without_lease: bool,
    /// A write is acknowledged when it is proposed.
    pub acknowledge_proposals: bool,
    /// A command that comes twice takes effect twice.
    pub forget_clients: bool,
    /// What is not certainly past is acknowledged.
    pub skip_rule_one: bool,
    /// A snapshot does not wait for what is in flight.
    pub ignore_in_flight: bool,
    /// A replica serves what is closed although it has not applied all of it.
    pub serve_unapplied: bool,
    /// A state depends on the machine.
    pub apply_by_machine: bool,
}

/// Called with the replicas of each machine that starts: the negative controls break a rule of the core here.
pub type Tamper = fn(&mut Replicas);

/// Rules to break in a run: none, unless the simulator itself is tested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controls {
    /// Of the registers.
    pub broken: Broken,
    /// Of the core.
    pub tamper: Option<Tamper>,
}

/// Machines are numbered from 0 and stores from 1; a machine that came back empty is another store.
const LIFE: u64 = 100;

/// Replicated registers.
pub struct Registers {
    pub(self) workload: Workload,
    pub(self) controls: Controls,
    /// How often each machine came back empty.
    pub(self) lives: Vec<u64>,
    clients: Vec<Client>,
    /// What happened, for the judge.
    pub chronicle: Chronicle,
    /// The greatest number that a replica of a group ever had.
    pub(self) greatest: BTreeMap<GroupId, u64>,
    /// Groups that were founded on a machine: only once.
    pub(self) founded: BTreeSet<(usize, GroupId)>,
    pub(self) seed: u64,
    last_value: u64,
    last_txn: u64,
}

impl Registers {
    /// For so many machines; `bounds_hold`: their clocks are honest.
    pub fn new(workload: Workload, machines: usize, seed: u64, controls: Controls, bounds_hold: bool) -> Self {
        let clients = (0..workload.clients).map(|n| Client::new(u32::try_from(n).unwrap_or(0))).collect();
        let greatest = (1..=workload.groups).map(|g| (GroupId(g), workload.replicas)).collect();
        Registers {
            lives: vec![0; machines],
            clients,
            chronicle: Chronicle::new(bounds_hold),
            greatest,
            founded: BTreeSet::new(),
            seed,
            last_value: 0,
            last_txn: 0,
            workload,
            controls,
        }
    }

    pub(self) fn store_of(&self, machine: usize) -> StoreId {
        StoreId(machine as u64 + 1 + LIFE * self.lives[machine])
    }

    pub(self) fn machine_of(&self, store: StoreId) -> usize {
        usize::try_from((store.0 - 1) % LIFE).unwrap_or(0)
    }

    /// Whether a store is on a machine now.
    pub(self) fn is_current(&self, store: StoreId) -> bool {
        store == self.store_of(self.machine_of(store))
    }

    pub(self) fn groups(&self) -> impl Iterator<Item = GroupId> + use<> {
        (1..=self.workload.groups).map(GroupId)
    }

    /// The founding members of a group.
    pub(self) fn founders(&self, group: GroupId) -> Vec<Member> {
        let machines = self.lives.len() as u64;
        let on = |n: u64| StoreId((group.0 - 1 + n) % machines + 1);
        (0..self.workload.replicas).map(|n| Member { replica: ReplicaId(n + 1), store: on(n) }).collect()
    }

    /// The group that has a register.
    pub(self) fn group_of(&self, key: u64) -> GroupId {
        GroupId(1 + key % self.workload.groups)
    }

    pub(self) fn keys(&self) -> u64 {
        self.workload.groups * self.workload.registers
    }
}

impl System for Registers {
    type Body = Body;
    type Talk = Talk;

    fn start(&mut self, place: &mut Place<'_, Talk>) -> Result<Body, Failure> {
        recovery::start(self, place)
    }

    fn input(&mut self, body: &mut Body, place: &mut Place<'_, Talk>, input: Input<Talk>) -> Result<(), Failure> {
        body.input(self, place, input)
    }

    fn half_synced(&mut self, body: &mut Body) {
        let _ = body.log.write_and_sync();
    }

    fn died(&mut self, _machine: usize, _body: Body, _true_ns: u64) {}

    fn wiped(&mut self, machine: usize) {
        self.lives[machine] += 1;
    }

    fn may_wipe(&self, bodies: &[Option<&Body>]) -> bool {
        bodies.iter().all(Option::is_some) && self.groups().all(|group| self.unwell(bodies, group).is_none())
    }

    fn leads(&self, body: &Body) -> bool {
        body.leads_any()
    }

    fn operate(&mut self, body: &mut Body, place: &mut Place<'_, Talk>, operation: Operation) -> Result<(), Failure> {
        body.operate(self, place, operation)
    }

    fn clients(&self) -> usize {
        self.workload.clients
    }

    fn client(&mut self, desk: &mut Desk<'_, Talk>, heard: Heard<Talk>) {
        let mut client = std::mem::replace(&mut self.clients[desk.client], Client::new(0));
        client.hears(self, desk, heard);
        self.clients[desk.client] = client;
    }

    fn talk_bytes(&self, talk: &Talk) -> usize {
        talk.bytes()
    }

    fn waits_for(&self, bodies: &[Option<&Body>], healed_ns: u64) -> Option<String> {
        let group = self.groups().find(|group| !self.chronicle.served_since(*group, healed_ns))?;
        let all: Vec<String> = bodies.iter().flatten().map(|body| body.describe(group)).collect();
        Some(format!("no write to {group} was acknowledged that was asked for since: {}", all.join("; ")))
    }

    fn restless(&self, bodies: &[Option<&Body>]) -> Option<String> {
        if let Some(client) = self.clients.iter().position(Client::is_busy) {
            return Some(format!("client {client} still waits: {:?}", self.clients[client]));
        }
        for (m, body) in bodies.iter().enumerate() {
            match body {
                None => return Some(format!("machine {m} is off")),
                Some(body) => {
                    if let Some(what) = body.unrest() {
                        return Some(format!("machine {m}: {what}"));
                    }
                }
            }
        }
        self.groups().find_map(|group| self.unwell(bodies, group))
    }

    fn stored(&self, bodies: &[Option<&Body>]) -> Result<Vec<String>, Failure> {
        self.groups()
            .map(|group| {
                let leader = self.leader(bodies, group).ok_or_else(|| Failure(format!("{group} has no leader")))?;
                Ok(format!("{group}: {:?}", leader.states[&group].versions))
            })
            .collect()
    }

    /// Nothing may go. A write may come whose client gave up: it stood in the log of a machine that leads now (`fast/network` 1005).
    fn may_follow(&self, before: &str, after: &str) -> bool {
        let versions = |picture: &str| -> BTreeSet<String> {
            picture.split('(').skip(1).filter_map(|version| Some(version.split_once(')')?.0.to_string())).collect()
        };
        versions(after).is_superset(&versions(before))
    }
}

impl Registers {
    /// All versions that are stored at the end, by register, as the leaders have them.
    pub fn versions(&self, bodies: &[Option<&Body>]) -> BTreeMap<u64, Vec<(clock::Timestamp, u64)>> {
        let leaders = self.groups().filter_map(|group| self.leader(bodies, group).map(|body| (group, body)));
        leaders.flat_map(|(group, body)| body.states[&group].versions.clone()).collect()
    }

    /// The body that leads a group with a lease.
    pub(self) fn leader<'b>(&self, bodies: &[Option<&'b Body>], group: GroupId) -> Option<&'b Body> {
        bodies.iter().flatten().copied().find(|body| body.replicas.lease(group).is_some())
    }

    /// What a group lacks of a leader and equal replicas on machines that are there.
    fn unwell(&self, bodies: &[Option<&Body>], group: GroupId) -> Option<String> {
        let Some(leader) = self.leader(bodies, group) else {
            return Some(format!("{group} has no leader with a lease"));
        };
        let status = leader.replicas.status(group)?;
        let members = status.members;
        if !members.outgoing.is_empty() || (members.voters.len() as u64) < self.workload.replicas {
            return Some(format!("{group} changes its members: {members:?}"));
        }
        let own = &leader.states[&group];
        for member in members.voters.iter().chain(&members.learners) {
            if !self.is_current(member.store) {
                return Some(format!("{group} has a member on {}, which is gone", member.store));
            }
            let state = bodies[self.machine_of(member.store)].and_then(|body| body.states.get(&group));
            if state.is_none_or(|state| state != own) {
                let applied = state.map(|state| state.applied);
                return Some(format!("{group}: {} is at {applied:?}, the leader at {}", member.store, own.applied));
            }
        }
        None
    }
}

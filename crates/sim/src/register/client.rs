//! A client: one operation after another, asked of one machine after another until it is answered or given up.

use super::{Answer, Ask, Registers, Talk};
use crate::cluster::{Desk, Heard};
use checker::linear::Act;
use clock::Timestamp;

/// It asks again after this long without an answer, nanoseconds, and up to as much again.
const PATIENCE_NS: u64 = 150_000_000;
/// It gives an operation up after so many attempts.
const ATTEMPTS_MAX: u32 = 12;
/// It asks again so soon where it was sent away, nanoseconds, and up to as much again.
const AGAIN_NS: u64 = 5_000_000;

/// What runs.
#[derive(Clone, Debug)]
struct Running {
    called_ns: u64,
    ask: Ask,
    attempts: u32,
    /// Of a snapshot: what is left to read, when, and what was found.
    rest: Vec<u64>,
    at: Timestamp,
    found: Vec<(u64, Option<u64>)>,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    number: u32,
    /// Its last request.
    request: u64,
    /// Timers of earlier attempts are void.
    attempt: u64,
    /// The machine that it asks next.
    machine: usize,
    running: Option<Running>,
    /// What it last saw in each register: it swaps that.
    known: std::collections::BTreeMap<u64, Option<u64>>,
}

impl Client {
    /// Number `n`.
    pub fn new(number: u32) -> Self {
        let (request, attempt, machine, running, known) = Default::default();
        Client { number, request, attempt, machine, running, known }
    }

    /// Whether it waits for an answer.
    pub fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// It hears something.
    pub fn hears(&mut self, system: &mut Registers, desk: &mut Desk<'_, Talk>, heard: Heard<Talk>) {
        match heard {
            Heard::Begin => self.think(system, desk),
            Heard::Timer(attempt) if attempt == self.attempt => match &self.running {
                None if desk.draining => {}
                None => self.begin(system, desk),
                Some(_) => {
                    desk.probes.hit("a client asked again");
                    self.machine = usize::try_from(desk.rng.below(desk.machines as u64)).unwrap_or(0);
                    self.ask(system, desk);
                }
            },
            Heard::Answer(_, Talk::Answer(request, answer)) if request == self.request => {
                self.answered(system, desk, answer);
            }
            Heard::Timer(_) | Heard::Answer(..) => {}
        }
    }

    fn think(&mut self, system: &Registers, desk: &mut Desk<'_, Talk>) {
        self.attempt += 1;
        let ns = desk.rng.below(system.workload.think_ms * 1_000_000 + 1);
        desk.timers.push((ns + 1_000, self.attempt));
    }

    fn begin(&mut self, system: &mut Registers, desk: &mut Desk<'_, Talk>) {
        let load = &system.workload;
        let key = desk.rng.below(system.keys());
        let percent = desk.rng.below(100);
        let (writes, snapshots) = (load.writes_percent, load.writes_percent + load.snapshots_percent);
        let mut rest = Vec::new();
        let ask = if percent < writes {
            system.last_value += 1;
            let value = system.last_value;
            match self.known.get(&key) {
                Some(from) if desk.rng.chance(40) => Ask::Swap { key, from: *from, to: value },
                _ => Ask::Write { key, value },
            }
        } else if percent < snapshots {
            rest = (0..system.keys()).filter(|_| desk.rng.chance(50)).collect();
            Ask::Latest
        } else if percent < snapshots + load.past_percent {
            Ask::Past { key }
        } else {
            Ask::Read { key }
        };
        let (called_ns, attempts, at, found) = (desk.true_ns, 0, Timestamp::MIN, Vec::new());
        self.running = Some(Running { called_ns, ask, attempts, rest, at, found });
        self.request += 1;
        self.ask(system, desk);
    }

    /// Asks, for the first time or again.
    fn ask(&mut self, system: &mut Registers, desk: &mut Desk<'_, Talk>) {
        let Some(running) = &mut self.running else { return };
        running.attempts += 1;
        if running.attempts > ATTEMPTS_MAX {
            return self.give_up(system, desk);
        }
        self.attempt += 1;
        desk.asks.push((self.machine, Talk::Ask(self.request, running.ask)));
        desk.timers.push((desk.rng.range(PATIENCE_NS, 2 * PATIENCE_NS), self.attempt));
    }

    fn answered(&mut self, system: &mut Registers, desk: &mut Desk<'_, Talk>, answer: Answer) {
        let Some(running) = &mut self.running else { return };
        match (running.ask, answer) {
            (_, Answer::NotHere(leader)) => {
                let any = usize::try_from(desk.rng.below(desk.machines as u64)).unwrap_or(0);
                self.machine = leader.map_or(any, |store| system.machine_of(store));
                self.attempt += 1;
                desk.timers.push((desk.rng.range(AGAIN_NS, 2 * AGAIN_NS), self.attempt));
            }
            (Ask::Latest, Answer::Latest(at)) => {
                running.at = at;
                self.next_of_snapshot(system, desk);
            }
            (Ask::Snapshot { key, .. }, Answer::Found(at, found)) if at == running.at => {
                running.found.push((key, found));
                self.next_of_snapshot(system, desk);
            }
            (Ask::Read { key }, Answer::Found(at, found)) => {
                self.known.insert(key, found);
                self.done(system, desk, at, &[(key, found)], Some(Act::Read(found)));
            }
            (Ask::Past { key }, Answer::Found(at, found)) => self.done(system, desk, at, &[(key, found)], None),
            (Ask::Write { key, value }, Answer::Written(at, _)) => {
                self.known.insert(key, Some(value));
                self.done(system, desk, at, &[], Some(Act::Write(value)));
            }
            (Ask::Swap { key, from, to }, Answer::Written(at, wrote)) => {
                if wrote {
                    self.known.insert(key, Some(to));
                } else {
                    self.known.remove(&key);
                    desk.probes.hit("a swap met another value");
                }
                self.done(system, desk, at, &[], Some(Act::Swap { from, to, done: Some(wrote) }));
            }
            _ => {}
        }
    }

    /// The next register of a snapshot, which is another request to another machine.
    fn next_of_snapshot(&mut self, system: &mut Registers, desk: &mut Desk<'_, Talk>) {
        let Some(running) = &mut self.running else { return };
        let at = running.at;
        match running.rest.pop() {
            Some(key) => {
                running.ask = Ask::Snapshot { key, at };
                running.attempts = 0;
                self.request += 1;
                self.ask(system, desk);
            }
            None => {
                let found = std::mem::take(&mut running.found);
                desk.probes.hit("a snapshot of several registers");
                self.done(system, desk, at, &found, None);
            }
        }
    }

    fn done(
        &mut self,
        system: &mut Registers,
        desk: &mut Desk<'_, Talk>,
        at: Timestamp,
        found: &[(u64, Option<u64>)],
        act: Option<Act>,
    ) {
        let Some(running) = self.running.take() else { return };
        desk.notes.push(format!("{:?} at {at}: {act:?} {found:?}", running.ask));
        let times = (running.called_ns, desk.true_ns);
        system.last_txn += 1;
        let who = (self.number, system.last_txn);
        let group = system.group_of(running.ask.key());
        system.chronicle.answered(who, (group, running.ask), times, at, found, act);
        self.think(system, desk);
    }

    /// It does not know what became of a write, and never will.
    fn give_up(&mut self, system: &mut Registers, desk: &mut Desk<'_, Talk>) {
        let Some(running) = self.running.take() else { return };
        desk.notes.push(format!("gives up {:?}", running.ask));
        desk.probes.hit("a client gave up");
        system.last_txn += 1;
        system.chronicle.given_up((self.number, system.last_txn), running.called_ns, running.ask);
        self.think(system, desk);
    }
}

impl Ask {
    /// The register that it is about.
    pub fn key(&self) -> u64 {
        match self {
            Ask::Write { key, .. }
            | Ask::Swap { key, .. }
            | Ask::Read { key }
            | Ask::Snapshot { key, .. }
            | Ask::Past { key } => *key,
            Ask::Latest => 0,
        }
    }
}

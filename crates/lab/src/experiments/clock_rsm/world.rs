//! Sites, links and clients around four replication protocols, on virtual time.
//!
//! A replica is told what comes in and says what goes out ([`Replica`]): it sees its own clock and nothing else. Links keep the order of what they carry (004
//! section 3.2.1) and take half of table 3.3's round trip, a little more or less each time; clients stand beside their replica, in a closed loop with a
//! pause (section 3.6.2). Local work and disks take no time, as in the formulas of section 3.4.

use crate::experiments::clock_rsm_model::formulas::Group;
use sim::{Agenda, Rng};

/// A millisecond, nanoseconds.
pub const MS: u64 = 1_000_000;
/// From a client to its replica, one way, nanoseconds: 0.6 ms there and back (section 3.6.2).
const CLIENT_NS: u64 = 300_000;
/// Clients pause up to so long between two commands, nanoseconds (section 3.6.2).
const PAUSE_NS: u64 = 80 * MS;
/// Clients of a site (section 3.6.2).
const CLIENTS: usize = 40;
/// A message takes so much more than half a round trip, or less, of a million: ours, the document prints no jitter.
const JITTER_PPM: u64 = 20_000;
/// What clocks show is counted from here, nanoseconds: none shows less than zero.
const EPOCH_NS: u64 = 1_000 * MS;

/// A command, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command(pub u64);

/// What a replica sees and does for one input.
pub struct Side<M> {
    /// Its clock, nanoseconds.
    pub clock_ns: u64,
    /// To whom it says what, in this order; to itself, too.
    pub sends: Vec<(usize, M)>,
    /// What it executes, in this order.
    pub executes: Vec<Command>,
    /// It wants to be called when its clock shows so much, nanoseconds.
    pub wakes_ns: Vec<u64>,
}

impl<M: Clone> Side<M> {
    /// The same to all replicas, itself included.
    pub fn broadcast(&mut self, replicas: usize, message: &M) {
        self.sends.extend((0..replicas).map(|to| (to, message.clone())));
    }
}

/// A replica of a protocol.
pub trait Replica {
    /// What replicas say to each other.
    type Message: Clone;
    /// It starts.
    fn start(&mut self, _side: &mut Side<Self::Message>) {}
    /// A client of its site asks.
    fn request(&mut self, command: Command, side: &mut Side<Self::Message>);
    /// A message of a replica, perhaps of itself.
    fn message(&mut self, from: usize, message: Self::Message, side: &mut Side<Self::Message>);
    /// Its clock shows what it wanted to be called at.
    fn wake(&mut self, _side: &mut Side<Self::Message>) {}
}

/// A run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Replicas, as positions in table 3.3.
    pub sites: &'static [usize],
    /// The one with clients; `None`: all have.
    pub only: Option<usize>,
    /// Not counted, nanoseconds.
    pub ramp_up_ns: u64,
    /// Counted, nanoseconds.
    pub length_ns: u64,
    /// Clocks are at most so far from true time, nanoseconds; less than [`EPOCH_NS`].
    pub clock_ns: u64,
    /// Of all choices.
    pub seed: u64,
}

enum Event<M> {
    Ask(usize),
    Request(usize),
    Message(usize, usize, M),
    Wake(usize),
    Reply(usize),
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// From a client's request to its answer, nanoseconds, by site, in the order of the answers.
    pub took_ns: Vec<Vec<u64>>,
    /// What each replica executed, in its order.
    pub executed: Vec<Vec<Command>>,
}

struct World<R: Replica> {
    agenda: Agenda<Event<R::Message>>,
    replicas: Vec<R>,
    group: Group,
    rng: Rng,
    offsets_ns: Vec<u64>,
    /// When what was sent last arrives, by sender and receiver.
    arrives_ns: Vec<Vec<u64>>,
    /// Of each client: its last command, and when it asked.
    asked: Vec<(Command, u64)>,
    outcome: Outcome,
    counted: std::ops::Range<u64>,
}

impl<R: Replica> World<R> {
    fn sites(&self) -> usize {
        self.replicas.len()
    }

    /// Calls a replica and does what it says.
    fn call(&mut self, at: usize, with: impl FnOnce(&mut R, &mut Side<R::Message>)) {
        let clock_ns = self.agenda.now_ns() + self.offsets_ns[at];
        let mut side = Side { clock_ns, sends: Vec::new(), executes: Vec::new(), wakes_ns: Vec::new() };
        with(&mut self.replicas[at], &mut side);
        for (to, message) in side.sends {
            let when_ns = self.arrival_ns(at, to);
            self.agenda.at(when_ns, Event::Message(at, to, message));
        }
        for wake_ns in side.wakes_ns {
            self.agenda.after(wake_ns.saturating_sub(clock_ns), Event::Wake(at));
        }
        for command in side.executes {
            self.outcome.executed[at].push(command);
            let client = (command.0 % self.asked.len() as u64) as usize;
            if client % self.sites() == at {
                self.agenda.after(CLIENT_NS, Event::Reply(client));
            }
        }
    }

    /// When what is sent now arrives: not before what was sent earlier.
    fn arrival_ns(&mut self, from: usize, to: usize) -> u64 {
        let one_way_ns = (self.group.one_way_ms(from, to) * MS as f64) as u64;
        let ppm = 1_000_000 - JITTER_PPM + self.rng.below(2 * JITTER_PPM + 1);
        let arrival_ns = self.agenda.now_ns() + one_way_ns / 1_000 * ppm / 1_000;
        let last_ns = &mut self.arrives_ns[from][to];
        *last_ns = (*last_ns).max(arrival_ns);
        *last_ns
    }

    fn pause(&mut self, client: usize) {
        let pause_ns = self.rng.below(PAUSE_NS + 1);
        self.agenda.after(pause_ns, Event::Ask(client));
    }

    fn happen(&mut self, event: Event<R::Message>) {
        let clients = self.asked.len() as u64;
        match event {
            Event::Ask(client) => {
                // Numbers of a client's commands leave its own number as the rest.
                let next = Command(self.asked[client].0.0 + clients);
                self.asked[client] = (next, self.agenda.now_ns());
                self.agenda.after(CLIENT_NS, Event::Request(client));
            }
            Event::Request(client) => {
                let command = self.asked[client].0;
                self.call(client % self.sites(), |replica, side| replica.request(command, side));
            }
            Event::Message(from, to, message) => self.call(to, |replica, side| replica.message(from, message, side)),
            Event::Wake(at) => self.call(at, Replica::wake),
            Event::Reply(client) => {
                let now_ns = self.agenda.now_ns();
                if self.counted.contains(&now_ns) {
                    let site = client % self.sites();
                    self.outcome.took_ns[site].push(now_ns - self.asked[client].1);
                }
                self.pause(client);
            }
        }
    }
}

/// Runs replicas that `of` makes, by their numbers.
pub fn run<R: Replica>(setup: &Setup, of: impl Fn(usize) -> R) -> Outcome {
    let sites = setup.sites.len();
    let mut rng = Rng::new(setup.seed);
    let clients = CLIENTS * sites;
    let mut world = World {
        agenda: Agenda::new(0),
        replicas: (0..sites).map(of).collect(),
        group: Group::at(setup.sites),
        offsets_ns: (0..sites).map(|_| EPOCH_NS - setup.clock_ns + rng.below(2 * setup.clock_ns + 1)).collect(),
        rng,
        arrives_ns: vec![vec![0; sites]; sites],
        asked: (0..clients as u64).map(|client| (Command(client), 0)).collect(),
        outcome: Outcome { took_ns: vec![Vec::new(); sites], executed: vec![Vec::new(); sites] },
        counted: setup.ramp_up_ns..setup.ramp_up_ns + setup.length_ns,
    };
    for at in 0..sites {
        world.call(at, Replica::start);
    }
    for client in (0..clients).filter(|client| setup.only.is_none_or(|only| client % sites == only)) {
        world.pause(client);
    }
    while world.agenda.next_ns().is_some_and(|next_ns| next_ns < world.counted.end) {
        let Some(event) = world.agenda.advance() else { break };
        world.happen(event);
    }
    world.outcome
}

//! The event loop of many machines.

use super::faults::{Fault, Mend};
use super::host::{Host, Load, Standing};
use super::network::{Class, End, Network, Weather};
use super::place::{Act, Desk, Heard, Input, Place, System};
use super::service::Model;
use crate::agenda::Agenda;
use crate::clock::{ClockKind, POLL_EVERY_NS, SimClock};
use crate::machine::Failure;
use crate::probes::Probes;
use crate::rng::Rng;
use crate::trace::Trace;
use crate::world::START_NS;
use clocksource::Leap;

/// How a run is laid out.
#[derive(Clone, Debug)]
pub struct Layout {
    /// How many machines.
    pub machines: usize,
    /// For how long there are faults, nanoseconds.
    pub length_ns: u64,
    /// Within so long after all healed, everything serves again, nanoseconds.
    pub serves_again_ns: u64,
    /// The network.
    pub weather: Weather,
    /// The machines.
    pub model: Model,
    /// Their clocks.
    pub clocks: Vec<ClockKind>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// What happens next.
#[derive(Clone, Debug)]
pub(super) enum Event<T> {
    /// A message arrives.
    Arrive(End, End, Load<T>),
    /// A core is done with what came in; counts only for the life in which it came.
    Work(usize, u64, Input<T>),
    /// Time passes for a machine.
    Tick(usize, u64),
    /// A sync is over.
    Synced(usize, u64),
    /// A clock's poller asks its daemon.
    Poll(usize),
    /// A client's timer rings.
    Client(usize, u64),
    /// A machine loses power in the middle of a sync, and for so long, nanoseconds.
    Die(usize, u64, u64),
    /// A fault of the scenario, by its number.
    Fault(usize),
    /// It is over.
    Mend(Mend),
}

/// Many machines.
pub struct Cluster<S: System> {
    pub(super) layout: Layout,
    pub(super) rng: Rng,
    pub(super) agenda: Agenda<Event<S::Talk>>,
    pub(super) hosts: Vec<Host<S::Body, S::Talk>>,
    pub(super) network: Network,
    /// What runs on them.
    pub system: S,
    pub(super) draining: bool,
    /// What happened.
    pub trace: Trace,
    /// Rare paths.
    pub probes: Probes,
}

impl<S: System> Cluster<S> {
    /// Machines that are off.
    pub fn new(layout: Layout, system: S, mut rng: Rng, trace: Trace) -> Self {
        let mut hosts = Vec::new();
        for n in 0..layout.machines {
            let kind = layout.clocks[n % layout.clocks.len()];
            let clock = SimClock::new(kind, START_NS, Leap::None, false, &mut rng);
            hosts.push(Host::new(clock, rng.draw(), layout.model.cores));
        }
        let (agenda, network) = (Agenda::new(START_NS), Network::new(layout.weather.clone()));
        let (draining, probes) = Default::default();
        Cluster { layout, rng, agenda, hosts, network, system, draining, trace, probes }
    }

    /// Whether clock bounds hold on all machines.
    pub fn bounds_hold(&self) -> bool {
        self.hosts.iter().all(|host| host.clock.is_honest())
    }

    /// How many events there were, and how much virtual time passed, nanoseconds.
    pub fn pace(&self) -> (u64, u64) {
        (self.agenda.happened(), self.agenda.now_ns() - START_NS)
    }

    pub(super) fn say(&mut self, what: &str) {
        self.trace.say(self.agenda.now_ns(), what);
    }

    /// What runs on each machine.
    pub fn bodies(&self) -> Vec<Option<&S::Body>> {
        self.hosts.iter().map(|host| host.body.as_ref()).collect()
    }

    /// One event.
    pub(super) fn step(&mut self) -> Result<(), Failure> {
        let Some(event) = self.agenda.advance() else {
            return Err(Failure("nothing is left to happen, and the run is not at its end".into()));
        };
        match event {
            Event::Arrive(End::Machine(m), from, load) => self.arrive(m, from, load),
            Event::Arrive(End::Client(c), End::Machine(m), Load::Talk(talk)) => {
                self.client(c, Heard::Answer(m, talk));
                Ok(())
            }
            Event::Arrive(..) => Ok(()),
            Event::Work(m, era, input) if self.hosts[m].era == era => {
                self.hosts[m].waiting = self.hosts[m].waiting.saturating_sub(1);
                self.work(m, input)
            }
            Event::Tick(m, era) if self.hosts[m].era == era => {
                self.agenda.after(S::TICK_NS, Event::Tick(m, era));
                // A stopped process misses its ticks.
                if self.hosts[m].standing == Standing::Awake { self.input(m, Input::Tick) } else { Ok(()) }
            }
            Event::Synced(m, era) if self.hosts[m].era == era => {
                if self.hosts[m].device.stalls > 0 {
                    self.hosts[m].held_sync = true;
                    return Ok(());
                }
                self.work(m, Input::Synced)
            }
            Event::Die(m, era, lasts_ns) if self.hosts[m].era == era => {
                self.crash(m, true);
                self.agenda.after(lasts_ns, Event::Mend(Mend::Start(m)));
                Ok(())
            }
            Event::Work(..) | Event::Tick(..) | Event::Synced(..) | Event::Die(..) => Ok(()),
            Event::Poll(m) => {
                self.agenda.after(POLL_EVERY_NS, Event::Poll(m));
                let (host, now_ns) = (&mut self.hosts[m], self.agenda.now_ns());
                if host.body.is_some() && host.standing == Standing::Awake {
                    let events = host.clock.poll(now_ns, &mut self.rng);
                    self.note_clock(m, &events);
                }
                Ok(())
            }
            Event::Client(c, token) => {
                self.client(c, Heard::Timer(token));
                Ok(())
            }
            Event::Fault(n) => self.fault(n),
            Event::Mend(mend) => self.mend(mend),
        }
    }

    /// A message reaches a machine: it waits for a core.
    fn arrive(&mut self, m: usize, from: End, load: Load<S::Talk>) -> Result<(), Failure> {
        let (bytes, input) = match (load, from) {
            (Load::Peer(_, bytes), End::Machine(from)) => (bytes.len(), Input::Peer { from, bytes }),
            (Load::Talk(talk), End::Client(client)) => (self.system.talk_bytes(&talk), Input::Ask { client, talk }),
            _ => return Ok(()),
        };
        let (now_ns, host) = (self.agenda.now_ns(), &mut self.hosts[m]);
        if host.body.is_none() || matches!(host.standing, Standing::Asleep(_)) {
            return Ok(());
        }
        if host.standing == Standing::Paused {
            return self.work(m, input);
        }
        if host.waiting >= self.layout.model.backlog {
            self.probes.hit("a machine was too busy for a message");
            return Ok(());
        }
        host.waiting += 1;
        let model = &self.layout.model;
        let cost_ns = self.system.cost_ns(m, &input, model).unwrap_or_else(|| model.cost_ns(bytes));
        let done_ns = host.cores.serve(now_ns, cost_ns);
        let era = host.era;
        self.agenda.at(done_ns, Event::Work(m, era, input));
        Ok(())
    }

    /// An input, at once, or later if the process does not run.
    pub(super) fn work(&mut self, m: usize, input: Input<S::Talk>) -> Result<(), Failure> {
        let host = &mut self.hosts[m];
        if host.standing != Standing::Awake {
            if host.standing == Standing::Paused && matches!(input, Input::Peer { .. } | Input::Ask { .. }) {
                self.probes.hit("a message for a stopped process");
            }
            if host.mail.len() < self.layout.model.backlog || matches!(input, Input::Synced | Input::Timer(_)) {
                host.mail.push_back(input);
            }
            return Ok(());
        }
        self.input(m, input)
    }

    fn input(&mut self, m: usize, input: Input<S::Talk>) -> Result<(), Failure> {
        if matches!(input, Input::Synced) {
            self.hosts[m].syncing = false;
        }
        self.with(m, |system, body, place| system.input(body, place, input))
    }

    /// Something is done on a machine, if anything runs there, and its effects leave.
    pub(super) fn with(
        &mut self,
        m: usize,
        what: impl FnOnce(&mut S, &mut S::Body, &mut Place<'_, S::Talk>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (true_ns, host) = (self.agenda.now_ns(), &mut self.hosts[m]);
        let Some(body) = &mut host.body else { return Ok(()) };
        check_bound(&host.clock, m, true_ns)?;
        let mut place = Place {
            machine: m,
            true_ns,
            now: host.clock.read(true_ns),
            disk: &host.disk,
            draining: self.draining,
            rng: &mut self.rng,
            probes: &mut self.probes,
            acts: Vec::new(),
            notes: Vec::new(),
        };
        what(&mut self.system, body, &mut place)?;
        let (acts, notes) = (place.acts, place.notes);
        self.effects(m, acts, &notes);
        Ok(())
    }

    pub(super) fn effects(&mut self, m: usize, acts: Vec<Act<S::Talk>>, notes: &[String]) {
        for note in notes {
            self.say(&format!("m{m} {note}"));
        }
        for act in acts {
            match act {
                Act::Send(to, class, bytes) => {
                    self.trace.mix(&bytes);
                    self.carry((End::Machine(m), End::Machine(to)), bytes.len(), Load::Peer(class, bytes));
                }
                Act::Tell(client, talk) => {
                    let bytes = self.system.talk_bytes(&talk);
                    self.carry((End::Machine(m), End::Client(client)), bytes, Load::Talk(talk));
                }
                Act::Sync if self.hosts[m].syncing => {}
                Act::Sync => {
                    let (now_ns, host) = (self.agenda.now_ns(), &mut self.hosts[m]);
                    host.syncing = true;
                    let done_ns = host.device.sync(now_ns, &self.layout.model, &mut self.rng);
                    self.agenda.at(done_ns, Event::Synced(m, host.era));
                    if let Some((others, lasts_ns)) = host.dies_at_sync.take() {
                        if others > 0 {
                            host.dies_at_sync = Some((others - 1, lasts_ns));
                            continue;
                        }
                        let die_ns = self.rng.range(now_ns, done_ns);
                        self.agenda.at(die_ns, Event::Die(m, host.era, lasts_ns));
                    }
                }
                Act::After(ns, token) => {
                    let era = self.hosts[m].era;
                    self.agenda.after(ns, Event::Work(m, era, Input::Timer(token)));
                }
            }
        }
    }

    pub(super) fn note_clock(&mut self, m: usize, events: &[clocksource::Event]) {
        for event in events {
            self.say(&format!("m{m} {event}"));
        }
    }

    /// A message leaves.
    fn carry(&mut self, (from, to): (End, End), bytes: usize, load: Load<S::Talk>) {
        let class = match &load {
            Load::Peer(class, _) => *class,
            Load::Talk(_) => Class::Normal,
        };
        let arrivals = self.network.carry(self.agenda.now_ns(), (from, to), class, bytes, &mut self.rng);
        if let Some(when_ns) = arrivals.second_ns {
            self.probes.hit("a message came twice");
            self.agenda.at(when_ns, Event::Arrive(to, from, load.clone()));
        }
        match arrivals.first_ns {
            Some(when_ns) => self.agenda.at(when_ns, Event::Arrive(to, from, load)),
            None => self.probes.hit("a message was lost"),
        }
    }

    /// A client hears something.
    pub(super) fn client(&mut self, c: usize, heard: Heard<S::Talk>) {
        let mut desk = Desk {
            client: c,
            true_ns: self.agenda.now_ns(),
            draining: self.draining,
            machines: self.hosts.len(),
            rng: &mut self.rng,
            probes: &mut self.probes,
            asks: Vec::new(),
            timers: Vec::new(),
            notes: Vec::new(),
        };
        self.system.client(&mut desk, heard);
        let (asks, timers, notes) = (desk.asks, desk.timers, desk.notes);
        for note in notes {
            self.say(&format!("c{c} {note}"));
        }
        for (m, talk) in asks {
            let bytes = self.system.talk_bytes(&talk);
            self.carry((End::Client(c), End::Machine(m)), bytes, Load::Talk(talk));
        }
        for (ns, token) in timers {
            self.agenda.after(ns, Event::Client(c, token));
        }
    }
}

/// A trusted reading of an honest clock contains true time.
fn check_bound(clock: &SimClock, machine: usize, true_ns: u64) -> Result<(), Failure> {
    if !clock.is_honest() {
        return Ok(());
    }
    match clock.miss_ns(true_ns) {
        0 => Ok(()),
        ns => Err(Failure(format!("true time is {ns} ns outside of the trusted reading on machine {machine}"))),
    }
}

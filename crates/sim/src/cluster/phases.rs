//! The phases of a run, and what goes wrong in the first.

use super::faults::{Kind, Mend, Whom};
use super::host::Standing;
use super::place::{Heard, Input, Operation, Place, System};
use super::world::{Cluster, Event};
use crate::clock::{POLL_EVERY_NS, Trouble as ClockTrouble};
use crate::machine::Failure;
use store::disk::fake::{Crash, FakeDisk};

/// After nobody asks any more all comes to rest within so long, nanoseconds.
const REST_NS: u64 = 30_000_000_000;
/// Every second loss of power comes in the middle of one of so many syncs.
const SYNCS_BEFORE_DEATH: u64 = 40;
/// A clock whose interval is wider than this when everything heals, or that is further off, is not waited for, nanoseconds.
const WIDE_NS: u64 = 1_000_000_000;
/// A process that is told to stop looks so often whether others have taken what it led, so many nanoseconds apart: as a server does.
const HANDOVER_LOOKS: u64 = 20;
const HANDOVER_LOOK_NS: u64 = 100_000_000;
/// A machine whose disk is full is started again so much later, nanoseconds.
const START_AGAIN_NS: u64 = 100_000_000;
/// Nothing goes wrong for so long, nanoseconds.
const FOUNDED_NS: u64 = 300_000_000;

impl<S: System> Cluster<S> {
    /// All phases.
    ///
    /// # Errors
    /// What broke a rule that ends the run.
    pub fn run(&mut self) -> Result<(), Failure> {
        for m in 0..self.hosts.len() {
            self.start(m)?;
            let first = self.rng.below(POLL_EVERY_NS);
            self.agenda.after(first, Event::Poll(m));
        }
        for c in 0..self.system.clients() {
            self.client(c, Heard::Begin);
        }
        // Groups are founded before anything goes wrong.
        let begun_ns = self.agenda.now_ns() + FOUNDED_NS;
        for n in 0..self.layout.faults.len() {
            for after_ns in self.layout.faults[n].clone().times_ns(self.layout.length_ns, &mut self.rng) {
                self.agenda.at(begun_ns + after_ns, Event::Fault(n));
            }
        }
        let end_ns = begun_ns + self.layout.length_ns;
        while self.agenda.next_ns().is_some_and(|next| next < end_ns) {
            self.step()?;
        }
        self.heal()?;
        let healed_ns = self.agenda.now_ns();
        self.until(healed_ns + self.layout.serves_again_ns, |world| {
            let waits = world.system.waits_for(&world.bodies(), healed_ns);
            waits.map(|what| format!("does not serve again: {what}"))
        })?;
        self.probes.hit("serves again");
        self.rest()?;
        let before = self.system.stored(&self.bodies())?;
        self.say("the power fails everywhere");
        for m in 0..self.hosts.len() {
            self.crash(m, true);
        }
        for m in 0..self.hosts.len() {
            self.start(m)?;
        }
        self.rest()?;
        let after = self.system.stored(&self.bodies())?;
        match before.iter().zip(&after).find(|(a, b)| !self.system.may_follow(a, b)) {
            Some((a, b)) => Err(Failure(format!("the last loss of power changed what is stored: {a} to {b}"))),
            None if before.len() != after.len() => Err(Failure("the last loss of power lost what was stored".into())),
            None => Ok(()),
        }
    }

    /// Nobody asks any more, and all comes to rest.
    fn rest(&mut self) -> Result<(), Failure> {
        self.draining = true;
        self.until(self.agenda.now_ns() + REST_NS, |world| {
            world.system.restless(&world.bodies()).map(|what| format!("does not come to rest: {what}"))
        })
    }

    pub(super) fn until(&mut self, deadline_ns: u64, waits: impl Fn(&Self) -> Option<String>) -> Result<(), Failure> {
        // Looked at every so often: it may be a look at all that is stored.
        const LOOK_NS: u64 = 50_000_000;
        let mut look_ns = self.agenda.now_ns();
        loop {
            if self.agenda.now_ns() >= look_ns {
                let Some(what) = waits(self) else { return Ok(()) };
                if self.agenda.now_ns() > deadline_ns {
                    return Err(Failure(what));
                }
                look_ns = self.agenda.now_ns() + LOOK_NS;
            }
            self.step()?;
        }
    }

    /// Everything is right from now on.
    fn heal(&mut self) -> Result<(), Failure> {
        self.say("everything heals");
        self.agenda.retain(|event| !matches!(event, Event::Fault(_) | Event::Mend(_) | Event::Die(..)));
        self.network.heal();
        self.layout.model.slow_syncs_percent = 0;
        for m in 0..self.hosts.len() {
            let host = &mut self.hosts[m];
            (host.device.slow, host.full, host.dies_at_sync) = (Vec::new(), 1, None);
            if host.device.stalls > 0 {
                host.device.stalls = 1;
                self.mend(Mend::Stall(m))?;
            }
            self.mend(Mend::Full(m))?;
            let era = self.hosts[m].era;
            self.mend(Mend::Resume(m, era))?;
            self.mend(Mend::Start(m))?;
            let now_ns = self.agenda.now_ns();
            self.hosts[m].clock.heal(now_ns);
            let interval = self.hosts[m].clock.read(now_ns).interval;
            let wide_ns = interval.latest_ns.saturating_sub(interval.earliest_ns);
            // One that was set just now has not heard from its reference yet how far it is off.
            let wide = wide_ns.max(self.hosts[m].clock.off_ns(now_ns)) > WIDE_NS;
            if wide || !self.hosts[m].clock.is_honest() {
                // A clock that was caught lying is not believed until long after, and one that was set far off is slewed for minutes, with
                // every commit waiting for its error: an operator starts its machine again.
                self.crash(m, true);
                self.start(m)?;
            }
        }
        Ok(())
    }

    pub(super) fn start(&mut self, m: usize) -> Result<(), Failure> {
        let (true_ns, host) = (self.agenda.now_ns(), &mut self.hosts[m]);
        if host.body.is_some() {
            return Ok(());
        }
        if host.full > 0 {
            // A log that needs a segment to begin with would not open.
            self.agenda.after(START_AGAIN_NS, Event::Mend(Mend::Start(m)));
            return Ok(());
        }
        host.clear();
        // A process that starts on a machine that went on finds the clock as its last life knew it: the poller is no part of what dies.
        if std::mem::take(&mut host.cold) {
            let events = host.clock.restart(true_ns, &mut self.rng);
            self.note_clock(m, &events);
        }
        let host = &mut self.hosts[m];
        let era = host.era;
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
        let body = self.system.start(&mut place)?;
        let (acts, notes) = (place.acts, place.notes);
        self.hosts[m].body = Some(body);
        self.say(&format!("m{m} starts"));
        if self.system.is_refused(&self.bodies(), m) {
            return Err(Failure(format!(
                "m{m} is refused as one that has forgotten what it told, and its disk has kept all that was synced"
            )));
        }
        self.effects(m, acts, &notes);
        let first = self.rng.below(S::TICK_NS);
        self.agenda.after(first, Event::Tick(m, era));
        Ok(())
    }

    /// A machine comes back as it was a while ago. Its peers were told of what it has lost: it is refused, and comes back empty, as the error says.
    fn go_back(&mut self, m: usize, lasts_ns: u64) -> Result<(), Failure> {
        let before = self.hosts[m].before.take();
        // On a full disk it would not start at all.
        let may_start = !self.draining && self.hosts[m].full == 0;
        let Some(before) = before.filter(|_| may_start && self.system.may_wipe(&self.bodies())) else {
            return Ok(());
        };
        self.crash(m, true);
        before.crash(Crash::LoseUnsynced);
        self.hosts[m].disk = before;
        self.system.goes_back(m);
        self.probes.hit("a store went back");
        let started = self.start(m);
        let Err(Failure(why)) = started else { return Ok(()) };
        if !self.system.is_refused(&self.bodies(), m) {
            return Err(Failure(why));
        }
        self.probes.hit("a store that had gone back was refused");
        self.crash(m, true);
        self.hosts[m].disk = FakeDisk::new(self.rng.draw());
        self.system.wiped(m);
        self.agenda.after(lasts_ns, Event::Mend(Mend::Start(m)));
        Ok(())
    }

    /// What runs on a machine dies; `power`: and what the machine had not written down is lost.
    pub(super) fn crash(&mut self, m: usize, power: bool) {
        let now_ns = self.agenda.now_ns();
        let host = &mut self.hosts[m];
        let Some(mut body) = host.body.take() else { return };
        if host.syncing && self.rng.chance(60) {
            host.disk.fail_syncs(1);
            self.system.half_synced(&mut body);
            host.disk.fail_syncs(0);
            self.probes.hit("died in the middle of a sync");
        }
        let how = [Crash::LoseUnsynced, Crash::TearLast, Crash::TearLast, Crash::Scatter];
        host.disk.crash(if power { self.rng.pick(&how).unwrap_or(Crash::LoseUnsynced) } else { Crash::KeepAll });
        host.cold |= power;
        host.clear();
        self.system.died(m, body, now_ns);
    }

    fn whom(&mut self, whom: Whom) -> usize {
        let leads = |m: &usize| self.hosts[*m].body.as_ref().is_some_and(|body| self.system.leads(body));
        let all = 0..self.hosts.len();
        let wanted: Vec<usize> = match whom {
            Whom::Any => Vec::new(),
            Whom::Leader => all.filter(leads).collect(),
            Whom::Follower => all.filter(|m| !leads(m)).collect(),
        };
        let any = self.rng.below(self.hosts.len() as u64);
        self.rng.pick(&wanted).unwrap_or(usize::try_from(any).unwrap_or(0))
    }

    /// A fault of the scenario happens.
    pub(super) fn fault(&mut self, n: usize) -> Result<(), Failure> {
        let fault = self.layout.faults[n].clone();
        let m = self.whom(fault.whom);
        let lasts_ns = fault.lasts_ns(&mut self.rng);
        let (machines, clients) = (self.hosts.len(), self.system.clients());
        let awake = self.hosts[m].body.is_some() && self.hosts[m].standing == Standing::Awake;
        if let Some(trouble) = fault.trouble(m, machines, clients, &mut self.rng) {
            self.happens(fault.kind, m, lasts_ns);
            let number = self.network.suffer(trouble);
            self.agenda.after(lasts_ns, Event::Mend(Mend::Network(number)));
            return Ok(());
        }
        match fault.kind {
            Kind::Power if self.hosts[m].body.is_some() && self.rng.chance(50) => {
                self.happens(fault.kind, m, lasts_ns);
                self.hosts[m].dies_at_sync = Some((self.rng.below(SYNCS_BEFORE_DEATH), lasts_ns));
            }
            Kind::Kill | Kind::Power if self.hosts[m].body.is_some() => {
                self.happens(fault.kind, m, lasts_ns);
                self.crash(m, fault.kind == Kind::Power);
                self.agenda.after(lasts_ns, Event::Mend(Mend::Start(m)));
            }
            Kind::Restart if awake => {
                self.happens(fault.kind, m, lasts_ns);
                let era = self.hosts[m].era;
                self.mend(Mend::End(m, era, lasts_ns, HANDOVER_LOOKS))?;
            }
            Kind::Blackout => {
                self.happens(fault.kind, m, lasts_ns);
                for m in 0..machines {
                    self.crash(m, true);
                    let after_ns = fault.lasts_ns(&mut self.rng);
                    self.agenda.after(after_ns, Event::Mend(Mend::Start(m)));
                }
            }
            Kind::Wipe if self.system.may_wipe(&self.bodies()) => {
                self.happens(fault.kind, m, lasts_ns);
                self.crash(m, true);
                self.hosts[m].disk = FakeDisk::new(self.rng.draw());
                self.hosts[m].before = None;
                self.system.wiped(m);
                self.agenda.after(lasts_ns, Event::Mend(Mend::Start(m)));
            }
            Kind::GoBack if awake && self.hosts[m].before.is_none() => {
                self.happens(fault.kind, m, lasts_ns);
                self.hosts[m].before = Some(self.hosts[m].disk.copy());
                self.system.keep(m);
                self.agenda.after(lasts_ns, Event::Mend(Mend::GoBack(m, lasts_ns)));
            }
            Kind::Pause | Kind::Sleep if awake => {
                self.happens(fault.kind, m, lasts_ns);
                let (now_ns, host) = (self.agenda.now_ns(), &mut self.hosts[m]);
                host.standing = if fault.kind == Kind::Pause { Standing::Paused } else { Standing::Asleep(now_ns) };
                let era = host.era;
                self.agenda.after(lasts_ns, Event::Mend(Mend::Resume(m, era)));
            }
            Kind::DiskStall => {
                self.happens(fault.kind, m, lasts_ns);
                self.hosts[m].device.stalls += 1;
                self.agenda.after(lasts_ns, Event::Mend(Mend::Stall(m)));
            }
            Kind::DiskSlow => {
                self.happens(fault.kind, m, lasts_ns);
                self.hosts[m].device.slow.push(fault.much);
                self.agenda.after(lasts_ns, Event::Mend(Mend::Slow(m, fault.much)));
            }
            Kind::DiskFull => {
                self.happens(fault.kind, m, lasts_ns);
                self.hosts[m].full += 1;
                self.hosts[m].disk.set_capacity(Some(0));
                self.agenda.after(lasts_ns, Event::Mend(Mend::Full(m)));
            }
            Kind::Clock if awake => self.disturb(m),
            Kind::Transfer | Kind::Members | Kind::Truncate | Kind::Split if awake => {
                self.happens(fault.kind, m, 0);
                let operation = match fault.kind {
                    Kind::Transfer => Operation::Transfer,
                    Kind::Members => Operation::Members,
                    Kind::Split => Operation::Split,
                    _ => Operation::Truncate,
                };
                self.with(m, |system, body, place| system.operate(body, place, operation))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn happens(&mut self, kind: Kind, m: usize, lasts_ns: u64) {
        self.probes.hit(probe(kind));
        self.say(&format!("m{m} {kind:?} for {} us", lasts_ns / 1000));
    }

    /// Something happens to the clock of a machine that stays awake.
    fn disturb(&mut self, m: usize) {
        let (now_ns, host) = (self.agenda.now_ns(), &mut self.hosts[m]);
        let Some(trouble) = host.clock.trouble(&mut self.rng) else { return };
        // The machine's own sleep is a fault of its own.
        if matches!(trouble, ClockTrouble::Sleep(_) | ClockTrouble::Move(_)) {
            return;
        }
        let events = host.clock.suffer(now_ns, trouble, &mut self.rng);
        self.probes.hit("fault: a clock was disturbed");
        self.say(&format!("m{m} clock: {trouble:?}"));
        self.note_clock(m, &events);
    }

    /// A fault is over.
    pub(super) fn mend(&mut self, mend: Mend) -> Result<(), Failure> {
        let now_ns = self.agenda.now_ns();
        match mend {
            Mend::Start(m) => self.start(m)?,
            Mend::GoBack(m, lasts_ns) => self.go_back(m, lasts_ns)?,
            Mend::End(m, era, lasts_ns, left) if self.hosts[m].era == era => {
                let leads = self.hosts[m].body.as_ref().is_some_and(|body| self.system.leads(body));
                if leads && left > 0 {
                    self.with(m, |system, body, place| system.operate(body, place, Operation::Leave))?;
                    self.agenda.after(HANDOVER_LOOK_NS, Event::Mend(Mend::End(m, era, lasts_ns, left - 1)));
                } else {
                    self.crash(m, false);
                    self.agenda.after(lasts_ns, Event::Mend(Mend::Start(m)));
                }
            }
            Mend::End(..) => {}
            Mend::Network(number) => self.network.mend(number),
            Mend::Resume(m, era) if self.hosts[m].era == era => {
                let host = &mut self.hosts[m];
                let mut events = Vec::new();
                if let Standing::Asleep(since_ns) = host.standing
                    && now_ns > since_ns
                {
                    let slept = ClockTrouble::Sleep(now_ns - since_ns);
                    events = host.clock.suffer(now_ns, slept, &mut self.rng);
                }
                host.standing = Standing::Awake;
                let mail = std::mem::take(&mut host.mail);
                self.note_clock(m, &events);
                for input in mail {
                    self.work(m, input)?;
                }
                // It sees at once that time has passed, as a process does whose timers are all late.
                self.work(m, Input::Tick)?;
            }
            Mend::Resume(..) => {}
            Mend::Stall(m) => {
                let host = &mut self.hosts[m];
                host.device.stalls = host.device.stalls.saturating_sub(1);
                if host.device.stalls == 0 && std::mem::take(&mut host.held_sync) {
                    let era = host.era;
                    self.agenda.after(1_000, Event::Synced(m, era));
                }
            }
            Mend::Slow(m, much) => {
                let slow = &mut self.hosts[m].device.slow;
                if let Some(at) = slow.iter().position(|known| *known == much) {
                    slow.remove(at);
                }
            }
            Mend::Full(m) => {
                let host = &mut self.hosts[m];
                host.full = host.full.saturating_sub(1);
                if host.full == 0 {
                    host.disk.set_capacity(None);
                }
            }
        }
        Ok(())
    }
}

/// The probe of a kind of fault.
fn probe(kind: Kind) -> &'static str {
    match kind {
        Kind::Kill => "fault: a process was killed",
        Kind::Restart => "fault: a process was stopped and started again",
        Kind::Power => "fault: a machine lost power",
        Kind::Blackout => "fault: all machines lost power",
        Kind::Pause => "fault: a process was stopped",
        Kind::Sleep => "fault: a machine slept",
        Kind::Wipe => "fault: a machine came back empty",
        Kind::GoBack => "fault: a machine was to go back",
        Kind::Isolate => "fault: a machine was cut off",
        Kind::Cut => "fault: a link was cut one way",
        Kind::Deaf => "fault: a machine heard nobody",
        Kind::Halves => "fault: the machines fell into two parts",
        Kind::Loss => "fault: many messages were lost",
        Kind::Late => "fault: all messages were late",
        Kind::SlowLink => "fault: a link was slow",
        Kind::DiskStall => "fault: a disk stalled",
        Kind::DiskSlow => "fault: a disk was slow",
        Kind::DiskFull => "fault: a disk was full",
        Kind::Clock => "fault: a clock was disturbed",
        Kind::Transfer => "fault: an operator handed over",
        Kind::Members => "fault: an operator changed members",
        Kind::Truncate => "fault: a log was cut",
        Kind::Split => "fault: an operator split a range",
    }
}

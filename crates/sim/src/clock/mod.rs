//! Clocks of the simulated world: a kernel, a time daemon, and the product's own way from them to a reading.
//!
//! ```text
//!   true time ─► Kernel (drift, steps, sleep, leap) ◄─► Daemon (hears from its reference, slews, dies, lies) ─► Measurement
//!                  └──────────────── Moment ──────────────────────────────────────────────┐              │
//!                                     what a node reads ◄── Anchor ◄── clocksource::Tracker ◄─────────────┘
//! ```
//!
//! True time is the simulator's own and has no leap seconds; its name in Unix time has ([`Leap`]). A trusted reading must contain the
//! name of the moment, whatever happens to kernel and daemon, as long as the daemon tells the truth about its own error and the
//! oscillator keeps to its drift: the world checks that at every reading. With [`Blind`] the tracker is not told of one kind of
//! event, and the check must notice.
//!
//! Caveat: after a move, or a sleep that ends soon after the last poll, the machine's poller runs first. A real one runs within a poll interval.

mod daemon;
mod kernel;

pub use daemon::{Daemon, Health};
pub use kernel::{Kernel, MIDNIGHT_NS};

use clock::{Interval, Reading, Status};
use clocksource::{Anchor, Event, Leap, Tracker};
use kernel::clock_name_ns;

use crate::rng::Rng;

/// How often the poller asks the daemon, nanoseconds.
pub const POLL_EVERY_NS: u64 = clocksource::POLL_EVERY.as_nanos() as u64;

/// How a node's clock behaves in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ClockKind {
    /// No error at all: `same-host` on a machine where nothing happens.
    Exact,
    /// A daemon that is honest about its error, on a machine where everything happens.
    Honest,
    /// As `Honest`, but the daemon promises less error than it has.
    Lying,
    /// `static`, over a system clock that somebody sets.
    Set,
    /// Always off by as much, and nothing happens to it: for measurements.
    Fixed {
        /// How far it is ahead, microseconds.
        offset_us: i64,
        /// The error that it states, microseconds.
        error_us: u64,
    },
    /// It says that it is disrupted, for the whole run, and is off by as much.
    Lost {
        /// How far it is ahead, microseconds.
        offset_us: i64,
    },
}

impl ClockKind {
    /// Whether it is never off by more than it says.
    pub fn keeps_its_bound(self) -> bool {
        match self {
            ClockKind::Exact | ClockKind::Honest => true,
            // It states nothing.
            ClockKind::Lost { .. } => true,
            ClockKind::Lying | ClockKind::Set => false,
            ClockKind::Fixed { offset_us, error_us } => offset_us.unsigned_abs() <= error_us,
        }
    }
}

/// What the tracker is not told of: the negative controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blind {
    /// Somebody stepped the system clock.
    Steps,
    /// The machine slept.
    Sleeps,
    /// The hypervisor moved the machine.
    Moves,
    /// A leap second was announced.
    Leaps,
    /// The source's interval does not move with a slew of the system clock.
    Slews,
    /// After a step its daemon mixes what it heard before and since.
    Mixes,
}

/// Something that happens to a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Somebody sets the system clock, by so many nanoseconds.
    Step(i64),
    /// The oscillator runs at another rate from now on, parts per million.
    Drift(i64),
    /// The machine slept until now, for so long, nanoseconds.
    Sleep(u64),
    /// The hypervisor moved the machine; its clocks stood still for so long, up to now, nanoseconds.
    Move(u64),
    /// The daemon dies.
    Die,
    /// The daemon runs, but does not hear from its reference.
    Lose,
    /// The daemon runs and hears from its reference.
    Recover,
    /// The reference is worse or better than it was: its error from now on, nanoseconds.
    Accuracy(u64),
    /// Somebody slews the clocks, parts per million, beside a daemon that does not: for so long, nanoseconds.
    Slew(i64, u64),
    /// The daemon is off by so much more than it says, nanoseconds: lying ones only.
    Lie(i64),
}

/// A node's clock.
#[derive(Debug)]
pub struct SimClock {
    kind: ClockKind,
    kernel: Kernel,
    daemon: Daemon,
    tracker: Tracker,
    anchor: Anchor,
    /// The error that `static` was given, nanoseconds.
    static_ns: u64,
    moved: bool,
    blind: Option<Blind>,
    /// A node that is alone goes by the system clock while nothing is known.
    alone: bool,
}

impl SimClock {
    /// A clock of this kind at true time `now`.
    pub fn new(kind: ClockKind, now: u64, leap: Leap, alone: bool, rng: &mut Rng) -> Self {
        let accuracy_ns = rng.pick(&[10_000, 500_000, 4_000_000, 20_000_000]).unwrap_or(0);
        // Some oscillators are so bad that the bound crosses the limits of the ladder within a run.
        let drift_ppm = rng.pick(&[50, 200, 10_000]).unwrap_or(0);
        SimClock {
            kind,
            kernel: Kernel::new(now, leap),
            daemon: Daemon::new(accuracy_ns, drift_ppm, rng.chance(50)),
            tracker: Tracker::default(),
            anchor: Anchor::UNKNOWN,
            static_ns: accuracy_ns,
            moved: false,
            blind: None,
            alone,
        }
    }

    /// The tracker is not told of these any more.
    pub fn blind(&mut self, blind: Option<Blind>) {
        self.blind = blind;
        self.tracker.set_skip_cover(blind == Some(Blind::Mixes));
    }

    /// The machine was off: daemon and tracker begin anew, and the system clock comes from a battery clock.
    pub fn restart(&mut self, now: u64, rng: &mut Rng) -> Vec<Event> {
        (self.tracker, self.anchor, self.moved) = (Tracker::default(), Anchor::UNKNOWN, false);
        self.blind(self.blind);
        self.daemon.restart();
        let steady = matches!(self.kind, ClockKind::Exact | ClockKind::Fixed { .. } | ClockKind::Lost { .. });
        let reach = if steady { 0 } else { 500_000_000 };
        self.kernel.boot(now, rng.below(2 * reach + 1).cast_signed() - reach.cast_signed());
        self.poll(now, rng)
    }

    /// The poller asks the daemon.
    pub fn poll(&mut self, now: u64, rng: &mut Rng) -> Vec<Event> {
        let mut events = Vec::new();
        if matches!(self.kind, ClockKind::Exact | ClockKind::Set | ClockKind::Fixed { .. } | ClockKind::Lost { .. }) {
            return events;
        }
        let answer = self.daemon.answer(&mut self.kernel, now, rng).map(|mut m| {
            match self.blind {
                Some(Blind::Leaps) => m.leap = Leap::None,
                Some(Blind::Slews) => m.follows_slews = true,
                _ => {}
            }
            m
        });
        let mut moment = self.kernel.moment(now);
        match self.blind {
            Some(Blind::Steps) => moment.real_ns = moment.boot_ns,
            Some(Blind::Sleeps) => moment.mono_ns = moment.boot_ns,
            _ => {}
        }
        if std::mem::take(&mut self.moved) && self.blind != Some(Blind::Moves) {
            self.tracker.disrupt(moment, &mut events);
        }
        self.anchor = self.tracker.step(moment, answer, &mut events);
        events
    }

    /// What the clock says at true time `now`.
    pub fn read(&self, now: u64) -> Reading {
        let (boot_ns, real_ns) = (self.kernel.boot_ns(now), self.kernel.real_ns(now));
        let stated = |error_ns: u64| {
            let interval =
                Interval { earliest_ns: real_ns.saturating_sub(error_ns), latest_ns: real_ns.saturating_add(error_ns) };
            Reading { interval, now_ns: boot_ns, as_of_ns: boot_ns, ..Reading::exact(real_ns) }
        };
        match self.kind {
            ClockKind::Exact => stated(0),
            ClockKind::Set => stated(self.static_ns),
            ClockKind::Fixed { offset_us, error_us } => {
                let real_ns = real_ns.saturating_add_signed(offset_us * 1_000);
                let error_ns = error_us * 1_000;
                let (earliest_ns, latest_ns) = (real_ns.saturating_sub(error_ns), real_ns.saturating_add(error_ns));
                Reading { interval: Interval { earliest_ns, latest_ns }, ..stated(0) }
            }
            ClockKind::Lost { offset_us } => {
                let real_ns = real_ns.saturating_add_signed(offset_us * 1_000);
                let interval = Interval { earliest_ns: real_ns, latest_ns: real_ns };
                Reading { interval, status: Status::Disrupted, ..stated(0) }
            }
            ClockKind::Honest | ClockKind::Lying => {
                let asleep_ns =
                    || if self.blind == Some(Blind::Sleeps) { 0 } else { self.kernel.asleep_ns().cast_signed() };
                let sees_steps = self.blind != Some(Blind::Steps);
                let was_set = |ahead_ns| sees_steps && real_ns.wrapping_sub(boot_ns).cast_signed() != ahead_ns;
                let reading = self.anchor.read(boot_ns, || self.kernel.raw_ns(now), asleep_ns, was_set);
                if self.alone { reading.or_stand_in(real_ns) } else { reading }
            }
        }
    }

    /// Whether what the daemon says of its error holds.
    pub fn is_honest(&self) -> bool {
        match self.kind {
            // `same-host` takes the system clock at its word, also when that repeats a second.
            ClockKind::Exact => self.kernel.leap() == Leap::None,
            kind => kind.keeps_its_bound(),
        }
    }

    /// How far a trusted reading misses true time, nanoseconds: 0, unless a bound is broken.
    pub fn miss_ns(&self, now: u64) -> u64 {
        let Some(interval) = self.read(now).trusted() else { return 0 };
        let name = self.name_ns(now);
        name.saturating_sub(interval.latest_ns).max(interval.earliest_ns.saturating_sub(name))
    }

    /// How far the machine's clock is from true time, whatever is known of that.
    pub fn off_ns(&self, now: u64) -> u64 {
        self.kernel.real_ns(now).abs_diff(self.name_ns(now))
    }

    /// Whether a slew goes on that nobody will end.
    pub fn is_left_slewing(&self, now: u64) -> bool {
        self.daemon.health == Health::Dead && self.kernel.moment(now).steering_ppb != Some(0)
    }

    /// What Unix time calls the true time `now`.
    pub fn name_ns(&self, now: u64) -> u64 {
        clock_name_ns(now, self.kernel.leap())
    }

    /// Draws what happens to the clock next.
    pub fn trouble(&self, rng: &mut Rng) -> Option<Trouble> {
        let up_to = |rng: &mut Rng, reach: u64| rng.below(2 * reach + 1).cast_signed() - reach.cast_signed();
        let reach = rng.pick(&[2_000_000, 300_000_000, 3_000_000_000]).unwrap_or(0);
        match (self.kind, rng.below(8)) {
            (ClockKind::Exact | ClockKind::Fixed { .. } | ClockKind::Lost { .. }, _) => None,
            (ClockKind::Set, _) if self.alone => Some(Trouble::Step(up_to(rng, 10 * reach))),
            // Commits wait until the clock has caught up, and a run has to end.
            (ClockKind::Set, _) => Some(Trouble::Step(up_to(rng, reach))),
            (_, 0) => Some(Trouble::Step(up_to(rng, reach))),
            (_, 1) => Some(Trouble::Drift(up_to(rng, self.daemon.drift_ppm()))),
            (_, 2) if rng.chance(50) => Some(Trouble::Move(rng.range(1, 300_000_000))),
            // So long that the last word of the daemon has expired. (Where there are others, machines sleep by faults of their own.)
            (_, 2) if rng.chance(if self.alone { 40 } else { 10 }) => Some(Trouble::Sleep(2_000_000_000_000)),
            (_, 2) => Some(Trouble::Sleep(rng.range(1_000_000, 5_000_000_000))),
            (_, 3) => Some(Trouble::Die),
            (_, 4) => Some(Trouble::Lose),
            (_, 5) => Some(Trouble::Accuracy(rng.pick(&[10_000, 4_000_000, 20_000_000, 600_000_000]).unwrap_or(0))),
            (ClockKind::Lying, 6) => {
                let reach = rng.pick(&[0, 30_000_000, 200_000_000]).unwrap_or(0);
                Some(Trouble::Lie(up_to(rng, reach)))
            }
            // Often enough to meet both the poll interval and the next.
            (_, 7) if !self.daemon.slews() => {
                Some(Trouble::Slew(up_to(rng, 100_000), rng.range(1_000_000, 2_000_000_000)))
            }
            _ => Some(Trouble::Recover),
        }
    }

    /// It happens.
    pub fn suffer(&mut self, now: u64, trouble: Trouble, rng: &mut Rng) -> Vec<Event> {
        match trouble {
            Trouble::Step(by_ns) => self.kernel.step(by_ns),
            Trouble::Drift(ppm) => self.kernel.drift(now, ppm),
            Trouble::Slew(ppm, for_ns) => self.kernel.slew(now, ppm, for_ns),
            Trouble::Sleep(slept_ns) => {
                // Battery clocks count in steps, some of them of a second.
                let reach = slept_ns.min(200_000_000) / 2;
                let error_ns = rng.below(2 * reach + 1).cast_signed() - reach.cast_signed();
                self.kernel.sleep(now, slept_ns, error_ns);
                // Else readers see by themselves that the poller is overdue, and why.
                let soon = self.kernel.boot_ns(now) <= self.anchor.look_after_ns;
                return if soon { self.poll(now, rng) } else { Vec::new() };
            }
            Trouble::Move(still_ns) => {
                self.kernel.stand_still(now, still_ns);
                self.moved = true;
                return self.poll(now, rng);
            }
            Trouble::Die => {
                self.daemon.health = Health::Dead;
                self.kernel.leave_slewing(now);
            }
            Trouble::Lose => self.live(now, Health::Lost),
            Trouble::Recover => self.live(now, Health::Well),
            Trouble::Accuracy(ns) => self.daemon.accuracy_ns = ns,
            Trouble::Lie(ns) => self.daemon.lie_ns = ns,
        }
        Vec::new()
    }

    /// The daemon runs; if it was dead it begins by ending a slew that it finds.
    fn live(&mut self, now: u64, health: Health) {
        if self.daemon.health == Health::Dead {
            self.kernel.slew(now, 0, 0);
        }
        self.daemon.health = health;
    }

    /// All is well from now on.
    pub fn heal(&mut self, now: u64) {
        self.live(now, Health::Well);
        (self.daemon.accuracy_ns, self.daemon.lie_ns) = (10_000, 0);
        self.kernel.drift(now, 0);
    }

    /// True time at which `earliest` reaches a physical time, about; bounded, since the clock may change meanwhile.
    pub fn when(&self, physical_us: u64, now: u64) -> u64 {
        let earliest = self.read(now).interval.earliest_ns;
        let wait = (physical_us * 1000).saturating_sub(earliest).min(1_000_000_000);
        now + wait + wait / 50 + 1000
    }
}

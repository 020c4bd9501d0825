//! Clocks of the simulated world: what a node believes about true time.
//!
//! True time is the simulator's own. A node's clock is off by an offset that drifts and sometimes steps; it reports an
//! interval around itself. *Honest* clocks keep true time inside; *lying* ones promise less error than they have.

use crate::rng::Rng;
use clock::{Interval, Reading, Status};

/// How a node's clock behaves in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockKind {
    /// No error at all: `same-host`.
    Exact,
    /// Drifts and steps within its bound.
    Honest,
    /// Drifts and steps beyond its bound.
    Lying,
}

/// A node's clock.
#[derive(Clone, Debug)]
pub struct SimClock {
    kind: ClockKind,
    error_ns: u64,
    offset_ns: i64,
    drift_ppm: i64,
    since_ns: u64,
}

impl SimClock {
    /// A clock of this kind at true time `now`.
    pub fn new(kind: ClockKind, now: u64, rng: &mut Rng) -> Self {
        let error_ns = match kind {
            ClockKind::Exact => 0,
            _ => rng.pick(&[10_000, 500_000, 4_000_000, 20_000_000]).unwrap_or(0),
        };
        let mut clock = SimClock { kind, error_ns, offset_ns: 0, drift_ppm: 0, since_ns: now };
        clock.step(now, rng);
        clock
    }

    fn reach(&self) -> i64 {
        match self.kind {
            ClockKind::Exact => 0,
            ClockKind::Honest => self.error_ns.cast_signed(),
            ClockKind::Lying => self.error_ns.cast_signed() * 5 + 50_000_000,
        }
    }

    /// The clock steps, and drifts otherwise from now on.
    pub fn step(&mut self, now: u64, rng: &mut Rng) {
        let reach = self.reach();
        self.offset_ns = rng.below(2 * reach.unsigned_abs() + 1).cast_signed() - reach;
        self.drift_ppm = if reach == 0 { 0 } else { rng.below(401).cast_signed() - 200 };
        self.since_ns = now;
    }

    /// How far the clock is off at true time `now`; honest clocks are corrected at the edge of their bound.
    fn offset(&self, now: u64) -> i64 {
        let drifted = (now - self.since_ns).cast_signed() / 1_000_000 * self.drift_ppm;
        (self.offset_ns + drifted).clamp(-self.reach(), self.reach())
    }

    /// What the clock says at true time `now`.
    pub fn read(&self, now: u64) -> Reading {
        let middle = now.saturating_add_signed(self.offset(now));
        let interval =
            Interval { earliest_ns: middle.saturating_sub(self.error_ns), latest_ns: middle + self.error_ns };
        Reading {
            interval,
            as_of_ns: now,
            void_after_ns: u64::MAX,
            now_ns: now,
            max_drift_ppb: 200_000,
            status: Status::Synchronized,
        }
    }

    /// Whether true time always lies in what the clock says.
    pub fn is_honest(&self) -> bool {
        self.kind != ClockKind::Lying
    }

    /// True time at which `earliest` reaches a physical time, about; bounded, since a lying clock may step meanwhile.
    pub fn when(&self, physical_us: u64, now: u64) -> u64 {
        let earliest = self.read(now).interval.earliest_ns;
        let wait = (physical_us * 1000).saturating_sub(earliest).min(1_000_000_000);
        now + wait + wait / 1000 + 1000
    }
}

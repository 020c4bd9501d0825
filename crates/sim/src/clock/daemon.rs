//! A time daemon in the manner of chronyd: it hears from a reference now and then, and knows how wrong it may be.

use super::kernel::{Kernel, clock_name_ns};
use crate::rng::Rng;
use clock::{Interval, Status};
use clocksource::{Leap, Measurement, Memory, ProbeError};

/// It hears from its reference this often, nanoseconds.
const HEARS_EVERY_NS: u64 = 500_000_000;
/// It slews the clock so that it is right after this long, nanoseconds...
const SLEW_NS: u64 = 200_000_000;
/// ...if it need not be faster than this, parts per million (chronyd's `maxslewrate`).
const SLEW_MAX_PPM: i64 = 83_333;
/// Its error grows by this share of the drift, percent: a clock that it slews down counts too little time.
const DRIFT_SHARE: u64 = 115;

/// One part in so many of what it believes is from before the last update.
const MIXED_SHARE: i64 = 16;
/// After so many updates nothing of it is left.
const MIXED_NEWS: u32 = 8;

/// How the daemon does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It hears from its reference.
    Well,
    /// It runs, and hears nothing.
    Lost,
    /// It does not answer.
    Dead,
}

/// What the daemon knew when it last heard from its reference.
#[derive(Clone, Copy, Debug)]
struct Heard {
    boot_ns: u64,
    /// What must be added to the real-time clock, and what slews had added to it then.
    correction_ns: i64,
    slewed_ns: i64,
    error_ns: u64,
    /// Where the real-time clock was ahead of the boot clock then.
    real_ahead_ns: u64,
}

/// The daemon.
#[derive(Clone, Debug)]
pub struct Daemon {
    /// How it does.
    pub health: Health,
    /// The greatest error of its reference, nanoseconds.
    pub accuracy_ns: u64,
    /// How far it is off beyond that, unknown to itself, nanoseconds.
    pub lie_ns: i64,
    drift_ppm: u64,
    /// It slews the system clock until that is right; others tell only how wrong it is.
    slews: bool,
    heard: Option<Heard>,
    /// What it still believes of the time before a step, which it does not notice: so much is in its correction, and what it hears next has
    /// less of it.
    mixed_ns: i64,
}

impl Daemon {
    /// A daemon that has heard nothing yet, on an oscillator that drifts by at most so much.
    pub fn new(accuracy_ns: u64, drift_ppm: u64, slews: bool) -> Self {
        Daemon { health: Health::Well, accuracy_ns, lie_ns: 0, drift_ppm, slews, heard: None, mixed_ns: 0 }
    }
    /// A new process, which has heard nothing yet.
    pub fn restart(&mut self) {
        (self.heard, self.mixed_ns) = (None, 0);
    }
    /// Whether it slews the system clock.
    pub fn slews(&self) -> bool {
        self.slews
    }
    /// The greatest drift of the oscillator, parts per million.
    pub fn drift_ppm(&self) -> u64 {
        self.drift_ppm
    }

    /// What it answers when it is asked at true time `now`.
    pub fn answer(&mut self, kernel: &mut Kernel, now: u64, rng: &mut Rng) -> Result<Measurement, ProbeError> {
        let mut moment = kernel.moment(now);
        let silent = |reason: &str| ProbeError::Unsynchronised { source_name: "simulated", reason: reason.to_owned() };
        if self.health == Health::Dead {
            return Err(ProbeError::Unreachable {
                source_name: "simulated",
                place: "the simulator".to_owned(),
                error: std::io::ErrorKind::ConnectionRefused.into(),
                advice: "The daemon is dead",
            });
        }
        let due = self.heard.is_none_or(|h| moment.boot_ns.saturating_sub(h.boot_ns) >= HEARS_EVERY_NS);
        if self.health == Health::Well && due {
            let noise_ns = rng.below(2 * self.accuracy_ns + 1).cast_signed() - self.accuracy_ns.cast_signed();
            let name_ns = clock_name_ns(now, kernel.leap()).saturating_add_signed(noise_ns + self.lie_ns);
            let real_ahead_ns = moment.real_ns.wrapping_sub(moment.boot_ns);
            let stepped_ns = self.heard.map_or(0, |h| real_ahead_ns.wrapping_sub(h.real_ahead_ns).cast_signed());
            // Not a leap second, which it knows of: whoever sets the clock.
            self.mixed_ns = if stepped_ns.unsigned_abs().is_multiple_of(1_000_000_000) {
                self.mixed_ns / MIXED_SHARE
            } else {
                stepped_ns / MIXED_SHARE
            };
            let correction_ns = name_ns.wrapping_sub(moment.real_ns).cast_signed() + self.mixed_ns;
            let slewed_ns = kernel.slewed_ns(now);
            self.heard = Some(Heard {
                boot_ns: moment.boot_ns,
                correction_ns,
                slewed_ns,
                error_ns: self.accuracy_ns,
                real_ahead_ns,
            });
            if self.slews {
                let ppm = (correction_ns / (SLEW_NS / 1_000_000).cast_signed()).clamp(-SLEW_MAX_PPM, SLEW_MAX_PPM);
                let for_us = correction_ns.checked_div(ppm).unwrap_or(0).unsigned_abs();
                kernel.slew(now, ppm, for_us * 1_000_000);
                moment = kernel.moment(now);
            }
        }
        let Some(heard) = self.heard else { return Err(silent("it has not heard from its reference yet")) };
        // In nanoseconds: microseconds passed times parts per million, over 1000, rounded up; and its own clock may drift the other way.
        let age_us = moment.boot_ns.saturating_sub(heard.boot_ns).div_ceil(1000);
        let error_ns = heard.error_ns + (age_us * self.drift_ppm).div_ceil(1000) * DRIFT_SHARE / 100 + 2;
        let left_ns = heard.correction_ns - (kernel.slewed_ns(now) - heard.slewed_ns);
        // As chronyd's: around the clock that everybody reads while that is being slewed.
        let (middle_ns, error_ns) = match self.slews {
            true => (moment.real_ns, error_ns + left_ns.unsigned_abs()),
            false => (moment.real_ns.saturating_add_signed(left_ns), error_ns),
        };
        Ok(Measurement {
            moment,
            interval: Interval {
                earliest_ns: middle_ns.saturating_sub(error_ns),
                latest_ns: middle_ns.saturating_add(error_ns),
            },
            updated_ns: heard.boot_ns,
            max_drift_ppb: u32::try_from(self.drift_ppm * 1020).unwrap_or(u32::MAX),
            steady_ppb: Some(0),
            follows_slews: self.slews,
            remembers: Memory::News(MIXED_NEWS),
            status: if self.health == Health::Well { Status::Synchronized } else { Status::FreeRunning },
            leap: if kernel.leap_is_ahead(now) { kernel.leap() } else { Leap::None },
            detail: "simulated".to_owned(),
        })
    }
}

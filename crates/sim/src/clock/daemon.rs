//! A time daemon in the manner of chronyd: it hears from a reference now and then, and knows how wrong it may be.

use super::kernel::{Kernel, clock_name_ns};
use crate::rng::Rng;
use clock::{Interval, Status};
use clocksource::{Leap, Measurement, ProbeError};

/// It hears from its reference this often, nanoseconds.
const HEARS_EVERY_NS: u64 = 500_000_000;

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
    /// What must be added to the real-time clock.
    correction_ns: i64,
    error_ns: u64,
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
    heard: Option<Heard>,
}

impl Daemon {
    /// A daemon that has heard nothing yet, on an oscillator that drifts by at most so much.
    pub fn new(accuracy_ns: u64, drift_ppm: u64) -> Self {
        Daemon { health: Health::Well, accuracy_ns, lie_ns: 0, drift_ppm, heard: None }
    }
    /// A new process, which has heard nothing yet.
    pub fn restart(&mut self) {
        self.heard = None;
    }
    /// The greatest drift of the oscillator, parts per million.
    pub fn drift_ppm(&self) -> u64 {
        self.drift_ppm
    }

    /// What it answers when it is asked at true time `now`.
    pub fn answer(&mut self, kernel: &Kernel, now: u64, rng: &mut Rng) -> Result<Measurement, ProbeError> {
        let moment = kernel.moment(now);
        let silent = |reason: &str| ProbeError::Unsynchronised { source_name: "simulated", reason: reason.to_owned() };
        if self.health == Health::Dead {
            return Err(silent("the daemon is dead"));
        }
        let due = self.heard.is_none_or(|h| moment.boot_ns.saturating_sub(h.boot_ns) >= HEARS_EVERY_NS);
        if self.health == Health::Well && due {
            let noise_ns = rng.below(2 * self.accuracy_ns + 1).cast_signed() - self.accuracy_ns.cast_signed();
            let name_ns = clock_name_ns(now, kernel.leap()).saturating_add_signed(noise_ns + self.lie_ns);
            let correction_ns = name_ns.wrapping_sub(moment.real_ns).cast_signed();
            self.heard = Some(Heard { boot_ns: moment.boot_ns, correction_ns, error_ns: self.accuracy_ns });
        }
        let Some(heard) = self.heard else { return Err(silent("it has not heard from its reference yet")) };
        // In nanoseconds: microseconds passed times parts per million, over 1000, rounded up; and its own clock may drift the other way.
        let age_us = moment.boot_ns.saturating_sub(heard.boot_ns).div_ceil(1000);
        let error_ns = heard.error_ns + (age_us * self.drift_ppm).div_ceil(1000) * 102 / 100 + 2;
        let middle_ns = moment.real_ns.saturating_add_signed(heard.correction_ns);
        Ok(Measurement {
            moment,
            interval: Interval {
                earliest_ns: middle_ns.saturating_sub(error_ns),
                latest_ns: middle_ns.saturating_add(error_ns),
            },
            updated_ns: heard.boot_ns,
            max_drift_ppb: u32::try_from(self.drift_ppm * 1020).unwrap_or(u32::MAX),
            status: if self.health == Health::Well { Status::Synchronized } else { Status::FreeRunning },
            leap: if kernel.leap_is_ahead(now) { kernel.leap() } else { Leap::None },
            detail: "simulated".to_owned(),
        })
    }
}

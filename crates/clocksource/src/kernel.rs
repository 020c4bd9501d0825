//! `kernel`: the kernel's own estimate of its error, `adjtimex(2)`.
//!
//! A daemon that disciplines the kernel clock also tells the kernel how wrong it may be (`maxerror`), and the kernel adds 500 ppm
//! per second from there until the daemon speaks again; after about nine hours it gives up and reports `TIME_ERROR`.
//!
//! **Invariants.** 1. An unsynchronised kernel (`TIME_ERROR`, `STA_UNSYNC`) gives no bound, however small `maxerror` is. 2. A
//! `maxerror` of 0 is an unset field, not a perfect clock. 3. What remains to be slewed (`offset`) is part of the error. 4. While the
//! clock is steered by more than the tolerance there is no bound: that is a slew of the daemon's own, which `maxerror` leaves out.
//!
//! **Caveats.** The daemon decides what it counts into `maxerror`. chronyd leaves out a correction that it is still slewing; its own
//! source (`chrony`) has it. The kernel does not say when it last heard from the daemon: its error shrinks then, which is how it shows, and a
//! dead daemon shows by growth alone. Nor does it say what the daemon estimates from: after a step it is taken to go by the samples of its last 64 news,
//! as chronyd's may.

use crate::measurement::{Leap, Measurement, Probe, ProbeError};
use crate::memory::{Memory, SAMPLES_MAX};
use crate::moment::Moment;
use crate::news::News;
use clock::{Interval, Status};

/// What `adjtimex` said, the fields that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KernelTime {
    /// The clock state that the call returns (`TIME_OK` 0 … `TIME_ERROR` 5).
    pub state: i32,
    /// `STA_*` flags.
    pub status: i32,
    /// Maximum error, microseconds.
    pub maxerror_us: i64,
    /// Offset still to be slewed, microseconds, or nanoseconds when `STA_NANO` is set.
    pub offset: i64,
    /// Greatest frequency error, parts per million times 65,536.
    pub tolerance: i64,
    /// International atomic time minus UTC, seconds; 0 if nobody told the kernel.
    pub tai_s: i32,
    /// What a daemon adds to the oscillator's frequency, parts per million times 65,536...
    pub frequency: i64,
    /// ...and the coarse part of it: microseconds that a tick counts for, [`KernelTime::TICK_US`] if left alone.
    pub tick_us: i64,
}

/// The probe.
#[derive(Debug, Default)]
pub struct Kernel {
    news: News,
    /// How often a daemon has told the kernel its error, as far as it showed, and the maximum error at the last look, microseconds.
    told: u64,
    maxerror_us: i64,
}

impl Kernel {
    /// The kernel lets the error grow; only a daemon lets it shrink. That is its news.
    fn told(&mut self, maxerror_us: i64) -> u64 {
        self.told += u64::from(maxerror_us < self.maxerror_us);
        self.maxerror_us = maxerror_us;
        self.told
    }
}

const NAME: &str = "kernel";

impl KernelTime {
    /// A tick of an unsteered clock (microseconds): the system call counts 100 of them in a second on every architecture in use.
    pub const TICK_US: i64 = 10_000;

    /// Asks the kernel, changing nothing.
    ///
    /// # Errors
    /// The system's error, where a sandbox forbids the call.
    pub fn query() -> std::io::Result<Self> {
        // SAFETY: all-zero is a valid timex, and modes = 0 only reads.
        let mut t: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: `t` is valid for the call to fill.
        let state = unsafe { libc::adjtimex(&mut t) };
        if state < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(KernelTime {
            state,
            status: t.status,
            maxerror_us: t.maxerror as i64,
            offset: t.offset as i64,
            tolerance: t.tolerance as i64,
            tai_s: t.tai as i32,
            frequency: t.freq as i64,
            tick_us: t.tick as i64,
        })
    }

    /// How much faster than the oscillator the clocks run, parts per billion.
    pub fn steering_ppb(&self) -> i64 {
        let coarse = self.tick_us.saturating_sub(Self::TICK_US).saturating_mul(1_000_000_000 / Self::TICK_US);
        coarse.saturating_add(self.frequency.saturating_mul(1000) >> 16)
    }

    /// The leap second that somebody told the kernel to execute; none any more once it has (the flag stays until the daemon clears it).
    pub fn leap(&self) -> Leap {
        match (self.state, self.status) {
            (libc::TIME_OOP | libc::TIME_WAIT, _) => Leap::None,
            (libc::TIME_INS, _) => Leap::Insert,
            (libc::TIME_DEL, _) => Leap::Delete,
            (_, s) if s & libc::STA_INS != 0 => Leap::Insert,
            (_, s) if s & libc::STA_DEL != 0 => Leap::Delete,
            _ => Leap::None,
        }
    }
    /// What the kernel was told of a leap second, for sources whose own protocol has no word for it.
    pub(crate) fn announced_leap() -> Leap {
        Self::query().map_or(Leap::None, |kernel| kernel.leap())
    }

    /// The measurement at `moment`.
    ///
    /// # Errors
    /// [`ProbeError::Unsynchronised`] where the kernel does not vouch for its clock.
    pub fn measure(&self, moment: Moment) -> Result<Measurement, ProbeError> {
        let unsynchronised = |reason: String| Err(ProbeError::Unsynchronised { source_name: NAME, reason });
        if self.state == libc::TIME_ERROR || self.status & libc::STA_UNSYNC != 0 {
            return unsynchronised(format!(
                "adjtimex reports state {} and status {:#x} (maximum error {} us): start a time daemon such as chronyd, or choose another --clock",
                self.state, self.status, self.maxerror_us
            ));
        }
        if self.maxerror_us <= 0 {
            return unsynchronised(
                "adjtimex reports a maximum error of 0, which no clock has: the daemon does not maintain it".into(),
            );
        }
        // Parts per million times 65,536.
        let tolerance_ppb = self.tolerance.max(0).saturating_mul(1000) >> 16;
        let steering_ppb = moment.steering_ppb.unwrap_or_else(|| self.steering_ppb());
        if steering_ppb.saturating_abs() > tolerance_ppb {
            return unsynchronised(format!(
                "the system clock is being slewed at {:.1} ppm, which its maximum error of {} us does not count",
                steering_ppb as f64 / 1e3,
                self.maxerror_us
            ));
        }
        let offset_ns =
            self.offset.unsigned_abs().saturating_mul(if self.status & libc::STA_NANO != 0 { 1 } else { 1000 });
        let error_ns =
            (self.maxerror_us as u64).saturating_mul(1000).saturating_add(offset_ns).saturating_add(moment.width_ns);
        Ok(Measurement {
            moment,
            interval: Interval {
                earliest_ns: moment.real_ns.saturating_sub(error_ns),
                latest_ns: moment.real_ns.saturating_add(error_ns),
            },
            updated_ns: moment.boot_ns,
            max_drift_ppb: u32::try_from(tolerance_ppb).unwrap_or(u32::MAX),
            steady_ppb: Some(steering_ppb),
            // Whoever begins to slew does not tell the kernel where to, and how far.
            follows_slews: false,
            remembers: Memory::News(SAMPLES_MAX),
            status: Status::Synchronized,
            leap: self.leap(),
            detail: format!("adjtimex: maximum error {} us, offset {} ns", self.maxerror_us, offset_ns),
        })
    }
}

impl Probe for Kernel {
    fn name(&self) -> &'static str {
        NAME
    }
    fn probe(&mut self) -> Result<Measurement, ProbeError> {
        let before = Moment::capture();
        let kernel = KernelTime::query().map_err(|error| ProbeError::Unreachable {
            source_name: NAME,
            place: "adjtimex".into(),
            error,
            advice: "The sandbox forbids the call; choose another --clock.",
        })?;
        let moment = Moment::capture();
        let mut measurement = kernel.measure(moment)?.answered_since(&before, NAME)?;
        let told = self.told(kernel.maxerror_us);
        measurement.updated_ns = self.news.date(told, &moment, 0).updated_ns;
        Ok(measurement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_grows_is_no_news() {
        let mut kernel = Kernel::default();
        assert_eq!([100, 225, 350, 90, 90, 215, 100].map(|us| kernel.told(us)), [0, 0, 0, 1, 1, 1, 2]);
    }
}

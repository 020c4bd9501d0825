//! An anchor: two straight lines between which true time lies.
//!
//! Between two answers of the source all that is known is that the local oscillator drifts by at most so much. So the earliest
//! possible time runs a little slower than the local clock and the latest a little faster:
//!
//! ```text
//!   latest_ns   ┬───────── fast ────▶   + elapsed · (1 + fast)
//!   true time   │   · · · · · · ·
//!   earliest_ns ┴───────── slow ────▶   + elapsed · (1 - slow)
//!             as_of                now
//! ```
//!
//! The local clock is `CLOCK_BOOTTIME`. It is slewed like `CLOCK_REALTIME` but not stepped, so a step cannot move the lines
//! behind the poller's back, and it counts the time that a machine was suspended, so an anchor expires meanwhile.
//!
//! **Invariants.** 1. Rounding is outwards. 2. Beyond `void_after_ns` a reading says `Unknown`. 3. Beyond `late_after_ns` it says
//! `Disrupted`: the poller did not come, so the machine may have slept, and nobody has looked yet how well it counted that.

use clock::{Interval, Reading, Status};

/// Parts per billion as a fraction of 2^32, rounded up.
const fn rate_q32(ppb: u32) -> u64 {
    ((ppb as u64) << 32).div_ceil(1_000_000_000)
}

/// What a reading is evaluated from; published by the poller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Boot-time nanoseconds at which the lines start.
    pub as_of_ns: u64,
    /// Boot-time nanoseconds after which they must not be used.
    pub void_after_ns: u64,
    /// Boot-time nanoseconds after which the poller is late.
    pub late_after_ns: u64,
    /// Where true time lies at `as_of_ns`.
    pub at: Interval,
    /// How fast the bound opens on either side, parts per billion.
    pub max_drift_ppb: u32,
    /// The source's word on itself.
    pub status: Status,
}

impl Anchor {
    /// Nothing is known: every reading is `Unknown` and spans all of time.
    pub const UNKNOWN: Anchor = Anchor {
        as_of_ns: 0,
        void_after_ns: 0,
        late_after_ns: 0,
        at: Interval { earliest_ns: 0, latest_ns: u64::MAX },
        max_drift_ppb: 0,
        status: Status::Unknown,
    };

    /// Where true time lies when the boot-time clock shows `now_ns`.
    #[inline]
    pub fn interval(&self, now_ns: u64) -> Interval {
        // A reader may have been scheduled out between loading the anchor and reading the clock, never the other way round.
        let elapsed = now_ns.saturating_sub(self.as_of_ns);
        let spread = ((u128::from(elapsed) * u128::from(rate_q32(self.max_drift_ppb))) >> 32) as u64 + 1;
        Interval {
            earliest_ns: self.at.earliest_ns.saturating_add(elapsed).saturating_sub(spread),
            latest_ns: self.at.latest_ns.saturating_add(elapsed).saturating_add(spread),
        }
    }

    /// The reading when the boot-time clock shows `now_ns`.
    #[inline]
    pub fn read(&self, now_ns: u64) -> Reading {
        let in_time = now_ns <= self.void_after_ns && now_ns <= self.late_after_ns;
        let status = if in_time { self.status } else { self.status_when_late(now_ns) };
        Reading {
            interval: self.interval(now_ns),
            as_of_ns: self.as_of_ns,
            void_after_ns: self.void_after_ns,
            now_ns,
            max_drift_ppb: self.max_drift_ppb,
            status,
        }
    }

    #[cold]
    const fn status_when_late(&self, now_ns: u64) -> Status {
        match self.status {
            _ if now_ns > self.void_after_ns => Status::Unknown,
            Status::Unknown => Status::Unknown,
            _ => Status::Disrupted,
        }
    }
}

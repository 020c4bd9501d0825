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
//! Lines that must not move with a slew lie over `CLOCK_MONOTONIC_RAW` instead ([`Bare`], decision 13). That stands still while the machine
//! sleeps, so their reader looks at both clocks.
//!
//! **Invariants.**
//! 1. Rounding is outwards.
//! 2. Beyond `void_after_ns` a reading says `Unknown`.
//! 3. Once the poller is overdue ([`LOOK_AFTER_NS`]) a reader looks whether the machine has slept since the last poll; then it says
//!    `Disrupted`, since nobody has looked yet how well the sleep was counted. This costs the rare reader a second `clock_gettime`.
//!    Over the bare oscillator every reader looks, if roughly.
//! 5. Where nobody is woken in time when the system clock is set ([`Anchor::ahead_ns`]), a reader over the boot-time clock looks for itself, at the
//!    price of a second `clock_gettime`: then it opens its bound by what a slew may have made of the boot-time clock since the last poll.
//! 4. When the poller has not come for [`LATE_AFTER_NS`] it says `Disrupted` in any case.

use clock::{Interval, Reading, Status};

/// A reading so long after the last poll (nanoseconds) looks for itself whether the machine slept: the poller missed a turn.
pub const LOOK_AFTER_NS: u64 = 500_000_000;
/// A reading so long after the last poll (nanoseconds) does not trust the anchor: the poller hangs, and what it would have noticed
/// nobody knows. Sources answer or fail within a second, all of them together.
pub const LATE_AFTER_NS: u64 = 3_000_000_000;

/// The bare oscillator may seem to stand still for so long (nanoseconds): slews let the boot-time clock gain an eighth at most, and two
/// clocks are not read at once.
const STILL_NS_MAX: u64 = 1_000_000;

/// One part in so many is more than any slew adds to the boot-time clock (the kernel takes a tenth and 500 ppm), or takes from it.
const SLEW_SHARE: u64 = 8;

/// Parts per billion as a fraction of 2^32, rounded up.
const fn rate_q32(ppb: u32) -> u64 {
    ((ppb as u64) << 32).div_ceil(1_000_000_000)
}

/// Lines over the bare oscillator, `CLOCK_MONOTONIC_RAW`: no slew moves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bare {
    /// What it showed at the start of the lines, nanoseconds; never 0.
    pub as_of_ns: u64,
    /// How much faster than it true time runs, parts per billion; up to [`Bare::RATE_PPB_MAX`].
    pub rate_ppb: i32,
}

impl Bare {
    /// The greatest rate that is told (parts per billion), of either sign.
    pub const RATE_PPB_MAX: i32 = 8_000_000;

    /// True time that passed until the oscillator showed `raw_ns`, nanoseconds.
    #[inline]
    fn passed_ns(&self, raw_ns: u64) -> u64 {
        let raw = raw_ns.saturating_sub(self.as_of_ns);
        // In units of 2^-32: an exact division costs more than the reading.
        let gained = (i128::from(raw) * i128::from((i64::from(self.rate_ppb) << 32) / 1_000_000_000)) >> 32;
        raw.saturating_add_signed(gained as i64)
    }
}

/// What a reading is evaluated from; published by the poller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Boot-time nanoseconds at which the source answered, and the lines over that clock start.
    pub as_of_ns: u64,
    /// Boot-time nanoseconds after which they must not be used.
    pub void_after_ns: u64,
    /// Boot-time nanoseconds after which the poller is overdue.
    pub look_after_ns: u64,
    /// For how long the machine had been suspended by the last poll (`boottime - monotonic`, which a time namespace may shift),
    /// nanoseconds, rounded up.
    pub asleep_ns: i64,
    /// Where true time lies at the start of the lines.
    pub at: Interval,
    /// The lines start here, over another clock.
    pub bare: Option<Bare>,
    /// How far the system clock was ahead of the boot-time clock at the last poll, nanoseconds, for readers who must look themselves whether
    /// somebody has set it; below 2^62 either way. Not with `bare`, which no slew moves.
    pub ahead_ns: Option<i64>,
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
        look_after_ns: 0,
        asleep_ns: 0,
        at: Interval { earliest_ns: 0, latest_ns: u64::MAX },
        bare: None,
        ahead_ns: None,
        max_drift_ppb: 0,
        status: Status::Unknown,
    };

    /// Where true time lies when the boot-time clock shows `boot_ns` and the bare oscillator `raw_ns`.
    #[inline]
    pub fn interval(&self, boot_ns: u64, raw_ns: u64) -> Interval {
        // A reader may have been scheduled out between loading the anchor and reading the clock, never the other way round.
        self.after(match self.bare {
            None => boot_ns.saturating_sub(self.as_of_ns),
            Some(bare) => bare.passed_ns(raw_ns),
        })
    }

    #[inline]
    fn after(&self, elapsed: u64) -> Interval {
        let spread = ((u128::from(elapsed) * u128::from(rate_q32(self.max_drift_ppb))) >> 32) as u64 + 1;
        Interval {
            earliest_ns: self.at.earliest_ns.saturating_add(elapsed).saturating_sub(spread),
            latest_ns: self.at.latest_ns.saturating_add(elapsed).saturating_add(spread),
        }
    }

    /// The reading when the boot-time clock shows `now_ns`. The others are asked only where they count: `raw_ns` is the bare
    /// oscillator; `asleep_ns`, seldom, for how long the machine has been suspended, as `boottime - monotonic` has it, nanoseconds, rounded down;
    /// `was_set` whether the system clock is no more as far ahead of the boot-time clock as it is told.
    #[inline]
    pub fn read(
        &self,
        now_ns: u64,
        raw_ns: impl FnOnce() -> u64,
        asleep_ns: impl FnOnce() -> i64,
        was_set: impl FnOnce(i64) -> bool,
    ) -> Reading {
        if let Some(bare) = self.bare {
            return self.read_bare(bare, now_ns, raw_ns(), asleep_ns);
        }
        let in_time = now_ns <= self.void_after_ns && now_ns <= self.look_after_ns;
        let status = if in_time { self.status } else { self.status_when_late(now_ns, asleep_ns()) };
        let reading = self.reading(now_ns, self.after(now_ns.saturating_sub(self.as_of_ns)), status);
        match self.ahead_ns {
            Some(ahead_ns) if was_set(ahead_ns) => self.unpolled(reading),
            _ => reading,
        }
    }

    /// Somebody has set the system clock since the last poll, and a daemon may slew the boot-time clock already.
    #[cold]
    fn unpolled(&self, mut reading: Reading) -> Reading {
        let opened_ns = reading.now_ns.saturating_sub(self.polled_ns()) / SLEW_SHARE + 1;
        reading.interval.earliest_ns = reading.interval.earliest_ns.saturating_sub(opened_ns);
        reading.interval.latest_ns = reading.interval.latest_ns.saturating_add(opened_ns);
        if reading.status == Status::Synchronized {
            reading.status = Status::FreeRunning;
        }
        reading
    }

    /// When the last poll was, boot-time nanoseconds.
    #[inline]
    const fn polled_ns(&self) -> u64 {
        self.look_after_ns.saturating_sub(LOOK_AFTER_NS)
    }

    /// Apart: the usual reading stays small.
    #[inline(never)]
    fn read_bare(&self, bare: Bare, now_ns: u64, raw_ns: u64, asleep_ns: impl FnOnce() -> i64) -> Reading {
        let in_time = now_ns <= self.void_after_ns && now_ns <= self.look_after_ns;
        let status = match self.has_stood_still(bare, now_ns, raw_ns) {
            true => self.status_when_late(now_ns, i64::MAX),
            false if in_time => self.status,
            false => self.status_when_late(now_ns, asleep_ns()),
        };
        self.reading(now_ns, self.after(bare.passed_ns(raw_ns)), status)
    }

    #[inline]
    const fn reading(&self, now_ns: u64, interval: Interval, status: Status) -> Reading {
        Reading {
            interval,
            as_of_ns: self.as_of_ns,
            void_after_ns: self.void_after_ns,
            now_ns,
            max_drift_ppb: self.max_drift_ppb,
            status,
        }
    }

    /// Whether the bare oscillator stood still for a while since the last poll, at which its lines start: beyond what a slew can make of
    /// the boot-time clock, the machine slept.
    #[inline]
    const fn has_stood_still(&self, bare: Bare, now_ns: u64, raw_ns: u64) -> bool {
        let (boot, raw) = (now_ns.saturating_sub(self.polled_ns()), raw_ns.saturating_sub(bare.as_of_ns));
        boot > raw.saturating_add(raw / SLEW_SHARE).saturating_add(STILL_NS_MAX)
    }

    #[cold]
    const fn status_when_late(&self, now_ns: u64, asleep_ns: i64) -> Status {
        let late_after_ns = self.look_after_ns.saturating_add(LATE_AFTER_NS - LOOK_AFTER_NS);
        match self.status {
            _ if now_ns > self.void_after_ns => Status::Unknown,
            Status::Unknown => Status::Unknown,
            _ if asleep_ns > self.asleep_ns || now_ns > late_after_ns => Status::Disrupted,
            status => status,
        }
    }
}

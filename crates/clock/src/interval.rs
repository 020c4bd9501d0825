//! Now is an interval.
//!
//! **Problem.** No clock shows true time. A clock that says only what it shows hides how wrong it may be, and every protocol
//! above must then guess (000 §2: a static maximum offset of 500 ms for the whole cluster).
//!
//! **Idea.** `now() -> [earliest, latest]` (Spanner's TrueTime; 002 assumption 1, `|PC_ref(e) - PC_i(e)| <= E_i(e)`). True time
//! lies inside as long as the source's bound holds. Nothing in this crate can check that; `clocksource` makes the bound, the
//! node judges it.
//!
//! **Invariants.**
//! 1. `earliest_ns <= latest_ns`.
//! 2. Both conversions to a [`Timestamp`] round outwards: down for `earliest`, up for `latest`. Rounding never makes a
//!    timestamp look past before it is.
//!
//! **Caveats.** Nanoseconds in 64 bits end in 2554, after timestamps do.

use crate::Timestamp;

/// True time lies in `[earliest_ns, latest_ns]`, nanoseconds since the Unix epoch, as long as the source's bound holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// True time is not before this (nanoseconds since the Unix epoch).
    pub earliest_ns: u64,
    /// True time is not after this (nanoseconds since the Unix epoch).
    pub latest_ns: u64,
}

impl Interval {
    /// Half the width, in nanoseconds.
    pub const fn error_ns(self) -> u64 {
        self.latest_ns.saturating_sub(self.earliest_ns) / 2
    }
    /// The middle, nanoseconds since the Unix epoch: the best guess where a single number is wanted.
    pub const fn middle_ns(self) -> u64 {
        self.earliest_ns + (self.latest_ns - self.earliest_ns) / 2
    }
    /// The greatest timestamp that is certainly past: `earliest` rounded down to microseconds, with no logical part.
    pub const fn earliest(self) -> Timestamp {
        Timestamp::new(self.earliest_ns / 1000, 0)
    }
    /// A timestamp at or above every one that true time may have reached: `latest` rounded up to microseconds, with the
    /// greatest logical part.
    pub const fn latest(self) -> Timestamp {
        Timestamp::new(self.latest_ns.div_ceil(1000), Timestamp::LOGICAL_MAX)
    }
    /// Rule 1 (design §2): whether `ts` is certainly past. The logical part does not count: it orders events within a microsecond.
    pub const fn is_past(self, ts: Timestamp) -> bool {
        ts.physical_us() <= self.earliest_ns / 1000
    }
    /// Whether `ts` is certainly still to come: above every timestamp that true time may have reached.
    pub const fn is_future(self, ts: Timestamp) -> bool {
        ts.as_u64() > self.latest().as_u64()
    }
    /// Whether the two can both contain true time. Where two simultaneous intervals do not meet, one of the bounds is broken.
    pub const fn meets(self, other: Interval) -> bool {
        self.earliest_ns <= other.latest_ns && other.earliest_ns <= self.latest_ns
    }
    /// The least interval that contains both.
    pub const fn hull(self, other: Interval) -> Interval {
        Interval {
            earliest_ns: if self.earliest_ns < other.earliest_ns { self.earliest_ns } else { other.earliest_ns },
            latest_ns: if self.latest_ns > other.latest_ns { self.latest_ns } else { other.latest_ns },
        }
    }
}

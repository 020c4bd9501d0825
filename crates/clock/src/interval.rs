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
        (self.latest_ns - self.earliest_ns) / 2
    }
    /// The greatest timestamp that is certainly past: `earliest` rounded down to microseconds, with no logical part.
    pub const fn earliest(self) -> Timestamp {
        Timestamp::new(self.earliest_ns / 1000, 0)
    }
    /// A timestamp at or above every one that true time may have reached: `latest` rounded up to microseconds, with the
    /// greatest logical part.
    pub const fn latest(self) -> Timestamp {
        Timestamp::new(self.latest_ns.div_ceil(1000), 0xfff)
    }
    /// Rule 1 (design §2): whether `ts` is certainly past. The logical part does not count: it orders events within a microsecond.
    pub const fn is_past(self, ts: Timestamp) -> bool {
        ts.physical_us() <= self.earliest_ns / 1000
    }
}

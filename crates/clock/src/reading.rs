//! A reading: an interval, and until when and on whose word it holds.
//!
//! **Problem.** An interval alone does not say whether the daemon behind it died an hour ago.
//!
//! **Idea.** The vocabulary of ClockBound: `as_of` is when the statistics were taken, the bound grows at `max_drift_ppb` from
//! there, and after `void_after` it may not be used at all. The status is the source's word on itself.
//!
//! **Invariants.**
//! 1. A void reading, and one with status `Unknown` or `Disrupted`, must not be used for anything that depends on the
//!    bound. The type cannot refuse; [`Reading::trusted`] does.
//! 2. `as_of_ns`, `void_after_ns` and `now_ns` are on one monotonic scale of the source. They are not Unix time (though
//!    `same-host` and `static`, whose bounds never expire, put Unix time there).

use crate::Interval;

/// What the source says of itself (the words of ClockBound).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Status {
    /// Nothing is known yet: no bound may be trusted.
    #[default]
    Unknown,
    /// The source follows a reference; the bound is measured.
    Synchronized,
    /// The reference was lost; the bound grows at the drift rate.
    FreeRunning,
    /// The clock was stepped, or the machine suspended or migrated: the bound is void.
    Disrupted,
}

impl Status {
    /// The name, as metrics, JSON and SQL show it.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Unknown => "unknown",
            Status::Synchronized => "synchronized",
            Status::FreeRunning => "free_running",
            Status::Disrupted => "disrupted",
        }
    }
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// One reading of a bounded clock: an interval with an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Where true time lies.
    pub interval: Interval,
    /// Monotonic nanoseconds at which the source's statistics were taken.
    pub as_of_ns: u64,
    /// Monotonic nanoseconds after which the bound must not be used.
    pub void_after_ns: u64,
    /// Monotonic nanoseconds of this reading.
    pub now_ns: u64,
    /// How fast the bound opens on either side, parts per billion of the local clock's time.
    pub max_drift_ppb: u32,
    /// The source's word on itself.
    pub status: Status,
}

impl Reading {
    /// A reading with no error at `unix_ns`: what `same-host` gives, and what tests use.
    pub const fn exact(unix_ns: u64) -> Self {
        Reading {
            interval: Interval { earliest_ns: unix_ns, latest_ns: unix_ns },
            as_of_ns: unix_ns,
            void_after_ns: u64::MAX,
            now_ns: unix_ns,
            max_drift_ppb: 0,
            status: Status::Synchronized,
        }
    }
    /// A reading `unix_ns ± error_ns`.
    pub const fn with_error(unix_ns: u64, error_ns: u64) -> Self {
        let mut r = Self::exact(unix_ns);
        r.interval =
            Interval { earliest_ns: unix_ns.saturating_sub(error_ns), latest_ns: unix_ns.saturating_add(error_ns) };
        r
    }
    /// What a node that is alone goes by while its source knows nothing at all: the system clock (`unix_ns`) at its word. The status
    /// stays `Unknown`, so nothing that needs the bound relies on it.
    pub const fn or_stand_in(mut self, unix_ns: u64) -> Self {
        if matches!(self.status, Status::Unknown) && self.interval.latest_ns == u64::MAX {
            self.interval = Interval { earliest_ns: unix_ns, latest_ns: unix_ns };
        }
        self
    }
    /// Whether the bound is past its expiry.
    pub const fn is_void(&self) -> bool {
        self.now_ns > self.void_after_ns
    }
    /// The interval, if it may be relied upon: not void, and the source knows its bound.
    pub const fn trusted(&self) -> Option<Interval> {
        match self.status {
            Status::Synchronized | Status::FreeRunning if !self.is_void() => Some(self.interval),
            _ => None,
        }
    }
}

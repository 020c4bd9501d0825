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
    /// Greatest drift of the local oscillator, parts per billion.
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
        r.interval = Interval { earliest_ns: unix_ns.saturating_sub(error_ns), latest_ns: unix_ns + error_ns };
        r
    }
    /// Whether the bound is past its expiry.
    pub const fn is_void(&self) -> bool {
        self.now_ns > self.void_after_ns
    }
}

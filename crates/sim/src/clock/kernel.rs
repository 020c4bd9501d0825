//! The kernel's clocks, on an oscillator that drifts, slewed by a daemon or by somebody else.

use clocksource::{Leap, Moment};

/// A midnight (UTC) in the middle of every run: leap seconds come at midnight. Nanoseconds since the Unix epoch.
pub const MIDNIGHT_NS: u64 = 1_700_006_400_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// How long the machine has been up when a run begins, nanoseconds.
const UPTIME_NS: u64 = 1_000 * SECOND_NS;

/// True time at which Unix time steps, and by how much, nanoseconds.
fn leap_step(leap: Leap) -> Option<(u64, i64)> {
    match leap {
        Leap::Insert => Some((MIDNIGHT_NS, -SECOND_NS.cast_signed())),
        Leap::Delete => Some((MIDNIGHT_NS - SECOND_NS, SECOND_NS.cast_signed())),
        Leap::None | Leap::Smeared => None,
    }
}

/// What a clock that runs fast by so much gains while so much true time passes, nanoseconds.
fn gained_ns(passed_ns: u64, ppm: i64) -> i64 {
    i64::try_from(i128::from(passed_ns) * i128::from(ppm) / 1_000_000).unwrap_or(0)
}

/// What Unix time calls the true time `now`.
pub(super) fn clock_name_ns(now: u64, leap: Leap) -> u64 {
    match leap_step(leap) {
        Some((at, step)) if now >= at => now.saturating_add_signed(step),
        _ => now,
    }
}

/// What a daemon adds to the rate of the clocks, until it stops that.
#[derive(Clone, Copy, Debug, Default)]
struct Slew {
    ppm: i64,
    /// True time.
    until_ns: u64,
}

/// `CLOCK_BOOTTIME`, `CLOCK_MONOTONIC` and `CLOCK_REALTIME` of one machine.
#[derive(Clone, Debug)]
pub struct Kernel {
    leap: Leap,
    /// True time, and the boot clock's, at the last change of rate.
    since_ns: u64,
    boot_then_ns: u64,
    drift_ppm: i64,
    slew: Slew,
    /// What slews have added to the clocks before `since_ns`.
    slewed_then_ns: i64,
    asleep_ns: u64,
    /// The real-time clock less the boot clock, without a leap second.
    real_ahead_ns: u64,
}

impl Kernel {
    /// Up for a while, right to the nanosecond.
    pub fn new(now: u64, leap: Leap) -> Self {
        Kernel {
            leap,
            since_ns: now,
            boot_then_ns: UPTIME_NS,
            drift_ppm: 0,
            slew: Slew::default(),
            slewed_then_ns: 0,
            asleep_ns: 0,
            real_ahead_ns: now - UPTIME_NS,
        }
    }
    /// The leap second of this run.
    pub fn leap(&self) -> Leap {
        self.leap
    }
    /// `CLOCK_BOOTTIME`.
    pub fn boot_ns(&self, now: u64) -> u64 {
        let passed = now.saturating_sub(self.since_ns);
        let gained = gained_ns(passed, self.drift_ppm).saturating_add(self.slewed_since_ns(now));
        self.boot_then_ns.saturating_add(passed).saturating_add_signed(gained)
    }
    fn slewed_since_ns(&self, now: u64) -> i64 {
        gained_ns(now.min(self.slew.until_ns).saturating_sub(self.since_ns), self.slew.ppm)
    }
    /// What slews have added to the clocks up to `now`, nanoseconds.
    pub fn slewed_ns(&self, now: u64) -> i64 {
        self.slewed_then_ns.saturating_add(self.slewed_since_ns(now))
    }
    /// `CLOCK_REALTIME`. The kernel executes leap seconds by true time: chrony and its like see to that.
    pub fn real_ns(&self, now: u64) -> u64 {
        let real = self.boot_ns(now) + self.real_ahead_ns;
        match leap_step(self.leap) {
            Some((at, step)) if now >= at => real.saturating_add_signed(step),
            _ => real,
        }
    }
    /// Whether the leap second is still to come.
    pub fn leap_is_ahead(&self, now: u64) -> bool {
        leap_step(self.leap).is_some_and(|(at, _)| now < at)
    }
    /// For how long the machine has slept since it booted, nanoseconds.
    pub fn asleep_ns(&self) -> u64 {
        self.asleep_ns
    }
    /// `CLOCK_MONOTONIC_RAW`: it does not count sleep, and nobody slews it.
    pub fn raw_ns(&self, now: u64) -> u64 {
        (self.boot_ns(now) - self.asleep_ns).saturating_add_signed(-self.slewed_ns(now))
    }
    /// All of them at once.
    pub fn moment(&self, now: u64) -> Moment {
        let boot_ns = self.boot_ns(now);
        let steering_ppb = Some(if now < self.slew.until_ns { self.slew.ppm * 1000 } else { 0 });
        let (mono_ns, real_ns, raw_ns) = (boot_ns - self.asleep_ns, self.real_ns(now), self.raw_ns(now));
        Moment { boot_ns, mono_ns, real_ns, raw_ns, width_ns: 0, steering_ppb }
    }

    /// The machine starts, with a battery clock that is off by so much.
    pub fn boot(&mut self, now: u64, off_ns: i64) {
        let name_ns = clock_name_ns(now, self.leap).saturating_add_signed(off_ns);
        (self.since_ns, self.boot_then_ns, self.asleep_ns) = (now, UPTIME_NS, 0);
        (self.slew, self.slewed_then_ns) = Default::default();
        self.real_ahead_ns = 0;
        self.real_ahead_ns = name_ns - self.real_ns(now);
    }
    /// Somebody sets the system clock.
    pub fn step(&mut self, by_ns: i64) {
        self.real_ahead_ns = self.real_ahead_ns.saturating_add_signed(by_ns);
    }
    /// The oscillator runs at another rate from `now` on.
    pub fn drift(&mut self, now: u64, ppm: i64) {
        self.settle(now);
        self.drift_ppm = ppm;
    }
    /// What was so far is counted: from `now` on, other rates may hold.
    fn settle(&mut self, now: u64) {
        (self.boot_then_ns, self.slewed_then_ns) = (self.boot_ns(now), self.slewed_ns(now));
        self.since_ns = now;
    }
    /// A daemon lets the clocks run faster by so much for so long; 0 ends what it began.
    pub fn slew(&mut self, now: u64, ppm: i64, for_ns: u64) {
        self.settle(now);
        self.slew = Slew { ppm, until_ns: now.saturating_add(for_ns) };
    }
    /// The daemon that slews the clocks, if one does, will not end it.
    pub fn leave_slewing(&mut self, now: u64) {
        if now < self.slew.until_ns {
            self.slew.until_ns = u64::MAX;
        }
    }
    /// The machine slept for so long, up to `now`, and believes it was `error_ns` longer.
    pub fn sleep(&mut self, now: u64, slept_ns: u64, error_ns: i64) {
        // A battery clock counted meanwhile, which nobody slews.
        let counted = slept_ns.saturating_add_signed(error_ns);
        self.stand_still(now, slept_ns);
        (self.asleep_ns, self.boot_then_ns) = (self.asleep_ns + counted, self.boot_then_ns + counted);
    }
    /// The machine, moved by its hypervisor, did not count the last so many nanoseconds.
    pub fn stand_still(&mut self, now: u64, still_ns: u64) {
        self.settle(now - still_ns);
        self.since_ns = now;
        self.slew.until_ns = self.slew.until_ns.saturating_add(still_ns);
    }
}

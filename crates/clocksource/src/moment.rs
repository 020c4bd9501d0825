//! One moment as the kernel's clocks show it, and the only `clock_gettime` calls of the workspace.
//!
//! | clock | slewed by NTP | stepped | counts suspension |
//! | --- | --- | --- | --- |
//! | `CLOCK_REALTIME` | yes | yes | yes |
//! | `CLOCK_MONOTONIC` | yes | no | no |
//! | `CLOCK_BOOTTIME` | yes | no | yes |
//!
//! So `realtime - boottime` moves exactly when somebody steps the clock, and `boottime - monotonic` exactly when the machine slept.
//! A slew shows in none of the differences, but in the rate at which the kernel was told to run its clocks: the *steering*.

use crate::kernel::KernelTime;

/// Tries at reading the three clocks within [`GOOD_WIDTH_NS`]; the best one is kept.
const TRIES: usize = 8;
/// A capture this narrow (nanoseconds) is good enough.
const GOOD_WIDTH_NS: u64 = 500;

/// The kernel's clocks at one moment, nanoseconds each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Moment {
    /// `CLOCK_BOOTTIME`, read before the others.
    pub boot_ns: u64,
    /// `CLOCK_MONOTONIC`.
    pub mono_ns: u64,
    /// `CLOCK_REALTIME`.
    pub real_ns: u64,
    /// Boot-time nanoseconds that passed while the three were read: the error of their differences.
    pub width_ns: u64,
    /// How much faster than the oscillator the kernel was told to run its clocks, parts per billion; 0 where it cannot be asked.
    pub steering_ppb: i64,
}

impl Moment {
    /// Reads the kernel's clocks.
    pub fn capture() -> Self {
        let mut best = Self::capture_once();
        for _ in 1..TRIES {
            if best.width_ns <= GOOD_WIDTH_NS {
                break;
            }
            let next = Self::capture_once();
            if next.width_ns <= best.width_ns {
                best = next;
            }
        }
        best.steering_ppb = KernelTime::query().map_or(0, |kernel| kernel.steering_ppb());
        best
    }
    fn capture_once() -> Self {
        let boot_ns = boot_ns();
        let (real_ns, mono_ns) = (real_ns(), mono_ns());
        Moment { boot_ns, mono_ns, real_ns, width_ns: self::boot_ns().saturating_sub(boot_ns), steering_ppb: 0 }
    }
    /// How far `CLOCK_REALTIME` was stepped since `earlier`, nanoseconds, forward positive; 0 if within what the captures can tell.
    pub fn stepped_since(&self, earlier: &Moment) -> i64 {
        let offset = |m: &Moment| i128::from(m.real_ns) - i128::from(m.boot_ns);
        self.beyond_noise(earlier, offset(self) - offset(earlier))
    }
    /// How long the machine was suspended since `earlier`, nanoseconds; 0 if within what the captures can tell.
    pub fn suspended_since(&self, earlier: &Moment) -> u64 {
        let asleep = |m: &Moment| i128::from(m.boot_ns) - i128::from(m.mono_ns);
        self.beyond_noise(earlier, asleep(self) - asleep(earlier)).max(0) as u64
    }
    /// For how long the machine has been suspended since it booted, at most, nanoseconds.
    pub(crate) fn asleep_ns_max(&self) -> i64 {
        self.boot_ns.saturating_add(self.width_ns).wrapping_sub(self.mono_ns).cast_signed()
    }
    /// How far the differences of two captures may be off, nanoseconds.
    pub(crate) fn noise_ns(&self, earlier: &Moment) -> u64 {
        self.width_ns.saturating_add(earlier.width_ns).saturating_add(1_000)
    }
    fn beyond_noise(&self, earlier: &Moment, moved: i128) -> i64 {
        let noise = i128::from(self.noise_ns(earlier));
        if moved.abs() > noise { moved.clamp(i64::MIN.into(), i64::MAX.into()) as i64 } else { 0 }
    }
}

#[inline(always)]
fn gettime(id: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid timespec for the call to fill; the ids used exist on every Linux since 2.6.39.
    unsafe { libc::clock_gettime(id, &mut t) };
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// `CLOCK_BOOTTIME`, nanoseconds.
#[inline]
pub(crate) fn boot_ns() -> u64 {
    gettime(libc::CLOCK_BOOTTIME)
}
/// `CLOCK_MONOTONIC`, nanoseconds.
#[inline]
pub(crate) fn mono_ns() -> u64 {
    gettime(libc::CLOCK_MONOTONIC)
}
/// `CLOCK_REALTIME`, nanoseconds since the Unix epoch.
#[inline]
pub(crate) fn real_ns() -> u64 {
    gettime(libc::CLOCK_REALTIME)
}

//! One moment as the kernel's clocks show it, and the only `clock_gettime` calls of the workspace.
//!
//! | clock | slewed by NTP | stepped | counts suspension |
//! | --- | --- | --- | --- |
//! | `CLOCK_REALTIME` | yes | yes | yes |
//! | `CLOCK_MONOTONIC` | yes | no | no |
//! | `CLOCK_BOOTTIME` | yes | no | yes |
//! | `CLOCK_MONOTONIC_RAW` | no | no | no |
//!
//! So `realtime - boottime` moves exactly when somebody steps the clock, and `boottime - monotonic` exactly when the machine slept.
//! A slew shows in the rate at which the kernel was told to run its clocks: the *steering*. `CLOCK_MONOTONIC_RAW` is the bare oscillator, which
//! nobody steers.

use crate::kernel::KernelTime;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// Tries at reading the clocks within [`GOOD_WIDTH_NS`]; the best one is kept.
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
    /// `CLOCK_MONOTONIC_RAW`.
    pub raw_ns: u64,
    /// Boot-time nanoseconds that passed while they were read: the error of their differences.
    pub width_ns: u64,
    /// How much faster than the oscillator the kernel was told to run its clocks, parts per billion; nothing where a sandbox
    /// forbids to ask.
    pub steering_ppb: Option<i64>,
}

impl Moment {
    /// Reads the kernel's clocks.
    pub fn capture() -> Self {
        let mut best = Self::capture_best();
        best.steering_ppb = KernelTime::query().ok().map(|kernel| kernel.steering_ppb());
        best
    }
    fn capture_best() -> Self {
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
        best
    }
    fn capture_once() -> Self {
        let boot_ns = boot_ns();
        let (real_ns, mono_ns, raw_ns) = (real_ns(), mono_ns(), raw_ns());
        let width_ns = self::boot_ns().saturating_sub(boot_ns);
        Moment { boot_ns, mono_ns, real_ns, raw_ns, width_ns, steering_ppb: None }
    }
    /// How far `CLOCK_REALTIME` is ahead of `CLOCK_BOOTTIME`, nanoseconds.
    pub(crate) fn ahead_ns(&self) -> i64 {
        self.real_ns.wrapping_sub(self.boot_ns).cast_signed()
    }
    /// How far `CLOCK_REALTIME` was stepped since `earlier`, nanoseconds, forward positive; 0 if within what the captures can tell.
    pub fn stepped_since(&self, earlier: &Moment) -> i64 {
        self.beyond_noise(earlier, i128::from(self.ahead_ns()) - i128::from(earlier.ahead_ns()))
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

/// The system clock was set if it is ahead of the boot-time clock by so much more or less than before (nanoseconds). Readers are not as careful as
/// [`Moment::stepped_since`]; a daemon takes no more back than was set.
const SET_NS_MIN: u64 = 10_000;

/// Whether `CLOCK_REALTIME` is no more `ahead_ns` ahead of `CLOCK_BOOTTIME`, which showed `boot_ns` right now.
#[inline]
pub(crate) fn was_set(boot_ns: u64, ahead_ns: i64) -> bool {
    let moved = real_ns().wrapping_sub(boot_ns).cast_signed().wrapping_sub(ahead_ns);
    moved.unsigned_abs() > SET_NS_MIN && was_set_indeed(ahead_ns)
}

/// The thread may have been scheduled out between the two clocks.
#[cold]
fn was_set_indeed(ahead_ns: i64) -> bool {
    let now = Moment::capture_best();
    now.ahead_ns().wrapping_sub(ahead_ns).unsigned_abs() > SET_NS_MIN.saturating_add(now.width_ns)
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
/// `CLOCK_MONOTONIC_RAW`, nanoseconds.
#[inline]
pub(crate) fn raw_ns() -> u64 {
    gettime(libc::CLOCK_MONOTONIC_RAW)
}
/// `CLOCK_REALTIME`, nanoseconds since the Unix epoch.
#[inline]
pub(crate) fn real_ns() -> u64 {
    gettime(libc::CLOCK_REALTIME)
}

/// The kernel's word that somebody set the system clock: its file becomes readable at once.
#[derive(Debug)]
pub(crate) struct TimeSet(File);

impl TimeSet {
    /// Asks to be told.
    pub(crate) fn watch() -> io::Result<Self> {
        // SAFETY: takes numbers, gives a file or -1.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_REALTIME, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just opened and belongs to nobody else.
        let set = TimeSet(unsafe { File::from_raw_fd(fd) });
        set.arm()?;
        Ok(set)
    }
    pub(crate) fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
    /// It was heard: for the next time.
    pub(crate) fn acknowledge(&self) {
        // The read fails, which is what the kernel has to say (ECANCELED).
        let _ = (&self.0).read(&mut [0; 8]);
        // If it cannot be armed again, steps are found at the next poll.
        let _ = self.arm();
    }
    /// A timer that never comes, and is called off when the clock is set.
    fn arm(&self) -> io::Result<()> {
        let never = libc::timespec { tv_sec: libc::time_t::MAX, tv_nsec: 0 };
        let timer = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: never };
        let flags = libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET;
        // SAFETY: both structures are valid for the call.
        match unsafe { libc::timerfd_settime(self.as_raw_fd(), flags, &timer, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

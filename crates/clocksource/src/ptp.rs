//! `ptp`: a PTP hardware clock (`/dev/ptpN`), read between two readings of the kernel's clock.
//!
//! The hardware clock's time belongs to some instant between the two, so true time is known up to the gap between them (a few
//! microseconds) plus the error of the hardware clock itself. The second must come from somewhere: a driver that knows it says so
//! (Amazon's ENA: `phc_error_bound`), otherwise the operator does (`ptp:/dev/ptp0,error=2us`). Without either there is no bound.
//!
//! **Invariants.** 1. No error, no bound. 2. A hardware clock on the TAI scale is shifted by the kernel's TAI offset, and refused
//! while the kernel does not know it. 3. A leap second that the kernel was told of counts as announced: the device has no word for it.
//!
//! **Caveats.** Whether the clock shows UTC or TAI cannot be read from it: PTP proper is TAI (`ptp:/dev/ptp0,tai`), cloud devices show
//! UTC. Between polls the bare oscillator is read, which drifts at `max_drift` and by all that the kernel is steered to make up for it, up
//! to 500 ppm: how much of the steering is that, and not a slew, nobody says.

use crate::kernel::KernelTime;
use crate::measurement::{Measurement, Probe, ProbeError};
use crate::memory::Memory;
use crate::moment::{self, Moment};
use clock::{Interval, Status};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "ptp";
/// Readings of which the one with the narrowest gap is taken.
const TRIES: usize = 5;

/// Which device, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtpDevice {
    /// The character device.
    pub path: PathBuf,
    /// Its greatest error; from the driver if not given.
    pub error: Option<Duration>,
    /// It shows TAI, not UTC.
    pub tai: bool,
}

/// The probe.
#[derive(Debug)]
pub struct Ptp {
    device: PtpDevice,
    file: Option<File>,
    max_drift_ppb: u32,
}

impl Ptp {
    /// Reads `device`; the kernel clock is taken to drift by at most `max_drift_ppb` between polls.
    pub fn new(device: PtpDevice, max_drift_ppb: u32) -> Self {
        Ptp { device, file: None, max_drift_ppb }
    }
    /// The first hardware clock of this machine whose driver knows its error.
    pub fn usual_device() -> Option<PtpDevice> {
        (0..8)
            .map(|n| PtpDevice { path: format!("/dev/ptp{n}").into(), error: None, tai: false })
            .find(|d| d.path.exists() && d.driver_error().is_some())
    }
}

impl PtpDevice {
    /// The error that the driver states now.
    pub fn driver_error(&self) -> Option<Duration> {
        self.driver_error_in(Path::new("/sys/class/ptp"))
    }
    fn driver_error_in(&self, class: &Path) -> Option<Duration> {
        let text = std::fs::read_to_string(class.join(self.path.file_name()?).join("device/phc_error_bound")).ok()?;
        text.trim().parse().ok().filter(|ns| *ns > 0).map(Duration::from_nanos)
    }
}

/// One reading of a hardware clock between two readings of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sandwich {
    /// `CLOCK_BOOTTIME` before.
    pub before_ns: u64,
    /// The hardware clock, Unix nanoseconds.
    pub device_ns: u64,
    /// `CLOCK_BOOTTIME` after.
    pub after_ns: u64,
}

impl Sandwich {
    /// Where true time lies when the boot-time clock shows `boot_ns` (at or after `after_ns`), if the device's error is `error_ns`.
    pub fn interval(&self, error_ns: u64, boot_ns: u64) -> Interval {
        Interval {
            earliest_ns: self.device_ns.saturating_sub(error_ns).saturating_add(boot_ns.saturating_sub(self.after_ns)),
            latest_ns: self.device_ns.saturating_add(error_ns).saturating_add(boot_ns.saturating_sub(self.before_ns)),
        }
    }
}

/// The clock id of an open clock device (`FD_TO_CLOCKID` of the kernel's documentation).
const fn clock_id(fd: i32) -> libc::clockid_t {
    (!fd << 3) | 3
}

fn read_device(id: libc::clockid_t) -> io::Result<Sandwich> {
    let mut best: Option<Sandwich> = None;
    for _ in 0..TRIES {
        let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let before_ns = moment::boot_ns();
        // SAFETY: `t` is valid for the call to fill; a wrong id is an error, not a fault.
        if unsafe { libc::clock_gettime(id, &mut t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let after_ns = moment::boot_ns();
        let device_ns = (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64);
        if best.is_none_or(|b| after_ns - before_ns < b.after_ns - b.before_ns) {
            best = Some(Sandwich { before_ns, device_ns, after_ns });
        }
    }
    best.ok_or_else(|| io::ErrorKind::Other.into())
}

impl Ptp {
    fn read(&mut self) -> io::Result<Sandwich> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(File::open(&self.device.path)?),
        };
        read_device(clock_id(file.as_raw_fd())).inspect_err(|_| self.file = None)
    }
}

impl Probe for Ptp {
    fn name(&self) -> &'static str {
        NAME
    }
    fn probe(&mut self) -> Result<Measurement, ProbeError> {
        let unsynchronised = |reason: &str| ProbeError::Unsynchronised { source_name: NAME, reason: reason.into() };
        let before = Moment::capture();
        let mut sandwich = self.read().map_err(|error| ProbeError::Unreachable {
            source_name: NAME,
            place: self.device.path.display().to_string(),
            error,
            advice: "Is this a PTP hardware clock that this user may read?",
        })?;
        let error = self.device.driver_error().or(self.device.error).ok_or_else(|| {
            unsynchronised("the driver states no error; state it yourself, for example ptp:/dev/ptp0,error=2us")
        })?;
        if self.device.tai {
            let offset = KernelTime::query().map(|k| k.tai_s).unwrap_or(0);
            if offset <= 0 {
                return Err(unsynchronised(
                    "the clock shows TAI and the kernel does not know the offset to UTC; a daemon must set it",
                ));
            }
            sandwich.device_ns = sandwich.device_ns.saturating_sub(offset as u64 * 1_000_000_000);
        }
        let moment = Moment::capture();
        let error_ns = u64::try_from(error.as_nanos()).unwrap_or(u64::MAX);
        let measurement = Measurement {
            moment,
            interval: sandwich.interval(error_ns, moment.boot_ns),
            updated_ns: moment.boot_ns,
            max_drift_ppb: self.max_drift_ppb,
            steady_ppb: None,
            follows_slews: false,
            remembers: Memory::Unstepped,
            status: Status::Synchronized,
            leap: KernelTime::announced_leap(),
            detail: format!(
                "{}: device error {:.3} us, reading took {} ns",
                self.device.path.display(),
                error_ns as f64 / 1e3,
                sandwich.after_ns - sandwich.before_ns
            ),
        };
        measurement.answered_since(&before, NAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_wherever_in_the_gap_the_device_was_read() {
        for at in [100, 150, 200] {
            // The device is 7 ns fast; it was read when boot time was `at`, so true time then was 1_000_000 + at.
            let s = Sandwich { before_ns: 100, device_ns: 1_000_000 + at + 7, after_ns: 200 };
            let i = s.interval(7, 500);
            assert!((i.earliest_ns..=i.latest_ns).contains(&1_000_500), "{at}: {i:?}");
            assert_eq!(i.latest_ns - i.earliest_ns, 100 + 14);
        }
    }

    #[test]
    fn the_drivers_word_on_its_error_is_read_and_0_is_no_word() {
        let class = std::env::temp_dir().join(format!("tb-ptp-{}", std::process::id()));
        std::fs::create_dir_all(class.join("ptp0/device")).unwrap();
        let stated = |text: Option<&str>| {
            let file = class.join("ptp0/device/phc_error_bound");
            match text {
                Some(text) => std::fs::write(file, text).unwrap(),
                None => std::fs::remove_file(file).unwrap(),
            }
            PtpDevice { path: "/dev/ptp0".into(), error: None, tai: false }.driver_error_in(&class)
        };
        assert_eq!(stated(Some("12345\n")), Some(Duration::from_nanos(12_345)));
        assert_eq!([stated(Some("0\n")), stated(Some("-1")), stated(Some("")), stated(None)], [None; 4]);
        std::fs::remove_dir_all(&class).unwrap();
    }

    #[test]
    fn the_system_clock_stands_in_for_a_device() {
        let s = read_device(libc::CLOCK_REALTIME).unwrap();
        let (m, real) = (Moment::capture(), moment::real_ns());
        let i = s.interval(0, m.boot_ns);
        assert!(i.earliest_ns <= real && s.after_ns >= s.before_ns);
        assert!(read_device(clock_id(9999)).is_err());
        let mut absent = Ptp::new(PtpDevice { path: "/nonexistent/ptp".into(), error: None, tai: false }, 1);
        assert!(matches!(absent.probe(), Err(ProbeError::Unreachable { .. })));
    }
}

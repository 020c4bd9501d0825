//! `clockbound`: the shared memory segment that AWS's ClockBound daemon maintains, versions 2 and 3 of its layout.
//!
//! ```text
//! header (16 bytes)   magic 8 | size 4 | version 2 | generation 2 (odd while the daemon writes)
//! version 2           as_of 16 | void_after 16 | bound 8 | disruption 8 | drift 4 | status 4 | disruption known 1 | 7
//! version 3           counter 8 | as_of 16 | void_after 16 | period 8 | period error 8 | bound 8 | disruption 8 | drift 4
//!                     | status 4 | disruption known 1 | period shift 1 | error shift 1 | 5
//! ```
//!
//! The version's lower byte is the newest layout that the body serves, the upper one the oldest: 3 is written as 0x0303. Version 2 daemons
//! leave the upper byte at 0 and mean 2 alone.
//!
//! Everything is in the machine's byte order; times are seconds and nanoseconds of eight bytes each. Version 2 bounds the error of
//! `CLOCK_REALTIME` and dates by `CLOCK_MONOTONIC`. Version 3 keeps a clock of its own: `as_of` is true time when the processor's
//! counter showed `counter`, a tick lasts `period / 2^(64 + shift)` seconds.
//!
//! The segment is read like any file, header, body, header again: the page cache is the very memory that the daemon writes. It is
//! slower than a mapping (2 µs) and cannot fault when the file is cut; the poller does it a few times a second.
//!
//! While a version 3 daemon slews the system clock towards its own, `CLOCK_BOOTTIME` gains or loses by as much as the two still differ, and
//! a reading lives on `CLOCK_BOOTTIME`. So the difference widens the interval on the side where true time then lies.
//!
//! **Invariants.** 1. A body counts only between two equal, even generations. 2. A segment that is older than
//! [`GRACE_NS`] (version 3: [`GRACE_V3_NS`]) is `FreeRunning`, past its `void_after` it is unknown. 3. A disruption marker that differs from the
//! hypervisor's (VMClock) means that the machine was cloned or moved since: `Disrupted`.
//!
//! **Caveats.** Version 3 was measured with 3.0.0-rc.0. It needs the processor's counter; it is read here for x86-64 and aarch64 only.

mod segment;

pub use segment::{GRACE_NS, GRACE_V3_NS, Segment};

use crate::kernel::KernelTime;
use crate::measurement::{Measurement, Probe, ProbeError};
use crate::moment::Moment;
use crate::news::{News, SOME_TIME_AGO};
use crate::vmclock::VmClock;
use clock::Status;
use segment::malformed;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "clockbound";
/// Where the daemon puts its segment. Version 3 daemons serve the first, and the second for older clients: those give up on it after
/// 5 s, though it may be written every 16 s, so the first is asked first.
const PATHS: [&str; 2] = ["/var/run/clockbound/shm1", "/var/run/clockbound/shm0"];

/// The probe.
#[derive(Debug)]
pub struct ClockBound {
    /// Segments, best first, and when each changed.
    segments: Vec<(PathBuf, News)>,
    vmclock: Option<VmClock>,
}

impl ClockBound {
    /// Reads the segment at `path`, and the hypervisor's marker if there is one.
    pub fn new(path: PathBuf) -> Self {
        Self::among(vec![path], VmClock::open().ok())
    }
    /// Reads the best segment at the usual paths that is of use.
    pub fn usual() -> Self {
        Self::among(PATHS.map(PathBuf::from).to_vec(), VmClock::open().ok())
    }
    /// Reads the best of these segments that is of use, and the hypervisor's marker from a given device.
    pub fn among(paths: Vec<PathBuf>, vmclock: Option<VmClock>) -> Self {
        ClockBound { segments: paths.into_iter().map(|path| (path, News::default())).collect(), vmclock }
    }
    /// Whether there is a segment at a usual path.
    pub fn is_here() -> bool {
        PATHS.into_iter().any(|p| Path::new(p).exists())
    }
}

/// The processor's counter, as the version 3 daemon reads it.
fn counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: both instructions exist on every x86-64.
        Some(unsafe {
            core::arch::x86_64::_mm_lfence();
            core::arch::x86_64::_rdtsc()
        })
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: Linux lets user space read the virtual counter.
        unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack)) };
        Some(ticks)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

impl ClockBound {
    fn measure(path: &Path, news: &mut News, vmclock: Option<&VmClock>) -> Result<Measurement, ProbeError> {
        let file = File::open(path).map_err(|error: io::Error| ProbeError::Unreachable {
            source_name: NAME,
            place: path.display().to_string(),
            error,
            advice: "Is the ClockBound daemon running on this machine?",
        })?;
        let segment = Segment::read(&file)?;
        let before = counter();
        let moment = Moment::capture();
        let mut measurement = segment.measure(moment, before.zip(counter()))?;
        let dated = news.date(segment.as_of_ns, &moment, 0);
        if dated.updated_ns > SOME_TIME_AGO {
            measurement.updated_ns = dated.updated_ns;
        }
        // The segment does not mention leap seconds; chronyd leaves them to the kernel unless its `leapsecmode` says otherwise.
        measurement.leap = KernelTime::announced_leap();
        if segment.disruption_known {
            match vmclock.map(VmClock::disruption_marker) {
                Some(Ok(marker)) if marker == segment.disruption_marker => {}
                Some(Ok(_)) => {
                    measurement.status = Status::Disrupted;
                    measurement.detail.push_str("; the hypervisor moved this machine since");
                }
                Some(Err(_)) | None => measurement.detail.push_str(
                    "; /dev/vmclock0 cannot be read here, so a move of this machine shows only once the daemon has seen it",
                ),
            }
        }
        Ok(measurement)
    }
}

impl Probe for ClockBound {
    fn name(&self) -> &'static str {
        NAME
    }
    fn probe(&mut self) -> Result<Measurement, ProbeError> {
        let mut best = None;
        let ClockBound { segments, vmclock } = self;
        for (path, news) in segments {
            let outcome = Self::measure(path, news, vmclock.as_ref());
            // A disruption is of the machine: a segment that does not know of it yet is no help.
            if matches!(&outcome, Ok(m) if matches!(m.status, Status::Synchronized | Status::Disrupted)) {
                return outcome;
            }
            // What was found tells more than what was not; where nothing was, the path that all daemons serve is named.
            let told = |o: &Result<_, ProbeError>| match o {
                Ok(_) => 2,
                Err(ProbeError::Unreachable { .. }) => 0,
                Err(_) => 1,
            };
            if best.as_ref().is_none_or(|b| told(b) < told(&outcome) || told(b) == 0) {
                best = Some(outcome);
            }
        }
        best.unwrap_or_else(|| Err(malformed("no segment was named")))
    }
}

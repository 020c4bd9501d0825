//! The segment's bytes, and what they say of true time.

use super::NAME;
use crate::measurement::{Leap, Measurement, ProbeError, SLEW_PPB_MAX, growth_ppb};
use crate::memory::{Memory, SAMPLES_MAX};
use crate::moment::Moment;
use clock::{Interval, Status};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

const MAGIC: [u32; 2] = [0x414d_5a4e, 0x4342_0200];
const HEADER: usize = 16;
const BODY_V2: usize = 64;
const BODY_V3: usize = 88;
/// Reads that may be disturbed by the writer before the segment counts as unreadable: it writes for less than a microsecond.
const TRIES: usize = 100;
/// The daemon writes every second; a segment older than this (nanoseconds) means that it is gone.
pub const GRACE_NS: u64 = 5_000_000_000;
/// The version 3 daemon writes when it hears from a source, which may be every 16 s; its own client waits this long.
pub const GRACE_V3_NS: u64 = 60_000_000_000;
/// How far back chronyd goes below version 2, nanoseconds: as many samples as it keeps, taken every 16 s, as AWS has it ask its own servers. Version 3
/// keeps its clock over the processor's counter, which nobody sets.
const MEMORY_NS: u64 = SAMPLES_MAX as u64 * 16_000_000_000;
/// The drift of a disciplined oscillator (parts per billion) that ClockBound 2 takes unless told otherwise.
const SYSTEM_DRIFT_PPB: u32 = 50_000;
const UNWRITTEN: &str = "the daemon has not written the segment yet; it waits for its own sources";
/// A drift beyond this (parts per billion) is a broken segment.
const DRIFT_SANE_PPB: u32 = 1_000_000_000;

/// The segment's content, either version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Layout version, 2 or 3.
    pub version: u16,
    /// `CLOCK_MONOTONIC` (2) or Unix time (3) of the statistics, nanoseconds.
    pub as_of_ns: u64,
    /// The same clock's time beyond which they are void.
    pub void_after_ns: u64,
    /// Error at `as_of`, nanoseconds.
    pub bound_ns: u64,
    /// Counts disruptions of the virtual machine's clock.
    pub disruption_marker: u64,
    /// Drift of the oscillator, parts per billion.
    pub max_drift_ppb: u32,
    /// The daemon's word.
    pub status: Status,
    /// Whether the daemon watches the hypervisor for disruptions.
    pub disruption_known: bool,
    /// Version 3: the processor's counter at `as_of`, seconds a tick, and the relative error of that.
    pub counter: Option<(u64, f64, f64)>,
}

pub(super) fn malformed(reason: impl Into<String>) -> ProbeError {
    ProbeError::Malformed { source_name: NAME, reason: reason.into() }
}

struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.0 = tail;
                *head
            }
            None => [0; N],
        }
    }
    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
    fn time_ns(&mut self) -> u64 {
        let (s, ns) = (self.u64() as i64, self.u64() as i64);
        u64::try_from(s.saturating_mul(1_000_000_000).saturating_add(ns)).unwrap_or(0)
    }
}

/// `fraction / 2^(64 + shift)`.
fn scaled(fraction: u64, shift: u8) -> f64 {
    fraction as f64 / 2f64.powi(64 + i32::from(shift))
}

impl Segment {
    /// Reads the segment from its file.
    ///
    /// # Errors
    /// [`ProbeError`] where it is not a segment, or of a version that is not known here.
    pub fn read(file: &File) -> Result<Self, ProbeError> {
        for _ in 0..TRIES {
            let before = Self::header(file)?;
            let (versions, generation) = before;
            let (version, size) = match (versions >> 8, versions & 0xff) {
                (0, 2) => (2, BODY_V2),
                (1..=3, 3..) => (3, BODY_V3),
                (0, 0) => return Err(malformed(UNWRITTEN)),
                (oldest, newest) => {
                    let what = format!("the segment has layout versions {oldest} to {newest}; 2 and 3 are known here");
                    return Err(malformed(what));
                }
            };
            if generation == 0 {
                return Err(malformed(UNWRITTEN));
            }
            let mut body = [0; BODY_V3];
            file.read_exact_at(&mut body[..size], HEADER as u64)
                .map_err(|e| malformed(format!("the segment is cut: {e}")))?;
            fence(Ordering::Acquire);
            if generation & 1 == 0 && Self::header(file)? == before {
                return Self::decode(version, &body);
            }
        }
        Err(malformed("the daemon stopped in the middle of a write"))
    }

    /// Versions and generation.
    fn header(file: &File) -> Result<(u16, u16), ProbeError> {
        let mut header = [0; HEADER];
        file.read_exact_at(&mut header, 0).map_err(|e| malformed(format!("the segment has no header: {e}")))?;
        fence(Ordering::Acquire);
        let mut w = Words(&header);
        if [u32::from_ne_bytes(w.take()), u32::from_ne_bytes(w.take())] != MAGIC {
            return Err(malformed("the file is not a ClockBound segment"));
        }
        let _size: [u8; 4] = w.take();
        Ok((u16::from_ne_bytes(w.take()), u16::from_ne_bytes(w.take())))
    }

    fn decode(version: u16, body: &[u8]) -> Result<Self, ProbeError> {
        let mut w = Words(body);
        let counter_at = if version == 3 { w.u64() } else { 0 };
        let (as_of_ns, void_after_ns) = (w.time_ns(), w.time_ns());
        let (period, period_error) = if version == 3 { (w.u64(), w.u64()) } else { (0, 0) };
        let (bound_ns, disruption_marker) = (w.u64() as i64, w.u64());
        let (max_drift_ppb, status) = (u32::from_ne_bytes(w.take()), u32::from_ne_bytes(w.take()));
        let [known, shift, error_shift]: [u8; 3] = w.take();
        if max_drift_ppb >= DRIFT_SANE_PPB || bound_ns < 0 {
            return Err(malformed(format!("a bound of {bound_ns} ns that grows by {max_drift_ppb} ppb")));
        }
        let status = match status {
            1 => Status::Synchronized,
            2 => Status::FreeRunning,
            3 => Status::Disrupted,
            _ => Status::Unknown,
        };
        Ok(Segment {
            version,
            as_of_ns,
            void_after_ns,
            bound_ns: bound_ns as u64,
            disruption_marker,
            max_drift_ppb,
            status,
            disruption_known: known != 0,
            counter: (version == 3).then(|| (counter_at, scaled(period, shift), scaled(period_error, error_shift))),
        })
    }

    /// The measurement at `moment`, at which the processor's counter showed something between the two of `counter`.
    ///
    /// # Errors
    /// [`ProbeError`] where the segment is void or claims an impossible bound.
    pub fn measure(&self, moment: Moment, counter: Option<(u64, u64)>) -> Result<Measurement, ProbeError> {
        if self.bound_ns == 0 && self.status == Status::Synchronized {
            return Err(malformed("a bound of 0, which no clock has"));
        }
        let (middle_ns, age_ns, void, gap_ns) = match (self.counter, counter) {
            (None, _) => {
                let age = moment.mono_ns.checked_sub(self.as_of_ns);
                let age = age.ok_or_else(|| malformed("statistics from the future"))?;
                (moment.real_ns, age, moment.mono_ns > self.void_after_ns, moment.width_ns)
            }
            (Some((at, period_s, _)), Some((before, after))) => {
                let ns = |ticks: u64| (ticks as f64 * period_s * 1e9) as u64;
                let age = ns(before.saturating_sub(at));
                let middle = self.as_of_ns.saturating_add(age);
                (middle, age, middle > self.void_after_ns, ns(after.saturating_sub(before)) + 1)
            }
            (Some(_), None) => {
                return Err(malformed("layout version 3 needs a processor counter that is not read here"));
            }
        };
        if void {
            let reason = format!("its statistics are {:.0} s old and void; is the daemon alive?", age_ns as f64 / 1e9);
            return Err(ProbeError::Unsynchronised { source_name: NAME, reason });
        }
        let (period_error, grace_ns) = match self.counter {
            Some((_, _, error)) => (error, GRACE_V3_NS),
            None => (0.0, GRACE_NS),
        };
        // The segment does not say what its daemon's chronyd takes for the oscillator's own error. While the steering can be that, it is
        // taken for it, as ClockBound's own client does; beyond it there is a slew, and nobody knows which part it is.
        let max_drift_ppb = self.drift_of_the_system_ppb();
        let steady_ppb = moment.steering_ppb.filter(|steering| steering.unsigned_abs() <= max_drift_ppb.into());
        let slew_ppb = match self.counter {
            None => moment.steering_ppb.unwrap_or(SLEW_PPB_MAX).saturating_sub(steady_ppb.unwrap_or(0)),
            Some(_) => 0,
        };
        let growth = age_ns as f64 * (f64::from(growth_ppb(self.max_drift_ppb, slew_ppb)) / 1e9 + period_error);
        let error_ns = self.bound_ns.saturating_add(growth.ceil() as u64).saturating_add(gap_ns);
        // What the system clock has still to gain or lose (nothing in version 2, whose middle it is).
        let (behind_ns, ahead_ns) =
            (middle_ns.saturating_sub(moment.real_ns), moment.real_ns.saturating_sub(middle_ns));
        let status = match self.status {
            Status::Synchronized if age_ns > grace_ns => Status::FreeRunning,
            s => s,
        };
        Ok(Measurement {
            moment,
            interval: Interval {
                earliest_ns: middle_ns.saturating_sub(error_ns).saturating_sub(behind_ns),
                latest_ns: middle_ns.saturating_add(error_ns).saturating_add(ahead_ns),
            },
            updated_ns: moment.boot_ns.saturating_sub(age_ns),
            max_drift_ppb,
            steady_ppb,
            follows_slews: true,
            remembers: match self.counter {
                None => Memory::Since(moment.boot_ns.saturating_sub(age_ns).saturating_sub(MEMORY_NS)),
                Some(_) => Memory::Unstepped,
            },
            status,
            leap: Leap::None,
            detail: format!(
                "ClockBound segment version {}, {:.1} s old, {status}: bound {:.6} ms",
                self.version,
                age_ns as f64 / 1e9,
                self.bound_ns as f64 / 1e6
            ),
        })
    }
    /// How far `CLOCK_BOOTTIME` may drift until the next poll. Version 2 states just that. Version 3 states what its own clock does; the
    /// system clock that it disciplines is not taken to be better, nor better than the oscillators that ClockBound 2 assumes.
    fn drift_of_the_system_ppb(&self) -> u32 {
        match self.counter {
            None => self.max_drift_ppb,
            Some((_, _, period_error)) => {
                self.max_drift_ppb.saturating_add((period_error * 1e9).ceil() as u32).max(SYSTEM_DRIFT_PPB)
            }
        }
    }
}

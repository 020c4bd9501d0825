//! `chrony`: asks chronyd, over its command socket or UDP port 323 of this machine.
//!
//! chronyd tells how far the system clock is from its estimate of true time, and how wrong that estimate may be. The bound:
//!
//! ```text
//!   |offset to be corrected| + root dispersion + root delay / 2 + drift since chronyd's last update
//! ```
//!
//! and from there on it opens at `max_drift` + skew + residual frequency + whatever the clock is slewed by.
//!
//! The first term is there because chronyd slews: for seconds or hours the system clock is knowingly off. It makes the interval
//! symmetrical around the clock that everybody reads, and true while the slew goes on. The last term is there because chronyd's
//! own dispersion grows by `maxclockerror` (1 ppm unless set), which no crystal keeps. Skew and residual frequency say how well chronyd
//! knows the frequency that it set: after its first few samples that can be seconds a second. And a slew goes on for ever when chronyd
//! is killed while it slews (up to 8 %): only an orderly end of chronyd stops it.
//!
//! **Invariants.**
//! 1. An unsynchronised chronyd gives no bound. Neither does one that serves its own clock (`local stratum`): it reports a
//!    delay and dispersion of 0 and means that it does not know.
//! 2. Without an update for [`UPDATES_MISSED`] of its own update intervals, and of those at which it asks its sources (which are longer
//!    after a burst at the start), it is `FreeRunning`, whatever it says.
//! 3. A chronyd that may be wrong by a second a second knows nothing.
//! 4. A report is as old as it has been repeated, by the boot-time clock: chronyd dates it by the system clock, which may be set back.
//! 5. With each report after a step goes how far back the samples reach that chronyd's line is laid through. It does not notice that the clock was set by less than
//!    ten seconds, and its correction and dispersion are no bound until it has none from before that.
//!
//! **Caveats.** The bound is as good as the server's own: root delay and dispersion are summed up from there.
//! The daemon answers in 20 to 60 µs; it is asked by the poller, never by a reader.

mod credentials;
mod transport;
mod wire;

pub use transport::{Answered, ChronyAddress};
pub use wire::{SourceReport, SourceStats, Tracking};

use crate::measurement::{Leap, Measurement, Probe, ProbeError};
use crate::memory::{Memory, SAMPLES_MAX};
use crate::moment::Moment;
use crate::news::News;
use crate::tracker::Tracker;
use clock::{Interval, Status};
use transport::Transport;

const NAME: &str = "chrony";
/// After this many of chronyd's update intervals without an update it counts as free running (ClockBound's rule).
pub const UPDATES_MISSED: u32 = 8;
/// The longest interval at which chronyd asks a source, as a power of two, seconds (NTP's limit, a day and a half).
const POLL_LOG2_MAX: i16 = 17;
/// chronyd is given at least this long between updates (nanoseconds), for its very fast start.
const UPDATE_AGE_MIN_NS: u64 = 16_000_000_000;
/// The reference id of chronyd's own clock ("local stratum"), 127.127.1.1.
const LOCAL_REFERENCE: u32 = 0x7f7f_0101;
/// No estimate over a socket is better than this (nanoseconds): the resolution of the fields and of the kernel clock.
const ERROR_MIN_NS: f64 = 1_000.0;
/// After so many reports since a step the tracker needs no word on how far back it goes: that it keeps no more samples is enough.
const REPORTS_AFTER_STEP: u32 = SAMPLES_MAX + Tracker::CONSISTENT_AFTER;
/// What the seconds since a sample and between two of them are rounded by, together (nanoseconds).
const ROUNDED_NS: u64 = 2_000_000_000;
/// A delay, dispersion or correction beyond this (seconds) is a broken answer, not a clock.
const SANE_S: f64 = 1e6;
/// A frequency beyond this (parts per million) is a broken answer: Linux steers by a tenth of it at most.
const SANE_PPM: f64 = 1e6;

/// The probe.
#[derive(Debug)]
pub struct Chrony {
    transport: Transport,
    max_drift_ppb: u32,
    news: News,
    /// How often it asks its sources (seconds), and the date of the report for which it was asked about that.
    asks_every_s: Option<(u64, f64)>,
    /// How far back it goes, if it says ([`Memory::Since`]), and the date of the report after which it was asked.
    oldest_ns: Option<(u64, Option<u64>)>,
    /// At so many reports more it is asked for that.
    reports_after_step: u32,
    last: Option<Moment>,
}

impl Chrony {
    /// Asks the daemon at `address`; the local oscillator is taken to drift by at most `max_drift_ppb`.
    pub fn new(address: ChronyAddress, max_drift_ppb: u32) -> Self {
        Chrony {
            transport: Transport::new(address),
            max_drift_ppb,
            news: News::default(),
            asks_every_s: None,
            oldest_ns: None,
            // It may have been set before this probe was there.
            reports_after_step: REPORTS_AFTER_STEP,
            last: None,
        }
    }
    /// The daemon's tracking report.
    ///
    /// # Errors
    /// [`ProbeError`] where it does not answer or the answer cannot be read.
    pub fn tracking(&mut self) -> Result<Tracking, ProbeError> {
        let reply = self.transport.ask(&wire::Request::Tracking)?;
        Tracking::decode(&reply).map_err(malformed)
    }
    /// What the daemon says of each of its sources.
    ///
    /// # Errors
    /// [`ProbeError`] where it does not answer or an answer cannot be read.
    pub fn sources(&mut self) -> Result<Vec<SourceReport>, ProbeError> {
        let reply = self.transport.ask(&wire::Request::SourceCount)?;
        let count = wire::decode_count(&reply).map_err(malformed)?.min(wire::SOURCES_MAX);
        (0..count)
            .map(|i| SourceReport::decode(&self.transport.ask(&wire::Request::Source(i))?).map_err(malformed))
            .collect()
    }
    /// What it makes of the samples of its source of this number.
    ///
    /// # Errors
    /// [`ProbeError`] where it does not answer or the answer cannot be read.
    pub fn source_stats(&mut self, index: u32) -> Result<SourceStats, ProbeError> {
        SourceStats::decode(&self.transport.ask(&wire::Request::SourceStats(index))?).map_err(malformed)
    }
    /// How far back it goes, for [`Memory::Since`]; asked once for a report, and only while that counts: who waits for its answers does not
    /// see steps.
    fn oldest_ns(&mut self, updated_ns: u64, moment: &Moment) -> Option<u64> {
        if self.last.replace(*moment).is_some_and(|last| moment.stepped_since(&last) != 0) {
            self.reports_after_step = REPORTS_AFTER_STEP;
        }
        match self.oldest_ns {
            Some((of, oldest_ns)) if of == updated_ns => oldest_ns,
            _ if self.reports_after_step == 0 => None,
            _ => {
                self.reports_after_step -= 1;
                let oldest_ns = self.ask_oldest_ns(moment);
                self.oldest_ns = Some((updated_ns, oldest_ns));
                oldest_ns
            }
        }
    }
    /// Nothing where it does not say of all sources that it goes by.
    fn ask_oldest_ns(&mut self, moment: &Moment) -> Option<u64> {
        let sources = self.sources().ok()?;
        let in_use = (0..).zip(&sources).filter(|(_, source)| source.is_in_use());
        let oldest_ns = |(index, source): (u32, &SourceReport)| {
            let stats = self.source_stats(index).ok()?;
            // The list may have changed meanwhile.
            let is_its = stats.address.is_empty() || stats.address == source.address;
            let age_s = u64::from(source.since_sample_s).saturating_add(stats.span_s.into());
            let age_ns = age_s.saturating_mul(1_000_000_000).saturating_add(ROUNDED_NS);
            (is_its && stats.samples > 0).then(|| moment.boot_ns.saturating_sub(age_ns))
        };
        in_use.map(oldest_ns).collect::<Option<Vec<u64>>>()?.into_iter().min()
    }
    /// How often it asks the sources that it goes by, seconds; asked once for a report, when that has become old.
    fn asks_every_s(&mut self, updated_ns: u64) -> f64 {
        match self.asks_every_s {
            Some((of, seconds)) if of == updated_ns => seconds,
            _ => {
                let sources = self.sources().unwrap_or_default();
                let slowest = sources.into_iter().filter(SourceReport::is_in_use).map(|s| s.poll_log2).max();
                let seconds = slowest.map_or(0.0, |log2| 2f64.powi(i32::from(log2.min(POLL_LOG2_MAX))));
                self.asks_every_s = Some((updated_ns, seconds));
                seconds
            }
        }
    }
    /// Who gave the last answer; nothing before the first.
    pub fn answered(&self) -> Option<Answered> {
        self.transport.answered()
    }
    /// Where the daemon was reached last.
    pub fn place(&self) -> String {
        self.transport.place()
    }
}

fn malformed(reason: String) -> ProbeError {
    ProbeError::Malformed { source_name: NAME, reason }
}

impl Tracking {
    /// The measurement at `moment`, if nobody stepped the system clock since the daemon's last update.
    ///
    /// # Errors
    /// [`ProbeError`] where the daemon does not know its error.
    pub fn measure(&self, moment: Moment, max_drift_ppb: u32) -> Result<Measurement, ProbeError> {
        let age_ns = self.stated_age_ns(&moment);
        self.measure_at_age(moment, age_ns, max_drift_ppb)
    }
    /// How old the daemon's last update is by the system clock, nanoseconds.
    fn stated_age_ns(&self, moment: &Moment) -> u64 {
        moment.real_ns.saturating_sub(self.reference_unix_ns)
    }
    /// Tells one update from the next: what changes with each.
    fn update_id(&self) -> u64 {
        let parts = [self.last_offset_s.to_bits(), self.skew_ppm.to_bits(), u64::from(self.reference_id)];
        parts.into_iter().fold(self.reference_unix_ns, |id, part| id.rotate_left(21).wrapping_add(part))
    }
    /// After so long (nanoseconds) an update is late, if the daemon asks its sources every `asks_every_s` seconds.
    fn patience_ns(&self, asks_every_s: f64) -> u64 {
        let every_s = self.update_interval_s.max(asks_every_s).clamp(0.0, SANE_S);
        ((f64::from(UPDATES_MISSED) * every_s * 1e9) as u64).max(UPDATE_AGE_MIN_NS)
    }
    fn measure_at_age(&self, moment: Moment, age_ns: u64, max_drift_ppb: u32) -> Result<Measurement, ProbeError> {
        let unsynchronised =
            |reason: &str| Err(ProbeError::Unsynchronised { source_name: NAME, reason: reason.into() });
        let leap = match self.leap_status {
            0 => Leap::None,
            1 => Leap::Insert,
            2 => Leap::Delete,
            _ => return unsynchronised("chronyd has no usable source yet; see `chronyc sources`"),
        };
        if self.reference_id == LOCAL_REFERENCE {
            return unsynchronised("chronyd serves its own clock (local stratum), which has no known error");
        }
        let parts = [self.current_correction_s, self.root_delay_s, self.root_dispersion_s];
        if parts.iter().any(|p| !p.is_finite() || p.abs() > SANE_S) {
            return Err(malformed(format!("correction, delay and dispersion of {parts:?} seconds")));
        }
        if self.root_delay_s <= 0.0 && self.root_dispersion_s <= 0.0 {
            return unsynchronised("root delay and root dispersion are both 0, which no clock has");
        }
        if !self.frequency_ppm.is_finite() || self.frequency_ppm.abs() > SANE_PPM {
            return Err(malformed(format!("a frequency of {} ppm", self.frequency_ppm)));
        }
        let unsure_ppm = self.skew_ppm.abs() + self.residual_ppm.abs();
        if unsure_ppm.is_nan() || unsure_ppm >= SANE_PPM {
            return unsynchronised("chronyd has too few samples to know the clock's frequency; wait for more");
        }
        let stated_ns =
            (self.current_correction_s.abs() + self.root_dispersion_s.max(0.0) + self.root_delay_s.abs() / 2.0) * 1e9;
        let drift_ns = age_ns as f64 * f64::from(max_drift_ppb) / 1e9;
        let error_ns = (stated_ns.max(ERROR_MIN_NS) + drift_ns).ceil() as u64 + moment.width_ns;
        let late = age_ns > self.patience_ns(0.0);
        Ok(Measurement {
            moment,
            interval: Interval {
                earliest_ns: moment.real_ns.saturating_sub(error_ns),
                latest_ns: moment.real_ns.saturating_add(error_ns),
            },
            updated_ns: moment.boot_ns.saturating_sub(age_ns),
            max_drift_ppb: max_drift_ppb.saturating_add((unsure_ppm * 1e3).ceil() as u32),
            // It counts by how much the clock runs fast without it.
            steady_ppb: Some(-(self.frequency_ppm * 1e3) as i64),
            follows_slews: true,
            remembers: Memory::News(SAMPLES_MAX),
            status: if late { Status::FreeRunning } else { Status::Synchronized },
            leap,
            detail: format!(
                "chronyd follows {} (stratum {}), updated {:.1} s ago: correction {:+.6} ms, dispersion {:.6} ms, delay {:.6} ms, frequency known to {:.3} ppm",
                self.reference(),
                self.stratum,
                age_ns as f64 / 1e9,
                self.current_correction_s * 1e3,
                self.root_dispersion_s * 1e3,
                self.root_delay_s * 1e3,
                unsure_ppm,
            ),
        })
    }
}

impl Probe for Chrony {
    fn name(&self) -> &'static str {
        NAME
    }
    fn probe(&mut self) -> Result<Measurement, ProbeError> {
        let before = Moment::capture();
        let tracking = self.tracking()?;
        let moment = Moment::capture();
        let dated = self.news.date(tracking.update_id(), &moment, tracking.stated_age_ns(&moment));
        let mut measurement =
            tracking.measure_at_age(moment, dated.age_ns, self.max_drift_ppb)?.answered_since(&before, NAME)?;
        // chronyd composed the report somewhere between the two captures; a step in between makes it worthless.
        measurement.updated_ns = if moment.stepped_since(&before) == 0 { dated.updated_ns } else { 0 };
        if let Some(oldest_ns) = self.oldest_ns(dated.updated_ns, &moment) {
            measurement.remembers = Memory::Since(oldest_ns);
        }
        // After a burst at the start it goes on to ask much less often than it has updated so far.
        if measurement.status == Status::FreeRunning
            && dated.age_ns <= tracking.patience_ns(self.asks_every_s(dated.updated_ns))
        {
            measurement.status = Status::Synchronized;
        }
        Ok(measurement)
    }
}

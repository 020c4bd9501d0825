//! What a source answers when it is asked, and the trait by which it is asked.

use crate::moment::Moment;
use crate::tracker::Event;
use clock::{Interval, Status};
use std::fmt;

/// A leap second that the source has announced for the end of the current UTC day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Leap {
    /// None is announced.
    #[default]
    None,
    /// 23:59:60 will exist: Unix time repeats a second.
    Insert,
    /// 23:59:59 will not exist: Unix time skips a second.
    Delete,
    /// The source smears leap seconds over hours: they never show as a step.
    Smeared,
}

/// One answer of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The kernel's clocks when the answer was taken.
    pub moment: Moment,
    /// Where true time lies at `moment`.
    pub interval: Interval,
    /// Boot-time nanoseconds at which the source last heard from its reference.
    pub updated_ns: u64,
    /// How far the local clock may drift from `moment` on, parts per billion, while it is steered as the source wants it in the long run.
    pub max_drift_ppb: u32,
    /// That steering ([`Moment::steering_ppb`]), parts per billion. What the clock is steered beyond it is a slew, which ends only if
    /// somebody ends it.
    pub steady_ppb: i64,
    /// The source's word on itself.
    pub status: Status,
    /// An announced leap second.
    pub leap: Leap,
    /// What the source follows and why its bound is what it is, for people.
    pub detail: String,
}

impl Measurement {
    /// How fast the bound opens while the clock is steered by `steering_ppb`, parts per billion of the local clock's time: a slew may go
    /// on for ever, since nobody ends it once the daemon that began it was killed.
    pub fn growth_ppb(&self, steering_ppb: i64) -> u32 {
        growth_ppb(self.max_drift_ppb, steering_ppb.saturating_sub(self.steady_ppb))
    }
}

/// Up to here (parts per billion) a share of true time is the same share of the local clock's, to within a thousandth.
const NEGLIGIBLE_PPB: u32 = 1_000_000;

/// See [`Measurement::growth_ppb`].
pub(crate) fn growth_ppb(max_drift_ppb: u32, slew_ppb: i64) -> u32 {
    if slew_ppb == 0 && max_drift_ppb <= NEGLIGIBLE_PPB {
        return max_drift_ppb;
    }
    // A clock that is slow by a tenth of true time is off by a ninth of its own.
    let of_true_time = u64::from(max_drift_ppb).saturating_add(slew_ppb.unsigned_abs());
    let rest = 1_000_000_000u64.saturating_sub(of_true_time);
    match of_true_time.saturating_mul(1_000_000_000).checked_div(rest) {
        Some(of_local_time) => u32::try_from(of_local_time.saturating_add(1)).unwrap_or(u32::MAX),
        None => u32::MAX,
    }
}

/// Why a source gave no measurement.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The daemon or device cannot be reached.
    #[error("{source_name} does not answer at {place}: {error}. {advice}")]
    Unreachable {
        /// Which source.
        source_name: &'static str,
        /// Path or address.
        place: String,
        /// The system's error.
        error: std::io::Error,
        /// What to do about it.
        advice: &'static str,
    },
    /// The answer makes no sense.
    #[error("{source_name} gave an answer that cannot be used: {reason}")]
    Malformed {
        /// Which source.
        source_name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The source is there but has nothing to tell.
    #[error("{source_name} is not synchronised: {reason}")]
    Unsynchronised {
        /// Which source.
        source_name: &'static str,
        /// In its own words.
        reason: String,
    },
}

/// A source as the poller sees it: asked now and then, off the hot path, allowed to block for at most a few hundred milliseconds.
pub trait Probe: Send + fmt::Debug {
    /// The name, as `--clock` spells it.
    fn name(&self) -> &'static str;
    /// The source in use, where the probe chooses among several.
    fn source(&self) -> String {
        self.name().into()
    }
    /// What the probe itself has to tell since the last call.
    fn take_events(&mut self) -> Vec<Event> {
        Vec::new()
    }
    /// Asks the source.
    ///
    /// # Errors
    /// [`ProbeError`]; the clock then runs free on its last anchor.
    fn probe(&mut self) -> Result<Measurement, ProbeError>;
}

//! What a source answers when it is asked, and the trait by which it is asked.

use crate::anchor::{Anchor, Bare};
use crate::memory::Memory;
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
    /// Boot-time nanoseconds after which the source certainly heard from its reference last: the same number as long as it has not heard
    /// again, a greater one after that. Never counted by the system clock: a step of that would make old news look new.
    pub updated_ns: u64,
    /// How far the local clock may drift from `moment` on, parts per billion, while it is steered as the source wants it in the long run.
    pub max_drift_ppb: u32,
    /// That steering ([`Moment::steering_ppb`]), parts per billion, if the source says. What the clock is steered beyond it is a slew, which
    /// ends only if somebody ends it.
    pub steady_ppb: Option<i64>,
    /// The interval lies around the system clock, and its source tells what remains to be slewed: a slew leads the clock to true time, and
    /// the interval may move with it. Others float, whatever the system clock shows: a slew would carry them away.
    pub follows_slews: bool,
    /// How far back it goes: what it says after a step of the system clock is not believed alone while it still has samples from before.
    pub remembers: Memory,
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
        growth_ppb(self.max_drift_ppb, steering_ppb.saturating_sub(self.steady_ppb.unwrap_or(0)))
    }
    /// The lines over the bare oscillator: how much faster than it true time runs, and by how much that may be wrong, parts per billion.
    pub(crate) fn bare_rate_ppb(&self) -> (i32, u32) {
        let (rate_ppb, unsure_ppb) = match self.steady_ppb {
            Some(steady) => {
                let rate = steady.clamp(-i64::from(Bare::RATE_PPB_MAX), i64::from(Bare::RATE_PPB_MAX));
                (rate as i32, steady.abs_diff(rate))
            }
            // Part of the steering makes up for the oscillator, the rest is a slew; nobody says which.
            None => (0, self.moment.steering_ppb.map_or(u64::MAX, i64::unsigned_abs).min(OSCILLATOR_PPB_MAX)),
        };
        // One more for the rounding of the rate.
        let unsure_ppb = u32::try_from(unsure_ppb.saturating_add(1)).unwrap_or(u32::MAX);
        (rate_ppb, self.max_drift_ppb.saturating_add(unsure_ppb))
    }
    /// Where true time lies by this answer at a later moment, over the bare oscillator.
    pub(crate) fn carried_to(&self, moment: &Moment) -> Interval {
        let (rate_ppb, max_drift_ppb) = self.bare_rate_ppb();
        let mut line = Anchor {
            at: self.interval,
            bare: Some(Bare { as_of_ns: self.moment.raw_ns.max(1), rate_ppb }),
            max_drift_ppb,
            ..Anchor::UNKNOWN
        };
        line.at.latest_ns = line.at.latest_ns.saturating_add(self.moment.width_ns);
        line.interval(moment.boot_ns, moment.raw_ns)
    }
    /// Opens the interval by what may have happened while the source was asked, between `before` and the measurement's own moment: it
    /// answered somewhere in between.
    ///
    /// # Errors
    /// [`ProbeError::Slow`] where that took too long: the process was stopped, and what the answer says is old.
    pub(crate) fn answered_since(mut self, before: &Moment, source_name: &'static str) -> Result<Self, ProbeError> {
        let took_ns = self.moment.boot_ns.saturating_sub(before.boot_ns);
        if took_ns > ANSWER_NS_MAX {
            return Err(ProbeError::Slow { source_name, took_ms: took_ns / 1_000_000 });
        }
        let steering_ppb = self.moment.steering_ppb.unwrap_or(SLEW_PPB_MAX);
        let opened = u128::from(took_ns) * u128::from(self.growth_ppb(steering_ppb));
        let opened_ns = opened.div_ceil(1_000_000_000) as u64;
        self.interval.earliest_ns = self.interval.earliest_ns.saturating_sub(opened_ns);
        self.interval.latest_ns = self.interval.latest_ns.saturating_add(opened_ns);
        Ok(self)
    }
}

/// An answer that took longer (nanoseconds) is not used. Daemons answer in 50 µs; a busy machine may need a while.
pub const ANSWER_NS_MAX: u64 = 500_000_000;
/// No oscillator in use is further off (parts per billion): more cannot be made up for by the kernel's frequency alone.
const OSCILLATOR_PPB_MAX: u64 = 500_000;
/// What a slew can do at most (parts per billion): the kernel takes no coarser tick.
pub const SLEW_PPB_MAX: i64 = 100_000_000;

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
    /// The answer came too late to say how the clock does now.
    #[error("{source_name} took {took_ms} ms to answer: too long for an answer about now. Was this process stopped?")]
    Slow {
        /// Which source.
        source_name: &'static str,
        /// Milliseconds.
        took_ms: u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(took_ns: u64, steering_ppb: Option<i64>) -> Result<Measurement, ProbeError> {
        let before = Moment { boot_ns: 1_000_000_000, ..Moment::default() };
        let moment = Moment { boot_ns: before.boot_ns + took_ns, steering_ppb, ..before };
        let interval = Interval { earliest_ns: 1_000_000_000, latest_ns: 1_000_000_000 };
        let measurement = Measurement {
            moment,
            interval,
            updated_ns: 1,
            max_drift_ppb: 50_000,
            steady_ppb: Some(0),
            follows_slews: true,
            remembers: Memory::Unstepped,
            status: Status::Synchronized,
            leap: Leap::None,
            detail: String::new(),
        };
        measurement.answered_since(&before, "test")
    }

    /// The process may be stopped between question and answer: what the daemon said is as old as that.
    #[test]
    fn an_answer_opens_by_what_happened_since_the_question_and_is_not_used_for_ever() {
        let error_ns = |took_ns, steering| answer(took_ns, steering).unwrap().interval.error_ns();
        assert_eq!(error_ns(100_000_000, Some(0)), 5_000, "a tenth of a second of drift");
        assert!((9_000_000..9_100_000).contains(&error_ns(100_000_000, Some(-83_333_000))), "and of a slew");
        assert!((11_000_000..11_200_000).contains(&error_ns(100_000_000, None)), "that nobody can see");
        let late = answer(ANSWER_NS_MAX + 1, Some(0)).unwrap_err().to_string();
        assert!(late.contains("took 500 ms"), "{late}");
    }
}

//! What was visible when: for times that are relative to now.
//!
//! # Problem
//! `AS OF SYSTEM TIME '-5s'` asks for what was there five seconds ago. The physical clock less five seconds says that, unless the clock
//! was set back meanwhile: then commits of a minute ago may lie above it, for an hour perhaps. Nor do timestamps tell, since they stand
//! almost still until the clock has caught up with them.
//!
//! # Idea
//! Remember, about once a second, what was visible, by a count of the time that has passed which never goes back. A relative
//! time is the physical clock's or what was visible so long ago, whichever is greater. While the clock runs on evenly that is always the
//! clock's.
//!
//! # Invariants
//! 1. Whatever this life of the node acknowledged at least `age` and one sample ago lies at or below [`Timeline::ago`]`(age)`, as far
//!    back as there are samples.
//! 2. What `ago` gives was visible, or lies below the physical clock.
//!
//! # Caveats
//! Sources whose monotonic scale is the system clock's (`same-host`, `static`) pass no time where that is set back. A restart
//! forgets, and so does time: what is older than the first sample counts back from what was visible then, by the clock. A clock that was
//! set forward and back again leaves a time that passed too fast: for so long, "ago" is nearer than was asked for.

use clock::{Reading, Timestamp};
use std::collections::VecDeque;

/// Samples are at least this far apart, nanoseconds.
const EVERY_NS: u64 = 500_000_000;
/// So many are kept: 17 minutes at least, which is more than the default retention of old versions.
const SAMPLES_MAX: usize = 2048;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    passed_ns: u64,
    read_ns: Option<u64>,
    samples: VecDeque<(u64, Timestamp)>,
}

impl Timeline {
    /// How much time has passed at a reading.
    fn passed_ns(&self, now: &Reading) -> u64 {
        self.passed_ns + now.now_ns.saturating_sub(self.read_ns.unwrap_or(now.now_ns))
    }

    /// This is visible now.
    pub fn note(&mut self, now: &Reading, visible: Timestamp) {
        self.passed_ns = self.passed_ns(now);
        self.read_ns = Some(now.now_ns);
        if self.samples.back().is_some_and(|(at, _)| self.passed_ns - at < EVERY_NS) {
            return;
        }
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back((self.passed_ns, visible));
    }

    /// What was visible `age_us` ago, at least.
    pub fn ago(&self, now: &Reading, age_us: u64) -> Timestamp {
        let (passed_ns, age_ns) = (self.passed_ns(now), age_us.saturating_mul(1000));
        let known = self.samples.partition_point(|(at, _)| passed_ns - at >= age_ns);
        match (known.checked_sub(1).and_then(|at| self.samples.get(at)), self.samples.front()) {
            (Some((_, visible)), _) => *visible,
            (None, Some((at, visible))) => {
                let before_us = (age_ns - (passed_ns - at)) / 1000;
                Timestamp::new(visible.physical_us().saturating_sub(before_us), 0)
            }
            (None, None) => Timestamp::MIN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const T: u64 = 1_800_000_000 * S;

    fn ts(n: u64) -> Timestamp {
        Timestamp::new(T / 1000 + n, 0)
    }

    #[test]
    fn what_was_visible_is_found_whatever_the_clock_shows() {
        let mut line = Timeline::default();
        // The clock is set back by an hour after three seconds.
        let clock = |n: u64| Reading::exact(T + n * S - if n < 3 { 0 } else { 3600 * S });
        for n in 0..10 {
            line.note(&clock(n), ts(n));
        }
        // The second in which the clock was set back is not counted.
        assert_eq!(line.ago(&clock(9), 0), ts(9));
        assert_eq!(line.ago(&clock(9), 4_000_000), ts(5));
        assert_eq!(line.ago(&clock(9), 4_500_000), ts(4));
        assert_eq!(line.ago(&clock(9), 7_000_000), ts(1));
        assert_eq!(line.ago(&clock(9), 10_000_000), Timestamp::new(T / 1000 - 2_000_000, 0), "before the first sample");
        assert_eq!(Timeline::default().ago(&clock(9), 5), Timestamp::MIN);
    }

    #[test]
    fn samples_are_bounded_and_spaced() {
        let mut line = Timeline::default();
        for n in 0..3 * SAMPLES_MAX as u64 {
            line.note(&Reading::exact(T + n * EVERY_NS / 2), ts(n));
        }
        assert_eq!(line.samples.len(), SAMPLES_MAX);
        assert!(line.samples.iter().zip(line.samples.iter().skip(1)).all(|(a, b)| b.0 - a.0 == EVERY_NS));
    }
}

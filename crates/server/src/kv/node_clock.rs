//! The node's clock: the source, the ladder over it, and what stands in while nothing is known.
//!
//! The timer steps the ladder at every tick and logs each change with its numbers; a `strict` transaction steps it too, so that it is
//! judged by the clock of its own moment. No change of the clock ends the process.
//!
//! **Caveat.** While the source knows nothing at all, a node that is alone uses the system clock, so that `token`, `none` and the past
//! go on: rule 1 protects readers of other nodes, and there are none. The status stays `Unknown`, so `strict` is refused.

use clock::{Interval, Ladder, LadderLimits, Level, Reading, Status};
use clocksource::ClockSource;
use node::Consistency;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A source and the ladder over it.
pub(crate) struct NodeClock {
    source: Arc<dyn ClockSource>,
    alone: bool,
    ladder: Mutex<Ladder>,
}

impl NodeClock {
    pub fn new(source: Arc<dyn ClockSource>, alone: bool, limits: LadderLimits) -> Self {
        let clock = NodeClock { source, alone, ladder: Mutex::new(Ladder::new(limits)) };
        clock.watch(&clock.read());
        let (level, reason) = clock.level();
        if level == Level::Waiting {
            // The start gate: who wants `strict` waits for this.
            let limit_ms = limits.hybrid_error_ns / 1_000_000;
            let fields: [(&str, &dyn std::fmt::Display); 3] =
                [("reason", &reason), ("limit_ms", &limit_ms), ("source", &clock.source())];
            crate::log::warning("clock_waits_for_a_bound", &fields);
        }
        clock
    }
    /// The reading that the node goes by.
    #[inline]
    pub fn read(&self) -> Reading {
        let reading = self.source.read();
        if reading.status == Status::Unknown && self.alone && reading.interval.latest_ns == u64::MAX {
            return stand_in(reading);
        }
        reading
    }
    /// Half the width of the bound, nanoseconds, if the source gives one.
    pub fn error_ns(&self) -> Option<u64> {
        let reading = self.source.read();
        (reading.status != Status::Unknown).then(|| reading.interval.error_ns())
    }
    /// The source in use.
    pub fn source(&self) -> String {
        self.source.source()
    }
    /// Steps the ladder; a change goes to the log.
    pub fn watch(&self, now: &Reading) {
        let mut ladder = self.ladder.lock();
        if let Some(change) = ladder.step(now) {
            let fields: [(&str, &dyn std::fmt::Display); 4] = [
                ("from", &change.from),
                ("to", &change.to),
                ("reason", &change.reason),
                ("source", &self.source.source()),
            ];
            match change.to {
                Level::Synchronized => crate::log::info("clock_level", &fields),
                _ => crate::log::warning("clock_level", &fields),
            }
        }
    }
    /// Whether a transaction of this consistency may begin.
    ///
    /// # Errors
    /// What the clock lacks, in numbers.
    pub fn admit(&self, now: &Reading, wanted: Consistency) -> Result<(), String> {
        let needs_bound = match wanted {
            Consistency::Strict => true,
            Consistency::Hybrid | Consistency::Auto => !self.alone,
            Consistency::Token | Consistency::None => false,
        };
        if !needs_bound {
            return Ok(());
        }
        self.watch(now);
        self.ladder.lock().admit().map_err(|refusal| refusal.to_string())
    }
    /// Where the ladder stands, and why.
    pub fn level(&self) -> (Level, String) {
        let ladder = self.ladder.lock();
        (ladder.level(), ladder.reason().to_string())
    }
}

#[cold]
fn stand_in(mut reading: Reading) -> Reading {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_ns = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX);
    reading.interval = Interval { earliest_ns: unix_ns, latest_ns: unix_ns };
    reading
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::Timestamp;
    use clocksource::Anchor;

    /// A source whose reading is set by the test.
    struct Set(Mutex<Reading>);

    impl ClockSource for Set {
        fn read(&self) -> Reading {
            *self.0.lock()
        }
        fn name(&self) -> String {
            "set".into()
        }
    }

    #[test]
    fn strict_waits_for_the_bound_and_is_refused_when_it_is_lost() {
        let source = Arc::new(Set(Mutex::new(Anchor::UNKNOWN.read(5))));
        let clock = NodeClock::new(source.clone(), true, LadderLimits::default());
        let admit = |wanted| clock.admit(&clock.read(), wanted);
        let set = |error_ms: u64, status| {
            let mut r = Reading::with_error(1_800_000_000_000_000_000, error_ms * 1_000_000);
            r.status = status;
            *source.0.lock() = r;
        };
        // Nothing is known: the system clock stands in, and strict waits at the gate.
        assert!(clock.read().interval.earliest_ns > 1_700_000_000_000_000_000 && clock.read().trusted().is_none());
        assert!(admit(Consistency::Strict).unwrap_err().contains("the clock source is unknown"));
        for served in [Consistency::Auto, Consistency::Hybrid, Consistency::Token, Consistency::None] {
            assert_eq!(admit(served), Ok(()), "alone, {served:?} needs no bound");
        }
        set(900, Status::Synchronized);
        assert!(admit(Consistency::Strict).unwrap_err().contains("900.000 ms is beyond the limit of 500.000 ms"));
        set(1, Status::Synchronized);
        assert_eq!((admit(Consistency::Strict), clock.level().0), (Ok(()), Level::Synchronized));
        set(20, Status::FreeRunning);
        assert_eq!((admit(Consistency::Strict), clock.level().0), (Ok(()), Level::Degraded));
        set(600, Status::FreeRunning);
        assert!(admit(Consistency::Strict).is_err());
        assert_eq!(clock.level().0, Level::TooWide);
        set(1, Status::Disrupted);
        assert!(admit(Consistency::Strict).unwrap_err().contains("disrupted"));
        set(1, Status::Synchronized);
        assert_eq!(admit(Consistency::Strict), Ok(()));
    }

    #[test]
    fn with_other_nodes_hybrid_needs_the_bound_too_and_nothing_stands_in() {
        let source = Arc::new(Set(Mutex::new(Anchor::UNKNOWN.read(5))));
        let clock = NodeClock::new(source, false, LadderLimits::default());
        assert!(clock.admit(&clock.read(), Consistency::Hybrid).is_err());
        assert!(clock.admit(&clock.read(), Consistency::Token).is_ok());
        assert!(clock.read().interval.latest() == Timestamp::MAX);
    }
}

//! The node's clock: the source, and what stands in while nothing is known.
//!
//! What the clock allows is judged in the node core (`node`, the ladder), by the readings that this hands it; the changes come
//! back with each tick and go to the log with their numbers. No change of the clock ends the process.
//!
//! **Caveat.** While the source knows nothing at all, a node that is alone uses the system clock, so that `token`, `none` and the past
//! go on: rule 1 protects readers of other nodes, and there are none. The status stays `Unknown`, so `strict` is refused.

use clock::{Change, Level, Reading, Status};
use clocksource::ClockSource;
use node::NodeOptions;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The source of a node's readings.
pub(crate) struct NodeClock {
    source: Arc<dyn ClockSource>,
    alone: bool,
}

impl NodeClock {
    pub fn new(source: Arc<dyn ClockSource>, alone: bool) -> Self {
        NodeClock { source, alone }
    }
    /// The reading that the node goes by.
    #[inline]
    pub fn read(&self) -> Reading {
        let reading = self.source.read();
        if reading.status == Status::Unknown && self.alone { stand_in(reading) } else { reading }
    }
    /// What to show as the time of day: the system clock where nothing at all is known. Nothing is decided by it.
    pub fn shown(&self, reading: Reading) -> Reading {
        if reading.status == Status::Unknown { stand_in(reading) } else { reading }
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
    /// What the source follows, or why it gives nothing.
    pub fn detail(&self) -> String {
        self.source.detail()
    }
    /// The start gate: says what `strict` waits for, with its numbers.
    pub fn log_gate(&self, (level, reason): (Level, clock::Reason), options: &NodeOptions) {
        if level == Level::Waiting {
            let limit_ms = options.ladder.hybrid_error_ns / 1_000_000;
            let fields: [(&str, &dyn std::fmt::Display); 3] =
                [("reason", &reason), ("limit_ms", &limit_ms), ("source", &self.source())];
            crate::log::warning("clock_waits_for_a_bound", &fields);
        }
    }
    /// Changes of the level, with their numbers.
    pub fn log_changes(&self, changes: &[Change]) {
        for change in changes {
            let fields: [(&str, &dyn std::fmt::Display); 4] =
                [("from", &change.from), ("to", &change.to), ("reason", &change.reason), ("source", &self.source())];
            match change.is_recovery() {
                true => crate::log::info("clock_level", &fields),
                false => crate::log::warning("clock_level", &fields),
            }
        }
    }
}

#[cold]
fn stand_in(reading: Reading) -> Reading {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    reading.or_stand_in(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clock::Timestamp;
    use clocksource::Anchor;

    /// A source that knows nothing.
    struct Unknown;

    impl ClockSource for Unknown {
        fn read(&self) -> Reading {
            Anchor::UNKNOWN.read(5, || 0, || 0, |_| false)
        }
        fn name(&self) -> String {
            "unknown".into()
        }
    }

    #[test]
    fn the_system_clock_stands_in_for_a_node_that_is_alone() {
        let now = NodeClock::new(Arc::new(Unknown), true).read();
        assert!(now.interval.earliest_ns > 1_700_000_000_000_000_000 && now.trusted().is_none());
        let now = NodeClock::new(Arc::new(Unknown), false).read();
        assert!(now.interval.latest() == Timestamp::MAX);
    }
}

use crate::{Interval, Timestamp};
use core::sync::atomic::{AtomicU64, Ordering};

/// A received timestamp lies beyond `latest + tolerance`: somebody's bound is broken. It was refused; the clock is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "timestamp {timestamp} is beyond {limit}, the latest that true time may be plus the tolerance: a clock bound is broken, refuse the message and check the clocks of both nodes"
)]
pub struct FutureTimestamp {
    /// What was received.
    pub timestamp: Timestamp,
    /// `latest + tolerance`.
    pub limit: Timestamp,
}

/// The hybrid clock: one atomic word, lock-free, strictly increasing (design §2; 002 algorithm 2).
#[derive(Debug, Default)]
pub struct HybridClock {
    last: AtomicU64,
}

impl HybridClock {
    /// A clock whose every timestamp lies above `last`.
    pub const fn new(last: Timestamp) -> Self {
        HybridClock { last: AtomicU64::new(last.as_u64()) }
    }
    /// The greatest timestamp given out or observed.
    pub fn last(&self) -> Timestamp {
        Timestamp::from_u64(self.last.load(Ordering::SeqCst))
    }
    /// The next timestamp: `max(last + 1, earliest, floor + 1)`.
    pub fn tick(&self, now: Interval, floor: Timestamp) -> Timestamp {
        let base = now.earliest().as_u64().max(floor.next().as_u64());
        let prev =
            self.last.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(base.max(last.saturating_add(1))));
        let prev = match prev {
            Ok(p) | Err(p) => p,
        };
        Timestamp::from_u64(base.max(prev.saturating_add(1)))
    }
    /// Ratchets: every later timestamp lies above `ts`. For timestamps of this node's own making.
    pub fn ratchet(&self, ts: Timestamp) {
        self.last.fetch_max(ts.as_u64(), Ordering::SeqCst);
    }
    /// Ratchets on a received timestamp.
    ///
    /// # Errors
    /// [`FutureTimestamp`] where `ts` lies beyond `latest + tolerance_us`.
    pub fn observe(&self, ts: Timestamp, now: Interval, tolerance_us: u64) -> Result<(), FutureTimestamp> {
        let limit = Timestamp::new(now.latest().physical_us().saturating_add(tolerance_us), 0xfff);
        if ts > limit {
            return Err(FutureTimestamp { timestamp: ts, limit });
        }
        self.ratchet(ts);
        Ok(())
    }
}

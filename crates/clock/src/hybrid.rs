//! The hybrid clock: a Lamport clock that is a good physical clock.
//!
//! **Problem.** Physical clocks of two machines disagree, so a cause can carry a later physical time than its effect.
//! Logical clocks order cause and effect but say nothing about time.
//!
//! **Idea.** Algorithm 2 of 002 (HybridTime): take the physical clock where it is ahead of everything seen (lines 10–14), otherwise
//! count on from the last timestamp (lines 16–18); a received timestamp that is ahead is adopted (`Update`, lines 22–29). With the
//! packed [`Timestamp`] both procedures become arithmetic on one integer: `Now` is `max(last + 1, pack(physical))`, `Update` is
//! `last = max(last, in)`. One atomic word holds the whole state.
//!
//! **What differs from the paper.**
//! * The physical part is `earliest`, not the middle of the interval, so an ordinary timestamp is never in the future of true
//!   time, and rule 1 (design §2) rarely has to wait.
//! * Line 10 says `cur_physical >= last_physical` and then resets the logical part to 0. Two calls within one tick of the
//!   physical clock would get the same timestamp. We take the greater of the two, as the paper's text says.
//! * `Update` trusts any input. [`HybridClock::observe`] refuses one beyond `latest + tolerance`: a clock that is far off must
//!   not drag the others with it (yugabyte#10614).
//!
//! **Invariants.**
//! 1. Two ticks never return the same timestamp, and a tick that starts after another has returned returns more.
//! 2. A tick returns `pack(earliest)` unless something at or above it was ticked, observed or asked for as a floor before.
//! 3. A refused timestamp leaves the clock as it was.
//!
//! **Caveats.** When the bound widens, `earliest` moves back and ticks count on from the last one: they stay ahead of
//! `earliest` for a while and rule 1 makes their commits wait. At [`Timestamp::MAX`] (year 2112) ticks stop increasing. A
//! restarted node must start from a timestamp at or above every one it gave out (its log's last one).

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
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            let next = base.max(last.saturating_add(1));
            match self.last.compare_exchange_weak(last, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Timestamp::from_u64(next),
                Err(seen) => last = seen,
            }
        }
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
        let limit = Timestamp::new(now.latest().physical_us().saturating_add(tolerance_us), Timestamp::LOGICAL_MAX);
        if ts > limit {
            return Err(FutureTimestamp { timestamp: ts, limit });
        }
        self.ratchet(ts);
        Ok(())
    }
}

//! What must not be left for ever once nobody asks any more.

use crate::verdict::{Anomaly, Verdict};

/// What a replica still holds at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Locks of transactions that have ended.
    pub locks: u64,
    /// Prepares without an outcome.
    pub prepares: u64,
    /// Outcomes that every participant knows, or that no late message can ask for any more.
    pub outcomes: u64,
}

/// Judges what `who` holds.
pub fn judge(who: &str, held: Held, verdict: &mut Verdict) {
    for (count, what) in [(held.locks, "locks"), (held.prepares, "prepares"), (held.outcomes, "outcomes")] {
        if count > 0 {
            verdict.add(Anomaly::LeftOver, format!("{who} still holds {count} {what} at rest"));
        }
    }
}

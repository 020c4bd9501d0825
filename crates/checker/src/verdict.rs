//! What was found wrong.

use core::fmt;

/// A kind of wrong, with the names of Adya's thesis where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// Two transactions wrote two keys in opposite orders (dirty write).
    G0,
    /// A committed transaction read from an aborted one.
    G1a,
    /// A read saw a value that its writer replaced before it committed.
    G1b,
    /// A cycle of writes and reads-from.
    G1c,
    /// A cycle with exactly one anti-dependency (read skew, lost update).
    GSingle,
    /// A cycle with several anti-dependencies (write skew), all of serializable transactions.
    G2,
    /// A value that nobody wrote, or a key that holds another key's value.
    Garbage,
    /// A read is not the newest version at its snapshot: the snapshot is torn or changed.
    TornSnapshot,
    /// A transaction read two snapshots where it was promised one.
    TwoSnapshots,
    /// Somebody committed a key between a transaction's snapshot and its commit.
    LostUpdate,
    /// Acknowledged before this one began, and not seen.
    StaleRead,
    /// Acknowledged before this one began, and ordered after it.
    RealTime,
    /// A session saw less than it had seen or written before.
    Session,
    /// The bank's total changed.
    Bank,
    /// Acknowledged, and not stored.
    LostWrite,
    /// Not committed, and stored; or stored in part.
    HalfApplied,
    /// Two versions of one key with one timestamp.
    SameTimestamp,
    /// No order of the operations on a key explains what they found.
    Unlinearizable,
    /// Two leaders of a group may use the same timestamps.
    SharedLease,
    /// Replicas of a group that applied the same log hold different states.
    Diverged,
    /// A version was shown before its time.
    ShownEarly,
    /// A command took effect twice.
    AppliedTwice,
    /// A lock, a prepare or an outcome is left although nobody asks any more.
    LeftOver,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Anomaly::GSingle => f.write_str("G-single"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// All that was found wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Kinds, and a sentence for each case.
    pub found: Vec<(Anomaly, String)>,
}

impl Verdict {
    /// Adds a case.
    pub fn add(&mut self, kind: Anomaly, what: String) {
        self.found.push((kind, what));
    }
    /// Whether nothing was found.
    pub fn is_good(&self) -> bool {
        self.found.is_empty()
    }
    /// Whether a kind was found.
    pub fn has(&self, kind: Anomaly) -> bool {
        self.found.iter().any(|(k, _)| *k == kind)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        for (kind, what) in self.found.iter().take(SHOWN) {
            writeln!(f, "{kind}: {what}")?;
        }
        match self.found.len().checked_sub(SHOWN) {
            Some(more @ 1..) => writeln!(f, "and {more} more"),
            _ => Ok(()),
        }
    }
}

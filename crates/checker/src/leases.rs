//! Leases: grants of timestamps that no two leaders of a group share, whatever their clocks do.

use crate::verdict::{Anomaly, Verdict};
use std::collections::BTreeMap;

/// What a leader was granted, and what it used of it.
#[derive(Clone, Debug)]
struct Grant {
    who: u64,
    start: u64,
    end: u64,
    /// The greatest timestamp that was read at or stamped.
    used: u64,
    /// It was cut short on purpose: only what was used counts.
    released: bool,
}

/// All leases of a run, by group and term.
#[derive(Clone, Debug, Default)]
pub struct Leases {
    grants: BTreeMap<u64, BTreeMap<u64, Grant>>,
}

impl Leases {
    /// How many there were.
    pub fn count(&self) -> usize {
        self.grants.values().map(BTreeMap::len).sum()
    }

    /// `who` leads a group in a term, with a lease above `start` up to `end`, and reads or stamps at `used` (0: nothing).
    pub fn note(
        &mut self,
        (group, term, who): (u64, u64, u64),
        (start, end): (u64, u64),
        used: u64,
        verdict: &mut Verdict,
    ) {
        let grants = self.grants.entry(group).or_default();
        let grant = grants.entry(term).or_insert_with(|| Grant { who, start, end, used: start, released: false });
        if (grant.who, grant.start) != (who, start) {
            let what = format!("group {group}, term {term}: {who} has a lease from {start}, and there was {grant:?}");
            verdict.add(Anomaly::SharedLease, what);
        }
        grant.end = grant.end.max(end);
        if used > end {
            verdict.add(Anomaly::SharedLease, format!("group {group}, term {term}: {who} serves {used}, beyond {end}"));
        }
        grant.used = grant.used.max(used);
        let this = grant.clone();
        for (other, that) in grants.iter().filter(|(other, _)| **other != term) {
            let (early, late) = if *other < term { (that, &this) } else { (&this, that) };
            let end = if early.released { early.used } else { early.end.max(early.used) };
            if end > late.start {
                let what = format!("group {group}: terms {other} and {term} share timestamps: {early:?}, {late:?}");
                verdict.add(Anomaly::SharedLease, what);
            }
        }
    }

    /// The leader of a term hands over: its lease ends with what it has used.
    pub fn released(&mut self, group: u64, term: u64) {
        if let Some(grant) = self.grants.entry(group).or_default().get_mut(&term) {
            grant.released = true;
        }
    }
}

//! Replicas of a group that applied the same prefix of its log hold the same state.

use crate::verdict::{Anomaly, Verdict};
use std::collections::BTreeMap;

/// What the first replica that came to a place had there.
#[derive(Clone, Copy, Debug)]
struct First {
    who: u64,
    checksum: u64,
}

/// Checksums of states, by group and applied place.
#[derive(Clone, Debug, Default)]
pub struct Replicas {
    first: BTreeMap<(u64, u64), First>,
}

impl Replicas {
    /// `who` has applied a group's log up to `index`, and its state has this checksum.
    pub fn note(&mut self, group: u64, index: u64, who: u64, checksum: u64, verdict: &mut Verdict) {
        let first = *self.first.entry((group, index)).or_insert(First { who, checksum });
        if first.checksum != checksum {
            let what =
                format!("group {group} at {index}: {who} holds {checksum:016x}, {} {:016x}", first.who, first.checksum);
            verdict.add(Anomaly::Diverged, what);
        }
    }

    /// How many places were compared.
    pub fn count(&self) -> usize {
        self.first.len()
    }
}

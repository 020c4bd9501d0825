//! What is stored after all crashes, against what clients were told.

use crate::history::{Action, History, Key, Outcome};
use crate::verdict::{Anomaly, Verdict};
use std::collections::BTreeMap;

/// What a database holds at the end.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// Per key: timestamps and identities of the versions that are still there.
    pub versions: BTreeMap<Key, Vec<(u64, u64)>>,
    /// Below this, versions that a newer one hides may have been collected.
    pub collected: u64,
    /// The same of keys that are kept for another time.
    pub collected_apart: BTreeMap<Key, u64>,
    /// Identities and timestamps that were stored at some time, and may be collected since: what unknown outcomes are
    /// settled by.
    pub earlier: BTreeMap<u64, u64>,
}

impl Stored {
    fn find(&self, key: Key, id: u64) -> Option<u64> {
        self.versions.get(&key)?.iter().find(|(_, stored)| *stored == id).map(|(at, _)| *at)
    }

    /// Whether a version of this time may be gone rightly.
    fn may_be_collected(&self, key: Key, at: u64) -> bool {
        let collected = self.collected_of(key);
        at <= collected && self.versions.get(&key).is_some_and(|v| v.iter().any(|(t, _)| *t > at && *t <= collected))
    }

    /// Below this, versions of a key that a newer one hides may have been collected.
    pub fn collected_of(&self, key: Key) -> u64 {
        self.collected_apart.get(&key).copied().unwrap_or(self.collected)
    }
}

/// Checks acknowledged and aborted transactions, and gives those of unknown outcome the one that they had.
pub fn settle(history: &mut History, stored: &Stored, verdict: &mut Verdict) {
    for txn in &mut history.txns {
        let mut last: BTreeMap<Key, u64> = BTreeMap::new();
        for op in &txn.ops {
            if let Action::Write { key, value } = op.action {
                last.insert(key, value.id);
            }
        }
        let found: Vec<Option<u64>> = last.iter().map(|(key, id)| stored.find(*key, *id)).collect();
        let earlier = |id: &u64| stored.earlier.get(id).copied();
        let at = found.iter().flatten().next().copied().or_else(|| last.values().find_map(earlier));
        match txn.outcome {
            Outcome::Committed => {
                for ((key, _), found) in last.iter().zip(&found) {
                    if *found != Some(txn.position) && !stored.may_be_collected(*key, txn.position) {
                        let what = format!(
                            "transaction {} was acknowledged at {}, and its write of key {key} is stored at {found:?}",
                            txn.id, txn.position
                        );
                        verdict.add(Anomaly::LostWrite, what);
                    }
                }
            }
            Outcome::Aborted => {
                if let Some(at) = at {
                    verdict.add(
                        Anomaly::HalfApplied,
                        format!("transaction {} was refused, and is stored at {at}", txn.id),
                    );
                }
            }
            Outcome::Unknown => match at {
                Some(at) => {
                    let missing = last.keys().zip(&found).find(|(key, found)| {
                        **found != Some(at) && !(found.is_none() && stored.may_be_collected(**key, at))
                    });
                    if let Some((key, found)) = missing {
                        let what = format!("transaction {} is stored at {at}, but key {key} at {found:?}", txn.id);
                        verdict.add(Anomaly::HalfApplied, what);
                    }
                    txn.outcome = Outcome::Committed;
                    txn.position = at;
                }
                None => txn.outcome = Outcome::Aborted,
            },
        }
    }
}

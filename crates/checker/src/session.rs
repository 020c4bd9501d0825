//! Sessions: what a session saw or wrote it sees ever after, once it has learned that the transaction committed: its token comes with
//! that. Where the answer never came (a crash), the outcome was settled by what is stored, and the session does not know.

use crate::history::{Action, Key, Recency};
use crate::index::{Index, Place};
use crate::verdict::{Anomaly, Verdict};
use std::collections::BTreeMap;

/// Judges sessions that carry their token. What `Any` reads is neither judged nor remembered, since it moves no token; what it
/// writes is. Transactions of a session stand in the history in the order in which it ran them.
pub fn judge(index: &Index<'_>, verdict: &mut Verdict) {
    let mut known: BTreeMap<(u32, Key), (Place, u64)> = BTreeMap::new();
    for (_, txn) in index.committed() {
        let seen = index.seen(txn);
        let learned = txn.ended != u64::MAX;
        for read in &seen {
            let Some(place) = index.place(read.found) else { continue };
            let last = known.entry((txn.session, read.key)).or_default();
            if txn.recency == Recency::Any {
                continue;
            }
            if place < last.0 {
                let what = format!(
                    "session {} saw less of key {} in transaction {} than in transaction {}",
                    txn.session, read.key, txn.id, last.1
                );
                verdict.add(Anomaly::Session, what);
            }
            if learned {
                *last = (*last).max((place, txn.id));
            }
        }
        for op in &txn.ops {
            if let Action::Write { key, value } = op.action
                && learned
                && let Some(place) = index.place(Some(value))
            {
                let last = known.entry((txn.session, key)).or_default();
                *last = (*last).max((place, txn.id));
            }
        }
    }
}

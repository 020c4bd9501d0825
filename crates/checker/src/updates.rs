//! Lost updates: first committer wins, for transactions with one snapshot.

use crate::history::{Action, Isolation, Txn};
use crate::index::Index;
use crate::verdict::{Anomaly, Verdict};

/// Judges the writes of snapshot and serializable transactions: nobody else committed a key that they read and wrote between
/// what they read and their commit.
pub fn judge(index: &Index<'_>, verdict: &mut Verdict) {
    for (key, chain) in index.chains() {
        for pair in chain.windows(2).filter(|pair| pair[0].position == pair[1].position) {
            let (a, b) = (index.txn(pair[0].txn).id, index.txn(pair[1].txn).id);
            let what = format!("transactions {a} and {b} both have a version of key {key} at {}", pair[0].position);
            verdict.add(Anomaly::SameTimestamp, what);
        }
    }
    for (at, txn) in index.committed() {
        if txn.isolation == Isolation::ReadCommitted {
            continue;
        }
        for read in index.seen(txn) {
            let Some(place) = index.place(read.found) else { continue };
            if !wrote(txn, read.key) {
                continue;
            }
            if let Some(next) = index.next(read.key, place).filter(|next| next.txn != at) {
                let what = format!(
                    "transaction {} updated key {} although transaction {} had replaced what it read",
                    txn.id,
                    read.key,
                    index.txn(next.txn).id
                );
                verdict.add(Anomaly::LostUpdate, what);
            }
        }
    }
}

fn wrote(txn: &Txn, wanted: u64) -> bool {
    txn.ops.iter().any(|op| matches!(op.action, Action::Write { key, .. } if key == wanted))
}

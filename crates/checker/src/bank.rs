//! The bank: transfers move money and make none.

use crate::history::{Action, Key};
use crate::index::Index;
use crate::verdict::{Anomaly, Verdict};
use std::ops::Range;

/// Accounts, and what they hold together once they are filled.
#[derive(Clone, Debug)]
pub struct Bank {
    /// Keys of the accounts.
    pub accounts: Range<Key>,
    /// The total.
    pub total: i64,
}

impl Bank {
    /// Judges every committed transaction that looked at all accounts before it wrote: at any isolation level one statement
    /// sees one snapshot.
    pub fn judge(&self, index: &Index<'_>, verdict: &mut Verdict) {
        for (_, txn) in index.committed() {
            let reads = txn.ops.iter().take_while(|op| !matches!(op.action, Action::Write { .. }));
            for op in reads {
                let Action::Scan { from, to, found, .. } = &op.action else { continue };
                if *from > self.accounts.start || *to < self.accounts.end {
                    continue;
                }
                let rows: Vec<i64> =
                    found.iter().filter(|(k, _)| self.accounts.contains(k)).map(|(_, v)| v.amount).collect();
                let total: i64 = rows.iter().sum();
                if total != self.total && !rows.is_empty() {
                    let what =
                        format!("transaction {} found {total} in {} accounts, not {}", txn.id, rows.len(), self.total);
                    verdict.add(Anomaly::Bank, what);
                }
            }
        }
    }
}

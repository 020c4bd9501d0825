//! Recency, against true time. Only where clock bounds held: a bound that lies costs recency, never isolation.

use crate::history::{Isolation, Recency, Txn};
use crate::index::{Index, Place};
use crate::verdict::{Anomaly, Verdict};

/// Judges strict and hybrid transactions.
pub fn judge(index: &Index<'_>, verdict: &mut Verdict) {
    order(index, verdict);
    for (_, txn) in index.committed() {
        if matches!(txn.recency, Recency::Strict | Recency::Hybrid) {
            fresh(index, txn, verdict);
        }
    }
}

/// Each read sees what was acknowledged, for its key, before the transaction began.
fn fresh(index: &Index<'_>, txn: &Txn, verdict: &mut Verdict) {
    for read in index.seen(txn) {
        let Some(place) = index.place(read.found) else { continue };
        // Each statement of READ COMMITTED is a present of its own.
        let since = if txn.isolation == Isolation::ReadCommitted { read.began } else { txn.began };
        let acknowledged = |at: Place| index.txn(index.versions(read.key)[at].txn).ended < since;
        let newer = (place..index.versions(read.key).len()).rev().find(|at| acknowledged(*at));
        if let Some(at) = newer {
            let writer = index.txn(index.versions(read.key)[at].txn);
            let what = format!(
                "transaction {} ({:?}, began {}) missed key {} of transaction {}, acknowledged at {}",
                txn.id, txn.recency, txn.began, read.key, writer.id, writer.ended
            );
            verdict.add(Anomaly::StaleRead, what);
        }
    }
}

/// Strict transactions stand after everything that was acknowledged before they began, on any key.
fn order(index: &Index<'_>, verdict: &mut Verdict) {
    let mut ends: Vec<&Txn> = index.committed().map(|(_, t)| t).filter(|t| t.writes()).collect();
    ends.sort_by_key(|t| t.ended);
    let mut begins: Vec<&Txn> = index.committed().map(|(_, t)| t).filter(|t| t.recency == Recency::Strict).collect();
    begins.sort_by_key(|t| t.began);
    let mut ended = ends.into_iter().peekable();
    let mut highest: Option<&Txn> = None;
    for txn in begins {
        while let Some(before) = ended.next_if(|t| t.ended < txn.began) {
            highest = highest.filter(|h| h.position >= before.position).or(Some(before));
        }
        if let Some(before) =
            highest.filter(|h| h.position > txn.position || (txn.writes() && h.position == txn.position))
        {
            let what = format!(
                "transaction {} (strict) stands at {}, although transaction {} at {} was acknowledged before it began",
                txn.id, txn.position, before.id, before.position
            );
            verdict.add(Anomaly::RealTime, what);
        }
    }
}

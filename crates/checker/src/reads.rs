//! Reads: of what was written, whole, and at the snapshot that was promised.
//!
//! A read at snapshot `s` must find the newest committed version at or below `s`, whenever it runs: a version that is
//! acknowledged below `s` after somebody read at `s` is the mark of a clock that went wrong or of a reader that did not
//! wait for a write in flight.

use crate::history::{Action, Outcome, Value};
use crate::index::{Index, Seen};
use crate::verdict::{Anomaly, Verdict};

/// Judges every read of committed transactions.
pub fn judge(index: &Index<'_>, verdict: &mut Verdict) {
    for (at, txn) in index.committed() {
        let seen = index.seen(txn);
        for read in &seen {
            provenance(index, at, read, verdict);
            snapshot(index, at, read, verdict);
        }
        let mut snapshots: Vec<u64> = seen.iter().filter_map(|s| s.snapshot).collect();
        snapshots.sort_unstable();
        snapshots.dedup();
        own_writes(index, at, verdict);
        let writes = txn.writes();
        // A snapshot may move up (a refresh) while nothing read so far changed; a reader that never writes keeps reads valid too.
        if Index::one_snapshot(txn) && snapshots.len() > 1 {
            let last = snapshots[snapshots.len() - 1];
            if let Some(read) = seen.iter().find(|s| stale_at(index, s, last)) {
                let what = format!(
                    "transaction {} ({}) read key {} at {:?} and went on at {last}, where it had changed",
                    txn.id,
                    if writes { "writer" } else { "reader" },
                    read.key,
                    read.snapshot
                );
                verdict.add(Anomaly::TwoSnapshots, what);
            }
        }
    }
}

/// Whether what a read found is not the newest version at `snapshot`.
fn stale_at(index: &Index<'_>, seen: &Seen, snapshot: u64) -> bool {
    index.place(seen.found) != Some(index.versions(seen.key).partition_point(|v| v.position <= snapshot))
}

fn provenance(index: &Index<'_>, at: usize, read: &Seen, verdict: &mut Verdict) {
    let Some(value) = read.found else { return };
    let reader = index.txn(at).id;
    let Some(written) = index.written.get(&value.id) else {
        verdict
            .add(Anomaly::Garbage, format!("transaction {reader} read {value:?} at key {}: nobody wrote it", read.key));
        return;
    };
    let writer = index.txn(written.txn);
    if written.key != read.key {
        let what =
            format!("transaction {reader} read {value:?} at key {}: it was written to {}", read.key, written.key);
        verdict.add(Anomaly::Garbage, what);
    } else if writer.outcome != Outcome::Committed {
        let what = format!("transaction {reader} read key {} from transaction {}, which aborted", read.key, writer.id);
        verdict.add(Anomaly::G1a, what);
    } else if !written.last {
        let what =
            format!("transaction {reader} read a value of key {} that transaction {} replaced", read.key, writer.id);
        verdict.add(Anomaly::G1b, what);
    }
}

fn snapshot(index: &Index<'_>, at: usize, read: &Seen, verdict: &mut Verdict) {
    let Some(snapshot) = read.snapshot else { return };
    let Some(place) = index.place(read.found) else { return };
    let chain = index.versions(read.key);
    let newest = chain.partition_point(|v| v.position <= snapshot);
    if place != newest {
        let describe = |place: usize| match place.checked_sub(1).and_then(|n| chain.get(n)) {
            None => "no version".to_string(),
            Some(v) => format!("the version of transaction {} at {}", index.txn(v.txn).id, v.position),
        };
        let what = format!(
            "transaction {} read key {} at snapshot {snapshot} and found {}, while {} is the newest there",
            index.txn(at).id,
            read.key,
            describe(place),
            describe(newest)
        );
        verdict.add(Anomaly::TornSnapshot, what);
    }
}

/// A transaction sees its own writes.
fn own_writes(index: &Index<'_>, at: usize, verdict: &mut Verdict) {
    let txn = index.txn(at);
    let mut own = std::collections::BTreeMap::new();
    for op in &txn.ops {
        let wrong = match &op.action {
            Action::Write { key, value } => {
                own.insert(*key, *value);
                None
            }
            Action::Read { key, found, .. } => own.get(key).filter(|mine| *found != Some(**mine)).map(|_| *key),
            Action::Scan { from, to, found, .. } => {
                let missed = |(key, mine): (&u64, &Value)| (!found.contains(&(*key, *mine))).then_some(*key);
                own.range(*from..*to).find_map(missed)
            }
        };
        if let Some(key) = wrong {
            verdict.add(Anomaly::Garbage, format!("transaction {} did not see its own write of key {key}", txn.id));
        }
    }
}

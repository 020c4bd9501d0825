//! Lists that are only appended to: the order of versions shows in what is read, so no timestamp of the database is believed.
//!
//! Idea (Elle, 2020): every appended value is unique, and a read gives the whole list. So the longest list read of a key is the order
//! of its versions, every other read must be a prefix of it, and the dependencies follow: *ww* along the list, *wr* from the last
//! value read to its reader, *rw* from a reader to the writer of the next value. Real time adds an edge from whoever was
//! acknowledged to whoever began afterwards. A strictly serializable history has no cycle.

use crate::graph::{self, Edge, Graph};
use crate::history::{Key, Outcome};
use crate::verdict::{Anomaly, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Appended a value that is unique in the history.
    Append(Key, u64),
    /// Read a list, its own appends included.
    Read(Key, Vec<u64>),
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    /// Unique in the history.
    pub id: u64,
    /// True time at which it began.
    pub began: u64,
    /// True time at which its end was known; `u64::MAX` where it never was.
    pub ended: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it did, in order.
    pub steps: Vec<Step>,
}

/// What is promised of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// The order respects real time.
    pub real_time: bool,
}

/// Who appended a value, and whether more of the same transaction follows on the same key.
#[derive(Clone, Copy, Debug)]
struct Writer {
    txn: usize,
    key: Key,
    last: bool,
}

/// Judges a history, whose lists ended as `last`.
pub fn judge(txns: &[Txn], last: &BTreeMap<Key, Vec<u64>>, promises: Promises) -> Verdict {
    let mut verdict = Verdict::default();
    let writers = writers(txns);
    let seen: BTreeSet<u64> = last.values().flatten().copied().collect();
    for (key, list) in last {
        let distinct: BTreeSet<&u64> = list.iter().collect();
        if distinct.len() < list.len() {
            verdict.add(Anomaly::AppliedTwice, format!("the list of key {key} has a value twice: {list:?}"));
        }
    }
    for (value, writer) in &writers {
        let txn = &txns[writer.txn];
        let there = seen.contains(value);
        if txn.outcome == Outcome::Committed && !there {
            let what = format!("transaction {} appended {value} to key {}, and it is not there", txn.id, writer.key);
            verdict.add(Anomaly::LostWrite, what);
        }
        if txn.outcome == Outcome::Aborted && there {
            let what = format!("transaction {} was refused, and its {value} is in key {}", txn.id, writer.key);
            verdict.add(Anomaly::HalfApplied, what);
        }
    }
    half_applied(txns, &writers, &seen, &mut verdict);
    let mut edges = Graph::new();
    versions(last, &writers, &mut edges);
    // What is unknown has happened if somebody has seen it.
    let happened = |txn: &Txn| {
        let wrote = |step: &Step| matches!(step, Step::Append(_, value) if seen.contains(value));
        txn.outcome == Outcome::Committed || txn.outcome == Outcome::Unknown && txn.steps.iter().any(wrote)
    };
    for (at, txn) in txns.iter().enumerate().filter(|(_, txn)| happened(txn)) {
        reads(at, txn, txns, last, &writers, &mut edges, &mut verdict);
    }
    if promises.real_time {
        real_time(txns, &mut edges, &happened);
    }
    cycles(txns, &edges, &mut verdict);
    verdict
}

fn writers(txns: &[Txn]) -> BTreeMap<u64, Writer> {
    let mut writers = BTreeMap::new();
    for (at, txn) in txns.iter().enumerate() {
        let mut last: BTreeMap<Key, u64> = BTreeMap::new();
        for step in &txn.steps {
            if let Step::Append(key, value) = step {
                writers.insert(*value, Writer { txn: at, key: *key, last: true });
                if let Some(writer) = last.insert(*key, *value).and_then(|before| writers.get_mut(&before)) {
                    writer.last = false;
                }
            }
        }
    }
    writers
}

/// Of a transaction whose answer never came, all is there or nothing.
fn half_applied(txns: &[Txn], writers: &BTreeMap<u64, Writer>, seen: &BTreeSet<u64>, verdict: &mut Verdict) {
    let mut found: BTreeMap<usize, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for (value, writer) in writers.iter().filter(|(_, w)| txns[w.txn].outcome == Outcome::Unknown) {
        let (there, missing) = found.entry(writer.txn).or_default();
        if seen.contains(value) { there.push(*value) } else { missing.push(*value) }
    }
    for (at, (there, missing)) in found.into_iter().filter(|(_, (a, b))| !a.is_empty() && !b.is_empty()) {
        let what = format!("of transaction {} {there:?} are there, {missing:?} are not", txns[at].id);
        verdict.add(Anomaly::HalfApplied, what);
    }
}

fn versions(last: &BTreeMap<Key, Vec<u64>>, writers: &BTreeMap<u64, Writer>, edges: &mut Graph) {
    for pair in last.values().flat_map(|list| list.windows(2)) {
        if let (Some(a), Some(b)) = (writers.get(&pair[0]), writers.get(&pair[1])) {
            graph::add(edges, a.txn, b.txn, Edge::Ww);
        }
    }
}

/// What one transaction read.
fn reads(
    at: usize,
    txn: &Txn,
    txns: &[Txn],
    last: &BTreeMap<Key, Vec<u64>>,
    writers: &BTreeMap<u64, Writer>,
    edges: &mut Graph,
    verdict: &mut Verdict,
) {
    let mut own: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
    for step in &txn.steps {
        let (key, found) = match step {
            Step::Append(key, value) => {
                own.entry(*key).or_default().push(*value);
                continue;
            }
            Step::Read(key, found) => (*key, found),
        };
        let own = own.get(&key).map_or(&[][..], Vec::as_slice);
        let Some(found) = found.strip_suffix(own) else {
            let what = format!("transaction {} did not see its own {own:?} in key {key}: {found:?}", txn.id);
            verdict.add(Anomaly::Garbage, what);
            continue;
        };
        let order = last.get(&key).map_or(&[][..], Vec::as_slice);
        for value in found {
            match writers.get(value) {
                None => verdict.add(Anomaly::Garbage, format!("transaction {} read {value}: nobody wrote it", txn.id)),
                Some(w) if txns[w.txn].outcome == Outcome::Aborted => {
                    let what = format!("transaction {} read {value} of {}, which aborted", txn.id, txns[w.txn].id);
                    verdict.add(Anomaly::G1a, what);
                }
                Some(_) => {}
            }
        }
        if !order.starts_with(found) {
            let what = format!("transaction {} read {found:?} in key {key}, which became {order:?}", txn.id);
            verdict.add(Anomaly::TornSnapshot, what);
            continue;
        }
        if let Some(writer) = found.last().and_then(|value| writers.get(value)) {
            if !writer.last && writer.txn != at {
                let what = format!("transaction {} read a part of {} in key {key}", txn.id, txns[writer.txn].id);
                verdict.add(Anomaly::G1b, what);
            }
            graph::add(edges, writer.txn, at, Edge::Wr);
        }
        if let Some(writer) = order.get(found.len()).and_then(|value| writers.get(value)) {
            graph::add(edges, at, writer.txn, Edge::Rw);
        }
    }
}

/// One node per acknowledgement, in a row, so that the edges are few: what was acknowledged leads to its node, and a node to what
/// began after it.
fn real_time(txns: &[Txn], edges: &mut Graph, happened: &dyn Fn(&Txn) -> bool) {
    let mut ends: Vec<(u64, usize)> = txns
        .iter()
        .enumerate()
        .filter(|(_, txn)| txn.outcome == Outcome::Committed && txn.ended != u64::MAX)
        .map(|(at, txn)| (txn.ended, at))
        .collect();
    ends.sort_unstable();
    let node = |n: usize| txns.len() + n;
    for (n, (_, at)) in ends.iter().enumerate() {
        graph::add(edges, *at, node(n), Edge::RealTime);
        if n + 1 < ends.len() {
            graph::add(edges, node(n), node(n + 1), Edge::RealTime);
        }
    }
    for (at, txn) in txns.iter().enumerate().filter(|(_, txn)| happened(txn)) {
        if let Some(before) = ends.partition_point(|(ended, _)| *ended < txn.began).checked_sub(1) {
            graph::add(edges, node(before), at, Edge::RealTime);
        }
    }
}

/// The mildest kind of cycle that there is.
fn cycles(txns: &[Txn], edges: &Graph, verdict: &mut Verdict) {
    let kinds: [(&[Edge], Anomaly); 4] = [
        (&[Edge::Ww], Anomaly::G0),
        (&[Edge::Ww, Edge::Wr], Anomaly::G1c),
        (&[Edge::Ww, Edge::Wr, Edge::Rw], Anomaly::G2),
        (&[Edge::Ww, Edge::Wr, Edge::Rw, Edge::RealTime], Anomaly::RealTime),
    ];
    for (wanted, kind) in kinds {
        for component in graph::components(edges, wanted) {
            if let Some(cycle) = graph::cycle_in(edges, &component, wanted) {
                let named: Vec<String> =
                    cycle.iter().filter_map(|at| txns.get(*at)).map(|txn| txn.id.to_string()).collect();
                verdict.add(kind, format!("transactions {} stand before one another", named.join(", ")));
                return;
            }
        }
    }
}

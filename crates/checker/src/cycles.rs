//! Cycles of dependencies: the anomalies that no single read shows.
//!
//! Edges of the mixed graph (Adya §5.5): ww and wr for all committed transactions, rw where the reader asked for
//! isolation that forbids the cycle: one rw alone for snapshot and serializable readers, several for serializable ones.
//!
//! Caveat: a transaction has one timestamp for all its writes, so versions ordered by timestamps cannot make a G0. Writes
//! that were applied in other orders show as `HalfApplied` or `SameTimestamp` ([`crate::storage`], [`crate::updates`]).

use crate::graph::{self, Edge, Graph, components, cycle_in, has, path};
use crate::history::Isolation;
use crate::index::Index;
use crate::verdict::{Anomaly, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Judges the whole history. At most one cycle is told per kind and component: one wrong edge makes many.
pub fn judge(index: &Index<'_>, verdict: &mut Verdict) {
    let graph = build(index);
    let all = [Edge::Ww, Edge::Wr, Edge::Rw];
    // A cycle lies within one component, and good histories have few and small ones.
    let cyclic = components(&graph, &all);
    if cyclic.is_empty() {
        return;
    }
    let steps: [(&[Edge], Anomaly); 2] = [(&[Edge::Ww], Anomaly::G0), (&[Edge::Ww, Edge::Wr], Anomaly::G1c)];
    for (edges, kind) in steps {
        for component in components(&graph, edges) {
            if let Some(cycle) = cycle_in(&graph, &component, edges) {
                tell(index, &graph, &cycle, kind, verdict);
                return;
            }
        }
    }
    if cyclic.iter().any(|component| single(index, &graph, component, verdict)) {
        return;
    }
    let serializable = |at: &usize| index.txn(*at).isolation == Isolation::Serializable;
    let mut strict = graph.clone();
    for (from, targets) in &mut strict {
        if !serializable(from) {
            targets.retain(|_, edges| {
                edges.remove(&Edge::Rw);
                !edges.is_empty()
            });
        }
    }
    for component in components(&strict, &all) {
        if let Some(cycle) = cycle_in(&strict, &component, &all) {
            tell(index, &strict, &cycle, Anomaly::G2, verdict);
        }
    }
}

fn build(index: &Index<'_>) -> Graph {
    let mut graph = Graph::new();
    let mut add = |from, to, edge| graph::add(&mut graph, from, to, edge);
    for (_, chain) in index.chains() {
        for pair in chain.windows(2) {
            add(pair[0].txn, pair[1].txn, Edge::Ww);
        }
    }
    for (at, txn) in index.committed() {
        for read in index.seen(txn) {
            let Some(place) = index.place(read.found) else { continue };
            if let Some(version) = place.checked_sub(1).and_then(|n| index.versions(read.key).get(n)) {
                add(version.txn, at, Edge::Wr);
            }
            if let Some(next) = index.next(read.key, place)
                && txn.isolation != Isolation::ReadCommitted
            {
                add(at, next.txn, Edge::Rw);
            }
        }
    }
    graph
}

/// A cycle with exactly one rw edge, whoever of snapshot or serializable has it.
fn single(index: &Index<'_>, graph: &Graph, component: &BTreeSet<usize>, verdict: &mut Verdict) -> bool {
    let forward = [Edge::Ww, Edge::Wr];
    let rank = ranks(index, graph, component, &forward);
    for (from, targets) in graph.iter().filter(|(from, _)| component.contains(from)) {
        let last = rank.get(from);
        let back = targets.iter().filter(|(to, edges)| edges.contains(&Edge::Rw) && rank.get(to) < last);
        for (to, _) in back.filter(|(to, _)| component.contains(to)) {
            let within = |node: &usize| rank.get(node).is_some_and(|r| Some(r) <= last);
            if let Some(mut cycle) = path(graph, *to, *from, &forward, &within) {
                cycle.insert(0, *from);
                cycle.pop();
                tell(index, graph, &cycle, Anomaly::GSingle, verdict);
                return true;
            }
        }
    }
    false
}

/// A topological order of a component along edges that have no cycle; by position where they leave it open. An edge that
/// leads onward in it needs no search for a way back.
fn ranks(index: &Index<'_>, graph: &Graph, component: &BTreeSet<usize>, wanted: &[Edge]) -> BTreeMap<usize, usize> {
    let next = |node: &usize| {
        let targets = graph.get(node).into_iter().flatten();
        targets.filter(|(to, edges)| has(edges, wanted) && component.contains(to)).map(|(to, _)| *to)
    };
    let mut open: BTreeMap<usize, usize> = component.iter().map(|node| (*node, 0)).collect();
    for to in component.iter().flat_map(next) {
        *open.entry(to).or_default() += 1;
    }
    let key = |node: usize| (index.txn(node).position, node);
    let mut ready: BTreeSet<(u64, usize)> = open.iter().filter(|(_, n)| **n == 0).map(|(node, _)| key(*node)).collect();
    let mut rank = BTreeMap::new();
    while let Some((_, node)) = ready.pop_first() {
        rank.insert(node, rank.len());
        for to in next(&node) {
            let left = open.entry(to).or_default();
            *left = left.saturating_sub(1);
            if *left == 0 {
                ready.insert(key(to));
            }
        }
    }
    rank
}

fn tell(index: &Index<'_>, graph: &Graph, cycle: &[usize], kind: Anomaly, verdict: &mut Verdict) {
    let mut what = String::new();
    for (n, at) in cycle.iter().enumerate() {
        let next = cycle[(n + 1) % cycle.len()];
        let edges = graph.get(at).and_then(|targets| targets.get(&next));
        what.push_str(&format!("{} -{:?}-> ", index.txn(*at).id, edges.into_iter().flatten().collect::<Vec<_>>()));
    }
    what.push_str(&index.txn(cycle[0]).id.to_string());
    verdict.add(kind, what);
}

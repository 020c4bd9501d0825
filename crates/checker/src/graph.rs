//! Graphs of dependencies, and the cycles in them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Why one transaction stands before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Edge {
    /// It wrote the version before.
    Ww,
    /// It wrote what the other read.
    Wr,
    /// It read what the other replaced.
    Rw,
    /// It was acknowledged before the other began.
    RealTime,
}

/// Nodes, what follows each, and why.
pub(crate) type Graph = BTreeMap<usize, BTreeMap<usize, BTreeSet<Edge>>>;

/// Adds an edge.
pub(crate) fn add(graph: &mut Graph, from: usize, to: usize, edge: Edge) {
    if from != to {
        graph.entry(from).or_default().entry(to).or_default().insert(edge);
    }
}

/// Whether an edge is of a wanted kind.
pub(crate) fn has(edges: &BTreeSet<Edge>, wanted: &[Edge]) -> bool {
    wanted.iter().any(|edge| edges.contains(edge))
}

/// The shortest path along the wanted edges, both ends included.
pub(crate) fn path(
    graph: &Graph,
    from: usize,
    to: usize,
    wanted: &[Edge],
    within: &dyn Fn(&usize) -> bool,
) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        let targets = graph.get(&at).into_iter().flatten();
        for (next, _) in targets.filter(|(_, edges)| has(edges, wanted)) {
            if !within(next) || before.contains_key(next) {
                continue;
            }
            before.insert(*next, at);
            if *next == to {
                let mut path = vec![to];
                while let Some(at) = path.last().and_then(|at| before.get(at)) {
                    path.push(*at);
                    if *at == from {
                        break;
                    }
                }
                path.reverse();
                return Some(path);
            }
            queue.push_back(*next);
        }
    }
    None
}

/// The shortest cycle through the first node of a component that has one.
pub(crate) fn cycle_in(graph: &Graph, component: &BTreeSet<usize>, wanted: &[Edge]) -> Option<Vec<usize>> {
    let mut cycle = component.iter().find_map(|at| path(graph, *at, *at, wanted, &|node| component.contains(node)))?;
    cycle.pop();
    Some(cycle)
}

/// Strongly connected components of more than one node (Tarjan, without recursion).
pub(crate) fn components(graph: &Graph, wanted: &[Edge]) -> Vec<BTreeSet<usize>> {
    let mut search = Search::new(graph, wanted);
    for node in graph.keys() {
        if !search.number.contains_key(node) {
            search.from(*node);
        }
    }
    search.found
}

struct Search<'g> {
    graph: &'g Graph,
    wanted: &'g [Edge],
    number: BTreeMap<usize, usize>,
    low: BTreeMap<usize, usize>,
    stack: Vec<usize>,
    on_stack: BTreeSet<usize>,
    found: Vec<BTreeSet<usize>>,
}

impl<'g> Search<'g> {
    fn new(graph: &'g Graph, wanted: &'g [Edge]) -> Self {
        let (number, low, stack, on_stack) = Default::default();
        Search { graph, wanted, number, low, stack, on_stack, found: Vec::new() }
    }

    fn enter(&mut self, node: usize) -> std::vec::IntoIter<usize> {
        let number = self.number.len();
        self.number.insert(node, number);
        self.low.insert(node, number);
        self.stack.push(node);
        self.on_stack.insert(node);
        let targets = self.graph.get(&node).into_iter().flatten();
        let next: Vec<usize> = targets.filter(|(_, e)| has(e, self.wanted)).map(|(to, _)| *to).collect();
        next.into_iter()
    }

    fn lower(&mut self, node: usize, to: usize) {
        let low = self.low.entry(node).or_insert(to);
        *low = to.min(*low);
    }

    fn from(&mut self, root: usize) {
        let mut work = vec![(root, self.enter(root))];
        while let Some((node, rest)) = work.last_mut() {
            let node = *node;
            if let Some(next) = rest.next() {
                match self.number.get(&next).copied() {
                    None => {
                        let rest = self.enter(next);
                        work.push((next, rest));
                    }
                    Some(number) if self.on_stack.contains(&next) => self.lower(node, number),
                    Some(_) => {}
                }
                continue;
            }
            work.pop();
            if let Some((above, _)) = work.last() {
                let low = self.low[&node];
                self.lower(*above, low);
            }
            if self.low[&node] == self.number[&node] {
                self.close(node);
            }
        }
    }

    fn close(&mut self, node: usize) {
        let mut component = BTreeSet::new();
        while let Some(member) = self.stack.pop() {
            self.on_stack.remove(&member);
            component.insert(member);
            if member == node {
                break;
            }
        }
        if component.len() > 1 {
            self.found.push(component);
        }
    }
}

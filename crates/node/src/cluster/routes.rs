//! Where ranges lie, and who may lead them: what a gateway goes by. Being wrong costs a detour, nothing else.
//!
//! A range begins where it began when it was made, and ends where the next one begins that is known here. So what is learned late, or out of order, adds
//! to what is known and never contradicts it, and no key is without a range that can be asked.

use super::seam::{Founding, NodeId};
use bytes::Bytes;
use protocol::txn::{Batch, RangeId, Read, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A range as far as a gateway knows it.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    start: Bytes,
    pub replicas: Vec<NodeId>,
    pub leader: Option<NodeId>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    ranges: BTreeMap<RangeId, Route>,
    starts: BTreeMap<Bytes, RangeId>,
    /// The nodes of the cluster, where that was said: nobody else is asked.
    members: BTreeSet<NodeId>,
}

impl Routes {
    pub fn of(founding: &[Founding]) -> Self {
        let mut routes = Routes::default();
        for range in founding {
            routes.learn(range.range, &range.start, range.replicas.clone());
        }
        routes
    }

    /// What somebody says of a range; no replicas: nothing new of those.
    pub fn learn(&mut self, range: RangeId, start: &Bytes, replicas: Vec<NodeId>) {
        match self.ranges.get_mut(&range) {
            Some(known) if !replicas.is_empty() => known.replicas = replicas,
            Some(_) => {}
            None => {
                self.starts.insert(start.clone(), range);
                self.ranges.insert(range, Route { start: start.clone(), replicas, leader: None });
            }
        }
    }

    /// What a range says of the one that was split off it: where that began, which need not be where it is by now.
    pub fn learn_origin(&mut self, range: RangeId, start: &Bytes, replicas: Vec<NodeId>) {
        if !self.ranges.contains_key(&range) {
            self.learn(range, start, replicas);
        }
    }

    /// The range that holds a key.
    pub fn of_key(&self, key: &[u8]) -> RangeId {
        let below = self.starts.range::<[u8], _>((Bound::Unbounded, Bound::Included(key)));
        below.last().map_or(RangeId(0), |(_, id)| *id)
    }

    /// Each range's part of a batch.
    pub fn divide(&self, batch: Batch) -> BTreeMap<RangeId, Batch> {
        let mut parts: BTreeMap<RangeId, Batch> = BTreeMap::new();
        let (txn, until) = (batch.txn, batch.until);
        let empty = || Batch { txn, until, ..Batch::default() };
        for write in batch.writes {
            parts.entry(self.of_key(&write.key)).or_insert_with(empty).writes.push(write);
        }
        for read in batch.reads {
            match &read {
                Read::Key { key, .. } | Read::Present { key, .. } | Read::Unreferred { key, .. } => {
                    parts.entry(self.of_key(key)).or_insert_with(empty).reads.push(read);
                }
                Read::Span { span, .. } | Read::Referred { span, .. } => {
                    for range in self.over(span) {
                        let Some(part) = self.span(range) else { continue };
                        parts.entry(range).or_insert_with(empty).reads.push(read.of_part(&part));
                    }
                }
            }
        }
        parts
    }

    /// All ranges that are known.
    pub fn ranges(&self) -> impl Iterator<Item = RangeId> + '_ {
        self.ranges.keys().copied()
    }

    pub fn get(&self, range: RangeId) -> Option<&Route> {
        self.ranges.get(&range)
    }

    /// Its keys, as far as is known.
    pub fn span(&self, range: RangeId) -> Option<Span> {
        let start = self.ranges.get(&range)?.start.clone();
        let mut above = self.starts.range::<[u8], _>((Bound::Excluded(&start[..]), Bound::Unbounded));
        let end = above.next().map(|(next, _)| next.clone()).unwrap_or_default();
        Some(Span { start, end })
    }

    /// Ranges that hold keys of a span, in key order.
    pub fn over(&self, span: &Span) -> Vec<RangeId> {
        if span.is_empty() {
            return Vec::new();
        }
        let first = self.of_key(&span.start);
        let rest = self.starts.range::<[u8], _>((Bound::Excluded(&span.start[..]), span.end_bound()));
        [first].into_iter().chain(rest.map(|(_, id)| *id)).collect()
    }

    /// A span, divided between the ranges that hold it.
    pub fn parts(&self, span: &Span) -> Vec<(RangeId, Span)> {
        let part = |range: RangeId| Some((range, self.span(range)?.intersection(span)));
        self.over(span).into_iter().filter_map(part).collect()
    }

    /// These are the nodes of the cluster from now on.
    pub fn set_members(&mut self, members: BTreeSet<NodeId>) {
        self.members = members;
    }

    /// Whether a node is one of the cluster, as far as is known.
    pub fn is_member(&self, node: NodeId) -> bool {
        self.members.is_empty() || self.members.contains(&node)
    }

    /// The nodes of the cluster; where they were not said, those that replicate some range.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        let all = self.ranges.values().filter(|_| self.members.is_empty());
        self.members.iter().copied().chain(all.flat_map(|route| route.replicas.iter().copied()))
    }

    /// Whom to ask for a range of which nothing is known but its number, as somebody's transaction has a part there: everybody who replicates something,
    /// one after the other.
    pub fn anybody(&self, last: Option<NodeId>) -> Option<NodeId> {
        let nodes: BTreeSet<NodeId> = self.nodes().collect();
        let next = last.and_then(|last| nodes.range((Bound::Excluded(last), Bound::Unbounded)).next());
        next.or_else(|| nodes.first()).copied()
    }

    pub fn set_leader(&mut self, range: RangeId, leader: Option<NodeId>) {
        if let Some(route) = self.ranges.get_mut(&range) {
            route.leader = leader;
        }
    }

    pub fn set_replicas(&mut self, range: RangeId, replicas: Vec<NodeId>) {
        if let Some(route) = self.ranges.get_mut(&range) {
            route.replicas = replicas;
        }
    }

    /// Whom to ask: the leader, if one is known, or the next replica after the one asked last. `None`: all that it had have left the cluster.
    pub fn whom(&self, range: RangeId, last: Option<NodeId>) -> Option<NodeId> {
        let route = self.ranges.get(&range)?;
        let count = route.replicas.len();
        route.leader.filter(|leader| self.is_member(*leader)).or_else(|| {
            let at = last.and_then(|last| route.replicas.iter().position(|node| *node == last));
            let next = at.map_or(0, |at| at + 1);
            let mut turn = (next..next + count).map(|at| route.replicas[at % count]);
            turn.find(|node| self.is_member(*node))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_range_that_nobody_spoke_of_all_nodes_are_asked_in_turn() {
        let founding = |range, nodes: &[u32]| Founding {
            range: RangeId(range),
            start: Bytes::from(vec![range as u8]),
            replicas: nodes.iter().copied().map(NodeId).collect(),
        };
        let routes = Routes::of(&[founding(1, &[1, 2, 3]), founding(2, &[3, 5, 7])]);
        let (mut asked, mut last) = (Vec::new(), None);
        for _ in 0..6 {
            last = routes.anybody(last);
            asked.extend(last.map(|node| node.0));
        }
        assert_eq!(asked, [1, 2, 3, 5, 7, 1]);
    }

    #[test]
    fn who_has_left_is_not_asked() {
        let replicas = [1, 2, 3].map(NodeId).to_vec();
        let mut routes = Routes::of(&[Founding { range: RangeId(1), start: Bytes::new(), replicas }]);
        routes.set_leader(RangeId(1), Some(NodeId(2)));
        assert_eq!(routes.whom(RangeId(1), None), Some(NodeId(2)));
        routes.set_members([1, 3, 4].map(NodeId).into());
        assert_eq!(routes.whom(RangeId(1), None), Some(NodeId(1)));
        assert_eq!(routes.whom(RangeId(1), Some(NodeId(1))), Some(NodeId(3)));
        assert_eq!(routes.whom(RangeId(1), Some(NodeId(3))), Some(NodeId(1)));
        routes.set_members([4, 5].map(NodeId).into());
        assert_eq!(routes.whom(RangeId(1), None), None);
        assert_eq!(routes.anybody(Some(NodeId(4))), Some(NodeId(5)), "somebody knows where it went");
    }
}

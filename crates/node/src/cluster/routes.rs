//! Where ranges lie, and who may lead them: what a gateway goes by. Being wrong costs a detour, nothing else.

use super::seam::{Founding, NodeId};
use bytes::Bytes;
use protocol::txn::{RangeId, Span};
use std::collections::BTreeMap;

/// A range as far as a gateway knows it.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub span: Span,
    pub replicas: Vec<NodeId>,
    pub leader: Option<NodeId>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    ranges: BTreeMap<RangeId, Route>,
    starts: BTreeMap<Bytes, RangeId>,
}

impl Routes {
    pub fn of(founding: &[Founding]) -> Self {
        let ends = founding.iter().skip(1).map(|next| next.start.clone()).chain([Bytes::new()]);
        let mut routes = Routes::default();
        for (range, end) in founding.iter().zip(ends) {
            let span = Span { start: range.start.clone(), end };
            routes.starts.insert(span.start.clone(), range.range);
            routes.ranges.insert(range.range, Route { span, replicas: range.replicas.clone(), leader: None });
        }
        routes
    }

    /// The range that holds a key.
    pub fn of_key(&self, key: &[u8]) -> RangeId {
        let below = self.starts.range::<[u8], _>((std::ops::Bound::Unbounded, std::ops::Bound::Included(key)));
        below.last().map_or(RangeId(0), |(_, id)| *id)
    }

    pub fn get(&self, range: RangeId) -> Option<&Route> {
        self.ranges.get(&range)
    }

    /// Ranges that overlap a span, in key order.
    pub fn over(&self, span: &Span) -> Vec<RangeId> {
        let found = self.starts.values().filter(|id| self.ranges.get(id).is_some_and(|r| r.span.overlaps(span)));
        found.copied().collect()
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

    /// Whom to ask: the leader, if one is known, or the next replica after the one asked last.
    pub fn whom(&self, range: RangeId, last: Option<NodeId>) -> Option<NodeId> {
        let route = self.ranges.get(&range)?;
        route.leader.or_else(|| {
            let at = last.and_then(|last| route.replicas.iter().position(|node| *node == last));
            let next = at.map_or(0, |at| (at + 1) % route.replicas.len().max(1));
            route.replicas.get(next).copied()
        })
    }
}

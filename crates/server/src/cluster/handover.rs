//! Before a node stops, others get what it leads: nobody waits until its promises are past and an election is over.

use super::Inner;
use crate::kv::{Shell, park};
use node::RangeId;
use node::cluster::{NodeId, RangeStatus, Role};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use store::Engine;

/// It takes at most so long: then the others elect, as after a crash.
const HANDOVER_MAX: Duration = Duration::from_secs(2);
/// Between two looks whether it is done.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Hands over all ranges that are led here, and waits until others lead them; needs the ticks.
pub(super) fn run<E: Engine>(inner: &Inner<E>) {
    let until = Instant::now() + HANDOVER_MAX;
    let reached = reached(inner);
    let mut asked = BTreeSet::new();
    loop {
        let led = led(inner);
        let able = led.iter().filter_map(|(range, status)| Some((*range, heir(*range, status, &reached)?)));
        let waits_for: Vec<(RangeId, NodeId)> = able.collect();
        if waits_for.is_empty() || Instant::now() > until || inner.broken.lock().is_some() {
            return;
        }
        for (range, to) in waits_for {
            // What is refused now (a change of the replicas is on its way) may be taken at the next look.
            if !asked.contains(&range) && inner.member.hand_over(&inner.clock.read(), range, to).is_ok() {
                asked.insert(range);
            }
        }
        inner.settle(false);
        park::pause(LOOK_EVERY);
    }
}

fn led<E: Engine>(inner: &Inner<E>) -> Vec<(RangeId, RangeStatus)> {
    let status = |range: RangeId| inner.member.status(range).map(|status| (range, status));
    inner.member.ranges().into_iter().filter_map(status).filter(|(_, status)| status.role == Role::Leader).collect()
}

/// Peers that messages get to.
fn reached<E: Engine>(inner: &Inner<E>) -> Vec<NodeId> {
    let links = inner.transport.get().map(transport::Transport::links).unwrap_or_default();
    links.into_iter().filter(|link| link.up).map(|link| NodeId(link.node)).collect()
}

/// Who gets a range: not all go to the same. Who lacks some of its log may not take it just now (its engine falls behind), so others come first.
fn heir(range: RangeId, status: &RangeStatus, reached: &[NodeId]) -> Option<NodeId> {
    let of = |nodes: &[NodeId]| {
        let able: Vec<NodeId> = nodes.iter().filter(|node| reached.contains(node)).copied().collect();
        able.get(usize::try_from(range.0).unwrap_or(0).checked_rem(able.len())?).copied()
    };
    of(&status.complete).or_else(|| of(&status.voters))
}

//! Nodes that come later, and find what has moved since the cluster began.

use super::client::{pairs, set, value};
use super::world::{World, founding};
use node::RangeId;
use node::cluster::{NodeId, ReplicaChange};

/// Asks the leader of a range until it is taken.
pub fn change(w: &mut World, range: u64, changes: &[ReplicaChange]) {
    for _ in 0..200 {
        let leader = w.await_leader(range);
        let now = w.env(leader).now();
        let taken = w.member(leader).change_replicas(&now, RangeId(range), changes);
        w.drain(leader);
        w.run(100_000);
        if taken.is_ok() {
            return;
        }
    }
    panic!("never taken: {changes:?}");
}

/// All founders have gone for good. A newcomer knows the founding only, and who is in the cluster now: it finds the ranges all the same.
#[test]
fn a_newcomer_finds_ranges_that_left_their_founders() {
    for seed in 0..4 {
        let founders = founding(&["", "m"], &[1, 2, 3]);
        let mut w = World::new(seed, 6, founders.clone(), |_| {});
        w.ask(5, async |env| set(env, pairs(&[("a", "1"), ("x", "2")])).await);
        for range in [1, 2] {
            for (old, new) in [(1, 4), (2, 5), (3, 6)] {
                let (old, new) = (NodeId(old), NodeId(new));
                change(&mut w, range, &[ReplicaChange::Add(new)]);
                change(&mut w, range, &[ReplicaChange::Promote(new)]);
                w.until("it has a vote", |w| {
                    let status = w.leader(range).and_then(|leader| w.member(leader).status(RangeId(range)));
                    status.is_some_and(|status| !status.joint && status.voters.contains(&new))
                });
                if w.leader(range) == Some(old.0) {
                    let now = w.env(old.0).now();
                    w.member(old.0).hand_over(&now, RangeId(range), new).unwrap();
                    w.drain(old.0);
                    w.until("another leads", |w| w.leader(range).is_some_and(|leader| leader != old.0));
                }
                change(&mut w, range, &[ReplicaChange::Remove(old)]);
                w.until("it is gone", |w| {
                    let status = w.leader(range).and_then(|leader| w.member(leader).status(RangeId(range)));
                    status.is_some_and(|status| !status.joint && !status.voters.contains(&old))
                });
            }
        }
        w.run(1_000_000);
        (1..=3).for_each(|node| w.crash(node));
        w.add(seed, 7, founders);
        w.member(7).set_nodes([4, 5, 6, 7].map(NodeId));
        assert_eq!(w.ask(7, async |env| value(env, "x").await).as_deref(), Some("2"), "seed {seed}");
        w.ask(7, async |env| set(env, pairs(&[("a", "3"), ("x", "4")])).await);
        assert_eq!(w.ask(4, async |env| value(env, "a").await).as_deref(), Some("3"), "seed {seed}");
        w.check_replicas();
    }
}

//! One link of three is cut, in one direction or both: whoever leads, a majority does, and the third node reaches everybody.

use super::client::{Txn, pairs, set, value};
use super::world::{World, founding};
use node::RangeId;
use node::cluster::NodeId;
use std::cell::Cell;
use std::rc::Rc;

fn lead(w: &mut World, range: u64, node: u32) {
    while w.await_leader(range) != node {
        let at = w.await_leader(range);
        let now = w.env(at).now();
        let _ = w.member(at).hand_over(&now, RangeId(range), NodeId(node));
        w.drain(at);
        w.run(300_000);
    }
}

/// Two nodes that do not hear each other had begun transactions of ranges that they lead, prepared here and not there: they end all the same, and nobody
/// waits for them.
#[test]
fn what_two_began_that_do_not_hear_each_other_ends() {
    for (seed, cuts) in [(0, vec![(1, 2), (2, 1)]), (1, vec![(1, 2)]), (2, vec![(2, 1)])] {
        let mut w = World::new(seed, 3, founding(&["", "m"], &[1, 2, 3]), |_| {});
        lead(&mut w, 1, 1);
        lead(&mut w, 2, 2);
        w.ask(3, async |env| set(env, pairs(&[("a", "0"), ("p", "0")])).await);
        let ended = Rc::new(Cell::new(0));
        w.weather.cuts.extend(cuts);
        for node in [1, 2] {
            let ended = ended.clone();
            w.spawn(node, move |env| {
                Box::pin(async move {
                    let mut txn = Txn::begin(&env).unwrap();
                    txn.put("a", node);
                    txn.put("p", node);
                    let _ = txn.commit().await;
                    ended.set(ended.get() + 1);
                })
            });
        }
        w.run(7_000_000);
        assert_eq!(ended.get(), 2, "seed {seed}: the clients have heard");
        for range in [1, 2] {
            for node in 1..=3 {
                assert_eq!(w.member(node).status(RangeId(range)).map_or(0, |s| s.prepared), 0, "seed {seed}: n{node}");
            }
        }
        let began_us = w.now_us();
        let all = w.ask(3, async |env| (value(env.clone(), "a").await, value(env, "p").await));
        assert_eq!(all.0, all.1, "seed {seed}: whole or not at all");
        w.ask(3, async |env| set(env, pairs(&[("a", "3"), ("p", "3")])).await);
        assert!(w.now_us() - began_us < 500_000, "virtual time, seed {seed}");
        // The two serve as well, through the third.
        for node in [1, 2] {
            assert_eq!(w.ask(node, async |env| value(env, "p").await).as_deref(), Some("3"));
            assert_eq!(w.ask(node, async |env| value(env, "a").await).as_deref(), Some("3"));
        }
    }
}

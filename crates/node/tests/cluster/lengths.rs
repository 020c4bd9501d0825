//! How long messages are: what is too long never leaves, and whoever waits for it is told nothing.

use super::client::{Txn, set};
use super::world::{World, founding, key};
use node::RangeId;
use node::cluster::LogLimits;
use std::task::Waker;
use store::VersionsConfig;

fn world(seed: u64, nodes: u32) -> World {
    let config = VersionsConfig::default();
    let mut w = World::stored(seed, nodes, founding(&[""], &[1, 2, 3]), |_| {}, LogLimits::default(), config);
    w.await_leader(1);
    w
}

/// So many transactions, one entry each.
fn write(w: &mut World, node: u32, count: usize, bytes: usize) {
    for n in 0..count {
        w.ask(node, async move |env| set(env, vec![(format!("a{n}"), "x".repeat(bytes))]).await);
    }
}

/// A follower that was cut off is sent all that it lacks at once. (That no message is too long the world looks after.)
#[test]
fn what_a_follower_lacks_comes_in_messages_that_can_be_sent() {
    let mut w = world(1, 3);
    let leader = w.leader(1).unwrap();
    let lagging = leader % 3 + 1;
    w.cut_off(lagging);
    write(&mut w, leader, 12, 3 << 20);
    w.heal();
    w.run(4_000_000);
    let digests = [leader, lagging].map(|node| w.member(node).digest(RangeId(1)).unwrap());
    assert_eq!(digests[0], digests[1]);
    assert_eq!(w.member(lagging).counters().snapshots_installed.get(), 0, "by the log");
}

/// Rows as large as may be, at a node that has no replica.
#[test]
fn answers_with_the_largest_rows_can_be_sent() {
    let mut w = world(2, 4);
    let leader = w.leader(1).unwrap();
    let sizes = [(3 << 20, "a"), (16 << 20, "b"), (16 << 20, "c")];
    for (bytes, name) in sizes {
        w.ask(leader, async move |env| set(env, vec![(name.to_owned(), "x".repeat(bytes))]).await);
    }
    let expected: Vec<usize> = sizes.iter().map(|(bytes, _)| *bytes).collect();
    let scanned = w.ask(4, async |env| Txn::begin(&env).unwrap().scan("a", "d", false).await.unwrap());
    assert_eq!(scanned.iter().map(|(_, value)| value.len()).collect::<Vec<_>>(), expected);
    let got = w.ask(4, async move |env| {
        let mut txn = Txn::begin(&env).unwrap();
        let keys = ["a", "b", "c"].map(key);
        txn.txn.read_ahead(&env.now(), &keys, Waker::noop()).unwrap();
        let mut lens = Vec::new();
        for name in ["a", "b", "c"] {
            lens.push(txn.get(name).await.unwrap().map_or(0, |value| value.len()));
        }
        lens
    });
    assert_eq!(got, expected);
}

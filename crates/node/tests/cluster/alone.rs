//! A node that ran alone becomes the first of a cluster (design 4a.11).

use super::client::{pairs, set, value};
use super::joins::change;
use super::world::{Engine, World, founding, key};
use bytes::Bytes;
use clock::Reading;
use node::cluster::{NodeId, NotYet, Past, ReplicaChange};
use node::{BeginOptions, Input, LogBatch, Node, NodeOptions, RangeId, Transaction};
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::{Versions, VersionsConfig};

const CLUSTER: u64 = super::world::CLUSTER;
const ERROR_NS: u64 = 1_000_000;

/// A lone node whose clock shows so much more than true time.
struct Alone {
    node: Arc<Node<Engine>>,
    ns: u64,
}

impl Alone {
    fn open(engine: &Engine, ns: u64) -> Alone {
        let versions = Versions::open(engine.clone(), VersionsConfig::default()).unwrap();
        let now = Reading::with_error(ns, ERROR_NS);
        let node = Arc::new(Node::open(NodeOptions::default(), Arc::new(versions), &now).unwrap());
        node.step(&now, Input::Recovered).unwrap();
        Alone { node, ns }
    }
    fn now(&self) -> Reading {
        Reading::with_error(self.ns, ERROR_NS)
    }
    fn drive(&mut self) {
        loop {
            let mut batch = LogBatch::default();
            self.node.take_batch(&mut batch);
            if batch.is_empty() {
                return;
            }
            self.ns += 100_000;
            self.node.step(&self.now(), Input::Durable(batch.last())).unwrap();
        }
    }
    fn set(&mut self, pairs: &[(&str, &str)]) {
        let mut txn = Transaction::begin(&self.node, &self.now(), &BeginOptions::default()).unwrap();
        for (name, value) in pairs {
            txn.put(key(name), Bytes::copy_from_slice(value.as_bytes())).unwrap();
        }
        for _ in 0..20 {
            if let Poll::Ready(result) = txn.commit(&self.now(), Waker::noop()) {
                result.unwrap();
                return;
            }
            self.drive();
            self.ns += 5_000_000;
            self.node.step(&self.now(), Input::Tick).unwrap();
        }
        panic!("the commit hangs");
    }
    fn split(&mut self, at: &str) {
        let ticket = self.node.split(&self.now(), key(at), Waker::noop());
        self.drive();
        assert_eq!(ticket.poll(Waker::noop()), Poll::Ready(Ok(())));
    }
    fn flush(&self) {
        self.node.freeze();
        while self.node.versions().frozen_layers() > 0 {
            self.node.versions().flush().unwrap();
        }
    }
}

/// What came of it: the world, and for how many tenths of a second joining waited.
fn converted(seed: u64, ahead_us: u64, waits: bool) -> (World, usize) {
    // Of the first version: to be raised is a record, which a range that begins ahead of time would not survive.
    let mut w = World::first(seed, 0, Vec::new(), |_| {});
    w.add_off(seed, 1, founding(&[""], &[1]));
    let engine = w.machines[&1].engine.clone();
    let mut alone = Alone::open(&engine, (w.now_us() + ahead_us) * 1000);
    assert_eq!(Past::of(&alone.node.versions().recovered().state).unwrap(), Past::Unwritten);
    alone.set(&[("a", "1"), ("b", "1"), ("x", "1")]);
    alone.flush();
    alone.split("m");
    alone.set(&[("a", "2"), ("x", "2")]);
    alone.node.close();
    alone.drive();
    alone.node.sabotage().set_join_ahead_of_time(!waits);
    // Its clock is set back to what is true.
    let mut waited = 0;
    loop {
        let now = Reading::with_error(w.now_us() * 1000, ERROR_NS);
        match alone.node.become_member(&now, CLUSTER, NodeId(1)) {
            Ok(()) => break,
            Err(NotYet::Ahead { last }) => assert!(last > now.interval.earliest(), "seed {seed}"),
            Err(NotYet::Busy) => panic!("seed {seed}: it is at rest"),
        }
        w.run(100_000);
        waited += 1;
    }
    alone.flush();
    assert!(!alone.node.freeze(), "nothing of the lone node is written any more");
    drop(alone);
    let state = Versions::open(engine, VersionsConfig::default()).unwrap().recovered().state.clone();
    assert_eq!(Past::of(&state).unwrap(), Past::Converted { cluster: CLUSTER });
    w.start(1);
    w.await_leader(1);
    w.await_leader(2);
    (w, waited)
}

/// Its ranges are the cluster's: others read and write them, get replicas, and go on without it.
#[test]
fn what_a_node_had_alone_is_the_clusters() {
    for seed in 0..4 {
        let (mut w, _) = converted(seed, 0, true);
        for node in [2, 3] {
            w.add(seed, node, founding(&[""], &[1]));
        }
        for (name, was) in [("a", "2"), ("b", "1"), ("x", "2")] {
            assert_eq!(w.ask(2, async move |env| value(env, name).await).as_deref(), Some(was), "seed {seed}: {name}");
        }
        w.ask(3, async |env| set(env, pairs(&[("a", "3"), ("x", "3")])).await);
        // It may die before it has written down that its groups are made, and after.
        w.crash(1);
        w.start(1);
        for range in [1, 2] {
            for node in [2, 3].map(NodeId) {
                change(&mut w, range, &[ReplicaChange::Add(node)]);
                change(&mut w, range, &[ReplicaChange::Promote(node)]);
                w.until("it has a vote", |w| {
                    let status = w.leader(range).and_then(|leader| w.member(leader).status(RangeId(range)));
                    status.is_some_and(|status| !status.joint && status.voters.contains(&node))
                });
            }
        }
        w.run(1_000_000);
        w.check_replicas();
        w.flush(1);
        w.crash(1);
        w.ask(2, async |env| set(env, pairs(&[("b", "4")])).await);
        for (name, was) in [("a", "3"), ("b", "4"), ("x", "3")] {
            assert_eq!(w.ask(3, async move |env| value(env, name).await).as_deref(), Some(was), "seed {seed}: {name}");
        }
        w.start(1);
        w.run(3_000_000);
        w.check_replicas();
    }
}

/// What it acknowledged while its clock was ahead is seen by whoever begins at another node afterwards: it waits until that is past.
#[test]
fn a_node_that_is_ahead_of_time_waits() {
    for seed in 0..4 {
        let (mut w, waited) = converted(seed, 3_000_000, true);
        assert!(waited >= 29, "seed {seed}: {waited}");
        w.add(seed, 2, founding(&[""], &[1]));
        assert_eq!(w.ask(2, async |env| value(env, "a").await).as_deref(), Some("2"), "seed {seed}");
    }
}

/// It joins at once: who reads at another node does not see what was acknowledged.
#[test]
#[should_panic(expected = "was acknowledged")]
fn a_node_that_joins_ahead_of_time_breaks_the_order() {
    let (mut w, waited) = converted(1, 3_000_000, false);
    assert_eq!(waited, 0);
    w.add(1, 2, founding(&[""], &[1]));
    let seen = w.ask(2, async |env| value(env, "a").await);
    assert_eq!(seen.as_deref(), Some("2"), "was acknowledged");
}

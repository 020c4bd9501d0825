//! What the core costs, on one thread, without SQL, locks or a disk: `cargo run --release -p timeball-node --example node_bench`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use bytes::Bytes;
use clock::Reading;
use node::{BeginOptions, Input, LockMode, LogBatch, Node, NodeOptions, Transaction, WhenLocked};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use store::{MemoryEngine, Versions, VersionsConfig};

const KEYS: u64 = 100_000;
const ROUNDS: u64 = 400_000;

fn now() -> Reading {
    Reading::exact(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64)
}

fn key(i: u64) -> Bytes {
    let mut key = vec![0, 0, 0, 9];
    key.extend_from_slice(&i.to_be_bytes());
    Bytes::from(key)
}

fn ready<T>(poll: Poll<Result<T, node::TxnError>>) -> T {
    match poll {
        Poll::Ready(result) => result.unwrap(),
        Poll::Pending => panic!("it waits"),
    }
}

fn sync(node: &Node<MemoryEngine>, batch: &mut LogBatch) {
    loop {
        node.take_batch(batch);
        if batch.is_empty() {
            return;
        }
        let out = node.step(&now(), Input::Durable(batch.last())).unwrap();
        out.wakers.into_iter().for_each(Waker::wake);
    }
}

fn commit(node: &Node<MemoryEngine>, txn: &mut Transaction<MemoryEngine>, batch: &mut LogBatch) {
    while txn.commit(&now(), Waker::noop()).is_pending() {
        sync(node, batch);
        node.step(&now(), Input::Tick).unwrap();
    }
}

fn time(name: &str, mut f: impl FnMut(u64)) {
    let began = Instant::now();
    let mut x = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..ROUNDS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        f(x % KEYS);
    }
    println!("{name:44} {:7.0} ns", began.elapsed().as_nanos() as f64 / ROUNDS as f64);
}

fn main() {
    let config = VersionsConfig { freeze_bytes: usize::MAX, ..VersionsConfig::default() };
    let versions = Versions::open(MemoryEngine::default(), config).unwrap();
    let node = Arc::new(Node::open(NodeOptions::default(), Arc::new(versions), &now()).unwrap());
    let (waker, mut batch) = (Waker::noop(), LogBatch::default());
    let begin = || Transaction::begin(&node, &now(), &BeginOptions::default()).unwrap();
    let mut txn = begin();
    for i in 0..KEYS {
        txn.put(key(i), Bytes::from(vec![7u8; 100])).unwrap();
    }
    commit(&node, &mut txn, &mut batch);
    time("a clock reading", |_| {
        std::hint::black_box(now());
    });
    time("begin, drop", |_| drop(begin()));
    time("begin, get, commit", |i| {
        let mut txn = begin();
        ready(txn.get(&now(), &key(i), false, waker)).unwrap();
        ready(txn.commit(&now(), waker));
    });
    time("begin, lock, rollback", |i| {
        let mut txn = begin();
        ready(txn.lock(&now(), &key(i), LockMode::Update, WhenLocked::Wait, waker));
    });
    time("begin, put, commit, apply", |i| {
        let mut txn = begin();
        txn.put(key(i), Bytes::from(vec![8u8; 100])).unwrap();
        commit(&node, &mut txn, &mut batch);
    });
    time("begin, lock, get, put, commit, apply", |i| {
        let mut txn = begin();
        let key = key(i);
        ready(txn.lock(&now(), &key, LockMode::Update, WhenLocked::Wait, waker));
        ready(txn.get(&now(), &key, false, waker)).unwrap();
        txn.put(key, Bytes::from(vec![8u8; 100])).unwrap();
        commit(&node, &mut txn, &mut batch);
    });
}

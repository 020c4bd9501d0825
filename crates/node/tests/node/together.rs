//! Locks of many keys at once.

use super::{World, bytes};
use node::{Isolation, LockMode, NodeOptions, Transaction, TxnError, WhenLocked};
use std::task::{Poll, Waker};
use store::MemoryEngine;

const KEYS: [&str; 6] = ["row1a", "row1b", "row1c", "row1d", "row1e", "row2a"];

fn lock_all(txn: &mut Transaction<MemoryEngine>) -> usize {
    txn.lock_all(&KEYS.map(str::as_bytes), LockMode::Update)
}

fn world() -> World {
    let mut w = World::new();
    w.set(&KEYS.map(|key| (key, "old")));
    w
}

fn is_locked(w: &World, txn: &mut Transaction<MemoryEngine>, key: &str) -> bool {
    match txn.lock(&w.now(), key.as_bytes(), LockMode::Update, WhenLocked::Fail, Waker::noop()) {
        Poll::Ready(Ok(taken)) => !taken,
        Poll::Ready(Err(TxnError::LockNotAvailable)) => true,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_of_one_index_are_locked_and_none_of_another() {
    let mut w = world();
    let (mut all, mut other) = (w.begin(Isolation::Serializable), w.begin(Isolation::Serializable));
    assert_eq!(lock_all(&mut all), 5);
    assert!(KEYS[..5].iter().all(|key| is_locked(&w, &mut other, key)));
    assert!(!is_locked(&w, &mut other, KEYS[5]));
    all.rollback();
    assert_eq!(w.node.lock_counts(), (1, 0));
}

/// Up to the key that somebody else has; the one who waits for it then is as if he had asked one by one.
#[test]
fn what_another_has_is_where_it_ends() {
    let mut w = world();
    let (mut all, mut other) = (w.begin(Isolation::ReadCommitted), w.begin(Isolation::ReadCommitted));
    assert!(!is_locked(&w, &mut other, "row1c"));
    assert_eq!(lock_all(&mut all), 2);
    let now = w.now();
    assert!(all.lock(&now, b"row1c", LockMode::Update, WhenLocked::Wait, Waker::noop()).is_pending());
    assert_eq!(lock_all(&mut all), 0, "who waits is granted nothing");
    other.put(bytes("row1c"), bytes("new")).unwrap();
    w.commit(&mut other).unwrap();
    let before = all.snapshot();
    let now = w.now();
    assert!(matches!(
        all.lock(&now, b"row1c", LockMode::Update, WhenLocked::Wait, Waker::noop()),
        Poll::Ready(Ok(true))
    ));
    assert!(all.snapshot() > before);
    assert_eq!(w.get(&mut all, "row1c").as_deref(), Some("new"));
    assert_eq!(lock_all(&mut all), 5);
}

/// Another commits a key, and that is applied or only proposed.
fn change(w: &mut World, other: &mut Transaction<MemoryEngine>, key: &str, applied: bool) {
    other.put(bytes(key), bytes("new")).unwrap();
    if applied {
        w.commit(other).unwrap();
    } else {
        assert!(other.commit(&w.now(), Waker::noop()).is_pending());
    }
}

/// Nothing that is newer than the snapshot counts as locked, whether it is applied or only proposed; and nothing behind it is locked.
#[test]
fn what_is_newer_is_where_it_ends() {
    for applied in [true, false] {
        let mut w = world();
        let mut all = w.begin(Isolation::Serializable);
        let mut other = w.begin(Isolation::Serializable);
        change(&mut w, &mut other, "row1d", applied);
        assert_eq!(lock_all(&mut all), 3, "applied: {applied}");
        assert_eq!(w.node.look_at_locks(|table| table.held(all.id().unwrap())), 3);
        let now = w.now();
        let next = all.lock(&now, b"row1d", LockMode::Update, WhenLocked::Wait, Waker::noop());
        assert_eq!(next.is_pending(), !applied);
    }
}

/// What is newer by the time it is locked is seen, too.
#[test]
fn what_becomes_newer_before_it_is_locked_is_where_it_ends() {
    for applied in [true, false] {
        let mut w = world();
        let mut all = w.begin(Isolation::Serializable);
        let mut other = w.begin(Isolation::Serializable);
        let keys = KEYS.map(str::as_bytes);
        let granted = all.lock_all_while(&keys, LockMode::Update, || change(&mut w, &mut other, "row1d", applied));
        assert_eq!(granted, 3, "applied: {applied}");
    }
}

/// Lest the tests above are about nothing.
#[test]
fn what_is_in_flight_is_locked_where_nobody_looks() {
    let mut w = world();
    w.node.sabotage().set_ignore_inflight(true);
    let mut all = w.begin(Isolation::Serializable);
    let mut other = w.begin(Isolation::Serializable);
    change(&mut w, &mut other, "row1d", false);
    assert_eq!(lock_all(&mut all), 5);
}

/// Many are asked for some at a time: it ends where one of the later ones does.
#[test]
fn many_end_at_one_that_another_has_too() {
    let mut w = World::new();
    let (mut all, mut other) = (w.begin(Isolation::Serializable), w.begin(Isolation::Serializable));
    let keys: Vec<String> = (100..400).map(|n| format!("row1{n}")).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    assert!(!is_locked(&w, &mut other, "row1300"));
    assert_eq!(all.lock_all(&keys, LockMode::Update), 200);
    assert_eq!(w.node.lock_counts(), (201, 0));
    other.rollback();
    assert_eq!(all.lock_all(&keys, LockMode::Update), 300);
    assert_eq!(w.node.lock_counts(), (300, 0));
}

/// Past the most that a transaction may hold none is taken.
#[test]
fn there_are_no_more_than_a_transaction_may_hold() {
    let mut w = World::over(NodeOptions { locks_per_txn_max: 3, ..NodeOptions::default() });
    let mut all = w.begin(Isolation::ReadCommitted);
    assert!(!is_locked(&w, &mut all, "row2a"));
    assert_eq!(lock_all(&mut all), 2);
    assert!(all.locks_full());
    assert_eq!(lock_all(&mut all), 0);
    assert_eq!(w.node.lock_counts(), (3, 0));
}

#[test]
fn who_only_reads_locks_nothing() {
    let w = world();
    let options = node::BeginOptions { read_only: true, ..node::BeginOptions::default() };
    let mut all = Transaction::begin(&w.node, &w.now(), &options).unwrap();
    assert_eq!(lock_all(&mut all), 0);
    assert_eq!(w.node.lock_counts(), (0, 0));
}

//! SKIP LOCKED.

use super::{World, bytes};
use node::{Isolation, LockMode, Transaction, TxnError, WhenLocked};
use std::task::{Poll, Waker};
use store::MemoryEngine;

/// Whether a worker gets a row, at once.
fn take(w: &World, txn: &mut Transaction<MemoryEngine>, key: &[u8]) -> bool {
    match txn.lock(&w.now(), key, LockMode::Update, WhenLocked::Skip, Waker::noop()) {
        Poll::Ready(taken) => taken.unwrap(),
        Poll::Pending => panic!("nothing waits"),
    }
}

/// SKIP LOCKED (decision 55): on the way to a row nothing is certified, for a row that is not in the result may have been skipped. The
/// control looks with an ordinary scan, which is.
#[test]
fn a_queue_restarts_nobody_over_rows_that_others_take() {
    for peeks in [true, false] {
        let mut w = World::new();
        w.set(&[("q1", "a"), ("q2", "b"), ("q3", "c")]);
        let (mut t1, mut t2) = (w.begin(Isolation::Serializable), w.begin(Isolation::Serializable));
        let now = w.now();
        let look = |txn: &mut Transaction<MemoryEngine>| {
            let span = bytes("q")..bytes("r");
            match peeks {
                true => txn.peek_scan(&now, &span, false, 2, Waker::noop()),
                false => txn.scan(&now, &span, false, 2, false, Waker::noop()),
            }
        };
        for txn in [&mut t1, &mut t2] {
            assert!(matches!(look(txn), Poll::Ready(Ok(chunk)) if chunk.rows.len() == 2));
        }
        assert!(take(&w, &mut t1, b"q1"));
        assert!(!take(&w, &mut t2, b"q1") && take(&w, &mut t2, b"q2"));
        for (txn, key) in [(&mut t1, "q1"), (&mut t2, "q2")] {
            assert!(w.get(txn, key).is_some());
            txn.delete(bytes(key)).unwrap();
        }
        w.commit(&mut t1).unwrap();
        w.set(&[("q0", "a row before the one taken")]);
        assert_eq!(w.commit(&mut t2).is_ok(), peeks);
    }
}

/// What a queue gave is read: under its lock, and certified by its key.
#[test]
fn a_row_taken_from_a_queue_is_certified() {
    let mut w = World::new();
    w.set(&[("q1", "a")]);
    let mut txn = w.begin(Isolation::Serializable);
    let now = w.now();
    assert!(matches!(txn.peek(&now, b"q1", Waker::noop()), Poll::Ready(Ok(Some(_)))));
    assert!(txn.lock(&now, b"q1", LockMode::Update, WhenLocked::Skip, Waker::noop()).is_ready());
    assert_eq!(w.get(&mut txn, "q1").as_deref(), Some("a"));
    w.set(&[("q1", "written past the lock")]);
    txn.put(bytes("done"), bytes("a")).unwrap();
    assert!(matches!(w.commit(&mut txn), Err(TxnError::Restart { .. })));
}

/// A row that was changed since the snapshot moves it, as any lock does; where it cannot move the row is skipped, and its lock given back.
#[test]
fn a_row_that_was_taken_since_the_snapshot_is_skipped() {
    for reads in [false, true] {
        let mut w = World::new();
        w.set(&[("other", "1"), ("mine", "1"), ("q1", "a")]);
        let (mut txn, mut later) = (w.begin(Isolation::Serializable), w.begin(Isolation::Serializable));
        assert!(take(&w, &mut txn, b"mine"));
        if reads {
            w.get(&mut txn, "other");
        }
        w.set(&[("other", "2"), ("q1", "b")]);
        assert_eq!(take(&w, &mut txn, b"q1"), !reads);
        assert_eq!(take(&w, &mut later, b"q1"), reads, "what is skipped is not held");
        assert!(!take(&w, &mut later, b"mine"), "what was held before stays so");
    }
}

/// A commit on its way to the disk holds its rows: whoever skips those does not wait for it.
#[test]
fn a_look_does_not_wait_for_what_is_in_flight() {
    let mut w = World::with_other_nodes();
    w.set(&[("q1", "a"), ("q2", "b")]);
    // A lease first, for the snapshots that follow.
    let mut first = w.begin(Isolation::Serializable);
    assert!(first.get(&w.now(), b"q1", false, Waker::noop()).is_pending());
    w.sync();
    let mut taker = w.begin(Isolation::Serializable);
    let now = w.now();
    assert!(taker.lock(&now, b"q1", LockMode::Update, WhenLocked::Skip, Waker::noop()).is_ready());
    taker.delete(bytes("q1")).unwrap();
    assert!(taker.commit(&w.now(), Waker::noop()).is_pending());
    w.ns += 1_000_000;
    let mut txn = w.begin(Isolation::Serializable);
    let (now, span) = (w.now(), bytes("q1")..bytes("r"));
    assert!(txn.scan(&now, &span, false, 1, false, Waker::noop()).is_pending());
    let chunk = match txn.peek_scan(&now, &span, false, 2, Waker::noop()) {
        Poll::Ready(chunk) => chunk.unwrap(),
        Poll::Pending => panic!("it waits"),
    };
    assert_eq!(chunk.rows.len(), 2);
    let mut ask = |key: &[u8]| txn.lock(&now, key, LockMode::Update, WhenLocked::Skip, Waker::noop());
    assert!(matches!(ask(b"q1"), Poll::Ready(Ok(false))));
    assert!(matches!(ask(b"q2"), Poll::Ready(Ok(true))));
}

//! Transactions of many writes.

use super::{World, bytes};
use node::{Isolation, Transaction, TxnError};
use std::ops::ControlFlow;
use std::task::{Poll, Waker};
use store::MemoryEngine;

/// More writes of one index than are asked about each by itself.
const KEYS: usize = 100;

fn load(txn: &mut Transaction<MemoryEngine>, index: &str) {
    (0..KEYS).for_each(|i| txn.put(bytes(&format!("{index}{i:04}")), bytes("loaded")).unwrap());
}

/// What was written is in the engine, and no more in memory.
fn put_in_engine(w: &World) {
    w.node.freeze();
    while w.node.versions().flush().unwrap() {}
}

/// Whether a commit comes too late.
fn is_refused(w: &mut World, txn: &mut Transaction<MemoryEngine>) -> bool {
    match w.commit(txn) {
        Ok(_) => false,
        Err(TxnError::Restart { .. }) => true,
        Err(e) => panic!("{e}"),
    }
}

/// An index that nobody else writes is asked about as a whole; a change of any of its keys is found all the same, in memory and in the
/// engine, and a change of another index does not matter.
#[test]
fn a_load_is_refused_exactly_if_one_of_its_keys_has_changed() {
    for flushed in [false, true] {
        for (other, conflicts) in [("idx10042", true), ("idx1beside", false), ("idx20042", false), ("idx0", false)] {
            let mut w = World::new();
            w.set(&[("idx10007", "old")]);
            let mut txn = w.begin(Isolation::Snapshot);
            load(&mut txn, "idx1");
            w.set(&[(other, "new")]);
            if flushed {
                put_in_engine(&w);
            }
            assert_eq!(is_refused(&mut w, &mut txn), conflicts, "{other} {flushed}");
            assert_eq!(w.value("idx10042").as_deref(), Some(if conflicts { "new" } else { "loaded" }));
            // The next load follows the last one.
            let mut next = w.begin(Isolation::Snapshot);
            load(&mut next, "idx1");
            w.commit(&mut next).unwrap();
        }
    }
}

/// More rows than keys are remembered singly.
const ROWS: usize = 70_000;

/// Looks whether keys of an index are free, as an INSERT does, and takes them.
fn insert(w: &mut World, txn: &mut Transaction<MemoryEngine>, index: &str) {
    for i in 0..ROWS {
        let key = format!("{index}{i:06}");
        assert_eq!(w.get(txn, &key), None);
        txn.put(bytes(&key), bytes("row")).unwrap();
    }
}

/// What a large INSERT has read is what it read, not what lies between: neither the catalog's neighbours nor another index.
#[test]
fn a_large_insert_meets_only_those_who_write_its_keys() {
    let others = [
        ("cat00002", false),
        ("idx10beside", false),
        ("idx3", false),
        ("idx2000042", true),
        ("idx2000042beside", false),
        ("idx2", false),
    ];
    for (other, conflicts) in others {
        let mut w = World::new();
        w.set(&[("cat00001", "read"), ("cat00002", "counter")]);
        let mut txn = w.begin(Isolation::Serializable);
        assert!(w.get(&mut txn, "cat00001").is_some());
        insert(&mut w, &mut txn, "idx2");
        w.set(&[(other, "new")]);
        assert_eq!(is_refused(&mut w, &mut txn), conflicts, "{other}");
    }
}

/// A savepoint takes the rows back: that their keys were free was seen, and is certified all the same.
#[test]
fn what_was_seen_stays_certified_when_the_write_is_taken_back() {
    for (other, conflicts) in [("idx2000042", true), ("idx1000042", false)] {
        let mut w = World::new();
        let mut txn = w.begin(Isolation::Serializable);
        let savepoint = txn.savepoint();
        insert(&mut w, &mut txn, "idx2");
        txn.rollback_to(savepoint);
        txn.put(bytes("own"), bytes("row")).unwrap();
        w.set(&[(other, "new")]);
        assert_eq!(w.commit(&mut txn).is_err(), conflicts, "{other}");
    }
}

/// What nobody wants of a sweep, and is left out of it, counts as read: whoever left it out went by its value.
#[test]
fn what_is_left_out_of_a_sweep_is_certified() {
    for flushed in [false, true] {
        for (other, conflicts) in [("idx100010", true), ("idx100005", true), ("idx200005", false)] {
            let mut w = World::new();
            let rows: Vec<String> = (0..20).map(|i| format!("idx1{:05}", i * 10)).collect();
            w.set(&rows.iter().map(|key| (&key[..], "old")).collect::<Vec<_>>());
            if flushed {
                put_in_engine(&w);
            }
            let mut txn = w.begin(Isolation::Serializable);
            let (span, mut pick) = (bytes("idx1")..bytes("idx2"), |_: &[u8]| ControlFlow::Continue(false));
            let swept = txn.sweep_picked(&w.now(), &span, 4096, false, Some(&mut pick), Waker::noop());
            let Poll::Ready(Ok(Some(chunk))) = swept else { panic!("nothing is in flight and nothing was written") };
            assert!(chunk.rest.is_none());
            assert!(!flushed || chunk.places.is_empty(), "in memory alone nobody is asked");
            txn.put(bytes("idx3"), bytes("made of it")).unwrap();
            w.set(&[(other, "between")]);
            assert_eq!(is_refused(&mut w, &mut txn), conflicts, "{other} {flushed}");
        }
    }
}

/// A sweep that ends early has read up to its end, by whatever it ended: what was left out before counts as read, and nothing behind.
#[test]
fn a_sweep_that_ends_early_is_certified_up_to_its_end() {
    let before = [("idx100010", true), ("idx100015", true), ("idx100030", true), ("idx100040", true)];
    // Between its last row and the next one it may count as read.
    let behind = [("idx100050", false), ("idx100055", false), ("idx100190", false)];
    // Either ends with the fifth row: who picks says so, or it is the third that he wants.
    for (limit, breaks) in [(4096, true), (3, false)] {
        for (other, conflicts) in before.into_iter().chain(behind) {
            let mut w = World::new();
            let rows: Vec<String> = (0..20).map(|i| format!("idx1{:05}", i * 10)).collect();
            w.set(&rows.iter().map(|key| (&key[..], "old")).collect::<Vec<_>>());
            put_in_engine(&w);
            let mut txn = w.begin(Isolation::Serializable);
            let mut asked = 0;
            let mut pick = |_: &[u8]| {
                asked += 1;
                match breaks {
                    true if asked == 5 => ControlFlow::Break(()),
                    true => ControlFlow::Continue(false),
                    false => ControlFlow::Continue(asked % 2 == 1),
                }
            };
            let span = bytes("idx1")..bytes("idx2");
            let swept = txn.sweep_picked(&w.now(), &span, limit, false, Some(&mut pick), Waker::noop());
            let Poll::Ready(Ok(Some(chunk))) = swept else { panic!("nothing is in flight and nothing was written") };
            assert_eq!((asked, chunk.places.len()), (5, if breaks { 1 } else { 3 }));
            let rest = chunk.rest.expect("there are more rows");
            assert!(rest.start > bytes("idx100040") && rest.start <= bytes("idx100050"));
            txn.put(bytes("idx3"), bytes("made of it")).unwrap();
            w.set(&[(other, "between")]);
            assert_eq!(is_refused(&mut w, &mut txn), conflicts, "{other} {limit}");
        }
    }
}

/// Rows looked at in the bytes of their chunk are read as a scan reads them: what comes between them is met, and own writes are seen.
#[test]
fn a_sweep_reads_what_a_scan_reads_and_is_certified_alike() {
    for flushed in [false, true] {
        for (other, conflicts) in [("idx100005", true), ("idx200005", false)] {
            let mut w = World::new();
            let rows: Vec<String> = (0..20).map(|i| format!("idx1{:05}", i * 10)).collect();
            w.set(&rows.iter().map(|key| (&key[..], "old")).collect::<Vec<_>>());
            if flushed {
                put_in_engine(&w);
            }
            let mut txn = w.begin(Isolation::Serializable);
            w.set(&[("idx100020", "newer than the snapshot"), ("idx1000201", "not there then")]);
            let (mut rest, mut found) = (Some(bytes("idx1")..bytes("idx2")), Vec::new());
            while let Some(span) = rest.take() {
                let Poll::Ready(Ok(Some(chunk))) = txn.sweep(&w.now(), &span, 7, false, Waker::noop()) else {
                    panic!("nothing is in flight and nothing was written")
                };
                assert!(chunk.places.len() <= 7);
                assert!(chunk.rows().all(|(_, value)| value == b"old"));
                found.extend(chunk.rows().map(|(key, _)| String::from_utf8(key.to_vec()).unwrap()));
                rest = chunk.rest;
            }
            assert_eq!(found, rows);
            txn.put(bytes("idx3"), bytes("made of it")).unwrap();
            let own = bytes("idx3")..bytes("idx4");
            assert!(matches!(txn.sweep(&w.now(), &own, 7, false, Waker::noop()), Poll::Ready(Ok(None))), "own writes");
            assert!(matches!(w.commit(&mut txn), Err(TxnError::Restart { .. })), "a row that was read has changed");

            let mut txn = w.begin(Isolation::Serializable);
            let span = bytes("idx1")..bytes("idx2");
            assert!(matches!(txn.sweep(&w.now(), &span, 4096, false, Waker::noop()), Poll::Ready(Ok(Some(_)))));
            txn.put(bytes("idx3"), bytes("made of it")).unwrap();
            w.set(&[(other, "between")]);
            assert_eq!(is_refused(&mut w, &mut txn), conflicts, "{other} {flushed}");
        }
    }
}

/// Rows of a commit that is large enough to be seen before its writes are in their places.
const LARGE: usize = 20_000;

/// A range that is split while a large commit of it is on its way: it is committed by the new bounds, and all of it is there. Where it lies in one of
/// the two ranges it is shown once more, and nobody waits while it is placed.
#[test]
fn a_large_commit_that_meets_a_split_is_committed_whole() {
    let row = |i: usize| format!("row1{i:06}");
    for (at, shown) in [("m".to_owned(), true), (row(LARGE / 2), false)] {
        let mut w = World::new();
        let mut txn = w.begin(Isolation::Serializable);
        (0..LARGE).for_each(|i| txn.put(bytes(&row(i)), bytes("new")).unwrap());
        let split = w.node.split(&w.now(), bytes(&at), Waker::noop());
        assert!(txn.commit(&w.now(), Waker::noop()).is_pending());
        w.commit(&mut txn).unwrap();
        assert_eq!(split.poll(Waker::noop()), Poll::Ready(Ok(())));
        assert_eq!(w.node.ranges(&protocol::txn::Span::ALL).len(), 2);
        assert_eq!(w.node.versions().place(1), shown, "split at {at}");
        for _ in 0..2 {
            for i in [0, LARGE / 2 - 1, LARGE / 2, LARGE - 1] {
                assert_eq!(w.value(&row(i)).as_deref(), Some("new"));
            }
            w.crash();
        }
    }
}

/// A large commit is seen as a whole at once; who commits behind it, whoever places it and when, and a crash before that change nothing.
#[test]
fn a_large_commit_is_seen_before_it_is_in_its_place() {
    for placed in [0, 1, LARGE / 2, LARGE] {
        let mut w = World::new();
        let row = |i: usize| format!("rows{i:06}");
        for value in ["first", "second"] {
            let before = w.begin(Isolation::Snapshot);
            let mut txn = w.begin(Isolation::Serializable);
            (0..LARGE).for_each(|i| txn.put(bytes(&row(i)), bytes(value)).unwrap());
            let mut clash = w.begin(Isolation::Serializable);
            clash.put(bytes(&row(LARGE - 1)), bytes("clash")).unwrap();
            w.commit(&mut txn).unwrap();
            assert_eq!(w.node.versions().place(placed), placed < LARGE, "it is shown");
            assert!(w.commit(&mut clash).is_err(), "who wrote one of its rows is refused");
            let mut old = before;
            let earlier = (value == "second").then_some("first");
            assert_eq!(w.get(&mut old, &row(7)).as_deref(), earlier, "an older snapshot stays");
            w.set(&[(&row(LARGE - 2), "newer")]);
            let mut txn = w.begin(Isolation::Serializable);
            txn.delete(bytes(&row(3))).unwrap();
            w.commit(&mut txn).unwrap();
            for i in [0, LARGE / 2, LARGE - 1] {
                assert_eq!(w.value(&row(i)).as_deref(), Some(value));
            }
            assert_eq!((w.value(&row(3)), w.value(&row(LARGE - 2)).as_deref()), (None, Some("newer")));
        }
        let count = |w: &mut World| {
            let (mut rest, mut rows) = (Some(bytes("rows")..bytes("rowt")), 0);
            let mut txn = w.begin(Isolation::Serializable);
            while let Some(span) = rest.take() {
                let Poll::Ready(Ok(chunk)) = txn.scan(&w.now(), &span, false, 3000, false, Waker::noop()) else {
                    panic!("nothing is in flight")
                };
                let seconds = chunk.rows.iter().filter(|(_, value)| value[..] == *b"second").count();
                assert_eq!(chunk.rows.len() - seconds, chunk.rows.iter().filter(|(_, v)| v[..] == *b"newer").count());
                rows += chunk.rows.len();
                rest = chunk.rest;
            }
            rows
        };
        assert_eq!(count(&mut w), LARGE - 1);
        w.node.freeze();
        assert!(!w.node.versions().place(0), "a layer stands for whole commits");
        assert_eq!(count(&mut w), LARGE - 1);
        w.crash();
        assert_eq!(count(&mut w), LARGE - 1);
    }
}

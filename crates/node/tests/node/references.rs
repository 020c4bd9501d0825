//! Keys that are deleted beside references to them: who goes by what he saw before, hears of it, whatever he makes of the key (decision 231).

use super::{World, bytes};
use clock::Timestamp;
use node::{Isolation, LockMode, Transaction, TxnError, WhenLocked};
use std::task::{Poll, Waker};
use store::MemoryEngine;

const LEVELS: [Isolation; 3] = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];

impl World {
    /// A row that refers to `parent`.
    fn refer(&mut self, child: &str) -> Result<Timestamp, TxnError> {
        let mut txn = self.begin(Isolation::ReadCommitted);
        assert_eq!(txn.present(b"parent", Waker::noop()), Poll::Ready(Ok(true)));
        txn.put(bytes(child), bytes("refers")).unwrap();
        self.commit(&mut txn)
    }

    /// What is below `k`, looked at by reads that are not remembered; and what was seen of it counts for `parent`.
    fn go_by(&mut self, txn: &mut Transaction<MemoryEngine>) -> usize {
        let seen = self.look(txn);
        let looked = txn.snapshot();
        assert!(txn.unreferred(&bytes("parent"), looked));
        seen
    }

    fn look(&mut self, txn: &mut Transaction<MemoryEngine>) -> usize {
        match txn.observe_scan(&self.now(), &(bytes("a")..bytes("k")), false, 100, Waker::noop()) {
            Poll::Ready(chunk) => chunk.unwrap().rows.len(),
            Poll::Pending => panic!("nothing is in flight"),
        }
    }
}

fn world(split: bool) -> World {
    let mut w = World::new();
    w.set(&[("parent", "0"), ("q", "0")]);
    if split {
        w.split("m");
    }
    w
}

/// What becomes of the key whose references were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Deleted,
    PutBack,
    Untouched,
}

/// Whether one commits who had looked before somebody came to refer to the key.
fn commits(isolation: Isolation, split: bool, large: bool, fate: Fate, forgets: bool) -> bool {
    let mut w = world(split);
    w.node.sabotage().set_forget_who_refers(forgets);
    let mut deletes = w.begin(isolation);
    assert_eq!(w.go_by(&mut deletes), 0);
    w.refer("c").unwrap();
    if fate != Fate::Untouched {
        deletes.delete(bytes("parent")).unwrap();
    }
    if fate == Fate::PutBack {
        deletes.put(bytes("parent"), bytes("again")).unwrap();
    }
    deletes.put(bytes("a"), bytes("done")).unwrap();
    // So many that they are certified where they stand.
    (0..if large { 20_000 } else { 0 }).for_each(|n| deletes.put(bytes(&format!("x{n}")), bytes("")).unwrap());
    let committed = w.commit(&mut deletes);
    assert!(matches!(committed, Ok(_) | Err(TxnError::Restart { .. })), "{committed:?}");
    w.crash();
    assert_eq!(w.value("a").is_some(), committed.is_ok(), "a replay decides the same");
    let parent = match (committed.is_ok(), fate) {
        (true, Fate::Deleted) => None,
        (true, Fate::PutBack) => Some("again"),
        _ => Some("0"),
    };
    assert_eq!(w.value("parent").as_deref(), parent);
    committed.is_ok()
}

#[test]
fn who_has_seen_nobody_who_refers_does_not_commit_beside_one() {
    for isolation in LEVELS {
        for fate in [Fate::Deleted, Fate::PutBack, Fate::Untouched] {
            for (split, large) in [(false, false), (true, false), (false, true), (true, true)] {
                let case = format!("{isolation:?}, {fate:?}, split: {split}, large: {large}");
                assert!(!commits(isolation, split, large, fate, false), "{case}");
                assert!(commits(isolation, split, large, fate, true), "a control: {case}");
            }
        }
    }
}

/// Of several looks the first counts: what it showed has had its effects.
#[test]
fn a_later_look_takes_nothing_back() {
    for split in [false, true] {
        let mut w = world(split);
        let mut deletes = w.begin(Isolation::ReadCommitted);
        assert_eq!(w.go_by(&mut deletes), 0);
        w.refer("c").unwrap();
        deletes.begin_statement(&w.now()).unwrap();
        assert_eq!(w.go_by(&mut deletes), 1);
        deletes.delete(bytes("parent")).unwrap();
        assert!(matches!(w.commit(&mut deletes), Err(TxnError::Restart { .. })));
    }
}

/// What is taken back goes by nothing any more, but that a SERIALIZABLE transaction has told what it saw.
#[test]
fn a_savepoint_takes_back_what_was_gone_by() {
    for isolation in LEVELS {
        for split in [false, true] {
            for before in [false, true] {
                let mut w = world(split);
                let mut txn = w.begin(isolation);
                if before {
                    assert_eq!(w.go_by(&mut txn), 0);
                }
                let mark = txn.savepoint();
                assert_eq!(w.go_by(&mut txn), 0);
                txn.delete(bytes("parent")).unwrap();
                txn.rollback_to(mark);
                w.refer("c").unwrap();
                txn.put(bytes("a"), bytes("else")).unwrap();
                let stays = !before && isolation != Isolation::Serializable;
                assert_eq!(w.commit(&mut txn).is_ok(), stays, "{isolation:?} {split} {before}");
            }
        }
    }
}

/// An earlier statement wrote to the row, and somebody came to refer to it; the look of the later one counts, or that of its child's index, and not the earlier snapshot.
#[test]
fn what_was_written_before_the_look_does_not_count() {
    for split in [false, true] {
        for index in [false, true] {
            let mut w = world(split);
            let mut deletes = w.begin(Isolation::ReadCommitted);
            deletes.put(bytes("parent"), bytes("1")).unwrap();
            w.refer("c").unwrap();
            deletes.begin_statement(&w.now()).unwrap();
            if index {
                let span = bytes("a")..bytes("k");
                let chunk = deletes.scan(&w.now(), &span, false, 100, true, Waker::noop());
                assert!(matches!(chunk, Poll::Ready(Ok(chunk)) if chunk.rows.len() == 1));
            } else {
                assert_eq!(w.go_by(&mut deletes), 1);
            }
            deletes.delete(bytes("c")).unwrap();
            deletes.delete(bytes("parent")).unwrap();
            w.commit(&mut deletes).unwrap();
            assert_eq!((w.value("parent"), w.value("c")), (None, None));
        }
    }
}

#[test]
fn others_are_not_met() {
    for isolation in LEVELS {
        for split in [false, true] {
            let mut w = world(split);
            // What stays, though it is written; what is deleted by who need not look; and a reference that was seen.
            let mut changes = w.begin(isolation);
            let mut another = w.begin(isolation);
            w.refer("c").unwrap();
            changes.put(bytes("parent"), bytes("1")).unwrap();
            w.commit(&mut changes).unwrap();
            another.delete(bytes("q")).unwrap();
            w.commit(&mut another).unwrap();
            let mut deletes = w.begin(isolation);
            assert_eq!(w.go_by(&mut deletes), 1);
            deletes.delete(bytes("c")).unwrap();
            deletes.delete(bytes("parent")).unwrap();
            w.commit(&mut deletes).unwrap();
        }
    }
}

/// The strongest lock shows who refers to the key, at READ COMMITTED; elsewhere the snapshot stays, and the commit says so.
#[test]
fn who_locks_a_key_sees_who_refers_to_it() {
    for isolation in LEVELS {
        for together in [false, true] {
            let mut w = world(false);
            let mut deletes = w.begin(isolation);
            w.refer("c").unwrap();
            let now = w.now();
            if together {
                let alone = isolation == Isolation::ReadCommitted;
                assert_eq!(
                    deletes.lock_all(&[b"parent"], LockMode::Update),
                    usize::from(!alone),
                    "it is to be locked by itself"
                );
            }
            let weak = deletes.lock(&now, b"parent", LockMode::NoKeyUpdate, WhenLocked::Wait, Waker::noop());
            assert!(matches!(weak, Poll::Ready(Ok(true))));
            assert_eq!(w.look(&mut deletes), 0, "who leaves the key alone stays where he is");
            let locked = deletes.lock(&now, b"parent", LockMode::Update, WhenLocked::Wait, Waker::noop());
            assert!(matches!(locked, Poll::Ready(Ok(true))));
            let moves = isolation == Isolation::ReadCommitted;
            assert_eq!(w.go_by(&mut deletes), usize::from(moves), "{isolation:?}");
            deletes.delete(bytes("parent")).unwrap();
            assert_eq!(w.commit(&mut deletes).is_ok(), moves, "{isolation:?}");
            assert_eq!(w.value("parent").is_none(), moves);
        }
    }
}

/// A row is not passed over for being referred to, where the snapshot cannot move to the reference, as something else has changed.
#[test]
fn who_skips_what_is_locked_skips_nothing_that_is_referred_to() {
    for isolation in LEVELS {
        for together in [false, true] {
            let mut w = world(false);
            let mut skips = w.begin(isolation);
            let now = w.now();
            assert!(matches!(skips.get(&now, b"q", false, Waker::noop()), Poll::Ready(Ok(Some(_)))));
            w.refer("c").unwrap();
            w.set(&[("q", "1")]);
            if together {
                skips.lock_all(&[b"parent"], LockMode::Update);
            }
            let locked = skips.lock(&now, b"parent", LockMode::Update, WhenLocked::Skip, Waker::noop());
            assert!(matches!(locked, Poll::Ready(Ok(true))), "{isolation:?} {together}: {locked:?}");
            assert_eq!(w.look(&mut skips), 0, "it has stayed");
        }
    }
}

/// A transaction that refers to more keys than are remembered so.
#[test]
fn of_many_references_none_is_missed() {
    for split in [false, true] {
        let mut w = world(split);
        let keys: Vec<String> = (0..65_600).map(|n| format!("p{n:06}")).collect();
        for some in keys.chunks(8192) {
            w.set(&some.iter().map(|key| (&key[..], "0")).collect::<Vec<_>>());
        }
        let mut changes = w.begin(Isolation::ReadCommitted);
        let [mut early, mut late, mut other] = [(); 3].map(|()| w.begin(Isolation::ReadCommitted));
        for (txn, key) in [(&mut early, &keys[5][..]), (&mut late, &keys[65_590][..]), (&mut other, "q")] {
            let looked = txn.snapshot();
            assert!(txn.unreferred(&bytes(key), looked));
            txn.delete(bytes(key)).unwrap();
        }
        let mut refers = w.begin(Isolation::ReadCommitted);
        for key in &keys {
            assert_eq!(refers.present(key.as_bytes(), Waker::noop()), Poll::Ready(Ok(true)));
        }
        refers.put(bytes("c"), bytes("refers")).unwrap();
        w.commit(&mut refers).unwrap();
        for (txn, key) in [(&mut early, &keys[5]), (&mut late, &keys[65_590])] {
            assert!(matches!(w.commit(txn), Err(TxnError::Restart { .. })), "{key}");
        }
        w.commit(&mut other).unwrap();
        // They were only read.
        for key in [&keys[5], &keys[65_590]] {
            changes.put(bytes(key), bytes("1")).unwrap();
        }
        w.commit(&mut changes).unwrap();
    }
}

//! The age of snapshots (004 section 2.4.3): a reader of `token` that stands a little in the past waits for no commit, and still goes back behind nothing that its session saw.

use super::client::{Txn, pairs, set};
use super::links::lead;
use super::world::{Prepare, World, founding};
use clock::Timestamp;
use node::{BeginOptions, Consistency, SnapshotAge, TxnError};

fn aged(consistency: Consistency, snapshot_age: SnapshotAge, token: Timestamp) -> BeginOptions {
    BeginOptions { consistency, snapshot_age, token, ..BeginOptions::default() }
}

/// A key of node 2 is written again and again; node 1 reads it while each write is on its way. How many reads waited at node 2, and whether all read what had been
/// written about as long ago as their snapshots are old, or later.
fn waits_beside_a_writer(mode: Consistency, age: SnapshotAge) -> u64 {
    let mut w = World::new(51, 3, founding(&["", "m"], &[1, 2, 3]), |_| {});
    (1..=3).for_each(|node| w.set_watch(node, 0, 1_000));
    lead(&mut w, 1, 1);
    lead(&mut w, 2, 2);
    w.ask(1, async |env| set(env, pairs(&[("a", "0"), ("p", "0")])).await);
    w.run(1_000_000);
    let before = w.member(2).counters().txn_read_waits.get();
    for n in 1..=20 {
        w.spawn(2, move |env| {
            Box::pin(async move {
                let mut txn = Txn::hybrid(&env).unwrap();
                txn.put("p", n);
                txn.commit().await.unwrap();
            })
        });
        // The read arrives while the write is being replicated.
        w.run(200);
        let seen: i64 = w.ask(1, async move |env| {
            Txn::with(&env, aged(mode, age, Timestamp::MIN)).unwrap().number("p").await.unwrap()
        });
        assert!((n - 2..=n).contains(&seen), "{age:?}: {seen} of {n}");
        w.run(100_000);
    }
    w.member(2).counters().txn_read_waits.get() - before
}

#[test]
fn a_snapshot_of_a_little_age_waits_for_no_commit() {
    assert!(waits_beside_a_writer(Consistency::Token, SnapshotAge::Present) >= 15, "it meets what is being written");
    for mode in [Consistency::Token, Consistency::None] {
        assert_eq!(waits_beside_a_writer(mode, SnapshotAge::Fixed(30_000)), 0, "{mode:?}");
        assert_eq!(waits_beside_a_writer(mode, SnapshotAge::Tuned), 0, "{mode:?}: by what commits took here");
    }
}

/// 004 section 2.2: a session's own snapshots never go back, however old they may be.
#[test]
fn a_session_sees_what_it_wrote_whatever_the_age() {
    let modes = [Consistency::Token, Consistency::None];
    let ages = [SnapshotAge::Fixed(900_000), SnapshotAge::Tuned];
    for (mode, age) in modes.into_iter().flat_map(|mode| ages.map(|age| (mode, age))) {
        let mut w = World::new(52, 3, founding(&[""], &[1, 2, 3]), |_| {});
        lead(&mut w, 1, 2);
        let mut token = w.ask(1, async |env| set(env, pairs(&[("a", "0")])).await);
        for n in 1..5 {
            token = w.ask(1, async move |env| {
                let mut txn = Txn::with(&env, aged(mode, age, token)).unwrap();
                assert_eq!(txn.number("a").await.unwrap(), n - 1, "{mode:?} {age:?}");
                txn.put("a", n);
                txn.commit().await.unwrap()
            });
        }
    }
}

/// Who has waited for a lock sees what its holder did, however old its snapshots are otherwise.
#[test]
fn who_waited_for_a_lock_sees_what_was_done_meanwhile() {
    let mut w = World::new(53, 3, founding(&[""], &[1, 2, 3]), |_| {});
    lead(&mut w, 1, 1);
    w.ask(1, async |env| set(env, pairs(&[("guard", "0"), ("log", "0")])).await);
    w.run(2_000_000);
    w.ask(1, async |env| set(env, pairs(&[("log", "1")])).await);
    let (before, after) = w.ask(1, async |env| {
        let options = BeginOptions {
            isolation: node::Isolation::ReadCommitted,
            ..aged(Consistency::Token, SnapshotAge::Fixed(900_000), Timestamp::MIN)
        };
        let mut txn = Txn::with(&env, options).unwrap();
        let before = txn.number("log").await.unwrap();
        txn.txn.begin_statement(&env.now()).unwrap();
        txn.lock("guard").await.unwrap();
        txn.txn.begin_statement(&env.now()).unwrap();
        (before, txn.number("log").await.unwrap())
    });
    assert_eq!((before, after), (0, 1), "of an age before the lock, of the present behind it");
}

/// A key is written again and again, and its past is kept for a moment only; node 1 reads it with snapshots of a second. How many of its reads were refused.
fn refused_where_little_is_kept(kept_us: u64, prepare: Prepare) -> usize {
    let mut w = World::new(54, 3, founding(&["", "m"], &[1, 2, 3]), prepare);
    (1..=3).for_each(|node| w.set_watch(node, 0, 1_000));
    lead(&mut w, 1, 1);
    lead(&mut w, 2, 2);
    w.run(4_000_000);
    let mut refused = 0;
    for n in 1..=30 {
        w.ask(2, async move |env| set(env, pairs(&[("a", &n.to_string()), ("p", &n.to_string())])).await);
        for node in 1..=3 {
            let now = w.env(node).now();
            let threshold = Timestamp::new(now.interval.earliest().physical_us() - kept_us, 0);
            w.member(node).collect(&now, threshold);
            w.drain(node);
        }
        w.run(100_000);
        let options = aged(Consistency::Token, SnapshotAge::Fixed(1_000_000), Timestamp::MIN);
        let seen = w.ask(1, async move |env| Txn::with(&env, options).unwrap().number("p").await);
        match seen {
            // Ten rounds a second, at most.
            Ok(seen) => assert!((n - 11..=n).contains(&seen), "{seen} of {n}"),
            Err(TxnError::SnapshotUnavailable { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    refused
}

/// Nobody who asked for a snapshot of a little age is told that the past is gone.
#[test]
fn a_snapshot_is_no_older_than_what_is_kept() {
    for kept_us in [300_000, 600_000, 1_000_000, 1_500_000, 60_000_000] {
        assert_eq!(refused_where_little_is_kept(kept_us, |_| {}), 0, "{kept_us}");
    }
    let by_age = refused_where_little_is_kept(600_000, |sabotage| sabotage.set_age_beyond_what_is_kept(true));
    assert!(by_age > 10, "{by_age}");
}

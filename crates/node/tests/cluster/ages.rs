//! The age of snapshots (004 section 2.4.3): a reader of `token` that stands a little in the past waits for no commit, and still goes back behind nothing that its session saw.

use super::client::{Txn, pairs, set};
use super::links::lead;
use super::world::{World, founding};
use clock::Timestamp;
use node::{BeginOptions, Consistency, SnapshotAge};

fn aged(snapshot_age: SnapshotAge, token: Timestamp) -> BeginOptions {
    BeginOptions { consistency: Consistency::Token, snapshot_age, token, ..BeginOptions::default() }
}

/// A key of node 2 is written again and again; node 1 reads it while each write is on its way. How many reads waited at node 2, and whether all read what had been
/// written about as long ago as their snapshots are old, or later.
fn waits_beside_a_writer(age: SnapshotAge) -> u64 {
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
        let seen: i64 =
            w.ask(1, async move |env| Txn::with(&env, aged(age, Timestamp::MIN)).unwrap().number("p").await.unwrap());
        assert!((n - 2..=n).contains(&seen), "{age:?}: {seen} of {n}");
        w.run(100_000);
    }
    w.member(2).counters().txn_read_waits.get() - before
}

#[test]
fn a_snapshot_of_a_little_age_waits_for_no_commit() {
    assert!(waits_beside_a_writer(SnapshotAge::Present) >= 15, "it meets what is being written");
    assert_eq!(waits_beside_a_writer(SnapshotAge::Fixed(30_000)), 0);
    assert_eq!(waits_beside_a_writer(SnapshotAge::Tuned), 0, "by what commits took here");
}

/// 004 section 2.2: a session's own snapshots never go back, however old they may be.
#[test]
fn a_session_sees_what_it_wrote_whatever_the_age() {
    for age in [SnapshotAge::Fixed(900_000), SnapshotAge::Tuned] {
        let mut w = World::new(52, 3, founding(&[""], &[1, 2, 3]), |_| {});
        lead(&mut w, 1, 2);
        let mut token = w.ask(1, async |env| set(env, pairs(&[("a", "0")])).await);
        for n in 1..5 {
            token = w.ask(1, async move |env| {
                let mut txn = Txn::with(&env, aged(age, token)).unwrap();
                assert_eq!(txn.number("a").await.unwrap(), n - 1, "{age:?}");
                txn.put("a", n);
                txn.commit().await.unwrap()
            });
        }
    }
}

//! What time takes of a commit (rule 1), and how much of that replication takes anyway: told to whoever commits, wherever the range is led.

use super::client::{Txn, pairs, set};
use super::links::lead;
use super::world::{World, founding, poll_fn};
use node::cluster::VERSION_MAX;
use node::{BeginOptions, Consistency};
use protocol::door::CommitWait;

/// A commit at node 1 of these keys, which nodes 1 and 2 lead, where each clock may be off by so much.
fn wait(version: u16, error_us: u64, consistency: Consistency, names: &'static [&'static str]) -> CommitWait {
    let mut w = World::of_version(version, 41, 3, founding(&["", "m"], &[1, 2, 3]), |_| {});
    (1..=3).for_each(|node| w.set_watch(node, 0, error_us));
    lead(&mut w, 1, 1);
    lead(&mut w, 2, 2);
    w.ask(1, async |env| set(env, pairs(&[("a", "0"), ("p", "0")])).await);
    w.run(1_000_000);
    w.ask(1, async move |env| {
        let mut txn = Txn::with(&env, BeginOptions { consistency, ..BeginOptions::default() }).unwrap();
        names.iter().for_each(|name| txn.put(name, 1));
        poll_fn(|cx| txn.txn.commit(&env.now(), cx.waker())).await.unwrap();
        txn.txn.stats().commit_wait
    })
}

#[test]
fn what_a_commit_waits_for_time_is_what_replication_does_not_hide() {
    for names in [&["a"][..], &["p"], &["a", "p"]] {
        let strict = |error_us| wait(VERSION_MAX, error_us, Consistency::Strict, names);
        // Twice the error, from when a leader gave the timestamp: 1 ms less where the request travels to it.
        let long = strict(4_900);
        let (hidden_us, held_us) = (long.hidden_ns / 1000, long.held_ns / 1000);
        assert!((1_000..9_000).contains(&hidden_us), "{names:?}: a sync and a round trip or two: {hidden_us} us");
        assert!((8_500..=10_500).contains(&(hidden_us + held_us)), "{names:?}: {hidden_us} us and {held_us} us");
        let short = strict(200);
        assert_eq!(short.held_ns, 0, "{names:?}: replication takes longer");
        assert!((0..=405_000).contains(&short.hidden_ns), "{names:?}: at most twice the error: {short:?}");
        assert_eq!(wait(VERSION_MAX, 4_900, Consistency::Hybrid, names), CommitWait::NONE, "{names:?}");
    }
}

/// Of a cluster in which an older program may ask, a leader elsewhere does not say it.
#[test]
fn whoever_could_not_read_it_is_not_told() {
    assert_eq!(wait(2, 4_900, Consistency::Strict, &["p"]), CommitWait::NONE);
}

/// It is counted where a commit is answered, and not at each replica that keeps it from its readers until it is past.
#[test]
fn a_commit_that_waits_is_counted_once() {
    let mut w = World::of_version(VERSION_MAX, 42, 3, founding(&["", "m"], &[1, 2, 3]), |_| {});
    (1..=3).for_each(|node| w.set_watch(node, 0, 4_900));
    lead(&mut w, 1, 1);
    lead(&mut w, 2, 2);
    w.run(1_000_000);
    let waits = |w: &World| (1..=3).map(|node| w.member(node).counters().txn_commit_waits.get()).sum::<u64>();
    for (names, most) in [(&["a"][..], 1), (&["p"], 1), (&["a", "p"], 3)] {
        let before = waits(&w);
        w.ask(1, async move |env| {
            let strict = BeginOptions { consistency: Consistency::Strict, ..BeginOptions::default() };
            let mut txn = Txn::with(&env, strict).unwrap();
            names.iter().for_each(|name| txn.put(name, 1));
            poll_fn(|cx| txn.txn.commit(&env.now(), cx.waker())).await.unwrap();
        });
        w.run(300_000);
        let counted = waits(&w) - before;
        assert!((1..=most).contains(&counted), "{names:?}: {counted}");
    }
}

//! What is uncertain to a `hybrid` reader, and what it costs him: 000, figures 2.1 and 2.2, and section 5.4.

use super::client::{Txn, pairs, set};
use super::links::lead;
use super::world::{Prepare, World, founding};
use node::cluster::{Class, Message, VERSION_MAX};
use node::{BeginOptions, Consistency, TxnError, Uncertainty};
use protocol::door::{Body, Frame, Request};

fn intact(_: &node::Sabotage) {}

fn hybrid(uncertainty: Uncertainty) -> BeginOptions {
    BeginOptions { consistency: Consistency::Hybrid, uncertainty, ..BeginOptions::default() }
}

const HALF_A_SECOND: Uncertainty = Uncertainty::Static(500_000);

/// Figure 2.1: x is written at node 2, whose clock shows 42.004; then it is read at node 1, which is behind and shows less. What is read, and after how many
/// restarts: they are necessary.
fn figure_2_1(uncertainty: Uncertainty, prepare: Prepare) -> (Option<String>, u64) {
    let mut w = World::new(21, 3, founding(&[""], &[1, 2, 3]), prepare);
    (2..=3).for_each(|node| w.set_watch(node, 0, 100));
    w.set_watch(1, -300_000, 300_000);
    lead(&mut w, 1, 2);
    w.ask(2, async |env| set(env, pairs(&[("x", "0")])).await);
    w.run(1_000_000);
    w.ask(2, async |env| {
        let mut txn = Txn::hybrid(&env).unwrap();
        txn.put("x", "1");
        txn.commit().await.unwrap();
    });
    w.ask(1, async move |env| {
        let mut txn = Txn::with(&env, hybrid(uncertainty)).unwrap();
        let seen = txn.get("x").await.unwrap();
        (seen, txn.txn.stats().uncertainty_restarts)
    })
}

#[test]
fn figure_2_1_a_reader_behind_restarts_and_sees_what_was_acknowledged() {
    for uncertainty in [Uncertainty::Dynamic, HALF_A_SECOND, Uncertainty::Fallback(1)] {
        assert_eq!(figure_2_1(uncertainty, intact), (Some("1".to_owned()), 1), "{uncertainty:?}");
        let stale = figure_2_1(uncertainty, |sabotage| sabotage.set_skip_uncertainty(true));
        assert_eq!(stale, (Some("0".to_owned()), 0), "{uncertainty:?}: without the check it is stale");
    }
    // An offset that is set too small is the operator's mistake, and shows as what it is.
    assert_eq!(figure_2_1(Uncertainty::Static(100_000), intact), (Some("0".to_owned()), 0));
}

/// Figure 2.2: a transaction at node 1 reads x, which is led there; then y is written at node 2, by a clock that is right; then the transaction reads y. What
/// it reads, and after how many restarts: they are not necessary.
fn figure_2_2(uncertainty: Uncertainty) -> (Option<String>, u64) {
    let mut w = World::new(22, 3, founding(&["", "y"], &[1, 2, 3]), intact);
    (1..=3).for_each(|node| w.set_watch(node, 0, 100));
    lead(&mut w, 1, 1);
    lead(&mut w, 2, 2);
    w.ask(1, async |env| set(env, pairs(&[("x", "0"), ("y", "0")])).await);
    w.run(1_000_000);
    let mut txn = w.ask(1, async move |env| {
        let mut txn = Txn::with(&env, hybrid(uncertainty)).unwrap();
        assert_eq!(txn.get("x").await.unwrap().as_deref(), Some("0"));
        txn
    });
    w.ask(2, async |env| set(env, pairs(&[("y", "1")])).await);
    w.ask(1, async move |_| {
        let seen = txn.get("y").await.unwrap();
        (seen, txn.txn.stats().uncertainty_restarts)
    })
}

#[test]
fn figure_2_2_a_measured_bound_spares_restarts_that_a_static_offset_makes() {
    assert_eq!(figure_2_2(Uncertainty::Dynamic), (Some("0".to_owned()), 0));
    assert_eq!(figure_2_2(Uncertainty::Fallback(500_000)), (Some("0".to_owned()), 0), "the bound is known");
    assert_eq!(figure_2_2(HALF_A_SECOND), (Some("1".to_owned()), 1));
}

/// The snapshot moves past an uncertain version where nothing that was read has changed in between; where something has, the transaction begins again.
#[test]
fn what_was_read_and_has_changed_cannot_be_refreshed() {
    let mut w = World::new(22, 3, founding(&["", "y"], &[1, 2, 3]), intact);
    (1..=3).for_each(|node| w.set_watch(node, 0, 100));
    lead(&mut w, 1, 1);
    lead(&mut w, 2, 2);
    w.ask(1, async |env| set(env, pairs(&[("x", "0"), ("y", "0")])).await);
    w.run(1_000_000);
    let mut txn = w.ask(1, async move |env| {
        let mut txn = Txn::with(&env, hybrid(HALF_A_SECOND)).unwrap();
        assert_eq!(txn.get("x").await.unwrap().as_deref(), Some("0"));
        txn
    });
    w.ask(2, async |env| set(env, pairs(&[("x", "1"), ("y", "1")])).await);
    let seen = w.ask(1, async move |_| txn.get("y").await);
    assert!(matches!(seen, Err(TxnError::Restart { .. })), "{seen:?}");
    assert_eq!(w.member(1).counters().txn_refresh_failures.get(), 1);
}

/// 000, section 5.4: a range of node 2, one of node 3 and another one of node 2 are written, each just before a transaction reads it. What it reads, and its restarts.
fn one_after_the_other(version: u16, prepare: Prepare) -> (Vec<Option<String>>, u64) {
    let mut w = World::of_version(version, 23, 3, founding(&["", "g", "m"], &[1, 2, 3]), prepare);
    (1..=3).for_each(|node| w.set_watch(node, 0, 100));
    for (range, node) in [(1, 2), (2, 2), (3, 3)] {
        lead(&mut w, range, node);
    }
    w.ask(3, async |env| set(env, pairs(&[("a", "0"), ("h", "0"), ("p", "0")])).await);
    w.run(1_000_000);
    let mut txn = w.ask(1, async |env| Txn::with(&env, hybrid(HALF_A_SECOND)).unwrap());
    let mut seen = Vec::new();
    for name in ["a", "p", "h"] {
        w.ask(3, async move |env| set(env, pairs(&[(name, "1")])).await);
        let (value, after) = w.ask(1, async move |_| (txn.get(name).await.unwrap(), txn));
        seen.push(value);
        txn = after;
    }
    (seen, txn.txn.stats().uncertainty_restarts)
}

#[test]
fn one_node_causes_at_most_one_restart() {
    let text = |values: [&str; 3]| values.map(|value| Some(value.to_owned())).to_vec();
    assert_eq!(
        one_after_the_other(VERSION_MAX, intact),
        (text(["1", "1", "0"]), 2),
        "h was written after node 2 was met"
    );
    let each = one_after_the_other(VERSION_MAX, |sabotage| sabotage.set_never_catch_up(true));
    assert_eq!(each, (text(["1", "1", "1"]), 3));
    // Where a leader may be of a program that does not know what such a read means, each costs one.
    assert_eq!(one_after_the_other(2, intact), each);
}

/// 4a.6: a transaction of two ranges is prepared at node 2, whose clock is behind, and committed with the timestamp of node 3, which is ahead of it; word of that
/// does not come to node 2. A transaction that begins afterwards meets node 2 with another key, and moves past its time, which is still below that commit. Then
/// the word comes, and it reads what was committed.
fn late_commit(prepare: Prepare) -> Option<String> {
    let mut w = World::new(24, 3, founding(&["", "g", "m"], &[1, 2, 3]), prepare);
    w.set_watch(1, -900_000, 900_000);
    w.set_watch(2, -300_000, 300_000);
    w.set_watch(3, 0, 100);
    for (range, node) in [(1, 2), (2, 2), (3, 3)] {
        lead(&mut w, range, node);
    }
    w.ask(3, async |env| set(env, pairs(&[("a", "0"), ("h", "0"), ("p", "0")])).await);
    w.run(4_000_000);
    w.ask(3, async |env| {
        let mut txn = Txn::hybrid(&env).unwrap();
        txn.put("a", "1");
        txn.commit().await.unwrap();
    });
    w.lose = Some(|message: &Message| {
        let body = (message.class == Class::Request).then(|| Frame::decode(&message.bytes).unwrap().body);
        matches!(body, Some(Body::Request { request: Request::Outcome { .. }, .. }))
    });
    let begun = w.ask(3, async |env| {
        let mut txn = Txn::hybrid(&env).unwrap();
        txn.put("h", "1");
        txn.put("p", "1");
        txn
    });
    // Node 2 stamps right above its snapshot, node 3 by the clock.
    w.run(200_000);
    w.ask(3, async move |_| begun.commit().await.unwrap());
    let mut txn = w.ask(1, async |env| {
        let mut txn = Txn::hybrid(&env).unwrap();
        assert_eq!(txn.get("a").await.unwrap().as_deref(), Some("1"));
        assert_eq!(txn.txn.stats().uncertainty_restarts, 1);
        txn
    });
    w.lose = None;
    w.until("the word comes", |w| w.member(2).status(node::RangeId(2)).unwrap().prepared == 0);
    w.ask(1, async move |_| txn.get("h").await.unwrap())
}

#[test]
fn what_was_prepared_before_and_committed_above_is_seen_by_who_has_caught_up() {
    assert_eq!(late_commit(intact).as_deref(), Some("1"));
    assert_eq!(late_commit(|sabotage| sabotage.set_forget_late_commits(true)).as_deref(), Some("0"), "stale");
}

//! The past is read at any replica, also where nobody leads.

use super::client::{Txn, pairs, set};
use super::world::{Prepare, Weather, World, founding};
use clock::Timestamp;
use node::cluster::{Class, Message};
use node::{BeginOptions, Consistency, RangeId, TxnError};
use protocol::door::{Answer, Body, Frame, Request};
use std::cell::RefCell;
use std::rc::Rc;

fn world(seed: u64, weather: Weather, prepare: Prepare) -> World {
    let mut w = World::new(seed, 4, founding(&["", "m"], &[1, 2, 3]), prepare);
    w.weather = weather;
    w.await_leader(1);
    w.await_leader(2);
    w
}

async fn rows_at(env: super::world::Env, at: Timestamp) -> Result<Vec<(String, String)>, TxnError> {
    let mut txn = Txn::with(&env, BeginOptions { as_of: Some(at), ..BeginOptions::default() })?;
    let one = txn.get("a").await?;
    let rows = txn.scan("", "~", false).await?;
    assert_eq!(one.as_ref(), rows.iter().find(|(key, _)| key == "a").map(|(_, value)| value));
    Ok(rows)
}

fn owned(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs(rows)
}

#[test]
fn a_replica_serves_what_is_resolved_while_the_others_are_gone() {
    for (seed, weather, led) in
        [(61, Weather::calm(), 0), (62, Weather::rough(), 0), (63, Weather::rough(), 0), (65, Weather::calm(), 2)]
    {
        let mut w = world(seed, weather, |_| {});
        let first = w.ask(4, async |env| set(env, pairs(&[("a", "1"), ("p", "1")])).await);
        w.run(1_000_000);
        w.ask(4, async |env| set(env, pairs(&[("a", "2"), ("p", "2")])).await);
        w.run(8_000_000);
        for node in 1..=3 {
            let resolved = w.member(node).status(RangeId(1)).unwrap().resolved;
            assert!(resolved > first, "n{node} {resolved}");
            let before = w.member(node).counters().requests_sent.get();
            let seen = w.ask(node, async move |env| rows_at(env, first).await);
            assert_eq!(seen, Ok(owned(&[("a", "1"), ("p", "1")])), "n{node}");
            assert_eq!(w.member(node).counters().requests_sent.get(), before, "n{node} asks nobody");
        }
        // Alone, it still knows the past, and nothing of the present.
        // One that followed, and the one that led.
        let alone = (w.leader(1).unwrap() + led) % 3 + 1;
        for node in (1..=3).filter(|node| *node != alone) {
            w.crash(node);
        }
        w.run(20_000_000);
        let seen = w.ask(alone, async move |env| rows_at(env, first).await);
        assert_eq!(seen, Ok(owned(&[("a", "1"), ("p", "1")])));
        let resolved = w.member(alone).status(RangeId(1)).unwrap().resolved;
        let unknown = Timestamp::new(resolved.physical_us() + 3_000_000, 0);
        let present = Consistency::Token;
        for (at, consistency) in [(Some(unknown), Consistency::None), (None, present)] {
            let options = BeginOptions { as_of: at, consistency, ..BeginOptions::default() };
            let seen = w.ask(alone, async move |env| Txn::with(&env, options).unwrap().get("a").await);
            assert!(matches!(seen, Err(TxnError::Unavailable { .. })), "{seen:?}");
        }
        // Who asks for nothing of the present gets what is there.
        let options = BeginOptions { consistency: Consistency::None, ..BeginOptions::default() };
        let seen = w.ask(alone, async move |env| Txn::with(&env, options).unwrap().get("a").await);
        assert_eq!(seen, Ok(Some("2".to_owned())));
    }
}

/// A transaction is prepared in two ranges and committed; word of that does not come, and what is closed passes it.
fn read_beside_a_prepare(prepare: Prepare) -> Vec<(String, String)> {
    let mut w = world(64, Weather::calm(), prepare);
    w.ask(4, async |env| set(env, pairs(&[("a", "1"), ("p", "1")])).await);
    w.lose = Some(|message: &Message| {
        let body = (message.class == Class::Request).then(|| Frame::decode(&message.bytes).unwrap().body);
        matches!(
            body,
            Some(
                Body::Request { request: Request::Outcome { .. } | Request::Fence { .. }, .. }
                    | Body::Answer { answer: Answer::Prepared(_), .. }
            )
        )
    });
    let told = Rc::new(RefCell::new(None));
    let result = told.clone();
    w.spawn(4, move |env| {
        Box::pin(async move {
            let mut txn = Txn::begin(&env).unwrap();
            txn.put("a", "2");
            txn.put("p", "2");
            *result.borrow_mut() = Some(txn.commit().await);
        })
    });
    w.run(500_000);
    let after = w.env(4).now().interval.latest();
    w.run(5_000_000);
    // The follower of both, if there is one; it is closed there by now.
    let follower = (1..=3).find(|node| w.leader(1) != Some(*node) && w.leader(2) != Some(*node)).unwrap();
    let closed = w.member(follower).status(RangeId(1)).unwrap();
    assert!(closed.prepared == 1, "{closed:?}");
    let seen = Rc::new(RefCell::new(None));
    let result = seen.clone();
    w.spawn(follower, move |env| Box::pin(async move { *result.borrow_mut() = Some(rows_at(env, after).await) }));
    w.run(1_000_000);
    w.lose = None;
    w.until("it is read", |_| seen.borrow().is_some());
    w.until("it is told", |_| told.borrow().is_some());
    let committed = told.take().unwrap();
    assert!(committed.is_ok(), "{committed:?}");
    seen.take().unwrap().unwrap()
}

#[test]
fn what_is_closed_and_undecided_is_not_read() {
    assert_eq!(read_beside_a_prepare(|_| {}), owned(&[("a", "2"), ("p", "2")]));
    let wrong = read_beside_a_prepare(|sabotage| sabotage.set_closed_is_resolved(true));
    assert_eq!(wrong, owned(&[("a", "1"), ("p", "1")]), "a commit at or below the snapshot is missed");
}

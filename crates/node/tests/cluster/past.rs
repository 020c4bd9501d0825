//! The past is read at any replica, also where nobody leads.

use super::client::{Txn, pairs, set};
use super::world::{Prepare, Weather, World, founding};
use clock::Timestamp;
use node::cluster::{Class, LogLimits, Message};
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

/// Who was started again and hears nobody has what its log closes, of all its ranges.
#[test]
fn a_survivor_that_was_started_again_reads_what_it_has() {
    for (seed, weather, flushed) in
        [(71, Weather::calm(), false), (72, Weather::rough(), true), (73, Weather::rough(), false)]
    {
        // As nodes have them: what is flushed stays in the log for a while.
        let mut w = World::with(seed, 4, founding(&["", "m"], &[1, 2, 3]), |_| {}, LogLimits::default());
        w.weather = weather;
        w.await_leader(1);
        w.await_leader(2);
        let first = w.ask(4, async |env| set(env, pairs(&[("a", "1"), ("p", "1")])).await);
        w.run(1_000_000);
        w.ask(4, async |env| set(env, pairs(&[("a", "2"), ("p", "2")])).await);
        w.run(8_000_000);
        let alone = w.leader(1).unwrap() % 3 + 1;
        if flushed {
            w.flush(alone);
            w.run(1_000_000);
        }
        (1..=3).for_each(|node| w.crash(node));
        w.run(5_000_000);
        w.start(alone);
        w.run(5_000_000);
        let now = w.env(alone).now();
        let at = w.member(alone).freshest_alone(&now, Timestamp::MIN);
        assert!(at > first, "{at} {first}");
        let before = w.member(alone).counters().requests_sent.get();
        let seen = w.ask(alone, async move |env| rows_at(env, at).await);
        let known = [1, 2].map(|range| w.member(alone).status(RangeId(range)).map(|s| (s.applied, s.resolved)));
        let seen = seen.unwrap_or_else(|why| panic!("seed {seed}: {why:?}, at {at}, {known:?}"));
        assert!([owned(&[("a", "1"), ("p", "1")]), owned(&[("a", "2"), ("p", "2")])].contains(&seen), "{seen:?}");
        assert_eq!(w.member(alone).counters().requests_sent.get(), before, "it asks nobody");
        // Of what comes after it knows nothing, and says so.
        let later = Timestamp::new(at.physical_us() + 1_000_000, 0);
        assert!(matches!(w.ask(alone, async move |env| rows_at(env, later).await), Err(TxnError::Unavailable { .. })));
        (1..=3).filter(|node| *node != alone).for_each(|node| w.start(node));
        w.run(10_000_000);
        w.ask(4, async |env| set(env, pairs(&[("a", "3"), ("p", "3")])).await);
        let again = w.ask(alone, async move |env| rows_at(env, at).await).unwrap();
        assert_eq!(again, seen, "what was closed stays so");
    }
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

/// Who sets no bound is served at every moment, whoever is lost: also by the one that led, and his snapshots never go back.
#[test]
fn what_is_here_is_served_from_before_the_loss_on() {
    for (seed, weather, led) in
        [(66, Weather::calm(), 0), (67, Weather::rough(), 0), (68, Weather::calm(), 2), (69, Weather::rough(), 2)]
    {
        let mut w = world(seed, weather, |_| {});
        w.ask(4, async |env| set(env, pairs(&[("a", "1"), ("p", "1")])).await);
        w.run(8_000_000);
        let alone = (w.leader(1).unwrap() + led) % 3 + 1;
        let mut seen = Timestamp::MIN;
        for step in 0..400 {
            if step == 50 {
                (1..=3).filter(|node| *node != alone).for_each(|node| w.crash(node));
            }
            let now = w.env(alone).now();
            let at = w.member(alone).freshest_alone(&now, seen);
            let before = w.member(alone).counters().requests_sent.get();
            let rows = w.ask(alone, async move |env| rows_at(env, at).await);
            assert_eq!(rows, Ok(owned(&[("a", "1"), ("p", "1")])), "n{alone}, step {step}, seed {seed}");
            assert_eq!(w.member(alone).counters().requests_sent.get(), before, "step {step}: n{alone} asks nobody");
            if step < 50 {
                let age_us = now.interval.latest().physical_us() - at.physical_us();
                assert!(age_us < 6_000_000, "{age_us} us");
            }
            seen = at;
            w.run(100_000);
        }
        // What a bound of some seconds asks for is not here.
        let now = w.env(alone).now();
        let least = Timestamp::new(now.interval.earliest().physical_us() - 4_200_000, 0);
        assert_eq!(w.member(alone).freshest(&now, least), w.member(alone).freshest_alone(&now, least));
        assert!(w.member(alone).freshest(&now, least) >= least && seen < least);
    }
}

/// A range that is kept back while it is heard makes nothing else old: its leader answers for it.
#[test]
fn a_range_that_lags_while_it_is_heard_does_not_count() {
    let mut w = world(70, Weather::calm(), |_| {});
    w.ask(4, async |env| set(env, pairs(&[("a", "1"), ("p", "1")])).await);
    undecided(&mut w);
    w.run(20_000_000);
    let follower = (1..=3).find(|node| w.leader(1) != Some(*node) && w.leader(2) != Some(*node)).unwrap();
    let now = w.env(follower).now();
    let age_us = |at: Timestamp| now.interval.latest().physical_us() - at.physical_us();
    let resolved = w.member(follower).status(RangeId(1)).unwrap().resolved;
    assert!(age_us(resolved) > 15_000_000, "{} us", age_us(resolved));
    let at = w.member(follower).freshest_alone(&now, Timestamp::MIN);
    assert!(age_us(at) < 6_000_000, "{} us", age_us(at));
}

/// A transaction is prepared in both ranges, and nobody learns what becomes of it.
fn undecided(w: &mut World) {
    lose_decisions(w);
    w.spawn(4, move |env| {
        Box::pin(async move {
            let mut txn = Txn::begin(&env).unwrap();
            txn.put("a", "2");
            txn.put("p", "2");
            drop(txn.commit().await);
        })
    });
}

fn lose_decisions(w: &mut World) {
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
}

/// A transaction is prepared in two ranges and committed; word of that does not come, and what is closed passes it.
fn read_beside_a_prepare(prepare: Prepare) -> Vec<(String, String)> {
    let mut w = world(64, Weather::calm(), prepare);
    w.ask(4, async |env| set(env, pairs(&[("a", "1"), ("p", "1")])).await);
    lose_decisions(&mut w);
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

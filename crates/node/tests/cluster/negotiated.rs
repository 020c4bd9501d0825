//! A snapshot that the leaders of a query agree on in one round (002 section 4.4).

use super::client::{Txn, pairs, set};
use super::links::lead;
use super::splits::split;
use super::world::{Env, Prepare, Weather, World, founding, key, poll_fn};
use clock::{Reading, Timestamp};
use node::cluster::{Class, Message};
use node::{BeginOptions, Now, RangeId, TxnError};
use protocol::door::{Body, Frame, Request};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use store::Span;

fn intact(_: &node::Sabotage) {}

fn whole() -> Vec<Span> {
    vec![key("a")..key("b"), key("h")..key("z")]
}

/// Asks once for a snapshot of `spans`.
async fn negotiate(env: &Env, spans: Vec<Span>, least: Timestamp) -> Result<Timestamp, TxnError> {
    let mut txn = Txn::begin(env)?;
    poll_fn(|cx| txn.txn.negotiate(&txn.env.now(), &spans, least, cx.waker())).await
}

async fn sum_at(env: &Env, at: Timestamp) -> Result<i64, TxnError> {
    let mut txn = Txn::with(env, BeginOptions { as_of: Some(at), ..BeginOptions::default() })?;
    let rows = txn.scan("a", "z", false).await?;
    assert_eq!(rows.len(), 3);
    Ok(rows.iter().map(|(_, value)| value.parse::<i64>().unwrap()).sum())
}

/// The accounts of three ranges, led by different nodes, are moved between again and again; another node reads them at negotiated snapshots meanwhile. How
/// many of its reads waited for a transaction on its way.
fn waits_beside_transfers(seed: u64, weather: Weather, prepare: Prepare) -> u64 {
    let mut w = World::new(seed, 4, founding(&["", "g", "m"], &[1, 2, 3]), prepare);
    (1..=4).for_each(|node| w.set_watch(node, i64::from(node) * 200 - 500, 1_000));
    for (range, node) in [(1, 1), (2, 2), (3, 3)] {
        lead(&mut w, range, node);
    }
    w.ask(1, async |env| set(env, pairs(&[("a", "100"), ("h", "0"), ("p", "0")])).await);
    w.run(2_000_000);
    let rough = weather.loss_percent > 0;
    w.weather = weather;
    let waits = |w: &World| (1..=3).map(|node| w.member(node).counters().txn_read_waits.get()).sum::<u64>();
    let mut waited = 0;
    for n in 1..=30 {
        // It reads nothing, so whoever waits for something to be read is the reader.
        w.spawn(n % 3 + 1, move |env| {
            Box::pin(async move {
                let mut txn = Txn::hybrid(&env).unwrap();
                txn.put("a", 100 - i64::from(n));
                txn.put("h", n - n / 2);
                txn.put("p", n / 2);
                // Its outcome may be unknown in such weather: whatever became of it, the sum is the same.
                let _ = txn.commit().await;
            })
        });
        w.run(u64::from(n) * 150);
        let before = waits(&w);
        let (oldest, at, now, sum) = w.ask(4, async move |env| {
            let oldest = Timestamp::new(env.now().interval.earliest().physical_us() - 400_000, 0);
            let at = negotiate(&env, whole(), oldest).await.unwrap();
            (oldest, at, env.now().interval, sum_at(&env, at).await.unwrap())
        });
        waited += waits(&w) - before;
        assert_eq!(sum, 100, "a torn snapshot at {at}");
        assert!(at <= now.latest(), "{at} lies in the future");
        assert!(rough || at >= oldest, "{at} is older than any transaction here takes");
        w.run(20_000);
    }
    w.run(5_000_000);
    waited
}

#[test]
fn reads_of_a_negotiated_snapshot_are_whole_and_wait_for_nobody() {
    for (seed, weather) in [(71, Weather::calm()), (72, Weather::rough()), (73, Weather::rough())] {
        assert_eq!(waits_beside_transfers(seed, weather, intact), 0, "{seed}");
    }
    let newest = waits_beside_transfers(71, Weather::calm(), |sabotage| sabotage.set_negotiate_the_newest(true));
    assert!(newest > 0, "of the answers the newest: another leader has something in flight below it");
    let blind = waits_beside_transfers(71, Weather::calm(), |sabotage| sabotage.set_settle_over_flights(true));
    assert!(blind > 0, "what is in flight was not looked at");
}

/// A transaction is prepared at two leaders, and word of its end does not come. What a negotiation says that wants nothing older than what began after it, and what a read at that
/// answer gives within a second.
fn beside_a_stuck_prepare(prepare: Prepare) -> (bool, Option<i64>) {
    let mut w = World::new(74, 4, founding(&["", "g", "m"], &[1, 2, 3]), prepare);
    for (range, node) in [(1, 1), (2, 2), (3, 3)] {
        lead(&mut w, range, node);
    }
    w.ask(1, async |env| set(env, pairs(&[("a", "100"), ("h", "0"), ("p", "0")])).await);
    w.run(2_000_000);
    w.lose = Some(|message: &Message| {
        let body = (message.class == Class::Request).then(|| Frame::decode(&message.bytes).unwrap().body);
        matches!(body, Some(Body::Request { request: Request::Outcome { .. } | Request::Fence { .. }, .. }))
    });
    w.spawn(4, |env| {
        Box::pin(async move {
            let mut txn = Txn::hybrid(&env).unwrap();
            txn.put("a", 50);
            txn.put("p", 50);
            txn.commit().await.unwrap();
        })
    });
    w.run(500_000);
    let least = w.env(4).now().interval.latest();
    w.run(500_000);
    let at = w.ask(4, async move |env| negotiate(&env, whole(), least).await).unwrap();
    // A range in which nothing is in the way does not answer for the others'.
    let apart = vec![key("h")..key("i")];
    let free = w.ask(4, async move |env| negotiate(&env, apart, least).await).unwrap();
    assert!(free >= least);
    let seen = Rc::new(RefCell::new(None));
    let result = seen.clone();
    w.spawn(4, move |env| Box::pin(async move { *result.borrow_mut() = Some(sum_at(&env, at).await.unwrap()) }));
    w.run(1_000_000);
    (at >= least, seen.take())
}

#[test]
fn an_answer_that_is_too_old_says_so_and_is_read_at_once_all_the_same() {
    assert_eq!(beside_a_stuck_prepare(intact), (false, Some(100)), "what was there before it");
    let newest = beside_a_stuck_prepare(|sabotage| sabotage.set_negotiate_the_newest(true));
    assert_eq!(newest, (true, None), "it waits");
}

#[test]
fn ranges_that_were_split_are_asked_by_their_new_bounds() {
    let mut w = World::new(75, 4, founding(&[""], &[1, 2, 3]), intact);
    lead(&mut w, 1, 1);
    let wrote = w.ask(4, async |env| set(env, pairs(&[("a", "1"), ("h", "2"), ("p", "3")])).await);
    for at in ["h", "p"] {
        split(&mut w, 2, at);
    }
    let at = w.ask(4, async move |env| negotiate(&env, whole(), wrote).await).unwrap();
    assert!(at >= wrote, "a session sees what it wrote");
    assert_eq!(w.ask(4, async move |env| sum_at(&env, at).await), Ok(6));
    // Whoever writes afterwards writes above it.
    for name in ["a", "h", "p"] {
        let later = w.ask(4, async move |env| set(env, pairs(&[(name, "7")])).await);
        assert!(later > at);
    }
    assert_eq!(w.ask(4, async move |env| sum_at(&env, at).await), Ok(6), "it stays what it was");
}

/// The leader sleeps until others lead, is cut off from them, and does not know yet that it leads no more. Node 4 hears all of them, and asks the one of whom it knows.
#[test]
fn a_leader_whose_lease_is_over_does_not_answer() {
    let mut w = World::new(77, 4, founding(&[""], &[1, 2, 3]), intact);
    (1..=4).for_each(|node| w.set_watch(node, 0, 1_000));
    lead(&mut w, 1, 1);
    w.ask(4, async |env| set(env, pairs(&[("a", "1"), ("h", "2"), ("p", "3")])).await);
    w.weather.cuts.extend([(1, 2), (2, 1), (1, 3), (3, 1)]);
    w.pause(1);
    w.until("others lead", |w| w.leader(1).is_some_and(|leader| leader != 1));
    w.run(200_000);
    w.resume(1);
    let (_, end) = w.member(1).status(RangeId(1)).unwrap().lease.expect("it believes that it leads");
    assert!(end < w.env(1).now().interval.earliest(), "its lease is over");
    for least in [Timestamp::MIN, w.env(4).now().interval.earliest()] {
        let asked = w.env(4).now().interval.earliest();
        let at = w.ask(4, async move |env| negotiate(&env, whole(), least).await.unwrap());
        // Clocks differ by so much; nothing is in flight.
        assert!(at.physical_us() + 2_000 >= asked.physical_us(), "{at} is as old as the lease's end, asked at {asked}");
        assert!(at >= least);
    }
    assert_ne!(w.await_leader(1), 1);
    w.heal();
    w.run(5_000_000);
}

/// A split is on its way, and takes long: the others do not hear of it. Nothing else is in the way.
#[test]
fn a_split_that_takes_long_makes_no_answer_older() {
    let mut w = World::new(78, 4, founding(&[""], &[1, 2, 3]), intact);
    (1..=4).for_each(|node| w.set_watch(node, 0, 1_000));
    lead(&mut w, 1, 1);
    w.ask(4, async |env| set(env, pairs(&[("a", "1"), ("h", "2"), ("p", "3")])).await);
    w.weather.cuts.extend([(1, 2), (2, 1), (1, 3), (3, 1)]);
    let now = w.env(1).now();
    drop(w.member(1).split(&now, key("m"), Waker::noop()));
    w.drain(1);
    w.run(500_000);
    assert!(w.member(1).status(RangeId(1)).unwrap().lease.is_some(), "it leads");
    let answer = Rc::new(RefCell::new(None));
    let result = answer.clone();
    w.spawn(4, move |env| {
        Box::pin(async move {
            let asked = env.now().interval.earliest();
            *result.borrow_mut() = Some((asked, negotiate(&env, whole(), asked).await));
        })
    });
    w.run(300_000);
    assert!(answer.borrow().is_none(), "it waits until the split is decided");
    w.heal();
    w.until("an answer", |_| answer.borrow().is_some());
    let (asked, at) = answer.take().unwrap();
    assert!(at.unwrap() >= asked);
    w.run(5_000_000);
}

/// A clock that says for its first reading what it was when somebody began to wait.
struct Waited {
    since: Cell<Option<Reading>>,
    now: Reading,
}

impl Now for Waited {
    fn read(&self) -> Reading {
        self.since.take().unwrap_or(self.now)
    }
}

/// The range elects meanwhile, for seconds.
#[test]
fn what_is_the_future_is_judged_when_the_answers_are_there() {
    let mut w = World::new(79, 4, founding(&[""], &[1, 2, 3]), intact);
    (1..=4).for_each(|node| w.set_watch(node, 0, 1_000));
    lead(&mut w, 1, 1);
    w.ask(4, async |env| set(env, pairs(&[("a", "1"), ("h", "2"), ("p", "3")])).await);
    w.crash(1);
    let (began, at, answered) = w.ask(4, async |env| {
        let began = env.now();
        let mut txn = Txn::begin(&env).unwrap();
        let at = poll_fn(|cx| {
            let clock = Waited { since: Cell::new(Some(began)), now: txn.env.now() };
            txn.txn.negotiate(&clock, &whole(), Timestamp::MIN, cx.waker())
        });
        (began.interval.latest(), at.await.unwrap(), env.now().interval.latest())
    });
    assert!(at.physical_us() > began.physical_us() + 100_000, "{at}, asked at {began}");
    assert!(at <= answered);
}

#[test]
fn it_waits_for_the_version_that_brings_it() {
    let mut w = World::of_version(2, 76, 3, founding(&[""], &[1, 2, 3]), intact);
    lead(&mut w, 1, 1);
    let asked = w.ask(1, async |env| negotiate(&env, whole(), Timestamp::MIN).await);
    assert!(matches!(asked, Err(TxnError::NeedsVersion { needs: 3, .. })), "{asked:?}");
}

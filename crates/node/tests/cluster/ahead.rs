//! What is asked for before it is waited for: many keys for one round trip, and nothing that would not be so without.

use super::client::{Txn, pairs, set, value};
use super::world::{Env, Prepare, World, founding, key, poll_fn};
use bytes::Bytes;
use node::cluster::{SpanAhead, VERSION_MIN};
use node::{BeginOptions, Consistency, LockMode, RangeId, TxnError, Uncertainty, WhenLocked};
use std::task::Waker;

const KEYS: usize = 20;
/// There and back, in calm weather, microseconds.
const ROUND_TRIP_US: u64 = 2_000;

fn names() -> Vec<String> {
    (0..KEYS).map(|n| format!("k{n:02}")).collect()
}

fn keys(names: &[String]) -> Vec<Bytes> {
    names.iter().map(|name| key(name)).collect()
}

/// Two ranges, with values in both, and a node that leads neither.
fn world(version: u16) -> (World, u32) {
    prepared(version, |_| {})
}

fn prepared(version: u16, prepare: Prepare) -> (World, u32) {
    let mut world = World::of_version(version, 1, 3, founding(&["", "k10"], &[1, 2, 3]), prepare);
    let leaders = [world.await_leader(1), world.await_leader(2)];
    let far = (1..=3).find(|node| !leaders.contains(node)).expect("one of three leads none of two");
    let all = names().into_iter().map(|name| (name.clone(), format!("{name} 0"))).collect();
    world.ask(far, async move |env| set(env, all).await);
    // Nothing of it is uncertain to whoever reads it.
    world.run(100_000);
    (world, far)
}

fn read_ahead(txn: &mut Txn, keys: &[Bytes]) {
    txn.txn.read_ahead(&txn.env.now(), keys, Waker::noop()).unwrap();
}

/// Reads all keys: the values, what it took, and how many requests were sent.
async fn read_all(env: Env, ahead: bool) -> (Vec<Option<String>>, u64, u64) {
    let mut txn = Txn::begin(&env).unwrap();
    let (began_us, sent) = (env.true_us.get(), env.member.counters().requests_sent.get());
    let names = names();
    if ahead {
        read_ahead(&mut txn, &keys(&names));
    }
    let mut values = Vec::new();
    for name in &names {
        values.push(txn.get(name).await.unwrap());
    }
    (values, env.true_us.get() - began_us, env.member.counters().requests_sent.get() - sent)
}

#[test]
fn keys_that_are_read_ahead_take_one_round_trip_and_a_message_for_each_range() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    let (values, took_us, sent) = world.ask(far, async |env| read_all(env, false).await);
    assert!(took_us >= KEYS as u64 * ROUND_TRIP_US, "{took_us}");
    assert_eq!(sent, KEYS as u64);
    let (early, took_us, sent) = world.ask(far, async |env| read_all(env, true).await);
    assert!(took_us < 2 * ROUND_TRIP_US, "{took_us}");
    assert_eq!((sent, &early), (2, &values));
    assert!(early.iter().all(Option::is_some));
}

/// No message that an older program could not read (the world looks at each).
#[test]
fn in_an_older_version_of_the_cluster_each_key_has_its_message() {
    let (mut world, far) = world(VERSION_MIN);
    for node in 1..=3 {
        world.set_program(node, VERSION_MIN);
    }
    let (values, took_us, sent) = world.ask(far, async |env| read_all(env, true).await);
    assert!(took_us < 2 * ROUND_TRIP_US, "{took_us}");
    assert_eq!(sent, KEYS as u64);
    assert!(values.iter().all(Option::is_some));
}

/// What was read counts as read, what was only asked for does not.
#[test]
fn only_what_was_taken_is_certified() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    for (read, other, refused) in [("k01", "k02", false), ("k01", "k01", true)] {
        let mut begun = world.ask(far, async move |env| {
            let mut txn = Txn::begin(&env).unwrap();
            read_ahead(&mut txn, &keys(&names()));
            assert!(txn.get(read).await.unwrap().is_some());
            txn.put("k05", "mine");
            txn
        });
        world.ask(far, async move |env| set(env, pairs(&[(other, "theirs")])).await);
        begun.env = world.env(far);
        let committed = world.ask(far, async move |_| begun.commit().await);
        assert_eq!(matches!(committed, Err(TxnError::Restart { .. })), refused, "{committed:?}");
    }
}

/// Of a key that has a newer version than the snapshot the value is asked for again when the lock has moved the snapshot.
#[test]
fn what_was_read_ahead_is_forgotten_when_the_snapshot_moves() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    let mut begun = world.ask(far, async move |env| {
        let mut txn = Txn::begin(&env).unwrap();
        read_ahead(&mut txn, &keys(&names()));
        txn
    });
    world.run(50_000);
    world.ask(far, async move |env| set(env, pairs(&[("k03", "newer")])).await);
    begun.env = world.env(far);
    let seen = world.ask(far, async move |_| {
        assert!(begun.lock("k03").await.unwrap());
        begun.get("k03").await.unwrap()
    });
    assert_eq!(seen.as_deref(), Some("newer"));
}

fn lock_ahead(txn: &mut Txn, names: &[&str]) {
    let keys: Vec<Bytes> = names.iter().map(|name| key(name)).collect();
    txn.txn.lock_ahead(&keys, LockMode::Update);
}

/// Locks are taken up to the first that another has, and not behind it: whoever waits there keeps nobody from the rest, so those who lock in one order never
/// meet in a circle.
#[test]
fn no_lock_is_taken_behind_one_that_is_waited_for() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    let held = world.ask(far, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        assert!(txn.lock("k02").await.unwrap());
        txn
    });
    let mut begun = world.ask(far, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        lock_ahead(&mut txn, &["k00", "k01", "k02", "k03", "k11"]);
        let sent = env.member.counters().requests_sent.get();
        assert!(txn.lock("k00").await.unwrap());
        assert!(txn.lock("k01").await.unwrap());
        assert_eq!(env.member.counters().requests_sent.get() - sent, 1);
        txn
    });
    let free = |world: &mut World, name: &'static str| {
        world.ask(far, async move |env| Txn::begin(&env).unwrap().try_lock(name).await)
    };
    assert_eq!(free(&mut world, "k01"), Err(TxnError::LockNotAvailable));
    assert_eq!(free(&mut world, "k03"), Ok(true));
    drop(held);
    world.run(200_000);
    let (begun, sent) = world.ask(far, async move |env| {
        let sent = env.member.counters().requests_sent.get();
        for name in ["k02", "k03", "k11"] {
            assert!(begun.lock(name).await.unwrap());
        }
        (begun, env.member.counters().requests_sent.get() - sent)
    });
    assert_eq!(sent, 2, "the rest of the first range, and the second");
    assert_eq!(free(&mut world, "k03"), Err(TxnError::LockNotAvailable));
    assert_eq!(free(&mut world, "k11"), Err(TxnError::LockNotAvailable));
    drop(begun);
    // Until word of it has left with a tick, and come.
    world.run(200_000);
    assert_eq!(free(&mut world, "k11"), Ok(true), "they are given back with all others");
}

/// Who does not want to wait asks for all together as well; the first that somebody has he hears of by itself.
#[test]
fn locks_without_waiting_are_asked_for_together() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    let held = world.ask(far, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        assert!(txn.lock("k05").await.unwrap());
        txn
    });
    let (told, sent) = world.ask(far, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        let names = ["k00", "k01", "k05", "k06", "k07"];
        lock_ahead(&mut txn, &names);
        let sent = env.member.counters().requests_sent.get();
        let mut told = Vec::new();
        for name in names {
            told.push(txn.try_lock(name).await);
        }
        (told, env.member.counters().requests_sent.get() - sent)
    });
    assert_eq!(told, [Ok(true), Ok(true), Err(TxnError::LockNotAvailable), Ok(true), Ok(true)]);
    assert_eq!(sent, 4, "those before it, it and those behind it (which are not had), it alone, those behind it");
    drop(held);
}

/// Keys of one index.
fn rows(count: usize) -> Vec<Bytes> {
    (0..count).map(|n| key(&format!("rows{n:03}"))).collect()
}

fn lock_all(txn: &mut Txn, keys: &[Bytes]) -> usize {
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    txn.txn.lock_all(&keys, LockMode::NoKeyUpdate).unwrap()
}

/// One range, and who leads it.
fn led() -> (World, u32) {
    let mut world = World::of_version(node::cluster::VERSION_MAX, 1, 3, founding(&[""], &[1, 2, 3]), |_| {});
    let leads = world.await_leader(1);
    (world, leads)
}

/// Where they are led many keys cost few requests, and no message: one by one it was a request for each.
#[test]
fn many_keys_are_locked_at_once_where_they_are_led() {
    let (mut world, leads) = led();
    let (locked, requests, sent) = world.ask(leads, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        let counted =
            |env: &Env| (env.member.counters().lock_requests.get(), env.member.counters().requests_sent.get());
        let before = counted(&env);
        let locked = lock_all(&mut txn, &rows(600));
        let after = counted(&env);
        (locked, after.0 - before.0, after.1 - before.1)
    });
    assert_eq!((locked, requests, sent), (600, 3, 0), "256 at a time");
}

/// What is locked so is what would be one by one: up to the first that somebody has or has written since, and nothing behind it.
#[test]
fn many_keys_are_locked_up_to_the_first_that_is_met() {
    let (mut world, leads) = led();
    let free = |world: &mut World, name: &'static str| {
        world.ask(leads, async move |env| Txn::begin(&env).unwrap().try_lock(name).await)
    };
    let held = world.ask(leads, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        assert!(txn.lock("rows005").await.unwrap());
        txn
    });
    let mut begun = world.ask(leads, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        assert!(txn.lock("kept").await.unwrap());
        txn.txn.note_locks();
        assert_eq!(lock_all(&mut txn, &rows(20)), 5);
        txn
    });
    assert_eq!(free(&mut world, "rows004"), Err(TxnError::LockNotAvailable));
    assert_eq!(free(&mut world, "rows007"), Ok(true));
    // And those go back that were taken since they were noted.
    begun.txn.release_noted();
    world.run(50_000);
    assert_eq!(free(&mut world, "rows004"), Ok(true));
    assert_eq!(free(&mut world, "kept"), Err(TxnError::LockNotAvailable));
    drop(held);
    world.run(50_000);
    world.ask(leads, async |env| set(env, pairs(&[("rows003", "newer")])).await);
    begun.env = world.env(leads);
    let (locked, moved) = world.ask(leads, async move |_| {
        let before = begun.txn.snapshot();
        let locked = lock_all(&mut begun, &rows(20));
        assert!(begun.lock("rows003").await.unwrap());
        (locked, begun.txn.snapshot() > before)
    });
    assert_eq!((locked, moved), (3, true));
}

/// What is led elsewhere is had so when it was asked for ahead.
#[test]
fn many_keys_that_are_led_elsewhere_count_when_they_are_there() {
    let (mut world, leads) = led();
    let far = (1..=3).find(|node| *node != leads).expect("another");
    world.ask(far, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        assert_eq!(lock_all(&mut txn, &rows(20)), 0);
        txn.txn.lock_ahead(&rows(20), LockMode::NoKeyUpdate);
        let sent = env.member.counters().requests_sent.get();
        assert!(
            poll_fn(|cx| txn.txn.lock(&env.now(), b"rows000", LockMode::NoKeyUpdate, WhenLocked::Skip, cx.waker()))
                .await
                .unwrap()
        );
        assert_eq!(lock_all(&mut txn, &rows(20)), 20);
        assert_eq!(lock_all(&mut txn, &rows(21)[1..]), 19);
        assert_eq!(env.member.counters().requests_sent.get() - sent, 1);
        txn.txn.note_locks();
        txn.txn.lock_ahead(&[key("rows030"), key("rows031")], LockMode::NoKeyUpdate);
        assert!(txn.lock("rows030").await.is_ok());
        txn.txn.release_noted();
        assert_eq!(lock_all(&mut txn, &rows(20)), 0, "nothing is known of them any more");
    });
}

/// What several tables have for one statement is said one after the other, and locked when its turn comes.
#[test]
fn what_is_to_be_locked_is_not_forgotten_for_more() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    let sent = world.ask(far, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        lock_ahead(&mut txn, &["k00", "k01", "k02"]);
        lock_ahead(&mut txn, &["k11", "k12", "k13"]);
        let sent = env.member.counters().requests_sent.get();
        for name in ["k00", "k11", "k01", "k12", "k02", "k13"] {
            assert!(txn.lock(name).await.unwrap());
        }
        env.member.counters().requests_sent.get() - sent
    });
    assert_eq!(sent, 2, "one for each range");
}

/// What is asked for next pushes out keys that nobody read, but no spans.
#[test]
fn spans_are_not_forgotten_for_keys() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    let (values, sent) = world.ask(far, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        let span = |span| SpanAhead { span, reverse: false, rows: 10 };
        let asked: Vec<SpanAhead> = spans().into_iter().map(span).collect();
        assert!(txn.txn.scan_ahead(&env.now(), &asked[..1], Waker::noop()).unwrap());
        let many = |from| (from..from + 1000).map(|n| key(&format!("x{n}"))).collect::<Vec<_>>();
        read_ahead(&mut txn, &many(1000));
        read_ahead(&mut txn, &many(2000));
        let sent = env.member.counters().requests_sent.get();
        let first = spans().swap_remove(0);
        let chunk = std::future::poll_fn(|cx| txn.txn.scan(&env.now(), &first, false, 10, false, cx.waker())).await;
        (chunk.unwrap().rows.len(), env.member.counters().requests_sent.get() - sent)
    });
    assert_eq!((values, sent), (4, 0));
}

/// A lock that was given back to a savepoint is asked for anew.
#[test]
fn locks_that_were_given_back_are_not_taken_to_be_held() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    let mut begun = world.ask(far, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        let mark = txn.txn.savepoint();
        lock_ahead(&mut txn, &["k00", "k01"]);
        assert!(txn.lock("k00").await.unwrap());
        txn.txn.rollback_to(mark);
        txn.txn.release_since(mark);
        txn
    });
    world.run(50_000);
    let other = world.ask(far, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        assert!(txn.try_lock("k00").await.unwrap());
        assert!(txn.try_lock("k01").await.unwrap());
        txn
    });
    let refused = world.ask(far, async move |_| begun.try_lock("k00").await);
    assert_eq!(refused, Err(TxnError::LockNotAvailable));
    drop(other);
}

/// A range that was split meanwhile answers for none of its keys: they are asked for one by one.
#[test]
fn keys_of_a_range_that_was_split_are_found() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    let leads = world.await_leader(1);
    world.ask(leads, async |env| {
        let ticket = env.member.split(&env.now(), key("k05"), Waker::noop());
        poll_fn(|cx| ticket.poll(cx.waker())).await.unwrap();
    });
    world.until("somebody leads it", |world| world.member(leads).ranges().len() > 2);
    let (values, ..) = world.ask(far, async |env| read_all(env, true).await);
    assert_eq!(values.iter().flatten().count(), KEYS);
    assert!(world.member(leads).status(RangeId(1)).is_some());
    assert!(world.ask(far, async |env| value(env, "k07").await).is_some());
}

/// Five spans of four keys, and what they hold as it is scanned for.
fn spans() -> Vec<std::ops::Range<Bytes>> {
    (0..KEYS / 4).map(|n| key(&format!("k{:02}", n * 4))..key(&format!("k{:02}", n * 4 + 4))).collect()
}

async fn scan_all(env: Env, ahead: bool) -> (Vec<Bytes>, u64) {
    let mut txn = Txn::begin(&env).unwrap();
    let began_us = env.true_us.get();
    if ahead {
        let span = |span| SpanAhead { span, reverse: false, rows: 10 };
        let spans: Vec<SpanAhead> = spans().into_iter().map(span).collect();
        assert!(txn.txn.scan_ahead(&env.now(), &spans, Waker::noop()).unwrap());
    }
    let mut values = Vec::new();
    for mut span in spans() {
        loop {
            let chunk = std::future::poll_fn(|cx| txn.txn.scan(&env.now(), &span, false, 10, false, cx.waker()));
            let chunk = chunk.await.unwrap();
            values.extend(chunk.rows.into_iter().map(|(_, value)| value));
            let Some(rest) = chunk.rest else { break };
            span = rest;
        }
    }
    (values, env.true_us.get() - began_us)
}

#[test]
fn spans_that_are_scanned_ahead_take_one_round_trip() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    let (values, took_us) = world.ask(far, async |env| scan_all(env, false).await);
    assert!(took_us >= 5 * ROUND_TRIP_US, "{took_us}");
    let (early, took_us) = world.ask(far, async |env| scan_all(env, true).await);
    // One of them lies in two ranges: its second part is asked for when the first is there.
    assert!(took_us < 3 * ROUND_TRIP_US, "{took_us}");
    assert_eq!((early.len(), &early), (KEYS, &values));
}

/// Of spans, too, only what was scanned counts as read.
#[test]
fn only_what_was_scanned_is_certified() {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    for (other, refused) in [("k05", false), ("k02", true)] {
        let mut begun = world.ask(far, async move |env| {
            let mut txn = Txn::begin(&env).unwrap();
            let span = |span| SpanAhead { span, reverse: false, rows: 10 };
            let asked: Vec<SpanAhead> = spans().into_iter().map(span).collect();
            assert!(txn.txn.scan_ahead(&env.now(), &asked, Waker::noop()).unwrap());
            let first = spans().swap_remove(0);
            let chunk = std::future::poll_fn(|cx| txn.txn.scan(&env.now(), &first, false, 10, false, cx.waker()));
            assert_eq!(chunk.await.unwrap().rows.len(), 4);
            txn.put("k15", "mine");
            txn
        });
        world.ask(far, async move |env| set(env, pairs(&[(other, "theirs")])).await);
        begun.env = world.env(far);
        let committed = world.ask(far, async move |_| begun.commit().await);
        assert_eq!(matches!(committed, Err(TxnError::Restart { .. })), refused, "{other}: {committed:?}");
    }
}

/// What is scanned when a lock has moved the snapshot.
fn scanned_behind_a_lock(prepare: Prepare) -> Vec<Bytes> {
    let (mut world, far) = prepared(node::cluster::VERSION_MAX, prepare);
    let mut begun = world.ask(far, async move |env| {
        let mut txn = Txn::begin(&env).unwrap();
        let span = |span| SpanAhead { span, reverse: false, rows: 10 };
        let asked: Vec<SpanAhead> = spans().into_iter().map(span).collect();
        assert!(txn.txn.scan_ahead(&env.now(), &asked, Waker::noop()).unwrap());
        txn
    });
    world.run(50_000);
    world.ask(far, async move |env| set(env, pairs(&[("k03", "newer")])).await);
    begun.env = world.env(far);
    world.ask(far, async move |_| {
        assert!(begun.lock("k03").await.unwrap());
        let first = spans().swap_remove(0);
        let chunk = std::future::poll_fn(|cx| begun.txn.scan(&begun.env.now(), &first, false, 10, false, cx.waker()));
        chunk.await.unwrap().rows.into_iter().map(|(_, value)| value).collect()
    })
}

/// `node::cluster::transaction::spans_ahead`, invariant 1.
#[test]
fn what_was_scanned_ahead_is_forgotten_when_the_snapshot_moves() {
    let values = |last| ["k00 0", "k01 0", "k02 0", last].map(key);
    assert_eq!(scanned_behind_a_lock(|_| {}), values("newer"));
    let stale = scanned_behind_a_lock(|sabotage| sabotage.set_spans_at_any_snapshot(true));
    assert_eq!(stale, values("k03 0"), "what was asked for at another snapshot");
}

/// What was asked ahead says only that something is uncertain; who promises nothing does not move for that, so it asks.
#[test]
fn a_look_that_promises_nothing_ends_where_what_was_read_has_changed() {
    peek_beside_a_change(|_| {});
}

/// The control.
#[test]
#[should_panic(expected = "waits for ever")]
fn a_look_that_promises_nothing_does_not_end_by_what_was_asked_for_others() {
    peek_beside_a_change(|sabotage| sabotage.set_peek_at_what_is_uncertain(true));
}

fn peek_beside_a_change(prepare: Prepare) {
    let (mut world, far) = prepared(node::cluster::VERSION_MAX, prepare);
    world.run(1_000_000);
    let mut begun = world.ask(far, async move |env| {
        let uncertainty = Uncertainty::Static(500_000);
        let options = BeginOptions { consistency: Consistency::Hybrid, uncertainty, ..BeginOptions::default() };
        let mut txn = Txn::with(&env, options).unwrap();
        assert_eq!(txn.get("k01").await.unwrap().as_deref(), Some("k01 0"));
        txn
    });
    // At once, what was read and what is scanned next.
    let at = world.ask(far, async move |env| set(env, pairs(&[("k01", "theirs"), ("k05", "theirs")])).await);
    begun.env = world.env(far);
    let snapshot = begun.txn.snapshot();
    assert!(snapshot < at);
    let (begun, values) = world.ask(far, async move |env| {
        let span = spans().swap_remove(1);
        let asked = SpanAhead { span: span.clone(), reverse: false, rows: 10 };
        assert!(begun.txn.scan_ahead(&env.now(), &[asked], Waker::noop()).unwrap());
        let seen = std::future::poll_fn(|cx| begun.txn.peek_scan(&begun.env.now(), &span, false, 10, cx.waker())).await;
        let values: Vec<Bytes> = seen.unwrap().rows.into_iter().map(|(_, value)| value).collect();
        (begun, values)
    });
    assert_eq!(values, ["k04 0", "k05 0", "k06 0", "k07 0"].map(key));
    assert_eq!(begun.txn.snapshot(), snapshot);
    // Else nothing was uncertain.
    let refused = world.ask(far, async move |_| {
        let mut begun = begun;
        begun.scan("k04", "k08", false).await
    });
    assert!(matches!(refused, Err(TxnError::Restart { .. })), "{refused:?}");
}

/// Begins, and finds out how far nothing comes behind k05: up to k08.
async fn in_a_gap(env: Env) -> Txn {
    let mut txn = Txn::begin(&env).unwrap();
    let span = key("k050")..key("k053");
    let found = poll_fn(|cx| txn.txn.find_gap(&env.now(), &span, &key("k09"), cx.waker())).await;
    assert_eq!(found, Ok(true));
    txn
}

/// Values of k05 and k08, and nothing between.
fn world_with_a_gap() -> (World, u32) {
    let (mut world, far) = world(node::cluster::VERSION_MAX);
    world.ask(far, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        ["k06", "k07"].into_iter().for_each(|name| txn.txn.delete(key(name)).unwrap());
        txn.commit().await.unwrap();
    });
    world.run(100_000);
    (world, far)
}

#[test]
fn what_is_read_in_a_gap_that_is_known_asks_nobody() {
    let (mut world, far) = world_with_a_gap();
    let sent = world.ask(far, async |env| {
        let before = env.member.counters().requests_sent.get();
        let mut txn = in_a_gap(env.clone()).await;
        for name in ["k050", "k06", "k079"] {
            read_ahead(&mut txn, &[key(name)]);
            assert_eq!(txn.get(name).await.unwrap(), None);
        }
        assert!(txn.scan("k051", "k08", false).await.unwrap().is_empty());
        let again =
            poll_fn(|cx| txn.txn.find_gap(&env.now(), &(key("k06")..key("k07")), &key("k09"), cx.waker())).await;
        assert_eq!(again, Ok(true));
        let sent = env.member.counters().requests_sent.get() - before;
        // Where it ends, who is there is found.
        assert_eq!(txn.get("k08").await.unwrap().as_deref(), Some("k08 0"));
        assert_eq!(txn.scan("k07", "k09", false).await.unwrap().len(), 1);
        let taken =
            poll_fn(|cx| txn.txn.find_gap(&env.now(), &(key("k07")..key("k09")), &key("k09"), cx.waker())).await;
        assert_eq!(taken, Ok(false));
        sent
    });
    assert_eq!(sent, 1);
}

#[test]
fn of_a_gap_only_what_is_read_counts_as_read() {
    for (other, refused) in [("k052", true), ("k070", false)] {
        let (mut world, far) = world_with_a_gap();
        let mut begun = world.ask(far, async |env| {
            let mut txn = in_a_gap(env).await;
            assert!(txn.scan("k050", "k053", false).await.unwrap().is_empty());
            txn.put("k05", "mine");
            txn
        });
        world.ask(far, async move |env| set(env, pairs(&[(other, "theirs")])).await);
        begun.env = world.env(far);
        let committed = world.ask(far, async move |_| begun.commit().await);
        assert_eq!(matches!(committed, Err(TxnError::Restart { .. })), refused, "{committed:?}");
    }
}

/// The value of a key that came into a gap, read, and scanned, by who moved up since: past it, unless the rule is broken.
fn read_after_a_move(broken: bool) -> (Option<String>, usize) {
    let (mut world, far) = world_with_a_gap();
    world.member(far).sabotage().set_ahead_at_any_snapshot(broken);
    world.member(far).sabotage().set_spans_at_any_snapshot(broken);
    let mut begun = world.ask(far, in_a_gap);
    world.run(50_000);
    world.ask(far, async |env| set(env, pairs(&[("k051", "new"), ("k03", "newer")])).await);
    begun.env = world.env(far);
    world.ask(far, async move |_| {
        assert!(begun.lock("k03").await.unwrap());
        let scanned = begun.scan("k051", "k053", false).await.unwrap().len();
        (begun.get("k051").await.unwrap(), scanned)
    })
}

#[test]
fn a_gap_is_forgotten_when_the_snapshot_moves() {
    assert_eq!(read_after_a_move(false), (Some("new".to_owned()), 1));
    // A negative control.
    assert_eq!(read_after_a_move(true), (None, 0));
}

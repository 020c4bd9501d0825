//! The past goes: by a threshold in each range's log, and never from under an open snapshot.

use super::client::{Txn, pairs, set, value};
use super::links::lead;
use super::world::{Prepare, Weather, World, founding, key};
use bytes::Bytes;
use clock::Timestamp;
use node::cluster::{Class, Message, NodeId, ReplicaChange};
use node::{BeginOptions, RangeId, TxnError};
use protocol::door::{Body, Frame, Request};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use store::versions::{Apart, Threshold};

/// A node's shell: wants the past of so long, and forgets what it may.
fn collect(w: &mut World, node: u32, keep_us: u64) {
    want(w, node, keep_us);
    if let Some(threshold) = w.member(node).collectable() {
        w.member(node).versions().collect(threshold).unwrap();
    }
}

/// It says what it wants, and forgets nothing yet.
fn want(w: &mut World, node: u32, keep_us: u64) {
    let now = w.env(node).now();
    let threshold = Timestamp::new(now.interval.earliest().physical_us() - keep_us, 0);
    w.member(node).collect(&now, threshold);
    w.drain(node);
    w.run(50_000);
    w.flush(node);
}

fn versions(w: &World, node: u32, key: &'static [u8]) -> usize {
    w.member(node).versions().history(key).unwrap().len()
}

/// Two ranges, of which the second is idle from the beginning on; node 4 has a replica of neither.
fn world(seed: u64, weather: Weather, prepare: Prepare) -> World {
    let mut w = World::new(seed, 4, founding(&["", "m"], &[1, 2, 3]), prepare);
    w.weather = weather;
    w.await_leader(1);
    w.await_leader(2);
    w.ask(4, async |env| set(env, pairs(&[("a", "0"), ("p", "0")])).await);
    w.ask(4, async |env| set(env, pairs(&[("p", "1")])).await);
    w
}

fn write_for(w: &mut World, seconds: u64) {
    for n in 0..seconds {
        w.ask(4, async move |env| set(env, pairs(&[("a", &n.to_string())])).await);
        w.run(1_000_000);
    }
}

fn read_at(w: &mut World, at: Timestamp, name: &'static str) -> Result<Option<String>, TxnError> {
    w.ask(4, async move |env| {
        Txn::with(&env, BeginOptions { as_of: Some(at), ..BeginOptions::default() }).unwrap().get(name).await
    })
}

#[test]
fn what_nobody_can_read_goes_and_replicas_stay_equal() {
    for (seed, weather) in [(51, Weather::calm()), (52, Weather::rough())] {
        let mut w = world(seed, weather, |_| {});
        let early = w.env(4).now().interval.earliest();
        write_for(&mut w, 10);
        let late = w.env(4).now().interval.earliest();
        write_for(&mut w, 5);
        // Only node 1 forgets: all know the threshold, and hold the same by it.
        for _ in 0..8 {
            w.run(2_000_000);
            for node in 1..=3 {
                let now = w.env(node).now();
                let threshold = Timestamp::new(now.interval.earliest().physical_us() - 4_000_000, 0);
                w.member(node).collect(&now, threshold);
                w.drain(node);
                w.flush(node);
            }
            collect(&mut w, 1, 4_000_000);
            w.check_replicas();
        }
        assert_eq!((versions(&w, 1, b"a"), versions(&w, 1, b"p")), (1, 1), "seed {seed}");
        assert!(versions(&w, 2, b"a") > 10);
        let places: Vec<_> = (1..=3).map(|node| w.member(node).digest(RangeId(1)).unwrap()).collect();
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
        // The others refuse what they still have, with what can be read.
        let oldest = w.member(2).status(RangeId(1)).unwrap().collected;
        assert!(oldest > late && early < late);
        let refused = read_at(&mut w, late, "a").unwrap_err();
        let TxnError::SnapshotUnavailable { asked, reason, .. } = &refused else { panic!("{refused}") };
        assert!(*asked == late && reason.contains(&oldest.to_string()), "{refused}");
        // Where nothing lies above the threshold a store may have gone further.
        let leader = w.leader(1).unwrap();
        let kept = oldest.max(w.member(leader).versions().collected());
        assert_eq!(read_at(&mut w, kept, "a"), Ok(Some("4".to_owned())));
        // It is so after a restart, and for who comes by a log or a snapshot.
        w.crash(3);
        w.ask(4, async |env| set(env, pairs(&[("a", "x"), ("p", "x")])).await);
        (1..=2).for_each(|node| w.flush(node));
        w.start(3);
        w.run(5_000_000);
        w.check_replicas();
        assert!(read_at(&mut w, late, "a").is_err());
    }
}

/// Of an index that is kept for longer a key and a span are read as far back, and with what is not kept no further than that.
#[test]
fn a_span_of_what_is_kept_longer_is_read_as_its_keys_are() {
    let mut w = world(54, Weather::calm(), |_| {});
    let put = |w: &mut World, value: &'static str| {
        w.ask(4, async move |env| set(env, pairs(&[("kept1", value), ("lost1", value)])).await)
    };
    let first = put(&mut w, "1");
    write_for(&mut w, 8);
    put(&mut w, "2");
    for _ in 0..4 {
        w.run(2_000_000);
        for node in 1..=3 {
            let now = w.env(node).now();
            let ago = |us: u64| Timestamp::new(now.interval.earliest().physical_us() - us, 0);
            let apart =
                vec![Apart { index: *b"kept", class: 1, threshold: ago(60_000_000).max(Timestamp::from_u64(1)) }];
            w.member(node).collect(&now, Threshold { common: ago(4_000_000), apart });
            w.drain(node);
            w.run(50_000);
            w.flush(node);
        }
    }
    assert!(w.member(1).status(RangeId(1)).unwrap().collected > first);
    let scan = |w: &mut World, from: &'static str, to: &'static str| {
        w.ask(4, async move |env| {
            let mut txn = Txn::with(&env, BeginOptions { as_of: Some(first), ..BeginOptions::default() }).unwrap();
            txn.scan(from, to, false).await
        })
    };
    assert_eq!(read_at(&mut w, first, "kept1"), Ok(Some("1".to_owned())));
    for (from, to) in [("kept1", "kept9"), ("kept", "kepu"), ("kept", "kept9")] {
        assert_eq!(scan(&mut w, from, to), Ok(pairs(&[("kept1", "1")])), "{from}..{to}");
    }
    for (from, to) in [("kept", "kepu1"), ("kepa", "kept9"), ("lost", "losu")] {
        assert!(scan(&mut w, from, to).is_err(), "{from}..{to}");
    }
}

/// A range in which nothing is written gets its last record once all of it is below the threshold, and holds nothing back.
#[test]
fn an_idle_range_is_left_alone() {
    let mut w = world(53, Weather::calm(), |_| {});
    let records = |w: &World| w.member(1).status(RangeId(2)).unwrap().applied;
    for _ in 0..10 {
        w.run(1_000_000);
        (1..=3).for_each(|node| collect(&mut w, node, 4_000_000));
    }
    let before = records(&w);
    for n in 0..20 {
        w.ask(4, async move |env| set(env, pairs(&[("a", &n.to_string())])).await);
        w.run(1_000_000);
        (1..=3).for_each(|node| collect(&mut w, node, 4_000_000));
    }
    assert_eq!(records(&w), before);
    let now_us = w.now_us();
    for node in 1..=3 {
        let age_us = now_us - w.member(node).versions().collected().physical_us();
        assert!(age_us < 6_000_000, "n{node} keeps the past of {age_us} us");
    }
    w.check_replicas();
    // Nor does it get too much when it is written again.
    w.ask(4, async |env| set(env, pairs(&[("p", "2")])).await);
    (1..=3).for_each(|node| collect(&mut w, node, 4_000_000));
    assert_eq!(w.ask(2, async |env| value(env, "p").await).as_deref(), Some("2"));
    w.check_replicas();
}

#[test]
fn a_snapshot_that_is_open_somewhere_holds_the_past() {
    for weather in [Weather::calm(), Weather::rough()] {
        let mut w = world(54, weather, |_| {});
        write_for(&mut w, 2);
        let (may, seen) = (Rc::new(Cell::new(false)), Rc::new(RefCell::new(None)));
        let (go, result) = (may.clone(), seen.clone());
        w.spawn(4, move |env| {
            Box::pin(async move {
                let mut txn = Txn::begin(&env).unwrap();
                let first = txn.get("p").await.unwrap();
                // Others write to the first range meanwhile; this one looks from time to time.
                while !go.get() {
                    value(env.clone(), "p").await;
                }
                *result.borrow_mut() = Some((first, txn.get("a").await));
            })
        });
        // Nothing of what follows is uncertain.
        w.run(300_000);
        let began = w.env(4).now().interval.earliest();
        let forget = |w: &mut World| {
            w.ask(1, async |env| set(env, pairs(&[("a", "later")])).await);
            w.run(1_000_000);
            (1..=3).for_each(|node| collect(w, node, 2_000_000));
        };
        (0..20).for_each(|_| forget(&mut w));
        let held = |w: &World| (1..=3).all(|node| w.member(node).status(RangeId(1)).unwrap().collected <= began);
        assert!(held(&w), "it is held back");
        may.set(true);
        w.until("it is over", |_| seen.borrow().is_some());
        assert_eq!(seen.take(), Some((Some("1".to_owned()), Ok(Some("1".to_owned())))));
        (0..20).for_each(|_| forget(&mut w));
        assert!(!held(&w), "nothing is held back by what is over");
        w.check_replicas();
    }
}

/// It is moved to a node that has forgotten more: it comes when its threshold has risen.
#[test]
fn a_range_goes_to_a_store_that_has_forgotten_more() {
    // Its shell may be about to.
    for late in [false, true] {
        goes_to_a_store_that_has_forgotten_more(late);
    }
}

fn goes_to_a_store_that_has_forgotten_more(late: bool) {
    let mut ranges = founding(&["", "m"], &[1, 2, 3]);
    ranges[1].replicas = vec![NodeId(1), NodeId(2)];
    let mut w = World::new(55, 4, ranges, |_| {});
    w.await_leader(1);
    w.await_leader(2);
    w.ask(4, async |env| set(env, pairs(&[("a", "0"), ("p", "0"), ("q", "0")])).await);
    write_for(&mut w, 10);
    for _ in 0..5 {
        w.run(1_000_000);
        // Of the second range nobody has said anything yet.
        match late {
            true => want(&mut w, 3, 2_000_000),
            false => collect(&mut w, 3, 2_000_000),
        }
        let leader = w.leader(1).unwrap();
        if w.leader(2) != Some(leader) {
            collect(&mut w, leader, 2_000_000);
        }
    }
    let allowed = w.member(3).collectable().unwrap();
    let leader = w.leader(2).unwrap();
    let now = w.env(leader).now();
    w.member(leader).change_replicas(&now, RangeId(2), &[ReplicaChange::Add(NodeId(3))]).unwrap();
    w.drain(leader);
    w.run(3_000_000);
    w.member(3).versions().collect(allowed).unwrap();
    for _ in 0..30 {
        w.run(1_000_000);
        w.ask(4, async |env| set(env, pairs(&[("q", "1")])).await);
        (1..=3).for_each(|node| collect(&mut w, node, 2_000_000));
    }
    assert!(w.member(3).counters().snapshots_too_old.get() > 0, "it came too early, at first");
    assert!(w.member(3).ranges().contains(&RangeId(2)), "it has come");
    w.run(2_000_000);
    w.check_replicas();
    assert_eq!(w.member(3).stored(b"q").unwrap().as_deref(), Some(&b"1"[..]));
}

/// Of three founders of what was split off one was away, and has forgotten more than its threshold says, though nothing of it; another dies. The one that is left can log nothing without
/// the first. Whether the range serves again.
fn a_founder_that_was_away_is_needed(seed: u64, prepare: Prepare) -> bool {
    // Nothing of the log is kept that a flush made needless.
    let mut w = World::new(3 * seed, 3, founding(&[""], &[1, 2, 3]), prepare);
    let a = w.await_leader(1);
    let (b, c) = (a % 3 + 1, (a + 1) % 3 + 1);
    w.ask(a, async |env| set(env, pairs(&[("a", "0"), ("p", "0")])).await);
    for _ in 0..10 {
        w.run(1_000_000);
        collect(&mut w, a, 4_000_000);
    }
    // It goes by what is closed where nothing is written.
    for _ in 0..5 {
        w.run(1_000_000);
        collect(&mut w, c, 1_000_000);
    }
    let logged = w.member(c).status(RangeId(1)).unwrap().collected;
    assert!(w.member(c).versions().collected() > logged, "seed {seed}: it forgets no more than the log says");
    w.cut_off(c);
    super::splits::split(&mut w, a, "m");
    let right = w.member(a).ranges().into_iter().find(|range| *range != RangeId(1)).unwrap();
    w.await_leader(right.0);
    w.ask(a, async |env| set(env, pairs(&[("a", "1"), ("p", "1")])).await);
    w.run(500_000);
    w.flush(a);
    w.crash(b);
    w.heal();
    w.run(30_000_000);
    if !w.member(c).ranges().contains(&right) || w.leader(right.0).is_none() {
        assert!(w.member(c).counters().snapshots_too_old.get() > 0, "seed {seed}");
        return false;
    }
    assert_eq!(w.ask(c, async |env| value(env, "p").await).as_deref(), Some("1"));
    w.check_replicas();
    true
}

#[test]
fn a_store_takes_a_range_of_which_it_forgot_nothing() {
    for seed in 0..4 {
        assert!(a_founder_that_was_away_is_needed(seed, |_| {}), "seed {seed}: the range has no leader any more");
        let refuses = |sabotage: &node::Sabotage| sabotage.set_refuse_what_was_spared(true);
        assert!(!a_founder_that_was_away_is_needed(seed, refuses), "seed {seed}: the rule is not needed");
    }
}

/// A key was deleted while a replica was away, all trace of that was collected, and the key was written again. What that replica says, once it has a snapshot, of the time in between.
fn what_was_gone_in_between(seed: u64, prepare: Prepare) -> Option<String> {
    // Nothing of the log is kept that a flush made needless.
    let mut w = World::new(3 * seed, 3, founding(&[""], &[1, 2, 3]), prepare);
    let leader = w.await_leader(1);
    let (other, lagging) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    w.ask(leader, async |env| set(env, pairs(&[("a", "before"), ("p", "0")])).await);
    w.run(1_000_000);
    w.flush(lagging);
    w.crash(lagging);
    w.ask(leader, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        txn.txn.delete(key("a")).unwrap();
        txn.commit().await.unwrap();
    });
    for n in 0..12 {
        w.ask(leader, async move |env| set(env, pairs(&[("p", &n.to_string())])).await);
        w.run(1_000_000);
        for node in [leader, other] {
            collect(&mut w, node, 2_000_000);
            w.member(node).versions().compact().unwrap();
        }
    }
    assert_eq!((versions(&w, leader, b"a"), versions(&w, other, b"a")), (0, 0), "seed {seed}: it is forgotten");
    let between = w.env(leader).now().interval.earliest();
    w.run(1_000_000);
    w.ask(leader, async |env| set(env, pairs(&[("a", "after"), ("b", "new")])).await);
    [leader, other].into_iter().for_each(|node| w.flush(node));
    w.start(lagging);
    w.until("a snapshot", |w| w.member(lagging).counters().snapshots_installed.get() > 0);
    w.run(5_000_000);
    assert_eq!(w.ask(lagging, async |env| value(env, "a").await).as_deref(), Some("after"));
    let digests = [leader, other, lagging].map(|node| w.member(node).digest(RangeId(1)).unwrap());
    assert_eq!(digests[0], digests[1], "seed {seed}");
    // It answers from what it holds.
    [leader, other].into_iter().for_each(|node| w.crash(node));
    let seen = w.ask(lagging, async move |env| {
        let options = BeginOptions { as_of: Some(between), ..BeginOptions::default() };
        Txn::with(&env, options).unwrap().get("a").await.unwrap()
    });
    assert_eq!(digests[0] == digests[2], seen.is_none(), "seed {seed}: {digests:?}");
    seen
}

#[test]
fn a_snapshot_says_that_a_key_was_gone_before_it_came_again() {
    for seed in 0..4 {
        assert_eq!(what_was_gone_in_between(seed, |_| {}), None, "seed {seed}");
        let seen = what_was_gone_in_between(seed, |sabotage| sabotage.set_join_what_came_again(true));
        assert_eq!(seen.as_deref(), Some("before"), "seed {seed}: the rule is not needed");
    }
}

/// As above, but what writes the key again is prepared, and decided only when the replica has its snapshot; meanwhile the threshold passes its timestamp. What the replica holds in the end.
fn what_was_decided_late(seed: u64, prepare: Prepare) -> Option<Bytes> {
    let mut w = World::new(seed, 4, founding(&["", "m"], &[1, 2, 3]), prepare);
    let leader = w.await_leader(1);
    // The other participant is led elsewhere: word between the two can be lost.
    let other = leader % 3 + 1;
    let lagging = 6 - leader - other;
    lead(&mut w, 2, other);
    w.ask(4, async |env| set(env, pairs(&[("a", "before"), ("b", "0"), ("p", "0")])).await);
    w.run(1_000_000);
    w.flush(lagging);
    w.crash(lagging);
    w.ask(4, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        txn.txn.delete(key("a")).unwrap();
        txn.commit().await.unwrap();
    });
    let forget = |w: &mut World, seconds: u64| {
        for n in 0..seconds {
            w.ask(4, async move |env| set(env, pairs(&[("b", &n.to_string())])).await);
            w.run(1_000_000);
            for node in [leader, other] {
                collect(w, node, 2_000_000);
                w.member(node).versions().compact().unwrap();
            }
        }
    };
    forget(&mut w, 12);
    assert_eq!(versions(&w, leader, b"a"), 0, "seed {seed}: it is forgotten");
    w.lose = Some(|message: &Message| {
        let body = (message.class == Class::Request).then(|| Frame::decode(&message.bytes).unwrap().body);
        // Directly, and by way of a third.
        let asked = body.and_then(|body| match body {
            Body::Request { request, .. } | Body::Relay { request, .. } => Some(request),
            _ => None,
        });
        matches!(asked, Some(Request::Outcome { .. } | Request::Fence { .. }))
    });
    let at = w.ask(4, async |env| set(env, pairs(&[("a", "after"), ("p", "1")])).await);
    forget(&mut w, 8);
    let status = w.member(leader).status(RangeId(1)).unwrap();
    assert!(status.prepared == 1 && status.collected > at, "seed {seed}: {status:?}");
    w.start(lagging);
    w.until("a snapshot", |w| w.member(lagging).counters().snapshots_installed.get() > 0);
    w.run(2_000_000);
    w.lose = None;
    w.run(8_000_000);
    assert_eq!(w.member(leader).stored(b"a").unwrap().as_deref(), Some(&b"after"[..]), "seed {seed}");
    let seen = w.member(lagging).stored(b"a").unwrap();
    let digests = [leader, lagging].map(|node| w.member(node).digest(RangeId(1)).unwrap());
    assert_eq!(digests[0] == digests[1], seen.is_some(), "seed {seed}: {digests:?}");
    seen
}

#[test]
fn what_is_decided_late_lies_above_what_a_snapshot_deletes() {
    for seed in 0..4 {
        assert_eq!(what_was_decided_late(seed, |_| {}).as_deref(), Some(&b"after"[..]), "seed {seed}");
        let lost = what_was_decided_late(seed, |sabotage| sabotage.set_bury_what_is_prepared(true));
        assert_eq!(lost, None, "seed {seed}: the rule is not needed");
    }
}

/// Forgetting what the logs do not allow shows: replicas are not equal any more.
#[test]
#[should_panic(expected = "differs on")]
fn a_store_that_forgets_by_itself_is_noticed() {
    let mut w = world(56, Weather::calm(), |sabotage| sabotage.set_collect_unlogged(true));
    write_for(&mut w, 10);
    w.run(3_000_000);
    let now = w.env(1).now();
    let leader = w.leader(1).unwrap();
    let node = leader % 3 + 1;
    let threshold = Timestamp::new(now.interval.earliest().physical_us() - 2_000_000, 0);
    w.member(node).collect(&now, threshold);
    w.flush(node);
    let threshold = w.member(node).collectable().unwrap();
    w.member(node).versions().collect(threshold).unwrap();
    w.check_replicas();
}

//! Transactions that are larger than an entry of the log.

use super::client::{Txn, pairs, set, value};
use super::splits::split;
use super::world::{World, founding, poll_fn};
use node::RangeId;
use node::TxnError;
use node::cluster::{FreezeReason, Frozen, LogLimits, Message, NodeId, STAGED_US};
use protocol::door::{Body, Frame, Request};
use protocol::txn::Part;
use std::collections::BTreeSet;
use std::task::Poll;
use store::VersionsConfig;

/// Entries of 200 bytes, parts of 50, and room for so many bytes of parts.
fn world(seed: u64, staged_bytes: u64) -> World {
    let limits = LogLimits { entry_bytes: 200, part_bytes: 50, staged_bytes, entries_kept: 5, ..LogLimits::default() };
    let mut w = World::with(seed, 3, founding(&["", "m"], &[1, 2, 3]), |_| {}, limits);
    w.await_leader(1);
    w.await_leader(2);
    w
}

fn rows(first: &str, count: usize, value: &str) -> Vec<(String, String)> {
    (0..count).map(|n| (format!("{first}{n:03}"), format!("{value}{n}"))).collect()
}

fn staged(w: &World) -> u64 {
    let ranges = [1, 2].map(RangeId);
    let of = |node: &u32| ranges.map(|range| w.member(*node).status(range).map_or(0, |status| status.staged_bytes));
    [1, 2, 3].iter().flat_map(of).sum()
}

/// Begins to commit, and goes no further.
fn begin_to_commit(w: &mut World, node: u32, rows: Vec<(String, String)>) {
    w.spawn(node, |env| {
        Box::pin(async move {
            let mut txn = Txn::begin(&env).unwrap();
            rows.iter().for_each(|(name, value)| txn.put(name, value));
            drop(txn.commit().await);
        })
    });
}

#[test]
fn it_is_all_or_nothing_in_one_range_and_in_two_and_small_ones_go_as_they_did() {
    let mut w = world(1, 1 << 20);
    w.ask(1, async |env| set(env, pairs(&[("a", "1"), ("x", "1")])).await);
    assert_eq!(w.member(1).counters().txn_commits_staged.get(), 0);
    for (node, first) in [(1, "b"), (2, "n"), (3, "c")] {
        let much = rows(first, 40, first);
        w.ask(node, async move |env| set(env, much).await);
    }
    let mut both = rows("d", 40, "both");
    both.extend(rows("p", 30, "both"));
    w.ask(2, async move |env| set(env, both).await);
    assert_eq!(w.member(2).counters().txn_commits_staged.get(), 2);
    assert!(w.member(2).counters().parts_sent.get() > 20);
    for node in 1..=3 {
        let all = w.ask(node, async |env| Txn::begin(&env).unwrap().scan("a", "z", false).await.unwrap());
        assert_eq!(all.len(), 2 + 3 * 40 + 70, "n{node}");
    }
    w.run(3_000_000);
    assert_eq!(staged(&w), 0);
    w.check_replicas();
}

#[test]
fn what_is_too_much_for_its_range_is_refused_and_leaves_nothing() {
    let mut w = world(2, 5000);
    let refused = w.ask(1, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        rows("b", 200, "much").iter().for_each(|(name, value)| txn.put(name, value));
        txn.commit().await
    });
    assert!(matches!(refused, Err(TxnError::Crowded { bytes, staged: 0, quota: 5000 }) if bytes > 5000), "{refused:?}");
    w.run(1_000_000);
    assert_eq!(staged(&w), 0);
    // A smaller one goes.
    w.ask(1, async |env| set(env, rows("b", 40, "less")).await);
    assert_eq!(w.ask(2, async |env| value(env, "b039").await).as_deref(), Some("less39"));
}

#[test]
fn the_parts_of_a_gateway_that_dies_go_by_themselves_at_all_replicas_alike() {
    let mut w = world(3, 1 << 20);
    let leader = w.leader(1).unwrap();
    let gateway = leader % 3 + 1;
    begin_to_commit(&mut w, gateway, rows("b", 60, "lost"));
    w.until("parts are there", |w| w.member(leader).status(RangeId(1)).unwrap().staged_bytes > 0);
    w.crash(gateway);
    w.run(2_000_000);
    assert!(w.member(leader).status(RangeId(1)).unwrap().staged_bytes > 0);
    w.start(gateway);
    w.run(STAGED_US + 5_000_000);
    assert_eq!(staged(&w), 0);
    assert_eq!(w.ask(gateway, async |env| value(env, "b000").await), None);
    w.check_replicas();
}

#[test]
fn whoever_gives_up_while_parts_are_on_their_way_has_not_committed_and_they_go_at_once() {
    let mut w = world(4, 1 << 20);
    let leader = w.leader(1).unwrap();
    let gateway = leader % 3 + 1;
    w.spawn(gateway, |env| {
        Box::pin(async move {
            let mut txn = Txn::begin(&env).unwrap();
            rows("b", 200, "given up").iter().for_each(|(name, value)| txn.put(name, value));
            let mut commit = std::pin::pin!(txn.commit());
            poll_fn(move |cx| {
                assert!(commit.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
        })
    });
    w.until("it has given up", |w| w.jobs() == 0);
    assert!(w.member(gateway).counters().parts_sent.get() > 1);
    w.run(2_000_000);
    assert_eq!(staged(&w), 0);
    assert_eq!(w.ask(gateway, async |env| value(env, "b000").await), None);
}

#[test]
fn parts_survive_leaders_and_restarts_and_reach_whoever_lags_in_a_snapshot() {
    let mut w = world(5, 1 << 20);
    let leader = w.leader(1).unwrap();
    let (gateway, lagging) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    w.crash(lagging);
    w.ask(gateway, async |env| set(env, rows("b", 60, "before")).await);
    // All parts are in but the last, which gets lost.
    w.lose = Some(|message| {
        let body = Frame::decode(&message.bytes).unwrap().body;
        let last = |part: &Part| part.number + 1 == part.whole.parts;
        matches!(body, Body::Request { request: Request::Stage(part), .. } if last(&part))
    });
    begin_to_commit(&mut w, gateway, rows("c", 60, "after"));
    w.until("parts are there", |w| w.member(leader).status(RangeId(1)).unwrap().staged_bytes > 0);
    w.run(1_000_000);
    w.flush(leader);
    w.flush(gateway);
    w.start(lagging);
    w.until("a snapshot", |w| w.member(lagging).counters().snapshots_installed.get() > 0);
    w.crash(leader);
    w.start(leader);
    w.lose = None;
    w.until("it has come to its end", |w| w.jobs() == 0);
    w.run(3_000_000);
    assert_eq!(w.ask(lagging, async |env| value(env, "c059").await).as_deref(), Some("after59"));
    assert_eq!(staged(&w), 0);
    w.check_replicas();
}

#[test]
fn a_range_that_splits_under_its_parts_is_found_again() {
    let mut w = world(6, 1 << 20);
    let leader = w.leader(1).unwrap();
    let gateway = leader % 3 + 1;
    for at in ["b030", "b010", "b050"] {
        begin_to_commit(&mut w, gateway, rows("b", 90, at));
        w.until("parts are there", |w| w.member(leader).status(RangeId(1)).unwrap().staged_bytes > 0);
        split(&mut w, leader, at);
        w.until("it has come to its end", |w| w.jobs() == 0);
        w.run(3_000_000);
        let last = at.to_owned();
        w.ask(gateway, async move |env| set(env, rows("b", 90, &last)).await);
        let all = w.ask(gateway, async |env| Txn::begin(&env).unwrap().scan("b", "c", false).await.unwrap());
        assert!(all.len() == 90 && all.iter().all(|(_, value)| value.starts_with(at)), "{all:?}");
        w.check_replicas();
    }
}

/// A large commit costs who applies it nothing but a place in a list: it is seen, by readers and by whoever certifies, and its writes find their places later.
#[test]
fn it_is_seen_at_once_and_put_in_its_places_by_whoever_has_the_time() {
    let limits = LogLimits { entry_bytes: 200, part_bytes: 50, entries_kept: 5, ..LogLimits::default() };
    let versions = VersionsConfig { show_min: 10, ..VersionsConfig::default() };
    let mut w = World::stored(8, 3, founding(&["", "m"], &[1, 2, 3]), |_| {}, limits, versions);
    w.places = false;
    w.await_leader(1);
    w.await_leader(2);
    w.ask(1, async |env| set(env, rows("b", 40, "one")).await);
    // Of two ranges: its outcomes are applied so.
    let mut both = rows("c", 40, "both");
    both.extend(rows("p", 30, "both"));
    w.ask(2, async move |env| set(env, both).await);
    w.run(3_000_000);
    for node in 1..=3 {
        assert!(w.member(node).versions().place(0), "n{node} has placed nothing");
        let all = w.ask(node, async |env| Txn::begin(&env).unwrap().scan("a", "z", false).await.unwrap());
        assert_eq!(all.len(), 40 + 70, "n{node}");
    }
    w.ask(3, async |env| set(env, pairs(&[("b007", "later")])).await);
    assert_eq!(w.ask(1, async |env| value(env, "b007").await).as_deref(), Some("later"));
    // A layer stands for whole commands, whoever dies.
    for node in 1..=3 {
        w.flush(node);
        assert!(!w.member(node).versions().place(0));
        w.crash(node);
        w.start(node);
    }
    w.run(5_000_000);
    assert_eq!(w.ask(2, async |env| value(env, "c039").await).as_deref(), Some("both39"));
    assert_eq!(w.ask(2, async |env| value(env, "b007").await).as_deref(), Some("later"));
    w.check_replicas();
}

/// A part of a large transaction is lost again and again, so that those before it stay staged, at the leader of the first range.
fn stage_much(w: &mut World) -> u32 {
    w.await_leader(1);
    w.await_leader(2);
    let leader = w.leader(1).unwrap();
    w.lose = Some(|message| {
        let body = Frame::decode(&message.bytes).unwrap().body;
        matches!(body, Body::Request { request: Request::Stage(part), .. } if part.number == 20)
    });
    let much: Vec<(String, String)> = (0..12).map(|n| (format!("b{n:02}"), "much".repeat(250_000))).collect();
    begin_to_commit(w, leader % 3 + 1, much);
    w.until("parts are there", |w| w.member(leader).status(RangeId(1)).unwrap().staged_bytes > 0);
    w.run(2_000_000);
    leader
}

/// What is staged is written with each layer: not again and again while more of it comes.
#[test]
fn while_much_is_staged_no_layer_is_closed_and_then_one_is() {
    let limits = LogLimits { entry_bytes: 200, ..LogLimits::default() };
    let mut w = World::with(9, 3, founding(&["", "m"], &[1, 2, 3]), |_| {}, limits);
    let leader = stage_much(&mut w);
    let freeze = |reason| w.member(leader).freeze(reason);
    assert_eq!(freeze(FreezeReason::Due), Frozen::PutOff, "it would be written with the layer");
    assert_eq!(freeze(FreezeReason::Room), Frozen::Layer, "the disk is nearly full");
    assert_eq!(freeze(FreezeReason::Due), Frozen::PutOff);
    // It gives back less of the disk than it takes, until others have written as much as is staged.
    assert_eq!(freeze(FreezeReason::Tight), Frozen::PutOff);
    for n in 0..40 {
        let large = "large".repeat(100_000);
        w.ask(leader, async move |env| set(env, pairs(&[(&format!("x{n}"), &large)])).await);
    }
    assert!(!w.member(leader).versions().freeze_due());
    assert_eq!(w.member(leader).freeze(FreezeReason::Due), Frozen::PutOff);
    assert_eq!(w.member(leader).freeze(FreezeReason::Tight), Frozen::Layer, "the log gives more back");
    assert_eq!(w.member(leader).freeze(FreezeReason::Tight), Frozen::PutOff);
    w.lose = None;
    w.until("it has come to its end", |w| w.jobs() == 0);
    w.run(1_000_000);
    assert_eq!(staged(&w), 0);
    assert_eq!(w.member(leader).freeze(FreezeReason::Due), Frozen::Layer);
    assert_eq!(w.ask(leader, async |env| value(env, "b11").await).map(|value| value.len()), Some(1_000_000));
}

/// Parts may wait for just that layer, and the longer it is not closed the more who writes waits for.
#[test]
fn a_layer_that_is_due_is_closed_however_much_is_staged() {
    let limits = LogLimits { entry_bytes: 2000, ..LogLimits::default() };
    let versions = VersionsConfig { freeze_bytes: 50_000, ..VersionsConfig::default() };
    let mut w = World::stored(13, 3, founding(&["", "m"], &[1, 2, 3]), |_| {}, limits, versions);
    let leader = stage_much(&mut w);
    assert_eq!(w.member(leader).freeze(FreezeReason::Due), Frozen::PutOff, "little is in it");
    for n in 0..60 {
        w.ask(leader, async move |env| set(env, pairs(&[(&format!("x{n}"), &"small".repeat(200))])).await);
    }
    assert!(w.member(leader).versions().freeze_due());
    assert_eq!(w.member(leader).freeze(FreezeReason::Due), Frozen::Layer, "it is due");
}

/// `node::cluster`, staging, invariant 4.
#[test]
fn few_parts_are_sent_ahead_of_one_that_is_lost() {
    let mut w = world(10, 1 << 20);
    let gateway = w.leader(1).unwrap() % 3 + 1;
    w.lose = Some(|message| {
        let body = Frame::decode(&message.bytes).unwrap().body;
        matches!(body, Body::Request { request: Request::Stage(part), .. } if part.number == 2)
    });
    w.overheard = Some(Vec::new());
    begin_to_commit(&mut w, gateway, rows("b", 200, "many"));
    w.run(2_000_000);
    let number = |message: Message| match Frame::decode(&message.bytes).unwrap().body {
        Body::Request { request: Request::Stage(part), .. } => Some(part.number),
        _ => None,
    };
    let sent: BTreeSet<u32> = w.overheard.take().unwrap().into_iter().filter_map(number).collect();
    assert!(sent.len() > 10 && sent.iter().all(|number| *number < 2 + 16), "{sent:?}");
    w.lose = None;
    w.until("it has come to its end", |w| w.jobs() == 0);
    assert_eq!(w.ask(gateway, async |env| value(env, "b199").await).as_deref(), Some("many199"));
}

/// What a large transaction brought to memory at once holds up nobody but the parts of the next one.
#[test]
fn a_large_one_alone_makes_nobody_wait_for_the_engine_but_the_next_large_one() {
    let limits = LogLimits { entry_bytes: 2000, part_bytes: 500, staged_bytes: 1 << 20, ..LogLimits::default() };
    let versions = VersionsConfig { show_min: 10, freeze_bytes: 2000, ..VersionsConfig::default() };
    let mut w = World::stored(11, 3, founding(&["", "m"], &[1, 2, 3]), |_| {}, limits, versions);
    w.await_leader(1);
    w.await_leader(2);
    let leader = w.leader(1).unwrap();
    let large = |first: &str| rows(first, 60, &"much".repeat(100));
    w.ask(leader, async move |env| set(env, large("b")).await);
    w.run(1_000_000);
    for node in 1..=3 {
        while w.member(node).versions().place(usize::MAX) {}
        assert!(w.member(node).versions().is_overlay_full(), "n{node}");
        assert!(!w.member(node).is_overlay_full(false), "n{node}: nobody waits for it");
        assert!(w.member(node).is_overlay_full(true), "n{node}: but the next one");
    }
    w.ask(leader, async |env| set(env, pairs(&[("c", "small")])).await);
    let put_off = |w: &World| w.member(leader).counters().commands_put_off.get();
    assert_eq!(put_off(&w), 0);
    begin_to_commit(&mut w, leader, large("d"));
    w.run(1_000_000);
    assert!(put_off(&w) > 0 && w.jobs() == 1, "its parts wait");
    (1..=3).for_each(|node| w.flush(node));
    w.until("it has come to its end", |w| w.jobs() == 0);
    assert_eq!(w.ask(leader, async |env| value(env, "d059").await).map(|value| value.len()), Some(402));
}

/// Its first part waits for the log of its range; meanwhile another one is staged beside it, for which there is just room, and the part is sent again: the log takes it.
#[test]
fn a_part_that_is_on_its_way_is_not_measured_again() {
    // One would fill more than half of what there is room for in memory, and little of what the log has.
    let limits = LogLimits { entry_bytes: 200, part_bytes: 50, staged_bytes: 7000, ..LogLimits::default() };
    let mut ranges = founding(&["", "m"], &[1, 2]);
    ranges[0].replicas.truncate(1);
    let led_by_one = |seed| {
        let mut w = World::with(seed, 3, ranges.clone(), |_| {}, limits);
        w.await_leader(1);
        (w.await_leader(2) == 1).then_some(w)
    };
    let mut w = (0..20).find_map(led_by_one).expect("a seed with which node 1 leads both");
    w.run(1_000_000);
    w.lose = Some(|message| {
        let body = || Frame::decode(&message.bytes).unwrap().body;
        let is_fourth = || matches!(body(), Body::Request { request: Request::Stage(part), .. } if part.number == 3);
        message.to == NodeId(2) || is_fourth()
    });
    begin_to_commit(&mut w, 3, rows("p", 60, "first"));
    w.run(100_000);
    begin_to_commit(&mut w, 3, rows("b", 60, "second"));
    w.run(700_000);
    let staged = |w: &World, range| w.member(1).status(RangeId(range)).unwrap().staged_bytes;
    assert!(staged(&w, 1) > 0 && staged(&w, 2) == 0);
    w.lose = None;
    w.until("both have come to their ends", |w| w.jobs() == 0);
    assert_eq!(w.ask(3, async |env| value(env, "b059").await).as_deref(), Some("second59"));
    assert_eq!(w.ask(3, async |env| value(env, "p059").await).as_deref(), Some("first59"));
}

//! Ranges that are split while they are used.

use super::client::{Txn, pairs, set, value};
use super::world::{World, founding, key};
use clock::Timestamp;
use node::cluster::{NodeId, ReplicaChange};
use node::{CommitError, RangeId};
use std::task::{Poll, Waker};

pub fn split(w: &mut World, node: u32, at: &str) {
    for _ in 0..100 {
        let now = w.env(node).now();
        let ticket = w.member(node).split(&now, key(at), Waker::noop());
        w.drain(node);
        for _ in 0..200 {
            w.run(10_000);
            match ticket.poll(Waker::noop()) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => return,
                Poll::Ready(Err(CommitError::Refused(_))) => break,
                Poll::Ready(Err(other)) => panic!("{other:?}"),
            }
        }
    }
    panic!("{at} is never split");
}

#[test]
fn a_range_is_split_wherever_it_is_asked_and_everybody_finds_its_parts() {
    let mut w = World::new(21, 4, founding(&[""], &[1, 2, 3]), |_| {});
    w.await_leader(1);
    w.ask(1, async |env| set(env, pairs(&[("a", "1"), ("h", "2"), ("p", "3"), ("x", "4")])).await);
    split(&mut w, 4, "h");
    split(&mut w, 2, "x");
    split(&mut w, 4, "p");
    split(&mut w, 4, "p");
    w.run(5_000_000);
    assert_eq!(w.member(1).ranges().len(), 4, "asked for twice, done once");
    for node in 1..=4 {
        let rows = w.ask(node, async |env| Txn::begin(&env).unwrap().scan("a", "z", false).await.unwrap());
        let text: String = rows.into_iter().map(|(k, v)| k + &v).collect();
        assert_eq!(text, "a1h2p3x4", "n{node}");
        w.ask(node, async |env| set(env, pairs(&[("a", "1"), ("h", "2"), ("p", "3"), ("x", "4")])).await);
    }
    // All of it after a restart of all, from logs and from flushed state.
    for round in 0..2 {
        for node in 1..=4 {
            if round == 1 {
                w.flush(node);
            }
            w.crash(node);
        }
        (1..=4).for_each(|node| w.start(node));
        assert_eq!(w.ask(4, async |env| value(env, "x").await).as_deref(), Some("4"));
        w.run(5_000_000);
        w.check_replicas();
        assert_eq!(w.member(2).ranges().len(), 4);
    }
}

/// What is split off need not wait until somebody's patience ends: who led it before asks for the votes at once.
#[test]
fn who_led_a_range_leads_what_is_split_off() {
    for seed in 0..6 {
        let mut w = World::new(seed, 3, founding(&[""], &[1, 2, 3]), |_| {});
        let leader = w.await_leader(1);
        split(&mut w, leader, "m");
        let (began_us, ranges) = (w.now_us(), w.member(leader).ranges());
        let right = ranges.into_iter().map(|range| range.0).find(|range| *range != 1).unwrap();
        let heir = w.await_leader(right);
        assert_eq!(heir, leader);
        assert!(w.now_us() - began_us < 1_000_000, "virtual time: an election by timeout takes longer");
    }
}

/// A node was away during a split: whether it comes back to a log or to a snapshot, it comes to the same.
#[test]
fn a_node_that_missed_a_split_catches_up() {
    for seed in 0..12 {
        let mut w = World::new(seed, 3, founding(&[""], &[1, 2, 3]), |_| {});
        w.await_leader(1);
        w.ask(1, async |env| set(env, pairs(&[("a", "1"), ("h", "1"), ("p", "1")])).await);
        let away = 1 + (seed % 3) as u32;
        let other = away % 3 + 1;
        w.crash(away);
        split(&mut w, other, "h");
        if seed % 2 == 0 {
            split(&mut w, other, "p");
        }
        for round in 0..(seed % 4) * 15 {
            let text = round.to_string();
            w.ask(other, async move |env| set(env, pairs(&[("a", &text), ("h", &text), ("p", &text)])).await);
            if round % 5 == 4 {
                w.flush(other);
                w.flush(other % 3 + 1);
            }
        }
        w.start(away);
        for _ in 0..seed % 3 {
            w.run(300_000 * seed);
            w.crash(away);
            w.start(away);
        }
        w.run(15_000_000);
        let ranges = w.member(other).ranges();
        assert_eq!(w.member(away).ranges(), ranges, "seed {seed}");
        for range in ranges {
            let all: Vec<_> = (1..=3).map(|node| w.member(node).digest(range).unwrap()).collect();
            assert!(all.iter().all(|one| *one == all[0]), "seed {seed} {range}: {all:?}");
        }
    }
}

/// What was read before the split, above its timestamp perhaps, is not written below afterwards: a strict reader with a wide bound reads, the
/// range splits, a writer follows.
#[test]
fn what_was_read_before_a_split_stays() {
    let mut below = 0;
    for seed in 20..26 {
        let (wrote, at) = read_while_splitting(seed, |_| {});
        assert!(wrote > at, "seed {seed}: {wrote}, read at {at}");
        let (wrote, at) = read_while_splitting(seed, |sabotage| sabotage.set_read_while_splitting(true));
        below += u32::from(wrote < at);
    }
    assert!(below > 0, "nothing is written below what was read, in 6 seeds");
}

fn read_while_splitting(seed: u64, prepare: super::world::Prepare) -> (Timestamp, Timestamp) {
    let mut w = World::new(seed, 4, founding(&[""], &[1, 2, 3]), prepare);
    for node in 1..=3 {
        w.set_watch(node, 0, 100);
    }
    w.set_watch(4, 1_300_000, 1_400_000);
    let leader = w.await_leader(1);
    w.ask(4, async |env| set(env, pairs(&[("p", "0")])).await);
    // It asks for a split, and reads while that is on its way.
    let now = w.env(leader).now();
    drop(w.member(leader).split(&now, key("h"), Waker::noop()));
    w.drain(leader);
    let (seen, at) = w.ask(4, async |env| {
        let mut txn = Txn::strict(&env).unwrap();
        (txn.get("p").await.unwrap(), txn.txn.snapshot())
    });
    assert_eq!(seen.as_deref(), Some("0"));
    let wrote = w.ask(leader, async |env| {
        let mut txn = Txn::hybrid(&env).unwrap();
        txn.put("p", "1");
        txn.commit().await
    });
    w.run(3_000_000);
    assert_eq!(w.member(1).ranges().len(), 2);
    assert!(w.member(1).ranges().iter().all(|range| *range == RangeId(1) || range.0 >> 40 == u64::from(leader)));
    (wrote.unwrap(), at)
}

/// A node that gets a range after it was split, and leads it, knows where the other part is: it hears of the split from nobody else.
#[test]
fn a_range_that_moved_after_a_split_knows_its_neighbour() {
    let mut w = World::new(23, 4, founding(&[""], &[1, 2, 3]), |_| {});
    w.await_leader(1);
    w.ask(1, async |env| set(env, pairs(&[("a", "1"), ("p", "2"), ("x", "3")])).await);
    split(&mut w, 1, "h");
    split(&mut w, 1, "n");
    let new = NodeId(4);
    let change = |w: &mut World, changes: &[ReplicaChange]| {
        for _ in 0..200 {
            let leader = w.await_leader(1);
            let now = w.env(leader).now();
            let taken = w.member(leader).change_replicas(&now, RangeId(1), changes);
            w.drain(leader);
            w.run(100_000);
            if taken.is_ok() {
                return;
            }
        }
        panic!("never taken: {changes:?}");
    };
    change(&mut w, &[ReplicaChange::Add(new)]);
    change(&mut w, &[ReplicaChange::Promote(new)]);
    w.run(2_000_000);
    let leader = w.await_leader(1);
    let now = w.env(leader).now();
    w.member(leader).hand_over(&now, RangeId(1), new).unwrap();
    w.drain(leader);
    w.until("it leads", |w| w.leader(1) == Some(4));
    let rows = w.ask(4, async |env| Txn::begin(&env).unwrap().scan("a", "z", false).await.unwrap());
    let text: String = rows.into_iter().map(|(k, v)| k + &v).collect();
    assert_eq!(text, "a1p2x3");
    assert_eq!(w.ask(4, async |env| value(env, "x").await).as_deref(), Some("3"));
}

/// Of three nodes one has applied a split, the second has it in its log and has not heard that it is committed, the third gets the range as it was after it. The first one
/// dies for good. What was split off comes back, from the log of the second; whether it does.
fn the_only_one_that_applied_a_split_dies(seed: u64, prepare: super::world::Prepare) -> bool {
    // Nothing of the log is kept that a flush made needless.
    let mut w = World::new(3 * seed, 3, founding(&[""], &[1, 2, 3]), prepare);
    let a = w.await_leader(1);
    let (b, c) = (a % 3 + 1, (a + 1) % 3 + 1);
    w.ask(a, async |env| set(env, pairs(&[("a", "1"), ("p", "2")])).await);
    w.run(500_000);
    w.crash(c);
    let now = w.env(a).now();
    drop(w.member(a).split(&now, key("m"), Waker::noop()));
    w.drain(a);
    while w.member(a).ranges().len() < 2 {
        w.run(50);
    }
    w.crash(b);
    w.flush(a);
    let right = w.member(a).ranges().into_iter().find(|range| *range != RangeId(1)).unwrap();
    w.start(c);
    w.until("a snapshot at the third", |w| w.member(c).counters().snapshots_installed.get() > 0);
    // Its own log begins behind the split then, too.
    w.ask(a, async |env| set(env, pairs(&[("a", "2")])).await);
    w.run(50_000);
    w.flush(c);
    let founded = w.member(c).status(right).is_some_and(|status| status.applied > 0);
    assert!(!founded, "seed {seed}: the third has got the new range, too: it should die earlier");
    w.crash(a);
    w.start(b);
    w.run(20_000_000);
    if w.leader(right.0).is_none() {
        return false;
    }
    assert_eq!(w.ask(c, async |env| value(env, "p").await).as_deref(), Some("2"));
    assert_eq!(w.ask(c, async |env| value(env, "a").await).as_deref(), Some("2"));
    assert_eq!(w.member(b).counters().splits_caught_up.get(), 1);
    w.check_replicas();
    true
}

#[test]
fn a_split_in_the_log_is_not_jumped_over() {
    for seed in 0..4 {
        assert!(the_only_one_that_applied_a_split_dies(seed, |_| {}), "seed {seed}: what was split off is lost");
        let jumped = the_only_one_that_applied_a_split_dies(seed, |sabotage| sabotage.set_jump_splits(true));
        assert!(!jumped, "seed {seed}: the rule is not needed");
    }
}

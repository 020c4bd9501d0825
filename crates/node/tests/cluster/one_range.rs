//! One range, three nodes.

use super::client::{Txn, pairs, set, value};
use super::world::{World, founding, key, poll_fn};
use node::{RangeId, TxnError};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Poll, Waker};

fn world(seed: u64) -> World {
    World::new(seed, 3, founding(&[""], &[1, 2, 3]), |_| {})
}

#[test]
fn a_commit_is_on_all_replicas_and_read_from_any_node() {
    let mut w = world(1);
    let leader = w.await_leader(1);
    for node in 1..=3 {
        let at = w.ask(node, async move |env| set(env, pairs(&[("a", &node.to_string()), ("b", "x")])).await);
        for reader in 1..=3 {
            let seen = w.ask(reader, async |env| value(env, "a").await);
            assert_eq!(seen, Some(node.to_string()), "written at n{node}, leader n{leader}, read at n{reader}, {at}");
        }
    }
    w.run(1_000_000);
    for node in 1..=3 {
        let member = w.member(node);
        assert_eq!(member.stored(b"a").unwrap().as_deref(), Some(&b"3"[..]));
    }
    let places: Vec<_> = (1..=3).map(|node| w.member(node).digest(RangeId(1)).unwrap()).collect();
    assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
}

#[test]
fn what_was_acknowledged_survives_the_crash_of_the_leader_and_of_all() {
    for seed in 0..20 {
        let mut w = world(seed);
        let leader = w.await_leader(1);
        let other = leader % 3 + 1;
        w.ask(other, async |env| set(env, pairs(&[("a", "1")])).await);
        w.crash(leader);
        assert_eq!(w.ask(other, async |env| value(env, "a").await).as_deref(), Some("1"));
        w.ask(other, async |env| set(env, pairs(&[("a", "2")])).await);
        w.start(leader);
        w.run(500_000);
        w.flush(leader);
        for node in 1..=3 {
            w.crash(node);
        }
        for node in 1..=3 {
            w.start(node);
        }
        assert_eq!(w.ask(leader, async |env| value(env, "a").await).as_deref(), Some("2"), "seed {seed}");
        w.run(3_000_000);
        w.check_replicas();
    }
}

#[test]
fn a_leader_that_is_cut_off_serves_nothing_beyond_its_lease() {
    let mut w = world(3);
    let leader = w.await_leader(1);
    w.ask(leader, async |env| set(env, pairs(&[("a", "1")])).await);
    w.cut_off(leader);
    let other = leader % 3 + 1;
    w.ask(other, async |env| set(env, pairs(&[("a", "2")])).await);
    // It may not know; what it says of the present is an error, never the old value.
    let seen = w.ask(leader, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        txn.get("a").await
    });
    assert!(matches!(seen, Err(TxnError::Unavailable { .. })), "{seen:?}");
    w.heal();
    // It has to hear somebody first.
    w.run(1_000_000);
    assert_eq!(w.ask(leader, async |env| value(env, "a").await).as_deref(), Some("2"));
    w.run(3_000_000);
    w.check_replicas();
}

#[test]
fn conflicts_are_found_and_locks_queue() {
    let mut w = world(4);
    w.await_leader(1);
    w.ask(1, async |env| set(env, pairs(&[("x", "1"), ("y", "1")])).await);
    let skew = w.ask(2, async |env| {
        let (mut a, mut b) = (Txn::begin(&env).unwrap(), Txn::begin(&env).unwrap());
        for txn in [&mut a, &mut b] {
            txn.get("x").await.unwrap();
            txn.get("y").await.unwrap();
        }
        a.put("x", 0);
        b.put("y", 0);
        (a.commit().await, b.commit().await)
    });
    assert!(skew.0.is_ok() && matches!(skew.1, Err(TxnError::Restart { .. })), "{skew:?}");
    // Where a span was read, the key that changed is named, and not the span's start: at the commit, and where the snapshot cannot move up.
    for late in [false, true] {
        let told = w.ask(3, async move |env| {
            let mut txn = Txn::begin(&env).unwrap();
            txn.scan("a", "z", false).await.unwrap();
            set(env.clone(), pairs(&[("y", "3"), ("zz", "3")])).await;
            if late {
                return txn.lock("zz").await.map(drop);
            }
            txn.put("b", 0);
            txn.commit().await.map(drop)
        });
        assert!(matches!(&told, Err(TxnError::Restart { key: Some(named), .. }) if *named == key("y")), "{told:?}");
    }
    // Each waits for the lock and sees the one before.
    for node in 1..=3 {
        w.spawn(node, move |env| {
            Box::pin(async move {
                for _ in 0..5 {
                    let mut txn = Txn::begin(&env).unwrap();
                    assert!(txn.lock("n").await.unwrap());
                    let n = txn.number("n").await.unwrap();
                    txn.put("n", n + 1);
                    txn.commit().await.unwrap();
                }
            })
        });
    }
    w.until("all have counted", |world| world.jobs() == 0);
    assert_eq!(w.ask(1, async |env| value(env, "n").await).as_deref(), Some("15"));
    w.run(1_000_000);
    let locks: usize = (1..=3).map(|node| w.member(node).lock_counts().0).sum();
    assert_eq!(locks, 0, "no lock is left");
}

#[test]
fn one_seed_twice_gives_the_same_bytes() {
    let run = |seed| {
        let mut w = world(seed);
        w.weather = super::world::Weather::rough();
        w.await_leader(1);
        w.ask(1, async |env| set(env, pairs(&[("x", "1"), ("y", "1")])).await);
        w.crash(2);
        w.run(2_000_000);
        w.start(2);
        w.run(2_000_000);
        w.digest
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

/// Locks lie in the memory of who leads. Where another comes to lead, that is counted, for whoever wonders why he was refused.
#[test]
fn a_lost_lock_table_is_counted() {
    let mut w = world(5);
    let lost = |w: &World| -> u64 {
        (1..=3).filter(|node| w.runs(*node)).map(|node| w.member(node).counters().lock_tables_lost.get()).sum()
    };
    let leader = w.await_leader(1);
    let other = leader % 3 + 1;
    w.ask(other, async |env| set(env, pairs(&[("a", "1")])).await);
    assert_eq!(lost(&w), 0, "nobody has led before");
    // Who has locked a row when its leader is lost is refused if another writes it: certification knows what the new leader does not.
    let refused = Rc::new(Cell::new(None));
    let (told, holds) = (refused.clone(), Rc::new(Cell::new(false)));
    let (go, locked) = (Rc::new(Cell::new(false)), holds.clone());
    let waker: Rc<RefCell<Option<Waker>>> = Rc::default();
    let (goes, wakes) = (go.clone(), waker.clone());
    w.spawn(other, move |env| {
        Box::pin(async move {
            let mut txn = Txn::begin(&env).unwrap();
            txn.lock("a").await.unwrap();
            let before = txn.get("a").await.unwrap();
            locked.set(true);
            poll_fn(|cx| {
                *wakes.borrow_mut() = Some(cx.waker().clone());
                if goes.get() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            assert_eq!(before.as_deref(), Some("1"));
            txn.put("a", "3");
            told.set(Some(txn.commit().await.is_err()));
        })
    });
    w.until("the row is locked", |_| holds.get());
    w.crash(leader);
    w.ask(other, async |env| set(env, pairs(&[("a", "2")])).await);
    assert!(lost(&w) > 0, "another leads");
    go.set(true);
    waker.take().expect("it waits").wake();
    w.until("the first has ended", |_| refused.get().is_some());
    assert_eq!(refused.get(), Some(true));
}

/// Many wait for one row: each waits for all before it, and the ways through them double with each. What is sent for them does not.
#[test]
fn a_queue_of_many_costs_probes_by_their_number() {
    const WAITERS: u64 = 48;
    let mut w = World::new(9, 3, founding(&["", "m"], &[1, 2, 3]), |_| {});
    w.await_leader(1);
    w.await_leader(2);
    for waiter in 0..=WAITERS {
        w.spawn(waiter as u32 % 3 + 1, move |env| {
            Box::pin(async move {
                let mut txn = Txn::begin(&env).unwrap();
                txn.lock("a").await.unwrap();
                // Whoever has it keeps it.
                poll_fn(|_| Poll::Pending).await
            })
        });
    }
    w.run(5_000_000);
    let probes: u64 = (1..=3).map(|node| w.member(node).counters().deadlock_probes.get()).sum();
    assert!(probes > WAITERS && probes < 5 * 200 * WAITERS, "{probes} probes in 5 s");
    let fallen: u64 = (1..=3).map(|node| w.member(node).counters().txn_deadlocks.get()).sum();
    assert_eq!(fallen, 0, "nobody is in a circle");
}

/// Two transactions wait for each other at two leaders; the younger falls, the older goes on, and nothing is left.
#[test]
fn a_deadlock_through_two_leaders_has_one_victim() {
    for nodes in [[1, 2], [2, 1], [3, 3]] {
        let mut ranges = founding(&["", "m"], &[1]);
        ranges[1].replicas = vec![node::cluster::NodeId(2)];
        let mut w = World::new(9, 3, ranges, |_| {});
        w.await_leader(1);
        w.await_leader(2);
        let ends = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        for (node, [first, second]) in nodes.into_iter().zip([["a", "p"], ["p", "a"]]) {
            let ends = ends.clone();
            w.spawn(node, move |env| {
                Box::pin(async move {
                    let mut txn = Txn::begin(&env).unwrap();
                    assert!(txn.lock(first).await.unwrap());
                    let end = txn.lock(second).await;
                    if end.is_ok() {
                        txn.put("a", 1);
                        txn.commit().await.unwrap();
                    }
                    ends.borrow_mut().push(end);
                })
            });
        }
        w.until("both have ended", |world| world.jobs() == 0);
        let ends = ends.take();
        let fell =
            ends.iter().filter(|end| matches!(end, Err(TxnError::Deadlock { cycle }) if cycle.len() == 2)).count();
        let went_on = ends.iter().filter(|end| matches!(end, Ok(true))).count();
        assert_eq!((fell, went_on), (1, 1), "{nodes:?}: {ends:?}");
        w.run(1_000_000);
        let locks: usize = (1..=3).map(|node| w.member(node).lock_counts().0).sum();
        assert_eq!(locks, 0, "{nodes:?}");
    }
}

/// Who waits for a row gets it when its holder ends, by a commit or not, and not at the next tick.
#[test]
fn a_row_passes_on_at_once() {
    let mut w = world(31);
    let leader = w.await_leader(1);
    w.ask(leader, async |env| set(env, pairs(&[("a", "0")])).await);
    for round in 0..10 {
        let (go, ended_us, got_us) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let waker = Rc::new(RefCell::new(Waker::noop().clone()));
        let (may, ended, tells) = (go.clone(), ended_us.clone(), waker.clone());
        w.spawn(leader, move |env| {
            Box::pin(async move {
                let mut txn = Txn::begin(&env).unwrap();
                txn.lock("a").await.unwrap();
                poll_fn(|cx| {
                    *tells.borrow_mut() = cx.waker().clone();
                    if may.get() { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                if round % 2 == 0 {
                    txn.put("a", round);
                    txn.commit().await.unwrap();
                } else {
                    txn.txn.rollback();
                }
                ended.set(env.true_us.get());
            })
        });
        w.run(200_000);
        let got = got_us.clone();
        w.spawn(leader, move |env| {
            Box::pin(async move {
                let mut txn = Txn::begin(&env).unwrap();
                txn.lock("a").await.unwrap();
                got.set(env.true_us.get());
            })
        });
        // Not when there is a tick.
        w.run(500_000 + 7_000 * round);
        assert_eq!(got_us.get(), 0);
        go.set(true);
        waker.borrow().wake_by_ref();
        w.run(400_000);
        let (ended_us, got_us) = (ended_us.get(), got_us.get());
        assert!(ended_us > 0 && (ended_us..ended_us + 2_000).contains(&got_us), "{round}: {ended_us}, {got_us}");
    }
}

/// Under load a commit costs each follower one message, not one more to say that it is committed: that they hear with the next.
#[test]
fn followers_hear_of_commits_by_what_they_are_sent_anyway() {
    let mut w = world(32);
    let leader = w.await_leader(1);
    w.ask(leader, async |env| set(env, pairs(&[("a", "0")])).await);
    let sent = |w: &World| w.member(leader).counters().messages_sent.get();
    let before = sent(&w);
    w.ask(leader, async |env| {
        for n in 0..200 {
            set(env.clone(), pairs(&[("a", &n.to_string())])).await;
        }
    });
    let messages = sent(&w) - before;
    assert!((400..600).contains(&messages), "{messages} messages to two followers for 200 commits");
    w.run(300_000);
    for node in 1..=3 {
        assert_eq!(w.member(node).stored(b"a").unwrap().as_deref(), Some(&b"199"[..]), "n{node}: a heartbeat later");
    }
}

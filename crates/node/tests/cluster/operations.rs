//! What SQL needs of a transaction beside reads and writes: on ranges led elsewhere, over splits, with messages lost.

use super::client::{Txn, pairs, set, value};
use super::splits::split;
use super::world::{Env, Weather, World, founding, key, poll_fn};
use clock::Timestamp;
use node::cluster::Message;
use node::{BeginOptions, Isolation, LockMode, TxnError, WhenLocked};
use protocol::door::{Answer, Body, Frame, Request};
use protocol::txn::Span;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const LEVELS: [Isolation; 3] = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];

fn at_level(env: &Env, isolation: Isolation) -> Txn {
    Txn::with(env, BeginOptions { isolation, session: Some(7), ..BeginOptions::default() }).unwrap()
}

async fn observe(txn: &mut Txn, name: &str) -> Result<Option<bytes::Bytes>, TxnError> {
    poll_fn(|cx| txn.txn.observe(&txn.env.now(), name.as_bytes(), cx.waker())).await
}

async fn rely(txn: &mut Txn, name: &str, since: Timestamp, certified: bool) -> Result<(), TxnError> {
    poll_fn(|cx| txn.txn.rely(&txn.env.now(), &key(name), since, certified, cx.waker())).await
}

async fn skip(env: &Env, txn: &mut Txn, name: &str) -> Result<bool, TxnError> {
    let (mode, when) = (LockMode::Update, WhenLocked::Skip);
    poll_fn(|cx| txn.txn.lock(&env.now(), name.as_bytes(), mode, when, cx.waker())).await
}

/// As a change of the catalog: a token is deleted, over what others write.
async fn change(env: &Env, name: &str) {
    loop {
        let mut txn = Txn::begin(env).unwrap();
        txn.txn.overwrite(key(name), None).unwrap();
        match txn.commit().await {
            Ok(_) => return,
            Err(TxnError::Restart { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Ranges that node 4, where everybody asks, has no replica of: what is seen, tokens, rows.
fn world(seed: u64, weather: Weather) -> World {
    let mut w = World::new(seed, 4, founding(&["", "s", "t"], &[1, 2, 3]), |_| {});
    w.weather = weather;
    for range in 1..=3 {
        w.await_leader(range);
    }
    w
}

#[test]
fn what_is_relied_upon_must_stay_and_what_is_observed_need_not() {
    for (seed, weather) in [(31, Weather::calm()), (32, Weather::rough()), (33, Weather::rough())] {
        world(seed, weather).ask(4, async |env| {
            for isolation in LEVELS {
                for (certified, committed) in [(true, false), (false, isolation != Isolation::Serializable)] {
                    let mut txn = at_level(&env, isolation);
                    let since = txn.txn.snapshot();
                    observe(&mut txn, "seen").await.unwrap();
                    rely(&mut txn, "token", since, certified).await.unwrap();
                    txn.put("row", 1);
                    change(&env, "seen").await;
                    change(&env, "token").await;
                    assert_eq!(txn.commit().await.is_ok(), committed, "{isolation:?}, certified: {certified}");
                }
                // The snapshot does not move over it, at any level; over what was only observed it does.
                for (relies, moves) in [(true, false), (false, true)] {
                    let mut txn = at_level(&env, isolation);
                    let since = txn.txn.snapshot();
                    observe(&mut txn, "token").await.unwrap();
                    if relies {
                        rely(&mut txn, "token", since, false).await.unwrap();
                    }
                    change(&env, "token").await;
                    set(env.clone(), pairs(&[("row", "2")])).await;
                    assert_eq!(txn.lock("row").await.is_ok(), moves, "{isolation:?}");
                    // Where it has moved over a change already nobody may rely on what was before.
                    if moves {
                        let relied = rely(&mut txn, "token", since, false).await;
                        assert!(matches!(relied, Err(TxnError::Restart { .. })), "{relied:?}");
                        let since = txn.txn.snapshot();
                        assert_eq!(rely(&mut txn, "token", since, false).await, Ok(()));
                    }
                }
                // What is taken back does not rely on anything any more, where reads are not certified.
                let mut txn = at_level(&env, isolation);
                let (since, mark) = (txn.txn.snapshot(), txn.txn.savepoint());
                rely(&mut txn, "token", since, true).await.unwrap();
                txn.txn.rollback_to(mark);
                txn.put("row", 3);
                change(&env, "token").await;
                assert_eq!(txn.commit().await.is_ok(), isolation != Isolation::Serializable, "{isolation:?}");
            }
        });
    }
}

fn asked_whether_changed(message: &Message) -> bool {
    matches!(
        Frame::decode(&message.bytes).map(|frame| frame.body),
        Ok(Body::Request { request: Request::Changed { .. }, .. } | Body::Answer { answer: Answer::Changed(_), .. })
    )
}

/// The question for a token is lost, and its answer; meanwhile the token's range is split, which the gateway does not know.
#[test]
fn relying_finds_the_range_that_the_token_is_in_now() {
    let mut w = world(34, Weather::calm());
    w.ask(4, async |env| set(env, pairs(&[("token", "1"), ("row", "1")])).await);
    let told = Rc::new(RefCell::new(None));
    let result = told.clone();
    w.lose = Some(asked_whether_changed);
    w.spawn(4, move |env| {
        Box::pin(async move {
            let mut txn = at_level(&env, Isolation::Serializable);
            let since = txn.txn.snapshot();
            // Nothing was read: the snapshot moves freely.
            set(env.clone(), pairs(&[("row", "2")])).await;
            assert!(txn.lock("row").await.unwrap());
            assert!(txn.txn.snapshot() > since);
            let relied = rely(&mut txn, "token", since, true).await;
            *result.borrow_mut() = Some(relied);
        })
    });
    w.run(1_000_000);
    assert!(told.borrow().is_none(), "nobody answers");
    split(&mut w, 1, "tok");
    w.lose = None;
    w.until("an answer", |_| told.borrow().is_some());
    assert_eq!(told.take(), Some(Ok(())));
}

#[test]
fn writes_over_others_meet_none() {
    let mut w = world(35, Weather::rough());
    w.ask(4, async |env| {
        let (mut a, mut b, mut c) = (Txn::begin(&env).unwrap(), Txn::begin(&env).unwrap(), Txn::begin(&env).unwrap());
        a.txn.overwrite(key("seen"), Some(key("a"))).unwrap();
        b.txn.overwrite(key("seen"), Some(key("b"))).unwrap();
        c.put("seen", "c");
        let later = b.commit().await.unwrap();
        assert!(a.commit().await.unwrap() > later);
        assert!(matches!(c.commit().await, Err(TxnError::Restart { .. })), "an ordinary write meets them");
    });
    assert_eq!(w.ask(1, async |env| value(env, "seen").await).as_deref(), Some("a"));
    let refused = w.ask(4, async |env| {
        let past = BeginOptions { read_only: true, ..BeginOptions::default() };
        Txn::with(&env, past).unwrap().txn.overwrite(key("seen"), None)
    });
    assert_eq!(refused, Err(TxnError::ReadOnly));
}

/// At READ COMMITTED the strongest lock shows what the one before did beside the row, though the row is as it was; also where the answer was lost
/// that said that it was waited for.
#[test]
fn who_waited_for_a_row_sees_what_is_beside_it() {
    let locked = |message: &Message| {
        let body = Frame::decode(&message.bytes).map(|frame| frame.body);
        matches!(body, Ok(Body::Answer { answer: Answer::Locked { waited: true, .. }, .. }))
    };
    for lost in [None, Some(locked as fn(&Message) -> bool)] {
        let mut w = world(36, Weather::calm());
        w.ask(4, async |env| set(env, pairs(&[("parent", "1")])).await);
        let seen = Rc::new(RefCell::new(None));
        let result = seen.clone();
        w.spawn(1, |env| {
            Box::pin(async move {
                let mut txn = Txn::begin(&env).unwrap();
                assert!(txn.lock("parent").await.unwrap());
                txn.put("child", 1);
                // Long enough that the other one queues.
                let until = env.true_us.get() + 500_000;
                while env.true_us.get() < until {
                    poll_fn(|cx| txn.txn.peek(&env.now(), b"parent", cx.waker())).await.unwrap();
                    set(env.clone(), pairs(&[("z", "1")])).await;
                }
                txn.commit().await.unwrap();
            })
        });
        w.run(50_000);
        w.lose = lost;
        w.spawn(4, move |env| {
            Box::pin(async move {
                let mut txn = at_level(&env, Isolation::ReadCommitted);
                assert_eq!(txn.get("child").await.unwrap(), None);
                txn.txn.begin_statement(&env.now()).unwrap();
                assert!(txn.lock("parent").await.unwrap());
                *result.borrow_mut() = Some(txn.get("child").await.unwrap());
            })
        });
        w.run(300_000);
        let waiting = w.member(4).waits_elsewhere();
        assert!(matches!(&waiting[..], [one] if one.session == Some(7) && one.key == key("parent")), "{waiting:?}");
        let leader = w.leader(1).unwrap();
        let there = w.member(leader).look_at_locks(|table| {
            let waiters: Vec<_> = table.waiters().collect();
            let held = table.shown(true, (b"parent", 0), 9, |_| true).into_iter().filter(|lock| lock.granted);
            (waiters.len(), waiters[0].key.clone(), held.count())
        });
        assert_eq!(there, (1, key("parent"), 1));
        w.run(2_000_000);
        w.lose = None;
        w.until("it is locked", |_| seen.borrow().is_some());
        assert_eq!(seen.take(), Some(Some("1".to_owned())), "lost: {}", lost.is_some());
        assert_eq!(w.member(4).waits_elsewhere(), []);
    }
}

#[test]
fn a_lock_that_is_skipped_or_busy_says_so_elsewhere_too() {
    let mut w = world(37, Weather::rough());
    w.ask(4, async |env| {
        let mut holder = Txn::begin(&env).unwrap();
        assert!(holder.lock("row").await.unwrap());
        let mut other = Txn::begin(&env).unwrap();
        let mut busy = Vec::new();
        for when in [WhenLocked::Skip, WhenLocked::Fail] {
            let ask = poll_fn(|cx| other.txn.lock(&env.now(), b"row", LockMode::Share, when, cx.waker()));
            busy.push(ask.await);
        }
        assert_eq!(busy, [Ok(false), Err(TxnError::LockNotAvailable)]);
        assert!(!other.txn.locks_full());
        holder.txn.rollback();
        assert!(other.lock("row").await.unwrap());
    });
}

#[test]
fn numbers_are_unique_over_nodes_and_lives() {
    let mut w = world(38, Weather::calm());
    let mut all = BTreeSet::new();
    for _ in 0..3 {
        for node in 1..=4 {
            let some: Vec<u64> = (0..100).map(|_| w.member(node).unique_id()).collect();
            assert!(some.is_sorted());
            all.extend(some);
            w.crash(node);
        }
        // The clocks are set back: nothing depends on them.
        w.true_us.set(w.now_us() - 1_000_000);
        (1..=4).for_each(|node| w.start(node));
    }
    assert_eq!(all.len(), 3 * 4 * 100);
    let now = w.env(1).now().interval.earliest().as_u64();
    assert!(all.iter().all(|id| *id < now), "no timestamp of our days is among them");
}

#[test]
fn a_while_ago_holds_what_was_acknowledged_before() {
    let mut w = world(39, Weather::calm());
    let at = w.ask(4, async |env| set(env, pairs(&[("row", "1")])).await);
    w.run(3_000_000);
    let later = w.ask(4, async |env| set(env, pairs(&[("row", "2")])).await);
    w.run(1_000_000);
    let now = w.env(4).now();
    let ago = w.member(4).ago(&now, 2_000_000);
    assert!(at <= ago && ago < later, "{at} {ago} {later}");
    assert!(w.member(4).ago(&now, 0) >= later && w.member(4).visible() == later);
    let seen = w.ask(4, async move |env| {
        Txn::with(&env, BeginOptions { as_of: Some(ago), ..BeginOptions::default() }).unwrap().get("row").await
    });
    assert_eq!(seen, Ok(Some("1".to_owned())));
}

#[test]
fn a_node_that_closes_refuses_commits_and_still_reads() {
    let mut w = world(40, Weather::calm());
    w.ask(4, async |env| set(env, pairs(&[("row", "1")])).await);
    let starts: Vec<_> = w.member(4).ranges_over(&Span::new("a", "sz")).into_iter().map(|(start, _)| start).collect();
    assert_eq!(starts, [key(""), key("s")]);
    w.member(4).close();
    let refused = w.ask(4, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        assert_eq!(txn.get("row").await.unwrap().as_deref(), Some("1"));
        txn.put("row", 2);
        txn.commit().await
    });
    assert_eq!(refused, Err(TxnError::ShuttingDown));
    assert_eq!(w.ask(1, async |env| value(env, "row").await).as_deref(), Some("1"));
}

/// Locks that were taken after a savepoint pass on when it is gone back to, here and elsewhere; also where the word of it is lost, or comes twice and late.
#[test]
fn locks_are_given_back_at_a_savepoint() {
    let unlocks = |message: &Message| {
        let body = Frame::decode(&message.bytes).map(|frame| frame.body);
        matches!(body, Ok(Body::Unlock { returned: Some(_), .. }))
    };
    for (seed, weather, lost) in
        [(41, Weather::calm(), false), (42, Weather::calm(), true), (43, Weather::rough(), false)]
    {
        for node in [1, 4] {
            let mut w = world(seed, weather.clone());
            w.lose = lost.then_some(unlocks as fn(&Message) -> bool);
            w.ask(node, async move |env| {
                let mut txn = Txn::begin(&env).unwrap();
                assert!(txn.lock("kept").await.unwrap());
                let mark = txn.txn.savepoint();
                for name in ["row", "seen", "token"] {
                    assert!(txn.lock(name).await.unwrap());
                }
                txn.txn.rollback_to(mark);
                txn.txn.release_since(mark);
                // The next request brings the word where it was lost.
                for name in ["rz", "sz", "tz"] {
                    assert!(txn.lock(name).await.unwrap());
                }
                let mut other = Txn::begin(&env).unwrap();
                for (name, free) in [("row", true), ("seen", true), ("token", true), ("kept", false), ("rz", false)] {
                    assert_eq!(skip(&env, &mut other, name).await, Ok(free), "{name}, lost: {lost}, n{node}");
                }
                txn.txn.release_since(mark);
                other.txn.rollback();
            });
            w.lose = None;
            w.run(10_000_000);
            let locks: usize = (1..=4).map(|node| w.member(node).lock_counts().0).sum();
            assert_eq!(locks, 0);
        }
    }
}

/// A lock whose row is newer than a snapshot that cannot move is skipped, and not kept.
#[test]
fn a_row_that_is_skipped_is_not_locked() {
    let mut w = world(44, Weather::rough());
    w.ask(4, async |env| {
        set(env.clone(), pairs(&[("row", "1"), ("seen", "1")])).await;
        let mut txn = Txn::begin(&env).unwrap();
        txn.get("seen").await.unwrap();
        set(env.clone(), pairs(&[("row", "2"), ("seen", "2")])).await;
        assert_eq!(skip(&env, &mut txn, "row").await, Ok(false));
        assert!(Txn::begin(&env).unwrap().lock("row").await.unwrap());
    });
}

/// Who waits for a lock elsewhere and loses patience queues no more, and may ask for another one there.
#[test]
fn who_stops_waiting_for_a_lock_elsewhere_may_take_another() {
    for weather in [Weather::calm(), Weather::rough()] {
        let mut w = world(45, weather);
        w.ask(4, async |env| {
            let mut holder = Txn::begin(&env).unwrap();
            assert!(holder.lock("row").await.unwrap());
            let mut txn = Txn::begin(&env).unwrap();
            assert!(txn.lock("kept").await.unwrap());
            poll_fn(|cx| {
                let (mode, when) = (LockMode::Update, WhenLocked::Wait);
                assert!(txn.txn.lock(&env.now(), b"row", mode, when, cx.waker()).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            // Meanwhile it queues there.
            set(env.clone(), pairs(&[("x", "1")])).await;
            txn.txn.stop_waiting();
            assert!(txn.lock("rx").await.unwrap(), "another key of the same range");
            holder.txn.rollback();
            set(env.clone(), pairs(&[("x", "2")])).await;
            let mut third = Txn::begin(&env).unwrap();
            for (name, free) in [("kept", false), ("rx", false)] {
                assert_eq!(skip(&env, &mut third, name).await, Ok(free), "{name}");
            }
            // It queues where the one that lost its patience does not.
            assert!(third.lock("row").await.unwrap());
        });
    }
}

/// `node::cluster::serve`, invariant 5: what may wait for the disk is read while others have the core.
#[test]
fn a_scan_for_another_node_holds_up_nobody() {
    let mut w = World::new(21, 3, founding(&[""], &[1, 2, 3]), |_| {});
    w.await_leader(1);
    let leader = w.leader(1).unwrap();
    let (gateway, third) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    w.ask(leader, async |env| set(env, pairs(&[("a", "1"), ("b", "2"), ("c", "3")])).await);
    w.holds_reads = true;
    let found = Rc::new(RefCell::new(None));
    let seen = found.clone();
    w.spawn(gateway, move |env| {
        Box::pin(async move {
            let rows = Txn::begin(&env).unwrap().scan("a", "z", false).await;
            *seen.borrow_mut() = Some(rows.unwrap().len());
        })
    });
    w.until("it is let in", |w| !w.reads.is_empty());
    // The leader goes on, and it is read as of its snapshot.
    w.ask(third, async |env| set(env, pairs(&[("zz", "4")])).await);
    assert_eq!(w.ask(leader, async |env| value(env, "zz").await).as_deref(), Some("4"));
    assert_eq!(*found.borrow(), None);
    // Who asks again hears that it goes on: it is read once.
    w.run(2_000_000);
    assert_eq!((w.reads.len(), w.jobs()), (1, 1));
    w.holds_reads = false;
    w.read();
    w.until("it is read", |w| w.jobs() == 0);
    assert_eq!(*found.borrow(), Some(3));
}

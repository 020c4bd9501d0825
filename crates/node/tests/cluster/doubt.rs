//! A node whose clock is in doubt: what needs no bound is served there by the time of leaders (decision 203).

use super::client::{Txn, pairs, set, value};
use super::links::lead;
use super::world::{Prepare, World, founding, poll_fn};
use clock::{Level, Status, Timestamp};
use node::cluster::{LogLimits, Message, NodeId};
use node::{BeginOptions, Consistency, IfRefused, Isolation, LockMode, TxnError, WhenLocked};
use protocol::door::{Body, Frame, Request};
use std::task::Poll;

const HOUR_US: i64 = 3_600_000_000;

/// Every way in which a clock may be in doubt: how far it is off, and what it says of itself. Who says nothing is proved wrong by the others.
const DOUBTS: [(i64, Option<Status>); 9] = [
    (0, Some(Status::Disrupted)),
    (HOUR_US, Some(Status::Disrupted)),
    (-HOUR_US, Some(Status::Disrupted)),
    (0, Some(Status::Unknown)),
    (2_000_000, None),
    (-2_000_000, None),
    (HOUR_US, None),
    (-HOUR_US, None),
    (-HOUR_US, Some(Status::Unknown)),
];

fn intact(_: &node::Sabotage) {}

fn of(consistency: Consistency) -> BeginOptions {
    BeginOptions { consistency, ..BeginOptions::default() }
}

/// Two ranges that nodes 1 and 2 lead; the clock of node 3 breaks.
fn world(seed: u64, (offset_us, lost): (i64, Option<Status>), prepare: Prepare) -> World {
    let limits = LogLimits { entry_bytes: 200, part_bytes: 50, ..LogLimits::default() };
    let mut w = World::with(seed, 3, founding(&["", "m"], &[1, 2, 3]), prepare, limits);
    (1..=3).for_each(|node| w.set_watch(node, 0, 1_000));
    lead(&mut w, 1, 1);
    lead(&mut w, 2, 2);
    w.ask(1, async |env| set(env, pairs(&[("a", "0"), ("p", "0")])).await);
    w.break_watch(3, offset_us, lost);
    w.run(5_000_000);
    lead(&mut w, 1, 1);
    lead(&mut w, 2, 2);
    w
}

/// Adds one to each of these, along a token; the commit's timestamp. `Err`: what it could not do.
async fn add(env: &super::world::Env, names: &[&str], options: BeginOptions) -> Result<Timestamp, TxnError> {
    let mut txn = Txn::with(env, options)?;
    for name in names {
        let n = txn.number(name).await?;
        txn.put(name, n + 1);
    }
    txn.commit().await
}

#[test]
fn what_needs_no_bound_is_served_at_the_time_of_leaders() {
    for (n, doubt) in DOUBTS.into_iter().enumerate() {
        let mut w = world(300 + n as u64, doubt, intact);
        let mut token = Timestamp::MIN;
        let mut seen = 0;
        for round in 0..4 {
            for consistency in [Consistency::Token, Consistency::None] {
                for names in [&["a"][..], &["p"], &["a", "p"]] {
                    let (began_us, options) = (w.now_us(), BeginOptions { token, ..of(consistency) });
                    let at = w.ask(3, async move |env| add(&env, names, options).await).unwrap();
                    let now_us = w.now_us();
                    assert!(now_us - began_us < 300_000, "{doubt:?} {names:?}: {} us", now_us - began_us);
                    assert!(at.physical_us() <= now_us, "{doubt:?} {names:?}: acknowledged before it is past");
                    assert!(at.physical_us() + 100_000 > began_us, "{doubt:?}: it is no old time");
                    assert!(at > token, "what a session writes comes after what it has seen");
                    token = at;
                }
            }
            // Whoever asks elsewhere sees it, and it sees what was written elsewhere.
            seen += 4;
            assert_eq!(w.ask(1, async |env| value(env, "a").await), Some((seen + round).to_string()), "{doubt:?}");
            token = w.ask(2, async |env| add(&env, &["a"], BeginOptions::default()).await.unwrap());
            let options = BeginOptions { token, ..of(Consistency::Token) };
            let here = w.ask(3, async move |env| Txn::with(&env, options).unwrap().get("a").await);
            assert_eq!(here, Ok(Some((seen + round + 1).to_string())), "{doubt:?}");
        }
        assert!(w.member(3).counters().times_borrowed.get() > 0, "{doubt:?}");
        assert_eq!(w.member(3).counters().commits_unanswered.get(), 0);
    }
}

/// Who was silent since it was proved wrong may have mended its clock: what was held against it then is not told it when it comes back.
#[test]
fn an_old_proof_is_no_proof_of_a_clock_that_was_mended() {
    let comes_back = |prepare: Prepare| {
        let mut w = world(380, (2_000_000, None), prepare);
        assert_eq!(w.member(3).clock_level().0, Level::Untrusted);
        w.crash(3);
        w.break_watch(3, 0, None);
        w.run(100_000_000);
        // The others speak to it before they have heard it.
        w.weather.cuts.extend([(3, 1), (3, 2)]);
        w.start(3);
        w.run(2_000_000);
        w.heal();
        w.run(3_000_000);
        w.member(3).clock_level().0
    };
    assert_eq!(comes_back(intact), Level::Synchronized);
    assert_eq!(comes_back(|sabotage| sabotage.set_accuse_for_ever(true)), Level::Untrusted);
}

#[test]
fn what_needs_the_bound_is_refused_whatever_came_before() {
    for (n, doubt) in DOUBTS.into_iter().enumerate() {
        let mut w = world(320 + n as u64, doubt, intact);
        for consistency in [Consistency::Strict, Consistency::Hybrid, Consistency::Auto] {
            let refused = w.ask(3, async move |env| {
                let began = Txn::with(&env, of(consistency)).map(drop);
                // One that began while the clock was well, and has read nothing, is settled anew.
                began
            });
            assert!(matches!(&refused, Err(TxnError::ClockUnavailable(why)) if why.contains("'token'")), "{refused:?}");
        }
    }
    // It began in time, and reads too late.
    let mut w = World::new(340, 3, founding(&[""], &[1, 2, 3]), intact);
    lead(&mut w, 1, 1);
    let env = w.env(3);
    let mut txn = Txn::with(&env, of(Consistency::Strict)).unwrap();
    w.break_watch(3, 0, Some(Status::Disrupted));
    w.run(1_000_000);
    let refused = txn.txn.begin_statement(&w.env(3).now());
    assert!(matches!(refused, Err(TxnError::ClockUnavailable(_))), "{refused:?}");
}

/// Large transactions go ahead in parts, and locks and statements of READ COMMITTED take the present anew.
#[test]
fn large_ones_and_those_that_lock_go_by_it_too() {
    for (n, doubt) in DOUBTS.into_iter().enumerate() {
        let mut w = world(360 + n as u64, doubt, intact);
        w.ask(3, async |env| {
            let mut txn = Txn::with(&env, of(Consistency::Token)).unwrap();
            assert_eq!(txn.get("b000").await, Ok(None));
            for name in (0..40).flat_map(|n| [format!("b{n:03}"), format!("q{n:03}")]) {
                txn.put(&name, "large");
            }
            txn.commit().await.unwrap();
        });
        assert_eq!(w.member(3).counters().txn_commits_staged.get(), 1, "{doubt:?}");
        assert_eq!(w.ask(1, async |env| value(env, "q039").await).as_deref(), Some("large"));
        let options = BeginOptions { isolation: Isolation::ReadCommitted, ..of(Consistency::Token) };
        let (env, other) = (w.env(3), w.env(1));
        let seen = w.ask(3, async move |_| {
            let mut txn = Txn::with(&env, options).unwrap();
            let before = txn.get("a").await.unwrap();
            add(&other, &["a"], BeginOptions::default()).await.unwrap();
            txn.txn.begin_statement(&env.now()).unwrap();
            let after = txn.get("a").await.unwrap();
            let held = poll_fn(|cx| {
                let key = super::world::key("p");
                txn.txn.lock(&env.now(), &key, LockMode::Update, WhenLocked::Wait, cx.waker())
            });
            assert_eq!(held.await, Ok(true));
            let p = txn.number("p").await.unwrap();
            txn.put("p", p + 1);
            txn.commit().await.unwrap();
            (before, after)
        });
        assert_eq!(seen, (Some("0".into()), Some("1".into())), "{doubt:?}");
    }
}

/// The past is served by the replica here, without anybody.
#[test]
fn the_past_needs_nobody() {
    for (n, doubt) in DOUBTS.into_iter().enumerate() {
        let mut w = world(380 + n as u64, doubt, intact);
        w.run(6_000_000);
        let now = w.env(3).now();
        let fresh = w.member(3).freshest_alone(&now, Timestamp::MIN);
        assert!(fresh.physical_us() > w.now_us() - 5_000_000, "{doubt:?}: {fresh}");
        assert!(fresh.physical_us() <= w.now_us(), "{doubt:?}: {fresh}");
        let ago = w.member(3).ago(&now, 1_000_000).physical_us();
        assert!(ago <= w.now_us() - 1_000_000 && ago > w.now_us() - 4_000_000, "{doubt:?}: {ago}");
        w.cut_off(3);
        w.run(100_000);
        let sent = w.member(3).counters().requests_sent.get();
        let options = BeginOptions { as_of: Some(fresh), read_only: true, ..BeginOptions::default() };
        let read = w.ask(3, async move |env| Txn::with(&env, options).unwrap().get("a").await);
        assert_eq!(read, Ok(Some("0".into())), "{doubt:?}");
        assert_eq!(w.member(3).counters().requests_sent.get(), sent, "{doubt:?}");
        w.heal();
        // What lies beyond what is here is held against a leader's time.
        let ahead = Timestamp::new(w.now_us() + 2_000_000, 0);
        let options = BeginOptions { as_of: Some(ahead), read_only: true, ..BeginOptions::default() };
        let read = w.ask(3, async move |env| Txn::with(&env, options).unwrap().get("a").await);
        assert!(
            matches!(&read, Err(TxnError::SnapshotUnavailable { reason, .. }) if reason.contains("future")),
            "{read:?}"
        );
    }
}

/// Invariant 6: a token of the future is refused, by what a leader says, and holds up nobody.
#[test]
fn tokens_of_the_future_are_refused() {
    let mut w = world(400, (HOUR_US, Some(Status::Disrupted)), intact);
    let token = Timestamp::new(w.now_us() + 60_000_000, 0);
    let options = BeginOptions { token, ..of(Consistency::Token) };
    let read = w.ask(3, {
        let options = options.clone();
        async move |env| Txn::with(&env, options).unwrap().get("a").await
    });
    assert!(matches!(&read, Err(TxnError::SnapshotUnavailable { .. })), "{read:?}");
    // Who writes without a look is refused as well, and nothing was written.
    let wrote = w.ask(3, async move |env| {
        let mut txn = Txn::with(&env, options).unwrap();
        txn.put("new", "1");
        txn.commit().await
    });
    assert!(matches!(&wrote, Err(TxnError::ClockUnavailable(why)) if why.contains("nothing was written")), "{wrote:?}");
    assert_eq!(w.ask(1, async |env| value(env, "new").await), None);
}

/// A commit of two ranges whose timestamp lies ahead, as a strict reader was there: how far ahead of true time it is when it is acknowledged, microseconds.
fn acknowledged_ahead(prepare: Prepare) -> i64 {
    let mut w = world(420, (0, Some(Status::Disrupted)), prepare);
    // Node 2 reads at its `latest`: its range stamps above that.
    w.set_watch(2, 0, 200_000);
    let read = w.ask(2, async |env| Txn::strict(&env).unwrap().get("p").await);
    assert_eq!(read, Ok(Some("0".into())));
    let at = w.ask(3, async |env| {
        let mut txn = Txn::with(&env, of(Consistency::Token)).unwrap();
        txn.put("b", "1");
        txn.put("q", "1");
        txn.commit().await.unwrap()
    });
    i64::try_from(at.physical_us()).unwrap() - i64::try_from(w.now_us()).unwrap()
}

#[test]
fn a_commit_is_acknowledged_when_a_leader_says_that_it_is_past() {
    let ahead_us = acknowledged_ahead(intact);
    assert!(ahead_us <= 0, "{ahead_us} us ahead");
    let broken_us = acknowledged_ahead(|sabotage| sabotage.set_acknowledge_unvouched(true));
    assert!(broken_us > 100_000, "{broken_us} us ahead");
}

/// Without it nothing that is written at a node whose clock says nothing is committed, and what one that is behind writes comes too late.
#[test]
fn by_its_own_clock_it_writes_nothing() {
    for doubt in [(0, Some(Status::Disrupted)), (-HOUR_US, None)] {
        let mut w = world(440, doubt, |sabotage| sabotage.set_borrow_nothing(true));
        let wrote = w.ask(3, async |env| add(&env, &["a"], of(Consistency::Token)).await);
        assert!(wrote.is_err(), "{doubt:?}: {wrote:?}");
    }
}

/// The snapshot that a node in doubt takes, relative to true time, microseconds, where the first leader that it asks is an hour ahead, and proved so.
fn snapshot_beside_a_fenced_leader(prepare: Prepare) -> i64 {
    let mut w = World::new(460, 5, founding(&["", "m"], &[1, 2, 3, 4, 5]), prepare);
    (1..=5).for_each(|node| w.set_watch(node, 0, 1_000));
    lead(&mut w, 1, 1);
    lead(&mut w, 2, 2);
    w.break_watch(5, 0, Some(Status::Disrupted));
    w.break_watch(1, 2_000_000, None);
    w.run(3_000_000);
    let env = w.env(5);
    assert!(env.member.in_doubt(&env.now()) && w.env(1).member.in_doubt(&w.env(1).now()));
    assert_eq!(w.leader(1), Some(1), "it is kept: `keep_when_fenced`");
    let snapshot = w.ask(5, async |env| {
        let mut txn = Txn::with(&env, of(Consistency::Token)).unwrap();
        poll_fn(|cx| txn.txn.place(&env.now(), cx.waker())).await.unwrap();
        txn.txn.snapshot()
    });
    i64::try_from(snapshot.physical_us()).unwrap() - i64::try_from(w.now_us()).unwrap()
}

#[test]
fn who_is_in_doubt_does_not_lend() {
    let ahead_us = snapshot_beside_a_fenced_leader(|sabotage| sabotage.set_keep_when_fenced(true));
    assert!(ahead_us <= 0, "{ahead_us} us ahead");
    let broken_us = snapshot_beside_a_fenced_leader(|sabotage| {
        sabotage.set_keep_when_fenced(true);
        sabotage.set_lend_in_doubt(true);
    });
    assert!(broken_us > 1_500_000, "{broken_us} us ahead");
}

/// A commit that asks what time it is, and gets no answer, can be ended, and nothing was written; and so can one that nobody vouches for, which has committed.
#[test]
fn what_waits_for_the_time_can_be_ended() {
    let mut w = world(480, (0, Some(Status::Unknown)), intact);
    w.cut_off(3);
    let env = w.env(3);
    let mut txn = Txn::with(&env, of(Consistency::Token)).unwrap();
    txn.put("a", "1");
    let waker = std::task::Waker::noop();
    assert!(txn.txn.commit(&env.now(), waker).is_pending());
    assert!(txn.txn.is_held_back(&env.now()));
    let ended = txn.txn.give_up_commit(&env.now());
    assert!(
        matches!(&ended, Some(TxnError::ClockUnavailable(why)) if why.contains("nothing was written")),
        "{ended:?}"
    );
    w.heal();
    w.run(1_000_000);
    assert_eq!(w.ask(1, async |env| value(env, "a").await).as_deref(), Some("0"));

    w.set_watch(2, 0, 2_000_000);
    assert_eq!(w.ask(2, async |env| Txn::strict(&env).unwrap().get("p").await), Ok(Some("0".into())));
    let env = w.env(3);
    let mut txn = Txn::with(&env, of(Consistency::Token)).unwrap();
    txn.put("b", "1");
    txn.put("q", "1");
    for _ in 0..40 {
        assert!(txn.txn.commit(&env.now(), waker).is_pending());
        w.drain(3);
        w.run(10_000);
    }
    let ended = txn.txn.give_up_commit(&env.now());
    assert!(matches!(ended, Some(TxnError::Unacknowledged { .. })), "{ended:?}");
    w.run(5_000_000);
    assert_eq!(w.ask(1, async |env| value(env, "q").await).as_deref(), Some("1"));
}

/// Where nobody lends, as every bound is too wide, a commit of several ranges is acknowledged by the own reading.
#[test]
fn where_nobody_lends_a_commit_of_several_ranges_is_acknowledged() {
    for (seed, nodes) in [(500, 1), (501, 3)] {
        let all: Vec<u32> = (1..=nodes).collect();
        let mut w = World::new(seed, nodes, founding(&["", "m"], &all), intact);
        for node in 1..=nodes {
            w.set_watch(node, 0, 11_000_000);
        }
        w.run(6_000_000);
        let env = w.env(nodes);
        assert!(env.member.in_doubt(&env.now()));
        let at = w.ask(nodes, async |env| {
            let mut txn = Txn::with(&env, of(Consistency::Token)).unwrap();
            txn.put("a", "1");
            txn.put("p", "1");
            txn.commit().await.unwrap()
        });
        assert!(at.physical_us() <= w.now_us(), "{nodes} nodes: acknowledged before it is past");
        assert_eq!(w.member(nodes).counters().commits_vouched.get(), 0);
    }
}

/// A bound of staleness is kept, however long nothing has been heard: what has passed since counts.
#[test]
fn a_while_ago_is_counted_from_the_present_while_nobody_is_heard() {
    for (n, doubt) in DOUBTS.into_iter().enumerate() {
        let mut w = world(510 + n as u64, doubt, intact);
        w.run(6_000_000);
        w.cut_off(3);
        for _ in 0..3 {
            w.run(60_000_000);
            // Who was proved wrong believes himself again when nobody proves it any more.
            if doubt.1.is_none() && !w.member(3).in_doubt(&w.env(3).now()) {
                continue;
            }
            let ago = w.member(3).ago(&w.env(3).now(), 10_000_000).physical_us();
            assert!(
                ago <= w.now_us() - 10_000_000 && ago > w.now_us() - 12_000_000,
                "{doubt:?}: {ago} at {}",
                w.now_us()
            );
        }
    }
}

/// Who doubts his clock counts what he has, and not what he would have to guess of ranges that others have.
#[test]
fn what_is_elsewhere_is_not_guessed() {
    let mut ranges = founding(&["", "m"], &[1, 2, 3]);
    ranges.truncate(1);
    ranges.extend(founding(&["", "m"], &[1, 2, 4]).split_off(1));
    let mut w = World::new(530, 4, ranges, intact);
    (1..=4).for_each(|node| w.set_watch(node, 0, 1_000));
    lead(&mut w, 1, 1);
    lead(&mut w, 2, 2);
    w.break_watch(3, 0, Some(Status::Disrupted));
    w.run(10_000_000);
    let now = w.env(3).now();
    let fresh = w.member(3).freshest(&now, Timestamp::MIN).physical_us();
    // What sleeps is not closed on there: see the costs of decision 203.
    assert!(fresh > w.now_us() - 20_000_000 && fresh <= w.now_us(), "{fresh} at {}", w.now_us());
}

/// What was refused has no snapshot that was lent, though its token was refused before.
#[test]
fn what_needs_the_bound_takes_no_snapshot_that_was_lent() {
    let mut w = world(540, (0, Some(Status::Disrupted)), intact);
    let token = Timestamp::new(w.now_us() + 5_000_000, 0);
    let options = BeginOptions { token, if_refused: IfRefused::WhenItReads, ..of(Consistency::Strict) };
    let mut txn = Txn::with(&w.env(3), options).unwrap();
    w.break_watch(3, 0, None);
    w.run(1_000_000);
    let waker = std::task::Waker::noop();
    let refused = txn.txn.place(&w.env(3).now(), waker);
    assert!(matches!(&refused, Poll::Ready(Err(TxnError::SnapshotUnavailable { .. }))), "{refused:?}");
    w.run(5_000_000);
    let now = w.env(3).now();
    assert_eq!(txn.txn.place(&now, waker), Poll::Ready(Ok(())), "by its own clock");
    assert!(txn.txn.snapshot() >= now.interval.latest());
}

/// One who does not answer is not waited for where another lends.
#[test]
fn one_leader_that_has_stopped_holds_nobody_up() {
    let mut w = world(550, (0, Some(Status::Disrupted)), intact);
    w.pause(1);
    let began_us = w.now_us();
    w.ask(3, async |env| {
        let mut txn = Txn::with(&env, of(Consistency::Token)).unwrap();
        poll_fn(|cx| txn.txn.place(&env.now(), cx.waker())).await.unwrap();
    });
    let took_us = w.now_us() - began_us;
    assert!((400_000..1_000_000).contains(&took_us), "another is asked after half a second: {took_us} us");
}

/// What `none` does at the node in doubt while leaders that are heard say nothing for a while: looks without waiting, and then asks; how far its snapshot is from true time,
/// microseconds, and what it sees.
fn none_beside_leaders_that_stall(
    seed: u64,
    doubt: (i64, Option<Status>),
    prepare: Prepare,
) -> (i64, Result<Option<String>, TxnError>) {
    let mut w = world(seed, doubt, prepare);
    w.pause(1);
    w.pause(2);
    let mut txn = w.ask(3, async |env| {
        let mut txn = Txn::with(&env, of(Consistency::None)).unwrap();
        txn.txn.hurry(true);
        let seen = txn.get("a").await;
        let named =
            matches!(&seen, Err(TxnError::Unavailable { key: Some(about), .. }) if *about == super::world::key("a"));
        assert!(named || txn.txn.is_placed(), "who can do without it knows of what: {seen:?}");
        txn
    });
    w.resume(1);
    w.resume(2);
    let seen = w.ask(3, async move |_| {
        txn.txn.hurry(false);
        let seen = txn.get("a").await;
        (txn.txn.snapshot(), seen)
    });
    (i64::try_from(seen.0.physical_us()).unwrap() - i64::try_from(w.now_us()).unwrap(), seen.1)
}

/// Who does not wait for the time has no snapshot yet: whoever waits after him takes one by a leader's clock, and not by his own.
#[test]
fn who_does_not_wait_for_the_time_takes_none_by_his_own_clock() {
    for (n, doubt) in DOUBTS.into_iter().enumerate() {
        let (ahead_us, seen) = none_beside_leaders_that_stall(570 + n as u64, doubt, intact);
        assert_eq!(seen, Ok(Some("0".into())), "{doubt:?}");
        assert!((-2_000_000..=0).contains(&ahead_us), "{doubt:?}: {ahead_us} us");
    }
    let (ahead_us, _) =
        none_beside_leaders_that_stall(580, (HOUR_US, None), |sabotage| sabotage.set_place_hastily(true));
    assert!(ahead_us > 1_000_000_000, "{ahead_us} us");
}

/// Where leaders that are heard say nothing for as long as anybody waits, `none` has what is here.
#[test]
fn none_has_what_is_here_where_nobody_says_what_time_it_is() {
    for (n, doubt) in DOUBTS.into_iter().enumerate() {
        let mut w = world(590 + n as u64, doubt, intact);
        w.run(6_000_000);
        w.pause(1);
        w.pause(2);
        let began_us = w.now_us();
        let seen = w.ask(3, async |env| {
            let mut txn = Txn::with(&env, of(Consistency::None)).unwrap();
            let seen = txn.get("a").await;
            (txn.txn.snapshot().physical_us(), seen)
        });
        assert_eq!(seen.1, Ok(Some("0".into())), "{doubt:?}");
        assert!(seen.0 <= began_us && seen.0 > began_us - 20_000_000, "{doubt:?}: {} at {began_us}", seen.0);
    }
}

/// How long a commit of two ranges takes at the node in doubt while questions for the time are lost on their way, microseconds.
fn commits_in_us(lose: fn(&Message) -> bool) -> u64 {
    let mut w = world(560, (0, Some(Status::Disrupted)), intact);
    let mut txn = w.ask(3, async |env| {
        let mut txn = Txn::with(&env, of(Consistency::Token)).unwrap();
        assert_eq!(txn.get("a").await, Ok(Some("0".into())));
        txn
    });
    w.lose = Some(lose);
    let began_us = w.now_us();
    let at = w.ask(3, async move |_| {
        txn.put("a", "1");
        txn.put("p", "1");
        txn.commit().await.unwrap()
    });
    assert!(at.physical_us() <= w.now_us(), "acknowledged before it is past");
    assert_eq!(w.member(3).counters().commits_vouched.get(), 1);
    w.now_us() - began_us
}

fn asks_for_the_time(message: &Message, of: u32) -> bool {
    let asks = |frame: Frame| matches!(frame.body, Body::Request { request: Request::Time, .. });
    // From whomever: a third may ask in the place of the one who is not answered.
    message.to == NodeId(of) && Frame::decode(&message.bytes).is_ok_and(asks)
}

/// A leader that does not say whether a commit is past is not waited for where that of another of its ranges says it.
#[test]
fn who_does_not_vouch_holds_up_no_commit() {
    let [both, without_1, without_2] = [
        commits_in_us(|_| false),
        commits_in_us(|message| asks_for_the_time(message, 1)),
        commits_in_us(|message| asks_for_the_time(message, 2)),
    ];
    assert!(both < 300_000, "{both} us");
    // The one who is asked first is given half a second, and the next is asked with the tick after that.
    let (slower, faster) = (without_1.max(without_2), without_1.min(without_2));
    assert!((400_000..1_000_000).contains(&slower) && faster < 300_000, "{without_1} and {without_2} us");
}

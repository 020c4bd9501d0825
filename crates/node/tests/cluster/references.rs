//! Who goes by it that nobody refers to a key, beside references to it, on ranges led elsewhere, with messages lost and doubled, and over a change of the leader (decision 231).

use super::client::{Txn, pairs, set, value};
use super::links::lead;
use super::versions::{mixed_at, restart_as};
use super::world::{Env, Prepare, Weather, World, founding, key, poll_fn};
use node::cluster::{LogLimits, Message, VERSION_MAX};
use node::{BeginOptions, Isolation, LockMode, RangeId, TxnError, WhenLocked};
use protocol::door::{Body, Frame, Request, VERSION_OF_REFERENCES};
use std::cell::Cell;
use std::rc::Rc;

const LEVELS: [Isolation; 3] = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];

/// Parents and children are in ranges of their own where `split`; node 4, where everybody asks, has no replica.
fn world(seed: u64, split: bool, weather: Weather) -> World {
    prepared(seed, split, weather, |_| {})
}

fn prepared(seed: u64, split: bool, weather: Weather, prepare: Prepare) -> World {
    made(World::new(seed, 4, founding(starts(split), &[1, 2, 3]), prepare), split, weather)
}

fn starts(split: bool) -> &'static [&'static str] {
    if split { &["", "m"] } else { &[""] }
}

fn made(mut w: World, split: bool, weather: Weather) -> World {
    let starts = starts(split);
    w.weather = weather;
    for range in 1..=starts.len() as u64 {
        w.await_leader(range);
    }
    w.ask(4, async |env| set(env, pairs(&[("p", "0"), ("q", "0")])).await);
    w
}

fn at_level(env: &Env, isolation: Isolation) -> Txn {
    Txn::with(env, BeginOptions { isolation, session: Some(7), ..BeginOptions::default() }).unwrap()
}

/// A row that refers to `p`, once that is there.
async fn refer(env: Env) {
    refer_with(env, &[]).await;
}

/// The same, and more rows.
async fn refer_with(env: Env, rows: &[String]) {
    for _ in 0..100 {
        let mut txn = at_level(&env, Isolation::ReadCommitted);
        assert!(poll_fn(|cx| txn.txn.present(&env.now(), b"p", cx.waker())).await.unwrap());
        txn.put("c", "refers");
        rows.iter().for_each(|name| txn.put(name, "much"));
        match txn.commit().await {
            Ok(_) => return,
            Err(TxnError::Restart { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it conflicts for ever");
}

/// Whether somebody is seen that refers, without a promise.
async fn look(txn: &mut Txn) -> Result<bool, TxnError> {
    let mut rest = Some(key("a")..key("k"));
    while let Some(span) = rest {
        let chunk = poll_fn(|cx| txn.txn.observe_scan(&txn.env.now(), &span, false, 100, cx.waker())).await?;
        if !chunk.rows.is_empty() {
            return Ok(true);
        }
        rest = chunk.rest;
    }
    Ok(false)
}

/// As [`look`] of `p`, and goes by it.
async fn go_by(txn: &mut Txn) -> Result<bool, TxnError> {
    let seen = look(txn).await?;
    let looked = txn.txn.snapshot();
    assert!(txn.txn.unreferred(&key("p"), looked));
    Ok(seen)
}

/// What becomes of the key whose references were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Deleted,
    PutBack,
    Untouched,
}

#[test]
fn who_has_seen_nobody_who_refers_does_not_commit_beside_one() {
    for (seed, split, fate) in [
        (71, false, Fate::Deleted),
        (72, true, Fate::PutBack),
        (73, true, Fate::Deleted),
        (82, false, Fate::PutBack),
        (83, true, Fate::Untouched),
    ] {
        for (weather, forgets) in [(Weather::calm(), false), (Weather::rough(), false), (Weather::calm(), true)] {
            for isolation in LEVELS {
                let prepare: Prepare = match forgets {
                    true => |sabotage| sabotage.set_forget_who_refers(true),
                    false => |_| {},
                };
                let mut w = prepared(seed, split, weather.clone(), prepare);
                let committed = w.ask(4, async move |env| {
                    let mut deletes = at_level(&env, isolation);
                    assert!(!go_by(&mut deletes).await.unwrap());
                    refer(env.clone()).await;
                    if fate != Fate::Untouched {
                        deletes.txn.delete(key("p")).unwrap();
                    }
                    if fate == Fate::PutBack {
                        deletes.put("p", "again");
                    }
                    deletes.put("b", "done");
                    match deletes.commit().await {
                        Ok(_) => true,
                        Err(TxnError::Restart { .. }) => false,
                        Err(other) => panic!("{other}"),
                    }
                });
                let case = format!("{seed}: {isolation:?}, {fate:?}");
                assert_eq!(committed, forgets, "{case}");
                assert_eq!(w.ask(4, async |env| value(env, "b").await).is_some(), forgets, "{case}");
                let parent = match (forgets, fate) {
                    (true, Fate::Deleted) => None,
                    (true, Fate::PutBack) => Some("again"),
                    _ => Some("0"),
                };
                assert_eq!(w.ask(4, async |env| value(env, "p").await).as_deref(), parent, "{case}");
                w.check_replicas();
            }
        }
    }
}

/// An earlier statement wrote to the row: its snapshot does not count where a later one has looked, nor where that has certified what it read by an index.
#[test]
fn what_was_written_before_the_look_does_not_count() {
    for (seed, split, index) in [(84, false, false), (85, true, false), (86, false, true), (87, true, true)] {
        let mut w = world(seed, split, Weather::calm());
        w.ask(4, async move |env| {
            // Who refers may be undecided still where the key is.
            for _ in 0..100 {
                let mut deletes = at_level(&env, Isolation::ReadCommitted);
                deletes.put("p", "1");
                refer(env.clone()).await;
                deletes.txn.begin_statement(&env.now()).unwrap();
                if index {
                    let span = key("a")..key("k");
                    let scan = poll_fn(|cx| deletes.txn.scan(&env.now(), &span, false, 100, true, cx.waker()));
                    assert_eq!(scan.await.unwrap().rows.len(), 1);
                } else {
                    assert!(go_by(&mut deletes).await.unwrap());
                }
                if deletes_both(deletes).await {
                    return;
                }
            }
            panic!("it conflicts for ever");
        });
        assert_eq!(w.ask(4, async |env| value(env, "p").await), None);
    }
}

/// Deletes who refers and what is referred to; `false`: that conflicts.
async fn deletes_both(mut deletes: Txn) -> bool {
    deletes.txn.delete(key("c")).unwrap();
    deletes.txn.delete(key("p")).unwrap();
    match deletes.commit().await {
        Ok(_) => true,
        Err(TxnError::Restart { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

/// What is taken back goes by nothing any more, but that a SERIALIZABLE transaction has told what it saw.
#[test]
fn a_savepoint_takes_back_what_was_gone_by() {
    for (seed, split) in [(88, false), (89, true)] {
        for isolation in LEVELS {
            let mut w = world(seed, split, Weather::calm());
            let committed = w.ask(4, async move |env| {
                let mut txn = at_level(&env, isolation);
                let mark = txn.txn.savepoint();
                assert!(!go_by(&mut txn).await.unwrap());
                txn.txn.delete(key("p")).unwrap();
                txn.txn.rollback_to(mark);
                refer(env.clone()).await;
                txn.put("b", "else");
                txn.commit().await.is_ok()
            });
            assert_eq!(committed, isolation != Isolation::Serializable, "{isolation:?}");
        }
    }
}

/// The strongest lock shows who refers to the key, at READ COMMITTED; and what is deleted by who has seen it goes.
#[test]
fn who_locks_a_key_sees_who_refers_to_it() {
    for (seed, split) in [(74, false), (75, true), (80, true), (81, true)] {
        let isolation = Isolation::ReadCommitted;
        let mut w = world(seed, split, Weather::rough());
        w.ask(4, async move |env| {
            for _ in 0..100 {
                let mut deletes = at_level(&env, isolation);
                refer(env.clone()).await;
                assert!(deletes.lock("p").await.unwrap());
                assert!(go_by(&mut deletes).await.unwrap(), "{isolation:?}");
                if deletes_both(deletes).await {
                    return;
                }
            }
            panic!("it conflicts for ever");
        });
        assert_eq!(w.ask(4, async |env| value(env, "p").await), None);
    }
}

/// A row is not passed over for being referred to, where the snapshot cannot move to the reference, as something else has changed.
#[test]
fn who_skips_what_is_locked_skips_nothing_that_is_referred_to() {
    for (seed, split) in [(107, false), (108, true)] {
        for isolation in LEVELS {
            let mut w = world(seed, split, Weather::calm());
            w.ask(4, async move |env| {
                let mut skips = at_level(&env, isolation);
                assert!(skips.get("q").await.unwrap().is_some());
                refer(env.clone()).await;
                set(env.clone(), pairs(&[("q", "1")])).await;
                let (mode, when) = (LockMode::Update, WhenLocked::Skip);
                let locked = poll_fn(|cx| skips.txn.lock(&env.now(), b"p", mode, when, cx.waker())).await;
                assert_eq!(locked, Ok(true), "{seed} {isolation:?}");
            });
        }
    }
}

/// Whoever leads after it knows it as well.
#[test]
fn a_reference_is_known_to_the_next_leader() {
    for (seed, split) in [(76, false), (77, true), (78, true)] {
        let mut w = world(seed, split, Weather::calm());
        let parents = if split { 2 } else { 1 };
        let mut deletes = w.ask(4, async |env| {
            let mut deletes = at_level(&env, Isolation::ReadCommitted);
            assert!(!go_by(&mut deletes).await.unwrap());
            refer(env.clone()).await;
            deletes
        });
        let before = w.await_leader(parents);
        w.crash(before);
        w.until("another leader", |w| w.leader(parents).is_some_and(|leader| leader != before));
        deletes.txn.delete(key("p")).unwrap();
        let refused = w.ask(4, async move |_| deletes.commit().await);
        assert!(matches!(refused, Err(TxnError::Restart { .. })), "{refused:?}");
        assert!(w.ask(4, async |env| value(env, "p").await).is_some());
    }
}

/// Whether one commits who has looked before somebody came to refer to the key, where one of the two, or both, go to the ranges in parts; and what he is told else.
fn in_parts(seed: u64, split: bool, (refers_much, deletes_much): (bool, bool), prepare: Prepare) -> Option<String> {
    let limits = LogLimits { entry_bytes: 300, part_bytes: 80, entries_kept: 5, ..LogLimits::default() };
    let w = World::with(seed, 4, founding(starts(split), &[1, 2, 3]), prepare, limits);
    let mut w = made(w, split, Weather::calm());
    let parents = RangeId(if split { 2 } else { 1 });
    w.until("it is raised", |w| w.member(1).status(parents).is_some_and(|status| status.version == VERSION_MAX));
    let rows = |first: &str, much: bool| (0..if much { 40 } else { 0 }).map(|n| format!("{first}{n:03}")).collect();
    let (referring, deleting): (Vec<String>, Vec<String>) = (rows("s", refers_much), rows("t", deletes_much));
    let done = w.ask(4, async move |env| {
        let mut deletes = at_level(&env, Isolation::ReadCommitted);
        assert!(!go_by(&mut deletes).await.unwrap());
        refer_with(env.clone(), &referring).await;
        deletes.txn.delete(key("p")).unwrap();
        deleting.iter().for_each(|name| deletes.put(name, "gone"));
        deletes.commit().await.map(drop)
    });
    let staged = w.member(4).counters().txn_commits_staged.get();
    assert_eq!(staged, u64::from(refers_much) + u64::from(deletes_much), "{seed}");
    w.run(1_000_000);
    let left = |node: u32| w.member(node).status(parents).unwrap().staged_bytes;
    assert_eq!((1..=3).map(left).sum::<u64>(), 0, "{seed}: nobody comes for them");
    assert_eq!(w.ask(4, async |env| value(env, "t039").await).is_some(), deletes_much && done.is_ok());
    w.check_replicas();
    match done {
        Ok(()) => None,
        Err(TxnError::Restart { reason, .. }) => Some(reason),
        Err(other) => panic!("{other}"),
    }
}

/// What is staged says who refers to what as well.
#[test]
fn large_ones_are_refused_and_refuse() {
    for (seed, split) in [(90, false), (91, true)] {
        for much in [(true, false), (false, true), (true, true)] {
            let told = in_parts(seed, split, much, |_| {});
            assert!(told.as_ref().is_some_and(|told| told.contains("has come to refer")), "{seed} {much:?}: {told:?}");
            let forgets = in_parts(seed, split, much, |sabotage| sabotage.set_forget_who_refers(true));
            assert_eq!(forgets, None, "a control: {seed} {much:?}");
        }
    }
}

/// One that looks at nobody, and one that refers then; and what becomes of the first when the replicas have gone through something.
fn refused_after(w: &mut World, what: impl FnOnce(&mut World)) -> bool {
    let mut deletes = w.ask(4, async |env| {
        let mut deletes = at_level(&env, Isolation::ReadCommitted);
        assert!(!go_by(&mut deletes).await.unwrap());
        deletes
    });
    what(w);
    deletes.txn.delete(key("p")).unwrap();
    match w.ask(4, async move |_| deletes.commit().await) {
        Ok(_) => false,
        Err(TxnError::Restart { .. }) => true,
        Err(other) => panic!("{other}"),
    }
}

/// Who has the state of a range from a snapshot has not heard who referred to what before.
#[test]
fn who_was_sent_a_snapshot_counts_all_as_referred_to() {
    for (seed, split) in [(93, false), (96, true)] {
        let parents = if split { 2 } else { 1 };
        let mut w = world(seed, split, Weather::calm());
        let leader = w.await_leader(parents);
        let (other, lagging) = (leader % 3 + 1, (leader + 1) % 3 + 1);
        let refused = refused_after(&mut w, |w| {
            w.crash(lagging);
            w.ask(4, async |env| refer(env).await);
            for n in 0..40 {
                w.ask(4, async move |env| set(env, pairs(&[("q", &n.to_string())])).await);
            }
            [leader, other].into_iter().for_each(|node| w.flush(node));
            w.start(lagging);
            w.until("a snapshot", |w| w.member(lagging).counters().snapshots_installed.get() > 0);
            w.run(3_000_000);
            lead(w, parents, lagging);
        });
        assert!(refused, "{seed}");
        assert_eq!(w.leader(parents), Some(lagging));
        // Who looks now is not met, but for what he sees.
        let seen = w.ask(4, async |env| {
            let mut deletes = at_level(&env, Isolation::ReadCommitted);
            let seen = go_by(&mut deletes).await.unwrap();
            deletes.txn.delete(key("c")).unwrap();
            deletes.txn.delete(key("p")).unwrap();
            deletes.commit().await.unwrap();
            seen
        });
        assert!(seen, "{seed}");
        w.check_replicas();
    }
}

/// All begin again, from what they have kept.
#[test]
fn who_begins_again_counts_all_as_referred_to() {
    for (seed, split) in [(97, false), (98, true)] {
        for flushes in [false, true] {
            let mut w = world(seed, split, Weather::calm());
            let refused = refused_after(&mut w, |w| {
                w.ask(4, async |env| refer(env).await);
                w.run(1_000_000);
                if flushes {
                    (1..=3).for_each(|node| w.flush(node));
                }
                (1..=3).for_each(|node| w.crash(node));
                (1..=3).for_each(|node| w.start(node));
            });
            assert!(refused, "{seed} {flushes}");
            w.check_replicas();
        }
    }
}

/// A prepare of rows that are written, of the range of `a`.
fn prepares_a_child(message: &Message) -> bool {
    let body = Frame::decode(&message.bytes).expect("a frame").body;
    matches!(body, Body::Request { request: Request::Prepare { batch, .. }, .. } if batch.writes.iter().any(|w| *w.key == *b"c"))
}

/// Its reference is prepared, and the row that refers is on its way: so it will be committed later than both, and than what is looked at meanwhile.
fn with_half_a_reference(seed: u64) -> World {
    let mut w = world(seed, true, Weather::calm());
    w.lose = Some(prepares_a_child);
    w.spawn(4, |env| Box::pin(refer(env)));
    w.until("it is prepared", |w| {
        (1..=3).all(|node| w.member(node).status(RangeId(2)).is_some_and(|status| status.prepared == 1))
    });
    // By all clocks what is looked at from now on is later.
    w.run(200_000);
    w
}

/// What is prepared below a look is committed above it.
#[test]
fn a_reference_counts_from_its_commit_on() {
    for seed in [101, 102, 103] {
        let mut w = with_half_a_reference(seed);
        let refused = refused_after(&mut w, |w| {
            w.lose = None;
            w.until("it is committed", |w| w.jobs() == 0);
            w.until("all know it", |w| {
                (1..=3).all(|node| w.member(node).status(RangeId(2)).is_some_and(|status| status.prepared == 0))
            });
        });
        assert!(refused, "{seed}");
    }
}

/// Who locks the key waits for a reference that is undecided.
#[test]
fn who_locks_a_key_waits_for_who_is_about_to_refer_to_it() {
    let mut w = with_half_a_reference(104);
    let seen = Rc::new(Cell::new(None));
    let cell = seen.clone();
    w.spawn(4, move |env| {
        Box::pin(async move {
            let mut deletes = at_level(&env, Isolation::ReadCommitted);
            assert!(deletes.lock("p").await.unwrap());
            cell.set(Some(go_by(&mut deletes).await.unwrap()));
        })
    });
    w.run(500_000);
    assert_eq!(seen.get(), None, "it waits");
    w.lose = None;
    w.until("both are through", |w| w.jobs() == 0);
    assert_eq!(seen.get(), Some(true));
}

/// A reference that has its place in the log, and is not applied yet: its leader does not hear his followers.
#[test]
fn a_reference_counts_from_its_place_on() {
    for seed in [105, 106] {
        let mut w = world(seed, false, Weather::calm());
        let leader = w.await_leader(1);
        let refused = refused_after(&mut w, |w| {
            let followers = (1..=3).filter(|node| *node != leader);
            w.weather.cuts.extend(followers.map(|node| (node, leader)));
            w.spawn(4, |env| Box::pin(refer(env)));
            w.until("it has its place", |w| w.member(leader).status(RangeId(1)).unwrap().flights > 0);
            // The other one is to come before it is applied.
            w.heal();
        });
        assert!(refused, "{seed}");
        w.until("it is committed", |w| w.jobs() == 0);
        assert!(w.ask(4, async |env| value(env, "p").await).is_some());
    }
}

/// Programs of two releases: nobody says what one of them cannot read; and as soon as somebody knows that all can, he is understood by those who have not heard of it yet.
#[test]
fn a_version_is_heard_of_at_one_node_after_the_other() {
    let mut w = mixed_at(99, VERSION_OF_REFERENCES - 1, |_| {});
    w.ask(2, async |env| set(env, pairs(&[("p", "0")])).await);
    w.ask(2, async |env| {
        let mut txn = at_level(&env, Isolation::ReadCommitted);
        let looked = txn.txn.snapshot();
        assert!(!txn.txn.guards_references() && !txn.txn.unreferred(&key("p"), looked));
        txn.put("z", "written");
        txn.commit().await.unwrap();
    });
    restart_as(&mut w, 1, VERSION_MAX);
    w.member(2).set_version(VERSION_OF_REFERENCES);
    for leader in 1..=3 {
        lead(&mut w, 2, leader);
        for refers in [false, true] {
            let done = w.ask(2, async move |env| {
                let mut deletes = at_level(&env, Isolation::ReadCommitted);
                assert!(deletes.txn.guards_references());
                assert!(!go_by(&mut deletes).await.unwrap());
                if refers {
                    refer(env.clone()).await;
                }
                deletes.put("z", "done");
                deletes.commit().await.is_ok()
            });
            assert_eq!(done, !refers, "n{leader} leads");
        }
        w.ask(3, async |env| {
            let mut txn = at_level(&env, Isolation::ReadCommitted);
            assert!(txn.lock("c").await.unwrap());
            txn.txn.delete(key("c")).unwrap();
            txn.commit().await.unwrap();
        });
    }
    w.run(2_000_000);
    w.check_replicas();
}

/// Before all programs know the rule nobody goes by it.
#[test]
fn a_version_brings_it() {
    for (version, guards) in [(VERSION_MAX - 1, false), (VERSION_MAX, true)] {
        let mut w = World::of_version(version, 79, 3, founding(&[""], &[1, 2, 3]), |_| {});
        w.await_leader(1);
        w.ask(1, async move |env| {
            let mut txn = Txn::begin(&env).unwrap();
            assert_eq!(txn.txn.guards_references(), guards);
            let looked = txn.txn.snapshot();
            assert_eq!(txn.txn.unreferred(&key("p"), looked), guards);
            txn.put("a", "written");
            txn.commit().await.unwrap();
        });
    }
}

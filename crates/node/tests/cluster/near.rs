//! The past is read at the nearest replica where none is here: one hop, and the leader where that one cannot answer (decision 202).

use super::client::{Txn, pairs, set};
use super::joins::change;
use super::splits::split;
use super::world::{Env, Prepare, Rng, Weather, World, founding, key};
use clock::Timestamp;
use node::cluster::{Founding, NodeId, ReplicaChange};
use node::{BeginOptions, RangeId};
use std::cell::RefCell;
use std::rc::Rc;

const FAR_US: u64 = 40_000;
/// Node 4 has no replica.
const GATEWAY: u32 = 4;

fn others_of(leader: u32) -> [u32; 2] {
    [leader % 3 + 1, (leader + 1) % 3 + 1]
}

/// One range on the nodes 1 to 3, and its leader.
fn world(seed: u64, prepare: Prepare) -> (World, u32) {
    let mut w = World::new(seed, 4, founding(&[""], &[1, 2, 3]), prepare);
    w.weather = Weather::calm();
    w.await_leader(1);
    let leader = w.leader(1).unwrap();
    (w, leader)
}

/// From now on the gateway has the way to one of them short, and to the others long.
fn bring_near(w: &mut World, near: u32) {
    for node in (1..=3).filter(|node| *node != near) {
        w.weather.far.insert((node, GATEWAY), FAR_US);
    }
}

async fn get_at(env: Env, at: Timestamp) -> Option<String> {
    let mut txn = Txn::with(&env, BeginOptions { as_of: Some(at), ..BeginOptions::default() }).unwrap();
    let one = txn.get("a").await.unwrap();
    let rows = txn.scan("", "~", false).await.unwrap();
    assert_eq!(one.as_ref(), rows.iter().find(|(key, _)| key == "a").map(|(_, value)| value));
    one
}

fn near_reads(w: &World) -> u64 {
    w.member(GATEWAY).counters().near_reads.get()
}

fn in_vain(w: &World) -> u64 {
    w.member(GATEWAY).counters().near_reads_in_vain.get()
}

fn read(w: &mut World, at: Timestamp) -> Option<String> {
    w.ask(GATEWAY, async move |env| get_at(env, at).await)
}

#[test]
fn the_nearest_replica_answers_in_one_hop() {
    for seed in 80..84 {
        let (mut w, leader) = world(seed, |_| {});
        let [near, _] = others_of(leader);
        bring_near(&mut w, near);
        let first = w.ask(GATEWAY, async |env| set(env, pairs(&[("a", "1"), ("p", "1")])).await);
        w.run(8_000_000);
        // All are tried once.
        for _ in 0..3 {
            assert_eq!(read(&mut w, first).as_deref(), Some("1"));
        }
        let (before, served, asked) = (near_reads(&w), w.member(near).counters().follower_reads.get(), w.now_us());
        let requests = w.member(GATEWAY).counters().requests_sent.get();
        for _ in 0..10 {
            assert_eq!(read(&mut w, first).as_deref(), Some("1"));
        }
        let requests = w.member(GATEWAY).counters().requests_sent.get() - requests;
        assert_eq!(near_reads(&w) - before, requests, "seed {seed}: all of them");
        assert_eq!(w.member(near).counters().follower_reads.get() - served, requests, "seed {seed}: by the nearest");
        let took_us = (w.now_us() - asked) / requests;
        assert!(took_us < FAR_US, "seed {seed}: {took_us} us of the world's own time each");
        // The present is its leader's to say.
        let present = w.ask(GATEWAY, async |env| Txn::begin(&env).unwrap().get("a").await);
        assert_eq!(present, Ok(Some("1".into())));
        assert_eq!(near_reads(&w) - before, requests);
    }
}

/// The nearest replica hears nobody of its range: what was written meanwhile is not there. A snapshot that it has, and that write.
fn beside_one_that_lags(prepare: Prepare) -> (World, Timestamp, Timestamp) {
    let (mut w, leader) = world(85, prepare);
    let [near, other] = others_of(leader);
    bring_near(&mut w, near);
    w.ask(leader, async |env| set(env, pairs(&[("a", "1")])).await);
    w.run(8_000_000);
    let now = w.env(GATEWAY).now().interval.earliest();
    let past = Timestamp::new(now.physical_us() - 5_000_000, 0);
    for _ in 0..3 {
        assert_eq!(read(&mut w, past).as_deref(), Some("1"));
    }
    for node in [leader, other] {
        w.weather.cuts.extend([(node, near), (near, node)]);
    }
    let second = w.ask(leader, async |env| set(env, pairs(&[("a", "2")])).await);
    w.run(8_000_000);
    (w, past, second)
}

fn read_beside_one_that_lags(prepare: Prepare) -> (Option<String>, u64) {
    let (mut w, _, second) = beside_one_that_lags(prepare);
    let before = in_vain(&w);
    let seen = read(&mut w, second);
    (seen, in_vain(&w) - before)
}

#[test]
fn who_has_not_resolved_it_does_not_answer() {
    let (seen, in_vain) = read_beside_one_that_lags(|_| {});
    assert_eq!(seen.as_deref(), Some("2"));
    assert!(in_vain > 0, "the nearest was asked");
    let (wrong, _) = read_beside_one_that_lags(|sabotage| sabotage.set_answer_unresolved(true));
    assert_eq!(wrong.as_deref(), Some("1"), "what was committed at or below the snapshot is missed");
}

#[test]
fn who_lags_is_asked_for_what_is_older() {
    let (mut w, past, second) = beside_one_that_lags(|_| {});
    let vain = in_vain(&w);
    assert_eq!(read(&mut w, second).as_deref(), Some("2"));
    assert_eq!(in_vain(&w) - vain, 1, "it could not answer, and is not asked at once for the same");
    let near = near_reads(&w);
    assert_eq!(read(&mut w, past).as_deref(), Some("1"));
    assert_eq!(near_reads(&w) - near, 2, "it has what is older");
    assert_eq!(in_vain(&w) - vain, 1);
}

/// A client at the gateway that reads a key, once; what it read, when it has.
fn begin_to_read(w: &mut World, name: &'static str, at: Timestamp) -> Rc<RefCell<Option<Option<String>>>> {
    let found = Rc::new(RefCell::new(None));
    let told = found.clone();
    w.spawn(GATEWAY, move |env| {
        Box::pin(async move {
            let mut txn = Txn::with(&env, BeginOptions { as_of: Some(at), ..BeginOptions::default() }).unwrap();
            let value = txn.get(name).await.unwrap();
            *told.borrow_mut() = Some(value);
        })
    });
    found
}

/// How many requests a write at the gateway takes.
fn requests_of_a_write(w: &mut World) -> u64 {
    let before = w.member(GATEWAY).counters().requests_sent.get();
    w.ask(GATEWAY, async |env| set(env, pairs(&[("a", "2")])).await);
    w.member(GATEWAY).counters().requests_sent.get() - before
}

#[test]
fn a_late_answer_says_nothing_of_who_leads() {
    let (mut w, leader) = world(88, |_| {});
    let [near, _] = others_of(leader);
    bring_near(&mut w, near);
    let first = w.ask(GATEWAY, async |env| set(env, pairs(&[("a", "1")])).await);
    w.run(8_000_000);
    for _ in 0..3 {
        assert_eq!(read(&mut w, first).as_deref(), Some("1"));
    }
    let usual = requests_of_a_write(&mut w);
    // It stalls until its leader has been asked instead, and answers before that one can.
    w.pause(near);
    let vain = in_vain(&w);
    let found = begin_to_read(&mut w, "a", first);
    w.until("the leader is asked", |w| in_vain(w) > vain);
    w.resume(near);
    w.run(FAR_US / 2);
    assert_eq!(found.take(), Some(Some("1".to_owned())), "its answer is as good");
    assert_eq!(w.leader(1), Some(leader));
    assert_eq!(requests_of_a_write(&mut w), usual, "the gateway still knows who leads");
}

#[test]
fn who_is_dead_is_tried_by_one_read() {
    let (mut w, leader) = world(89, |_| {});
    let [dead, _] = others_of(leader);
    let first = w.ask(GATEWAY, async |env| set(env, pairs(&[("a", "1")])).await);
    // How long the way to the leader is is known.
    assert_eq!(w.ask(GATEWAY, async |env| Txn::begin(&env).unwrap().get("a").await), Ok(Some("1".into())));
    w.run(8_000_000);
    w.crash(dead);
    let all: Vec<_> = (0..10).map(|_| begin_to_read(&mut w, "a", first)).collect();
    w.run(2_000_000);
    assert!(all.iter().all(|found| found.take() == Some(Some("1".to_owned()))));
    for _ in 0..80 {
        assert_eq!(read(&mut w, first).as_deref(), Some("1"));
        w.run(500_000);
    }
    // In some 45 seconds: at once, 5, 15 and 35 seconds later.
    assert_eq!(in_vain(&w), 4, "one read at a time, and less and less often");
}

/// The nearest one stalls once: it is asked again a few seconds later, not a minute.
#[test]
fn who_stalled_once_is_soon_asked_again() {
    let (mut w, leader) = world(91, |_| {});
    let [near, _] = others_of(leader);
    bring_near(&mut w, near);
    let first = w.ask(GATEWAY, async |env| set(env, pairs(&[("a", "1")])).await);
    w.run(8_000_000);
    for _ in 0..3 {
        assert_eq!(read(&mut w, first).as_deref(), Some("1"));
    }
    w.pause(near);
    let vain = in_vain(&w);
    assert_eq!(read(&mut w, first).as_deref(), Some("1"), "another one answers");
    assert_eq!(in_vain(&w) - vain, 1);
    w.resume(near);
    w.run(5_500_000);
    let served = |w: &World| w.member(near).counters().follower_reads.get();
    let before = served(&w);
    let all: Vec<_> = (0..5).map(|_| begin_to_read(&mut w, "a", first)).collect();
    w.run(1_000_000);
    assert!(all.iter().all(|found| found.take() == Some(Some("1".to_owned()))));
    assert_eq!(served(&w) - before, 1, "one read tries it");
    assert_eq!(read(&mut w, first).as_deref(), Some("1"));
    assert_eq!(served(&w) - before, 3, "and it is the nearest again");
}

/// A leader of which nobody has heard for a minute is not taken for near: the others go on, and one read finds out.
#[test]
fn a_forgotten_leader_is_tried_by_one_read() {
    let (mut w, leader) = world(92, |_| {});
    let [near, _] = others_of(leader);
    bring_near(&mut w, near);
    let first = w.ask(GATEWAY, async |env| set(env, pairs(&[("a", "1")])).await);
    w.run(8_000_000);
    for _ in 0..3 {
        assert_eq!(read(&mut w, first).as_deref(), Some("1"));
    }
    // The near one is heard of again before the minute is over, the others are not.
    w.run(55_000_000);
    assert_eq!(read(&mut w, first).as_deref(), Some("1"));
    w.run(7_000_000);
    let served = |w: &World| w.member(near).counters().follower_reads.get();
    let before = served(&w);
    let all: Vec<_> = (0..10).map(|_| begin_to_read(&mut w, "a", first)).collect();
    w.run(1_000_000);
    assert!(all.iter().all(|found| found.take() == Some(Some("1".to_owned()))));
    assert_eq!(served(&w) - before, 9, "all but one");
}

/// Whoever is asked as the nearest leads by now, and has given away what is read: it is not waited for when the new range's leader is slow.
#[test]
fn who_says_where_it_is_was_not_silent() {
    let (mut w, leader) = world(90, |_| {});
    let [near, other] = others_of(leader);
    bring_near(&mut w, near);
    let first = w.ask(GATEWAY, async |env| set(env, pairs(&[("a", "1"), ("p", "1")])).await);
    w.run(8_000_000);
    for _ in 0..3 {
        assert_eq!(read(&mut w, first).as_deref(), Some("1"));
    }
    let hand_over = |w: &mut World, range: u64, from: u32, to: u32| {
        let now = w.env(from).now();
        w.member(from).hand_over(&now, RangeId(range), NodeId(to)).unwrap();
        w.drain(from);
        w.until("the other leads", |w| w.leader(range) == Some(to));
    };
    hand_over(&mut w, 1, leader, near);
    split(&mut w, near, "m");
    let right = w.member(near).ranges().into_iter().map(|range| range.0).find(|range| *range != 1).unwrap();
    let heir = w.await_leader(right);
    assert_eq!(heir, near);
    hand_over(&mut w, right, near, other);
    w.run(1_000_000);
    let (vain, answered) = (in_vain(&w), near_reads(&w));
    let relayed = w.member(GATEWAY).counters().requests_relayed.get();
    w.pause(other);
    let found = begin_to_read(&mut w, "p", first);
    w.run(1_000_000);
    assert!(w.member(GATEWAY).counters().requests_relayed.get() > relayed, "who leads is asked, and says nothing");
    w.resume(other);
    w.until("it is read", |_| found.borrow().is_some());
    assert_eq!(found.take(), Some(Some("1".to_owned())));
    assert_eq!((in_vain(&w), near_reads(&w)), (vain, answered), "the nearest answered, though not with rows");
}

#[test]
fn who_is_silent_or_was_removed_is_not_waited_for() {
    let (mut w, leader) = world(86, |_| {});
    let [near, other] = others_of(leader);
    bring_near(&mut w, near);
    let first = w.ask(leader, async |env| set(env, pairs(&[("a", "1")])).await);
    w.run(8_000_000);
    for _ in 0..3 {
        read(&mut w, first);
    }
    w.crash(near);
    let asked_us = w.now_us();
    assert_eq!(read(&mut w, first).as_deref(), Some("1"));
    assert!(w.now_us() - asked_us < 2_000_000, "{} us", w.now_us() - asked_us);
    assert!(in_vain(&w) > 0);
    w.start(near);
    w.run(20_000_000);
    // Removed, and told so: what it has is nobody's answer.
    change(&mut w, 1, &[ReplicaChange::Remove(NodeId(near))]);
    w.run(3_000_000);
    assert!(!w.member(other).ranges().is_empty());
    let served = w.member(near).counters().follower_reads.get();
    for _ in 0..3 {
        assert_eq!(read(&mut w, first).as_deref(), Some("1"));
        w.run(2_000_000);
    }
    assert_eq!(w.member(near).counters().follower_reads.get(), served, "it answers nothing");
}

/// A node without a replica takes for fresh what the nearest one has for certain.
#[test]
fn bounded_staleness_leaves_time_for_the_nearest() {
    let (mut w, leader) = world(87, |_| {});
    let [near, _] = others_of(leader);
    bring_near(&mut w, near);
    w.ask(leader, async |env| set(env, pairs(&[("a", "1")])).await);
    w.run(10_000_000);
    let mut seen = Timestamp::MIN;
    let mut vain = 0;
    for step in 0..40 {
        let now = w.env(GATEWAY).now();
        let least = Timestamp::new(now.interval.earliest().physical_us() - 10_000_000, 0);
        let (bounded, alone) = (w.member(GATEWAY).freshest(&now, least), w.member(GATEWAY).freshest_alone(&now, seen));
        let age_us = now.interval.earliest().physical_us() - bounded.physical_us();
        assert!((4_000_000..5_000_000).contains(&age_us), "{age_us} us");
        assert!(alone >= seen && alone <= bounded.max(seen), "{alone} {seen}");
        seen = alone;
        assert_eq!(read(&mut w, bounded).as_deref(), Some("1"));
        if step == 3 {
            vain = in_vain(&w);
        }
        w.run(137_000);
        // A bound that is narrower is kept: its leader answers.
        let narrow = Timestamp::new(now.interval.earliest().physical_us() - 1_000_000, 0);
        assert!(w.member(GATEWAY).freshest(&now, narrow) >= narrow);
    }
    assert_eq!(in_vain(&w), vain, "who is asked has it");
    assert!(near_reads(&w) > 60, "{}", near_reads(&w));
}

/// Five nodes, ranges on three of them each, in rough weather: whoever answers, a read of the past is what its model says.
fn agrees_with_the_model(seed: u64, prepare: Prepare) -> Result<u64, String> {
    let range = |n: u64, start: &str, nodes: [u32; 3]| Founding {
        range: RangeId(n),
        start: key(start),
        replicas: nodes.map(NodeId).to_vec(),
    };
    let ranges = vec![range(1, "", [1, 2, 3]), range(2, "m", [3, 4, 5])];
    let mut w = World::new(seed, 5, ranges, prepare);
    let mut rng = Rng::new(seed);
    w.await_leader(1);
    w.await_leader(2);
    w.weather = Weather { loss_percent: 1, late_percent: 1, ..Weather::rough() };
    let mut model: Vec<(Timestamp, u64)> = Vec::new();
    for value in 1..21_u64 {
        let writer = 1 + rng.below(5) as u32;
        let text = value.to_string();
        let at = w.ask(writer, async move |env| {
            let both = [("a".to_owned(), text.clone()), ("p".to_owned(), text)];
            set(env, both.to_vec()).await
        });
        model.push((at, value));
        // Somebody is cut off for a while, from all but the node that reads.
        let (lonely, reader) = (1 + rng.below(5) as u32, 1 + rng.below(5) as u32);
        w.weather.cuts.clear();
        if rng.percent(60) && lonely != reader {
            for node in (1..=5).filter(|node| *node != lonely && *node != reader) {
                w.weather.cuts.extend([(node, lonely), (lonely, node)]);
            }
        }
        // For long enough that it misses what is read, or not.
        w.run(200_000 + rng.below(4_500_000));
        let now_us = w.env(reader).now().interval.earliest().physical_us();
        let snapshot = Timestamp::new(now_us - 3_000_000 - rng.below(2_000_000), 0);
        let expected = model.iter().rev().find(|(at, _)| *at <= snapshot).map(|(_, value)| value.to_string());
        let found = Rc::new(RefCell::new(None));
        let told = found.clone();
        w.spawn(reader, move |env| {
            Box::pin(async move {
                let options = BeginOptions { as_of: Some(snapshot), ..BeginOptions::default() };
                let mut txn = Txn::with(&env, options).unwrap();
                let read = (txn.get("a").await, txn.get("p").await);
                *told.borrow_mut() = Some(read);
            })
        });
        w.run(4_000_000);
        w.weather.cuts.clear();
        w.until("it is read", |_| found.borrow().is_some());
        let Some((Ok(a), Ok(p))) = found.take() else { continue };
        if (&a, &p) != (&expected, &expected) {
            return Err(format!("seed {seed}: at {snapshot} {a:?} and {p:?}, where {expected:?} was committed"));
        }
    }
    Ok((1..=5).map(|node| w.member(node).counters().near_reads.get()).sum())
}

#[test]
fn the_past_is_one_wherever_it_is_read() {
    let near: u64 =
        (0..12).map(|seed| agrees_with_the_model(900 + seed, |_| {}).unwrap_or_else(|e| panic!("{e}"))).sum();
    assert!(near > 30, "{near} reads were answered by the nearest");
    let broken = (0..12).find_map(|seed| agrees_with_the_model(900 + seed, |s| s.set_answer_unresolved(true)).err());
    assert!(broken.is_some(), "nobody noticed");
}

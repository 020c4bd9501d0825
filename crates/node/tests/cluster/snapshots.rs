//! Replicas that lag, that are new, and nodes that were wiped.

use super::client::{Txn, pairs, set, value};
use super::joins::change;
use super::world::{Prepare, World, founding, key};
use node::RangeId;
use node::cluster::{LogLimits, NodeId, ReplicaChange};
use std::cell::Cell;
use std::rc::Rc;
use store::VersionsConfig;
use store::versions::SHOW_MIN;

fn world(seed: u64) -> World {
    let mut w = World::new(seed, 3, founding(&["", "m"], &[1, 2, 3]), |_| {});
    w.await_leader(1);
    w.await_leader(2);
    w
}

fn write_much(w: &mut World, node: u32, rounds: usize) {
    for round in 0..rounds {
        let text = round.to_string();
        let much: Vec<(String, String)> =
            (0..20).map(|n| (format!("{}{}", ["a", "x"][n % 2], n), text.clone())).collect();
        w.ask(node, async move |env| set(env, much).await);
        for node in w.machines.keys().copied().collect::<Vec<_>>() {
            if round % 5 == 4 && w.runs(node) && !w.holds_flushes.contains(&node) {
                w.flush(node);
            }
        }
    }
}

#[track_caller]
fn are_equal(w: &World, nodes: &[u32]) {
    for range in [1, 2].map(RangeId) {
        let all: Vec<_> = nodes.iter().map(|node| w.member(*node).digest(range).unwrap()).collect();
        assert!(all.iter().all(|one| *one == all[0]), "{range}: {all:?}");
    }
}

#[test]
fn a_replica_that_lags_gets_a_snapshot_and_its_state_survives_a_crash_at_any_moment() {
    for seed in 0..12 {
        let mut w = world(seed);
        let lagging = 1 + (seed % 3) as u32;
        let other = lagging % 3 + 1;
        write_much(&mut w, other, 3);
        w.crash(lagging);
        write_much(&mut w, other, 40);
        w.start(lagging);
        // Now and then it dies while a snapshot comes in.
        for _ in 0..seed % 4 {
            w.run(20_000 * (seed + 1));
            w.crash(lagging);
            w.start(lagging);
        }
        w.run(6_000_000);
        are_equal(&w, &[1, 2, 3]);
        assert!(w.member(lagging).counters().snapshots_installed.get() > 0 || seed % 4 > 0, "seed {seed}");
        w.crash(lagging);
        w.start(lagging);
        w.run(3_000_000);
        are_equal(&w, &[1, 2, 3]);
        // It can do without the others' memory: it leads, if need be.
        w.crash(other);
        assert_eq!(w.ask(lagging, async |env| value(env, "a0").await).as_deref(), Some("39"), "seed {seed}");
    }
}

/// A range is copied in as many ticks as it takes: its leader leads on, and what is written meanwhile is in the log that follows.
#[test]
fn a_leader_goes_on_while_it_copies_its_range() {
    for seed in [0, 3, 6] {
        let mut w = world(seed);
        let lagging = (1..=3).find(|node| w.leader(1) != Some(*node) && w.leader(2) != Some(*node)).unwrap_or(3);
        let other = lagging % 3 + 1;
        let fill = |round: usize| (0..200).map(|n| (format!("a{n}"), round.to_string())).collect::<Vec<_>>();
        w.ask(other, async move |env| set(env, fill(0)).await);
        w.crash(lagging);
        write_much(&mut w, other, 30);
        let leader = w.await_leader(1);
        let term = w.member(leader).status(RangeId(1)).unwrap().term;
        w.start(lagging);
        let installed = |w: &World| w.member(lagging).counters().snapshots_installed.get();
        let (began_us, mut rounds) = (w.now_us(), 0);
        while installed(&w) < 2 {
            rounds += 1;
            w.ask(other, async move |env| set(env, pairs(&[("a7", "meanwhile"), ("a199", "meanwhile")])).await);
            w.run(50_000);
            w.flush(lagging);
        }
        // A tick is 100 ms, and 200 keys are more than ten looks.
        assert!(rounds > 10 && w.now_us() - began_us > 1_000_000, "seed {seed}: {rounds} rounds");
        assert_eq!(w.member(leader).status(RangeId(1)).unwrap().term, term, "seed {seed}: it led on");
        w.run(4_000_000);
        are_equal(&w, &[1, 2, 3]);
    }
}

/// The first and the last row of a replica that gets a snapshot.
type Ends = [Option<String>; 2];

fn ends(w: &World, node: u32) -> Ends {
    [key("b1000"), key("b2999")].map(|key| {
        let value = w.member(node).stored(&key).unwrap();
        value.map(|value| String::from_utf8_lossy(&value).into_owned())
    })
}

fn both(value: &str) -> Ends {
    [Some(value.to_owned()), Some(value.to_owned())]
}

/// A node has half of a snapshot. Gives the leader, too, and that node.
fn with_half_a_snapshot(seed: u64, prepare: Prepare) -> (World, u32, u32) {
    let mut w = World::new(seed, 3, founding(&["", "m"], &[1, 2, 3]), prepare);
    let (leader, x) = (w.await_leader(1), w.await_leader(2));
    let lagging = (1..=3).find(|node| leader != *node && x != *node).unwrap_or(3);
    let fill = |value: &str| (1000..3000).map(|n| (format!("b{n}"), value.to_owned())).collect::<Vec<_>>();
    let [old, new] = ["old", "new"].map(fill);
    w.ask(leader, async move |env| set(env, old).await);
    w.until("it has the old rows", |w| ends(w, lagging) == both("old"));
    w.flush(lagging);
    w.crash(lagging);
    w.ask(leader, async move |env| set(env, new).await);
    write_much(&mut w, leader, 30);
    w.start(lagging);
    w.until("the first rows are there", |w| ends(w, lagging) != both("old"));
    assert_ne!(ends(&w, lagging), both("new"), "seed {seed}: it takes many slices");
    (w, leader, lagging)
}

/// What a replica holds after a crash with a snapshot half installed.
fn after_half_a_snapshot(seed: u64, prepare: Prepare) -> Ends {
    let (mut w, _, lagging) = with_half_a_snapshot(seed, prepare);
    let status = w.member(lagging).status(RangeId(1)).unwrap();
    assert!(status.installing && status.resolved == clock::Timestamp::MIN, "seed {seed}: nobody reads it: {status:?}");
    w.flush(lagging);
    w.crash(lagging);
    w.start(lagging);
    let held = ends(&w, lagging);
    w.until("all rows are there", |w| ends(w, lagging) == both("new"));
    w.run(3_000_000);
    are_equal(&w, &[1, 2, 3]);
    held
}

/// A snapshot is installed a slice at a time while the node goes on, and is durable as a whole or not at all.
#[test]
fn half_a_snapshot_is_not_durable() {
    for seed in [0, 3, 6] {
        assert_eq!(after_half_a_snapshot(seed, |_| {}), both("old"), "seed {seed}");
        let halves = after_half_a_snapshot(seed, |sabotage| sabotage.set_close_half_a_snapshot(true));
        assert_eq!(halves, [both("new")[0].clone(), both("old")[0].clone()], "seed {seed}: it is whole anyway");
    }
}

/// What a replica holds that was removed with a snapshot half installed, and whose node died before the record of that was durable.
fn removed_with_half_a_snapshot(seed: u64, prepare: Prepare) -> Ends {
    let (mut w, _, lagging) = with_half_a_snapshot(seed, prepare);
    let leader = w.await_leader(1);
    let now = w.env(leader).now();
    let gone = [ReplicaChange::Remove(NodeId(lagging))];
    w.member(leader).change_replicas(&now, RangeId(1), &gone).unwrap();
    w.drain(leader);
    let is_there = |w: &World| w.member(lagging).status(RangeId(1)).is_some();
    for _ in 0..100_000 {
        if !is_there(&w) {
            break;
        }
        w.run(50);
    }
    assert!(!is_there(&w), "seed {seed}: it is never removed");
    assert_ne!(ends(&w, lagging), both("new"), "seed {seed}: it is removed too late");
    w.flush(lagging);
    let lost = std::mem::take(&mut w.machines.get_mut(&lagging).unwrap().unsynced);
    assert!(!lost.is_empty(), "seed {seed}: its removal is durable");
    w.crash(lagging);
    w.start(lagging);
    assert!(is_there(&w), "seed {seed}");
    let held = ends(&w, lagging);
    w.until("it is removed again", |w| !is_there(w));
    w.run(1_000_000);
    w.flush(lagging);
    assert_eq!(w.member(lagging).versions().active_bytes(), 0, "seed {seed}: what is left may be durable now");
    held
}

/// It finds the replica again, and all of its old state.
#[test]
fn half_a_snapshot_is_not_durable_before_its_replica_is_gone() {
    for seed in [0, 3, 6] {
        assert_eq!(removed_with_half_a_snapshot(seed, |_| {}), both("old"), "seed {seed}");
        let halves = removed_with_half_a_snapshot(seed, |sabotage| sabotage.set_forget_half_a_snapshot(true));
        assert_ne!(halves, both("old"), "seed {seed}: it is whole anyway");
    }
}

/// A replica is removed while the layer with its snapshot is flushed, and added again: that layer makes nothing of its second snapshot durable, of which a part is there.
#[test]
fn a_layer_with_an_older_snapshot_installs_no_newer_one() {
    for seed in [0, 3, 6] {
        let (mut w, leader, lagging) = with_half_a_snapshot(seed, |_| {});
        w.holds_flushes.insert(lagging);
        w.until("all of the first one is there, and not durable", |w| ends(w, lagging) == both("new"));
        w.run(200_000);
        let is_there = |w: &World| w.member(lagging).status(RangeId(1)).is_some();
        let node = NodeId(lagging);
        change(&mut w, 1, &[ReplicaChange::Remove(node)]);
        w.until("it is removed", |w| !is_there(w));
        let fill = (1000..3000).map(|n| (format!("b{n}"), "newer".to_owned())).collect::<Vec<_>>();
        w.ask(leader, async move |env| set(env, fill).await);
        write_much(&mut w, leader, 10);
        change(&mut w, 1, &[ReplicaChange::Add(node)]);
        let half = |w: &World| ends(w, lagging) == [both("newer")[0].clone(), both("new")[0].clone()];
        w.until("a part of the second one is there", half);
        w.flush_frozen(lagging);
        // What it says by now is heard, and it dies.
        w.run(20_000);
        assert!(half(&w), "seed {seed}: it takes many slices");
        w.crash(lagging);
        w.holds_flushes.clear();
        w.start(lagging);
        w.until("it has caught up", |w| ends(w, lagging) == both("newer"));
        w.run(3_000_000);
        are_equal(&w, &[1, 2, 3]);
    }
}

/// Of a key that was deleted, and is written while its range is copied: whether who got the copy knows of the deletion, and whether the copy itself has the write.
struct InACopy {
    deleted: bool,
    written: bool,
}

/// A key that never was is deleted; while its range is copied, it is written, and nothing tells any more that it had been deleted. Whether the replica that gets the copy knows of that: it certifies
/// what comes before by it.
/// `beside`: it is written with so many others, in parts, and a commit of ten writes is shown before it is placed.
fn deletion_in_a_copy(seed: u64, beside: usize, prepare: Prepare) -> InACopy {
    let limits =
        LogLimits { entries_kept: seed % 3 * 20, records_kept: 200, copied_bytes_per_tick: 1, ..LogLimits::default() };
    let limits = if beside > 0 { LogLimits { entry_bytes: 200, part_bytes: 64 << 10, ..limits } } else { limits };
    let show_min = if beside > 0 { 10 } else { SHOW_MIN };
    let versions = VersionsConfig { show_min, ..VersionsConfig::default() };
    let mut w = World::stored(seed, 3, founding(&["", "m"], &[1, 2, 3]), prepare, limits, versions);
    let (leader, x) = (w.await_leader(1), w.await_leader(2));
    let lagging = (1..=3).find(|node| leader != *node && x != *node).unwrap_or(3);
    let fill = (0..200).map(|n| (format!("a{n}"), "0".to_owned())).collect::<Vec<_>>();
    w.ask(leader, async move |env| set(env, fill).await);
    w.crash(lagging);
    write_much(&mut w, leader, 30);
    w.ask(leader, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        txn.txn.delete(key("b")).unwrap();
        txn.commit().await.unwrap();
    });
    w.flush(leader);
    w.start(lagging);
    let installed = |w: &World| w.member(lagging).counters().snapshots_installed.get();
    // It takes ten ticks.
    w.run(300_000);
    assert_eq!(installed(&w), 0, "seed {seed}");
    w.places = false;
    let many = (0..beside).map(|n| (format!("b{n:05}"), "1".to_owned()));
    let written: Vec<_> = pairs(&[("b", "1")]).into_iter().chain(many).collect();
    let finished = Rc::new(Cell::new(false));
    let finishes = finished.clone();
    w.spawn(leader, move |env| {
        Box::pin(async move {
            set(env, written).await;
            finishes.set(true);
        })
    });
    if beside > 0 {
        w.until("it is seen, and not in its places", |w| w.member(leader).versions().place(0));
    }
    w.until("it is committed", |_| finished.get());
    w.flush(leader);
    while installed(&w) < 2 {
        w.run(1_000);
    }
    let key = key("b");
    let written = w.member(lagging).stored(&key).unwrap().is_some();
    w.until("the write of b", |w| w.member(lagging).stored(&key).unwrap().is_some());
    let deleted = w.member(lagging).versions().history(&key).unwrap()[0].value.is_none();
    w.run(3_000_000);
    are_equal(&w, &[1, 2, 3]);
    InACopy { deleted, written }
}

#[test]
fn a_copy_tells_of_deletions_that_are_followed_meanwhile() {
    for seed in [0, 3, 6] {
        // Alone, and in a commit that is shown before it is placed.
        for beside in [0, 60] {
            assert!(deletion_in_a_copy(seed, beside, |_| {}).deleted, "seed {seed}, beside {beside}");
            let forgets = deletion_in_a_copy(seed, beside, |sabotage| sabotage.set_forget_what_is_followed(true));
            assert!(!forgets.deleted, "seed {seed}: it is told anyway");
        }
    }
}

/// So many deletions are not looked for in one step: the copy is begun anew, behind the commit, and has no need of them.
#[test]
fn a_copy_is_begun_anew_for_a_commit_of_very_many_writes() {
    let anew = deletion_in_a_copy(3, 9000, |_| {});
    assert!(anew.written && !anew.deleted);
    let first = deletion_in_a_copy(3, 9000, |sabotage| sabotage.set_forget_what_is_followed(true));
    assert!(!first.written && !first.deleted, "the control: that copy has neither");
}

/// A range that is too large to be copied whole is split until its parts are not: also while transactions over both of its sides are undecided at any time.
#[test]
fn a_range_that_is_too_large_for_a_snapshot_is_split() {
    const COPIED_BYTES: usize = 2500;
    for seed in [0, 3, 6] {
        let limits =
            LogLimits { entries_kept: 0, records_kept: 200, copied_bytes: COPIED_BYTES, ..LogLimits::default() };
        let limits = LogLimits { copied_bytes_per_tick: 200, ..limits };
        let mut w = World::with(seed, 3, founding(&["", "m"], &[1, 2, 3]), |_| {}, limits);
        let (a, x) = (w.await_leader(1), w.await_leader(2));
        let lagging = (1..=3).find(|node| a != *node && x != *node).unwrap_or(3);
        let other = lagging % 3 + 1;
        let fill = |round: usize| (0..200).map(|n| (format!("a{n:03}"), round.to_string())).collect::<Vec<_>>();
        w.ask(other, async move |env| set(env, fill(0)).await);
        w.crash(lagging);
        write_much(&mut w, other, 30);
        w.ask(other, async move |env| set(env, fill(1)).await);
        w.flush(other);
        w.flush(other % 3 + 1);
        w.start(lagging);
        for writer in 0..4 {
            w.spawn(other, move |env| {
                Box::pin(async move {
                    for round in 0..100 {
                        let text = round.to_string();
                        set(env.clone(), pairs(&[(&format!("a1{writer}"), &text), (&format!("x{writer}"), &text)]))
                            .await;
                    }
                })
            });
        }
        let ranges_of = |w: &World, node: u32| w.member(node).ranges();
        for _ in 0..600 {
            w.run(100_000);
            w.flush(lagging);
            if w.jobs() == 0 && ranges_of(&w, lagging) == ranges_of(&w, other) {
                break;
            }
        }
        w.run(4_000_000);
        let halved = |w: &World| (1..=3).map(|node| w.member(node).counters().ranges_halved.get()).sum::<u64>();
        assert!(halved(&w) > 0, "seed {seed}");
        assert_eq!(w.jobs(), 0, "seed {seed}: the writers came to their end");
        let ranges = w.member(other).ranges();
        assert!(ranges.len() > 2, "seed {seed}: {ranges:?}");
        assert_eq!(w.member(lagging).ranges(), ranges, "seed {seed}");
        for range in ranges {
            let all: Vec<_> = (1..=3).map(|node| w.member(node).digest(range).unwrap()).collect();
            assert!(all.iter().all(|one| *one == all[0]), "seed {seed} {range}: {all:?}");
        }
        // All of it is there, for two.
        w.crash(other);
        let rows = w.ask(lagging, async |env| Txn::hybrid(&env).unwrap().scan("a", "b", false).await.unwrap());
        let want: Vec<_> = fill(1).into_iter().filter(|(name, _)| name != "a10" && name != "a13").collect();
        assert!(want.iter().all(|row| rows.contains(row)), "seed {seed}");
    }
}

/// A store that was wiped is a new store: it joins under another number, and the old replica goes.
#[test]
fn a_wiped_node_comes_back_as_a_new_one() {
    for seed in 0..6 {
        let mut w = world(seed);
        write_much(&mut w, 1, 12);
        w.crash(3);
        w.add(seed, 4, founding(&["", "m"], &[1, 2, 3]));
        let (old, new) = (NodeId(3), NodeId(4));
        for range in [1, 2] {
            change(&mut w, range, &[ReplicaChange::Add(new)]);
            change(&mut w, range, &[ReplicaChange::Promote(new), ReplicaChange::Remove(old)]);
            w.until("the new configuration", |w| {
                let status = w.leader(range).and_then(|leader| w.member(leader).status(RangeId(range)));
                status.is_some_and(|status| !status.joint && status.voters == [NodeId(1), NodeId(2), new])
            });
        }
        write_much(&mut w, 2, 3);
        w.run(3_000_000);
        are_equal(&w, &[1, 2, 4]);
        // It counts: with it and one other there is a majority.
        w.crash(1);
        w.ask(4, async |env| set(env, pairs(&[("a0", "last"), ("x1", "last")])).await);
        assert_eq!(w.ask(4, async |env| value(env, "x1").await).as_deref(), Some("last"));
        // The old one, were it to come back with its disk, learns that it is a member no more.
        w.start(3);
        w.start(1);
        w.run(10_000_000);
        assert_eq!(w.member(3).ranges(), [], "seed {seed}");
        are_equal(&w, &[1, 2, 4]);
        w.crash(3);
        w.start(3);
        w.run(2_000_000);
        assert_eq!(w.ask(3, async |env| value(env, "x1").await).as_deref(), Some("last"), "a gateway without replicas");
    }
}

/// Segments of the log go although one range is idle.
#[test]
fn an_idle_range_does_not_hold_the_log() {
    let mut w = world(7);
    w.ask(1, async |env| set(env, pairs(&[("x", "1")])).await);
    for round in 0..150 {
        let text = round.to_string();
        w.ask(1, async move |env| set(env, vec![("a".to_owned(), text)]).await);
        if round % 10 == 9 {
            (1..=3).for_each(|node| w.flush(node));
        }
    }
    for node in 1..=3 {
        let records = w.machines[&node].log.len();
        assert!(records < 600, "n{node} keeps {records} records");
        w.crash(node);
    }
    (1..=3).for_each(|node| w.start(node));
    assert_eq!(w.ask(2, async |env| value(env, "a").await).as_deref(), Some("149"));
    assert_eq!(w.ask(2, async |env| value(env, "x").await).as_deref(), Some("1"));
    are_equal(&w, &[1, 2, 3]);
}

/// All replicas of a range have moved since a gateway heard of it: those that it knows say where they went.
#[test]
fn a_range_that_moved_away_altogether_is_found() {
    let mut w = World::new(31, 7, founding(&[""], &[1, 2, 3]), |_| {});
    w.await_leader(1);
    w.ask(1, async |env| set(env, pairs(&[("x", "1")])).await);
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
    for (old, new) in [(1, 4), (2, 5), (3, 6)] {
        change(&mut w, &[ReplicaChange::Add(NodeId(new))]);
        change(&mut w, &[ReplicaChange::Promote(NodeId(new)), ReplicaChange::Remove(NodeId(old))]);
        w.run(5_000_000);
    }
    let leader = w.await_leader(1);
    assert_eq!(w.member(leader).status(RangeId(1)).unwrap().voters, [NodeId(4), NodeId(5), NodeId(6)]);
    // It was never asked there, so it knows the three that the range began on.
    assert_eq!(w.ask(7, async |env| value(env, "x").await).as_deref(), Some("1"));
}

/// What is installed of a snapshot waits for the disk as a whole, and holds up nobody who writes here meanwhile: it is left out of what is waited for.
#[test]
fn what_comes_in_a_snapshot_is_not_what_writers_wait_for() {
    for seed in [0, 3, 6] {
        let limits = LogLimits { entries_kept: 0, records_kept: 200, ..LogLimits::default() };
        let mut w = World::with(
            seed,
            3,
            founding(&["", "m"], &[1, 2, 3]),
            |_| {},
            LogLimits { copied_bytes_per_tick: 4000, ..limits },
        );
        let (a, x) = (w.await_leader(1), w.await_leader(2));
        let lagging = (1..=3).find(|node| a != *node && x != *node).unwrap_or(3);
        let other = lagging % 3 + 1;
        let fill =
            |round: usize| (0..200).map(|n| (format!("a{n}"), round.to_string().repeat(500))).collect::<Vec<_>>();
        w.ask(other, async move |env| set(env, fill(1)).await);
        w.run(1_000_000);
        // What it replays from its log would count, too.
        w.flush(lagging);
        w.crash(lagging);
        write_much(&mut w, other, 30);
        w.ask(other, async move |env| set(env, fill(2)).await);
        w.flush(other);
        w.flush(other % 3 + 1);
        w.start(lagging);
        let (mut installed, mut waited_for) = (0, 0);
        // The other range's comes first, perhaps, and is small.
        for _ in 0..160 {
            w.run(50_000);
            let member = w.member(lagging);
            if member.installed_bytes() > 0 {
                installed = installed.max(member.installed_bytes());
                waited_for = waited_for.max(member.versions().overlay_bytes().saturating_sub(member.installed_bytes()));
            }
        }
        assert!(installed > 100_000, "seed {seed}: {installed} bytes");
        assert!(waited_for < installed / 4, "seed {seed}: {waited_for} bytes of {installed} are waited for");
        w.run(5_000_000);
        assert_eq!(w.member(lagging).installed_bytes(), 0, "seed {seed}: it is durable");
        are_equal(&w, &[1, 2, 3]);
    }
}

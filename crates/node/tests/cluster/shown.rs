//! Large commits that are seen and not in their places yet: who reads the past at a follower, who gets a copy of the range, and who dies just then.

use super::client::{Txn, pairs, set, value};
use super::joins::change;
use super::world::{World, founding};
use clock::Timestamp;
use node::cluster::{LogLimits, NodeId, ReplicaChange};
use node::{BeginOptions, RangeId};
use store::VersionsConfig;

/// A commit of ten writes is shown, and nobody puts it in its places but who freezes.
fn world(seed: u64) -> (World, u32) {
    let limits = LogLimits { entry_bytes: 200, part_bytes: 50, entries_kept: 5, ..LogLimits::default() };
    let versions = VersionsConfig { show_min: 10, ..VersionsConfig::default() };
    let mut w = World::stored(seed, 4, founding(&["", "m"], &[1, 2, 3]), |_| {}, limits, versions);
    w.places = false;
    w.await_leader(2);
    let leader = w.await_leader(1);
    (w, leader)
}

fn rows(first: &str, count: usize, value: &str) -> Vec<(String, String)> {
    (0..count).map(|n| (format!("{first}{n:03}"), format!("{value}{n}"))).collect()
}

fn is_listed(w: &World, node: u32) -> bool {
    w.member(node).versions().place(0)
}

/// The rows at a snapshot, as a node has them: it asks nobody.
fn rows_at(w: &mut World, node: u32, at: Timestamp) -> Vec<(String, String)> {
    let before = w.member(node).counters().requests_sent.get();
    let options = BeginOptions { as_of: Some(at), ..BeginOptions::default() };
    let rows = w.ask(node, async move |env| Txn::with(&env, options).unwrap().scan("a", "m", false).await);
    assert_eq!(w.member(node).counters().requests_sent.get(), before, "n{node} asks nobody");
    rows.unwrap()
}

#[test]
fn the_past_is_read_at_a_follower_and_by_whoever_died_just_then() {
    for seed in 20..24 {
        let (mut w, leader) = world(seed);
        let follower = leader % 3 + 1;
        let first = w.ask(leader, async |env| set(env, rows("b", 40, "one")).await);
        let second = w.ask(leader, async |env| set(env, rows("b", 30, "two")).await);
        w.run(8_000_000);
        let old = rows("b", 40, "one");
        let new: Vec<_> = rows("b", 30, "two").into_iter().chain(old[30..].to_vec()).collect();
        for dies in [false, true, true] {
            if dies {
                w.crash(follower);
                w.start(follower);
                w.run(8_000_000);
            } else {
                assert!(is_listed(&w, follower), "seed {seed}");
            }
            assert_eq!(rows_at(&mut w, follower, first), old, "seed {seed}");
            assert_eq!(rows_at(&mut w, follower, second), new, "seed {seed}");
        }
        // Of what died with the process, unsynced or not, the log has all: the others tell the same.
        for node in 1..=3 {
            w.crash(node);
        }
        (1..=3).for_each(|node| w.start(node));
        w.run(5_000_000);
        assert_eq!(w.ask(follower, async |env| value(env, "b029").await).as_deref(), Some("two29"));
        w.check_replicas();
    }
}

/// Half of it is in its places: a layer that is closed then stands for all of it, or for nothing.
#[test]
fn who_dies_with_half_of_it_in_its_places_has_all_of_it_or_nothing_durable() {
    for (seed, flushed) in [(30, false), (31, true)] {
        let (mut w, leader) = world(seed);
        w.ask(leader, async |env| set(env, rows("b", 40, "one")).await);
        w.run(1_000_000);
        for node in 1..=3 {
            assert!(w.member(node).versions().place(15), "n{node}: there is more");
            if flushed {
                w.flush(node);
            }
            w.crash(node);
        }
        (1..=3).for_each(|node| w.start(node));
        w.run(5_000_000);
        let all = w.ask(leader, async |env| Txn::begin(&env).unwrap().scan("b", "c", false).await.unwrap());
        assert_eq!(all, rows("b", 40, "one"), "seed {seed}");
        w.check_replicas();
    }
}

#[test]
fn a_new_replica_gets_what_is_only_seen() {
    for seed in 40..44 {
        let (mut w, leader) = world(seed);
        w.ask(leader, async |env| set(env, rows("a", 100, "before")).await);
        w.flush(leader);
        // Of one range, and of two: prepared, and then committed.
        w.ask(leader, async |env| set(env, rows("b", 40, "one")).await);
        let both: Vec<_> = rows("c", 40, "both").into_iter().chain(rows("p", 12, "both")).collect();
        w.ask(leader, async move |env| set(env, both).await);
        assert!(is_listed(&w, leader), "seed {seed}");
        change(&mut w, 1, &[ReplicaChange::Add(NodeId(4))]);
        let installed = |w: &World| w.member(4).counters().snapshots_installed.get();
        for _ in 0..200 {
            if installed(&w) > 0 {
                break;
            }
            w.ask(leader, async |env| set(env, pairs(&[("b007", "meanwhile")])).await);
            w.run(50_000);
        }
        assert!(installed(&w) > 0, "seed {seed}");
        w.run(5_000_000);
        let all: Vec<_> = (1..=4).map(|node| w.member(node).digest(RangeId(1)).unwrap()).collect();
        assert!(all.iter().all(|one| *one == all[0]), "seed {seed}: {all:?}");
    }
}

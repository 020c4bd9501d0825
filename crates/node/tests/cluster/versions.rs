//! Programs of two releases in one cluster: what is new waits until somebody raises the version.

use super::client::{Txn, set};
use super::world::{World, founding, key, poll_fn};
use node::cluster::{SessionLock, VERSION_MAX};
use node::{LockMode, LockWait, RangeId, TxnError};
use protocol::door::VERSION_OF_SESSION_LOCKS;

const NEW: u16 = 2;

/// Three nodes, of which the first runs an older program, which knows the cluster's version and no later one.
pub fn mixed_at(seed: u64, version: u16, prepare: super::world::Prepare) -> World {
    let mut w = World::of_version(version, seed, 3, founding(&["", "m"], &[1, 2, 3]), prepare);
    restart_as(&mut w, 1, version);
    w
}

fn mixed(seed: u64, prepare: super::world::Prepare) -> World {
    mixed_at(seed, NEW - 1, prepare)
}

pub fn restart_as(w: &mut World, node: u32, newest: u16) {
    w.run(1_000_000);
    w.crash(node);
    w.set_program(node, newest);
    w.start(node);
    w.await_leader(1);
    w.await_leader(2);
}

fn write(w: &mut World, rounds: usize) {
    for round in 0..rounds {
        let all = ["a", "x"].map(|name| (name.to_owned(), round.to_string())).to_vec();
        w.ask(2 + (round % 2) as u32, async move |env| set(env, all).await);
    }
    w.run(2_000_000);
}

fn counted(w: &World) -> Vec<(u16, u64)> {
    let of = |node: u32| [1, 2].map(|range| w.member(node).status(RangeId(range)).expect("a replica"));
    (1..=3).flat_map(of).map(|status| (status.version, status.commits)).collect()
}

/// Nothing new is done before it is raised, and everything afterwards, also by the replica whose snapshot or log has the record.
#[test]
fn what_is_new_waits_until_it_is_raised() {
    for seed in 0..4 {
        let mut w = mixed(seed, |_| {});
        write(&mut w, 6);
        assert_eq!(counted(&w), [(1, 0); 6], "seed {seed}");
        w.check_replicas();
        restart_as(&mut w, 1, VERSION_MAX);
        write(&mut w, 3);
        assert_eq!(counted(&w), [(1, 0); 6], "seed {seed}: all programs know it, and nobody said so");
        // They hear of it one after the other; one is away.
        w.crash(3);
        for node in [2, 1] {
            w.member(node).set_version(NEW);
            w.run(700_000);
        }
        for round in 0..30 {
            let all = ["b", "y"].map(|name| (name.to_owned(), round.to_string())).to_vec();
            w.ask(1, async move |env| set(env, all).await);
            w.flush(1);
            w.flush(2);
        }
        w.start(3);
        w.run(6_000_000);
        let all = counted(&w);
        assert!(all.iter().all(|(version, commits)| (*version, *commits > 0) == (NEW, true)), "seed {seed}: {all:?}");
        w.check_replicas();
        // It stays, over a restart of all.
        for node in 1..=3 {
            w.crash(node);
            w.start(node);
        }
        w.run(4_000_000);
        assert_eq!(counted(&w), all, "seed {seed}");
    }
}

/// Each does what its own program knows: the checksums say so.
#[test]
#[should_panic(expected = "differs on")]
fn replicas_that_go_by_their_programs_differ() {
    let mut w = mixed(1, |sabotage| sabotage.set_apply_by_program(true));
    write(&mut w, 6);
    w.check_replicas();
}

/// Put back to a program that does not know the range's version, a node does not open.
#[test]
fn a_program_that_does_not_know_the_version_does_not_open() {
    let mut w = World::first(3, 1, founding(&[""], &[1]), |_| {});
    w.await_leader(1);
    w.member(1).set_version(NEW);
    w.until("it is raised", |w| w.member(1).status(RangeId(1)).is_some_and(|status| status.version == NEW));
    w.flush(1);
    w.crash(1);
    w.set_program(1, NEW - 1);
    let why = w.try_start(1).expect_err("refused").to_string();
    assert!(why.contains("version 2 of the cluster") && why.contains("1 to 1"), "{why}");
}

/// Locks of sessions, and word by way of a third: requests that a program of the version before cannot read.
fn what_a_newer_program_says(prepare: super::world::Prepare) -> Result<bool, TxnError> {
    let mut w = mixed_at(7, VERSION_OF_SESSION_LOCKS - 1, prepare);
    let taken = w.ask(2, async |env| {
        let mut lock = SessionLock::new(&env.member, 1, key("a"));
        poll_fn(|cx| lock.take(&env.now(), LockMode::Update, LockWait::NoWait, cx.waker())).await
    });
    // A row at a leader that its gateway does not hear.
    let leader = w.await_leader(1);
    let (gateway, third) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    w.weather.cuts.extend([(leader, gateway), (gateway, leader)]);
    let txn = w.ask(gateway, async |env| {
        let mut txn = Txn::begin(&env).unwrap();
        assert_eq!(txn.lock("b").await, Ok(true));
        txn
    });
    w.run(3_000_000);
    drop(txn);
    w.drain(gateway);
    w.run(1_000_000);
    w.heal();
    w.ask(third, async |env| set(env, super::client::pairs(&[("b", "1")])).await);
    taken
}

#[test]
fn what_an_older_program_cannot_read_is_not_said() {
    let needs = VERSION_OF_SESSION_LOCKS;
    let told = what_a_newer_program_says(|_| {});
    assert!(
        matches!(&told, Err(TxnError::NeedsVersion { needs: of, version, .. }) if (*of, *version) == (needs, needs - 1))
    );
    assert!(told.unwrap_err().to_string().contains("need version 3 of the cluster, and version 2 is in force"));
    // All know it, and it is raised.
    let mut w = mixed_at(8, needs - 1, |_| {});
    restart_as(&mut w, 1, VERSION_MAX);
    for node in 1..=3 {
        w.member(node).set_version(needs);
    }
    let taken = w.ask(2, async |env| {
        let mut lock = SessionLock::new(&env.member, 1, key("a"));
        poll_fn(|cx| lock.take(&env.now(), LockMode::Update, LockWait::NoWait, cx.waker())).await
    });
    assert_eq!(taken, Ok(true));
}

#[test]
#[should_panic(expected = "was sent what its program cannot read")]
fn what_is_new_is_said_too_early() {
    let _ = what_a_newer_program_says(|sabotage| sabotage.set_say_what_is_new(true));
}

//! Negative controls. For each rule a schedule that needs it: with the rule it passes, with the rule broken it must be noticed,
//! within a stated number of seeds (they vary latencies and clocks). The seeded runs notice most of them, too, but later.

use super::machine::Watch;
use super::network::Rng;
use super::runs;
use super::watch::Verdict;
use super::world::World;
use clock::Timestamp;
use protocol::log::raft::{Change, GroupId, Input, Member, ReplicaId, Sabotage, StoreId};
use std::panic::{AssertUnwindSafe, catch_unwind};

const G: GroupId = GroupId(1);
/// Within so many seeds each schedule notices.
const SEEDS: u64 = 12;

fn honest(rng: &mut Rng) -> Watch {
    Watch { offset_us: rng.range(0, 400) as i64 - 200, drift_ppm: 0, error_us: 500, ..Watch::default() }
}

fn three(seed: u64, sabotage: &Sabotage) -> Result<World, String> {
    let mut world = World::new(seed, 3, sabotage, honest);
    world.weather.latency_us = (500, 1500);
    world.weather.sync_us = (300, 900);
    world.found(G, &[1, 2, 3])?;
    Ok(world)
}

/// Store 1 leads, and has a lease.
fn led(world: &mut World) -> Verdict {
    world.input(StoreId(1), Input::Campaign { group: G })?;
    until(world, "a lease at store 1", |world| lease(world, 1).is_some())
}

fn lease(world: &World, store: u64) -> Option<(Timestamp, Timestamp)> {
    world.machines[&StoreId(store)].replicas.as_ref()?.lease(G)
}

fn until(world: &mut World, what: &str, holds: impl Fn(&World) -> bool) -> Verdict {
    for _ in 0..20_000 {
        if holds(world) {
            return Ok(());
        }
        world.run(500)?;
    }
    Err(format!("stuck, waiting for {what}"))
}

fn lose_and_crash(world: &mut World, store: u64) {
    world.machines.get_mut(&StoreId(store)).unwrap().unsynced.clear();
    world.crash(StoreId(store));
}

fn stall(world: &mut World, store: u64) {
    world.machines.get_mut(&StoreId(store)).unwrap().stalled = true;
}

fn start(world: &mut World, store: u64) {
    world.machines.get_mut(&StoreId(store)).unwrap().stalled = false;
    world.restart(StoreId(store));
}

/// A voter forgets its vote and votes again.
fn votes_twice(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = three(seed, sabotage)?;
    world.cut(1, 2);
    world.cut(2, 1);
    world.ticks(3)?;
    stall(&mut world, 3);
    world.input(StoreId(1), Input::Campaign { group: G })?;
    world.run(10_000)?;
    world.cut(1, 3);
    lose_and_crash(&mut world, 3);
    world.run(5_000)?;
    start(&mut world, 3);
    world.input(StoreId(2), Input::Campaign { group: G })?;
    world.ticks(2)
}

/// A follower forgets what it acknowledged.
fn forgets_an_entry(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = three(seed, sabotage)?;
    led(&mut world)?;
    world.ticks(5)?;
    world.isolate(StoreId(3));
    stall(&mut world, 2);
    let _ = world.propose(StoreId(1), G, b"a".to_vec().into())?;
    world.run(20_000)?;
    lose_and_crash(&mut world, 2);
    world.heal();
    world.isolate(StoreId(1));
    start(&mut world, 2);
    world.ticks(80)
}

/// The leader sleeps, cut off; another is elected; then one link heals, and the promise is extended.
fn extends_to_the_deposed(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = three(seed, sabotage)?;
    led(&mut world)?;
    until(&mut world, "sleep", |world| world.machines[&StoreId(1)].replicas.as_ref().is_some_and(|r| r.awake() == 0))?;
    world.isolate(StoreId(1));
    // By its clock its lease lasts a second longer: it sleeps on.
    world.machines.get_mut(&StoreId(1)).unwrap().watch.offset_us -= 1_000_000;
    until(&mut world, "another lease", |world| lease(world, 2).is_some() || lease(world, 3).is_some())?;
    let second = if lease(&world, 2).is_some() { 2 } else { 3 };
    world.heal();
    world.cut(1, second);
    world.cut(second, 1);
    world.ticks(20)
}

/// The old leader goes on for as long as it was promised, while the voters have let go by faster clocks.
fn serves_to_the_end(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = three(seed, sabotage)?;
    led(&mut world)?;
    world.ticks(5)?;
    for store in [2, 3] {
        world.machines.get_mut(&StoreId(store)).unwrap().watch.offset_us += 1_500_000;
    }
    world.isolate(StoreId(1));
    world.ticks(15)?;
    for store in [2, 3] {
        world.machines.get_mut(&StoreId(store)).unwrap().watch.offset_us -= 3_500_000;
    }
    world.ticks(60)
}

/// Who led steps down long before its lease ends, and votes. The winner never promised it anything, and the third, which did, is away.
fn votes_after_it_led(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = three(seed, sabotage)?;
    world.machines.get_mut(&StoreId(2)).unwrap().watch.dark = true;
    led(&mut world)?;
    world.ticks(5)?;
    // What store 3 does not get keeps the leader awake, so that it notices.
    world.cut(1, 3);
    let _ = world.propose(StoreId(1), G, b"a".to_vec().into())?;
    world.run(20_000)?;
    world.isolate(StoreId(1));
    until(&mut world, "that store 1 steps down", |world| world.leader(G).is_none())?;
    world.machines.get_mut(&StoreId(2)).unwrap().watch.dark = false;
    world.heal();
    world.isolate(StoreId(3));
    world.input(StoreId(2), Input::Campaign { group: G })?;
    world.ticks(60)
}

/// A follower promises, and forgets it.
fn forgets_a_promise(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = three(seed, sabotage)?;
    led(&mut world)?;
    world.ticks(5)?;
    for (from, to) in [(1, 2), (2, 1)] {
        world.cut(from, to);
    }
    stall(&mut world, 3);
    world.ticks(45)?;
    lose_and_crash(&mut world, 3);
    world.isolate(StoreId(1));
    world.run(10_000)?;
    start(&mut world, 3);
    world.input(StoreId(2), Input::Campaign { group: G })?;
    world.ticks(30)
}

/// The schedule of design 4a.3: the new voters have promised less than was served.
fn leaves_a_joint_configuration(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = World::new(seed, 5, sabotage, honest);
    world.found(G, &[1, 2, 3])?;
    for store in [4, 5] {
        world.machines.get_mut(&StoreId(store)).unwrap().watch.offset_us -= 2_000_000;
    }
    led(&mut world)?;
    for (replica, store) in [(4, 4), (5, 5)] {
        let member = Member { replica: ReplicaId(replica), store: StoreId(store) };
        world.change(G, vec![Change::AddLearner(member)])?;
        world.ticks(15)?;
    }
    let (promote, remove) = (|r| Change::Promote(ReplicaId(r)), |r| Change::Remove(ReplicaId(r)));
    world.change(G, vec![promote(4), promote(5), remove(2), remove(3)])?;
    let voters = |world: &World| {
        let status = world.machines[&StoreId(1)].replicas.as_ref().unwrap().status(G).unwrap();
        (
            status.members.voters.len(),
            status.members.outgoing.len(),
            status.members.voters.iter().any(|v| v.store.0 == 5),
        )
    };
    until(&mut world, "the new voters", |world| voters(world) == (3, 0, true))?;
    // The new voters know it, too.
    world.run(5_000)?;
    world.isolate(StoreId(1));
    world.ticks(80)
}

/// Handing over from a clock that is ahead to one that is behind.
fn hands_over_to_a_late_clock(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = three(seed, sabotage)?;
    world.machines.get_mut(&StoreId(1)).unwrap().watch.offset_us += 600_000;
    led(&mut world)?;
    world.ticks(5)?;
    let _ = world.propose(StoreId(1), G, b"a".to_vec().into())?;
    world.transfer(G, StoreId(2))?;
    let _ = until(&mut world, "a lease at store 2", |world| lease(world, 2).is_some());
    let _ = world.propose(StoreId(2), G, b"b".to_vec().into())?;
    world.ticks(3)
}

/// A follower sleeps on while the others have woken; the word of the leader's store reaches it before anything else.
fn sleeps_on(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = three(seed * 2 + 1, sabotage)?;
    led(&mut world)?;
    for round in 0..40 {
        until(&mut world, "sleep", |world| {
            world.machines.values().all(|m| m.replicas.as_ref().is_some_and(|replicas| replicas.awake() == 0))
        })?;
        world.ticks(4 + round % 3)?;
        world.cut(1, 3);
        let _ = world.propose(StoreId(1), G, b"a".to_vec().into())?;
        world.run(400_000 + 13_000 * round)?;
        world.heal();
        world.ticks(3)?;
    }
    Ok(())
}

/// Three members under a leader, and two learners that could take the place of two of them.
fn with_learners(seed: u64, sabotage: &Sabotage) -> Result<World, String> {
    let mut world = World::new(seed, 5, sabotage, honest);
    world.found(G, &[1, 2, 3])?;
    led(&mut world)?;
    for (replica, store) in [(4, 4), (5, 5)] {
        let member = Member { replica: ReplicaId(replica), store: StoreId(store) };
        world.change(G, vec![Change::AddLearner(member)])?;
        world.ticks(15)?;
    }
    Ok(world)
}

/// One that missed how its group moved away asks one that was removed for its vote: the two were a majority once.
fn asks_the_removed(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = with_learners(seed, sabotage)?;
    world.isolate(StoreId(3));
    let (promote, remove) = (|r| Change::Promote(ReplicaId(r)), |r| Change::Remove(ReplicaId(r)));
    world.change(G, vec![promote(4), promote(5), remove(2), remove(3)])?;
    let has = |world: &World, store| {
        world.machines[&StoreId(store)].replicas.as_ref().is_some_and(|replicas| replicas.status(G).is_some())
    };
    until(&mut world, "the removal at store 2", |world| !has(world, 2))?;
    world.heal();
    for store in [1, 4, 5] {
        world.cut(store, 3);
        world.cut(3, store);
    }
    world.ticks(80)?;
    let _ = world.propose(StoreId(1), G, b"a".to_vec().into())?;
    world.ticks(20)
}

/// A leader removes itself, and is not heard of any more when the others have that in their logs; another old member dies for good.
fn removes_itself(seed: u64, sabotage: &Sabotage) -> Verdict {
    let mut world = with_learners(seed, sabotage)?;
    let status = |world: &World| world.machines[&StoreId(1)].replicas.as_ref().and_then(|r| r.status(G));
    let (promote, remove) = (|r| Change::Promote(ReplicaId(r)), |r| Change::Remove(ReplicaId(r)));
    world.change(G, vec![promote(4), promote(5), remove(1), remove(3)])?;
    let is_joint = |world: &World| status(world).is_some_and(|status| !status.members.outgoing.is_empty());
    until(&mut world, "both configurations", is_joint)?;
    let last = status(&world).map(|status| status.last);
    until(&mut world, "the entry that leaves them", |world| status(world).map(|status| status.last) > last)?;
    for store in [2, 4, 5] {
        world.cut(1, store);
    }
    world.crash(StoreId(3));
    until(&mut world, "the removal at store 1", |world| !is_joint(world))?;
    world.run(20_000)?;
    world.heal();
    let led = |world: &World| [2, 4, 5].into_iter().any(|store| lease(world, store).is_some());
    until(&mut world, "a leader", led).map_err(|_| "the members that are left never have a leader")?;
    // And then it goes.
    until(&mut world, "the end of the removed one", |world| status(world).is_none())
}

/// A store dies while two groups of one leader have to copy for it; then both get a learner elsewhere.
fn copies_while_one_is_dead(seed: u64, sabotage: &Sabotage) -> Verdict {
    const TWO: GroupId = GroupId(2);
    let mut world = World::new(seed, 4, sabotage, honest);
    (world.weather.latency_us, world.weather.sync_us) = ((500, 1500), (300, 900));
    let leads = |world: &World, group| world.machines[&StoreId(1)].replicas.as_ref().and_then(|r| r.lease(group));
    for group in [G, TWO] {
        world.found(group, &[1, 2, 3])?;
        world.input(StoreId(1), Input::Campaign { group })?;
        until(&mut world, "a lease at store 1", |world| leads(world, group).is_some())?;
    }
    world.ticks(3)?;
    world.isolate(StoreId(3));
    for group in [G, TWO] {
        let _ = world.propose(StoreId(1), group, b"a".to_vec().into())?;
        world.run(20_000)?;
        world.truncate(StoreId(1), group)?;
    }
    world.heal();
    until(&mut world, "the first copy", |world| !world.machines[&StoreId(3)].staged.is_empty())?;
    world.crash(StoreId(3));
    for group in [G, TWO] {
        let member = Member { replica: ReplicaId(4), store: StoreId(4) };
        world.change(group, vec![Change::AddLearner(member)])?;
    }
    let copied = |world: &World| [G, TWO].iter().all(|group| world.machines[&StoreId(4)].apps.contains_key(group));
    // Twice the wait for who had begun to answer, and what a new replica needs.
    for _ in 0..60 {
        if copied(&world) {
            // Once it is back it is copied for.
            start(&mut world, 3);
            let applied = |world: &World, store| [G, TWO].map(|g| world.machines[&StoreId(store)].apps[&g].applied);
            return until(&mut world, "the copies of store 3", |world| applied(world, 3) == applied(world, 1));
        }
        world.ticks(1)?;
    }
    Err("copies for others wait behind those for a dead store".into())
}

/// A member's state says that it applied a change of the members; the power failed before the record of that was on its disk. The entry is in its log, and it knows its members.
#[test]
fn members_are_recalled_after_a_restart() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, 4, &Sabotage::default(), honest);
        (world.weather.latency_us, world.weather.sync_us) = ((500, 1500), (300, 900));
        world.found(G, &[1, 2, 3]).unwrap();
        led(&mut world).unwrap();
        world.ticks(5).unwrap();
        let members = |world: &World| {
            let status = world.machines[&StoreId(2)].replicas.as_ref().unwrap().status(G).unwrap();
            (status.members.learners.len(), status.applied)
        };
        let (_, before) = members(&world);
        let member = Member { replica: ReplicaId(4), store: StoreId(4) };
        world.change(G, vec![Change::AddLearner(member)]).unwrap();
        while members(&world).1 == before {
            world.run(50).unwrap();
        }
        // Its state is flushed, what it gave out as records is not.
        world.truncate(StoreId(2), G).unwrap();
        lose_and_crash(&mut world, 2);
        start(&mut world, 2);
        assert_eq!(members(&world).0, 1, "seed {seed}");
        world.ticks(20).unwrap();
        assert_eq!(members(&world).0, 1, "seed {seed}");
    }
}

/// What a leader was promised ends with it: its store promises itself more and more for others, and the vote of one that led long ago carried that.
#[test]
fn who_led_long_ago_delays_no_election() {
    for (seed, restarts) in (0..SEEDS).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut world = three(seed, &Sabotage::default()).unwrap();
        led(&mut world).unwrap();
        world.isolate(StoreId(1));
        let others = |world: &World| [2, 3].into_iter().find(|store| lease(world, *store).is_some());
        until(&mut world, "another leader", |world| others(world).is_some()).unwrap();
        if restarts {
            world.crash(StoreId(1));
            start(&mut world, 1);
        }
        world.heal();
        world.ticks(50).unwrap();
        let Some(leads) = others(&world) else { panic!("seed {seed}: nobody leads") };
        world.crash(StoreId(leads));
        let since_us = world.now_us;
        let left = |world: &World| [1, 2, 3].into_iter().any(|store| store != leads && lease(world, store).is_some());
        until(&mut world, "a third leader", |world| left(world)).unwrap();
        let promise_us = world.machines[&StoreId(1)].options.promise_us;
        let took_us = world.now_us - since_us;
        assert!(took_us < promise_us + 1_500_000, "seed {seed}: {took_us} us, restarted: {restarts}");
    }
}

type Schedule = fn(u64, &Sabotage) -> Verdict;

fn holds_and_is_caught(schedule: Schedule, breaks: impl Fn(&mut Sabotage)) {
    let mut sabotage = Sabotage::default();
    for seed in 0..SEEDS {
        schedule(seed, &sabotage).unwrap_or_else(|why| panic!("with all rules kept, seed {seed}: {why}"));
    }
    breaks(&mut sabotage);
    let caught = (0..SEEDS).find_map(|seed| {
        let result = catch_unwind(AssertUnwindSafe(|| schedule(seed, &sabotage)));
        match result {
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some((seed, why)),
            Err(_) => Some((seed, "an assertion".into())),
        }
    });
    let (seed, why) = caught.unwrap_or_else(|| panic!("not caught within {SEEDS} seeds"));
    assert!(!why.starts_with("stuck"), "seed {seed}: {why}");
    println!("seed {seed}: {why}");
}

macro_rules! controls {
    ($($rule:ident: $schedule:ident),* $(,)?) => {
        $(
            #[test]
            fn $rule() {
                holds_and_is_caught($schedule, |sabotage| sabotage.$rule = true);
            }
        )*
    };
}

controls! {
    vote_before_durable: votes_twice,
    ack_before_durable: forgets_an_entry,
    vote_without_ends: serves_to_the_end,
    winner_does_not_ratchet: serves_to_the_end,
    keep_epoch: extends_to_the_deposed,
    forget_the_own_lease: votes_after_it_led,
    leave_joint_early: leaves_a_joint_configuration,
    promise_before_durable: forgets_a_promise,
    forget_the_woken: sleeps_on,
    stamp_below_the_log: hands_over_to_a_late_clock,
    raise_the_removed: asks_the_removed,
    leave_at_once: removes_itself,
    copy_for_the_silent: copies_while_one_is_dead,
}

/// The seeded runs notice by themselves what they meet often.
#[test]
fn the_seeded_runs_notice() {
    let sabotage = Sabotage { winner_does_not_ratchet: true, ..Sabotage::default() };
    let caught = (0..20).find_map(|seed| runs::run(seed, &sabotage, 400).err());
    assert!(caught.is_some(), "not caught within 20 seeds");
    let sabotage = Sabotage { vote_without_ends: true, ..Sabotage::default() };
    let caught = (0..20).find_map(|seed| runs::run(seed, &sabotage, 400).err());
    assert!(caught.is_some(), "not caught within 20 seeds");
}

//! Engines that fall behind: whoever writes is held back, and memory is not filled.

use super::client::{Txn, pairs, set, value};
use super::world::{World, founding};
use node::TxnError;
use node::cluster::LogLimits;
use std::cell::Cell;
use std::rc::Rc;
use store::VersionsConfig;

/// A layer is full with so many bytes; six of them are all that memory is meant for.
const LAYER_BYTES: usize = 16 << 10;
const MEANT_BYTES: usize = 6 * LAYER_BYTES;
/// What may be on its way when a node finds that it is crowded: a few transactions.
const ON_ITS_WAY_BYTES: usize = 64 << 10;
const WRITTEN_BYTES: usize = 4 << 10;
/// What a leader may have proposed that is not committed: a few transactions.
const UNCOMMITTED_BYTES: u64 = 8000;

fn world(seed: u64, holds: bool) -> World {
    with_ranges(seed, holds, &[""])
}

fn with_ranges(seed: u64, holds: bool, starts: &[&str]) -> World {
    with_limits(seed, holds, starts, LogLimits::default())
}

fn with_limits(seed: u64, holds: bool, starts: &[&str], limits: LogLimits) -> World {
    let limits = LogLimits {
        entry_bytes: 2000,
        part_bytes: 500,
        entries_kept: 10_000,
        uncommitted_bytes: UNCOMMITTED_BYTES,
        ..limits
    };
    let versions = VersionsConfig { freeze_bytes: LAYER_BYTES, ..VersionsConfig::default() };
    let prepare: fn(&node::Sabotage) = match holds {
        true => |_| {},
        false => |sabotage| sabotage.set_take_when_crowded(true),
    };
    let mut w = World::stored(seed, 3, founding(starts, &[1, 2, 3]), prepare, limits, versions);
    w.await_leader(1);
    w
}

fn overlay_bytes(w: &World, node: u32) -> usize {
    w.member(node).versions().overlay_bytes()
}

/// Writes rows one after the other, each in a transaction, with so many bytes; counts what was done, and what was certainly not.
fn write(w: &mut World, node: u32, count: usize, bytes: usize) -> Rc<Cell<(usize, usize)>> {
    let done = Rc::new(Cell::new((0, 0)));
    let counted = done.clone();
    w.spawn(node, move |env| {
        Box::pin(async move {
            for n in 0..count {
                loop {
                    let mut txn = Txn::begin(&env).unwrap();
                    txn.put(&format!("row{n:04}"), format!("{n}:{}", "x".repeat(bytes)));
                    let (written, refused) = counted.get();
                    match txn.commit().await {
                        Ok(_) => {
                            counted.set((written + 1, refused));
                            break;
                        }
                        // (Written twice it is the same.)
                        Err(TxnError::Restart { .. } | TxnError::Unavailable { .. } | TxnError::CommitUnknown) => {
                            counted.set((written, refused + 1));
                        }
                        Err(other) => panic!("row {n}: {other}"),
                    }
                }
            }
        })
    });
    done
}

/// All nodes but these write to their engines what is due.
fn run_and_flush(w: &mut World, but: &[u32], seconds: u64) {
    for _ in 0..10 * seconds {
        w.run(100_000);
        for node in (1..=3).filter(|node| !but.contains(node)) {
            if w.member(node).versions().freeze_due() {
                w.flush(node);
            }
        }
    }
}

/// One whose memory is bounded by what layers are meant for, while somebody elsewhere writes as much as he can.
fn of_a_leader(holds: bool, bytes: usize) -> (usize, usize) {
    let mut w = world(1, holds);
    let leader = w.leader(1).unwrap();
    let gateway = leader % 3 + 1;
    let count = 2 * MEANT_BYTES / bytes;
    let done = write(&mut w, gateway, count, bytes);
    run_and_flush(&mut w, &[leader], 60);
    let (held, (written, _)) = (overlay_bytes(&w, leader), done.get());
    if holds {
        assert!(w.member(leader).counters().commands_put_off.get() > 0);
    }
    // Its engine is back.
    run_and_flush(&mut w, &[], 60);
    assert_eq!((done.get().0, w.jobs()), (count, 0), "the writer goes on");
    let (node, last) = (leader, count - 1);
    let all = w.ask(node, async |env| Txn::begin(&env).unwrap().scan("row", "rox", false).await.unwrap());
    assert!(all.len() == count && all[last].1.starts_with(&format!("{last}:")), "all is there, once");
    w.run(3_000_000);
    w.check_replicas();
    (held, written)
}

#[test]
fn a_leader_whose_engine_falls_behind_holds_writers_elsewhere_back() {
    // Small ones, and such as come in parts.
    for bytes in [1000, WRITTEN_BYTES] {
        let (held, _) = of_a_leader(true, bytes);
        assert!(held < MEANT_BYTES + ON_ITS_WAY_BYTES, "{held} bytes of rows of {bytes}");
    }
}

/// A negative control.
#[test]
fn a_leader_who_takes_what_comes_fills_its_memory() {
    for bytes in [1000, WRITTEN_BYTES] {
        let (held, _) = of_a_leader(false, bytes);
        assert!(held > MEANT_BYTES + ON_ITS_WAY_BYTES, "{held} bytes of rows of {bytes}");
    }
}

/// What has not been decided, as a leader puts its parts off, can be ended, and was not done.
#[test]
fn a_commit_whose_parts_wait_for_an_engine_can_be_ended() {
    let mut w = world(3, true);
    let leader = w.leader(1).unwrap();
    let gateway = leader % 3 + 1;
    write(&mut w, gateway, 2 * MEANT_BYTES / WRITTEN_BYTES, WRITTEN_BYTES);
    run_and_flush(&mut w, &[leader], 10);
    let put_off = w.member(leader).counters().commands_put_off.get();
    assert!(put_off > 0);
    let (env, waker) = (w.env(gateway), std::task::Waker::noop());
    let mut txn = Txn::begin(&env).unwrap();
    txn.put("large", "x".repeat(WRITTEN_BYTES));
    for _ in 0..20 {
        assert!(txn.txn.commit(&env.now(), waker).is_pending());
        w.drain(gateway);
        w.run(100_000);
    }
    assert!(txn.txn.give_up_parts(), "its parts wait");
    assert!(!txn.txn.give_up_parts(), "it is over");
    w.drain(gateway);
    run_and_flush(&mut w, &[], 60);
    assert_eq!(w.ask(leader, async |env| value(env, "large").await), None);
    // Nor does anything of it stand in the way.
    w.ask(leader, async |env| super::client::set(env, super::client::pairs(&[("large", "other")])).await);
    w.check_replicas();
}

fn of_a_follower(holds: bool) -> usize {
    let mut w = world(2, holds);
    let leader = w.leader(1).unwrap();
    let (gateway, slow) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    let count = 3 * MEANT_BYTES / WRITTEN_BYTES;
    let done = write(&mut w, gateway, count, WRITTEN_BYTES);
    w.holds_flushes.insert(slow);
    run_and_flush(&mut w, &[slow], 60);
    assert_eq!(done.get(), (count, 0), "nobody waits for one of three");
    let held = overlay_bytes(&w, slow);
    w.holds_flushes.clear();
    run_and_flush(&mut w, &[], 30);
    assert!(w.ask(slow, async |env| value(env, "row0000").await.is_some()));
    w.check_replicas();
    let applied = |node| w.member(node).digest(node::RangeId(1)).unwrap().0;
    assert_eq!(applied(slow), applied(leader), "it has caught up");
    held
}

#[test]
fn a_follower_whose_engine_falls_behind_takes_no_more_and_catches_up() {
    let held = of_a_follower(true);
    assert!(held < MEANT_BYTES + ON_ITS_WAY_BYTES, "{held}");
}

/// A negative control.
#[test]
fn a_follower_that_takes_what_comes_fills_its_memory() {
    let held = of_a_follower(false);
    assert!(held > MEANT_BYTES + ON_ITS_WAY_BYTES, "{held}");
}

/// The log is written again, with less of what is kept for those who lag; but one that puts entries off for the time, and says so, gets them and no copy of the range.
#[test]
fn a_follower_that_takes_no_more_is_sent_entries_afterwards() {
    for (entry_bytes_kept, copies) in [(LogLimits::default().entry_bytes_kept, false), (10_000, true)] {
        let limits = LogLimits { records_kept: 50, carried_bytes: 10_000, entry_bytes_kept, ..LogLimits::default() };
        let mut w = with_limits(2, true, &[""], limits);
        let leader = w.leader(1).unwrap();
        let (gateway, slow) = (leader % 3 + 1, (leader + 1) % 3 + 1);
        let count = 3 * MEANT_BYTES / WRITTEN_BYTES;
        w.holds_flushes.insert(slow);
        let done = write(&mut w, gateway, count, WRITTEN_BYTES);
        run_and_flush(&mut w, &[slow], 30);
        assert_eq!(done.get(), (count, 0));
        w.holds_flushes.clear();
        let applied = |w: &World, node| w.member(node).digest(node::RangeId(1)).unwrap().0;
        let mut left = 300;
        while applied(&w, slow) != applied(&w, leader) {
            left -= 1;
            assert!(left > 0, "it does not catch up, with {entry_bytes_kept} bytes kept");
            w.run(100_000);
            w.flush(slow);
        }
        let installed = w.member(slow).counters().snapshots_installed.get();
        assert_eq!(installed > 0, copies, "{entry_bytes_kept} bytes are kept");
    }
}

/// As `a_follower_that_takes_no_more_is_sent_entries_afterwards`, in three ranges at once: more than there is room for of all together.
#[test]
fn what_is_kept_for_followers_that_take_no_more_is_bounded_over_all_ranges() {
    for (entry_bytes_kept, copies) in [(LogLimits::default().entry_bytes_kept, false), (70_000, true)] {
        let limits = LogLimits { records_kept: 50, carried_bytes: 10_000, entry_bytes_kept, ..LogLimits::default() };
        let mut w = with_limits(2, true, &["", "e", "m"], limits);
        let leader = w.leader(1).unwrap();
        (1..=3).for_each(|range| super::links::lead(&mut w, range, leader));
        let slow = (leader + 1) % 3 + 1;
        // Somewhat less than one range may keep, of each.
        let row = |n: usize| format!("{}{n:04}", ["b", "f", "row"][n % 3]);
        w.holds_flushes.insert(slow);
        for n in 0..3 * 60 {
            w.ask(leader, async move |env| set(env, pairs(&[(&row(n), &"x".repeat(1500))])).await);
            if n % 10 == 9 {
                run_and_flush(&mut w, &[slow], 1);
            }
        }
        w.holds_flushes.clear();
        run_and_flush(&mut w, &[], 30);
        let installed = w.member(slow).counters().snapshots_installed.get();
        assert_eq!(installed > 0, copies, "{entry_bytes_kept} bytes are kept");
        w.check_replicas();
    }
}

/// What an idle range has kept is written again with all else.
#[test]
fn of_an_idle_range_less_is_kept_once_the_log_is_written_again() {
    let limits = LogLimits { records_kept: 200, carried_bytes: 10_000, ..LogLimits::default() };
    let mut w = with_limits(2, true, &["", "m"], limits);
    let leader = w.leader(1).unwrap();
    (1..=2).for_each(|range| super::links::lead(&mut w, range, leader));
    for n in 0..20 {
        w.ask(leader, async move |env| set(env, pairs(&[(&format!("a{n}"), &"x".repeat(1500))])).await);
    }
    w.run(1_000_000);
    w.flush(leader);
    let kept = |w: &World| {
        let status = w.member(leader).status(node::RangeId(1)).unwrap();
        status.applied - status.truncated
    };
    assert!(kept(&w) >= 20, "{}", kept(&w));
    write(&mut w, leader, 3 * MEANT_BYTES / WRITTEN_BYTES, WRITTEN_BYTES);
    run_and_flush(&mut w, &[], 30);
    assert!(kept(&w) <= 10, "{}", kept(&w));
}

/// One that is dead is not waited for: it gets a copy when it is back.
#[test]
fn for_a_follower_that_is_silent_less_is_kept_once_the_log_is_written_again() {
    let limits = LogLimits { records_kept: 50, carried_bytes: 10_000, ..LogLimits::default() };
    let mut w = with_limits(2, true, &[""], limits);
    let leader = w.leader(1).unwrap();
    let (gateway, silent) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    w.crash(silent);
    w.run(5_000_000);
    let count = 3 * MEANT_BYTES / WRITTEN_BYTES;
    let done = write(&mut w, gateway, count, WRITTEN_BYTES);
    run_and_flush(&mut w, &[silent], 30);
    assert_eq!(done.get(), (count, 0));
    let status = w.member(leader).status(node::RangeId(1)).unwrap();
    let kept = status.applied - status.truncated;
    // Entries of 500 bytes, and one or two of what came since the log was written again.
    assert!(kept < 60, "{kept} of {}", status.applied);
    w.start(silent);
    run_and_flush(&mut w, &[], 30);
    assert!(w.member(silent).counters().snapshots_installed.get() > 0);
    w.check_replicas();
}

#[test]
fn two_followers_that_fall_behind_hold_the_writer_back() {
    let mut w = world(3, true);
    let leader = w.leader(1).unwrap();
    let slow = [leader % 3 + 1, (leader + 1) % 3 + 1];
    let count = 3 * MEANT_BYTES / WRITTEN_BYTES;
    w.holds_flushes.extend(slow);
    let done = write(&mut w, leader, count, WRITTEN_BYTES);
    run_and_flush(&mut w, &slow, 20);
    assert!(done.get().0 < count, "it waits");
    for node in 1..=3 {
        let held = overlay_bytes(&w, node);
        assert!(held < MEANT_BYTES + ON_ITS_WAY_BYTES, "n{node} {held}");
    }
    w.holds_flushes.clear();
    run_and_flush(&mut w, &[], 60);
    assert_eq!((done.get().0, w.jobs()), (count, 0));
    w.check_replicas();
}

/// A majority of which one is crowded elects who has everything; that one serves when the other's engine has caught up, and nothing is lost.
#[test]
fn who_is_elected_beside_a_slow_engine_serves_when_that_has_caught_up() {
    let mut w = world(5, true);
    let leader = w.leader(1).unwrap();
    let (complete, slow) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    let count = 3 * MEANT_BYTES / WRITTEN_BYTES;
    let done = write(&mut w, complete, count, WRITTEN_BYTES);
    w.holds_flushes.insert(slow);
    run_and_flush(&mut w, &[slow], 60);
    assert_eq!(done.get(), (count, 0));
    let status = w.member(leader).status(node::RangeId(1)).unwrap();
    assert_eq!(status.complete, [leader.min(complete), leader.max(complete)].map(node::cluster::NodeId));
    w.crash(leader);
    run_and_flush(&mut w, &[slow, leader], 20);
    w.holds_flushes.clear();
    run_and_flush(&mut w, &[leader], 30);
    assert_eq!(w.await_leader(1), complete);
    let all = w.ask(slow, async |env| Txn::begin(&env).unwrap().scan("row", "rox", false).await.unwrap());
    assert_eq!(all.len(), count);
    w.start(leader);
    run_and_flush(&mut w, &[], 10);
    w.check_replicas();
}

/// A transaction of two ranges whose one leader is crowded is refused for certain after a while, or done, and keeps nothing.
#[test]
fn a_commit_of_two_ranges_beside_a_crowded_leader_keeps_nothing() {
    let mut w = with_ranges(6, true, &["", "s"]);
    super::links::lead(&mut w, 1, 1);
    super::links::lead(&mut w, 2, 2);
    write(&mut w, 3, 2 * MEANT_BYTES / WRITTEN_BYTES, WRITTEN_BYTES);
    w.holds_flushes.insert(1);
    run_and_flush(&mut w, &[1], 10);
    assert!(w.member(1).counters().commands_put_off.get() > 0);
    let done = Rc::new(Cell::new((0, 0)));
    let counted = done.clone();
    w.spawn(3, move |env| {
        Box::pin(async move {
            let mut txn = Txn::begin(&env).unwrap();
            txn.put("both", 1);
            txn.put("there", 1);
            match txn.commit().await {
                Ok(_) => counted.set((1, 0)),
                Err(TxnError::Restart { .. }) => counted.set((0, 1)),
                Err(other) => panic!("{other}"),
            }
        })
    });
    run_and_flush(&mut w, &[1], 10);
    assert_eq!(done.get(), (0, 1), "it does not wait for an engine");
    // The other range's key is free, while the engine is as slow as before.
    w.ask(3, async |env| super::client::set(env, super::client::pairs(&[("there", "2")])).await);
    w.holds_flushes.clear();
    run_and_flush(&mut w, &[], 60);
    let prepared = |w: &World, range| {
        (1..=3).map(|node| w.member(node).status(node::RangeId(range)).unwrap().prepared).sum::<usize>()
    };
    assert_eq!([prepared(&w, 1), prepared(&w, 2)], [0, 0]);
    assert_eq!(w.ask(1, async |env| value(env, "both").await), None);
    assert_eq!((w.ask(1, async |env| value(env, "there").await).as_deref(), w.jobs()), (Some("2"), 0));
    w.check_replicas();
}

/// What a node that leads many ranges has in its logs and cannot commit, as both others take nothing, bytes.
fn uncommitted(holds: bool) -> u64 {
    const STARTS: [&str; 6] = ["", "b", "c", "d", "e", "s"];
    let mut w = with_ranges(7, holds, &STARTS);
    (1..=STARTS.len() as u64).for_each(|range| super::links::lead(&mut w, range, 1));
    write(&mut w, 1, 3 * MEANT_BYTES / WRITTEN_BYTES, WRITTEN_BYTES);
    w.holds_flushes.extend([2, 3]);
    for node in [2, 3] {
        // They take nothing, whatever their leader does.
        w.member(node).sabotage().set_take_when_crowded(false);
    }
    run_and_flush(&mut w, &[2, 3], 20);
    // As many writers as one node may have, to all of its ranges.
    for n in 0..60 {
        w.spawn(1, move |env| {
            Box::pin(async move {
                let mut txn = Txn::begin(&env).unwrap();
                txn.put(&format!("{}{n}", STARTS[1 + n % 4]), "x".repeat(1500));
                // Whatever becomes of it.
                let _ = txn.commit().await;
            })
        });
    }
    let mut most = 0;
    for _ in 0..40 {
        w.run(100_000);
        most = w.member(1).uncommitted_bytes().max(most);
    }
    w.holds_flushes.clear();
    run_and_flush(&mut w, &[], 60);
    assert_eq!((w.jobs(), w.member(1).uncommitted_bytes()), (0, 0));
    w.check_replicas();
    most
}

#[test]
fn what_followers_do_not_take_is_bounded_over_all_ranges() {
    let most = uncommitted(true);
    assert!(most > UNCOMMITTED_BYTES / 2 && most <= UNCOMMITTED_BYTES + 2000, "{most}");
    // A negative control.
    let most = uncommitted(false);
    assert!(most > 4 * UNCOMMITTED_BYTES, "{most}");
}

/// What frees space comes through.
#[test]
fn with_a_full_disk_nobody_waits_for_the_engine() {
    let mut w = world(4, true);
    let leader = w.leader(1).unwrap();
    (1..=3).for_each(|node| w.member(node).tell_disk_full(true));
    let count = 2 * MEANT_BYTES / WRITTEN_BYTES;
    let done = write(&mut w, leader, count, WRITTEN_BYTES);
    run_and_flush(&mut w, &[1, 2, 3], 20);
    assert_eq!(done.get(), (count, 0));
    w.check_replicas();
}

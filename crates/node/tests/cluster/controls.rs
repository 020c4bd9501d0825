//! Rules broken on purpose: the bank must notice each within the stated number of seeds.

use super::bank::{Trouble, run};
use super::world::Prepare;

#[track_caller]
fn is_caught(what: &str, seeds: u64, prepare: Prepare) {
    is_caught_in(&Trouble::all(), what, seeds, prepare);
}

#[track_caller]
fn is_caught_in(trouble: &Trouble, what: &str, seeds: u64, prepare: Prepare) {
    for seed in 0..seeds {
        let (_, notes) = run(seed, 3, trouble, prepare);
        if let Some(wrong) = notes.wrong.first() {
            eprintln!("{what}: seed {seed}: {wrong}");
            return;
        }
    }
    panic!("{what}: not noticed in {seeds} seeds");
}

#[test]
fn readers_that_do_not_wait_for_what_is_in_flight_are_noticed() {
    is_caught("ignore_inflight", 10, |sabotage| sabotage.set_ignore_inflight(true));
}

/// `node::cluster::transaction::ahead`, invariant 2.
#[test]
fn answers_that_were_asked_for_at_another_snapshot_are_noticed() {
    is_caught("ahead_at_any_snapshot", 20, |sabotage| sabotage.set_ahead_at_any_snapshot(true));
}

/// `node::cluster::transaction::spans_ahead`, invariant 1.
#[test]
fn chunks_that_were_asked_for_at_another_snapshot_are_noticed() {
    is_caught("spans_at_any_snapshot", 20, |sabotage| sabotage.set_spans_at_any_snapshot(true));
}

#[test]
fn commits_that_are_acknowledged_before_they_are_durable_are_noticed() {
    is_caught("ack_before_durable", 10, |sabotage| sabotage.set_ack_before_durable(true));
}

#[test]
fn recoverers_that_abort_what_all_prepared_are_noticed() {
    is_caught("abort_prepared", 150, |sabotage| sabotage.set_abort_prepared(true));
}

#[test]
fn lost_updates_are_noticed() {
    is_caught("skip_write_certification", 10, |sabotage| {
        sabotage.set_skip_write_certification(true);
        sabotage.set_skip_read_certification(true);
    });
}

/// `node::cluster`, staging: a commit without some of its parts.
#[test]
fn commits_without_their_parts_are_noticed() {
    let trouble = Trouble { parts: true, ..Trouble::all() };
    is_caught_in(&trouble, "commit_unstaged", 10, |sabotage| sabotage.set_commit_unstaged(true));
}

/// `protocol::txn::ahead`, invariant 1.
#[test]
fn what_is_written_beside_parts_and_not_noted_is_noticed() {
    let trouble = Trouble { parts: true, ..Trouble::all() };
    // A replica that asks at the command, as after a restart, comes to another verdict than one that looked ahead.
    let differs = |panic: Box<dyn std::any::Any + Send>| {
        panic.downcast_ref::<String>().is_some_and(|why| why.contains("differs on"))
    };
    let noticed = (0..20).any(|seed| {
        let prepare: Prepare = |sabotage| sabotage.set_overlook_what_came_since(true);
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, 3, &trouble, prepare).1));
        run.map_or_else(differs, |notes| !notes.wrong.is_empty())
    });
    assert!(noticed);
}

/// Design 4a.1.
#[test]
fn copies_that_are_done_again_are_noticed() {
    is_caught("propose_copies", 40, |sabotage| {
        sabotage.set_propose_copies(true);
        sabotage.set_without_until(true);
    });
}

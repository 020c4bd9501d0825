//! The simulator itself: one seed, one trace; good nodes pass; a node with one rule broken is caught.

use checker::Anomaly;
use sim::{Blind, Controls, Prepare, Report, run};
use store::versions::Sabotage;

#[test]
fn one_seed_twice_gives_one_trace() {
    for seed in [3, 10] {
        let (first, second) = (run(seed, Controls::default()), run(seed, Controls::default()));
        assert_eq!(first.hash, second.hash);
        assert_eq!(first.probes, second.probes);
    }
    assert_ne!(run(3, Controls::default()).hash, run(4, Controls::default()).hash);
}

#[test]
fn seeds_are_good() {
    for seed in 1000..1012 {
        let report = run(seed, Controls::default());
        assert!(report.is_good(), "{:?}\n{}repeat: cargo x sim --seed {seed}", report.failure, report.verdict);
    }
}

/// Runs seeds until one is caught; the seeds to try are few, so the checker has to be sharp.
#[track_caller]
fn caught(prepare: Prepare, tries: u64) -> Report {
    caught_with(Controls { prepare: Some(prepare), ..Controls::default() }, tries)
}

#[track_caller]
fn caught_with(controls: Controls, tries: u64) -> Report {
    for seed in 0..tries {
        let report = run(seed, controls);
        if !report.is_good() {
            // What is caught is the broken rule and nothing else: the same seed keeps every promise with the rule whole.
            let whole = run(seed, Controls::default());
            assert!(whole.is_good(), "seed {seed} fails with no rule broken: {:?} {}", whole.failure, whole.verdict);
            return report;
        }
    }
    panic!("the broken rule was not noticed in {tries} seeds");
}

/// Asserts that a broken rule was caught by what it breaks: the checker found one of these, and nothing stopped the run before.
#[track_caller]
fn shows(report: &Report, anomalies: &[Anomaly]) {
    let shown = report.failure.is_none() && anomalies.iter().any(|kind| report.verdict.has(*kind));
    assert!(shown, "seed {}: expected one of {anomalies:?}: {:?}\n{}", report.seed, report.failure, report.verdict);
}

/// Asserts that the run was stopped for this reason.
#[track_caller]
fn stopped(report: &Report, why: &str) {
    let failure = report.failure.as_deref().unwrap_or("nothing stopped it");
    assert!(failure.contains(why), "seed {}: expected \"{why}\": {failure}\n{}", report.seed, report.verdict);
}

#[test]
fn skipped_read_certification_is_caught() {
    let report = caught(|node| node.sabotage().set_skip_read_certification(true), 20);
    shows(&report, &[Anomaly::GSingle, Anomaly::G2]);
}

/// Whoever refers to a row must find it at the commit, not only when it looked.
#[test]
fn forgotten_references_are_caught() {
    let report = caught(|node| node.sabotage().set_forget_references(true), 100);
    stopped(&report, "a parent that is not there");
}

/// Whoever deletes a row has looked who refers to it, and nobody may since.
#[test]
fn keys_that_are_deleted_under_a_reference_are_caught() {
    let report = caught(|node| node.sabotage().set_forget_who_refers(true), 200);
    stopped(&report, "its child refers to it");
}

#[test]
fn skipped_write_certification_is_caught() {
    let report = caught(|node| node.sabotage().set_skip_write_certification(true), 20);
    shows(&report, &[Anomaly::LostUpdate]);
}

#[test]
fn acknowledgement_before_the_sync_is_caught() {
    let report = caught(|node| node.sabotage().set_ack_before_durable(true), 20);
    shows(&report, &[Anomaly::LostWrite]);
}

#[test]
fn readers_that_do_not_wait_for_writes_in_flight_are_caught() {
    let report = caught(|node| node.sabotage().set_ignore_inflight(true), 20);
    shows(&report, &[Anomaly::TornSnapshot]);
}

#[test]
fn a_skipped_rule_one_is_caught() {
    let report = caught(|node| node.sabotage().set_skip_rule_one(true), 60);
    shows(&report, &[Anomaly::RealTime]);
}

#[test]
fn a_prepared_transaction_that_is_aborted_is_caught() {
    let report = caught(|node| node.sabotage().set_abort_prepared(true), 200);
    shows(&report, &[Anomaly::LostWrite, Anomaly::HalfApplied]);
}

/// What is kept longer than the rest must not go with it, and what is kept shorter must not be read as if it were there.
#[test]
fn classes_that_forget_alike_are_caught() {
    let report = caught_with(Controls { store: Some(Sabotage::ClassesAgeAlike), ..Controls::default() }, 200);
    shows(&report, &[Anomaly::TornSnapshot, Anomaly::LostWrite, Anomaly::HalfApplied]);
}

/// A tracker that is not told of an event gives readings that miss true time.
#[test]
fn a_tracker_that_overlooks_something_is_caught() {
    for blind in [Blind::Steps, Blind::Sleeps, Blind::Moves, Blind::Leaps, Blind::Slews, Blind::Mixes] {
        let report = caught_with(Controls { blind: Some(blind), ..Controls::default() }, 200);
        stopped(&report, "outside of the trusted reading");
    }
}

/// Readers that are still there while a node stops must not read beyond what it says it promised.
#[test]
fn snapshots_by_a_lease_that_was_given_back_are_caught() {
    let report = caught(|node| node.sabotage().set_serve_after_release(true), 400);
    shows(&report, &[Anomaly::TornSnapshot]);
}

/// Who gives up a commit that waits to be shown must not hear that nothing happened.
#[test]
fn a_commit_that_is_denied_is_caught() {
    let report = caught(|node| node.sabotage().set_deny_commits(true), 400);
    shows(&report, &[Anomaly::HalfApplied]);
}

#[test]
fn a_past_that_goes_by_a_clock_that_was_set_back_is_caught() {
    let report = caught(|node| node.sabotage().set_ago_by_the_clock(true), 200);
    stopped(&report, "was acknowledged before");
}

#[test]
fn a_node_that_serves_whatever_its_clock_is_worth_is_caught() {
    let report = caught(|node| node.sabotage().set_skip_ladder(true), 60);
    stopped(&report, "a clock that gives no bound");
}

#[test]
fn a_node_that_does_not_hear_its_peers_proofs_is_caught() {
    let report = caught(|node| node.sabotage().set_ignore_proofs(true), 100);
    stopped(&report, "the peers prove the bound wrong");
}

/// The claims of peers, held against readings that claim nothing, fence a node whose bound holds.
#[test]
fn proofs_against_a_reading_that_claims_nothing_are_caught() {
    let report = caught(|node| node.sabotage().set_always_claim(true), 200);
    stopped(&report, "fenced although its bound holds");
}

/// A crash forgets how far the hybrid clock was ratcheted; then something is written below a snapshot that was read.
#[test]
fn snapshots_beyond_the_lease_are_caught() {
    let report = caught(|node| node.sabotage().set_ignore_leases(true), 400);
    shows(&report, &[Anomaly::TornSnapshot]);
}

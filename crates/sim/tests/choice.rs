//! Each mode promises less than the one before it, and costs less: what it does not promise it does not keep, and the checker names it.

use checker::{Anomaly, Recency};
use node::{Consistency, Uncertainty};
use sim::Show;
use sim::nodes::Choice;
use sim::scenario::{Controls, Outcome, find, run};

fn outcome(seed: u64, consistency: Consistency, uncertainty: Uncertainty, judged_as: Recency) -> Outcome {
    let scenario = find("fast/nodes").expect("it is there").remove(0);
    let choice = Some(Choice { consistency, uncertainty, judged_as });
    run(&scenario, seed, &Controls { choice, ..Controls::default() }, Show::Nothing)
}

#[track_caller]
fn shows(consistency: Consistency, own: Recency, promised_by_the_next: Recency, anomaly: Anomaly) {
    const SEEDS: u64 = 10;
    let broken = (0..SEEDS).map(|seed| outcome(seed, consistency, Uncertainty::Dynamic, promised_by_the_next));
    let found = broken.into_iter().find(|outcome| !outcome.is_good());
    let found = found.unwrap_or_else(|| panic!("{consistency:?} kept {promised_by_the_next:?} for {SEEDS} seeds"));
    assert!(found.verdict.has(anomaly), "{consistency:?}: {:?}\n{}", found.failure, found.verdict);
    let kept = outcome(found.seed, consistency, Uncertainty::Dynamic, own);
    assert!(kept.is_good(), "{consistency:?} breaks its own promise: {:?}\n{}", kept.failure, kept.verdict);
}

#[test]
fn strict_keeps_the_order_of_real_time() {
    for seed in 0..3 {
        let kept = outcome(seed, Consistency::Strict, Uncertainty::Dynamic, Recency::Strict);
        assert!(kept.is_good(), "{:?}\n{}", kept.failure, kept.verdict);
    }
}

/// The causal reverse of yugabyte#22541, the new enemy of spicedb#41: of two writes to different keys, one acknowledged before the other began, the second stands
/// first.
#[test]
fn hybrid_does_not_order_what_only_clients_know() {
    shows(Consistency::Hybrid, Recency::Hybrid, Recency::Strict, Anomaly::RealTime);
}

#[test]
fn token_does_not_see_what_others_were_told() {
    shows(Consistency::Token, Recency::Token, Recency::Hybrid, Anomaly::StaleRead);
}

#[test]
fn none_does_not_see_what_its_own_session_saw() {
    shows(Consistency::None, Recency::Any, Recency::Token, Anomaly::Session);
}

/// 000, section 2.5: a static offset makes restarts that a measured bound spares. What is necessary does not depend on it.
#[test]
fn a_static_offset_restarts_more_than_a_measured_bound() {
    let restarts = |uncertainty| {
        let outcomes: Vec<Outcome> =
            (0..4).map(|seed| outcome(seed, Consistency::Hybrid, uncertainty, Recency::Hybrid)).collect();
        for outcome in &outcomes {
            assert!(outcome.is_good(), "{uncertainty:?}: {:?}\n{}", outcome.failure, outcome.verdict);
        }
        let sum = |probe: &'static str| outcomes.iter().map(|outcome| outcome.probes.count(probe)).sum::<u64>();
        (sum("an uncertainty restart was necessary"), sum("an uncertainty restart was not necessary"))
    };
    let (dynamic, fixed) = (restarts(Uncertainty::Dynamic), restarts(Uncertainty::Static(500_000)));
    eprintln!("restarts, necessary and not: by the bound {dynamic:?}, by 500 ms {fixed:?}");
    assert!(fixed.1 > dynamic.1, "{fixed:?} {dynamic:?}");
}

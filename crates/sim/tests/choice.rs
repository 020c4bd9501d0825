//! Each mode promises less than the one before it, and costs less: what it does not promise it does not keep, and the checker names it.

use checker::{Anomaly, Recency};
use node::{Consistency, Sabotage, Uncertainty};
use sim::Show;
use sim::nodes::Choice;
use sim::scenario::{Controls, Outcome, find, run};

/// Each clock of these runs may be 600 ms from the truth (`Trouble::Accuracy`), so two of them twice that: what a static offset has to cover.
const OFFSET_US: u64 = 1_300_000;
/// Runs of a liar that are looked at, however soon one of them shows all.
const LIARS: u64 = 3;
/// Most runs until recency breaks before the liar is proved wrong: four of thirty do.
const LIARS_MAX: u64 = 60;

fn chosen(seed: u64, choice: Choice) -> Outcome {
    let scenario = find("fast/nodes").expect("it is there").remove(0);
    run(&scenario, seed, &Controls { choice: Some(choice), ..Controls::default() }, Show::Nothing)
}

fn outcome(seed: u64, consistency: Consistency, uncertainty: Uncertainty, judged_as: Recency) -> Outcome {
    chosen(seed, Choice { consistency, uncertainty, stale: false, judged_as })
}

#[track_caller]
fn shows(consistency: Consistency, own: Recency, promised_by_the_next: Recency, anomaly: Anomaly) {
    let of = |judged_as| Choice { consistency, uncertainty: Uncertainty::Dynamic, stale: false, judged_as };
    breaks(of(promised_by_the_next), anomaly, of(own));
}

/// In some run it breaks the promise of another, and the checker names it; its own it keeps in the same run.
#[track_caller]
fn breaks(anothers: Choice, anomaly: Anomaly, own: Choice) {
    const SEEDS: u64 = 40;
    let found = (0..SEEDS).map(|seed| chosen(seed, anothers)).find(|outcome| !outcome.is_good());
    let found = found.unwrap_or_else(|| panic!("{anothers:?}: kept for {SEEDS} seeds"));
    assert!(found.verdict.has(anomaly), "{anothers:?}: {:?}\n{}", found.failure, found.verdict);
    let kept = chosen(found.seed, own);
    assert!(kept.is_good(), "{own:?} breaks its own promise: {:?}\n{}", kept.failure, kept.verdict);
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

/// It reads the past, as fresh as it is here: not what was acknowledged a moment ago, to whomever. What its own session saw and wrote it sees.
#[test]
fn stale_does_not_see_what_was_just_acknowledged() {
    let judged_as = |judged_as| Choice {
        consistency: Consistency::Token,
        uncertainty: Uncertainty::Dynamic,
        stale: true,
        judged_as,
    };
    breaks(judged_as(Recency::Hybrid), Anomaly::StaleRead, judged_as(Recency::Token));
}

fn of_a_liar(seed: u64, nodes: Option<fn(&Sabotage)>) -> Outcome {
    let scenario = find("fast/nodes-liar").expect("it is there").remove(0);
    run(&scenario, seed, &Controls { nodes, ..Controls::default() }, Show::Nothing)
}

const BROKE: &str = "recency broke with a bound, and was named";
const PROVED: &str = "a liar was proved wrong by its peers";
const FENCED: &str = "fenced_handovers";

/// A bound that lies: isolation holds in every run, its peers prove the liar wrong, and it hands over what it leads, if it leads anything. In some of these runs recency breaks before that,
/// and the checker names it. (That nobody else is proved wrong is looked at wherever a level changes.)
#[test]
fn a_liar_breaks_recency_and_not_isolation_and_is_fenced() {
    let (mut broke, mut fenced) = (false, false);
    for seed in 0..LIARS_MAX {
        if seed >= LIARS && broke && fenced {
            break;
        }
        let outcome = of_a_liar(seed, None);
        assert!(outcome.is_good(), "seed {seed}: {:?}\n{}", outcome.failure, outcome.verdict);
        let names = [Anomaly::StaleRead, Anomaly::RealTime];
        let others: Vec<_> = outcome.recency.found.iter().filter(|(kind, _)| !names.contains(kind)).collect();
        assert!(others.is_empty(), "seed {seed}: {others:?}");
        assert!(outcome.probes.count(PROVED) > 0, "seed {seed}: nobody proved it wrong");
        fenced |= outcome.probes.count(FENCED) > 0;
        broke |= outcome.probes.count(BROKE) > 0;
    }
    assert!(fenced, "it kept what it led in {LIARS_MAX} runs");
    assert!(broke, "recency held in {LIARS_MAX} runs");
}

/// What a node whose clock is not believed leads it keeps, if it is told to: then nothing shows that it was fenced.
#[test]
fn a_liar_that_keeps_what_it_leads_is_seen() {
    let outcome = of_a_liar(1, Some(|s| s.set_keep_when_fenced(true)));
    assert!(outcome.probes.count(PROVED) > 0, "{:?}", outcome.failure);
    assert_eq!(outcome.probes.count(FENCED), 0);
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
    let (dynamic, fixed) = (restarts(Uncertainty::Dynamic), restarts(Uncertainty::Static(OFFSET_US)));
    eprintln!("restarts, necessary and not: by the bound {dynamic:?}, by a static offset {fixed:?}");
    assert!(fixed.1 > dynamic.1, "{fixed:?} {dynamic:?}");
}

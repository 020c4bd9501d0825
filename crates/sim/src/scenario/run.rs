//! One run of a scenario, judged.

use super::{Scenario, What};
use crate::clock::ClockKind;
use crate::cluster::Cluster;
use crate::machine::Failure;
use crate::probes::Probes;
use crate::register::{self, Registers};
use crate::rng::Rng;
use crate::trace::{Show, Trace};
use crate::world::START_NS;
use checker::Verdict;

/// Rules to break in a run: none, unless the simulator itself is tested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controls {
    /// Of registers.
    pub register: register::Controls,
    /// Of one node alone.
    pub alone: crate::world::Controls,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its scenario.
    pub scenario: String,
    /// Its seed.
    pub seed: u64,
    /// The hash of its trace: one seed has one.
    pub hash: u64,
    /// The lines of its trace, where they were kept.
    pub lines: Vec<String>,
    /// What the checker found.
    pub verdict: Verdict,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
    /// Operations that were answered, and all that were asked for.
    pub answered: usize,
    /// See above.
    pub asked: usize,
    /// Searches that were given up: what they would have found is unknown.
    pub undecided: usize,
    /// Events.
    pub events: u64,
    /// Virtual time, nanoseconds.
    pub virtual_ns: u64,
    /// Rare paths.
    pub probes: Probes,
}

impl Outcome {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.failure.is_none() && self.verdict.is_good()
    }

    /// The one command that repeats it.
    pub fn repeat(&self) -> String {
        format!("cargo x sim --scenario {} --seed {} --trace", self.scenario, self.seed)
    }
}

/// Runs a scenario with a seed.
pub fn run(scenario: &Scenario, seed: u64, controls: &Controls, show: Show) -> Outcome {
    match scenario.what {
        What::Alone => alone(scenario, seed, controls, show),
        What::Register => registers(scenario, seed, controls, show),
    }
}

fn alone(scenario: &Scenario, seed: u64, controls: &Controls, show: Show) -> Outcome {
    let report = crate::run::run_shown(seed, controls.alone, show);
    Outcome {
        scenario: scenario.name.clone(),
        seed,
        hash: report.hash,
        lines: report.lines,
        verdict: report.verdict,
        failure: report.failure,
        answered: report.committed,
        asked: report.begun,
        undecided: 0,
        events: report.events,
        virtual_ns: report.virtual_ns,
        probes: report.probes,
    }
}

fn registers(scenario: &Scenario, seed: u64, controls: &Controls, show: Show) -> Outcome {
    let layout = scenario.layout();
    let honest =
        layout.clocks.iter().take(layout.machines).all(|kind| *kind != ClockKind::Lying && *kind != ClockKind::Set);
    let (workload, machines) = (scenario.workload.clone(), scenario.machines);
    let system = Registers::new(workload, machines, seed, controls.register, honest);
    let mut world = Cluster::new(layout, system, Rng::new(seed), Trace::new(START_NS, show));
    let failure = world.run().err().map(|Failure(why)| why);
    let (events, virtual_ns) = world.pace();
    let versions = world.system.versions(&world.bodies());
    let Cluster { system, trace, probes, .. } = world;
    let (mut verdict, mut judged) = (Verdict::default(), register::Judged::default());
    let mut failure = failure;
    if failure.is_some() {
        verdict = system.chronicle.verdict;
    } else {
        judged = system.chronicle.judge(&versions);
        verdict.found.append(&mut judged.verdict.found);
        let percent = scenario.checks.answered_percent;
        if judged.answered * 100 < judged.asked * percent {
            let (answered, asked) = (judged.answered, judged.asked);
            failure = Some(format!("{answered} of {asked} operations were answered, less than {percent} percent"));
        }
    }
    Outcome {
        scenario: scenario.name.clone(),
        seed,
        hash: trace.hash(),
        lines: trace.lines(),
        verdict,
        failure,
        answered: judged.answered,
        asked: judged.asked,
        undecided: judged.undecided,
        events,
        virtual_ns,
        probes,
    }
}

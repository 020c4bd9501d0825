//! One run of a scenario, judged.

use super::{Scenario, What};
use crate::cluster::Cluster;
use crate::machine::Failure;
use crate::nodes::{self, Nodes};
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
    /// Of whole nodes.
    pub nodes: Option<nodes::Prepare>,
    /// How transactions of whole nodes begin, and as what they are judged.
    pub choice: Option<nodes::Choice>,
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
    /// What became of recency where the bounds of clocks are broken.
    pub recency: Verdict,
}

impl Outcome {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.failure.is_none() && self.verdict.is_good()
    }

    /// The one command that repeats it.
    pub fn repeat(&self) -> String {
        repeat(&self.scenario, self.seed)
    }
}

fn repeat(scenario: &str, seed: u64) -> String {
    format!("cargo x sim --scenario {scenario} --seed {seed} --trace")
}

impl Scenario {
    /// The one command that repeats a run of it.
    pub fn repeat(&self, seed: u64) -> String {
        repeat(&self.name, seed)
    }
}

/// Runs a scenario with a seed.
pub fn run(scenario: &Scenario, seed: u64, controls: &Controls, show: Show) -> Outcome {
    match scenario.what {
        What::Alone => alone(scenario, seed, controls, show),
        What::Register => registers(scenario, seed, controls, show),
        What::Nodes => whole_nodes(scenario, seed, controls, show),
    }
}

/// Whether the bounds of all clocks hold.
fn is_honest(scenario: &Scenario) -> bool {
    let clocks = scenario.clocks.iter().take(scenario.machines);
    clocks.into_iter().all(|kind| kind.keeps_its_bound())
}

/// What is wrong where too little was answered.
fn too_little(scenario: &Scenario, answered: usize, asked: usize) -> Option<String> {
    let percent = scenario.checks.answered_percent;
    (answered * 100 < asked * percent)
        .then(|| format!("{answered} of {asked} operations were answered, less than {percent} percent"))
}

fn whole_nodes(scenario: &Scenario, seed: u64, controls: &Controls, show: Show) -> Outcome {
    let (sessions, machines) = (scenario.sessions.clone(), scenario.machines);
    let mut system = Nodes::new(sessions, machines, seed, controls.nodes, is_honest(scenario));
    system.choice = controls.choice;
    system.liars = (0..machines).map(|m| !scenario.clocks[m % scenario.clocks.len()].keeps_its_bound()).collect();
    let mut world = Cluster::new(scenario.layout(), system, Rng::new(seed), Trace::new(START_NS, show));
    let mut failure = world.run().err().map(|Failure(why)| why);
    let (events, virtual_ns) = world.pace();
    let (mut verdict, mut judged) = (Verdict::default(), nodes::Judged::default());
    let chronicle = std::mem::replace(&mut world.system.chronicle, nodes::Chronicle::new(false));
    if failure.is_some() {
        verdict = chronicle.verdict;
    } else {
        let bodies = world.bodies();
        let system = &world.system;
        match chronicle.judge(|key| system.history(&bodies, key), |key| system.collected(&bodies, key)) {
            Ok(found) => judged = found,
            Err(Failure(why)) => failure = Some(why),
        }
        verdict.found.append(&mut judged.verdict.found);
        failure = failure.or_else(|| too_little(scenario, judged.committed, judged.begun));
    }
    world.probes.add("an unknown outcome was settled", judged.unknown as u64);
    world.probes.add("recency broke with a bound, and was named", judged.recency.found.len() as u64);
    let Cluster { trace, probes, .. } = world;
    Outcome {
        scenario: scenario.name.clone(),
        seed,
        hash: trace.hash(),
        lines: trace.lines(),
        verdict,
        failure,
        answered: judged.committed,
        asked: judged.begun,
        undecided: 0,
        events,
        virtual_ns,
        probes,
        recency: judged.recency,
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
        recency: Verdict::default(),
    }
}

fn registers(scenario: &Scenario, seed: u64, controls: &Controls, show: Show) -> Outcome {
    let (layout, honest) = (scenario.layout(), is_honest(scenario));
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
        failure = too_little(scenario, judged.answered, judged.asked);
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
        recency: Verdict::default(),
    }
}

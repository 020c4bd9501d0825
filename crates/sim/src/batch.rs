//! Many runs of one scenario, on all cores: what they gave together, and which of them failed.
//!
//! A run owns its whole world, so runs do not see each other and one seed gives one trace however many run beside it. A run that ends in a panic (an
//! assertion of the product) is a failed run like any other.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command tells its user what it found")]

use crate::probes::{Probes, WANTED};
use crate::scenario::{Controls, Outcome, Scenario, What, run};
use crate::trace::Show;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A batch with so many failed runs ends: more say nothing new.
const FAILURES_MAX: usize = 20;
/// A batch says how far it is every so often.
const TOLD_EVERY: Duration = Duration::from_secs(20);
/// Of a verdict so many lines are shown; the repeat command shows all.
const LINES_MAX: usize = 12;

/// Real time: how fast the simulator runs, and when it should end.
pub struct Watch(Instant);

impl Watch {
    /// Begins.
    pub fn start() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the speed of the simulator itself; no run sees it")]
        Watch(Instant::now())
    }

    fn passed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The seeds.
    pub seeds: Range<u64>,
    /// No run begins after so long.
    pub until: Option<Duration>,
    /// So many at a time.
    pub jobs: usize,
    /// What is shown of each run.
    pub show: Show,
    /// It is one run, of which all is told.
    pub one: bool,
}

/// What many runs gave together.
#[derive(Default)]
struct Sum {
    runs: u64,
    answered: usize,
    asked: usize,
    undecided: usize,
    events: u64,
    virtual_ns: u64,
    probes: Probes,
    /// How each bad run can be repeated.
    failed: Vec<String>,
    told: Duration,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.answered += outcome.answered;
        self.asked += outcome.asked;
        self.undecided += outcome.undecided;
        self.events += outcome.events;
        self.virtual_ns += outcome.virtual_ns;
        self.probes.merge(&outcome.probes);
    }

    fn tell(&self, scenario: &Scenario, real: Duration) {
        let seconds = real.as_secs_f64().max(0.001);
        #[allow(clippy::cast_precision_loss, reason = "shown with few digits")]
        let (events, virtual_s, runs) =
            (self.events as f64 / seconds, self.virtual_ns as f64 / 1e9 / seconds, self.runs as f64 / seconds);
        let verdict = match self.failed.len() {
            0 => format!("{} runs are good", self.runs),
            failed => format!("{failed} of {} runs FAILED", self.runs),
        };
        println!(
            "{}: {verdict} in {seconds:.0} s; {} of {} operations answered; {runs:.1} runs/s, {events:.0} events/s, {virtual_s:.1} virtual seconds per second",
            scenario.name, self.answered, self.asked
        );
        if self.undecided > 0 {
            println!("  {} searches for an order were given up", self.undecided);
        }
        self.failed.iter().for_each(|repeat| println!("  repeat: {repeat}"));
    }

    /// Rare paths that no run reached: those that its kind of run should, and those that the scenario names.
    fn missing(&self, scenario: &Scenario) -> Vec<String> {
        let wanted = if scenario.what == What::Alone { WANTED } else { &[] };
        let named = scenario.checks.reaches.iter().map(String::as_str);
        let missing = wanted.iter().copied().chain(named).filter(|name| self.probes.count(name) == 0);
        missing.map(str::to_owned).collect()
    }

    /// On its way: how far.
    fn tell_progress(&mut self, scenario: &Scenario, batch: &Batch, passed: Duration) {
        if passed < self.told + TOLD_EVERY {
            return;
        }
        self.told = passed;
        let all = batch.seeds.end.saturating_sub(batch.seeds.start);
        let left_s = (all.saturating_sub(self.runs) * passed.as_secs()).checked_div(self.runs).unwrap_or(0);
        let (of, left_s) = match batch.until {
            Some(until) => (String::new(), until.saturating_sub(passed).as_secs()),
            None => (format!(" of {all}"), left_s),
        };
        let failed = self.failed.len();
        eprintln!("{}: {}{of} runs, {failed} failed, some {left_s} s are left", scenario.name, self.runs);
    }
}

fn tell_bad(outcome: &Outcome) {
    println!("{} seed {}: trace {:016x}", outcome.scenario, outcome.seed, outcome.hash);
    if let Some(failure) = &outcome.failure {
        println!("FAILED: {failure}");
    }
    if !outcome.verdict.is_good() {
        println!("FAILED: the checker found");
        let text = outcome.verdict.to_string();
        text.lines().take(LINES_MAX).for_each(|line| println!("{line}"));
    }
    println!("repeat: {}", outcome.repeat());
}

/// One run; `Err`: it ended in a panic, which has told where and why.
fn one(scenario: &Scenario, seed: u64, show: Show) -> Result<Outcome, String> {
    let ran = catch_unwind(AssertUnwindSafe(|| run(scenario, seed, &Controls::default(), show)));
    ran.map_err(|_| scenario.repeat(seed))
}

/// Runs them; gives the commands that repeat the bad ones, and what was reached.
pub fn run_all(scenario: &Scenario, batch: &Batch) -> (Vec<String>, Probes) {
    let watch = Watch::start();
    let (next, bad) = (AtomicU64::new(batch.seeds.start), AtomicUsize::new(0));
    let sum = Mutex::new(Sum::default());
    let work = || {
        while bad.load(SeqCst) < FAILURES_MAX && batch.until.is_none_or(|until| watch.passed() < until) {
            let seed = next.fetch_add(1, SeqCst);
            if seed >= batch.seeds.end {
                break;
            }
            let ran = one(scenario, seed, batch.show.clone());
            let Ok(mut sum) = sum.lock() else { break };
            match ran {
                Ok(outcome) => {
                    sum.add(&outcome);
                    if !outcome.is_good() {
                        bad.fetch_add(1, SeqCst);
                        tell_bad(&outcome);
                        sum.failed.push(outcome.repeat());
                    } else if batch.one {
                        println!("{} seed {seed}: trace {:016x}", scenario.name, outcome.hash);
                    }
                }
                Err(repeat) => {
                    sum.runs += 1;
                    bad.fetch_add(1, SeqCst);
                    println!("{} seed {seed}: FAILED: it panicked\nrepeat: {repeat}", scenario.name);
                    sum.failed.push(repeat);
                }
            }
            sum.tell_progress(scenario, batch, watch.passed());
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..batch.jobs {
            scope.spawn(work);
        }
        work();
    });
    let Ok(sum) = sum.into_inner() else { return (vec![scenario.repeat(batch.seeds.start)], Probes::default()) };
    sum.tell(scenario, watch.passed());
    if sum.failed.len() >= FAILURES_MAX {
        println!("  ended early: {FAILURES_MAX} failed");
    }
    if batch.one || sum.runs > 20 || batch.until.is_some() {
        sum.probes.all().for_each(|(name, times)| println!("{times:>9} {name}"));
        let missing = sum.missing(scenario);
        if !missing.is_empty() && !batch.one {
            println!("never reached: {}", missing.join(", "));
        }
    }
    (sum.failed, sum.probes)
}

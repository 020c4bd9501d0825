//! `cargo x sim`: runs of scenarios, many of them, told to a user.
#![allow(clippy::print_stdout, reason = "a command tells its user what it found")]

use crate::probes::{Probes, WANTED};
use crate::scenario::{Controls, Outcome, Scenario, What, find, run};
use crate::trace::Show;
use std::ops::Range;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: cargo x sim [--scenario NAME] [--seed N | --seeds A..B] [--minutes M] [--trace]
  NAME: a folder or file below crates/sim/scenarios (fast, fast/crashes), or a path; fast/alone if left out
  --minutes: goes on with seeds from A (or 0) for so long";

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish {
    scenario: String,
    seeds: Range<u64>,
    minutes: Option<u64>,
    trace: bool,
    one: bool,
}

impl Wish {
    fn read(args: &[String]) -> Option<Wish> {
        let mut wish = Wish { scenario: "fast/alone".into(), seeds: 0..10, minutes: None, trace: false, one: false };
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            match arg {
                "--scenario" => wish.scenario = args.next()?.to_owned(),
                "--seed" => {
                    let seed = args.next()?.parse().ok()?;
                    (wish.seeds, wish.one) = (seed..seed + 1, true);
                }
                "--seeds" => {
                    let (from, to) = args.next()?.split_once("..")?;
                    wish.seeds = from.parse().ok()?..to.parse().ok()?;
                }
                "--minutes" => wish.minutes = Some(args.next()?.parse().ok()?),
                "--trace" => wish.trace = true,
                _ => return None,
            }
        }
        Some(wish)
    }
}

/// Real time: how fast the simulator runs, and when it should end.
struct Watch(Instant);

impl Watch {
    fn start() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the speed of the simulator itself; no run sees it")]
        Watch(Instant::now())
    }

    fn passed(&self) -> Duration {
        self.0.elapsed()
    }
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
        let (events, virtual_s) = (self.events as f64 / seconds, self.virtual_ns as f64 / 1e9 / seconds);
        println!(
            "{}: {} runs are good; {} of {} operations answered; {events:.0} events/s, {virtual_s:.1} virtual seconds per second",
            scenario.name, self.runs, self.answered, self.asked
        );
        if self.undecided > 0 {
            println!("  {} searches for an order were given up", self.undecided);
        }
    }

    fn tell_probes(&self) {
        for (name, times) in self.probes.all() {
            println!("{times:>9} {name}");
        }
    }

    /// Rare paths that no run reached: those that its kind of run should, and those that the scenario names.
    fn missing(&self, scenario: &Scenario) -> Vec<String> {
        let wanted = if scenario.what == What::Alone { WANTED } else { &[] };
        let named = scenario.checks.reaches.iter().map(String::as_str);
        let missing = wanted.iter().copied().chain(named).filter(|name| self.probes.count(name) == 0);
        missing.map(str::to_owned).collect()
    }
}

fn tell_bad(outcome: &Outcome) {
    println!("{} seed {}: trace {:016x}", outcome.scenario, outcome.seed, outcome.hash);
    if let Some(failure) = &outcome.failure {
        println!("FAILED: {failure}");
    }
    if !outcome.verdict.is_good() {
        println!("FAILED: the checker found\n{}", outcome.verdict);
    }
    println!("repeat: {}", outcome.repeat());
}

/// Runs one scenario; gives whether every run was good.
fn many(scenario: &Scenario, wish: &Wish, until: Option<Duration>) -> bool {
    let (watch, mut sum) = (Watch::start(), Sum::default());
    let seeds = if until.is_some() { wish.seeds.start..u64::MAX } else { wish.seeds.clone() };
    for seed in seeds {
        if until.is_some_and(|until| watch.passed() >= until) {
            break;
        }
        let show = if wish.trace { Show::Print } else { Show::Nothing };
        let outcome = run(scenario, seed, &Controls::default(), show);
        if !outcome.is_good() {
            tell_bad(&outcome);
            return false;
        }
        if wish.one {
            println!("{} seed {seed}: trace {:016x}", scenario.name, outcome.hash);
        }
        sum.add(&outcome);
    }
    sum.tell(scenario, watch.passed());
    if wish.one || sum.runs > 20 || until.is_some() {
        sum.tell_probes();
        let missing = sum.missing(scenario);
        if !missing.is_empty() && !wish.one {
            println!("never reached: {}", missing.join(", "));
        }
    }
    true
}

/// The command; gives whether every run was good.
pub fn main(args: &[String]) -> bool {
    let Some(wish) = Wish::read(args) else {
        println!("{USAGE}");
        return false;
    };
    let scenarios = match find(&wish.scenario) {
        Ok(scenarios) => scenarios,
        Err(why) => {
            println!("{why}");
            return false;
        }
    };
    let share = u32::try_from(scenarios.len().max(1)).unwrap_or(1);
    let until = wish.minutes.map(|minutes| Duration::from_secs(minutes * 60) / share);
    scenarios.iter().all(|scenario| many(scenario, &wish, until))
}

#[cfg(test)]
mod tests {
    use super::Wish;

    #[test]
    fn wishes_are_read() {
        let read = |text: &str| Wish::read(&text.split_whitespace().map(String::from).collect::<Vec<_>>());
        let wish = read("--seeds 3..9 --scenario fast --minutes 2").unwrap();
        assert_eq!((wish.seeds, wish.scenario.as_str(), wish.minutes), (3..9, "fast", Some(2)));
        assert_eq!(read("--seed 7 --trace").unwrap().seeds, 7..8);
        for wrong in ["--seed", "--seeds 3", "--nonsense", "--minutes x"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

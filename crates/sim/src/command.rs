//! `cargo x sim`: runs of scenarios, many of them, told to a user.
#![allow(clippy::print_stdout, reason = "a command tells its user what it found")]

use crate::batch::{Batch, run_all};
use crate::probes::{Probes, wanted};
use crate::scenario::{What, find};
use crate::trace::Show;
use std::ops::Range;
use std::time::Duration;

const USAGE: &str = "usage: cargo x sim [--scenario NAME] [--seed N | --seeds A..B] [--minutes M] [--jobs N] [--trace]
  NAME: a folder or file below crates/sim/scenarios (fast, fast/crashes), or a path; fast/alone if left out
  --minutes: goes on with seeds from A (or 0) for so long
  --jobs: so many runs at a time; as many as there are cores if left out";

/// All of these scenarios reach every path that is wanted, in so many seeds: where they do not, something hides it.
const ALL: &str = "fast";
const SEEDS_OF_ALL: u64 = 200;

/// At most so many runs at a time: each has its whole world in memory.
const JOBS_MAX: usize = 64;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish {
    scenario: String,
    seeds: Range<u64>,
    minutes: Option<u64>,
    jobs: Option<usize>,
    trace: bool,
    one: bool,
}

impl Wish {
    fn read(args: &[String]) -> Option<Wish> {
        let (minutes, jobs, trace, one) = Default::default();
        let mut wish = Wish { scenario: "fast/alone".into(), seeds: 0..10, minutes, jobs, trace, one };
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
                    // Nothing that was run is not good.
                    (!wish.seeds.is_empty()).then_some(())?;
                }
                "--minutes" => wish.minutes = Some(args.next()?.parse().ok().filter(|minutes| *minutes > 0)?),
                "--jobs" => wish.jobs = Some(args.next()?.parse().ok().filter(|jobs| *jobs > 0)?),
                "--trace" => wish.trace = true,
                _ => return None,
            }
        }
        Some(wish)
    }

    /// Whether what no run reaches is a failure.
    fn reaches_all(&self) -> bool {
        self.scenario == ALL && self.minutes.is_none() && self.seeds.end - self.seeds.start >= SEEDS_OF_ALL
    }

    /// So many runs at a time. Traces are not mixed.
    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let jobs = if self.trace || self.one { 1 } else { self.jobs.unwrap_or_else(cores) };
        jobs.min(JOBS_MAX)
    }
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
    let batch = Batch {
        seeds: if until.is_some() { wish.seeds.start..u64::MAX } else { wish.seeds.clone() },
        until,
        jobs: wish.jobs(),
        show: if wish.trace { Show::Print } else { Show::Nothing },
        one: wish.one,
    };
    // All of them, whatever fails: a batch is long, and one bad seed says nothing of the other scenarios.
    let (mut failed, mut reached) = (Vec::new(), Vec::<(What, Probes)>::new());
    for scenario in &scenarios {
        let (bad, probes) = run_all(scenario, &batch);
        failed.extend(bad);
        match reached.iter_mut().find(|(what, _)| *what == scenario.what) {
            Some((_, all)) => all.merge(&probes),
            None => reached.push((scenario.what, probes)),
        }
    }
    let mut hidden = false;
    if scenarios.len() > 1 {
        for (what, probes) in &reached {
            let missing = probes.missing(wanted(*what));
            hidden |= !missing.is_empty() && wish.reaches_all();
            let never = if missing.is_empty() { "nothing".into() } else { missing.join(", ") };
            println!("never reached by any scenario of {what:?}: {never}");
        }
    }
    if scenarios.len() > 1 && !failed.is_empty() {
        println!("{} runs FAILED:", failed.len());
        failed.iter().for_each(|repeat| println!("  {repeat}"));
    }
    failed.is_empty() && !hidden
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
        assert_eq!(read("--jobs 3").unwrap().jobs(), 3);
        assert_eq!(read("--jobs 3 --trace").unwrap().jobs(), 1, "traces are not mixed");
        assert!(read("--scenario fast --seeds 10..210").unwrap().reaches_all());
        for less in
            ["--scenario fast --seeds 10..209", "--seeds 0..1000", "--scenario fast --seeds 0..1000 --minutes 9"]
        {
            assert!(!read(less).unwrap().reaches_all(), "{less}");
        }
        for wrong in [
            "--seed",
            "--seeds 3",
            "--seeds 5..5",
            "--seeds 5..3",
            "--nonsense",
            "--minutes x",
            "--minutes 0",
            "--jobs 0",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

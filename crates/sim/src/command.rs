//! `cargo x sim --seed N [--trace]` and `cargo x sim --seeds A..B`.
#![allow(clippy::print_stdout, reason = "a command tells its user what it found")]

use crate::probes::Probes;
use crate::run::{Report, run};
use crate::world::Controls;

const USAGE: &str = "usage: cargo x sim --seed N [--trace] | --seeds A..B";

fn tell(report: &Report) {
    let Report { seed, plan, hash, committed, begun, .. } = report;
    println!("seed {seed}: trace {hash:016x}, {committed} of {begun} transactions committed, {plan:?}");
    if let Some(failure) = &report.failure {
        println!("FAILED: {failure}");
    }
    if !report.verdict.is_good() {
        println!("FAILED: the checker found\n{}", report.verdict);
    }
    if !report.is_good() {
        println!("repeat: cargo x sim --seed {seed}");
    }
}

fn many(from: u64, to: u64) -> bool {
    let mut probes = Probes::default();
    let mut committed = 0;
    for seed in from..to {
        let report = run(seed, Controls::default(), false);
        if !report.is_good() {
            tell(&report);
            return false;
        }
        committed += report.committed;
        probes.merge(&report.probes);
    }
    println!("{} runs are good; {committed} transactions committed", to.saturating_sub(from));
    for (name, times) in probes.all() {
        println!("{times:>9} {name}");
    }
    let missing = probes.missing();
    if !missing.is_empty() {
        println!("never reached: {}", missing.join(", "));
    }
    true
}

/// The command; gives whether every run was good.
pub fn main(args: &[String]) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    let parsed: Vec<&str> = args.iter().map(String::as_str).collect();
    match parsed[..] {
        ["--seed", seed] | ["--seed", seed, "--trace"] => {
            let Some(seed) = number(seed) else {
                println!("{USAGE}");
                return false;
            };
            let report = run(seed, Controls::default(), parsed.len() == 3);
            tell(&report);
            for (name, times) in report.probes.all() {
                println!("{times:>9} {name}");
            }
            report.is_good()
        }
        ["--seeds", range] => {
            let ends = range.split_once("..").and_then(|(a, b)| Some((number(a)?, number(b)?)));
            match ends {
                Some((from, to)) => many(from, to),
                None => {
                    println!("{USAGE}");
                    false
                }
            }
        }
        _ => {
            println!("{USAGE}");
            false
        }
    }
}

//! `check`, `bless` and `sim`.

use crate::again;
use crate::run::{cargo, has_component};

/// Seeds of the simulator's round in `check`: of one node alone, and of every scenario of many machines.
const SIM_SEEDS: &str = "0..200";
const SIM_SEEDS_OF_MANY: &str = "1000..1040";
/// Property tests draw the same cases in every `check`: one run says what the next one does. `cargo test` draws others each time, and
/// whoever sets the variable chooses.
const PROPERTY_SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

/// Format, lints, tests, a round of the simulator.
pub fn check(args: &[String]) -> Result<(), String> {
    let fast = args.iter().any(|a| a == "--fast");
    let seed: &[_] = if std::env::var_os(PROPERTY_SEED.0).is_some() { &[] } else { &[PROPERTY_SEED] };
    if has_component("fmt") {
        cargo(&["fmt", "--all", "--check"], &[])?;
    } else {
        eprintln!("skipped: format (install rustfmt to check it)");
    }
    if has_component("clippy") {
        cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])?;
    } else {
        eprintln!("skipped: lints (install clippy to check them)");
    }
    if fast {
        return cargo(
            &["test", "--workspace", "--no-fail-fast", "--exclude", "timeball", "--exclude", "timeball-server"],
            seed,
        );
    }
    // It builds the binary, too, which the end-to-end tests start. To build that before, by its package, would be to build nearly everything
    // twice: the features of a package alone are others than those of the workspace.
    again::test(seed)?;
    sim(&["--seeds".into(), SIM_SEEDS.into()])?;
    sim(&["--scenario".into(), "fast".into(), "--seeds".into(), SIM_SEEDS_OF_MANY.into()])
}

/// Rewrites the expectations of golden scripts.
pub fn bless(args: &[String]) -> Result<(), String> {
    let mut command = vec!["test", "--workspace", "--no-fail-fast"];
    command.extend(args.iter().map(String::as_str));
    cargo(&command, &[("BLESS", "1")])
}

/// One run of the simulator, or many.
pub fn sim(args: &[String]) -> Result<(), String> {
    // Optimised: a run is a few hundred thousand events, and the crates below the shells build in seconds.
    let mut command = vec!["run", "--quiet", "--profile", "sim", "--package", "timeball-sim", "--bin", "sim", "--"];
    command.extend(args.iter().map(String::as_str));
    cargo(&command, &[])
}

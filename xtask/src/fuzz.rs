//! `cargo x fuzz sql`: random statements beside PostgreSQL 15, for as long as somebody wants.
//!
//! The statements are those of the end-to-end test `differential`, which draws them from seeds; here the seeds are new ones each time. A
//! difference is printed with the statements that repeat it, and its seeds go on to be tried by name.

use crate::bench::systems;
use crate::run;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Seeds of one call of the test.
const SEEDS: u64 = 100;
/// Where the test finds PostgreSQL, and its seeds.
const POSTGRES: &str = "TIMEBALL_TEST_POSTGRES";
const CHOSEN: &str = "TIMEBALL_DIFFERENTIAL_SEEDS";

/// Reads the options and runs.
///
/// # Errors
/// A difference, or a program that is missing.
pub fn fuzz(args: &[String]) -> Result<(), String> {
    let mut args = args.iter();
    if args.next().map(String::as_str) != Some("sql") {
        return Err("fuzz what? `cargo x fuzz sql [--minutes M] [--seed S]`".into());
    }
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (mut minutes, mut seed) = (10, since_epoch.as_secs() % 1_000_000 * 1000);
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
        let number = value.parse::<u64>().map_err(|_| format!("{flag} {value}: not a number"))?;
        match flag.as_str() {
            "--minutes" => minutes = number,
            "--seed" => seed = number,
            _ => return Err(format!("unknown option {flag}")),
        }
    }
    beside(seed, Duration::from_secs(60 * minutes))
}

fn beside(first: u64, length: Duration) -> Result<(), String> {
    if std::env::var_os(POSTGRES).is_none() {
        systems::has_postgres()?;
    }
    run::cargo(&["build", "--package", "timeball"], &[])?;
    let began = Instant::now();
    let mut seed = first;
    while seed == first || began.elapsed() < length {
        let seeds = format!("{seed}..{}", seed + SEEDS);
        let test = ["test", "--quiet", "--package", "timeball", "--test", "e2e", "differential"];
        run::cargo(&test, &[(CHOSEN, &seeds)])
            .map_err(|why| format!("seeds {seeds}: {why} (with {CHOSEN}={seeds})"))?;
        seed += SEEDS;
    }
    println!("{} seeds from {first} on: no difference, no crash", seed - first);
    Ok(())
}

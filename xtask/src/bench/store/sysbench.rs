//! Every OLTP script of sysbench, on a fresh table and on one whose rows were updated for a while.
//!
//! At READ COMMITTED on both systems: it is PostgreSQL's default and not ours, and `oltp_read_write` at SERIALIZABLE is a measure of
//! how often its hot rows conflict (two of three of our transactions, five of six of PostgreSQL's).

use super::Run;
use super::state::Measured;
use crate::bench::systems::System;
use crate::run;
use std::process::Command;
use std::time::Duration;

/// The scripts in the order in which they run: those that only read, then those that change the table more and more.
pub const SCRIPTS: [&str; 10] = [
    "oltp_point_select",
    "oltp_read_only",
    "select_random_points",
    "select_random_ranges",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "oltp_insert",
    "oltp_delete",
];
/// What the table suffers between the two rounds.
const UPDATES: [&str; 2] = ["oltp_update_index", "oltp_update_non_index"];
const CLIENTS: usize = 8;
/// libpq's options.
const OPTIONS: &str = "-c default_transaction_isolation=read\\ committed";
/// A run that takes so much longer than it should hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Says how to get sysbench where it is not.
pub fn is_there() -> Result<(), String> {
    let there = Command::new("sysbench").arg("--version").output().is_ok_and(|o| o.status.success());
    if there { Ok(()) } else { Err("no sysbench: apt-get install sysbench".into()) }
}

/// Figures `fresh SCRIPT` and `after SCRIPT`: transactions a second.
pub(super) fn run(run: &Run<'_>) -> Result<Measured, String> {
    let mut measured = Measured::new();
    let rows = run.lengths.sysbench_rows;
    let mut round = |name: &str| {
        for script in SCRIPTS {
            match sysbench(run.system, script, "run", rows, run.lengths.script_seconds, CLIENTS)
                .and_then(|text| tps(&text))
            {
                Ok(tps) => measured.put(format!("{name} {script}"), tps),
                Err(why) => {
                    eprintln!("{why}");
                    measured.failures.insert(format!("{name} {script}"), last_line(&why));
                }
            }
        }
    };
    sysbench(run.system, "oltp_read_write", "prepare", rows, 0, CLIENTS)?;
    round("fresh");
    sysbench(run.system, "oltp_read_write", "cleanup", rows, 0, CLIENTS)?;
    sysbench(run.system, "oltp_read_write", "prepare", rows, 0, CLIENTS)?;
    for script in UPDATES {
        sysbench(run.system, script, "run", rows, run.lengths.load_seconds, CLIENTS)?;
    }
    round("after");
    Ok(measured)
}

fn last_line(text: &str) -> String {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().replace('|', "/")
}

/// A step of a script; what sysbench printed. `rows` are those of its table.
///
/// # Errors
/// sysbench is missing, or failed.
pub fn sysbench(
    system: &dyn System,
    script: &str,
    step: &str,
    rows: u64,
    seconds: u64,
    threads: usize,
) -> Result<String, String> {
    let mut command = Command::new("sysbench");
    command.env("PGOPTIONS", OPTIONS);
    command.args([script, "--db-driver=pgsql", "--pgsql-host=127.0.0.1", "--pgsql-user=root", "--pgsql-db=bench"]);
    command.arg(format!("--pgsql-port={}", system.port())).arg("--tables=1").arg(format!("--table-size={rows}"));
    if step == "run" {
        command.args([format!("--threads={threads}"), format!("--time={seconds}")]);
    }
    run::capture(command.arg(step), Duration::from_secs(seconds) + PATIENCE)
}

/// Transactions that failed and were tried again.
pub fn ignored(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("ignored errors:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The rate in sysbench's report.
///
/// # Errors
/// There is none.
pub fn tps(text: &str) -> Result<f64, String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("transactions:"));
    let rate = line.and_then(|line| line.split_once('(')?.1.strip_suffix("per sec.)")?.trim().parse().ok());
    rate.ok_or_else(|| format!("no rate in sysbench's output:\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read() {
        let text = "SQL statistics:\n    queries performed:\n        read:  0\n    transactions:                        \
                    7240   (723.98 per sec.)\n    queries:  7240   (723.98 per sec.)\n";
        assert_eq!(tps(text), Ok(723.98));
        assert!(tps("FATAL: error").unwrap_err().contains("FATAL"));
        assert_eq!(last_line("FATAL: a | b\n\n"), "FATAL: a / b");
    }
}

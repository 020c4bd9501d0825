//! The rows of the table: what is run, and how its rate is read.

use super::systems::System;
use crate::run;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// One workload and its goal.
pub struct Workload {
    /// Its name in the table.
    pub name: &'static str,
    /// Least ratio Timeball : PostgreSQL.
    pub goal: f64,
    client: Client,
}

enum Client {
    /// pgbench with these flags.
    Pgbench(&'static [&'static str]),
    /// `timeball bench update-index` with this many clients.
    UpdateIndex(u32),
}

use Client::{Pgbench, UpdateIndex};

/// The table of the goals.
pub const WORKLOADS: &[Workload] = &[
    Workload { name: "pgbench -S, 1 client", goal: 1.0, client: Pgbench(&["-S", "-c", "1"]) },
    Workload { name: "pgbench -S, 16 clients", goal: 1.0, client: Pgbench(&["-S", "-c", "16", "-j", "2"]) },
    Workload { name: "pgbench -N, 1 client", goal: 1.0, client: Pgbench(&["-N", "-c", "1"]) },
    Workload { name: "pgbench -N, 16 clients", goal: 1.0, client: Pgbench(&["-N", "-c", "16", "-j", "2"]) },
    Workload { name: "pgbench TPC-B, 16 clients", goal: 1.0, client: Pgbench(&["-c", "16", "-j", "2"]) },
    Workload { name: "update_index, 8 clients", goal: 1.5, client: UpdateIndex(8) },
];

/// A load or a run that takes so much longer than it should hangs.
const PATIENCE: Duration = Duration::from_secs(600);

/// What one run gave.
pub struct Sample {
    /// Transactions a second.
    pub tps: f64,
    /// Failed transactions.
    pub failed: u64,
}

/// Loads pgbench's tables and sysbench's table.
pub fn load(system: &dyn System, binary: &Path, scale: u32) -> Result<(), String> {
    run::capture(Command::new("pgbench").args(["-i", "-q", "-s", &scale.to_string(), &system.url()]), PATIENCE)?;
    let mut command = Command::new(binary);
    command.args(["bench", "update-index", "--duration", "1s", "--ramp-up", "0s", "--url", &system.url()]);
    run::capture(&mut command, PATIENCE)?;
    Ok(())
}

impl Workload {
    /// Runs it once.
    pub fn run(&self, system: &dyn System, binary: &Path, length: Duration) -> Result<Sample, String> {
        let seconds = length.as_secs().to_string();
        match self.client {
            Pgbench(flags) => {
                let mut command = Command::new("pgbench");
                command.args(["-n", "-M", "prepared", "-T", &seconds]).args(flags).arg(system.url());
                pgbench_sample(&run::capture(&mut command, length + PATIENCE)?)
            }
            UpdateIndex(clients) => {
                let mut command = Command::new(binary);
                command.args([
                    "bench",
                    "update-index",
                    "--no-load",
                    "--ramp-up",
                    "1s",
                    "--json",
                    "--clients",
                    &clients.to_string(),
                ]);
                command.args(["--duration", &format!("{seconds}s"), "--url", &system.url()]);
                json_sample(&run::capture(&mut command, length + PATIENCE)?)
            }
        }
    }
}

/// What pgbench says.
pub fn pgbench_sample(text: &str) -> Result<Sample, String> {
    let after = |prefix: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(prefix))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let tps = after("tps = ").ok_or_else(|| format!("no rate in pgbench's output:\n{text}"))?;
    let failed = after("number of failed transactions: ").unwrap_or(0.0) as u64;
    Ok(Sample { tps, failed })
}

fn json_sample(text: &str) -> Result<Sample, String> {
    let json: serde_json::Value = text
        .lines()
        .rev()
        .find_map(|l| serde_json::from_str(l).ok())
        .or_else(|| serde_json::from_str(text).ok())
        .ok_or("no JSON")?;
    let all = json["operations"].as_array().and_then(|o| o.iter().find(|o| o["operation"] == "all"));
    let tps = all.and_then(|o| o["per_second"].as_f64()).ok_or_else(|| format!("no rate in {json}"))?;
    Ok(Sample { tps, failed: json["failures"].as_u64().unwrap_or(0) })
}

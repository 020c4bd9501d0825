//! The rows of the tables: what is run, and how its rate is read.

use super::store::sysbench;
use super::systems::System;
use crate::run;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A table of rates beside PostgreSQL.
pub struct Table {
    /// As `cargo x bench` calls it.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Seconds of one run unless somebody asks for others: a table takes at most a quarter of an hour.
    pub seconds: u64,
    load: Load,
}

#[derive(Clone, Copy)]
enum Load {
    /// pgbench's tables and sysbench's, once.
    Pgbench,
    /// The seeds' own tables, once.
    Posts,
    /// sysbench's table, anew for each round: most scripts change it.
    Sysbench,
}

/// All of them.
pub const TABLES: [Table; 3] = [
    Table { name: "postgres", about: "pgbench and update_index", seconds: 10, load: Load::Pgbench },
    Table { name: "posts", about: "posts-and-likes, the seeds' own benchmark", seconds: 20, load: Load::Posts },
    Table {
        name: "sysbench",
        about: "every OLTP script of sysbench, READ COMMITTED",
        seconds: 4,
        load: Load::Sysbench,
    },
];

/// One workload and its goal.
pub struct Workload {
    /// Its name in the table.
    pub name: String,
    /// Least ratio Timeball : PostgreSQL.
    pub goal: f64,
    client: Client,
}

enum Client {
    /// pgbench with these flags.
    Pgbench(&'static [&'static str]),
    /// `timeball bench` with these arguments.
    Own(Vec<String>),
    /// A script of sysbench, and how many threads.
    Sysbench(&'static str, usize),
}

/// pgbench's rows: names, flags.
const PGBENCH: [(&str, &[&str]); 5] = [
    ("pgbench -S, 1 client", &["-S", "-c", "1"]),
    ("pgbench -S, 16 clients", &["-S", "-c", "16", "-j", "2"]),
    ("pgbench -N, 1 client", &["-N", "-c", "1"]),
    ("pgbench -N, 16 clients", &["-N", "-c", "16", "-j", "2"]),
    ("pgbench TPC-B, 16 clients", &["-c", "16", "-j", "2"]),
];
/// Workers of posts-and-likes, the share of reads, and the goal.
const POSTS: [(u32, &str, f64); 4] = [(50, "0.95", 1.5), (50, "0.5", 1.5), (200, "0.95", 1.0), (200, "0.5", 1.0)];
/// Threads of each script of sysbench.
const SYSBENCH_THREADS: [usize; 3] = [1, 8, 64];
/// Rows of sysbench's table.
const SYSBENCH_ROWS: u64 = 100_000;

/// A load or a run that takes so much longer than it should hangs.
const PATIENCE: Duration = Duration::from_secs(600);

/// What one run gave.
pub struct Sample {
    /// Transactions a second.
    pub tps: f64,
    /// Failed transactions.
    pub failed: u64,
}

fn own(binary: &Path, system: &dyn System, args: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.arg("bench").args(args).args(["--url", &system.url()]);
    command
}

impl Table {
    /// Its rows.
    pub fn workloads(&self) -> Vec<Workload> {
        match self.load {
            Load::Pgbench => {
                let pgbench = |(name, flags): &(&str, &'static [&'static str])| Workload {
                    name: (*name).to_owned(),
                    goal: 1.0,
                    client: Client::Pgbench(flags),
                };
                let update = Client::Own(["update-index", "--clients", "8"].map(String::from).into());
                let update = Workload { name: "update_index, 8 clients".into(), goal: 1.5, client: update };
                PGBENCH.iter().map(pgbench).chain([update]).collect()
            }
            Load::Posts => {
                let posts = |(workers, reads, goal): &(u32, &str, f64)| Workload {
                    name: format!("posts-and-likes, {reads} reads, {workers} workers"),
                    goal: *goal,
                    client: Client::Own(
                        ["posts-and-likes", "--read-fraction", reads, "--workers", &workers.to_string()]
                            .map(String::from)
                            .into(),
                    ),
                };
                POSTS.iter().map(posts).collect()
            }
            Load::Sysbench => {
                let all =
                    sysbench::SCRIPTS.iter().flat_map(|script| SYSBENCH_THREADS.map(|threads| (*script, threads)));
                let row = |(script, threads)| Workload {
                    name: format!("{script}, {threads} threads"),
                    goal: 1.0,
                    client: Client::Sysbench(script, threads),
                };
                all.map(row).collect()
            }
        }
    }

    /// Loads what the rows work on, before a round.
    ///
    /// # Errors
    /// A program is missing, or failed.
    pub fn load(&self, system: &dyn System, binary: &Path, scale: u32, round: usize) -> Result<(), String> {
        let once = ["--duration", "1s", "--ramp-up", "0s"];
        match self.load {
            Load::Sysbench => {
                if round > 0 {
                    sysbench::sysbench(system, "oltp_read_write", "cleanup", SYSBENCH_ROWS, 0, 1)?;
                }
                sysbench::sysbench(system, "oltp_read_write", "prepare", SYSBENCH_ROWS, 0, 1).map(drop)
            }
            _ if round > 0 => Ok(()),
            Load::Pgbench => {
                let scale = scale.to_string();
                run::capture(Command::new("pgbench").args(["-i", "-q", "-s", &scale, &system.url()]), PATIENCE)?;
                run::capture(own(binary, system, &["update-index"]).args(once), PATIENCE).map(drop)
            }
            Load::Posts => run::capture(own(binary, system, &["posts-and-likes"]).args(once), PATIENCE).map(drop),
        }
    }
}

impl Workload {
    /// Runs it once.
    ///
    /// # Errors
    /// Its client is missing, failed, or says no rate.
    pub fn run(&self, system: &dyn System, binary: &Path, length: Duration) -> Result<Sample, String> {
        let seconds = length.as_secs();
        match &self.client {
            Client::Pgbench(flags) => {
                let mut command = Command::new("pgbench");
                command.args(["-n", "-M", "prepared", "-T", &seconds.to_string()]).args(*flags).arg(system.url());
                pgbench_sample(&run::capture(&mut command, length + PATIENCE)?)
            }
            Client::Own(args) => {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                let mut command = own(binary, system, &args);
                command.args(["--no-load", "--ramp-up", "1s", "--json", "--duration", &format!("{seconds}s")]);
                json_sample(&run::capture(&mut command, length + PATIENCE)?)
            }
            Client::Sysbench(script, threads) => {
                let text = sysbench::sysbench(system, script, "run", SYSBENCH_ROWS, seconds, *threads)?;
                Ok(Sample { tps: sysbench::tps(&text)?, failed: sysbench::ignored(&text) })
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

/// What `timeball bench --json` says.
pub fn json_sample(text: &str) -> Result<Sample, String> {
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

//! `cargo x bench cluster --sql`: statements of people's applications on three nodes beside the same on one node with the same cores.

use super::systems::{Timeball, sql};
use super::{MANY, Options, PATIENCE, Row, page, rate};
use crate::bench::systems::build_timeball;
use crate::bench::workload::{json_sample, pgbench_sample};
use crate::run;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// pgbench's scale.
const SCALE: &str = "10";
/// Behind the load: three nodes write out and merge beside each other what one does alone, and that is not what is measured.
const REST: Duration = Duration::from_secs(8);
/// Workers of posts-and-likes.
const WORKERS: &str = "50";
/// The parts of its operations that read.
const READS: [&str; 2] = ["0.95", "0.5"];
/// Its ranges as 000 figure 3.3 has them: posts, likes and the index of likes in three each, and a further one for new likes.
const BOUNDARIES: [&str; 3] = [
    "ALTER TABLE posts SPLIT AT VALUES (0), (34), (67)",
    "ALTER TABLE likes SPLIT AT VALUES (0), (334), (667), (1001)",
    "ALTER INDEX likes_post_id_idx SPLIT AT VALUES (0), (34), (67)",
];

fn url(port: u16) -> String {
    format!("postgresql://root@127.0.0.1:{port}/bench?sslmode=disable")
}

/// A transaction that fails is the client's to see: nothing is tried again.
fn tpcb(port: u16, seconds: u64) -> Result<f64, String> {
    let mut command = Command::new("pgbench");
    command.args(["-n", "-M", "prepared", "-T", &seconds.to_string(), "-c", &MANY.to_string(), "-j", "2"]);
    let sample = pgbench_sample(&run::capture(command.arg(url(port)), Duration::from_secs(seconds) + PATIENCE)?)?;
    rate(&sample)
}

fn posts(binary: &Path, url: &str, reads: &str, seconds: u64) -> Result<f64, String> {
    let mut command = Command::new(binary);
    command.args(["bench", "posts-and-likes", "--no-load", "--spread", "--json", "--ramp-up", "1s", "--url", url]);
    command.args(["--workers", WORKERS, "--read-fraction", reads, "--duration", &format!("{seconds}s")]);
    let sample = json_sample(&run::capture(&mut command, Duration::from_secs(seconds) + PATIENCE)?)?;
    rate(&sample)
}

/// The same tables at either.
fn load(binary: &Path, port: u16) -> Result<(), String> {
    run::capture(Command::new("pgbench").args(["-i", "-q", "-s", SCALE, &url(port)]), PATIENCE)?;
    let mut once = Command::new(binary);
    once.args(["bench", "posts-and-likes", "--duration", "1s", "--ramp-up", "0s", "--url", &url(port)]);
    run::capture(&mut once, PATIENCE).map(drop)
}

/// The table.
pub fn table(options: &Options, base: &Path) -> Result<String, String> {
    let binary = options.binary.clone().map_or_else(build_timeball, Ok)?;
    let cluster = Timeball::start(&binary, base)?;
    let alone = Timeball::alone(&binary, &base.join("alone"))?;
    sql(alone.port, "postgres", "CREATE DATABASE bench")?;
    load(&binary, alone.port)?;
    load(&binary, cluster.node(0).port)?;
    std::thread::sleep(REST);
    let row = |name: String, goal| Row { name, beside: "one node", goal, ours: Vec::new(), theirs: Vec::new() };
    let mut first = row(format!("pgbench TPC-B, scale {SCALE}, {MANY} clients, per second"), "at least 0.5");
    for round in 0..options.rounds {
        // All of its tables are in the first range.
        let leader = cluster.leader("ORDER BY start_key")?;
        first.theirs.push(tpcb(alone.port, options.seconds)?);
        first.ours.push(tpcb(cluster.node(leader).port, options.seconds)?);
        eprintln!("round {round} of pgbench is done");
    }
    let mut rows = vec![first];
    for statement in BOUNDARIES {
        sql(cluster.node(0).port, "bench", statement)?;
    }
    cluster.spread()?;
    for reads in READS {
        let name = format!(
            "posts-and-likes, {reads} reads, {WORKERS} workers at all nodes, ranges and leaders spread, per second"
        );
        let mut row = row(name, "");
        for round in 0..options.rounds {
            row.theirs.push(posts(&binary, &url(alone.port), reads, options.seconds)?);
            row.ours.push(posts(&binary, &cluster.url("bench"), reads, options.seconds)?);
            eprintln!("round {round} of posts-and-likes with {reads} reads is done");
        }
        rows.push(row);
    }
    Ok(page("SQL on three nodes", "cargo x bench cluster --sql --write", options, &rows))
}

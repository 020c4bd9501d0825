//! `cargo x bench`: tables of speed beside PostgreSQL 15; [`store`], [`tpch`] and [`tpcc`] have their own, and [`cluster`], beside etcd.
//!
//! `cargo x bench postgres`, `posts` and `sysbench`: rates beside PostgreSQL 15. Same disk, same durability, same client, interleaved rounds,
//! medians, and the ratio of each pair: absolute figures of a shared machine mean little. With `--before BINARY` an older Timeball takes
//! PostgreSQL's place: whether a row is worse than before.

mod cluster;
mod report;
mod store;
pub mod systems;
mod tpcc;
mod tpch;
mod workload;

use std::path::PathBuf;
use std::time::Duration;
use systems::{Postgres, System, Timeball};
use workload::{Sample, TABLES, Table, Workload};

/// What to run.
pub struct Options {
    table: &'static Table,
    rounds: usize,
    seconds: u64,
    scale: u32,
    only: Option<String>,
    write: bool,
    /// Measured instead of what this tree builds.
    binary: Option<PathBuf>,
    /// Measured instead of PostgreSQL.
    before: Option<PathBuf>,
}

impl Options {
    /// What the two systems are called.
    fn names(&self) -> [&'static str; 2] {
        [if self.before.is_some() { "Timeball before" } else { "PostgreSQL 15" }, "Timeball"]
    }
}

/// Reads the options and runs the table.
pub fn bench(args: &[String]) -> Result<(), String> {
    match args.first().map(String::as_str) {
        Some("tpcc") => tpcc::bench(&args[1..]),
        Some("tpch") => tpch::bench(&args[1..]),
        Some("store") => store::bench(&args[1..]),
        Some("cluster") => cluster::bench(&args[1..]),
        other => match TABLES.iter().find(|table| Some(table.name) == other) {
            Some(table) => rates(table, &args[1..]),
            None => {
                let about = |table: &Table| format!("{} ({})", table.name, table.about);
                let tables: Vec<String> = TABLES.iter().map(about).collect();
                Err(format!("bench what? {}, tpch, tpcc, store or cluster", tables.join(", ")))
            }
        },
    }
}

fn rates(of: &'static Table, args: &[String]) -> Result<(), String> {
    let options = parse(of, args)?;
    let base = std::env::temp_dir().join(format!("timeball-bench-{}", std::process::id()));
    let result = table(&options, &base);
    let _ = std::fs::remove_dir_all(&base);
    let rows = result?;
    let text = report::table(&options, &rows);
    print!("{text}");
    if options.write {
        let path = report::write(&text, of.name)?;
        eprintln!("kept in {}", path.display());
    }
    Ok(())
}

fn parse(table: &'static Table, args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        table,
        rounds: 3,
        seconds: table.seconds,
        scale: 10,
        only: None,
        write: false,
        binary: None,
        before: None,
    };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        if flag == "--write" {
            options.write = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag.as_str() {
            "--rounds" => options.rounds = number()?.max(1) as usize,
            "--seconds" => options.seconds = number()?.max(1),
            "--scale" => options.scale = number()?.max(1) as u32,
            "--only" => options.only = Some(value.clone()),
            "--binary" => options.binary = Some(PathBuf::from(value)),
            "--before" => options.before = Some(PathBuf::from(value)),
            _ => return Err(format!("unknown option {flag}")),
        }
    }
    if options.write && options.before.is_some() {
        return Err("--write keeps the table beside PostgreSQL, which --before does not make".into());
    }
    Ok(options)
}

/// One workload's samples on Timeball and on what it is measured beside, transactions per second, in the order of the rounds.
pub struct Outcome {
    workload: Workload,
    beside: Vec<Sample>,
    timeball: Vec<Sample>,
}

fn table(options: &Options, base: &std::path::Path) -> Result<Vec<Outcome>, String> {
    let binary = options.binary.clone().map_or_else(systems::build_timeball, Ok)?;
    let beside: Box<dyn System> = match &options.before {
        None => Box::new(Postgres::start(&base.join("postgres"))?),
        Some(before) => Box::new(Timeball::start(before, &base.join("before"), &[])?),
    };
    let timeball = Timeball::start(&binary, &base.join("timeball"), &[])?;
    let systems: [&dyn System; 2] = [beside.as_ref(), &timeball];
    let chosen = |w: &Workload| options.only.as_ref().is_none_or(|only| w.name.contains(only.as_str()));
    let mut rows: Vec<Outcome> = options
        .table
        .workloads()
        .into_iter()
        .filter(chosen)
        .map(|workload| Outcome { workload, beside: Vec::new(), timeball: Vec::new() })
        .collect();
    let length = Duration::from_secs(options.seconds);
    for round in 0..options.rounds {
        for system in systems {
            options.table.load(system, &binary, options.scale, round)?;
        }
        for row in &mut rows {
            for (index, system) in systems.iter().enumerate() {
                let sample = row.workload.run(*system, &binary, length)?;
                eprintln!("round {round}: {} on {}: {:.0} tps", row.workload.name, options.names()[index], sample.tps);
                if index == 0 { row.beside.push(sample) } else { row.timeball.push(sample) }
            }
        }
    }
    Ok(rows)
}

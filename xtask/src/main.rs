//! `cargo x`: what a developer and CI run. `cargo x check` is exactly what `.ci/run` runs.
// The tool of the workshop is a shell: it starts processes, waits for them and reads the real clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod again;
mod bench;
mod check;
mod fuzz;
mod process;
mod run;
mod soak;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
cargo x <command>

  check                  format, lints, every test, a round of the simulator: what CI runs
  check --fast           format, lints and the tests below the shells
  bless [filter]         rewrite the expectations of golden scripts from what the code does now; read the diff
  sim --seed N           one run of the simulator; --trace shows it
  sim --seeds A..B       many runs, on all cores (--jobs N); each failure prints the one command that repeats it
  sim --scenario NAME    of these scenarios (fast, fast/network, a path); --minutes M: for so long
  fuzz sql [opts]        random statements, answers compared with PostgreSQL's; a difference prints what repeats it
                         --minutes N (10)  --seed N (where to begin)
  bench postgres [opts]  the speed table beside PostgreSQL, interleaved, medians (see docs/benchmarks/); and so
  bench posts|sysbench   the seeds' posts-and-likes; every OLTP script of sysbench
                         --rounds N (3)  --seconds N  --scale N (10)  --only NAME
                         --binary PATH  measure that program; --before PATH: beside that one
                         --write        keep the table under docs/benchmarks/
  bench tpch [opts]      the 22 queries of TPC-H beside PostgreSQL, every answer compared
                         --rounds N (3)  --scale F (0.1)  --only N  --binary PATH  --write
  bench tpcc [opts]      TPC-C by go-tpc beside PostgreSQL, at READ COMMITTED and SERIALIZABLE, its consistency checked; goes on
                         where it was ended
                         --warehouses N (1)  --threads N (8)  --seconds N (60)  --fresh  --binary PATH  --write
  bench cluster [opts]   three nodes beside etcd
                         --sql          instead: pgbench and posts-and-likes on three nodes beside one
                         --bulk         instead: very many rows on three nodes, one of which stops, is slow, is killed
                         --rows N (10000000)  --memory SIZE (4GiB)  of --bulk
  bench store [opts]     whether the store stays fast when rows are updated, deleted and many, beside PostgreSQL; goes on
                         where it was ended, and measures what a new commit may have changed
                         --only CASE    sysbench, hot, queue, pgbench, bulk; may be given several times
                         --minutes N    in about so long (15)
                         --full         as long as the goals are meant: some hours
                         --fresh        what was measured before counts no more
                         --binary PATH  measure that program, not the one that is built here
                         --write        keep the table under docs/benchmarks/
                         --plot         draw the hot rows there
  soak [opts]            a mixed load on a node with little memory, then none: it stays within it, and does not grow while idle
                         --memory SIZE  the node's (1GiB)
                         --minutes N    of load (60), and a sixth of it without
                         --only WORKER  those whose names begin so: updates, COPY, sorts, hashes, deletes, crowd
                         --binary PATH  that program, not the one that is built here
  tools [NAME..] [opts]  installs drivers, ORMs, migration tools and job queues below target/tools, and runs the quick
                         start of each (tests/tools/) on a node of its own (see docs/tools.md)
                         --release      on an optimised node
                         --url URL      on that server, such as a PostgreSQL, to judge the quick start itself
                         --write        keep the results in docs/tools.md
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let result = match args.first().map(String::as_str) {
        Some("check") => check::check(rest),
        Some("bless") => check::bless(rest),
        Some("sim") => check::sim(rest),
        Some("tools") => tools::tools(rest),
        Some("soak") => soak::soak(rest),
        Some("bench") => bench::bench(rest),
        Some("fuzz") => fuzz::fuzz(rest),
        _ => {
            print!("{HELP}");
            return if args.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("cargo x: {problem}");
            ExitCode::FAILURE
        }
    }
}

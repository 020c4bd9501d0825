//! `cargo x bench store`: whether the store stays fast when rows are updated, deleted and many, beside PostgreSQL 15.
//!
//! Problem: a store that keeps versions is quick on the first day. What it costs to have a past shows only after minutes of updates,
//! so the runs are long, and one that is ended must not be lost. Idea: the table is made of *cases* ([`CASES`]), each on a system of
//! its own that was started for it. What a case gave on a system is kept in a state file below `target/` at once; the next run goes on
//! with what is missing. The judging ([`judge`]) sees figures only, so it is tested without a database.
//!
//! Figures of a Timeball of another commit are measured anew; those of PostgreSQL stay, as long as the lengths are the same.
//!
//! Caveats: both systems share the machine with their client, one at a time. The default lengths fit into a quarter of an hour and say
//! whether something is far off; the goals are meant for `--full`.

mod bulk;
mod hot;
mod judge;
mod lengths;
mod options;
mod pgbench;
mod plot;
mod queue;
pub mod state;
pub mod sysbench;

use super::report::{machine, output};
use super::systems::{self, Postgres, System, Timeball};
use crate::run::root;
use lengths::Lengths;
use options::Options;
use state::{Measured, State};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Names of the two systems in the state file.
const SYSTEMS: [&str; 2] = ["postgres", "timeball"];

/// A case: what is done to a fresh system.
struct Case {
    name: &'static str,
    run: fn(&Run<'_>) -> Result<Measured, String>,
    /// Versions are kept for the shorter time of [`Lengths::retention_seconds`].
    short_retention: bool,
}

/// What a case is given.
struct Run<'a> {
    system: &'a dyn System,
    lengths: &'a Lengths,
    /// For files of its own.
    dir: &'a Path,
}

const CASES: [Case; 5] = [
    Case { name: "sysbench", run: sysbench::run, short_retention: false },
    Case { name: "hot", run: hot::run, short_retention: true },
    Case { name: "queue", run: queue::run, short_retention: true },
    Case { name: "pgbench", run: pgbench::run, short_retention: false },
    Case { name: "bulk", run: bulk::run, short_retention: false },
];

/// Reads the options, measures what is missing, and shows the table.
pub fn bench(args: &[String]) -> Result<(), String> {
    let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    let options = options::parse(args, &names, &SYSTEMS)?;
    sysbench::is_there()?;
    let (binary, commit) = match &options.binary {
        Some(binary) => (binary.clone(), binary.display().to_string()),
        None => (systems::build_timeball()?, commit()),
    };
    let path = target().join("bench-store.json");
    let mut state = State::load(&path, &options.lengths);
    state.forget(|case, system, measured| {
        let chosen = options.chosen(case);
        (options.fresh && chosen) || (system == "timeball" && measured.commit != commit)
    });
    let base = target().join(format!("bench-store-{}", std::process::id()));
    let problems = measure(&options, &binary, &base, &commit, &mut state, &path);
    let _ = std::fs::remove_dir_all(&base);
    let text = table(&options, &commit, &judge::rows(&state));
    print!("{text}");
    if options.plot {
        let path = plot::write(&state)?;
        eprintln!("drawn in {}", path.display());
    }
    if options.write {
        let path = root().join(format!("docs/benchmarks/{}-store.md", output("date", &["+%Y-%m-%d"])));
        std::fs::write(&path, &text).map_err(|e| format!("{}: {e}", path.display()))?;
        eprintln!("kept in {}", path.display());
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Runs what is missing, and keeps each result at once; gives what failed.
fn measure(options: &Options, binary: &Path, base: &Path, commit: &str, state: &mut State, path: &Path) -> Vec<String> {
    let (began, mut problems) = (Instant::now(), Vec::new());
    for case in CASES.iter().filter(|case| options.chosen(case.name)) {
        for system in SYSTEMS.into_iter().filter(|system| options.on(system)) {
            if state.get(case.name, system).is_some() {
                eprintln!("{} on {system}: measured before", case.name);
                continue;
            }
            if options.minutes.is_some_and(|minutes| began.elapsed().as_secs() >= minutes * 60) {
                // Nothing failed.
                eprintln!("{} on {system}: no time was left; the same command goes on with it", case.name);
                continue;
            }
            let (dir, started) = (base.join(format!("{}-{system}", case.name)), Instant::now());
            match one(case, system, &options.lengths, binary, &dir) {
                Ok(measured) => {
                    eprintln!("{} on {system}: {:.0} s", case.name, started.elapsed().as_secs_f64());
                    let measured = Measured { commit: commit.to_owned(), ..measured };
                    state.put(case.name, system, measured);
                    problems.extend(state.save(path).err());
                }
                Err(problem) => problems.push(format!("{} on {system}: {problem}", case.name)),
            }
            let _ = std::fs::remove_dir_all(&dir);
        }
    }
    problems
}

fn one(case: &Case, system: &str, lengths: &Lengths, binary: &Path, dir: &Path) -> Result<Measured, String> {
    let files = dir.join("files");
    std::fs::create_dir_all(&files).map_err(|e| format!("{}: {e}", files.display()))?;
    let run = |system: &dyn System| (case.run)(&Run { system, lengths, dir: &files });
    if system == "postgres" {
        return run(&Postgres::start(&dir.join("data"))?);
    }
    let seconds = lengths.retention_seconds.filter(|_| case.short_retention);
    let flags: Vec<String> = seconds.into_iter().flat_map(|s| ["--retention".into(), format!("{s}s")]).collect();
    run(&Timeball::start(binary, &dir.join("data"), &flags)?)
}

fn table(options: &Options, commit: &str, rows: &[judge::Row]) -> String {
    let mut text = format!(
        "# The store beside PostgreSQL 15\n\nMachine: {}. Date: {}. Commit: {}.\nLengths: {}.\nRepeat: `cargo x bench store{}`.\n\n\
         | work | goal | Timeball | PostgreSQL | figure | |\n| --- | --- | --- | --- | --- | --- |\n",
        machine(),
        output("date", &["+%Y-%m-%d"]),
        commit,
        options.lengths,
        options.flags(),
    );
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            row.work, row.goal, row.timeball, row.postgres, row.figure, row.verdict
        );
    }
    let met = rows.iter().filter(|row| row.verdict == judge::Verdict::Met).count();
    let _ = writeln!(text, "\n{met} of {} met.", rows.len());
    text
}

/// The commit that is measured; `+` says that files differ from it.
pub fn commit() -> String {
    let changed = output("git", &["status", "--porcelain", "--untracked-files=no"]);
    output("git", &["rev-parse", "--short", "HEAD"]) + if changed.is_empty() { "" } else { "+" }
}

/// Where what is built and measured is kept.
pub fn target() -> PathBuf {
    std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), PathBuf::from)
}

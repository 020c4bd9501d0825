//! `cargo x bench tpcc`: TPC-C by go-tpc beside PostgreSQL 15, at READ COMMITTED and at SERIALIZABLE.
//!
//! Each *case* (a number of warehouses, an isolation level, a system) is loaded, run and checked on a system that was started for it: the conditions of consistency
//! (TPC-C 5.11, clause 3.3.2) must hold behind the run, but the eleventh, which go-tpc asks of fresh data. What a case gave is kept in a file below `target/` at once; a run that is ended goes on with what is
//! missing. Figures of a Timeball of another commit are measured anew.
//!
//! Caveats: the client waits for nothing (no keying, no thinking), which the specification does not allow, so `tpmC` is go-tpc's word and no published figure. A transaction that
//! is refused with 40001 is not tried again; it counts as refused.

mod client;

use super::report::{self, machine, output};
use super::store::state::{Measured, State};
use super::store::{commit, target};
use super::systems::{self, Postgres, System, Timeball};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const SYSTEMS: [&str; 2] = ["postgres", "timeball"];
/// The goal at READ COMMITTED.
const GOAL: f64 = 1.0;

/// An isolation level, as go-tpc numbers it.
#[derive(Clone, Copy)]
struct Isolation {
    name: &'static str,
    number: u8,
}

const ISOLATIONS: [Isolation; 2] =
    [Isolation { name: "read committed", number: 2 }, Isolation { name: "serializable", number: 6 }];

#[derive(Debug)]
struct Options {
    warehouses: u32,
    threads: u32,
    seconds: u64,
    fresh: bool,
    write: bool,
    binary: Option<PathBuf>,
}

impl Options {
    /// What figures must have in common to stand beside each other.
    fn lengths(&self) -> String {
        format!("{} s, {} threads", self.seconds, self.threads)
    }

    fn case(&self, isolation: Isolation) -> String {
        format!("{} warehouses, {}", self.warehouses, isolation.name)
    }
}

/// Reads the options, measures what is missing, and shows the table.
///
/// # Errors
/// A program is missing or failed; a condition of consistency does not hold.
pub fn bench(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    let client = client::install()?;
    let (binary, commit) = match &options.binary {
        Some(binary) => (binary.clone(), binary.display().to_string()),
        None => (systems::build_timeball()?, commit()),
    };
    let path = target().join("bench-tpcc.json");
    let mut state = State::load(&path, &options.lengths());
    let cases = ISOLATIONS.map(|isolation| options.case(isolation));
    state.forget(|case, system, measured| {
        (options.fresh && cases.iter().any(|wanted| wanted == case))
            || (system == "timeball" && measured.commit != commit)
    });
    let base = target().join(format!("bench-tpcc-{}", std::process::id()));
    let mut problems = Vec::new();
    for isolation in ISOLATIONS {
        for system in SYSTEMS {
            let case = options.case(isolation);
            if state.get(&case, system).is_some() {
                eprintln!("{case} on {system}: measured before");
                continue;
            }
            eprintln!("{case} on {system} ..");
            match one(&options, isolation, system, &client, &binary, &base) {
                Ok(measured) => {
                    state.put(&case, system, Measured { commit: commit.clone(), ..measured });
                    problems.extend(state.save(&path).err());
                }
                Err(problem) => problems.push(format!("{case} on {system}: {problem}")),
            }
            let _ = std::fs::remove_dir_all(&base);
        }
    }
    let text = table(&options, &commit, &state);
    print!("{text}");
    if options.write {
        eprintln!("kept in {}", report::write(&text, "tpcc")?.display());
    }
    for case in &cases {
        for system in SYSTEMS {
            let failures = state.get(case, system).map(|measured| &measured.failures);
            problems
                .extend(failures.into_iter().flatten().map(|(what, why)| format!("{case}, {system}: {what}: {why}")));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options { warehouses: 1, threads: 8, seconds: 60, fresh: false, write: false, binary: None };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value"));
        let number = |text: &String| text.parse::<u32>().map_err(|_| format!("{flag} {text}: not a number"));
        match flag.as_str() {
            "--fresh" => options.fresh = true,
            "--write" => options.write = true,
            "--warehouses" => options.warehouses = number(value()?)?.max(1),
            "--threads" => options.threads = number(value()?)?.max(1),
            "--seconds" => options.seconds = u64::from(number(value()?)?.max(1)),
            "--binary" => options.binary = Some(PathBuf::from(value()?)),
            _ => return Err(format!("unknown option {flag}")),
        }
    }
    Ok(options)
}

fn one(
    options: &Options,
    isolation: Isolation,
    system: &str,
    client: &Path,
    binary: &Path,
    base: &Path,
) -> Result<Measured, String> {
    std::fs::create_dir_all(base).map_err(|e| format!("{}: {e}", base.display()))?;
    let system: Box<dyn System> = match system {
        "postgres" => Box::new(Postgres::start(&base.join("data"))?),
        _ => Box::new(Timeball::start(binary, &base.join("data"), &[])?),
    };
    let client = client::Client { program: client, system: system.as_ref(), warehouses: options.warehouses };
    client.prepare(options.threads)?;
    let ran = client.run(options.threads, options.seconds, isolation.number)?;
    let mut measured = Measured::new();
    measured.put("tpmC", ran.new_orders_per_minute);
    measured.put("done", ran.done as f64);
    measured.put("refused", ran.refused as f64);
    measured.put("failed", ran.failed as f64);
    if let Some(why) = ran.failure {
        measured.failures.insert("run".into(), why);
    }
    if let Err(why) = client.check() {
        measured.failures.insert("consistency".into(), why);
    }
    Ok(measured)
}

fn table(options: &Options, commit: &str, state: &State) -> String {
    let mut text = format!(
        "# TPC-C beside PostgreSQL 15\n\nMachine: {}. Date: {}. Commit: {commit}. {} {}, {} warehouses, each case for {}, on fresh data.\n\
         Repeat: `cargo x bench tpcc --warehouses {} --threads {} --seconds {}`. Goal: at least {GOAL:.1} at READ COMMITTED, all conditions of consistency.\n\n\
         | isolation | system | tpmC | ratio | transactions | refused with 40001 | other failures | consistency |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        machine(),
        output("date", &["+%Y-%m-%d"]),
        client::MODULE,
        client::VERSION,
        options.warehouses,
        options.lengths(),
        options.warehouses,
        options.threads,
        options.seconds,
    );
    for isolation in ISOLATIONS {
        let case = options.case(isolation);
        let figure = |system: &str, name: &str| state.get(&case, system)?.figures.get(name).copied();
        for system in SYSTEMS {
            let Some(measured) = state.get(&case, system) else { continue };
            let get = |name: &str| measured.figures.get(name).copied().unwrap_or_default();
            let ratio = match (system, figure("postgres", "tpmC"), figure("timeball", "tpmC")) {
                ("timeball", Some(beside), Some(ours)) if beside > 0.0 => format!("**{:.2}**", ours / beside),
                _ => String::new(),
            };
            let all = get("done") + get("refused") + get("failed");
            let _ = writeln!(
                text,
                "| {} | {system} | {:.0} | {ratio} | {:.0} | {:.0} ({:.1} %) | {:.0} | {} |",
                isolation.name,
                get("tpmC"),
                all,
                get("refused"),
                100.0 * get("refused") / all.max(1.0),
                get("failed"),
                measured.failures.get("consistency").map_or("holds", |why| why.lines().next().unwrap_or("fails")),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_refused_by_name() {
        let line = |text: &str| parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let options = line("--warehouses 10 --seconds 5 --fresh").unwrap();
        assert_eq!((options.warehouses, options.seconds, options.fresh), (10, 5, true));
        assert!(line("--seconds soon").unwrap_err().contains("soon"));
        assert!(line("--warehouses").unwrap_err().contains("--warehouses"));
        assert!(line("--quick").unwrap_err().contains("--quick"));
    }

    #[test]
    fn the_table_has_ratios_and_what_was_refused() {
        let options = parse(&[]).unwrap();
        let mut state = State::default();
        let mut put = |system: &str, rate: f64, refused: f64| {
            let mut measured = Measured::default();
            measured.put("tpmC", rate);
            measured.put("done", 90.0);
            measured.put("refused", refused);
            state.put(&options.case(ISOLATIONS[1]), system, measured);
        };
        put("postgres", 200.0, 0.0);
        put("timeball", 300.0, 10.0);
        let text = table(&options, "abc", &state);
        assert!(
            text.contains("| serializable | timeball | 300 | **1.50** | 100 | 10 (10.0 %) | 0 | holds |"),
            "{text}"
        );
    }
}

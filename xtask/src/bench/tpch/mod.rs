//! `cargo x bench tpch`: the 22 queries of TPC-H beside PostgreSQL 15, in memory, every answer compared.
//!
//! The data come from `tpchgen-cli`, which is installed below `target/tools`. No index but the primary keys; ANALYZE on both. A query that is
//! not answered in [`ANSWER_SECONDS_MAX`] has no time, and fails its goal.

use super::report::{machine, median, output};
use super::systems::{self, Postgres, System, Timeball};
use crate::run::{self, root};
use crate::tools::install::base;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The program that makes the data, and its version.
const GENERATOR: (&str, &str) = ("tpchgen-cli", "4.0.0");
/// Installing it, making the data and loading them take no longer.
const PATIENCE: Duration = Duration::from_secs(1200);
const ANSWER_SECONDS_MAX: u64 = 60;
/// The goals: of the geometric mean, and of each query.
const GOALS: (f64, f64) = (1.0, 0.5);

const SCHEMA: &str = include_str!("schema.sql");
const TABLES: [&str; 8] = ["region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem"];

macro_rules! queries {
    ($($number:literal)*) => { [$(include_str!(concat!("q", $number, ".sql"))),*] };
}

const QUERIES: [&str; 22] = queries!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22);

struct Options {
    rounds: usize,
    scale: String,
    only: Option<usize>,
    binary: Option<PathBuf>,
    write: bool,
}

/// What one query gave: seconds on each system, in the order of the rounds; and whether the answers are the same.
struct Row {
    number: usize,
    seconds: [Vec<f64>; 2],
    verdict: Result<(), String>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        let [beside, ours] = [0, 1].map(|n| median(self.seconds[n].iter().copied()));
        (ours > 0.0 && beside > 0.0 && self.verdict.is_ok()).then(|| beside / ours)
    }
}

/// Reads the options and runs the table.
///
/// # Errors
/// A program is missing or failed; an answer differs.
pub fn bench(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    let base = std::env::temp_dir().join(format!("timeball-tpch-{}", std::process::id()));
    let result = table(&options, &base);
    let _ = std::fs::remove_dir_all(&base);
    let rows = result?;
    let text = report(&options, &rows);
    print!("{text}");
    if options.write {
        eprintln!("kept in {}", super::report::write(&text, "tpch")?.display());
    }
    match rows.iter().find_map(|row| row.verdict.as_ref().err()) {
        Some(why) => Err(why.clone()),
        None => Ok(()),
    }
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options { rounds: 3, scale: "0.1".into(), only: None, binary: None, write: false };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        if flag == "--write" {
            options.write = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag.as_str() {
            "--rounds" => options.rounds = number()?.max(1),
            "--scale" => {
                value.parse::<f64>().map_err(|_| format!("{flag} {value}: not a number"))?;
                options.scale.clone_from(value);
            }
            "--only" => options.only = Some(number()?),
            "--binary" => options.binary = Some(PathBuf::from(value)),
            _ => return Err(format!("unknown option {flag}")),
        }
    }
    Ok(options)
}

/// The data of a scale factor, made once.
fn data(scale: &str) -> Result<PathBuf, String> {
    let (name, version) = GENERATOR;
    let place = base().join(name);
    let program = place.join("bin").join(name);
    if !program.exists() {
        let mut install = Command::new("cargo");
        install.args(["install", "--quiet", "--locked", name, "--version", version, "--root"]).arg(&place);
        run::run(&mut install, &format!("cargo install {name}"))?;
    }
    let dir = place.join(format!("sf{scale}"));
    let done = dir.join("done");
    if !done.exists() {
        run::capture(
            Command::new(&program).args(["csv", "--scale-factor", scale, "--output-dir"]).arg(&dir),
            PATIENCE,
        )?;
        std::fs::write(&done, "").map_err(|e| format!("{}: {e}", done.display()))?;
    }
    Ok(dir)
}

fn psql(system: &dyn System, commands: &[&str], limit: Duration) -> Result<String, String> {
    let mut command = Command::new("psql");
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", &system.url()]);
    commands.iter().for_each(|text| {
        command.args(["-c", text]);
    });
    run::capture(&mut command, limit)
}

fn load(system: &dyn System, data: &Path) -> Result<(), String> {
    psql(system, &[SCHEMA], PATIENCE)?;
    for table in TABLES {
        let copy = format!("\\copy {table} from '{}' csv header", data.join(format!("{table}.csv")).display());
        psql(system, &[&copy], PATIENCE)?;
    }
    psql(system, &["ANALYZE"], PATIENCE).map(drop)
}

/// A query's answer and how long it took, seconds, as psql measures it.
fn ask(system: &dyn System, query: &str) -> Result<(Vec<String>, f64), String> {
    let timeout = format!("SET statement_timeout = '{ANSWER_SECONDS_MAX}s'");
    let text = psql(system, &[&timeout, "\\timing on", query], Duration::from_secs(2 * ANSWER_SECONDS_MAX))?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let time = lines.iter().rposition(|line| line.starts_with("Time: ")).map(|at| lines.remove(at));
    let ms = time.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    Ok((lines, ms.ok_or("psql says no time")? / 1000.0))
}

fn table(options: &Options, base: &Path) -> Result<Vec<Row>, String> {
    let binary = options.binary.clone().map_or_else(systems::build_timeball, Ok)?;
    let data = data(&options.scale)?;
    let postgres = Postgres::start(&base.join("postgres"))?;
    let timeball = Timeball::start(&binary, &base.join("timeball"), &[])?;
    let both: [&dyn System; 2] = [&postgres, &timeball];
    for system in both {
        load(system, &data)?;
    }
    let numbers = (1..=QUERIES.len()).filter(|number| options.only.is_none_or(|only| only == *number));
    let mut rows: Vec<Row> =
        numbers.map(|number| Row { number, seconds: [Vec::new(), Vec::new()], verdict: Ok(()) }).collect();
    for round in 0..options.rounds {
        for row in rows.iter_mut().filter(|row| row.verdict.is_ok()) {
            let answers = both.map(|system| ask(system, QUERIES[row.number - 1]));
            match answers {
                [Ok((theirs, beside)), Ok((ours, taken))] => {
                    row.seconds[0].push(beside);
                    row.seconds[1].push(taken);
                    if theirs != ours {
                        row.verdict = Err(format!("Q{}: another answer than PostgreSQL's", row.number));
                    }
                    eprintln!("round {round}: Q{} {beside:.3} s, {taken:.3} s", row.number);
                }
                [_, Err(why)] | [Err(why), _] => {
                    let why = why.lines().find(|line| line.contains("ERROR")).unwrap_or("no answer").to_owned();
                    row.verdict = Err(format!("Q{}: {why}", row.number));
                }
            }
        }
    }
    Ok(rows)
}

fn report(options: &Options, rows: &[Row]) -> String {
    let mut text = format!(
        "# TPC-H beside PostgreSQL 15\n\nMachine: {}. Date: {}. Commit: {}. Scale factor {}, {} interleaved rounds, medians.\n\
         Repeat: `cargo x bench tpch --rounds {} --scale {} --write`. Goals: a geometric mean of at least {:.1}, no query below {:.1}, every answer the same.\n\n\
         | query | PostgreSQL 15, ms | Timeball, ms | ratio | answer |\n| --- | --- | --- | --- | --- |\n",
        machine(),
        output("date", &["+%Y-%m-%d"]),
        output("git", &["-C", &root().display().to_string(), "rev-parse", "--short", "HEAD"]),
        options.scale,
        options.rounds,
        options.rounds,
        options.scale,
        GOALS.0,
        GOALS.1,
    );
    for row in rows {
        let [beside, ours] = [0, 1].map(|n| median(row.seconds[n].iter().copied()) * 1000.0);
        let ratio = row.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let verdict = row.verdict.as_ref().map_or_else(|why| why.clone(), |()| "the same".into());
        let _ = writeln!(text, "| Q{} | {beside:.0} | {ours:.0} | **{ratio}** | {verdict} |", row.number);
    }
    let ratios: Vec<f64> = rows.iter().filter_map(Row::ratio).collect();
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len().max(1) as f64).exp();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let _ = writeln!(
        text,
        "\nGeometric mean **{mean:.2}**, least {least:.2}, {} of {} answered.",
        ratios.len(),
        rows.len()
    );
    text
}

//! `cargo x bench cluster`: three nodes on this machine beside three of etcd, and beside one node of Timeball.
//!
//! Rounds are interleaved, medians are shown, and what counts are the ratios. All nodes and the client share this machine's cores, so absolute figures say little.

mod bulk;
mod sql;
mod systems;

use super::report::{machine, median, output};
use super::systems::{Node, build_timeball};
use super::workload::{Sample, pgbench_sample};
use crate::run::{self, root};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use systems::{Etcd, Timeball, sql};

/// Rows of the table that is updated.
const ROWS: u32 = 10_000;
/// A run that takes so much longer than it should hangs.
const PATIENCE: Duration = Duration::from_secs(600);
/// The clients of the rows of the table.
const CLIENTS: [u32; 3] = [1, 16, 64];
/// Of the rows with one number of clients.
const MANY: u32 = 16;

struct Options {
    rounds: usize,
    seconds: u64,
    binary: Option<PathBuf>,
    /// Idle ranges to make; 0: not measured.
    idle: u32,
    /// The table of SQL instead.
    sql: bool,
    /// Very many rows instead, so many.
    bulk: bool,
    rows: u64,
    /// What a node may take of the machine's memory there, as its flag has it.
    memory: String,
    write: bool,
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        rounds: 3,
        seconds: 6,
        binary: None,
        idle: 0,
        sql: false,
        bulk: false,
        rows: 10_000_000,
        memory: "4GiB".to_owned(),
        write: false,
    };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let switch = match flag.as_str() {
            "--write" => Some(&mut options.write),
            "--sql" => Some(&mut options.sql),
            "--bulk" => Some(&mut options.bulk),
            _ => None,
        };
        if let Some(switch) = switch {
            *switch = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
        let number = || value.parse::<u32>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag.as_str() {
            "--rounds" => options.rounds = number()?.max(1) as usize,
            "--seconds" => options.seconds = u64::from(number()?.max(1)),
            "--rows" => options.rows = u64::from(number()?.max(1)),
            "--memory" => options.memory = value.clone(),
            "--idle-ranges" => options.idle = number()?,
            "--binary" => options.binary = Some(PathBuf::from(value)),
            _ => return Err(format!("unknown option {flag}")),
        }
    }
    Ok(options)
}

/// Reads the options and runs the table.
pub fn bench(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    let base = std::env::temp_dir().join(format!("timeball-bench-cluster-{}", std::process::id()));
    std::fs::create_dir_all(&base).map_err(|e| format!("{}: {e}", base.display()))?;
    let (result, kind) = match (options.bulk, options.sql) {
        (true, _) => (bulk::table(&options, &base), "-bulk"),
        (false, true) => (sql::table(&options, &base), "-sql"),
        (false, false) => (table(&options, &base), ""),
    };
    let _ = std::fs::remove_dir_all(&base);
    let text = result?;
    print!("{text}");
    if options.write {
        let path = root().join(format!("docs/benchmarks/{}-cluster{kind}.md", output("date", &["+%Y-%m-%d"])));
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        eprintln!("kept in {}", path.display());
    }
    Ok(())
}

/// A script for pgbench, in a file.
struct Script(PathBuf);

impl Script {
    fn new(dir: &Path, name: &str, text: &str) -> Result<Script, String> {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Script(path))
    }

    /// Transactions a second.
    fn run(&self, port: u16, clients: u32, seconds: u64) -> Result<f64, String> {
        let mut command = Command::new("pgbench");
        command.args(["-n", "-M", "prepared", "-T", &seconds.to_string(), "-c", &clients.to_string()]);
        command.args(["-j", &clients.min(2).to_string(), "-f"]).arg(&self.0);
        command.args(["--max-tries", "10", &format!("postgresql://root@127.0.0.1:{port}/bench")]);
        rate(&pgbench_sample(&run::capture(&mut command, Duration::from_secs(seconds) + PATIENCE)?)?)
    }
}

/// What counts of a run: no transaction may fail.
fn rate(sample: &Sample) -> Result<f64, String> {
    if sample.failed > 0 { Err(format!("{} transactions failed", sample.failed)) } else { Ok(sample.tps) }
}

/// Processor time of a process so far, microseconds.
fn cpu_us(pid: u32) -> Result<f64, String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|e| e.to_string())?;
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    // The kernel's ticks are a hundredth of a second wherever Linux runs today.
    Ok((ticks(11) + ticks(12)) * 10_000.0)
}

/// A table of rows, in two ranges where `split`.
fn load(port: u16, table: &str, split: bool) -> Result<(), String> {
    sql(port, "bench", &format!("CREATE TABLE {table} (id int PRIMARY KEY, v int NOT NULL)"))?;
    if split {
        sql(port, "bench", &format!("ALTER TABLE {table} SPLIT AT VALUES (0), ({})", ROWS / 2))?;
    }
    sql(port, "bench", &format!("INSERT INTO {table} SELECT g, 0 FROM generate_series(0, {}) g", ROWS - 1)).map(drop)
}

/// One row of the table: what is measured, and the two rates of each round.
struct Row {
    name: String,
    beside: &'static str,
    goal: &'static str,
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

fn table(options: &Options, base: &Path) -> Result<String, String> {
    let binary = options.binary.clone().map_or_else(build_timeball, Ok)?;
    let update = Script::new(base, "update", "\\set id random(0, 9999)\nUPDATE t SET v = v + 1 WHERE id = :id;\n")?;
    let select = Script::new(base, "select", "\\set id random(0, 9999)\nSELECT v FROM t WHERE id = :id;\n")?;
    let pair = |name: &str, high: u32| {
        let text = format!(
            "\\set a random(0, 4999)\n\\set b random({high}, {})\nBEGIN;\nUPDATE two SET v = v - 1 WHERE id = :a;\nUPDATE two SET v = v + 1 WHERE id = :b;\nCOMMIT;\n",
            high + 4999
        );
        Script::new(base, name, &text)
    };
    let (within, across) = (pair("within", 0)?, pair("across", 5000)?);
    let etcd = Etcd::start(base)?;
    let cluster = Timeball::start(&binary, base)?;
    load(cluster.node(0).port, "t", false)?;
    load(cluster.node(0).port, "two", true)?;
    let alone = Timeball::alone(&binary, &base.join("alone"))?;
    sql(alone.port, "postgres", "CREATE DATABASE bench")?;
    load(alone.port, "t", false)?;
    let row = |name: String, beside, goal| Row { name, beside, goal, ours: Vec::new(), theirs: Vec::new() };
    let mut updates: Vec<Row> = Vec::new();
    for clients in CLIENTS {
        let goal = if clients == 1 { "" } else { "at least 2" };
        updates.push(row(format!("updates by key, {clients} clients, per second"), "etcd, puts", goal));
    }
    let mut cpu =
        row(format!("processor µs per point select at the leader, {MANY} clients"), "one node", "at most 1.25");
    let mut ranges =
        row(format!("transactions over two ranges, {MANY} clients, per second"), "over one range", "at least 0.5");
    for round in 0..options.rounds {
        // The first range holds the catalog and the table `t`: the node that leads it now.
        let leader = cluster.leader("ORDER BY start_key")?;
        let (port, seconds) = (cluster.node(leader).port, options.seconds);
        for (row, clients) in updates.iter_mut().zip(CLIENTS) {
            row.theirs.push(etcd.puts(clients, seconds)?);
            row.ours.push(update.run(port, clients, seconds)?);
        }
        let per_select = |node: &Node| {
            let before = cpu_us(node.pid())?;
            let rate = select.run(node.port, MANY, seconds)?;
            Ok::<f64, String>((cpu_us(node.pid())? - before) / (rate * seconds as f64))
        };
        // What was just written is still on its way to the engine there, so here, too.
        update.run(alone.port, CLIENTS[CLIENTS.len() - 1], seconds)?;
        cpu.theirs.push(per_select(&alone)?);
        cpu.ours.push(per_select(cluster.node(leader))?);
        ranges.theirs.push(within.run(port, MANY, seconds)?);
        ranges.ours.push(across.run(port, MANY, seconds)?);
        eprintln!("round {round} is done");
    }
    updates.push(cpu);
    updates.push(ranges);
    let mut text = page("Three nodes", "cargo x bench cluster --write", options, &updates);
    if options.idle > 0 {
        // Nodes of their own: what others keep in their caches is what they read before.
        drop((cluster, alone, etcd));
        text.push_str(&idle(&Timeball::start(&binary, &base.join("idle"))?, options.idle)?);
    }
    Ok(text)
}

/// A page with the medians of rows, and the ratios of their rounds.
fn page(title: &str, command: &str, options: &Options, rows: &[Row]) -> String {
    let mut text = format!(
        "# {title}\n\nMachine: {}, shared by all nodes and the client. Date: {}. Commit: {}. {} interleaved rounds of {} s, medians. All nodes sync.\n\
         Repeat: `{command}`.\n\n\
         | what | Timeball, three nodes | beside | | ratio | ratios of the rounds | goal |\n| --- | --- | --- | --- | --- | --- | --- |\n",
        machine(),
        output("date", &["+%Y-%m-%d"]),
        output("git", &["rev-parse", "--short", "HEAD"]),
        options.rounds,
        options.seconds,
    );
    for Row { name, beside, goal, ours, theirs } in rows {
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        let each: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        text.push_str(&format!(
            "| {name} | {:.0} | {beside} | {:.0} | **{:.2}** | {} | {goal} |\n",
            median(ours.iter().copied()),
            median(theirs.iter().copied()),
            median(ratios.iter().copied()),
            each.join(" "),
        ));
    }
    text
}

/// How long idle nodes are looked at.
const IDLE_LOOK: Duration = Duration::from_secs(20);
/// Ranges that one statement splits off.
const SPLITS_PER_STATEMENT: u32 = 100;

/// What a node with many idle ranges costs.
fn idle(cluster: &Timeball, ranges: u32) -> Result<String, String> {
    cluster.sql(0, "bench", "CREATE TABLE many (id int PRIMARY KEY)")?;
    for first in (0..ranges).step_by(SPLITS_PER_STATEMENT as usize) {
        let values: Vec<String> =
            (first..(first + SPLITS_PER_STATEMENT).min(ranges)).map(|id| format!("({id})")).collect();
        cluster.sql(0, "bench", &format!("ALTER TABLE many SPLIT AT VALUES {}", values.join(", ")))?;
    }
    // Elections and flushes of what was made last.
    std::thread::sleep(IDLE_LOOK);
    let pids: Vec<u32> = (0..systems::NODES).map(|at| cluster.node(at).pid()).collect();
    let before: Vec<f64> = pids.iter().map(|pid| cpu_us(*pid)).collect::<Result<_, _>>()?;
    std::thread::sleep(IDLE_LOOK);
    let mut text = format!("\n| {ranges} idle ranges | percent of a core | resident MiB |\n| --- | --- | --- |\n");
    for (at, (pid, before)) in pids.iter().zip(before).enumerate() {
        let percent = (cpu_us(*pid)? - before) / IDLE_LOOK.as_micros() as f64 * 100.0;
        let pages = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) >> 8;
        text.push_str(&format!("| n{} | {percent:.1} | {resident} |\n", at + 1));
    }
    Ok(text + "\nGoal: under 2 % of a core and 200 MiB per node, with 10,000.\n")
}

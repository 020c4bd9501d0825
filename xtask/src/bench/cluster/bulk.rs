//! `cargo x bench cluster --bulk`: very many rows by COPY and INSERT .. SELECT on three nodes, with a follower that stops and is slow, and nodes that are killed.
//!
//! What is looked at: memory stays steady however many rows there are; a follower that falls behind slows the writer down, and costs it nothing else; and a load whose leader or whose own node
//! is killed in the middle is there whole, or not at all, at every node.

mod watch;

use super::systems::{NODES, Timeball};
use super::{Options, cpu_us};
use crate::bench::report::{machine, output};
use crate::bench::systems::build_timeball;
use crate::run;
use std::io::{BufWriter, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use watch::{Watch, Watched};

/// The follower does nothing for so long.
const STOPPED: Duration = Duration::from_secs(30);
/// Then it is slow for so long: it runs and stands by turns of so long each.
const SLOW: Duration = Duration::from_secs(30);
const SLOW_TURN: Duration = Duration::from_millis(200);
/// A load that takes longer hangs: so long, and so long more for each million rows.
const PATIENCE: Duration = Duration::from_secs(900);
const PATIENCE_PER_MILLION: Duration = Duration::from_secs(600);
/// What a killed node leaves behind is cleared away by then.
const SETTLES: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Rows that are written at the end where a load has left none: its keys are free.
const AGAIN_ROWS: u64 = 1000;

/// What one load came to.
struct Load {
    name: String,
    rows: u64,
    took: Duration,
    /// Processor time of each node, microseconds.
    cpu_us: Vec<f64>,
    watched: Watched,
    /// What the client heard, if it was an error.
    error: Option<String>,
}

fn signal(pid: u32, name: &str) -> Result<(), String> {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("kill -{name} {pid}: {other:?}")),
    }
}

fn patience(rows: u64) -> Duration {
    PATIENCE + PATIENCE_PER_MILLION * u32::try_from(rows / 1_000_000).unwrap_or(u32::MAX).min(1000)
}

/// A node that neither leads the table nor is spoken to.
fn follower(leader: usize, gateway: usize) -> usize {
    (0..NODES).find(|at| *at != leader && *at != gateway).unwrap_or(0)
}

/// Rows for COPY. The load ends there when somebody closes the other end.
fn feed(pipe: impl Write, rows: u64) {
    let mut pipe = BufWriter::new(pipe);
    // Whoever reads says what came of it.
    let _ = (1..=rows).try_for_each(|id| writeln!(pipe, "{id}\tvalue of {id}")).and_then(|()| pipe.flush());
}

/// Runs a COPY of so many rows; `meanwhile` runs beside it, and is told when it is over.
fn copy(
    cluster: &Timeball,
    gateway: usize,
    table: &str,
    rows: u64,
    meanwhile: impl FnOnce(&AtomicBool) -> Result<(), String> + Send,
) -> Result<Option<String>, String> {
    let over = &AtomicBool::new(false);
    let url = cluster.url_of(gateway, "bench");
    let mut command = Command::new("psql");
    command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", &format!("COPY {table} FROM STDIN"), &url]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn().map_err(|e| format!("cannot start psql: {e}"))?;
    let (stdin, stderr) = (child.stdin.take().ok_or("no input")?, child.stderr.take().ok_or("no errors")?);
    std::thread::scope(|scope| {
        scope.spawn(move || feed(stdin, rows));
        let told = scope.spawn(move || std::io::read_to_string(stderr).unwrap_or_default());
        let beside = scope.spawn(move || meanwhile(over));
        let status = run::wait(&mut child, patience(rows)).map_err(|e| e.to_string());
        over.store(true, Relaxed);
        let status = status?;
        beside.join().map_err(|_| "a thread panicked".to_owned())??;
        let told = told.join().unwrap_or_default();
        match status {
            Some(status) if status.success() => Ok(None),
            Some(_) => Ok(Some(told.trim().to_owned())),
            None => Err(format!("COPY of {rows} rows was ended after {} s: {told}", patience(rows).as_secs())),
        }
    })
}

/// Stops a follower for a while, then has it run by turns.
fn disturb(pid: u32, stop: &mpsc::Receiver<()>) -> Result<(), String> {
    let is_over = |wait: Duration| !matches!(stop.recv_timeout(wait), Err(RecvTimeoutError::Timeout));
    signal(pid, "STOP")?;
    let mut over = is_over(STOPPED);
    signal(pid, "CONT")?;
    let began = Instant::now();
    while !over && began.elapsed() < SLOW {
        over = is_over(SLOW_TURN);
        signal(pid, "STOP")?;
        over |= is_over(SLOW_TURN);
        signal(pid, "CONT")?;
    }
    Ok(())
}

/// Runs a load, and watches the nodes; of those that are not there nothing is known.
fn watched(
    cluster: &Timeball,
    (name, rows, asked): (&str, u64, usize),
    load: impl FnOnce() -> Result<Option<String>, String>,
) -> Result<Load, String> {
    eprintln!("── {name}");
    let pids: Vec<u32> = (0..NODES).map(|at| cluster.node(at).pid()).collect();
    let cpu = || -> Vec<f64> { pids.iter().map(|pid| cpu_us(*pid).unwrap_or(f64::NAN)).collect() };
    let (before, began) = (cpu(), Instant::now());
    let watch = Watch::start(&pids, &cluster.url_of(asked, "bench"));
    let error = load();
    let (took, watched) = (began.elapsed(), watch.end());
    let cpu_us = cpu().iter().zip(before).map(|(after, before)| after - before).collect();
    let error = error?;
    eprintln!("── {:.0} s: {name}{}", took.as_secs_f64(), error.as_ref().map_or(String::new(), |e| format!(": {e}")));
    Ok(Load { name: name.to_owned(), rows, took, cpu_us, watched, error })
}

/// Rows of a table, as each of these nodes counts them; they must agree.
fn counted(cluster: &Timeball, nodes: &[usize], table: &str) -> Result<u64, String> {
    let mut counts = Vec::new();
    for at in nodes {
        let query = format!("SELECT count(*), coalesce(max(id), 0) FROM {table} WHERE v LIKE '%' || id");
        let told = cluster.sql_within(*at, "bench", &query, PATIENCE)?;
        let (all, last) = told.trim().split_once('|').ok_or_else(|| format!("no counts: {told:?}"))?;
        if all != last {
            return Err(format!("n{} has {all} rows of {table}, and the last is {last}", at + 1));
        }
        counts.push(all.parse::<u64>().map_err(|e| format!("{all}: {e}"))?);
    }
    match counts.windows(2).all(|two| two[0] == two[1]) {
        true => Ok(counts.first().copied().unwrap_or(0)),
        false => Err(format!("nodes do not agree on {table}: {counts:?} rows")),
    }
}

/// What a load that met a killed node has left must be all or nothing, and be what its client heard; and its keys are free where there is nothing.
fn is_whole(cluster: &Timeball, nodes: &[usize], table: &str, load: &Load) -> Result<String, String> {
    let began = Instant::now();
    let count = loop {
        match counted(cluster, nodes, table) {
            Ok(count) => break count,
            Err(why) if began.elapsed() > SETTLES => return Err(why),
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    };
    match (count, &load.error) {
        (0, None) => return Err(format!("{table}: COPY was acknowledged, and none of its rows is there")),
        (0, Some(_)) => {
            let again = format!("INSERT INTO {table} SELECT g, 'again ' || g FROM generate_series(1, {AGAIN_ROWS}) g");
            cluster.sql(nodes[0], "bench", &again).map_err(|e| format!("{table} is not free: {e}"))?;
        }
        (all, _) if all == load.rows => {}
        (some, _) => return Err(format!("{table} is half-done: {some} of {} rows", load.rows)),
    }
    let heard = load.error.as_deref().and_then(|e| e.lines().next()).unwrap_or("COPY");
    Ok(format!("{count} rows after {:.1} s; the client heard: {heard}", began.elapsed().as_secs_f64()))
}

/// Kills a node when half of the rows have been taken, as another node says.
fn kill_half_way(pid: u32, rows: u64, asked: &str, over: &AtomicBool) -> Result<(), String> {
    while watch::rows_taken(asked).is_none_or(|taken| taken < rows / 2) {
        if over.load(Relaxed) {
            return Err("the load was over before its node was killed: too few rows".to_owned());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    signal(pid, "KILL")
}

/// The table.
pub fn table(options: &Options, base: &Path) -> Result<String, String> {
    let binary = options.binary.clone().map_or_else(build_timeball, Ok)?;
    let mut cluster = Timeball::start_with(&binary, base, &options.memory)?;
    let (rows, mut loads, mut found) = (options.rows, Vec::new(), Vec::new());
    for table in ["first", "copied", "second", "third"] {
        cluster.sql(0, "bench", &format!("CREATE TABLE {table} (id bigint PRIMARY KEY, v text)"))?;
    }
    let leader = cluster.leader("ORDER BY start_key DESC")?;
    // Through a node that leads nothing: all of it goes over the network, and who leads is to hold it back.
    let gateway = (leader + 1) % NODES;
    let slow = cluster.node(follower(leader, gateway)).pid();
    let name = format!("COPY, through n{}, led by n{}, undisturbed", gateway + 1, leader + 1);
    loads.push(watched(&cluster, (&name, rows, leader), || copy(&cluster, gateway, "first", rows, |_| Ok(())))?);
    let insert = "INSERT INTO copied SELECT id, v FROM first";
    let name = format!("INSERT .. SELECT; a follower stands for {} s, then runs half of the time", STOPPED.as_secs());
    let disturbed = || {
        let (stop, stopped) = mpsc::channel();
        std::thread::scope(|scope| {
            let disturbs = scope.spawn(move || disturb(slow, &stopped));
            let done = cluster.sql_within(gateway, "bench", insert, patience(rows));
            drop(stop);
            disturbs.join().map_err(|_| "a thread panicked".to_owned())??;
            Ok(done.err())
        })
    };
    loads.push(watched(&cluster, (&name, rows, leader), disturbed)?);
    for (load, table) in loads.iter().zip(["first", "copied"]) {
        let count = counted(&cluster, &[0, 1, 2], table)?;
        if load.error.is_some() || count != rows {
            return Err(format!("{}: {count} of {rows} rows; {:?}", load.name, load.error));
        }
    }
    for (table, whose) in [("second", "the leader"), ("third", "the node of the client")] {
        let leader = cluster.leader("ORDER BY start_key DESC")?;
        let gateway = (leader + 1) % NODES;
        let killed = if table == "second" { leader } else { gateway };
        let others: Vec<usize> = (0..NODES).filter(|at| *at != killed).collect();
        let pid = cluster.node(killed).pid();
        let name = format!("COPY; {whose}, n{}, is killed half-way", killed + 1);
        let asked = cluster.url_of(others[0], "bench");
        let half_way = |over: &AtomicBool| kill_half_way(pid, rows, &asked, over);
        let load = watched(&cluster, (&name, rows, others[0]), || copy(&cluster, gateway, table, rows, half_way))?;
        found.push(format!("{name}: at the two others {}", is_whole(&cluster, &others, table, &load)?));
        loads.push(load);
        cluster.restart(killed)?;
        let began = Instant::now();
        while let Err(why) = counted(&cluster, &[0, 1, 2], table) {
            if began.elapsed() > SETTLES {
                return Err(format!("n{} does not come to what the others have: {why}", killed + 1));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        found.push(format!("n{}, started again, has the same", killed + 1));
    }
    Ok(page(options, &loads, &found))
}

fn page(options: &Options, loads: &[Load], found: &[String]) -> String {
    let mut text = format!(
        "# Very many rows on three nodes\n\nMachine: {}, shared by all nodes and the client. Date: {}. Commit: {}. {} rows of some 30 bytes each time, `--memory {}`. All nodes sync.\n\
         Repeat: `cargo x bench cluster --bulk --rows {} --memory {} --write`.\n\n\
         | what | s | rows a second | processor s of n1, n2, n3 | resident MiB of n1, n2, n3: before; at 1/4, 1/2, 3/4 of the time; greatest |\n| --- | --- | --- | --- | --- |\n",
        machine(),
        output("date", &["+%Y-%m-%d"]),
        output("git", &["rev-parse", "--short", "HEAD"]),
        options.rows,
        options.memory,
        options.rows,
        options.memory,
    );
    for load in loads {
        let rate = if load.error.is_none() {
            format!("{:.0}", load.rows as f64 / load.took.as_secs_f64())
        } else {
            String::new()
        };
        let cpu: Vec<String> = load.cpu_us.iter().map(|us| format!("{:.1}", us / 1e6)).collect();
        let (took, cpu) = (load.took.as_secs_f64(), cpu.join(", "));
        text.push_str(&format!("| {} | {took:.1} | {rate} | {cpu} | {} |\n", load.name, load.watched.memory()));
    }
    text.push_str("\nRows that had been taken, as another node showed it in `pg_stat_progress_copy`, by time:\n\n");
    for load in loads {
        if let Some(progress) = load.watched.progress() {
            text.push_str(&format!("- {}: {progress}\n", load.name));
        }
    }
    text.push_str("\nAfter the kills:\n\n");
    found.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
    text
}

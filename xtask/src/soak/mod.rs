//! `cargo x soak`: whether a node stays within its memory, under a mixed load, and does not grow while nobody asks anything of it.
//!
//! A node is started with `--memory`; workers ([`load`]) update rows, copy, sort what does not fit, delete, and come and go by the hundred.
//! Its memory in the machine's is looked at every second. Then the load ends, and it is looked at for a sixth of that time again. What
//! the node refuses for want of memory (53200) is counted, not an error: refusing is how it stays within it. [`judge`] sees samples only.

mod judge;
mod load;

use crate::bench::systems::{Node, build_timeball};
use crate::process;
use crate::run::root;
use judge::Sample;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A line is printed so often.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// And where the node has so much more than ever before.
const SAID_GROWTH_BYTES: u64 = 64 << 20;
/// The time without load is this part of the time with it.
const IDLE_PART: u32 = 6;

#[derive(Debug, PartialEq)]
struct Options {
    memory: String,
    length: Duration,
    binary: Option<PathBuf>,
    /// Workers whose names begin so; empty: all.
    only: String,
}

fn parse(args: &[String]) -> Result<Options, String> {
    let mut options =
        Options { memory: "1GiB".into(), length: Duration::from_secs(3600), binary: None, only: String::new() };
    let mut args = args.iter();
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            // The node knows its units, and refuses what is none.
            "--memory" => options.memory = value.clone(),
            "--minutes" => {
                let minutes: f64 = value.parse().map_err(|_| format!("--minutes {value}: not a number"))?;
                options.length =
                    Duration::try_from_secs_f64(minutes * 60.0).map_err(|e| format!("--minutes {value}: {e}"))?;
            }
            "--only" => options.only = value.clone(),
            "--binary" => options.binary = Some(PathBuf::from(value)),
            _ => return Err(format!("unknown option {flag}")),
        }
    }
    Ok(options)
}

/// Runs it.
pub fn soak(args: &[String]) -> Result<(), String> {
    let options = parse(args)?;
    let binary = options.binary.clone().map_or_else(build_timeball, Ok)?;
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), PathBuf::from);
    let dir = target.join(format!("soak-{}", std::process::id()));
    let result = run(&options, &binary, &dir);
    let _ = std::fs::remove_dir_all(&dir);
    let text = result?;
    println!("{text}");
    Ok(())
}

fn run(options: &Options, binary: &std::path::Path, dir: &std::path::Path) -> Result<String, String> {
    // The versions that the updates leave behind are to go while it runs.
    let flags = ["--memory", options.memory.as_str(), "--retention", "30s"].map(str::to_owned);
    let node = Node::start_with(binary, dir, Stdio::inherit(), &flags)?;
    let limit = metric(&node, "memory_limit_bytes")?;
    let url = format!("postgresql://root@127.0.0.1:{}/postgres?sslmode=disable", node.port);
    load::prepare(&url)?;
    let stop = AtomicBool::new(false);
    let (busy, done) = std::thread::scope(|scope| {
        let workers: Vec<_> = load::WORKERS
            .iter()
            .filter(|worker| worker.name.starts_with(&options.only))
            .map(|worker| (worker.name, scope.spawn(|| worker.run(&url, &stop))))
            .collect();
        let busy = look(&node, options.length, "under load");
        stop.store(true, Ordering::Relaxed);
        let done: Vec<_> = workers.into_iter().map(|(name, worker)| (name, worker.join())).collect();
        (busy, done)
    });
    let mut text = String::new();
    for (name, done) in done {
        let done = done.map_err(|_| format!("{name} panicked"))?.map_err(|e| format!("{name}: {e}"))?;
        text += &format!(
            "{name}: {} done, {} refused for want of memory, {} to be repeated\n",
            done.done, done.refused, done.repeated
        );
        for (reason, times) in &done.reasons {
            text += &format!("  {times} times: {reason}\n");
        }
    }
    let idle = look(&node, options.length / IDLE_PART, "idle")?;
    let verdict = judge::judge(&busy?, &idle, limit);
    eprint!("{text}");
    verdict
}

fn metric(node: &Node, name: &str) -> Result<u64, String> {
    let page = node.get("/metrics")?;
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.ok_or_else(|| format!("the node does not say {name}"))
}

/// What the node says that it holds, mebibytes.
fn holds(node: &Node) -> Result<String, String> {
    let page = node.get("/metrics")?;
    let sizes = page.lines().filter(|line| line.starts_with("store_") || line.starts_with("memory_"));
    let size = |line: &str| {
        let (name, bytes) = line.split_once("_bytes ")?;
        Some(format!("{name} {}", bytes.parse::<u64>().ok()? >> 20))
    };
    Ok(sizes.filter_map(size).collect::<Vec<_>>().join(", "))
}

/// Looks at the node's memory for so long.
fn look(node: &Node, length: Duration, what: &str) -> Result<Vec<Sample>, String> {
    let (began, mut said, mut said_bytes, mut samples) = (Instant::now(), Instant::now(), 0, Vec::new());
    loop {
        let sample =
            Sample { at_seconds: began.elapsed().as_secs(), resident_bytes: process::resident_bytes(node.pid())? };
        samples.push(sample);
        if said.elapsed() >= SAY_EVERY || sample.resident_bytes > said_bytes + SAID_GROWTH_BYTES {
            (said, said_bytes) = (Instant::now(), sample.resident_bytes.max(said_bytes));
            // One that is too busy to say is still looked at.
            let holds = holds(node).unwrap_or_else(|why| why);
            eprintln!("{what}: {} s, {} MiB: {holds}", sample.at_seconds, sample.resident_bytes >> 20);
        }
        if began.elapsed() >= length {
            return Ok(samples);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let line = |text: &str| parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let options = line("--memory 512MiB --minutes 0.5").unwrap();
        assert_eq!((options.memory.as_str(), options.length), ("512MiB", Duration::from_secs(30)));
        assert_eq!(line("").unwrap().length, Duration::from_secs(3600));
        assert!(line("--minutes x").is_err() && line("--minutes -1").is_err() && line("--hours 1").is_err());
    }
}

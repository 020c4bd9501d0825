//! pgbench: runs it, and reads its report and its log of transactions.

use super::Run;
use super::state::Measured;
use crate::bench::report::median;
use crate::bench::systems::System;
use crate::run;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// pgbench's own scripts: the name in the table, its flag, and which part of the transactions is logged.
pub const SCRIPTS: [(&str, &[&str], &str); 3] = [("-S", &["-S"], "0.1"), ("-N", &["-N"], "1"), ("TPC-B", &[], "1")];
const CLIENTS: &str = "16";
/// A run or a load that takes so much longer than it should hangs.
const PATIENCE: Duration = Duration::from_secs(900);

/// Figures of each script: `SCRIPT tps`, `SCRIPT p99 ms`, `SCRIPT slowest` (the slowest second as a part of the median one).
pub fn run(run: &Run<'_>) -> Result<Measured, String> {
    let mut measured = Measured::new();
    load(run.system, run.lengths.scale)?;
    for (name, flags, sampling) in SCRIPTS {
        let flags = [flags, &["-c", CLIENTS, "-j", "2", "--sampling-rate", sampling]].concat();
        let (text, log) = logged(run, &flags, run.lengths.pgbench_seconds, &[])?;
        measured.put(format!("{name} tps"), report(&text, "tps = ")?);
        measured.put(format!("{name} p99 ms"), log.percentile_ms(0.99));
        measured.put(format!("{name} slowest"), log.slowest_second());
    }
    Ok(measured)
}

/// `pgbench -i`; gives the seconds it took.
pub fn load(system: &dyn System, scale: u32) -> Result<f64, String> {
    let began = Instant::now();
    run::capture(Command::new("pgbench").args(["-i", "-q", "-s", &scale.to_string(), &system.url()]), PATIENCE)?;
    Ok(began.elapsed().as_secs_f64())
}

/// Runs pgbench with prepared statements for so long and gives its report.
pub fn pgbench(system: &dyn System, flags: &[&str], seconds: u64) -> Result<String, String> {
    let mut command = Command::new("pgbench");
    command.args(["-n", "-M", "prepared", "-T", &seconds.to_string()]).args(flags).arg(system.url());
    run::capture(&mut command, Duration::from_secs(seconds) + PATIENCE)
}

/// As [`pgbench`], and gives its log, too. `environment` is for libpq.
pub fn logged(
    run: &Run<'_>,
    flags: &[&str],
    seconds: u64,
    environment: &[(&str, &str)],
) -> Result<(String, Log), String> {
    let dir = run.dir.join("log");
    let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
    std::fs::create_dir_all(&dir).map_err(failed)?;
    let mut command = Command::new("pgbench");
    command.args(["-n", "-M", "prepared", "-l", "--failures-detailed", "-T", &seconds.to_string()]).args(flags);
    command.arg("--log-prefix").arg(dir.join("log")).arg(run.system.url()).envs(environment.iter().copied());
    let text = run::capture(&mut command, Duration::from_secs(seconds) + PATIENCE)?;
    let log = Log::read(&dir);
    std::fs::remove_dir_all(&dir).map_err(failed)?;
    Ok((text, log?))
}

/// A number of pgbench's report, by what stands before it.
pub fn report(text: &str, before: &str) -> Result<f64, String> {
    let line = text.lines().find_map(|line| line.strip_prefix(before));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| format!("no {before:?} in pgbench's output:\n{text}"))
}

/// The transactions of a run, or a fair part of them.
#[derive(Debug, Default, PartialEq)]
pub struct Log {
    latencies_us: Vec<u64>,
    /// Those that succeeded, by the second in which they ended.
    seconds: BTreeMap<u64, u64>,
}

impl Log {
    /// Reads every file of a directory: each of pgbench's threads has its own.
    fn read(dir: &Path) -> Result<Log, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
        let mut log = Log::default();
        for entry in std::fs::read_dir(dir).map_err(failed)? {
            log.add(&std::fs::read_to_string(entry.map_err(failed)?.path()).map_err(failed)?);
        }
        Ok(log)
    }

    /// Lines of: client, transaction, microseconds (or a word where it failed), script, second, microsecond.
    fn add(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split(' ');
            if let (Some(Ok(latency)), Some(Ok(second))) = (words.nth(2).map(str::parse), words.nth(1).map(str::parse))
            {
                self.latencies_us.push(latency);
                *self.seconds.entry(second).or_default() += 1;
            }
        }
    }

    /// So much of all transactions took at most so long.
    fn percentile_ms(&self, part: f64) -> f64 {
        let mut sorted = self.latencies_us.clone();
        sorted.sort_unstable();
        let at = (sorted.len() as f64 * part).ceil() as usize;
        sorted.get(at.saturating_sub(1)).map_or(0.0, |us| *us as f64 / 1000.0)
    }

    /// What each whole second did. The first and the last are cut by the run's ends; one in between in which nothing ended is 0.
    fn whole_seconds(&self) -> Vec<u64> {
        let (Some((first, _)), Some((last, _))) = (self.seconds.first_key_value(), self.seconds.last_key_value())
        else {
            return Vec::new();
        };
        (first + 1..*last).map(|second| self.seconds.get(&second).copied().unwrap_or(0)).collect()
    }

    /// The slowest second as a part of the median one.
    fn slowest_second(&self) -> f64 {
        let seconds = self.whole_seconds();
        let slowest = seconds.iter().min().copied().unwrap_or(0);
        slowest as f64 / median(seconds.iter().map(|n| *n as f64)).max(1.0)
    }

    /// Transactions a second in the first `window` whole seconds, and in the last.
    pub fn ends(&self, window: usize) -> (f64, f64) {
        let seconds = self.whole_seconds();
        let window = window.clamp(1, seconds.len().max(1));
        let rate = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len().max(1) as f64;
        (rate(&seconds[..window.min(seconds.len())]), rate(&seconds[seconds.len().saturating_sub(window)..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read() {
        let text =
            "transaction type: x\nnumber of serialization failures: 12 (0.5%)\ntps = 3033.25 (without initial)\n";
        assert_eq!(report(text, "tps = "), Ok(3033.25));
        assert_eq!(report(text, "number of serialization failures: "), Ok(12.0));
        assert!(report(text, "latency average = ").is_err());
    }

    #[test]
    fn a_log_says_how_slow_the_slowest_was() {
        let mut log = Log::default();
        // The first and last second are cut; in second 13 nothing ends; one failed.
        for (second, count) in [(10, 1), (11, 100), (12, 80), (14, 60), (15, 90), (16, 2)] {
            for n in 0..count {
                log.add(&format!("0 {n} {} 0 {second} 500\n", 1000 + n));
            }
        }
        log.add("0 7 serialization 0 12 500\n1 2 failed 0 12 500\n");
        assert_eq!(log.whole_seconds(), [100, 80, 0, 60, 90]);
        assert_eq!((log.slowest_second(), log.ends(2), log.ends(100)), (0.0, (90.0, 75.0), (66.0, 66.0)));
        assert_eq!((log.percentile_ms(0.5), log.percentile_ms(1.0)), (1.04, 1.099));
        let nothing = Log::default();
        assert_eq!((nothing.percentile_ms(0.99), nothing.slowest_second(), nothing.ends(3)), (0.0, 0.0, (0.0, 0.0)));
    }
}

//! go-tpc: how it is installed, called and read.

use crate::bench::systems::System;
use crate::run;
use crate::tools::install::base;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The program, and its version.
pub const MODULE: &str = "go-tpc";
const ADDRESS: &str = "github.com/pingcap/go-tpc/cmd/go-tpc";
/// An exact one: the proxy lists no other than the oldest, which speaks to no PostgreSQL.
pub const VERSION: &str = "v1.0.12";

/// Loading a warehouse, or checking it, takes no longer.
const PATIENCE: Duration = Duration::from_secs(600);

/// Installs it, once.
///
/// # Errors
/// Go is missing, or failed.
pub fn install() -> Result<PathBuf, String> {
    let place = base().join(MODULE).join(VERSION);
    let program = place.join(MODULE);
    if !program.exists() {
        let mut go = Command::new("go");
        go.args(["install", &format!("{ADDRESS}@{VERSION}")]).env("GOBIN", &place).env("GOFLAGS", "-mod=mod");
        run::run(&mut go, &format!("go install {ADDRESS}@{VERSION}"))?;
    }
    Ok(program)
}

/// It beside a system.
pub struct Client<'a> {
    pub program: &'a Path,
    pub system: &'a dyn System,
    pub warehouses: u32,
}

/// What a run gave.
#[derive(Debug, PartialEq)]
pub struct Ran {
    pub new_orders_per_minute: f64,
    /// Transactions that committed.
    pub done: u64,
    /// Those that were refused with 40001.
    pub refused: u64,
    /// Those that failed otherwise, and how one did.
    pub failed: u64,
    pub failure: Option<String>,
}

impl Client<'_> {
    fn command(&self, action: &str) -> Command {
        let mut command = Command::new(self.program);
        command.args(["tpcc", action, "-d", "postgres", "-U", "root", "-H", "127.0.0.1", "-D", "bench"]);
        command.args(["-P", &self.system.port().to_string(), "--conn-params", "sslmode=disable"]);
        command.args(["--warehouses", &self.warehouses.to_string()]);
        command
    }

    /// Makes the tables and their rows, and has them analysed.
    ///
    /// # Errors
    /// What the system says.
    pub fn prepare(&self, threads: u32) -> Result<(), String> {
        let mut command = self.command("prepare");
        command.args(["--no-check", "--retry-count", "0", "-T", &threads.min(self.warehouses).to_string()]);
        let patience = PATIENCE * self.warehouses;
        if let Some(why) = failures(&run::capture(&mut command, patience)?) {
            return Err(format!("loading: {why}"));
        }
        // PostgreSQL would join what is checked row by row otherwise: for hours.
        self.psql("ANALYZE")
    }

    fn psql(&self, statement: &str) -> Result<(), String> {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", &self.system.url(), "-c", statement]);
        run::capture(&mut psql, PATIENCE).map(drop)
    }

    /// Runs the five transactions.
    ///
    /// # Errors
    /// It says no rate.
    pub fn run(&self, threads: u32, seconds: u64, isolation: u8) -> Result<Ran, String> {
        let mut command = self.command("run");
        command.args(["--ignore-error", "--isolation", &isolation.to_string(), "-T", &threads.to_string()]);
        command.args(["--time", &format!("{seconds}s"), "--interval", &format!("{seconds}s")]);
        read(&run::capture(&mut command, PATIENCE + Duration::from_secs(seconds))?)
    }

    /// Whether the conditions of consistency hold, but the eleventh, which go-tpc counts as of fresh data only.
    ///
    /// # Errors
    /// One does not, or the system failed.
    pub fn check(&self) -> Result<(), String> {
        // Behind the run. Without it PostgreSQL reads all of the history for each customer: ten warehouses would take it hours.
        self.psql("CREATE INDEX ON history (h_c_w_id, h_c_d_id, h_c_id)")?;
        let text = run::capture(&mut self.command("check"), PATIENCE * self.warehouses)?;
        let checked = text.lines().filter(|line| line.starts_with("begin to check")).count();
        match failures(&text) {
            Some(why) => Err(why),
            None if checked == 0 => Err("nothing was checked".into()),
            None => Ok(()),
        }
    }
}

/// The first failure that it tells of: it ends well all the same.
fn failures(text: &str) -> Option<String> {
    text.lines().find(|line| line.contains("failed") || line.contains("panic")).map(str::to_owned)
}

/// Whether a failure is 40001: its client shows the message only.
fn is_refused(told: &str) -> bool {
    told.contains("could not serialize access") || told.contains("restart transaction")
}

/// What it tells of each transaction that failed, in a line: the statement stands within, with its line breaks.
fn run_failures(text: &str) -> Vec<String> {
    let mut failed: Vec<String> = Vec::new();
    let mut within = false;
    for line in text.lines() {
        if line.contains("execute run failed") {
            failed.push(line.to_owned());
            within = true;
        } else if line.starts_with('[') || line == "Finished" {
            within = false;
        } else if let Some(last) = failed.last_mut().filter(|_| within) {
            *last += " ";
            *last += line.trim();
        }
    }
    failed
}

/// Reads what a run says.
fn read(text: &str) -> Result<Ran, String> {
    let rate = text.lines().rev().find_map(|line| line.strip_prefix("tpmC: ")?.split(',').next()?.parse().ok());
    let new_orders_per_minute = rate.ok_or_else(|| format!("no rate in go-tpc's output:\n{text}"))?;
    let count = |line: &str| -> Option<u64> { line.split("Count: ").nth(1)?.split(',').next()?.parse().ok() };
    let summary = text.lines().filter(|line| line.starts_with("[Summary]") && !line.contains("_ERR"));
    let failed = run_failures(text);
    let refused = failed.iter().filter(|told| is_refused(told)).count() as u64;
    Ok(Ran {
        new_orders_per_minute,
        done: summary.filter_map(count).sum(),
        refused,
        failed: failed.len() as u64 - refused,
        failure: failed.into_iter().find(|told| !is_refused(told)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_read() {
        let text = "[2026-01-01 00:00:00] execute run failed, err exec UPDATE t\nSET a = 1 failed pq: could not serialize access due to concurrent update\n\
                    [2026-01-01 00:00:01] execute run failed, err pq: restart transaction: a write was newer\n\
                    [2026-01-01 00:00:02] execute run failed, err pq: deadlock detected\n\
                    [Current] NEW_ORDER - Takes(s): 9.9, Count: 7, TPM: 42.0, Sum(ms): 1.0\n\
                    Finished\n\
                    [Summary] NEW_ORDER - Takes(s): 59.9, Count: 120, TPM: 120.1, Sum(ms): 1.0, Avg(ms): 1.0\n\
                    [Summary] NEW_ORDER_ERR - Takes(s): 59.9, Count: 3, TPM: 3.0, Sum(ms): 1.0\n\
                    [Summary] PAYMENT - Takes(s): 59.9, Count: 100, TPM: 100.1, Sum(ms): 1.0\n\
                    tpmC: 120.1, tpmTotal: 220.2, efficiency: 933.1%\n";
        let ran = read(text).unwrap();
        assert_eq!((ran.new_orders_per_minute, ran.done, ran.refused, ran.failed), (120.1, 220, 2, 1));
        assert!(ran.failure.unwrap().contains("deadlock"));
        assert!(read("nothing").is_err());
    }

    #[test]
    fn a_failed_check_is_told_although_the_program_ends_well() {
        assert!(failures("begin to check warehouse 1 at condition 3.3.2.1\nexecute check failed, err x").is_some());
        assert!(failures("begin to check warehouse 1 at condition 3.3.2.1\nFinished").is_none());
    }
}

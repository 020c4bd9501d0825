//! What a run measured, for people and for programs.

use super::{Options, Worker, Workload};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// Different error texts that are kept.
pub(super) const ERRORS_MAX: usize = 5;

/// Latencies of one operation.
#[derive(Clone, Debug)]
pub struct OperationReport {
    /// Its name.
    pub name: &'static str,
    /// How often it succeeded.
    pub count: u64,
    /// Per second.
    pub per_second: f64,
    /// Mean latency, microseconds.
    pub mean_us: f64,
    /// Percentiles 50, 95 and 99, and the greatest, microseconds.
    pub percentiles_us: [u64; 4],
    /// All latencies, microseconds.
    pub latencies: Histogram<u64>,
}

impl OperationReport {
    fn new(name: &'static str, h: &Histogram<u64>, seconds: f64) -> Self {
        let at = |q| h.value_at_quantile(q);
        OperationReport {
            name,
            count: h.len(),
            per_second: h.len() as f64 / seconds,
            mean_us: h.mean(),
            percentiles_us: [at(0.5), at(0.95), at(0.99), h.max()],
            latencies: h.clone(),
        }
    }
    fn json(&self) -> Value {
        let [p50, p95, p99, max] = self.percentiles_us;
        json!({
            "operation": self.name, "count": self.count, "per_second": self.per_second, "mean_us": self.mean_us,
            "p50_us": p50, "p95_us": p95, "p99_us": p99, "max_us": max,
        })
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The workload.
    pub workload: &'static str,
    /// What the server calls itself.
    pub server: String,
    /// Connections.
    pub workers: usize,
    /// Measured time, seconds.
    pub seconds: f64,
    /// Time at its end in which no operation succeeded, seconds, to about one.
    pub idle_seconds: f64,
    /// The longest time in which no operation of any worker succeeded, seconds.
    pub idle_seconds_max: f64,
    /// Seed of all choices.
    pub seed: u64,
    /// All operations together, then each.
    pub operations: Vec<OperationReport>,
    /// Operations that were under way when the measured time ended, and succeeded: in no rate and no latency.
    pub late: u64,
    /// Operations that the server asked to run again (40001, 40P01).
    pub retries: u64,
    /// Operations that failed, ramp-up included.
    pub failures: u64,
    /// Some of their errors.
    pub errors: Vec<String>,
}

impl Report {
    pub(super) fn new(
        workload: &dyn Workload,
        options: &Options,
        server: String,
        workers: Vec<Worker>,
        elapsed: Duration,
    ) -> Report {
        let seconds = elapsed.as_secs_f64();
        let mut merged: Vec<Histogram<u64>> = Vec::new();
        let mut report = Report {
            workload: workload.name(),
            server,
            workers: options.workers,
            seconds,
            idle_seconds: 0.0,
            idle_seconds_max: 0.0,
            seed: options.seed,
            operations: Vec::new(),
            late: 0,
            retries: 0,
            failures: 0,
            errors: Vec::new(),
        };
        for worker in workers {
            report.late += worker.late;
            report.retries += worker.retries;
            report.failures += worker.failures;
            for error in worker.errors {
                if !report.errors.contains(&error) && report.errors.len() < ERRORS_MAX {
                    report.errors.push(error);
                }
            }
            for (i, h) in worker.histograms.into_iter().enumerate() {
                match merged.get_mut(i) {
                    // All have the same bounds.
                    Some(sum) => {
                        let _ = sum.add(&h);
                    }
                    None => merged.push(h),
                }
            }
        }
        if let Some(mut all) = merged.first().cloned() {
            for h in &merged[1..] {
                let _ = all.add(h);
            }
            report.operations.push(OperationReport::new("all", &all, seconds));
        }
        if merged.len() > 1 {
            let each = workload.operations().iter().zip(&merged);
            report.operations.extend(each.map(|(name, h)| OperationReport::new(name, h, seconds)));
        }
        report
    }

    /// Whether it did nothing any more when it ended: for [`super::IDLE_MAX`], or all the time.
    pub fn has_halted(&self) -> bool {
        let nothing = self.late == 0 && self.operations.iter().all(|o| o.count == 0);
        nothing || self.idle_seconds >= super::IDLE_MAX.as_secs_f64()
    }

    /// For programs: one JSON object.
    pub fn json(&self) -> String {
        let operations: Vec<Value> = self.operations.iter().map(OperationReport::json).collect();
        json!({
            "workload": self.workload, "server": self.server, "workers": self.workers, "seconds": self.seconds,
            "idle_seconds": self.idle_seconds, "idle_seconds_max": self.idle_seconds_max, "seed": self.seed, "operations": operations, "late": self.late, "retries": self.retries, "failures": self.failures,
            "errors": self.errors,
        })
        .to_string()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} on {}: {} workers, {:.1} s", self.workload, self.server, self.workers, self.seconds)?;
        writeln!(
            f,
            "{:<12} {:>9} {:>11} {:>9} {:>9} {:>9} {:>9}",
            "operation", "count", "per second", "p50 ms", "p95 ms", "p99 ms", "max ms"
        )?;
        for o in &self.operations {
            write!(f, "{:<12} {:>9} {:>11.1}", o.name, o.count, o.per_second)?;
            for us in o.percentiles_us {
                write!(f, " {:>9.3}", us as f64 / 1e3)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "longest time without an operation {:.3} s", self.idle_seconds_max)?;
        write!(f, "retries {}, failures {}", self.retries, self.failures)?;
        for error in &self.errors {
            write!(f, "\n  {error}")?;
        }
        Ok(())
    }
}

//! A thousand rows that eight clients update all the time: what a scan of them costs, and what the disk holds, then and afterwards.

use super::state::{Measured, Sample};
use super::{Run, pgbench};
use crate::bench::report::median;
use crate::process;
use lab::client::{Client, ClientError, Url};
use std::time::{Duration, Instant};

const ROWS: u32 = 1000;
const CLIENTS: &str = "8";
/// The second scan of a table is not its first.
const WARM_UP: usize = 5;
/// Scans of one look: their median counts, since one alone may meet anything.
const SCANS: usize = 3;
/// Looks at the fresh table.
const FRESH_LOOKS: usize = 10;
/// At most so many looks in each phase, and at most one a second.
const LOOKS_MAX: u64 = 600;
/// The part of a phase whose median stands for its end.
const END_PART: usize = 10;
/// PostgreSQL is looked at for a part of the time after only: there is no retention that it would wait for.
const POSTGRES_AFTER_PART: u64 = 4;

/// Figures: `fresh ms`, `during ms` (the last tenth of the updates), `after ms` (the worse of what follows them and of the end),
/// `updates` (a second), `disk` (at the end, bytes); and all samples.
pub fn run(run: &Run<'_>) -> Result<Measured, String> {
    let mut measured = Measured::new();
    let script = run.dir.join("update.sql");
    let update = format!("\\set id random(1, {ROWS})\nUPDATE hot SET n = n + 1 WHERE id = :id;\n");
    std::fs::write(&script, update).map_err(|e| format!("{}: {e}", script.display()))?;
    let mut look = Look::new(run).map_err(|e| format!("the hot rows: {e}"))?;
    let failed = |e: ClientError| format!("the scan of the hot rows: {e}");
    let fresh: Result<Vec<f64>, ClientError> = (0..FRESH_LOOKS).map(|_| look.scan_ms()).collect();
    measured.put("fresh ms", median(fresh.map_err(failed)?.into_iter()));

    let began = Instant::now();
    let script = script.display().to_string();
    let mut flags = vec!["-c", CLIENTS, "-j", "2", "-f", &script];
    let rate = run.lengths.hot_rate.map(|rate| rate.to_string());
    if let Some(rate) = &rate {
        flags.extend(["--rate", rate]);
    }
    let (updates, during) = std::thread::scope(|scope| {
        let updates = scope.spawn(|| pgbench::pgbench(run.system, &flags, run.lengths.hot_seconds));
        let during = look.sample(began, every(run.lengths.hot_seconds), || updates.is_finished());
        (updates.join(), during)
    });
    let updates = updates.map_err(|_| "the updates panicked")??;
    measured.put("updates", pgbench::report(&updates, "tps = ")?);
    let during = during.map_err(failed)?;

    let part = if run.system.pid().is_some() { 1 } else { POSTGRES_AFTER_PART };
    let (length, ended) = ((run.lengths.after_seconds / part).max(1), Instant::now());
    let over = || ended.elapsed() >= Duration::from_secs(length);
    let after = look.sample(began, every(length), over).map_err(failed)?;
    measured.put("during ms", end_ms(&during));
    let begin = &after[..after.len().div_ceil(END_PART)];
    measured.put("after ms", end_ms(&after).max(median(begin.iter().map(|s| s.scan_ms))));
    measured.put("disk", after.last().map_or(0.0, |s| s.disk_bytes));
    measured.samples = [during, after].concat();
    Ok(measured)
}

/// The time between two looks.
fn every(seconds: u64) -> Duration {
    Duration::from_secs((seconds / LOOKS_MAX).max(1))
}

/// The median of a phase's end.
fn end_ms(samples: &[Sample]) -> f64 {
    let end = samples.len() - samples.len().div_ceil(END_PART);
    median(samples[end..].iter().map(|s| s.scan_ms))
}

struct Look<'a> {
    run: &'a Run<'a>,
    client: Client,
}

impl<'a> Look<'a> {
    fn new(run: &'a Run<'a>) -> Result<Look<'a>, ClientError> {
        let mut client = Client::connect(&Url::parse(&run.system.url())?)?;
        client.query("CREATE TABLE hot (id int PRIMARY KEY, n int NOT NULL, pad text NOT NULL)")?;
        client.query(&format!("INSERT INTO hot SELECT g, 0, repeat('x', 100) FROM generate_series(1, {ROWS}) g"))?;
        let mut look = Look { run, client };
        for _ in 0..WARM_UP {
            look.scan_ms()?;
        }
        Ok(look)
    }

    /// Milliseconds that a scan takes.
    fn scan_ms(&mut self) -> Result<f64, ClientError> {
        let mut scans = Vec::with_capacity(SCANS);
        for _ in 0..SCANS {
            let began = Instant::now();
            self.client.query("SELECT count(*), sum(n) FROM hot")?;
            scans.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(median(scans.into_iter()))
    }

    /// Looks now and then until it is over; at least once.
    fn sample(&mut self, began: Instant, every: Duration, over: impl Fn() -> bool) -> Result<Vec<Sample>, ClientError> {
        let mut samples = Vec::new();
        loop {
            let next = Instant::now() + every;
            samples.push(Sample {
                scan_ms: self.scan_ms()?,
                disk_bytes: process::disk_bytes(self.run.system.dir()) as f64,
                at_seconds: began.elapsed().as_secs_f64(),
            });
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            if over() {
                return Ok(samples);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_phase_is_its_last_tenth() {
        let sample = |n: u32| Sample { at_seconds: f64::from(n), scan_ms: f64::from(n), disk_bytes: 0.0 };
        let samples: Vec<Sample> = (1..=30).map(sample).collect();
        assert_eq!((end_ms(&samples), end_ms(&samples[..1]), end_ms(&[])), (29.0, 1.0, 0.0));
        assert_eq!((every(60).as_secs(), every(3600).as_secs()), (1, 6));
    }
}

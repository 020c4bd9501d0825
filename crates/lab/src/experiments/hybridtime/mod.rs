//! `hybridtime`: 002's experiments 1 to 3 on real clusters: `none`, `hybrid` and `strict` (commit-wait) side by side.
//!
//! A client has eight threads ([`crate::bench::Rows`]). The document ran the three modes at the same time; here each runs alone, and all of them
//! together beside that, for in one range they are not independent: see the page. Clocks state the errors that the document measured with NTP, or
//! follow a curve through them.

mod report;

use super::on_cluster::Watch;
use super::{Experiment, Ground, Measured, Point, Report, Scope, Size, Values};
use crate::bench::{self, Rows};
use crate::client::Client;
use crate::cluster::{Boundary, Clock, Cluster, ClusterError, Delays, Placement, Plan, spread};
use hdrhistogram::Histogram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The experiment.
pub(super) struct HybridTime;

/// The document's modes, in its order, and ours.
const MODES: [&str; 3] = ["none", "hybrid", "strict"];
/// Threads of each client.
const THREADS: usize = 8;
/// Rows at the start.
const ROWS: u32 = 10_000;
/// Memory of each node, MiB.
const MEMORY_MIB: u32 = 512;
/// Percentiles of figure 3, and their names.
const PERCENTILES: [(f64, &str); 5] =
    [(0.5, "p50_ms"), (0.75, "p75_ms"), (0.9, "p90_ms"), (0.99, "p99_ms"), (0.999, "p999_ms")];
/// Errors that clocks state, microseconds: of good clocks, of TrueTime (5 to 7 ms), of the document's NTP in one data center (mean).
const ERRORS_US: [u64; 4] = [500, 2_000, 6_000, 14_730];
/// The means of section 5.2: one data center, two.
const NTP_US: [u64; 2] = [14_730, 16_360];
/// The least and the greatest error of one data center: the curve goes from one to the other and back.
const CURVE_US: [u64; 2] = [11_500, 16_700];
/// Seconds of the curve, and of a piece of it.
const CURVE_S: u64 = 12;
/// Between two data centers, one way: us-central1 and europe-west1 are some 100 ms apart there and back; the document does not say.
const APART: Duration = Duration::from_millis(50);

/// How long a run is.
fn duration(scope: Scope) -> Duration {
    Duration::from_secs(match scope.size {
        Size::Quick => 1,
        Size::Usual => 3,
        // The document says nothing of it.
        Size::Full => 60,
    })
}

fn rounds(scope: Scope) -> usize {
    match scope.size {
        Size::Quick => 1,
        Size::Usual | Size::Full => 3,
    }
}

/// A run's clients.
#[derive(Clone)]
struct Run {
    nodes: usize,
    in_memory: bool,
    clock: Clock,
    delays: Option<Delays>,
    /// Modes of the clients that run at the same time.
    modes: Vec<&'static str>,
    /// Nodes that each mode has a client at.
    at: Vec<usize>,
    duration: Duration,
}

impl Run {
    fn cluster(&self, ground: &Ground) -> Result<Cluster, ClusterError> {
        let dir = if self.in_memory { memory_dir(&ground.dir) } else { ground.dir.clone() };
        Cluster::start(&Plan {
            binary: ground.binary.clone(),
            dir,
            nodes: self.nodes,
            clocks: vec![self.clock.clone()],
            delays: self.delays.clone(),
            memory_mib: MEMORY_MIB,
        })
    }
}

/// A folder in memory, where a sync costs nothing; the usual one where the system has none.
fn memory_dir(usual: &Path) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { usual.to_owned() }
}

/// All clients of a run, at the same time; the writes of each mode, microseconds, and how many operations.
fn clients(
    run: &Run,
    rows: &Rows,
    cluster: &Cluster,
    ramp_up: Duration,
    seed: u64,
) -> Result<Vec<Outcome>, ClusterError> {
    std::thread::scope(|scope| {
        let mut running = Vec::new();
        for (n, mode) in run.modes.iter().enumerate() {
            for at in &run.at {
                let setting = format!("timeball.consistency={mode}");
                let options = bench::Options {
                    url: cluster.url_of(*at, &[&setting]),
                    workers: THREADS,
                    duration: run.duration,
                    ramp_up,
                    load: false,
                    spread: false,
                    seed: seed.wrapping_add((n * 10 + at) as u64),
                };
                running.push((*mode, scope.spawn(move || bench::run(rows, &options, |_| {}))));
            }
        }
        let mut outcomes: Vec<Outcome> = Vec::new();
        for (mode, thread) in running {
            let Ok(report) = thread.join() else { continue };
            let report = report?;
            let writes = report.operations.iter().filter(|o| o.name == "insert" || o.name == "update");
            let mut here = Outcome { mode, per_second: 0.0, failures: report.failures as f64, writes: None };
            here.per_second = report.operations.iter().find(|o| o.name == "all").map_or(0.0, |o| o.per_second);
            writes.for_each(|o| here.add(&o.latencies));
            match outcomes.iter_mut().find(|o| o.mode == mode) {
                Some(there) => {
                    there.per_second += here.per_second;
                    there.failures += here.failures;
                    here.writes.iter().for_each(|writes| there.add(writes));
                }
                None => outcomes.push(here),
            }
        }
        Ok(outcomes)
    })
}

/// What the clients of a mode measured.
struct Outcome {
    mode: &'static str,
    per_second: f64,
    failures: f64,
    writes: Option<Histogram<u64>>,
}

impl Outcome {
    fn add(&mut self, latencies: &Histogram<u64>) {
        match &mut self.writes {
            // All have the same bounds.
            Some(sum) => {
                let _ = sum.add(latencies);
            }
            None => self.writes = Some(latencies.clone()),
        }
    }

    fn numbers(&self, all: &mut Values) {
        let mode = self.mode;
        all.insert(format!("{mode}_per_second"), self.per_second);
        all.insert(format!("{mode}_failures"), self.failures);
        // Of none there is neither a mean nor a percentile, and 0 would be the best of all.
        let Some(writes) = self.writes.as_ref().filter(|writes| !writes.is_empty()) else { return };
        all.insert(format!("{mode}_writes"), writes.len() as f64);
        all.insert(format!("{mode}_mean_ms"), writes.mean() / 1e3);
        for (quantile, name) in PERCENTILES {
            all.insert(format!("{mode}_{name}"), writes.value_at_quantile(quantile) as f64 / 1e3);
        }
        // The most that lies in one bin of a tenth of its place: how steady it is.
        let mut bins = std::collections::BTreeMap::new();
        for value in writes.iter_recorded() {
            let bin = ((value.value_iterated_to() as f64).ln() / 1.1f64.ln()).floor() as i64;
            *bins.entry(bin).or_insert(0) += value.count_at_value();
        }
        let most = bins.values().copied().max().unwrap_or(0);
        all.insert(format!("{mode}_one_bin_share"), most as f64 / writes.len() as f64);
    }
}

/// The rows, and where they are led.
fn load(run: &Run, cluster: &Cluster, seed: u64) -> Result<(Rows, Option<Placement>), ClusterError> {
    let rows = Rows::new(ROWS);
    bench::load(&rows, &mut Client::connect(&cluster.url_of(0, &[]))?, seed)?;
    // Partitions of all nodes, by keys that are drawn from all of 32 bits.
    let boundary = Boundary("ALTER TABLE usertable SPLIT AT VALUES (0), (1431655765), (2863311530)");
    let placement = (run.nodes > 1).then(|| spread(cluster, &[boundary])).transpose()?;
    Ok((rows, placement))
}

fn measure(run: &Run, seed: u64, ground: &Ground) -> Result<Values, ClusterError> {
    let cluster = run.cluster(ground)?;
    let (rows, placement) = load(run, &cluster, seed)?;
    // Everything is warm once.
    clients(&Run { duration: Duration::from_secs(1), ..run.clone() }, &rows, &cluster, Duration::ZERO, seed)?;
    let watch = Watch::begin(&cluster)?;
    let outcomes = clients(run, &rows, &cluster, Duration::ZERO, seed + 1)?;
    let mut all = watch.end(&cluster)?;
    // Experiment 3 is about who leads where: a write costs what its leader's distance makes of it.
    placement.iter().try_for_each(|placement| placement.check(&cluster))?;
    outcomes.iter().for_each(|outcome| outcome.numbers(&mut all));
    Ok(all)
}

/// The error goes up and down; each second has numbers of its own.
fn follow(run: &Run, seed: u64, ground: &Ground) -> Result<Values, ClusterError> {
    let cluster = run.cluster(ground)?;
    let (rows, placement) = load(run, &cluster, seed)?;
    let mut all = Values::new();
    for piece in 0..CURVE_S {
        let outcomes = clients(run, &rows, &cluster, Duration::ZERO, seed + piece)?;
        let bound_ns = cluster.counters()?.get("clock_bound_nanos").copied().unwrap_or(f64::NAN);
        all.insert(format!("error_{piece:02}_ms"), bound_ns / run.nodes as f64 / 1e6);
        for outcome in outcomes {
            let mean = outcome.writes.as_ref().map_or(f64::NAN, |writes| writes.mean() / 1e3);
            all.insert(format!("{}_{piece:02}_ms", outcome.mode), mean);
        }
    }
    placement.iter().try_for_each(|placement| placement.check(&cluster))?;
    Ok(all)
}

/// A saw of so many seconds between the document's least and greatest error.
fn curve(since: Duration) -> Duration {
    let phase = since.as_secs_f64() / CURVE_S as f64 % 1.0;
    let up = 1.0 - (2.0 * phase - 1.0).abs();
    let [low, high] = CURVE_US.map(|us| us as f64);
    Duration::from_secs_f64((low + (high - low) * up) / 1e6)
}

fn experiment_1(error_us: u64, who: &str, round: usize) -> String {
    format!("1 error={error_us}us {who} round={round}")
}
fn experiment_2(who: &str, round: usize) -> String {
    format!("2 {who} round={round}")
}
fn experiment_3(mode: &str, round: usize) -> String {
    format!("3 {mode} round={round}")
}
fn follows(experiment: usize, mode: &str) -> String {
    format!("{experiment} error follows a curve {mode}")
}
/// All modes at the same time.
const TOGETHER: &str = "together";

impl Experiment for HybridTime {
    fn name(&self) -> &'static str {
        "hybridtime"
    }

    fn about(&self) -> &'static str {
        "latency of writes with no consistency, HybridTime and commit-wait, on real clusters (002 experiments 1 to 3)"
    }

    fn introduction(&self) -> &'static str {
        "Document 002 measured what its three consistency modes cost: none, HybridTime (a timestamp that travels), and commit-wait (a write waits until its timestamp is certainly past). Here they are\n\
         settings of a session: `none`, `hybrid`, `strict`. Clocks state the errors that the document's NTP had."
    }

    fn points(&self, scope: Scope) -> Vec<Point> {
        let duration = duration(scope);
        let stated = |us: u64| Clock::Stated(Duration::from_micros(us));
        let alone = Run {
            nodes: 1,
            in_memory: true,
            clock: stated(NTP_US[0]),
            delays: None,
            modes: MODES.to_vec(),
            at: vec![0],
            duration,
        };
        let replicated = Run { nodes: 3, in_memory: false, ..alone.clone() };
        // The third node stands in the other data center; clients in each.
        let apart = Run {
            clock: stated(NTP_US[1]),
            delays: Some(Delays::by_site(&[0, 0, 1], APART)),
            at: vec![0, 2],
            ..replicated.clone()
        };
        let mut points = Vec::new();
        let mut add = |name: String, run: Run| {
            points.push(Point::on_cluster(name, move |seed, ground| measure(&run, seed, ground)));
        };
        for round in 1..=rounds(scope) {
            for error_us in ERRORS_US {
                for mode in MODES {
                    let run = Run { clock: stated(error_us), modes: vec![mode], ..alone.clone() };
                    add(experiment_1(error_us, mode, round), run);
                }
            }
            add(experiment_1(NTP_US[0], TOGETHER, round), alone.clone());
            add(experiment_2(TOGETHER, round), replicated.clone());
            for mode in MODES {
                add(experiment_2(mode, round), Run { modes: vec![mode], ..replicated.clone() });
            }
            for mode in MODES {
                add(experiment_3(mode, round), Run { modes: vec![mode], ..apart.clone() });
            }
        }
        for (experiment, like) in [(1, &alone), (2, &replicated)] {
            for mode in MODES {
                let clock = Clock::Moving(Arc::new(curve));
                let run = Run { clock, duration: Duration::from_secs(1), modes: vec![mode], ..like.clone() };
                let name = follows(experiment, mode);
                points.push(Point::on_cluster(name, move |seed, ground| follow(&run, seed, ground)));
            }
        }
        points
    }

    fn report(&self, measured: &Measured, scope: Scope) -> Report {
        report::report(measured, rounds(scope), duration(scope))
    }
}

#[cfg(test)]
mod tests {
    use super::{CURVE_S, CURVE_US, Outcome, Values, curve};
    use hdrhistogram::Histogram;
    use std::time::Duration;

    #[test]
    fn a_mode_that_wrote_nothing_has_no_latency() {
        let numbers = |writes: Option<Histogram<u64>>| {
            let (mut all, failures) = (Values::new(), 7.0);
            Outcome { mode: "hybrid", per_second: 0.0, failures, writes }.numbers(&mut all);
            all
        };
        let empty = || Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        for nothing in [numbers(None), numbers(Some(empty()))] {
            assert!(!nothing.contains_key("hybrid_mean_ms") && nothing["hybrid_failures"] == 7.0, "{nothing:?}");
        }
        let mut one = empty();
        one.record(2_000).unwrap();
        assert_eq!(numbers(Some(one))["hybrid_mean_ms"], 2.0);
    }

    #[test]
    fn the_curve_goes_from_the_least_error_to_the_greatest_and_back() {
        let at = |seconds: u64| curve(Duration::from_secs(seconds)).as_micros() as u64;
        assert_eq!([at(0), at(CURVE_S / 2), at(CURVE_S)], [CURVE_US[0], CURVE_US[1], CURVE_US[0]]);
        assert!(at(1) < at(2) && at(CURVE_S - 1) < at(CURVE_S - 2));
    }
}

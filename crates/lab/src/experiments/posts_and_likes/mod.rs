//! `posts-and-likes`: 000 chapter 4 on real clusters: uncertainty by a static 500 ms against the measured bound, and `strict` beside both.
//!
//! Each point is a fresh cluster of three nodes with the document's schema, ranges and load ([`crate::bench::PostsAndLikes`]); what differs between
//! the lines is how a session is told to read, so both run the same program. Beside the document's tables stands what it could not vary: how the
//! restarts grow with the way from gateway to leader (section 2.5.2), which relays between the nodes give.

mod document;
mod report;

use super::on_cluster::{MODES, Mode, Watch};
use super::{Experiment, Ground, Measured, Point, Report, Scope, Size, Values};
use crate::bench::{self, OperationReport, PostsAndLikes};
use crate::client::Client;
use crate::cluster::{Boundary, Clock, Cluster, ClusterError, Delays, Plan, spread};
use std::time::Duration;

/// The experiment.
pub(super) struct Posts;

/// Nodes of a cluster.
const NODES: usize = 3;
/// Memory of each, MiB.
const MEMORY_MIB: u32 = 512;
/// The error that each node's clock states: 000's intervals were 0.8 to 1 ms wide.
const ERROR: Duration = Duration::from_micros(450);
/// Share of reads, percent: tables C, tables D.
const READS: [u32; 2] = [95, 50];
/// Delays between gateway and leader, milliseconds one way.
const DELAYS_MS: [u64; 4] = [0, 2, 5, 20];
/// Workers of the points with delays.
const DELAYED_WORKERS: usize = 50;
/// Ranges as 000 figure 3.3 has them: posts, likes and the index of likes in three each; new likes go to a further one.
const BOUNDARIES: [Boundary; 3] = [
    Boundary("ALTER TABLE posts SPLIT AT VALUES (0), (34), (67)"),
    Boundary("ALTER TABLE likes SPLIT AT VALUES (0), (334), (667), (1001)"),
    Boundary("ALTER INDEX likes_post_id_idx SPLIT AT VALUES (0), (34), (67)"),
];

/// How large a run is.
struct Sizes {
    workers: Vec<usize>,
    rounds: usize,
    ramp_up: Duration,
    duration: Duration,
}

fn sizes(scope: Scope) -> Sizes {
    let seconds = Duration::from_secs;
    match scope.size {
        Size::Quick => Sizes { workers: vec![4], rounds: 1, ramp_up: seconds(0), duration: seconds(1) },
        Size::Usual => Sizes { workers: vec![50, 200, 500], rounds: 2, ramp_up: seconds(2), duration: seconds(6) },
        // As the document: for five minutes after one, once.
        Size::Full => {
            let workers = (1..=10).map(|n| n * 50).collect();
            Sizes { workers, rounds: 1, ramp_up: seconds(60), duration: seconds(300) }
        }
    }
}

fn name(reads: u32, workers: usize, mode: Mode, round: usize) -> String {
    format!("reads={reads} workers={workers} {} round={round}", mode.word())
}

fn delayed(delay_ms: u64, mode: Mode, round: usize) -> String {
    format!("delay={delay_ms}ms {} round={round}", mode.word())
}

/// Who comes first differs by round: what else the machine does concerns all.
fn in_turn<const N: usize>(mut modes: [Mode; N], round: usize) -> [Mode; N] {
    modes.rotate_left((round - 1) % N);
    modes
}

/// What is run on a fresh cluster.
#[derive(Clone)]
struct Load {
    reads: u32,
    workers: usize,
    mode: Mode,
    /// One way between nodes; `None`: no relays.
    delay: Option<Duration>,
    ramp_up: Duration,
    duration: Duration,
}

fn measure(load: &Load, seed: u64, ground: &Ground) -> Result<Values, ClusterError> {
    let plan = Plan {
        binary: ground.binary.clone(),
        dir: ground.dir.clone(),
        nodes: NODES,
        clocks: vec![Clock::Stated(ERROR)],
        delays: load.delay.map(|delay| Delays::equal(NODES, delay)),
        memory_mib: MEMORY_MIB,
    };
    let cluster = Cluster::start(&plan)?;
    let workload = PostsAndLikes { read_fraction: f64::from(load.reads) / 100.0 };
    let mut client = Client::connect(&cluster.url_of(0, &[]))?;
    bench::load(&workload, &mut client, seed)?;
    drop(client);
    let placement = spread(&cluster, &BOUNDARIES)?;
    let watch = Watch::begin(&cluster)?;
    let options = bench::Options {
        url: cluster.url(load.mode.settings()),
        workers: load.workers,
        duration: load.duration,
        ramp_up: load.ramp_up,
        load: false,
        spread: true,
        seed,
    };
    let report = bench::run(&workload, &options, |_| {})?;
    // The document sums the nodes' counters at the end of a run, its ramp-up included.
    let mut all = watch.end(&cluster)?;
    placement.check(&cluster)?;
    all.insert("ranges".into(), placement.len() as f64);
    all.insert("client_retries".into(), report.retries as f64);
    all.insert("failures".into(), report.failures as f64);
    for operation in &report.operations {
        latencies(operation, &mut all);
    }
    Ok(all)
}

fn latencies(operation: &OperationReport, all: &mut Values) {
    let name = operation.name;
    all.insert(format!("{name}_per_second"), operation.per_second);
    let [p50, p95, p99, _] = operation.percentiles_us;
    for (percentile, us) in [("p50", p50), ("p95", p95), ("p99", p99)] {
        all.insert(format!("{name}_{percentile}_ms"), us as f64 / 1e3);
    }
}

impl Experiment for Posts {
    fn name(&self) -> &'static str {
        "posts-and-likes"
    }

    fn about(&self) -> &'static str {
        "posts and likes on real clusters: a static offset of 500 ms, dynamic bounds, and strict (000 tables C and D, section 2.5.2)"
    }

    fn introduction(&self) -> &'static str {
        "Document 000 changed CockroachDB so that the uncertainty of a read is what its own clock is worth, and not 500 ms, and counted uncertainty restarts, throughput and latency of an\n\
         application that reads all posts by their likes while others like them. Here one database is told either by a setting of the session. All restarts are *unnecessary* ones (section 2.5.2): the\n\
         nodes' clocks agree, they only state an error."
    }

    fn points(&self, scope: Scope) -> Vec<Point> {
        let sizes = sizes(scope);
        let mut points = Vec::new();
        let mut add = |name: String, load: Load| {
            points.push(Point::on_cluster(name, move |seed, ground| measure(&load, seed, ground)));
        };
        let load = |reads, workers, mode, delay| Load {
            reads,
            workers,
            mode,
            delay,
            ramp_up: sizes.ramp_up,
            duration: sizes.duration,
        };
        // Lines that are compared lie side by side in time: what else the machine does then concerns all of them.
        for round in 1..=sizes.rounds {
            for reads in READS {
                for workers in &sizes.workers {
                    for mode in in_turn(MODES, round) {
                        add(name(reads, *workers, mode, round), load(reads, *workers, mode, None));
                    }
                }
            }
        }
        for round in 1..=sizes.rounds {
            for delay_ms in DELAYS_MS {
                for mode in in_turn([Mode::Static, Mode::Dynamic], round) {
                    let delay = Some(Duration::from_millis(delay_ms));
                    add(delayed(delay_ms, mode, round), load(READS[0], DELAYED_WORKERS, mode, delay));
                }
            }
        }
        points
    }

    fn report(&self, measured: &Measured, scope: Scope) -> Report {
        report::report(measured, &sizes(scope))
    }
}

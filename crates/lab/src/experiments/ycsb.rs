//! `ycsb`: 000 section 3.4.1 on real clusters: YCSB B and F, and TPC-C's transactions, by a static offset and by dynamic bounds: no loss.
//!
//! These loads have few uncertain reads, so what dynamic bounds could cost them is readings of the clock alone. Each point is a fresh cluster of three nodes, a pair of
//! neighbouring points differs by a setting of the sessions, and all pairs are repeated, as a loss is judged by how far repeated runs lie apart.

use super::on_cluster::{Mode, Watch, company, mean_and_deviation, program};
use super::run::seed_of;
use super::{
    Cell, Experiment, Ground, Measured, Picture, Point, Report, Scope, Section, Size, Stand, Table, Values, Verdict,
};
use crate::bench::{self, Mix, Orders, Workload, Ycsb};
use crate::client::Client;
use crate::cluster::{Boundary, Clock, Cluster, ClusterError, Plan, spread};
use crate::plot::{Bars, Group, PALETTE};
use std::time::Duration;

/// The experiment.
pub(super) struct NoLoss;

/// Nodes of a cluster.
const NODES: usize = 3;
/// Memory of each, MiB.
const MEMORY_MIB: u32 = 512;
/// The error that each node's clock states: 000's intervals were 0.8 to 1 ms wide.
const ERROR: Duration = Duration::from_micros(450);
/// Warehouses, one for each node to lead.
const WAREHOUSES: u32 = 3;
/// The lines that are compared.
const LINES: [Mode; 2] = [Mode::Static, Mode::Dynamic];
/// A difference of rates that is smaller than this is none, on a machine of this kind, however near repeated runs lie.
const NOISE: f64 = 0.05;
/// Restarts of a thousand transactions: below this they are few, as the document found (its other loads had hundreds).
const FEW_PER_1000: f64 = 50.0;

/// Which load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    YcsbB,
    YcsbF,
    Orders,
}

const LOADS: [Load; 3] = [Load::YcsbB, Load::YcsbF, Load::Orders];

impl Load {
    fn word(self) -> &'static str {
        match self {
            Load::YcsbB => "YCSB B",
            Load::YcsbF => "YCSB F",
            Load::Orders => "orders (TPC-C)",
        }
    }

    fn workload(self, rows: u32) -> Box<dyn Workload> {
        match self {
            Load::YcsbB => Box::new(Ycsb::new(Mix::B, rows)),
            Load::YcsbF => Box::new(Ycsb::new(Mix::F, rows)),
            Load::Orders => Box::new(Orders { warehouses: WAREHOUSES }),
        }
    }

    /// Three ranges of what is read and written most; keys of YCSB's rows are scattered over 32 bits.
    fn boundaries(self) -> &'static [Boundary] {
        match self {
            Load::YcsbB | Load::YcsbF => {
                &[Boundary("ALTER TABLE usertable SPLIT AT VALUES (1431655765), (2863311530)")]
            }
            Load::Orders => &[
                Boundary("ALTER TABLE warehouse SPLIT AT VALUES (2), (3)"),
                Boundary("ALTER TABLE district SPLIT AT VALUES (2, 1), (3, 1)"),
                Boundary("ALTER TABLE customer SPLIT AT VALUES (2, 1, 1), (3, 1, 1)"),
                Boundary("ALTER TABLE stock SPLIT AT VALUES (2, 1), (3, 1)"),
                Boundary("ALTER TABLE order_line SPLIT AT VALUES (2, 1, 0, 0), (3, 1, 0, 0)"),
            ],
        }
    }

    /// The tables of [`Load::boundaries`].
    fn split_tables(self) -> impl Iterator<Item = &'static str> {
        self.boundaries().iter().filter_map(|Boundary(statement)| statement.split(' ').nth(2))
    }

    /// The operation that is named in tables, by the workload's own number.
    fn operations(self) -> &'static [&'static str] {
        match self {
            Load::YcsbB => &["read", "update"],
            Load::YcsbF => &["read", "read-modify-write"],
            Load::Orders => &["new-order", "payment", "order-status", "stock-level", "delivery"],
        }
    }
}

/// How large a run is.
struct Sizes {
    rows: u32,
    workers: usize,
    rounds: usize,
    ramp_up: Duration,
    duration: Duration,
}

fn sizes(size: Size) -> Sizes {
    let seconds = Duration::from_secs;
    match size {
        Size::Quick => Sizes { rows: 300, workers: 3, rounds: 1, ramp_up: seconds(0), duration: seconds(1) },
        Size::Usual => Sizes { rows: 10_000, workers: 24, rounds: 4, ramp_up: seconds(1), duration: seconds(7) },
        // The document's TPC-C ran for half an hour; its YCSB was small.
        Size::Full => Sizes { rows: 100_000, workers: 48, rounds: 4, ramp_up: seconds(60), duration: seconds(1_800) },
    }
}

/// What gains and their standard errors say of "no positive or negative difference".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    /// All lie near each other and near nothing: a difference of [`NOISE`] would have been seen.
    None,
    /// One is beyond [`NOISE`] and twice its error.
    Seen,
    /// Repeated runs lie too far apart, or there is one alone.
    Unclear,
}

fn difference(gains: &[(f64, f64)]) -> Difference {
    let seen = |(gain, error): &(f64, f64)| gain.abs() > NOISE && gain.abs() > 2.0 * error;
    // One round has no error, which is not within anything.
    let near = |(_, error): &(f64, f64)| 2.0 * error <= NOISE;
    match (gains.iter().any(seen), gains.iter().all(near)) {
        (true, _) => Difference::Seen,
        (false, true) => Difference::None,
        (false, false) => Difference::Unclear,
    }
}

/// Neighbouring points that are compared.
fn pair(load: Load, round: usize) -> String {
    format!("{} round={round}", load.word())
}

fn name(load: Load, mode: Mode, round: usize) -> String {
    format!("{} {} round={round}", load.word(), mode.word())
}

fn measure(load: Load, mode: Mode, sizes: &Sizes, seed: u64, ground: &Ground) -> Result<Values, ClusterError> {
    let plan = Plan {
        binary: ground.binary.clone(),
        dir: ground.dir.clone(),
        nodes: NODES,
        clocks: vec![Clock::Stated(ERROR)],
        delays: None,
        memory_mib: MEMORY_MIB,
    };
    let cluster = Cluster::start(&plan)?;
    let workload = load.workload(sizes.rows);
    let mut client = Client::connect(&cluster.url_of(0, &[]))?;
    bench::load(workload.as_ref(), &mut client, seed)?;
    drop(client);
    let placement = spread(&cluster, load.boundaries())?;
    let watch = Watch::begin(&cluster)?;
    let options = bench::Options {
        url: cluster.url(mode.settings()),
        workers: sizes.workers,
        duration: sizes.duration,
        ramp_up: sizes.ramp_up,
        load: false,
        spread: true,
        seed,
    };
    let report = bench::run(workload.as_ref(), &options, |_| {})?;
    let mut all = watch.end(&cluster)?;
    placement.check(&cluster)?;
    all.insert("ranges".into(), placement.len() as f64);
    all.insert("client_retries".into(), report.retries as f64);
    all.insert("failures".into(), report.failures as f64);
    all.insert("per_second".into(), report.operations.iter().map(|operation| operation.per_second).sum());
    for operation in &report.operations {
        let [p50, p95, p99, _] = operation.percentiles_us;
        for (percentile, us) in [("p50", p50), ("p95", p95), ("p99", p99)] {
            all.insert(format!("{}_{percentile}_ms", operation.name), us as f64 / 1e3);
        }
    }
    Ok(all)
}

struct Numbers<'m> {
    measured: &'m Measured,
    rounds: usize,
}

impl Numbers<'_> {
    /// Mean and deviation over the rounds.
    fn of(&self, load: Load, mode: Mode, number: &str) -> (f64, f64) {
        let all: Vec<f64> = (1..=self.rounds).map(|round| self.at(&name(load, mode, round), number)).collect();
        mean_and_deviation(&all)
    }

    fn at(&self, point: &str, number: &str) -> f64 {
        let get = |name: &str| self.measured.get(point, name);
        match number {
            "restarts_per_1000" => {
                get("txn_restarts_readwithinuncertainty") * 1e3 / (get("txn_commits") + get("txn_commits_readonly"))
            }
            name => get(name),
        }
    }

    /// By how much dynamic bounds are faster than a static offset, of its rate; its standard error, by the rounds, whose neighbours are compared.
    fn gain(&self, load: Load) -> (f64, f64) {
        let ratio = |round| {
            let of = |mode| self.at(&name(load, mode, round), "per_second");
            of(Mode::Dynamic) / of(Mode::Static) - 1.0
        };
        let all: Vec<f64> = (1..=self.rounds).map(ratio).collect();
        let (mean, deviation) = mean_and_deviation(&all);
        (mean, deviation / (all.len() as f64).sqrt())
    }

    fn verdict(&self) -> Verdict {
        let gains = LOADS.map(|load| self.gain(load));
        let difference = difference(&gains);
        let restarts = |mode: Mode| LOADS.map(|load| self.of(load, mode, "restarts_per_1000").0);
        let few = restarts(Mode::Static).iter().all(|restarts| *restarts < FEW_PER_1000);
        let shown = LOADS.iter().zip(gains).map(|(load, (gain, error))| {
            let error = if error.is_nan() { String::new() } else { format!(" ± {:.1}", error * 100.0) };
            format!("{} {:+.1}{error} %", load.word(), gain * 100.0)
        });
        let per_1000 = |mode: Mode| restarts(mode).map(|restarts| format!("{restarts:.2}")).join(", ");
        Verdict {
            item: "000 section 3.4.1",
            document: "TPC-C: about 350 restarts in 30 minutes; YCSB B and F: not a significant number; no positive or negative difference in performance".into(),
            ours: format!(
                "operations a second with dynamic bounds: {}{}; restarts per 1000 transactions: static {}, dynamic {}",
                shown.collect::<Vec<_>>().join(", "),
                match difference {
                    Difference::Unclear => " (the repeated runs lie too far apart to see a difference)",
                    Difference::None | Difference::Seen => "",
                },
                per_1000(Mode::Static),
                per_1000(Mode::Dynamic)
            ),
            // What lies too far apart says nothing of a difference; a great one or many restarts may show all the same.
            stand: match difference {
                Difference::Unclear if few => Stand::NotHere,
                difference => Stand::if_agrees(few && difference == Difference::None),
            },
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new([
            "load",
            "line",
            "operations/s",
            "sd",
            "restarts per 1000 transactions",
            "began anew",
            "operation",
            "p50, ms",
            "p95, ms",
            "p99, ms",
            "retries by clients",
        ]);
        for load in LOADS {
            for mode in LINES {
                for operation in load.operations() {
                    let (rate, deviation) = self.of(load, mode, "per_second");
                    let number = |number: &str, decimals| Cell::Number(self.of(load, mode, number).0, decimals);
                    table.row([
                        load.word().into(),
                        mode.word().into(),
                        Cell::Number(rate, 0),
                        Cell::Number(deviation, 0),
                        number("restarts_per_1000", 2),
                        number("txn_refresh_failures", 0),
                        (*operation).into(),
                        number(&format!("{operation}_p50_ms"), 2),
                        number(&format!("{operation}_p95_ms"), 2),
                        number(&format!("{operation}_p99_ms"), 2),
                        number("client_retries", 0),
                    ]);
                }
            }
        }
        table
    }

    fn chart(&self) -> Picture {
        let group = |load: Load| {
            let all = LINES.map(|mode| self.of(load, mode, "per_second"));
            // Rates of the loads are of different sizes.
            let percent = |rate: f64| rate / all[0].0 * 100.0;
            Group {
                name: load.word().into(),
                values: all.iter().map(|(mean, _)| percent(*mean)).collect(),
                atop: all.iter().map(|(mean, deviation)| percent(mean + deviation)).collect(),
            }
        };
        Picture::Bars(Bars {
            title: "Loads with few uncertain reads (000, section 3.4.1)".into(),
            x_label: "load; line atop: one standard deviation of the repeated runs".into(),
            y_label: "operations/s, % of the static offset's".into(),
            contenders: vec![("static 500 ms".into(), PALETTE[1]), ("dynamic bounds".into(), PALETTE[0])],
            groups: LOADS.map(group).to_vec(),
            decimals: 0,
        })
    }
}

impl Experiment for NoLoss {
    fn name(&self) -> &'static str {
        "ycsb"
    }

    fn about(&self) -> &'static str {
        "YCSB B and F and TPC-C's transactions on real clusters: a static offset of 500 ms and dynamic bounds (000 section 3.4.1)"
    }

    fn introduction(&self) -> &'static str {
        "Before document 000 wrote a load of its own it tried TPC-C and YCSB's workloads B and F on CockroachDB as it is and on its fork: few restarts, and no difference in performance. So shorter\n\
         intervals cost nothing where they do not help. Here one database is told either by a setting of the session, pair by pair on fresh clusters."
    }

    fn points(&self, scope: Scope) -> Vec<Point> {
        let mut points = Vec::new();
        let rounds = sizes(scope.size).rounds;
        for round in 1..=rounds {
            for load in LOADS {
                // Who comes first differs by round: what else the machine does concerns both.
                let mut lines = LINES;
                lines.rotate_left(round % LINES.len());
                for mode in lines {
                    let size = scope.size;
                    // Both of a pair load and draw the same.
                    let seed = seed_of(scope.seed, &pair(load, round));
                    points.push(Point::on_cluster(name(load, mode, round), move |_, ground| {
                        measure(load, mode, &sizes(size), seed, ground)
                    }));
                }
            }
        }
        points
    }

    fn report(&self, measured: &Measured, scope: Scope) -> Report {
        let sizes = sizes(scope.size);
        let numbers = Numbers { measured, rounds: sizes.rounds };
        let settings = vec![
            ("static".to_owned(), format!("`{}`", Mode::Static.settings().join("`, `"))),
            (
                "dynamic".to_owned(),
                format!(
                    "`{}`: the bound that each node states, ±{} µs",
                    Mode::Dynamic.settings().join("`, `"),
                    ERROR.as_micros()
                ),
            ),
            program(),
            (
                "the cluster".to_owned(),
                format!(
                    "fresh for each point: {NODES} nodes, replication 3, leaders spread over the nodes; in three ranges each: {}. Other tables are in one",
                    LOADS
                        .iter()
                        .skip(1)
                        .flat_map(|load| load.split_tables())
                        .map(|table| format!("`{table}`"))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            ),
            (
                "YCSB B, F".to_owned(),
                format!(
                    "{} rows of 1 kB, keys by Zipf's law (exponent 0.99); B: 95 % reads, 5 % updates; F: 50 % reads, 50 % transactions that read a row and write it back. The document names no size",
                    sizes.rows
                ),
            ),
            (
                "orders (TPC-C)".to_owned(),
                format!(
                    "a load of the lab's own: TPC-C's new-order 45 %, payment 43, order-status, stock-level and delivery 4 each, {WAREHOUSES} warehouses. Cut down: columns that these do not need, think times and orders of other warehouses are left out; 100 customers a district and 1,000 items, drawn uniformly. Not CockroachDB's TPC-C, so no tpmC; `cargo x bench tpcc` runs a whole one"
                ),
            ),
            (
                "the load".to_owned(),
                format!(
                    "{} workers in closed loops, spread over the nodes; {} s not measured, then {} s; {} rounds, each with a pair of neighbouring points. {:.0} operations failed",
                    sizes.workers,
                    sizes.ramp_up.as_secs(),
                    sizes.duration.as_secs(),
                    sizes.rounds,
                    measured.all("failures").iter().sum::<f64>()
                ),
            ),
            company(measured),
        ];
        Report {
            verdicts: vec![numbers.verdict()],
            settings,
            sections: vec![Section {
                heading: "Throughput, restarts, latencies".into(),
                text: format!(
                    "Means over the rounds, and standard deviations. Rates differ if they do by more than {:.0} % and than twice the standard error of the ratios of neighbouring points, in either direction; where\n\
                     twice that error is greater than {:.0} % and nothing is seen, the page says that nothing can be.\n\
                     Restarts are uncertain versions met, as `posts-and-likes` counts them; *began anew*: those whose snapshot could not move, all nodes together.",
                    NOISE * 100.0,
                    NOISE * 100.0
                ),
                picture: Some(("throughput".into(), numbers.chart())),
                table: Some(("loads".into(), numbers.table())),
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Difference, LINES, LOADS, Load, Measured, Mode, Numbers, Stand, difference, name, sizes};
    use super::{Experiment, NoLoss};
    use crate::experiments::{Scope, Size, values};

    #[test]
    fn a_difference_is_seen_where_runs_lie_near_each_other() {
        assert_eq!(difference(&[(0.01, 0.01), (-0.04, 0.02)]), Difference::None);
        assert_eq!(
            difference(&[(0.01, 0.01), (-0.08, 0.02)]),
            Difference::Seen,
            "a loss beyond 5 % and twice the error"
        );
        assert_eq!(difference(&[(0.01, 0.01), (0.4, 0.02)]), Difference::Seen, "a gain is one, too");
        assert_eq!(difference(&[(0.01, 0.01), (-0.08, 0.06)]), Difference::Unclear, "nobody can tell");
        assert_eq!(difference(&[(0.01, 0.01), (-0.01, 0.04)]), Difference::Unclear, "5 % would not have been seen");
        assert_eq!(difference(&[(-0.3, 0.06)]), Difference::Seen, "as far as that it is one");
        assert_eq!(difference(&[(-0.02, f64::NAN)]), Difference::Unclear, "one round");
    }

    /// What is found where dynamic bounds have these shares of a static offset's rate in four rounds, and so many restarts of a thousand.
    fn stand(shares: [f64; 4], restarts: f64) -> Stand {
        let mut measured = Measured::default();
        for load in LOADS {
            for mode in LINES {
                for (round, share) in (1..).zip(shares) {
                    let rate = if mode == Mode::Dynamic { 1_000.0 * share } else { 1_000.0 };
                    let numbers = [
                        ("per_second", rate),
                        ("txn_restarts_readwithinuncertainty", restarts),
                        ("txn_commits", 500.0),
                        ("txn_commits_readonly", 500.0),
                    ];
                    measured.0.insert(name(load, mode, round), values(numbers));
                }
            }
        }
        Numbers { measured: &measured, rounds: shares.len() }.verdict().stand
    }

    #[test]
    fn a_verdict_is_of_losses_gains_noise_and_restarts() {
        assert_eq!(stand([1.0, 1.01, 0.99, 1.0], 1.0), Stand::Agrees);
        assert_eq!(stand([0.9, 0.91, 0.89, 0.9], 1.0), Stand::Differs, "a loss of 10 %");
        assert_eq!(stand([1.1, 1.11, 1.09, 1.1], 1.0), Stand::Differs, "a gain of 10 %");
        assert_eq!(stand([0.6, 1.3, 0.8, 1.2], 1.0), Stand::NotHere, "noise");
        assert_eq!(stand([0.6, 1.3, 0.8, 1.2], 200.0), Stand::Differs, "restarts show all the same");
    }

    #[test]
    fn a_full_run_turns_the_order_as_often_as_not() {
        assert!([Size::Usual, Size::Full].into_iter().all(|size| sizes(size).rounds.is_multiple_of(LINES.len())));
        let points = NoLoss.points(Scope { size: Size::Usual, seed: 1 });
        let firsts = points.iter().step_by(2).filter(|point| point.name.contains(Mode::Static.word())).count();
        assert_eq!(firsts * 4, points.len());
    }

    #[test]
    fn tables_that_are_split_are_named() {
        let all: Vec<&str> = Load::Orders.split_tables().collect();
        assert_eq!(all, ["warehouse", "district", "customer", "stock", "order_line"]);
    }
}

//! `restarts`: what 000 sections 5.3 and 5.4 wished for: uncertainty restarts by the length of reads, by contention, by clock skew under a fixed offset, by nodes and
//! by regions, each varied apart from the others.
//!
//! The document's machines were saturated, so the length of its reads and the contention could only grow together. Here the product's brain runs on simulated
//! machines with cores to spare ([`sim::partitions`]), clients pause between transactions, and one number of a [`Case`] is varied at a time.

mod report;

use super::{Experiment, LabError, Measured, Point, Report, Scope, Size, Values, values};
use sim::cluster::{Latency, Model};
use sim::partitions::{Consistency, Costs, Ended, Kind, Outcome, Protocol, Setup, Shape, Uncertainty, measure};
use std::collections::BTreeSet;

/// The experiment.
pub(super) struct Restarts;

const MS: u64 = 1_000_000;
/// 000's static offset.
const MAX_OFFSET_US: u64 = 500_000;
/// The error that clocks state where none is off, microseconds: 000's intervals were 0.8 to 1 ms wide.
const ERROR_US: u64 = 450;
/// Items of all nodes together.
const ITEMS: u64 = 1_200;
/// Items that are read at once.
const BLOCK: u64 = 10;
/// Clients that read, of all nodes together.
const READERS: usize = 12;
/// A client pauses so long on average, microseconds.
const PAUSE_US: u64 = 10_000;
/// One way in a region, and between two, microseconds.
const REGION_US: u64 = 250;
const BETWEEN_US: u64 = 10_000;
/// Runs of a point, each with a seed of its own.
const RUNS: u64 = 3;
/// Parts of a run, by whose numbers a standard error is known (batch means).
const PARTS: u64 = 4;

/// How transactions begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Static,
    Dynamic,
    Strict,
}

const MODES: [Mode; 3] = [Mode::Static, Mode::Dynamic, Mode::Strict];

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Mode::Static => "static",
            Mode::Dynamic => "dynamic",
            Mode::Strict => "strict",
        }
    }
    fn promise(self) -> (Consistency, Uncertainty) {
        match self {
            Mode::Static => (Consistency::Hybrid, Uncertainty::Static(MAX_OFFSET_US)),
            Mode::Dynamic => (Consistency::Hybrid, Uncertainty::Dynamic),
            Mode::Strict => (Consistency::Strict, Uncertainty::Dynamic),
        }
    }
}

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    /// Nodes, each of which leads a range that others replicate.
    nodes: usize,
    /// Regions in which they lie by turns.
    regions: usize,
    /// Blocks that a transaction reads, one after the other, at all nodes by turns.
    blocks: usize,
    /// Clients that update an item, of all nodes together.
    updaters: usize,
    /// Between the clock that is most ahead and the one that is most behind, microseconds.
    skew_us: u64,
    /// The error that clocks state, microseconds: it covers how far they are off.
    error_us: u64,
    /// One way in a region, microseconds.
    link_us: u64,
}

/// What is not varied is as here.
const BASE: Case =
    Case { nodes: 3, regions: 1, blocks: 24, updaters: 12, skew_us: 0, error_us: ERROR_US, link_us: REGION_US };

/// With more, and a static offset, some reads do not end within a run.
const BLOCKS: [usize; 5] = [3, 6, 12, 24, 48];
const UPDATERS: [usize; 5] = [3, 6, 12, 24, 48];
const SKEWS_US: [u64; 6] = [0, 500, 1_000, 2_000, 5_000, 10_000];
const NODES: [usize; 3] = [3, 6, 12];
const REGIONS: [usize; 3] = [1, 2, 3];
/// Clients that update in so many regions: updates take longer there, and their number a second is to stay.
const UPDATERS_OF_REGIONS: [usize; 3] = [12, 15, 33];
/// Blocks that are read where regions vary, for the same reason: each takes 20 ms from another region.
const BLOCKS_OF_REGIONS: usize = 6;

/// What varies in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    Length,
    Contention,
    Skew,
    Nodes,
    Regions,
}

const DIMENSIONS: [Dimension; 5] =
    [Dimension::Length, Dimension::Contention, Dimension::Skew, Dimension::Nodes, Dimension::Regions];

impl Dimension {
    /// Who waits for commits restarts never: what that costs depends on the clocks alone, so it is beside the others there.
    fn modes(self) -> &'static [Mode] {
        match self {
            Dimension::Skew => &MODES,
            _ => &MODES[..2],
        }
    }

    fn cases(self, mode: Mode) -> Vec<Case> {
        match self {
            Dimension::Length => BLOCKS.map(|blocks| Case { blocks, ..BASE }).to_vec(),
            Dimension::Contention => UPDATERS.map(|updaters| Case { updaters, ..BASE }).to_vec(),
            Dimension::Skew => {
                SKEWS_US.map(|skew_us| Case { skew_us, error_us: error_us(mode, skew_us), ..BASE }).to_vec()
            }
            Dimension::Nodes => NODES.map(|nodes| Case { nodes, link_us: link_us(nodes), ..BASE }).to_vec(),
            Dimension::Regions => {
                let of = |(regions, updaters)| Case { regions, updaters, blocks: BLOCKS_OF_REGIONS, ..BASE };
                REGIONS.into_iter().zip(UPDATERS_OF_REGIONS).map(of).collect()
            }
        }
    }
}

/// The error that clocks state where they are off. With a static offset it is the same for all skews, so that skew alone varies: a snapshot begins at the interval's
/// earliest time. The others live by the bound, which grows with what it must cover.
fn error_us(mode: Mode, skew_us: u64) -> u64 {
    let covers_us = match mode {
        Mode::Static => SKEWS_US[SKEWS_US.len() - 1],
        Mode::Dynamic | Mode::Strict => skew_us,
    };
    ERROR_US + covers_us / 2
}

/// One way where a transaction reads from so many nodes: of more, a greater part lies at others than the reader's, and is to take the same time all together.
fn link_us(nodes: usize) -> u64 {
    let (nodes, base) = (nodes as u64, BASE.nodes as u64);
    REGION_US * (base - 1) * nodes / (base * (nodes - 1))
}

impl Case {
    fn name(&self, mode: Mode) -> String {
        let Case { nodes, regions, blocks, updaters, skew_us, error_us, link_us } = self;
        format!(
            "nodes={nodes} regions={regions} blocks={blocks} updaters={updaters} skew={skew_us}us error={error_us}us link={link_us}us {}",
            mode.word()
        )
    }

    /// How far each clock is off: evenly, from behind to ahead.
    fn offsets_us(&self) -> Vec<i64> {
        let skew_us = self.skew_us.cast_signed();
        let steps = self.nodes.saturating_sub(1).max(1) as i64;
        (0..self.nodes as i64).map(|node| skew_us * node / steps - skew_us / 2).collect()
    }

    fn setup(&self, mode: Mode, size: Size, seed: u64) -> Setup {
        let items = ITEMS / self.nodes as u64;
        let rounds = (self.blocks / self.nodes) as u64;
        let reads = Shape::ReadRounds { items, block: BLOCK, partitions: self.nodes, rounds };
        let update = Shape::Update { items, writes: 1, partitions: 1 };
        let (readers, updaters) = (READERS / self.nodes, self.updaters / self.nodes);
        let one_way = |from: usize, to: usize| match from % self.regions == to % self.regions {
            true => self.link_us,
            false => BETWEEN_US,
        };
        let sites = (0..self.nodes).map(|from| (0..self.nodes).map(|to| one_way(from, to)).collect()).collect();
        let (consistency, uncertainty) = mode.promise();
        let (ramp_up_ms, length_ms) = match size {
            Size::Quick => (100, 200),
            Size::Usual => (300, 1_000),
            Size::Full => (1_000, 30_000),
        };
        Setup {
            partitions: self.nodes,
            protocol: Protocol::Ratchet,
            replicas: 3,
            consistency,
            uncertainty,
            clients_each: readers + updaters,
            homes: (0..self.nodes).collect(),
            shapes: [vec![reads; readers], vec![update; updaters]].concat(),
            pause_us: PAUSE_US,
            latency: Latency::MatrixUs { sites, jitter_percent: 10 },
            model: Model { slow_syncs_percent: 0, ..Model::default() },
            costs: Costs { update_ns: 20_000, timestamp_ns: 0, further_ns: 0 },
            clock_offsets_us: self.offsets_us(),
            clock_error_us: self.error_us,
            ramp_up_ns: ramp_up_ms * MS,
            // Reads of several regions are few.
            length_ns: length_ms * MS * if self.regions > 1 { 2 } else { 1 },
            dies: None,
            seed,
        }
    }
}

/// What is kept of the runs of a point.
fn numbers(outcomes: &[Outcome], length_ns: u64) -> Values {
    let all = |kind: Kind| outcomes.iter().flat_map(|outcome| &outcome.ended).filter(move |e| e.kind == kind);
    let of = |kind: Kind| -> Vec<&Ended> { all(kind).filter(|e| e.committed).collect() };
    let (reads, updates) = (of(Kind::Read), of(Kind::Update));
    let seconds = length_ns as f64 / 1e9 * outcomes.len() as f64;
    let percentile = |all: &[&Ended], percent: usize| {
        let mut took_ms: Vec<f64> = all.iter().map(|e| e.took_ns as f64 / 1e6).collect();
        took_ms.sort_by(f64::total_cmp);
        took_ms.get(took_ms.len().saturating_sub(1) * percent / 100).copied().unwrap_or(f64::NAN)
    };
    let per_1000 = |count: u64| count as f64 * 1e3 / reads.len().max(1) as f64;
    values([
        ("reads", reads.len() as f64),
        ("updates_per_second", updates.len() as f64 / seconds),
        ("reads_per_second", reads.len() as f64 / seconds),
        ("met_per_1000", per_1000(reads.iter().map(|e| e.uncertain.met).sum())),
        ("met_per_1000_se", standard_error(&met_of_parts(outcomes, length_ns))),
        ("touched_per_1000", per_1000(reads.iter().filter(|e| e.uncertain.met > 0).count() as u64)),
        ("anew_per_1000", per_1000(reads.iter().map(|e| e.uncertain.began_anew).sum())),
        ("met_at_once_max", all(Kind::Read).map(|e| e.uncertain.met_at_once_max).max().unwrap_or(0) as f64),
        ("most_met", reads.iter().map(|e| e.uncertain.met).max().unwrap_or(0) as f64),
        ("read_p50_ms", percentile(&reads, 50)),
        ("read_p95_ms", percentile(&reads, 95)),
        ("update_p50_ms", percentile(&updates, 50)),
        ("update_p95_ms", percentile(&updates, 95)),
        ("failed_reads", all(Kind::Read).filter(|e| !e.committed).count() as f64),
    ])
}

/// Restarts per 1000 reads of each part of each run.
fn met_of_parts(outcomes: &[Outcome], length_ns: u64) -> Vec<f64> {
    let mut parts = Vec::new();
    for outcome in outcomes {
        for part in 0..PARTS {
            let is_of = |e: &&Ended| e.kind == Kind::Read && e.committed && e.at_ns * PARTS / length_ns == part;
            let met: Vec<u64> = outcome.ended.iter().filter(is_of).map(|e| e.uncertain.met).collect();
            // Nothing ended in it: it says nothing.
            if !met.is_empty() {
                parts.push(met.iter().sum::<u64>() as f64 * 1e3 / met.len() as f64);
            }
        }
    }
    parts
}

/// Of a mean; not a number where there are fewer than two.
fn standard_error(all: &[f64]) -> f64 {
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    let squares: f64 = all.iter().map(|one| (one - mean).powi(2)).sum();
    if all.len() < 2 { f64::NAN } else { (squares / (count - 1.0) / count).sqrt() }
}

impl Experiment for Restarts {
    fn name(&self) -> &'static str {
        "restarts"
    }

    fn about(&self) -> &'static str {
        "uncertainty restarts by length of reads, contention, clock skew, nodes and regions, each apart, simulated (000 sections 5.3, 5.4)"
    }

    fn introduction(&self) -> &'static str {
        "Document 000 could not tell whether its restarts came from long reads or from contention, as its machines were saturated and both grew together; it wished for more nodes, several\n\
         regions and commit-wait beside. Here one of these is varied at a time: the product's brain (members of a cluster with their logs, leases and transactions) runs on simulated\n\
         machines, whose clocks are off by what is said and state a bound that holds."
    }

    fn points(&self, scope: Scope) -> Vec<Point> {
        let mut known = BTreeSet::new();
        let mut points = Vec::new();
        for dimension in DIMENSIONS {
            let of_mode =
                |mode: &Mode| dimension.cases(*mode).into_iter().map(|case| (case, *mode)).collect::<Vec<_>>();
            for (case, mode) in dimension.modes().iter().flat_map(of_mode) {
                // What is not varied is a point of several figures.
                let name = case.name(mode);
                if !known.insert(name.clone()) {
                    continue;
                }
                points.push(Point::new(name.clone(), move |seed| {
                    let length_ns = case.setup(mode, scope.size, seed).length_ns;
                    let runs = if scope.size == Size::Quick { 1 } else { RUNS };
                    let run = |n: u64| measure(case.setup(mode, scope.size, seed.wrapping_add(n)));
                    let failed = |failure: sim::Failure| LabError::Point { point: name.clone(), reason: failure.0 };
                    Ok(numbers(&(0..runs).map(run).collect::<Result<Vec<_>, _>>().map_err(failed)?, length_ns))
                }));
            }
        }
        points
    }

    fn report(&self, measured: &Measured, _scope: Scope) -> Report {
        report::report(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::{BASE, Case, DIMENSIONS, Dimension, ERROR_US, MODES, Mode, READERS, link_us, numbers, standard_error};
    use crate::experiments::{Size, Values};
    use sim::partitions::measure;

    fn run(case: Case, mode: Mode) -> Values {
        let setup = case.setup(mode, Size::Quick, 3);
        let length_ns = setup.length_ns;
        numbers(&[measure(setup).unwrap()], length_ns)
    }

    #[test]
    fn what_is_not_varied_stays() {
        for mode in MODES {
            for case in DIMENSIONS.into_iter().flat_map(|dimension| dimension.cases(mode)) {
                let whole = |count: usize| count.is_multiple_of(case.nodes);
                assert!(whole(case.blocks) && whole(case.updaters) && whole(READERS), "{case:?}");
                let setup = case.setup(mode, Size::Usual, 1);
                assert_eq!(setup.clients_each * setup.partitions, READERS + case.updaters, "{case:?}");
                let furthest_us = setup.clock_offsets_us.iter().map(|offset| offset.unsigned_abs()).max().unwrap();
                assert!(furthest_us < setup.clock_error_us, "bounds hold: {case:?}");
            }
        }
    }

    #[test]
    fn a_static_offset_has_one_stated_error_for_all_skews_and_the_others_their_own() {
        let errors = |mode| Dimension::Skew.cases(mode).iter().map(|case| case.error_us).collect::<Vec<_>>();
        assert!(errors(Mode::Static).iter().all(|us| *us == ERROR_US + 5_000));
        assert_eq!(errors(Mode::Dynamic).first(), Some(&ERROR_US));
        assert!(errors(Mode::Dynamic).is_sorted_by(|a, b| a < b));
    }

    /// Blocks at other nodes, times what a link takes.
    #[test]
    fn what_lies_at_other_nodes_takes_the_same_time_of_more_nodes() {
        let away_us = |nodes: usize| (BASE.blocks * (nodes - 1) / nodes) as u64 * link_us(nodes);
        assert_eq!([3, 6, 12].map(away_us), [4_000, 4_000, 3_982]);
    }

    #[test]
    fn a_standard_error_is_that_of_the_mean() {
        assert_eq!(standard_error(&[1.0, 3.0]), 1.0);
        assert!(standard_error(&[1.0]).is_nan());
    }

    /// Between two begins each node makes a read restart once at most (000 section 5.4); who waits for commits never does.
    #[test]
    fn a_static_offset_restarts_and_commit_wait_does_not() {
        let [fixed, dynamic, strict] = MODES.map(|mode| run(BASE, mode));
        assert!(fixed["reads"] > 50.0 && fixed["failed_reads"] == 0.0, "{fixed:?}");
        assert!(fixed["met_per_1000"] > 3.0 * dynamic["met_per_1000"], "{fixed:?} {dynamic:?}");
        let at_once = fixed["met_at_once_max"];
        assert!(at_once > 1.0 && at_once <= BASE.nodes as f64, "{fixed:?}");
        assert_eq!(strict["met_per_1000"], 0.0, "{strict:?}");
        assert!(strict["update_p50_ms"] > dynamic["update_p50_ms"], "{strict:?} {dynamic:?}");
    }
}

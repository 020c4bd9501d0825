//! `clock-si`: 004 section 2.6, figures 2.3 to 2.8 and 2.13, and the availability of section 2.4.5, in the simulator.

mod report;
mod world;

use super::{Experiment, LabError, Measured, Point, Report, Scope, Size, Values, values};
use sim::partitions::{Kind, Protocol, Setup, Shape, measure};
use world::{MS, WAN_SITES, lan, numbers, wan};

/// The experiment.
pub(super) struct ClockSi;

/// Protocols by the words of points.
const PROTOCOLS: [(Protocol, &str); 4] = [
    (Protocol::Ratchet, "clock"),
    (Protocol::Literal, "literal"),
    (Protocol::Oracle, "oracle"),
    (Protocol::Batched, "batched"),
];
/// Those that figures 2.3 to 2.6 compare.
const COMPARED: [(Protocol, &str); 3] = [PROTOCOLS[0], PROTOCOLS[2], PROTOCOLS[3]];

/// Partitions of figures 2.5 and 2.6.
const PARTITIONS: std::ops::RangeInclusive<usize> = 1..=8;
/// Items of a partition (section 2.6.1).
const ITEMS: u64 = 1_000_000;
/// Items that a transaction reads or updates at a partition (section 2.6.2).
const TOUCHED: u64 = 8;
/// Snapshot ages of figures 2.7 and 2.8, milliseconds; 14 and 21 are the document's, the others ours.
const AGES_MS: [u64; 5] = [0, 3, 7, 14, 21];
/// Probability that an item read is a hot one, of a thousand.
const HOT_PERMILLE: [u64; 6] = [0, 200, 400, 600, 800, 1_000];
/// Hot items. The document says that its set is small, not how small.
const HOT: u64 = 1_000;
/// How far two clocks are apart, microseconds.
const APART_US: [i64; 7] = [0, 50, 100, 200, 500, 1_000, 2_000];
/// Clients of a partition that update in figure 2.5: enough to saturate it, though each waits for syncs and, batched, for others' requests.
const UPDATERS: usize = 640;
/// When something dies, and for how long is counted in pieces of `PIECE_MS`, milliseconds.
const DIES_MS: u64 = 100;
const AVAILABLE_MS: u64 = 300;
const PIECE_MS: u64 = 10;

fn read(partitions: usize) -> Shape {
    Shape::ReadBlocks { items: ITEMS, block: TOUCHED, partitions }
}

fn update(partitions: usize) -> Shape {
    Shape::Update { items: ITEMS, writes: TOUCHED, partitions }
}

fn run(setup: Setup) -> Result<sim::partitions::Outcome, LabError> {
    measure(setup).map_err(|failure| LabError::Point { point: "clock-si".into(), reason: failure.0 })
}

/// A point whose numbers are those of one kind of transaction.
fn point(name: String, kind: Kind, setup: impl Fn(u64) -> Setup + 'static) -> Point {
    Point::new(name, move |seed| {
        let setup = setup(seed);
        let length_ns = setup.length_ns;
        Ok(numbers(&run(setup)?, kind, length_ns))
    })
}

/// Figures 2.3 and 2.4.
fn latency(points: &mut Vec<Point>, scale: u64) {
    for (protocol, word) in COMPARED {
        for partitions in 1..=3 {
            points.push(point(format!("lan read {word} {partitions}"), Kind::Read, move |seed| Setup {
                clients_each: 1,
                length_ns: 100 * scale * MS,
                ..lan(protocol, 3, vec![read(partitions)], seed)
            }));
        }
        for (home, site) in WAN_SITES.into_iter().enumerate() {
            for partitions in 1..=3 {
                let name = format!("wan read {word} {site} {partitions}");
                points.push(point(name, Kind::Read, move |seed| wan(protocol, home, read(partitions), scale, seed)));
            }
            let name = format!("wan update {word} {site}");
            points.push(point(name, Kind::Update, move |seed| wan(protocol, home, update(1), scale, seed)));
        }
    }
}

/// Figures 2.5 and 2.6.
fn throughput(points: &mut Vec<Point>, scale: u64) {
    for (protocol, word) in COMPARED {
        for partitions in PARTITIONS {
            points.push(point(format!("saturated read {word} {partitions}"), Kind::Read, move |seed| Setup {
                clients_each: 48,
                ramp_up_ns: 30 * MS,
                length_ns: 10 * scale * MS,
                ..lan(protocol, partitions, vec![read(1)], seed)
            }));
            points.push(point(format!("saturated update {word} {partitions}"), Kind::Update, move |seed| Setup {
                clients_each: UPDATERS,
                // Longer than all of them wait for the oracle together.
                ramp_up_ns: 400 * MS,
                length_ns: 120 * scale * MS,
                ..lan(protocol, partitions, vec![update(1)], seed)
            }));
            let feed = Shape::Feed { items: ITEMS, posts_percent: 10, latest: 20, followers_at: 3 };
            points.push(Point::new(format!("feed {word} {partitions}"), move |seed| {
                let setup = Setup {
                    clients_each: 128,
                    ramp_up_ns: 100 * MS,
                    length_ns: 50 * scale * MS,
                    ..lan(protocol, partitions, vec![feed.clone()], seed)
                };
                let (outcome, seconds) = (run(setup.clone())?, setup.length_ns as f64 / 1e9);
                let all = outcome.ended.iter().filter(|e| e.committed).count() as f64;
                let mut both = values([("per_second", all / seconds)]);
                for (kind, prefix) in [(Kind::Read, "read"), (Kind::Update, "post")] {
                    let of_kind = numbers(&outcome, kind, setup.length_ns);
                    both.extend(of_kind.into_iter().map(|(name, value)| (format!("{prefix}_{name}"), value)));
                }
                Ok(both)
            }));
        }
    }
}

/// Figures 2.7 and 2.8.
fn hot_spots(points: &mut Vec<Point>, scale: u64) {
    for age_ms in AGES_MS {
        for permille in HOT_PERMILLE {
            let reads = Shape::ReadHot { hot: HOT, items: ITEMS, reads: 10, permille, age_us: age_ms * 1_000 };
            let shapes = vec![reads, Shape::UpdateHot { hot: HOT, writes: 10 }];
            points.push(point(format!("hot {age_ms} {permille}"), Kind::Read, move |seed| Setup {
                clients_each: 32,
                ramp_up_ns: 60 * MS,
                length_ns: 50 * scale * MS,
                ..lan(Protocol::Literal, 1, shapes.clone(), seed)
            }));
        }
    }
}

/// Two partitions whose clocks are apart: half of the transactions come to a clock that is behind theirs.
fn skew(points: &mut Vec<Point>, scale: u64) {
    for (protocol, word) in [PROTOCOLS[0], PROTOCOLS[1]] {
        for apart_us in APART_US {
            points.push(Point::new(format!("apart {word} {apart_us}"), move |seed| {
                let setup = Setup {
                    clients_each: 1,
                    homes: vec![0],
                    clock_offsets_us: vec![apart_us / 2, -apart_us / 2],
                    length_ns: 200 * scale * MS,
                    ..lan(protocol, 2, vec![read(2)], seed)
                };
                let outcome = run(setup.clone())?;
                let mut all = numbers(&outcome, Kind::Read, setup.length_ns);
                let waits = outcome.clock_waits as f64;
                all.insert("waits_share".into(), waits / outcome.visits.max(1) as f64);
                all.insert("wait_ms".into(), outcome.clock_wait_ns as f64 / 1e6 / waits.max(1.0));
                Ok(all)
            }));
        }
    }
}

/// Section 2.4.5: the oracle dies, or a partition.
fn availability(points: &mut Vec<Point>) {
    for (protocol, word, machine) in [
        (Protocol::Oracle, "oracle", 4),
        (Protocol::Oracle, "oracle partition", 0),
        (Protocol::Ratchet, "clock partition", 0),
    ] {
        points.push(Point::new(format!("dies {word}"), move |seed| {
            let setup = Setup {
                clients_each: 4,
                length_ns: AVAILABLE_MS * MS,
                dies: Some((machine, DIES_MS * MS)),
                ..lan(protocol, 4, vec![read(1)], seed)
            };
            let outcome = run(setup)?;
            let mut pieces = Values::new();
            for piece in 0..AVAILABLE_MS / PIECE_MS {
                let within = |at_ns: u64| at_ns / MS / PIECE_MS == piece;
                let count = outcome.ended.iter().filter(|e| e.committed && within(e.at_ns)).count();
                pieces.insert(format!("piece_{piece:03}"), count as f64 * 1e3 / PIECE_MS as f64);
            }
            Ok(pieces)
        }));
    }
}

impl Experiment for ClockSi {
    fn name(&self) -> &'static str {
        "clock-si"
    }

    fn about(&self) -> &'static str {
        "clocks against a timestamp oracle, simulated (004 figures 2.3-2.8, 2.13, section 2.4.5)"
    }

    fn introduction(&self) -> &'static str {
        "Clock-SI takes snapshots and commit timestamps from each server's own clock, conventional snapshot isolation from an oracle behind the network. Document 004\n\
         measures what that saves in latency, throughput and availability. Here the product's brain (a member of a cluster, with its log, its certification and its\n\
         transactions) runs on simulated machines with service times, as these experiments need eight servers and this machine has two cores; the oracle is a model that\n\
         exists in the simulator alone."
    }

    fn points(&self, scope: Scope) -> Vec<Point> {
        // Virtual time is this many times that of a quick run.
        let scale = match scope.size {
            Size::Quick => 1,
            Size::Usual => 5,
            Size::Full => 50,
        };
        let mut points = Vec::new();
        latency(&mut points, scale);
        throughput(&mut points, scale);
        hot_spots(&mut points, scale);
        skew(&mut points, scale);
        availability(&mut points);
        points
    }

    fn report(&self, measured: &Measured, _scope: Scope) -> Report {
        report::report(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::world::base;
    use super::{Protocol, Setup, lan, read, run};

    #[test]
    fn one_seed_gives_one_set_of_numbers() {
        let setup = |seed| Setup { length_ns: 20_000_000, ..lan(Protocol::Batched, 2, vec![read(2)], seed) };
        assert_eq!(run(setup(4)).unwrap(), run(setup(4)).unwrap());
        assert_eq!(base().model.cores, 1);
    }
}

//! `clock-si-model`: the analytical model of 004 section 2.5, its example, and figures 2.9 to 2.12 beside a simulation of one partition.

mod formulas;
mod partition;
mod report;

use super::{Experiment, Measured, Point, Report, Scope, Size, values};
use formulas::{Skew, Store};
use partition::{Disk, arrivals, simulate};

/// The experiment.
pub(super) struct ClockSiModel;

/// Section 2.5.5. Its "CW = 8 ms" is the synchronous write: with 8 ms for S the printed 4.1 ms is 0.5·(S + RRD).
const EXAMPLE: Store = Store {
    items: 1e7,
    reads: 10.0,
    writes: 10.0,
    updates_per_s: 1e4,
    sync_ms: 8.0,
    round_trip_ms: 0.2,
    read_ms: 1.0,
    update_ms: 32.0,
    age_ms: 0.0,
};
/// The snapshot age of the example.
const EXAMPLE_AGE_MS: f64 = 8.2;

/// Section 2.6.5: one partition, a fixed number of reads and writes, S as section 2.6.1 measured it. How many, how often and how long is not printed:
/// ours.
const MEASURED: Store = Store {
    items: 50_000.0,
    reads: 10.0,
    writes: 10.0,
    updates_per_s: 1_000.0,
    sync_ms: 6.7,
    round_trip_ms: 0.0,
    read_ms: 1.0,
    update_ms: 1.0,
    age_ms: 0.0,
};
/// Items of figure 2.9.
const ITEMS: [f64; 7] = [10e3, 20e3, 50e3, 100e3, 200e3, 500e3, 1e6];
/// Snapshot ages of figures 2.10 to 2.12, milliseconds: beyond two syncs nothing is delayed, however commits reach the disk.
const AGES_MS: std::ops::RangeInclusive<u32> = 0..=15;
/// Standard deviations of the skew between two servers' clocks, milliseconds.
const DEVIATIONS_MS: [f64; 5] = [0.02, 0.05, 0.1, 0.5, 2.0];
/// The round trip of section 2.6.1.
const LAN_ROUND_TRIP_MS: f64 = 0.14;

const DISKS: [(Disk, &str); 2] = [(Disk::Apart, "apart"), (Disk::Groups, "groups")];

fn example(age_ms: f64) -> Store {
    Store { age_ms, ..EXAMPLE }
}

fn of_items(items: f64) -> Store {
    Store { items, ..MEASURED }
}

fn of_age(age_ms: f64) -> Store {
    Store { age_ms, ..MEASURED }
}

/// Names of points.
fn name(part: &str, disk: &str, x: f64) -> String {
    format!("{part} {disk} {x}")
}

fn point(part: &str, (disk, word): (Disk, &str), x: f64, store: Store, seconds: f64) -> Point {
    Point::new(name(part, word, x), move |seed| {
        let counted = simulate(&store, disk, seconds, seed);
        Ok(values([
            ("transactions", counted.transactions as f64),
            ("delayed", counted.delayed as f64),
            ("delay_rate", counted.delay_rate()),
            ("delay_ms", counted.delay_ms()),
            ("abort_rate", counted.abort_rate()),
        ]))
    })
}

impl Experiment for ClockSiModel {
    fn name(&self) -> &'static str {
        "clock-si-model"
    }

    fn about(&self) -> &'static str {
        "Clock-SI's analytical model beside a simulated partition (004 section 2.5, figures 2.9-2.12)"
    }

    fn introduction(&self) -> &'static str {
        "Clock-SI reads from a snapshot of the local clock's time, so a read may meet a commit that is on its way to the disk, and waits for it. Section 2.5 of\n\
         document 004 says how often, for how long, and what an older snapshot (Δ) changes; section 2.6.5 checks that on a running system. Here the formulas stand\n\
         as functions, tested against every number that the document prints, beside a simulation that counts the same quantities event by event."
    }

    fn points(&self, scope: Scope) -> Vec<Point> {
        // Virtual seconds of the example (10,000 transactions each) and of the others (1,000 each).
        let (example_s, seconds) = match scope.size {
            Size::Quick => (0.5, 2.0),
            Size::Usual => (60.0, 200.0),
            Size::Full => (600.0, 2_000.0),
        };
        let mut points = Vec::new();
        for age_ms in [0.0, EXAMPLE_AGE_MS] {
            points.push(point("example", DISKS[0], age_ms, example(age_ms), example_s));
        }
        for disk in DISKS {
            for items in ITEMS {
                points.push(point("items", disk, items, of_items(items), seconds));
            }
            for age_ms in AGES_MS.map(f64::from) {
                points.push(point("age", disk, age_ms, of_age(age_ms), seconds));
            }
        }
        let count = seconds as u64 * 10_000;
        for deviation_ms in DEVIATIONS_MS {
            let skew = Skew { mean_ms: 0.0, deviation_ms };
            points.push(Point::new(name("skew", "normal", deviation_ms), move |seed| {
                let counted = arrivals(&skew, LAN_ROUND_TRIP_MS, 0.0, count, seed);
                Ok(values([("delay_rate", counted.delay_rate), ("delay_ms", counted.delay_ms)]))
            }));
        }
        points
    }

    fn report(&self, measured: &Measured, _scope: Scope) -> Report {
        report::report(measured)
    }
}

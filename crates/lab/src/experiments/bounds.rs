//! `bounds`: the size of the bound over time (000 figure 4.17, table E.1), beside the recordings that exist of ours.

use super::{
    Cell, Experiment, LabError, Measured, Picture, Point, Report, Scope, Section, Size, Stand, Table, Values, Verdict,
    values,
};
use crate::clock::figure;
use crate::clock::record::{Bucket, RecordOptions, Recording, record};
use clocksource::{Clock, ClockSource as _};
use std::time::Duration;

/// The experiment.
pub(super) struct Bounds;

/// The recording that docs/benchmarks keeps: `timeball clock record`.
const KEPT: &str = include_str!("../../../../docs/benchmarks/clock-recording.tsv");

fn ours() -> Result<Recording, LabError> {
    let failed = |e: crate::clock::ClockError| LabError::Point { point: "recording".into(), reason: e.to_string() };
    Recording::parse(KEPT).map_err(failed)
}

const PERCENTILES: [(&str, fn(&Bucket) -> f64); 4] =
    [("p50", |b| b.p50_us), ("p95", |b| b.p95_us), ("p99", |b| b.p99_us), ("max", |b| b.max_us)];

/// Buckets that a full run records, of the document's size: twelve hours. Each is a point, so that an interrupted run goes on.
const BUCKETS: usize = 144;
/// What is recorded.
const SOURCE: &str = "chrony";
/// So often it is asked, a second apart, whether it can be relied upon, before a bucket begins.
const TRIES: usize = 30;
/// A clock whose greatest median of a bucket is less than so many times the least one is stable; the document's: 1.28 times.
const STABLE: f64 = 2.0;
/// Far below the static 500 ms, microseconds.
const FAR_BELOW_US: f64 = 5_000.0;

fn bucket(n: usize) -> String {
    format!("bucket {n:03}")
}

/// Five minutes of this machine's clock.
fn record_bucket(point: String) -> Result<Values, LabError> {
    let failed = |reason: String| LabError::Point { point: point.clone(), reason };
    let source = SOURCE.parse().map_err(|e: clocksource::ParseSpecError| failed(e.to_string()))?;
    let clock = Clock::open(&source).map_err(|e| failed(e.to_string()))?;
    let waited = (0..TRIES).find(|_| {
        let trusted = clock.read().trusted().is_some();
        if !trusted {
            std::thread::sleep(Duration::from_secs(1));
        }
        trusted
    });
    if waited.is_none() {
        return Err(failed(format!(
            "no reading of {SOURCE} can be relied upon: is chronyd running, and synchronized?"
        )));
    }
    let options = RecordOptions { duration: RecordOptions::default().bucket, ..RecordOptions::default() };
    let recording = record(&clock, options, &mut std::io::sink(), &|| false).map_err(|e| failed(e.to_string()))?;
    let Some(b) = recording.buckets.first() else { return Err(failed("nothing was read".into())) };
    Ok(values([
        ("mean_us", b.mean_us),
        ("p50_us", b.p50_us),
        ("p95_us", b.p95_us),
        ("p99_us", b.p99_us),
        ("max_us", b.max_us),
        ("readings", b.count as f64),
        ("untrusted", b.untrusted as f64),
    ]))
}

/// What a full run recorded, if this is of one.
fn recorded(measured: &Measured) -> Option<Recording> {
    let of = |n: usize| {
        let get = |name: &str| measured.get(&bucket(n), name);
        Bucket {
            minutes: n as f64 * RecordOptions::default().bucket.as_secs_f64() / 60.0,
            count: get("readings") as u64,
            untrusted: get("untrusted") as u64,
            mean_us: get("mean_us"),
            p50_us: get("p50_us"),
            p95_us: get("p95_us"),
            p99_us: get("p99_us"),
            max_us: get("max_us"),
        }
    };
    measured
        .get(&bucket(1), "p50_us")
        .is_finite()
        .then(|| Recording { source: SOURCE.into(), buckets: (1..=BUCKETS).map(of).collect() })
}

/// Least, middle, mean and greatest over the buckets of a percentile.
fn numbers(recording: &Recording) -> Values {
    let mut all = Values::new();
    for (name, value) in PERCENTILES {
        let mut buckets: Vec<f64> = recording.buckets.iter().map(value).collect();
        buckets.sort_by(f64::total_cmp);
        let n = buckets.len();
        let middle = if n == 0 { f64::NAN } else { (buckets[(n - 1) / 2] + buckets[n / 2]) / 2.0 };
        all.insert(format!("{name}_least_us"), buckets.first().copied().unwrap_or(f64::NAN));
        all.insert(format!("{name}_median_us"), middle);
        all.insert(format!("{name}_mean_us"), buckets.iter().sum::<f64>() / n.max(1) as f64);
        all.insert(format!("{name}_greatest_us"), buckets.last().copied().unwrap_or(f64::NAN));
    }
    all.insert("buckets".into(), recording.buckets.len() as f64);
    all.insert("readings".into(), recording.buckets.iter().map(|b| b.count).sum::<u64>() as f64);
    all.insert("untrusted".into(), recording.buckets.iter().map(|b| b.untrusted).sum::<u64>() as f64);
    all.insert("minutes".into(), recording.buckets.last().map_or(f64::NAN, |b| b.minutes));
    let spike = recording.buckets.iter().max_by(|a, b| a.max_us.total_cmp(&b.max_us));
    all.insert("spike_minutes".into(), spike.map_or(f64::NAN, |b| b.minutes));
    all
}

impl Experiment for Bounds {
    fn name(&self) -> &'static str {
        "bounds"
    }

    fn about(&self) -> &'static str {
        "the size of a clock's bound over time (000 figure 4.17, table E.1), beside our recordings"
    }

    fn introduction(&self) -> &'static str {
        "Document 000 read its TrueClock every 250 ms for twelve hours and printed the percentiles of each five minutes. `timeball clock record` does the same; this page\n\
         sets the document's table beside the recording that is kept with the benchmarks."
    }

    fn points(&self, scope: Scope) -> Vec<Point> {
        let mut points = vec![Point::new("document", |_| Ok(numbers(&figure::document())))];
        match scope.size {
            Size::Full => {
                points.extend((1..=BUCKETS).map(|n| Point::new(bucket(n), move |_| record_bucket(bucket(n)))))
            }
            Size::Quick | Size::Usual => {
                points.push(Point::new("chrony", |_| ours().map(|recording| numbers(&recording))));
            }
        }
        points
    }

    fn report(&self, measured: &Measured, _scope: Scope) -> Report {
        report(measured)
    }
}

fn report(measured: &Measured) -> Report {
    let full = recorded(measured);
    let of_full = full.as_ref().map(numbers);
    let get = |whose: &str, name: &str| match &of_full {
        Some(numbers) if whose == "chrony" => numbers.get(name).copied().unwrap_or(f64::NAN),
        _ => measured.get(whose, name),
    };
    let mut table =
        Table::new(["width of the bound, µs, over the buckets", "whose", "least", "median", "mean", "greatest"]);
    for (name, _) in PERCENTILES {
        for (whose, word) in [("document", "000, table E.1"), ("chrony", "Timeball, `chrony`")] {
            let number = |what: &str| Cell::Number(get(whose, &format!("{name}_{what}_us")), 1);
            table.row([
                name.into(),
                word.into(),
                number("least"),
                number("median"),
                number("mean"),
                number("greatest"),
            ]);
        }
    }
    let verdict = Verdict {
        item: "000 figure 4.17, table E.1",
        document: "144 buckets of 5 minutes: P50 835.2 µs, P95 918.5, P99 952.3 on average; at most 1,354 µs, around minute 600".into(),
        ours: format!(
            "{} buckets in {:.0} minutes: P50 {:.1} µs, P95 {:.1}, P99 {:.1}, at most {:.1} µs{}",
            get("chrony", "buckets"),
            get("chrony", "minutes"),
            get("chrony", "p50_mean_us"),
            get("chrony", "p95_mean_us"),
            get("chrony", "p99_mean_us"),
            get("chrony", "max_greatest_us"),
            match full {
                Some(_) => ", over this machine's chronyd",
                None => ", over one virtual link: how methods compare, not networks; twelve hours were not run",
            }
        ),
        stand: match full {
            Some(_) => {
                let stable = get("chrony", "p50_greatest_us") < STABLE * get("chrony", "p50_least_us");
                Stand::if_agrees(stable && get("chrony", "max_greatest_us") < FAR_BELOW_US)
            }
            None => Stand::NotHere,
        },
    };
    let settings = [
        (
            "the document's",
            "TrueClock over chrony 3.5 and Amazon Time Sync on one virtual machine, 2022; a reading each 250 ms, 172,800 of them",
        ),
        (
            "ours",
            if full.is_some() {
                RECORDED_HERE
            } else {
                "`timeball clock record --clock chrony --duration 10m --every 250ms --bucket 5s`: the product's own clock source over Debian's chronyd 4.3, polled every second, a second chronyd \
             one virtual link away as its server (20 November 2026; docs/benchmarks/clock.md)"
            },
        ),
        ("percentiles", "interpolated as listing B.1 does, so that they compare"),
    ];
    let recording = full.clone().map_or_else(ours, Ok);
    let picture = recording.ok().map(|recording| ("figure-4.17".to_owned(), Picture::Lines(figure::chart(&recording))));
    Report {
        verdicts: vec![verdict],
        settings: settings.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(),
        sections: vec![
            Section {
                heading: "Figure 4.17 and table E.1: the size of the bound".into(),
                text: format!(
                    "The document's numbers are those of its table E.1, bucket by bucket; its greatest width stands at minute {:.0}, where its text has it. Both lie far below the 500 ms that\n\
                     a cluster assumes where it does not measure.{}",
                    get("document", "spike_minutes"),
                    match full {
                        Some(_) => "",
                        None => " A virtual link is shorter than a data center's: the difference of the two medians says nothing of the clocks.",
                    }
                ),
                picture,
                table: Some(("table-e.1".into(), table)),
            },
            Section {
                heading: "Slips of the document".into(),
                text: "The heading of table E.1 says milliseconds; its numbers are microseconds (a median width of 837 ms would be no bound at all, and the text of section 4.3 has 0.8 ms).\n\
                       Section 3.4.4 names a t3.medium for the recording, table B.1 a t3.large (2 processors, 8 GB)."
                    .into(),
                ..Section::default()
            },
            Section {
                heading: "What is missing".into(),
                text: match full {
                    Some(_) => "Amazon's time service, and the document's machine.".into(),
                    None => "Twelve hours against a server of a real network: this machine reaches none. `timeball lab bounds --full` records them by this machine's chronyd in the document's own\n\
                             144 buckets, each a point that `--resume` keeps, and sets them beside table E.1 in place of the recording here."
                        .into(),
                },
                ..Section::default()
            },
        ],
    }
}

/// What a full run says of itself.
const RECORDED_HERE: &str = "the product's own clock source over this machine's chronyd (`--clock chrony`), in the document's buckets: a reading each 250 ms, five minutes each";

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Bounds, bucket, figure, numbers, ours, report};
    use crate::experiments::{Experiment, Measured, Scope, Size, Stand, values};

    #[test]
    fn the_document_table_sums_up_to_what_its_chapter_says() {
        let all = numbers(&figure::document());
        let row = |name: &str| ["least", "median", "mean", "greatest"].map(|what| all[&format!("{name}_{what}_us")]);
        assert_eq!(row("p50").map(|v| (v * 10.0).round() / 10.0), [762.0, 837.0, 835.2, 973.0]);
        assert_eq!(row("p95").map(|v| (v * 10.0).round() / 10.0), [816.0, 911.5, 918.5, 1179.4]);
        assert_eq!(row("max").map(|v| (v * 10.0).round() / 10.0), [825.0, 960.5, 965.7, 1354.0]);
        assert_eq!((all["buckets"], all["readings"], all["spike_minutes"]), (144.0, 172_800.0, 600.0));
    }

    /// A full run's buckets take the kept recording's place: its numbers, its verdict.
    #[test]
    fn a_full_run_is_judged_by_what_it_recorded() {
        let of = |p50_us: f64| {
            let b = |n| (bucket(n), values([("p50_us", p50_us * if n == 7 { 3.0 } else { 1.0 }), ("max_us", 2_000.0)]));
            Measured((1..=BUCKETS).map(b).collect())
        };
        let verdict = &report(&of(300.0)).verdicts[0];
        assert_eq!(verdict.stand, Stand::Differs, "one bucket is three times as wide");
        assert!(verdict.ours.starts_with("144 buckets in 720 minutes: P50 304.2 µs"), "{}", verdict.ours);
        let points = |size| Bounds.points(Scope { size, seed: 1 }).len();
        assert_eq!((points(Size::Full), points(Size::Usual)), (1 + BUCKETS, 2));
        assert_eq!(report(&Measured::default()).verdicts[0].stand, Stand::NotHere);
    }

    #[test]
    fn the_kept_recording_is_there() {
        assert_eq!(numbers(&ours().unwrap())["buckets"], 120.0);
    }
}

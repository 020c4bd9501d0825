//! `bounds`: the size of the bound over time (000 figure 4.17, table E.1), beside the recordings that exist of ours.

use super::{
    Cell, Experiment, LabError, Measured, Picture, Point, Report, Scope, Section, Stand, Table, Values, Verdict,
};
use crate::clock::figure;
use crate::clock::record::{Bucket, Recording};

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

    fn points(&self, _scope: Scope) -> Vec<Point> {
        vec![
            Point::new("document", |_| Ok(numbers(&figure::document()))),
            Point::new("chrony", |_| ours().map(|recording| numbers(&recording))),
        ]
    }

    fn report(&self, measured: &Measured, _scope: Scope) -> Report {
        report(measured)
    }
}

fn report(measured: &Measured) -> Report {
    let get = |whose: &str, name: &str| measured.get(whose, name);
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
            "{} buckets in {:.0} minutes: P50 {:.1} µs, P95 {:.1}, P99 {:.1}, at most {:.1} µs, over one virtual link: how methods compare, not networks; twelve hours were not run",
            get("chrony", "buckets"),
            get("chrony", "minutes"),
            get("chrony", "p50_mean_us"),
            get("chrony", "p95_mean_us"),
            get("chrony", "p99_mean_us"),
            get("chrony", "max_greatest_us")
        ),
        stand: Stand::NotHere,
    };
    let settings = [
        (
            "the document's",
            "TrueClock over chrony 3.5 and Amazon Time Sync on one virtual machine, 2022; a reading each 250 ms, 172,800 of them",
        ),
        (
            "ours",
            "`timeball clock record --clock chrony --duration 10m --every 250ms --bucket 5s`: the product's own clock source over Debian's chronyd 4.3, polled every second, a second chronyd \
             one virtual link away as its server (20 November 2026; docs/benchmarks/clock.md)",
        ),
        ("percentiles", "interpolated as listing B.1 does, so that they compare"),
    ];
    let picture = ours().ok().map(|recording| ("figure-4.17".to_owned(), Picture::Lines(figure::chart(&recording))));
    Report {
        verdicts: vec![verdict],
        settings: settings.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec(),
        sections: vec![
            Section {
                heading: "Figure 4.17 and table E.1: the size of the bound".into(),
                text: format!(
                    "The document's numbers are those of its table E.1, bucket by bucket; its greatest width stands at minute {:.0}, where its text has it. Both lie far below the 500 ms that\n\
                     a cluster assumes where it does not measure. A virtual link is shorter than a data center's: the difference of the two medians says nothing of the clocks.",
                    get("document", "spike_minutes")
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
                text: "Twelve hours against a server of a real network: this machine reaches none. `timeball clock record --clock chrony` with its defaults records them in the document's own\n\
                       144 buckets, and `timeball clock plot` draws them beside table E.1."
                    .into(),
                ..Section::default()
            },
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::{figure, numbers, ours};

    #[test]
    fn the_document_table_sums_up_to_what_its_chapter_says() {
        let all = numbers(&figure::document());
        let row = |name: &str| ["least", "median", "mean", "greatest"].map(|what| all[&format!("{name}_{what}_us")]);
        assert_eq!(row("p50").map(|v| (v * 10.0).round() / 10.0), [762.0, 837.0, 835.2, 973.0]);
        assert_eq!(row("p95").map(|v| (v * 10.0).round() / 10.0), [816.0, 911.5, 918.5, 1179.4]);
        assert_eq!(row("max").map(|v| (v * 10.0).round() / 10.0), [825.0, 960.5, 965.7, 1354.0]);
        assert_eq!((all["buckets"], all["readings"], all["spike_minutes"]), (144.0, 172_800.0, 600.0));
    }

    #[test]
    fn the_kept_recording_is_there() {
        assert_eq!(numbers(&ours().unwrap())["buckets"], 120.0);
    }
}

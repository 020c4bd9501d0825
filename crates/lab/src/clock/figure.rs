//! Figure 4.17 of 000: the size of the bound over the run, ours and the document's.
//!
//! The document ran for twelve hours on one virtual machine of Amazon's in 2022. A recording may be shorter, so the x axis is the
//! share of each run that has passed.

use super::ClockError;
use super::record::{Bucket, Recording};
use crate::plot::{Chart, Drawing, Series};
use std::fmt::Write;

/// Table E.1 of 000.
const TABLE_E1: &str = include_str!("table_e1.tsv");

/// The document's own measurements.
pub fn document() -> Recording {
    let buckets = TABLE_E1.lines().filter(|l| !l.starts_with('#')).filter_map(|line| {
        let n: Vec<f64> = line.split('\t').filter_map(|f| f.parse().ok()).collect();
        match n[..] {
            [minutes, p50_us, p95_us, p99_us, max_us] => {
                // 1,200 readings in five minutes; the table gives no mean.
                let mean_us = f64::NAN;
                Some(Bucket { minutes, count: 1_200, untrusted: 0, mean_us, p50_us, p95_us, p99_us, max_us })
            }
            _ => None,
        }
    });
    Recording { source: "TrueClock over Amazon Time Sync, 2022 (000, table E.1)".into(), buckets: buckets.collect() }
}

fn series(recording: &Recording, prefix: &str, dashed: bool, green: u8) -> Vec<Series> {
    let end = recording.buckets.last().map_or(1.0, |b| b.minutes);
    let line = |name: &str, color, value: fn(&Bucket) -> f64| Series {
        name: format!("{prefix} {name}"),
        color,
        dashed,
        marked: false,
        points: recording.buckets.iter().map(|b| (b.minutes / end * 100.0, value(b))).collect(),
    };
    vec![
        line("P50", (20, 90 + green / 2, 190), |b| b.p50_us),
        line("P95", (230, 150, 30 + green / 2), |b| b.p95_us),
        line("max", (200, 40 + green / 2, 60), |b| b.max_us),
    ]
}

/// The figure.
pub fn chart(ours: &Recording) -> Chart {
    let theirs = document();
    let minutes = |r: &Recording| r.buckets.last().map_or(0.0, |b| b.minutes);
    let mut all = series(&theirs, "000", true, 120);
    all.extend(series(ours, &ours.source, false, 0));
    Chart {
        title: "Size of the bound (000, figure 4.17)".into(),
        x_label: format!("share of the run, % (ours: {:.1} minutes, 000: {:.0})", minutes(ours), minutes(&theirs)),
        y_label: "latest - earliest, microseconds".into(),
        series: all,
        ..Chart::default()
    }
}

/// A table of both, for people.
pub fn summary(ours: &Recording) -> String {
    let mut out = format!("{:<58} {:>9} {:>9} {:>9} {:>9}\n", "width of the bound, us", "P50", "P95", "P99", "max");
    for r in [&document(), ours] {
        let n = r.buckets.len().max(1) as f64;
        let mean = |value: fn(&Bucket) -> f64| r.buckets.iter().map(value).sum::<f64>() / n;
        let max = r.buckets.iter().map(|b| b.max_us).fold(0.0, f64::max);
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{:<58} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
            r.source,
            mean(|b| b.p50_us),
            mean(|b| b.p95_us),
            mean(|b| b.p99_us),
            max
        );
    }
    out.push_str("P50, P95, P99: mean over the buckets\n");
    out
}

/// Reads a recording and gives the figure as SVG and PNG, and the table.
///
/// # Errors
/// [`ClockError::Recording`].
pub fn plot(text: &str) -> Result<(String, Vec<u8>, String), ClockError> {
    let ours = Recording::parse(text)?;
    let chart = chart(&ours);
    Ok((chart.svg(), chart.png(), summary(&ours)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_says_what_its_text_says() {
        let d = document();
        assert_eq!((d.buckets.len(), d.buckets[143].minutes), (144, 720.0));
        let median = d.buckets.iter().map(|b| b.p50_us).sum::<f64>() / 144.0;
        assert!(median > 800.0 && median < 860.0, "slightly above 0.8 ms: {median}");
        assert!(
            d.buckets.iter().any(|b| b.minutes == 600.0 && b.max_us == 1354.0),
            "the largest spike, around 600 minutes"
        );
    }

    #[test]
    fn a_figure_has_both() {
        let ours = Recording { source: "chrony".into(), buckets: vec![Bucket::of(1.0, vec![90.0, 95.0], 0)] };
        let (svg, png, table) = plot(&ours.text()).unwrap();
        assert!(svg.contains("000 P50") && svg.contains("chrony max") && !png.is_empty());
        assert!(table.contains("chrony") && table.contains("1354.0"), "{table}");
    }
}

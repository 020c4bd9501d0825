//! The figure and the table in `docs/benchmarks/clock.md` are what `timeball clock plot` makes of the recording beside them.
//!
//! `BLESS=1 cargo test -p timeball-lab --test figure` draws the figure anew; look at it.
// A test reads and writes files.
#![allow(clippy::disallowed_methods)]

use lab::clock::figure;
use lab::clock::record::Recording;
use std::path::{Path, PathBuf};

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks").join(name)
}

fn compare(name: &str, now: &[u8]) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(kept(name), now).unwrap();
    }
    let same = std::fs::read(kept(name)).is_ok_and(|before| before == now);
    assert!(same, "{name} is not what the recording gives now; BLESS=1 cargo test -p timeball-lab --test figure");
}

#[test]
fn the_kept_figure_is_drawn_from_the_kept_recording() {
    let text = std::fs::read_to_string(kept("clock-recording.tsv")).unwrap();
    let (svg, png, table) = figure::plot(&text).unwrap();
    compare("clock-figure-4.17.svg", svg.as_bytes());
    compare("clock-figure-4.17.png", &png);
    // The page shows the same numbers: one row for 000's, one for ours.
    let page = std::fs::read_to_string(kept("clock.md")).unwrap();
    for line in table.lines().filter(|l| l.starts_with("TrueClock") || l.starts_with("chrony")) {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect();
        let [_, numbers @ ..] = &cells[..] else { panic!("{line}") };
        let row = numbers.join(" | ").replace("1354.0", "1,354.0");
        assert!(page.contains(&row), "{row} is not in clock.md");
    }
}

#[test]
fn the_kept_recording_is_as_recordings_are_written() {
    let text = std::fs::read_to_string(kept("clock-recording.tsv")).unwrap();
    let recording = Recording::parse(&text).unwrap();
    assert_eq!(recording.text(), text);
    assert_eq!(recording.buckets.len(), 120, "ten minutes in buckets of five seconds");
}

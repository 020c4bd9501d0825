//! The figure of the hot rows: what a scan of them costs, and what the disk holds, while they are updated and afterwards.

use super::SYSTEMS;
use super::state::{Sample, State};
use crate::run::root;
use lab::plot::{Chart, Series, stacked_svg};
use std::path::PathBuf;

const MIB: f64 = (1 << 20) as f64;
/// Each system's name in the legend, and its colour.
const LINES: [(&str, (u8, u8, u8)); 2] = [("PostgreSQL 15", (120, 120, 130)), ("Timeball", (200, 40, 40))];

/// Draws the samples of the state, and writes them beside the drawing, for other tools: `store-hot-rows.svg` and `.csv`.
///
/// # Errors
/// Where nothing was measured, or a file cannot be written.
pub fn write(state: &State) -> Result<PathBuf, String> {
    let svg = svg(state).ok_or("nothing to draw: the case `hot` was not measured")?;
    let path = root().join("docs/benchmarks/store-hot-rows.svg");
    for (path, text) in [(path.with_extension("csv"), csv(state)), (path.clone(), svg)] {
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(path)
}

/// A line for each look: the system, the commit and the day of the run, seconds since its updates began, milliseconds of the scan, bytes on disk.
fn csv(state: &State) -> String {
    let mut text = "system,commit,date,at_seconds,scan_ms,disk_bytes\n".to_owned();
    for (system, measured) in SYSTEMS.iter().filter_map(|system| Some((system, state.get("hot", system)?))) {
        for Sample { at_seconds, scan_ms, disk_bytes } in &measured.samples {
            let (commit, date) = (&measured.commit, &measured.date);
            text.push_str(&format!("{system},{commit},{date},{at_seconds:.1},{scan_ms:.3},{disk_bytes:.0}\n"));
        }
    }
    text
}

fn svg(state: &State) -> Option<String> {
    let measured: Vec<_> =
        SYSTEMS.iter().zip(LINES).filter_map(|(system, line)| Some((line, state.get("hot", system)?))).collect();
    let updates = |(_, m): &(_, &super::Measured)| m.figures.get("updates").copied().unwrap_or(0.0);
    let rates: Vec<String> = measured.iter().map(|m| format!("{} {:.0}/s", m.0.0, updates(m))).collect();
    if measured.is_empty() {
        return None;
    }
    let chart = |title: String, y_label: &str, y: fn(&Sample) -> f64| Chart {
        title,
        x_label: "minutes since the updates began".into(),
        y_label: y_label.into(),
        series: measured
            .iter()
            .map(|((name, color), m)| Series {
                name: (*name).into(),
                color: *color,
                dashed: false,
                marked: false,
                points: m.samples.iter().map(|s| (s.at_seconds / 60.0, y(s))).collect(),
            })
            .collect(),
        ..Chart::default()
    };
    let title = format!("1,000 hot rows, 8 clients update them ({}), then nobody: a scan of them", rates.join(", "));
    Some(stacked_svg(&[
        chart(title, "milliseconds", |s| s.scan_ms),
        chart("the disk".into(), "MiB", |s| s.disk_bytes / MIB),
    ]))
}

#[cfg(test)]
mod tests {
    use super::super::lengths::Lengths;
    use super::super::state::Measured;
    use super::*;

    #[test]
    fn both_charts_are_drawn() {
        let mut state = State::load(std::path::Path::new("/nowhere"), &Lengths::FULL);
        assert!(svg(&state).is_none());
        let sample = |n: u32| Sample { at_seconds: f64::from(n), scan_ms: 1.0, disk_bytes: 1e8 };
        state.put("hot", "timeball", Measured { samples: (0..100).map(sample).collect(), ..Measured::default() });
        let svg = svg(&state).unwrap();
        assert!(svg.contains("milliseconds") && svg.contains("MiB") && svg.contains("Timeball"));
        let csv = csv(&state);
        assert_eq!(csv.lines().count(), 101);
        assert_eq!(csv.lines().nth(3), Some("timeball,,,2.0,1.000,100000000"));
        assert_eq!(svg.matches("<polyline").count(), svg.matches("<polyline fill=\"none\"").count());
    }
}

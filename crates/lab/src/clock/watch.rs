//! What the clock says now.

use super::ClockError;
use clock::{Ladder, Reading, Status};
use clocksource::{Clock, ClockSource, Report};
use std::collections::VecDeque;
use std::io::Write;
use std::time::Duration;

/// Errors that the sparkline shows.
const HISTORY: usize = 60;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Errors over time, as one line of bars scaled to the greatest.
pub fn sparkline(errors_ns: impl Iterator<Item = u64> + Clone) -> String {
    let top = errors_ns.clone().max().unwrap_or(0).max(1);
    errors_ns.map(|e| BARS[((u128::from(e) * 7).div_ceil(u128::from(top))) as usize]).collect()
}

/// One reading as JSON. Times are integers in nanoseconds; those of the interval are since the Unix epoch.
pub fn json(reading: &Reading, report: &Report, ladder: &Ladder) -> serde_json::Value {
    let known = reading.status != Status::Unknown;
    serde_json::json!({
        "source": report.source,
        "status": reading.status.name(),
        "earliest_ns": known.then_some(reading.interval.earliest_ns),
        "latest_ns": known.then_some(reading.interval.latest_ns),
        "error_ns": known.then(|| reading.interval.error_ns()),
        "age_ns": known.then(|| reading.now_ns.saturating_sub(reading.as_of_ns)),
        "void_in_ns": (reading.void_after_ns != u64::MAX).then(|| reading.void_after_ns.saturating_sub(reading.now_ns)),
        "max_drift_ppb": reading.max_drift_ppb,
        "trusted": reading.trusted().is_some(),
        "level": ladder.level().name(),
        "reason": ladder.reason().to_string(),
        "detail": report.detail,
        "polls": report.polls,
        "failures": report.failures,
    })
}

/// An error for people.
pub fn human_error(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        10_000_000..100_000_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        _ => format!("{:.0} s", ns as f64 / 1e9),
    }
}

/// How to show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// One JSON object a line instead of a view.
    pub json: bool,
    /// Readings; `None` goes on until stopped.
    pub count: Option<u64>,
    /// Time between readings.
    pub every: Duration,
    /// Whether `out` is a terminal whose lines can be rewritten.
    pub live: bool,
}

/// Shows `clock` until the readings are done or `stopped` says so.
///
/// # Errors
/// [`ClockError::Output`].
pub fn watch(
    clock: &Clock,
    options: WatchOptions,
    out: &mut dyn Write,
    stopped: &dyn Fn() -> bool,
) -> Result<(), ClockError> {
    let (mut ladder, mut history) = (Ladder::default(), VecDeque::with_capacity(HISTORY));
    let mut shown = 0;
    while options.count.is_none_or(|n| shown < n) && !stopped() {
        if shown > 0 {
            std::thread::sleep(options.every);
        }
        let (reading, report) = (clock.read(), clock.report());
        let change = ladder.step(&reading, 0);
        if options.json {
            writeln!(out, "{}", json(&reading, &report, &ladder))?;
        } else {
            if history.len() == HISTORY {
                history.pop_front();
            }
            history.push_back(if reading.status == Status::Unknown { 0 } else { reading.interval.error_ns() });
            let text = view(&reading, &report, &ladder, &history);
            write!(out, "{}", if options.live { over(&text, if shown > 0 { VIEW_LINES } else { 0 }) } else { text })?;
            if let Some(change) = change.filter(|_| !options.live) {
                writeln!(out, "  {change}")?;
            }
        }
        out.flush()?;
        shown += 1;
    }
    Ok(())
}

/// `text` over the last `lines` lines of a terminal. Lines that are too long are cut there: wrapped ones would not be written over.
pub(super) fn over(text: &str, lines: usize) -> String {
    let up = if lines > 0 { format!("\x1b[{lines}A\x1b[J") } else { String::new() };
    format!("{up}\x1b[?7l{text}\x1b[?7h")
}

/// Lines of [`view`].
const VIEW_LINES: usize = 4;

fn view(reading: &Reading, report: &Report, ladder: &Ladder, history: &VecDeque<u64>) -> String {
    let (error, span) = match reading.status {
        Status::Unknown => ("no bound".into(), "time is not known".into()),
        _ => (
            format!("± {}", human_error(reading.interval.error_ns())),
            format!("[{}, {}]", unix(reading.interval.earliest_ns), unix(reading.interval.latest_ns)),
        ),
    };
    let (source, status, level) = (&report.source, reading.status, ladder.level().name());
    let (line, detail) = (sparkline(history.iter().copied()), report.detail.replace(['\n', '\r'], " "));
    format!("{source:<12} {status:<13} {level:<13} {error}\n{span}\n{line}\n{detail}\n")
}

fn unix(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_has_a_bar_for_each_error() {
        assert_eq!(sparkline([0, 50, 100].into_iter()), "▁▅█");
        assert_eq!(sparkline([0, 0].into_iter()), "▁▁");
        assert_eq!(sparkline([u64::MAX].into_iter()), "█");
    }

    #[test]
    fn json_has_the_bound_or_null() {
        let clock = Clock::open(&"static:250us".parse().unwrap()).unwrap();
        let mut out = Vec::new();
        let options = WatchOptions { json: true, count: Some(2), every: Duration::ZERO, live: false };
        watch(&clock, options, &mut out, &|| false).unwrap();
        let lines: Vec<serde_json::Value> =
            String::from_utf8(out).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0]["error_ns"].as_u64(), lines[0]["status"].as_str()), (Some(250_000), Some("synchronized")));
        assert_eq!(lines[0]["level"], "synchronized");
        let unknown =
            json(&clocksource::Anchor::UNKNOWN.read(5, || 0, || 0, |_| false), &Report::default(), &Ladder::default());
        assert!(unknown["error_ns"].is_null() && unknown["age_ns"].is_null() && unknown["trusted"] == false);
    }

    #[test]
    fn a_live_view_is_written_over_itself() {
        let clock = Clock::open(&"static:250us".parse().unwrap()).unwrap();
        let mut out = Vec::new();
        let options = WatchOptions { json: false, count: Some(2), every: Duration::ZERO, live: true };
        watch(&clock, options, &mut out, &|| false).unwrap();
        let text = String::from_utf8(out).unwrap();
        let views: Vec<&str> = text.split("\x1b[4A\x1b[J").collect();
        assert_eq!(views.len(), 2, "{text:?}");
        for view in views {
            assert_eq!(view.lines().count(), VIEW_LINES + 1, "and the end of what cuts lines: {view:?}");
            assert!(view.starts_with("\x1b[?7lstatic:250µs") && view.ends_with("\n\x1b[?7h"), "{view:?}");
        }
    }

    #[test]
    fn the_view_names_source_status_and_error() {
        let clock = Clock::open(&"static:250us".parse().unwrap()).unwrap();
        let mut out = Vec::new();
        watch(
            &clock,
            WatchOptions { json: false, count: Some(1), every: Duration::ZERO, live: false },
            &mut out,
            &|| false,
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("static:250µs") && text.contains("synchronized") && text.contains("± 250.0 us"),
            "{text}"
        );
    }
}

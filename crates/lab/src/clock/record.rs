//! Recording the width of the bound (000, appendix B).
//!
//! Listing B.1 reads the clock every 250 ms, and for each five minutes prints mean, median, 95th and 99th percentile and maximum
//! of `latest - earliest` in microseconds. The percentiles interpolate as its `calculatePercentile` does, so that the numbers
//! compare with table E.1. A reading that may not be relied upon is counted, not measured.

use super::ClockError;
use clocksource::{Clock, ClockSource};
use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

/// First line of a recording.
const HEAD: &str = "# timeball clock recording 1";

/// One bucket: widths of the bound in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Bucket {
    /// End of the bucket, minutes since the start.
    pub minutes: f64,
    /// Readings.
    pub count: u64,
    /// Readings that could not be relied upon.
    pub untrusted: u64,
    /// Mean width.
    pub mean_us: f64,
    /// Median width.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Greatest width.
    pub max_us: f64,
}

/// A recording.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Recording {
    /// The source, as `--clock` names it.
    pub source: String,
    /// Its buckets, in order.
    pub buckets: Vec<Bucket>,
}

/// How to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordOptions {
    /// How long.
    pub duration: Duration,
    /// Time between readings.
    pub every: Duration,
    /// Time in a bucket.
    pub bucket: Duration,
}

impl Default for RecordOptions {
    /// What 000 did.
    fn default() -> Self {
        RecordOptions {
            duration: Duration::from_secs(12 * 3600),
            every: Duration::from_millis(250),
            bucket: Duration::from_secs(300),
        }
    }
}

/// Linear interpolation between the two nearest ranks (listing B.1).
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let index = last as f64 * share;
    let (low, high) = (sorted[index.floor() as usize], sorted[index.ceil() as usize]);
    low + (high - low) * index.fract()
}

impl Bucket {
    /// Sums up widths in microseconds.
    pub fn of(minutes: f64, mut widths_us: Vec<f64>, untrusted: u64) -> Self {
        widths_us.sort_by(f64::total_cmp);
        let count = widths_us.len() as u64;
        Bucket {
            minutes,
            count: count + untrusted,
            untrusted,
            mean_us: widths_us.iter().sum::<f64>() / (count.max(1)) as f64,
            p50_us: percentile(&widths_us, 0.5),
            p95_us: percentile(&widths_us, 0.95),
            p99_us: percentile(&widths_us, 0.99),
            max_us: widths_us.last().copied().unwrap_or(0.0),
        }
    }
    fn line(&self) -> String {
        format!(
            "{:.3}\t{:.3}\t{:.3}\t{:.3}\t{:.3}\t{:.3}\t{}\t{}",
            self.minutes, self.mean_us, self.p50_us, self.p95_us, self.p99_us, self.max_us, self.count, self.untrusted
        )
    }
}

impl Recording {
    /// The text form.
    pub fn text(&self) -> String {
        let mut out = Self::head(&self.source);
        for bucket in &self.buckets {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}", bucket.line());
        }
        out
    }
    fn head(source: &str) -> String {
        format!("{HEAD}\n# source {source}\n# minutes\tmean_us\tp50_us\tp95_us\tp99_us\tmax_us\treadings\tuntrusted\n")
    }
    /// Reads the text form.
    ///
    /// # Errors
    /// [`ClockError::Recording`] with the line that cannot be read.
    pub fn parse(text: &str) -> Result<Self, ClockError> {
        let bad = |line: usize, reason: &str| ClockError::Recording { line: line + 1, reason: reason.into() };
        if text.lines().next() != Some(HEAD) {
            return Err(bad(0, "it does not begin like one"));
        }
        let mut recording = Recording::default();
        for (n, line) in text.lines().enumerate() {
            if let Some(source) = line.strip_prefix("# source ") {
                recording.source = source.into();
            }
            if line.starts_with('#') || line.is_empty() {
                continue;
            }
            let numbers: Option<Vec<f64>> = line.split('\t').map(|f| f.parse().ok()).collect();
            match numbers.as_deref() {
                Some([minutes, mean_us, p50_us, p95_us, p99_us, max_us, count, untrusted]) => {
                    recording.buckets.push(Bucket {
                        minutes: *minutes,
                        count: *count as u64,
                        untrusted: *untrusted as u64,
                        mean_us: *mean_us,
                        p50_us: *p50_us,
                        p95_us: *p95_us,
                        p99_us: *p99_us,
                        max_us: *max_us,
                    });
                }
                _ => return Err(bad(n, "eight numbers between tabs are expected")),
            }
        }
        Ok(recording)
    }
}

/// Records `clock`, writing each bucket to `out` as it ends, until the time is over or `stopped` says so.
///
/// # Errors
/// [`ClockError::Output`].
pub fn record(
    clock: &Clock,
    options: RecordOptions,
    out: &mut dyn Write,
    stopped: &dyn Fn() -> bool,
) -> Result<Recording, ClockError> {
    let mut recording = Recording { source: clock.name(), buckets: Vec::new() };
    out.write_all(Recording::head(&recording.source).as_bytes())?;
    let (start, mut widths, mut untrusted) = (Instant::now(), Vec::new(), 0);
    let mut reading = 0u32;
    loop {
        match clock.read().trusted() {
            Some(i) => widths.push((i.latest_ns - i.earliest_ns) as f64 / 1e3),
            None => untrusted += 1,
        }
        reading += 1;
        let done = start.elapsed() >= options.duration || stopped();
        let ended = start.elapsed() >= options.bucket.saturating_mul(recording.buckets.len() as u32 + 1);
        if (ended || done) && (!widths.is_empty() || untrusted > 0) {
            let minutes = start.elapsed().as_secs_f64() / 60.0;
            let bucket = Bucket::of(minutes, std::mem::take(&mut widths), std::mem::take(&mut untrusted));
            writeln!(out, "{}", bucket.line())?;
            out.flush()?;
            recording.buckets.push(bucket);
        }
        if done {
            return Ok(recording);
        }
        std::thread::sleep(options.every.saturating_mul(reading).saturating_sub(start.elapsed()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_document() {
        let bucket = Bucket::of(5.0, vec![10.0, 20.0, 30.0, 40.0], 1);
        assert_eq!((bucket.mean_us, bucket.p50_us, bucket.max_us, bucket.count), (25.0, 25.0, 40.0, 5));
        assert!((bucket.p95_us - 38.5).abs() < 1e-9 && (bucket.p99_us - 39.7).abs() < 1e-9, "{bucket:?}");
        assert_eq!(Bucket::of(1.0, vec![], 3).untrusted, 3);
    }

    #[test]
    fn a_recording_round_trips_and_wrong_lines_are_named() {
        let bucket = Bucket::of(0.5, vec![1.0, 2.5], 0);
        let recording = Recording { source: "chrony".into(), buckets: vec![bucket, bucket] };
        assert_eq!(Recording::parse(&recording.text()).unwrap(), recording);
        let broken = format!("{}1\t2\n", recording.text());
        assert!(Recording::parse(&broken).unwrap_err().to_string().contains("line 6"));
        assert!(Recording::parse("x").is_err());
    }

    #[test]
    fn recording_writes_what_it_returns() {
        let clock = Clock::open(&"static:1ms".parse().unwrap()).unwrap();
        let options = RecordOptions { every: Duration::ZERO, bucket: Duration::ZERO, ..Default::default() };
        let (mut out, left) = (Vec::new(), std::cell::Cell::new(3));
        let recording = record(&clock, options, &mut out, &|| left.replace(left.get() - 1) == 0).unwrap();
        assert_eq!(recording.buckets.len(), 4);
        assert!(recording.buckets.iter().all(|b| (b.p50_us, b.max_us) == (2_000.0, 2_000.0)));
        assert_eq!(Recording::parse(&String::from_utf8(out).unwrap()).unwrap().buckets.len(), 4);
    }
}

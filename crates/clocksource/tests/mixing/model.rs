//! chronyd's way from samples to a report: a weighted line, the runs test by which it forgets, the slew towards the end of the line
//! (chrony 4.3, `regress.c` and `sourcestats.c`). One server, asked at a steady pace.

use clocksource::chrony::Tracking;
use clocksource::{Memory, Moment};

/// Samples that it keeps at most, those that it never drops for the runs test (`minsamples`), and those that a line needs.
const SAMPLES_MAX: usize = 64;
const SAMPLES_MIN: usize = 6;
const LINE_MIN: usize = 3;
/// Runs of residuals of one sign that so many samples must exceed, from eight samples on.
const RUNS: [usize; 65] = [
    0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 7, 7, 7, 8, 8, 9, 9, 9, 10, 10, 11, 11, 11, 12, 12, 13,
    13, 14, 14, 14, 15, 15, 16, 16, 17, 17, 18, 18, 18, 19, 19, 20, 20, 21, 21, 21, 22, 22, 23, 23, 24, 24, 25, 25, 26,
    26,
];
/// Student's t of 1, 2, ... degrees of freedom, as it takes it; then the last.
const T: [f64; 20] = [
    636.6, 31.6, 12.92, 8.61, 6.869, 5.959, 5.408, 5.041, 4.781, 4.587, 4.437, 4.318, 4.221, 4.140, 4.073, 4.015,
    3.965, 3.922, 3.883, 3.850,
];
const SKEW_MIN: f64 = 1e-12;
const SKEW_MAX: f64 = 1e2;
/// A correction is slewed away over so many of its poll intervals, at most so fast.
const SLEW_POLLS: f64 = 3.0;
const SLEW_MAX: f64 = 0.083_333;

/// When by the system clock, corrected, seconds; what was to be added to that then; and the round trip.
#[derive(Clone, Copy)]
struct Sample {
    at: f64,
    offset: f64,
    delay: f64,
    /// Boot time, which it does not know.
    boot_ns: u64,
}

/// The daemon. Seconds since the start of the story.
pub struct Chronyd {
    samples: Vec<Sample>,
    /// By how much faster it lets the oscillator run, and what is still to be slewed.
    pub frequency: f64,
    pub remaining: f64,
    poll_s: f64,
    offset_sd: f64,
    skew: f64,
    delay: f64,
    updated: f64,
}

/// A line through samples.
struct Line {
    start: usize,
    end: f64,
    slope: f64,
    end_sd: f64,
    slope_sd: f64,
}

fn fit(samples: &[Sample], weights: &[f64]) -> Line {
    let last = samples.last().map_or(0.0, |s| s.at);
    let mut start = 0;
    loop {
        let of: Vec<(f64, f64, f64)> =
            samples[start..].iter().zip(&weights[start..]).map(|(s, w)| (s.at - last, s.offset, *w)).collect();
        let sum = |term: fn(&(f64, f64, f64)) -> f64| of.iter().map(term).sum::<f64>();
        let weight = sum(|(_, _, w)| 1.0 / w);
        let (mean, level) = (sum(|(x, _, w)| x / w) / weight, sum(|(_, y, w)| y / w) / weight);
        let spread: f64 = of.iter().map(|(x, _, w)| (x - mean).powi(2) / w).sum();
        let slope = of.iter().map(|(x, y, w)| y * (x - mean) / w).sum::<f64>() / spread;
        let end = level - slope * mean;
        let residuals: Vec<f64> = of.iter().map(|(x, y, _)| y - end - slope * x).collect();
        let runs = 1 + residuals.windows(2).filter(|r| r[0].signum() != r[1].signum()).count();
        if runs > RUNS[of.len()] || of.len() <= SAMPLES_MIN {
            let squares: f64 = residuals.iter().zip(&of).map(|(r, (_, _, w))| r * r / w).sum();
            let variance = squares / (of.len() - 2) as f64;
            let slope_sd = (variance / spread).sqrt();
            let end_sd = (variance / weight + (mean * slope_sd).powi(2)).sqrt();
            return Line { start, end, slope, end_sd, slope_sd };
        }
        start += 1;
    }
}

impl Chronyd {
    pub fn new(poll_s: f64) -> Self {
        Chronyd {
            samples: Vec::new(),
            frequency: 0.0,
            remaining: 0.0,
            poll_s,
            offset_sd: 0.0,
            skew: 1.0,
            delay: 0.0,
            updated: 0.0,
        }
    }
    pub fn is_ready(&self) -> bool {
        self.samples.len() >= SAMPLES_MIN
    }
    /// How fast it slews the clock now.
    pub fn slew(&self) -> f64 {
        (self.remaining / (SLEW_POLLS * self.poll_s)).clamp(-SLEW_MAX, SLEW_MAX)
    }
    /// It asked its server: by that true time is `offset` ahead of the clock that shows `real`, both seconds.
    pub fn hear(&mut self, real: f64, offset: f64, delay: f64, boot_ns: u64) {
        let at = real + self.remaining;
        self.samples.push(Sample { at, offset: offset - self.remaining, delay, boot_ns });
        if self.samples.len() > SAMPLES_MAX {
            self.samples.remove(0);
        }
        self.updated = at;
        if self.samples.len() < LINE_MIN {
            return;
        }
        let mut distances: Vec<f64> = self.samples.iter().map(|s| s.delay / 2.0).collect();
        let weigh = distances.clone();
        distances.sort_by(f64::total_cmp);
        let (least, median) = (distances[0], distances[distances.len() / 2]);
        let sd = ((median - least) / 0.7).clamp(1e-7, least.max(1e-7));
        let weights: Vec<f64> = weigh.iter().map(|d| (1.0 + ((d - least - 1e-7) / sd).max(0.0)).powi(2)).collect();
        let line = fit(&self.samples, &weights);
        self.samples.drain(..line.start);
        let freedom = self.samples.len() - 2;
        self.skew = (line.slope_sd * T[freedom.min(T.len()) - 1]).clamp(SKEW_MIN, SKEW_MAX);
        // Of the sample that is worth most, delay and age are counted.
        let distance = |s: &Sample| s.delay / 2.0 + (at - s.at) * self.skew;
        let best = self.samples.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let (best_delay, best_age) = best.map_or((0.0, 0.0), |s| (s.delay, at - s.at));
        self.offset_sd = line.end_sd + best_age * self.skew;
        self.delay = best_delay;
        // From here on the clock goes by the line, and so do the samples.
        for s in &mut self.samples {
            let moved = line.end + line.slope * (s.at - at);
            (s.at, s.offset) = (s.at + moved, s.offset - moved);
        }
        self.updated += line.end;
        self.remaining += line.end;
        self.frequency = (1.0 + self.frequency) * (1.0 + line.slope) - 1.0;
    }
    /// Its report, and what it says of its samples.
    pub fn report(&self, real: f64, real_ns: u64, boot_ns: u64) -> (Tracking, Memory) {
        let age = real + self.remaining - self.updated;
        let tracking = Tracking {
            reference_id: 1,
            stratum: 2,
            reference_unix_ns: real_ns.saturating_sub((age.max(0.0) * 1e9) as u64),
            current_correction_s: self.remaining,
            frequency_ppm: -self.frequency * 1e6,
            skew_ppm: self.skew * 1e6,
            root_delay_s: self.delay,
            root_dispersion_s: self.offset_sd + age.abs() * (self.skew + 1e-6),
            update_interval_s: self.poll_s,
            ..Tracking::default()
        };
        // As the probe makes it of the rounded numbers of `sourcestats`.
        let span = self.samples.last().zip(self.samples.first()).map_or(0.0, |(last, first)| last.at - first.at);
        let back_ns = ((age + span).max(0.0) * 1e9) as u64 + 2_000_000_000;
        (tracking, Memory::Since(boot_ns.saturating_sub(back_ns)))
    }
    /// Whether it still has samples from before this boot time.
    pub fn mixes(&self, boot_ns: u64) -> bool {
        self.samples.first().is_some_and(|s| s.boot_ns < boot_ns)
    }
    pub fn moment(real_ns: u64, boot_ns: u64, raw_ns: u64, steering: f64) -> Moment {
        Moment {
            boot_ns,
            mono_ns: boot_ns,
            real_ns,
            raw_ns,
            width_ns: 100,
            steering_ppb: Some((steering * 1e9) as i64),
        }
    }
}

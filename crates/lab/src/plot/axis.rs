//! Axes: from data to pixels, with lines of a grid at round numbers.

/// Labels from here on are written with a power of ten: the margin has room for seven digits.
const LABEL_MAX: f64 = 1e7;
/// Up to so many decades have lines at 2 and 5, too.
const LOG_DECADES: f64 = 2.5;
/// Gridlines aimed at on either axis.
const TICKS: f64 = 8.0;

/// A step of 1, 2 or 5 times a power of ten that divides `span` into about `count` parts.
fn step(span: f64, count: f64) -> f64 {
    let raw = (span / count).max(f64::MIN_POSITIVE);
    let magnitude = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * magnitude >= raw).unwrap_or(10.0);
    factor * magnitude
}

fn label(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    if value.abs() >= LABEL_MAX { format!("{value:e}") } else { format!("{value:.decimals$}") }
}

/// An axis from data to pixels.
pub(super) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    step: f64,
    log: bool,
}

impl Axis {
    /// From `low` to `high`, widened to a line of the grid above.
    pub fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = step(high - low, TICKS);
        Axis { low, high: (high / step).ceil() * step, from, to, step, log: false }
    }
    /// From `low` to `high`, both above 0, widened to lie on lines of the grid.
    pub fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = (low.max(f64::MIN_POSITIVE), high.max(low * 1.01));
        let lines: Vec<f64> = log_lines(low, high).collect();
        let at = |value: Option<&f64>, other: f64| value.copied().unwrap_or(other).log10();
        let below = at(lines.iter().rev().find(|line| **line <= low * 1.000_001), low);
        let above = at(lines.iter().find(|line| **line >= high * 0.999_999), high);
        Axis { low: below, high: above, from, to, step: 0.0, log: true }
    }
    /// Where a value lies.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }
    /// Where lines of the grid are.
    pub fn ticks(&self) -> Vec<f64> {
        if self.log {
            let (low, high) = (10f64.powf(self.low), 10f64.powf(self.high));
            return log_lines(low, high).filter(|v| *v >= low * 0.999_999 && *v <= high * 1.000_001).collect();
        }
        let first = (self.low / self.step).ceil() as i64;
        let last = (self.high / self.step + 1e-9).floor() as i64;
        (first..=last).map(|n| n as f64 * self.step).collect()
    }
    /// What stands at one.
    pub fn label(&self, value: f64) -> String {
        if !self.log {
            return label(value, self.step);
        }
        if value.abs() >= LABEL_MAX || value < 1e-5 { format!("{value:e}") } else { plain(value) }
    }
}

/// Where lines of a grid of powers of ten may be, around `low` and `high`: with 2 and 5 between them where there are few.
fn log_lines(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let few = (high / low).log10() <= LOG_DECADES;
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    powers.flat_map(move |n| {
        let factors: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
        // Through text: 2 * 10^-3 is 0.002, and not a little more.
        factors.iter().map(move |f| format!("{f}e{n}").parse().unwrap_or(*f))
    })
}

/// A number without an exponent and without zeros at its end.
fn plain(value: f64) -> String {
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::{label, step};

    #[test]
    fn steps_are_round() {
        assert_eq!([step(100.0, 8.0), step(9.0, 8.0), step(0.3, 8.0), step(1354.0, 8.0)], [20.0, 2.0, 0.05, 200.0]);
        assert_eq!((label(0.05, 0.05), label(20.0, 20.0)), ("0.05".into(), "20".into()));
        assert_eq!((label(9e6, 1e6), label(2.5e7, 5e6)), ("9000000".into(), "2.5e7".into()), "the margin is narrow");
    }
}

//! A line chart and its layout.

use super::{Align, Canvas, Color, png, svg};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 540.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 64.0;
const INK: Color = (40, 40, 48);
const FAINT: Color = (222, 222, 228);
/// Width of a letter of the legend, whichever canvas draws it.
const LETTER: f64 = 9.2;
/// Gridlines aimed at on either axis.
const TICKS: f64 = 8.0;

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub color: Color,
    /// Dashed lines are somebody else's numbers.
    pub dashed: bool,
    /// Its points, in the order of x.
    pub points: Vec<(f64, f64)>,
}

/// A line chart.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// Left of it.
    pub y_label: String,
    /// Its lines.
    pub series: Vec<Series>,
}

/// A step of 1, 2 or 5 times a power of ten that divides `span` into about `count` parts.
fn step(span: f64, count: f64) -> f64 {
    let raw = (span / count).max(f64::MIN_POSITIVE);
    let magnitude = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * magnitude >= raw).unwrap_or(10.0);
    factor * magnitude
}

fn label(value: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.decimals$}")
}

/// An axis from data to pixels.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    step: f64,
}

impl Axis {
    fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = step(high - low, TICKS);
        Axis { low, high: (high / step).ceil() * step, from, to, step }
    }
    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }
    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let first = (self.low / self.step).ceil() as i64;
        let last = (self.high / self.step + 1e-9).floor() as i64;
        (first..=last).map(|n| n as f64 * self.step)
    }
}

impl Chart {
    /// Draws it.
    pub fn draw(&self, canvas: &mut dyn Canvas) {
        let all = || self.series.iter().flat_map(|s| &s.points).filter(|p| p.0.is_finite() && p.1.is_finite());
        let (x_low, x_high) = all().fold((f64::MAX, f64::MIN), |(l, h), p| (l.min(p.0), h.max(p.0)));
        let y_high = all().fold(0.0f64, |h, p| h.max(p.1));
        let x = Axis::new(if x_low > x_high { 0.0 } else { x_low.min(0.0) }, x_high.max(0.0), LEFT, WIDTH - RIGHT);
        let y = Axis::new(0.0, y_high, HEIGHT - BOTTOM, TOP);
        self.grid(canvas, &x, &y);
        for series in &self.series {
            let points: Vec<_> = series.points.iter().map(|(px, py)| (x.at(*px), y.at(*py))).collect();
            canvas.path(&points, if series.dashed { 1.3 } else { 2.0 }, series.color, series.dashed);
        }
        let mut at = LEFT + 8.0;
        for series in &self.series {
            canvas.path(&[(at, TOP - 12.0), (at + 22.0, TOP - 12.0)], 2.0, series.color, series.dashed);
            canvas.text((at + 28.0, TOP - 8.0), &series.name, Align::Left, INK);
            at += 28.0 + series.name.chars().count() as f64 * LETTER + 18.0;
        }
    }

    fn grid(&self, canvas: &mut dyn Canvas, x: &Axis, y: &Axis) {
        for value in y.ticks() {
            let at = y.at(value);
            canvas.path(&[(LEFT, at), (WIDTH - RIGHT, at)], 1.0, FAINT, false);
            canvas.text((LEFT - 8.0, at + 4.0), &label(value, y.step), Align::Right, INK);
        }
        for value in x.ticks() {
            let at = x.at(value);
            canvas.path(&[(at, TOP), (at, HEIGHT - BOTTOM)], 1.0, FAINT, false);
            canvas.text((at, HEIGHT - BOTTOM + 18.0), &label(value, x.step), Align::Middle, INK);
        }
        canvas.path(&[(LEFT, TOP), (LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM)], 1.2, INK, false);
        canvas.text((WIDTH / 2.0, 24.0), &self.title, Align::Middle, INK);
        canvas.text((WIDTH / 2.0, HEIGHT - 18.0), &self.x_label, Align::Middle, INK);
        canvas.text_up((20.0, (TOP + HEIGHT - BOTTOM) / 2.0), &self.y_label, INK);
    }

    /// The chart as an SVG document.
    pub fn svg(&self) -> String {
        let mut canvas = svg::Svg::new(WIDTH, HEIGHT);
        self.draw(&mut canvas);
        canvas.finish()
    }
    /// The chart as a PNG file.
    pub fn png(&self) -> Vec<u8> {
        let mut canvas = png::Png::new(WIDTH as usize, HEIGHT as usize);
        self.draw(&mut canvas);
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let points = (0..50).map(|i| (f64::from(i), 800.0 + f64::from(i * 37 % 100))).collect();
        let series = Series { name: "a < b & c".into(), color: (200, 30, 30), dashed: false, points };
        Chart { title: "t".into(), x_label: "x".into(), y_label: "y".into(), series: vec![series] }
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([step(100.0, 8.0), step(9.0, 8.0), step(0.3, 8.0), step(1354.0, 8.0)], [20.0, 2.0, 0.05, 200.0]);
        assert_eq!((label(0.05, 0.05), label(20.0, 20.0)), ("0.05".into(), "20".into()));
    }

    #[test]
    fn svg_escapes_and_png_is_a_png() {
        let svg = chart().svg();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains("a &lt; b &amp; c"));
        let png = chart().png();
        assert_eq!(png[..8], [0x89, b'P', b'N', b'G', 13, 10, 26, 10]);
        assert_eq!(&png[png.len() - 8..png.len() - 4], b"IEND");
        assert!(png.len() < 200_000, "{}", png.len());
    }

    #[test]
    fn an_empty_chart_draws() {
        assert!(Chart::default().svg().contains("</svg>") && !Chart::default().png().is_empty());
    }
}

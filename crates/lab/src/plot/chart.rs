//! A line chart and its layout.

use super::axis::Axis;
use super::frame::{BOTTOM, Drawing, FAINT, Frame, HEIGHT, INK, LEFT, LETTER, RIGHT, TOP, WIDTH};
use super::{Align, Canvas, Color, svg};

/// A row of the legend, the line before a name in it, and the gap after one.
const ROW: f64 = 18.0;
const DASH: f64 = 28.0;
const GAP: f64 = 18.0;
/// Radius of a marked point.
const MARK: f64 = 3.6;
/// Longer names are cut in the middle: an entry fits a row.
const NAME_MAX: usize = 72;
/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub color: Color,
    /// Dashed lines are somebody else's numbers.
    pub dashed: bool,
    /// Each point is marked, too: where they are few.
    pub marked: bool,
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
    /// Powers of ten along x; points at or below 0 are left out.
    pub x_log: bool,
    /// Powers of ten along y; points at or below 0 are left out.
    pub y_log: bool,
    /// Its lines.
    pub series: Vec<Series>,
}

/// A name as the legend has it: its ends tell it from others.
fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= NAME_MAX {
        return name.to_owned();
    }
    let half = (NAME_MAX - 3) / 2;
    let (head, tail) = (&letters[..half], &letters[letters.len() - half..]);
    format!("{}...{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

/// Where each name of the legend begins: x, and its row. What does not fit into a row begins the next.
fn legend(names: &[String]) -> Vec<(f64, usize)> {
    let (mut at, mut row) = (LEFT + 8.0, 0);
    let place = |name: &String| {
        let width = DASH + name.chars().count() as f64 * LETTER;
        if at > LEFT + 8.0 && at + width > WIDTH - RIGHT {
            (at, row) = (LEFT + 8.0, row + 1);
        }
        let here = (at, row);
        at += width + GAP;
        here
    };
    names.iter().map(place).collect()
}

impl Chart {
    /// Whether a point can be drawn.
    fn has(&self, point: &(f64, f64)) -> bool {
        let fits = |value: f64, log: bool| value.is_finite() && (!log || value > 0.0);
        fits(point.0, self.x_log) && fits(point.1, self.y_log)
    }

    fn grid(&self, canvas: &mut dyn Canvas, x: &Axis, top: f64) {
        for value in x.ticks() {
            let at = x.at(value);
            canvas.path(&[(at, top), (at, HEIGHT - BOTTOM)], 1.0, FAINT, false);
            let text = x.label(value);
            // The last one does not leave the figure.
            let half = text.chars().count() as f64 * LETTER / 2.0;
            let (at, align) = if at + half > WIDTH { (WIDTH - 2.0, Align::Right) } else { (at, Align::Middle) };
            canvas.text((at, HEIGHT - BOTTOM + 18.0), &text, align, INK);
        }
    }
}

impl Drawing for Chart {
    fn draw(&self, canvas: &mut dyn Canvas) {
        let all = || self.series.iter().flat_map(|s| &s.points).filter(|p| self.has(p));
        let (x_low, x_high) = all().fold((f64::MAX, f64::MIN), |(l, h), p| (l.min(p.0), h.max(p.0)));
        let (y_low, y_high) = all().fold((f64::MAX, 0.0f64), |(l, h), p| (l.min(p.1), h.max(p.1)));
        let nothing = x_low > x_high;
        let x = match self.x_log && !nothing {
            true => Axis::log(x_low, x_high, LEFT, WIDTH - RIGHT),
            false => Axis::new(if nothing { 0.0 } else { x_low.min(0.0) }, x_high.max(0.0), LEFT, WIDTH - RIGHT),
        };
        let names: Vec<String> = self.series.iter().map(|s| short(&s.name)).collect();
        let places = legend(&names);
        let rows = places.last().map_or(0, |(_, row)| *row);
        let top = TOP + rows as f64 * ROW;
        let y = match self.y_log && !nothing {
            true => Axis::log(y_low, y_high, HEIGHT - BOTTOM, top),
            false => Axis::new(0.0, y_high, HEIGHT - BOTTOM, top),
        };
        let frame = Frame { title: &self.title, x_label: &self.x_label, y_label: &self.y_label, top };
        frame.below(canvas, &y);
        self.grid(canvas, &x, top);
        frame.axes(canvas);
        frame.words(canvas);
        for series in &self.series {
            let shown = series.points.iter().filter(|p| self.has(p));
            let points: Vec<_> = shown.map(|(px, py)| (x.at(*px), y.at(*py))).collect();
            canvas.path(&points, if series.dashed { 1.3 } else { 2.0 }, series.color, series.dashed);
            for point in points.iter().filter(|_| series.marked) {
                canvas.dot(*point, MARK, series.color);
            }
        }
        for ((series, name), (at, row)) in self.series.iter().zip(&names).zip(places) {
            let line = TOP - 12.0 + row as f64 * ROW;
            canvas.path(&[(at, line), (at + 22.0, line)], 2.0, series.color, series.dashed);
            if series.marked {
                canvas.dot((at + 11.0, line), MARK, series.color);
            }
            canvas.text((at + DASH, line + 4.0), name, Align::Left, INK);
        }
    }
}

/// Charts above one another as one SVG document.
pub fn stacked_svg(charts: &[Chart]) -> String {
    let mut canvas = svg::Svg::new(WIDTH, HEIGHT * charts.len() as f64);
    for (at, chart) in charts.iter().enumerate() {
        canvas.move_to(at as f64 * HEIGHT);
        chart.draw(&mut canvas);
    }
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let points = (0..50).map(|i| (f64::from(i), 800.0 + f64::from(i * 37 % 100))).collect();
        let series = Series { name: "a < b & c".into(), color: (200, 30, 30), dashed: false, marked: false, points };
        Chart { title: "t".into(), x_label: "x".into(), y_label: "y".into(), series: vec![series], ..Chart::default() }
    }

    #[test]
    fn powers_of_ten_have_lines_at_both_ends() {
        let axis = Axis::log(0.003, 0.4, 0.0, 100.0);
        let labels: Vec<String> = axis.ticks().into_iter().map(|v| axis.label(v)).collect();
        assert_eq!(labels, ["0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5"]);
        assert_eq!((axis.at(0.002), axis.at(0.5)), (0.0, 100.0));
        let wide = Axis::log(3.0, 2e6, 0.0, 1.0);
        assert_eq!(wide.ticks(), [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7], "no lines between where there are many");
        let mut chart = chart();
        (chart.y_log, chart.series[0].marked) = (true, true);
        chart.series[0].points.push((50.0, 0.0));
        assert_eq!(chart.svg().matches("<circle").count(), 51, "one in the legend; 0 has no place");
    }

    #[test]
    fn no_name_of_the_legend_leaves_the_figure() {
        for source in ["chrony", "ntp:10.0.0.1,10.0.0.2,10.0.0.3", &"ntp:time.example.net,".repeat(16)] {
            let names = ["000 P50", "000 max", source, source, source].map(short);
            let places = legend(&names);
            for (name, (at, _)) in names.iter().zip(&places) {
                assert!(at + DASH + name.chars().count() as f64 * LETTER <= WIDTH - RIGHT, "{name} at {at}");
            }
            assert!(places.is_sorted_by(|a, b| a.1 < b.1 || a.0 < b.0), "none lies on another: {places:?}");
        }
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
    fn stacked_charts_do_not_lie_on_each_other() {
        let svg = stacked_svg(&[chart(), chart()]);
        assert!(svg.contains("viewBox=\"0 0 960 1080\"") && svg.matches("</svg>").count() == 1);
        let titles: Vec<&str> = svg.lines().filter(|line| line.contains(">t<")).collect();
        assert!(
            titles.len() == 2 && titles[0].contains("y=\"24.0\"") && titles[1].contains("y=\"564.0\""),
            "{titles:?}"
        );
    }

    #[test]
    fn an_empty_chart_draws() {
        assert!(Chart::default().svg().contains("</svg>") && !Chart::default().png().is_empty());
    }
}

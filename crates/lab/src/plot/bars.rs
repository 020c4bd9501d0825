//! Bars in groups: a few numbers of several contenders, side by side.

use super::axis::Axis;
use super::frame::{BOTTOM, Drawing, Frame, HEIGHT, INK, LEFT, LETTER, RIGHT, TOP, WIDTH};
use super::{Align, Canvas, Color};

/// Share of a group's width that its bars take.
const FILLED: f64 = 0.76;
/// Room above the tallest bar for its number.
const HEADROOM: f64 = 1.06;
/// Of numbers in bars.
const PAPER: Color = (255, 255, 255);
/// Half the width of the mark that stands for a second number.
const WHISKER: f64 = 5.0;

/// The bars of one place along x.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Below it.
    pub name: String,
    /// One number for each contender; what is not finite has no bar.
    pub values: Vec<f64>,
    /// A second number for each contender, as a line atop its bar (a percentile atop a mean); empty: none.
    pub atop: Vec<f64>,
}

/// A chart of bars.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Bars {
    /// Above it.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// Left of it.
    pub y_label: String,
    /// Names and colours of the contenders, in the order of the bars.
    pub contenders: Vec<(String, Color)>,
    /// The groups, from left to right.
    pub groups: Vec<Group>,
    /// Decimals of the numbers above the bars.
    pub decimals: usize,
}

impl Drawing for Bars {
    fn draw(&self, canvas: &mut dyn Canvas) {
        let all = self.groups.iter().flat_map(|g| g.values.iter().chain(&g.atop)).filter(|v| v.is_finite());
        let highest = all.fold(0.0f64, |high, v| high.max(*v));
        let y = Axis::new(0.0, highest * HEADROOM, HEIGHT - BOTTOM, TOP);
        let frame = Frame { title: &self.title, x_label: &self.x_label, y_label: &self.y_label, top: TOP };
        frame.below(canvas, &y);
        let pitch = (WIDTH - RIGHT - LEFT) / self.groups.len().max(1) as f64;
        let width = pitch * FILLED / self.contenders.len().max(1) as f64;
        for (n, group) in self.groups.iter().enumerate() {
            let left = LEFT + pitch * (n as f64 + (1.0 - FILLED) / 2.0);
            for (k, (value, (_, color))) in group.values.iter().zip(&self.contenders).enumerate() {
                if !value.is_finite() {
                    continue;
                }
                let (from, to) = (left + width * k as f64, left + width * (k as f64 + 1.0) - 2.0);
                canvas.block((from, y.at(*value)), (to, y.at(0.0)), *color);
                let second = group.atop.get(k).filter(|v| v.is_finite());
                if let Some(second) = second {
                    let (middle, at) = ((from + to) / 2.0, y.at(*second));
                    canvas.path(&[(middle, y.at(*value)), (middle, at)], 1.3, INK, false);
                    canvas.path(&[(middle - WHISKER, at), (middle + WHISKER, at)], 1.3, INK, false);
                }
                let number = format!("{value:.*}", self.decimals);
                // A number that is wider than its bar would lie on its neighbour's. Below a line its place is in the bar.
                if number.chars().count() as f64 * LETTER <= width + LETTER {
                    let (line, color) = if second.is_some() { (15.0, PAPER) } else { (-5.0, INK) };
                    canvas.text(((from + to) / 2.0, y.at(*value) + line), &number, Align::Middle, color);
                }
            }
            canvas.text((LEFT + pitch * (n as f64 + 0.5), HEIGHT - BOTTOM + 18.0), &group.name, Align::Middle, INK);
        }
        frame.axes(canvas);
        let mut at = LEFT + 8.0;
        for (name, color) in &self.contenders {
            canvas.block((at, TOP - 18.0), (at + 12.0, TOP - 8.0), *color);
            canvas.text((at + 18.0, TOP - 8.0), name, Align::Left, INK);
            at += 18.0 + name.chars().count() as f64 * LETTER + 18.0;
        }
        frame.words(canvas);
    }
}

#[cfg(test)]
mod tests {
    use super::{Bars, Drawing, Group};

    #[test]
    fn each_finite_number_has_a_bar() {
        let group = |name: &str, values: &[f64]| Group { name: name.into(), values: values.to_vec(), atop: Vec::new() };
        let mut bars = Bars {
            contenders: vec![("a".into(), (1, 2, 3)), ("b".into(), (4, 5, 6))],
            groups: vec![group("x", &[1.0, 2.0]), group("y", &[3.0, f64::NAN])],
            ..Bars::default()
        };
        // The background, two in the legend, three bars.
        assert_eq!(bars.svg().matches("<rect").count(), 6);
        bars.groups[0].atop = vec![2.0, 4.0];
        assert_eq!(bars.svg().matches("stroke-width=\"1.3\"").count(), 4, "a line and its end, twice");
        assert!(!bars.png().is_empty() && Bars::default().svg().contains("</svg>"));
    }
}

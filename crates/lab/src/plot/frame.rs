//! What all pictures have around their data: a size, a grid along y, the two axes, the words.

use super::axis::Axis;
use super::{Align, Canvas, Color, png, svg};

pub(super) const WIDTH: f64 = 960.0;
pub(super) const HEIGHT: f64 = 540.0;
pub(super) const LEFT: f64 = 76.0;
pub(super) const RIGHT: f64 = 24.0;
pub(super) const TOP: f64 = 56.0;
pub(super) const BOTTOM: f64 = 64.0;
pub(super) const INK: Color = (40, 40, 48);
pub(super) const FAINT: Color = (222, 222, 228);
/// Width of a letter, whichever canvas draws it.
pub(super) const LETTER: f64 = 9.2;

/// What can be drawn, and so written as a file.
pub trait Drawing {
    /// Draws it.
    fn draw(&self, canvas: &mut dyn Canvas);

    /// As an SVG document.
    fn svg(&self) -> String {
        let mut canvas = svg::Svg::new(WIDTH, HEIGHT);
        self.draw(&mut canvas);
        canvas.finish()
    }

    /// As a PNG file.
    fn png(&self) -> Vec<u8> {
        let mut canvas = png::Png::new(WIDTH as usize, HEIGHT as usize);
        self.draw(&mut canvas);
        canvas.finish()
    }
}

/// The frame of a picture.
pub(super) struct Frame<'a> {
    pub title: &'a str,
    pub x_label: &'a str,
    pub y_label: &'a str,
    /// Where the data's area begins, below the legend.
    pub top: f64,
}

impl Frame<'_> {
    /// What data are drawn over: the grid along y, with its numbers.
    pub fn below(&self, canvas: &mut dyn Canvas, y: &Axis) {
        for value in y.ticks() {
            let at = y.at(value);
            canvas.path(&[(LEFT, at), (WIDTH - RIGHT, at)], 1.0, FAINT, false);
            canvas.text((LEFT - 8.0, at + 4.0), &y.label(value), Align::Right, INK);
        }
    }

    /// The two axes.
    pub fn axes(&self, canvas: &mut dyn Canvas) {
        canvas.path(&[(LEFT, self.top), (LEFT, HEIGHT - BOTTOM), (WIDTH - RIGHT, HEIGHT - BOTTOM)], 1.2, INK, false);
    }

    /// Title and labels.
    pub fn words(&self, canvas: &mut dyn Canvas) {
        canvas.text((WIDTH / 2.0, 24.0), self.title, Align::Middle, INK);
        canvas.text((WIDTH / 2.0, HEIGHT - 18.0), self.x_label, Align::Middle, INK);
        canvas.text_up((20.0, (TOP + HEIGHT - BOTTOM) / 2.0), self.y_label, INK);
    }
}

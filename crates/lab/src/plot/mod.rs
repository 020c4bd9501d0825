//! Line charts as SVG and PNG, without a graphics library.
//!
//! A [`Chart`] is data; [`Drawing::draw`] lays it out once, on anything that can draw a line and a word ([`Canvas`]). `svg` writes
//! text, `png` paints pixels with a small font of its own, so both show the same picture.

mod axis;
mod bars;
mod chart;
mod font;
mod frame;
mod png;
mod svg;

pub use bars::{Bars, Group};
pub use chart::{Chart, Series, stacked_svg};
pub use frame::Drawing;

/// Colours that can be told apart, also by those who see few: ours first.
pub const PALETTE: [Color; 6] =
    [(20, 90, 190), (213, 94, 0), (0, 148, 110), (204, 90, 160), (150, 110, 20), (110, 110, 120)];

/// Red, green, blue.
pub type Color = (u8, u8, u8);

/// Where a word is anchored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The point is its left end.
    Left,
    /// The point is its middle.
    Middle,
    /// The point is its right end.
    Right,
}

/// A surface that a chart is drawn on; units are pixels, the origin is top left.
pub trait Canvas {
    /// A line through `points`.
    fn path(&mut self, points: &[(f64, f64)], width: f64, color: Color, dashed: bool);
    /// A filled disc.
    fn dot(&mut self, at: (f64, f64), radius: f64, color: Color);
    /// A filled rectangle between two corners, the first above and left of the second.
    fn block(&mut self, from: (f64, f64), to: (f64, f64), color: Color);
    /// A word at its baseline.
    fn text(&mut self, at: (f64, f64), text: &str, align: Align, color: Color);
    /// A word written upwards, centred.
    fn text_up(&mut self, at: (f64, f64), text: &str, color: Color);
}

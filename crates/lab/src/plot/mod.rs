//! Line charts as SVG and PNG, without a graphics library.
//!
//! A [`Chart`] is data; [`Chart::draw`] lays it out once, on anything that can draw a line and a word ([`Canvas`]). `svg` writes
//! text, `png` paints pixels with a small font of its own, so both show the same picture.

mod chart;
mod font;
mod png;
mod svg;

pub use chart::{Chart, Series, stacked_svg};

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
    /// A word at its baseline.
    fn text(&mut self, at: (f64, f64), text: &str, align: Align, color: Color);
    /// A word written upwards, centred.
    fn text_up(&mut self, at: (f64, f64), text: &str, color: Color);
}

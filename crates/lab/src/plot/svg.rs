//! The canvas that writes SVG.

use super::{Align, Canvas, Color};
use std::fmt::Write;

pub(super) struct Svg(String);

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        ))
    }
    pub(super) fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
    fn push(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.0.write_fmt(arguments);
        self.0.push('\n');
    }
}

impl Canvas for Svg {
    fn path(&mut self, points: &[(f64, f64)], width: f64, (r, g, b): Color, dashed: bool) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dash = if dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        self.push(format_args!(
            "<polyline fill=\"none\" stroke=\"#{r:02x}{g:02x}{b:02x}\" stroke-width=\"{width}\"{dash} points=\"{}\"/>",
            points.join(" ")
        ));
    }
    fn text(&mut self, (x, y): (f64, f64), text: &str, align: Align, (r, g, b): Color) {
        let anchor = match align {
            Align::Left => "start",
            Align::Middle => "middle",
            Align::Right => "end",
        };
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#{r:02x}{g:02x}{b:02x}\">{}</text>",
            escape(text)
        ));
    }
    fn text_up(&mut self, (x, y): (f64, f64), text: &str, (r, g, b): Color) {
        self.push(format_args!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#{r:02x}{g:02x}{b:02x}\">{}</text>",
            escape(text)
        ));
    }
}

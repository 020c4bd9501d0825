//! The canvas that writes SVG.

use super::{Align, Canvas, Color};
use std::fmt::Write;

pub(super) struct Svg {
    text: String,
    /// What is drawn lies so far down.
    top: f64,
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        Svg { text, top: 0.0 }
    }
    /// What is drawn from now on lies so far down.
    pub(super) fn move_to(&mut self, top: f64) {
        self.top = top;
    }
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
    fn push(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(arguments);
        self.text.push('\n');
    }
}

impl Canvas for Svg {
    fn path(&mut self, points: &[(f64, f64)], width: f64, (r, g, b): Color, dashed: bool) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{:.1}", y + self.top)).collect();
        let dash = if dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        self.push(format_args!(
            "<polyline fill=\"none\" stroke=\"#{r:02x}{g:02x}{b:02x}\" stroke-width=\"{width}\"{dash} points=\"{}\"/>",
            points.join(" ")
        ));
    }
    fn dot(&mut self, (x, y): (f64, f64), radius: f64, (r, g, b): Color) {
        let y = y + self.top;
        self.push(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"#{r:02x}{g:02x}{b:02x}\"/>"));
    }
    fn block(&mut self, from: (f64, f64), to: (f64, f64), (r, g, b): Color) {
        let (x, y, width, height) = (from.0, from.1 + self.top, to.0 - from.0, to.1 - from.1);
        self.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#{r:02x}{g:02x}{b:02x}\"/>"
        ));
    }
    fn text(&mut self, (x, y): (f64, f64), text: &str, align: Align, (r, g, b): Color) {
        let anchor = match align {
            Align::Left => "start",
            Align::Middle => "middle",
            Align::Right => "end",
        };
        let y = y + self.top;
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#{r:02x}{g:02x}{b:02x}\">{}</text>",
            escape(text)
        ));
    }
    fn text_up(&mut self, (x, y): (f64, f64), text: &str, (r, g, b): Color) {
        let y = y + self.top;
        self.push(format_args!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#{r:02x}{g:02x}{b:02x}\">{}</text>",
            escape(text)
        ));
    }
}

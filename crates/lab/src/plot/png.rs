//! The canvas that paints pixels and writes PNG.
//!
//! Everything is painted at [`SCALE`] times the size and averaged down, which smooths the lines.

use super::{Align, Canvas, Color, font};

const SCALE: usize = 2;
/// Pixels of a letter's dot, before averaging.
const DOT: usize = 3;
const DASH: f64 = 5.0;
const LEVEL: u8 = 6;

pub(super) struct Png {
    width: usize,
    height: usize,
    pixels: Vec<Color>,
}

impl Png {
    pub(super) fn new(width: usize, height: usize) -> Self {
        let (width, height) = (width * SCALE, height * SCALE);
        Png { width, height, pixels: vec![(255, 255, 255); width * height] }
    }
    fn paint(&mut self, x: isize, y: isize, color: Color) {
        if let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y))
            && x < self.width
            && y < self.height
        {
            self.pixels[y * self.width + x] = color;
        }
    }
    fn disc(&mut self, x: f64, y: f64, radius: f64, color: Color) {
        let reach = radius.ceil() as isize;
        for dy in -reach..=reach {
            for dx in -reach..=reach {
                if ((dx * dx + dy * dy) as f64) <= radius * radius {
                    self.paint(x.round() as isize + dx, y.round() as isize + dy, color);
                }
            }
        }
    }
    fn glyphs(&mut self, text: &str, color: Color, place: impl Fn(isize, isize) -> (isize, isize)) {
        let dot = DOT as isize;
        for (n, letter) in text.chars().enumerate() {
            for (column, bits) in font::glyph(letter).iter().enumerate() {
                for row in (0..8).filter(|r| bits >> r & 1 == 1) {
                    let (x, y) = ((n * font::ADVANCE + column) as isize * dot, row as isize * dot);
                    for (dx, dy) in (0..dot).flat_map(|dx| (0..dot).map(move |dy| (dx, dy))) {
                        let (px, py) = place(x + dx, y + dy);
                        self.paint(px, py, color);
                    }
                }
            }
        }
    }
    fn averaged(&self) -> Vec<u8> {
        let (width, height) = (self.width / SCALE, self.height / SCALE);
        let mut rows = Vec::with_capacity((width * 3 + 1) * height);
        for y in 0..height {
            // Filter 0: the row as it is.
            rows.push(0);
            for x in 0..width {
                let mut sum = [0u32; 3];
                for (dx, dy) in (0..SCALE).flat_map(|dx| (0..SCALE).map(move |dy| (dx, dy))) {
                    let (r, g, b) = self.pixels[(y * SCALE + dy) * self.width + x * SCALE + dx];
                    sum = [sum[0] + u32::from(r), sum[1] + u32::from(g), sum[2] + u32::from(b)];
                }
                rows.extend(sum.map(|s| (s / (SCALE * SCALE) as u32) as u8));
            }
        }
        rows
    }
    pub(super) fn finish(self) -> Vec<u8> {
        let mut out = vec![0x89, b'P', b'N', b'G', 13, 10, 26, 10];
        let mut header = Vec::with_capacity(13);
        header.extend(((self.width / SCALE) as u32).to_be_bytes());
        header.extend(((self.height / SCALE) as u32).to_be_bytes());
        header.extend([8, 2, 0, 0, 0]);
        chunk(&mut out, b"IHDR", &header);
        chunk(&mut out, b"IDAT", &miniz_oxide::deflate::compress_to_vec_zlib(&self.averaged(), LEVEL));
        chunk(&mut out, b"IEND", &[]);
        out
    }
}

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    out.extend((data.len() as u32).to_be_bytes());
    let start = out.len();
    out.extend(kind);
    out.extend(data);
    let sum = crc32fast::hash(&out[start..]);
    out.extend(sum.to_be_bytes());
}

impl Canvas for Png {
    fn path(&mut self, points: &[(f64, f64)], width: f64, color: Color, dashed: bool) {
        let scale = SCALE as f64;
        let mut walked = 0.0;
        for pair in points.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let length = (x1 - x0).hypot(y1 - y0);
            let steps = (length * scale * 1.5).ceil().max(1.0) as usize;
            for i in 0..=steps {
                let t = i as f64 / steps as f64;
                if !dashed || ((walked + t * length) / DASH) as i64 % 2 == 0 {
                    self.disc((x0 + (x1 - x0) * t) * scale, (y0 + (y1 - y0) * t) * scale, width * scale / 2.0, color);
                }
            }
            walked += length;
        }
    }
    fn dot(&mut self, (x, y): (f64, f64), radius: f64, color: Color) {
        let scale = SCALE as f64;
        self.disc(x * scale, y * scale, radius * scale, color);
    }
    fn block(&mut self, from: (f64, f64), to: (f64, f64), color: Color) {
        let scaled = |value: f64| (value * SCALE as f64).round() as isize;
        for y in scaled(from.1)..scaled(to.1) {
            for x in scaled(from.0)..scaled(to.0) {
                self.paint(x, y, color);
            }
        }
    }
    fn text(&mut self, (x, y): (f64, f64), text: &str, align: Align, color: Color) {
        let width = (text.chars().count() * font::ADVANCE * DOT) as isize;
        let left = (x * SCALE as f64) as isize
            - match align {
                Align::Left => 0,
                Align::Middle => width / 2,
                Align::Right => width,
            };
        let top = (y * SCALE as f64) as isize - (7 * DOT) as isize;
        self.glyphs(text, color, |gx, gy| (left + gx, top + gy));
    }
    fn text_up(&mut self, (x, y): (f64, f64), text: &str, color: Color) {
        let width = (text.chars().count() * font::ADVANCE * DOT) as isize;
        let bottom = (y * SCALE as f64) as isize + width / 2;
        let left = (x * SCALE as f64) as isize - (4 * DOT) as isize;
        self.glyphs(text, color, |gx, gy| (left + gy, bottom - gx));
    }
}

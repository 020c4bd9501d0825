//! Cuts a stream of chunks into lines.
//!
//! Invariants:
//! 1. What is scanned once is not scanned again: the place and the state within quotes are kept over chunks.
//! 2. Memory is bounded by [`LINE_BYTES_MAX`], which what was pushed and not taken must fit.

use super::{CopyFormat, TupleSplitter};
use crate::syntax::command::CopyLayout;
use crate::{SqlError, SqlState};

/// Longest line, bytes. A value is at most 16 MiB, and its escapes may double it.
pub const LINE_BYTES_MAX: usize = 64 << 20;

/// Cuts chunks into lines, without their line ends.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: Vec<u8>,
    /// Start of the line that is being looked for.
    start: usize,
    /// Up to where it has been looked at.
    scanned: usize,
    csv: bool,
    quote: u8,
    escape: u8,
    in_quotes: bool,
    /// The input is over: `\.` was read, or [`LineSplitter::finish`] was called.
    closed: bool,
    ended: bool,
    lines: u64,
}

impl LineSplitter {
    /// A splitter for a format.
    pub fn new(format: &CopyFormat) -> LineSplitter {
        LineSplitter {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            csv: format.layout == CopyLayout::Csv,
            quote: format.quote,
            escape: format.escape,
            in_quotes: false,
            closed: false,
            ended: false,
            lines: 0,
        }
    }

    /// Takes a chunk. Call [`LineSplitter::next_line`] until it gives no more before the next chunk, but for small ones: what lies behind a line counts for its length.
    ///
    /// # Errors
    /// 54000 if the line at its end is too long.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        if self.ended {
            return Ok(());
        }
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.buffer.len() + chunk.len() > LINE_BYTES_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("line {} of COPY is longer than {LINE_BYTES_MAX} bytes", self.lines + 1),
            )
            .hint("Check that quotes are balanced, and that rows end with a newline."));
        }
        self.buffer.extend_from_slice(chunk);
        Ok(())
    }

    /// The input is over: what remains without a line end is the last line.
    pub fn finish(&mut self) {
        self.closed = true;
    }

    /// Lines given so far: the number of the last one.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The next line that is complete.
    pub fn next_line(&mut self) -> Option<&[u8]> {
        if self.ended {
            return None;
        }
        let found = if self.csv { self.find_csv_end() } else { self.find_text_end() };
        let (end, next) = match found {
            Some(newline) => (newline, newline + 1),
            None if self.closed && self.start < self.buffer.len() => (self.buffer.len(), self.buffer.len()),
            None => return None,
        };
        let start = self.start;
        (self.start, self.scanned) = (next, next);
        self.in_quotes = false;
        let line = &self.buffer[start..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line == b"\\." {
            self.ended = true;
            return None;
        }
        self.lines += 1;
        Some(line)
    }

    fn find_text_end(&mut self) -> Option<usize> {
        loop {
            let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.scanned = self.buffer.len();
                return None;
            };
            let at = self.scanned + offset;
            // Behind an odd number of backslashes a newline is data.
            let backslashes = self.buffer[self.start..at].iter().rev().take_while(|b| **b == b'\\').count();
            if backslashes % 2 == 0 {
                return Some(at);
            }
            self.scanned = at + 1;
        }
    }

    fn find_csv_end(&mut self) -> Option<usize> {
        while self.scanned < self.buffer.len() {
            if self.in_quotes {
                let Some(offset) = memchr::memchr2(self.quote, self.escape, &self.buffer[self.scanned..]) else {
                    self.scanned = self.buffer.len();
                    return None;
                };
                let at = self.scanned + offset;
                if self.buffer[at] == self.escape && self.escape != self.quote {
                    // It needs to be seen with what it escapes.
                    if at + 1 >= self.buffer.len() && !self.closed {
                        self.scanned = at;
                        return None;
                    }
                    let escapes = self.buffer.get(at + 1).is_some_and(|b| *b == self.quote || *b == self.escape);
                    self.scanned = at + if escapes { 2 } else { 1 };
                    continue;
                }
                // A doubled quote leaves and enters again: nothing lies between.
                self.in_quotes = false;
                self.scanned = at + 1;
            } else {
                let Some(offset) = memchr::memchr2(self.quote, b'\n', &self.buffer[self.scanned..]) else {
                    self.scanned = self.buffer.len();
                    return None;
                };
                let at = self.scanned + offset;
                if self.buffer[at] == b'\n' {
                    return Some(at);
                }
                self.in_quotes = true;
                self.scanned = at + 1;
            }
        }
        None
    }
}

/// Rows of either kind, out of chunks.
#[derive(Debug)]
pub enum Splitter {
    /// Text and csv.
    Lines(LineSplitter),
    /// Binary.
    Tuples(TupleSplitter),
}

impl Splitter {
    /// For a format.
    pub fn new(format: &CopyFormat) -> Splitter {
        match format.layout {
            CopyLayout::Binary => Splitter::Tuples(TupleSplitter::default()),
            CopyLayout::Text | CopyLayout::Csv => Splitter::Lines(LineSplitter::new(format)),
        }
    }

    /// Takes more of the stream.
    ///
    /// # Errors
    /// 54000 if a row grows beyond [`LINE_BYTES_MAX`].
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        match self {
            Splitter::Lines(lines) => lines.push(chunk),
            Splitter::Tuples(tuples) => tuples.push(chunk),
        }
    }

    /// The stream has ended.
    pub fn finish(&mut self) {
        match self {
            Splitter::Lines(lines) => lines.finish(),
            Splitter::Tuples(tuples) => tuples.finish(),
        }
    }

    /// Rows given so far.
    pub fn rows(&self) -> u64 {
        match self {
            Splitter::Lines(lines) => lines.lines(),
            Splitter::Tuples(tuples) => tuples.tuples(),
        }
    }

    /// The next whole row, if it is there.
    ///
    /// # Errors
    /// 22P04 for what is not binary data.
    pub fn next_row(&mut self) -> Result<Option<&[u8]>, SqlError> {
        match self {
            Splitter::Lines(lines) => Ok(lines.next_line()),
            Splitter::Tuples(tuples) => tuples.next_tuple(),
        }
    }
}

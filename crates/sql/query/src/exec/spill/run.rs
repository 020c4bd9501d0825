//! Runs: rows written one after the other, and read in the same order.

use super::{Spool, form};
use crate::types::{Row, Value};
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Bytes written at once, at most: by who writes one run at a time.
pub(super) const WRITE_BYTES: usize = 256 << 10;
/// Bytes read at once, at least.
pub(super) const READ_BYTES_MIN: usize = 4 << 10;
/// And at most.
pub(super) const READ_BYTES_MAX: usize = 128 << 10;

/// Where the rows of a run lie in its spool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    extents: Vec<(u64, u64)>,
    rows: u64,
}

impl Run {
    /// How many rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.extents.iter().map(|(from, to)| to - from).sum()
    }

    fn extend(&mut self, from: u64, bytes: u64) {
        match self.extents.last_mut() {
            Some((_, to)) if *to == from => *to += bytes,
            _ => self.extents.push((from, from + bytes)),
        }
    }
}

/// Writes a run; others may write to the same spool meanwhile.
pub(crate) struct RunWriter {
    buffer: Vec<u8>,
    buffer_bytes: usize,
    run: Run,
}

impl RunWriter {
    /// One that holds up to so many bytes, and a row, before it writes them.
    pub fn new(buffer_bytes: usize) -> RunWriter {
        RunWriter { buffer: Vec::new(), buffer_bytes, run: Run::default() }
    }

    /// Writes a row.
    ///
    /// # Errors
    /// Those of the temporary file; 54000.
    pub fn write(&mut self, spool: &Spool, row: &[Value]) -> Result<(), SqlError> {
        spool.write(row, &mut self.buffer)?;
        self.run.rows += 1;
        if self.buffer.len() < self.buffer_bytes { Ok(()) } else { self.flush(spool) }
    }

    fn flush(&mut self, spool: &Spool) -> Result<(), SqlError> {
        if !self.buffer.is_empty() {
            // Rows may be so large that those who count them hardly ever look.
            crate::work::step(self.buffer.len())?;
            let from = spool.file.append(&self.buffer)?;
            self.run.extend(from, self.buffer.len() as u64);
            self.buffer.clear();
            // One large row is not kept room for.
            self.buffer.shrink_to(2 * self.buffer_bytes);
        }
        Ok(())
    }

    /// The run.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub fn finish(mut self, spool: &Spool) -> Result<Run, SqlError> {
        self.flush(spool)?;
        Ok(self.run)
    }
}

/// Reads a run.
pub(crate) struct RunReader {
    spool: Arc<Spool>,
    extents: std::vec::IntoIter<(u64, u64)>,
    /// What is being read, as far as it is not in the buffer yet.
    extent: (u64, u64),
    buffer: Vec<u8>,
    /// What of the buffer was not given yet.
    at: usize,
    filled: usize,
    /// Bytes of the run that are not in the buffer yet.
    left_bytes: u64,
    read_bytes: usize,
}

impl RunReader {
    /// One that reads about so many bytes at once.
    pub fn new(spool: &Arc<Spool>, run: Run, read_bytes: usize) -> RunReader {
        RunReader {
            spool: spool.clone(),
            left_bytes: run.bytes(),
            extents: run.extents.into_iter(),
            extent: (0, 0),
            buffer: Vec::new(),
            at: 0,
            filled: 0,
            read_bytes: read_bytes.clamp(READ_BYTES_MIN, READ_BYTES_MAX),
        }
    }

    /// What it holds, about.
    pub fn buffer_bytes(&self) -> usize {
        self.read_bytes
    }

    /// Puts the next row in place of what `row` holds; `false` at the end.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        if !self.hold(form::HEADER_BYTES)? {
            return if self.at == self.filled { Ok(false) } else { Err(cut()) };
        }
        let length = form::length(&self.buffer[self.at..]);
        let left = self.left_bytes + (self.filled - self.at) as u64;
        // There is no room made for a length that cannot be.
        if (form::HEADER_BYTES + length) as u64 > left || !self.hold(form::HEADER_BYTES + length)? {
            return Err(cut());
        }
        self.at += form::HEADER_BYTES;
        self.spool.read(&self.buffer[self.at..self.at + length], row)?;
        self.at += length;
        Ok(true)
    }

    /// Has so many bytes in the buffer; `false` where the run ends before.
    fn hold(&mut self, bytes: usize) -> Result<bool, SqlError> {
        while self.filled - self.at < bytes {
            if self.extent.0 == self.extent.1 {
                let Some(next) = self.extents.next() else { return Ok(false) };
                self.extent = next;
            }
            self.buffer.copy_within(self.at..self.filled, 0);
            self.filled -= self.at;
            self.at = 0;
            let room = bytes.max(self.read_bytes);
            if self.buffer.len() < room {
                self.buffer.resize(room, 0);
            } else if self.buffer.len() > 2 * room.max(self.filled) {
                // It was for one large row.
                self.buffer.truncate(room.max(self.filled));
                self.buffer.shrink_to_fit();
            }
            let left = usize::try_from(self.extent.1 - self.extent.0).unwrap_or(usize::MAX);
            let wanted = (self.buffer.len() - self.filled).min(left);
            crate::work::step(wanted)?;
            self.spool.file.read(self.extent.0, &mut self.buffer[self.filled..self.filled + wanted])?;
            self.extent.0 += wanted as u64;
            self.left_bytes -= wanted as u64;
            self.filled += wanted;
        }
        Ok(true)
    }
}

fn cut() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "a run of a temporary file ends inside a row")
}

//! The binary format: a header, then tuples of counted fields, then a count of -1.
//!
//! ```text
//! "PGCOPY\n\xff\r\n\0"  flags:4  extension:4 bytes..   | fields:2  (length:4 bytes..)*  | ..  | -1:2
//! ```
//! The splitter waits for whole tuples, so that decoding never meets half a field.

use super::{CopyFormat, LINE_BYTES_MAX};
use crate::output;
use crate::types::Value;
use crate::{SqlError, SqlState};
use bytes::{Buf, BufMut};

/// What the data begins with: the signature, no flags, no extension.
pub const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What the data ends with.
pub const TRAILER: &[u8] = &(-1i16).to_be_bytes();
/// Bytes of the signature.
const SIGNATURE_BYTES: usize = 11;
/// Flags that a reader must know to understand the data.
const CRITICAL_FLAGS: u32 = 0xffff_0000;
/// Of these: tuples carry OIDs, as they did before PostgreSQL 12.
const OIDS_FLAG: u32 = 1 << 16;

fn bad_format(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FORMAT, message)
}

/// Cuts a stream of chunks into tuples.
#[derive(Debug, Default)]
pub struct TupleSplitter {
    buffer: Vec<u8>,
    /// Where the first tuple that was not given starts.
    start: usize,
    /// Up to where that tuple is known to be whole, and how many of its fields lie behind that.
    scanned: Option<(usize, usize)>,
    header_read: bool,
    closed: bool,
    ended: bool,
    tuples: u64,
}

impl TupleSplitter {
    /// Takes more of the stream.
    ///
    /// # Errors
    /// 54000 if a tuple grows beyond [`LINE_BYTES_MAX`].
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), SqlError> {
        self.buffer.drain(..self.start);
        self.scanned = self.scanned.map(|(at, fields)| (at - self.start, fields));
        self.start = 0;
        if self.buffer.len() + chunk.len() > LINE_BYTES_MAX {
            let message = format!("row {} of COPY is longer than {LINE_BYTES_MAX} bytes", self.tuples + 1);
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        self.buffer.extend_from_slice(chunk);
        Ok(())
    }

    /// The stream has ended.
    pub fn finish(&mut self) {
        self.closed = true;
    }

    /// Tuples given so far.
    pub fn tuples(&self) -> u64 {
        self.tuples
    }

    /// The next whole tuple, if it is there: its count of fields, and the fields.
    ///
    /// # Errors
    /// 22P04 for what is not this format, or ends within a tuple.
    pub fn next_tuple(&mut self) -> Result<Option<&[u8]>, SqlError> {
        if !self.header_read && !self.read_header()? {
            return Ok(None);
        }
        if self.ended {
            let rest = self.buffer.len() > self.start;
            return if rest { Err(bad_format("received copy data after EOF marker")) } else { Ok(None) };
        }
        let (mut at, mut fields) = match self.scanned {
            Some(place) => place,
            None => {
                let Some(mut count) = self.buffer.get(self.start..self.start + 2) else {
                    return self.short(self.buffer.len() > self.start);
                };
                match count.get_i16() {
                    -1 => {
                        (self.ended, self.start) = (true, self.start + 2);
                        return self.next_tuple();
                    }
                    count => (self.start + 2, usize::try_from(count).unwrap_or(0)),
                }
            }
        };
        while fields > 0 {
            self.scanned = Some((at, fields));
            let Some(mut length) = self.buffer.get(at..at + 4) else { return self.short(true) };
            let length = match length.get_i32() {
                -1 => 0,
                length => usize::try_from(length).map_err(|_| bad_format("invalid field size"))?,
            };
            if self.buffer.len() - at - 4 < length {
                return self.short(true);
            }
            (at, fields) = (at + 4 + length, fields - 1);
        }
        let start = std::mem::replace(&mut self.start, at);
        self.scanned = None;
        self.tuples += 1;
        Ok(Some(&self.buffer[start..at]))
    }

    /// Nothing whole is there: an error if the stream ends within something.
    fn short(&self, within: bool) -> Result<Option<&[u8]>, SqlError> {
        if self.closed && within { Err(bad_format("unexpected EOF in COPY data")) } else { Ok(None) }
    }

    /// Whether the header is there and was read.
    fn read_header(&mut self) -> Result<bool, SqlError> {
        let known = self.buffer.len().min(SIGNATURE_BYTES);
        if self.buffer[..known] != HEADER[..known] || (self.closed && known < SIGNATURE_BYTES) {
            return Err(bad_format("COPY file signature not recognized"));
        }
        let Some(mut rest) = self.buffer.get(SIGNATURE_BYTES..HEADER.len()) else {
            return if self.closed { Err(bad_format("invalid COPY file header (missing flags)")) } else { Ok(false) };
        };
        let (flags, extension) = (rest.get_u32(), rest.get_i32());
        if flags & OIDS_FLAG != 0 {
            return Err(bad_format("invalid COPY file header (WITH OIDS)"));
        }
        if flags & CRITICAL_FLAGS != 0 {
            return Err(bad_format("unrecognized critical flags in COPY file header"));
        }
        let extension =
            usize::try_from(extension).map_err(|_| bad_format("invalid COPY file header (missing length)"))?;
        if self.buffer.len() - HEADER.len() < extension {
            return if self.closed { Err(bad_format("invalid COPY file header (wrong length)")) } else { Ok(false) };
        }
        self.start = HEADER.len() + extension;
        self.header_read = true;
        Ok(true)
    }
}

impl CopyFormat {
    /// Reads the values of a tuple that is whole.
    pub(super) fn decode_binary(&self, mut tuple: &[u8], row: &mut Vec<Value>) -> Result<(), SqlError> {
        let count = if tuple.len() < 2 { 0 } else { tuple.get_i16() };
        if usize::try_from(count) != Ok(self.columns.len()) {
            let wanted = self.columns.len();
            return Err(bad_format(format!("row field count is {count}, expected {wanted}")));
        }
        for (_, ty) in &self.columns {
            let length = if tuple.len() < 4 { -1 } else { tuple.get_i32() };
            let Ok(length) = usize::try_from(length) else {
                row.push(Value::Null);
                continue;
            };
            let field = tuple.get(..length).ok_or_else(|| bad_format("unexpected EOF in COPY data"))?;
            row.push(Value::parse_binary(ty, field)?);
            tuple.advance(length);
        }
        Ok(())
    }

    /// Appends a row as a tuple.
    pub(super) fn encode_binary(&self, row: &[Value], out: &mut Vec<u8>) -> Result<(), SqlError> {
        // A table has at most 1,600 columns.
        out.put_i16(row.len() as i16);
        for (value, (_, ty)) in row.iter().zip(&self.columns) {
            if value.is_null() {
                out.put_i32(-1);
                continue;
            }
            let at = out.len();
            out.put_i32(0);
            value.write_binary(ty, out);
            let length = (out.len() - at - 4) as i32;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            output::check_row(out.len())?;
        }
        Ok(())
    }
}

//! How records are written down: little-endian varints and length-prefixed bytes. Decoding trusts nothing.

use bytes::{Buf, Bytes};
use clock::Timestamp;

/// Appends values to a buffer.
pub(crate) struct Writer<'a>(pub &'a mut Vec<u8>);

impl Writer<'_> {
    pub fn byte(&mut self, value: u8) {
        self.0.push(value);
    }
    /// LEB128.
    pub fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
    pub fn fixed(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    pub fn time(&mut self, value: Timestamp) {
        self.fixed(value.as_u64());
    }
    pub fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }
}

/// Takes values from a buffer; slices share it.
pub(crate) struct Reader(pub Bytes);

/// The bytes do not say what they should: what was being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short(pub &'static str);

type Read<T> = Result<T, Short>;

impl Reader {
    pub fn byte(&mut self, what: &'static str) -> Read<u8> {
        if self.0.is_empty() {
            return Err(Short(what));
        }
        Ok(self.0.get_u8())
    }
    pub fn number(&mut self, what: &'static str) -> Read<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(Short(what));
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Short(what))
    }
    pub fn fixed(&mut self, what: &'static str) -> Read<u64> {
        if self.0.len() < 8 {
            return Err(Short(what));
        }
        Ok(self.0.get_u64_le())
    }
    pub fn time(&mut self, what: &'static str) -> Read<Timestamp> {
        self.fixed(what).map(Timestamp::from_u64)
    }
    pub fn bytes(&mut self, what: &'static str) -> Read<Bytes> {
        let len = usize::try_from(self.number(what)?).map_err(|_| Short(what))?;
        if len > self.0.len() {
            return Err(Short(what));
        }
        Ok(self.0.split_to(len))
    }
    /// A count of things that take at least one byte each: no more than there are bytes left.
    pub fn count(&mut self, what: &'static str) -> Read<usize> {
        let count = usize::try_from(self.number(what)?).map_err(|_| Short(what))?;
        if count > self.0.len() {
            return Err(Short(what));
        }
        Ok(count)
    }
    pub fn end(&self, what: &'static str) -> Read<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Short(what)) }
    }
}

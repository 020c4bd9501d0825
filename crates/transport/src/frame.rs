//! Parcels in a stream of bytes.
//!
//! ```text
//! length u32 | CRC-32 of the bytes u32 | bytes
//! ```
//!
//! Little-endian. A length of 0, with a checksum of 0, is a probe: it says that the sender is there, and nothing else.

use crate::PARCEL_BYTES_MAX;
use bytes::Bytes;
use thiserror::Error;

/// In front of each parcel.
pub const HEADER_BYTES: usize = 8;
/// A whole frame that carries nothing.
pub const PROBE: [u8; HEADER_BYTES] = [0; HEADER_BYTES];
/// What one `read` takes at most; a parcel that does not fit gets memory of its own.
pub const BUFFER_BYTES: usize = 64 << 10;

/// What stands in front of these bytes.
pub fn header(bytes: &[u8]) -> [u8; HEADER_BYTES] {
    let len = u32::try_from(bytes.len()).ok().filter(|len| *len as usize <= PARCEL_BYTES_MAX);
    let len = len.expect("the queue takes no longer parcel");
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&len.to_le_bytes());
    header[4..].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    header
}

/// The stream cannot be cut into parcels any further: close it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A length beyond the bound, or noise.
    #[error("a message of {bytes} bytes is announced, at most {PARCEL_BYTES_MAX} are allowed")]
    TooLong {
        /// The length that was announced.
        bytes: usize,
    },
    /// The checksum is another.
    #[error("a message of {bytes} bytes is damaged")]
    Damaged {
        /// Its length.
        bytes: usize,
    },
}

/// A parcel that is larger than the buffer.
struct Large {
    bytes: Vec<u8>,
    filled: usize,
    len: usize,
    crc: u32,
}

/// Cuts a stream into parcels: give it bytes by [`Cutter::space`] and [`Cutter::filled`], and take parcels until there is none.
///
/// Each parcel has memory of its own, so that a small one that is kept does not keep its neighbours.
pub struct Cutter {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    large: Option<Large>,
}

impl Default for Cutter {
    fn default() -> Self {
        Cutter { buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, large: None }
    }
}

impl Cutter {
    /// Where the next bytes of the stream go; never empty once [`Cutter::next_parcel`] has returned `None`.
    pub fn space(&mut self) -> &mut [u8] {
        if let Some(large) = &mut self.large {
            if large.filled == large.bytes.len() {
                // Memory is taken as bytes arrive, not as they are announced.
                let len = large.len.min((2 * large.filled).max(BUFFER_BYTES));
                large.bytes.reserve_exact(len - large.filled);
                large.bytes.resize(len, 0);
            }
            return &mut large.bytes[large.filled..];
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes were put into the space.
    pub fn filled(&mut self, bytes: usize) {
        match &mut self.large {
            Some(large) => {
                large.filled += bytes;
                assert!(large.filled <= large.bytes.len(), "more than there was space for");
            }
            None => {
                self.end += bytes;
                assert!(self.end <= self.buffer.len(), "more than there was space for");
            }
        }
    }

    /// The next parcel, if all of it is here.
    pub fn next_parcel(&mut self) -> Result<Option<Bytes>, FrameError> {
        if let Some(large) = self.large.take_if(|large| large.filled == large.len) {
            return checked(&large.bytes, large.crc).map(|()| Some(Bytes::from(large.bytes)));
        }
        if self.large.is_some() {
            return Ok(None);
        }
        loop {
            let Some((header, rest)) = self.buffer[self.start..self.end].split_first_chunk::<HEADER_BYTES>() else {
                return Ok(None);
            };
            let [a, b, c, d, e, f, g, h] = *header;
            let (len, crc) = (u32::from_le_bytes([a, b, c, d]) as usize, u32::from_le_bytes([e, f, g, h]));
            if len > PARCEL_BYTES_MAX {
                return Err(FrameError::TooLong { bytes: len });
            }
            if len == 0 {
                checked(&[], crc)?;
                self.start += HEADER_BYTES;
                continue;
            }
            if HEADER_BYTES + len > BUFFER_BYTES {
                self.large = Some(Large { bytes: rest.to_vec(), filled: rest.len(), len, crc });
                (self.start, self.end) = (0, 0);
                return Ok(None);
            }
            let Some(bytes) = rest.get(..len) else { return Ok(None) };
            checked(bytes, crc)?;
            self.start += HEADER_BYTES + len;
            return Ok(Some(Bytes::copy_from_slice(bytes)));
        }
    }
}

fn checked(bytes: &[u8], crc: u32) -> Result<(), FrameError> {
    if crc32fast::hash(bytes) == crc { Ok(()) } else { Err(FrameError::Damaged { bytes: bytes.len() }) }
}

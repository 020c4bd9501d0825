//! What one write puts into a segment: a frame of record pieces.
//!
//! ```text
//!   magic 4 | crc 4 | segment 8 | offset 8 | position 8 | length 4 | pieces 4 | { kind 1 | length 4 | bytes }*
//! ```
//!
//! A frame begins at a sector and is synced before the next one is written, so no write touches a sector that holds
//! acknowledged data. The checksum covers the log's salt, the place (segment and offset) and the position, so neither a
//! stale frame of a recycled segment nor a copy of one inside a record is ever taken for a frame of this log.

use crate::disk::SECTOR;
use bytes::{BufMut, BytesMut};
use std::ops::Range;

const MAGIC: u32 = 0x5442_4652;
/// Bytes before the first piece.
pub(super) const FRAME_HEADER: usize = 40;
/// Bytes before the content of a piece.
pub(super) const PIECE_HEADER: usize = 5;

/// Which part of a record a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Full = 1,
    First = 2,
    Middle = 3,
    Last = 4,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            1 => Kind::Full,
            2 => Kind::First,
            3 => Kind::Middle,
            4 => Kind::Last,
            _ => return None,
        })
    }

    /// Whether a record begins here.
    pub fn begins(self) -> bool {
        matches!(self, Kind::Full | Kind::First)
    }

    /// Whether a record ends here.
    pub fn ends(self) -> bool {
        matches!(self, Kind::Full | Kind::Last)
    }
}

/// Where a frame is: part of its checksum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub salt: u64,
    pub segment: u64,
    pub offset: u64,
}

/// Rounds up to whole sectors.
pub(super) fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(SECTOR)
}

/// A frame being written, in one buffer that is used again and again.
#[derive(Default)]
pub(super) struct FrameWriter {
    buffer: BytesMut,
    pieces: u32,
}

/// A frame's buffer is kept for the next one up to this size: 16 MiB are written seldom, and would be held for ever.
const KEPT_BYTES_MAX: usize = 1 << 20;

impl FrameWriter {
    /// Nothing is written now: gives back what a large frame took.
    pub fn rest(&mut self) {
        if self.buffer.capacity() > KEPT_BYTES_MAX {
            self.buffer = BytesMut::new();
        }
    }

    /// Begins a frame whose first piece belongs to the record at `position`.
    pub fn begin(&mut self, place: Place, position: u64) {
        self.buffer.clear();
        self.pieces = 0;
        self.buffer.put_u32(MAGIC);
        self.buffer.put_u32(0);
        self.buffer.put_u64(place.segment);
        self.buffer.put_u64(place.offset);
        self.buffer.put_u64(position);
        self.buffer.put_u64(0);
    }

    /// Bytes that a piece may have so that the frame stays within `limit`, padding included.
    pub fn room(&self, limit: usize) -> usize {
        limit.saturating_sub(self.buffer.len() + PIECE_HEADER)
    }

    pub fn push(&mut self, kind: Kind, content: &[u8]) {
        self.pieces += 1;
        // And what it is padded with: growing for that would copy it all.
        self.buffer.reserve(PIECE_HEADER + content.len() + SECTOR);
        self.buffer.put_u8(kind as u8);
        // A piece never exceeds a frame, a frame never a segment, a segment never 4 GiB (checked when options are read).
        self.buffer.put_u32(u32::try_from(content.len()).unwrap_or(u32::MAX));
        self.buffer.put_slice(content);
    }

    /// Seals the frame: what to write, a whole number of sectors.
    pub fn seal(&mut self, place: Place) -> &[u8] {
        let length = u32::try_from(self.buffer.len() - FRAME_HEADER).unwrap_or(u32::MAX);
        self.buffer[32..36].copy_from_slice(&length.to_be_bytes());
        self.buffer[36..40].copy_from_slice(&self.pieces.to_be_bytes());
        let sum = checksum(place.salt, &self.buffer);
        self.buffer[4..8].copy_from_slice(&sum.to_be_bytes());
        let whole = padded(self.buffer.len());
        self.buffer.resize(whole, 0);
        &self.buffer
    }
}

/// Over the salt and all of the frame but the checksum itself.
fn checksum(salt: u64, frame: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&salt.to_be_bytes());
    sum.update(&frame[..4]);
    sum.update(&frame[8..]);
    sum.finalize()
}

/// A frame that was read and found good.
#[derive(Debug)]
pub(super) struct Frame {
    /// Position of the record of the first piece.
    pub position: u64,
    /// Where the content of each is in the segment.
    pub pieces: Vec<(Kind, Range<usize>)>,
    /// Bytes in the segment, padding included.
    pub size: usize,
}

fn u32_at(raw: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*raw.get(at..)?.first_chunk()?))
}

fn u64_at(raw: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*raw.get(at..)?.first_chunk()?))
}

/// Whether `raw` begins like a frame of this segment, good or torn.
pub(super) fn is_begun(raw: &[u8], segment: u64) -> bool {
    u32_at(raw, 0) == Some(MAGIC) && u64_at(raw, 8) == Some(segment)
}

/// Reads the frame at `place` of a segment's content; `None` where there is no good one.
pub(super) fn read(segment: &[u8], place: Place) -> Option<Frame> {
    let at = usize::try_from(place.offset).ok()?;
    let raw = segment.get(at..)?;
    if u32_at(raw, 0)? != MAGIC || u64_at(raw, 8)? != place.segment || u64_at(raw, 16)? != place.offset {
        return None;
    }
    let end = FRAME_HEADER.checked_add(usize::try_from(u32_at(raw, 32)?).ok()?)?;
    let frame = raw.get(..end)?;
    if checksum(place.salt, frame) != u32_at(raw, 4)? {
        return None;
    }
    let mut pieces = Vec::new();
    let mut cut = FRAME_HEADER;
    while cut < end {
        let kind = Kind::from_byte(*frame.get(cut)?)?;
        let from = cut + PIECE_HEADER;
        let to = from.checked_add(usize::try_from(u32_at(frame, cut + 1)?).ok()?)?;
        frame.get(from..to)?;
        pieces.push((kind, at + from..at + to));
        cut = to;
    }
    (pieces.len() == usize::try_from(u32_at(raw, 36)?).ok()?).then_some(())?;
    Some(Frame { position: u64_at(raw, 24)?, pieces, size: padded(end) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_of_a_large_frame_is_given_back() {
        let mut writer = FrameWriter::default();
        for (bytes, kept) in [(1000, true), (4 << 20, false), (1000, true)] {
            let place = Place { salt: 7, segment: 1, offset: 0 };
            writer.begin(place, 1);
            writer.push(Kind::Full, &vec![9; bytes]);
            assert!(writer.seal(place).len() > bytes);
            writer.rest();
            assert_eq!(writer.buffer.capacity() >= bytes, kept, "{bytes}");
        }
    }
}

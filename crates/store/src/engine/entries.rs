//! Where the entries of a block lie, read one by one from its bytes.
//!
//! **Problem.** lsm-tree's reader of a block goes both ways, over a reader of bytes that may end anywhere: of what a scan of many rows costs half was there.
//!
//! **Idea.** The form of a block is what the files on disk are, and does not change within them:
//!
//! ```text
//! entry .. entry | 255 | indexes .. | restart interval u8 | .. | count u32
//! entry, each interval's first:  type u8 | number varint | key length varint | key | value length varint | value
//! entry, any other:              type u8 | number varint | shared varint | rest length varint | rest | value length varint | value
//! ```
//!
//! The first key of an interval is what the others share the beginning of; what was removed (types 1 and 2) has no value.
//!
//! **Invariants.**
//! 1. What is not understood (another type, a place outside the block, another count than the block's own) is left to the library's reader, from there on: a new
//!    form makes scans slower, not wrong.
//! 2. Both give the same (a test holds one beside the other).
//! 3. Who seeks begins at a whole key, which the indexes lead to, and reads no entry that is not asked for: of a short stretch a few of many.

use lsm_tree::SeqNo;

/// Bytes of the trailer from the restart interval on.
const TRAILER_BYTES: usize = 31;
/// What stands where no entry follows.
const END: u8 = 255;
const VALUE: u8 = 0;
const REMOVED: [u8; 2] = [1, 2];

/// Where an entry lies in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// What its key shares with an earlier one.
    pub(super) shared: (u32, u32),
    /// The rest of its key.
    pub(super) rest: (u32, u32),
    /// `None`: a removal.
    pub(super) value: Option<(u32, u32)>,
    pub(super) number: SeqNo,
}

/// A varint of at most `BITS` bits, and where it ends.
#[inline(always)]
fn varint<const BITS: u32>(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    let (mut value, mut shift) = (u64::from(first & 0x7f), 7);
    while shift < BITS {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
    None
}

/// A stretch of so many bytes from `at` on, which moves behind it.
#[inline]
fn stretch(bytes: &[u8], at: &mut usize, length: u64) -> Option<(u32, u32)> {
    let end = at.checked_add(usize::try_from(length).ok()?).filter(|end| *end <= bytes.len())?;
    let found = (u32::try_from(*at).ok()?, u32::try_from(end).ok()?);
    *at = end;
    Some(found)
}

/// Where reading of a block's entries stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    at: usize,
    /// Entries of the interval that are left.
    left: u8,
    /// The key that others share the beginning of.
    base: (u32, u32),
    /// Which entry comes next.
    pub(super) number: usize,
}

/// What came of reading on.
pub(super) enum Next {
    Entry(Item),
    /// There are no more.
    End,
    /// It is not understood.
    Unknown,
}

/// The number of entries from one whole key to the next, in a block.
fn interval(bytes: &[u8]) -> Option<u8> {
    bytes.get(bytes.len().checked_sub(TRAILER_BYTES)?).copied().filter(|interval| *interval > 0)
}

impl Place {
    /// Before a block's first entry whose key is `needle` or above, or a few before: at the last whole key below it. `None`: it is not understood.
    pub(super) fn below(bytes: &[u8], needle: &[u8]) -> Option<Place> {
        let interval = usize::from(interval(bytes)?);
        let trailer = bytes.get(bytes.len().checked_sub(TRAILER_BYTES)? + 1..)?;
        let (&step, trailer) = trailer.split_first()?;
        let (count, trailer) = trailer.split_first_chunk::<4>()?;
        let (from, _) = trailer.split_first_chunk::<4>()?;
        let (count, from) = (u32::from_le_bytes(*count) as usize, u32::from_le_bytes(*from) as usize);
        // Else its place would not say which entry it is.
        if count != (u32::from_le_bytes(*bytes.last_chunk::<4>()?) as usize).div_ceil(interval) {
            return None;
        }
        let indexes = bytes.get(from..from.checked_add(count.checked_mul(usize::from(step))?)?)?;
        let begin = |index: usize| {
            Some(match step {
                2 => usize::from(u16::from_le_bytes(*indexes.get(index * 2..)?.first_chunk()?)),
                4 => u32::from_le_bytes(*indexes.get(index * 4..)?.first_chunk()?) as usize,
                _ => return None,
            })
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            let mut at = begin(middle)?.checked_add(1)?;
            varint::<64>(bytes, &mut at)?;
            let length = varint::<16>(bytes, &mut at)?;
            let (key, end) = stretch(bytes, &mut at, length)?;
            if bytes.get(key as usize..end as usize)? < needle { low = middle + 1 } else { high = middle }
        }
        let index = low.saturating_sub(1);
        Some(Place { at: begin(index)?, number: index * interval, ..Place::default() })
    }

    /// Reads the next entry, and moves behind it.
    #[inline(always)]
    pub(super) fn next(&mut self, bytes: &[u8]) -> Next {
        match bytes.get(self.at) {
            Some(&END) => Next::End,
            _ => self.entry(bytes).map_or(Next::Unknown, Next::Entry),
        }
    }

    #[inline(always)]
    fn entry(&mut self, bytes: &[u8]) -> Option<Item> {
        let mut at = self.at;
        let kind = *bytes.get(at)?;
        at += 1;
        let number = varint::<64>(bytes, &mut at)?;
        let (shared, rest);
        if self.left == 0 {
            self.left = interval(bytes)? - 1;
            let length = varint::<16>(bytes, &mut at)?;
            rest = stretch(bytes, &mut at, length)?;
            (shared, self.base) = ((0, 0), rest);
        } else {
            self.left -= 1;
            let common = u32::try_from(varint::<16>(bytes, &mut at)?).ok()?;
            let length = varint::<16>(bytes, &mut at)?;
            shared = (self.base.0, self.base.0.checked_add(common).filter(|end| *end <= self.base.1)?);
            rest = stretch(bytes, &mut at, length)?;
        }
        let value = match kind {
            VALUE => {
                let length = varint::<32>(bytes, &mut at)?;
                Some(stretch(bytes, &mut at, length)?)
            }
            kind if REMOVED.contains(&kind) => None,
            _ => return None,
        };
        self.at = at;
        self.number += 1;
        Some(Item { shared, rest, value, number })
    }
}

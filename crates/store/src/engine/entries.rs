//! Where the entries of a block lie, read in one pass over its bytes.
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
//! 1. What is not understood to the last entry (another type, a place outside the block, another count than the block's own) is left to the library's reader: a new
//!    form makes scans slower, not wrong.
//! 2. Both give the same (a test holds one beside the other).

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
#[inline]
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

/// Lists the entries of a block that says it has so many; `None`: it is not understood.
pub(super) fn list(bytes: &[u8], count: usize, items: &mut Vec<Item>) -> Option<()> {
    let interval = *bytes.get(bytes.len().checked_sub(TRAILER_BYTES)?)?;
    let (mut at, mut left) = (0, 0);
    // The key that others share the beginning of.
    let mut base = (0, 0);
    loop {
        let kind = *bytes.get(at)?;
        at += 1;
        if kind == END {
            return (items.len() == count).then_some(());
        }
        let number = varint::<64>(bytes, &mut at)?;
        let (shared, rest);
        if left == 0 {
            left = interval.checked_sub(1)?;
            let length = varint::<16>(bytes, &mut at)?;
            rest = stretch(bytes, &mut at, length)?;
            (shared, base) = ((0, 0), rest);
        } else {
            left -= 1;
            let common = u32::try_from(varint::<16>(bytes, &mut at)?).ok()?;
            let length = varint::<16>(bytes, &mut at)?;
            shared = (base.0, base.0.checked_add(common).filter(|end| *end <= base.1)?);
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
        items.push(Item { shared, rest, value, number });
    }
}

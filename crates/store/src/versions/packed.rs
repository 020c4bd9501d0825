//! Rows of a chunk in one allocation: keys and values one behind the other, and where each lies.

use crate::engine::LentKey;
use std::cmp::Ordering;

/// Where a value begins, of a key that has none.
const DEAD: [u32; 2] = [1, 0];

/// See the module. Keys ascend.
#[derive(Default)]
pub(super) struct Packed {
    pub bytes: Vec<u8>,
    /// Of each: where in `bytes` its key begins and ends, and its value.
    pub places: Vec<[u32; 4]>,
}

/// Room for an entry at first: of what memory has of a row, about.
const ENTRY_BYTES: usize = 32;

impl Packed {
    /// For so many entries, about.
    pub fn of(entries: usize) -> Packed {
        Packed { bytes: Vec::with_capacity(entries * ENTRY_BYTES), places: Vec::with_capacity(entries) }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// The key at a place in the order.
    pub fn key(&self, number: usize) -> Option<&[u8]> {
        let [from, to, ..] = *self.places.get(number)?;
        Some(self.part(from, to))
    }

    /// Key and value.
    pub fn entry(&self, number: usize) -> Option<(&[u8], Option<&[u8]>)> {
        let [key, key_end, value, value_end] = *self.places.get(number)?;
        Some((self.part(key, key_end), ([value, value_end] != DEAD).then(|| self.part(value, value_end))))
    }

    pub fn part(&self, from: u32, to: u32) -> &[u8] {
        self.bytes.get(from as usize..to as usize).unwrap_or_default()
    }

    pub fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.push_lent(key.into(), value);
    }

    #[inline]
    pub fn push_lent(&mut self, key: LentKey<'_>, value: Option<&[u8]>) {
        let from = self.bytes.len() as u32;
        key.write(&mut self.bytes);
        let middle = self.bytes.len() as u32;
        let [value, end] = match value {
            None => DEAD,
            Some(value) => {
                self.bytes.extend_from_slice(value);
                [middle, self.bytes.len() as u32]
            }
        };
        self.places.push([from, middle, value, end]);
    }

    /// Leaves out keys from here on.
    pub fn end_at(&mut self, horizon: &[u8]) {
        let left = self.places.partition_point(|[from, to, ..]| self.part(*from, *to) < horizon);
        self.places.truncate(left);
    }

    /// What has a value.
    pub fn live(mut self) -> Packed {
        self.places.retain(|[_, _, value, value_end]| [*value, *value_end] != DEAD);
        self
    }

    /// Both; what both have is taken of the newer one.
    pub fn newest(newer: Packed, older: Packed) -> Packed {
        if older.places.is_empty() {
            return newer;
        }
        if newer.places.is_empty() {
            return older;
        }
        let mut out = Packed {
            bytes: Vec::with_capacity(newer.bytes.len() + older.bytes.len()),
            places: Vec::with_capacity(newer.len() + older.len()),
        };
        let (mut new, mut old) = (0, 0);
        loop {
            let order = match (newer.key(new), older.key(old)) {
                (Some(newer), Some(older)) => newer.cmp(older),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return out,
            };
            let next = if order.is_gt() { older.entry(old) } else { newer.entry(new) };
            if let Some((key, value)) = next {
                out.push(key, value);
            }
            new += usize::from(order.is_le());
            old += usize::from(order.is_ge());
        }
    }
}

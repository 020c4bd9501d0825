//! A key as a block holds it: what it shares with an earlier one, and the rest.
//!
//! Who looks at many entries and keeps few needs no key in one piece: to put each together was a good part of what a sweep cost.

use std::cmp::Ordering;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct LentKey<'a> {
    front: &'a [u8],
    rest: &'a [u8],
}

impl<'a> LentKey<'a> {
    /// A key of two parts.
    #[inline]
    pub fn new(front: &'a [u8], rest: &'a [u8]) -> LentKey<'a> {
        LentKey { front, rest }
    }

    /// Its length, bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "no key is")]
    pub fn len(&self) -> usize {
        self.front.len() + self.rest.len()
    }

    /// Its first byte, and what is behind it.
    #[inline]
    pub fn split_first(&self) -> Option<(u8, LentKey<'a>)> {
        let LentKey { front, rest } = *self;
        match front.split_first() {
            Some((first, front)) => Some((*first, LentKey { front, rest })),
            None => rest.split_first().map(|(first, rest)| (*first, LentKey { front, rest })),
        }
    }

    /// Its order beside a key in one piece.
    #[inline]
    pub fn order(&self, other: &[u8]) -> Ordering {
        let (start, end) = other.split_at(self.front.len().min(other.len()));
        self.front.cmp(start).then_with(|| self.rest.cmp(end))
    }

    /// Whether both are the same key.
    #[inline]
    pub fn same(&self, other: &LentKey<'_>) -> bool {
        if self.len() != other.len() {
            return false;
        }
        // Keys that come one after the other differ at their ends.
        if let (Some(a), Some(b)) = (self.rest.last(), other.rest.last())
            && a != b
        {
            return false;
        }
        match self.front.len() == other.front.len() {
            true => self.rest == other.rest && self.front == other.front,
            false => self.front.iter().chain(self.rest).eq(other.front.iter().chain(other.rest)),
        }
    }

    /// Appends it.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.front);
        out.extend_from_slice(self.rest);
    }

    /// In one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        [self.front, self.rest].concat()
    }
}

impl<'a> From<&'a [u8]> for LentKey<'a> {
    #[inline]
    fn from(key: &'a [u8]) -> LentKey<'a> {
        LentKey { front: &[], rest: key }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0..3u8, 0..6)
    }

    proptest! {
        #[test]
        fn two_parts_are_one_key(a in bytes(), b in bytes(), cut_a in 0..7usize, cut_b in 0..7usize) {
            let lent = |key: &'static [u8], cut: usize| {
                let (front, rest) = key.split_at(cut.min(key.len()));
                LentKey::new(front, rest)
            };
            let (a, b): (&'static [u8], &'static [u8]) = (a.leak(), b.leak());
            let (first, second) = (lent(a, cut_a), lent(b, cut_b));
            prop_assert_eq!(first.order(b), a.cmp(b));
            prop_assert_eq!(first.same(&second), a == b);
            prop_assert_eq!(first.to_vec(), a);
            prop_assert_eq!(first.len(), a.len());
            let split = first.split_first().map(|(byte, rest)| (byte, rest.to_vec()));
            prop_assert_eq!(split, a.split_first().map(|(byte, rest)| (*byte, rest.to_vec())));
        }
    }
}

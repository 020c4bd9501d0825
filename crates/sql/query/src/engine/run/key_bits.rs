//! Which integers are among the keys of a join: a bit for each of a range.
//!
//! Problem: of the rows that pass by a hash join most have no partner, and to find that out a key is written, hashed, and looked for in a table that is
//! larger than the nearest cache. Idea: keys of tables are numbers close to one another, so of one column of a key a bit is kept for each number from the
//! least to the greatest, where these are few beside the keys: of that which has the fewest of them. Whoever has no bit there has no partner; the others are
//! looked for as before.

use crate::types::Value;

/// Bits that it may have for each key, and those that it may have anyway.
const BITS_PER_KEY: u64 = 128;
const BITS_ANYWAY: u64 = 1 << 13;

/// See the module.
#[derive(Debug)]
pub(in crate::engine) struct KeyBits {
    /// Which column of the key.
    pub(super) column: usize,
    low: i64,
    bits: Box<[u64]>,
    /// The part of the bits that is set.
    density: f64,
}

/// An integer of any width, or a date, as it stands in a key.
pub(super) fn integer_of(value: &Value) -> Option<i64> {
    match value {
        Value::Int2(n) => Some(i64::from(*n)),
        Value::Int4(n) | Value::Date(n) => Some(i64::from(*n)),
        Value::Int8(n) => Some(*n),
        Value::Oid(n) => Some(i64::from(*n)),
        _ => None,
    }
}

impl KeyBits {
    /// Of these numbers; `None`: one is none, they are too far from one another, or there are none.
    pub(super) fn of(column: usize, numbers: impl Iterator<Item = Option<i64>> + Clone) -> Option<KeyBits> {
        let (mut low, mut high, mut count) = (i64::MAX, i64::MIN, 0u64);
        for number in numbers.clone() {
            let number = number?;
            (low, high, count) = (low.min(number), high.max(number), count + 1);
        }
        let last = high.wrapping_sub(low) as u64;
        if count == 0 || last >= count.saturating_mul(BITS_PER_KEY).max(BITS_ANYWAY) {
            return None;
        }
        let mut bits = vec![0u64; (last / 64) as usize + 1].into_boxed_slice();
        for number in numbers.flatten() {
            let at = number.wrapping_sub(low) as u64;
            bits[(at / 64) as usize] |= 1 << (at % 64);
        }
        let set: u32 = bits.iter().map(|word| word.count_ones()).sum();
        Some(KeyBits { column, low, density: f64::from(set) / (last as f64 + 1.0), bits })
    }

    /// That of several columns which holds the fewest of its range.
    pub(super) fn sparsest(all: impl Iterator<Item = KeyBits>) -> Option<KeyBits> {
        all.min_by(|a, b| a.density.total_cmp(&b.density))
    }

    /// Whether a number is among them.
    #[inline]
    pub(super) fn holds(&self, number: i64) -> bool {
        // What is below is far above.
        let at = number.wrapping_sub(self.low) as u64;
        usize::try_from(at / 64)
            .ok()
            .and_then(|word| self.bits.get(word))
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// What it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(numbers: &[i64]) -> Option<KeyBits> {
        KeyBits::of(0, numbers.iter().copied().map(Some))
    }

    proptest! {
        #[test]
        fn a_number_is_held_if_it_is_one_of_them(
            base in prop_oneof![Just(i64::MIN), Just(i64::MAX - 5000), any::<i64>().prop_map(|n| n >> 1)],
            steps in prop::collection::vec(0..5000i64, 1..40),
            others in prop::collection::vec(any::<i64>(), 0..10),
        ) {
            let numbers: Vec<i64> = steps.iter().map(|step| base + step).collect();
            let bits = of(&numbers).unwrap();
            let near = (-70..5070).map(|step| base.wrapping_add(step));
            for number in near.chain(others).chain([i64::MIN, i64::MAX, 0]) {
                prop_assert_eq!(bits.holds(number), numbers.contains(&number), "{}", number);
            }
        }
    }

    #[test]
    fn numbers_far_from_one_another_have_none() {
        assert!(of(&[]).is_none());
        assert!(of(&[i64::MIN, i64::MAX]).is_none());
        assert!(of(&[0, 1 << 13]).is_none());
        assert!(of(&[0, (1 << 13) - 1]).is_some());
        assert!(KeyBits::of(0, [Some(1), None].into_iter()).is_none());
    }

    #[test]
    fn of_several_columns_the_sparsest_counts() {
        let dense = KeyBits::of(0, (0..50).map(Some));
        let sparse = KeyBits::of(1, (0..50).map(|n| Some(n * 20)));
        let sparsest = KeyBits::sparsest([dense, sparse].into_iter().flatten());
        assert_eq!(sparsest.map(|bits| bits.column), Some(1));
    }
}

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

/// From the least number of a column to the greatest, and how many keys there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    low: i64,
    high: i64,
    count: u64,
}

impl Reach {
    pub(super) const NONE: Reach = Reach { low: i64::MAX, high: i64::MIN, count: 0 };

    pub(super) fn add(&mut self, number: i64) {
        *self = Reach { low: self.low.min(number), high: self.high.max(number), count: self.count + 1 };
    }

    /// How far the last bit lies from the first.
    fn last(&self) -> u64 {
        self.high.wrapping_sub(self.low) as u64
    }

    /// How many keys there are for each bit; `None`: too few, or none.
    pub(super) fn density(&self) -> Option<f64> {
        let is_near = self.count > 0 && self.last() < self.count.saturating_mul(BITS_PER_KEY).max(BITS_ANYWAY);
        is_near.then(|| self.count as f64 / (self.last() as f64 + 1.0))
    }

    fn words(&self) -> usize {
        (self.last() / 64) as usize + 1
    }

    /// What the bits take.
    pub(super) fn bytes(&self) -> usize {
        self.words() * size_of::<u64>()
    }
}

impl KeyBits {
    /// Of a reach that has a density; no bit is set.
    pub(super) fn new(column: usize, reach: Reach) -> KeyBits {
        KeyBits { column, low: reach.low, bits: vec![0; reach.words()].into() }
    }

    /// Sets the bit of a number within the reach.
    pub(super) fn add(&mut self, number: i64) {
        let at = number.wrapping_sub(self.low) as u64;
        let word = usize::try_from(at / 64).ok().and_then(|word| self.bits.get_mut(word));
        debug_assert!(word.is_some(), "{number} is out of reach");
        word.into_iter().for_each(|word| *word |= 1 << (at % 64));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(numbers: &[i64]) -> Option<KeyBits> {
        let mut reach = Reach::NONE;
        numbers.iter().for_each(|number| reach.add(*number));
        reach.density()?;
        let mut bits = KeyBits::new(0, reach);
        numbers.iter().for_each(|number| bits.add(*number));
        assert_eq!(size_of_val(&*bits.bits), reach.bytes());
        Some(bits)
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
    }
}

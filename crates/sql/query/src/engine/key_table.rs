//! Keys that are numbered as they are met: under groups, DISTINCT, set operations, hash joins and partitions.
//!
//! A key is bytes (see [`super::keys`]). All of them lie one after the other in one buffer, and the table over them holds a hash and a
//! number in eight bytes: a new key allocates nothing of its own, a key that was met before is found without being copied.
//!
//! Invariant: numbers are given from 0 in the order in which keys were first met.
//!
//! The hash has a seed that comes from above (`DatabaseOptions::hash_seed`): whoever chooses keys does not know which of them
//! meet. What a table answers does not depend on it, since numbers follow first sight.
//!
//! Caveat: the hash is quick, not cryptographic: it withstands keys chosen without looking, not a patient observer of running times.

/// Keys and their numbers.
#[derive(Debug)]
pub(super) struct KeyTable {
    seed: Seed,
    bytes: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
    /// By hash, with linear probing: hash in the upper half, number + 1 in the lower; 0 is free. A power of two of them.
    slots: Vec<u64>,
}

/// What the hash begins with, and what it multiplies by: an odd number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed {
    start: u64,
    factor: u64,
}

impl Seed {
    /// Two words of one.
    pub(super) fn new(seed: u64) -> Seed {
        Seed { start: scramble(seed), factor: scramble(!seed) | 1 }
    }

    /// Both halves of a product.
    #[inline]
    fn fold(&self, state: u64, word: u64) -> u64 {
        let product = u128::from(state ^ word) * u128::from(self.factor);
        (product as u64) ^ (product >> 64) as u64
    }

    /// Eight bytes at a time.
    fn hash(&self, key: &[u8]) -> u32 {
        let (words, rest) = key.as_chunks::<8>();
        let first = self.start ^ key.len() as u64;
        let mut state = words.iter().fold(first, |state, word| self.fold(state, u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        state = self.fold(state, u64::from_le_bytes(last));
        (state ^ state >> 32) as u32
    }
}

/// The finalizer of splitmix64: neighbouring seeds give words that have nothing to do with each other.
fn scramble(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// What a key needs beside its bytes: its end, and its share of the slots.
pub(super) const KEY_BYTES: usize = 32;

const SLOTS_FIRST: usize = 16;

/// Where a key is, or would be.
enum Probe {
    Found(usize),
    Free(usize),
}

impl KeyTable {
    /// An empty table.
    pub(super) fn new(seed: Seed) -> KeyTable {
        KeyTable { seed, bytes: Vec::new(), ends: Vec::new(), slots: Vec::new() }
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of a key, if it was met.
    pub(super) fn find(&self, key: &[u8]) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        match self.probe(self.seed.hash(key), key) {
            Probe::Found(number) => Some(number),
            Probe::Free(_) => None,
        }
    }

    /// The number of a key, and whether it is met for the first time.
    pub(super) fn number(&mut self, key: &[u8]) -> (usize, bool) {
        if self.slots.len() * 3 <= self.len() * 4 {
            self.grow();
        }
        let hash = self.seed.hash(key);
        match self.probe(hash, key) {
            Probe::Found(number) => (number, false),
            Probe::Free(at) => {
                let number = self.len();
                // The statement's memory ends long before.
                assert!(number < u32::MAX as usize, "a table of keys is full");
                self.slots[at] = u64::from(hash) << 32 | (number as u64 + 1);
                self.bytes.extend_from_slice(key);
                self.ends.push(self.bytes.len());
                (number, true)
            }
        }
    }

    fn key(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    fn probe(&self, hash: u32, key: &[u8]) -> Probe {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                0 => return Probe::Free(at),
                slot if (slot >> 32) as u32 == hash => {
                    let number = slot as u32 as usize - 1;
                    if self.key(number) == key {
                        return Probe::Found(number);
                    }
                }
                _ => {}
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let count = (self.slots.len() * 2).max(SLOTS_FIRST);
        let old = std::mem::replace(&mut self.slots, vec![0; count]);
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            let mut at = (slot >> 32) as usize & (count - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (count - 1);
            }
            self.slots[at] = slot;
        }
    }
}

/// The same for keys that are one word.
#[derive(Debug)]
pub(super) struct WordTable {
    seed: Seed,
    len: u32,
    /// Word and number + 1, by hash, with linear probing; 0 is free. A power of two of them.
    slots: Vec<(u64, u32)>,
}

impl WordTable {
    /// An empty table.
    pub(super) fn new(seed: Seed) -> WordTable {
        WordTable { seed, len: 0, slots: vec![(0, 0); SLOTS_FIRST] }
    }

    /// The number of a word, and whether it is met for the first time.
    #[inline]
    pub(super) fn number(&mut self, word: u64) -> (usize, bool) {
        let at = self.place(word);
        match self.slots[at] {
            (_, 0) => (self.begin(at, word), true),
            (_, number) => (number as usize - 1, false),
        }
    }

    /// Where a word is, or would be.
    #[inline]
    fn place(&self, word: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.seed.fold(self.seed.start, word) as usize & mask;
        while self.slots[at].1 != 0 && self.slots[at].0 != word {
            at = (at + 1) & mask;
        }
        at
    }

    fn begin(&mut self, at: usize, word: u64) -> usize {
        assert!(self.len < u32::MAX - 1, "a table of keys is full");
        self.len += 1;
        self.slots[at] = (word, self.len);
        if self.slots.len() * 3 <= self.len as usize * 4 {
            let count = self.slots.len() * 2;
            for slot in std::mem::replace(&mut self.slots, vec![(0, 0); count]) {
                if slot.1 != 0 {
                    let at = self.place(slot.0);
                    self.slots[at] = slot;
                }
            }
        }
        self.len as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_in_order_of_first_sight_and_found_again() {
        let mut table = KeyTable::new(Seed::new(7));
        assert_eq!(table.find(b"a"), None);
        let keys: Vec<Vec<u8>> = (0..5000u32).map(|n| n.to_be_bytes()[..(n % 5) as usize].to_vec()).collect();
        let mut first: Vec<&[u8]> = Vec::new();
        for key in &keys {
            let known = first.iter().position(|met| met == key);
            assert_eq!(table.find(key), known);
            assert_eq!(table.number(key), (known.unwrap_or(first.len()), known.is_none()));
            if known.is_none() {
                first.push(key);
            }
        }
        assert_eq!(table.len(), first.len());
    }

    #[test]
    fn words_are_numbered_alike() {
        let mut table = WordTable::new(Seed::new(7));
        let mut first = Vec::new();
        for word in (0..5000u64).map(|n| ((n * n) % 701) << (n % 3 * 20)) {
            let known = first.iter().position(|met| *met == word);
            assert_eq!(table.number(word), (known.unwrap_or(first.len()), known.is_none()));
            if known.is_none() {
                first.push(word);
            }
        }
        assert!(first.len() > 1000);
    }

    #[test]
    fn keys_that_differ_in_length_alone_are_two() {
        let mut table = KeyTable::new(Seed::new(7));
        for (number, length) in (0..40).enumerate() {
            assert_eq!(table.number(&vec![0; length]), (number, true));
        }
        (0..40).for_each(|length| assert_eq!(table.number(&vec![0; length]), (length, false)));
    }

    /// Keys of numbers in a row must not crowd: a bad hash makes this test hang rather than fail.
    #[test]
    fn many_numbers_in_a_row_are_told_apart() {
        let mut table = KeyTable::new(Seed::new(7));
        for step in [1u64, 1 << 20, 1 << 40] {
            let before = table.len();
            for n in 0..100_000u64 {
                table.number(&(n * step + 1).to_le_bytes());
            }
            assert!(table.len() > before + 90_000);
        }
    }

    /// Keys that all meet under one seed: they must not under another. Without a seed there would be no other.
    #[test]
    fn keys_chosen_against_one_seed_do_not_meet_under_another() {
        let (known, other) = (Seed::new(1), Seed::new(2));
        let mut all = (0..1u64 << 22).map(|n| n.to_le_bytes());
        let chosen: Vec<[u8; 8]> = all.by_ref().filter(|key| known.hash(key) & 0xfff == 0).collect();
        assert!(chosen.len() > 500, "{}", chosen.len());
        let mut places: Vec<u32> = chosen.iter().map(|key| other.hash(key) & 0xfff).collect();
        places.sort_unstable();
        let most = places.chunk_by(|a, b| a == b).map(<[u32]>::len).max();
        assert!(most < Some(chosen.len() / 20), "{most:?} of {} share a place", chosen.len());
    }

    #[test]
    fn numbers_do_not_depend_on_the_seed() {
        let keys: Vec<Vec<u8>> = (0..3000u32).map(|n| (n % 701).to_le_bytes()[..(n % 5) as usize].to_vec()).collect();
        let numbers = |seed| {
            let mut table = KeyTable::new(Seed::new(seed));
            keys.iter().map(|key| table.number(key)).collect::<Vec<_>>()
        };
        let first = numbers(0);
        (1..20).chain([u64::MAX]).for_each(|seed| assert_eq!(numbers(seed), first));
    }
}

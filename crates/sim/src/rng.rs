//! Chance from a seed: splitmix64.

/// A generator; the same seed gives the same numbers for ever.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `n`; 0 for 0.
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.draw() % n }
    }
    /// A number in `from..to`.
    pub fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from))
    }
    /// True in `percent` of cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
    /// One of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get(usize::try_from(self.below(of.len() as u64)).unwrap_or(0)).copied()
    }
    /// A generator of its own, for a part that must not disturb the others.
    pub fn fork(&mut self) -> Rng {
        Rng(self.draw())
    }
}

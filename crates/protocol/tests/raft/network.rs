//! Chance, and what the network and the disks do to what is given to them.

use protocol::log::raft::StoreId;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed ^ 0x5851_f42d_4c95_7f2d)
    }
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.draw() % n }
    }
    pub fn range(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from))
    }
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.below(of.len() as u64) as usize).cloned()
    }
}

/// How the network and the disks behave.
#[derive(Clone, Debug)]
pub struct Weather {
    pub loss_percent: u64,
    pub double_percent: u64,
    pub latency_us: (u64, u64),
    /// Now and then a message takes this long.
    pub late_percent: u64,
    pub late_us: u64,
    pub sync_us: (u64, u64),
    /// Cut, one way.
    pub cuts: BTreeSet<(StoreId, StoreId)>,
}

impl Weather {
    pub fn calm() -> Self {
        Weather {
            loss_percent: 0,
            double_percent: 0,
            latency_us: (1_000, 1_001),
            late_percent: 0,
            late_us: 0,
            sync_us: (500, 501),
            cuts: BTreeSet::new(),
        }
    }
    pub fn rough() -> Self {
        Weather {
            loss_percent: 3,
            double_percent: 10,
            latency_us: (200, 20_000),
            late_percent: 3,
            late_us: 2_000_000,
            sync_us: (100, 15_000),
            cuts: BTreeSet::new(),
        }
    }
    pub fn latency(&self, rng: &mut Rng) -> u64 {
        let base = rng.range(self.latency_us.0, self.latency_us.1);
        if rng.percent(self.late_percent) { base + rng.below(self.late_us) } else { base }
    }
}

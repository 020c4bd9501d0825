//! Service times: the cores of a machine and its disk, and who waits for them.
//!
//! The machines on which the simulator runs have two cores; experiments about saturation need more, and must not depend on how fast
//! the simulator is. So each operation costs virtual time on a core, and a sync costs virtual time on the disk.

use crate::rng::Rng;
use serde::Deserialize;

/// What a machine is worth.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Model {
    /// Its cores.
    pub cores: usize,
    /// What a message or a request costs on a core, microseconds; 0: nothing.
    pub message_us: u64,
    /// What each kilobyte of it costs on top, microseconds.
    pub kilobyte_us: u64,
    /// A sync takes between these, microseconds.
    pub sync_us: (u64, u64),
    /// Syncs that take ten times as long, percent.
    pub slow_syncs_percent: u64,
    /// Messages that wait for a core, at most; what comes then is dropped.
    pub backlog: usize,
}

impl Default for Model {
    fn default() -> Self {
        Model { cores: 4, message_us: 5, kilobyte_us: 1, sync_us: (60, 300), slow_syncs_percent: 2, backlog: 10_000 }
    }
}

impl Model {
    /// What work of so many bytes costs on a core, nanoseconds.
    pub fn cost_ns(&self, bytes: usize) -> u64 {
        self.message_us * 1000 + self.kilobyte_us * bytes as u64
    }
}

/// The cores: each serves one at a time, in the order of arrival.
#[derive(Clone, Debug)]
pub struct Cores {
    free_at_ns: Vec<u64>,
    /// How long they were busy, all together, nanoseconds.
    pub busy_ns: u64,
}

impl Cores {
    /// So many, all free.
    pub fn new(count: usize) -> Self {
        Cores { free_at_ns: vec![0; count.max(1)], busy_ns: 0 }
    }

    /// What they were at is forgotten.
    pub fn reset(&mut self) {
        self.free_at_ns.fill(0);
    }

    /// Work of so much time comes: when it is done.
    pub fn serve(&mut self, now_ns: u64, cost_ns: u64) -> u64 {
        let Some(core) = self.free_at_ns.iter_mut().min() else { return now_ns };
        *core = (*core).max(now_ns) + cost_ns;
        self.busy_ns += cost_ns;
        *core
    }
}

/// The disk: one sync at a time. It may be slow, or stall.
#[derive(Clone, Debug, Default)]
pub struct Device {
    free_at_ns: u64,
    /// Faults that make it this many times as slow.
    pub slow: Vec<u64>,
    /// Faults by which it stalls.
    pub stalls: usize,
}

impl Device {
    /// A sync begins: when it ends, unless the disk stalls.
    pub fn sync(&mut self, now_ns: u64, model: &Model, rng: &mut Rng) -> u64 {
        let mut ns = rng.range(model.sync_us.0 * 1000, model.sync_us.1 * 1000 + 1);
        if rng.chance(model.slow_syncs_percent) {
            ns *= 10;
        }
        ns *= self.slow.iter().copied().max().unwrap_or(1);
        self.free_at_ns = self.free_at_ns.max(now_ns) + ns;
        self.free_at_ns
    }

    /// A machine that loses power loses what it was doing.
    pub fn reset(&mut self) {
        self.free_at_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Cores, Device, Model};
    use crate::rng::Rng;

    #[test]
    fn what_comes_faster_than_it_is_served_waits() {
        let mut cores = Cores::new(2);
        let done: Vec<u64> = (0..4).map(|_| cores.serve(100, 50)).collect();
        assert_eq!(done, [150, 150, 200, 200]);
        assert_eq!(cores.serve(1_000, 50), 1_050);
        assert_eq!(cores.busy_ns, 250);
    }

    #[test]
    fn syncs_follow_each_other() {
        let model = Model { sync_us: (100, 100), slow_syncs_percent: 0, ..Model::default() };
        let (mut disk, mut rng) = (Device::default(), Rng::new(1));
        assert_eq!(disk.sync(0, &model, &mut rng), 100_000);
        assert_eq!(disk.sync(50_000, &model, &mut rng), 200_000);
        disk.slow.push(5);
        assert_eq!(disk.sync(1_000_000, &model, &mut rng), 1_500_000);
    }
}

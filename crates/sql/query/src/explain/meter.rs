//! What the operators of a plan do while it runs, for EXPLAIN ANALYZE.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// What an operator did, in all of its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How often it ran.
    pub loops: u64,
    /// Rows that it gave.
    pub rows: u64,
    /// Until the first row of each run, with all below it, microseconds.
    pub first_us: i64,
    /// Until the end of each run.
    pub us: i64,
}

/// What all operators of a statement did.
#[derive(Debug, Default)]
pub struct Meters(Mutex<BTreeMap<usize, Done>>);

impl Meters {
    /// A run of an operator is over.
    pub fn add(&self, place: usize, run: Done) {
        let mut all = self.0.lock();
        let done = all.entry(place).or_default();
        done.loops += run.loops;
        done.rows += run.rows;
        done.first_us += run.first_us;
        done.us += run.us;
    }

    /// What an operator did, if it ran.
    pub fn of(&self, place: usize) -> Option<Done> {
        self.0.lock().get(&place).copied()
    }
}

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

/// What an operator held, and wrote to temporary files, in all of its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes that it wrote.
    pub bytes: u64,
    /// Bytes that it held at most, in one of its runs.
    pub memory_bytes: u64,
    /// In how many parts it did its work, if it was divided.
    pub batches: u64,
    /// It sorted, and kept the first rows alone.
    pub first_rows: bool,
}

/// Rows that an operator left out, in all of its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// For its own condition: WHERE, HAVING.
    pub filter: u64,
    /// For a condition of a join beside its equalities.
    pub join_filter: u64,
    /// Since a join above had no partner for them.
    pub runtime: u64,
}

impl Removed {
    /// Whether it left out none.
    pub fn is_none(&self) -> bool {
        *self == Removed::default()
    }
}

/// What all operators of a statement did.
#[derive(Debug, Default)]
pub struct Meters {
    done: Mutex<BTreeMap<usize, Done>>,
    written: Mutex<BTreeMap<usize, Written>>,
    removed: Mutex<BTreeMap<usize, Removed>>,
}

impl Meters {
    /// An operator has left out rows.
    pub fn removed(&self, place: usize, rows: Removed) {
        if !rows.is_none() {
            let mut all = self.removed.lock();
            let removed = all.entry(place).or_default();
            removed.filter += rows.filter;
            removed.join_filter += rows.join_filter;
            removed.runtime += rows.runtime;
        }
    }

    /// What an operator left out.
    pub fn removed_of(&self, place: usize) -> Removed {
        self.removed.lock().get(&place).copied().unwrap_or_default()
    }

    /// A run of an operator has written to temporary files, if it has.
    pub fn wrote(&self, place: usize, run: Written) {
        if run.bytes > 0 || run.memory_bytes > 0 {
            let mut all = self.written.lock();
            let written = all.entry(place).or_default();
            written.memory_bytes = written.memory_bytes.max(run.memory_bytes);
            written.first_rows |= run.first_rows;
            if run.bytes > 0 {
                written.bytes += run.bytes;
                written.batches += run.batches;
            }
        }
    }

    /// A run of an operator has held so many bytes.
    pub fn held(&self, place: usize, bytes: usize) {
        self.wrote(place, Written { memory_bytes: bytes as u64, ..Written::default() });
    }

    /// What an operator wrote, if it did.
    pub fn written(&self, place: usize) -> Option<Written> {
        self.written.lock().get(&place).copied()
    }

    /// A run of an operator is over.
    pub fn add(&self, place: usize, run: Done) {
        let mut all = self.done.lock();
        let done = all.entry(place).or_default();
        done.loops += run.loops;
        done.rows += run.rows;
        done.first_us += run.first_us;
        done.us += run.us;
    }

    /// What an operator did, if it ran.
    pub fn of(&self, place: usize) -> Option<Done> {
        self.done.lock().get(&place).copied()
    }
}

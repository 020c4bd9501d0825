//! Steps of work that has no rows: reading, binding, planning.

use super::{UNITS_PER_LOOK, step};
use crate::SqlError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Steps from one look to the next.
pub const STEPS_PER_LOOK: usize = 512;

/// Counts steps, and lets what the thread was lent end them. Tests ask how many there were instead of reading a clock. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Pace(Arc<AtomicU64>);

impl Pace {
    /// One step: a small piece of work, but more than a unit.
    ///
    /// # Errors
    /// As [`step`].
    #[inline]
    pub fn step(&self) -> Result<(), SqlError> {
        // One thread counts at a time.
        self.0.store(self.steps() + 1, Ordering::Relaxed);
        step(UNITS_PER_LOOK / STEPS_PER_LOOK)
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

//! VALUES of many rows that are literals alone: their values, which need no expressions.

use crate::SqlError;
use crate::types::{Value, heap_bytes};
use crate::work::Share;

/// See the module.
#[derive(Debug)]
pub(super) struct LiteralRows {
    width: usize,
    /// Row by row.
    values: Vec<Value>,
    held: Share,
}

impl LiteralRows {
    /// None yet, of `rows` of `width` values that come, and count for what is `held`.
    ///
    /// # Errors
    /// 53200
    pub(super) fn new(width: usize, rows: usize, mut held: Share) -> Result<LiteralRows, SqlError> {
        let count = width.saturating_mul(rows);
        held.take(count.saturating_mul(size_of::<Value>()))?;
        Ok(LiteralRows { width, values: Vec::with_capacity(count), held })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// 53200
    pub(super) fn push(&mut self, row: Vec<Value>) -> Result<(), SqlError> {
        assert_eq!(row.len(), self.width, "a row is as long as the others");
        self.held.take_little(row.iter().map(heap_bytes).sum())?;
        self.values.extend(row);
        Ok(())
    }

    /// Values of a row.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    /// One of them.
    pub(super) fn row(&self, at: usize) -> Option<&[Value]> {
        (at < self.len()).then(|| &self.values[at * self.width..][..self.width])
    }
}

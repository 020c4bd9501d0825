//! Rows that leave a plan together.

use crate::types::{Row, wide_bytes};

/// A batch ends with the row that makes it so large, in bytes: rows of megabytes leave one by one, whatever their reader asked for.
pub const BATCH_BYTES: usize = 1 << 20;

/// Rows up to a number and a size. What it holds is no part of the statement's memory: it is bounded, and gone with the next one.
#[derive(Debug)]
pub struct Batch {
    rows: Vec<Row>,
    rows_max: usize,
    bytes: usize,
}

impl Batch {
    /// One of up to so many rows; there is room for `expected` of them.
    pub fn new(rows_max: usize, expected: usize) -> Batch {
        Batch { rows: Vec::with_capacity(expected), rows_max, bytes: 0 }
    }

    /// Whether no more is to be added.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.rows.len() >= self.rows_max || self.bytes >= BATCH_BYTES
    }

    /// Rows that it may take, whatever their size.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.rows_max.saturating_sub(self.rows.len())
    }

    /// One row more.
    #[inline]
    pub fn push(&mut self, row: Row) {
        self.bytes += row.iter().map(wide_bytes).sum::<usize>();
        self.rows.push(row);
    }

    /// The rows.
    pub(crate) fn into_rows(self) -> Vec<Row> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Array, SqlType, Value};
    use std::sync::Arc;

    fn rows_of(value: &Value) -> usize {
        let mut batch = Batch::new(1000, 0);
        while !batch.is_full() {
            batch.push(vec![Value::Int4(7), value.clone()]);
        }
        batch.into_rows().len()
    }

    #[test]
    fn a_batch_ends_by_its_bytes_too() {
        let text = Value::text("x".repeat(300 << 10));
        assert_eq!((rows_of(&Value::Int4(7)), rows_of(&text)), (1000, 4));
        let array = Array::from_values(SqlType::Text, vec![text]);
        assert_eq!(rows_of(&Value::Array(Arc::new(array))), 4, "what an array holds counts");
    }
}

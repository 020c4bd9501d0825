//! Rows that a cursor has read before anybody asked for them: what it reads from is about to change.

use super::cursor::PULL_ROWS;
use crate::SqlError;
use crate::context::MemoryBudget;
use crate::exec::sort::{Reserved, row_bytes};
use crate::plan::RowSource;
use crate::types::Row;
use std::collections::VecDeque;
use std::sync::Arc;

/// See the module. Behind its rows comes the error that ended the reading, if one did.
pub(super) struct ReadOut {
    rows: VecDeque<Row>,
    error: Option<SqlError>,
    reserved: Reserved,
}

impl ReadOut {
    /// One of no rows, whose query has failed.
    pub(super) fn failed(error: SqlError, memory: &Arc<MemoryBudget>) -> Self {
        ReadOut { rows: VecDeque::new(), error: Some(error), reserved: Reserved::new(memory) }
    }

    /// Puts in the place of a source all that it has, at most the memory's worth: beyond that, 53200 for who asks.
    pub(super) fn replace(source: &mut Box<dyn RowSource>, memory: &Arc<MemoryBudget>) {
        let mut all = ReadOut { rows: VecDeque::new(), error: None, reserved: Reserved::new(memory) };
        if let Err(error) = all.fill(source.as_mut(), memory) {
            all.error = Some(error);
        }
        *source = Box::new(all);
    }

    fn fill(&mut self, source: &mut dyn RowSource, memory: &Arc<MemoryBudget>) -> Result<(), SqlError> {
        loop {
            let rows = source.next(PULL_ROWS)?;
            if rows.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.reserved.take(rows.iter().map(|row| row_bytes(row)).sum()) {
                let hint = "Fetch all of a cursor before the transaction's other statements, make its query smaller, or raise \
                            timeball.query_memory_bytes.";
                (self.rows, self.reserved) = (VecDeque::new(), Reserved::new(memory));
                return Err(error.hint(hint));
            }
            self.rows.extend(rows);
        }
    }
}

impl RowSource for ReadOut {
    fn next(&mut self, max: usize) -> Result<Vec<Row>, SqlError> {
        if let (true, Some(error)) = (self.rows.is_empty(), &self.error) {
            return Err(error.clone());
        }
        Ok(self.rows.drain(..max.min(self.rows.len())).collect())
    }
}

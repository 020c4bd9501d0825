//! What a statement that writes has to tell: how many rows it wrote, and those of RETURNING.

use super::evaluate;
use super::sort::{Reserved, row_bytes};
use crate::SqlError;
use crate::context::{MemoryBudget, StatementContext};
use crate::expr::Expr;
use crate::types::{Row, Value};
use std::sync::Arc;

/// Rows written so far.
pub(super) struct Written {
    count: u64,
    returned: Vec<Row>,
    reserved: Reserved,
}

impl Written {
    pub(super) fn new(budget: &Arc<MemoryBudget>) -> Written {
        Written { count: 0, returned: Vec::new(), reserved: Reserved::new(budget) }
    }

    /// One row more, on which RETURNING is computed.
    pub(super) fn add(
        &mut self,
        returning: Option<&[Expr]>,
        row: &[Value],
        context: &StatementContext,
    ) -> Result<(), SqlError> {
        self.count += 1;
        if let Some(exprs) = returning {
            let row = evaluate::row(exprs, row, context)?;
            self.reserved.take(row_bytes(&row))?;
            self.returned.push(row);
        }
        Ok(())
    }

    /// So many rows more, without RETURNING.
    pub(super) fn add_all(&mut self, rows: usize) {
        self.count += rows as u64;
    }

    /// The number of rows, and the rows of RETURNING.
    pub(super) fn finish(self) -> (u64, Vec<Row>) {
        (self.count, self.returned)
    }
}

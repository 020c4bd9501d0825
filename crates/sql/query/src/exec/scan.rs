//! A table scanned for the query engine: filters become keys where an index allows it, rows come in chunks.

use super::cursor::{Cursor, Level};
use super::table::TableAccess;
use crate::SqlError;
use crate::context::StatementContext;
use crate::expr::{Expr, conjunction};
use crate::plan::access::{self, Choice, Order, Wish};
use crate::plan::{Batch, RowSource, tree};
use crate::types::{Row, Value};
use std::sync::Arc;

/// Rows that a scan gives at a time when its reader does not care: what one batch of the query engine holds.
pub const CHUNK_ROWS: usize = 1024;

/// A scan, ready to be opened: immutable, for a cached plan.
#[derive(Debug, Clone)]
pub struct ScanPlan {
    levels: Arc<[Level]>,
    projection: Vec<usize>,
    /// Whether rows come in the order asked for.
    pub ordered: bool,
    /// Whether at most one row can come.
    pub point: bool,
}

impl ScanPlan {
    /// Plans a scan of the columns in slots `projection`, of rows for which every one of `filters` holds (bound over all columns
    /// of the table by slot; every filter is applied exactly). `order`: an order that would be welcome; see [`ScanPlan::ordered`].
    pub fn new(
        access: &Arc<TableAccess>,
        projection: &[usize],
        filters: Vec<Expr>,
        order: &[Order],
        limited: bool,
    ) -> ScanPlan {
        let known = &|_| false;
        let wish =
            Wish { access, base: 0, conditions: &filters, known, order, limited, unions: true, statistics: None };
        let Choice { path, used, ordered, point, rows: expected, .. } = access::choose(&wish);
        let rest: Vec<Expr> =
            filters.into_iter().enumerate().filter(|(i, _)| !used.contains(i)).map(|(_, filter)| filter).collect();
        let mut slots = projection.to_vec();
        rest.iter().for_each(|filter| tree::columns(filter, &mut slots));
        slots.sort_unstable();
        slots.dedup();
        let filter = conjunction(rest);
        let mut level = Level {
            access: access.clone(),
            alias: access.table.name.as_str().into(),
            base: 0,
            slots,
            path,
            filter,
            outer: false,
            after: None,
            lock: None,
            key_lock: None,
            entries: None,
            skips: false,
            expected,
        };
        level.read_entries();
        ScanPlan { levels: Arc::from([level]), projection: projection.to_vec(), ordered, point }
    }

    /// Lines of EXPLAIN: what is read, and how.
    pub fn describe(&self) -> String {
        crate::plan::explain::level(&self.levels[0]).title
    }

    /// Starts it; at most `limit` rows.
    pub fn open(&self, context: &Arc<StatementContext>, limit: Option<usize>) -> TableScan {
        let width = self.levels[0].access.columns.len();
        TableScan {
            cursor: Cursor::new(context, &self.levels, width, limit),
            projection: self.projection.clone(),
            left: limit.unwrap_or(usize::MAX),
        }
    }
}

/// A running scan.
pub struct TableScan {
    cursor: Cursor,
    projection: Vec<usize>,
    left: usize,
}

impl TableScan {
    /// Plans and starts a scan at once: see [`ScanPlan::new`].
    pub fn open(
        context: &Arc<StatementContext>,
        access: &Arc<TableAccess>,
        projection: &[usize],
        filters: Vec<Expr>,
        limit: Option<usize>,
    ) -> TableScan {
        ScanPlan::new(access, projection, filters, &[], limit.is_some()).open(context, limit)
    }
}

impl RowSource for TableScan {
    fn next(&mut self, max: usize) -> Result<Vec<Row>, SqlError> {
        let mut out = Batch::new(max, 0);
        while !out.is_full() && self.left > 0 && self.cursor.advance()? {
            let row = self.cursor.row();
            out.push(self.projection.iter().map(|&slot| row[slot].clone()).collect::<Vec<Value>>());
            self.left -= 1;
        }
        Ok(out.into_rows())
    }
}

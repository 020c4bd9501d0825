//! Window functions over rows that do not fit memory, where every call has PARTITION BY: part by part, as each partition is in one of them.
//!
//! Calls with the same partitions are computed together, one after the other with others. Rows carry their numbers meanwhile, and are sorted by them
//! behind each round: they leave in the order in which they came.
//!
//! **Caveat.** One partition that does not fit is 53200.

use super::super::explain::place;
use super::window::compute;
use super::{Reservation, Rows, Run, Source};
use crate::engine::keys::{encode, own_kind};
use crate::engine::node::Node;
use crate::engine::scalar::Scalar;
use crate::engine::walk;
use crate::engine::window::WindowCall;
use crate::exec::sort::row_bytes;
use crate::exec::spill::partitions::{LEVELS_MAX, Part, Partitions};
use crate::exec::spill::sorter::{SortedRows, Sorter, by_number};
use crate::explain::Written;
use crate::types::{Row, Value};
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Whether the rows of all calls can be divided: by what is the same each time it is asked.
pub(super) fn is_possible(calls: &[WindowCall]) -> bool {
    let fixed = |by: &[Scalar]| !by.is_empty() && !by.iter().any(walk::scalar_is_volatile);
    calls.iter().all(|call| fixed(&call.partition))
}

/// Computes all calls; `source` has all rows.
pub(super) fn start(node: &Arc<Node>, source: Source, run: &Arc<Run>) -> Result<Source, SqlError> {
    let Node::Window { calls, .. } = node.as_ref() else { return Ok(source) };
    let mut written = Written::default();
    let mut rows: Source = Box::new(Numbered { source, number: 0 });
    for calls in calls.chunk_by(|a, b| same(&a.partition, &b.partition)) {
        rows = Box::new(round(calls, rows, &mut written, run)?);
    }
    if let Some(meters) = &run.context.meters {
        meters.wrote(place(node), written);
    }
    Ok(Box::new(Bare(rows)))
}

/// Whether they are the same columns.
fn same(a: &[Scalar], b: &[Scalar]) -> bool {
    let columns = |list: &[Scalar]| list.iter().map(Scalar::column).collect::<Option<Vec<_>>>();
    columns(a).is_some_and(|a| Some(a) == columns(b))
}

/// Rows with their numbers behind them.
struct Numbered {
    source: Source,
    number: i64,
}

impl Rows for Numbered {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let found = self.source.next(row)?;
        row.push(Value::Int8(self.number));
        self.number += 1;
        Ok(found)
    }
}

/// Without them.
struct Bare(Source);

impl Rows for Bare {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let found = self.0.next(row)?;
        row.pop();
        Ok(found)
    }
}

impl Rows for SortedRows {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        SortedRows::next(self, row)
    }
}

fn divide(by: &[Scalar], mut rows: Source, level: u32, run: &Arc<Run>) -> Result<Vec<Part>, SqlError> {
    let mut parts = Partitions::new(level, &run.context)?;
    let (mut row, mut key) = (Row::new(), Vec::new());
    while rows.next(&mut row)? {
        run.tick()?;
        key.clear();
        for scalar in by {
            encode(&*scalar.value_ref(&row, run)?, own_kind(&scalar.ty), &mut key);
        }
        parts.write(&key, &row)?;
    }
    parts.finish()
}

/// Adds the values of calls with the same partitions to all rows.
fn round(calls: &[WindowCall], rows: Source, written: &mut Written, run: &Arc<Run>) -> Result<SortedRows, SqlError> {
    let by = calls.first().map_or(&[][..], |call| &call.partition);
    let mut parts = divide(by, rows, 0, run)?;
    let mut sorter: Option<Sorter> = None;
    while let Some(part) = parts.pop() {
        written.bytes += part.bytes();
        written.batches += u64::from(part.rows() > 0);
        let divisible = part.level < LEVELS_MAX;
        match computed(calls, &part, run) {
            Ok((rows, mut reserved)) => {
                for row in rows {
                    run.tick()?;
                    // From here the sorter counts it.
                    reserved.give(row_bytes(&row));
                    let number = row.len() - 1;
                    let sorter =
                        sorter.get_or_insert_with(|| Sorter::new(by_number(number), None, &run.context).modest());
                    sorter.push(row)?;
                }
            }
            Err(error) if divisible && error.state == SqlState::OUT_OF_MEMORY => {
                let count = part.rows();
                let mut divided = divide(by, Box::new(part.read(&run.context)), part.level, run)?;
                // Of one partition there is no use in dividing it again.
                divided.iter_mut().filter(|part| part.rows() == count).for_each(|part| part.level = LEVELS_MAX);
                parts.append(&mut divided);
            }
            Err(error) => return Err(error),
        }
    }
    let sorter = sorter.unwrap_or_else(|| Sorter::new(by_number(0), None, &run.context));
    let (rows, done) = sorter.finish()?;
    written.bytes += done.disk_bytes;
    Ok(rows)
}

/// The rows of a part with the values of calls before their numbers, and the memory that they hold.
fn computed(calls: &[WindowCall], part: &Part, run: &Arc<Run>) -> Result<(Vec<Row>, Reservation), SqlError> {
    let mut reserved = run.reserve();
    let mut rows = super::collect(Box::new(part.read(&run.context)), &mut reserved, run)?;
    let mut columns = Vec::with_capacity(calls.len());
    for call in calls {
        columns.push(compute(call, &rows, &mut reserved, run)?);
    }
    for column in columns {
        for (row, value) in rows.iter_mut().zip(column) {
            row.insert(row.len() - 1, value);
        }
    }
    Ok((rows, reserved))
}

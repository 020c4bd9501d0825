//! ORDER BY ([`Sorter`]). Under a LIMIT only the rows that can still come out are kept.

use super::super::explain::place;
use super::shape::count;
use super::{Prefix, Rows, Run, Source, listed, open as open_node};
use crate::SqlError;
use crate::engine::node::{Node, SortKey};
use crate::exec::evaluate;
use crate::exec::sort::{self, Order, OrderKey};
use crate::exec::spill::sorter::{SortedRows, Sorter};
use crate::explain::Written;
use crate::types::{Row, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// Compares two values as a sort key says.
pub(super) fn compare(a: &Value, b: &Value, key: &SortKey) -> Ordering {
    let nulls = |order: Ordering| if key.nulls_first { order } else { order.reverse() };
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => nulls(Ordering::Less),
        (_, Value::Null) => nulls(Ordering::Greater),
        (a, b) if key.descending => b.compare(a, &key.by.ty),
        (a, b) => a.compare(b, &key.by.ty),
    }
}

/// Compares the values of keys.
pub(super) fn compare_rows(a: &[Value], b: &[Value], keys: &[SortKey]) -> Ordering {
    let pairs = a.iter().zip(b).zip(keys);
    pairs.map(|((a, b), key)| compare(a, b, key)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// The values of keys on a row.
pub(super) fn key_values(keys: &[SortKey], row: &[Value], run: &Arc<Run>) -> Result<Row, SqlError> {
    keys.iter().map(|key| key.by.value(row, run)).collect()
}

/// What [`sort::leads`] says of the values of keys.
pub(super) fn leads<'a>(values: impl Iterator<Item = &'a Value>, keys: &'a [SortKey]) -> u128 {
    sort::leads(values.zip(keys).map(|(value, key)| (value, &key.by.ty, key.descending, key.nulls_first)))
}

/// How rows of so many columns are sorted, and the keys that are computed behind them.
fn order_of(keys: &[SortKey], width: usize) -> (Order, Vec<usize>) {
    let mut computed = Vec::new();
    let key = |(number, key): (usize, &SortKey)| {
        let column = evaluate::column(&key.by.expr).filter(|_| key.by.steps.is_empty());
        let place = column.unwrap_or_else(|| {
            computed.push(number);
            width + computed.len() - 1
        });
        OrderKey { place, ty: key.by.ty.clone(), descending: key.descending, nulls_first: key.nulls_first }
    };
    (Order(keys.iter().enumerate().map(key).collect()), computed)
}

pub(super) fn open(node: &Arc<Node>, prefix: &Prefix, run: &Arc<Run>) -> Result<Source, SqlError> {
    let Node::Sort { input, keys, limit } = node.as_ref() else { return Ok(listed(Vec::new())) };
    let most = match limit {
        None => None,
        Some((offset, limit)) => {
            let offset = offset.as_ref().map_or(Ok(None), |offset| count(offset, "OFFSET", prefix, run))?.unwrap_or(0);
            count(limit, "LIMIT", prefix, run)?.map(|limit| limit.saturating_add(offset))
        }
    };
    let mut source = open_node(input, prefix, run)?;
    let mut row = Row::new();
    if !source.next(&mut row)? {
        return Ok(listed(Vec::new()));
    }
    let (order, computed) = order_of(keys, row.len());
    let mut sorter = Sorter::new(order, most, &run.context);
    loop {
        run.tick()?;
        row.reserve(computed.len());
        for number in &computed {
            let value = keys[*number].by.value(&row, run)?;
            row.push(value);
        }
        row = sorter.push(row)?.unwrap_or_default();
        if !source.next(&mut row)? {
            break;
        }
    }
    drop(source);
    let (rows, done) = sorter.finish()?;
    if let Some(meters) = &run.context.meters {
        let (bytes, memory_bytes) = (done.disk_bytes, done.memory_bytes);
        meters.wrote(place(node), Written { bytes, memory_bytes, batches: 0, ..Written::default() });
    }
    Ok(Box::new(Ordered { rows, extra: computed.len() }))
}

/// Sorted rows, as they were before their keys were computed.
struct Ordered {
    rows: SortedRows,
    extra: usize,
}

impl Rows for Ordered {
    fn next(&mut self, row: &mut Row) -> Result<bool, SqlError> {
        let found = self.rows.next(row)?;
        if found {
            row.truncate(row.len() - self.extra);
        }
        Ok(found)
    }
}

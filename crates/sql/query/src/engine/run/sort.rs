//! ORDER BY, in memory. Under a LIMIT only the rows that can still come out are kept.

use super::shape::count;
use super::{Prefix, Run, Source, held, listed, open as open_node};
use crate::SqlError;
use crate::engine::node::{Node, SortKey};
use crate::engine::scalar::Scalar;
use crate::exec::evaluate;
use crate::exec::sort::{self, in_order, row_bytes};
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

/// A row to be sorted, behind it the keys that are no column of it.
struct Keyed {
    leads: u128,
    row: Row,
}

fn keyed_bytes(keyed: &Keyed) -> usize {
    row_bytes(&keyed.row) + size_of::<Keyed>()
}

/// The keys of a sort, and where in its rows they are.
struct Order<'a> {
    keys: &'a [SortKey],
    places: Vec<usize>,
    /// Keys to be computed.
    computed: Vec<&'a Scalar>,
    run: &'a Arc<Run>,
}

impl<'a> Order<'a> {
    fn new(keys: &'a [SortKey], run: &'a Arc<Run>) -> Order<'a> {
        Order { keys, places: Vec::new(), computed: Vec::new(), run }
    }

    /// Adds to a row what it is sorted by.
    fn keyed(&mut self, mut row: Row) -> Result<Keyed, SqlError> {
        if self.places.is_empty() {
            for key in self.keys {
                let column = evaluate::column(&key.by.expr).filter(|_| key.by.steps.is_empty());
                self.places.push(column.unwrap_or(row.len() + self.computed.len()));
                self.computed.extend(column.is_none().then_some(&key.by));
            }
        }
        row.reserve(self.computed.len());
        for scalar in &self.computed {
            let value = scalar.value(&row, self.run)?;
            row.push(value);
        }
        let leads = leads(self.places.iter().map(|place| &row[*place]), self.keys);
        Ok(Keyed { leads, row })
    }

    fn compare(&self, a: &Keyed, b: &Keyed) -> Ordering {
        a.leads.cmp(&b.leads).then_with(|| {
            let mut orders = self.places.iter().zip(self.keys).map(|(at, key)| compare(&a.row[*at], &b.row[*at], key));
            orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    }

    /// The row as it was.
    fn bare(&self, keyed: Keyed) -> Row {
        let mut row = keyed.row;
        row.truncate(row.len() - self.computed.len());
        row
    }
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
    let mut reserved = run.reserve();
    let mut order = Order::new(keys, run);
    let mut rows: Vec<Keyed> = Vec::new();
    // The last of the rows that were the first ones so far: what does not come before it is not kept.
    let mut worst: Option<usize> = None;
    let mut row = Row::new();
    while source.next(&mut row)? {
        run.tick()?;
        let keyed = order.keyed(std::mem::take(&mut row))?;
        if worst.is_some_and(|worst| order.compare(&keyed, &rows[worst]).is_ge()) {
            row = keyed.row;
            continue;
        }
        reserved.bytes(keyed_bytes(&keyed))?;
        rows.push(keyed);
        if let Some(most) = most
            && rows.len() >= most.saturating_mul(2).max(64)
        {
            rows = in_order(rows, |a, b| order.compare(a, b), &run.context)?;
            rows.truncate(most);
            reserved.keep(rows.iter().map(keyed_bytes).sum());
            worst = most.checked_sub(1);
        }
    }
    rows = in_order(rows, |a, b| order.compare(a, b), &run.context)?;
    if let Some(most) = most {
        rows.truncate(most);
    }
    let rows: Vec<Row> = rows.into_iter().map(|keyed| order.bare(keyed)).collect();
    Ok(held(rows.into_iter(), reserved))
}

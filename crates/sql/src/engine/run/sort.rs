//! ORDER BY, in memory. Under a LIMIT only the rows that can still come out are kept.

use super::shape::count;
use super::{Prefix, Run, Source, held, listed, open as open_node};
use crate::SqlError;
use crate::engine::node::{Node, SortKey};
use crate::exec::sort::in_order;
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
    let mut rows: Vec<(Row, Row)> = Vec::new();
    let order = |(a, _): &(Row, Row), (b, _): &(Row, Row)| compare_rows(a, b, keys);
    while let Some(row) = source.next()? {
        run.tick()?;
        if most.is_none_or(|most| rows.len() < most.saturating_mul(2)) {
            reserved.row(&row)?;
        }
        rows.push((key_values(keys, &row, run)?, row));
        if let Some(most) = most
            && rows.len() >= most.saturating_mul(2).max(64)
        {
            rows = in_order(rows, order, &run.context)?;
            rows.truncate(most);
        }
    }
    rows = in_order(rows, order, &run.context)?;
    if let Some(most) = most {
        rows.truncate(most);
    }
    Ok(held(rows.into_iter().map(|(_, row)| row), reserved))
}

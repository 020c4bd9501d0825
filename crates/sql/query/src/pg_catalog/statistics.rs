//! What is known of the contents of tables ([`crate::statistics`]), as PostgreSQL shows it.

use super::relations::user;
use super::rows::{RowBuilder, array_text, float4_array};
use super::{Objects, Source, VirtualTable};
use crate::SqlError;
use crate::catalog::{Column, Oid, Table};
use crate::statistics::{ColumnStatistics, TableStatistics};
use crate::types::calendar::EPOCH_OFFSET_US;
use crate::types::{Row, SqlType, Value};
use std::sync::Arc;

/// More different values than this part of the rows are taken to grow with the table: shown as a negative share of them, as PostgreSQL does.
const GROWING_SHARE: f64 = 0.1;

pub(super) fn rows(table: &VirtualTable, source: &Source<'_>) -> Result<Option<Vec<Row>>, SqlError> {
    let produce = match table.name {
        "pg_stat_user_tables" | "pg_stat_all_tables" => of_table,
        "pg_stats" => of_columns,
        _ => return Ok(None),
    };
    let objects = Objects::read(source)?;
    Ok(Some(user(&objects).flat_map(|t| produce(table, t, source, &objects)).collect()))
}

/// What is known of a table.
pub(super) fn of(table: Oid, source: &Source<'_>) -> Option<Arc<TableStatistics>> {
    let (backend, kv) = source.backend.zip(source.kv)?;
    backend.sessions.statistics.of(kv, table)
}

fn of_table(table: &VirtualTable, t: &Table, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let known = of(t.id, source);
    let time = |us: Option<i64>| us.map_or(Value::Null, |us| Value::Timestamptz(us - EPOCH_OFFSET_US));
    let row = RowBuilder::new(table)
        .set("relid", t.id)
        .set("schemaname", objects.schema_name(t.schema))
        .set("relname", t.name.as_str())
        .set("n_live_tup", known.as_ref().map_or(0, |known| i64::try_from(known.rows).unwrap_or(i64::MAX)))
        .set("last_analyze", time(known.as_ref().and_then(|known| known.analyzed_us)))
        .set("last_autoanalyze", time(known.as_ref().and_then(|known| known.autoanalyzed_us)));
    vec![row.done()]
}

fn of_columns(table: &VirtualTable, t: &Table, source: &Source<'_>, objects: &Objects) -> Vec<Row> {
    let Some(known) = of(t.id, source) else { return Vec::new() };
    let row = |column: &Column| {
        let statistics = known.column(column.id)?;
        let row =
            RowBuilder::new(table).set("schemaname", objects.schema_name(t.schema)).set("tablename", t.name.as_str());
        Some(of_column(row, column, statistics, known.rows as f64, source))
    };
    t.columns.iter().filter_map(row).collect()
}

fn of_column(
    row: RowBuilder<'_>,
    column: &Column,
    statistics: &ColumnStatistics,
    rows: f64,
    source: &Source<'_>,
) -> Row {
    let (nulls, filled) = (statistics.nulls as f32, rows * (1.0 - statistics.nulls));
    let distinct = match statistics.distinct {
        // Each value is there once.
        distinct if distinct + 0.5 > filled => -(1.0 - nulls),
        distinct if distinct > GROWING_SHARE * rows => -(distinct / rows) as f32,
        distinct => distinct as f32,
    };
    let list = |values: Vec<Value>| {
        let shown = !values.is_empty() && !matches!(column.ty, SqlType::Array(_));
        shown.then(|| array_text(&column.ty, values, source.settings))
    };
    // A value whose key was cut cannot be shown.
    let common = statistics.common.iter().filter_map(|(key, share)| Some((key.value(&column.ty)?, *share)));
    let (values, shares): (Vec<Value>, Vec<f64>) = common.unzip();
    let bounds: Vec<Value> = statistics.bounds.iter().filter_map(|key| key.value(&column.ty)).collect();
    let values = list(values);
    let shares = if values.is_some() { float4_array(shares) } else { Value::Null };
    row.set("attname", column.name.as_str())
        .set("null_frac", Value::Float4(nulls))
        .set("avg_width", i64::from(statistics.width_bytes))
        .set("n_distinct", Value::Float4(distinct))
        .set("most_common_vals", values)
        .set("most_common_freqs", shares)
        .set("histogram_bounds", list(bounds))
        .set("correlation", Value::Null)
        .done()
}

//! Tables of `timeball_internal`: those that sessions fill; the others are the layers' below.

use crate::answers;
use crate::busy::{self, Busy, With};
use crate::contention::{leases, views};
use crate::peers::Row;
use crate::sessions::Backend;
use crate::statement::Statement;
use crate::transaction::Kv;
use crate::types::calendar::EPOCH_OFFSET_US;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use clock::Timestamp;
use std::sync::Arc;

/// Column names of the snapshots that sessions hold.
const SNAPSHOTS: [&str; 8] =
    ["pid", "user_name", "application_name", "state", "snapshot", "age_ms", "is_oldest", "query"];

/// Column names of the changes of columns that are made beside writers.
const SCHEMA_CHANGES: [&str; 6] = ["pid", "table_id", "command", "phase", "rows_total", "rows_done"];

/// Rows of text, as the layers below have them.
type Rows = Vec<Row>;

/// The tables that there may be, in the order of their OIDs: see `pg_catalog`. New ones come last.
pub const NAMES: [&str; 11] = [
    "snapshots",
    "cluster_sessions",
    "locks",
    "transactions",
    "leases",
    "clocks",
    "memory",
    "nodes",
    "ranges",
    "past",
    "schema_changes",
];

/// Columns of the layers' clocks.
pub const CLOCKS: [&str; 10] = [
    "node_id",
    "source",
    "status",
    "bound_ns",
    "earliest_ns",
    "latest_ns",
    "hybrid",
    "max_drift_ppb",
    "level",
    "reason",
];
/// Of their memory.
pub const MEMORY: [&str; 3] = ["name", "share_bytes", "used_bytes"];
/// Of a cluster's nodes.
pub const NODES: [&str; 12] = [
    "node_id",
    "address",
    "locality",
    "store_id",
    "state",
    "release",
    "cluster_versions",
    "clock_error_ns",
    "sent_messages",
    "received_messages",
    "dropped_messages",
    "last_error",
];
/// Of ranges; alone a node has the first five, and the others are NULL.
pub const RANGES: [&str; 15] = [
    "range_id",
    "start_key",
    "end_key",
    "log",
    "leader_node_id",
    "replicas",
    "learners",
    "role",
    "term",
    "lease_until",
    "applied",
    "prepared",
    "waiting",
    "cluster_version",
    "commits",
];
/// Of how far back can be read.
pub const PAST: [&str; 6] =
    ["index_id", "retention_seconds", "readable_from", "versions", "given_up_versions", "given_up_below"];

/// The type of a column, by its name: the layers below have texts. A hybrid timestamp that names a version (`snapshot`, `hybrid`) stays its exact text, which AS OF SYSTEM TIME
/// takes; a time to be looked at and compared is a `timestamptz`.
fn type_of(column: &str) -> SqlType {
    match column {
        "node_id" | "leader_node_id" | "pid" | "cluster_version" => SqlType::Int4,
        "table_id" | "rows_total" | "rows_done" => SqlType::Int8,
        "range_id" | "index_id" | "database_id" | "term" | "applied" | "prepared" | "waiting" | "commits" => {
            SqlType::Int8
        }
        "versions" | "given_up_versions" | "max_drift_ppb" => SqlType::Int8,
        "is_oldest" => SqlType::Bool,
        "lease_until" | "readable_from" | "given_up_below" => SqlType::Timestamptz(None),
        _ if ["_ns", "_ms", "_bytes", "_messages", "_seconds"].iter().any(|unit| column.ends_with(unit)) => {
            SqlType::Int8
        }
        _ => SqlType::Text,
    }
}

/// A hybrid timestamp as a time; `up`: the first microsecond at or after it, else the last at or before.
fn time(text: &str, up: bool) -> Option<Value> {
    let at: Timestamp = text.parse().ok()?;
    let us = i64::try_from(at.physical_us()).ok()? + i64::from(up && at.logical() > 0);
    Some(Value::Timestamptz(us.checked_sub(EPOCH_OFFSET_US)?))
}

/// The columns of a table, wherever it is. `None`: it is none of [`NAMES`].
pub fn shape(name: &str) -> Option<Vec<(&'static str, SqlType)>> {
    let typed = |columns: &[&'static str]| Some(columns.iter().map(|name| (*name, type_of(name))).collect());
    match name {
        "snapshots" => typed(&SNAPSHOTS),
        "cluster_sessions" => typed(&answers::COLUMNS),
        "schema_changes" => typed(&SCHEMA_CHANGES),
        "locks" => Some(views::LOCK_COLUMNS.to_vec()),
        "transactions" => Some(views::TRANSACTION_COLUMNS.to_vec()),
        "leases" => Some(leases::COLUMNS.to_vec()),
        "clocks" => typed(&CLOCKS),
        "memory" => typed(&MEMORY),
        "nodes" => typed(&NODES),
        "ranges" => typed(&RANGES),
        "past" => typed(&PAST),
        _ => None,
    }
}

/// Whether there is such a table here: some are of clusters, or of a node that is alone.
pub fn is_there(kv: &dyn Kv, name: &str) -> bool {
    match name {
        "snapshots" | "cluster_sessions" | "locks" | "transactions" | "leases" | "schema_changes" => true,
        name => NAMES.contains(&name) && kv.has_internal_table(name),
    }
}

/// The columns of a table; `None` if there is none of that name.
pub fn columns(kv: &dyn Kv, name: &str) -> Option<Vec<(&'static str, SqlType)>> {
    shape(name).filter(|_| is_there(kv, name))
}

/// The rows of a table; `None` if there is none of that name.
///
/// # Errors
/// What ended the statement, where other nodes were asked.
pub fn rows(context: &Statement, name: &str) -> Result<Option<Vec<Vec<Value>>>, SqlError> {
    let (sessions, kv) = (&context.backend.sessions, context.kv.as_ref());
    let Some(columns) = columns(kv, name) else { return Ok(None) };
    let rows = match name {
        "cluster_sessions" => answers::all(sessions, kv, &mut || context.check().is_err()),
        "snapshots" => snapshots(&sessions.all(), kv.monotonic_us()),
        "schema_changes" => schema_changes(context),
        "locks" => views::locks(context),
        "transactions" => views::transactions(context),
        "leases" => leases::rows(context),
        _ => kv.internal_table(name).map(|(_, rows)| rows).unwrap_or_default(),
    };
    context.check()?;
    let value = |((name, ty), cell): (&(&str, SqlType), Option<String>)| {
        let Some(cell) = cell else { return Value::Null };
        match ty {
            SqlType::Int4 => cell.parse().map_or(Value::Null, Value::Int4),
            SqlType::Int8 => cell.parse().map_or(Value::Null, Value::Int8),
            SqlType::Bool => Value::Bool(cell == "true"),
            // What is not kept any more is below it: what is shown can be read.
            SqlType::Timestamptz(_) => time(&cell, *name == "readable_from").unwrap_or(Value::Null),
            _ => Value::Text(cell.into()),
        }
    };
    let cells = |row: Row| columns.iter().zip(row.into_iter().chain(std::iter::repeat(None))).map(value).collect();
    Ok(Some(rows.into_iter().map(cells).collect()))
}

/// The sessions that hold a snapshot, the oldest snapshot first: it is the one that keeps old versions from being collected.
fn snapshots(sessions: &[Arc<Backend>], now_us: i64) -> Rows {
    let mut held: Vec<_> = sessions.iter().filter_map(|backend| Some((backend.snapshot()?, backend))).collect();
    held.sort_by_key(|((snapshot, _), backend)| (*snapshot, backend.number));
    let oldest = held.first().map(|((snapshot, _), _)| *snapshot);
    let row = |((snapshot, taken_us), backend): ((Timestamp, i64), &Arc<Backend>)| {
        let activity = backend.activity();
        vec![
            Some(backend.pid.to_string()),
            Some(backend.user.clone()),
            Some(activity.application_name),
            Some(activity.state.name().to_owned()),
            Some(snapshot.to_string()),
            Some((now_us.saturating_sub(taken_us).max(0) / 1000).to_string()),
            Some((Some(snapshot) == oldest).to_string()),
            activity.query.map(|query| query.to_string()),
        ]
    };
    held.into_iter().map(row).collect()
}

/// How far the changes of columns are that sessions of all nodes make.
fn schema_changes(context: &Statement) -> Rows {
    let stop = &mut || context.check().is_err();
    let (all, silent) = busy::all(&context.backend.sessions, context.kv.as_ref(), stop);
    for (node, why) in silent {
        let message = format!("node {node} does not say what its sessions do: {why}");
        context.backend.effects.notice(SqlError::new(SqlState::WARNING, message));
    }
    let row = |busy: Busy| {
        let With::Column { table, phase, total, done } = busy.with else { return None };
        let (pid, command) = (busy.pid.to_string(), "ALTER TABLE".to_owned());
        Some([pid, table.to_string(), command, phase, total.to_string(), done.to_string()].map(Some).to_vec())
    };
    all.into_iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_types_of_what_they_hold() {
        let ty = |table: &str, column: &str| {
            let columns = shape(table).expect(table);
            columns.into_iter().find(|(name, _)| *name == column).expect(column).1
        };
        assert_eq!(ty("nodes", "node_id"), SqlType::Int4);
        assert_eq!(ty("nodes", "clock_error_ns"), SqlType::Int8);
        assert_eq!(ty("nodes", "cluster_versions"), SqlType::Text, "from and to");
        assert_eq!(ty("ranges", "range_id"), ty("leases", "range_id"));
        assert_eq!(ty("ranges", "lease_until"), ty("leases", "lease_until"));
        assert_eq!(ty("ranges", "replicas"), SqlType::Text, "a list");
        assert_eq!(ty("snapshots", "is_oldest"), SqlType::Bool);
        assert_eq!(ty("past", "readable_from"), SqlType::Timestamptz(None));
    }

    #[test]
    fn what_can_be_read_is_shown_no_earlier_than_it_can() {
        let at = |us: u64, logical: u16| Timestamp::new(us, logical).to_string();
        let us = EPOCH_OFFSET_US as u64 + 7;
        assert_eq!(time(&at(us, 0), true), Some(Value::Timestamptz(7)));
        assert_eq!(time(&at(us, 3), true), Some(Value::Timestamptz(8)));
        assert_eq!(time(&at(us, 3), false), Some(Value::Timestamptz(7)));
        assert_eq!(time("never", false), None);
    }
}

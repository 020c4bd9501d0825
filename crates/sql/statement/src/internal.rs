//! Tables of `timeball_internal`: those that sessions fill; the others are the layers' below.

use crate::SqlError;
use crate::answers;
use crate::contention::{leases, views};
use crate::peers::Row;
use crate::sessions::Backend;
use crate::statement::Statement;
use crate::transaction::Kv;
use crate::types::{SqlType, Value};
use clock::Timestamp;
use std::sync::Arc;

/// Column names of the snapshots that sessions hold.
const SNAPSHOTS: [&str; 8] =
    ["pid", "user_name", "application_name", "state", "snapshot", "age_ms", "is_oldest", "query"];

/// Rows of text, as the layers below have them.
type Rows = Vec<Row>;

/// The tables that there may be, in the order of their OIDs: see `pg_catalog`. New ones come last.
pub const NAMES: [&str; 10] =
    ["snapshots", "cluster_sessions", "locks", "transactions", "leases", "clocks", "memory", "nodes", "ranges", "past"];

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

/// The columns of a table, wherever it is. `None`: it is none of [`NAMES`].
pub fn shape(name: &str) -> Option<Vec<(&'static str, SqlType)>> {
    let texts = |columns: &[&'static str]| Some(columns.iter().map(|name| (*name, SqlType::Text)).collect());
    match name {
        "snapshots" => texts(&SNAPSHOTS),
        "cluster_sessions" => texts(&answers::COLUMNS),
        "locks" => Some(views::LOCK_COLUMNS.to_vec()),
        "transactions" => Some(views::TRANSACTION_COLUMNS.to_vec()),
        "leases" => Some(leases::COLUMNS.to_vec()),
        "clocks" => texts(&CLOCKS),
        "memory" => texts(&MEMORY),
        "nodes" => texts(&NODES),
        "ranges" => texts(&RANGES),
        "past" => texts(&PAST),
        _ => None,
    }
}

/// Whether there is such a table here: some are of clusters, or of a node that is alone.
pub fn is_there(kv: &dyn Kv, name: &str) -> bool {
    match name {
        "snapshots" | "cluster_sessions" | "locks" | "transactions" | "leases" => true,
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
        "locks" => views::locks(context),
        "transactions" => views::transactions(context),
        "leases" => leases::rows(context),
        _ => kv.internal_table(name).map(|(_, rows)| rows).unwrap_or_default(),
    };
    context.check()?;
    let value = |((_, ty), cell): (&(&str, SqlType), Option<String>)| {
        let Some(cell) = cell else { return Value::Null };
        match ty {
            SqlType::Int4 => cell.parse().map_or(Value::Null, Value::Int4),
            SqlType::Int8 => cell.parse().map_or(Value::Null, Value::Int8),
            SqlType::Bool => Value::Bool(cell == "true"),
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
            Some(if Some(snapshot) == oldest { "t" } else { "f" }.to_owned()),
            activity.query.map(|query| query.to_string()),
        ]
    };
    held.into_iter().map(row).collect()
}

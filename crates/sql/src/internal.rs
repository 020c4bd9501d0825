//! Tables of `timeball_internal`: those that sessions fill; the others are the layers' below.

use crate::SqlError;
use crate::contention::{leases, views};
use crate::context::StatementContext;
use crate::peers;
use crate::sessions::Backend;
use crate::transaction::Kv;
use crate::types::{SqlType, Value};
use clock::Timestamp;
use std::sync::Arc;

/// Column names of the snapshots that sessions hold.
const SNAPSHOTS: [&str; 8] =
    ["pid", "user_name", "application_name", "state", "snapshot", "age_ms", "is_oldest", "query"];

/// Rows of text, as the layers below have them.
type Rows = Vec<Vec<Option<String>>>;

/// The tables that there may be, in the order of their OIDs: see [`crate::pg_catalog`]. New ones come last.
pub const NAMES: [&str; 10] =
    ["snapshots", "cluster_sessions", "locks", "transactions", "leases", "clocks", "memory", "nodes", "ranges", "past"];

/// The columns of a table; `None` if there is none of that name.
pub fn columns(kv: &dyn Kv, name: &str) -> Option<Vec<(String, SqlType)>> {
    let typed =
        |columns: &[(&str, SqlType)]| Some(columns.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone())).collect());
    let texts = |columns: Vec<String>| columns.into_iter().map(|name| (name, SqlType::Text)).collect();
    match name {
        "snapshots" => Some(texts(SNAPSHOTS.map(str::to_owned).to_vec())),
        "cluster_sessions" => Some(texts(peers::COLUMNS.map(str::to_owned).to_vec())),
        "locks" => typed(&views::LOCK_COLUMNS),
        "transactions" => typed(&views::TRANSACTION_COLUMNS),
        "leases" => typed(&leases::COLUMNS),
        name if !NAMES.contains(&name) => None,
        _ => kv.internal_table(name).map(|(columns, _)| texts(columns)),
    }
}

/// The rows of a table; `None` if there is none of that name.
///
/// # Errors
/// What ended the statement, where other nodes were asked.
pub fn rows(context: &StatementContext, name: &str) -> Result<Option<Vec<Vec<Value>>>, SqlError> {
    let (sessions, kv) = (&context.backend.sessions, context.kv.as_ref());
    let (rows, types): (Rows, &[(&str, SqlType)]) = match name {
        "cluster_sessions" => (peers::all(sessions, kv, &mut || context.check().is_err()), &[]),
        "snapshots" => (snapshots(&sessions.all(), kv.monotonic_us()), &[]),
        "locks" => (views::locks(context), &views::LOCK_COLUMNS),
        "transactions" => (views::transactions(context), &views::TRANSACTION_COLUMNS),
        "leases" => (leases::rows(context), &leases::COLUMNS),
        name if !NAMES.contains(&name) => return Ok(None),
        _ => match kv.internal_table(name) {
            Some((_, rows)) => (rows, &[]),
            None => return Ok(None),
        },
    };
    context.check()?;
    let value = |(at, cell): (usize, Option<String>)| {
        let Some(cell) = cell else { return Value::Null };
        match types.get(at).map(|(_, ty)| ty) {
            Some(SqlType::Int4) => cell.parse().map_or(Value::Null, Value::Int4),
            Some(SqlType::Int8) => cell.parse().map_or(Value::Null, Value::Int8),
            Some(SqlType::Bool) => Value::Bool(cell == "true"),
            _ => Value::Text(cell.into()),
        }
    };
    Ok(Some(rows.into_iter().map(|row| row.into_iter().enumerate().map(value).collect()).collect()))
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

//! Tables of `timeball_internal`: those that sessions fill; the others are the layers' below.

use crate::context::StatementContext;
use crate::peers;
use crate::sessions::Backend;
use crate::transaction::Kv;
use clock::Timestamp;
use std::sync::Arc;

/// Column names of the snapshots that sessions hold.
const SNAPSHOTS: [&str; 8] =
    ["pid", "user_name", "application_name", "state", "snapshot", "age_ms", "is_oldest", "query"];

/// Rows of text, as the layers below have them.
type Rows = Vec<Vec<Option<String>>>;

/// The columns of a table; `None` if there is none of that name.
pub fn columns(kv: &dyn Kv, name: &str) -> Option<Vec<String>> {
    match name {
        "snapshots" => Some(SNAPSHOTS.map(str::to_owned).to_vec()),
        "cluster_sessions" => Some(peers::COLUMNS.map(str::to_owned).to_vec()),
        _ => kv.internal_table(name).map(|(columns, _)| columns),
    }
}

/// The rows of a table; `None` if there is none of that name.
pub fn rows(context: &StatementContext, name: &str) -> Option<Rows> {
    match name {
        "cluster_sessions" => Some(peers::all(&context.backend.sessions, context.kv.as_ref())),
        "snapshots" => Some(snapshots(&context.backend.sessions.all(), context.kv.monotonic_us())),
        _ => context.kv.internal_table(name).map(|(_, rows)| rows),
    }
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

//! Who is there, who has locked what, and how far he is: `pg_stat_activity`, `pg_locks`, `pg_stat_progress_*`.

use super::rows::RowBuilder;
use super::{OWNER_OID, Source, VirtualTable};
use crate::advisory::{Key, Mode, Shown};
use crate::busy::{self, Busy, With};
use crate::catalog::table_of;
use crate::contention::{self, Picture, Wanted};
use crate::sessions::{Backend, OpenCursor, SHOWN_QUERY_BYTES_MAX};
use crate::statement::Statement;
use crate::transaction::LockMode;
use crate::types::calendar::EPOCH_OFFSET_US;
use crate::types::{Row, Value};
use crate::waits;
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// One row for each session, in the order in which they came.
pub(super) fn activity(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    let Some(asking) = source.backend else { return Ok(Vec::new()) };
    let databases = source.catalog.known_databases();
    let row = |backend: &Backend| {
        let activity = backend.activity();
        let time = |us: Option<i64>| us.map_or(Value::Null, Value::Timestamptz);
        let (wait_type, wait) = backend.wait().unzip();
        let query = activity.query.as_deref().unwrap_or_default();
        RowBuilder::new(table)
            .set("datid", backend.database)
            .set("datname", databases.iter().find(|d| d.id == backend.database).map(|d| d.name.as_str()))
            .set("pid", backend.pid)
            .set("leader_pid", Value::Null)
            .set("usesysid", OWNER_OID)
            .set("usename", backend.user.as_str())
            .set("application_name", activity.application_name.as_str())
            .set("client_addr", backend.client_addr.map(|addr| addr.ip().to_string()))
            .set("client_port", backend.client_addr.map(|addr| u32::from(addr.port())))
            .set("backend_start", Value::Timestamptz(backend.began_us))
            .set("xact_start", time(activity.transaction_us))
            .set("query_start", time(activity.query_us))
            .set("state_change", time(activity.changed_us))
            .set("wait_event_type", wait_type)
            .set("wait_event", wait)
            .set("state", activity.state.name())
            .set("backend_xid", Value::Null)
            .set("backend_xmin", Value::Null)
            .set("query_id", Value::Null)
            .set("query", crate::identifier::cut(query, SHOWN_QUERY_BYTES_MAX))
            .set("backend_type", "client backend")
            .done()
    };
    Ok(asking.sessions.all().iter().map(|backend| row(backend)).collect())
}

/// The cursors of the session that asks.
pub(super) fn cursors(table: &VirtualTable, source: &Source<'_>) -> Vec<Row> {
    let Some(asking) = source.backend else { return Vec::new() };
    let row = |cursor: &OpenCursor| {
        RowBuilder::new(table)
            .set("name", cursor.name.as_str())
            .set("statement", cursor.statement.as_ref())
            .set("is_holdable", cursor.is_holdable)
            // BINARY is not heeded: values leave in the format that FETCH asks for.
            .set("is_binary", false)
            .set("is_scrollable", cursor.is_scrollable)
            .set("creation_time", Value::Timestamptz(cursor.began_us))
            .done()
    };
    asking.cursors.lock().iter().map(row).collect()
}

/// One row for each session that is busy with something of a kind, of all nodes; `fill` gives the columns after those that all views have. Nodes that do not say it in time are named in a warning.
fn busy<'a>(
    table: &'a VirtualTable,
    source: &Source<'_>,
    fill: impl Fn(With, RowBuilder<'a>) -> Option<RowBuilder<'a>>,
) -> Result<Vec<Row>, SqlError> {
    let (Some(asking), Some(context)) = (source.backend, source.statement) else { return Ok(Vec::new()) };
    let databases = source.catalog.known_databases();
    let (all, silent) = busy::all(&asking.sessions, context.kv.as_ref(), &mut || context.check().is_err());
    context.check()?;
    for (node, why) in silent {
        let message = format!("node {node} does not say what its sessions do: {why}");
        asking.effects.notice(SqlError::new(SqlState::WARNING, message));
    }
    let mut rows = Vec::new();
    for Busy { pid, database, with } in all {
        let row = RowBuilder::new(table)
            .set("pid", pid)
            .set("datid", database)
            .set("datname", databases.iter().find(|d| d.id == database).map(|d| d.name.as_str()));
        rows.extend(fill(with, row).map(RowBuilder::done));
    }
    Ok(rows)
}

/// COPY. How much a client will send is not known, and no row is left out: there is no WHERE.
pub(super) fn copies(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    busy(table, source, |with, row| {
        let With::Copy { table, from, bytes, rows } = with else { return None };
        let row = row.set("relid", table).set("command", if from { "COPY FROM" } else { "COPY TO" });
        let row = row.set("type", "PIPE").set("bytes_processed", bytes).set("bytes_total", 0i64);
        Some(row.set("tuples_processed", rows).set("tuples_excluded", 0i64))
    })
}

/// CREATE INDEX. Blocks are not counted (there are none), nobody is waited for, and there are no partitions.
pub(super) fn indexes(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    let nothing = [
        "lockers_total",
        "lockers_done",
        "current_locker_pid",
        "blocks_total",
        "blocks_done",
        "partitions_total",
        "partitions_done",
    ];
    busy(table, source, |with, row| {
        let With::Index { table, index, phase, total, done } = with else { return None };
        let row = nothing.iter().fold(row, |row, name| row.set(name, 0i64));
        let row = row.set("relid", table).set("index_relid", index).set("command", "CREATE INDEX");
        Some(row.set("phase", phase.as_str()).set("tuples_total", total).set("tuples_done", done))
    })
}

/// Advisory locks of this node's sessions, and the locks that somebody waits for: a transaction may hold a million others. Those of tables there are none.
/// In a cluster, where a session of this node waits, all nodes are asked: what is in its way may be held at another, by a session of a third.
pub(super) fn locks(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    let (Some(asking), Some(context)) = (source.backend, source.statement) else { return Ok(Vec::new()) };
    let (backends, now_us) = (asking.sessions.all(), context.kv.monotonic_us());
    let lock = |owner: Option<String>, pid: Option<i32>, mode: &str, granted: bool| {
        let nothing = ["relation", "page", "tuple", "virtualxid", "transactionid", "classid", "objid", "objsubid"];
        let row = nothing.into_iter().fold(RowBuilder::new(table), |row, name| row.set(name, Value::Null));
        let of_pid = backends.iter().find(|backend| Some(backend.pid) == pid && !granted);
        let since_us = of_pid.and_then(|backend| backend.waits_for_lock_since_us());
        let wall_us = context.kv.now_us() - EPOCH_OFFSET_US;
        let since = since_us.map_or(Value::Null, |us| Value::Timestamptz(wall_us - now_us.saturating_sub(us).max(0)));
        let row = row.set("waitstart", since).set("virtualtransaction", owner).set("pid", pid);
        row.set("mode", mode).set("granted", granted)
    };
    let advisory = |row: RowBuilder<'_>, key: Key| {
        row.set("locktype", "advisory")
            .set("database", key.database)
            .set("classid", key.class)
            .set("objid", key.object)
            .set("objsubid", if key.pair { 2 } else { 1 })
            .done()
    };
    let own = |shown: Shown| {
        let pid = backends.iter().find(|backend| backend.number == shown.session).map(|backend| backend.pid);
        let row = lock(Some(format!("{}/0", shown.session)), pid, shown.mode.name(), shown.granted);
        advisory(row, shown.key)
    };
    let mut rows: Vec<Row> = asking.sessions.advisory.shown().into_iter().map(own).collect();
    let with_peers = asking_peers_helps(context);
    let picture = match with_peers {
        true => Picture::contended(context),
        false => Arc::new(Picture::take(context, Wanted::Contended, false)),
    };
    context.check()?;
    let relations = if picture.locks.is_empty() { Vec::new() } else { context.catalog.known_relations() };
    for (_, of) in &picture.locks {
        let session = picture.session_of(of.txn);
        let pid = session.map(|(_, session)| session.pid);
        let advisory_key = Key::of_bytes(&of.key);
        // Those of this node's sessions are there already.
        if advisory_key.is_some() && pid.is_some_and(|pid| backends.iter().any(|backend| backend.pid == pid)) {
            continue;
        }
        let owner = Some(format!("{}/{}", of.txn.node, of.txn.serial));
        rows.push(match advisory_key {
            Some(key) => advisory(lock(owner, pid, mode_of(of.mode).name(), of.granted), key),
            None => {
                let (page, tuple) = place(&of.key);
                let relation = table_of(&of.key, relations.iter().cloned()).map(|(table, _)| table.id);
                let row = lock(owner, pid, waits::mode_name(of.mode), of.granted).set("locktype", "tuple");
                let row = row.set("database", asking.database).set("relation", relation);
                row.set("page", page).set("tuple", tuple).done()
            }
        });
    }
    Ok(rows)
}

/// Whether something of what is in the way of this node's sessions may lie at other nodes.
fn asking_peers_helps(context: &Statement) -> bool {
    context.kv.node() != 0 && contention::anybody_waits(&context.backend.sessions)
}

/// The mode of an advisory lock whose key is locked so.
fn mode_of(mode: LockMode) -> Mode {
    if mode <= LockMode::Share { Mode::Share } else { Mode::Exclusive }
}

/// Numbers for a row, which has no place: the same for who holds it and who waits for it (FNV-1a of its key).
fn place(key: &[u8]) -> (i32, i32) {
    let digest = key
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    ((digest >> 33) as i32, (digest as i32) & 0x7fff)
}

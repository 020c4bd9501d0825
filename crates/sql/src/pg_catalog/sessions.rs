//! Who is there, who has locked what, and how far he is: `pg_stat_activity`, `pg_locks`, `pg_stat_progress_*`.

use super::rows::RowBuilder;
use super::{OWNER_OID, Source, VirtualTable};
use crate::SqlError;
use crate::advisory::{Key, Shown};
use crate::progress::Task;
use crate::session::table_of;
use crate::sessions::{Backend, SHOWN_QUERY_BYTES_MAX};
use crate::transaction::RowLock;
use crate::types::{Row, Value};
use crate::waits;

/// One row for each session, in the order in which they came.
pub(super) fn activity(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    let Some(asking) = source.backend else { return Ok(Vec::new()) };
    let databases = source.catalog.databases()?;
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

/// One row for each session that is busy with something of a kind; `fill` gives the columns after those that all views have.
fn busy<'a>(
    table: &'a VirtualTable,
    source: &Source<'_>,
    fill: impl Fn(Task, RowBuilder<'a>) -> Option<RowBuilder<'a>>,
) -> Result<Vec<Row>, SqlError> {
    let Some(asking) = source.backend else { return Ok(Vec::new()) };
    let databases = source.catalog.databases()?;
    let mut rows = Vec::new();
    for backend in asking.sessions.all() {
        let Some(task) = backend.progress.task() else { continue };
        let row = RowBuilder::new(table)
            .set("pid", backend.pid)
            .set("datid", backend.database)
            .set("datname", databases.iter().find(|d| d.id == backend.database).map(|d| d.name.as_str()));
        rows.extend(fill(task, row).map(RowBuilder::done));
    }
    Ok(rows)
}

/// COPY. How much a client will send is not known, and no row is left out: there is no WHERE.
pub(super) fn copies(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    busy(table, source, |task, row| {
        let Task::Copy(copy) = task else { return None };
        let row = row.set("relid", copy.table).set("command", if copy.from { "COPY FROM" } else { "COPY TO" });
        let row = row.set("type", "PIPE").set("bytes_processed", copy.bytes.get() as i64).set("bytes_total", 0i64);
        Some(row.set("tuples_processed", copy.rows.get() as i64).set("tuples_excluded", 0i64))
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
    busy(table, source, |task, row| {
        let Task::Index(index) = task else { return None };
        let row = nothing.iter().fold(row, |row, name| row.set(name, 0i64));
        let row = row.set("relid", index.table).set("index_relid", index.index).set("command", "CREATE INDEX");
        let row = row.set("phase", index.phase()).set("tuples_total", index.total.get() as i64);
        Some(row.set("tuples_done", index.done.get() as i64))
    })
}

/// Advisory locks, and the locks of rows that somebody waits for: a transaction may hold a million others. Those of tables there are none.
pub(super) fn locks(table: &VirtualTable, source: &Source<'_>) -> Result<Vec<Row>, SqlError> {
    let (Some(asking), Some(kv)) = (source.backend, source.kv) else { return Ok(Vec::new()) };
    let backends = asking.sessions.all();
    let lock = |session: Option<u64>, mode: &str, granted: bool| {
        let pid = backends.iter().find(|backend| Some(backend.number) == session).map(|backend| backend.pid);
        let nothing = ["relation", "page", "tuple", "virtualxid", "transactionid", "waitstart"];
        let nothing = nothing.into_iter().chain(["classid", "objid", "objsubid"]);
        let row = nothing.fold(RowBuilder::new(table), |row, name| row.set(name, Value::Null));
        let row = row.set("virtualtransaction", session.map(|session| format!("{session}/0"))).set("pid", pid);
        row.set("mode", mode).set("granted", granted)
    };
    let advisory = |shown: Shown| {
        lock(Some(shown.session), shown.mode.name(), shown.granted)
            .set("locktype", "advisory")
            .set("database", shown.key.database)
            .set("classid", shown.key.class)
            .set("objid", shown.key.object)
            .set("objsubid", if shown.key.pair { 2 } else { 1 })
            .done()
    };
    let mut rows: Vec<Row> = asking.sessions.advisory.shown().into_iter().map(advisory).collect();
    let mut of_rows = Vec::new();
    kv.look_at_row_waits(&mut |waits| of_rows = waits.all());
    // Those of this node's sessions are there already.
    of_rows.retain(|row| Key::of_bytes(&row.of.key).is_none());
    let relations = if of_rows.is_empty() { Vec::new() } else { source.catalog.relations()? };
    for RowLock { of, granted } in of_rows {
        let (page, tuple) = place(&of.key);
        let relation = table_of(&of.key, relations.clone()).map(|(table, _)| table.id);
        let row = lock(of.session, waits::mode_name(of.mode), granted);
        let row = row.set("locktype", "tuple").set("database", asking.database).set("relation", relation);
        rows.push(row.set("page", page).set("tuple", tuple).done());
    }
    Ok(rows)
}

/// Numbers for a row, which has no place: the same for who holds it and who waits for it (FNV-1a of its key).
fn place(key: &[u8]) -> (i32, i32) {
    let digest = key
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    ((digest >> 33) as i32, (digest as i32) & 0x7fff)
}

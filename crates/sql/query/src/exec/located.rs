//! Rows of an UPDATE or DELETE that a query found: joins and subqueries that nested loops do not know.
//!
//! **Problem.** Between the query's look at a row and the row's lock another transaction may commit a change of it. SERIALIZABLE and
//! REPEATABLE READ restart then. READ COMMITTED goes on: it must ask WHERE again of the row as it is now, and compute SET from it
//! (PostgreSQL's EvalPlanQual), or it writes rows that it does not mean, over changes that it has not seen.
//!
//! **Idea.** All rows are locked before one is written. If some had changed, the query runs a second time, on the snapshot to which
//! the locks have moved the transaction: what it says of the changed rows counts, and is final, for they are locked.
//!
//! **Invariants.**
//! 1. A row is written only if the query found it at its version under the lock, with values computed from that version.
//! 2. Rows that only the second run finds are left alone: the statement is about the rows of its own snapshot.
//! 3. The query never meets what its statement writes (the Halloween problem): it has run before the first write.
//!
//! **Caveats.** A `Kv` whose snapshot does not move over what the statement read (the node's does not) fails the lock instead, and the
//! session repeats the statement as a whole, with the locks it has: then the rows are those of the new snapshot. The second run reads
//! the other tables at the newer snapshot, where PostgreSQL keeps the rows first joined.

use super::ahead::AHEAD_ROWS;
use super::sort::{Reserved, row_bytes};
use crate::SqlError;
use crate::context::StatementContext;
use crate::plan::{Execution, Plan};
use crate::transaction::{LockMode, LockWait};
use crate::types::{Row, Value};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Rows pulled at a time from the query.
const PULL_ROWS: usize = AHEAD_ROWS;

/// A row to write.
pub(super) struct Located {
    pub(super) key: Bytes,
    /// The row at this key.
    pub(super) stored: Bytes,
    /// What the query says behind the key.
    pub(super) values: Row,
    /// How it is locked.
    pub(super) held: LockMode,
}

/// Runs the query and locks what it finds, each row in the mode that `mode` says of it and what the query says behind its key; each row
/// once, at its newest version.
pub(super) fn lock(
    plan: &dyn Plan,
    mode: impl Fn(&Bytes, &Row) -> Result<LockMode, SqlError>,
    context: &Arc<StatementContext>,
) -> Result<Vec<Located>, SqlError> {
    let mut reserved = Reserved::new(&context.memory);
    let mut located = Vec::new();
    let mut seen = BTreeSet::new();
    rows(plan, context, |key, values| {
        if !seen.insert(key.clone()) {
            return Ok(());
        }
        if let Some(stored) = context.reads().with(|txn| txn.get(&key))? {
            reserved.take_to_write(2 * key.len() + stored.len() + row_bytes(&values))?;
            located.push(Located { key, stored, values, held: LockMode::KeyShare });
        }
        Ok(())
    })?;
    let read_at = context.txn.with(|txn| txn.snapshot());
    let mut changed = BTreeSet::new();
    for row in &mut located {
        row.held = mode(&row.stored, &row.values)?;
    }
    let first = located.first().map(|row| row.held);
    let alike = first.filter(|first| located.iter().all(|row| row.held == *first));
    let keys: Vec<Bytes> = located.iter().filter(|_| alike.is_some()).map(|row| row.key.clone()).collect();
    let mut locked = Vec::with_capacity(located.len());
    for (n, mut row) in located.into_iter().enumerate() {
        context.check()?;
        if let (Some(mode), true) = (alike, n.is_multiple_of(AHEAD_ROWS)) {
            super::ahead::locks(keys.iter().skip(n).take(AHEAD_ROWS).cloned(), mode, &context.txn);
        }
        if context.is_written(&row.key) {
            continue;
        }
        let newest = context.txn.with(|txn| {
            txn.lock_as(&row.key, row.held, LockWait::Wait)?;
            // A row that is newer than the snapshot moves it.
            if txn.snapshot() == read_at { Ok(Some(row.stored.clone())) } else { txn.get(&row.key) }
        })?;
        let Some(newest) = newest else { continue };
        if newest != row.stored {
            changed.insert(row.key.clone());
            row.stored = newest;
        }
        locked.push(row);
    }
    if changed.is_empty() {
        return Ok(locked);
    }
    let mut again = BTreeMap::new();
    rows(plan, context, |key, values| {
        if changed.contains(&key) && !again.contains_key(&key) {
            reserved.take_to_write(key.len() + row_bytes(&values))?;
            again.insert(key, values);
        }
        Ok(())
    })?;
    locked.retain_mut(|row| {
        if !changed.contains(&row.key) {
            return true;
        }
        let values = again.remove(&row.key);
        values.map(|values| row.values = values).is_some()
    });
    Ok(locked)
}

/// Gives each row of the query as the key of the row that it is about and the values behind it.
pub(super) fn rows(
    plan: &dyn Plan,
    context: &Arc<StatementContext>,
    mut f: impl FnMut(Bytes, Row) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let Execution::Rows(mut source) = plan.execute(context)? else { return Ok(()) };
    loop {
        let rows = source.next(PULL_ROWS)?;
        if rows.is_empty() {
            return Ok(());
        }
        let key = |values: &Row| {
            if let Some(Value::Bytea(key)) = values.first() { Some(Bytes::copy_from_slice(key)) } else { None }
        };
        super::ahead::reads(rows.iter().filter_map(key), context.reads())?;
        for mut values in rows {
            // An outer join may put NULLs in the place of a row.
            let Value::Bytea(key) = values.remove(0) else { continue };
            f(Bytes::copy_from_slice(&key), values)?;
        }
    }
}

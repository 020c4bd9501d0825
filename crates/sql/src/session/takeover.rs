//! A COPY that grows large takes over its table, if that is empty and nobody else's: from then on its rows are loaded ([`crate::ddl`]'s `takeover`, decision 235).

use super::Session;
use super::active::Active;
use super::copy::CopyIn;
use crate::catalog::{Relation, Table};
use crate::context::MemoryPool;
use crate::context::StatementContext;
use crate::database::Database;
use crate::ddl::{Gate, Loader, Refused, Taken, Takeover, held_bytes_max, may_be_taken};
use crate::plan::row_inserter;
use crate::transaction::{Isolation, TxnRef};
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// What a write takes of memory beside twice its key and value, bytes, about.
const WRITE_BYTES: usize = 112;

/// It looks when it holds such a part of what all statements may have now, at the latest.
const POOL_PART: usize = 4;

/// What to do about 53200, where rows could have been loaded.
const REMEDY: &str = "COPY takes steady memory into a table that is new or truncated in its transaction and has no foreign keys: CREATE TABLE or TRUNCATE, and COPY, in one transaction, and add foreign keys afterwards (a node that is alone does so for a table that is empty, where nobody else writes to it or changes it); or copy fewer rows in one transaction, or start the node with more --memory.";

/// What a COPY has as writes of its transaction.
pub(super) struct Held {
    table: Table,
    columns: Vec<u16>,
    /// Before its first write, once [`Held::begins`].
    mark: u32,
    /// What the transaction held by then, bytes.
    before_bytes: usize,
    /// When it looks whether it can be loaded, bytes; then when they have doubled.
    next_bytes: usize,
    /// It has looked.
    has_looked: bool,
}

impl Held {
    /// Of a statement that begins; `None`: it will never be loaded.
    pub fn new(db: &Database, active: &Active, table: &Table, columns: &[u16]) -> Option<Held> {
        // A load moves the snapshot up: at REPEATABLE READ that would be refused for rows that nobody asks about (decision 225).
        let moves = active.isolation != Isolation::RepeatableRead || active.has_done_nothing();
        // Of several nodes each has what is said here, and holds to it; but their loads have been seen to fail and to stand still with little memory.
        let is_alone = db.kv.cluster().is_none();
        if !is_alone || !moves || active.own.has_changed(table.id) || !may_be_taken(table) {
            return None;
        }
        let (table, columns) = (table.clone(), columns.to_vec());
        let next_bytes = db.options.held_bytes_max.unwrap_or_else(|| held_bytes_max(db.options.memory_bytes));
        Some(Held { table, columns, mark: 0, before_bytes: 0, next_bytes, has_looked: false })
    }

    /// Its first write comes next, and others follow. (Of a few rows nobody asks how they are undone.)
    pub fn begins(&mut self, txn: &TxnRef) {
        (self.mark, self.before_bytes) = (txn.with(|t| t.savepoint()), held_bytes(txn));
    }

    /// Whether it is time to look: it holds much, or has not looked yet and much of what all statements may have is held by it or by all.
    fn is_full(&self, txn: &TxnRef, pool: &MemoryPool) -> bool {
        let held = self.bytes(txn);
        let limit = pool.limit_bytes();
        held >= self.next_bytes || !self.has_looked && (held >= limit / POOL_PART || pool.used_bytes() >= limit / 2)
    }

    fn bytes(&self, txn: &TxnRef) -> usize {
        held_bytes(txn).saturating_sub(self.before_bytes)
    }

    /// Somebody is in the way: it looks again when it holds twice as much.
    fn looks_later(&mut self, txn: &TxnRef) {
        (self.next_bytes, self.has_looked) = (self.bytes(txn).saturating_mul(2), true);
    }
}

/// A table that a transaction has taken over: its gate, and where the table stands among those that the transaction has made or emptied.
pub(super) struct TakenOver {
    pub(super) at: usize,
    pub(super) gate: Gate,
}

fn held_bytes(txn: &TxnRef) -> usize {
    let held = txn.with(|t| t.footprint());
    2 * held.bytes + held.keys * WRITE_BYTES
}

impl Session {
    /// Takes over the table of a COPY, if it holds much by now and can.
    ///
    /// # Errors
    /// Those of the layers below.
    pub(super) fn take_over_by(&mut self, copy: &mut CopyIn) -> Result<(), SqlError> {
        let Some(mut held) = copy.held.take() else { return Ok(()) };
        if !held.is_full(&copy.context.txn, &self.db.options.memory_pool) {
            copy.held = Some(held);
            return Ok(());
        }
        // What it asks of others may take as long as a statement may.
        self.start_deadline();
        let taken = self.take_over(&held, &copy.context, copy.count, &mut copy.load);
        self.deadline.clear();
        match taken? {
            Ok(table) => {
                let relation = Arc::new(Relation::Table(table));
                copy.inserter = row_inserter(&relation, &held.columns, &self.plan_context()?)?;
            }
            Err(Refused::HasRows) => {}
            Err(Refused::InUse) => {
                held.looks_later(&copy.context.txn);
                copy.held = Some(held);
            }
        }
        Ok(())
    }

    /// Takes over a table of which the statement has written so many rows, if nobody is in the way: `load` has them then, and takes the others. Gives the table with its new index ids.
    ///
    /// # Errors
    /// Those of the layers below.
    fn take_over(
        &mut self,
        held: &Held,
        context: &StatementContext,
        rows: u64,
        load: &mut Option<Loader>,
    ) -> Result<Result<Table, Refused>, SqlError> {
        let Some(active) = self.active.as_mut() else { return Ok(Err(Refused::InUse)) };
        let (db, own, table, mark) = (&self.db, &*active.own, &held.table, held.mark);
        let Taken { table, changed, gate } = match (Takeover { db, context, own, table, mark, rows }).run(load)? {
            Ok(taken) => taken,
            Err(refused) => return Ok(Err(refused)),
        };
        active.taken_over.push(TakenOver { at: active.fresh.len(), gate });
        // New, and not empty: what comes behind this statement is not loaded.
        active.fresh.push(table.id);
        self.backend.filled.fresh(&[table.id]);
        self.backend.filled.wrote(table.id);
        self.use_changed(changed);
        Ok(Ok(table))
    }
}

/// 53200 says what can be done.
pub(super) fn explained(e: SqlError) -> SqlError {
    if e.state == SqlState::OUT_OF_MEMORY { e.hint(REMEDY) } else { e }
}

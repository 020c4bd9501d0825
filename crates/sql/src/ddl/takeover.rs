//! A table that is there and empty is taken over by whoever fills it: its rows are loaded, as those of a table that is new.
//!
//! # Problem
//! COPY into a table that is new in its transaction is loaded beside it, in steady memory ([`super::load`]). A dump commits CREATE TABLE long before its COPY: all rows were writes of one transaction,
//! in memory, and 53200 beyond the node's share. Which COPY grows large nobody knows when it begins, and most are small.
//!
//! # Idea
//! It begins as any other. Once its writes take [`held_bytes_max`] it does what TRUNCATE and COPY do in one transaction: the table is given fresh index ids in this transaction, what it has written goes there, and so
//! does all that follows. Before, it has the table for itself: the table's gate is closed and its version held ([`super::exclusive`]), so whoever comes to write waits until the transaction ends. All of that is had
//! at once or not at all. Decision 235.
//!
//! # Invariants
//! 1. Safety is certification's and the tokens', as for any change: that the table is empty is read certified, above the gate, and whoever writes by the version that the transaction ends is refused, or refuses it.
//! 2. Nobody is waited for: of two that fill one table each would wait for the other. Where somebody writes to it, or changes it, or may have, the rows stay where they are, and nothing is left of the attempt.
//!    Somebody may be the statement's own transaction, which has changed it before, or has looked whether to: the gate is closed beside it, and would wait for what it holds.
//! 3. The rows of the statement, and nothing else, are what its transaction has written to the table.
//! 4. Who reads, reads below the ids of his snapshot: nothing there, until the transaction has committed and he looks again.
//! 5. What is undone is found again: ids and rows go with the transaction's writes, [`Gate`] opens when they have gone, and what was loaded is garbage ([`crate::catalog::garbage`]).
//!
//! # Caveats
//! A transaction above READ COMMITTED that began before the gate closed goes by the catalog of before, and does not wait: the later one of the two to commit is refused.

use super::load::Loader;
use super::orphans::{last_patience, open_gate};
use super::users::{Ending, Holds, Users};
use crate::catalog::reliance::{version_before, version_of};
use crate::catalog::{Change, Changed, Oid, Overlay, Relation, Snapshot, Table, change, key};
use crate::context::StatementContext;
use crate::database::Database;
use crate::encoding::index_span;
use crate::exec::table::PREFIX_BYTES;
use crate::transaction::{Isolation, LockMode, LockWait, ScanRequest, Span, TxnRef};
use crate::{KvError, SqlError};
use bytes::Bytes;
use clock::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Keys and values.
type Entries = Vec<(Bytes, Bytes)>;

/// Rows moved at once, where they come in pieces.
const MOVED_ROWS: usize = 4096;

/// So long who opens a gate waits for who has the guard, microseconds: most have it for a moment, to look. Maintenance opens it then.
const GUARD_US_MAX: i64 = 100_000;
/// How often he looks meanwhile.
const GUARD_LOOK_US: i64 = 5_000;

/// The gate of a table that was taken over. Dropped, it opens, unless the change has committed: the transaction has ended then, or has undone it.
pub(crate) struct Gate {
    db: Arc<Database>,
    table: Oid,
    passed: bool,
}

impl Gate {
    /// The change has committed, and opened it.
    pub fn passed(&mut self) {
        self.passed = true;
    }

    /// Where somebody else changes the table by now, it may be his; and he opens it.
    fn open(&self) -> Result<(), SqlError> {
        let patience = last_patience(&self.db);
        let until_us = self.db.kv.monotonic_us().saturating_add(GUARD_US_MAX);
        let mut guard = patience.begin(self.db.kv.as_ref(), Isolation::RepeatableRead)?;
        while !guard.lock(&key::guard(self.table), LockWait::Skip)? {
            let now_us = self.db.kv.monotonic_us();
            if now_us >= until_us {
                return Ok(());
            }
            patience.wait_until(self.db.kv.as_ref(), until_us.min(now_us + GUARD_LOOK_US))?;
        }
        open_gate(&self.db, &patience, self.table)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // If even that fails, and behind a panic, maintenance does it.
        if !self.passed && !std::thread::panicking() {
            drop(self.open());
        }
    }
}

/// What is to be taken over.
pub(crate) struct Takeover<'a> {
    /// In which database.
    pub db: &'a Arc<Database>,
    /// By which statement.
    pub context: &'a StatementContext,
    /// What its transaction has changed of the catalog.
    pub own: &'a Overlay,
    /// The table, as the statement goes by it.
    pub table: &'a Table,
    /// The mark of the transaction before the statement's first write.
    pub mark: u32,
    /// Rows that the statement has written.
    pub rows: u64,
}

/// A table that was taken over.
pub(crate) struct Taken {
    /// It, with its new index ids.
    pub table: Table,
    /// The catalog to go on with in this transaction.
    pub changed: Changed,
    /// To be dropped when the transaction has ended, or has gone back behind it.
    pub gate: Gate,
}

/// Why a table is not taken over.
pub(crate) enum Refused {
    /// Others write to it or change it. That may end.
    InUse,
    /// It has rows.
    HasRows,
}

/// Whether a table may ever be filled so: its rows are checked by themselves, and nothing is being made of it. (Its gate may be closed: who was behind it may have failed.)
pub(crate) fn may_be_taken(table: &Table) -> bool {
    table.foreign_keys.is_empty() && !table.is_unfinished()
}

impl Takeover<'_> {
    /// Takes the table over, if nobody is in the way, and moves what the statement has written to `load`.
    ///
    /// # Errors
    /// Those of the layers below: the statement has failed.
    pub fn run(&self, load: &mut Option<Loader>) -> Result<Result<Taken, Refused>, SqlError> {
        // Before anything is locked, or said: mostly the table has rows, or others fill it, too.
        if !self.is_empty()? {
            return Ok(Err(Refused::HasRows));
        }
        if !self.is_unused(None) || !self.is_unchanged()? {
            return Ok(Err(Refused::InUse));
        }
        let (mut gate, mark) = (None, self.context.txn.with(|t| t.savepoint()));
        let taken = self.take(&mut gate, load);
        match (taken, gate) {
            (Ok(Ok((table, changed))), Some(gate)) => Ok(Ok(Taken { table, changed, gate })),
            (taken, gate) => {
                // Locks first: whoever opens the gate needs one of them. Those of the rows stay.
                self.context.txn.with(|t| t.release_since(mark));
                drop(gate);
                taken.map(|taken| Err(taken.err().unwrap_or(Refused::InUse)))
            }
        }
    }

    fn take(
        &self,
        gate: &mut Option<Gate>,
        load: &mut Option<Loader>,
    ) -> Result<Result<(Table, Changed), Refused>, SqlError> {
        let Takeover { db, context, table, .. } = self;
        let (txn, patience) = (&context.txn, context.patience());
        if !txn.with(|t| t.lock(&key::guard(table.id), LockWait::Skip))? {
            return Ok(Err(Refused::InUse));
        }
        let ending = Ending::new(db);
        *gate = Some(Gate { db: Arc::clone(db), table: table.id, passed: false });
        let closed = match self.close_gate() {
            Err(e) if SqlError::retry(&e) => None,
            closed => closed?,
        };
        let Some(closed) = closed else { return Ok(Err(Refused::InUse)) };
        // Whoever writes by the version from now on holds it, or has said so, or sees what is said here.
        if !self.is_unused(Some(&ending))
            || !txn.with(|t| t.lock_as(&version_of(table), LockMode::Update, LockWait::Skip))?
        {
            return Ok(Err(Refused::InUse));
        }
        drop(ending);
        // The lock on the record moves the snapshot above the gate. Past the most that a transaction may hold it does not, and none of these is held (nor can it where what was read has changed).
        if !txn.with(|t| t.lock(&self.record(), LockWait::Skip))? || txn.with(|t| t.snapshot()) < closed {
            return Ok(Err(Refused::InUse));
        }
        let about = |_: &Snapshot| BTreeSet::from([key::guard(table.id), self.record()]);
        let change = Change::begin(txn, db.kv.as_ref(), &db.catalog, &patience, self.own, &about)?;
        let now = change.snapshot().table(table.id).filter(|now| now.version == table.version).cloned();
        let Some(now) = now else { return Ok(Err(Refused::InUse)) };
        if !self.is_empty()? {
            return Ok(Err(Refused::HasRows));
        }
        match self.own_rows()? {
            Some(rows) => self.renew(change, now, rows, load).map(Ok),
            None => Ok(Err(Refused::HasRows)),
        }
    }

    /// Moves what was written below fresh ids, and changes the descriptor.
    fn renew(
        &self,
        mut change: Change<'_>,
        mut table: Table,
        rows: Entries,
        load: &mut Option<Loader>,
    ) -> Result<(Table, Changed), SqlError> {
        let (db, patience) = (self.db, self.context.patience());
        let mut ids = Vec::with_capacity(1 + table.indexes.len());
        for index in std::iter::once(&mut table.primary).chain(&mut table.indexes) {
            let fresh = db.oids.next(db.kv.as_ref(), &patience)?;
            ids.push((std::mem::replace(&mut index.id, fresh), fresh));
        }
        let loader = load.insert(Loader::of_table(&table, patience));
        let mut put = |fresh: Oid, entries: Entries| {
            entries.into_iter().try_for_each(|(row, value)| loader.put(db, below(fresh, &row), value))
        };
        let mut rows = Some(rows);
        for (old, fresh) in &ids {
            match rows.take() {
                Some(rows) => put(*fresh, rows)?,
                None => self.written(*old, &mut |entries| put(*fresh, entries))?,
            }
        }
        self.context.txn.with(|t| t.rollback_to(self.mark));
        self.rely_on_emptiness()?;
        for (old, _) in &ids {
            change.discard_index(*old)?;
        }
        change.put_relation(Relation::Table(table.clone()))?;
        let changed = change.finish();
        let table = changed.snapshot.table(table.id).cloned().unwrap_or(table);
        Ok((table, changed))
    }

    fn record(&self) -> Bytes {
        Bytes::copy_from_slice(&key::object(key::RELATIONS, self.table.id))
    }

    /// Whether nobody has the table to change it, its own transaction included: looked at from another one.
    fn is_unchanged(&self) -> Result<bool, SqlError> {
        let mut txn = self.context.patience().begin(self.db.kv.as_ref(), Isolation::RepeatableRead)?;
        let free = txn.lock(&key::guard(self.table.id), LockWait::Skip)? && txn.lock(&self.record(), LockWait::Skip)?;
        txn.rollback();
        Ok(free)
    }

    /// Closes the gate, in a transaction of its own: when it has committed. `None`: somebody changes the table, or has.
    fn close_gate(&self) -> Result<Option<Timestamp>, SqlError> {
        let (db, patience) = (self.db, self.context.patience());
        let kv = db.kv.as_ref();
        let txn = TxnRef::new(patience.begin(kv, Isolation::Serializable)?);
        if !txn.with(|t| t.lock(&self.record(), LockWait::Skip))? {
            return Ok(None);
        }
        let about = |_: &Snapshot| BTreeSet::from([self.record()]);
        let mut change = Change::begin(&txn, kv, &db.catalog, &patience, &Overlay::default(), &about)?;
        let now = change.snapshot().table(self.table.id).filter(|now| now.version == self.table.version).cloned();
        let Some(now) = now else { return Ok(None) };
        change.restate_table(Table { gated: true, maker: kv.node(), ..now })?;
        let own = change.finish().own;
        change::commit(&txn, kv, &db.catalog, &patience, &own).map(|committed| Some(committed.timestamp))
    }

    /// Whether nobody else's transaction writes by the table's version, as far as sessions tell; nobody begins to, where an end of it is said.
    fn is_unused(&self, ending: Option<&Ending>) -> bool {
        let tokens = [version_of(self.table), version_before(self.table)];
        let (db, own, patience) = (self.db, &self.context.backend, self.context.patience());
        Users { db, own, tokens: &tokens, patience, holds: Holds::Nothing, ending }.find().is_empty()
    }

    /// Whether nothing is committed there now.
    fn is_empty(&self) -> Result<bool, SqlError> {
        let mut txn = self.context.patience().begin(self.db.kv.as_ref(), Isolation::RepeatableRead)?;
        let mut empty = true;
        self.pieces(self.table.primary.id, 1, &mut |request| {
            let chunk = txn.peek_scan(request)?;
            empty &= chunk.rows.is_empty();
            Ok(chunk.rest.filter(|_| empty))
        })?;
        txn.rollback();
        Ok(empty)
    }

    /// Invariant 1. What the statement has written is gone.
    fn rely_on_emptiness(&self) -> Result<(), SqlError> {
        self.pieces(self.table.primary.id, 1, &mut |request| {
            let chunk = self.context.txn.with(|t| t.scan_certified(request))?;
            match chunk.rows.is_empty() {
                true => Ok(chunk.rest),
                false => Err(KvError::Restart { reason: "the table was not empty".into(), key: None }.into()),
            }
        })
    }

    /// The rows that the transaction has written to the table, if they are the statement's (invariant 3).
    fn own_rows(&self) -> Result<Option<Entries>, SqlError> {
        let mut all = Vec::new();
        self.written(self.table.primary.id, &mut |rows| {
            all.extend(rows);
            Ok(())
        })?;
        Ok((all.len() as u64 == self.rows).then_some(all))
    }

    /// What the transaction has written below an index id, in order.
    fn written(&self, index: Oid, take: &mut dyn FnMut(Entries) -> Result<(), SqlError>) -> Result<(), SqlError> {
        self.pieces(index, MOVED_ROWS, &mut |request| {
            let chunk = self.context.txn.with(|t| t.peek_scan(request))?;
            take(chunk.rows)?;
            Ok(chunk.rest)
        })
    }

    /// Reads an index, or as much of it as is asked for.
    fn pieces(
        &self,
        index: Oid,
        limit: usize,
        read: &mut dyn FnMut(&ScanRequest) -> Result<Option<Span>, SqlError>,
    ) -> Result<(), SqlError> {
        let mut left = Some(index_span(index));
        while let Some(span) = left {
            self.context.check()?;
            left = read(&ScanRequest { span, reverse: false, limit })?;
        }
        Ok(())
    }
}

/// The same key below another index id.
pub(super) fn below(index: Oid, key: &[u8]) -> Bytes {
    [&index.to_be_bytes(), &key[PREFIX_BYTES..]].concat().into()
}

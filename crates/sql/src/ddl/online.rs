//! CREATE INDEX while its table is written; and ADD UNIQUE, CHECK and NOT NULL.
//!
//! Problem: an index over a large table takes seconds to make, and one transaction that reads all rows certified is refused by the first of them that
//! changes. Idea: writers help. The table goes through versions ([`crate::catalog::Change::step_table`]: two adjacent ones may be in use at once); of each one writers do a
//! little more, and nobody reads the index before it is whole. Decision 104.
//!
//! ```text
//! version   writers                                        meanwhile
//! v         know nothing of it
//! v + 1     mark the entries they would make and remove    once nobody uses v: all rows are read at one snapshot and loaded
//! v + 2     maintain the index                             once nobody uses v + 1: for each mark the index is made as its row is
//! v + 3     as any other index; it is read
//! ```
//!
//! 1. What is loaded is the entries of the rows at one snapshot, which lies above all commits of writers that did not mark. Whatever those who marked changed since is
//!    marked; whatever those who maintain change is so in the index.
//! 2. Nobody but the load touches what lies below the index's id before the load's end: so it may go past the log ([`super::load`]).
//! 3. An entry of an index that is not whole may be stale: it counts only if its row still has it ([`crate::exec::building`]).
//! 4. A mark is looked at with its row locked and certified, and says only that something may have to be done.
//! 5. A version is ended for certain (its token is written) before what must not meet its users begins. That is waited for first, so that
//!    users need not hear of it. What is read afterwards is read at or above that end, by whatever clock (decision 153).
//! 6. Whatever ends the statement, and the process: what nobody makes any more is taken back ([`super::orphans`]), and no writer hears of that. Nobody has read it. A statement whose work was taken back
//!    finds that in its next step, and begins anew.
//! 7. A first step ends the version before the present one. That may be in use: behind another change in steps, or one that was taken back. So its users are waited for before anything is announced.
//!
//! Caveats: it waits for open blocks that have written to the table, as CREATE INDEX CONCURRENTLY of PostgreSQL does. Inside a block, or of a
//! table that has other changes made in one statement, an index is made by one transaction. ADD FOREIGN KEY is not done so; columns are by [`super::filling`]. Marks of hot rows are as many as their changed entries.

use super::about;
use super::constraint::{all_nullable, contains_nulls, violated};
use super::load::{Loader, SMALL_ROWS_MAX};
use super::orphans::{Made, last_patience, take_back};
use super::rows::duplicate;
use super::run::{Run, undefined};
use super::users::{Ending, Holds, Users};
use crate::catalog::reliance::{version_before, version_of};
use crate::catalog::view::View;
use crate::catalog::{Building, Check, Named, Oid, Overlay, Snapshot, Table, change, key};
use crate::context::StatementContext;
use crate::database::Database;
use crate::encoding::index_span;
use crate::exec::load::Duplicate;
use crate::exec::table::{BuildingAccess, PREFIX_BYTES, TableAccess};
use crate::exec::target::Target;
use crate::identifier::quote_identifier;
use crate::progress::{IndexPhase, IndexProgress};
use crate::syntax::{
    AlterAction, ColumnChange, CreateIndex, Ddl, Name, ObjectKind, TableConstraint, TableConstraintKind,
};
use crate::transaction::{BeginOptions, Isolation, LockWait, Patience, ScanRequest, Sweeper, Transaction, TxnRef};
use crate::types::Value;
use crate::{Attempt, KvError, SqlError, SqlState};
use bytes::Bytes;
use clock::Timestamp;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often a step is tried.
pub(super) const STEP_ATTEMPTS_MAX: usize = 64;
/// Rows read at once.
pub(super) const CHUNK_ROWS: usize = 4096;
/// Marks looked at in one transaction; where it is refused, one by one.
const MARKS_MAX: usize = 256;

/// One index under way.
pub(super) struct Online<'a> {
    pub(super) db: &'a Database,
    pub(super) database: &'a Arc<crate::catalog::Database>,
    pub(super) context: &'a Arc<StatementContext>,
    pub(super) options: BeginOptions,
    pub(super) table: Oid,
    /// When the last step was committed.
    committed: Cell<Timestamp>,
    /// What it has announced, once it has.
    pub(super) made: RefCell<Option<Made>>,
}

/// What the client of a statement is told that has run by transactions of its own, and when the last of them was committed: what it reads next lies at or above that.
pub type Ended = (Vec<SqlError>, Timestamp);

/// What is made in this process: maintenance leaves it alone until this is gone, whatever ends it.
pub(super) struct Underway<'a> {
    db: &'a Database,
    id: Option<Oid>,
}

impl<'a> Underway<'a> {
    pub(super) fn new(db: &'a Database, id: Option<Oid>) -> Underway<'a> {
        id.into_iter().for_each(|id| db.builds.begin(id));
        Underway { db, id }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.db.loads.end(id);
            self.db.builds.end(id);
        }
    }
}

/// What was announced.
struct Announced {
    index: Oid,
    /// The version of the table before.
    before: Table,
}

/// Whether a table is so large that its index is better made beside writers than in one transaction.
///
/// # Errors
/// Those of the transaction.
pub fn is_large(txn: &mut dyn Transaction, table: &Table) -> Result<bool, SqlError> {
    let request = ScanRequest { span: index_span(table.primary.id), reverse: false, limit: SMALL_ROWS_MAX + 1 };
    Ok(txn.peek_scan(&request)?.rows.len() > SMALL_ROWS_MAX)
}

/// What is made.
#[derive(Clone, Copy)]
pub enum Making<'a> {
    /// CREATE INDEX
    Index(&'a CreateIndex),
    /// ALTER TABLE .. ADD UNIQUE
    Unique(&'a Name, &'a TableConstraint, &'a [String]),
}

impl Making<'_> {
    fn table(&self) -> &Name {
        match self {
            Making::Index(create) => &create.table,
            Making::Unique(table, ..) => table,
        }
    }
}

/// Whether an action, of a table and alone, is one that [`add_condition_online`] does.
pub fn adds_condition(table: &Table, action: &AlterAction) -> bool {
    match action {
        AlterAction::AddConstraint { constraint, not_valid } => {
            !not_valid && matches!(constraint.kind, TableConstraintKind::Check(_))
        }
        AlterAction::AlterColumn { name, change: ColumnChange::SetNotNull } => {
            table.columns.iter().any(|c| c.name == *name && c.nullable && c.generated.is_none())
        }
        _ => false,
    }
}

impl Run<'_> {
    /// What an action asks of each row.
    fn condition(&self, table: &Table, action: &AlterAction) -> Result<Check, SqlError> {
        match action {
            AlterAction::AddConstraint {
                constraint: TableConstraint { name, kind: TableConstraintKind::Check(text), .. },
                ..
            } => self.check_constraint(table, name.as_deref(), text),
            AlterAction::AlterColumn { name, .. } => {
                let expression = format!("{} IS NOT NULL", quote_identifier(name));
                Ok(Check { name: name.clone(), expression, not_valid: false })
            }
            _ => Err(lost("the constraint")),
        }
    }
}

/// Makes an index by transactions of its own, begun with these options.
///
/// # Errors
/// PostgreSQL's for the statement; 23505 if rows share a key; what ended its waits.
pub fn create_index_online(
    db: &Database,
    database: &Arc<crate::catalog::Database>,
    context: &Arc<StatementContext>,
    options: BeginOptions,
    making: Making<'_>,
) -> Result<Ended, SqlError> {
    let mut online = Online::new(db, database, context, options);
    let mut guard = online.hold_table(making.table())?;
    let mut index = Underway::new(db, None);
    let announced = online.clear().and_then(|()| online.announce(making, &mut index));
    let result = announced.and_then(|(announced, notices)| {
        if let Some(announced) = announced {
            online.build(&announced)?;
        }
        Ok(notices)
    });
    online.leave(result.is_err());
    drop(index);
    guard.rollback();
    result.map(|notices| online.ended(notices))
}

impl<'a> Online<'a> {
    pub(super) fn new(
        db: &'a Database,
        database: &'a Arc<crate::catalog::Database>,
        context: &'a Arc<StatementContext>,
        options: BeginOptions,
    ) -> Online<'a> {
        Online { db, database, context, options, table: 0, committed: Cell::default(), made: RefCell::default() }
    }

    /// Nothing more is to be done. Gives `notices`, and what goes with them.
    pub(super) fn ended(&self, notices: Vec<SqlError>) -> Ended {
        (notices, self.committed.get())
    }

    pub(super) fn patience(&self) -> Patience {
        self.context.patience()
    }

    pub(super) fn begin(&self, isolation: Isolation) -> Result<Box<dyn Transaction>, KvError> {
        self.db.kv.begin(&BeginOptions { isolation, ..self.options.clone() })
    }

    /// A transaction that reads what is committed now, at or above `end`, and keeps it readable. (The session's consistency may be one whose snapshots lie
    /// where its clock says.)
    pub(super) fn begin_after(&self, end: Timestamp) -> Result<Box<dyn Transaction>, KvError> {
        let at = self.begin(Isolation::RepeatableRead)?.snapshot().max(end);
        self.db.kv.begin(&BeginOptions { as_of: Some(at), read_only: true, ..self.options.clone() })
    }

    pub(super) fn catalog_now(&self) -> Result<Arc<Snapshot>, SqlError> {
        let mut txn = self.begin(Isolation::RepeatableRead)?;
        self.db.catalog.current(self.db.kv.as_ref(), &self.patience(), txn.as_mut(), None)
    }

    /// The table, which has what was announced.
    pub(super) fn table_now(&self) -> Result<Table, SqlError> {
        let table = self.catalog_now()?.table(self.table).cloned();
        table.filter(|table| self.has_made(table)).ok_or_else(taken_back)
    }

    /// Whether what was announced, if anything was, is in the table still.
    fn has_made(&self, table: &Table) -> bool {
        !self.db.options.looks_for_its_own || self.made.borrow().as_ref().is_none_or(|made| made.is_of(table))
    }

    /// Nothing of another change is left, and nobody writes by the version before the present one, which the first step ends. The table is held.
    pub(super) fn clear(&self) -> Result<(), SqlError> {
        let table = self.table_now()?;
        if table.is_unfinished() {
            take_back(self.db, &self.patience(), self.table, &|_| true)?;
        }
        let before = version_before(&table);
        self.wait_for_users(std::slice::from_ref(&before), STEP_ATTEMPTS_MAX).map(drop)
    }

    /// The statement has ended: so what it has announced is nobody's, if it `failed`.
    pub(super) fn leave(&self, failed: bool) {
        if let Some(made) = self.made.borrow().as_ref().filter(|_| failed) {
            // If even that fails, maintenance does it.
            let _ = take_back(self.db, &last_patience(self.db), self.table, &|table| made.is_of(table));
        }
    }

    /// Waits for other changes of the table, and keeps them away.
    pub(super) fn hold_table(&mut self, name: &Name) -> Result<Box<dyn Transaction>, SqlError> {
        self.hold_tables(name, &[]).map(|(guard, _)| guard)
    }

    /// The same of a table and others, if those are there. Gives which they are.
    pub(super) fn hold_tables(
        &mut self,
        name: &Name,
        others: &[&Name],
    ) -> Result<(Box<dyn Transaction>, BTreeSet<Oid>), SqlError> {
        let mut guard = self.begin(Isolation::RepeatableRead)?;
        let mut held = BTreeSet::new();
        for _ in 0..STEP_ATTEMPTS_MAX {
            let view = View::new(self.catalog_now()?, self.database.clone(), &self.context.settings.search_path);
            let named = |name: &Name| match view.named(name.schema.as_deref(), &name.name) {
                Some(Named::Relation(id)) => view.snapshot().table(id).map(|table| table.id),
                _ => None,
            };
            let Some(id) = named(name) else {
                return Err(undefined(ObjectKind::Table, name));
            };
            let all: BTreeSet<Oid> = others.iter().filter_map(|name| named(name)).chain([id]).collect();
            if all.is_subset(&held) {
                self.table = id;
                return Ok((guard, all));
            }
            for id in all {
                if held.insert(id) {
                    guard.lock(&key::guard(id), LockWait::Wait)?;
                }
            }
        }
        Err(lost("the name of the table"))
    }

    /// The same of the table that has this id, if it is there.
    pub(super) fn hold_by_id(&mut self, id: Oid) -> Result<Option<Box<dyn Transaction>>, SqlError> {
        let mut guard = self.begin(Isolation::RepeatableRead)?;
        guard.lock(&key::guard(id), LockWait::Wait)?;
        self.table = id;
        Ok(self.catalog_now()?.table(id).is_some().then_some(guard))
    }

    /// One change of the catalog in a transaction of its own.
    pub(super) fn step<R>(
        &self,
        about: &dyn Fn(&Snapshot) -> BTreeSet<Bytes>,
        make: &mut dyn FnMut(&mut Run<'_>) -> Result<R, SqlError>,
    ) -> Result<(R, Vec<SqlError>), SqlError> {
        self.step_at(Isolation::Serializable, STEP_ATTEMPTS_MAX, about, make)
    }

    /// The same at this isolation, tried so often.
    pub(super) fn step_at<R>(
        &self,
        isolation: Isolation,
        attempts_max: usize,
        about: &dyn Fn(&Snapshot) -> BTreeSet<Bytes>,
        make: &mut dyn FnMut(&mut Run<'_>) -> Result<R, SqlError>,
    ) -> Result<(R, Vec<SqlError>), SqlError> {
        let (kv, patience) = (self.db.kv.as_ref(), self.patience());
        let mut attempt = || {
            let txn = TxnRef::new(self.begin(isolation)?);
            let mut statement = StatementContext::clone(self.context);
            statement.txn = txn.clone();
            let mut run = Run::begin_about(self.db, self.database, Arc::new(statement), &Overlay::default(), about)?;
            let made = make(&mut run)?;
            let done = run.finish(String::new());
            if let Some(changed) = &done.changed {
                let committed = change::commit(&txn, kv, &self.db.catalog, &patience, &changed.own)?;
                self.committed.set(committed.timestamp.max(self.committed.get()));
            }
            Ok((made, done.notices))
        };
        let mut attempt = || {
            let result = attempt();
            // It has ended: nobody waits for it behind the next ones.
            self.context.backend.relied.clear();
            result
        };
        let mut result = attempt();
        for _ in 1..attempts_max {
            match &result {
                Err(e) if SqlError::retry(e) => result = attempt(),
                _ => break,
            }
        }
        result
    }

    /// A step of the table itself, which has what was announced.
    pub(super) fn step_table(
        &self,
        make: &mut dyn FnMut(&mut Run<'_>, Table) -> Result<(), SqlError>,
    ) -> Result<Vec<SqlError>, SqlError> {
        let record = Bytes::copy_from_slice(&key::object(key::RELATIONS, self.table));
        let about = |_: &Snapshot| BTreeSet::from([record.clone()]);
        let mut step = |run: &mut Run<'_>| {
            let table = run.catalog().table(self.table).cloned().filter(|table| self.has_made(table));
            table.map(|table| make(run, table)).transpose()
        };
        match self.step(&about, &mut step)? {
            (Some(()), notices) => Ok(notices),
            (None, _) => Err(taken_back()),
        }
    }

    /// Version `v + 1`. `None`: the index is there already.
    fn announce(
        &self,
        making: Making<'_>,
        underway: &mut Underway<'a>,
    ) -> Result<(Option<Announced>, Vec<SqlError>), SqlError> {
        let path = &self.context.settings.search_path;
        let name = making.table().clone();
        let ddl = match making {
            Making::Index(create) => Ddl::CreateIndex(create.clone()),
            Making::Unique(..) => Ddl::AlterTable { name, if_exists: false, actions: Vec::new() },
        };
        let guard = key::guard(self.table);
        let about = |catalog: &Snapshot| {
            let mut keys = about::keys(&ddl, catalog, self.database.id, path);
            keys.remove(&guard);
            keys
        };
        self.step(&about, &mut |run: &mut Run<'_>| {
            let table = run.table_named(making.table())?;
            let schema = run.catalog().schema_by_id(table.schema).cloned().ok_or_else(|| lost("the table's schema"))?;
            if let Making::Index(CreateIndex { name: Some(name), if_not_exists, .. }) = making
                && run.taken(&schema, name, *if_not_exists)?
            {
                return Ok(None);
            }
            for index in table.building.iter().flat_map(|left| [left.index.id, left.marks]) {
                run.touch().leave_index(index, &table)?;
            }
            let mut with = Table { building: None, ..table.clone() };
            match making {
                Making::Index(create) => run.add_empty_index(&schema, &mut with, create)?,
                Making::Unique(_, constraint, columns) => {
                    let index = run.unique_key(with.schema, &with, constraint, columns)?;
                    with.indexes.push(index);
                }
            }
            run.check_kept(&with)?;
            let made = with.indexes.pop().ok_or_else(|| lost("the index"))?;
            let (id, marks) = (made.id, run.new_oid()?);
            // Before it can be seen: whoever looks for orphans finds it here.
            *underway = Underway::new(self.db, Some(id));
            *self.made.borrow_mut() = Some(Made::Index(id));
            with.building = Some(Building { index: made, marks, maintained: false });
            with.maker = self.db.kv.node();
            // Writers must be able to go by it.
            TableAccess::new(&with)?;
            run.touch().step_table(with)?;
            Ok(Some(Announced { index: id, before: table }))
        })
    }

    fn build(&self, announced: &Announced) -> Result<(), SqlError> {
        let progress = self.context.backend.progress.show_index(self.table, announced.index);
        progress.task.enter(IndexPhase::WaitingBefore, 0);
        let end = self.end_version(&announced.before)?;
        progress.task.enter(IndexPhase::Scanning, 0);
        let loader = self.load(end, &progress.task)?;
        let marking = self.table_now()?;
        self.step_table(&mut |run, mut table| {
            let building = table.building.as_mut().ok_or_else(|| lost("the index"))?;
            loader.join(self.db, &run.statement.txn)?;
            building.maintained = true;
            run.touch().step_table(table)
        })?;
        progress.task.enter(IndexPhase::WaitingAfter, 0);
        let end = self.end_version(&marking)?;
        progress.task.enter(IndexPhase::CatchingUp, 0);
        self.catch_up(end, &progress.task)?;
        self.step_table(&mut |run, mut table| {
            let building = table.building.take().ok_or_else(|| lost("the index"))?;
            run.touch().discard_index(building.marks)?;
            table.indexes.push(building.index);
            run.touch().step_table(table)
        })?;
        Ok(())
    }

    /// Waits for those who have written by tokens, of all nodes, as often as there are any. Who waits for this change meanwhile is not waited for: his commit is refused. Others are kept
    /// out as long as what it gives lives.
    pub(super) fn wait_for_users(&self, tokens: &[Bytes], rounds: usize) -> Result<Ending, SqlError> {
        let own = &self.context.backend;
        let mut last = Ending::new(self.db);
        for _ in 0..rounds {
            let ending = Ending::new(self.db);
            let (patience, holds) = (self.patience(), Holds::Locks);
            let users = Users { db: self.db, own, tokens, patience, holds, ending: Some(&ending) };
            let found = users.find();
            let waits = !found.is_empty();
            let ended = !waits || users.wait(found, &self.options.lock_timeout, &self.options.interrupt)?;
            last = ending;
            if !waits || !ended {
                break;
            }
        }
        Ok(last)
    }

    /// Waits until no session's open transaction has written by a version of the table, and ends it for certain (invariant 5): at the time that it gives.
    pub(super) fn end_version(&self, table: &Table) -> Result<Timestamp, SqlError> {
        let token = version_of(table);
        let _ending = self.wait_for_users(std::slice::from_ref(&token), STEP_ATTEMPTS_MAX)?;
        // Who was taken back meanwhile ends nothing that others rely on.
        self.table_now()?;
        let patience = self.patience();
        let mut txn = self.begin(Isolation::RepeatableRead)?;
        txn.overwrite(token, None)?;
        Ok(patience.commit_at(txn.as_mut())?)
    }

    /// Loads the entries of all rows as they are now, the version before having ended.
    fn load(&self, end: Timestamp, progress: &Arc<IndexProgress>) -> Result<Loader, SqlError> {
        let (access, building) = self.access()?;
        let index = &building.index;
        let reading = Sweeper::new(self.begin_after(end)?, access.primary.span(), CHUNK_ROWS);
        let mut loader = Loader::new([(index.id, index.unique)], self.patience()).watched(progress);
        let mut row = vec![Value::Null; access.columns.len()];
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for chunk in self.db.kv.sweep_aside(reading) {
            let chunk = chunk?;
            for (row_key, stored) in chunk.rows() {
                access.decode(stored, &index.slots, &mut row)?;
                let Some(guarded) = index.write_entry(&row, row_key, &mut key, &mut value)? else { continue };
                if guarded && loader.contains(self.db, &key)?.is_some() {
                    return Err(self.shared(&access, &building, &row));
                }
                loader.put_lent(self.db, &key, &value)?;
            }
            progress.done.add(chunk.places.len() as u64);
            self.context.check()?;
        }
        loader.settle(self.db, &mut |found: Duplicate<'_>| {
            let mut row = vec![Value::Null; access.columns.len()];
            let read = access.row_key_of_entry(found.key, found.value).and_then(|row_key| {
                let stored = self.begin_after(end)?.get(&row_key)?;
                stored.map_or(Ok(()), |stored| access.decode(&stored, &index.slots, &mut row))
            });
            read.map_or_else(|e| e, |()| self.shared(&access, &building, &row))
        })?;
        Ok(loader)
    }

    fn access(&self) -> Result<(TableAccess, BuildingAccess), SqlError> {
        let access = TableAccess::new(&self.table_now()?)?;
        let building = access.building.clone().ok_or_else(|| lost("the index"))?;
        Ok((access, building))
    }

    /// 23505
    fn shared(&self, access: &TableAccess, building: &BuildingAccess, row: &[Value]) -> SqlError {
        let (index, settings) = (&building.index, &self.context.settings);
        let error = SqlError::new(SqlState::UNIQUE_VIOLATION, "")
            .detail(format!("{} already exists.", index.key_text(access, row, settings)))
            .constraint(&access.table.name, &index.name);
        duplicate(error, &index.name)
    }

    /// Brings in what was marked. Nobody marks any more.
    fn catch_up(&self, end: Timestamp, progress: &IndexProgress) -> Result<(), SqlError> {
        let (access, building) = self.access()?;
        let mut marks = self.begin_after(end)?;
        let mut rest = Some(building.marks.span());
        while let Some(span) = rest {
            let chunk = marks.scan(&ScanRequest { span, reverse: false, limit: MARKS_MAX })?;
            match self.settle_marks(&access, &building, &chunk.rows) {
                Err(e) if is_conflict(&e) => {
                    for mark in chunk.rows.chunks(1) {
                        let mut result = self.settle_marks(&access, &building, mark);
                        for _ in 1..STEP_ATTEMPTS_MAX {
                            match &result {
                                Err(e) if is_conflict(e) => result = self.settle_marks(&access, &building, mark),
                                _ => break,
                            }
                        }
                        result?;
                    }
                }
                other => other?,
            }
            progress.done.add(chunk.rows.len() as u64);
            self.context.check()?;
            rest = chunk.rest;
        }
        Ok(())
    }

    /// For each mark: the row's entry is in the index, and what the mark stands for is not, if the row has it no more.
    fn settle_marks(
        &self,
        access: &TableAccess,
        building: &BuildingAccess,
        marks: &[(Bytes, Bytes)],
    ) -> Result<(), SqlError> {
        let mut txn = self.begin(Isolation::RepeatableRead)?;
        let txn = txn.as_mut();
        // Who has taken the index back has written here: nobody would collect what is put now.
        if txn.get_certified(&key::object(key::GARBAGE, building.index.id))?.is_some() {
            return Err(taken_back());
        }
        for (mark, value) in marks {
            let row_key = access.row_key_of_entry(mark, value)?;
            txn.lock(&row_key, LockWait::Wait)?;
            let now = building.entry_of(txn, access, &row_key)?;
            let (entry, row) = match now {
                Some((entry, row)) => (Some(entry), row),
                None => (None, Vec::new()),
            };
            for key in marked(building, mark, &row_key) {
                let is_now = entry.as_ref().is_some_and(|entry| entry.key == key);
                if let Some(found) = txn.get_certified(&key)?.filter(|_| !is_now)
                    && access.row_key_of_entry(&key, &found)? == row_key
                {
                    txn.delete(key)?;
                }
            }
            let Some(entry) = entry else { continue };
            match txn.get_certified(&entry.key)? {
                Some(found) if found == entry.value => continue,
                Some(_) if entry.guarded && building.holder(txn, access, &entry.key)?.is_some_and(|h| h != row_key) => {
                    return Err(self.shared(access, building, &row));
                }
                _ => txn.put(entry.key, entry.value)?,
            }
        }
        Ok(self.patience().commit(txn)?)
    }
}

/// The keys of the entries that a mark may stand for: where its key must be alone, and where one of its columns is NULL.
fn marked(building: &BuildingAccess, mark: &Bytes, row_key: &Bytes) -> Vec<Bytes> {
    let under = |end: usize| {
        let mut key = Vec::with_capacity(end);
        key.extend_from_slice(&building.index.id.to_be_bytes());
        key.extend_from_slice(mark.get(PREFIX_BYTES..end).unwrap_or_default());
        Bytes::from(key)
    };
    let tail = row_key.len().saturating_sub(PREFIX_BYTES);
    let mut keys = vec![under(mark.len())];
    if building.index.unique {
        keys.push(under(mark.len().saturating_sub(tail)));
    }
    keys
}

/// Adds a CHECK or NOT NULL by transactions of its own: writers keep it first, then the rows that were there are looked at, then it is shown.
///
/// # Errors
/// PostgreSQL's for the action; 23514, 23502 if a row violates it; what ended its waits.
pub fn add_condition_online(
    db: &Database,
    database: &Arc<crate::catalog::Database>,
    context: &Arc<StatementContext>,
    options: BeginOptions,
    name: &Name,
    action: &AlterAction,
) -> Result<Ended, SqlError> {
    let mut online = Online::new(db, database, context, options);
    let mut guard = online.hold_table(name)?;
    let underway = Underway::new(db, Some(online.table));
    let result = online.clear().and_then(|()| online.add_condition(action));
    online.leave(result.is_err());
    drop(underway);
    guard.rollback();
    result.map(|notices| online.ended(notices))
}

impl Online<'_> {
    fn add_condition(&self, action: &AlterAction) -> Result<Vec<SqlError>, SqlError> {
        let before = self.table_now()?;
        let mut announced = None;
        let step = self.step_table(&mut |run, table| {
            let pending = run.condition(&table, action)?;
            announced = Some(Made::Condition(pending.clone(), table.version + 1));
            let table = Table { pending: Some(pending), maker: self.db.kv.node(), ..table };
            // Writers must be able to go by it.
            Target::new(&table, &run.plan_context())?;
            run.touch().step_table(table)
        });
        // Also where it is not known whether that was committed.
        *self.made.borrow_mut() = announced;
        step?;
        let end = self.end_version(&before)?;
        self.look_at_rows(end, action)?;
        self.step_table(&mut |run, table| {
            run.holds = true;
            run.alter(Table { pending: None, ..table }, action)
        })
    }

    /// Whether what writers keep by now holds for the rows of one snapshot, too. One that does not may have changed meanwhile.
    fn look_at_rows(&self, end: Timestamp, action: &AlterAction) -> Result<(), SqlError> {
        let table = self.table_now()?;
        let pending = table.pending.clone().ok_or_else(|| lost("the constraint"))?;
        let only = Table { checks: vec![pending.clone()], ..all_nullable(&table) };
        let target =
            self.step(&|_| BTreeSet::new(), &mut |run: &mut Run<'_>| Target::new(&only, &run.plan_context()))?;
        let (access, all) = (&target.0.access, (0..only.columns.len()).collect::<Vec<_>>());
        let mut row = vec![Value::Null; all.len()];
        let reading = Sweeper::new(self.begin_after(end)?, access.primary.span(), CHUNK_ROWS);
        for chunk in self.db.kv.sweep_aside(reading) {
            let chunk = chunk?;
            for (row_key, stored) in chunk.rows() {
                access.decode(stored, &all, &mut row)?;
                if target.0.check(&row, None, self.context).attempted()?.is_some() {
                    continue;
                }
                if let Some(now) = self.begin(Isolation::RepeatableRead)?.get(row_key)? {
                    access.decode(&now, &all, &mut row)?;
                    target.0.check(&row, None, self.context).map_err(|e| match action {
                        AlterAction::AlterColumn { name, .. } => contains_nulls(&table, name),
                        _ => violated(e, &table, &pending),
                    })?;
                }
            }
            self.context.check()?;
        }
        Ok(())
    }
}

pub(super) fn is_conflict(e: &SqlError) -> bool {
    SqlError::retry(e) || e.state == SqlState(*b"40P01")
}

/// 40001: nothing is left of it, and it may begin anew.
fn taken_back() -> SqlError {
    let reason = "what it made of the table was taken back, as nobody seemed to make it any more".to_owned();
    KvError::Restart { reason, key: None }.into()
}

pub(super) fn lost(what: &str) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("{what} was lost while the table was changed"))
}

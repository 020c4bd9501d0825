//! CREATE INDEX while its table is written; and ADD UNIQUE, CHECK and NOT NULL.
//!
//! Problem: an index over a large table takes seconds to make, and one transaction that reads all rows certified is refused by the first of them that
//! changes. Idea: writers help. The table goes through versions ([`Change::step_table`]: two adjacent ones may be in use at once); of each one writers do a
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
//! 6. Whatever ends the statement, and the process: an index that nobody makes any more is taken back ([`undo_orphans`]). Nobody has read it.
//!
//! Caveats: it waits for open blocks that have written to the table, as CREATE INDEX CONCURRENTLY of PostgreSQL does. Inside a block, or of a
//! table that has other changes made in one statement, an index is made by one transaction. ADD FOREIGN KEY and changes of types are not done so. Marks of hot rows are as many as their changed entries.

use super::about;
use super::constraint::{all_nullable, contains_nulls, violated};
use super::load::{Loader, SMALL_ROWS_MAX};
use super::rows::duplicate;
use super::run::{Run, undefined};
use super::users::{Ending, Holds, Users};
use crate::catalog::reliance::version_of;
use crate::catalog::view::View;
use crate::catalog::{Building, Change, Check, Named, Oid, Overlay, Relation, Snapshot, Table, change, key};
use crate::context::StatementContext;
use crate::database::Database;
use crate::encoding::index_span;
use crate::exec::index::Entry;
use crate::exec::load::Duplicate;
use crate::exec::table::{BuildingAccess, PREFIX_BYTES, TableAccess};
use crate::exec::target::Target;
use crate::identifier::quote_identifier;
use crate::progress::{IndexPhase, IndexProgress};
use crate::syntax::{
    AlterAction, ColumnChange, CreateIndex, Ddl, Name, ObjectKind, TableConstraint, TableConstraintKind,
};
use crate::transaction::{BeginOptions, Isolation, LockWait, Patience, ScanRequest, Sweep, Transaction, TxnRef};
use crate::types::Value;
use crate::{Attempt, KvError, SqlError, SqlState};
use bytes::Bytes;
use clock::Timestamp;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How often a step is tried.
const STEP_ATTEMPTS_MAX: usize = 64;
/// How long what a statement has begun is tried to be taken back when it ends, microseconds; then maintenance does it.
const LAST_US_MAX: i64 = 5_000_000;
/// Rows read at once.
const CHUNK_ROWS: usize = 4096;
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
                Ok(Check { name: name.clone(), expression: format!("{} IS NOT NULL", quote_identifier(name)) })
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
    let result = online.announce(making, &mut index).and_then(|(announced, notices)| {
        if let Some(announced) = announced {
            online.build(&announced)?;
        }
        Ok(notices)
    });
    if let (Some(index), Err(_)) = (index.id, &result) {
        // If even that fails, maintenance does it.
        let _ = undo(db, &last_patience(db), online.table, index);
    }
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
        Online { db, database, context, options, table: 0, committed: Cell::default() }
    }

    /// Nothing more is to be done. Gives `notices`, and what goes with them.
    pub(super) fn ended(&self, notices: Vec<SqlError>) -> Ended {
        (notices, self.committed.get())
    }

    fn patience(&self) -> Patience {
        self.context.patience()
    }

    fn begin(&self, isolation: Isolation) -> Result<Box<dyn Transaction>, KvError> {
        self.db.kv.begin(&BeginOptions { isolation, ..self.options.clone() })
    }

    /// A transaction that reads what is committed now, at or above `end`, and keeps it readable. (The session's consistency may be one whose snapshots lie
    /// where its clock says.)
    fn begin_after(&self, end: Timestamp) -> Result<Box<dyn Transaction>, KvError> {
        let at = self.begin(Isolation::RepeatableRead)?.snapshot().max(end);
        self.db.kv.begin(&BeginOptions { as_of: Some(at), read_only: true, ..self.options.clone() })
    }

    pub(super) fn catalog_now(&self) -> Result<Arc<Snapshot>, SqlError> {
        let mut txn = self.begin(Isolation::RepeatableRead)?;
        self.db.catalog.current(self.db.kv.as_ref(), &self.patience(), txn.as_mut(), None)
    }

    fn table_now(&self) -> Result<Table, SqlError> {
        self.catalog_now()?.table(self.table).cloned().ok_or_else(|| lost("the table"))
    }

    /// Waits for other changes of the table, and keeps them away.
    fn hold_table(&mut self, name: &Name) -> Result<Box<dyn Transaction>, SqlError> {
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

    /// One change of the catalog in a transaction of its own.
    pub(super) fn step<R>(
        &self,
        about: &dyn Fn(&Snapshot) -> BTreeSet<Bytes>,
        make: &mut dyn FnMut(&mut Run<'_>) -> Result<R, SqlError>,
    ) -> Result<(R, Vec<SqlError>), SqlError> {
        let (kv, patience) = (self.db.kv.as_ref(), self.patience());
        let mut attempt = || {
            let txn = TxnRef::new(self.begin(Isolation::Serializable)?);
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
        for _ in 1..STEP_ATTEMPTS_MAX {
            match &result {
                Err(e) if SqlError::retry(e) => result = attempt(),
                _ => break,
            }
        }
        result
    }

    /// A step of the table itself.
    fn step_table(&self, make: &mut dyn FnMut(&mut Run<'_>, Table) -> Result<Table, SqlError>) -> Result<(), SqlError> {
        let record = Bytes::copy_from_slice(&key::object(key::RELATIONS, self.table));
        let about = |_: &Snapshot| BTreeSet::from([record.clone()]);
        let mut step = |run: &mut Run<'_>| {
            let table = run.table(self.table)?;
            let table = make(run, table)?;
            run.touch().step_table(table)
        };
        self.step(&about, &mut step).map(drop)
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
            if let Some(left) = &table.building {
                run.touch().discard_index(left.index.id)?;
                run.touch().discard_index(left.marks)?;
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
            Ok(table)
        })?;
        progress.task.enter(IndexPhase::WaitingAfter, 0);
        let end = self.end_version(&marking)?;
        progress.task.enter(IndexPhase::CatchingUp, 0);
        self.catch_up(end, &progress.task)?;
        self.step_table(&mut |run, mut table| {
            let building = table.building.take().ok_or_else(|| lost("the index"))?;
            run.touch().discard_index(building.marks)?;
            table.indexes.push(building.index);
            Ok(table)
        })
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
        let patience = self.patience();
        let mut txn = self.begin(Isolation::RepeatableRead)?;
        txn.overwrite(token, None)?;
        Ok(patience.commit_at(txn.as_mut())?)
    }

    /// Loads the entries of all rows as they are now, the version before having ended.
    fn load(&self, end: Timestamp, progress: &Arc<IndexProgress>) -> Result<Loader, SqlError> {
        let (access, building) = self.access()?;
        let index = &building.index;
        let mut rows = self.begin_after(end)?;
        let mut loader = Loader::new([(index.id, index.unique)], self.patience()).watched(progress);
        let mut rest = Some(access.primary.span());
        let mut row = vec![Value::Null; access.columns.len()];
        while let Some(span) = rest {
            let chunk = Sweep::of(rows.as_mut(), span, CHUNK_ROWS, false)?;
            for (row_key, stored) in chunk.rows() {
                access.decode(stored, &index.slots, &mut row)?;
                progress.done.add(1);
                let Some(Entry { key, value, guarded }) = index.entry(&row, row_key)? else { continue };
                if guarded && loader.contains(self.db, &key)?.is_some() {
                    return Err(self.shared(&access, &building, &row));
                }
                loader.put(self.db, key, value)?;
            }
            self.context.check()?;
            rest = chunk.rest;
        }
        loader.settle(self.db, &mut |found: Duplicate<'_>| {
            let mut row = vec![Value::Null; access.columns.len()];
            let read = access.row_key_of_entry(found.key, found.value).and_then(|row_key| {
                let stored = rows.get(&row_key)?;
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
    let result = online.add_condition(action);
    if result.is_err() {
        // If even that fails, maintenance does it.
        let _ = undo_pending(db, &last_patience(db), online.table);
    }
    drop(underway);
    guard.rollback();
    result.map(|notices| online.ended(notices))
}

impl Online<'_> {
    fn add_condition(&self, action: &AlterAction) -> Result<Vec<SqlError>, SqlError> {
        let before = self.table_now()?;
        self.step_table(&mut |run, table| {
            let pending = run.condition(&table, action)?;
            let table = Table { pending: Some(pending), maker: self.db.kv.node(), ..table };
            // Writers must be able to go by it.
            Target::new(&table, &run.plan_context())?;
            Ok(table)
        })?;
        let end = self.end_version(&before)?;
        self.look_at_rows(end, action)?;
        let record = Bytes::copy_from_slice(&key::object(key::RELATIONS, self.table));
        let about = |_: &Snapshot| BTreeSet::from([record.clone()]);
        let mut show = |run: &mut Run<'_>| {
            run.holds = true;
            let table = run.table(self.table)?;
            run.alter(Table { pending: None, ..table }, action)
        };
        self.step(&about, &mut show).map(|((), notices)| notices)
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
        let mut rows = self.begin_after(end)?;
        let mut rest = Some(access.primary.span());
        while let Some(span) = rest {
            let chunk = Sweep::of(rows.as_mut(), span, CHUNK_ROWS, false)?;
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
            rest = chunk.rest;
        }
        Ok(())
    }
}

fn is_conflict(e: &SqlError) -> bool {
    SqlError::retry(e) || e.state == SqlState(*b"40P01")
}

pub(super) fn lost(what: &str) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("{what} was lost while the table was changed"))
}

/// So long is waited for what a statement leaves to be taken back when it ends; what ended it may be that nobody answers.
pub(super) fn last_patience(db: &Database) -> Patience {
    let patience = Patience::default();
    patience.deadline.set(db.kv.monotonic_us().saturating_add(LAST_US_MAX));
    patience
}

/// Takes an index back that is not made any more.
fn undo(db: &Database, patience: &Patience, table: Oid, index: Oid) -> Result<(), SqlError> {
    undo_step(db, patience, table, &|change, table| {
        let Some(building) = table.building.clone().filter(|building| building.index.id == index) else {
            return Ok(None);
        };
        change.discard_index(building.index.id)?;
        change.discard_index(building.marks)?;
        // Who writes there still would leave what nobody collects.
        change.end_version(&table)?;
        Ok(Some(Table { building: None, ..table }))
    })
}

/// The same of a condition.
fn undo_pending(db: &Database, patience: &Patience, table: Oid) -> Result<(), SqlError> {
    undo_step(db, patience, table, &|_, table| Ok(table.pending.is_some().then_some(Table { pending: None, ..table })))
}

/// `make` gives the table as it is to be; `None`: there is nothing to do.
fn undo_step(
    db: &Database,
    patience: &Patience,
    table: Oid,
    make: &dyn Fn(&mut Change<'_>, Table) -> Result<Option<Table>, SqlError>,
) -> Result<(), SqlError> {
    undo_with(db, patience, table, &|change, table| match make(change, table)? {
        Some(table) => change.step_table(table),
        None => Ok(()),
    })
}

/// `make` changes the table, or does nothing.
fn undo_with(
    db: &Database,
    patience: &Patience,
    table: Oid,
    make: &dyn Fn(&mut Change<'_>, Table) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    let kv = db.kv.as_ref();
    let attempt = || {
        let txn = TxnRef::new(patience.begin(kv, Isolation::Serializable)?);
        let record = Bytes::copy_from_slice(&key::object(key::RELATIONS, table));
        let about = |_: &Snapshot| BTreeSet::from([record.clone()]);
        let mut change = Change::begin(&txn, kv, &db.catalog, patience, &Overlay::default(), &about)?;
        let Some(table) = change.snapshot().table(table).cloned() else { return Ok(()) };
        make(&mut change, table)?;
        match change.finish().own {
            own if own.is_empty() => Ok(()),
            own => change::commit(&txn, kv, &db.catalog, patience, &own).map(drop),
        }
    };
    let mut result = attempt();
    for _ in 1..STEP_ATTEMPTS_MAX {
        match &result {
            Err(e) if SqlError::retry(e) => result = attempt(),
            _ => break,
        }
    }
    result
}

/// Whoever writes to a table holds its version no more.
///
/// # Errors
/// Those of the layers below.
pub(super) fn open_gate(db: &Database, patience: &Patience, table: Oid) -> Result<(), SqlError> {
    let open = |change: &mut Change<'_>, table: Table| match table.gated {
        true => change.restate_table(Table { gated: false, ..table }),
        false => Ok(()),
    };
    undo_with(db, patience, table, &open)
}

/// Opens a gate that nobody is behind: whoever is holds the table, at whatever node. Its own may never come back.
fn open_left(db: &Database, patience: &Patience, table: Oid) -> Result<(), SqlError> {
    let mut guard = patience.begin(db.kv.as_ref(), Isolation::RepeatableRead)?;
    match guard.lock(&key::guard(table), LockWait::Skip)? {
        true => open_gate(db, patience, table),
        false => Ok(()),
    }
}

/// Takes back the indexes and conditions of this node that nobody in this process makes, since their process has ended, those of nodes that have left for good, and gates that nobody is behind.
///
/// # Errors
/// Those of the layers below.
pub fn undo_orphans(db: &Database, patience: &Patience) -> Result<(), SqlError> {
    let mut txn = patience.begin(db.kv.as_ref(), Isolation::RepeatableRead)?;
    let catalog = db.catalog.current(db.kv.as_ref(), patience, txn.as_mut(), None)?;
    drop(txn);
    for relation in catalog.all_relations() {
        // Those of other nodes are theirs: they may be at work.
        // 0: a process that ran alone on this store, and is over.
        let own = |maker: u32| maker == db.kv.node() || maker == 0 || db.kv.has_left(maker);
        if let Relation::Table(Table { id, building: Some(building), maker, .. }) = &**relation
            && own(*maker)
            && !db.builds.contains(building.index.id)
        {
            undo(db, patience, *id, building.index.id)?;
        }
        if let Relation::Table(Table { id, pending: Some(_), maker, .. }) = &**relation
            && own(*maker)
            && !db.builds.contains(*id)
        {
            undo_pending(db, patience, *id)?;
        }
        if let Relation::Table(Table { id, gated: true, .. }) = &**relation
            && !db.builds.contains(*id)
        {
            open_left(db, patience, *id)?;
        }
    }
    Ok(())
}

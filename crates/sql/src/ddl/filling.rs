//! A column gets its values while its table is written: ADD COLUMN whose value differs from row to row, and ALTER COLUMN .. TYPE with a conversion.
//!
//! # Problem
//! Both need a value in each row. Behind a gate ([`super::exclusive`]) who writes waits for as long as that takes: half a minute for some millions of rows.
//!
//! # Idea
//! The column is there before it is shown. Rows name columns by place ([`crate::exec::row`]), and a row that lacks a place says so. So the next version of the table has a column that no name leads to, at a place
//! that no row has ([`crate::catalog::Filling`]), writers keep it ([`Target::hidden`]), and the rows that were there get it in small transactions. A column with a new type keeps its id, and with it all that refers to it; what
//! changes in the end is where its values are.
//!
//! ```text
//! version   writers                                    meanwhile
//! v         know nothing of it
//! v + 1     give it to each row that they make, or     once nobody uses v: rows of a snapshot that lack it get it, some hundred at a time
//!           change in what it is computed of
//! v + 2     as any other column                        a new column: v + 1 may be in use beside it. A new type: v + 1 is ended, as by any change of a column
//! ```
//!
//! # Invariants
//! 1. Behind the end of v each row that is written anew has the column, or had its place and lacked it before. (A row that moves to another key gets it.) So who reads all rows of one snapshot behind that end, and
//!    gives it to those that lack it, leaves none without.
//! 2. Each row gets it locked, and from what it is then. What has it already is left alone.
//! 3. Rows that lack it are not their writers' to convert: what goes wrong with one ends the change, with PostgreSQL's error. What goes wrong with a row that is new, or changed in what it is computed of, its writer
//!    hears, as he would when the change has ended.
//! 4. A place is used once: the table's next number grows with the first step, whatever becomes of the change. So what is left in rows of one that was taken back ([`super::orphans`]) is nobody's.
//! 5. A formula is immutable: it does not differ with the settings of who writes. Others go by the gate.
//! 6. Who gives rows the column relies on the version, as any writer: one whose change was taken back writes nothing by a table that is another by now.
//!
//! # Caveats
//! Writers hear of values that do not convert also where the change fails in the end. Alone in its ALTER TABLE, of a table of more than 2,000 rows or after a conflict. At REPEATABLE READ and above, who changes a row that got the column after his snapshot hears 40001. A sequence of the column's own is there before it, and goes with a change that is taken back: a block that has drawn
//! from it hears 40001 then. By the gate go columns that are keys, unique, checked or references from the start, and types of columns that an index, a constraint or a generated column reads. Decision 246.

use super::about;
use super::alter_column::widens;
use super::column::{Defined, check_generated, is_serial, refuse_collation, refuse_pseudo};
use super::constraint::contains_nulls;
use super::expression::{column_at, is_volatile, mentions};
use super::online::{CHUNK_ROWS, Ended, Online, STEP_ATTEMPTS_MAX, Underway, is_conflict, lost};
use super::orphans::Made;
use super::run::Run;
use crate::catalog::reliance::{version_before, version_of};
use crate::catalog::{Collation, Column, Filling, Relation, Snapshot, Table, key};
use crate::context::StatementContext;
use crate::database::Database;
use crate::exec::formula::Formulas;
use crate::exec::target::Target;
use crate::identifier::quote_identifier;
use crate::progress::{ColumnPhase, ColumnProgress};
use crate::syntax::{AlterAction, ColumnChange, ColumnConstraintKind, ColumnDef, Ddl, Name};
use crate::transaction::{BeginOptions, Isolation, LockMode, LockWait, Sweeper, TxnRef};
use crate::types::{SqlType, Value};
use crate::{KvError, SqlError, SqlState};
use bytes::Bytes;
use clock::Timestamp;
use std::sync::Arc;

/// Rows that get their values in one transaction: others wait for one of them no longer than that takes.
const FILLED_MAX: usize = 256;

/// Whether an action, of a table and alone, is one that [`fill_column_online`] does.
pub fn fills_column(table: &Table, action: &AlterAction) -> bool {
    match action {
        AlterAction::AddColumn { column, .. } => adds(table, column),
        AlterAction::AlterColumn { name, change: ColumnChange::Type { ty, using, .. } } => {
            let column = table.columns.iter().find(|column| column.name == *name);
            let (Some(column), Ok(ty)) = (column, SqlType::from_ast(ty)) else { return false };
            let text = formula(name, using.as_deref());
            let converts = using.is_some() || column.ty != ty && !widens(&column.ty, &ty);
            converts
                && column.identity.is_none()
                && column.generated.is_none()
                && !is_read(table, column)
                && Formulas::new(table).assigned(&text, name, &ty).is_ok()
        }
        _ => false,
    }
}

fn formula(name: &str, using: Option<&str>) -> String {
    using.map_or_else(|| quote_identifier(name), str::to_string)
}

fn adds(table: &Table, def: &ColumnDef) -> bool {
    let (mut computed, mut others) = (is_serial(&def.ty), false);
    for constraint in &def.constraints {
        match &constraint.kind {
            ColumnConstraintKind::NotNull | ColumnConstraintKind::Null => {}
            ColumnConstraintKind::Identity(..) | ColumnConstraintKind::Generated(_) => computed = true,
            // One that draws from a sequence that is there already needs it to stay.
            ColumnConstraintKind::Default(text) if draws(text) => others = true,
            ColumnConstraintKind::Default(text) => computed |= is_volatile(text),
            ColumnConstraintKind::PrimaryKey
            | ColumnConstraintKind::Unique
            | ColumnConstraintKind::Check(_)
            | ColumnConstraintKind::References(_) => others = true,
        }
    }
    computed && !others && table.columns.iter().all(|column| column.name != def.name)
}

/// Whether a default names a sequence.
fn draws(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["nextval", "setval", "currval", "lastval"].iter().any(|name| lower.contains(name))
}

/// Whether something of the table itself is made of a column's values.
fn is_read(table: &Table, column: &Column) -> bool {
    let indexed = std::iter::once(&table.primary).chain(&table.indexes).any(|index| {
        let mut ids = index.columns.iter().map(|part| part.column).chain(index.include.iter().copied());
        ids.any(|id| id == column.id) || index.texts().any(|text| mentions(text, &column.name))
    });
    indexed
        || table.checks.iter().any(|check| mentions(&check.expression, &column.name))
        || table.foreign_keys.iter().any(|key| key.columns.contains(&column.id))
        || table.columns.iter().filter_map(|c| c.generated.as_ref()).any(|text| mentions(text, &column.name))
}

/// Adds a column, or gives one another type, by transactions of its own.
///
/// # Errors
/// PostgreSQL's for the action; what ended its waits.
pub fn fill_column_online(
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
    let result = online.clear().and_then(|()| online.fill_column(name, action));
    online.leave(result.is_err());
    drop(underway);
    guard.rollback();
    // Places in the texts of expressions inside a definition are not places in the client's text.
    result.map(|notices| online.ended(notices)).map_err(|e| e.with(|e| e.position = None))
}

impl Run<'_> {
    /// The table with what writers are to keep.
    fn with_filling(&mut self, mut table: Table, action: &AlterAction) -> Result<Table, SqlError> {
        let filling = match action {
            AlterAction::AddColumn { column, .. } => {
                let schema = self.catalog().schema_by_id(table.schema).cloned();
                let schema = schema.ok_or_else(|| lost("the table's schema"))?;
                let mut defined = self.define_column(&mut table, column)?;
                self.own_sequence(&schema, &table, &mut defined)?;
                let Defined { column, .. } = defined;
                Filling { column, of: None }
            }
            AlterAction::AlterColumn { name, change: ColumnChange::Type { ty, collation, using } } => {
                let (at, ty) = (column_at(&table, name)?, SqlType::from_ast(ty)?);
                refuse_pseudo(name, &ty)?;
                refuse_collation(&ty, *collation)?;
                self.refuse_read(&table, at)?;
                let collation = collation.filter(|said| *said != Collation::Default);
                let stored = Some(table.next_column);
                table.next_column += 1;
                let column = Column { ty, collation, stored, missing: None, ..table.columns[at].clone() };
                Filling { column, of: Some(formula(name, using.as_deref())) }
            }
            _ => return Err(lost("the column")),
        };
        let before = table.clone();
        table.filling = Some(filling);
        // What it will be in the end; times in formulas are put into one form there.
        let mut filled = table.clone().filled();
        self.settle_generated(&mut filled)?;
        check_generated(&filled)?;
        self.check_kept(&filled)?;
        if let Some(filling) = &mut table.filling
            && let Some(column) = filled.columns.iter().find(|column| column.id == filling.column.id)
        {
            filling.column.clone_from(column);
            if let Some(text) = filling.of.take() {
                filling.of = Some(self.settle_times(text, Some(&before), &filling.column.ty)?);
            }
        }
        Target::new(&filled, &self.plan_context_with(Relation::Table(filled.clone())))?;
        // Writers must be able to go by it.
        Target::new(&table, &self.plan_context())?;
        Ok(Table { maker: self.db.kv.node(), ..table })
    }
}

/// What gives rows their values.
struct Filler {
    table: Table,
    target: Arc<Target>,
    context: Arc<StatementContext>,
    /// When the table was looked at.
    since: Timestamp,
}

impl Online<'_> {
    fn fill_column(&self, name: &Name, action: &AlterAction) -> Result<Vec<SqlError>, SqlError> {
        let before = self.table_now()?;
        let mut place = None;
        let (path, guard) = (&self.context.settings.search_path, key::guard(self.table));
        let ddl = Ddl::AlterTable { name: name.clone(), if_exists: false, actions: Vec::new() };
        let about = |catalog: &Snapshot| {
            let mut keys = about::keys(&ddl, catalog, self.database.id, path);
            keys.remove(&guard);
            keys
        };
        let step = self.step(&about, &mut |run| {
            let table = run.table(self.table)?;
            if !fills_column(&table, action) {
                let reason = "the table was changed before its column was".to_owned();
                return Err(KvError::Restart { reason, key: None }.into());
            }
            let table = run.with_filling(table, action)?;
            place = table.filling.as_ref().map(|filling| filling.column.place());
            run.touch().step_table(table)
        });
        // Also where it is not known whether that was committed.
        *self.made.borrow_mut() = place.map(Made::Column);
        let ((), notices) = step?;
        let progress = self.context.backend.progress.show_column(self.table, place.unwrap_or(0));
        progress.task.enter(ColumnPhase::WaitingBefore);
        let end = match self.db.options.ends_versions {
            true => self.end_version(&before)?,
            false => self.begin(Isolation::RepeatableRead)?.snapshot(),
        };
        progress.task.enter(ColumnPhase::Filling);
        self.fill(end, &progress.task)?;
        progress.task.enter(ColumnPhase::WaitingAfter);
        match action {
            AlterAction::AddColumn { .. } => {
                self.step_table(&mut |run, table| run.touch().step_table(table.filled()))?;
            }
            _ => self.show_type()?,
        }
        Ok(notices)
    }

    /// The column has its next type from now on, by whatever version it was written before: that ends.
    fn show_type(&self) -> Result<(), SqlError> {
        let table = self.table_now()?;
        let _ending = self.wait_for_users(&[version_of(&table), version_before(&table)], STEP_ATTEMPTS_MAX)?;
        self.step_table(&mut |run, table| {
            let name = table.filling.as_ref().map(|filling| filling.column.name.clone()).unwrap_or_default();
            let table = table.filled();
            run.touch().has_locked([key::guard(table.id)]);
            run.put_table(table.clone())?;
            Target::new(&table, &run.plan_context())?;
            run.refuse_retyped(&table, &name)
        })
        .map(drop)
    }

    /// Gives all rows the column that lack it. Those that come to be have it.
    fn fill(&self, end: Timestamp, progress: &ColumnProgress) -> Result<(), SqlError> {
        let mut made = None;
        self.step_table(&mut |run, table| {
            let (target, since) = (Target::new(&table, &run.plan_context())?, run.change.since());
            made = Some(Filler { target, context: run.statement_now(), since, table });
            Ok(())
        })?;
        let filler = made.ok_or_else(|| lost("the column"))?;
        let access = filler.target.access.clone();
        let known = self.context.backend.sessions.statistics.of(self.db.kv.as_ref(), self.table);
        progress.total.set(known.map_or(0, |known| known.rows));
        let reading = Sweeper::new(self.begin_after(end)?, access.primary.span(), CHUNK_ROWS);
        for chunk in self.db.kv.sweep_aside(reading) {
            let chunk = chunk?;
            let mut lacking = Vec::new();
            for (row_key, stored) in chunk.rows() {
                if access.lacks_hidden(stored)? {
                    lacking.push(Bytes::copy_from_slice(row_key));
                }
            }
            for rows in lacking.chunks(FILLED_MAX) {
                self.fill_together(&filler, rows)?;
                self.context.check()?;
            }
            progress.done.add(chunk.places.len() as u64);
            // Who was taken back need not go on.
            self.table_now()?;
        }
        Ok(())
    }

    /// Rows that nobody else has now get it together; the others one by one: who waits for a row holds none that others wait for.
    fn fill_together(&self, filler: &Filler, rows: &[Bytes]) -> Result<(), SqlError> {
        let left = match self.fill_rows(filler, rows, LockWait::Skip) {
            Err(e) if is_conflict(&e) => rows.to_vec(),
            other => other?,
        };
        for row in left.chunks(1) {
            let mut result = self.fill_rows(filler, row, LockWait::Wait);
            for _ in 1..STEP_ATTEMPTS_MAX {
                if !matches!(&result, Err(e) if is_conflict(e)) {
                    break;
                }
                // Who was taken back need not try again.
                self.table_now()?;
                result = self.fill_rows(filler, row, LockWait::Wait);
            }
            result?;
        }
        Ok(())
    }

    /// Gives the rows with these keys the column, in one transaction; answers with those that others have, if they are not waited for.
    fn fill_rows(&self, filler: &Filler, keys: &[Bytes], wait: LockWait) -> Result<Vec<Bytes>, SqlError> {
        let txn = TxnRef::new(self.begin(Isolation::ReadCommitted)?);
        let mut context = StatementContext::clone(&filler.context);
        context.txn = txn.clone();
        let access = &filler.target.access;
        let (mode, mut left) = (LockMode::NoKeyUpdate, Vec::new());
        let mut free: Vec<&Bytes> = Vec::with_capacity(keys.len());
        txn.with(|t| {
            t.rely(&version_of(&filler.table), filler.since, true)?;
            let slices: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let locked = if keys.len() > 1 { t.lock_all(&slices, mode)? } else { 0 };
            for (n, key) in keys.iter().enumerate() {
                match n < locked || t.lock_as(key, mode, wait)? {
                    true => free.push(key),
                    false => left.push(key.clone()),
                }
            }
            if keys.len() > 1 && t.is_far() {
                t.read_ahead(keys)?;
            }
            Ok::<_, SqlError>(())
        })?;
        let (all, none) = ((0..access.columns.len()).collect::<Vec<_>>(), vec![false; access.columns.len()]);
        let mut row = vec![Value::Null; all.len()];
        for key in free {
            let Some(stored) = txn.with(|t| t.get(key))? else { continue };
            if !access.lacks_hidden(&stored)? {
                continue;
            }
            access.decode(&stored, &all, &mut row)?;
            let hidden = filler.target.hidden(&row, None, &context).map_err(|e| match &e.column {
                Some(column) if e.state == SqlState::NOT_NULL_VIOLATION => contains_nulls(&filler.table, column),
                _ => e,
            })?;
            let written = access.rewrite(&stored, &row, &none, hidden.as_ref())?;
            txn.with(|t| t.put(key.clone(), written))?;
        }
        let patience = self.context.patience();
        txn.with(|t| patience.commit(t))?;
        Ok(left)
    }
}

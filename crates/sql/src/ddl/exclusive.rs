//! A table that is changed while its writers wait: ALTER TABLE that reads all rows.
//!
//! # Problem
//! Another primary key, another type of a column that an index reads, several things at once (what can be done column by column is: [`super::filling`]): the table is read and written anew, in one transaction that is refused by the first row
//! that changes meanwhile. Under steady writers it never ends. PostgreSQL lets them wait (ACCESS EXCLUSIVE). A lock of the table that every writer takes would cost
//! each of them, at the leader of the catalog, for the sake of changes, which are rare (decision 211).
//!
//! # Idea
//! Only the writers of a version that says so take it. The token of that version is what they lock: `FOR KEY SHARE`, until their transaction ends. Decision 216.
//!
//! ```text
//! version   writers                                  meanwhile
//! v         know nothing of it
//! v, gated  hold the token of v                      those who have written by v before are waited for; then its token is taken in the strongest mode:
//!                                                    behind it writers queue. The statement runs, as it would alone
//! v + 1     as ever                                  whoever waited finds v ended, and plans anew
//! ```
//!
//! # Invariants
//! 1. Safety is the tokens': the statement reads certified, and what is written by v is refused once that has ended. Locks say who waits: they may be lost, and whoever
//!    was missed while the gate was closed writes beside the statement, and one of the two begins anew.
//! 2. A gate says nothing of what is stored: it closes and opens within one version, so nobody is refused for it.
//! 3. The token is asked for when those who had written without it have ended. So none of them comes to wait for it while he is waited for.
//! 4. Locks are waited for where all others are: deadlocks are found (40P01), by way of the session where one transaction of it holds and another waits, `lock_timeout`, `statement_timeout` and
//!    a cancel hold.
//! 5. Whatever ends the statement, and the process: a gate that nobody is behind is opened ([`open_gate`]), by any node: nobody is behind it if its guard is free. Until then writers hold the
//!    token beside each other, and wait for nobody.
//! 6. One change of a table at a time: its guard is held from the first step to the last, and those of the tables that it will point at.
//!
//! # Caveats
//! Who only reads does not wait, nor who looks at the catalog. Who writes to a table that foreign keys of it point at does, since what he writes may lead to it. Little tables (2,000 rows) are changed in one transaction, unless that meets a conflict. Inside a block, behind other statements or before
//! them, a change is made at once, and whoever comes to write waits for its end ([`super::barrier`]).

use super::about;
use super::alter_column::widens;
use super::column::is_serial;
use super::expression::is_volatile;
use super::online::{Ended, Online, Underway, lost};
use super::orphans::{last_patience, open_gate};
use super::run::Run;
use crate::SqlError;
use crate::catalog::reliance::{version_before, version_of};
use crate::catalog::{Oid, Snapshot, Table, key};
use crate::context::StatementContext;
use crate::database::Database;
use crate::syntax::{
    AlterAction, ColumnChange, ColumnConstraintKind, ColumnDef, Ddl, Name, TableConstraint, TableConstraintKind,
};
use crate::transaction::{BeginOptions, LockMode, Transaction};
use crate::types::SqlType;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whether an action reads all rows of its table.
pub fn reads_rows(table: &Table, action: &AlterAction) -> bool {
    let named = |name: &str| table.columns.iter().find(|column| column.name == name);
    match action {
        AlterAction::AddColumn { column, .. } => fills(column),
        AlterAction::AddConstraint { constraint, not_valid } => match &constraint.kind {
            TableConstraintKind::PrimaryKey(_) | TableConstraintKind::Unique(_) => true,
            TableConstraintKind::UsingIndex { primary, .. } => *primary,
            TableConstraintKind::Check(_) | TableConstraintKind::ForeignKey(..) => !not_valid,
        },
        AlterAction::AlterColumn { name, change: ColumnChange::Type { ty, using, .. } } => {
            let (Some(column), Ok(ty)) = (named(name), SqlType::from_ast(ty)) else { return false };
            using.is_some() || column.ty != ty && !widens(&column.ty, &ty)
        }
        AlterAction::AlterColumn { name, change: ColumnChange::SetNotNull } => named(name).is_some_and(|c| c.nullable),
        AlterAction::ValidateConstraint(_) => true,
        AlterAction::DropConstraint { name, .. } => table.has_primary_key && table.primary.name == *name,
        AlterAction::DropColumn { name, .. } => {
            let id = named(name).map(|column| column.id);
            table.has_primary_key && table.primary.columns.iter().any(|part| Some(part.column) == id)
        }
        _ => false,
    }
}

/// Whether a new column asks for more than one value for all rows.
fn fills(column: &ColumnDef) -> bool {
    let asks = |kind: &ColumnConstraintKind| match kind {
        ColumnConstraintKind::NotNull | ColumnConstraintKind::Null => false,
        ColumnConstraintKind::Default(text) => is_volatile(text),
        ColumnConstraintKind::PrimaryKey
        | ColumnConstraintKind::Unique
        | ColumnConstraintKind::Check(_)
        | ColumnConstraintKind::References(_)
        | ColumnConstraintKind::Identity(..)
        | ColumnConstraintKind::Generated(_) => true,
    };
    is_serial(&column.ty) || column.constraints.iter().any(|constraint| asks(&constraint.kind))
}

/// The tables that new foreign keys will point at.
fn parents(actions: &[AlterAction]) -> Vec<&Name> {
    let mut names = Vec::new();
    for action in actions {
        match action {
            AlterAction::AddConstraint {
                constraint: TableConstraint { kind: TableConstraintKind::ForeignKey(_, references), .. },
                ..
            } => names.push(&references.table),
            AlterAction::AddColumn { column, .. } => {
                names.extend(column.constraints.iter().filter_map(|constraint| match &constraint.kind {
                    ColumnConstraintKind::References(references) => Some(&references.table),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    names
}

/// Runs ALTER TABLE by transactions of its own, begun with these options, while who writes to the table waits.
///
/// # Errors
/// PostgreSQL's for the statement; what ended its waits.
pub fn alter_exclusively(
    db: &Database,
    database: &Arc<crate::catalog::Database>,
    context: &Arc<StatementContext>,
    options: BeginOptions,
    ddl: &Ddl,
) -> Result<Ended, SqlError> {
    let Ddl::AlterTable { name, actions, .. } = ddl else { return Err(lost("the statement")) };
    let mut online = Online::new(db, database, context, options);
    let (guard, tables) = online.hold_tables(name, &parents(actions))?;
    let mut gates = Gates::new(db, guard, tables);
    let mut loads = Vec::new();
    let result = online.close_gates(&gates.tables).and_then(|held| {
        held.iter().try_for_each(|token| gates.guard.hold(token, LockMode::Update))?;
        online.run(ddl, &gates.tables, &mut loads)
    });
    loads.into_iter().for_each(|index| db.loads.end(index));
    drop(gates);
    result.map(|notices| online.ended(notices))
}

/// The gates of a change: it opens them when it ends, whatever ends it.
pub(super) struct Gates<'a> {
    db: &'a Database,
    pub(super) tables: BTreeSet<Oid>,
    _underway: Vec<Underway<'a>>,
    /// Holds the tables, and in the end their versions.
    pub(super) guard: Box<dyn Transaction>,
}

impl<'a> Gates<'a> {
    pub(super) fn new(db: &'a Database, guard: Box<dyn Transaction>, tables: BTreeSet<Oid>) -> Gates<'a> {
        let _underway = tables.iter().map(|table| Underway::new(db, Some(*table))).collect();
        Gates { db, tables, _underway, guard }
    }
}

impl Drop for Gates<'_> {
    fn drop(&mut self) {
        // If even that fails, and behind a panic, maintenance does it.
        if !std::thread::panicking() {
            let patience = last_patience(self.db);
            self.tables.iter().for_each(|table| drop(open_gate(self.db, &patience, *table)));
        }
    }
}

impl Online<'_> {
    /// Whoever writes to the tables from now on holds their versions, which are given. Those who had done so before have ended.
    pub(super) fn close_gates(&self, tables: &BTreeSet<Oid>) -> Result<Vec<Bytes>, SqlError> {
        let records = || tables.iter().map(|id| Bytes::copy_from_slice(&key::object(key::RELATIONS, *id)));
        let about = |_: &Snapshot| records().collect::<BTreeSet<Bytes>>();
        let mut close = |run: &mut Run<'_>| {
            let (mut tokens, mut before) = (Vec::with_capacity(tables.len()), Vec::with_capacity(tables.len()));
            for id in tables {
                let table = run.table(*id)?;
                tokens.push(version_of(&table));
                before.push(version_before(&table));
                run.touch().restate_table(Table { gated: true, maker: self.db.kv.node(), ..table })?;
            }
            Ok((tokens, before))
        };
        let ((tokens, before), _) = self.step(&about, &mut close)?;
        // Once: those who come hold the versions.
        drop(self.wait_for_users(&[&tokens[..], &before].concat(), 1)?);
        Ok(tokens)
    }

    /// The statement itself. `loads`: what it loads outside its transaction.
    fn run(&self, ddl: &Ddl, tables: &BTreeSet<Oid>, loads: &mut Vec<Oid>) -> Result<Vec<SqlError>, SqlError> {
        let path = &self.context.settings.search_path;
        let guards: BTreeSet<Bytes> = tables.iter().map(|id| key::guard(*id)).collect();
        let about = |catalog: &Snapshot| {
            let mut keys = about::keys(ddl, catalog, self.database.id, path);
            keys.retain(|key| !guards.contains(key));
            keys
        };
        let mut run = |run: &mut Run<'_>| {
            run.touch().has_locked(guards.iter().cloned());
            // Places in the texts of expressions inside a definition are not places in the client's text.
            let result = run.execute(ddl).map_err(|e| e.with(|e| e.position = None));
            loads.extend(run.take_loads());
            result
        };
        self.step(&about, &mut run).map(|(_, notices)| notices)
    }
}

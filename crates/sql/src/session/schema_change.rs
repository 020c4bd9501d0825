//! DDL, from the session's side: the change runs in the session's transaction, which then sees the new catalog.

use super::Session;
use super::run::Outcome;
use crate::catalog::view::View;
use crate::catalog::{Changed, Named};
use crate::database::Database;
use crate::ddl::{
    Done, Ending, Holds, Making, Run, Users, UsersFound, add_condition_online, adds_condition, alter_exclusively,
    create_index_online, fill_column_online, fills_column, is_large, reads_rows, tokens_named,
};
use crate::output::Output;
use crate::syntax::{
    AlterAction, ColumnChange, Ddl, DefaultOf, Name, ObjectKind, TableConstraint, TableConstraintKind,
};
use crate::transaction::BeginOptions;
use crate::{KvError, SqlError, SqlState};
use bytes::Bytes;
use std::sync::Arc;

/// So often one statement waits for those who have written to its tables; then it goes on, and is met by their tokens.
const USERS_WAITED_MAX: u32 = 4;

impl Session {
    /// Runs a DDL statement, which may be its whole transaction. There must be one.
    pub(super) fn run_ddl(&mut self, ddl: &Ddl, alone: bool, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        self.settle_before_ddl()?;
        let db = self.db.clone();
        let statement = self.statement_context(Vec::new())?;
        let own = self.active.as_ref().map(|active| active.own.clone()).unwrap_or_default();
        let mut run = Run::begin(&db, &self.database, statement, &own, ddl)?;
        run.empty = self.active.as_ref().map_or(Vec::new(), |active| active.empty(&self.backend.filled));
        run.alone = alone && self.active.as_ref().is_some_and(|active| active.statements == 0);
        // Its transaction ends with it, and began with it.
        let lone = alone && self.active.as_ref().is_some_and(|active| active.has_done_nothing());
        if !lone {
            let path = &self.settings.eval.search_path;
            let named = tokens_named(ddl, run.catalog(), &own, self.database.id, path);
            if self.bar(&db, &named)?.is_some() {
                drop(run);
                return Err(self.wait_unbarred(&db, &named)?);
            }
        }
        // Places in the texts of expressions and queries inside a definition are not places in the client's text.
        let result = run.execute(ddl).map_err(|e| e.with(|e| e.position = None));
        let loads = run.take_loads();
        self.remember_loads(loads);
        if result.is_ok() && db.options.waits_for_users {
            let ended = run.ended(&own);
            let found = if lone { self.find_users(&db, &ended) } else { self.bar(&db, &ended)? };
            if let Some(found) = found {
                drop(run);
                return Err(match lone {
                    true => self.wait_for_users(&db, &ended, found)?,
                    false => self.wait_unbarred(&db, &ended)?,
                });
            }
        }
        let Done { tag, notices, changed, fresh } = run.finish(result?);
        for notice in &together(notices) {
            self.tell(notice, out);
        }
        let Some(active) = self.active.as_mut() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a DDL statement ran without a transaction"));
        };
        self.backend.filled.fresh(&fresh);
        active.fresh.extend(fresh);
        if let Some(changed) = changed {
            self.use_changed(changed);
        }
        Ok(Outcome::Tag(tag))
    }

    /// The transaction goes on with the catalog that it has changed.
    pub(super) fn use_changed(&mut self, changed: Changed) {
        let Changed { snapshot, own, number, since } = changed;
        if let Some(active) = self.active.as_mut() {
            (active.own, active.number) = (own, number);
            let view = View::new(snapshot, self.database.clone(), &self.settings.eval.search_path);
            active.use_view(Arc::new(view), since);
            self.sequences.use_catalog(active.view.snapshot());
        }
    }

    /// Those for whom a change is to wait that is its whole transaction. Its commit comes next: until then others are kept out, without a gap since its last attempt; also where it does not wait any more.
    fn find_users(&mut self, db: &Database, ended: &[Bytes]) -> Option<UsersFound> {
        if ended.is_empty() {
            self.ending = None;
            return None;
        }
        let ending = Ending::new(db);
        let found = Users { ending: Some(&ending), ..self.users_of(db, ended, Holds::Nothing) }.find();
        self.ending = Some(ending);
        Some(found).filter(|found| !found.is_empty() && self.may_wait_for_users())
    }

    /// Whether a change may wait, once more, for those who have written by what it ends: it can be repeated.
    pub(super) fn may_wait_for_users(&self) -> bool {
        self.waited_for_users < USERS_WAITED_MAX && !self.backend.effects.is_final()
    }

    pub(super) fn users_of<'a>(&'a self, db: &'a Database, ended: &'a [Bytes], holds: Holds) -> Users<'a> {
        Users { db, own: &self.backend, tokens: ended, patience: self.patience(), holds, ending: self.ending.as_ref() }
    }

    /// Waits for those who were found, with all given up that the change has done and holds, which is the first of its transaction. Gives why it is to run again.
    ///
    /// # Errors
    /// What ends the wait.
    fn wait_for_users(&mut self, db: &Database, ended: &[Bytes], found: UsersFound) -> Result<SqlError, SqlError> {
        self.restart();
        let users = self.users_of(db, ended, Holds::Nothing);
        let ended = users.wait(found, &self.backend.lock_timeout, &self.interrupt)?;
        self.has_waited_for_users(ended);
        Ok(users_waited_for())
    }

    /// The same of the first change of a block: what it has barred is given up, too, and others are kept out as by a change that is its whole transaction.
    fn wait_unbarred(&mut self, db: &Database, ended: &[Bytes]) -> Result<SqlError, SqlError> {
        self.restart();
        match self.find_users(db, ended) {
            Some(found) => self.wait_for_users(db, ended, found),
            None => {
                self.has_waited_for_users(true);
                Ok(users_waited_for())
            }
        }
    }

    /// Those whom the statement has waited for have `ended`; else they may wait for it.
    pub(super) fn has_waited_for_users(&mut self, ended: bool) {
        self.waited_for_users = if ended { self.waited_for_users + 1 } else { USERS_WAITED_MAX };
    }

    /// Whether a statement that is its whole transaction is better done beside writers, by transactions of its own: its table is large, or is written.
    pub(super) fn goes_online(&self, ddl: &Ddl) -> Result<bool, SqlError> {
        let Some(active) = self.active.as_ref() else { return Ok(false) };
        if active.statements > 0 {
            return Ok(false);
        }
        let (Name { schema, name, database }, action) = match ddl {
            Ddl::CreateIndex(create) => (&create.table, None),
            Ddl::AlterTable { name, actions, .. } if actions.len() == 1 => (name, actions.first()),
            _ => return Ok(false),
        };
        let named = active.view.named(schema.as_deref(), name).filter(|_| database.is_none());
        let Some(Named::Relation(id)) = named else { return Ok(false) };
        let Some(table) = active.view.snapshot().table(id) else { return Ok(false) };
        let can = action.is_none_or(|action| {
            unique_of(action).is_some() || adds_condition(table, action) || fills_column(table, action)
        });
        Ok(can && (self.met_conflict || active.txn.with(|t| is_large(t, table))?))
    }

    /// Whether a statement that is its whole transaction reads all rows of a table, and is better done while those who write to it wait: it is large, or is written.
    pub(super) fn goes_alone(&self, ddl: &Ddl) -> Result<bool, SqlError> {
        let Some(active) = self.active.as_ref().filter(|active| active.statements == 0) else { return Ok(false) };
        let Ddl::AlterTable { name: Name { schema, name, database: None }, actions, .. } = ddl else {
            return Ok(false);
        };
        let Some(Named::Relation(id)) = active.view.named(schema.as_deref(), name) else { return Ok(false) };
        let Some(table) = active.view.snapshot().table(id) else { return Ok(false) };
        // What is there already keeps nobody waiting unless it must.
        let validates = actions.iter().all(|action| matches!(action, AlterAction::ValidateConstraint(_)));
        let can = actions.iter().any(|action| reads_rows(table, action));
        Ok(can && (self.met_conflict || !validates && active.txn.with(|t| is_large(t, table))?))
    }

    /// How the transactions of a change begin that takes several. They see what others did meanwhile, so nothing is kept of what the statement knew of uncertainty.
    pub(super) fn options_of_steps(&self) -> BeginOptions {
        BeginOptions { kept: None, ..self.begin_options(None) }
    }

    /// Does it; the session's transaction ends before.
    pub(super) fn run_alone(&mut self, ddl: &Ddl, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        let (statement, options) = (self.statement_context(Vec::new())?, self.options_of_steps());
        self.drop_active();
        let (notices, at) = alter_exclusively(&self.db, &self.database, &statement, options, ddl)?;
        self.token = self.token.max(at);
        together(notices).iter().for_each(|notice| self.tell(notice, out));
        Ok(Outcome::Tag("ALTER TABLE".into()))
    }

    /// Does it; the session's transaction ends before.
    pub(super) fn run_online(&mut self, ddl: &Ddl, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        let (statement, options) = (self.statement_context(Vec::new())?, self.options_of_steps());
        self.drop_active();
        let (db, database) = (&self.db, &self.database);
        let (tag, (notices, at)) = match ddl {
            Ddl::CreateIndex(create) => {
                let making = Making::Index(create);
                ("CREATE INDEX", create_index_online(db, database, &statement, options, making)?)
            }
            Ddl::AlterTable { name, actions, .. } => {
                let Some(action) = actions.first() else { return Ok(Outcome::Tag("ALTER TABLE".into())) };
                let ended = match unique_of(action) {
                    Some((constraint, columns)) => {
                        let making = Making::Unique(name, constraint, columns);
                        create_index_online(db, database, &statement, options, making)?
                    }
                    None if matches!(
                        action,
                        AlterAction::AddColumn { .. }
                            | AlterAction::AlterColumn { change: ColumnChange::Type { .. }, .. }
                    ) =>
                    {
                        fill_column_online(db, database, &statement, options, name, action)?
                    }
                    None => add_condition_online(db, database, &statement, options, name, action)?,
                };
                ("ALTER TABLE", ended)
            }
            _ => return Err(SqlError::new(SqlState::INTERNAL_ERROR, "this statement is not done beside writers")),
        };
        self.token = self.token.max(at);
        notices.iter().for_each(|notice| self.tell(notice, out));
        Ok(Outcome::Tag(tag.into()))
    }

    /// Loads end with the transaction; without one, at once.
    pub(super) fn remember_loads(&mut self, loads: Vec<u32>) {
        match self.active.as_mut() {
            Some(active) => active.loads.extend(loads),
            None => loads.into_iter().for_each(|index| self.db.loads.end(index)),
        }
    }
}

/// Why a change runs again.
pub(super) fn users_waited_for() -> SqlError {
    KvError::Restart { reason: "those who wrote to the table were waited for".into(), key: None }.into()
}

/// The name of a statement that cannot be part of a transaction.
pub(super) fn needs_no_block(ddl: &Ddl) -> Option<&'static str> {
    match ddl {
        Ddl::CreateDatabase { .. } => Some("CREATE DATABASE"),
        Ddl::Drop { kind: ObjectKind::Database, .. } => Some("DROP DATABASE"),
        Ddl::RenewTokens { .. } | Ddl::SetDefault { of: DefaultOf::System, .. } => Some("ALTER SYSTEM"),
        Ddl::CreateIndex(create) if create.concurrently => Some("CREATE INDEX CONCURRENTLY"),
        _ => None,
    }
}

/// ADD UNIQUE (..)
fn unique_of(action: &AlterAction) -> Option<(&TableConstraint, &[String])> {
    match action {
        AlterAction::AddConstraint { constraint, .. } => match &constraint.kind {
            TableConstraintKind::Unique(columns) => Some((constraint, columns)),
            _ => None,
        },
        _ => None,
    }
}

/// What a statement takes along is told at once: the first words of such a notice.
const CASCADES: &str = "drop cascades to ";
/// And so many of them by name.
const CASCADES_TOLD_MAX: usize = 100;

/// The notices of what goes along, if it is several, as one.
fn together(notices: Vec<SqlError>) -> Vec<SqlError> {
    let goes_along = |notice: &SqlError| notice.message.starts_with(CASCADES);
    let count = notices.iter().filter(|notice| goes_along(notice)).count();
    if count < 2 {
        return notices;
    }
    let (along, mut rest): (Vec<_>, Vec<_>) = notices.into_iter().partition(goes_along);
    let mut lines: Vec<&str> = along.iter().take(CASCADES_TOLD_MAX).map(|notice| notice.message.as_str()).collect();
    let left = format!("and {} other objects (see server log for list)", count.saturating_sub(CASCADES_TOLD_MAX));
    lines.extend((count > CASCADES_TOLD_MAX).then_some(left.as_str()));
    let message = format!("{CASCADES}{count} other objects");
    rest.push(SqlError::new(SqlState::SUCCESS, message).detail(lines.join("\n")));
    rest
}

//! DDL, from the session's side: the change runs in the session's transaction, which then sees the new catalog.

use super::Session;
use super::prepared::Prepared;
use super::run::Outcome;
use crate::catalog::view::View;
use crate::catalog::{Changed, Named};
use crate::database::Database;
use crate::ddl::{
    Done, Ending, Holds, Making, Run, Users, UsersFound, add_condition_online, adds_condition, alter_exclusively,
    create_index_online, is_large, reads_rows, tokens_named,
};
use crate::output::Output;
use crate::syntax::{AlterAction, Ddl, DefaultOf, Name, ObjectKind, TableConstraint, TableConstraintKind};
use crate::transaction::{BeginOptions, Isolation};
use crate::users::waits;
use crate::{KvError, SqlError, SqlState};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::Duration;

/// How often whoever waits for a change looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// So often one statement waits for those who have written to its tables; then it goes on, and is met by their tokens.
const USERS_WAITED_MAX: u32 = 4;

impl Session {
    /// Runs a DDL statement, which may be its whole transaction. There must be one.
    pub(super) fn run_ddl(&mut self, ddl: &Ddl, alone: bool, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        self.settle_before_ddl()?;
        let db = self.db.clone();
        if let Some(waited) = self.wait_behind_others(&db, ddl)? {
            return Err(waited);
        }
        let statement = self.statement_context(Vec::new())?;
        let own = self.active.as_ref().map(|active| active.own.clone()).unwrap_or_default();
        let mut run = Run::begin(&db, &self.database, statement, &own, ddl)?;
        run.empty = self.active.as_ref().map_or(Vec::new(), |active| active.empty(&self.backend.filled));
        run.alone = alone && self.active.as_ref().is_some_and(|active| active.statements == 0);
        // Places in the texts of expressions and queries inside a definition are not places in the client's text.
        let result = run.execute(ddl).map_err(|e| e.with(|e| e.position = None));
        let loads = run.take_loads();
        self.remember_loads(loads);
        if result.is_ok() && db.options.waits_for_users {
            let holds = self.may_wait_for_users();
            let first = self.active.as_ref().is_some_and(|active| active.has_done_nothing());
            let ended = if holds.is_some() || alone && first { run.ended(&own) } else { Vec::new() };
            // Its commit comes next: until then others are kept out, without a gap since its last attempt; also where it does not wait any more.
            let ending = (alone && first && !ended.is_empty()).then(|| Ending::new(&db));
            let users =
                Users { ending: ending.as_ref(), ..self.users_of(&db, &ended, holds.unwrap_or(Holds::Nothing)) };
            let found = users.find();
            self.ending = ending;
            if let Some(holds) = holds.filter(|_| !found.is_empty()) {
                drop(run);
                return Err(self.wait_for_users(&db, &ended, found, holds)?);
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

    /// Whether a change may wait for those who have written by what it ends, and what is held then: it can be repeated, behind other statements at READ COMMITTED only.
    fn may_wait_for_users(&self) -> Option<Holds> {
        let waits = self.db.options.waits_for_users && self.waited_for_users < USERS_WAITED_MAX;
        let active = self.active.as_ref().filter(|_| waits && !self.backend.effects.is_final())?;
        match active.has_done_nothing() {
            true => Some(Holds::Nothing),
            false => (active.isolation == Isolation::ReadCommitted).then_some(Holds::Locks),
        }
    }

    /// Behind other statements what a change has read certified stays read, however often it is repeated. So it waits before it looks at anything, for those who have
    /// written to what it names. Gives why it is to run at a later snapshot.
    fn wait_behind_others(&mut self, db: &Database, ddl: &Ddl) -> Result<Option<SqlError>, SqlError> {
        let Some(Holds::Locks) = self.may_wait_for_users() else { return Ok(None) };
        let Some(active) = self.active.as_ref() else { return Ok(None) };
        let path = &self.settings.eval.search_path;
        let named = tokens_named(ddl, active.view.snapshot(), &active.own, self.database.id, path);
        let found = self.users_of(db, &named, Holds::Locks).find();
        match found.is_empty() {
            true => Ok(None),
            false => self.wait_for_users(db, &named, found, Holds::Locks).map(Some),
        }
    }

    fn users_of<'a>(&'a self, db: &'a Database, ended: &'a [Bytes], holds: Holds) -> Users<'a> {
        Users { db, own: &self.backend, tokens: ended, patience: self.patience(), holds, ending: self.ending.as_ref() }
    }

    /// Who is to write by what a change is about to end begins anew when that is over: his transaction, if it has done nothing yet; at READ COMMITTED else this statement, unless it has written by what that
    /// change ends (`mark`: what it had written by before). So the change does not wait for him, and whoever waits for him does so for as long as the change keeps others out. The first time at once, since it
    /// may be over here. All others go on, and are waited for, or refused at their commit. (Who writes by a gated version waits there: decision 216.)
    ///
    /// # Errors
    /// A restart; what ends the wait.
    pub(super) fn wait_for_changes(&mut self, tokens: &[Bytes], mark: usize) -> Result<(), SqlError> {
        let now_us = || self.db.kv.monotonic_us();
        let endings = &self.db.sessions.endings;
        let Some(active) = self.active.as_ref().filter(|_| !self.backend.effects.is_final()) else { return Ok(()) };
        if !endings.contains(tokens, now_us) {
            return Ok(());
        }
        match active.has_done_nothing() {
            true => self.restart(),
            false if active.isolation != Isolation::ReadCommitted => return Ok(()),
            false if endings.contains(&self.backend.relied.before(mark), now_us) => return Ok(()),
            false => self.backend.relied.back_to(mark),
        }
        if std::mem::replace(&mut self.met_ending, true) {
            let (db, patience) = (self.db.clone(), self.patience());
            let now_us = || db.kv.monotonic_us();
            let began_us = now_us();
            let (lock, never) = (Mutex::new(()), Condvar::new());
            let _waiting = waits(&self.interrupt, began_us);
            while db.sessions.endings.contains(tokens, now_us) {
                patience.check(now_us)?;
                let waited_us = u64::try_from(now_us().saturating_sub(began_us)).unwrap_or(0);
                if self.backend.lock_timeout.is_over_after(waited_us) {
                    return Err(KvError::LockNotAvailable { key: None, waited: true }.into());
                }
                never.wait_for(&mut lock.lock(), LOOK_EVERY);
            }
        }
        Err(KvError::Restart { reason: "a change of the table was waited for".into(), key: None }.into())
    }

    /// Waits for those who were found, with all given up that the change has done and holds, if it is the first of its transaction. Gives why it is to run again.
    ///
    /// # Errors
    /// What ends the wait.
    fn wait_for_users(
        &mut self,
        db: &Database,
        ended: &[Bytes],
        found: UsersFound,
        holds: Holds,
    ) -> Result<SqlError, SqlError> {
        self.waited_for_users += 1;
        if holds == Holds::Nothing {
            self.restart();
        }
        if !self.users_of(db, ended, holds).wait(found, &self.backend.lock_timeout, &self.interrupt)? {
            self.waited_for_users = USERS_WAITED_MAX;
        }
        Ok(KvError::Restart { reason: "those who wrote to the table were waited for".into(), key: None }.into())
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
        let can = action.is_none_or(|action| unique_of(action).is_some() || adds_condition(table, action));
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

    /// Whoever writes by versions that are held holds them, and waits for who has taken them for himself.
    pub(super) fn hold_versions(&self, prepared: &Prepared) -> Result<(), SqlError> {
        let Some(active) = self.active.as_ref() else { return Ok(()) };
        let Some(uses) = prepared.gated_uses() else { return Ok(()) };
        uses.gated().try_for_each(|table| active.catalog.hold(table))?;
        Ok(())
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

//! DDL, from the session's side: the change runs in the session's transaction, which then sees the new catalog.

use super::Session;
use super::run::Outcome;
use crate::catalog::view::View;
use crate::catalog::{Changed, Named};
use crate::ddl::{Done, Run, create_index_online, is_large};
use crate::output::Output;
use crate::syntax::{CreateIndex, Ddl, Name};
use crate::{SqlError, SqlState};
use std::sync::Arc;

impl Session {
    /// Runs a DDL statement, which may be its whole transaction. There must be one.
    pub(super) fn run_ddl(&mut self, ddl: &Ddl, alone: bool, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        self.settle_before_ddl()?;
        let statement = self.statement_context(Vec::new())?;
        let db = self.db.clone();
        let own = self.active.as_ref().map(|active| active.own.clone()).unwrap_or_default();
        let mut run = Run::begin(&db, &self.database, statement, &own, ddl)?;
        run.alone = alone && self.active.as_ref().is_some_and(|active| active.statements == 0);
        // Places in the texts of expressions and queries inside a definition are not places in the client's text.
        let result = run.execute(ddl).map_err(|e| e.with(|e| e.position = None));
        let loads = run.take_loads();
        self.remember_loads(loads);
        let Done { tag, notices, changed, fresh } = run.finish(result?);
        for notice in &notices {
            out.notice(notice);
        }
        let Some(active) = self.active.as_mut() else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a DDL statement ran without a transaction"));
        };
        active.fresh.extend(fresh);
        if let Some(Changed { snapshot, own, number, since }) = changed {
            (active.own, active.number) = (own, number);
            let view = View::new(snapshot, self.database.clone(), &self.settings.eval.search_path);
            active.use_view(Arc::new(view), since);
            self.sequences.use_catalog(active.view.snapshot());
        }
        Ok(Outcome::Tag(tag))
    }

    /// Whether an index, by a statement that is its whole transaction, is better made beside writers: its table is large, or is written.
    pub(super) fn goes_online(&self, create: &CreateIndex) -> Result<bool, SqlError> {
        let Some(active) = self.active.as_ref() else { return Ok(false) };
        if active.statements > 0 || active.as_of.is_some() || self.modes.read_only.unwrap_or(self.settings.read_only) {
            return Ok(false);
        }
        let Name { schema, name, database } = &create.table;
        let named = active.view.named(schema.as_deref(), name).filter(|_| database.is_none());
        let Some(Named::Relation(id)) = named else { return Ok(false) };
        match active.view.snapshot().table(id) {
            Some(table) => Ok(self.met_conflict || active.txn.with(|t| is_large(t, table))?),
            None => Ok(false),
        }
    }

    /// Makes an index by transactions of its own; the session's ends before.
    pub(super) fn run_online(&mut self, create: &CreateIndex, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        let (statement, options) = (self.statement_context(Vec::new())?, self.begin_options(None));
        self.drop_active();
        let notices = create_index_online(&self.db, &self.database, &statement, options, create)?;
        notices.iter().for_each(|notice| out.notice(notice));
        Ok(Outcome::Tag("CREATE INDEX".into()))
    }

    /// Loads end with the transaction; without one, at once.
    fn remember_loads(&mut self, loads: Vec<u32>) {
        match self.active.as_mut() {
            Some(active) => active.loads.extend(loads),
            None => loads.into_iter().for_each(|index| self.db.loads.end(index)),
        }
    }
}

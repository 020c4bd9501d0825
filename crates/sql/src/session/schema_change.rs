//! DDL, from the session's side: the change runs in the session's transaction, which then sees the new catalog.

use super::Session;
use super::run::Outcome;
use crate::catalog::Changed;
use crate::catalog::view::View;
use crate::ddl::{Done, Run};
use crate::output::Output;
use crate::syntax::Ddl;
use crate::{SqlError, SqlState};
use std::sync::Arc;

impl Session {
    /// Runs a DDL statement. There must be a transaction.
    pub(super) fn run_ddl(&mut self, ddl: &Ddl, out: &mut dyn Output) -> Result<Outcome, SqlError> {
        self.settle_before_ddl()?;
        let statement = self.statement_context(Vec::new())?;
        let db = self.db.clone();
        let own = self.active.as_ref().map(|active| active.own.clone()).unwrap_or_default();
        let mut run = Run::begin(&db, &self.database, statement, &own, ddl)?;
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

    /// Loads end with the transaction; without one, at once.
    fn remember_loads(&mut self, loads: Vec<u32>) {
        match self.active.as_mut() {
            Some(active) => active.loads.extend(loads),
            None => loads.into_iter().for_each(|index| self.db.loads.end(index)),
        }
    }
}

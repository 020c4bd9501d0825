//! Tables that are new in their transaction: what is loaded into them beside it, in pieces. The rows of COPY are, and those of INSERT .. SELECT (decisions 52, 220, 225).

use super::Session;
use super::active::Active;
use crate::SqlError;
use crate::catalog::Uses;
use crate::catalog::reliance::version_of;
use crate::context::StatementContext;
use crate::ddl::Loader;
use crate::filled::Filled;
use crate::plan::{Execution, Filling, Plan};
use crate::transaction::Isolation;
use std::sync::Arc;

impl Active {
    /// Whether a table may be loaded beside the transaction: it was made or emptied in this very subtransaction, so that going back takes away the indexes that half a load has been written to; and
    /// nothing was written to it since.
    pub(super) fn may_load(&self, table: u32, filled: &Filled) -> bool {
        self.empty(filled).contains(&table)
    }

    /// Tables that are known to be empty, and unread.
    pub(super) fn empty(&self, filled: &Filled) -> Vec<u32> {
        let before = self.savepoints.last().map_or(0, |savepoint| savepoint.fresh);
        self.fresh.iter().skip(before).copied().filter(|table| !filled.contains(*table)).collect()
    }

    /// A plan is to read by what it has looked up. What has been read certified of a table, or is to stay as it is, must not be loaded; what `plan` itself fills it does not read.
    pub(super) fn note_reads(&self, uses: &Uses, plan: &dyn Plan, filled: &Filled) {
        if self.fresh.is_empty() || self.isolation == Isolation::ReadCommitted {
            return;
        }
        let fills = plan.filling().map(|filling| filling.table().id);
        for table in self.empty(filled).into_iter().filter(|table| Some(*table) != fills) {
            let version = self.view.snapshot().table(table).map(version_of);
            if version.is_some_and(|version| uses.tokens().contains(&version)) {
                filled.wrote(table);
            }
        }
    }
}

impl Session {
    /// Runs a plan.
    pub(super) fn execute_plan(
        &mut self,
        plan: &dyn Plan,
        context: &Arc<StatementContext>,
    ) -> Result<Execution, SqlError> {
        match plan.filling().filter(|filling| self.may_fill(*filling)) {
            Some(filling) => self.fill(filling, context),
            None => plan.execute(context),
        }
    }

    /// A load moves the transaction's snapshot up. At REPEATABLE READ that is more than is asked of what has been read.
    fn may_fill(&self, filling: &dyn Filling) -> bool {
        self.active.as_ref().is_some_and(|active| {
            active.isolation != Isolation::RepeatableRead && active.may_load(filling.table().id, &self.backend.filled)
        })
    }

    fn fill(&mut self, filling: &dyn Filling, context: &Arc<StatementContext>) -> Result<Execution, SqlError> {
        let table = filling.table();
        let mut loader = Loader::of_table(table, context.patience());
        let loaded = filling.load(context, &mut loader.into_db(&self.db)).and_then(|count| {
            loader.finish(&self.db, &context.txn, &mut |found| filling.twice(context, &found))?;
            Ok(count)
        });
        match loader.is_large() {
            // What was written lies below the table's indexes: another attempt would find it there.
            true => {
                self.is_half_done = loaded.is_err();
                self.remember_loads(loader.indexes());
            }
            // Nothing was written, but in the transaction, which is going back.
            false if loaded.is_err() => self.backend.filled.fresh(&[table.id]),
            false => {}
        }
        Ok(Execution::Done { tag: format!("INSERT 0 {}", loaded?), rows: Vec::new() })
    }
}

//! INSERT .. SELECT into a table that is new in its transaction: its rows are loaded beside the transaction, in pieces, as those of COPY are (decisions 52, 220, 225).

use super::Session;
use crate::SqlError;
use crate::context::StatementContext;
use crate::ddl::Loader;
use crate::plan::{Execution, Filling, Plan};
use crate::transaction::Isolation;
use std::sync::Arc;

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
        let indexes = table.indexes.iter().map(|index| (index.id, index.unique));
        let all = std::iter::once((table.primary.id, table.has_primary_key)).chain(indexes);
        let mut loader = Loader::new(all, context.patience());
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

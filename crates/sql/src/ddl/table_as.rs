//! CREATE TABLE AS, SELECT INTO.

use super::column::refuse_pseudo;
use super::create_table::empty_table;
use super::{Loader, Run};
use crate::catalog::Column;
use crate::context::StatementContext;
use crate::exec::table::TableAccess;
use crate::exec::write::RowImage;
use crate::plan::{self, Execution, PlanContext};
use crate::syntax::{Name, Planned};
use crate::transaction::{BeginOptions, Patience, TxnRef};
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Rows pulled at once.
const PULL_ROWS: usize = 1024;

impl Run<'_> {
    pub(super) fn create_table_as(
        &mut self,
        name: &Name,
        columns: &[String],
        if_not_exists: bool,
        query: &Arc<Planned>,
        text: &str,
        no_data: bool,
    ) -> Result<String, SqlError> {
        let schema = self.schema_for(name)?;
        if self.taken(&schema, &name.name, if_not_exists)? {
            return Ok("CREATE TABLE AS".into());
        }
        if query.as_of.is_some() {
            return Err(SqlError::unsupported("AS OF SYSTEM TIME in a statement that writes")
                .hint("Read the past in a transaction of its own."));
        }
        // What is stored are the numbers of reg-types, not their names.
        let context = PlanContext { inside: true, ..self.plan_context() };
        let plan = plan::prepare(&query.statement, text, &context)?;
        let (id, primary) = (self.new_oid()?, self.new_oid()?);
        let mut table = empty_table(&schema, &name.name, id, primary);
        if columns.len() > plan.fields().len() {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "too many column names were specified"));
        }
        for (at, field) in plan.fields().iter().enumerate() {
            let ty = if field.ty == SqlType::Unknown { SqlType::Text } else { field.ty.clone() };
            let name = columns.get(at).unwrap_or(&field.name).clone();
            refuse_pseudo(&name, &ty)?;
            if table.columns.iter().any(|c| c.name == name) {
                return Err(SqlError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("column \"{name}\" specified more than once"),
                ));
            }
            table.columns.push(Column {
                id: table.next_column,
                name,
                ty,
                nullable: true,
                default: None,
                missing: None,
                identity: None,
                owned_sequence: None,
                generated: None,
                stored: None,
                collation: None,
            });
            table.next_column += 1;
        }
        let access = TableAccess::new(&table)?;
        self.put_table(table)?;
        if no_data {
            self.fresh.push(id);
            return Ok("CREATE TABLE AS".into());
        }
        let mut loader = Loader::new([(primary, false)], self.statement.patience());
        let mut count = 0;
        let result = self.copy_rows(plan.as_ref(), &access, &mut loader, &mut count);
        self.end_load(loader, result, &mut |_| SqlError::new(SqlState::INTERNAL_ERROR, "two rows have one row id"))?;
        Ok(format!("SELECT {count}"))
    }

    /// What the query runs with. As a statement that is its whole transaction it reads one snapshot and is not certified: it would never end over a table
    /// that is written. (Nobody saw the new table before.)
    fn reader(&self, plan: &dyn plan::Plan) -> Result<Arc<StatementContext>, SqlError> {
        if !(self.alone && plan.is_read_only()) {
            return Ok(self.statement.clone());
        }
        let Patience { interrupt, deadline } = self.statement.patience();
        let as_of = Some(self.statement.txn.with(|t| t.snapshot()));
        let options = BeginOptions { as_of, read_only: true, interrupt, deadline, ..BeginOptions::default() };
        let mut inner = StatementContext::clone(&self.statement);
        inner.txn = TxnRef::new(self.db.kv.begin(&options)?);
        Ok(Arc::new(inner))
    }

    fn copy_rows(
        &self,
        plan: &dyn plan::Plan,
        access: &TableAccess,
        loader: &mut Loader,
        count: &mut u64,
    ) -> Result<(), SqlError> {
        let mut add = |rows: Vec<crate::types::Row>| {
            for row in rows {
                let image = RowImage::new(access, &row, self.db.kv.unique_id(), None)?;
                loader.put(self.db, image.key, image.value)?;
                *count += 1;
            }
            Ok::<_, SqlError>(())
        };
        match plan.execute(&self.reader(plan)?)? {
            Execution::Done { rows, .. } => add(rows),
            Execution::Rows(mut source) => loop {
                let rows = source.next(PULL_ROWS)?;
                if rows.is_empty() {
                    return Ok(());
                }
                add(rows)?;
                self.statement.check()?;
            },
        }
    }
}

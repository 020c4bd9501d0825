//! The direct planner: which planner plans which statement.

use super::analysis::Analysis;
use super::refusal::Planned;
use super::{Plan, PlanContext, insert, modify, select};
use crate::SqlError;
use sqlparser::ast::Statement;
use std::sync::Arc;

/// Plans a statement, or says why not.
pub fn plan(statement: &Statement, context: &PlanContext) -> Planned<Arc<dyn Plan>> {
    match statement {
        Statement::Query(query) => Ok(Arc::new(select::plan(query, Analysis::new(query, context))?)),
        Statement::Insert(insert) => Ok(Arc::new(insert::plan(insert, context)?)),
        Statement::Update(update) => Ok(Arc::new(modify::plan_update(update, context)?)),
        Statement::Delete(delete) => Ok(Arc::new(modify::plan_delete(delete, context)?)),
        other => Err(SqlError::unsupported(format!("this statement ({})", first_words(other))).into()),
    }
}

/// Whether the query engine plans statements of this kind.
pub fn may_run_in_engine(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(_))
}

fn first_words(statement: &Statement) -> String {
    statement.to_string().split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

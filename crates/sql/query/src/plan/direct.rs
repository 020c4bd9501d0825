//! The direct planner: which planner plans which statement.

use super::analysis::Analysis;
use super::refusal::Planned;
use super::{Plan, PlanContext, insert, modify, select};
use crate::SqlError;
use sqlparser::ast::{Query, SetExpr, Statement};
use std::sync::Arc;

/// Plans a statement, or says why not.
pub fn plan(statement: &Statement, context: &PlanContext) -> Planned<Arc<dyn Plan>> {
    match statement {
        Statement::Query(query) => match query.body.as_ref() {
            SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) => with(query, inner, context),
            _ => Ok(Arc::new(select::plan(query, Analysis::new(query, context))?)),
        },
        Statement::Insert(insert) => Ok(Arc::new(insert::plan(insert, context)?)),
        Statement::Update(update) => Ok(Arc::new(modify::plan(update, None, context)?)),
        Statement::Delete(delete) => Ok(Arc::new(modify::plan(delete, None, context)?)),
        other => Err(SqlError::unsupported(format!("this statement ({})", first_words(other))).into()),
    }
}

/// WITH in front of INSERT, UPDATE or DELETE.
fn with(query: &Query, inner: &Statement, context: &PlanContext) -> Planned<Arc<dyn Plan>> {
    let Some(with) = &query.with else { return plan(inner, context) };
    match inner {
        Statement::Insert(insert) => {
            let mut insert = insert.clone();
            if let Some(source) = &mut insert.source {
                // The names of the inner WITH come after, and hide those of the outer.
                let mut outer = with.clone();
                outer.cte_tables.extend(source.with.take().map(|with| with.cte_tables).unwrap_or_default());
                source.with = Some(outer);
            }
            Ok(Arc::new(insert::plan(&insert, context)?))
        }
        Statement::Update(update) => Ok(Arc::new(modify::plan(update, Some(with), context)?)),
        Statement::Delete(delete) => Ok(Arc::new(modify::plan(delete, Some(with), context)?)),
        other => plan(other, context),
    }
}

/// Whether the query engine plans statements of this kind.
pub(crate) fn may_run_in_engine(statement: &Statement) -> bool {
    let writes = |query: &Query| {
        matches!(query.body.as_ref(), SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_))
    };
    matches!(statement, Statement::Query(query) if !writes(query))
}

fn first_words(statement: &Statement) -> String {
    statement.to_string().split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

//! A planned query, as the session sees it.

use super::bind::{Binder, Output};
use super::explain;
use super::node::Node;
use super::presence::names_alone;
use super::run::{Prefix, Run, Source, open};
use super::scope::Scope;
use crate::SqlError;
use crate::context::StatementContext;
use crate::output::Field;
use crate::pg_catalog::{self, names};
use crate::plan::{Execution, Plan, PlanContext, RowSource};
use crate::types::{RegKind, Row, SqlType, Value};
use sqlparser::ast::Statement;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Plans a query.
///
/// # Errors
/// PostgreSQL's binding errors; 0A000 for what this engine does not do.
pub fn prepare(statement: &Statement, text: &str, context: &PlanContext) -> Result<Arc<dyn Plan>, SqlError> {
    let Statement::Query(query) = statement else {
        return Err(SqlError::unsupported(format!("{statement} in the query engine")));
    };
    let mut binder = Binder::new(context, words_of(text));
    binder.alone = names_alone(query);
    let planned = binder.query(query, &Scope::default())?;
    binder.settle_names();
    let mut planned = binder.known_columns(planned, 0);
    planned.node = explain::simplify(planned.node);
    let parameters = binder.params.finish()?;
    let fields: Vec<Field> = planned.columns.iter().map(field).collect();
    let printed = fields.iter().enumerate().filter_map(|(place, field)| match field.ty {
        SqlType::Reg(kind) => Some((place, kind)),
        _ => None,
    });
    let printed = printed.collect();
    Ok(Arc::new(QueryPlan { node: planned.node, parameters, fields, printed }))
}

/// The words of a statement, folded, and all that may be a quoted name in it; `None` if a name may be written in yet another way.
/// What is read without a word: [`Binder::read_unsaid`].
pub(super) fn words_of(text: &str) -> Option<BTreeSet<String>> {
    let lower = text.to_lowercase();
    if lower.contains("\"\"") || lower.contains("u&\"") {
        return None;
    }
    // A quoted name stands between two quotes that follow each other, wherever a string or a comment has more of them.
    let quoted = lower.split('"').filter(|_| lower.contains('"'));
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
    Some(words.chain(quoted).map(str::to_string).collect())
}

fn field(output: &Output) -> Field {
    let (table_oid, column) = output.origin.unwrap_or((0, 0));
    Field { name: output.name.clone(), ty: output.ty.clone(), table_oid, column }
}

/// A planned query.
struct QueryPlan {
    node: Arc<Node>,
    parameters: Vec<SqlType>,
    fields: Vec<Field>,
    /// Columns of reg-types, which leave as names.
    printed: Vec<(usize, RegKind)>,
}

impl Plan for QueryPlan {
    fn parameters(&self) -> &[SqlType] {
        &self.parameters
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError> {
        let run = Run::new(context);
        let source = open(&self.node, &Prefix::from(Vec::new()), &run)?;
        Ok(Execution::Rows(Box::new(Running { source, run, printed: self.printed.clone() })))
    }

    fn explain(&self) -> Vec<String> {
        explain::lines(&self.node)
    }

    fn is_read_only(&self) -> bool {
        // Functions such as nextval write outside the transaction.
        true
    }
}

/// The rows of a running query.
struct Running {
    source: Source,
    run: Arc<Run>,
    printed: Vec<(usize, RegKind)>,
}

impl RowSource for Running {
    fn next(&mut self, max: usize) -> Result<Vec<Row>, SqlError> {
        let mut rows = Vec::new();
        while rows.len() < max.max(1) {
            let mut row = Row::new();
            if !self.source.next(&mut row)? {
                break;
            }
            self.run.tick()?;
            for (place, kind) in &self.printed {
                if let Value::Oid(oid) = row[*place] {
                    row[*place] =
                        Value::Text(names::print(*kind, oid, Some(&pg_catalog::Source::of(&self.run.context)))?.into());
                }
            }
            rows.push(row);
        }
        Ok(rows)
    }
}

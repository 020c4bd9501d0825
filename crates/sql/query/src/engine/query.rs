//! A planned query, as the session sees it.

use super::bind::{Binder, Output};
use super::explain;
use super::node::Node;
use super::presence::names_alone;
use super::run::{Prefix, Run, Source, open};
use super::scope::Scope;
use super::walk::tables;
use crate::SqlError;
use crate::context::StatementContext;
use crate::explain::Operator;
use crate::output::Field;
use crate::pg_catalog::{self, names};
use crate::plan::watch::Watch;
use crate::plan::{Batch, Execution, Plan, PlanContext, RowSource};
use crate::types::{Array, RegKind, Row, SqlType, Value};
use crate::work;
use sqlparser::ast::Statement;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Units of work of keeping a word.
const WORD_UNITS: usize = 64;

/// Plans a query.
///
/// # Errors
/// PostgreSQL's binding errors; 0A000 for what this engine does not do.
pub fn prepare(statement: &Statement, text: &str, context: &PlanContext) -> Result<Arc<dyn Plan>, SqlError> {
    let Statement::Query(query) = statement else {
        return Err(SqlError::unsupported(format!("{statement} in the query engine")));
    };
    let mut binder = Binder::new(context, words_of(text)?);
    binder.alone = names_alone(query)?;
    let planned = binder.query(query, &Scope::default())?;
    binder.settle_names();
    let mut planned = binder.known_columns(planned, 0);
    planned.node = explain::simplify(planned.node);
    let parameters = binder.params.finish()?;
    let fields: Vec<Field> = planned.columns.iter().map(field).collect();
    let names = |(place, field): (usize, &Field)| field.ty.names().map(|kind| (place, kind));
    let printed = fields.iter().enumerate().filter(|_| !context.inside).filter_map(names).collect();
    Ok(Arc::new(QueryPlan { node: planned.node, parameters, fields, printed }))
}

/// The words of a statement, folded, and all that may be a quoted name in it; `None` if a name may be written in yet another way.
/// What is read without a word: [`Binder::read_unsaid`].
///
/// # Errors
/// 57014 where the statement was ended meanwhile.
pub(super) fn words_of(text: &str) -> Result<Option<BTreeSet<String>>, SqlError> {
    let lower = text.to_lowercase();
    if lower.contains("\"\"") || lower.contains("u&\"") {
        return Ok(None);
    }
    let mut all = BTreeSet::new();
    let mut add = |word: &str| -> Result<(), SqlError> {
        work::step(WORD_UNITS + word.len())?;
        if !all.contains(word) {
            all.insert(word.to_string());
        }
        Ok(())
    };
    // No name that stands without quotes begins with a digit.
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'));
    words.filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())).try_for_each(&mut add)?;
    // A quoted name stands between two quotes that follow each other, wherever a string or a comment has more of them.
    lower.split('"').filter(|_| lower.contains('"')).try_for_each(&mut add)?;
    Ok(Some(all))
}

pub(super) fn field(output: &Output) -> Field {
    let (table_oid, column) = output.origin.unwrap_or((0, 0));
    Field { name: output.name.clone(), ty: output.ty.clone(), table_oid, column }
}

/// A planned query.
struct QueryPlan {
    node: Arc<Node>,
    parameters: Vec<SqlType>,
    fields: Vec<Field>,
    /// Columns of reg-types, which leave as names where they leave the statement.
    printed: Vec<(usize, RegKind)>,
}

impl Plan for QueryPlan {
    fn parameters(&self) -> &[SqlType] {
        &self.parameters
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn gives_rows(&self) -> bool {
        true
    }

    fn execute(&self, context: &Arc<StatementContext>) -> Result<Execution, SqlError> {
        let run = Run::new(context);
        let source = open(&self.node, &Prefix::from(Vec::new()), &run).inspect_err(|_| run.end())?;
        // A client that takes bytes wants the number.
        let as_text = |(place, _): &&(usize, RegKind)| !run.context.is_binary(*place);
        let printed = self.printed.iter().filter(as_text).copied().collect();
        Ok(Execution::Rows(Box::new(Running { source, run, printed })))
    }

    fn explain(&self) -> Operator {
        explain::operator(&self.node)
    }

    fn watches(&self) -> Vec<Watch> {
        let mut watches = Vec::new();
        tables(&self.node, &mut |scan| watches.extend(scan.watch()));
        watches
    }

    fn is_direct(&self) -> bool {
        false
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

impl Drop for Running {
    fn drop(&mut self) {
        self.run.end();
    }
}

impl RowSource for Running {
    fn next(&mut self, max: usize) -> Result<Vec<Row>, SqlError> {
        let mut rows = Batch::new(max.max(1), 0);
        while !rows.is_full() {
            let mut row = Row::new();
            if !self.source.next(&mut row)? {
                break;
            }
            self.run.tick()?;
            for (place, kind) in &self.printed {
                if let Some(name) = printed(&row[*place], *kind, &self.run)? {
                    row[*place] = name;
                }
            }
            rows.push(row);
        }
        Ok(rows.into_rows())
    }
}

/// The name of the object that a value is the number of, or an array of names.
fn printed(value: &Value, kind: RegKind, run: &Run) -> Result<Option<Value>, SqlError> {
    Ok(match value {
        Value::Oid(oid) => {
            Some(Value::Text(names::print(kind, *oid, Some(&pg_catalog::Source::of(&run.context)))?.into()))
        }
        Value::Array(array) => {
            let name = |value: &Value| Ok::<_, SqlError>(printed(value, kind, run)?.unwrap_or_else(|| value.clone()));
            let values = array.values.iter().map(name).collect::<Result<_, _>>()?;
            Some(Value::Array(Arc::new(Array { element: SqlType::Text, values, dimensions: array.dimensions.clone() })))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kv;
    use crate::context::MemoryBudget;
    use crate::transaction::Patience;
    use crate::transaction::memory::MemoryKv;
    use crate::work::Limits;

    /// 300,000 rows of VALUES.
    fn text() -> String {
        format!("VALUES (1, x0){}", ", (1, x1)".repeat(300_000))
    }

    #[test]
    fn a_statement_that_was_ended_does_not_gather_its_words() {
        let (text, patience) = (text(), Patience::default());
        let kv: Arc<dyn Kv> = Arc::new(MemoryKv::new());
        let known = words_of("select A1, 2b FROM \"Quoted\" /* c */").unwrap().unwrap();
        assert!(["a1", "from", "quoted", "c"].iter().all(|word| known.contains(*word)));
        assert!(!known.contains("2b"));
        let statement = crate::stack::roomy(|| crate::syntax::parse(&text)).unwrap().remove(0).command;
        let crate::syntax::Command::Planned(planned) = statement else { panic!("not planned") };
        let _loan = Limits::new(patience.clone(), kv).lend(Arc::new(MemoryBudget::new(64 << 20)));
        let before = work::looks();
        assert!(words_of(&text).unwrap().unwrap().contains("x1"));
        names_alone(&planned.statement).unwrap();
        assert!(work::looks() - before > 30, "{} looks", work::looks() - before);
        patience.interrupt.raise();
        assert_eq!(words_of(&text).unwrap_err().state.as_str(), "57014");
        assert_eq!(names_alone(&planned.statement).unwrap_err().state.as_str(), "57014");
    }
}

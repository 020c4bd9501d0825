//! Expressions that descriptors keep as text: DEFAULT and CHECK.

use super::PlanContext;
use super::analysis::bind_context;
use crate::SqlError;
use crate::catalog::{Column, Filling, Table};
use crate::exec::formula::Formulas;
use crate::expr::{self, Expr, Parameters, Scope, assign};
use crate::types::SqlType;
use sqlparser::ast;

/// CHECK constraints of a table: names, and conditions over its columns by slot.
pub fn checks(table: &Table, context: &PlanContext) -> Result<Vec<(String, Expr)>, SqlError> {
    let mut scope = Scope::new();
    scope.add_relation(None, &table.name, table.columns.iter().map(|column| (column.name.as_str(), &column.ty)));
    // The first by name that is violated is told, as in PostgreSQL.
    let mut checks: Vec<_> = table.checks.iter().chain(&table.pending).collect();
    checks.sort_by(|a, b| a.name.cmp(&b.name));
    checks
        .into_iter()
        .map(|check| {
            let condition = parse(&check.expression)?;
            let context = bind_context(context);
            let bound = expr::bind_condition(&condition, "CHECK", &scope, &mut Parameters::none(), &context);
            Ok((check.name.clone(), bound.map_err(expr::BindError::into_sql)?))
        })
        .collect()
}

/// DEFAULT of each column, cast to its type; `None` is NULL.
pub fn defaults(table: &Table, context: &PlanContext) -> Result<Vec<Option<Expr>>, SqlError> {
    table.columns.iter().map(|column| default(column, context)).collect()
}

fn default(column: &Column, context: &PlanContext) -> Result<Option<Expr>, SqlError> {
    let text = match (&column.default, column.owned_sequence) {
        (Some(text), _) => text.clone(),
        // An identity column draws from the sequence that it owns.
        (None, Some(sequence)) if column.identity.is_some() => format!("nextval({sequence}::regclass)"),
        _ => return Ok(None),
    };
    let context = bind_context(context);
    let mut none = Parameters::none();
    // It may never be asked for.
    let bound =
        expr::bind_lazily(&parse(&text)?, &Scope::new(), &mut none, &context).map_err(expr::BindError::into_sql)?;
    assign(bound, &column.name, &column.ty, &mut none, &context).map(Some)
}

/// What a column that is not shown yet is computed of, over a row of the table by slot; `None` is NULL.
///
/// # Errors
/// What binding finds wrong; 42P17 for a formula that is not immutable: it would differ with who writes.
pub fn filling(table: &Table, context: &PlanContext) -> Result<Option<Expr>, SqlError> {
    let Some(Filling { column, of }) = &table.filling else { return Ok(None) };
    let Some(text) = of.as_ref().or(column.generated.as_ref()) else { return default(column, context) };
    Formulas::new(table).assigned(text, &column.name, &column.ty).map(Some)
}

/// The type that a value takes on its way into a column: without a length or precision, which assignment then applies. A
/// `CAST` to plain `character` would cut to one.
pub(crate) fn open_type(ty: &SqlType) -> SqlType {
    match ty {
        SqlType::Char(_) => SqlType::Text,
        SqlType::Array(element) => SqlType::Array(Box::new(open_type(element))),
        other => other.base(),
    }
}

/// Parses an expression of a descriptor.
pub fn parse(text: &str) -> Result<ast::Expr, SqlError> {
    crate::syntax::parse_expression(text).map_err(|error| {
        if error.is_of_the_moment() {
            return error;
        }
        let message = format!("an expression of the catalog cannot be read: {}", error.message);
        SqlError::new(crate::SqlState::INTERNAL_ERROR, message).detail(text.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::memory::MemoryBudget;
    use crate::transaction::memory::MemoryKv;
    use crate::transaction::{Interrupt, Patience};
    use crate::work::{Limits, UNITS_PER_LOOK, step};
    use std::sync::Arc;

    #[test]
    fn who_is_cancelled_while_an_expression_is_read_is_cancelled() {
        let state = |text| parse(text).map(drop).map_err(|e| e.state.as_str().to_string());
        assert_eq!(state("1 +").unwrap_err(), "XX000");
        let interrupt = Interrupt::default();
        interrupt.raise();
        let patience = Patience { interrupt, ..Patience::default() };
        // The next step looks.
        step(UNITS_PER_LOOK).unwrap();
        step(UNITS_PER_LOOK - 1).unwrap();
        let _loan = Limits::new(patience, Arc::new(MemoryKv::new())).lend(Arc::new(MemoryBudget::new(1 << 20)));
        assert_eq!(state("1 + 1").unwrap_err(), "57014");
    }
}

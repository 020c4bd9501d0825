//! Expressions that DDL evaluates by itself: constants, and values over a row.

use super::Run;
use crate::catalog::{Table, snapshot};
use crate::exec::evaluate;
use crate::expr::{self, BindContext, Expr, Parameters, Scope, assign, literals};
use crate::identifier::quote_qualified;
use crate::plan::PlanContext;
use crate::plan::scope::parse;
use crate::syntax::marks::written;
use crate::syntax::regclass::{each_named_relation, may_name_relations};
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use sqlparser::ast;
use std::ops::ControlFlow;

/// Functions whose value differs from row to row.
const VOLATILE: &[&str] = &[
    "nextval",
    "setval",
    "random",
    "gen_random_uuid",
    "uuid_generate_v4",
    "clock_timestamp",
    "timeofday",
    "unique_rowid",
];

impl Run<'_> {
    /// A constant expression as a value of a type.
    pub(super) fn constant(&self, text: &str, column: &str, ty: &SqlType) -> Result<Value, SqlError> {
        let context = self.plan_context();
        let bound = bind(text, &Scope::new(), column, ty, &context)?;
        evaluate::value(&bound, &[], &self.statement)
    }

    /// The text of an expression over a table's columns (or over none), with its times in one form: it means the same under every
    /// `DateStyle` and time zone.
    pub(super) fn settle_times(&self, text: String, table: Option<&Table>, ty: &SqlType) -> Result<String, SqlError> {
        let mut expr = parse(&text)?;
        let mut scope = Scope::new();
        if let Some(table) = table {
            scope.add_relation(None, &table.name, table.columns.iter().map(|c| (c.name.as_str(), &c.ty)));
        }
        let context = self.plan_context();
        let changed = literals::settle(&mut expr, |expr| bind_tree(expr, &scope, "", ty, &context).map(drop))?;
        if changed { written(expr) } else { Ok(text) }
    }

    /// The text of a default with the relations that its literals name named in full: it means them under every search path. What is not
    /// there is left to whoever binds it.
    pub(super) fn settle_sequences(&self, text: String) -> Result<String, SqlError> {
        if !may_name_relations(&text) {
            return Ok(text);
        }
        let mut expr = parse(&text)?;
        let settled = each_named_relation(&mut expr, |name| {
            let Some(relation) = self.named_by(name)? else { return Ok(None) };
            let schema = self.catalog().schema_by_id(snapshot::schema_of(&relation));
            Ok(schema.map(|schema| quote_qualified(Some(&schema.name), snapshot::name_of(&relation))))
        })?;
        if settled { written(expr) } else { Ok(text) }
    }

    /// An expression over the columns of a table (by slot), as a value of a type.
    pub(super) fn over_row(&self, text: &str, table: &Table, column: &str, ty: &SqlType) -> Result<Expr, SqlError> {
        let mut scope = Scope::new();
        scope.add_relation(None, &table.name, table.columns.iter().map(|c| (c.name.as_str(), &c.ty)));
        bind(text, &scope, column, ty, &self.plan_context())
    }
}

fn bind(text: &str, scope: &Scope, column: &str, ty: &SqlType, context: &PlanContext) -> Result<Expr, SqlError> {
    bind_tree(&parse(text)?, scope, column, ty, context)
}

/// Binds a tree; one of a type that is not known stays of its own.
fn bind_tree(
    tree: &ast::Expr,
    scope: &Scope,
    column: &str,
    ty: &SqlType,
    context: &PlanContext,
) -> Result<Expr, SqlError> {
    let bind_context = BindContext { settings: &context.settings, objects: Some(context), pace: &context.pace };
    let mut none = Parameters::none();
    let bound = expr::bind(tree, scope, &mut none, &bind_context).map_err(expr::BindError::into_sql)?;
    if *ty == SqlType::Unknown {
        return Ok(bound);
    }
    assign(bound, column, ty, &mut none, &bind_context)
}

/// Whether an expression's value may differ from row to row.
pub(super) fn is_volatile(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    VOLATILE.iter().any(|name| lower.contains(name))
}

/// Refuses what needs other rows than the one at hand; `what` is the place of the expression, in PostgreSQL's words.
///
/// # Errors
/// 0A000 for a subquery or a function that gives rows, 42803 for an aggregate, 42P20 for a window function.
pub(super) fn refuse_rows(text: &str, what: &str) -> Result<(), SqlError> {
    let mut found = Ok(());
    let _ = ast::visit_expressions(&parse(text)?, |e| {
        let (state, message) = match e {
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => {
                (SqlState::FEATURE_NOT_SUPPORTED, format!("cannot use subquery in {what}"))
            }
            ast::Expr::Function(call) => {
                let name = call.name.0.last().and_then(|part| part.as_ident()).map(crate::identifier::fold);
                let name = name.unwrap_or_default();
                if call.over.is_some() {
                    (SqlState(*b"42P20"), format!("window functions are not allowed in {what}s"))
                } else if expr::aggregate::Function::named(&name).is_some() {
                    (SqlState::GROUPING_ERROR, format!("aggregate functions are not allowed in {what}s"))
                } else if expr::function::is_set_returning(&name) {
                    let message = format!("set-returning functions are not allowed in {what}s");
                    (SqlState::FEATURE_NOT_SUPPORTED, message)
                } else {
                    return ControlFlow::Continue(());
                }
            }
            _ => return ControlFlow::Continue(()),
        };
        found = Err(SqlError::new(state, message));
        ControlFlow::Break(())
    });
    found
}

/// Whether an expression names a column.
pub(super) fn mentions(text: &str, column: &str) -> bool {
    let Ok(tree) = parse(text) else { return false };
    ast::visit_expressions(&tree, |e| match last_name(e) {
        Some(ident) if crate::identifier::fold(ident) == column => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// An expression with a column renamed.
pub(super) fn rename_column(text: &str, from: &str, to: &str) -> Result<String, SqlError> {
    let Ok(mut tree) = parse(text) else { return Ok(text.into()) };
    let _ = ast::visit_expressions_mut(&mut tree, |e| {
        let ident = match e {
            ast::Expr::Identifier(ident) => Some(ident),
            ast::Expr::CompoundIdentifier(parts) => parts.last_mut(),
            _ => None,
        };
        if let Some(ident) = ident
            && crate::identifier::fold(ident) == from
        {
            *ident = ast::Ident::with_quote('"', to);
        }
        ControlFlow::<()>::Continue(())
    });
    written(tree)
}

fn last_name(e: &ast::Expr) -> Option<&ast::Ident> {
    match e {
        ast::Expr::Identifier(ident) => Some(ident),
        ast::Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}

/// Values of a column's type that are kept in a descriptor: as text.
pub(super) fn as_text(value: &Value, ty: &SqlType) -> Option<String> {
    if value.is_null() {
        return None;
    }
    Some(value.to_text(ty, &crate::context::EvalSettings::default()))
}

/// 42703
pub(super) fn column_missing(table: &Table, name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
    )
}

/// The place of a column by name.
pub(super) fn column_at(table: &Table, name: &str) -> Result<usize, SqlError> {
    table.columns.iter().position(|c| c.name == name).ok_or_else(|| column_missing(table, name))
}

/// The place of a column by id.
pub(super) fn column_by_id(table: &Table, id: u16) -> Option<&crate::catalog::Column> {
    table.columns.iter().find(|c| c.id == id)
}

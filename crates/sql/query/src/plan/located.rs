//! The query that locates the rows of an UPDATE or DELETE: it gives their keys, then what SET computes, then what RETURNING reads of the
//! other items of FROM.

use super::analysis::Analysis;
use super::assignment;
use super::refusal::{Planned, Refusal};
use super::{Plan, PlanContext};
use crate::catalog::Table;
use crate::identifier::{fold, quote_identifier};
use crate::syntax::{self, Command};
use crate::types::SqlType;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    self, Ident, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Statement, TableFactor, TableWithJoins,
};
use std::sync::Arc;

/// The column of a table that is a row's key: no text of a statement holds its name. The engine gives it to the first item of FROM of
/// a query that locates.
pub(crate) const KEY_NAME: &str = "\0key";

/// The query around the select list.
pub struct Around<'a> {
    /// WITH.
    pub with: &'a str,
    /// FROM, the table that is written first.
    pub from: &'a str,
    /// The name of that table.
    pub target: &'a str,
}

/// Another item of FROM, and its columns.
pub struct Other {
    alias: String,
    columns: Vec<String>,
}

/// Names of the items of a join.
fn aliases(table: &TableWithJoins, out: &mut Vec<String>) {
    for factor in std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation)) {
        let (alias, name) = match factor {
            TableFactor::Table { alias, name, .. } | TableFactor::Function { alias, name, .. } => (alias, Some(name)),
            TableFactor::Derived { alias, .. } | TableFactor::UNNEST { alias, .. } => (alias, None),
            TableFactor::NestedJoin { table_with_joins, alias } => {
                if alias.is_none() {
                    aliases(table_with_joins, out);
                }
                (alias, None)
            }
            _ => continue,
        };
        let name = || name.and_then(|name| name.0.last()?.as_ident().map(fold));
        out.extend(alias.as_ref().map(|alias| fold(&alias.name)).or_else(name));
    }
}

/// The other items of FROM, whose columns go behind what the query gives so far, and into the scope of RETURNING.
pub fn others(
    from: &[TableWithJoins],
    around: &Around<'_>,
    analysis: &mut Analysis<'_>,
    list: &mut Vec<String>,
) -> Planned<Vec<Other>> {
    let mut names = Vec::new();
    from.iter().for_each(|table| aliases(table, &mut names));
    let mut out = Vec::with_capacity(names.len());
    for alias in names {
        let shown = quote_identifier(&alias);
        let text = format!("{}SELECT {shown}.*{}", around.with, around.from);
        let mut context = analysis.context.clone();
        context.parameter_hints = analysis.hints();
        let plan = crate::engine::prepare(&parsed(&text)?, &text, &context)?;
        let columns = plan.fields().iter().map(|field| field.name.clone()).collect();
        plan.fields().iter().for_each(|field| analysis.add_named_column(&alias, &field.name, &field.ty));
        // By their places: two of them may have one name.
        list.push(format!("{shown}.*"));
        out.push(Other { alias, columns });
    }
    Ok(out)
}

/// RETURNING with `*` written out.
pub(crate) fn expand(list: &[SelectItem], table: &Table, target: &str, others: &[Other]) -> Vec<SelectItem> {
    let item = |alias: &str, column: &String| {
        let parts = vec![Ident::with_quote('"', alias), Ident::with_quote('"', column)];
        SelectItem::UnnamedExpr(ast::Expr::CompoundIdentifier(parts))
    };
    let mut out = Vec::new();
    for entry in list {
        match entry {
            SelectItem::Wildcard(_) if !others.is_empty() => {
                out.extend(table.columns.iter().map(|column| item(target, &column.name)));
                out.extend(
                    others.iter().flat_map(|other| other.columns.iter().map(|column| item(&other.alias, column))),
                );
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                let alias = name.0.last().and_then(|part| part.as_ident()).map(fold);
                match others.iter().find(|other| Some(&other.alias) == alias.as_ref()) {
                    Some(other) => out.extend(other.columns.iter().map(|column| item(&other.alias, column))),
                    None => out.push(entry.clone()),
                }
            }
            other => out.push(other.clone()),
        }
    }
    out
}

fn parsed(text: &str) -> Result<Statement, SqlError> {
    match syntax::parse_printed(text).ok().and_then(|mut parsed| parsed.pop()).map(|parsed| parsed.command) {
        Some(Command::Planned(planned)) => Ok(planned.statement),
        _ => Err(SqlError::new(SqlState::INTERNAL_ERROR, "a statement could not be written as a query")),
    }
}

/// Puts the key into its place, the first of the select list.
fn with_key(statement: &mut Statement, target: &str) {
    if let Statement::Query(query) = statement
        && let SetExpr::Select(select) = query.body.as_mut()
        && let Some(first) = select.projection.first_mut()
    {
        let parts = vec![Ident::with_quote('"', target), Ident::with_quote('"', KEY_NAME)];
        *first = SelectItem::UnnamedExpr(ast::Expr::CompoundIdentifier(parts));
    }
}

/// Marks the columns of subqueries that several columns are set from, by their places in the select list.
fn mark_shared(statement: &mut Statement, shared: &[(usize, usize)]) {
    let Statement::Query(query) = statement else { return };
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    for (place, number) in shared {
        if let Some(SelectItem::UnnamedExpr(ast::Expr::Cast { expr, .. })) = select.projection.get_mut(*place) {
            assignment::mark(expr, *number);
        }
    }
}

/// Plans the query; its parameters are the statement's. `shared`: places of the select list that are columns of shared subqueries, with
/// their numbers.
pub fn plan(
    text: &str,
    target: &str,
    shared: &[(usize, usize)],
    analysis: Analysis<'_>,
    refusal: &Refusal,
) -> Planned<(Vec<SqlType>, Arc<dyn Plan>)> {
    let mut statement = parsed(text)?;
    with_key(&mut statement, target);
    mark_shared(&mut statement, shared);
    let (types, context) = analysis.partial();
    let mut context: PlanContext = context.clone();
    context.parameter_hints = types.iter().map(|ty| (*ty != SqlType::Unknown).then(|| ty.clone())).collect();
    context.locates = true;
    context.inside = true;
    let plan = match crate::engine::prepare(&statement, text, &context) {
        Err(error) if error.state == SqlState::FEATURE_NOT_SUPPORTED => {
            if let Refusal::Engine(part) = refusal {
                return Err(Refusal::Engine(part).into_error().into());
            }
            return Err(error.into());
        }
        other => other?,
    };
    let mut parameters = types;
    // WITH may name parameters that the rest does not.
    parameters.resize(parameters.len().max(plan.parameters().len()), SqlType::Unknown);
    for (ty, found) in parameters.iter_mut().zip(plan.parameters()) {
        if *ty == SqlType::Unknown {
            *ty = found.clone();
        }
    }
    Ok((parameters, plan))
}

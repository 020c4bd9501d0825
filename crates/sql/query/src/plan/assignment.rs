//! SET of several columns at once, taken apart into one assignment for each.

use super::refusal::Planned;
use super::scope;
use crate::expr::row_fields;
use crate::syntax::marks::written;
use crate::{SqlError, SqlState};
use sqlparser::ast::{Assignment, AssignmentTarget, Expr, Ident, Query, Select, SelectItem, SetExpr, TableFactor};

/// The name of a shared subquery begins so: no text of a statement holds it.
const SHARED: &str = "\0set";
/// Instead of it, in a text that is to be read again.
const PLAIN: &str = "s";

/// A column of a subquery that several columns are set from: it runs once for all of them.
pub struct Shared<'a> {
    /// Which of the statement's.
    pub number: usize,
    /// Which column, of how many.
    pub column: usize,
    /// Columns that are set.
    pub columns: usize,
    /// The subquery.
    pub query: &'a Query,
}

/// `(a, b) = (1, 2)`, `(a, b) = ROW(1, 2)` and `(a, b) = (SELECT x, y ..)` become assignments of one column each. The subquery's columns
/// are [`shared`].
///
/// # Errors
/// 42601 if there are not as many values as columns, 0A000 for another source.
pub(crate) fn take_apart(assignments: &mut Vec<Assignment>) -> Planned<()> {
    if assignments.iter().all(|assignment| matches!(assignment.target, AssignmentTarget::ColumnName(_))) {
        return Ok(());
    }
    let mut out = Vec::with_capacity(assignments.len() + 1);
    for (number, Assignment { target, value }) in std::mem::take(assignments).into_iter().enumerate() {
        let AssignmentTarget::Tuple(names) = target else {
            out.push(Assignment { target, value });
            continue;
        };
        let values = match (row_fields(&value), subquery(&value)) {
            (Some(fields), _) => fields.into_owned(),
            (None, Some(query)) => columns_of(query, names.len(), number)?,
            (None, None) => {
                let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).into());
            }
        };
        if values.len() != names.len() {
            let message = "number of columns does not match number of values";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).into());
        }
        let one = |(name, value)| Assignment { target: AssignmentTarget::ColumnName(name), value };
        out.extend(names.into_iter().zip(values).map(one));
    }
    *assignments = out;
    Ok(())
}

fn subquery(value: &Expr) -> Option<&Query> {
    match value {
        Expr::Subquery(query) => Some(query),
        Expr::Nested(inner) => subquery(inner),
        _ => None,
    }
}

/// The columns of a subquery, each as a subquery of one column.
fn columns_of(query: &Query, count: usize, number: usize) -> Result<Vec<Expr>, SqlError> {
    let given = match query.body.as_ref() {
        SetExpr::Select(select) => {
            let plain =
                |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
            select.projection.iter().all(plain).then_some(select.projection.len())
        }
        SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        _ => None,
    };
    let names: Vec<String> = (1..=given.unwrap_or(count)).map(|place| format!("c{place}")).collect();
    let text = written(query.clone())?;
    let column = |name: &String| {
        let mut value = scope::parse(&format!("(SELECT {name} FROM ({text}) AS {PLAIN}({}))", names.join(", ")))?;
        rename(&mut value, &format!("{SHARED}{number}"));
        Ok(value)
    };
    names.iter().map(column).collect()
}

/// The derived table of a query, if that is all its FROM.
fn derived(select: &Select) -> Option<&TableFactor> {
    let [from] = select.from.as_slice() else { return None };
    from.joins.is_empty().then_some(&from.relation)
}

/// The shared subquery that a value is a column of.
pub fn shared(query: &Query) -> Option<Shared<'_>> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let Some(TableFactor::Derived { subquery, alias: Some(alias), .. }) = derived(select) else { return None };
    let number = alias.name.value.strip_prefix(SHARED)?.parse().ok()?;
    let [SelectItem::UnnamedExpr(Expr::Identifier(column))] = select.projection.as_slice() else { return None };
    let column = alias.columns.iter().position(|known| known.name.value == column.value)?;
    Some(Shared { number, column, columns: alias.columns.len(), query: subquery })
}

/// Whether a query of so many columns can be what is [`shared`].
///
/// # Errors
/// 42601 if there are not as many values as columns.
pub(crate) fn check_width(shared: &Shared<'_>, given: usize) -> Result<(), SqlError> {
    if given != shared.columns {
        let message = "number of columns does not match number of values";
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
    }
    Ok(())
}

fn rename(value: &mut Expr, name: &str) {
    if let Expr::Subquery(query) = value
        && let SetExpr::Select(select) = query.body.as_mut()
        && let [from] = select.from.as_mut_slice()
        && let TableFactor::Derived { alias: Some(alias), .. } = &mut from.relation
    {
        alias.name = Ident::with_quote('"', name);
    }
}

/// A value as a text may hold it, and which shared subquery it is a column of: [`mark`] says so again in what is read from the text.
pub fn plain(value: &Expr) -> (Expr, Option<usize>) {
    let mut plain = value.clone();
    let Expr::Subquery(query) = value else { return (plain, None) };
    let number = shared(query).map(|shared| shared.number);
    if number.is_some() {
        rename(&mut plain, PLAIN);
    }
    (plain, number)
}

/// Undoes [`plain`].
pub fn mark(value: &mut Expr, number: usize) {
    rename(value, &format!("{SHARED}{number}"));
}

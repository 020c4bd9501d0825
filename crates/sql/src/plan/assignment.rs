//! SET of several columns at once, taken apart into one assignment for each.

use super::refusal::Planned;
use super::scope;
use crate::expr::row_fields;
use crate::{SqlError, SqlState};
use sqlparser::ast::{Assignment, AssignmentTarget, Expr, Query, SelectItem, SetExpr};

/// `(a, b) = (1, 2)`, `(a, b) = ROW(1, 2)` and `(a, b) = (SELECT x, y ..)` become assignments of one column each. The subquery is then
/// asked once for each column.
///
/// # Errors
/// 42601 if there are not as many values as columns, 0A000 for another source.
pub fn take_apart(assignments: &mut Vec<Assignment>) -> Planned<()> {
    if assignments.iter().all(|assignment| matches!(assignment.target, AssignmentTarget::ColumnName(_))) {
        return Ok(());
    }
    let mut out = Vec::with_capacity(assignments.len() + 1);
    for Assignment { target, value } in std::mem::take(assignments) {
        let AssignmentTarget::Tuple(names) = target else {
            out.push(Assignment { target, value });
            continue;
        };
        let values = match (row_fields(&value), subquery(&value)) {
            (Some(fields), _) => fields.into_owned(),
            (None, Some(query)) => columns_of(query, names.len())?,
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
fn columns_of(query: &Query, count: usize) -> Result<Vec<Expr>, SqlError> {
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
    let column = |name: &String| scope::parse(&format!("(SELECT {name} FROM ({query}) AS s({}))", names.join(", ")));
    names.iter().map(column).collect()
}

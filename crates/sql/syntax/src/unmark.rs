//! Takes off the marks of `reshape`, once there is a tree.

use super::reshape::{CALLS, NOTHING, SYMMETRIC};
use super::{element, join_alias, tree};
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, OnConflictAction,
    OnInsert, Query, Select, SelectItem, Statement, UpdateTableFromKind, VisitMut, VisitorMut,
};
use std::fmt::{self, Write};
use std::ops::ControlFlow;

/// Writes BETWEEN SYMMETRIC out: between the bounds in either order. Takes what marks an empty select list out of it. Makes calls of [`CALLS`].
///
/// # Errors
/// Those of aliases of joins: names that are twice, or not there.
pub(super) fn mend<T: VisitMut>(node: &mut T) -> Result<(), SqlError> {
    match node.visit(&mut Mend::default()) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn or_break(done: Result<(), SqlError>) -> ControlFlow<SqlError> {
    match done {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Bytes of text that stand twice because of BETWEEN SYMMETRIC, in one statement, at most: one within another doubles what it is in. A tree takes
/// some hundred bytes for each.
const TWICE_BYTES_MAX: usize = 200_000;

#[derive(Default)]
struct Mend {
    /// Bytes of text that stand twice already.
    twice: usize,
}

/// Counts the bytes of a text, up to a bound.
struct Count {
    left: usize,
}

impl Write for Count {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.checked_sub(text.len()).ok_or(fmt::Error)?;
        Ok(())
    }
}

impl VisitorMut for Mend {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        or_break(join_alias::resolve_order(query))
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        let is_mark =
            |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value == NOTHING);
        select.projection.retain(|item| !is_mark(item));
        or_break(join_alias::resolve(select))
    }

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<SqlError> {
        match statement {
            Statement::Update(update) => {
                update.assignments.iter_mut().for_each(element::mend);
                return or_break(join_alias::resolve_written(update, |update| match &mut update.from {
                    Some(UpdateTableFromKind::AfterSet(tables)) => tables,
                    _ => &mut [],
                }));
            }
            Statement::Delete(delete) => {
                return or_break(join_alias::resolve_written(delete, |delete| {
                    delete.using.as_deref_mut().unwrap_or_default()
                }));
            }
            Statement::Insert(insert) => {
                if let Some(OnInsert::OnConflict(conflict)) = &mut insert.on
                    && let OnConflictAction::DoUpdate(update) = &mut conflict.action
                {
                    update.assignments.iter_mut().for_each(element::mend);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Expr::CompoundFieldAccess { access_chain, .. } = expr {
            // The name of a field is one, whatever word it is.
            for access in access_chain {
                if let AccessExpr::Dot(Expr::Identifier(field)) = access
                    && let Some(name) = called(field)
                {
                    *field = Ident::with_quote_and_span('"', field.span, name);
                }
            }
        } else if let Expr::Identifier(ident) = expr
            && let Some(name) = called(ident)
        {
            *expr = tree::bare_call(Ident::with_span(ident.span, name));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Expr::Between { expr: value, negated, low, high } = expr
            && let Some(bound) = marked(low)
        {
            let mut count = Count { left: TWICE_BYTES_MAX - self.twice };
            if write!(count, "{value}{bound}{high}").is_err() {
                let message =
                    "BETWEEN SYMMETRIC is too long, or too deep within itself: what it compares is written out twice";
                let hint = "Pass long values as parameters, name what is compared in a subquery, or use least() and greatest().";
                return ControlFlow::Break(SqlError::new(SqlState::TOO_COMPLEX, message).hint(hint));
            }
            self.twice = TWICE_BYTES_MAX - count.left;
            let between = |low: &Expr, high: &Expr| Expr::Between {
                expr: value.clone(),
                negated: *negated,
                low: Box::new(low.clone()),
                high: Box::new(high.clone()),
            };
            let op = if *negated { BinaryOperator::And } else { BinaryOperator::Or };
            let (left, right) = (Box::new(between(bound, high)), Box::new(between(high, bound)));
            *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
        }
        ControlFlow::Continue(())
    }
}

/// The one of [`CALLS`] that a name is.
fn called(ident: &Ident) -> Option<&'static str> {
    let same = |call: &&&str| ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case(call);
    CALLS.iter().find(same).copied()
}

/// The bound in a mark.
fn marked(low: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = low else { return None };
    let name = function.name.0.last()?.as_ident()?;
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(bound))] if name.value == SYMMETRIC => Some(bound),
        _ => None,
    }
}

//! What execution asks of expressions.

use crate::SqlError;
use crate::context::StatementContext;
use crate::expr::Expr;
use crate::types::{Row, Value};

/// The value of an expression over a row.
#[inline]
pub fn value(expr: &Expr, row: &[Value], context: &StatementContext) -> Result<Value, SqlError> {
    expr.eval(row, context)
}

/// Whether a condition holds: NULL does not.
#[inline]
pub fn truth(expr: &Expr, row: &[Value], context: &StatementContext) -> Result<bool, SqlError> {
    expr.eval_bool(row, context)
}

/// The values of several expressions.
pub fn row(exprs: &[Expr], row: &[Value], context: &StatementContext) -> Result<Row, SqlError> {
    exprs.iter().map(|expr| expr.eval(row, context)).collect()
}

/// Adds the places of the columns that an expression reads.
pub fn columns(expr: &Expr, to: &mut Vec<usize>) {
    to.extend(expr.columns());
}

/// The place, if an expression is a column and nothing else.
pub fn column(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Column { index, .. } => Some(*index),
        _ => None,
    }
}

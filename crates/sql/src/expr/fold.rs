//! Folding: immutable expressions of constants become literals while binding.

use super::{Expr, Volatility};
use crate::SqlError;
use crate::types::SqlType;

/// Evaluates an expression whose parts are literals, if it is immutable.
///
/// # Errors
/// What evaluation finds wrong: `1/0` fails when it is bound, as in PostgreSQL.
pub(super) fn fold(expr: Expr) -> Result<Expr, SqlError> {
    if matches!(expr, Expr::Literal(..)) || !foldable(&expr) {
        return Ok(expr);
    }
    let ty = expr.ty();
    let value = expr.eval_in(&[], None)?;
    Ok(Expr::Literal(value, ty))
}

fn foldable(expr: &Expr) -> bool {
    let literal = |expr: &Expr| matches!(expr, Expr::Literal(_, ty) if *ty != SqlType::Unknown);
    match expr {
        Expr::Call { function, .. } if function.volatility != Volatility::Immutable => false,
        Expr::Cast { from, to, .. } => expr_children_all(expr, &literal) && cast_is_immutable(from, to),
        // A branch not taken may hold an error, so these are left to evaluation.
        Expr::Case { .. } | Expr::Coalesce(..) | Expr::And(_) | Expr::Or(_) => false,
        Expr::Row(_) => false,
        _ => expr_children_all(expr, &literal),
    }
}

fn expr_children_all(expr: &Expr, test: &dyn Fn(&Expr) -> bool) -> bool {
    let mut all = !matches!(expr, Expr::Column { .. } | Expr::Parameter { .. });
    expr.for_each_child(&mut |child| all &= test(child));
    all
}

/// Whether a cast needs no settings and no catalog.
pub(super) fn cast_is_immutable(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    let stringlike = |ty: &T| matches!(ty, T::Text | T::Varchar(_) | T::Char(_) | T::Name | T::SingleChar | T::Unknown);
    let settled = |ty: &T| {
        !matches!(
            ty,
            T::Timestamptz
                | T::Reg(_)
                | T::Date
                | T::Timestamp
                | T::Time
                | T::Interval
                | T::Bytea
                | T::Float4
                | T::Float8
        )
    };
    match (from, to) {
        (T::Reg(_), T::Oid | T::Int4 | T::Int8) => true,
        (T::Reg(_), _) => false,
        (a, T::Reg(_)) => !stringlike(a),
        (T::Array(a), T::Array(b)) => cast_is_immutable(a, b),
        (T::Timestamptz, b) | (b, T::Timestamptz) => *b == T::Timestamptz,
        (a, b) if stringlike(a) && stringlike(b) => true,
        (a, b) if stringlike(a) => settled(b) || matches!(b, T::Float4 | T::Float8 | T::Interval | T::Bytea),
        (a, b) if stringlike(b) => settled(a) || matches!(a, T::Date | T::Timestamp | T::Time | T::Interval),
        _ => true,
    }
}

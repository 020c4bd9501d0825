//! Folding: immutable expressions of constants become literals while binding.

use super::{Expr, Volatility};
use crate::types::{SqlType, Value, heap_bytes};
use crate::{SqlError, SqlState};

/// A greater value stays the expression that makes it: plans are kept, and a short text must not keep a long value with them.
pub(crate) const FOLDED_BYTES_MAX: usize = 16 << 10;

/// What came of a try; `None` if it failed.
///
/// # Errors
/// 57014: that the statement was ended is no answer to what was tried.
pub(super) fn unless_ended<T>(tried: Result<T, SqlError>) -> Result<Option<T>, SqlError> {
    match tried {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.state == SqlState::QUERY_CANCELED => Err(error),
        Err(_) => Ok(None),
    }
}

/// Evaluates an expression whose parts are literals, if it is immutable. One that fails stays as it is: it may stand where it is
/// never asked for ([`settle`] tells).
///
/// # Errors
/// 57014 if the statement is ended meanwhile.
pub(super) fn fold(expr: Expr) -> Result<Expr, SqlError> {
    if matches!(expr, Expr::Literal(..)) || !foldable(&expr) {
        return Ok(expr);
    }
    Ok(match unless_ended(expr.eval_in(&[], None))? {
        Some(value) if heap_bytes(&value) <= FOLDED_BYTES_MAX => Expr::Literal(value, expr.ty()),
        _ => expr,
    })
}

impl Expr {
    /// Its value, if it reads no row and no parameter, asks nothing of a session, and does not fail.
    pub fn constant(&self) -> Option<Value> {
        match self {
            Expr::Literal(value, _) => Some(value.clone()),
            _ if self.columns().is_empty() => self.eval_in(&[], None).ok(),
            _ => None,
        }
    }
}

/// Looks for constants that fail where they will be asked for: `1/0` fails when it is planned, as in PostgreSQL, but not in a branch
/// that constants rule out.
///
/// # Errors
/// What evaluation finds wrong.
pub fn settle(expr: &Expr) -> Result<(), SqlError> {
    match expr {
        Expr::Literal(..) | Expr::Column { .. } | Expr::Parameter { .. } => return Ok(()),
        Expr::And(parts) => return settle_until(parts, |part| truth(part) == Some(false)),
        Expr::Or(parts) => return settle_until(parts, |part| truth(part) == Some(true)),
        Expr::Coalesce(parts, _) => {
            return settle_until(parts, |part| matches!(part, Expr::Literal(value, _) if !value.is_null()));
        }
        Expr::Case { operand, branches, otherwise, .. } => {
            if let Some((operand, _)) = operand {
                settle(operand)?;
            }
            for (when, then) in branches {
                settle(when)?;
                let taken = match (operand, when) {
                    (None, when) if is_literal(when) => Some(truth(when) == Some(true)),
                    (Some((operand, ty)), Expr::Literal(when, _)) => match operand.as_ref() {
                        Expr::Literal(value, _) => {
                            Some(!value.is_null() && !when.is_null() && value.compare(when, ty).is_eq())
                        }
                        _ => None,
                    },
                    _ => None,
                };
                if taken != Some(false) {
                    settle(then)?;
                }
                if taken == Some(true) {
                    return Ok(());
                }
            }
            return otherwise.as_deref().map_or(Ok(()), settle);
        }
        _ => {}
    }
    let mut found = Ok(());
    expr.for_each_child(&mut |child| {
        if found.is_ok() {
            found = settle(child);
        }
    });
    found?;
    if foldable(expr) {
        expr.eval_in(&[], None)?;
    }
    Ok(())
}

/// The parts up to the first that decides.
fn settle_until(parts: &[Expr], decides: impl Fn(&Expr) -> bool) -> Result<(), SqlError> {
    for part in parts {
        settle(part)?;
        if decides(part) {
            break;
        }
    }
    Ok(())
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(..))
}

fn truth(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Literal(Value::Bool(value), _) => Some(*value),
        _ => None,
    }
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
        let ty = if let T::Array(element) = ty { element } else { ty };
        !matches!(
            ty,
            T::Timestamptz(_)
                | T::Reg(_)
                | T::Date
                | T::Timestamp(_)
                | T::Time(_)
                | T::Timetz(_)
                | T::Interval(_)
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
        (T::Timestamptz(_), b) | (b, T::Timestamptz(_)) => matches!(b, T::Timestamptz(_)),
        (a, b) if stringlike(a) && stringlike(b) => true,
        (a, b) if stringlike(a) => settled(b) || matches!(b, T::Float4 | T::Float8 | T::Bytea),
        (T::Time(_), T::Timetz(_)) => false,
        (a, b) if stringlike(b) => settled(a) || matches!(a, T::Time(_) | T::Timetz(_)),
        _ => true,
    }
}

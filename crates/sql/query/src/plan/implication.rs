//! Does a query's WHERE imply the predicate of a partial index?
//!
//! By simple rules, each sound: every conjunct of the predicate stands among the conditions, or is `x IS NOT NULL` where a
//! condition can only hold if x is not NULL, or bounds an expression by a constant that a condition bounds closer. What needs more
//! thought than that leaves the index unused. A parameter implies nothing: plans are made before values are known.

use crate::expr::{CompareOp, Expr, split_conjuncts};
use crate::types::SqlType;

/// Whether all conditions together imply a predicate over the same row.
pub fn implies(conditions: &[Expr], predicate: &Expr) -> bool {
    split_conjuncts(predicate.clone()).iter().all(|wanted| conditions.iter().any(|given| implies_one(given, wanted)))
}

fn implies_one(given: &Expr, wanted: &Expr) -> bool {
    if given == wanted || plain(given) == plain(wanted) {
        return true;
    }
    match wanted {
        Expr::IsNull { expr, negated: true } => needs(given, expr),
        Expr::Or(choices) => choices.iter().any(|choice| implies_one(given, choice)),
        Expr::Compare { op, ty, left, right } => bounds(given, *op, ty, left, right),
        Expr::InList { expr, list, negated: false, .. } => match given {
            Expr::Compare { op: CompareOp::Eq, left, right, .. } => left == expr && list.contains(right),
            Expr::InList { expr: same, list: fewer, negated: false, .. } => {
                same == expr && fewer.iter().all(|item| list.contains(item))
            }
            _ => false,
        },
        _ => false,
    }
}

/// A condition in one of the ways to write it: `b`, not `b = true`; the constant on the right.
fn plain(expr: &Expr) -> Expr {
    use crate::types::Value::Bool;
    match expr {
        Expr::Compare { op: CompareOp::Eq, left, right, .. } if **right == Expr::Literal(Bool(true), SqlType::Bool) => {
            (**left).clone()
        }
        Expr::Compare { op: CompareOp::Eq, left, right, .. }
            if **right == Expr::Literal(Bool(false), SqlType::Bool) =>
        {
            Expr::Not(left.clone())
        }
        Expr::Compare { op, ty, left, right } if matches!(**left, Expr::Literal(..)) => {
            Expr::Compare { op: op.flipped(), ty: ty.clone(), left: right.clone(), right: left.clone() }
        }
        other => other.clone(),
    }
}

/// Whether a condition can only hold if an expression is not NULL.
fn needs(given: &Expr, expr: &Expr) -> bool {
    let strict = |operand: &Expr| holds_null(operand, expr);
    match given {
        Expr::Compare { left, right, .. } => strict(left) || strict(right),
        Expr::InList { expr: operand, .. } => strict(operand),
        Expr::AnyAll { left, all: false, .. } => strict(left),
        Expr::Call { function, args, .. } if function.strict => args.iter().any(strict),
        // Not of ANY: `NOT NULL = ANY ('{}')` holds.
        Expr::Not(inner) => {
            matches!(**inner, Expr::Compare { .. } | Expr::InList { .. } | Expr::Call { .. }) && needs(inner, expr)
        }
        Expr::Column { ty: SqlType::Bool, .. } => given == expr,
        _ => false,
    }
}

/// Whether an operand is NULL wherever an expression in it is.
fn holds_null(operand: &Expr, expr: &Expr) -> bool {
    if operand == expr {
        return true;
    }
    match operand {
        Expr::Cast { expr: inner, .. } => holds_null(inner, expr),
        Expr::Arithmetic { left, right, .. } => holds_null(left, expr) || holds_null(right, expr),
        Expr::Call { function, args, .. } if function.strict => args.iter().any(|arg| holds_null(arg, expr)),
        _ => false,
    }
}

/// Whether `given` compares the same expression with a constant that leaves no value outside of `left op right`.
fn bounds(given: &Expr, op: CompareOp, ty: &SqlType, left: &Expr, right: &Expr) -> bool {
    use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let (given, wanted) = (plain(given), right);
    let Expr::Compare { op: has, ty: same, left: of, right: closer } = &given else { return false };
    let (Expr::Literal(closer, _), Expr::Literal(wanted, _)) = (&**closer, wanted) else { return false };
    if **of != *left || same != ty || closer.is_null() || wanted.is_null() {
        return false;
    }
    let order = closer.compare(wanted, ty);
    match (has, op) {
        // A single value: is it inside?
        (Eq, op) => op.holds(order),
        (Gt, Gt) | (GtEq, GtEq) | (Gt, GtEq) => order.is_ge(),
        (GtEq, Gt) | (GtEq, NotEq) => order.is_gt(),
        (Lt, Lt) | (LtEq, LtEq) | (Lt, LtEq) => order.is_le(),
        (LtEq, Lt) | (LtEq, NotEq) => order.is_lt(),
        (Gt, NotEq) => order.is_ge(),
        (Lt, NotEq) => order.is_le(),
        _ => false,
    }
}

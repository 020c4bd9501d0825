//! NOT, moved inward to comparisons, which keys of an index can stand for: `NOT id > 5` is `id <= 5`.
//!
//! It holds in the logic of three values: a comparison is NULL where its negation is, NOT of an AND is the OR of what is negated. What is evaluated is the
//! same, in the same order. Texts of constraints and views keep the NOT that was written.

use crate::expr::{CompareOp, Expr};

/// A condition, as those that must all hold, without NOT where it can be moved into what it negates.
pub fn inward(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::Not(inner) => match negated(*inner) {
            Expr::And(parts) => parts,
            one => vec![one],
        },
        other => vec![other],
    }
}

fn negated(expr: Expr) -> Expr {
    match expr {
        Expr::Not(inner) => match *inner {
            Expr::Not(inner) => negated(*inner),
            other => other,
        },
        Expr::Compare { op, ty, left, right } => Expr::Compare { op: opposite(op), ty, left, right },
        Expr::And(parts) => Expr::Or(parts.into_iter().map(negated).collect()),
        Expr::Or(parts) => Expr::And(parts.into_iter().map(negated).collect()),
        other => Expr::Not(Box::new(other)),
    }
}

/// The comparison that holds where this one does not: values of a type are in a total order.
fn opposite(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq => CompareOp::NotEq,
        CompareOp::NotEq => CompareOp::Eq,
        CompareOp::Lt => CompareOp::GtEq,
        CompareOp::GtEq => CompareOp::Lt,
        CompareOp::Gt => CompareOp::LtEq,
        CompareOp::LtEq => CompareOp::Gt,
    }
}

//! Questions about bound expressions.

use crate::expr::{Expr, Volatility};

/// Adds the places of the columns that an expression reads.
pub fn columns(expr: &Expr, to: &mut Vec<usize>) {
    expr.visit(&mut |part| {
        if let Expr::Column { index, .. } = part {
            to.push(*index);
        }
    });
}

/// Whether an expression reads only columns whose places `allowed` accepts.
pub(crate) fn reads_only(expr: &Expr, allowed: &dyn Fn(usize) -> bool) -> bool {
    let mut out = true;
    expr.visit(&mut |part| {
        if let Expr::Column { index, .. } = part {
            out = out && allowed(*index);
        }
    });
    out
}

/// Whether an expression calls something whose result differs from call to call.
pub fn is_volatile(expr: &Expr) -> bool {
    expr.volatility() == Volatility::Volatile
}

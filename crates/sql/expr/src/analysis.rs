//! What planners ask of expressions: their parts, columns, volatility, conjuncts.

use super::fold::cast_is_immutable;
use super::{Expr, Volatility};
use crate::types::{SqlType, Value};

/// Cuts a condition at its ANDs.
pub fn split_conjuncts(expr: Expr) -> Vec<Expr> {
    match expr {
        Expr::And(parts) => parts.into_iter().flat_map(split_conjuncts).collect(),
        Expr::Literal(Value::Bool(true), _) => vec![],
        other => vec![other],
    }
}

/// Puts conjuncts together again; `None` if there are none.
pub fn conjunction(mut parts: Vec<Expr>) -> Option<Expr> {
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(Expr::And(parts)),
    }
}

/// Calls `$f` on each direct part of an expression; `$iter` is `iter` or `iter_mut`, as the expression is borrowed.
macro_rules! each_child {
    ($expr:expr, $f:expr, $iter:ident) => {
        match $expr {
            Expr::Literal(..) | Expr::Column { .. } | Expr::Parameter { .. } => {}
            Expr::Compare { left, right, .. }
            | Expr::Arithmetic { left, right, .. }
            | Expr::IsDistinct { left, right, .. }
            | Expr::NullIf { left, right, .. }
            | Expr::AnyAll { left, array: right, .. } => {
                $f(left);
                $f(right);
            }
            Expr::And(list)
            | Expr::Or(list)
            | Expr::Coalesce(list, _)
            | Expr::Row(list)
            | Expr::Extreme { list, .. }
            | Expr::Call { args: list, .. }
            | Expr::Array { items: list, .. } => list.$iter().for_each($f),
            Expr::Not(expr) | Expr::IsNull { expr, .. } | Expr::IsBool { expr, .. } | Expr::Cast { expr, .. } => {
                $f(expr)
            }
            Expr::InList { expr: first, list, .. } | Expr::Subscript { array: first, indexes: list, .. } => {
                $f(first);
                list.$iter().for_each($f);
            }
            Expr::Case { operand, branches, otherwise, .. } => {
                operand.$iter().for_each(|(operand, _)| $f(operand));
                for (when, then) in branches {
                    $f(when);
                    $f(then);
                }
                otherwise.$iter().for_each(|otherwise| $f(otherwise));
            }
        }
    };
}

impl Expr {
    /// Calls `f` on each direct part.
    pub fn for_each_child<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        each_child!(self, f, iter);
    }

    /// Calls `f` on each direct part, to change it.
    pub fn for_each_child_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        each_child!(self, f, iter_mut);
    }

    /// Calls `f` on this expression and all its parts.
    pub fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        f(self);
        self.for_each_child(&mut |child| child.visit(f));
    }

    /// Places of the columns it reads, in order, each once.
    pub fn columns(&self) -> Vec<usize> {
        let mut found = Vec::new();
        self.visit(&mut |expr| {
            if let Expr::Column { index, .. } = expr {
                found.push(*index);
            }
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Moves columns to other places in the row.
    pub fn map_columns(&mut self, place: &dyn Fn(usize) -> usize) {
        if let Expr::Column { index, .. } = self {
            *index = place(*index);
        }
        self.for_each_child_mut(&mut |child| child.map_columns(place));
    }

    /// The greatest volatility of its parts; parameters are stable.
    pub fn volatility(&self) -> Volatility {
        let mut worst = Volatility::Immutable;
        self.visit(&mut |expr| {
            let own = match expr {
                Expr::Call { function, .. } => function.volatility,
                Expr::Parameter { .. } => Volatility::Stable,
                Expr::Cast { from, to, .. } if !cast_is_immutable(from, to) => Volatility::Stable,
                _ => Volatility::Immutable,
            };
            worst = worst.max(own);
        });
        worst
    }

    /// Whether its value depends on nothing but the row, today and after any upgrade: what an index may keep. Texts of times and
    /// dates are left out, as in PostgreSQL, where they follow settings.
    pub fn is_immutable(&self) -> bool {
        use SqlType::{Char, Name, Text, Time, Timestamptz, Timetz, Unknown, Varchar};
        let string = |ty: &SqlType| matches!(ty, Text | Varchar(_) | Char(_) | Name | Unknown);
        let mut fixed = self.volatility() == Volatility::Immutable;
        self.visit(&mut |expr| {
            if let Expr::Cast { from, to, .. } = expr {
                let plain = matches!(from, Time(_) | Timetz(_));
                let today = matches!((from, to), (Time(_) | Timestamptz(_), Timetz(_)));
                fixed &= !(today || !plain && from.is_time() && string(to) || string(from) && to.is_time());
            }
        });
        fixed
    }
}

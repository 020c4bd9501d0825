//! What planners ask of expressions: their parts, columns, volatility, conjuncts.

use super::fold::cast_is_immutable;
use super::{Expr, Volatility};
use crate::types::Value;

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

impl Expr {
    /// Calls `f` on each direct part.
    pub fn for_each_child<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            Expr::Literal(..) | Expr::Column { .. } | Expr::Parameter { .. } => {}
            Expr::Compare { left, right, .. }
            | Expr::Arithmetic { left, right, .. }
            | Expr::IsDistinct { left, right, .. } => {
                f(left);
                f(right);
            }
            Expr::And(list) | Expr::Or(list) | Expr::Coalesce(list, _) | Expr::Row(list) => list.iter().for_each(f),
            Expr::Extreme { list, .. } => list.iter().for_each(f),
            Expr::Call { args, .. } => args.iter().for_each(f),
            Expr::Array { items, .. } => items.iter().for_each(f),
            Expr::Not(expr) | Expr::IsNull { expr, .. } | Expr::IsBool { expr, .. } | Expr::Cast { expr, .. } => {
                f(expr)
            }
            Expr::InList { expr, list, .. } => {
                f(expr);
                list.iter().for_each(f);
            }
            Expr::AnyAll { left, array, .. } => {
                f(left);
                f(array);
            }
            Expr::NullIf { left, right, .. } => {
                f(left);
                f(right);
            }
            Expr::Subscript { array, indexes, .. } => {
                f(array);
                indexes.iter().for_each(f);
            }
            Expr::Case { operand, branches, otherwise, .. } => {
                if let Some((operand, _)) = operand {
                    f(operand);
                }
                for (when, then) in branches {
                    f(when);
                    f(then);
                }
                if let Some(otherwise) = otherwise {
                    f(otherwise);
                }
            }
        }
    }

    /// Calls `f` on each direct part, to change it.
    pub fn for_each_child_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        match self {
            Expr::Literal(..) | Expr::Column { .. } | Expr::Parameter { .. } => {}
            Expr::Compare { left, right, .. }
            | Expr::Arithmetic { left, right, .. }
            | Expr::IsDistinct { left, right, .. } => {
                f(left);
                f(right);
            }
            Expr::And(list) | Expr::Or(list) | Expr::Coalesce(list, _) | Expr::Row(list) => list.iter_mut().for_each(f),
            Expr::Extreme { list, .. } => list.iter_mut().for_each(f),
            Expr::Call { args, .. } => args.iter_mut().for_each(f),
            Expr::Array { items, .. } => items.iter_mut().for_each(f),
            Expr::Not(expr) | Expr::IsNull { expr, .. } | Expr::IsBool { expr, .. } | Expr::Cast { expr, .. } => {
                f(expr)
            }
            Expr::InList { expr, list, .. } => {
                f(expr);
                list.iter_mut().for_each(f);
            }
            Expr::AnyAll { left, array, .. } => {
                f(left);
                f(array);
            }
            Expr::NullIf { left, right, .. } => {
                f(left);
                f(right);
            }
            Expr::Subscript { array, indexes, .. } => {
                f(array);
                indexes.iter_mut().for_each(f);
            }
            Expr::Case { operand, branches, otherwise, .. } => {
                if let Some((operand, _)) = operand {
                    f(operand);
                }
                for (when, then) in branches {
                    f(when);
                    f(then);
                }
                if let Some(otherwise) = otherwise {
                    f(otherwise);
                }
            }
        }
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

    /// Whether its value is the same for all rows of a statement: no columns, nothing volatile.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.visit(&mut |expr| match expr {
            Expr::Column { .. } => constant = false,
            Expr::Call { function, .. } => constant &= function.volatility != Volatility::Volatile,
            _ => {}
        });
        constant
    }
}

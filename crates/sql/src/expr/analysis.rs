//! What planners ask of expressions: columns, volatility, conjuncts, comparisons of a column with a value.

use super::fold::cast_is_immutable;
use super::{CompareOp, Expr, Volatility};
use crate::types::{Numeric, SqlType, Value};

/// `column op value`, from a conjunct: what an index can use.
#[derive(Clone, Debug)]
pub struct ColumnComparison<'a> {
    /// Place of the column.
    pub column: usize,
    /// Type of the column.
    pub column_ty: SqlType,
    /// The comparison, the column on its left.
    pub op: CompareOp,
    /// What it is compared with: no columns in it, nothing volatile.
    pub value: &'a Expr,
    /// Type in which they are compared.
    pub compared_as: SqlType,
}

/// A value brought to the type of the column that it is compared with: see [`ColumnComparison::bound`].
#[derive(Clone, Debug, PartialEq)]
pub enum KeyBound {
    /// `column op value`, the value being of the column's type (the operator may have changed: `i < 2.5` is `i <= 2`).
    Value(CompareOp, Value),
    /// No row can satisfy it: NULL, or a number that the column cannot hold.
    Never,
    /// Every row does whose column is not NULL.
    Always,
}

impl ColumnComparison<'_> {
    /// Brings the evaluated value to the column's type.
    pub fn bound(&self, value: Value) -> KeyBound {
        if value.is_null() {
            return KeyBound::Never;
        }
        let (low, high) = match self.column_ty {
            SqlType::Int2 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            SqlType::Int4 => (i64::from(i32::MIN), i64::from(i32::MAX)),
            SqlType::Int8 => (i64::MIN, i64::MAX),
            _ => return KeyBound::Value(self.op, value),
        };
        let narrow = |v: i64| match self.column_ty {
            SqlType::Int2 => Value::Int2(v as i16),
            SqlType::Int4 => Value::Int4(v as i32),
            _ => Value::Int8(v),
        };
        match &value {
            Value::Int2(_) | Value::Int4(_) | Value::Int8(_) => {
                let wide = value.as_i64().unwrap_or(0);
                if wide < low {
                    self.outside(false)
                } else if wide > high {
                    self.outside(true)
                } else {
                    KeyBound::Value(self.op, narrow(wide))
                }
            }
            Value::Numeric(number) => self.numeric_bound(number, low, high, narrow),
            _ => KeyBound::Value(self.op, value),
        }
    }

    fn outside(&self, above: bool) -> KeyBound {
        match self.op {
            CompareOp::Eq => KeyBound::Never,
            CompareOp::NotEq => KeyBound::Always,
            CompareOp::Lt | CompareOp::LtEq if above => KeyBound::Always,
            CompareOp::Gt | CompareOp::GtEq if !above => KeyBound::Always,
            _ => KeyBound::Never,
        }
    }

    fn numeric_bound(&self, number: &Numeric, low: i64, high: i64, narrow: impl Fn(i64) -> Value) -> KeyBound {
        if number.compare(&Numeric::from(low)).is_lt() {
            return self.outside(false);
        }
        if number.compare(&Numeric::from(high)).is_gt() {
            return self.outside(true);
        }
        let Some(floor) = number.floor().ok().and_then(|n| n.to_i64()) else { return KeyBound::Never };
        if Numeric::from(floor).compare(number).is_eq() {
            return KeyBound::Value(self.op, narrow(floor));
        }
        match self.op {
            CompareOp::Eq => KeyBound::Never,
            CompareOp::NotEq => KeyBound::Always,
            CompareOp::Lt | CompareOp::LtEq => KeyBound::Value(CompareOp::LtEq, narrow(floor)),
            CompareOp::Gt | CompareOp::GtEq => KeyBound::Value(CompareOp::Gt, narrow(floor)),
        }
    }
}

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
            Expr::Compare { left, right, .. } | Expr::Arithmetic { left, right, .. } | Expr::IsDistinct { left, right, .. } => {
                f(left);
                f(right);
            }
            Expr::And(list) | Expr::Or(list) | Expr::Coalesce(list, _) | Expr::Row(list) => list.iter().for_each(f),
            Expr::Extreme { list, .. } => list.iter().for_each(f),
            Expr::Call { args, .. } => args.iter().for_each(f),
            Expr::Array { items, .. } => items.iter().for_each(f),
            Expr::Not(expr) | Expr::IsNull { expr, .. } | Expr::IsBool { expr, .. } | Expr::Cast { expr, .. } => f(expr),
            Expr::InList { expr, list, .. } => {
                f(expr);
                list.iter().for_each(f);
            }
            Expr::AnyAll { left, array, .. } => {
                f(left);
                f(array);
            }
            Expr::NullIf { left, right, compared, .. } => {
                f(left);
                f(right);
                if let Some(pair) = compared {
                    f(&pair.0);
                    f(&pair.1);
                }
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
            Expr::Compare { left, right, .. } | Expr::Arithmetic { left, right, .. } | Expr::IsDistinct { left, right, .. } => {
                f(left);
                f(right);
            }
            Expr::And(list) | Expr::Or(list) | Expr::Coalesce(list, _) | Expr::Row(list) => list.iter_mut().for_each(f),
            Expr::Extreme { list, .. } => list.iter_mut().for_each(f),
            Expr::Call { args, .. } => args.iter_mut().for_each(f),
            Expr::Array { items, .. } => items.iter_mut().for_each(f),
            Expr::Not(expr) | Expr::IsNull { expr, .. } | Expr::IsBool { expr, .. } | Expr::Cast { expr, .. } => f(expr),
            Expr::InList { expr, list, .. } => {
                f(expr);
                list.iter_mut().for_each(f);
            }
            Expr::AnyAll { left, array, .. } => {
                f(left);
                f(array);
            }
            Expr::NullIf { left, right, compared, .. } => {
                f(left);
                f(right);
                if let Some(pair) = compared {
                    f(&mut pair.0);
                    f(&mut pair.1);
                }
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

    /// The column that it is, perhaps widened: an integer column compared with a wider number is cast to it.
    fn plain_column(&self) -> Option<(usize, &SqlType)> {
        match self {
            Expr::Column { index, ty } => Some((*index, ty)),
            Expr::Cast { expr, from, to, explicit: false } => match (expr.as_ref(), from, to) {
                (Expr::Column { index, ty }, SqlType::Int2 | SqlType::Int4, SqlType::Int4 | SqlType::Int8) => Some((*index, ty)),
                (Expr::Column { index, ty }, SqlType::Int2 | SqlType::Int4 | SqlType::Int8, SqlType::Numeric(None)) => {
                    Some((*index, ty))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// If it compares a column with something constant, both; the comparison is turned so that the column is on the left.
    pub fn as_column_comparison(&self) -> Option<ColumnComparison<'_>> {
        let Expr::Compare { op, ty, left, right } = self else { return None };
        let (side, value, op) = match (left.plain_column(), right.plain_column()) {
            (Some(column), None) if right.is_constant() => (column, right, *op),
            (None, Some(column)) if left.is_constant() => (column, left, op.flipped()),
            _ => return None,
        };
        usable(side.1, ty).then(|| ColumnComparison {
            column: side.0,
            column_ty: side.1.clone(),
            op,
            value,
            compared_as: ty.clone(),
        })
    }

    /// If it is `column IN (constants)`, the column and the list. The elements are of the type compared in; bring each to the
    /// column's by [`ColumnComparison::bound`] of the comparison that is given.
    pub fn as_column_in_list(&self) -> Option<(ColumnComparison<'_>, &[Expr])> {
        let Expr::InList { ty, expr, list, negated: false } = self else { return None };
        let (column, column_ty) = expr.plain_column()?;
        if !usable(column_ty, ty) || !list.iter().all(Expr::is_constant) {
            return None;
        }
        let comparison = ColumnComparison {
            column,
            column_ty: column_ty.clone(),
            op: CompareOp::Eq,
            value: list.first()?,
            compared_as: ty.clone(),
        };
        Some((comparison, list))
    }

    /// If it is `column = ANY (constant array)`, the comparison with the array as its value.
    pub fn as_column_any(&self) -> Option<ColumnComparison<'_>> {
        let Expr::AnyAll { op: CompareOp::Eq, ty, left, array, all: false } = self else { return None };
        let (column, column_ty) = left.plain_column()?;
        (usable(column_ty, ty) && array.is_constant()).then(|| ColumnComparison {
            column,
            column_ty: column_ty.clone(),
            op: CompareOp::Eq,
            value: array,
            compared_as: ty.clone(),
        })
    }
}

/// Whether the order in which they are compared is the order of the column's keys.
fn usable(column: &SqlType, compared: &SqlType) -> bool {
    match (column, compared) {
        (SqlType::Char(_), SqlType::Char(_)) => true,
        (SqlType::Char(_), _) => false,
        (SqlType::Varchar(_) | SqlType::Text | SqlType::Name, SqlType::Text | SqlType::Varchar(_) | SqlType::Name) => true,
        (SqlType::Oid | SqlType::Reg(_), SqlType::Oid) => true,
        (SqlType::Int2 | SqlType::Int4 | SqlType::Int8, SqlType::Int4 | SqlType::Int8 | SqlType::Numeric(_)) => true,
        (a, b) => a.base() == b.base(),
    }
}

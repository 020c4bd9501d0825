//! What share of a table's rows a condition lets through.
//!
//! Conditions are taken for independent of each other, but for those that bound one column from both sides. What is not known has the shares that
//! PostgreSQL assumes: a third of the rows for a comparison.

use crate::expr::function::MIDNIGHT;
use crate::expr::{CompareOp, Expr};
use crate::statistics::{ColumnStatistics, Key, UNKNOWN_SHARE};
use crate::types::calendar::DAY_US;
use crate::types::{SqlType, Value};
use std::borrow::Cow;

/// A grouping of which nothing is known has this part of its rows.
pub(crate) const GROUP_SHARE: f64 = 0.1;
/// Share of rows that match a pattern.
const PATTERN_SHARE: f64 = 0.1;
/// Share of rows that are equal to something of which nothing is known.
const EQUAL_SHARE: f64 = 0.005;
/// The least share between two bounds.
const RANGE_SHARE_MIN: f64 = 0.0001;
/// Share of rows between two bounds of a column one of which is not known: `BETWEEN $1 AND $2` means few. PostgreSQL's DEFAULT_RANGE_INEQ_SEL.
const RANGE_SHARE: f64 = 0.005;
/// Share of rows of which a boolean is true of which nothing is known.
const TRUE_SHARE: f64 = 0.5;
/// Elements that an array is taken to have.
const ARRAY_VALUES: f64 = 10.0;

/// What is known of the column in a place of the row, and its type; `None`: nothing, or it is of another table.
pub type Columns<'f, 'a> = &'f (dyn Fn(usize) -> Option<(&'a ColumnStatistics, &'a SqlType)> + 'f);

/// What is known of columns, and the values of parameters, if it is known what those are.
#[derive(Clone, Copy)]
pub struct Given<'f, 'a> {
    /// See [`Columns`].
    pub columns: Columns<'f, 'a>,
    /// By the numbers of the parameters; none before an execution.
    pub values: &'f [Value],
}

impl Given<'_, '_> {
    /// What an expression comes to, if that does not depend on a row.
    fn value<'e>(&self, expr: &'e Expr) -> Option<Cow<'e, Value>>
    where
        Self: 'e,
    {
        match expr {
            Expr::Literal(value, _) => Some(Cow::Borrowed(value)),
            Expr::Parameter { index, .. } => self.values.get(*index).map(Cow::Borrowed),
            _ if self.values.is_empty() || !has_parameter(expr) => expr.constant().map(Cow::Owned),
            _ => with(expr, self.values).constant().map(Cow::Owned),
        }
    }
}

/// Whether an expression waits for a value.
pub(super) fn has_parameter(expr: &Expr) -> bool {
    let mut found = false;
    expr.visit(&mut |part| found |= matches!(part, Expr::Parameter { .. }));
    found
}

/// An expression with values in the places of parameters.
fn with(expr: &Expr, values: &[Value]) -> Expr {
    let mut whole = expr.clone();
    fill(&mut whole, values);
    whole
}

fn fill(expr: &mut Expr, values: &[Value]) {
    match expr {
        Expr::Parameter { index, ty } => {
            if let Some(value) = values.get(*index) {
                *expr = Expr::Literal(value.clone(), ty.clone());
            }
        }
        other => other.for_each_child_mut(&mut |child| fill(child, values)),
    }
}

/// What bounds a column from below and from above.
struct Bounds<'a> {
    column: &'a ColumnStatistics,
    low: Side,
    high: Side,
}

/// Bounds of a column on one side.
#[derive(Default)]
struct Side {
    /// The tightest of those that are known, and whether what is equal to it lies below it.
    known: Option<(Key, bool)>,
    /// There is one whose value is not known yet.
    open: bool,
}

/// The share of rows for which all expressions are true.
pub fn all<'e>(exprs: impl IntoIterator<Item = &'e Expr>, columns: Columns<'_, '_>) -> f64 {
    all_given(exprs, Given { columns, values: &[] })
}

/// The same, where the values of parameters are known.
pub fn all_given<'e>(exprs: impl IntoIterator<Item = &'e Expr>, of: Given<'_, '_>) -> f64 {
    let (mut share, mut bounds) = (1.0, Vec::<Bounds<'_>>::new());
    let mut rest: Vec<&Expr> = exprs.into_iter().collect();
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::And(parts) => rest.extend(parts),
            _ => match bound(expr, of) {
                Some(Bound { column, key, beyond, is_upper, .. }) => {
                    let at = match bounds.binary_search_by_key(&column.id, |bounds| bounds.column.id) {
                        Ok(at) => at,
                        Err(at) => {
                            bounds.insert(at, Bounds { column, low: Side::default(), high: Side::default() });
                            at
                        }
                    };
                    let Some(Bounds { low, high, .. }) = bounds.get_mut(at) else { continue };
                    let Some(key) = key else {
                        if is_upper {
                            high.open = true
                        } else {
                            low.open = true
                        }
                        continue;
                    };
                    let next = (key, beyond);
                    // The tighter one counts.
                    match is_upper {
                        true => high.known = Some(high.known.take().map_or(next.clone(), |known| known.min(next))),
                        false => low.known = low.known.take().max(Some(next)),
                    }
                }
                None => share *= one(expr, of),
            },
        }
    }
    bounds.into_iter().for_each(|bounds| share *= between(bounds));
    share
}

/// Share of rows between the bounds of a column.
fn between(Bounds { column, low, high }: Bounds<'_>) -> f64 {
    // What is not known is asked of both sides together, where there are both.
    let unknown = match (low.open, high.open) {
        (false, false) => 1.0,
        (true, true) => RANGE_SHARE,
        (true, false) if high.known.is_some() => return RANGE_SHARE,
        (false, true) if low.known.is_some() => return RANGE_SHARE,
        _ => UNKNOWN_SHARE,
    };
    if low.known.is_none() && high.known.is_none() {
        return unknown;
    }
    let above = high.known.map_or(1.0 - column.nulls, |(high, with)| below(column, &high, with));
    // Places between two bounds are not known so well that a single value could be taken away, or left out.
    let least = match &low.known {
        Some((low, false)) => column.equal(Some(low)).min(above),
        _ => 0.0,
    };
    let under = low.known.map_or(0.0, |(low, _)| column.below(&low));
    unknown * (above - under).max(least).max(RANGE_SHARE_MIN)
}

/// Share of rows below a value, or up to it.
fn below(column: &ColumnStatistics, key: &Key, with: bool) -> f64 {
    let own = if with { column.equal(Some(key)) } else { 0.0 };
    (column.below(key) + own).min(1.0 - column.nulls)
}

/// `column < constant` and its like.
struct Bound<'a> {
    column: &'a ColumnStatistics,
    /// The constant; `None` if its value is not known yet.
    key: Option<Key>,
    /// Whether rows that are equal to the constant lie below the bound.
    beyond: bool,
    /// The constant was a moment within the day that it is taken for.
    is_cut: bool,
    is_upper: bool,
}

fn bound<'a>(expr: &Expr, of: Given<'_, 'a>) -> Option<Bound<'a>> {
    let Expr::Compare { op, left, right, .. } = expr else { return None };
    let (column, value, op) = match (column_of(left, of.columns), column_of(right, of.columns)) {
        (Some(column), None) => (column, right, *op),
        (None, Some(column)) => (column, left, op.flipped()),
        _ => return None,
    };
    let is_cut = is_within_day(value, column.1, of);
    // The day that a moment is within begins before it.
    let (beyond, is_upper) = match op {
        CompareOp::Lt | CompareOp::LtEq => (is_cut || op == CompareOp::LtEq, true),
        CompareOp::Gt | CompareOp::GtEq => (is_cut || op == CompareOp::Gt, false),
        CompareOp::Eq | CompareOp::NotEq => return None,
    };
    Some(Bound { column: column.0, key: key_of(value, column.1, of), beyond, is_cut, is_upper })
}

/// Whether a constant beside a date is a moment that is no midnight.
fn is_within_day(value: &Expr, ty: &SqlType, of: Given<'_, '_>) -> bool {
    if *ty != SqlType::Date {
        return false;
    }
    let moment = match of.value(value).as_deref() {
        Some(Value::Timestamp(us) | Value::Timestamptz(us)) => *us,
        _ => 0,
    };
    moment.rem_euclid(DAY_US) != 0
}

fn one(expr: &Expr, of: Given<'_, '_>) -> f64 {
    match expr {
        Expr::Literal(..) | Expr::Parameter { .. } => match of.value(expr).as_deref() {
            Some(Value::Bool(true)) => 1.0,
            Some(_) => 0.0,
            None => UNKNOWN_SHARE,
        },
        Expr::And(parts) => all_given(parts, of),
        Expr::Or(parts) => 1.0 - parts.iter().map(|part| 1.0 - one(part, of)).product::<f64>(),
        Expr::Not(inner) => 1.0 - one(inner, of),
        Expr::Compare { op: CompareOp::Eq, left, right, .. } => equal(left, right, of),
        Expr::Compare { op: CompareOp::NotEq, left, right, .. } => 1.0 - equal(left, right, of),
        Expr::Compare { .. } => match bound(expr, of) {
            Some(Bound { column, key: Some(key), beyond, is_upper: true, .. }) => below(column, &key, beyond),
            Some(Bound { column, key: Some(key), is_cut, .. }) => 1.0 - column.nulls - below(column, &key, is_cut),
            _ => UNKNOWN_SHARE,
        },
        Expr::IsNull { expr, negated } => {
            let nulls = column_of(expr, of.columns).map_or(EQUAL_SHARE, |(column, _)| column.nulls);
            if *negated { 1.0 - nulls } else { nulls }
        }
        Expr::InList { expr, list, negated, .. } => {
            let share = list.iter().map(|value| equal(expr, value, of)).sum::<f64>().min(1.0);
            if *negated { 1.0 - share } else { share }
        }
        Expr::AnyAll { op: CompareOp::Eq, left, array, all: false, .. } => {
            match (column_of(left, of.columns), of.value(array).as_deref()) {
                (Some((column, ty)), Some(Value::Array(array))) => {
                    let key = |value: &Value| Key::of(value, ty);
                    array.values.iter().map(|value| column.equal(key(value).as_ref())).sum::<f64>().min(1.0)
                }
                (Some((column, _)), _) => (ARRAY_VALUES * column.equal(None)).min(1.0),
                _ => UNKNOWN_SHARE,
            }
        }
        Expr::Call { function, .. } if matches!(function.name, "~~" | "~~*" | "~" | "~*") => PATTERN_SHARE,
        Expr::Call { function, .. } if matches!(function.name, "!~~" | "!~~*" | "!~" | "!~*") => 1.0 - PATTERN_SHARE,
        Expr::Column { .. } => match column_of(expr, of.columns) {
            Some((column, ty)) => column.equal(Key::of(&Value::Bool(true), ty).as_ref()),
            None => TRUE_SHARE,
        },
        _ => UNKNOWN_SHARE,
    }
}

/// The share of rows in which two expressions are equal.
fn equal(left: &Expr, right: &Expr, of: Given<'_, '_>) -> f64 {
    match (column_of(left, of.columns), column_of(right, of.columns)) {
        (Some((_, ty)), None) if is_within_day(right, ty, of) => 0.0,
        (None, Some((_, ty))) if is_within_day(left, ty, of) => 0.0,
        (Some((column, ty)), None) => column.equal(key_of(right, ty, of).as_ref()),
        (None, Some((column, ty))) => column.equal(key_of(left, ty, of).as_ref()),
        (Some((a, _)), Some((b, _))) => 1.0 / a.distinct.max(b.distinct).max(1.0),
        (None, None) => EQUAL_SHARE,
    }
}

/// The column of the table that an expression is, maybe cast to where it can be compared.
pub(crate) fn column_of<'a>(expr: &Expr, of: Columns<'_, 'a>) -> Option<(&'a ColumnStatistics, &'a SqlType)> {
    match expr {
        Expr::Cast { expr, .. } => column_of(expr, of),
        // A date beside a timestamp.
        Expr::Call { function, args, .. } if function.name == MIDNIGHT => column_of(args.first()?, of),
        Expr::Column { index, .. } => of(*index),
        _ => None,
    }
}

/// A constant as a value of a column.
fn key_of(expr: &Expr, ty: &SqlType, of: Given<'_, '_>) -> Option<Key> {
    let (value, from) = (of.value(expr)?, expr.ty());
    if from == *ty {
        return Key::of(&value, ty);
    }
    let literal = Box::new(Expr::Literal(value.into_owned(), from.clone()));
    let cast = Expr::Cast { expr: literal, from, to: plain(ty), explicit: true };
    Key::of(&cast.constant()?, ty)
}

/// A type without the length that a cast would cut to.
fn plain(ty: &SqlType) -> SqlType {
    match ty {
        SqlType::Varchar(_) => SqlType::Text,
        SqlType::Numeric(_) => SqlType::Numeric(None),
        other => other.clone(),
    }
}

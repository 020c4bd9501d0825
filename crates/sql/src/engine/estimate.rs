//! How many rows a node gives, by what is known of its tables ([`crate::statistics`]).
//!
//! Conditions are taken for independent of each other, but for those that bound one column from both sides. What is not known has the shares that
//! PostgreSQL assumes: a third of the rows for a comparison, a half for a subquery.

use super::node::{Join, JoinKind, Node, SetKind};
use super::scalar::Scalar;
use super::scan::TableScan;
use crate::catalog::Oid;
use crate::exec::table::ColumnAccess;
use crate::expr::{CompareOp, Expr};
use crate::statistics::{ColumnStatistics, Key, TableStatistics, UNKNOWN_SHARE};
use crate::types::{SqlType, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of what nothing is known of.
const UNKNOWN_ROWS: f64 = 1000.0;
/// Share of rows for which a subquery is true.
const SUBQUERY_SHARE: f64 = 0.5;
/// Share of rows that match a pattern.
const PATTERN_SHARE: f64 = 0.1;
/// Share of rows between two bounds that are not known; and the least of those between two that are.
const RANGE_SHARE: f64 = 0.005;
/// A grouping of which nothing is known has this part of its rows.
const GROUP_SHARE: f64 = 0.1;

/// What is known of a table.
pub(super) type Known<'a> = &'a dyn Fn(Oid) -> Option<Arc<TableStatistics>>;

/// Rows that a node gives, at least one.
pub(super) fn rows(node: &Node, known: Known<'_>) -> f64 {
    let rows = match node {
        Node::One | Node::Sequence { .. } => 1.0,
        Node::Values(rows) => rows.len() as f64,
        Node::Table(scan) => {
            let statistics = known(scan.access.table.id);
            statistics.map_or(UNKNOWN_ROWS, |s| s.rows as f64 * share_of(scan.asked(), Some((scan, &s))))
        }
        Node::Virtual { .. } | Node::Internal { .. } | Node::Function { .. } => UNKNOWN_ROWS,
        Node::Given { .. } | Node::Working { .. } => UNKNOWN_ROWS,
        Node::Filter { input, conditions } => rows(input, known) * share_of(conditions, None),
        Node::Project { input, .. } | Node::Cut { input, .. } | Node::Window { input, .. } => rows(input, known),
        Node::ProjectSet { input, .. } => 10.0 * rows(input, known),
        Node::Sort { input, limit, .. } => bounded(rows(input, known), limit.as_ref().map(|(_, limit)| limit)),
        Node::Limit { input, limit, .. } => bounded(rows(input, known), limit.as_ref()),
        Node::Aggregate { keys, .. } if keys.is_empty() => 1.0,
        Node::Aggregate { input, keys, .. } => groups(input, keys, known),
        Node::Distinct { input, .. } => rows(input, known),
        Node::Join(join) => joined(join, known),
        Node::Set { kind: SetKind::Union, left, right, .. } => rows(left, known) + rows(right, known),
        Node::Set { left, .. } => rows(left, known),
        Node::Cte { plan, .. } => rows(plan, known),
        Node::Recursive { base, .. } => 10.0 * rows(base, known),
    };
    rows.max(1.0)
}

/// Rows that are read of all tables below a node; `None` if one of them is not known.
pub(super) fn read(node: &Node, known: Known<'_>) -> Option<f64> {
    match node {
        Node::Table(scan) if scan.path.is_narrowed() => known(scan.access.table.id).map(|_| rows(node, known)),
        Node::Table(scan) => Some(known(scan.access.table.id)?.rows as f64),
        Node::One | Node::Values(_) => Some(rows(node, known)),
        Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Cut { input, .. }
        | Node::Window { input, .. }
        | Node::ProjectSet { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. }
        | Node::Aggregate { input, .. }
        | Node::Distinct { input, .. }
        | Node::Cte { plan: input, .. } => read(input, known),
        Node::Join(Join { left, right, .. }) | Node::Set { left, right, .. } => {
            Some(read(left, known)? + read(right, known)?)
        }
        _ => None,
    }
}

fn bounded(rows: f64, limit: Option<&Scalar>) -> f64 {
    let limit = limit.and_then(|limit| limit.expr.constant()).and_then(|value| match value {
        Value::Int8(limit) => Some(limit as f64),
        _ => None,
    });
    limit.map_or(rows, |limit| rows.min(limit))
}

fn groups(input: &Arc<Node>, keys: &[Scalar], known: Known<'_>) -> f64 {
    let all = rows(input, known);
    let Node::Table(scan) = input.as_ref() else { return all * GROUP_SHARE };
    let Some(statistics) = known(scan.access.table.id) else { return all * GROUP_SHARE };
    let distinct = |key: &Scalar| Some(column_of(&key.expr, Some((scan, &statistics)))?.0.distinct);
    keys.iter().map(distinct).product::<Option<f64>>().map_or(all * GROUP_SHARE, |groups| groups.min(all))
}

/// As if one side had the key of the other: a join along a reference gives the rows that refer.
fn joined(join: &Join, known: Known<'_>) -> f64 {
    let (left, right) = (rows(&join.left, known), rows(&join.right, known));
    let matched = if join.keys.is_empty() { left * right } else { left.max(right) };
    let matched = matched * share_of(&join.on, None);
    match join.kind {
        JoinKind::Inner => matched,
        JoinKind::Left => matched.max(left),
        JoinKind::Full => matched.max(left + right),
    }
}

/// A scan, and what is known of its table.
type Scanned<'a> = Option<(&'a TableScan, &'a TableStatistics)>;

/// What bounds a column from below and from above.
type Bounds<'a> = (&'a ColumnStatistics, Option<Key>, Option<Key>);

/// The share of rows for which all conditions hold.
fn share_of(conditions: &[Scalar], of: Scanned<'_>) -> f64 {
    let steps = conditions.iter().filter(|scalar| !scalar.steps.is_empty()).count();
    let plain = conditions.iter().filter(|scalar| scalar.steps.is_empty()).map(|scalar| &scalar.expr);
    SUBQUERY_SHARE.powi(i32::try_from(steps).unwrap_or(i32::MAX)) * all(plain, of)
}

/// The share of rows for which all expressions are true.
fn all<'e>(exprs: impl IntoIterator<Item = &'e Expr>, of: Scanned<'_>) -> f64 {
    let (mut share, mut bounds) = (1.0, BTreeMap::<u16, Bounds<'_>>::new());
    let mut rest: Vec<&Expr> = exprs.into_iter().collect();
    while let Some(expr) = rest.pop() {
        match expr {
            Expr::And(parts) => rest.extend(parts),
            _ => match bound(expr, of) {
                Some((column, key, is_upper)) => {
                    let (_, low, high) = bounds.entry(column.id).or_insert((column, None, None));
                    match is_upper {
                        // The tighter one counts.
                        true => *high = Some(high.take().map_or(key.clone(), |known| known.min(key))),
                        false => *low = (*low).take().max(Some(key)),
                    }
                }
                None => share *= one(expr, of),
            },
        }
    }
    for (column, low, high) in bounds.into_values() {
        let above = high.map_or(1.0 - column.nulls, |high| column.below(&high));
        let below = low.map_or(0.0, |low| column.below(&low));
        share *= (above - below).max(RANGE_SHARE / 50.0);
    }
    share
}

/// `column < constant` and its like: the column, the constant, and whether it is the upper bound.
fn bound<'a>(expr: &Expr, of: Scanned<'a>) -> Option<(&'a ColumnStatistics, Key, bool)> {
    let Expr::Compare { op, left, right, .. } = expr else { return None };
    let (column, value, op) = match (column_of(left, of), column_of(right, of)) {
        (Some(column), None) => (column, right, *op),
        (None, Some(column)) => (column, left, op.flipped()),
        _ => return None,
    };
    let is_upper = match op {
        CompareOp::Lt | CompareOp::LtEq => true,
        CompareOp::Gt | CompareOp::GtEq => false,
        CompareOp::Eq | CompareOp::NotEq => return None,
    };
    Some((column.0, key_of(value, column.1)?, is_upper))
}

fn one(expr: &Expr, of: Scanned<'_>) -> f64 {
    match expr {
        Expr::Literal(Value::Bool(true), _) => 1.0,
        Expr::Literal(..) => 0.0,
        Expr::And(parts) => all(parts, of),
        Expr::Or(parts) => 1.0 - parts.iter().map(|part| 1.0 - one(part, of)).product::<f64>(),
        Expr::Not(inner) => 1.0 - one(inner, of),
        Expr::Compare { op: CompareOp::Eq, left, right, .. } => equal(left, right, of),
        Expr::Compare { op: CompareOp::NotEq, left, right, .. } => 1.0 - equal(left, right, of),
        Expr::Compare { .. } => match bound(expr, of) {
            Some((column, key, true)) => column.below(&key),
            Some((column, key, false)) => 1.0 - column.nulls - column.below(&key),
            None => UNKNOWN_SHARE,
        },
        Expr::IsNull { expr, negated } => {
            let nulls = column_of(expr, of).map_or(RANGE_SHARE, |(column, _)| column.nulls);
            if *negated { 1.0 - nulls } else { nulls }
        }
        Expr::InList { expr, list, negated, .. } => {
            let share = list.iter().map(|value| equal(expr, value, of)).sum::<f64>().min(1.0);
            if *negated { 1.0 - share } else { share }
        }
        Expr::AnyAll { op: CompareOp::Eq, left, array, all: false, .. } => {
            match (column_of(left, of), array.constant()) {
                (Some((column, access)), Some(Value::Array(array))) => {
                    let key = |value: &Value| Key::of(value, &access.ty);
                    array.values.iter().map(|value| column.equal(key(value).as_ref())).sum::<f64>().min(1.0)
                }
                (Some((column, _)), _) => (10.0 * column.equal(None)).min(1.0),
                _ => UNKNOWN_SHARE,
            }
        }
        Expr::Call { function, .. } if matches!(function.name, "~~" | "~~*" | "~" | "~*") => PATTERN_SHARE,
        Expr::Call { function, .. } if matches!(function.name, "!~~" | "!~~*" | "!~" | "!~*") => 1.0 - PATTERN_SHARE,
        Expr::Column { .. } => match column_of(expr, of) {
            Some((column, access)) => column.equal(Key::of(&Value::Bool(true), &access.ty).as_ref()),
            None => SUBQUERY_SHARE,
        },
        _ => UNKNOWN_SHARE,
    }
}

/// The share of rows in which two expressions are equal.
fn equal(left: &Expr, right: &Expr, of: Scanned<'_>) -> f64 {
    match (column_of(left, of), column_of(right, of)) {
        (Some((column, access)), None) => column.equal(key_of(right, access).as_ref()),
        (None, Some((column, access))) => column.equal(key_of(left, access).as_ref()),
        (Some((a, _)), Some((b, _))) => 1.0 / a.distinct.max(b.distinct).max(1.0),
        (None, None) => RANGE_SHARE,
    }
}

/// The column of the table that an expression is, maybe cast to where it can be compared.
fn column_of<'a>(expr: &Expr, of: Scanned<'a>) -> Option<(&'a ColumnStatistics, &'a ColumnAccess)> {
    let (scan, statistics) = of?;
    match expr {
        Expr::Cast { expr, .. } => column_of(expr, of),
        Expr::Column { index, .. } => {
            let access = scan.access.columns.get(scan.slot(*index)?)?;
            Some((statistics.column(access.id)?, access))
        }
        _ => None,
    }
}

/// A constant as a value of a column.
fn key_of(expr: &Expr, column: &ColumnAccess) -> Option<Key> {
    let (value, from) = (expr.constant()?, expr.ty());
    if from == column.ty {
        return Key::of(&value, &column.ty);
    }
    let literal = Box::new(Expr::Literal(value, from.clone()));
    let cast = Expr::Cast { expr: literal, from, to: plain(&column.ty), explicit: true };
    Key::of(&cast.constant()?, &column.ty)
}

/// A type without the length that a cast would cut to.
fn plain(ty: &SqlType) -> SqlType {
    match ty {
        SqlType::Varchar(_) => SqlType::Text,
        SqlType::Numeric(_) => SqlType::Numeric(None),
        other => other.clone(),
    }
}

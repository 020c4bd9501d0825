//! How many rows a node gives, by what is known of its tables ([`crate::statistics`]).
//!
//! Conditions: [`crate::plan::share`]. A subquery is true for half of the rows.

use super::node::{Join, JoinKind, Node, SetKind};
use super::scalar::Scalar;
use super::scan::TableScan;
use crate::catalog::Oid;
use crate::plan::share::{Columns, GROUP_SHARE, all, column_of};
use crate::statistics::{ColumnStatistics, TableStatistics};
use crate::types::{SqlType, Value};
use std::sync::Arc;

/// Rows of what nothing is known of.
const UNKNOWN_ROWS: f64 = 1000.0;
/// Share of rows for which a subquery is true.
const SUBQUERY_SHARE: f64 = 0.5;

/// What is known of a table.
pub(super) type Known<'a> = &'a dyn Fn(Oid) -> Option<Arc<TableStatistics>>;

/// Rows that a node gives, at least one.
pub(super) fn rows(node: &Node, known: Known<'_>) -> f64 {
    let rows = match node {
        Node::One | Node::Sequence { .. } => 1.0,
        Node::Values(rows) => rows.len() as f64,
        Node::Table(scan) => {
            let statistics = known(scan.access.table.id);
            statistics.map_or(UNKNOWN_ROWS, |s| s.rows as f64 * share_of(scan.asked(), &columns(scan, &s)))
        }
        Node::Virtual { .. } | Node::Internal { .. } | Node::Function { .. } => UNKNOWN_ROWS,
        Node::Given { .. } | Node::Working { .. } => UNKNOWN_ROWS,
        Node::Filter { input, conditions } => rows(input, known) * share_of(conditions, &|_| None),
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
    let distinct = |key: &Scalar| Some(column_of(&key.expr, &columns(scan, &statistics))?.0.distinct);
    keys.iter().map(distinct).product::<Option<f64>>().map_or(all * GROUP_SHARE, |groups| groups.min(all))
}

/// As if one side had the key of the other: a join along a reference gives the rows that refer.
fn joined(join: &Join, known: Known<'_>) -> f64 {
    let (left, right) = (rows(&join.left, known), rows(&join.right, known));
    let matched = if join.keys.is_empty() { left * right } else { left.max(right) };
    let matched = matched * share_of(&join.on, &|_| None);
    match join.kind {
        JoinKind::Inner => matched,
        JoinKind::Left => matched.max(left),
        JoinKind::Full => matched.max(left + right),
    }
}

/// The share of rows for which all conditions hold.
fn share_of(conditions: &[Scalar], of: Columns<'_, '_>) -> f64 {
    let steps = conditions.iter().filter(|scalar| !scalar.steps.is_empty()).count();
    let plain = conditions.iter().filter(|scalar| scalar.steps.is_empty()).map(|scalar| &scalar.expr);
    SUBQUERY_SHARE.powi(i32::try_from(steps).unwrap_or(i32::MAX)) * all(plain, of)
}

/// The columns of a scan, and what is known of them.
fn columns<'a>(
    scan: &'a TableScan,
    known: &'a TableStatistics,
) -> impl Fn(usize) -> Option<(&'a ColumnStatistics, &'a SqlType)> {
    move |place| {
        let access = scan.access.columns.get(scan.slot(place)?)?;
        Some((known.column(access.id)?, &access.ty))
    }
}

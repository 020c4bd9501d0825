//! How many rows a node gives, by what is known of its tables ([`crate::statistics`]).
//!
//! Conditions: [`crate::plan::share`]. A subquery is true for half of the rows.

use super::node::{Join, JoinKind, Node, SetKind};
use super::scalar::Scalar;
use super::scan::TableScan;
use super::walk::{NODE_UNITS, shared_at};
use crate::catalog::Oid;
use crate::plan::share::{Columns, GROUP_SHARE, all, column_of};
use crate::statistics::{ColumnStatistics, TableStatistics};
use crate::types::{SqlType, Value};
use crate::work;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows of what nothing is known of.
const UNKNOWN_ROWS: f64 = 1000.0;
/// Share of rows for which a subquery is true.
const SUBQUERY_SHARE: f64 = 0.5;

/// Rows of anything, at most: products of products have no end.
const ROWS_MAX: f64 = 1e100;

/// What is known of a table.
pub(super) type Known<'a> = &'a dyn Fn(Oid) -> Option<Arc<TableStatistics>>;

/// Rows that a node gives, at least one.
pub(super) fn rows(node: &Node, known: Known<'_>) -> f64 {
    Estimates::default().rows(node, known)
}

/// Rows that are read of all tables below a node; `None` if one of them is not known.
pub(super) fn read(node: &Node, known: Known<'_>) -> Option<f64> {
    Estimates::default().read(node, known)
}

/// Estimates of nodes to which several lead, by their addresses: each is made once (see [`super::walk`]). It is for one plan, which outlives it.
#[derive(Default)]
pub(super) struct Estimates {
    rows: RefCell<BTreeMap<usize, f64>>,
    read: RefCell<BTreeMap<usize, Option<f64>>>,
}

impl Estimates {
    /// As [`rows`].
    pub(super) fn rows(&self, node: &Node, known: Known<'_>) -> f64 {
        // Who was ended has no use for it, and ends at the next step.
        if work::step(NODE_UNITS).is_err() {
            return 1.0;
        }
        let of = |input: &Arc<Node>| once(&self.rows, input, || self.rows(input, known));
        let rows = match node {
            Node::One | Node::Sequence { .. } => 1.0,
            Node::Values { rows, .. } => rows.len() as f64,
            Node::Literals(rows) => rows.len() as f64,
            Node::Table(scan) => {
                let statistics = known(scan.access.table.id);
                statistics.map_or(UNKNOWN_ROWS, |s| s.rows as f64 * share_of(scan.asked(), &columns(scan, &s)))
            }
            Node::Virtual { .. } | Node::Internal { .. } | Node::Function { .. } => UNKNOWN_ROWS,
            Node::Given { .. } | Node::Working { .. } => UNKNOWN_ROWS,
            Node::Filter { input, conditions } => of(input) * share_of(conditions, &|_| None),
            Node::Project { input, .. } | Node::Cut { input, .. } | Node::Window { input, .. } => of(input),
            Node::ProjectSet { input, .. } => 10.0 * of(input),
            Node::Sort { input, limit, .. } => bounded(of(input), limit.as_ref().map(|(_, limit)| limit)),
            Node::Limit { input, limit, .. } => bounded(of(input), limit.as_ref()),
            Node::Aggregate { keys, .. } if keys.is_empty() => 1.0,
            Node::Aggregate { input, keys, .. } => groups(of(input), input, keys, known),
            Node::Distinct { input, .. } => of(input),
            Node::Join(join) => joined(join, of(&join.left), of(&join.right)),
            Node::Set { kind: SetKind::Union, left, right, .. } => of(left) + of(right),
            Node::Set { left, .. } => of(left),
            Node::Cte(cte) => of(&cte.plan),
            Node::Recursive { base, .. } => 10.0 * of(base),
        };
        rows.max(1.0).clamp(1.0, ROWS_MAX)
    }

    /// As [`read`].
    fn read(&self, node: &Node, known: Known<'_>) -> Option<f64> {
        work::step(NODE_UNITS).ok()?;
        let of = |input: &Arc<Node>| once(&self.read, input, || self.read(input, known));
        match node {
            Node::Table(scan) if scan.planned.path.is_narrowed() => {
                known(scan.access.table.id).map(|_| self.rows(node, known))
            }
            Node::Table(scan) => Some(known(scan.access.table.id)?.rows as f64),
            Node::One | Node::Values { .. } | Node::Literals(_) => Some(self.rows(node, known)),
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Cut { input, .. }
            | Node::Window { input, .. }
            | Node::ProjectSet { input, .. }
            | Node::Sort { input, .. }
            | Node::Limit { input, .. }
            | Node::Aggregate { input, .. }
            | Node::Distinct { input, .. } => of(input),
            Node::Cte(cte) => of(&cte.plan),
            Node::Join(Join { left, right, .. }) | Node::Set { left, right, .. } => Some(of(left)? + of(right)?),
            _ => None,
        }
    }
}

/// What is said of a node, said once if others may ask as well.
fn once<T: Copy>(known: &RefCell<BTreeMap<usize, T>>, node: &Arc<Node>, say: impl FnOnce() -> T) -> T {
    let Some(at) = shared_at(node) else { return say() };
    let before = known.borrow().get(&at).copied();
    before.unwrap_or_else(|| {
        let said = say();
        known.borrow_mut().insert(at, said);
        said
    })
}

fn bounded(rows: f64, limit: Option<&Scalar>) -> f64 {
    let limit = limit.and_then(|limit| limit.expr.constant()).and_then(|value| match value {
        Value::Int8(limit) => Some(limit as f64),
        _ => None,
    });
    limit.map_or(rows, |limit| rows.min(limit))
}

fn groups(all: f64, input: &Arc<Node>, keys: &[Scalar], known: Known<'_>) -> f64 {
    let Node::Table(scan) = input.as_ref() else { return all * GROUP_SHARE };
    let Some(statistics) = known(scan.access.table.id) else { return all * GROUP_SHARE };
    let distinct = |key: &Scalar| Some(column_of(&key.expr, &columns(scan, &statistics))?.0.distinct);
    keys.iter().map(distinct).product::<Option<f64>>().map_or(all * GROUP_SHARE, |groups| groups.min(all))
}

/// As if one side had the key of the other: a join along a reference gives the rows that refer.
fn joined(join: &Join, left: f64, right: f64) -> f64 {
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

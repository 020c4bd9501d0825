//! Grouping below a join: what is counted on the right side is counted by its join key before it is joined.
//!
//! **Problem.** `SELECT p.id, count(*) FROM p LEFT JOIN l ON l.p = p.id GROUP BY p.id` made a joined row of each row of `l` to count it.
//!
//! **Idea.** Rows of the right side that have the same join key meet the same left rows, and where the keys of the grouping and all else
//! that is asked speak of the left side alone, they end in the same groups. So the right side is grouped by its join key, the join
//! meets each key once, and counts are added up above it.
//!
//! **Invariants.**
//! 1. Only aggregates that can be put together from parts: `count`, `min`, `max`, not DISTINCT, without ORDER BY and FILTER, over a
//!    column of the right side (or `count(*)`).
//! 2. Where an index leads from a left row to few right ones it is not done, unless all left rows are read; nor where a right key is unique.

use super::aggregate::{AggregateCall, Function};
use super::bind::Binder;
use super::keys;
use super::node::{Join, JoinKey, JoinKind, Node};
use super::scalar::Scalar;
use crate::expr::Expr;
use crate::plan::tree;
use crate::types::{SqlType, Value};
use std::sync::Arc;

/// An aggregation over a join with the right side grouped first: the new input and calls; `None` where that cannot be, or does not pay.
pub(super) fn below_join(
    input: &Arc<Node>,
    prefix: usize,
    groups: &[Scalar],
    calls: &[AggregateCall],
) -> Option<(Arc<Node>, Vec<AggregateCall>)> {
    let Node::Join(join) = input.as_ref() else { return None };
    let own = |scalar: &Scalar| scalar.steps.is_empty() && !tree::is_volatile(&scalar.expr);
    let of_left = |scalar: &Scalar| own(scalar) && tree::reads_only(&scalar.expr, &|slot| slot < join.left_width);
    // An expression may fail on a row that the join drops, and be anything where a left row has no right one.
    let is_right_column = |scalar: &Scalar| {
        scalar.steps.is_empty() && matches!(scalar.expr, Expr::Column { index, .. } if index >= join.left_width)
    };
    let in_parts = |call: &AggregateCall| {
        matches!(call.function, Function::Count | Function::Min | Function::Max)
            && !call.distinct
            && call.order.is_empty()
            && call.filter.is_none()
            && call.args.iter().all(is_right_column)
            && (!call.args.is_empty() || call.function == Function::Count)
    };
    let may = join.merge.is_none()
        && join.kind != JoinKind::Full
        && !join.lateral
        && join.on.is_empty()
        && !join.keys.is_empty();
    if !may || calls.is_empty() || !groups.iter().all(of_left) || !calls.iter().all(in_parts) {
        return None;
    }
    let alike = |key: &JoinKey| {
        !key.null_equal
            && own(&key.right)
            && keys::kind(&key.left.ty, &key.right.ty) == Some(keys::own_kind(&key.right.ty))
    };
    if !join.keys.iter().all(alike) || !pays(join) {
        return None;
    }
    let at = |slot: usize| if slot >= join.left_width { slot - join.left_width + prefix } else { slot };
    let part = |call: &AggregateCall| {
        let mut call = call.clone();
        for arg in &mut call.args {
            arg.expr.map_columns(&at);
            arg.width = prefix + join.right_width;
        }
        call
    };
    let parts: Vec<AggregateCall> = calls.iter().map(part).collect();
    let count = join.keys.len();
    let width = join.left_width + count + calls.len();
    let whole = |(place, call): (usize, &AggregateCall)| {
        let index = join.left_width + count + place;
        let mut expr = Expr::Column { index, ty: call.ty.clone() };
        let mut call = call.clone();
        if call.function == Function::Count {
            // A left row without a right one is one row, of which `count(*)` counts one and `count(column)` none.
            let alone = i64::from(call.args.is_empty());
            expr = Expr::Coalesce(vec![expr, Expr::Literal(Value::Int8(alone), SqlType::Int8)], SqlType::Int8);
            call.function = Function::Counts;
        }
        call.args = vec![Scalar { steps: Vec::new(), expr, ty: call.ty.clone(), width }];
        call
    };
    let wholes = calls.iter().enumerate().map(whole).collect();
    let right_keys: Vec<Scalar> = join.keys.iter().map(|key| key.right.clone()).collect();
    let met = |(place, key): (usize, &JoinKey)| {
        let right = Binder::slot(prefix + place, &key.right.ty, prefix + count + calls.len());
        JoinKey { left: key.left.clone(), right, null_equal: false }
    };
    let keys = join.keys.iter().enumerate().map(met).collect();
    let sets = vec![vec![true; count]];
    let right = Arc::new(Node::Aggregate { input: join.right.clone(), keys: right_keys, calls: parts, sets });
    let right_width = count + calls.len();
    let joined =
        Join { left: join.left.clone(), right, keys, on: Vec::new(), lookup: None, merge: None, right_width, ..*join };
    Some((Arc::new(Node::Join(joined)), wholes))
}

/// Whether the right side is read as a whole anyway, and several of its rows may share a key.
fn pays(join: &Join) -> bool {
    let is_whole = |node: &Node| matches!(node, Node::Table(scan) if scan.asked().is_empty());
    if join.lookup.is_some() && !(is_whole(&join.left) && is_whole(&join.right)) {
        return false;
    }
    match join.right.as_ref() {
        Node::Table(scan) => !scan.is_unique_by(&join.keys.iter().map(|key| &key.right.expr).collect::<Vec<_>>()),
        _ => true,
    }
}

//! Left joins that change nothing: each left row meets one right row at most, and nobody reads that.
//!
//! **Problem.** A view joins five tables that its rows refer to; who reads two columns of it pays for all five.
//!
//! **Idea.** Above FROM stands what reads its rows: a select list, or a grouping. What it reads are slots, and those of a left join lie beside each other:
//! where none of them is read, neither above nor by conditions and joins in between, and the join's keys cover a unique key of the right table, the join gives each left
//! row once, whatever it finds. NULLs take the place of its columns, so that no slot moves.
//!
//! **Invariants.**
//! 1. Only equalities of keys that could fail on no row are left out, and conditions on the right table alone that are plain: they cannot make a
//!    left row appear twice, nor vanish.
//! 2. What may read the whole row (a correlated subquery) keeps every join.

use super::aggregate::AggregateCall;
use super::node::{Join, JoinKey, JoinKind, Node};
use super::scalar::Scalar;
use crate::expr::Expr;
use crate::plan::tree;
use crate::types::{SqlType, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Slots of a row that are read; `None`: any of them.
type Read = Option<BTreeSet<usize>>;

/// The rows of FROM under a grouping.
pub(super) fn below_grouping(input: Arc<Node>, keys: &[Scalar], calls: &[AggregateCall]) -> Arc<Node> {
    if !has_left_join(&input) {
        return input;
    }
    let of_calls =
        calls.iter().flat_map(|call| call.args.iter().chain(call.order.iter().map(|key| &key.by)).chain(&call.filter));
    pruned(input, reads(keys.iter().chain(of_calls)))
}

/// The rows of FROM under a select list.
pub(super) fn below_list(input: Arc<Node>, columns: &[Scalar]) -> Arc<Node> {
    if !has_left_join(&input) {
        return input;
    }
    pruned(input, reads(columns))
}

/// Most rows of FROM come of none: what is read need not be looked at.
fn has_left_join(node: &Node) -> bool {
    match node {
        Node::Filter { input, .. } | Node::Project { input, .. } => has_left_join(input),
        Node::Join(join) => join.kind == JoinKind::Left || has_left_join(&join.left),
        _ => false,
    }
}

fn reads<'s>(scalars: impl IntoIterator<Item = &'s Scalar>) -> Read {
    let mut all = BTreeSet::new();
    for scalar in scalars {
        all.extend(scalar.columns()?);
    }
    Some(all)
}

fn and(one: &Read, other: Read) -> Read {
    let mut both = other?;
    both.extend(one.as_ref()?);
    Some(both)
}

/// The same rows, but for the values of slots that are not read.
fn pruned(node: Arc<Node>, read: Read) -> Arc<Node> {
    if read.is_none() {
        return node;
    }
    match node.as_ref() {
        Node::Filter { input, conditions } if has_left_join(input) => {
            let input = pruned(input.clone(), and(&read, reads(conditions)));
            Arc::new(Node::Filter { input, conditions: conditions.clone() })
        }
        Node::Project { input, prefix, columns } if has_left_join(input) => {
            let is_read = |place: usize| read.as_ref().is_some_and(|read| read.contains(&(prefix + place)));
            // What nobody reads is not computed, unless it does something, too.
            let kept = |(place, column): (usize, &Scalar)| match is_read(place) || !is_plain(column) {
                true => column.clone(),
                false => null(&column.ty, column.width),
            };
            let columns: Vec<Scalar> = columns.iter().enumerate().map(kept).collect();
            let before: BTreeSet<usize> = read.iter().flat_map(|read| read.range(..prefix)).copied().collect();
            let input = pruned(input.clone(), and(&Some(before), reads(&columns)));
            Arc::new(Node::Project { input, prefix: *prefix, columns })
        }
        Node::Join(join) if is_idle(join, &read) => {
            let width = join.left_width;
            let left = pruned(join.left.clone(), read);
            Arc::new(Node::Project {
                input: left,
                prefix: width,
                columns: vec![null(&SqlType::Unknown, width); join.right_width],
            })
        }
        // A lateral right side may read the whole left row.
        Node::Join(join)
            if join.kind != JoinKind::Full && !join.lateral && join.merge.is_none() && has_left_join(&join.left) =>
        {
            let own = reads(join.keys.iter().map(|key| &key.left).chain(&join.on));
            let read = and(&read, own);
            // Lookups read the left row by their keys, and by what ON says, which is the same.
            let left = pruned(join.left.clone(), read);
            let (right, keys, on, lookup) =
                (join.right.clone(), join.keys.clone(), join.on.clone(), join.lookup.clone());
            Arc::new(Node::Join(Join { left, right, keys, on, lookup, merge: None, ..*join }))
        }
        _ => node,
    }
}

/// Whether a join gives each left row once, beside slots that nobody reads.
fn is_idle(join: &Join, read: &Read) -> bool {
    let is_column = |scalar: &Scalar| scalar.steps.is_empty() && matches!(scalar.expr, Expr::Column { .. });
    // Two that differ may equal one of another type: 0.1 and 0.10000000000000001 beside a double precision.
    let is_integer = |ty: &SqlType| matches!(ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8);
    let alike = |a: &SqlType, b: &SqlType| a.base() == b.base() || is_integer(a) && is_integer(b);
    let key = |key: &JoinKey| {
        !key.null_equal && is_column(&key.left) && is_column(&key.right) && alike(&key.left.ty, &key.right.ty)
    };
    let columns = join.left_width..join.left_width + join.right_width;
    let unread = || read.as_ref().is_some_and(|read| read.range(columns).next().is_none());
    let Node::Table(scan) = join.right.as_ref() else { return false };
    join.kind == JoinKind::Left
        && !join.lateral
        && join.on.is_empty()
        && join.keys.iter().all(key)
        && scan.asked().iter().all(is_plain)
        && unread()
        && scan.is_unique_by(&join.keys.iter().map(|key| &key.right.expr).collect::<Vec<_>>())
}

fn is_plain(scalar: &Scalar) -> bool {
    scalar.steps.is_empty() && !tree::is_volatile(&scalar.expr)
}

fn null(ty: &SqlType, width: usize) -> Scalar {
    Scalar { steps: Vec::new(), expr: Expr::Literal(Value::Null, ty.clone()), ty: ty.clone(), width }
}

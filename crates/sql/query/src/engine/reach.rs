//! How far a runtime filter reaches ([`super::run::Rows::restrict`]), as a plan can tell.
//!
//! Whether it is offered is found out while the join runs, since it is the side in memory that offers.

use super::node::{Join, JoinKey, JoinKind, Node};
use super::scalar::Scalar;
use super::walk::{is_volatile, scalar_is_volatile};
use std::sync::Arc;

/// The columns that the keys of one side are; `None` if one of them is something else, or if NULL has a partner.
pub(super) fn key_columns(join: &Join, side: impl Fn(&JoinKey) -> &Scalar) -> Option<Vec<usize>> {
    let columns = join.keys.iter().map(|key| side(key).column().filter(|_| !key.null_equal));
    columns.collect::<Option<Vec<_>>>().filter(|columns| !columns.is_empty())
}

/// Whether a join may be spared rows that nobody above it needs: nothing in it must be asked of each.
pub(super) fn is_sparing(join: &Join) -> bool {
    let keys = join.keys.iter().flat_map(|key| [&key.left, &key.right]);
    let volatile = join.on.iter().chain(keys).any(scalar_is_volatile);
    !volatile && !run_by_row(join).is_some_and(|right| is_volatile(right))
}

/// The right side, if it runs once for each left row.
fn run_by_row(join: &Join) -> Option<&Arc<Node>> {
    if join.lateral { Some(&join.right) } else { join.lookup.as_ref() }
}

/// The slot of the input that a column of a projection is, if it is nothing else.
pub(super) fn projected(place: usize, prefix: usize, columns: &[Scalar]) -> Option<usize> {
    match place.checked_sub(prefix) {
        None => Some(place),
        Some(own) => columns.get(own)?.column(),
    }
}

/// Columns of the key of each side that will be asked of a scan which is no direct input of the join: of the left side, and of the right one. `prefix`:
/// slots of the query around it.
pub(super) fn offered(join: &Join, prefix: usize) -> (Vec<usize>, Vec<usize>) {
    let is_hashed = !join.lateral && join.merge.is_none() && join.kind != JoinKind::Full;
    let reached = |input: &Node, columns: Option<Vec<usize>>| {
        let deep = |columns: &Vec<usize>| !matches!(input, Node::Table(_)) && reaches(input, columns, prefix);
        columns.filter(|_| is_hashed).filter(deep).unwrap_or_default()
    };
    let left = match join.kind {
        JoinKind::Inner => reached(join.left.as_ref(), key_columns(join, |key| &key.left)),
        _ => Vec::new(),
    };
    (left, reached(join.right.as_ref(), key_columns(join, |key| &key.right)))
}

/// Whether a filter over columns of a node's rows comes to where these are made.
fn reaches(node: &Node, columns: &[usize], prefix: usize) -> bool {
    match node {
        Node::Table(scan) => columns.iter().all(|column| *column < prefix || scan.slot(*column).is_some()),
        Node::Filter { input, conditions } => {
            !conditions.iter().any(scalar_is_volatile) && reaches(input, columns, prefix)
        }
        Node::Cut { input, .. } => reaches(input, columns, prefix),
        Node::Project { input, prefix: own, columns: list } => {
            let below = columns.iter().map(|column| projected(*column, *own, list)).collect::<Option<Vec<_>>>();
            !list.iter().any(scalar_is_volatile) && below.is_some_and(|below| reaches(input, &below, prefix))
        }
        Node::Join(join) if !is_sparing(join) => false,
        Node::Join(join) if join.kind != JoinKind::Full && columns.iter().all(|column| *column < join.left_width) => {
            reaches(&join.left, columns, prefix)
        }
        Node::Join(join) if join.kind == JoinKind::Inner => {
            let own = |column: &usize| match *column {
                column if column < prefix => Some(column),
                column => column.checked_sub(join.left_width).map(|place| place + prefix),
            };
            let by_row = run_by_row(join).is_some_and(|right| reaches(right, columns, join.left_width));
            let of_right = columns.iter().map(own).collect::<Option<Vec<_>>>();
            by_row || of_right.is_some_and(|columns| !join.lateral && reaches(&join.right, &columns, prefix))
        }
        _ => false,
    }
}

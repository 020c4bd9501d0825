//! Conditions on a subquery, a view or a common table expression, brought to where its rows come from.
//!
//! **Problem.** `SELECT .. FROM view WHERE id = 7` read all rows of the view and dropped all but one; below the view is a table with a key.
//!
//! **Idea.** A bound condition goes down the bound tree: through a projection by putting expressions in the place of columns, through a
//! grouping or a window where it only speaks of what they divide rows by, into both sides of a set operation, to the side of a join that
//! it speaks of. At a table it takes part in the choice of the path. What cannot go further stays where it is.
//!
//! **Invariants.**
//! 1. The rows that come out are those of the condition above the node, in the same order.
//! 2. A condition with a step (a subquery) or a volatile function does not move; nor does any through a LIMIT, DISTINCT ON, a set-returning
//!    function, or a column with a step or a volatile function.
//!
//! **Caveat.** A condition may meet rows that another condition of the subquery would have dropped before, and fail on one, as in PostgreSQL.

use super::node::{Join, JoinKind, Node, SetKind, SortKey};
use super::presence::above;
use super::scalar::Scalar;
use super::window::{Function, WindowCall};
use crate::expr::{CompareOp, Expr};
use crate::plan::tree;
use crate::types::{SqlType, Value};
use std::cell::OnceCell;
use std::sync::Arc;

/// Parts that a condition may have where it goes on: by each projection that says a column twice it would double.
const PARTS_MAX: usize = 4_096;

/// A node under conditions over its rows, which begin with `prefix` slots of the query around it.
pub(super) fn under(node: Arc<Node>, prefix: usize, conditions: Vec<Scalar>) -> Arc<Node> {
    let (movable, fixed): (Vec<Scalar>, Vec<Scalar>) = conditions.into_iter().partition(is_movable);
    if movable.is_empty() {
        return above(node, fixed);
    }
    let (node, mut left) = push(&node, prefix, movable);
    left.extend(fixed);
    above(node, left)
}

fn is_movable(scalar: &Scalar) -> bool {
    scalar.steps.is_empty() && !tree::is_volatile(&scalar.expr)
}

/// The node with what could go into it, and what could not.
fn push(node: &Arc<Node>, prefix: usize, conditions: Vec<Scalar>) -> (Arc<Node>, Vec<Scalar>) {
    if conditions.is_empty() {
        return (node.clone(), conditions);
    }
    match node.as_ref() {
        Node::Table(scan) => match scan.under(&conditions) {
            Some(scan) => (Arc::new(Node::Table(scan)), Vec::new()),
            None => (node.clone(), conditions),
        },
        Node::Virtual { table, relation, filter } => {
            let filter = filter.iter().cloned().chain(conditions).collect();
            (Arc::new(Node::Virtual { table, relation: relation.clone(), filter }), Vec::new())
        }
        Node::Filter { input, conditions: own } => {
            let (input, left) = push(input, prefix, conditions);
            (above(input, own.clone()), left)
        }
        Node::Cut { input, width } => {
            let (input, left) = push(input, prefix, conditions);
            (Arc::new(Node::Cut { input, width: *width }), left)
        }
        Node::Project { input, prefix: kept, columns } => {
            let (down, left) = replaced(conditions, *kept, columns);
            let input = under(input.clone(), prefix, down);
            (Arc::new(Node::Project { input, prefix: *kept, columns: columns.clone() }), left)
        }
        Node::Aggregate { input, keys, calls, sets } if !keys.is_empty() && groups_once(sets) => {
            let (down, left) = replaced(conditions, prefix, keys);
            let input = under(input.clone(), prefix, down);
            let (keys, calls, sets) = (keys.clone(), calls.clone(), sets.clone());
            (Arc::new(Node::Aggregate { input, keys, calls, sets }), left)
        }
        Node::Window { input, calls } => {
            let divides =
                |scalar: &Scalar| scalar.expr.columns().iter().all(|slot| *slot < prefix || all_divide(calls, *slot));
            let (down, left): (Vec<Scalar>, Vec<Scalar>) = conditions.into_iter().partition(divides);
            let input = first_rows(under(input.clone(), prefix, down), calls, &left);
            (Arc::new(Node::Window { input, calls: calls.clone() }), left)
        }
        Node::Sort { input, keys, limit: None } => {
            let (input, left) = push(input, prefix, conditions);
            (Arc::new(Node::Sort { input, keys: keys.clone(), limit: None }), left)
        }
        Node::Distinct { input, prefix: kept, kinds, on: None } => {
            let (input, left) = push(input, prefix, conditions);
            (Arc::new(Node::Distinct { input, prefix: *kept, kinds: kinds.clone(), on: None }), left)
        }
        Node::Set { kind: kind @ (SetKind::Union | SetKind::Intersect), all, prefix: kept, kinds, left, right } => {
            let left = under(left.clone(), prefix, conditions.clone());
            let right = under(right.clone(), prefix, conditions);
            let kinds = kinds.clone();
            (Arc::new(Node::Set { kind: *kind, all: *all, prefix: *kept, kinds, left, right }), Vec::new())
        }
        // A row of the right side takes away those that equal it, of which the condition may hold although it does not of the row: `1.0`, `1.00`.
        Node::Set { kind: SetKind::Except, all: false, prefix: kept, kinds, left, right } => {
            let left = under(left.clone(), prefix, conditions);
            let (kinds, right) = (kinds.clone(), right.clone());
            let set = Node::Set { kind: SetKind::Except, all: false, prefix: *kept, kinds, left, right };
            (Arc::new(set), Vec::new())
        }
        // What is planned in an order is not planned anew.
        Node::Join(join) if join.merge.is_none() => push_join(join, prefix, conditions),
        _ => (node.clone(), conditions),
    }
}

/// What a window that numbers all rows need see where only the first numbers are let through: `row_number() OVER (ORDER BY a) <= 3`.
fn first_rows(input: Arc<Node>, calls: &[WindowCall], conditions: &[Scalar]) -> Arc<Node> {
    let [WindowCall { function: Function::RowNumber, partition, order, .. }] = calls else { return input };
    let Some(SortKey { by: Scalar { width, .. }, .. }) = order.first() else { return input };
    if !partition.is_empty() || !order.iter().all(|key| is_movable(&key.by)) {
        return input;
    }
    // Its numbers stand behind the row.
    let is_number = |expr: &Expr| matches!(expr, Expr::Column { index, .. } if index == width);
    let last = |condition: &Scalar| {
        let Expr::Compare { op, ty: SqlType::Int8, left, right } = &condition.expr else { return None };
        let (op, value) = match (is_number(left), is_number(right)) {
            (true, false) => (*op, right),
            (false, true) => (op.flipped(), left),
            _ => return None,
        };
        let value = value.constant()?.as_i64()?;
        match op {
            CompareOp::LtEq | CompareOp::Eq => Some(value),
            CompareOp::Lt => Some(value.saturating_sub(1)),
            _ => None,
        }
    };
    let Some(last) = conditions.iter().filter_map(last).min() else { return input };
    let (expr, ty) = (Expr::Literal(Value::Int8(last.max(0)), SqlType::Int8), SqlType::Int8);
    let most = Scalar { steps: Vec::new(), expr, ty, width: *width };
    Arc::new(Node::Sort { input, keys: order.clone(), limit: Some((None, most)) })
}

fn push_join(join: &Join, prefix: usize, conditions: Vec<Scalar>) -> (Arc<Node>, Vec<Scalar>) {
    let (mut to_left, mut to_right, mut stay) = (Vec::new(), Vec::new(), Vec::new());
    for scalar in conditions {
        let slots = scalar.expr.columns();
        let of = |side: &dyn Fn(usize) -> bool| slots.iter().all(|slot| *slot < prefix || side(*slot));
        if join.kind != JoinKind::Full && of(&|slot| slot < join.left_width) {
            to_left.push(scalar);
        } else if join.kind == JoinKind::Inner && !join.lateral && of(&|slot| slot >= join.left_width) {
            to_right.push(scalar);
        } else {
            stay.push(scalar);
        }
    }
    // By key the right side is found from the whole left row.
    let lookup = join.lookup.as_ref().map(|lookup| under(lookup.clone(), join.left_width, to_right.clone()));
    let own = to_right.into_iter().map(|scalar| moved(scalar, join.left_width, prefix)).collect();
    let joined = Join {
        left: under(join.left.clone(), prefix, to_left),
        right: under(join.right.clone(), prefix, own),
        keys: join.keys.clone(),
        on: join.on.clone(),
        lookup,
        foreseen: join.foreseen,
        merge: None,
        ..*join
    };
    (Arc::new(Node::Join(joined)), stay)
}

/// A condition whose slots from `from` on lie from `to` on instead.
fn moved(mut scalar: Scalar, from: usize, to: usize) -> Scalar {
    scalar.expr.map_columns(&|slot| if slot >= from { slot - from + to } else { slot });
    scalar.width = scalar.width - from + to;
    scalar
}

/// Whether there is one grouping set, of all keys.
fn groups_once(sets: &[Vec<bool>]) -> bool {
    matches!(sets, [] | [_]) && sets.iter().flatten().all(|within| *within)
}

/// Whether rows that differ in a slot are in different partitions of every call.
fn all_divide(calls: &[WindowCall], slot: usize) -> bool {
    let is_slot =
        |scalar: &Scalar| scalar.steps.is_empty() && matches!(scalar.expr, Expr::Column { index, .. } if index == slot);
    calls.iter().all(|call| call.partition.iter().any(is_slot))
}

/// Conditions with the expressions of columns in the place of their slots, which begin at `base`; and those that speak of others.
fn replaced(conditions: Vec<Scalar>, base: usize, columns: &[Scalar]) -> (Vec<Scalar>, Vec<Scalar>) {
    let known = |slot: usize| slot < base || columns.get(slot - base).is_some_and(is_movable);
    let sizes = columns.iter().map(|_| OnceCell::new()).collect::<Vec<_>>();
    let size = |slot: usize| {
        let place = slot.checked_sub(base).filter(|place| *place < columns.len());
        place.map_or(1, |place| *sizes[place].get_or_init(|| parts(&columns[place].expr)))
    };
    let fits = |scalar: &Scalar| {
        let mut all = 0usize;
        scalar.expr.visit(&mut |part| {
            all = all.saturating_add(if let Expr::Column { index, .. } = part { size(*index) } else { 1 });
        });
        all <= PARTS_MAX
    };
    let (mut down, left): (Vec<Scalar>, Vec<Scalar>) = conditions
        .into_iter()
        .partition(|scalar| scalar.expr.columns().iter().all(|slot| known(*slot)) && fits(scalar));
    for scalar in &mut down {
        put(&mut scalar.expr, base, columns);
        scalar.width = columns.first().map_or(scalar.width, |column| column.width);
    }
    (down, left)
}

fn parts(expr: &Expr) -> usize {
    let mut parts = 0;
    expr.visit(&mut |_| parts += 1);
    parts
}

fn put(expr: &mut Expr, base: usize, columns: &[Scalar]) {
    if let Expr::Column { index, .. } = expr {
        if let Some(column) = index.checked_sub(base).and_then(|place| columns.get(place)) {
            *expr = column.expr.clone();
        }
        return;
    }
    expr.for_each_child_mut(&mut |child| put(child, base, columns));
}

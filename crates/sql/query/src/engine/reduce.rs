//! Outer joins that no row of NULLs gets through become inner ones: `a LEFT JOIN b .. WHERE b.x > 1`.
//!
//! A condition that is not true of a NULL in a column leaves out every row in which an outer join put NULLs in the place of that column's item. WHERE
//! says so of the whole tree; the ON of an inner join of both of its sides, that of a left join of its right side. An inner join may then be
//! done in another order, and conditions go below it.

use super::item_set::ItemSet;
use super::join_tree::{Conjunct, Tree};
use super::node::JoinKind;
use super::scope::{Place, Scope, item_of};
use crate::identifier::fold;
use sqlparser::ast::{BinaryOperator as Op, Expr};

/// The tree below conditions that must be true of its rows.
pub(super) fn reduced(tree: Tree, conditions: &[Conjunct], scope: &Scope<'_>) -> Tree {
    below(tree, refusing(conditions, scope), scope)
}

fn below(tree: Tree, sure: ItemSet, scope: &Scope<'_>) -> Tree {
    let Tree::Join { kind, left, right, on } = tree else { return tree };
    let known = |side: &Tree| side.items().into_iter().any(|item| sure.has(item));
    let (kind, left, right) = match (kind, known(&left), known(&right)) {
        (JoinKind::Left, _, true) | (JoinKind::Full, true, true) => (JoinKind::Inner, left, right),
        (JoinKind::Full, true, false) => (JoinKind::Left, left, right),
        (JoinKind::Full, false, true) => (JoinKind::Left, right, left),
        (kind, ..) => (kind, left, right),
    };
    let own = refusing(&on, scope);
    let (of_left, of_right) = match kind {
        JoinKind::Inner => (sure.and(own), sure.and(own)),
        JoinKind::Left => (sure, own),
        _ => (ItemSet::NONE, ItemSet::NONE),
    };
    let (left, right) = (Box::new(below(*left, of_left, scope)), Box::new(below(*right, of_right, scope)));
    Tree::Join { kind, left, right, on }
}

/// The items of which one of the conditions is not true where they are NULL.
fn refusing(conditions: &[Conjunct], scope: &Scope<'_>) -> ItemSet {
    conditions.iter().fold(ItemSet::NONE, |all, condition| all.and(refused(&condition.expr, scope)))
}

fn refused(expr: &Expr, scope: &Scope<'_>) -> ItemSet {
    match expr {
        Expr::Nested(inner) => refused(inner, scope),
        Expr::BinaryOp { left, op: Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq, right } => {
            column(left, scope).and(column(right, scope))
        }
        Expr::IsNotNull(inner) | Expr::Between { expr: inner, negated: false, .. } => column(inner, scope),
        Expr::InList { expr: inner, negated: false, .. } | Expr::InSubquery { expr: inner, negated: false, .. } => {
            column(inner, scope)
        }
        _ => ItemSet::NONE,
    }
}

/// The item of an expression that is a column of one.
fn column(expr: &Expr, scope: &Scope<'_>) -> ItemSet {
    if let Some(item) = item_of(expr) {
        return ItemSet::one(item);
    }
    let parts: Vec<String> = match expr {
        Expr::Nested(inner) => return column(inner, scope),
        Expr::Identifier(name) => vec![fold(name)],
        Expr::CompoundIdentifier(parts) => parts.iter().map(fold).collect(),
        _ => return ItemSet::NONE,
    };
    match scope.here(&parts) {
        Ok(Some(found)) if matches!(found.place, Place::Slot(_)) => ItemSet::one(found.relation),
        _ => ItemSet::NONE,
    }
}

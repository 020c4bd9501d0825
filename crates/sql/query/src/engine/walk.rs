//! All expressions below a node: what a plan reads, and whether it may be run at another time.
//!
//! A plan is no tree: a common table expression that is named twice stands below two nodes, and so does a subquery of an expression that was copied. Each
//! is gone into once in a walk ([`Walk::below`]): a chain of WITH queries of which each names the one before twice has 2^n paths. What is computed once
//! for the whole statement reads nothing of the row around it, and says by itself whether it is volatile: it is gone into only for its tables.

use super::aggregate::AggregateCall;
use super::node::{Join, Node, SortKey};
use super::scalar::{Scalar, Step};
use super::scan::TableScan;
use super::set_function::SetCall;
use super::window::{Bound, Function};
use crate::expr::Expr;
use crate::plan::tree;
use crate::work;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Units of work of looking at a node.
pub(super) const NODE_UNITS: usize = 512;

/// By what a node is known to which others may lead as well; `None`: this is the only way to it.
pub(super) fn shared_at(node: &Arc<Node>) -> Option<usize> {
    (Arc::strong_count(node) > 1).then(|| Arc::as_ptr(node).addr())
}

/// What is met.
enum Met<'a> {
    Expr(&'a Expr),
    Table(&'a TableScan),
    /// What may be different each time it is read.
    Changing,
    /// What was volatile, and is computed once.
    Settled,
    /// The rows of the last round of a recursive query.
    Working(usize),
    /// A recursive query as a whole.
    Recursive(usize),
}

/// Whether a plan reads a slot below `width`: one of the row around it.
pub(super) fn reads_below(node: &Node, width: usize) -> bool {
    meets(&|met| is_below(met, width), |walk| walk.node(node))
}

/// Whether an expression, with its subqueries, reads a slot below `width`.
pub(super) fn scalar_reads_below(one: &Scalar, width: usize) -> bool {
    meets(&|met| is_below(met, width), |walk| walk.scalar(one))
}

/// Whether a plan reads one of some slots.
pub(super) fn reads_any(node: &Node, slots: std::ops::Range<usize>) -> bool {
    let reads =
        |met: &Met<'_>| matches!(met, Met::Expr(expr) if !tree::reads_only(expr, &|slot| !slots.contains(&slot)));
    meets(&reads, |walk| walk.node(node))
}

fn is_below(met: &Met<'_>, width: usize) -> bool {
    matches!(met, Met::Expr(expr) if !tree::reads_only(expr, &|slot| slot >= width))
}

/// Whether a plan may give something else each time it runs.
pub(super) fn is_volatile(node: &Node) -> bool {
    meets(&changes, |walk| walk.node(node))
}

/// Whether an expression, with its subqueries, may give something else each time.
pub(super) fn scalar_is_volatile(one: &Scalar) -> bool {
    meets(&changes, |walk| walk.scalar(one))
}

fn changes(met: &Met<'_>) -> bool {
    match met {
        Met::Expr(expr) => tree::is_volatile(expr),
        Met::Settled => true,
        _ => false,
    }
}

/// The slots below `width` that a plan reads, if it gives the same whenever they hold the same.
pub(super) fn repeatable_reads(node: &Node, width: usize) -> Option<Vec<usize>> {
    let (mut slots, mut changing) = (BTreeSet::new(), reads_round(node));
    let mut show = |met: Met<'_>| match met {
        Met::Expr(expr) => {
            changing |= tree::is_volatile(expr);
            slots.extend(expr.columns().into_iter().filter(|slot| *slot < width));
        }
        Met::Changing => changing = true,
        Met::Table(_) | Met::Settled | Met::Working(_) | Met::Recursive(_) => {}
    };
    let ended = walked(&mut show, false, |walk| walk.node(node));
    (!changing && !ended).then(|| slots.into_iter().collect())
}

/// Whether a plan reads the rows of the last round of a recursive query around it.
pub(super) fn reads_round(node: &Node) -> bool {
    let (mut read, mut own) = (BTreeSet::new(), BTreeSet::new());
    let mut show = |met: Met<'_>| match met {
        Met::Working(id) => drop(read.insert(id)),
        Met::Recursive(id) => drop(own.insert(id)),
        Met::Expr(_) | Met::Table(_) | Met::Changing | Met::Settled => {}
    };
    let ended = walked(&mut show, false, |walk| walk.node(node));
    ended || !read.is_subset(&own)
}

/// Shows every scan of a table, those of subqueries too.
pub(super) fn tables(node: &Node, f: &mut dyn FnMut(&TableScan)) {
    let mut show = |met: Met<'_>| {
        if let Met::Table(scan) = met {
            f(scan);
        }
    };
    walked(&mut show, true, |walk| walk.node(node));
}

/// Whether anything that is met is so. A walk that was ended says so, too: whoever asked has no use for a better answer, and ends at its next step.
fn meets(is_so: &dyn Fn(&Met<'_>) -> bool, go: impl FnOnce(&mut Walk<'_>)) -> bool {
    let mut found = false;
    let ended = walked(&mut |met| found |= is_so(&met), false, go);
    found || ended
}

/// Walks; whether it was ended.
fn walked(show: &mut dyn FnMut(Met<'_>), into_shared: bool, go: impl FnOnce(&mut Walk<'_>)) -> bool {
    let mut walk = Walk { show, into_shared, met: BTreeSet::new(), ended: false };
    go(&mut walk);
    walk.ended
}

struct Walk<'v> {
    show: &'v mut dyn FnMut(Met<'_>),
    /// What is computed once for the statement is gone into.
    into_shared: bool,
    /// Nodes that others may lead to as well, by their addresses.
    met: BTreeSet<usize>,
    ended: bool,
}

impl Walk<'_> {
    fn below(&mut self, node: &Arc<Node>) {
        if shared_at(node).is_none_or(|at| self.met.insert(at)) {
            self.node(node);
        }
    }

    /// Shows every expression of a plan, those of its subqueries too.
    fn node(&mut self, node: &Node) {
        self.ended |= work::step(NODE_UNITS).is_err();
        if self.ended {
            return;
        }
        match node {
            Node::One | Node::Literals(_) | Node::Given { .. } => {}
            Node::Internal { .. } | Node::Sequence { .. } => (self.show)(Met::Changing),
            Node::Working { id } => (self.show)(Met::Working(*id)),
            Node::Values { rows, .. } => rows.iter().for_each(|row| self.scalars(row)),
            Node::Table(scan) => {
                (self.show)(Met::Table(scan));
                self.scalars(scan.asked());
            }
            Node::Virtual { relation, filter, .. } => {
                self.scalars(relation);
                self.scalars(filter);
            }
            Node::Function { calls, .. } => calls.iter().for_each(|call| self.set_call(call)),
            Node::Filter { input, conditions: list } | Node::Project { input, columns: list, .. } => {
                self.below(input);
                self.scalars(list);
            }
            Node::Cut { input, .. } => self.below(input),
            Node::ProjectSet { input, calls } => {
                self.below(input);
                calls.iter().for_each(|call| self.set_call(call));
            }
            Node::Join(join) => self.join(join),
            Node::Aggregate { input, keys, calls, .. } => {
                self.below(input);
                self.scalars(keys);
                calls.iter().for_each(|call| self.aggregate(call));
            }
            Node::Window { input, calls } => {
                self.below(input);
                for call in calls {
                    self.scalars(call.args.iter().chain(&call.partition));
                    self.sort(&call.order);
                    if let Function::Aggregate(call) = &call.function {
                        self.aggregate(call);
                    }
                    for bound in [&call.frame.start, &call.frame.end] {
                        if let Bound::Preceding(distance) | Bound::Following(distance) = bound {
                            self.scalar(distance);
                        }
                    }
                }
            }
            Node::Sort { input, keys, limit } => {
                self.below(input);
                self.sort(keys);
                if let Some((offset, limit)) = limit {
                    self.scalars(offset.iter().chain([limit]));
                }
            }
            Node::Limit { input, offset, limit, ties } => {
                self.below(input);
                self.scalars(offset.iter().chain(limit).chain(ties));
            }
            Node::Distinct { input, on, .. } => {
                self.below(input);
                self.scalars(on.iter().flatten());
            }
            Node::Set { left, right, .. } => {
                self.below(left);
                self.below(right);
            }
            Node::Recursive { id, base, step, .. } => {
                (self.show)(Met::Recursive(*id));
                self.below(base);
                self.below(step);
            }
            Node::Cte(cte) if cte.shared && !self.into_shared => {
                if cte.volatile {
                    (self.show)(Met::Settled);
                }
            }
            Node::Cte(cte) => self.below(&cte.plan),
        }
    }

    fn join(&mut self, join: &Join) {
        self.below(&join.left);
        self.below(&join.right);
        if let Some(lookup) = &join.lookup {
            self.below(lookup);
        }
        join.keys.iter().for_each(|key| self.scalars([&key.left, &key.right]));
        self.scalars(&join.on);
    }

    fn scalars<'a>(&mut self, list: impl IntoIterator<Item = &'a Scalar>) {
        list.into_iter().for_each(|one| self.scalar(one));
    }

    fn sort(&mut self, keys: &[SortKey]) {
        self.scalars(keys.iter().map(|key| &key.by));
    }

    fn set_call(&mut self, call: &SetCall) {
        self.scalars(&call.args);
    }

    fn aggregate(&mut self, call: &AggregateCall) {
        self.scalars(call.args.iter().chain(&call.filter));
        self.sort(&call.order);
    }

    fn scalar(&mut self, scalar: &Scalar) {
        (self.show)(Met::Expr(&scalar.expr));
        for step in &scalar.steps {
            step.parts().into_iter().for_each(|part| (self.show)(Met::Expr(part)));
            if let Step::Quantified { test, .. } = step {
                (self.show)(Met::Expr(test));
            }
            if let Some(plan) = step.plan() {
                self.below(&plan.node);
            }
        }
    }
}

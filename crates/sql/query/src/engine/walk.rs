//! All expressions below a node: what a plan reads, and whether it may be run at another time.

use super::aggregate::AggregateCall;
use super::node::{Join, Node, SortKey};
use super::scalar::{Scalar, Step};
use super::scan::TableScan;
use super::set_function::SetCall;
use super::window::{Bound, Function};
use crate::expr::Expr;
use crate::plan::tree;
use std::collections::BTreeSet;

/// What is met.
enum Met<'a> {
    Expr(&'a Expr),
    Table(&'a TableScan),
    /// What may be different each time it is read.
    Changing,
    /// The rows of the last round of a recursive query.
    Working(usize),
    /// A recursive query as a whole.
    Recursive(usize),
}

/// Who is shown what is met.
type Visit<'v> = dyn FnMut(Met<'_>) + 'v;

/// Whether a plan reads a slot below `width`: one of the row around it.
pub(super) fn reads_below(node: &Node, width: usize) -> bool {
    let mut found = false;
    visit(node, &mut |met| found |= is_below(&met, width));
    found
}

/// Whether an expression, with its subqueries, reads a slot below `width`.
pub(super) fn scalar_reads_below(one: &Scalar, width: usize) -> bool {
    let mut found = false;
    scalar(one, &mut |met| found |= is_below(&met, width));
    found
}

/// Whether a plan reads one of some slots.
pub(super) fn reads_any(node: &Node, slots: std::ops::Range<usize>) -> bool {
    let mut found = false;
    visit(node, &mut |met| {
        found |= matches!(met, Met::Expr(expr) if !tree::reads_only(expr, &|slot| !slots.contains(&slot)));
    });
    found
}

fn is_below(met: &Met<'_>, width: usize) -> bool {
    matches!(met, Met::Expr(expr) if !tree::reads_only(expr, &|slot| slot >= width))
}

/// Whether a plan may give something else each time it runs.
pub(super) fn is_volatile(node: &Node) -> bool {
    let mut found = false;
    visit(node, &mut |met| found |= matches!(met, Met::Expr(expr) if tree::is_volatile(expr)));
    found
}

/// Whether an expression, with its subqueries, may give something else each time.
pub(super) fn scalar_is_volatile(one: &Scalar) -> bool {
    let mut found = false;
    scalar(one, &mut |met| found |= matches!(met, Met::Expr(expr) if tree::is_volatile(expr)));
    found
}

/// The slots below `width` that a plan reads, if it gives the same whenever they hold the same.
pub(super) fn repeatable_reads(node: &Node, width: usize) -> Option<Vec<usize>> {
    let (mut slots, mut changing) = (BTreeSet::new(), reads_round(node));
    visit(node, &mut |met| match met {
        Met::Expr(expr) => {
            changing |= tree::is_volatile(expr);
            slots.extend(expr.columns().into_iter().filter(|slot| *slot < width));
        }
        Met::Changing => changing = true,
        Met::Table(_) | Met::Working(_) | Met::Recursive(_) => {}
    });
    (!changing).then(|| slots.into_iter().collect())
}

/// Whether a plan reads the rows of the last round of a recursive query around it.
pub(super) fn reads_round(node: &Node) -> bool {
    let (mut read, mut own) = (BTreeSet::new(), BTreeSet::new());
    visit(node, &mut |met| match met {
        Met::Working(id) => drop(read.insert(id)),
        Met::Recursive(id) => drop(own.insert(id)),
        Met::Expr(_) | Met::Table(_) | Met::Changing => {}
    });
    !read.is_subset(&own)
}

/// Shows every scan of a table, those of subqueries too.
pub(super) fn tables(node: &Node, f: &mut dyn FnMut(&TableScan)) {
    visit(node, &mut |met| {
        if let Met::Table(scan) = met {
            f(scan);
        }
    });
}

/// Shows every expression of a plan, those of its subqueries too.
fn visit(node: &Node, f: &mut Visit<'_>) {
    match node {
        Node::One | Node::Given { .. } => {}
        Node::Internal { .. } | Node::Sequence { .. } => f(Met::Changing),
        Node::Working { id } => f(Met::Working(*id)),
        Node::Values(rows) => rows.iter().for_each(|row| scalars(row, f)),
        Node::Table(scan) => {
            f(Met::Table(scan));
            scalars(scan.asked(), f);
        }
        Node::Virtual { relation, filter, .. } => {
            scalars(relation, f);
            scalars(filter, f);
        }
        Node::Function { calls, .. } => calls.iter().for_each(|call| set_call(call, f)),
        Node::Filter { input, conditions: list } | Node::Project { input, columns: list, .. } => {
            visit(input, f);
            scalars(list, f);
        }
        Node::Cut { input, .. } => visit(input, f),
        Node::ProjectSet { input, calls } => {
            visit(input, f);
            calls.iter().for_each(|call| set_call(call, f));
        }
        Node::Join(join) => visit_join(join, f),
        Node::Aggregate { input, keys, calls, .. } => {
            visit(input, f);
            scalars(keys, f);
            calls.iter().for_each(|call| aggregate(call, f));
        }
        Node::Window { input, calls } => {
            visit(input, f);
            for call in calls {
                scalars(call.args.iter().chain(&call.partition), f);
                sort(&call.order, f);
                if let Function::Aggregate(call) = &call.function {
                    aggregate(call, f);
                }
                for bound in [&call.frame.start, &call.frame.end] {
                    if let Bound::Preceding(distance) | Bound::Following(distance) = bound {
                        scalar(distance, f);
                    }
                }
            }
        }
        Node::Sort { input, keys, limit } => {
            visit(input, f);
            sort(keys, f);
            if let Some((offset, limit)) = limit {
                scalars(offset.iter().chain([limit]), f);
            }
        }
        Node::Limit { input, offset, limit, ties } => {
            visit(input, f);
            scalars(offset.iter().chain(limit).chain(ties), f);
        }
        Node::Distinct { input, on, .. } => {
            visit(input, f);
            scalars(on.iter().flatten(), f);
        }
        Node::Set { left, right, .. } => {
            visit(left, f);
            visit(right, f);
        }
        Node::Recursive { id, base, step, .. } => {
            f(Met::Recursive(*id));
            visit(base, f);
            visit(step, f);
        }
        Node::Cte { plan, .. } => visit(plan, f),
    }
}

fn visit_join(join: &Join, f: &mut Visit<'_>) {
    visit(&join.left, f);
    visit(&join.right, f);
    if let Some(lookup) = &join.lookup {
        visit(lookup, f);
    }
    join.keys.iter().for_each(|key| scalars([&key.left, &key.right], f));
    scalars(&join.on, f);
}

fn scalars<'a>(list: impl IntoIterator<Item = &'a Scalar>, f: &mut Visit<'_>) {
    list.into_iter().for_each(|one| scalar(one, f));
}

fn sort(keys: &[SortKey], f: &mut Visit<'_>) {
    scalars(keys.iter().map(|key| &key.by), f);
}

fn set_call(call: &SetCall, f: &mut Visit<'_>) {
    scalars(&call.args, f);
}

fn aggregate(call: &AggregateCall, f: &mut Visit<'_>) {
    scalars(call.args.iter().chain(&call.filter), f);
    sort(&call.order, f);
}

fn scalar(scalar: &Scalar, f: &mut Visit<'_>) {
    f(Met::Expr(&scalar.expr));
    for step in &scalar.steps {
        step.parts().into_iter().for_each(|part| f(Met::Expr(part)));
        if let Step::Quantified { test, .. } = step {
            f(Met::Expr(test));
        }
        if let Some(plan) = step.plan() {
            visit(&plan.node, f);
        }
    }
}

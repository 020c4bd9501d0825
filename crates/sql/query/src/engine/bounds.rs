//! How deep queries stand within queries, and how much is bound for one statement.

use super::bind::Binder;
use super::take::mark_of;
use crate::catalog::{Oid, View};
use crate::syntax::depth::{self, Depth};
use crate::work::{Pooled, Share};
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, Expr, Visitor};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Queries within queries, at most: those of views, too.
const DEPTH_MAX: usize = 300;
/// UNION, INTERSECT and EXCEPT in one statement and its views, at most: a chain of them is as deep as it is long.
const BRANCHES_MAX: usize = depth::OPERANDS_MAX;
/// Queries that are bound for one statement, at most: more than are in it where some are bound twice.
const QUERIES_MAX: usize = 50_000;
/// Places within each other at which a query may be bound twice, for two ways to run it: each doubles the work below it.
const DOUBLINGS_MAX: usize = 3;

/// What the binder of a statement counts.
#[derive(Default)]
pub(super) struct Bounds {
    pub(super) depth: usize,
    branches: usize,
    queries: usize,
    /// Queries of the plan so far, those of a common table expression as often as it stands in the plan.
    pub(super) weight: usize,
    /// Places around at which conditions with subqueries are bound twice.
    pub(super) doublings: usize,
    /// Views that are being unfolded, outermost first, and the levels of their texts.
    unfolding: Vec<Oid>,
    levels: usize,
    /// Of the pool, for rows of VALUES: [`Binder::share`].
    held: Option<Arc<Pooled>>,
}

/// What binding an expression twice would cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubling {
    /// It holds no query.
    Cheap,
    /// Twice the work of the queries in it.
    Dear,
    /// Too much.
    No,
}

/// Whether an expression holds a query, or a mark that may stand for one.
pub(super) fn holds_query(expr: &Expr) -> bool {
    struct Finds;
    impl Visitor for Finds {
        type Break = ();
        fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if mark_of(expr).is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    ast::Visit::visit(expr, &mut Finds).is_break()
}

/// A view that reads itself, in PostgreSQL's words.
pub fn recursion(view: &str) -> SqlError {
    let message = format!("infinite recursion detected in rules for relation \"{view}\"");
    SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message)
}

impl Binder<'_> {
    /// Goes one query deeper.
    pub(super) fn nested<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R, SqlError>) -> Result<R, SqlError> {
        if self.bounds.depth >= DEPTH_MAX {
            return Err(depth::too_deep().hint(format!("Queries nest at most {DEPTH_MAX} deep, views included.")));
        }
        self.context.pace.step()?;
        self.bounds.queries += 1;
        self.bounds.weight += 1;
        if self.bounds.queries > QUERIES_MAX {
            return Err(depth::too_deep().hint(format!("A statement has at most {QUERIES_MAX} queries.")));
        }
        self.bounds.depth += 1;
        let (windows, sets) = (std::mem::take(&mut self.windows), std::mem::take(&mut self.sets));
        let result = f(self);
        self.bounds.depth -= 1;
        (self.windows, self.sets) = (windows, sets);
        result
    }

    /// Whether expressions may be bound twice here. If one of them holds a query, [`Bounds::doublings`] is to count it.
    pub(super) fn may_double<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Doubling {
        if !exprs.into_iter().any(holds_query) {
            Doubling::Cheap
        } else if self.bounds.doublings < DOUBLINGS_MAX {
            Doubling::Dear
        } else {
            Doubling::No
        }
    }

    /// Counts a set operation.
    pub(super) fn branch(&mut self) -> Result<(), SqlError> {
        self.bounds.branches += 1;
        if self.bounds.branches > BRANCHES_MAX {
            let hint = format!("A statement has at most {BRANCHES_MAX} set operations, those of its views included.");
            return Err(depth::too_deep().hint(hint));
        }
        Ok(())
    }

    /// What rows of VALUES count for that were kept as text: all of a statement together, so that many short lists are one long one.
    pub(super) fn share(&mut self) -> Share {
        Share::of(self.bounds.held.get_or_insert_with(|| Arc::new(Pooled::exact())))
    }

    /// Plans a view's query, whose text nests so deep, in the place of the view.
    pub(super) fn unfold<R>(
        &mut self,
        view: &View,
        depth: Depth,
        f: impl FnOnce(&mut Self) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        if self.bounds.unfolding.contains(&view.id) {
            return Err(recursion(&view.name));
        }
        if self.bounds.levels + depth.levels() > depth::LEVELS_MAX {
            return Err(depth::too_deep().hint("Views that read views nest as deep as their queries together."));
        }
        self.bounds.unfolding.push(view.id);
        self.bounds.levels += depth.levels();
        let result = f(self);
        self.bounds.levels -= depth.levels();
        self.bounds.unfolding.pop();
        result
    }
}

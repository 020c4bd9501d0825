//! Copies of syntax trees, counted.
//!
//! An expression is copied before its names are resolved. Where it holds queries it may be nearly the whole statement, and so may be what is copied at
//! the next level: that is work to be ended, and memory that stays until the statement is bound.

use super::bind::Binder;
use crate::SqlError;
use crate::work;
use sqlparser::ast::{Expr, Query, Select, SetExpr, TableWithJoins, Visit, Visitor};
use std::ops::ControlFlow;

/// Units of work of copying an expression, and of a query around expressions.
const EXPR_UNITS: usize = 256;
const QUERY_UNITS: usize = 2048;
/// Bytes of an expression with what it points at, and of a query.
const EXPR_BYTES: usize = size_of::<Expr>() + 64;
const QUERY_BYTES: usize =
    size_of::<Query>() + size_of::<SetExpr>() + size_of::<Select>() + size_of::<TableWithJoins>();

/// What a copy holds of queries, and of expressions.
#[derive(Default)]
struct Weighed {
    queries: usize,
    exprs: usize,
}

impl Visitor for Weighed {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<SqlError> {
        self.queries += 1;
        work::step(QUERY_UNITS).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<SqlError> {
        self.exprs += 1;
        work::step(EXPR_UNITS).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }
}

impl Binder<'_> {
    /// A copy of a syntax tree. If there are queries in it, it counts until the statement is bound.
    ///
    /// # Errors
    /// 57014; 53200 beyond the memory that there is.
    pub(super) fn copy<T: Clone + Visit>(&mut self, tree: &T) -> Result<T, SqlError> {
        let mut weighed = Weighed::default();
        if let ControlFlow::Break(ended) = tree.visit(&mut weighed) {
            return Err(ended);
        }
        if weighed.queries > 0 {
            self.copied.take(weighed.queries * QUERY_BYTES + weighed.exprs * EXPR_BYTES)?;
        }
        Ok(tree.clone())
    }
}

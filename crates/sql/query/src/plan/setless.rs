//! Places that take one row: SET and RETURNING.

use crate::expr::aggregate;
use crate::expr::function::is_set_returning;
use crate::identifier::fold;
use crate::syntax::forms::{no_fields_here, spread};
use crate::{SqlError, SqlState};
use sqlparser::ast::{Expr, Query, Visit, Visitor};
use std::ops::ControlFlow;

/// Refuses what needs other rows than the one at hand; `clause` is the place, in PostgreSQL's words. Within a subquery it is that one's.
///
/// # Errors
/// 42803 for an aggregate, 42P20 for a window function, 0A000 for a function that returns a set.
pub(super) fn refuse_sets<T: Visit>(node: &T, clause: &'static str) -> Result<(), SqlError> {
    match node.visit(&mut Finds { clause, sets_only: false, depth: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Refuses functions that return sets in what is not computed for each row: `CASE`, `COALESCE`.
///
/// # Errors
/// 0A000
pub(crate) fn refuse_set_functions<T: Visit>(node: &T, clause: &'static str) -> Result<(), SqlError> {
    match node.visit(&mut Finds { clause, sets_only: true, depth: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) if error == no_fields_here() => Err(error),
        ControlFlow::Break(error) => {
            Err(error.hint("You might be able to move the set-returning function into a LATERAL FROM item."))
        }
    }
}

struct Finds {
    clause: &'static str,
    /// Aggregates and window functions are let be.
    sets_only: bool,
    depth: usize,
}

impl Visitor for Finds {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<SqlError> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<SqlError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        if self.sets_only && self.depth == 0 && spread(expr).is_some() {
            return ControlFlow::Break(no_fields_here());
        }
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let name = call.name.0.last().and_then(|part| part.as_ident()).map(fold).unwrap_or_default();
        let (state, what) = match () {
            () if self.depth > 0 => return ControlFlow::Continue(()),
            () if self.sets_only && !is_set_returning(&name) => return ControlFlow::Continue(()),
            () if self.sets_only => (SqlState::FEATURE_NOT_SUPPORTED, "set-returning"),
            () if call.over.is_some() => (SqlState(*b"42P20"), "window"),
            () if aggregate::Function::named(&name).is_some() => (SqlState::GROUPING_ERROR, "aggregate"),
            () if is_set_returning(&name) => (SqlState::FEATURE_NOT_SUPPORTED, "set-returning"),
            () => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(SqlError::new(state, format!("{what} functions are not allowed in {}", self.clause)))
    }
}

//! Where a common table expression is named: how often it is read, and where a recursive one may name itself.
//!
//! A round of a recursive query adds rows for the rows of the last round. That has a meaning while each row of the last round adds rows
//! on its own: not where the round is read twice, counted, subtracted or missed ([`check`], the rules of PostgreSQL).

use super::bind_select::has_aggregate;
use crate::identifier::fold;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    Expr, Join, JoinOperator, ObjectName, Query, Select, SetExpr, SetOperator, SetQuantifier, TableFactor,
    TableWithJoins, Visit, Visitor,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Units of work of a name.
const NAME_UNITS: usize = 256;

/// Places in a node where a table of this name is read, up to `most`.
pub(super) fn times_read<T: Visit>(node: &T, name: &str, most: usize) -> usize {
    let mut times = 0;
    let _ = sqlparser::ast::visit_relations(node, |relation| {
        times += usize::from(is(relation, name));
        if times == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    times
}

/// How often a table is read in a node, by its name, if that stands alone.
///
/// # Errors
/// 57014
pub(super) fn names_read<T: Visit>(node: &T) -> Result<BTreeMap<String, usize>, SqlError> {
    let mut times = BTreeMap::new();
    let visited = sqlparser::ast::visit_relations(node, |relation| {
        if let Err(ended) = crate::work::step(NAME_UNITS) {
            return ControlFlow::Break(ended);
        }
        if let [part] = relation.0.as_slice()
            && let Some(name) = part.as_ident()
        {
            *times.entry(fold(name)).or_default() += 1;
        }
        ControlFlow::Continue(())
    });
    match visited {
        ControlFlow::Break(ended) => Err(ended),
        ControlFlow::Continue(()) => Ok(times),
    }
}

fn is(relation: &ObjectName, name: &str) -> bool {
    matches!(relation.0.as_slice(), [part] if part.as_ident().is_some_and(|ident| fold(ident) == name))
}

/// Refuses a recursive query that names itself where rounds have no meaning.
///
/// # Errors
/// 42P19, with PostgreSQL's words.
pub(super) fn check(name: &str, base: &SetExpr, step: &SetExpr) -> Result<(), SqlError> {
    if search(name, base).times > 0 {
        return Err(refused(name, "within its non-recursive term"));
    }
    let found = search(name, step);
    if let Some(error) = found.error {
        return Err(error);
    }
    if found.times > 1 {
        return Err(refused(name, "more than once"));
    }
    if found.is_aggregated {
        let message = "aggregate functions are not allowed in a recursive query's recursive term";
        return Err(SqlError::new(SqlState(*b"42P19"), message));
    }
    Ok(())
}

fn search<'n>(name: &'n str, term: &SetExpr) -> Search<'n> {
    let mut search = Search { name, times: 0, expressions: 0, hidden: 0, is_aggregated: false, error: None };
    search.divided(term);
    let _ = term.visit(&mut search);
    search
}

fn refused(name: &str, place: &str) -> SqlError {
    let message = format!("recursive reference to query \"{name}\" must not appear {place}");
    SqlError::new(SqlState(*b"42P19"), message)
}

struct Search<'n> {
    name: &'n str,
    /// Outside of expressions.
    times: usize,
    /// Expressions around what is visited.
    expressions: usize,
    /// Queries around it in which the name is another table's.
    hidden: usize,
    /// It stands in the FROM of a select with aggregates.
    is_aggregated: bool,
    error: Option<SqlError>,
}

impl Search<'_> {
    fn names<T: Visit>(&self, node: &T) -> bool {
        self.hidden == 0 && times_read(node, self.name, 1) > 0
    }

    fn refuse(&mut self, place: &str) {
        self.error.get_or_insert_with(|| refused(self.name, place));
    }

    /// Looks at the sides of set operations.
    fn divided(&mut self, body: &SetExpr) {
        let SetExpr::SetOperation { left, op, set_quantifier, right } = body else { return };
        let all = *set_quantifier == SetQuantifier::All;
        match op {
            SetOperator::Except if self.names(right) || all && self.names(left) => self.refuse("within EXCEPT"),
            SetOperator::Intersect if all && (self.names(left) || self.names(right)) => self.refuse("within INTERSECT"),
            _ => {}
        }
        self.divided(left);
        self.divided(right);
    }

    /// Looks at the sides of joins that may be missing.
    fn joined(&mut self, from: &TableWithJoins) {
        let mut before = self.names(&from.relation);
        for Join { relation, join_operator, .. } in &from.joins {
            let own = self.names(relation);
            let missed = match join_operator {
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => own,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => before,
                JoinOperator::FullOuter(_) => own || before,
                _ => false,
            };
            if missed {
                self.refuse("within an outer join");
            }
            before |= own;
        }
    }

    /// Whether a FROM item is the table itself.
    fn is_own(&self, factor: &TableFactor) -> bool {
        match factor {
            TableFactor::Table { name, .. } => self.hidden == 0 && is(name, self.name),
            TableFactor::NestedJoin { table_with_joins, .. } => self.is_in(table_with_joins),
            _ => false,
        }
    }

    fn is_in(&self, from: &TableWithJoins) -> bool {
        self.is_own(&from.relation) || from.joins.iter().any(|join| self.is_own(&join.relation))
    }

    fn defines(&self, query: &Query) -> bool {
        let own = |with: &sqlparser::ast::With| with.cte_tables.iter().any(|cte| fold(&cte.alias.name) == self.name);
        query.with.as_ref().is_some_and(own)
    }
}

impl Visitor for Search<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.hidden += usize::from(self.defines(query));
        self.divided(&query.body);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.hidden -= usize::from(self.defines(query));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        select.from.iter().for_each(|from| self.joined(from));
        let aggregates = has_aggregate(&select.projection) || has_aggregate(&select.having);
        self.is_aggregated |= aggregates && select.from.iter().any(|from| self.is_in(from));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            self.joined(table_with_joins);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if self.hidden == 0 && is(relation, self.name) {
            if self.expressions > 0 {
                self.refuse("within a subquery");
            } else {
                self.times += 1;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.expressions += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.expressions -= 1;
        ControlFlow::Continue(())
    }
}

//! The queries inside of a query, taken out while it is planned and put back afterwards.
//!
//! **Problem.** A query that may still go to the engine is to stay as it is, so the direct path changes a copy; and each query inside is
//! planned the same way. A copy with all that is inside it at each of five hundred levels is 125,000 queries at a time. **Idea.** The
//! queries inside are moved out first; what is copied is one level. Each is planned in its place outside, and put back at the end.

use sqlparser::ast::{Query, SetExpr, Table, Values, Visit, VisitMut, Visitor, VisitorMut};
use std::ops::ControlFlow;

/// The name that stands for a query that is elsewhere begins so: no text of a statement holds it.
const AWAY: &str = "\0away ";

/// What stands in a query's place.
fn stand_in(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// A query of nothing, in the place of one that was taken for good, or for a moment.
pub(super) fn nothing() -> Query {
    stand_in(SetExpr::Values(Values { explicit_row: false, value_keyword: false, rows: Vec::new() }))
}

/// Which of those that were taken out a query stands for.
pub(super) fn number(query: &Query) -> Option<usize> {
    let SetExpr::Table(table) = query.body.as_ref() else { return None };
    table.table_name.as_deref()?.strip_prefix(AWAY)?.parse().ok()
}

/// Whether there are queries inside of `query`.
pub(super) fn are_inside(query: &Query) -> bool {
    Visit::visit(query, &mut FindsInside { depth: 0 }).is_break()
}

struct FindsInside {
    depth: usize,
}

impl Visitor for FindsInside {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        if self.depth > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Moves the queries one level inside of `query` out of it.
pub(super) fn take_out(query: &mut Query) -> Vec<Query> {
    let mut out = TakesOut { depth: 0, taken: Vec::new() };
    let _ = VisitMut::visit(query, &mut out);
    out.taken
}

/// Moves them back.
pub(super) fn put_back(query: &mut Query, taken: Vec<Query>) {
    let _ = VisitMut::visit(query, &mut PutsBack { depth: 0, taken: taken.into_iter().map(Some).collect() });
}

struct TakesOut {
    depth: usize,
    taken: Vec<Query>,
}

impl VisitorMut for TakesOut {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.depth == 1 {
            let name = Some(format!("{AWAY}{}", self.taken.len()));
            let away = stand_in(SetExpr::Table(Box::new(Table { table_name: name, schema_name: None })));
            self.taken.push(std::mem::replace(query, away));
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

struct PutsBack {
    depth: usize,
    taken: Vec<Option<Query>>,
}

impl VisitorMut for PutsBack {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    /// Behind the stand-in, so that what is put back is not gone through.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        if self.depth == 1
            && let Some(place) = number(query)
            && let Some(taken) = self.taken.get_mut(place).and_then(Option::take)
        {
            *query = taken;
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::{number, put_back, take_out};
    use sqlparser::{ast::Statement, dialect::PostgreSqlDialect, parser::Parser};

    #[test]
    fn what_is_taken_out_goes_back_to_its_place() {
        let text = "SELECT (SELECT a FROM t WHERE a IN (SELECT 1)), ARRAY(SELECT 2) FROM u JOIN v ON EXISTS (SELECT 3) \
                    WHERE (SELECT 4) IN (SELECT 5) GROUP BY (SELECT 6) ORDER BY (SELECT 7) LIMIT (SELECT 8)";
        let mut parsed = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap();
        let Statement::Query(query) = &mut parsed[0] else { panic!("{text}") };
        let before = query.clone();
        let taken = take_out(query);
        assert_eq!(taken.len(), 8);
        assert!(taken.iter().all(|query| number(query).is_none()));
        assert!(query.to_string().matches("SELECT").count() == 1, "{query}");
        put_back(query, taken);
        assert_eq!(*query, before);
    }
}

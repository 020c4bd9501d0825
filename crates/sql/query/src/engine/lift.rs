//! Aggregates over columns of the query around: `SELECT (SELECT count(x.a) FROM y) FROM x` counts the rows of `x`.
//!
//! **Problem.** An aggregate belongs to the innermost query whose columns it names. One that names only columns of queries around its
//! own is one of theirs, so the outer query is grouped by it, and the inner query sees its value as it sees any outer column.
//!
//! **Idea.** Before a query decides whether it is grouped, it takes such aggregates out of its subqueries: a *note* stays in each one's
//! place. Where the subquery is met in the select list the note becomes the slot of the aggregate's value. Whether a name within a
//! subquery means a column of ours is asked of the scopes in between, so FROM of these subqueries is planned once more, for its
//! names alone; only a subquery with an aggregate all of whose names we know pays for that.

use super::bind::{Binder, Grouping};
use super::bind_select::has_aggregate_inside;
use super::scope::{RESERVED, Scope, Visible, reserved};
use super::take::{function_name, relation_parts};
use crate::identifier::fold;
use crate::work;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, OrderByKind, Query, Select, SelectItem,
    SetExpr, TableFactor, TableWithJoins, Visit, VisitMut, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Units of work of looking at an expression.
const EXPR_UNITS: usize = 64;

/// What stands in the place of an aggregate that was taken out.
fn note_expr(place: usize) -> Expr {
    Expr::Identifier(Ident {
        value: format!("{RESERVED}^{place}"),
        quote_style: Some('"'),
        span: sqlparser::tokenizer::Span::empty(),
    })
}

/// The aggregate that a note stands for.
pub(super) fn note_of(expr: &Expr) -> Option<usize> {
    reserved(expr, '^')?.parse().ok()
}

/// Whose column a name is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Inner,
    Ours,
    Outer,
    Nobodys,
}

impl Scope<'_> {
    /// Whose name it is, seen from a query inside `ours`. A relation is looked for where no column is called so.
    fn whose(&self, named: &Named, ours: &Scope<'_>) -> Whose {
        let relation = |scope: &Scope<'_>, parts: &[String]| {
            let alias = parts.last();
            alias.is_some_and(|alias| scope.relations.iter().any(|r| r.alias == *alias && r.visible == Visible::Yes))
        };
        match named {
            Named::Row(parts) => self.whose_is(ours, &|scope| relation(scope, parts)),
            Named::Column(parts) => {
                let column = self.whose_is(ours, &|scope| matches!(scope.here(parts), Ok(Some(_)) | Err(_)));
                match parts.as_slice() {
                    [_] if column == Whose::Nobodys => self.whose_is(ours, &|scope| relation(scope, parts)),
                    _ => column,
                }
            }
        }
    }

    /// Whose is what the innermost scope has that has it.
    fn whose_is(&self, ours: &Scope<'_>, has: &dyn Fn(&Scope<'_>) -> bool) -> Whose {
        let mut scope = self;
        let mut inside = true;
        loop {
            let found = has(scope);
            if std::ptr::addr_eq(scope, ours) {
                if found {
                    return Whose::Ours;
                }
                inside = false;
            } else if found {
                return if inside { Whose::Inner } else { Whose::Outer };
            }
            match scope.parent {
                Some(parent) => scope = parent,
                None => return Whose::Nobodys,
            }
        }
    }
}

/// What an aggregate names.
enum Named {
    /// A column, or the row of a relation that stands alone.
    Column(Vec<String>),
    /// `t.*`
    Row(Vec<String>),
}

/// Gathers what an aggregate names, but for what stands in subqueries.
struct Columns {
    depth: usize,
    /// Those in subqueries, too.
    all: bool,
    found: Vec<Named>,
}

/// What an expression names by itself, not by its parts.
fn named(expr: &Expr) -> Vec<Named> {
    match expr {
        Expr::Identifier(ident) if !ident.value.starts_with(RESERVED) => vec![Named::Column(vec![fold(ident)])],
        Expr::CompoundIdentifier(parts) => vec![Named::Column(parts.iter().map(fold).collect())],
        Expr::QualifiedWildcard(name, _) => vec![Named::Row(relation_parts(name))],
        Expr::Function(function) => rows_named(function),
        _ => Vec::new(),
    }
}

/// The arguments `t.*` of a call.
fn rows_named(function: &ast::Function) -> Vec<Named> {
    let FunctionArguments::List(list) = &function.args else { return Vec::new() };
    let row = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => Some(Named::Row(relation_parts(name))),
        _ => None,
    };
    list.args.iter().filter_map(row).collect()
}

impl Visitor for Columns {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.depth == 0 || self.all {
            self.found.append(&mut named(expr));
        }
        ControlFlow::Continue(())
    }
}

fn columns(function: &ast::Function, all: bool) -> Vec<Named> {
    let mut columns = Columns { depth: 0, all, found: rows_named(function) };
    let _ = function.visit(&mut columns);
    columns.found
}

fn is_aggregate(function: &ast::Function) -> bool {
    let name = function_name(&function.name).map(|(_, name)| name);
    function.over.is_none() && name.is_some_and(|name| super::aggregate::Function::named(&name).is_some())
}

/// Whether a subquery may hold an aggregate of ours: all of whose columns we know, one of them being ours. Aggregates may stand in queries within aggregates:
/// the names of all are asked for in one walk.
struct Plausible<'a, 's> {
    ours: &'a Scope<'s>,
    depth: usize,
    /// Aggregates around what is visited, outermost first: the queries around each, whether it names what is ours, and what is nobody's.
    around: Vec<(usize, bool, bool)>,
}

impl Plausible<'_, '_> {
    fn is_within<T: Visit>(node: &T, ours: &Scope<'_>) -> Result<bool, SqlError> {
        match Visit::visit(node, &mut Plausible { ours, depth: 0, around: Vec::new() }) {
            ControlFlow::Continue(()) => Ok(false),
            ControlFlow::Break(None) => Ok(true),
            ControlFlow::Break(Some(ended)) => Err(ended),
        }
    }
}

impl Visitor for Plausible<'_, '_> {
    /// It was found, or the statement was ended.
    type Break = Option<SqlError>;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Option<SqlError>> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Option<SqlError>> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Option<SqlError>> {
        if let Err(ended) = work::step(EXPR_UNITS) {
            return ControlFlow::Break(Some(ended));
        }
        if matches!(expr, Expr::Function(function) if is_aggregate(function)) {
            self.around.push((self.depth, false, false));
        }
        if self.around.last().is_none_or(|(depth, ..)| *depth != self.depth) {
            return ControlFlow::Continue(());
        }
        for named in named(expr) {
            let whose = self.ours.whose(&named, self.ours);
            for (_, ours, nobodys) in self.around.iter_mut().rev().take_while(|(depth, ..)| *depth == self.depth) {
                *ours |= whose == Whose::Ours;
                *nobodys |= whose == Whose::Nobodys;
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Option<SqlError>> {
        if !matches!(expr, Expr::Function(function) if is_aggregate(function)) {
            return ControlFlow::Continue(());
        }
        match self.around.pop() {
            Some((_, true, false)) => ControlFlow::Break(None),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Takes our aggregates out of the expressions of one query, and goes into its subqueries.
struct Lifter<'a, 'c, 's> {
    binder: &'a mut Binder<'c>,
    /// Where the expression stands.
    scope: &'a Scope<'s>,
    ours: &'a Scope<'s>,
    /// Queries within the expression.
    depth: usize,
    /// Aggregates around that name nothing nearer than our columns: with one of our aggregates inside they are ours as well.
    around: usize,
    found: bool,
}

impl Lifter<'_, '_, '_> {
    /// Whether an aggregate of the query itself names nothing of it, nor of those between it and us.
    fn is_far(&self, expr: &Expr) -> bool {
        let Expr::Function(function) = expr else { return false };
        self.depth == 0
            && !std::ptr::addr_eq(self.scope, self.ours)
            && is_aggregate(function)
            && columns(function, true).iter().all(|named| self.scope.whose(named, self.ours) != Whose::Inner)
    }
}

impl VisitorMut for Lifter<'_, '_, '_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        self.depth += 1;
        if self.depth > 1 {
            return ControlFlow::Continue(());
        }
        match self.binder.lift_query(query, self.scope, self.ours) {
            Ok(true) if self.around > 0 => {
                let message = "aggregate function calls cannot be nested";
                ControlFlow::Break(SqlError::new(SqlState::GROUPING_ERROR, message))
            }
            Ok(found) => {
                self.found |= found;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if self.around > 0 && self.is_far(expr) {
            self.around -= 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        // Its own aggregates a query finds by itself.
        if self.depth > 0 || std::ptr::addr_eq(self.scope, self.ours) || !is_aggregate(function) {
            return ControlFlow::Continue(());
        }
        let whose: Vec<Whose> =
            columns(function, false).iter().map(|named| self.scope.whose(named, self.ours)).collect();
        if whose.contains(&Whose::Ours) && whose.iter().all(|whose| matches!(whose, Whose::Ours | Whose::Outer)) {
            self.binder.lifted.push(function.clone());
            *expr = note_expr(self.binder.lifted.len() - 1);
            self.found = true;
        } else if self.is_far(expr) {
            self.around += 1;
        }
        ControlFlow::Continue(())
    }
}

impl<'c> Binder<'c> {
    /// Takes the aggregates over columns of `ours` out of the subqueries of an expression (or whatever holds expressions) of it;
    /// whether there are any.
    pub(super) fn lift<T: Visit + VisitMut>(&mut self, node: &mut T, ours: &Scope<'_>) -> Result<bool, SqlError> {
        if !has_aggregate_inside(node) || !Plausible::is_within(node, ours)? {
            return Ok(false);
        }
        self.lift_from(node, ours, ours)
    }

    fn lift_from<T: VisitMut>(&mut self, node: &mut T, scope: &Scope<'_>, ours: &Scope<'_>) -> Result<bool, SqlError> {
        let mut lifter = Lifter { binder: self, scope, ours, depth: 0, around: 0, found: false };
        match VisitMut::visit(node, &mut lifter) {
            ControlFlow::Continue(()) => Ok(lifter.found),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn lift_query(&mut self, query: &mut Query, outer: &Scope<'_>, ours: &Scope<'_>) -> Result<bool, SqlError> {
        if !Plausible::is_within(query, ours)? {
            return Ok(false);
        }
        let visible = self.ctes.len();
        let found = self.nested(|binder| {
            let mut found = false;
            let frame = Scope::inside(Some(outer));
            if let Some(with) = &mut query.with {
                for cte in &mut with.cte_tables {
                    found |= binder.lift_query(&mut cte.query, &frame, ours)?;
                }
            }
            if let Some(with) = &query.with {
                // What names mean is all that is asked of them here.
                binder.naming(|binder| binder.with(with, query, &frame))?;
            }
            let order = query.order_by.as_mut().and_then(|order| match &mut order.kind {
                OrderByKind::Expressions(keys) => Some(keys),
                OrderByKind::All(_) => None,
            });
            if let SetExpr::Select(select) = query.body.as_mut() {
                found |= binder.lift_select(select, order, &frame, ours)?;
            } else {
                found |= binder.lift_body(&mut query.body, &frame, ours)?;
            }
            Ok(found)
        });
        self.ctes.truncate(visible);
        found
    }

    fn lift_body(&mut self, body: &mut SetExpr, outer: &Scope<'_>, ours: &Scope<'_>) -> Result<bool, SqlError> {
        match body {
            SetExpr::Select(select) => self.lift_select(select, None, outer, ours),
            SetExpr::Query(query) => self.lift_query(query, outer, ours),
            SetExpr::SetOperation { left, right, .. } => {
                Ok(self.lift_body(left, outer, ours)? | self.lift_body(right, outer, ours)?)
            }
            SetExpr::Values(values) => self.lift_from(values, outer, ours),
            _ => Ok(false),
        }
    }

    fn lift_select(
        &mut self,
        select: &mut Select,
        order: Option<&mut Vec<ast::OrderByExpr>>,
        outer: &Scope<'_>,
        ours: &Scope<'_>,
    ) -> Result<bool, SqlError> {
        let mut found = false;
        for table in &mut select.from {
            found |= self.lift_joins(table, outer, ours)?;
        }
        // It stands apart while it is planned, and the names stay when it is back.
        let from = std::mem::take(&mut select.from);
        let named = self.naming(|binder| binder.from(&from, None, outer));
        select.from = from;
        let (_, scope) = named?;
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                found |= self.lift_from(expr, &scope, ours)?;
            }
        }
        for expr in [&mut select.selection, &mut select.having].into_iter().flatten() {
            found |= self.lift_from(expr, &scope, ours)?;
        }
        for table in &mut select.from {
            for join in &mut table.joins {
                found |= self.lift_from(&mut join.join_operator, &scope, ours)?;
            }
        }
        found |= self.lift_from(&mut select.group_by, &scope, ours)?;
        if let Some(keys) = order {
            found |= self.lift_from(keys, &scope, ours)?;
        }
        Ok(found)
    }

    fn lift_joins(
        &mut self,
        table: &mut TableWithJoins,
        outer: &Scope<'_>,
        ours: &Scope<'_>,
    ) -> Result<bool, SqlError> {
        let mut found = self.lift_factor(&mut table.relation, outer, ours)?;
        for join in &mut table.joins {
            found |= self.lift_factor(&mut join.relation, outer, ours)?;
        }
        Ok(found)
    }

    fn lift_factor(&mut self, factor: &mut TableFactor, outer: &Scope<'_>, ours: &Scope<'_>) -> Result<bool, SqlError> {
        match factor {
            TableFactor::Derived { subquery, .. } => self.lift_query(subquery, outer, ours),
            TableFactor::NestedJoin { table_with_joins, .. } => self.lift_joins(table_with_joins, outer, ours),
            _ => Ok(false),
        }
    }

    /// Plans something for the names in it; what it holds and learns on the way is forgotten.
    fn naming<R>(&mut self, f: impl FnOnce(&mut Self) -> Result<R, SqlError>) -> Result<R, SqlError> {
        let before = std::mem::replace(&mut self.names_only, true);
        let result = f(self);
        self.names_only = before;
        result
    }

    /// Refuses an aggregate of ours in a clause that is worked out before groups are made.
    pub(super) fn refuse_lifted<T: Visit + VisitMut + Clone>(
        &mut self,
        node: &T,
        ours: &Scope<'_>,
        clause: &str,
    ) -> Result<(), SqlError> {
        if !has_aggregate_inside(node) || !Plausible::is_within(node, ours)? {
            return Ok(());
        }
        if self.lift(&mut node.clone(), ours)? {
            let message = format!("aggregate functions are not allowed in {clause}");
            return Err(SqlError::new(SqlState::GROUPING_ERROR, message));
        }
        Ok(())
    }
}

/// Gives notes the slots of their aggregates.
pub(super) struct Settle<'a, 'c, 'g> {
    pub(super) binder: &'a mut Binder<'c>,
    pub(super) grouping: &'a mut Grouping<'g>,
}

impl VisitorMut for Settle<'_, '_, '_> {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Some(function) = note_of(expr).and_then(|place| self.binder.lifted.get(place).cloned()) else {
            return ControlFlow::Continue(());
        };
        match self.grouping.call(self.binder, function) {
            Ok(slot) => {
                *expr = slot;
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}

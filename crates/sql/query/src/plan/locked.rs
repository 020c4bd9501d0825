//! FOR UPDATE of what is no table: views, and queries in FROM.
//!
//! Problem: rows are locked by their keys, and only a table has such. Idea: a lock on a query is a lock on the tables that it reads
//! (PostgreSQL, SELECT, "The Locking Clause"), so it goes where those stand.
//!
//! 1. A query that gives columns of one table *is* that table, with its condition (see [`super::merged`]): only rows that the whole
//!    statement gives are locked.
//! 2. Any other takes the lock into itself, where all its rows are locked, as PostgreSQL does where it cannot be merged (LIMIT, say). It is
//!    then a part of its own ([`super::parts::lift_locks`]).
//! 3. What has no rows of its own (functions, rows of WITH) is passed over, unless OF names it.
//! 4. Each change takes a query out of FROM, or the locks out of a query: it ends.
//!
//! Caveats: a query of the second kind whose rows are not all given, and that has no LIMIT, is refused: too much would be locked. So is a
//! table beside a query of that kind. One beside what has no rows is left to [`super::row_locks`].

use super::PlanContext;
use super::analysis::relation;
use super::merged::{self, Same};
use super::refusal::Refusal;
use crate::catalog::Relation;
use crate::expr::aggregate;
use crate::expr::function::is_set_returning;
use crate::identifier::fold;
use crate::syntax::{key_lock, lock_words};
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    BinaryOperator, Distinct, Expr, GroupByExpr, Ident, JoinOperator, LockClause, ObjectName, Query, SetExpr,
    Statement, TableAlias, TableFactor, TableWithJoins, Visit, Visitor,
};
use std::ops::ControlFlow;

/// Deepest nesting of views and queries that is looked through.
const LEVELS_MAX: usize = 32;

/// A statement that locks through queries in FROM, as one that locks tables; `None` if there is nothing to change, or not known how.
///
/// # Errors
/// 0A000 where PostgreSQL says that rows cannot be locked.
pub(super) fn through(statement: &Statement, context: &PlanContext) -> Result<Option<Statement>, SqlError> {
    let Statement::Query(query) = statement else { return Ok(None) };
    if query.locks.is_empty() {
        return Ok(None);
    }
    let mut query = query.clone();
    // Parts of the statement hide tables of their names.
    let given: Vec<String> = context.given.iter().map(|given| given.name.clone()).collect();
    match push(&mut query, &given, context, 0)? {
        true => Ok(Some(Statement::Query(query))),
        false => Ok(None),
    }
}

/// Brings a query's locks to tables; whether it is one step nearer to them now. If not, it may be half changed. `around` are the names
/// of WITH around it.
fn push(query: &mut Query, around: &[String], context: &PlanContext, level: usize) -> Result<bool, SqlError> {
    if level > LEVELS_MAX {
        return Ok(false);
    }
    let locks = query.locks.clone();
    let mut with = around.to_vec();
    with.extend(query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| fold(&cte.alias.name)));
    let bounded = query.limit_clause.is_some() || query.fetch.is_some();
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(false) };
    // Whether each row of an item is one of the query.
    let all =
        !bounded && select.selection.is_none() && matches!(select.from.as_slice(), [item] if item.joins.is_empty());
    let places: Vec<(usize, usize)> =
        select.from.iter().enumerate().flat_map(|(i, item)| (0..=item.joins.len()).map(move |j| (i, j))).collect();
    let (mut merged, mut pushed, mut tables) = (false, false, false);
    let mut conditions = Vec::new();
    let mut names = Vec::new();
    for (item, place) in places {
        let Some(factor) = factor_at(query, item, place) else { return Ok(false) };
        let Some(name) = name_of(factor) else { return Ok(false) };
        let meant: Vec<LockClause> = locks.iter().filter(|lock| is_meant(lock, &name)).cloned().collect();
        names.push(name.clone());
        match what(factor, &with, context)? {
            // Nothing here has rows to lock.
            What::Nothing if meant.iter().any(names_one) => return Ok(false),
            What::Nothing => {}
            What::Table => tables |= !meant.is_empty(),
            What::Query { .. } if meant.is_empty() => {}
            What::Query { .. } if is_nullable(query, item, place) => {
                let message = format!(
                    "{} cannot be applied to the nullable side of an outer join",
                    meant.first().map_or("FOR UPDATE", lock_words)
                );
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            What::Query { mut inner, columns, hides } => {
                let scope: &[String] = if hides { &with } else { &[] };
                if let Some(same) = merged::same_table(&inner, &name, scope, context)?
                    && let Some(same) = same.renamed(&columns)
                    && let Some(condition) = merge(query, (item, place), &name, same)
                {
                    (tables, merged) = (true, true);
                    conditions.extend(condition);
                    continue;
                }
                refuse(&inner, &meant)?;
                if !all && inner.limit_clause.is_none() && inner.fetch.is_none() {
                    return Ok(false);
                }
                pushed = true;
                for lock in &meant {
                    let keys = lock.of.as_ref().is_some_and(|of| key_lock(of).0);
                    let of = lock.of.as_ref().filter(|_| keys).map(|of| ObjectName(of.0[..1].to_vec()));
                    inner.locks.push(LockClause { of, ..lock.clone() });
                }
                let mut deeper = inner.clone();
                if push(&mut deeper, scope, context, level + 1)? {
                    inner = deeper;
                }
                let Some(factor) = factor_at(query, item, place) else { return Ok(false) };
                set_query(factor, inner, &name, columns);
            }
        }
    }
    let unknown = |lock: &LockClause| names_one(lock) && !names.iter().any(|name| is_meant(lock, name));
    if locks.iter().any(unknown) {
        return Ok(false);
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(false) };
    for condition in conditions {
        select.selection = Some(match select.selection.take() {
            None => condition,
            Some(other) => Expr::BinaryOp {
                left: Box::new(Expr::Nested(Box::new(other))),
                op: BinaryOperator::And,
                right: Box::new(Expr::Nested(Box::new(condition))),
            },
        });
    }
    if tables {
        // Locks stay here: they do not go beside a part of their own.
        return Ok(merged && !pushed);
    }
    query.locks.clear();
    Ok(true)
}

/// Puts a table in the place of a query in FROM; gives the condition on it, and changes nothing if it cannot.
fn merge(query: &mut Query, at: (usize, usize), name: &str, same: Same) -> Option<Option<Expr>> {
    if !same.is_whole() {
        let mut other = query.clone();
        if !merged::rename(&mut other, at, name, &same) {
            return None;
        }
        *query = other;
    }
    let alias = TableAlias { explicit: true, name: Ident::with_quote('"', name), columns: Vec::new(), at: None };
    *factor_at(query, at.0, at.1)? = named(same.table, alias);
    Some(same.condition)
}

/// An item of FROM, or what is joined to it (from 1).
fn factor_at(query: &mut Query, item: usize, place: usize) -> Option<&mut TableFactor> {
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let item = select.from.get_mut(item)?;
    match place.checked_sub(1) {
        None => Some(&mut item.relation),
        Some(join) => item.joins.get_mut(join).map(|join| &mut join.relation),
    }
}

/// Whether an outer join may give NULL for a row of it.
fn is_nullable(query: &Query, item: usize, place: usize) -> bool {
    use JoinOperator as J;
    let SetExpr::Select(select) = query.body.as_ref() else { return false };
    let joins: &[_] = select.from.get(item).map_or(&[], |item: &TableWithJoins| &item.joins);
    joins.iter().enumerate().any(|(join, joined)| match joined.join_operator {
        J::Join(_) | J::Inner(_) | J::CrossJoin(_) => false,
        J::Left(_) | J::LeftOuter(_) => join + 1 == place,
        J::Right(_) | J::RightOuter(_) => join + 1 > place,
        _ => join + 1 >= place,
    })
}

/// Whether OF names what is locked.
pub(super) fn names_one(lock: &LockClause) -> bool {
    lock.of.as_ref().is_some_and(|of| key_lock(of).1.is_some())
}

pub(super) fn is_meant(lock: &LockClause, name: &str) -> bool {
    let of = lock.of.as_ref().map(key_lock).and_then(|(_, of)| of);
    of.is_none_or(|of| of.0.last().and_then(|part| part.as_ident()).is_some_and(|ident| fold(ident) == *name))
}

/// The name that an item of FROM has.
pub(super) fn name_of(factor: &TableFactor) -> Option<String> {
    let own = |name: &ObjectName| name.0.last().and_then(|part| part.as_ident()).map(fold);
    match factor {
        TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
            alias.as_ref().map_or_else(|| own(name), |alias| Some(fold(&alias.name)))
        }
        TableFactor::Derived { alias, .. } | TableFactor::UNNEST { alias, .. } => {
            alias.as_ref().map(|alias| fold(&alias.name))
        }
        _ => None,
    }
}

pub(super) enum What {
    Nothing,
    Table,
    Query {
        inner: Box<Query>,
        /// The names that its columns are given.
        columns: Vec<Ident>,
        /// Whether names of WITH around it are seen in it: not in a view.
        hides: bool,
    },
}

pub(super) fn what(factor: &TableFactor, with: &[String], context: &PlanContext) -> Result<What, SqlError> {
    let columns = |alias: &Option<TableAlias>| -> Vec<Ident> {
        alias.iter().flat_map(|alias| &alias.columns).map(|column| column.name.clone()).collect()
    };
    Ok(match factor {
        TableFactor::Table { args: Some(_), .. } | TableFactor::Function { .. } | TableFactor::UNNEST { .. } => {
            What::Nothing
        }
        TableFactor::Table { name, .. } if names_with(name, with) => What::Nothing,
        TableFactor::Table { name, alias, .. } => match relation(name, context) {
            Ok(relation) => match relation.as_ref() {
                Relation::View(view) => {
                    let inner = crate::syntax::parse_query(&view.query, &context.pace)?.0;
                    let own = columns(alias);
                    let rest = view.columns.iter().skip(own.len()).map(|(name, _)| Ident::with_quote('"', name));
                    let columns = own.iter().cloned().chain(rest).collect();
                    What::Query { inner, columns, hides: false }
                }
                _ => What::Table,
            },
            Err(Refusal::Wrong(error)) if error.is_of_the_moment() => return Err(*error),
            Err(_) => What::Table,
        },
        TableFactor::Derived { subquery, .. } if matches!(subquery.body.as_ref(), SetExpr::Values(_)) => What::Nothing,
        TableFactor::Derived { subquery, alias, .. } => {
            What::Query { inner: subquery.clone(), columns: columns(alias), hides: true }
        }
        _ => What::Table,
    })
}

/// Whether a name means rows of WITH.
pub(super) fn names_with(name: &ObjectName, with: &[String]) -> bool {
    matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(|ident| with.contains(&fold(ident))))
}

fn named(name: ObjectName, alias: TableAlias) -> TableFactor {
    TableFactor::Table {
        name,
        alias: Some(alias),
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

fn set_query(factor: &mut TableFactor, query: Box<Query>, name: &str, columns: Vec<Ident>) {
    if let TableFactor::Derived { subquery, .. } = factor {
        *subquery = query;
        return;
    }
    let alias = TableAlias {
        explicit: true,
        name: Ident::with_quote('"', name),
        columns: columns
            .into_iter()
            .map(|name| sqlparser::ast::TableAliasColumnDef { name, data_type: None })
            .collect(),
        at: None,
    };
    *factor = TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None };
}

/// What PostgreSQL says of a query whose rows are none of a table.
pub(super) fn refuse(query: &Query, locks: &[LockClause]) -> Result<(), SqlError> {
    let words = locks.first().map_or("FOR UPDATE", lock_words);
    let no = |clause: &str| {
        let message = format!("{words} is not allowed with {clause}");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    };
    let select = match query.body.as_ref() {
        SetExpr::Select(select) => select,
        SetExpr::SetOperation { .. } => return no("UNION/INTERSECT/EXCEPT"),
        _ => return Ok(()),
    };
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty());
    match (&select.distinct, grouped, &select.having) {
        (Some(Distinct::Distinct | Distinct::On(_)), ..) => no("DISTINCT clause"),
        (_, true, _) => no("GROUP BY clause"),
        (.., Some(_)) => no("HAVING clause"),
        _ => match select.projection.visit(&mut NoRows { depth: 0 }) {
            ControlFlow::Break(clause) => no(clause),
            ControlFlow::Continue(()) => Ok(()),
        },
    }
}

/// Looks for what makes rows of a list that are none of a table.
struct NoRows {
    depth: usize,
}

impl Visitor for NoRows {
    type Break = &'static str;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<&'static str> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<&'static str> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<&'static str> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let name = call.name.0.last().and_then(|part| part.as_ident()).map(fold).unwrap_or_default();
        ControlFlow::Break(match () {
            () if self.depth > 0 => return ControlFlow::Continue(()),
            () if call.over.is_some() => "window functions",
            () if aggregate::Function::named(&name).is_some() => "aggregate functions",
            () if is_set_returning(&name) => "set-returning functions in the target list",
            () => return ControlFlow::Continue(()),
        })
    }
}

//! FOR UPDATE of what is no table: views, and queries in FROM.
//!
//! Problem: rows are locked by their keys, and only a table has such. Idea: a lock on a query is a lock on the tables that it reads
//! (PostgreSQL, SELECT, "The Locking Clause"), so it goes where those stand.
//!
//! 1. A query that gives columns of one table, all of them under their names, *is* that table, with its condition: only rows that the whole
//!    statement gives are locked.
//! 2. Any other takes the lock into itself, where all its rows are locked, as PostgreSQL does where it cannot be merged (LIMIT, say). It is
//!    then a part of its own ([`super::parts::lift_locks`]).
//! 3. What has no rows of its own (functions, rows of WITH) is passed over, unless OF names it.
//!
//! Caveats: a query of some columns, or of computed ones, is of the second kind: more may be locked than is given. A table beside such a
//! query is refused.

use super::PlanContext;
use super::analysis::stored_relation;
use super::refusal::Refusal;
use super::shape;
use crate::catalog::{Relation, Table};
use crate::identifier::fold;
use crate::syntax::{key_lock, lock_words};
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    BinaryOperator, Distinct, Expr, GroupByExpr, Ident, LockClause, ObjectName, Query, Select, SelectItem, SetExpr,
    Statement, TableAlias, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};
use std::ops::ControlFlow;
use std::sync::Arc;

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
    match push(&mut query, context, 0)? {
        true => Ok(Some(Statement::Query(query))),
        false => Ok(None),
    }
}

/// Brings a query's locks to tables; whether anything has changed, and all is known.
fn push(query: &mut Query, context: &PlanContext, level: usize) -> Result<bool, SqlError> {
    if level > LEVELS_MAX {
        return Ok(false);
    }
    let locks = query.locks.clone();
    let with: Vec<String> =
        query.with.iter().flat_map(|with| &with.cte_tables).map(|cte| fold(&cte.alias.name)).collect();
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(false) };
    let (mut changed, mut tables) = (false, false);
    let mut conditions = Vec::new();
    for item in &mut select.from {
        let joins = item.joins.iter_mut().map(|join| &mut join.relation);
        for factor in std::iter::once(&mut item.relation).chain(joins) {
            let Some(name) = name_of(factor) else { return Ok(false) };
            let meant: Vec<LockClause> = locks.iter().filter(|lock| is_meant(lock, &name)).cloned().collect();
            match what(factor, &with, context)? {
                // Nothing here has rows to lock.
                What::Nothing if meant.iter().any(names_one) => return Ok(false),
                What::Nothing => changed = true,
                What::Table => tables |= !meant.is_empty(),
                What::Query(inner, columns) if !meant.is_empty() => {
                    changed = true;
                    if columns.is_none()
                        && let Some((table, condition)) = same_table(&inner, &name, context)?
                    {
                        let alias = TableAlias {
                            explicit: true,
                            name: Ident::with_quote('"', name),
                            columns: Vec::new(),
                            at: None,
                        };
                        tables = true;
                        conditions.extend(condition);
                        *factor = named(table, alias);
                        continue;
                    }
                    let mut inner = inner;
                    refuse(&inner, &meant)?;
                    for lock in &meant {
                        let keys = lock.of.as_ref().is_some_and(|of| key_lock(of).0);
                        let of = lock.of.as_ref().filter(|_| keys).map(|of| ObjectName(of.0[..1].to_vec()));
                        inner.locks.push(LockClause { of, ..lock.clone() });
                    }
                    push(&mut inner, context, level + 1)?;
                    set_query(factor, inner, &name, columns);
                }
                What::Query(..) => {}
            }
        }
    }
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
    if !tables {
        query.locks.clear();
    }
    Ok(changed)
}

/// Whether OF names what is locked.
fn names_one(lock: &LockClause) -> bool {
    lock.of.as_ref().is_some_and(|of| key_lock(of).1.is_some())
}

fn is_meant(lock: &LockClause, name: &str) -> bool {
    let of = lock.of.as_ref().map(key_lock).and_then(|(_, of)| of);
    of.is_none_or(|of| of.0.last().and_then(|part| part.as_ident()).is_some_and(|ident| fold(ident) == *name))
}

/// The name that an item of FROM has.
fn name_of(factor: &TableFactor) -> Option<String> {
    let own = |name: &ObjectName| name.0.last().and_then(|part| part.as_ident()).map(fold);
    match factor {
        TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
            alias.as_ref().map_or_else(|| own(name), |alias| Some(fold(&alias.name)))
        }
        TableFactor::Derived { alias, .. } => alias.as_ref().map(|alias| fold(&alias.name)),
        _ => None,
    }
}

enum What {
    Nothing,
    Table,
    /// A query, and the names that its columns are given.
    Query(Box<Query>, Option<Vec<Ident>>),
}

fn what(factor: &TableFactor, with: &[String], context: &PlanContext) -> Result<What, SqlError> {
    let columns = |alias: &Option<TableAlias>| {
        let columns = alias.as_ref().map(|alias| alias.columns.iter().map(|column| column.name.clone()));
        columns.map(Iterator::collect::<Vec<_>>).filter(|columns| !columns.is_empty())
    };
    Ok(match factor {
        TableFactor::Table { args: Some(_), .. } | TableFactor::Function { .. } => What::Nothing,
        TableFactor::Table { name, .. } if name.0.len() == 1 && names_with(name, with) => What::Nothing,
        TableFactor::Table { name, alias, .. } => match stored_relation(name, context) {
            Ok(relation) => match relation.as_ref() {
                Relation::View(view) => {
                    let query = crate::syntax::parse_query(&view.query, &context.pace)?.0;
                    What::Query(query, columns(alias))
                }
                _ => What::Table,
            },
            Err(Refusal::Wrong(error)) if error.is_of_the_moment() => return Err(*error),
            Err(_) => What::Table,
        },
        TableFactor::Derived { subquery, .. } if matches!(subquery.body.as_ref(), SetExpr::Values(_)) => What::Nothing,
        TableFactor::Derived { subquery, alias, .. } => What::Query(subquery.clone(), columns(alias)),
        _ => What::Table,
    })
}

fn names_with(name: &ObjectName, with: &[String]) -> bool {
    name.0.last().and_then(|part| part.as_ident()).is_some_and(|ident| with.contains(&fold(ident)))
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

fn set_query(factor: &mut TableFactor, query: Box<Query>, name: &str, columns: Option<Vec<Ident>>) {
    if let TableFactor::Derived { subquery, .. } = factor {
        *subquery = query;
        return;
    }
    let alias = TableAlias {
        explicit: true,
        name: Ident::with_quote('"', name),
        columns: columns
            .into_iter()
            .flatten()
            .map(|name| sqlparser::ast::TableAliasColumnDef { name, data_type: None })
            .collect(),
        at: None,
    };
    *factor = TableFactor::Derived { lateral: false, subquery: query, alias: Some(alias), sample: None };
}

/// The only item of a plain SELECT: no grouping, no DISTINCT, no order, no bounds.
fn plain(query: &Query) -> Option<(&Select, &TableWithJoins)> {
    let bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let whole = matches!(&select.group_by, GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty())
        && select.having.is_none()
        && matches!(select.distinct, None | Some(Distinct::All))
        && select.named_window.is_empty();
    match select.from.as_slice() {
        [item] if bare && whole && item.joins.is_empty() => Some((select, item)),
        _ => None,
    }
}

/// The table that a query gives all columns of, under their names, and the condition on it; `name` is what the table is called then.
fn same_table(
    query: &Query,
    name: &str,
    context: &PlanContext,
) -> Result<Option<(ObjectName, Option<Expr>)>, SqlError> {
    let Some((select, item)) = plain(query) else { return Ok(None) };
    let TableFactor::Table { name: of, alias, args: None, .. } = &item.relation else { return Ok(None) };
    if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
        return Ok(None);
    }
    let Ok((_, own)) = shape::table_name(of) else { return Ok(None) };
    let known = alias.as_ref().map_or(own, |alias| fold(&alias.name));
    let relation = match stored_relation(of, context) {
        Ok(relation) => relation,
        Err(_) => return Ok(None),
    };
    // A view of a view is looked through.
    let (table, of, inner): (Arc<Relation>, ObjectName, Option<Expr>) = match relation.as_ref() {
        Relation::Table(_) => (relation.clone(), of.clone(), None),
        Relation::View(view) => {
            let below = crate::syntax::parse_query(&view.query, &context.pace)?.0;
            let Some((of, condition)) = same_table(&below, name, context)? else { return Ok(None) };
            let Ok(table) = stored_relation(&of, context) else { return Ok(None) };
            (table, of, condition)
        }
        Relation::Sequence(_) => return Ok(None),
    };
    let Relation::Table(table) = table.as_ref() else { return Ok(None) };
    if !gives_all(select, table) {
        return Ok(None);
    }
    let mut condition = select.selection.clone();
    if let Some(condition) = &mut condition
        && condition.visit(&mut Qualify { table, known: &known, name }).is_break()
    {
        return Ok(None);
    }
    let both = match (condition, inner) {
        (Some(outer), Some(inner)) => Some(Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(inner))),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(outer))),
        }),
        (one, other) => one.or(other),
    };
    Ok(Some((of, both)))
}

fn gives_all(select: &Select, table: &Table) -> bool {
    let mut names = Vec::new();
    for item in &select.projection {
        let (expr, alias) = match item {
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => {
                names.extend(table.columns.iter().map(|column| column.name.clone()));
                continue;
            }
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(fold(alias))),
            _ => return false,
        };
        let column = match expr {
            Expr::Identifier(ident) => fold(ident),
            Expr::CompoundIdentifier(parts) => parts.last().map(fold).unwrap_or_default(),
            _ => return false,
        };
        if alias.is_some_and(|alias| alias != column) {
            return false;
        }
        names.push(column);
    }
    names.iter().eq(table.columns.iter().map(|column| &column.name))
}

/// Names columns by what the table is called outside; gives up where there is a query inside, or a name that is not the table's.
struct Qualify<'a> {
    table: &'a Table,
    known: &'a str,
    name: &'a str,
}

impl VisitorMut for Qualify<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let column = match expr {
            Expr::Identifier(ident) => ident.clone(),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., table, column] if fold(table) == self.known => column.clone(),
                _ => return ControlFlow::Break(()),
            },
            _ => return ControlFlow::Continue(()),
        };
        if !self.table.columns.iter().any(|known| known.name == fold(&column)) {
            return ControlFlow::Break(());
        }
        *expr = Expr::CompoundIdentifier(vec![Ident::with_quote('"', self.name), column]);
        ControlFlow::Continue(())
    }
}

/// What PostgreSQL says of a query whose rows are none of a table.
fn refuse(query: &Query, locks: &[LockClause]) -> Result<(), SqlError> {
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
        _ => Ok(()),
    }
}

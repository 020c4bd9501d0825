//! A query in FROM that gives columns of one table, as that table: PostgreSQL's "simple subquery", for [`super::locked`].
//!
//! The table takes the query's name, its condition joins the others, and the columns are called in the outer query what they are called
//! in the table. The names that only the table has are not to be seen: where one of them is named, or anything here that is not known, nothing
//! is merged.

use super::PlanContext;
use super::analysis::relation;
use super::locked::{name_of, names_with};
use crate::SqlError;
use crate::catalog::Relation;
use crate::identifier::fold;
use crate::syntax::{output_name, tree};
use sqlparser::ast::{
    BinaryOperator, Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    JoinConstraint, ObjectName, ObjectNamePart, OrderByKind, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};
use std::ops::ControlFlow;

/// Columns of every table that `*` does not give.
const SYSTEM: [&str; 6] = ["tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"];

/// The table that a query gives columns of.
pub(super) struct Same {
    /// Its name.
    pub(super) table: ObjectName,
    /// Which of its rows.
    pub(super) condition: Option<Expr>,
    /// The names that the query gives, and those of the table's columns.
    columns: Vec<(String, String)>,
    /// All columns of the table.
    all: Vec<String>,
}

impl Same {
    /// Under other names: those of the first columns, or of all.
    pub(super) fn renamed(mut self, names: &[Ident]) -> Option<Same> {
        if names.len() > self.columns.len() {
            return None;
        }
        for ((given, _), name) in self.columns.iter_mut().zip(names) {
            *given = fold(name);
        }
        Some(self)
    }

    /// Whether it gives all columns, under their names.
    pub(super) fn is_whole(&self) -> bool {
        self.columns.iter().all(|(given, own)| given == own)
            && self.columns.iter().map(|(given, _)| given).eq(&self.all)
    }

    fn own(&self, given: &str) -> Option<&str> {
        own(&self.columns, given)
    }
}

/// The table's name of a column, if there is one of that name.
fn own<'c>(columns: &'c [(String, String)], given: &str) -> Option<&'c str> {
    let mut named = columns.iter().filter(|(known, _)| known == given).map(|(_, own)| own.as_str());
    let first = named.next()?;
    named.next().is_none().then_some(first)
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

/// The table that a query gives columns of; `name` is what it is called in the conditions then, `with` the names of WITH around it.
pub(super) fn same_table(
    query: &Query,
    name: &str,
    with: &[String],
    context: &PlanContext,
) -> Result<Option<Same>, SqlError> {
    let Some((select, item)) = plain(query) else { return Ok(None) };
    let (below, known) = match &item.relation {
        TableFactor::Table {
            name: of, alias, args: None, sample: None, version: None, with_ordinality: false, ..
        } if !names_with(of, with) && alias.as_ref().is_none_or(|alias| alias.columns.is_empty()) => {
            let Some(below) = named_table(of, name, context)? else { return Ok(None) };
            let parts = of.0.iter().filter_map(|part| part.as_ident().map(fold));
            let known: Vec<String> = alias.as_ref().map_or_else(|| parts.collect(), |alias| vec![fold(&alias.name)]);
            (below, known)
        }
        TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
            let columns: Vec<Ident> = columns_of(alias.as_ref());
            let below = same_table(subquery, name, with, context)?.and_then(|same| same.renamed(&columns));
            let Some(below) = below else { return Ok(None) };
            (below, alias.iter().map(|alias| fold(&alias.name)).collect())
        }
        _ => return Ok(None),
    };
    let Some(columns) = given(select, &below, &known) else { return Ok(None) };
    let mut condition = select.selection.clone();
    if let Some(condition) = &mut condition
        && condition.visit(&mut Qualify { below: &below, known: &known, name }).is_break()
    {
        return Ok(None);
    }
    let condition = match (condition, below.condition) {
        (Some(outer), Some(inner)) => Some(Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(inner))),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(outer))),
        }),
        (one, other) => one.or(other),
    };
    Ok(Some(Same { table: below.table, condition, columns, all: below.all }))
}

fn columns_of(alias: Option<&TableAlias>) -> Vec<Ident> {
    alias.iter().flat_map(|alias| &alias.columns).map(|column| column.name.clone()).collect()
}

/// A table, or a view of one.
fn named_table(of: &ObjectName, name: &str, context: &PlanContext) -> Result<Option<Same>, SqlError> {
    let Ok(relation) = relation(of, context) else { return Ok(None) };
    Ok(match relation.as_ref() {
        Relation::Table(table) => {
            let all: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
            let columns = all.iter().map(|name| (name.clone(), name.clone())).collect();
            Some(Same { table: of.clone(), condition: None, columns, all })
        }
        Relation::View(view) => {
            let below = crate::syntax::parse_query(&view.query, &context.pace)?.0;
            let names: Vec<Ident> = view.columns.iter().map(|(name, _)| Ident::with_quote('"', name)).collect();
            let same = same_table(&below, name, &[], context)?;
            // A list that is not the view's any more is none of it.
            same.filter(|same| same.columns.len() == names.len()).and_then(|same| same.renamed(&names))
        }
        Relation::Sequence(_) => None,
    })
}

/// Whether a column's qualifier is the name of what is known by `known`: with its schema, or without.
fn qualifies(parts: &[Ident], known: &[String]) -> bool {
    !parts.is_empty()
        && parts.len() <= known.len()
        && parts.iter().rev().zip(known.iter().rev()).all(|(part, known)| fold(part) == *known)
}

/// The columns that a list gives, and those of the table that they are; `None` if one is no column.
fn given(select: &Select, below: &Same, known: &[String]) -> Option<Vec<(String, String)>> {
    let mut out: Vec<(String, String)> = Vec::new();
    for item in &select.projection {
        let (expr, alias) = match item {
            SelectItem::Wildcard(_) => {
                out.extend(below.columns.iter().cloned());
                continue;
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(of), _) => {
                let parts: Vec<Ident> = of.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
                if !qualifies(&parts, known) {
                    return None;
                }
                out.extend(below.columns.iter().cloned());
                continue;
            }
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(fold(alias))),
            _ => return None,
        };
        let column = match expr {
            Expr::Identifier(ident) => fold(ident),
            Expr::CompoundIdentifier(parts) => match parts.split_last() {
                Some((column, of)) if qualifies(of, known) => fold(column),
                _ => return None,
            },
            _ => return None,
        };
        let own = below.own(&column)?.to_owned();
        out.push((alias.unwrap_or(column), own));
    }
    (!out.is_empty()).then_some(out)
}

/// Names columns by what the table is called outside; gives up where there is a query inside, or a name that is not the table's.
struct Qualify<'a> {
    below: &'a Same,
    known: &'a [String],
    name: &'a str,
}

impl VisitorMut for Qualify<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let column = match expr {
            Expr::Identifier(ident) => fold(ident),
            Expr::CompoundIdentifier(parts) => match parts.split_last() {
                Some((column, of)) if qualifies(of, self.known) => fold(column),
                _ => return ControlFlow::Break(()),
            },
            ref other if holds_rows(other) => return ControlFlow::Break(()),
            _ => return ControlFlow::Continue(()),
        };
        let Some(own) = self.below.own(&column) else { return ControlFlow::Break(()) };
        *expr = column_of(self.name, own);
        ControlFlow::Continue(())
    }
}

fn column_of(table: &str, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::with_quote('"', table), Ident::with_quote('"', column)])
}

/// Whether whole rows are named: `r.*`, as an argument, too.
fn holds_rows(expr: &Expr) -> bool {
    match expr {
        Expr::QualifiedWildcard(..) | Expr::Wildcard(_) => true,
        Expr::Function(function) => match &function.args {
            FunctionArguments::List(list) => list.args.iter().any(|arg| {
                let (FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg)) =
                    arg;
                !matches!(arg, FunctionArgExpr::Expr(_))
            }),
            _ => false,
        },
        _ => false,
    }
}

/// Calls the columns of the item at `at`, whose name is `name`, what they are called in its table; whether all is known that names them. If
/// not, the query is half changed.
pub(super) fn rename(query: &mut Query, at: (usize, usize), name: &str, same: &Same) -> bool {
    let mut order = query.order_by.take();
    let SetExpr::Select(select) = query.body.as_mut() else { return false };
    let bare = select.distinct.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty())
        && select.having.is_none()
        && select.named_window.is_empty();
    if !bare {
        return false;
    }
    let mut names = Vec::new();
    for (i, item) in select.from.iter().enumerate() {
        let joined = item.joins.iter().map(|join| &join.relation);
        for (j, factor) in std::iter::once(&item.relation).chain(joined).enumerate() {
            // What may name the columns of others.
            let beside =
                matches!(factor, TableFactor::Table { args: None, .. } | TableFactor::Derived { lateral: false, .. });
            match name_of(factor) {
                Some(name) if beside || (i, j) == at => names.push(name),
                _ => return false,
            }
        }
    }
    let mut visitor = Rename { name, same, alone: names.len() == 1 };
    for join in select.from.iter_mut().flat_map(|item| &mut item.joins) {
        let Some(constraint) = tree::constraint_mut(&mut join.join_operator) else { return false };
        match constraint {
            JoinConstraint::None => {}
            JoinConstraint::On(on) => {
                if on.visit(&mut visitor).is_break() {
                    return false;
                }
            }
            _ => return false,
        }
    }
    if select.selection.visit(&mut visitor).is_break() {
        return false;
    }
    let Some(projection) = list(&select.projection, &names, &mut visitor) else { return false };
    select.projection = projection;
    if let Some(order) = &mut order {
        let OrderByKind::Expressions(keys) = &mut order.kind else { return false };
        let labels: Vec<String> = select.projection.iter().filter_map(label).collect();
        for key in keys {
            // A name of the list comes first.
            if matches!(&key.expr, Expr::Identifier(ident) if labels.contains(&fold(ident))) {
                continue;
            }
            if key.visit(&mut visitor).is_break() {
                return false;
            }
        }
    }
    query.order_by = order;
    true
}

fn label(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(output_name(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    }
}

/// The list, with the columns in the place of `*`, under the names that it gave.
fn list(items: &[SelectItem], names: &[String], visitor: &mut Rename<'_>) -> Option<Vec<SelectItem>> {
    let columns = |name: &str, same: &Same| -> Vec<SelectItem> {
        let item = |(given, own): &(String, String)| SelectItem::ExprWithAlias {
            expr: column_of(name, own),
            alias: Ident::with_quote('"', given),
        };
        same.columns.iter().map(item).collect()
    };
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        match item {
            SelectItem::Wildcard(options) => {
                for name in names {
                    if name == visitor.name {
                        out.extend(columns(name, visitor.same));
                        continue;
                    }
                    let of = ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote('"', name))]);
                    let kind = SelectItemQualifiedWildcardKind::ObjectName(of);
                    out.push(SelectItem::QualifiedWildcard(kind, options.clone()));
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(of), _) => {
                match of.0.as_slice() {
                    [part] if part.as_ident().is_some_and(|ident| fold(ident) == visitor.name) => {
                        out.extend(columns(visitor.name, visitor.same));
                    }
                    _ => out.push(item.clone()),
                }
            }
            SelectItem::UnnamedExpr(expr) => {
                let mut expr = expr.clone();
                let alias = Ident::with_quote('"', output_name(&expr));
                if expr.visit(visitor).is_break() {
                    return None;
                }
                out.push(SelectItem::ExprWithAlias { expr, alias });
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let mut expr = expr.clone();
                if expr.visit(visitor).is_break() {
                    return None;
                }
                out.push(SelectItem::ExprWithAlias { expr, alias: alias.clone() });
            }
            _ => return None,
        }
    }
    Some(out)
}

/// Calls columns of a query what they are called in its table; gives up at a name that may be the table's only.
struct Rename<'a> {
    name: &'a str,
    same: &'a Same,
    /// Nothing else is in FROM.
    alone: bool,
}

impl VisitorMut for Rename<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let own = match expr {
            Expr::Identifier(ident) => {
                let given = fold(ident);
                let other = !self.same.columns.iter().any(|(known, _)| *known == given);
                if other {
                    let hidden =
                        given == self.name || SYSTEM.contains(&given.as_str()) || self.same.all.contains(&given);
                    return if hidden { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                }
                match self.same.own(&given) {
                    Some(own) if own == given => return ControlFlow::Continue(()),
                    // It may be another's as well.
                    own => own.filter(|_| self.alone),
                }
            }
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [of, column] if fold(of) == self.name => self.same.own(&fold(column)),
                [of, ..] if fold(of) == self.name => None,
                _ => return ControlFlow::Continue(()),
            },
            ref other if holds_rows(other) => None,
            _ => return ControlFlow::Continue(()),
        };
        let Some(own) = own else { return ControlFlow::Break(()) };
        *expr = column_of(self.name, own);
        ControlFlow::Continue(())
    }
}

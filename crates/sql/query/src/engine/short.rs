//! A SELECT of the direct path, bound.
//!
//! **Problem.** Short statements run in loops over tables that know no nodes, slots of steps or queries within expressions. **Idea.** Which parts a
//! statement may have is a pattern of its syntax (`plan::shape`); what its names and types mean is asked of the one [`Binder`]. The rows that it
//! binds over are all columns of the tables as written, and what comes out is taken as it is where it needs no step: else the engine's way is the only one.
//!
//! Subqueries stand apart before: they are parameters here (`plan::subquery`).

use super::aggregate::AggregateCall;
use super::bind::{Binder, Output};
use super::bind_query::tail;
use super::bind_select::{Bound, OrderKey, Taken};
use super::query::field;
use super::scalar::Scalar;
use super::scope::{Place, Scope, ScopeColumn, ScopeRelation, Visible};
use super::take::Clause;
use crate::catalog::Relation;
use crate::exec::aggregate::Aggregate;
use crate::exec::sort::SortKey;
use crate::expr::{Expr, Parameters, Volatility};
use crate::output::Field;
use crate::plan::PlanContext;
use crate::plan::refusal::{Planned, Refusal};
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, SetExpr};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A table of FROM.
pub(crate) struct Table {
    pub(crate) relation: Arc<Relation>,
    pub(crate) alias: String,
    /// Its schema, if it has no alias.
    pub(crate) schema: Option<String>,
}

/// What stands beside FROM and WHERE.
pub(crate) struct Short {
    /// Over the rows of FROM, or of the groups.
    pub(crate) items: Vec<(Expr, Field)>,
    pub(crate) order: Vec<SortKey>,
    pub(crate) groups: Option<Groups>,
    pub(crate) limit: Option<Expr>,
    pub(crate) offset: Option<Expr>,
}

/// GROUP BY: rows of the keys, then the aggregates.
pub(crate) struct Groups {
    /// Over the rows of FROM.
    pub(crate) keys: Vec<Expr>,
    pub(crate) aggregates: Vec<Aggregate>,
    pub(crate) having: Option<Expr>,
}

/// The binder of one SELECT.
pub(crate) struct ShortBinder<'c> {
    binder: Binder<'c>,
    scope: Scope<'static>,
}

impl<'c> ShortBinder<'c> {
    /// Over the columns of tables, in their order. `parameters`: what is known of the statement's.
    pub(crate) fn new(context: &'c PlanContext, parameters: Parameters, tables: Vec<Table>) -> Self {
        let mut binder = Binder::new(context, None);
        binder.params = parameters;
        binder.short = true;
        let mut scope = Scope::default();
        for (relation, table) in tables.into_iter().enumerate() {
            if let Relation::Table(found) = table.relation.as_ref() {
                for (number, column) in found.columns.iter().enumerate() {
                    scope.columns.push(ScopeColumn {
                        relation,
                        number,
                        name: column.name.clone(),
                        place: Place::Slot(scope.types.len()),
                        origin: Some((found.id, column.id)),
                        shadowed: false,
                        rank: 0,
                    });
                    scope.types.push(column.ty.clone());
                }
            }
            scope.relations.push(ScopeRelation {
                alias: table.alias,
                schema: table.schema,
                table: Some(table.relation),
                scalar: false,
                of: None,
                unnamed: false,
                visible: Visible::Yes,
            });
        }
        ShortBinder { binder, scope }
    }

    /// What is known of the parameters.
    pub(crate) fn into_parameters(self) -> Parameters {
        self.binder.params
    }

    /// A condition over the first tables.
    ///
    /// # Errors
    /// What is wrong with it, or why it is the engine's.
    pub(crate) fn condition(&mut self, condition: &ast::Expr, clause: &'static str, tables: usize) -> Planned<Expr> {
        let limited = (tables < self.scope.relations.len()).then(|| self.scope.limited((0..tables).collect()));
        let scope = limited.as_ref().unwrap_or(&self.scope);
        let bound = self.binder.scalar(condition, scope, Clause::plain(clause));
        let bound = bound.and_then(|scalar| self.binder.condition(scalar, clause));
        plain(bound.map_err(|error| refusal(&self.binder, error))?)
    }

    /// Binds what stands beside FROM and WHERE. The names of the tables are used up.
    ///
    /// # Errors
    /// What is wrong with it, or why it is the engine's.
    pub(crate) fn select(&mut self, query: &ast::Query) -> Planned<Short> {
        let SetExpr::Select(select) = query.body.as_ref() else { return Err(Refusal::Engine("no SELECT")) };
        let (tail, outer, from) = (tail(query)?, Scope::default(), std::mem::take(&mut self.scope));
        let binder = &mut self.binder;
        let bound = binder.list(select, tail, from, &outer).map_err(|error| refusal(binder, error))?;
        if !binder.windows.is_empty() || !binder.sets.is_empty() {
            return Err(Refusal::Engine("a window function or one that returns sets"));
        }
        let Bound { scope, groups, list: Taken { items, having, order, .. } } = bound;
        let condition = |binder: &mut Binder<'_>, having| {
            let scalar = binder.compile(having, &scope)?;
            binder.condition(scalar, "HAVING")
        };
        let having = having.map(|having| condition(binder, having).map_err(|error| refusal(binder, error)));
        let having = having.transpose()?.map(plain).transpose()?;
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            let scalar = binder.compile(item.expr, &scope).and_then(|scalar| binder.known(scalar));
            let scalar = scalar.map_err(|error| refusal(binder, error))?;
            let field = field(&Output { name: item.name, ty: scalar.ty.clone(), origin: item.origin });
            out.push((plain(scalar)?, field));
        }
        let mut keys = Vec::with_capacity(order.len());
        for (key, (descending, nulls_first)) in order {
            let expr = match key {
                // Its values are computed once, and sorted by.
                OrderKey::Output(place) if out[place].0.volatility() == Volatility::Volatile => {
                    return Err(Refusal::Engine("ORDER BY a volatile output"));
                }
                OrderKey::Output(place) => out[place].0.clone(),
                OrderKey::Hidden { expr, .. } => {
                    plain(binder.compile(expr, &scope).map_err(|error| refusal(binder, error))?)?
                }
            };
            if matches!(expr, Expr::Literal(..) | Expr::Parameter { .. }) {
                // A constant orders nothing.
                continue;
            }
            let ty = expr.ty();
            ty.check_order()?;
            keys.push(SortKey { expr, ty, descending, nulls_first });
        }
        let limits = binder.limits(&tail, &scope, &outer).map_err(|error| refusal(binder, error))?;
        let (limit, offset) = (limits.limit.map(plain).transpose()?, limits.offset.map(plain).transpose()?);
        let (items, order) = (out, keys);
        let mut short = Short { items, order, groups: None, limit, offset };
        if let Some(groups) = groups {
            if groups.are_several() {
                return Err(Refusal::Engine("grouping sets"));
            }
            let keys = groups.keys.into_iter().map(plain).collect::<Planned<_>>()?;
            let aggregates = groups.calls.into_iter().map(aggregate).collect::<Planned<_>>()?;
            short.groups = Some(Groups { keys, aggregates, having });
            short.drop_unread(groups.said);
        }
        Ok(short)
    }
}

impl Short {
    /// Leaves out keys from `said` on, which depend on those before, where nothing reads them.
    fn drop_unread(&mut self, said: usize) {
        let Some(groups) = &mut self.groups else { return };
        let mut read: BTreeSet<usize> = (0..said).collect();
        let above = || self.items.iter().map(|item| &item.0).chain(self.order.iter().map(|key| &key.expr));
        above().chain(&groups.having).for_each(|expr| read.extend(expr.columns()));
        let aggregates = groups.keys.len()..groups.keys.len() + groups.aggregates.len();
        // The new place of each column.
        let places: Vec<usize> = (0..aggregates.end)
            .map(|place| (0..place).filter(|p| aggregates.contains(p) || read.contains(p)).count())
            .collect();
        let mut place = 0;
        groups.keys.retain(|_| {
            place += 1;
            read.contains(&(place - 1))
        });
        self.items.iter_mut().for_each(|item| renumber(&mut item.0, &places));
        self.order.iter_mut().for_each(|key| renumber(&mut key.expr, &places));
        groups.having.iter_mut().for_each(|having| renumber(having, &places));
    }
}

fn renumber(expr: &mut Expr, places: &[usize]) {
    if let Expr::Column { index, .. } = expr {
        *index = places.get(*index).copied().unwrap_or(*index);
    }
    expr.for_each_child_mut(&mut |part| renumber(part, places));
}

/// An expression that is computed of its row alone.
fn plain(scalar: Scalar) -> Planned<Expr> {
    match scalar.steps.is_empty() {
        true => Ok(scalar.expr),
        false => Err(Refusal::Engine("an expression that asks the catalogs, or of a whole row")),
    }
}

fn aggregate(call: AggregateCall) -> Planned<Aggregate> {
    if call.distinct || !call.order.is_empty() || call.filter.is_some() {
        return Err(Refusal::Engine("an aggregate with DISTINCT, FILTER or ORDER BY"));
    }
    let mut arguments = call.args.into_iter().map(plain).collect::<Planned<Vec<Expr>>>()?;
    let argument = arguments.pop();
    let made = if arguments.is_empty() { Aggregate::new(call.function, argument) } else { None };
    made.ok_or(Refusal::Engine("an aggregate of this kind or type"))
}

fn refusal(binder: &Binder<'_>, error: SqlError) -> Refusal {
    match binder.not_scalar {
        Some(what) => Refusal::Engine(what),
        // The engine may know a function that expressions do not.
        None if error.state == SqlState::UNDEFINED_FUNCTION => Refusal::Unknown(Box::new(error)),
        None => error.into(),
    }
}

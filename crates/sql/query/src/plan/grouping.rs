//! GROUP BY and aggregates of a direct SELECT.
//!
//! An aggregate call in the syntax tree is replaced by a column of an invented relation before the expression around it is
//! bound; afterwards the bound tree is rewritten over the grouped row, in which keys come first and aggregates follow.

use super::analysis::Analysis;
use super::loops::Source;
use super::refusal::{Planned, Refusal};
use super::select::Item;
use super::shape::SelectShape;
use crate::exec::aggregate::{Aggregate, Function};
use crate::exec::select::Grouping;
use crate::exec::sort::SortKey;
use crate::expr::Expr;
use crate::identifier::fold;
use crate::{SqlError, SqlState};
use sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, SelectItem, visit_expressions, visit_expressions_mut,
};
use std::ops::ControlFlow;

/// The invented relation of aggregates; a user cannot write its name unquoted, and quoted ones are refused by the blank.
const RELATION: &str = "aggregates of the statement";

/// Groups of a statement that is being planned.
pub struct Groups {
    /// Keys, over the joined row.
    keys: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    calls: Vec<ast::Function>,
    having: Option<Expr>,
    /// Places of the joined row: columns from here on are aggregates.
    width: usize,
}

/// Finds out whether a statement is grouped, and binds its keys.
pub fn prepare(shape: &SelectShape<'_>, analysis: &mut Analysis<'_>) -> Planned<Option<Groups>> {
    let mut found = !shape.group.is_empty() || shape.having.is_some();
    for item in shape.items {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            found |= has_aggregate(expr);
        }
    }
    found |= shape.order.iter().any(|key| has_aggregate(&key.expr));
    if !found {
        return Ok(None);
    }
    let width = analysis.width();
    let mut groups = Groups { keys: Vec::new(), aggregates: Vec::new(), calls: Vec::new(), having: None, width };
    for key in shape.group {
        let bound = groups.bind_key(key, shape, analysis)?;
        bound.ty().check_equality()?;
        groups.keys.push(bound);
    }
    if let Some(having) = shape.having {
        let (having, _) = groups.replace(having, analysis)?;
        groups.having = Some(analysis.bind_condition(&having)?);
    }
    Ok(Some(groups))
}

fn has_aggregate(expr: &ast::Expr) -> bool {
    let found = visit_expressions(expr, |part| match call(part) {
        Some(_) => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// An aggregate call, if it is one.
fn call(expr: &ast::Expr) -> Option<(&ast::Function, Function)> {
    let ast::Expr::Function(function) = expr else { return None };
    let [name] = function.name.0.as_slice() else { return None };
    Function::named(&fold(name.as_ident()?)).map(|kind| (function, kind))
}

impl Groups {
    /// Binds a key of GROUP BY: a column of the input by name, an output column by number or alias, or an expression.
    fn bind_key(&self, key: &ast::Expr, shape: &SelectShape<'_>, analysis: &mut Analysis<'_>) -> Planned<Expr> {
        let output = |place: usize| match &shape.items[place] {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Ok(expr),
            _ => Err(Refusal::Engine("GROUP BY with *")),
        };
        if let ast::Expr::Value(value) = key
            && let ast::Value::Number(number, _) = &value.value
        {
            return match number.parse::<usize>() {
                Ok(n) if (1..=shape.items.len()).contains(&n) => analysis.bind(output(n - 1)?),
                _ => Err(SqlError::new(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!("GROUP BY position {number} is not in select list"),
                )
                .into()),
            };
        }
        if let ast::Expr::Identifier(ident) = key
            && !analysis.has_column(&fold(ident))
        {
            let name = fold(ident);
            let named = shape.items.iter().find_map(|item| match item {
                SelectItem::ExprWithAlias { expr, alias } if fold(alias) == name => Some(expr),
                _ => None,
            });
            if let Some(expr) = named {
                return analysis.bind(expr);
            }
        }
        analysis.bind(key)
    }

    /// Binds an expression that may hold aggregates. Columns of aggregates stand behind those of the tables.
    pub fn bind(&mut self, expr: &ast::Expr, analysis: &mut Analysis<'_>) -> Planned<Expr> {
        let (expr, _) = self.replace(expr, analysis)?;
        analysis.bind(&expr)
    }

    /// Replaces aggregate calls by columns, which it adds to the scope.
    fn replace(&mut self, expr: &ast::Expr, analysis: &mut Analysis<'_>) -> Planned<(ast::Expr, bool)> {
        let mut expr = expr.clone();
        let mut wrong = None;
        let mut any = false;
        let flow = visit_expressions_mut(&mut expr, |part| {
            let Some((function, kind)) = call(part) else { return ControlFlow::Continue(()) };
            any = true;
            match self.aggregate(function, kind, analysis) {
                Ok(place) => {
                    let names = [RELATION.to_string(), format!("a{place}")];
                    *part = ast::Expr::CompoundIdentifier(names.map(|name| Ident::with_quote('"', name)).to_vec());
                    ControlFlow::Continue(())
                }
                Err(refusal) => {
                    wrong = Some(refusal);
                    ControlFlow::Break(())
                }
            }
        });
        match (flow, wrong) {
            (ControlFlow::Break(()), Some(refusal)) => Err(refusal),
            _ => Ok((expr, any)),
        }
    }

    fn aggregate(&mut self, call: &ast::Function, function: Function, analysis: &mut Analysis<'_>) -> Planned<usize> {
        if let Some(place) = self.calls.iter().position(|known| known == call) {
            return Ok(place);
        }
        let FunctionArguments::List(list) = &call.args else { return Err(Refusal::Engine("this aggregate")) };
        let plain = call.filter.is_none()
            && call.over.is_none()
            && call.within_group.is_empty()
            && call.null_treatment.is_none()
            && matches!(call.parameters, FunctionArguments::None)
            && list.duplicate_treatment != Some(ast::DuplicateTreatment::Distinct)
            && list.clauses.is_empty();
        if !plain {
            return Err(Refusal::Engine("an aggregate with DISTINCT, FILTER, ORDER BY or OVER"));
        }
        let argument = match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if function == Function::Count => None,
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => {
                if has_aggregate(expr) {
                    return Err(nested().into());
                }
                let bound = analysis.bind(expr)?;
                if !super::tree::reads_only(&bound, &|place| place < self.width) {
                    return Err(nested().into());
                }
                Some(bound)
            }
            _ => return Err(Refusal::Engine("this aggregate")),
        };
        let aggregate = Aggregate::new(function, argument).ok_or(Refusal::Engine("an aggregate of this type"))?;
        let result = aggregate.result();
        self.aggregates.push(aggregate);
        self.calls.push(call.clone());
        let place = self.calls.len() - 1;
        analysis.add_column(RELATION, &format!("a{place}"), &result);
        Ok(place)
    }

    /// Rewrites the select list, ORDER BY and HAVING over the grouped row.
    pub fn finish(mut self, sources: &[Source], items: &mut [Item], order: &mut [SortKey]) -> Planned<Grouping> {
        for item in items.iter_mut() {
            self.depend(&item.expr, sources);
        }
        for key in order.iter() {
            self.depend(&key.expr, sources);
        }
        if let Some(having) = self.having.clone() {
            self.depend(&having, sources);
        }
        for item in items {
            self.regroup(&mut item.expr, sources)?;
        }
        for key in order {
            self.regroup(&mut key.expr, sources)?;
        }
        let mut having = self.having.take();
        if let Some(having) = &mut having {
            self.regroup(having, sources)?;
        }
        let keys = self.keys.into_iter().map(|key| {
            let ty = key.ty();
            (key, ty)
        });
        Ok(Grouping { keys: keys.collect(), aggregates: self.aggregates, having, first: false, ends: Vec::new() })
    }

    /// Columns of a table whose primary key is grouped by depend on it: they become keys that make no difference.
    fn depend(&mut self, expr: &Expr, sources: &[Source]) {
        if self.keys.contains(expr) {
            return;
        }
        if let Expr::Column { index, .. } = expr
            && let Some(source) = source_of(*index, sources)
        {
            let table = &source.access.table;
            let mut key = source.access.primary.columns.iter();
            let grouped = |slot: usize| {
                self.keys.iter().any(|k| matches!(k, Expr::Column { index, .. } if *index == source.base + slot))
            };
            if table.has_primary_key && key.all(|column| column.slot.is_some_and(grouped)) {
                self.keys.push(expr.clone());
            }
            return;
        }
        let mut parts = Vec::new();
        expr.for_each_child(&mut |part| parts.push(part.clone()));
        parts.iter().for_each(|part| self.depend(part, sources));
    }

    fn regroup(&self, expr: &mut Expr, sources: &[Source]) -> Planned<()> {
        if let Some(place) = self.keys.iter().position(|key| key == expr) {
            *expr = Expr::Column { index: place, ty: expr.ty() };
            return Ok(());
        }
        if let Expr::Column { index, .. } = expr {
            if *index >= self.width {
                *index = *index - self.width + self.keys.len();
                return Ok(());
            }
            let name = source_of(*index, sources).map_or_else(String::new, |source| {
                format!("{}.{}", source.alias, source.access.table.columns[*index - source.base].name)
            });
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"),
            )
            .into());
        }
        let mut result = Ok(());
        expr.for_each_child_mut(&mut |part| {
            if result.is_ok() {
                result = self.regroup(part, sources);
            }
        });
        result
    }
}

fn nested() -> SqlError {
    SqlError::new(SqlState::GROUPING_ERROR, "aggregate function calls cannot be nested")
}

fn source_of(place: usize, sources: &[Source]) -> Option<&Source> {
    sources.iter().find(|source| (source.base..source.base + source.access.columns.len()).contains(&place))
}

/// If a grouping is nothing but min and max of columns, for each the order whose first value settles it.
pub fn extremes(grouping: &Grouping) -> Option<Vec<(usize, bool, bool)>> {
    let order = |aggregate: &Aggregate| {
        let Some(Expr::Column { index, .. }) = aggregate.argument else { return None };
        match aggregate.function {
            Function::Min => Some((index, false, false)),
            Function::Max => Some((index, true, true)),
            _ => None,
        }
    };
    grouping.keys.is_empty().then(|| grouping.aggregates.iter().map(order).collect()).flatten()
}

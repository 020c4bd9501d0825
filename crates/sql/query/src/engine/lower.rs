//! From marks to steps: what [`super::take`] took out of an expression becomes a step, and its mark the slot of that step's value.

use super::bind::Binder;
use super::keys;
use super::probe;
use super::scalar::Step;
use super::scope::{Scope, slot_expr, slot_of};
use super::take::{Held, Quantifier, mark_of};
use crate::expr;
use crate::plan::assignment;
use crate::types::{RegKind, SqlType};
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, BinaryOperator, Expr, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// Turns marks into slots of steps.
pub(super) struct Lower<'a, 'c, 's> {
    binder: &'a mut Binder<'c>,
    scope: &'a Scope<'s>,
    types: Vec<SqlType>,
    steps: Vec<Step>,
}

impl VisitorMut for Lower<'_, '_, '_> {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match self.lower(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl<'a, 'c, 's> Lower<'a, 'c, 's> {
    /// Lowers an expression over the rows of a scope: gives its steps, and the types of the slots with theirs behind.
    pub(super) fn lowered(
        binder: &'a mut Binder<'c>,
        scope: &'a Scope<'s>,
        expr: &mut Expr,
    ) -> Result<(Vec<SqlType>, Vec<Step>), SqlError> {
        let mut lower = Lower { binder, scope, types: scope.types.clone(), steps: Vec::new() };
        lower.run(expr)?;
        Ok((lower.types, lower.steps))
    }
}

impl Lower<'_, '_, '_> {
    fn run(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        match expr.visit(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn step(&mut self, step: Step, ty: SqlType) -> Expr {
        self.steps.push(step);
        self.types.push(ty);
        slot_expr(self.types.len() - 1)
    }

    /// Binds an argument of a step.
    fn argument(&mut self, mut expr: Expr) -> Result<expr::Expr, SqlError> {
        self.run(&mut expr)?;
        self.binder.bind(&expr, &self.types)
    }

    fn arguments(&mut self, exprs: Vec<Expr>) -> Result<Vec<expr::Expr>, SqlError> {
        exprs.into_iter().map(|expr| self.argument(expr)).collect()
    }

    fn lower(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        self.binder.context.pace.step()?;
        let Some(place) = mark_of(expr) else { return self.cast(expr) };
        *expr = match self.binder.held[place].clone() {
            Held::Slot(slot) => slot_expr(slot),
            Held::Subquery(query) if assignment::shared(&query).is_some() => {
                let Some(shared) = assignment::shared(&query) else { return Ok(()) };
                let (plan, columns) = self.binder.shared_plan(&shared, self.scope)?;
                let ty = columns.get(shared.column).map_or(SqlType::Text, |column| match &column.ty {
                    SqlType::Unknown => SqlType::Text,
                    ty => ty.clone(),
                });
                self.step(Step::Shared(plan, shared.column), ty)
            }
            Held::Subquery(query) => {
                let (mut plan, columns) = self.binder.marked_plan(place, &query, self.scope)?;
                let [column] = columns.as_ref() else { return Err(one_column()) };
                plan.probe = if plan.correlated {
                    probe::value(&plan).map(|probe| probe.with(&|table| self.binder.statistics_of(table)))
                } else {
                    None
                };
                self.step(Step::Subquery(plan), column.ty.clone())
            }
            Held::Exists(query) => {
                let (mut plan, _) = self.binder.marked_plan(place, &query, self.scope)?;
                plan.probe = if plan.correlated {
                    probe::exists(&plan).map(|probe| probe.with(&|table| self.binder.statistics_of(table)))
                } else {
                    None
                };
                self.step(Step::Exists(plan), SqlType::Bool)
            }
            Held::Array(query) => {
                let (plan, columns) = self.binder.marked_plan(place, &query, self.scope)?;
                let [column] = columns.as_ref() else { return Err(one_column()) };
                let of = column.ty.base();
                let ty =
                    if matches!(of, SqlType::Array(_)) { of.clone() } else { SqlType::Array(Box::new(of.clone())) };
                self.step(Step::Array(plan, of), ty)
            }
            Held::Quantified { left, op, of, query } => self.quantified(left, &op, of, (place, &query))?,
            Held::Catalog(name, args) => {
                let args = self.arguments(args)?;
                let args = self.binder.catalog_arguments(name, args)?;
                let result = crate::pg_catalog::functions::find(name).map_or(SqlType::Text, |f| f.result.clone());
                self.step(Step::Catalog { name, args }, result)
            }
            Held::ToReg(kind, arg) => {
                let arg = self.argument(arg)?;
                let arg = self.binder.text_if_unknown(arg)?;
                self.step(Step::ToReg(kind, arg), SqlType::Reg(kind))
            }
            Held::Field(arg, index) => {
                let arg = self.argument(arg)?;
                self.step(Step::Field(arg, index), SqlType::Int4)
            }
            Held::Record { fields, names, mark } => {
                let fields = self.arguments(fields)?;
                let mark = mark.map(|mark| self.argument(mark)).transpose()?;
                let names = names.into_iter().zip(fields.iter().map(expr::Expr::ty)).collect();
                self.step(Step::Record { fields, names: Some(names), mark }, SqlType::Record)
            }
            Held::RowJson { names, values, mark, binary, .. } => {
                let values = self.arguments(values)?;
                let mark = mark.map(|mark| self.argument(mark)).transpose()?;
                let ty = if binary { SqlType::Jsonb } else { SqlType::Json };
                self.step(Step::RowJson { names, values, mark, binary }, ty)
            }
            Held::Window(_) | Held::Set(..) => {
                return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a window or a set was not planned"));
            }
        };
        Ok(())
    }

    /// A cast of a reg-type to a text needs the catalog.
    fn cast(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        let Expr::Cast { expr: inner, data_type, .. } = expr else { return Ok(()) };
        if self.binder.short {
            return Ok(());
        }
        let Some(kind) = slot_of(inner).and_then(|slot| self.reg_kind(slot)) else { return Ok(()) };
        if SqlType::from_ast(data_type).is_ok_and(|ty| ty.is_string()) {
            let arg = self.binder.bind(inner, &self.types)?;
            **inner = self.step(Step::FromReg(kind, arg), SqlType::Text);
        }
        Ok(())
    }

    fn reg_kind(&self, slot: usize) -> Option<RegKind> {
        match self.types.get(slot) {
            Some(SqlType::Reg(kind)) => Some(*kind),
            _ => None,
        }
    }

    fn quantified(
        &mut self,
        left: Vec<Expr>,
        op: &BinaryOperator,
        of: Quantifier,
        (place, query): (usize, &ast::Query),
    ) -> Result<Expr, SqlError> {
        let left = self.arguments(left)?;
        let (plan, columns) = self.binder.marked_plan(place, query, self.scope)?;
        if left.len() != columns.len() {
            let many = if columns.len() > left.len() { "many" } else { "few" };
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, format!("subquery has too {many} columns")));
        }
        let mut typed = Vec::with_capacity(left.len());
        for (value, column) in left.into_iter().zip(columns.iter()) {
            typed.push(self.binder.as_type_if_unknown(value, &column.ty)?);
        }
        let left = typed;
        let kinds: Option<Vec<_>> = left.iter().zip(columns.iter()).map(|(l, c)| keys::kind(&l.ty(), &c.ty)).collect();
        if let (BinaryOperator::Eq, Quantifier::Any, Some(kinds)) = (op, of, kinds)
            && !left.iter().any(|l| l.ty() == SqlType::Unknown)
        {
            return Ok(self.step(Step::In { left, kinds, plan }, SqlType::Bool));
        }
        // The test is bound over the row so far, the left side's values and the subquery's columns.
        let mut types = self.types.clone();
        let first = types.len();
        types.extend(left.iter().map(expr::Expr::ty));
        types.extend(columns.iter().map(|column| column.ty.clone()));
        let side = |first: usize| match left.len() {
            1 => slot_expr(first),
            count => Expr::Tuple((first..first + count).map(slot_expr).collect()),
        };
        let (values, candidates) = (Box::new(side(first)), Box::new(side(first + left.len())));
        let test = Expr::BinaryOp { left: values, op: op.clone(), right: candidates };
        let test = self.binder.bind(&test, &types)?;
        Ok(self.step(Step::Quantified { left, test, of, plan }, SqlType::Bool))
    }
}

fn one_column() -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, "subquery must return only one column")
}

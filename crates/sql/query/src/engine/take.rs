//! Resolving the names of an expression, and taking out of it what the evaluator does not know.
//!
//! [`take`](Binder::take) walks the syntax tree once. Columns become slots (`#3`); subqueries, aggregates, windows, sets and
//! functions of the catalogs become marks (`?5`) that stand for an entry of [`Binder::held`]. What remains is plain scalar SQL.

use super::bind::{Binder, Grouping};
use super::lift::{Settle, note_of};
use super::scope::{Found, RESERVED, Scope, reserved, slot_expr, slot_of};
use crate::expr::argument_of_all;
use crate::expr::function::is_set_returning;
use crate::expr::known_collation;
use crate::expr::operator_named;
use crate::expr::row_fields;
use crate::identifier::fold;
use crate::pg_catalog::functions;
use crate::plan::setless::refuse_set_functions;
use crate::syntax::forms::{no_fields_here, spread};
use crate::syntax::tree;
use crate::types::{RegKind, SqlType};
use crate::{SqlError, SqlState};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    self, AccessExpr, BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName,
    ObjectNamePart, Query, VisitMut, VisitorMut,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Something taken out of an expression; expressions in it have their names resolved.
#[derive(Clone, Debug)]
pub(super) enum Held {
    Subquery(Arc<Query>),
    Exists(Arc<Query>),
    Array(Arc<Query>),
    Quantified {
        left: Vec<Expr>,
        op: BinaryOperator,
        of: Quantifier,
        query: Arc<Query>,
    },
    Catalog(&'static str, Vec<Expr>),
    ToReg(RegKind, Expr),
    Field(Expr, usize),
    /// A whole row: NULL if its mark is.
    Record {
        fields: Vec<Expr>,
        names: Vec<String>,
        mark: Option<Expr>,
    },
    /// An object of a relation's row: names, and values that are json already.
    RowJson {
        names: Vec<String>,
        values: Vec<Expr>,
        mark: Option<Expr>,
        binary: bool,
        /// It is the argument of an aggregate, which is the row itself.
        row: bool,
    },
    /// A window function's call, until the windows are planned.
    Window(Box<ast::Function>),
    /// A set function's call, until the sets are planned; the column of it that is meant.
    Set(Box<ast::Function>, usize),
    /// Planned: a slot.
    Slot(usize),
}

/// For how many rows of a subquery a comparison must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantifier {
    Any,
    All,
    /// The only row; without one the answer is NULL.
    One,
}

/// What a clause may hold; its name is for errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clause {
    pub(super) name: &'static str,
    pub(super) windows: bool,
    pub(super) sets: bool,
}

impl Clause {
    /// The select list and ORDER BY.
    pub(super) const SELECT: Clause = Clause { name: "SELECT", windows: true, sets: true };
    /// A clause with neither windows nor sets.
    pub(super) const fn plain(name: &'static str) -> Clause {
        Clause { name, windows: false, sets: false }
    }
}

/// What stands within an aggregate's call.
pub(super) const AGGREGATE_CALLS: &str = "aggregate function calls";
/// What stands within a window function's call.
const WINDOW_CALLS: &str = "window function calls";

/// The mark for an entry of [`Binder::held`].
pub(super) fn mark_expr(place: usize) -> Expr {
    Expr::Identifier(Ident {
        value: format!("{RESERVED}?{place}"),
        quote_style: Some('"'),
        span: sqlparser::tokenizer::Span::empty(),
    })
}

/// The entry that a mark stands for.
pub(super) fn mark_of(expr: &Expr) -> Option<usize> {
    reserved(expr, '?')?.parse().ok()
}

/// The parts of a function's name: its schema if it is one of the system's, and its name.
pub(super) fn function_name(name: &ObjectName) -> Option<(Option<String>, String)> {
    let parts: Vec<String> = name.0.iter().map(|part| part.as_ident().map(fold)).collect::<Option<_>>()?;
    match parts.as_slice() {
        [name] => Some((None, name.clone())),
        [schema, name] => Some((Some(schema.clone()), name.clone())),
        _ => None,
    }
}

/// The plain arguments of a call.
pub(super) fn call_args(function: &ast::Function) -> Result<Vec<Expr>, SqlError> {
    let FunctionArguments::List(list) = &function.args else { return Ok(Vec::new()) };
    list_args(&list.args)
}

/// The expressions of a list of arguments.
pub(super) fn list_args(args: &[FunctionArg]) -> Result<Vec<Expr>, SqlError> {
    let one = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr.clone()),
        _ => Err(SqlError::unsupported(format!("the argument {arg}"))),
    };
    args.iter().map(one).collect()
}

/// Makes expressions of the arguments `t.*` of a call: each means the whole row.
pub(super) fn whole_rows(function: &mut ast::Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for arg in &mut list.args {
        if let FunctionArg::Unnamed(arg) = arg
            && let FunctionArgExpr::QualifiedWildcard(name) = arg
        {
            *arg = FunctionArgExpr::Expr(Expr::QualifiedWildcard(name.clone(), AttachedToken::empty()));
        }
    }
}

/// The parts of a relation's name.
pub(super) fn relation_parts(name: &ObjectName) -> Vec<String> {
    name.0.iter().filter_map(|part| part.as_ident().map(fold)).collect()
}

/// A call of a function.
pub(super) fn call_expr(name: &str, args: Vec<Expr>) -> Expr {
    tree::call(Ident::new(name), args)
}

/// The kind of a reg-type, if a cast is to one.
fn reg_kind(ty: &ast::DataType) -> Option<RegKind> {
    match SqlType::from_ast(ty) {
        Ok(SqlType::Reg(kind)) => Some(kind),
        _ => None,
    }
}

/// Where the first identifier of a name stands in a text of one line.
pub(super) fn place_of(ident: Option<&Ident>) -> Option<u32> {
    let start = ident?.span.start;
    if start.line == 1 { u32::try_from(start.column).ok() } else { None }
}

pub(super) struct Taker<'a, 'c, 's, 'g> {
    pub(super) binder: &'a mut Binder<'c>,
    pub(super) scope: &'a Scope<'s>,
    pub(super) grouping: Option<&'a mut Grouping<'g>>,
    pub(super) clause: Clause,
}

impl VisitorMut for Taker<'_, '_, '_, '_> {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match self.enter(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Taker<'_, '_, '_, '_> {
    /// Resolves an expression of its own.
    pub(super) fn run<T: VisitMut>(&mut self, node: &mut T) -> Result<(), SqlError> {
        match node.visit(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn hold(&mut self, expr: &mut Expr, held: Held) {
        *expr = mark_expr(self.binder.hold(held));
    }

    fn enter(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        self.binder.context.pace.step()?;
        if mark_of(expr).is_some() {
            return Ok(());
        }
        if note_of(expr).is_some() && self.binder.names_only {
            *expr = Expr::value(ast::Value::Null);
            return Ok(());
        }
        if let Some(found) = self.scope.item(expr) {
            *expr = found;
            return Ok(());
        }
        if let Some(grouping) = &mut self.grouping
            && let Some(slot) = grouping.key_of(expr)?
        {
            *expr = slot_expr(slot);
            return Ok(());
        }
        if let Some(slot) = slot_of(expr) {
            self.scope.read_slot(slot);
            let error = self.grouping.as_ref().and_then(|grouping| super::bind_select::ungrouped(grouping.from, expr));
            return error.map_or(Ok(()), Err);
        }
        match expr {
            Expr::Identifier(ident) => {
                let parts = [ident.clone()];
                *expr = self.column(&parts)?;
            }
            Expr::CompoundIdentifier(parts) => {
                let parts = parts.clone();
                *expr = self.column(&parts)?;
            }
            Expr::CompoundFieldAccess { .. } => self.access(expr)?,
            Expr::Collate { expr: inner, collation } => {
                known_collation(collation)?;
                // One collation, by bytes: what each of PostgreSQL's names stands for here.
                *expr = std::mem::replace(inner.as_mut(), Expr::value(ast::Value::Null));
                self.enter(expr)?;
            }
            Expr::BinaryOp { op, .. } => {
                if let BinaryOperator::PGCustomBinaryOperator(parts) = op {
                    *op = plain_operator(parts)?;
                }
                self.quantified(expr)?;
            }
            // What is taken out is moved: a copy at each level would be one of all that is inside.
            Expr::Subquery(query) => {
                self.settle_notes(query)?;
                if let Expr::Subquery(query) = moved(expr) {
                    self.hold(expr, Held::Subquery(Arc::from(query)));
                }
            }
            Expr::Exists { subquery, .. } => {
                self.settle_notes(subquery)?;
                if let Expr::Exists { subquery, negated } = moved(expr) {
                    self.hold(expr, Held::Exists(Arc::from(subquery)));
                    negate(expr, negated);
                }
            }
            Expr::InSubquery { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. } => self.quantified(expr)?,
            Expr::Like { .. } | Expr::ILike { .. } => {
                if let Some(quantified) = quantified_like(expr) {
                    *expr = quantified;
                    self.quantified(expr)?;
                }
            }
            Expr::Cast { data_type, expr: inner, .. } => {
                if !self.binder.short
                    && let Some(kind) = reg_kind(data_type)
                {
                    let mut inner = inner.as_ref().clone();
                    self.run(&mut inner)?;
                    self.hold(expr, Held::ToReg(kind, inner));
                }
            }
            Expr::TypedString(typed) => {
                if !self.binder.short
                    && let Some(kind) = reg_kind(&typed.data_type)
                {
                    let inner = Expr::Value(typed.value.clone());
                    self.hold(expr, Held::ToReg(kind, inner));
                }
            }
            Expr::QualifiedWildcard(name, _) => {
                let name = name.clone();
                *expr = self.star(&name)?;
            }
            Expr::Function(call) => {
                if self.clause.sets && function_name(&call.name).is_some_and(|(_, name)| name == "coalesce") {
                    refuse_set_functions(expr, "COALESCE")?;
                }
                self.function(expr)?;
            }
            Expr::Case { .. } if self.clause.sets => refuse_set_functions(expr, "CASE")?,
            _ => {}
        }
        Ok(())
    }

    /// Gives aggregates of ours within a subquery their slots.
    fn settle_notes(&mut self, query: &mut Query) -> Result<(), SqlError> {
        if self.binder.lifted.is_empty() {
            return Ok(());
        }
        let Some(grouping) = &mut self.grouping else {
            let notes = |expr: &Expr| match note_of(expr) {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            };
            let nested = self.clause.name == AGGREGATE_CALLS;
            if nested && !self.binder.names_only && ast::visit_expressions(query, notes).is_break() {
                let message = "aggregate function calls cannot be nested";
                return Err(SqlError::new(SqlState::GROUPING_ERROR, message));
            }
            return Ok(());
        };
        match VisitMut::visit(query, &mut Settle { binder: self.binder, grouping }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    fn column(&mut self, parts: &[Ident]) -> Result<Expr, SqlError> {
        let names: Vec<String> = parts.iter().map(fold).collect();
        let found = match self.scope.column(&names) {
            Ok(found) => {
                self.scope.note(parts);
                found
            }
            Err(error) if error.state == SqlState::UNDEFINED_COLUMN && names.len() == 1 => {
                self.scope.note_row(parts.first());
                if let Some(only) = self.scope.only_value(&names[0]) {
                    let found = self.scope.column(&[names[0].clone(), only.name.clone()])?;
                    self.binder.read_unsaid([&only.name]);
                    return Ok(found.expr);
                }
                // The name of a relation means its whole row.
                let columns = match self.scope.star(&names) {
                    Ok(columns) => columns,
                    Err(ungrouped) if ungrouped.state == SqlState::GROUPING_ERROR => {
                        let what = "must appear in the GROUP BY clause or be used in an aggregate function";
                        let message = format!("column \"{}.*\" {what}", names[0]);
                        return Err(SqlError::new(SqlState::GROUPING_ERROR, message));
                    }
                    Err(_) => return Err(error.with(|e| e.position = place_of(parts.first()))),
                };
                return self.whole_row(columns, &names);
            }
            Err(error) => return Err(error.with(|e| e.position = place_of(parts.first()))),
        };
        Ok(found.expr)
    }

    /// The row that a relation's columns are; `relation` is its name.
    fn whole_row(&mut self, columns: Vec<(String, Found)>, relation: &[String]) -> Result<Expr, SqlError> {
        self.binder.read_unsaid(columns.iter().map(|(name, _)| name));
        let mark = relation.last().map_or(Ok(None), |alias| self.scope.mark(alias))?;
        let (names, fields) = columns.into_iter().map(|(name, found)| (name, found.expr)).unzip();
        Ok(mark_expr(self.binder.hold(Held::Record { fields, names, mark })))
    }

    /// `t.*` where a value is meant: the whole row.
    fn star(&mut self, name: &ObjectName) -> Result<Expr, SqlError> {
        let relation = relation_parts(name);
        self.scope.note_row(name.0.last().and_then(|part| part.as_ident()));
        if let [alias] = relation.as_slice()
            && let Some(only) = self.scope.only_value(alias)
        {
            let found = self.scope.column(&[alias.clone(), only.name.clone()])?;
            self.binder.read_unsaid([&only.name]);
            return Ok(found.expr);
        }
        let columns = self.scope.star(&relation)?;
        self.whole_row(columns, &relation)
    }

    /// `t.column[1]`, `(f(x)).field`
    fn access(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        if spread(expr).is_some() {
            return Err(no_fields_here());
        }
        let Expr::CompoundFieldAccess { root, access_chain } = expr else { return Ok(()) };
        // The parser reads t.column[1] as a chain that starts at t.
        while let (Expr::Identifier(_) | Expr::CompoundIdentifier(_), Some(AccessExpr::Dot(Expr::Identifier(field)))) =
            (root.as_ref(), access_chain.first())
        {
            let mut parts = match root.as_ref() {
                Expr::Identifier(ident) => vec![ident.clone()],
                Expr::CompoundIdentifier(parts) => parts.clone(),
                _ => Vec::new(),
            };
            parts.push(field.clone());
            **root = Expr::CompoundIdentifier(parts);
            access_chain.remove(0);
        }
        if access_chain.is_empty() {
            *expr = std::mem::replace(root.as_mut(), Expr::value(ast::Value::Null));
            return self.enter(expr);
        }
        let [AccessExpr::Dot(Expr::Identifier(field))] = access_chain.as_slice() else { return Ok(()) };
        let field = fold(field);
        let mut inner = root.as_ref().clone();
        while let Expr::Nested(nested) = inner {
            inner = *nested;
        }
        // `(t).column`, where `t` is a relation's row and no column.
        if let (Expr::Identifier(alias), [AccessExpr::Dot(Expr::Identifier(name))]) = (&inner, access_chain.as_slice())
            && self.scope.find(&[fold(alias)])?.is_none()
        {
            *expr = Expr::CompoundIdentifier(vec![alias.clone(), name.clone()]);
            return self.enter(expr);
        }
        if let Expr::Function(function) = &inner
            && let Some(place) = self.set_field(function, &field)
        {
            return self.set_call(expr, inner, place);
        }
        self.run(&mut inner)?;
        // Composite values come from information_schema._pg_expandarray, whose fields these are.
        let index = match field.as_str() {
            "x" => 0,
            "n" => 1,
            _ => {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("could not identify column \"{field}\" in record data type"),
                ));
            }
        };
        self.hold(expr, Held::Field(inner, index));
        Ok(())
    }

    fn set_field(&self, function: &ast::Function, field: &str) -> Option<usize> {
        let (_, name) = function_name(&function.name)?;
        super::bind_set::field_place(&name, field)
    }

    fn quantified(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        match expr {
            Expr::InSubquery { .. } => {}
            Expr::AnyOp { compare_op, right, .. } | Expr::AllOp { compare_op, right, .. } if !is_subquery(right) => {
                return custom_operator(compare_op);
            }
            Expr::AnyOp { .. } | Expr::AllOp { .. } => {}
            Expr::BinaryOp { left, right, .. } if is_subquery(right) && row_fields(left).is_some() => {}
            _ => return Ok(()),
        }
        let (left, op, of, query, negated) = match moved(expr) {
            Expr::InSubquery { expr, subquery, negated } => {
                (expr, BinaryOperator::Eq, Quantifier::Any, Some(subquery), negated)
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                (left, compare_op, Quantifier::Any, subquery_of(*right), false)
            }
            Expr::AllOp { left, compare_op, right } => (left, compare_op, Quantifier::All, subquery_of(*right), false),
            Expr::BinaryOp { left, op, right } => (left, op, Quantifier::One, subquery_of(*right), false),
            _ => return Ok(()),
        };
        let Some(mut query) = query else { return Ok(()) };
        let op = if let BinaryOperator::PGCustomBinaryOperator(parts) = &op { plain_operator(parts)? } else { op };
        let mut left = match row_fields(&left) {
            Some(fields) => fields.into_owned(),
            None => vec![*left],
        };
        for item in &mut left {
            self.run(item)?;
        }
        self.settle_notes(&mut query)?;
        self.hold(expr, Held::Quantified { left, op, of, query: Arc::from(query) });
        negate(expr, negated);
        Ok(())
    }

    fn function(&mut self, expr: &mut Expr) -> Result<(), SqlError> {
        let Expr::Function(function) = expr else { return Ok(()) };
        let Some((schema, name)) = function_name(&function.name) else { return Ok(()) };
        if schema.as_deref().is_some_and(|s| s != "pg_catalog" && s != "information_schema") {
            let message = format!("function {}.{name} does not exist", schema.unwrap_or_default());
            return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message));
        }
        whole_rows(function);
        if schema.is_none() && name == "row" {
            self.spread_rows(function)?;
        }
        if let FunctionArguments::Subquery(query) = &mut function.args {
            self.settle_notes(query)?;
            if let FunctionArguments::Subquery(query) = std::mem::replace(&mut function.args, FunctionArguments::None) {
                self.hold(expr, Held::Array(Arc::from(query)));
            }
            return Ok(());
        }
        if schema.is_some() || name == "left" || name == "right" {
            function.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name.clone()))]);
        }
        self.json_of_row(function, &name)?;
        if matches!(name.as_str(), "row_to_json" | "to_json" | "to_jsonb")
            && let [built] = call_args(function)?.as_slice()
            && mark_of(built).is_some_and(|place| matches!(self.binder.held[place], Held::RowJson { .. }))
        {
            // An object already.
            *expr = built.clone();
            return Ok(());
        }
        if function.over.is_some() {
            if !self.clause.windows {
                return Err(window_refused(self.clause.name));
            }
            let Expr::Function(mut function) = moved(expr) else { return Ok(()) };
            let around = self.clause;
            // A clause of its own for each part: what is refused says where it stands.
            self.clause = Clause { name: WINDOW_CALLS, windows: false, ..around };
            self.run(&mut function.args)?;
            self.run(&mut function.within_group)?;
            self.clause.name = "FILTER";
            self.run(&mut function.filter)?;
            self.clause.name = "window definitions";
            self.run(&mut function.over)?;
            self.clause = around;
            let place = self.binder.hold(Held::Window(Box::new(function)));
            self.binder.windows.push(place);
            *expr = mark_expr(place);
            return Ok(());
        }
        if super::window::Function::named(&name).is_some() {
            return Err(match function.within_group.is_empty() {
                true => {
                    let message = format!("window function {name} requires an OVER clause");
                    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                }
                false => SqlError::unsupported(format!("{name} of a row that is not there (WITHIN GROUP)")),
            });
        }
        if super::aggregate::Function::named(&name).is_some() {
            let Some(grouping) = &mut self.grouping else {
                let message = match self.clause.name {
                    AGGREGATE_CALLS => "aggregate function calls cannot be nested".to_string(),
                    clause if name == "grouping" => format!("grouping operations are not allowed in {clause}"),
                    "JOIN/ON" => "aggregate functions are not allowed in JOIN conditions".to_string(),
                    clause => format!("aggregate functions are not allowed in {clause}"),
                };
                return Err(SqlError::new(SqlState::GROUPING_ERROR, message));
            };
            let Expr::Function(function) = moved(expr) else { return Ok(()) };
            *expr = grouping.call(self.binder, function)?;
            return Ok(());
        }
        if is_set_returning(&name) {
            let whole = moved(expr);
            return self.set_call(expr, whole, usize::MAX);
        }
        // Some of them are known to the evaluator, too.
        if !self.binder.short
            && let Some(found) = functions::find(&name)
        {
            let mut args = call_args(function)?;
            if (found.least..=found.most).contains(&args.len()) {
                for arg in &mut args {
                    self.run(arg)?;
                }
                self.hold(expr, Held::Catalog(found.name, args));
            }
        }
        Ok(())
    }

    /// `ROW(t.*, 1)`: its fields are the columns, not their row.
    fn spread_rows(&mut self, function: &mut ast::Function) -> Result<(), SqlError> {
        let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
        let mut spread = Vec::with_capacity(list.args.len());
        for arg in std::mem::take(&mut list.args) {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::QualifiedWildcard(name, _))) = &arg else {
                spread.push(arg);
                continue;
            };
            self.scope.note_row(name.0.last().and_then(|part| part.as_ident()));
            let columns = self.scope.star(&relation_parts(name))?;
            self.binder.read_unsaid(columns.iter().map(|(name, _)| name));
            let field = |(_, found): (String, Found)| FunctionArg::Unnamed(FunctionArgExpr::Expr(found.expr));
            spread.extend(columns.into_iter().map(field));
        }
        list.args = spread;
        Ok(())
    }

    /// `row_to_json(t)` and its kin, of a relation: an object of its columns.
    fn json_of_row(&mut self, function: &mut ast::Function, name: &str) -> Result<(), SqlError> {
        if !matches!(name, "row_to_json" | "to_json" | "to_jsonb" | "json_agg" | "jsonb_agg") {
            return Ok(());
        }
        let scope = match &self.grouping {
            Some(grouping) if name.ends_with("agg") => grouping.from,
            _ => self.scope,
        };
        let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
        // With lines of its own (`row_to_json(t, true)`) it is of the row as a value.
        if list.args.len() > 1 {
            return Ok(());
        }
        for arg in &mut list.args {
            let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg else { continue };
            let names = match arg {
                Expr::Identifier(ident) => vec![fold(ident)],
                Expr::QualifiedWildcard(name, _) => relation_parts(name),
                _ => continue,
            };
            let Some(alias) = names.last() else { continue };
            let is_column = matches!(arg, Expr::Identifier(_)) && scope.find(&names)?.is_some();
            if is_column || scope.only_value(alias).is_some() {
                continue;
            }
            let Ok(columns) = scope.star(&names) else { continue };
            scope.note_row(match arg {
                Expr::Identifier(ident) => Some(ident),
                Expr::QualifiedWildcard(name, _) => name.0.last().and_then(|part| part.as_ident()),
                _ => None,
            });
            self.binder.read_unsaid(columns.iter().map(|(name, _)| name));
            let mark = scope.mark(alias)?;
            let (binary, row) = (name.contains("jsonb"), name.ends_with("agg"));
            let json = if binary { "to_jsonb" } else { "to_json" };
            let (names, values) =
                columns.into_iter().map(|(name, found)| (name, call_expr(json, vec![found.expr]))).unzip();
            *arg = mark_expr(self.binder.hold(Held::RowJson { names, values, mark, binary, row }));
        }
        Ok(())
    }

    /// Resolves the names within a call.
    fn inside(&mut self, function: &mut ast::Function) -> Result<(), SqlError> {
        self.run(&mut function.args)?;
        self.run(&mut function.filter)?;
        self.run(&mut function.within_group)?;
        self.run(&mut function.over)
    }

    fn set_call(&mut self, expr: &mut Expr, call: Expr, place: usize) -> Result<(), SqlError> {
        let Expr::Function(mut function) = call else { return Ok(()) };
        if !self.clause.sets {
            let message = match self.clause.name {
                AGGREGATE_CALLS => "aggregate function calls cannot contain set-returning function calls".to_string(),
                clause => format!("set-returning functions are not allowed in {clause}"),
            };
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.inside(&mut function)?;
        let held = self.binder.hold(Held::Set(Box::new(function), place));
        self.binder.sets.push(held);
        *expr = mark_expr(held);
        Ok(())
    }
}

/// A window function stands where there is none.
fn window_refused(clause: &str) -> SqlError {
    match clause {
        WINDOW_CALLS => SqlError::new(SqlState(*b"42P20"), "window function calls cannot be nested"),
        AGGREGATE_CALLS => {
            SqlError::new(SqlState::GROUPING_ERROR, "aggregate function calls cannot contain window function calls")
        }
        clause => SqlError::new(SqlState(*b"42P20"), format!("window functions are not allowed in {clause}")),
    }
}

/// `x LIKE ANY (SELECT ..)` and `x LIKE ALL (SELECT ..)` by their operator.
fn quantified_like(expr: &Expr) -> Option<Expr> {
    use BinaryOperator as B;
    let (negated, any, left, pattern, ops) = match expr {
        Expr::Like { negated, any, expr, pattern, escape_char: None } => {
            (negated, *any, expr, pattern.as_ref(), (B::PGLikeMatch, B::PGNotLikeMatch))
        }
        Expr::ILike { negated, any, expr, pattern, escape_char: None } => {
            (negated, *any, expr, pattern.as_ref(), (B::PGILikeMatch, B::PGNotILikeMatch))
        }
        _ => return None,
    };
    let pattern = if any { pattern } else { argument_of_all(pattern)? };
    if !is_subquery(pattern) {
        return None;
    }
    let (left, right) = (left.clone(), Box::new(Expr::Subquery(subquery_of(pattern.clone())?)));
    let compare_op = if *negated { ops.1 } else { ops.0 };
    Some(match any {
        true => Expr::AnyOp { left, compare_op, right, is_some: false },
        false => Expr::AllOp { left, compare_op, right },
    })
}

fn is_subquery(expr: &Expr) -> bool {
    match expr {
        Expr::Subquery(_) => true,
        Expr::Nested(inner) => is_subquery(inner),
        _ => false,
    }
}

fn subquery_of(expr: Expr) -> Option<Box<Query>> {
    match expr {
        Expr::Subquery(query) => Some(query),
        Expr::Nested(inner) => subquery_of(*inner),
        _ => None,
    }
}

/// An expression in whose place something else will be.
fn moved(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::value(ast::Value::Null))
}

fn negate(expr: &mut Expr, negated: bool) {
    if negated {
        let inner = std::mem::replace(expr, Expr::value(ast::Value::Null));
        *expr = Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(inner))) };
    }
}

fn custom_operator(op: &mut BinaryOperator) -> Result<(), SqlError> {
    if let BinaryOperator::PGCustomBinaryOperator(parts) = op {
        *op = plain_operator(parts)?;
    }
    Ok(())
}

/// `OPERATOR(pg_catalog.~)` without its schema.
fn plain_operator(parts: &[String]) -> Result<BinaryOperator, SqlError> {
    let symbol = parts.last().map_or("", String::as_str);
    operator_named(symbol)
        .ok_or_else(|| SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("operator does not exist: {symbol}")))
}

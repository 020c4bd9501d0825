//! Subqueries that do not depend on the statement around them: run once before it, their results standing in as parameters
//! behind the user's.
//!
//! `(SELECT ..)`, `ARRAY(SELECT ..)` and `EXISTS (SELECT ..)` become `$n`, `x IN (SELECT ..)` becomes `x = ANY ($n)`. Whether one depends on
//! its surroundings is found by planning it alone: a name that only they can explain makes that fail.

use super::assignment::{self, Shared};
use super::inner;
use super::refusal::{Planned, Refusal};
use super::{Execution, Plan, PlanContext, RowSource};
use crate::context::StatementContext;
use crate::exec::sort::{Reserved, row_bytes};
use crate::explain::{Operator, Role};
use crate::expr::{PARAMETERS_MAX, argument_of_all};
use crate::output::Field;
use crate::types::{Array, Row, SqlType, Value};
use crate::{SqlError, SqlState};
use sqlparser::ast::{self, BinaryOperator, Expr, Query, UnaryOperator, VisitMut, VisitorMut, visit_expressions};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Units of work of looking at an expression.
const EXPRESSION_UNITS: usize = 64;
/// Rows of a subquery pulled at a time.
const ROWS: usize = 1024;

/// Subqueries of a planned statement.
#[derive(Default)]
pub struct Subqueries {
    /// How many parameters the user has.
    pub first: usize,
    list: Vec<Subquery>,
}

struct Subquery {
    plan: Arc<dyn Plan>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    List,
    Exists,
    /// One row, of which each column is a parameter.
    Row,
}

/// The greatest number of a parameter in a statement: `$n`. Numbers that no parameter can have are left to who binds them: he refuses them.
pub(crate) fn parameters_in<V: ast::Visit>(node: &V) -> usize {
    let mut greatest = 0;
    let _ = visit_expressions(node, |expr| {
        if let Expr::Value(value) = expr
            && let ast::Value::Placeholder(name) = &value.value
            && let Some(number) = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok())
            && number <= PARAMETERS_MAX
        {
            greatest = greatest.max(number);
        }
        ControlFlow::<()>::Continue(())
    });
    greatest
}

struct Taker<'a> {
    /// Shared subqueries: their numbers, and the parameter before their first column's.
    shared: Vec<(usize, usize)>,
    context: &'a PlanContext,
    types: &'a mut Vec<SqlType>,
    into: &'a mut Subqueries,
    /// Queries for which others stand in.
    inside: &'a mut [Query],
    refusal: Option<Refusal>,
}

/// Replaces the subqueries of a statement, and those `inside` that were taken out of it. `types` are those of the parameters so far;
/// it grows by theirs. A node that is refused is left half taken apart.
pub fn take<V: VisitMut>(
    node: &mut V,
    inside: &mut [Query],
    context: &PlanContext,
    types: &mut Vec<SqlType>,
    into: &mut Subqueries,
) -> Planned<()> {
    let mut taker = Taker { shared: Vec::new(), context, types, into, inside, refusal: None };
    let _ = node.visit(&mut taker);
    taker.refusal.map_or(Ok(()), Err)
}

impl VisitorMut for Taker<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Err(ended) = crate::work::step(EXPRESSION_UNITS) {
            self.refusal = Some(ended.into());
            return ControlFlow::Break(());
        }
        let replaced = match expr {
            Expr::Subquery(query) => match assignment::shared(query) {
                Some(shared) => self.shared(&shared),
                None => self.plan(query, Kind::Scalar),
            },
            Expr::Exists { subquery, negated } => {
                let negated = *negated;
                self.plan(subquery, Kind::Exists).map(|value| negate(value, negated))
            }
            Expr::InSubquery { expr: left, subquery, negated } => {
                let (left, negated) = (std::mem::replace(left, Box::new(null())), *negated);
                if crate::expr::row_fields(&left).is_some() {
                    Err(Refusal::Engine("IN over rows of several columns"))
                } else {
                    let any = self.any(left, subquery);
                    any.map(|any| negate(Expr::Nested(Box::new(any)), negated))
                }
            }
            Expr::BinaryOp { left, right, .. }
                if matches!(**right, Expr::Subquery(_)) && crate::expr::row_fields(left).is_some() =>
            {
                Err(Refusal::Engine("a row beside a subquery"))
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. }
                if matches!(**right, Expr::Subquery(_)) && crate::expr::row_fields(left).is_none() =>
            {
                let Expr::Subquery(query) = right.as_mut() else { return ControlFlow::Continue(()) };
                self.any(std::mem::replace(left, Box::new(null())), query)
            }
            // ARRAY(SELECT ..)
            Expr::Function(ast::Function { args: ast::FunctionArguments::Subquery(query), .. }) => {
                self.plan(query, Kind::List)
            }
            Expr::Like { pattern, .. } | Expr::ILike { pattern, .. }
                if matches!(argument_of_all(pattern).unwrap_or(pattern), Expr::Subquery(_)) =>
            {
                Err(Refusal::Engine("LIKE beside a subquery"))
            }
            Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } if matches!(**right, Expr::Subquery(_)) => {
                Err(Refusal::Engine("ANY or ALL of a subquery"))
            }
            _ => return ControlFlow::Continue(()),
        };
        match replaced {
            Ok(new) => {
                *expr = new;
                ControlFlow::Continue(())
            }
            Err(refusal) => {
                self.refusal = Some(refusal);
                ControlFlow::Break(())
            }
        }
    }
}

fn null() -> Expr {
    Expr::Value(ast::Value::Null.with_empty_span())
}

fn negate(expr: Expr, negated: bool) -> Expr {
    if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) } } else { expr }
}

impl Taker<'_> {
    /// A column of a subquery that several columns are set from.
    fn shared(&mut self, shared: &Shared<'_>) -> Planned<Expr> {
        let known = self.shared.iter().find(|(number, _)| *number == shared.number);
        let before = match known {
            Some((_, before)) => *before,
            None => {
                let before = self.types.len();
                let plan = self.prepared(&mut shared.query.clone())?;
                assignment::check_width(shared, plan.fields().len())?;
                let ty = |field: &Field| if field.ty == SqlType::Unknown { SqlType::Text } else { field.ty.clone() };
                self.types.extend(plan.fields().iter().map(ty));
                self.into.list.push(Subquery { plan, kind: Kind::Row });
                self.shared.push((shared.number, before));
                before
            }
        };
        Ok(parameter(before + shared.column + 1))
    }

    /// `left = ANY (query)`.
    fn any(&mut self, left: Box<Expr>, query: &mut Query) -> Planned<Expr> {
        let right = Box::new(self.plan(query, Kind::List)?);
        Ok(Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, is_some: false })
    }

    /// Plans a query by itself.
    fn prepared(&mut self, query: &mut Query) -> Planned<Arc<dyn Plan>> {
        let mut context = PlanContext { inside: true, ..self.context.clone() };
        let known = &self.types[..self.into.first];
        context.parameter_hints = known.iter().map(|ty| (*ty != SqlType::Unknown).then(|| ty.clone())).collect();
        let query = match inner::number(query).and_then(|place| self.inside.get_mut(place)) {
            Some(inside) => inside,
            None => query,
        };
        let plan = match super::prepare_inside(query, &context) {
            Ok(plan) => plan,
            Err(error) if may_depend(&error) => return Err(Refusal::Engine("a correlated subquery")),
            Err(error) => return Err(error.into()),
        };
        for (ty, found) in self.types.iter_mut().zip(plan.parameters()) {
            if *ty == SqlType::Unknown {
                *ty = found.clone();
            }
        }
        Ok(plan)
    }

    fn plan(&mut self, query: &mut Query, kind: Kind) -> Planned<Expr> {
        let plan = self.prepared(query)?;
        let ty = match (plan.fields(), kind) {
            (_, Kind::Exists) => SqlType::Bool,
            // An array of arrays has more dimensions.
            ([field], Kind::List) if matches!(field.ty, SqlType::Array(_) | SqlType::Record) => {
                return Err(Refusal::Engine("a list of arrays"));
            }
            ([field], _) if field.ty == SqlType::Unknown => SqlType::Text,
            ([field], _) => field.ty.clone(),
            _ => {
                let what = if kind == Kind::List && plan.fields().is_empty() {
                    "subquery has too few columns"
                } else if kind == Kind::List {
                    "subquery has too many columns"
                } else {
                    "subquery must return only one column"
                };
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, what).into());
            }
        };
        let ty = if kind == Kind::List { SqlType::Array(Box::new(ty)) } else { ty };
        self.types.push(ty);
        self.into.list.push(Subquery { plan, kind });
        Ok(parameter(self.types.len()))
    }
}

fn parameter(number: usize) -> Expr {
    Expr::Value(ast::Value::Placeholder(format!("${number}")).with_empty_span())
}

/// Errors that planning a subquery alone gives when it names what stands around it.
fn may_depend(error: &SqlError) -> bool {
    matches!(
        error.state,
        SqlState::UNDEFINED_COLUMN
            | SqlState::UNDEFINED_TABLE
            | SqlState::INDETERMINATE_DATATYPE
            | SqlState::FEATURE_NOT_SUPPORTED
            // An aggregate may be one of the query around.
            | SqlState::GROUPING_ERROR
    )
}

impl Subqueries {
    /// None yet, behind so many parameters of the user's.
    pub fn new(first: usize) -> Self {
        Subqueries { first, list: Vec::new() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What the statement around them is made of, and they.
    pub fn explain(&self, mut whole: Operator) -> Operator {
        let mut next = self.first + 1;
        for (at, subquery) in self.list.iter().enumerate() {
            let count = if subquery.kind == Kind::Row { subquery.plan.fields().len() } else { 1 };
            let given: Vec<String> = (next..next + count).map(|number| format!("${number}")).collect();
            next += count;
            let operator = subquery.plan.explain();
            whole.cost += operator.cost;
            let name = format!("InitPlan {} (returns {})", at + 1, given.join(","));
            whole.inputs.push((Role::InitPlan(name), operator));
        }
        whole
    }

    /// Runs them: the context for the statement around them.
    pub fn evaluate(&self, context: &Arc<StatementContext>) -> Result<Arc<StatementContext>, SqlError> {
        if self.list.is_empty() {
            return Ok(context.clone());
        }
        let mut params = context.params.clone();
        params.resize(self.first, Value::Null);
        for subquery in &self.list {
            // A later subquery's parameters are the user's, which stay in front.
            match subquery.kind {
                Kind::Row => {
                    let row = subquery.row(context)?;
                    params.extend(row.unwrap_or_else(|| vec![Value::Null; subquery.plan.fields().len()]));
                }
                _ => params.push(subquery.value(context)?),
            }
        }
        let mut inner = StatementContext::clone(context);
        inner.params = params;
        Ok(Arc::new(inner))
    }
}

impl Subquery {
    fn open(&self, context: &Arc<StatementContext>) -> Result<Box<dyn RowSource>, SqlError> {
        match self.plan.execute(context)? {
            Execution::Rows(source) => Ok(source),
            Execution::Done { .. } => Err(SqlError::unsupported("a subquery that writes")),
        }
    }

    /// Its row, if it has one.
    fn row(&self, context: &Arc<StatementContext>) -> Result<Option<Row>, SqlError> {
        let mut source = self.open(context)?;
        let mut rows = source.next(2)?;
        if rows.len() == 1 {
            rows.extend(source.next(1)?);
        }
        if rows.len() > 1 {
            return Err(SqlError::new(
                SqlState::CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression",
            ));
        }
        Ok(rows.pop())
    }

    fn value(&self, context: &Arc<StatementContext>) -> Result<Value, SqlError> {
        match self.kind {
            Kind::Exists => Ok(Value::Bool(!self.open(context)?.next(1)?.is_empty())),
            Kind::Scalar | Kind::Row => Ok(self.row(context)?.and_then(|mut row| row.pop()).unwrap_or(Value::Null)),
            Kind::List => {
                let mut source = self.open(context)?;
                let mut reserved = Reserved::new(&context.memory);
                let mut values = Vec::new();
                loop {
                    let rows = source.next(ROWS)?;
                    if rows.is_empty() {
                        break;
                    }
                    for mut row in rows {
                        reserved.take(row_bytes(&row))?;
                        values.extend(row.pop());
                    }
                }
                let element = match &self.plan.fields()[0].ty {
                    SqlType::Unknown => SqlType::Text,
                    ty => ty.clone(),
                };
                let dimensions = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 1)] };
                Ok(Value::Array(Arc::new(Array { element, dimensions, values })))
            }
        }
    }
}

//! Expressions of the engine: those of [`crate::expr`], plus what needs a query or the catalog to be computed.
//!
//! A subquery, or a call of a catalog function, is a *step*: its value is computed first (if it will be asked for: [`super::lazy`]) and put
//! in a slot after the row, where the rest of the expression finds it. So the evaluator below knows nothing of queries.

use super::key_table::KeyTable;
use super::keys::{self, KeyKind};
use super::lazy::Lazy;
use super::node::Node;
use super::probe::Probe;
use super::run::{Run, open};
use super::take::Quantifier;
use crate::exec::evaluate;
use crate::expr::Expr;
use crate::pg_catalog::{Source, functions, names};
use crate::types::{Names, RegKind, Row, SqlType, Value};
use crate::{SqlError, SqlState};
use std::borrow::Cow;
use std::sync::Arc;

/// A query inside an expression. Its prefix is the row that the expression is evaluated on.
#[derive(Clone, Debug)]
pub(super) struct Subplan {
    pub(super) id: usize,
    pub(super) node: Arc<Node>,
    /// Slots of its prefix.
    pub(super) prefix: usize,
    /// It refers to the query around it, or is volatile: it runs for every row.
    pub(super) correlated: bool,
    /// How it need not run for every row.
    pub(super) probe: Option<Arc<Probe>>,
}

/// Something computed before the expression proper.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// `(SELECT ..)`: one column, at most one row.
    Subquery(Subplan),
    /// A column of `(SELECT a, b ..)` that several columns are set from: it runs once for a row.
    Shared(Subplan, usize),
    /// `EXISTS (SELECT ..)`
    Exists(Subplan),
    /// `ARRAY(SELECT ..)`, and the type of the column.
    Array(Subplan, SqlType),
    /// `x IN (SELECT ..)`, by hash.
    In { left: Vec<Expr>, kinds: Vec<KeyKind>, plan: Subplan },
    /// `x op ANY (SELECT ..)`, `x op ALL (SELECT ..)`: `test` is over the row, then the left side's values, then the subquery's row.
    Quantified { left: Vec<Expr>, test: Expr, of: Quantifier, plan: Subplan },
    /// A function of the catalogs.
    Catalog { name: &'static str, args: Vec<Expr> },
    /// `x::regclass` and its kin.
    ToReg(RegKind, Expr),
    /// `regclass::text` and its kin.
    FromReg(RegKind, Expr),
    /// `(record).field`
    Field(Expr, usize),
    /// A whole row: NULL if its mark is (see [`super::presence`]).
    Record { fields: Vec<Expr>, names: Option<Names>, mark: Option<Expr> },
    /// `row_to_json(t)`: names, and values that are json already.
    RowJson { names: Vec<String>, values: Vec<Expr>, mark: Option<Expr>, binary: bool },
}

/// An expression over rows of `width` slots.
#[derive(Clone, Debug)]
pub(super) struct Scalar {
    pub(super) steps: Vec<Step>,
    pub(super) expr: Expr,
    pub(super) ty: SqlType,
    pub(super) width: usize,
}

/// The rows of an IN's subquery, as keys.
#[derive(Debug)]
pub(super) struct InSet {
    keys: KeyTable,
    rows: Arc<Vec<Row>>,
    /// Places of rows that hold a NULL: they have no key.
    partial: Vec<usize>,
}

impl InSet {
    /// Whether a row is in it, in three-valued logic: NULL if it would be with other values in the place of NULLs.
    fn holds(&self, left: &[Value], kinds: &[KeyKind], run: &Run) -> Result<Value, SqlError> {
        let open = |rows: &mut dyn Iterator<Item = &Row>| -> Result<Value, SqlError> {
            for row in rows {
                run.tick()?;
                if may_equal(left, row, kinds) {
                    return Ok(Value::Null);
                }
            }
            Ok(Value::Bool(false))
        };
        if left.iter().any(Value::is_null) {
            return open(&mut self.rows.iter());
        }
        let mut key = Vec::with_capacity(left.len() * 16);
        left.iter().zip(kinds).for_each(|(value, kind)| keys::encode(value, *kind, &mut key));
        if self.keys.find(&key).is_some() {
            return Ok(Value::Bool(true));
        }
        open(&mut self.partial.iter().map(|place| &self.rows[*place]))
    }
}

/// Whether no pair of values is told apart: NULL is told apart from nothing.
fn may_equal(left: &[Value], right: &[Value], kinds: &[KeyKind]) -> bool {
    let key = |value: &Value, kind: KeyKind| {
        let mut key = Vec::new();
        keys::encode(value, kind, &mut key);
        key
    };
    let mut pairs = left.iter().zip(right).zip(kinds);
    pairs.all(|((l, r), kind)| l.is_null() || r.is_null() || key(l, *kind) == key(r, *kind))
}

impl Scalar {
    /// Its value.
    pub(super) fn value(&self, row: &[Value], run: &Arc<Run>) -> Result<Value, SqlError> {
        if self.steps.is_empty() {
            return evaluate::value(&self.expr, row, &run.context);
        }
        if let ([step], Expr::Column { index, .. }) = (self.steps.as_slice(), &self.expr)
            && *index == self.width
        {
            // A condition that is one subquery needs no copy of the row.
            return step.value(&row[..self.width], run);
        }
        Lazy::new(&self.steps, &row[..self.width], run).value(&self.expr)
    }

    /// The columns of the row that it reads; `None`: a step may read any.
    pub(super) fn columns(&self) -> Option<Vec<usize>> {
        let mut columns = self.expr.columns();
        for step in &self.steps {
            // What is asked of a quantified subquery's rows may read the row, too.
            if matches!(step, Step::Quantified { .. }) || step.plan().is_some_and(|plan| plan.correlated) {
                return None;
            }
            columns.extend(step.parts().into_iter().flat_map(Expr::columns));
        }
        // Behind the row stand steps.
        columns.retain(|column| *column < self.width);
        Some(columns)
    }

    /// Which column of the row it is, if it is nothing else.
    pub(super) fn column(&self) -> Option<usize> {
        evaluate::column(&self.expr).filter(|_| self.steps.is_empty())
    }

    /// Its value, borrowed from the row (or the statement) where it stands there.
    #[inline]
    pub(super) fn value_ref<'a>(&'a self, row: &'a [Value], run: &'a Arc<Run>) -> Result<Cow<'a, Value>, SqlError> {
        if self.steps.is_empty() {
            return self.expr.eval_ref(row, &run.context);
        }
        self.value(row, run).map(Cow::Owned)
    }

    /// Whether it is true (not false, not NULL).
    pub(super) fn truth(&self, row: &[Value], run: &Arc<Run>) -> Result<bool, SqlError> {
        Ok(matches!(self.value(row, run)?, Value::Bool(true)))
    }
}

/// Whether all conditions are true.
pub(super) fn all_true(conditions: &[Scalar], row: &[Value], run: &Arc<Run>) -> Result<bool, SqlError> {
    for condition in conditions {
        if !condition.truth(row, run)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn values(exprs: &[Expr], row: &[Value], run: &Run) -> Result<Row, SqlError> {
    exprs.iter().map(|expr| evaluate::value(expr, row, &run.context)).collect()
}

impl Step {
    /// Expressions that it is computed from: they may read the slots of steps before it.
    pub(super) fn parts(&self) -> Vec<&Expr> {
        match self {
            Step::Subquery(_) | Step::Shared(..) | Step::Exists(_) | Step::Array(..) => Vec::new(),
            Step::In { left, .. } | Step::Quantified { left, .. } => left.iter().collect(),
            Step::Catalog { args, .. } => args.iter().collect(),
            Step::ToReg(_, arg) | Step::FromReg(_, arg) | Step::Field(arg, _) => vec![arg],
            Step::Record { fields: values, mark, .. } | Step::RowJson { values, mark, .. } => {
                values.iter().chain(mark).collect()
            }
        }
    }

    /// The query that it runs.
    pub(super) fn plan(&self) -> Option<&Subplan> {
        match self {
            Step::Subquery(plan) | Step::Shared(plan, _) | Step::Exists(plan) | Step::Array(plan, _) => Some(plan),
            Step::In { plan, .. } | Step::Quantified { plan, .. } => Some(plan),
            _ => None,
        }
    }

    pub(super) fn value(&self, row: &[Value], run: &Arc<Run>) -> Result<Value, SqlError> {
        match self {
            Step::Subquery(plan) => plan.scalar(row, run),
            Step::Shared(plan, column) => plan.shared(*column, row, run),
            Step::Exists(plan) => Ok(Value::Bool(plan.exists(row, run)?)),
            Step::Array(plan, of) => {
                let rows = plan.rows(row, run)?;
                let values = rows.iter().map(|row| row[0].clone()).collect();
                let element = if let SqlType::Array(element) = of { element.as_ref() } else { of };
                super::aggregate::gathered(values, element.clone(), of)
            }
            Step::In { left, kinds, plan } => {
                let left = values(left, row, run)?;
                let set = plan.set(kinds, row, run)?;
                set.holds(&left, kinds, run)
            }
            Step::Quantified { left, test, of, plan } => quantified(left, test, *of, plan, row, run),
            Step::Catalog { name, args } => functions::call(name, &values(args, row, run)?, &run.context),
            Step::ToReg(kind, arg) => match evaluate::value(arg, row, &run.context)? {
                Value::Text(name) => Ok(Value::Oid(names::resolve(*kind, &name, Some(&Source::of(&run.context)))?)),
                Value::Int2(n) => Ok(Value::Oid(n as u32)),
                Value::Int4(n) => Ok(Value::Oid(n as u32)),
                Value::Int8(n) => Ok(Value::Oid(n as u32)),
                other => Ok(other),
            },
            Step::FromReg(kind, arg) => match evaluate::value(arg, row, &run.context)? {
                Value::Oid(oid) => Ok(Value::Text(names::print(*kind, oid, Some(&Source::of(&run.context)))?.into())),
                other => Ok(other),
            },
            Step::Field(arg, index) => match evaluate::value(arg, row, &run.context)? {
                Value::Record(fields) => Ok(fields.get(*index).cloned().unwrap_or(Value::Null)),
                _ => Ok(Value::Null),
            },
            Step::Record { mark: Some(mark), .. } | Step::RowJson { mark: Some(mark), .. }
                if evaluate::value(mark, row, &run.context)?.is_null() =>
            {
                Ok(Value::Null)
            }
            Step::Record { fields, names, .. } => Value::record(values(fields, row, run)?, names.clone()),
            Step::RowJson { names, values: fields, binary, .. } => {
                let fields = values(fields, row, run)?;
                super::aggregate::json(object(names, &fields), *binary)
            }
        }
    }
}

/// The text of an object.
fn object(names: &[String], values: &[Value]) -> String {
    let mut out = String::from("{");
    for (place, (name, value)) in names.iter().zip(values).enumerate() {
        if place > 0 {
            out.push(',');
        }
        crate::types::json::write_string(name, &mut out);
        out.push(':');
        out += value.as_str().unwrap_or("null");
    }
    out.push('}');
    out
}

fn quantified(
    left: &[Expr],
    test: &Expr,
    of: Quantifier,
    plan: &Subplan,
    row: &[Value],
    run: &Arc<Run>,
) -> Result<Value, SqlError> {
    let mut scratch = row.to_vec();
    scratch.extend(values(left, row, run)?);
    let width = scratch.len();
    let rows = plan.rows(row, run)?;
    if of == Quantifier::One {
        return match rows.as_slice() {
            [] => Ok(Value::Null),
            [only] => {
                scratch.extend_from_slice(only);
                evaluate::value(test, &scratch, &run.context)
            }
            _ => Err(several_rows()),
        };
    }
    let all = of == Quantifier::All;
    let mut unknown = false;
    for candidate in rows.iter() {
        run.tick()?;
        scratch.truncate(width);
        scratch.extend_from_slice(candidate);
        match evaluate::value(test, &scratch, &run.context)? {
            Value::Bool(holds) if holds != all => return Ok(Value::Bool(!all)),
            Value::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Value::Null } else { Value::Bool(all) })
}

pub(super) fn several_rows() -> SqlError {
    let message = "more than one row returned by a subquery used as an expression";
    SqlError::new(SqlState::CARDINALITY_VIOLATION, message)
}

impl Subplan {
    /// Its rows, without the prefix; computed once if it does not depend on the row.
    fn rows(&self, row: &[Value], run: &Arc<Run>) -> Result<Arc<Vec<Row>>, SqlError> {
        if !self.correlated
            && let Some(rows) = run.cached_rows(self.id)
        {
            return Ok(rows);
        }
        let around = &row[..self.prefix];
        let question = match self.correlated.then(|| run.recall(&self.node, around)) {
            Some(Ok(rows)) => return Ok(rows),
            Some(Err(question)) => question,
            None => None,
        };
        let mut source = open(&self.node, &Arc::from(around), run)?;
        let mut rows = Vec::new();
        let mut reserved = run.reserve();
        let mut row = Row::new();
        while source.next(&mut row)? {
            run.tick()?;
            row.drain(..self.prefix);
            reserved.row(&row)?;
            rows.push(std::mem::take(&mut row));
        }
        let rows = Arc::new(rows);
        if !self.correlated {
            run.cache_rows(self.id, rows.clone(), reserved);
        }
        if let Some(question) = question {
            run.remember(&self.node, question, &rows);
        }
        Ok(rows)
    }

    fn scalar(&self, row: &[Value], run: &Arc<Run>) -> Result<Value, SqlError> {
        if let Some(probe) = &self.probe
            && let Some(value) = probe.value(self, row, run)?
        {
            return Ok(value);
        }
        let rows = self.rows(row, run)?;
        match rows.as_slice() {
            [] => Ok(Value::Null),
            [row] => Ok(row[0].clone()),
            _ => Err(several_rows()),
        }
    }

    /// A column of its row, of which the others are asked for next.
    fn shared(&self, column: usize, row: &[Value], run: &Arc<Run>) -> Result<Value, SqlError> {
        let around = &row[..self.prefix];
        let rows = match run.shared_rows(self.id, around) {
            Some(rows) => rows,
            None => {
                let rows = self.rows(row, run)?;
                run.share_rows(self.id, around, &rows);
                rows
            }
        };
        match rows.as_slice() {
            [] => Ok(Value::Null),
            [row] => Ok(row.get(column).cloned().unwrap_or(Value::Null)),
            _ => Err(several_rows()),
        }
    }

    fn exists(&self, row: &[Value], run: &Arc<Run>) -> Result<bool, SqlError> {
        if let Some(probe) = &self.probe
            && let Some(found) = probe.exists(self, row, run)?
        {
            return Ok(found);
        }
        if !self.correlated
            && let Some(rows) = run.cached_rows(self.id)
        {
            return Ok(!rows.is_empty());
        }
        let around = &row[..self.prefix];
        let question = match self.correlated.then(|| run.recall(&self.node, around)) {
            Some(Ok(rows)) => return Ok(!rows.is_empty()),
            Some(Err(question)) => question,
            None => None,
        };
        // The first row is enough.
        let mut source = run.correlated(&self.node, around)?;
        let found = source.any()?;
        if self.correlated {
            run.spare(&self.node, source);
        }
        if !self.correlated {
            run.cache_rows(self.id, Arc::new(vec![Row::new(); usize::from(found)]), run.reserve());
        } else if let Some(question) = question {
            // That there is one is all that is asked.
            run.remember(&self.node, question, &Arc::new(vec![Row::new(); usize::from(found)]));
        }
        Ok(found)
    }

    fn set(&self, kinds: &[KeyKind], row: &[Value], run: &Arc<Run>) -> Result<Arc<InSet>, SqlError> {
        if !self.correlated
            && let Some(set) = run.cached_set(self.id)
        {
            return Ok(set);
        }
        let rows = self.rows(row, run)?;
        let mut set = InSet { keys: KeyTable::new(run.seed), rows: rows.clone(), partial: Vec::new() };
        let mut key = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            run.tick()?;
            if row.contains(&Value::Null) {
                set.partial.push(place);
                continue;
            }
            key.clear();
            row.iter().zip(kinds).for_each(|(value, kind)| keys::encode(value, *kind, &mut key));
            set.keys.number(&key);
        }
        let set = Arc::new(set);
        if !self.correlated {
            run.cache_set(self.id, set.clone());
        }
        Ok(set)
    }
}

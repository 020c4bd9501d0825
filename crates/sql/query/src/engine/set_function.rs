//! Functions that return sets, in FROM and in the select list.

use super::run::Run;
use super::scalar::Scalar;
use crate::exec::evaluate;
use crate::expr::{Expr, regexp};
use crate::pg_catalog::functions;
use crate::types::json::{Json, raw_parts};
use crate::types::{Array, Interval, Numeric, Row, SqlType, Value};
use crate::work::Held;
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// Which.
#[derive(Clone, Debug)]
pub(super) enum SetFunction {
    /// generate_series over integers.
    Integers,
    /// generate_series over numeric.
    Numerics,
    /// generate_series over timestamps; the expression adds a step (slot 1) to a time (slot 0).
    Times(Expr),
    /// unnest of one array.
    Unnest,
    /// generate_subscripts.
    Subscripts,
    /// information_schema._pg_expandarray: elements and their numbers.
    Expand,
    /// json[b]_array_elements[_text].
    JsonElements { text: bool, binary: bool },
    /// json[b]_each[_text].
    JsonEach { text: bool, binary: bool },
    /// json[b]_object_keys.
    JsonKeys,
    /// regexp_matches.
    Matches,
    /// A set of the catalogs.
    Catalog(&'static str),
    /// A function that gives one value: `FROM now()`.
    Value,
}

/// What a row of one or two values holds beside them, bytes.
const ROW_BYTES: usize = 96;

/// One call.
#[derive(Debug)]
pub(super) struct SetCall {
    pub(super) function: SetFunction,
    pub(super) args: Vec<Scalar>,
    /// Types of its columns.
    pub(super) columns: Vec<SqlType>,
}

/// Rows of several calls side by side; shorter ones are padded with NULL.
pub(super) struct SetRows {
    calls: Vec<(Series, usize)>,
}

/// The rows still to come of one call.
enum Series {
    Listed(std::vec::IntoIter<Row>),
    /// Made one by one, of a value that is there: its rows are many times as large.
    Made(Box<dyn Iterator<Item = Row> + Send>),
    Integers {
        next: Option<i64>,
        end: i64,
        step: i64,
        ty: SqlType,
    },
    Numerics {
        next: Numeric,
        end: Numeric,
        step: Numeric,
    },
    Times {
        next: Value,
        end: Value,
        step: Value,
        backwards: bool,
        add: Expr,
        ty: SqlType,
        run: Arc<Run>,
    },
}

impl SetRows {
    /// Evaluates the arguments on a row.
    pub(super) fn start(calls: &[SetCall], row: &[Value], run: &Arc<Run>) -> Result<SetRows, SqlError> {
        let calls = calls.iter().map(|call| Ok((call.start(row, run)?, call.columns.len())));
        Ok(SetRows { calls: calls.collect::<Result<_, SqlError>>()? })
    }
}

impl Iterator for SetRows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        let mut out = Row::new();
        let mut any = false;
        for (series, width) in &mut self.calls {
            match series.next() {
                Some(values) => {
                    any = true;
                    out.extend(values);
                }
                None => out.resize(out.len() + *width, Value::Null),
            }
        }
        any.then_some(out)
    }
}

impl Iterator for Series {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        match self {
            Series::Listed(rows) => rows.next(),
            Series::Made(rows) => rows.next(),
            Series::Integers { next, end, step, ty } => {
                let value = (*next)?;
                if (*step > 0 && value > *end) || (*step < 0 && value < *end) {
                    *next = None;
                    return None;
                }
                *next = value.checked_add(*step);
                Some(vec![if *ty == SqlType::Int4 { Value::Int4(value as i32) } else { Value::Int8(value) }])
            }
            Series::Numerics { next, end, step } => {
                let order = next.compare(end);
                if (step.signum() > 0 && order.is_gt()) || (step.signum() < 0 && order.is_lt()) {
                    return None;
                }
                let value = next.clone();
                // A sum that overflows is beyond the end.
                *next =
                    value.add(step).unwrap_or(if step.signum() > 0 { Numeric::Infinity } else { Numeric::NegInfinity });
                Some(vec![Value::Numeric(value)])
            }
            Series::Times { next, end, step, backwards, add, ty, run } => {
                let order = next.compare(end, ty);
                if next.is_null() || (!*backwards && order.is_gt()) || (*backwards && order.is_lt()) {
                    return None;
                }
                let value = next.clone();
                let row = [value.clone(), step.clone()];
                *next = evaluate::value(add, &row, &run.context).unwrap_or(Value::Null);
                Some(vec![value])
            }
        }
    }
}

fn zero_step() -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, "step size cannot equal zero")
}

fn json_of(value: &Value) -> Result<Json, SqlError> {
    Json::parse(value.as_str().unwrap_or("null"))
}

/// A part of a json document: it keeps its text.
fn raw_value(part: &str, text: bool) -> Result<Value, SqlError> {
    Ok(match part {
        "null" if text => Value::Null,
        quoted if text && quoted.starts_with('"') => {
            Json::parse(quoted)?.to_plain().map_or(Value::Null, |text| Value::Text(text.into()))
        }
        other if text => Value::Text(other.into()),
        other => Value::Json(other.into()),
    })
}

fn json_value(json: &Json, text: bool, binary: bool) -> Value {
    if text {
        return json.to_plain().map_or(Value::Null, |text| Value::Text(text.into()));
    }
    let mut out = String::new();
    json.write(&mut out);
    if binary { Value::Jsonb(out.into()) } else { Value::Json(out.into()) }
}

impl SetCall {
    fn start(&self, row: &[Value], run: &Arc<Run>) -> Result<Series, SqlError> {
        let args = self.args.iter().map(|arg| arg.value(row, run)).collect::<Result<Row, _>>()?;
        let listed = |rows: Vec<Row>| Ok(Series::Listed(rows.into_iter()));
        if let SetFunction::Value = self.function {
            return listed(vec![args]);
        }
        if args.iter().any(Value::is_null) {
            return listed(Vec::new());
        }
        match &self.function {
            SetFunction::Integers | SetFunction::Numerics | SetFunction::Times(_) => self.series(args, run),
            SetFunction::Unnest => made(elements(&args[0]).map(|(_, value)| vec![value])),
            SetFunction::Expand => {
                made(elements(&args[0]).map(|(place, value)| vec![value, Value::Int4(place as i32 + 1)]))
            }
            SetFunction::Subscripts => made(subscripts(&args)),
            SetFunction::Matches => {
                let found = regexp::all_matches(&args, &|| run.context.check())?;
                made(found.into_iter().map(|groups| vec![groups]))
            }
            SetFunction::Catalog(name) => listed(functions::set_rows(name)),
            SetFunction::JsonElements { text, binary: false } => {
                let document = args[0].as_str().unwrap_or("null");
                match raw_parts(document)?.filter(|_| document.trim_start().starts_with('[')) {
                    Some(parts) => {
                        let mut held = Held::default();
                        let value = |(_, part): (String, &str)| {
                            held.take(ROW_BYTES + part.len())?;
                            Ok(vec![raw_value(part, *text)?])
                        };
                        listed(parts.into_iter().map(value).collect::<Result<_, SqlError>>()?)
                    }
                    None => Err(SqlError::new(
                        SqlState::INVALID_PARAMETER,
                        "cannot extract elements from a scalar or an object",
                    )),
                }
            }
            SetFunction::JsonEach { text, binary: false } => {
                let document = args[0].as_str().unwrap_or("null");
                match raw_parts(document)?.filter(|_| document.trim_start().starts_with('{')) {
                    Some(parts) => {
                        let mut held = Held::default();
                        let row = |(key, part): (String, &str)| {
                            held.take(ROW_BYTES + key.len() + part.len())?;
                            Ok(vec![Value::Text(key.into()), raw_value(part, *text)?])
                        };
                        listed(parts.into_iter().map(row).collect::<Result<_, SqlError>>()?)
                    }
                    None => Err(SqlError::new(
                        SqlState::INVALID_PARAMETER,
                        "cannot call a function of objects on a scalar or an array",
                    )),
                }
            }
            SetFunction::JsonElements { text, binary } => match json_of(&args[0])? {
                Json::Array(items) => {
                    let (text, binary) = (*text, *binary);
                    made(items.into_iter().map(move |item| vec![json_value(&item, text, binary)]))
                }
                _ => Err(SqlError::new(
                    SqlState::INVALID_PARAMETER,
                    "cannot extract elements from a scalar or an object",
                )),
            },
            SetFunction::JsonEach { text, binary } => {
                let (text, binary) = (*text, *binary);
                let member =
                    move |(key, value): (String, Json)| vec![Value::Text(key.into()), json_value(&value, text, binary)];
                made(members(&args[0])?.into_iter().map(member))
            }
            SetFunction::JsonKeys => made(members(&args[0])?.into_iter().map(|(key, _)| vec![Value::Text(key.into())])),
            SetFunction::Value => listed(Vec::new()),
        }
    }

    fn series(&self, mut args: Row, run: &Arc<Run>) -> Result<Series, SqlError> {
        let ty = self.columns[0].clone();
        let step = args.get(2).cloned();
        let end = args.swap_remove(1);
        let first = args.swap_remove(0);
        if let SetFunction::Times(add) = &self.function {
            let step = step.unwrap_or(Value::Interval(Interval { months: 0, days: 1, micros: 0 }));
            let micros = if let Value::Interval(step) = &step { step.total_us() } else { 0 };
            if micros == 0 {
                return Err(zero_step());
            }
            return Ok(Series::Times {
                next: first,
                end,
                step,
                backwards: micros < 0,
                add: add.clone(),
                ty,
                run: run.clone(),
            });
        }
        if let (Value::Numeric(next), Value::Numeric(end)) = (&first, &end) {
            let step = if let Some(Value::Numeric(step)) = step { step } else { Numeric::from(1) };
            if step.signum() == 0 {
                return Err(zero_step());
            }
            return Ok(Series::Numerics { next: next.clone(), end: end.clone(), step });
        }
        let step = step.and_then(|step| step.as_i64()).unwrap_or(1);
        if step == 0 {
            return Err(zero_step());
        }
        Ok(Series::Integers { next: first.as_i64(), end: end.as_i64().unwrap_or(0), step, ty })
    }
}

fn array(value: &Value) -> Option<&Array> {
    if let Value::Array(array) = value { Some(array) } else { None }
}

/// Rows that are made one by one.
fn made(rows: impl Iterator<Item = Row> + Send + 'static) -> Result<Series, SqlError> {
    Ok(Series::Made(Box::new(rows)))
}

/// The elements of an array, and their places.
fn elements(value: &Value) -> impl Iterator<Item = (usize, Value)> + Send + use<> {
    let array = if let Value::Array(array) = value { Some(array.clone()) } else { None };
    let count = array.as_ref().map_or(0, |array| array.values.len());
    (0..count).filter_map(move |place| Some((place, array.as_ref()?.values.get(place)?.clone())))
}

fn subscripts(args: &[Value]) -> Box<dyn Iterator<Item = Row> + Send> {
    let dimension = args.get(1).and_then(Value::as_i64).and_then(|n| usize::try_from(n - 1).ok());
    let Some((length, lower)) = array(&args[0]).zip(dimension).and_then(|(array, d)| array.dimensions.get(d).copied())
    else {
        return Box::new(std::iter::empty());
    };
    let rows = (lower..lower + length).map(|n| vec![Value::Int4(n)]);
    if args.get(2) == Some(&Value::Bool(true)) { Box::new(rows.rev()) } else { Box::new(rows) }
}

fn members(value: &Value) -> Result<Vec<(String, Json)>, SqlError> {
    match json_of(value)? {
        Json::Object(members) => Ok(members.into_iter().collect()),
        _ => {
            Err(SqlError::new(SqlState::INVALID_PARAMETER, "cannot call a function of objects on a scalar or an array"))
        }
    }
}

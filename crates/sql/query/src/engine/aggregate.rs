//! Aggregate functions of the engine: their calls, and their running states.

use super::node::SortKey;
use super::regression::Regression;
use super::scalar::Scalar;
use super::spread::Spread;
use crate::context::StatementContext;
use crate::exec::sort::in_order;
use crate::exec::total::Total;
pub(super) use crate::expr::aggregate::Function;
use crate::types::{Array, ELEMENT_BYTES, SqlType, Value, fits_dimensions, value_bytes, value_fits, wide_bytes};
use crate::{SqlError, SqlState};
use std::sync::Arc;

/// One aggregate of a query.
#[derive(Clone, Debug)]
pub(super) struct AggregateCall {
    pub(super) function: Function,
    /// None for `count(*)`. For an ordered-set aggregate: the sorted value, then the fraction.
    pub(super) args: Vec<Scalar>,
    pub(super) distinct: bool,
    /// ORDER BY within the call, over the same row as the arguments. With DISTINCT: every argument is among the keys, or there are none
    /// because the order does not matter.
    pub(super) order: Vec<SortKey>,
    pub(super) filter: Option<Scalar>,
    pub(super) ty: SqlType,
    /// json_agg starts a line for each element.
    pub(super) lines: bool,
    /// WITHIN GROUP goes from the greatest value down. NULLs are left out, so where they would stand does not matter.
    pub(super) descending: bool,
    /// For grouping(): places of its keys.
    pub(super) keys: Vec<usize>,
}

/// A running aggregate. Groups may be many, and most are counted or summed.
#[derive(Clone, Debug)]
pub(super) enum Accumulator {
    Count(i64),
    /// A sum or an average.
    Total(Total),
    Other(Box<Running>),
}

/// One that is neither.
#[derive(Clone, Debug)]
pub(super) struct Running {
    function: Function,
    argument: SqlType,
    result: SqlType,
    count: i64,
    bits: i64,
    /// Of variances only: it is large, and groups may be many.
    spread: Option<Box<Spread>>,
    /// Of two columns.
    regression: Option<Box<Regression>>,
    best: Value,
    /// The most that `best` has held, bytes, and what of it nobody took of the statement's memory yet.
    held_bytes: usize,
    unpaid_bytes: usize,
    text: String,
    values: Vec<Value>,
    /// Of an array: what its elements say.
    value_bytes: usize,
    /// `None` for NULL.
    fraction: Option<f64>,
    descending: bool,
    lines: bool,
}

impl AggregateCall {
    /// Whether each row is taken as it comes, and none of it is kept beyond the state's own size.
    pub(super) fn is_plain(&self) -> bool {
        !self.distinct && self.order.is_empty() && !self.function.holds_values()
    }

    /// What it is given: arguments, keys of its order, and its condition.
    pub(super) fn scalars(&self) -> impl Iterator<Item = &Scalar> {
        self.args.iter().chain(self.order.iter().map(|key| &key.by)).chain(&self.filter)
    }

    /// What its state takes beside the [`Accumulator`] from the start, bytes.
    pub(super) fn state_bytes(&self) -> usize {
        match self.function {
            Function::Count | Function::Sum | Function::Avg => 0,
            _ => size_of::<Running>(),
        }
    }

    /// Starts.
    pub(super) fn start(&self) -> Accumulator {
        match self.function {
            Function::Count => return Accumulator::Count(0),
            Function::Sum | Function::Avg => return Accumulator::Total(Total::default()),
            _ => {}
        }
        Accumulator::Other(Box::new(Running {
            function: self.function,
            argument: self.args.first().map_or(SqlType::Unknown, |arg| arg.ty.clone()),
            result: self.ty.clone(),
            count: 0,
            bits: 0,
            spread: None,
            regression: None,
            best: Value::Null,
            held_bytes: 0,
            unpaid_bytes: 0,
            text: String::new(),
            values: Vec::new(),
            value_bytes: 0,
            fraction: None,
            descending: self.descending,
            lines: self.lines,
        }))
    }
}

pub(super) fn as_float(value: &Value) -> f64 {
    match value {
        Value::Float4(v) => f64::from(*v),
        Value::Float8(v) => *v,
        Value::Numeric(v) => v.to_f64(),
        other => other.as_i64().map_or(f64::NAN, |n| n as f64),
    }
}

impl Accumulator {
    /// Takes the arguments of one row.
    #[inline]
    pub(super) fn add(&mut self, args: &[Value]) -> Result<(), SqlError> {
        match self {
            Accumulator::Count(count) => *count += i64::from(!args.first().is_some_and(Value::is_null)),
            Accumulator::Total(total) => match args.first() {
                Some(Value::Null) | None => {}
                Some(value) => total.add(value)?,
            },
            Accumulator::Other(running) => running.add(args)?,
        }
        Ok(())
    }

    /// About what it holds and shows of what it was given, bytes.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Accumulator::Count(_) | Accumulator::Total(_) => 0,
            Accumulator::Other(running) => running.text.len() + running.values.len() * size_of::<Value>(),
        }
    }

    /// Whether it keeps values as they are.
    pub(super) fn keeps_values(&self) -> bool {
        matches!(self, Accumulator::Other(running) if !running.values.is_empty())
    }

    /// By how many bytes the one value that it keeps has grown since this was last asked.
    #[inline]
    pub(super) fn take_grown(&mut self) -> usize {
        match self {
            Accumulator::Count(_) | Accumulator::Total(_) => 0,
            Accumulator::Other(running) => std::mem::take(&mut running.unpaid_bytes),
        }
    }

    /// What the elements say of which it makes an array, bytes.
    pub(super) fn element_bytes(&self) -> usize {
        match self {
            Accumulator::Count(_) | Accumulator::Total(_) => 0,
            Accumulator::Other(running) => running.value_bytes,
        }
    }

    /// The result of its call.
    pub(super) fn finish(self, call: &AggregateCall, context: &StatementContext) -> Result<Value, SqlError> {
        match self {
            Accumulator::Count(count) => Ok(Value::Int8(count)),
            Accumulator::Total(total) if total.is_empty() => Ok(Value::Null),
            Accumulator::Total(total) => {
                let of = call.args.first().map_or(&SqlType::Unknown, |arg| &arg.ty);
                if call.function == Function::Avg { total.average(of) } else { total.sum(of) }
            }
            Accumulator::Other(running) => running.finish(context),
        }
    }
}

impl Running {
    fn add(&mut self, args: &[Value]) -> Result<(), SqlError> {
        let Some(value) = args.first() else {
            self.count += 1;
            return Ok(());
        };
        if value.is_null() && !self.function.keeps_nulls() {
            return Ok(());
        }
        if let (Function::Regression(_), Some(other)) = (self.function, args.get(1)) {
            if !other.is_null() {
                self.regression.get_or_insert_default().add(as_float(value), as_float(other))?;
            }
            return Ok(());
        }
        self.count += 1;
        match self.function {
            // Counts and totals are none of these.
            Function::Count | Function::Sum | Function::Avg | Function::Grouping | Function::Regression(_) => {}
            Function::Counts => self.bits = self.bits.saturating_add(value.as_i64().unwrap_or(0)),
            Function::Min | Function::BoolAnd => self.replace_if(value, |order| order.is_lt()),
            Function::Max | Function::BoolOr => self.replace_if(value, |order| order.is_gt()),
            Function::AnyValue => self.replace_if(value, |_| false),
            Function::BitAnd => self.bits(value, |a, b| a & b),
            Function::BitOr => self.bits(value, |a, b| a | b),
            Function::BitXor => self.bits(value, |a, b| a ^ b),
            Function::StringAgg => self.concatenate(value, args.get(1))?,
            Function::JsonAgg { .. } => {
                self.text += match self.count {
                    1 => "",
                    _ if self.lines && !value.is_null() => ", \n ",
                    _ => ", ",
                };
                let text = value.as_str().unwrap_or("null");
                value_fits(self.text.len() + text.len())?;
                self.text += text;
            }
            Function::JsonObjectAgg { .. } => self.member(value, args.get(1))?,
            Function::ArrayAgg => {
                self.value_bytes += ELEMENT_BYTES + value_bytes(value);
                value_fits(self.value_bytes)?;
                self.values.push(value.clone());
            }
            Function::Variance { .. } => self.spread.get_or_insert_default().add(value)?,
            Function::PercentileCont | Function::PercentileDisc | Function::Mode => {
                self.fraction = args.get(1).filter(|fraction| !fraction.is_null()).map(as_float);
                self.values.push(value.clone());
            }
        }
        Ok(())
    }

    fn replace_if(&mut self, value: &Value, better: impl Fn(std::cmp::Ordering) -> bool) {
        if self.count == 1 || better(value.compare(&self.best, &self.argument)) {
            let more = wide_bytes(value).saturating_sub(self.held_bytes);
            self.held_bytes += more;
            self.unpaid_bytes += more;
            self.best = value.clone();
        }
    }

    fn bits(&mut self, value: &Value, op: impl Fn(i64, i64) -> i64) {
        let value = value.as_i64().unwrap_or(0);
        self.bits = if self.count == 1 { value } else { op(self.bits, value) };
    }

    fn concatenate(&mut self, value: &Value, delimiter: Option<&Value>) -> Result<(), SqlError> {
        let delimiter = delimiter.and_then(Value::as_str).filter(|_| self.count > 1).unwrap_or("");
        let value = value.as_str().unwrap_or("");
        value_fits(self.text.len() + delimiter.len() + value.len())?;
        self.text += delimiter;
        self.text += value;
        Ok(())
    }

    fn member(&mut self, key: &Value, value: Option<&Value>) -> Result<(), SqlError> {
        let Some(key) = key.as_str() else {
            return Err(SqlError::new(SqlState(*b"22004"), "field name must not be null"));
        };
        if self.count > 1 {
            self.text += ", ";
        }
        crate::types::json::write_string(key, &mut self.text);
        self.text += if matches!(self.function, Function::JsonObjectAgg { binary: true }) { ": " } else { " : " };
        self.text += value.and_then(Value::as_str).unwrap_or("null");
        value_fits(self.text.len())
    }

    fn finish(mut self, context: &StatementContext) -> Result<Value, SqlError> {
        if self.function == Function::Counts {
            return Ok(Value::Int8(self.bits));
        }
        if let Function::Regression(measure) = self.function {
            return Ok(self.regression.unwrap_or_default().finish(measure));
        }
        if self.count == 0 {
            return Ok(Value::Null);
        }
        Ok(match self.function {
            Function::BitAnd | Function::BitOr | Function::BitXor => match self.result {
                SqlType::Int2 => Value::Int2(self.bits as i16),
                SqlType::Int4 => Value::Int4(self.bits as i32),
                _ => Value::Int8(self.bits),
            },
            Function::StringAgg => Value::Text(self.text.into()),
            Function::ArrayAgg => {
                let element = if let SqlType::Array(element) = self.result { *element } else { SqlType::Text };
                gathered(self.values, element, &self.argument)?
            }
            Function::JsonAgg { binary } => json(format!("[{}]", self.text), binary)?,
            Function::JsonObjectAgg { binary: true } => json(format!("{{{}}}", self.text), true)?,
            Function::JsonObjectAgg { binary: false } => json(format!("{{ {} }}", self.text), false)?,
            Function::Variance { sample, root } => match &self.spread {
                Some(spread) => spread.finish(&self.result, sample, root)?,
                None => Value::Null,
            },
            Function::PercentileCont | Function::PercentileDisc | Function::Mode => self.finish_ordered(context)?,
            _ => std::mem::take(&mut self.best),
        })
    }

    fn finish_ordered(&mut self, context: &StatementContext) -> Result<Value, SqlError> {
        let ty = self.argument.clone();
        let descending = self.descending;
        let order = |a: &Value, b: &Value| if descending { b.compare(a, &ty) } else { a.compare(b, &ty) };
        self.values = in_order(std::mem::take(&mut self.values), order, context)?;
        let last = self.values.len() - 1;
        if self.function == Function::Mode {
            return Ok(self.most_frequent(&ty));
        }
        let Some(fraction) = self.fraction else { return Ok(Value::Null) };
        if !(0.0..=1.0).contains(&fraction) {
            let message = format!("percentile value {fraction} is not between 0 and 1");
            return Err(SqlError::new(SqlState::OUT_OF_RANGE, message));
        }
        if self.function == Function::PercentileDisc {
            let place = (fraction * (last + 1) as f64).ceil() as usize;
            return Ok(self.values[place.saturating_sub(1).min(last)].clone());
        }
        let place = fraction * last as f64;
        let (low, high) =
            (as_float(&self.values[place.floor() as usize]), as_float(&self.values[place.ceil() as usize]));
        Ok(Value::Float8(low + (high - low) * (place - place.floor())))
    }

    fn most_frequent(&self, ty: &SqlType) -> Value {
        let mut best = (0, 0);
        let mut start = 0;
        for end in 1..=self.values.len() {
            if end == self.values.len() || !self.values[end].same(&self.values[start], ty) {
                if end - start > best.1 {
                    best = (start, end - start);
                }
                start = end;
            }
        }
        self.values[best.0].clone()
    }
}

/// An array of values; of arrays, one with a dimension more.
///
/// # Errors
/// 22004 for a NULL among arrays, 2202E if they are empty or differ in shape.
pub(super) fn gathered(values: Vec<Value>, element: SqlType, of: &SqlType) -> Result<Value, SqlError> {
    if !matches!(of, SqlType::Array(_)) || values.is_empty() {
        return Ok(Value::Array(Arc::new(Array::from_values(element, values))));
    }
    let wrong = |message: &str| SqlError::new(SqlState(*b"2202E"), message);
    let mut dimensions: Vec<(i32, i32)> = Vec::new();
    let mut all = Vec::new();
    for value in &values {
        let Value::Array(array) = value else {
            return Err(SqlError::new(SqlState(*b"22004"), "cannot accumulate null arrays"));
        };
        if array.dimensions.is_empty() {
            return Err(wrong("cannot accumulate empty arrays"));
        }
        if dimensions.is_empty() {
            dimensions.push((values.len() as i32, 1));
            dimensions.extend(&array.dimensions);
        } else if dimensions[1..] != array.dimensions {
            return Err(wrong("cannot accumulate arrays of different dimensionality"));
        }
        all.extend(array.values.iter().cloned());
    }
    fits_dimensions(dimensions.len())?;
    Ok(Value::Array(Arc::new(Array { element, dimensions, values: all })))
}

/// A text as json, normalised if it is jsonb.
pub(super) fn json(text: String, binary: bool) -> Result<Value, SqlError> {
    if !binary {
        return Ok(Value::Json(text.into()));
    }
    let mut out = String::new();
    crate::types::json::Json::parse(&text)?.normalize().write(&mut out);
    Ok(Value::Jsonb(out.into()))
}

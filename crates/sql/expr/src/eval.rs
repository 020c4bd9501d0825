//! Evaluation.
//!
//! Operands are borrowed where they stand (columns, literals, parameters), so that comparing copies nothing.

use super::function::{Arguments, cast_context};
use super::{CompareOp, Expr, arithmetic};
use crate::statement::Statement;
use crate::types::{Array, SqlType, Value, bounded, fits_dimensions, large_bytes};
use crate::work::{self, Held};
use crate::{SqlError, SqlState};
use std::borrow::Cow;
use std::sync::Arc;

type Within<'a> = Option<&'a Statement>;

/// Units of work of an item of a list.
const ITEM_UNITS: usize = 8;

impl Expr {
    /// Its value for a row.
    ///
    /// # Errors
    /// What evaluation finds wrong: 22012, 22003, ...
    #[inline]
    pub fn eval(&self, row: &[Value], context: &Statement) -> Result<Value, SqlError> {
        self.eval_in(row, Some(context))
    }

    /// The value of an immutable expression, which needs no statement.
    ///
    /// # Errors
    /// As [`Expr::eval`]; XX000 if it is not immutable.
    #[inline]
    pub fn eval_alone(&self, row: &[Value]) -> Result<Value, SqlError> {
        self.eval_in(row, None)
    }

    /// Whether it is true for a row: NULL is not.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    #[inline]
    pub fn eval_bool(&self, row: &[Value], context: &Statement) -> Result<bool, SqlError> {
        Ok(matches!(self.eval_in(row, Some(context))?, Value::Bool(true)))
    }

    /// Its value, borrowed where that is possible.
    #[inline]
    pub fn eval_ref<'a>(&'a self, row: &'a [Value], context: &'a Statement) -> Result<Cow<'a, Value>, SqlError> {
        self.operand(row, Some(context))
    }

    #[inline]
    fn operand<'a>(&'a self, row: &'a [Value], statement: Within<'a>) -> Result<Cow<'a, Value>, SqlError> {
        match self {
            Expr::Column { index, .. } => row.get(*index).map(Cow::Borrowed).ok_or_else(|| missing_column(*index)),
            Expr::Literal(value, _) => Ok(Cow::Borrowed(value)),
            Expr::Parameter { index, .. } => parameter(*index, statement).map(Cow::Borrowed),
            other => other.eval_in(row, statement).map(Cow::Owned),
        }
    }

    #[inline]
    pub(super) fn eval_in(&self, row: &[Value], statement: Within<'_>) -> Result<Value, SqlError> {
        match self {
            Expr::Column { index, .. } => row.get(*index).cloned().ok_or_else(|| missing_column(*index)),
            Expr::Literal(value, _) => Ok(value.clone()),
            Expr::Parameter { index, .. } => parameter(*index, statement).cloned(),
            Expr::Compare { op, ty, left, right } => {
                let (left, right) = (left.operand(row, statement)?, right.operand(row, statement)?);
                if left.is_null() || right.is_null() {
                    return Ok(Value::Null);
                }
                if let (Value::Record(left), Value::Record(right)) = (left.as_ref(), right.as_ref()) {
                    left.comparable(right)?;
                }
                Ok(Value::Bool(op.holds(left.compare(&right, ty))))
            }
            Expr::Arithmetic { op, left, right, .. } => {
                arithmetic::apply(*op, left.operand(row, statement)?.as_ref(), right.operand(row, statement)?.as_ref())
            }
            Expr::And(parts) => all_of(parts, false, row, statement),
            Expr::Or(parts) => all_of(parts, true, row, statement),
            Expr::Call { function, args, types, ty } => {
                let arguments = Arguments { types, result: ty, statement };
                match args.as_slice() {
                    [] => function.call(&[], &arguments),
                    [a] => function.call(&[a.eval_in(row, statement)?], &arguments),
                    [a, b] => {
                        let mut held = Held::default();
                        let a = held_value(a, row, statement, &mut held)?;
                        function.call(&[a, b.eval_in(row, statement)?], &arguments)
                    }
                    many => {
                        let mut held = Held::default();
                        function.call(&held_values(many, row, statement, &mut held)?, &arguments)
                    }
                }
            }
            Expr::Cast { expr, from, to, explicit } => {
                let value = expr.operand(row, statement)?;
                work::step(large_bytes(&value))?;
                bounded(value.cast(from, to, *explicit, &cast_context(statement))?)
            }
            other => other.eval_rest(row, statement),
        }
    }

    fn eval_rest(&self, row: &[Value], statement: Within<'_>) -> Result<Value, SqlError> {
        match self {
            Expr::Not(expr) => Ok(match expr.operand(row, statement)?.as_ref() {
                Value::Bool(value) => Value::Bool(!value),
                _ => Value::Null,
            }),
            Expr::IsNull { expr, negated } => {
                let value = expr.operand(row, statement)?;
                Ok(Value::Bool(match value.as_ref() {
                    // A row is null if all its fields are, and not null if none is.
                    Value::Record(fields) if *negated => fields.iter().all(|field| !field.is_null()),
                    Value::Record(fields) => fields.iter().all(Value::is_null),
                    value => value.is_null() != *negated,
                }))
            }
            Expr::IsBool { expr, value, negated } => {
                let is = matches!(expr.operand(row, statement)?.as_ref(), Value::Bool(found) if found == value);
                Ok(Value::Bool(is != *negated))
            }
            Expr::IsDistinct { ty, left, right, negated } => {
                let same = left.operand(row, statement)?.same(right.operand(row, statement)?.as_ref(), ty);
                Ok(Value::Bool(same == *negated))
            }
            Expr::InList { ty, expr, list, negated } => {
                let value = expr.operand(row, statement)?;
                let found = in_list(&value, list.iter().map(|item| item.operand(row, statement)), ty)?;
                Ok(found.map_or(Value::Null, |found| Value::Bool(found != *negated)))
            }
            Expr::AnyAll { op, ty, left, array, all } => {
                let (left, array) = (left.operand(row, statement)?, array.operand(row, statement)?);
                if let (Value::Array(long), Some(statement), false) = (array.as_ref(), statement, left.is_null())
                    && matches!((op, all), (CompareOp::Eq, false) | (CompareOp::NotEq, true))
                    && let Some(found) = statement.lists.holds(long, &left, ty)?
                {
                    return Ok(found.map_or(Value::Null, |found| Value::Bool(found != *all)));
                }
                if let Value::Array(array) = array.as_ref() {
                    work::step(ITEM_UNITS * array.values.len())?;
                }
                Ok(any_all(&left, &array, ty, *all, |order| op.holds(order)))
            }
            Expr::Case { operand, branches, otherwise, .. } => {
                let operand = match operand {
                    Some((operand, ty)) => Some((operand.eval_in(row, statement)?, ty)),
                    None => None,
                };
                for (when, then) in branches {
                    let when = when.operand(row, statement)?;
                    let taken = match &operand {
                        Some((value, ty)) => !value.is_null() && !when.is_null() && value.compare(&when, ty).is_eq(),
                        None => matches!(when.as_ref(), Value::Bool(true)),
                    };
                    if taken {
                        return then.eval_in(row, statement);
                    }
                }
                otherwise.as_ref().map_or(Ok(Value::Null), |expr| expr.eval_in(row, statement))
            }
            Expr::Coalesce(list, _) => {
                for item in list {
                    let value = item.eval_in(row, statement)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Value::Null)
            }
            Expr::NullIf { left, right, ty } => {
                let value = left.eval_in(row, statement)?;
                let other = right.operand(row, statement)?;
                let equal = !value.is_null() && !other.is_null() && value.compare(&other, ty).is_eq();
                Ok(if equal { Value::Null } else { value })
            }
            Expr::Extreme { list, ty, greatest } => {
                let mut best = Value::Null;
                for item in list {
                    let value = item.eval_in(row, statement)?;
                    let better = best.is_null()
                        || (!value.is_null()
                            && if *greatest {
                                value.compare(&best, ty).is_gt()
                            } else {
                                value.compare(&best, ty).is_lt()
                            });
                    if better {
                        best = value;
                    }
                }
                Ok(best)
            }
            Expr::Array { items, element } => {
                let mut held = Held::default();
                bounded(build_array(held_values(items, row, statement, &mut held)?, element)?)
            }
            Expr::Subscript { array, indexes, .. } => {
                let array = array.operand(row, statement)?;
                let indexes: Result<Vec<Value>, SqlError> =
                    indexes.iter().map(|index| index.eval_in(row, statement)).collect();
                Ok(subscript(&array, &indexes?))
            }
            Expr::Row(fields) => {
                let mut held = Held::default();
                bounded(Value::record(held_values(fields, row, statement, &mut held)?, None)?)
            }
            // The rest is in `eval_in`.
            _ => Err(SqlError::new(SqlState::INTERNAL_ERROR, "an expression was evaluated in the wrong place")),
        }
    }
}

/// Bytes that a name has room for.
const NAME_BYTES: usize = 64;

/// A value that is held while others are computed: what is large is the statement's memory.
#[inline]
fn held_value(expr: &Expr, row: &[Value], statement: Within<'_>, held: &mut Held) -> Result<Value, SqlError> {
    let value = expr.eval_in(row, statement)?;
    let bytes = large_bytes(&value);
    if bytes > 0 {
        held.take(bytes)?;
    }
    Ok(value)
}

fn held_values(exprs: &[Expr], row: &[Value], statement: Within<'_>, held: &mut Held) -> Result<Vec<Value>, SqlError> {
    exprs.iter().map(|expr| held_value(expr, row, statement, held)).collect()
}

#[cold]
fn missing_column(index: usize) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("a row has no column at place {index}"))
}

#[inline]
fn parameter(index: usize, statement: Within<'_>) -> Result<&Value, SqlError> {
    statement
        .and_then(|statement| statement.params.get(index))
        .ok_or_else(|| SqlError::new(SqlState::UNDEFINED_PARAMETER, format!("no value for parameter ${}", index + 1)))
}

/// AND (`until` false) and OR (`until` true): ends at the first part that decides.
#[inline]
fn all_of(parts: &[Expr], until: bool, row: &[Value], statement: Within<'_>) -> Result<Value, SqlError> {
    let mut unknown = false;
    for part in parts {
        work::step(ITEM_UNITS)?;
        match part.operand(row, statement)?.as_ref() {
            Value::Bool(value) if *value == until => return Ok(Value::Bool(until)),
            Value::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Value::Null } else { Value::Bool(!until) })
}

/// Whether a value is in a list; `None` for unknown.
fn in_list<'a>(
    value: &Value,
    list: impl Iterator<Item = Result<Cow<'a, Value>, SqlError>>,
    ty: &SqlType,
) -> Result<Option<bool>, SqlError> {
    if value.is_null() {
        return Ok(None);
    }
    let mut unknown = false;
    for item in list {
        work::step(ITEM_UNITS)?;
        let item = item?;
        if item.is_null() {
            unknown = true;
        } else if value.compare(&item, ty).is_eq() {
            return Ok(Some(true));
        }
    }
    Ok(if unknown { None } else { Some(false) })
}

fn any_all(left: &Value, array: &Value, ty: &SqlType, all: bool, holds: impl Fn(std::cmp::Ordering) -> bool) -> Value {
    let Value::Array(array) = array else { return Value::Null };
    if array.values.is_empty() {
        return Value::Bool(all);
    }
    if left.is_null() {
        return Value::Null;
    }
    let mut unknown = false;
    for item in &array.values {
        if item.is_null() {
            unknown = true;
        } else if holds(left.compare(item, ty)) != all {
            return Value::Bool(!all);
        }
    }
    if unknown { Value::Null } else { Value::Bool(all) }
}

/// Makes an array of scalars, or of arrays of equal shape.
pub(super) fn build_array(items: Vec<Value>, element: &SqlType) -> Result<Value, SqlError> {
    if !items.iter().any(|item| matches!(item, Value::Array(_))) {
        return Ok(Value::Array(Arc::new(Array::from_values(element.clone(), items))));
    }
    let mismatch = || {
        SqlError::new(
            SqlState(*b"2202E"),
            "multidimensional arrays must have array expressions with matching dimensions",
        )
    };
    let count = items.len() as i32;
    let mut inner: Option<Vec<(i32, i32)>> = None;
    let mut values = Vec::new();
    for item in items {
        let Value::Array(item) = item else { return Err(mismatch()) };
        match &inner {
            None => inner = Some(item.dimensions.clone()),
            Some(known) if *known == item.dimensions => {}
            Some(_) => return Err(mismatch()),
        }
        values.extend(item.values.iter().cloned());
    }
    if values.is_empty() {
        return Ok(Value::Array(Arc::new(Array::from_values(element.clone(), values))));
    }
    let mut dimensions = vec![(count, 1)];
    dimensions.extend(inner.unwrap_or_default());
    fits_dimensions(dimensions.len())?;
    Ok(Value::Array(Arc::new(Array { element: element.clone(), dimensions, values })))
}

/// A name is an array of the bytes that it has room for, from 0.
fn name_byte(name: &str, indexes: &[Value]) -> Value {
    let place = match indexes {
        [index] => index.as_i64().and_then(|index| usize::try_from(index).ok()),
        _ => None,
    };
    match place.map(|place| name.as_bytes().get(place).ok_or(place)) {
        Some(Ok(byte)) if byte.is_ascii() => Value::text(char::from(*byte).to_string()),
        Some(Ok(byte)) => Value::text(format!("\\{byte:03o}")),
        Some(Err(place)) if place < NAME_BYTES => Value::text(String::new()),
        _ => Value::Null,
    }
}

/// An element of an array: NULL outside its bounds, or if the number of indexes is not that of dimensions.
fn subscript(array: &Value, indexes: &[Value]) -> Value {
    let array = match array {
        Value::Array(array) => array,
        Value::Text(name) => return name_byte(name, indexes),
        _ => return Value::Null,
    };
    if indexes.len() != array.dimensions.len() {
        return Value::Null;
    }
    let mut place = 0usize;
    for (index, (length, lower)) in indexes.iter().zip(&array.dimensions) {
        let Some(index) = index.as_i64() else { return Value::Null };
        let offset = index - i64::from(*lower);
        if offset < 0 || offset >= i64::from(*length) {
            return Value::Null;
        }
        place = place * (*length as usize) + offset as usize;
    }
    array.values.get(place).cloned().unwrap_or(Value::Null)
}

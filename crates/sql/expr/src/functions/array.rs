//! Arrays.

use super::super::function::{Arguments, Function, Sig};
use super::{int_at, str_at, wrong_type};
use crate::types::{Array, ELEMENT_BYTES, SqlType as T, Text, Value, fits_dimensions, value_bytes, value_fits};
use crate::work::{Held, step};
use crate::{SqlError, SqlState};
use std::sync::Arc;

type R = Result<Value, SqlError>;

const I4: Sig = Sig::Is(T::Int4);
const TEXT: Sig = Sig::Is(T::Text);
const BOOL: Sig = Sig::Is(T::Bool);
const ARRAY: Sig = Sig::ArrayOfElement;
const ELEMENT: Sig = Sig::Element;

pub(super) static TABLE: &[Function] = &[
    Function::pure(
        "array_length",
        &[ARRAY, I4],
        I4,
        |v, _| Ok(dimension(v)?.map_or(Value::Null, |d| Value::Int4(d.0))),
    ),
    Function::pure("array_lower", &[ARRAY, I4], I4, |v, _| Ok(dimension(v)?.map_or(Value::Null, |d| Value::Int4(d.1)))),
    Function::pure("array_upper", &[ARRAY, I4], I4, |v, _| {
        Ok(dimension(v)?.map_or(Value::Null, |d| Value::Int4(d.0 + d.1 - 1)))
    }),
    Function::pure("array_ndims", &[ARRAY], I4, |v, _| match array_at(v, 0)?.dimensions.len() {
        0 => Ok(Value::Null),
        n => Ok(Value::Int4(n as i32)),
    }),
    Function::pure("array_dims", &[ARRAY], TEXT, |v, _| {
        let bounds =
            array_at(v, 0)?.dimensions.iter().map(|(length, lower)| format!("[{lower}:{}]", lower + length - 1));
        let text: String = bounds.collect();
        Ok(if text.is_empty() { Value::Null } else { Value::text(text) })
    }),
    Function::pure("cardinality", &[ARRAY], I4, |v, _| Ok(Value::Int4(array_at(v, 0)?.values.len() as i32))),
    Function::stable("array_to_string", &[ARRAY, TEXT], TEXT, array_to_string),
    Function::stable("array_to_string", &[ARRAY, TEXT, TEXT], TEXT, array_to_string).lax(),
    Function::pure("array_append", &[ARRAY, ELEMENT], ARRAY, |v, a| append(&v[0], &v[1], a)).lax(),
    Function::pure("array_prepend", &[ELEMENT, ARRAY], ARRAY, |v, a| prepend(&v[0], &v[1], a)).lax(),
    Function::pure("array_cat", &[ARRAY, ARRAY], ARRAY, |v, _| cat(&v[0], &v[1])).lax(),
    Function::pure("||", &[ARRAY, ELEMENT], ARRAY, |v, a| append(&v[0], &v[1], a)).lax(),
    Function::pure("||", &[ELEMENT, ARRAY], ARRAY, |v, a| prepend(&v[0], &v[1], a)).lax(),
    Function::pure("||", &[ARRAY, ARRAY], ARRAY, |v, _| cat(&v[0], &v[1])).lax(),
    Function::pure("array_position", &[ARRAY, ELEMENT], I4, |v, _| {
        Ok(positions(v)?.first().cloned().unwrap_or(Value::Null))
    })
    .lax(),
    Function::pure("array_positions", &[ARRAY, ELEMENT], Sig::ArrayOf(T::Int4), |v, _| {
        Ok(Value::Array(Array::from_values(T::Int4, positions(v)?).into()))
    })
    .lax(),
    Function::pure("array_remove", &[ARRAY, ELEMENT], ARRAY, |v, _| {
        let array = match &v[0] {
            Value::Null => return Ok(Value::Null),
            _ => array_at(v, 0)?,
        };
        let kept = array.values.iter().filter(|item| !item.same(&v[1], &array.element)).cloned().collect();
        Ok(Value::Array(Array::from_values(array.element.clone(), kept).into()))
    })
    .lax(),
    Function::pure("array_replace", &[ARRAY, ELEMENT, ELEMENT], ARRAY, |v, _| {
        let array = match &v[0] {
            Value::Null => return Ok(Value::Null),
            _ => array_at(v, 0)?,
        };
        let swap = |item: &Value| if item.same(&v[1], &array.element) { v[2].clone() } else { item.clone() };
        Ok(Value::Array(Arc::new(Array { values: array.values.iter().map(swap).collect(), ..array.as_ref().clone() })))
    })
    .lax(),
    Function::pure("array_fill", &[ELEMENT, Sig::ArrayOf(T::Int4)], ARRAY, array_fill).lax(),
    Function::pure("array_fill", &[ELEMENT, Sig::ArrayOf(T::Int4), Sig::ArrayOf(T::Int4)], ARRAY, array_fill).lax(),
    Function::pure("@>", &[ARRAY, ARRAY], BOOL, |v, _| contains(array_at(v, 0)?, array_at(v, 1)?)),
    Function::pure("<@", &[ARRAY, ARRAY], BOOL, |v, _| contains(array_at(v, 1)?, array_at(v, 0)?)),
    Function::pure("&&", &[ARRAY, ARRAY], BOOL, |v, _| {
        let (a, b) = (array_at(v, 0)?, array_at(v, 1)?);
        for item in &b.values {
            if has(a, item)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
    Function::pure("trim_array", &[ARRAY, I4], ARRAY, |v, _| {
        let (array, n) = (array_at(v, 0)?, int_at(v, 1)?);
        if n < 0 || n as usize > array.values.len() {
            return Err(SqlError::new(
                SqlState(*b"2202E"),
                format!("number of elements to trim must be between 0 and {}", array.values.len()),
            ));
        }
        let kept = array.values[..array.values.len() - n as usize].to_vec();
        Ok(Value::Array(Array::from_values(array.element.clone(), kept).into()))
    }),
];

fn array_at(values: &[Value], i: usize) -> Result<&Arc<Array>, SqlError> {
    match values.get(i) {
        Some(Value::Array(array)) => Ok(array),
        _ => Err(wrong_type()),
    }
}

fn dimension(values: &[Value]) -> Result<Option<(i32, i32)>, SqlError> {
    let place = int_at(values, 1)?;
    Ok(usize::try_from(place - 1).ok().and_then(|i| array_at(values, 0).ok()?.dimensions.get(i).copied()))
}

fn has(array: &Array, item: &Value) -> Result<bool, SqlError> {
    step(4 * array.values.len())?;
    Ok(!item.is_null() && array.values.iter().any(|have| !have.is_null() && have.same(item, &array.element)))
}

fn contains(array: &Array, wanted: &Array) -> R {
    for item in &wanted.values {
        if !has(array, item)? {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn array_to_string(values: &[Value], arguments: &Arguments<'_>) -> R {
    if values[0].is_null() || values[1].is_null() {
        return Ok(Value::Null);
    }
    let (array, delimiter) = (array_at(values, 0)?, str_at(values, 1)?);
    let null = values.get(2).and_then(Value::as_str);
    let mut out = Text::new();
    let mut any = false;
    for item in &array.values {
        if item.is_null() && null.is_none() {
            continue;
        }
        if any {
            out.push_str(delimiter)?;
        }
        any = true;
        match (item, null) {
            (Value::Null, null) => out.push_str(null.unwrap_or_default())?,
            (Value::Bool(v), _) => out.push(if *v { 't' } else { 'f' })?,
            (Value::Text(text), _) => out.push_str(text)?,
            (item, _) => out.push_str(&item.to_output(&array.element, &arguments.cast_context())?)?,
        }
    }
    Ok(out.into_value())
}

pub(super) fn element_of(arguments: &Arguments<'_>) -> T {
    match arguments.result {
        T::Array(element) => (**element).clone(),
        _ => T::Text,
    }
}

fn one_dimension(array: &Array) -> Result<(), SqlError> {
    if array.dimensions.len() > 1 {
        return Err(SqlError::new(SqlState(*b"22000"), "argument must be empty or one-dimensional array"));
    }
    Ok(())
}

fn append(array: &Value, item: &Value, arguments: &Arguments<'_>) -> R {
    let Value::Array(array) = array else {
        return Ok(Value::Array(Array::from_values(element_of(arguments), vec![item.clone()]).into()));
    };
    one_dimension(array)?;
    value_fits(value_bytes(item).saturating_add(array_bytes(array)))?;
    let lower = array.dimensions.first().map_or(1, |d| d.1);
    let mut values = array.values.clone();
    values.push(item.clone());
    shaped(array.element.clone(), vec![(values.len() as i32, lower)], values)
}

/// An array, if its last subscripts are numbers that can be given.
pub(super) fn shaped(element: T, dimensions: Vec<(i32, i32)>, values: Vec<Value>) -> R {
    crate::types::check_bounds(&dimensions)?;
    Ok(Value::Array(Arc::new(Array { element, dimensions, values })))
}

fn prepend(item: &Value, array: &Value, arguments: &Arguments<'_>) -> R {
    let Value::Array(array) = array else {
        return Ok(Value::Array(Array::from_values(element_of(arguments), vec![item.clone()]).into()));
    };
    one_dimension(array)?;
    value_fits(value_bytes(item).saturating_add(array_bytes(array)))?;
    let lower = array.dimensions.first().map_or(1, |d| d.1);
    let mut values = vec![item.clone()];
    values.extend(array.values.iter().cloned());
    if lower == i32::MIN {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, "integer out of range"));
    }
    shaped(array.element.clone(), vec![(values.len() as i32, lower)], values)
}

fn cat(left: &Value, right: &Value) -> R {
    let (a, b) = match (left, right) {
        (Value::Array(a), Value::Array(b)) => (a, b),
        (Value::Null, other) | (other, Value::Null) => return Ok(other.clone()),
        _ => return Err(wrong_type()),
    };
    value_fits(array_bytes(a).saturating_add(array_bytes(b)))?;
    if a.values.is_empty() {
        return Ok(right.clone());
    }
    if b.values.is_empty() {
        return Ok(left.clone());
    }
    let mismatch = || SqlError::new(SqlState(*b"2202E"), "cannot concatenate incompatible arrays");
    let (da, db) = (&a.dimensions, &b.dimensions);
    let dimensions = if da.len() == db.len() && da[1..] == db[1..] {
        let mut joined = da.clone();
        joined[0].0 += db[0].0;
        joined
    } else if da.len() == db.len() + 1 && da[1..].iter().map(|d| d.0).eq(db.iter().map(|d| d.0)) {
        let mut joined = da.clone();
        joined[0].0 += 1;
        joined
    } else if db.len() == da.len() + 1 && db[1..].iter().map(|d| d.0).eq(da.iter().map(|d| d.0)) {
        let mut joined = db.clone();
        joined[0].0 += 1;
        joined
    } else {
        return Err(mismatch());
    };
    let values = a.values.iter().chain(&b.values).cloned().collect();
    shaped(a.element.clone(), dimensions, values)
}

/// What its elements say, bytes.
pub(super) fn array_bytes(array: &Array) -> usize {
    array.values.iter().map(|item| ELEMENT_BYTES + value_bytes(item)).sum()
}

fn positions(values: &[Value]) -> Result<Vec<Value>, SqlError> {
    if values[0].is_null() {
        return Ok(vec![]);
    }
    let array = array_at(values, 0)?;
    let lower = array.dimensions.first().map_or(1, |d| d.1);
    let places = array.values.iter().enumerate().filter(|(_, item)| item.same(&values[1], &array.element));
    Ok(places.map(|(i, _)| Value::Int4(i as i32 + lower)).collect())
}

fn array_fill(values: &[Value], arguments: &Arguments<'_>) -> R {
    if values[1..].iter().any(Value::is_null) {
        let message = "dimension array or low bound array cannot be null";
        return Err(SqlError::new(SqlState(*b"22004"), message));
    }
    let wrong = |detail: &str| SqlError::new(SqlState(*b"2202E"), "wrong number of array subscripts").detail(detail);
    let null = || SqlError::new(SqlState(*b"22004"), "dimension values cannot be null");
    let lengths = array_at(values, 1)?;
    if lengths.dimensions.len() > 1 {
        return Err(wrong("Dimension array must be one dimensional."));
    }
    fits_dimensions(lengths.values.len())?;
    let mut lower = vec![1; lengths.values.len()];
    if values.len() > 2 {
        let bounds = array_at(values, 2)?;
        if bounds.dimensions.len() > 1 {
            return Err(wrong("Dimension array must be one dimensional."));
        }
        if bounds.values.len() != lower.len() {
            return Err(wrong("Low bound array has different size than dimensions array."));
        }
        for (lower, given) in lower.iter_mut().zip(&bounds.values) {
            *lower = given.as_i64().ok_or_else(null)? as i32;
        }
    }
    let mut total = 1usize;
    let mut dimensions = Vec::new();
    for (length, lower) in lengths.values.iter().zip(lower) {
        let length = length.as_i64().ok_or_else(null)?;
        let Ok(length) = u32::try_from(length) else {
            let message = "array size exceeds the maximum allowed (134217727)";
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        };
        if lower.checked_add_unsigned(length).is_none() {
            let message = format!("array lower bound is too large: {lower}");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        total = total.saturating_mul(length as usize);
        dimensions.push((length as i32, lower));
    }
    let item = &values[0];
    value_fits(total.saturating_mul(ELEMENT_BYTES + value_bytes(item)))?;
    let mut held = Held::default();
    held.take(total.saturating_mul(size_of::<Value>()))?;
    let element = element_of(arguments);
    if total == 0 || dimensions.is_empty() {
        return Ok(Value::Array(Array::from_values(element, vec![]).into()));
    }
    Ok(Value::Array(Arc::new(Array { element, dimensions, values: vec![item.clone(); total] })))
}

//! Parts of arrays: slices, and arrays with another element or slice (PostgreSQL 15, `arrayfuncs.c`: `array_get_slice`,
//! `array_set_element`, `array_set_slice`).
//!
//! No text of a statement holds the names of these functions: subscripts are bound to them. The bounds of a slice come in pairs, behind a
//! number whose bits tell which of them are given: the lowest for the first lower bound, the next for the first upper bound, and so on.

use super::super::function::{Arguments, Function, Sig};
use super::array::{array_bytes, element_of, shaped};
use super::{int_at, wrong_type};
use crate::types::{Array, ELEMENT_BYTES, SqlType as T, Value, fits_dimensions, value_bytes, value_fits};
use crate::work::Held;
use crate::{SqlError, SqlState};
use std::ops::Range;

type R = Result<Value, SqlError>;

const ARRAY: Sig = Sig::ArrayOfElement;
const I4: Sig = Sig::Is(T::Int4);

/// Most elements of an array.
const MAX_ELEMENTS: usize = 134_217_727;

/// `array[low:high]..`
pub const SLICE: &str = "\0slice";
/// An array with another element: the array, the element, its subscripts.
pub const WITH_ELEMENT: &str = "\0with element";
/// An array with another slice: the array, the elements, which bounds are given, the bounds.
pub const WITH_SLICE: &str = "\0with slice";

pub(super) static TABLE: &[Function] = &[
    Function::pure(SLICE, &[ARRAY, I4], ARRAY, slice).lax().many(),
    Function::pure(WITH_ELEMENT, &[ARRAY, Sig::Element, I4], ARRAY, with_element).lax().many(),
    Function::pure(WITH_SLICE, &[ARRAY, ARRAY, I4], ARRAY, with_slice).lax().many(),
];

/// 2202E
fn subscript(message: &str) -> SqlError {
    SqlError::new(SqlState(*b"2202E"), message)
}

fn too_large() -> SqlError {
    let message = format!("array size exceeds the maximum allowed ({MAX_ELEMENTS})");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

fn not_null() -> SqlError {
    SqlError::new(SqlState(*b"22004"), "array subscript in assignment must not be null")
}

/// Lower and upper bound of one dimension, where they are given.
type Bounds = (Option<i64>, Option<i64>);

/// The bounds behind the number that tells which are given; `None` if one is NULL.
fn bounds(values: &[Value], given: usize) -> Result<Option<Vec<Bounds>>, SqlError> {
    let mask = int_at(values, given)?;
    let mut out = Vec::new();
    for (number, pair) in values.get(given + 1..).unwrap_or_default().chunks(2).enumerate() {
        let one = |edge: usize| match pair.get(edge) {
            Some(value) if number < 15 && mask >> (2 * number + edge) & 1 == 1 => match value.as_i64() {
                Some(place) => Ok(Some(place)),
                None => Err(()),
            },
            _ => Ok(None),
        };
        let (Ok(low), Ok(high)) = (one(0), one(1)) else { return Ok(None) };
        out.push((low, high));
    }
    Ok(Some(out))
}

/// Places of the elements in these ranges of each dimension, in their order.
fn each_place(lengths: &[usize], ranges: &[Range<usize>], mut take: impl FnMut(usize)) {
    let count: usize = ranges.iter().map(Range::len).product();
    for number in 0..count {
        let (mut rest, mut place, mut step) = (number, 0, 1);
        for (length, range) in lengths.iter().zip(ranges).rev() {
            place += (range.start + rest % range.len()) * step;
            rest /= range.len();
            step *= length;
        }
        take(place);
    }
}

fn lengths(array: &Array) -> Vec<usize> {
    array.dimensions.iter().map(|(length, _)| *length as usize).collect()
}

fn slice(values: &[Value], _: &Arguments<'_>) -> R {
    let Some(Value::Array(array)) = values.first() else { return Ok(Value::Null) };
    let empty = || Ok(Value::Array(Array::from_values(array.element.clone(), vec![]).into()));
    let Some(asked) = bounds(values, 1)? else { return Ok(Value::Null) };
    if asked.len() > array.dimensions.len() {
        return empty();
    }
    let mut ranges = Vec::with_capacity(array.dimensions.len());
    for (number, (length, lower)) in array.dimensions.iter().enumerate() {
        let (first, last) = (i64::from(*lower), i64::from(*lower) + i64::from(*length) - 1);
        let (low, high) = asked.get(number).copied().unwrap_or((None, None));
        let (low, high) = (low.unwrap_or(first).max(first), high.unwrap_or(last).min(last));
        if low > high {
            return empty();
        }
        ranges.push((low - first) as usize..(high - first) as usize + 1);
    }
    let mut held = Held::default();
    let count: usize = ranges.iter().map(Range::len).product();
    held.take(count.saturating_mul(size_of::<Value>()))?;
    let mut items = Vec::with_capacity(count);
    each_place(&lengths(array), &ranges, |place| items.push(array.values[place].clone()));
    let dimensions = ranges.iter().map(|range| (range.len() as i32, 1)).collect();
    shaped(array.element.clone(), dimensions, items)
}

/// An array of one dimension with room from one place to another, and where its old first element is then.
fn widened(
    array: &Array,
    low: i64,
    high: i64,
    more_bytes: usize,
    held: &mut Held,
) -> Result<(Vec<Value>, i64), SqlError> {
    let (length, lower) = array.dimensions.first().copied().unwrap_or_default();
    let (first, behind) = (i64::from(lower), i64::from(lower) + i64::from(length));
    let (from, to) = (low.min(first), (high + 1).max(behind));
    if to - from > MAX_ELEMENTS as i64 {
        return Err(too_large());
    }
    let count = (to - from) as usize;
    value_fits(array_bytes(array).saturating_add((count - array.values.len()) * ELEMENT_BYTES + more_bytes))?;
    held.take(count.saturating_mul(size_of::<Value>()))?;
    let mut items = Vec::with_capacity(count);
    items.resize((first - from) as usize, Value::Null);
    items.extend(array.values.iter().cloned());
    items.resize(count, Value::Null);
    Ok((items, from))
}

fn with_element(values: &[Value], arguments: &Arguments<'_>) -> R {
    let places = values.get(2..).unwrap_or_default().iter().map(|place| place.as_i64().ok_or_else(not_null));
    let places = places.collect::<Result<Vec<i64>, SqlError>>()?;
    let item = values.get(1).ok_or_else(wrong_type)?;
    if places.is_empty() {
        return Err(subscript("wrong number of array subscripts"));
    }
    let array = match values.first() {
        Some(Value::Array(array)) if !array.dimensions.is_empty() => array,
        _ => {
            fits_dimensions(places.len())?;
            let dimensions = places.iter().map(|place| (1, *place as i32)).collect();
            return shaped(element_of(arguments), dimensions, vec![item.clone()]);
        }
    };
    if places.len() != array.dimensions.len() {
        return Err(subscript("wrong number of array subscripts"));
    }
    let mut held = Held::default();
    if let [place] = places.as_slice() {
        let (mut items, from) = widened(array, *place, *place, value_bytes(item), &mut held)?;
        items[(*place - from) as usize] = item.clone();
        return shaped(array.element.clone(), vec![(items.len() as i32, from as i32)], items);
    }
    let mut at = 0usize;
    for (place, (length, lower)) in places.iter().zip(&array.dimensions) {
        let offset = place - i64::from(*lower);
        if offset < 0 || offset >= i64::from(*length) {
            return Err(subscript("array subscript out of range"));
        }
        at = at * *length as usize + offset as usize;
    }
    held.take(array.values.len().saturating_mul(size_of::<Value>()))?;
    value_fits(array_bytes(array).saturating_add(value_bytes(item)))?;
    let mut items = array.values.clone();
    items[at] = item.clone();
    shaped(array.element.clone(), array.dimensions.clone(), items)
}

fn with_slice(values: &[Value], arguments: &Arguments<'_>) -> R {
    let asked = bounds(values, 2)?.ok_or_else(not_null)?;
    let empty = Array::from_values(element_of(arguments), vec![]);
    let array = match values.first() {
        Some(Value::Array(array)) => array.as_ref(),
        _ => &empty,
    };
    let Some(Value::Array(source)) = values.get(1) else { return Ok(Value::Array(array.clone().into())) };
    let too_small = || subscript("source array too small");
    let backwards = || subscript("upper bound cannot be less than lower bound");
    let mut held = Held::default();
    held.take((array.values.len() + source.values.len()).saturating_mul(size_of::<Value>()))?;
    if array.dimensions.is_empty() {
        fits_dimensions(asked.len())?;
        let (mut dimensions, mut count, mut backward) = (Vec::with_capacity(asked.len()), 1i64, false);
        for bounds in &asked {
            let (Some(low), Some(high)) = *bounds else {
                return Err(subscript("array slice subscript must provide both boundaries").detail(
                    "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
                ));
            };
            let length = high - low + 1;
            backward |= length < 0;
            count = count.saturating_mul(length);
            dimensions.push((length as i32, low as i32));
        }
        if backward || count > MAX_ELEMENTS as i64 {
            return Err(too_large());
        }
        let items = source.values.get(..count as usize).ok_or_else(too_small)?.to_vec();
        if items.is_empty() {
            return Ok(Value::Array(Array::from_values(array.element.clone(), vec![]).into()));
        }
        return shaped(array.element.clone(), dimensions, items);
    }
    if asked.len() > array.dimensions.len() {
        return Err(subscript("wrong number of array subscripts"));
    }
    let (mut items, mut dimensions) = (array.values.clone(), array.dimensions.clone());
    let mut ranges = Vec::with_capacity(dimensions.len());
    for (number, (length, lower)) in array.dimensions.iter().enumerate() {
        let (first, last) = (i64::from(*lower), i64::from(*lower) + i64::from(*length) - 1);
        let (low, high) = asked.get(number).copied().unwrap_or((None, None));
        let (low, high) = (low.unwrap_or(first), high.unwrap_or(last));
        if low > high {
            return Err(backwards());
        }
        let mut first = first;
        if array.dimensions.len() == 1 {
            if high - low >= source.values.len() as i64 {
                return Err(too_small());
            }
            let wide;
            (wide, first) = widened(array, low, high, array_bytes(source), &mut held)?;
            dimensions[0] = (wide.len() as i32, first as i32);
            items = wide;
        } else if low < first || high > last {
            return Err(subscript("array subscript out of range"));
        }
        ranges.push((low - first) as usize..(high - first) as usize + 1);
    }
    let count: usize = ranges.iter().map(Range::len).product();
    if count > source.values.len() {
        return Err(too_small());
    }
    value_fits(array_bytes(array).saturating_add(array_bytes(source)))?;
    let lengths: Vec<usize> = dimensions.iter().map(|(length, _)| *length as usize).collect();
    let mut next = source.values.iter();
    each_place(&lengths, &ranges, |place| {
        if let (Some(slot), Some(item)) = (items.get_mut(place), next.next()) {
            slot.clone_from(item);
        }
    });
    shaped(array.element.clone(), dimensions, items)
}

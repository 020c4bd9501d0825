//! The functions, by subject. Each module is a table of signatures and the bodies under it.

mod array;
mod catalog;
pub mod date;
mod date_format;
pub(super) mod date_operators;
pub mod digest;
pub(super) mod element;
mod json;
mod math;
mod number_format;
mod overlaps;
mod password;
mod pattern_list;
pub mod regexp;
mod session;
mod string;
mod string_format;
pub(super) mod system;
mod uuid;
pub(super) mod variadic;
mod zone;

use super::function::{Arguments, Function};
use crate::types::{Array, Interval, Numeric, SqlType, Value, ZonedTime};
use crate::{SqlError, SqlState};

/// Every table.
pub(super) static TABLES: &[&[Function]] = &[
    string::TABLE,
    string::PATTERNS,
    pattern_list::TABLE,
    regexp::TABLE,
    string_format::TABLE,
    digest::TABLE,
    password::TABLE,
    math::TABLE,
    math::OPERATORS,
    date::TABLE,
    date_format::TABLE,
    date_operators::TABLE,
    overlaps::TABLE,
    zone::TABLE,
    uuid::TABLE,
    json::TABLE,
    array::TABLE,
    element::TABLE,
    system::TABLE,
    session::TABLE,
    catalog::TABLE,
];

/// An argument was not of its declared type: binding prevents it.
#[cold]
fn wrong_type() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "a function was called with an argument of another type")
}

fn str_at(values: &[Value], i: usize) -> Result<&str, SqlError> {
    values.get(i).and_then(Value::as_str).ok_or_else(wrong_type)
}

fn int_at(values: &[Value], i: usize) -> Result<i64, SqlError> {
    values.get(i).and_then(Value::as_i64).ok_or_else(wrong_type)
}

fn float_at(values: &[Value], i: usize) -> Result<f64, SqlError> {
    match values.get(i) {
        Some(Value::Float8(v)) => Ok(*v),
        Some(Value::Float4(v)) => Ok(f64::from(*v)),
        _ => Err(wrong_type()),
    }
}

fn numeric_at(values: &[Value], i: usize) -> Result<&Numeric, SqlError> {
    match values.get(i) {
        Some(Value::Numeric(v)) => Ok(v),
        _ => Err(wrong_type()),
    }
}

fn bool_at(values: &[Value], i: usize) -> Result<bool, SqlError> {
    match values.get(i) {
        Some(Value::Bool(v)) => Ok(*v),
        _ => Err(wrong_type()),
    }
}

fn bytes_at(values: &[Value], i: usize) -> Result<&[u8], SqlError> {
    match values.get(i) {
        Some(Value::Bytea(v)) => Ok(v),
        _ => Err(wrong_type()),
    }
}

fn interval_at(values: &[Value], i: usize) -> Result<Interval, SqlError> {
    match values.get(i) {
        Some(Value::Interval(v)) => Ok(*v),
        _ => Err(wrong_type()),
    }
}

/// Microseconds of a time, timestamp or timestamptz.
fn micros_at(values: &[Value], i: usize) -> Result<i64, SqlError> {
    match values.get(i) {
        Some(Value::Timestamp(v) | Value::Timestamptz(v) | Value::Time(v)) => Ok(*v),
        _ => Err(wrong_type()),
    }
}

fn zoned_at(values: &[Value], i: usize) -> Result<ZonedTime, SqlError> {
    match values.get(i) {
        Some(Value::Timetz(v)) => Ok(*v),
        _ => Err(wrong_type()),
    }
}

fn day_at(values: &[Value], i: usize) -> Result<i32, SqlError> {
    match values.get(i) {
        Some(Value::Date(v)) => Ok(*v),
        _ => Err(wrong_type()),
    }
}

fn text_array(parts: impl Iterator<Item = Value>) -> Value {
    Value::Array(Array::from_values(SqlType::Text, parts.collect()).into())
}

/// The text of an argument of any type, as output shows it.
fn shown(values: &[Value], i: usize, arguments: &Arguments<'_>) -> Result<String, SqlError> {
    let value = values.get(i).ok_or_else(wrong_type)?;
    let ty = arguments.types.get(i).ok_or_else(wrong_type)?;
    match value {
        Value::Bool(v) => Ok(if *v { "t" } else { "f" }.into()),
        value => value.to_output(ty, &arguments.cast_context()),
    }
}

/// The generator of splitmix64: spreads the bits of a number that is unique into ones that look random.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

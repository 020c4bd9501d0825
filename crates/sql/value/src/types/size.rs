//! How large values are.

use super::{Numeric, Value};
use crate::work::step;
use crate::{SqlError, SqlState};

/// Greatest size of one value, in bytes of what it says ([`value_bytes`]).
pub const VALUE_BYTES_MAX: usize = 16 << 20;
/// What an element of an array or record counts for beside what it says, in bytes of the value.
pub const ELEMENT_BYTES: usize = 4;
/// Values of fewer bytes are not worth counting where they are held for a moment.
const LARGE_BYTES: usize = 32 << 10;

/// Whether a value may have so many bytes.
///
/// # Errors
/// 54000
#[inline]
pub fn value_fits(bytes: usize) -> Result<(), SqlError> {
    if bytes > VALUE_BYTES_MAX { Err(too_large(bytes)) } else { Ok(()) }
}

#[cold]
fn too_large(bytes: usize) -> SqlError {
    let size = if bytes == usize::MAX { String::new() } else { format!(" of {bytes} bytes") };
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large")
        .detail(format!("A value{size} would be longer than the limit of {VALUE_BYTES_MAX} bytes."))
        .hint("Make it of several rows.")
}

/// What a value says, in bytes: those of its text, those that its number needs, those of its elements.
pub fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int2(_) => 2,
        Value::Int4(_) | Value::Float4(_) | Value::Date(_) | Value::Oid(_) => 4,
        Value::Int8(_) | Value::Float8(_) | Value::Time(_) | Value::Timestamp(_) | Value::Timestamptz(_) => 8,
        Value::Timetz(_) => 12,
        Value::Interval(_) | Value::Uuid(_) => 16,
        Value::Numeric(Numeric::Finite(number)) => (number.bits() / 8) as usize + 8,
        Value::Numeric(_) => 8,
        Value::Text(text) | Value::Json(text) | Value::Jsonb(text) => text.len(),
        Value::Bytea(bytes) => bytes.len(),
        Value::Array(array) => array.values.iter().map(|item| ELEMENT_BYTES + value_bytes(item)).sum(),
        Value::Record(fields) => fields.iter().map(|field| ELEMENT_BYTES + value_bytes(field)).sum(),
    }
}

/// What a value holds beside its own place, in bytes, about; what it shares with others counts in each.
pub fn heap_bytes(value: &Value) -> usize {
    /// Counts of an `Arc`, and what the allocator rounds up to.
    const BLOCK_BYTES: usize = 24;
    match value {
        Value::Numeric(Numeric::Finite(number)) if number.is_long() => BLOCK_BYTES + value_bytes(value),
        Value::Text(_) | Value::Json(_) | Value::Jsonb(_) | Value::Bytea(_) => BLOCK_BYTES + value_bytes(value),
        Value::Array(array) => {
            BLOCK_BYTES + array.values.iter().map(|item| size_of::<Value>() + heap_bytes(item)).sum::<usize>()
        }
        Value::Record(fields) => {
            BLOCK_BYTES + fields.iter().map(|item| size_of::<Value>() + heap_bytes(item)).sum::<usize>()
        }
        _ => 0,
    }
}

/// What a value may hold beside its own place where that can be much, in bytes; 0 for others. For sums over small rows: it looks into
/// arrays only.
#[inline]
pub fn wide_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Json(text) | Value::Jsonb(text) => text.len(),
        Value::Bytea(bytes) => bytes.len(),
        Value::Array(_) | Value::Record(_) => heap_bytes(value),
        _ => 0,
    }
}

/// The bytes of a value that is worth counting; 0 for others. Does not look into arrays: an element counts as one place.
#[inline]
pub fn large_bytes(value: &Value) -> usize {
    let bytes = match value {
        Value::Text(text) | Value::Json(text) | Value::Jsonb(text) => text.len(),
        Value::Bytea(bytes) => bytes.len(),
        Value::Array(array) => array.values.len() * size_of::<Value>(),
        Value::Record(fields) => fields.len() * size_of::<Value>(),
        _ => 0,
    };
    if bytes < LARGE_BYTES { 0 } else { bytes }
}

/// A result, if it is not too large.
///
/// # Errors
/// 54000; 57014, for weighing is work.
#[inline]
pub fn bounded(value: Value) -> Result<Value, SqlError> {
    match &value {
        Value::Text(text) | Value::Json(text) | Value::Jsonb(text) => value_fits(text.len())?,
        Value::Bytea(bytes) => value_fits(bytes.len())?,
        Value::Array(array) => {
            step(array.values.len())?;
            value_fits(value_bytes(&value))?;
        }
        Value::Record(_) => value_fits(value_bytes(&value))?,
        _ => {}
    }
    Ok(value)
}

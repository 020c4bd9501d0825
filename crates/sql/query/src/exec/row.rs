//! The bytes of a stored row: every column in constant time, without decoding its neighbours.
//!
//! A point read wants one column of many, an update changes one and keeps the rest, an index is left alone when its columns
//! keep their bytes. So a row is a table of end offsets in front of the columns' bytes:
//!
//! ```text
//! form u8 (1 narrow, 2 wide) | n u16 | n ends (u16 or u32; the top bit says NULL) | bytes of column id 1, 2, .. n
//! ```
//!
//! Invariants
//! 1. Position is column id - 1. Ids are never reused, so a row written before `ADD COLUMN` is short (its reader takes the
//!    column's `missing` value) and a dropped column is NULL in what is written afterwards.
//! 2. Equal values have equal bytes, except numerics of different scale and floats of different sign of zero: compare bytes to
//!    find what did not change, never to decide equality in SQL's sense.
//! 3. The narrow form holds less than [`NARROW_MAX_BYTES`] of column bytes; the wide form any more.
//!
//! Caveat: a NULL costs two bytes, and a table whose columns were dropped many times keeps paying for their ids.

use crate::types::{Array, Decimal, Interval, Numeric, SqlType, Value, ZonedTime};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use std::sync::Arc;

/// Bytes of columns from which a row takes the wide form.
pub(crate) const NARROW_MAX_BYTES: usize = 0x7fff;
/// Greatest length of one stored row, bytes.
pub(crate) const ROW_MAX_BYTES: usize = 16 << 20;

const NARROW: u8 = 1;
const WIDE: u8 = 2;
const HEADER_BYTES: usize = 3;
const NARROW_NULL: u16 = 0x8000;
const WIDE_NULL: u32 = 0x8000_0000;

/// What a row holds of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// The row is older than the column.
    Missing,
    /// NULL.
    Null,
    /// A value's bytes: see [`decode`].
    Bytes(&'a [u8]),
}

/// A stored row, looked into in place.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    bytes: &'a [u8],
    count: usize,
    wide: bool,
}

impl<'a> RowView<'a> {
    /// Looks at a row's bytes.
    ///
    /// # Errors
    /// XX000: the bytes are no row (the store's checksums make this a bug, not bad luck).
    pub fn new(bytes: &'a [u8]) -> Result<Self, SqlError> {
        let [form, low, high, ..] = bytes else { return Err(corrupt("it is shorter than its header")) };
        let (count, wide) = (u16::from_le_bytes([*low, *high]) as usize, *form == WIDE);
        if *form != NARROW && *form != WIDE {
            return Err(corrupt("its form is unknown"));
        }
        if bytes.len() < HEADER_BYTES + count * if wide { 4 } else { 2 } {
            return Err(corrupt("it is shorter than its offsets"));
        }
        Ok(RowView { bytes, count, wide })
    }

    /// How many column ids it covers.
    pub fn count(&self) -> usize {
        self.count
    }

    /// End of column at `position`, and whether it is NULL.
    fn end(&self, position: usize) -> (usize, bool) {
        if self.wide {
            let at = HEADER_BYTES + position * 4;
            let raw = u32::from_le_bytes([self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]]);
            ((raw & !WIDE_NULL) as usize, raw & WIDE_NULL != 0)
        } else {
            let at = HEADER_BYTES + position * 2;
            let raw = u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]);
            ((raw & !NARROW_NULL) as usize, raw & NARROW_NULL != 0)
        }
    }

    /// What the row holds of the column with this id (from 1).
    pub fn column(&self, id: u16) -> Result<Stored<'a>, SqlError> {
        let Some(position) = (id as usize).checked_sub(1) else { return Err(corrupt("column 0 is not stored")) };
        if position >= self.count {
            return Ok(Stored::Missing);
        }
        let (end, null) = self.end(position);
        if null {
            return Ok(Stored::Null);
        }
        let start = if position == 0 { 0 } else { self.end(position - 1).0 };
        let base = HEADER_BYTES + self.count * if self.wide { 4 } else { 2 };
        self.bytes
            .get(base + start..base + end)
            .map(Stored::Bytes)
            .ok_or_else(|| corrupt("an offset points past its end"))
    }
}

fn corrupt(what: &str) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("a stored row cannot be read: {what}"))
}

/// Where a column of a row to be written comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// NULL.
    Null,
    /// A value to encode.
    Value(&'a Value),
    /// Bytes of an older row.
    Bytes(&'a [u8]),
}

/// Encodes a row whose columns are those of ids 1, 2, .. in order.
///
/// # Errors
/// 54000 above [`ROW_MAX_BYTES`].
pub fn encode<'a>(count: usize, column: impl Fn(usize) -> Source<'a>) -> Result<Bytes, SqlError> {
    let mut out = Vec::with_capacity(HEADER_BYTES + count * 12);
    let narrow = encode_as(&mut out, count, &column, false);
    if !narrow {
        out.clear();
        encode_as(&mut out, count, &column, true);
    }
    if out.len() > ROW_MAX_BYTES {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("row is too big: size {}, maximum size {ROW_MAX_BYTES}", out.len()),
        ));
    }
    Ok(Bytes::from(out))
}

/// Encodes in one form; `false` if the narrow form does not hold the row.
fn encode_as<'a>(out: &mut Vec<u8>, count: usize, column: &impl Fn(usize) -> Source<'a>, wide: bool) -> bool {
    let width = if wide { 4 } else { 2 };
    out.push(if wide { WIDE } else { NARROW });
    out.extend_from_slice(&(count as u16).to_le_bytes());
    out.resize(HEADER_BYTES + count * width, 0);
    let base = out.len();
    for position in 0..count {
        let null = match column(position) {
            Source::Null | Source::Value(Value::Null) => true,
            Source::Value(value) => {
                encode_value(value, out);
                false
            }
            Source::Bytes(bytes) => {
                out.extend_from_slice(bytes);
                false
            }
        };
        let end = out.len() - base;
        let at = HEADER_BYTES + position * width;
        if wide {
            let raw = end as u32 | if null { WIDE_NULL } else { 0 };
            out[at..at + 4].copy_from_slice(&raw.to_le_bytes());
        } else {
            if end > NARROW_MAX_BYTES {
                return false;
            }
            let raw = end as u16 | if null { NARROW_NULL } else { 0 };
            out[at..at + 2].copy_from_slice(&raw.to_le_bytes());
        }
    }
    true
}

/// Whether a value's bytes are those of a type.
pub(super) fn is_of(value: &Value, ty: &SqlType) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) => *ty == SqlType::Bool,
        Value::Int2(_) => *ty == SqlType::Int2,
        Value::Int4(_) | Value::Date(_) => matches!(ty, SqlType::Int4 | SqlType::Date),
        Value::Int8(_) | Value::Time(_) | Value::Timestamp(_) | Value::Timestamptz(_) => {
            matches!(ty, SqlType::Int8 | SqlType::Time(_) | SqlType::Timestamp(_) | SqlType::Timestamptz(_))
        }
        Value::Timetz(_) => matches!(ty, SqlType::Timetz(_)),
        Value::Float4(_) => *ty == SqlType::Float4,
        Value::Float8(_) => *ty == SqlType::Float8,
        Value::Numeric(_) => matches!(ty, SqlType::Numeric(_)),
        Value::Text(_) | Value::Json(_) | Value::Jsonb(_) => matches!(
            ty,
            SqlType::Text
                | SqlType::Varchar(_)
                | SqlType::Char(_)
                | SqlType::Name
                | SqlType::SingleChar
                | SqlType::Unknown
                | SqlType::Json
                | SqlType::Jsonb
        ),
        Value::Bytea(_) => *ty == SqlType::Bytea,
        Value::Interval(_) => matches!(ty, SqlType::Interval(_)),
        Value::Uuid(_) => *ty == SqlType::Uuid,
        Value::Oid(_) => matches!(ty, SqlType::Oid | SqlType::Reg(_)),
        Value::Array(_) => matches!(ty, SqlType::Array(_) | SqlType::Int2Vector | SqlType::OidVector),
        Value::Record(_) => *ty == SqlType::Record,
    }
}

/// Appends a value's bytes; their length is kept beside them. NULL has none.
pub fn encode_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Bool(v) => out.push(*v as u8),
        Value::Int2(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Int4(v) | Value::Date(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => {
            out.extend_from_slice(&v.to_le_bytes());
        }
        Value::Timetz(v) => {
            out.extend_from_slice(&v.micros.to_le_bytes());
            out.extend_from_slice(&v.west_s.to_le_bytes());
        }
        Value::Float4(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Float8(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Numeric(v) => encode_numeric(v, out),
        Value::Text(v) | Value::Json(v) | Value::Jsonb(v) => out.extend_from_slice(v.as_bytes()),
        Value::Bytea(v) => out.extend_from_slice(v),
        Value::Interval(v) => {
            out.extend_from_slice(&v.months.to_le_bytes());
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.micros.to_le_bytes());
        }
        Value::Uuid(v) => out.extend_from_slice(v),
        Value::Oid(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Array(v) => encode_array(v, out),
        Value::Record(_) => {}
    }
}

const NUMERIC_FINITE: u8 = 0;
const NUMERIC_NAN: u8 = 1;
const NUMERIC_INFINITY: u8 = 2;
const NUMERIC_NEG_INFINITY: u8 = 3;

fn encode_numeric(value: &Numeric, out: &mut Vec<u8>) {
    match value {
        Numeric::Finite(v) => {
            out.push(NUMERIC_FINITE);
            out.extend_from_slice(&(v.scale() as i32).to_le_bytes());
            v.write_le_bytes(out);
        }
        Numeric::NaN => out.push(NUMERIC_NAN),
        Numeric::Infinity => out.push(NUMERIC_INFINITY),
        Numeric::NegInfinity => out.push(NUMERIC_NEG_INFINITY),
    }
}

fn encode_array(array: &Array, out: &mut Vec<u8>) {
    out.push(array.dimensions.len() as u8);
    for (length, lower) in &array.dimensions {
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&lower.to_le_bytes());
    }
    for value in &array.values {
        if matches!(value, Value::Null) {
            out.extend_from_slice(&u32::MAX.to_le_bytes());
            continue;
        }
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        encode_value(value, out);
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// A value from its bytes.
///
/// # Errors
/// XX000: they are not of this type.
pub fn decode(ty: &SqlType, bytes: &[u8]) -> Result<Value, SqlError> {
    Ok(match ty {
        SqlType::Bool => Value::Bool(fixed::<1>(bytes)?[0] != 0),
        SqlType::Int2 => Value::Int2(i16::from_le_bytes(fixed(bytes)?)),
        SqlType::Int4 => Value::Int4(i32::from_le_bytes(fixed(bytes)?)),
        SqlType::Int8 => Value::Int8(i64::from_le_bytes(fixed(bytes)?)),
        SqlType::Float4 => Value::Float4(f32::from_le_bytes(fixed(bytes)?)),
        SqlType::Float8 => Value::Float8(f64::from_le_bytes(fixed(bytes)?)),
        SqlType::Numeric(_) => Value::Numeric(decode_numeric(bytes)?),
        SqlType::Text
        | SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Name
        | SqlType::SingleChar
        | SqlType::Unknown => Value::Text(text(bytes)?),
        SqlType::Json => Value::Json(text(bytes)?),
        SqlType::Jsonb => Value::Jsonb(text(bytes)?),
        SqlType::Bytea => Value::Bytea(bytes.into()),
        SqlType::Date => Value::Date(i32::from_le_bytes(fixed(bytes)?)),
        SqlType::Time(_) => Value::Time(i64::from_le_bytes(fixed(bytes)?)),
        SqlType::Timetz(_) => {
            let raw: [u8; 12] = fixed(bytes)?;
            Value::Timetz(ZonedTime {
                micros: i64::from_le_bytes(fixed(&raw[..8])?),
                west_s: i32::from_le_bytes(fixed(&raw[8..])?),
            })
        }
        SqlType::Timestamp(_) => Value::Timestamp(i64::from_le_bytes(fixed(bytes)?)),
        SqlType::Timestamptz(_) => Value::Timestamptz(i64::from_le_bytes(fixed(bytes)?)),
        SqlType::Interval(_) => {
            let raw: [u8; 16] = fixed(bytes)?;
            Value::Interval(Interval {
                months: i32::from_le_bytes(fixed(&raw[..4])?),
                days: i32::from_le_bytes(fixed(&raw[4..8])?),
                micros: i64::from_le_bytes(fixed(&raw[8..])?),
            })
        }
        SqlType::Uuid => Value::Uuid(fixed(bytes)?),
        SqlType::Oid | SqlType::Reg(_) => Value::Oid(u32::from_le_bytes(fixed(bytes)?)),
        SqlType::Array(element) => Value::Array(Arc::new(decode_array(element, bytes)?)),
        SqlType::Int2Vector => Value::Array(Arc::new(decode_array(&SqlType::Int2, bytes)?)),
        SqlType::OidVector => Value::Array(Arc::new(decode_array(&SqlType::Oid, bytes)?)),
        SqlType::Record | SqlType::Void => return Err(corrupt("a column has a type that is not stored")),
    })
}

/// As [`decode`], into its place: what scans read most is written there at once, not built elsewhere and moved.
///
/// # Errors
/// As [`decode`].
#[inline]
pub(crate) fn decode_to(ty: &SqlType, bytes: &[u8], to: &mut Value) -> Result<(), SqlError> {
    match ty {
        SqlType::Int4 => *to = Value::Int4(i32::from_le_bytes(fixed(bytes)?)),
        SqlType::Int8 => *to = Value::Int8(i64::from_le_bytes(fixed(bytes)?)),
        SqlType::Text | SqlType::Varchar(_) => *to = Value::Text(text(bytes)?),
        SqlType::Numeric(_) => *to = Value::Numeric(decode_numeric(bytes)?),
        SqlType::Date => *to = Value::Date(i32::from_le_bytes(fixed(bytes)?)),
        _ => *to = decode(ty, bytes)?,
    }
    Ok(())
}

#[inline]
fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], SqlError> {
    bytes.try_into().map_err(|_| wrong_length())
}

/// XX000
#[cold]
pub(crate) fn wrong_length() -> SqlError {
    corrupt("a column has the wrong length")
}

/// The scale of a finite numeric, and its digits: the fewest bytes that hold them and their sign, the lowest first.
#[inline]
pub(crate) fn finite(bytes: &[u8]) -> Option<(i32, &[u8])> {
    match bytes {
        [NUMERIC_FINITE, a, b, c, d, digits @ ..] => Some((i32::from_le_bytes([*a, *b, *c, *d]), digits)),
        _ => None,
    }
}

fn text(bytes: &[u8]) -> Result<Arc<str>, SqlError> {
    std::str::from_utf8(bytes).map(Arc::from).map_err(|_| corrupt("a text is not UTF-8"))
}

/// A numeric from its bytes.
///
/// # Errors
/// XX000: they are none.
pub(crate) fn decode_numeric(bytes: &[u8]) -> Result<Numeric, SqlError> {
    match bytes {
        [NUMERIC_FINITE, a, b, c, d, digits @ ..] => {
            Ok(Numeric::Finite(Decimal::from_le_bytes(digits, i32::from_le_bytes([*a, *b, *c, *d]))))
        }
        [NUMERIC_NAN] => Ok(Numeric::NaN),
        [NUMERIC_INFINITY] => Ok(Numeric::Infinity),
        [NUMERIC_NEG_INFINITY] => Ok(Numeric::NegInfinity),
        _ => Err(corrupt("a numeric is malformed")),
    }
}

fn decode_array(element: &SqlType, bytes: &[u8]) -> Result<Array, SqlError> {
    let mut rest = bytes;
    let mut take = |n: usize| -> Result<&[u8], SqlError> {
        let (head, tail) = rest.split_at_checked(n).ok_or_else(|| corrupt("an array is cut short"))?;
        rest = tail;
        Ok(head)
    };
    let count = take(1)?[0] as usize;
    let mut dimensions = Vec::with_capacity(count);
    let mut total: usize = if count == 0 { 0 } else { 1 };
    for _ in 0..count {
        let length = i32::from_le_bytes(fixed(take(4)?)?);
        let lower = i32::from_le_bytes(fixed(take(4)?)?);
        total = total.saturating_mul(length.max(0) as usize);
        dimensions.push((length, lower));
    }
    let mut values = Vec::with_capacity(total.min(bytes.len()));
    for _ in 0..total {
        let length = u32::from_le_bytes(fixed(take(4)?)?);
        values.push(if length == u32::MAX { Value::Null } else { decode(element, take(length as usize)?)? });
    }
    Ok(Array { element: element.clone(), dimensions, values })
}

#[cfg(test)]
mod tests;

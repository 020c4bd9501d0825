//! The value part of a row.
//!
//! ```text
//! format byte 01 | column | column | ...        in the order of column ids
//! column:  varint (column id delta << 3 | kind) | body by kind
//! ```
//!
//! The delta counts from the column before, so the first fifteen steps cost one byte each. The kind says how long the body is:
//! none (NULL, true, false), a varint (integers, zigzag), 4, 8 or 16 bytes, or a varint length and that many bytes.
//!
//! Invariants:
//! 1. Column ids grow within a row and are never reused by a table, so a reader knows a dropped column by its id, and skips it by
//!    its kind, without its type.
//! 2. A column absent from a row was added after the row was written: it has its `missing` value. So a NULL is written.
//!
//! Caveat: a column whose type changes needs its rows rewritten.

use crate::types::{Array, Interval, Numeric, SqlType, Value};
use crate::{SqlError, SqlState};
use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use bytes::Bytes;
use std::sync::Arc;

const FORMAT: u8 = 1;

// Kinds of body: how to skip without knowing the type.
const KIND_NULL: u64 = 0;
const KIND_VARINT: u64 = 1;
const KIND_8: u64 = 2;
const KIND_BYTES: u64 = 3;
const KIND_TRUE: u64 = 4;
const KIND_FALSE: u64 = 5;
const KIND_16: u64 = 6;
const KIND_4: u64 = 7;

fn corrupt() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "a stored row is damaged").hint("Restore the table from a backup, or check the disk.")
}

#[inline]
fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
fn get_varint(rest: &mut &[u8]) -> Result<u64, SqlError> {
    let mut value = 0u64;
    for (i, b) in rest.iter().enumerate().take(10) {
        value |= u64::from(b & 0x7f) << (7 * i);
        if b & 0x80 == 0 {
            *rest = &rest[i + 1..];
            return Ok(value);
        }
    }
    Err(corrupt())
}

#[inline]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[inline]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Writes a row, column by column, ids growing.
pub struct RowEncoder {
    out: Vec<u8>,
    last: u16,
}

impl Default for RowEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl RowEncoder {
    /// An empty row.
    pub fn new() -> Self {
        let mut out = Vec::with_capacity(64);
        out.push(FORMAT);
        RowEncoder { out, last: 0 }
    }

    /// Appends a column. Ids must grow from call to call.
    #[inline]
    pub fn column(&mut self, id: u16, value: &Value) {
        debug_assert!(id >= self.last, "columns are written in the order of their ids");
        let delta = u64::from(id.wrapping_sub(self.last));
        self.last = id;
        let out = &mut self.out;
        let header = |kind: u64, out: &mut Vec<u8>| put_varint(delta << 3 | kind, out);
        match value {
            Value::Null => header(KIND_NULL, out),
            Value::Bool(true) => header(KIND_TRUE, out),
            Value::Bool(false) => header(KIND_FALSE, out),
            Value::Int2(v) => {
                header(KIND_VARINT, out);
                put_varint(zigzag(i64::from(*v)), out);
            }
            Value::Int4(v) | Value::Date(v) => {
                header(KIND_VARINT, out);
                put_varint(zigzag(i64::from(*v)), out);
            }
            Value::Int8(v) => {
                header(KIND_VARINT, out);
                put_varint(zigzag(*v), out);
            }
            Value::Oid(v) => {
                header(KIND_VARINT, out);
                put_varint(u64::from(*v), out);
            }
            Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => {
                header(KIND_8, out);
                out.extend_from_slice(&v.to_le_bytes());
            }
            Value::Float8(v) => {
                header(KIND_8, out);
                out.extend_from_slice(&v.to_le_bytes());
            }
            Value::Float4(v) => {
                header(KIND_4, out);
                out.extend_from_slice(&v.to_le_bytes());
            }
            Value::Uuid(v) => {
                header(KIND_16, out);
                out.extend_from_slice(v);
            }
            Value::Interval(v) => {
                header(KIND_16, out);
                out.extend_from_slice(&v.micros.to_le_bytes());
                out.extend_from_slice(&v.days.to_le_bytes());
                out.extend_from_slice(&v.months.to_le_bytes());
            }
            Value::Text(text) | Value::Json(text) | Value::Jsonb(text) => {
                header(KIND_BYTES, out);
                put_varint(text.len() as u64, out);
                out.extend_from_slice(text.as_bytes());
            }
            Value::Bytea(bytes) => {
                header(KIND_BYTES, out);
                put_varint(bytes.len() as u64, out);
                out.extend_from_slice(bytes);
            }
            Value::Numeric(_) | Value::Array(_) | Value::Record(_) => {
                header(KIND_BYTES, out);
                let mut body = Vec::new();
                write_nested(value, &mut body);
                put_varint(body.len() as u64, out);
                out.extend_from_slice(&body);
            }
        }
    }

    /// The bytes.
    pub fn finish(self) -> Bytes {
        Bytes::from(self.out)
    }
}

fn write_nested(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Numeric(Numeric::NaN) => out.push(1),
        Value::Numeric(Numeric::Infinity) => out.push(2),
        Value::Numeric(Numeric::NegInfinity) => out.push(3),
        Value::Numeric(Numeric::Finite(number)) => {
            let (digits, scale) = number.as_bigint_and_scale();
            out.push(0);
            put_varint(zigzag(scale), out);
            out.extend_from_slice(&digits.to_signed_bytes_le());
        }
        Value::Array(array) => {
            put_varint(array.dimensions.len() as u64, out);
            for (length, lower) in &array.dimensions {
                put_varint(zigzag(i64::from(*length)), out);
                put_varint(zigzag(i64::from(*lower)), out);
            }
            let mut row = RowEncoder { out: std::mem::take(out), last: 0 };
            for value in &array.values {
                row.last = 0;
                row.column(0, value);
            }
            *out = row.out;
        }
        Value::Record(fields) => {
            let mut row = RowEncoder { out: std::mem::take(out), last: 0 };
            for value in fields.iter() {
                row.last = 0;
                row.column(0, value);
            }
            *out = row.out;
        }
        _ => {}
    }
}

/// One column that a reader wants.
#[derive(Clone, Debug)]
pub struct WantedColumn {
    /// Column id.
    pub id: u16,
    /// Its type.
    pub ty: SqlType,
    /// Where in the decoded row it goes.
    pub target: usize,
    /// Its value in rows written before it was added.
    pub missing: Value,
}

/// Reads wanted columns of rows. Made once for a plan.
#[derive(Clone, Debug, Default)]
pub struct RowDecoder {
    wanted: Vec<WantedColumn>,
}

impl RowDecoder {
    /// A decoder of these columns; others are skipped without being read.
    pub fn new(mut wanted: Vec<WantedColumn>) -> Self {
        wanted.sort_by_key(|column| column.id);
        RowDecoder { wanted }
    }

    /// The columns, in the order of ids.
    pub fn wanted(&self) -> &[WantedColumn] {
        &self.wanted
    }

    /// Reads the wanted columns into `row[target]`.
    ///
    /// # Errors
    /// XX000 if the bytes are damaged.
    #[inline]
    pub fn decode(&self, bytes: &[u8], row: &mut [Value]) -> Result<(), SqlError> {
        let mut rest = match bytes.split_first() {
            Some((&FORMAT, rest)) => rest,
            _ => return Err(corrupt()),
        };
        let mut wanted = self.wanted.iter();
        let mut next = wanted.next();
        let mut id = 0u64;
        while let Some(column) = next {
            if rest.is_empty() {
                row[column.target] = column.missing.clone();
                next = wanted.next();
                continue;
            }
            let mut after = rest;
            let header = get_varint(&mut after)?;
            let here = id + (header >> 3);
            if here > u64::from(column.id) {
                row[column.target] = column.missing.clone();
                next = wanted.next();
                continue;
            }
            id = here;
            rest = after;
            if here < u64::from(column.id) {
                skip_body(header & 7, &mut rest)?;
            } else {
                row[column.target] = read_body(header & 7, &mut rest, &column.ty)?;
                next = wanted.next();
            }
        }
        Ok(())
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], SqlError> {
    let head = rest.get(..count).ok_or_else(corrupt)?;
    *rest = &rest[count..];
    Ok(head)
}

fn take_fixed<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], SqlError> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or_else(corrupt)?;
    *rest = tail;
    Ok(*head)
}

#[inline]
fn skip_body(kind: u64, rest: &mut &[u8]) -> Result<(), SqlError> {
    match kind {
        KIND_VARINT => get_varint(rest).map(drop),
        KIND_BYTES => {
            let count = get_varint(rest)? as usize;
            take(rest, count).map(drop)
        }
        KIND_8 => take(rest, 8).map(drop),
        KIND_16 => take(rest, 16).map(drop),
        KIND_4 => take(rest, 4).map(drop),
        _ => Ok(()),
    }
}

#[inline]
fn read_body(kind: u64, rest: &mut &[u8], ty: &SqlType) -> Result<Value, SqlError> {
    Ok(match (kind, ty) {
        (KIND_NULL, _) => Value::Null,
        (KIND_VARINT, SqlType::Int4) => Value::Int4(unzigzag(get_varint(rest)?) as i32),
        (KIND_VARINT, SqlType::Int8) => Value::Int8(unzigzag(get_varint(rest)?)),
        (KIND_BYTES, ty) => {
            let count = get_varint(rest)? as usize;
            let body = take(rest, count)?;
            match ty {
                SqlType::Text | SqlType::Varchar(_) | SqlType::Char(_) => Value::Text(utf8(body)?.into()),
                ty => read_bytes(body, ty)?,
            }
        }
        (KIND_8, SqlType::Timestamptz) => Value::Timestamptz(i64::from_le_bytes(take_fixed(rest)?)),
        (KIND_8, SqlType::Timestamp) => Value::Timestamp(i64::from_le_bytes(take_fixed(rest)?)),
        (KIND_8, SqlType::Time) => Value::Time(i64::from_le_bytes(take_fixed(rest)?)),
        (KIND_8, SqlType::Float8) => Value::Float8(f64::from_le_bytes(take_fixed(rest)?)),
        (KIND_4, SqlType::Float4) => Value::Float4(f32::from_le_bytes(take_fixed(rest)?)),
        (KIND_TRUE, SqlType::Bool) => Value::Bool(true),
        (KIND_FALSE, SqlType::Bool) => Value::Bool(false),
        (KIND_VARINT, SqlType::Int2) => Value::Int2(unzigzag(get_varint(rest)?) as i16),
        (KIND_VARINT, SqlType::Date) => Value::Date(unzigzag(get_varint(rest)?) as i32),
        (KIND_VARINT, SqlType::Oid | SqlType::Reg(_)) => Value::Oid(get_varint(rest)? as u32),
        (KIND_16, SqlType::Uuid) => Value::Uuid(take_fixed(rest)?),
        (KIND_16, SqlType::Interval) => Value::Interval(Interval {
            micros: i64::from_le_bytes(take_fixed(rest)?),
            days: i32::from_le_bytes(take_fixed(rest)?),
            months: i32::from_le_bytes(take_fixed(rest)?),
        }),
        _ => return Err(corrupt()),
    })
}

fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|_| corrupt())
}

fn read_bytes(body: &[u8], ty: &SqlType) -> Result<Value, SqlError> {
    Ok(match ty {
        SqlType::Json => Value::Json(utf8(body)?.into()),
        SqlType::Jsonb => Value::Jsonb(utf8(body)?.into()),
        SqlType::Bytea => Value::Bytea(Bytes::copy_from_slice(body)),
        SqlType::Numeric(_) => Value::Numeric(read_numeric(body)?),
        SqlType::Array(element) => read_array(body, element)?,
        SqlType::Int2Vector => read_array(body, &SqlType::Int2)?,
        SqlType::OidVector => read_array(body, &SqlType::Oid)?,
        SqlType::Name | SqlType::SingleChar | SqlType::Unknown | SqlType::Void | SqlType::Text => Value::text(utf8(body)?),
        _ => return Err(corrupt()),
    })
}

fn read_numeric(mut body: &[u8]) -> Result<Numeric, SqlError> {
    let (class, rest) = body.split_first().ok_or_else(corrupt)?;
    body = rest;
    Ok(match class {
        0 => {
            let scale = unzigzag(get_varint(&mut body)?);
            Numeric::Finite(BigDecimal::new(BigInt::from_signed_bytes_le(body), scale))
        }
        1 => Numeric::NaN,
        2 => Numeric::Infinity,
        3 => Numeric::NegInfinity,
        _ => return Err(corrupt()),
    })
}

fn read_array(mut body: &[u8], element: &SqlType) -> Result<Value, SqlError> {
    let count = get_varint(&mut body)?;
    if count > crate::types::MAX_DIMENSIONS as u64 {
        return Err(corrupt());
    }
    let mut dimensions = Vec::with_capacity(count as usize);
    for _ in 0..count {
        dimensions.push((unzigzag(get_varint(&mut body)?) as i32, unzigzag(get_varint(&mut body)?) as i32));
    }
    let mut values = Vec::new();
    while !body.is_empty() {
        let header = get_varint(&mut body)?;
        values.push(read_body(header & 7, &mut body, element)?);
    }
    Ok(Value::Array(Arc::new(Array { element: element.clone(), dimensions, values })))
}

//! Order-preserving keys.
//!
//! Each value is a tag byte and a body. Bodies delimit themselves, so columns follow one another, and comparing keys byte by byte
//! compares rows column by column. A descending column has the bytes of its values inverted.
//!
//! | value | tag | body |
//! | --- | --- | --- |
//! | a value | `10` | by type, below |
//! | NULL | `f0` or `0f` | none: behind all values or before them, whichever way they go |
//!
//! | type | body |
//! | --- | --- |
//! | bool | one byte |
//! | integers, date, time, timestamps | big-endian with the sign bit flipped |
//! | oid | big-endian |
//! | floats | IEEE bits, flipped so that they order; -0 as 0, one NaN above all |
//! | text, bytea | bytes with `00` written `00 ff`, ended by `00 01`; char(n) without its padding |
//! | numeric | class, decimal exponent, pairs of digits plus one, ended by `00`; all inverted if negative |
//! | time with time zone | its time at UTC as an integer of 8 bytes, then its zone as one of 4 |
//! | interval | its length in microseconds, 16 bytes with the sign bit flipped |
//! | uuid | 16 bytes |
//! | array | elements, each as a value, ended by `01`; then the dimensions |
//! | jsonb | rank of its kind, counts before contents |
//!
//! Invariants:
//! 1. For values `a`, `b` of one type, `encode(a) < encode(b)` exactly if `a < b`, NULL above all unless [`null`] places it.
//! 2. Equal values have equal keys: `1.0` and `1.00`, `1 month` and `30 days`. So a key may not say which of several equal
//!    values was written; [`is_exact`] tells the types for which it does.
//! 3. `decode(encode(v))` equals `v`.

use crate::types::{Array, Decimal, Interval, Numeric, SqlType, Value, ZonedTime, json::Json};
use crate::{SqlError, SqlState};
use bigdecimal::num_bigint::BigInt;
use std::sync::Arc;

const VALUE: u8 = 0x10;
const NULL: u8 = 0xf0;
/// NULL of an ascending column with NULLS FIRST; of a descending one with NULLS LAST, where it is inverted.
const NULL_BELOW: u8 = !NULL;
const END: u8 = 0x01;

const NUMERIC_NEG_INFINITY: u8 = 0x00;
const NUMERIC_NEGATIVE: u8 = 0x10;
const NUMERIC_ZERO: u8 = 0x20;
const NUMERIC_POSITIVE: u8 = 0x30;
const NUMERIC_INFINITY: u8 = 0x40;
const NUMERIC_NAN: u8 = 0x50;

fn corrupt(ty: &SqlType) -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, format!("an index key is damaged at a value of type {ty}"))
        .hint("Check the store; drop and create the index if only it is damaged.")
}

/// Whether a value read back from a key is the value written, not only an equal one. Rows keep a copy of key columns
/// whose type is not exact.
#[inline]
pub fn is_exact(ty: &SqlType) -> bool {
    match ty {
        SqlType::Float4 | SqlType::Float8 | SqlType::Numeric(None) | SqlType::Interval(_) | SqlType::Jsonb => false,
        // A declared scale gives the zeros back.
        SqlType::Numeric(Some(_)) => true,
        SqlType::Array(element) => is_exact(element),
        _ => true,
    }
}

/// A NULL in a key.
#[inline]
pub fn null(first: bool) -> u8 {
    if first { NULL_BELOW } else { NULL }
}

/// Appends one value.
#[inline]
pub fn encode_value(value: &Value, ty: &SqlType, descending: bool, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        Value::Int4(v) => {
            let b = ((*v as u32) ^ 0x8000_0000).to_be_bytes();
            out.extend_from_slice(&[VALUE, b[0], b[1], b[2], b[3]]);
        }
        Value::Int8(v) => {
            out.push(VALUE);
            out.extend_from_slice(&((*v as u64) ^ (1 << 63)).to_be_bytes());
        }
        Value::Null => out.push(NULL),
        other => {
            out.push(VALUE);
            encode_body(other, ty, out);
        }
    }
    if descending {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}

fn encode_body(value: &Value, ty: &SqlType, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::Int2(v) => out.extend_from_slice(&((*v as u16) ^ 0x8000).to_be_bytes()),
        Value::Int4(v) | Value::Date(v) => out.extend_from_slice(&((*v as u32) ^ 0x8000_0000).to_be_bytes()),
        Value::Int8(v) | Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => {
            out.extend_from_slice(&((*v as u64) ^ (1 << 63)).to_be_bytes());
        }
        Value::Timetz(v) => {
            out.extend_from_slice(&((v.utc_us() as u64) ^ (1 << 63)).to_be_bytes());
            out.extend_from_slice(&((v.west_s as u32) ^ 0x8000_0000).to_be_bytes());
        }
        Value::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Value::Float4(v) => out.extend_from_slice(&float4_bits(*v).to_be_bytes()),
        Value::Float8(v) => out.extend_from_slice(&float8_bits(*v).to_be_bytes()),
        Value::Text(text) => match ty {
            SqlType::Char(_) => encode_bytes(text.trim_end_matches(' ').as_bytes(), out),
            _ => encode_bytes(text.as_bytes(), out),
        },
        Value::Json(text) => encode_bytes(text.as_bytes(), out),
        Value::Jsonb(text) => encode_json(&Json::parse_known(text).unwrap_or(Json::Null), out),
        Value::Bytea(bytes) => encode_bytes(bytes, out),
        Value::Numeric(v) => encode_numeric(v, out),
        Value::Interval(v) => out.extend_from_slice(&((v.total_us() as u128) ^ (1 << 127)).to_be_bytes()),
        Value::Uuid(v) => out.extend_from_slice(v),
        Value::Array(array) => encode_array(array, out),
        Value::Record(fields) => {
            for field in fields.iter() {
                encode_value(field, &field.natural_type(), false, out);
            }
            out.push(END);
        }
    }
}

fn float8_bits(value: f64) -> u64 {
    let bits = if value.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { (value + 0.0).to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

fn float4_bits(value: f32) -> u32 {
    let bits = if value.is_nan() { f32::NAN.to_bits() & !(1 << 31) } else { (value + 0.0).to_bits() };
    if bits >> 31 == 1 { !bits } else { bits | (1 << 31) }
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    for part in bytes.split_inclusive(|b| *b == 0) {
        out.extend_from_slice(part);
        if part.last() == Some(&0) {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, END]);
}

fn encode_numeric(value: &Numeric, out: &mut Vec<u8>) {
    let finite = match value {
        Numeric::NegInfinity => return out.push(NUMERIC_NEG_INFINITY),
        Numeric::Infinity => return out.push(NUMERIC_INFINITY),
        Numeric::NaN => return out.push(NUMERIC_NAN),
        Numeric::Finite(finite) => finite,
    };
    let negative = match finite.signum() {
        0 => return out.push(NUMERIC_ZERO),
        sign => sign < 0,
    };
    out.push(if negative { NUMERIC_NEGATIVE } else { NUMERIC_POSITIVE });
    let start = out.len();
    finite.with_text(|text| {
        // The value is 0.ddd * 10^exponent, the digits without zeros at their end.
        let exponent = (text.len() as i64 - finite.scale()) as i32;
        out.extend_from_slice(&((exponent as u32) ^ 0x8000_0000).to_be_bytes());
        let shown = text.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
        for pair in text[..shown].chunks(2) {
            let low = pair.get(1).map_or(0, |b| b - b'0');
            out.push((pair[0] - b'0') * 10 + low + 1);
        }
    });
    out.push(0);
    if negative {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
}

fn encode_array(array: &Array, out: &mut Vec<u8>) {
    for value in &array.values {
        encode_value(value, &array.element, false, out);
    }
    out.push(END);
    out.push(array.dimensions.len() as u8);
    for (length, lower) in &array.dimensions {
        out.extend_from_slice(&((*length as u32) ^ 0x8000_0000).to_be_bytes());
        out.extend_from_slice(&((*lower as u32) ^ 0x8000_0000).to_be_bytes());
    }
}

fn encode_json(value: &Json, out: &mut Vec<u8>) {
    match value {
        // PostgreSQL sorts an empty array below null.
        Json::Array(elements) if elements.is_empty() => out.push(0),
        Json::Null => out.push(1),
        Json::String(text) => {
            out.push(2);
            encode_bytes(text.as_bytes(), out);
        }
        Json::Number(number) => {
            out.push(3);
            encode_numeric(&Numeric::parse(number).unwrap_or(Numeric::NaN), out);
        }
        Json::Bool(v) => out.extend_from_slice(&[4, u8::from(*v)]),
        Json::Array(elements) => {
            out.push(5);
            out.extend_from_slice(&(elements.len() as u32).to_be_bytes());
            elements.iter().for_each(|element| encode_json(element, out));
        }
        Json::Object(members) => {
            out.push(6);
            out.extend_from_slice(&(members.len() as u32).to_be_bytes());
            for (key, value) in members {
                encode_bytes(key.as_bytes(), out);
                encode_json(value, out);
            }
        }
    }
}

/// Reads bytes, inverted if the column is descending.
struct Reader<'a, 'b> {
    rest: &'a mut &'b [u8],
    mask: u8,
    ty: &'a SqlType,
}

impl Reader<'_, '_> {
    fn byte(&mut self) -> Result<u8, SqlError> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| corrupt(self.ty))?;
        *self.rest = rest;
        Ok(first ^ self.mask)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], SqlError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| corrupt(self.ty))?;
        *self.rest = rest;
        let mask = self.mask;
        Ok(head.map(|b| b ^ mask))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, SqlError> {
        let mut out = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    END => return Ok(out),
                    _ => out.push(0),
                },
                b => out.push(b),
            }
        }
    }

    fn text(&mut self) -> Result<String, SqlError> {
        String::from_utf8(self.bytes()?).map_err(|_| corrupt(self.ty))
    }

    fn numeric(&mut self) -> Result<Numeric, SqlError> {
        let class = self.byte()?;
        match class {
            NUMERIC_NEG_INFINITY => return Ok(Numeric::NegInfinity),
            NUMERIC_ZERO => return Ok(Numeric::from(0)),
            NUMERIC_INFINITY => return Ok(Numeric::Infinity),
            NUMERIC_NAN => return Ok(Numeric::NaN),
            NUMERIC_NEGATIVE | NUMERIC_POSITIVE => {}
            _ => return Err(corrupt(self.ty)),
        }
        let flip = if class == NUMERIC_NEGATIVE { 0xff } else { 0 };
        let exponent = (u32::from_be_bytes(self.fixed::<4>()?.map(|b| b ^ flip)) ^ 0x8000_0000) as i32;
        let mut digits = Vec::new();
        loop {
            let b = self.byte()? ^ flip;
            match b {
                0 => break,
                1..=100 => digits.extend_from_slice(&[b'0' + (b - 1) / 10, b'0' + (b - 1) % 10]),
                _ => return Err(corrupt(self.ty)),
            }
        }
        if digits.last() == Some(&b'0') {
            digits.pop();
        }
        let scale = digits.len() as i64 - i64::from(exponent);
        if !(-crate::types::numeric::MAX_WHOLE_DIGITS..=crate::types::numeric::SCALE_MAX).contains(&scale) {
            return Err(corrupt(self.ty));
        }
        let number = Decimal::from_text(flip != 0, &digits, scale.max(0)).ok_or_else(|| corrupt(self.ty))?;
        let number = match u32::try_from(-scale) {
            Ok(zeros @ 1..) => Decimal::new(number.parts().0.into_owned() * BigInt::from(10u8).pow(zeros), 0),
            _ => number,
        };
        let number = Numeric::Finite(number);
        match self.ty {
            SqlType::Numeric(Some((_, scale))) => number.round(i64::from((*scale).max(0))),
            _ => Ok(number),
        }
    }

    fn array(&mut self, element: &SqlType) -> Result<Value, SqlError> {
        let mut values = Vec::new();
        while self.rest.first().map(|b| b ^ self.mask) != Some(END) {
            values.push(decode_value(self.rest, element, self.mask != 0)?);
        }
        self.byte()?;
        let count = self.byte()?;
        let mut dimensions = Vec::new();
        for _ in 0..count {
            let number = |b: [u8; 4]| (u32::from_be_bytes(b) ^ 0x8000_0000) as i32;
            dimensions.push((number(self.fixed()?), number(self.fixed()?)));
        }
        Ok(Value::Array(Arc::new(Array { element: element.clone(), dimensions, values })))
    }

    fn json(&mut self, depth: usize) -> Result<Json, SqlError> {
        if depth > crate::types::json::MAX_DEPTH {
            return Err(corrupt(self.ty));
        }
        Ok(match self.byte()? {
            0 => Json::Array(vec![]),
            1 => Json::Null,
            2 => Json::String(self.text()?),
            3 => Json::Number(self.numeric()?.to_string()),
            4 => Json::Bool(self.byte()? != 0),
            5 => {
                let count = u32::from_be_bytes(self.fixed()?);
                let mut elements = Vec::new();
                for _ in 0..count {
                    elements.push(self.json(depth + 1)?);
                }
                Json::Array(elements)
            }
            6 => {
                let count = u32::from_be_bytes(self.fixed()?);
                let mut members = Vec::new();
                for _ in 0..count {
                    members.push((self.text()?, self.json(depth + 1)?));
                }
                Json::Object(members)
            }
            _ => return Err(corrupt(self.ty)),
        })
    }

    fn body(&mut self) -> Result<Value, SqlError> {
        let ty = self.ty;
        Ok(match ty {
            SqlType::Int4 => Value::Int4((u32::from_be_bytes(self.fixed()?) ^ 0x8000_0000) as i32),
            SqlType::Int8 => Value::Int8(self.int8()?),
            SqlType::Int2 => Value::Int2((u16::from_be_bytes(self.fixed()?) ^ 0x8000) as i16),
            SqlType::Bool => Value::Bool(self.byte()? != 0),
            SqlType::Oid | SqlType::Reg(_) => Value::Oid(u32::from_be_bytes(self.fixed()?)),
            SqlType::Float4 => {
                let bits = u32::from_be_bytes(self.fixed()?);
                Value::Float4(f32::from_bits(if bits >> 31 == 1 { bits & !(1 << 31) } else { !bits }))
            }
            SqlType::Float8 => {
                let bits = u64::from_be_bytes(self.fixed()?);
                Value::Float8(f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits }))
            }
            SqlType::Numeric(_) => Value::Numeric(self.numeric()?),
            SqlType::Char(_) => Value::fit_string(&self.text()?, ty, true)?,
            SqlType::Text
            | SqlType::Varchar(_)
            | SqlType::Name
            | SqlType::SingleChar
            | SqlType::Unknown
            | SqlType::Void => Value::text(self.text()?),
            SqlType::Json => Value::Json(self.text()?.into()),
            SqlType::Jsonb => Value::Jsonb(self.json(0)?.to_string().into()),
            SqlType::Bytea => Value::Bytea(self.bytes()?.into()),
            SqlType::Date => Value::Date((u32::from_be_bytes(self.fixed()?) ^ 0x8000_0000) as i32),
            SqlType::Time(_) => Value::Time(self.int8()?),
            SqlType::Timetz(_) => {
                let utc_us = self.int8()?;
                let west_s = (u32::from_be_bytes(self.fixed()?) ^ 0x8000_0000) as i32;
                let micros = utc_us.checked_sub(i64::from(west_s) * crate::types::calendar::SECOND_US);
                Value::Timetz(ZonedTime { micros: micros.ok_or_else(|| corrupt(ty))?, west_s })
            }
            SqlType::Timestamp(_) => Value::Timestamp(self.int8()?),
            SqlType::Timestamptz(_) => Value::Timestamptz(self.int8()?),
            SqlType::Interval(_) => {
                let total = (u128::from_be_bytes(self.fixed()?) ^ (1 << 127)) as i128;
                Value::Interval(interval_of(total))
            }
            SqlType::Uuid => Value::Uuid(self.fixed()?),
            SqlType::Array(element) => self.array(element)?,
            SqlType::Int2Vector => self.array(&SqlType::Int2)?,
            SqlType::OidVector => self.array(&SqlType::Oid)?,
            SqlType::Record => return Err(corrupt(ty)),
        })
    }

    fn int8(&mut self) -> Result<i64, SqlError> {
        Ok((u64::from_be_bytes(self.fixed()?) ^ (1 << 63)) as i64)
    }
}

/// An interval of a length: as many months as fit, then days.
fn interval_of(total: i128) -> Interval {
    let day = i128::from(crate::types::calendar::DAY_US);
    let months = (total / (day * 30)).clamp(i128::from(i32::MIN), i128::from(i32::MAX));
    let rest = total - months * day * 30;
    let days = (rest / day).clamp(i128::from(i32::MIN), i128::from(i32::MAX));
    Interval { months: months as i32, days: days as i32, micros: (rest - days * day) as i64 }
}

/// Reads the value at the start of `rest` and moves on behind it.
///
/// # Errors
/// XX000 if the key is damaged or of another type.
#[inline]
pub fn decode_value(rest: &mut &[u8], ty: &SqlType, descending: bool) -> Result<Value, SqlError> {
    let mask = if descending { 0xff } else { 0 };
    let mut reader = Reader { rest, mask, ty };
    match reader.byte()? {
        VALUE => reader.body(),
        NULL | NULL_BELOW => Ok(Value::Null),
        _ => Err(corrupt(ty)),
    }
}

/// Moves `rest` behind the value at its start.
///
/// # Errors
/// As [`decode_value`].
#[inline]
pub fn skip_value(rest: &mut &[u8], ty: &SqlType, descending: bool) -> Result<(), SqlError> {
    let mask = if descending { 0xff } else { 0 };
    let tag = rest.first().map(|b| b ^ mask).ok_or_else(|| corrupt(ty))?;
    let fixed = match ty {
        _ if tag == NULL || tag == NULL_BELOW => 0,
        SqlType::Bool => 1,
        SqlType::Int2 => 2,
        SqlType::Int4 | SqlType::Date | SqlType::Oid | SqlType::Reg(_) | SqlType::Float4 => 4,
        SqlType::Int8 | SqlType::Time(_) | SqlType::Timestamp(_) | SqlType::Timestamptz(_) | SqlType::Float8 => 8,
        SqlType::Timetz(_) => 12,
        SqlType::Interval(_) | SqlType::Uuid => 16,
        _ => return decode_value(rest, ty, descending).map(drop),
    };
    *rest = rest.get(1 + fixed..).ok_or_else(|| corrupt(ty))?;
    Ok(())
}

//! Binary form of values on the wire, as PostgreSQL's `send` and `recv` functions have it.

use super::{Array, Interval, Numeric, SqlType, Value, ZonedTime, json};
use crate::{SqlError, SqlState};
use bytes::{Buf, BufMut};
use std::sync::Arc;

fn invalid(ty: &SqlType) -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY, format!("incorrect binary data format for type {ty}"))
}

fn fixed<const N: usize>(ty: &SqlType, bytes: &[u8]) -> Result<[u8; N], SqlError> {
    bytes.try_into().map_err(|_| invalid(ty))
}

fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| SqlError::new(SqlState(*b"22021"), "invalid byte sequence for encoding \"UTF8\""))?;
    if text.contains('\0') {
        return Err(SqlError::new(SqlState(*b"22021"), "invalid byte sequence for encoding \"UTF8\": 0x00"));
    }
    Ok(text)
}

impl Value {
    /// Reads a value of a type from its binary form.
    ///
    /// # Errors
    /// 22P03 for a malformed message, else as [`Value::parse_text`].
    pub fn parse_binary(ty: &SqlType, bytes: &[u8]) -> Result<Value, SqlError> {
        Ok(match ty {
            SqlType::Int4 => Value::Int4(i32::from_be_bytes(fixed(ty, bytes)?)),
            SqlType::Int8 => Value::Int8(i64::from_be_bytes(fixed(ty, bytes)?)),
            SqlType::Int2 => Value::Int2(i16::from_be_bytes(fixed(ty, bytes)?)),
            SqlType::Text | SqlType::Unknown | SqlType::Name | SqlType::SingleChar => Value::text(utf8(bytes)?),
            SqlType::Varchar(_) | SqlType::Char(_) => Value::fit_string(utf8(bytes)?, ty, false)?,
            SqlType::Bool => Value::Bool(fixed::<1>(ty, bytes)?[0] != 0),
            SqlType::Oid | SqlType::Reg(_) => Value::Oid(u32::from_be_bytes(fixed(ty, bytes)?)),
            SqlType::Float4 => Value::Float4(f32::from_be_bytes(fixed(ty, bytes)?)),
            SqlType::Float8 => Value::Float8(f64::from_be_bytes(fixed(ty, bytes)?)),
            SqlType::Numeric(limits) => {
                let value = Numeric::parse_binary(bytes)?;
                Value::Numeric(match limits {
                    Some((precision, scale)) => value.fit(*precision, *scale)?,
                    None => value,
                })
            }
            SqlType::Bytea => Value::Bytea(bytes.into()),
            SqlType::Date => {
                let day = i32::from_be_bytes(fixed(ty, bytes)?);
                if day != i32::MAX && day != i32::MIN {
                    super::date_time::checked_day(i64::from(day))?;
                }
                Value::Date(day)
            }
            SqlType::Time(_) => {
                let us = i64::from_be_bytes(fixed(ty, bytes)?);
                if !(0..=super::calendar::DAY_US).contains(&us) {
                    return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, "time out of range"));
                }
                Value::Time(us).rounded(ty)
            }
            SqlType::Timetz(_) => {
                let mut b: &[u8] = &fixed::<12>(ty, bytes)?;
                let zoned = ZonedTime { micros: b.get_i64(), west_s: b.get_i32() };
                if !(0..=super::calendar::DAY_US).contains(&zoned.micros) {
                    return Err(SqlError::new(SqlState::DATETIME_OVERFLOW, "time out of range"));
                }
                if i64::from(zoned.west_s).abs() >= super::zoned_time::ZONE_SECONDS_END {
                    return Err(SqlError::new(SqlState(*b"22009"), "time zone displacement out of range"));
                }
                Value::Timetz(zoned).rounded(ty)
            }
            SqlType::Timestamp(_) => Value::Timestamp(instant(ty, bytes)?).rounded(ty),
            SqlType::Timestamptz(_) => Value::Timestamptz(instant(ty, bytes)?).rounded(ty),
            SqlType::Interval(_) => {
                let mut b: &[u8] = &fixed::<16>(ty, bytes)?;
                let (micros, days, months) = (b.get_i64(), b.get_i32(), b.get_i32());
                Value::Interval(Interval { months, days, micros }).rounded(ty)
            }
            SqlType::Uuid => Value::Uuid(fixed(ty, bytes)?),
            SqlType::Json => {
                let text = utf8(bytes)?;
                json::Json::check(text)?;
                Value::Json(text.into())
            }
            SqlType::Jsonb => match bytes.split_first() {
                Some((1, text)) => Value::Jsonb(json::Json::parse(utf8(text)?)?.normalize().to_string().into()),
                _ => return Err(invalid(ty)),
            },
            SqlType::Array(element) => parse_array(ty, element, bytes)?,
            SqlType::Int2Vector => parse_array(ty, &SqlType::Int2, bytes)?,
            SqlType::OidVector => parse_array(ty, &SqlType::Oid, bytes)?,
            SqlType::Void => Value::text(""),
            SqlType::Record => return Err(SqlError::unsupported("input of anonymous composite types")),
        })
    }

    /// Writes the binary form of a value of a type. NULL writes nothing: callers tell it apart.
    pub fn write_binary(&self, ty: &SqlType, out: &mut impl BufMut) {
        match self {
            Value::Null => {}
            Value::Int4(v) => out.put_i32(*v),
            Value::Int8(v) => out.put_i64(*v),
            Value::Text(text) | Value::Json(text) => out.put_slice(text.as_bytes()),
            Value::Jsonb(text) => {
                out.put_u8(1);
                out.put_slice(text.as_bytes());
            }
            Value::Bool(v) => out.put_u8(u8::from(*v)),
            Value::Int2(v) => out.put_i16(*v),
            Value::Oid(v) => out.put_u32(*v),
            Value::Float4(v) => out.put_f32(*v),
            Value::Float8(v) => out.put_f64(*v),
            Value::Numeric(v) => v.write_binary(out),
            Value::Bytea(v) => out.put_slice(v),
            Value::Date(v) => out.put_i32(*v),
            Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => out.put_i64(*v),
            Value::Timetz(v) => {
                out.put_i64(v.micros);
                out.put_i32(v.west_s);
            }
            Value::Interval(v) => {
                out.put_i64(v.micros);
                out.put_i32(v.days);
                out.put_i32(v.months);
            }
            Value::Uuid(v) => out.put_slice(v),
            Value::Array(array) => {
                let _ = ty;
                write_array(array, out);
            }
            Value::Record(fields) => {
                out.put_i32(fields.len() as i32);
                for field in fields.iter() {
                    let ty = field.natural_type();
                    out.put_u32(ty.oid());
                    put_counted(field, &ty, out);
                }
            }
        }
    }
}

fn instant(ty: &SqlType, bytes: &[u8]) -> Result<i64, SqlError> {
    let us = i64::from_be_bytes(fixed(ty, bytes)?);
    if us == i64::MIN || us == i64::MAX { Ok(us) } else { super::date_time::checked_timestamp(us) }
}

fn put_counted(value: &Value, ty: &SqlType, out: &mut impl BufMut) {
    if value.is_null() {
        return out.put_i32(-1);
    }
    let mut bytes = Vec::new();
    value.write_binary(ty, &mut bytes);
    out.put_i32(bytes.len() as i32);
    out.put_slice(&bytes);
}

fn write_array(array: &Array, out: &mut impl BufMut) {
    out.put_i32(array.dimensions.len() as i32);
    out.put_i32(i32::from(array.values.iter().any(Value::is_null)));
    out.put_u32(array.element.oid());
    for (length, lower) in &array.dimensions {
        out.put_i32(*length);
        out.put_i32(*lower);
    }
    for value in &array.values {
        put_counted(value, &array.element, out);
    }
}

fn parse_array(ty: &SqlType, element: &SqlType, mut bytes: &[u8]) -> Result<Value, SqlError> {
    if bytes.len() < 12 {
        return Err(invalid(ty));
    }
    let (count, _has_null, oid) = (bytes.get_i32(), bytes.get_i32(), bytes.get_u32());
    if !(0..=super::array::MAX_DIMENSIONS as i32).contains(&count) {
        return Err(SqlError::new(SqlState::INVALID_BINARY, format!("invalid number of dimensions: {count}")));
    }
    if oid != element.oid() {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("binary data has array element type {oid} instead of expected {}", element.oid()),
        ));
    }
    if bytes.len() < count as usize * 8 {
        return Err(invalid(ty));
    }
    let dimensions: Vec<(i32, i32)> = (0..count).map(|_| (bytes.get_i32(), bytes.get_i32())).collect();
    let mut total: usize = usize::from(!dimensions.is_empty());
    for (length, _) in &dimensions {
        let length = usize::try_from(*length).map_err(|_| invalid(ty))?;
        total = total.checked_mul(length).filter(|n| *n <= super::array::MAX_ELEMENTS).ok_or_else(|| invalid(ty))?;
    }
    // Each element takes at least its length word, so a short message cannot ask for much memory.
    if bytes.len() / 4 < total {
        return Err(invalid(ty));
    }
    let mut values = Vec::with_capacity(total);
    for _ in 0..total {
        if bytes.len() < 4 {
            return Err(invalid(ty));
        }
        let length = bytes.get_i32();
        if length < 0 {
            values.push(Value::Null);
            continue;
        }
        let item = bytes.get(..length as usize).ok_or_else(|| invalid(ty))?;
        values.push(Value::parse_binary(element, item)?);
        bytes.advance(length as usize);
    }
    if !bytes.is_empty() {
        return Err(invalid(ty));
    }
    let dimensions = if values.is_empty() { vec![] } else { dimensions };
    Ok(Value::Array(Arc::new(Array { element: element.clone(), dimensions, values })))
}

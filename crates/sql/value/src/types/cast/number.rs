//! Casts to numbers.

use super::kind::cannot_cast;
use crate::types::json::Json;
use crate::types::number::{float_overflow, float_underflow, out_of_range};
use crate::types::{Numeric, SqlType, Value};
use crate::{SqlError, SqlState};

pub(super) fn to_integer(value: &Value, to: &SqlType) -> Result<Value, SqlError> {
    let number = match value {
        Value::Float4(v) => float_to_i64(f64::from(*v)),
        Value::Float8(v) => float_to_i64(*v),
        Value::Numeric(v) => match v {
            Numeric::NaN => {
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot convert NaN to {to}")));
            }
            Numeric::Infinity | Numeric::NegInfinity => {
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot convert infinity to {to}")));
            }
            Numeric::Finite(_) => v.to_i64(),
        },
        Value::Bool(v) => Some(i64::from(*v)),
        Value::Jsonb(text) => match Json::parse(text)? {
            Json::Number(number) => Numeric::parse(&number)?.to_i64(),
            other => return Err(json_mismatch(&other, to)),
        },
        other => match other.as_i64() {
            Some(v) => Some(v),
            None => return Err(cannot_cast(&other.natural_type(), to)),
        },
    };
    let fit = |v: i64| {
        Some(match to {
            SqlType::Int2 => Value::Int2(i16::try_from(v).ok()?),
            SqlType::Int4 => Value::Int4(i32::try_from(v).ok()?),
            SqlType::Int8 => Value::Int8(v),
            // int4 to oid keeps the bits.
            _ => Value::Oid(if matches!(value, Value::Int2(_) | Value::Int4(_)) {
                v as u32
            } else {
                u32::try_from(v).ok()?
            }),
        })
    };
    number.and_then(fit).ok_or_else(|| out_of_range(if matches!(to, SqlType::Reg(_)) { &SqlType::Oid } else { to }))
}

fn float_to_i64(value: f64) -> Option<i64> {
    let rounded = value.round_ties_even();
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded).then_some(rounded as i64)
}

pub(super) fn to_float(value: &Value, to: &SqlType) -> Result<Value, SqlError> {
    let number = match value {
        Value::Float4(v) => {
            return Ok(match to {
                SqlType::Float4 => Value::Float4(*v),
                _ => Value::Float8(f64::from(*v)),
            });
        }
        Value::Float8(v) => *v,
        Value::Numeric(v) => {
            let float = v.to_f64();
            if float.is_infinite() && matches!(v, Numeric::Finite(_)) {
                return Err(SqlError::new(SqlState::OUT_OF_RANGE, format!("\"{v}\" is out of range for type {to}")));
            }
            float
        }
        Value::Jsonb(text) => match Json::parse(text)? {
            Json::Number(number) => Numeric::parse(&number)?.to_f64(),
            other => return Err(json_mismatch(&other, to)),
        },
        other => match other.as_i64() {
            Some(v) => v as f64,
            None => return Err(cannot_cast(&other.natural_type(), to)),
        },
    };
    if *to == SqlType::Float8 {
        return Ok(Value::Float8(number));
    }
    let small = number as f32;
    if small.is_infinite() && number.is_finite() {
        return Err(float_overflow());
    }
    if small == 0.0 && number != 0.0 {
        return Err(float_underflow());
    }
    Ok(Value::Float4(small))
}

pub(super) fn to_numeric(value: &Value, limits: Option<(u16, i16)>) -> Result<Value, SqlError> {
    let number = match value {
        Value::Numeric(v) => v.clone(),
        Value::Float4(v) => Numeric::from_f32(*v),
        Value::Float8(v) => Numeric::from_f64(*v),
        Value::Jsonb(text) => match Json::parse(text)? {
            Json::Number(number) => Numeric::parse(&number)?,
            other => return Err(json_mismatch(&other, &SqlType::Numeric(None))),
        },
        other => match other.as_i64() {
            Some(v) => Numeric::from(v),
            None => return Err(cannot_cast(&other.natural_type(), &SqlType::Numeric(None))),
        },
    };
    Ok(Value::Numeric(match limits {
        Some((precision, scale)) => number.fit(precision, scale)?,
        None => number,
    }))
}

/// 22023 in PostgreSQL's words.
pub(super) fn json_mismatch(value: &Json, to: &SqlType) -> SqlError {
    let kind = match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "numeric",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    SqlError::new(SqlState::INVALID_PARAMETER, format!("cannot cast jsonb {kind} to type {}", to.base()))
}

//! Text form of values of every type: what clients send and read, what COPY moves, what casts to and from text give.

use super::EvalSettings;
use super::cast::special_time;
use super::{Array, CastContext, SqlType, Value, array, bytea, date_time, interval, json, number, style};
use crate::identifier::{NAME_BYTES_MAX, cut};
use crate::{SqlError, SqlState};
use bytes::BufMut;
use std::sync::Arc;

impl Value {
    /// Whether it is NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// A text value.
    pub fn text(text: impl Into<Arc<str>>) -> Value {
        Value::Text(text.into())
    }

    /// Its text, if it is text, json or jsonb.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) | Value::Json(text) | Value::Jsonb(text) => Some(text),
            _ => None,
        }
    }

    /// Its number, if it is an integer of any width or an oid.
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int2(v) => Some(i64::from(*v)),
            Value::Int4(v) => Some(i64::from(*v)),
            Value::Int8(v) => Some(*v),
            Value::Oid(v) => Some(i64::from(*v)),
            _ => None,
        }
    }

    /// Reads a value of a type from its text. Length and precision of the type apply as at assignment.
    ///
    /// # Errors
    /// 22P02, 22003, 22007, 22008, 22001, 22P05 in PostgreSQL's words. Names of relations (`regclass`) cannot be read here,
    /// only numbers: see the cast.
    pub fn parse_text(ty: &SqlType, text: &str, settings: &EvalSettings) -> Result<Value, SqlError> {
        Value::parse_text_at(ty, text, settings, None)
    }

    /// As [`Value::parse_text`] at a moment (microseconds since 2000-01-01 UTC): what `now` and `today` mean, and the zone of a time of day.
    ///
    /// # Errors
    /// As [`Value::parse_text`].
    pub fn parse_text_at(
        ty: &SqlType,
        text: &str,
        settings: &EvalSettings,
        now_us: Option<i64>,
    ) -> Result<Value, SqlError> {
        if let Some(now_us) = now_us
            && let Some(instant) = special_time(ty, text, now_us, settings.time_zone)
        {
            let context = CastContext { now_us: Some(now_us), ..CastContext::new(settings) };
            return Value::Timestamptz(instant).cast(&SqlType::Timestamptz(None), ty, false, &context);
        }
        Ok(match ty {
            SqlType::Int4 => Value::Int4(number::parse_int(ty, text, i32::MIN.into(), i32::MAX.into())? as i32),
            SqlType::Int8 => Value::Int8(number::parse_int(ty, text, i64::MIN, i64::MAX)?),
            SqlType::Text | SqlType::Unknown => Value::text(text),
            SqlType::Varchar(_) | SqlType::Char(_) => Value::fit_string(text, ty, false)?,
            SqlType::Bool => Value::Bool(parse_bool(text).ok_or_else(|| number::invalid_syntax(ty, text))?),
            SqlType::Int2 => Value::Int2(number::parse_int(ty, text, i16::MIN.into(), i16::MAX.into())? as i16),
            SqlType::Oid | SqlType::Reg(_) => Value::Oid(parse_oid(ty, text)?),
            SqlType::Float4 => Value::Float4(number::parse_f32(ty, text)?),
            SqlType::Float8 => Value::Float8(number::parse_f64(ty, text)?),
            SqlType::Numeric(limits) => {
                let value = super::Numeric::parse(text)?;
                Value::Numeric(match limits {
                    Some((precision, scale)) => value.fit(*precision, *scale)?,
                    None => value,
                })
            }
            SqlType::Name => Value::text(cut(text, NAME_BYTES_MAX)),
            SqlType::SingleChar => Value::text(text.chars().next().map_or(String::new(), String::from)),
            SqlType::Bytea => Value::Bytea(bytea::parse_bytea(text)?.into()),
            SqlType::Date => Value::Date(date_time::parse_date(text, settings.styles.order)?),
            SqlType::Time(_) => Value::Time(date_time::parse_time(text, settings.styles.order)?).rounded(ty),
            SqlType::Timetz(_) => {
                let (zone, order) = (settings.time_zone, settings.styles.order);
                Value::Timetz(date_time::parse_zoned_time(text, zone, order, now_us)?).rounded(ty)
            }
            SqlType::Timestamp(_) => {
                Value::Timestamp(date_time::parse_timestamp(text, settings.styles.order)?).rounded(ty)
            }
            SqlType::Timestamptz(_) => {
                let utc = date_time::parse_timestamptz(text, settings.time_zone, settings.styles.order)?;
                Value::Timestamptz(utc).rounded(ty)
            }
            SqlType::Interval(modifier) => {
                Value::Interval(interval::parse(text, modifier.unwrap_or_default(), settings.styles.interval)?)
                    .rounded(ty)
            }
            SqlType::Uuid => Value::Uuid(bytea::parse_uuid(text)?),
            SqlType::Json => {
                json::Json::check(text)?;
                Value::Json(text.into())
            }
            SqlType::Jsonb => Value::Jsonb(json::Json::parse(text)?.normalize().to_string().into()),
            SqlType::Array(element) => Value::Array(Arc::new(array::parse(element, text, settings, now_us)?)),
            SqlType::Int2Vector => vector(SqlType::Int2, text, settings)?,
            SqlType::OidVector => vector(SqlType::Oid, text, settings)?,
            SqlType::Void => Value::text(""),
            SqlType::Record => {
                return Err(SqlError::unsupported("input of anonymous composite types"));
            }
        })
    }

    /// Writes the text of a value of a type. NULL writes nothing: callers tell it apart.
    pub fn write_text(&self, ty: &SqlType, settings: &EvalSettings, out: &mut impl BufMut) {
        match self {
            Value::Null => {}
            Value::Int4(v) => number::write_int(i64::from(*v), out),
            Value::Int8(v) => number::write_int(*v, out),
            Value::Text(text) | Value::Json(text) | Value::Jsonb(text) => out.put_slice(text.as_bytes()),
            Value::Bool(v) => out.put_u8(if *v { b't' } else { b'f' }),
            Value::Int2(v) => number::write_int(i64::from(*v), out),
            Value::Oid(v) => number::write_int(i64::from(*v), out),
            Value::Float4(v) => number::write_f32(*v, settings.extra_float_digits, out),
            Value::Float8(v) => number::write_f64(*v, settings.extra_float_digits, out),
            Value::Numeric(v) => v.write_text(out),
            Value::Bytea(v) => bytea::write_bytea(v, settings.bytea_escape, out),
            Value::Date(v) => style::write_date(*v, settings.styles, out),
            Value::Time(v) => date_time::write_time(*v, out),
            Value::Timetz(v) => date_time::write_zoned_time(*v, out),
            Value::Timestamp(v) => style::write_timestamp(*v, settings.styles, out),
            Value::Timestamptz(v) => style::write_timestamptz(*v, settings.time_zone, settings.styles, out),
            Value::Interval(v) => interval::write(*v, settings.styles.interval, out),
            Value::Uuid(v) => bytea::write_uuid(v, out),
            Value::Array(array) => match ty {
                SqlType::Int2Vector | SqlType::OidVector => {
                    for (i, value) in array.values.iter().enumerate() {
                        if i > 0 {
                            out.put_u8(b' ');
                        }
                        value.write_text(&array.element, settings, out);
                    }
                }
                _ => array::write(array, &array.element, settings, out),
            },
            Value::Record(fields) => write_record(fields, settings, out),
        }
    }

    /// The text of a date or timestamp as ISO 8601 nearly has it, whatever the settings' style.
    pub fn to_iso_text(&self, ty: &SqlType, settings: &EvalSettings) -> String {
        let (iso, mut out) = (style::Styles::default(), Vec::new());
        match self {
            Value::Date(v) => style::write_date(*v, iso, &mut out),
            Value::Timestamp(v) => style::write_timestamp(*v, iso, &mut out),
            Value::Timestamptz(v) => style::write_timestamptz(*v, settings.time_zone, iso, &mut out),
            other => other.write_text(ty, settings, &mut out),
        }
        String::from_utf8(out).unwrap_or_default()
    }

    /// Its text as a string; the empty string for NULL.
    pub fn to_text(&self, ty: &SqlType, settings: &EvalSettings) -> String {
        let mut out = Vec::new();
        self.write_text(ty, settings, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// Brings a string to varchar(n) or char(n). Blanks beyond the length are dropped; other characters are an error, unless the
    /// cast is explicit: then they are cut.
    ///
    /// # Errors
    /// 22001.
    pub(crate) fn fit_string(text: &str, ty: &SqlType, explicit: bool) -> Result<Value, SqlError> {
        let (limit, pad) = match ty {
            SqlType::Varchar(Some(n)) => (*n as usize, false),
            SqlType::Char(n) if *n > 0 => (*n as usize, true),
            SqlType::Name => return Ok(Value::text(cut(text, NAME_BYTES_MAX))),
            _ => return Ok(Value::text(text)),
        };
        // Bytes are at least characters: most texts need no count.
        let length = if text.len() <= limit && !pad { return Ok(Value::text(text)) } else { text.chars().count() };
        if length > limit {
            let end = text.char_indices().nth(limit).map_or(text.len(), |(at, _)| at);
            if !explicit && text[end..].bytes().any(|b| b != b' ') {
                return Err(SqlError::new(SqlState::STRING_TOO_LONG, format!("value too long for type {ty}")));
            }
            return Ok(Value::text(&text[..end]));
        }
        if pad && length < limit {
            let mut padded = String::with_capacity(text.len() + limit - length);
            padded.push_str(text);
            // Not one at a time: a character is looked at for what it takes.
            let mut missing = limit - length;
            while missing > 0 {
                let blanks = &BLANKS[..missing.min(BLANKS.len())];
                padded.push_str(blanks);
                missing -= blanks.len();
            }
            return Ok(Value::text(padded));
        }
        Ok(Value::text(text))
    }
}

/// What char(n) is filled with, some at a time.
const BLANKS: &str = "                                                                                ";

/// As `parse_bool`: unique prefixes of true, false, yes, no, on, off; 1 and 0.
fn parse_bool(text: &str) -> Option<bool> {
    let body = number::trim(text).to_ascii_lowercase();
    match body.as_str() {
        "" | "o" => None,
        "1" | "on" => Some(true),
        "0" | "of" | "off" => Some(false),
        word if "true".starts_with(word) || "yes".starts_with(word) => Some(true),
        word if "false".starts_with(word) || "no".starts_with(word) => Some(false),
        _ => None,
    }
}

fn parse_oid(ty: &SqlType, text: &str) -> Result<u32, SqlError> {
    if *ty != SqlType::Oid && number::trim(text) == "-" {
        return Ok(0);
    }
    // Negative numbers wrap, as in PostgreSQL.
    Ok(number::parse_int(&SqlType::Oid, text, i32::MIN.into(), u32::MAX.into())? as u32)
}

fn vector(element: SqlType, text: &str, settings: &EvalSettings) -> Result<Value, SqlError> {
    let values: Result<Vec<Value>, SqlError> =
        text.split_ascii_whitespace().map(|item| Value::parse_text(&element, item, settings)).collect();
    let values = values?;
    let dimensions = vec![(values.len() as i32, 0)];
    Ok(Value::Array(Arc::new(Array { element, dimensions, values })))
}

fn write_record(fields: &[Value], settings: &EvalSettings, out: &mut impl BufMut) {
    out.put_u8(b'(');
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            out.put_u8(b',');
        }
        if field.is_null() {
            continue;
        }
        let mut text = Vec::new();
        field.write_text(&field.natural_type(), settings, &mut text);
        let special = |b: &u8| matches!(b, b'"' | b'\\' | b'(' | b')' | b',') || b.is_ascii_whitespace();
        if !text.is_empty() && !text.iter().any(special) {
            out.put_slice(&text);
            continue;
        }
        out.put_u8(b'"');
        for b in text {
            if matches!(b, b'"' | b'\\') {
                out.put_u8(b);
            }
            out.put_u8(b);
        }
        out.put_u8(b'"');
    }
    out.put_u8(b')');
}

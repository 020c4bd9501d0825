//! int2, int4, int8, oid, float4, float8: text forms.

use super::SqlType;
use crate::{SqlError, SqlState};
use bytes::BufMut;

/// 22P02 in PostgreSQL's words.
pub(crate) fn invalid_syntax(ty: &SqlType, text: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT, format!("invalid input syntax for type {}: \"{text}\"", ty.base()))
}

/// 22003 in PostgreSQL's words, for a text that names a number beyond its type.
pub(crate) fn value_out_of_range(ty: &SqlType, text: &str) -> SqlError {
    SqlError::new(SqlState::OUT_OF_RANGE, format!("value \"{text}\" is out of range for type {}", ty.base()))
}

/// 22003 for a result beyond its type: `integer out of range`.
pub fn out_of_range(ty: &SqlType) -> SqlError {
    SqlError::new(SqlState::OUT_OF_RANGE, format!("{} out of range", ty.base()))
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Trims the blanks that C's `isspace` knows.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii() && is_space(c as u8))
}

/// Reads a decimal integer with an optional sign and blanks around it.
pub(crate) fn parse_int(ty: &SqlType, text: &str, min: i64, max: i64) -> Result<i64, SqlError> {
    let body = trim(text);
    let (negative, digits) = match body.as_bytes().first() {
        Some(b'-') => (true, &body[1..]),
        Some(b'+') => (false, &body[1..]),
        _ => (false, body),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(invalid_syntax(ty, text));
    }
    let mut value: i64 = 0;
    for b in digits.bytes() {
        let digit = i64::from(b - b'0');
        // Counted downwards, since i64::MIN has no positive twin.
        value = value.checked_mul(10).and_then(|v| v.checked_sub(digit)).ok_or_else(|| value_out_of_range(ty, text))?;
    }
    let value = if negative { Some(value) } else { value.checked_neg() };
    match value {
        Some(v) if v >= min && v <= max => Ok(v),
        _ => Err(value_out_of_range(ty, text)),
    }
}

/// 22003 for floats too large.
pub fn float_overflow() -> SqlError {
    SqlError::new(SqlState::OUT_OF_RANGE, "value out of range: overflow")
}

/// 22003 for floats too small.
pub fn float_underflow() -> SqlError {
    SqlError::new(SqlState::OUT_OF_RANGE, "value out of range: underflow")
}

/// Reads a float8. Rust's parser is correctly rounded, as C's is.
pub(crate) fn parse_f64(ty: &SqlType, text: &str) -> Result<f64, SqlError> {
    parse_float(ty, text, |body| body.parse().ok())
}

/// Reads a float4.
pub(crate) fn parse_f32(ty: &SqlType, text: &str) -> Result<f32, SqlError> {
    // Parsed at its own width: rounding a float8 would round twice.
    parse_float(ty, text, |body| body.parse().ok().map(|value: f32| f64::from(value))).map(|value| value as f32)
}

fn parse_float(ty: &SqlType, text: &str, parse: impl Fn(&str) -> Option<f64>) -> Result<f64, SqlError> {
    let body = trim(text);
    if let Some(special) = special_float(body) {
        return Ok(special);
    }
    let value = Some(body).filter(|body| looks_like_float(body)).and_then(parse);
    let value = value.ok_or_else(|| invalid_syntax(ty, text))?;
    let is_zero_text = !mantissa(body).bytes().any(|b| (b'1'..=b'9').contains(&b));
    if value.is_infinite() || (value == 0.0 && !is_zero_text) {
        return Err(SqlError::new(SqlState::OUT_OF_RANGE, format!("\"{text}\" is out of range for type {ty}")));
    }
    Ok(value)
}

fn mantissa(text: &str) -> &str {
    text.split(['e', 'E']).next().unwrap_or(text)
}

fn looks_like_float(text: &str) -> bool {
    text.bytes().any(|b| b.is_ascii_digit())
        && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'))
}

fn special_float(text: &str) -> Option<f64> {
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if body.eq_ignore_ascii_case("infinity") || body.eq_ignore_ascii_case("inf") {
        return Some(if negative { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    text.eq_ignore_ascii_case("nan").then_some(f64::NAN)
}

/// Writes an integer without going through `fmt`.
pub(crate) fn write_int(value: i64, out: &mut impl BufMut) {
    let mut buffer = [0u8; 20];
    let mut at = buffer.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    out.put_slice(&buffer[at..]);
}

/// As `float8out`: the shortest text that reads back the same; `extra_float_digits <= 0` rounds to 15 + that many digits.
pub(crate) fn write_f64(value: f64, extra_digits: i32, out: &mut impl BufMut) {
    if let Some(text) = special_text(value) {
        return out.put_slice(text.as_bytes());
    }
    let shortest = if extra_digits > 0 {
        format!("{value:e}")
    } else {
        format!("{value:.*e}", (14 + extra_digits).clamp(0, 14) as usize)
    };
    put_decimal(&shortest, 15, out);
}

/// As `float4out`.
pub(crate) fn write_f32(value: f32, extra_digits: i32, out: &mut impl BufMut) {
    if let Some(text) = special_text(f64::from(value)) {
        return out.put_slice(text.as_bytes());
    }
    let shortest = if extra_digits > 0 {
        format!("{value:e}")
    } else {
        format!("{value:.*e}", (5 + extra_digits).clamp(0, 5) as usize)
    };
    put_decimal(&shortest, 6, out);
}

fn special_text(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("Infinity")
    } else if value == f64::NEG_INFINITY {
        Some("-Infinity")
    } else {
        None
    }
}

/// Turns Rust's `d.ddde-x` into PostgreSQL's choice between plain and scientific notation.
fn put_decimal(scientific: &str, plain_below: i32, out: &mut impl BufMut) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let mut digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    while digits.len() > 1 && digits.ends_with('0') {
        digits.pop();
    }
    out.put_slice(sign.as_bytes());
    if !(-4..plain_below).contains(&exponent) {
        out.put_slice(&digits.as_bytes()[..1]);
        if digits.len() > 1 {
            out.put_u8(b'.');
            out.put_slice(&digits.as_bytes()[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        return out.put_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    }
    if exponent < 0 {
        out.put_slice(b"0.");
        for _ in 0..(-exponent - 1) {
            out.put_u8(b'0');
        }
        return out.put_slice(digits.as_bytes());
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.put_slice(digits.as_bytes());
        for _ in digits.len()..whole {
            out.put_u8(b'0');
        }
    } else {
        out.put_slice(&digits.as_bytes()[..whole]);
        out.put_u8(b'.');
        out.put_slice(&digits.as_bytes()[whole..]);
    }
}

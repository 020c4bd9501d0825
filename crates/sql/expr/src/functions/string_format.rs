//! Strings in other forms: quoting, `format`, encodings, digests.

use super::super::function::{Arguments, Function, Sig};
use super::{bytes_at, shown, str_at};
use crate::identifier::quote_identifier;
use crate::syntax::quote_literal;
use crate::types::{SqlType as T, Text, Value, parse_bytea, parse_hex};
use crate::{SqlError, SqlState};

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(T::Text);
const BYTEA: Sig = Sig::Is(T::Bytea);

pub(super) static TABLE: &[Function] = &[
    Function::pure("quote_ident", &[TEXT], TEXT, |v, _| Ok(Value::text(quote_identifier(str_at(v, 0)?)))),
    Function::pure("quote_literal", &[TEXT], TEXT, |v, _| Ok(Value::text(quote_literal(str_at(v, 0)?)))),
    Function::stable("quote_literal", &[Sig::Any], TEXT, |v, a| Ok(Value::text(quote_literal(&shown(v, 0, a)?)))),
    Function::pure("quote_nullable", &[TEXT], TEXT, |v, _| {
        Ok(Value::text(v[0].as_str().map_or_else(|| "NULL".to_owned(), quote_literal)))
    })
    .lax(),
    Function::stable("format", &[TEXT], TEXT, format),
    Function::stable("format", &[TEXT, Sig::Any], TEXT, format).many().lax(),
    Function::pure("md5", &[TEXT], TEXT, |v, _| Ok(Value::text(md5_hex(str_at(v, 0)?.as_bytes())))),
    Function::pure("md5", &[BYTEA], TEXT, |v, _| Ok(Value::text(md5_hex(bytes_at(v, 0)?)))),
    Function::pure("encode", &[BYTEA, TEXT], TEXT, |v, _| encode(bytes_at(v, 0)?, str_at(v, 1)?)),
    Function::pure("decode", &[TEXT, TEXT], BYTEA, |v, _| decode(str_at(v, 0)?, str_at(v, 1)?)),
    Function::pure("convert_from", &[BYTEA, Sig::Is(T::Name)], TEXT, |v, _| {
        std::str::from_utf8(bytes_at(v, 0)?)
            .map(Value::text)
            .map_err(|_| SqlError::new(SqlState(*b"22021"), "invalid byte sequence for encoding \"UTF8\""))
    }),
    Function::pure("convert_to", &[TEXT, Sig::Is(T::Name)], BYTEA, |v, _| {
        Ok(Value::Bytea(str_at(v, 0)?.as_bytes().to_vec().into()))
    }),
    Function::pure("hashtext", &[TEXT], Sig::Is(T::Int4), |v, _| {
        let hash = str_at(v, 0)?.bytes().fold(0u64, |sum, b| super::mix(sum ^ u64::from(b)));
        Ok(Value::Int4(hash as i32))
    }),
];

fn md5_hex(bytes: &[u8]) -> String {
    use md5::Digest;
    md5::Md5::digest(bytes).iter().fold(String::with_capacity(32), |text, byte| text + &format!("{byte:02x}"))
}

fn unknown_encoding(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, format!("unrecognized encoding: \"{name}\""))
}

fn encode(bytes: &[u8], form: &str) -> R {
    let text = match form.to_ascii_lowercase().as_str() {
        "hex" => hex(bytes)?,
        "base64" => base64(bytes)?,
        "escape" => escape(bytes)?,
        _ => return Err(unknown_encoding(form)),
    };
    Ok(Value::text(text))
}

fn hex(bytes: &[u8]) -> Result<String, SqlError> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = Text::with_bytes(bytes.len() * 2)?;
    out.extend(bytes.iter().flat_map(|b| [b >> 4, b & 15]).map(|digit| DIGITS[digit as usize] as char))?;
    Ok(out.into_string())
}

/// Only zero bytes and those above ASCII are escaped.
fn escape(bytes: &[u8]) -> Result<String, SqlError> {
    let mut out = Text::new();
    for &b in bytes {
        match b {
            b'\\' => out.push_str("\\\\")?,
            0 | 0x80.. => out.extend(['\\', octal(b >> 6), octal(b >> 3), octal(b)].into_iter())?,
            b => out.push(b as char)?,
        }
    }
    Ok(out.into_string())
}

fn octal(digit: u8) -> char {
    (b'0' + (digit & 7)) as char
}

fn decode(text: &str, form: &str) -> R {
    let bytes = match form.to_ascii_lowercase().as_str() {
        "hex" => parse_hex(text)?,
        "base64" => unbase64(text)?,
        "escape" => parse_bytea(text)?,
        _ => return Err(unknown_encoding(form)),
    };
    Ok(Value::Bytea(bytes.into()))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// With a line break after each 76 characters, as PostgreSQL writes it.
fn base64(bytes: &[u8]) -> Result<String, SqlError> {
    let mut out = Text::with_bytes(bytes.len().div_ceil(3) * 4)?;
    let mut column = 0;
    for chunk in bytes.chunks(3) {
        if column == 76 {
            out.push('\n')?;
            column = 0;
        }
        let word = chunk.iter().fold(0u32, |sum, b| sum << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let place = (word >> (18 - 6 * i)) as usize & 63;
            out.push(if i > chunk.len() { '=' } else { BASE64[place] as char })?;
        }
        column += 4;
    }
    Ok(out.into_string())
}

fn base64_digit(c: u8) -> Option<u32> {
    Some(u32::from(match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

fn unbase64(text: &str) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut word, mut have, mut padding) = (0u32, 0, 0);
    for c in text.bytes().filter(|b| !b.is_ascii_whitespace()) {
        let digit = match c {
            b'=' => {
                padding += 1;
                0
            }
            c => match base64_digit(c) {
                Some(digit) if padding == 0 => digit,
                _ => {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER,
                        format!("invalid symbol \"{}\" found while decoding base64 sequence", c as char),
                    ));
                }
            },
        };
        word = word << 6 | digit;
        have += 1;
        if have == 4 {
            out.extend_from_slice(&word.to_be_bytes()[1..4 - padding.min(2)]);
            (word, have) = (0, 0);
        }
    }
    if have != 0 {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, "invalid base64 end sequence")
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

/// `format`: `%s`, `%I`, `%L`, `%%`, with positions, width and `-`.
fn format(values: &[Value], arguments: &Arguments<'_>) -> R {
    let Some(pattern) = values.first().and_then(Value::as_str) else { return Ok(Value::Null) };
    let invalid = |text: String| SqlError::new(SqlState::INVALID_PARAMETER, text);
    let too_few = || invalid("too few arguments for format()".into());
    let mut out = Text::new();
    let mut chars = pattern.chars().peekable();
    let mut next = 1;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c)?;
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            out.push('%')?;
            continue;
        }
        let unterminated =
            || invalid("unterminated format() type specifier".into()).hint("For a single \"%\" use \"%%\".");
        let mut number = String::new();
        let mut left = false;
        let mut position = None;
        let mut kind = chars.next().ok_or_else(unterminated)?;
        loop {
            match kind {
                '-' => left = true,
                '0'..='9' => number.push(kind),
                '$' => position = std::mem::take(&mut number).parse::<usize>().ok(),
                '*' => {
                    let width = values.get(next).and_then(Value::as_i64).ok_or_else(too_few)?;
                    next += 1;
                    left |= width < 0;
                    number = width.unsigned_abs().to_string();
                }
                _ => break,
            }
            kind = chars.next().ok_or_else(unterminated)?;
        }
        let index = match position {
            Some(0) => return Err(invalid("format specifies argument 0, but arguments are numbered from 1".into())),
            Some(index) => index,
            None => next,
        };
        next = index + 1;
        let value = values.get(index).ok_or_else(too_few)?;
        let text = match (kind, value.is_null()) {
            ('s', true) => String::new(),
            ('L', true) => "NULL".into(),
            ('I', true) => {
                return Err(SqlError::new(SqlState(*b"22004"), "null values cannot be formatted as an SQL identifier"));
            }
            ('s', false) => shown(values, index, arguments)?,
            ('L', false) => quote_literal(&shown(values, index, arguments)?),
            ('I', false) => quote_identifier(&shown(values, index, arguments)?),
            (other, _) => {
                return Err(invalid(format!("unrecognized format() type specifier \"{other}\""))
                    .hint("For a single \"%\" use \"%%\"."));
            }
        };
        let width = number.parse::<usize>().unwrap_or(0);
        let padding = width.saturating_sub(text.chars().count());
        if left {
            out.push_str(&text)?;
        }
        out.push_repeated(" ", padding)?;
        if !left {
            out.push_str(&text)?;
        }
    }
    Ok(out.into_value())
}

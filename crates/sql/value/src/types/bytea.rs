//! bytea and uuid: text forms.

use super::SqlType;
use super::number::invalid_syntax;
use crate::{SqlError, SqlState};
use bytes::BufMut;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Reads hexadecimal digits, blanks between pairs allowed.
pub fn parse_hex(text: &str) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut high: Option<u8> = None;
    for c in text.chars() {
        if high.is_none() && c.is_ascii_whitespace() {
            continue;
        }
        let digit = c
            .to_digit(16)
            .ok_or_else(|| SqlError::new(SqlState::INVALID_PARAMETER, format!("invalid hexadecimal digit: \"{c}\"")))?
            as u8;
        match high.take() {
            None => high = Some(digit),
            Some(first) => out.push(first << 4 | digit),
        }
    }
    if high.is_some() {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, "invalid hexadecimal data: odd number of digits"));
    }
    Ok(out)
}

/// Reads both forms: `\xdeadbeef` and octal escapes.
pub fn parse_bytea(text: &str) -> Result<Vec<u8>, SqlError> {
    if let Some(hex) = text.strip_prefix("\\x") {
        return parse_hex(hex);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            out.push(bytes[at]);
            at += 1;
        } else if bytes.get(at + 1) == Some(&b'\\') {
            out.push(b'\\');
            at += 2;
        } else {
            let octal = |i: usize, max: u8| bytes.get(at + i).filter(|b| (b'0'..=max).contains(b)).map(|b| b - b'0');
            match (octal(1, b'3'), octal(2, b'7'), octal(3, b'7')) {
                (Some(a), Some(b), Some(c)) => out.push(a << 6 | b << 3 | c),
                _ => return Err(SqlError::new(SqlState::INVALID_TEXT, "invalid input syntax for type bytea")),
            }
            at += 4;
        }
    }
    Ok(out)
}

/// Two digits a byte.
pub(crate) fn put_hex(bytes: &[u8], out: &mut impl BufMut) {
    for b in bytes {
        out.put_u8(HEX[usize::from(b >> 4)]);
        out.put_u8(HEX[usize::from(b & 15)]);
    }
}

/// Writes `\x..`, or the escape form if the setting asks for it.
pub(crate) fn write_bytea(bytes: &[u8], escape: bool, out: &mut impl BufMut) {
    if !escape {
        out.put_slice(b"\\x");
        return put_hex(bytes, out);
    }
    for &b in bytes {
        match b {
            b'\\' => out.put_slice(b"\\\\"),
            0x20..=0x7e => out.put_u8(b),
            _ => out.put_slice(format!("\\{b:03o}").as_bytes()),
        }
    }
}

/// Reads a uuid: digits in any case, braces and hyphens after each fourth digit allowed.
pub(crate) fn parse_uuid(text: &str) -> Result<[u8; 16], SqlError> {
    let bad = || invalid_syntax(&SqlType::Uuid, text);
    let body = match (text.strip_prefix('{'), text.ends_with('}')) {
        (Some(rest), true) => &rest[..rest.len() - 1],
        (None, false) => text,
        _ => return Err(bad()),
    };
    let mut out = [0u8; 16];
    let mut digits = 0;
    let mut hyphen_before = true;
    for c in body.chars() {
        if c == '-' {
            if hyphen_before || digits % 4 != 0 || digits == 32 {
                return Err(bad());
            }
            hyphen_before = true;
            continue;
        }
        let digit = c.to_digit(16).filter(|_| digits < 32).ok_or_else(bad)? as u8;
        out[digits / 2] |= if digits % 2 == 0 { digit << 4 } else { digit };
        digits += 1;
        hyphen_before = false;
    }
    if digits == 32 { Ok(out) } else { Err(bad()) }
}

pub(crate) fn write_uuid(bytes: &[u8; 16], out: &mut impl BufMut) {
    for (i, range) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
        if i > 0 {
            out.put_u8(b'-');
        }
        put_hex(&bytes[range], out);
    }
}

//! From a line to values.

use super::CopyFormat;
use crate::syntax::command::CopyLayout;
use crate::types::{CastContext, SqlType, Value};
use crate::{SqlError, SqlState};
use std::borrow::Cow;

fn bad_format(message: String) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FORMAT, message)
}

fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    let bad = |byte: u8| {
        SqlError::new(SqlState(*b"22021"), format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}"))
    };
    let text = std::str::from_utf8(bytes).map_err(|error| bad(bytes.get(error.valid_up_to()).copied().unwrap_or(0)))?;
    if memchr::memchr(0, bytes).is_some() { Err(bad(0)) } else { Ok(text) }
}

impl CopyFormat {
    /// Reads the values of a line into `row`, which is cleared first: one for each column.
    ///
    /// # Errors
    /// 22P04 for a line with too few or too many fields, else what is wrong with a value; the message's detail names line and column.
    pub fn decode(
        &self,
        line: &[u8],
        number: u64,
        context: &CastContext<'_>,
        row: &mut Vec<Value>,
    ) -> Result<(), SqlError> {
        row.clear();
        let result = match self.layout {
            CopyLayout::Text => self.decode_text(line, context, row),
            CopyLayout::Csv => self.decode_csv(line, context, row),
            CopyLayout::Binary => self.decode_binary(line, row),
        };
        result.map_err(|error| self.place(error, number, row.len()))
    }

    /// Says where in the input an error is.
    fn place(&self, mut error: SqlError, number: u64, column: usize) -> SqlError {
        if error.detail.is_none() {
            let column = self.columns.get(column).map_or(String::new(), |(name, _)| format!(", column {name}"));
            error.detail = Some(format!("COPY line {number}{column}."));
        }
        error
    }

    fn value(&self, index: usize, field: &[u8], context: &CastContext<'_>) -> Result<Value, SqlError> {
        let (_, ty) =
            self.columns.get(index).ok_or_else(|| bad_format("extra data after last expected column".into()))?;
        if matches!(ty, SqlType::Int4)
            && let Some(value) = small_int(field)
        {
            return Ok(Value::Int4(value));
        }
        Value::parse_text_at(ty, utf8(field)?, context.settings, context.now_us)
    }

    fn enough(&self, found: usize) -> Result<(), SqlError> {
        match self.columns.get(found) {
            Some((name, _)) => Err(bad_format(format!("missing data for column \"{name}\""))),
            None => Ok(()),
        }
    }

    fn decode_text(&self, line: &[u8], context: &CastContext<'_>, row: &mut Vec<Value>) -> Result<(), SqlError> {
        if line.is_empty() && self.columns.is_empty() {
            return Ok(());
        }
        let has_escapes = memchr::memchr(b'\\', line).is_some();
        let null = self.null.as_bytes();
        let mut start = 0;
        loop {
            let end = self.text_field_end(line, start, has_escapes);
            let field = &line[start..end];
            let value = if field == null && row.len() < self.columns.len() {
                Value::Null
            } else if has_escapes && field.contains(&b'\\') {
                self.value(row.len(), &unescape(field), context)?
            } else {
                self.value(row.len(), field, context)?
            };
            row.push(value);
            if end >= line.len() {
                return self.enough(row.len());
            }
            start = end + 1;
        }
    }

    fn text_field_end(&self, line: &[u8], start: usize, has_escapes: bool) -> usize {
        if !has_escapes {
            return memchr::memchr(self.delimiter, &line[start..]).map_or(line.len(), |at| start + at);
        }
        let mut at = start;
        while at < line.len() && line[at] != self.delimiter {
            at += if line[at] == b'\\' { 2 } else { 1 };
        }
        at.min(line.len())
    }

    fn decode_csv(&self, line: &[u8], context: &CastContext<'_>, row: &mut Vec<Value>) -> Result<(), SqlError> {
        if line.is_empty() && self.columns.is_empty() {
            return Ok(());
        }
        let mut at = 0;
        loop {
            let (field, quoted, next) = self.csv_field(line, at)?;
            let index = row.len();
            let is_null_text = field.as_ref() == self.null.as_bytes();
            let flag = |flags: &[bool]| flags.get(index).copied().unwrap_or(false);
            let is_null = is_null_text && if quoted { flag(&self.force_null) } else { !flag(&self.force_not_null) };
            row.push(if is_null && index < self.columns.len() {
                Value::Null
            } else {
                self.value(index, &field, context)?
            });
            match next {
                Some(next) => at = next,
                None => return self.enough(row.len()),
            }
        }
    }

    /// A field that starts at `at`: its bytes, whether any of it was quoted, and where the next one starts.
    fn csv_field<'a>(&self, line: &'a [u8], at: usize) -> Result<(Cow<'a, [u8]>, bool, Option<usize>), SqlError> {
        let rest = &line[at..];
        let next = |end: usize| (end < line.len()).then_some(end + 1);
        let stop = memchr::memchr2(self.delimiter, self.quote, rest);
        if stop.is_none_or(|stop| rest[stop] == self.delimiter) {
            let end = stop.map_or(line.len(), |stop| at + stop);
            return Ok((Cow::Borrowed(&line[at..end]), false, next(end)));
        }
        let mut field = Vec::new();
        let mut in_quotes = false;
        let mut i = at;
        while i < line.len() {
            let b = line[i];
            if in_quotes {
                let escaped = line.get(i + 1).is_some_and(|n| *n == self.quote || *n == self.escape);
                if b == self.escape && escaped {
                    field.push(line[i + 1]);
                    i += 2;
                    continue;
                }
                if b == self.quote {
                    in_quotes = false;
                } else {
                    field.push(b);
                }
            } else if b == self.quote {
                in_quotes = true;
            } else if b == self.delimiter {
                return Ok((Cow::Owned(field), true, next(i)));
            } else {
                field.push(b);
            }
            i += 1;
        }
        if in_quotes {
            return Err(bad_format("unterminated CSV quoted field".into()));
        }
        Ok((Cow::Owned(field), true, None))
    }
}

/// Up to nine digits with a sign: most integers of a bulk load.
#[inline]
fn small_int(field: &[u8]) -> Option<i32> {
    let (negative, digits) = match field.first()? {
        b'-' => (true, &field[1..]),
        _ => (false, field),
    };
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let value = digits.iter().try_fold(0i32, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i32::from(b - b'0')))?;
    Some(if negative { -value } else { value })
}

/// Backslash escapes of the text format.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut i = 0;
    while i < field.len() {
        if field[i] != b'\\' {
            out.push(field[i]);
            i += 1;
            continue;
        }
        i += 1;
        let Some(&escaped) = field.get(i) else {
            out.push(b'\\');
            break;
        };
        i += 1;
        match escaped {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let mut value = u32::from(escaped - b'0');
                for _ in 0..2 {
                    match field.get(i) {
                        Some(digit @ b'0'..=b'7') => {
                            value = value * 8 + u32::from(digit - b'0');
                            i += 1;
                        }
                        _ => break,
                    }
                }
                out.push(value as u8);
            }
            b'x' if field.get(i).is_some_and(u8::is_ascii_hexdigit) => {
                let mut value = 0u32;
                for _ in 0..2 {
                    match field.get(i).and_then(|b| (*b as char).to_digit(16)) {
                        Some(digit) => {
                            value = value * 16 + digit;
                            i += 1;
                        }
                        None => break,
                    }
                }
                out.push(value as u8);
            }
            other => out.push(other),
        }
    }
    out
}

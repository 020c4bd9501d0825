//! Arrays: text form.

use super::EvalSettings;
use super::Items;
use super::{Array, SqlType, Value};
use crate::{SqlError, SqlState};
use bytes::BufMut;

/// Most dimensions of an array.
pub const MAX_DIMENSIONS: usize = 6;
/// Most elements of an array.
pub(crate) const MAX_ELEMENTS: usize = 134_217_727;

fn malformed(text: &str, detail: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT, format!("malformed array literal: \"{text}\"")).detail(detail.to_owned())
}

fn too_many_dimensions(count: usize) -> SqlError {
    let message = format!("number of array dimensions ({count}) exceeds the maximum allowed ({MAX_DIMENSIONS})");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// Whether an array may have so many dimensions.
///
/// # Errors
/// 54000
pub fn fits_dimensions(count: usize) -> Result<(), SqlError> {
    if count <= MAX_DIMENSIONS { Ok(()) } else { Err(too_many_dimensions(count)) }
}

impl Array {
    /// An array of one dimension that begins at 1; empty ones have no dimension.
    pub fn from_values(element: SqlType, values: Vec<Value>) -> Array {
        let dimensions = if values.is_empty() { vec![] } else { vec![(values.len() as i32, 1)] };
        Array { element, dimensions, values }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    element: &'a SqlType,
    delimiter: u8,
    settings: &'a EvalSettings,
    now_us: Option<i64>,
    items: Items,
    lengths: Vec<Option<usize>>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Reads `{...}` at `depth`, counted from 0.
    fn braces(&mut self, depth: usize) -> Result<(), SqlError> {
        if depth >= MAX_DIMENSIONS {
            return Err(too_many_dimensions(depth + 1));
        }
        self.at += 1;
        if self.lengths.len() == depth {
            self.lengths.push(None);
        }
        let mut count = 0;
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return self.close(depth, count);
        }
        loop {
            self.blanks();
            match self.peek() {
                Some(b'{') => self.braces(depth + 1)?,
                Some(b) if b == self.delimiter || b == b'}' => {
                    return Err(malformed(self.text, &format!("Unexpected \"{}\" character.", b as char)));
                }
                None => return Err(malformed(self.text, "Unexpected end of input.")),
                _ => {
                    if self.lengths.len() > depth + 1 {
                        return Err(self.ragged());
                    }
                    self.element()?;
                }
            }
            count += 1;
            self.blanks();
            match self.peek() {
                Some(b) if b == self.delimiter => self.at += 1,
                Some(b'}') => break self.at += 1,
                None => return Err(malformed(self.text, "Unexpected end of input.")),
                Some(_) => return Err(malformed(self.text, "Unexpected array element.")),
            }
        }
        self.close(depth, count)
    }

    fn ragged(&self) -> SqlError {
        malformed(self.text, "Multidimensional arrays must have sub-arrays with matching dimensions.")
    }

    fn close(&mut self, depth: usize, count: usize) -> Result<(), SqlError> {
        match self.lengths[depth] {
            None => self.lengths[depth] = Some(count),
            Some(length) if length != count => return Err(self.ragged()),
            Some(_) => {}
        }
        Ok(())
    }

    fn element(&mut self) -> Result<(), SqlError> {
        let bytes = self.text.as_bytes();
        let mut item: Vec<u8> = Vec::new();
        let mut quoted = false;
        // Blanks at the end of an unquoted element do not count.
        let mut keep = 0;
        if bytes[self.at] == b'"' {
            quoted = true;
            self.at += 1;
            loop {
                match self.peek() {
                    None => return Err(malformed(self.text, "Unexpected end of input.")),
                    Some(b'"') => break self.at += 1,
                    Some(b'\\') => {
                        item.push(
                            *bytes.get(self.at + 1).ok_or_else(|| malformed(self.text, "Unexpected end of input."))?,
                        );
                        self.at += 2;
                    }
                    Some(b) => {
                        item.push(b);
                        self.at += 1;
                    }
                }
            }
        } else {
            while let Some(b) = self.peek().filter(|b| *b != self.delimiter && *b != b'}') {
                match b {
                    b'"' => return Err(malformed(self.text, "Unexpected array element.")),
                    b'{' => return Err(malformed(self.text, "Unexpected \"{\" character.")),
                    b'\\' => {
                        item.push(
                            *bytes.get(self.at + 1).ok_or_else(|| malformed(self.text, "Unexpected end of input."))?,
                        );
                        self.at += 2;
                        keep = item.len();
                    }
                    b => {
                        item.push(b);
                        self.at += 1;
                        if !b.is_ascii_whitespace() {
                            keep = item.len();
                        }
                    }
                }
            }
            item.truncate(keep);
        }
        let item = String::from_utf8(item).map_err(|_| malformed(self.text, "Invalid byte sequence."))?;
        let value = if !quoted && item.eq_ignore_ascii_case("null") {
            Value::Null
        } else {
            Value::parse_text_at(self.element, &item, self.settings, self.now_us)?
        };
        self.items.push(value)
    }
}

fn bound_too_large(lower: i32) -> SqlError {
    let message = format!("array lower bound is too large: {lower}");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// Whether the subscript behind each dimension's last is a number that there is.
///
/// # Errors
/// 54000
pub fn check_bounds(dimensions: &[(i32, i32)]) -> Result<(), SqlError> {
    match dimensions.iter().find(|(length, lower)| lower.checked_add(*length).is_none()) {
        Some((_, lower)) => Err(bound_too_large(*lower)),
        None => Ok(()),
    }
}

/// Reads `{1,2}`, `{{1,2},{3,4}}`, `[0:1]={1,2}`.
pub fn parse(element: &SqlType, text: &str, settings: &EvalSettings, now_us: Option<i64>) -> Result<Array, SqlError> {
    let mut lower = Vec::new();
    let mut start = text.len() - text.trim_start().len();
    if text[start..].starts_with('[') {
        let end = text.find('=').ok_or_else(|| malformed(text, "Missing \"=\" after array dimensions."))?;
        for part in text[start..end].trim().trim_start_matches('[').trim_end_matches(']').split("][") {
            let (from, to) = part.split_once(':').unwrap_or(("1", part));
            let (from, to): (i32, i32) = from
                .trim()
                .parse()
                .ok()
                .zip(to.trim().parse().ok())
                .ok_or_else(|| malformed(text, "\"[\" must introduce explicitly-specified array dimensions."))?;
            if to < from {
                return Err(SqlError::new(SqlState(*b"2202E"), "upper bound cannot be less than lower bound"));
            }
            if to == i32::MAX {
                return Err(bound_too_large(from));
            }
            lower.push((from, to));
        }
        start = end + 1;
        start += text[start..].len() - text[start..].trim_start().len();
    }
    let mut reader = Reader {
        text,
        at: start,
        element,
        delimiter: b',',
        settings,
        now_us,
        items: Items::new(),
        lengths: Vec::new(),
    };
    if reader.peek() != Some(b'{') {
        return Err(malformed(text, "Array value must start with \"{\" or dimension information."));
    }
    reader.braces(0)?;
    reader.blanks();
    if reader.at < text.len() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let values = reader.items.into_values();
    if values.is_empty() {
        return Ok(Array::from_values(element.clone(), vec![]));
    }
    let lengths: Vec<usize> = reader.lengths.iter().map(|l| l.unwrap_or(0)).collect();
    if !lower.is_empty()
        && (lower.len() != lengths.len()
            || lower
                .iter()
                .zip(&lengths)
                .any(|((from, to), length)| i64::from(*to) - i64::from(*from) + 1 != *length as i64))
    {
        return Err(malformed(text, "Specified array dimensions do not match array contents."));
    }
    let dimensions = lengths.iter().enumerate().map(|(i, n)| (*n as i32, lower.get(i).map_or(1, |l| l.0))).collect();
    Ok(Array { element: element.clone(), dimensions, values })
}

/// Writes the text form; lower bounds other than 1 are shown.
pub fn write(array: &Array, element: &SqlType, settings: &EvalSettings, out: &mut impl BufMut) {
    if array.values.is_empty() {
        return out.put_slice(b"{}");
    }
    if array.dimensions.iter().any(|(_, lower)| *lower != 1) {
        for (length, lower) in &array.dimensions {
            out.put_slice(format!("[{}:{}]", lower, lower + length - 1).as_bytes());
        }
        out.put_u8(b'=');
    }
    let mut next = 0;
    write_level(array, 0, &mut next, element, settings, out);
}

fn write_level(
    array: &Array,
    depth: usize,
    next: &mut usize,
    element: &SqlType,
    settings: &EvalSettings,
    out: &mut impl BufMut,
) {
    let length = array.dimensions.get(depth).map_or(array.values.len(), |d| d.0.max(0) as usize);
    out.put_u8(b'{');
    for i in 0..length {
        if i > 0 {
            out.put_u8(b',');
        }
        if depth + 1 < array.dimensions.len() {
            write_level(array, depth + 1, next, element, settings, out);
        } else if let Some(value) = array.values.get(*next) {
            *next += 1;
            write_element(value, element, settings, out);
        }
    }
    out.put_u8(b'}');
}

fn write_element(value: &Value, element: &SqlType, settings: &EvalSettings, out: &mut impl BufMut) {
    if value.is_null() {
        return out.put_slice(b"NULL");
    }
    let mut text = Vec::new();
    value.write_text(element, settings, &mut text);
    let special = |b: &u8| matches!(b, b'"' | b'\\' | b'{' | b'}' | b',') || b.is_ascii_whitespace() || *b == 0x0b;
    if !text.is_empty() && !text.iter().any(special) && !text.eq_ignore_ascii_case(b"null") {
        return out.put_slice(&text);
    }
    out.put_u8(b'"');
    for b in text {
        if matches!(b, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(b);
    }
    out.put_u8(b'"');
}

//! json and jsonb: reading, normalising, walking.
//!
//! `json` keeps its text and is only checked; `jsonb` is normalised to the text that PostgreSQL prints: keys sorted by length and
//! then bytes, the last of equal keys kept, numbers as numeric prints them. Values stay text in rows; operators parse.
//!
//! Invariant: nesting is bounded by [`MAX_DEPTH`], so no text can exhaust the stack.

use super::Numeric;
use crate::work::{self, Held};
use crate::{SqlError, SqlState};
use std::cmp::Ordering;

/// Deepest nesting read.
pub(crate) const MAX_DEPTH: usize = 1_000;
/// The tree is counted in pieces of so many bytes.
const HELD_PIECE_BYTES: usize = 64 << 10;
/// Units of work of a comparison of two parts.
const PART_UNITS: usize = 8;

/// A parsed document.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// A number, normalised as numeric.
    Number(String),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, in the order of the text.
    Object(Vec<(String, Json)>),
}

fn invalid(detail: String) -> SqlError {
    SqlError::new(SqlState::INVALID_TEXT, "invalid input syntax for type json").detail(detail)
}

/// Reads one document out of a text.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Only the form matters: `json` keeps escapes that no text could hold.
    form_only: bool,
    /// What the tree holds so far, of the statement; `None`: it is read whatever it holds.
    held: Option<Held>,
    unheld_bytes: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Reader { text, at: 0, depth: 0, form_only: false, held: Some(Held::default()), unheld_bytes: 0 }
    }

    /// A part of the tree was made, with a text of so many bytes.
    fn made(&mut self, text_bytes: usize) -> Result<(), SqlError> {
        let Some(held) = &mut self.held else { return Ok(()) };
        let bytes = size_of::<Json>() + text_bytes;
        work::step(bytes)?;
        self.unheld_bytes += bytes;
        if self.unheld_bytes >= HELD_PIECE_BYTES {
            held.take(std::mem::take(&mut self.unheld_bytes))?;
        }
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The token at the current place, for messages.
    fn token(&self) -> &'a str {
        let rest = &self.text[self.at..];
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.' || c == '-' || c == '+'))
            .unwrap_or(rest.len());
        &rest[..end.max(first)]
    }

    fn unexpected(&self, wanted: &str) -> SqlError {
        if self.at >= self.text.len() {
            return invalid("The input string ended unexpectedly.".into());
        }
        let token = self.token();
        let known = matches!(token, "{" | "}" | "[" | "]" | "," | ":" | "\"" | "true" | "false" | "null")
            || token.starts_with(|c: char| c.is_ascii_digit());
        if known && !wanted.is_empty() {
            invalid(format!("Expected {wanted}, but found \"{token}\"."))
        } else {
            invalid(format!("Token \"{token}\" is invalid."))
        }
    }

    fn enter(&mut self) -> Result<(), SqlError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SqlError::new(SqlState::TOO_COMPLEX, "stack depth limit exceeded")
                .hint(format!("A json value nests at most {MAX_DEPTH} levels.")));
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Json, SqlError> {
        self.blanks();
        self.made(0)?;
        let value = match self.peek() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => {
                let text = self.string()?;
                self.made(text.len())?;
                Json::String(text)
            }
            Some(b'-' | b'0'..=b'9') => {
                let number = self.number()?;
                // Digits are brought into binary and back, each by all others.
                work::step(number.len().saturating_mul(number.len()) / 64)?;
                let number = Numeric::parse(number)?.to_string();
                self.made(number.len())?;
                Json::Number(number)
            }
            _ => match self.token() {
                "true" => self.word("true", Json::Bool(true)),
                "false" => self.word("false", Json::Bool(false)),
                "null" => self.word("null", Json::Null),
                _ => return Err(self.unexpected("JSON value")),
            },
        };
        self.blanks();
        Ok(value)
    }

    fn word(&mut self, word: &str, value: Json) -> Json {
        self.at += word.len();
        value
    }

    fn object(&mut self) -> Result<Json, SqlError> {
        self.enter()?;
        self.at += 1;
        let mut members = Vec::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
        } else {
            loop {
                self.blanks();
                if self.peek() != Some(b'"') {
                    return Err(self.unexpected(if members.is_empty() { "string or \"}\"" } else { "string" }));
                }
                let key = self.string()?;
                self.made(key.len())?;
                self.blanks();
                if self.peek() != Some(b':') {
                    return Err(self.unexpected("\":\""));
                }
                self.at += 1;
                members.push((key, self.value()?));
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break self.at += 1,
                    _ => return Err(self.unexpected("\",\" or \"}\"")),
                }
            }
        }
        self.depth -= 1;
        Ok(Json::Object(members))
    }

    fn array(&mut self) -> Result<Json, SqlError> {
        self.enter()?;
        self.at += 1;
        let mut elements = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
        } else {
            loop {
                elements.push(self.value()?);
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break self.at += 1,
                    _ => return Err(self.unexpected("\",\" or \"]\"")),
                }
            }
        }
        self.depth -= 1;
        Ok(Json::Array(elements))
    }

    fn number(&mut self) -> Result<&'a str, SqlError> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start + usize::from(bytes[start] == b'-');
        let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let whole = digits(at);
        let mut good = whole > 0 && (whole == 1 || bytes[at] != b'0');
        at += whole;
        if bytes.get(at) == Some(&b'.') {
            let n = digits(at + 1);
            good &= n > 0;
            at += 1 + n;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let n = digits(at + 1 + sign);
            good &= n > 0;
            at += 1 + sign + n;
        }
        if !good || bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80) {
            return Err(invalid(format!("Token \"{}\" is invalid.", self.token())));
        }
        self.at = at;
        Ok(&self.text[start..at])
    }

    fn string(&mut self) -> Result<String, SqlError> {
        let bytes = self.text.as_bytes();
        let mut out = String::new();
        self.at += 1;
        loop {
            let start = self.at;
            while self.peek().is_some_and(|b| b != b'"' && b != b'\\' && b >= 0x20) {
                self.at += 1;
            }
            out.push_str(&self.text[start..self.at]);
            match self.peek() {
                None => {
                    return Err(invalid(format!("Token \"{}\" is invalid.", &self.text[start.saturating_sub(1)..])));
                }
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    let escape = bytes.get(self.at + 1).copied();
                    self.at += 2;
                    match escape {
                        Some(b'"') => out.push('"'),
                        Some(b'\\') => out.push('\\'),
                        Some(b'/') => out.push('/'),
                        Some(b'b') => out.push('\u{8}'),
                        Some(b'f') => out.push('\u{c}'),
                        Some(b'n') => out.push('\n'),
                        Some(b'r') => out.push('\r'),
                        Some(b't') => out.push('\t'),
                        Some(b'u') => out.push(self.unicode()?),
                        _ => return Err(invalid("Escape sequence is invalid.".into())),
                    }
                }
                Some(control) => {
                    return Err(invalid(format!("Character with value 0x{control:02x} must be escaped.")));
                }
            }
        }
    }

    fn four_hex(&mut self) -> Result<u32, SqlError> {
        let hex = self.text.get(self.at..self.at + 4).filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()));
        self.at += 4;
        hex.and_then(|h| u32::from_str_radix(h, 16).ok())
            .ok_or_else(|| invalid("\"\\u\" must be followed by four hexadecimal digits.".into()))
    }

    fn unicode(&mut self) -> Result<char, SqlError> {
        let unit = self.four_hex()?;
        if self.form_only {
            return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let code = match unit {
            0 => {
                return Err(SqlError::new(SqlState(*b"22P05"), "unsupported Unicode escape sequence")
                    .detail("\\u0000 cannot be converted to text."));
            }
            0xD800..=0xDBFF => {
                if self.text.get(self.at..self.at + 2) != Some("\\u") {
                    return Err(invalid("Unicode low surrogate must follow a high surrogate.".into()));
                }
                self.at += 2;
                let low = self.four_hex()?;
                if !(0xDC00..=0xDFFF).contains(&low) {
                    return Err(invalid("Unicode low surrogate must follow a high surrogate.".into()));
                }
                0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)
            }
            unit => unit,
        };
        char::from_u32(code).ok_or_else(|| invalid("Unicode low surrogate must follow a high surrogate.".into()))
    }
}

impl Json {
    /// Reads a document.
    ///
    /// # Errors
    /// 22P02 with what is wrong, 54001 if it nests too deep, 53200 beyond the statement's memory, 57014.
    pub fn parse(text: &str) -> Result<Json, SqlError> {
        Json::read(Reader::new(text))
    }

    /// Reads a document that was read before: whatever it holds, and to its end. For orders and keys, which must not fail.
    ///
    /// # Errors
    /// As [`Json::parse`], but neither for memory nor for time.
    pub(crate) fn parse_known(text: &str) -> Result<Json, SqlError> {
        Json::read(Reader { held: None, ..Reader::new(text) })
    }

    fn read(mut reader: Reader<'_>) -> Result<Json, SqlError> {
        let value = reader.value()?;
        if reader.at < reader.text.len() {
            return Err(reader.unexpected("end of input"));
        }
        Ok(value)
    }

    /// Checks the form of a document, which stays text.
    ///
    /// # Errors
    /// As [`Json::parse`], but for escapes that no text could hold.
    pub fn check(text: &str) -> Result<(), SqlError> {
        let mut reader = Reader { form_only: true, ..Reader::new(text) };
        reader.value()?;
        if reader.at < text.len() {
            return Err(reader.unexpected("end of input"));
        }
        Ok(())
    }

    /// Sorts keys and drops duplicates, as jsonb does.
    pub fn normalize(self) -> Json {
        match self {
            Json::Array(elements) => Json::Array(elements.into_iter().map(Json::normalize).collect()),
            Json::Object(members) => {
                let mut members: Vec<(String, Json)> =
                    members.into_iter().map(|(key, value)| (key, value.normalize())).collect();
                members.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
                // The last of equal keys stays: the sort has left them in their order.
                members.dedup_by(|(key, value), (kept, stays)| {
                    let same = key == kept;
                    if same {
                        std::mem::swap(value, stays);
                    }
                    same
                });
                Json::Object(members)
            }
            scalar => scalar,
        }
    }

    /// Writes it with jsonb's blanks.
    pub fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(true) => out.push_str("true"),
            Json::Bool(false) => out.push_str("false"),
            Json::Number(number) => out.push_str(number),
            Json::String(text) => write_string(text, out),
            Json::Array(elements) => {
                out.push('[');
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (i, (key, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    write_string(key, out);
                    out.push_str(": ");
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// A member of an object by name.
    pub fn member(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// An element of an array; negative indexes count from the end.
    pub fn element(&self, index: i64) -> Option<&Json> {
        match self {
            Json::Array(elements) => {
                let index = if index < 0 { elements.len() as i64 + index } else { index };
                usize::try_from(index).ok().and_then(|i| elements.get(i))
            }
            _ => None,
        }
    }

    /// A step of a path: a name in an object, a number in an array.
    pub fn step(&self, step: &str) -> Option<&Json> {
        match self {
            Json::Object(_) => self.member(step),
            Json::Array(_) => index_of(step).and_then(|index| self.element(index)),
            _ => None,
        }
    }

    /// Its text as `->>` gives it: strings without quotes, null as NULL.
    pub fn to_plain(&self) -> Option<String> {
        match self {
            Json::Null => None,
            Json::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// jsonb's `@>`.
    ///
    /// # Errors
    /// 57014: each part of one is compared with each of the other.
    pub fn contains(&self, other: &Json) -> Result<bool, SqlError> {
        Ok(match (self, other) {
            (Json::Object(have), Json::Object(wanted)) => {
                for (key, value) in wanted {
                    work::step(PART_UNITS * have.len())?;
                    match self.member(key) {
                        Some(have) if have.contains_nested(value)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
            (Json::Array(have), Json::Array(wanted)) => {
                'wanted: for wanted in wanted {
                    for have in have {
                        work::step(PART_UNITS)?;
                        if have.contains_nested(wanted)? {
                            continue 'wanted;
                        }
                    }
                    return Ok(false);
                }
                true
            }
            // An array may contain a scalar, at the top only.
            (Json::Array(_), Json::Object(_)) => false,
            (Json::Array(have), scalar) => have.iter().any(|h| h.compare(scalar).is_eq()),
            (a, b) => a.compare(b).is_eq(),
        })
    }

    fn contains_nested(&self, other: &Json) -> Result<bool, SqlError> {
        match (self, other) {
            (Json::Object(_), Json::Object(_)) | (Json::Array(_), Json::Array(_)) => self.contains(other),
            (Json::Object(_) | Json::Array(_), _) | (_, Json::Object(_) | Json::Array(_)) => Ok(false),
            (a, b) => Ok(a.compare(b).is_eq()),
        }
    }

    /// How many members or elements it has.
    pub fn width(&self) -> usize {
        match self {
            Json::Array(elements) => elements.len(),
            Json::Object(members) => members.len(),
            _ => 1,
        }
    }

    /// jsonb's `?`.
    pub fn has_key(&self, key: &str) -> bool {
        match self {
            Json::Object(_) => self.member(key).is_some(),
            Json::Array(elements) => elements.iter().any(|e| matches!(e, Json::String(text) if text == key)),
            Json::String(text) => text == key,
            _ => false,
        }
    }

    /// jsonb's order: object > array > boolean > number > string > null; fewer members first.
    pub fn compare(&self, other: &Json) -> Ordering {
        fn rank(value: &Json) -> u8 {
            match value {
                Json::Null => 0,
                Json::String(_) => 1,
                Json::Number(_) => 2,
                Json::Bool(_) => 3,
                Json::Array(_) => 4,
                Json::Object(_) => 5,
            }
        }
        match (self, other) {
            (Json::Bool(a), Json::Bool(b)) => a.cmp(b),
            (Json::Number(a), Json::Number(b)) => match (Numeric::parse(a), Numeric::parse(b)) {
                (Ok(a), Ok(b)) => a.compare(&b),
                _ => a.cmp(b),
            },
            (Json::String(a), Json::String(b)) => a.cmp(b),
            (Json::Array(a), Json::Array(b)) => a.len().cmp(&b.len()).then_with(|| {
                a.iter().zip(b).map(|(a, b)| a.compare(b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            }),
            (Json::Object(a), Json::Object(b)) => a.len().cmp(&b.len()).then_with(|| {
                a.iter()
                    .zip(b)
                    .map(|((ka, va), (kb, vb))| ka.cmp(kb).then_with(|| va.compare(vb)))
                    .find(|o| o.is_ne())
                    .unwrap_or(Ordering::Equal)
            }),
            _ => {
                // An empty array sorts below null: PostgreSQL's well-known wart.
                let empty = |v: &Json| matches!(v, Json::Array(e) if e.is_empty());
                match (empty(self), empty(other)) {
                    (true, false) => Ordering::Less,
                    (false, true) => Ordering::Greater,
                    _ => rank(self).cmp(&rank(other)),
                }
            }
        }
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = String::new();
        self.write(&mut out);
        f.write_str(&out)
    }
}

/// Writes a string with quotes and escapes.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A part of a `json` text as it stands there: what `->` gives for the type that keeps its text.
///
/// # Errors
/// As [`Json::parse`].
pub fn raw_step<'a>(text: &'a str, step: &str, by_index: Option<i64>) -> Result<Option<&'a str>, SqlError> {
    let mut reader = Reader::new(text);
    reader.blanks();
    match reader.peek() {
        Some(b'{') if by_index.is_none() => {
            let mut found = raw_members(&mut reader, |key| key == step)?;
            Ok(found.pop().map(|(_, value)| value))
        }
        Some(b'[') => {
            let Some(index) = by_index.or_else(|| index_of(step)) else { return Ok(None) };
            let all: Vec<&str> = raw_members(&mut reader, |_| true)?.into_iter().map(|(_, value)| value).collect();
            let index = if index < 0 { all.len() as i64 + index } else { index };
            Ok(usize::try_from(index).ok().and_then(|i| all.get(i).copied()))
        }
        _ => Ok(None),
    }
}

/// A step of a path as an index of an array: blanks may stand before it, and it must be a 32-bit number.
pub fn index_of(step: &str) -> Option<i64> {
    step.trim_start().parse::<i32>().ok().map(i64::from)
}

/// The members of an object or array, each as it stands there; names of an array's are empty. `None` for a scalar.
///
/// # Errors
/// As [`Json::parse`].
pub fn raw_parts(text: &str) -> Result<Option<Vec<(String, &str)>>, SqlError> {
    let mut reader = Reader::new(text);
    reader.blanks();
    match reader.peek() {
        Some(b'{' | b'[') => raw_members(&mut reader, |_| true).map(Some),
        _ => Ok(None),
    }
}

/// Names and texts of the members of the object or array at the reader that are wanted.
fn raw_members<'a>(reader: &mut Reader<'a>, wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, &'a str)>, SqlError> {
    let is_object = reader.peek() == Some(b'{');
    let mut found = Vec::new();
    reader.at += 1;
    loop {
        reader.blanks();
        if matches!(reader.peek(), Some(b'}' | b']')) {
            break;
        }
        let key = if is_object {
            if reader.peek() != Some(b'"') {
                return Err(reader.unexpected("string"));
            }
            let key = reader.string()?;
            reader.blanks();
            reader.at += 1;
            reader.blanks();
            key
        } else {
            String::new()
        };
        let start = reader.at;
        reader.form_only = true;
        reader.value()?;
        reader.form_only = false;
        if wanted(&key) {
            found.push((key, reader.text[start..reader.at].trim_end_matches([' ', '\t', '\n', '\r'])));
        }
        match reader.peek() {
            Some(b',') => reader.at += 1,
            _ => break,
        }
    }
    Ok(found)
}

/// A value without the members of objects that are null, written anew without blanks: `json_strip_nulls`.
///
/// # Errors
/// As [`Json::parse`].
pub fn strip_nulls(text: &str, out: &mut String) -> Result<(), SqlError> {
    let text = text.trim_matches([' ', '\t', '\n', '\r']);
    let Some(parts) = raw_parts(text)? else {
        match Json::parse(text)? {
            Json::String(value) => write_string(&value, out),
            _ => out.push_str(text),
        }
        return Ok(());
    };
    let is_object = text.starts_with('{');
    out.push(if is_object { '{' } else { '[' });
    let mut first = true;
    for (key, value) in parts {
        if is_object && value == "null" {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        if is_object {
            write_string(&key, out);
            out.push(':');
        }
        strip_nulls(value, out)?;
    }
    out.push(if is_object { '}' } else { ']' });
    Ok(())
}

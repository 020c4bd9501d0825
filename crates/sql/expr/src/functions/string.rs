//! Strings and patterns. Positions and lengths count characters, from 1.

use super::super::function::{Arguments, Function, Sig};
use super::super::pattern::like;
use super::{bytes_at, int_at, shown, str_at, wrong_type};
use crate::types::{Items, SqlType as T, Text, Value, value_fits};
use crate::{SqlError, SqlState};
use std::collections::{BTreeMap, BTreeSet};

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(T::Text);
const CHAR: Sig = Sig::Is(T::Char(0));
const NAME: Sig = Sig::Is(T::Name);
const I4: Sig = Sig::Is(T::Int4);
const BYTEA: Sig = Sig::Is(T::Bytea);
const BOOL: Sig = Sig::Is(T::Bool);

pub(super) static TABLE: &[Function] = &[
    Function::pure("||", &[TEXT, TEXT], TEXT, |v, _| joined(&[str_at(v, 0)?, str_at(v, 1)?])),
    Function::stable("||", &[Sig::NonArray, TEXT], TEXT, |v, a| {
        joined(&[&v[0].to_output(&a.types[0], &a.cast_context())?, str_at(v, 1)?])
    }),
    Function::stable("||", &[TEXT, Sig::NonArray], TEXT, |v, a| {
        joined(&[str_at(v, 0)?, &v[1].to_output(&a.types[1], &a.cast_context())?])
    }),
    Function::pure("||", &[BYTEA, BYTEA], BYTEA, |v, _| {
        let (left, right) = (bytes_at(v, 0)?, bytes_at(v, 1)?);
        value_fits(left.len() + right.len())?;
        Ok(Value::Bytea([left, right].concat().into()))
    }),
    Function::pure("length", &[TEXT], I4, |v, _| count(str_at(v, 0)?)),
    Function::pure("length", &[CHAR], I4, |v, _| count(str_at(v, 0)?.trim_end_matches(' '))),
    Function::pure("length", &[BYTEA], I4, |v, _| Ok(Value::Int4(bytes_at(v, 0)?.len() as i32))),
    Function::pure("char_length", &[TEXT], I4, |v, _| count(str_at(v, 0)?)),
    Function::pure("char_length", &[CHAR], I4, |v, _| count(str_at(v, 0)?.trim_end_matches(' '))),
    Function::pure("character_length", &[TEXT], I4, |v, _| count(str_at(v, 0)?)),
    Function::pure("octet_length", &[TEXT], I4, |v, _| Ok(Value::Int4(str_at(v, 0)?.len() as i32))),
    Function::pure("octet_length", &[CHAR], I4, |v, _| Ok(Value::Int4(str_at(v, 0)?.len() as i32))),
    Function::pure("octet_length", &[BYTEA], I4, |v, _| Ok(Value::Int4(bytes_at(v, 0)?.len() as i32))),
    Function::pure("bit_length", &[TEXT], I4, |v, _| Ok(Value::Int4(str_at(v, 0)?.len() as i32 * 8))),
    Function::pure("lower", &[TEXT], TEXT, |v, _| Ok(Value::text(each(str_at(v, 0)?, lower)))),
    Function::pure("upper", &[TEXT], TEXT, |v, _| Ok(Value::text(each(str_at(v, 0)?, upper)))),
    Function::pure("initcap", &[TEXT], TEXT, initcap),
    Function::pure("substring", &[TEXT, I4], TEXT, |v, _| substring(str_at(v, 0)?, int_at(v, 1)?, None)),
    Function::pure("substring", &[TEXT, I4, I4], TEXT, |v, _| {
        substring(str_at(v, 0)?, int_at(v, 1)?, Some(int_at(v, 2)?))
    }),
    Function::pure("substring", &[BYTEA, I4], BYTEA, |v, _| sub_bytes(bytes_at(v, 0)?, int_at(v, 1)?, None)),
    Function::pure("substring", &[BYTEA, I4, I4], BYTEA, |v, _| {
        sub_bytes(bytes_at(v, 0)?, int_at(v, 1)?, Some(int_at(v, 2)?))
    }),
    Function::pure("substr", &[TEXT, I4], TEXT, |v, _| substring(str_at(v, 0)?, int_at(v, 1)?, None)),
    Function::pure("substr", &[TEXT, I4, I4], TEXT, |v, _| {
        substring(str_at(v, 0)?, int_at(v, 1)?, Some(int_at(v, 2)?))
    }),
    Function::pure("position", &[TEXT, TEXT], I4, |v, _| Ok(Value::Int4(place(str_at(v, 0)?, str_at(v, 1)?)))),
    Function::pure("strpos", &[TEXT, TEXT], I4, |v, _| Ok(Value::Int4(place(str_at(v, 0)?, str_at(v, 1)?)))),
    Function::pure("btrim", &[TEXT], TEXT, |v, _| Ok(Value::text(str_at(v, 0)?.trim_matches(' ')))),
    Function::pure("btrim", &[TEXT, TEXT], TEXT, |v, _| {
        let set = Set::new(str_at(v, 1)?);
        Ok(Value::text(str_at(v, 0)?.trim_matches(|c| set.has(c))))
    }),
    Function::pure("ltrim", &[TEXT], TEXT, |v, _| Ok(Value::text(str_at(v, 0)?.trim_start_matches(' ')))),
    Function::pure("ltrim", &[TEXT, TEXT], TEXT, |v, _| {
        let set = Set::new(str_at(v, 1)?);
        Ok(Value::text(str_at(v, 0)?.trim_start_matches(|c| set.has(c))))
    }),
    Function::pure("rtrim", &[TEXT], TEXT, |v, _| Ok(Value::text(str_at(v, 0)?.trim_end_matches(' ')))),
    Function::pure("rtrim", &[TEXT, TEXT], TEXT, |v, _| {
        let set = Set::new(str_at(v, 1)?);
        Ok(Value::text(str_at(v, 0)?.trim_end_matches(|c| set.has(c))))
    }),
    Function::pure("btrim", &[BYTEA, BYTEA], BYTEA, |v, _| trim_bytes(v, true, true)),
    Function::pure("ltrim", &[BYTEA, BYTEA], BYTEA, |v, _| trim_bytes(v, true, false)),
    Function::pure("rtrim", &[BYTEA, BYTEA], BYTEA, |v, _| trim_bytes(v, false, true)),
    Function::pure("lpad", &[TEXT, I4], TEXT, |v, _| pad(str_at(v, 0)?, int_at(v, 1)?, " ", true)),
    Function::pure("lpad", &[TEXT, I4, TEXT], TEXT, |v, _| pad(str_at(v, 0)?, int_at(v, 1)?, str_at(v, 2)?, true)),
    Function::pure("rpad", &[TEXT, I4], TEXT, |v, _| pad(str_at(v, 0)?, int_at(v, 1)?, " ", false)),
    Function::pure("rpad", &[TEXT, I4, TEXT], TEXT, |v, _| pad(str_at(v, 0)?, int_at(v, 1)?, str_at(v, 2)?, false)),
    Function::pure("replace", &[TEXT, TEXT, TEXT], TEXT, replace),
    Function::pure("split_part", &[TEXT, TEXT, I4], TEXT, split_part),
    Function::pure("left", &[TEXT, I4], TEXT, |v, _| {
        let (text, n) = (str_at(v, 0)?, int_at(v, 1)?);
        let keep = if n < 0 { text.chars().count() as i64 + n } else { n };
        Ok(Value::text(text.chars().take(keep.max(0) as usize).collect::<String>()))
    }),
    Function::pure("right", &[TEXT, I4], TEXT, |v, _| {
        let (text, n) = (str_at(v, 0)?, int_at(v, 1)?);
        let length = text.chars().count() as i64;
        let skip = if n < 0 { -n } else { length - n };
        Ok(Value::text(text.chars().skip(skip.max(0) as usize).collect::<String>()))
    }),
    Function::pure("reverse", &[TEXT], TEXT, |v, _| Ok(Value::text(str_at(v, 0)?.chars().rev().collect::<String>()))),
    Function::pure("repeat", &[TEXT, I4], TEXT, |v, _| {
        let (text, n) = (str_at(v, 0)?, int_at(v, 1)?.max(0) as usize);
        let mut out = Text::new();
        out.push_repeated(text, n)?;
        Ok(out.into_value())
    }),
    Function::pure("chr", &[I4], TEXT, chr),
    Function::pure("ascii", &[TEXT], I4, |v, _| Ok(Value::Int4(str_at(v, 0)?.chars().next().map_or(0, |c| c as i32)))),
    Function::pure("translate", &[TEXT, TEXT, TEXT], TEXT, translate),
    Function::pure("overlay", &[TEXT, TEXT, I4], TEXT, overlay),
    Function::pure("overlay", &[TEXT, TEXT, I4, I4], TEXT, overlay),
    Function::pure("starts_with", &[TEXT, TEXT], BOOL, |v, _| {
        Ok(Value::Bool(str_at(v, 0)?.starts_with(str_at(v, 1)?)))
    }),
    Function::pure("num_nonnulls", &[Sig::Any], I4, |v, _| counted(v, |value| !value.is_null())).many().lax(),
    Function::pure("num_nulls", &[Sig::Any], I4, |v, _| counted(v, Value::is_null)).many().lax(),
    Function::stable("concat", &[Sig::Any], TEXT, concat).many().lax(),
    Function::stable("concat_ws", &[TEXT, Sig::Any], TEXT, concat_ws).many().lax(),
    Function::pure("string_to_array", &[TEXT, TEXT], Sig::ArrayOf(T::Text), string_to_array).lax(),
    Function::pure("string_to_array", &[TEXT, TEXT, TEXT], Sig::ArrayOf(T::Text), string_to_array).lax(),
];

/// The operators see the trailing blanks of char(n), which a cast to text would take away.
pub(super) static PATTERNS: &[Function] = &[
    Function::pure("~~", &[TEXT, TEXT], BOOL, |v, _| is(like(str_at(v, 0)?, str_at(v, 1)?, Some('\\')))),
    Function::pure("~~", &[TEXT, TEXT, TEXT], BOOL, |v, _| {
        is(like(str_at(v, 0)?, str_at(v, 1)?, str_at(v, 2)?.chars().next()))
    }),
    Function::pure("~~", &[CHAR, TEXT], BOOL, |v, _| is(like(str_at(v, 0)?, str_at(v, 1)?, Some('\\')))),
    Function::pure("~~", &[CHAR, TEXT, TEXT], BOOL, |v, _| {
        is(like(str_at(v, 0)?, str_at(v, 1)?, str_at(v, 2)?.chars().next()))
    }),
    Function::pure("~~", &[NAME, TEXT], BOOL, |v, _| is(like(str_at(v, 0)?, str_at(v, 1)?, Some('\\')))),
    Function::pure("!~~", &[TEXT, TEXT], BOOL, |v, _| not(like(str_at(v, 0)?, str_at(v, 1)?, Some('\\')))),
    Function::pure("!~~", &[CHAR, TEXT], BOOL, |v, _| not(like(str_at(v, 0)?, str_at(v, 1)?, Some('\\')))),
    Function::pure("~~*", &[TEXT, TEXT], BOOL, |v, _| is(ilike(v, Some('\\')))),
    Function::pure("~~*", &[TEXT, TEXT, TEXT], BOOL, |v, _| is(ilike(v, str_at(v, 2)?.chars().next()))),
    Function::pure("~~*", &[CHAR, TEXT], BOOL, |v, _| is(ilike(v, Some('\\')))),
    Function::pure("~~*", &[CHAR, TEXT, TEXT], BOOL, |v, _| is(ilike(v, str_at(v, 2)?.chars().next()))),
    Function::pure("!~~*", &[TEXT, TEXT], BOOL, |v, _| not(ilike(v, Some('\\')))),
    Function::pure("!~~*", &[CHAR, TEXT], BOOL, |v, _| not(ilike(v, Some('\\')))),
    Function::pure("^@", &[TEXT, TEXT], BOOL, |v, _| Ok(Value::Bool(str_at(v, 0)?.starts_with(str_at(v, 1)?)))),
];

/// The characters of a text.
enum Set<'a> {
    /// Few: looked through.
    Short(&'a str),
    /// Many.
    Long(BTreeSet<char>),
}

impl<'a> Set<'a> {
    fn new(text: &'a str) -> Set<'a> {
        if text.len() <= 64 { Set::Short(text) } else { Set::Long(text.chars().collect()) }
    }

    fn has(&self, c: char) -> bool {
        match self {
            Set::Short(text) => text.contains(c),
            Set::Long(all) => all.contains(&c),
        }
    }
}

fn is(result: Result<bool, SqlError>) -> R {
    result.map(Value::Bool)
}

fn not(result: Result<bool, SqlError>) -> R {
    result.map(|matched| Value::Bool(!matched))
}

fn joined(parts: &[&str]) -> R {
    value_fits(parts.iter().map(|part| part.len()).sum())?;
    Ok(Value::text(parts.concat()))
}

fn count(text: &str) -> R {
    Ok(Value::Int4(text.chars().count() as i32))
}

/// A character's other case, if that is one character: a text keeps its length, as in PostgreSQL (`ß` has no upper case).
fn upper(c: char) -> char {
    let mut cased = c.to_uppercase();
    cased.next().filter(|_| cased.next().is_none()).unwrap_or(c)
}

fn lower(c: char) -> char {
    let mut cased = c.to_lowercase();
    cased.next().filter(|_| cased.next().is_none()).unwrap_or(c)
}

fn each(text: &str, case: fn(char) -> char) -> String {
    text.chars().map(case).collect()
}

fn initcap(values: &[Value], _: &Arguments<'_>) -> R {
    let mut out = String::new();
    let mut inside = false;
    for c in str_at(values, 0)?.chars() {
        if inside {
            out.push(lower(c));
        } else {
            out.push(upper(c));
        }
        inside = c.is_alphanumeric();
    }
    Ok(Value::text(out))
}

/// First and one past the last place of a substring, counted from 0 and cut to what exists.
fn bounds(start: i64, length: Option<i64>) -> Result<(usize, usize), SqlError> {
    let end = match length {
        Some(length) if length < 0 => {
            return Err(SqlError::new(SqlState(*b"22011"), "negative substring length not allowed"));
        }
        Some(length) => start.saturating_add(length),
        None => i64::MAX,
    };
    Ok(((start.max(1) - 1) as usize, (end.max(1) - 1) as usize))
}

fn substring(text: &str, start: i64, length: Option<i64>) -> R {
    let (from, to) = bounds(start, length)?;
    Ok(Value::text(text.chars().skip(from).take(to.saturating_sub(from)).collect::<String>()))
}

fn sub_bytes(bytes: &[u8], start: i64, length: Option<i64>) -> R {
    let (from, to) = bounds(start, length)?;
    let (from, to) = (from.min(bytes.len()), to.min(bytes.len()));
    Ok(Value::Bytea(bytes[from..to.max(from)].to_vec().into()))
}

fn trim_bytes(values: &[Value], left: bool, right: bool) -> R {
    let (mut bytes, set) = (bytes_at(values, 0)?, bytes_at(values, 1)?);
    while let Some((_, rest)) = bytes.split_first().filter(|(first, _)| left && set.contains(first)) {
        bytes = rest;
    }
    while let Some((_, rest)) = bytes.split_last().filter(|(last, _)| right && set.contains(last)) {
        bytes = rest;
    }
    Ok(Value::Bytea(bytes.to_vec().into()))
}

fn place(text: &str, part: &str) -> i32 {
    text.find(part).map_or(0, |at| text[..at].chars().count() as i32 + 1)
}

fn pad(text: &str, length: i64, fill: &str, left: bool) -> R {
    let length = length.max(0) as usize;
    value_fits(length)?;
    let have = text.chars().count();
    if have >= length {
        return Ok(Value::text(text.chars().take(length).collect::<String>()));
    }
    if fill.is_empty() {
        return Ok(Value::text(text));
    }
    let mut out = Text::new();
    if !left {
        out.push_str(text)?;
    }
    out.extend(fill.chars().cycle().take(length - have))?;
    if left {
        out.push_str(text)?;
    }
    Ok(out.into_value())
}

fn replace(values: &[Value], _: &Arguments<'_>) -> R {
    let (text, from, to) = (str_at(values, 0)?, str_at(values, 1)?, str_at(values, 2)?);
    if from.is_empty() {
        return Ok(values[0].clone());
    }
    let count = text.matches(from).count();
    value_fits((text.len() - count * from.len()).saturating_add(count.saturating_mul(to.len())))?;
    Ok(Value::text(text.replace(from, to)))
}

fn split_part(values: &[Value], _: &Arguments<'_>) -> R {
    let (text, delimiter, n) = (str_at(values, 0)?, str_at(values, 1)?, int_at(values, 2)?);
    if n == 0 {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, "field position must not be zero"));
    }
    if delimiter.is_empty() {
        return Ok(if n == 1 || n == -1 { values[0].clone() } else { Value::text("") });
    }
    let index = (n.unsigned_abs() - 1) as usize;
    let part = if n > 0 { text.split(delimiter).nth(index) } else { text.rsplit(delimiter).nth(index) };
    Ok(Value::text(part.unwrap_or("")))
}

fn chr(values: &[Value], _: &Arguments<'_>) -> R {
    let code = int_at(values, 0)?;
    if code < 0 {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, "character number must be positive"));
    }
    if code == 0 {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "null character not permitted"));
    }
    let c = u32::try_from(code).ok().and_then(char::from_u32);
    c.map(|c| Value::text(c.to_string())).ok_or_else(|| {
        SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, format!("requested character not valid for encoding: {code}"))
    })
}

fn translate(values: &[Value], _: &Arguments<'_>) -> R {
    let (text, from, to) = (str_at(values, 0)?, str_at(values, 1)?, str_at(values, 2)?);
    // The first of equal characters decides.
    let mut to = to.chars();
    let mut changes = BTreeMap::new();
    for c in from.chars() {
        let to = to.next();
        changes.entry(c).or_insert(to);
    }
    let mut out = Text::new();
    out.extend(text.chars().filter_map(|c| changes.get(&c).map_or(Some(c), |to| *to)))?;
    Ok(out.into_value())
}

fn overlay(values: &[Value], _: &Arguments<'_>) -> R {
    let (text, new, from) = (str_at(values, 0)?, str_at(values, 1)?, int_at(values, 2)?);
    let length = match values.get(3) {
        Some(value) => value.as_i64().ok_or_else(wrong_type)?,
        None => new.chars().count() as i64,
    };
    if from <= 0 {
        return Err(SqlError::new(SqlState(*b"22011"), "negative substring length not allowed"));
    }
    let mut out = Text::new();
    out.extend(text.chars().take((from - 1) as usize))?;
    out.push_str(new)?;
    out.extend(text.chars().skip((from - 1).saturating_add(length).max(0) as usize))?;
    Ok(out.into_value())
}

fn counted(values: &[Value], counts: impl Fn(&Value) -> bool) -> R {
    Ok(Value::Int4(values.iter().filter(|value| counts(value)).count() as i32))
}

fn concat(values: &[Value], arguments: &Arguments<'_>) -> R {
    let mut out = Text::new();
    for i in 0..values.len() {
        if !values[i].is_null() {
            out.push_str(&shown(values, i, arguments)?)?;
        }
    }
    Ok(out.into_value())
}

fn concat_ws(values: &[Value], arguments: &Arguments<'_>) -> R {
    let Some(separator) = values.first().and_then(Value::as_str) else { return Ok(Value::Null) };
    let mut out = Text::new();
    let mut any = false;
    for i in 1..values.len() {
        if !values[i].is_null() {
            if any {
                out.push_str(separator)?;
            }
            any = true;
            out.push_str(&shown(values, i, arguments)?)?;
        }
    }
    Ok(out.into_value())
}

fn text_array(parts: impl Iterator<Item = Value>) -> R {
    let mut items = Items::new();
    items.extend(parts)?;
    Ok(items.into_array(T::Text))
}

fn string_to_array(values: &[Value], _: &Arguments<'_>) -> R {
    let Some(text) = values[0].as_str() else { return Ok(Value::Null) };
    let null = values.get(2).and_then(Value::as_str);
    let item = |part: &str| if Some(part) == null { Value::Null } else { Value::text(part) };
    if text.is_empty() {
        return text_array(std::iter::empty());
    }
    match values[1].as_str() {
        None => text_array(text.chars().map(|c| item(c.encode_utf8(&mut [0; 4])))),
        Some("") => text_array(std::iter::once(item(text))),
        Some(delimiter) => text_array(text.split(delimiter).map(item)),
    }
}

fn ilike(values: &[Value], escape: Option<char>) -> Result<bool, SqlError> {
    like(&str_at(values, 0)?.to_lowercase(), &str_at(values, 1)?.to_lowercase(), escape)
}

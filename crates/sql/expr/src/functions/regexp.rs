//! Functions and operators of regular expressions, and SIMILAR TO.

use super::super::function::{Arguments, Function, Sig};
use super::super::regex::{Flags, Regex, Spans};
use super::{int_at, str_at, text_array, wrong_type};
use crate::types::{Items, SqlType as T, Text, Value, heap_bytes};
use crate::work::{self, Held};
use crate::{SqlError, SqlState};

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(T::Text);
const TEXTS: Sig = Sig::ArrayOf(T::Text);
const NAME: Sig = Sig::Is(T::Name);
const I4: Sig = Sig::Is(T::Int4);
const BOOL: Sig = Sig::Is(T::Bool);
const CHAR: Sig = Sig::Is(T::Char(0));

pub(super) static TABLE: &[Function] = &[
    Function::pure("similar to", &[TEXT, TEXT], BOOL, |v, a| similar(v, Some("\\"), a)),
    Function::pure("similar to", &[TEXT, TEXT, TEXT], BOOL, |v, a| similar(v, Some(str_at(v, 2)?), a)),
    // Like the operators below, it sees the trailing blanks of char(n).
    Function::pure("similar to", &[CHAR, TEXT], BOOL, |v, a| similar(v, Some("\\"), a)),
    Function::pure("similar to", &[CHAR, TEXT, TEXT], BOOL, |v, a| similar(v, Some(str_at(v, 2)?), a)),
    Function::pure("similar_to_escape", &[TEXT], TEXT, |v, _| similar_pattern(str_at(v, 0)?, "\\").map(Value::text)),
    Function::pure("similar_to_escape", &[TEXT, TEXT], TEXT, |v, _| {
        similar_pattern(str_at(v, 0)?, str_at(v, 1)?).map(Value::text)
    }),
    Function::pure("~", &[TEXT, TEXT], BOOL, |v, a| matches(v, Flags::NONE, a).map(Value::Bool)),
    Function::pure("~", &[CHAR, TEXT], BOOL, |v, a| matches(v, Flags::NONE, a).map(Value::Bool)),
    Function::pure("~", &[NAME, TEXT], BOOL, |v, a| matches(v, Flags::NONE, a).map(Value::Bool)),
    Function::pure("~*", &[TEXT, TEXT], BOOL, |v, a| matches(v, Flags::IGNORE_CASE, a).map(Value::Bool)),
    Function::pure("~*", &[CHAR, TEXT], BOOL, |v, a| matches(v, Flags::IGNORE_CASE, a).map(Value::Bool)),
    Function::pure("~*", &[NAME, TEXT], BOOL, |v, a| matches(v, Flags::IGNORE_CASE, a).map(Value::Bool)),
    Function::pure("!~", &[TEXT, TEXT], BOOL, |v, a| matches(v, Flags::NONE, a).map(|found| Value::Bool(!found))),
    Function::pure("!~", &[CHAR, TEXT], BOOL, |v, a| matches(v, Flags::NONE, a).map(|found| Value::Bool(!found))),
    Function::pure("!~", &[NAME, TEXT], BOOL, |v, a| matches(v, Flags::NONE, a).map(|found| Value::Bool(!found))),
    Function::pure("!~*", &[TEXT, TEXT], BOOL, |v, a| {
        matches(v, Flags::IGNORE_CASE, a).map(|found| Value::Bool(!found))
    }),
    Function::pure("!~*", &[CHAR, TEXT], BOOL, |v, a| {
        matches(v, Flags::IGNORE_CASE, a).map(|found| Value::Bool(!found))
    }),
    Function::pure("!~*", &[NAME, TEXT], BOOL, |v, a| {
        matches(v, Flags::IGNORE_CASE, a).map(|found| Value::Bool(!found))
    }),
    Function::pure("substring", &[TEXT, TEXT], TEXT, |v, a| part(str_at(v, 0)?, str_at(v, 1)?, a)),
    Function::pure("substring", &[TEXT, TEXT, TEXT], TEXT, |v, a| {
        part(str_at(v, 0)?, &similar_pattern(str_at(v, 1)?, str_at(v, 2)?)?, a)
    }),
    Function::pure("regexp_replace", &[TEXT, TEXT, TEXT], TEXT, |v, a| replace(v, 1, Some(1), "", a)),
    Function::pure("regexp_replace", &[TEXT, TEXT, TEXT, TEXT], TEXT, |v, a| {
        let flags = str_at(v, 3)?;
        if flags.starts_with(|c: char| c.is_ascii_digit()) {
            // Digits here were meant as a place: they would need a cast.
            let first: String = flags.chars().take(1).collect();
            return Err(bad_option(&first)
                .hint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly."));
        }
        let all = Flags::parse(flags)?.all;
        replace(v, 1, if all { Some(0) } else { Some(1) }, flags, a)
    }),
    Function::pure("regexp_replace", &[TEXT, TEXT, TEXT, I4], TEXT, |v, a| replace(v, int_at(v, 3)?, Some(1), "", a)),
    Function::pure("regexp_replace", &[TEXT, TEXT, TEXT, I4, I4], TEXT, |v, a| {
        replace(v, int_at(v, 3)?, Some(int_at(v, 4)?), "", a)
    }),
    Function::pure("regexp_replace", &[TEXT, TEXT, TEXT, I4, I4, TEXT], TEXT, |v, a| {
        replace(v, int_at(v, 3)?, Some(int_at(v, 4)?), str_at(v, 5)?, a)
    }),
    Function::pure("regexp_match", &[TEXT, TEXT], TEXTS, |v, a| first_match(v, "", a)),
    Function::pure("regexp_match", &[TEXT, TEXT, TEXT], TEXTS, |v, a| first_match(v, str_at(v, 2)?, a)),
    Function::pure("regexp_like", &[TEXT, TEXT], BOOL, |v, a| matches(v, Flags::NONE, a).map(Value::Bool)),
    Function::pure("regexp_like", &[TEXT, TEXT, TEXT], BOOL, |v, a| {
        matches(v, once(str_at(v, 2)?, "regexp_like()")?, a).map(Value::Bool)
    }),
    Function::pure("regexp_count", &[TEXT, TEXT], I4, |v, a| count(v, 1, "", a)),
    Function::pure("regexp_count", &[TEXT, TEXT, I4], I4, |v, a| count(v, int_at(v, 2)?, "", a)),
    Function::pure("regexp_count", &[TEXT, TEXT, I4, TEXT], I4, |v, a| count(v, int_at(v, 2)?, str_at(v, 3)?, a)),
    Function::pure("regexp_instr", &[TEXT, TEXT], I4, instr),
    Function::pure("regexp_instr", &[TEXT, TEXT, I4], I4, instr),
    Function::pure("regexp_instr", &[TEXT, TEXT, I4, I4], I4, instr),
    Function::pure("regexp_instr", &[TEXT, TEXT, I4, I4, I4], I4, instr),
    Function::pure("regexp_instr", &[TEXT, TEXT, I4, I4, I4, TEXT], I4, instr),
    Function::pure("regexp_instr", &[TEXT, TEXT, I4, I4, I4, TEXT, I4], I4, instr),
    Function::pure("regexp_substr", &[TEXT, TEXT], TEXT, substr),
    Function::pure("regexp_substr", &[TEXT, TEXT, I4], TEXT, substr),
    Function::pure("regexp_substr", &[TEXT, TEXT, I4, I4], TEXT, substr),
    Function::pure("regexp_substr", &[TEXT, TEXT, I4, I4, TEXT], TEXT, substr),
    Function::pure("regexp_substr", &[TEXT, TEXT, I4, I4, TEXT, I4], TEXT, substr),
    Function::pure("regexp_split_to_array", &[TEXT, TEXT], TEXTS, |v, a| {
        Ok(text_array(split(v, "", "regexp_split_to_array()", a)?.into_iter()))
    }),
    Function::pure("regexp_split_to_array", &[TEXT, TEXT, TEXT], TEXTS, |v, a| {
        Ok(text_array(split(v, str_at(v, 2)?, "regexp_split_to_array()", a)?.into_iter()))
    }),
];

/// Asks whether the statement goes on.
fn look(arguments: &Arguments<'_>) -> Result<(), SqlError> {
    arguments.statement.map_or_else(work::look, |statement| statement.check())
}

fn bad_option(letter: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, format!("invalid regular expression option: \"{letter}\""))
}

fn bad_value(name: &str, value: i64) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, format!("invalid value for parameter \"{name}\": {value}"))
}

/// Flags of a function that has no use for `g`.
fn once(text: &str, function: &str) -> Result<Flags, SqlError> {
    let flags = Flags::parse(text)?;
    if flags.all {
        let message = format!("{function} does not support the \"global\" option");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(flags)
}

pub(super) fn matches(values: &[Value], flags: Flags, arguments: &Arguments<'_>) -> Result<bool, SqlError> {
    Regex::cached(str_at(values, 1)?, flags)?.is_match(str_at(values, 0)?, &mut || look(arguments))
}

fn similar(values: &[Value], escape: Option<&str>, arguments: &Arguments<'_>) -> R {
    let pattern = similar_pattern(str_at(values, 1)?, escape.unwrap_or("\\"))?;
    let regex = Regex::cached(&pattern, Flags::NONE)?;
    regex.is_match(str_at(values, 0)?, &mut || look(arguments)).map(Value::Bool)
}

/// The byte where the n-th character begins, counted from 1.
fn byte_of(text: &str, place: i64) -> Option<usize> {
    if place < 1 {
        return None;
    }
    let skipped = usize::try_from(place - 1).ok()?;
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(skipped)
}

fn start_of(text: &str, start: i64) -> Result<Option<usize>, SqlError> {
    if start < 1 {
        return Err(bad_value("start", start));
    }
    Ok(byte_of(text, start))
}

fn cut(text: &str, span: Option<(usize, usize)>) -> Value {
    span.map_or(Value::Null, |(start, end)| Value::text(&text[start..end]))
}

/// Groups of a match, or all of it if there are none.
fn captured(text: &str, regex: &Regex, spans: &Spans) -> Value {
    if regex.groups() == 0 {
        return text_array(std::iter::once(cut(text, spans[0])));
    }
    text_array(spans[1..].iter().map(|span| cut(text, *span)))
}

fn part(text: &str, pattern: &str, arguments: &Arguments<'_>) -> R {
    let regex = Regex::cached(pattern, Flags::NONE)?;
    let mut found = Value::Null;
    regex.each(text, 0, regex.groups() > 0, &mut || look(arguments), |spans| {
        found = cut(text, spans[usize::from(regex.groups() > 0)]);
        Ok(false)
    })?;
    Ok(found)
}

fn first_match(values: &[Value], flags: &str, arguments: &Arguments<'_>) -> R {
    let text = str_at(values, 0)?;
    let flags = once(flags, "regexp_match()").map_err(|e| {
        if e.message.contains("global") { e.hint("Use the regexp_matches function instead.") } else { e }
    })?;
    let regex = Regex::cached(str_at(values, 1)?, flags)?;
    let mut found = Value::Null;
    regex.each(text, 0, regex.groups() > 0, &mut || look(arguments), |spans| {
        found = captured(text, &regex, spans);
        Ok(false)
    })?;
    Ok(found)
}

/// What `regexp_matches` gives: the groups of the first match, or of all. `look` says whether to go on.
///
/// # Errors
/// 2201B, 22023; what `look` says.
pub fn all_matches(values: &[Value], look: &dyn Fn() -> Result<(), SqlError>) -> Result<Vec<Value>, SqlError> {
    let text = str_at(values, 0)?;
    let flags = Flags::parse(values.get(2).and_then(Value::as_str).unwrap_or(""))?;
    let regex = Regex::cached(str_at(values, 1)?, flags)?;
    let mut all = Vec::new();
    let mut held = Held::default();
    regex.each(text, 0, regex.groups() > 0, &mut || look(), |spans| {
        let groups = captured(text, &regex, spans);
        held.take(size_of::<Value>() + heap_bytes(&groups))?;
        all.push(groups);
        Ok(flags.all)
    })?;
    Ok(all)
}

/// A piece of what stands for a match.
enum Piece<'a> {
    Text(&'a str),
    Group(usize),
}

/// `\1` to `\9` and `\&` stand for what was matched, `\\` for a backslash; before anything else it is itself.
fn pieces(new: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut start, mut at) = (0, 0);
    let bytes = new.as_bytes();
    while at + 1 < bytes.len() {
        let piece = match (bytes[at], bytes[at + 1]) {
            (b'\\', b'&') => Piece::Group(0),
            (b'\\', digit @ b'1'..=b'9') => Piece::Group(usize::from(digit - b'0')),
            (b'\\', b'\\') => Piece::Text("\\"),
            _ => {
                at += 1;
                continue;
            }
        };
        pieces.extend([Piece::Text(&new[start..at]), piece]);
        at += 2;
        start = at;
    }
    pieces.push(Piece::Text(&new[start..]));
    pieces
}

/// Replaces the n-th match behind a start, or all of them (0).
fn replace(values: &[Value], start: i64, nth: Option<i64>, flags: &str, arguments: &Arguments<'_>) -> R {
    let (text, new) = (str_at(values, 0)?, str_at(values, 2)?);
    let from = start_of(text, start)?;
    let nth = nth.unwrap_or(1);
    if nth < 0 {
        return Err(bad_value("n", nth));
    }
    let regex = Regex::cached(str_at(values, 1)?, Flags::parse(flags)?)?;
    let Some(from) = from else { return Ok(values[0].clone()) };
    let pieces = pieces(new);
    let groups = pieces.iter().any(|piece| matches!(piece, Piece::Group(1..)));
    let (mut out, mut kept, mut seen) = (Text::new(), 0, 0i64);
    regex.each(text, from, groups, &mut || look(arguments), |spans| {
        seen += 1;
        let Some((start, end)) = spans[0].filter(|_| nth == 0 || nth == seen) else { return Ok(true) };
        out.push_str(&text[kept..start])?;
        for piece in &pieces {
            out.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Group(group) => {
                    spans.get(*group).copied().flatten().map_or("", |(start, end)| &text[start..end])
                }
            })?;
        }
        kept = end;
        Ok(nth == 0)
    })?;
    if kept == 0 && out.as_str().is_empty() {
        return Ok(values[0].clone());
    }
    out.push_str(&text[kept..])?;
    Ok(out.into_value())
}

fn count(values: &[Value], start: i64, flags: &str, arguments: &Arguments<'_>) -> R {
    let text = str_at(values, 0)?;
    let from = start_of(text, start)?;
    let regex = Regex::cached(str_at(values, 1)?, once(flags, "regexp_count()")?)?;
    let mut count = 0;
    if let Some(from) = from {
        regex.each(text, from, false, &mut || look(arguments), |_| {
            count += 1;
            Ok(true)
        })?;
    }
    Ok(Value::Int4(count))
}

/// The span of a group of the n-th match behind a start.
fn span_of(
    values: &[Value],
    (start, nth, flags, group): (i64, i64, Flags, i64),
    arguments: &Arguments<'_>,
) -> Result<Option<(usize, usize)>, SqlError> {
    let text = str_at(values, 0)?;
    let regex = Regex::cached(str_at(values, 1)?, flags)?;
    let (Some(from), Ok(group)) = (start_of(text, start)?, usize::try_from(group)) else { return Ok(None) };
    let (mut seen, mut found) = (0, None);
    regex.each(text, from, group > 0, &mut || look(arguments), |spans| {
        seen += 1;
        if seen == nth {
            found = spans.get(group).copied().flatten();
        }
        Ok(seen < nth)
    })?;
    Ok(found)
}

fn number(values: &[Value], at: usize, default: i64) -> Result<i64, SqlError> {
    values.get(at).map_or(Ok(default), |value| value.as_i64().ok_or_else(wrong_type))
}

fn flags(values: &[Value], at: usize, function: &str) -> Result<Flags, SqlError> {
    once(values.get(at).and_then(Value::as_str).unwrap_or(""), function)
}

fn at_least(name: &str, value: i64, least: i64) -> Result<i64, SqlError> {
    if value < least { Err(bad_value(name, value)) } else { Ok(value) }
}

fn instr(values: &[Value], arguments: &Arguments<'_>) -> R {
    let start = at_least("start", number(values, 2, 1)?, 1)?;
    let nth = at_least("n", number(values, 3, 1)?, 1)?;
    let end = number(values, 4, 0)?;
    if !(0..=1).contains(&end) {
        return Err(bad_value("endoption", end));
    }
    let flags = flags(values, 5, "regexp_instr()")?;
    let group = at_least("subexpr", number(values, 6, 0)?, 0)?;
    let Some(span) = span_of(values, (start, nth, flags, group), arguments)? else { return Ok(Value::Int4(0)) };
    let place = if end == 1 { span.1 } else { span.0 };
    Ok(Value::Int4(str_at(values, 0)?[..place].chars().count() as i32 + 1))
}

fn substr(values: &[Value], arguments: &Arguments<'_>) -> R {
    let start = at_least("start", number(values, 2, 1)?, 1)?;
    let nth = at_least("n", number(values, 3, 1)?, 1)?;
    let flags = flags(values, 4, "regexp_substr()")?;
    let group = at_least("subexpr", number(values, 5, 0)?, 0)?;
    Ok(cut(str_at(values, 0)?, span_of(values, (start, nth, flags, group), arguments)?))
}

/// The pieces between matches. A match of nothing counts only between two characters.
///
/// # Errors
/// 2201B, 22023.
fn split(values: &[Value], flags: &str, function: &str, arguments: &Arguments<'_>) -> Result<Vec<Value>, SqlError> {
    let text = str_at(values, 0)?;
    let regex = Regex::cached(str_at(values, 1)?, once(flags, function)?)?;
    let (mut pieces, mut from) = (Items::new(), 0);
    regex.each(text, 0, false, &mut || look(arguments), |spans| {
        if let Some((start, end)) = spans[0]
            && start < text.len()
            && end > from
        {
            pieces.push(Value::text(&text[from..start]))?;
            from = end;
        }
        Ok(true)
    })?;
    pieces.push(Value::text(&text[from..]))?;
    Ok(pieces.into_values())
}

/// A pattern of SIMILAR TO as a regular expression. Two escaped quotes cut it into three parts, of which the middle one is what
/// `substring` gives.
fn similar_pattern(pattern: &str, escape: &str) -> Result<String, SqlError> {
    let mut escapes = escape.chars();
    let escape = escapes.next();
    if escapes.next().is_some() {
        return Err(SqlError::new(SqlState(*b"22025"), "invalid escape string")
            .hint("Escape string must be empty or one character."));
    }
    let mut out = String::from("^(?:");
    let (mut in_class, mut quotes, mut escaped) = (0u8, 0, false);
    for c in pattern.chars() {
        if escaped {
            escaped = false;
            if c == '"' && in_class == 0 {
                quotes += 1;
                match quotes {
                    // The first part takes the least, the last what is left.
                    1 => out.push_str("){1,1}?("),
                    2 => out.push_str("){1,1}(?:"),
                    _ => {
                        return Err(SqlError::new(
                            SqlState(*b"2200C"),
                            "SQL regular expression may not contain more than two escape-double-quote separators",
                        ));
                    }
                }
            } else {
                out.push('\\');
                out.push(c);
            }
            continue;
        }
        if Some(c) == escape {
            escaped = true;
            continue;
        }
        match c {
            '\\' => out.push_str("\\\\"),
            c if in_class > 0 => {
                // A bracket closes the class, unless it is the first in it.
                match (c, in_class) {
                    (']', 2..) => in_class = 0,
                    ('^', 1) => {}
                    _ => in_class = 2,
                }
                out.push(c);
            }
            '[' => {
                in_class = 1;
                out.push('[');
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}

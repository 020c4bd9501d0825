//! json and jsonb: operators and construction.

use super::super::function::{Arguments, Function, Sig};
use super::{int_at, str_at, wrong_type};
use crate::types::json::{Json, index_of, raw_step, strip_nulls, write_string};
use crate::types::{SqlType as T, Text, Value, value_fits};
use crate::work;
use crate::{SqlError, SqlState};
use std::collections::BTreeSet;

/// Units of work of a comparison of two keys.
const KEY_UNITS: usize = 8;

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(T::Text);
const I4: Sig = Sig::Is(T::Int4);
const BOOL: Sig = Sig::Is(T::Bool);
const JSON: Sig = Sig::Is(T::Json);
const JSONB: Sig = Sig::Is(T::Jsonb);
const PATH: Sig = Sig::ArrayOf(T::Text);

pub(super) static TABLE: &[Function] = &[
    Function::pure("->", &[JSONB, TEXT], JSONB, |v, _| Ok(some(member(v)?.as_ref()))),
    Function::pure("->", &[JSONB, I4], JSONB, |v, _| Ok(some(element(v)?.as_ref()))),
    Function::pure("->>", &[JSONB, TEXT], TEXT, |v, _| Ok(plain(member(v)?.as_ref()))),
    Function::pure("->>", &[JSONB, I4], TEXT, |v, _| Ok(plain(element(v)?.as_ref()))),
    Function::pure("#>", &[JSONB, PATH], JSONB, |v, _| Ok(some(walk(v)?.as_ref()))),
    Function::pure("#>>", &[JSONB, PATH], TEXT, |v, _| Ok(plain(walk(v)?.as_ref()))),
    Function::pure("->", &[JSON, TEXT], JSON, |v, _| Ok(raw(raw_member(v)?))),
    Function::pure("->", &[JSON, I4], JSON, |v, _| Ok(raw(raw_step(str_at(v, 0)?, "", Some(int_at(v, 1)?))?))),
    Function::pure("->>", &[JSON, TEXT], TEXT, |v, _| raw_plain(raw_member(v)?)),
    Function::pure("->>", &[JSON, I4], TEXT, |v, _| raw_plain(raw_step(str_at(v, 0)?, "", Some(int_at(v, 1)?))?)),
    Function::pure("#>", &[JSON, PATH], JSON, |v, _| Ok(raw(raw_walk(v)?))),
    Function::pure("#>>", &[JSON, PATH], TEXT, |v, _| raw_plain(raw_walk(v)?)),
    Function::pure("@>", &[JSONB, JSONB], BOOL, |v, _| Ok(Value::Bool(parse(v, 0)?.contains(&parse(v, 1)?)?))),
    Function::pure("<@", &[JSONB, JSONB], BOOL, |v, _| Ok(Value::Bool(parse(v, 1)?.contains(&parse(v, 0)?)?))),
    Function::pure("?", &[JSONB, TEXT], BOOL, |v, _| Ok(Value::Bool(parse(v, 0)?.has_key(str_at(v, 1)?)))),
    Function::pure("?|", &[JSONB, PATH], BOOL, |v, _| keys(v, false)),
    Function::pure("?&", &[JSONB, PATH], BOOL, |v, _| keys(v, true)),
    Function::pure("||", &[JSONB, JSONB], JSONB, concatenate),
    Function::pure("-", &[JSONB, TEXT], JSONB, |v, _| {
        let key = str_at(v, 1)?;
        remove(parse(v, 0)?, |k| k == key)
    }),
    Function::pure("-", &[JSONB, PATH], JSONB, |v, _| {
        let keys: BTreeSet<String> = path(v)?.into_iter().collect();
        remove(parse(v, 0)?, |k| keys.contains(k))
    }),
    Function::pure("-", &[JSONB, I4], JSONB, remove_at),
    Function::pure("#-", &[JSONB, PATH], JSONB, |v, _| {
        let steps = path(v)?;
        jsonb(change(parse(v, 0)?, &steps, 0, None, false)?)
    }),
    Function::pure("jsonb_set", &[JSONB, PATH, JSONB], JSONB, set),
    Function::pure("jsonb_set", &[JSONB, PATH, JSONB, BOOL], JSONB, set),
    Function::pure("jsonb_extract_path", &[JSONB, TEXT], JSONB, |v, _| Ok(some(walk_list(v)?.as_ref()))).many(),
    Function::pure("jsonb_extract_path_text", &[JSONB, TEXT], TEXT, |v, _| Ok(plain(walk_list(v)?.as_ref()))).many(),
    Function::pure("json_extract_path", &[JSON, TEXT], JSON, |v, _| Ok(raw(raw_walk_list(v)?))).many(),
    Function::pure("json_extract_path_text", &[JSON, TEXT], TEXT, |v, _| raw_plain(raw_walk_list(v)?)).many(),
    Function::pure("jsonb_set_lax", &[JSONB, PATH, JSONB], JSONB, set_lax).lax(),
    Function::pure("jsonb_set_lax", &[JSONB, PATH, JSONB, BOOL], JSONB, set_lax).lax(),
    Function::pure("jsonb_set_lax", &[JSONB, PATH, JSONB, BOOL, TEXT], JSONB, set_lax).lax(),
    Function::pure("jsonb_insert", &[JSONB, PATH, JSONB], JSONB, insert),
    Function::pure("jsonb_insert", &[JSONB, PATH, JSONB, BOOL], JSONB, insert),
    Function::pure("json_object", &[PATH], JSON, |v, _| Ok(Value::Json(of_texts(v)?.into()))),
    Function::pure("json_object", &[PATH, PATH], JSON, |v, _| Ok(Value::Json(of_texts(v)?.into()))),
    Function::pure("jsonb_object", &[PATH], JSONB, |v, _| normal(&of_texts(v)?)),
    Function::pure("jsonb_object", &[PATH, PATH], JSONB, |v, _| normal(&of_texts(v)?)),
    Function::pure("json_strip_nulls", &[JSON], JSON, |v, _| {
        let mut out = String::new();
        strip_nulls(str_at(v, 0)?, &mut out)?;
        Ok(Value::Json(out.into()))
    }),
    Function::pure("jsonb_typeof", &[JSONB], TEXT, |v, _| Ok(Value::text(kind(&parse(v, 0)?)))),
    Function::pure("json_typeof", &[JSON], TEXT, |v, _| Ok(Value::text(kind_of_text(str_at(v, 0)?)))),
    Function::pure("jsonb_array_length", &[JSONB], I4, array_length),
    Function::pure("json_array_length", &[JSON], I4, array_length),
    Function::pure("jsonb_strip_nulls", &[JSONB], JSONB, |v, _| jsonb(strip(parse(v, 0)?))),
    Function::pure("jsonb_pretty", &[JSONB], TEXT, |v, _| {
        let mut out = Text::new();
        pretty(&parse(v, 0)?, 0, &mut out)?;
        Ok(out.into_value())
    }),
    Function::stable("to_json", &[Sig::Any], JSON, |v, a| Ok(Value::Json(written(v, 0, a, false)?.into()))),
    Function::stable("to_jsonb", &[Sig::Any], JSONB, |v, a| normal(&written(v, 0, a, true)?)),
    Function::stable("row_to_json", &[Sig::Is(T::Record)], JSON, |v, a| {
        Ok(Value::Json(written(v, 0, a, false)?.into()))
    }),
    Function::stable("row_to_json", &[Sig::Is(T::Record), BOOL], JSON, lines),
    Function::stable("array_to_json", &[Sig::Any, BOOL], JSON, lines),
    Function::stable("array_to_json", &[Sig::Any], JSON, |v, a| Ok(Value::Json(written(v, 0, a, false)?.into()))),
    Function::pure("json_build_object", &[], JSON, |_, _| Ok(Value::Json("{}".into()))),
    Function::pure("jsonb_build_object", &[], JSONB, |_, _| Ok(Value::Jsonb("{}".into()))),
    Function::pure("json_build_array", &[], JSON, |_, _| Ok(Value::Json("[]".into()))),
    Function::pure("jsonb_build_array", &[], JSONB, |_, _| Ok(Value::Jsonb("[]".into()))),
    Function::stable("json_build_object", &[Sig::Any], JSON, |v, a| Ok(Value::Json(object(v, a, false)?.into())))
        .many()
        .lax(),
    Function::stable("jsonb_build_object", &[Sig::Any], JSONB, |v, a| normal(&object(v, a, true)?)).many().lax(),
    Function::stable("json_build_array", &[Sig::Any], JSON, |v, a| Ok(Value::Json(array(v, a, false)?.into())))
        .many()
        .lax(),
    Function::stable("jsonb_build_array", &[Sig::Any], JSONB, |v, a| normal(&array(v, a, true)?)).many().lax(),
];

fn parse(values: &[Value], i: usize) -> Result<Json, SqlError> {
    Json::parse(str_at(values, i)?)
}

fn jsonb(value: Json) -> R {
    Ok(Value::Jsonb(value.to_string().into()))
}

fn normal(text: &str) -> R {
    jsonb(Json::parse(text)?.normalize())
}

fn some(value: Option<&Json>) -> Value {
    value.map_or(Value::Null, |value| Value::Jsonb(value.to_string().into()))
}

fn plain(value: Option<&Json>) -> Value {
    value.and_then(Json::to_plain).map_or(Value::Null, Value::text)
}

fn member(values: &[Value]) -> Result<Option<Json>, SqlError> {
    Ok(parse(values, 0)?.member(str_at(values, 1)?).cloned())
}

fn element(values: &[Value]) -> Result<Option<Json>, SqlError> {
    Ok(parse(values, 0)?.element(int_at(values, 1)?).cloned())
}

/// Steps of a path; a NULL among them leads nowhere.
fn path(values: &[Value]) -> Result<Vec<String>, SqlError> {
    match values.get(1) {
        Some(Value::Array(array)) => {
            Ok(array.values.iter().filter_map(|step| step.as_str().map(str::to_owned)).collect())
        }
        _ => Err(wrong_type()),
    }
}

fn has_null(values: &[Value]) -> bool {
    matches!(values.get(1), Some(Value::Array(array)) if array.values.iter().any(Value::is_null))
}

fn walk(values: &[Value]) -> Result<Option<Json>, SqlError> {
    if has_null(values) {
        return Ok(None);
    }
    let root = parse(values, 0)?;
    Ok(path(values)?.iter().try_fold(&root, |at, step| at.step(step)).cloned())
}

fn walk_list(values: &[Value]) -> Result<Option<Json>, SqlError> {
    let root = parse(values, 0)?;
    Ok(values[1..].iter().try_fold(&root, |at, step| at.step(step.as_str()?)).cloned())
}

/// What a path without steps leads to: of a scalar the blanks before it belong to it.
fn whole(document: &str) -> &str {
    let text = document.trim();
    if text.starts_with(['{', '[']) { text } else { document.trim_end() }
}

fn raw_walk_list(values: &[Value]) -> Result<Option<&str>, SqlError> {
    let mut at = whole(str_at(values, 0)?);
    for step in &values[1..] {
        match raw_step(at, step.as_str().ok_or_else(wrong_type)?, None)? {
            Some(inner) => at = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// An object of texts: names and values by turns, in pairs, or in two arrays.
fn of_texts(values: &[Value]) -> Result<String, SqlError> {
    let subscripts = |text: &str| SqlError::new(SqlState(*b"2202E"), text.to_owned());
    let array = |i: usize| match values.get(i) {
        Some(Value::Array(array)) => Ok(array),
        _ => Err(wrong_type()),
    };
    let names = array(0)?;
    let pairs: Vec<(&Value, &Value)> = if values.len() > 1 {
        let others = array(1)?;
        if names.dimensions.len() > 1 || others.dimensions.len() > 1 {
            return Err(subscripts("wrong number of array subscripts"));
        }
        if names.values.len() != others.values.len() {
            return Err(subscripts("mismatched array dimensions"));
        }
        names.values.iter().zip(&others.values).collect()
    } else {
        match names.dimensions.as_slice() {
            [] | [_] if !names.values.len().is_multiple_of(2) => {
                return Err(subscripts("array must have even number of elements"));
            }
            [] | [_] | [_, (2, _)] => names.values.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect(),
            [_, _] => return Err(subscripts("array must have two columns")),
            _ => return Err(subscripts("wrong number of array subscripts")),
        }
    };
    let mut out = String::from("{");
    for (i, (name, value)) in pairs.into_iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        let name =
            name.as_str().ok_or_else(|| SqlError::new(SqlState(*b"22004"), "null value not allowed for object key"))?;
        write_string(name, &mut out);
        out.push_str(" : ");
        match value.as_str() {
            Some(text) => write_string(text, &mut out),
            None => out.push_str("null"),
        }
    }
    out.push('}');
    value_fits(out.len())?;
    Ok(out)
}

/// `row_to_json(.., true)`, `array_to_json(.., true)`: a line for each part of the outermost.
fn lines(values: &[Value], arguments: &Arguments<'_>) -> R {
    let compact = written(values, 0, arguments, false)?;
    if values.get(1) != Some(&Value::Bool(true)) {
        return Ok(Value::Json(compact.into()));
    }
    let Some(parts) = crate::types::json::raw_parts(&compact)? else { return Ok(Value::Json(compact.into())) };
    let is_object = compact.starts_with('{');
    let mut out = String::from(if is_object { "{" } else { "[" });
    for (i, (name, part)) in parts.into_iter().enumerate() {
        if i > 0 {
            out.push_str(",\n ");
        }
        if is_object {
            write_string(&name, &mut out);
            out.push(':');
        }
        out.push_str(part);
    }
    out.push(if is_object { '}' } else { ']' });
    Ok(Value::Json(out.into()))
}

/// `jsonb_set` that says what a NULL does.
fn set_lax(values: &[Value], arguments: &Arguments<'_>) -> R {
    if values.iter().enumerate().any(|(i, value)| i != 2 && i != 4 && value.is_null()) {
        return Ok(Value::Null);
    }
    if !values[2].is_null() {
        return set(&values[..values.len().min(4)], arguments);
    }
    let root = || parse(values, 0);
    match values.get(4).map_or(Some("use_json_null"), Value::as_str) {
        Some("use_json_null") => {
            let mut with_null = values[..values.len().min(4)].to_vec();
            with_null[2] = Value::Jsonb("null".into());
            set(&with_null, arguments)
        }
        Some("delete_key") => jsonb(change(root()?, &path(values)?, 0, None, false)?),
        Some("return_target") => Ok(values[0].clone()),
        Some("raise_exception") => Err(SqlError::new(SqlState(*b"22004"), "JSON value must not be null")
            .detail("Exception was raised because null_value_treatment is \"raise_exception\".")
            .hint(
                "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
            )),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER,
            "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"",
        )),
    }
}

fn insert(values: &[Value], _: &Arguments<'_>) -> R {
    let after = values.get(3) == Some(&Value::Bool(true));
    let root = parse(values, 0)?;
    if !matches!(root, Json::Object(_) | Json::Array(_)) {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, "cannot set path in scalar"));
    }
    jsonb(inserted(root, &path(values)?, 0, &parse(values, 2)?, after)?)
}

/// Puts a value in at the end of a path: before or behind an element, or as a new member.
fn inserted(value: Json, steps: &[String], at: usize, new: &Json, after: bool) -> Result<Json, SqlError> {
    let Some((step, rest)) = steps.get(at..).and_then(<[String]>::split_first) else { return Ok(value) };
    Ok(match value {
        Json::Object(mut members) => {
            match members.iter().position(|(key, _)| key == step) {
                Some(_) if rest.is_empty() => {
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER, "cannot replace existing key")
                        .hint("Try using the function jsonb_set to replace key value."));
                }
                Some(place) => {
                    let inner = std::mem::replace(&mut members[place].1, Json::Null);
                    members[place].1 = inserted(inner, steps, at + 1, new, after)?;
                }
                None if rest.is_empty() => members.push((step.clone(), new.clone())),
                None => {}
            }
            Json::Object(members).normalize()
        }
        Json::Array(mut elements) => {
            let index = index_at(step, at)?;
            let length = elements.len() as i64;
            let place = if index < 0 { index + length } else { index };
            if rest.is_empty() {
                let place = if (0..length).contains(&place) { place + i64::from(after) } else { place };
                elements.insert(place.clamp(0, length) as usize, new.clone());
            } else if (0..length).contains(&place) {
                let inner = std::mem::replace(&mut elements[place as usize], Json::Null);
                elements[place as usize] = inserted(inner, steps, at + 1, new, after)?;
            }
            Json::Array(elements)
        }
        scalar => scalar,
    })
}

/// A step of a path as an array's index; `at` is its place in the path.
fn index_at(step: &str, at: usize) -> Result<i64, SqlError> {
    index_of(step).ok_or_else(|| {
        let message = format!("path element at position {} is not an integer: \"{step}\"", at + 1);
        SqlError::new(SqlState::INVALID_TEXT, message)
    })
}

fn raw(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Json(text.into()))
}

fn raw_plain(text: Option<&str>) -> R {
    Ok(match text {
        None => Value::Null,
        // Only the whole document has blanks around it.
        Some(text) if text.trim_start() == "null" => Value::Null,
        Some(text) if text.trim_start().starts_with('"') => plain(Some(&Json::parse(text)?)),
        Some(text) => Value::text(text),
    })
}

fn raw_member(values: &[Value]) -> Result<Option<&str>, SqlError> {
    let text = str_at(values, 0)?;
    // A name does not select from an array.
    if text.trim_start().starts_with('[') {
        return Ok(None);
    }
    raw_step(text, str_at(values, 1)?, None)
}

fn raw_walk(values: &[Value]) -> Result<Option<&str>, SqlError> {
    if has_null(values) {
        return Ok(None);
    }
    let mut at = whole(str_at(values, 0)?);
    for step in path(values)? {
        match raw_step(at, &step, None)? {
            Some(inner) => at = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

fn keys(values: &[Value], all: bool) -> R {
    let value = parse(values, 0)?;
    let keys = path(values)?;
    for key in &keys {
        work::step(KEY_UNITS * value.width())?;
        if value.has_key(key) != all {
            return Ok(Value::Bool(!all));
        }
    }
    Ok(Value::Bool(all))
}

fn concatenate(values: &[Value], _: &Arguments<'_>) -> R {
    let list = |value: Json| match value {
        Json::Array(elements) => elements,
        other => vec![other],
    };
    match (parse(values, 0)?, parse(values, 1)?) {
        (Json::Object(mut left), Json::Object(right)) => {
            left.extend(right);
            jsonb(Json::Object(left).normalize())
        }
        (left, right) => {
            let mut all = list(left);
            all.extend(list(right));
            jsonb(Json::Array(all))
        }
    }
}

fn scalar_delete() -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER, "cannot delete from scalar")
}

fn remove(value: Json, gone: impl Fn(&str) -> bool) -> R {
    match value {
        Json::Object(members) => jsonb(Json::Object(members.into_iter().filter(|(key, _)| !gone(key)).collect())),
        Json::Array(elements) => jsonb(Json::Array(
            elements.into_iter().filter(|e| !matches!(e, Json::String(text) if gone(text))).collect(),
        )),
        _ => Err(scalar_delete()),
    }
}

fn remove_at(values: &[Value], _: &Arguments<'_>) -> R {
    match parse(values, 0)? {
        Json::Array(mut elements) => {
            let index = int_at(values, 1)?;
            let index = if index < 0 { index + elements.len() as i64 } else { index };
            if let Some(index) = usize::try_from(index).ok().filter(|i| *i < elements.len()) {
                elements.remove(index);
            }
            jsonb(Json::Array(elements))
        }
        Json::Object(_) => {
            Err(SqlError::new(SqlState::INVALID_PARAMETER, "cannot delete from object using integer index"))
        }
        _ => Err(scalar_delete()),
    }
}

/// Replaces (or with `None` removes) what a path leads to; `create` adds a last step that is missing.
fn change(value: Json, steps: &[String], at: usize, new: Option<&Json>, create: bool) -> Result<Json, SqlError> {
    let Some((step, rest)) = steps.get(at..).and_then(<[String]>::split_first) else { return Ok(value) };
    Ok(match value {
        Json::Object(mut members) => {
            match members.iter().position(|(key, _)| key == step) {
                Some(place) if rest.is_empty() => match new {
                    Some(new) => members[place].1 = new.clone(),
                    None => drop(members.remove(place)),
                },
                Some(place) => {
                    let inner = std::mem::replace(&mut members[place].1, Json::Null);
                    members[place].1 = change(inner, steps, at + 1, new, create)?;
                }
                None => {
                    if let Some(new) = new.filter(|_| create && rest.is_empty()) {
                        members.push((step.clone(), new.clone()));
                    }
                }
            }
            Json::Object(members).normalize()
        }
        Json::Array(mut elements) => {
            let index = index_at(step, at)?;
            let length = elements.len() as i64;
            let place = if index < 0 { index + length } else { index };
            if (0..length).contains(&place) {
                let place = place as usize;
                match (rest.is_empty(), new) {
                    (true, Some(new)) => elements[place] = new.clone(),
                    (true, None) => drop(elements.remove(place)),
                    (false, _) => {
                        let inner = std::mem::replace(&mut elements[place], Json::Null);
                        elements[place] = change(inner, steps, at + 1, new, create)?;
                    }
                }
            } else if let Some(new) = new.filter(|_| create && rest.is_empty()) {
                if place < 0 { elements.insert(0, new.clone()) } else { elements.push(new.clone()) }
            }
            Json::Array(elements)
        }
        scalar => scalar,
    })
}

fn set(values: &[Value], _: &Arguments<'_>) -> R {
    let create = values.get(3).is_none_or(|v| *v == Value::Bool(true));
    let root = parse(values, 0)?;
    if !matches!(root, Json::Object(_) | Json::Array(_)) {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, "cannot set path in scalar"));
    }
    jsonb(change(root, &path(values)?, 0, Some(&parse(values, 2)?), create)?)
}

/// What a document is, by its first character: its escapes may be ones that no text could hold.
fn kind_of_text(text: &str) -> &'static str {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    }
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn array_length(values: &[Value], _: &Arguments<'_>) -> R {
    match parse(values, 0)? {
        Json::Array(elements) => Ok(Value::Int4(elements.len() as i32)),
        Json::Object(_) => Err(SqlError::new(SqlState::INVALID_PARAMETER, "cannot get array length of a non-array")),
        _ => Err(SqlError::new(SqlState::INVALID_PARAMETER, "cannot get array length of a scalar")),
    }
}

fn strip(value: Json) -> Json {
    match value {
        Json::Object(members) => {
            Json::Object(members.into_iter().filter(|(_, v)| *v != Json::Null).map(|(k, v)| (k, strip(v))).collect())
        }
        Json::Array(elements) => Json::Array(elements.into_iter().map(strip).collect()),
        other => other,
    }
}

fn pretty(value: &Json, depth: usize, out: &mut Text) -> Result<(), SqlError> {
    let indent = |depth: usize, out: &mut Text| {
        out.push('\n')?;
        out.push_repeated("    ", depth)
    };
    match value {
        Json::Object(members) => {
            out.push('{')?;
            for (i, (key, value)) in members.iter().enumerate() {
                if i > 0 {
                    out.push(',')?;
                }
                indent(depth + 1, out)?;
                let mut quoted = String::new();
                write_string(key, &mut quoted);
                out.push_str(&quoted)?;
                out.push_str(": ")?;
                pretty(value, depth + 1, out)?;
            }
            indent(depth, out)?;
            out.push('}')
        }
        Json::Array(elements) => {
            out.push('[')?;
            for (i, element) in elements.iter().enumerate() {
                if i > 0 {
                    out.push(',')?;
                }
                indent(depth + 1, out)?;
                pretty(element, depth + 1, out)?;
            }
            indent(depth, out)?;
            out.push(']')
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// A value of any type as json text. `spaced` matters not for jsonb, which is normalised afterwards.
fn write_value(value: &Value, ty: &T, arguments: &Arguments<'_>, out: &mut String) -> Result<(), SqlError> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(v) => out.push_str(if *v { "true" } else { "false" }),
        Value::Int2(_) | Value::Int4(_) | Value::Int8(_) => out.push_str(&value.to_text(ty, arguments.settings())),
        Value::Float4(_) | Value::Float8(_) | Value::Numeric(_) => {
            let text = value.to_text(ty, arguments.settings());
            // NaN and the infinities are no json numbers.
            if text.ends_with(['N', 'y']) { write_string(&text, out) } else { out.push_str(&text) }
        }
        Value::Json(text) | Value::Jsonb(text) => out.push_str(text),
        Value::Array(array) => write_array(array, 0, &mut 0, arguments, out)?,
        Value::Record(fields) => {
            out.push('{');
            for (i, field) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(&fields.name(i), out);
                out.push(':');
                write_value(field, &fields.field_type(i), arguments, out)?;
            }
            out.push('}');
        }
        Value::Date(_) => write_string(&value.to_iso_text(ty, arguments.settings()), out),
        Value::Timestamp(_) | Value::Timestamptz(_) => write_string(&iso(value, ty, arguments), out),
        other => write_string(&other.to_output(ty, &arguments.cast_context())?, out),
    }
    value_fits(out.len())
}

/// Timestamps in json have a T, and a full offset.
fn iso(value: &Value, ty: &T, arguments: &Arguments<'_>) -> String {
    let mut text = value.to_iso_text(ty, arguments.settings()).replacen(' ', "T", 1);
    let zone_at = text.rfind(['+', '-']).filter(|at| *at > text.find('T').unwrap_or(usize::MAX));
    if let Some(at) = zone_at
        && text.len() - at == 3
    {
        text.push_str(":00");
    }
    text
}

fn write_array(
    array: &crate::types::Array,
    depth: usize,
    next: &mut usize,
    arguments: &Arguments<'_>,
    out: &mut String,
) -> Result<(), SqlError> {
    out.push('[');
    let length = array.dimensions.get(depth).map_or(array.values.len(), |d| d.0.max(0) as usize);
    for i in 0..length {
        if i > 0 {
            out.push(',');
        }
        if depth + 1 < array.dimensions.len() {
            write_array(array, depth + 1, next, arguments, out)?;
        } else if let Some(value) = array.values.get(*next) {
            *next += 1;
            write_value(value, &array.element, arguments, out)?;
        }
    }
    out.push(']');
    Ok(())
}

fn written(values: &[Value], i: usize, arguments: &Arguments<'_>, _binary: bool) -> Result<String, SqlError> {
    let mut out = String::new();
    let ty = arguments.types.get(i).ok_or_else(wrong_type)?;
    write_value(values.get(i).ok_or_else(wrong_type)?, ty, arguments, &mut out)?;
    Ok(out)
}

fn object(values: &[Value], arguments: &Arguments<'_>, _binary: bool) -> Result<String, SqlError> {
    if !values.len().is_multiple_of(2) {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER, "argument list must have even number of elements")
            .hint("The arguments of json_build_object() must consist of alternating keys and values."));
    }
    let mut out = String::from("{");
    for i in (0..values.len()).step_by(2) {
        if i > 0 {
            out.push_str(", ");
        }
        if values[i].is_null() {
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, format!("argument {} cannot be null", i + 1))
                .hint("Object keys should be text."));
        }
        if matches!(values[i], Value::Array(_) | Value::Record(_) | Value::Json(_) | Value::Jsonb(_)) {
            let message = "key value must be scalar, not array, composite, or json";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER, message));
        }
        write_string(&super::shown(values, i, arguments)?, &mut out);
        out.push_str(" : ");
        out.push_str(&written(values, i + 1, arguments, false)?);
        value_fits(out.len())?;
    }
    out.push('}');
    Ok(out)
}

fn array(values: &[Value], arguments: &Arguments<'_>, binary: bool) -> Result<String, SqlError> {
    let mut out = Text::new();
    out.push('[')?;
    for i in 0..values.len() {
        if i > 0 {
            out.push_str(", ")?;
        }
        out.push_str(&written(values, i, arguments, binary)?)?;
    }
    out.push(']')?;
    Ok(out.into_string())
}

//! `f(a, VARIADIC b)`: the elements of an array as a function's last arguments.

use crate::function::{Arguments, Function, Sig, by_name};
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};

type R = Result<Value, SqlError>;

const TEXT: Sig = Sig::Is(SqlType::Text);
const JSON: Sig = Sig::Is(SqlType::Json);
const JSONB: Sig = Sig::Is(SqlType::Jsonb);

/// Of any type, and of text.
const ANY: Sig = Sig::ArrayOfElement;
const TEXTS: Sig = Sig::ArrayOf(SqlType::Text);
const NUMBER: Sig = Sig::Is(SqlType::Int4);

/// The functions that repeat their last argument, with an array in its place.
static SPREAD: &[Function] = &[
    Function::stable("concat", &[ANY], TEXT, |v, a| spread("concat", v, a)).lax(),
    Function::stable("concat_ws", &[TEXT, ANY], TEXT, |v, a| spread("concat_ws", v, a)).lax(),
    Function::stable("format", &[TEXT, ANY], TEXT, |v, a| spread("format", v, a)).lax(),
    Function::stable("json_build_array", &[ANY], JSON, |v, a| spread("json_build_array", v, a)).lax(),
    Function::stable("json_build_object", &[ANY], JSON, |v, a| spread("json_build_object", v, a)).lax(),
    Function::stable("jsonb_build_array", &[ANY], JSONB, |v, a| spread("jsonb_build_array", v, a)).lax(),
    Function::stable("jsonb_build_object", &[ANY], JSONB, |v, a| spread("jsonb_build_object", v, a)).lax(),
    Function::pure("json_extract_path", &[JSON, TEXTS], JSON, |v, a| spread("json_extract_path", v, a)),
    Function::pure("json_extract_path_text", &[JSON, TEXTS], TEXT, |v, a| spread("json_extract_path_text", v, a)),
    Function::pure("jsonb_extract_path", &[JSONB, TEXTS], JSONB, |v, a| spread("jsonb_extract_path", v, a)),
    Function::pure("jsonb_extract_path_text", &[JSONB, TEXTS], TEXT, |v, a| spread("jsonb_extract_path_text", v, a)),
    Function::pure("num_nonnulls", &[ANY], NUMBER, |v, a| spread("num_nonnulls", v, a)).lax(),
    Function::pure("num_nulls", &[ANY], NUMBER, |v, a| spread("num_nulls", v, a)).lax(),
];

/// The form of a function that takes an array for its last arguments.
pub(crate) fn named(name: &str) -> Option<&'static Function> {
    SPREAD.iter().find(|function| function.name == name)
}

/// Calls a function with the elements of the last value behind the others.
fn spread(name: &str, values: &[Value], arguments: &Arguments<'_>) -> R {
    let function = by_name(name).iter().find(|function| function.variadic);
    let (Some(function), Some((last, before))) = (function, values.split_last()) else {
        return Err(SqlError::new(SqlState::INTERNAL_ERROR, format!("{name} does not repeat an argument")));
    };
    let elements = match last {
        Value::Array(array) => array.values.as_slice(),
        // What is not there is no argument of a template; elsewhere the result is not there either.
        _ if name == "format" => &[],
        _ => return Ok(Value::Null),
    };
    let element = match arguments.types.last() {
        Some(SqlType::Array(element)) => element.as_ref().clone(),
        _ => SqlType::Text,
    };
    let all: Vec<Value> = before.iter().chain(elements).cloned().collect();
    let mut types = arguments.types[..before.len().min(arguments.types.len())].to_vec();
    types.resize(all.len(), element);
    function.call(&all, &Arguments { types: &types, ..*arguments })
}

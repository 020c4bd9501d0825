//! `x LIKE ANY (array)`, `x ~ ALL (array)` and their kin, of arrays that are not written out. Each is a function whose name no statement can write.

use super::regexp::matches;

use super::{str_at, wrong_type};
use crate::SqlError;
use crate::function::{Arguments, Function, Sig};
use crate::pattern::like;
use crate::regex::Flags;
use crate::types::{SqlType as T, Value};

const TEXT: Sig = Sig::Is(T::Text);
const CHAR: Sig = Sig::Is(T::Char(0));
const LIST: Sig = Sig::ArrayOf(T::Text);
const BOOL: Sig = Sig::Is(T::Bool);

/// Whether a text matches a pattern: both, in this order.
type Matches = fn(&[Value], &Arguments<'_>) -> Result<bool, SqlError>;

const LIKE: Matches = |v, _| like(str_at(v, 0)?, str_at(v, 1)?, Some('\\'));
const ILIKE: Matches = |v, _| like(&str_at(v, 0)?.to_lowercase(), &str_at(v, 1)?.to_lowercase(), Some('\\'));
const REGEX: Matches = |v, a| matches(v, Flags::NONE, a);
const IREGEX: Matches = |v, a| matches(v, Flags::IGNORE_CASE, a);

/// ANY and ALL of an operator; `$matched`: what it says of a match.
macro_rules! lists {
    ($(($any:literal, $all:literal, $matches:expr, $matched:literal)),* $(,)?) => {
        &[$(
            Function::pure($any, &[TEXT, LIST], BOOL, |v, a| each(v, a, false, $matches, $matched)).lax(),
            Function::pure($any, &[CHAR, LIST], BOOL, |v, a| each(v, a, false, $matches, $matched)).lax(),
            Function::pure($all, &[TEXT, LIST], BOOL, |v, a| each(v, a, true, $matches, $matched)).lax(),
            Function::pure($all, &[CHAR, LIST], BOOL, |v, a| each(v, a, true, $matches, $matched)).lax(),
        )*]
    };
}

pub(super) static TABLE: &[Function] = lists![
    ("~~ any", "~~ all", LIKE, true),
    ("!~~ any", "!~~ all", LIKE, false),
    ("~~* any", "~~* all", ILIKE, true),
    ("!~~* any", "!~~* all", ILIKE, false),
    ("~ any", "~ all", REGEX, true),
    ("!~ any", "!~ all", REGEX, false),
    ("~* any", "~* all", IREGEX, true),
    ("!~* any", "!~* all", IREGEX, false),
];

fn each(
    values: &[Value],
    arguments: &Arguments<'_>,
    all: bool,
    matches: Matches,
    matched: bool,
) -> Result<Value, SqlError> {
    let (text, patterns) = match values {
        [_, Value::Null] => return Ok(Value::Null),
        [text, Value::Array(patterns)] => (text, patterns),
        _ => return Err(wrong_type()),
    };
    // Of no pattern it is known what comes of it, whatever the text.
    if text.is_null() && !patterns.values.is_empty() {
        return Ok(Value::Null);
    }
    let mut unknown = false;
    for pattern in &patterns.values {
        if pattern.is_null() {
            unknown = true;
            continue;
        }
        let holds = matches(&[text.clone(), pattern.clone()], arguments)? == matched;
        if holds != all {
            return Ok(Value::Bool(holds));
        }
    }
    Ok(if unknown { Value::Null } else { Value::Bool(all) })
}

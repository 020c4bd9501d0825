//! `(a, b) OVERLAPS (c, d)`: whether two spans of time have a moment in common.
//!
//! A span is two moments, in whichever order, or a moment and how long it lasts. It has its first moment and not its last one, unless both are
//! the same. An end that is NULL is unknown, and so is the answer where it matters.

use super::super::function::{Arguments, Function, Sig};
use super::date::add_local;
use super::date_operators::{time_plus, zoned};
use super::wrong_type;
use crate::SqlError;
use crate::types::{SqlType as T, Value};
use std::cmp::Ordering;

type R = Result<Value, SqlError>;

const BOOL: Sig = Sig::Is(T::Bool);
const TIME: Sig = Sig::Is(T::Time(None));
const TIMETZ: Sig = Sig::Is(T::Timetz(None));
const TS: Sig = Sig::Is(T::Timestamp(None));
const TSTZ: Sig = Sig::Is(T::Timestamptz(None));
const IV: Sig = Sig::Is(T::Interval(None));

pub(super) static TABLE: &[Function] = &[
    Function::pure("overlaps", &[TIME, TIME, TIME, TIME], BOOL, overlaps).lax(),
    Function::pure("overlaps", &[TIME, IV, TIME, IV], BOOL, overlaps).lax(),
    Function::pure("overlaps", &[TIME, IV, TIME, TIME], BOOL, overlaps).lax(),
    Function::pure("overlaps", &[TIME, TIME, TIME, IV], BOOL, overlaps).lax(),
    Function::pure("overlaps", &[TIMETZ, TIMETZ, TIMETZ, TIMETZ], BOOL, overlaps).lax(),
    Function::pure("overlaps", &[TS, TS, TS, TS], BOOL, overlaps).lax(),
    Function::pure("overlaps", &[TS, IV, TS, IV], BOOL, overlaps).lax(),
    Function::pure("overlaps", &[TS, IV, TS, TS], BOOL, overlaps).lax(),
    Function::pure("overlaps", &[TS, TS, TS, IV], BOOL, overlaps).lax(),
    Function::pure("overlaps", &[TSTZ, TSTZ, TSTZ, TSTZ], BOOL, overlaps).lax(),
    Function::stable("overlaps", &[TSTZ, IV, TSTZ, IV], BOOL, overlaps).lax(),
    Function::stable("overlaps", &[TSTZ, IV, TSTZ, TSTZ], BOOL, overlaps).lax(),
    Function::stable("overlaps", &[TSTZ, TSTZ, TSTZ, IV], BOOL, overlaps).lax(),
];

/// The ends of a span as they are given: the second one, if it is a length, counted from the first.
fn span(values: &[Value], first: usize, arguments: &Arguments<'_>) -> Result<(Value, Value), SqlError> {
    let (from, to) = (&values[first], &values[first + 1]);
    let Value::Interval(length) = to else { return Ok((from.clone(), to.clone())) };
    let end = match from {
        Value::Time(time) => time_plus(*time, length.micros)?,
        Value::Timestamp(at) => Value::Timestamp(add_local(*at, *length)?),
        Value::Timestamptz(at) => zoned(*at, *length, arguments)?,
        Value::Null => Value::Null,
        _ => return Err(wrong_type()),
    };
    Ok((from.clone(), end))
}

/// The earlier end first; one that is NULL last.
fn in_order((from, to): (Value, Value)) -> (Value, Value) {
    if order(&from, &to).is_gt() { (to, from) } else { (from, to) }
}

/// NULL is above all.
fn order(a: &Value, b: &Value) -> Ordering {
    a.compare(b, &a.natural_type())
}

fn overlaps(values: &[Value], arguments: &Arguments<'_>) -> R {
    let (a, b) = in_order(span(values, 0, arguments)?);
    let (c, d) = in_order(span(values, 2, arguments)?);
    if a.is_null() || c.is_null() {
        return Ok(Value::Null);
    }
    // The span that begins first has to last until the other one begins.
    let lasts = |end: &Value, other_end: &Value, begin: &Value| match end {
        Value::Null => Value::Null,
        end if order(begin, end).is_lt() => Value::Bool(true),
        _ if other_end.is_null() => Value::Null,
        _ => Value::Bool(false),
    };
    Ok(match order(&a, &c) {
        Ordering::Less => lasts(&b, &d, &c),
        Ordering::Greater => lasts(&d, &b, &a),
        Ordering::Equal if b.is_null() || d.is_null() => Value::Null,
        Ordering::Equal => Value::Bool(true),
    })
}

//! Order, equality and hash keys of values.
//!
//! Invariants:
//! 1. The order is total within a type: NaN equals itself and is above all numbers; NULL is above all values, and equal to
//!    itself (SQL's three-valued answers are made above this).
//! 2. Values that compare equal have the same hash key.

use super::json::Json;
use super::{Array, Numeric, RegKind, SqlType, Value};
use std::cmp::Ordering;

fn float_order(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        // -0 equals 0.
        _ => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
    }
}

/// A char(n) without its padding.
pub(crate) fn unpadded(text: &str) -> &str {
    text.trim_end_matches(' ')
}

impl Value {
    /// Compares two values of one type. Of `ty` only char(n) matters: its trailing blanks do not count.
    #[inline]
    pub fn compare(&self, other: &Value, ty: &SqlType) -> Ordering {
        match (self, other) {
            (Value::Int4(a), Value::Int4(b)) => a.cmp(b),
            (Value::Int8(a), Value::Int8(b)) => a.cmp(b),
            (Value::Numeric(a), Value::Numeric(b)) => a.compare(b),
            (Value::Date(a), Value::Date(b)) => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => match ty {
                SqlType::Char(_) => unpadded(a).as_bytes().cmp(unpadded(b).as_bytes()),
                _ => a.as_bytes().cmp(b.as_bytes()),
            },
            _ => self.compare_rest(other),
        }
    }

    fn compare_rest(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) => Ordering::Greater,
            (_, Value::Null) => Ordering::Less,
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int2(a), Value::Int2(b)) => a.cmp(b),
            (Value::Float4(a), Value::Float4(b)) => float_order(f64::from(*a), f64::from(*b)),
            (Value::Float8(a), Value::Float8(b)) => float_order(*a, *b),
            (Value::Bytea(a), Value::Bytea(b)) => a.cmp(b),
            (Value::Time(a), Value::Time(b))
            | (Value::Timestamp(a), Value::Timestamp(b))
            | (Value::Timestamptz(a), Value::Timestamptz(b)) => a.cmp(b),
            (Value::Timetz(a), Value::Timetz(b)) => a.cmp(b),
            (Value::Interval(a), Value::Interval(b)) => a.compare(b),
            (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
            (Value::Oid(a), Value::Oid(b)) => a.cmp(b),
            (Value::Json(a), Value::Json(b)) => a.cmp(b),
            (Value::Jsonb(a), Value::Jsonb(b)) => compare_jsonb(a, b),
            (Value::Array(a), Value::Array(b)) => a.compare(b),
            (Value::Record(a), Value::Record(b)) => a
                .iter()
                .zip(b.iter())
                .map(|(a, b)| a.compare(b, &a.natural_type()))
                .find(|order| order.is_ne())
                .unwrap_or_else(|| a.len().cmp(&b.len())),
            // Integers of different widths, and the rest by kind: never by panic.
            (a, b) => match (a.as_i64(), b.as_i64()) {
                (Some(a), Some(b)) => a.cmp(&b),
                _ => a.natural_type().oid().cmp(&b.natural_type().oid()),
            },
        }
    }

    /// Equality within one type; NULL equals NULL (`IS NOT DISTINCT FROM`).
    pub fn same(&self, other: &Value, ty: &SqlType) -> bool {
        self.compare(other, ty).is_eq()
    }

    /// The type that a value shows by itself, without modifiers.
    pub fn natural_type(&self) -> SqlType {
        match self {
            Value::Null => SqlType::Unknown,
            Value::Bool(_) => SqlType::Bool,
            Value::Int2(_) => SqlType::Int2,
            Value::Int4(_) => SqlType::Int4,
            Value::Int8(_) => SqlType::Int8,
            Value::Float4(_) => SqlType::Float4,
            Value::Float8(_) => SqlType::Float8,
            Value::Numeric(_) => SqlType::Numeric(None),
            Value::Text(_) => SqlType::Text,
            Value::Bytea(_) => SqlType::Bytea,
            Value::Date(_) => SqlType::Date,
            Value::Time(_) => SqlType::Time(None),
            Value::Timetz(_) => SqlType::Timetz(None),
            Value::Timestamp(_) => SqlType::Timestamp(None),
            Value::Timestamptz(_) => SqlType::Timestamptz(None),
            Value::Interval(_) => SqlType::Interval(None),
            Value::Uuid(_) => SqlType::Uuid,
            Value::Json(_) => SqlType::Json,
            Value::Jsonb(_) => SqlType::Jsonb,
            Value::Oid(_) => SqlType::Oid,
            Value::Array(array) => SqlType::Array(Box::new(array.element.clone())),
            Value::Record(_) => SqlType::Record,
        }
    }
}

fn compare_jsonb(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    match (Json::parse_known(a), Json::parse_known(b)) {
        (Ok(a), Ok(b)) => a.compare(&b),
        _ => a.cmp(b),
    }
}

impl Array {
    /// Element by element, then by the number of elements, of dimensions, and their lengths.
    pub fn compare(&self, other: &Array) -> Ordering {
        self.values
            .iter()
            .zip(&other.values)
            .map(|(a, b)| a.compare(b, &self.element))
            .find(|order| order.is_ne())
            .unwrap_or_else(|| {
                self.values
                    .len()
                    .cmp(&other.values.len())
                    .then_with(|| self.dimensions.len().cmp(&other.dimensions.len()))
                    .then_with(|| self.dimensions.cmp(&other.dimensions))
            })
    }
}

impl RegKind {
    /// The type's name.
    pub fn name(self) -> &'static str {
        match self {
            RegKind::Class => "regclass",
            RegKind::Type => "regtype",
            RegKind::Proc => "regproc",
            RegKind::Namespace => "regnamespace",
            RegKind::Procedure => "regprocedure",
            RegKind::Operator => "regoperator",
            RegKind::Role => "regrole",
        }
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.compare(other))
    }
}

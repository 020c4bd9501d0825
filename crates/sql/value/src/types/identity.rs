//! Which values are the same one.
//!
//! `==` of values is no comparison of SQL (that is [`Value::compare`](super::Value)): plans ask with it whether two literals may stand for each other, and writers
//! whether anything has changed. So each value is itself, NaN too, and what can be told apart is not the same: `-0.0` beside `0.0`, and `1.0` beside `1.00`.

use super::{Numeric, Value};

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        use Value as V;
        match (self, other) {
            (V::Null, V::Null) => true,
            (V::Bool(a), V::Bool(b)) => a == b,
            (V::Int2(a), V::Int2(b)) => a == b,
            (V::Int4(a), V::Int4(b)) | (V::Date(a), V::Date(b)) => a == b,
            (V::Int8(a), V::Int8(b))
            | (V::Time(a), V::Time(b))
            | (V::Timestamp(a), V::Timestamp(b))
            | (V::Timestamptz(a), V::Timestamptz(b)) => a == b,
            // NaN shows nothing of its bits.
            (V::Float4(a), V::Float4(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            (V::Float8(a), V::Float8(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            (V::Numeric(a), V::Numeric(b)) => a == b,
            (V::Text(a), V::Text(b)) | (V::Json(a), V::Json(b)) | (V::Jsonb(a), V::Jsonb(b)) => a == b,
            (V::Bytea(a), V::Bytea(b)) => a == b,
            (V::Timetz(a), V::Timetz(b)) => a == b,
            (V::Interval(a), V::Interval(b)) => a == b,
            (V::Uuid(a), V::Uuid(b)) => a == b,
            (V::Oid(a), V::Oid(b)) => a == b,
            (V::Array(a), V::Array(b)) => a == b,
            (V::Record(a), V::Record(b)) => a == b,
            _ => false,
        }
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        match (self, other) {
            (Numeric::Finite(a), Numeric::Finite(b)) => a.scale() == b.scale() && a == b,
            (Numeric::NaN, Numeric::NaN)
            | (Numeric::Infinity, Numeric::Infinity)
            | (Numeric::NegInfinity, Numeric::NegInfinity) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(text: &str) -> Value {
        Value::Numeric(Numeric::parse(text).unwrap())
    }

    #[test]
    fn what_can_be_told_apart_is_not_the_same() {
        assert_eq!(Value::Float4(f32::NAN), Value::Float4(-f32::NAN));
        assert_eq!(Value::Float8(f64::NAN), Value::Float8(f64::NAN));
        assert_ne!(Value::Float4(-0.0), Value::Float4(0.0));
        assert_ne!(Value::Float8(-0.0), Value::Float8(0.0));
        assert_eq!(numeric("NaN"), numeric("nan"));
        assert_eq!(numeric("1.00"), numeric("1.00"));
        assert_ne!(numeric("1.0"), numeric("1.00"));
        assert_ne!(Value::Int4(1), Value::Date(1));
    }
}

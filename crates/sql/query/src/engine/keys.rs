//! Values as bytes that are equal exactly when the values are: the keys of hash joins, groups, DISTINCT and set operations.
//!
//! Unlike the keys of indexes these have no order, and numbers of different types meet in them: `1::int4 = 1.0::numeric`.

use crate::types::{Numeric, SqlType, Value};

/// How two types are compared for equality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// By their own form: the types are the same.
    Plain,
    /// As exact numbers.
    Number,
    /// As double precision.
    Float,
    /// As char(n): trailing blanks do not count.
    Blank,
}

/// How values of two types can be hashed to the same keys; `None` if they must be compared one by one.
pub(super) fn kind(left: &SqlType, right: &SqlType) -> Option<KeyKind> {
    use SqlType::{Char, Float4, Float8, Int2, Int4, Int8, Json, Name, Numeric, Oid, Reg, Text, Unknown, Varchar};
    let integer = |ty: &SqlType| matches!(ty, Int2 | Int4 | Int8 | Oid | Reg(_));
    let string = |ty: &SqlType| matches!(ty, Text | Varchar(_) | Name | Unknown | SqlType::SingleChar);
    let float = |ty: &SqlType| matches!(ty, Float4 | Float8);
    let number = |ty: &SqlType| integer(ty) || matches!(ty, Numeric(_));
    match (left, right) {
        (Json, _) | (_, Json) => None,
        (l, r) if integer(l) && integer(r) => Some(KeyKind::Plain),
        (l, r) if number(l) && number(r) => Some(KeyKind::Number),
        (l, r) if (float(l) || number(l)) && (float(r) || number(r)) => Some(KeyKind::Float),
        (l, r) if string(l) && string(r) => Some(KeyKind::Plain),
        // A varchar is compared with a char(n) as one.
        (Char(_), Char(_) | Varchar(_)) | (Varchar(_), Char(_)) => Some(KeyKind::Blank),
        (l, r) if l.base() == r.base() => Some(KeyKind::Plain),
        _ => None,
    }
}

/// How values of one type are hashed.
pub(super) fn own_kind(ty: &SqlType) -> KeyKind {
    match ty {
        SqlType::Numeric(_) => KeyKind::Number,
        SqlType::Float4 | SqlType::Float8 => KeyKind::Float,
        SqlType::Char(_) => KeyKind::Blank,
        _ => KeyKind::Plain,
    }
}

fn sized(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn integer(out: &mut Vec<u8>, n: i64) {
    let mut bytes = [b'i'; 9];
    bytes[1..].copy_from_slice(&n.to_le_bytes());
    out.extend_from_slice(&bytes);
}

/// Appends the key of an integer, or of a date, of any width.
#[inline]
pub(super) fn encode_integer(n: i64, out: &mut Vec<u8>) {
    integer(out, n);
}

fn float(out: &mut Vec<u8>, value: f64) {
    // -0 equals 0, and all NaN are equal.
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() };
    out.push(b'f');
    out.extend_from_slice(&bits.to_le_bytes());
}

fn numeric(out: &mut Vec<u8>, value: &Numeric) {
    match value {
        Numeric::NaN => out.push(b'N'),
        Numeric::Infinity => out.push(b'P'),
        Numeric::NegInfinity => out.push(b'M'),
        Numeric::Finite(value) => match value.whole() {
            Some(n) => integer(out, n),
            None => {
                out.push(b'n');
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                let scale = value.write_normalized(out);
                let bytes = out.len() - start - 4;
                out[start..start + 4].copy_from_slice(&(bytes as u32).to_le_bytes());
                out.extend_from_slice(&scale.to_le_bytes());
            }
        },
    }
}

fn as_float(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Float4(v) => f64::from(*v),
        Value::Float8(v) => *v,
        Value::Int2(v) => f64::from(*v),
        Value::Int4(v) => f64::from(*v),
        Value::Int8(v) => *v as f64,
        Value::Oid(v) => f64::from(*v),
        Value::Numeric(v) => v.to_f64(),
        _ => return None,
    })
}

/// A jsonb as it is compared: `1` equals `1.0`, so numbers lose the zeros that trail in their fraction.
///
/// A jsonb's text is normal but for these: its numbers are as numeric prints them, without an exponent.
fn jsonb(out: &mut Vec<u8>, text: &str) {
    if !text.contains('.') {
        return sized(out, b'j', text.as_bytes());
    }
    let bytes = text.as_bytes();
    let mut short = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                short.extend_from_slice(&bytes[start..at]);
            }
            b'.' => {
                at += 1;
                at += bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let kept = bytes[start + 1..at].iter().rposition(|byte| *byte != b'0').map_or(0, |last| last + 2);
                short.extend_from_slice(&bytes[start..start + kept]);
            }
            byte => {
                at += 1;
                short.push(byte);
            }
        }
    }
    sized(out, b'j', &short);
}

/// Appends the key of a value.
pub(super) fn encode(value: &Value, kind: KeyKind, out: &mut Vec<u8>) {
    if kind == KeyKind::Float
        && let Some(v) = as_float(value)
    {
        return float(out, v);
    }
    match value {
        Value::Null => out.push(0),
        Value::Bool(v) => out.extend_from_slice(&[b'b', u8::from(*v)]),
        Value::Int2(v) => integer(out, i64::from(*v)),
        Value::Int4(v) => integer(out, i64::from(*v)),
        Value::Int8(v) => integer(out, *v),
        Value::Oid(v) => integer(out, i64::from(*v)),
        Value::Float4(v) => float(out, f64::from(*v)),
        Value::Float8(v) => float(out, *v),
        Value::Numeric(v) => numeric(out, v),
        Value::Text(v) if kind == KeyKind::Blank => sized(out, b't', v.trim_end_matches(' ').as_bytes()),
        Value::Text(v) => sized(out, b't', v.as_bytes()),
        Value::Json(v) => sized(out, b'j', v.as_bytes()),
        Value::Jsonb(v) => jsonb(out, v),
        Value::Bytea(v) => sized(out, b'y', v),
        Value::Date(v) => integer(out, i64::from(*v)),
        Value::Time(v) | Value::Timestamp(v) | Value::Timestamptz(v) => integer(out, *v),
        Value::Timetz(v) => {
            integer(out, v.utc_us());
            integer(out, i64::from(v.west_s));
        }
        Value::Interval(v) => {
            out.push(b'v');
            out.extend_from_slice(&v.total_us().to_le_bytes());
        }
        Value::Uuid(v) => sized(out, b'u', v),
        Value::Array(array) => {
            sized(out, b'a', &(array.dimensions.len() as u32).to_le_bytes());
            for (length, lower) in &array.dimensions {
                integer(out, i64::from(*length));
                integer(out, i64::from(*lower));
            }
            let kind = own_kind(&array.element);
            array.values.iter().for_each(|value| encode(value, kind, out));
        }
        Value::Record(values) => {
            sized(out, b'r', &(values.len() as u32).to_le_bytes());
            for value in values.iter() {
                // Fields of different types are not compared.
                integer(out, i64::from(value.natural_type().oid()));
                encode(value, KeyKind::Plain, out);
            }
        }
    }
}

/// How the columns of a row are hashed: see [`row_key`].
pub(super) fn own_kinds<'a>(types: impl IntoIterator<Item = &'a SqlType>) -> Vec<KeyKind> {
    types.into_iter().map(own_kind).collect()
}

/// The key of a whole row, in place of what `out` held.
pub(super) fn row_key(values: &[Value], kinds: &[KeyKind], out: &mut Vec<u8>) {
    out.clear();
    values.iter().zip(kinds).for_each(|(value, kind)| encode(value, *kind, out));
}

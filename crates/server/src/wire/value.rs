//! Values and types in their wire form.

use sql::context::EvalSettings;
use sql::types::{SqlType, Value};
use std::io::Write as _;

/// OID, length and modifier of a type, as RowDescription shows them.
pub fn describe(ty: &SqlType) -> (u32, i16, i32) {
    match ty {
        SqlType::Bool => (16, 1, -1),
        SqlType::Int2 => (21, 2, -1),
        SqlType::Int4 => (23, 4, -1),
        SqlType::Int8 => (20, 8, -1),
        _ => (25, -1, -1),
    }
}

/// Appends a column of a DataRow: its length, then its bytes; -1 alone for NULL.
pub fn write(out: &mut Vec<u8>, value: &Value, _ty: &SqlType, _format: i16, _settings: &EvalSettings) {
    if matches!(value, Value::Null) {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return;
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    match value {
        Value::Text(t) => out.extend_from_slice(t.as_bytes()),
        Value::Int4(n) => drop(write!(out, "{n}")),
        Value::Int8(n) => drop(write!(out, "{n}")),
        other => drop(write!(out, "{other:?}")),
    }
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

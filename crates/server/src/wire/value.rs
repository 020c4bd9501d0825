//! Values in their wire form.

use sql::context::EvalSettings;
use sql::types::{SqlType, Value};

/// Appends a column of a DataRow: its length, then its bytes; -1 alone for NULL. Format 0 is text, 1 binary.
pub fn write(out: &mut Vec<u8>, value: &Value, ty: &SqlType, format: i16, settings: &EvalSettings) {
    if matches!(value, Value::Null) {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return;
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    match format {
        1 => value.write_binary(ty, out),
        _ => value.write_text(ty, settings, out),
    }
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

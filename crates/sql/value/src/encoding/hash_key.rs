//! Values as bytes to be told apart by, in no order.

use super::encode_value;
use crate::types::{SqlType, Value};

impl Value {
    /// Appends bytes that are equal exactly for equal values of one type: for hash joins, DISTINCT, GROUP BY.
    #[inline]
    pub fn write_hash_key(&self, ty: &SqlType, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.push(0),
            value => {
                out.push(1);
                match value {
                    Value::Json(text) => {
                        out.extend_from_slice(&(text.len() as u32).to_be_bytes());
                        out.extend_from_slice(text.as_bytes());
                    }
                    value => encode_value(value, ty, false, out),
                }
            }
        }
    }
}

//! Descriptors as bytes: a form byte, then JSON.
//!
//! JSON, because a descriptor is decoded once per change and process, so speed matters little, while a field added later
//! with a default leaves old records readable, and a record can be read by eye. Decision 0050.

use crate::{SqlError, SqlState};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

const JSON: u8 = 1;

/// Encodes a descriptor.
///
/// # Errors
/// XX000 if it cannot be written as JSON, which no descriptor of ours causes.
pub fn encode<T: Serialize>(descriptor: &T) -> Result<Bytes, SqlError> {
    let mut bytes = vec![JSON];
    serde_json::to_writer(&mut bytes, descriptor)
        .map_err(|e| SqlError::new(SqlState::INTERNAL_ERROR, format!("a catalog record cannot be encoded: {e}")))?;
    Ok(bytes.into())
}

/// Decodes a descriptor.
///
/// # Errors
/// 58030: unknown form (a newer version wrote it), or damaged.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SqlError> {
    match bytes {
        [JSON, json @ ..] => serde_json::from_slice(json)
            .map_err(|e| SqlError::new(SqlState::IO_ERROR, format!("a catalog record cannot be read: {e}"))),
        [form, ..] => Err(SqlError::new(
            SqlState::IO_ERROR,
            format!("a catalog record has the form {form}, which this version does not know"),
        )
        .hint("Open the store with the version that wrote it, or a newer one.")),
        [] => Err(SqlError::new(SqlState::IO_ERROR, "a catalog record is empty")),
    }
}

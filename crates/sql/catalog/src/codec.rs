//! Descriptors as bytes: a form byte, then JSON.
//!
//! JSON, because a descriptor is decoded once per change and process, so speed matters little, while a field added later
//! with a default leaves old records readable, and a record can be read by eye. Decision 0050.
//!
//! A field that an older version must not pass over (an index that does not hold every row, say) makes a record of the second form,
//! which that version refuses instead of writing rows without it.

use super::{Index, Relation};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

const JSON: u8 = 1;
const JSON_WITH_FORMULAS: u8 = 2;
const JSON_WITH_BUILDING: u8 = 3;
const JSON_WITH_PLACES: u8 = 4;

/// Encodes a descriptor.
///
/// # Errors
/// XX000 if it cannot be written as JSON, which no descriptor of ours causes.
pub fn encode<T: Serialize>(descriptor: &T) -> Result<Bytes, SqlError> {
    encode_as(JSON, descriptor)
}

/// Encodes a relation: a table with generated columns, or indexes that are more than columns, is of the second form, one with an index or a
/// constraint that is being made of the third, one whose rows hold what its columns' ids do not say of the fourth.
///
/// # Errors
/// As [`encode`].
pub(crate) fn encode_relation(relation: &Relation) -> Result<Bytes, SqlError> {
    let form = match relation {
        Relation::Table(table) if table.filling.is_some() || table.columns.iter().any(|c| c.stored.is_some()) => {
            JSON_WITH_PLACES
        }
        Relation::Table(table) if table.building.is_some() || table.pending.is_some() => JSON_WITH_BUILDING,
        Relation::Table(table)
            if !table.indexes.iter().all(Index::is_plain) || table.columns.iter().any(|c| c.generated.is_some()) =>
        {
            JSON_WITH_FORMULAS
        }
        _ => JSON,
    };
    encode_as(form, relation)
}

fn encode_as<T: Serialize>(form: u8, descriptor: &T) -> Result<Bytes, SqlError> {
    let mut bytes = vec![form];
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
        [JSON | JSON_WITH_FORMULAS | JSON_WITH_BUILDING | JSON_WITH_PLACES, json @ ..] => serde_json::from_slice(json)
            .map_err(|e| SqlError::new(SqlState::IO_ERROR, format!("a catalog record cannot be read: {e}"))),
        [form, ..] => Err(SqlError::new(
            SqlState::IO_ERROR,
            format!("a catalog record has the form {form}, which this version does not know"),
        )
        .hint("Open the store with the version that wrote it, or a newer one.")),
        [] => Err(SqlError::new(SqlState::IO_ERROR, "a catalog record is empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexColumn;

    #[test]
    fn indexes_of_stores_before_partial_ones_are_read_and_written_alike() {
        let old = r#"{"id":9,"name":"i","columns":[{"column":2,"descending":true}],"unique":true,"constraint":false}"#;
        let index: Index = decode(&[&[JSON], old.as_bytes()].concat()).unwrap();
        assert_eq!((index.is_plain(), &index.columns), (true, &vec![IndexColumn::column(2, true)]));
        assert_eq!(encode(&index).unwrap()[1..], *old.as_bytes());
    }
}

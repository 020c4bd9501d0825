//! Where the key of a table's row is found, for a join that looks at rows where they stand.
//!
//! Most keys are integers, whose stored bytes are the key's own but for their number: neither a value is made of them, nor a key of the value.

use super::key_bits::KeyBits;
use super::leaf::TableRows;
use crate::SqlError;
use crate::engine::keys::{self, KeyKind};
use crate::engine::scalar::Scalar;
use crate::exec::row::{RowView, Stored, wrong_length};
use crate::types::SqlType;

/// See the module.
pub(super) enum KeyPlace {
    /// Columns that are to be decoded for it.
    Slots(Vec<usize>),
    /// Integers, by the ids of their columns.
    Integers(Vec<u16>),
}

impl KeyPlace {
    /// For one side's key: its parts, and whether NULL has a partner there. `None`: a table's rows cannot be passed where they stand.
    pub(super) fn of<'a>(
        table: &TableRows,
        sides: impl Iterator<Item = (&'a Scalar, bool)> + Clone,
        kinds: &[KeyKind],
    ) -> Option<KeyPlace> {
        // Where NULL has a partner its key is not left out.
        let column = |(scalar, null_equal): (&Scalar, bool)| scalar.column().filter(|_| !null_equal);
        let integers = integers(table, sides.clone().map(column).zip(kinds.iter().copied())).map(KeyPlace::Integers);
        integers.or_else(|| table.decodes(sides.map(|(scalar, _)| scalar)).map(KeyPlace::Slots))
    }
}

/// The ids of a key's columns, if it is a key of integers whose bytes stand in a table's rows; `None` for a part: it is no column.
pub(in crate::engine) fn integers(
    table: &TableRows,
    columns: impl Iterator<Item = (Option<usize>, KeyKind)>,
) -> Option<Vec<u16>> {
    let scan = table.stored_scan()?;
    let id = |(column, kind): (Option<usize>, KeyKind)| {
        let column = scan.access.columns.get(scan.slot(column?)?)?;
        let integer = matches!(column.ty, SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Date);
        // What older rows hold for it has no bytes, unless it is NULL.
        (integer && kind != KeyKind::Float && column.missing.is_null()).then_some(column.place)
    };
    columns.map(id).collect()
}

/// Writes the key of a stored row, as [`keys::encode`] does; `false` if it is equal to nothing: by a NULL in it, or as `bits` say of one of its numbers.
///
/// # Errors
/// XX000: it is no row.
#[inline]
pub(in crate::engine) fn write_integers(
    ids: &[u16],
    bits: Option<&KeyBits>,
    stored: &[u8],
    key: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    let view = RowView::new(stored)?;
    if let Some(bits) = bits
        && let Some(id) = ids.get(bits.column)
    {
        let Stored::Bytes(bytes) = view.column(*id)? else { return Ok(false) };
        if !bits.holds(signed(bytes)?) {
            return Ok(false);
        }
    }
    key.clear();
    for id in ids {
        let Stored::Bytes(bytes) = view.column(*id)? else { return Ok(false) };
        keys::encode_integer(signed(bytes)?, key);
    }
    Ok(true)
}

/// An integer of two, four or eight bytes.
#[inline]
fn signed(bytes: &[u8]) -> Result<i64, SqlError> {
    match bytes {
        [a, b] => Ok(i64::from(i16::from_le_bytes([*a, *b]))),
        [a, b, c, d] => Ok(i64::from(i32::from_le_bytes([*a, *b, *c, *d]))),
        _ => bytes.try_into().map(i64::from_le_bytes).map_err(|_| wrong_length()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::row::{Source, encode};
    use crate::types::{Numeric, Value};
    use proptest::prelude::*;

    fn integer() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i16>().prop_map(Value::Int2),
            any::<i32>().prop_map(Value::Int4),
            any::<i32>().prop_map(Value::Date),
            any::<i64>().prop_map(Value::Int8),
            Just(Value::Null),
        ]
    }

    proptest! {
        /// Bytes give the key that values give, also where the other side is a numeric.
        #[test]
        fn stored_integers_are_the_keys_of_their_values(values in prop::collection::vec(integer(), 1..4)) {
            let stored = encode(values.len(), |place| Source::Value(&values[place])).unwrap();
            let ids: Vec<u16> = (1..=values.len() as u16).collect();
            let mut key = vec![9];
            let whole = write_integers(&ids, None, &stored, &mut key).unwrap();
            prop_assert_eq!(whole, !values.contains(&Value::Null));
            for kind in [KeyKind::Plain, KeyKind::Number] {
                let mut expected = Vec::new();
                values.iter().for_each(|value| keys::encode(value, kind, &mut expected));
                prop_assert!(!whole || key == expected);
            }
        }
    }

    #[test]
    fn what_is_no_integer_is_an_error() {
        let text = Value::Text("abc".into());
        let stored = encode(1, |_| Source::Value(&text)).unwrap();
        let error = write_integers(&[1], None, &stored, &mut Vec::new()).unwrap_err();
        assert_eq!(error.state, crate::SqlState::INTERNAL_ERROR);
    }

    #[test]
    fn an_integer_has_the_key_of_an_equal_numeric() {
        let (mut of_bytes, mut of_numeric) = (Vec::new(), Vec::new());
        let stored = encode(1, |_| Source::Value(&Value::Int4(-70))).unwrap();
        assert!(write_integers(&[1], None, &stored, &mut of_bytes).unwrap());
        keys::encode(&Value::Numeric(Numeric::from(-70i64)), KeyKind::Number, &mut of_numeric);
        assert_eq!(of_bytes, of_numeric);
    }
}

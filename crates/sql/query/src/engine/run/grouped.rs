//! Groups of a table's rows, found by the bytes that are stored.
//!
//! Problem: to find a row's group its key was decoded to values, and these were encoded again as what is hashed: more work than to read the
//! row. Idea: of most types equal values have equal bytes (`exec::row`, invariant 2), so the stored bytes are the key, and of a row
//! whose group is known only the aggregates' arguments are decoded. One number, date or time is a word, and so are several short columns
//! one beside the other: nothing is even copied.

use super::Run;
use super::leaf::TableRows;
use crate::SqlError;
use crate::engine::aggregate::AggregateCall;
use crate::engine::key_table::{KeyTable, WordTable};
use crate::engine::scalar::Scalar;
use crate::exec::row::{RowView, Stored, encode_value};
use crate::exec::table::TableAccess;
use crate::types::{SqlType, Value};
use std::sync::Arc;

/// Bytes of a key that is a number.
const WORD_BYTES: usize = 8;
/// What stands in front of a column's bytes in a key of several, or of one that is no word.
const NULL: u8 = 0;
const VALUE: u8 = 1;

/// Finds groups: see the module.
pub(super) struct StoredKeys {
    access: Arc<TableAccess>,
    slots: Vec<usize>,
    asked: Vec<usize>,
    known: Known,
    key: Vec<u8>,
}

enum Known {
    /// No column: all rows are of the first group, which there is before.
    One,
    /// One column of at most eight bytes: numbers of its words are those of groups, the group of NULL apart.
    Words {
        table: WordTable,
        null: Option<usize>,
        count: usize,
        groups: Vec<usize>,
    },
    /// Several columns that are one word together: of each the most bytes that it takes of it, and whether another byte tells it from NULL.
    Packed {
        table: WordTable,
        parts: Vec<(usize, bool)>,
    },
    Keys(KeyTable),
}

/// The most bytes that a value has, if equal values have equal bytes.
fn form(ty: &SqlType) -> Option<usize> {
    use SqlType::{Bool, Char, Date, Int2, Int4, Int8, Oid, Text, Time, Timestamp, Timestamptz, Uuid, Varchar};
    /// Of a character in UTF-8.
    const CHARACTER_BYTES: usize = 4;
    const LONG_BYTES: usize = usize::MAX / 2;
    match ty {
        Bool => Some(1),
        Int2 => Some(2),
        Date | Int4 | Oid => Some(4),
        Int8 | Time(..) | Timestamp(..) | Timestamptz(..) => Some(WORD_BYTES),
        // It is stored with its blanks, so that equal ones have as many. No text has zeros, which fill up a word.
        Char(length @ 1..) => Some(*length as usize * CHARACTER_BYTES),
        Text | Varchar(_) | Uuid => Some(LONG_BYTES),
        _ => None,
    }
}

/// How columns are one word, if they are. NULL is zeros: a text has none, a number needs a mark.
fn packed(types: &[&SqlType], bytes: &[usize]) -> Option<Vec<(usize, bool)>> {
    let marked = |ty: &SqlType| !matches!(ty, SqlType::Char(_));
    let parts: Vec<_> = types.iter().zip(bytes).map(|(ty, bytes)| (*bytes, marked(ty))).collect();
    let sum = parts.iter().fold(0, |sum: usize, (bytes, marked)| sum.saturating_add(bytes + usize::from(*marked)));
    (sum <= WORD_BYTES).then_some(parts)
}

impl StoredKeys {
    /// For keys that are columns of the table; `None` where others than bytes must be compared.
    pub(super) fn of(
        table: &mut TableRows,
        columns: &[usize],
        calls: &[AggregateCall],
        run: &Run,
    ) -> Option<StoredKeys> {
        let scan = table.stored_scan()?;
        let access = scan.access.clone();
        let slots = columns.iter().map(|column| scan.slot(*column)).collect::<Option<Vec<_>>>()?;
        let types: Vec<&SqlType> = slots.iter().map(|slot| &access.columns[*slot].ty).collect();
        let forms = types.iter().map(|ty| form(ty)).collect::<Option<Vec<_>>>()?;
        let args = |call: &'_ AggregateCall| {
            let order = call.order.iter().map(|by| &by.by);
            call.args.iter().chain(&call.filter).chain(order).map(Scalar::columns).collect::<Vec<_>>()
        };
        let read = calls.iter().flat_map(args).collect::<Option<Vec<_>>>();
        let read: Option<Vec<usize>> =
            read.map(|read| read.into_iter().flatten().filter_map(|column| scan.slot(column)).collect());
        let is_read = |slot: &usize| read.as_ref().is_none_or(|read| read.contains(slot));
        let asked = table.leave_stored().iter().copied().filter(is_read).collect();
        let known = match forms.as_slice() {
            [] => Known::One,
            [..=WORD_BYTES] => {
                Known::Words { table: WordTable::new(run.seed), null: None, count: 0, groups: Vec::new() }
            }
            several => match packed(&types, several) {
                Some(parts) => Known::Packed { table: WordTable::new(run.seed), parts },
                None => Known::Keys(KeyTable::new(run.seed)),
            },
        };
        Some(StoredKeys { access, slots, asked, known, key: Vec::new() })
    }

    /// Columns that the aggregates read, of those that are not decoded.
    pub(super) fn asked(&self) -> &[usize] {
        &self.asked
    }

    /// Columns of the key.
    pub(super) fn slots(&self) -> &[usize] {
        &self.slots
    }

    /// Bytes of the last key.
    pub(super) fn key_bytes(&self) -> usize {
        self.key.len()
    }

    /// Groups are found otherwise from now on.
    pub(super) fn forget(&mut self) {
        self.known = Known::One;
    }

    /// The number of a row's group, and whether it is met for the first time.
    ///
    /// # Errors
    /// XX000 on what is no row.
    #[inline]
    pub(super) fn group(&mut self, stored: &[u8]) -> Result<(usize, bool), SqlError> {
        let StoredKeys { access, slots, known, key, .. } = self;
        match known {
            Known::One => Ok((0, false)),
            Known::Words { table, null, count, groups } => {
                let column = &access.columns[slots[0]];
                let word = match RowView::new(stored)?.column(column.place)? {
                    Stored::Bytes(bytes) => Some(word(bytes)),
                    Stored::Null => None,
                    Stored::Missing => missing(&column.missing, key).then(|| word(key)),
                };
                let (place, new) = match word {
                    Some(word) => match table.number(word) {
                        (number, false) => return Ok((groups[number], false)),
                        (_, true) => {
                            groups.push(*count);
                            (*count, true)
                        }
                    },
                    None => (*null.get_or_insert(*count), *null == Some(*count)),
                };
                *count += usize::from(new);
                Ok((place, new))
            }
            Known::Packed { table, parts } => {
                let view = RowView::new(stored)?;
                let (mut all, mut at) = (0, 0);
                for (slot, (bytes_max, marked)) in slots.iter().zip(parts.iter()) {
                    let column = &access.columns[*slot];
                    let part = match view.column(column.place)? {
                        Stored::Bytes(bytes) => Some(word(bytes)),
                        Stored::Null => None,
                        Stored::Missing => missing(&column.missing, key).then(|| word(key)),
                    };
                    all |= part.unwrap_or(0) << at;
                    at += 8 * bytes_max;
                    if *marked {
                        all |= u64::from(part.is_some()) << at;
                        at += 8;
                    }
                }
                Ok(table.number(all))
            }
            Known::Keys(table) => {
                let view = RowView::new(stored)?;
                key.clear();
                let mut missed = Vec::new();
                for slot in slots.iter() {
                    let column = &access.columns[*slot];
                    let bytes = match view.column(column.place)? {
                        Stored::Bytes(bytes) => Some(bytes),
                        Stored::Null => None,
                        Stored::Missing => missing(&column.missing, &mut missed).then_some(&missed[..]),
                    };
                    match bytes {
                        None => key.push(NULL),
                        Some(bytes) => {
                            key.push(VALUE);
                            key.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                            key.extend_from_slice(bytes);
                        }
                    }
                }
                Ok(table.number(key))
            }
        }
    }
}

/// Its bytes as a number.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = bytes.len().min(8);
    word[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(word)
}

/// The bytes that a column would have which the row is too old for; `false`: NULL.
fn missing(value: &Value, bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    if !value.is_null() {
        encode_value(value, bytes);
    }
    !value.is_null()
}

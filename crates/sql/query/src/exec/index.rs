//! One index, compiled: which rows have an entry, and what it is.
//!
//! A key is made of columns and of immutable expressions over the row; a partial index has entries for the rows that satisfy its
//! predicate, and only these can meet each other in a unique one.

use super::formula::LazyFormulas;
use super::table::ColumnAccess;
use crate::catalog::{Index, Oid, ROW_ID_COLUMN};
use crate::context::EvalSettings;
use crate::encoding::key;
use crate::exec::table::{KEY_MAX_BYTES, PREFIX_BYTES, TableAccess};
use crate::expr::{Expr, deparse::Deparse};
use crate::identifier::quote_identifier;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use std::borrow::Cow;

pub(super) const ENTRY_HOLDS_TAIL: u8 = 0;
pub(super) const ENTRY_KEY_HOLDS_TAIL: u8 = 1;

/// What 42P17 says of an index's expression.
pub const EXPRESSION_REFUSAL: &str = "functions in index expression must be marked IMMUTABLE";
/// What 42P17 says of an index's predicate.
pub const PREDICATE_REFUSAL: &str = "functions in index predicate must be marked IMMUTABLE";

/// An index.
#[derive(Debug, Clone)]
pub struct IndexAccess {
    /// Its OID, first in its keys.
    pub id: Oid,
    /// Its name.
    pub name: String,
    /// No two rows share a key without NULLs.
    pub unique: bool,
    /// Its columns.
    pub columns: Vec<KeyColumn>,
    /// Which rows have an entry, over the row by slot; all, without one.
    pub predicate: Option<Expr>,
    /// Slots that a row's entry depends on, in order.
    pub slots: Vec<usize>,
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyColumn {
    /// Its slot; `None` is an expression or the hidden row id.
    pub slot: Option<usize>,
    /// What it holds instead of a column, over the row by slot.
    pub expression: Option<Expr>,
    /// Its type.
    pub ty: SqlType,
    /// Descending.
    pub descending: bool,
    /// NULLs come before all values.
    pub nulls_first: bool,
}

/// A row's entry in an index.
#[derive(Debug)]
pub struct Entry {
    /// Its key.
    pub key: Bytes,
    /// Its value.
    pub value: Bytes,
    /// Whether its key must be alone.
    pub guarded: bool,
}

/// The values of entries whose keys end with short tails: nearly all, so they are not made again and again.
static TAIL_VALUES: [[u8; 3]; 256] = {
    let mut values = [[ENTRY_KEY_HOLDS_TAIL, 0, 0]; 256];
    let mut length = 0;
    while length < values.len() {
        values[length][2] = length as u8;
        length += 1;
    }
    values
};

/// The value of an entry whose key ends with a tail of this length.
fn tail_value(length: usize) -> Bytes {
    match TAIL_VALUES.get(length) {
        Some(value) => Bytes::from_static(value),
        None => {
            let [high, low] = (length as u16).to_be_bytes();
            Bytes::copy_from_slice(&[ENTRY_KEY_HOLDS_TAIL, high, low])
        }
    }
}

/// The value of an entry, given by its bytes.
pub fn entry_value(bytes: &[u8]) -> Bytes {
    match bytes {
        [ENTRY_KEY_HOLDS_TAIL, 0, length] => tail_value(usize::from(*length)),
        other => Bytes::copy_from_slice(other),
    }
}

impl KeyColumn {
    /// Appends a value to a key.
    #[inline]
    pub fn encode(&self, value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::Null => out.push(key::null(self.nulls_first)),
            value => key::encode_value(value, &self.ty, self.descending, out),
        }
    }

    /// Its value for a row.
    #[inline]
    fn value<'a>(&self, row: &'a [Value], row_id: u64) -> Result<Cow<'a, Value>, SqlError> {
        match (self.slot, &self.expression) {
            (Some(slot), _) => Ok(Cow::Borrowed(&row[slot])),
            (None, Some(expression)) => expression.eval_alone(row).map(Cow::Owned),
            (None, None) => Ok(Cow::Owned(Value::Int8(row_id as i64))),
        }
    }
}

impl IndexAccess {
    pub(super) fn new(
        index: &Index,
        slot_of: &[Option<usize>],
        all: &[ColumnAccess],
        formulas: &LazyFormulas<'_>,
    ) -> Result<Self, SqlError> {
        let mut columns = Vec::with_capacity(index.columns.len());
        for part in &index.columns {
            let (slot, expression, ty) = match (&part.expression, part.column) {
                (Some(text), _) => {
                    let expression = formulas.get().value(text, EXPRESSION_REFUSAL)?;
                    let ty = expression.ty();
                    (None, Some(expression), ty)
                }
                (None, ROW_ID_COLUMN) => (None, None, SqlType::Int8),
                (None, column) => {
                    let slot = slot_of.get(column as usize - 1).copied().flatten().ok_or_else(|| {
                        SqlError::new(
                            SqlState::INTERNAL_ERROR,
                            format!("index \"{}\" names a column that is gone", index.name),
                        )
                    })?;
                    (Some(slot), None, all[slot].ty.clone())
                }
            };
            columns.push(KeyColumn {
                slot,
                expression,
                ty,
                descending: part.descending,
                nulls_first: part.nulls_first(),
            });
        }
        let predicate = match &index.predicate {
            Some(text) => Some(formulas.get().condition(text, PREDICATE_REFUSAL)?),
            None => None,
        };
        let mut slots: Vec<usize> = columns.iter().filter_map(|column| column.slot).collect();
        let formulas = columns.iter().filter_map(|column| column.expression.as_ref()).chain(&predicate);
        formulas.for_each(|formula| slots.extend(formula.columns()));
        slots.sort_unstable();
        slots.dedup();
        Ok(IndexAccess { id: index.id, name: index.name.clone(), unique: index.unique, columns, predicate, slots })
    }

    /// Whether its entries stand for every row, by columns alone.
    pub fn is_plain(&self) -> bool {
        self.predicate.is_none() && self.columns.iter().all(|column| column.expression.is_none())
    }

    /// The span of the whole index.
    pub fn span(&self) -> std::ops::Range<Bytes> {
        Bytes::copy_from_slice(&self.id.to_be_bytes())..Bytes::copy_from_slice(&self.id.wrapping_add(1).to_be_bytes())
    }

    /// Appends the index id and the key columns of a row; answers with whether one of them is NULL.
    pub(crate) fn encode_columns(&self, row: &[Value], row_id: u64, out: &mut Vec<u8>) -> Result<bool, SqlError> {
        out.extend_from_slice(&self.id.to_be_bytes());
        let mut null = false;
        for column in &self.columns {
            let value = column.value(row, row_id)?;
            null |= value.is_null();
            column.encode(&value, out);
        }
        Ok(null)
    }

    /// Whether a row has an entry.
    pub fn holds(&self, row: &[Value]) -> Result<bool, SqlError> {
        match &self.predicate {
            None => Ok(true),
            Some(predicate) => Ok(matches!(predicate.eval_alone(row)?, Value::Bool(true))),
        }
    }

    /// The entry of a row; `None` if the predicate leaves it out. Columns in [`IndexAccess::slots`] must be decoded.
    pub fn entry(&self, row: &[Value], row_key: &[u8]) -> Result<Option<Entry>, SqlError> {
        if !self.holds(row)? {
            return Ok(None);
        }
        let tail = &row_key[PREFIX_BYTES..];
        let mut key = Vec::with_capacity(PREFIX_BYTES + 12 * self.columns.len() + tail.len());
        let null = self.encode_columns(row, 0, &mut key)?;
        let guarded = self.unique && !null;
        let value = if guarded {
            let mut value = Vec::with_capacity(1 + tail.len());
            value.push(ENTRY_HOLDS_TAIL);
            value.extend_from_slice(tail);
            Bytes::from(value)
        } else {
            key.extend_from_slice(tail);
            tail_value(tail.len())
        };
        Ok(Some(Entry { key: self.checked(key)?, value, guarded }))
    }

    /// As [`IndexAccess::entry`], in place of what is in `key` and `value`: says whether its key must be alone.
    pub fn write_entry(
        &self,
        row: &[Value],
        row_key: &[u8],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<Option<bool>, SqlError> {
        key.clear();
        value.clear();
        if !self.holds(row)? {
            return Ok(None);
        }
        let tail = &row_key[PREFIX_BYTES..];
        let null = self.encode_columns(row, 0, key)?;
        let guarded = self.unique && !null;
        if guarded {
            value.push(ENTRY_HOLDS_TAIL);
            value.extend_from_slice(tail);
        } else {
            key.extend_from_slice(tail);
            value.extend_from_slice(&tail_value(tail.len()));
        }
        self.check_size(key.len())?;
        Ok(Some(guarded))
    }

    /// Appends the key of the entry of a row; `false`: it has none.
    pub(super) fn append_key(&self, row: &[Value], row_key: &[u8], out: &mut Vec<u8>) -> Result<bool, SqlError> {
        if !self.holds(row)? {
            return Ok(false);
        }
        let null = self.encode_columns(row, 0, out)?;
        if !self.unique || null {
            out.extend_from_slice(&row_key[PREFIX_BYTES..]);
        }
        Ok(true)
    }

    fn check_size(&self, key_bytes: usize) -> Result<(), SqlError> {
        if key_bytes > KEY_MAX_BYTES {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("index row size {key_bytes} exceeds maximum {KEY_MAX_BYTES} for index \"{}\"", self.name),
            )
            .hint("Values larger than the maximum cannot be indexed. Index a hash of the value instead."));
        }
        Ok(())
    }

    pub(super) fn checked(&self, key: Vec<u8>) -> Result<Bytes, SqlError> {
        self.check_size(key.len())?;
        // Without room to grow, which would cost a count of holders at once.
        Ok(Bytes::from(key.into_boxed_slice()))
    }

    /// Whether a change of the marked slots can change a row's entry.
    pub fn touches(&self, marked: &[bool]) -> bool {
        self.slots.iter().any(|&slot| marked[slot])
    }

    /// What a column of the key is called: its name, or its expression.
    pub fn column_name(&self, access: &TableAccess, column: &KeyColumn) -> String {
        let names = |slot: usize| access.table.columns[slot].name.as_str();
        match (&column.expression, column.slot) {
            (Some(expression), _) => {
                Deparse { names: &|slot| quote_identifier(names(slot)), pretty: true }.key(expression)
            }
            (None, slot) => slot.map_or_else(String::new, |slot| names(slot).to_string()),
        }
    }

    /// `Key (a, lower(b))=(1, x)`: how PostgreSQL shows a row's key in a detail.
    pub fn key_text(&self, access: &TableAccess, row: &[Value], settings: &EvalSettings) -> String {
        let columns = self.columns.iter().filter(|column| column.slot.is_some() || column.expression.is_some());
        let (names, values): (Vec<String>, Vec<String>) = columns
            .map(|column| {
                let value = match column.value(row, 0) {
                    Ok(value) if !value.is_null() => value.to_text(&column.ty, settings),
                    _ => "null".into(),
                };
                (self.column_name(access, column), value)
            })
            .unzip();
        format!("Key ({})=({})", names.join(", "), values.join(", "))
    }
}

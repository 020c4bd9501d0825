//! How one table's rows and index entries lie in the key space: a descriptor, compiled for the hot path.
//!
//! ```text
//! row               primary index id (u32 BE) ++ key columns            -> row bytes (`row`)
//! unique entry      index id ++ columns (none NULL)                     -> 0 ++ tail
//! any other entry   index id ++ columns ++ tail                         -> 1 ++ length of tail (u16 BE)
//! ```
//!
//! The *tail* is the row's primary key without the index id: an entry leads to its row without decoding a column. Every column
//! is kept in the row bytes, key columns too: an ordered key cannot hold a numeric's scale, and nothing on the read path has to
//! decode keys.
//!
//! Invariants
//! 1. A row's key never changes; an UPDATE of a key column deletes the row and writes another.
//! 2. An entry exists exactly when its row does: every write goes through [`super::write`].

use super::row::{self, RowView, Source, Stored};
use crate::catalog::{Index, Oid, ROW_ID_COLUMN, Table};
use crate::context::EvalSettings;
use crate::encoding::key;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use bytes::Bytes;

/// Bytes of the index id in front of every key.
pub const PREFIX_BYTES: usize = 4;
/// Greatest length of a key, bytes.
pub const KEY_MAX_BYTES: usize = 8 << 10;

const ENTRY_HOLDS_TAIL: u8 = 0;
const ENTRY_KEY_HOLDS_TAIL: u8 = 1;

/// A table, compiled. Columns are named by *slot*: their place among the descriptor's columns, from 0.
#[derive(Debug, Clone)]
pub struct TableAccess {
    /// The descriptor.
    pub table: Table,
    /// Columns by slot.
    pub columns: Vec<ColumnAccess>,
    /// The index that holds the rows.
    pub primary: IndexAccess,
    /// The others.
    pub indexes: Vec<IndexAccess>,
    /// Greatest column id: how many positions a row has.
    pub width: usize,
    /// Slot of a position (column id - 1); `None` for dropped columns.
    slot_of: Vec<Option<usize>>,
}

/// A column.
#[derive(Debug, Clone)]
pub struct ColumnAccess {
    /// Its id.
    pub id: u16,
    /// Its type.
    pub ty: SqlType,
    /// NULL allowed.
    pub nullable: bool,
    /// What older rows hold.
    pub missing: Value,
}

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
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its slot; `None` is the hidden row id.
    pub slot: Option<usize>,
    /// Its type.
    pub ty: SqlType,
    /// Descending.
    pub descending: bool,
}

impl TableAccess {
    /// Compiles a descriptor.
    ///
    /// # Errors
    /// XX000 for a descriptor that contradicts itself.
    pub fn new(table: &Table) -> Result<Self, SqlError> {
        let width = table.columns.iter().map(|c| c.id as usize).max().unwrap_or(0);
        let mut slot_of = vec![None; width];
        let mut columns = Vec::with_capacity(table.columns.len());
        for (slot, column) in table.columns.iter().enumerate() {
            let position = (column.id as usize)
                .checked_sub(1)
                .ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "a column has id 0"))?;
            slot_of[position] = Some(slot);
            let missing = match &column.missing {
                None => Value::Null,
                Some(text) => Value::parse_text(&column.ty, text, &EvalSettings::default())?,
            };
            columns.push(ColumnAccess { id: column.id, ty: column.ty.clone(), nullable: column.nullable, missing });
        }
        let primary = IndexAccess::new(&table.primary, &slot_of, &columns)?;
        let indexes =
            table.indexes.iter().map(|i| IndexAccess::new(i, &slot_of, &columns)).collect::<Result<_, _>>()?;
        Ok(TableAccess { table: table.clone(), columns, primary, indexes, width, slot_of })
    }

    /// Slot of the column with this id.
    pub fn slot(&self, column_id: u16) -> Option<usize> {
        self.slot_of.get((column_id as usize).checked_sub(1)?).copied().flatten()
    }

    /// The primary index (0) or a secondary one (from 1): how access paths name them.
    #[allow(clippy::should_implement_trait)] // an ordinal is not a place in a container
    pub fn index(&self, ordinal: usize) -> &IndexAccess {
        if ordinal == 0 { &self.primary } else { &self.indexes[ordinal - 1] }
    }

    /// Decodes the columns in `slots` of a stored row into their places in `row`, which has a place for each column.
    pub fn decode(&self, stored: &[u8], slots: &[usize], row: &mut [Value]) -> Result<(), SqlError> {
        let view = RowView::new(stored)?;
        for &slot in slots {
            row[slot] = self.decode_column(&view, slot)?;
        }
        Ok(())
    }

    /// Decodes one column.
    pub fn decode_column(&self, view: &RowView<'_>, slot: usize) -> Result<Value, SqlError> {
        let column = &self.columns[slot];
        match view.column(column.id)? {
            Stored::Bytes(bytes) => row::decode(&column.ty, bytes),
            Stored::Null => Ok(Value::Null),
            Stored::Missing => Ok(column.missing.clone()),
        }
    }

    /// Encodes a whole row, given by slot.
    pub fn encode(&self, row: &[Value]) -> Result<Bytes, SqlError> {
        row::encode(self.width, |position| match self.slot_of[position] {
            Some(slot) => Source::Value(&row[slot]),
            None => Source::Null,
        })
    }

    /// Encodes a row anew in which only the slots marked in `changed` take their values from `row`; the rest keep their bytes.
    pub fn rewrite(&self, stored: &[u8], row: &[Value], changed: &[bool]) -> Result<Bytes, SqlError> {
        let view = RowView::new(stored)?;
        row::encode(self.width, |position| match self.slot_of[position] {
            None => Source::Null,
            Some(slot) if changed[slot] => Source::Value(&row[slot]),
            Some(slot) => match view.column(position as u16 + 1) {
                Ok(Stored::Bytes(bytes)) => Source::Bytes(bytes),
                Ok(Stored::Missing) => Source::Value(&self.columns[slot].missing),
                Ok(Stored::Null) | Err(_) => Source::Null,
            },
        })
    }

    /// Key of the row that an index entry leads to.
    ///
    /// # Errors
    /// XX000 for a malformed entry.
    pub fn row_key_of_entry(&self, entry_key: &[u8], entry_value: &[u8]) -> Result<Bytes, SqlError> {
        let tail = match entry_value {
            [ENTRY_HOLDS_TAIL, tail @ ..] => Some(tail),
            [ENTRY_KEY_HOLDS_TAIL, high, low] => {
                let length = u16::from_be_bytes([*high, *low]) as usize;
                entry_key.len().checked_sub(length).map(|at| &entry_key[at..])
            }
            _ => None,
        };
        let tail = tail.ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "an index entry cannot be read"))?;
        let mut out = Vec::with_capacity(PREFIX_BYTES + tail.len());
        out.extend_from_slice(&self.primary.id.to_be_bytes());
        out.extend_from_slice(tail);
        Ok(Bytes::from(out))
    }

    /// Key of a row given by slot; `row_id` for tables without a primary key.
    pub fn row_key(&self, row: &[Value], row_id: u64) -> Result<Bytes, SqlError> {
        let mut out = Vec::with_capacity(PREFIX_BYTES + 12 * self.primary.columns.len());
        self.primary.encode_columns(row, row_id, &mut out);
        self.primary.checked(out)
    }
}

impl IndexAccess {
    fn new(index: &Index, slot_of: &[Option<usize>], all: &[ColumnAccess]) -> Result<Self, SqlError> {
        let columns = index
            .columns
            .iter()
            .map(|c| {
                if c.column == ROW_ID_COLUMN {
                    return Ok(KeyColumn { slot: None, ty: SqlType::Int8, descending: c.descending });
                }
                let slot = slot_of.get(c.column as usize - 1).copied().flatten();
                match slot {
                    Some(slot) => {
                        Ok(KeyColumn { slot: Some(slot), ty: all[slot].ty.clone(), descending: c.descending })
                    }
                    None => Err(SqlError::new(
                        SqlState::INTERNAL_ERROR,
                        format!("index \"{}\" names a column that is gone", index.name),
                    )),
                }
            })
            .collect::<Result<_, _>>()?;
        Ok(IndexAccess { id: index.id, name: index.name.clone(), unique: index.unique, columns })
    }

    /// The span of the whole index.
    pub fn span(&self) -> std::ops::Range<Bytes> {
        Bytes::copy_from_slice(&self.id.to_be_bytes())..Bytes::copy_from_slice(&self.id.wrapping_add(1).to_be_bytes())
    }

    /// Appends the index id and the key columns of a row.
    pub fn encode_columns(&self, row: &[Value], row_id: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_be_bytes());
        for column in &self.columns {
            match column.slot {
                Some(slot) => key::encode_value(&row[slot], &column.ty, column.descending, out),
                None => key::encode_value(&Value::Int8(row_id as i64), &column.ty, column.descending, out),
            }
        }
    }

    /// Whether a row's key in this index has a NULL.
    pub fn has_null(&self, row: &[Value]) -> bool {
        self.columns.iter().any(|c| c.slot.is_some_and(|slot| matches!(row[slot], Value::Null)))
    }

    /// Whether an index key of this row must be alone.
    pub fn guards(&self, row: &[Value]) -> bool {
        self.unique && !self.has_null(row)
    }

    /// The entry of a row: its key and value.
    pub fn entry(&self, row: &[Value], row_key: &[u8]) -> Result<(Bytes, Bytes), SqlError> {
        let tail = &row_key[PREFIX_BYTES..];
        let mut key = Vec::with_capacity(PREFIX_BYTES + 12 * self.columns.len() + tail.len());
        self.encode_columns(row, 0, &mut key);
        if self.guards(row) {
            let mut value = Vec::with_capacity(1 + tail.len());
            value.push(ENTRY_HOLDS_TAIL);
            value.extend_from_slice(tail);
            Ok((self.checked(key)?, Bytes::from(value)))
        } else {
            key.extend_from_slice(tail);
            let [high, low] = (tail.len() as u16).to_be_bytes();
            Ok((self.checked(key)?, Bytes::copy_from_slice(&[ENTRY_KEY_HOLDS_TAIL, high, low])))
        }
    }

    fn checked(&self, key: Vec<u8>) -> Result<Bytes, SqlError> {
        if key.len() > KEY_MAX_BYTES {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("index row size {} exceeds maximum {KEY_MAX_BYTES} for index \"{}\"", key.len(), self.name),
            )
            .hint("Values larger than the maximum cannot be indexed. Index a hash of the value instead."));
        }
        Ok(Bytes::from(key))
    }

    /// Whether any of its columns is marked.
    pub fn touches(&self, marked: &[bool]) -> bool {
        self.columns.iter().any(|c| c.slot.is_some_and(|slot| marked[slot]))
    }
}

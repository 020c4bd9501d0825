//! How one table's rows and index entries lie in the key space: a descriptor, compiled for the hot path.
//!
//! ```text
//! row               primary index id (u32 BE) ++ key columns            -> row bytes (`row`)
//! unique entry      index id ++ columns (none NULL)                     -> 0 ++ tail
//! any other entry   index id ++ columns ++ tail                         -> 1 ++ length of tail (u16 BE)
//! ```
//!
//! The *tail* is the row's primary key without the index id: an entry leads to its row without decoding a column. Every column
//! is kept in the row bytes, key columns too: an ordered key cannot hold a numeric's scale, and who reads a row does not decode its
//! key. Who needs nothing but what an index's entries hold ([`EntryColumns`]) reads these alone.
//!
//! Invariants
//! 1. A row's key never changes; an UPDATE of a key column deletes the row and writes another.
//! 2. An entry exists exactly when its row does, and satisfies the predicate of a partial index: every write goes through
//!    [`super::write`].

use super::formula::LazyFormulas;
use super::index::{ENTRY_HOLDS_TAIL, ENTRY_KEY_HOLDS_TAIL};
pub use super::index::{IndexAccess, KeyColumn};
use super::row::{self, RowView, Source, Stored};
use crate::catalog::{Building, Column, Index, Table};
use crate::context::EvalSettings;
use crate::encoding::key;
use crate::expr::Expr;
use crate::transaction::LockMode;
use crate::types::{SqlType, Value};
use crate::{SqlError, SqlState};
use bytes::Bytes;

/// Bytes of the index id in front of every key.
pub const PREFIX_BYTES: usize = 4;
/// Greatest length of a key, bytes.
pub(crate) const KEY_MAX_BYTES: usize = 8 << 10;

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
    /// An index that is being made.
    pub building: Option<BuildingAccess>,
    /// Generated columns: slots, and their values over the row by slot.
    pub generated: Vec<(usize, Expr)>,
    /// A column that is not shown yet, and that writers keep.
    pub filling: Option<ColumnAccess>,
    /// How many positions a row has: the greatest place of a column that is shown.
    pub width: usize,
    /// Slot of a column by its id - 1; `None` for dropped columns.
    slot_of: Vec<Option<usize>>,
    /// Slot of a position of rows (a column's place - 1); `None` for what no column holds any more.
    slot_at: Vec<Option<usize>>,
}

/// An index that is being made while its table is written: nobody reads it.
#[derive(Debug, Clone)]
pub struct BuildingAccess {
    /// What it will be.
    pub index: IndexAccess,
    /// The same, of marks: entries that no two rows share.
    pub marks: IndexAccess,
    /// Writers maintain it; before that they mark what they would have done.
    pub maintained: bool,
}

/// Which columns of a row stand in an index entry, and where: slots in the order of the key's columns, `None` for those to be passed.
#[derive(Debug, Clone)]
pub struct EntryColumns {
    /// In the entry's own key.
    key: Vec<Option<usize>>,
    /// In the row's key, which the entry leads to.
    tail: Vec<Option<usize>>,
}

/// A column.
#[derive(Debug, Clone)]
pub struct ColumnAccess {
    /// Its id.
    pub id: u16,
    /// Where rows hold it, from 1: its id, but for one whose type was changed beside writers.
    pub place: u16,
    /// Its type.
    pub ty: SqlType,
    /// NULL allowed.
    pub nullable: bool,
    /// What older rows hold.
    pub missing: Value,
}

impl TableAccess {
    /// Compiles a descriptor.
    ///
    /// # Errors
    /// XX000 for a descriptor that contradicts itself.
    pub fn new(table: &Table) -> Result<Self, SqlError> {
        let greatest = |of: fn(&Column) -> u16| table.columns.iter().map(|c| of(c) as usize).max().unwrap_or(0);
        let width = greatest(Column::place);
        let (mut slot_of, mut slot_at) = (vec![None; greatest(|c| c.id)], vec![None; width]);
        let mut columns = Vec::with_capacity(table.columns.len());
        for (slot, column) in table.columns.iter().enumerate() {
            slot_of[position(column.id)?] = Some(slot);
            slot_at[position(column.place())?] = Some(slot);
            columns.push(ColumnAccess::new(column)?);
        }
        let filling = table.filling.as_ref().map(|filling| ColumnAccess::new(&filling.column)).transpose()?;
        if filling.as_ref().is_some_and(|column| usize::from(column.place) <= width) {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "rows hold another column where one is being filled"));
        }
        let formulas = LazyFormulas::new(table);
        let compile = |index| IndexAccess::new(index, &slot_of, &columns, &formulas);
        let primary = compile(&table.primary)?;
        let indexes = table.indexes.iter().map(compile).collect::<Result<_, _>>()?;
        let building = match &table.building {
            None => None,
            Some(Building { index, marks, maintained }) => {
                let marks = Index { id: *marks, unique: false, ..index.clone() };
                Some(BuildingAccess { index: compile(index)?, marks: compile(&marks)?, maintained: *maintained })
            }
        };
        let mut generated = Vec::new();
        for (slot, column) in table.columns.iter().enumerate() {
            if let Some(text) = &column.generated {
                generated.push((slot, formulas.get().assigned(text, &column.name, &column.ty)?));
            }
        }
        let table = table.clone();
        Ok(TableAccess { table, columns, primary, indexes, building, generated, filling, width, slot_of, slot_at })
    }

    /// Slot of the column with this id.
    pub fn slot(&self, column_id: u16) -> Option<usize> {
        self.slot_of.get((column_id as usize).checked_sub(1)?).copied().flatten()
    }

    /// The primary index (0) or a secondary one (from 1): how access paths name them. The one after the last is that which is being made.
    #[allow(clippy::should_implement_trait)] // an ordinal is not a place in a container
    pub fn index(&self, ordinal: usize) -> &IndexAccess {
        match ordinal.checked_sub(1) {
            None => &self.primary,
            Some(at) => self.indexes.get(at).or(self.building.as_ref().map(|b| &b.index)).unwrap_or(&self.primary),
        }
    }

    /// How the row that has a unique key is held, so that whoever is about to take the key from it is waited for: one that may be referenced goes under the strongest mode only
    /// ([`super::key_lock`]), one of an index with a predicate or an expression under any that a change of the row takes.
    pub(crate) fn holding(&self, key: &[u8]) -> LockMode {
        let found = self.indexes.iter().find(|index| key.starts_with(&index.id.to_be_bytes()));
        if found.is_none_or(IndexAccess::is_plain) { LockMode::KeyShare } else { LockMode::Share }
    }

    /// Whether no two rows have the same values in these slots: they hold a unique key of all rows.
    pub(crate) fn is_unique_by(&self, given: impl Fn(usize) -> bool) -> bool {
        std::iter::once(&self.primary).chain(&self.indexes).any(|index| {
            index.unique
                && index.predicate.is_none()
                && index.columns.iter().all(|column| column.slot.is_some_and(&given))
        })
    }

    /// Decodes the columns in `slots` of a stored row into their places in `row`, which has a place for each column.
    pub fn decode(&self, stored: &[u8], slots: &[usize], row: &mut [Value]) -> Result<(), SqlError> {
        // Who counts rows looks into none.
        if slots.is_empty() {
            return Ok(());
        }
        let view = RowView::new(stored)?;
        for &slot in slots {
            let column = &self.columns[slot];
            match view.column(column.place)? {
                Stored::Bytes(bytes) => row::decode_to(&column.ty, bytes, &mut row[slot])?,
                Stored::Null => row[slot] = Value::Null,
                Stored::Missing => row[slot] = column.missing.clone(),
            }
        }
        Ok(())
    }

    /// Where the entries of an index hold these columns just as the row does: in their own key, or in the row's. `None` if they lack one.
    pub(crate) fn entry_columns(&self, index: &IndexAccess, slots: &[usize]) -> Option<EntryColumns> {
        let mut left = slots.to_vec();
        let mut take = |columns: &[KeyColumn]| {
            let wanted = |column: &KeyColumn| {
                let place = left.iter().position(|slot| column.slot == Some(*slot) && key::is_exact(&column.ty))?;
                Some(left.swap_remove(place))
            };
            let mut slots: Vec<Option<usize>> = columns.iter().map(wanted).collect();
            slots.truncate(slots.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
            slots
        };
        let (key, tail) = (take(&index.columns), take(&self.primary.columns));
        left.is_empty().then_some(EntryColumns { key, tail })
    }

    /// Decodes columns of an index entry into their places in `row`, which has a place for each column.
    ///
    /// # Errors
    /// XX000 for a malformed entry.
    pub(crate) fn decode_entry(
        &self,
        index: &IndexAccess,
        held: &EntryColumns,
        (entry_key, entry_value): (&[u8], &[u8]),
        row: &mut [Value],
    ) -> Result<(), SqlError> {
        if !held.key.is_empty() {
            decode_key(&index.columns, &held.key, entry_key.get(PREFIX_BYTES..).ok_or_else(unreadable_entry)?, row)?;
        }
        if !held.tail.is_empty() {
            decode_key(&self.primary.columns, &held.tail, tail_of_entry(entry_key, entry_value)?, row)?;
        }
        Ok(())
    }

    /// Decodes one column.
    pub(crate) fn decode_column(&self, view: &RowView<'_>, slot: usize) -> Result<Value, SqlError> {
        let column = &self.columns[slot];
        match view.column(column.place)? {
            Stored::Bytes(bytes) => row::decode(&column.ty, bytes),
            Stored::Null => Ok(Value::Null),
            Stored::Missing => Ok(column.missing.clone()),
        }
    }

    /// XX000 for a value whose bytes could not be read as the column's: a row with it would be lost.
    fn check_types(&self, row: &[Value], mut written: impl FnMut(usize) -> bool) -> Result<(), SqlError> {
        let columns = self.columns.iter().zip(row).enumerate();
        for (_, (column, value)) in columns.filter(|(slot, _)| written(*slot)) {
            if !row::is_of(value, &column.ty) {
                let message = format!("a value that is to be stored is not of its column's type, {}", column.ty);
                return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
            }
        }
        Ok(())
    }

    /// Encodes a whole row, given by slot, and by itself the column that is not shown yet, if there is one.
    ///
    /// # Errors
    /// XX000 for a value of another type, or one too few; 54000 for a row that is too large.
    pub fn encode(&self, row: &[Value], hidden: Option<&Value>) -> Result<Bytes, SqlError> {
        self.check_types(row, |_| true)?;
        let width = self.width_with(hidden)?;
        if self.filling.is_some() && hidden.is_none() {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a new row lacks the value of a column to come"));
        }
        row::encode(width, |position| match self.slot_at.get(position) {
            Some(Some(slot)) => Source::Value(&row[*slot]),
            _ => self.hidden_at(position, hidden).map_or(Source::Null, Source::Value),
        })
    }

    /// Encodes a row anew in which only the slots marked in `changed` take their values from `row`; the rest keep their bytes. So does the column that is not shown yet where it is not given:
    /// a row that lacks it goes on to.
    ///
    /// # Errors
    /// As [`TableAccess::encode`].
    pub fn rewrite(
        &self,
        stored: &[u8],
        row: &[Value],
        changed: &[bool],
        hidden: Option<&Value>,
    ) -> Result<Bytes, SqlError> {
        let view = RowView::new(stored)?;
        self.check_types(row, |slot| changed[slot])?;
        let width = match &self.filling {
            Some(column) if hidden.is_none() && view.column(column.place)? != Stored::Missing => column.place.into(),
            _ => self.width_with(hidden)?,
        };
        let bytes = |position: usize, missing| match view.column(position as u16 + 1) {
            Ok(Stored::Bytes(bytes)) => Source::Bytes(bytes),
            Ok(Stored::Missing) => missing,
            Ok(Stored::Null) | Err(_) => Source::Null,
        };
        row::encode(width, |position| match self.slot_at.get(position) {
            Some(Some(slot)) if changed[*slot] => Source::Value(&row[*slot]),
            Some(Some(slot)) => bytes(position, Source::Value(&self.columns[*slot].missing)),
            _ => match (self.hidden_at(position, hidden), &self.filling) {
                (Some(value), _) => Source::Value(value),
                (None, Some(column)) if usize::from(column.place) == position + 1 => bytes(position, Source::Null),
                _ => Source::Null,
            },
        })
    }

    /// How many positions a row has with this value of the column that is not shown yet.
    fn width_with(&self, hidden: Option<&Value>) -> Result<usize, SqlError> {
        match (&self.filling, hidden) {
            (_, None) => Ok(self.width),
            (Some(column), Some(value)) if row::is_of(value, &column.ty) => Ok(column.place.into()),
            (_, Some(_)) => {
                let message = "a value that is to be stored is of no column, or not of its type";
                Err(SqlError::new(SqlState::INTERNAL_ERROR, message))
            }
        }
    }

    fn hidden_at<'a>(&self, position: usize, hidden: Option<&'a Value>) -> Option<&'a Value> {
        self.filling.as_ref().filter(|column| usize::from(column.place) == position + 1).and(hidden)
    }

    /// What a stored row holds of the column that is not shown yet; `None`: nothing.
    ///
    /// # Errors
    /// XX000 for what is no row.
    pub fn stored_hidden(&self, stored: &[u8]) -> Result<Option<Value>, SqlError> {
        let Some(column) = &self.filling else { return Ok(None) };
        Ok(match RowView::new(stored)?.column(column.place)? {
            Stored::Missing => None,
            Stored::Null => Some(Value::Null),
            Stored::Bytes(bytes) => Some(row::decode(&column.ty, bytes)?),
        })
    }

    /// Whether a stored row lacks the column that is not shown yet.
    ///
    /// # Errors
    /// XX000 for what is no row.
    pub fn lacks_hidden(&self, stored: &[u8]) -> Result<bool, SqlError> {
        let Some(column) = &self.filling else { return Ok(false) };
        Ok(RowView::new(stored)?.column(column.place)? == Stored::Missing)
    }

    /// Key of the row that an index entry leads to.
    ///
    /// # Errors
    /// XX000 for a malformed entry.
    pub fn row_key_of_entry(&self, entry_key: &[u8], entry_value: &[u8]) -> Result<Bytes, SqlError> {
        let tail = tail_of_entry(entry_key, entry_value)?;
        let mut out = Vec::with_capacity(PREFIX_BYTES + tail.len());
        out.extend_from_slice(&self.primary.id.to_be_bytes());
        out.extend_from_slice(tail);
        Ok(Bytes::from(out))
    }

    /// Computes the generated columns of a row, given by slot; of an update, those that it changes.
    pub fn generate(&self, changed: Option<&[bool]>, row: &mut [Value]) -> Result<(), SqlError> {
        for (slot, value) in &self.generated {
            if changed.is_none_or(|changed| changed[*slot]) {
                row[*slot] = value.eval_alone(row)?;
            }
        }
        Ok(())
    }

    /// Key of a row given by slot; `row_id` for tables without a primary key.
    pub fn row_key(&self, row: &[Value], row_id: u64) -> Result<Bytes, SqlError> {
        let mut out = Vec::with_capacity(PREFIX_BYTES + 12 * self.primary.columns.len());
        self.primary.encode_columns(row, row_id, &mut out)?;
        self.primary.checked(out)
    }
}

impl ColumnAccess {
    fn new(column: &Column) -> Result<ColumnAccess, SqlError> {
        let missing = match &column.missing {
            None => Value::Null,
            Some(text) => Value::parse_text(&column.ty, text, &EvalSettings::default())?,
        };
        let (id, place, nullable) = (column.id, column.place(), column.nullable);
        Ok(ColumnAccess { id, place, ty: column.ty.clone(), nullable, missing })
    }
}

/// XX000 for a number that no column has.
fn position(number: u16) -> Result<usize, SqlError> {
    let position = usize::from(number).checked_sub(1);
    position.ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "a column has id 0"))
}

/// The key, without its index id, of the row that an index entry leads to.
fn tail_of_entry<'a>(entry_key: &'a [u8], entry_value: &'a [u8]) -> Result<&'a [u8], SqlError> {
    let tail = match entry_value {
        [ENTRY_HOLDS_TAIL, tail @ ..] => Some(tail),
        [ENTRY_KEY_HOLDS_TAIL, high, low] => {
            let length = u16::from_be_bytes([*high, *low]) as usize;
            entry_key.len().checked_sub(length).map(|at| &entry_key[at..])
        }
        _ => None,
    };
    tail.ok_or_else(unreadable_entry)
}

fn unreadable_entry() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "an index entry cannot be read")
}

/// Decodes the columns of a key that have a slot; the others are passed.
fn decode_key(
    columns: &[KeyColumn],
    slots: &[Option<usize>],
    mut rest: &[u8],
    row: &mut [Value],
) -> Result<(), SqlError> {
    for (column, slot) in columns.iter().zip(slots) {
        match slot {
            Some(slot) => row[*slot] = key::decode_value(&mut rest, &column.ty, column.descending)?,
            None => key::skip_value(&mut rest, &column.ty, column.descending)?,
        }
    }
    Ok(())
}

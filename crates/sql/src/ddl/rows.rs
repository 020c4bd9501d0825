//! Reads every row of a table, and writes tables and indexes anew.

use super::{Loader, Run};
use crate::catalog::Table;
use crate::exec::index::Entry;
use crate::exec::load::Duplicate;
use crate::exec::table::TableAccess;
use crate::exec::target::Target;
use crate::exec::write::RowImage;
use crate::transaction::{ScanRequest, Sweep};
use crate::types::{Row, Value};
use crate::{SqlError, SqlState};
use bytes::Bytes;

/// Rows read at once.
const CHUNK_ROWS: usize = 4096;

impl Run<'_> {
    /// Calls `f` with the key and the values (by slot) of every row of a table, in order. Reads are certified, but of tables that are known to be empty: those may be loaded later in the transaction.
    pub(super) fn each_row(
        &self,
        access: &TableAccess,
        slots: &[usize],
        mut f: impl FnMut(&[u8], &mut Row) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        self.each_stored(access, slots, |key, _, row| f(key, row))
    }

    /// As [`Run::each_row`], with the row's bytes as well.
    fn each_stored(
        &self,
        access: &TableAccess,
        slots: &[usize],
        mut f: impl FnMut(&[u8], &[u8], &mut Row) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let mut rest = Some(access.primary.span()).filter(|_| !self.empty.contains(&access.table.id));
        let mut row: Row = vec![Value::Null; access.columns.len()];
        while let Some(span) = rest {
            let chunk = self.statement.txn.with(|t| Sweep::of(t, span, CHUNK_ROWS, true))?;
            for (key, stored) in chunk.rows() {
                access.decode(stored, slots, &mut row)?;
                f(key, stored, &mut row)?;
            }
            self.statement.check()?;
            rest = chunk.rest;
        }
        Ok(())
    }

    /// Whether a table has a row.
    pub(super) fn has_rows(&self, table: &Table) -> Result<bool, SqlError> {
        if self.empty.contains(&table.id) {
            return Ok(false);
        }
        let span = crate::encoding::index_span(table.primary.id);
        let request = ScanRequest { span, reverse: false, limit: 1 };
        Ok(!self.statement.txn.with(|t| t.scan_certified(&request))?.rows.is_empty())
    }

    /// Fills one index of a table (its ordinal: see [`TableAccess::index`]) from the rows.
    pub(super) fn fill_index(&mut self, target: &Target, ordinal: usize) -> Result<(), SqlError> {
        let access = target.access.clone();
        let index = access.index(ordinal);
        let slots = index.slots.clone();
        let progress = self.statement.backend.progress.show_index(access.table.id, index.id);
        let mut loader = Loader::new([(index.id, index.unique)], self.statement.patience()).watched(&progress.task);
        let result = self.each_row(&access, &slots, |row_key, row| {
            progress.task.done.add(1);
            let Some(Entry { key, value, guarded }) = index.entry(row, row_key)? else { return Ok(()) };
            if guarded && loader.contains(self.db, &key)?.is_some() {
                return Err(duplicate(target.unique_violation(ordinal, row, &self.statement.settings), &index.name));
            }
            loader.put(self.db, key, value)
        });
        let statement = self.statement.clone();
        let mut twice = |found: Duplicate<'_>| {
            let mut row = vec![Value::Null; access.columns.len()];
            let read = access.row_key_of_entry(found.key, found.value).and_then(|row_key| {
                let stored = statement.txn.with(|t| t.get(&row_key))?;
                stored.map_or(Ok(()), |stored| access.decode(&stored, &slots, &mut row))
            });
            match read {
                Ok(()) => duplicate(target.unique_violation(ordinal, &row, &statement.settings), &index.name),
                Err(e) => e,
            }
        };
        self.end_load(loader, result, &mut twice)
    }

    /// Copies every row of `old` to `new`, whose index ids are all fresh; `map` turns an old row into a new one; without it rows stay what they
    /// are, and get other keys. A primary key that only the new one has is shown as an index being made.
    pub(super) fn rewrite(
        &mut self,
        old: &TableAccess,
        new: &Target,
        map: Option<&mut dyn FnMut(&mut Row) -> Result<Row, SqlError>>,
    ) -> Result<(), SqlError> {
        let access = new.access.clone();
        let keyed = access.table.has_primary_key;
        let ids = (0..=access.indexes.len())
            .map(|i| (access.index(i).id, if i == 0 { keyed } else { access.index(i).unique }));
        let progress = (keyed && !old.table.has_primary_key)
            .then(|| self.statement.backend.progress.show_index(access.table.id, access.primary.id));
        let mut loader = Loader::new(ids, self.statement.patience());
        if let Some(progress) = &progress {
            loader = loader.watched(&progress.task);
        }
        let mut load = |image: RowImage, row: &[Value]| {
            if let Some(progress) = &progress {
                progress.task.done.add(1);
            }
            if let Some(ordinal) = image.taken_in(&access, &mut loader.into_db(self.db))? {
                let error = new.unique_violation(ordinal, row, &self.statement.settings);
                return Err(duplicate(error, &access.index(ordinal).name));
            }
            image.load(&mut loader.into_db(self.db))
        };
        let row_id = || if keyed { 0 } else { self.db.kv.unique_id() };
        let all: Vec<usize> = (0..old.columns.len()).collect();
        let result = match map {
            Some(map) => self.each_row(old, &all, |_, row| {
                let mut row = map(row)?;
                access.generate(None, &mut row)?;
                new.check(&row, None, &self.statement)?;
                load(RowImage::new(&access, &row, row_id(), None)?, &row)
            }),
            None => {
                // Only what keys need, and what may not be NULL from now on, is looked at.
                let slots = if new.checks.is_empty() { slots_of_keys(&access) } else { all.clone() };
                self.each_stored(old, &slots, |_, stored, row| {
                    let null = slots.iter().any(|&slot| !access.columns[slot].nullable && row[slot].is_null());
                    if null || !new.checks.is_empty() {
                        old.decode(stored, &all, row)?;
                        new.check(row, None, &self.statement)?;
                    }
                    load(RowImage::with(&access, row, row_id(), Bytes::copy_from_slice(stored))?, row)
                })
            }
        };
        let statement = self.statement.clone();
        let mut twice = |found: Duplicate<'_>| {
            let error = new.twice(&statement, &found);
            match error.state == SqlState::UNIQUE_VIOLATION {
                true => duplicate(error, &access.index(found.index).name),
                false => error,
            }
        };
        self.end_load(loader, result, &mut twice)
    }

    /// Ends a load, done or failed, and remembers it until the transaction ends.
    pub(super) fn end_load(
        &mut self,
        mut loader: Loader,
        result: Result<(), SqlError>,
        duplicate: &mut dyn FnMut(Duplicate<'_>) -> SqlError,
    ) -> Result<(), SqlError> {
        let txn = self.statement.txn.clone();
        let result = result.and_then(|()| loader.finish(self.db, &txn, duplicate).map(|_| ()));
        if loader.is_large() {
            self.loads.extend_from_slice(&loader.indexes());
        }
        result
    }
}

/// Columns that the keys of a table and of its indexes depend on.
fn slots_of_keys(access: &TableAccess) -> Vec<usize> {
    let indexes = std::iter::once(&access.primary).chain(&access.indexes);
    let mut slots: Vec<usize> = indexes.flat_map(|index| index.slots.iter().copied()).collect();
    slots.extend((0..access.columns.len()).filter(|&slot| !access.columns[slot].nullable));
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// 23505 in the words of an index being made.
pub(super) fn duplicate(error: SqlError, index: &str) -> SqlError {
    let detail = error.detail.as_deref().map(|d| d.replace("already exists.", "is duplicated."));
    error.with(|e| {
        e.message = format!("could not create unique index \"{index}\"");
        e.detail = detail;
    })
}

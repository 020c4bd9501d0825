//! Bulk writes below fresh index ids, outside the transaction that will make them visible.
//!
//! Problem: an index over a million rows, or a million rows to load, do not fit a transaction's buffer. Idea: nobody reads below
//! an index id that no committed descriptor names. So chunks are written and committed by transactions of their own, and the
//! main transaction, when all is written, (1) locks the record that announced the load, which moves its snapshot above all
//! chunks, so that it sees them itself, and (2) deletes that record together with its descriptor change.
//!
//! 1. Before the first chunk commits there is a durable record of the index ids; it goes only with the main commit. After a
//!    crash or a rollback the record is left, and what is below the ids is collected (see [`crate::catalog::garbage`]).
//! 2. Little data never takes this way: it is written in the main transaction.
//! 3. A unique key is looked up before it is written, in earlier chunks by a read, in its own by a set; keys that ascend are
//!    free by themselves.

use crate::SqlError;
use crate::catalog::{Oid, garbage, key};
use crate::database::Database;
use crate::transaction::{Isolation, Kv, LockWait, Patience, TxnRef};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};

/// Most rows in one chunk.
pub const CHUNK_ROWS_MAX: usize = 32_768;
/// Most bytes in one chunk.
pub const CHUNK_BYTES_MAX: usize = 4 << 20;
/// What is written in the main transaction instead, if it is no more than this.
pub const SMALL_ROWS_MAX: usize = 2_000;
/// See [`SMALL_ROWS_MAX`].
pub const SMALL_BYTES_MAX: usize = 256 << 10;
/// How often a chunk is tried.
pub const CHUNK_ATTEMPTS_MAX: usize = 16;

/// See the module.
pub struct Loader {
    indexes: Vec<Oid>,
    patience: Patience,
    rows: BTreeMap<Bytes, Bytes>,
    bytes: usize,
    /// Greatest key written so far, by index id.
    greatest: HashMap<[u8; 4], Bytes>,
    announced: bool,
}

impl Loader {
    /// A load of these indexes, which must be fresh, by a statement of such patience.
    pub fn new(indexes: Vec<Oid>, patience: Patience) -> Loader {
        Loader { indexes, patience, rows: BTreeMap::new(), bytes: 0, greatest: HashMap::new(), announced: false }
    }

    /// Whether anything has been written outside the main transaction.
    pub fn is_large(&self) -> bool {
        self.announced
    }
    /// The indexes being loaded.
    pub fn indexes(&self) -> &[Oid] {
        &self.indexes
    }

    /// Whether a key was put before. What is small is all in memory; what is large is looked up.
    ///
    /// # Errors
    /// Those of the layers below.
    pub fn contains(&self, db: &Database, row: &[u8]) -> Result<Option<Bytes>, SqlError> {
        if let Some(value) = self.rows.get(row) {
            return Ok(Some(value.clone()));
        }
        let Some(prefix) = prefix_of(row) else { return Ok(None) };
        if !self.announced || self.greatest.get(&prefix).is_none_or(|greatest| row > greatest.as_ref()) {
            return Ok(None);
        }
        let mut txn = self.patience.begin(db.kv.as_ref(), Isolation::RepeatableRead)?;
        let found = txn.get(row)?;
        txn.rollback();
        Ok(found)
    }

    /// Adds a row or an entry.
    ///
    /// # Errors
    /// Those of the layers below.
    pub fn put(&mut self, db: &Database, row: Bytes, value: Bytes) -> Result<(), SqlError> {
        self.bytes += row.len() + value.len();
        self.rows.insert(row, value);
        let full = self.rows.len() >= CHUNK_ROWS_MAX || self.bytes >= CHUNK_BYTES_MAX;
        if full { self.flush(db) } else { Ok(()) }
    }

    /// Writes the chunk in a transaction of its own.
    fn flush(&mut self, db: &Database) -> Result<(), SqlError> {
        if !self.announced {
            // Even where it fails: that the load has ended is reported all the same.
            self.announced = true;
            announce(db, &self.patience, &self.indexes)?;
        }
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        write_chunk(db.kv.as_ref(), &self.patience, &rows)?;
        for (row, _) in rows {
            if let Some(prefix) = prefix_of(&row)
                && self.greatest.get(&prefix).is_none_or(|greatest| row > *greatest)
            {
                self.greatest.insert(prefix, row);
            }
        }
        Ok(())
    }

    /// Writes what is left, and makes all of it part of the main transaction. Gives the indexes whose load must be reported
    /// as ended when that transaction ends.
    ///
    /// # Errors
    /// Those of the layers below; a restart if the main transaction's snapshot cannot move up.
    pub fn finish(&mut self, db: &Database, txn: &TxnRef) -> Result<Vec<Oid>, SqlError> {
        let small = !self.announced && self.rows.len() <= SMALL_ROWS_MAX && self.bytes <= SMALL_BYTES_MAX;
        if small {
            let rows = std::mem::take(&mut self.rows);
            txn.with(|t| rows.into_iter().try_for_each(|(row, value)| t.put(row, value)))?;
            return Ok(Vec::new());
        }
        if !self.rows.is_empty() {
            self.flush(db)?;
        }
        adopt(txn, &self.indexes)?;
        Ok(self.indexes.clone())
    }
}

/// Puts a load on record, before its first chunk (invariant 1).
///
/// # Errors
/// Those of the layers below.
pub fn announce(db: &Database, patience: &Patience, indexes: &[Oid]) -> Result<(), SqlError> {
    for index in indexes {
        db.loads.begin(*index);
        garbage::announce(db.kv.as_ref(), patience, *index)?;
    }
    Ok(())
}

/// Makes what was loaded part of a transaction, and visible to it.
///
/// # Errors
/// A restart if the transaction's snapshot cannot move up.
pub fn adopt(txn: &TxnRef, indexes: &[Oid]) -> Result<(), SqlError> {
    txn.with(|t| {
        for index in indexes {
            let record = key::object(key::GARBAGE, *index);
            t.lock(&record, LockWait::Wait)?;
            t.delete(Bytes::copy_from_slice(&record))?;
        }
        Ok(())
    })
}

fn prefix_of(row: &[u8]) -> Option<[u8; 4]> {
    row.get(..4)?.try_into().ok()
}

fn write_chunk(kv: &dyn Kv, patience: &Patience, rows: &BTreeMap<Bytes, Bytes>) -> Result<(), SqlError> {
    let attempt = || {
        let mut txn = patience.begin(kv, Isolation::RepeatableRead)?;
        for (row, value) in rows {
            txn.put(row.clone(), value.clone())?;
        }
        patience.commit(txn.as_mut())
    };
    let mut result = attempt();
    for _ in 1..CHUNK_ATTEMPTS_MAX {
        match &result {
            Err(e) if e.retry() => result = attempt(),
            _ => break,
        }
    }
    result?;
    Ok(())
}

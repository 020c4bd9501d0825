//! What writers do for an index that is being made while its table is written.
//!
//! First they *mark* the entries that they would have made and removed: the marks have an index id of their own, and are entries of rows, so a mark leads to
//! its row. Later they *maintain* the index, which may lack entries then, and hold some whose rows have changed meanwhile: an entry
//! counts only if its row still has it. How that becomes a whole index: `ddl`'s `online`.

use super::index::{Entry, IndexAccess};
use super::table::{BuildingAccess, TableAccess};
use crate::transaction::Transaction;
use crate::types::Value;
use crate::{KvError, SqlError};
use bytes::Bytes;

impl BuildingAccess {
    /// Where writers write now.
    pub fn written(&self) -> &IndexAccess {
        if self.maintained { &self.index } else { &self.marks }
    }

    /// A row's entry comes to be.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn put(&self, txn: &mut dyn Transaction, entry: Entry) -> Result<(), KvError> {
        match self.maintained {
            true => txn.put(entry.key, entry.value),
            // That another one marks the same is no conflict.
            false => txn.overwrite(entry.key, Some(entry.value)),
        }
    }

    /// A row's entry goes.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn remove(
        &self,
        txn: &mut dyn Transaction,
        access: &TableAccess,
        entry: Entry,
        row_key: &Bytes,
    ) -> Result<(), SqlError> {
        if !self.maintained {
            return Ok(self.put(txn, entry)?);
        }
        if entry.guarded {
            // It may be another row's: then this one's was not there yet.
            let Some(value) = txn.get_certified(&entry.key)? else { return Ok(()) };
            if access.row_key_of_entry(&entry.key, &value)? != *row_key {
                return Ok(());
            }
        }
        Ok(txn.delete(entry.key)?)
    }

    /// The key of the row that has a unique key.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn holder(
        &self,
        txn: &mut dyn Transaction,
        access: &TableAccess,
        key: &Bytes,
    ) -> Result<Option<Bytes>, SqlError> {
        let Some(value) = txn.get_certified(key)? else { return Ok(None) };
        let row_key = access.row_key_of_entry(key, &value)?;
        let entry = self.entry_of(txn, access, &row_key)?;
        Ok(entry.is_some_and(|(entry, _)| entry.key == *key).then_some(row_key))
    }

    /// The entry that a row has now, certified, and the row.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn entry_of(
        &self,
        txn: &mut dyn Transaction,
        access: &TableAccess,
        row_key: &Bytes,
    ) -> Result<Option<(Entry, Vec<Value>)>, SqlError> {
        let Some(stored) = txn.get_certified(row_key)? else { return Ok(None) };
        let mut row = vec![Value::Null; access.columns.len()];
        access.decode(&stored, &self.index.slots, &mut row)?;
        Ok(self.index.entry(&row, row_key)?.map(|entry| (entry, row)))
    }
}

//! Decoded catalogs of the process, by version.

use super::{Snapshot, key};
use crate::transaction::Transaction;
use crate::{SqlError, SqlState};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Versions kept. More than one: changes under way, and reads of the past.
pub const VERSIONS_MAX: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Cache(Mutex<VecDeque<Arc<Snapshot>>>);

impl Cache {
    /// The catalog as a transaction sees it, `known` being what the caller last had: then this costs one certified read.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn current(&self, txn: &mut dyn Transaction, known: Option<&Arc<Snapshot>>) -> Result<Arc<Snapshot>, SqlError> {
        let version = read_version(txn)?;
        if let Some(known) = known.filter(|s| s.version() == version) {
            return Ok(known.clone());
        }
        if let Some(found) = self.0.lock().iter().find(|s| s.version() == version) {
            return Ok(found.clone());
        }
        let snapshot = Arc::new(Snapshot::load(version, txn)?);
        self.put(snapshot.clone());
        Ok(snapshot)
    }

    /// Adds a catalog.
    pub fn put(&self, snapshot: Arc<Snapshot>) {
        let mut kept = self.0.lock();
        if kept.len() == VERSIONS_MAX {
            kept.pop_front();
        }
        kept.push_back(snapshot);
    }
}

/// The version that a transaction sees, certified.
///
/// # Errors
/// Those of the transaction; 22023 before the catalog existed.
pub fn read_version(txn: &mut dyn Transaction) -> Result<u64, SqlError> {
    let value = txn.get_certified(&key::VERSION_KEY)?;
    value.and_then(|v| Some(u64::from_be_bytes(v.as_ref().try_into().ok()?))).ok_or_else(|| {
        SqlError::new(SqlState::INVALID_PARAMETER, "there was no database yet at the time asked for")
            .hint("Read at a later time.")
    })
}

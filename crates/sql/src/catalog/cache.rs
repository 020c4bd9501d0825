//! Decoded catalogs of the process, by number.

use super::{Overlay, Snapshot, key};
use crate::transaction::{BeginOptions, Kv, Patience, Transaction};
use crate::{KvError, SqlError, SqlState};
use clock::Timestamp;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Catalogs kept. More than one: changes under way, and reads of the past.
pub const VERSIONS_MAX: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Cache(Mutex<VecDeque<Arc<Snapshot>>>);

impl Cache {
    /// The catalog as committed at a transaction's snapshot, `known` being what the caller last had, and a snapshot at which it was that: then this
    /// costs one look at most. Nothing of it is remembered in the transaction: see [`super::reliance`].
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn current(
        &self,
        kv: &dyn Kv,
        patience: &Patience,
        txn: &mut dyn Transaction,
        known: Option<(&Arc<Snapshot>, Timestamp)>,
    ) -> Result<Arc<Snapshot>, SqlError> {
        if let Some((known, _)) = known.filter(|(_, at)| txn.is_as_it_was(&key::VERSION_KEY, *at)) {
            return Ok(known.clone());
        }
        let number = read_number(txn)?;
        if let Some((known, _)) = known.filter(|(s, _)| s.version() == number) {
            return Ok(known.clone());
        }
        if let Some(found) = self.find(number) {
            return Ok(found);
        }
        // By a transaction of its own, which has changed nothing.
        let mut reader = begin_at(kv, patience, txn.snapshot())?;
        let last = self.0.lock().back().cloned();
        let snapshot = Arc::new(Snapshot::load(number, reader.as_mut(), last.as_deref())?);
        self.put(snapshot.clone());
        Ok(snapshot)
    }

    fn find(&self, number: u64) -> Option<Arc<Snapshot>> {
        self.0.lock().iter().find(|s| s.version() == number).cloned()
    }

    fn put(&self, snapshot: Arc<Snapshot>) {
        let mut kept = self.0.lock();
        if kept.iter().any(|s| s.version() == snapshot.version()) {
            return;
        }
        if kept.len() == VERSIONS_MAX {
            kept.pop_front();
        }
        kept.push_back(snapshot);
    }

    /// A change was committed at a time: its catalog is made of the one before it, if that is known. Whatever fails here, whoever asks for the number reads.
    pub fn committed(&self, kv: &dyn Kv, patience: &Patience, number: u64, at: Timestamp, changes: &Overlay) {
        let before = at.as_u64().checked_sub(1).map(Timestamp::from_u64);
        let number_before = before.and_then(|before| {
            let mut reader = begin_at(kv, patience, before).ok()?;
            read_number(reader.as_mut()).ok()
        });
        if let Some(base) = number_before.and_then(|number| self.find(number)) {
            self.put(Arc::new(changes.over(&base, number)));
        }
    }
}

fn begin_at(kv: &dyn Kv, patience: &Patience, at: Timestamp) -> Result<Box<dyn Transaction>, KvError> {
    let (interrupt, deadline) = (patience.interrupt.clone(), patience.deadline.clone());
    kv.begin(&BeginOptions { as_of: Some(at), read_only: true, interrupt, deadline, ..BeginOptions::default() })
}

/// The number of the catalog that a transaction sees.
fn read_number(txn: &mut dyn Transaction) -> Result<u64, SqlError> {
    let value = txn.observe(&key::VERSION_KEY)?;
    value.and_then(|v| Some(u64::from_be_bytes(v.as_ref().try_into().ok()?))).ok_or_else(|| {
        SqlError::new(SqlState::INVALID_PARAMETER, "there was no database yet at the time asked for")
            .hint("Read at a later time.")
    })
}

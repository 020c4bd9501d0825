//! Decoded catalogs of the process, by number.

use super::{Overlay, Snapshot, key};
use crate::transaction::{BeginOptions, Kv, Patience, Transaction};
use crate::{KvError, SqlError, SqlState};
use clock::Timestamp;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Catalogs kept. More than one: changes under way, and reads of the past.
pub(crate) const VERSIONS_MAX: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub struct Cache(Mutex<VecDeque<(Arc<Snapshot>, Timestamp)>>);

/// What is done where the catalog's range does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It may: the statement needs the catalog.
    Patient,
    /// [`is_out_of_reach`] at once where nobody is known to answer: what was known before may do.
    Hasty,
    /// Nobody is to be asked: what was known before does. Whoever waits so looks only where it is known that nothing has changed.
    Never,
}

/// Whether this error says that the catalog cannot be asked for now.
pub fn is_out_of_reach(error: &SqlError) -> bool {
    error.state == SqlState::CANNOT_CONNECT_NOW && error.key.as_deref() == Some(&key::VERSION_KEY[..])
}

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
        self.look(kv, patience, txn, known, Wait::Patient)
    }

    /// As [`Cache::current`], and does not wait for an answer where that is not wanted.
    ///
    /// # Errors
    /// Those of the transaction, [`is_out_of_reach`] among them.
    pub fn look(
        &self,
        kv: &dyn Kv,
        patience: &Patience,
        txn: &mut dyn Transaction,
        known: Option<(&Arc<Snapshot>, Timestamp)>,
        wait: Wait,
    ) -> Result<Arc<Snapshot>, SqlError> {
        if let Some((known, _)) = known.filter(|(_, at)| txn.is_as_it_was(&key::VERSION_KEY, *at)) {
            return Ok(known.clone());
        }
        let number = read_number(txn, wait)?;
        if let Some((known, _)) = known.filter(|(s, _)| s.version() == number) {
            return Ok(known.clone());
        }
        if let Some(found) = self.find(number) {
            return Ok(found);
        }
        // By a transaction of its own, which has changed nothing.
        let mut reader = begin_at(kv, patience, txn.snapshot())?;
        let last = self.0.lock().back().map(|(last, _)| last.clone());
        let snapshot = Arc::new(Snapshot::load(number, reader.as_mut(), last.as_deref())?);
        self.put(snapshot.clone(), txn.snapshot());
        Ok(snapshot)
    }

    fn find(&self, number: u64) -> Option<Arc<Snapshot>> {
        self.0.lock().iter().find(|(s, _)| s.version() == number).map(|(s, _)| s.clone())
    }

    /// The newest catalog that is known here, and a snapshot at which it was that: perhaps it has changed since.
    pub fn newest(&self) -> Option<(Arc<Snapshot>, Timestamp)> {
        self.0.lock().iter().max_by_key(|(_, at)| *at).cloned()
    }

    fn put(&self, snapshot: Arc<Snapshot>, at: Timestamp) {
        let mut kept = self.0.lock();
        if kept.iter().any(|(s, _)| s.version() == snapshot.version()) {
            return;
        }
        if kept.len() == VERSIONS_MAX {
            kept.pop_front();
        }
        kept.push_back((snapshot, at));
    }

    /// A change was committed at a time: its catalog is made of the one before it, if that is known. Whatever fails here, whoever asks for the number reads.
    pub fn committed(&self, kv: &dyn Kv, patience: &Patience, number: u64, at: Timestamp, changes: &Overlay) {
        let before = at.as_u64().checked_sub(1).map(Timestamp::from_u64);
        let number_before = before.and_then(|before| {
            let mut reader = begin_at(kv, patience, before).ok()?;
            read_number(reader.as_mut(), Wait::Patient).ok()
        });
        if let Some(base) = number_before.and_then(|number| self.find(number)) {
            self.put(Arc::new(changes.over(&base, number)), at);
        }
    }
}

fn begin_at(kv: &dyn Kv, patience: &Patience, at: Timestamp) -> Result<Box<dyn Transaction>, KvError> {
    let (interrupt, deadline) = (patience.interrupt.clone(), patience.deadline.clone());
    kv.begin(&BeginOptions { as_of: Some(at), read_only: true, interrupt, deadline, ..BeginOptions::default() })
}

/// The number of the catalog that a transaction sees.
///
/// # Errors
/// Those of the transaction; 22023 where there was no database yet.
pub fn read_number(txn: &mut dyn Transaction, wait: Wait) -> Result<u64, SqlError> {
    let value = match wait {
        Wait::Patient | Wait::Never => txn.observe(&key::VERSION_KEY)?,
        Wait::Hasty => txn.observe_hastily(&key::VERSION_KEY)?,
    };
    value.and_then(|v| Some(u64::from_be_bytes(v.as_ref().try_into().ok()?))).ok_or_else(|| {
        SqlError::new(SqlState::INVALID_PARAMETER, "there was no database yet at the time asked for")
            .hint("Read at a later time.")
    })
}

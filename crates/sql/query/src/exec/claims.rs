//! The unique keys that an open block has inserted.
//!
//! Problem: an insert is certified, not locked, so of two blocks that insert one key the second hears of it when it commits, as a
//! conflict; PostgreSQL lets its insert wait, and answers 23505. Idea: in a block, who inserts a key locks it first, and notes it. The
//! lock makes the other block wait; the note tells, when a commit is refused for a key nevertheless (a lone insert locks nothing), that
//! it was a duplicate. Decision 0069.
//!
//! Caveat: both are bounded. Beyond that, and for COPY, a duplicate is a conflict at the commit, as before.

use super::table::TableAccess;
use super::write::RowImage;
use crate::transaction::{LockMode, LockWait, Transaction};
use crate::{KvError, SqlError};
use bytes::Bytes;
use parking_lot::Mutex;
use std::hash::{DefaultHasher, Hasher};

/// Most keys that one transaction notes: 512 KiB.
pub(crate) const NOTED_MAX: usize = 65_536;
/// So many keys noted, no more are locked.
pub(crate) const LOCKED_MAX: usize = 4096;

/// See the module.
#[derive(Debug, Default)]
pub struct Claims(Mutex<Vec<u64>>);

fn digest(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    hasher.finish()
}

impl Claims {
    /// Before a new row's unique keys are looked at: waits for others that have inserted one. Gives the index (see
    /// [`TableAccess::index`]) whose key is taken now, although the transaction cannot see it.
    ///
    /// # Errors
    /// Those of locking.
    pub fn wait(
        &self,
        txn: &mut dyn Transaction,
        access: &TableAccess,
        image: &RowImage,
    ) -> Result<Option<usize>, SqlError> {
        for index in 0..=access.indexes.len() {
            for key in image.keys_of(access, |known| known == index) {
                if self.wait_for_key(txn, key)? {
                    return Ok(Some(index));
                }
            }
        }
        Ok(None)
    }

    /// The same for one key.
    ///
    /// # Errors
    /// Those of locking.
    pub fn wait_for_key(&self, txn: &mut dyn Transaction, key: &Bytes) -> Result<bool, SqlError> {
        if self.len() >= LOCKED_MAX {
            return Ok(false);
        }
        // Not the strongest: who refers to a key that is not there yet need not wait to hear so.
        match txn.lock_as(key, LockMode::NoKeyUpdate, LockWait::Wait) {
            // What was read has changed, so that the snapshot cannot move up to the key. If it is taken, that comes first.
            Err(KvError::Restart { .. }) if txn.present(key)? => Ok(true),
            other => other.map(|_| false).map_err(SqlError::from),
        }
    }

    /// Takes note of the keys of a row that is about to be inserted.
    pub fn note(&self, access: &TableAccess, image: &RowImage) {
        image.keys_of(access, |_| true).for_each(|key| self.note_key(key));
    }

    /// The same for one key.
    pub(crate) fn note_key(&self, key: &[u8]) {
        let mut noted = self.0.lock();
        if noted.len() < NOTED_MAX {
            noted.push(digest(key));
        }
    }

    /// Whether a key was inserted.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.0.lock().contains(&digest(key))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets those after the first `len`: a savepoint was gone back to.
    pub fn truncate(&self, len: usize) {
        self.0.lock().truncate(len);
    }
}

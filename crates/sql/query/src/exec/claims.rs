//! The unique keys that a transaction inserts.
//!
//! Problem: an insert is certified, not locked, so of two that insert one key the second hears of it when it commits, as a
//! conflict; PostgreSQL lets its insert wait, and answers 23505. Idea: who inserts a key locks it first, and in a block notes it. The
//! lock makes the other one wait; the note tells, when a commit is refused for a key nevertheless (a lock table was lost), that
//! it was a duplicate. Decisions 0069 and 0210; of many rows together: [`super::keys_together`].
//!
//! A key that is taken may be on its way out: who deletes its row, or gives it another key, holds the row. So before a duplicate is told
//! its row is held, too: as strongly as its key asks for ([`TableAccess::holding`]).
//!
//! Caveat: all is bounded. Beyond that a duplicate is a conflict at the commit.

use super::table::TableAccess;
use super::write::RowImage;
use crate::transaction::{LockMode, LockWait, Transaction};
use crate::{KvError, SqlError};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most keys that one transaction notes: 512 KiB.
pub(crate) const NOTED_MAX: usize = 65_536;
/// So many keys locked, no more are: as many as a transaction may hold, less 65,536 for the rows that it comes to change.
pub const LOCKED_MAX: usize = (1 << 20) - (1 << 16);

/// See the module.
#[derive(Debug)]
pub struct Claims {
    noted: Mutex<Vec<u64>>,
    /// Of keys that were there, and that the transaction took away: put back, none is a duplicate.
    gone: Mutex<BTreeSet<u64>>,
    locked: AtomicUsize,
    /// [`LOCKED_MAX`], but for tests.
    max: usize,
    /// Of a statement that is its whole transaction: it is repeated after a conflict, and finds out by itself.
    lone: bool,
}

/// How many keys a transaction had noted and locked at a savepoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    noted: usize,
    locked: usize,
}

/// What a lock came to. `false`: something else that was read has changed, so that the snapshot cannot move up, and the key is taken now: that comes first.
fn settled(locked: Result<bool, KvError>, txn: &mut dyn Transaction, key: &[u8]) -> Result<bool, SqlError> {
    match locked {
        Err(KvError::Restart { .. }) if txn.present(key)? => Ok(false),
        other => Ok(other.map(|_| true)?),
    }
}

fn digest(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    hasher.finish()
}

impl Claims {
    /// Those of a transaction that locks so many keys at most.
    pub fn new(max: usize) -> Claims {
        Claims { noted: Mutex::default(), gone: Mutex::default(), locked: AtomicUsize::new(0), max, lone: false }
    }

    /// Those of statements that are their whole transaction, one after the other: see [`Claims::begin`].
    pub fn lone(max: usize) -> Claims {
        Claims { lone: true, ..Claims::new(max) }
    }

    /// A statement that is its whole transaction begins.
    pub fn begin(&self) {
        self.locked.store(0, Ordering::Relaxed);
    }

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
                if self.wait_for_key(txn, key, (index > 0).then_some(access))? {
                    return Ok(Some(index));
                }
            }
        }
        Ok(None)
    }

    /// The same for one key; `entry`: it is one of a secondary index of this table. If a row has it, whoever deletes that row or gives it another key is
    /// waited for: what is looked at after this is so.
    ///
    /// # Errors
    /// Those of locking.
    pub fn wait_for_key(
        &self,
        txn: &mut dyn Transaction,
        key: &Bytes,
        entry: Option<&TableAccess>,
    ) -> Result<bool, SqlError> {
        if !self.may_lock() {
            return Ok(false);
        }
        // Not the strongest: who refers to a key that is not there yet need not wait to hear so.
        if !txn.lock_as(key, LockMode::NoKeyUpdate, LockWait::Skip)? {
            // Whoever only changes a row that is there keeps its key: he need not be waited for to hear that it is taken.
            if entry.is_none() && txn.peek(key)?.is_some() {
                if !self.lone && !self.hold(txn, key, key, LockMode::KeyShare)? {
                    return Ok(true);
                }
                if self.lone || txn.peek(key)?.is_some() {
                    return Ok(false);
                }
            }
            if !settled(txn.lock_as(key, LockMode::NoKeyUpdate, LockWait::Wait), txn, key)? {
                return Ok(true);
            }
        }
        // A look that promises nothing: what was read certified and changes while it is waited for would refuse the whole transaction.
        let Some(access) = entry.filter(|_| !self.lone) else { return Ok(false) };
        let Some(found) = txn.peek(key)? else { return Ok(false) };
        let row_key = access.row_key_of_entry(key, &found)?;
        Ok(!self.hold(txn, key, &row_key, access.holding(key))?)
    }

    /// Whether one lock more may be taken.
    pub(super) fn may_lock(&self) -> bool {
        self.may_lock_some(1) == 1
    }

    /// As [`Claims::may_lock`], of so many: gives how many of them.
    pub(super) fn may_lock_some(&self, keys: usize) -> usize {
        self.max.saturating_sub(self.locked.fetch_add(keys, Ordering::Relaxed)).min(keys)
    }

    /// How many were counted so far.
    pub(super) fn count(&self) -> usize {
        self.locked.load(Ordering::Relaxed)
    }

    /// What was locked since so many had been counted was given back.
    pub(super) fn count_back_to(&self, count: usize) {
        self.locked.fetch_min(count, Ordering::Relaxed);
    }

    /// Holds the row that has a key: whoever deletes it or gives it another key is waited for. `false`: the key is taken now, although the transaction cannot see it.
    ///
    /// # Errors
    /// Those of locking.
    pub(super) fn hold(
        &self,
        txn: &mut dyn Transaction,
        key: &[u8],
        row_key: &[u8],
        mode: LockMode,
    ) -> Result<bool, SqlError> {
        settled(txn.lock_as(row_key, mode, LockWait::Wait), txn, key)
    }

    /// A key is taken by this row. Who is his whole transaction waits only now for whoever deletes that row, or gives it another key: what he has read does not outlive the statement's
    /// repetition.
    ///
    /// # Errors
    /// A restart: it may be free by now. Those of locking.
    pub fn settle(
        &self,
        txn: &mut dyn Transaction,
        access: &TableAccess,
        key: &[u8],
        row_key: &[u8],
    ) -> Result<(), SqlError> {
        if self.lone {
            self.hold(txn, key, row_key, access.holding(key))?;
        }
        Ok(())
    }

    /// Whether the statement is its whole transaction.
    pub fn are_lone(&self) -> bool {
        self.lone
    }

    /// Takes note of the keys of a row that is about to be inserted.
    pub fn note(&self, access: &TableAccess, image: &RowImage) {
        image.keys_of(access, |_| true).for_each(|key| self.note_key(key));
    }

    /// The same for one key.
    pub(crate) fn note_key(&self, key: &[u8]) {
        if self.lone {
            return;
        }
        let mut noted = self.noted.lock();
        if noted.len() < NOTED_MAX {
            noted.push(digest(key));
        }
    }

    /// Takes note of a key that the transaction takes away, and of which it relies on it that nobody comes to refer to it (decision 231): what the commit is refused for may be that.
    pub(super) fn note_gone(&self, key: &[u8]) {
        let mut gone = self.gone.lock();
        if !self.lone && gone.len() < NOTED_MAX {
            gone.insert(digest(key));
        }
    }

    /// Whether a key was inserted that had not been there.
    pub fn contains(&self, key: &[u8]) -> bool {
        let digest = digest(key);
        self.noted.lock().contains(&digest) && !self.gone.lock().contains(&digest)
    }

    /// How many there are, at a savepoint.
    pub fn counted(&self) -> Counted {
        Counted { noted: self.noted.lock().len(), locked: self.count() }
    }

    /// Forgets those since: the savepoint was gone back to, and the locks were given back.
    pub fn back_to(&self, counted: Counted) {
        self.noted.lock().truncate(counted.noted);
        self.count_back_to(counted.locked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locks that were taken before a savepoint count, however many keys are noted.
    #[test]
    fn behind_a_savepoint_what_was_locked_before_it_counts() {
        let claims = Claims::new(LOCKED_MAX);
        let many = NOTED_MAX + 1000;
        (0..many).for_each(|n| claims.note_key(&n.to_be_bytes()));
        assert_eq!(claims.may_lock_some(many), many);
        let counted = claims.counted();
        assert_eq!(claims.may_lock_some(LOCKED_MAX), LOCKED_MAX - many);
        assert!(!claims.may_lock());
        claims.back_to(counted);
        assert_eq!(claims.count(), many);
        assert_eq!(claims.may_lock_some(LOCKED_MAX), LOCKED_MAX - many);
    }
}

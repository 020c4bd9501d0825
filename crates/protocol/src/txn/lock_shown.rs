//! What a lock table shows of itself.

use super::TxnId;
use super::lock_mode::LockMode;
use bytes::Bytes;

/// A lock that is held or waited for, as it is shown: see [`super::LockTable::shown`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownLock {
    /// The key.
    pub key: Bytes,
    /// Who holds it, or waits.
    pub txn: TxnId,
    /// How.
    pub mode: LockMode,
    /// Held, else waited for.
    pub granted: bool,
    /// Whom it waits for; nobody where it is held, or is about to end as a victim.
    pub before: Vec<TxnId>,
}

/// Who is known to a table: see [`super::LockTable::owners`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockOwner {
    /// The transaction.
    pub txn: TxnId,
    /// The session that it is of, if that was said.
    pub session: Option<u64>,
    /// It is no transaction, but a lock of a session.
    pub lasting: bool,
    /// Locks held here; one that was made stronger counts twice.
    pub held: usize,
}

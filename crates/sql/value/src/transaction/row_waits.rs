//! Who waits for whose rows, for those who look: the layers below keep the locks, and know sessions by their numbers only.

use super::LockMode;
use bytes::Bytes;

/// A session that waits for a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowWaiter {
    /// The session; none where a transaction was begun without.
    pub session: Option<u64>,
    /// The row's key.
    pub key: Bytes,
    /// How it is to be locked.
    pub mode: LockMode,
}

/// The waits for rows at one moment.
pub trait RowWaits {
    /// What a session waits for, and the sessions that are in its way.
    fn of(&self, session: u64) -> Option<(RowWaiter, Vec<u64>)>;
}

/// Nobody waits.
pub(crate) struct NoRowWaits;

impl RowWaits for NoRowWaits {
    fn of(&self, _session: u64) -> Option<(RowWaiter, Vec<u64>)> {
        None
    }
}

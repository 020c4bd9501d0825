//! Who waits for whose rows, by sessions: for circles that go through other locks.

use super::convert;
use node::{LockTable, TxnId};
use sql::transaction::{RowWaiter, RowWaits};
use std::collections::BTreeMap;

/// A node's locks, with the transactions of the sessions that wait.
pub(crate) struct Waits<'a> {
    table: &'a LockTable,
    waiters: BTreeMap<u64, (TxnId, RowWaiter)>,
}

impl<'a> Waits<'a> {
    pub fn of(table: &'a LockTable) -> Self {
        let waiters = table.waiters();
        let waiters = waiters.filter_map(|w| Some((w.session?, (w.txn, convert::row_waiter(w))))).collect();
        Waits { table, waiters }
    }
}

impl RowWaits for Waits<'_> {
    fn of(&self, session: u64) -> Option<(RowWaiter, Vec<u64>)> {
        let (txn, row) = self.waiters.get(&session)?;
        let before = self.table.in_the_way_of(*txn).into_iter().filter_map(|(_, session)| session).collect();
        Some((row.clone(), before))
    }
}

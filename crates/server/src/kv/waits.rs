//! Who waits for whose rows, by sessions: for `pg_blocking_pids`, `pg_locks`, and circles that go through other locks.

use super::convert;
use node::{LockTable, TxnId};
use sql::transaction::{RowLock, RowWaiter, RowWaits};
use std::collections::{BTreeMap, BTreeSet};

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

    fn all(&self) -> Vec<RowLock> {
        let awaited: BTreeSet<_> = self.waiters.values().map(|(_, row)| &row.key).collect();
        let held = awaited.into_iter().flat_map(|key| {
            let holders = self.table.holders(key).into_iter();
            holders.map(|(session, mode)| {
                let mode = convert::lock_mode_back(mode);
                RowLock { of: RowWaiter { session, key: key.clone(), mode }, granted: true }
            })
        });
        let waiting = self.waiters.values().map(|(_, row)| RowLock { of: row.clone(), granted: false });
        held.chain(waiting).collect()
    }
}

//! Who waits for whom.

use super::State;
use crate::transaction::{LockMode, RowWaiter, RowWaits};
use bytes::Bytes;

impl State {
    fn waiter(&self, txn: u64, key: &Bytes, mode: LockMode) -> RowWaiter {
        RowWaiter { session: self.sessions.get(&txn).copied(), key: key.clone(), mode }
    }

    /// Under which transaction a session waits, if not `txn` itself: it may hold locks under several (`ddl::exclusive`), and waits for one thing at a time.
    fn under(&self, at: u64, txn: u64) -> u64 {
        let Some(session) = self.sessions.get(&at).filter(|_| !self.waits.contains_key(&at)) else { return at };
        let same = |other: &u64| self.sessions.get(other) == Some(session);
        [txn].into_iter().chain(self.waits.keys().copied()).find(same).unwrap_or(at)
    }

    /// The circle that `txn` would close by waiting for `key`.
    pub(super) fn deadlock(&self, txn: u64, key: &Bytes, mode: LockMode) -> Option<Vec<RowWaiter>> {
        let mut seen = std::collections::BTreeSet::new();
        let in_the_way = |at: u64, key: &Bytes, mode: LockMode| {
            self.in_the_way(at, key, mode).into_iter().map(|at| self.under(at, txn)).collect::<Vec<u64>>()
        };
        let mut open: Vec<Vec<u64>> = in_the_way(txn, key, mode).into_iter().map(|at| vec![txn, at]).collect();
        while let Some(path) = open.pop() {
            let at = *path.last()?;
            if at == txn {
                let first = [self.waiter(txn, key, mode)].into_iter();
                let others = path[1..path.len() - 1].iter();
                let others = others.filter_map(|t| self.waits.get(t).map(|(key, mode)| self.waiter(*t, key, *mode)));
                return Some(first.chain(others).collect());
            }
            if let Some((key, mode)) = self.waits.get(&at)
                && seen.insert(at)
            {
                open.extend(in_the_way(at, key, *mode).into_iter().map(|next| [&path[..], &[next]].concat()));
            }
        }
        None
    }
}

impl RowWaits for State {
    fn of(&self, session: u64) -> Option<(RowWaiter, Vec<u64>)> {
        let (txn, (key, mode)) = self.waits.iter().find(|(txn, _)| self.sessions.get(txn) == Some(&session))?;
        let before = self.in_the_way(*txn, key, *mode);
        let before = before.iter().filter_map(|txn| self.sessions.get(txn).copied()).collect();
        Some((self.waiter(*txn, key, *mode), before))
    }
}

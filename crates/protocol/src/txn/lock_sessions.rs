//! Under which transaction each session waits for a lock: it may hold others under several, and waits for one thing at a time.

use super::TxnId;
use std::collections::BTreeMap;

/// By session.
#[derive(Debug, Default)]
pub(super) struct Waiting(BTreeMap<u64, TxnId>);

impl Waiting {
    /// A transaction begins to wait; `session`: of which it is.
    pub fn begins(&mut self, session: Option<u64>, txn: TxnId) {
        self.0.extend(session.map(|session| (session, txn)));
    }
    /// It waits no more.
    pub fn ends(&mut self, session: Option<u64>, txn: TxnId) {
        if let Some(session) = session
            && self.0.get(&session) == Some(&txn)
        {
            self.0.remove(&session);
        }
    }
    /// That under which a session waits.
    pub fn of(&self, session: u64) -> Option<TxnId> {
        self.0.get(&session).copied()
    }
}

use parking_lot::Mutex;
use protocol::txn::{LockReply, LockTable, LockWait, TxnId};
use std::collections::BTreeMap;
use std::task::Waker;

/// The lock table of a node, with those who wait.
#[derive(Debug, Default)]
pub(crate) struct Locks(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    table: LockTable,
    wakers: BTreeMap<TxnId, Waker>,
}

impl Locks {
    pub fn request(&self, txn: TxnId, key: &[u8], wait: LockWait, waker: &Waker) -> LockReply {
        let mut wakeups = Vec::new();
        let mut woken = Vec::new();
        let reply = {
            let inner = &mut *self.0.lock();
            let reply = inner.table.request(txn, key, wait, &mut wakeups);
            match reply {
                LockReply::Queued => drop(inner.wakers.insert(txn, waker.clone())),
                _ if inner.wakers.is_empty() => {}
                _ => drop(inner.wakers.remove(&txn)),
            }
            woken.extend(wakeups.iter().filter_map(|w| inner.wakers.remove(&w.0)));
            reply
        };
        woken.into_iter().for_each(Waker::wake);
        reply
    }

    /// Stops waiting.
    pub fn cancel(&self, txn: TxnId) {
        let inner = &mut *self.0.lock();
        inner.table.cancel(txn);
        inner.wakers.remove(&txn);
    }

    pub fn release(&self, txn: TxnId) {
        let mut wakeups = Vec::new();
        let woken: Vec<Waker> = {
            let inner = &mut *self.0.lock();
            inner.table.release(txn, &mut wakeups);
            inner.wakers.remove(&txn);
            wakeups.iter().filter_map(|w| inner.wakers.remove(&w.0)).collect()
        };
        woken.into_iter().for_each(Waker::wake);
    }

    pub fn held(&self, txn: TxnId) -> usize {
        self.0.lock().table.held(txn)
    }

    /// Keys locked, and transactions that queue.
    pub fn size(&self) -> (usize, usize) {
        self.0.lock().table.size()
    }
}

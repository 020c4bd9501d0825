use parking_lot::Mutex;
use protocol::txn::{LockMode, LockReply, LockTable, LockWait, TxnId, Wakeup};
use std::collections::BTreeMap;
use std::task::Waker;

/// So many keys are asked for in one hold of the table: others wait for it meanwhile.
const KEYS_PER_HOLD: usize = 64;

/// The lock table of a node, with those who wait.
#[derive(Debug, Default)]
pub(crate) struct Locks(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    table: LockTable,
    wakers: BTreeMap<TxnId, Waker>,
}

impl Locks {
    /// Runs `f` on the table, and wakes whom it lets go on.
    fn with<R>(&self, f: impl FnOnce(&mut Inner, &mut Vec<Wakeup>) -> R) -> R {
        let mut wakeups = Vec::new();
        let (result, woken) = {
            let inner = &mut *self.0.lock();
            let result = f(inner, &mut wakeups);
            let woken: Vec<Waker> = wakeups.iter().filter_map(|w| inner.wakers.remove(&w.0)).collect();
            (result, woken)
        };
        woken.into_iter().for_each(Waker::wake);
        result
    }

    /// `session`: of which it is, with its first request.
    pub fn request(
        &self,
        txn: TxnId,
        session: Option<u64>,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
        waker: &Waker,
    ) -> LockReply {
        self.with(|inner, wakeups| {
            if let Some(session) = session {
                inner.table.belongs(txn, session);
            }
            let reply = inner.table.request(txn, key, mode, wait, wakeups);
            match reply {
                LockReply::Queued => drop(inner.wakers.insert(txn, waker.clone())),
                _ if inner.wakers.is_empty() => {}
                _ => drop(inner.wakers.remove(&txn)),
            }
            reply
        })
    }

    /// As [`Locks::request`] of each, without waiting, up to the first that cannot be had at once; gives how many were granted.
    pub fn request_all(&self, txn: TxnId, mut session: Option<u64>, keys: &[&[u8]], mode: LockMode) -> usize {
        let mut granted = 0;
        for some in keys.chunks(KEYS_PER_HOLD) {
            let more = self.with(|inner, wakeups| {
                if let Some(session) = session.take() {
                    inner.table.belongs(txn, session);
                }
                inner.table.request_all(txn, some, mode, wakeups)
            });
            granted += more;
            if more < some.len() {
                break;
            }
        }
        granted
    }

    /// Stops waiting.
    pub fn cancel(&self, txn: TxnId) {
        self.with(|inner, wakeups| {
            inner.table.cancel(txn, wakeups);
            inner.wakers.remove(&txn);
        });
    }

    pub fn release(&self, txn: TxnId) {
        self.with(|inner, wakeups| {
            inner.table.release(txn, wakeups);
            inner.wakers.remove(&txn);
        });
    }

    /// Where a transaction stands, for [`Locks::release_since`].
    pub fn mark(&self, txn: TxnId) -> usize {
        self.0.lock().table.mark(txn)
    }

    /// Gives back what was taken since a mark.
    pub fn release_since(&self, txn: TxnId, mark: usize) {
        self.with(|inner, wakeups| {
            inner.table.release_since(txn, mark, wakeups);
            inner.wakers.remove(&txn);
        });
    }

    pub fn held(&self, txn: TxnId) -> usize {
        self.0.lock().table.held(txn)
    }

    /// Shows the table as it is at one moment.
    pub fn look<R>(&self, look: impl FnOnce(&LockTable) -> R) -> R {
        look(&self.0.lock().table)
    }

    /// Keys locked, and transactions that queue.
    pub fn size(&self) -> (usize, usize) {
        self.0.lock().table.size()
    }
}

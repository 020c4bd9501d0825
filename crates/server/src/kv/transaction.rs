//! SQL's transaction: the node's, with blocking calls.

use super::{Inner, convert, park};
use bytes::Bytes;
use clock::Timestamp;
use sql::KvError;
use sql::transaction::{BeginOptions, Committed, Interrupt, LockWait, ScanChunk, ScanRequest, TxnStats};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Poll, Waker};
use std::time::Duration;
use store::Engine;

/// A waiting thread looks for an interrupt this often.
const LOOK_EVERY: Duration = Duration::from_millis(10);

type Node<E> = node::Transaction<E>;

pub(super) struct KvTransaction<E: Engine> {
    inner: Arc<Inner<E>>,
    txn: Node<E>,
    interrupt: Interrupt,
    lock_timeout_ns: u64,
    lock_wait_ns: u64,
}

impl<E: Engine> KvTransaction<E> {
    pub fn new(inner: Arc<Inner<E>>, txn: Node<E>, options: &BeginOptions) -> Self {
        KvTransaction {
            inner,
            txn,
            interrupt: options.interrupt.clone(),
            lock_timeout_ns: options.lock_timeout_ms.saturating_mul(1_000_000),
            lock_wait_ns: 0,
        }
    }

    /// Polls until ready; parks between, for at most `timeout_ns` altogether (0: for ever). Gives the time waited, too.
    fn block<R>(
        &mut self,
        timeout_ns: u64,
        mut poll: impl FnMut(&Inner<E>, &mut Node<E>, &Waker) -> node::Op<R>,
    ) -> (Result<R, KvError>, u64) {
        let mut began_ns = None;
        loop {
            if let Poll::Ready(result) = park::with_waker(|waker| poll(&self.inner, &mut self.txn, waker)) {
                let waited = began_ns.map_or(0, |began| self.inner.clock.read().now_ns.saturating_sub(began));
                return (result.map_err(convert::error), waited);
            }
            let now_ns = self.inner.clock.read().now_ns;
            let waited = now_ns.saturating_sub(*began_ns.get_or_insert(now_ns));
            let stop = match () {
                () if self.interrupt.is_raised() => Some(KvError::Interrupted),
                () if timeout_ns > 0 && waited >= timeout_ns => Some(KvError::LockNotAvailable),
                () => None,
            };
            if let Some(error) = stop {
                self.txn.stop_waiting();
                return (Err(error), waited);
            }
            // What it waits for may itself wait for the disk.
            if self.inner.driver.lead(&self.inner) {
                continue;
            }
            let patience = if timeout_ns > 0 { Duration::from_nanos(timeout_ns - waited) } else { LOOK_EVERY };
            park::pause(patience.min(LOOK_EVERY));
        }
    }

    /// Holds a commit back while the versions in memory outgrow what the engine takes.
    fn wait_for_room(&self) -> Result<(), KvError> {
        while self.inner.crowded.load(SeqCst) && self.inner.broken.lock().is_none() {
            if self.interrupt.is_raised() {
                return Err(KvError::Interrupted);
            }
            if self.inner.full.load(SeqCst) {
                return Err(KvError::DiskFull);
            }
            park::pause(Duration::from_millis(1));
        }
        Ok(())
    }

    fn read(&mut self, key: &[u8], certified: bool) -> Result<Option<Bytes>, KvError> {
        let now = self.inner.clock.read();
        self.block(0, |_, txn, waker| txn.get(&now, key, certified, waker)).0
    }

    fn rows(&mut self, request: &ScanRequest, certified: bool) -> Result<ScanChunk, KvError> {
        let now = self.inner.clock.read();
        let ScanRequest { span, reverse, limit } = request;
        let chunk = self.block(0, |_, txn, waker| txn.scan(&now, span, *reverse, *limit, certified, waker)).0?;
        Ok(ScanChunk { rows: chunk.rows, rest: chunk.rest })
    }
}

impl<E: Engine> sql::Transaction for KvTransaction<E> {
    fn snapshot(&self) -> Timestamp {
        self.txn.snapshot()
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.read(key, false)
    }
    fn get_certified(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.read(key, true)
    }
    fn scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.rows(request, false)
    }
    fn scan_certified(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.rows(request, true)
    }
    fn lock(&mut self, key: &[u8], wait: LockWait) -> Result<bool, KvError> {
        if self.txn.locks_full() {
            return Ok(true);
        }
        let when = convert::when_locked(wait);
        let timeout_ns = self.lock_timeout_ns;
        let (locked, waited) =
            self.block(timeout_ns, |inner, txn, waker| txn.lock(&inner.clock.read(), key, when, waker));
        self.lock_wait_ns += waited;
        locked
    }
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), KvError> {
        self.txn.put(key, value).map_err(convert::error)
    }
    fn delete(&mut self, key: Bytes) -> Result<(), KvError> {
        self.txn.delete(key).map_err(convert::error)
    }
    fn begin_statement(&mut self) -> Result<(), KvError> {
        let now = self.inner.clock.read();
        self.txn.begin_statement(&now).map_err(convert::error)
    }
    fn savepoint(&mut self) -> u32 {
        self.txn.savepoint()
    }
    fn rollback_to(&mut self, savepoint: u32) {
        self.txn.rollback_to(savepoint);
    }
    fn has_writes(&self) -> bool {
        self.txn.has_writes()
    }
    fn commit(&mut self) -> Result<Committed, KvError> {
        if self.txn.has_writes() {
            self.wait_for_room()?;
        }
        let (inner, txn) = (&self.inner, &mut self.txn);
        let timestamp =
            inner.driver.wait(inner, |waker| txn.commit(&inner.clock.read(), waker)).map_err(convert::error)?;
        Ok(Committed { timestamp })
    }
    fn rollback(&mut self) {
        self.txn.rollback();
    }
    fn stats(&self) -> TxnStats {
        let stats = self.txn.stats();
        TxnStats {
            consistency: convert::settled(stats.consistency),
            bound_ns: stats.bound_ns,
            uncertainty_restarts: stats.uncertainty_restarts,
            refreshes: stats.refreshes,
            lock_wait_ns: self.lock_wait_ns,
            commit_wait_ns: stats.commit_wait_ns,
        }
    }
}

//! A store that costs next to nothing, and the time that is measured over it: for the benches.

use bytes::Bytes;
use clock::Timestamp;
use sql::KvError;
use sql::transaction::{Committed, LockMode, LockWait, ScanChunk, ScanRequest, Transaction, TxnStats};
use std::collections::BTreeMap;

/// Keeps what is put; forgets nothing, certifies nothing.
#[derive(Default)]
pub struct Free(BTreeMap<Bytes, Bytes>);

impl Transaction for Free {
    fn snapshot(&self) -> Timestamp {
        Timestamp::default()
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        Ok(self.0.get(key).cloned())
    }
    fn get_certified(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.get(key)
    }
    fn scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        let rows: Vec<(Bytes, Bytes)> =
            self.0.range(request.span.clone()).take(request.limit).map(|(k, v)| (k.clone(), v.clone())).collect();
        let rest = (rows.len() == request.limit).then(|| {
            let mut next = rows[rows.len() - 1].0.to_vec();
            next.push(0);
            Bytes::from(next)..request.span.end.clone()
        });
        Ok(ScanChunk { rows, rest })
    }
    fn scan_certified(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.scan(request)
    }
    fn lock_as(&mut self, _: &[u8], _: LockMode, _: LockWait) -> Result<bool, KvError> {
        Ok(true)
    }
    fn hold(&mut self, _: &[u8], _: LockMode) -> Result<(), KvError> {
        Ok(())
    }
    fn present(&mut self, key: &[u8]) -> Result<bool, KvError> {
        Ok(self.0.contains_key(key))
    }
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), KvError> {
        self.0.insert(key, value);
        Ok(())
    }
    fn delete(&mut self, key: Bytes) -> Result<(), KvError> {
        self.0.remove(&key);
        Ok(())
    }
    fn begin_statement(&mut self) -> Result<(), KvError> {
        Ok(())
    }
    fn savepoint(&mut self) -> u32 {
        0
    }
    fn rollback_to(&mut self, _: u32) {}
    fn release_since(&mut self, _: u32) {}
    fn has_writes(&self) -> bool {
        true
    }
    fn commit(&mut self) -> Result<Committed, KvError> {
        Ok(Committed::default())
    }
    fn rollback(&mut self) {}
    fn stats(&self) -> TxnStats {
        TxnStats::default()
    }
}

/// CPU time of this thread: other work on the machine does not count.
pub fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the struct that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

//! A store whose calls fail as if another transaction had come first, so often as they are told.

use super::{open, run, session};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{
    BeginOptions, Committed, Footprint, Isolation, KeptUncertainty, LockMode, LockWait, Patience, ScanChunk,
    ScanRequest, TxnStats,
};
use sql::{Kv, KvError, Session, Transaction};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// How many calls are still to fail as if another transaction had come first, and what was begun.
#[derive(Default)]
pub(crate) struct Conflicts {
    /// Commits with writes.
    pub(crate) commits: AtomicUsize,
    /// Locks, which are taken nevertheless: what was read had changed.
    pub(crate) locks: AtomicUsize,
    /// So many locks each transaction gets before one fails, and again once what it did was undone.
    pub(crate) spared_locks: AtomicUsize,
    /// Locks that are refused to break a deadlock.
    pub(crate) deadlocks: AtomicUsize,
    /// Transactions begun.
    pub(crate) begun: AtomicUsize,
    /// What transactions were told of earlier ones when they began, and how often a statement was begun once more.
    pub(crate) kept: Mutex<Vec<Option<KeptUncertainty>>>,
    pub(crate) repeated: AtomicUsize,
    /// Commits that come to be and are not acknowledged in time.
    pub(crate) unacknowledged: AtomicUsize,
    /// What is begun with a snapshot of its own takes one of 10 ms ago: `none`, where the clock was set back.
    pub(crate) behind: AtomicBool,
    /// Where a transaction is put that is to take over what was loaded, when it commits: nobody knows whether it has. (In place of that one, which has done nothing.)
    pub(crate) put_off: Mutex<Option<Box<dyn Transaction>>>,
    /// Or nobody knows of it though it has, once.
    pub(crate) adopts_unknown: AtomicBool,
    /// It is here then.
    pub(crate) on_its_way: Mutex<Option<Box<dyn Transaction>>>,
    /// The clock is in doubt: the snapshot of a statement is taken by the first that it reads.
    pub(crate) doubts: AtomicBool,
    /// No range of the present answers.
    pub(crate) lost: AtomicBool,
    /// Snapshots are read that are at least so old, microseconds: it is all that is here.
    pub(crate) here_age_us: AtomicU64,
    /// Keys that were asked for.
    pub(crate) asked: AtomicUsize,
    /// Those for which nobody waits long.
    pub(crate) hasty: AtomicUsize,
    /// What ends the waits of the transactions begun.
    pub(crate) patience: Mutex<Vec<Patience>>,
}

/// Whether a call fails, one time less.
pub(crate) fn fails(left: &AtomicUsize) -> Result<(), KvError> {
    match left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)) {
        Ok(_) => Err(KvError::Restart { reason: "somebody came first".into(), key: None }),
        Err(_) => Ok(()),
    }
}

impl Conflicts {
    /// What a key that is to be read gets.
    pub(crate) fn reached(&self, key: &[u8], past: bool) -> Result<(), KvError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let lost = self.lost.load(Ordering::Relaxed) && !past;
        let error =
            || KvError::Unavailable { key: Some(bytes::Bytes::copy_from_slice(key)), told: "nobody answers".into() };
        if lost { Err(error()) } else { Ok(()) }
    }
}

/// A database with conflicts.
pub(crate) struct Conflicting {
    pub(crate) kv: MemoryKv,
    pub(crate) left: Arc<Conflicts>,
}
pub(crate) struct ConflictingTxn {
    pub(crate) txn: Box<dyn Transaction>,
    pub(crate) past: bool,
    pub(crate) behind: bool,
    pub(crate) placed: bool,
    /// It met what it could not move past.
    pub(crate) met: bool,
    pub(crate) locks: usize,
    /// It takes over what was loaded, or has done away with it.
    pub(crate) adopts: bool,
    pub(crate) left: Arc<Conflicts>,
}
impl ConflictingTxn {
    pub(crate) fn new(txn: Box<dyn Transaction>, left: &Arc<Conflicts>) -> ConflictingTxn {
        let (past, behind, placed, met, locks, adopts) = (false, false, true, false, 0, false);
        ConflictingTxn { txn, past, behind, placed, met, locks, adopts, left: left.clone() }
    }
}
impl Kv for Conflicting {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        self.left.begun.fetch_add(1, Ordering::Relaxed);
        let (interrupt, deadline) = (options.interrupt.clone(), options.deadline.clone());
        self.left.patience.lock().unwrap().push(Patience { interrupt, deadline });
        self.left.kept.lock().unwrap().push(options.kept.clone());
        let (txn, past) = (self.kv.begin(options)?, options.as_of.is_some_and(|at| at <= self.here()));
        let behind =
            self.left.behind.load(Ordering::Relaxed) && options.isolation == Isolation::RepeatableRead && !past;
        Ok(Box::new(ConflictingTxn { past, behind, ..ConflictingTxn::new(txn, &self.left) }))
    }
    below!();
    fn freshest(&self, least: clock::Timestamp) -> clock::Timestamp {
        self.here().min(self.kv.ago(0)).max(least)
    }
}
impl Transaction for ConflictingTxn {
    fn snapshot(&self) -> clock::Timestamp {
        let snapshot = self.txn.snapshot();
        let back_us = if self.behind { 10_000 } else { 0 };
        clock::Timestamp::new(snapshot.physical_us() - back_us, snapshot.logical())
    }
    fn has_snapshot(&self) -> bool {
        self.placed
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<bytes::Bytes>, KvError> {
        self.reach(key)?;
        self.txn.get(key)
    }
    fn observe_hastily(&mut self, key: &[u8]) -> Result<Option<bytes::Bytes>, KvError> {
        self.left.hasty.fetch_add(1, Ordering::Relaxed);
        self.observe(key)
    }
    fn get_certified(&mut self, key: &[u8]) -> Result<Option<bytes::Bytes>, KvError> {
        self.reach(key)?;
        self.txn.get_certified(key)
    }
    fn scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.reach(&request.span.start)?;
        self.txn.scan(request)
    }
    fn scan_certified(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.txn.scan_certified(request)
    }
    fn lock_as(&mut self, key: &[u8], mode: LockMode, wait: LockWait) -> Result<bool, KvError> {
        if fails(&self.left.deadlocks).is_err() {
            return Err(KvError::Deadlock { circle: Vec::new() });
        }
        let locked = self.txn.lock_as(key, mode, wait)?;
        self.locks += 1;
        let is_spared = self.locks <= self.left.spared_locks.load(Ordering::Relaxed);
        let failed = if is_spared { Ok(()) } else { fails(&self.left.locks) };
        self.met |= failed.is_err();
        failed.map(|()| locked)
    }
    fn hold(&mut self, key: &[u8], mode: LockMode) -> Result<(), KvError> {
        self.txn.hold(key, mode)
    }
    fn present(&mut self, key: &[u8]) -> Result<bool, KvError> {
        self.txn.present(key)
    }
    fn put(&mut self, key: bytes::Bytes, value: bytes::Bytes) -> Result<(), KvError> {
        self.txn.put(key, value)
    }
    fn delete(&mut self, key: bytes::Bytes) -> Result<(), KvError> {
        self.adopts |= key.starts_with(&sql::catalog::key::GARBAGE.to_be_bytes());
        self.txn.delete(key)
    }
    fn begin_statement(&mut self) -> Result<(), KvError> {
        self.placed = !self.left.doubts.load(Ordering::Relaxed);
        if self.placed { self.txn.begin_statement() } else { Ok(()) }
    }
    fn repeat_statement(&mut self) -> Result<(), KvError> {
        self.left.repeated.fetch_add(1, Ordering::Relaxed);
        self.begin_statement()
    }
    fn kept_uncertainty(&self) -> Option<KeptUncertainty> {
        let at = self.txn.snapshot();
        self.met.then(|| KeptUncertainty { limit: at, least: at, caught_up: vec![7] })
    }
    fn savepoint(&mut self) -> u32 {
        self.txn.savepoint()
    }
    fn rollback_to(&mut self, savepoint: u32) {
        self.locks = 0;
        self.txn.rollback_to(savepoint);
    }
    fn release_since(&mut self, savepoint: u32) {
        self.txn.release_since(savepoint);
    }
    fn note_locks(&mut self) {
        self.txn.note_locks();
    }
    fn release_noted(&mut self) {
        self.txn.release_noted();
    }
    fn has_writes(&self) -> bool {
        self.txn.has_writes()
    }
    fn commit(&mut self) -> Result<Committed, KvError> {
        if self.txn.has_writes()
            && let Err(error) = fails(&self.left.commits)
        {
            self.txn.rollback();
            return Err(error);
        }
        if self.adopts
            && let Some(idle) = self.left.put_off.lock().unwrap().take()
        {
            *self.left.on_its_way.lock().unwrap() = Some(std::mem::replace(&mut self.txn, idle));
            return Err(KvError::CommitUnknown);
        }
        if self.adopts && self.left.adopts_unknown.swap(false, Ordering::Relaxed) {
            self.txn.commit()?;
            return Err(KvError::CommitUnknown);
        }
        let late = self.txn.has_writes() && fails(&self.left.unacknowledged).is_err();
        let committed = self.txn.commit()?;
        if late { Err(KvError::Unacknowledged("the transaction has committed".into())) } else { Ok(committed) }
    }
    fn rollback(&mut self) {
        self.txn.rollback();
    }
    fn footprint(&self) -> Footprint {
        // (A COPY would take its table over by what it holds, and this store promises more of the catalog than is asked: at SERIALIZABLE the takeover's own step would refuse it.)
        let is_told = self.left.spared_locks.load(Ordering::Relaxed) > 0;
        if is_told { self.txn.footprint() } else { Footprint::default() }
    }
    fn stats(&self) -> TxnStats {
        self.txn.stats()
    }
}

pub(crate) fn conflicting() -> (Session, Arc<Conflicts>) {
    let left = Arc::new(Conflicts::default());
    let db = open(Conflicting { kv: MemoryKv::new(), left: left.clone() });
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0)");
    (a, left)
}

//! SQL's transaction: the node's, with blocking calls.

use super::operations::{Clock, Operations, Shell};
use super::{convert, park, wall_us};
use bytes::Bytes;
use clock::{Reading, Timestamp};
use node::TxnError;
use node::cluster::SpanAhead;
use sql::KvError;
use sql::context::MemoryBudget;
use sql::transaction::{
    BeginOptions, Committed, Deadline, Footprint, Interrupt, LockMode, LockTimeout, LockWait, Pick, ScanChunk,
    ScanRequest, Span, Sweep, TxnStats, Wait,
};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;
use store::versions::Promise;

/// A waiting thread looks for an interrupt this often.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Memory for writes is taken so much at a time.
const MEMORY_STEP_BYTES: usize = 64 << 10;
/// Room on the disk is set aside for a transaction that writes so much; many smaller ones fit what is kept free anyway.
const PROMISED_BYTES: usize = 64 << 10;
/// Where merges make that room it is asked for so often, at each look.
const MERGE_TRIES: usize = 1000;
/// The end of a table is taken whatever the disk holds, up to this size: it frees space, and needs little.
const ENDING_BYTES_MAX: usize = 64 << 10;
/// Who commits so much puts what large commits left in its place, and waits until the engine has what they brought.
const LARGE_BYTES: usize = 128 << 10;
/// And for its client at every so many of these looks.
const LOOKS_PER_PROBE: u32 = 10;

pub(crate) struct KvTransaction<S: Shell> {
    inner: Arc<S>,
    txn: S::Txn,
    began: Reading,
    interrupt: Interrupt,
    deadline: Deadline,
    lock_timeout: LockTimeout,
    lock_wait_ns: u64,
    /// What its writes take, of the memory of all statements. Made by the first of them: the pool is everybody's.
    memory: Option<MemoryBudget>,
    taken_bytes: usize,
}

impl<S: Shell> KvTransaction<S> {
    #[inline]
    pub fn new(inner: Arc<S>, txn: S::Txn, began: &Reading, options: &BeginOptions) -> Box<Self> {
        Box::new(KvTransaction {
            txn,
            interrupt: options.interrupt.clone(),
            deadline: options.deadline.clone(),
            lock_timeout: options.lock_timeout.clone(),
            lock_wait_ns: 0,
            memory: None,
            taken_bytes: 0,
            began: *began,
            inner,
        })
    }

    /// Polls until ready; parks between, and says meanwhile what it waits for, for at most `timeout_ns` altogether (0: for ever). Gives the time waited, too.
    fn block<R>(
        &mut self,
        wait: Wait,
        timeout_ns: u64,
        mut poll: impl FnMut(&S, &mut S::Txn, &Waker) -> node::Op<R>,
    ) -> (Result<R, KvError>, u64) {
        let mut began_ns = None;
        let mut looks = 0u32;
        let mut waiting = None;
        loop {
            let polled = park::with_waker(|waker| poll(&self.inner, &mut self.txn, waker));
            self.inner.settle(polled.is_pending());
            if let Poll::Ready(result) = polled {
                let waited = began_ns.map_or(0, |began| self.inner.monotonic_ns().saturating_sub(began));
                return (result.map_err(|e| self.told(e)), waited);
            }
            let now_ns = self.inner.monotonic_ns();
            waiting.get_or_insert_with(|| self.interrupt.begin_wait_at(wait, micros(now_ns)));
            let waited = now_ns.saturating_sub(*began_ns.get_or_insert(now_ns));
            looks += 1;
            let timed_out = timeout_ns > 0 && waited >= timeout_ns;
            let stop = self.stop(looks.is_multiple_of(LOOKS_PER_PROBE));
            if let Some(error) = stop.or(timed_out.then_some(KvError::LockNotAvailable { key: None, waited: true })) {
                self.txn.stop_waiting();
                self.inner.settle(false);
                return (Err(error), waited);
            }
            // What it waits for may itself wait for the disk.
            if self.inner.lead() {
                continue;
            }
            let patience = if timeout_ns > 0 { Duration::from_nanos(timeout_ns - waited) } else { LOOK_EVERY };
            park::pause(patience.min(LOOK_EVERY));
        }
    }

    /// A failure as SQL knows it. A node that is none of its cluster any more hears nobody: that is told instead, except where it may have committed.
    /// And one whose storage failed is closed, as if it were shutting down: then it is told what failed.
    fn told(&self, error: TxnError) -> KvError {
        if error == TxnError::ShuttingDown
            && let Some(why) = self.inner.failed()
        {
            return KvError::Storage(format!("no write is taken until the node is restarted: {why}"));
        }
        let silent = matches!(error, TxnError::Unavailable { .. } | TxnError::ShuttingDown);
        self.inner.removed().filter(|_| silent).unwrap_or_else(|| convert::error(error))
    }

    /// Why a wait must end now, if it must. `probe`: look for the client, too.
    fn stop(&self, probe: bool) -> Option<KvError> {
        let raised = if probe { self.interrupt.look() } else { self.interrupt.is_raised() };
        if raised {
            return Some(KvError::Interrupted);
        }
        self.deadline.has_passed_at(|| micros(self.inner.monotonic_ns())).then_some(KvError::TimedOut)
    }

    /// Waits until the commit is acknowledged. Where the clock holds it back, an interrupt, a timeout or the client's absence end the
    /// wait: with their own error where nothing was written (a timeout: with what the clock lacks), else with the news that it has
    /// committed.
    fn wait_for_commit(&mut self) -> Result<Timestamp, KvError> {
        let inner = self.inner.clone();
        let bytes = self.txn.record_bytes();
        let large = bytes >= LARGE_BYTES;
        if large {
            // Before others wait behind it.
            inner.make_room(bytes);
        }
        let committed = self.commit_and_wait(&inner, large);
        if large {
            // Everybody sees it; who wrote so much finds the places for it.
            inner.versions().place(usize::MAX);
        }
        committed
    }

    fn commit_and_wait(&mut self, inner: &Arc<S>, large: bool) -> Result<Timestamp, KvError> {
        let _waiting = self.interrupt.begin_wait(Wait::Commit);
        inner.wait(|waker| {
            let now = inner.now();
            let polled = self.txn.commit(&now, waker);
            inner.settle(polled.is_pending());
            match polled {
                Poll::Ready(result) => return Poll::Ready(result.map_err(|e| self.told(e))),
                Poll::Pending if !self.txn.is_held_back(&now) => {
                    // While its parts wait for an engine elsewhere nothing is decided.
                    let stopped = if large { self.stop(true) } else { None };
                    return stopped
                        .filter(|_| self.txn.give_up_parts())
                        .map_or(Poll::Pending, |why| Poll::Ready(Err(why)));
                }
                Poll::Pending => {}
            }
            let Some(why) = self.stop(true) else { return Poll::Pending };
            match self.txn.give_up_commit(&now).map(convert::error) {
                None => Poll::Pending,
                Some(KvError::ClockUnavailable(_)) if why == KvError::Interrupted => Poll::Ready(Err(why)),
                Some(error) => Poll::Ready(Err(error)),
            }
        })
    }

    /// Holds a commit back while the versions in memory outgrow what the engine takes. With a full disk it is refused, unless it frees
    /// space: for those room is held back (decision 22). And what could not be written out any more is refused always (decision 151). What
    /// it gives is to be held until the commit is over.
    fn wait_for_room(&mut self) -> Result<Option<Promise>, KvError> {
        let bytes = self.txn.record_bytes();
        let promised = |frees| self.inner.promise(bytes, frees).map(Some).ok_or(KvError::DiskFull);
        let is_freeing = self.txn.is_freeing();
        let mut full = self.inner.is_full(bytes);
        if full {
            match () {
                () if self.txn.is_ending() && bytes <= ENDING_BYTES_MAX => return Ok(None),
                () if is_freeing => {}
                () => return Err(KvError::DiskFull),
            }
        }
        while !full && self.inner.is_crowded(bytes >= LARGE_BYTES) {
            if let Some(why) = self.stop(false) {
                return Err(why);
            }
            full = self.inner.is_full(0);
            if full && !is_freeing {
                return Err(KvError::DiskFull);
            }
            park::pause(Duration::from_millis(1));
        }
        if !full && bytes < PROMISED_BYTES && self.inner.versions().goes_unasked(bytes) {
            return Ok(None);
        }
        for tries in 0.. {
            match promised(is_freeing) {
                Err(KvError::DiskFull) if full && self.inner.versions().lend(bytes) => return Ok(None),
                // Who is refused has space given back, and that takes a while.
                Err(KvError::DiskFull) if tries < MERGE_TRIES && (is_freeing || !self.inner.is_full(0)) => {}
                other => return other,
            }
            if let Some(why) = self.stop(false) {
                return Err(why);
            }
            park::pause(LOOK_EVERY);
        }
        Err(KvError::DiskFull)
    }

    fn waited_for_lock(&mut self, ns: u64) {
        if ns > 0 {
            self.lock_wait_ns += ns;
            self.inner.counters().lock_wait_nanos.add(ns);
        }
    }

    /// The longest wait for a lock, as it is set now; 0: for ever.
    fn lock_timeout_ns(&self) -> u64 {
        self.lock_timeout.ms().map_or(0, |ms| ms.saturating_mul(1_000_000))
    }

    /// After a write: takes the memory that it needs, in steps.
    fn take_memory(&mut self) -> Result<(), KvError> {
        let held = self.txn.held_bytes();
        if held <= self.taken_bytes {
            return Ok(());
        }
        let more = (held - self.taken_bytes).next_multiple_of(MEMORY_STEP_BYTES);
        let pool = &self.inner.memory().queries;
        let (limit, share) = (pool.limit_bytes(), pool.share_bytes());
        let memory = self.memory.get_or_insert_with(|| MemoryBudget::of(pool.clone(), usize::MAX));
        let refused = |_| {
            let others = pool.used_bytes().saturating_sub(self.taken_bytes);
            KvError::OutOfMemory { bytes: held, limit, share, others }
        };
        memory.take(more).map_err(refused)?;
        self.taken_bytes += more;
        Ok(())
    }

    /// After writes were undone: gives back what they took.
    fn give_memory(&mut self) {
        let needed = self.txn.held_bytes().next_multiple_of(MEMORY_STEP_BYTES);
        if let (Some(memory), Some(spare)) = (&self.memory, self.taken_bytes.checked_sub(needed).filter(|it| *it > 0)) {
            memory.give(spare);
            self.taken_bytes -= spare;
        }
    }

    fn read(&mut self, key: &[u8], certified: bool) -> Result<Option<Bytes>, KvError> {
        self.block(Wait::Range, 0, |inner, txn, waker| txn.get(&Clock(inner), key, certified, waker)).0
    }

    fn swept(
        &mut self,
        span: &Span,
        limit: usize,
        certified: bool,
        mut pick: Option<&mut Pick<'_>>,
    ) -> Result<Option<Sweep>, KvError> {
        let now = self.inner.now();
        let sweep = |_: &S, txn: &mut S::Txn, waker: &Waker| {
            txn.sweep(&now, span, limit, certified, pick.as_deref_mut(), waker)
        };
        let swept = self.block(Wait::Range, 0, sweep).0?;
        Ok(swept.map(|store::Sweep { bytes, places, rest }| Sweep { bytes, places, rest }))
    }

    fn rows(&mut self, request: &ScanRequest, certified: bool) -> Result<ScanChunk, KvError> {
        let now = self.inner.now();
        let ScanRequest { span, reverse, limit } = request;
        let chunk =
            self.block(Wait::Range, 0, |_, txn, waker| txn.scan(&now, span, *reverse, *limit, certified, waker)).0?;
        Ok(ScanChunk { rows: chunk.rows, rest: chunk.rest })
    }
}

/// A failure to get the lock on a key names it.
fn about(mut error: KvError, key: &[u8]) -> KvError {
    if let KvError::LockNotAvailable { key: about, .. } = &mut error {
        *about = Some(Bytes::copy_from_slice(key));
    }
    error
}

impl<S: Shell> sql::Transaction for KvTransaction<S> {
    fn snapshot(&self) -> Timestamp {
        self.txn.snapshot()
    }
    fn has_snapshot(&self) -> bool {
        self.txn.has_snapshot()
    }
    fn get(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.read(key, false)
    }
    fn get_certified(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.read(key, true)
    }
    fn peek(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.block(Wait::Range, 0, |inner, txn, waker| txn.peek(&Clock(inner), key, waker)).0
    }
    fn observe(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.block(Wait::Range, 0, |inner, txn, waker| txn.observe(&Clock(inner), key, waker)).0
    }
    fn observe_hastily(&mut self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.txn.hurry(true);
        let seen = self.observe(key);
        self.txn.hurry(false);
        seen
    }
    fn is_as_it_was(&self, key: &[u8], since: Timestamp) -> bool {
        self.txn.is_as_it_was(key, since)
    }
    fn began_us(&self) -> Option<i64> {
        Some(wall_us(&self.began))
    }
    fn rely(&mut self, key: &Bytes, since: Timestamp, certified: bool) -> Result<(), KvError> {
        self.block(Wait::Range, 0, |inner, txn, waker| txn.rely(&Clock(inner), key, since, certified, waker)).0
    }
    fn scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.rows(request, false)
    }
    fn scan_certified(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        self.rows(request, true)
    }
    fn sweep(&mut self, span: &Span, limit: usize, certified: bool) -> Result<Option<Sweep>, KvError> {
        self.swept(span, limit, certified, None)
    }
    fn sweep_picked(
        &mut self,
        span: &Span,
        limit: usize,
        certified: bool,
        pick: &mut Pick<'_>,
    ) -> Result<Option<Sweep>, KvError> {
        self.swept(span, limit, certified, Some(pick))
    }
    fn peek_scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        let now = self.inner.now();
        let ScanRequest { span, reverse, limit } = request;
        let chunk = self.block(Wait::Range, 0, |_, txn, waker| txn.peek_scan(&now, span, *reverse, *limit, waker)).0?;
        Ok(ScanChunk { rows: chunk.rows, rest: chunk.rest })
    }
    fn observe_scan(&mut self, request: &ScanRequest) -> Result<ScanChunk, KvError> {
        let now = self.inner.now();
        let ScanRequest { span, reverse, limit } = request;
        let chunk =
            self.block(Wait::Range, 0, |_, txn, waker| txn.observe_scan(&now, span, *reverse, *limit, waker)).0?;
        Ok(ScanChunk { rows: chunk.rows, rest: chunk.rest })
    }
    fn guards_references(&self) -> bool {
        self.txn.guards_references()
    }
    fn unreferred(&mut self, key: &Bytes, since: Timestamp) -> bool {
        self.txn.unreferred(key, since)
    }
    fn negotiate(&mut self, spans: &[Span], least: Timestamp) -> Result<Timestamp, KvError> {
        self.block(Wait::Range, 0, |inner, txn, waker| txn.negotiate(&Clock(inner), spans, least, waker)).0
    }
    fn lock_as(&mut self, key: &[u8], mode: LockMode, wait: LockWait) -> Result<bool, KvError> {
        if self.txn.locks_full() {
            return Ok(true);
        }
        let (mode, when) = (convert::lock_mode(mode), convert::when_locked(wait));
        let timeout_ns = self.lock_timeout_ns();
        let (locked, waited) =
            self.block(Wait::Row, timeout_ns, |inner, txn, waker| txn.lock(&Clock(inner), key, mode, when, waker));
        self.waited_for_lock(waited);
        locked.map_err(|e| about(e, key))
    }
    fn lock_all(&mut self, keys: &[&[u8]], mode: LockMode) -> Result<usize, KvError> {
        if self.txn.locks_full() {
            return Ok(keys.len());
        }
        self.txn.lock_all(keys, convert::lock_mode(mode)).map_err(convert::error)
    }
    fn hold(&mut self, key: &[u8], mode: LockMode) -> Result<(), KvError> {
        if self.txn.locks_full() {
            return Ok(());
        }
        let (mode, timeout_ns) = (convert::lock_mode(mode), self.lock_timeout_ns());
        let (held, waited) = self.block(Wait::Row, timeout_ns, |inner, txn, waker| {
            txn.hold(&Clock(inner), key, mode, node::WhenLocked::Wait, waker)
        });
        self.waited_for_lock(waited);
        held.map(drop).map_err(|e| about(e, key))
    }
    fn is_full_of_locks(&self) -> bool {
        self.txn.locks_full()
    }
    fn is_far(&self) -> bool {
        self.txn.is_far()
    }
    fn read_ahead(&mut self, keys: &[Bytes]) -> Result<(), KvError> {
        let now = self.inner.now();
        let asked = park::with_waker(|waker| self.txn.read_ahead(&now, keys, waker));
        self.inner.settle(false);
        asked.map_err(|e| self.told(e))
    }
    fn scan_ahead(&mut self, requests: &[ScanRequest]) -> Result<bool, KvError> {
        let now = self.inner.now();
        let ahead = |it: &ScanRequest| SpanAhead { span: it.span.clone(), reverse: it.reverse, rows: it.limit };
        let spans: Vec<SpanAhead> = requests.iter().map(ahead).collect();
        let asked = park::with_waker(|waker| self.txn.scan_ahead(&now, &spans, waker));
        self.inner.settle(false);
        asked.map_err(|e| self.told(e))
    }
    fn find_gap(&mut self, span: &Span, end: &Bytes) -> Result<bool, KvError> {
        let now = self.inner.now();
        self.block(Wait::Range, 0, |_, txn, waker| txn.find_gap(&now, span, end, waker)).0
    }
    fn lock_ahead(&mut self, keys: &[Bytes], mode: LockMode) {
        self.txn.lock_ahead(keys, convert::lock_mode(mode));
    }
    fn present(&mut self, key: &[u8]) -> Result<bool, KvError> {
        self.block(Wait::Range, 0, |inner, txn, waker| txn.present(&Clock(inner), key, waker)).0
    }
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), KvError> {
        self.txn.put(key, value).map_err(convert::error)?;
        self.take_memory()
    }
    fn delete(&mut self, key: Bytes) -> Result<(), KvError> {
        self.txn.delete(key).map_err(convert::error)?;
        self.take_memory()
    }
    fn delete_all(&mut self, keys: &[&[u8]]) -> Result<(), KvError> {
        self.txn.delete_all(keys).map_err(convert::error)?;
        self.take_memory()
    }
    fn overwrite(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), KvError> {
        self.txn.overwrite(key, value).map_err(convert::error)?;
        self.take_memory()
    }
    fn begin_statement(&mut self) -> Result<(), KvError> {
        let now = self.inner.now();
        self.txn.begin_statement(&now).map_err(convert::error)
    }
    fn repeat_statement(&mut self) -> Result<(), KvError> {
        let now = self.inner.now();
        self.txn.repeat_statement(&now).map_err(convert::error)
    }
    fn kept_uncertainty(&self) -> Option<sql::transaction::KeptUncertainty> {
        self.txn.kept_uncertainty().map(convert::kept)
    }
    fn frees_space(&mut self) {
        self.txn.frees_space();
    }
    fn savepoint(&mut self) -> u32 {
        self.txn.savepoint()
    }
    fn rollback_to(&mut self, savepoint: u32) {
        self.txn.rollback_to(savepoint);
        self.give_memory();
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
        if let Some(timestamp) = self.txn.commit_reads() {
            return Ok(Committed { timestamp });
        }
        let _promise = if self.txn.has_writes() { self.wait_for_room()? } else { None };
        Ok(Committed { timestamp: self.wait_for_commit()? })
    }
    fn rollback(&mut self) {
        self.txn.rollback();
        self.inner.settle(false);
    }
    fn footprint(&self) -> Footprint {
        Footprint {
            txn: self.txn.id().map(convert::txn_number),
            consistency: convert::settled(self.txn.stats().consistency),
            keys: self.txn.written_keys(),
            bytes: self.txn.record_bytes(),
        }
    }
    fn stats(&self) -> TxnStats {
        let stats = self.txn.stats();
        TxnStats {
            consistency: convert::settled(stats.consistency),
            bound_ns: stats.bound_ns,
            uncertainty_restarts: stats.uncertainty_restarts,
            refreshes: stats.refreshes,
            lock_wait_ns: self.lock_wait_ns,
            commit_wait_ns: stats.commit_wait.held_ns,
            commit_wait_hidden_ns: stats.commit_wait.hidden_ns,
        }
    }
}

impl<S: Shell> Drop for KvTransaction<S> {
    fn drop(&mut self) {
        // Those who wait for its locks wait no longer.
        self.txn.rollback();
        self.inner.settle(false);
    }
}

/// Microseconds for what counts in them.
fn micros(ns: u64) -> i64 {
    i64::try_from(ns / 1000).unwrap_or(i64::MAX)
}

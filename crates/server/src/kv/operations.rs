//! What a session's transaction needs of those below: the operations of a node's transaction, and the shell that drives the node.
//!
//! There are two nodes with the same operations: the one that is alone ([`node::Transaction`]), and the member of a cluster
//! ([`node::cluster::Transaction`]). [`super::transaction::KvTransaction`] is written once, over either.

use super::RecordLog;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use node::cluster::SpanAhead;
use node::{Chunk, LockMode, Now, Op, Stats, TxnError, TxnId, WhenLocked};
use sql::KvError;
use sql::transaction::{Pick, Span};
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::versions::Promise;
use store::{Engine, Versions};

/// The operations of a node's transaction: see [`node::Transaction`], which documents each.
pub(crate) trait Operations: Send {
    fn snapshot(&self) -> Timestamp;
    fn has_snapshot(&self) -> bool;
    fn stats(&self) -> &Stats;
    fn id(&self) -> Option<TxnId>;
    fn written_keys(&self) -> usize;
    fn has_writes(&self) -> bool;
    fn is_freeing(&mut self) -> bool;
    fn is_ending(&self) -> bool;
    fn record_bytes(&self) -> usize;
    fn held_bytes(&self) -> usize;
    fn locks_full(&self) -> bool;
    fn hurry(&mut self, hasty: bool);
    fn get(&mut self, now: &impl Now, key: &[u8], certified: bool, waker: &Waker) -> Op<Option<Bytes>>;
    fn peek(&mut self, now: &impl Now, key: &[u8], waker: &Waker) -> Op<Option<Bytes>>;
    fn observe(&mut self, now: &impl Now, key: &[u8], waker: &Waker) -> Op<Option<Bytes>>;
    fn rely(&mut self, now: &impl Now, key: &Bytes, since: Timestamp, certified: bool, waker: &Waker) -> Op<()>;
    fn is_as_it_was(&self, key: &[u8], since: Timestamp) -> bool;
    fn scan(
        &mut self,
        now: &Reading,
        span: &Span,
        reverse: bool,
        limit: usize,
        certified: bool,
        waker: &Waker,
    ) -> Op<Chunk>;
    fn peek_scan(&mut self, now: &Reading, span: &Span, reverse: bool, limit: usize, waker: &Waker) -> Op<Chunk>;
    fn observe_scan(&mut self, now: &Reading, span: &Span, reverse: bool, limit: usize, waker: &Waker) -> Op<Chunk>;
    fn guards_references(&self) -> bool;
    fn unreferred(&mut self, key: &Bytes, since: Timestamp) -> bool;
    /// `None`: rows have to be scanned.
    fn sweep(
        &mut self,
        now: &Reading,
        span: &Span,
        limit: usize,
        certified: bool,
        pick: Option<&mut Pick<'_>>,
        waker: &Waker,
    ) -> Op<Option<store::Sweep>>;
    fn lock(&mut self, now: &impl Now, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool>;
    fn hold(&mut self, now: &impl Now, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool>;
    fn present(&mut self, now: &impl Now, key: &[u8], waker: &Waker) -> Op<bool>;
    fn negotiate(&mut self, now: &impl Now, spans: &[Span], least: Timestamp, waker: &Waker) -> Op<Timestamp>;
    /// Whether keys may be led elsewhere.
    fn is_far(&self) -> bool;
    fn read_ahead(&mut self, now: &Reading, keys: &[Bytes], waker: &Waker) -> Result<(), TxnError>;
    fn scan_ahead(&mut self, now: &Reading, spans: &[SpanAhead], waker: &Waker) -> Result<bool, TxnError>;
    fn find_gap(&mut self, now: &Reading, span: &Span, end: &Bytes, waker: &Waker) -> Op<bool>;
    fn lock_ahead(&mut self, keys: &[Bytes], mode: LockMode);
    fn lock_all(&mut self, keys: &[&[u8]], mode: LockMode) -> Result<usize, TxnError>;
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), TxnError>;
    fn delete(&mut self, key: Bytes) -> Result<(), TxnError>;
    fn delete_all(&mut self, keys: &[&[u8]]) -> Result<(), TxnError>;
    fn overwrite(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), TxnError>;
    fn begin_statement(&mut self, now: &Reading) -> Result<(), TxnError>;
    fn repeat_statement(&mut self, now: &Reading) -> Result<(), TxnError>;
    fn kept_uncertainty(&self) -> Option<node::KeptUncertainty>;
    fn frees_space(&mut self);
    fn savepoint(&mut self) -> u32;
    fn rollback_to(&mut self, savepoint: u32);
    fn release_since(&mut self, savepoint: u32);
    fn note_locks(&mut self);
    fn release_noted(&mut self);
    /// Ends a transaction that has written nothing, where that takes neither time nor another node.
    fn commit_reads(&mut self) -> Option<Timestamp>;
    fn commit(&mut self, now: &Reading, waker: &Waker) -> Op<Timestamp>;
    fn is_held_back(&self, now: &Reading) -> bool;
    fn give_up_commit(&mut self, now: &Reading) -> Option<TxnError>;
    /// Ends a commit whose parts are on their way still; `false`: there is none.
    fn give_up_parts(&mut self) -> bool;
    fn stop_waiting(&mut self);
    fn rollback(&mut self);
}

/// Where a transaction runs: a node's clock, its disk, and who drives them.
pub(crate) trait Shell: Send + Sync + 'static {
    /// The node's transactions.
    type Txn: Operations + 'static;
    /// What its versions are in.
    type Engine: Engine;

    /// What the clock shows.
    fn now(&self) -> Reading;
    /// Nanoseconds since the start, wherever the clock is set: for timeouts and intervals.
    fn monotonic_ns(&self) -> u64;
    /// What the node counts.
    fn counters(&self) -> &node::Counters;
    /// What statements and writes share.
    fn memory(&self) -> &Arc<crate::Memory>;
    /// Does what a thread that waits can do for what it waits for: writes the log, above all. `false`: there was nothing.
    fn lead(&self) -> bool;
    /// Sees to what an operation has left to be done. `leads`: whoever calls leads next, so that nobody need be woken for what waits for the disk.
    fn settle(&self, leads: bool);
    /// Waits for something that becomes ready as the log is driven; drives it meanwhile.
    fn wait<R>(&self, poll: impl FnMut(&Waker) -> Poll<R>) -> R;
    /// Why nothing can be had here for good: the node is none of its cluster any more.
    fn removed(&self) -> Option<KvError> {
        None
    }
    /// Why no write is taken until a restart, if storage failed: the node was closed for it, and nobody shut it down.
    fn failed(&self) -> Option<String>;
    /// Whether the disk has no room for so many bytes more.
    fn is_full(&self, bytes: usize) -> bool;
    /// What the node stores, and knows of room for it.
    fn versions(&self) -> &Versions<Self::Engine>;
    /// Where it writes before that.
    fn log(&self) -> &dyn RecordLog;
    /// Sets room aside for a transaction of so many bytes, in the log as well: see [`store::Versions::promise`].
    fn promise(&self, bytes: usize, frees: bool) -> Option<Promise> {
        self.versions().promise(bytes, self.log().growth(bytes), frees)
    }
    /// Makes room in the log for a record of so many bytes that is about to be written here, before others wait behind it. Not in a cluster: there a
    /// large transaction is written in parts, by whoever leads its ranges, and this node's log may see none of them.
    fn make_room(&self, _bytes: usize) {}
    /// Whether the versions in memory outgrow what the engine takes, so that commits wait. Not where nothing is written any more. What a large transaction brought counts for the next `large` one only.
    fn is_crowded(&self, large: bool) -> bool;
}

/// A shell's clock, read where somebody asks.
pub(crate) struct Clock<'a, S>(pub &'a S);

impl<S: Shell> Now for Clock<'_, S> {
    #[inline]
    fn read(&self) -> Reading {
        self.0.now()
    }
}

/// The operations that both transactions have in the same words.
macro_rules! forward {
    ($transaction:ident { $($own:item)* }) => {
        impl<E: Engine> Operations for $transaction<E> {
            $($own)*
            fn snapshot(&self) -> Timestamp {
                self.snapshot()
            }
            fn stats(&self) -> &Stats {
                self.stats()
            }
            fn id(&self) -> Option<TxnId> {
                self.id()
            }
            fn written_keys(&self) -> usize {
                self.written_keys()
            }
            fn has_writes(&self) -> bool {
                self.has_writes()
            }
            fn is_freeing(&mut self) -> bool {
                self.is_freeing()
            }
            fn is_ending(&self) -> bool {
                self.is_ending()
            }
            fn record_bytes(&self) -> usize {
                self.record_bytes()
            }
            fn held_bytes(&self) -> usize {
                self.held_bytes()
            }
            fn locks_full(&self) -> bool {
                self.locks_full()
            }
            fn scan(
                &mut self,
                now: &Reading,
                span: &Span,
                reverse: bool,
                limit: usize,
                certified: bool,
                waker: &Waker,
            ) -> Op<Chunk> {
                self.scan(now, span, reverse, limit, certified, waker)
            }
            fn peek_scan(
                &mut self,
                now: &Reading,
                span: &Span,
                reverse: bool,
                limit: usize,
                waker: &Waker,
            ) -> Op<Chunk> {
                self.peek_scan(now, span, reverse, limit, waker)
            }
            fn observe_scan(
                &mut self,
                now: &Reading,
                span: &Span,
                reverse: bool,
                limit: usize,
                waker: &Waker,
            ) -> Op<Chunk> {
                self.observe_scan(now, span, reverse, limit, waker)
            }
            fn guards_references(&self) -> bool {
                self.guards_references()
            }
            fn unreferred(&mut self, key: &Bytes, since: Timestamp) -> bool {
                self.unreferred(key, since)
            }
            fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), TxnError> {
                self.put(key, value)
            }
            fn delete(&mut self, key: Bytes) -> Result<(), TxnError> {
                self.delete(key)
            }
            fn delete_all(&mut self, keys: &[&[u8]]) -> Result<(), TxnError> {
                self.delete_all(keys)
            }
            fn overwrite(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), TxnError> {
                self.overwrite(key, value)
            }
            fn begin_statement(&mut self, now: &Reading) -> Result<(), TxnError> {
                self.begin_statement(now)
            }
            fn frees_space(&mut self) {
                self.frees_space();
            }
            fn savepoint(&mut self) -> u32 {
                self.savepoint()
            }
            fn rollback_to(&mut self, savepoint: u32) {
                self.rollback_to(savepoint);
            }
            fn release_since(&mut self, savepoint: u32) {
                self.release_since(savepoint);
            }
            fn note_locks(&mut self) {
                self.note_locks();
            }
            fn release_noted(&mut self) {
                self.release_noted();
            }
            fn commit(&mut self, now: &Reading, waker: &Waker) -> Op<Timestamp> {
                self.commit(now, waker)
            }
            fn is_held_back(&self, now: &Reading) -> bool {
                self.is_held_back(now)
            }
            fn give_up_commit(&mut self, now: &Reading) -> Option<TxnError> {
                self.give_up_commit(now)
            }
            fn stop_waiting(&mut self) {
                self.stop_waiting();
            }
            fn rollback(&mut self) {
                self.rollback();
            }
        }
    };
}

use node::Transaction as Alone;
use node::cluster::Transaction as Member;

// Alone, all rows are here: these need no time.
forward!(Alone {
    fn get(&mut self, now: &impl Now, key: &[u8], certified: bool, waker: &Waker) -> Op<Option<Bytes>> {
        self.get(now, key, certified, waker)
    }
    fn peek(&mut self, now: &impl Now, key: &[u8], waker: &Waker) -> Op<Option<Bytes>> {
        self.peek(now, key, waker)
    }
    fn observe(&mut self, now: &impl Now, key: &[u8], waker: &Waker) -> Op<Option<Bytes>> {
        self.observe(now, key, waker)
    }
    fn is_as_it_was(&self, key: &[u8], since: Timestamp) -> bool {
        self.is_as_it_was(key, since)
    }
    fn sweep(
        &mut self,
        now: &Reading,
        span: &Span,
        limit: usize,
        certified: bool,
        pick: Option<&mut Pick<'_>>,
        waker: &Waker,
    ) -> Op<Option<store::Sweep>> {
        self.sweep_picked(now, span, limit, certified, pick, waker)
    }
    fn commit_reads(&mut self) -> Option<Timestamp> {
        self.commit_reads()
    }
    fn hurry(&mut self, _: bool) {}
    fn give_up_parts(&mut self) -> bool {
        false
    }
    fn has_snapshot(&self) -> bool {
        true
    }
    fn is_far(&self) -> bool {
        false
    }
    fn read_ahead(&mut self, _: &Reading, _: &[Bytes], _: &Waker) -> Result<(), TxnError> {
        Ok(())
    }
    fn scan_ahead(&mut self, _: &Reading, _: &[SpanAhead], _: &Waker) -> Result<bool, TxnError> {
        Ok(false)
    }
    fn find_gap(&mut self, _: &Reading, _: &Span, _: &Bytes, _: &Waker) -> Op<bool> {
        Poll::Ready(Ok(false))
    }
    fn lock_ahead(&mut self, _: &[Bytes], _: LockMode) {}
    fn lock_all(&mut self, keys: &[&[u8]], mode: LockMode) -> Result<usize, TxnError> {
        Ok(self.lock_all(keys, mode))
    }
    // Alone nothing is uncertain.
    fn repeat_statement(&mut self, now: &Reading) -> Result<(), TxnError> {
        self.begin_statement(now)
    }
    fn kept_uncertainty(&self) -> Option<node::KeptUncertainty> {
        None
    }
    // Alone it is the present.
    fn negotiate(&mut self, _: &impl Now, _: &[Span], least: Timestamp, _: &Waker) -> Op<Timestamp> {
        Poll::Ready(Ok(self.visible().max(least)))
    }
    fn rely(&mut self, _: &impl Now, key: &Bytes, since: Timestamp, certified: bool, waker: &Waker) -> Op<()> {
        self.rely(key, since, certified, waker)
    }
    fn lock(&mut self, now: &impl Now, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        self.lock(now, key, mode, when, waker)
    }
    fn hold(&mut self, _: &impl Now, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        self.hold(key, mode, when, waker)
    }
    fn present(&mut self, _: &impl Now, key: &[u8], waker: &Waker) -> Op<bool> {
        self.present(key, waker)
    }
});

forward!(Member {
    fn get(&mut self, now: &impl Now, key: &[u8], certified: bool, waker: &Waker) -> Op<Option<Bytes>> {
        self.get(&now.read(), key, certified, waker)
    }
    fn peek(&mut self, now: &impl Now, key: &[u8], waker: &Waker) -> Op<Option<Bytes>> {
        self.peek(&now.read(), key, waker)
    }
    fn observe(&mut self, now: &impl Now, key: &[u8], waker: &Waker) -> Op<Option<Bytes>> {
        self.observe(&now.read(), key, waker)
    }
    fn is_as_it_was(&self, _: &[u8], _: Timestamp) -> bool {
        false
    }
    fn sweep(
        &mut self,
        _: &Reading,
        _: &Span,
        _: usize,
        _: bool,
        _: Option<&mut Pick<'_>>,
        _: &Waker,
    ) -> Op<Option<store::Sweep>> {
        Poll::Ready(Ok(None))
    }
    fn commit_reads(&mut self) -> Option<Timestamp> {
        None
    }
    fn hurry(&mut self, hasty: bool) {
        self.hurry(hasty);
    }
    fn give_up_parts(&mut self) -> bool {
        self.give_up_parts()
    }
    // At a node in doubt each statement of READ COMMITTED takes its own when it reads.
    fn has_snapshot(&self) -> bool {
        self.is_placed()
    }
    fn is_far(&self) -> bool {
        self.is_far()
    }
    fn read_ahead(&mut self, now: &Reading, keys: &[Bytes], waker: &Waker) -> Result<(), TxnError> {
        self.read_ahead(now, keys, waker)
    }
    fn scan_ahead(&mut self, now: &Reading, spans: &[SpanAhead], waker: &Waker) -> Result<bool, TxnError> {
        self.scan_ahead(now, spans, waker)
    }
    fn find_gap(&mut self, now: &Reading, span: &Span, end: &Bytes, waker: &Waker) -> Op<bool> {
        self.find_gap(now, span, end, waker)
    }
    fn lock_ahead(&mut self, keys: &[Bytes], mode: LockMode) {
        self.lock_ahead(keys, mode);
    }
    fn lock_all(&mut self, keys: &[&[u8]], mode: LockMode) -> Result<usize, TxnError> {
        self.lock_all(keys, mode)
    }
    fn repeat_statement(&mut self, now: &Reading) -> Result<(), TxnError> {
        self.repeat_statement(now)
    }
    fn kept_uncertainty(&self) -> Option<node::KeptUncertainty> {
        self.kept_uncertainty()
    }
    fn negotiate(&mut self, now: &impl Now, spans: &[Span], least: Timestamp, waker: &Waker) -> Op<Timestamp> {
        self.negotiate(now, spans, least, waker)
    }
    fn rely(&mut self, now: &impl Now, key: &Bytes, since: Timestamp, certified: bool, waker: &Waker) -> Op<()> {
        self.rely(&now.read(), key, since, certified, waker)
    }
    fn lock(&mut self, now: &impl Now, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        self.lock(&now.read(), key, mode, when, waker)
    }
    fn hold(&mut self, now: &impl Now, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        self.hold(&now.read(), key, mode, when, waker)
    }
    fn present(&mut self, now: &impl Now, key: &[u8], waker: &Waker) -> Op<bool> {
        self.present(&now.read(), key, waker)
    }
});

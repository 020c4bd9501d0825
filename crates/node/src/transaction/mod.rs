//! One transaction, as its client's side sees it: a snapshot, buffered writes, remembered reads.
//!
//! # Shape
//! Each operation is a function of the node, the time and the transaction; it returns [`Poll::Pending`] where it must wait for
//! another transaction, after it left the caller's waker where the wait ends. Call it again with the same arguments then. The
//! server blocks a thread on that, the simulator an event.
//!
//! # The snapshot moves up
//! A transaction begins at a snapshot of the present. It moves up (a *refresh*) when a lock was taken on a row whose newest
//! version is above it, or when an uncertain version was met; it may, if nothing read so far changed in between, and otherwise
//! the transaction must restart. Reads of rows that it has locked never change, so transactions that lock what they update do
//! not restart on hot rows.
//!
//! # Invariants
//! 1. Everything read so far is what a reader at the present snapshot would see (REPEATABLE READ, SERIALIZABLE: since the
//!    beginning; READ COMMITTED: since the statement began).
//! 2. What is certified at commit: each write since the snapshot at which it was buffered; each read of a SERIALIZABLE transaction,
//!    and each constraint read at every level, since the snapshot at which it was last known unchanged.
//! 3. The hybrid clock was ratcheted to the snapshot before the first read at it, so the commit timestamp lies above it.
//! 4. Nothing is read from a snapshot beyond the lease and the log (see `lease`): so a restart, whatever its clock says, writes above it.
//! 5. What is only looked at ([`Transaction::peek`]) is not read in the sense of these: nothing follows from it but which keys to lock.
//! 6. A transaction holds its locks until its commit is visible, or until its caller gives up waiting for that: then whoever locks a
//!    row next waits for what is in flight.

mod buffer;
mod commit;
pub(crate) mod draft;
mod lock;
mod read;
pub(crate) mod reads;
mod snapshot;
pub(crate) mod writes;

pub use buffer::{MAX_KEY_BYTES, MAX_TXN_BYTES, MAX_VALUE_BYTES};
pub use lock::WhenLocked;
pub use read::Chunk;
pub use reads::{MAX_READ_KEYS, MAX_READ_SPANS};

use crate::options::{BeginOptions, Consistency, Wanted};
use crate::reply::Reply;
use crate::{Node, TxnError};
use bytes::Bytes;
use clock::{Reading, Timestamp};
use draft::Draft;
use protocol::door::CommitWait;
use protocol::txn::TxnId;
pub(crate) use reads::after;
pub(crate) use snapshot::Limit;
use std::sync::Arc;
use store::{Engine, SnapshotGuard};

/// What an operation gives, now or after a wake-up.
pub type Op<T> = std::task::Poll<Result<T, TxnError>>;

/// Who tells the time, where it is asked for: most reads need none.
pub trait Now {
    /// The time now.
    fn read(&self) -> Reading;
}

impl Now for Reading {
    fn read(&self) -> Reading {
        *self
    }
}

/// What time cost a transaction.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// The mode in force.
    pub consistency: Consistency,
    /// The clock's error at begin, nanoseconds.
    pub bound_ns: u64,
    /// Uncertain versions met.
    pub uncertainty_restarts: u64,
    /// Times the snapshot moved up.
    pub refreshes: u64,
    /// What it took until the commit's timestamp was past (rule 1).
    pub commit_wait: CommitWait,
}

/// See the module.
pub struct Transaction<E: Engine> {
    pub(crate) node: Arc<Node<E>>,
    draft: Draft,
    /// As asked for, and as settled for now.
    wanted: Wanted,
    mode: Consistency,
    token: Timestamp,
    floor: Timestamp,
    pub(crate) snapshot: Timestamp,
    limit: Limit,
    guard: Option<SnapshotGuard>,
    id: Option<TxnId>,
    locked: bool,
    session: Option<u64>,
    /// How many locks were held at each savepoint.
    lock_marks: Vec<usize>,
    /// Which were held when they were noted.
    noted_mark: usize,
    /// How many locks were held before the one that is being tried, where it is given back if it cannot be had.
    skip_mark: Option<usize>,
    /// The lock that is being taken was waited for.
    queued: bool,
    /// Locks that were granted, those that it held already counted again.
    granted: usize,
    refreshing: Option<Timestamp>,
    pub(crate) lease: Option<Arc<Reply>>,
    commit: Option<Arc<Reply>>,
    ended: bool,
    stats: Stats,
}

impl<E: Engine> Transaction<E> {
    /// Begins.
    ///
    /// # Errors
    /// The clock cannot give the consistency asked for; the past asked for is collected; the token or the snapshot lies in the future.
    #[inline]
    pub fn begin(node: &Arc<Node<E>>, now: &Reading, options: &BeginOptions) -> Result<Self, TxnError> {
        let wanted = options.wanted();
        let mode = if options.as_of.is_some() { Consistency::None } else { node.settle(now, wanted)? };
        let token = if mode == Consistency::None { Timestamp::MIN } else { options.token };
        let (snapshot, limit) = match options.as_of {
            Some(at) => (at, Limit::NONE),
            None => node.present(now, mode, wanted, token),
        };
        // What is visible is no future, wherever the clock was set back to.
        if options.as_of.is_some_and(|at| at > node.visible() && now.interval.is_future(at)) {
            let reason = format!("it lies in the future: true time is at most {}", now.interval.latest());
            return Err(TxnError::SnapshotUnavailable { asked: snapshot, reason, key: None });
        }
        node.admit(now, snapshot)?;
        let guard = node.versions().open_snapshot(snapshot)?;
        node.shared.counters.txn_begins.one();
        let floor = if mode == Consistency::Strict { now.interval.latest().max(token) } else { token };
        Ok(Transaction {
            node: node.clone(),
            draft: Draft::new(now, options),
            wanted,
            mode,
            token,
            floor,
            snapshot,
            limit,
            guard: Some(guard),
            id: None,
            locked: false,
            session: options.session,
            lock_marks: Vec::new(),
            noted_mark: 0,
            skip_mark: None,
            queued: false,
            granted: 0,
            refreshing: None,
            lease: None,
            commit: None,
            ended: false,
            stats: Stats { consistency: mode, bound_ns: now.interval.error_ns(), ..Stats::default() },
        })
    }

    /// The newest snapshot that is shown here.
    pub fn visible(&self) -> Timestamp {
        self.node.visible()
    }
    /// The snapshot read from.
    pub fn snapshot(&self) -> Timestamp {
        self.snapshot
    }
    /// What time cost so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
    /// Its number, once it has locked or proposed something.
    pub fn id(&self) -> Option<TxnId> {
        self.id
    }
    /// How many keys it writes, so far.
    pub fn written_keys(&self) -> usize {
        self.draft.buffer.len()
    }
    /// Whether anything was written.
    pub fn has_writes(&self) -> bool {
        !self.draft.buffer.is_empty()
    }

    /// Buffers a write.
    ///
    /// # Errors
    /// The transaction is read-only, or a limit is passed.
    pub fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), TxnError> {
        self.draft.set(key, Some(value), self.snapshot)
    }
    /// Buffers a delete.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete(&mut self, key: Bytes) -> Result<(), TxnError> {
        self.draft.set(key, None, self.snapshot)
    }
    /// As [`Transaction::delete`] of each, for many keys of one index.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn delete_all(&mut self, keys: &[&[u8]]) -> Result<(), TxnError> {
        self.draft.delete_all(keys, self.snapshot)
    }
    /// Buffers a write that meets no other: it is not certified, so of several the last one to commit stays.
    ///
    /// # Errors
    /// As [`Transaction::put`].
    pub fn overwrite(&mut self, key: Bytes, value: Option<Bytes>) -> Result<(), TxnError> {
        self.draft.set(key, value, Timestamp::MAX)
    }
    /// Marks the writes so far.
    pub fn savepoint(&mut self) -> u32 {
        self.lock_marks.push(self.id.filter(|_| self.locked).map_or(0, |id| self.node.locks.mark(id)));
        self.draft.buffer.savepoint()
    }
    /// Undoes the writes since the mark, and forgets what they relied on where the reads of the time are not certified; the mark stays, and
    /// so do locks: see [`Transaction::release_since`].
    pub fn rollback_to(&mut self, savepoint: u32) {
        self.draft.rollback_to(savepoint);
        self.lock_marks.truncate(savepoint as usize + 1);
    }

    /// What this transaction does frees space in the end, whatever it writes to say so: it may use the room that a full disk holds back.
    pub fn frees_space(&mut self) {
        self.draft.frees = true;
    }
    /// Whether it said so.
    pub fn is_ending(&self) -> bool {
        self.draft.is_ending()
    }
    /// Whether it may use that room: it said so, or deletes more than it writes.
    pub fn is_freeing(&mut self) -> bool {
        self.draft.is_freeing()
    }
    /// Bytes that its record takes, about.
    pub fn record_bytes(&self) -> usize {
        self.draft.buffer.bytes()
    }

    /// Bytes of memory that its writes and reads take until it has ended, about.
    pub fn held_bytes(&self) -> usize {
        self.draft.held_bytes()
    }

    fn id_or_new(&mut self) -> TxnId {
        *self.id.get_or_insert_with(|| self.node.next_txn())
    }

    /// Gives up: locks pass on. A commit that was proposed goes its way without its owner.
    pub fn rollback(&mut self) {
        if !self.ended {
            self.node.shared.counters.txn_aborts.one();
            self.end();
        }
    }

    fn end(&mut self) {
        self.ended = true;
        self.guard = None;
        if self.locked
            && let Some(id) = self.id
        {
            self.node.locks.release(id);
            self.locked = false;
        }
    }
}

impl<E: Engine> Drop for Transaction<E> {
    fn drop(&mut self) {
        self.rollback();
    }
}

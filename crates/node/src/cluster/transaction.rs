//! One transaction over a cluster, as its client's side sees it: a snapshot, buffered writes, remembered reads.
//!
//! It has the operations of [`crate::Transaction`], and the same invariants. What differs is how it knows: everything is asked at the doors of ranges,
//! and what was read stays so because their leaders keep it (`serve`), not because this node's clock was ratcheted.
//!
//! The uncertainty limit is this node's `latest` when the snapshot was taken, at every range: nothing that was acknowledged before lies above it.
//! An uncertain version moves the snapshot past itself and past its leader's own time. What that node stamps afterwards came after this transaction began,
//! so one node causes at most one restart (000 section 5.4), whatever ranges it leads; `serve` has what is uncertain there all the same (design 4a.6).

mod ahead;
mod begin;
mod commit;
mod gaps;
mod lock;
mod negotiate;
mod place;
mod read;
mod refresh;
mod spans_ahead;

pub(crate) use commit::untrusted;
pub use spans_ahead::{SPANS_MAX, SpanAhead};

use super::lent::{Borrowing, Told};
use super::locks::LockMark;
use super::member::Member;
use super::routes::Routes;
use super::seam::NodeId;
use super::serve::AtOnce;
use crate::options::{BeginOptions, Consistency, IfRefused, Isolation, KeptUncertainty, Wanted};
use crate::reply::{CommitError, Reply};
use crate::transaction::Op;
use crate::transaction::Stats;
use crate::transaction::draft::Draft;
use crate::{Chunk, TxnError};
use ahead::Ahead;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use negotiate::Negotiating;
use protocol::door::{Answer, Request};
use protocol::txn::{RangeId, Span, TxnId};
use refresh::Refreshing;
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::Engine;

/// See the module.
pub struct Transaction<E: Engine> {
    member: Arc<Member<E>>,
    draft: Draft,
    /// As asked for, and as settled for now.
    wanted: Wanted,
    mode: Consistency,
    token: Timestamp,
    floor: Timestamp,
    snapshot: Timestamp,
    /// It has its snapshot; else the first that needs one asks for it ([`Transaction::place`]).
    is_placed: bool,
    /// The clock could not give its consistency: whatever needs a snapshot is refused, unless it can by then.
    is_refused: bool,
    if_refused: IfRefused,
    /// Its snapshot is known to those who forget what nobody reads.
    is_open: bool,
    /// What time a leader said it was, last.
    told: Option<Told>,
    borrowing: Option<Borrowing>,
    /// Up to here a version may have been acknowledged before the snapshot was taken; `MIN`: no version is uncertain.
    limit: Timestamp,
    /// Nodes past whose time the snapshot has moved.
    caught_up: Vec<NodeId>,
    /// What is kept of that where the statement begins anew.
    kept: Option<KeptUncertainty>,
    /// Who answered last.
    answered_by: NodeId,
    id: Option<TxnId>,
    locked: bool,
    /// Locks that were asked for, or more: it holds no more than these.
    locks_asked: usize,
    session: Option<u64>,
    /// Which locks were held at each savepoint, and before the one that is being tried where it is given back if it cannot be had.
    lock_marks: Vec<LockMark>,
    noted_mark: LockMark,
    skip_mark: Option<LockMark>,
    /// The call that an operation waits for.
    call: Option<u64>,
    /// Whom a scan that waits has asked, and for what.
    asked: Option<(RangeId, Span)>,
    /// A refresh asks how far up it may go: at least to this.
    moves_above: Option<Timestamp>,
    refreshing: Option<Refreshing>,
    /// What was asked for before it is waited for.
    ahead: Option<Box<Ahead>>,
    negotiating: Option<Negotiating>,
    reply: Option<Arc<Reply>>,
    hasty: bool,
    ended: bool,
    stats: Stats,
}

impl<E: Engine> Transaction<E> {
    /// The snapshot read from.
    pub fn snapshot(&self) -> Timestamp {
        self.snapshot
    }
    /// Whether it has its snapshot; else the first read or lock asks for it.
    pub fn is_placed(&self) -> bool {
        self.is_placed
    }
    /// Whether others may have to be asked for what it reads: see [`Member::is_far`]. One whose snapshot is not placed yet asks for nothing ahead.
    pub fn is_far(&self) -> bool {
        self.is_placed && self.member.is_far()
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
        self.lock_marks.push(self.lock_mark());
        self.draft.buffer.savepoint()
    }
    /// Undoes the writes since the mark, and forgets what they relied on where the reads of the time are not certified; the mark stays, and
    /// so do locks: see [`Transaction::release_since`].
    pub fn rollback_to(&mut self, savepoint: u32) {
        self.draft.rollback_to(savepoint);
        self.lock_marks.truncate(savepoint as usize + 1);
        self.forget_locks_ahead();
    }
    /// What this transaction does frees space in the end, whatever it writes to say so.
    pub fn frees_space(&mut self) {
        self.draft.frees = true;
    }
    /// Whether it said so.
    pub fn is_ending(&self) -> bool {
        self.draft.is_ending()
    }
    /// Whether it may use the room that a full disk holds back: it said so, or deletes more than it writes.
    pub fn is_freeing(&mut self) -> bool {
        self.draft.is_freeing()
    }
    /// Bytes that its records take, about.
    pub fn record_bytes(&self) -> usize {
        self.draft.buffer.bytes()
    }
    /// Bytes of memory that its writes and reads take until it has ended, about.
    pub fn held_bytes(&self) -> usize {
        self.draft.held_bytes()
    }

    fn id_or_new(&mut self) -> TxnId {
        *self.id.get_or_insert_with(|| self.member.look().next_txn())
    }

    /// Asks a range, or goes on waiting for its answer. Where the range is led here and nothing is in the way the answer is there at once, and nothing
    /// is left to be done.
    fn ask(
        &mut self,
        now: &Reading,
        range: impl FnOnce(&Routes) -> RangeId,
        request: impl FnOnce() -> Request,
        waker: &Waker,
    ) -> Op<Answer> {
        let mut core = self.member.look();
        let call = match self.call {
            Some(call) => call,
            None => {
                let (range, mut request) = (range(&core.routes), request());
                let caught_up = self.caught_up.contains(&core.me());
                self.answered_by = core.me();
                let at_once = core.at_once(now, range, &mut request, caught_up);
                if !core.stirred.is_empty() {
                    // A deadlock that was found gave somebody else his lock.
                    self.member.touch();
                    if let Err(why) = core.run(now) {
                        return Poll::Ready(Err(why.into()));
                    }
                }
                match at_once {
                    Err(why) => return Poll::Ready(Err(why.into())),
                    Ok(Some(AtOnce::Answer(answer))) => return Poll::Ready(refused(answer, self.snapshot)),
                    Ok(Some(AtOnce::Read(read))) => {
                        drop(core);
                        let read = read.read(self.member.versions()).map_err(TxnError::from);
                        return Poll::Ready(read.and_then(|answer| refused(answer, self.snapshot)));
                    }
                    Ok(None) => {
                        let call = core.call_for(range, request, waker);
                        core.prepare_call(call, self.hasty, &self.caught_up);
                        call
                    }
                }
            }
        };
        self.member.touch();
        self.call = Some(call);
        if let Err(why) = core.run(now) {
            return Poll::Ready(Err(why.into()));
        }
        let Some(result) = core.poll_call_at(call, waker) else { return Poll::Pending };
        self.call = None;
        Poll::Ready(result.and_then(|(by, answer)| {
            self.answered_by = by;
            refused(answer, self.snapshot)
        }))
    }

    /// Whether what is asked from now on ends at once where nobody is known to lead, and does not wait for one who will.
    pub fn hurry(&mut self, hasty: bool) {
        self.hasty = hasty;
    }

    fn is_refreshing(&self) -> bool {
        self.refreshing.is_some() || self.moves_above.is_some()
    }

    /// Moves the snapshot, never down.
    fn move_to(&mut self, snapshot: Timestamp) {
        if self.ended {
            return;
        }
        if !std::mem::replace(&mut self.is_open, true) {
            self.snapshot = self.snapshot.max(snapshot);
            self.member.look().collection.open(self.snapshot);
        } else if snapshot > self.snapshot {
            self.member.look().collection.moved(self.snapshot, snapshot);
            self.snapshot = snapshot;
        }
    }

    /// Stops waiting: its caller's patience ended. Locks held stay.
    pub fn stop_waiting(&mut self) {
        self.moves_above = None;
        self.stop_locking_ahead();
        let calls = self.call.take().into_iter();
        let negotiating = self.negotiating.take().into_iter().flat_map(Negotiating::into_calls);
        let calls: Vec<u64> = calls
            .chain(self.refreshing.take().into_iter().flat_map(Refreshing::into_calls))
            .chain(negotiating)
            .chain(self.borrowing.take().map(|borrowing| borrowing.call))
            .collect();
        if calls.is_empty() {
            return;
        }
        let mut core = self.member.lock();
        let queues = calls.iter().any(|call| core.queues_elsewhere(*call));
        calls.into_iter().for_each(|call| core.cancel(call));
        if let Some(id) = self.id {
            core.cancel_lock_wait(id);
            if queues {
                // What it holds it keeps; what it asked for may be on its way.
                let mark = core.lock_mark(id);
                core.give_back(id, &mark);
            }
        }
        drop(core);
        if queues {
            self.forget_locks_ahead();
        }
    }

    /// Gives up: locks pass on. A commit that was sent goes its way without its owner.
    pub fn rollback(&mut self) {
        if !self.ended {
            self.member.counters().txn_aborts.one();
            self.end();
        }
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.stop_waiting();
        self.skip_mark = None;
        self.end_ahead();
        let mut core = self.member.look();
        if self.is_open {
            core.collection.close(self.snapshot);
        }
        let Some(id) = self.id else { return };
        // Whoever gives up while its parts are on their way has not committed.
        let gave_up = core.give_up_sending(id, CommitError::ShuttingDown);
        let passed_on = std::mem::take(&mut self.locked) && core.unlock_soon(id);
        if gave_up || passed_on {
            self.member.touch();
        }
    }
}

impl<E: Engine> Drop for Transaction<E> {
    fn drop(&mut self) {
        self.rollback();
    }
}

/// An answer that ends an operation at this snapshot with an error.
fn refused(answer: Answer, snapshot: Timestamp) -> Result<Answer, TxnError> {
    match answer {
        Answer::Refused(refusal) => Err(refusal.into()),
        Answer::Collected { oldest, key } => Err(TxnError::SnapshotUnavailable {
            asked: snapshot,
            reason: format!("versions below {oldest} are collected"),
            key,
        }),
        answer => Ok(answer),
    }
}

/// A range answered what was not asked.
fn unfitting(answer: &Answer) -> TxnError {
    TxnError::Storage(format!("a range gave an answer that does not fit the question: {answer:?}"))
}

impl<E: Engine> crate::cluster::core::Core<E> {
    /// A number for a transaction: unique in the cluster, over all lives of the node (design 4a.10).
    pub fn next_txn(&mut self) -> TxnId {
        self.serial += 1;
        TxnId { serial: self.incarnation << 40 | self.serial, node: self.options.node.0 }
    }
}

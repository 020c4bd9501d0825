//! Advisory locks: they queue at the leader of the key's range.

use super::{Answer, Isolation, Op, Request, Transaction, TxnError, unfitting};
use crate::WhenLocked;
use crate::cluster::locks::LockMark;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::door::Returned;
use protocol::txn::{LockMode, LockWait, MAX_LOCKS_PER_TXN, Waiter};
use std::task::{Poll, Waker, ready};
use store::Engine;

/// A lock that was granted.
struct Taken {
    /// It was waited for, perhaps.
    waited: bool,
    /// A version of the key above the snapshot, if it has one.
    newer: Option<Timestamp>,
}

impl<E: Engine> Transaction<E> {
    /// Takes the advisory lock on a key, until the transaction ends or gives it back ([`Transaction::release_since`]); `false`: skipped. Afterwards a read of the key gives its newest value:
    /// the snapshot moved up if it had to and could, else the error is [`TxnError::Restart`]; at READ COMMITTED also where the strongest lock was
    /// waited for, so that what refers to the key is seen as well; with [`WhenLocked::Skip`] the key is skipped then.
    pub fn lock(&mut self, now: &Reading, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        if when == WhenLocked::Skip && self.skip_mark.is_none() {
            self.skip_mark = Some(self.lock_mark());
        }
        let done = self.lock_newest(now, key, mode, when, waker);
        let mark = if done.is_ready() { self.skip_mark.take() } else { None };
        match (done, mark, self.id) {
            (Poll::Ready(Err(TxnError::Restart { .. })), Some(mark), Some(id)) => {
                self.member.lock().give_back(id, &mark);
                self.forget_locks_ahead();
                Poll::Ready(Ok(false))
            }
            (done, ..) => done,
        }
    }

    pub(super) fn lock_mark(&self) -> LockMark {
        let id = self.id.filter(|_| self.locked);
        id.map(|id| self.member.look().lock_mark(id)).unwrap_or_default()
    }

    fn lock_newest(&mut self, now: &Reading, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        let why = "a locked row is newer than the snapshot";
        ready!(self.place_for(now, key, waker)?);
        let newer = match self.is_refreshing() {
            true => Some(self.snapshot),
            false => match self.take_lock(now, key, mode, when, Some(self.snapshot), waker) {
                // What the one before it did may be beside the row: a statement that goes by what is, not by what was, looks at that.
                Poll::Ready(Ok(Some(Taken { waited: true, newer: None })))
                    if mode == LockMode::Update && self.draft.isolation == Isolation::ReadCommitted =>
                {
                    Some(self.snapshot)
                }
                Poll::Ready(Ok(Some(taken))) => taken.newer,
                Poll::Ready(Ok(None)) => return Poll::Ready(Ok(false)),
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => return Poll::Pending,
            },
        };
        let Some(at) = newer else { return Poll::Ready(Ok(true)) };
        self.refresh(now, at, why, waker).map(|done| done.map(|()| true))
    }

    /// Takes the locks of many keys of one index, in ascending order: gives how many of them, from the first on, are locked and have no version above the snapshot, as after [`Transaction::lock`] that
    /// neither waits nor moves it. Those whose ranges are led here are asked for together; of others, those count that were asked for ahead. The next one is to be asked for by itself; none behind it is locked here.
    ///
    /// # Errors
    /// The store failed.
    pub fn lock_all(&mut self, keys: &[&[u8]], mode: LockMode) -> Result<usize, TxnError> {
        let waits = self.call.is_some() || self.is_refreshing() || !self.is_placed;
        if self.draft.read_only || self.ended || waits {
            return Ok(0);
        }
        let known = self.locked_ahead(keys, mode);
        if known > 0 {
            return Ok(known);
        }
        let (txn, member) = (self.id_or_new(), self.member.clone());
        let mut core = member.look();
        if !std::mem::replace(&mut self.locked, true)
            && let Some(session) = self.session
        {
            core.locks.belongs(txn, session);
        }
        let room = MAX_LOCKS_PER_TXN.saturating_sub(core.locks_held(txn)).min(keys.len());
        let sees_references = self.draft.isolation == Isolation::ReadCommitted;
        let mut done = 0;
        while done < room {
            let more = core.lock_here(txn, &keys[done..room], mode, self.snapshot, sees_references)?;
            if more == 0 {
                break;
            }
            done += more;
            // Others may have it in between.
            drop(core);
            core = member.look();
        }
        self.locks_asked += done;
        if !core.stirred.is_empty() {
            member.touch();
        }
        Ok(done)
    }

    /// As [`Transaction::lock`], and leaves the snapshot where it is: for [`Transaction::present`].
    pub fn hold(&mut self, now: &Reading, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        self.take_lock(now, key, mode, when, None, waker).map(|done| done.map(|held| held.is_some()))
    }

    /// Whether the transaction holds so many locks that it should take no more; certification still protects its rows.
    pub fn locks_full(&self) -> bool {
        // Seldom has anybody asked for so many: else the core is left alone.
        let may_be = self.locks_asked >= MAX_LOCKS_PER_TXN;
        self.id.filter(|_| may_be).is_some_and(|id| self.member.look().locks_held(id) >= MAX_LOCKS_PER_TXN)
    }

    /// Gives back the locks that were taken since a savepoint. What was read under them stays read: certification knows it.
    pub fn release_since(&mut self, savepoint: u32) {
        if let (Some(id), Some(mark)) = (self.id, self.lock_marks.get(savepoint as usize)) {
            self.member.lock().give_back(id, mark);
            self.forget_locks_ahead();
        }
    }

    /// Notes which locks it holds: see [`Transaction::release_noted`].
    pub fn note_locks(&mut self) {
        self.noted_mark = self.lock_mark();
    }

    /// As [`Transaction::release_since`], of what was taken since [`Transaction::note_locks`] was called last.
    pub fn release_noted(&mut self) {
        if let Some(id) = self.id {
            self.member.lock().give_back(id, &self.noted_mark);
            self.forget_locks_ahead();
        }
    }

    /// `None`: skipped.
    fn take_lock(
        &mut self,
        now: &Reading,
        key: &[u8],
        mode: LockMode,
        when: WhenLocked,
        newer_than: Option<Timestamp>,
        waker: &Waker,
    ) -> Op<Option<Taken>> {
        if self.draft.read_only {
            return Poll::Ready(Err(TxnError::ReadOnly));
        }
        let txn = self.id_or_new();
        self.locks_asked += 1;
        if !std::mem::replace(&mut self.locked, true)
            && let Some(session) = self.session
        {
            self.member.look().locks.belongs(txn, session);
        }
        // Together with others none is waited for. The first that somebody has is asked for by itself, as it is to be.
        match self.take_lock_ahead(now, key, mode, newer_than, waker) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
            Poll::Ready(Ok(Some(newer))) => return Poll::Ready(Ok(Some(Taken { waited: false, newer }))),
            Poll::Ready(Ok(None)) => {}
        }
        let wait = if when == WhenLocked::Wait { LockWait::Wait } else { LockWait::NoWait };
        let returned = Returned::default();
        let request = || Request::Lock { txn, key: Bytes::copy_from_slice(key), mode, wait, newer_than, returned };
        match self.ask(now, |routes| routes.of_key(key), request, waker) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
            Poll::Ready(Ok(Answer::Locked { waited, newer, .. })) => {
                if waited {
                    self.member.counters().lock_waits.one();
                }
                self.remember_lock(key, mode, newer_than, newer);
                Poll::Ready(Ok(Some(Taken { waited, newer })))
            }
            Poll::Ready(Ok(Answer::Busy)) if when == WhenLocked::Skip => Poll::Ready(Ok(None)),
            Poll::Ready(Ok(Answer::Busy)) => Poll::Ready(Err(TxnError::LockNotAvailable)),
            Poll::Ready(Ok(Answer::Deadlock(circle))) => {
                let core = self.member.lock();
                let waiter = |(txn, key)| Waiter { txn, session: core.locks.session_of(txn), key, mode };
                Poll::Ready(Err(TxnError::Deadlock { cycle: circle.into_iter().map(waiter).collect() }))
            }
            Poll::Ready(Ok(other)) => Poll::Ready(Err(unfitting(&other))),
        }
    }
}

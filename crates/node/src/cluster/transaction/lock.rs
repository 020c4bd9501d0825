//! Advisory locks: they queue at the leader of the key's range.

use super::{Answer, Op, Request, Transaction, TxnError, unfitting};
use crate::WhenLocked;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::txn::{LockMode, LockWait, Waiter};
use std::task::{Poll, Waker};
use store::Engine;

impl<E: Engine> Transaction<E> {
    /// Takes the advisory lock on a key, until the transaction ends; `false`: skipped. Afterwards a read of the key gives its newest value:
    /// the snapshot moved up if it had to and could, else the error is [`TxnError::Restart`]; with [`WhenLocked::Skip`] the key is skipped then.
    pub fn lock(&mut self, now: &Reading, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        let why = "a locked row is newer than the snapshot";
        let newer = match self.refreshing {
            Some(_) => Some(self.snapshot),
            None => match self.take_lock(now, key, mode, when, Some(self.snapshot), waker) {
                Poll::Ready(Ok(Some(newer))) => newer,
                Poll::Ready(Ok(None)) => return Poll::Ready(Ok(false)),
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => return Poll::Pending,
            },
        };
        let Some(at) = newer else { return Poll::Ready(Ok(true)) };
        match self.refresh(now, at, why, waker) {
            Poll::Ready(Err(TxnError::Restart { .. })) if when == WhenLocked::Skip => Poll::Ready(Ok(false)),
            done => done.map(|done| done.map(|()| true)),
        }
    }

    /// As [`Transaction::lock`], and leaves the snapshot where it is: for [`Transaction::present`].
    pub fn hold(&mut self, now: &Reading, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        self.take_lock(now, key, mode, when, None, waker).map(|done| done.map(|held| held.is_some()))
    }

    /// `None`: skipped. Else a version above the snapshot, if the key has one.
    fn take_lock(
        &mut self,
        now: &Reading,
        key: &[u8],
        mode: LockMode,
        when: WhenLocked,
        newer_than: Option<Timestamp>,
        waker: &Waker,
    ) -> Op<Option<Option<Timestamp>>> {
        if self.read_only {
            return Poll::Ready(Err(TxnError::ReadOnly));
        }
        let txn = self.id_or_new();
        self.locked = true;
        let wait = if when == WhenLocked::Wait { LockWait::Wait } else { LockWait::NoWait };
        let range = self.member.core.lock().routes.of_key(key);
        let request = || Request::Lock { txn, key: Bytes::copy_from_slice(key), mode, wait, newer_than };
        match self.ask(now, range, request, waker) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
            Poll::Ready(Ok(Answer::Locked { waited, newer })) => {
                if waited {
                    self.member.counters().lock_waits.one();
                }
                Poll::Ready(Ok(Some(newer)))
            }
            Poll::Ready(Ok(Answer::Busy)) if when == WhenLocked::Skip => Poll::Ready(Ok(None)),
            Poll::Ready(Ok(Answer::Busy)) => Poll::Ready(Err(TxnError::LockNotAvailable)),
            Poll::Ready(Ok(Answer::Deadlock(circle))) => {
                let waiter = |(txn, key)| Waiter { txn, session: None, key, mode };
                Poll::Ready(Err(TxnError::Deadlock { cycle: circle.into_iter().map(waiter).collect() }))
            }
            Poll::Ready(Ok(other)) => Poll::Ready(Err(unfitting(&other))),
        }
    }
}

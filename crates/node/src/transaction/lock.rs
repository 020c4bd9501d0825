use super::buffer::index_of;
use super::writes::INDEX_BYTES;
use super::{Op, Transaction};
use crate::options::Isolation;
use crate::{Now, TxnError};
use clock::Timestamp;
use protocol::txn::{LockMode, LockReply, LockWait};
use std::task::{Poll, Waker};
use store::Engine;

/// What a lock request does when another transaction holds the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WhenLocked {
    /// Queue.
    #[default]
    Wait,
    /// Fail with [`TxnError::LockNotAvailable`].
    Fail,
    /// Answer `false`.
    Skip,
}

impl<E: Engine> Transaction<E> {
    /// Takes the advisory lock on a key, until the transaction ends or gives it back ([`Transaction::release_since`]); `false`: skipped.
    /// Afterwards a read of the key gives its newest value: the snapshot moved up if it had to and could, else the error is
    /// [`TxnError::Restart`]; at READ COMMITTED, where the strongest lock is taken, it moves up to the newest reference to the key, too, and where that was waited for, so that what refers to the key is seen as well; with [`WhenLocked::Skip`] the key is skipped then: whoever changed it held it a moment ago.
    pub fn lock(&mut self, now: &impl Now, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        let mark = match (when, self.id) {
            (WhenLocked::Skip, Some(id)) => *self.skip_mark.get_or_insert_with(|| self.node.locks.mark(id)),
            // Its first lock: it may hold it when it asks again, so the mark is set now.
            (WhenLocked::Skip, None) => *self.skip_mark.get_or_insert(0),
            _ => 0,
        };
        let done = self.lock_newest(now, key, mode, when, waker);
        if done.is_ready() {
            self.skip_mark = None;
            self.queued = false;
        }
        match done {
            Poll::Ready(Err(TxnError::Restart { .. })) if when == WhenLocked::Skip => {
                if let Some(id) = self.id {
                    self.node.locks.release_since(id, mark);
                }
                Poll::Ready(Ok(false))
            }
            done => done,
        }
    }

    fn lock_newest(&mut self, now: &impl Now, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        match self.hold(key, mode, when, waker) {
            Poll::Ready(Ok(true)) => {}
            other => return other,
        }
        if self.wait_for_key(key, Timestamp::MAX, waker) {
            return Poll::Pending;
        }
        // Of a table that nobody writes meanwhile no row need be looked for: who locks many of it pays for that.
        let newer = match self.node.versions().may_be_newer_beside(key, self.snapshot) {
            true => self.node.versions().newest_above(key, self.snapshot),
            false => Ok(None),
        };
        let newer = newer.map(|newer| newer.max(self.newest_reference(key, mode, when)));
        match newer {
            Err(e) => Poll::Ready(Err(e.into())),
            // What the one before it did may be beside the row, in other tables: a statement that goes by what is, not by what was, looks at that.
            Ok(None) if self.queued && mode == LockMode::Update && self.draft.isolation == Isolation::ReadCommitted => {
                self.refresh(&now.read(), self.snapshot, "a lock was waited for", waker).map(|done| done.map(|()| true))
            }
            Ok(None) => Poll::Ready(Ok(true)),
            Ok(Some(at)) => self
                .refresh(&now.read(), at, "a locked row is newer than the snapshot", waker)
                .map(|done| done.map(|()| true)),
        }
    }

    /// Takes the locks of many keys of one index, in ascending order, at once: gives how many of them, from the first on, are locked and have no version
    /// above the snapshot, as after [`Transaction::lock`] that neither waits nor moves it. The next one is to be asked for by itself. None behind it is locked, but for
    /// those of which somebody wrote one before them in this very moment.
    pub fn lock_all(&mut self, keys: &[&[u8]], mode: LockMode) -> usize {
        self.lock_unchanged(keys, mode, || ())
    }

    /// As [`Transaction::lock_all`]; `meanwhile` happens when the keys have been looked at, and none is locked yet.
    #[cfg(any(test, feature = "sabotage"))]
    pub fn lock_all_while(&mut self, keys: &[&[u8]], mode: LockMode, meanwhile: impl FnOnce()) -> usize {
        self.lock_unchanged(keys, mode, meanwhile)
    }

    fn lock_unchanged(&mut self, keys: &[&[u8]], mode: LockMode, meanwhile: impl FnOnce()) -> usize {
        let Some(first) = keys.first().filter(|first| first.len() >= INDEX_BYTES && !self.draft.read_only) else {
            return 0;
        };
        let id = self.id_or_new();
        let room = self.locks_max().saturating_sub(self.node.locks.held(id));
        let alike = |key: &&&[u8]| index_of(key) == index_of(first);
        let count = keys.iter().take(room).take_while(alike).count();
        // What cannot be had so anyway is not locked: it would stay so until the transaction ends.
        let wanted = self.unchanged(&keys[..count], mode);
        meanwhile();
        if wanted == 0 {
            return 0;
        }
        let session = self.session_of_first_lock();
        let granted = self.node.locks.request_all(id, session, &keys[..wanted], mode);
        self.granted += granted;
        // Whoever wrote one before it was locked is in flight, or applied.
        self.unchanged(&keys[..granted], mode)
    }

    /// When a key was referred to last, if that is above the snapshot, for who wants its strongest lock: he may be about to delete it, and is to see who refers to it.
    /// At READ COMMITTED: elsewhere the snapshot is to stay where it is, and the commit is refused.
    fn newest_reference(&self, key: &[u8], mode: LockMode, when: WhenLocked) -> Option<Timestamp> {
        let shared = &self.node.shared;
        let wants = mode == LockMode::Update && when != WhenLocked::Skip;
        let asks = wants && self.draft.isolation == Isolation::ReadCommitted && !shared.sabotage.forget_who_refers();
        if asks { shared.references.newest_above(key, self.snapshot) } else { None }
    }

    /// How many keys of one index, from the first on, nobody is about to write, nor has written above the snapshot, nor referred to, where `mode` asks for that.
    fn unchanged(&self, keys: &[&[u8]], mode: LockMode) -> usize {
        let shared = &self.node.shared;
        let clear = if shared.sabotage.ignore_inflight() { keys.len() } else { shared.inflight.clear_of(keys) };
        let clear = match keys.first() {
            Some(first) if clear > 0 && self.node.versions().may_be_newer_beside(first, self.snapshot) => {
                let same = |key: &&&[u8]| self.node.versions().newest_above(key, self.snapshot) == Ok(None);
                keys[..clear].iter().take_while(same).count()
            }
            _ => clear,
        };
        keys[..clear].iter().take_while(|key| self.newest_reference(key, mode, WhenLocked::Wait).is_none()).count()
    }

    /// Whose the locks are: said with the first one that is asked for.
    fn session_of_first_lock(&mut self) -> Option<u64> {
        let first = !std::mem::replace(&mut self.locked, true);
        self.session.filter(|_| first)
    }

    fn locks_max(&self) -> usize {
        self.node.shared.options.locks_per_txn_max
    }

    /// As [`Transaction::lock`], and leaves the snapshot where it is: for [`Transaction::present`].
    pub fn hold(&mut self, key: &[u8], mode: LockMode, when: WhenLocked, waker: &Waker) -> Op<bool> {
        if self.draft.read_only {
            return Poll::Ready(Err(TxnError::ReadOnly));
        }
        let id = self.id_or_new();
        let wait = if when == WhenLocked::Wait { LockWait::Wait } else { LockWait::NoWait };
        let session = self.session_of_first_lock();
        match self.node.locks.request(id, session, key, mode, wait, waker) {
            LockReply::Granted { waited } => {
                self.granted += 1;
                if waited {
                    self.queued = true;
                    self.node.shared.counters.lock_waits.one();
                }
            }
            LockReply::Queued => return Poll::Pending,
            LockReply::Busy if when == WhenLocked::Skip => return Poll::Ready(Ok(false)),
            LockReply::Busy => return Poll::Ready(Err(TxnError::LockNotAvailable)),
            LockReply::Deadlock(cycle) => {
                self.node.shared.counters.txn_deadlocks.one();
                return Poll::Ready(Err(TxnError::Deadlock { cycle }));
            }
        }
        Poll::Ready(Ok(true))
    }

    /// Gives back the locks that were taken since a savepoint. What was read under them stays read: certification knows it.
    pub fn release_since(&mut self, savepoint: u32) {
        if let (Some(id), Some(mark)) = (self.id, self.lock_marks.get(savepoint as usize)) {
            self.node.locks.release_since(id, *mark);
        }
    }

    /// Notes which locks it holds: see [`Transaction::release_noted`].
    pub fn note_locks(&mut self) {
        self.noted_mark = self.id.filter(|_| self.locked).map_or(0, |id| self.node.locks.mark(id));
    }

    /// As [`Transaction::release_since`], of what was taken since [`Transaction::note_locks`] was called last.
    pub fn release_noted(&mut self) {
        if let Some(id) = self.id {
            self.node.locks.release_since(id, self.noted_mark);
        }
    }

    /// Stops waiting for a lock: its caller's patience ended. Locks held stay.
    pub fn stop_waiting(&mut self) {
        self.skip_mark = None;
        self.queued = false;
        if let Some(id) = self.id {
            self.node.locks.cancel(id);
        }
    }

    /// Whether the transaction holds so many locks that it should take no more; certification still protects its rows.
    pub fn locks_full(&self) -> bool {
        let max = self.locks_max();
        self.granted >= max && self.id.is_some_and(|id| self.node.locks.held(id) >= max)
    }
}

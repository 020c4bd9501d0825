//! Locks of sessions, as SQL wants them: with calls that block.

use super::Inner;
use crate::kv::{Shell, convert, park};
use bytes::Bytes;
use node::LockWait;
use sql::KvError;
use sql::transaction::{LockMode, LockWait as Wait, SessionLock};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use store::Engine;

/// Who waits looks this often whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One lock; `None` once it is given back.
pub(super) struct BlockingLock<E: Engine> {
    inner: Arc<Inner<E>>,
    lock: Option<node::cluster::SessionLock<E>>,
}

impl<E: Engine> BlockingLock<E> {
    pub fn new(inner: &Arc<Inner<E>>, session: u64, key: &[u8]) -> Self {
        let lock = node::cluster::SessionLock::new(&inner.member, session, Bytes::copy_from_slice(key));
        BlockingLock { inner: inner.clone(), lock: Some(lock) }
    }
}

impl<E: Engine> SessionLock for BlockingLock<E> {
    fn take(&mut self, mode: LockMode, wait: Wait, stop: &mut dyn FnMut() -> bool) -> Result<bool, KvError> {
        let (mode, inner) = (convert::lock_mode(mode), &self.inner);
        let Some(lock) = &mut self.lock else { return Ok(false) };
        let wait = if wait == Wait::Wait { LockWait::Wait } else { LockWait::NoWait };
        loop {
            let polled = park::with_waker(|waker| lock.take(&inner.clock.read(), mode, wait, waker));
            inner.settle(polled.is_pending());
            if let Poll::Ready(taken) = polled {
                return taken.map_err(convert::error);
            }
            if stop() {
                lock.stop_waiting();
                inner.settle(false);
                return Err(KvError::Interrupted);
            }
            // What it waits for may itself wait for the disk.
            if !inner.lead() {
                park::pause(LOOK_EVERY);
            }
        }
    }

    fn is_lost(&self) -> bool {
        self.lock.as_ref().is_some_and(|lock| lock.is_lost(&self.inner.clock.read()))
    }
}

impl<E: Engine> Drop for BlockingLock<E> {
    fn drop(&mut self) {
        self.lock = None;
        self.inner.settle(false);
    }
}

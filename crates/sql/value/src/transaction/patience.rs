//! How long the transactions that a statement runs beside its own may wait: no longer than the statement itself.
//!
//! Sequences, bulk loads and OIDs write in transactions of their own. Their waits end with the statement, and their errors speak of
//! the statement: that one of them has committed says nothing of the transaction that the client knows.

use super::{BeginOptions, Deadline, Interrupt, Isolation, Kv, KvError, Transaction};
use clock::Timestamp;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Who waits for another thread of this process looks this often whether its statement was ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Who waits for a moment looks this often whether it has come.
const STEP: Duration = Duration::from_millis(5);

/// See the module. The default waits for ever.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    /// Raised to end the wait.
    pub interrupt: Interrupt,
    /// When it ends by itself.
    pub deadline: Deadline,
}

impl Patience {
    /// Begins a transaction that waits no longer.
    ///
    /// # Errors
    /// Those of the layers below.
    pub fn begin(&self, kv: &dyn Kv, isolation: Isolation) -> Result<Box<dyn Transaction>, KvError> {
        let (interrupt, deadline) = (self.interrupt.clone(), self.deadline.clone());
        kv.begin(&BeginOptions { isolation, interrupt, deadline, ..BeginOptions::default() })
    }

    /// Commits such a transaction.
    ///
    /// # Errors
    /// Those of the layers below, but for [`KvError::Unacknowledged`]: instead of it, what ended the wait. It may have committed then.
    pub fn commit(&self, txn: &mut dyn Transaction) -> Result<(), KvError> {
        self.commit_at(txn).map(drop)
    }

    /// As [`Patience::commit`], and says at which time.
    ///
    /// # Errors
    /// As it.
    pub fn commit_at(&self, txn: &mut dyn Transaction) -> Result<Timestamp, KvError> {
        match txn.commit() {
            Ok(committed) => Ok(committed.timestamp),
            Err(KvError::Unacknowledged(_)) if self.interrupt.is_raised() => Err(KvError::Interrupted),
            Err(KvError::Unacknowledged(_)) => Err(KvError::TimedOut),
            Err(e) => Err(e),
        }
    }

    /// Locks what another thread may hold while it waits for its own transaction.
    ///
    /// # Errors
    /// [`KvError::Interrupted`], [`KvError::TimedOut`].
    pub fn lock<'a, T>(&self, kv: &dyn Kv, mutex: &'a Mutex<T>) -> Result<MutexGuard<'a, T>, KvError> {
        loop {
            if let Some(guard) = mutex.try_lock_for(LOOK_EVERY) {
                return Ok(guard);
            }
            self.check(|| kv.monotonic_us())?;
        }
    }

    /// Waits for a moment of [`Kv::monotonic_us`].
    ///
    /// # Errors
    /// [`KvError::Interrupted`], [`KvError::TimedOut`].
    pub fn wait_until(&self, kv: &dyn Kv, until_us: i64) -> Result<(), KvError> {
        let (mutex, unnotified) = (Mutex::new(()), Condvar::new());
        while kv.monotonic_us() < until_us {
            self.check(|| kv.monotonic_us())?;
            // Nobody notifies: the wait ends by its timeout.
            unnotified.wait_for(&mut mutex.lock(), STEP);
        }
        Ok(())
    }

    /// Whether a wait may go on; `now_us` as of [`Kv::monotonic_us`].
    ///
    /// # Errors
    /// [`KvError::Interrupted`], [`KvError::TimedOut`].
    pub fn check(&self, now_us: impl FnOnce() -> i64) -> Result<(), KvError> {
        if self.interrupt.look() {
            return Err(KvError::Interrupted);
        }
        match self.deadline.has_passed_at(now_us) {
            true => Err(KvError::TimedOut),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::memory::MemoryKv;

    #[test]
    fn who_waits_for_another_thread_can_be_ended() {
        let (kv, mutex, patience) = (MemoryKv::new(), Mutex::new(()), Patience::default());
        let held = mutex.lock();
        patience.interrupt.raise();
        assert_eq!(patience.lock(&kv, &mutex).map(drop), Err(KvError::Interrupted));
        patience.interrupt.clear();
        patience.deadline.set(0);
        assert_eq!(patience.lock(&kv, &mutex).map(drop), Err(KvError::TimedOut));
        drop(held);
        assert_eq!(patience.lock(&kv, &mutex).map(drop), Ok(()));
    }
}

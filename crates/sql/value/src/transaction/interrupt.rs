//! What ends a statement before its time: another thread, its client's absence, its own timeout.

use super::Kv;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Raised by another thread to end the current statement (cancel request, drain), or by a long wait that finds its client gone.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Shared>);

/// Whether the client has gone.
type Probe = Box<dyn Fn() -> bool + Send + Sync>;

#[derive(Default)]
struct Shared {
    raised: AtomicBool,
    /// It stays raised: the session is to end.
    ended: AtomicBool,
    /// What the session waits for: 0, or the place of a [`Wait`] in [`Wait::ALL`], from 1.
    waiting: AtomicU8,
    /// Since when it waits for a lock, microseconds of [`Kv::monotonic_us`].
    since_us: AtomicI64,
    gone: OnceLock<Probe>,
}

/// What a session waits for, for those who look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A row that another transaction has locked.
    Row,
    /// What is read: of a range at another node, or of a transaction that is about to be decided.
    Range,
    /// An advisory lock.
    Advisory,
    /// `pg_sleep`
    Sleep,
    /// A commit on its way to the disk, or to be past.
    Commit,
    /// Its client.
    Client,
}

impl Wait {
    const ALL: [Wait; 6] = [Wait::Row, Wait::Range, Wait::Advisory, Wait::Sleep, Wait::Commit, Wait::Client];

    /// Type and name of the wait, in PostgreSQL's words.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Wait::Row => ("Lock", "tuple"),
            Wait::Range => ("IPC", "RangeAnswer"),
            Wait::Advisory => ("Lock", "advisory"),
            Wait::Sleep => ("Timeout", "PgSleep"),
            Wait::Commit => ("IO", "WALSync"),
            Wait::Client => ("Client", "ClientRead"),
        }
    }
}

/// A wait goes on while it lives.
#[derive(Debug)]
pub struct Waiting(Interrupt);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.waiting.store(0, Ordering::Relaxed);
    }
}

impl Interrupt {
    /// Raises it.
    pub fn raise(&self) {
        self.0.raised.store(true, Ordering::Release);
    }
    /// Lowers it: at the start of a statement. It stays raised where the session is to end.
    pub fn clear(&self) {
        self.0.raised.store(false, Ordering::SeqCst);
        // Whoever ends the session says so first and raises then.
        if self.0.ended.load(Ordering::SeqCst) {
            self.raise();
        }
    }
    /// Raises it for good: the session is to end.
    pub fn end(&self) {
        self.0.ended.store(true, Ordering::SeqCst);
        self.0.raised.store(true, Ordering::SeqCst);
    }
    /// Whether the session is to end.
    pub fn is_ended(&self) -> bool {
        self.0.ended.load(Ordering::Acquire)
    }
    /// A wait begins, and lasts as long as what is given.
    pub fn begin_wait(&self, wait: Wait) -> Waiting {
        let place = Wait::ALL.iter().position(|known| *known == wait).map_or(0, |place| place + 1);
        self.0.waiting.store(place as u8, Ordering::Relaxed);
        Waiting(self.clone())
    }
    /// As [`Interrupt::begin_wait`], and says since when: microseconds of [`Kv::monotonic_us`].
    pub fn begin_wait_at(&self, wait: Wait, now_us: i64) -> Waiting {
        self.0.since_us.store(now_us, Ordering::Relaxed);
        self.begin_wait(wait)
    }
    /// Since when it waits for a lock, microseconds of [`Kv::monotonic_us`]; `None`: it does not.
    pub fn waits_for_lock_since_us(&self) -> Option<i64> {
        let waits = matches!(self.waiting(), Some(Wait::Row | Wait::Advisory));
        waits.then(|| self.0.since_us.load(Ordering::Relaxed))
    }
    /// What it waits for.
    pub fn waiting(&self) -> Option<Wait> {
        let place = usize::from(self.0.waiting.load(Ordering::Relaxed));
        place.checked_sub(1).and_then(|place| Wait::ALL.get(place).copied())
    }
    /// Whether it was raised. Long loops ask every few hundred rows.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::Acquire)
    }
    /// How a wait finds out that its client has gone. Once.
    pub fn set_probe(&self, gone: impl Fn() -> bool + Send + Sync + 'static) {
        // A second probe would look at the same client.
        let _ = self.0.gone.set(Box::new(gone));
    }
    /// As [`Interrupt::is_raised`], for a wait that takes long already: raises it if the client has gone. A system call.
    pub fn look(&self) -> bool {
        if !self.is_raised() && self.0.gone.get().is_some_and(|gone| gone()) {
            self.raise();
        }
        self.is_raised()
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Interrupt").field(&self.is_raised()).finish()
    }
}

/// When the session's present statement must end: the session sets it, the loops of the statement and the waits below look. A portal
/// that goes on under a later message shares it, and so never meets the time of the message before.
#[derive(Clone, Debug)]
pub struct Deadline(Arc<AtomicI64>);

impl Default for Deadline {
    fn default() -> Self {
        Deadline(Arc::new(AtomicI64::new(i64::MAX)))
    }
}

impl Deadline {
    /// Sets it, microseconds of [`Kv::monotonic_us`].
    pub fn set(&self, deadline_us: i64) {
        self.0.store(deadline_us, Ordering::Relaxed);
    }
    /// When it is, for [`Deadline::set`].
    pub fn until_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.until_us() != i64::MAX
    }
    /// The statement may take as long as it needs.
    pub fn clear(&self) {
        self.set(i64::MAX);
    }
    /// Whether the time is over. The clock is read only if there is a deadline.
    #[inline]
    pub fn has_passed(&self, kv: &dyn Kv) -> bool {
        self.has_passed_at(|| kv.monotonic_us())
    }
    /// As [`Deadline::has_passed`], by a clock that is given.
    pub fn has_passed_at(&self, now_us: impl FnOnce() -> i64) -> bool {
        let deadline_us = self.0.load(Ordering::Relaxed);
        deadline_us != i64::MAX && now_us() >= deadline_us
    }
}

/// The longest wait for one lock (`lock_timeout`), of a session and all its transactions: a change of the setting holds for those that are
/// open, too.
#[derive(Clone, Debug, Default)]
pub struct LockTimeout(Arc<AtomicU64>);

impl LockTimeout {
    /// Sets it, milliseconds; 0 waits for ever.
    pub fn set_ms(&self, ms: u64) {
        self.0.store(ms, Ordering::Relaxed);
    }
    /// Milliseconds; `None` waits for ever.
    pub fn ms(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|ms| *ms > 0)
    }
    /// Whether a wait that has taken so many microseconds is over.
    pub fn is_over_after(&self, waited_us: u64) -> bool {
        self.ms().is_some_and(|ms| waited_us >= ms.saturating_mul(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_has_gone_is_noticed_by_who_looks() {
        let (interrupt, gone) = (Interrupt::default(), Arc::new(AtomicBool::new(false)));
        assert!(!interrupt.look());
        let seen = gone.clone();
        interrupt.set_probe(move || seen.load(Ordering::Acquire));
        assert!(!interrupt.look());
        gone.store(true, Ordering::Release);
        assert!(!interrupt.is_raised());
        assert!(interrupt.look() && interrupt.is_raised());
    }

    #[test]
    fn a_deadline_counts_from_where_it_is_set() {
        let deadline = Deadline::default();
        assert!(!deadline.is_set() && !deadline.has_passed_at(|| i64::MAX));
        deadline.set(5);
        assert!(!deadline.has_passed_at(|| 4) && deadline.has_passed_at(|| 5));
        deadline.clear();
        assert!(!deadline.has_passed_at(|| 5));
    }
}

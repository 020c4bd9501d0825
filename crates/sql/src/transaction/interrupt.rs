//! What ends a statement before its time: another thread, its client's absence, its own timeout.

use super::Kv;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

/// Raised by another thread to end the current statement (cancel request, drain), or by a long wait that finds its client gone.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Shared>);

/// Whether the client has gone.
type Probe = Box<dyn Fn() -> bool + Send + Sync>;

#[derive(Default)]
struct Shared {
    raised: AtomicBool,
    gone: OnceLock<Probe>,
}

impl Interrupt {
    /// Raises it.
    pub fn raise(&self) {
        self.0.raised.store(true, Ordering::Release);
    }
    /// Lowers it: at the start of a statement.
    pub fn clear(&self) {
        self.0.raised.store(false, Ordering::Release);
    }
    /// Whether it was raised. Long loops ask every few hundred rows.
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
    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != i64::MAX
    }
    /// The statement may take as long as it needs.
    pub fn clear(&self) {
        self.set(i64::MAX);
    }
    /// Whether the time is over. The clock is read only if there is a deadline.
    pub fn has_passed(&self, kv: &dyn Kv) -> bool {
        self.has_passed_at(|| kv.monotonic_us())
    }
    /// As [`Deadline::has_passed`], by a clock that is given.
    pub fn has_passed_at(&self, now_us: impl FnOnce() -> i64) -> bool {
        let deadline_us = self.0.load(Ordering::Relaxed);
        deadline_us != i64::MAX && now_us() >= deadline_us
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

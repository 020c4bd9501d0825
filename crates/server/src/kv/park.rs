//! A thread that waits: its waker unparks it.

use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: Waker = Waker::from(Arc::new(Parked(std::thread::current())));
}

/// The waker of this thread.
pub(crate) fn waker() -> Waker {
    WAKER.with(Waker::clone)
}

/// Runs `f` with the waker of this thread.
pub(crate) fn with_waker<R>(f: impl FnOnce(&Waker) -> R) -> R {
    WAKER.with(f)
}

/// A thread that others wake, from when it says that it is the one.
#[derive(Debug, Default)]
pub(crate) struct Sleeper(OnceLock<Thread>);

impl Sleeper {
    /// It is this thread, for good.
    pub fn is_this_thread(&self) {
        let _ = self.0.set(std::thread::current());
    }
    /// Wakes it.
    pub fn wake(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

/// Waits for a wake-up, at most so long; spurious ones happen.
pub(crate) fn pause(at_most: Duration) {
    std::thread::park_timeout(at_most);
}

//! The thread that writes the log while committers come faster than the disk syncs.
//!
//! A committing thread that finds more records waiting after its own sync does not wake their owner, who would need a thread
//! switch before the disk hears of them: it leaves the baton to this thread, which writes batch after batch until nothing waits.
//! With one client it is never called.

use super::Inner;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;
use store::Engine;

/// It looks around this often, though it will be woken.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What others use to reach the writer.
#[derive(Clone, Default)]
pub(crate) struct Handle(Arc<Shared>);

#[derive(Default)]
struct Shared {
    called: AtomicBool,
    thread: OnceLock<Thread>,
    gone: AtomicBool,
}

impl Handle {
    /// Leaves the baton to the writer. `false`: it has gone home, the caller keeps the baton.
    pub fn call(&self) -> bool {
        let Some(thread) = self.0.thread.get() else { return false };
        self.0.called.store(true, SeqCst);
        // It left after it looked for the last time, or it took the call: whoever takes the flag back has the baton.
        if self.0.gone.load(SeqCst) && self.0.called.swap(false, SeqCst) {
            return false;
        }
        thread.unpark();
        true
    }
}

pub(super) fn run<E: Engine>(inner: &Inner<E>, handle: &Handle) {
    let _ = handle.0.thread.set(std::thread::current());
    loop {
        if handle.0.called.swap(false, SeqCst) {
            inner.driver.write_all(inner);
        } else if handle.0.gone.load(SeqCst) {
            return;
        } else if inner.stopping.load(SeqCst) {
            handle.0.gone.store(true, SeqCst);
        } else {
            std::thread::park_timeout(LOOK_EVERY);
        }
    }
}

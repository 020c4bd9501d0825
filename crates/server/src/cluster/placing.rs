//! The thread that puts large commits in their places, after they were shown: whoever applies them holds the core, and holds up nobody.

use super::Inner;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;
use store::Engine;

/// The thread looks around this often, though it will be woken.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What others use to reach it.
#[derive(Clone, Default)]
pub(crate) struct Handle(Arc<OnceLock<Thread>>);

impl Handle {
    /// There is something to be put in its places.
    pub fn call(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

pub(super) fn run<E: Engine>(inner: &Inner<E>) {
    // Once.
    let _ = inner.placing.0.set(std::thread::current());
    while !inner.stopping.load(SeqCst) {
        while inner.member.versions().place(usize::MAX) {}
        std::thread::park_timeout(LOOK_EVERY);
    }
}

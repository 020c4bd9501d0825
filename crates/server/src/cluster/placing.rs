//! The thread that puts large commits in their places, after they were shown: whoever applies them holds the core, and holds up nobody.

use super::Inner;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use store::Engine;

/// The thread looks around this often, though it will be woken.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) fn run<E: Engine>(inner: &Inner<E>) {
    inner.placing.is_this_thread();
    while !inner.stopping.load(SeqCst) {
        while inner.member.versions().place(usize::MAX) {}
        std::thread::park_timeout(LOOK_EVERY);
    }
}

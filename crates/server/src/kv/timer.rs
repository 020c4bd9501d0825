//! The thread for what becomes due with time: rule 1's gate, undecided transactions, records without an owner.

use super::Inner;
use super::park::Sleeper;
use clock::Timestamp;
use node::Input;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use store::Engine;

/// A tick comes at least this often.
const TICK_EVERY: Duration = Duration::from_secs(1);
const TICK_EVERY_NS: u64 = TICK_EVERY.as_nanos() as u64;
/// The least nap: below it the thread only yields.
const NAP_MIN: Duration = Duration::from_micros(20);

/// What others use to reach the timer.
#[derive(Clone, Default)]
pub(crate) struct Handle(Arc<Shared>);

struct Shared {
    due: AtomicU64,
    thread: Sleeper,
}

impl Default for Shared {
    fn default() -> Self {
        Shared { due: AtomicU64::new(u64::MAX), thread: Sleeper::default() }
    }
}

impl Handle {
    /// Asks for a tick once `at` is past.
    pub fn set(&self, at: Timestamp) {
        if self.0.due.fetch_min(at.as_u64(), SeqCst) > at.as_u64() {
            self.poke();
        }
    }
    /// Asks for a look at the log.
    pub fn poke(&self) {
        self.0.thread.wake();
    }
}

pub(super) fn run<E: Engine>(inner: &Inner<E>, handle: &Handle) {
    handle.0.thread.is_this_thread();
    // Not by the node's clock, which somebody may set back: then no tick would come until it has caught up.
    let mut last_ns = None;
    while !inner.stopping.load(SeqCst) {
        let now = inner.clock.read();
        let due = Timestamp::from_u64(handle.0.due.load(SeqCst));
        let now_ns = inner.monotonic_ns();
        let overdue = last_ns.is_none_or(|last: u64| now_ns - last >= TICK_EVERY_NS);
        if now.interval.is_past(due) || overdue {
            last_ns = Some(now_ns);
            let _ = handle.0.due.compare_exchange(due.as_u64(), u64::MAX, SeqCst, SeqCst);
            inner.driver.step(inner, Input::Tick);
        }
        if inner.node.has_batch() && inner.driver.lead(inner) {
            continue;
        }
        let due_us = Timestamp::from_u64(handle.0.due.load(SeqCst)).physical_us();
        let until_due = Duration::from_micros(due_us.saturating_sub(now.interval.earliest_ns / 1000));
        std::thread::park_timeout(until_due.clamp(NAP_MIN, TICK_EVERY));
    }
}

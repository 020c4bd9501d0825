//! The thread that tells a member of time: ticks, and what rule 1 held back.

use super::Inner;
use crate::kv::park::Sleeper;
use clock::Timestamp;
use node::cluster::{Input, TICK_NS};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use store::Engine;

/// The least nap.
const NAP_MIN: Duration = Duration::from_micros(20);

/// What others use to reach it.
#[derive(Clone)]
pub(crate) struct Handle(Arc<Shared>);

struct Shared {
    due: AtomicU64,
    thread: Sleeper,
}

impl Default for Handle {
    fn default() -> Self {
        Handle(Arc::new(Shared { due: AtomicU64::new(u64::MAX), thread: Sleeper::default() }))
    }
}

impl Handle {
    /// Asks for a look once `at` is past.
    pub fn set(&self, at: Timestamp) {
        if self.0.due.fetch_min(at.as_u64(), SeqCst) > at.as_u64() {
            self.0.thread.wake();
        }
    }
}

pub(super) fn run<E: Engine>(inner: &Inner<E>) {
    let handle = inner.beat.clone();
    handle.0.thread.is_this_thread();
    let every = Duration::from_nanos(TICK_NS);
    let mut ticked = Instant::now();
    while !inner.stopping.load(SeqCst) {
        let due = Timestamp::from_u64(handle.0.due.load(SeqCst));
        let now = inner.clock.read();
        if now.interval.is_past(due) {
            let _ = handle.0.due.compare_exchange(due.as_u64(), u64::MAX, SeqCst, SeqCst);
            step(inner, Input::Due);
        }
        let elapsed = ticked.elapsed();
        if elapsed >= every {
            // One tick, however long it was: who slept must not believe that others were silent meanwhile.
            ticked = Instant::now();
            step(inner, Input::Tick);
            continue;
        }
        let due_us = Timestamp::from_u64(handle.0.due.load(SeqCst)).physical_us();
        let until_due = Duration::from_micros(due_us.saturating_sub(now.interval.earliest_ns / 1000));
        std::thread::park_timeout(until_due.clamp(NAP_MIN, every.saturating_sub(elapsed).max(NAP_MIN)));
    }
}

/// One input. Whoever tells the time waits for no disk: a node whose disk stalls still finds out who is silent, and says so to its clients.
fn step<E: Engine>(inner: &Inner<E>, input: Input) {
    if inner.step(input) {
        inner.journal.call_writer();
    }
}

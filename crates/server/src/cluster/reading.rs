//! The threads that read what other nodes asked for and may take long: whoever let it in goes on, with the log, a peer's messages, or a tick. Each read is answered when it is done.

use super::{Inner, LOOK_EVERY};
use node::cluster::LongRead;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;
use store::Engine;

/// So many read at a time.
pub(super) const READERS: usize = 4;

/// What waits for a reader. Bounded by what the member lets in before it hears that something was read ([`node::cluster::READING_MAX`]).
#[derive(Default)]
pub(crate) struct Queue {
    reads: Mutex<VecDeque<LongRead>>,
    come: Condvar,
}

impl Queue {
    /// To be read.
    pub fn add(&self, reads: Vec<LongRead>) {
        if reads.is_empty() {
            return;
        }
        let count = reads.len();
        self.reads.lock().extend(reads);
        for _ in 0..count.min(READERS) {
            self.come.notify_one();
        }
    }

    /// The next; `None`: there was none for a while.
    fn next(&self) -> Option<LongRead> {
        let mut reads = self.reads.lock();
        if reads.is_empty() {
            self.come.wait_for(&mut reads, LOOK_EVERY);
        }
        reads.pop_front()
    }
}

pub(super) fn run<E: Engine>(inner: &Inner<E>) {
    while !inner.stopping.load(SeqCst) {
        let Some(read) = inner.reading.next() else { continue };
        match inner.member.read(|| inner.clock.read(), read) {
            Ok(out) => {
                if inner.see_to(out) {
                    inner.journal.call_writer();
                }
            }
            Err(e) => inner.fail(&e.to_string()),
        }
    }
}

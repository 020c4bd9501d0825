//! Gives memory that was freed back to the system, also while nothing happens.
//!
//! An allocator that delays this looks at what it has delayed when it is next asked for something. A node that nobody asks anything would
//! keep what its last work had freed: gigabytes, after a crowd of clients. So a thread asks for it now and then, and soon after a session has
//! done something large. More often it looks how much memory the process has, and has [`Memory::balance`] draw the consequences.

use crate::memory::{Memory, resident_bytes};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two requests. What is freed and used again within it costs nothing.
const PURGE_EVERY: Duration = Duration::from_secs(10);

/// And after a session has freed much: the work of a second, at most, is purged at once.
const PURGE_FREED_EVERY: Duration = Duration::from_secs(1);

/// The time between two looks at what the process has. A statement takes some hundred megabytes a second.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The thread; it ends when the value is dropped.
pub struct Purger {
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Purger {
    /// Starts it.
    ///
    /// # Errors
    /// The system's, if no thread can be started.
    pub fn start(memory: Arc<Memory>) -> std::io::Result<Purger> {
        Purger::start_every(memory, LOOK_EVERY, PURGE_EVERY)
    }

    fn start_every(memory: Arc<Memory>, every: Duration, purge_every: Duration) -> std::io::Result<Purger> {
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = stopped.clone();
        let run = move || {
            let mut waited = purge_every;
            while !stop.load(SeqCst) {
                let freed = waited >= PURGE_FREED_EVERY.min(purge_every) && memory.was_freed();
                if waited >= purge_every || freed {
                    waited = Duration::ZERO;
                    (memory.allocator.give_back)();
                }
                if let Some(resident) = resident_bytes() {
                    memory.balance(usize::try_from(resident).unwrap_or(usize::MAX));
                }
                std::thread::park_timeout(every);
                waited += every;
            }
        };
        let thread = std::thread::Builder::new().name("purge".into()).spawn(run)?;
        Ok(Purger { stopped, thread: Some(thread) })
    }
}

impl Drop for Purger {
    fn drop(&mut self) {
        self.stopped.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Allocator, Shares};
    use std::sync::atomic::AtomicUsize;

    static ASKED: AtomicUsize = AtomicUsize::new(0);
    /// More than all tests of this process together take: a node that is short of memory asks more often.
    const ENOUGH_BYTES: usize = 1 << 40;

    #[test]
    fn freed_memory_is_asked_for_again_and_again() {
        let give_back = || {
            ASKED.fetch_add(1, SeqCst);
        };
        let allocator = Allocator { give_back, ..Allocator::default() };
        let memory = Memory::new(Shares::of(ENOUGH_BYTES), allocator);
        let every = Duration::from_millis(1);
        let purger = Purger::start_every(memory, every, every).unwrap();
        while ASKED.load(SeqCst) < 3 {
            std::thread::yield_now();
        }
        drop(purger);
        let asked = ASKED.load(SeqCst);
        std::thread::yield_now();
        assert_eq!(ASKED.load(SeqCst), asked, "it has ended");
    }

    #[test]
    fn what_a_session_has_freed_does_not_wait_for_its_turn() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let give_back = || {
            ASKED.fetch_add(1, SeqCst);
        };
        let allocator = Allocator { give_back, ..Allocator::default() };
        let memory = Memory::new(Shares::of(ENOUGH_BYTES), allocator);
        let never = Duration::from_secs(1 << 30);
        let purger = Purger::start_every(memory.clone(), Duration::from_millis(1), never).unwrap();
        while ASKED.load(SeqCst) < 1 {
            std::thread::yield_now();
        }
        memory.tidy();
        while ASKED.load(SeqCst) < 2 {
            std::thread::yield_now();
        }
        drop(purger);
        assert_eq!(ASKED.load(SeqCst), 2, "once at the start, once for the session");
        assert!(!memory.was_freed());
    }
}

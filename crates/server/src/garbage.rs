//! Deletes the rows of dropped and truncated tables, chunk by chunk, in the background; tells the store how long tables are kept; and
//! gathers statistics of tables that were written.

use crate::log;
use parking_lot::Mutex;
use sql::transaction::Interrupt;
use sql::{Database, SqlState};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two chunks: clients go first.
const PAUSE: Duration = Duration::from_millis(20);
/// While there is nothing to delete.
const IDLE_PAUSE: Duration = Duration::from_secs(2);
/// After a failure that is no conflict: a full disk, say.
const FAILED_PAUSE: Duration = Duration::from_secs(30);
/// Tables whose statistics are due are looked for so often.
const GATHER_EVERY: Duration = Duration::from_secs(10);

/// The thread, and how it is stopped.
pub struct Collector {
    stop: Interrupt,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Collector {
    /// Starts it.
    ///
    /// # Errors
    /// The system's, if no thread can be started.
    pub fn start(db: Arc<Database>) -> std::io::Result<Collector> {
        let stop = Interrupt::default();
        let stopped = stop.clone();
        let run = move || {
            let mut gathered = Instant::now();
            while !stopped.is_raised() {
                if gathered.elapsed() >= GATHER_EVERY {
                    gather(&db, &stopped);
                    gathered = Instant::now();
                }
                rest(collect(&db, &stopped), &stopped);
            }
        };
        let thread = std::thread::Builder::new().name("garbage".into()).spawn(run)?;
        Ok(Collector { stop, thread: Mutex::new(Some(thread)) })
    }

    /// Stops it, and waits for the chunk under way; where that waits for the clock it is given up.
    pub fn stop(&self) {
        self.stop.raise();
        let Some(thread) = self.thread.lock().take() else { return };
        thread.thread().unpark();
        if thread.join().is_err() {
            log::error("the garbage collector ended by a panic", &[]);
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits so long, or until it is to stop. What its transactions waited for may wake this thread once more, later.
fn rest(pause: Duration, stop: &Interrupt) {
    let began = Instant::now();
    while !stop.is_raised() && began.elapsed() < pause {
        std::thread::park_timeout(pause.saturating_sub(began.elapsed()));
    }
}

/// One chunk; gives how long to wait for the next.
fn collect(db: &Database, stop: &Interrupt) -> Duration {
    match db.tell_retentions(stop).and_then(|()| db.drain_garbage(stop)) {
        Ok(true) => PAUSE,
        Ok(false) => IDLE_PAUSE,
        Err(error) if error.retry() || stop.is_raised() => PAUSE,
        // It is told by who watches the disk.
        Err(error) if error.state == SqlState::DISK_FULL => IDLE_PAUSE,
        Err(error) => {
            log::warning("garbage_not_deleted", &[("error", &error)]);
            FAILED_PAUSE
        }
    }
}

/// Statistics of all tables that are due, one after the other.
fn gather(db: &Database, stop: &Interrupt) {
    while !stop.is_raised() {
        match db.gather_statistics(stop) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                let known = error.retry() || error.state == SqlState::DISK_FULL;
                if !known && !stop.is_raised() {
                    log::warning("statistics_not_gathered", &[("error", &error)]);
                }
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A waker that came late made the thread go on at once; its next chunk left another: an idle node's thread never rested.
    #[test]
    fn a_late_wake_up_ends_no_rest() {
        let stop = Interrupt::default();
        let resting = std::thread::current();
        resting.unpark();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..1000).for_each(|_| std::thread::yield_now());
                stop.raise();
                resting.unpark();
            });
            rest(Duration::MAX, &stop);
            assert!(stop.is_raised());
        });
    }
}

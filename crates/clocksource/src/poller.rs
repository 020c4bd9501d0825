//! The thread that asks the source, off the hot path. It starts when told to and ends when its guard is dropped.

use crate::clock::Clock;
use crate::tracker::Event;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

type Stop = Arc<(Mutex<bool>, Condvar)>;

/// Guard of a polling thread: dropping it stops the thread and waits for it (at most one poll).
#[derive(Debug)]
pub struct Poller {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Poller {
    pub(crate) fn start(
        clock: Arc<Clock>,
        every: Duration,
        mut on_event: impl FnMut(&Event) + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop: Stop = Stop::default();
        let told = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("clock-poller".into()).spawn(move || {
            while !wait(&told, every) {
                for event in clock.poll() {
                    on_event(&event);
                }
            }
        })?;
        Ok(Poller { stop, thread: Some(thread) })
    }
}

/// Waits for `every` or for the stop, whichever is first; true means stop.
fn wait((stop, bell): &(Mutex<bool>, Condvar), every: Duration) -> bool {
    let guard = stop.lock().unwrap_or_else(|e| e.into_inner());
    let (guard, _) = bell.wait_timeout_while(guard, every, |stop| !*stop).unwrap_or_else(|e| e.into_inner());
    *guard
}

impl Drop for Poller {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(|e| e.into_inner()) = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the poller was its own end; readings then grow void by themselves.
            let _ = thread.join();
        }
    }
}

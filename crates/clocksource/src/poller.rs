//! The thread that asks the source, off the hot path. It starts when told to and ends when its guard is dropped.
//!
//! Between two polls it is woken by whoever sets the system clock: a daemon that notices the step may begin to slew within the poll
//! interval, and lines over the boot-time clock would move with it.

use crate::clock::Clock;
use crate::moment::TimeSet;
use crate::tracker::Event;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Guard of a polling thread: dropping it stops the thread and waits for it (at most one poll).
#[derive(Debug)]
pub struct Poller {
    /// Written to, to stop it.
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
    /// A forked child has the guard, but not the thread.
    process: u32,
}

impl Poller {
    pub(crate) fn start(
        clock: Arc<Clock>,
        every: Duration,
        mut on_event: impl FnMut(&Event) + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, told) = UnixStream::pair()?;
        let thread = std::thread::Builder::new().name("clock-poller".into()).spawn(move || {
            // Where the kernel does not tell of steps they are found a poll interval later.
            let set = TimeSet::watch().ok();
            let is_woken_in_time = hurry() && set.is_some();
            loop {
                clock.set_is_watched(is_woken_in_time);
                let woken = wait(&told, set.as_ref(), every);
                // A source may take its time to answer: nobody is woken then.
                clock.set_is_watched(false);
                let mut events = match woken {
                    Woken::Stop => break,
                    Woken::ClockSet => clock.look_for_steps(),
                    Woken::Due => Vec::new(),
                };
                events.append(&mut clock.poll());
                events.iter().for_each(&mut on_event);
            }
        })?;
        Ok(Poller { stop, thread: Some(thread), process: std::process::id() })
    }
}

/// How eager the thread is to run (a nice value): it needs microseconds, and readers go by what it has not noticed yet meanwhile.
const NICE: libc::c_int = -10;

/// It goes before all that is not in real time, at the least such priority: on a busy machine even a nice thread that sleeps may be woken
/// 10 ms late, and a daemon has slewed the clock by a millisecond until then. It does little and waits for the rest.
const REAL_TIME_PRIORITY: libc::c_int = 1;

/// Whether this thread runs in real time from now on. Only who is privileged may; the others wait their turn, and readers look for themselves.
fn hurry() -> bool {
    // Name lookups have threads of their own, which take as long as they like.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    let priority = libc::sched_param { sched_priority: REAL_TIME_PRIORITY };
    // SAFETY: `priority` is valid for the call; 0 is this thread.
    let in_real_time = unsafe { libc::sched_setscheduler(0, policy, &priority) } == 0;
    if !in_real_time {
        // SAFETY: takes numbers; 0 is this thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    }
    in_real_time
}

enum Woken {
    Stop,
    ClockSet,
    Due,
}

/// Waits for `every`, for somebody to set the system clock, or for the stop, whichever is first.
fn wait(told: &UnixStream, set: Option<&TimeSet>, every: Duration) -> Woken {
    let fd = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // A negative one is not looked at.
    let mut fds = [fd(told.as_raw_fd()), fd(set.map_or(-1, TimeSet::as_raw_fd))];
    let patience_ms = i32::try_from(every.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: `fds` is valid for the call, with its length.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, patience_ms) };
    match set {
        _ if fds[0].revents != 0 => Woken::Stop,
        Some(set) if fds[1].revents != 0 => {
            set.acknowledge();
            Woken::ClockSet
        }
        _ => Woken::Due,
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process != std::process::id() {
            // To wait for a thread that does not exist here would end the process.
            std::mem::forget(thread);
            return;
        }
        // It reads on the other end; should both fail, the socket is closed when this value is gone, and the thread ends by itself.
        if self.stop.write_all(&[0]).is_ok() {
            // A panic of the poller was its own end; readings then grow void by themselves.
            let _ = thread.join();
        }
    }
}

//! SIGTERM and SIGINT, taken by `sigwait` in one thread: no handler ever runs at a bad moment.

use std::io;
use std::time::Duration;

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM
    Terminate,
    /// SIGINT
    Interrupt,
}

fn set() -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set that it is given; the signal numbers are valid.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        set
    }
}

/// Blocks both signals in this thread and in all that it starts: call it before any thread starts.
pub fn block() -> io::Result<()> {
    let set = set();
    // SAFETY: the set is initialised and outlives the call.
    let refused = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    if refused == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(refused)) }
}

/// Waits for the next of them.
pub fn wait() -> Signal {
    let (set, mut signal) = (set(), 0);
    // SAFETY: both outlive the call. It fails only for an invalid set.
    unsafe { libc::sigwait(&raw const set, &raw mut signal) };
    if signal == libc::SIGINT { Signal::Interrupt } else { Signal::Terminate }
}

/// Waits for the next of them for so long; `None`: there was none.
pub fn wait_for(longest: Duration) -> Option<Signal> {
    let set = set();
    let tv_sec = libc::time_t::try_from(longest.as_secs()).unwrap_or(libc::time_t::MAX);
    let timeout = libc::timespec { tv_sec, tv_nsec: longest.subsec_nanos().into() };
    // SAFETY: both outlive the call, which takes no information about the sender.
    match unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const timeout) } {
        libc::SIGINT => Some(Signal::Interrupt),
        libc::SIGTERM => Some(Signal::Terminate),
        _ => None,
    }
}

//! Wakes a thread that waits for a socket.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// A flag that `poll` sees. It stays raised until [`Wake::lower`].
pub(crate) struct Wake(OwnedFd);

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Woken {
    /// The flag is up; it was lowered.
    pub flag: bool,
    /// The descriptor is ready, or broken.
    pub ready: bool,
}

impl Wake {
    pub fn new() -> io::Result<Wake> {
        Ok(Wake(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub fn raise(&self) {
        // It fails only where it has been raised 2^64 times.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    pub fn lower(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }

    /// Waits for the flag, for a descriptor, or for the time to pass (`None`: for ever). An interrupted wait ends early.
    pub fn wait(&self, other: Option<(&dyn AsFd, PollFlags)>, timeout: Option<Duration>) -> Woken {
        let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
        let own = PollFd::new(&self.0, PollFlags::IN);
        let (flag, ready) = match other {
            Some((fd, wanted)) => {
                let fd = fd.as_fd();
                let mut both = [own, PollFd::from_borrowed_fd(fd, wanted)];
                seen(poll(&mut both, timeout.as_ref()));
                (both[0].revents(), !both[1].revents().is_empty())
            }
            None => {
                let mut one = [own];
                seen(poll(&mut one, timeout.as_ref()));
                (one[0].revents(), false)
            }
        };
        let flag = !flag.is_empty();
        if flag {
            self.lower();
        }
        Woken { flag, ready }
    }
}

/// An interrupted `poll` has seen nothing; another failure would be a descriptor that this crate closed too early.
fn seen(polled: rustix::io::Result<usize>) {
    if let Err(e) = polled {
        assert!(matches!(e, Errno::INTR | Errno::NOMEM), "poll: {e}");
    }
}

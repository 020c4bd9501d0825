//! Who answered on a Unix socket: the kernel writes the sender's process id beside each datagram, and a sender cannot choose it.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

/// Room for one control message with credentials, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Asks the kernel to write the sender beside what comes in.
pub(super) fn ask_for(socket: &UnixDatagram) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option takes an int, which is given with its size.
    let done = unsafe {
        let value = (&raw const on).cast();
        let size = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PASSCRED, value, size)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives a datagram: its length, and the process that sent it. `None` where that lives outside of this process id namespace.
pub(super) fn recv(socket: &UnixDatagram, buffer: &mut [u8]) -> io::Result<(usize, Option<u32>)> {
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero is a valid msghdr: no name, no parts, no control.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    (message.msg_control, message.msg_controllen) = (control.0.as_mut_ptr().cast(), control.0.len() as _);
    // SAFETY: the message points at a buffer and a control area that outlive the call, with their lengths.
    let n = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel filled `message`; the first header is null or inside `control`, which is aligned for it.
    let first = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let credentials = first.filter(|c| (c.cmsg_level, c.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS));
    let process = credentials.map(|c| {
        // SAFETY: a control message of this type holds a `ucred`; it may be read unaligned.
        unsafe { libc::CMSG_DATA(c).cast::<libc::ucred>().read_unaligned() }.pid
    });
    Ok((n, process.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_says_who_sent_it() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ask_for(&ours).unwrap();
        theirs.send(b"time").unwrap();
        let mut buffer = [0; 8];
        assert_eq!(recv(&ours, &mut buffer).unwrap(), (4, Some(std::process::id())));
        assert_eq!(&buffer[..4], b"time");
        ours.set_nonblocking(true).unwrap();
        assert_eq!(recv(&ours, &mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}

//! Control requests: one question, one answer, without an identity. For what must be said before a node is a member of a cluster.

use crate::hello::{self, Kind};
use crate::wake::Wake;
use crate::{CONTROL_BYTES_MAX, dial, timed};
use bytes::Bytes;
use std::io;
use std::time::{Duration, Instant};

/// Asks the node that listens at `addr` (host and port), and gives its reply. Both have at most [`CONTROL_BYTES_MAX`] bytes. After the timeout nobody
/// knows whether the request was carried out.
///
/// # Errors
///
/// `InvalidInput`: the request is too long. `TimedOut`: no reply in time. Others: there is nobody, or somebody else.
pub fn control(addr: &str, request: &[u8], timeout: Duration) -> io::Result<Bytes> {
    if request.len() > CONTROL_BYTES_MAX {
        let problem = format!("a request of {} bytes, at most {CONTROL_BYTES_MAX} are allowed", request.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    let (deadline, wake) = (Instant::now() + timeout, Wake::new()?);
    let mut failure = None;
    for addr in dial::resolve(addr)? {
        match dial::connect(addr, deadline, &wake, || false) {
            Ok(Some(stream)) => {
                timed::write_all(&stream, &hello::envelope(Kind::Request, request), deadline)?;
                return dial::read_body(&stream, Kind::Reply, deadline).map(Bytes::from);
            }
            Ok(None) => {}
            Err(e) => failure = Some(failure.unwrap_or(e)),
        }
    }
    Err(failure.unwrap_or_else(|| io::Error::other("it has no address that can be asked")))
}

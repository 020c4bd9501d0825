//! Names of servers to addresses, on threads of their own: a name server that is silent costs its own thread half a minute, never
//! the poller's.
//!
//! **Bound.** One thread for each name at a time, so [`super::SERVERS_MAX`] for a client. One that its client has forgotten ends
//! with the answer that nobody takes.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

/// Addresses of a name that are looked at; a pool has four.
const ADDRESSES_MAX: usize = 16;

/// A name that is being looked up.
#[derive(Debug)]
pub(super) struct Lookup(Receiver<io::Result<Vec<SocketAddr>>>);

impl Lookup {
    /// Begins to look up `host` or `host:port`.
    pub(super) fn start(name: &str, port: u16) -> io::Result<Self> {
        let with_port = match name.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => name.to_owned(),
            _ => format!("{name}:{port}"),
        };
        let (tell, told) = sync_channel(1);
        std::thread::Builder::new().name("clock-resolver".into()).spawn(move || {
            let found = with_port.to_socket_addrs().map(|all| all.take(ADDRESSES_MAX).collect());
            // Nobody waits any more if the client is gone.
            let _ = tell.send(found);
        })?;
        Ok(Lookup(told))
    }
    /// The addresses, once they are known.
    pub(super) fn poll(&self) -> Option<io::Result<Vec<SocketAddr>>> {
        match self.0.try_recv() {
            Ok(found) => Some(found),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(io::Error::other("the thread that looked it up ended"))),
        }
    }
}

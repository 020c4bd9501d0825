//! Ports for nodes and relays: free ones, which somebody else may take before they are listened at.
//!
//! The system gives any free port to whoever connects to something, so between the moment in which a port is found and that in which a node listens at it another
//! process may have it. A cluster that does not start for that reason is begun again, with other ports.

use super::{ClusterError, io_error};
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// A cluster is begun so often, at most.
const STARTS_MAX: usize = 5;
/// What a node says last that finds its port taken (EADDRINUSE).
const IN_USE: &str = "(os error 98)";

/// Ports that are kept until this value goes, so that none is given twice.
#[derive(Default)]
pub(super) struct Ports(Vec<TcpListener>);

impl Ports {
    /// A port that is free.
    pub fn take(&mut self) -> Result<u16, ClusterError> {
        let failed = || io_error("no port is free");
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed())?;
        let port = socket.local_addr().map_err(failed())?.port();
        self.0.push(socket);
        Ok(port)
    }
}

/// Whether somebody else had a port.
fn is_taken(error: &ClusterError) -> bool {
    match error {
        ClusterError::Io { error, .. } => error.kind() == io::ErrorKind::AddrInUse,
        ClusterError::Ended { said, .. } => said.contains(IN_USE),
        _ => false,
    }
}

/// Begins again while a port was taken.
pub(super) fn again<T>(mut start: impl FnMut() -> Result<T, ClusterError>) -> Result<T, ClusterError> {
    for _ in 1..STARTS_MAX {
        match start() {
            Err(error) if is_taken(&error) => {}
            done => return done,
        }
    }
    start()
}

#[cfg(test)]
mod tests {
    use super::{ClusterError, Ports, STARTS_MAX, again, io_error};
    use std::collections::BTreeSet;
    use std::net::TcpListener;

    fn ended(said: &str) -> ClusterError {
        ClusterError::Ended { number: 2, status: "exit status: 1".into(), said: said.into() }
    }

    #[test]
    fn no_port_is_given_twice() {
        let mut free = Ports::default();
        let all: BTreeSet<u16> = (0..100).map(|_| free.take().unwrap()).collect();
        assert_eq!(all.len(), 100);
    }

    #[test]
    fn a_cluster_whose_port_was_taken_is_begun_again() {
        let taken =
            "timeball: cannot listen on 127.0.0.1:46265: Address already in use (os error 98); stop what listens there";
        let (mut starts, begun) = (0, std::cell::Cell::new(0));
        let third = again(|| {
            starts += 1;
            if starts < 3 { Err(ended(taken)) } else { Ok(starts) }
        });
        assert_eq!(third.unwrap(), 3);
        let count = |error: fn(&str) -> ClusterError, said: &str| {
            begun.set(0);
            let done: Result<(), _> = again(|| {
                begun.set(begun.get() + 1);
                Err(error(said))
            });
            assert!(done.is_err());
            begun.get()
        };
        assert_eq!(count(ended, taken), STARTS_MAX, "and no more often");
        assert_eq!(count(ended, "timeball: no space left on device"), 1);
        // A relay's own port.
        let there = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = TcpListener::bind(there.local_addr().unwrap()).unwrap_err();
        let mut errors = vec![io_error("the relay of n1")(error)];
        assert_eq!(again(|| errors.pop().map_or(Ok(7), Err)).unwrap(), 7);
    }
}

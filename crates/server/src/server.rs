//! The sockets of a node, and their orderly end.

use crate::connection::Shared;
use crate::garbage::Collector;
use crate::health::Health;
use crate::memory::{Allocator, Memory, Shares};
use crate::metrics::{MetricsText, WireMetrics};
use crate::purge::Purger;
use crate::registry::Registry;
use crate::{listener, log};
use sql::Database;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A drain lets statements run for so long, in seconds, before it interrupts them.
pub const DRAIN_STATEMENT_SECONDS: u64 = 4;
/// An interrupted statement may take so long to notice, in seconds, before it is left behind.
pub const DRAIN_INTERRUPT_SECONDS: u64 = 2;

/// Where to listen, and for how many.
#[derive(Clone, Debug)]
pub struct Options {
    /// `host:port` for SQL; port 0 takes a free one.
    pub listen_addr: String,
    /// `host:port` for HTTP.
    pub http_addr: String,
    /// The greatest number of sessions.
    pub connections_max: usize,
    /// Addresses other than loopback are allowed, though nothing is encrypted and nobody authenticated.
    pub insecure: bool,
    /// What clients' messages share with the rest of the node.
    pub memory: Arc<Memory>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            listen_addr: "127.0.0.1:26257".into(),
            http_addr: "127.0.0.1:8080".into(),
            connections_max: 600,
            insecure: false,
            memory: Memory::new(Shares::default(), Allocator::default()),
        }
    }
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address means nothing here.
    #[error("cannot resolve the address {address}: {error}; write HOST:PORT")]
    Resolve {
        /// As given.
        address: String,
        /// What the resolver said.
        error: std::io::Error,
    },
    /// Everybody on the network could read and write.
    #[error(
        "{address} is reachable from other machines, and there is neither TLS nor a password yet: listen on 127.0.0.1, or add --insecure to allow it"
    )]
    NotLoopback {
        /// As given.
        address: String,
    },
    /// Somebody else listens there, or we may not.
    #[error("cannot listen on {address}: {error}; stop what listens there, or choose another {option}")]
    Bind {
        /// As given.
        address: String,
        /// The flag that names it.
        option: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// No thread could be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// What the server shows of the node below it.
pub trait NodeView: Send + Sync {
    /// Fields of `/health`, each a name and a JSON value; the first is `"status"`.
    fn health(&self) -> Vec<(&'static str, String)>;
    /// Whether it serves: if not, a restart is needed.
    fn is_healthy(&self) -> bool;
    /// Why it is none of its cluster any more, and what to do, in words; then it serves nothing, for good.
    fn removed(&self) -> Option<String> {
        None
    }
    /// Why clients should go elsewhere for now, in words: nobody leads what every statement needs, or the disk is full.
    fn not_ready(&self) -> Option<String> {
        None
    }
    /// Adds the node's metrics.
    fn render(&self, text: &mut MetricsText);
}

/// A running server.
pub struct Server {
    shared: Arc<Shared>,
    sql_addr: SocketAddr,
    health: Health,
    garbage: Collector,
    _purge: Purger,
}

impl Server {
    /// Binds the socket for SQL, and begins to serve.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(options: &Options, health: Health, db: Arc<Database>) -> Result<Server, StartError> {
        let (sql, sql_addr) = bind(&options.listen_addr, "--listen-addr", options.insecure)?;
        let registry = Registry::of_node(options.connections_max, db.node());
        let memory = options.memory.clone();
        let shared = Arc::new(Shared { db, registry, metrics: WireMetrics::default(), memory });
        let garbage = Collector::start(shared.db.clone()).map_err(StartError::Thread)?;
        let purge = Purger::start(options.memory.clone()).map_err(StartError::Thread)?;
        listener::listen(sql, shared.clone()).map_err(StartError::Thread)?;
        log::info(
            "listening",
            &[("sql", &sql_addr), ("http", &health.address()), ("connections_max", &options.connections_max)],
        );
        health.serves(shared.clone());
        Ok(Server { shared, sql_addr, health, garbage, _purge: purge })
    }

    /// Where SQL is spoken.
    pub fn sql_addr(&self) -> SocketAddr {
        self.sql_addr
    }
    /// Where HTTP is spoken.
    pub fn http_addr(&self) -> SocketAddr {
        self.health.address()
    }

    /// Stops: accepts nobody any more, ends idle sessions with 57P01, lets statements end, interrupts those that take longer
    /// than [`DRAIN_STATEMENT_SECONDS`]. `false`: some session did not end in time; nothing that it acknowledged is lost.
    pub fn drain(&self) -> bool {
        let registry = &self.shared.registry;
        let began = Instant::now();
        log::info("draining", &[("sessions", &registry.sessions())]);
        registry.drain();
        wake(self.sql_addr);
        let patience = began + Duration::from_secs(DRAIN_STATEMENT_SECONDS);
        let mut empty = registry.wait_empty(patience);
        if !empty {
            log::warning("drain_interrupts", &[("sessions", &registry.sessions())]);
            registry.interrupt_all();
            empty = registry.wait_empty(patience + Duration::from_secs(DRAIN_INTERRUPT_SECONDS));
        }
        self.garbage.stop();
        if empty && let Err(error) = self.shared.db.close() {
            log::warning("sequences_not_given_back", &[("error", &error)]);
        }
        self.health.close();
        let millis = began.elapsed().as_millis();
        log::info("drained", &[("sessions_left", &registry.sessions()), ("millis", &millis)]);
        empty
    }
}

/// Makes a listener look up from `accept`.
pub(crate) fn wake(address: SocketAddr) {
    let mut address = address;
    if address.ip().is_unspecified() {
        let loopback =
            if address.is_ipv4() { IpAddr::from([127, 0, 0, 1]) } else { IpAddr::from([0u16, 0, 0, 0, 0, 0, 0, 1]) };
        address.set_ip(loopback);
    }
    let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
}

/// Listens at an address, which the flag `option` gave; other than loopback only where that is allowed.
///
/// # Errors
/// See [`StartError`].
pub fn bind(address: &str, option: &'static str, insecure: bool) -> Result<(TcpListener, SocketAddr), StartError> {
    let resolve = |error| StartError::Resolve { address: address.to_owned(), error };
    let resolved: Vec<SocketAddr> = address.to_socket_addrs().map_err(resolve)?.collect();
    if !insecure && resolved.iter().any(|a| !a.ip().is_loopback()) {
        return Err(StartError::NotLoopback { address: address.to_owned() });
    }
    let failed = |error| StartError::Bind { address: address.to_owned(), option, error };
    let listener = TcpListener::bind(resolved.as_slice()).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_unless_told() {
        assert!(matches!(bind("0.0.0.0:0", "--listen-addr", false), Err(StartError::NotLoopback { .. })));
        assert!(bind("0.0.0.0:0", "--listen-addr", true).is_ok());
        assert!(matches!(bind("nowhere", "--listen-addr", false), Err(StartError::Resolve { .. })));
        let (taken, address) = bind("127.0.0.1:0", "--listen-addr", false).unwrap();
        assert!(matches!(bind(&address.to_string(), "--listen-addr", false), Err(StartError::Bind { .. })));
        drop(taken);
    }
}

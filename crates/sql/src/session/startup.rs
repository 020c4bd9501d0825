//! What a session is opened with, and what its calls answer.

use crate::sessions::Client;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The start-up message, and what the server adds to it.
#[derive(Clone, Default)]
pub struct Startup {
    /// User.
    pub user: String,
    /// Database; empty means the user's name.
    pub database: String,
    /// `application_name`
    pub application_name: String,
    /// Other parameters of the start-up message: settings (`options`' `-c name=value` pairs included).
    pub parameters: Vec<(String, String)>,
    /// Process id shown to the client.
    pub backend_pid: i32,
    /// Where the client is, if it came by a network.
    pub client_addr: Option<SocketAddr>,
    /// Where it came in, if it did.
    pub server_addr: Option<SocketAddr>,
    /// How the connection is ended from another session; without it, it is not.
    pub client: Option<Arc<dyn Client>>,
}

impl fmt::Debug for Startup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Startup { user, database, application_name, parameters, backend_pid, client_addr, server_addr, client: _ } =
            self;
        f.debug_struct("Startup")
            .field("user", user)
            .field("database", database)
            .field("application_name", application_name)
            .field("parameters", parameters)
            .field("backend_pid", backend_pid)
            .field("client_addr", client_addr)
            .field("server_addr", server_addr)
            .finish_non_exhaustive()
    }
}

/// For ReadyForQuery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// `I`
    Idle,
    /// `T`
    InBlock,
    /// `E`
    Failed,
}

/// How an Execute message ended. CommandComplete and EmptyQueryResponse have gone to the output already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// CommandComplete or EmptyQueryResponse has been sent.
    Complete,
    /// The row limit was reached: the caller sends PortalSuspended.
    Suspended,
    /// `COPY FROM STDIN`: CopyInResponse has been sent; the caller feeds `copy_data`.
    CopyIn,
}

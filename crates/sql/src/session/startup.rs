//! What a session is opened with, and what its calls answer.

/// The start-up message, and what the server adds to it.
#[derive(Clone, Debug, Default)]
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

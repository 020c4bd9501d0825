//! What can go wrong, and what a server says.

use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::ErrorFields;
use std::fmt;

/// An error or notice of the server, with the fields that it sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerMessage {
    /// `ERROR`, `FATAL`, `NOTICE`, ...
    pub severity: String,
    /// SQLSTATE.
    pub code: String,
    /// One line.
    pub message: String,
    /// More on this case.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// 1-based character of the statement text.
    pub position: Option<usize>,
}

impl ServerMessage {
    pub(super) fn read(mut fields: ErrorFields<'_>) -> ServerMessage {
        let mut out = ServerMessage::default();
        while let Ok(Some(field)) = fields.next() {
            let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
            match field.type_() {
                b'S' => out.severity = value,
                b'C' => out.code = value,
                b'M' => out.message = value,
                b'D' => out.detail = Some(value),
                b'H' => out.hint = Some(value),
                b'P' => out.position = value.parse().ok(),
                _ => {}
            }
        }
        out
    }
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:  {} ({})", self.severity, self.message, self.code)?;
        if let Some(detail) = &self.detail {
            write!(f, "\nDETAIL:  {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nHINT:  {hint}")?;
        }
        Ok(())
    }
}

/// A call of the client failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused; the connection goes on.
    #[error("{0}")]
    Server(Box<ServerMessage>),
    /// The server closed the connection: connect again.
    #[error("the server closed the connection")]
    Closed,
    /// The connection failed: connect again.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The other side does not speak this protocol.
    #[error("the server's answer cannot be understood: {0}")]
    Protocol(String),
    /// The caller asked for what cannot be.
    #[error("{0}")]
    Usage(String),
}

impl ClientError {
    /// The server's SQLSTATE, where it gave one.
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Server(e) => Some(&e.code),
            _ => None,
        }
    }
}

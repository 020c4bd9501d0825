//! From the first byte to the session's start-up parameters.

use super::{End, Negotiate, Shared};
use crate::registry::Ticket;
use crate::wire::inbox::InboxError;
use crate::wire::startup::{self, MINOR_VERSION, StartupPacket};
use crate::wire::{Inbox, STARTUP_BYTES_MAX};
use sql::session::Startup;
use sql::{SqlError, SqlState};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The longest that a client may take to say who it is, in seconds.
pub const STARTUP_SECONDS_MAX: u64 = 10;
/// Requests for encryption answered `N` before the client must make up its mind: one of each kind.
const ENCRYPTION_REQUESTS_MAX: usize = 2;

/// What a client said at start.
pub struct Handshake {
    /// Who it is and what it wants.
    pub startup: Startup,
    /// It speaks a newer protocol: it is to be told so.
    pub negotiate: Option<Negotiate>,
}

/// Reads until a deadline, however few bytes come at a time.
struct Until<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

/// Reads start-up packets; `None` where the connection was for a cancellation only.
pub fn run(inbox: &mut Inbox, stream: &TcpStream, shared: &Shared, ticket: &Ticket) -> Result<Option<Handshake>, End> {
    let mut from = Until { stream, deadline: Instant::now() + Duration::from_secs(STARTUP_SECONDS_MAX) };
    for _ in 0..=ENCRYPTION_REQUESTS_MAX {
        let packet = match inbox.next_startup(&mut from, STARTUP_BYTES_MAX) {
            Err(InboxError::Io(e)) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(End::Inbox(InboxError::Slow(STARTUP_SECONDS_MAX)));
            }
            other => other?,
        };
        match startup::read(packet).map_err(End::Refused)? {
            StartupPacket::Encryption => (&mut &*stream).write_all(b"N")?,
            StartupPacket::Cancel { pid, secret } => {
                shared.registry.cancel(pid, secret);
                return Ok(None);
            }
            StartupPacket::Session { minor, parameters } => {
                stream.set_read_timeout(None)?;
                let addrs = (stream.peer_addr().ok(), stream.local_addr().ok());
                return settle(minor, &parameters, addrs, ticket).map(Some).map_err(End::Refused);
            }
        }
    }
    Err(End::Refused(SqlError::new(SqlState::PROTOCOL_VIOLATION, "encryption was refused, and is asked for again")))
}

fn settle(
    minor: u32,
    parameters: &[(&str, &str)],
    (client_addr, server_addr): (Option<SocketAddr>, Option<SocketAddr>),
    ticket: &Ticket,
) -> Result<Handshake, SqlError> {
    let client = Some(ticket.client());
    let mut startup = Startup { backend_pid: ticket.pid(), client_addr, server_addr, client, ..Startup::default() };
    let mut unknown = Vec::new();
    for (name, value) in parameters {
        match *name {
            "user" => startup.user = (*value).into(),
            "database" => startup.database = (*value).into(),
            "application_name" => startup.application_name = (*value).into(),
            "options" => startup.parameters.extend(options(value)?),
            "replication" if !matches!(*value, "false" | "off" | "no" | "0") => {
                return Err(SqlError::unsupported("a replication connection"));
            }
            "replication" => {}
            name if name.starts_with("_pq_.") => unknown.push(name.to_owned()),
            name => startup.parameters.push((name.to_owned(), (*value).to_owned())),
        }
    }
    if startup.user.is_empty() {
        let message = "no PostgreSQL user name specified in startup packet";
        return Err(SqlError::new(SqlState::INVALID_AUTHORIZATION, message));
    }
    if startup.database.is_empty() {
        startup.database.clone_from(&startup.user);
    }
    let newer = minor > MINOR_VERSION || !unknown.is_empty();
    Ok(Handshake { startup, negotiate: newer.then_some(Negotiate { unknown }) })
}

/// Settings in `options`: `-c name=value` and `--name=value`, separated by blanks, a backslash before a literal one.
fn options(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut words = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => words.last_mut().into_iter().for_each(|w| w.extend(chars.next())),
            c if c.is_whitespace() => words.push(String::new()),
            c => words.last_mut().into_iter().for_each(|w| w.push(c)),
        }
    }
    let mut settings = Vec::new();
    let mut words = words.iter().filter(|w| !w.is_empty());
    while let Some(word) = words.next() {
        let pair = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") => words.next().map_or("", String::as_str),
            Some(pair) => pair,
            None => "",
        };
        let Some((name, value)) = pair.split_once('=') else {
            let message = format!("invalid command-line argument for server process: {word}");
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message).hint("Write `-c name=value`."));
        };
        settings.push((name.trim().replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::options;

    #[test]
    fn settings_in_options() {
        let pairs = options(r"-c geqo=off -csearch_path=a\ b --statement-timeout=5s").unwrap();
        let expected = [("geqo", "off"), ("search_path", "a b"), ("statement_timeout", "5s")];
        assert_eq!(pairs, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert!(options("-x").is_err());
        assert!(options("-c").is_err());
        assert!(options("").unwrap().is_empty());
    }
}

//! One client's connection: a thread that reads messages, asks the session and sends its answers.
//!
//! **Idea.** Blocking sockets and one thread per connection: a statement waits (for a lock, for the log, for rule 1) inside its
//! call, and nothing below knows of sockets. All messages that one `recv` gave are handled before anything is sent; a send
//! happens at Sync, Flush, the end of a simple query, and when the outbox is full.
//!
//! **Invariants.**
//! 1. After an error in the extended protocol every message up to the next Sync is skipped.
//! 2. Whatever a client sends costs at most its own connection; so does a panic of its session.
//! 3. A draining server ends a session only where it waits for its client; a running statement ends first.

mod conversation;
mod handshake;

use crate::memory::Memory;
use crate::metrics::WireMetrics;
use crate::registry::{Registry, Ticket};
use crate::wire::Inbox;
use crate::wire::backend::{self, Severity};
use crate::wire::inbox::InboxError;
use crate::{log, wire};
use conversation::{Conversation, Flow};
use handshake::Handshake;
use sql::session::Session;
use sql::{Database, SqlError, SqlState};
use std::any::Any;
use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What all connections share.
pub struct Shared {
    /// The database.
    pub db: Arc<Database>,
    /// The open connections.
    pub registry: Arc<Registry>,
    /// What the wire counts.
    pub metrics: WireMetrics,
    /// What messages hold, and the allocator.
    pub memory: Arc<Memory>,
}

/// Serves one connection to its end.
pub fn serve(shared: &Shared, stream: &TcpStream, ticket: &Ticket) {
    let served = catch_unwind(AssertUnwindSafe(|| converse(shared, stream, ticket)));
    match served {
        Ok(Ok(())) => {}
        Ok(Err(end)) => farewell(shared, stream, ticket, &end),
        Err(panic) => {
            shared.metrics.panics.fetch_add(1, Relaxed);
            log::error("session_panicked", &[("pid", &ticket.pid()), ("panic", &panic_text(panic.as_ref()))]);
            let error = SqlError::new(SqlState::INTERNAL_ERROR, "the session met a fault of the server and was closed")
                .hint("Connect again; the server's log says more under `session_panicked`.");
            fatal(stream, &error);
        }
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown".into())
}

/// Why a connection ended, other than by its client's wish.
#[derive(Debug)]
enum End {
    /// No further message can be read.
    Inbox(InboxError),
    /// The client does not hear us any more.
    Send,
    /// It was idle for longer than its settings allow, in a block or outside.
    Idle { in_block: bool },
    /// Another session ended it.
    Terminated,
    /// The server refuses it, and says why.
    Refused(SqlError),
}

impl From<InboxError> for End {
    fn from(e: InboxError) -> Self {
        End::Inbox(e)
    }
}
impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        End::Send
    }
}

fn farewell(shared: &Shared, stream: &TcpStream, ticket: &Ticket, end: &End) {
    let error = match end {
        End::Inbox(_) if shared.registry.is_draining() => {
            SqlError::new(SqlState::ADMIN_SHUTDOWN, "terminating connection: the server is stopping")
        }
        End::Inbox(e) => {
            let Some(reason) = e.reason() else { return };
            shared.metrics.protocol_errors.fetch_add(1, Relaxed);
            log::warning("protocol_error", &[("pid", &ticket.pid()), ("reason", &reason)]);
            SqlError::new(SqlState::PROTOCOL_VIOLATION, reason)
        }
        End::Terminated => {
            SqlError::new(SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        }
        End::Idle { in_block: false } => {
            SqlError::new(SqlState(*b"57P05"), "terminating connection due to idle-session timeout")
        }
        End::Idle { in_block: true } => {
            SqlError::new(SqlState(*b"25P03"), "terminating connection due to idle-in-transaction timeout")
        }
        End::Refused(e) => {
            if e.state == SqlState::PROTOCOL_VIOLATION {
                shared.metrics.protocol_errors.fetch_add(1, Relaxed);
            }
            e.clone()
        }
        End::Send => return,
    };
    fatal(stream, &error);
}

/// The last message of a connection. A client that does not read it does not hold the thread.
pub fn fatal(mut stream: &TcpStream, error: &SqlError) {
    let mut out = Vec::new();
    backend::error(&mut out, Severity::Fatal, error);
    let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
    let _ = stream.write_all(&out);
}

fn converse(shared: &Shared, stream: &TcpStream, ticket: &Ticket) -> Result<(), End> {
    let mut inbox = Inbox::new(shared.memory.messages.clone());
    let said = handshake::run(&mut inbox, stream, shared, ticket);
    if ticket.gave_way() {
        shared.metrics.refused.fetch_add(1, Relaxed);
        return Err(End::Refused(SqlError::new(
            SqlState::TOO_MANY_CONNECTIONS,
            "sorry, too many clients already: this connection had not said who it is, and gave way to a newer one",
        )));
    }
    let Some(Handshake { startup, negotiate }) = said? else { return Ok(()) };
    if !ticket.begin_session() {
        shared.metrics.refused.fetch_add(1, Relaxed);
        let limit = shared.registry.sessions_max();
        return Err(End::Refused(
            SqlError::new(
                SqlState::TOO_MANY_CONNECTIONS,
                format!("sorry, too many clients already: the limit is {limit}"),
            )
            .hint("Close connections, or start the server with a greater --max-connections."),
        ));
    }
    let _open = Open::new(shared);
    let session = Session::new(shared.db.clone(), startup, ticket.interrupt()).map_err(End::Refused)?;
    let mut conversation = Conversation::new(session, stream, &shared.metrics);
    conversation.greet(ticket, negotiate.as_ref())?;
    let mut idle = IdleTimeout::default();
    loop {
        if inbox.is_empty() {
            conversation.before_waiting()?;
            if shared.registry.is_draining() {
                return Err(End::Inbox(InboxError::Closed));
            }
            if conversation.was_large() {
                inbox.tidy();
                shared.memory.tidy();
            }
            let limit_ms = conversation.idle_timeout_ms();
            idle.begin(stream, limit_ms, conversation.snapshot_left_ms(), shared.memory.is_scarce());
        }
        let message = loop {
            match inbox.next(&mut &*stream) {
                Err(InboxError::Io(e)) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if idle.is_over() {
                        return Err(End::Idle { in_block: conversation.is_in_block() });
                    }
                    conversation.give_up_old_snapshot();
                    if idle.is_quiet() {
                        inbox.tidy();
                        shared.memory.tidy();
                    }
                    idle.go_on(stream, conversation.snapshot_left_ms());
                }
                // Its reading side was closed to wake it.
                Err(_) if ticket.interrupt().is_ended() => return Err(End::Terminated),
                other => break other?,
            }
        };
        if message.is_dropped {
            conversation.too_large(message.tag, shared.memory.messages.limit_bytes())?;
            continue;
        }
        match conversation.handle(message.tag, inbox.body(&message), inbox.goes_on(message.tag))? {
            Flow::Next if conversation.is_ended() => return Err(End::Terminated),
            Flow::Next => {}
            Flow::Goodbye => return Ok(()),
        }
    }
}

/// Counts an open session while it lives.
struct Open<'a>(&'a Shared);
impl<'a> Open<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.metrics.connections.fetch_add(1, Relaxed);
        Open(shared)
    }
}
impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.metrics.connections.fetch_sub(1, Relaxed);
    }
}

/// Where memory is scarce, a session that has had nothing to do for so long gives back the pages that it keeps for a next time, milliseconds.
const QUIET_MS: u64 = 1000;

/// The receive timeout of the socket, set only where it changes: a system call less per statement.
#[derive(Default)]
struct IdleTimeout {
    millis: u64,
    /// The wait is over then.
    end: Option<Instant>,
    /// Where memory is scarce, a session that waits longer tidies up then.
    quiet: Option<Instant>,
}
impl IdleTimeout {
    /// The session begins to wait: at most so long, 0 for ever. Meanwhile its snapshot may become too old.
    fn begin(&mut self, stream: &TcpStream, limit_ms: u64, snapshot_left_ms: Option<u64>, scarce: bool) {
        // The clock is read only where somebody set a limit.
        self.end = (limit_ms > 0).then(|| Instant::now() + Duration::from_millis(limit_ms));
        self.quiet = scarce.then(|| Instant::now() + Duration::from_millis(QUIET_MS));
        let quiet_ms = self.quiet.map(|_| QUIET_MS);
        self.set_soonest(stream, self.end.map(|_| limit_ms), snapshot_left_ms.into_iter().chain(quiet_ms).min());
    }

    /// The wait goes on after one of its limits.
    fn go_on(&mut self, stream: &TcpStream, snapshot_left_ms: Option<u64>) {
        let left = |end: Option<Instant>| end.map(|end| millis(end.saturating_duration_since(Instant::now())));
        self.set_soonest(stream, left(self.end), snapshot_left_ms.into_iter().chain(left(self.quiet)).min());
    }

    fn set_soonest(&mut self, stream: &TcpStream, left_ms: Option<u64>, snapshot_left_ms: Option<u64>) {
        let soonest = left_ms.into_iter().chain(snapshot_left_ms).min();
        self.set(stream, soonest.map_or(0, |ms| ms.max(1)));
    }

    /// Whether it has lasted long enough to tidy up: true once.
    fn is_quiet(&mut self) -> bool {
        self.quiet.take_if(|quiet| Instant::now() >= *quiet).is_some()
    }

    /// Whether it has lasted as long as it may.
    fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn set(&mut self, stream: &TcpStream, millis: u64) {
        if millis != self.millis && stream.set_read_timeout((millis > 0).then(|| Duration::from_millis(millis))).is_ok()
        {
            self.millis = millis;
        }
    }
}

/// In full: a wait that ends a moment early would begin anew for nothing.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// Names of the start-up options that a newer protocol would know, and the version asked for.
#[derive(Debug)]
pub struct Negotiate {
    unknown: Vec<String>,
}

impl Negotiate {
    fn write(&self, out: &mut Vec<u8>) {
        let unknown: Vec<&str> = self.unknown.iter().map(String::as_str).collect();
        backend::negotiate_version(out, wire::startup::MINOR_VERSION, &unknown);
    }
}

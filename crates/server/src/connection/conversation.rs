//! Messages to calls of the session, its answers to messages.

use super::Negotiate;
use crate::metrics::WireMetrics;
use crate::registry::Ticket;
use crate::wire::Outbox;
use crate::wire::backend;
use crate::wire::frontend::{self, Frontend, Target};
use sql::session::{Executed, Session, TransactionStatus};
use sql::{Field, Output, SqlError, SqlState};
use std::io;
use std::net::TcpStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// What comes next on the connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next message.
    Next,
    /// Nothing: the client said goodbye.
    Goodbye,
}

/// A session with its outbox.
pub struct Conversation<'a> {
    session: Session,
    outbox: Outbox<&'a TcpStream>,
    metrics: &'a WireMetrics,
    /// After an error: up to the next Sync.
    skipping: bool,
    /// The COPY under way came by a simple query: its end is answered with ReadyForQuery.
    copy_is_simple: bool,
    /// A large message was handled since the client was last waited for.
    large: bool,
}

/// From this size on what a message made is worth the allocator's attention: beyond it texts are not cached, so all of it was freed.
const LARGE_MESSAGE_BYTES: usize = 16 << 10;

/// Who waits for a client to read looks so often whether to go on.
const UNREAD_LOOK_EVERY: Duration = Duration::from_millis(500);

impl<'a> Conversation<'a> {
    /// A conversation that has not begun.
    pub fn new(session: Session, stream: &'a TcpStream, metrics: &'a WireMetrics) -> Self {
        // Where the socket refuses that, a client that does not read is waited for without a look.
        let _ = stream.set_write_timeout(Some(UNREAD_LOOK_EVERY));
        Conversation {
            outbox: Outbox::new(stream).waiting_while(session.may_wait_for_client()),
            session,
            metrics,
            skipping: false,
            copy_is_simple: false,
            large: false,
        }
    }

    /// Tells the client that it is in.
    pub fn greet(&mut self, ticket: &Ticket, negotiate: Option<&Negotiate>) -> io::Result<()> {
        let parameters = self.session.initial_parameters();
        let out = self.outbox.buffer();
        if let Some(negotiate) = negotiate {
            negotiate.write(out);
        }
        backend::authentication_ok(out);
        for (name, value) in &parameters {
            backend::parameter_status(out, name, value);
        }
        backend::backend_key(out, ticket.pid(), ticket.secret());
        for notice in self.session.take_start_notices() {
            self.outbox.notice(&notice);
        }
        self.ready()
    }

    /// Whether another session has ended this one: what is to be said of it is said when the connection closes.
    pub fn is_ended(&self) -> bool {
        self.session.is_ended()
    }

    /// Whether something large was done since this was last asked; not within a COPY, which goes on as large as it is.
    pub fn was_large(&mut self) -> bool {
        !self.session.in_copy() && (std::mem::take(&mut self.large) | sql::memory::held_much())
    }

    /// For the socket's receive timeout.
    pub fn idle_timeout_ms(&self) -> u64 {
        self.session.idle_timeout_ms()
    }

    /// The milliseconds until the open block's snapshot is too old; `None`: never.
    pub fn snapshot_left_ms(&self) -> Option<u64> {
        self.session.snapshot_left_ms()
    }

    /// Rolls the open block back if its snapshot is too old; the client hears of it at its next statement.
    pub fn give_up_old_snapshot(&mut self) {
        if self.session.give_up_old_snapshot() {
            self.session.wait_for_client();
        }
    }

    /// Whether the session is in a block.
    pub fn is_in_block(&self) -> bool {
        self.session.transaction_status() != TransactionStatus::Idle
    }

    /// Nothing more has arrived. An error is not held back: a client that sent no Sync may wait for it.
    pub fn before_waiting(&mut self) -> io::Result<()> {
        self.session.pauses();
        if self.skipping { self.outbox.flush() } else { Ok(()) }
    }

    /// Handles one message; `goes_on`: what it can be handled together with comes next, and has arrived ([`Inbox::goes_on`](crate::wire::Inbox::goes_on)).
    pub fn handle(&mut self, tag: u8, body: &[u8], goes_on: bool) -> io::Result<Flow> {
        if self.skipping && !matches!(tag, b'S' | b'X') {
            return Ok(Flow::Next);
        }
        self.large |= body.len() >= LARGE_MESSAGE_BYTES;
        match frontend::read(tag, body) {
            Ok(Frontend::Terminate) => return Ok(Flow::Goodbye),
            Ok(message) if self.session.in_copy() => self.copying(&message, tag, goes_on)?,
            Ok(message) => self.message(message, goes_on)?,
            Err(error) => {
                self.session.fail();
                self.failed(&error);
                if tag == b'Q' {
                    self.ready()?;
                } else {
                    self.skipping = true;
                }
            }
        }
        if self.outbox.is_broken() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(Flow::Next)
    }

    /// A message was dropped, because those of all clients were too large together.
    pub fn too_large(&mut self, tag: u8, limit_bytes: usize) -> io::Result<()> {
        if self.skipping {
            return Ok(());
        }
        let message = format!("the large messages of all clients together would exceed {limit_bytes} bytes");
        let error = SqlError::new(SqlState::OUT_OF_MEMORY, message)
            .hint("Send it again, in smaller pieces, or load data with COPY.");
        let copying = self.session.in_copy();
        if copying {
            self.session.copy_fail(&error.message);
        } else {
            self.session.fail();
        }
        self.failed(&error);
        if matches!(tag, b'Q' | b'F') || (copying && self.copy_is_simple) {
            return self.ready();
        }
        self.skipping = true;
        Ok(())
    }

    fn message(&mut self, message: Frontend<'_>, sync_follows: bool) -> io::Result<()> {
        let done = match message {
            Frontend::Query(text) => return self.query(text),
            Frontend::Sync => return self.sync(),
            Frontend::Flush => return self.outbox.flush(),
            Frontend::FunctionCall => {
                self.session.fail();
                self.failed(&SqlError::unsupported("the function-call sub-protocol"));
                return self.ready();
            }
            // Left over from a COPY that failed: PostgreSQL drops them too.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) | Frontend::Terminate => return Ok(()),
            Frontend::Password => {
                self.session.fail();
                Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, "nobody asked for a password"))
            }
            Frontend::Parse { name, text, types } => {
                self.session.parse(name, text, &types).map(|()| backend::bare(self.outbox.buffer(), b'1'))
            }
            Frontend::Bind(bind) => self
                .session
                .bind(bind.portal, bind.statement, &bind.parameters, &bind.formats, &bind.result_formats)
                .map(|()| backend::bare(self.outbox.buffer(), b'2')),
            Frontend::Describe(Target::Statement, name) => self.describe_statement(name),
            Frontend::Describe(Target::Portal, name) => self.describe_portal(name, sync_follows),
            Frontend::Execute { portal, max_rows } => self.execute(portal, max_rows, sync_follows),
            Frontend::Close(target, name) => {
                match target {
                    Target::Statement => self.session.close_statement(name),
                    Target::Portal => self.session.close_portal(name),
                }
                backend::bare(self.outbox.buffer(), b'3');
                Ok(())
            }
        };
        if let Err(error) = done {
            self.failed(&error);
            self.skipping = true;
        }
        // CopyInResponse must leave: the client waits for it before it sends data.
        if self.session.in_copy() { self.outbox.flush() } else { Ok(()) }
    }

    fn query(&mut self, text: &str) -> io::Result<()> {
        let running = Running::new(self.metrics);
        let done = self.session.simple_query(text, &mut self.outbox);
        drop(running);
        if let Err(error) = done {
            self.failed(&error);
        }
        self.copy_is_simple = true;
        self.ready_unless_copying()
    }

    fn execute(&mut self, portal: &str, max_rows: u32, sync_follows: bool) -> Result<(), SqlError> {
        let running = Running::new(self.metrics);
        let done = self.session.execute(portal, max_rows, sync_follows, &mut self.outbox);
        drop(running);
        match done? {
            Executed::Complete => {}
            Executed::Suspended => backend::bare(self.outbox.buffer(), b's'),
            Executed::CopyIn => self.copy_is_simple = false,
        }
        Ok(())
    }

    fn describe_statement(&mut self, name: &str) -> Result<(), SqlError> {
        let (types, fields) = self.session.describe_statement(name)?;
        let out = self.outbox.buffer();
        let at = backend::begin(out, b't');
        out.extend_from_slice(&(types.len() as u16).to_be_bytes());
        for oid in types {
            out.extend_from_slice(&oid.to_be_bytes());
        }
        backend::end(out, at);
        shape(&mut self.outbox, fields.as_deref(), &[]);
        Ok(())
    }

    fn describe_portal(&mut self, name: &str, alone: bool) -> Result<(), SqlError> {
        let (fields, formats) = self.session.describe_portal(name, alone)?;
        shape(&mut self.outbox, fields, formats);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.skipping = false;
        if let Err(error) = self.session.sync() {
            self.failed(&error);
        }
        self.ready()
    }

    /// A message while `COPY FROM STDIN` is under way.
    fn copying(&mut self, message: &Frontend<'_>, tag: u8, goes_on: bool) -> io::Result<()> {
        let done = match message {
            Frontend::CopyData(data) if goes_on => match self.session.copy_part(data) {
                Ok(()) => return Ok(()),
                failed => failed,
            },
            Frontend::CopyData(data) => match self.session.copy_data(data) {
                Ok(()) => return Ok(()),
                failed => failed,
            },
            Frontend::CopyDone => self.session.copy_done(&mut self.outbox),
            Frontend::CopyFail(reason) => Err(self.session.copy_fail(reason)),
            // Clients send them before they notice that the statement was a COPY.
            Frontend::Flush | Frontend::Sync => return Ok(()),
            _ => {
                let unexpected = format!("unexpected message type 0x{tag:02x} during COPY from stdin");
                self.session.copy_fail(&unexpected);
                Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, unexpected))
            }
        };
        if let Err(error) = &done {
            self.failed(error);
            self.skipping = !self.copy_is_simple;
        }
        if self.copy_is_simple { self.ready_unless_copying() } else { Ok(()) }
    }

    fn ready_unless_copying(&mut self) -> io::Result<()> {
        if self.session.in_copy() { self.outbox.flush() } else { self.ready() }
    }

    fn ready(&mut self) -> io::Result<()> {
        if self.is_ended() {
            return Ok(());
        }
        self.session.wait_for_client();
        let status = match self.session.transaction_status() {
            TransactionStatus::Idle => b'I',
            TransactionStatus::InBlock => b'T',
            TransactionStatus::Failed => b'E',
        };
        if let Some((name, token)) = self.session.take_token_report() {
            backend::parameter_status(self.outbox.buffer(), name, &token);
        }
        backend::ready_for_query(self.outbox.buffer(), status);
        self.outbox.flush()
    }

    fn failed(&mut self, error: &SqlError) {
        self.metrics.failures.fetch_add(1, Relaxed);
        if !self.is_ended() {
            self.outbox.error(error);
        }
    }
}

/// A statement that runs; dropping it counts it, also in a panic.
struct Running<'a> {
    metrics: &'a WireMetrics,
    began: Instant,
}

impl<'a> Running<'a> {
    fn new(metrics: &'a WireMetrics) -> Self {
        metrics.active.fetch_add(1, Relaxed);
        Running { metrics, began: Instant::now() }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.metrics.active.fetch_sub(1, Relaxed);
        self.metrics.queries.fetch_add(1, Relaxed);
        self.metrics.latency.record(self.began.elapsed().as_micros() as u64);
    }
}

/// RowDescription, maybe of no columns, or NoData where there are no rows.
fn shape(outbox: &mut Outbox<&TcpStream>, fields: Option<&[Field]>, formats: &[i16]) {
    match fields {
        None => backend::bare(outbox.buffer(), b'n'),
        Some(fields) => outbox.row_description(fields, formats),
    }
}

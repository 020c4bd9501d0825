//! The PostgreSQL wire protocol, version 3, as bytes: what comes in is parsed in place, what goes out is written once.
//!
//! **Problem.** A prepared point select costs a session a few microseconds; a codec that copies each message into owned strings,
//! and each row into a message of its own, costs as much again.
//!
//! **Idea.** One [`Inbox`] per connection receives as many pipelined messages as one `recv` gives; [`frontend`] reads each of them
//! where it lies. One [`Outbox`] receives the answers, rows straight from their values, and leaves in one `send` per Sync or
//! Flush. Layouts are those of the PostgreSQL manual, chapter "Frontend/Backend Protocol", "Message Formats".
//!
//! **Invariants.**
//! 1. A length read from the client never allocates: buffers grow as bytes arrive, never past [`MESSAGE_BYTES_MAX`], and those of
//!    all clients together never past [`budget::LARGE_MESSAGES_BYTES_MAX`] beyond what each has of its own.
//! 2. A message is parsed in full, with nothing left over, or refused with 08P01.
//! 3. What has left for the client is never taken back ([`sql::Output::rewind`] says so).
//!
//! **Caveats.** No TLS and no passwords yet: `SSLRequest` and `GSSENCRequest` are answered `N`.

pub mod backend;
pub mod budget;
pub mod frontend;
pub mod inbox;
pub mod outbox;
pub mod startup;
pub mod value;

pub use inbox::Inbox;
pub use outbox::Outbox;

/// The greatest message accepted, in bytes: three times the greatest value of 16 MiB, with room for its statement.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// The greatest message of a kind that carries no statement and no data, in bytes (PostgreSQL's bound for the same).
pub const SMALL_MESSAGE_BYTES_MAX: usize = 10_000;
/// The greatest start-up packet, in bytes (PostgreSQL's bound for the same).
pub const STARTUP_BYTES_MAX: usize = 10_000;

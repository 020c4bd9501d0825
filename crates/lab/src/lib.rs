//! Workloads and experiments, against any database that speaks the Postgres protocol.
//!
//! [`client`] is a small blocking client, [`bench`] the workloads that it runs.
// This is a shell: clocks, threads and sockets are its work.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod bench;
pub mod client;

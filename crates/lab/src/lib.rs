//! Workloads and experiments, against any database that speaks the Postgres protocol.
//!
//! [`client`] is a small blocking client, [`mod@bench`] the workloads that it runs. [`clock`] looks at bounded clocks and
//! repeats 000's measurements of them, [`plot`] draws.
// This is a shell: clocks, threads and sockets are its work.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod bench;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod experiments;
pub mod plot;

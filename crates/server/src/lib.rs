//! The real world: sockets, files, threads, configuration, metrics.
//!
//! [`Server`] binds the sockets and owns the threads; [`wire`] is the protocol as bytes, [`connection`] one client's thread,
//! [`registry`] all of them. [`kv`] is the blocking shell around the node that is alone, [`cluster`] around a member of a cluster.
// This is a shell: clocks, threads and sockets are its work.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]
// `SqlError` is wide on purpose: it is rare, and it is what a user reads.
#![allow(clippy::result_large_err)]

pub mod cluster;
pub mod connection;
#[cfg(test)]
mod distance;
pub mod garbage;
pub mod health;
pub mod http;
pub mod kv;
pub mod listener;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod privacy;
pub mod purge;
pub mod registry;
pub mod server;
pub mod store_dir;
pub mod wire;

pub use health::Health;
pub use memory::{Allocator, Memory, Shares};
pub use server::{NodeView, Options, Server, StartError};
pub use store_dir::StoreDir;

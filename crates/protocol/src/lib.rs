//! The protocol cores: transactions and logs as plain state machines.
//!
//! A core owns no thread, reads no clock, opens no socket and touches no disk (design §7). Commands and replies are values;
//! whoever drives a core carries them.
#![warn(missing_docs)]

pub mod door;
pub mod log;
pub mod txn;
mod wire;

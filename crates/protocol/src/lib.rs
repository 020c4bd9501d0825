//! The protocol cores: transactions and logs as plain state machines.

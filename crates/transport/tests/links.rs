//! Real sockets on loopback: links, restarts, refusals, peers that stop reading, and strangers.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, missing_docs)]

#[path = "links/carry.rs"]
mod carry;
#[path = "links/control.rs"]
mod control;
#[path = "links/node.rs"]
mod node;
#[path = "links/refusals.rs"]
mod refusals;
#[path = "links/stalls.rs"]
mod stalls;
#[path = "links/strangers.rs"]
mod strangers;

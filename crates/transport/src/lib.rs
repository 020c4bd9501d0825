//! Carries opaque bytes between the nodes of a cluster.
//!
//! # The problem
//!
//! A node's brain speaks in messages and does not care whether they come late, twice, in another order or not at all. Between two real
//! machines there are only streams of bytes, which stall, break, end in the middle, or lead to somebody else. This crate is the part in
//! between: it finds out who is at the other end, keeps heartbeats from standing behind snapshots, forgets what cannot be
//! delivered instead of holding it for ever, and never lets the brain wait for a socket.
//!
//! # The idea
//!
//! ```text
//!  node 1                                                         node 2
//!  send(parcel) ─▶ queue, lane 0 ─▶ ══ a connection ══════▶ reader ─▶ deliver(parcel)
//!               ─▶ queue, lane 1 ─▶ ══ a connection ══════▶ reader ─▶ deliver(parcel)
//!               ─▶ queue, lane 2 ─▶ ══ a connection ══════▶ reader ─▶ deliver(parcel)
//!  deliver ◀─ reader ◀══════════ three more connections, which node 2 dials ══
//! ```
//!
//! Who wants to send dials: a connection carries parcels in one direction, from the dialer to the acceptor. Each peer has [`LANES`] of them, so that
//! the kernel, too, holds nothing of a small lane behind a large one. A thread per outgoing lane dials, shakes hands, writes what is queued,
//! and dials again; a thread per incoming connection reads and delivers. Where nothing stands before it, a small parcel is written by
//! its sender's own thread, without blocking: this saves the switch to the lane's.
//!
//! The **handshake** ([`hello`]) is three messages: who I am and whom I look for; who answers, or why not; and whether the dialer, who now knows more,
//! still wants to. It names versions (of the protocol, and those of the cluster that the program knows), cluster, node, store and incarnation. A [`Refusal`] is typed, known at both ends,
//! and reported once until something changes, though the dialer goes on trying.
//!
//! A **parcel** on the wire is its length, a checksum and its bytes ([`frame`]). TCP's own checksum of 16 bits lets one in 65,000 damaged segments
//! pass, and what travels here is written to the logs of a majority: so it has a CRC-32, as the logs have.
//!
//! # Invariants
//!
//! 1. A parcel is delivered whole and as it was sent, to the node that it names in the cluster that it was sent in, or not at all.
//! 2. Nobody who sends waits: not for a peer, not for a lane, not for a connection. Beyond its bound a queue drops, and counts.
//! 3. A lane that stalls holds up no other lane and no other peer, except where `deliver` itself blocks.
//! 4. A store that is not the one known under its node's number sends nothing and receives nothing; neither does an older life of
//!    a node than one that was seen.
//!    A later life is let in once the earlier one is over: the connections that it made, or those that were dialed to it, have ended, or nothing came of it for [`ALIVE`]. An
//!    earlier one is let in only where the later one has said itself that it was a copy ([`Transport::disown`]).
//! 5. A connection that carries nothing for [`SILENCE`], or takes nothing for [`STALL`], is gone.
//! 6. Whoever has not said who he is costs a bounded number of threads, a bounded time, and no memory for what he only announces.
//!
//! # Caveats
//!
//! - **There is no security yet**: no encryption, no proof of who somebody is. The handshake catches mistakes, not malice: who
//!   knows the numbers of a cluster can send what he likes, and can shut a node out by claiming a later life of it. Listen where only the cluster can reach.
//! - A parcel that was written may still be lost with its connection, and one that was written in part is dropped. There are no acknowledgements.
//! - Within a lane the order is that of sending while one connection lasts; across a reconnection parcels may come out of order.
//! - What was seen of a node is remembered in memory: who restarts takes the process that it meets first. So two processes on copies of one store are told apart by peers that have
//!   heard one of them before, as long as that one is there ([`Refusal::Alive`], [`Refusal::Copy`]); an old copy that comes after it is gone is a later life like any other.
//! - A name is resolved in the lane's thread; [`Transport::stop`] waits for a resolver that hangs. Addresses in numbers do not ask one.
// This is a shell: clocks, threads and sockets are its work.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod backoff;
pub mod control;
mod dial;
mod door;
mod entrance;
mod event;
pub mod frame;
mod guests;
pub mod hello;
mod inbound;
mod lane;
mod lane_thread;
mod options;
mod peer;
mod queue;
mod refusal;
mod status;
mod timed;
mod transport;
mod wake;

pub use control::control;
pub use door::Door;
pub use event::Event;
pub use options::*;
pub use refusal::Refusal;
pub use status::{LaneStatus, LinkStatus};
pub use transport::Transport;

use bytes::Bytes;
use std::ops::RangeInclusive;

/// Connections to a peer: lane 0 overtakes lane 1, which overtakes lane 2.
pub const LANES: usize = 3;

/// Who a node is: sent and checked in the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's number.
    pub cluster: u64,
    /// The node's number in it.
    pub node: u32,
    /// A random number that was written when the store was made: a store that was wiped comes back under another.
    pub store: u128,
    /// Which life of the node this is: each start has a greater one.
    pub incarnation: u64,
    /// The program's version, for people to read.
    pub release: String,
    /// The versions of the cluster that the program knows.
    pub knows: RangeInclusive<u16>,
    /// Drawn anew at each start: two processes on copies of one store may be the same life of it, and are told apart by this. 0: not said.
    pub start: u64,
    /// Where the store's log ended when its process started: all that an earlier life has acknowledged lies at or below. `None`: not said.
    pub began_after: Option<u64>,
}

/// Another node of the cluster, and where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number.
    pub node: u32,
    /// Its store's number.
    pub store: u128,
    /// Host and port; a name is resolved at each attempt.
    pub addr: String,
}

/// Bytes from one node for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Who sends it: what is sent is always from this node; what is delivered, from whoever shook hands.
    pub from: u32,
    /// For whom.
    pub to: u32,
    /// Below [`LANES`].
    pub lane: usize,
    /// At most [`PARCEL_BYTES_MAX`], at least one.
    pub bytes: Bytes,
}

/// Takes what arrived together on a connection, in the order in which it was sent, so that who syncs a disk for it can do so once. On the thread that reads:
/// several at once, one for each lane of each peer. While it blocks that connection is not read, and after [`STALL`] the sender gives it up.
pub type Deliver = Box<dyn Fn(Vec<Parcel>) + Send + Sync>;

/// For who takes parcels one by one.
pub fn each(deliver: impl Fn(Parcel) + Send + Sync + 'static) -> Deliver {
    Box::new(move |parcels| parcels.into_iter().for_each(&deliver))
}

/// Answers a control request; see [`control()`].
pub type Control = Box<dyn Fn(Bytes) -> Bytes + Send + Sync>;

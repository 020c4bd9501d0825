//! What an operator may want to read.

use crate::Refusal;
use crate::frame::FrameError;
use std::fmt;
use std::net::IpAddr;

/// Something happened. Each is told once, until it is over or something else happens: attempts that go on failing are silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// All lanes to a peer are connected.
    Up {
        /// The peer.
        node: u32,
        /// Where it is.
        addr: String,
        /// Which life of it.
        incarnation: u64,
        /// Its program's version.
        release: String,
    },
    /// A link that was up has lost a lane.
    Down {
        /// The peer.
        node: u32,
        /// Why.
        error: String,
    },
    /// A peer cannot be reached, and was not before either.
    Unreachable {
        /// The peer.
        node: u32,
        /// Where it should be.
        addr: String,
        /// Why.
        error: String,
    },
    /// A peer that was dialed refuses this node, or this node refuses it.
    RefusedAtDial {
        /// The peer that was dialed.
        node: u32,
        /// Where it is.
        addr: String,
        /// Whether this node is the one that refuses.
        by_this_node: bool,
        /// Why.
        refusal: Refusal,
    },
    /// Somebody who dialed this node was refused by it, or refused it.
    RefusedAtDoor {
        /// The number that he came with.
        node: u32,
        /// Where he came from.
        from: IpAddr,
        /// Whether this node is the one that refuses.
        by_this_node: bool,
        /// Why.
        refusal: Refusal,
    },
    /// A peer goes on hearing an earlier life of this node, it says: this process runs on a copy of its store, and is to stop.
    Copy {
        /// The peer.
        node: u32,
        /// What it says.
        refusal: Refusal,
    },
    /// Somebody connected who does not speak the protocol.
    Noise {
        /// Where he came from.
        from: IpAddr,
        /// What was wrong.
        problem: String,
    },
    /// A peer sent what cannot be read; the connection was closed.
    Broken {
        /// The peer.
        node: u32,
        /// What was wrong.
        error: FrameError,
    },
    /// The queue of a lane is full: parcels are dropped. Told once until the queue was empty again.
    Dropping {
        /// For whom they are.
        node: u32,
        /// Their lane.
        lane: usize,
    },
    /// A parcel that is too long, empty, or for nobody known was given to send: told once for each peer.
    Unsendable {
        /// For whom it was.
        node: u32,
        /// What is wrong.
        problem: &'static str,
    },
    /// Connections cannot be accepted: out of descriptors or threads, say. Told once until one is accepted again.
    NotAccepting {
        /// Why.
        error: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Up { node, addr, incarnation, release } => {
                write!(f, "n{node} at {addr} is connected: life {incarnation}, release {release}")
            }
            Event::Down { node, error } => write!(f, "n{node} is lost: {error}"),
            Event::Unreachable { node, addr, error } => write!(f, "n{node} at {addr} cannot be reached: {error}"),
            Event::RefusedAtDial { node, addr, by_this_node: true, refusal } => {
                write!(f, "n{node} at {addr} was refused: this node {refusal}")
            }
            Event::RefusedAtDial { node, addr, by_this_node: false, refusal } => {
                write!(f, "n{node} at {addr} refuses this node: it {refusal}")
            }
            Event::RefusedAtDoor { node, from, by_this_node: true, refusal } => {
                write!(f, "n{node} came from {from} and was refused: this node {refusal}")
            }
            Event::RefusedAtDoor { node, from, by_this_node: false, refusal } => {
                write!(f, "n{node} came from {from} and refuses this node: it {refusal}")
            }
            Event::Copy { node, refusal } => {
                write!(f, "n{node} goes on refusing this node, for another process of it: it {refusal}")
            }
            Event::Noise { from, problem } => write!(f, "a connection from {from} is no node's: {problem}"),
            Event::Broken { node, error } => write!(f, "what n{node} sends cannot be read: {error}"),
            Event::Dropping { node, lane } => {
                write!(f, "the queue for n{node}, lane {lane}, is full: messages are dropped")
            }
            Event::Unsendable { node, problem } => write!(f, "a message for n{node} cannot be sent: {problem}"),
            Event::NotAccepting { error } => write!(f, "connections cannot be accepted: {error}"),
        }
    }
}

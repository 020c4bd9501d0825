//! The door of a range: what transactions ask of the replica that leads it, from wherever they run.
//!
//! # Problem
//! A transaction runs on the node to which its client is connected, its gateway; the ranges that it touches are led elsewhere, by replicas that
//! change. Questions and answers get lost, come twice, come late, and come to somebody who leads no more.
//!
//! # Idea
//! A range has one door. Through it go [`Request`]s, each with a number of its gateway's, and out come [`Answer`]s with the same number. Where the gateway
//! itself leads, the door is a call; elsewhere both travel in [`Frame`]s. A request is sent again, perhaps to another replica, until it is answered.
//!
//! # Invariants
//! 1. Asking twice does no harm: reads change nothing, locks and what is committed are known by the transaction's number.
//! 2. Only who leads under a lease answers; others say who might. [`Answer::NotLeader`] and [`Answer::TryLater`] mean that nothing was done by *this* copy.
//! 3. What comes in is checked: bytes of another version, or that do not parse, are an error and nothing else.
//!
//! # Caveats
//! Frames are trusted to come from their sender: keeping strangers out is the transport's part.

/// The version of the cluster in which requests about locks of sessions ([`Request::Hold`], [`Request::Keep`]) and word by way of a third
/// ([`Body::Forward`]) are new. (Which one is in force, and who raises it, is the nodes' business.)
pub const VERSION_OF_SESSION_LOCKS: u16 = 3;
/// The version of the cluster in which [`Body::Near`] is new.
pub const VERSION_OF_NEAR_READS: u16 = 3;
/// From this version of the cluster on frames say how far their senders' logs reach.
pub const VERSION_OF_REACHES: u16 = 3;
/// The version of the cluster in which [`Request::Settled`] is new.
pub const VERSION_OF_NEGOTIATION: u16 = 3;
/// The version of the cluster in which [`Request::Time`] is new.
pub const VERSION_OF_LENT_TIME: u16 = 3;
/// From this version of the cluster on commits say what they have seen of who refers to a key, and leaders go by it.
pub const VERSION_OF_REFERENCES: u16 = 4;
/// The version of the cluster in which requests for many keys at a time are new ([`Request::GetMany`], [`Request::LockMany`]).
pub const VERSION_OF_MANY_KEYS: u16 = 3;

mod answer;
mod frame;
mod request;
mod words;

pub use answer::{Answer, CommitWait, Found, LockedKey, Place, VERSION_OF_COMMIT_WAITS};
pub use frame::{Body, Claim, Frame, FrameError};
pub use request::{Held, Look, Request, Returned, Seen};

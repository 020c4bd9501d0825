//! Replicated, timestamped logs (design §3). A log takes commands, gives each a timestamp and a place, and says when it can be
//! applied. [`Single`] has one replica and one durable log; in [`raft`] replicas on several stores agree.

pub mod raft;
mod single;

pub use single::{Entry, LogIndex, Single};

//! What clients and machines say to each other.

use clock::Timestamp;
use protocol::log::raft::StoreId;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Write a register.
    Write {
        /// Which.
        key: u64,
        /// A value that is written once in a run.
        value: u64,
    },
    /// Write it if it holds `from`.
    Swap {
        /// Which.
        key: u64,
        /// What it should hold.
        from: Option<u64>,
        /// A value that is written once in a run.
        to: u64,
    },
    /// Read it.
    Read {
        /// Which.
        key: u64,
    },
    /// A timestamp above all that is certainly acknowledged.
    Latest,
    /// Read it at a timestamp, at the leader.
    Snapshot {
        /// Which.
        key: u64,
        /// When.
        at: Timestamp,
    },
    /// Read it at what is closed at any replica.
    Past {
        /// Which.
        key: u64,
    },
}

/// What a machine answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was written at this time; `false`: it held something else, and was not.
    Written(Timestamp, bool),
    /// It held this at that time.
    Found(Timestamp, Option<u64>),
    /// A timestamp.
    Latest(Timestamp),
    /// Nothing was done by this message: ask the other one, or again.
    NotHere(Option<StoreId>),
    /// The client has asked for something later already.
    Old,
}

/// A message between a client and a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// A client asks: its number for the request, and what.
    Ask(u64, Ask),
    /// A machine answers to the request of that number.
    Answer(u64, Answer),
}

impl Talk {
    /// About so many bytes.
    pub fn bytes(&self) -> usize {
        40
    }
}

//! What locks and transactions there are, for those who look. The layers below know transactions by their numbers, and sessions of their own node.

use super::{Consistency, LockMode};
use bytes::Bytes;
use std::fmt;
use std::str::FromStr;

/// The number of a transaction, unique in the cluster. As text: the node, a dot, the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TxnNumber {
    /// The node that began it.
    pub node: u32,
    /// Which one of that node's.
    pub serial: u64,
}

impl fmt::Display for TxnNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.serial)
    }
}

impl FromStr for TxnNumber {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (node, serial) = text.split_once('.').ok_or(())?;
        Ok(TxnNumber { node: node.parse().map_err(drop)?, serial: serial.parse().map_err(drop)? })
    }
}

/// A lock that is held or waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownLock {
    /// The key.
    pub key: Bytes,
    /// Who holds it, or waits.
    pub txn: TxnNumber,
    /// How.
    pub mode: LockMode,
    /// Held, else waited for.
    pub granted: bool,
    /// Whom it waits for.
    pub before: Vec<TxnNumber>,
}

/// Who is known to a node's table of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockOwner {
    /// The transaction.
    pub txn: TxnNumber,
    /// The session of this node that it is of; none where it is another node's.
    pub session: Option<u64>,
    /// It is no transaction, but a lock that a session keeps over its transactions.
    pub lasting: bool,
    /// Locks held here, about.
    pub held: usize,
}

/// A transaction that is prepared at a range of this node, and undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedPart {
    /// The transaction.
    pub txn: TxnNumber,
    /// The range.
    pub range: u64,
    /// Keys that it writes there.
    pub keys: usize,
}

/// What a transaction has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Its number, if it has one already.
    pub txn: Option<TxnNumber>,
    /// The mode in force.
    pub consistency: Consistency,
    /// Keys written.
    pub keys: usize,
    /// Bytes that these take, about.
    pub bytes: usize,
}

//! What clients did and saw.

use std::collections::BTreeSet;

/// A register's name.
pub type Key = u64;

/// A written value: its identity is unique in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value {
    /// Unique in the history.
    pub id: u64,
    /// What it means to the workload (a balance).
    pub amount: i64,
}

/// The isolation that a transaction asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// All its reads count for cycles.
    Serializable,
    /// One snapshot; no lost update; write skew is allowed.
    Snapshot,
    /// A snapshot per statement.
    ReadCommitted,
}

/// The recency that a transaction asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recency {
    /// Ordered after all that was acknowledged before it began.
    Strict,
    /// Sees, per key, all that was acknowledged before it began.
    Hybrid,
    /// Sees what its session saw and wrote.
    Token,
    /// Any consistent snapshot.
    Any,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Acknowledged.
    Committed,
    /// Refused or given up.
    Aborted,
    /// The answer was lost: see [`crate::storage::settle`].
    Unknown,
}

/// What a transaction did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read one key.
    Read {
        /// Which.
        key: Key,
        /// The snapshot it was read at, as the database says; `None` where the transaction's own write was read.
        snapshot: Option<u64>,
        /// What was found.
        found: Option<Value>,
    },
    /// Read all keys of a span.
    Scan {
        /// First key.
        from: Key,
        /// The key after the last.
        to: Key,
        /// As above.
        snapshot: Option<u64>,
        /// Keys found, in order.
        found: Vec<(Key, Value)>,
    },
    /// Wrote one key.
    Write {
        /// Which.
        key: Key,
        /// What.
        value: Value,
    },
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// True time at which its statement began, nanoseconds.
    pub began: u64,
    /// What it was.
    pub action: Action,
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txn {
    /// Unique in the history.
    pub id: u64,
    /// Its session: transactions of one session follow each other.
    pub session: u32,
    /// What it asked for.
    pub isolation: Isolation,
    /// What it asked for.
    pub recency: Recency,
    /// True time at which it began, nanoseconds.
    pub began: u64,
    /// True time at which its end was known to the client, nanoseconds; `u64::MAX` where it never was.
    pub ended: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its commit timestamp, or its snapshot if it wrote nothing; as the database says.
    pub position: u64,
    /// What it did, in order.
    pub ops: Vec<Op>,
}

impl Txn {
    /// Whether it wrote anything.
    pub fn writes(&self) -> bool {
        self.ops.iter().any(|op| matches!(op.action, Action::Write { .. }))
    }
}

/// All transactions of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// In any order; those of one session in theirs.
    pub txns: Vec<Txn>,
}

impl History {
    /// Every key that was named.
    pub fn keys(&self) -> BTreeSet<Key> {
        let mut keys = BTreeSet::new();
        for op in self.txns.iter().flat_map(|t| &t.ops) {
            match &op.action {
                Action::Read { key, .. } | Action::Write { key, .. } => {
                    keys.insert(*key);
                }
                Action::Scan { found, .. } => keys.extend(found.iter().map(|(key, _)| *key)),
            }
        }
        keys
    }
}

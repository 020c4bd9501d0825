use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::{Cause, Refusal, Waiter};
use store::StoreError;

/// A transaction failed, and what its owner must do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TxnError {
    /// A conflict: run the transaction (READ COMMITTED: the statement) again.
    #[error("{reason}")]
    Restart {
        /// What conflicted.
        reason: String,
        /// The key that it is about.
        key: Option<Bytes>,
    },
    /// This transaction is the victim of a deadlock: roll it back.
    #[error("deadlock: {}", shown(cycle))]
    Deadlock {
        /// Who waits for what; each is blocked by the next one, the last by the first.
        cycle: Vec<Waiter>,
    },
    /// The lock is held and the caller did not want to wait.
    #[error("another transaction holds the lock")]
    LockNotAvailable,
    /// Writes are refused until space is freed; reads go on.
    #[error("the disk is full")]
    DiskFull,
    /// Beyond a limit: ask for less.
    #[error("{what} has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size, bytes.
        bytes: usize,
        /// The limit, bytes.
        limit: usize,
    },
    /// It is large, and its range has no room for it now: so much of other large transactions waits there for their commits.
    #[error(
        "the transaction writes {bytes} bytes to one range, in which large transactions may have {quota} bytes before they commit, and {staged} are taken"
    )]
    Crowded {
        /// What it writes there, bytes.
        bytes: u64,
        /// What is taken, bytes.
        staged: u64,
        /// What there is, bytes.
        quota: u64,
    },
    /// A write in a read-only transaction.
    #[error("cannot write in a read-only transaction")]
    ReadOnly,
    /// The snapshot asked for is collected, or lies in the future.
    #[error("snapshot {asked} cannot be read: {reason}")]
    SnapshotUnavailable {
        /// What was asked for.
        asked: Timestamp,
        /// Why not.
        reason: String,
        /// What was to be read, where other tables can be read at that snapshot.
        key: Option<Bytes>,
    },
    /// The clock's bound does not allow this consistency now: use another, or repair the clock.
    #[error("{0}")]
    ClockUnavailable(String),
    /// The transaction has committed, for certain, and its owner gave up waiting until that is shown. Do not run it again.
    #[error(
        "the transaction has committed at {at}, and is seen once that is certainly past; the wait for it was ended, as {clock}"
    )]
    Unacknowledged {
        /// The commit timestamp.
        at: Timestamp,
        /// What the clock lacks, in numbers.
        clock: String,
    },
    /// The disk failed or its data is damaged: the node must stop. Whether a commit that gets this error took place is unknown until then.
    #[error("{0}")]
    Storage(String),
    /// Whether the transaction has committed could not be learned in time: its ranges do not answer. Ask for what it wrote before running it
    /// again.
    #[error(
        "it is not known whether the transaction has committed: its ranges do not answer; look for what it wrote before running it again"
    )]
    CommitUnknown,
    /// A range gives no sign of life: it has lost its majority, or this node the others. Other ranges go on; try again later.
    #[error("range {range} has given no sign of life for {} seconds: {around}", waited_ticks / 10)]
    Unavailable {
        /// Which.
        range: protocol::txn::RangeId,
        /// For how long, in ticks of 100 ms.
        waited_ticks: u64,
        /// Who asked, who holds it, and who of those is not heard.
        around: String,
        /// The key that was asked for, or the first of a span.
        key: Option<Bytes>,
    },
    /// A later version of the cluster brings it: raise the cluster to that.
    #[error(
        "{what} need version {needs} of the cluster, and version {version} is in force: start a release that knows it on all nodes, and run `timeball cluster upgrade`"
    )]
    NeedsVersion {
        /// What.
        what: &'static str,
        /// The version that brings it.
        needs: u16,
        /// The version that is in force.
        version: u16,
    },
    /// The node stops: go elsewhere.
    #[error("the node is shutting down")]
    ShuttingDown,
}

impl From<StoreError> for TxnError {
    fn from(e: StoreError) -> Self {
        match e {
            StoreError::DiskFull => TxnError::DiskFull,
            StoreError::Collected { asked, oldest, key } => {
                TxnError::SnapshotUnavailable { asked, reason: format!("versions below {oldest} are collected"), key }
            }
            other => TxnError::Storage(other.to_string()),
        }
    }
}

impl From<Refusal> for TxnError {
    fn from(refusal: Refusal) -> Self {
        let reason = match refusal.cause {
            Cause::WriteChanged { at } => format!("another transaction wrote the same row and committed at {at}"),
            Cause::ReadChanged { at: Timestamp::MIN } => {
                "another transaction has come to refer to a key since it was looked for who does".to_owned()
            }
            Cause::ReadChanged { at } => format!("what was read was changed by a transaction that committed at {at}"),
            Cause::Gone => "a row that is referred to was deleted".to_owned(),
            Cause::Undecided { txn } => format!("the row is held by transaction {txn}, which is committing"),
            Cause::TooOld { threshold } => {
                format!("the snapshot is older than {threshold}, below which old versions are collected")
            }
            Cause::Fenced => "it was recovered as aborted while it was committing".to_owned(),
            Cause::Unstaged => {
                "what it wrote was sent in parts, and not all of them were there any more when it committed".to_owned()
            }
            Cause::Crowded { bytes, staged, quota } => return TxnError::Crowded { bytes, staged, quota },
            Cause::Late => "it was on its way for too long while it was committing".to_owned(),
            Cause::Moved => "what it wrote moved to another range too often while it was committing".to_owned(),
        };
        TxnError::Restart { reason, key: Some(refusal.key) }
    }
}

/// `t1 waits for t2 waits for t1`
fn shown(cycle: &[Waiter]) -> String {
    let all: Vec<String> = cycle.iter().chain(cycle.first()).map(|waiter| waiter.txn.to_string()).collect();
    all.join(" waits for ")
}

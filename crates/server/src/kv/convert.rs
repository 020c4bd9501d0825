//! SQL's words and the node's.

use node::TxnError;
use sql::KvError;
use sql::transaction as theirs;

/// How a transaction begins.
pub(crate) fn begin(options: &theirs::BeginOptions) -> node::BeginOptions {
    node::BeginOptions {
        isolation: isolation(options.isolation),
        consistency: consistency(options.consistency),
        uncertainty: match options.uncertainty {
            theirs::Uncertainty::Dynamic => node::Uncertainty::Dynamic,
            theirs::Uncertainty::Static(max_offset_us) => node::Uncertainty::Static(max_offset_us),
            theirs::Uncertainty::Fallback(max_offset_us) => node::Uncertainty::Fallback(max_offset_us),
        },
        commit_wait_budget_ns: options.commit_wait_budget_ns,
        snapshot_age: match options.snapshot_age {
            theirs::SnapshotAge::Present => node::SnapshotAge::Present,
            theirs::SnapshotAge::Fixed(us) => node::SnapshotAge::Fixed(us),
            theirs::SnapshotAge::Tuned => node::SnapshotAge::Tuned,
        },
        token: options.token,
        read_only: options.read_only,
        as_of: options.as_of,
        session: options.session,
        kept: options.kept.clone().map(|theirs::KeptUncertainty { limit, least, caught_up }| node::KeptUncertainty {
            limit,
            least,
            caught_up,
        }),
        if_refused: if options.is_asked_for { node::IfRefused::WhenItReads } else { node::IfRefused::Token },
    }
}

pub(super) fn kept(
    node::KeptUncertainty { limit, least, caught_up }: node::KeptUncertainty,
) -> theirs::KeptUncertainty {
    theirs::KeptUncertainty { limit, least, caught_up }
}

fn isolation(isolation: theirs::Isolation) -> node::Isolation {
    match isolation {
        theirs::Isolation::Serializable => node::Isolation::Serializable,
        theirs::Isolation::RepeatableRead => node::Isolation::Snapshot,
        theirs::Isolation::ReadCommitted => node::Isolation::ReadCommitted,
    }
}

fn consistency(consistency: theirs::Consistency) -> node::Consistency {
    match consistency {
        theirs::Consistency::Auto => node::Consistency::Auto,
        theirs::Consistency::Strict => node::Consistency::Strict,
        theirs::Consistency::Hybrid => node::Consistency::Hybrid,
        theirs::Consistency::Token => node::Consistency::Token,
        theirs::Consistency::None => node::Consistency::None,
        // Its snapshot is given. What a session does beside it is of the present.
        theirs::Consistency::Stale => node::Consistency::Auto,
    }
}

pub(crate) fn settled(consistency: node::Consistency) -> theirs::Consistency {
    match consistency {
        node::Consistency::Auto => theirs::Consistency::Auto,
        node::Consistency::Strict => theirs::Consistency::Strict,
        node::Consistency::Hybrid => theirs::Consistency::Hybrid,
        node::Consistency::Token => theirs::Consistency::Token,
        node::Consistency::None => theirs::Consistency::None,
    }
}

pub(crate) fn lock_mode(mode: theirs::LockMode) -> node::LockMode {
    match mode {
        theirs::LockMode::KeyShare => node::LockMode::KeyShare,
        theirs::LockMode::Share => node::LockMode::Share,
        theirs::LockMode::NoKeyUpdate => node::LockMode::NoKeyUpdate,
        theirs::LockMode::Update => node::LockMode::Update,
    }
}

pub(crate) fn lock_mode_back(mode: node::LockMode) -> theirs::LockMode {
    match mode {
        node::LockMode::KeyShare => theirs::LockMode::KeyShare,
        node::LockMode::Share => theirs::LockMode::Share,
        node::LockMode::NoKeyUpdate => theirs::LockMode::NoKeyUpdate,
        node::LockMode::Update => theirs::LockMode::Update,
    }
}

pub(crate) fn txn_number(txn: node::TxnId) -> theirs::TxnNumber {
    theirs::TxnNumber { node: txn.node, serial: txn.serial }
}

pub(crate) fn shown_lock(lock: node::ShownLock) -> theirs::ShownLock {
    let node::ShownLock { key, txn, mode, granted, before } = lock;
    let before = before.into_iter().map(txn_number).collect();
    theirs::ShownLock { key, txn: txn_number(txn), mode: lock_mode_back(mode), granted, before }
}

pub(crate) fn lock_owner(owner: node::LockOwner) -> theirs::LockOwner {
    let node::LockOwner { txn, session, lasting, held } = owner;
    theirs::LockOwner { txn: txn_number(txn), session, lasting, held }
}

pub(crate) fn prepared((range, txn, keys): (node::RangeId, node::TxnId, usize)) -> theirs::PreparedPart {
    theirs::PreparedPart { txn: txn_number(txn), range: range.0, keys }
}

pub(crate) fn row_waiter(waiter: node::Waiter) -> theirs::RowWaiter {
    let node::Waiter { session, key, mode, .. } = waiter;
    theirs::RowWaiter { session, key, mode: lock_mode_back(mode) }
}

pub(crate) fn when_locked(wait: theirs::LockWait) -> node::WhenLocked {
    match wait {
        theirs::LockWait::Wait => node::WhenLocked::Wait,
        theirs::LockWait::NoWait => node::WhenLocked::Fail,
        theirs::LockWait::Skip => node::WhenLocked::Skip,
    }
}

pub(crate) fn error(e: TxnError) -> KvError {
    match e {
        TxnError::Restart { reason, key } => KvError::Restart { reason, key },
        TxnError::Deadlock { cycle } => KvError::Deadlock { circle: cycle.into_iter().map(row_waiter).collect() },
        // Which key it was knows who asked for it.
        TxnError::LockNotAvailable => KvError::LockNotAvailable { key: None, waited: false },
        TxnError::DiskFull => KvError::DiskFull,
        TxnError::TooLarge { what, bytes, limit } => KvError::TooLarge { what, bytes, limit },
        crowded @ TxnError::Crowded { .. } => KvError::Crowded(crowded.to_string()),
        early @ TxnError::NeedsVersion { .. } => KvError::NeedsVersion(early.to_string()),
        TxnError::ReadOnly => KvError::ReadOnly,
        TxnError::SnapshotUnavailable { asked, reason, key } => KvError::SnapshotUnavailable { asked, reason, key },
        TxnError::ClockUnavailable(why) => KvError::ClockUnavailable(why),
        unacknowledged @ TxnError::Unacknowledged { .. } => KvError::Unacknowledged(unacknowledged.to_string()),
        TxnError::CommitUnknown => KvError::CommitUnknown,
        TxnError::Unavailable { ref key, .. } => KvError::Unavailable { key: key.clone(), told: e.to_string() },
        TxnError::Storage(why) => KvError::Storage(why),
        TxnError::ShuttingDown => KvError::ShuttingDown,
    }
}

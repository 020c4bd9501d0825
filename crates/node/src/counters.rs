use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($(#[doc = $doc:literal] $name:ident),* $(,)?) => {
        /// What happened so far; each only grows.
        #[derive(Debug, Default)]
        pub struct Counters { $(#[doc = $doc] pub $name: Counter,)* }

        impl Counters {
            /// Every counter: its name, what it counts, its value.
            pub fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), $doc.trim_ascii(), self.$name.get()),)*].into_iter()
            }
        }
    };
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn one(&self) {
        self.add(1);
    }
    /// Adds.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }
    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

counters! {
    /// Transactions begun.
    txn_begins,
    /// Transactions committed that wrote.
    txn_commits,
    /// Transactions committed that only read.
    txn_commits_readonly,
    /// Transactions given up, by their owner or after an error.
    txn_aborts,
    /// Commits refused by certification.
    txn_certification_failures,
    /// Commits whose keys lay in several ranges.
    txn_commits_multirange,
    /// Commits that were sent in parts first, as they were large.
    txn_commits_staged,
    /// Those parts.
    parts_sent,
    /// Reads that met a version which may have been past when the transaction began.
    txn_restarts_readwithinuncertainty,
    /// Snapshots moved up without a restart.
    txn_refreshes,
    /// Snapshots that could not move up: the transaction had to restart.
    txn_refresh_failures,
    /// Reads that waited for a write in flight.
    txn_read_waits,
    /// Commits that waited for rule 1 after they were durable: where they are answered, and not at each replica that shows them.
    txn_commit_waits,
    /// How long, together, nanoseconds.
    commit_wait_nanos,
    /// What of the wait for rule 1 replication took anyway, together, nanoseconds.
    commit_wait_hidden_nanos,
    /// Requests that came to the lock table of a node of a cluster: each for one key, or for many of one range together.
    lock_requests,
    /// Row locks that had to queue.
    lock_waits,
    /// How long row locks were waited for together, nanoseconds; in a cluster with the way to who leads.
    lock_wait_nanos,
    /// Deadlocks broken.
    txn_deadlocks,
    /// Undecided transactions resolved by recovery.
    txn_recoveries,
    /// Ranges that this node handed over as its clock was not believed any more.
    fenced_handovers,
    /// Records proposed to the log.
    log_records,
    /// Bytes proposed to the log.
    log_bytes,
    /// Batches of records handed to the disk.
    log_batches,
    /// Timestamps from outside that were refused.
    clock_future_timestamps,
    /// Messages sent to other nodes.
    messages_sent,
    /// Probes after those who are in the way of somebody that waits for a lock, that came to this node.
    deadlock_probes,
    /// Messages that were not sound, or not for this node.
    messages_refused,
    /// Messages that did not leave, as a later version of the cluster brings what they say.
    messages_withheld,
    /// Requests sent to ranges that are led elsewhere, copies included.
    requests_sent,
    /// Of those, what went through a third node, as who leads was not heard.
    requests_relayed,
    /// Requests given up, as their range gave no sign of life.
    requests_unavailable,
    /// Commits whose outcome could not be learned in time.
    commits_unanswered,
    /// Times that a replica here began to lead under a lease.
    leases_begun,
    /// Times that a replica here began to lead a range that was led before: what rows of it were locked is not known any more, and who had locked them may be refused.
    lock_tables_lost,
    /// Transactions of other nodes that lost their locks here, as nothing was heard of them.
    locks_expired,
    /// Locks of sessions of this node that they hold no more: their leader was not heard, or does not know them.
    holds_lost,
    /// Inputs that the replicated log refused.
    log_refusals,
    /// Commands that waited for the disk, and were proposed together with others.
    commands_gathered,
    /// Commands that were put off, as the engine here was behind what is applied.
    commands_put_off,
    /// Appends of leaders that were not taken for the same reason.
    appends_put_off,
    /// Splits of ranges that were applied here.
    splits,
    /// Splits that a snapshot told of, and that were applied from the log here before it.
    splits_caught_up,
    /// Snapshots of ranges that were installed here.
    snapshots_installed,
    /// Ranges that were to be split, as they are too large to be copied whole.
    ranges_halved,
    /// Snapshots of ranges that were given up, as the history of one key is too large.
    snapshots_too_large,
    /// Snapshots of ranges that were not taken, as this store has forgotten more than they allow.
    snapshots_too_old,
    /// Reads of the past that a replica here answered that does not lead.
    follower_reads,
    /// Reads of the past that the nearest replica answered, on another node, and not who leads.
    near_reads,
    /// Reads of the past for which the nearest replica was asked in vain: it had not resolved them, or said nothing.
    near_reads_in_vain,
    /// Snapshots that the leaders of a query were asked for (`cluster::settled`).
    snapshots_negotiated,
    /// Times that a node whose clock is in doubt asked a leader what time it is (`cluster::lent`).
    times_borrowed,
    /// Times that a leader here said so.
    times_lent,
    /// Commits of several ranges that a leader said were past, as the clock here could not.
    commits_vouched,
}

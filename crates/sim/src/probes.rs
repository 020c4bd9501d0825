//! Rare paths, counted: a simulator that never reaches them proves nothing about them.

use crate::scenario::What;
use std::collections::BTreeMap;

/// What a good batch of seeds reaches at least once.
pub const WANTED: &[&str] = &[
    "commit in one range",
    "commit in many ranges",
    "split",
    "certification refused",
    "uncertain version met",
    "snapshot refreshed",
    "refresh failed",
    "read waited for a write in flight",
    "commit waited for rule 1",
    "gave up a commit that was held back",
    "gave up a commit that waited to be shown",
    "lock queue",
    "deadlock",
    "crash",
    "clean stop",
    "torn tail cut off",
    "undecided prepare recovered",
    "unknown outcome was committed",
    "unknown outcome was aborted",
    "disk full refused a commit",
    "flush",
    "flush failed",
    "log segment recycled",
    "buried",
    "collected",
    "restart from a flushed state",
    "clock stepped",
    "clock left slewing",
    "clock source changed its status",
    "clock source contradicted itself",
    "machine slept",
    "machine moved",
    "leap second announced",
    "clock: the gate opened",
    "clock: synchronized again",
    "clock: degraded",
    "clock: too wide by its error",
    "clock: too wide as it expired",
    "clock: too wide by its status",
    "clock: from too wide to degraded",
    "clock: untrusted by proofs",
    "clock: untrusted as it was set back",
    "clock: trusted again",
    "refused for the clock",
    "past refused as collected",
    "past of a table that is kept longer",
    "reference to a row",
    "one row read from the past",
    "past checked against what was acknowledged",
];

/// As [`WANTED`], of all scenarios of registers together.
pub const WANTED_OF_REGISTERS: &[&str] = &[
    "a client asked again",
    "a client gave up",
    "a command was applied",
    "a leader was elected",
    "a lease ended",
    "a lease was handed over",
    "a message came twice",
    "a message for a stopped process",
    "a message for a store that is gone",
    "a message was lost",
    "a proposal was absent",
    "a proposal's fate was unknown",
    "a replica was removed",
    "a snapshot of several registers",
    "a snapshot waited for what is in flight",
    "a snapshot was beyond the lease",
    "a snapshot was installed",
    "a swap met another value",
    "a timestamp was refused",
    "an answer waited for rule 1",
    "died in the middle of a sync",
    "disk full refused records",
    "log segment recycled",
    "members changed",
    "serves again",
    "the past was read at a replica",
    "torn tail cut off",
];

/// As [`WANTED`], of all scenarios of whole nodes together. With underscores: the nodes' own counters (`node::Counters`).
pub const WANTED_OF_NODES: &[&str] = &[
    "a commit was not acknowledged",
    "a commit's outcome was unknown",
    "a message came twice",
    "a message for a node that is gone",
    "a message for a stopped process",
    "a message was lost",
    "a range gave no sign of life",
    "a range was handed over",
    "a session lost its patience",
    "a snapshot was negotiated",
    "a store that had gone back was refused",
    "a transaction began anew by itself",
    "a transaction came in parts",
    "a transaction failed otherwise",
    "a transaction met another",
    "an unknown outcome was settled",
    "clock_future_timestamps",
    "collected",
    "commands_gathered",
    "commits_unanswered",
    "died in the middle of a sync",
    "flush",
    "follower_reads",
    "lock_waits",
    "locks_expired",
    "log segment recycled",
    "large commit not in its place yet",
    "log_refusals",
    "reference to a row",
    "refused for the clock",
    "replicas of a range changed",
    "requests_relayed",
    "requests_unavailable",
    "serves again",
    "snapshots_installed",
    "snapshots_too_old",
    "splits",
    "splits_caught_up",
    "the present was written anew",
    "torn tail cut off",
    "txn_certification_failures",
    "txn_commit_waits",
    "txn_commits_multirange",
    "txn_commits_staged",
    "txn_deadlocks",
    "txn_read_waits",
    "txn_recoveries",
    "txn_refresh_failures",
    "txn_refreshes",
    "txn_restarts_readwithinuncertainty",
];

/// What all scenarios of a kind reach together.
pub fn wanted(what: What) -> &'static [&'static str] {
    match what {
        What::Alone => WANTED,
        What::Register => WANTED_OF_REGISTERS,
        What::Nodes => WANTED_OF_NODES,
    }
}

/// Counts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probes(BTreeMap<&'static str, u64>);

impl Probes {
    /// Counts one.
    pub fn hit(&mut self, name: &'static str) {
        self.add(name, 1);
    }
    /// Counts several.
    pub fn add(&mut self, name: &'static str, n: u64) {
        if n > 0 {
            *self.0.entry(name).or_default() += n;
        }
    }
    /// Takes in the counts of another run.
    pub fn merge(&mut self, other: &Probes) {
        other.0.iter().for_each(|(name, n)| self.add(name, *n));
    }
    /// Those of these that were never reached.
    pub fn missing(&self, wanted: &[&'static str]) -> Vec<&'static str> {
        wanted.iter().copied().filter(|name| !self.0.contains_key(name)).collect()
    }
    /// How often.
    pub fn count(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }
    /// All counts.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(name, n)| (*name, *n))
    }
}

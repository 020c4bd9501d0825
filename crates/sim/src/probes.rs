//! Rare paths, counted: a simulator that never reaches them proves nothing about them.

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
    /// Rare paths that were never reached.
    pub fn missing(&self) -> Vec<&'static str> {
        WANTED.iter().copied().filter(|name| !self.0.contains_key(name)).collect()
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

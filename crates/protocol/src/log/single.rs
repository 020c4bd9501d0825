//! The log of one replica.
//!
//! # Problem
//! A command counts once it is durable; until then it has a timestamp and a place, and readers must know of it.
//!
//! # Idea
//! A queue with two marks. Entries are proposed at the end, leave the durable mark behind when the disk has them, and are
//! taken out in order to be applied. All ranges of a node share the queue, as they share the disk.
//!
//! # Invariants
//! 1. Indexes are dense; timestamps grow with them.
//! 2. An entry is handed out for applying only when it and all before it are durable.
//! 3. After a failed append nothing of the failed part is kept: its indexes are given out again, its timestamps never.
//! 4. `closed()` never decreases, and no later entry has a timestamp at or below it.
//!
//! # Caveats
//! There is one leader at a time, the node itself; what a lease is for, with one node, is a restart (see `node::lease`).

use clock::Timestamp;
use std::collections::VecDeque;

/// A place in the log; the first is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LogIndex(pub u64);

/// One proposed command.
#[derive(Clone, Debug)]
pub struct Entry<T> {
    /// Its place.
    pub index: LogIndex,
    /// Its timestamp.
    pub at: Timestamp,
    /// What was proposed.
    pub payload: T,
}

/// The queue from proposed to applied.
#[derive(Debug)]
pub struct Single<T> {
    next: u64,
    last: Timestamp,
    durable: LogIndex,
    queue: VecDeque<Entry<T>>,
}

impl<T> Single<T> {
    /// A log that goes on after `applied` and above `last`.
    pub fn new(applied: LogIndex, last: Timestamp) -> Self {
        Single { next: applied.0 + 1, last, durable: applied, queue: VecDeque::new() }
    }
    /// Takes a command at a timestamp above all before.
    pub fn propose(&mut self, at: Timestamp, payload: T) -> LogIndex {
        assert!(at > self.last, "invariant 1: {at} after {}", self.last);
        self.last = at;
        let index = LogIndex(self.next);
        self.next += 1;
        self.queue.push_back(Entry { index, at, payload });
        index
    }
    /// Everything up to `index` is on the disk. Marks never go back.
    pub fn durable(&mut self, index: LogIndex) {
        assert!(index.0 < self.next, "{index:?} was never proposed");
        self.durable = self.durable.max(index);
    }
    /// The next entry to apply.
    pub fn pop_durable(&mut self) -> Option<Entry<T>> {
        if self.queue.front()?.index > self.durable {
            return None;
        }
        self.queue.pop_front()
    }
    /// The append of `from` and all after failed: they are given back.
    pub fn failed(&mut self, from: LogIndex) -> Vec<Entry<T>> {
        assert!(from > self.durable, "{from:?} is durable, it cannot fail");
        let keep = self.queue.partition_point(|entry| entry.index < from);
        self.next = self.next.min(from.0.max(self.durable.0 + 1));
        self.queue.split_off(keep).into()
    }
    /// The last place proposed.
    pub fn last_index(&self) -> LogIndex {
        LogIndex(self.next - 1)
    }
    /// The greatest timestamp proposed.
    pub fn closed(&self) -> Timestamp {
        self.last
    }
    /// Entries from a place on.
    pub fn entries_from(&self, index: LogIndex) -> impl Iterator<Item = &Entry<T>> {
        let at = self.queue.partition_point(|entry| entry.index < index);
        self.queue.range(at..)
    }
    /// Entries not applied yet.
    pub fn len(&self) -> usize {
        self.queue.len()
    }
    /// Whether everything proposed was applied.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    /// Replay: an entry that was read back from the disk.
    pub fn replayed(&mut self, index: LogIndex, at: Timestamp) {
        assert!(self.queue.is_empty() && index.0 == self.next && at > self.last, "replay in order: {index:?} at {at}");
        self.next += 1;
        self.last = at;
        self.durable = index;
    }
}

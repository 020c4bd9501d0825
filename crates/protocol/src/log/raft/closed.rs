//! Closed timestamps of groups that sleep: one number per pair of stores.
//!
//! # Problem
//! A closed timestamp tells a follower that nothing at or below it is to come, so that it can serve the past (design 4a.7). A group that
//! is awake hears it with its appends and heartbeats. 10,000 sleeping ones must not be told one by one.
//!
//! # Idea
//! With each request for a promise a store says one *word*: a timestamp that is closed in all groups that it leads and that sleep, and
//! which groups have woken since. A follower that fell asleep after its leader takes part in the words of the leader's store.
//!
//! # Invariants
//! 1. Words of a store have rising numbers, over restarts too: the number is that of a durable record.
//! 2. A word that leaves after a group woke names it, until the receiver has heard one that did. A good night carries the number of the last
//!    word before it, and counts only if no later word was heard: so a late one is not believed after the group woke.
//! 3. What was said in an earlier life of the store holds no more: words name the first number of this life.
//! 4. A store stamps nothing at or below its word. A later leader begins above the lease, and a group sleeps only while its
//!    lease reaches beyond the present, which is above the word.
//! 5. What is committed closes what lies at or below it: entries are stamped in their order, and a later leader begins above the log's last. So who starts again, and hears nobody, knows
//!    of a past all the same ([`super::Recovery`]).

use super::ids::{GroupId, StoreId};
use clock::Timestamp;
use std::collections::BTreeMap;

/// Groups that woke, kept for one store; beyond it all sleepers are called awake.
pub(crate) const WOKEN_MAX: usize = 1024;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub number: u64,
    /// Good nights before this count no more.
    pub since: u64,
    pub closed: Timestamp,
    pub woken: Vec<GroupId>,
}

/// What a store says, and what it heard.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// The last word's number.
    pub number: u64,
    since: u64,
    /// Closed in all groups that sleep here under a leader here.
    pub closed: Timestamp,
    woken: BTreeMap<StoreId, BTreeMap<GroupId, u64>>,
    heard: BTreeMap<StoreId, (u64, u64, Timestamp)>,
}

impl Words {
    /// The next word.
    pub fn close(&mut self, number: u64, closed: Timestamp) {
        if self.number == 0 {
            self.since = number;
        }
        self.number = number;
        self.closed = self.closed.max(closed);
    }

    pub fn word(&self, to: StoreId) -> Word {
        let woken = self.woken.get(&to).map(|woken| woken.keys().copied().collect()).unwrap_or_default();
        Word { number: self.number, since: self.since, closed: self.closed, woken }
    }

    /// A group wakes whose leader is here.
    pub fn wakes(&mut self, group: GroupId, members: impl Iterator<Item = StoreId>) {
        for store in members {
            let woken = self.woken.entry(store).or_default();
            woken.insert(group, self.number);
            if woken.len() > WOKEN_MAX {
                self.since = self.number + 1;
                self.woken.clear();
                return;
            }
        }
    }

    /// A store has heard the word of this number.
    pub fn was_heard(&mut self, by: StoreId, number: u64) {
        if let Some(woken) = self.woken.get_mut(&by) {
            woken.retain(|_, before| *before >= number);
        }
    }

    /// A word came in. `false`: it is an old one.
    pub fn hear(&mut self, from: StoreId, word: &Word) -> bool {
        let heard = self.heard.entry(from).or_default();
        if word.number <= heard.0 {
            return false;
        }
        *heard = (word.number, word.since, word.closed);
        true
    }

    /// The number of the last word heard.
    pub fn heard(&self, from: StoreId) -> u64 {
        self.heard.get(&from).map_or(0, |heard| heard.0)
    }

    /// What is closed, by the words of a store, in a group that fell asleep after its word `before`.
    pub fn closed_after(&self, from: StoreId, before: u64) -> Option<Timestamp> {
        let (number, since, closed) = self.heard.get(&from)?;
        (before >= *since && *number > before).then_some(*closed)
    }
}

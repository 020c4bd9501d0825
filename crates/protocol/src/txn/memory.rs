//! What a range remembers of transactions that are over.
//!
//! # Problem
//! Where commands travel, a copy may come late: a commit that was refused would do its work after its client was told to begin again, a commit
//! that was done would be refused by its own version, and a prepare whose abort is forgotten would wait for an outcome that never
//! comes, or get one (design 4a.1).
//!
//! # Idea
//! Such commands say until when they may be stamped ([`Batch::until`](super::Batch::until)). A copy above that does nothing. Up to there the range knows by the
//! transaction's number what became of it, and somewhat longer, so that whoever asks again for a lost answer gets the same one.
//!
//! # Invariants
//! 1. Of a transaction with an `until`, commit, refusal, fence and outcome are remembered until a record above `until` and
//!    [`REMEMBERED_US`] was applied: a function of the log.
//! 2. The commit of a transaction of many ranges is remembered until a `Forget` says that every participant has it, too, however
//!    long that takes. An abort need not be: who asks later hears the same, as every copy of its prepare comes too late.
//! 3. What is swept is known as such: [`Memory::swept`] is the greatest `until` of all that was forgotten.
//!
//! # Caveats
//! A range that does thousands of commits in a second remembers tens of thousands of numbers.

use super::{Outcome, RangeId, TxnId};
use clock::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Outcomes are remembered so much longer than copies may come, microseconds.
pub const REMEMBERED_US: u64 = 5_000_000;

/// How long an outcome is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub until: Timestamp,
    /// Who must hear of it before it may be forgotten: the participants of a commit in many ranges. Empty: nobody.
    pub owed_to: Vec<RangeId>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    pub outcomes: BTreeMap<TxnId, Outcome>,
    /// Those that have an `until`.
    pub kept: BTreeMap<TxnId, Kept>,
    /// Those of them of which somebody has not heard: a few, where all that is remembered may be a hundred thousand.
    pub owed: BTreeSet<TxnId>,
    /// Those of them that nobody is owed, by `until`.
    due: BTreeSet<(Timestamp, TxnId)>,
    pub swept: Timestamp,
}

impl Memory {
    /// Remembers; without an `until` for as long as nobody says [`Memory::forget`].
    pub fn remember(&mut self, txn: TxnId, outcome: Outcome, until: Option<Timestamp>, owed_to: Vec<RangeId>) {
        self.outcomes.insert(txn, outcome);
        if let Some(until) = until {
            if owed_to.is_empty() {
                self.due.insert((until, txn));
                self.owed.remove(&txn);
            } else {
                self.owed.insert(txn);
            }
            self.kept.insert(txn, Kept { until, owed_to });
        }
    }

    /// What a range that is split off inherits: copies of commands may come there, too. Of what the participants have heard its origin keeps account.
    pub fn inherited(&self) -> Memory {
        let mut heir = Memory { swept: self.swept, ..Memory::default() };
        for (txn, kept) in &self.kept {
            if let Some(outcome) = self.outcomes.get(txn) {
                heir.remember(*txn, *outcome, Some(kept.until), Vec::new());
            }
        }
        heir
    }

    /// Every participant has the outcome of these.
    pub fn forget(&mut self, txns: &[TxnId]) {
        for txn in txns {
            match self.kept.get_mut(txn) {
                None => drop(self.outcomes.remove(txn)),
                Some(kept) => {
                    kept.owed_to.clear();
                    self.owed.remove(txn);
                    self.due.insert((kept.until, *txn));
                }
            }
        }
    }

    /// A record at `at` is applied: no copy of what ended long enough before can come.
    pub fn sweep(&mut self, at: Timestamp) {
        let below = Timestamp::new(at.physical_us().saturating_sub(REMEMBERED_US), 0);
        while let Some((until, txn)) = self.due.first().copied().filter(|(until, _)| *until < below) {
            self.due.pop_first();
            self.kept.remove(&txn);
            self.outcomes.remove(&txn);
            self.swept = self.swept.max(until);
        }
    }

    /// Whether something could be swept by a record at `at`.
    pub fn is_sweepable(&self, at: Timestamp) -> bool {
        let below = Timestamp::new(at.physical_us().saturating_sub(REMEMBERED_US), 0);
        self.due.first().is_some_and(|(until, _)| *until < below)
    }
}

//! Locks of who takes very many in the order of their keys: the keys one behind the other, and nothing else for each.
//!
//! Problem: a statement over half a million rows locks each, nearly always alone. An entry of the lock table and one of its transaction take 200 bytes and
//! more for each of them, and a search in a tree that grows; half of what the statement's thread did for it was getting memory.
//!
//! Idea: who has taken [`RUN_MIN`] locks in ascending order goes on with a *run*: its keys in one piece, found by bisection. A key for which somebody
//! else asks is given an entry in the table then; in the run it stays, marked as *met*.
//!
//! Invariants, kept by the lock table (`locks`):
//! 1. A key stands in at most one run, and if it has an entry in the table, it is met, and the run's transaction is a holder there.
//! 2. Locks of one transaction have an order, that in which they were taken: those of a run come behind the first [`Run::begins`] of the ones taken
//!    one by one, and before the others.
//! 3. At any time there are few runs, of all transactions together: whoever asks for a key looks into each. Who would begin another goes on one by one.

use super::TxnId;
use super::lock_mode::LockMode;
use std::collections::{BTreeMap, BTreeSet};

/// Locks taken in ascending order before a run is begun: more than a transaction takes for rows that it inserts, of which there may be hundreds at a time.
pub(super) const RUN_MIN: usize = 8192;
/// Runs of one transaction.
const RUNS_MAX: usize = 8;
/// Runs of all: whoever asks for a key looks into each of them.
const RUNS_ALL_MAX: usize = 32;

/// Keys that one transaction has locked in one mode, ascending.
#[derive(Debug)]
pub(super) struct Run {
    pub mode: LockMode,
    pub begins: usize,
    bytes: Vec<u8>,
    /// Where each key ends in `bytes`.
    ends: Vec<u32>,
    /// The numbers of those that have an entry in the table.
    met: BTreeSet<u32>,
}

impl Run {
    fn new(mode: LockMode, begins: usize) -> Run {
        Run { mode, begins, bytes: Vec::new(), ends: Vec::new(), met: BTreeSet::new() }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    fn key(&self, number: usize) -> &[u8] {
        let begin = number.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        let end = self.ends.get(number).map_or(begin, |end| *end as usize);
        self.bytes.get(begin..end).unwrap_or_default()
    }

    /// Keys below `key`.
    fn below(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle) < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// The number of a key.
    fn find(&self, key: &[u8]) -> Option<usize> {
        let last = self.len().checked_sub(1)?;
        // Who takes keys in order asks for one behind the last.
        if key > self.key(last) || key < self.key(0) {
            return None;
        }
        Some(self.below(key)).filter(|number| self.key(*number) == key)
    }

    /// Adds a key; `false`: it does not fit here.
    fn push(&mut self, key: &[u8], mode: LockMode) -> bool {
        let fits = mode == self.mode && self.len().checked_sub(1).is_none_or(|last| self.key(last) < key);
        match u32::try_from(self.bytes.len() + key.len()) {
            Ok(end) if fits => {
                self.bytes.extend_from_slice(key);
                self.ends.push(end);
                true
            }
            _ => false,
        }
    }

    /// Takes the last ones away, but for the first `kept`; gives those of them that were met.
    fn truncate(&mut self, kept: usize) -> Vec<Vec<u8>> {
        // Who gives back row by row looks at no other one each time.
        let mut met = Vec::new();
        while let Some(number) = self.met.pop_last() {
            if (number as usize) < kept {
                self.met.insert(number);
                break;
            }
            met.push(self.key(number as usize).to_vec());
        }
        let end = kept.checked_sub(1).and_then(|last| self.ends.get(last)).map_or(0, |end| *end as usize);
        self.ends.truncate(kept);
        self.bytes.truncate(end);
        met
    }
}

/// The runs of all transactions, of each in the order in which they were begun.
#[derive(Debug)]
pub(super) struct Runs {
    of: BTreeMap<TxnId, Vec<Run>>,
    /// [`RUNS_ALL_MAX`], but for tests.
    max: usize,
}

impl Default for Runs {
    fn default() -> Runs {
        Runs::at_most(RUNS_ALL_MAX)
    }
}

impl Runs {
    /// None yet, and no more than so many at any time.
    pub fn at_most(max: usize) -> Runs {
        Runs { of: BTreeMap::new(), max }
    }

    /// How many runs there are.
    pub fn count(&self) -> usize {
        self.of.values().map(Vec::len).sum()
    }

    /// Who has a key in a run, and how.
    pub fn holder(&self, key: &[u8]) -> Option<(TxnId, LockMode)> {
        let of = |(txn, runs): (&TxnId, &Vec<Run>)| {
            runs.iter().find(|run| run.find(key).is_some()).map(|run| (*txn, run.mode))
        };
        self.of.iter().find_map(of)
    }

    /// As [`Runs::push`], of a key that has no entry in the table; `false` also where it might stand in a run: that is looked at only where it is quick.
    pub fn go_on(&mut self, txn: TxnId, taken: usize, key: &[u8], mode: LockMode) -> bool {
        let last = |run: &Run| run.len().checked_sub(1).is_none_or(|last| run.key(last) < key);
        let alone = self.of.len() == 1 && self.of.get(&txn).is_some_and(|runs| runs.iter().all(last));
        alone && self.push(txn, taken, key, mode)
    }

    /// As [`Runs::go_on`] of each, up to the first that does not ascend; gives how many went into the run.
    pub fn go_on_with(&mut self, txn: TxnId, taken: usize, keys: &[&[u8]], mode: LockMode) -> usize {
        let Some(first) = keys.first() else { return 0 };
        let behind = |run: &Run| run.len().checked_sub(1).is_none_or(|last| run.key(last) < *first);
        let alone = self.of.len() == 1;
        // What ascends from there on is behind the other runs, too.
        let runs = self.of.get_mut(&txn).filter(|runs| alone && runs.iter().all(behind));
        let Some(run) = runs.and_then(|runs| runs.last_mut()).filter(|run| run.begins == taken) else { return 0 };
        keys.iter().take_while(|key| run.push(key, mode)).count()
    }

    /// A key of somebody's run is given an entry in the table.
    pub fn meet(&mut self, txn: TxnId, key: &[u8]) {
        for run in self.of.get_mut(&txn).into_iter().flatten() {
            if let Some(number) = run.find(key) {
                run.met.insert(number as u32);
            }
        }
    }

    /// Adds a key to the last run, if `taken` locks were taken one by one before it and still are; `false`: it does not fit there.
    pub fn push(&mut self, txn: TxnId, taken: usize, key: &[u8], mode: LockMode) -> bool {
        let last = self.of.get_mut(&txn).and_then(|runs| runs.last_mut());
        last.is_some_and(|run| run.begins == taken && run.push(key, mode))
    }

    /// Begins another one; `false`: there are enough, of it or of all.
    pub fn begin(&mut self, txn: TxnId, taken: usize, key: &[u8], mode: LockMode) -> bool {
        let own = self.of.get(&txn).map_or(0, Vec::len);
        let mut run = Run::new(mode, taken);
        let begins = own < RUNS_MAX && self.count() < self.max && run.push(key, mode);
        if begins {
            self.of.entry(txn).or_default().push(run);
        }
        begins
    }

    /// Locks that a transaction has in runs.
    pub fn held(&self, txn: TxnId) -> usize {
        self.of.get(&txn).map_or(0, |runs| runs.iter().map(Run::len).sum())
    }

    /// Of the last run: how many locks were taken one by one before it, and its own.
    pub fn last(&self, txn: TxnId) -> Option<(usize, usize)> {
        self.of.get(&txn)?.last().map(|run| (run.begins, run.len()))
    }

    /// Shortens the last run; gives the keys of which the entries in the table are to go, too.
    pub fn truncate_last(&mut self, txn: TxnId, kept: usize) -> Vec<Vec<u8>> {
        let Some(runs) = self.of.get_mut(&txn) else { return Vec::new() };
        let met = runs.last_mut().map(|run| run.truncate(kept)).unwrap_or_default();
        if kept == 0 {
            runs.pop();
        }
        if runs.is_empty() {
            self.of.remove(&txn);
        }
        met
    }

    /// Forgets a transaction's.
    pub fn remove(&mut self, txn: TxnId) {
        self.of.remove(&txn);
    }

    /// Keys that have no entry in the table.
    pub fn size(&self) -> usize {
        self.of.values().flatten().map(|run| run.len() - run.met.len()).sum()
    }

    /// At most `max` keys of each run from a key on, of those that are `wanted`: the key, whose, and how. In no order.
    pub fn shown(&self, from: &[u8], max: usize, wanted: impl Fn(&[u8]) -> bool) -> Vec<(&[u8], TxnId, LockMode)> {
        let mut found = Vec::new();
        for (txn, run) in self.of.iter().flat_map(|(txn, runs)| runs.iter().map(move |run| (txn, run))) {
            let keys = (run.below(from)..run.len()).map(|number| run.key(number)).filter(|key| wanted(key));
            found.extend(keys.take(max).map(|key| (key, *txn, run.mode)));
        }
        found
    }
}

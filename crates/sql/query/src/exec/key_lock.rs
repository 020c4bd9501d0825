//! How strongly an UPDATE locks a row: by what it changes, not by what it sets.
//!
//! **Problem.** A key that may be referenced excludes those who refer to it only where it changes: the programs that write all columns of a row
//! as they were are many, and need not wait for them. What changes is known when SET has been computed from the row as it is under its
//! lock; but the lock comes first.
//!
//! **Idea.** SET's keys are computed twice: from the row as it is seen without a lock, which says how to lock it; then from the row under the
//! lock. Where that says otherwise (the row has changed in between) the lock is made stronger before anything is written.
//!
//! **Invariants.**
//! 1. A key that may be referenced changes only under [`LockMode::Update`], taken before the row is written and before anybody looks for rows that
//!    refer to it; by [`crate::transaction::Transaction::lock_as`], so that whoever waited for it sees what came meanwhile (decision 105).
//! 2. What is seen without a lock decides nothing else, and promises nothing.
//!
//! **Caveats.** What differs from call to call is not computed twice: a key that is set to it is taken to change.

use super::evaluate;
use super::table::TableAccess;
use super::write::Touch;
use crate::SqlError;
use crate::context::StatementContext;
use crate::expr::{Expr, Volatility};
use crate::transaction::LockMode;
use crate::types::Value;

/// Settled when an UPDATE is planned.
#[derive(Debug, Clone)]
pub struct KeyLock {
    /// Slots that are set and belong to keys that may be referenced.
    slots: Vec<usize>,
    /// The assignments that say what becomes of them.
    set: Vec<(usize, Expr)>,
    /// Those assignments may be computed once more than the statement needs.
    foreseeable: bool,
}

impl KeyLock {
    /// For an UPDATE's assignments.
    pub fn new(access: &TableAccess, touch: &Touch, set: &[(usize, Expr)]) -> Self {
        let keys = (0..=access.indexes.len()).map(|ordinal| access.index(ordinal));
        let keys = keys.filter(|index| index.unique && index.is_plain());
        let mut slots: Vec<usize> =
            keys.flat_map(|index| index.columns.iter().filter_map(|column| column.slot)).collect();
        slots.retain(|&slot| touch.changed[slot]);
        slots.sort_unstable();
        slots.dedup();
        let mut wanted = slots.clone();
        for (_, value) in access.generated.iter().filter(|(slot, _)| slots.contains(slot)) {
            wanted.extend(value.columns());
        }
        let set: Vec<(usize, Expr)> = set.iter().filter(|(slot, _)| wanted.contains(slot)).cloned().collect();
        let foreseeable = set.iter().all(|(_, value)| value.volatility() != Volatility::Volatile);
        KeyLock { slots, set, foreseeable }
    }

    /// The mode that a change of a row asks for; both are given by slot.
    pub fn of(&self, old: &[Value], new: &[Value]) -> LockMode {
        if self.slots.iter().all(|&slot| old[slot] == new[slot]) { LockMode::NoKeyUpdate } else { LockMode::Update }
    }

    /// The mode that will be asked for if the row is as it seems; the table's columns begin at `base` of the joined row.
    pub(crate) fn foresee(
        &self,
        access: &TableAccess,
        base: usize,
        row: &[Value],
        context: &StatementContext,
    ) -> LockMode {
        if self.slots.is_empty() {
            return LockMode::NoKeyUpdate;
        }
        if !self.foreseeable {
            return LockMode::Update;
        }
        let old = &row[base..base + access.columns.len()];
        // An error is told by whoever computes the row under its lock.
        self.computed(access, old, row, context).map_or(LockMode::Update, |new| self.of(old, &new))
    }

    fn computed(
        &self,
        access: &TableAccess,
        old: &[Value],
        row: &[Value],
        context: &StatementContext,
    ) -> Result<Vec<Value>, SqlError> {
        let mut new = old.to_vec();
        for (slot, value) in &self.set {
            new[*slot] = evaluate::value(value, row, context)?;
        }
        for (slot, value) in access.generated.iter().filter(|(slot, _)| self.slots.contains(slot)) {
            new[*slot] = value.eval_alone(&new)?;
        }
        Ok(new)
    }

    /// Whether the mode depends on the row.
    pub fn is_open(&self) -> bool {
        !self.slots.is_empty() && self.foreseeable
    }

    /// The mode of all rows, where it does not depend on them; else the weakest.
    pub fn mode(&self) -> LockMode {
        if self.slots.is_empty() || self.foreseeable { LockMode::NoKeyUpdate } else { LockMode::Update }
    }

    /// Whether foreseeing reads only places that `allowed` accepts.
    pub(crate) fn reads_only(&self, allowed: &dyn Fn(usize) -> bool) -> bool {
        self.set.iter().all(|(_, value)| value.columns().iter().all(|&place| allowed(place)))
    }
}

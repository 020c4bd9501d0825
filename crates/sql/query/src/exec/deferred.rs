//! Foreign keys whose check waits for the commit: DEFERRABLE ones that are deferred now.
//!
//! Problem: a row may point at one that comes later in its transaction. Idea: each statement checks all keys at its end as always;
//! what a deferred key finds broken is held here instead of refused, and looked at again before the commit.
//!
//! Invariants
//! 1. After each statement, every broken reference of a deferred key is held. So only what is held must be looked at again, and
//!    a reference that is held twice, mended or taken back does no harm.
//! 2. What is held is a question about the state (does a row still hold these values, and is there nothing that it points at?),
//!    not about a row, so it needs no care when rows are updated or deleted meanwhile.
//! 3. ROLLBACK TO a savepoint forgets what was held since: the state before it was covered by what was held then. Nothing is
//!    forgotten for being mended while a savepoint is open, which may break it again.
//!
//! Decision 0065. Caveat: a value that the referenced type cannot hold is refused at once.

use super::references::Outbound;
use super::writer::Writer;
use crate::catalog::{Deferral, Oid, Relation};
use crate::context::StatementContext;
use crate::types::{Row, Value};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most broken references that one transaction may hold.
pub(crate) const HELD_MAX: usize = 1_000_000;

/// What SET CONSTRAINTS said in this transaction.
#[derive(Clone, Debug, Default)]
pub struct Modes {
    all: Option<bool>,
    some: BTreeMap<Oid, bool>,
}

/// The broken references of one transaction, and which keys may be broken.
#[derive(Debug, Default)]
pub struct Deferred(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Everything waits: for the end of a statement of several parts.
    all: bool,
    modes: Modes,
    held: Vec<Arc<Held>>,
    known: BTreeSet<(Oid, Bytes)>,
}

#[derive(Debug)]
struct Held {
    constraint: Oid,
    deferral: Deferral,
    child: Oid,
    /// The key in the referenced index that is missing.
    parent: Bytes,
    /// Values of the referencing columns, in the order of the key.
    values: Row,
    /// What the client is told if it stays so.
    error: SqlError,
}

impl Deferred {
    /// For a statement of several parts: all keys wait for [`Deferred::settle`].
    pub(crate) fn until_the_end() -> Deferred {
        Deferred(Mutex::new(State { all: true, ..State::default() }))
    }

    /// All parts are done: what is still broken of the first `count` must be deferred by the transaction.
    ///
    /// # Errors
    /// 23503 for the first that is not.
    pub fn settle(
        &self,
        count: usize,
        transaction: &Deferred,
        context: &Arc<StatementContext>,
    ) -> Result<(), SqlError> {
        let mut all = std::mem::take(&mut self.0.lock().held);
        let rest = all.split_off(count.min(all.len()));
        self.0.lock().held = rest;
        for held in all {
            context.check()?;
            if held.is_broken(context)? {
                if !transaction.defers(held.constraint, held.deferral) {
                    return Err(held.error.clone());
                }
                transaction.keep(held)?;
            }
        }
        Ok(())
    }

    fn defers(&self, constraint: Oid, deferral: Deferral) -> bool {
        if self.0.lock().all {
            return true;
        }
        if deferral == Deferral::NotDeferrable {
            return false;
        }
        let state = self.0.lock();
        let said = state.modes.some.get(&constraint).copied().or(state.modes.all);
        said.unwrap_or(deferral == Deferral::InitiallyDeferred)
    }

    /// Takes note of a broken reference if its key is deferred.
    ///
    /// # Errors
    /// `error` if it is not; 54000 if too many are held.
    pub fn hold(
        &self,
        key: &Outbound,
        child: Oid,
        row: &[Value],
        parent: Bytes,
        error: SqlError,
    ) -> Result<(), SqlError> {
        if !self.defers(key.id, key.deferral) {
            return Err(error);
        }
        let values = key.slots.iter().map(|&slot| row[slot].clone()).collect();
        let (constraint, deferral) = (key.id, key.deferral);
        self.keep(Arc::new(Held { constraint, deferral, child, parent, values, error }))
    }

    fn keep(&self, held: Arc<Held>) -> Result<(), SqlError> {
        let known = (held.constraint, held.parent.clone());
        let mut state = self.0.lock();
        if state.known.contains(&known) {
            return Ok(());
        }
        if state.held.len() >= HELD_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("more than {HELD_MAX} deferred foreign key checks wait for the commit"),
            )
            .hint("Write the referenced rows first, or commit more often."));
        }
        state.known.insert(known);
        state.held.push(held);
        Ok(())
    }

    /// How many are held.
    pub fn len(&self) -> usize {
        self.0.lock().held.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets what was held after the first `len`.
    pub fn truncate(&self, len: usize) {
        let mut state = self.0.lock();
        let State { held, known, .. } = &mut *state;
        for gone in held.drain(len.min(held.len())..) {
            known.remove(&(gone.constraint, gone.parent.clone()));
        }
    }

    /// What SET CONSTRAINTS has said.
    pub fn modes(&self) -> Modes {
        self.0.lock().modes.clone()
    }

    /// Goes back to what was said, or to nothing.
    pub fn set_modes(&self, modes: Modes) {
        self.0.lock().modes = modes;
    }

    /// SET CONSTRAINTS: of these, or (`None`) of all.
    pub fn set(&self, constraints: Option<&[Oid]>, deferred: bool) {
        let mut state = self.0.lock();
        match constraints {
            None => state.modes = Modes { all: Some(deferred), some: BTreeMap::new() },
            Some(some) => state.modes.some.extend(some.iter().map(|oid| (*oid, deferred))),
        }
    }

    /// Looks again at what is held of these constraints, or (`None`) of all.
    ///
    /// # Errors
    /// 23503 for the first that is still broken.
    pub fn check(&self, context: &Arc<StatementContext>, constraints: Option<&[Oid]>) -> Result<(), SqlError> {
        let held = self.0.lock().held.clone();
        for held in held.iter().filter(|held| constraints.is_none_or(|some| some.contains(&held.constraint))) {
            context.check()?;
            if held.is_broken(context)? {
                return Err(held.error.clone());
            }
        }
        Ok(())
    }

    /// Forgets what has been mended. Not while a savepoint is open (invariant 3).
    ///
    /// # Errors
    /// Those of reading.
    pub fn forget_mended(&self, context: &Arc<StatementContext>) -> Result<(), SqlError> {
        let held = self.0.lock().held.clone();
        let mut broken = Vec::new();
        for held in held {
            if held.is_broken(context)? {
                broken.push(held);
            }
        }
        let mut state = self.0.lock();
        state.known = broken.iter().map(|held| (held.constraint, held.parent.clone())).collect();
        state.held = broken;
        Ok(())
    }
}

impl Held {
    /// A table or a constraint that has gone asks for nothing.
    fn is_broken(&self, context: &Arc<StatementContext>) -> Result<bool, SqlError> {
        let relation = context.catalog.relation_to_write(self.child)?;
        let Some(Relation::Table(_)) = relation.as_deref() else { return Ok(false) };
        let mut writer = Writer::new(context);
        let child = writer.related(self.child)?;
        let Some(key) = child.outbound.iter().find(|key| key.id == self.constraint) else { return Ok(false) };
        let mut row = vec![Value::Null; child.access.columns.len()];
        key.slots.iter().zip(&self.values).for_each(|(&slot, value)| row[slot] = value.clone());
        let Some(parent) = key.key(&child.access, &row, &context.settings)? else { return Ok(false) };
        if context.txn.with(|txn| key.finds(txn, &parent))? {
            return Ok(false);
        }
        writer.is_referred_to(&child, key.id, &key.slots, &self.values)
    }
}

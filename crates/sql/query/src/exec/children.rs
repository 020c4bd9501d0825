//! Rows that refer to one that goes: where they are looked for, what is promised of the look, and who is waited for.
//!
//! # Problem
//! Whoever deletes a row, or changes its key, goes by what refers to it, and that may change before he commits. By an index that starts with the referring columns he reads the few entries of that key,
//! certified. Without such an index he reads the whole table, and whoever writes anything to it would refuse him.
//!
//! # Idea
//! What comes to refer to the key says so at the key ([`Transaction::present`]), and who has looked is refused where somebody has since
//! ([`Transaction::unreferred`]). So the look through the table need not be certified, nor be remembered while the snapshot moves up. Decision 231.
//!
//! # Invariants
//! 1. The look is made of one snapshot, which is said: what refers to the key then is seen, what does later refuses the transaction, whatever it makes of the key by its end. Where the snapshot has moved meanwhile, it is made again.
//! 2. What was found is locked before it counts, and looked at again once it is: a row may have been deleted, moved or made to refer to another while it was waited for.
//! 3. What an action changes is certified row by row.
//! 4. In a block above READ COMMITTED the look is certified. Its snapshot is to stay, and moves only while nothing that was read has changed: a look that is not remembered, and that ROLLBACK TO took back, would be
//!    moved over, and the block would have seen two states. And what a deferred check says of a row that it found is told, and goes by it.
//!
//! # Caveats
//! Where nobody guards references (a cluster whose version does not bring it, or too many keys) the whole table is certified.

use super::ahead::{self, AHEAD_ROWS};
use super::path::{Fit, fit};
use super::references::{Inbound, child_keys};
use super::span::{self, Keys};
use super::target::Target;
use super::writer::Writer;
use crate::catalog::Oid;
use crate::transaction::{LockMode, LockWait, ScanRequest, Transaction};
use crate::types::{Row, Value};
use crate::{KvError, SqlError, SqlState};
use bytes::Bytes;
use clock::Timestamp;

/// Rows fetched at a time when referencing rows are looked for.
pub(super) const CHILD_CHUNK_ROWS: usize = 256;
/// The same, where the whole table is looked through.
const TABLE_CHUNK_ROWS: usize = 1024;
/// So many rows that point at one are waited for, one after the other, before it is refused.
const CHILDREN_WAITED_MAX: usize = 256;
/// So often a table is looked through before all of it is certified.
const LOOKS_MAX: usize = 8;

/// Rows that were seen, with their keys, and the snapshot at which they were.
type SeenAt = (Vec<(Bytes, Row)>, Timestamp);

/// What a look promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing: what it finds is locked, and looked at again.
    Peek,
    /// What is seen is so at the snapshot; others may change it.
    Observed,
    /// What is seen is so until the commit.
    Certified,
}

impl Look {
    fn scan(self, txn: &mut dyn Transaction, request: &ScanRequest) -> Result<crate::transaction::ScanChunk, KvError> {
        match self {
            Look::Peek => txn.peek_scan(request),
            Look::Observed => txn.observe_scan(request),
            Look::Certified => txn.scan_certified(request),
        }
    }

    fn get(self, txn: &mut dyn Transaction, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        match self {
            Look::Peek => txn.peek(key),
            Look::Observed => txn.observe(key),
            Look::Certified => txn.get_certified(key),
        }
    }
}

impl Writer<'_> {
    /// The key at which whoever comes to refer to these values by a foreign key says so, where a look for them need not be certified: there is no index, and references are guarded.
    fn guarded_key(&self, child: &Target, constraint: Oid, slots: &[usize], values: &[Value]) -> Option<Bytes> {
        if child_keys(&child.access, slots, values).is_some()
            || !self.may_be_unremembered()
            || !self.context.txn.with(|txn| txn.guards_references())
        {
            return None;
        }
        let outbound = child.outbound.iter().find(|outbound| outbound.id == constraint)?;
        let mut row = vec![Value::Null; child.access.columns.len()];
        slots.iter().zip(values).for_each(|(&slot, value)| row[slot] = value.clone());
        outbound.key(&child.access, &row, &self.context.settings).ok().flatten()
    }

    /// What was seen at a snapshot of who refers to a key counts: whether that is so until the commit.
    fn goes_by(&self, key: &Bytes, looked: Timestamp) -> bool {
        let said = self.context.txn.with(|txn| txn.unreferred(key, looked));
        if let Some(claims) = self.context.claims.as_ref().filter(|_| said) {
            claims.note_gone(key);
        }
        said
    }

    /// A row that refers to what goes, and keeps it from going: whoever is about to delete it is waited for.
    pub(super) fn staying_child(
        &self,
        child: &Target,
        constraint: Oid,
        slots: &[usize],
        values: &[Value],
    ) -> Result<Option<Row>, SqlError> {
        if let Some(key) = self.guarded_key(child, constraint, slots, values) {
            for _ in 0..CHILDREN_WAITED_MAX {
                let Some((mut found, looked)) = self.seen_children(child, slots, values, 1)? else { break };
                let Some((row_key, _)) = found.pop() else {
                    if self.goes_by(&key, looked) {
                        return Ok(None);
                    }
                    break;
                };
                self.hold_child(&row_key)?;
                // Whoever was about to change it has ended.
                let Some(stored) = self.context.txn.with(|txn| txn.get(&row_key))? else { continue };
                if let Some(row) = referring(child, slots, values, &stored)? {
                    return Ok(Some(row));
                }
            }
        }
        self.wait_for_child(child, slots, values)?;
        let found = self.children(child, slots, values, 1, Look::Certified)?.pop();
        let Some((row_key, row)) = found else { return Ok(None) };
        self.settle_child(&row_key)?;
        Ok(Some(row))
    }

    /// Whether some row refers to what is gone, at the commit.
    pub(super) fn is_referred_to(
        &self,
        child: &Target,
        constraint: Oid,
        slots: &[usize],
        values: &[Value],
    ) -> Result<bool, SqlError> {
        if let Some(key) = self.guarded_key(child, constraint, slots, values)
            && let Some((found, looked)) = self.seen_children(child, slots, values, 1)?
            && (!found.is_empty() || self.goes_by(&key, looked))
        {
            return Ok(!found.is_empty());
        }
        Ok(!self.children(child, slots, values, 1, Look::Certified)?.is_empty())
    }

    /// All rows that refer to what goes, locked for what is done to them.
    pub(super) fn locked_children(
        &self,
        child: &Target,
        constraint: Oid,
        slots: &[usize],
        values: &[Value],
        mode: LockMode,
    ) -> Result<Vec<(Bytes, Row)>, SqlError> {
        if let Some(key) = self.guarded_key(child, constraint, slots, values) {
            for _ in 0..LOOKS_MAX {
                let Some((children, looked)) = self.seen_children(child, slots, values, usize::MAX)? else { break };
                self.lock_children(&children, mode)?;
                if self.snapshot() == looked && self.goes_by(&key, looked) {
                    return Ok(children);
                }
            }
        }
        if self.is_repeated_in_place() {
            self.lock_children(&self.children(child, slots, values, usize::MAX, Look::Peek)?, mode)?;
        }
        let children = self.children(child, slots, values, usize::MAX, Look::Certified)?;
        self.lock_children(&children, mode)?;
        Ok(children)
    }

    /// What refers to a key at one snapshot, which the transaction is at (invariant 1), and that. `None`: it moves on and on.
    fn seen_children(
        &self,
        child: &Target,
        slots: &[usize],
        values: &[Value],
        limit: usize,
    ) -> Result<Option<SeenAt>, SqlError> {
        for _ in 0..LOOKS_MAX {
            let looked = self.snapshot();
            let found = self.children(child, slots, values, limit, Look::Observed)?;
            if self.snapshot() == looked {
                return Ok(Some((found, looked)));
            }
        }
        Ok(None)
    }

    /// Whether what was looked at may be forgotten but for the key (invariant 4).
    fn may_be_unremembered(&self) -> bool {
        let lone = self.context.claims.as_ref().is_some_and(|claims| claims.are_lone());
        lone || self.context.modes.isolation == "read committed"
    }

    /// Whether the statement is one of several of a READ COMMITTED transaction: repeated, it keeps what was read certified. If that changes while it is waited for, the whole
    /// transaction is refused; so a look that promises nothing finds who is to be waited for first.
    fn is_repeated_in_place(&self) -> bool {
        let lone = self.context.claims.as_ref().is_none_or(|claims| claims.are_lone());
        !lone && self.context.modes.isolation == "read committed"
    }

    /// Before rows that point at what goes are looked for: whoever deletes one is waited for.
    fn wait_for_child(&self, child: &Target, slots: &[usize], values: &[Value]) -> Result<(), SqlError> {
        let mut held = None;
        for _ in 0..CHILDREN_WAITED_MAX {
            if !self.is_repeated_in_place() {
                return Ok(());
            }
            let Some((row_key, _)) = self.children(child, slots, values, 1, Look::Peek)?.pop() else { return Ok(()) };
            if held.as_ref() == Some(&row_key) {
                return Ok(());
            }
            self.hold_child(&row_key)?;
            held = Some(row_key);
        }
        Ok(())
    }

    /// A row points at what goes: the same, where the statement is repeated with all that it has read.
    fn settle_child(&self, row_key: &Bytes) -> Result<(), SqlError> {
        if self.is_repeated_in_place() { Ok(()) } else { self.hold_child(row_key) }
    }

    fn hold_child(&self, row_key: &Bytes) -> Result<(), SqlError> {
        let locked = self.context.txn.with(|txn| match txn.lock_as(row_key, LockMode::KeyShare, LockWait::Wait) {
            // Something else has changed; that it points there comes first.
            Err(KvError::Restart { .. }) if txn.present(row_key)? => Ok(true),
            other => other,
        });
        Ok(locked.map(drop)?)
    }

    /// Locks rows that an action is about to change: whoever changes one is waited for.
    fn lock_children(&self, children: &[(Bytes, Row)], mode: LockMode) -> Result<(), SqlError> {
        for next in children.chunks(AHEAD_ROWS) {
            ahead::locks(next.iter().map(|(key, _)| key.clone()), mode, &self.context.txn);
            for (row_key, _) in next {
                self.context.txn.with(|txn| txn.lock_as(row_key, mode, LockWait::Wait))?;
            }
        }
        Ok(())
    }

    /// Rows whose foreign key, in these slots, holds these values: their keys and all their columns.
    fn children(
        &self,
        child: &Target,
        slots: &[usize],
        values: &[Value],
        limit: usize,
        look: Look,
    ) -> Result<Vec<(Bytes, Row)>, SqlError> {
        let access = &child.access;
        if !slots
            .iter()
            .zip(values)
            .all(|(&slot, value)| matches!(fit(value.clone(), &access.columns[slot].ty), Fit::Exact(_)))
        {
            // No value of the referring columns equals it.
            return Ok(Vec::new());
        }
        let (index, ScanRequest { span, limit: chunk_rows, .. }) = child_span(child, slots, values, limit);
        let mut rest = Some(span);
        let mut out = Vec::new();
        while let Some(span) = rest.take() {
            self.context.check()?;
            let request = ScanRequest { span, reverse: false, limit: chunk_rows };
            let chunk = self.context.txn.with(|txn| look.scan(txn, &request))?;
            rest = chunk.rest;
            if index != 0 {
                let rows = chunk.rows.iter().map(|(key, value)| access.row_key_of_entry(key, value));
                let rows: Vec<Bytes> = rows.collect::<Result<_, SqlError>>()?;
                ahead::reads(rows.into_iter(), &self.context.txn)?;
            }
            for (key, value) in chunk.rows {
                let (key, stored) = if index == 0 {
                    (key, Some(value))
                } else {
                    let row_key = access.row_key_of_entry(&key, &value)?;
                    let stored = self.context.txn.with(|txn| look.get(txn, &row_key))?;
                    (row_key, stored)
                };
                let Some(stored) = stored else { continue };
                if let Some(row) = referring(child, slots, values, &stored)? {
                    out.push((key, row));
                    if out.len() >= limit {
                        return Ok(out);
                    }
                }
            }
        }
        Ok(out)
    }
}

/// A stored row, if these slots of it hold these values.
fn referring(child: &Target, slots: &[usize], values: &[Value], stored: &[u8]) -> Result<Option<Row>, SqlError> {
    let access = &child.access;
    let mut row = vec![Value::Null; access.columns.len()];
    access.decode(stored, slots, &mut row)?;
    let points = slots.iter().zip(values).all(|(&slot, value)| {
        let ty = &access.columns[slot].ty;
        matches!(fit(value.clone(), ty), Fit::Exact(value) if value.same(&row[slot], ty))
    });
    if !points {
        return Ok(None);
    }
    let all: Vec<usize> = (0..access.columns.len()).collect();
    access.decode(stored, &all, &mut row)?;
    Ok(Some(row))
}

/// Which index the rows whose foreign key holds some values are looked for in, and where; at most so many are wanted.
pub(super) fn child_span(child: &Target, slots: &[usize], values: &[Value], limit: usize) -> (usize, ScanRequest) {
    let access = &child.access;
    let found = child_keys(access, slots, values);
    // Without an index most rows are others: they are not looked at one by one.
    let limit = if found.is_some() { CHILD_CHUNK_ROWS.min(limit.max(1)) } else { TABLE_CHUNK_ROWS };
    let (index, keys) = found.unwrap_or_else(|| (0, Keys::Span(access.primary.span())));
    let span = match keys {
        Keys::Span(span) => span,
        Keys::One(key) => {
            let end = span::successor(&key);
            key..end
        }
    };
    (index, ScanRequest { span, reverse: false, limit })
}

/// The slots of a foreign key, in the order of its columns.
pub(super) fn child_slots(child: &Target, inbound: &Inbound) -> Result<Vec<usize>, SqlError> {
    inbound
        .key
        .columns
        .iter()
        .map(|&id| {
            child.access.slot(id).ok_or_else(|| {
                SqlError::new(SqlState::INTERNAL_ERROR, "a foreign key names a column that its table does not have")
            })
        })
        .collect()
}

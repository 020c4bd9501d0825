//! The writes of one statement: each row checked, written with its index entries, followed along its foreign keys; and what
//! must hold when the statement ends.

use super::ahead::{self, AHEAD_ROWS};
use super::children::{CHILD_CHUNK_ROWS, child_slots, child_span};
use super::evaluate;
use super::parts::Action;
use super::path::{Fit, fit};
use super::references::Inbound;
use super::sort::{Reserved, row_bytes};
use super::target::Target;
use super::write::{self, Old, RowImage, Touch};
use crate::catalog::{Oid, ReferentialAction, Relation};
use crate::context::StatementContext;
use crate::plan::PlanContext;
use crate::transaction::{LockMode, ScanRequest};
use crate::types::{Row, Value};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use clock::Timestamp;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// How deep referential actions follow each other.
pub(crate) const CASCADE_DEPTH_MAX: usize = 64;
/// Rows of all spans together that are looked for before they are needed, but for one of each.
const CHILD_ROWS_AHEAD: usize = 4096;

/// The writes of one running statement.
pub struct Writer<'a> {
    pub(super) context: &'a Arc<StatementContext>,
    /// Referenced keys that must exist at the end, each with one row that needs it.
    parents: BTreeMap<(Bytes, Oid), Reference>,
    /// Keys that nothing may point at in the end, unless they are back.
    gone: Vec<Gone>,
    /// Tables that referential actions reached.
    related: BTreeMap<Oid, Arc<Target>>,
    depth: usize,
    /// Memory of what waits for the end.
    reserved: Reserved,
}

struct Reference {
    target: Arc<Target>,
    key: usize,
    row: Row,
}

struct Gone {
    target: Arc<Target>,
    key: usize,
    values: Vec<Value>,
}

impl<'a> Writer<'a> {
    /// For a statement.
    pub fn new(context: &'a Arc<StatementContext>) -> Self {
        Writer {
            context,
            parents: BTreeMap::new(),
            gone: Vec::new(),
            related: BTreeMap::new(),
            depth: 0,
            reserved: Reserved::new(&context.memory),
        }
    }

    /// A row id for a table without a primary key; 0 for others.
    pub fn row_id(&self, target: &Target) -> u64 {
        if target.access.table.has_primary_key { 0 } else { self.context.kv.unique_id() }
    }

    /// Inserts a row, given whole.
    ///
    /// # Errors
    /// 23502, 23514, 23505; 23503 here or at [`Writer::finish`].
    pub fn insert(&mut self, target: &Arc<Target>, row: &[Value]) -> Result<(), SqlError> {
        let image = self.image(target, row)?;
        self.put_new(target, row, image)
    }

    /// A new row, checked and encoded.
    ///
    /// # Errors
    /// 23502, 23514.
    pub(crate) fn image(&self, target: &Target, row: &[Value]) -> Result<RowImage, SqlError> {
        target.check(row, None, self.context)?;
        let hidden = target.hidden(row, None, self.context)?;
        RowImage::new(&target.access, row, self.row_id(target), hidden.as_ref())
    }

    /// As [`Writer::insert`], for a row already checked and encoded.
    pub(crate) fn put_new(&mut self, target: &Arc<Target>, row: &[Value], image: RowImage) -> Result<(), SqlError> {
        let claims = self.context.claims.as_deref();
        let taken = self.context.txn.with(|txn| {
            let waited = claims.map_or(Ok(None), |claims| claims.wait(txn, &target.access, &image))?;
            if waited.is_some() {
                return Ok(waited);
            }
            if let Some(taken) = image.taken(txn, &target.access, None, |_| true)? {
                claims.map_or(Ok(()), |claims| image.settle(txn, &target.access, &taken, claims))?;
                return Ok(Some(taken.index));
            }
            if let Some(claims) = claims {
                claims.note(&target.access, &image);
            }
            image.put(txn, &target.access)?;
            Ok::<_, SqlError>(None)
        })?;
        match taken {
            Some(index) => Err(target.unique_violation(index, row, &self.context.settings)),
            None => self.refer(target, row, None),
        }
    }

    /// As [`Writer::put_new`], of a row whose unique keys are locked, if they can be ([`super::keys_together`]). `free`: what snapshot shows that nothing has one of them.
    pub(crate) fn put_locked(
        &mut self,
        target: &Arc<Target>,
        row: &[Value],
        image: RowImage,
        free: Option<Timestamp>,
    ) -> Result<(), SqlError> {
        let left = self.context.txn.with(|txn| {
            if free != Some(txn.snapshot()) && image.seems_taken(txn, &target.access, |_| true)? {
                return Ok(Some(image));
            }
            if let Some(claims) = self.context.claims.as_deref() {
                claims.note(&target.access, &image);
            }
            image.put(txn, &target.access)?;
            Ok::<_, SqlError>(None)
        })?;
        match left {
            // Whoever has it may be about to go.
            Some(image) => self.put_new(target, row, image),
            None => self.refer(target, row, None),
        }
    }

    /// Queues the checks of a written row's references; of an update, those that it changed.
    pub fn refer(
        &mut self,
        target: &Arc<Target>,
        row: &[Value],
        change: Option<(&Touch, &[Value])>,
    ) -> Result<(), SqlError> {
        for (i, outbound) in target.outbound.iter().enumerate() {
            if let Some((touch, old)) = change
                && outbound.slots.iter().all(|&slot| !touch.changed[slot] || row[slot] == old[slot])
            {
                continue;
            }
            let Some(key) = outbound.key(&target.access, row, &self.context.settings)? else { continue };
            let Entry::Vacant(entry) = self.parents.entry((key, outbound.id)) else { continue };
            let mut kept = vec![Value::Null; row.len()];
            outbound.slots.iter().for_each(|&slot| kept[slot] = row[slot].clone());
            self.reserved.take_to_write(entry.key().0.len() + row_bytes(&kept) + size_of::<Reference>())?;
            entry.insert(Reference { target: target.clone(), key: i, row: kept });
        }
        Ok(())
    }

    /// Rows are about to go, or (`deletes` is not so) to change keys that others point at: what is looked for then is asked for together, and what is changed with them is locked so. At
    /// most [`AHEAD_ROWS`] of them are looked at.
    pub(super) fn ask_for_children<'r>(
        &mut self,
        target: &Target,
        rows: impl Iterator<Item = &'r [Value]> + Clone,
        deletes: bool,
    ) -> Result<(), SqlError> {
        if target.inbound.is_empty() || !ahead::is_far(&self.context.txn) {
            return Ok(());
        }
        for inbound in &target.inbound {
            let action = inbound.action(deletes);
            let (limit, mode) = match (action, deletes) {
                // At the end: see `finish`.
                (ReferentialAction::NoAction, _) => continue,
                (ReferentialAction::Restrict, _) => (1, None),
                (ReferentialAction::Cascade, true) => (CHILD_CHUNK_ROWS, Some(LockMode::Update)),
                _ => (CHILD_CHUNK_ROWS, Some(LockMode::NoKeyUpdate)),
            };
            let child = self.related(inbound.child)?;
            let slots = child_slots(&child, inbound)?;
            let values = rows.clone().take(AHEAD_ROWS).filter_map(|row| inbound.values(row));
            let (indexes, requests): (Vec<usize>, Vec<ScanRequest>) =
                values.map(|values| child_span(&child, &slots, &values, limit)).unzip();
            // (One that a value does not fit is looked for in the whole table.)
            let Some(index) = indexes.first().copied().filter(|first| indexes.iter().all(|it| it == first)) else {
                continue;
            };
            let keys = self.scan_children(&child, requests, index)?;
            if let Some(mode) = mode {
                ahead::locks(keys.into_iter(), mode, &self.context.txn);
            }
        }
        Ok(())
    }

    /// Asks for spans of a child together, and for the rows that their entries lead to; gives the keys of those rows.
    fn scan_children(
        &self,
        child: &Target,
        mut requests: Vec<ScanRequest>,
        index: usize,
    ) -> Result<Vec<Bytes>, SqlError> {
        let limit = (CHILD_ROWS_AHEAD / requests.len().max(1)).max(1);
        requests.iter_mut().for_each(|request| request.limit = request.limit.min(limit));
        self.context.txn.with(|txn| {
            let mut rows = Vec::new();
            if requests.len() < 2 || !txn.scan_ahead(&requests)? {
                return Ok(rows);
            }
            for request in &requests {
                for (key, value) in txn.peek_scan(request)?.rows {
                    rows.push(if index == 0 { key } else { child.access.row_key_of_entry(&key, &value)? });
                }
                if rows.len() >= 2 * AHEAD_ROWS {
                    break;
                }
            }
            if index != 0 {
                txn.read_ahead(&rows)?;
            }
            Ok(rows)
        })
    }

    /// Updates a row; answers with its key.
    ///
    /// # Errors
    /// As for an insert, and 23503 for rows that point at what changed.
    pub fn update(
        &mut self,
        target: &Arc<Target>,
        touch: &Touch,
        old: &Old<'_>,
        row: &[Value],
    ) -> Result<Bytes, SqlError> {
        target.check(row, Some((touch, old)), self.context)?;
        let changed = |inbound: &Inbound| inbound.slots.iter().any(|&s| touch.changed[s] && old.row[s] != row[s]);
        for inbound in target.inbound.iter().filter(|i| i.action(false) == ReferentialAction::Restrict) {
            if changed(inbound) {
                self.restrict(target, inbound, old.row)?;
            }
        }
        let claims = self.context.claims.as_deref();
        let hidden = target.hidden(row, Some((touch, old)), self.context)?;
        let hidden = hidden.as_ref();
        let written =
            self.context.txn.with(|txn| write::update(txn, &target.access, touch, old, row, hidden, claims))?;
        let key = written.map_err(|index| target.unique_violation(index, row, &self.context.settings))?;
        if !target.outbound.is_empty() {
            self.refer(target, row, Some((touch, old.row)))?;
        }
        for (i, inbound) in target.inbound.iter().enumerate() {
            if changed(inbound) {
                self.follow(target, i, old.row, Some(row))?;
            }
        }
        Ok(key)
    }

    /// Deletes a row whose columns of [`Target::delete_needs`] are decoded.
    ///
    /// # Errors
    /// 23503 for rows that point at it.
    pub fn delete(&mut self, target: &Arc<Target>, key: &Bytes, row: &[Value]) -> Result<(), SqlError> {
        for inbound in target.inbound.iter().filter(|i| i.action(true) == ReferentialAction::Restrict) {
            self.restrict(target, inbound, row)?;
        }
        self.context.txn.with(|txn| write::delete(txn, &target.access, key, row))?;
        for i in 0..target.inbound.len() {
            self.follow(target, i, row, None)?;
        }
        Ok(())
    }

    /// Checks what must hold at the end of the statement.
    ///
    /// # Errors
    /// 23503.
    pub fn finish(mut self) -> Result<(), SqlError> {
        let deferred = &self.context.deferred;
        let parents = std::mem::take(&mut self.parents);
        let held =
            parents.iter().filter(|((_, _), reference)| reference.target.outbound[reference.key].holds_its_key());
        let held: Vec<Bytes> = held.map(|((parent, _), _)| parent.clone()).collect();
        let through_entries = parents.iter().filter(|(_, it)| !it.target.outbound[it.key].holds_its_key());
        ahead::reads(through_entries.take(AHEAD_ROWS).map(|((parent, _), _)| parent.clone()), &self.context.txn)?;
        let mut left = held.as_slice();
        for ((parent, _), Reference { target, key, row }) in parents {
            if left.first() == Some(&parent) {
                let next = left.len().min(AHEAD_ROWS);
                if (held.len() - left.len()).is_multiple_of(AHEAD_ROWS) {
                    ahead::locks(left[..next].iter().cloned(), LockMode::KeyShare, &self.context.txn);
                }
                left = &left[1..];
            }
            let outbound = &target.outbound[key];
            if !self.context.txn.with(|txn| outbound.finds(txn, &parent))? {
                let error = outbound.violation(&target.access, &row, &self.context.settings);
                deferred.hold(outbound, target.access.table.id, &row, parent, error)?;
            }
        }
        let all_gone = std::mem::take(&mut self.gone);
        for (n, gone) in all_gone.iter().enumerate() {
            if n.is_multiple_of(AHEAD_ROWS) && ahead::is_far(&self.context.txn) {
                self.ask_for_gone(&all_gone[n..all_gone.len().min(n + AHEAD_ROWS)])?;
            }
            let inbound = &gone.target.inbound[gone.key];
            let child = self.related(inbound.child)?;
            let slots = child_slots(&child, inbound)?;
            let Some(row) = self.staying_child(&child, inbound.key.id, &slots, &gone.values)? else { continue };
            let settings = &self.context.settings;
            let error = || inbound.violation(&gone.target.access, &child.access.table, &gone.values, settings);
            let outbound = child.outbound.iter().find(|outbound| outbound.id == inbound.key.id).ok_or_else(error)?;
            let Some(parent) = outbound.key(&child.access, &row, settings)? else { continue };
            if !self.context.txn.with(|txn| outbound.finds(txn, &parent))? {
                deferred.hold(outbound, inbound.child, &row, parent, error())?;
            }
        }
        Ok(())
    }

    /// What may point at keys that are gone is looked for next.
    fn ask_for_gone(&mut self, gone: &[Gone]) -> Result<(), SqlError> {
        let mut requests = Vec::with_capacity(gone.len());
        for Gone { target, key, values } in gone {
            let inbound = &target.inbound[*key];
            let child = self.related(inbound.child)?;
            let slots = child_slots(&child, inbound)?;
            requests.push(child_span(&child, &slots, values, 1).1);
        }
        if requests.len() > 1 {
            self.context.txn.with(|txn| txn.scan_ahead(&requests))?;
        }
        Ok(())
    }

    pub(super) fn snapshot(&self) -> Timestamp {
        self.context.txn.with(|txn| txn.snapshot())
    }

    /// RESTRICT: refuses at once.
    fn restrict(&mut self, target: &Arc<Target>, inbound: &Inbound, row: &[Value]) -> Result<(), SqlError> {
        let Some(values) = inbound.values(row) else { return Ok(()) };
        let child = self.related(inbound.child)?;
        let slots = child_slots(&child, inbound)?;
        if self.staying_child(&child, inbound.key.id, &slots, &values)?.is_none() {
            return Ok(());
        }
        Err(inbound.violation(&target.access, &child.access.table, &values, &self.context.settings))
    }

    /// Does what a foreign key says about the rows that point at a row that went (`new` is `None`) or changed.
    pub(super) fn follow(
        &mut self,
        target: &Arc<Target>,
        key: usize,
        old: &[Value],
        new: Option<&[Value]>,
    ) -> Result<(), SqlError> {
        let inbound = &target.inbound[key];
        let Some(values) = inbound.values(old) else { return Ok(()) };
        let action = inbound.action(new.is_none());
        match action {
            ReferentialAction::Restrict => return Ok(()),
            ReferentialAction::NoAction => {
                return self.keep_gone(target, key, values);
            }
            ReferentialAction::Cascade | ReferentialAction::SetNull | ReferentialAction::SetDefault => {}
        }
        if let Some(parts) = self.context.parts.as_ref().filter(|parts| parts.writes()) {
            let (old, new) = (old.to_vec(), new.map(<[Value]>::to_vec));
            let held = self.context.deferred.len();
            return parts.queue(Action { target: target.clone(), key, old, new, held });
        }
        if self.depth >= CASCADE_DEPTH_MAX {
            return Err(SqlError::new(
                SqlState::TOO_COMPLEX,
                format!("referential actions follow each other more than {CASCADE_DEPTH_MAX} levels deep"),
            )
            .hint("Delete or update the referencing rows first."));
        }
        self.depth += 1;
        let child = self.related(inbound.child)?;
        let slots = child_slots(&child, inbound)?;
        let touch = Touch::new(&child.access, &slots);
        let mode = match (action, new) {
            (ReferentialAction::Cascade, None) => LockMode::Update,
            _ => LockMode::NoKeyUpdate,
        };
        let children = self.locked_children(&child, inbound.key.id, &slots, &values, mode)?;
        for (row_key, row) in &children {
            // An action before this one may have moved the row.
            let Some(stored) = self.context.txn.with(|txn| txn.get_certified(row_key))? else { continue };
            if action == ReferentialAction::Cascade && new.is_none() {
                self.delete(&child, row_key, row)?;
                continue;
            }
            let mut changed = row.clone();
            for (i, &slot) in slots.iter().enumerate() {
                changed[slot] = match (action, new) {
                    (ReferentialAction::SetNull, _) => Value::Null,
                    (ReferentialAction::SetDefault, _) => match &child.defaults[slot] {
                        Some(default) => evaluate::value(default, &[], self.context)?,
                        None => Value::Null,
                    },
                    (_, Some(new)) => match fit(new[inbound.slots[i]].clone(), &child.access.columns[slot].ty) {
                        Fit::Exact(value) => value,
                        Fit::Null => Value::Null,
                        Fit::Below | Fit::Above => {
                            return Err(SqlError::new(SqlState::OUT_OF_RANGE, "a cascaded value is out of range"));
                        }
                    },
                    (_, None) => Value::Null,
                };
            }
            child.access.generate(Some(&touch.changed), &mut changed)?;
            self.update(&child, &touch, &Old { key: row_key, stored: &stored, row }, &changed)?;
        }
        self.depth -= 1;
        if action == ReferentialAction::SetDefault {
            // A row whose default is what it held still points at what went.
            self.keep_gone(target, key, values)?;
        }
        Ok(())
    }

    fn keep_gone(&mut self, target: &Arc<Target>, key: usize, values: Row) -> Result<(), SqlError> {
        self.reserved.take_to_write(row_bytes(&values) + size_of::<Gone>())?;
        self.gone.push(Gone { target: target.clone(), key, values });
        Ok(())
    }

    /// A table that foreign keys lead to.
    pub(super) fn related(&mut self, id: Oid) -> Result<Arc<Target>, SqlError> {
        if let Some(target) = self.related.get(&id) {
            return Ok(target.clone());
        }
        let relation = self.context.catalog.relation_to_write(id)?;
        let Some(Relation::Table(table)) = relation.as_deref() else {
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, format!("the referencing table {id} is gone")));
        };
        let target = Target::new(table, &PlanContext::of_statement(self.context))?;
        self.related.insert(id, target.clone());
        Ok(target)
    }
}

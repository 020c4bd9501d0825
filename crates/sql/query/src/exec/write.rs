//! Writes of one row with all its index entries. Knows keys and uniqueness; what a row must satisfy besides is checked above.
//!
//! A uniqueness check is a certified read of the absence: two transactions that insert the same key cannot both commit, at any
//! isolation level, and neither needs a lock for that. (They hold one, so that the second one waits: [`super::claims`].)
//!
//! Invariants
//! 1. Each function leaves the row and its entries in step (invariant 2 of [`super::table`]), or writes nothing.
//! 2. An update that changes nothing that an index's entries depend on does not touch that index.

use super::claims::Claims;
use super::index::Entry;
use super::load::Load;
use super::table::{IndexAccess, TableAccess};
use crate::encoding::key;
use crate::transaction::{LockMode, Transaction};
use crate::types::Value;
use crate::{KvError, SqlError};
use bytes::Bytes;

/// A row ready to be written: encoded once, checked and put from the same bytes.
pub struct RowImage {
    /// Key of the row.
    pub key: Bytes,
    /// The row.
    pub value: Bytes,
    /// Entries of the secondary indexes, in their order; none where a predicate leaves the row out.
    entries: Vec<Option<Entry>>,
    /// Of an index that is being made: its entry, or the mark of it.
    building: Option<Entry>,
}

/// A unique key that is taken.
#[derive(Debug, Clone)]
pub struct Taken {
    /// Which index: see [`TableAccess::index`].
    pub index: usize,
    /// Key of the row that has it.
    pub row_key: Bytes,
}

impl RowImage {
    /// Encodes a row given by slot, and by itself a column that is not shown yet ([`super::target::Target::hidden`]).
    pub fn new(access: &TableAccess, row: &[Value], row_id: u64, hidden: Option<&Value>) -> Result<Self, SqlError> {
        Self::with(access, row, row_id, access.encode(row, hidden)?)
    }

    /// As [`RowImage::new`], of a row whose bytes are there: only what keys depend on need be decoded.
    pub fn with(access: &TableAccess, row: &[Value], row_id: u64, value: Bytes) -> Result<Self, SqlError> {
        Self::at(access, row, access.row_key(row, row_id)?, value)
    }

    /// As [`RowImage::with`], of a row whose key is known.
    pub(super) fn at(access: &TableAccess, row: &[Value], key: Bytes, value: Bytes) -> Result<Self, SqlError> {
        let entries = access.indexes.iter().map(|index| index.entry(row, &key)).collect::<Result<_, SqlError>>()?;
        let building = match &access.building {
            Some(building) => building.written().entry(row, &key)?,
            None => None,
        };
        Ok(RowImage { key, value, entries, building })
    }

    /// The keys of this row that must be alone, with the ordinals of their indexes.
    pub(super) fn guarded<'a>(&'a self, access: &TableAccess) -> impl Iterator<Item = (usize, &'a Bytes)> {
        let primary = access.table.has_primary_key.then_some((0, &self.key));
        let entries = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(i, entry)| entry.as_ref().filter(|entry| entry.guarded).map(|entry| (i + 1, &entry.key)));
        primary.into_iter().chain(entries)
    }

    /// The first unique key of this row that a row other than `own` has, of the indexes that `consider` accepts.
    pub fn taken(
        &self,
        txn: &mut dyn Transaction,
        access: &TableAccess,
        own: Option<&Bytes>,
        consider: impl Fn(usize) -> bool,
    ) -> Result<Option<Taken>, SqlError> {
        for (index, key) in self.guarded(access).filter(|(index, _)| consider(*index)) {
            if index == 0 && own == Some(key) {
                continue;
            }
            let Some(value) = txn.get_certified(key)? else { continue };
            let row_key = if index == 0 { key.clone() } else { access.row_key_of_entry(key, &value)? };
            if own != Some(&row_key) {
                return Ok(Some(Taken { index, row_key }));
            }
        }
        self.taken_in_building(txn, access, own, consider)
    }

    /// Whether a unique key of this row has a value at the snapshot, of the indexes that `consider` accepts. Where none has the row is to be put
    /// at this snapshot: its writes are certified from there on, and so the look is. What has one is to be looked at for good. (In an index that is being built it is looked at for good here.)
    pub(super) fn seems_taken(
        &self,
        txn: &mut dyn Transaction,
        access: &TableAccess,
        consider: impl Fn(usize) -> bool,
    ) -> Result<bool, SqlError> {
        for (_, key) in self.guarded(access).filter(|(index, _)| consider(*index)) {
            if txn.observe(key)?.is_some() {
                return Ok(true);
            }
        }
        Ok(self.taken_in_building(txn, access, None, consider)?.is_some())
    }

    fn taken_in_building(
        &self,
        txn: &mut dyn Transaction,
        access: &TableAccess,
        own: Option<&Bytes>,
        consider: impl Fn(usize) -> bool,
    ) -> Result<Option<Taken>, SqlError> {
        let ordinal = access.indexes.len() + 1;
        match (&access.building, &self.building) {
            (Some(building), Some(entry)) if building.maintained && entry.guarded && consider(ordinal) => {
                let holder = building.holder(txn, access, &entry.key)?.filter(|holder| own != Some(holder));
                Ok(holder.map(|row_key| Taken { index: ordinal, row_key }))
            }
            _ => Ok(None),
        }
    }

    /// A key of this row is taken: see [`Claims::settle`].
    pub(super) fn settle(
        &self,
        txn: &mut dyn Transaction,
        access: &TableAccess,
        taken: &Taken,
        claims: &Claims,
    ) -> Result<(), SqlError> {
        let found = self.guarded(access).find(|(index, _)| *index == taken.index);
        claims.settle(txn, access, found.map_or(&taken.row_key, |(_, key)| key), &taken.row_key)
    }

    /// The ordinal of the first unique key of this row that a load has already.
    pub fn taken_in(&self, access: &TableAccess, load: &mut dyn Load) -> Result<Option<usize>, SqlError> {
        for (index, key) in self.guarded(access) {
            if load.contains(key)?.is_some() {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Gives the row and its entries to a load.
    pub fn load(self, load: &mut dyn Load) -> Result<(), SqlError> {
        load.put(self.key, self.value)?;
        self.entries.into_iter().flatten().try_for_each(|entry| load.put(entry.key, entry.value))
    }

    /// Writes the row and its entries.
    pub fn put(self, txn: &mut dyn Transaction, access: &TableAccess) -> Result<(), KvError> {
        txn.put(self.key, self.value)?;
        for entry in self.entries.into_iter().flatten() {
            txn.put(entry.key, entry.value)?;
        }
        match (&access.building, self.building) {
            (Some(building), Some(entry)) => building.put(txn, entry),
            _ => Ok(()),
        }
    }

    /// The keys that must be free for this row in the indexes that `consider` accepts.
    pub fn keys_of<'a>(
        &'a self,
        access: &TableAccess,
        consider: impl Fn(usize) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Bytes> {
        self.guarded(access).filter(move |(index, _)| consider(*index)).map(|(_, key)| key)
    }
}

/// Deletes a row (its columns given by slot: those of indexes must be decoded) and its entries.
pub fn delete(txn: &mut dyn Transaction, access: &TableAccess, row_key: &Bytes, row: &[Value]) -> Result<(), SqlError> {
    for index in &access.indexes {
        if let Some(entry) = index.entry(row, row_key)? {
            txn.delete(entry.key)?;
        }
    }
    if let Some(building) = &access.building
        && let Some(entry) = building.written().entry(row, row_key)?
    {
        building.remove(txn, access, entry, row_key)?;
    }
    txn.delete(row_key.clone())?;
    Ok(())
}

/// What an UPDATE statement touches of a table, settled when it is planned.
#[derive(Debug, Clone)]
pub struct Touch {
    /// Slots that SET names, and those of generated columns that follow them.
    pub changed: Vec<bool>,
    /// Ordinals (from 1) of secondary indexes with a changed column.
    pub indexes: Vec<usize>,
    /// Whether one of an index that is being made is.
    pub building: bool,
    /// Whether a column of the primary key is changed.
    pub key: bool,
}

impl Touch {
    /// For the slots that a statement sets.
    pub fn new(access: &TableAccess, set: &[usize]) -> Self {
        let mut changed = vec![false; access.columns.len()];
        for &slot in set {
            changed[slot] = true;
        }
        for (slot, value) in &access.generated {
            changed[*slot] = changed[*slot] || value.columns().iter().any(|&slot| changed[slot]);
        }
        let indexes: Vec<usize> =
            (0..access.indexes.len()).filter(|&i| access.indexes[i].touches(&changed)).map(|i| i + 1).collect();
        let key = access.primary.touches(&changed);
        let building = access.building.as_ref().is_some_and(|building| building.index.touches(&changed));
        Touch { changed, indexes, building, key }
    }

    /// Slots whose old values the update needs, besides those that expressions read.
    pub fn needs(&self, access: &TableAccess) -> Vec<usize> {
        let mut out: Vec<usize> = if self.key {
            (0..access.columns.len()).collect()
        } else {
            self.indexes.iter().flat_map(|&i| access.index(i).slots.iter().copied()).collect()
        };
        if let Some(building) = access.building.as_ref().filter(|_| self.building) {
            out.extend_from_slice(&building.index.slots);
        }
        let generated = access.generated.iter().filter(|(slot, _)| self.changed[*slot]);
        generated.for_each(|(_, value)| out.extend(value.columns()));
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// The old row of an update.
pub struct Old<'a> {
    /// Its key.
    pub key: &'a Bytes,
    /// Its bytes.
    pub stored: &'a [u8],
    /// Its columns by slot: those of [`Touch::needs`] are decoded.
    pub row: &'a [Value],
}

/// The keys that must be free for a changed row, with the ordinals of their indexes: what [`update`] looks at.
pub(super) fn new_keys(
    access: &TableAccess,
    touch: &Touch,
    old: &Old<'_>,
    row: &[Value],
) -> Result<Vec<(usize, Bytes)>, SqlError> {
    if touch.key && keys_differ(&access.primary, old.row, row) {
        let value = access.rewrite(old.stored, row, &touch.changed, None)?;
        let image = RowImage::with(access, row, 0, value)?;
        return Ok(image.guarded(access).map(|(index, key)| (index, key.clone())).collect());
    }
    let mut keys = Vec::new();
    for &ordinal in &touch.indexes {
        let index = access.index(ordinal);
        let (before, after) = (index.entry(old.row, old.key)?, index.entry(row, old.key)?);
        match after.filter(|entry| entry.guarded) {
            Some(after) if before.is_none_or(|before| before.key != after.key) => keys.push((ordinal, after.key)),
            _ => {}
        }
    }
    Ok(keys)
}

/// Writes a changed row. Answers with its key, or with the unique index in which another row has its key
/// (and nothing is written). `hidden`: the column that is not shown yet, if it is not to stay as it is.
pub fn update(
    txn: &mut dyn Transaction,
    access: &TableAccess,
    touch: &Touch,
    old: &Old<'_>,
    row: &[Value],
    hidden: Option<&Value>,
    claims: Option<&Claims>,
) -> Result<Result<Bytes, usize>, SqlError> {
    if touch.key && keys_differ(&access.primary, old.row, row) {
        return move_row(txn, access, old, row, hidden, claims);
    }
    let value = access.rewrite(old.stored, row, &touch.changed, hidden)?;
    let mut moves = Vec::new();
    for &ordinal in &touch.indexes {
        let index = access.index(ordinal);
        let (before, after) = (index.entry(old.row, old.key)?, index.entry(row, old.key)?);
        if before.as_ref().map(|entry| &entry.key) == after.as_ref().map(|entry| &entry.key) {
            continue;
        }
        if let Some(Entry { key, .. }) = after.as_ref().filter(|entry| entry.guarded) {
            if claims.is_some() && txn.is_far() {
                // It is looked at once it is locked: both are asked for together.
                txn.read_ahead(std::slice::from_ref(key))?;
            }
            let waited = claims.map_or(Ok(false), |claims| claims.wait_for_key(txn, key, Some(access)))?;
            if waited {
                return Ok(Err(ordinal));
            }
            if let Some(found) = txn.get_certified(key)? {
                let row_key = access.row_key_of_entry(key, &found)?;
                claims.map_or(Ok(()), |claims| claims.settle(txn, access, key, &row_key))?;
                return Ok(Err(ordinal));
            }
            if let Some(claims) = claims {
                claims.note_key(key);
            }
        }
        moves.push((before, after));
    }
    let mut made = (None, None);
    if let Some(building) = access.building.as_ref().filter(|_| touch.building) {
        made = (building.written().entry(old.row, old.key)?, building.written().entry(row, old.key)?);
        if made.0.as_ref().map(|entry| &entry.key) == made.1.as_ref().map(|entry| &entry.key) {
            made = (None, None);
        }
        if let Some(entry) = made.1.as_ref().filter(|entry| building.maintained && entry.guarded)
            && building.holder(txn, access, &entry.key)?.is_some_and(|holder| holder != *old.key)
        {
            return Ok(Err(access.indexes.len() + 1));
        }
    }
    for (before, after) in moves {
        if let Some(entry) = before {
            txn.delete(entry.key)?;
        }
        if let Some(entry) = after {
            txn.put(entry.key, entry.value)?;
        }
    }
    if let Some(building) = &access.building {
        if let Some(entry) = made.0 {
            building.remove(txn, access, entry, old.key)?;
        }
        if let Some(entry) = made.1 {
            building.put(txn, entry)?;
        }
    }
    txn.put(old.key.clone(), value)?;
    Ok(Ok(old.key.clone()))
}

/// An update that changes the primary key: the row and all its entries move. Checks see the old row gone.
fn move_row(
    txn: &mut dyn Transaction,
    access: &TableAccess,
    old: &Old<'_>,
    row: &[Value],
    hidden: Option<&Value>,
    claims: Option<&Claims>,
) -> Result<Result<Bytes, usize>, SqlError> {
    let image = RowImage::new(access, row, 0, hidden)?;
    if claims.is_some() && txn.is_far() {
        let keys: Vec<Bytes> = image.keys_of(access, |_| true).cloned().collect();
        txn.read_ahead(&keys)?;
        txn.lock_ahead(&keys, LockMode::NoKeyUpdate);
    }
    if let Some(index) = claims.map_or(Ok(None), |claims| claims.wait(txn, access, &image))? {
        return Ok(Err(index));
    }
    if let Some(taken) = image.taken(txn, access, Some(old.key), |_| true)? {
        claims.map_or(Ok(()), |claims| image.settle(txn, access, &taken, claims))?;
        return Ok(Err(taken.index));
    }
    if let Some(claims) = claims {
        claims.note(access, &image);
    }
    delete(txn, access, old.key, old.row)?;
    let key = image.key.clone();
    image.put(txn, access)?;
    Ok(Ok(key))
}

/// Whether two rows differ in an index's columns, by the order of keys.
pub(crate) fn keys_differ(index: &IndexAccess, a: &[Value], b: &[Value]) -> bool {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for column in &index.columns {
        let Some(slot) = column.slot else { continue };
        key::encode_value(&a[slot], &column.ty, false, &mut left);
        key::encode_value(&b[slot], &column.ty, false, &mut right);
    }
    left != right
}

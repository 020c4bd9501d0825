//! Index ids whose data is of no use any more, and how a process gets rid of it.
//!
//! DROP and TRUNCATE only record the index ids that they leave behind; a bulk load records its fresh index before the first row
//! and withdraws the record in the transaction that makes the index visible. So what a crash or a rollback leaves is found too.
//!
//! 1. A record with [`LOADING`] is taken back only by the node that wrote it, if no load of this process works on its index (see [`Loads`]) and no
//!    relation names it: it becomes one with [`UNSEEN`]. When that node has left the cluster for good ([`Kv::has_left`]) any other makes it one of what was dropped.
//!    Nothing is drained before that is committed: should the load's transaction be on its way still, it has deleted the record before, or is refused, as the record was written since; and one that comes to it later finds that it is no load any more.
//! 2. Draining removes the record last.
//!    A record with [`LEFT`] is not drained: it becomes one of what was dropped when those have ended who may still write there (`ddl`'s `orphans`).
//! 3. Where the store can erase ([`Kv::erase`]), it does so once no older snapshot than the record can be read: whoever
//!    reads the past before the drop sees the rows until then. With [`UNSEEN`] it does so at once: no snapshot, open or past, has ever had a use for what is there, and none ever will. Elsewhere rows are deleted, which are ordinary versions.

use super::{Relation, Snapshot, key, snapshot::read_area};
use crate::SqlError;
use crate::transaction::{Erased, Isolation, Kv, Patience, ScanRequest, Transaction};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// Value of a record: dropped, or truncated.
pub(crate) const DROPPED: [u8; 1] = [1];
/// First byte of a record: being loaded by a transaction that has not committed. In a cluster the number of its node follows.
pub(crate) const LOADING: u8 = 2;
/// First byte of a record: of what was being made beside writers, and was taken back. Who goes by the descriptor that named it may write there until he ends.
/// The table's OID and its version follow. (The release before takes it for dropped: what is written later stays where nobody reads.)
const LEFT: u8 = 3;
/// Value of a record: of a load that was taken back, so nobody has seen what is there, and nobody ever will. (The release before takes it for dropped, and waits.)
const UNSEEN: [u8; 1] = [4];
/// Rows deleted in one transaction.
pub(crate) const DRAIN_ROWS_MAX: usize = 4096;

/// The loads under way in this process.
#[derive(Debug, Default)]
pub struct Loads(Mutex<BTreeSet<u32>>);

impl Loads {
    /// A load begins.
    pub fn begin(&self, index: u32) {
        self.0.lock().insert(index);
    }
    /// Its transaction has ended.
    pub fn end(&self, index: u32) {
        self.0.lock().remove(&index);
    }
    /// Whether one is under way.
    pub fn contains(&self, index: u32) -> bool {
        self.0.lock().contains(&index)
    }
}

/// What was taken back of a table, and may still be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The index id.
    pub index: u32,
    /// The table.
    pub table: u32,
    /// The version by which it was named, and the one before which may be in use beside it.
    pub version: u64,
}

impl Left {
    pub(crate) fn record(&self) -> Bytes {
        let (table, version) = (self.table.to_be_bytes(), self.version.to_be_bytes());
        [&[LEFT][..], &table, &version].concat().into()
    }

    fn of(record: &[u8], value: &[u8]) -> Option<Left> {
        let (table, version) = value.strip_prefix(&[LEFT])?.split_first_chunk::<4>()?;
        let (table, version) = (u32::from_be_bytes(*table), u64::from_be_bytes(version.try_into().ok()?));
        Some(Left { index: key::object_id(record)?, table, version })
    }
}

/// All that was taken back and may still be written to.
///
/// # Errors
/// Those of the transaction.
pub fn all_left(txn: &mut dyn Transaction) -> Result<Vec<Left>, SqlError> {
    let records = read_area(txn, key::GARBAGE)?;
    Ok(records.iter().filter_map(|(record, value)| Left::of(record, value)).collect())
}

/// Nobody writes there any more: it may be drained.
///
/// # Errors
/// Those of the layers below; a restart if another node did the same.
pub fn drop_left(kv: &dyn Kv, patience: &Patience, left: Left) -> Result<(), SqlError> {
    let mut txn = patience.begin(kv, Isolation::default())?;
    let record = Bytes::copy_from_slice(&key::object(key::GARBAGE, left.index));
    if txn.get_certified(&record)?.is_some_and(|value| Left::of(&record, &value) == Some(left)) {
        txn.frees_space();
        txn.put(record, Bytes::from_static(&DROPPED))?;
        patience.commit(txn.as_mut())?;
    }
    Ok(())
}

/// Where a drain goes on: from the start it would pass over all that it has deleted already. Lost with the process.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Option<(u32, Bytes)>>);

/// Gets rid of some of one index that is garbage: up to [`DRAIN_ROWS_MAX`] rows where they are deleted. `false` if there is none now.
/// Maintenance calls it again and again, at its own pace. `keeps_seen`: invariant 3; without it, for negative controls, what was seen is erased as what was not.
///
/// # Errors
/// Those of the layers below; a restart means to call again.
pub fn drain(
    kv: &dyn Kv,
    patience: &Patience,
    cache: &super::Cache,
    loads: &Loads,
    progress: &Progress,
    keeps_seen: bool,
) -> Result<bool, SqlError> {
    let mut progress = patience.lock(kv, &progress.0)?;
    let mut txn = patience.begin(kv, Isolation::default())?;
    let catalog = cache.current(kv, patience, txn.as_mut(), None)?;
    let garbage = |(record, value): (Bytes, Bytes)| {
        let index = key::object_id(&record)?;
        let kept = is_loading(&value) || Left::of(&record, &value).is_some() || loads.contains(index);
        (!kept).then_some((record, index, value[..] == UNSEEN))
    };
    let all = read_area(txn.as_mut(), key::GARBAGE)?;
    let orphan = |(_, value): &&(Bytes, Bytes)| loader(value).is_some_and(|node| node != 0 && kv.has_left(node));
    let unused = |(record, _): &&(Bytes, Bytes)| key::object_id(record).is_some_and(|it| !in_use(&catalog, it));
    if let Some((record, _)) = all.iter().filter(orphan).find(unused) {
        txn.frees_space();
        txn.put(record.clone(), Bytes::from_static(&DROPPED))?;
        patience.commit(txn.as_mut())?;
        return Ok(true);
    }
    // 0: of a process that ran alone on this store, and is over.
    let own = |node: u32| node == kv.node() || node == 0;
    let given_up = |(record, value): &&(Bytes, Bytes)| {
        let index = key::object_id(record).filter(|index| !loads.contains(*index) && !in_use(&catalog, *index));
        index.is_some() && loader(value).is_some_and(own)
    };
    if let Some((record, _)) = all.iter().find(given_up) {
        take_back(patience, txn.as_mut(), record)?;
        return Ok(true);
    }
    let records: Vec<(Bytes, u32, bool)> = all.into_iter().filter_map(garbage).collect();
    if records.is_empty() {
        return Ok(false);
    }
    let (mut more, mut erased) = (false, false);
    for (record, index, unseen) in &records {
        match kv.erase(index.to_be_bytes(), Some(&record[..]).filter(|_| keeps_seen && !unseen))? {
            None => return delete_some(patience, txn.as_mut(), record, *index, &mut progress),
            Some(Erased::All) => {
                txn.delete(record.clone())?;
                erased = true;
            }
            Some(Erased::Part) => {
                more = true;
                break;
            }
            Some(Erased::NotYet) => {}
        }
    }
    if erased {
        patience.commit(txn.as_mut())?;
    }
    Ok(more)
}

/// A load is none any more, if it has not been adopted: its transaction cannot commit behind that (invariant 1).
fn take_back(patience: &Patience, txn: &mut dyn Transaction, record: &Bytes) -> Result<(), SqlError> {
    if txn.get_certified(record)?.is_some_and(|value| is_loading(&value)) {
        txn.frees_space();
        txn.put(record.clone(), Bytes::from_static(&UNSEEN))?;
        patience.commit(txn)?;
    }
    Ok(())
}

/// The load of these indexes has failed, and nobody writes there any more: what it has written goes at once where the store can erase. What is left is on record ([`drain`]); where it
/// cannot be erased yet the rest is not asked for, which would use up how often that may be put off.
/// `first` is said on record that it has failed (invariant 1); without that, for negative controls, it is erased though its transaction may have committed.
///
/// # Errors
/// Those of the layers below.
pub fn withdraw(kv: &dyn Kv, patience: &Patience, indexes: &[u32], first: bool) -> Result<(), SqlError> {
    let record = |index: &u32| Bytes::copy_from_slice(&key::object(key::GARBAGE, *index));
    if !first {
        return Ok(indexes.iter().try_for_each(|index| kv.erase(index.to_be_bytes(), None).map(drop))?);
    }
    for index in indexes {
        take_back(patience, patience.begin(kv, Isolation::default())?.as_mut(), &record(index))?;
    }
    for index in indexes {
        let (mut txn, record) = (patience.begin(kv, Isolation::default())?, record(index));
        if txn.get_certified(&record)?.is_none_or(|value| value[..] != UNSEEN) {
            continue;
        }
        if kv.erase(index.to_be_bytes(), None)? != Some(Erased::All) {
            return Ok(());
        }
        txn.delete(record)?;
        patience.commit(txn.as_mut())?;
    }
    Ok(())
}

/// Whether a record is of a load that nobody has taken back.
pub fn is_loading(record: &[u8]) -> bool {
    loader(record).is_some()
}

/// The node whose load a record is of; `None`: it is of what was dropped.
fn loader(value: &[u8]) -> Option<u32> {
    let (first, node) = value.split_first()?;
    (*first == LOADING).then(|| node.try_into().map_or(0, u32::from_be_bytes))
}

/// Deletes up to [`DRAIN_ROWS_MAX`] rows, and the record with the last.
fn delete_some(
    patience: &Patience,
    txn: &mut dyn Transaction,
    record: &Bytes,
    index: u32,
    progress: &mut Option<(u32, Bytes)>,
) -> Result<bool, SqlError> {
    let mut span = key::index_span(index);
    if let Some((_, from)) = progress.as_ref().filter(|(at, _)| *at == index) {
        span.start = from.clone();
    }
    let chunk = txn.scan(&ScanRequest { span, reverse: false, limit: DRAIN_ROWS_MAX })?;
    for (row, _) in chunk.rows {
        txn.delete(row)?;
    }
    if chunk.rest.is_none() {
        txn.delete(record.clone())?;
    }
    patience.commit(txn)?;
    *progress = chunk.rest.map(|rest| (index, rest.start));
    Ok(true)
}

fn in_use(catalog: &Snapshot, index: u32) -> bool {
    catalog.databases().flat_map(|d| catalog.relations(d.id)).any(|relation| match &*relation {
        Relation::Table(t) => {
            let made = t.building.as_ref().is_some_and(|made| made.index.id == index || made.marks == index);
            made || t.primary.id == index || t.indexes.iter().any(|i| i.id == index)
        }
        _ => false,
    })
}

/// Records that `index` is about to be loaded, durably.
///
/// # Errors
/// Those of the layers below.
pub fn announce(kv: &dyn Kv, patience: &Patience, index: u32) -> Result<(), SqlError> {
    let mut txn = patience.begin(kv, Isolation::default())?;
    let mut value = vec![LOADING];
    if kv.node() != 0 {
        value.extend(kv.node().to_be_bytes());
    }
    txn.put(Bytes::copy_from_slice(&key::object(key::GARBAGE, index)), value.into())?;
    patience.commit(txn.as_mut())?;
    Ok(())
}

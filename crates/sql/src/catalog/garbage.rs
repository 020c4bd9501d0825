//! Index ids whose data is of no use any more, and how a process gets rid of it.
//!
//! DROP and TRUNCATE only record the index ids that they leave behind; a bulk load records its fresh index before the first row
//! and withdraws the record in the transaction that makes the index visible. So what a crash or a rollback leaves is found too.
//!
//! 1. A record with [`LOADING`] is drained only if no load of this process works on its index (see [`Loads`]) and no
//!    relation uses it.
//! 2. Draining deletes the record last, in the transaction of the last chunk.
//!
//! Caveat: a snapshot of the past that still reads a dropped table must be older than the drain's deletes, which are
//! ordinary versions: it keeps seeing the rows.

use super::{Relation, Snapshot, key, snapshot::read_area};
use crate::SqlError;
use crate::transaction::{Isolation, Kv, Patience, ScanRequest};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeSet;

/// Value of a record: dropped, or truncated.
pub const DROPPED: [u8; 1] = [1];
/// Value of a record: being loaded by a transaction that has not committed.
pub const LOADING: [u8; 1] = [2];
/// Rows deleted in one transaction.
pub const DRAIN_ROWS_MAX: usize = 4096;

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
    fn contains(&self, index: u32) -> bool {
        self.0.lock().contains(&index)
    }
}

/// Where a drain goes on: from the start it would pass over all that it has deleted already. Lost with the process.
#[derive(Debug, Default)]
pub struct Progress(Mutex<Option<(u32, Bytes)>>);

/// Deletes up to [`DRAIN_ROWS_MAX`] rows of one index that is garbage; `false` if there is none. Maintenance calls it again
/// and again, at its own pace.
///
/// # Errors
/// Those of the layers below; a restart means to call again.
pub fn drain(
    kv: &dyn Kv,
    patience: &Patience,
    cache: &super::Cache,
    loads: &Loads,
    progress: &Progress,
) -> Result<bool, SqlError> {
    let mut progress = patience.lock(kv, &progress.0)?;
    let mut txn = patience.begin(kv, Isolation::default())?;
    let catalog = cache.current(txn.as_mut(), None)?;
    for (record, value) in read_area(txn.as_mut(), key::GARBAGE)? {
        let Some(index) = key::object_id(&record) else { continue };
        if loads.contains(index) || (value[..] == LOADING && in_use(&catalog, index)) {
            continue;
        }
        let mut span = key::index_span(index);
        if let Some((_, from)) = progress.as_ref().filter(|(at, _)| *at == index) {
            span.start = from.clone();
        }
        let chunk = txn.scan(&ScanRequest { span, reverse: false, limit: DRAIN_ROWS_MAX })?;
        for (row, _) in chunk.rows {
            txn.delete(row)?;
        }
        if chunk.rest.is_none() {
            txn.delete(record)?;
        }
        patience.commit(txn.as_mut())?;
        *progress = chunk.rest.map(|rest| (index, rest.start));
        return Ok(true);
    }
    Ok(false)
}

fn in_use(catalog: &Snapshot, index: u32) -> bool {
    catalog.databases().flat_map(|d| catalog.relations(d.id)).any(|relation| match &*relation {
        Relation::Table(t) => t.primary.id == index || t.indexes.iter().any(|i| i.id == index),
        _ => false,
    })
}

/// Records that `index` is about to be loaded, durably.
///
/// # Errors
/// Those of the layers below.
pub fn announce(kv: &dyn Kv, patience: &Patience, index: u32) -> Result<(), SqlError> {
    let mut txn = patience.begin(kv, Isolation::default())?;
    txn.put(Bytes::copy_from_slice(&key::object(key::GARBAGE, index)), Bytes::from_static(&LOADING))?;
    patience.commit(txn.as_mut())?;
    Ok(())
}

//! Bulk writes below fresh index ids, outside the transaction that will make them visible.
//!
//! Problem: an index over a million rows, or a million rows to load, do not fit a transaction's buffer. Idea: nobody reads below
//! an index id that no committed descriptor names. So chunks are written and committed by transactions of their own, and the
//! main transaction, when all is written, (1) locks the record that announced the load, which moves its snapshot above all
//! chunks, so that it sees them itself, and (2) deletes that record together with its descriptor change.
//!
//! 1. Before the first chunk there is a durable record of the index ids; it goes only with the main commit. After a
//!    crash or a rollback the record is left, and what is below the ids is collected (see [`crate::catalog::garbage`]).
//! 2. Little data never takes this way: it is written in the main transaction.
//! 3. Keys that ascend are written as they come. Of an index whose keys do not, what came out of order is sorted ([`Sorter`]) and
//!    written at the end: so what is written costs the same wherever its keys lie, and the store gets it without overlaps.
//! 4. A unique key is looked up before it is written if it lies below what was written, which keys that ascend never do; of those that
//!    were sorted equal ones meet.
//! 5. In memory are at most [`chunk_bytes_max`] twice (a chunk is written while the next one is made), and a row more for each, what the sort holds
//!    ([`sort_bytes_max`]), and what the store has not taken yet.
//! 6. A chunk goes past the log where that is possible ([`Kv::load`]), else through transactions of [`TXN_BYTES_MAX`].

use super::sorter::{Merge, SORT_BYTES_MAX, Sorter};
use crate::catalog::{Oid, Table, garbage, key};
use crate::database::Database;
use crate::exec::index::entry_value;
use crate::exec::load::{Duplicate, Load};
use crate::progress::{IndexPhase, IndexProgress};
use crate::transaction::{Isolation, Kv, KvError, Loading, LockWait, Patience, TxnRef};
use crate::{SqlError, SqlState};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most bytes in one chunk: as large as the files that the engine makes, so that they need not be merged.
pub const CHUNK_BYTES_MAX: usize = 32 << 20;
/// Where the node's memory is small, a chunk is this part of it, and what is sorted in memory twice as much.
const CHUNK_MEMORY_PART: usize = 24;
/// So many of these parts are given to nobody (`server`'s `memory`).
const UNSHARED_PARTS: usize = 7;
/// But no smaller than this: the engine makes a file of each.
const CHUNK_BYTES_MIN: usize = 4 << 20;
/// What an entry takes in memory beside its key and value, about.
const ENTRY_BYTES: usize = 96;
/// Most rows in one transaction.
const TXN_ROWS_MAX: usize = 32_768;
/// Most bytes in one transaction.
const TXN_BYTES_MAX: usize = 4 << 20;
/// What is written in the main transaction instead, if it is no more than this.
pub const SMALL_ROWS_MAX: usize = 2_000;
/// See [`SMALL_ROWS_MAX`].
pub const SMALL_BYTES_MAX: usize = 256 << 10;
/// How often a chunk is tried.
pub const CHUNK_ATTEMPTS_MAX: usize = 16;

/// See the module.
pub struct Loader {
    parts: Vec<Part>,
    patience: Patience,
    /// All that was put so far, while it is little.
    few: Option<BTreeMap<Bytes, Bytes>>,
    /// Of what is in memory and not in a sorter.
    bytes: usize,
    announced: bool,
    /// The chunk that is being written, if that goes on beside.
    written: Option<Written>,
    progress: Option<Arc<IndexProgress>>,
    /// So much of the disk is left to others.
    left_bytes: u64,
}

/// A chunk that is being written.
struct Written {
    loading: Loading,
    rows: Arc<Vec<(Bytes, Bytes)>>,
}

/// What becomes of one index.
struct Part {
    index: Oid,
    unique: bool,
    /// The last key that was put while all was little, and whether they came in order.
    newest: Bytes,
    ascends: bool,
    /// Entries in order, to be written next.
    run: Rows,
    run_bytes: usize,
    /// Greatest key of the runs written so far.
    greatest: Option<Bytes>,
    /// Where the keys go that came below the last one, and all that came afterwards.
    sorter: Option<Sorter>,
}

impl Part {
    /// The greatest key that did not go to the sorter.
    fn last(&self) -> Option<&[u8]> {
        self.run.last_key().or(self.greatest.as_deref())
    }

    /// Takes an entry; gives by how much the run grew.
    fn push(&mut self, key: Bytes, value: Bytes, sort_bytes_max: usize) -> usize {
        if self.sorter.is_none() && self.last().is_none_or(|last| key[..] > *last) {
            let bytes = key.len() + value.len() + ENTRY_BYTES;
            self.run_bytes += bytes;
            self.run.push(key, value);
            return bytes;
        }
        self.sorter.get_or_insert_with(|| Sorter::within(sort_bytes_max)).push(&key, &value);
        0
    }
}

/// Most bytes in one chunk on a node of so much memory.
fn chunk_bytes_max(memory_bytes: Option<usize>) -> usize {
    memory_bytes.map_or(CHUNK_BYTES_MAX, |bytes| (bytes / CHUNK_MEMORY_PART).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX))
}

/// Most bytes of entries that a load sorts in memory there.
fn sort_bytes_max(memory_bytes: Option<usize>) -> usize {
    (2 * chunk_bytes_max(memory_bytes)).min(SORT_BYTES_MAX)
}

/// How many loads fit the part of a node's memory that is shared out to nobody.
pub fn loads_max(memory_bytes: usize) -> usize {
    let of_one = 2 * chunk_bytes_max(Some(memory_bytes)) + sort_bytes_max(Some(memory_bytes));
    memory_bytes / CHUNK_MEMORY_PART * UNSHARED_PARTS / of_one
}

/// So much a statement that fills a table holds as writes of its transaction before it looks whether it can load them: see [`super::takeover`].
pub fn held_bytes_max(memory_bytes: Option<usize>) -> usize {
    2 * chunk_bytes_max(memory_bytes)
}

/// A load, and the database that it goes to.
pub struct Into<'a> {
    /// See above.
    pub loader: &'a mut Loader,
    /// See above.
    pub db: &'a Database,
}

impl Load for Into<'_> {
    fn contains(&mut self, key: &[u8]) -> Result<Option<Bytes>, SqlError> {
        self.loader.contains(self.db, key)
    }
    fn put(&mut self, key: Bytes, value: Bytes) -> Result<(), SqlError> {
        self.loader.put(self.db, key, value)
    }
}

impl Loader {
    /// This load, into its database.
    pub fn into_db<'a>(&'a mut self, db: &'a Database) -> Into<'a> {
        Into { loader: self, db }
    }

    /// A load of these indexes, which must be fresh (and whether their keys must be alone), by a statement of such patience.
    pub fn new(indexes: impl IntoIterator<Item = (Oid, bool)>, patience: Patience) -> Loader {
        let part = |(index, unique)| Part {
            index,
            unique,
            newest: Bytes::new(),
            ascends: true,
            run: Rows::default(),
            run_bytes: 0,
            greatest: None,
            sorter: None,
        };
        Loader {
            parts: indexes.into_iter().map(part).collect(),
            patience,
            few: Some(BTreeMap::new()),
            bytes: 0,
            announced: false,
            written: None,
            progress: None,
            left_bytes: 0,
        }
    }

    /// A load of a table that is new or empty, with all of its indexes.
    pub fn of_table(table: &Table, patience: Patience) -> Loader {
        let indexes = table.indexes.iter().map(|index| (index.id, index.unique));
        Loader::new(std::iter::once((table.primary.id, table.has_primary_key)).chain(indexes), patience)
    }

    /// Says there how much of what was sorted is written.
    pub fn watched(mut self, progress: &Arc<IndexProgress>) -> Loader {
        self.progress = Some(progress.clone());
        self
    }

    /// It ends where less than so much of the disk would be left to others, bytes.
    pub fn leaving(mut self, left_bytes: u64) -> Loader {
        self.left_bytes = left_bytes;
        self
    }

    /// Whether anything has been written outside the main transaction.
    pub fn is_large(&self) -> bool {
        self.announced
    }
    /// The indexes being loaded.
    pub fn indexes(&self) -> Vec<Oid> {
        self.parts.iter().map(|part| part.index).collect()
    }

    fn part_of(&self, row: &[u8]) -> Option<usize> {
        let index = Oid::from_be_bytes(row.get(..4)?.try_into().ok()?);
        self.parts.iter().position(|part| part.index == index)
    }

    /// Whether a key was put before. What is small is all in memory; what was written is looked up; what is sorted shows at the end
    /// ([`Loader::finish`]).
    ///
    /// # Errors
    /// Those of the layers below.
    pub fn contains(&mut self, db: &Database, row: &[u8]) -> Result<Option<Bytes>, SqlError> {
        if let Some(few) = &self.few {
            return Ok(few.get(row).cloned());
        }
        let Some(part) = self.part_of(row).map(|at| &self.parts[at]) else { return Ok(None) };
        if part.sorter.is_some() || part.last().is_none_or(|last| row > last) {
            return Ok(None);
        }
        if let Some(value) = part.run.get(row) {
            return Ok(Some(value));
        }
        if part.greatest.as_ref().is_none_or(|greatest| row > &greatest[..]) {
            return Ok(None);
        }
        self.wait(db)?;
        let mut txn = self.patience.begin(db.kv.as_ref(), Isolation::RepeatableRead)?;
        let found = txn.get(row)?;
        txn.rollback();
        Ok(found)
    }

    /// Adds a row or an entry.
    ///
    /// # Errors
    /// Those of the layers below.
    pub fn put(&mut self, db: &Database, row: Bytes, value: Bytes) -> Result<(), SqlError> {
        if self.few.is_none() {
            return self.distribute(db, row, value);
        }
        if let Some(at) = self.part_of(&row) {
            let part = &mut self.parts[at];
            part.ascends &= part.newest < row;
            part.newest = row.clone();
        }
        let Some(few) = &mut self.few else { return Ok(()) };
        self.bytes += row.len() + value.len();
        few.insert(row, value);
        if few.len() <= SMALL_ROWS_MAX && self.bytes <= SMALL_BYTES_MAX {
            return Ok(());
        }
        self.not_few(db)
    }

    /// As [`Loader::put`], of what is copied where it has to be: what is sorted is, in any case.
    ///
    /// # Errors
    /// Those of the layers below.
    pub fn put_lent(&mut self, db: &Database, row: &[u8], value: &[u8]) -> Result<(), SqlError> {
        let at = if self.few.is_none() { self.part_of(row) } else { None };
        if let Some(sorter) = at.and_then(|at| self.parts[at].sorter.as_mut()) {
            sorter.push(row, value);
            return self.bound_sorters(db);
        }
        self.put(db, Bytes::copy_from_slice(row), entry_value(value))
    }

    /// From now on each entry goes to its index.
    fn not_few(&mut self, db: &Database) -> Result<(), SqlError> {
        self.bytes = 0;
        let others = self.parts.iter_mut().filter(|part| !part.ascends);
        let bytes_max = sort_bytes_max(db.options.memory_bytes);
        others.for_each(|part| part.sorter = Some(Sorter::within(bytes_max)));
        self.few.take().into_iter().flatten().try_for_each(|(row, value)| self.distribute(db, row, value))
    }

    fn distribute(&mut self, db: &Database, row: Bytes, value: Bytes) -> Result<(), SqlError> {
        let Some(at) = self.part_of(&row) else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "a row that belongs to no index of the load"));
        };
        let part = &mut self.parts[at];
        self.bytes += part.push(row, value, sort_bytes_max(db.options.memory_bytes));
        if part.sorter.is_some() {
            self.bound_sorters(db)?;
        }
        if self.bytes >= chunk_bytes_max(db.options.memory_bytes)
            && let Some(largest) = (0..self.parts.len()).max_by_key(|at| self.parts[*at].run_bytes)
        {
            self.write_run(db, largest)?;
        }
        Ok(())
    }

    fn bound_sorters(&mut self, db: &Database) -> Result<(), SqlError> {
        let bytes = |part: &Part| part.sorter.as_ref().map_or(0, Sorter::bytes);
        if self.parts.iter().map(bytes).sum::<usize>() >= sort_bytes_max(db.options.memory_bytes)
            && let Some(sorter) = self.parts.iter_mut().max_by_key(|part| bytes(part)).and_then(|p| p.sorter.as_mut())
        {
            sorter.spill(db.kv.as_ref())?;
        }
        Ok(())
    }

    /// Writes what came in order of one index.
    fn write_run(&mut self, db: &Database, at: usize) -> Result<(), SqlError> {
        let rows = self.parts[at].run.take();
        self.bytes -= std::mem::take(&mut self.parts[at].run_bytes);
        let Some((last, _)) = rows.last() else { return Ok(()) };
        let greatest = last.clone();
        self.announce(db)?;
        self.write(db, rows)?;
        self.parts[at].greatest = Some(greatest);
        Ok(())
    }

    /// Writes rows, in order, when those before are written; it may go on when this returns.
    fn write(&mut self, db: &Database, rows: Vec<(Bytes, Bytes)>) -> Result<(), SqlError> {
        self.wait(db)?;
        // Whoever is to end has no more than one chunk on its way.
        self.patience.check(|| db.kv.monotonic_us())?;
        if self.left_bytes > 0 && !db.kv.has_room_for(self.left_bytes) {
            return Err(KvError::DiskFull.into());
        }
        let rows = Arc::new(rows);
        let loading = db.kv.load_aside(&rows, &self.patience);
        self.written = Some(Written { loading, rows });
        Ok(())
    }

    /// Waits until what was given is written.
    fn wait(&mut self, db: &Database) -> Result<(), SqlError> {
        let Some(Written { loading, rows }) = self.written.take() else { return Ok(()) };
        if loading.wait()? { Ok(()) } else { write_in_transactions(db.kv.as_ref(), &self.patience, &rows) }
    }

    fn announce(&mut self, db: &Database) -> Result<(), SqlError> {
        if self.announced {
            return Ok(());
        }
        // Even where it fails: that the load has ended is reported all the same.
        self.announced = true;
        announce(db, &self.patience, &self.indexes())
    }

    /// Writes what is left, and makes all of it part of the main transaction. `duplicate` makes the error of a unique key that is there
    /// twice. Gives the indexes whose load must be reported as ended when that transaction ends.
    ///
    /// # Errors
    /// Those of the layers below; a restart if the main transaction's snapshot cannot move up.
    pub fn finish(
        &mut self,
        db: &Database,
        txn: &TxnRef,
        duplicate: &mut dyn FnMut(Duplicate<'_>) -> SqlError,
    ) -> Result<Vec<Oid>, SqlError> {
        self.settle(db, duplicate)?;
        self.join(db, txn)
    }

    /// Writes what is left, unless all is little.
    ///
    /// # Errors
    /// Those of the layers below.
    pub fn settle(
        &mut self,
        db: &Database,
        duplicate: &mut dyn FnMut(Duplicate<'_>) -> SqlError,
    ) -> Result<(), SqlError> {
        if self.few.is_some() {
            return Ok(());
        }
        (0..self.parts.len()).try_for_each(|at| self.write_run(db, at))?;
        for at in 0..self.parts.len() {
            if let Some(sorter) = self.parts[at].sorter.take() {
                self.announce(db)?;
                self.wait(db)?;
                self.write_sorted(db, at, sorter.merge()?, duplicate)?;
            }
        }
        self.wait(db)
    }

    /// Makes all of what was settled part of a transaction: see [`Loader::finish`].
    ///
    /// # Errors
    /// A restart if the transaction's snapshot cannot move up.
    pub fn join(&self, db: &Database, txn: &TxnRef) -> Result<Vec<Oid>, SqlError> {
        if let Some(few) = &self.few {
            txn.with(|t| few.iter().try_for_each(|(row, value)| t.put(row.clone(), value.clone())))?;
            return Ok(Vec::new());
        }
        let indexes = self.indexes();
        if let Err(error) = adopt(txn, &indexes) {
            // Of what was taken back the record is gone, or goes before all was written: what came later is on record again. (If that fails, too, it stays where nobody reads.)
            drop(announce(db, &self.patience, &indexes));
            return Err(error);
        }
        Ok(indexes)
    }

    fn write_sorted(
        &mut self,
        db: &Database,
        index: usize,
        mut merge: Merge,
        duplicate: &mut dyn FnMut(Duplicate<'_>) -> SqlError,
    ) -> Result<(), SqlError> {
        let Part { unique, greatest, .. } = &self.parts[index];
        let (unique, greatest) = (*unique, greatest.clone());
        if let Some(progress) = &self.progress {
            progress.enter(IndexPhase::Loading, merge.entries());
        }
        let mut written = self.patience.begin(db.kv.as_ref(), Isolation::RepeatableRead)?;
        let (mut chunk, mut chunk_bytes) = (Rows::default(), 0);
        let mut last: Vec<u8> = Vec::new();
        while let Some((key, value)) = merge.current() {
            crate::work::step(key.len() + value.len())?;
            let among_written = unique && greatest.as_ref().is_some_and(|greatest| key <= &greatest[..]);
            if key == &last[..] || (among_written && written.get(key)?.is_some()) {
                return Err(duplicate(Duplicate { index, key, value }));
            }
            last.clear();
            last.extend_from_slice(key);
            chunk.push_lent(key, value);
            chunk_bytes += key.len() + value.len() + ENTRY_BYTES;
            if let Some(progress) = &self.progress {
                progress.done.add(1);
            }
            if chunk_bytes >= chunk_bytes_max(db.options.memory_bytes) {
                chunk_bytes = 0;
                self.write(db, chunk.take())?;
            }
            merge.advance()?;
        }
        written.rollback();
        self.write(db, chunk.take())?;
        self.wait(db)
    }
}

/// Rows in order, to be written together, in few allocations: who makes them frees each at once, and has its memory for the next one.
#[derive(Default)]
struct Rows {
    /// In blocks that are full.
    rows: Vec<(Bytes, Bytes)>,
    /// The block that is filled, and where in it each key and value ends.
    block: Vec<u8>,
    ends: Vec<(usize, usize)>,
    /// What was allocated for rows that are in no open block.
    #[cfg(test)]
    held_bytes: usize,
}

/// Bytes of a block.
const BLOCK_BYTES: usize = 32 << 10;

impl Rows {
    /// Adds one, whose key is greater than those before.
    fn push(&mut self, key: Bytes, value: Bytes) {
        if key.len() + value.len() < BLOCK_BYTES / 4 {
            return self.push_lent(&key, &value);
        }
        // To copy it costs more than to hold it.
        self.push_alone(key, value);
    }

    fn push_alone(&mut self, key: Bytes, value: Bytes) {
        self.close_block();
        #[cfg(test)]
        {
            self.held_bytes += key.len() + value.len();
        }
        self.rows.push((key, value));
    }

    fn push_lent(&mut self, key: &[u8], value: &[u8]) {
        if key.len() + value.len() >= BLOCK_BYTES / 4 {
            return self.push_alone(Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        }
        if self.block.len() + key.len() + value.len() > BLOCK_BYTES {
            self.close_block();
        }
        if self.block.capacity() == 0 {
            self.block.reserve_exact(BLOCK_BYTES);
        }
        self.block.extend_from_slice(key);
        let middle = self.block.len();
        self.block.extend_from_slice(value);
        self.ends.push((middle, self.block.len()));
    }

    fn close_block(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        // Between rows that are large themselves blocks hold little: what is counted is what they hold.
        if block.len() < BLOCK_BYTES / 2 {
            block.shrink_to_fit();
        }
        #[cfg(test)]
        {
            self.held_bytes += block.capacity();
        }
        let (block, mut from) = (Bytes::from(block), 0);
        let row = |(middle, end)| (block.slice(std::mem::replace(&mut from, end)..middle), block.slice(middle..end));
        self.rows.extend(self.ends.drain(..).map(row));
    }

    fn last_key(&self) -> Option<&[u8]> {
        match self.ends.last() {
            Some((middle, _)) => Some(&self.block[self.begin(self.ends.len() - 1)..*middle]),
            None => self.rows.last().map(|(key, _)| &key[..]),
        }
    }

    /// Where a row of the open block begins.
    fn begin(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before].1)
    }

    /// The value of a key.
    fn get(&self, row: &[u8]) -> Option<Bytes> {
        if let Ok(at) = self.rows.binary_search_by(|(key, _)| key[..].cmp(row)) {
            return Some(self.rows[at].1.clone());
        }
        let key = |at: usize| &self.block[self.begin(at)..self.ends[at].0];
        let (mut at, mut end) = (0, self.ends.len());
        while at < end {
            let middle = at.midpoint(end);
            (at, end) = if key(middle) < row { (middle + 1, end) } else { (at, middle) };
        }
        let (from, to) = *self.ends.get(at).filter(|_| key(at) == row)?;
        Some(Bytes::copy_from_slice(&self.block[from..to]))
    }

    /// All of them; none is left, but room for as many.
    fn take(&mut self) -> Vec<(Bytes, Bytes)> {
        self.close_block();
        let next = Vec::with_capacity(self.rows.len());
        std::mem::replace(&mut self.rows, next)
    }
}

/// Puts a load on record, before its first chunk (invariant 1).
///
/// # Errors
/// Those of the layers below.
pub fn announce(db: &Database, patience: &Patience, indexes: &[Oid]) -> Result<(), SqlError> {
    for index in indexes {
        db.loads.begin(*index);
        garbage::announce(db.kv.as_ref(), patience, *index)?;
    }
    Ok(())
}

/// Makes what was loaded part of a transaction, and visible to it.
///
/// # Errors
/// A restart if the transaction's snapshot cannot move up, or others have taken the load back.
pub fn adopt(txn: &TxnRef, indexes: &[Oid]) -> Result<(), SqlError> {
    txn.with(|t| {
        for index in indexes {
            let record = key::object(key::GARBAGE, *index);
            t.lock(&record, LockWait::Wait)?;
            // Whoever took the load back has written here.
            if !t.get_certified(&record)?.is_some_and(|kept| garbage::is_loading(&kept)) {
                let reason = "what was loaded was taken back, as its node counts as one that has left".to_owned();
                return Err(KvError::Restart { reason, key: Some(Bytes::copy_from_slice(&record)) });
            }
            t.delete(Bytes::copy_from_slice(&record))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Writes rows where they cannot go past the log.
fn write_in_transactions(kv: &dyn Kv, patience: &Patience, rows: &[(Bytes, Bytes)]) -> Result<(), SqlError> {
    let mut rest = rows;
    while !rest.is_empty() {
        let mut bytes = 0;
        let mut fits = |(key, value): &(Bytes, Bytes)| {
            bytes += key.len() + value.len();
            bytes <= TXN_BYTES_MAX
        };
        let count = rest.iter().take(TXN_ROWS_MAX).take_while(|row| fits(row)).count().max(1);
        let (chunk, after) = rest.split_at(count);
        write_chunk(kv, patience, chunk)?;
        rest = after;
    }
    Ok(())
}

fn write_chunk(kv: &dyn Kv, patience: &Patience, rows: &[(Bytes, Bytes)]) -> Result<(), SqlError> {
    let attempt = || {
        let mut txn = patience.begin(kv, Isolation::RepeatableRead)?;
        for (row, value) in rows {
            txn.put(row.clone(), value.clone())?;
        }
        patience.commit(txn.as_mut())
    };
    let mut result = attempt();
    for _ in 1..CHUNK_ATTEMPTS_MAX {
        match &result {
            Err(e) if e.retry() => result = attempt(),
            _ => break,
        }
    }
    result?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_whether_or_not_their_block_is_full() {
        let mut rows = Rows::default();
        let row = |n: u32| {
            let bytes = if n % 100 == 7 { BLOCK_BYTES } else { n as usize % 300 };
            (Bytes::from(n.to_be_bytes().to_vec()), Bytes::from(vec![n as u8; bytes]))
        };
        for _ in 0..2 {
            assert!(rows.last_key().is_none() && rows.get(&row(0).0).is_none() && rows.take().is_empty());
            for n in 0..1000 {
                let (key, value) = row(2 * n);
                rows.push(key.clone(), value.clone());
                assert_eq!(rows.last_key(), Some(&key[..]));
                assert_eq!(rows.get(&key), Some(value));
                for known in [0, n / 2, n] {
                    let ((key, value), (absent, _)) = (row(2 * known), row(2 * known + 1));
                    assert_eq!((rows.get(&key), rows.get(&absent)), (Some(value), None));
                }
            }
            assert_eq!(rows.take(), (0..1000).map(|n| row(2 * n)).collect::<Vec<_>>());
        }
    }

    /// Blocks between large rows kept room for more than they held.
    #[test]
    fn rows_take_what_is_counted_for_them() {
        for sizes in [&[9_000, 50][..], &[17_000], &[8_000], &[50], &[8_100, 100, 100], &[20_000, 8_000]] {
            for lent in [false, true] {
                let (mut rows, mut counted) = (Rows::default(), 0);
                for n in 0..400u32 {
                    let (key, value) = (n.to_be_bytes(), vec![7; sizes[n as usize % sizes.len()]]);
                    counted += key.len() + value.len() + ENTRY_BYTES;
                    match lent {
                        true => rows.push_lent(&key, &value),
                        false => rows.push(Bytes::copy_from_slice(&key), Bytes::from(value)),
                    }
                }
                rows.close_block();
                let held = rows.held_bytes;
                assert!(held <= counted + counted / 2 + BLOCK_BYTES, "{sizes:?}: {held} of {counted}");
            }
        }
    }

    #[test]
    fn what_a_load_holds_is_a_part_of_the_node_s_memory() {
        const MIB: usize = 1 << 20;
        assert_eq!((chunk_bytes_max(None), sort_bytes_max(None)), (CHUNK_BYTES_MAX, SORT_BYTES_MAX));
        for (memory, chunk) in [(128, 128 * MIB / 24), (512, 512 * MIB / 24), (1024, 32 * MIB), (6144, 32 * MIB)] {
            let memory = Some(memory * MIB);
            assert_eq!((chunk_bytes_max(memory), sort_bytes_max(memory)), (chunk, 2 * chunk));
        }
    }
}

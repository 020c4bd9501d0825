use crate::TxnError;
use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::Write;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Bytes of keys and values, and [`WRITE_OVERHEAD`] for each, that one transaction may write: one record must hold it.
pub const MAX_TXN_BYTES: usize = 900 << 20;
/// What a write takes in a record beside its key and value, bytes, at most.
const WRITE_OVERHEAD: usize = 24;
/// Bytes of one value.
pub const MAX_VALUE_BYTES: usize = 64 << 20;
/// Bytes of one key.
pub const MAX_KEY_BYTES: usize = 16 << 10;

/// A buffered write: the value, and the snapshot at which it was decided.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub value: Option<Bytes>,
    pub since: Timestamp,
}

/// Buffered writes in key order, with marks to go back to.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    writes: BTreeMap<Bytes, Pending>,
    undo: Vec<(Bytes, Option<Pending>)>,
    marks: Vec<usize>,
    bytes: usize,
}

impl Buffer {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }
    /// Whether more keys are deleted than written. (An update of an indexed column deletes one entry and writes two.)
    pub fn deletes_most(&self) -> bool {
        2 * self.writes.values().filter(|pending| pending.value.is_none()).count() > self.writes.len()
    }
    /// What was buffered so far, also what a rollback to a savepoint took back.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub fn get(&self, key: &[u8]) -> Option<&Pending> {
        if self.writes.is_empty() { None } else { self.writes.get(key) }
    }

    /// The first decision on a key counts for certification, unless it was made again at a higher snapshot after a refresh:
    /// the earlier `since` is the stricter one, and it stays.
    pub fn set(&mut self, key: Bytes, value: Option<Bytes>, since: Timestamp) -> Result<(), TxnError> {
        let size = value.as_ref().map_or(0, Bytes::len);
        limit("a key", key.len(), MAX_KEY_BYTES)?;
        limit("a value", size, MAX_VALUE_BYTES)?;
        limit("the transaction", self.bytes + key.len() + size + WRITE_OVERHEAD, MAX_TXN_BYTES)?;
        self.bytes += key.len() + size + WRITE_OVERHEAD;
        let track = !self.marks.is_empty();
        let undo_key = track.then(|| key.clone());
        let before = match self.writes.entry(key) {
            std::collections::btree_map::Entry::Vacant(slot) => {
                slot.insert(Pending { value, since });
                None
            }
            std::collections::btree_map::Entry::Occupied(mut slot) => {
                let since = slot.get().since;
                Some(slot.insert(Pending { value, since }))
            }
        };
        if let Some(key) = undo_key {
            self.undo.push((key, before));
        }
        Ok(())
    }

    pub fn savepoint(&mut self) -> u32 {
        self.marks.push(self.undo.len());
        (self.marks.len() - 1) as u32
    }

    /// Goes back to a mark and forgets the later ones. An unknown mark changes nothing.
    pub fn rollback_to(&mut self, mark: u32) {
        let Some(keep) = self.marks.get(mark as usize).copied() else { return };
        while self.undo.len() > keep {
            let Some((key, before)) = self.undo.pop() else { break };
            match before {
                Some(pending) => drop(self.writes.insert(key, pending)),
                None => drop(self.writes.remove(&key)),
            }
        }
        self.marks.truncate(mark as usize + 1);
    }

    /// Own writes with `start <= key < end`.
    pub fn range(&self, start: &[u8], end: &[u8]) -> impl DoubleEndedIterator<Item = (&Bytes, &Pending)> {
        let end = end.max(start);
        self.writes.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end)))
    }

    /// The writes for the log, in key order; the buffer is empty afterwards but still remembers that it is not reusable.
    pub fn take(&mut self) -> Vec<Write> {
        self.undo = Vec::new();
        let writes = std::mem::take(&mut self.writes);
        writes.into_iter().map(|(key, p)| Write { key, value: p.value, since: p.since }).collect()
    }
}

fn limit(what: &'static str, bytes: usize, limit: usize) -> Result<(), TxnError> {
    if bytes > limit { Err(TxnError::TooLarge { what, bytes, limit }) } else { Ok(()) }
}

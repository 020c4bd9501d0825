//! A batch that comes in parts, read as they come.
//!
//! Problem: when the last part of a transaction of a gigabyte is there, putting the parts together takes a second in which its range does nothing else, and twice
//! the memory. Idea: what is whole of the parts so far is read when they come, and copied out of them: each part is a little work, and is let go.
//!
//! Invariants:
//! 1. What was read and what is left of it ([`Unfolding::write`]) are the bytes of the parts that came, in the same parts: replicas write their state alike, whatever of
//!    it each has read.
//! 2. Nothing of it is a slice of a part: no key or value keeps one in memory.

use super::codec::{read_head, read_read, read_write, write_head, write_read, write_write};
use super::versions::INDEX_BYTES;
use super::{Batch, Read, Span, Staged, TxnId, Write};
use crate::wire::{Reader, Writer};
use bytes::Bytes;
use clock::Timestamp;
use std::sync::Arc;

/// A read or a write takes so many bytes at least.
pub(super) const ENTRY_BYTES_MIN: u64 = 4;

/// Writes of one index, from the place of the first one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decided {
    pub from: usize,
    /// The least snapshot at which one of them was decided.
    pub since: Timestamp,
}

/// What stands at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    txn: TxnId,
    base: Timestamp,
    reads: u64,
}

/// A batch of which all is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub batch: Arc<Batch>,
    /// In the order of the writes.
    pub decided: Vec<Decided>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unfolding {
    /// How long the parts were.
    parts: Vec<u32>,
    bytes: u64,
    checksum: u32,
    head: Option<Head>,
    /// How many writes there are, once that was read.
    writes: Option<u64>,
    batch: Batch,
    decided: Vec<Decided>,
    /// What is not a whole entry yet.
    rest: Vec<u8>,
}

impl Unfolding {
    /// So many parts were read.
    pub fn parts(&self) -> u32 {
        self.parts.len() as u32
    }

    /// So many reads and writes there will be; 0: that is not known yet.
    pub fn counts(&self) -> (u64, u64) {
        (self.head.map_or(0, |head| head.reads), self.writes.unwrap_or(0))
    }

    /// The writes that were read so far.
    pub fn writes(&self) -> &[Write] {
        &self.batch.writes
    }

    /// The next part. What does not say what it should stays in the rest, and is found when all is there.
    pub fn take(&mut self, part: &Bytes, whole: &Staged) {
        self.parts.push(part.len() as u32);
        self.bytes += part.len() as u64;
        let mut sum = crc32fast::Hasher::new_with_initial(self.checksum);
        sum.update(part);
        self.checksum = sum.finalize();
        let mut rest = std::mem::take(&mut self.rest);
        let mut r = Reader(match rest.is_empty() {
            true => part.clone(),
            false => {
                rest.extend_from_slice(part);
                Bytes::from(rest)
            }
        });
        loop {
            let before = r.0.clone();
            if self.next(&mut r, whole).is_none() {
                r.0 = before;
                break;
            }
        }
        self.rest = Vec::from(r.0);
    }

    /// Reads one thing; `None`: it is not all there, or nothing more is to come.
    fn next(&mut self, r: &mut Reader, whole: &Staged) -> Option<()> {
        let Some(Head { base, reads, .. }) = self.head else {
            let (txn, base, reads) = read_head(r).ok()?;
            self.head = Some(Head { txn, base, reads });
            self.batch.txn = txn;
            return Some(());
        };
        if (self.batch.reads.len() as u64) < reads {
            self.batch.reads.push(read_apart(read_read(r, base).ok()?));
            return Some(());
        }
        let Some(writes) = self.writes else {
            let writes = r.number("writes").ok()?;
            self.writes = Some(writes);
            // Growing it would copy all that is there, at once.
            let room = usize::try_from(writes.min(whole.bytes / ENTRY_BYTES_MIN)).unwrap_or(0);
            self.batch.writes.reserve_exact(room);
            return Some(());
        };
        if self.batch.writes.len() as u64 == writes {
            return None;
        }
        let write = read_write(r, base).ok()?;
        if self.batch.writes.last().is_some_and(|last| last.key >= write.key) {
            return None;
        }
        self.decide(&write.key, write.since);
        self.batch.writes.push(write_apart(write));
        Some(())
    }

    fn decide(&mut self, key: &[u8], since: Timestamp) {
        let index = |key: &[u8]| key.len().min(INDEX_BYTES);
        let of_last = self.batch.writes.last().is_some_and(|last| last.key[..index(&last.key)] == key[..index(key)]);
        match self.decided.last_mut().filter(|_| of_last) {
            Some(decided) => decided.since = decided.since.min(since),
            None => self.decided.push(Decided { from: self.batch.writes.len(), since }),
        }
    }

    /// All parts came: the batch, if they are what they should be.
    pub fn finish(self, txn: TxnId, whole: &Staged) -> Option<Whole> {
        let read = self.writes == Some(self.batch.writes.len() as u64) && self.rest.is_empty();
        let sound = (self.bytes, self.checksum) == (whole.bytes, whole.checksum);
        (read && sound && self.batch.txn == txn).then(|| Whole { batch: Arc::new(self.batch), decided: self.decided })
    }

    /// Writes the parts that came, each with its number before it.
    pub fn write(&self, w: &mut Writer<'_>) {
        let mut bytes = Vec::with_capacity(usize::try_from(self.bytes).unwrap_or(0));
        let mut all = Writer(&mut bytes);
        if let Some(Head { txn, base, reads }) = self.head {
            write_head(&mut all, txn, base, reads);
            self.batch.reads.iter().for_each(|read| write_read(&mut all, base, read));
            self.writes.iter().for_each(|writes| all.number(*writes));
            for Write { key, value, since } in &self.batch.writes {
                write_write(&mut all, base, key, value.as_deref(), *since);
            }
        }
        bytes.extend_from_slice(&self.rest);
        debug_assert_eq!(bytes.len() as u64, self.bytes, "invariant 1");
        let mut rest = &bytes[..];
        for (number, length) in self.parts.iter().enumerate() {
            let (part, behind) = rest.split_at((*length as usize).min(rest.len()));
            w.number(number as u64);
            w.bytes(part);
            rest = behind;
        }
    }
}

impl Whole {
    /// Of a batch that was read as a whole, of which it keeps nothing (invariant 2).
    pub fn of(batch: Batch) -> Whole {
        let (batch, mut unfolding) = (batch.apart(), Unfolding::default());
        for write in batch.writes {
            unfolding.decide(&write.key, write.since);
            unfolding.batch.writes.push(write);
        }
        let batch = Batch { writes: unfolding.batch.writes, ..batch };
        Whole { batch: Arc::new(batch), decided: unfolding.decided }
    }
}

/// How many reads and writes a batch has, as far as its first bytes say so: 0 is said of what is not reached.
pub(super) fn announced(first: &Bytes) -> (u64, u64) {
    let mut r = Reader(first.clone());
    let Ok((_, base, reads)) = read_head(&mut r) else { return (0, 0) };
    let all = (0..reads).all(|_| read_read(&mut r, base).is_ok());
    (reads, if all { r.number("writes").unwrap_or(0) } else { 0 })
}

fn copied(bytes: Bytes) -> Bytes {
    Bytes::copy_from_slice(&bytes)
}

pub(super) fn span_apart(span: Span) -> Span {
    Span { start: copied(span.start), end: copied(span.end) }
}

/// As [`read_apart`], of a write.
fn write_apart(Write { key, value, since }: Write) -> Write {
    Write { key: copied(key), value: value.map(copied), since }
}

impl Batch {
    /// The same with keys and values of its own: else it keeps in memory whatever it was read from.
    pub(super) fn apart(self) -> Batch {
        let reads = self.reads.into_iter().map(read_apart).collect();
        Batch { reads, writes: self.writes.into_iter().map(write_apart).collect(), ..self }
    }
}

/// A read with keys of its own.
fn read_apart(read: Read) -> Read {
    match read {
        Read::Key { key, since } => Read::Key { key: copied(key), since },
        Read::Present { key, since } => Read::Present { key: copied(key), since },
        Read::Unreferred { key, since } => Read::Unreferred { key: copied(key), since },
        Read::Span { span, since } => Read::Span { span: span_apart(span), since },
        Read::Referred { span, since } => Read::Referred { span: span_apart(span), since },
    }
}

//! What a transaction wrote and read so far: the part of it that is the same on one node and in a cluster.

use super::buffer::Buffer;
use super::commit::{batch, large_batch};
use super::reads::Reads;
use super::writes::Whole;
use crate::TxnError;
use crate::options::{BeginOptions, Isolation};
use crate::sabotage::Sabotage;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::txn::{Batch, TxnId};

/// A transaction that did nothing for longer than this takes a new snapshot at its first statement, nanoseconds.
const IDLE_NS: u64 = 1_000_000;

/// What a read is remembered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It may not change before the snapshot moves over it; at SERIALIZABLE not before the commit either.
    ByLevel,
    /// It may not change before the commit, at any level.
    Certified,
    /// Nothing, and yet it is what a reader at the snapshot sees: see [`super::Transaction::observe`].
    Unremembered,
    /// Nothing: see [`super::Transaction::peek`].
    Nothing,
}

impl Keep {
    pub fn of(certified: bool) -> Keep {
        if certified { Keep::Certified } else { Keep::ByLevel }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Draft {
    pub isolation: Isolation,
    pub read_only: bool,
    /// It reads an exact snapshot of the past.
    pub past: bool,
    /// What it does frees space in the end.
    pub frees: bool,
    pub buffer: Buffer,
    pub reads: Reads,
    began_ns: u64,
}

impl Draft {
    pub fn new(now: &Reading, options: &BeginOptions) -> Self {
        Draft {
            isolation: options.isolation,
            read_only: options.read_only || options.as_of.is_some(),
            past: options.as_of.is_some(),
            frees: false,
            buffer: Buffer::default(),
            reads: Reads::default(),
            began_ns: now.now_ns,
        }
    }

    /// Buffers a write that was decided at `since`.
    pub fn set(&mut self, key: Bytes, value: Option<Bytes>, since: Timestamp) -> Result<(), TxnError> {
        if self.read_only { Err(TxnError::ReadOnly) } else { self.buffer.set(key, value, since) }
    }

    /// Buffers deletions of keys of one index, decided at `since`.
    pub fn delete_all(&mut self, keys: &[&[u8]], since: Timestamp) -> Result<(), TxnError> {
        if self.read_only { Err(TxnError::ReadOnly) } else { self.buffer.delete_all(keys, since) }
    }

    /// Undoes the writes since the mark, and forgets what they relied on where the reads of the time are not certified; the mark stays.
    pub fn rollback_to(&mut self, savepoint: u32) {
        let gone = self.buffer.rollback_to(savepoint);
        self.reads.not_written(gone.into_iter());
        if self.isolation != Isolation::Serializable {
            self.reads.forget_relied(savepoint as usize);
        }
    }

    /// Whether it says itself that it frees space: it drops or truncates, which takes little, however much that frees.
    pub fn is_ending(&self) -> bool {
        self.frees
    }

    /// Whether it may use the room that a full disk holds back.
    pub fn is_freeing(&mut self) -> bool {
        self.frees || self.buffer.deletes_most()
    }

    /// Bytes of memory that its writes and reads take, about.
    pub fn held_bytes(&self) -> usize {
        self.buffer.held_bytes() + self.reads.held_bytes()
    }

    /// Whether a statement that begins takes a new snapshot: READ COMMITTED does; so does any transaction that began a while ago and has neither
    /// read nor written yet, nor locked.
    pub fn begins_anew(&self, now: &Reading, locked: bool) -> bool {
        let idle = now.now_ns.saturating_sub(self.began_ns) > IDLE_NS;
        let untouched = idle && self.reads.is_empty() && self.buffer.is_empty() && !locked && !self.read_only;
        !self.past && (untouched || self.isolation == Isolation::ReadCommitted)
    }

    /// Reads are remembered to be certified, or to let the snapshot move up: that of a read-only transaction moves too, when it
    /// meets an uncertain version (`uncertain`: it may).
    pub fn remembers(&self, keep: Keep, uncertain: bool) -> bool {
        match keep {
            Keep::Nothing | Keep::Unremembered => false,
            Keep::Certified => true,
            Keep::ByLevel => !self.read_only || uncertain,
        }
    }

    /// Whether the commit certifies it.
    pub fn must_certify(&self, keep: Keep) -> bool {
        keep == Keep::Certified || self.isolation == Isolation::Serializable
    }

    /// A key was read at a snapshot.
    pub fn remember_key(&mut self, key: &[u8], snapshot: Timestamp, keep: Keep) {
        self.reads.key(key, snapshot, self.must_certify(keep));
        self.bound_keys();
    }

    /// A key was found present at a snapshot, and must be so at the commit.
    pub fn remember_present(&mut self, key: &[u8], snapshot: Timestamp) {
        self.reads.present(key, snapshot);
        self.bound_keys();
    }

    fn bound_keys(&mut self) {
        if self.reads.has_many_keys() {
            self.buffer.settle_all();
            let buffer = &self.buffer;
            self.reads.bound_keys(|key, since| buffer.certifies(key, since));
        }
    }

    /// As [`Draft::take_batch`]; the writes stand beside it where there are so many that they are `large`.
    pub fn take_large(
        &mut self,
        txn: TxnId,
        sabotage: &Sabotage,
        large: impl Fn(usize) -> bool,
    ) -> (Batch, Option<Whole>) {
        self.buffer.settle_all();
        if !large(self.buffer.len()) {
            return (self.take_batch(txn, sabotage), None);
        }
        let all = self.isolation == Isolation::Serializable;
        large_batch(&mut self.reads, &mut self.buffer, all, txn, sabotage)
    }

    /// What is to be committed; nothing is left here.
    pub fn take_batch(&mut self, txn: TxnId, sabotage: &Sabotage) -> Batch {
        let all = self.isolation == Isolation::Serializable;
        batch(&mut self.reads, &mut self.buffer, all, txn, sabotage)
    }
}

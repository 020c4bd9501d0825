use super::versions::INDEX_BYTES;
use super::{Part, RangeId, Staged, TxnId};
use bytes::Bytes;
use clock::Timestamp;

/// A half-open span of keys; an empty `end` means "to the end of the key space".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    /// First key.
    pub start: Bytes,
    /// First key after; empty for none.
    pub end: Bytes,
}

impl Span {
    /// The whole key space.
    pub const ALL: Span = Span { start: Bytes::new(), end: Bytes::new() };

    /// From `start` up to, without, `end`.
    pub fn new(start: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        Span { start: start.into(), end: end.into() }
    }
    /// Whether the key lies inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.is_before_end(key)
    }
    /// Whether the key lies below the end.
    pub fn is_before_end(&self, key: &[u8]) -> bool {
        self.end.is_empty() || *key < *self.end
    }
    /// The end, for a lookup in an ordered map.
    pub fn end_bound(&self) -> core::ops::Bound<&[u8]> {
        if self.end.is_empty() { core::ops::Bound::Unbounded } else { core::ops::Bound::Excluded(&self.end) }
    }
    /// Whether no key lies inside.
    pub fn is_empty(&self) -> bool {
        !self.end.is_empty() && self.start >= self.end
    }
    /// Whether `other` lies inside.
    pub fn covers(&self, other: &Span) -> bool {
        self.start <= other.start && (self.end.is_empty() || (!other.end.is_empty() && other.end <= self.end))
    }
    /// Whether the two share a key.
    pub fn overlaps(&self, other: &Span) -> bool {
        self.is_before_end(&other.start) && other.is_before_end(&self.start)
    }
    /// What the two share; empty where they do not touch.
    pub fn intersection(&self, other: &Span) -> Span {
        let start = self.start.clone().max(other.start.clone());
        let end = match (self.end.is_empty(), other.end.is_empty()) {
            (true, _) => other.end.clone(),
            (_, true) => self.end.clone(),
            _ => self.end.clone().min(other.end.clone()),
        };
        Span { start, end }
    }
}

/// One key written: `None` deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The key.
    pub key: Bytes,
    /// The new value.
    pub value: Option<Bytes>,
    /// The snapshot at which the writer decided: a version above it is a conflict.
    pub since: Timestamp,
}

/// Something read that must still be unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// One key.
    Key {
        /// The key.
        key: Bytes,
        /// The snapshot that it was read from.
        since: Timestamp,
    },
    /// That a key has a value: which one does not matter. What a reference to a row relies on.
    Present {
        /// The key.
        key: Bytes,
        /// The snapshot of the transaction then. It is not asked: the key must have a value at the commit.
        since: Timestamp,
    },
    /// Every key of a span, absent ones included.
    Span {
        /// The span.
        span: Span,
        /// The snapshot that it was read from.
        since: Timestamp,
    },
    /// That nobody has come to refer to a key: what who looks for references to it relies on, where he certifies nothing of what he has seen.
    Unreferred {
        /// The key.
        key: Bytes,
        /// The snapshot of the look; none, where the log is to refuse it ([`Timestamp::MIN`]): who proposes knows when a key was referred to last.
        since: Timestamp,
    },
    /// That keys of a span, nobody says which, are referred to: beside reads of them, which certify that they are there.
    Referred {
        /// From the first to behind the last.
        span: Span,
        /// The snapshot of the time. It is not asked.
        since: Timestamp,
    },
}

impl Read {
    /// The snapshot that it was read from.
    pub fn since(&self) -> Timestamp {
        match self {
            Read::Key { since, .. }
            | Read::Present { since, .. }
            | Read::Span { since, .. }
            | Read::Unreferred { since, .. }
            | Read::Referred { since, .. } => *since,
        }
    }
    /// Whether a write changes what was read.
    pub fn is_changed_by(&self, write: &Write) -> bool {
        match self {
            Read::Key { key, .. } => *key == write.key,
            Read::Present { key, .. } => *key == write.key && write.value.is_none(),
            Read::Span { span, .. } => span.contains(&write.key),
            Read::Unreferred { .. } | Read::Referred { .. } => false,
        }
    }
    /// The same of what lies in a span; of one key itself.
    pub fn of_part(&self, part: &Span) -> Read {
        let mut read = self.clone();
        if let Read::Span { span, .. } | Read::Referred { span, .. } = &mut read {
            *span = part.intersection(span);
        }
        read
    }
    /// Whether the one says that a key is referred to, and the other that it is not.
    pub fn contradicts(&self, other: &Read) -> bool {
        let refers = |key: &Bytes, read: &Read| match read {
            Read::Present { key: referred, .. } => referred == key,
            Read::Referred { span, .. } => span.contains(key),
            Read::Key { .. } | Read::Span { .. } | Read::Unreferred { .. } => false,
        };
        match (self, other) {
            (Read::Unreferred { key, .. }, other) | (other, Read::Unreferred { key, .. }) => refers(key, other),
            _ => false,
        }
    }
}

/// What one transaction asks of one range: writes in key order without duplicates, and the reads that it relies on. Which reads
/// those are is the isolation level's business, settled before: all of them (serializable), or those of constraints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Who asks.
    pub txn: TxnId,
    /// A record of it with a greater timestamp does nothing: it is a copy that came late. `None`: on a log that makes no copies.
    pub until: Option<Timestamp>,
    /// Reads and writes came before, in parts, and none are here.
    pub staged: Option<Staged>,
    /// Reads to certify.
    pub reads: Vec<Read>,
    /// Writes, in key order.
    pub writes: Vec<Write>,
}

impl Batch {
    /// Whether it relies on a key being there.
    pub fn needs_presence(&self) -> bool {
        self.reads.iter().any(|read| matches!(read, Read::Present { .. }))
    }
    /// Whether it says who refers to what in a way that older programs do not know.
    pub fn tells_of_references(&self) -> bool {
        self.reads.iter().any(|read| matches!(read, Read::Unreferred { .. } | Read::Referred { .. }))
    }
    /// The write of a key, if there is one.
    pub fn write_of(&self, key: &[u8]) -> Option<&Write> {
        self.writes.binary_search_by(|w| (*w.key).cmp(key)).ok().map(|at| &self.writes[at])
    }
    /// The last write inside the span.
    pub fn last_write_in(&self, span: &Span) -> Option<&Write> {
        let behind = self.writes.partition_point(|w| span.is_before_end(&w.key));
        self.writes[..behind].last().filter(|w| span.start <= w.key)
    }
    /// The first write inside the span.
    pub fn write_in(&self, span: &Span) -> Option<&Write> {
        let at = self.writes.partition_point(|w| w.key < span.start);
        self.writes.get(at).filter(|w| span.is_before_end(&w.key))
    }
}

/// What a range's log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A whole transaction of one range: certified and committed at the record's timestamp.
    Commit(Batch),
    /// This range's part of a transaction of many.
    Prepare {
        /// Its part.
        batch: Batch,
        /// Every range that has a part, this one included, in order.
        participants: Vec<RangeId>,
    },
    /// A part of what a commit or prepare will ask for.
    Stage {
        /// It.
        part: Part,
        /// So many bytes may be staged in this range, at most.
        quota: u64,
    },
    /// Refuses a prepare of this transaction that comes later: logged by a participant without one when it is asked.
    Fence {
        /// The transaction.
        txn: TxnId,
        /// As of its prepares: [`Batch::until`].
        until: Option<Timestamp>,
    },
    /// What became of a prepared transaction.
    Outcome {
        /// The transaction.
        txn: TxnId,
        /// Its commit timestamp; `None`: aborted.
        commit: Option<Timestamp>,
        /// As of its prepares: [`Batch::until`].
        until: Option<Timestamp>,
    },
    /// Every participant has the outcome of these: no need to remember them.
    Forget {
        /// The transactions.
        txns: Vec<TxnId>,
    },
    /// The range ends at `at`; a new one begins there.
    Split {
        /// First key of the new range.
        at: Bytes,
        /// The new range.
        right: RangeId,
        /// The nodes whose stores replicate it, in the order of their replicas' numbers; none on a log that has one replica.
        nodes: Vec<u32>,
    },
    /// Versions that no snapshot at or above the threshold sees may go; commands with an older `since` are refused.
    Collect {
        /// The threshold.
        threshold: Timestamp,
        /// Indexes with a threshold of their own, in their order.
        apart: Vec<Apart>,
    },
    /// The leader may serve snapshots up to `end`; whoever leads after it starts above.
    Lease {
        /// The last timestamp of the lease.
        end: Timestamp,
    },
    /// The leader stops: it served no snapshot at or above this record's timestamp, and serves none from now on.
    Release,
    /// From here on the range is of this version of the cluster, or a later one: see [`super::Range::version`].
    Raise {
        /// The version.
        version: u16,
    },
}

/// The threshold of collection of one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The first four bytes of its keys.
    pub index: [u8; INDEX_BYTES],
    /// Which others it is kept together with: for the store.
    pub class: u8,
    /// Of its versions, what no snapshot at or above this sees may go.
    pub threshold: Timestamp,
}

impl Command {
    /// Copies values apart, so that none of them keeps the record that they were decoded from in memory. (Keys are copied by whoever
    /// keeps them.)
    pub fn unshare(&mut self) {
        let (Command::Commit(batch) | Command::Prepare { batch, .. }) = self else { return };
        for write in &mut batch.writes {
            write.value = write.value.as_ref().map(|v| Bytes::copy_from_slice(v));
        }
    }
}

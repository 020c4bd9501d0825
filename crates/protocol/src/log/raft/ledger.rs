//! The records of a store's one log, and what waits for them to be durable.

use super::ids::{GroupId, RecordNumber, ReplicaId};
use super::outputs::Record;
use clock::Timestamp;
use std::collections::BTreeMap;

/// What happens once a record is durable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Durable {
    /// The library may go by what it handed out under this number.
    Ready { group: GroupId, replica: ReplicaId, number: u64 },
    /// The store's promise to itself.
    OwnPromise { epoch: u64, until: Timestamp },
    /// A leader's acceptance of itself.
    OwnAccept { group: GroupId, replica: ReplicaId, term: u64, epoch: u64 },
    /// The intention to install a snapshot.
    Installing { group: GroupId, replica: ReplicaId },
}

/// Numbers records, and keeps account of which are durable.
#[derive(Debug)]
pub(crate) struct Ledger {
    last: u64,
    persisted: u64,
    waiting: BTreeMap<u64, Vec<Durable>>,
    pub out: Vec<Record>,
}

impl Ledger {
    /// Goes on after `last`, which is durable.
    pub fn new(last: RecordNumber) -> Self {
        Ledger { last: last.0, persisted: last.0, waiting: BTreeMap::new(), out: Vec::new() }
    }
    pub fn write(&mut self, bytes: Vec<u8>) -> RecordNumber {
        self.last += 1;
        self.out.push(Record { number: RecordNumber(self.last), bytes });
        RecordNumber(self.last)
    }
    /// Once `record` is durable: `what`.
    pub fn then(&mut self, record: RecordNumber, what: Durable) {
        self.waiting.entry(record.0).or_default().push(what);
    }
    pub fn is_durable(&self, record: RecordNumber) -> bool {
        record.0 <= self.persisted
    }
    pub fn last(&self) -> RecordNumber {
        RecordNumber(self.last)
    }
    /// Records that the disk does not have yet.
    pub fn waiting(&self) -> usize {
        (self.last - self.persisted) as usize
    }
    /// All up to `record` are durable: what follows from it, in order. `None`: it was never given out.
    pub fn persisted(&mut self, record: RecordNumber) -> Option<Vec<Durable>> {
        if record.0 > self.last {
            return None;
        }
        self.persisted = self.persisted.max(record.0);
        let later = self.waiting.split_off(&(self.persisted + 1));
        Some(std::mem::replace(&mut self.waiting, later).into_values().flatten().collect())
    }
}

//! The end of a group's log, in memory: what the library reads. Its durable form are the records that were given out for it.

use super::entry::{floor_of, is_release, stamp_of};
use super::membership::Conf;
use clock::Timestamp;
use raft::eraftpb::{Entry, HardState, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Result, Storage, StorageError};
use std::collections::VecDeque;

/// The place before the first entry that is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    pub index: u64,
    pub term: u64,
    /// The greatest floor (see [`floor_of`]) up to there.
    pub floor: Timestamp,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    pub cut: Cut,
    pub entries: VecDeque<Entry>,
    pub hard: HardState,
    pub conf: Conf,
    /// Handed out to be applied, up to here.
    pub applied: u64,
    /// Of a leader: members that have nothing get no snapshot yet.
    pub waits_for_founders: bool,
}

impl Tail {
    pub fn last_index(&self) -> u64 {
        self.cut.index + self.entries.len() as u64
    }

    pub fn entry(&self, index: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(index.checked_sub(self.cut.index + 1)?).ok()?)
    }

    pub fn term_at(&self, index: u64) -> Option<u64> {
        if index == self.cut.index { Some(self.cut.term) } else { self.entry(index).map(|entry| entry.term) }
    }

    /// Entries that take the place of all from the first of them on.
    pub fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        assert!(first.index > self.cut.index && first.index <= self.last_index() + 1, "entries follow the log");
        self.entries.truncate((first.index - self.cut.index - 1) as usize);
        self.entries.extend(entries.iter().cloned());
    }

    /// What any later leader has to start above: all timestamps in the log, and what is said there to have been served.
    pub fn floor(&self) -> Timestamp {
        self.floor_up_to(self.last_index())
    }

    pub fn floor_up_to(&self, index: u64) -> Timestamp {
        let within = self.entries.iter().take_while(|entry| entry.index <= index);
        within.map(floor_of).max().unwrap_or_default().max(self.cut.floor)
    }

    /// The greatest timestamp up to a place, of the entries that are left.
    pub fn stamped_up_to(&self, index: u64) -> Timestamp {
        let within = self.entries.iter().take_while(|entry| entry.index <= index);
        within.filter_map(stamp_of).max().unwrap_or_default()
    }

    /// The timestamp of the release that the leader of a term logged, if it did.
    pub fn release_of(&self, term: u64) -> Option<Timestamp> {
        let of_term = self.entries.iter().rev().skip_while(|entry| entry.term > term);
        of_term.take_while(|entry| entry.term == term).find(|entry| is_release(entry)).and_then(stamp_of)
    }

    /// A replica that was told of its group, and not of the members or anything that they have.
    pub fn is_blank(&self) -> bool {
        self.last_index() == 0 && self.conf.stores.is_empty()
    }

    /// Drops entries up to a place. `false`: there is nothing to drop, or not so many.
    pub fn truncate(&mut self, index: u64) -> bool {
        let (Some(term), true) = (self.term_at(index), index > self.cut.index) else { return false };
        let floor = self.floor_up_to(index);
        self.entries.drain(..(index - self.cut.index) as usize);
        self.cut = Cut { index, term, floor };
        true
    }

    /// The state is a snapshot's, and the log begins after it.
    pub fn restore(&mut self, cut: Cut, conf: Conf) {
        self.entries.clear();
        self.hard.commit = self.hard.commit.max(cut.index);
        self.applied = self.applied.max(cut.index);
        self.cut = cut;
        self.conf = conf;
    }
}

impl Storage for Tail {
    fn initial_state(&self) -> Result<RaftState> {
        Ok(RaftState::new(self.hard.clone(), self.conf.state.clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> Result<Vec<Entry>> {
        if low <= self.cut.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        if high > self.last_index() + 1 {
            return Err(Error::Store(StorageError::Unavailable));
        }
        let bytes_max = max_size.into().unwrap_or(u64::MAX);
        let (from, to) = ((low - self.cut.index - 1) as usize, (high - self.cut.index - 1) as usize);
        let mut bytes = 0u64;
        let mut found = Vec::new();
        for entry in self.entries.range(from..to) {
            // A few bytes for term and place, as it is written.
            bytes += (entry.data.len() + entry.context.len() + 16) as u64;
            if bytes > bytes_max && !found.is_empty() {
                break;
            }
            found.push(entry.clone());
        }
        Ok(found)
    }

    fn term(&self, index: u64) -> Result<u64> {
        let missing = if index < self.cut.index { StorageError::Compacted } else { StorageError::Unavailable };
        self.term_at(index).ok_or(Error::Store(missing))
    }

    fn first_index(&self) -> Result<u64> {
        Ok(self.cut.index + 1)
    }

    fn last_index(&self) -> Result<u64> {
        Ok(self.last_index())
    }

    /// Only says which snapshot it would be: the bytes go another way (`snapshot`).
    fn snapshot(&self, request_index: u64, _to: u64) -> Result<Snapshot> {
        let may = self.applied >= request_index.max(1) && !self.waits_for_founders;
        let (Some(term), true) = (self.term_at(self.applied), may) else {
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        };
        let mut snapshot = Snapshot::default();
        let meta = snapshot.mut_metadata();
        meta.index = self.applied;
        meta.term = term;
        meta.set_conf_state(self.conf.state.clone());
        Ok(snapshot)
    }
}

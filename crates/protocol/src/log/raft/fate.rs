//! What becomes of the proposals of a leader that falls.
//!
//! Places of one term lie together in a log, and terms rise. So once an entry of another term is committed at a place where a leader
//! of term T had one, no entry of T at or after that place is in the log, nor ever will be.

use super::options::LOST_TERMS_MAX;
use super::outputs::Fate;
use super::replica::Replica;
use super::store::Store;

/// Proposals of a term whose fate is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub term: u64,
    pub from: u64,
    pub to: u64,
}

impl Replica {
    pub fn lose(&mut self, store: &mut Store, lost: Lost) {
        let Lost { term, from, to } = lost;
        store.out.fates.push(Fate::Unknown { group: self.group, term, from, to });
        self.lost.push(lost);
        if self.lost.len() > LOST_TERMS_MAX {
            // Of the oldest nothing more is said: it stays unknown.
            self.lost.remove(0);
        }
    }

    /// An entry of `term` is committed at `index`.
    pub fn find(&mut self, store: &mut Store, index: u64, term: u64) {
        let group = self.group;
        self.lost.retain_mut(|lost| {
            if index < lost.from {
                return true;
            }
            if term == lost.term {
                lost.from = index + 1;
                return lost.from <= lost.to;
            }
            store.out.fates.push(Fate::Absent { group, term: lost.term, from: index });
            false
        });
    }
}

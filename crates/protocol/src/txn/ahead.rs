//! What is certified of staged writes before their command comes.
//!
//! Problem: where others write the same tables, a million writes are a million questions, and all of them would be asked while the command that names them is applied.
//! Idea: the writes of a part are looked at when it is applied, and whatever the range writes afterwards is compared with what is staged. When the command comes, nothing is left to ask.
//!
//! Invariants:
//! 1. Of a write that was looked at it is known whether its key has a version above the snapshot at which it was decided: either it had one when it was looked at, or the range has
//!    written one since, and noted it ([`Ahead::note`]): compared at once, or soon ([`Unmet`]); or all is looked at again. Versions of a range's keys come from nowhere else than its log.
//! 2. The verdict is that of who asks about each key when the command is applied: how far a replica has looked ahead changes nothing but the key that is told. It is no part of the state.
//! 3. No step is long: what one leaves, the next ones do, of which there is one with each record of the range, and whenever somebody has the time ([`super::Range::look_ahead`]). What is left at the command is done then.
//!
//! Caveats: a step is bounded by how much is looked at, not by how long that takes: rows that have to be read from the disk take longer.

use super::certify::by_index;
use super::meeting::{Met, meet};
use super::{Batch, VersionStore, Write};
use bytes::Bytes;
use clock::Timestamp;
use std::collections::VecDeque;
use std::sync::Arc;

/// Writes that are looked at when a part is applied, at most: a part has fewer, so that what was not looked at after a restart is made up for.
pub(super) const LOOKS_MAX: usize = 2 * PART_WRITES;
/// Who cuts a batch cuts it so that a part has about so many writes at most.
pub(super) const PART_WRITES: usize = 4096;
/// With another record, or whenever there is time, at most.
pub(super) const LOOKS_BESIDE_MAX: usize = 1024;
/// Large commits that are not compared yet, of one staged batch, at most: beyond that all is looked at again.
const UNMET_MAX: usize = 4;

/// What the range has written and is to be compared with what is staged from some place on.
#[derive(Clone, Debug)]
struct Unmet {
    written: Arc<Batch>,
    from: usize,
    at: Timestamp,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// So many of the first writes were looked at.
    looked_at: usize,
    /// In the order of the log.
    unmet: VecDeque<Unmet>,
    /// A key that has changed since it was decided, and when.
    changed: Option<(Bytes, Timestamp)>,
}

/// Invariant 2.
impl PartialEq for Ahead {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Ahead {}

impl Ahead {
    /// Whether there is something to look at.
    pub fn is_behind(&self, staged: &[Write]) -> bool {
        self.changed.is_none() && (self.looked_at < staged.len() || !self.unmet.is_empty())
    }

    /// Looks at some more of what is staged, so many at most, which are counted down.
    pub fn look<V: VersionStore>(&mut self, staged: &[Write], versions: &V, looks: &mut usize) -> Result<(), V::Error> {
        while *looks > 0
            && self.changed.is_none()
            && let Some(Unmet { written, from, at }) = self.unmet.pop_front()
        {
            if let Some(from) = self.compare(staged, &written.writes, from, at, looks) {
                self.unmet.push_front(Unmet { written, from, at });
            }
        }
        let to = staged.len().min(self.looked_at.saturating_add(*looks));
        let from = self.looked_at.min(to);
        *looks -= to - from;
        for writes in by_index(&staged[from..to]) {
            let Some(since) = writes.iter().map(|write| write.since).min().filter(|_| self.changed.is_none()) else {
                break;
            };
            if !versions.index_may_have_changed(&writes[0].key, since) {
                continue;
            }
            for write in writes {
                if let Some(at) = versions.changed_since(&write.key, write.since)? {
                    self.changed = Some((write.key.clone(), at));
                    break;
                }
            }
        }
        self.looked_at = to;
        Ok(())
    }

    /// Compares what was written at `at`, from a place on; the place to go on from, if that was not all.
    fn compare(
        &mut self,
        staged: &[Write],
        written: &[Write],
        mut from: usize,
        at: Timestamp,
        looks: &mut usize,
    ) -> Option<usize> {
        loop {
            match meet(written, from, staged, looks) {
                Met::At(_, place) if staged[place].since < at => {
                    self.changed = Some((staged[place].key.clone(), at));
                    return None;
                }
                Met::At(met, _) => from = met + 1,
                Met::NotYet(at) => return Some(at),
                Met::Nowhere => return None,
            }
        }
    }

    /// The range writes something, at `at`; `staged` is what is here of the batch, and `whole` gives what is written, to be kept: it is asked only where not
    /// all was compared.
    pub fn note(&mut self, staged: &[Write], written: &[Write], whole: impl FnOnce() -> Arc<Batch>, at: Timestamp) {
        if self.changed.is_some() || self.looked_at == 0 {
            return;
        }
        let Some(from) = self.compare(staged, written, 0, at, &mut { LOOKS_MAX }) else { return };
        if self.unmet.len() < UNMET_MAX {
            self.unmet.push_back(Unmet { written: whole(), from, at });
            return;
        }
        // Too much to be kept: the versions tell.
        self.unmet.clear();
        self.looked_at = 0;
    }

    /// Forgets what was noted: what a test breaks.
    pub fn overlook(&mut self) {
        self.unmet.clear();
        self.changed = None;
    }

    /// What is known once all was looked at: the key that has changed, and when.
    pub fn verdict(&self) -> Option<&(Bytes, Timestamp)> {
        self.changed.as_ref()
    }
}

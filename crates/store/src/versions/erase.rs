//! Erasing what nobody can read any more: the rows of a dropped index.
//!
//! Problem: a deletion for each row costs as much as the rows did, goes through the log, and stands in the way of scans until the
//! threshold has reached it. Idea: once the drop itself is below the threshold, no snapshot can see the rows. Then they need no
//! versions: files that hold nothing else go at once, and what is left in others is removed from the engine, past the log.
//!
//! 1. Nothing of it is in memory: a later flush would bring it back.
//! 2. Files are dropped once, before the first entry is removed: a file of removals lies within the prefix, too, and dropping it would
//!    bring back what it hides. After a restart both begin again.
//!
//! The caller promises that no snapshot at or above the threshold has a use for the prefix, and that nobody writes there.

use super::prefixes::prefix_of;
use super::{UNMERGED_RUNS_MAX, Versions};
use crate::engine::Tree;
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use std::ops::ControlFlow;

/// Entries that one call removes at most.
const ENTRIES_MAX: usize = 65_536;

/// What a call of [`Versions::erase`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erased {
    /// Nothing is left.
    All,
    /// Something is left: call again.
    Part,
    /// Some of it is still in memory, or the engine has to merge first: call again after the next flush.
    NotYet,
}

impl<E: Engine> Versions<E> {
    /// Erases some of what begins with these four bytes. (What is in the past goes with its time.)
    ///
    /// # Errors
    /// What the engine says; call again.
    pub fn erase(&self, prefix: [u8; 4]) -> Result<Erased, StoreError> {
        let _writer = self.writer.lock();
        let number = prefix_of(&prefix);
        let in_memory = self.layers.read().newest_first().any(|layer| layer.newest_of(number) > Timestamp::MIN);
        if in_memory || self.engine.unmerged_runs() >= UNMERGED_RUNS_MAX {
            return Ok(Erased::NotYet);
        }
        let (from, to) = (keys::present(&prefix), keys::present_upper(&prefix));
        let mut erasing = self.erasing.lock();
        if *erasing != Some(number) {
            if !self.engine.drop_files(&from, &to)? {
                return Ok(Erased::NotYet);
            }
            *erasing = Some(number);
        }
        let mut left = Vec::new();
        self.engine.scan(Tree::Present, &from, &to, false, &mut |key, _| {
            // A copy: what the engine gives is a slice of a whole block.
            left.push(Bytes::copy_from_slice(&key));
            if left.len() < ENTRIES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if !left.is_empty() {
            let part = left.len() == ENTRIES_MAX;
            let bytes = left.iter().map(Bytes::len).sum();
            self.engine.ingest(Tree::Present, bytes, &mut left.into_iter().map(|key| (key, None)))?;
            self.engine.sync()?;
            if part {
                return Ok(Erased::Part);
            }
        }
        *erasing = None;
        self.prefixes.write().empty(number);
        Ok(Erased::All)
    }
}

//! Erasing what nobody can read any more: the rows of a dropped index.
//!
//! Problem: a deletion for each row costs as much as the rows did, goes through the log, and stands in the way of scans until the
//! threshold has reached it. Idea: once the drop itself is below the threshold, no snapshot can see the rows. Then they need no
//! versions: files that hold nothing else go at once. Of what is left in others a little is removed from the engine, past the log. Much is
//! left to merges, which are told that it is dead: to remove each entry would be to merge its removal down to where it is, level by
//! level, with all that lies beside. It counts as what makes the present worth being written anew ([`Versions::compaction_due`]).
//!
//! 1. Nothing of it is in memory: a later flush would bring it back.
//! 2. Files are dropped once, before the first entry is removed: a file of removals lies within the prefix, too, and dropping it would
//!    bring back what it hides. After a restart both begin again.
//!
//! The caller promises that no snapshot at or above the threshold has a use for the prefix, and that nobody writes there.

use super::prefixes::{Prefix, prefix_of};
use super::{UNMERGED_RUNS_MAX, Versions};
use crate::engine::Tree;
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

/// So often merges are waited for, which may have other things to do; then the entries are removed. Calls come every few seconds.
const CALLS_MAX: u32 = 200;

/// What is left to merges.
pub(super) struct Dead {
    /// How often the present had been written anew when it was left to them.
    compactions: u64,
    /// How often it was asked for since.
    calls: u32,
}

/// What a call of [`Versions::erase`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erased {
    /// Nothing is left.
    All,
    /// Something is left: call again.
    Part,
    /// Some of it is still in memory, or the engine has to merge first, or its merges drop it: call again after the next flush.
    NotYet,
}

impl<E: Engine> Versions<E> {
    /// Erases some of what begins with these four bytes. (What is in the past goes with its time.)
    ///
    /// # Errors
    /// What the engine says; call again.
    pub fn erase(&self, prefix: [u8; 4]) -> Result<Erased, StoreError> {
        let writers = (self.writer.lock(), self.present_writer.lock());
        let number = prefix_of(&prefix);
        if !self.is_due(number) {
            return Ok(Erased::NotYet);
        }
        let shown = self.wholes.all().iter().any(|whole| whole.has_prefix(number));
        let in_memory =
            shown || self.layers.read().newest_first().any(|layer| layer.newest_of(number) > Timestamp::MIN);
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
        self.hot.give_up_prefix(prefix);
        let (mut left, entries_max) = (Vec::new(), self.config.erase_max.max(1));
        self.engine.scan(Tree::Present, &from, &to, false, &mut |key, _| {
            // A copy: what the engine gives is a slice of a whole block.
            left.push(Bytes::copy_from_slice(&key));
            if left.len() < entries_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let part = left.len() == entries_max;
        if part && self.leave_to_merges(number) {
            // No entry was removed yet: what they cut smaller meanwhile may then lie wholly within.
            *erasing = None;
            drop((erasing, writers));
            let mut left = 0;
            self.engine.scan(Tree::Present, &from, &to, false, &mut |_, _| {
                left += 1;
                ControlFlow::Continue(())
            })?;
            self.buried.fetch_add(left, Ordering::Relaxed);
            return Ok(Erased::NotYet);
        }
        if !left.is_empty() {
            let bytes = left.iter().map(Bytes::len).sum();
            self.engine.ingest(Tree::Present, bytes, &mut left.into_iter().map(|key| (key, None)))?;
            self.engine.sync()?;
            if part {
                return Ok(Erased::Part);
            }
        }
        *erasing = None;
        if self.dead.lock().remove(&number).is_some() {
            self.tell_burial();
        }
        self.prefixes.write().empty(number);
        // Whoever was at reading it may have kept some of it since.
        self.hot.give_up_prefix(prefix);
        Ok(Erased::All)
    }

    /// Whether it is time to look at a prefix: not while it is left to merges, and they did not write all of the present since.
    fn is_due(&self, prefix: Prefix) -> bool {
        let mut dead = self.dead.lock();
        let Some(waiting) = dead.get_mut(&prefix) else { return true };
        waiting.calls += 1;
        waiting.calls >= CALLS_MAX || waiting.compactions != self.compactions.load(Ordering::Relaxed)
    }

    /// Has merges drop a prefix; `false`: they had their time.
    fn leave_to_merges(&self, prefix: Prefix) -> bool {
        let mut dead = self.dead.lock();
        if dead.get(&prefix).is_some_and(|waiting| waiting.calls >= CALLS_MAX) {
            return false;
        }
        let calls = dead.get(&prefix).map_or(0, |waiting| waiting.calls);
        dead.insert(prefix, Dead { compactions: self.compactions.load(Ordering::Relaxed), calls });
        drop(dead);
        self.tell_burial();
        true
    }
}

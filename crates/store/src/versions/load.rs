//! Rows that go to the engine past the log.
//!
//! Problem: an index over millions of rows would go through the log, the overlay, the row cache and a flush, one after the other, and
//! the engine would merge it with what is flushed meanwhile. Idea: rows that nobody can name yet need no log. They go to the engine at
//! once, sorted, durable when the call returns; what makes them visible later is an ordinary commit.
//!
//! What the caller promises:
//! 1. No transaction reads or writes these keys but the one that loads them, before a commit above `ts` names them (and none ever read
//!    them before): so no snapshot changes, and no certification misses them.
//! 2. `ts` is at or below a commit that is in the log: no clock that starts from the log gives it out again.
//! 3. A crash leaves what was loaded. The caller has on record, durably and before the first call, where to look for it.
//!
//! Caveat: the engine then holds versions that no command up to its position wrote (invariant 2 of [`super`]). Commands that are replayed
//! do not meet them, by the first promise.

use super::prefixes::prefix_of;
use super::scan::after;
use super::{Sabotage, UNMERGED_RUNS_MAX, Versions};
use crate::engine::{Change, Tree};
use crate::keys::Present;
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use std::cell::Cell;

/// What an entry takes beside key and value, about.
const ENTRY_BYTES: usize = 16;

/// Rows whose entries stand in one allocation: the engine gives them up soon. At most so many, and of large ones those that begin within so
/// many bytes.
const TOGETHER_ROWS: usize = 256;
const TOGETHER_BYTES: usize = 256 << 10;

/// What a call of [`Versions::load_while`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// All is there.
    All,
    /// The engine has to merge first; nothing was written, call again later.
    NotYet,
    /// It was not to go on: the first rows are there, or none, and nobody needs them.
    Part,
}

/// Rows, a few at a time whose entries stand together.
fn some(mut rows: &[(Bytes, Bytes)]) -> impl Iterator<Item = &[(Bytes, Bytes)]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let begins_within = |(key, value): &&(Bytes, Bytes)| {
            let before = bytes;
            bytes += key.len() + value.len();
            before < TOGETHER_BYTES
        };
        let count = rows.iter().take(TOGETHER_ROWS).take_while(begins_within).count();
        let (some, rest) = rows.split_at(count);
        rows = rest;
        (count > 0).then_some(some)
    })
}

/// The entries of rows, in one allocation.
fn together(ts: Timestamp, rows: &[(Bytes, Bytes)]) -> Vec<Change> {
    let size = |(key, value): &(Bytes, Bytes)| key.len() + value.len() + ENTRY_BYTES;
    let mut bytes = Vec::with_capacity(rows.iter().map(size).sum());
    let mut ends = Vec::with_capacity(rows.len());
    for (key, value) in rows {
        keys::put_present(key, &mut bytes);
        let middle = bytes.len();
        Present::put(ts, Some(value), &mut bytes);
        ends.push((middle, bytes.len()));
    }
    let (bytes, mut from) = (Bytes::from(bytes), 0);
    let entry = |(middle, end)| {
        let key = bytes.slice(from..middle);
        from = end;
        (key, Some(bytes.slice(middle..end)))
    };
    ends.into_iter().map(entry).collect()
}

impl<E: Engine> Versions<E> {
    /// Writes rows (keys in strictly ascending order) to the engine in one atomic, durable step. `false`: the engine has to merge
    /// first; nothing was written, call again later.
    ///
    /// # Errors
    /// What the engine says.
    pub fn load(&self, ts: Timestamp, rows: &[(Bytes, Bytes)]) -> Result<bool, StoreError> {
        Ok(self.load_while(ts, rows, &|| true)? == Loaded::All)
    }

    /// The same, for as long as the caller `goes_on`, who is asked before each few of them: a chunk of large files takes long on a slow disk.
    ///
    /// # Errors
    /// What the engine says.
    pub fn load_while(
        &self,
        ts: Timestamp,
        rows: &[(Bytes, Bytes)],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Loaded, StoreError> {
        if rows.is_empty() {
            return Ok(Loaded::All);
        }
        debug_assert!(rows.is_sorted_by(|(a, _), (b, _)| a < b), "rows come in order");
        // Nobody reads bounds from the engine while the rows arrive: they would be too narrow.
        // Where the disk fills one writes after the other: for want of room the engine is opened anew, and who reads meanwhile would wait for both.
        let alone = self.is_tight() || self.engine.lacks_room_to_merge();
        let _writer = alone.then(|| self.writer.lock());
        let _present_writer = self.present_writer.lock();
        self.engine.merge();
        if self.engine.unmerged_runs() >= UNMERGED_RUNS_MAX {
            return Ok(Loaded::NotYet);
        }
        if !goes_on() {
            return Ok(Loaded::Part);
        }
        let parts = rows.chunk_by(|(a, _), (b, _)| prefix_of(a) == prefix_of(b));
        let ends = parts.filter_map(|part| {
            let (least, greatest) = (&part.first()?.0, &part.last()?.0);
            let copy = |key: &Bytes| Bytes::copy_from_slice(key);
            Some((prefix_of(least), copy(least), copy(greatest)))
        });
        let ends: Vec<_> = ends.collect();
        let newest: Vec<_> = ends.iter().map(|(prefix, ..)| (*prefix, ts)).collect();
        let spans: Vec<_> = ends.iter().map(|(_, least, greatest)| (least.clone(), greatest.clone())).collect();
        self.prefixes.write().widen(newest.into_iter(), ends, ts);
        // Who asks what changed before it has to look in the engine.
        self.layers.write().recent.pass(ts);
        let bytes: usize = rows.iter().map(|(key, value)| key.len() + value.len() + ENTRY_BYTES).sum();
        let is_cut = Cell::new(false);
        let wanted = |(at, _): &(usize, &[_])| {
            is_cut.set(*at > 0 && !goes_on());
            !is_cut.get()
        };
        let mut changes = some(rows).enumerate().take_while(wanted).flat_map(|(_, rows)| together(ts, rows));
        self.engine.ingest(Tree::Present, bytes, &mut changes)?;
        self.engine.sync()?;
        if self.config.sabotage != Some(Sabotage::HotMissesLoads) {
            // Who loads may have looked before the last of it came.
            spans.iter().for_each(|(least, greatest)| self.hot.give_up(least, &after(greatest)));
        }
        let mut loaded = self.loaded.lock();
        spans.iter().for_each(|(least, greatest)| loaded.add(least, greatest, bytes / rows.len()));
        Ok(if is_cut.get() { Loaded::Part } else { Loaded::All })
    }
}

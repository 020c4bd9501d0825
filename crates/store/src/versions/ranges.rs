//! Short ranges that were read are kept in memory.
//!
//! Problem: point reads have the row cache, scans had the layers. Right behind many updates a row of a scan stands in memory, in several runs of
//! the engine, and is hidden in all but one; a scan of a hundred rows cost six times what it cost before the updates, a scan of one four times. And
//! where all lies in one run of the engine, it still costs twice what the same rows cost in memory.
//!
//! Idea: hot spans ([`super::hot`]) already keep the present of a span in order, and are right whatever is written. So a short range that the engine
//! was asked about becomes one, as long as there is room: the next scan of it reads memory in one place.
//!
//! 1. Only while there is room ([`HotSpans::has_room`](super::hot::HotSpans::has_room)), also where a gap between two is closed: a table that is
//!    larger than that is read as before, but for what came first. What nobody reads for a minute goes; garbage's spans stay, and are not joined with these.
//! 2. Only short ranges ([`RANGE_ENTRIES_MAX`]): who reads a table as a whole reads each row once.
//! 3. A range goes on behind its end up to [`RANGE_ENTRIES_MIN`] entries, within its prefix: else an index that is looked up one key at a time
//!    would become as many spans.
//! 4. What is kept lies in the order of its keys, in few pieces: rows that were written in any order lie anywhere, and to gather a hundred
//!    of them from a hundred places costs as much as all else of a scan.
//!
//! Costs: a range is read twice the first time; and each write to one that is kept is made in one more place.

use super::copies::Copies;
use super::overlay::Seen;
use super::prefixes::{PREFIX_BYTES, end_of, prefix_of};
use super::{Span, Version, Versions};
use crate::engine::Tree;
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use std::ops::ControlFlow;

/// Entries that a scan may have passed of a range that is kept.
pub(super) const RANGE_ENTRIES_MAX: usize = 512;
/// Entries that a kept range has, if there are so many behind it.
pub(super) const RANGE_ENTRIES_MIN: usize = 128;

/// What memory and the engine have of a span, each key once, in order; as copies that lie in order, too.
pub(super) fn in_order(memory: Vec<Seen>, below: Vec<(Bytes, Version)>) -> impl Iterator<Item = (Bytes, Version)> {
    let mut copies = Copies::of(memory.len() + below.len());
    let (mut memory, mut below) = (memory.into_iter().peekable(), below.into_iter().peekable());
    std::iter::from_fn(move || {
        let from_memory = match (memory.peek(), below.peek()) {
            (Some(seen), Some((key, _))) => seen.key < *key,
            (seen, _) => seen.is_some(),
        };
        let (key, version) = match from_memory {
            true => memory.next().map(|seen| (seen.key, seen.version))?,
            false => below.next()?,
        };
        Some((key, copies.keep(version)))
    })
}

impl<E: Engine> Versions<E> {
    /// Whether a stretch that a scan of at most `limit` rows asked the engine about, and of which it passed so many entries, is to be kept.
    pub(super) fn is_kept(&self, passed: usize, limit: usize) -> bool {
        self.config.keeps_ranges && passed <= RANGE_ENTRIES_MAX && limit <= RANGE_ENTRIES_MAX && self.hot.has_room()
    }

    /// Keeps a span that was just read, and what follows it up to [`RANGE_ENTRIES_MIN`] entries.
    pub(super) fn keep_range(&self, span: &Span, snapshot: Timestamp) -> Result<(), StoreError> {
        let Some(floor) = self.warms_at(snapshot) else { return Ok(()) };
        let prefix = span.start.get(..PREFIX_BYTES).map(prefix_of);
        let Some(end_max) = prefix.and_then(end_of).filter(|end| span.end <= *end) else { return Ok(()) };
        let Some(filling) = self.hot.begin_kept(&span.start, &end_max) else { return Ok(()) };
        let listed = span.start.clone()..filling.end();
        // Of a layer that has more only the first ones: what is behind them was not looked at.
        let (mut memory, horizon, _) = self.memory(&listed, Timestamp::MAX, false, RANGE_ENTRIES_MAX);
        let mut end = horizon.unwrap_or_else(|| listed.end.clone());
        if let Some(seen) = memory.get(RANGE_ENTRIES_MIN).filter(|seen| seen.key >= span.end) {
            end = end.min(seen.key.clone());
        }
        let (mut below, mut damaged) = (Vec::new(), false);
        let (from, to) = (keys::present(&span.start), keys::present(&end));
        self.engine.scan(Tree::Present, &from, &to, false, &mut |physical, entry| {
            let Ok((key, present)) = keys::present_entry(physical, entry) else {
                // Whoever reads it says so.
                damaged = true;
                return ControlFlow::Break(());
            };
            let place = memory.binary_search_by(|seen| seen.key.cmp(&key));
            let before = below.len() + place.unwrap_or_else(|place| place);
            if before >= RANGE_ENTRIES_MIN && key >= span.end || below.len() >= RANGE_ENTRIES_MAX {
                end = key;
                return ControlFlow::Break(());
            }
            if place.is_err() {
                below.push((key, Version { ts: present.ts, value: present.value }));
            }
            ControlFlow::Continue(())
        })?;
        if !damaged {
            memory.retain(|seen| seen.key < end);
            filling.fill(in_order(memory, below), Some(end), floor);
            self.share_cache();
        }
        Ok(())
    }
}

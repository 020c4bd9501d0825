//! Ordered reads: memory and engine merged, one bounded chunk at a time.
//!
//! A chunk first takes up to `limit` keys from each layer, then walks the engine. Where a layer had more, the chunk ends
//! at the first such end (the *horizon*), since beyond it that layer was not looked at.

use super::overlay::Seen;
use super::prefixes::prefix_of;
use super::{Layers, Span, Version, Versions, damaged_key};
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rows in one chunk at most, whatever the caller asks for.
pub const CHUNK_ROWS_MAX: usize = 4096;
/// A chunk ends once its keys and values have this many bytes.
pub const CHUNK_BYTES_MAX: usize = 4 << 20;
/// A chunk ends once it has passed this many entries of the engine, visible or not.
pub const CHUNK_STEPS_MAX: usize = 65_536;

/// Rows of a span at a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Keys, commit timestamps and values, in the order asked for; deleted keys are left out.
    pub rows: Vec<(Bytes, Timestamp, Bytes)>,
    /// What remains to be asked for; `None` at the end.
    pub rest: Option<Span>,
}

impl<E: Engine> Versions<E> {
    /// Up to `limit` rows of `span` at `snapshot`, highest key first where `reverse`. A chunk may end early (size), even
    /// without a row: ask for [`Scan::rest`] until it is `None`.
    ///
    /// # Errors
    /// What the engine says; [`StoreError::Corrupt`] on an entry that is no version.
    pub fn scan(&self, span: &Span, snapshot: Timestamp, reverse: bool, limit: usize) -> Result<Scan, StoreError> {
        if span.start >= span.end {
            return Ok(Scan::default());
        }
        let limit = limit.clamp(1, CHUNK_ROWS_MAX);
        let (memory, horizon) = self.memory(span, snapshot, reverse, limit);
        let mut merge = Merge::new(memory, reverse, limit);
        let looked_at = match &horizon {
            None => span.clone(),
            Some(key) if reverse => key.clone()..span.end.clone(),
            Some(key) => span.start.clone()..after(key),
        };
        if self.engine_may_hold_some(&looked_at)? {
            self.walk(&looked_at, snapshot, reverse, &mut merge)?;
        }
        merge.finish();
        let end = merge.stopped.or(horizon);
        let rest = end.map(|key| if reverse { span.start.clone()..key } else { after(&key)..span.end.clone() });
        Ok(Scan { rows: merge.rows, rest: rest.filter(|r| r.start < r.end) })
    }

    /// What the layers hold of a span, newest layer first per key, and where the first of them was cut.
    fn memory(
        &self,
        span: &Span,
        snapshot: Timestamp,
        reverse: bool,
        limit: usize,
    ) -> (BTreeMap<Bytes, Version>, Option<Bytes>) {
        let (active, frozen) = {
            let layers: &Layers = &self.layers.read();
            let active = layers.active.seen(span, snapshot, reverse, limit);
            (active, layers.frozen.iter().rev().map(Arc::clone).collect::<Vec<_>>())
        };
        let mut horizon: Option<Bytes> = None;
        let mut merged = BTreeMap::new();
        let older = frozen.iter().map(|f| f.layer.seen(span, snapshot, reverse, limit));
        for (seen, more) in std::iter::once(active).chain(older) {
            if let Some(last) = seen.last().filter(|_| more) {
                horizon = Some(match horizon {
                    None => last.key.clone(),
                    Some(known) if reverse => known.max(last.key.clone()),
                    Some(known) => known.min(last.key.clone()),
                });
            }
            for Seen { key, version } in seen {
                merged.entry(key).or_insert(version);
            }
        }
        if let Some(horizon) = &horizon {
            merged.retain(|key, _| if reverse { key >= horizon } else { key <= horizon });
        }
        (merged, horizon)
    }

    /// Whether the engine may hold a key of a span: known for spans within one prefix.
    fn engine_may_hold_some(&self, span: &Span) -> Result<bool, StoreError> {
        let prefix = prefix_of(&span.start);
        let last = if span.end.len() <= 4 { prefix_of(&span.end).saturating_sub(1) } else { prefix_of(&span.end) };
        if last != prefix {
            return Ok(true);
        }
        self.bounds_overlap(span)
    }

    /// Walks the engine's entries of a span into the merge, one key at a time.
    fn walk(&self, span: &Span, snapshot: Timestamp, reverse: bool, merge: &mut Merge) -> Result<(), StoreError> {
        let mut stem: Vec<u8> = Vec::new();
        let mut candidate: Option<Version> = None;
        let mut steps = 0;
        let mut damaged: Option<Bytes> = None;
        self.engine.scan(&keys::lower(&span.start), &keys::lower(&span.end), reverse, &mut |physical, value| {
            let Some(parts) = keys::split(physical) else {
                damaged = Some(Bytes::copy_from_slice(physical));
                return ControlFlow::Break(());
            };
            if parts.stem != stem.as_slice() {
                merge.engine(&stem, candidate.take())?;
                if steps >= CHUNK_STEPS_MAX {
                    return merge.stop_at(&stem);
                }
                stem.clear();
                stem.extend_from_slice(parts.stem);
            }
            steps += 1;
            // Newest first going up, oldest first going down: the newest visible one is the first or the last seen.
            if parts.ts <= snapshot && (reverse || candidate.is_none()) {
                candidate = Some(Version { ts: parts.ts, value: (!parts.tombstone).then_some(value) });
            }
            ControlFlow::Continue(())
        })?;
        if let Some(physical) = damaged {
            return Err(damaged_key(&physical));
        }
        // A break keeps no candidate, so this adds the last key only where the walk came to its end.
        let _ = merge.engine(&stem, candidate);
        Ok(())
    }
}

/// The least key above `key`.
fn after(key: &Bytes) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

/// Joins what memory holds with what the engine walks past.
struct Merge {
    memory: std::iter::Peekable<Box<dyn Iterator<Item = (Bytes, Version)>>>,
    reverse: bool,
    limit: usize,
    bytes: usize,
    rows: Vec<(Bytes, Timestamp, Bytes)>,
    /// The last key that was dealt with, where the chunk ended early.
    stopped: Option<Bytes>,
}

impl Merge {
    fn new(memory: BTreeMap<Bytes, Version>, reverse: bool, limit: usize) -> Self {
        let memory: Box<dyn Iterator<Item = (Bytes, Version)>> =
            if reverse { Box::new(memory.into_iter().rev()) } else { Box::new(memory.into_iter()) };
        Merge { memory: memory.peekable(), reverse, limit, bytes: 0, rows: Vec::new(), stopped: None }
    }

    fn push(&mut self, key: Bytes, version: Version) -> ControlFlow<()> {
        if let Some(value) = version.value {
            self.bytes += key.len() + value.len();
            self.rows.push((key.clone(), version.ts, value));
        }
        if self.rows.len() >= self.limit || self.bytes >= CHUNK_BYTES_MAX {
            self.stopped = Some(key);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// The engine's newest visible version of the key of `stem`, if it has one.
    fn engine(&mut self, stem: &[u8], version: Option<Version>) -> ControlFlow<()> {
        let Some(version) = version else {
            return ControlFlow::Continue(());
        };
        if self.stopped.is_some() {
            return ControlFlow::Break(());
        }
        let key = keys::user_key(stem);
        let reverse = self.reverse;
        while let Some((k, v)) = self.memory.next_if(|(k, _)| if reverse { *k > key } else { *k < key }) {
            self.push(k, v)?;
        }
        match self.memory.next_if(|(k, _)| *k == key) {
            Some((k, v)) => self.push(k, v),
            None => self.push(key, version),
        }
    }

    /// The chunk ends after the key of `stem`: what memory holds up to it still belongs to it.
    fn stop_at(&mut self, stem: &[u8]) -> ControlFlow<()> {
        let key = keys::user_key(stem);
        let reverse = self.reverse;
        while let Some((k, v)) = self.memory.next_if(|(k, _)| if reverse { *k >= key } else { *k <= key }) {
            self.push(k, v)?;
        }
        self.stopped = Some(key);
        ControlFlow::Break(())
    }

    fn finish(&mut self) {
        while self.stopped.is_none() {
            let Some((key, version)) = self.memory.next() else {
                return;
            };
            let _ = self.push(key, version);
        }
    }
}

//! Ordered reads: memory and the engine's present merged, one bounded chunk at a time.
//!
//! A chunk first takes up to `limit` live keys from each layer, then walks the present over the same stretch. Where one of them had
//! more, the chunk ends at the first such end (the *horizon*), since beyond it that source was not looked at. The past is asked only
//! about keys whose present version is newer than the snapshot.

use super::overlay::Seen;
use super::prefixes::prefix_of;
use super::{Layers, Span, Version, Versions, damaged_key};
use crate::engine::Tree;
use crate::keys::Present;
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
        let looked_at = match &horizon {
            None => span.clone(),
            Some(key) if reverse => key.clone()..span.end.clone(),
            Some(key) => span.start.clone()..after(key),
        };
        let mut walk = Walk::default();
        if self.engine_may_hold_some(&looked_at)? {
            walk = self.walk(&looked_at, snapshot, reverse, limit, &memory)?;
        }
        // The walk stayed within the horizon of memory: where it was cut, that is nearer.
        let mut end = walk.end.or(horizon);
        let mut chunk = Chunk { limit, ..Chunk::default() };
        let memory = memory.into_iter();
        let (memory, engine): (Box<dyn Iterator<Item = _>>, _) =
            if reverse { (Box::new(memory.rev()), walk.found) } else { (Box::new(memory), walk.found) };
        if let Some(cut) = chunk.merge(memory, engine, reverse, end.as_ref()) {
            end = Some(cut);
        }
        let rest = end.map(|key| if reverse { span.start.clone()..key } else { after(&key)..span.end.clone() });
        Ok(Scan { rows: chunk.rows, rest: rest.filter(|r| r.start < r.end) })
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

    /// Walks the present over a span, past what memory knows better: up to `limit` keys that the snapshot sees.
    fn walk(
        &self,
        span: &Span,
        snapshot: Timestamp,
        reverse: bool,
        limit: usize,
        memory: &BTreeMap<Bytes, Version>,
    ) -> Result<Walk, StoreError> {
        let mut walk = Walk::default();
        let (mut steps, mut bytes, mut damaged) = (0, 0, None);
        let mut last: Option<Bytes> = None;
        // Places in `found` that only the past can fill.
        let mut newer: Vec<usize> = Vec::new();
        let (from, to) = (keys::present(&span.start), keys::present(&span.end));
        self.engine.scan(Tree::Present, &from, &to, reverse, &mut |physical, entry| {
            if walk.found.len() >= limit || bytes >= CHUNK_BYTES_MAX || steps >= CHUNK_STEPS_MAX {
                walk.end = last.take();
                return ControlFlow::Break(());
            }
            let Some((key, present)) = keys::user_key(&physical).zip(Present::decode(entry)) else {
                damaged = Some(physical);
                return ControlFlow::Break(());
            };
            steps += 1;
            last = Some(key.clone());
            let is_newer = present.ts > snapshot;
            if (is_newer || present.value.is_some()) && !memory.contains_key(&key) {
                if is_newer {
                    newer.push(walk.found.len());
                }
                bytes += key.len() + present.value.as_ref().map_or(0, Bytes::len);
                walk.found.push((key, Version { ts: present.ts, value: present.value }));
            }
            ControlFlow::Continue(())
        })?;
        if let Some(physical) = damaged {
            return Err(damaged_key(&physical));
        }
        for place in newer {
            let Some((key, version)) = walk.found.get_mut(place) else { break };
            *version = match self.past_at(key, snapshot)? {
                Some(past) => Version { ts: past.begin, value: Some(past.value) },
                None => Version { ts: Timestamp::MIN, value: None },
            };
        }
        Ok(walk)
    }
}

/// What a walk over the present found.
#[derive(Default)]
struct Walk {
    /// In the order asked for.
    found: Vec<(Bytes, Version)>,
    /// The last key that was looked at, where the walk ended early.
    end: Option<Bytes>,
}

/// The least key above `key`.
fn after(key: &Bytes) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    Bytes::from(next)
}

/// Joins what memory holds with what the engine does.
#[derive(Default)]
struct Chunk {
    limit: usize,
    bytes: usize,
    rows: Vec<(Bytes, Timestamp, Bytes)>,
}

impl Chunk {
    /// Merges two ordered sources that share no key, up to and with the key `end`; gives the last key taken where the chunk is full before.
    fn merge(
        &mut self,
        memory: impl Iterator<Item = (Bytes, Version)>,
        engine: Vec<(Bytes, Version)>,
        reverse: bool,
        end: Option<&Bytes>,
    ) -> Option<Bytes> {
        let before = |a: &Bytes, b: &Bytes| if reverse { a > b } else { a < b };
        let (mut memory, mut engine) = (memory.peekable(), engine.into_iter().peekable());
        loop {
            let (key, version) = match (memory.peek(), engine.peek()) {
                (Some((m, _)), Some((e, _))) if before(m, e) => memory.next()?,
                (_, Some(_)) => engine.next()?,
                _ => memory.next()?,
            };
            if end.is_some_and(|end| before(end, &key)) {
                return None;
            }
            if let Some(value) = version.value {
                self.bytes += key.len() + value.len();
                self.rows.push((key.clone(), version.ts, value));
            }
            if self.rows.len() >= self.limit || self.bytes >= CHUNK_BYTES_MAX {
                return Some(key);
            }
        }
    }
}

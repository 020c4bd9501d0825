//! Ordered reads of many rows, for who looks at each and keeps few: rows of a chunk stand in one allocation.
//!
//! A scan of thousands of rows ([`Versions::scan`]) gives each its own key and value, and counting who holds those costs more than reading
//! them. Here the engine lends its entries ([`Engine::sweep`]), and what is seen is copied behind what was seen before. As in a scan, memory
//! is looked at first, and a chunk ends where a layer had more.

use super::hot::{self, Ahead};
use super::overlay::Seen;
use super::scan::{CHUNK_BYTES_MAX, CHUNK_ROWS_MAX, CHUNK_STEPS_MAX, LARGE_GARBAGE, after};
use super::{Span, Version, Versions, damaged_key};
use crate::engine::Tree;
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use std::iter::Peekable;
use std::ops::ControlFlow;

/// Room for a row in the first allocation of a chunk.
const ROW_BYTES: usize = 128;

/// Rows of a span at a snapshot, lowest key first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Keys and values, one behind the other.
    pub bytes: Bytes,
    /// Of each row, in order: where in `bytes` its key begins and ends, and its value.
    pub places: Vec<[u32; 4]>,
    /// What remains to be asked for; `None` at the end.
    pub rest: Option<Span>,
}

impl Sweep {
    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let part = |from: u32, to: u32| self.bytes.get(from as usize..to as usize).unwrap_or_default();
        self.places.iter().map(move |&[key, key_end, value, value_end]| (part(key, key_end), part(value, value_end)))
    }
}

impl<E: Engine> Versions<E> {
    /// Up to `limit` rows of `span` at `snapshot`. As [`Versions::scan`], a chunk may end early. `None`: rows lie in a hot span, where a
    /// scan finds them faster.
    ///
    /// # Errors
    /// As [`Versions::scan`].
    pub fn sweep(&self, span: &Span, snapshot: Timestamp, limit: usize) -> Result<Option<Sweep>, StoreError> {
        self.readable_in(span, snapshot)?;
        let limit = limit.clamp(1, CHUNK_ROWS_MAX);
        if span.start >= span.end {
            return Ok(Some(Sweep::default()));
        }
        let stretch = match self.hot.ahead(span, snapshot, false, 1) {
            Ahead::Hot { .. } => return Ok(None),
            Ahead::Cold(Some(start)) => span.start.clone()..start,
            Ahead::Cold(None) => span.clone(),
        };
        let (memory, horizon, seen) = self.memory(&stretch, snapshot, false, limit);
        let looked_at = match &horizon {
            None => stretch.clone(),
            Some(at) => stretch.start.clone()..at.clone(),
        };
        let mut packing = Packing::new(memory, snapshot, limit);
        if self.engine_may_hold_some(&looked_at)? {
            let mut damaged = None;
            let (from, to) = (keys::present(&looked_at.start), keys::present(&looked_at.end));
            self.engine.sweep(Tree::Present, &from, &to, &mut |key, entry| match keys::lent_entry(key, entry) {
                Some((key, ts, value)) => packing.meet(key, ts, value),
                None => {
                    damaged = Some(damaged_key(key));
                    ControlFlow::Break(())
                }
            })?;
            if let Some(damaged) = damaged {
                return Err(damaged);
            }
        }
        packing.rest_of_memory();
        let end = packing.end.take().map(|last| after(&last)).or(horizon).unwrap_or_else(|| stretch.end.clone());
        let passed = seen + packing.steps;
        let (bytes, places) = packing.rows(|key, ts| {
            let past = self.past_at(key, snapshot, ts)?;
            Ok::<_, StoreError>(past.map(|past| Version { ts: past.begin, value: Some(past.value) }))
        })?;
        if passed >= LARGE_GARBAGE * places.len() && hot::is_costly(passed, places.len(), self.config.hot_after) {
            self.warm(&(stretch.start..end.clone()), snapshot)?;
        }
        let rest = end..span.end.clone();
        Ok(Some(Sweep { bytes, places, rest: (rest.start < rest.end).then_some(rest) }))
    }
}

/// Rows in the making.
struct Packing {
    snapshot: Timestamp,
    limit: usize,
    memory: Peekable<std::vec::IntoIter<Seen>>,
    bytes: Vec<u8>,
    places: Vec<[u32; 4]>,
    /// Places that only the past can fill: their versions, of these times, are newer than the snapshot.
    newer: Vec<(usize, Timestamp)>,
    /// Entries of the engine that were met.
    steps: usize,
    /// The last key that was met, if it gave no row.
    skipped: Vec<u8>,
    /// The last key, where the chunk ended early.
    end: Option<Bytes>,
}

impl Packing {
    fn new(memory: Vec<Seen>, snapshot: Timestamp, limit: usize) -> Packing {
        Packing {
            snapshot,
            limit,
            memory: memory.into_iter().peekable(),
            bytes: Vec::with_capacity(limit * ROW_BYTES),
            places: Vec::with_capacity(limit),
            newer: Vec::new(),
            steps: 0,
            skipped: Vec::new(),
            end: None,
        }
    }

    /// Whether there is no room for another key; then it ends with the last one.
    fn is_full(&mut self) -> bool {
        let full =
            self.places.len() >= self.limit || self.bytes.len() >= CHUNK_BYTES_MAX || self.steps >= CHUNK_STEPS_MAX;
        if full {
            let last = || self.places.last().map(|place| self.part(place[0], place[1]));
            let last = if self.skipped.is_empty() { last() } else { Some(&self.skipped[..]) };
            self.end = last.map(Bytes::copy_from_slice);
        }
        full
    }

    fn part(&self, from: u32, to: u32) -> &[u8] {
        self.bytes.get(from as usize..to as usize).unwrap_or_default()
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        let from = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.places.push([from, middle, middle, self.bytes.len() as u32]);
        self.skipped.clear();
    }

    fn skip(&mut self, key: &[u8]) {
        self.skipped.clear();
        self.skipped.extend_from_slice(key);
    }

    /// Takes what memory has next.
    fn take(&mut self) {
        let Some(Seen { key, version }) = self.memory.next() else { return };
        match version.value {
            Some(value) => self.push(&key, &value),
            None => self.skip(&key),
        }
    }

    /// Meets the next entry of the engine.
    fn meet(&mut self, key: &[u8], ts: Timestamp, value: Option<&[u8]>) -> ControlFlow<()> {
        while let Some(seen) = self.memory.peek() {
            let order = seen.key[..].cmp(key);
            if order.is_gt() {
                break;
            }
            if self.is_full() {
                return ControlFlow::Break(());
            }
            self.take();
            if order.is_eq() {
                self.steps += 1;
                return ControlFlow::Continue(());
            }
        }
        if self.is_full() {
            return ControlFlow::Break(());
        }
        self.steps += 1;
        match value {
            _ if ts > self.snapshot => {
                self.newer.push((self.places.len(), ts));
                self.push(key, &[]);
            }
            Some(value) => self.push(key, value),
            None => self.skip(key),
        }
        ControlFlow::Continue(())
    }

    /// The engine has no more: takes what is left in memory.
    fn rest_of_memory(&mut self) {
        while self.end.is_none() && self.memory.peek().is_some() && !self.is_full() {
            self.take();
        }
    }

    /// The rows; `past` says what the snapshot sees of a key whose version at a time is newer.
    fn rows<E>(
        mut self,
        mut past: impl FnMut(&[u8], Timestamp) -> Result<Option<Version>, E>,
    ) -> Result<(Bytes, Vec<[u32; 4]>), E> {
        let mut gone = Vec::new();
        for (at, ts) in std::mem::take(&mut self.newer) {
            let Some([key, key_end, ..]) = self.places.get(at).copied() else { break };
            match past(self.part(key, key_end), ts)?.and_then(|version| version.value) {
                Some(value) => {
                    let from = self.bytes.len() as u32;
                    self.bytes.extend_from_slice(&value);
                    self.places[at] = [key, key_end, from, self.bytes.len() as u32];
                }
                None => gone.push(at),
            }
        }
        if !gone.is_empty() {
            let (mut at, mut gone) = (0, gone.into_iter().peekable());
            self.places.retain(|_| {
                at += 1;
                gone.next_if_eq(&(at - 1)).is_none()
            });
        }
        Ok((Bytes::from(self.bytes), self.places))
    }
}

//! Ordered reads of many rows, for who looks at each and keeps few: rows of a chunk stand in one allocation.
//!
//! A scan of thousands of rows ([`Versions::scan`]) gives each its own key and value, and counting who holds those costs more than reading
//! them. Here the engine lends its entries ([`Engine::sweep`]), and what is seen is copied behind what was seen before. As in a scan, memory
//! is looked at first, and a chunk ends where a layer had more.
//!
//! **Leaving out.** Of most rows nobody wants more than to see that they fail a condition. Whoever says so beforehand ([`Pick`]) is asked about each where it lies, and what
//! fails is not copied. It may only leave out: what is not asked about (rows that only the past has, say) is given as it is, and asked about by who gets it.

use super::hot::{self, Here};
use super::overlay::Sight;
use super::packed::Packed;
use super::scan::{CHUNK_BYTES_MAX, CHUNK_ROWS_MAX, CHUNK_STEPS_MAX, LARGE_GARBAGE, after};
use super::{Span, Version, Versions, damaged_key};
use crate::engine::{LentKey, Tree};
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use std::ops::ControlFlow;

/// Says whether a row with this value is to be given; `Break`: it is, and the chunk ends with it.
pub type Pick<'a> = dyn FnMut(&[u8]) -> ControlFlow<(), bool> + 'a;

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
    /// Up to `limit` rows of `span` at `snapshot`. As [`Versions::scan`], a chunk may end early. `None`: rows were written
    /// just now by a large command.
    ///
    /// # Errors
    /// As [`Versions::scan`].
    pub fn sweep(&self, span: &Span, snapshot: Timestamp, limit: usize) -> Result<Option<Sweep>, StoreError> {
        self.sweep_picked(span, snapshot, limit, None)
    }

    /// As [`Versions::sweep`]; of what `pick` does not want, rows may be left out, and do not count for the limit.
    ///
    /// # Errors
    /// As [`Versions::scan`].
    pub fn sweep_picked(
        &self,
        span: &Span,
        snapshot: Timestamp,
        limit: usize,
        pick: Option<&mut Pick<'_>>,
    ) -> Result<Option<Sweep>, StoreError> {
        self.readable_in(span, snapshot)?;
        let limit = limit.clamp(1, CHUNK_ROWS_MAX);
        if span.start >= span.end {
            return Ok(Some(Sweep::default()));
        }
        // What is shown is told from what layers have by times, which are not packed.
        if self.wholes.newest_in(span, Timestamp::MIN, snapshot).is_some() {
            return Ok(None);
        }
        let stretch = match self.hot.here(span, snapshot, false, limit) {
            // The layers have in order what the snapshot sees of them.
            Some(here) if here.looks_back(snapshot, false, limit) => here.part.start.clone()..here.end(false),
            Some(here) => return self.sweep_hot(here, span, snapshot, limit, pick).map(Some),
            None => match self.hot.next(span, false) {
                Some(start) => span.start.clone()..start,
                None => span.clone(),
            },
        };
        let (memory, horizon, seen) = self.packed_memory(&stretch, snapshot, limit);
        let looked_at = match &horizon {
            None => stretch.clone(),
            Some(at) => stretch.start.clone()..at.clone(),
        };
        let asked = self.engine_may_hold_some(&looked_at)?;
        let (bytes, places, end, passed, left_out) = if asked {
            let mut packing = Packing::new(memory, snapshot, limit, pick);
            self.pack(&looked_at, &mut packing)?;
            let end = packing.end.take().or(horizon);
            let (passed, left_out) = (seen + packing.steps, packing.left_out);
            let (bytes, places) = packing.rows(|key, ts| {
                let past = self.past_at(key, snapshot, ts)?;
                Ok::<_, StoreError>(past.map(|past| Version { ts: past.begin, value: Some(past.value) }))
            })?;
            (bytes, places, end, passed, left_out)
        } else {
            let mut live = memory.live();
            // Each layer gave so many.
            let end = (live.len() > limit).then(|| {
                live.places.truncate(limit);
                live.last_key().map(after)
            });
            (live.bytes, live.places, end.flatten().or(horizon), seen, 0)
        };
        let end = end.unwrap_or_else(|| stretch.end.clone());
        // What is left out is no garbage.
        let given = places.len() + left_out;
        if passed >= LARGE_GARBAGE * given && hot::is_costly(passed, given, self.config.hot_after) {
            self.warm(&(stretch.start..end.clone()), snapshot, false)?;
        } else if asked && self.is_kept(passed, limit) {
            self.keep_range(&(stretch.start..end.clone()), snapshot)?;
        }
        let rest = end..span.end.clone();
        Ok(Some(Sweep { bytes: bytes.into(), places, rest: (rest.start < rest.end).then_some(rest) }))
    }

    /// The rows of the hot spans in which `span` begins, one behind the other.
    fn sweep_hot(
        &self,
        here: Here,
        span: &Span,
        snapshot: Timestamp,
        limit: usize,
        pick: Option<&mut Pick<'_>>,
    ) -> Result<Sweep, StoreError> {
        let mut packing = Packing::of(Packed::default(), snapshot, limit, pick);
        let (mut rest, mut next) = (span.clone(), Some(here));
        while let Some(here) = next.take() {
            let (mut dead, mut failed) = (0, None);
            let all = here.cut.visit(&here.part, false, &mut |key, version| {
                if packing.is_full() {
                    packing.end = Some(Bytes::copy_from_slice(key));
                    return ControlFlow::Break(());
                }
                packing.steps += 1;
                if version.ts <= snapshot {
                    dead += usize::from(version.value.is_none());
                    packing.put(key.into(), version.value.as_deref());
                    return ControlFlow::Continue(());
                }
                match self.version_at(key, snapshot) {
                    Ok(older) => {
                        packing.put(key.into(), older.as_ref().and_then(|older| older.value.as_deref()));
                        ControlFlow::Continue(())
                    }
                    Err(e) => {
                        failed = Some(e);
                        ControlFlow::Break(())
                    }
                }
            });
            if let Some(e) = failed {
                return Err(e);
            }
            rest.start = packing.end.take().unwrap_or_else(|| here.end(false));
            if let Some(stale) = here.stale(dead) {
                self.hot.forget(&stale, self.forgettable());
            }
            if all.is_continue() && !packing.is_full() && rest.start < rest.end {
                let behind = self.hot.here(&rest, snapshot, false, limit);
                next = behind.filter(|here| !here.looks_back(snapshot, false, limit));
            }
        }
        let Packed { bytes, places } = packing.rows;
        Ok(Sweep { bytes: bytes.into(), places, rest: (rest.start < rest.end).then_some(rest) })
    }

    /// Joins what memory and the engine have of a span.
    fn pack(&self, span: &Span, packing: &mut Packing<'_, '_>) -> Result<(), StoreError> {
        let mut damaged = None;
        let (from, to) = (keys::present(&span.start), keys::present(&span.end));
        self.engine.sweep(Tree::Present, &from, &to, &mut |key, entry| match keys::lent_entry(key, entry) {
            Some((key, ts, value)) => packing.meet(key, ts, value),
            None => {
                damaged = Some(damaged_key(&key.to_vec()));
                ControlFlow::Break(())
            }
        })?;
        packing.rest_of_memory();
        damaged.map_or(Ok(()), Err)
    }
}

/// Rows in the making.
struct Packing<'p, 'f> {
    snapshot: Timestamp,
    limit: usize,
    memory: Packed,
    /// How many of memory's were met.
    met: usize,
    rows: Packed,
    /// Places that only the past can fill: their versions, of these times, are newer than the snapshot.
    newer: Vec<(usize, Timestamp)>,
    /// Entries of the engine that were met.
    steps: usize,
    /// The first key that was not taken, where the chunk ended early: it holds all below.
    end: Option<Bytes>,
    pick: Option<&'p mut Pick<'f>>,
    left_out: usize,
    /// Of keys and values that were left out: they were looked at, and their blocks read.
    left_out_bytes: usize,
    /// The chunk ends here, says who picks.
    ends: bool,
}

impl<'p, 'f> Packing<'p, 'f> {
    fn new(memory: Packed, snapshot: Timestamp, limit: usize, pick: Option<&'p mut Pick<'f>>) -> Packing<'p, 'f> {
        let rows = Packed { bytes: Vec::with_capacity(limit * ROW_BYTES), places: Vec::with_capacity(limit) };
        Packing { rows, ..Packing::of(memory, snapshot, limit, pick) }
    }

    /// As [`Packing::new`], for who does not know whether it comes to as much as `limit`.
    fn of(memory: Packed, snapshot: Timestamp, limit: usize, pick: Option<&'p mut Pick<'f>>) -> Packing<'p, 'f> {
        Packing {
            snapshot,
            limit,
            memory,
            met: 0,
            rows: Packed::default(),
            newer: Vec::new(),
            steps: 0,
            end: None,
            pick,
            left_out: 0,
            left_out_bytes: 0,
            ends: false,
        }
    }

    /// Takes a row in, or a key that gives none.
    #[inline]
    fn put(&mut self, key: LentKey<'_>, mut value: Option<&[u8]>) {
        if let (Some(bytes), Some(pick)) = (value, &mut self.pick) {
            match pick(bytes) {
                ControlFlow::Continue(true) => {}
                ControlFlow::Continue(false) => {
                    value = None;
                    self.left_out += 1;
                    self.left_out_bytes += key.len() + bytes.len();
                }
                ControlFlow::Break(()) => self.ends = true,
            }
        }
        if value.is_some() {
            self.rows.push_lent(key, value);
        }
    }

    /// Whether there is no room for another key.
    #[inline]
    fn is_full(&self) -> bool {
        self.ends
            || self.rows.len() >= self.limit
            || self.rows.bytes.len() + self.left_out_bytes >= CHUNK_BYTES_MAX
            || self.steps >= CHUNK_STEPS_MAX
    }

    /// Takes what memory has next.
    fn take(&mut self) {
        let memory = std::mem::take(&mut self.memory);
        if let Some((key, value)) = memory.entry(self.met) {
            self.put(key.into(), value);
        }
        self.memory = memory;
        self.met += 1;
    }

    /// Takes what memory has below a key of the engine, and at it; whether the key's entry is to be taken, too. `None`: it is full.
    fn take_up_to(&mut self, key: LentKey<'_>) -> Option<bool> {
        while let Some(seen) = self.memory.key(self.met) {
            let order = key.order(seen);
            if order.is_lt() {
                break;
            }
            if self.is_full() {
                self.end = Some(Bytes::copy_from_slice(seen));
                return None;
            }
            self.take();
            if order.is_eq() {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Meets the next entry of the engine.
    #[inline]
    fn meet(&mut self, key: LentKey<'_>, ts: Timestamp, value: Option<&[u8]>) -> ControlFlow<()> {
        if self.met < self.memory.len() {
            match self.take_up_to(key) {
                None => return ControlFlow::Break(()),
                Some(false) => {
                    self.steps += 1;
                    return ControlFlow::Continue(());
                }
                Some(true) => {}
            }
        }
        if self.is_full() {
            self.end = Some(Bytes::from(key.to_vec()));
            return ControlFlow::Break(());
        }
        self.steps += 1;
        if ts > self.snapshot {
            self.newer.push((self.rows.len(), ts));
            self.rows.push_lent(key, Some(&[]));
        } else {
            self.put(key, value);
        }
        ControlFlow::Continue(())
    }

    /// The engine has no more: takes what is left in memory.
    fn rest_of_memory(&mut self) {
        while self.end.is_none()
            && let Some(next) = self.memory.key(self.met)
        {
            if self.is_full() {
                self.end = Some(Bytes::copy_from_slice(next));
            } else {
                self.take();
            }
        }
    }

    /// The rows; `past` says what the snapshot sees of a key whose version at a time is newer.
    fn rows<E>(
        self,
        mut past: impl FnMut(&[u8], Timestamp) -> Result<Option<Version>, E>,
    ) -> Result<(Vec<u8>, Vec<[u32; 4]>), E> {
        let Packed { mut bytes, mut places } = self.rows;
        let mut gone = Vec::new();
        for (at, ts) in self.newer {
            let Some([key, key_end, ..]) = places.get(at).copied() else { break };
            let named = bytes.get(key as usize..key_end as usize).unwrap_or_default();
            match past(named, ts)?.and_then(|version| version.value) {
                Some(value) => {
                    let from = bytes.len() as u32;
                    bytes.extend_from_slice(&value);
                    places[at] = [key, key_end, from, bytes.len() as u32];
                }
                None => gone.push(at),
            }
        }
        if !gone.is_empty() {
            let (mut at, mut gone) = (0, gone.into_iter().peekable());
            places.retain(|_| {
                at += 1;
                gone.next_if_eq(&(at - 1)).is_none()
            });
        }
        Ok((bytes, places))
    }
}

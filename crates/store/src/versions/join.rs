//! What memory and the engine hold of a stretch, joined row by row while the engine is walked.
//!
//! Both come in the order asked for, and memory knows better. Nothing is looked up and nothing is held twice: of a table that was
//! just updated as a whole, every row stands in both.

use super::overlay::Seen;
use super::scan::CHUNK_BYTES_MAX;
use super::{Version, scan::CHUNK_STEPS_MAX};
use crate::keys::Present;
use bytes::Bytes;
use clock::Timestamp;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::ControlFlow;

/// One of two lists in order, each with a key once: what both have is taken of the newer one.
pub(super) fn newest(newer: Vec<Seen>, older: Vec<Seen>, reverse: bool) -> Vec<Seen> {
    if older.is_empty() {
        return newer;
    }
    if newer.is_empty() {
        return older;
    }
    let mut out = Vec::with_capacity(newer.len() + older.len());
    let (mut newer, mut older) = (newer.into_iter().peekable(), older.into_iter().peekable());
    loop {
        let next = match (newer.peek(), older.peek()) {
            (Some(new), Some(old)) => match order(&new.key, &old.key, reverse) {
                Ordering::Less => newer.next(),
                Ordering::Greater => older.next(),
                // Of a command that is shown nobody knows on which side of a layer it is.
                Ordering::Equal if new.version.ts < old.version.ts => {
                    newer.next();
                    older.next()
                }
                Ordering::Equal => {
                    older.next();
                    newer.next()
                }
            },
            (Some(_), None) => newer.next(),
            (None, _) => older.next(),
        };
        match next {
            Some(seen) => out.push(seen),
            None => return out,
        }
    }
}

fn order(a: &[u8], b: &[u8], reverse: bool) -> Ordering {
    if reverse { b.cmp(a) } else { a.cmp(b) }
}

/// Rows in the making.
pub(super) struct Join {
    snapshot: Timestamp,
    reverse: bool,
    limit: usize,
    /// Up to where everything is known; what memory held beyond is not here.
    memory: Peekable<std::vec::IntoIter<Seen>>,
    rows: Vec<(Bytes, Timestamp, Bytes)>,
    /// Places of `rows` that only the past can fill: their versions are newer than the snapshot.
    newer: Vec<usize>,
    bytes: usize,
    /// Entries of the engine that were met.
    pub steps: usize,
    /// The last key that was met, where it gave no row.
    skipped: Option<Bytes>,
    /// The last key, where the chunk ended early.
    pub end: Option<Bytes>,
}

impl Join {
    pub fn new(memory: Vec<Seen>, snapshot: Timestamp, reverse: bool, limit: usize) -> Join {
        Join {
            snapshot,
            reverse,
            limit,
            rows: Vec::with_capacity(memory.len().min(limit)),
            memory: memory.into_iter().peekable(),
            newer: Vec::new(),
            bytes: 0,
            steps: 0,
            skipped: None,
            end: None,
        }
    }

    /// Whether there is no room for another key; then it ends with the last one.
    fn is_full(&mut self) -> bool {
        let full = self.rows.len() >= self.limit || self.bytes >= CHUNK_BYTES_MAX || self.steps >= CHUNK_STEPS_MAX;
        if full {
            let last = || self.rows.last().map(|(key, ..)| key.clone());
            self.end = self.skipped.take().or_else(last);
        }
        full
    }

    fn push(&mut self, key: Bytes, ts: Timestamp, value: Bytes) {
        self.bytes += key.len() + value.len();
        self.rows.push((key, ts, value));
        self.skipped = None;
    }

    /// Takes what memory has next.
    fn take(&mut self) {
        let Some(Seen { key, version }) = self.memory.next() else { return };
        match version.value {
            Some(value) => self.push(key, version.ts, value),
            None => self.skipped = Some(key),
        }
    }

    /// Meets the next entry of the engine.
    pub fn meet(&mut self, key: Bytes, present: Present) -> ControlFlow<()> {
        while let Some(seen) = self.memory.peek() {
            let order = order(&seen.key, &key, self.reverse);
            if order == Ordering::Greater {
                break;
            }
            if self.is_full() {
                return ControlFlow::Break(());
            }
            self.take();
            if order == Ordering::Equal {
                self.steps += 1;
                return ControlFlow::Continue(());
            }
        }
        if self.is_full() {
            return ControlFlow::Break(());
        }
        self.steps += 1;
        match present.value {
            _ if present.ts > self.snapshot => {
                self.newer.push(self.rows.len());
                self.push(key, present.ts, present.value.unwrap_or_default());
            }
            Some(value) => self.push(key, present.ts, value),
            None => self.skipped = Some(key),
        }
        ControlFlow::Continue(())
    }

    /// The engine has no more: takes what is left in memory.
    pub fn rest_of_memory(&mut self) {
        while self.end.is_none() && self.memory.peek().is_some() && !self.is_full() {
            self.take();
        }
    }

    /// The rows, and their bytes; `past` says what the snapshot sees of a key whose version at a time is newer.
    pub fn rows<E>(
        mut self,
        mut past: impl FnMut(&[u8], Timestamp) -> Result<Option<Version>, E>,
    ) -> Result<(Vec<(Bytes, Timestamp, Bytes)>, usize), E> {
        let mut gone = Vec::new();
        for place in self.newer {
            let Some((key, ts, value)) = self.rows.get_mut(place) else { break };
            self.bytes -= value.len();
            match past(key, *ts)?.and_then(|version| Some((version.ts, version.value?))) {
                Some(found) => {
                    self.bytes += found.1.len();
                    (*ts, *value) = found;
                }
                None => {
                    self.bytes -= key.len();
                    gone.push(place);
                }
            }
        }
        let (mut place, mut gone) = (0, gone.into_iter().peekable());
        if gone.peek().is_some() {
            self.rows.retain(|_| {
                place += 1;
                gone.next_if_eq(&(place - 1)).is_none()
            });
        }
        Ok((self.rows, self.bytes))
    }
}

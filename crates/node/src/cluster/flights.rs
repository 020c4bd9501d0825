//! Writes of a range that have a timestamp but no visible outcome yet, at its leader.
//!
//! A reader at `s` waits for what is in flight at or below `s`. A prepare it also waits for up to its uncertainty limit: the
//! transaction may be committed and acknowledged already, while its outcome is still on the way here. A commit of this range alone is
//! acknowledged from here only, after it is visible.
//!
//! A new leader enters all that is prepared anew; commits of its predecessors are applied by then, or will never be.

use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::{Batch, Span, Write};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A batch of more writes is looked through as it is: its keys are in order, and few such are in flight at a time.
const EACH_MAX: usize = 256;

/// What is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Commit,
    Prepare,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    keys: BTreeMap<Bytes, Vec<(Timestamp, Kind)>>,
    flights: BTreeMap<Timestamp, Vec<Bytes>>,
    large: BTreeMap<Timestamp, (Kind, Arc<Batch>)>,
}

impl Flights {
    pub fn enter(&mut self, at: Timestamp, kind: Kind, writes: &[Write]) {
        let keys: Vec<Bytes> = writes.iter().map(|write| write.key.clone()).collect();
        for key in &keys {
            self.keys.entry(key.clone()).or_default().push((at, kind));
        }
        self.flights.insert(at, keys);
    }

    /// As [`Flights::enter`], of a batch that may be large.
    pub fn enter_whole(&mut self, at: Timestamp, kind: Kind, batch: &Arc<Batch>) {
        match batch.writes.len() > EACH_MAX {
            true => drop(self.large.insert(at, (kind, batch.clone()))),
            false => self.enter(at, kind, &batch.writes),
        }
    }

    /// Whether it was in flight.
    pub fn leave(&mut self, at: Timestamp) -> bool {
        let was_large = self.large.remove(&at).is_some();
        let Some(keys) = self.flights.remove(&at) else { return was_large };
        for key in keys {
            if let Some(times) = self.keys.get_mut(&key) {
                times.retain(|(of, _)| *of != at);
                if times.is_empty() {
                    self.keys.remove(&key);
                }
            }
        }
        true
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.flights.clear();
        self.large.clear();
    }

    pub fn len(&self) -> usize {
        self.flights.len() + self.large.len()
    }

    /// The first timestamp of what writes to the span.
    pub fn oldest_in(&self, span: &Span) -> Option<Timestamp> {
        if span.is_empty() {
            return None;
        }
        let keys = self.keys.range::<[u8], _>((Bound::Included(&span.start[..]), span.end_bound()));
        let small = keys.flat_map(|(_, times)| times.iter().map(|(at, _)| *at)).min();
        let large = self.large.iter().find(|(_, (_, batch))| batch.write_in(span).is_some()).map(|(at, _)| *at);
        small.into_iter().chain(large).min()
    }

    fn blocks(times: &[(Timestamp, Kind)], snapshot: Timestamp, limit: Timestamp) -> bool {
        times.iter().any(|(at, kind)| *at <= snapshot || (*kind == Kind::Prepare && *at <= limit))
    }

    /// Whether a reader of the key must wait.
    pub fn on_key(&self, key: &[u8], snapshot: Timestamp, limit: Timestamp) -> bool {
        let of_large = |batch: &&Batch| batch.write_of(key).is_some();
        self.keys.get(key).is_some_and(|times| Self::blocks(times, snapshot, limit))
            || self.blocking(snapshot, limit).any(|batch| of_large(&batch))
    }

    /// The large ones for which a reader must wait where they write.
    fn blocking(&self, snapshot: Timestamp, limit: Timestamp) -> impl Iterator<Item = &Batch> {
        let blocks =
            move |(at, (kind, _)): &(&Timestamp, &(Kind, Arc<Batch>))| Self::blocks(&[(**at, *kind)], snapshot, limit);
        self.large.iter().filter(blocks).map(|(_, (_, batch))| &**batch)
    }

    /// The first key of the span (the last where `reverse`) for which a reader must wait.
    pub fn in_span(&self, span: &Span, snapshot: Timestamp, limit: Timestamp, reverse: bool) -> Option<&Bytes> {
        if span.is_empty() || (self.keys.is_empty() && self.large.is_empty()) {
            return None;
        }
        let of_large = self.blocking(snapshot, limit).filter_map(|batch| match reverse {
            true => batch.last_write_in(span),
            false => batch.write_in(span),
        });
        let mut of_large = of_large.map(|write| &write.key);
        let mut keys = self.keys.range::<[u8], _>((Bound::Included(&span.start[..]), span.end_bound()));
        let blocks = |(key, times): (&'_ Bytes, &Vec<(Timestamp, Kind)>)| {
            Self::blocks(times, snapshot, limit).then(|| key.clone())
        };
        let found = if reverse { keys.rev().find_map(blocks) } else { keys.find_map(blocks) };
        let found = found.and_then(|key| self.keys.get_key_value(&key).map(|(key, _)| key));
        match reverse {
            true => found.into_iter().chain(of_large.by_ref()).max(),
            false => found.into_iter().chain(of_large.by_ref()).min(),
        }
    }
}

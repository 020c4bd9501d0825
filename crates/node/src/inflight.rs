//! Writes that have a timestamp but no visible outcome yet.
//!
//! # Problem
//! A commit gets its timestamp when it is proposed and its fate when it is durable and applied. A reader whose snapshot lies
//! at or above that timestamp must wait (004 §2.3, figure 2.2; algorithm 1, lines 6-17), and must not miss it, although readers
//! and writers run on different threads and share no lock on their common path.
//!
//! # The argument
//! A writer, in this order: (w1) counts itself in the counters of its keys; (w2) takes the table's lock; (w3) ticks the hybrid
//! clock for its timestamp `c`; (w4) enters its keys; (w5) frees the lock. Later: (w6) writes its versions, or learns that it
//! aborted; (w7) removes its keys and counts itself out.
//!
//! A reader at `s`: (r1) ratchets the hybrid clock to `s`; (r2) looks at the counters of its key; if they are not zero, (r3)
//! looks into the table, under its lock; (r4) reads the versions.
//!
//! 1. If `c <= s`, then w3 came before r1: a tick after r1 gives more than `s`.
//! 2. Hence w1 came before r2, and r2 sees the count unless w7 came before it; all of these are sequentially consistent.
//! 3. Hence r3, which comes after w2 and so, having to wait for the lock, after w5, sees the keys unless w7 came before it.
//! 4. If w7 came first, w6 did too, and r4 sees the versions.
//! 5. A reader therefore meets each write with `c <= s` in the table or in the versions. One with `c > s` does not concern it.
//!
//! Hence it is also enough to do r1 once per snapshot, not once per read.
//!
//! # Caveats
//! A commit of very many keys enters spans instead of keys: readers between its keys wait needlessly.

use bytes::Bytes;
use clock::Timestamp;
use parking_lot::RwLock;
use protocol::txn::{LentWrites, Span};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::task::Waker;

/// A commit of more keys than this enters the spans that cover them.
pub(crate) const KEYS_EACH_MAX: usize = 512;
/// Counters that keys share by hash.
const COUNTERS: usize = 1024;
/// Keys with the same first bytes (one index) are covered by one span.
const COVER_PREFIX_BYTES: usize = 4;

#[derive(Debug)]
pub(crate) struct InFlight {
    total: AtomicUsize,
    spans: AtomicUsize,
    counters: Box<[AtomicU32]>,
    table: RwLock<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Mostly one for each.
    keys: BTreeMap<Bytes, SmallVec<[Timestamp; 1]>>,
    flights: BTreeMap<Timestamp, Flight>,
}

#[derive(Debug, Default)]
struct Flight {
    keys: Vec<Bytes>,
    spans: Vec<Span>,
    waiting: Vec<Waker>,
}

/// The keys that one record writes, counted in (w1) but not yet entered.
pub(crate) struct Announced {
    flight: Flight,
}

impl Default for InFlight {
    fn default() -> Self {
        InFlight {
            total: AtomicUsize::new(0),
            spans: AtomicUsize::new(0),
            counters: (0..COUNTERS).map(|_| AtomicU32::new(0)).collect(),
            table: RwLock::default(),
        }
    }
}

/// Which counter a key has: it is asked several times for each write, and for each read. Eight bytes at a time are multiplied in, and what that moved up
/// is folded down for the next; which keys meet makes a reader look into the table in vain, and nothing else.
fn counter_of(key: &[u8]) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let hash = (hash ^ word).wrapping_mul(FACTOR);
        hash ^ (hash >> 32)
    };
    let (words, rest) = key.as_chunks::<8>();
    let hash = words.iter().fold(key.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let rest = rest.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte));
    (mix(hash, rest).wrapping_mul(FACTOR) >> (u64::BITS - COUNTERS.ilog2())) as usize
}

/// They come in key order, and are many: not each is looked at.
fn cover<W: LentWrites + ?Sized>(writes: &W) -> Vec<Span> {
    let prefix = |key: &[u8]| key.len().min(COVER_PREFIX_BYTES);
    let (mut from, mut spans) = (0, Vec::new());
    while from < writes.count() {
        let first = writes.key(from);
        let to = writes.first_from(from + 1, |key| key[..prefix(key)] <= first[..prefix(first)]);
        let mut end = writes.key(to - 1).to_vec();
        end.push(0);
        spans.push(Span::new(first.to_vec(), end));
        from = to;
    }
    spans
}

impl InFlight {
    /// w1: counts a record's keys in.
    pub fn announce<W: LentWrites + ?Sized>(&self, writes: &W) -> Announced {
        self.total.fetch_add(1, SeqCst);
        let mut flight = Flight::default();
        if writes.count() > KEYS_EACH_MAX {
            flight.spans = cover(writes);
            self.spans.fetch_add(1, SeqCst);
        } else {
            flight.keys = (0..writes.count()).map(|at| writes.shared_key(at)).collect();
            for key in &flight.keys {
                self.counters[counter_of(key)].fetch_add(1, SeqCst);
            }
        }
        Announced { flight }
    }

    /// w2 to w5: enters the keys at the timestamp that `tick` gives.
    pub fn enter(&self, announced: Announced, tick: impl FnOnce() -> Timestamp) -> Timestamp {
        let mut table = self.table.write();
        let at = tick();
        for key in &announced.flight.keys {
            table.keys.entry(key.clone()).or_default().push(at);
        }
        table.flights.insert(at, announced.flight);
        at
    }

    /// w7: the outcome is visible. Whoever waits for it goes on.
    pub fn leave(&self, at: Timestamp, wakers: &mut Vec<Waker>) {
        let flight = {
            let mut table = self.table.write();
            let Some(flight) = table.flights.remove(&at) else { return };
            for key in &flight.keys {
                if let Some(times) = table.keys.get_mut(key) {
                    times.retain(|t| *t != at);
                    if times.is_empty() {
                        table.keys.remove(key);
                    }
                }
            }
            flight
        };
        if !flight.spans.is_empty() {
            self.spans.fetch_sub(1, SeqCst);
        }
        for key in &flight.keys {
            self.counters[counter_of(key)].fetch_sub(1, SeqCst);
        }
        self.total.fetch_sub(1, SeqCst);
        wakers.extend(flight.waiting);
    }

    /// r2 and r3: a write of `key` in flight at or below `at`.
    pub fn on_key(&self, key: &[u8], at: Timestamp) -> Option<Timestamp> {
        if self.counters[counter_of(key)].load(SeqCst) == 0 && self.spans.load(SeqCst) == 0 {
            return None;
        }
        let table = self.table.read();
        let exact = table.keys.get(key).and_then(|times| times.iter().find(|t| **t <= at).copied());
        exact.or_else(|| {
            table.bulk().find(|(t, spans)| *t <= at && spans.iter().any(|s| s.contains(key))).map(|(t, _)| t)
        })
    }

    /// How many keys, from the first on, no write in flight has.
    pub fn clear_of(&self, keys: &[&[u8]]) -> usize {
        if self.total.load(SeqCst) == 0 {
            return keys.len();
        }
        keys.iter().take_while(|key| self.on_key(key, Timestamp::MAX).is_none()).count()
    }

    /// r2 and r3 for a span: the first key from its start (from its end where `reverse`) that is in flight at or below `at`, and
    /// when. Where a commit covers a span itself, the nearest end of that.
    pub fn in_span(&self, span: &Span, at: Timestamp, reverse: bool) -> Option<(Bytes, Timestamp)> {
        if self.total.load(SeqCst) == 0 || span.is_empty() {
            return None;
        }
        let table = self.table.read();
        let hit =
            |(key, times): (&Bytes, &SmallVec<[Timestamp; 1]>)| Some((key.clone(), *times.iter().find(|t| **t <= at)?));
        let mut keys = table.keys.range::<[u8], _>((std::ops::Bound::Included(&span.start[..]), span.end_bound()));
        let exact = if reverse { keys.rev().find_map(hit) } else { keys.find_map(hit) };
        let bulk = table.bulk().filter(|(t, _)| *t <= at).flat_map(|(t, spans)| spans.iter().map(move |s| (t, s)));
        let cut = bulk.filter(|(_, s)| s.overlaps(span)).map(|(t, s)| {
            let shared = s.intersection(span);
            (if reverse { shared.end } else { shared.start }, t)
        });
        let all = exact.into_iter().chain(cut);
        if reverse { all.max() } else { all.min() }
    }

    /// Wakes `waker` when the flight leaves. `false`: it is gone already, look again.
    pub fn wait(&self, at: Timestamp, waker: &Waker) -> bool {
        match self.table.write().flights.get_mut(&at) {
            Some(flight) => {
                if !flight.waiting.iter().any(|w| w.will_wake(waker)) {
                    flight.waiting.push(waker.clone());
                }
                true
            }
            None => false,
        }
    }
}

impl Table {
    fn bulk(&self) -> impl Iterator<Item = (Timestamp, &Vec<Span>)> {
        self.flights.iter().filter(|(_, f)| !f.spans.is_empty()).map(|(at, f)| (*at, &f.spans))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that follow each other, of rows and of entries of an index, that are short and long: who reads one should not be sent to the table because
    /// of another.
    #[test]
    fn keys_spread_over_the_counters() {
        const KEYS: u32 = 16 * COUNTERS as u32;
        let row = |n: u32| [&[0, 0, 1, 7, 0x88][..], &n.to_be_bytes()].concat();
        let wide = |n: u32| [&[0, 0, 1, 7, 0x8c, 0, 0, 0, 0][..], &n.to_be_bytes(), &[0x84, 0, 0, 0]].concat();
        let entry = |n: u32| [&row(n % 100)[..], &row(n)[4..]].concat();
        let text = |n: u32| format!("\0\0\u{1}\u{7}customer {n:>40}").into_bytes();
        let shapes: [&dyn Fn(u32) -> Vec<u8>; 4] = [&row, &wide, &entry, &text];
        for (number, shape) in shapes.iter().enumerate() {
            let mut held = vec![0; COUNTERS];
            (0..KEYS).for_each(|n| held[counter_of(&shape(n))] += 1);
            let most = held.iter().max().copied().unwrap_or_default();
            // By chance it would be about 32 of 16 on average.
            assert!(most <= 48, "of shape {number}, {most} keys share a counter");
        }
    }
}

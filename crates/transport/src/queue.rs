//! What waits for a lane.

use crate::{QUEUE_PARCELS_MAX, STALE};
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Instant;

/// Parcels in the order in which they were sent, up to a bound.
///
/// A full queue of a link that is up refuses the newest: what stands before it is on its way, and what follows in a log or a snapshot builds on that, so a
/// prefix is worth more than a suffix. While the link is down nothing is on its way, and the oldest give way: they would arrive stale.
pub(crate) struct Queue {
    parcels: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    bytes_max: usize,
    dropped: u64,
}

impl Queue {
    pub fn new(bytes_max: usize) -> Queue {
        Queue { parcels: VecDeque::new(), bytes: 0, bytes_max, dropped: 0 }
    }
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }
    pub fn len(&self) -> usize {
        self.parcels.len()
    }
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
    /// So many were lost elsewhere.
    pub fn lost(&mut self, parcels: u64) {
        self.dropped += parcels;
    }

    fn fits(&self, bytes: usize) -> bool {
        self.is_empty() || self.bytes + bytes <= self.bytes_max && self.parcels.len() < QUEUE_PARCELS_MAX
    }

    /// Appends a parcel; `false` if something was dropped for it, or it was.
    pub fn push(&mut self, now: Instant, bytes: Bytes, link_is_up: bool) -> bool {
        let fitted = self.fits(bytes.len());
        if !fitted && link_is_up {
            self.dropped += 1;
            return false;
        }
        while !self.fits(bytes.len()) {
            self.pop();
            self.dropped += 1;
        }
        self.bytes += bytes.len();
        self.parcels.push_back((now, bytes));
        fitted
    }

    fn pop(&mut self) -> Option<Bytes> {
        let (_, bytes) = self.parcels.pop_front()?;
        self.bytes -= bytes.len();
        Some(bytes)
    }

    /// Drops what waited longer than [`STALE`].
    pub fn drop_stale(&mut self, now: Instant) {
        while self.parcels.front().is_some_and(|(since, _)| now.saturating_duration_since(*since) > STALE) {
            self.pop();
            self.dropped += 1;
        }
    }

    /// Moves parcels out until there are so many bytes, but at least one.
    pub fn take(&mut self, bytes_max: usize, out: &mut Vec<Bytes>) {
        let mut bytes = 0;
        while bytes < bytes_max
            && let Some(parcel) = self.pop()
        {
            bytes += parcel.len();
            out.push(parcel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel(byte: u8, len: usize) -> Bytes {
        vec![byte; len].into()
    }

    fn firsts(queue: &mut Queue) -> Vec<u8> {
        let mut out = Vec::new();
        queue.take(usize::MAX, &mut out);
        out.iter().map(|bytes| bytes[0]).collect()
    }

    #[test]
    fn a_full_queue_refuses_the_newest_while_the_link_is_up() {
        let (now, mut queue) = (Instant::now(), Queue::new(100));
        assert!(queue.push(now, parcel(1, 60), true));
        assert!(!queue.push(now, parcel(2, 60), true));
        assert!(queue.push(now, parcel(3, 40), true));
        assert_eq!((queue.len(), queue.bytes(), queue.dropped()), (2, 100, 1));
        assert_eq!(firsts(&mut queue), [1, 3]);
    }

    #[test]
    fn the_oldest_give_way_while_it_is_down() {
        let (now, mut queue) = (Instant::now(), Queue::new(100));
        assert!(queue.push(now, parcel(1, 60), false));
        assert!(queue.push(now, parcel(2, 40), false));
        assert!(!queue.push(now, parcel(3, 50), false));
        assert_eq!((queue.dropped(), queue.bytes()), (1, 90));
        assert_eq!(firsts(&mut queue), [2, 3]);
    }

    #[test]
    fn a_parcel_beyond_the_bound_finds_room_in_an_empty_queue_only() {
        for up in [true, false] {
            let (now, mut queue) = (Instant::now(), Queue::new(100));
            assert!(queue.push(now, parcel(1, 500), up));
            queue.push(now, parcel(2, 500), up);
            assert_eq!((queue.len(), queue.bytes(), queue.dropped()), (1, 500, 1));
        }
    }

    #[test]
    fn many_small_ones_are_bounded_by_their_number() {
        let (now, mut queue) = (Instant::now(), Queue::new(usize::MAX));
        for _ in 0..QUEUE_PARCELS_MAX + 10 {
            queue.push(now, parcel(1, 1), true);
        }
        assert_eq!((queue.len(), queue.dropped()), (QUEUE_PARCELS_MAX, 10));
    }

    #[test]
    fn what_is_stale_is_dropped_and_the_rest_kept() {
        let (now, mut queue) = (Instant::now(), Queue::new(100));
        queue.push(now, parcel(1, 10), false);
        queue.push(now + STALE, parcel(2, 10), false);
        queue.drop_stale(now + STALE + STALE / 2);
        assert_eq!((queue.len(), queue.bytes(), queue.dropped()), (1, 10, 1));
    }

    #[test]
    fn a_batch_has_at_least_one_and_ends_at_its_bound() {
        let (now, mut queue) = (Instant::now(), Queue::new(1000));
        for byte in 1..=3 {
            queue.push(now, parcel(byte, 100), true);
        }
        let mut out = Vec::new();
        queue.take(1, &mut out);
        assert_eq!(out.len(), 1);
        queue.take(150, &mut out);
        assert_eq!((out.len(), queue.bytes()), (3, 0));
    }
}

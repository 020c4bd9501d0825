//! The cell through which the poller hands anchors to readers.
//!
//! **Problem.** An anchor is eight words and readers on every core want it in nanoseconds, while one writer replaces it a few
//! times a second. A lock costs more than the clock itself; a plain sequence lock makes readers wait for a writer that was
//! scheduled out in the middle.
//!
//! **Idea.** Two slots and a generation. Generation `g` lives in slot `g & 1`; the writer fills the *other* slot and then
//! publishes `g + 1`. A reader loads the generation, the slot, and the generation again. It starts over only if a whole
//! publication happened in between: it never waits for a writer, and in practice never loops.
//!
//! **Invariants.**
//! 1. A slot is written only while the published generation names the other one. So if the generation is still `g` after
//!    the slot's words were read, none of them had been overwritten.
//! 2. One writer at a time (the mutex around the writer's side).

use crate::anchor::{Anchor, Bare};
use clock::{Interval, Status};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// One anchor as plain words, on a cache line of its own.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Slot([AtomicU64; 8]);

/// A single-writer, many-reader cell that holds an [`Anchor`].
#[derive(Debug)]
#[repr(align(64))]
pub struct AnchorCell {
    generation: AtomicU64,
    slots: [Slot; 2],
    writer: Mutex<()>,
}

impl Default for AnchorCell {
    fn default() -> Self {
        let cell = AnchorCell { generation: AtomicU64::new(0), slots: Default::default(), writer: Mutex::new(()) };
        cell.publish(Anchor::UNKNOWN);
        cell
    }
}

const fn status_bits(status: Status) -> u64 {
    match status {
        Status::Unknown => 0,
        Status::Synchronized => 1,
        Status::FreeRunning => 2,
        Status::Disrupted => 3,
    }
}

#[inline]
const fn status_from_bits(bits: u64) -> Status {
    match bits {
        1 => Status::Synchronized,
        2 => Status::FreeRunning,
        3 => Status::Disrupted,
        _ => Status::Unknown,
    }
}

/// Drift in the upper half, then 24 bits of signed rate (see [`Bare::RATE_PPB_MAX`]) and 8 of status.
const fn pack(max_drift_ppb: u32, rate_ppb: i32, status: Status) -> u64 {
    (max_drift_ppb as u64) << 32 | ((rate_ppb << 8).cast_unsigned() as u64) | status_bits(status)
}

/// What lines over the one clock, and over the other, need besides, in one word: the lowest bit says of which it is.
const fn pack_other(bare: Option<Bare>, ahead_ns: Option<i64>) -> u64 {
    match (bare, ahead_ns) {
        (Some(bare), _) => bare.as_of_ns << 1,
        (None, Some(ahead_ns)) => (ahead_ns << 1).cast_unsigned() | 1,
        (None, None) => 0,
    }
}

impl AnchorCell {
    /// Replaces the anchor.
    pub fn publish(&self, anchor: Anchor) {
        let _one_writer = self.writer.lock().unwrap_or_else(|e| e.into_inner());
        let next = self.generation.load(Ordering::Relaxed) + 1;
        // Whoever sees one of the words below also sees the generation that retired this slot.
        fence(Ordering::Release);
        let words = [
            anchor.as_of_ns,
            anchor.void_after_ns,
            anchor.look_after_ns,
            anchor.asleep_ns.cast_unsigned(),
            anchor.at.earliest_ns,
            anchor.at.latest_ns,
            pack(anchor.max_drift_ppb, anchor.bare.map_or(0, |bare| bare.rate_ppb), anchor.status),
            pack_other(anchor.bare, anchor.ahead_ns),
        ];
        for (slot, word) in self.slots[(next & 1) as usize].0.iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        self.generation.store(next, Ordering::Release);
    }

    /// The anchor published last.
    #[inline]
    pub fn load(&self) -> Anchor {
        loop {
            let generation = self.generation.load(Ordering::Acquire);
            let words = &self.slots[(generation & 1) as usize].0;
            let [as_of_ns, void_after_ns, look_after_ns, asleep_ns, earliest_ns, latest_ns, packed, other] =
                std::array::from_fn(|i| words[i].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if self.generation.load(Ordering::Relaxed) == generation {
                return Anchor {
                    as_of_ns,
                    void_after_ns,
                    look_after_ns,
                    asleep_ns: asleep_ns.cast_signed(),
                    at: Interval { earliest_ns, latest_ns },
                    bare: (other > 0 && other & 1 == 0)
                        .then_some(Bare { as_of_ns: other >> 1, rate_ppb: (packed as i32) >> 8 }),
                    ahead_ns: (other & 1 == 1).then_some(other.cast_signed() >> 1),
                    max_drift_ppb: (packed >> 32) as u32,
                    status: status_from_bits(packed & 0xff),
                };
            }
        }
    }
}

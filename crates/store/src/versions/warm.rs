//! Loaded rows on their way to the row cache.
//!
//! Problem: a load goes past memory ([`super::load`]), so the first read of each of its rows goes to the engine and costs about twice what it
//! costs later; yet what was just loaded is most often what is read next. To cache it with the load would make every load slower. Idea: the
//! spans of loads are remembered, and whoever has time has some of their rows cached ([`Versions::warm_loaded`]), while there is room.
//!
//! 1. What is read here is cached under the conditions of any read's row (`fill`): nothing moved since memory was looked at.
//! 2. At most [`SPANS_MAX`] spans are remembered; the oldest is forgotten first. It is only ever a hint.
//! 3. It fills the cache to [`FULL_PART`] at most: it crowds nothing out.
//! 4. One call reads at most [`WARM_BYTES_MAX`] and one row more, and what the cache would not take is not copied. Loads of large rows are not
//!    remembered ([`LARGE_ROW_BYTES`]): reading one costs much the same wherever it lies.

use super::prefixes::{Prefix, prefix_of};
use super::{Span, Version, Versions, scan};
use crate::engine::Tree;
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

/// Most spans that are remembered: one for each index.
const SPANS_MAX: usize = 64;
/// This part of the row cache's bytes is filled, in fourths.
const FULL_PART: usize = 3;
/// Bytes that one call reads, whatever it was asked for.
pub(super) const WARM_BYTES_MAX: usize = 8 << 20;
/// Rows of a load that are so large or larger, on average, are not cached in advance.
const LARGE_ROW_BYTES: usize = 64 << 10;
/// Rows that one hold of the overlay's lock looks up: bounds how long a writer waits.
const FILL_KEYS_MAX: usize = 64;

/// What was loaded and is not cached yet, the newest last.
#[derive(Default)]
pub(super) struct Loaded {
    spans: Vec<(Prefix, Span)>,
    /// How often something was added.
    loads: u64,
}

impl Loaded {
    /// Rows from `least` to `greatest`, all of one prefix; they have about so many bytes each.
    pub(super) fn add(&mut self, least: &Bytes, greatest: &Bytes, row_bytes: usize) {
        let (prefix, end) = (prefix_of(least), scan::after(greatest));
        self.loads += 1;
        if row_bytes >= LARGE_ROW_BYTES {
            return;
        }
        // A load comes in chunks: of one index they are one span.
        let span = match self.take(prefix) {
            Some(known) => known.start.min(least.clone())..known.end.max(end),
            None => least.clone()..end,
        };
        if self.spans.len() == SPANS_MAX {
            self.spans.remove(0);
        }
        self.spans.push((prefix, span));
    }

    fn take(&mut self, prefix: Prefix) -> Option<Span> {
        let at = self.spans.iter().position(|(known, _)| *known == prefix)?;
        Some(self.spans.remove(at).1)
    }
}

impl<E: Engine> Versions<E> {
    /// How often something was loaded: who warms may wait until that rests.
    pub fn loads(&self) -> u64 {
        self.loaded.lock().loads
    }

    /// What begins with these four bytes is of no use any more: it is not cached because it was loaded.
    pub fn forget_loaded(&self, prefix: [u8; 4]) {
        self.loaded.lock().take(prefix_of(&prefix));
    }

    /// Caches up to `rows_max` rows that were loaded, those of the last load first; fewer where they are large. `false`: there is nothing left
    /// to do.
    ///
    /// # Errors
    /// What the engine says.
    pub fn warm_loaded(&self, rows_max: usize) -> Result<bool, StoreError> {
        let Some((prefix, span)) = self.loaded.lock().spans.last().cloned() else { return Ok(false) };
        if self.is_cold() {
            return Ok(false);
        }
        let bytes_max = self.cache_bytes_max.load(Ordering::Relaxed) / 4 * FULL_PART;
        if self.cache_bytes() >= bytes_max {
            self.loaded.lock().spans.clear();
            return Ok(false);
        }
        let retired = self.layers.read().retired;
        let mut rows: Vec<(Bytes, Version)> = Vec::new();
        let (mut passed, mut read_bytes, mut last) = (0, 0, None);
        let (from, to) = (keys::present(&span.start), keys::present(&span.end));
        self.engine.scan(Tree::Present, &from, &to, false, &mut |physical, entry| {
            // What is damaged is said to who reads it.
            let Ok((key, present)) = keys::present_entry(physical, entry) else { return ControlFlow::Break(()) };
            let size = key.len() + present.value.as_ref().map_or(0, Bytes::len);
            (passed, read_bytes) = (passed + 1, read_bytes + size);
            let more = passed < rows_max && read_bytes < WARM_BYTES_MAX;
            if !more {
                last = Some(key.clone());
            }
            if self.cache.takes(size) {
                // A copy: what the engine gives is a slice of a whole block.
                let value = present.value.as_deref().map(Bytes::copy_from_slice);
                rows.push((key, Version { ts: present.ts, value }));
            }
            if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        for some in rows.chunks(FILL_KEYS_MAX) {
            let layers = self.layers.read();
            if layers.retired != retired {
                break;
            }
            for (key, version) in some {
                if layers.newest_first().all(|layer| layer.get(key, Timestamp::MAX).is_none()) {
                    self.cache.put(key, version.clone());
                }
            }
        }
        let mut loaded = self.loaded.lock();
        // Meanwhile it may have been forgotten, or more of it loaded.
        if let Some(place) = loaded.spans.iter().position(|(known, now)| *known == prefix && now.start == span.start) {
            let next = last.map_or(span.end, |key| scan::after(&key));
            match loaded.spans.get_mut(place) {
                Some((_, now)) if next < now.end => now.start = next,
                _ => drop(loaded.spans.remove(place)),
            }
        }
        Ok(!loaded.spans.is_empty())
    }
}

//! What changed between two times: what certification and uncertain reads ask.
//!
//! All of it is asked about milliseconds that have just passed, so memory mostly knows: the list of recent writes, the row cache, the layers. The
//! engine is asked where a transaction is older than those.

use super::prefixes::prefix_of;
use super::{Arrivals, NEWER_KEYS_MAX, Span, Versions, damaged_key, scan};
use crate::engine::Tree;
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use std::ops::ControlFlow;

impl<E: Engine> Versions<E> {
    /// The newest version of `key` above `above`: what certification of a point asks. Seldom touches the engine.
    ///
    /// # Errors
    /// What the engine says.
    pub fn newest_above(&self, key: &[u8], above: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.version_between(key, above, Timestamp::MAX)
    }

    /// The newest version of `key` in `(lo, hi]`: what an uncertain read asks.
    ///
    /// # Errors
    /// What the engine says.
    pub fn version_between(&self, key: &[u8], lo: Timestamp, hi: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let shown = self.wholes.newest_of(key, lo, hi).map(|version| version.ts);
        Ok(self.placed_between(key, lo, hi)?.max(shown))
    }

    fn placed_between(&self, key: &[u8], lo: Timestamp, hi: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        match self.cache.newest(key) {
            Some(ts) if ts <= lo => return Ok(None),
            Some(ts) if ts <= hi => return Ok(Some(ts)),
            _ => {}
        }
        if lo >= hi {
            return Ok(None);
        }
        {
            let layers = self.layers.read();
            // Who commits asks about the last milliseconds, of new entries of indexes mostly, of which no cache knows.
            if let Some(known) = layers.recent.between(key, lo, hi) {
                return Ok(known);
            }
            for layer in layers.newest_first() {
                if let Some(ts) = layer.between(key, lo, hi) {
                    return Ok(Some(ts));
                }
            }
        }
        let prefix = prefix_of(key);
        if !self.prefixes.read().may_hold_newer(prefix, prefix, lo) || !self.engine_may_hold(key)? {
            return Ok(None);
        }
        match self.present(key)? {
            Some(present) if present.ts > hi => self.past_between(key, lo, hi),
            present => Ok(present.map(|present| present.ts).filter(|ts| *ts > lo)),
        }
    }

    /// How many writes were applied: for [`Versions::arrived_since`].
    pub fn arrivals(&self) -> Arrivals {
        self.layers.read().recent.arrivals()
    }

    /// Whether one of the writes that were applied since then, of which key and time are given, is such a one. `None`: they were too many.
    pub fn arrived_since(&self, then: Arrivals, such: impl FnMut(&[u8], Timestamp) -> bool) -> Option<bool> {
        self.layers.read().recent.any_since(then, such)
    }

    /// Whether any key that begins with the same four bytes as `key` (one of its index) may have a version above `above`: asked of many
    /// keys at once. Touches the engine never.
    pub fn may_be_newer_beside(&self, key: &[u8], above: Timestamp) -> bool {
        let prefix = prefix_of(key);
        if self.wholes.all().iter().any(|whole| whole.ts > above && whole.has_prefix(prefix)) {
            return true;
        }
        let in_memory = self.layers.read().newest_first().any(|layer| layer.newest_of(prefix) > above);
        in_memory || self.prefixes.read().may_hold_newer(prefix, prefix, above)
    }

    /// The newest version of any key of `span` above `above`, and which key: what certification of a span asks.
    ///
    /// # Errors
    /// What the engine says.
    pub fn newest_in(&self, span: &Span, above: Timestamp) -> Result<Option<(Bytes, Timestamp)>, StoreError> {
        self.version_between_in(span, above, Timestamp::MAX)
    }

    /// A version of any key of `span` in `(lo, hi]`, and which key: the newest of those in memory, or else the first that is met in the engine.
    ///
    /// Seldom touches the engine: only where `lo` is older than the last writes remembered, and the indexes of the span were written since.
    /// Then it walks the present over the span until it finds one, and where there is none, over all of it: what such a transaction costs is
    /// what reading the span costs, but in memory it holds at most [`NEWER_KEYS_MAX`] keys.
    ///
    /// # Errors
    /// What the engine says.
    pub fn version_between_in(
        &self,
        span: &Span,
        lo: Timestamp,
        hi: Timestamp,
    ) -> Result<Option<(Bytes, Timestamp)>, StoreError> {
        if lo >= hi {
            return Ok(None);
        }
        let shown = self.wholes.newest_in(span, lo, hi);
        let layers = self.layers.read();
        if let Some(known) = layers.recent.between_in(span, lo, hi) {
            return Ok(known.into_iter().chain(shown).max_by_key(|(_, ts)| *ts));
        }
        let found = layers.newest_first().filter_map(|layer| layer.between_in(span, lo, hi)).max_by_key(|(_, ts)| *ts);
        let found = found.map(|(key, ts)| (Bytes::copy_from_slice(key), ts));
        let found = found.into_iter().chain(shown).max_by_key(|(_, ts)| *ts);
        drop(layers);
        let (from, to) = (prefix_of(&span.start), prefix_of(&span.end));
        if found.is_some() || !self.prefixes.read().may_hold_newer(from, to, lo) {
            return Ok(found);
        }
        let (mut from, to) = (keys::present(&span.start), keys::present(&span.end));
        loop {
            let (mut found, mut damaged, mut newer) = (None, None, Vec::new());
            self.engine.scan(Tree::Present, &from, &to, false, &mut |key, entry| {
                let (key, present) = match keys::present_entry(key, entry) {
                    Ok(entry) => entry,
                    Err(key) => {
                        damaged = Some(damaged_key(&key));
                        return ControlFlow::Break(());
                    }
                };
                if present.ts > hi {
                    newer.push(key);
                } else if present.ts > lo {
                    found = Some((key, present.ts));
                }
                match found.is_some() || newer.len() >= NEWER_KEYS_MAX {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            })?;
            if let Some(damaged) = damaged {
                return Err(damaged);
            }
            let more = found.is_none() && newer.len() >= NEWER_KEYS_MAX;
            for key in &newer {
                if found.is_some() {
                    return Ok(found);
                }
                found = self.past_between(key, lo, hi)?.map(|ts| (key.clone(), ts));
            }
            match newer.last() {
                Some(last) if more && found.is_none() => from = keys::present(&scan::after(last)),
                _ => return Ok(found),
            }
        }
    }
}

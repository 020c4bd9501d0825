//! Freezing the active layer and writing frozen ones to the engine.

use super::overlay::{Layer, visible_from};
use super::prefixes::{Prefix, prefix_of};
use super::{Frozen, UNMERGED_RUNS_MAX, Versions};
use crate::engine::Change;
use crate::{Engine, StoreError, keys};
use bytes::{Buf, BufMut, Bytes};
use clock::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Version of the header's form.
const FORMAT: u32 = 1;

/// The store's own entry in the engine: written in the same step as the versions that it speaks of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub position: u64,
    pub max_ts: Timestamp,
    pub collected: Timestamp,
    pub state: Bytes,
}

impl Header {
    fn key() -> Bytes {
        keys::meta("header")
    }

    pub fn read(engine: &impl Engine) -> Result<Header, StoreError> {
        let corrupt = |what: &str| StoreError::Corrupt { place: "the engine's header".into(), what: what.into() };
        let Some(raw) = engine.get(&Self::key())? else {
            return Ok(Header::default());
        };
        let Some((body, sum)) = raw.split_last_chunk::<4>() else {
            return Err(corrupt("it is too short"));
        };
        if crc32fast::hash(body) != u32::from_be_bytes(*sum) {
            return Err(corrupt("its checksum does not match"));
        }
        let mut body = raw.slice(..raw.len() - 4);
        if body.len() < 28 {
            return Err(corrupt("it is too short"));
        }
        let format = body.get_u32();
        if format != FORMAT {
            return Err(corrupt(&format!("format {format}, while this program writes format {FORMAT}")));
        }
        Ok(Header {
            position: body.get_u64(),
            max_ts: Timestamp::from_u64(body.get_u64()),
            collected: Timestamp::from_u64(body.get_u64()),
            state: body,
        })
    }

    pub fn change(&self) -> Change {
        let mut raw = Vec::with_capacity(32 + self.state.len());
        raw.put_u32(FORMAT);
        raw.put_u64(self.position);
        raw.put_u64(self.max_ts.as_u64());
        raw.put_u64(self.collected.as_u64());
        raw.put_slice(&self.state);
        raw.put_u32(crc32fast::hash(&raw));
        (Self::key(), Some(Bytes::from(raw)))
    }
}

impl<E: Engine> Versions<E> {
    /// Whether the active layer is large enough to be frozen.
    pub fn freeze_due(&self) -> bool {
        self.layers.read().active.bytes >= self.config.freeze_bytes
    }

    /// Bytes that the active layer holds, about.
    pub fn active_bytes(&self) -> usize {
        self.layers.read().active.bytes
    }

    /// Bytes held in memory by layers, active and frozen, about.
    pub fn overlay_bytes(&self) -> usize {
        let layers = self.layers.read();
        layers.active.bytes + layers.frozen.iter().map(|f| f.layer.bytes).sum::<usize>()
    }

    /// Layers that wait for [`Versions::flush`].
    pub fn frozen_layers(&self) -> usize {
        self.layers.read().frozen.len()
    }

    /// The log below and at this position is in the engine, synced: segments up to it may be recycled.
    pub fn flushed_position(&self) -> u64 {
        self.flushed.load(Ordering::Acquire)
    }

    /// Closes the active layer. It holds the effects of all commands up to `position` and none after it; `state` is
    /// whatever else the caller must know at that position after a restart (undecided prepares, range bounds).
    /// Gives `false` where nothing happened since the last freeze. Cheap: the caller may hold its own locks.
    pub fn freeze(&self, position: u64, state: Bytes) -> bool {
        let mut layers = self.layers.write();
        let last = layers.frozen.last().map_or(self.flushed_position(), |f| f.position);
        debug_assert!(position >= last, "the applied position never goes back: {position} after {last}");
        if position == last && layers.active.is_empty() {
            return false;
        }
        let layer = std::mem::take(&mut layers.active);
        layers.frozen.push(Arc::new(Frozen { layer, position, state }));
        true
    }

    /// Writes the oldest frozen layer to the engine and syncs it: slow, for a background thread. Gives `false` where
    /// none waits, and where the engine has to merge first: call again later, as after an error; the layer is still in
    /// memory. Meanwhile [`Versions::frozen_layers`] tells when to hold writers back.
    ///
    /// # Errors
    /// What the engine says.
    pub fn flush(&self) -> Result<bool, StoreError> {
        let _writer = self.writer.lock();
        self.engine.merge();
        if self.engine.unmerged_runs() >= UNMERGED_RUNS_MAX {
            return Ok(false);
        }
        let Some(frozen) = self.layers.read().frozen.first().cloned() else {
            return Ok(false);
        };
        let layer = &frozen.layer;
        let max_ts = {
            let mut prefixes = self.prefixes.write();
            prefixes.widen(layer.newest_by_prefix(), ends(layer), layer.max_ts);
            prefixes.max_ts
        };
        let collected = self.snapshots.collected();
        let header = Header { position: frozen.position, max_ts, collected, state: frozen.state.clone() };
        let changes = changes(layer, collected);
        self.engine.ingest(layer.bytes, &mut std::iter::once(header.change()).chain(changes))?;
        self.engine.sync()?;
        {
            let mut layers = self.layers.write();
            layers.frozen.remove(0);
            layers.retired += 1;
        }
        self.flushed.store(frozen.position, Ordering::Release);
        Ok(true)
    }
}

/// The versions of a layer as the engine's entries, in its order; without those that nobody can read any more.
fn changes(layer: &Layer, collected: Timestamp) -> impl Iterator<Item = Change> + '_ {
    layer.chains().flat_map(move |(key, chain)| {
        let readable = &chain[visible_from(chain, collected)..];
        readable.iter().rev().map(move |v| {
            let value = v.value.clone().unwrap_or_default();
            (keys::version(key, v.ts, v.value.is_none()), Some(value))
        })
    })
}

/// Least and greatest key of each prefix of a layer.
fn ends(layer: &Layer) -> Vec<(Prefix, Bytes, Bytes)> {
    let mut out: Vec<(Prefix, &[u8], &[u8])> = Vec::new();
    for (key, _) in layer.chains() {
        let prefix = prefix_of(key);
        match out.last_mut() {
            Some(last) if last.0 == prefix => last.2 = key,
            _ => out.push((prefix, key, key)),
        }
    }
    let copy = Bytes::copy_from_slice;
    out.into_iter().map(|(prefix, least, greatest)| (prefix, copy(least), copy(greatest))).collect()
}

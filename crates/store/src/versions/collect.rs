//! Collection: removing versions that no snapshot can read any more.

use super::flush::Header;
use super::{COLLECT_RUNS_MAX, Versions, damaged_key};
use crate::engine::Change;
use crate::{Engine, StoreError, keys};
use bytes::Bytes;
use clock::Timestamp;
use std::ops::ControlFlow;

/// Entries of the engine that one [`Versions::collect`] looks at, about.
pub const COLLECT_STEPS_MAX: usize = 262_144;

/// What one step of collection did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Snapshots below this are refused from now on: the threshold asked for, or less where an older snapshot is open.
    pub threshold: Timestamp,
    /// Versions removed from the engine.
    pub removed: usize,
    /// Where the next step goes on; `None`: the engine was walked to its end.
    pub next: Option<Bytes>,
}

/// Decides, newest version first, which versions of a key go.
struct Sweep {
    threshold: Timestamp,
    stem: Vec<u8>,
    /// A version at or below the threshold was met: older ones are hidden.
    hidden: bool,
    steps: usize,
    removals: Vec<Change>,
}

impl Sweep {
    /// Gives `false` where the sweep has done enough and `physical` begins another key.
    fn visit(&mut self, physical: &[u8], parts: &keys::Parts<'_>) -> bool {
        if parts.stem != self.stem.as_slice() {
            if self.steps >= COLLECT_STEPS_MAX {
                return false;
            }
            self.stem.clear();
            self.stem.extend_from_slice(parts.stem);
            self.hidden = false;
        }
        self.steps += 1;
        if parts.ts <= self.threshold {
            // The newest such version stays, unless it says "deleted": then nothing says the same.
            if self.hidden || parts.tombstone {
                self.removals.push((Bytes::copy_from_slice(physical), None));
            }
            self.hidden = true;
        }
        true
    }
}

impl<E: Engine> Versions<E> {
    /// Raises the threshold to at most `threshold` and removes from the engine what it hides, walking a bounded part that
    /// starts at user key `from` (`None`: the first). Walks nothing where the engine has to merge first. For a background
    /// thread.
    ///
    /// # Errors
    /// What the engine says; nothing was removed then.
    pub fn collect(&self, threshold: Timestamp, from: Option<&Bytes>) -> Result<Collected, StoreError> {
        let _writer = self.writer.lock();
        let threshold = self.snapshots.raise(threshold);
        self.engine.merge();
        if self.engine.unmerged_runs() >= COLLECT_RUNS_MAX {
            return Ok(Collected { threshold, removed: 0, next: Some(from.cloned().unwrap_or_default()) });
        }
        let mut sweep = Sweep { threshold, stem: Vec::new(), hidden: false, steps: 0, removals: Vec::new() };
        let mut next = None;
        let mut damaged: Option<Bytes> = None;
        let start = keys::lower(from.map_or(&[], |key| &key[..]));
        self.engine.scan(&start, &keys::prefix_upper(&[]), false, &mut |physical, _| {
            let Some(parts) = keys::split(physical) else {
                damaged = Some(Bytes::copy_from_slice(physical));
                return ControlFlow::Break(());
            };
            if sweep.visit(physical, &parts) {
                return ControlFlow::Continue(());
            }
            next = Some(keys::user_key(parts.stem));
            ControlFlow::Break(())
        })?;
        if let Some(physical) = damaged {
            return Err(damaged_key(&physical));
        }
        let removed = sweep.removals.len();
        if removed > 0 {
            let header = Header { collected: threshold, ..Header::read(&self.engine)? };
            let bytes = sweep.removals.iter().map(|(key, _)| key.len()).sum();
            self.engine.ingest(bytes, &mut std::iter::once(header.change()).chain(sweep.removals))?;
            self.engine.sync()?;
        }
        Ok(Collected { threshold, removed, next })
    }
}

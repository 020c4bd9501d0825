//! Open snapshots, and the thresholds below which old versions are collected.

use super::prefixes::Prefix;
use super::retention::Thresholds;
use crate::StoreError;
use clock::Timestamp;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub(super) struct Snapshots {
    open: Mutex<BTreeMap<Timestamp, usize>>,
    /// They only rise, and only under the lock of `open`.
    thresholds: RwLock<Arc<Thresholds>>,
    /// The highest of them: what is read at or above it is all there.
    highest: AtomicU64,
}

impl Snapshots {
    /// Below these, versions may be gone.
    pub fn thresholds(&self) -> Arc<Thresholds> {
        self.thresholds.read().clone()
    }

    /// As [`Snapshots::thresholds`], of all tables that are not kept apart.
    pub fn collected(&self) -> Timestamp {
        self.thresholds.read().common
    }

    /// At or above this, whatever is read is all there.
    pub fn highest(&self) -> Timestamp {
        Timestamp::from_u64(self.highest.load(Ordering::Acquire))
    }

    pub fn open(self: &Arc<Self>, ts: Timestamp) -> Result<SnapshotGuard, StoreError> {
        let mut open = self.open.lock();
        if ts < self.highest() {
            let oldest = self.thresholds.read().lowest();
            if ts < oldest {
                return Err(StoreError::Collected { asked: ts, oldest, key: None });
            }
        }
        *open.entry(ts).or_default() += 1;
        Ok(SnapshotGuard { ts, registry: self.clone() })
    }

    /// Raises thresholds: `raise` is told them and the oldest open snapshot, which none of them may pass.
    pub fn raise<R>(&self, raise: impl FnOnce(&Thresholds, Timestamp) -> (Thresholds, R)) -> R {
        let open = self.open.lock();
        let oldest = open.first_key_value().map_or(Timestamp::MAX, |(oldest, _)| *oldest);
        let before = self.thresholds();
        let (after, told) = raise(&before, oldest);
        self.highest.store(after.highest().as_u64(), Ordering::Release);
        *self.thresholds.write() = Arc::new(after);
        told
    }

    /// Raises the thresholds of some indexes, as far as open snapshots allow; gives how far.
    pub fn lift(&self, floor: Timestamp, indexes: &BTreeSet<Prefix>) -> Timestamp {
        self.raise(|before, oldest| {
            let (mut after, floor) = (before.clone(), floor.min(oldest));
            after.lift(floor, indexes);
            (after, floor)
        })
    }

    pub fn oldest(&self) -> Option<Timestamp> {
        self.open.lock().first_key_value().map(|(ts, _)| *ts)
    }
}

/// Keeps collection from passing a snapshot, until dropped.
#[must_use = "the snapshot is open only as long as the guard lives"]
pub struct SnapshotGuard {
    ts: Timestamp,
    registry: Arc<Snapshots>,
}

impl SnapshotGuard {
    /// The snapshot.
    pub fn timestamp(&self) -> Timestamp {
        self.ts
    }

    /// Moves the snapshot up.
    pub fn move_to(&mut self, ts: Timestamp) {
        if ts > self.ts {
            let mut open = self.registry.open.lock();
            release(&mut open, self.ts);
            *open.entry(ts).or_default() += 1;
            self.ts = ts;
        }
    }
}

fn release(open: &mut BTreeMap<Timestamp, usize>, ts: Timestamp) {
    if let Some(count) = open.get_mut(&ts) {
        *count -= 1;
        if *count == 0 {
            open.remove(&ts);
        }
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        release(&mut self.registry.open.lock(), self.ts);
    }
}

//! Open snapshots, and the threshold below which old versions are collected.

use crate::StoreError;
use clock::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Default)]
pub(super) struct Snapshots {
    open: Mutex<BTreeMap<Timestamp, usize>>,
    /// Only rises, and only under the lock of `open`.
    collected: AtomicU64,
}

impl Snapshots {
    /// Below this, versions may be gone.
    pub fn collected(&self) -> Timestamp {
        Timestamp::from_u64(self.collected.load(Ordering::Acquire))
    }

    pub fn open(self: &Arc<Self>, ts: Timestamp) -> Result<SnapshotGuard, StoreError> {
        let mut open = self.open.lock();
        let oldest = self.collected();
        if ts < oldest {
            return Err(StoreError::Collected { asked: ts, oldest });
        }
        *open.entry(ts).or_default() += 1;
        Ok(SnapshotGuard { ts, registry: self.clone() })
    }

    /// Raises the threshold as far as open snapshots allow; gives it.
    pub fn raise(&self, threshold: Timestamp) -> Timestamp {
        let open = self.open.lock();
        let allowed = open.first_key_value().map_or(threshold, |(oldest, _)| threshold.min(*oldest));
        let raised = allowed.max(self.collected());
        self.collected.store(raised.as_u64(), Ordering::Release);
        raised
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

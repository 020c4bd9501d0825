//! An engine in memory, for tests and the simulator: it forgets what was not synced when told to crash.

use super::{Change, Engine, Visit};
use crate::StoreError;
use bytes::Bytes;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ops::Bound;

/// A map in memory, with the steps that a crash would undo.
#[derive(Default)]
pub struct MemoryEngine {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    map: BTreeMap<Bytes, Bytes>,
    /// What each step since the last sync replaced, in order.
    undo: Vec<Vec<Change>>,
    full: bool,
    failing_syncs: u32,
}

impl MemoryEngine {
    /// An empty engine.
    pub fn new() -> Self {
        Self::default()
    }

    /// A crash: the last steps that were not synced are lost. `survive` of them reached the disk by themselves (a page
    /// cache may write early), the rest did not.
    pub fn crash(&self, survive: usize) {
        let mut state = self.state.write();
        let undo = std::mem::take(&mut state.undo);
        let keep = survive.min(undo.len());
        for step in undo.into_iter().skip(keep).rev() {
            for (key, old) in step {
                match old {
                    Some(value) => state.map.insert(key, value),
                    None => state.map.remove(&key),
                };
            }
        }
    }

    /// From now on the disk is full, or no longer.
    pub fn set_full(&self, full: bool) {
        self.state.write().full = full;
    }

    /// The next `n` syncs fail: what they should have made durable may be lost by a crash.
    pub fn fail_syncs(&self, n: u32) {
        self.state.write().failing_syncs = n;
    }

    /// Steps that a crash may lose now.
    pub fn unsynced_steps(&self) -> usize {
        self.state.read().undo.len()
    }
}

impl Engine for MemoryEngine {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.state.read().map.get(key).cloned())
    }

    fn scan(&self, from: &[u8], to: &[u8], reverse: bool, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if from >= to {
            return Ok(());
        }
        let state = self.state.read();
        let mut range = state.map.range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
        while let Some((key, value)) = if reverse { range.next_back() } else { range.next() } {
            if visit(key, value.clone()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn ingest(&self, _bytes: usize, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        let mut state = self.state.write();
        if state.full {
            return Err(StoreError::DiskFull);
        }
        let mut undo = Vec::new();
        for (key, value) in changes {
            let old = match value {
                Some(value) => state.map.insert(key.clone(), value),
                None => state.map.remove(&key),
            };
            debug_assert!(undo.last().is_none_or(|(last, _): &Change| *last < key), "ingested keys must ascend");
            undo.push((key, old));
        }
        state.undo.push(undo);
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        let mut state = self.state.write();
        if state.failing_syncs > 0 {
            state.failing_syncs -= 1;
            return Err(StoreError::Failed { doing: "syncing", cause: "the device reports an error".into() });
        }
        if state.full && !state.undo.is_empty() {
            return Err(StoreError::DiskFull);
        }
        state.undo.clear();
        Ok(())
    }

    fn disk_bytes(&self) -> u64 {
        self.state.read().map.iter().map(|(k, v)| (k.len() + v.len()) as u64).sum()
    }
}

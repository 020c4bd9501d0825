//! Bounds of what a transaction may write, and of what there is room for; and what is there.

use super::{MemoryKv, MemoryTransaction};
use crate::transaction::KvError;

impl MemoryKv {
    /// The same, whose transactions may each write no more than so many keys, as if there were no memory for more.
    pub fn within(self, writes_max: usize) -> Self {
        self.0.state.lock().writes_max = Some(writes_max);
        self
    }

    /// Number of keys that have a value now.
    pub fn live_keys(&self) -> usize {
        self.0.state.lock().rows.values().filter(|v| v.last().is_some_and(|(_, value)| value.is_some())).count()
    }

    /// What begins with these bytes is gone, at every time.
    pub fn forget(&self, prefix: [u8; 4]) {
        self.0.state.lock().rows.retain(|key, _| !key.starts_with(&prefix));
    }

    /// Number of transactions of sessions that have not ended.
    pub fn open_transactions(&self) -> usize {
        self.0.state.lock().sessions.len()
    }

    /// The same, which says that there is room for so many bytes more.
    pub fn with_room_for(self, bytes: u64) -> Self {
        self.0.state.lock().room_bytes = Some(bytes);
        self
    }
}

impl MemoryTransaction {
    /// # Errors
    /// Where the next write would be one too many.
    pub(super) fn refuse_more(&self) -> Result<(), KvError> {
        match self.kv.state.lock().writes_max {
            Some(limit) if self.writes.len() >= limit => {
                Err(KvError::OutOfMemory { bytes: self.writes.len(), limit, share: limit, others: 0 })
            }
            _ => Ok(()),
        }
    }
}

//! What is staged in the ranges that have a replica here: how much that is, and that it is looked at before its command comes, when a tick has the time.

use super::core::Core;
use protocol::txn::{Range, RangeId, TxnId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::{Engine, StoreError};

/// A range looks so often in a tick at some of what it has not looked at ([`protocol::txn::Range::look_ahead`]).
const LOOKS_PER_TICK: usize = 4;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct StagedHere {
    /// Ranges that may stage something: others cost a tick nothing.
    ranges: BTreeSet<RangeId>,
    /// Of all of them, at the last tick.
    bytes: Arc<AtomicU64>,
}

impl StagedHere {
    /// A range may stage something.
    pub fn note(&mut self, range: RangeId) {
        self.ranges.insert(range);
    }

    /// What all ranges staged at the last tick, bytes, for who does not hold the core.
    pub fn bytes(&self) -> &Arc<AtomicU64> {
        &self.bytes
    }
}

impl<E: Engine> Core<E> {
    /// Bytes of parts that are here or announced, in all ranges.
    pub(super) fn staged_here(&self) -> u64 {
        self.staging().map(Range::staged_bytes).sum()
    }

    /// What all transactions but one have staged takes in memory, about, bytes.
    pub(super) fn staged_memory_beside(&self, txn: TxnId) -> u64 {
        self.staging().map(|range| range.staged_memory_bytes(txn)).sum()
    }

    fn staging(&self) -> impl Iterator<Item = &Range> {
        self.staged.ranges.iter().filter_map(|range| self.shards.get(range)).map(|shard| &shard.range)
    }

    pub(super) fn tick_staged(&mut self) -> Result<(), StoreError> {
        let shards = &self.shards;
        self.staged.ranges.retain(|range| shards.get(range).is_some_and(|shard| shard.range.is_staging()));
        self.staged.bytes.store(self.staged_here(), Relaxed);
        for range in self.staged.ranges.clone() {
            // What is installed is of another time.
            let installs = self.is_installing(range);
            let Some(shard) = self.shards.get_mut(&range).filter(|_| !installs) else { continue };
            for _ in 0..LOOKS_PER_TICK {
                if !shard.range.look_ahead(&self.store)? {
                    break;
                }
            }
        }
        Ok(())
    }
}

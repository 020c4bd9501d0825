//! A checksum of a range's state: replicas that applied the same place hold the same (design §9.5).

use super::core::Core;
use super::member::Member;
use crate::versions::bounded;
use bytes::Bytes;
use protocol::txn::RangeId;
use store::{Engine, StoreError};

/// Keys looked at together.
const KEYS_MAX: usize = 1024;

struct Sum(u64);

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        for byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

impl<E: Engine> Core<E> {
    fn digest(&self, range: RangeId) -> Result<(u64, u64), StoreError> {
        let shard = self.shard(range)?;
        let mut sum = Sum(0xcbf2_9ce4_8422_2325);
        sum.add(&shard.range.encode());
        let mut span = bounded(shard.range.span());
        loop {
            let found = self.store.0.histories_in(&span, KEYS_MAX, usize::MAX)?;
            for (key, versions) in &found.keys {
                // What no snapshot that can be read sees may be forgotten by now: each replica forgets by itself.
                let threshold = shard.range.collected_of(key);
                let hidden = versions.partition_point(|version| version.ts <= threshold);
                let seen = hidden.checked_sub(1).filter(|at| versions[*at].value.is_some()).unwrap_or(hidden);
                let versions = &versions[seen..];
                // A deletion of what was not there is kept for as long as it is the newest, or not flushed: each replica flushes by itself.
                let says = |at: usize| versions[at].value.is_some() || at > 0 && versions[at - 1].value.is_some();
                if (0..versions.len()).any(says) {
                    sum.add(key);
                }
                for version in (0..versions.len()).filter(|at| says(*at)).map(|at| &versions[at]) {
                    sum.add(&version.ts.as_u64().to_le_bytes());
                    sum.add(version.value.as_deref().unwrap_or(b"\0deleted"));
                }
            }
            match found.keys.last() {
                Some((last, _)) if !found.whole => span.start = crate::transaction::after(last),
                _ => return Ok((shard.applied, sum.0)),
            }
        }
    }
}

impl<E: Engine> Member<E> {
    /// The place in its log that the replica of a range here has applied, and a checksum of its state: the state machine and all versions that a
    /// snapshot sees that can be read. Equal on all replicas at equal places. It reads the whole range.
    ///
    /// # Errors
    /// There is no replica here, or the store failed.
    pub fn digest(&self, range: RangeId) -> Result<(u64, u64), StoreError> {
        self.look().digest(range)
    }

    /// The value that the replica of a range here holds of a key, whoever leads: to look at replicas, not for transactions.
    ///
    /// # Errors
    /// The store failed.
    pub fn stored(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let newest = self.versions().version_at(key, clock::Timestamp::MAX)?;
        Ok(newest.and_then(|version| version.value))
    }
}

//! Many keys of a range in one request: what a transaction would have asked for one by one.
//!
//! Invariants:
//! 1. Each key is answered as if it had been asked for alone (`serve`), at one moment; the first that has to wait ends the answer, or keeps all of it waiting
//!    (a read that meets what is in flight). What is not answered is asked for again.
//! 2. Locks are given without a wait, in the order of the request: whoever asks for many stands in no queue.
//! 3. Whoever leads the range himself asks in the same way ([`Core::lock_here`]): one look for range and lease, one hold of the core, for many keys. Of what cannot be had so nothing is locked.

use super::core::Core;
use super::rows::index_of;
use super::serve::{Looked, What};
use bytes::Bytes;
use clock::Timestamp;
use protocol::door::{Answer, LockedKey, Look, Returned};
use protocol::txn::{LockMode, LockReply, LockWait, RangeId, TxnId, VersionStore};
use store::{Engine, StoreError};

/// Keys of one request that are looked at, at most.
const MANY_KEYS_MAX: usize = 1024;
/// Keys that are locked here in one hold of the core: others wait for it meanwhile.
const KEYS_PER_HOLD: usize = 256;

impl<E: Engine> Core<E> {
    /// [`protocol::door::Request::GetMany`].
    pub fn get_many(
        &mut self,
        range: RangeId,
        end: Timestamp,
        keys: &[Bytes],
        look: &Look,
    ) -> Result<Looked, StoreError> {
        let keys = &keys[..keys.len().min(MANY_KEYS_MAX)];
        let Some(limit) = self.covered(range, end, look) else {
            return Ok(Looked::Answer(Answer::TryLater));
        };
        let shard = self.shard(range)?;
        for key in keys {
            if let Some(instead) = self.instead_of_a_value(shard, key, look, limit) {
                return Ok(instead);
            }
        }
        self.admit(range, look, limit, What::GetMany { keys: keys.to_vec() })
    }

    /// [`protocol::door::Request::LockMany`].
    pub fn lock_many(
        &mut self,
        range: RangeId,
        txn: TxnId,
        (keys, mode): (&[Bytes], LockMode),
        newer_than: Option<Timestamp>,
        returned: Returned,
    ) -> Result<Looked, StoreError> {
        let span = self.shard(range)?.range.span();
        if let Some(key) = keys.iter().find(|key| !span.contains(key)) {
            return Ok(Looked::Answer(self.moved(key)));
        }
        if txn.node != self.me().0 && !self.returned(txn, returned) {
            return Ok(Looked::Answer(Answer::TryLater));
        }
        self.counters.lock_requests.one();
        let (mut wakeups, mut known) = (Vec::new(), Vec::new());
        // Whoever is to see what refers to it asks for it alone.
        let deletes = mode == LockMode::Update;
        for key in keys.iter().take(MANY_KEYS_MAX) {
            let reply = self.locks.request(txn, key, mode, LockWait::NoWait, &mut wakeups);
            // Whoever holds it is to see the newest version: see `locked`.
            let waits = !matches!(reply, LockReply::Granted { .. })
                || self.is_undecided(self.shard(range)?, key, deletes)
                || deletes && newer_than.is_some_and(|snapshot| self.is_referred_to_since(key, snapshot));
            if waits {
                break;
            }
            let newer = newer_than.map_or(Ok(None), |snapshot| self.store.0.newest_above(key, snapshot))?;
            known.push(LockedKey { newer, present: self.store.is_present(key)? });
        }
        self.woken(&wakeups);
        if let Some(owner) = self.lock_owners.get_mut(&txn) {
            owner.heard = self.ticks;
        }
        Ok(Looked::Answer(Answer::LockedMany { keys: known, held: self.locks.held(txn) as u64 }))
    }

    /// Locks keys of one index for a transaction of this node, in ascending order: gives how many, from the first on. They are of one range, which is led here; nobody has or awaits one, is about to write it, or
    /// has written it above the snapshot, nor, if `sees_references`, come to refer to it since.
    pub fn lock_here(
        &mut self,
        txn: TxnId,
        keys: &[&[u8]],
        mode: LockMode,
        snapshot: Timestamp,
        sees_references: bool,
    ) -> Result<usize, StoreError> {
        let Some(first) = keys.first() else { return Ok(0) };
        let range = self.routes.of_key(first);
        if self.led_until(range).is_none() {
            return Ok(0);
        }
        let (shard, deletes) = (self.shard(range)?, mode == LockMode::Update);
        let may_be_newer = self.store.0.may_be_newer_beside(first, snapshot);
        let mut clear = 0;
        for key in keys.iter().take(KEYS_PER_HOLD) {
            let met = index_of(key) != index_of(first)
                || !shard.range.span().contains(key)
                || self.is_undecided(shard, key, deletes)
                || sees_references && deletes && self.is_referred_to_since(key, snapshot)
                || may_be_newer && self.store.0.newest_above(key, snapshot)?.is_some();
            if met {
                break;
            }
            clear += 1;
        }
        if clear == 0 {
            return Ok(0);
        }
        self.counters.lock_requests.one();
        let mut wakeups = Vec::new();
        let granted = self.locks.request_all(txn, &keys[..clear], mode, &mut wakeups);
        self.woken(&wakeups);
        Ok(granted)
    }
}

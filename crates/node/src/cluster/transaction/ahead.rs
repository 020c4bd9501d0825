//! What is asked for before anybody waits for it: the keys that a statement is about to read or lock, those of a range in one message.
//!
//! # Problem
//! A statement that reads or locks rows one after the other pays a round trip for each where they are led elsewhere.
//!
//! # Idea
//! Whoever knows which keys come next says so. Those to be read are asked for at once, the ones of a range together, and the read of one takes the answer that
//! is there or on its way. Those to be locked are asked for when the first of them is, as many of its range as follow it.
//!
//! # Invariants
//! 1. Nothing depends on it: what was not said, is too old, or failed is asked for as if nothing had been said.
//! 2. An answer counts only for a read that would ask the same: at the same snapshot, uncertain up to the same limit. What a snapshot sees of a key does not
//!    change, so it does not matter when it was asked; and what was acknowledged before the transaction began was there by then.
//! 3. Only what a read takes counts as read: it is remembered there, to be certified, as if the read had asked itself.
//! 4. Locks are taken in the order in which they were named, up to the first that somebody else has: that one is waited for before any behind it is asked for.
//!    So nobody waits for two keys at a time, and two statements that lock the same rows in one order meet in no circle.
//! 5. Of a lock that was taken so it is known what a grant says: whether the key has a version above the snapshot of then. It is held, so the answer stays,
//!    and is held against the snapshot of now. When locks are given back, or a statement begins, nothing is known of any.
//! 6. At most [`KEYS_MAX`] keys are known, or asked for, at a time, and of as many more it is known that they are to be locked. Of values, [`FOUND_BYTES_MAX`] and one answer.
//!    Where there are more, those that were read go first: what a statement is about to read it does not lose to what it reads after that.
//!
//! # Caveats
//! What is led here is not asked for ahead: the way there is short. A lock that was taken ahead stays until the transaction ends, though the statement may fail before
//! it comes to its row. Of a transaction that waits for a write in flight to a key all that was asked together waits.

use super::gaps::Gaps;
use super::spans_ahead::SpansAhead;
use super::{Answer, NodeId, Op, Request, Transaction, TxnError};
use crate::cluster::core::Core;
use crate::transaction::draft::Keep;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::door::{Found, LockedKey, Look, Returned, VERSION_OF_MANY_KEYS};
use protocol::txn::{LockMode, RangeId};
use std::collections::{BTreeMap, VecDeque};
use std::task::{Poll, Waker};
use store::Engine;

/// Keys that are known, or asked for, at most.
const KEYS_MAX: usize = 1024;
/// Bytes of the keys of one message, at most: a few long keys are as much as many short ones.
const KEY_BYTES_MAX: usize = 1 << 20;
/// Bytes of values that are known, at most, but for those of the last answer.
const FOUND_BYTES_MAX: usize = 8 << 20;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    look: Option<Look>,
    /// Calls on their way, with their keys in order.
    open: BTreeMap<u64, Vec<Bytes>>,
    asked: BTreeMap<Bytes, u64>,
    found: BTreeMap<Bytes, Known>,
    found_bytes: usize,
    pub(super) spans: SpansAhead,
    pub(super) gaps: Gaps,
    /// To be locked, in this order, as strongly as this.
    wanted: VecDeque<Bytes>,
    mode: LockMode,
    /// Those of them that a call on its way asks for.
    locking: Option<Vec<Bytes>>,
    locked: BTreeMap<Bytes, Held>,
}

/// What is known of a key.
#[derive(Clone, Debug)]
struct Known {
    by: NodeId,
    found: Found,
    /// It was read.
    taken: bool,
}

impl Known {
    fn bytes(&self) -> usize {
        self.found.version.as_ref().and_then(|(_, value)| value.as_ref()).map_or(0, Bytes::len)
    }
}

/// A lock that is held elsewhere.
#[derive(Clone, Copy, Debug)]
struct Held {
    mode: LockMode,
    /// The snapshot that versions were compared with; `None`: with none.
    since: Option<Timestamp>,
    known: LockedKey,
}

impl Held {
    /// What a request for the lock would say of versions above a snapshot; `None`: that has to be asked.
    fn newer(&self, mode: LockMode, newer_than: Option<Timestamp>) -> Option<Option<Timestamp>> {
        let known = self.mode >= mode && self.since.is_some() >= newer_than.is_some();
        known.then(|| self.known.newer.filter(|at| newer_than.is_some_and(|snapshot| *at > snapshot)))
    }
}

/// What a read took, and who answered.
pub(super) type Taken = Option<(NodeId, Found)>;

impl Ahead {
    fn knows(&self, key: &[u8]) -> bool {
        self.asked.contains_key(key) || self.found.contains_key(key)
    }

    fn len(&self) -> usize {
        self.asked.len() + self.found.len()
    }

    /// Forgets what was to be read.
    fn clear_reads<E: Engine>(&mut self, core: &mut Core<E>) {
        self.clear_keys(core);
        self.spans.clear(core);
        self.look = None;
    }

    /// The same, and where nothing is.
    fn clear<E: Engine>(&mut self, core: &mut Core<E>) {
        self.clear_reads(core);
        self.gaps.clear(core);
    }

    fn clear_keys<E: Engine>(&mut self, core: &mut Core<E>) {
        std::mem::take(&mut self.open).into_keys().for_each(|call| core.cancel(call));
        self.asked.clear();
        self.found.clear();
        self.found_bytes = 0;
    }

    /// Forgets what was read.
    fn drop_taken(&mut self) {
        self.found.retain(|_, known| !known.taken);
        self.found_bytes = self.found.values().map(Known::bytes).sum();
    }

    /// Is about to ask for so many keys with this look: what is known by another one goes, and what there is no room for.
    pub(super) fn prepare<E: Engine>(&mut self, look: Look, keys: usize, core: &mut Core<E>) {
        if self.look != Some(look) {
            self.clear_reads(core);
        }
        if self.len() + keys > KEYS_MAX {
            self.drop_taken();
        }
        if self.len() + keys > KEYS_MAX {
            self.clear_keys(core);
        }
        self.look = Some(look);
    }

    /// Whether what is known is so for whoever looks like this.
    pub(super) fn looks(&self, look: Look) -> bool {
        self.look == Some(look)
    }

    fn answered(&mut self, call: u64, result: Result<(NodeId, Answer), TxnError>) {
        let keys = self.open.remove(&call).unwrap_or_default();
        for key in &keys {
            self.asked.remove(key);
        }
        let (by, values) = match result {
            Ok((by, Answer::Value { version, newer })) => (by, vec![Found { version, newer }]),
            Ok((by, Answer::Values(values))) => (by, values),
            // Whoever wants one of them asks, and hears why not.
            _ => return,
        };
        let known = values.into_iter().map(|found| Known { by, found, taken: false });
        let new: Vec<(Bytes, Known)> = keys.into_iter().zip(known).collect();
        let more: usize = new.iter().map(|(_, known)| known.bytes()).sum();
        if self.found_bytes + more > FOUND_BYTES_MAX {
            self.drop_taken();
        }
        if self.found_bytes + more > FOUND_BYTES_MAX {
            // Whoever wants one of them asks for it.
            self.found.clear();
            self.found_bytes = 0;
        }
        self.found_bytes += more;
        self.found.extend(new);
    }
}

impl<E: Engine> Transaction<E> {
    /// These keys are about to be read: see the module.
    ///
    /// # Errors
    /// The store failed.
    pub fn read_ahead(&mut self, now: &Reading, keys: &[Bytes], waker: &Waker) -> Result<(), TxnError> {
        let look = self.plain_look();
        // A snapshot that is not placed yet is nobody's to ask by: it may lie ahead of true time.
        if self.ended || !self.is_placed || self.refreshing.is_some() || keys.is_empty() {
            return Ok(());
        }
        let ahead = self.ahead.get_or_insert_default();
        let mut core = self.member.look();
        ahead.prepare(look, keys.len(), &mut core);
        let mut parts: BTreeMap<RangeId, Vec<Vec<Bytes>>> = BTreeMap::new();
        let many = core.in_force(VERSION_OF_MANY_KEYS);
        let mut bytes = 0;
        for key in keys.iter().take(KEYS_MAX) {
            bytes += key.len();
            if ahead.knows(key) || ahead.gaps.has(Some(look), key).is_some() || self.draft.buffer.get(key).is_some() {
                continue;
            }
            let range = core.routes.of_key(key);
            if bytes > KEY_BYTES_MAX || core.led_until(range).is_some() {
                continue;
            }
            let groups = parts.entry(range).or_default();
            match groups.last_mut().filter(|_| many) {
                Some(group) => group.push(key.clone()),
                None => groups.push(vec![key.clone()]),
            }
        }
        if parts.is_empty() {
            return Ok(());
        }
        for (range, groups) in parts {
            for keys in groups {
                let request = match keys.as_slice() {
                    [key] => Request::Get { key: key.clone(), look },
                    keys => Request::GetMany { keys: keys.to_vec(), look },
                };
                let call = core.call_for(range, request, waker);
                core.prepare_call(call, self.hasty, &self.caught_up);
                ahead.asked.extend(keys.iter().map(|key| (key.clone(), call)));
                ahead.open.insert(call, keys);
            }
        }
        self.member.touch();
        core.run(now).map_err(TxnError::from)
    }

    /// What was asked ahead for a read, if it was.
    pub(super) fn take_ahead(&mut self, key: &[u8], waker: &Waker) -> Poll<Taken> {
        let look = self.plain_look();
        let any = self.member.sabotage().ahead_at_any_snapshot();
        let gaps = self.ahead.as_ref().map(|ahead| &ahead.gaps);
        if let Some(by) = gaps.and_then(|gaps| gaps.has((!any).then_some(look), key)) {
            return Poll::Ready(Some((by, Found { version: None, newer: None })));
        }
        let Some(ahead) = self.ahead.as_mut().filter(|ahead| any || ahead.look == Some(look)) else {
            return Poll::Ready(None);
        };
        if let Some(call) = ahead.asked.get(key).copied() {
            let Some(result) = self.member.look().poll_call_at(call, waker) else { return Poll::Pending };
            ahead.answered(call, result);
        }
        let is_of_this_look = ahead.look == Some(look);
        let told = ahead.found.get_mut(key).map(|known| {
            known.taken = true;
            match is_of_this_look {
                true => (known.by, known.found.clone()),
                // Where the rule is broken on purpose: an old answer would be uncertain for ever.
                false => (known.by, Found { newer: None, ..known.found.clone() }),
            }
        });
        Poll::Ready(told)
    }

    /// These keys are about to be locked, in this order and mode, by [`Transaction::lock`] or [`Transaction::hold`]: see the module. Behind those that were said before, in
    /// one mode; what is to be locked in another one is not known any more.
    pub fn lock_ahead(&mut self, keys: &[Bytes], mode: LockMode) {
        if keys.is_empty() || self.ended {
            return;
        }
        let ahead = self.ahead.get_or_insert_default();
        let Ahead { wanted, locked, .. } = &**ahead;
        let is_said = |key: &Bytes| locked.get(key).is_some_and(|held| held.mode >= mode) || wanted.contains(key);
        // Those of one row among those of many: they were said before.
        if ahead.mode == mode && keys.iter().all(is_said) {
            return;
        }
        if ahead.mode != mode || ahead.wanted.len() + keys.len() > KEYS_MAX {
            ahead.wanted.clear();
        }
        ahead.wanted.extend(keys.iter().take(KEYS_MAX).cloned());
        ahead.mode = mode;
    }

    /// The lock on a key, if it is held, or is now, together with those that were said to follow: a version of the key above the snapshot, if it has one. `None`: the
    /// lock is to be asked for by itself.
    pub(super) fn take_lock_ahead(
        &mut self,
        now: &Reading,
        key: &[u8],
        mode: LockMode,
        newer_than: Option<Timestamp>,
        waker: &Waker,
    ) -> Op<Option<Option<Timestamp>>> {
        let Some(ahead) = self.ahead.as_mut() else { return Poll::Ready(Ok(None)) };
        if ahead.locking.is_none() && self.call.is_none() {
            if let Some(newer) = ahead.locked.get(key).and_then(|held| held.newer(mode, newer_than)) {
                return Poll::Ready(Ok(Some(newer)));
            }
            let Some(place) = ahead.wanted.iter().position(|wanted| *wanted == key).filter(|_| ahead.mode == mode)
            else {
                return Poll::Ready(Ok(None));
            };
            ahead.wanted.drain(..place);
            let core = self.member.look();
            let range = core.routes.of_key(key);
            let far = core.led_until(range).is_none() && core.in_force(VERSION_OF_MANY_KEYS);
            let mut bytes = 0;
            let together = ahead.wanted.iter().take_while(|key| {
                bytes += key.len();
                bytes <= KEY_BYTES_MAX && core.routes.of_key(key) == range
            });
            let together: Vec<Bytes> = together.cloned().collect();
            // One alone is asked for as well by itself, unless it is to be known whether it has a value.
            if !far || together.len() < 2 && newer_than.is_some() {
                return Poll::Ready(Ok(None));
            }
            if ahead.locked.len() + together.len() > KEYS_MAX {
                ahead.locked.clear();
            }
            ahead.locking = Some(together);
        }
        let Some(keys) = self.ahead.as_ref().and_then(|ahead| ahead.locking.clone()) else {
            return Poll::Ready(Ok(None));
        };
        let txn = self.id_or_new();
        self.locks_asked += keys.len();
        let first = keys.first().cloned().unwrap_or_default();
        let request = {
            let keys = keys.clone();
            move || Request::LockMany { txn, keys, mode, newer_than, returned: Returned::default() }
        };
        let answer = match self.ask(now, |routes| routes.of_key(&first), request, waker) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(answer) => answer,
        };
        let Some(ahead) = self.ahead.as_mut() else { return Poll::Ready(Ok(None)) };
        ahead.locking = None;
        match answer? {
            Answer::LockedMany { keys: known, .. } => {
                ahead.wanted.drain(..known.len().min(ahead.wanted.len()));
                let held = |known| Held { mode, since: newer_than, known };
                ahead.locked.extend(keys.into_iter().zip(known).map(|(key, known)| (key, held(known))));
            }
            // Bounds were learned, or they are asked for one by one.
            _ => ahead.wanted.clear(),
        }
        Poll::Ready(Ok(ahead.locked.get(key).and_then(|held| held.newer(mode, newer_than))))
    }

    /// How many of these keys, from the first on, are locked elsewhere, and have no version above the snapshot.
    pub(super) fn locked_ahead(&self, keys: &[&[u8]], mode: LockMode) -> usize {
        let Some(ahead) = &self.ahead else { return 0 };
        let held = |key: &&&[u8]| {
            ahead
                .locked
                .get(**key)
                .and_then(|held| held.newer(mode, Some(self.snapshot)))
                .is_some_and(|it| it.is_none())
        };
        keys.iter().take_while(held).count()
    }

    /// A lock was granted by itself.
    pub(super) fn remember_lock(
        &mut self,
        key: &[u8],
        mode: LockMode,
        since: Option<Timestamp>,
        newer: Option<Timestamp>,
    ) {
        // Of one that was given here, asking again costs nothing.
        if self.answered_by == self.member.node() {
            return;
        }
        let ahead = self.ahead.get_or_insert_default();
        if ahead.locked.len() >= KEYS_MAX {
            ahead.locked.clear();
        }
        let known = LockedKey { newer, present: false };
        ahead.locked.insert(Bytes::copy_from_slice(key), Held { mode, since, known });
    }

    /// Whether a key that was held ahead had a value when it was.
    pub(super) fn is_known_present(&self, key: &[u8]) -> bool {
        let known = self.ahead.as_ref().and_then(|ahead| ahead.locked.get(key));
        known.is_some_and(|held| held.known.present)
    }

    /// How every read looks that waits for what is in flight.
    pub(super) fn plain_look(&self) -> Look {
        self.look_of(Keep::ByLevel)
    }

    /// Nothing is known of locks any more (invariant 5).
    pub(super) fn forget_locks_ahead(&mut self) {
        if let Some(ahead) = self.ahead.as_mut() {
            ahead.wanted.clear();
            ahead.locked.clear();
            ahead.locking = None;
        }
    }

    /// A statement begins: nothing is known of locks any more (invariant 5), and what was read ahead was another statement's.
    pub(super) fn forget_ahead(&mut self) {
        self.forget_locks_ahead();
        if let Some(ahead) = self.ahead.as_mut() {
            ahead.clear(&mut self.member.look());
        }
    }

    /// A request for locks is not waited for any more.
    pub(super) fn stop_locking_ahead(&mut self) {
        if let Some(ahead) = self.ahead.as_mut() {
            ahead.wanted.clear();
            ahead.locking = None;
        }
    }

    /// Nothing that is on its way is wanted any more.
    pub(super) fn end_ahead(&mut self) {
        if let Some(mut ahead) = self.ahead.take() {
            ahead.clear(&mut self.member.look());
        }
    }
}

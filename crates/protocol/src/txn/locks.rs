//! Advisory row locks: hot rows queue instead of aborting each other.
//!
//! # Problem
//! With certification alone, of `n` transactions that update one row at a time one commits and the others run again. And a client
//! that locks a row (`FOR UPDATE`, `FOR KEY SHARE`) wants it to stay as it is, without a conflict at the end.
//!
//! # Idea
//! A statement that is about to write existing rows takes a lock first, in memory, on the node that leads the range, and
//! only then reads the newest version. Certification stays the truth: losing this table (a crash, a new leader) loses no
//! correctness, only the queue.
//!
//! A lock has one of four modes ([`LockMode`]), PostgreSQL's, from weak to strong; who may hold a key beside whom:
//!
//! | | key share | share | no key update | update |
//! | --- | --- | --- | --- | --- |
//! | **key share** | yes | yes | yes | |
//! | **share** | yes | yes | | |
//! | **no key update** | yes | | | |
//! | **update** | | | | |
//!
//! # Invariants
//! 1. The holders of a key may hold it beside each other. Each has one mode, the strongest it asked for: what a mode excludes a
//!    stronger one excludes, too.
//! 2. Who asks is granted the key if it may hold it beside all holders and nobody whom it would have to wait for is in front of it in the queue;
//!    else it goes to the end of the queue. Only who holds the key already, and wants a stronger mode, goes to the front: those in the queue
//!    may be waiting for it.
//! 3. A transaction waits for at most one key: for its holders, and for those in front in the queue, beside whom it cannot hold it. A deadlock
//!    is a cycle of these edges. Edges appear only when somebody begins to wait, from it or to it; one who is granted a key has none any more. So it is
//!    enough to look for cycles through a transaction when it begins to wait.
//!    A session may hold locks under several transactions (a change of the catalog: its guard, and its steps), and waits for one thing at a time. Whoever waits for one of them waits for what
//!    the session waits for.
//! 4. The victim is the youngest of the cycle (the greatest [`TxnId`]): every node and every run picks the same.
//! 5. Every change that lets a waiter go on is reported as a [`Wakeup`].
//! 6. A key has an entry in the table, or stands in a run of its only holder (see `runs`), or is free. Who asks for one in another's run gives it an entry.
//! 7. [`LockTable::release_since`] gives back exactly what was taken since the [`LockTable::mark`]: a lock that was made stronger since has its
//!    old mode again.
//!
//! # Caveats
//! A session may wait for another one elsewhere (advisory locks, held above). A circle that goes through there is not seen here: who
//! waits there asks [`LockTable::waiters`] and [`LockTable::in_the_way_of`].

mod together;

use super::TxnId;
use super::lock_mode::LockMode;
use super::lock_sessions::Waiting;
use super::lock_shown::{LockOwner, ShownLock};
use super::runs::{RUN_MIN, Runs};
use bytes::Bytes;
use smallvec::{SmallVec, smallvec};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

/// A key, inside the map's node while it is short: who locks a million rows allocates nothing for each.
type Key = SmallVec<[u8; 24]>;

/// A transaction holds at most this many row locks; beyond it certification alone protects its rows.
pub const MAX_LOCKS_PER_TXN: usize = 1 << 20;

/// Who holds at least so many locks, and half of all that is locked, gives them back in one pass instead of looking each up.
const TOGETHER_MIN: usize = 1024;

/// What to do when another transaction holds the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LockWait {
    /// Queue.
    #[default]
    Wait,
    /// Give up at once.
    NoWait,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockReply {
    /// It is held now (or was before).
    Granted {
        /// Whether the transaction had to queue for it since its first request.
        waited: bool,
    },
    /// Queued: ask again after the wakeup.
    Queued,
    /// Held by another transaction, and the request did not want to wait.
    Busy,
    /// The transaction is the victim of a deadlock: it must end. The cycle, beginning with the victim.
    Deadlock(Vec<Waiter>),
}

/// One that waits, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// The transaction.
    pub txn: TxnId,
    /// The session that it is of, if that was said ([`LockTable::belongs`]).
    pub session: Option<u64>,
    /// The key.
    pub key: Bytes,
    /// The mode that it wants.
    pub mode: LockMode,
}

/// Somebody may go on: ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup(pub TxnId);

/// A transaction at a key.
#[derive(Clone, Copy, Debug)]
struct Claim {
    txn: TxnId,
    mode: LockMode,
}

impl Claim {
    fn excludes(&self, other: &Claim) -> bool {
        self.txn != other.txn && self.mode.excludes(other.mode)
    }
}

#[derive(Debug, Default)]
struct Queue {
    /// Mostly one.
    holders: SmallVec<[Claim; 1]>,
    waiting: VecDeque<Claim>,
}

impl Queue {
    fn held_by(&self, txn: TxnId) -> Option<LockMode> {
        self.holders.iter().find(|claim| claim.txn == txn).map(|claim| claim.mode)
    }

    /// Grants a claim; gives the mode that its transaction had before.
    fn grant(&mut self, claim: Claim) -> Option<LockMode> {
        match self.holders.iter_mut().find(|held| held.txn == claim.txn) {
            Some(held) => {
                let before = held.mode;
                held.mode = before.max(claim.mode);
                Some(before)
            }
            None => {
                self.holders.push(claim);
                None
            }
        }
    }

    /// Whom a claim waits for that stands, or would stand, behind the first `ahead` of those who wait.
    fn in_the_way(&self, claim: Claim, ahead: usize) -> impl Iterator<Item = TxnId> + '_ {
        let others = self.holders.iter().chain(self.waiting.iter().take(ahead));
        others.filter(move |other| other.excludes(&claim)).map(|other| other.txn)
    }
}

/// The locks of one node.
#[derive(Debug)]
pub struct LockTable {
    keys: BTreeMap<Key, Queue>,
    owners: BTreeMap<TxnId, Owner>,
    /// Under which transaction a session waits.
    waiting: Waiting,
    /// Of those who take very many.
    runs: Runs,
    /// [`RUN_MIN`], but for tests.
    run_min: usize,
}

impl Default for LockTable {
    fn default() -> Self {
        let (keys, owners, waiting) = Default::default();
        LockTable { keys, owners, waiting, runs: Runs::default(), run_min: RUN_MIN }
    }
}

#[derive(Debug, Default)]
struct Owner {
    /// What was taken one by one, in order, with the mode that was held before.
    taken: Vec<(Key, Option<LockMode>)>,
    /// So many of the last ones ascend.
    ascending: usize,
    waits_for: Option<Key>,
    waited: bool,
    victim_of: Option<Vec<Waiter>>,
    session: Option<u64>,
    lasting: bool,
}

impl Owner {
    /// Whether a lock that nobody holds stands in a run, from now on.
    fn goes_on_in_a_run(&mut self, runs: &mut Runs, claim: Claim, key: &[u8], run_min: usize) -> bool {
        let taken = self.taken.len();
        if self.ascending >= run_min && runs.push(claim.txn, taken, key, claim.mode) {
            return true;
        }
        let ascends = self.taken.last().is_some_and(|(last, _)| last[..] < *key);
        self.ascending = if ascends { self.ascending + 1 } else { 0 };
        self.ascending >= run_min && runs.begin(claim.txn, taken, key, claim.mode)
    }
}

impl LockTable {
    /// Asks for the lock on a key. After [`LockReply::Queued`], the same request again says whether it came.
    pub fn request(
        &mut self,
        txn: TxnId,
        key: &[u8],
        mode: LockMode,
        wait: LockWait,
        wakeups: &mut Vec<Wakeup>,
    ) -> LockReply {
        if let Some(owner) = self.owners.get_mut(&txn) {
            if let Some(cycle) = owner.victim_of.take() {
                self.cancel(txn, wakeups);
                return LockReply::Deadlock(cycle);
            }
            if owner.waits_for.is_some() {
                return LockReply::Queued;
            }
            // Who locks very many rows alone: nobody has this key, and nothing need be looked for.
            let is_last = self.keys.last_key_value().is_none_or(|(last, _)| last[..] < *key);
            if is_last && self.runs.go_on(txn, owner.taken.len(), key, mode) {
                return LockReply::Granted { waited: false };
            }
        }
        let claim = Claim { txn, mode };
        let mut place = match self.keys.entry(Key::from_slice(key)) {
            Entry::Occupied(place) => place,
            Entry::Vacant(place) => match self.runs.holder(key) {
                Some((holder, held)) if holder == txn && held >= mode => {
                    let owner = self.owners.entry(txn).or_default();
                    return LockReply::Granted { waited: std::mem::take(&mut owner.waited) };
                }
                Some((holder, held)) => {
                    self.runs.meet(holder, key);
                    let claim = Claim { txn: holder, mode: held };
                    place.insert(Queue { holders: smallvec![claim], waiting: VecDeque::new() });
                    return self.request(txn, key, mode, wait, wakeups);
                }
                None => {
                    let owner = self.owners.entry(txn).or_default();
                    if !owner.goes_on_in_a_run(&mut self.runs, claim, key, self.run_min) {
                        place.insert(Queue { holders: smallvec![claim], waiting: VecDeque::new() });
                        owner.taken.push((Key::from_slice(key), None));
                    }
                    return LockReply::Granted { waited: false };
                }
            },
        };
        let queue = place.get_mut();
        let held = queue.held_by(txn);
        if held.is_some_and(|held| held >= mode) {
            let owner = self.owners.entry(txn).or_default();
            return LockReply::Granted { waited: std::mem::take(&mut owner.waited) };
        }
        let ahead = if held.is_some() { 0 } else { queue.waiting.len() };
        if queue.in_the_way(claim, ahead).next().is_none() {
            queue.grant(claim);
            self.owners.entry(txn).or_default().taken.push((Key::from_slice(key), held));
            return LockReply::Granted { waited: false };
        }
        if wait == LockWait::NoWait {
            return LockReply::Busy;
        }
        queue.waiting.insert(ahead, claim);
        let owner = self.owners.entry(txn).or_default();
        owner.waits_for = Some(Key::from_slice(key));
        self.waiting.begins(owner.session, txn);
        self.settle_deadlocks(txn, wakeups)
    }

    /// Says of which session a transaction is; once it has asked for a lock, until it ends.
    pub fn belongs(&mut self, txn: TxnId, session: u64) {
        let owner = self.owners.entry(txn).or_default();
        owner.session = Some(session);
        if owner.waits_for.is_some() {
            self.waiting.begins(owner.session, txn);
        }
    }

    /// As [`LockTable::belongs`], of what is no transaction: a lock that a session keeps over its transactions.
    pub fn lasts(&mut self, txn: TxnId, session: u64) {
        self.belongs(txn, session);
        self.owners.entry(txn).or_default().lasting = true;
    }

    /// Of which session a transaction is, if that was said.
    pub fn session_of(&self, txn: TxnId) -> Option<u64> {
        self.owners.get(&txn).and_then(|owner| owner.session)
    }

    /// All that wait; not those that are about to end as victims.
    pub fn waiters(&self) -> impl Iterator<Item = Waiter> + '_ {
        self.owners.keys().filter_map(|txn| self.waiter(*txn))
    }

    /// Whom a transaction waits for, with their sessions.
    pub fn in_the_way_of(&self, txn: TxnId) -> Vec<(TxnId, Option<u64>)> {
        self.waits_for(txn).into_iter().map(|txn| (txn, self.session_of(txn))).collect()
    }

    /// What one that waits is to be followed to, to find whoever is in its way, or in the way of those: the holders in its way, and of those who wait before
    /// it the nearest that is. The others before it are in that one's way, or what they wait for is in its own; so a queue of many has few edges.
    pub fn followed(&self, txn: TxnId) -> Vec<TxnId> {
        let waits_at = self.owners.get(&txn).filter(|owner| owner.victim_of.is_none());
        let queue = waits_at.and_then(|owner| self.keys.get(owner.waits_for.as_ref()?));
        let Some(queue) = queue else { return Vec::new() };
        let Some(ahead) = queue.waiting.iter().position(|claim| claim.txn == txn) else { return Vec::new() };
        let claim = queue.waiting[ahead];
        let nearest = queue.waiting.iter().take(ahead).rev().find(|other| other.excludes(&claim));
        queue.holders.iter().filter(|other| other.excludes(&claim)).chain(nearest).map(|other| other.txn).collect()
    }

    /// Locks in the order of their keys, and of each key those that are held before those that are waited for: the ones behind the first `at.1`
    /// of key `at.0`, at most `max`, of keys that are to be shown. `contended`: only of those for which somebody waits.
    pub fn shown(
        &self,
        contended: bool,
        at: (&[u8], usize),
        max: usize,
        is_shown: impl Fn(&[u8]) -> bool,
    ) -> Vec<ShownLock> {
        let (from, skipped) = at;
        let awaited: BTreeSet<&Key> = match contended {
            true => self.owners.values().filter_map(|owner| owner.waits_for.as_ref()).collect(),
            false => BTreeSet::new(),
        };
        let bounds = (Bound::Included(from), Bound::Unbounded);
        let those = awaited.into_iter().filter(|key| key[..] >= *from);
        let those = those.filter_map(|key| self.keys.get_key_value(&key[..]));
        let all = self.keys.range::<[u8], _>(bounds).filter(|_| !contended);
        let locks = those.chain(all).filter(|(key, _)| is_shown(key)).flat_map(|(key, queue)| {
            let held = queue.holders.iter().map(|claim| (claim, None));
            let waiting = queue.waiting.iter().enumerate().map(|(ahead, claim)| (claim, Some(ahead)));
            let skipped = if key[..] == *from { skipped } else { 0 };
            held.chain(waiting).skip(skipped).map(move |(claim, ahead)| (key, queue, claim, ahead))
        });
        let shown = |(key, queue, claim, ahead): (&Key, &Queue, &Claim, Option<usize>)| {
            let is_victim = self.owners.get(&claim.txn).is_some_and(|owner| owner.victim_of.is_some());
            let before = ahead.filter(|_| !is_victim).map(|ahead| queue.in_the_way(*claim, ahead).collect());
            let (txn, mode, granted) = (claim.txn, claim.mode, ahead.is_none());
            ShownLock { key: Bytes::copy_from_slice(key), txn, mode, granted, before: before.unwrap_or_default() }
        };
        let mut found: Vec<ShownLock> = locks.take(max).map(shown).collect();
        // For nobody's key in a run anybody waits, else it would have an entry.
        if !contended {
            let others = self.runs.shown(from, max + 1, |key| is_shown(key) && !self.keys.contains_key(key));
            let others = others.into_iter().filter(|(key, _, _)| skipped == 0 || *key != from);
            let mut others: Vec<_> = others.collect();
            // Each run gives as many as are shown of all: those that are not are not copied.
            if others.len() > max {
                others.select_nth_unstable_by(max, |a, b| a.0.cmp(b.0));
                others.truncate(max);
            }
            let shown = |(key, txn, mode): (&[u8], TxnId, LockMode)| ShownLock {
                key: Bytes::copy_from_slice(key),
                txn,
                mode,
                granted: true,
                before: Vec::new(),
            };
            found.extend(others.into_iter().map(shown));
            // Those of one key stand together already, in their order.
            found.sort_by(|a, b| a.key.cmp(&b.key));
            found.truncate(max);
        }
        found
    }

    /// All that hold locks here, or wait for one, or of which it was said whose they are.
    pub fn owners(&self) -> impl Iterator<Item = LockOwner> + '_ {
        self.owners.iter().map(|(txn, owner)| LockOwner {
            txn: *txn,
            session: owner.session,
            lasting: owner.lasting,
            held: owner.taken.len() + self.runs.held(*txn),
        })
    }

    /// Stops waiting (lock timeout, interrupt); what is held stays held.
    pub fn cancel(&mut self, txn: TxnId, wakeups: &mut Vec<Wakeup>) {
        let Some(owner) = self.owners.get_mut(&txn) else { return };
        // What came the moment it gave up nobody asks for any more.
        (owner.victim_of, owner.waited) = (None, false);
        let Some(key) = owner.waits_for.take() else { return };
        self.waiting.ends(owner.session, txn);
        if let Some(queue) = self.keys.get_mut(&key) {
            queue.waiting.retain(|claim| claim.txn != txn);
        }
        self.pass_on(&key, wakeups);
    }

    /// The transaction ended: its locks pass on.
    pub fn release(&mut self, txn: TxnId, wakeups: &mut Vec<Wakeup>) {
        let entries = self.owners.get(&txn).map_or(0, |owner| owner.taken.len());
        match entries >= TOGETHER_MIN && 2 * entries >= self.keys.len() {
            true => self.release_together(txn, wakeups),
            false => self.release_since(txn, 0, wakeups),
        }
        self.owners.remove(&txn);
    }

    /// Gives back all that a transaction holds, in one pass over the table: for who holds much of it.
    fn release_together(&mut self, txn: TxnId, wakeups: &mut Vec<Wakeup>) {
        self.cancel(txn, wakeups);
        let mut awaited = Vec::new();
        self.keys.retain(|key, queue| {
            let held = queue.holders.len();
            queue.holders.retain(|claim| claim.txn != txn);
            if queue.holders.len() < held && !queue.waiting.is_empty() {
                awaited.push(key.clone());
            }
            !(queue.holders.is_empty() && queue.waiting.is_empty())
        });
        if let Some(owner) = self.owners.get_mut(&txn) {
            owner.taken = Vec::new();
        }
        // What was met there had an entry.
        self.runs.remove(txn);
        awaited.iter().for_each(|key| self.pass_on(key, wakeups));
    }

    /// Where the transaction stands: for [`LockTable::release_since`].
    pub fn mark(&self, txn: TxnId) -> usize {
        self.owners.get(&txn).map_or(0, |owner| owner.taken.len()) + self.runs.held(txn)
    }

    /// Gives back what the transaction took since a mark, and stops waiting.
    pub fn release_since(&mut self, txn: TxnId, mark: usize, wakeups: &mut Vec<Wakeup>) {
        self.cancel(txn, wakeups);
        // The last first.
        while let Some((begins, in_run)) = self.runs.last(txn) {
            let Some(owner) = self.owners.get_mut(&txn) else { return };
            let more = (owner.taken.len() + self.runs.held(txn)).saturating_sub(mark);
            let after = (owner.taken.len() - begins).min(more);
            let taken = owner.taken.split_off(owner.taken.len() - after);
            self.give_back(txn, taken, wakeups);
            if after == more {
                return;
            }
            let met = self.runs.truncate_last(txn, in_run.saturating_sub(more - after));
            let met = met.into_iter().map(|key| (Key::from_slice(&key), None)).collect();
            self.give_back(txn, met, wakeups);
        }
        let Some(owner) = self.owners.get_mut(&txn) else { return };
        let taken = match mark {
            // All of it is not copied.
            0 => std::mem::take(&mut owner.taken),
            mark => owner.taken.split_off(mark.min(owner.taken.len())),
        };
        self.give_back(txn, taken, wakeups);
    }

    /// Gives back what was taken one by one, with the mode that was held before.
    fn give_back(&mut self, txn: TxnId, taken: Vec<(Key, Option<LockMode>)>, wakeups: &mut Vec<Wakeup>) {
        // The last first: a lock that was made stronger twice has the mode of before the first time in the end.
        for (key, before) in taken.into_iter().rev() {
            let Entry::Occupied(mut entry) = self.keys.entry(key) else { continue };
            let queue = entry.get_mut();
            match before {
                None => queue.holders.retain(|claim| claim.txn != txn),
                Some(mode) => queue.holders.iter_mut().filter(|claim| claim.txn == txn).for_each(|c| c.mode = mode),
            }
            // Who gives back a million locks for which nobody waits looks each up once.
            if queue.waiting.is_empty() {
                if queue.holders.is_empty() {
                    entry.remove();
                }
                continue;
            }
            let key = entry.key().clone();
            self.pass_on(&key, wakeups);
        }
    }

    /// Whether the transaction holds the lock, in this mode or a stronger one.
    pub fn holds(&self, txn: TxnId, key: &[u8], mode: LockMode) -> bool {
        match self.keys.get(key) {
            Some(queue) => queue.held_by(txn).is_some_and(|held| held >= mode),
            None => self.runs.holder(key).is_some_and(|(holder, held)| holder == txn && held >= mode),
        }
    }
    /// Whether the transaction holds, or waits for, any lock.
    pub fn knows(&self, txn: TxnId) -> bool {
        self.owners.contains_key(&txn)
    }
    /// How many locks the transaction holds; one that was made stronger counts twice.
    pub fn held(&self, txn: TxnId) -> usize {
        self.mark(txn)
    }
    /// Keys locked, and transactions that queue.
    pub fn size(&self) -> (usize, usize) {
        (self.keys.len() + self.runs.size(), self.keys.values().map(|queue| queue.waiting.len()).sum())
    }

    /// Something that others may have waited for is gone from a key: grants whatever can be granted, in the order of the queue.
    fn pass_on(&mut self, key: &Key, wakeups: &mut Vec<Wakeup>) {
        let Some(queue) = self.keys.get_mut(key) else { return };
        let mut at = 0;
        while let Some(claim) = queue.waiting.get(at).copied() {
            if queue.in_the_way(claim, at).next().is_some() {
                at += 1;
                continue;
            }
            queue.waiting.remove(at);
            let before = queue.grant(claim);
            let owner = self.owners.entry(claim.txn).or_default();
            owner.waits_for = None;
            self.waiting.ends(owner.session, claim.txn);
            owner.victim_of = None;
            owner.waited = true;
            owner.taken.push((key.clone(), before));
            wakeups.push(Wakeup(claim.txn));
        }
        if queue.holders.is_empty() && queue.waiting.is_empty() {
            self.keys.remove(key);
        }
    }

    /// `txn` just began to wait: finds the cycles through it, and picks a victim of each.
    fn settle_deadlocks(&mut self, txn: TxnId, wakeups: &mut Vec<Wakeup>) -> LockReply {
        while let Some(mut cycle) = self.cycle_through(txn) {
            let at = cycle.iter().enumerate().max_by_key(|(_, id)| **id).map_or(0, |(at, _)| at);
            cycle.rotate_left(at);
            let victim = cycle[0];
            let cycle = cycle.into_iter().filter_map(|txn| self.waiter(txn)).collect();
            if victim == txn {
                self.cancel(txn, wakeups);
                return LockReply::Deadlock(cycle);
            }
            // It will not wait any more: each round takes one out of all cycles.
            let Some(owner) = self.owners.get_mut(&victim) else { break };
            owner.victim_of = Some(cycle);
            wakeups.push(Wakeup(victim));
        }
        LockReply::Queued
    }

    /// What a transaction waits for; nothing, if it is a victim.
    pub fn waiter(&self, txn: TxnId) -> Option<Waiter> {
        let owner = self.owners.get(&txn).filter(|owner| owner.victim_of.is_none())?;
        let key = owner.waits_for.as_ref()?;
        let mode = self.keys.get(key)?.waiting.iter().find(|claim| claim.txn == txn)?.mode;
        Some(Waiter { txn, session: owner.session, key: Bytes::copy_from_slice(key), mode })
    }

    /// The transaction itself, or the one under which its session waits.
    fn under(&self, txn: TxnId) -> TxnId {
        let Some(owner) = self.owners.get(&txn).filter(|owner| owner.waits_for.is_none()) else { return txn };
        owner.session.and_then(|session| self.waiting.of(session)).unwrap_or(txn)
    }

    /// Whom a transaction waits for; nobody, if it is a victim: it will give up.
    fn waits_for(&self, txn: TxnId) -> Vec<TxnId> {
        let waiting = self.owners.get(&txn).filter(|owner| owner.victim_of.is_none());
        let queue = waiting.and_then(|owner| self.keys.get(owner.waits_for.as_ref()?));
        let Some(queue) = queue else { return Vec::new() };
        let Some(ahead) = queue.waiting.iter().position(|claim| claim.txn == txn) else { return Vec::new() };
        let mut found: Vec<TxnId> = queue.in_the_way(queue.waiting[ahead], ahead).collect();
        // The search takes the last first: holders before those who wait themselves.
        found.reverse();
        found
    }

    /// A cycle that begins with `txn`: depth first, each transaction once.
    fn cycle_through(&self, txn: TxnId) -> Option<Vec<TxnId>> {
        let mut seen = BTreeSet::from([txn]);
        let mut path = vec![txn];
        let mut open = vec![self.waits_for(txn)];
        while let Some(next) = open.last_mut() {
            match next.pop().map(|found| self.under(found)) {
                Some(found) if found == txn => return Some(path),
                Some(found) if seen.insert(found) => {
                    path.push(found);
                    open.push(self.waits_for(found));
                }
                Some(_) => {}
                None => {
                    open.pop();
                    path.pop();
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txn(serial: u64) -> TxnId {
        TxnId { serial, node: 1 }
    }

    /// One that holds much of the table gives it back in one pass: others get what they would have got, and keep what they have.
    #[test]
    fn many_locks_pass_on_as_few_do() {
        let ended = |others: u32| {
            let (mut table, mut wakeups) = (LockTable::default(), Vec::new());
            let many = 2 * TOGETHER_MIN as u32;
            for n in 0..many {
                let mode = if n % 3 == 0 { LockMode::Share } else { LockMode::Update };
                table.request(txn(1), &n.to_be_bytes(), mode, LockWait::Wait, &mut wakeups);
            }
            for n in 0..others {
                // Those of which nobody else knows, until the first transaction holds less than half of all.
                table.request(txn(2), &(many + n).to_be_bytes(), LockMode::Update, LockWait::Wait, &mut wakeups);
            }
            table.request(txn(2), &3u32.to_be_bytes(), LockMode::Share, LockWait::Wait, &mut wakeups);
            for (waiter, key) in [(3, 3u32), (4, 4), (5, 4), (6, 77)] {
                let reply =
                    table.request(txn(waiter), &key.to_be_bytes(), LockMode::Update, LockWait::Wait, &mut wakeups);
                assert_eq!(reply, LockReply::Queued);
            }
            assert!(wakeups.is_empty());
            table.release(txn(1), &mut wakeups);
            wakeups.sort_by_key(|wakeup| wakeup.0);
            let shown = table.shown(false, (b"", 0), 10, |key| key < &many.to_be_bytes()[..]);
            let shown: Vec<_> = shown.into_iter().map(|lock| (lock.key, lock.txn, lock.granted, lock.before)).collect();
            assert!(!table.knows(txn(1)) && table.size() == (3 + others as usize, 2));
            (wakeups, shown)
        };
        let (together, apart) = (ended(0), ended(3 * TOGETHER_MIN as u32));
        assert_eq!(together, apart);
        assert_eq!(
            together.0,
            [Wakeup(txn(4)), Wakeup(txn(6))],
            "the third waits for the second, the fifth for the fourth"
        );
    }

    /// Of three tables, one of which has runs, one few and one none, whatever is asked.
    fn with_and_without_runs(steps: &[(u8, u8, u8, u8)]) -> [LockTable; 3] {
        let table = |run_min, max| LockTable { run_min, runs: Runs::at_most(max), ..LockTable::default() };
        let mut tables = [table(4, usize::MAX), table(4, 2), table(usize::MAX, 0)];
        let mut marks: BTreeMap<u64, usize> = BTreeMap::new();
        for (n, (what, of, key, mode)) in steps.iter().enumerate() {
            let (of, key) = (u64::from(of % 4), &(key % 64));
            let modes = [LockMode::KeyShare, LockMode::Share, LockMode::NoKeyUpdate, LockMode::Update];
            let mode = modes[usize::from(if what % 4 == 0 { *mode } else { 3 }) % 4];
            let wait = if key % 5 == 0 { LockWait::NoWait } else { LockWait::Wait };
            let mark = marks.get(&of).copied().unwrap_or(0);
            let did = tables.each_mut().map(|table| {
                let mut wakeups = Vec::new();
                let mut ask = |table: &mut LockTable, key: u8| table.request(txn(of), &[key], mode, wait, &mut wakeups);
                let replies = match what % 16 {
                    0..6 => vec![ask(table, *key)],
                    6..12 => (*key..key.saturating_add(12)).map(|key| ask(table, key)).collect(),
                    12 => {
                        table.release_since(txn(of), mark, &mut wakeups);
                        Vec::new()
                    }
                    13 => {
                        table.cancel(txn(of), &mut wakeups);
                        Vec::new()
                    }
                    14 => Vec::new(),
                    _ => {
                        table.release(txn(of), &mut wakeups);
                        Vec::new()
                    }
                };
                wakeups.sort_by_key(|wakeup| wakeup.0);
                let shown = [false, true].map(|contended| table.shown(contended, (b"", 0), usize::MAX - 1, |_| true));
                let holds: Vec<bool> = (0..80).map(|key| table.holds(txn(of), &[key], mode)).collect();
                let owners: Vec<_> = table.owners().map(|owner| (owner.txn, owner.held)).collect();
                (replies, wakeups, shown, holds, owners, table.size(), table.mark(txn(of)))
            });
            assert!(tables[1].runs.count() <= 2);
            assert_eq!(did[0], did[1], "step {n}");
            assert_eq!(did[0], did[2], "step {n}");
            let part = tables.each_ref().map(|table| table.shown(false, (&[*key], usize::from(*key % 2)), 3, |_| true));
            assert_eq!(part[0], part[1], "step {n}");
            assert_eq!(part[0], part[2], "step {n}");
            match what % 16 {
                14 => drop(marks.insert(of, did[0].6)),
                12 | 15 => drop(marks.remove(&of)),
                _ => {}
            }
        }
        tables
    }

    proptest::proptest! {
        #[test]
        fn runs_change_no_answer(steps in proptest::collection::vec(proptest::prelude::any::<(u8, u8, u8, u8)>(), 0..60)) {
            with_and_without_runs(&steps);
        }
    }

    /// Lest the test above is about nothing.
    #[test]
    fn many_ascending_locks_stand_in_runs_and_have_entries_where_others_ask() {
        let [mut table, ..] = with_and_without_runs(&[(6, 1, 0, 3), (6, 1, 12, 3), (0, 2, 17, 3), (0, 1, 3, 3)]);
        assert_eq!((table.runs.size(), table.keys.len(), table.runs.held(txn(1))), (19, 5, 20));
        let mut wakeups = Vec::new();
        table.release_since(txn(1), 16, &mut wakeups);
        assert_eq!((table.runs.held(txn(1)), &wakeups[..]), (12, &[Wakeup(txn(2))][..]));
        table.release(txn(1), &mut wakeups);
        assert_eq!((table.runs.size(), table.size()), (0, (1, 0)));
    }

    /// Idle transactions that hold many locks make the others' requests no slower: few of them have runs, and one that ends leaves its place to another.
    #[test]
    fn there_are_few_runs_of_many_transactions() {
        let (mut table, mut wakeups) = (LockTable { run_min: 4, ..LockTable::default() }, Vec::new());
        let mut lock = |table: &mut LockTable, of: u64, keys: std::ops::Range<u64>| {
            for n in keys {
                let key = [of.to_be_bytes(), n.to_be_bytes()].concat();
                let reply = table.request(txn(of), &key, LockMode::Update, LockWait::NoWait, &mut wakeups);
                assert_eq!(reply, LockReply::Granted { waited: false });
                assert!(table.holds(txn(of), &key, LockMode::Update));
            }
        };
        (1..=400).for_each(|of| lock(&mut table, of, 0..20));
        assert_eq!((table.runs.count(), table.runs.held(txn(32)), table.runs.held(txn(33))), (32, 16, 0));
        let shown = table.shown(false, (b"", 0), usize::MAX - 1, |_| true);
        assert_eq!((shown.len(), table.size()), (8000, (8000, 0)));
        assert!(shown.is_sorted_by_key(|lock| &lock.key));
        assert_eq!(table.shown(false, (&shown[75].key, 1), 30, |_| true), shown[76..106]);
        let mut wakeups = Vec::new();
        table.release(txn(7), &mut wakeups);
        assert_eq!(table.runs.count(), 31);
        lock(&mut table, 400, 20..40);
        assert_eq!((table.runs.count(), table.runs.held(txn(400)), table.held(txn(400))), (32, 20, 40));
        (1..=400).for_each(|of| table.release(txn(of), &mut wakeups));
        assert_eq!((table.runs.count(), table.runs.size(), table.size(), wakeups.len()), (0, 0, (0, 0), 0));
    }

    #[test]
    fn what_is_shown_is_all_there_is_however_it_is_divided() {
        let (mut table, mut wakeups) = (LockTable::default(), Vec::new());
        let mut ask = |table: &mut LockTable, of, key: &[u8], mode| {
            table.request(txn(of), key, mode, LockWait::Wait, &mut wakeups);
        };
        for key in [b"a", b"b", b"c"] {
            ask(&mut table, 1, key, LockMode::Share);
            ask(&mut table, 2, key, LockMode::Share);
        }
        ask(&mut table, 3, b"b", LockMode::Update);
        ask(&mut table, 4, b"b", LockMode::KeyShare);
        table.belongs(txn(3), 30);
        table.lasts(txn(4), 40);
        let all = table.shown(false, (b"", 0), 100, |_| true);
        let told: Vec<(&[u8], u64, bool, Vec<u64>)> = all
            .iter()
            .map(|lock| (&lock.key[..], lock.txn.serial, lock.granted, lock.before.iter().map(|t| t.serial).collect()))
            .collect();
        let held = |key: &'static [u8], of| (key, of, true, Vec::new());
        let expected = [
            held(b"a", 1),
            held(b"a", 2),
            held(b"b", 1),
            held(b"b", 2),
            (b"b", 3, false, vec![1, 2]),
            (b"b", 4, false, vec![3]),
            held(b"c", 1),
            held(b"c", 2),
        ];
        assert_eq!(told, expected);
        assert_eq!(table.shown(true, (b"", 0), 100, |_| true), all[2..6]);
        assert_eq!(table.shown(false, (b"", 0), 100, |key| key != b"b"), [&all[..2], &all[6..]].concat());
        for contended in [true, false] {
            let whole = table.shown(contended, (b"", 0), 100, |_| true);
            for size in 1..5 {
                let (mut pages, mut from) = (Vec::new(), (Bytes::new(), 0));
                loop {
                    let page = table.shown(contended, (&from.0, from.1), size, |_| true);
                    let Some(last) = page.last().map(|lock| lock.key.clone()) else { break };
                    pages.extend(page);
                    let of_last = pages.iter().filter(|lock| lock.key == last).count();
                    from = (last, of_last);
                }
                assert_eq!(pages, whole, "{size} at a time");
            }
        }
        let owners: Vec<_> = table.owners().map(|o| (o.txn.serial, o.session, o.lasting, o.held)).collect();
        let expected = [(1, None, false, 3), (2, None, false, 3), (3, Some(30), false, 0), (4, Some(40), true, 0)];
        assert_eq!(owners, expected);
    }
}

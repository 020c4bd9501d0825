//! Advisory row locks: hot rows queue instead of aborting each other.
//!
//! # Problem
//! With certification alone, of `n` transactions that update one row at a time one commits and the others run again.
//!
//! # Idea
//! A statement that is about to write existing rows takes a lock first, in memory, on the node that leads the range, and
//! only then reads the newest version. Certification stays the truth: losing this table (a crash, a new leader) loses no
//! correctness, only the queue.
//!
//! # Invariants
//! 1. A key has at most one holder; whoever asks while it is held, or while others queue, goes to the end of the queue.
//! 2. A transaction waits for at most one key. Hence each waiter has one edge, to the key's holder: whoever queues in front
//!    waits for the same holder. A deadlock is a cycle of these edges, and an edge appears only when somebody starts to wait or a
//!    lock passes on; a lock passes on to a transaction that stops waiting, which closes no cycle. So it is enough to look for
//!    one when a transaction starts to wait.
//! 3. The victim is the youngest of the cycle (the greatest [`TxnId`]): every node and every run picks the same.
//! 4. Every change that lets a waiter go on is reported as a [`Wakeup`].

use super::TxnId;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// A transaction holds at most this many row locks; beyond it certification alone protects its rows.
pub const MAX_LOCKS_PER_TXN: usize = 1 << 20;

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
    Deadlock(Vec<TxnId>),
}

/// Somebody may go on: ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup(pub TxnId);

#[derive(Debug, Default)]
struct Queue {
    holder: TxnId,
    waiting: VecDeque<TxnId>,
}

/// The locks of one node.
#[derive(Debug, Default)]
pub struct LockTable {
    keys: BTreeMap<Bytes, Queue>,
    owners: BTreeMap<TxnId, Owner>,
}

#[derive(Debug, Default)]
struct Owner {
    held: Vec<Bytes>,
    waits_for: Option<Bytes>,
    waited: bool,
    victim_of: Option<Vec<TxnId>>,
}

impl LockTable {
    /// Asks for the lock on a key. After [`LockReply::Queued`], the same request again says whether it came.
    pub fn request(&mut self, txn: TxnId, key: &[u8], wait: LockWait, wakeups: &mut Vec<Wakeup>) -> LockReply {
        if let Some(owner) = self.owners.get_mut(&txn) {
            if let Some(cycle) = owner.victim_of.take() {
                self.cancel(txn);
                return LockReply::Deadlock(cycle);
            }
            if owner.waits_for.is_some() {
                return LockReply::Queued;
            }
        }
        match self.keys.get_mut(key) {
            None => {
                let key = Bytes::copy_from_slice(key);
                self.keys.insert(key.clone(), Queue { holder: txn, waiting: VecDeque::new() });
                self.owners.entry(txn).or_default().held.push(key);
                LockReply::Granted { waited: false }
            }
            Some(queue) if queue.holder == txn => {
                let owner = self.owners.entry(txn).or_default();
                LockReply::Granted { waited: std::mem::take(&mut owner.waited) }
            }
            Some(_) if wait == LockWait::NoWait => LockReply::Busy,
            Some(queue) => {
                queue.waiting.push_back(txn);
                let owner = self.owners.entry(txn).or_default();
                owner.waits_for = Some(Bytes::copy_from_slice(key));
                self.settle_deadlock(txn, wakeups)
            }
        }
    }

    /// Stops waiting (lock timeout, interrupt); what is held stays held.
    pub fn cancel(&mut self, txn: TxnId) {
        let Some(owner) = self.owners.get_mut(&txn) else { return };
        owner.victim_of = None;
        if let Some(key) = owner.waits_for.take()
            && let Some(queue) = self.keys.get_mut(&key)
        {
            queue.waiting.retain(|waiter| *waiter != txn);
        }
    }

    /// The transaction ended: its locks pass on.
    pub fn release(&mut self, txn: TxnId, wakeups: &mut Vec<Wakeup>) {
        self.cancel(txn);
        let Some(owner) = self.owners.remove(&txn) else { return };
        for key in owner.held {
            self.pass_on(&key, wakeups);
        }
    }

    /// Whether the transaction holds the lock.
    pub fn holds(&self, txn: TxnId, key: &[u8]) -> bool {
        self.keys.get(key).is_some_and(|queue| queue.holder == txn)
    }
    /// Whether the transaction holds, or waits for, any lock.
    pub fn knows(&self, txn: TxnId) -> bool {
        self.owners.contains_key(&txn)
    }
    /// How many locks the transaction holds.
    pub fn held(&self, txn: TxnId) -> usize {
        self.owners.get(&txn).map_or(0, |owner| owner.held.len())
    }
    /// Keys locked, and transactions that queue.
    pub fn size(&self) -> (usize, usize) {
        (self.keys.len(), self.keys.values().map(|queue| queue.waiting.len()).sum())
    }

    fn pass_on(&mut self, key: &Bytes, wakeups: &mut Vec<Wakeup>) {
        let Some(queue) = self.keys.get_mut(key) else { return };
        let Some(next) = queue.waiting.pop_front() else {
            self.keys.remove(key);
            return;
        };
        queue.holder = next;
        let owner = self.owners.entry(next).or_default();
        owner.waits_for = None;
        owner.victim_of = None;
        owner.waited = true;
        owner.held.push(key.clone());
        wakeups.push(Wakeup(next));
    }

    /// `txn` just began to wait: finds the cycle through it, if any, and picks its victim.
    fn settle_deadlock(&mut self, txn: TxnId, wakeups: &mut Vec<Wakeup>) -> LockReply {
        let Some(cycle) = self.cycle_from(txn) else {
            return LockReply::Queued;
        };
        let at = cycle.iter().enumerate().max_by_key(|(_, id)| **id).map_or(0, |(at, _)| at);
        let mut cycle = cycle;
        cycle.rotate_left(at);
        let victim = cycle[0];
        if victim == txn {
            self.cancel(txn);
            return LockReply::Deadlock(cycle);
        }
        if let Some(owner) = self.owners.get_mut(&victim) {
            owner.victim_of = Some(cycle);
            wakeups.push(Wakeup(victim));
        }
        LockReply::Queued
    }

    fn cycle_from(&self, txn: TxnId) -> Option<Vec<TxnId>> {
        let mut path = vec![txn];
        let mut at = txn;
        loop {
            let owner = self.owners.get(&at)?;
            if owner.victim_of.is_some() {
                return None;
            }
            at = self.keys.get(owner.waits_for.as_ref()?)?.holder;
            if at == txn {
                return Some(path);
            }
            if path.contains(&at) {
                return None;
            }
            path.push(at);
        }
    }
}

//! Locks that a transaction gives back before it ends: it went back to a savepoint, or waits for one no more.
//!
//! # Problem
//! Its locks lie in the tables of several nodes. Word of what it gives back may get lost, come twice, or come after the next request.
//!
//! # Idea
//! A grant says how many locks the transaction holds at that node since; its gateway keeps that number, and knows it at each savepoint. To give back is
//! to say the number that it had then, and which time it is that this transaction gives back something: its *round*. Each later request for a lock says
//! both again.
//!
//! # Invariants
//! 1. What is given back in a round is given back once at each node, before anything of a later round is taken: a copy of the word does nothing, and where the
//!    word is lost the next request brings it.
//! 2. A request of an earlier round is not granted.
//! 3. Whoever holds a lock for a transaction hears from its gateway that it lives, what it gives back and when it ends. A grant by way of a third does not say who
//!    gave it (who was meant may have handed the range over): then all that replicate the range are told, as far as is known, and the third, which tells whom it asked (`carried`). Who holds
//!    nothing does nothing with it; and of what a node holds more is kept until the end than has to be, never less.
//!
//! # Caveats
//! Where the word is lost, and no request follows, the lock stays until the transaction ends.
//!
//! How many locks a transaction holds ([`Core::locks_held`]) is a guess where some were given by way of thirds: of those only the greatest number of one node counts. What goes by it
//! takes no more locks than about [`protocol::txn::MAX_LOCKS_PER_TXN`], which keeps memory bounded: the guess is never less than what any one node said.

use super::core::Core;
use super::seam::NodeId;
use protocol::door::{Body, Request, Returned};
use protocol::txn::{RangeId, TxnId};
use std::collections::{BTreeMap, BTreeSet};
use store::Engine;

/// How many locks a transaction holds, here and at other nodes: where it stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct LockMark {
    own: usize,
    elsewhere: BTreeMap<NodeId, u64>,
}

/// What a gateway knows of the locks that a transaction of its own may hold elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    round: u64,
    pub held: BTreeMap<NodeId, u64>,
    /// Of these, the nodes at which a lock may have been taken by way of another.
    pub by_third: BTreeSet<NodeId>,
}

/// What a node knows of another's transaction that holds locks here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    /// When it was last heard of, in ticks.
    pub heard: u64,
    pub round: u64,
    /// It is no transaction, but a session's lock (`holds`).
    pub lasting: bool,
}

impl<E: Engine> Core<E> {
    /// Where a transaction of this node stands.
    pub fn lock_mark(&self, txn: TxnId) -> LockMark {
        let elsewhere = self.gateway.locked_on.get(&txn).map(|known| known.held.clone()).unwrap_or_default();
        LockMark { own: self.locks.mark(txn), elsewhere }
    }

    /// How many locks it holds.
    pub fn locks_held(&self, txn: TxnId) -> usize {
        let elsewhere = self.gateway.locked_on.get(&txn).map_or(0, |known| {
            // What somebody of several gave stands with each of them, and counts once.
            let (third, sure): (Vec<_>, Vec<_>) =
                known.held.iter().partition(|(node, _)| known.by_third.contains(node));
            let most = third.into_iter().map(|(_, held)| *held).max().unwrap_or(0);
            sure.into_iter().fold(most, |sum, (_, held)| sum.saturating_add(*held))
        });
        self.locks.held(txn) + usize::try_from(elsewhere).unwrap_or(usize::MAX)
    }

    /// It gives back what it took since a mark. The word leaves with the next outputs.
    pub fn give_back(&mut self, txn: TxnId, mark: &LockMark) {
        let mut wakeups = Vec::new();
        self.locks.release_since(txn, mark.own, &mut wakeups);
        self.woken(&wakeups);
        let Some(known) = self.gateway.locked_on.get_mut(&txn) else { return };
        known.round += 1;
        let round = known.round;
        for (node, held) in &mut known.held {
            let kept = mark.elsewhere.get(node).copied().unwrap_or(0).min(*held);
            *held = kept;
            self.post.answers.push((*node, Body::Unlock { txn, returned: Some(Returned { round, kept }) }));
        }
    }

    /// Whether a call asks another node for a lock.
    pub fn queues_elsewhere(&self, call: u64) -> bool {
        let call = self.gateway.calls.get(&call).filter(|call| call.is_open() && call.sent_to != Some(self.me()));
        call.is_some_and(|call| matches!(call.request, Request::Lock { .. } | Request::LockMany { .. }))
    }

    /// A request for a lock leaves for a node: it says what was given back there. Where it goes through a third it may come to any other: what it keeps is right
    /// wherever that is (invariant 3), and all that it may come to are told of what is given back. Another's request, which is asked in its place, says so already.
    pub fn address_lock(&mut self, to: NodeId, range: RangeId, by_third: bool, request: &mut Request) {
        let me = self.me();
        if let Request::Lock { txn, returned, .. } | Request::LockMany { txn, returned, .. } = request
            && txn.node == me.0
        {
            let all =
                self.routes.get(range).filter(|_| by_third).map(|route| route.replicas.clone()).unwrap_or_default();
            let known = self.gateway.locked_on.entry(*txn).or_default();
            for node in all.into_iter().filter(|node| *node != me) {
                known.held.entry(node).or_default();
            }
            let there = *known.held.entry(to).or_default();
            let kept = if by_third { known.held.values().copied().max().unwrap_or(0) } else { there };
            *returned = Returned { round: known.round, kept };
        }
    }

    /// A lock was granted by a node: so many does the transaction hold there.
    pub fn lock_granted(&mut self, txn: TxnId, by: NodeId, held: u64) {
        if by != self.me()
            && let Some(known) = self.gateway.locked_on.get_mut(&txn)
        {
            known.held.insert(by, held);
        }
    }

    /// A lock was granted in a range, as one says who asked in this node's place: whoever led it then (invariant 3).
    pub fn lock_granted_by_somebody(&mut self, txn: TxnId, range: RangeId, those: [Option<NodeId>; 2], held: u64) {
        let me = self.me();
        let replicas = self.routes.get(range).map(|route| route.replicas.clone()).unwrap_or_default();
        let Some(known) = self.gateway.locked_on.get_mut(&txn) else { return };
        for node in replicas.into_iter().chain(those.into_iter().flatten()).filter(|node| *node != me) {
            let there = known.held.entry(node).or_default();
            *there = held.max(*there);
            known.by_third.insert(node);
        }
    }

    /// A peer's transaction has given back locks here, if that is news. `false`: a later round is known already.
    pub fn returned(&mut self, txn: TxnId, returned: Returned) -> bool {
        let ticks = self.ticks;
        let known = self.lock_owners.entry(txn).or_insert(Holder { heard: ticks, round: 0, lasting: false });
        if returned.round <= known.round {
            return returned.round == known.round;
        }
        known.round = returned.round;
        let mut wakeups = Vec::new();
        let kept = usize::try_from(returned.kept).unwrap_or(usize::MAX);
        self.locks.release_since(txn, kept, &mut wakeups);
        self.forget_lock_requests(txn, Some(returned.round));
        self.woken(&wakeups);
        true
    }

    /// Nobody waits for these any more; `before`: of earlier rounds only.
    pub fn forget_lock_requests(&mut self, txn: TxnId, before: Option<u64>) {
        for range in &self.waiting {
            let Some(shard) = self.shards.get_mut(range) else { continue };
            shard.parked.retain(|_, parked| match &parked.request {
                Request::Lock { txn: of, returned, .. } => {
                    *of != txn || before.is_some_and(|round| returned.round >= round)
                }
                Request::Hold { txn: of, .. } => *of != txn,
                _ => true,
            });
        }
    }
}

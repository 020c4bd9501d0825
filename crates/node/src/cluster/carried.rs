//! Locks that were asked for here in another's place: word about them goes on to whoever was asked.
//!
//! # Problem
//! A gateway that does not hear who leads a range asks through a third, and is not told who gave the lock. It tells all that it knows to replicate the range that the
//! transaction lives, what it gives back and when it ends. The range may have moved to others, whom only the third knows. Without a sign of life they give the lock away while its
//! transaction goes on, and without word of the end they keep it for seconds.
//!
//! # Idea
//! The gateway tells the third, too ([`super::locks`], invariant 3), and the third remembers whom it asked for which transaction.
//!
//! # Invariants
//! 1. Whom a lock was asked of in another's place hears of its transaction what the third hears of it.
//! 2. Only what came from the gateway itself goes on: two that asked each other do not tell each other for ever.
//! 3. When a transaction has ended, or wants its locks no more, nobody goes on asking for it.
//! 4. It is forgotten with the transaction's end, or when nothing was heard of that for as long as a leader waits ([`HOLD_TICKS_MAX`]).
//!
//! # Caveats
//! A third that dies forgets it: the lock then stays or goes as if the gateway had died. A copy of a request that comes after the word of the end is asked for all the same: what it takes is given away in some seconds.

use super::core::Core;
use super::gateway::Owner;
use super::holds::HOLD_TICKS_MAX;
use super::seam::{Class, NodeId};
use clock::Reading;
use protocol::door::{Body, Request, Returned, VERSION_OF_SESSION_LOCKS};
use protocol::txn::TxnId;
use std::collections::{BTreeMap, BTreeSet};
use store::Engine;

/// Transactions remembered, at most; of more no word goes on.
const CARRIED_MAX: usize = 16_384;

/// Whom was asked for a transaction's locks, and when something was heard of it, in ticks.
#[derive(Debug)]
struct Asked {
    of: BTreeSet<NodeId>,
    heard: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Carried(BTreeMap<TxnId, Asked>);

impl<E: Engine> Core<E> {
    /// A request leaves for a node, perhaps in another's place.
    pub fn carry(&mut self, call: u64, to: NodeId, request: &Request) {
        let Some(Owner::Relay(..)) = self.gateway.calls.get(&call).map(|call| &call.owner) else { return };
        let txns: Vec<TxnId> = match request {
            Request::Lock { txn, .. } | Request::LockMany { txn, .. } | Request::Hold { txn, .. } => vec![*txn],
            Request::Keep { held } => held.iter().map(|held| held.txn).collect(),
            _ => return,
        };
        let ticks = self.ticks;
        for txn in txns {
            if self.carried.0.len() < CARRIED_MAX || self.carried.0.contains_key(&txn) {
                let asked = self.carried.0.entry(txn).or_insert(Asked { of: BTreeSet::new(), heard: ticks });
                asked.of.insert(to);
                asked.heard = ticks;
            }
        }
    }

    /// A peer says something of its transactions.
    pub fn pass_on(&mut self, now: &Reading, from: NodeId, body: &Body) {
        match body {
            Body::Locks { txns } => {
                let ticks = self.ticks;
                let mut words: BTreeMap<NodeId, Vec<TxnId>> = BTreeMap::new();
                for txn in txns.iter().filter(|txn| txn.node == from.0) {
                    let Some(asked) = self.carried.0.get_mut(txn) else { continue };
                    asked.heard = ticks;
                    asked.of.iter().for_each(|node| words.entry(*node).or_default().push(*txn));
                }
                for (node, txns) in words {
                    self.say_for(now, from, node, Body::Locks { txns });
                }
            }
            Body::Unlock { txn, returned } if txn.node == from.0 => {
                self.ask_no_more(*txn, *returned);
                let asked = match returned {
                    None => self.carried.0.remove(txn).map(|asked| asked.of),
                    Some(_) => self.carried.0.get(txn).map(|asked| asked.of.clone()),
                };
                for node in asked.into_iter().flatten() {
                    self.say_for(now, from, node, Body::Unlock { txn: *txn, returned: *returned });
                }
            }
            _ => {}
        }
    }

    fn say_for(&mut self, now: &Reading, from: NodeId, to: NodeId, word: Body) {
        if to != from && self.in_force(VERSION_OF_SESSION_LOCKS) && !self.sabotage.pass_no_word_on() {
            let word = Body::Forward { from: from.0, to: to.0, word: Box::new(word) };
            self.send(now, to, Class::Request, word, None);
        }
    }

    /// Invariant 3: of a row's lock what was asked for before a round ends; of a session's whatever is asked, as its next request has a number of its own and is asked for anew.
    fn ask_no_more(&mut self, txn: TxnId, returned: Option<Returned>) {
        let over = |request: &Request| match request {
            Request::Lock { txn: of, returned: then, .. } | Request::LockMany { txn: of, returned: then, .. } => {
                *of == txn && returned.is_none_or(|returned| then.round < returned.round)
            }
            Request::Hold { txn: of, .. } => *of == txn,
            _ => false,
        };
        let over = self.gateway.relayed().filter(|(_, call)| over(&call.request));
        for call in over.map(|(id, _)| id).collect::<Vec<_>>() {
            self.end_relay(call);
        }
    }

    pub fn tick_carried(&mut self) {
        let ticks = self.ticks;
        self.carried.0.retain(|_, asked| ticks.saturating_sub(asked.heard) <= HOLD_TICKS_MAX);
    }
}

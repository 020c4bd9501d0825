//! Deadlocks of transactions that wait at different leaders.
//!
//! # Problem
//! A leader's lock table finds the circles that lie within it. One that goes through two leaders is in neither.
//!
//! # Idea
//! Chase the edges (Chandy, Misra and Haas, 1983). A leader at which somebody waits sends a probe after those in the way, by way of their gateways, which
//! know where they wait themselves. A probe carries the way that it came. Where it meets a transaction that it has met before there is a circle, and the
//! youngest of it is the victim, as within one table: whoever finds the circle names the same.
//!
//! ```text
//!   leader A: T1 waits for T2 ──probe(T1)──► gateway of T2 ──► leader B: T2 waits for T1 ── a circle: T1, T2 ──► gateway of T2: victim
//! ```
//!
//! # Invariants
//! 1. A circle that stays is found within a few periods, whatever messages are lost: probes are sent again as long as somebody waits.
//! 2. A victim is told only while it waits for a lock.
//!
//! # Caveats
//! An edge may be gone while a probe is on its way: now and then a transaction falls victim to a circle that has just opened.

use super::core::Core;
use super::seam::NodeId;
use bytes::Bytes;
use clock::Reading;
use protocol::door::{Answer, Body, Request};
use protocol::txn::TxnId;
use store::Engine;

/// Ticks between two rounds of probes.
const PROBE_TICKS: u64 = 10;
/// A circle of more transactions is not found.
const CIRCLE_MAX: usize = 32;
/// Probes of one round, at most.
const PROBES_MAX: usize = 1024;

impl<E: Engine> Core<E> {
    /// Probes after those in the way of whoever waits here.
    pub fn tick_deadlocks(&mut self) {
        if !self.ticks.is_multiple_of(PROBE_TICKS) || self.locks.size().1 == 0 {
            return;
        }
        let waiters: Vec<(TxnId, Bytes)> = self.locks.waiters().map(|waiter| (waiter.txn, waiter.key)).collect();
        let mut probes = Vec::new();
        for (txn, key) in waiters {
            let in_the_way = self.locks.in_the_way_of(txn).into_iter();
            probes.extend(in_the_way.map(|(about, _)| (vec![(txn, key.clone())], about)));
        }
        for (path, about) in probes.into_iter().take(PROBES_MAX) {
            self.deliver(NodeId(about.node), Body::Probe { path, about });
        }
    }

    /// A probe came: to the gateway of the transaction that it is about, or to where that waits.
    pub fn probed(&mut self, path: Vec<(TxnId, Bytes)>, about: TxnId) {
        let Some(key) = self.locks.waiters().find(|waiter| waiter.txn == about).map(|waiter| waiter.key) else {
            if about.node == self.me().0
                && let Some(at) = self.waits_elsewhere(about)
            {
                self.deliver(at, Body::Probe { path, about });
            }
            return;
        };
        let mut path = path;
        path.push((about, key));
        for (next, _) in self.locks.in_the_way_of(about) {
            match path.iter().position(|(txn, _)| *txn == next) {
                Some(first) => {
                    let circle = path[first..].to_vec();
                    let victim = circle.iter().map(|(txn, _)| *txn).max().unwrap_or(next);
                    self.deliver(NodeId(victim.node), Body::Victim { txn: victim, circle });
                }
                None if path.len() < CIRCLE_MAX => {
                    self.deliver(NodeId(next.node), Body::Probe { path: path.clone(), about: next });
                }
                None => {}
            }
        }
    }

    /// The other node at which a transaction of this one waits for a lock.
    fn waits_elsewhere(&self, txn: TxnId) -> Option<NodeId> {
        let me = self.me();
        self.lock_call(txn).and_then(|id| self.gateway.calls.get(&id)?.sent_to).filter(|at| *at != me)
    }

    /// The call with which a transaction of this node waits for a lock.
    fn lock_call(&self, txn: TxnId) -> Option<u64> {
        let waits = |request: &Request| matches!(request, Request::Lock { txn: of, .. } if *of == txn);
        self.gateway.calls.iter().find(|(_, call)| call.is_open() && waits(&call.request)).map(|(id, _)| *id)
    }

    /// A transaction of this node is the victim of a circle.
    pub fn victim(&mut self, now: &Reading, txn: TxnId, circle: Vec<(TxnId, Bytes)>) {
        let Some(call) = self.lock_call(txn) else { return };
        self.counters.txn_deadlocks.one();
        self.cancel_lock_wait(txn);
        let me = self.me();
        // The circle begins with the victim.
        let mut circle = circle;
        let first = circle.iter().position(|(of, _)| *of == txn).unwrap_or(0);
        circle.rotate_left(first);
        self.answered(now, call, me, Answer::Deadlock(circle));
    }
}

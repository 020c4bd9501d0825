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
//! A session may hold locks under several numbers (its transaction's, and those of the locks that it took for itself: `holds`), and waits for one thing at a time.
//! So whoever waits for any of these waits for what the session waits for: its gateway goes on with the number under which it does.
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
        let waits_here = |core: &Self, txn: TxnId| core.locks.waiters().find(|waiter| waiter.txn == txn);
        let (about, key) = match waits_here(self, about) {
            Some(waiter) => (about, waiter.key),
            None if about.node != self.me().0 => return,
            None => {
                let Some((waits, at)) = self.waits_for_session_of(about) else { return };
                match waits_here(self, waits) {
                    Some(waiter) => (waits, waiter.key),
                    None if at != self.me() => return self.deliver(at, Body::Probe { path, about: waits }),
                    None => return,
                }
            }
        };
        let mut path = path;
        if let Some(first) = path.iter().position(|(txn, _)| *txn == about) {
            return self.name_victim(path.split_off(first));
        }
        path.push((about, key));
        for (next, _) in self.locks.in_the_way_of(about) {
            match path.iter().position(|(txn, _)| *txn == next) {
                Some(first) => self.name_victim(path[first..].to_vec()),
                None if path.len() < CIRCLE_MAX => {
                    self.deliver(NodeId(next.node), Body::Probe { path: path.clone(), about: next });
                }
                None => {}
            }
        }
    }

    /// The youngest of a circle is its victim.
    fn name_victim(&mut self, circle: Vec<(TxnId, Bytes)>) {
        let Some(victim) = circle.iter().map(|(txn, _)| *txn).max() else { return };
        self.deliver(NodeId(victim.node), Body::Victim { txn: victim, circle });
    }

    /// Under which number the session of a transaction of this node waits for a lock, and where.
    fn waits_for_session_of(&self, txn: TxnId) -> Option<(TxnId, NodeId)> {
        let session = self.locks.session_of(txn);
        let same = |of: TxnId| of == txn || session.is_some() && self.locks.session_of(of) == session;
        let mut waiting = self.gateway.calls.values().filter(|call| call.is_open());
        waiting.find_map(|call| {
            let (of, ..) = call.request.wanted_lock().filter(|(of, ..)| of.node == self.me().0 && same(*of))?;
            Some((of, call.asks()?))
        })
    }

    /// The call with which a transaction of this node waits for a lock.
    fn lock_call(&self, txn: TxnId) -> Option<u64> {
        let waits = |request: &Request| request.wanted_lock().is_some_and(|(of, ..)| of == txn);
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

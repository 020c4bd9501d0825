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
//! 3. What a round costs grows with those who wait and not with the ways between them, which in a queue double with each: a node goes after a transaction once in a round for each that the round began
//!    with, and of those who wait before it follows the nearest alone ([`LockTable::followed`](protocol::txn::LockTable::followed)).
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
/// So many waiters begin a round, at most: where there are more they take turns.
const BEGINNERS_MAX: usize = 128;
/// Of so many is it remembered in a round that they were gone after; what comes then is not.
const CHASED_MAX: usize = 65_536;

impl<E: Engine> Core<E> {
    /// Probes after those in the way of whoever waits here.
    pub fn tick_deadlocks(&mut self) {
        self.forget_the_chased();
        if !self.ticks.is_multiple_of(PROBE_TICKS) || self.locks.size().1 == 0 {
            return;
        }
        let waiters: Vec<(TxnId, Bytes)> = self.locks.waiters().map(|waiter| (waiter.txn, waiter.key)).collect();
        let round = (self.ticks / PROBE_TICKS) as usize;
        let turn = round.saturating_mul(BEGINNERS_MAX) % waiters.len().max(1);
        for (txn, key) in waiters.iter().cycle().skip(turn).take(waiters.len().min(BEGINNERS_MAX)) {
            for about in self.locks.followed(*txn) {
                self.deliver(NodeId(about.node), Body::Probe { path: vec![(*txn, key.clone())], about });
            }
        }
    }

    /// A round is over: what is gone after in the next one is gone after anew.
    fn forget_the_chased(&mut self) {
        if self.ticks.is_multiple_of(PROBE_TICKS) {
            self.chased.clear();
        }
    }

    /// A probe came: to the gateway of the transaction that it is about, or to where that waits.
    pub fn probed(&mut self, path: Vec<(TxnId, Bytes)>, about: TxnId) {
        let waits_here = |core: &Self, txn: TxnId| core.locks.waiter(txn);
        self.counters.deadlock_probes.one();
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
        // Each of the circle is somebody with whom a round begins; so one way from there to here is enough.
        let Some((began, _)) = path.first() else { return };
        if self.chased.len() >= CHASED_MAX || !self.chased.insert((*began, about)) {
            return;
        }
        path.push((about, key));
        for next in self.locks.followed(about) {
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

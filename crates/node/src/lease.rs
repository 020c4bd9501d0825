//! Leases: how far into the future a node may promise that nothing changes.
//!
//! # Problem
//! Whoever reads at a snapshot `s` is promised that nothing is ever written at or below `s`. In one life of the node the hybrid clock keeps
//! that: it was ratcheted to `s`. A crash forgets the clock. The next life starts above what is in the log, and its physical clock
//! may be behind `s`: it was set back, or `s` was the `latest` of a wide interval, and now the interval is narrow.
//!
//! # Idea
//! A lease is a grant of timestamps (design §2). Snapshots are served up to its end, which stands in the log; the next life ratchets its
//! clock to it, and begins to serve when it is past. A node with peers renews its lease ahead of need, so that readers seldom wait
//! for a sync. A node that is alone reads at what was acknowledged, which is in the log anyway: only a read at a timestamp of the last
//! moments that the client names (`AS OF SYSTEM TIME` with a time, a token from elsewhere) asks for one.
//!
//! # A clean stop
//! A node that stops gives back what is left of its lease ([`Node::give_back_lease`]), so that its next life need not wait for it. First it
//! serves nothing beyond the log any more, then it proposes a release, whose own timestamp cuts the lease. That suffices: a reader
//! ratchets the clock to its snapshot and *then* looks whether a lease covers it (both are sequentially consistent). If it saw the
//! lease, its ratchet came before the lease was withdrawn, and hence before the clock ticked for the release: its snapshot lies
//! below. What is not durable of it (a full disk, `kill -9`) leaves the lease as it was, and the next life waits.
//!
//! # Invariants
//! 1. A snapshot is read only at or below the last acknowledged commit or the end of a lease that is durable and was not given back.
//! 2. After a restart no timestamp at or below the end of a lease in the log is given out, nor at or below its release.
//! 3. A lease that was given back is not taken up again, also not by a record of it that was on its way.
//!
//! # Caveats
//! All ranges of a node share one log, and its lease, which is kept in the first of them. With a full disk a snapshot that needs a
//! new lease cannot be read. Nothing but the log could keep the promise: the same time, named again after a restart with the clock
//! set back, must show the same, and be written below by nobody.

use crate::core::{Core, Outputs, Shared, answer};
use crate::reply::{CommitError, Reply};
use crate::transaction::{Op, Transaction};
use crate::{Node, TxnError};
use clock::{Reading, Timestamp};
use protocol::txn::{Command, RangeId};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Poll, Waker};
use store::Engine;

/// What is asked for and not durable yet.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    proposed: Timestamp,
    waiting: Vec<Arc<Reply>>,
    given_back: bool,
}

impl<E> Shared<E> {
    pub(crate) fn covers(&self, snapshot: Timestamp) -> bool {
        let snapshot = snapshot.as_u64();
        snapshot <= self.visible.load(SeqCst)
            || snapshot <= self.lease_end.load(SeqCst)
            || self.sabotage.ignore_leases()
    }
}

impl<E: Engine> Core<E> {
    /// Asks for a lease up to `least`, or as far as is usual.
    fn ask_for_lease(&mut self, now: &Reading, least: Timestamp) {
        if least <= self.lease.proposed {
            return;
        }
        let Some(range) = self.ranges.keys().next().copied() else { return };
        let usual = match now.trusted() {
            Some(interval) if !self.shared.options.alone => {
                Timestamp::new(interval.latest().physical_us() + self.shared.options.lease_ns / 1000, 0)
            }
            _ => now.interval.earliest(),
        };
        let end = least.max(usual);
        self.lease.proposed = end;
        self.propose(now, Timestamp::MIN, range, Command::Lease { end }, None);
    }

    /// Ahead of need, where others may read.
    pub(crate) fn renew_lease(&mut self, now: &Reading) {
        let Some(interval) = now.trusted().filter(|_| !self.shared.options.alone) else { return };
        let half_us = self.shared.options.lease_ns / 2000;
        self.ask_for_lease(now, Timestamp::new(interval.latest().physical_us() + half_us, 0));
    }

    pub(crate) fn lease_applied(&mut self, end: Timestamp, out: &mut Outputs) {
        if !self.lease.given_back {
            self.shared.lease_end.fetch_max(end.as_u64(), SeqCst);
        }
        self.lease.waiting.drain(..).for_each(|reply| answer(Some(reply), Ok(end), out));
    }

    /// See "A clean stop". Nothing where the lease covers no more than the clock has passed.
    fn give_back_lease(&mut self, now: &Reading) {
        let unused = |end: Timestamp| end > self.shared.clock.last();
        if self.lease.given_back || !unused(self.lease.proposed) {
            return;
        }
        self.lease.given_back = true;
        if !self.shared.sabotage.serve_after_release() {
            self.shared.lease_end.store(0, SeqCst);
        }
        // The first range holds the lease, perhaps in a record on its way; ranges that were split off it hold what it was then.
        let first = self.ranges.keys().next().copied();
        let held = self.ranges.values().filter(|range| Some(range.id()) == first || unused(range.lease_end()));
        let held: Vec<RangeId> = held.map(|range| range.id()).collect();
        for range in held {
            self.propose(now, Timestamp::MIN, range, Command::Release, None);
        }
    }

    pub(crate) fn lease_failed(&mut self, why: &CommitError, out: &mut Outputs) {
        self.lease.proposed = Timestamp::from_u64(self.shared.lease_end.load(SeqCst));
        self.lease.waiting.drain(..).for_each(|reply| answer(Some(reply), Err(why.clone()), out));
    }

    /// A range that was split off while the release was on its way has a copy of the lease from before.
    pub(crate) fn release_too(&mut self, now: &Reading, range: RangeId) {
        if self.lease.given_back {
            self.propose(now, Timestamp::MIN, range, Command::Release, None);
        }
    }

    /// After a restart: what an earlier life promised.
    pub(crate) fn adopt_lease(&mut self) {
        let end = self.ranges.values().map(|range| range.lease_end()).max().unwrap_or_default();
        self.lease.proposed = end;
        self.shared.lease_end.fetch_max(end.as_u64(), SeqCst);
        self.shared.clock.ratchet(end);
        self.shared.ready_at.fetch_max(end.max(self.log.closed()).as_u64(), SeqCst);
    }
}

impl<E: Engine> Node<E> {
    /// The last act of a node that stops, after [`Node::close`]: gives back what is left of its lease. Where there is
    /// something to give back, snapshots beyond the log are refused from now on. Drive the log until [`Node::has_batch`] is false.
    pub fn give_back_lease(&self, now: &Reading) {
        let mut core = self.core.lock();
        // A disk that failed takes nothing.
        if *core.closed.get_or_insert(CommitError::ShuttingDown) == CommitError::ShuttingDown {
            core.give_back_lease(now);
        }
    }

    fn lease_to(&self, now: &Reading, snapshot: Timestamp, waker: &Waker) -> Arc<Reply> {
        let reply = Arc::new(Reply::new(waker));
        let mut core = self.core.lock();
        match core.closed.clone() {
            Some(closed) => reply.give(Err(closed), &mut Vec::new()),
            // It came while this thread was on its way to the lock: nothing else would answer.
            None if self.shared.covers(snapshot) => reply.give(Ok(snapshot), &mut Vec::new()),
            None => {
                core.lease.waiting.push(reply.clone());
                core.ask_for_lease(now, snapshot);
            }
        }
        reply
    }
}

impl<E: Engine> Transaction<E> {
    /// Waits until the snapshot may be read (invariant 1).
    pub(crate) fn under_lease(&mut self, now: &Reading, waker: &Waker) -> Op<()> {
        while !self.node.shared.covers(self.snapshot) {
            let reply = self.lease.get_or_insert_with(|| self.node.lease_to(now, self.snapshot, waker));
            let Some(result) = reply.poll(waker) else { return Poll::Pending };
            self.lease = None;
            if let Err(why) = result {
                return Poll::Ready(Err(TxnError::from(why)));
            }
        }
        Poll::Ready(Ok(()))
    }
}

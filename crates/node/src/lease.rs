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
//! for a sync. A node that is alone reads at what was acknowledged, which is in the log anyway: only a read of the last moments by
//! `AS OF SYSTEM TIME`, or with a token from elsewhere, asks for one.
//!
//! # Invariants
//! 1. A snapshot is read only at or below the last acknowledged commit or the end of a lease that is durable.
//! 2. After a restart no timestamp at or below the end of a lease in the log is given out.
//!
//! # Caveats
//! All ranges of a node share one log, and its lease, which is kept in the first of them. With a full disk a snapshot that needs a
//! new lease cannot be read.

use crate::core::{Core, Outputs, Shared, answer};
use crate::reply::{CommitError, Reply};
use crate::transaction::{Op, Transaction};
use crate::{Node, TxnError};
use clock::{Reading, Timestamp};
use protocol::txn::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Poll, Waker};
use store::Engine;

/// What is asked for and not durable yet.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    proposed: Timestamp,
    waiting: Vec<Arc<Reply>>,
}

impl<E> Shared<E> {
    fn covers(&self, snapshot: Timestamp) -> bool {
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
        self.shared.lease_end.fetch_max(end.as_u64(), SeqCst);
        self.lease.waiting.drain(..).for_each(|reply| answer(Some(reply), Ok(end), out));
    }

    pub(crate) fn lease_failed(&mut self, why: &CommitError, out: &mut Outputs) {
        self.lease.proposed = Timestamp::from_u64(self.shared.lease_end.load(SeqCst));
        self.lease.waiting.drain(..).for_each(|reply| answer(Some(reply), Err(why.clone()), out));
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

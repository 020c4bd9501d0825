//! Negotiated snapshots: the newest one at which a query waits for nobody (002 section 4.4).
//!
//! # Problem
//! Who reads the present meets transactions that are on their way, and waits for them, one range after the other. Who reads what the replica here has
//! resolved (`follow`) waits for none, and sees what was there seconds ago.
//!
//! # Idea
//! All leaders of a query are asked at once, each for the newest snapshot at which it has nothing to wait for in the query's keys; the oldest of their answers is
//! everybody's. It is as old as the longest transaction on its way there, and a round trip.
//!
//! # Invariants
//! 1. A leader that answered `at` never stamps at or below it in that range, and had nothing in flight at or below it in the span: whoever reads the
//!    span at `at` or below finds it decided, also at the leader's successors, whose leases begin above.
//! 2. Only the oldest answer has that of all of them. A newer one may be below what another leader has in flight.
//! 3. An answer lies within the lease under which it was given, and is certainly past by the leader's clock, or is what the asker has seen already.
//! 4. An answer below `least`, or below what is certainly past, says that something in flight is in the way: the asker is told, and does not wait. What its lease or a
//!    split keeps a leader from answering is asked for again, there or at its successor, within the time that any request has.
//!
//! # Caveats
//! A transaction whose coordinator died stands in the way until it is resolved: everybody who reads beside it gets snapshots that grow older meanwhile.

use super::core::Core;
use super::shard::Asker;
use clock::{Reading, Timestamp};
use protocol::door::Answer;
use protocol::txn::{RangeId, Span};
use store::{Engine, StoreError};

impl<E: Engine> Core<E> {
    /// The answer of a leader, under a lease to `end`.
    pub fn settle(
        &mut self,
        now: &Reading,
        asker: Asker,
        (range, end): (RangeId, Timestamp),
        span: &Span,
        least: Timestamp,
    ) -> Result<(), StoreError> {
        let shard = self.shard(range)?;
        if !shard.range.span().covers(span) {
            let answer = self.moved_span(span);
            self.answer(asker, answer);
            return Ok(());
        }
        let before = |at: Timestamp| Timestamp::from_u64(at.as_u64().saturating_sub(1));
        let oldest = shard.flights.oldest_in(span).filter(|_| !self.sabotage.settle_over_flights());
        let earliest = now.trusted().map_or(Timestamp::MIN, |interval| interval.earliest());
        let wanted = earliest.max(self.visible).max(least);
        // A lease that is over stands until its leader steps down, and what lies above a split that is on its way is not known to be this range's. Both pass.
        if wanted > end || self.is_splitting(range, wanted) {
            self.answer(asker, Answer::TryLater);
            return Ok(());
        }
        let at = oldest.map_or(wanted, |oldest| wanted.min(before(oldest)));
        self.keep_below(range, at);
        self.answer(asker, Answer::Settled(at));
        Ok(())
    }
}

//! Where the snapshot lies, and when it moves.

use super::{Op, Transaction};
use crate::options::Consistency;
use crate::{Node, TxnError};
use clock::{Reading, Timestamp};
use protocol::txn::{Span, told_of};
use std::task::{Poll, Waker};
use store::Engine;

/// The uncertainty limit: a version in `(snapshot, limit]` may have been acknowledged before the transaction began.
///
/// True time at begin is at most `latest`. And what this node acknowledged before it was first asked is at most what its clock
/// said then: so a transaction meets few uncertain versions here, and none twice (000 §5.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    latest: Timestamp,
    observed: Option<Timestamp>,
}

impl Limit {
    pub const NONE: Limit = Limit { latest: Timestamp::MIN, observed: None };
    pub fn up_to(latest: Timestamp) -> Self {
        Limit { latest, observed: None }
    }
    /// Whether a version may be uncertain at all.
    pub fn is_some(self) -> bool {
        self.latest > Timestamp::MIN
    }
    /// The limit on this node, whose clock says `clock` at the first contact.
    pub fn settle(&mut self, clock: impl FnOnce() -> Timestamp) -> Timestamp {
        if self.latest == Timestamp::MIN {
            return Timestamp::MIN;
        }
        self.latest.min(*self.observed.get_or_insert_with(clock))
    }
}

impl<E: Engine> Node<E> {
    /// Ratchets the hybrid clock to a snapshot (invariant 3 of `transaction`), unless that lies in the future.
    pub(crate) fn admit(&self, now: &Reading, snapshot: Timestamp) -> Result<(), TxnError> {
        let last = self.shared.clock.last();
        if snapshot <= last {
            return Ok(());
        }
        let mut known = now.interval;
        if now.trusted().is_none() {
            // The `latest` of a bound that is void may be far in the future: what was seen is the better guide.
            known.latest_ns = known.earliest_ns.max(last.physical_us().saturating_mul(1000));
        }
        self.shared.clock.observe(snapshot, known, self.shared.options.tolerance_us).map_err(|refused| {
            self.shared.counters.clock_future_timestamps.one();
            TxnError::SnapshotUnavailable {
                asked: snapshot,
                reason: format!("it lies in the future: true time is at most {}", refused.limit),
                key: None,
            }
        })
    }
}

impl<E: Engine> Transaction<E> {
    /// A statement begins. READ COMMITTED takes a new snapshot; so does any transaction that began a while ago and has neither
    /// read nor written yet. What the clock is worth is asked again, too: `auto` may settle for `hybrid` now.
    ///
    /// # Errors
    /// The snapshot cannot be taken, or the clock cannot give the consistency asked for any more.
    pub fn begin_statement(&mut self, now: &Reading) -> Result<(), TxnError> {
        if !self.draft.begins_anew(now, self.locked) {
            return Ok(());
        }
        self.mode = self.node.settle(now, self.wanted)?;
        if self.mode == Consistency::Strict {
            self.floor = self.floor.max(now.interval.latest());
        }
        self.stats.consistency = self.mode;
        let (snapshot, limit) = self.node.present(now, self.mode, self.wanted, self.token);
        self.draft.reads.forget_uncertified();
        self.move_to(now, snapshot)?;
        self.limit = limit;
        Ok(())
    }

    /// Moves the snapshot, never down.
    pub(super) fn move_to(&mut self, now: &Reading, snapshot: Timestamp) -> Result<(), TxnError> {
        if snapshot > self.snapshot {
            self.node.admit(now, snapshot)?;
            self.snapshot = snapshot;
            if let Some(guard) = &mut self.guard {
                guard.move_to(snapshot);
            }
        }
        Ok(())
    }

    /// Moves the snapshot to the present, at least to `least`, if nothing read so far changed in between.
    pub(super) fn refresh(&mut self, now: &Reading, least: Timestamp, why: &'static str, waker: &Waker) -> Op<()> {
        let target = match self.refreshing {
            Some(target) if target >= least => target,
            _ => self.node.present(now, self.mode, self.wanted, self.token).0.max(least).max(self.snapshot),
        };
        if let Err(refused) = self.node.admit(now, target) {
            return Poll::Ready(Err(refused));
        }
        self.refreshing = Some(target);
        match self.changed_up_to(target, waker) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(e)) => {
                self.refreshing = None;
                return Poll::Ready(Err(e));
            }
            Poll::Ready(Ok(Some((key, at)))) => {
                self.refreshing = None;
                self.node.shared.counters.txn_refresh_failures.one();
                let reason = format!("{why}, and what was read has changed at {at}");
                return Poll::Ready(Err(TxnError::Restart { reason, key: Some(key) }));
            }
            Poll::Ready(Ok(None)) => {}
        }
        self.refreshing = None;
        self.draft.reads.unchanged_up_to(target);
        self.stats.refreshes += 1;
        self.node.shared.counters.txn_refreshes.one();
        Poll::Ready(self.move_to(now, target))
    }

    /// Something read that has a version in `(since, target]`; waits for what is in flight there.
    fn changed_up_to(&self, target: Timestamp, waker: &Waker) -> Op<Option<(bytes::Bytes, Timestamp)>> {
        let shared = &self.node.shared;
        let versions = &shared.store.0;
        let highest = versions.collected_anywhere();
        for seen in self.draft.reads.iter() {
            // What was deleted after it was seen may be forgotten by now: nobody can say that it is unchanged.
            let collected = match &seen.end {
                _ if seen.since >= highest => Timestamp::MIN,
                None => versions.collected_of(&seen.start),
                Some(end) => versions.collected_in(&(seen.start.clone()..end.clone())),
            };
            if seen.since < collected {
                return Poll::Ready(Ok(Some((told_of(&seen.start, seen.end.as_ref()), collected))));
            }
            let flying = match &seen.end {
                None => shared.inflight.on_key(&seen.start, target),
                Some(end) => {
                    let span = Span { start: seen.start.clone(), end: end.clone() };
                    shared.inflight.in_span(&span, target, false).map(|(_, at)| at)
                }
            };
            if let Some(at) = flying {
                if shared.inflight.wait(at, waker) {
                    return Poll::Pending;
                }
                return self.changed_up_to(target, waker);
            }
            let changed = match &seen.end {
                None => versions
                    .version_between(&seen.start, seen.since, target)
                    .map(|at| at.map(|at| (seen.start.clone(), at))),
                Some(end) => versions.version_between_in(&(seen.start.clone()..end.clone()), seen.since, target),
            };
            match changed {
                Err(e) => return Poll::Ready(Err(e.into())),
                Ok(Some(found)) => return Poll::Ready(Ok(Some(found))),
                Ok(None) => {}
            }
        }
        Poll::Ready(Ok(None))
    }

    /// Whether the mode has an uncertainty limit at all.
    pub(super) fn limit_here(&mut self) -> Timestamp {
        if self.mode == Consistency::Strict || self.draft.past {
            return Timestamp::MIN;
        }
        self.limit.settle(|| self.node.shared.clock.last())
    }
}

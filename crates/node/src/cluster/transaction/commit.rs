//! The end of a transaction.

use super::super::commit::COMMIT_US;
use super::super::core::Core;
use super::super::lent::Told;
use super::super::stage::{Divided, fits_an_entry};
use super::{Op, Reply, Transaction, TxnError};
use crate::watch::Watch;
use clock::{Reading, Timestamp};
use protocol::door::VERSION_OF_REFERENCES;
use protocol::txn::{Batch, RangeId, Read};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::Engine;

/// A commit that cannot say until when it may come.
pub(crate) fn untrusted() -> TxnError {
    TxnError::ClockUnavailable(
        "the clock cannot be trusted, and with other nodes a write waits until its bound is known: nothing was written, run the transaction again later".to_owned(),
    )
}

/// What is not sent has not happened: better than to find out nothing of what was.
fn not_out_of_reach<E: Engine>(core: &Core<E>, parts: &BTreeMap<RangeId, Batch>) -> Result<(), TxnError> {
    let Some((range, part)) = parts.iter().find(|(range, _)| core.out_of_reach(**range, false)) else { return Ok(()) };
    let staged = part.staged.as_ref().map(|whole| &whole.span.start);
    let key = part.writes.first().map(|write| &write.key).or(staged);
    Err(core.unavailable(*range, key.cloned()))
}

impl<E: Engine> Transaction<E> {
    /// Commits: the commit timestamp, once it is durable in majorities and certainly past.
    ///
    /// An error says that nothing happened, and will not, but for [`TxnError::CommitUnknown`] and [`TxnError::Unacknowledged`].
    pub fn commit(&mut self, now: &Reading, waker: &Waker) -> Op<Timestamp> {
        if self.reply.is_none() {
            // Who refuses a commit does not say what it has stamped.
            self.forget_uncertainty();
            if self.draft.buffer.is_empty() {
                self.member.counters().txn_commits_readonly.one();
                self.end();
                return Poll::Ready(Ok(self.snapshot));
            }
            if let Err(why) = self.settle_again(now) {
                self.rollback();
                return Poll::Ready(Err(why));
            }
            let latest = match self.latest_for_commit(now, waker) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(latest) => latest,
            };
            if let Err(why) = latest.and_then(|latest| self.send_commit(now, latest, waker)) {
                self.rollback();
                return Poll::Ready(Err(why));
            }
        }
        let Some(reply) = self.reply.clone() else { return Poll::Pending };
        let Some(result) = reply.poll(waker) else { return Poll::Pending };
        self.stats.commit_wait = reply.wait();
        // Of a clock that is in doubt nothing is learned.
        if result.is_ok() && self.told.is_none() {
            self.member.look().took(reply.age_us(now.interval.earliest()));
        }
        self.conclude(result.is_ok());
        Poll::Ready(result.map_err(TxnError::from))
    }

    /// `latest`: true time is at most this, and who said so.
    fn send_commit(
        &mut self,
        now: &Reading,
        (latest, told): (Timestamp, Option<Told>),
        waker: &Waker,
    ) -> Result<(), TxnError> {
        let txn = self.id_or_new();
        let sabotage = self.member.sabotage();
        let mut batch = self.draft.take_batch(txn, sabotage);
        // Before that nobody asks for it, and not everybody can read it.
        if batch.tells_of_references() && !self.member.look().in_force(VERSION_OF_REFERENCES) {
            batch.reads.retain(|read| !matches!(read, Read::Referred { .. }));
        }
        if !sabotage.without_until() {
            batch.until = Some(Timestamp::new(latest.physical_us() + COMMIT_US, 0));
        }
        let reply = Arc::new(Reply::new(waker));
        reply.began(now.interval.earliest());
        self.reply = Some(reply.clone());
        let floor = self.floor.max(self.snapshot);
        let mut core = self.member.lock();
        if core.closed {
            return Err(TxnError::ShuttingDown);
        }
        let limits = core.options.limits;
        if fits_an_entry(&batch, &limits) {
            let parts = core.routes.divide(batch);
            not_out_of_reach(&core, &parts)?;
            core.commit(now, txn, floor, parts, &reply, 0);
            return core.run(now).map_err(TxnError::from);
        }
        let routes = core.routes.clone();
        drop(core);
        let divided = Divided::of(batch, &routes, &limits);
        let mut core = self.member.lock();
        not_out_of_reach(&core, &divided.batches)?;
        match divided.is_staged() {
            true => core.stage(now, txn, floor, divided, &reply, told),
            false => core.commit(now, txn, floor, divided.batches, &reply, 0),
        }
        core.run(now).map_err(TxnError::from)
    }

    /// Whether a commit that is pending now may wait for nobody knows how long to be shown. Cheap.
    pub fn is_held_back(&self, now: &Reading) -> bool {
        let set_back = || Watch::set_back_ns(self.member.options(), now, self.member.clock_last()) > 0;
        let doubts = || self.borrowing.is_some() || self.member.in_doubt(now);
        let held = || now.trusted().is_none() || set_back() || doubts();
        !self.ended && !self.member.sabotage().skip_rule_one() && held()
    }

    /// Ends the wait for a commit that is certain and held back for nobody knows how long; the error says what became of it. `None`: it is not
    /// certain yet, or will be past within the clock's error.
    pub fn give_up_commit(&mut self, now: &Reading) -> Option<TxnError> {
        if !self.is_held_back(now) {
            return None;
        }
        let (level, reason) = self.member.clock_level_of(now);
        let Some(reply) = &self.reply else {
            // It asks what time it is, and was not sent.
            self.rollback();
            let why = format!(
                "the clock is {level} ({reason}), and no other node has said what time it is yet: nothing was written, run the transaction again later"
            );
            return Some(TxnError::ClockUnavailable(why));
        };
        let at = reply.committed_at()?;
        self.conclude(true);
        Some(TxnError::Unacknowledged { at, clock: format!("the clock is {level} ({reason})") })
    }

    /// Ends a commit whose parts are on their way still, wherever they wait: it is not committed, and will not be (`stage`, invariant 1). `false`: there is nothing of
    /// that kind.
    pub fn give_up_parts(&mut self) -> bool {
        let sends = self.id.is_some_and(|id| self.member.look().sending.contains_key(&id));
        if sends {
            self.rollback();
        }
        sends
    }

    /// Counts what became of it, and ends it.
    fn conclude(&mut self, committed: bool) {
        let counters = self.member.counters();
        if committed {
            counters.txn_commits.one()
        } else {
            counters.txn_aborts.one()
        }
        self.end();
    }
}

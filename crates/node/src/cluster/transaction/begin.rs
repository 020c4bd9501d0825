//! How a transaction begins, and where its snapshot lies.

use super::{BeginOptions, Consistency, Draft, Member, Op, Stats, Transaction, TxnError};
use crate::options::{SnapshotAge, Wanted};
use clock::{Reading, Timestamp};
use std::sync::Arc;
use std::task::{Poll, Waker};
use store::Engine;

/// Snapshots that are tuned are at most so old, microseconds.
const SNAPSHOT_AGE_US_MAX: u64 = 1_000_000;

impl<E: Engine> Member<E> {
    /// A snapshot of the present for this mode (rule 2), and the limit up to which a version is uncertain.
    fn present(&self, now: &Reading, mode: Consistency, wanted: Wanted, token: Timestamp) -> (Timestamp, Timestamp) {
        // What is read at a leader holds its writers back up to there: a clock that was proved wrong would do that to all of them.
        let by_peers = self.watch().present_by_peers(now).filter(|_| !self.sabotage().read_ahead_of_peers());
        let earliest = by_peers.unwrap_or_else(|| now.interval.earliest());
        let last = if by_peers.is_some() { Timestamp::MIN } else { self.clock_last() };
        let hybrid = last.max(earliest).max(token);
        let aged = |present: Timestamp| match self.age_us(now, wanted.snapshot_age) {
            0 => present,
            us => Timestamp::new(present.physical_us().saturating_sub(us), 0),
        };
        match mode {
            Consistency::None => {
                // Whoever is asked for an age that is tuned holds the core, too.
                let wanted = aged(earliest).max(token.min(earliest));
                (self.look().what_is_here(wanted), Timestamp::MIN)
            }
            Consistency::Token => (aged(last.max(earliest)).max(token), Timestamp::MIN),
            // The `latest` of a bound that is void may be far in the future.
            Consistency::Strict => {
                (now.trusted().map_or(hybrid, |interval| interval.latest()).max(token), Timestamp::MIN)
            }
            Consistency::Hybrid | Consistency::Auto => (hybrid, wanted.uncertainty.limit(now, hybrid)),
        }
    }

    fn age_us(&self, now: &Reading, age: SnapshotAge) -> u64 {
        let us = match age {
            SnapshotAge::Present => return 0,
            SnapshotAge::Fixed(us) => us,
            SnapshotAge::Tuned => {
                let apart_us = now.interval.error_ns().div_ceil(1_000).saturating_mul(2);
                self.look().commits_take_us.saturating_add(apart_us).min(SNAPSHOT_AGE_US_MAX)
            }
        };
        if self.sabotage().age_beyond_what_is_kept() { us } else { us.min(self.look().collection.age_us_max()) }
    }

    fn settle(&self, now: &Reading, wanted: Wanted) -> Result<Consistency, TxnError> {
        self.watch().settle(self.options(), self.sabotage(), now, self.clock_last(), wanted)
    }

    /// A timestamp that came from outside may not lie further ahead than true time can.
    fn admit(&self, now: &Reading, asked: Timestamp) -> Result<(), TxnError> {
        let last = self.clock_last();
        let latest = now.trusted().map_or(last, |interval| interval.latest()).max(last);
        let limit =
            Timestamp::new(latest.physical_us().saturating_add(self.options().tolerance_us), Timestamp::LOGICAL_MAX);
        if asked <= limit {
            return Ok(());
        }
        self.counters().clock_future_timestamps.one();
        let reason = format!("it lies in the future: true time is at most {limit}");
        Err(TxnError::SnapshotUnavailable { asked, reason, key: None })
    }
}

impl<E: Engine> Transaction<E> {
    /// Begins.
    ///
    /// # Errors
    /// The clock cannot give the consistency asked for; the token or the snapshot lies in the future.
    pub fn begin(member: &Arc<Member<E>>, now: &Reading, options: &BeginOptions) -> Result<Self, TxnError> {
        let wanted = options.wanted();
        let mode = if options.as_of.is_some() { Consistency::None } else { member.settle(now, wanted)? };
        // `none` waits for no token; it takes one that is past for what its session has seen.
        let asked = if mode == Consistency::None { Timestamp::MIN } else { options.token };
        let token = if options.as_of.is_some() { Timestamp::MIN } else { options.token };
        member.admit(now, asked)?;
        let (snapshot, limit) = match options.as_of {
            Some(at) => (at, Timestamp::MIN),
            None => member.present(now, mode, wanted, token),
        };
        // What was shown here is no future, wherever the clock was set back to.
        if options.as_of.is_some_and(|at| at > member.visible() && now.interval.is_future(at)) {
            let reason = format!("it lies in the future: true time is at most {}", now.interval.latest());
            return Err(TxnError::SnapshotUnavailable { asked: snapshot, reason, key: None });
        }
        member.counters().txn_begins.one();
        member.look().collection.open(snapshot);
        let floor = if mode == Consistency::Strict { now.interval.latest().max(asked) } else { asked };
        let limit = if member.sabotage().skip_uncertainty() { Timestamp::MIN } else { limit };
        Ok(Transaction {
            member: member.clone(),
            draft: Draft::new(now, options),
            wanted,
            mode,
            token,
            floor,
            snapshot,
            limit,
            caught_up: Vec::new(),
            answered_by: member.look().me(),
            id: None,
            locked: false,
            session: options.session,
            lock_marks: Vec::new(),
            skip_mark: None,
            call: None,
            asked: None,
            refreshing: None,
            negotiating: None,
            reply: None,
            hasty: false,
            ended: false,
            stats: Stats { consistency: mode, bound_ns: now.interval.error_ns(), ..Stats::default() },
        })
    }

    /// A statement begins. READ COMMITTED takes a new snapshot; so does any transaction that began a while ago and has neither
    /// read nor written yet.
    ///
    /// # Errors
    /// The clock cannot give the consistency asked for any more.
    pub fn begin_statement(&mut self, now: &Reading) -> Result<(), TxnError> {
        if !self.draft.begins_anew(now, self.locked) {
            return Ok(());
        }
        self.mode = self.member.settle(now, self.wanted)?;
        if self.mode == Consistency::Strict {
            self.floor = self.floor.max(now.interval.latest());
        }
        self.stats.consistency = self.mode;
        let wanted = if self.locked { self.wanted_now() } else { self.wanted };
        let (snapshot, limit) = self.member.present(now, self.mode, wanted, self.token);
        self.draft.reads.forget_uncertified();
        self.move_to(snapshot);
        self.limit = limit;
        self.caught_up.clear();
        Ok(())
    }

    /// As the transaction wants it, without an age: whoever has waited for a lock, or moves up, is to see what was done meanwhile.
    fn wanted_now(&self) -> Wanted {
        Wanted { snapshot_age: SnapshotAge::Present, ..self.wanted }
    }

    /// Moves the snapshot to the present, at least to `least`, if nothing read so far changed in between.
    pub(super) fn refresh(&mut self, now: &Reading, least: Timestamp, why: &'static str, waker: &Waker) -> Op<()> {
        if self.refreshing.is_none() {
            let target =
                self.member.present(now, self.mode, self.wanted_now(), self.token).0.max(least).max(self.snapshot);
            if let Err(refused) = self.member.admit(now, target) {
                return Poll::Ready(Err(refused));
            }
            self.begin_refresh(target);
        }
        let (target, changed) = match self.go_on_refreshing(now, waker) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(e)) => {
                self.stop_waiting();
                return Poll::Ready(Err(e));
            }
            Poll::Ready(Ok(found)) => found,
        };
        self.stop_waiting();
        if let Some((key, at)) = changed {
            self.member.counters().txn_refresh_failures.one();
            let reason = format!("{why}, and what was read has changed at {at}");
            return Poll::Ready(Err(TxnError::Restart { reason, key: Some(key) }));
        }
        self.draft.reads.unchanged_up_to(target);
        self.stats.refreshes += 1;
        self.member.counters().txn_refreshes.one();
        self.move_to(target);
        Poll::Ready(Ok(()))
    }
}

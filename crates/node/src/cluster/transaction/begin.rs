//! How a transaction begins, and where its snapshot lies.

use super::{BeginOptions, Consistency, Draft, LockMark, Member, NodeId, Op, Stats, Transaction, TxnError};
use crate::options::{IfRefused, KeptUncertainty, SnapshotAge, Wanted};
use clock::{Reading, Timestamp};
use std::sync::Arc;
use std::task::{Poll, Waker, ready};
use store::Engine;

/// Snapshots that are tuned are at most so old, microseconds.
const SNAPSHOT_AGE_US_MAX: u64 = 1_000_000;

impl<E: Engine> Member<E> {
    /// A snapshot of the present for this mode (rule 2), and the limit up to which a version is uncertain.
    pub(super) fn present(
        &self,
        now: &Reading,
        mode: Consistency,
        wanted: Wanted,
        token: Timestamp,
    ) -> (Timestamp, Timestamp) {
        let earliest = now.interval.earliest();
        let last = self.clock_last();
        let hybrid = last.max(earliest).max(token);
        let aged = |present: Timestamp| self.aged(now, present, wanted);
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

    /// This present, or as much before it as the transaction wants.
    pub(super) fn aged(&self, now: &Reading, present: Timestamp, wanted: Wanted) -> Timestamp {
        match self.age_us(now, wanted.snapshot_age) {
            0 => present,
            us => Timestamp::new(present.physical_us().saturating_sub(us), 0),
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
        let settled = match options.as_of {
            Some(_) => Ok(Consistency::None),
            None => member.settle(now, wanted),
        };
        let (mode, is_refused) = settle_as(settled, wanted, options.if_refused)?;
        // `none` waits for no token; it takes one that is past for what its session has seen.
        let asked = if mode == Consistency::None { Timestamp::MIN } else { options.token };
        let token = if options.as_of.is_some() { Timestamp::MIN } else { options.token };
        let doubts = member.in_doubt(now);
        let is_placed = !is_refused && (!doubts || Self::goes_by_this_clock(mode, options));
        let (snapshot, limit) = match options.as_of {
            Some(at) => (at, Timestamp::MIN),
            // Nothing was read yet: it counts from what its session has seen.
            None if !is_placed => (asked, Timestamp::MIN),
            None => {
                member.admit(now, asked)?;
                member.present(now, mode, wanted, token)
            }
        };
        let is_placed = is_placed || options.as_of.is_some_and(|at| at <= member.resolved_by_all(now));
        // What was shown here is no future, wherever the clock was set back to.
        if !doubts && options.as_of.is_some_and(|at| at > member.visible() && now.interval.is_future(at)) {
            let reason = format!("it lies in the future: true time is at most {}", now.interval.latest());
            return Err(TxnError::SnapshotUnavailable { asked: snapshot, reason, key: None });
        }
        member.counters().txn_begins.one();
        let is_open = is_placed || options.as_of.is_some();
        if is_open {
            member.look().collection.open(snapshot);
        }
        let floor = if mode == Consistency::Strict && !is_refused { now.interval.latest().max(asked) } else { asked };
        let limit = if member.sabotage().skip_uncertainty() { Timestamp::MIN } else { limit };
        let mut begun = Transaction {
            member: member.clone(),
            draft: Draft::new(now, options),
            wanted,
            mode,
            token,
            floor,
            snapshot,
            is_placed,
            is_refused,
            if_refused: options.if_refused,
            is_open,
            told: None,
            borrowing: None,
            limit,
            caught_up: Vec::new(),
            kept: None,
            answered_by: member.look().me(),
            id: None,
            locked: false,
            locks_asked: 0,
            session: options.session,
            lock_marks: Vec::new(),
            noted_mark: LockMark::default(),
            skip_mark: None,
            call: None,
            asked: None,
            moves_above: None,
            refreshing: None,
            ahead: None,
            negotiating: None,
            reply: None,
            hasty: false,
            ended: false,
            stats: Stats { consistency: mode, bound_ns: now.interval.error_ns(), ..Stats::default() },
        };
        if let Some(kept) = &options.kept {
            begun.keep(now, kept.clone());
        }
        Ok(begun)
    }

    /// After [`TxnError::Restart`]: what is kept by who begins anew, where it was an uncertain version, or a newer one of a locked row, that the snapshot could
    /// not move past.
    pub fn kept_uncertainty(&self) -> Option<KeptUncertainty> {
        self.kept.clone()
    }

    /// The snapshot could not move up to `target`: whoever begins anew begins there.
    fn could_not_move(&mut self, target: Timestamp) {
        if self.limit > Timestamp::MIN && !self.member.sabotage().forget_uncertainty() {
            self.kept = Some(self.uncertainty(target));
        }
    }

    /// Whoever begins anew from here on begins as if for the first time.
    pub(super) fn forget_uncertainty(&mut self) {
        self.kept = None;
    }

    fn uncertainty(&self, least: Timestamp) -> KeptUncertainty {
        let caught_up = self.caught_up.iter().map(|node| node.0).collect();
        KeptUncertainty { limit: self.limit, least: least.max(self.snapshot), caught_up }
    }

    /// What was sent once begins again, and its snapshot was taken anew: nothing that was acknowledged before it was sent lies above `kept.limit`, or above the snapshot at
    /// who was met before. (Only what has a limit itself: what `strict` sees lies below its snapshot.)
    fn keep(&mut self, now: &Reading, kept: KeptUncertainty) {
        if self.limit == Timestamp::MIN || !self.is_placed || self.member.admit(now, kept.least).is_err() {
            return;
        }
        self.move_to(kept.least);
        self.limit = self.limit.min(kept.limit);
        self.caught_up = kept.caught_up.iter().copied().map(NodeId).collect();
        self.kept = Some(kept);
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
        let before = self.member.sabotage().keep_uncertainty().then(|| self.uncertainty(self.snapshot));
        self.begin_with(now, before)
    }

    /// As [`Transaction::begin_statement`], for the statement that was begun last, once more: what its client has seen by then is what it had seen before.
    ///
    /// # Errors
    /// As [`Transaction::begin_statement`].
    pub fn repeat_statement(&mut self, now: &Reading) -> Result<(), TxnError> {
        if !self.draft.begins_anew(now, self.locked) {
            return Ok(());
        }
        let kept = self.kept.clone();
        self.begin_with(now, kept)
    }

    fn begin_with(&mut self, now: &Reading, kept: Option<KeptUncertainty>) -> Result<(), TxnError> {
        self.kept = None;
        self.forget_ahead();
        let settled = self.member.settle(now, self.wanted);
        (self.mode, self.is_refused) = settle_as(settled, self.wanted, self.if_refused)?;
        self.draft.reads.forget_uncertified();
        self.caught_up.clear();
        if self.is_refused {
            self.is_placed = false;
            return Ok(());
        }
        if self.mode == Consistency::Strict {
            self.floor = self.floor.max(now.interval.latest());
        }
        self.stats.consistency = self.mode;
        let mode = self.mode;
        if matches!(mode, Consistency::Token | Consistency::None) && self.member.in_doubt(now) {
            (self.is_placed, self.limit) = (false, Timestamp::MIN);
            return Ok(());
        }
        let wanted = if self.locked { self.wanted_now() } else { self.wanted };
        let (snapshot, limit) = self.member.present(now, mode, wanted, self.token);
        self.is_placed = true;
        self.move_to(snapshot);
        self.limit = limit;
        if let Some(kept) = kept {
            self.keep(now, kept);
        }
        Ok(())
    }

    /// Whether its snapshot is this node's to give, in doubt or not: what needs the bound was settled, and may do without one.
    fn goes_by_this_clock(mode: Consistency, options: &BeginOptions) -> bool {
        options.as_of.is_none() && !matches!(mode, Consistency::Token | Consistency::None)
    }

    /// Settles anew what was refused; what needs the bound has its snapshot then.
    pub(super) fn settle_again(&mut self, now: &Reading) -> Result<(), TxnError> {
        if !self.is_refused {
            return Ok(());
        }
        let mode = self.member.settle(now, self.wanted)?;
        // Nothing is settled where the token is refused: else what needs the bound would go by what is lent.
        self.member.admit(now, self.token)?;
        (self.mode, self.is_refused, self.stats.consistency) = (mode, false, mode);
        // What it had moved past was uncertain to the snapshot before.
        self.caught_up.clear();
        self.kept = None;
        if self.mode == Consistency::Strict {
            self.floor = self.floor.max(now.interval.latest());
        }
        let (snapshot, limit) = self.member.present(now, self.mode, self.wanted, self.token);
        self.limit = if self.member.sabotage().skip_uncertainty() { Timestamp::MIN } else { limit };
        self.is_placed = true;
        self.move_to(snapshot);
        Ok(())
    }

    /// As the transaction wants it, without an age: whoever has waited for a lock, or moves up, is to see what was done meanwhile.
    pub(super) fn wanted_now(&self) -> Wanted {
        Wanted { snapshot_age: SnapshotAge::Present, ..self.wanted }
    }

    /// Moves the snapshot to the present, at least to `least`, if nothing read so far changed in between.
    pub(super) fn refresh(&mut self, now: &Reading, least: Timestamp, why: &'static str, waker: &Waker) -> Op<()> {
        if self.refreshing.is_none() {
            let least = *self.moves_above.get_or_insert(least);
            let lent = ready!(self.present_lent(now, waker));
            self.moves_above = None;
            let lent = match lent {
                Ok(lent) => lent,
                Err(why) => return Poll::Ready(Err(why)),
            };
            // Whoever leads serves within its lease, whatever was lent.
            let own = || self.member.present(now, self.mode, self.wanted_now(), self.token).0;
            let target = lent.unwrap_or_else(own).max(least).max(self.snapshot);
            if lent.is_none()
                && let Err(refused) = self.member.admit(now, target)
            {
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
            self.could_not_move(target);
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

/// The mode, and whether it is refused; `Err`: at once.
fn settle_as(
    settled: Result<Consistency, TxnError>,
    wanted: Wanted,
    if_refused: IfRefused,
) -> Result<(Consistency, bool), TxnError> {
    match (settled, if_refused) {
        (Err(TxnError::ClockUnavailable(_)), IfRefused::WhenItReads) => Ok((wanted.consistency, true)),
        (Err(TxnError::ClockUnavailable(_)), IfRefused::Token) => Ok((Consistency::Token, false)),
        (settled, _) => Ok((settled?, false)),
    }
}

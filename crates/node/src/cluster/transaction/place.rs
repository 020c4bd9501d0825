//! The time of a transaction whose node doubts its clock: see `cluster::lent`.

use super::{Consistency, Member, Op, Timestamp, Transaction, TxnError};
use crate::cluster::lent::{Borrowed, Told};
use crate::options::Wanted;
use bytes::Bytes;
use clock::{ClockRefusal, Reading};
use std::task::{Poll, Waker};
use store::Engine;

impl<E: Engine> Member<E> {
    /// Whether this node's clock is in doubt, so that what needs no bound goes by leaders' clocks. Cheap where it is not.
    pub fn in_doubt(&self, now: &Reading) -> bool {
        !self.watch().level(self.options(), now, self.clock_last()).serves_now() && self.look().in_doubt(now)
    }

    /// The present as it was told, for this mode.
    fn present_as_told(
        &self,
        now: &Reading,
        told: &Told,
        mode: Consistency,
        wanted: Wanted,
        token: Timestamp,
    ) -> Timestamp {
        let earliest = told.earliest();
        let aged = self.aged(now, earliest, wanted);
        match mode {
            Consistency::None => self.look().what_is_here(aged.max(token.min(earliest))),
            _ => aged.max(token),
        }
    }

    /// The snapshot of one who takes what is there, where nobody says what time it is and the clock here does not either: what the replicas here have. By its own clock only
    /// where there are none.
    fn here(&self, now: &Reading, wanted: Wanted, token: Timestamp) -> Timestamp {
        match self.resolved_by_all(now) {
            at if at > Timestamp::MIN && !self.sabotage().place_hastily() => at,
            _ => self.present(now, Consistency::None, wanted, token).0,
        }
    }

    /// A timestamp that came from outside may not lie further ahead than true time can, as far as somebody said what time it is.
    fn admit_as_told(&self, now: &Reading, told: &Told, asked: Timestamp, tolerance_us: u64) -> Result<(), TxnError> {
        if !told.is_future(now, asked, tolerance_us) {
            return Ok(());
        }
        self.counters().clock_future_timestamps.one();
        let reason = format!("it lies in the future: true time is at most {}", told.latest(now));
        Err(TxnError::SnapshotUnavailable { asked, reason, key: None })
    }
}

impl<E: Engine> Transaction<E> {
    /// Takes the snapshot that the clock here could not give. Whatever reads or locks does so first; nothing is left to be done where it has one.
    pub fn place(&mut self, now: &Reading, waker: &Waker) -> Op<()> {
        if self.is_placed {
            return Poll::Ready(Ok(()));
        }
        match self.settle_again(now) {
            Err(why) => return Poll::Ready(Err(why)),
            Ok(()) if self.is_placed => return Poll::Ready(Ok(())),
            Ok(()) => {}
        }
        // What needs the bound takes no snapshot that was lent (`lent`, 7 of decision 203).
        if !self.draft.past && !matches!(self.mode, Consistency::Token | Consistency::None) {
            let (level, reason) = self.member.clock_level_of(now);
            return Poll::Ready(Err(TxnError::ClockUnavailable(ClockRefusal { level, reason }.to_string())));
        }
        let told = match self.borrow(now, waker) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(told)) => told,
            // Who hears nobody has what is here: no leader is asked for that.
            Poll::Ready(Err(TxnError::Unavailable { .. })) if self.takes_what_is_here() => {
                let snapshot = self.member.here(now, self.wanted, self.token);
                self.place_at(snapshot, None);
                return Poll::Ready(Ok(()));
            }
            Poll::Ready(Err(why)) => return Poll::Ready(Err(why)),
        };
        let (member, wanted) = (self.member.clone(), if self.locked { self.wanted_now() } else { self.wanted });
        let snapshot = match (told, self.draft.past) {
            (Some(told), true) => {
                if let Err(why) = member.admit_as_told(now, &told, self.snapshot, 0) {
                    return Poll::Ready(Err(why));
                }
                self.snapshot
            }
            (None, true) => self.snapshot,
            (Some(told), false) => {
                let asked = if self.mode == Consistency::None { Timestamp::MIN } else { self.token };
                if let Err(why) = member.admit_as_told(now, &told, asked, member.options().tolerance_us) {
                    return Poll::Ready(Err(why));
                }
                member.present_as_told(now, &told, self.mode, wanted, self.token)
            }
            (None, false) => member.present(now, self.mode, wanted, self.token).0,
        };
        self.place_at(snapshot, told);
        Poll::Ready(Ok(()))
    }

    fn place_at(&mut self, snapshot: Timestamp, told: Option<Told>) {
        self.is_placed = true;
        self.told = told;
        self.move_to(snapshot);
    }

    /// As [`Transaction::place`], for whoever is about to read or lock this key, so that an error names it.
    pub(super) fn place_for(&mut self, now: &Reading, about: &[u8], waker: &Waker) -> Op<()> {
        self.place(now, waker).map_err(|mut why| {
            if let TxnError::Unavailable { key: key @ None, .. } = &mut why {
                *key = Some(Bytes::copy_from_slice(about));
            }
            why
        })
    }

    /// Whether it has what is here where no leader says what time it is. A look that is not to wait is no reason: whoever comes after it in the same transaction waits.
    fn takes_what_is_here(&self) -> bool {
        let waited = !self.hasty || self.member.look().hears_nobody() || self.member.sabotage().place_hastily();
        self.mode == Consistency::None && !self.draft.past && waited
    }

    /// What time it is by another's clock; `None`: nobody lends.
    pub(super) fn borrow(&mut self, now: &Reading, waker: &Waker) -> Op<Option<Told>> {
        let member = self.member.clone();
        let going = self.borrowing.take();
        let hasty = self.hasty;
        match member.lock().borrow(now, going, hasty, waker) {
            Borrowed::Asked(going) => {
                self.borrowing = Some(going);
                Poll::Pending
            }
            Borrowed::Answered(answer) => Poll::Ready(answer),
        }
    }

    /// The present that a snapshot moves up to, at a node that doubts its clock; `None`: as its own clock has it.
    pub(super) fn present_lent(&mut self, now: &Reading, waker: &Waker) -> Op<Option<Timestamp>> {
        if self.borrowing.is_none() && !self.member.in_doubt(now) {
            return Poll::Ready(Ok(None));
        }
        self.borrow(now, waker).map(|told| {
            let told = told?;
            self.told = told.or(self.told);
            Ok(told.map(|told| self.member.present_as_told(now, &told, self.mode, self.wanted_now(), self.token)))
        })
    }

    /// Up to when true time lies, for the end of the time in which this commit may come: by the own clock, or as a leader says; it is refused where that is not known, or lies
    /// below what it must be above (`lent`, invariant 5).
    pub(super) fn latest_for_commit(&mut self, now: &Reading, waker: &Waker) -> Op<(Timestamp, Option<Told>)> {
        let by_this_clock = || Poll::Ready(now.trusted().map(|own| (own.latest(), None)).ok_or_else(super::untrusted));
        if self.borrowing.is_none() && !self.member.in_doubt(now) {
            return by_this_clock();
        }
        let told = match self.told.filter(|told| told.is_fresh(now)) {
            Some(told) => Some(told),
            None => match self.borrow(now, waker) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(told)) => told,
                Poll::Ready(Err(why)) => return Poll::Ready(Err(why)),
            },
        };
        let Some(told) = told else { return by_this_clock() };
        self.told = Some(told);
        let floor = self.floor.max(self.snapshot);
        if told.is_future(now, floor, self.member.options().tolerance_us) {
            let (level, reason) = self.member.clock_level_of(now);
            let why = format!(
                "{}: nothing was written, as the transaction comes after {floor}, and true time is at most {} by the node that was asked instead; run it again",
                ClockRefusal { level, reason },
                told.latest(now)
            );
            return Poll::Ready(Err(TxnError::ClockUnavailable(why)));
        }
        Poll::Ready(Ok((told.latest(now), Some(told))))
    }
}

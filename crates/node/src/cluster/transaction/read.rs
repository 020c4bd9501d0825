//! Point and span reads.

use super::{Answer, Chunk, NodeId, Op, Request, Transaction, TxnError, unfitting};
use crate::cluster::gateway::NOBODY;
use crate::cluster::version::VERSION_OF_CATCHING_UP;
use crate::transaction::draft::Keep;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::door::{Look, Seen, VERSION_OF_REFERENCES};
use protocol::txn::Span;
use std::task::{Poll, Waker, ready};
use store::Engine;

impl<E: Engine> Transaction<E> {
    /// The value of a key: own write first, then the snapshot's. `certified`: to be certified at every isolation level.
    pub fn get(&mut self, now: &Reading, key: &[u8], certified: bool, waker: &Waker) -> Op<Option<Bytes>> {
        self.read(now, key, Keep::of(certified), waker)
    }

    /// As [`Transaction::get`], for a look that promises nothing: it is not remembered, so others may change what was seen, and what
    /// is in flight is not waited for.
    pub fn peek(&mut self, now: &Reading, key: &[u8], waker: &Waker) -> Op<Option<Bytes>> {
        self.read(now, key, Keep::Nothing, waker)
    }

    /// As [`Transaction::get`], and not remembered: others may change it, also while the snapshot moves over it. Whoever goes by what he saw
    /// says what of it he relies on: [`Transaction::rely`].
    pub fn observe(&mut self, now: &Reading, key: &[u8], waker: &Waker) -> Op<Option<Bytes>> {
        self.read(now, key, Keep::Unremembered, waker)
    }

    /// From now on the transaction relies on it that a key has not changed since `since`, at or below the snapshot: as a read, with no value asked
    /// for. `certified`: at every isolation level until the commit, or until [`Transaction::rollback_to`] takes back what was built on it.
    /// At the snapshot itself nobody is asked.
    pub fn rely(&mut self, now: &Reading, key: &Bytes, since: Timestamp, certified: bool, waker: &Waker) -> Op<()> {
        if self.draft.past {
            return Poll::Ready(Ok(()));
        }
        ready!(self.place_for(now, key, waker)?);
        while since < self.snapshot {
            let (start, target) = (key.clone(), self.snapshot);
            let request = || Request::Changed { seen: vec![Seen { start, end: None, since }], target };
            match self.ask(now, |routes| routes.of_key(key), request, waker) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Ready(Ok(Answer::Changed(None))) => break,
                Poll::Ready(Ok(Answer::Changed(Some((_, at))))) => {
                    let reason = format!("what the statement goes by has changed at {at}");
                    return Poll::Ready(Err(TxnError::Restart { reason, key: Some(key.clone()) }));
                }
                // The range was split: again, by the new bounds.
                Poll::Ready(Ok(Answer::Moved(_))) => {}
                Poll::Ready(Ok(other)) => return Poll::Ready(Err(unfitting(&other))),
            }
        }
        let keep = Keep::of(certified);
        if self.remembers(keep) && !self.member.sabotage().forget_versions() {
            self.draft.reads.rely(key, self.snapshot, self.draft.must_certify(keep), self.lock_marks.len());
        }
        Poll::Ready(Ok(()))
    }

    /// Whether [`Transaction::unreferred`] can be said of one key more.
    pub fn guards_references(&self) -> bool {
        self.draft.reads.remembers_unreferred() && self.member.look().in_force(VERSION_OF_REFERENCES)
    }

    /// The caller has looked at `since`, by reads that are not remembered, who refers to a key, and goes by it: the commit is refused where a transaction that found the key [present](Transaction::present) has
    /// committed above that, whatever is written to the key by then. Until [`Transaction::rollback_to`] takes back what was built on it.
    /// `false`: that cannot be promised, as not all leaders know it, and what was looked through is to be certified.
    pub fn unreferred(&mut self, key: &Bytes, since: Timestamp) -> bool {
        let known = self.member.look().in_force(VERSION_OF_REFERENCES);
        if known {
            self.draft.reads.unreferred(key, since, self.lock_marks.len());
        }
        known
    }

    pub(super) fn look_of(&self, keep: Keep) -> Look {
        let peek = keep == Keep::Nothing;
        let is_certain = self.draft.past || self.limit <= self.snapshot;
        Look { snapshot: self.snapshot, limit: if is_certain { Timestamp::MIN } else { self.limit }, peek }
    }

    fn read(&mut self, now: &Reading, key: &[u8], keep: Keep, waker: &Waker) -> Op<Option<Bytes>> {
        ready!(self.place_for(now, key, waker)?);
        loop {
            if let Some(own) = self.draft.buffer.get(key) {
                return Poll::Ready(Ok(own.cloned()));
            }
            if self.is_refreshing() {
                match self.uncertain(now, self.snapshot, keep, waker) {
                    Poll::Ready(Ok(_)) => continue,
                    other => return other.map(|done| done.map(|_| None)),
                }
            }
            // One that promises nothing may be told what was asked for another: it is as good a look.
            let early = match self.call {
                None => match self.take_ahead(key, waker) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(early) => early,
                },
                Some(_) => None,
            };
            let look = self.look_of(keep);
            let request = || Request::Get { key: Bytes::copy_from_slice(key), look };
            let (version, newer) = match early {
                Some((by, found)) => {
                    self.answered_by = by;
                    (found.version, found.newer)
                }
                None => match self.ask(now, |routes| routes.of_key(key), request, waker) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                    Poll::Ready(Ok(Answer::Value { version, newer })) => (version, newer),
                    Poll::Ready(Ok(other)) => return Poll::Ready(Err(unfitting(&other))),
                },
            };
            if let Some(at) = newer.filter(|_| keep != Keep::Nothing) {
                match self.uncertain(now, at, keep, waker) {
                    Poll::Ready(Ok(_)) => continue,
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            if self.remembers(keep) {
                self.draft.remember_key(key, self.snapshot, keep);
            }
            return Poll::Ready(Ok(version.and_then(|(_, value)| value)));
        }
    }

    /// Whether a key has a value now, wherever the snapshot lies; if so it must still have one at the commit, at every isolation level.
    pub fn present(&mut self, now: &Reading, key: &[u8], waker: &Waker) -> Op<bool> {
        if let Some(own) = self.draft.buffer.get(key) {
            return Poll::Ready(Ok(own.is_some()));
        }
        ready!(self.place_for(now, key, waker)?);
        if self.call.is_none() && self.is_known_present(key) {
            self.draft.remember_present(key, self.snapshot);
            return Poll::Ready(Ok(true));
        }
        let request = || Request::Present { key: Bytes::copy_from_slice(key) };
        match self.ask(now, |routes| routes.of_key(key), request, waker) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
            Poll::Ready(Ok(Answer::Present(true))) => {
                self.draft.remember_present(key, self.snapshot);
                Poll::Ready(Ok(true))
            }
            Poll::Ready(Ok(Answer::Present(false))) => {
                // The absence was seen: it counts as read.
                if self.remembers(Keep::ByLevel) {
                    self.draft.remember_key(key, self.snapshot, Keep::ByLevel);
                }
                Poll::Ready(Ok(false))
            }
            Poll::Ready(Ok(other)) => Poll::Ready(Err(unfitting(&other))),
        }
    }

    /// A chunk of at most `limit` rows of a span (highest first where `reverse`), own writes merged in.
    pub fn scan(
        &mut self,
        now: &Reading,
        span: &store::Span,
        reverse: bool,
        limit: usize,
        certified: bool,
        waker: &Waker,
    ) -> Op<Chunk> {
        self.chunk(now, span, reverse, limit, Keep::of(certified), waker)
    }

    /// As [`Transaction::scan`], for a look that promises nothing: see [`Transaction::peek`].
    pub fn peek_scan(
        &mut self,
        now: &Reading,
        span: &store::Span,
        reverse: bool,
        limit: usize,
        waker: &Waker,
    ) -> Op<Chunk> {
        self.chunk(now, span, reverse, limit, Keep::Nothing, waker)
    }

    /// As [`Transaction::scan`], and not remembered: see [`Transaction::observe`].
    pub fn observe_scan(
        &mut self,
        now: &Reading,
        span: &store::Span,
        reverse: bool,
        limit: usize,
        waker: &Waker,
    ) -> Op<Chunk> {
        self.chunk(now, span, reverse, limit, Keep::Unremembered, waker)
    }

    fn chunk(
        &mut self,
        now: &Reading,
        span: &store::Span,
        reverse: bool,
        limit: usize,
        keep: Keep,
        waker: &Waker,
    ) -> Op<Chunk> {
        if span.start >= span.end {
            return Poll::Ready(Ok(Chunk::default()));
        }
        ready!(self.place_for(now, &span.start, waker)?);
        loop {
            if self.is_refreshing() {
                match self.uncertain(now, self.snapshot, keep, waker) {
                    Poll::Ready(Ok(())) => continue,
                    other => return other.map(|done| done.map(|()| Chunk::default())),
                }
            }
            // One range at a time, from the end where reading begins.
            let asked = Span { start: span.start.clone(), end: span.end.clone() };
            let (range, part) = match self.asked.take().filter(|_| self.call.is_some()) {
                // What is waited for is the answer for what was asked, though bounds that were learned meanwhile are others.
                Some(asked) => asked,
                None => {
                    let core = self.member.look();
                    let over = core.routes.over(&asked);
                    let range = if reverse { over.last() } else { over.first() }.copied().unwrap_or_default();
                    let part = core.routes.span(range).map_or(asked.clone(), |part| part.intersection(&asked));
                    (range, part)
                }
            };
            let early = match self.call {
                None => match self.take_span_ahead(&part, reverse, limit, waker) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(early) => early,
                },
                Some(_) => None,
            };
            // Of what is uncertain it has no rows, and who promises nothing does not move for it: he asks.
            let moves = keep != Keep::Nothing || self.member.sabotage().peek_at_what_is_uncertain();
            let early = early.filter(|part| moves || part.newer.is_none());
            let look = self.look_of(keep);
            let request = || Request::Scan { span: part.clone(), look, reverse, rows: limit };
            let (rows, rest, newer) = if let Some(early) = early {
                self.answered_by = early.by;
                (early.rows, early.rest, early.newer)
            } else {
                match self.ask(now, |_| range, request, waker) {
                    Poll::Pending => {
                        self.asked = Some((range, part));
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                    Poll::Ready(Ok(Answer::Rows { rows, rest, newer })) => (rows, rest, newer),
                    // The range was split: again, by the new bounds.
                    Poll::Ready(Ok(Answer::Moved(_))) => continue,
                    Poll::Ready(Ok(other)) => return Poll::Ready(Err(unfitting(&other))),
                }
            };
            if let Some(at) = newer {
                match self.uncertain(now, at, keep, waker) {
                    Poll::Ready(Ok(())) => continue,
                    other => return other.map(|done| done.map(|()| Chunk::default())),
                }
            }
            let covered = match (&rest, reverse) {
                (None, _) => part.start.clone()..part.end.clone(),
                (Some(rest), true) => rest.end.clone()..part.end.clone(),
                (Some(rest), false) => part.start.clone()..rest.start.clone(),
            };
            if self.remembers(keep) {
                self.draft.reads.span(&covered, self.snapshot, self.draft.must_certify(keep));
            }
            let left = match reverse {
                true => span.start.clone()..covered.start.clone(),
                false => covered.end.clone()..span.end.clone(),
            };
            let rows = self.draft.buffer.merge(rows, &covered, reverse);
            return Poll::Ready(Ok(Chunk { rows, rest: (left.start < left.end).then_some(left) }));
        }
    }

    /// A version at `at`, above the snapshot, may have been acknowledged before this transaction began: the snapshot moves up, past it and past the time of
    /// the node that has it.
    fn uncertain(&mut self, now: &Reading, at: Timestamp, keep: Keep, waker: &Waker) -> Op<()> {
        let by = self.answered_by;
        let done = self.refresh(now, at, "a version met may have been committed before the transaction began", waker);
        if done.is_ready() {
            self.stats.uncertainty_restarts += 1;
            self.member.counters().txn_restarts_readwithinuncertainty.one();
        }
        match done {
            Poll::Ready(Ok(())) => {
                self.caught_up.extend(self.newly_met(by));
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error @ TxnError::Restart { .. })) => {
                if let (Some(by), Some(kept)) = (self.newly_met(by), &mut self.kept) {
                    kept.caught_up.push(by.0);
                }
                if keep == Keep::Nothing { Poll::Ready(Ok(())) } else { Poll::Ready(Err(error)) }
            }
            done => done,
        }
    }

    /// A node whose time it is past, or would be if it could move there, and was not before.
    fn newly_met(&self, by: NodeId) -> Option<NodeId> {
        let known = by == NOBODY || self.caught_up.contains(&by) || self.member.sabotage().never_catch_up();
        (!known && self.member.look().in_force(VERSION_OF_CATCHING_UP)).then_some(by)
    }

    fn remembers(&self, keep: Keep) -> bool {
        self.draft.remembers(keep, self.limit > Timestamp::MIN)
    }
}

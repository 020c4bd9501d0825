//! Point and span reads.

use super::draft::Keep;
use super::reads::after;
use super::{Op, Transaction};
use crate::{Now, TxnError};
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::txn::{Span, VersionStore};
use std::task::{Poll, Waker};
use store::Engine;

/// See [`Transaction::is_as_it_was`].
const BARE_BYTES: usize = 4;

/// Rows of a span.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// Keys and values in the order asked for, own writes merged in.
    pub rows: Vec<(Bytes, Bytes)>,
    /// What remains to be asked for; `None` at the end.
    pub rest: Option<store::Span>,
}

impl<E: Engine> Transaction<E> {
    /// The value of a key: own write first, then the snapshot's. `certified`: to be certified at every isolation level.
    pub fn get(&mut self, now: &impl Now, key: &[u8], certified: bool, waker: &Waker) -> Op<Option<Bytes>> {
        self.read(now, key, Keep::of(certified), waker)
    }

    /// As [`Transaction::get`], for a look that promises nothing: it is not remembered, so others may change what was seen, and what
    /// is in flight is not waited for. Whoever wants what he found locks it, and reads it again.
    pub fn peek(&mut self, now: &impl Now, key: &[u8], waker: &Waker) -> Op<Option<Bytes>> {
        self.read(now, key, Keep::Nothing, waker)
    }

    /// As [`Transaction::get`], and not remembered: others may change it, also while the snapshot moves over it. Whoever goes by what he saw
    /// says what of it he relies on: [`Transaction::rely`].
    pub fn observe(&mut self, now: &impl Now, key: &[u8], waker: &Waker) -> Op<Option<Bytes>> {
        self.read(now, key, Keep::Unremembered, waker)
    }

    /// Whether a key of at most four bytes is certainly at the snapshot what it was at `since`, a snapshot of this life of the node: as cheap as
    /// it can be. Where it says no, nothing is known, and [`Transaction::observe`] tells.
    pub fn is_as_it_was(&self, key: &[u8], since: Timestamp) -> bool {
        let shared = &self.node.shared;
        // What is applied was in flight before: so first that, and then what was applied.
        key.len() <= BARE_BYTES
            && !self.draft.past
            && since <= self.snapshot
            && !self.draft.buffer.has(key)
            && shared.covers(self.snapshot)
            && !shared.sabotage.ignore_inflight()
            && shared.inflight.on_key(key, self.snapshot).is_none()
            && self.node.versions().newest_bare() <= since
    }

    /// From now on the transaction relies on it that a key has not changed since `since`, at or below the snapshot: as a read, with no value asked
    /// for. `certified`: at every isolation level until the commit, or until [`Transaction::rollback_to`] takes back what was built on it.
    pub fn rely(&mut self, key: &Bytes, since: Timestamp, certified: bool, waker: &Waker) -> Op<()> {
        if self.draft.past {
            return Poll::Ready(Ok(()));
        }
        if since < self.snapshot {
            if self.wait_for_key(key, self.snapshot, waker) {
                return Poll::Pending;
            }
            let changed = match since < self.node.versions().collected_of(key) {
                true => Ok(Some(self.snapshot)),
                false => self.node.versions().version_between(key, since, self.snapshot),
            };
            match changed {
                Err(e) => return Poll::Ready(Err(e.into())),
                Ok(Some(at)) => {
                    let reason = format!("what the statement goes by has changed at {at}");
                    return Poll::Ready(Err(TxnError::Restart { reason, key: Some(key.clone()) }));
                }
                Ok(None) => {}
            }
        }
        let keep = Keep::of(certified);
        if self.remembers(keep) {
            self.draft.reads.rely(key, self.snapshot, self.draft.must_certify(keep), self.lock_marks.len());
        }
        Poll::Ready(Ok(()))
    }

    fn read(&mut self, now: &impl Now, key: &[u8], keep: Keep, waker: &Waker) -> Op<Option<Bytes>> {
        loop {
            if let Some(own) = self.draft.buffer.get(key) {
                return Poll::Ready(Ok(own.cloned()));
            }
            if !self.node.shared.covers(self.snapshot) {
                match self.under_lease(&now.read(), waker) {
                    Poll::Ready(Ok(())) => {}
                    other => return other.map(|done| done.map(|()| None)),
                }
            }
            if keep != Keep::Nothing && self.wait_for_key(key, self.snapshot, waker) {
                return Poll::Pending;
            }
            let limit = self.limit_here().max(self.snapshot);
            let read = match self.node.versions().read(key, self.snapshot, limit) {
                Ok(read) => read,
                Err(e) => return Poll::Ready(Err(e.into())),
            };
            if let Some(at) = read.newer {
                match self.uncertain(&now.read(), at, waker) {
                    Poll::Ready(Ok(())) => continue,
                    Poll::Ready(Err(TxnError::Restart { .. })) if keep == Keep::Nothing => {}
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            if self.remembers(keep) {
                self.draft.remember_key(key, self.snapshot, keep);
            }
            return Poll::Ready(Ok(read.version.and_then(|v| v.value)));
        }
    }

    /// Whether a key has a value now, wherever the snapshot lies; if so it must still have one at the commit, at every isolation level.
    /// What the value is does not matter: others may change it meanwhile.
    pub fn present(&mut self, key: &[u8], waker: &Waker) -> Op<bool> {
        if let Some(own) = self.draft.buffer.get(key) {
            return Poll::Ready(Ok(own.is_some()));
        }
        if self.wait_for_key(key, Timestamp::MAX, waker) {
            return Poll::Pending;
        }
        match self.node.shared.store.is_present(key) {
            Err(e) => Poll::Ready(Err(e.into())),
            Ok(true) => {
                self.draft.remember_present(key, self.snapshot);
                Poll::Ready(Ok(true))
            }
            Ok(false) => {
                // The absence was seen: it counts as read.
                if self.remembers(Keep::ByLevel) {
                    self.draft.remember_key(key, self.snapshot, Keep::ByLevel);
                }
                Poll::Ready(Ok(false))
            }
        }
    }

    /// Whether [`Transaction::unreferred`] can be said of one key more.
    pub fn guards_references(&self) -> bool {
        self.draft.reads.remembers_unreferred()
    }

    /// The caller has looked at `since`, by reads that are not remembered, who refers to a key, and goes by it: the commit is refused where a transaction that found the key [present](Transaction::present) has
    /// committed above that, whatever is written to the key by then. Until [`Transaction::rollback_to`] takes back what was built on it.
    /// `false`: that cannot be promised, and what was looked through is to be certified.
    pub fn unreferred(&mut self, key: &Bytes, since: Timestamp) -> bool {
        self.draft.reads.unreferred(key, since, self.lock_marks.len());
        true
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
        let read = |txn: &Self, clear: &store::Span| {
            let scan = txn.node.versions().scan(clear, txn.snapshot, reverse, limit)?;
            Ok(Some((scan.rows, scan.rest)))
        };
        self.read_span(now, span, reverse, keep, read, waker).map(|read| {
            let Some((rows, covered, rest)) = read? else { return Ok(Chunk::default()) };
            let rows = rows.into_iter().map(|(key, _, value)| (key, value)).collect();
            Ok(Chunk { rows: self.draft.buffer.merge(rows, &covered, reverse), rest })
        })
    }

    /// As [`Transaction::scan`], forwards, for who looks at many rows and keeps few of them. `None`: they have to be scanned, as own
    /// writes are among them, or few at a time are faster.
    pub fn sweep(
        &mut self,
        now: &Reading,
        span: &store::Span,
        limit: usize,
        certified: bool,
        waker: &Waker,
    ) -> Op<Option<store::Sweep>> {
        self.sweep_picked(now, span, limit, certified, None, waker)
    }

    /// As [`Transaction::sweep`]; of what `pick` does not want, rows may be left out. They count as read.
    pub fn sweep_picked(
        &mut self,
        now: &Reading,
        span: &store::Span,
        limit: usize,
        certified: bool,
        mut pick: Option<&mut store::Pick<'_>>,
        waker: &Waker,
    ) -> Op<Option<store::Sweep>> {
        if self.draft.buffer.range(&span.start, &span.end).next().is_some() {
            return Poll::Ready(Ok(None));
        }
        let read = |txn: &Self, clear: &store::Span| {
            let pick = pick.as_deref_mut();
            let swept = txn.node.versions().sweep_picked(clear, txn.snapshot, limit, pick)?;
            Ok(swept.map(|swept| ((swept.bytes, swept.places), swept.rest)))
        };
        self.read_span(now, span, false, Keep::of(certified), read, waker).map(|read| {
            let swept = read?.map(|((bytes, places), _, rest)| store::Sweep { bytes, places, rest });
            Ok(swept)
        })
    }

    /// Reads from the beginning of a span as far as `read` gets (which gives its rows and what it left), and remembers it: the rows, what they
    /// cover, and what remains. `None`: `read` gave nothing.
    fn read_span<R>(
        &mut self,
        now: &Reading,
        span: &store::Span,
        reverse: bool,
        keep: Keep,
        mut read: impl FnMut(&Self, &store::Span) -> Result<Option<(R, Option<store::Span>)>, store::StoreError>,
        waker: &Waker,
    ) -> Op<Option<(R, store::Span, Option<store::Span>)>> {
        loop {
            match self.under_lease(now, waker) {
                Poll::Ready(Ok(())) => {}
                other => return other.map(|done| done.map(|()| None)),
            }
            let clear = match keep {
                Keep::Nothing => Some(span.clone()),
                Keep::ByLevel | Keep::Certified | Keep::Unremembered => self.clear_part(span, reverse, waker),
            };
            let Some(clear) = clear else { return Poll::Pending };
            let (rows, rest) = match read(self, &clear) {
                Ok(Some(read)) => read,
                Ok(None) => return Poll::Ready(Ok(None)),
                Err(e) => return Poll::Ready(Err(e.into())),
            };
            let covered = match &rest {
                None => clear.clone(),
                Some(rest) if reverse => rest.end.clone()..clear.end.clone(),
                Some(rest) => clear.start.clone()..rest.start.clone(),
            };
            match self.uncertain_in(now, &covered, waker) {
                Poll::Ready(Ok(false)) => {}
                Poll::Ready(Ok(true)) => continue,
                Poll::Ready(Err(TxnError::Restart { .. })) if keep == Keep::Nothing => {}
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                Poll::Pending => return Poll::Pending,
            }
            if self.remembers(keep) {
                self.draft.reads.span(&covered, self.snapshot, self.draft.must_certify(keep));
            }
            let rest = match reverse {
                true => span.start.clone()..covered.start.clone(),
                false => covered.end.clone()..span.end.clone(),
            };
            return Poll::Ready(Ok(Some((rows, covered, (rest.start < rest.end).then_some(rest)))));
        }
    }

    /// The part of a span, from the end where reading begins, in which nothing at or below the snapshot is in flight; `None`:
    /// nothing of it, wait.
    fn clear_part(&self, span: &store::Span, reverse: bool, waker: &Waker) -> Option<store::Span> {
        let shared = &self.node.shared;
        if shared.sabotage.ignore_inflight() {
            return Some(span.clone());
        }
        let asked = Span { start: span.start.clone(), end: span.end.clone() };
        loop {
            if span.start >= span.end {
                return Some(span.clone());
            }
            let Some((key, at)) = shared.inflight.in_span(&asked, self.snapshot, reverse) else {
                return Some(span.clone());
            };
            let clear = match reverse {
                true => after(&key)..span.end.clone(),
                false => span.start.clone()..key,
            };
            if clear.start < clear.end {
                return Some(clear);
            }
            if shared.inflight.wait(at, waker) {
                shared.counters.txn_read_waits.one();
                return None;
            }
        }
    }

    /// Whether a write of the key in flight at or below `at` must be waited for.
    pub(super) fn wait_for_key(&self, key: &[u8], at: Timestamp, waker: &Waker) -> bool {
        let shared = &self.node.shared;
        if shared.sabotage.ignore_inflight() {
            return false;
        }
        while let Some(flight) = shared.inflight.on_key(key, at) {
            if shared.inflight.wait(flight, waker) {
                shared.counters.txn_read_waits.one();
                return true;
            }
        }
        false
    }

    /// A version at `at`, above the snapshot, may have been acknowledged before this transaction began: the snapshot moves up.
    fn uncertain(&mut self, now: &Reading, at: Timestamp, waker: &Waker) -> Op<()> {
        let done = self.refresh(now, at, "a version met may have been committed before the transaction began", waker);
        if done.is_ready() {
            self.stats.uncertainty_restarts += 1;
            self.node.shared.counters.txn_restarts_readwithinuncertainty.one();
        }
        done
    }

    fn uncertain_in(&mut self, now: &Reading, covered: &store::Span, waker: &Waker) -> Op<bool> {
        let limit = self.limit_here();
        if limit <= self.snapshot {
            return Poll::Ready(Ok(false));
        }
        match self.node.versions().version_between_in(covered, self.snapshot, limit) {
            Err(e) => Poll::Ready(Err(TxnError::from(e))),
            Ok(None) => Poll::Ready(Ok(false)),
            Ok(Some((_, at))) => self.uncertain(now, at, waker).map(|done| done.map(|()| true)),
        }
    }

    fn remembers(&self, keep: Keep) -> bool {
        self.draft.remembers(keep, self.limit.is_some())
    }
}

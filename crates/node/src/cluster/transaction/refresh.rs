//! The snapshot moves up: every range is asked whether what was read there has changed, all at once.

use super::{Answer, Op, Request, Transaction, refused, unfitting};
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::door::Seen;
use protocol::txn::{RangeId, Span};
use std::collections::BTreeMap;
use std::task::{Poll, Waker};
use store::Engine;

/// A refresh on its way.
#[derive(Debug)]
pub(super) struct Refreshing {
    target: Timestamp,
    /// What is to be asked yet, and what was.
    ask: Vec<(RangeId, Vec<Seen>)>,
    calls: Vec<u64>,
    /// A range was split meanwhile: all is asked again, by the new bounds.
    moved: bool,
    /// What was found changed.
    changed: Option<(Bytes, Timestamp)>,
}

impl Refreshing {
    pub fn into_calls(self) -> impl Iterator<Item = u64> {
        self.calls.into_iter()
    }
}

/// What changed, if anything did, up to which time.
type Found = (Timestamp, Option<(Bytes, Timestamp)>);

impl<E: Engine> Transaction<E> {
    pub(super) fn begin_refresh(&mut self, target: Timestamp) {
        let mut parts: BTreeMap<RangeId, Vec<Seen>> = BTreeMap::new();
        let core = self.member.look();
        for seen in self.draft.reads.iter() {
            let Some(end) = &seen.end else {
                let one = Seen { start: seen.start.clone(), end: None, since: seen.since };
                parts.entry(core.routes.of_key(&seen.start)).or_default().push(one);
                continue;
            };
            let span = Span { start: seen.start.clone(), end: end.clone() };
            for range in core.routes.over(&span) {
                let Some(part) = core.routes.span(range) else { continue };
                let Span { start, end } = part.intersection(&span);
                parts.entry(range).or_default().push(Seen { start, end: Some(end), since: seen.since });
            }
        }
        drop(core);
        let ask = parts.into_iter().collect();
        self.refreshing = Some(Refreshing { target, ask, calls: Vec::new(), moved: false, changed: None });
    }

    pub(super) fn go_on_refreshing(&mut self, now: &Reading, waker: &Waker) -> Op<Found> {
        let Some(refreshing) = &mut self.refreshing else { return Poll::Ready(Ok((self.snapshot, None))) };
        let mut core = self.member.lock();
        for (range, seen) in refreshing.ask.drain(..) {
            let request = Request::Changed { seen, target: refreshing.target };
            refreshing.calls.push(core.call_for(range, request, waker));
        }
        if let Err(why) = core.run(now) {
            return Poll::Ready(Err(why.into()));
        }
        let mut open = Vec::new();
        for call in std::mem::take(&mut refreshing.calls) {
            match core.poll_call(call, waker).map(|result| result.and_then(|answer| refused(answer, self.snapshot))) {
                None => open.push(call),
                Some(Ok(Answer::Changed(changed))) => refreshing.changed = refreshing.changed.take().or(changed),
                Some(Ok(Answer::Moved(_))) => refreshing.moved = true,
                Some(Ok(other)) => return Poll::Ready(Err(unfitting(&other))),
                Some(Err(why)) => {
                    refreshing.calls = open;
                    return Poll::Ready(Err(why));
                }
            }
        }
        refreshing.calls = open;
        if refreshing.calls.is_empty() && refreshing.changed.is_none() && refreshing.moved {
            let target = refreshing.target;
            drop(core);
            self.begin_refresh(target);
            return self.go_on_refreshing(now, waker);
        }
        if refreshing.calls.is_empty() || refreshing.changed.is_some() {
            return Poll::Ready(Ok((refreshing.target, refreshing.changed.take())));
        }
        Poll::Pending
    }
}

//! One round to all leaders of a query: see `cluster::settled`.

use super::{Answer, Op, Request, Transaction, refused, unfitting};
use crate::Now;
use clock::Timestamp;
use protocol::door::VERSION_OF_NEGOTIATION;
use protocol::txn::{RangeId, Span};
use std::collections::BTreeMap;
use std::task::{Poll, Waker};
use store::Engine;

/// Ranges that are asked at a time: those of a large table are asked in turns.
const ASKED_MAX: usize = 256;

/// A round on its way.
#[derive(Debug)]
pub(super) struct Negotiating {
    /// What is to be asked yet.
    ask: Vec<(RangeId, Span)>,
    calls: BTreeMap<u64, Span>,
    /// Of the answers so far.
    chosen: Option<Timestamp>,
}

impl Negotiating {
    pub fn into_calls(self) -> impl Iterator<Item = u64> {
        self.calls.into_keys()
    }
}

impl<E: Engine> Transaction<E> {
    /// The newest snapshot at which all of these spans can be read without waiting for a transaction on its way, at least `least` where nothing that old is in
    /// the way; it is below that otherwise. Each leader is asked once. The transaction itself stays where it is: whoever wants the snapshot
    /// begins another one at it.
    pub fn negotiate(
        &mut self,
        now: &impl Now,
        spans: &[store::Span],
        least: Timestamp,
        waker: &Waker,
    ) -> Op<Timestamp> {
        let member = self.member.clone();
        let mut core = member.lock();
        if self.negotiating.is_none() {
            if let Err(why) = core.require("a negotiated snapshot", VERSION_OF_NEGOTIATION) {
                return Poll::Ready(Err(why));
            }
            let spans = spans.iter().map(|keys| Span { start: keys.start.clone(), end: keys.end.clone() });
            let ask = spans.flat_map(|span| core.routes.parts(&span)).collect();
            self.negotiating = Some(Negotiating { ask, calls: BTreeMap::new(), chosen: None });
        }
        let Some(round) = &mut self.negotiating else { return Poll::Pending };
        loop {
            while round.calls.len() < ASKED_MAX
                && let Some((range, span)) = round.ask.pop()
            {
                let request = Request::Settled { span: span.clone(), least };
                round.calls.insert(core.call_for(range, request, waker), span);
            }
            if let Err(why) = core.run(&now.read()) {
                return Poll::Ready(Err(why.into()));
            }
            let mut failed = None;
            round.calls.retain(|call, span| {
                match core.poll_call(*call, waker).map(|result| result.and_then(|answer| refused(answer, least))) {
                    None => return true,
                    Some(Ok(Answer::Settled(at))) => {
                        let newest = core.sabotage.negotiate_the_newest();
                        let of = |chosen: Timestamp| if newest { chosen.max(at) } else { chosen.min(at) };
                        round.chosen = Some(round.chosen.map_or(at, of));
                    }
                    // The range was split: again, by the new bounds.
                    Some(Ok(Answer::Moved(_))) => round.ask.extend(core.routes.parts(span)),
                    Some(Ok(other)) => failed = Some(unfitting(&other)),
                    Some(Err(why)) => failed = Some(why),
                }
                false
            });
            if let Some(why) = failed {
                drop(core);
                self.stop_waiting();
                return Poll::Ready(Err(why));
            }
            match (round.ask.is_empty(), round.calls.is_empty()) {
                (true, true) => break,
                (false, _) if round.calls.len() < ASKED_MAX => {}
                _ => return Poll::Pending,
            }
        }
        let chosen = round.chosen.unwrap_or(least);
        self.negotiating = None;
        core.counters.snapshots_negotiated.one();
        let now = now.read();
        let doubts = core.in_doubt(&now);
        drop(core);
        // A leader whose clock is ahead of its bound would have a future read. Of what is the future the time says at which the answers are there, not the one at which they were asked for.
        // A clock that is in doubt says nothing of that.
        Poll::Ready(Ok(if doubts { chosen } else { chosen.min(now.interval.latest()) }))
    }
}

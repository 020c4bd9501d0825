//! Spans in which nothing is: whoever loads rows behind all others asks once whether something lies there, and not for each group of rows.
//!
//! # Problem
//! An INSERT or COPY of many rows looks whether their keys are free. Rows that are loaded in order fall into a gap between two rows, or behind the last; asked for a group at a time they
//! cost a round trip for each group.
//!
//! # Idea
//! A scan for one row from the first key on says how far nothing comes: up to the row that it found. Reads of what lies in between, at the same snapshot, are answered by that.
//!
//! # Invariants
//! 1. A gap counts only for a read that would ask the same, at the same snapshot and limit of what is uncertain (`ahead`, invariant 2); and only where no version in it is uncertain.
//! 2. Only what is read in it counts as read: others may write to the rest of the gap.
//! 3. One gap is known at a time, of one range.

use super::{Answer, NodeId, Op, Request, Transaction, TxnError};
use crate::cluster::core::Core;
use bytes::Bytes;
use clock::Reading;
use protocol::door::Look;
use protocol::txn::Span;
use std::task::{Poll, Waker};
use store::Engine;

/// See the module.
#[derive(Debug)]
struct Gap {
    look: Look,
    start: Bytes,
    end: Bytes,
    by: NodeId,
}

/// What is known of gaps.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    known: Option<Gap>,
    /// The call that looks for one, how, and in what.
    asked: Option<(u64, Look, Span)>,
}

impl Gaps {
    /// The gap that is known for who looks like this; `None`: for whoever looks, where the rule is broken on purpose.
    fn known_to(&self, look: Option<Look>) -> Option<&Gap> {
        self.known.as_ref().filter(|gap| look.is_none_or(|look| gap.look == look))
    }

    /// Who said that nothing is from a key up to another.
    pub(super) fn covers(&self, look: Option<Look>, start: &[u8], end: &[u8]) -> Option<NodeId> {
        let gap = self.known_to(look)?;
        (gap.start[..] <= *start && !end.is_empty() && end <= &gap.end[..]).then_some(gap.by)
    }

    /// Who said that a key has no value.
    pub(super) fn has(&self, look: Option<Look>, key: &[u8]) -> Option<NodeId> {
        let gap = self.known_to(look)?;
        (gap.start[..] <= *key && key < &gap.end[..]).then_some(gap.by)
    }

    /// Nothing is known any more, and nothing wanted.
    pub(super) fn clear<E: Engine>(&mut self, core: &mut Core<E>) {
        self.known = None;
        if let Some((call, ..)) = self.asked.take() {
            core.cancel(call);
        }
    }

    /// What an answer says.
    fn learn(&mut self, look: Look, asked: Span, result: Result<(NodeId, Answer), TxnError>) {
        // Whoever wants it asks, and hears why not.
        let Ok((by, Answer::Rows { rows, rest, newer: None })) = result else { return };
        let found = rows.into_iter().next().map(|(key, _)| key);
        let end = [found, rest.map(|rest| rest.start)].into_iter().flatten().min().unwrap_or(asked.end);
        self.known = Some(Gap { look, start: asked.start, end, by });
    }
}

impl<E: Engine> Transaction<E> {
    /// The keys of a span are about to be read, and likely none of them is there, nor any behind them up to `end`: whether none is. What is found out is for the reads that follow, and promises nothing.
    /// (Also `false`: nobody needs to be asked, or it lies in several ranges.)
    pub fn find_gap(&mut self, now: &Reading, span: &store::Span, end: &Bytes, waker: &Waker) -> Op<bool> {
        if self.ended || !self.is_placed || self.refreshing.is_some() || span.start >= span.end {
            return Poll::Ready(Ok(false));
        }
        let look = self.plain_look();
        let gaps = &mut self.ahead.get_or_insert_default().gaps;
        let mut core = self.member.look();
        if gaps.asked.as_ref().is_none_or(|(_, asked, _)| *asked != look) {
            if gaps.covers(Some(look), &span.start, &span.end).is_some() {
                return Poll::Ready(Ok(true));
            }
            gaps.clear(&mut core);
            let range = core.routes.of_key(&span.start);
            let wanted = Span { start: span.start.clone(), end: span.end.clone().max(end.clone()) };
            let part = core.routes.span(range).map_or(wanted.clone(), |part| part.intersection(&wanted));
            if core.led_until(range).is_some() || !part.end.is_empty() && part.end < span.end {
                return Poll::Ready(Ok(false));
            }
            let request = Request::Scan { span: part.clone(), look, reverse: false, rows: 1 };
            let call = core.call_for(range, request, waker);
            core.prepare_call(call, self.hasty, &self.caught_up);
            gaps.asked = Some((call, look, part));
            self.member.touch();
            core.run(now)?;
        }
        let Some((call, ..)) = &gaps.asked else { return Poll::Ready(Ok(false)) };
        let Some(result) = core.poll_call_at(*call, waker) else { return Poll::Pending };
        if let Some((_, look, asked)) = gaps.asked.take() {
            gaps.learn(look, asked, result);
        }
        Poll::Ready(Ok(gaps.covers(Some(look), &span.start, &span.end).is_some()))
    }
}

//! Spans that are asked for before anybody waits for them: the first chunk of each, all at once, as [`super::ahead`] does with keys.
//!
//! # Invariants
//! 1. A chunk counts only for a scan that would ask the same: of the same part of a range, from the same end, at the same snapshot and limit of what is uncertain. A shorter chunk
//!    than was asked for is one that has a rest.
//! 2. Only what a scan takes counts as read.
//! 3. At most [`SPANS_MAX`] are known, or asked for, at a time. The chunks that are known have [`FOUND_BYTES_MAX`] bytes at most, but for the last one; those on their way are as many rows as
//!    whoever asked wanted, and each ends where the leader ends a chunk.

use super::{Answer, NodeId, Request, Transaction, TxnError};
use crate::cluster::core::Core;
use bytes::Bytes;
use clock::{Reading, Timestamp};
use protocol::txn::Span;
use std::collections::BTreeMap;
use std::task::{Poll, Waker};
use store::Engine;

/// Spans that are known, or asked for, at most.
pub const SPANS_MAX: usize = 256;
/// Bytes of the chunks that are known, at most, but for those of the last one.
const FOUND_BYTES_MAX: usize = 8 << 20;

/// A span to be scanned: its first chunk, of at most so many rows, from the end where reading begins.
#[derive(Clone, Debug)]
pub struct SpanAhead {
    /// The keys.
    pub span: store::Span,
    /// Highest key first.
    pub reverse: bool,
    /// Rows of the chunk, at most.
    pub rows: usize,
}

/// Start, end, and from which end.
type Place = (Bytes, Bytes, bool);

/// A chunk of a span.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) by: NodeId,
    pub(super) rows: Vec<(Bytes, Bytes)>,
    pub(super) rest: Option<Span>,
    pub(super) newer: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct Known {
    part: Part,
    limit: usize,
    /// It was read.
    taken: bool,
}

impl Known {
    fn bytes(&self) -> usize {
        self.part.rows.iter().map(|(key, value)| key.len() + value.len()).sum()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SpansAhead {
    /// Calls on their way, and the rows that each asked for.
    open: BTreeMap<Place, (u64, usize)>,
    found: BTreeMap<Place, Known>,
    bytes: usize,
}

impl SpansAhead {
    pub(super) fn clear<E: Engine>(&mut self, core: &mut Core<E>) {
        std::mem::take(&mut self.open).into_values().for_each(|(call, _)| core.cancel(call));
        self.found.clear();
        self.bytes = 0;
    }

    fn drop_taken(&mut self) {
        self.found.retain(|_, known| !known.taken);
        self.bytes = self.found.values().map(Known::bytes).sum();
    }

    fn answered(&mut self, place: &Place, limit: usize, result: Result<(NodeId, Answer), TxnError>) {
        // Whoever wants it asks, and hears why not.
        let Ok((by, Answer::Rows { rows, rest, newer })) = result else { return };
        let known = Known { part: Part { by, rows, rest, newer }, limit, taken: false };
        let more = known.bytes();
        if self.bytes + more > FOUND_BYTES_MAX {
            self.drop_taken();
        }
        if self.bytes + more > FOUND_BYTES_MAX {
            self.found.clear();
            self.bytes = 0;
        }
        self.bytes += more;
        self.found.insert(place.clone(), known);
    }
}

impl<E: Engine> Transaction<E> {
    /// These spans are about to be scanned, at most [`SPANS_MAX`] of them: see the module. Says whether anything was asked of others.
    ///
    /// # Errors
    /// The store failed.
    pub fn scan_ahead(&mut self, now: &Reading, spans: &[SpanAhead], waker: &Waker) -> Result<bool, TxnError> {
        let look = self.plain_look();
        if self.ended || !self.is_placed || self.refreshing.is_some() || spans.is_empty() {
            return Ok(false);
        }
        let ahead = self.ahead.get_or_insert_default();
        let mut core = self.member.look();
        ahead.prepare(look, 0, &mut core);
        let known = &mut ahead.spans;
        if known.open.len() + known.found.len() + spans.len() > SPANS_MAX {
            known.drop_taken();
        }
        let mut asked = false;
        for SpanAhead { span, reverse, rows } in spans {
            if span.start >= span.end || known.open.len() + known.found.len() >= SPANS_MAX {
                continue;
            }
            let wanted = Span { start: span.start.clone(), end: span.end.clone() };
            let over = core.routes.over(&wanted);
            let range = if *reverse { over.last() } else { over.first() }.copied().unwrap_or_default();
            if core.led_until(range).is_some() {
                continue;
            }
            let part = core.routes.span(range).map_or(wanted.clone(), |part| part.intersection(&wanted));
            let place = (part.start.clone(), part.end.clone(), *reverse);
            if known.open.contains_key(&place) || known.found.contains_key(&place) {
                continue;
            }
            let request = Request::Scan { span: part, look, reverse: *reverse, rows: *rows };
            let call = core.call_for(range, request, waker);
            core.prepare_call(call, self.hasty, &self.caught_up);
            known.open.insert(place, (call, *rows));
            asked = true;
        }
        if !asked {
            return Ok(false);
        }
        self.member.touch();
        core.run(now).map(|()| true).map_err(TxnError::from)
    }

    /// What was asked ahead for a scan of a part of one range, at most so many rows, if it was.
    pub(super) fn take_span_ahead(
        &mut self,
        part: &Span,
        reverse: bool,
        rows: usize,
        waker: &Waker,
    ) -> Poll<Option<Part>> {
        let look = self.plain_look();
        let any = self.member.sabotage().spans_at_any_snapshot();
        let gaps = self.ahead.as_ref().map(|ahead| &ahead.gaps);
        if let Some(by) = gaps.and_then(|gaps| gaps.covers((!any).then_some(look), &part.start, &part.end)) {
            return Poll::Ready(Some(Part { by, rows: Vec::new(), rest: None, newer: None }));
        }
        let Some(ahead) = self.ahead.as_mut().filter(|ahead| any || ahead.looks(look)) else {
            return Poll::Ready(None);
        };
        let is_of_this_look = ahead.looks(look);
        let known = &mut ahead.spans;
        if known.open.is_empty() && known.found.is_empty() {
            return Poll::Ready(None);
        }
        let place = (part.start.clone(), part.end.clone(), reverse);
        if let Some((call, limit)) = known.open.get(&place).copied() {
            let Some(result) = self.member.look().poll_call_at(call, waker) else { return Poll::Pending };
            known.open.remove(&place);
            known.answered(&place, limit, result);
        }
        // Where the rule is broken on purpose: an old answer would be uncertain for ever.
        let ends = |known: &Known| is_of_this_look || known.part.newer.is_none();
        let fitting = known.found.get_mut(&place).filter(|known| known.limit <= rows && ends(known));
        Poll::Ready(fitting.map(|known| {
            known.taken = true;
            known.part.clone()
        }))
    }
}

//! The last short stretch of a table that was read for a row around it.
//!
//! Two subqueries of one row often read the same: `EXISTS (.. l2.k = l1.k AND ..) AND NOT EXISTS (.. l3.k = l1.k AND ..)`. A stretch of a few rows costs the way to
//! it, not its rows; so the last one is kept, for whoever asks for the same next. It is of one execution of a plan, as answers of subqueries are
//! (`engine::run::memo`).

use crate::transaction::{Span, Sweep};
use parking_lot::Mutex;

/// Rows of a stretch that is kept, at most.
const ROWS_MAX: usize = 64;
/// Bytes of its rows, at most.
const BYTES_MAX: usize = 16 << 10;

/// See the module.
#[derive(Default)]
pub(crate) struct LastStretch(Mutex<Option<(Span, Sweep)>>);

impl LastStretch {
    /// The rows of the span, if it is that which was read last.
    pub fn of(&self, span: &Span) -> Option<Sweep> {
        self.0.lock().as_ref().filter(|(read, _)| read == span).map(|(_, sweep)| sweep.clone())
    }

    /// Keeps what was read of a span, if that is all of it, and little.
    pub fn keep(&self, span: Span, sweep: &Sweep) {
        let little = sweep.rest.is_none() && sweep.places.len() <= ROWS_MAX && sweep.bytes.len() <= BYTES_MAX;
        *self.0.lock() = little.then(|| (span, sweep.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_MAX, LastStretch, ROWS_MAX};
    use crate::transaction::{Span, Sweep};
    use bytes::Bytes;

    fn span(from: &'static str, to: &'static str) -> Span {
        Span { start: from.into(), end: to.into() }
    }

    #[test]
    fn only_a_short_stretch_that_was_read_to_its_end_is_kept_and_only_the_last() {
        let last = LastStretch::default();
        let few = Sweep { bytes: "ab".into(), places: vec![[0, 1, 1, 2]], rest: None };
        last.keep(span("a", "b"), &few);
        assert_eq!(last.of(&span("a", "b")).map(|sweep| sweep.places), Some(few.places.clone()));
        assert!(last.of(&span("a", "c")).is_none());
        last.keep(span("b", "c"), &few);
        assert!(last.of(&span("a", "b")).is_none());
        for other in [
            Sweep { rest: Some(span("b1", "c")), ..few.clone() },
            Sweep { places: vec![[0; 4]; ROWS_MAX + 1], ..few.clone() },
            Sweep { bytes: Bytes::from(vec![0; BYTES_MAX + 1]), ..few.clone() },
        ] {
            last.keep(span("b", "c"), &other);
            assert!(last.of(&span("b", "c")).is_none());
        }
    }
}

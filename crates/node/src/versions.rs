//! The store's versions, as the protocol wants them.

use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::{Batch, Span, VersionStore, Write};
use std::sync::Arc;
use store::{Engine, StoreError, Versions};

/// Above every key that SQL makes: keys begin with an index number of four bytes.
const LAST_KEY: &[u8] = &[0xff; 40];

pub(crate) struct Store<E>(pub Arc<Versions<E>>);

/// What a batch writes, seen before it is in its places.
struct Shown(Arc<Batch>);

impl store::versions::Writes for Shown {
    fn count(&self) -> usize {
        self.0.writes.len()
    }
    fn at(&self, number: usize) -> (&[u8], Option<&Bytes>) {
        let Write { key, value, .. } = &self.0.writes[number];
        (key, value.as_ref())
    }
}

/// The store knows no unbounded spans.
pub(crate) fn bounded(span: &Span) -> store::Span {
    let end = if span.end.is_empty() { Bytes::from_static(LAST_KEY) } else { span.end.clone() };
    span.start.clone()..end
}

impl<E: Engine> VersionStore for Store<E> {
    type Error = StoreError;

    fn changed_since(&self, key: &[u8], since: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        self.0.newest_above(key, since)
    }
    fn index_may_have_changed(&self, key: &[u8], since: Timestamp) -> bool {
        self.0.may_be_newer_beside(key, since)
    }
    fn span_changed_since(&self, span: &Span, since: Timestamp) -> Result<Option<(Bytes, Timestamp)>, StoreError> {
        self.0.newest_in(&bounded(span), since)
    }
    fn is_present(&self, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.0.version_at(key, Timestamp::MAX)?.is_some_and(|version| version.value.is_some()))
    }
    /// `local` is not kept: on a node that leads all ranges no reader needs it (see `Transaction`'s uncertainty limit).
    fn write(&self, writes: &[Write], at: Timestamp, _local: Timestamp) -> Result<(), StoreError> {
        self.0.apply_each(at, writes.iter().map(|w| (&w.key, &w.value)));
        Ok(())
    }
    /// Large ones are shown; whoever sees to the outputs of who applies has them put in their places.
    fn write_whole(&self, batch: &Arc<Batch>, at: Timestamp, local: Timestamp) -> Result<(), StoreError> {
        match self.0.shows(batch.writes.len()) {
            true => {
                self.0.show(at, Arc::new(Shown(batch.clone())));
                Ok(())
            }
            false => self.write(&batch.writes, at, local),
        }
    }
}

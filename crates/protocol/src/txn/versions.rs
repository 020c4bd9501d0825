use super::Span;
use bytes::Bytes;
use clock::Timestamp;
use std::sync::Arc;

/// Bytes of a key that name its index.
pub const INDEX_BYTES: usize = 4;

/// What a refusal names of something read of which no key is known to have changed: the key, or of a span, whose start need not be the key of
/// anything, its index.
pub fn told_of(start: &Bytes, end: Option<&Bytes>) -> Bytes {
    match end {
        None => start.clone(),
        Some(_) => start.slice(..start.len().min(INDEX_BYTES)),
    }
}

/// The versions that a range machine certifies against and writes to.
///
/// Methods take `&self`: readers share the store with the one thread that applies.
pub trait VersionStore {
    /// What a failing disk gives.
    type Error;

    /// The timestamp of a version of `key` above `since`, deletions included; `None` if there is none.
    ///
    /// # Errors
    /// The store failed.
    fn changed_since(&self, key: &[u8], since: Timestamp) -> Result<Option<Timestamp>, Self::Error>;

    /// Whether some key of the index of `key`, which its first `INDEX_BYTES` name, may have a version above `since`. A cheap question:
    /// whoever does not know says yes.
    fn index_may_have_changed(&self, _key: &[u8], _since: Timestamp) -> bool {
        true
    }

    /// Some key of `span` that has a version above `since`, and that version's timestamp; `None` if the span is unchanged. Which of several keys it
    /// is, is told to people only: replicas may differ in it.
    ///
    /// # Errors
    /// The store failed.
    fn span_changed_since(&self, span: &Span, since: Timestamp) -> Result<Option<(Bytes, Timestamp)>, Self::Error>;

    /// Whether the newest version of `key` has a value.
    ///
    /// # Errors
    /// The store failed.
    fn is_present(&self, key: &[u8]) -> Result<bool, Self::Error>;

    /// Writes a version of each key (`None` deletes) at `at`. `local` is the timestamp at which this range prepared it, at most `at`: a reader
    /// that saw this range's clock below `local` knows that the version is not in its past. Writing the same version twice
    /// changes nothing.
    ///
    /// # Errors
    /// The store failed.
    fn write(&self, writes: &[super::Write], at: Timestamp, local: Timestamp) -> Result<(), Self::Error>;

    /// As [`VersionStore::write`] of all writes of a batch, which whoever writes many may keep and see to afterwards; they are seen at once.
    ///
    /// # Errors
    /// The store failed.
    fn write_whole(&self, batch: &Arc<super::Batch>, at: Timestamp, local: Timestamp) -> Result<(), Self::Error> {
        self.write(&batch.writes, at, local)
    }
}

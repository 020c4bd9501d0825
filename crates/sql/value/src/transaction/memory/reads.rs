//! What a transaction has read, and what that is at a snapshot.

use super::Versions;
use crate::transaction::{KvError, Span};
use bytes::Bytes;
use clock::Timestamp;

/// A span that was read.
pub(super) struct Read {
    pub span: Span,
    pub at: Timestamp,
    pub certified: bool,
}

/// What a snapshot sees of a key.
pub(super) fn visible(versions: &Versions, snapshot: Timestamp) -> Option<Bytes> {
    versions.iter().rev().find(|(ts, _)| *ts <= snapshot).and_then(|(_, value)| value.clone())
}

/// The span of one key.
pub(super) fn key_span(key: &[u8]) -> Span {
    let mut end = Vec::with_capacity(key.len() + 1);
    end.extend_from_slice(key);
    end.push(0);
    Bytes::copy_from_slice(key)..Bytes::from(end)
}

pub(super) fn restart(key: &Bytes) -> KvError {
    KvError::Restart {
        reason: "what was read or written was changed by a transaction that committed first".into(),
        key: Some(key.clone()),
    }
}

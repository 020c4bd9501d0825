//! Spans of keys: an index, the rows with given values in its first columns, a range of the next column.

use super::key::encode_value;
use crate::catalog::Oid;
use crate::transaction::Span;
use crate::types::{SqlType, Value};
use bytes::Bytes;
use std::ops::Bound;

/// Bytes of the index id at the start of each key.
pub const INDEX_PREFIX_BYTES: usize = 4;

/// The start of each key of an index.
pub fn index_prefix(index: Oid) -> [u8; INDEX_PREFIX_BYTES] {
    index.to_be_bytes()
}

/// The index whose entry a key is.
pub fn index_of(key: &[u8]) -> Option<Oid> {
    key.first_chunk::<INDEX_PREFIX_BYTES>().map(|b| Oid::from_be_bytes(*b))
}

/// The least key above all keys that begin with `prefix`; empty if there is none (the end of the key space).
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return end;
        }
    }
    end
}

/// All keys that begin with `prefix`.
pub fn prefix_span(prefix: &[u8]) -> Span {
    Bytes::copy_from_slice(prefix)..Bytes::from(prefix_end(prefix))
}

/// All keys of an index.
pub fn index_span(index: Oid) -> Span {
    prefix_span(&index_prefix(index))
}

/// Keys that begin with `prefix` (index id and equality columns) and whose next column lies between two bounds. NULL is
/// never within: comparisons with NULL are not true.
pub fn range_span(prefix: &[u8], low: Bound<&Value>, high: Bound<&Value>, ty: &SqlType, descending: bool) -> Span {
    let key = |value: &Value| {
        let mut key = prefix.to_vec();
        encode_value(value, ty, descending, &mut key);
        key
    };
    // Bounds change places in a descending column.
    let (low, high) = if descending { (high, low) } else { (low, high) };
    let start = match low {
        Bound::Included(value) => key(value),
        Bound::Excluded(value) => prefix_end(&key(value)),
        // NULLs come first in a descending column.
        Bound::Unbounded if descending => prefix_end(&key(&Value::Null)),
        Bound::Unbounded => prefix.to_vec(),
    };
    let end = match high {
        Bound::Included(value) => prefix_end(&key(value)),
        Bound::Excluded(value) => key(value),
        Bound::Unbounded if descending => prefix_end(prefix),
        Bound::Unbounded => key(&Value::Null),
    };
    if !end.is_empty() && start >= end { Bytes::new()..Bytes::from_static(&[0]) } else { start.into()..end.into() }
}

/// Whether a span holds no key of ours: the result of [`range_span`] for bounds that contradict each other.
pub fn is_empty(span: &Span) -> bool {
    span.start.is_empty() && span.end.as_ref() == [0]
}

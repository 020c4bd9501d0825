//! Keys of an index: they begin with its OID.

use crate::transaction::Span;
use crate::types::Oid;
use bytes::Bytes;

/// Bytes of the index id at the start of each key.
pub(crate) const INDEX_PREFIX_BYTES: usize = 4;

/// The start of each key of an index.
pub fn index_prefix(index: Oid) -> [u8; INDEX_PREFIX_BYTES] {
    index.to_be_bytes()
}

/// The index whose entry a key is.
pub fn index_of(key: &[u8]) -> Option<Oid> {
    key.first_chunk::<INDEX_PREFIX_BYTES>().map(|b| Oid::from_be_bytes(*b))
}

/// The least key above all keys that begin with `prefix`; empty if there is none (the end of the key space).
pub(crate) fn prefix_end(prefix: &[u8]) -> Vec<u8> {
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
pub(crate) fn prefix_span(prefix: &[u8]) -> Span {
    Bytes::copy_from_slice(prefix)..Bytes::from(prefix_end(prefix))
}

/// All keys of an index.
pub fn index_span(index: Oid) -> Span {
    prefix_span(&index_prefix(index))
}

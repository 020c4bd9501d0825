//! Commits whose writes stand somewhere else, in key order.
//!
//! Problem: a [`Write`] is made to be handed on, and a million of them are 72 MB that are written only to be encoded, certified and dropped. Idea: who has
//! them in less room lends them. What is asked of each key is asked of all of an index at once, as far as their order allows.
//!
//! Invariant: it is committed, or refused, where [`super::Range::apply`] of a batch that has them is; of several reasons to refuse it another one may be named.

use super::certify::{certify, inside_reads, reads_unchanged};
use super::versions::INDEX_BYTES;
use super::{Batch, Cause, Range, Refusal, VersionStore, Write};
use bytes::Bytes;
use clock::Timestamp;
use std::ops::Range as Places;

/// Writes in key order, each key once.
pub trait LentWrites {
    /// How many.
    fn count(&self) -> usize;
    /// The key of one.
    fn key(&self, at: usize) -> &[u8];
    /// The same, for who keeps it.
    fn shared_key(&self, at: usize) -> Bytes {
        Bytes::copy_from_slice(self.key(at))
    }
    /// Its new value; `None`: deleted.
    fn value(&self, at: usize) -> Option<&[u8]>;
    /// As [`Write::since`].
    fn since(&self, at: usize) -> Timestamp;

    /// The first from `from` on for whose key `before` does not hold.
    fn first_from(&self, from: usize, before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut from, mut to) = (from, self.count());
        while from < to {
            let middle = from + (to - from) / 2;
            match before(self.key(middle)) {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }
}

impl LentWrites for [Write] {
    fn count(&self) -> usize {
        self.len()
    }
    fn key(&self, at: usize) -> &[u8] {
        &self[at].key
    }
    fn shared_key(&self, at: usize) -> Bytes {
        self[at].key.clone()
    }
    fn value(&self, at: usize) -> Option<&[u8]> {
        self[at].value.as_deref()
    }
    fn since(&self, at: usize) -> Timestamp {
        self[at].since
    }
}

/// Where the writes of each index stand.
pub fn indexes(writes: &impl LentWrites) -> impl Iterator<Item = Places<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let begin = from;
        if begin == writes.count() {
            return None;
        }
        let index = |key: &[u8]| key.len().min(INDEX_BYTES);
        let first = writes.key(begin);
        let first = &first[..index(first)];
        from = writes.first_from(begin + 1, |key| &key[..index(key)] <= first);
        Some(begin..from)
    })
}

/// The least snapshot at which some writes were decided.
pub fn decided(writes: &impl LentWrites, places: Places<usize>) -> Timestamp {
    places.map(|at| writes.since(at)).min().unwrap_or_default()
}

/// Whether the batch may commit with these writes.
pub(super) fn certify_lent<V: VersionStore>(
    range: &Range,
    batch: &Batch,
    writes: &impl LentWrites,
    versions: &V,
) -> Result<Result<(), Refusal>, V::Error> {
    if !range.prepared().is_empty() {
        // What others hold is asked of whole batches. Of a value counts only that there is one.
        let write = |at| Write {
            key: Bytes::copy_from_slice(writes.key(at)),
            value: writes.value(at).map(|_| Bytes::new()),
            since: writes.since(at),
        };
        let whole = Batch { writes: (0..writes.count()).map(write).collect(), ..batch.clone() };
        return certify(range, &whole, versions);
    }
    let refused = |at: usize, cause| Ok(Err(Refusal { key: Bytes::copy_from_slice(writes.key(at)), cause }));
    for places in indexes(writes) {
        // They are in order, so those between lie where the ends do.
        for end in [places.start, places.end - 1] {
            if !range.span().contains(writes.key(end)) {
                return refused(end, Cause::Moved);
            }
        }
        let threshold = range.collected_of(writes.key(places.start));
        if let Some(at) = places.clone().find(|at| writes.since(*at) < threshold) {
            return refused(at, Cause::TooOld { threshold });
        }
    }
    if let Err(refusal) = inside_reads(range, batch) {
        return Ok(Err(refusal));
    }
    for places in indexes(writes) {
        if !versions.index_may_have_changed(writes.key(places.start), decided(writes, places.clone())) {
            continue;
        }
        for at in places {
            if let Some(changed) = versions.changed_since(writes.key(at), writes.since(at))? {
                return refused(at, Cause::WriteChanged { at: changed });
            }
        }
    }
    reads_unchanged(batch, versions)
}

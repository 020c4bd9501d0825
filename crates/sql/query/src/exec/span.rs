//! From constraints on the leading columns of an index to the keys to read.
//!
//! Relies on the order of encoded keys: as the values, turned round for a descending column, NULLs before or behind them all;
//! and no encoded value is a prefix of another.
//!
//! Invariant: a bound never lets a NULL through, as SQL's comparisons never do.

use super::table::{IndexAccess, PREFIX_BYTES};
use crate::transaction::Span;
use crate::types::Value;
use bytes::Bytes;
use std::ops::Bound;

/// Keys to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// One key: of a row, or of a unique entry.
    One(Bytes),
    /// A span of keys.
    Span(Span),
}

impl Keys {
    /// The first key: what a list of them is sorted by.
    pub fn start(&self) -> &Bytes {
        match self {
            Keys::One(key) => key,
            Keys::Span(span) => &span.start,
        }
    }
}

/// Keys of an index whose first columns equal `prefix` (which may hold NULLs: IS NULL). A single key if that names at most one row.
pub fn equal(index: &IndexAccess, prefix: &[Value]) -> Keys {
    let start = encode_prefix(index, prefix);
    let whole = prefix.len() == index.columns.len();
    if whole && index.unique && !prefix.iter().any(|v| matches!(v, Value::Null)) {
        // In full length: a key is kept longer than the room that it was written in.
        return Keys::One(Bytes::copy_from_slice(&start));
    }
    let end = successor(&start);
    Keys::Span(Bytes::from(start)..end)
}

/// Keys of an index whose first columns equal `prefix` and whose next column lies between the bounds; `None` if no key can.
pub fn between(index: &IndexAccess, prefix: &[Value], low: Bound<&Value>, high: Bound<&Value>) -> Option<Span> {
    let base = encode_prefix(index, prefix);
    let column = index.columns.get(prefix.len())?;
    let with = |value: &Value| {
        let mut out = base.clone();
        column.encode(value, &mut out);
        out
    };
    let (first, last) = if column.descending { (high, low) } else { (low, high) };
    let start = match first {
        Bound::Included(value) => Bytes::from(with(value)),
        Bound::Excluded(value) => successor(&with(value)),
        Bound::Unbounded if column.nulls_first => successor(&with(&Value::Null)),
        Bound::Unbounded => Bytes::from(base.clone()),
    };
    let end = match last {
        Bound::Included(value) => successor(&with(value)),
        Bound::Excluded(value) => Bytes::from(with(value)),
        Bound::Unbounded if column.nulls_first => successor(&base),
        Bound::Unbounded => Bytes::from(with(&Value::Null)),
    };
    (start < end).then_some(start..end)
}

/// Keys in order of their starts, each row once: alternatives may overlap (`a < 5 OR a < 9`).
pub fn apart(keys: Vec<Keys>) -> Vec<Keys> {
    let mut out: Vec<Keys> = Vec::with_capacity(keys.len());
    for next in keys {
        match (out.last_mut(), &next) {
            (Some(Keys::One(last)), Keys::One(key)) if last == key => {}
            (Some(Keys::Span(last)), Keys::One(key)) if *key < last.end => {}
            (Some(Keys::Span(last)), Keys::Span(span)) if span.start < last.end => {
                if last.end < span.end {
                    last.end = span.end.clone();
                }
            }
            (Some(last @ Keys::One(_)), Keys::Span(span)) if *last.start() == span.start => *last = next,
            _ => out.push(next),
        }
    }
    out
}

fn encode_prefix(index: &IndexAccess, prefix: &[Value]) -> Vec<u8> {
    let mut out = Vec::with_capacity(PREFIX_BYTES + 12 * (prefix.len() + 1));
    out.extend_from_slice(&index.id.to_be_bytes());
    for (value, column) in prefix.iter().zip(&index.columns) {
        column.encode(value, &mut out);
    }
    out
}

/// The least key above every key that starts with `prefix`.
pub fn successor(prefix: &[u8]) -> Bytes {
    let mut out = prefix.to_vec();
    while let Some(last) = out.pop() {
        if last != u8::MAX {
            out.push(last + 1);
            return Bytes::from(out);
        }
    }
    // Only a prefix of 0xff bytes has no successor; index ids stay far below.
    Bytes::from(vec![u8::MAX; PREFIX_BYTES + 1])
}

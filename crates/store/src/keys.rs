//! How a version is named in the engine: `data tag ++ escaped user key ++ terminator ++ inverted timestamp ++ kind`.
//!
//! The engine orders bytes. A user key is escaped (`00` becomes `00 ff`) and closed with `00 01`, so that no key is
//! cut short by another one's timestamp and the order of user keys is kept; the timestamp is inverted, so that the
//! newest version comes first. The kind (value or tombstone) is the last byte of the key, so that a value is stored and
//! handed out as it is, without a copy.

use bytes::Bytes;
use clock::Timestamp;

/// First byte of the store's own entries.
const META: u8 = 0x00;
/// First byte of versions.
const DATA: u8 = 0x01;
/// First byte above all versions.
const END: u8 = 0x02;
/// Last byte of a version that says: deleted.
const TOMBSTONE: u8 = 0x00;
/// Last byte of a version that holds a value.
const VALUE: u8 = 0x01;
/// Bytes after the terminator: inverted timestamp and kind.
const SUFFIX: usize = 9;

/// The key of one of the store's own entries.
pub fn meta(name: &str) -> Bytes {
    let mut out = Vec::with_capacity(1 + name.len());
    out.push(META);
    out.extend_from_slice(name.as_bytes());
    Bytes::from(out)
}

fn escape(key: &[u8], out: &mut Vec<u8>) {
    out.push(DATA);
    let mut rest = key;
    while let Some(at) = rest.iter().position(|b| *b == 0) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[0x00, 0xff]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// At or below every version of `key`, above every version of a smaller key.
pub fn lower(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 4 + SUFFIX);
    escape(key, &mut out);
    out.extend_from_slice(&[0x00, 0x01]);
    out
}

/// Above every version of `key`, at or below every version of a greater key.
pub fn upper(key: &[u8]) -> Vec<u8> {
    let mut out = lower(key);
    if let Some(last) = out.last_mut() {
        *last = 0x02;
    }
    out
}

/// Above every version of every key that starts with `prefix`.
pub fn prefix_upper(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return lower(&end);
        }
    }
    vec![END]
}

/// At or below the version of `key` at `ts`, above every newer one.
pub fn at(key: &[u8], ts: Timestamp) -> Vec<u8> {
    let mut out = lower(key);
    out.extend_from_slice(&(!ts.as_u64()).to_be_bytes());
    out
}

/// The engine's key of one version.
pub fn version(key: &[u8], ts: Timestamp, tombstone: bool) -> Bytes {
    let mut out = at(key, ts);
    out.push(if tombstone { TOMBSTONE } else { VALUE });
    Bytes::from(out)
}

/// The parts of an engine key that names a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Escaped user key with tag and terminator: equal for all versions of one key.
    pub stem: &'a [u8],
    /// When it was committed.
    pub ts: Timestamp,
    /// Whether it says: deleted.
    pub tombstone: bool,
}

/// Splits an engine key; `None` where it is not one of ours.
pub fn split(physical: &[u8]) -> Option<Parts<'_>> {
    let cut = physical.len().checked_sub(SUFFIX)?;
    let (stem, suffix) = physical.split_at(cut);
    if stem.first() != Some(&DATA) || !stem.ends_with(&[0x00, 0x01]) {
        return None;
    }
    let (ts, kind) = suffix.split_first_chunk::<8>()?;
    let tombstone = match kind {
        [TOMBSTONE] => true,
        [VALUE] => false,
        _ => return None,
    };
    Some(Parts { stem, ts: Timestamp::from_u64(!u64::from_be_bytes(*ts)), tombstone })
}

/// The user key of a stem.
pub fn user_key(stem: &[u8]) -> Bytes {
    let body = stem.get(1..stem.len().saturating_sub(2)).unwrap_or_default();
    let mut out = Vec::with_capacity(body.len());
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        out.push(*byte);
        if *byte == 0 {
            bytes.next();
        }
    }
    Bytes::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(2), Just(0xfe), Just(0xff), any::<u8>()], 0..6)
    }

    proptest! {
        #[test]
        fn order_is_kept_and_parts_come_back(a in key(), b in key(), x in any::<u64>(), y in any::<u64>()) {
            let (tx, ty) = (Timestamp::from_u64(x), Timestamp::from_u64(y));
            let (pa, pb) = (version(&a, tx, true), version(&b, ty, false));
            prop_assert_eq!((&a, !x, 0).cmp(&(&b, !y, 1)), pa.cmp(&pb));
            let parts = split(&pa).unwrap();
            prop_assert_eq!(user_key(parts.stem), a.clone());
            prop_assert_eq!((parts.ts, parts.tombstone), (tx, true));
            prop_assert!(lower(&a).as_slice() <= &pa[..] && &pa[..] < upper(&a).as_slice());
            prop_assert!(at(&a, tx).as_slice() <= &pa[..]);
            if b.starts_with(&a) {
                prop_assert!(&pb[..] < prefix_upper(&a).as_slice());
            } else {
                prop_assert!(!(lower(&a).as_slice() <= &pb[..] && &pb[..] < prefix_upper(&a).as_slice()));
            }
        }
    }
}

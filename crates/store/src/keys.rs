//! How versions are named and written in the engine's two trees.
//!
//! ```text
//! Present   tag ++ user key                                       kind ++ timestamp ++ value
//! Past      class ++ bucket ++ escaped key ++ 00 01 ++ end        begin ++ value
//! ```
//!
//! The present has one entry per key, its newest version, under the key itself: it is found by its exact name, and a newer one takes
//! its place. A version of the past is named by when it *ended*: with begin and end in one entry, no neighbour has to be asked whether a
//! snapshot sees it or whether it may go. Ends are gathered in buckets of time, so that what ended long ago lies together and goes
//! together.
//!
//! The engine orders bytes. In the past a user key is escaped (`00` becomes `00 ff`) and closed with `00 01`, so that no key is cut
//! short by another one's timestamp; the present needs none of this.

use crate::engine::LentKey;
use crate::versions::Thresholds;
use bytes::{Buf, BufMut, Bytes};
use clock::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// First byte of the store's own entries.
const META: u8 = 0x00;
/// First byte of a key of the present.
const DATA: u8 = 0x01;
/// First byte above all keys of the present.
const END: u8 = 0x02;
/// First byte of a present entry that says: deleted. It stays until nothing can look back at what was before.
const GRAVE: u8 = 0x00;
/// First byte of a present entry that holds a value.
const VALUE: u8 = 0x01;
/// Kind and timestamp in front of a value of the present.
const PRESENT_HEAD: usize = 9;
/// When it began, in front of a value of the past.
const PAST_HEAD: usize = 8;
/// Class and bucket in front of a key of the past.
const BUCKET_HEAD: usize = 9;
/// End of a key of the past.
const PAST_END: usize = 8;

/// The key of one of the store's own entries, in the present.
pub fn meta(name: &str) -> Bytes {
    let mut out = Vec::with_capacity(1 + name.len());
    out.push(META);
    out.extend_from_slice(name.as_bytes());
    Bytes::from(out)
}

/// The present's key of a user key.
pub fn present(key: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(1 + key.len());
    put_present(key, &mut out);
    Bytes::from(out)
}

/// Appends the present's key of a user key.
pub fn put_present(key: &[u8], out: &mut Vec<u8>) {
    out.push(DATA);
    out.extend_from_slice(key);
}

/// Above every present key that starts with `prefix`.
pub fn present_upper(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return present(&end);
        }
    }
    Bytes::from_static(&[END])
}

/// The user key of a key of the present, which is given back where it is not one.
pub fn user_key(mut present: Bytes) -> Result<Bytes, Bytes> {
    if present.first() != Some(&DATA) {
        return Err(present);
    }
    // Not a slice of it, which would have to count who holds it.
    present.advance(1);
    Ok(present)
}

/// What the present holds of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    /// When it was committed.
    pub ts: Timestamp,
    /// The value; `None`: deleted.
    pub value: Option<Bytes>,
}

impl Present {
    /// As it is written.
    pub fn encode(ts: Timestamp, value: Option<&[u8]>) -> Bytes {
        let mut out = Vec::with_capacity(PRESENT_HEAD + value.map_or(0, <[u8]>::len));
        Self::put(ts, value, &mut out);
        Bytes::from(out)
    }

    /// Appends what [`Present::encode`] gives.
    pub fn put(ts: Timestamp, value: Option<&[u8]>, out: &mut Vec<u8>) {
        out.put_u8(if value.is_some() { VALUE } else { GRAVE });
        out.put_u64(ts.as_u64());
        out.put_slice(value.unwrap_or_default());
    }

    /// Reads an entry; `None` where it is none.
    pub fn decode(mut entry: Bytes) -> Option<Present> {
        if entry.len() < PRESENT_HEAD {
            return None;
        }
        let kind = entry.get_u8();
        let ts = Timestamp::from_u64(entry.get_u64());
        match kind {
            GRAVE if entry.is_empty() => Some(Present { ts, value: None }),
            VALUE => Some(Present { ts, value: Some(entry) }),
            _ => None,
        }
    }
}

/// The user key and the version of an entry of the present; where it is none, its key.
pub fn present_entry(key: Bytes, entry: Bytes) -> Result<(Bytes, Present), Bytes> {
    let key = user_key(key)?;
    match Present::decode(entry) {
        Some(present) => Ok((key, present)),
        None => Err(self::present(&key)),
    }
}

/// As [`present_entry`], of bytes that are lent: the user key, when it was committed, and the value; `None` where it is none.
#[inline]
pub fn lent_entry<'a>(key: LentKey<'a>, entry: &'a [u8]) -> Option<(LentKey<'a>, Timestamp, Option<&'a [u8]>)> {
    let (DATA, key) = key.split_first()? else { return None };
    let (&kind, rest) = entry.split_first()?;
    let (ts, value) = rest.split_first_chunk::<8>()?;
    let ts = Timestamp::from_u64(u64::from_be_bytes(*ts));
    match kind {
        GRAVE if value.is_empty() => Some((key, ts, None)),
        VALUE => Some((key, ts, Some(value))),
        _ => None,
    }
}

/// Whether an entry of the present is a deletion at or below `threshold`: then nothing says the same.
fn is_grave_below(entry: &[u8], threshold: Timestamp) -> bool {
    match entry.split_first() {
        Some((&GRAVE, rest)) if rest.len() == 8 => {
            rest.first_chunk::<8>().is_some_and(|ts| u64::from_be_bytes(*ts) <= threshold.as_u64())
        }
        _ => false,
    }
}

/// Which entries of the present may go.
#[derive(Clone, Debug, Default)]
pub struct Burial {
    /// Deletions at or below these.
    pub(crate) below: Thresholds,
    /// All that begins with one of these four bytes: it was dropped, and nobody can look back at it.
    pub(crate) dead: BTreeSet<u32>,
}

impl Burial {
    /// Whether an entry of the present is a deletion that says the same as nothing, or dead.
    pub fn takes(&self, key: &[u8], entry: &[u8]) -> bool {
        let grave = || {
            entry.first() == Some(&GRAVE)
                && key.first() == Some(&DATA)
                && key.get(1..).is_some_and(|key| is_grave_below(entry, self.below.of(key)))
        };
        self.is_dead(key) || grave()
    }

    /// Whether all of an entry's index was dropped: what an older table has under its key may go, too.
    pub fn is_dead(&self, key: &[u8]) -> bool {
        let prefix = || Some(u32::from_be_bytes(*key.get(1..)?.first_chunk::<4>()?));
        !self.dead.is_empty()
            && key.first() == Some(&DATA)
            && prefix().is_some_and(|prefix| self.dead.contains(&prefix))
    }
}

/// The first number that stays of each class of the past; classes that are not listed stay.
pub type Kept = BTreeMap<u8, u64>;

/// Whether an entry of the past may go.
pub fn is_aged(key: &[u8], kept: &Kept) -> bool {
    bucket_of(key).is_some_and(|bucket| kept.get(&bucket.class).is_some_and(|first| bucket.number < *first))
}

/// A part of the past: versions of one class that ended in the same stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    /// How long versions are kept: classes age apart.
    pub class: u8,
    /// The end of its versions, shifted down.
    pub number: u64,
}

impl Bucket {
    /// The bucket of versions that ended at `end`, where a bucket is 2^`shift` timestamps wide.
    pub fn of(class: u8, end: Timestamp, shift: u32) -> Bucket {
        Bucket { class, number: end.as_u64() >> shift }
    }

    /// The last end that belongs to it.
    pub fn last_end(self, shift: u32) -> Timestamp {
        Timestamp::from_u64((self.number << shift) | ((1 << shift) - 1))
    }

    /// At or below every key of the bucket, above all keys of buckets before it.
    pub fn lower(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BUCKET_HEAD);
        out.put_u8(self.class);
        out.put_u64(self.number);
        out
    }

    /// The bucket after it, of the same class.
    pub fn next(self) -> Bucket {
        Bucket { number: self.number.saturating_add(1), ..self }
    }

    fn stem(self, key: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(BUCKET_HEAD + key.len() + 4 + PAST_END);
        out.put_u8(self.class);
        out.put_u64(self.number);
        let mut rest = key;
        while let Some(at) = rest.iter().position(|b| *b == 0) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(&[0x00, 0xff]);
            rest = &rest[at + 1..];
        }
        out.extend_from_slice(rest);
        out.extend_from_slice(&[0x00, 0x01]);
        out
    }

    /// The past's key of the version of `key` that ended at `end`.
    pub fn key(self, key: &[u8], end: Timestamp) -> Bytes {
        let mut out = self.stem(key);
        out.put_u64(end.as_u64());
        Bytes::from(out)
    }

    /// Above every version of `key` in this bucket.
    pub fn upper(self, key: &[u8]) -> Vec<u8> {
        let mut out = self.stem(key);
        if let Some(last) = out.last_mut() {
            *last = 0x02;
        }
        out
    }
}

/// A version that another one, or a deletion, has followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// When it was committed.
    pub begin: Timestamp,
    /// When what follows it was committed: snapshots from `begin` on and below `end` see it.
    pub end: Timestamp,
    /// The value.
    pub value: Bytes,
}

impl Past {
    /// The value as it is written.
    pub fn encode(begin: Timestamp, value: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(PAST_HEAD + value.len());
        out.put_u64(begin.as_u64());
        out.put_slice(value);
        Bytes::from(out)
    }

    /// Reads an entry; `None` where it is none.
    pub fn decode(key: &[u8], mut entry: Bytes) -> Option<Past> {
        let (stem, end) = key.split_last_chunk::<PAST_END>()?;
        if stem.len() < BUCKET_HEAD || !stem.ends_with(&[0x00, 0x01]) || entry.len() < PAST_HEAD {
            return None;
        }
        let begin = Timestamp::from_u64(entry.get_u64());
        Some(Past { begin, end: Timestamp::from_u64(u64::from_be_bytes(*end)), value: entry })
    }
}

/// What keys of the past of one key have in common, whatever their bucket.
pub fn past_stem(key: &[u8]) -> Bytes {
    Bytes::from(Bucket { class: 0, number: 0 }.stem(key)).slice(BUCKET_HEAD..)
}

/// That of a key of the past; `None` where it is not one.
pub fn stem_of(physical: &[u8]) -> Option<&[u8]> {
    physical.split_last_chunk::<PAST_END>()?.0.get(BUCKET_HEAD..)
}

/// The bucket of a key of the past; `None` where it is not one.
pub fn bucket_of(key: &[u8]) -> Option<Bucket> {
    let (class, rest) = key.split_first()?;
    Some(Bucket { class: *class, number: u64::from_be_bytes(*rest.first_chunk::<8>()?) })
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
        fn the_present_keeps_the_order_of_keys(a in key(), b in key(), ts in any::<u64>(), value in any::<Option<Vec<u8>>>()) {
            let (pa, pb) = (present(&a), present(&b));
            prop_assert_eq!(a.cmp(&b), pa.cmp(&pb));
            prop_assert!(meta("header") < pa);
            let back = user_key(pa.clone()).ok();
            prop_assert_eq!(back.as_deref(), Some(&a[..]));
            prop_assert_eq!(b.starts_with(&a), pa <= pb && pb < present_upper(&a));
            let ts = Timestamp::from_u64(ts);
            let entry = Present::encode(ts, value.as_deref());
            prop_assert_eq!(is_grave_below(&entry, ts), value.is_none());
            prop_assert!(ts == Timestamp::MIN || !is_grave_below(&entry, ts.prev()));
            let lent = lent_entry(pa[..].into(), &entry).map(|(key, ts, value)| (key.to_vec(), ts, value));
            prop_assert_eq!(lent, Some((a.to_vec(), ts, value.as_deref())));
            prop_assert_eq!(Present::decode(entry), Some(Present { ts, value: value.map(Bytes::from) }));
        }

        #[test]
        fn the_past_is_in_order_of_buckets_keys_and_ends(a in key(), b in key(), x in any::<u64>(), y in any::<u64>(), shift in 0..48u32) {
            let (tx, ty) = (Timestamp::from_u64(x), Timestamp::from_u64(y));
            let (ba, bb) = (Bucket::of(0, tx, shift), Bucket::of(0, ty, shift));
            let (pa, pb) = (ba.key(&a, tx), bb.key(&b, ty));
            prop_assert_eq!((ba, &a, tx).cmp(&(bb, &b, ty)), pa.cmp(&pb));
            prop_assert!(ba.lower() <= pa.to_vec() && pa.to_vec() < ba.next().lower() || ba.number == u64::MAX);
            prop_assert!(pa.to_vec() < ba.upper(&a));
            prop_assert!(tx <= ba.last_end(shift) && Bucket::of(0, ba.last_end(shift), shift) == ba);
            prop_assert_eq!(bucket_of(&pa), Some(ba));
            let past = Past::decode(&pa, Past::encode(ty, b"value")).unwrap();
            prop_assert_eq!(past, Past { begin: ty, end: tx, value: Bytes::from_static(b"value") });
        }
    }
}

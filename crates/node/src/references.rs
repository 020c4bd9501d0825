//! Which keys were referred to, and when last: so that nobody goes by it that nobody refers to a key, when somebody has come to since he looked.
//!
//! # Problem
//! Who deletes a row looks for rows that refer to it first. Where he finds them by an index of theirs he certifies the span that he has read. Without an index that span is the whole
//! table: whoever writes anything to it refuses him.
//!
//! # Idea
//! A row that refers to another relies on that being *present* when it commits ([`protocol::txn::Read::Present`]), and says so to whoever leads the range of the key. That is all the news there is for who
//! has looked: so it is remembered here, by a digest, with its timestamp. Who looked without certifying says at which snapshot ([`protocol::txn::Read::Unreferred`]), and is refused where that lies below it, whatever
//! he has written to the key by then. So that this is rare, the strongest lock on the row comes to its newest reference at READ COMMITTED as if that had been waited for: the snapshot moves up, and who refers is seen.
//!
//! ```text
//! refers      present(P) ─────► commit at 150: P ← 150
//! deletes     lock(P), looks at 120: nobody     unreferred P since 120  ──► 150 > 120: refused
//! ```
//!
//! # Invariants
//! 1. What refers is noted when it is given its place in the log, with its timestamp; what is prepared again when it is decided, with that of its commit. In between it refuses who says the
//!    contrary by itself, and he it ([`protocol::txn::Read::contradicts`]).
//! 2. Who relies on it that nobody refers is asked for at the same place, and refused *by the log*: replicas decide by what the log says, which is that read alone, at a snapshot that is none ([`refuse_in_log`]).
//! 3. It forgets nothing: several keys may share a place, and the newest counts. What was referred to before it was begun counts as referred to just then.
//! 4. So a reference that commits after the other transaction has looked either comes behind that in the log, or refuses it.
//!
//! # Caveats
//! References that are refused in the end are noted, too, and keys that share a place: somebody is refused who need not be, and is repeated. Of a transaction with very many references some are noted as all keys of their
//! index ([`protocol::txn::Read::Referred`]).

use bytes::Bytes;
use clock::Timestamp;
use protocol::txn::{Batch, Cause, Read, Refusal};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Places for keys: so many groups, which take memory from their first use on, of so many each. 8 MB in all.
const GROUPS: usize = 256;
const GROUP_PLACES: usize = 4096;
/// Places for indexes, by their numbers, which are given out one after the other.
const INDEX_PLACES: usize = 4096;

type Group = Box<[AtomicU64]>;

/// See the module.
#[derive(Debug)]
pub(crate) struct References {
    keys: Vec<OnceLock<Group>>,
    /// Some key of an index was referred to: who asks for many keys of one mostly asks no more.
    indexes: Group,
    /// Every key of an index counts as referred to.
    whole: Group,
}

impl Default for References {
    fn default() -> Self {
        References {
            keys: (0..GROUPS).map(|_| OnceLock::new()).collect(),
            indexes: places(INDEX_PLACES),
            whole: places(INDEX_PLACES),
        }
    }
}

fn places(count: usize) -> Group {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Of many keys of one index all but the first find it so.
fn raise(place: &AtomicU64, at: Timestamp) {
    if place.load(SeqCst) < at.as_u64() {
        place.fetch_max(at.as_u64(), SeqCst);
    }
}

/// FNV-1a, its bits mixed once more: a few bytes for each key, and the same everywhere.
fn digest(key: &[u8]) -> u64 {
    let hash = key
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn place_of(key: &[u8]) -> (usize, usize) {
    let digest = digest(key);
    ((digest >> 56) as usize % GROUPS, (digest >> 32) as usize % GROUP_PLACES)
}

fn index_place(key: &[u8]) -> usize {
    let mut index = [0; 4];
    let length = key.len().min(4);
    index[..length].copy_from_slice(&key[..length]);
    u32::from_be_bytes(index) as usize % INDEX_PLACES
}

impl References {
    /// A key is referred to by what is committed, or may be, at `at`.
    fn note_key(&self, key: &[u8], at: Timestamp) {
        let (group, place) = place_of(key);
        let group = self.keys[group].get_or_init(|| places(GROUP_PLACES));
        raise(&group[place], at);
        raise(&self.indexes[index_place(key)], at);
    }

    /// Notes all that a batch refers to.
    pub fn note(&self, batch: &Batch, at: Timestamp) {
        for read in &batch.reads {
            match read {
                Read::Present { key, .. } => self.note_key(key, at),
                // It lies in one index.
                Read::Referred { span, .. } => {
                    let index = index_place(&span.start);
                    raise(&self.whole[index], at);
                    raise(&self.indexes[index], at);
                }
                Read::Key { .. } | Read::Span { .. } | Read::Unreferred { .. } => {}
            }
        }
    }

    /// When a key, or one that shares its place, was referred to last, if that was above `since`.
    pub fn newest_above(&self, key: &[u8], since: Timestamp) -> Option<Timestamp> {
        let index = index_place(key);
        if self.indexes[index].load(SeqCst) <= since.as_u64() {
            return None;
        }
        let (group, place) = place_of(key);
        let alone = self.keys[group].get().map_or(0, |group| group[place].load(SeqCst));
        let newest = alone.max(self.whole[index].load(SeqCst));
        (newest > since.as_u64()).then(|| Timestamp::from_u64(newest))
    }

    /// A key that a batch says nobody refers to, though somebody does, or may since a time before `from`.
    pub fn against(&self, batch: &Batch, from: Timestamp) -> Option<Bytes> {
        batch.reads.iter().find_map(|read| {
            let Read::Unreferred { key, since } = read else { return None };
            (*since < from || self.newest_above(key, *since).is_some()).then(|| key.clone())
        })
    }
}

/// The answer to who says that nobody refers to a key.
pub(crate) fn refusal(key: Bytes) -> Refusal {
    Refusal { key, cause: Cause::ReadChanged { at: Timestamp::MIN } }
}

/// Makes of a batch one that the log refuses for a key, whatever a replica has: no look was at so old a snapshot. It says nothing else, and nothing else comes of it.
pub(crate) fn refuse_in_log(batch: &mut Batch, key: Bytes) {
    let reads = vec![Read::Unreferred { key, since: Timestamp::MIN }];
    *batch = Batch { txn: batch.txn, until: batch.until, reads, ..Batch::default() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::txn::{Span, TxnId};

    fn key(index: u32, n: u32) -> Bytes {
        Bytes::from([index.to_be_bytes(), n.to_be_bytes()].concat())
    }

    fn at(us: u64) -> Timestamp {
        Timestamp::new(us, 0)
    }

    fn reads(read: Read) -> Batch {
        Batch { txn: TxnId { serial: 1, node: 1 }, reads: vec![read], ..Batch::default() }
    }

    fn refers(key: &Bytes) -> Batch {
        reads(Read::Present { key: key.clone(), since: at(1) })
    }

    fn unreferred(key: &Bytes, since: Timestamp) -> Batch {
        reads(Read::Unreferred { key: key.clone(), since })
    }

    #[test]
    fn who_says_that_nobody_refers_to_what_was_referred_to_since_is_refused() {
        let references = References::default();
        references.note(&refers(&key(20_000, 7)), at(150));
        let against = |index, n, since| references.against(&unreferred(&key(index, n), at(since)), at(0));
        assert!(against(20_000, 7, 149).is_some());
        assert_eq!(against(20_000, 7, 150), None, "he has seen it");
        assert_eq!(against(20_000, 8, 149), None, "another key");
        assert_eq!(against(20_001, 7, 149), None, "another index");
        let before = references.against(&unreferred(&key(20_001, 7), at(149)), at(200));
        assert!(before.is_some(), "nobody knows who referred to it before");
        assert_eq!(references.against(&refers(&key(20_000, 7)), at(200)), None, "it says no such thing");
    }

    #[test]
    fn of_very_many_references_all_keys_of_the_index_count() {
        let references = References::default();
        let span = Span::new(key(20_000, 7), key(20_000, 9));
        references.note(&reads(Read::Referred { span, since: at(1) }), at(150));
        for (index, n, since, refused) in [(20_000, 8, 149, true), (20_000, 8, 150, false), (20_001, 8, 149, false)] {
            let against = references.against(&unreferred(&key(index, n), at(since)), at(0));
            assert_eq!(against.is_some(), refused, "{index} {n} {since}");
        }
    }

    #[test]
    fn the_log_refuses_what_a_leader_says_so() {
        let references = References::default();
        references.note(&refers(&key(20_000, 7)), at(150));
        let mut batch = unreferred(&key(20_000, 7), at(149));
        let against = references.against(&batch, at(0)).expect("refused");
        refuse_in_log(&mut batch, against);
        assert_eq!(batch, unreferred(&key(20_000, 7), Timestamp::MIN));
    }

    #[test]
    fn keys_rarely_share_a_place() {
        let places: std::collections::BTreeSet<(usize, usize)> =
            (0..10_000).map(|n| place_of(&key(20_000, n))).collect();
        assert!(places.len() > 9_900, "{} of 10000, of {}", places.len(), GROUPS * GROUP_PLACES);
    }
}

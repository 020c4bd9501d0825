//! Commits whose writes are lent: the verdict and the record are those of a batch that has its writes.

mod model;

use bytes::Bytes;
use clock::Timestamp;
use model::Model;
use proptest::prelude::*;
use protocol::txn::{
    Apart, Batch, Cause, Command, LentWrites, Range, RangeId, Read, Span, TxnId, Verdict, VersionStore, Write,
    encode_commit, encode_record,
};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Of three indexes.
fn key((index, n): (u8, u8)) -> Bytes {
    Bytes::from(vec![0, 0, 0, 1 + index % 3, n % 6])
}

/// A model that knows of each index when it was changed last.
struct Indexed(Model);

impl VersionStore for Indexed {
    type Error = Infallible;

    fn changed_since(&self, key: &[u8], since: Timestamp) -> Result<Option<Timestamp>, Infallible> {
        self.0.changed_since(key, since)
    }
    fn index_may_have_changed(&self, key: &[u8], since: Timestamp) -> bool {
        let mut end = key[..4].to_vec();
        end[3] += 1;
        self.0.span_changed_since(&Span::new(key[..4].to_vec(), end), since).is_ok_and(|changed| changed.is_some())
    }
    fn span_changed_since(&self, span: &Span, since: Timestamp) -> Result<Option<(Bytes, Timestamp)>, Infallible> {
        self.0.span_changed_since(span, since)
    }
    fn is_present(&self, key: &[u8]) -> Result<bool, Infallible> {
        self.0.is_present(key)
    }
    fn write(&self, writes: &[Write], at: Timestamp, local: Timestamp) -> Result<(), Infallible> {
        self.0.write(writes, at, local)
    }
}

fn keys(most: usize) -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec((any::<u8>(), any::<u8>()), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_lent_is_judged_and_written_down_as_what_is_had(
        before in prop::collection::vec((keys(4), 20u64..60), 0..5),
        prepared in prop::option::of((keys(3), keys(3))),
        collected in 0u64..25, apart in prop::option::of(10u64..40), span in prop::option::of((any::<u8>(), any::<u8>())),
        writes in prop::collection::btree_map((0u8..3, 0u8..6), (15u64..70, any::<bool>()), 1..8),
        reads in keys(3), present in keys(2), scanned in prop::option::of(((any::<u8>(), any::<u8>()), (any::<u8>(), any::<u8>()))),
        since in 15u64..70,
    ) {
        let ts = Timestamp::from_u64;
        let versions = Indexed(Model::default());
        for (keys, at) in &before {
            let puts: BTreeMap<Bytes, ()> = keys.iter().map(|n| (key(*n), ())).collect();
            let write = |key: Bytes| Write { value: (at % 3 > 0).then(|| key.clone()), key, since: ts(0) };
            let puts: Vec<Write> = puts.into_keys().map(write).collect();
            let Ok(()) = versions.write(&puts, ts(*at), ts(*at));
        }
        let mut range = Range::new(RangeId(1), span.map_or(Span::ALL, |(from, to)| {
            Span::new(key((from, 0)).slice(..4), key((to, 5)))
        }));
        let apart = apart.map(|at| Apart { index: [0, 0, 0, 2], class: 1, threshold: ts(at) });
        let collect = Command::Collect { threshold: ts(collected), apart: apart.into_iter().collect() };
        let Ok(_) = range.apply(ts(61), &collect, &versions);
        if let Some((writes, reads)) = prepared {
            let writes: BTreeMap<Bytes, ()> = writes.into_iter().map(|n| (key(n), ())).collect();
            let writes = writes.into_keys().map(|key| Write { key, value: None, since: ts(60) }).collect();
            let reads = reads.into_iter().map(|n| Read::Key { key: key(n), since: ts(60) }).collect();
            let batch = Batch { txn: TxnId { serial: 9, node: 1 }, reads, writes, ..Batch::default() };
            let Ok(_) = range.apply(ts(62), &Command::Prepare { batch, participants: vec![RangeId(1)] }, &versions);
        }
        let since = ts(since);
        let mut all: Vec<Read> = reads.into_iter().map(|n| Read::Key { key: key(n), since }).collect();
        all.extend(present.into_iter().map(|n| Read::Present { key: key(n), since }));
        all.extend(scanned.map(|(from, to)| Read::Span { span: Span::new(key(from), key(to)), since }));
        let write = |(n, (since, puts)): (_, (u64, bool))| Write {
            key: key(n), value: puts.then(|| Bytes::from_static(b"new")), since: ts(since),
        };
        let writes: Vec<Write> = writes.into_iter().map(write).collect();
        let batch = Batch { txn: TxnId { serial: 10, node: 1 }, reads: all, ..Batch::default() };
        let had = Command::Commit(Batch { writes: writes.clone(), ..batch.clone() });
        let had_writes = writes.clone();
        let (mut bytes, mut lent_bytes) = (Vec::new(), Vec::new());
        encode_record(RangeId(1), ts(90), &had, &mut bytes);
        encode_commit(RangeId(1), ts(90), &batch, &writes[..], &mut lent_bytes);
        prop_assert_eq!(bytes, lent_bytes);
        let mut lent = range.clone();
        let Ok(lent_verdict) = lent.apply_lent(ts(90), &batch, &Few(writes), &versions);
        let Ok(verdict) = range.apply(ts(90), &had, &versions);
        match (&lent_verdict, &verdict) {
            // Of several reasons another one may be named; if it is of the same kind, what it says of its key holds.
            (Verdict::Refused(lent), Verdict::Refused(_)) => {
                let write = had_writes.iter().find(|write| write.key == lent.key);
                match lent.cause {
                    Cause::TooOld { threshold } => {
                        let reads = batch.reads.iter().filter(|read| !matches!(read, Read::Present { .. }));
                        let read = reads.map(Read::since).any(|since| since < threshold);
                        prop_assert!(read || write.is_some_and(|write| write.since < threshold));
                    }
                    Cause::WriteChanged { at } => prop_assert!(write.is_some_and(|write| write.since < at)),
                    _ => {}
                }
            }
            _ => prop_assert_eq!(&lent_verdict, &verdict),
        }
        prop_assert_eq!(lent, range);
    }
}

struct Few(Vec<Write>);

impl LentWrites for Few {
    fn count(&self) -> usize {
        self.0.len()
    }
    fn key(&self, at: usize) -> &[u8] {
        &self.0[at].key
    }
    fn value(&self, at: usize) -> Option<&[u8]> {
        self.0[at].value.as_deref()
    }
    fn since(&self, at: usize) -> Timestamp {
        self.0[at].since
    }
}

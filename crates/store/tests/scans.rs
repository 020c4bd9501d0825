//! Scans: fjall's runs read by ourselves, against a book; and what a scan of a table costs that was updated as a whole.

use bytes::Bytes;
use clock::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use store::engine::Tree;
use store::{Engine, FjallEngine, FjallOptions, MemoryEngine, Versions, VersionsConfig, Write};

fn key(n: u16) -> Bytes {
    Bytes::copy_from_slice(&[&[1, 0][..], &n.to_be_bytes()].concat())
}

/// What is done to a tree: keys with a value each or none, ingested at once; or all of it written anew.
#[derive(Clone, Debug)]
enum Step {
    Ingest(BTreeMap<u16, Option<u8>>),
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    let entries = |keys: std::ops::Range<u16>| {
        prop::collection::btree_map(keys, prop::option::weighted(0.8, any::<u8>()), 1..300).prop_map(Step::Ingest)
    };
    // Some lie apart: then a stretch has one run only.
    prop_oneof![4 => entries(0..400), 2 => entries(400..800), 2 => entries(0..20_000), 1 => Just(Step::Compact)]
}

fn scanned(engine: &FjallEngine, from: u16, to: u16, reverse: bool, most: usize) -> Vec<(Bytes, Bytes)> {
    let mut found = Vec::new();
    let visit = &mut |key: Bytes, value: Bytes| {
        found.push((key, value));
        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    engine.scan(Tree::Present, &key(from), &key(to), reverse, visit).unwrap();
    found
}

fn swept(engine: &FjallEngine, from: u16, to: u16, most: usize) -> Vec<(Bytes, Bytes)> {
    let mut found = Vec::new();
    let visit = &mut |key: store::engine::LentKey<'_>, value: &[u8]| {
        found.push((Bytes::from(key.to_vec()), Bytes::copy_from_slice(value)));
        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    engine.sweep(Tree::Present, &key(from), &key(to), visit).unwrap();
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn runs_are_read_in_order_and_the_newest_entry_of_a_key_counts(
        steps in prop::collection::vec(step(), 1..9),
        asked in prop::collection::vec((0..20_100u16, 0..20_100u16, any::<bool>(), 1..2000usize), 20),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let engine = FjallEngine::open(dir.path(), FjallOptions { cache_bytes: 1 << 20 }).unwrap();
        let mut book = BTreeMap::new();
        for step in &steps {
            let Step::Ingest(entries) = step else {
                engine.compact().unwrap();
                continue;
            };
            let value = |n: &u8| Bytes::from(vec![*n; usize::from(*n)]);
            let mut changes = entries.iter().map(|(n, v)| (key(*n), v.as_ref().map(value)));
            engine.ingest(Tree::Present, 0, &mut changes).unwrap();
            for (n, v) in entries {
                match v {
                    Some(v) => book.insert(*n, value(v)),
                    None => book.remove(n),
                };
            }
        }
        let narrow = asked.iter().map(|(from, _, reverse, most)| (*from, from.saturating_add(50), *reverse, *most));
        for (from, to, reverse, most) in asked.iter().copied().chain(narrow).chain([(0, u16::MAX, false, 100_000)]) {
            let mut want: Vec<_> = match from < to {
                true => book.range(from..to).map(|(n, value)| (key(*n), value.clone())).collect(),
                false => Vec::new(),
            };
            if reverse {
                want.reverse();
            }
            want.truncate(most);
            prop_assert!(reverse || swept(&engine, from, to, most) == want, "swept {from}..{to} {most}");
            prop_assert!(scanned(&engine, from, to, reverse, most) == want, "{from}..{to} {reverse} {most}");
        }
    }
}

/// Every row stands in memory and in the engine. Who reads all of them pays for both, and not for keeping them in order besides.
#[test]
fn a_scan_of_a_table_that_was_updated_as_a_whole_makes_nothing_hot() {
    const ROWS: u32 = 20_000;
    let row = |n: u32| Bytes::copy_from_slice(&[&[0, 0, 0, 7][..], &n.to_be_bytes()].concat());
    let ts = Timestamp::from_u64;
    let store = Versions::open(MemoryEngine::new(), VersionsConfig::default()).unwrap();
    for at in 1..=3 {
        let value = Bytes::from(at.to_string());
        let writes: Vec<Write> = (0..ROWS).map(|n| (row(n), Some(value.clone()))).collect();
        store.apply(ts(at), &writes);
        store.freeze(at, Bytes::new());
        if at == 1 {
            store.flush().unwrap();
        }
    }
    for reverse in [false, true] {
        let (mut rest, mut found) = (Some(row(0)..row(ROWS)), 0);
        while let Some(span) = rest.take() {
            let scan = store.scan(&span, ts(9), reverse, 1024).unwrap();
            assert!(scan.rows.iter().all(|(_, at, value)| *at == ts(3) && &value[..] == b"3"));
            found += scan.rows.len();
            rest = scan.rest;
        }
        assert_eq!((found, store.hot_spans()), (ROWS as usize, 0), "{reverse}");
    }
    // One that reads few of them, as for an index that is updated all the time, is still worth it.
    store.scan(&(row(5)..row(300)), ts(9), false, 128).unwrap();
    assert_eq!(store.hot_spans(), 1);
}

/// The list of the last writes is shorter than such a change: each of its keys has changed all the same, and none of another index.
#[test]
fn a_change_of_more_keys_than_are_listed_is_found_in_each_of_them() {
    const ROWS: u32 = 20_000;
    let row = |n: u32| Bytes::copy_from_slice(&[&[0, 0, 0, 7][..], &n.to_be_bytes()].concat());
    let ts = Timestamp::from_u64;
    let store = Versions::open(MemoryEngine::new(), VersionsConfig::default()).unwrap();
    store.apply(ts(1), &[(row(5), Some(Bytes::from_static(b"old")))]);
    let writes: Vec<Write> = (0..ROWS).map(|n| (row(n), None)).collect();
    store.apply(ts(2), &writes);
    for n in [0, 5, 11_000, ROWS - 1] {
        assert_eq!(store.newest_in(&(row(n)..row(n + 1)), ts(1)).unwrap(), Some((row(n), ts(2))), "{n}");
        assert_eq!(store.newest_in(&(row(n)..row(n + 1)), ts(2)).unwrap(), None, "{n}");
        assert_eq!(store.get(&row(n), ts(2)).unwrap(), None);
    }
    assert_eq!(store.get(&row(5), ts(1)).unwrap().map(|(at, _)| at), Some(ts(1)));
    assert_eq!(store.newest_in(&(row(ROWS)..row(ROWS + 9)), ts(1)).unwrap(), None);
}

/// A store with these rows in its engine.
fn flushed(rows: u32, value: &Bytes) -> Versions<MemoryEngine> {
    let store = Versions::open(MemoryEngine::new(), VersionsConfig::default()).unwrap();
    let writes: Vec<Write> = (0..rows).map(|n| (row_of(n), Some(value.clone()))).collect();
    store.apply(Timestamp::from_u64(1), &writes);
    store.freeze(1, Bytes::new());
    store.flush().unwrap();
    store
}

fn row_of(n: u32) -> Bytes {
    Bytes::copy_from_slice(&[&[0, 0, 0, 7][..], &n.to_be_bytes()].concat())
}

/// What is left out of a sweep was read: a chunk ends by it as by what is given.
#[test]
fn a_chunk_ends_by_the_bytes_that_are_left_out() {
    const ROWS: u32 = 64;
    const ROW_BYTES: usize = 256 << 10;
    const CHUNK_BYTES_MAX: usize = 4 << 20;
    let store = flushed(ROWS, &Bytes::from(vec![7; ROW_BYTES]));
    let (mut rest, mut looked_at, mut given) = (Some(row_of(0)..row_of(ROWS)), 0, 0);
    while let Some(span) = rest.take() {
        let mut bytes = 0;
        let mut pick = |value: &[u8]| {
            (bytes, looked_at) = (bytes + value.len(), looked_at + 1);
            ControlFlow::Continue(looked_at % 8 == 0)
        };
        let chunk = store.sweep_picked(&span, Timestamp::from_u64(9), 1024, Some(&mut pick)).unwrap().unwrap();
        assert!(bytes <= CHUNK_BYTES_MAX + ROW_BYTES, "{bytes} bytes in one chunk");
        given += chunk.places.len();
        rest = chunk.rest;
    }
    assert_eq!((looked_at, given), (ROWS, ROWS as usize / 8), "each is looked at once");
}

/// What nobody wants is no garbage that a hot span would spare the next one.
#[test]
fn what_is_left_out_makes_nothing_hot() {
    const ROWS: u32 = 2000;
    let store = flushed(ROWS, &Bytes::from_static(b"row"));
    for _ in 0..3 {
        let mut pick = |_: &[u8]| ControlFlow::Continue(false);
        let span = row_of(0)..row_of(ROWS);
        let chunk = store.sweep_picked(&span, Timestamp::from_u64(9), 1024, Some(&mut pick)).unwrap().unwrap();
        assert!(chunk.places.is_empty() && chunk.rest.is_none());
        assert_eq!(store.hot_spans(), 0);
    }
}

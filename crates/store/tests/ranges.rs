//! Short ranges that were read are kept in memory, and stay right whatever is written.

use bytes::Bytes;
use clock::Timestamp;
use std::sync::Arc;
use store::versions::Sabotage;
use store::{Erased, MemoryEngine, Span, Versions, VersionsConfig};

type Store = Versions<Arc<MemoryEngine>>;

/// Commands are a millisecond apart.
fn ts(n: u64) -> Timestamp {
    Timestamp::new(n * 1000, 0)
}

fn key(index: u8, n: u32) -> Bytes {
    Bytes::from([&[0, 0, 0, index][..], &n.to_be_bytes()].concat())
}

fn value(n: u64) -> Bytes {
    Bytes::from(n.to_be_bytes().to_vec())
}

fn span(index: u8, from: u32, to: u32) -> Span {
    key(index, from)..key(index, to)
}

const ROWS: u32 = 1000;

/// A thousand rows in the engine.
fn store(config: VersionsConfig) -> Store {
    let store = Versions::open(Arc::new(MemoryEngine::new()), config).unwrap();
    for n in 0..ROWS {
        store.apply(ts(1), &[(key(7, n), Some(value(1)))]);
    }
    store.freeze(1, Bytes::new());
    assert!(store.flush().unwrap());
    store
}

/// The rows of a span by scans forwards, by scans backwards, and by sweeps: all the same.
fn rows(store: &Store, span: &Span, at: Timestamp, limit: usize) -> Vec<(Bytes, Bytes)> {
    let scanned = |reverse: bool| {
        let (mut rest, mut found) = (Some(span.clone()), Vec::new());
        while let Some(span) = rest.take() {
            let scan = store.scan(&span, at, reverse, limit).unwrap();
            found.extend(scan.rows.into_iter().map(|(key, _, value)| (key, value)));
            rest = scan.rest;
        }
        found
    };
    let (forwards, mut backwards) = (scanned(false), scanned(true));
    backwards.reverse();
    assert_eq!(forwards, backwards);
    let (mut rest, mut swept) = (Some(span.clone()), Vec::new());
    while let Some(span) = rest.take() {
        let sweep = store.sweep(&span, at, limit).unwrap().expect("nothing is shown");
        let copy = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
        swept.extend(sweep.rows().map(|(key, value)| (copy(key), copy(value))));
        rest = sweep.rest;
    }
    assert_eq!(forwards, swept);
    forwards
}

#[test]
fn a_range_that_was_read_is_kept_with_what_follows_it() {
    let store = store(VersionsConfig::default());
    assert_eq!(store.scan(&span(7, 10, 20), ts(1), false, 64).unwrap().rows.len(), 10);
    assert_eq!(store.hot_spans(), 1);
    // More than ten rows' worth: those behind them, too.
    assert!(store.hot_bytes() > 100 * 100, "{}", store.hot_bytes());
    // One that begins in it is read there and behind it, and joined to it.
    assert_eq!(rows(&store, &span(7, 15, 300), ts(1), 64).len(), 285);
    assert_eq!(store.hot_spans(), 1);
    // A single key of an index that nobody has read before makes one span, and the next hundred make no others.
    let bytes = store.hot_bytes();
    for n in 500..600 {
        assert_eq!(store.scan(&span(7, n, n + 1), ts(1), false, 64).unwrap().rows.len(), 1);
    }
    assert_eq!(store.hot_spans(), 2);
    assert!(store.hot_bytes() > bytes);
}

#[test]
fn what_is_kept_is_what_is_there_whatever_is_written() {
    let store = store(VersionsConfig::default());
    let all = span(7, 0, ROWS);
    assert_eq!(rows(&store, &all, ts(1), 100).len(), 1000);
    assert!(store.hot_spans() > 0);
    let bytes = store.hot_bytes();
    store.apply(ts(2), &[(key(7, 5), None), (key(7, 6), Some(value(2)))]);
    store.apply(ts(3), &[(key(7, 6), Some(value(3))), (Bytes::from([&key(7, 6)[..], &[1]].concat()), Some(value(3)))]);
    for limit in [1, 7, 100, 4096] {
        let now = rows(&store, &span(7, 4, 9), ts(3), limit);
        let now: Vec<_> = now.iter().map(|(_, value)| value.clone()).collect();
        assert_eq!(now, [1, 3, 3, 1, 1].map(value), "{limit}");
        // Who looks back finds what was there, though it is not kept there.
        let before = rows(&store, &span(7, 4, 9), ts(2), limit);
        assert_eq!(before.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(), [1, 2, 1, 1].map(value));
        assert_eq!(rows(&store, &span(7, 4, 9), ts(1), limit).len(), 5);
        assert_eq!(rows(&store, &all, ts(3), limit).len(), 1000);
    }
    assert!(store.hot_bytes() > bytes);
}

#[test]
fn nothing_is_crowded_out_and_what_nobody_reads_goes() {
    // A fourth is for hot spans, and of that three fourths for ranges that were read.
    let store = store(VersionsConfig { cache_bytes: 128 << 10, ..VersionsConfig::default() });
    for n in 0..ROWS {
        assert_eq!(store.scan(&span(7, n, n + 1), ts(1), false, 64).unwrap().rows.len(), 1);
    }
    let room = 32 << 10;
    // One more than there was room for.
    assert!(store.hot_bytes() > room / 2 && store.hot_bytes() < room * 3 / 4 + 30_000, "{}", store.hot_bytes());
    let spans = store.hot_spans();
    let looks = |minutes: usize| (0..minutes * 20 * 65).for_each(|_| assert!(!store.flush().unwrap()));
    assert_eq!(store.scan(&span(7, 3, 4), ts(1), false, 64).unwrap().rows.len(), 1);
    looks(1);
    assert!(spans > 0 && store.hot_spans() == 0, "{} of {spans}", store.hot_spans());
    assert_eq!(store.scan(&span(7, 3, 4), ts(1), false, 64).unwrap().rows.len(), 1);
    assert_eq!(store.hot_spans(), 1, "there is room again");
}

/// Ranges that overlap close the gaps between each other, and go all the same; and do not take more room.
#[test]
fn ranges_that_met_go_when_nobody_reads_them() {
    let store = store(VersionsConfig::default());
    let read = |from: u32| {
        assert_eq!(store.scan(&span(7, from, from + 100), ts(1), false, 256).unwrap().rows.len(), 100);
    };
    [500, 300, 350, 100, 220].into_iter().for_each(read);
    assert!(store.hot_spans() > 0);
    (0..10 * 20 * 65).for_each(|_| assert!(!store.flush().unwrap()));
    assert_eq!(store.hot_spans(), 0);
    let store = self::store(VersionsConfig { cache_bytes: 256 << 10, ..VersionsConfig::default() });
    for n in 0..900 {
        let from = n * 7919 % 900;
        assert_eq!(store.scan(&span(7, from, from + 100), ts(1), false, 256).unwrap().rows.len(), 100);
    }
    let room = 64 << 10;
    assert!(store.hot_bytes() > room / 2 && store.hot_bytes() < room * 3 / 4 + 30_000, "{}", store.hot_bytes());
    // Who takes memory away gets it.
    store.limit_cache(64 << 10);
    assert!(store.hot_bytes() <= 16 << 10, "{}", store.hot_bytes());
}

/// Of a layer that has more than is looked at, nothing is left out of what is kept.
#[test]
fn where_memory_has_more_the_range_ends_there() {
    let store = store(VersionsConfig { hot_after: 1 << 40, ..VersionsConfig::default() });
    for n in ROWS..ROWS + 2000 {
        store.apply(ts(2), &[(key(7, n), Some(value(2)))]);
    }
    assert_eq!(store.scan(&span(7, ROWS - 1, ROWS), ts(3), false, 64).unwrap().rows.len(), 1);
    assert_eq!(store.hot_spans(), 1);
    assert!(store.hot_bytes() < 300 * 200, "{}", store.hot_bytes());
    assert_eq!(rows(&store, &span(7, 0, ROWS + 2000), ts(3), 1024).len(), 3000);
}

/// What was updated counts once.
#[test]
fn a_hundred_and_some_rows_are_kept_of_updated_ones_too() {
    let store = store(VersionsConfig::default());
    for n in 0..ROWS {
        store.apply(ts(2), &[(key(7, n), Some(value(2)))]);
    }
    assert_eq!(store.scan(&span(7, 10, 11), ts(2), false, 64).unwrap().rows.len(), 1);
    assert!(store.hot_bytes() > 120 * 130, "{}", store.hot_bytes());
    // Who looks behind all these updates reads the layers.
    for limit in [10, 100, 1000] {
        let before = rows(&store, &span(7, 0, ROWS), ts(1), limit);
        assert!(before.len() == 1000 && before.iter().all(|(_, v)| *v == value(1)), "{limit}");
    }
}

/// An index on a column that is updated all the time, of which a range was read once: what its entries leave behind is forgotten, though nobody reads.
#[test]
fn entries_that_move_leave_nothing_in_what_is_kept() {
    let store = store(VersionsConfig::default());
    assert_eq!(rows(&store, &span(7, 0, ROWS), ts(1), 100).len(), 1000);
    let bytes = store.hot_bytes();
    assert!(bytes > 100_000);
    let place = |row: u32, round: u64| Bytes::from([&key(7, row)[..], &round.to_be_bytes()].concat());
    for round in 1..50u64 {
        for row in 0..ROWS {
            let mut writes = vec![(place(row, round), Some(value(round)))];
            if round > 1 {
                writes.push((place(row, round - 1), None));
            }
            writes.sort();
            store.apply(ts(round * 1000 + u64::from(row)), &writes);
        }
        // A second of looks, as in a second of updates.
        (0..20).for_each(|_| assert!(!store.flush().unwrap()));
    }
    assert!(store.hot_spans() > 0 && store.hot_bytes() < 6 * bytes, "{} of {bytes}", store.hot_bytes());
    assert_eq!(rows(&store, &span(7, 0, ROWS), ts(1_000_000), 100).len(), 2000);
}

/// A table that grows behind what is kept does not grow there without end.
#[test]
fn a_kept_end_does_not_grow_with_its_table_for_ever() {
    let store = store(VersionsConfig::default());
    assert_eq!(store.scan(&span(7, ROWS - 10, ROWS), ts(1), false, 64).unwrap().rows.len(), 10);
    for n in ROWS..ROWS + 40_000 {
        store.apply(ts(2), &[(key(7, n), Some(value(2)))]);
    }
    assert!(store.hot_bytes() < 20_000 * 160, "{}", store.hot_bytes());
    let all = span(7, ROWS - 10, ROWS + 40_000);
    assert_eq!(rows(&store, &all, ts(3), 4096).len(), 40_010);
}

#[test]
fn who_reads_all_of_it_keeps_nothing() {
    let store = store(VersionsConfig::default());
    assert_eq!(rows(&store, &span(7, 0, ROWS), ts(1), 1024).len(), 1000);
    assert_eq!(store.hot_spans(), 0);
    let off = VersionsConfig { keeps_ranges: false, ..VersionsConfig::default() };
    let off = self::store(off);
    assert_eq!(rows(&off, &span(7, 0, 20), ts(1), 64).len(), 20);
    assert_eq!(off.hot_spans(), 0);
}

/// Who loads an index looks at what is there between two parts.
fn seen_of_a_load(sabotage: Option<Sabotage>) -> [usize; 2] {
    let store = store(VersionsConfig { sabotage, ..VersionsConfig::default() });
    let load = |from: u32, to: u32| {
        let rows: Vec<_> = (from..to).map(|n| (key(9, n), value(1))).collect();
        assert!(store.load(ts(1), &rows).unwrap());
    };
    let seen = || store.scan(&span(9, 0, 100), ts(1), false, 200).unwrap().rows.len();
    load(0, 10);
    let first = seen();
    assert!(store.hot_spans() > 0);
    load(10, 30);
    [first, seen()]
}

#[test]
fn what_is_loaded_past_the_log_is_seen_and_what_is_erased_is_not() {
    assert_eq!(seen_of_a_load(None), [10, 30]);
    assert_eq!(seen_of_a_load(Some(Sabotage::HotMissesLoads)), [10, 10], "the rule is of use");
    let store = store(VersionsConfig::default());
    let kept = || rows(&store, &span(7, 0, 100), ts(1), 64).len();
    assert_eq!(kept(), 100);
    assert_eq!(store.erase([0, 0, 0, 7]).unwrap(), Erased::All);
    assert_eq!((kept(), store.scan(&span(8, 0, 9), ts(1), false, 64).unwrap().rows.len()), (0, 0));
}

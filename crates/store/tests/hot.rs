//! Scans while writes go on: what those of the present cost where much was deleted (hot spans), and that they are never wrong.

use bytes::Bytes;
use clock::Timestamp;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::{MemoryEngine, Span, Versions, VersionsConfig, Write};

/// Commands are a millisecond apart.
fn ts(n: u64) -> Timestamp {
    Timestamp::new(n * 1000, 0)
}

fn key(n: u64) -> Bytes {
    let mut key = vec![0, 0, 0, 7];
    key.extend_from_slice(&n.to_be_bytes());
    Bytes::from(key)
}

fn all() -> Span {
    key(0)..key(u64::MAX)
}

fn store() -> Versions<MemoryEngine> {
    Versions::open(MemoryEngine::new(), VersionsConfig::default()).unwrap()
}

/// The first row of a scan, and the chunks that it took.
fn first(store: &Versions<MemoryEngine>, snapshot: Timestamp, reverse: bool) -> (Option<Bytes>, usize) {
    let (mut rest, mut chunks) = (Some(all()), 0);
    while let Some(span) = rest.take() {
        let scan = store.scan(&span, snapshot, reverse, 1).unwrap();
        chunks += 1;
        if let Some((key, _, _)) = scan.rows.into_iter().next() {
            return (Some(key), chunks);
        }
        rest = scan.rest;
    }
    (None, chunks)
}

#[test]
fn the_head_of_a_queue_is_found_at_once_however_much_was_taken() {
    let store = store();
    let (waiting, taken) = (100, 50_000);
    for n in 0..taken + waiting {
        let mut writes: Vec<Write> = vec![(key(n), Some(Bytes::from_static(b"job")))];
        if n >= waiting {
            writes.insert(0, (key(n - waiting), None));
        }
        store.apply(ts(n + 1), &writes);
        if n > waiting && n % 50 == 0 {
            let (found, _) = first(&store, ts(n + 1), false);
            assert_eq!(found, Some(key(n - waiting + 1)));
        }
        if n % 10_000 == 0 {
            store.freeze(n + 1, Bytes::new());
            store.flush().unwrap();
        }
    }
    let now = ts(taken + waiting);
    assert_eq!(first(&store, now, false), (Some(key(taken)), 1), "one chunk, not one for every deletion");
    assert!(store.hot_bytes() < 100_000, "{} bytes: what was taken leaves nothing behind", store.hot_bytes());
    // Who looks back still finds what was there.
    assert_eq!(first(&store, ts(25_000), false).0, Some(key(25_000 - waiting)));
    assert_eq!(first(&store, now, true).0, Some(key(taken + waiting - 1)));
}

#[test]
fn an_index_whose_entries_move_costs_what_it_holds() {
    let store = store();
    let rows = 200;
    let place = |row: u64, round: u64| key(row * 1000 + round);
    for round in 0..100 {
        for row in 0..rows {
            let mut writes: Vec<Write> = vec![(place(row, round), Some(Bytes::from_static(b"entry")))];
            if round > 0 {
                writes.insert(0, (place(row, round - 1), None));
            }
            store.apply(ts(round * rows + row + 1), &writes);
        }
    }
    let now = ts(100 * rows);
    let before = store.hot_bytes();
    for reverse in [false, true, false] {
        let (mut rest, mut found) = (Some(all()), 0);
        while let Some(span) = rest.take() {
            let scan = store.scan(&span, now, reverse, 4096).unwrap();
            found += scan.rows.len() as u64;
            rest = scan.rest;
        }
        assert_eq!(found, rows, "{reverse}");
    }
    assert!(store.hot_bytes() > before, "the first one was costly");
}

#[test]
fn one_token_is_seen_once_while_it_moves_and_scans_go_on() {
    assert!(watch_a_token(&store()).hot_bytes() > 0);
}

/// The same without hot spans: each scan goes over all deletions in memory, in several parts, while writers change them.
#[test]
fn one_token_is_seen_once_in_layers_that_are_written_and_frozen() {
    let config = VersionsConfig { hot_after: 1 << 40, keeps_ranges: false, ..VersionsConfig::default() };
    let store = Versions::open(MemoryEngine::new(), config).unwrap();
    assert_eq!(watch_a_token(&store).hot_spans(), 0);
}

/// A token moves from key to key, each move one command. Whoever looks, at any snapshot and in any direction, finds it once.
fn watch_a_token(store: &Versions<MemoryEngine>) -> &Versions<MemoryEngine> {
    const KEYS: u64 = 500;
    const MOVES: u64 = 60_000;
    let place = |n: u64| key(n * 7919 % KEYS);
    store.apply(ts(1), &[(place(0), Some(Bytes::from_static(b"token")))]);
    let (applied, stop, looks) = (AtomicU64::new(1), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        for seed in 0..2u64 {
            let (applied, stop, looks) = (&applied, &stop, &looks);
            threads.spawn(move || {
                let mut n = seed;
                while !stop.load(Ordering::SeqCst) {
                    n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let newest = applied.load(Ordering::SeqCst);
                    let snapshot = newest - (n >> 33) % (if n >> 60 == 0 { 5_000 } else { 3 }).min(newest);
                    let limit = 1 + (n >> 40) as usize % 3;
                    let (mut rest, mut seen) = (Some(all()), Vec::new());
                    while let Some(span) = rest.take() {
                        let scan = store.scan(&span, ts(snapshot), n >> 50 & 1 == 0, limit).unwrap();
                        seen.extend(scan.rows);
                        rest = scan.rest;
                    }
                    let expected = (place(snapshot - 1), ts(snapshot));
                    let seen: Vec<_> = seen.into_iter().map(|(key, at, _)| (key, at)).collect();
                    assert_eq!(seen, [expected], "at {snapshot} of {newest}");
                    looks.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for n in 1..MOVES {
            let mut writes: Vec<Write> = vec![(place(n - 1), None), (place(n), Some(Bytes::from_static(b"token")))];
            writes.sort();
            store.apply(ts(n + 1), &writes);
            applied.store(n + 1, Ordering::SeqCst);
            if n % 5_000 == 0 {
                store.freeze(n + 1, Bytes::new());
                store.flush().unwrap();
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert!(looks.load(Ordering::SeqCst) > 0);
    store
}

/// Workers that skip what others hold read on behind the first row: the stretches between what they make hot are closed.
#[test]
fn no_gaps_stay_between_hot_spans() {
    let store = store();
    let waiting = 1_000;
    for n in 0..20_000 {
        let mut writes: Vec<Write> = vec![(key(n), Some(Bytes::from_static(b"job")))];
        // One in a hundred is held by a worker that takes its time.
        let slow = |n: u64| n.is_multiple_of(100);
        let taken = [n.checked_sub(waiting).filter(|n| !slow(*n)), n.checked_sub(waiting + 80).filter(|n| slow(*n))];
        writes.extend(taken.into_iter().flatten().map(|n| (key(n), None)));
        writes.sort();
        store.apply(ts(n + 1), &writes);
        let mut rest = (n > waiting).then(all);
        for _ in 0..n % 9 {
            let Some(span) = rest.take() else { break };
            rest = store.scan(&span, ts(n + 1), false, 1).unwrap().rest;
        }
        store.collect(Timestamp::MIN).unwrap();
    }
    assert!(store.hot_spans() <= 3, "{} spans", store.hot_spans());
}

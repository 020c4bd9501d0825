//! What is bounded: scans and collections come in chunks, long chains are trimmed, large commands are applied in parts.

use bytes::Bytes;
use clock::Timestamp;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use store::engine::Tree;
use store::versions::{APPLY_KEYS_MAX, Garbage, NEWER_KEYS_MAX, SHOWN_MAX, Scan, Writes};
use store::{Engine, MemoryEngine, Span, Versions, VersionsConfig, Write};

fn ts(n: u64) -> Timestamp {
    Timestamp::from_u64(n)
}

fn key(n: u64) -> Bytes {
    let mut key = vec![0, 0, 0, 7];
    key.extend_from_slice(&n.to_be_bytes());
    Bytes::from(key)
}

fn span(keys: Range<u64>) -> Span {
    key(keys.start)..key(keys.end)
}

fn store() -> Versions<MemoryEngine> {
    let config = VersionsConfig { cache_bytes: 1 << 20, ..VersionsConfig::default() };
    Versions::open(MemoryEngine::new(), config).unwrap()
}

fn flush(store: &Versions<impl Engine>, position: u64) {
    assert!(store.freeze(position, Bytes::new()));
    assert!(store.flush().unwrap());
}

/// All chunks of a scan.
fn chunks(store: &Versions<impl Engine>, keys: Range<u64>, at: u64, reverse: bool) -> Vec<Scan> {
    let (mut chunks, mut rest) = (Vec::new(), Some(span(keys)));
    while let Some(span) = rest.take() {
        let chunk = store.scan(&span, ts(at), reverse, usize::MAX).unwrap();
        rest.clone_from(&chunk.rest);
        assert!(rest != Some(span), "a chunk moves on");
        chunks.push(chunk);
    }
    chunks
}

fn keys_of(chunks: &[Scan]) -> Vec<Bytes> {
    chunks.iter().flat_map(|c| c.rows.iter().map(|(key, _, _)| key.clone())).collect()
}

#[test]
fn a_large_command_is_whole_in_memory_and_in_the_engine() {
    let store = store();
    let rows = APPLY_KEYS_MAX as u64 * 2 + 1;
    let writes: Vec<Write> = (0..rows).map(|n| (key(n), Some(Bytes::from(n.to_string())))).collect();
    store.apply(ts(5), &writes);
    for _ in 0..2 {
        for reverse in [false, true] {
            let chunks = chunks(&store, 0..rows, 5, reverse);
            let mut keys = keys_of(&chunks);
            if reverse {
                keys.reverse();
            }
            assert!(keys.iter().eq(writes.iter().map(|(key, _)| key)));
            assert!(chunks.len() > 1, "no chunk has more than its bound");
        }
        assert!(chunks(&store, 0..rows, 4, false).iter().all(|c| c.rows.is_empty()));
        store.freeze(1, Bytes::new());
        store.flush().unwrap();
    }
}

#[test]
fn rows_that_nobody_sees_end_a_chunk_too() {
    let store = store();
    let rows = 70_000;
    let writes: Vec<Write> = (0..rows).map(|n| (key(n), Some(Bytes::new()))).collect();
    store.apply(ts(9), &writes);
    store.apply(ts(2), &[(key(0), Some(Bytes::new())), (key(rows - 1), Some(Bytes::new()))]);
    flush(&store, 1);
    for reverse in [false, true] {
        let chunks = chunks(&store, 0..rows, 2, reverse);
        assert!(chunks.len() > 1, "a walk over {rows} entries is no single step");
        assert_eq!(keys_of(&chunks).len(), 2);
    }
}

#[test]
fn many_bytes_end_a_chunk() {
    let store = store();
    let value = Bytes::from(vec![1; 3 << 20]);
    for n in 0..4 {
        store.apply(ts(1), &[(key(n), Some(value.clone()))]);
    }
    for _ in 0..2 {
        let found = chunks(&store, 0..4, 1, false);
        assert_eq!(found.iter().map(|c| c.rows.len()).filter(|rows| *rows > 0).collect::<Vec<_>>(), [2, 2]);
        store.freeze(1, Bytes::new());
        store.flush().unwrap();
    }
}

/// What a read of the present meets does not grow with what was: neither old versions nor, once they may go, deletions.
#[test]
fn the_present_holds_one_entry_per_key() {
    let engine = Arc::new(MemoryEngine::new());
    let config = VersionsConfig { bucket_shift: 3, ..VersionsConfig::default() };
    let store = Versions::open(engine.clone(), config).unwrap();
    for at in 1..=40 {
        let writes: Vec<Write> =
            (0..100).map(|n| (key(n), (n % 2 == 0 || at < 40).then(|| Bytes::from(at.to_string())))).collect();
        store.apply(ts(at), &writes);
        flush(&store, at);
    }
    assert_eq!((engine.entries(Tree::Present), engine.entries(Tree::Past)), (100 + 1, 39 * 100), "and the header");
    assert_eq!(store.garbage(), Garbage { past: 3900, buckets: 6, graves: 50, buried: 0 });
    for at in 1..=40 {
        let rows = if at < 40 { 100 } else { 50 };
        let found = chunks(&store, 0..100, at, false).remove(0).rows;
        assert!(found.len() == rows && found.iter().all(|(_, ts, _)| ts.as_u64() == at), "at {at}");
    }
    // Versions that ended at 32 to 39 lie in the bucket that the threshold is in.
    assert_eq!(store.collect(ts(35)), Ok(ts(35)));
    assert_eq!(store.garbage(), Garbage { past: 900, buckets: 2, graves: 50, buried: 0 });
    assert!(store.open_snapshot(ts(34)).is_err() && store.open_snapshot(ts(35)).is_ok());
    assert_eq!(store.get(&key(1), ts(35)).unwrap().unwrap().0, ts(35));
    assert_eq!(store.collect(ts(50)), Ok(ts(50)));
    assert_eq!(store.garbage(), Garbage { past: 0, buckets: 0, graves: 50, buried: 50 });
    store.compact().unwrap();
    assert_eq!((store.garbage(), engine.entries(Tree::Present)), (Garbage::default(), 50 + 1));
}

/// Nobody who writes a row that was just read looks for its predecessor again: it comes along from the cache.
#[test]
fn what_a_version_follows_comes_from_the_cache_or_from_the_engine() {
    for cache_bytes in [0, 1 << 20] {
        let config = VersionsConfig { cache_bytes, ..VersionsConfig::default() };
        let store = Versions::open(MemoryEngine::new(), config).unwrap();
        for at in [10, 20, 30] {
            store.apply(ts(at), &[(key(1), (at != 20).then(|| Bytes::from(at.to_string())))]);
            flush(&store, at);
        }
        let history: Vec<_> =
            store.history(&key(1)).unwrap().into_iter().map(|v| (v.ts.as_u64(), v.value.is_some())).collect();
        assert_eq!(history, [(10, true), (20, false), (30, true)]);
    }
}

/// Close together, far apart, between those that are there, and larger than what is read ahead.
#[test]
fn what_versions_follow_is_found_wherever_they_lie() {
    const ROWS: u64 = 6_000;
    let config = || VersionsConfig { cache_bytes: 0, ..VersionsConfig::default() };
    let writes = |keys: &mut dyn Iterator<Item = u64>, value: &dyn Fn(u64) -> Option<Bytes>| -> Vec<Write> {
        keys.map(|n| (key(n), value(n))).collect()
    };
    for (step, first) in [(2, 0), (2, 1), (14, 4), (140, 6), (1400, 0)] {
        let store = Versions::open(MemoryEngine::new(), config()).unwrap();
        let large = |n: u64| Some(Bytes::from(vec![n as u8; if n.is_multiple_of(1000) { 600 << 10 } else { 9 }]));
        // The even ones are there.
        store.apply(ts(1), &writes(&mut (0..ROWS).step_by(2), &large));
        flush(&store, 1);
        let changed = || (first..ROWS).step_by(step);
        store.apply(ts(2), &writes(&mut changed(), &|n| (n % 3 > 0).then(|| Bytes::from("new"))));
        flush(&store, 2);
        for n in 0..ROWS {
            let mut want = Vec::new();
            if n % 2 == 0 {
                want.push((ts(1), large(n)));
            }
            let is_changed = n >= first && (n - first).is_multiple_of(step as u64);
            if is_changed {
                want.push((ts(2), (n % 3 > 0).then(|| Bytes::from("new"))));
            }
            let history: Vec<_> = store.history(&key(n)).unwrap().into_iter().map(|v| (v.ts, v.value)).collect();
            assert!(history == want, "{n} of every {step} from {first}");
        }
    }
}

#[test]
fn a_hot_row_keeps_what_can_be_read_and_little_else() {
    let store = store();
    let (writes, keep) = (1000, 900);
    for at in 1..=writes {
        store.collect(ts(at.min(keep))).unwrap();
        store.apply(ts(at), &[(key(1), Some(Bytes::from(at.to_string())))]);
    }
    assert!(store.history(&key(1)).unwrap().len() < 500, "a chain is trimmed while it grows");
    for _ in 0..2 {
        for at in keep..=writes {
            assert_eq!(store.get(&key(1), ts(at)).unwrap(), Some((ts(at), Bytes::from(at.to_string()))));
        }
        store.freeze(1, Bytes::new());
        store.flush().unwrap();
    }
}

#[test]
fn spans_that_hold_nothing_give_nothing() {
    let store = store();
    store.apply(ts(1), &[(key(5), Some(Bytes::new()))]);
    for flushed in [false, true] {
        for (from, to) in [(5, 5), (6, 5), (6, 9), (0, 5)] {
            let empty = span(from..to);
            assert_eq!(store.scan(&empty, ts(9), false, 10).unwrap(), Scan::default(), "{from}..{to} {flushed}");
            assert_eq!(store.newest_in(&empty, ts(0)).unwrap(), None, "{from}..{to} {flushed}");
        }
        store.freeze(1, Bytes::new());
        store.flush().unwrap();
    }
}

/// Of many keys that were written after what is asked about, the past is asked a part at a time; and the first answer is enough.
#[test]
fn what_changed_is_found_behind_many_later_changes() {
    const KEYS: u32 = 3 * NEWER_KEYS_MAX as u32;
    let engine = Arc::new(MemoryEngine::new());
    let store = Versions::open(engine.clone(), VersionsConfig::default()).unwrap();
    let key = |n: u32| Bytes::copy_from_slice(&[&[0, 0, 0, 1][..], &n.to_be_bytes()].concat());
    let value = Some(Bytes::from_static(b"value"));
    let all = (0..KEYS).map(|n| (key(n), value.clone())).collect::<Vec<_>>();
    for (at, writes) in [(1, &all[..]), (5, &all[2500..2501]), (10, &all[..])] {
        store.apply(ts(at), writes);
        store.freeze(at, Bytes::new());
        store.flush().unwrap();
    }
    drop(store);
    // Nothing is remembered of the last writes.
    let store = Versions::open(engine, VersionsConfig::default()).unwrap();
    let changed = |lo, hi| store.version_between_in(&(key(0)..key(KEYS)), ts(lo), ts(hi)).unwrap();
    let only = Some((key(2500), ts(5)));
    assert_eq!((changed(4, 6), changed(6, 8), changed(2, 5), changed(5, 9)), (only.clone(), None, only, None));
    assert_eq!(changed(6, 10), Some((key(0), ts(10))));
}

/// A command of one write. As soon as it is in its place another one is shown, so many times.
struct Endless(Weak<Versions<MemoryEngine>>, u64, Write);

impl Writes for Endless {
    fn count(&self) -> usize {
        1
    }
    fn at(&self, _: usize) -> (&[u8], Option<&Bytes>) {
        (&self.2.0, self.2.1.as_ref())
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        if let Some(store) = self.0.upgrade().filter(|_| self.1 > 0) {
            show(&store, self.1 - 1);
        }
    }
}

fn show(store: &Arc<Versions<MemoryEngine>>, left: u64) {
    let write = (key(left), Some(Bytes::from_static(b"v")));
    store.show(ts(10 - left), Arc::new(Endless(Arc::downgrade(store), left, write)));
}

#[test]
fn who_places_what_is_shown_does_not_go_on_for_what_comes_meanwhile() {
    let store = Arc::new(store());
    show(&store, 3);
    assert_eq!([0; 4].map(|_| store.place(usize::MAX)), [true, true, true, false], "one at a time");
    assert_eq!(keys_of(&chunks(&store, 0..4, 10, false)).len(), 4);
}

/// Ten writes of a command at a time; every second one writes a key, too, that is the first of all.
fn shown(at: u64) -> Vec<Write> {
    let keys = (0..10).map(|n| if n == 0 && at.is_multiple_of(2) { 0 } else { at * 10 + n });
    keys.map(|n| (key(n), Some(Bytes::from(at.to_string())))).collect()
}

/// The keys of such commands, up to one of them, that are not read as they should be.
fn missed(store: &Versions<MemoryEngine>, from: u64, last: u64) -> Vec<(u64, u64)> {
    let newest_even = last - last % 2;
    let of = |at: u64| (0..10).map(move |n| (at, at * 10 + n)).filter(|(at, n)| n % 10 > 0 || at % 2 > 0);
    let all = (from..=last).flat_map(of).chain((newest_even > 0).then_some((newest_even, 0)));
    let is_missed = |(at, n): &(u64, u64)| {
        let found = store.get(&key(*n), ts(1000)).unwrap();
        let index = store.version_between_in(&span(*n..n + 1), ts(at - 1), ts(1000)).unwrap();
        found != Some((ts(*at), Bytes::from(at.to_string()))) || index != Some((key(*n), ts(*at)))
    };
    all.filter(is_missed).collect()
}

/// With no more room in the list, who comes puts the oldest in its places and nothing else: of each so many writes are placed at a time.
#[test]
fn who_comes_with_one_too_many_places_the_oldest_only() {
    let store = store();
    let several = SHOWN_MAX as u64 + 3;
    for at in 1..=several {
        store.show(ts(at), Arc::new(shown(at)));
        assert_eq!(missed(&store, 1, at), []);
    }
    let outside = || [5, (several + 1) * 10].map(|n| store.get(&key(n), ts(1000)).unwrap());
    let mut placed = 0;
    while store.place(10) {
        placed += 1;
        assert_eq!(missed(&store, 1, several), [], "after {placed}");
        assert_eq!(outside(), [None, None], "no command has them");
    }
    assert_eq!(placed + 1, SHOWN_MAX, "all but the oldest wait for whoever has the time");
    let keys = keys_of(&chunks(&store, 0..(several + 2) * 10, 1000, false)).len() as u64;
    assert_eq!(keys, several * 10 - several / 2 + 1);
}

#[test]
fn whoever_reads_while_another_thread_places_what_is_shown_misses_nothing() {
    let (store, over) = (store(), AtomicBool::new(false));
    let missed = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(SeqCst) {
                while store.place(1) {}
                std::thread::yield_now();
            }
        });
        let missed: Vec<_> = (1..=90)
            .flat_map(|at| {
                store.show(ts(at), Arc::new(shown(at)));
                missed(&store, at.saturating_sub(SHOWN_MAX as u64).max(1), at)
            })
            .collect();
        over.store(true, SeqCst);
        missed
    });
    assert_eq!(missed, []);
}

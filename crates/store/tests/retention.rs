//! Tables that are kept for another time than the rest: what goes, what stays, and what a full disk and a restart make of it.

use bytes::Bytes;
use clock::Timestamp;
use std::sync::Arc;
use store::disk::Room;
use store::engine::Tree;
use store::versions::{Apart, GivenUp, Threshold};
use store::{Engine, MemoryEngine, StoreError, Versions, VersionsConfig};

const LONG: [u8; 4] = [0, 0, 0, 2];
const SHORT: [u8; 4] = [0, 0, 0, 3];
const COMMON: [u8; 4] = [0, 0, 0, 1];

fn ts(n: u64) -> Timestamp {
    Timestamp::from_u64(n)
}

fn key(index: [u8; 4]) -> Bytes {
    Bytes::copy_from_slice(&[&index[..], b"row"].concat())
}

fn store(engine: &Arc<MemoryEngine>) -> Versions<Arc<MemoryEngine>> {
    // A bucket for each timestamp.
    let config = VersionsConfig { cache_bytes: 0, bucket_shift: 0, ..VersionsConfig::default() };
    Versions::open(engine.clone(), config).unwrap()
}

/// Each table has a new value at each of these times.
fn write(store: &Versions<Arc<MemoryEngine>>, times: std::ops::Range<u64>) {
    for at in times {
        let value = Some(Bytes::from(at.to_string()));
        store.apply(ts(at), &[COMMON, LONG, SHORT].map(|index| (key(index), value.clone())));
        assert!(store.freeze(at, Bytes::new()));
        store.flush().unwrap();
    }
}

fn apart(common: u64, of: &[([u8; 4], u8, u64)]) -> Threshold {
    let apart = of.iter().map(|(index, class, at)| Apart { index: *index, class: *class, threshold: ts(*at) });
    Threshold { common: ts(common), apart: apart.collect() }
}

/// The oldest snapshot that each can be read at, which has what it should.
fn oldest(store: &Versions<Arc<MemoryEngine>>) -> [u64; 3] {
    [COMMON, LONG, SHORT].map(|index| {
        let oldest = (1..200).find(|at| store.get(&key(index), ts(*at)).is_ok()).unwrap();
        let newest = store.newest(&key(index)).unwrap().unwrap().as_u64();
        for at in oldest..=newest {
            let found = store.get(&key(index), ts(at)).unwrap();
            assert_eq!(found.map(|(_, value)| value), Some(Bytes::from(at.to_string())), "{index:?} at {at}");
        }
        assert_eq!(store.collected_of(&key(index)).as_u64().max(1), oldest);
        oldest
    })
}

#[test]
fn each_table_is_kept_for_its_own_time_and_no_longer() {
    let engine = Arc::new(MemoryEngine::new());
    let store = store(&engine);
    store.collect(apart(0, &[(LONG, 9, 0), (SHORT, 2, 0)])).unwrap();
    write(&store, 1..20);
    store.collect(apart(10, &[(LONG, 9, 5), (SHORT, 2, 15)])).unwrap();
    assert_eq!(oldest(&store), [10, 5, 15]);
    // 19 versions of each, the last of which has not ended: what ended at or below its threshold is gone.
    assert_eq!(engine.entries(Tree::Past), (18 - 9) + (18 - 4) + (18 - 14));
    let error = store.get(&key(SHORT), ts(14));
    assert_eq!(error, Err(StoreError::Collected { asked: ts(14), oldest: ts(15), key: Some(key(SHORT)) }));
    assert!(store.open_snapshot(ts(5)).is_ok(), "the oldest of all can be opened");
    assert!(store.open_snapshot(ts(4)).is_err());
    // One open snapshot holds all of them back, wherever it reads.
    let guard = store.open_snapshot(ts(7)).unwrap();
    store.collect(apart(19, &[(LONG, 9, 19), (SHORT, 2, 19)])).unwrap();
    assert_eq!(oldest(&store), [10, 7, 15]);
    drop(guard);
    store.collect(apart(19, &[(LONG, 9, 19), (SHORT, 2, 19)])).unwrap();
    assert_eq!((engine.entries(Tree::Past), store.garbage().buckets), (0, 0), "nothing is kept for nobody");
}

#[test]
fn a_table_that_changes_its_retention_claims_what_is_there() {
    let engine = Arc::new(MemoryEngine::new());
    let mut store = store(&engine);
    write(&store, 1..10);
    store.collect(apart(3, &[])).unwrap();
    // Longer: what ended before stays with the rest, and goes with it.
    store.collect(apart(4, &[(LONG, 9, 1)])).unwrap();
    assert_eq!(oldest(&store), [4, 4, 4]);
    write(&store, 10..20);
    // It knows so after a restart.
    drop(store);
    store = self::store(&engine);
    store.collect(apart(7, &[(LONG, 9, 1)])).unwrap();
    assert_eq!(oldest(&store), [7, 7, 7]);
    store.collect(apart(14, &[(LONG, 9, 1)])).unwrap();
    assert_eq!(oldest(&store), [14, 9, 14], "what ended from then on is kept");
    store.collect(apart(14, &[(LONG, 9, 12)])).unwrap();
    assert_eq!(oldest(&store), [14, 12, 14]);
    // Back among the rest: nobody needs the class, and it is empty.
    store.collect(apart(16, &[])).unwrap();
    assert_eq!(oldest(&store), [16, 16, 16]);
    store.collect(apart(19, &[])).unwrap();
    assert_eq!(engine.entries(Tree::Past), 0);
}

#[test]
fn deletions_of_a_table_stay_as_long_as_it_can_be_read_before_them() {
    let engine = Arc::new(MemoryEngine::new());
    let store = store(&engine);
    store.collect(apart(0, &[(LONG, 9, 0), (SHORT, 2, 0)])).unwrap();
    write(&store, 1..5);
    store.apply(ts(6), &[COMMON, LONG, SHORT].map(|index| (key(index), None)));
    store.freeze(6, Bytes::new());
    store.flush().unwrap();
    store.collect(apart(8, &[(LONG, 9, 3), (SHORT, 2, 9)])).unwrap();
    store.compact().unwrap();
    let present = |index| engine.get(Tree::Present, &store::keys::present(&key(index))).unwrap().is_some();
    assert_eq!([COMMON, LONG, SHORT].map(present), [false, true, false]);
    assert_eq!(store.get(&key(LONG), ts(4)).unwrap().map(|(at, _)| at), Some(ts(4)));
    assert_eq!(store.get(&key(LONG), ts(7)), Ok(None));
}

/// What a rewrite would free is known over a restart, and so is that it was done.
#[test]
fn buried_deletions_are_counted_over_a_restart() {
    let engine = Arc::new(MemoryEngine::new());
    let mut store = store(&engine);
    let rows: Vec<Bytes> = (0..20_000u32).map(|n| Bytes::copy_from_slice(&n.to_be_bytes())).collect();
    let all = |value: Option<Bytes>| rows.iter().map(|row| (row.clone(), value.clone())).collect::<Vec<_>>();
    for (at, value) in [(1, Some(Bytes::from_static(b"row"))), (2, None)] {
        store.apply(ts(at), &all(value));
        store.freeze(at, Bytes::new());
        store.flush().unwrap();
    }
    store.collect(ts(5)).unwrap();
    assert_eq!((store.garbage().buried, store.compaction_due(false)), (20_000, true));
    drop(store);
    store = self::store(&engine);
    assert_eq!((store.garbage().buried, store.compaction_due(false)), (20_000, true));
    store.compact().unwrap();
    assert_eq!(engine.entries(Tree::Present), 1, "the header");
    drop(store);
    store = self::store(&engine);
    assert_eq!((store.garbage().buried, store.compaction_due(true)), (0, false), "it is not done again");
}

#[test]
fn what_a_full_disk_gives_up_is_told() {
    let engine = Arc::new(MemoryEngine::new());
    let store = store(&engine);
    store.collect(apart(0, &[(SHORT, 2, 0)])).unwrap();
    write(&store, 1..3);
    assert_eq!(store.given_up(), GivenUp::default());
    store.apply(ts(5), &[COMMON, LONG].map(|index| (key(index), None)));
    store.freeze(5, Bytes::new());
    engine.set_full(true);
    assert_eq!(store.flush(), Err(StoreError::DiskFull));
    assert_eq!(store.given_up(), GivenUp { times: 1, versions: 2, below: ts(5) });
    // Again for the same layer: nothing is there to be kept any more.
    assert_eq!(store.flush(), Err(StoreError::DiskFull));
    assert_eq!(store.given_up().times, 1);
    engine.set_full(false);
    assert_eq!(store.flush(), Ok(true));
    assert_eq!(store.collected_of(&key(LONG)), ts(5));
    assert_eq!(
        store.get(&key(SHORT), ts(1)).unwrap().map(|(at, _)| at),
        Some(ts(1)),
        "it is kept apart, and lost nothing"
    );
    assert_eq!(engine.entries(Tree::Past), 3, "what was kept before");
}

#[test]
fn the_past_does_not_take_the_last_of_the_disk() {
    let engine = Arc::new(MemoryEngine::new());
    let store = store(&engine);
    write(&store, 1..3);
    let past = engine.entries(Tree::Past);
    store.apply(ts(5), &[COMMON, LONG].map(|index| (key(index), None)));
    store.freeze(5, Bytes::new());
    engine.set_room(Some(Room { free: (1 << 30) / 16, total: 1 << 30 }));
    let reader = store.open_snapshot(ts(4)).unwrap();
    assert_eq!(store.flush(), Err(StoreError::DiskFull), "somebody reads there: it waits");
    assert_eq!((engine.entries(Tree::Past), store.given_up().times), (past, 0));
    drop(reader);
    assert_eq!(store.flush(), Ok(true), "the present is written, the past given up");
    assert_eq!((engine.entries(Tree::Past), store.given_up().times), (past, 1));
    assert_eq!(store.get(&key(LONG), ts(5)), Ok(None));
}

/// What is read of many keys at once is what is read of each by itself, whatever lies in memory, in the present or in the past, and in whatever class.
#[test]
fn histories_of_many_keys_are_those_of_each() {
    let engine = Arc::new(MemoryEngine::new());
    let store = store(&engine);
    let row = |index: [u8; 4], n: u64| Bytes::copy_from_slice(&[&index[..], b"\0r", n.to_string().as_bytes()].concat());
    for at in 1..60 {
        let value =
            |n: u64| (!(at + n).is_multiple_of(5)).then(|| Bytes::from(format!("{at}{}", "v".repeat(n as usize))));
        let writes: Vec<_> =
            [COMMON, LONG, SHORT].iter().flat_map(|index| (0..12).map(move |n| (row(*index, n), n))).collect();
        let of = writes.into_iter().filter(|(_, n)| (at + n).is_multiple_of(1 + n % 4));
        store.apply(ts(at), &of.map(|(key, n)| (key, value(n))).collect::<Vec<_>>());
        if at == 20 {
            store.collect(apart(5, &[(LONG, 1, 2), (SHORT, 2, 15)])).unwrap();
        }
        if at % 7 == 0 {
            assert!(store.freeze(at, Bytes::new()));
            store.flush().unwrap();
        }
    }
    let all = Bytes::new()..Bytes::from_static(&[0xff]);
    let each: Vec<_> =
        store.keys_in(&all, 1000).unwrap().into_iter().map(|k| (k.clone(), store.history(&k).unwrap())).collect();
    assert!(each.len() == 36 && each.iter().any(|(_, history)| history.len() > 10));
    for (limit, bytes) in [(1000, usize::MAX), (1000, 300), (7, usize::MAX), (5, 100), (1, 1)] {
        let (mut found, mut rest) = (Vec::new(), all.clone());
        loop {
            let some = store.histories_in(&rest, limit, bytes).unwrap();
            assert!(some.keys.len() <= limit && (some.whole || !some.keys.is_empty()));
            found.extend(some.keys);
            if some.whole {
                break;
            }
            let last: &(Bytes, _) = found.last().unwrap();
            rest.start = Bytes::from([&last.0[..], &[0]].concat());
        }
        assert_eq!(found, each, "{limit} keys, {bytes} bytes");
    }
}

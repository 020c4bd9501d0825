//! Entries of the engine that are not what the store wrote: named, never taken for data.

use bytes::{BufMut, Bytes};
use clock::Timestamp;
use std::sync::Arc;
use store::engine::Tree;
use store::{Engine, MemoryEngine, StoreError, Versions, VersionsConfig, keys};

fn ts(n: u64) -> Timestamp {
    Timestamp::from_u64(n)
}

fn put(engine: &MemoryEngine, key: Bytes, value: Bytes) {
    engine.ingest(Tree::Present, 0, &mut std::iter::once((key, Some(value)))).unwrap();
}

fn open(engine: &Arc<MemoryEngine>) -> Result<Versions<Arc<MemoryEngine>>, StoreError> {
    Versions::open(engine.clone(), VersionsConfig::default())
}

/// An engine with one flushed key.
fn flushed() -> Arc<MemoryEngine> {
    let engine = Arc::new(MemoryEngine::new());
    let store = open(&engine).unwrap();
    store.apply(ts(3), &[(Bytes::from_static(b"key"), Some(Bytes::from_static(b"value")))]);
    store.freeze(7, Bytes::from_static(b"state"));
    store.flush().unwrap();
    engine
}

#[test]
fn a_flipped_bit_anywhere_in_the_header_is_refused() {
    let header = flushed().get(Tree::Present, &keys::meta("header")).unwrap().unwrap();
    for at in 0..header.len() * 8 {
        let engine = flushed();
        let mut hurt = header.to_vec();
        hurt[at / 8] ^= 1 << (at % 8);
        put(&engine, keys::meta("header"), Bytes::from(hurt));
        assert!(matches!(open(&engine).map(drop), Err(StoreError::Corrupt { .. })), "bit {at}");
    }
    let recovered = open(&flushed()).unwrap().recovered().clone();
    assert_eq!((recovered.position, &recovered.state[..], recovered.max_ts), (7, &b"state"[..], ts(3)));
}

#[test]
fn a_header_cut_short_is_refused_at_every_length() {
    let header = flushed().get(Tree::Present, &keys::meta("header")).unwrap().unwrap();
    for length in 0..header.len() {
        let engine = flushed();
        put(&engine, keys::meta("header"), header.slice(..length));
        assert!(matches!(open(&engine).map(drop), Err(StoreError::Corrupt { .. })), "{length} bytes");
    }
    for length in 0..44 {
        let engine = flushed();
        let mut short = vec![0; length];
        short.put_u32(crc32fast::hash(&short));
        put(&engine, keys::meta("header"), Bytes::from(short));
        assert!(matches!(open(&engine).map(drop), Err(StoreError::Corrupt { .. })), "{length} bytes and their sum");
    }
}

#[test]
fn a_header_of_another_format_is_named() {
    for (format, remedy) in [(9u32, "restore"), (2, "pg_dump")] {
        let engine = flushed();
        let mut other = engine.get(Tree::Present, &keys::meta("header")).unwrap().unwrap().to_vec();
        other.truncate(other.len() - 4);
        other[..4].copy_from_slice(&format.to_be_bytes());
        other.put_u32(crc32fast::hash(&other));
        put(&engine, keys::meta("header"), Bytes::from(other));
        let error = open(&engine).map(drop).unwrap_err().to_string();
        let named = error.contains(&format!("format {format}")) && error.contains("format 3");
        assert!(named && error.contains(remedy), "{error}");
    }
}

#[test]
fn an_entry_that_is_no_version_stops_whoever_meets_it() {
    for odd in ["", "?", "short", "\u{7}12345678 of a kind that is not there"] {
        let engine = flushed();
        put(&engine, keys::present(b"key"), Bytes::from(odd));
        let store = open(&engine).unwrap();
        let corrupt = |result: Result<(), StoreError>| matches!(result, Err(StoreError::Corrupt { .. }));
        let span = Bytes::from_static(b"k")..Bytes::from_static(b"l");
        assert!(corrupt(store.scan(&span, ts(9), false, 10).map(drop)), "{odd}");
        assert!(corrupt(store.scan(&span, ts(9), true, 10).map(drop)), "{odd}, backwards");
        assert!(corrupt(store.newest_in(&span, ts(0)).map(drop)), "{odd}, certifying");
        assert!(corrupt(store.get(b"key", ts(9)).map(drop)), "{odd}");
        assert!(corrupt(store.history(b"key").map(drop)), "{odd}");
    }
}

#[test]
fn an_entry_of_the_past_that_is_none_stops_whoever_looks_back() {
    let engine = flushed();
    let store = open(&engine).unwrap();
    store.apply(ts(1 << 40), &[(Bytes::from_static(b"key"), None)]);
    store.freeze(8, Bytes::new());
    store.flush().unwrap();
    drop(store);
    let bucket = keys::Bucket::of(0, ts(1 << 40), store::versions::BUCKET_SHIFT);
    let change = (bucket.key(b"key", ts(1 << 40)), Some(Bytes::from_static(b"short")));
    engine.ingest(Tree::Past, 0, &mut std::iter::once(change)).unwrap();
    let store = open(&engine).unwrap();
    assert_eq!(store.get(b"key", ts(1 << 41)).unwrap(), None, "the present is whole");
    assert!(matches!(store.get(b"key", ts(9)), Err(StoreError::Corrupt { .. })));
    assert!(matches!(store.history(b"key"), Err(StoreError::Corrupt { .. })));
}

#[test]
fn a_full_disk_loses_nothing_and_resumes() {
    let engine = flushed();
    let store = open(&engine).unwrap();
    store.apply(ts(5), &[(Bytes::from_static(b"key"), Some(Bytes::from_static(b"newer")))]);
    store.freeze(8, Bytes::new());
    engine.set_full(true);
    assert_eq!(store.flush(), Err(StoreError::DiskFull));
    assert_eq!((store.frozen_layers(), store.flushed_position()), (1, 7));
    assert_eq!(store.get(b"key", ts(5)).unwrap().unwrap().0, ts(5));
    engine.set_full(false);
    assert!(store.flush().unwrap());
    assert_eq!((store.frozen_layers(), store.flushed_position()), (0, 8));
    engine.set_full(true);
    let later = ts(1 << 40);
    assert_eq!(store.collect(later), Err(StoreError::DiskFull), "the threshold needs room, too");
    engine.set_full(false);
    // The past had no room, so there is none, and nobody reads there; what is there now needed little.
    assert!(store.open_snapshot(ts(4)).is_err());
    assert_eq!((store.garbage().past, store.collect(later)), (0, Ok(later)));
}

//! `Versions` against a dumb oracle, on fjall, with reopening; and what fjall must keep.

mod model;

use bytes::Bytes;
use clock::Timestamp;
use model::{World, step};
use proptest::prelude::*;
use std::ops::ControlFlow;
use store::engine::Tree;
use store::keys::{Bucket, Kept, bucket_of};
use store::{Engine, Erased, FjallEngine, FjallOptions, Versions, VersionsConfig, keys};
use tempfile::TempDir;

fn options() -> FjallOptions {
    FjallOptions { cache_bytes: 1 << 20 }
}

struct OnDisk(TempDir);

impl World for OnDisk {
    type E = FjallEngine;
    fn open(&mut self) -> FjallEngine {
        FjallEngine::open(self.0.path(), options()).unwrap()
    }
    fn crash(&mut self, _: u8) {}
    fn set_full(&mut self, _: bool) {}
    fn fail_sync(&mut self) {}
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn versions_agree_with_the_oracle(steps in prop::collection::vec(step(), 1..100), dice in any::<u8>()) {
        model::run(&mut OnDisk(tempfile::tempdir().unwrap()), &steps, dice)?;
    }
}

fn put(engine: &FjallEngine, entries: &[(&'static str, Option<&'static str>)]) {
    let mut changes = entries.iter().map(|(k, v)| (Bytes::from(*k), v.map(Bytes::from)));
    engine.ingest(Tree::Past, 0, &mut changes).unwrap();
}

fn all(engine: &FjallEngine, reverse: bool) -> Vec<(String, String)> {
    let mut found = Vec::new();
    engine
        .scan(Tree::Past, b"", b"~", reverse, &mut |key, value| {
            found.push((String::from_utf8_lossy(&key).into(), String::from_utf8_lossy(&value).into()));
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

#[test]
fn the_newest_ingestion_wins_also_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    for round in ["one", "two", "three"] {
        let engine = FjallEngine::open(dir.path(), options()).unwrap();
        for again in 0..6 {
            put(&engine, &[("a", Some(round)), ("b", Some("b")), (["c", "d", "e", "f", "g", "h"][again], Some(round))]);
        }
        put(&engine, &[("b", None)]);
        assert_eq!(engine.get(Tree::Past, b"a").unwrap().unwrap(), round);
        assert_eq!(engine.get(Tree::Past, b"b").unwrap(), None);
        drop(engine);
        let engine = FjallEngine::open(dir.path(), options()).unwrap();
        let forward = all(&engine, false);
        assert_eq!(forward.iter().map(|(k, _)| k.as_str()).collect::<String>(), "acdefgh");
        assert!(forward.iter().all(|(_, v)| v == round), "{forward:?}");
        let mut backward = all(&engine, true);
        backward.reverse();
        assert_eq!(forward, backward);
        assert!(engine.disk_bytes() > 0);
    }
}

#[test]
fn an_ingestion_that_was_not_finished_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), options()).unwrap();
    put(&engine, &[("a", Some("1"))]);
    let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut changes = (0..3).map(|n| {
            assert!(n < 2, "the process dies here");
            (Bytes::from(format!("k{n}")), Some(Bytes::from_static(b"v")))
        });
        engine.ingest(Tree::Past, 0, &mut changes)
    }));
    assert!(stopped.is_err());
    assert_eq!(all(&engine, false).len(), 1);
    drop(engine);
    let engine = FjallEngine::open(dir.path(), options()).unwrap();
    assert_eq!(all(&engine, false).len(), 1);
    put(&engine, &[("a", Some("2"))]);
    assert_eq!(engine.get(Tree::Past, b"a").unwrap().unwrap(), "2");
}

/// Three buckets of one class, with noise that nothing compresses; and a second class in the same files, a tenth as large.
fn past_of_two_classes(engine: &FjallEngine) {
    let noise = |n: u64| (0..64u64).flat_map(move |i| (n * 64 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    for number in 0..3u64 {
        let entry = |class: u8, n: u64| {
            let key = Bucket { class, number }.key(&n.to_be_bytes(), Timestamp::from_u64(n));
            (key, Some(noise(number * 2000 + n).collect::<Bytes>()))
        };
        let mut changes = (0..2000u64).map(|n| entry(0, n)).chain((0..200).map(|n| entry(7, n)));
        engine.ingest(Tree::Past, 0, &mut changes).unwrap();
    }
}

/// It makes way for merges, but not for ever.
fn drop_past(engine: &FjallEngine, kept: &Kept) {
    while !engine.drop_past(kept).unwrap() {}
}

fn past(engine: &FjallEngine) -> Vec<Bucket> {
    let mut found = Vec::new();
    let all = &mut |key: Bytes, _| {
        found.push(bucket_of(&key).unwrap());
        ControlFlow::Continue(())
    };
    engine.scan(Tree::Past, &[], &[0xff; 10], false, all).unwrap();
    found
}

/// A past that was dropped is gone from the disk, also when nothing is written after it, and what another class has in the same files
/// stays.
#[test]
fn a_dropped_past_gives_its_files_back() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), options()).unwrap();
    past_of_two_classes(&engine);
    let before = files(dir.path());
    drop_past(&engine, &[(0, 3), (7, 1)].into());
    assert!(files(dir.path()) < before / 4, "{} of {before} bytes are left", files(dir.path()));
    let left = past(&engine);
    assert!(left.len() == 400 && left.iter().all(|bucket| bucket.class == 7 && bucket.number >= 1), "{}", left.len());
    drop_past(&engine, &[(0, 3), (7, 3)].into());
    assert!(past(&engine).is_empty());
}

/// Bytes of tables, without fjall's journal, which has its size from the start.
fn files(dir: &std::path::Path) -> u64 {
    let size = |entry: std::fs::DirEntry| match entry.metadata().unwrap() {
        meta if meta.is_dir() => files(&entry.path()),
        meta if entry.path().parent().unwrap().ends_with("tables") => meta.len(),
        _ => 0,
    };
    std::fs::read_dir(dir).unwrap().map(Result::unwrap).map(size).sum()
}

/// Files go at once; what they had hidden in files that stay must not come back, in whatever steps it is removed.
#[test]
fn what_is_erased_stays_gone_whatever_the_files_hid() {
    const ROWS: u32 = 100_000;
    let dir = tempfile::tempdir().unwrap();
    let versions =
        Versions::open(FjallEngine::open(dir.path(), options()).unwrap(), VersionsConfig::default()).unwrap();
    let key = |index: u8, n: u32| Bytes::from([&[0, 0, 0, index], &n.to_be_bytes()[..]].concat());
    let rows = |index: u8, from: u32, to: u32, value: &'static str| -> Vec<(Bytes, Bytes)> {
        (from..to).map(|n| (key(index, n), Bytes::from(value))).collect()
    };
    let ts = Timestamp::from_u64;
    // Old rows in a file that reaches over both ends; newer ones, and deletions, in files of their own.
    let all = [rows(1, 0, ROWS, "old"), rows(2, 0, ROWS, "old"), rows(3, 0, ROWS, "old")].concat();
    assert!(versions.load(ts(1), &all).unwrap());
    assert!(versions.load(ts(2), &rows(2, 1000, 90_000, "new")).unwrap());
    versions.apply(ts(3), &[(key(2, 1200), None)]);
    versions.freeze(1, Bytes::new());
    while !versions.flush().unwrap() {}
    let mut steps = 0;
    while versions.erase([0, 0, 0, 2]).unwrap() != Erased::All {
        steps += 1;
        assert!(steps < 1000, "it comes to an end");
    }
    let count = |index: u8| {
        let (from, to) = (keys::present(&[0, 0, 0, index]), keys::present_upper(&[0, 0, 0, index]));
        let mut found = 0;
        let mut visit = |_, _| {
            found += 1;
            ControlFlow::Continue(())
        };
        versions.engine().scan(Tree::Present, &from, &to, false, &mut visit).unwrap();
        found
    };
    assert_eq!([1, 2, 3].map(count), [ROWS, 0, ROWS]);
    versions.compact().unwrap();
    assert_eq!([1, 2, 3].map(count), [ROWS, 0, ROWS]);
}

/// Much is left to merges, which drop it with all that it hides, and nothing beside it; and as no later index has its number, a start that
/// has forgotten it does so again.
#[test]
fn what_is_left_to_merges_is_gone_when_the_present_was_written_anew() {
    const ROWS: u32 = 12_000;
    let dir = tempfile::tempdir().unwrap();
    let config = || VersionsConfig { erase_max: 1_000, ..VersionsConfig::default() };
    let open = || Versions::open(FjallEngine::open(dir.path(), options()).unwrap(), config()).unwrap();
    let mut versions = open();
    let key = |index: u8, n: u32| Bytes::from([&[0, 0, 0, index], &n.to_be_bytes()[..]].concat());
    let rows = |index: u8, value: &'static str| (0..ROWS).map(move |n| (key(index, n), Bytes::from(value)));
    let ts = Timestamp::from_u64;
    for (at, value) in [(1, "old"), (2, "new")] {
        assert!(versions.load(ts(at), &(1..=4).flat_map(|index| rows(index, value)).collect::<Vec<_>>()).unwrap());
    }
    let count = |versions: &Versions<FjallEngine>| {
        [1, 2, 3, 4].map(|index: u8| {
            let (from, to) = (keys::present(&[0, 0, 0, index]), keys::present_upper(&[0, 0, 0, index]));
            let mut found = 0;
            let mut visit = |_, value: Bytes| {
                assert!(value.ends_with(b"new"));
                found += 1;
                ControlFlow::Continue(())
            };
            versions.engine().scan(Tree::Present, &from, &to, false, &mut visit).unwrap();
            found
        })
    };
    // It makes way for a merge, but not for ever.
    let leave = |versions: &Versions<FjallEngine>, index: u8| {
        (0..30).for_each(|_| assert_eq!(versions.erase([0, 0, 0, index]), Ok(Erased::NotYet)));
    };
    leave(&versions, 2);
    drop(versions);
    versions = open();
    assert!(!versions.compaction_due(false));
    leave(&versions, 2);
    leave(&versions, 3);
    assert!(versions.compaction_due(false), "half of it may go");
    versions.compact().unwrap();
    assert_eq!(count(&versions), [ROWS, 0, 0, ROWS]);
    for index in [2, 3] {
        assert!((0..30).any(|_| versions.erase([0, 0, 0, index]) == Ok(Erased::All)));
    }
    versions.compact().unwrap();
    assert_eq!(count(&versions), [ROWS, 0, 0, ROWS]);
}

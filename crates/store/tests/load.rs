//! Rows that go to the engine past the log.

use bytes::Bytes;
use clock::Timestamp;
use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use store::engine::{Tree, Visit};
use store::keys::{Burial, Kept};
use store::{Change, Engine, Erased, Loaded, MemoryEngine, StoreError, Versions, VersionsConfig};

fn ts(n: u64) -> Timestamp {
    Timestamp::from_u64(n)
}

fn key(index: u8, n: u8) -> Bytes {
    Bytes::copy_from_slice(&[0, 0, 0, index, n])
}

fn open(engine: &Arc<MemoryEngine>) -> Versions<Arc<MemoryEngine>> {
    Versions::open(engine.clone(), VersionsConfig::default()).unwrap()
}

fn rows(index: u8, from: u8, to: u8) -> Vec<(Bytes, Bytes)> {
    (from..to).map(|n| (key(index, n), Bytes::copy_from_slice(&[n, index]))).collect()
}

fn scanned(versions: &Versions<Arc<MemoryEngine>>, index: u8, at: Timestamp) -> Vec<Bytes> {
    let (mut found, mut rest) = (Vec::new(), Some(key(index, 0)..key(index, 255)));
    while let Some(span) = rest {
        let chunk = versions.scan(&span, at, false, 7).unwrap();
        found.extend(chunk.rows.into_iter().map(|(key, ..)| key));
        rest = chunk.rest;
    }
    found
}

#[test]
fn what_was_loaded_is_read_from_its_timestamp_on_also_where_nothing_was_known_to_be() {
    let engine = Arc::new(MemoryEngine::new());
    let versions = open(&engine);
    versions.apply(ts(5), &[(key(1, 1), Some(Bytes::from_static(b"other")))]);
    // The bounds of the prefix are known now: there is nothing.
    assert_eq!(versions.get(&key(2, 3), ts(10)).unwrap(), None);
    assert!(versions.load(ts(5), &rows(2, 0, 20)).unwrap());
    assert!(versions.load(ts(5), &rows(2, 20, 50)).unwrap());
    assert!(versions.load(ts(5), &[]).unwrap());
    for n in [0, 3, 19, 20, 49] {
        assert_eq!(versions.get(&key(2, n), ts(5)).unwrap(), Some((ts(5), Bytes::copy_from_slice(&[n, 2]))));
        assert_eq!(versions.get(&key(2, n), ts(4)).unwrap(), None);
    }
    assert_eq!(scanned(&versions, 2, ts(9)).len(), 50);
    assert!(scanned(&versions, 2, ts(4)).is_empty());
    assert_eq!(versions.newest_above(&key(2, 7), ts(4)).unwrap(), Some(ts(5)));
    assert_eq!(versions.newest_above(&key(2, 7), ts(5)).unwrap(), None);
}

/// He is asked before each 256 rows, and hears that not all is there.
#[test]
fn who_does_not_go_on_has_some_of_it_or_nothing() {
    let key = |n: u16| Bytes::from([&[0, 0, 0, 2][..], &n.to_be_bytes()].concat());
    let rows: Vec<(Bytes, Bytes)> = (0..1000).map(|n| (key(n), Bytes::from_static(b"row"))).collect();
    for (told, there, loaded) in
        [(0, 0, Loaded::Part), (1, 256, Loaded::Part), (3, 768, Loaded::Part), (4, 1000, Loaded::All)]
    {
        let versions = open(&Arc::new(MemoryEngine::new()));
        let asked = Cell::new(0);
        let goes_on = || asked.replace(asked.get() + 1) < told;
        assert_eq!(versions.load_while(ts(3), &rows, &goes_on).unwrap(), loaded, "{told}");
        let found = |n: &u16| versions.get(&key(*n), ts(9)).unwrap().is_some();
        assert_eq!((0..1000).filter(found).count(), there, "{told}");
        assert!((0..there as u16).all(|n| found(&n)));
    }
}

#[test]
fn a_crash_leaves_what_was_loaded_and_nothing_of_what_was_only_applied() {
    let engine = Arc::new(MemoryEngine::new());
    let versions = open(&engine);
    versions.apply(ts(3), &[(key(1, 1), Some(Bytes::from_static(b"in the log only")))]);
    assert!(versions.load(ts(3), &rows(2, 0, 30)).unwrap());
    drop(versions);
    engine.crash(0);
    let versions = open(&engine);
    assert_eq!(versions.recovered().position, 0, "what is loaded moves no position");
    assert_eq!(versions.get(&key(1, 1), ts(9)).unwrap(), None);
    assert_eq!(scanned(&versions, 2, ts(9)).len(), 30);
}

#[test]
fn loaded_rows_are_changed_deleted_and_collected_as_others() {
    let engine = Arc::new(MemoryEngine::new());
    let versions = open(&engine);
    assert!(versions.load(ts(3), &rows(2, 0, 10)).unwrap());
    versions.apply(ts(8), &[(key(2, 4), None), (key(2, 5), Some(Bytes::from_static(b"new")))]);
    for flushed in [false, true] {
        if flushed {
            versions.freeze(1, Bytes::new());
            assert!(versions.flush().unwrap());
        }
        assert_eq!(scanned(&versions, 2, ts(7)).len(), 10, "flushed: {flushed}");
        assert_eq!(scanned(&versions, 2, ts(8)).len(), 9);
        assert_eq!(versions.get(&key(2, 5), ts(7)).unwrap(), Some((ts(3), Bytes::from_static(&[5, 2]))));
        assert_eq!(versions.get(&key(2, 5), ts(8)).unwrap(), Some((ts(8), Bytes::from_static(b"new"))));
    }
    versions.collect(ts(8)).unwrap();
    assert_eq!(scanned(&versions, 2, ts(9)).len(), 9);
}

#[test]
fn what_is_erased_is_gone_and_what_lies_beside_it_is_not() {
    let engine = Arc::new(MemoryEngine::new());
    let versions = open(&engine);
    for index in [1, 2, 3] {
        assert!(versions.load(ts(3), &rows(index, 0, 40)).unwrap());
    }
    versions.apply(ts(8), &[(key(2, 4), None)]);
    assert_eq!(
        versions.erase([0, 0, 0, 2]).unwrap(),
        Erased::NotYet,
        "a part is in memory: a flush would bring it back"
    );
    versions.freeze(1, Bytes::new());
    assert!(versions.flush().unwrap());
    assert_eq!(versions.erase([0, 0, 0, 2]).unwrap(), Erased::All);
    assert_eq!(versions.erase([0, 0, 0, 2]).unwrap(), Erased::All);
    drop(versions);
    engine.crash(0);
    let versions = open(&engine);
    let counts = [1, 2, 3].map(|index| scanned(&versions, index, ts(9)).len());
    assert_eq!(counts, [40, 0, 40]);
}

fn warm(versions: &Versions<Arc<MemoryEngine>>) -> usize {
    (1..100).find(|_| !versions.warm_loaded(7).unwrap()).unwrap()
}

#[test]
fn loaded_rows_are_cached_in_time_and_are_the_newest_of_their_keys() {
    let engine = Arc::new(MemoryEngine::new());
    let versions = open(&engine);
    assert!(!versions.warm_loaded(7).unwrap(), "nothing was loaded");
    assert!(versions.load(ts(3), &rows(2, 0, 10)).unwrap());
    assert!(versions.load(ts(3), &rows(2, 10, 20)).unwrap());
    versions.apply(ts(8), &[(key(2, 4), Some(Bytes::from_static(b"new"))), (key(2, 5), None)]);
    let before = versions.cache_bytes();
    assert_eq!((versions.loads(), warm(&versions)), (2, 3), "both in one walk");
    assert!(versions.cache_bytes() > before + 18 * 100, "{} bytes", versions.cache_bytes());
    for at in [ts(7), ts(9)] {
        let seen: Vec<_> = (0..20).map(|n| versions.get(&key(2, n), at).unwrap().map(|(ts, _)| ts)).collect();
        let new = |n| {
            if at == ts(7) {
                Some(ts(3))
            } else if n == 4 {
                Some(ts(8))
            } else {
                None
            }
        };
        let expected: Vec<_> = (0..20).map(|n| if n == 4 || n == 5 { new(n) } else { Some(ts(3)) }).collect();
        assert_eq!(seen, expected);
    }
    // What is written later takes its place.
    versions.apply(ts(9), &[(key(2, 7), Some(Bytes::from_static(b"later")))]);
    assert_eq!(versions.get(&key(2, 7), ts(9)).unwrap(), Some((ts(9), Bytes::from_static(b"later"))));
    assert_eq!(versions.get(&key(2, 7), ts(8)).unwrap().unwrap().0, ts(3));
}

#[test]
fn what_was_loaded_and_dropped_is_not_cached_nor_what_has_no_room() {
    let engine = Arc::new(MemoryEngine::new());
    let versions = open(&engine);
    assert!(versions.load(ts(3), &rows(1, 0, 40)).unwrap());
    assert!(versions.load(ts(3), &rows(2, 0, 40)).unwrap());
    versions.forget_loaded([0, 0, 0, 1]);
    assert_eq!(warm(&versions), 6);
    let of_one = versions.cache_bytes();
    assert!(of_one > 0 && of_one < 60 * 200, "{of_one} bytes");
    let config = VersionsConfig { cache_bytes: 40_000, ..VersionsConfig::default() };
    let versions = Versions::open(engine.clone(), config).unwrap();
    for index in 3..9 {
        assert!(versions.load(ts(3), &rows(index, 0, 200)).unwrap());
    }
    let calls = warm(&versions);
    assert!(calls < 100 && versions.cache_bytes() <= 40_000, "{calls} calls, {} bytes", versions.cache_bytes());
    assert_eq!(versions.get(&key(3, 7), ts(3)).unwrap().unwrap().0, ts(3));
    assert!(!versions.warm_loaded(7).unwrap(), "the rest is forgotten");
}

/// The engine in memory: who writes to the past says that it began, and waits until it may go on.
#[derive(Default)]
struct Slow {
    engine: MemoryEngine,
    past: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Engine for Slow {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.engine.get(tree, key)
    }
    fn scan(&self, tree: Tree, from: &[u8], to: &[u8], reverse: bool, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.engine.scan(tree, from, to, reverse, visit)
    }
    fn ingest(&self, tree: Tree, bytes: usize, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        let past = self.past.lock().unwrap().take_if(|_| tree == Tree::Past);
        if let Some((began, go_on)) = past {
            began.send(()).unwrap();
            go_on.recv().unwrap();
        }
        // They are asked for while nobody is kept from reading.
        let changes: Vec<Change> = changes.collect();
        self.engine.ingest(tree, bytes, &mut changes.into_iter())
    }
    fn bury(&self, burial: Burial) {
        self.engine.bury(burial);
    }
    fn drop_past(&self, kept: &Kept) -> Result<bool, StoreError> {
        self.engine.drop_past(kept)
    }
    fn compact(&self) -> Result<(), StoreError> {
        self.engine.compact()
    }
    fn entries(&self, tree: Tree) -> u64 {
        self.engine.entries(tree)
    }
    fn sync(&self) -> Result<(), StoreError> {
        self.engine.sync()
    }
    fn disk_bytes(&self) -> u64 {
        self.engine.disk_bytes()
    }
}

/// Who loaded right behind a large DELETE waited until all that it had ended was in the past.
#[test]
fn a_load_goes_on_while_a_flush_keeps_the_past() {
    let engine = Arc::new(Slow::default());
    let open =
        || Versions::open(engine.clone(), VersionsConfig { cache_bytes: 0, ..VersionsConfig::default() }).unwrap();
    let first = open();
    first.apply(ts(3), &[(key(1, 10), Some(Bytes::from_static(b"old")))]);
    assert!(first.freeze(3, Bytes::new()) && first.flush().unwrap());
    drop(first);
    let versions = open();
    let new = |n| (key(1, n), Some(Bytes::from_static(b"new")));
    versions.apply(ts(5), &[new(10), new(200)]);
    assert!(versions.freeze(5, Bytes::new()));
    let ((began, begins), (goes_on, go_on)) = (channel(), channel());
    *engine.past.lock().unwrap() = Some((began, go_on));
    std::thread::scope(|scope| {
        let flush = scope.spawn(|| versions.flush());
        begins.recv().unwrap();
        assert!(versions.load(ts(5), &rows(2, 0, 20)).unwrap());
        assert_eq!(versions.get(&key(2, 7), ts(5)).unwrap(), Some((ts(5), Bytes::from_static(&[7, 2]))));
        // What the engine has of this index is not all that it will have: nobody may remember that.
        assert_eq!(versions.get(&key(1, 250), ts(9)).unwrap(), None);
        goes_on.send(()).unwrap();
        assert_eq!(flush.join().unwrap(), Ok(true));
    });
    for n in [10, 200] {
        assert_eq!(versions.get(&key(1, n), ts(9)).unwrap(), Some((ts(5), Bytes::from_static(b"new"))));
    }
    assert_eq!(versions.get(&key(1, 10), ts(4)).unwrap(), Some((ts(3), Bytes::from_static(b"old"))));
    assert_eq!(versions.get(&key(2, 19), ts(5)).unwrap(), Some((ts(5), Bytes::from_static(&[19, 2]))));
}

/// What the engine has of an index while rows of it arrive is not remembered as all that it has.
#[test]
fn who_looks_while_rows_arrive_remembers_no_bounds() {
    let key = |n: u16| Bytes::from([&[0, 0, 0, 2][..], &n.to_be_bytes()].concat());
    let rows: Vec<(Bytes, Bytes)> = (0..1000).map(|n| (key(n), Bytes::from_static(b"row"))).collect();
    let versions = Versions::open(Slow::default(), VersionsConfig::default()).unwrap();
    let asked = Cell::new(0);
    let goes_on = || {
        // Not before it is known what is loaded.
        if asked.replace(asked.get() + 1) > 0 {
            assert_eq!(versions.get(&key(7), ts(9)).unwrap(), None, "nothing of it is there yet");
        }
        true
    };
    assert_eq!(versions.load_while(ts(3), &rows, &goes_on).unwrap(), Loaded::All);
    assert!(asked.get() > 2);
    assert!((0..1000).all(|n| versions.get(&key(n), ts(9)).unwrap().is_some()));
}

//! How many runs a read may meet: flushes and collections wait for an engine that has to merge.

use bytes::Bytes;
use clock::Timestamp;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use store::engine::{Tree, Visit};
use store::keys::{Burial, Kept};
use store::versions::UNMERGED_RUNS_MAX;
use store::{Change, Engine, FjallEngine, FjallOptions, MemoryEngine, StoreError, Versions, VersionsConfig};

fn ts(n: u64) -> Timestamp {
    Timestamp::from_u64(n)
}

/// The engine in memory, which counts ingestions as runs until it is told that they are merged.
#[derive(Default)]
struct Counting {
    engine: MemoryEngine,
    runs: AtomicUsize,
    hints: AtomicUsize,
    /// Ingestions of the past.
    pasts: AtomicUsize,
    /// Who drops the past says that it began, and waits until it may go on.
    drops: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    /// So many drops make way for a merge.
    busy: AtomicUsize,
}

impl Engine for Counting {
    fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.engine.get(tree, key)
    }
    fn scan(&self, tree: Tree, from: &[u8], to: &[u8], reverse: bool, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.engine.scan(tree, from, to, reverse, visit)
    }
    fn ingest(&self, tree: Tree, bytes: usize, changes: &mut dyn Iterator<Item = Change>) -> Result<(), StoreError> {
        if tree == Tree::Present {
            self.runs.fetch_add(1, Ordering::Relaxed);
        } else {
            self.pasts.fetch_add(1, Ordering::Relaxed);
        }
        self.engine.ingest(tree, bytes, changes)
    }
    fn bury(&self, burial: Burial) {
        self.engine.bury(burial);
    }
    fn drop_past(&self, kept: &Kept) -> Result<bool, StoreError> {
        if self.busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Ok(false);
        }
        if let Some((began, go_on)) = self.drops.lock().unwrap().take() {
            began.send(()).unwrap();
            go_on.recv().unwrap();
        }
        self.engine.drop_past(kept)
    }
    fn compact(&self) -> Result<(), StoreError> {
        self.engine.compact()
    }
    fn entries(&self, tree: Tree) -> u64 {
        self.engine.entries(tree)
    }
    fn unmerged_runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
    fn merge(&self) {
        self.hints.fetch_add(1, Ordering::Relaxed);
    }
    fn sync(&self) -> Result<(), StoreError> {
        self.engine.sync()
    }
    fn disk_bytes(&self) -> u64 {
        self.engine.disk_bytes()
    }
}

fn counting() -> (Arc<Counting>, Versions<Arc<Counting>>) {
    let engine = Arc::new(Counting::default());
    let config = VersionsConfig { cache_bytes: 0, ..VersionsConfig::default() };
    let versions = Versions::open(engine.clone(), config).unwrap();
    // The header of a new store is a run of its own.
    engine.runs.store(0, Ordering::Relaxed);
    (engine, versions)
}

/// Writes one key at a time and closes the layer.
fn layer(store: &Versions<impl Engine>, at: u64) {
    store.apply(ts(at), &[(Bytes::from_static(b"key"), Some(Bytes::from(format!("{at}"))))]);
    assert!(store.freeze(at, Bytes::new()));
}

#[test]
fn a_flush_waits_while_the_engine_has_to_merge() {
    let (engine, store) = counting();
    let bound = UNMERGED_RUNS_MAX as u64;
    (1..=bound + 2).for_each(|at| layer(&store, at));
    for _ in 0..bound {
        assert!(store.flush().unwrap());
    }
    let hints = engine.hints.load(Ordering::Relaxed);
    assert!(!store.flush().unwrap(), "one run more than a read should meet");
    assert!(engine.hints.load(Ordering::Relaxed) > hints, "who waits has the engine go on");
    assert_eq!((store.frozen_layers(), store.flushed_position()), (2, bound));
    assert_eq!(store.get(b"key", ts(bound + 2)).unwrap().unwrap().0, ts(bound + 2), "what waits can be read");
    engine.runs.store(0, Ordering::Relaxed);
    while store.flush().unwrap() {}
    assert_eq!((store.frozen_layers(), store.flushed_position()), (0, bound + 2));
}

#[test]
fn a_collection_leaves_room_for_flushes() {
    let (engine, store) = counting();
    (1..=UNMERGED_RUNS_MAX as u64).for_each(|at| layer(&store, at));
    while store.flush().unwrap() {}
    let later = ts(1 << 40);
    assert_eq!(store.collect(later), Ok(later));
    assert!(store.open_snapshot(later.prev()).is_err(), "the threshold is raised all the same");
    assert!(store.garbage().past > 0, "the rest waits for the engine to merge");
    engine.runs.store(0, Ordering::Relaxed);
    assert_eq!(store.collect(later), Ok(later));
    assert_eq!(store.garbage().past, 0);
}

/// A drop of the past may wait for a merge: flushes, and so commits, do not wait for the drop.
#[test]
#[allow(clippy::disallowed_methods)]
fn flushes_go_on_while_the_past_is_dropped() {
    let (engine, store) = counting();
    (1..=3).for_each(|at| layer(&store, at));
    while store.flush().unwrap() {}
    let ((began, has_begun), (go_on, may_go_on)) = (channel(), channel());
    *engine.drops.lock().unwrap() = Some((began, may_go_on));
    std::thread::scope(|scope| {
        let dropping = scope.spawn(|| store.collect(ts(1 << 40)));
        has_begun.recv().unwrap();
        layer(&store, 4);
        assert!(store.flush().unwrap());
        go_on.send(()).unwrap();
        assert_eq!(dropping.join().unwrap(), Ok(ts(1 << 40)));
    });
    assert_eq!(store.get(b"key", ts(1 << 41)).unwrap().unwrap().0, ts(4));
}

/// Whoever looks how much of the past there is, as metrics do, waited for a collection that waited for him.
#[test]
#[allow(clippy::disallowed_methods)]
fn the_past_is_counted_while_it_is_collected() {
    let (engine, store) = counting();
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while done.load(Ordering::Relaxed) == 0 {
                store.garbage();
            }
        });
        for round in 1..=200 {
            let at = round << 40;
            layer(&store, at);
            layer(&store, at + 1);
            while store.flush().unwrap() {}
            engine.runs.store(0, Ordering::Relaxed);
            store.collect(ts(at + (1 << 39))).unwrap();
        }
        done.store(1, Ordering::Relaxed);
    });
    assert!(store.garbage().past <= 2);
}

/// What made way for a merge is done by the next call, though nothing else is to be collected.
#[test]
fn a_drop_that_made_way_is_made_up_for() {
    let (engine, store) = counting();
    (1..=3).for_each(|at| layer(&store, at));
    while store.flush().unwrap() {}
    engine.busy.store(2, Ordering::Relaxed);
    for left in [2, 2, 0] {
        store.collect(ts(1 << 40)).unwrap();
        assert_eq!(engine.entries(Tree::Past), left);
    }
}

/// What a layer follows and nobody has at hand, as after a replay, is read and written in parts.
#[test]
fn a_flush_holds_a_part_of_what_it_follows() {
    let (engine, store) = counting();
    let value = |n: u8| Bytes::from(vec![n; 100_000]);
    let rows: Vec<Bytes> = (0..120u32).map(|n| Bytes::copy_from_slice(&n.to_be_bytes())).collect();
    let write = |at: u64, value: Option<Bytes>| {
        store.apply(ts(at), &rows.iter().map(|row| (row.clone(), value.clone())).collect::<Vec<_>>());
        assert!(store.freeze(at, Bytes::new()));
        assert!(store.flush().unwrap());
    };
    write(1, Some(value(1)));
    assert_eq!(engine.pasts.load(Ordering::Relaxed), 0);
    write(2, None);
    // 12 MB, 4 MiB at a time.
    assert_eq!((engine.pasts.load(Ordering::Relaxed), engine.entries(Tree::Past)), (3, 120));
    for row in &rows {
        assert_eq!(store.get(row, ts(1)).unwrap(), Some((ts(1), value(1))));
        assert_eq!(store.get(row, ts(2)), Ok(None));
    }
}

#[test]
fn level_0_stays_below_its_bound_under_a_load_of_random_keys() {
    const LAYERS: u64 = 40;
    const ROWS: u64 = 4_000;
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions { cache_bytes: 1 << 20 }).unwrap();
    let store = Versions::open(engine, VersionsConfig { cache_bytes: 0, ..VersionsConfig::default() }).unwrap();
    let key = |n: u64| Bytes::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec());
    for layer in 0..LAYERS {
        for n in layer * ROWS..(layer + 1) * ROWS {
            store.apply(ts(n + 1), &[(key(n), Some(Bytes::from(vec![7; 100])))]);
        }
        store.freeze((layer + 1) * ROWS, Bytes::new());
    }
    // All at once, so that merging cannot keep pace by itself.
    while store.frozen_layers() > 0 {
        if !store.flush().unwrap() {
            std::thread::yield_now();
        }
        let runs = store.engine().unmerged_runs();
        assert!(runs <= UNMERGED_RUNS_MAX, "{runs} runs, {} layers to go", store.frozen_layers());
    }
    // Hints alone bring it to rest, whatever fjall looked for by itself.
    while store.engine().unmerged_runs() >= UNMERGED_RUNS_MAX / 2 {
        assert!(!store.flush().unwrap());
        std::thread::yield_now();
    }
    assert_eq!(store.get(&key(5), ts(u64::MAX)).unwrap().unwrap().0, ts(6));
    assert_eq!(store.flushed_position(), LAYERS * ROWS);
}

#[test]
fn a_hint_leaves_no_file_behind() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions { cache_bytes: 1 << 20 }).unwrap();
    // One table only moves down, so that no merge takes a number for a file at the same time.
    engine.ingest(Tree::Present, 0, &mut std::iter::once((Bytes::from_static(b"key"), Some(Bytes::new())))).unwrap();
    for _ in 0..10_000 {
        engine.merge();
        std::thread::yield_now();
    }
    drop(engine);
    assert_eq!(empty_files(dir.path()), 0);
}

fn empty_files(dir: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let count = |entry: std::fs::DirEntry| match entry.metadata().unwrap() {
        meta if meta.is_dir() => empty_files(&entry.path()),
        meta => usize::from(meta.len() == 0 && entry.path().parent().unwrap().ends_with("tables")),
    };
    entries.map(count).sum()
}

#[test]
fn a_load_waits_for_merges_as_a_flush_does() {
    let (engine, versions) = counting();
    let row = |n: usize| [(Bytes::from(format!("key{n:03}")), Bytes::from_static(b"value"))];
    for n in 0..UNMERGED_RUNS_MAX {
        assert!(versions.load(ts(1), &row(n)).unwrap());
    }
    assert!(!versions.load(ts(1), &row(99)).unwrap());
    assert_eq!(versions.get(&row(99)[0].0, ts(9)).unwrap(), None, "nothing was written");
    assert!(engine.hints.load(Ordering::Relaxed) > 0);
    engine.runs.store(0, Ordering::Relaxed);
    assert!(versions.load(ts(1), &row(99)).unwrap());
    assert!(versions.get(&row(99)[0].0, ts(9)).unwrap().is_some());
}

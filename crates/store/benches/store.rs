//! Figures of the store: `cargo bench -p timeball-store`. Runs in the system's
//! temporary directory. Read ratios, not absolutes.
#![allow(clippy::disallowed_methods, reason = "a bench measures real time with real threads")]
#![allow(missing_docs)]

use bytes::Bytes;
use clock::Timestamp;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use store::disk::real::RealDisk;
use store::{Engine, FjallEngine, FjallOptions, Log, LogOptions, Versions, VersionsConfig, Write};

const ROWS: u32 = 400_000;
const VALUE_BYTES: usize = 110;

fn key(n: u32) -> Bytes {
    let mut key = vec![0, 0, 0, 100, 0x80, 0, 0, 0];
    key.extend_from_slice(&n.to_be_bytes());
    Bytes::from(key)
}

fn ts(n: u64) -> Timestamp {
    Timestamp::from_u64(n)
}

fn ns_each(what: &str, times: u32, mut f: impl FnMut(u32)) {
    let start = Instant::now();
    for n in 0..times {
        f(n);
    }
    println!("{what:<58} {:>9.0} ns", start.elapsed().as_nanos() as f64 / f64::from(times));
}

/// A fixed walk over the rows without order.
fn mixed(n: u32) -> u32 {
    n.wrapping_mul(2_654_435_761) % ROWS
}

/// The baton of a server: one thread leads, the others park until their position is durable or the lead is theirs.
#[derive(Default)]
struct Baton {
    state: parking_lot::Mutex<(bool, Vec<(u64, std::thread::Thread)>)>,
}

impl Baton {
    fn sync_to(&self, log: &Log, position: u64) {
        while log.durable() < position {
            let mut state = self.state.lock();
            if state.0 {
                if log.durable() < position {
                    state.1.push((position, std::thread::current()));
                    drop(state);
                    std::thread::park();
                }
                continue;
            }
            state.0 = true;
            drop(state);
            // Whoever was woken by the last leader may still be on the way to its next append.
            std::thread::yield_now();
            let durable = log.write_and_sync().unwrap();
            let mut state = self.state.lock();
            state.0 = false;
            let (done, rest): (Vec<_>, Vec<_>) = state.1.drain(..).partition(|w| w.0 <= durable);
            let next = rest.first().cloned();
            state.1 = rest.into_iter().skip(1).collect();
            drop(state);
            done.into_iter().chain(next).for_each(|(_, thread)| thread.unpark());
        }
    }
}

fn group_commit(dir: &std::path::Path, writers: usize, parking: bool) {
    let disk = Arc::new(RealDisk::open(dir).unwrap());
    let (log, _) = Log::open(disk, &LogOptions::default(), &mut |_, _| Ok(())).unwrap();
    log.reserve().unwrap();
    let (log, stop, done) = (Arc::new(log), Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let baton = Arc::new(Baton::default());
    let start = Instant::now();
    let threads: Vec<_> = (0..writers)
        .map(|_| {
            let baton = baton.clone();
            let (log, stop, done) = (log.clone(), stop.clone(), done.clone());
            std::thread::spawn(move || {
                let record = Bytes::from(vec![7; 200]);
                while !stop.load(Ordering::Relaxed) {
                    let position = log.append(record.clone()).unwrap();
                    if parking {
                        baton.sync_to(&log, position)
                    } else {
                        log.sync_to(position).unwrap()
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    while start.elapsed() < Duration::from_secs(3) {
        std::thread::sleep(Duration::from_millis(20));
        log.reserve().unwrap();
        log.truncate(log.durable()).unwrap();
    }
    let commits = done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|t| t.join().unwrap());
    let how = if parking { "parking" } else { "on a lock" };
    println!("group commit, {writers:>2} writers, {how:<10} {commits:>30.0} commits/s");
}

fn versions(dir: &std::path::Path) {
    let engine = FjallEngine::open(dir, FjallOptions::default()).unwrap();
    let config = VersionsConfig { freeze_bytes: 1 << 40, ..VersionsConfig::default() };
    let store = Versions::open(engine, config).unwrap();
    let value = Bytes::from(vec![3; VALUE_BYTES]);
    let mut position = 0u64;
    ns_each("apply, one new key each, in order", ROWS, |n| {
        position += 1;
        store.apply(ts(u64::from(n) + 1), &[(key(n), Some(value.clone()))]);
    });
    let now = ts(1 << 40);
    ns_each("get, row cache", ROWS, |n| drop(black_box(store.get(&key(mixed(n)), now))));
    let old = ts(u64::from(ROWS) + 1);
    ns_each("apply, one existing key each, no order", ROWS, |n| {
        store.apply(ts(u64::from(ROWS + n) + 2), &[(key(mixed(n)), Some(value.clone()))]);
    });
    ns_each("get, overlay, older version", ROWS, |n| drop(black_box(store.get(&key(mixed(n)), old))));
    ns_each("newest_above, key unknown", ROWS, |n| {
        drop(black_box(store.newest_above(&key(n + ROWS), old)));
    });
    let span = key(0)..key(ROWS);
    ns_each("scan of 100 rows, overlay", 1000, |n| {
        let from = key(mixed(n));
        drop(black_box(store.scan(&(from..span.end.clone()), now, false, 100)));
    });
    println!("overlay {} MiB, cache {} MiB", store.overlay_bytes() >> 20, store.cache_bytes() >> 20);
    store.freeze(position, Bytes::new());
    let start = Instant::now();
    store.flush().unwrap();
    println!("flush of {} versions {:>46.2} s", 2 * ROWS, start.elapsed().as_secs_f64());
    from_engine(&store, &span, now);
}

fn from_engine<E: Engine>(store: &Versions<E>, span: &store::Span, now: Timestamp) {
    let old = ts(u64::from(ROWS) + 1);
    ns_each("get, engine, older version", ROWS / 10, |n| drop(black_box(store.get(&key(mixed(n)), old))));
    ns_each("get, engine, key out of bounds", ROWS, |n| drop(black_box(store.get(&key(n + ROWS), now))));
    let reads = |n: u32| {
        let from = key(mixed(n));
        drop(black_box(store.scan(&(from..span.end.clone()), now, false, 100)));
    };
    ns_each("scan of 100 rows, engine", 2000, reads);
    let start = Instant::now();
    let (mut rest, mut rows) = (Some(span.clone()), 0);
    while let Some(span) = rest.take() {
        let chunk = store.scan(&span, now, false, 4096).unwrap();
        rows += chunk.rows.len();
        rest = chunk.rest;
    }
    println!("full scan, engine {:>46.0} rows/s", rows as f64 / start.elapsed().as_secs_f64());
    let writes: Vec<Write> = (0..1000).map(|n| (key(mixed(n)), Some(Bytes::from_static(b"x")))).collect();
    store.apply(ts(1 << 30), &writes);
    let start = Instant::now();
    let before = store.garbage();
    store.collect(ts(u64::MAX >> 1)).unwrap();
    let removed = before.past - store.garbage().past;
    println!("collect: {removed} removed in {:.2} s", start.elapsed().as_secs_f64());
}

fn threads_get(dir: &std::path::Path) {
    let engine = FjallEngine::open(dir, FjallOptions::default()).unwrap();
    let store = Arc::new(Versions::open(engine, VersionsConfig::default()).unwrap());
    for n in 0..ROWS / 4 {
        store.apply(ts(u64::from(n) + 1), &[(key(n), Some(Bytes::from(vec![3; VALUE_BYTES])))]);
    }
    let start = Instant::now();
    let threads: Vec<_> = (0..2)
        .map(|t| {
            let store = store.clone();
            std::thread::spawn(move || {
                for n in 0..ROWS {
                    drop(black_box(store.get(&key(mixed(n + t) % (ROWS / 4)), ts(1 << 40))));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    println!("get, row cache, two threads {:>39.0} ns", start.elapsed().as_nanos() as f64 / f64::from(ROWS));
}

fn main() {
    let base = std::env::temp_dir().join(format!("timeball-store-bench-{}", std::process::id()));
    versions(&base.join("versions"));
    threads_get(&base.join("threads"));
    for writers in [1, 8, 64] {
        group_commit(&base.join(format!("log-{writers}")), writers, false);
        group_commit(&base.join(format!("log-{writers}")), writers, true);
    }
    let _ = std::fs::remove_dir_all(&base);
}

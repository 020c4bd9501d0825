//! Point reads and single-row updates straight at the key-value layer, without SQL: `cargo run --release -p timeball-server
//! --example kv_bench -- [DIR] [SECONDS]`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use bytes::Bytes;
use clocksource::Clock;
use server::kv::{KvNode, KvOptions};
use sql::Kv;
use sql::transaction::{BeginOptions, LockWait};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::{Engine, FjallEngine, FjallOptions, Versions, VersionsConfig};

const KEYS: u64 = 1_000_000;

fn key(i: u64) -> Bytes {
    let mut key = vec![0, 0, 0, 9];
    key.extend_from_slice(&i.to_be_bytes());
    Bytes::from(key)
}

fn read(kv: &dyn Kv, i: u64) {
    let mut txn = kv.begin(&BeginOptions::default()).unwrap();
    assert!(txn.get(&key(i)).unwrap().is_some());
    txn.commit().unwrap();
}

fn update(kv: &dyn Kv, i: u64) {
    let mut txn = kv.begin(&BeginOptions::default()).unwrap();
    let key = key(i);
    txn.lock(&key, LockWait::Wait).unwrap();
    let old = txn.get(&key).unwrap().unwrap();
    let mut new = old.to_vec();
    new[0] = new[0].wrapping_add(1);
    txn.put(key, new.into()).unwrap();
    txn.commit().unwrap();
}

fn cpu_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only to `t`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn run(name: &str, kv: &Arc<dyn Kv>, threads: u64, keys: u64, seconds: f64, f: fn(&dyn Kv, u64)) {
    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let cpu = cpu_ns();
    let began = Instant::now();
    let workers: Vec<_> = (0..threads)
        .map(|t| {
            let (kv, stop, count) = (kv.clone(), stop.clone(), count.clone());
            std::thread::spawn(move || {
                let mut x = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(t + 1);
                let mut done = 0;
                while !stop.load(Relaxed) {
                    x ^= x << 13;
                    x ^= x >> 7;
                    x ^= x << 17;
                    f(&*kv, x % keys);
                    done += 1;
                }
                count.fetch_add(done, Relaxed);
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    stop.store(true, Relaxed);
    workers.into_iter().for_each(|w| w.join().unwrap());
    let done = count.load(Relaxed) as f64;
    let per_s = done / began.elapsed().as_secs_f64();
    println!(
        "{name:22} {threads:3} threads {per_s:10.0}/s  {:7.2} us CPU each",
        (cpu_ns() - cpu) as f64 / 1000.0 / done
    );
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let seconds = args.get(2).map_or(2.0, |s| s.parse().unwrap());
    let clock = Clock::open(&"same-host".parse().unwrap()).unwrap();
    match args.get(1).map(String::as_str) {
        None | Some("-") => measure(KvNode::in_memory(clock, KvOptions::default()).unwrap(), seconds),
        Some(dir) => {
            let dir = std::path::Path::new(dir);
            std::fs::create_dir_all(dir).unwrap();
            let engine = FjallEngine::open(&dir.join("engine"), FjallOptions::default()).unwrap();
            let versions = Versions::open(engine, VersionsConfig::default()).unwrap();
            measure(KvNode::with_log_in(&dir.join("log"), versions, clock, KvOptions::default()).unwrap(), seconds);
        }
    }
}

fn measure<E: Engine>(node: Arc<KvNode<E>>, seconds: f64) {
    let kv: Arc<dyn Kv> = node.clone();
    let mut txn = kv.begin(&BeginOptions::default()).unwrap();
    for i in 0..KEYS {
        txn.put(key(i), Bytes::from(vec![7u8; 100])).unwrap();
    }
    let began = Instant::now();
    txn.commit().unwrap();
    println!("load of {KEYS} rows in one commit: {:?}", began.elapsed());
    for threads in [1, 8, 16, 64] {
        run("read", &kv, threads, KEYS, seconds, read);
        run("update", &kv, threads, KEYS, seconds, update);
        run("update, 10 hot rows", &kv, threads, 10, seconds, update);
    }
    node.shutdown();
}

//! What reads cost right behind many updates: `cargo bench -p timeball-store --bench updated`.
#![allow(clippy::disallowed_methods, reason = "a bench measures real time with real threads")]
#![allow(missing_docs)]

use bytes::Bytes;
use clock::Timestamp;
use std::hint::black_box;
use std::time::Instant;
use store::{FjallEngine, FjallOptions, Versions, VersionsConfig};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROWS: u32 = 80_000;
const VALUE_BYTES: usize = 195;
const BATCH: u32 = 4_000;

fn key(n: u32) -> Bytes {
    let mut key = vec![0, 0, 0, 100, 0x80, 0, 0, 0];
    key.extend_from_slice(&n.to_be_bytes());
    Bytes::from(key)
}

fn mixed(n: u32) -> u32 {
    ((u64::from(n.wrapping_mul(2_654_435_761)) * u64::from(ROWS)) >> 32) as u32
}

struct Bench {
    store: Versions<FjallEngine>,
    now: u64,
    picked: u32,
}

impl Bench {
    fn put(&mut self, n: u32) {
        self.now += 1 << 20;
        let value = Bytes::from(vec![(self.now % 251) as u8; VALUE_BYTES]);
        self.store.apply(Timestamp::from_u64(self.now), &[(key(n), Some(value))]);
    }
    fn reads(&mut self, what: &str) {
        for rows in [1, 10, 100] {
            let begun = Instant::now();
            for _ in 0..BATCH {
                self.picked += 1;
                let from = mixed(self.picked);
                let span = key(from)..key(from + rows);
                drop(black_box(self.store.scan(&span, Timestamp::from_u64(self.now), false, 256)));
            }
            let scan = begun.elapsed().as_nanos() / u128::from(BATCH);
            let begun = Instant::now();
            for _ in 0..BATCH {
                self.picked += 1;
                let from = mixed(self.picked);
                drop(black_box(self.store.get(&key(from), Timestamp::from_u64(self.now))));
            }
            print!("  scan of {rows}: {scan} ns, get {}", begun.elapsed().as_nanos() / u128::from(BATCH));
        }
        let begun = Instant::now();
        for n in 0..BATCH {
            self.put(mixed(n.wrapping_mul(11) ^ 0x77));
        }
        print!("  put {} ns", begun.elapsed().as_nanos() / u128::from(BATCH));
        println!(
            "  | {what}: overlay {} KiB, cache {} KiB",
            self.store.overlay_bytes() >> 10,
            self.store.cache_bytes() >> 10
        );
    }
}

fn main() {
    let dir = std::env::temp_dir().join(format!("timeball-updated-{}", std::process::id()));
    let engine = FjallEngine::open(&dir, FjallOptions::default()).unwrap();
    let store = Versions::open(engine, VersionsConfig::default()).unwrap();
    let mut bench = Bench { store, now: 1 << 50, picked: 0 };
    (0..ROWS).for_each(|n| bench.put(n));
    bench.reads("fresh");
    bench.reads("fresh");
    let updates: u32 = std::env::args().find_map(|a| a.parse().ok()).unwrap_or(600_000);
    for n in 0..updates {
        bench.put(mixed(n.wrapping_mul(7) ^ 0x55));
        if bench.store.overlay_bytes() > (64 << 20) {
            bench.store.freeze(u64::from(n) + 1, Bytes::new());
            bench.store.flush().unwrap();
        }
    }
    for _ in 0..5 {
        bench.reads("after updates");
    }
    bench.store.freeze(u64::from(updates) + 1, Bytes::new());
    bench.store.flush().unwrap();
    for _ in 0..3 {
        bench.reads("flushed");
    }
    let _ = std::fs::remove_dir_all(&dir);
}

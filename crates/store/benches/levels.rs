//! What a read costs below the row cache while a load of random keys runs, and after it: `cargo bench -p timeball-store
//! --bench levels [layers]`. Layers are made as cheaply as can be, so that the load outruns the engine's merging.
#![allow(clippy::disallowed_methods, reason = "a bench measures real time with real threads")]
#![allow(missing_docs)]

use bytes::Bytes;
use clock::Timestamp;
use std::hint::black_box;
use std::time::{Duration, Instant};
use store::versions::FROZEN_LAYERS_MAX;
use store::{Engine, FjallEngine, FjallOptions, Versions, VersionsConfig};

/// Layers of the load, each of [`ROWS`] random keys, unless the command line says otherwise.
const LAYERS: u64 = 40;
const VALUE_BYTES: usize = 110;
/// About what makes a layer of 64 MiB.
const ROWS: u64 = 272_000;
/// Reads of one kind during the load come after so many layers.
const READS_EVERY: u64 = 4;
/// Reads of one kind in a row.
const READS: u64 = 1000;
/// Looks without a change after which the engine counts as quiet: longer than one merge, of which nothing is seen before its end.
const QUIET_LOOKS: u32 = 200;
/// How often the server's maintenance thread looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A fixed walk without order, one to one.
fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn key(n: u64) -> Bytes {
    let mut key = vec![0, 0, 0, 100];
    key.extend_from_slice(&mix(n).to_be_bytes());
    Bytes::from(key)
}

fn value(n: u64) -> Bytes {
    let mut value: Vec<u8> = (0..7).flat_map(|i| mix(n * 8 + i).to_be_bytes()).collect();
    value.resize(VALUE_BYTES, 3);
    Bytes::from(value)
}

/// Nanoseconds of reads, by kind.
#[derive(Default)]
struct Reads {
    existing: Vec<u64>,
    missing: Vec<u64>,
}

impl Reads {
    /// Reads rows that the engine holds, and others that nobody wrote.
    fn take(&mut self, store: &Versions<FjallEngine>, times: u64, seed: u64) {
        let rows = store.flushed_position();
        for i in 0..times {
            let n = mix((seed << 32) + i);
            for (n, times) in [(n % rows, &mut self.existing), (n | 1 << 63, &mut self.missing)] {
                let key = key(n);
                let start = Instant::now();
                let found = black_box(store.get(&key, Timestamp::MAX).unwrap());
                times.push(u64::try_from(start.elapsed().as_nanos()).unwrap());
                assert_eq!(found.is_some(), n < rows);
            }
        }
    }

    fn print(&mut self, when: &str) {
        for (what, times) in [("existing", &mut self.existing), ("missing", &mut self.missing)] {
            times.sort_unstable();
            let at = |percent: usize| times[(times.len() - 1) * percent / 100] as f64 / 1e3;
            println!("{when}, {what:<8} median {:>6.1} us, p90 {:>6.1} us, p99 {:>7.1} us", at(50), at(90), at(99));
        }
    }
}

/// What a load did.
#[derive(Default)]
struct Load {
    layers: u64,
    runs_max: usize,
    waited: Duration,
    busy: Duration,
}

impl Load {
    fn flush(&mut self, store: &Versions<FjallEngine>) {
        while store.flush().unwrap() {
            self.runs_max = self.runs_max.max(store.engine().unmerged_runs());
        }
    }

    /// Applies a layer of rows and flushes what the engine takes; waits where the server would hold writers back.
    fn layer(&mut self, store: &Versions<FjallEngine>) {
        let start = Instant::now();
        let first = self.layers * ROWS;
        let mut rows: Vec<(Bytes, u64)> = (first..first + ROWS).map(|n| (key(n), n)).collect();
        rows.sort_unstable();
        for (key, n) in rows {
            store.apply(Timestamp::from_u64(n + 1), &[(key, Some(value(n)))]);
        }
        store.freeze(first + ROWS, Bytes::new());
        self.layers += 1;
        self.flush(store);
        let full = Instant::now();
        while store.frozen_layers() >= FROZEN_LAYERS_MAX {
            std::thread::sleep(LOOK_EVERY);
            self.flush(store);
        }
        self.waited += full.elapsed();
        self.busy += start.elapsed();
    }
}

/// Until the engine has nothing to merge any more; gives the bytes it holds then.
fn wait_until_quiet(store: &Versions<FjallEngine>) -> u64 {
    let (mut bytes, mut quiet) = (0, 0);
    while quiet < QUIET_LOOKS {
        std::thread::sleep(LOOK_EVERY);
        while store.flush().unwrap() {}
        let now = store.engine().disk_bytes();
        quiet = if now == bytes && store.frozen_layers() == 0 { quiet + 1 } else { 0 };
        bytes = now;
    }
    bytes
}

fn main() {
    let layers = std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(LAYERS);
    let dir = std::env::temp_dir().join(format!("timeball-levels-bench-{}", std::process::id()));
    let config = VersionsConfig { cache_bytes: 0, ..VersionsConfig::default() };
    let opened = Versions::open(FjallEngine::open(&dir, FjallOptions::default()).unwrap(), config).unwrap();
    let store = &opened;
    let (mut load, mut during) = (Load::default(), Reads::default());
    for layer in 1..=layers {
        load.layer(store);
        if layer % READS_EVERY == 0 {
            during.take(store, READS, layer);
        }
    }
    let (seconds, waited) = (load.busy.as_secs_f64(), load.waited.as_secs_f64());
    println!("load: {layers} layers in {seconds:.1} s, {:.0} rows/s", (layers * ROWS) as f64 / seconds);
    println!("unmerged runs: {} at most; the writer was held back for {waited:.1} s", load.runs_max);
    during.print("during the load");
    let mut reads = Reads::default();
    reads.take(store, 5 * READS, 1 << 30);
    reads.print("at its end     ");
    let start = Instant::now();
    let mib = wait_until_quiet(store) >> 20;
    let (runs, seconds) = (store.engine().unmerged_runs(), start.elapsed().as_secs_f64());
    println!("quiet after {seconds:.0} s: {runs} runs unmerged, {mib} MiB");
    let mut reads = Reads::default();
    reads.take(store, 5 * READS, 1 << 31);
    reads.print("once quiet     ");
    drop(opened);
    let _ = std::fs::remove_dir_all(&dir);
}

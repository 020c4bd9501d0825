//! What large rows take of memory on their way to the engine and in it: counted in bytes that were allocated and not freed.

use bytes::Bytes;
use clock::Timestamp;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use store::{FjallEngine, FjallOptions, Versions, VersionsConfig};

/// The system's, which counts.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all goes to the system's as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROW_BYTES: usize = 1 << 20;
const ROWS: u32 = 96;
/// Rows of one chunk.
const CHUNK: u32 = 2;
/// Rows of which something may be in memory at once, whatever their number: the chunk, an entry of it, its block before and after compression, and
/// of a merge one entry and one block of each run, and the same on its way out.
const ROWS_HELD_MAX: usize = 40;
/// Of the cache of blocks, filters, and all that is small.
const REST_BYTES: usize = 4 << 20;

fn ts(n: u64) -> Timestamp {
    Timestamp::from_u64(n)
}

fn key(n: u32) -> Bytes {
    Bytes::copy_from_slice(&[&[0, 0, 0, 7][..], &n.to_be_bytes()].concat())
}

/// A row that cannot be made smaller.
fn row(n: u32) -> (Bytes, Bytes) {
    let mut state = u64::from(n) + 1;
    let mut value = Vec::with_capacity(ROW_BYTES);
    while value.len() < ROW_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        value.extend_from_slice(&state.to_le_bytes());
    }
    (key(n), Bytes::from(value))
}

fn peak_of<R>(step: impl FnOnce() -> R) -> (R, usize) {
    let before = HELD.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = step();
    (result, PEAK.load(Relaxed).saturating_sub(before))
}

#[test]
fn large_rows_are_held_a_few_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let engine = FjallEngine::open(dir.path(), FjallOptions { cache_bytes: 1 << 20 }).unwrap();
    let versions =
        Versions::open(engine, VersionsConfig { cache_bytes: 64 << 20, ..VersionsConfig::default() }).unwrap();
    let bytes_max = ROWS_HELD_MAX * ROW_BYTES + REST_BYTES;
    let ((), peak) = peak_of(|| {
        for from in (0..ROWS).step_by(CHUNK as usize) {
            let rows: Vec<_> = (from..from + CHUNK).map(row).collect();
            while !versions.load(ts(5), &rows).unwrap() {
                std::thread::yield_now();
            }
        }
    });
    assert!(peak <= bytes_max, "loading held {peak} bytes");
    let (looks, peak) = peak_of(|| (0..ROWS).take_while(|_| versions.warm_loaded(20_000).unwrap()).count());
    assert!(peak <= bytes_max && versions.cache_bytes() <= 64 << 20, "warming held {peak} bytes in {looks} looks");
    let (rows, peak) = peak_of(|| {
        let (mut rows, mut rest) = (0, Some(key(0)..key(ROWS)));
        while let Some(span) = rest {
            let chunk = versions.scan(&span, ts(9), false, 4096).unwrap();
            (rows, rest) = (rows + chunk.rows.len(), chunk.rest);
        }
        rows
    });
    assert_eq!(rows, ROWS as usize);
    assert!(peak <= bytes_max, "a scan held {peak} bytes");
}

//! The blocking shell on a real log: many threads, a restart.

// A shell's test: it runs threads.
#![allow(clippy::disallowed_methods)]

use bytes::Bytes;
use clocksource::{Clock, ClockSource};
use server::kv::{KvNode, KvOptions, RecordLog};
use server::memory::{Allocator, Memory, Shares};
use sql::transaction::{Admin, BeginOptions, Consistency, Isolation, LockWait, ScanRequest};
use sql::{Kv, KvError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use store::{MemoryEngine, Versions, VersionsConfig};

/// Strict commits until one has waited: each takes up to twice the bound of 5 ms.
const STRICT_TRIES: usize = 1000;
/// Looks, a hundredth of a second apart, until what is shown is in its place: fewer than a layer would be closed after.
const PLACED_LOOKS: usize = 6000;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("timeball-kv-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Dir(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn clock(spec: &str) -> Arc<dyn ClockSource> {
    Clock::open(&spec.parse().unwrap()).unwrap()
}

fn open(dir: &Path) -> Arc<KvNode<MemoryEngine>> {
    let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
    KvNode::with_log_in(dir, versions, clock("same-host"), KvOptions::default()).unwrap()
}

fn key(i: u64) -> Bytes {
    Bytes::from([&[0, 0, 0, 7][..], &i.to_be_bytes()].concat())
}

fn number(value: Option<Bytes>) -> u64 {
    value.map_or(0, |v| u64::from_be_bytes(v[..8].try_into().unwrap()))
}

fn add(kv: &dyn Kv, i: u64, more: u64) -> Result<(), KvError> {
    let mut txn = kv.begin(&BeginOptions::default())?;
    txn.lock(&key(i), LockWait::Wait)?;
    let old = number(txn.get(&key(i))?);
    txn.put(key(i), Bytes::copy_from_slice(&(old + more).to_be_bytes()))?;
    txn.commit().map(drop)
}

fn sum(kv: &dyn Kv) -> u64 {
    let mut txn = kv.begin(&BeginOptions::default()).unwrap();
    let mut rest = Some(key(0)..key(u64::MAX));
    let mut sum = 0;
    while let Some(span) = rest {
        let chunk = txn.scan(&ScanRequest { span, reverse: false, limit: 3 }).unwrap();
        sum += chunk.rows.into_iter().map(|(_, v)| number(Some(v))).sum::<u64>();
        rest = chunk.rest;
    }
    sum
}

#[test]
fn hot_rows_queue_without_a_single_restart_and_survive() {
    let dir = Dir::new("hot");
    let kv = open(&dir.0);
    let workers: Vec<_> = (0..16u64)
        .map(|t| {
            let kv = kv.clone();
            std::thread::spawn(move || (0..50).for_each(|i| add(&*kv, (t + i) % 10, 1).unwrap()))
        })
        .collect();
    workers.into_iter().for_each(|w| w.join().unwrap());
    assert_eq!(sum(&*kv), 16 * 50);
    drop(kv);
    let kv = open(&dir.0);
    assert_eq!(sum(&*kv), 16 * 50);
}

/// Takes the first row of a queue that nobody holds, as `ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED` and a DELETE do; `None`: no row.
fn take(kv: &dyn Kv, isolation: Isolation) -> Result<Option<u64>, KvError> {
    let mut txn = kv.begin(&BeginOptions { isolation, ..BeginOptions::default() })?;
    let (mut rest, mut limit) = (Some(key(0)..key(u64::MAX)), 1);
    while let Some(span) = rest {
        let chunk = txn.peek_scan(&ScanRequest { span, reverse: false, limit })?;
        for (found, _) in chunk.rows {
            if txn.lock(&found, LockWait::Skip)? && txn.get(&found)?.is_some() {
                txn.delete(found.clone())?;
                txn.commit()?;
                return Ok(Some(u64::from_be_bytes(found[4..12].try_into().unwrap())));
            }
        }
        (rest, limit) = (chunk.rest, limit * 2);
    }
    txn.commit().map(|_| None)
}

/// Workers that skip what others hold never meet 40001, at any level, and each row is taken once; rows come in meanwhile.
#[test]
fn a_queue_gives_each_row_once_and_no_restart() {
    const ROWS: u64 = 100;
    for isolation in [Isolation::Serializable, Isolation::RepeatableRead, Isolation::ReadCommitted] {
        let dir = Dir::new("queue");
        let kv = open(&dir.0);
        let writer = kv.clone();
        let inserter = std::thread::spawn(move || {
            for i in 0..ROWS {
                let mut txn = writer.begin(&BeginOptions { isolation, ..BeginOptions::default() }).unwrap();
                txn.put(key(i), Bytes::from_static(b"job")).unwrap();
                txn.commit().unwrap();
            }
        });
        let left = Arc::new(std::sync::atomic::AtomicU64::new(ROWS));
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let (kv, left) = (kv.clone(), left.clone());
                std::thread::spawn(move || {
                    let mut taken = Vec::new();
                    while left.load(SeqCst) > 0 {
                        if let Some(row) = take(&*kv, isolation).unwrap() {
                            taken.push(row);
                            left.fetch_sub(1, SeqCst);
                        }
                    }
                    taken
                })
            })
            .collect();
        inserter.join().unwrap();
        let mut taken: Vec<u64> = workers.into_iter().flat_map(|w| w.join().unwrap()).collect();
        taken.sort_unstable();
        assert_eq!(taken, (0..ROWS).collect::<Vec<_>>(), "{isolation:?}");
        assert_eq!(kv.node().counters().txn_certification_failures.get(), 0, "{isolation:?}");
    }
}

/// Moves money between two rows of different ranges; retries conflicts, as the SQL layer does.
fn transfer(kv: &dyn Kv, from: u64, to: u64) {
    let attempt = || {
        let mut txn = kv.begin(&BeginOptions::default())?;
        for i in [from.min(to), from.max(to)] {
            txn.lock(&key(i), LockWait::Wait)?;
        }
        let a = number(txn.get(&key(from))?);
        txn.put(key(from), Bytes::copy_from_slice(&a.wrapping_sub(1).to_be_bytes()))?;
        let b = number(txn.get(&key(to))?);
        txn.put(key(to), Bytes::copy_from_slice(&b.wrapping_add(1).to_be_bytes()))?;
        txn.commit().map(drop)
    };
    loop {
        match attempt() {
            Ok(()) => return,
            Err(e) if e.retry() => {}
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn transfers_across_ranges_keep_the_total_while_ranges_split() {
    let dir = Dir::new("bank");
    let kv = open(&dir.0);
    (0..10).for_each(|i| add(&*kv, i, 1000).unwrap());
    let workers: Vec<_> = (0..8u64)
        .map(|t| {
            let kv = kv.clone();
            std::thread::spawn(move || {
                for i in 0..40 {
                    transfer(&*kv, (t + i) % 10, (t + 3 * i + 1) % 10);
                    if i % 10 == 0 {
                        assert_eq!(sum(&*kv), 10_000, "a snapshot is never torn");
                    }
                }
            })
        })
        .collect();
    for i in [5, 3, 8] {
        kv.admin(Admin::Split(key(i))).unwrap();
    }
    workers.into_iter().for_each(|w| w.join().unwrap());
    assert_eq!(sum(&*kv), 10_000);
    assert!(kv.node().counters().txn_commits_multirange.get() > 0);
    drop(kv);
    let kv = open(&dir.0);
    assert_eq!(sum(&*kv), 10_000);
    assert_eq!(kv.internal_table("ranges").unwrap().1.len(), 4);
}

#[test]
fn a_strict_commit_waits_for_the_bound_and_counts_it() {
    let kv = KvNode::in_memory(clock("static:5ms"), KvOptions::default()).unwrap();
    let commit = |consistency| {
        let mut txn = kv.begin(&BeginOptions { consistency, ..BeginOptions::default() }).unwrap();
        txn.put(key(1), Bytes::from_static(&[0; 8])).unwrap();
        txn.commit().unwrap();
        txn.stats().commit_wait_ns
    };
    assert_eq!(commit(Consistency::Hybrid), 0);
    // A thread that the machine put aside for longer than the bound finds its timestamp past already: the next one waits.
    assert!((0..STRICT_TRIES).any(|_| commit(Consistency::Strict) > 0), "no strict commit waited");
    assert_eq!(kv.node().counters().txn_commit_waits.get(), 1);
}

#[test]
fn an_interrupt_and_a_timeout_end_a_lock_wait() {
    let kv = KvNode::in_memory(clock("same-host"), KvOptions::default()).unwrap();
    let mut holder = kv.begin(&BeginOptions::default()).unwrap();
    assert!(holder.lock(&key(1), LockWait::Wait).unwrap());
    let options = BeginOptions::default();
    let mut waiter = kv.begin(&options).unwrap();
    // It was set since: `SET LOCAL lock_timeout` in a block.
    options.lock_timeout.set_ms(1);
    let refused = |e, waited| e == Err(KvError::LockNotAvailable { key: Some(key(1)), waited });
    assert!(refused(waiter.lock(&key(1), LockWait::Wait), true));
    assert!(refused(waiter.lock(&key(1), LockWait::NoWait), false));
    assert_eq!(waiter.lock(&key(1), LockWait::Skip), Ok(false));
    let options = BeginOptions::default();
    options.interrupt.raise();
    let mut waiter = kv.begin(&options).unwrap();
    assert_eq!(waiter.lock(&key(1), LockWait::Wait), Err(KvError::Interrupted));
    holder.rollback();
    options.interrupt.clear();
    assert_eq!(waiter.lock(&key(1), LockWait::Wait), Ok(true));
}

/// What transactions write counts with the memory of all statements, until they have ended.
#[test]
fn writes_take_no_more_memory_than_there_is() {
    const MIB: usize = 1 << 20;
    // A write counts twice: as it waits, and in the log's record. The last quarter is for those who hold little.
    let shares = Shares { queries_bytes: 8 * MIB, ..Shares::default() };
    let options = KvOptions { memory: Memory::new(shares, Allocator::default()), ..KvOptions::default() };
    let kv = KvNode::in_memory(clock("same-host"), options).unwrap();
    let fill = |bytes: usize| {
        let mut txn = kv.begin(&BeginOptions::default()).unwrap();
        let value = Bytes::from(vec![7; 1000]);
        let result = (0..bytes as u64 / 1000).try_for_each(|i| txn.put(key(i), value.clone()));
        (txn, result)
    };
    let (first, result) = fill(2 * MIB);
    result.unwrap();
    let (_second, result) = fill(3 * MIB);
    assert!(matches!(result, Err(KvError::OutOfMemory { limit, .. }) if limit == 8 * MIB), "{result:?}");
    drop((first, _second));
    let (mut third, result) = fill(5 * MIB / 2);
    result.unwrap();
    third.commit().unwrap();
    drop(third);
    fill(5 * MIB / 2).1.unwrap();
}

/// A log that counts the bytes for which room was made, and how often.
#[derive(Clone, Default)]
struct Roomy(Arc<[AtomicUsize; 2]>);

impl RecordLog for Roomy {
    fn append(&self, _first: u64, _records: Vec<Bytes>) -> Result<(), node::AppendError> {
        Ok(())
    }
    fn truncate(&self, _applied: u64) -> Result<(), String> {
        Ok(())
    }
    fn prepare(&self) -> Result<(), String> {
        Ok(())
    }
    fn make_room(&self, bytes: usize) {
        self.0[0].fetch_add(1, SeqCst);
        self.0[1].fetch_add(bytes, SeqCst);
    }
    fn segments(&self) -> usize {
        1
    }
}

#[test]
fn room_in_the_log_is_made_before_a_large_commit() {
    let log = Roomy::default();
    let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
    let kept = log.clone();
    let kv = KvNode::start(versions, clock("same-host"), KvOptions::default(), |_| Ok(Box::new(kept))).unwrap();
    for (rows, times) in [(10, 0), (1000, 1)] {
        let mut txn = kv.begin(&BeginOptions::default()).unwrap();
        (0..rows).for_each(|i| txn.put(key(i), Bytes::from(vec![7; 1000])).unwrap());
        txn.commit().unwrap();
        assert_eq!(log.0[0].load(SeqCst), times);
    }
    assert!(log.0[1].load(SeqCst) >= 1_000_000);
}

/// Nobody waits for it any more, and a layer is not due for two minutes: it is put in its place all the same.
#[test]
fn what_is_shown_is_placed_though_nobody_waits_for_it() {
    let kv = KvNode::in_memory(clock("same-host"), KvOptions::default()).unwrap();
    // The first time a layer may be closed, too: that is done right after the start.
    for i in 0..2 {
        let mut txn = kv.begin(&BeginOptions::default()).unwrap();
        txn.put(key(0), Bytes::from_static(&[0; 8])).unwrap();
        let at = txn.commit().unwrap().timestamp;
        let versions = kv.node().versions();
        versions.show(at, Arc::new(vec![(key(1), Some(Bytes::from(vec![i; 8])))]));
        assert_eq!(versions.get(&key(1), at).unwrap(), Some((at, Bytes::from(vec![i; 8]))));
        let mut looks = 0..PLACED_LOOKS;
        assert!(looks.any(|_| {
            std::thread::park_timeout(std::time::Duration::from_millis(10));
            !versions.place(0)
        }));
        assert_eq!(versions.get(&key(1), at).unwrap(), Some((at, Bytes::from(vec![i; 8]))));
    }
}

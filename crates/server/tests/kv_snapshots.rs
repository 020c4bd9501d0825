//! Snapshots under concurrent writers, on threads: pairs that are written together are never read apart.

// A shell's test: it runs threads.
#![allow(clippy::disallowed_methods)]

use bytes::Bytes;
use clock::Timestamp;
use clocksource::Clock;
use node::{AppendError, NodeOptions};
use parking_lot::Mutex;
use server::kv::{KvNode, KvOptions, MemoryLog, RecordLog};
use sql::transaction::{Admin, BeginOptions, Consistency, Patience, Retentions, ScanRequest};
use sql::{Kv, KvError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use store::{MemoryEngine, Versions, VersionsConfig};

/// Attempts to open a snapshot before it is collected, which happens about once a second.
const PAST_TRIES: usize = 1000;

fn key(i: u64) -> Bytes {
    Bytes::from([&[0, 0, 0, 7][..], &i.to_be_bytes()].concat())
}

fn start(alone: bool, clock: &str, gc_ttl_seconds: u64, log: impl RecordLog) -> Arc<KvNode<MemoryEngine>> {
    let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
    let clock = Clock::open(&clock.parse().unwrap()).unwrap();
    let node = NodeOptions { alone, ..NodeOptions::default() };
    let options = KvOptions { node, gc_ttl_seconds, ..KvOptions::default() };
    KvNode::start(versions, clock, options, move |_| Ok(Box::new(log))).unwrap()
}

/// Four writers write one number to both keys of a pair; readers want to see the same number twice. Gives how often they did not.
fn torn_reads(kv: &Arc<KvNode<MemoryEngine>>, consistency: Consistency, rounds: u64) -> usize {
    const PAIRS: u64 = 3;
    let stop = Arc::new(AtomicBool::new(false));
    let torn = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..4u64)
        .map(|t| {
            let (kv, stop) = (kv.clone(), stop.clone());
            std::thread::spawn(move || {
                for n in 0..rounds {
                    let pair = (t + n) % PAIRS;
                    let value = Bytes::copy_from_slice(&(t << 32 | n).to_be_bytes());
                    let mut txn = kv.begin(&BeginOptions::default()).unwrap();
                    txn.put(key(pair), value.clone()).unwrap();
                    txn.put(key(100 + pair), value).unwrap();
                    match txn.commit() {
                        Ok(_) | Err(KvError::Restart { .. }) => {}
                        Err(e) => panic!("{e}"),
                    }
                }
                stop.store(true, SeqCst);
            })
        })
        .collect();
    let readers: Vec<_> = (0..3u64)
        .map(|t| {
            let (kv, stop, torn) = (kv.clone(), stop.clone(), torn.clone());
            std::thread::spawn(move || {
                let mut pair = t;
                while !stop.load(SeqCst) {
                    pair = (pair + 1) % PAIRS;
                    let options = BeginOptions { consistency, read_only: t == 0, ..BeginOptions::default() };
                    let mut txn = kv.begin(&options).unwrap();
                    let mut get = |k: u64| txn.get(&key(k));
                    match (get(pair), get(100 + pair)) {
                        (Ok(a), Ok(b)) => drop(torn.fetch_add(usize::from(a != b), SeqCst)),
                        (Err(KvError::Restart { .. }), _) | (_, Err(KvError::Restart { .. })) => {}
                        (a, b) => panic!("{a:?} {b:?}"),
                    }
                }
            })
        })
        .collect();
    writers.into_iter().chain(readers).for_each(|t| t.join().unwrap());
    torn.load(SeqCst)
}

#[test]
fn pairs_are_never_torn_in_one_range_or_two() {
    for alone in [true, false] {
        for split in [false, true] {
            let kv = start(alone, "static:100us", 600, MemoryLog { sync_us: 20 });
            if split {
                kv.admin(Admin::Split(key(50))).unwrap();
            }
            for consistency in [Consistency::Strict, Consistency::Hybrid, Consistency::Token, Consistency::None] {
                assert_eq!(torn_reads(&kv, consistency, 150), 0, "alone {alone}, split {split}, {consistency:?}");
            }
        }
    }
}

/// A log whose disk fills up and is freed.
#[derive(Clone, Default)]
struct Fickle(Arc<Mutex<Option<AppendError>>>);

impl RecordLog for Fickle {
    fn append(&self, _first: u64, _records: Vec<Bytes>) -> Result<(), AppendError> {
        self.0.lock().map_or(Ok(()), Err)
    }
    fn truncate(&self, _applied: u64) -> Result<(), String> {
        Ok(())
    }
    fn prepare(&self) -> Result<(), String> {
        Ok(())
    }
    fn segments(&self) -> usize {
        1
    }
}

fn put(kv: &dyn Kv, keys: &[u64], value: &'static str) -> Result<clock::Timestamp, KvError> {
    let mut txn = kv.begin(&BeginOptions::default())?;
    for k in keys {
        txn.put(key(*k), Bytes::from_static(value.as_bytes()))?;
    }
    txn.commit().map(|c| c.timestamp)
}

fn get(kv: &dyn Kv, k: u64) -> Option<Bytes> {
    kv.begin(&BeginOptions::default()).unwrap().get(&key(k)).unwrap()
}

#[test]
fn a_full_disk_refuses_writes_until_space_returns() {
    let log = Fickle::default();
    let kv = start(true, "same-host", 600, log.clone());
    kv.admin(Admin::Split(key(50))).unwrap();
    put(&*kv, &[1, 60], "old").unwrap();
    *log.0.lock() = Some(AppendError::Full);
    assert_eq!(put(&*kv, &[1], "new"), Err(KvError::DiskFull));
    assert_eq!(put(&*kv, &[1, 60], "new"), Err(KvError::DiskFull));
    assert_eq!(get(&*kv, 1), Some(Bytes::from_static(b"old")));
    *log.0.lock() = None;
    put(&*kv, &[1, 60], "newer").unwrap();
    assert_eq!(get(&*kv, 60), Some(Bytes::from_static(b"newer")));
    *log.0.lock() = Some(AppendError::Broken);
    assert!(matches!(put(&*kv, &[1], "lost"), Err(KvError::Storage(_))));
    *log.0.lock() = None;
    assert!(put(&*kv, &[1], "refused").is_err(), "a broken log takes nothing until a restart");
    assert_eq!(get(&*kv, 1), Some(Bytes::from_static(b"newer")), "reads go on");
}

/// Who is refused because storage failed hears that, and not of a stop that nobody asked for.
#[test]
fn a_node_that_failed_says_what_failed() {
    let kv = start(true, "same-host", 600, MemoryLog::default());
    put(&*kv, &[1], "old").unwrap();
    kv.node().versions().engine().fail_syncs(u32::MAX);
    let failed = kv.load(&[(key(2), Bytes::from_static(b"loaded"))], &Patience::default());
    assert!(matches!(failed, Err(KvError::Storage(_))), "{failed:?}");
    let Err(KvError::Storage(why)) = put(&*kv, &[1], "refused") else { panic!("it is closed") };
    assert!(why.starts_with("no write is taken until the node is restarted: "), "{why}");
    assert_eq!(get(&*kv, 1), Some(Bytes::from_static(b"old")), "reads go on");
    kv.node().versions().engine().fail_syncs(0);
}

#[test]
fn the_past_is_readable_until_it_is_collected() {
    let kv = start(true, "same-host", 0, MemoryLog::default());
    let past = |at| BeginOptions { as_of: Some(at), ..BeginOptions::default() };
    // The background thread collects from the first second on, and may come between.
    let in_time = || {
        let first = put(&*kv, &[1], "first").unwrap();
        let second = put(&*kv, &[1], "second").unwrap();
        match kv.begin(&past(first)) {
            Ok(open) => Some((first, second, open)),
            Err(KvError::SnapshotUnavailable { .. }) => None,
            Err(e) => panic!("{e}"),
        }
    };
    let (first, second, mut open) = (0..PAST_TRIES).find_map(|_| in_time()).expect("it was always collected before");
    assert_eq!(open.get(&key(1)).unwrap(), Some(Bytes::from_static(b"first")));
    assert!(matches!(open.put(key(1), Bytes::new()), Err(KvError::ReadOnly)));
    drop(open);
    // With a window of nothing the background thread collects at once; its progress is what is waited for.
    while kv.node().versions().collected() < second {
        put(&*kv, &[2], "later").unwrap();
        std::thread::yield_now();
    }
    assert!(matches!(kv.begin(&past(first)), Err(KvError::SnapshotUnavailable { .. })));
    assert_eq!(get(&*kv, 1), Some(Bytes::from_static(b"second")));
}

/// One index is kept for an hour, while of all others nothing is: of these the past is refused, by name, and of that one it is there.
#[test]
fn an_index_is_kept_for_its_own_time() {
    const KEPT: u32 = 8;
    let kv = start(true, "same-host", 0, MemoryLog::default());
    let kept = |i: u64| Bytes::from([&KEPT.to_be_bytes()[..], &i.to_be_bytes()].concat());
    kv.keep(Retentions { indexes: vec![(KEPT, 3600)], shared: vec![1] });
    // What is told goes through the log, and holds from when the engine has what was before it.
    let versions = kv.node().versions();
    let later = || put(&*kv, &[2], "later").unwrap();
    while versions.collected_of(&kept(1)) >= versions.collected() {
        later();
        std::thread::yield_now();
    }
    let mut both = [Timestamp::MIN; 2];
    for (value, at) in ["first", "second"].into_iter().zip(&mut both) {
        let mut txn = kv.begin(&BeginOptions::default()).unwrap();
        txn.put(kept(1), Bytes::from_static(value.as_bytes())).unwrap();
        txn.put(key(1), Bytes::from_static(value.as_bytes())).unwrap();
        *at = txn.commit().unwrap().timestamp;
    }
    while versions.collected() <= both[1] {
        later();
        std::thread::yield_now();
    }
    let mut txn = kv.begin(&BeginOptions { as_of: Some(both[0]), ..BeginOptions::default() }).unwrap();
    assert_eq!(txn.get(&kept(1)).unwrap(), Some(Bytes::from_static(b"first")));
    match txn.get(&key(1)) {
        Err(KvError::SnapshotUnavailable { asked, key: Some(named), .. }) => {
            assert_eq!((asked, named), (both[0], key(1)))
        }
        other => panic!("{other:?}"),
    }
    let span = ScanRequest { span: kept(0)..kept(9), reverse: false, limit: 9 };
    assert_eq!(txn.scan(&span).unwrap().rows.len(), 1);
    assert!(txn.scan(&ScanRequest { span: key(0)..key(9), ..span }).is_err());
    let (columns, rows) = kv.internal_table("past").unwrap();
    assert_eq!(columns[..2], ["index_id", "retention_seconds"]);
    let row = rows.iter().find(|row| row[0] == Some(KEPT.to_string())).unwrap();
    assert_eq!(row[1].as_deref(), Some("3600"));
}

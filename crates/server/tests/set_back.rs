//! A node that is alone, on a system clock that somebody sets back, or with a source that knows nothing: time goes on.

// A shell's test: it runs threads.
#![allow(clippy::disallowed_methods)]

use bytes::Bytes;
use clock::{Interval, Reading, Timestamp};
use clocksource::{Clock, ClockSource};
use server::NodeView;
use server::kv::{KvNode, KvOptions, MemoryLog};
use server::metrics::MetricsText;
use sql::output::Nowhere;
use sql::transaction::{BeginOptions, Consistency, Interrupt};
use sql::{Database, DatabaseOptions, Kv, Session, Startup};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};
use store::{MemoryEngine, Versions, VersionsConfig};

/// What does not come true by then never will.
const PATIENCE: Duration = Duration::from_secs(600);
const HOUR_NS: u64 = 3_600_000_000_000;

/// `same-host`, set back by so many nanoseconds.
#[derive(Clone)]
struct SetBack(Arc<dyn ClockSource>, Arc<AtomicU64>);

impl ClockSource for SetBack {
    fn read(&self) -> Reading {
        let (r, by) = (self.0.read(), self.1.load(SeqCst));
        let Interval { earliest_ns, latest_ns } = r.interval;
        let interval = Interval { earliest_ns: earliest_ns - by, latest_ns: latest_ns - by };
        Reading { interval, now_ns: r.now_ns - by, as_of_ns: r.as_of_ns - by, ..r }
    }
    fn name(&self) -> String {
        self.0.name()
    }
    fn detail(&self) -> String {
        self.0.detail()
    }
}

fn start() -> (SetBack, Arc<KvNode<MemoryEngine>>) {
    start_on("same-host")
}

fn start_on(source: &str) -> (SetBack, Arc<KvNode<MemoryEngine>>) {
    let clock = SetBack(Clock::open(&source.parse().unwrap()).unwrap(), Arc::default());
    let versions = Versions::open(MemoryEngine::default(), VersionsConfig::default()).unwrap();
    let log = Box::new(MemoryLog { sync_us: 0 });
    let kv = KvNode::start(versions, Arc::new(clock.clone()), KvOptions::default(), |_| Ok(log)).unwrap();
    (clock, kv)
}

fn write(kv: &KvNode<MemoryEngine>, value: &'static str) -> Timestamp {
    let mut txn = kv.begin(&BeginOptions::default()).unwrap();
    txn.put(Bytes::from_static(b"\0\0\0\x07k"), Bytes::from_static(value.as_bytes())).unwrap();
    txn.commit().unwrap().timestamp
}

/// A clock that was set back by an hour does not keep relative times from seeing what was written since.
#[test]
fn what_was_written_after_a_clock_was_set_back_is_seen_from_now() {
    let (clock, kv) = start();
    let seen_a_second_later = |commit: Timestamp| {
        let began = Instant::now();
        while kv.ago(1_000_000) < commit {
            assert!(began.elapsed() < PATIENCE, "a second ago is {}, the commit was at {commit}", kv.ago(1_000_000));
            std::thread::yield_now();
        }
    };
    // By then the node's threads run.
    seen_a_second_later(write(&kv, "before"));
    clock.1.store(HOUR_NS, SeqCst);
    seen_a_second_later(write(&kv, "after"));
}

/// The ladder promises `none` at every level: it reads what is visible, not an hour ago, when nothing was there yet.
#[test]
fn a_clock_that_was_set_back_does_not_take_none_into_the_past() {
    let (clock, kv) = start();
    write(&kv, "before");
    for back_ns in [0, 700_000_000, HOUR_NS] {
        clock.1.store(back_ns, SeqCst);
        let options = BeginOptions { consistency: Consistency::None, ..BeginOptions::default() };
        let mut txn = kv.begin(&options).unwrap();
        let seen = txn.get(b"\0\0\0\x07k").unwrap();
        assert_eq!(seen, Some(Bytes::from_static(b"before")), "set back by {back_ns} ns");
    }
}

/// Nothing was written for a while: a moment since the last commit is in the past nevertheless.
#[test]
fn the_least_timestamp_of_a_read_may_lie_after_the_last_commit() {
    let (_, kv) = start();
    let db = Database::open(kv.clone(), DatabaseOptions::default()).unwrap();
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    let mut session = Session::new(db, startup, Interrupt::default()).unwrap();
    let mut run = |sql: &str| session.simple_query(sql, &mut Nowhere).map_err(|e| e.to_string());
    run("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    let last_us = kv.ago(0).physical_us();
    let began = Instant::now();
    let now_us = loop {
        let now_us = u64::try_from(kv.now_us()).unwrap();
        if now_us > last_us + 2000 {
            break now_us;
        }
        assert!(began.elapsed() < PATIENCE, "the clock stands still");
        std::thread::yield_now();
    };
    let least = |ns: u64| format!("SELECT * FROM t AS OF SYSTEM TIME with_min_timestamp('{ns}')");
    run(&least((now_us - 1000) * 1000)).unwrap();
    let refused = run(&least((now_us + 86_400_000_000) * 1000)).unwrap_err();
    assert!(refused.contains("lies in the future"), "{refused}");
}

#[test]
fn a_clock_that_knows_nothing_has_no_bound_and_says_why() {
    let page = |kv: &KvNode<MemoryEngine>| {
        let mut text = MetricsText::default();
        kv.render(&mut text);
        text.finish()
    };
    let (_, kv) = start_on("clockbound:/nonexistent/shm0");
    assert!(!page(&kv).contains("clock_bound_nanos"), "any number would be taken for a bound");
    let health = kv.health();
    let field = |name: &str| health.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str());
    assert_eq!(field("clock_bound_ns"), Some("null"));
    let why = field("clock_detail").unwrap();
    assert!(why.contains("/nonexistent/shm0") && why.contains("Is the ClockBound daemon running"), "{why}");
    assert!(page(&start().1).contains("clock_bound_nanos 0\n"));
}

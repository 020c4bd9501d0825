//! Statements that write their table anew (decision 238) beside others who change what they read: how often it is written, what is left between, and who begins at all.

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::conflicting::{Conflicting, Conflicts};
use super::exclusive::is_gated;
use super::{Rows, open, run, session, state_of};
use bytes::Bytes;
use sql::memory::{MemoryBudget, MemoryPool};
use sql::session::STATEMENT_ATTEMPTS_MAX;
use sql::transaction::memory::MemoryKv;
use sql::transaction::{BeginOptions, Interrupt, Patience};
use sql::{Database, DatabaseOptions, Kv, KvError, Session, SqlError, Transaction};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// A transaction may write so many keys.
const WRITES_MAX: usize = 2_500;

/// What is done in the middle of a load: all that it is made of was read.
type Does = Box<dyn FnMut() + Send>;

/// A store, and what comes in the middle of each load.
#[derive(Clone)]
pub(super) struct Beside {
    pub(super) kv: MemoryKv,
    does: Arc<Mutex<Option<Does>>>,
    loads: Arc<AtomicUsize>,
    /// It says that it is one of a cluster.
    member: Arc<AtomicBool>,
}

impl Beside {
    pub(super) fn new() -> Beside {
        let kv = MemoryKv::new().within(WRITES_MAX);
        Beside { kv, does: Arc::default(), loads: Arc::default(), member: Arc::default() }
    }
    fn does(&self, does: impl FnMut() + Send + 'static) {
        *self.does.lock().expect("lock") = Some(Box::new(does));
    }
    /// Loads wait, from now on, until what is given is dropped.
    pub(super) fn stops(&self) -> mpsc::Sender<()> {
        let (go, waits) = mpsc::channel();
        self.does(move || while waits.recv().is_ok() {});
        go
    }
    pub(super) fn rests(&self) {
        *self.does.lock().expect("lock") = None;
    }
    /// Loads since this was last asked.
    pub(super) fn loads(&self) -> usize {
        self.loads.swap(0, Ordering::Relaxed)
    }
    /// How many it are, so far.
    pub(super) fn loads_so_far(&self) -> usize {
        self.loads.load(Ordering::Relaxed)
    }
}

impl Kv for Beside {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        self.kv.begin(options)
    }
    fn cluster(&self) -> Option<u64> {
        self.member.load(Ordering::Relaxed).then_some(7)
    }
    fn load(&self, rows: &[(Bytes, Bytes)], patience: &Patience) -> Result<bool, KvError> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        if let Some(does) = self.does.lock().expect("lock").as_mut() {
            does();
        }
        // As a node's store: whoever waits there is asked whether he goes on.
        patience.check(|| self.kv.monotonic_us())?;
        self.kv.load(rows, patience)
    }
    fn has_room_for(&self, bytes: u64) -> bool {
        self.kv.has_room_for(bytes)
    }
    below!();
}

/// Two tables, of 5,000 rows each.
fn fill(a: &mut Session) {
    run(a, "CREATE TABLE t (a int PRIMARY KEY, b int); CREATE TABLE src (a int PRIMARY KEY, v int)");
    for table in ["t", "src"] {
        for from in (1..5000).step_by(1000) {
            run(a, &format!("INSERT INTO {table} SELECT g, 0 FROM generate_series({from}, {from} + 999) g"));
        }
    }
}

/// (Here it is done in larger pieces than a transaction may write.)
fn collect(kv: &MemoryKv, db: &Database) {
    kv.clone().within(usize::MAX);
    while db.drain_garbage(&Interrupt::default()).expect("drain") {}
    kv.clone().within(WRITES_MAX);
}

fn refused(session: &mut Session, sql: &str) -> SqlError {
    session.simple_query(sql, &mut Rows::default()).expect_err(sql)
}

/// At SERIALIZABLE what is read of another table is certified, so a writer of it may come first each time. It is written a few times, and each is collected before the next.
#[test]
fn the_table_is_written_a_few_times_and_is_there_once_more() {
    for (isolation, state, written) in [("serializable", "40001", 3), ("read committed", "00000", 1)] {
        let kv = Beside::new();
        let db = open(kv.clone());
        let (mut a, mut b) = (session(&db), session(&db));
        fill(&mut a);
        run(&mut a, &format!("SET default_transaction_isolation = '{isolation}'"));
        collect(&kv.kv, &db);
        let (live, most) = (kv.kv.live_keys(), Arc::new(AtomicUsize::new(0)));
        kv.does({
            let (kv, db, most) = (kv.kv.clone(), db.clone(), most.clone());
            move || {
                run(&mut b, "UPDATE src SET v = v + 1 WHERE a = 1");
                collect(&kv, &db);
                most.fetch_max(kv.live_keys(), Ordering::Relaxed);
            }
        });
        let sql = "INSERT INTO t SELECT a + 10000, v FROM src";
        assert_eq!(state_of(&mut a, sql), state, "{isolation}");
        kv.rests();
        assert_eq!(kv.loads(), written, "{isolation}");
        let most = most.load(Ordering::Relaxed);
        assert!(most <= live + 10, "{isolation}: what was written before is there still: {most}, and {live} are live");
        assert!(!is_gated(&kv));
        collect(&kv.kv, &db);
        if state != "00000" {
            assert_eq!(run(&mut a, "SELECT count(*) FROM t"), ["5000"]);
            run(&mut a, sql);
        }
        assert_eq!(run(&mut a, "SELECT count(*), count(DISTINCT a) FROM t"), ["10000|10000"]);
    }
}

/// As if the one had come behind the other.
#[test]
fn what_other_tables_say_is_certified() {
    for (sql, rival, found) in [
        ("INSERT INTO t SELECT a + 10000, v FROM src", "UPDATE src SET v = 7 WHERE a = 3000", "10000|7"),
        ("INSERT INTO t SELECT a + 10000, v FROM src", "INSERT INTO src VALUES (7000, 9)", "10001|9"),
        (
            "DELETE FROM t USING src WHERE src.a = t.a AND src.v = 0 AND t.a < 2900",
            "UPDATE src SET v = 1 WHERE a = 5",
            "2102|0",
        ),
        ("UPDATE t SET a = -a, b = (SELECT max(v) FROM src)", "UPDATE src SET v = 3 WHERE a = 1", "5000|3"),
        ("UPDATE t SET a = -a, b = 5 WHERE EXISTS (SELECT FROM src WHERE src.a = t.a)", "TRUNCATE src", "5000|0"),
    ] {
        let kv = Beside::new();
        let db = open(kv.clone());
        let (mut a, mut b) = (session(&db), session(&db));
        fill(&mut a);
        run(&mut a, "SET default_transaction_isolation = 'serializable'");
        let mut comes = Some(rival);
        kv.does(move || {
            if let Some(rival) = comes.take() {
                run(&mut b, rival);
            }
        });
        run(&mut a, sql);
        kv.rests();
        assert!(kv.loads() >= 1, "{sql}");
        assert_eq!(run(&mut a, "SELECT count(*), max(b) FROM t"), [found], "{sql}, and {rival}");
    }
}

/// What must not be done twice is done once: it was evaluated first where its table was written.
#[test]
fn who_has_locked_is_not_repeated() {
    let kv = Beside::new();
    let db = open(kv.clone());
    let (mut a, mut b) = (session(&db), session(&db));
    fill(&mut a);
    run(&mut a, "SET default_transaction_isolation = 'serializable'");
    kv.does(move || drop(run(&mut b, "UPDATE src SET v = v + 1 WHERE a = 1")));
    let sql = |at| {
        format!("INSERT INTO t SELECT a + 10000, CASE WHEN a = {at} THEN pg_try_advisory_lock(7)::int END FROM src")
    };
    assert_eq!(state_of(&mut a, &sql(4999)), "40001");
    kv.rests();
    assert_eq!(kv.loads(), 1);
    assert_eq!(run(&mut a, "SELECT pg_advisory_unlock(7)"), ["t"]);
    assert_eq!(run(&mut a, "SELECT pg_advisory_unlock(7)"), ["f"]);
    // Where it was before, nothing is run again.
    assert_eq!(refused(&mut a, &sql(1)).state.as_str(), "53200");
    assert_eq!(kv.loads(), 0);
    assert_eq!(run(&mut a, "SELECT pg_advisory_unlock(7)"), ["t"]);
    assert_eq!(run(&mut a, "SELECT pg_advisory_unlock(7)"), ["f"]);
}

/// A node of a cluster does not.
#[test]
fn in_a_cluster_nothing_is_written_anew() {
    let kv = Beside::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    fill(&mut a);
    kv.member.store(true, Ordering::Relaxed);
    let sql = "UPDATE t SET a = -a";
    assert_eq!(refused(&mut a, sql).state.as_str(), "53200");
    assert_eq!(kv.loads(), 0);
    kv.member.store(false, Ordering::Relaxed);
    run(&mut a, sql);
}

/// What would not fit the disk is not begun, and what turns out not to is given up: others can write still.
#[test]
fn the_disk_is_not_filled() {
    const LEFT_BYTES: u64 = 64 << 20;
    let kv = Beside::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    fill(&mut a);
    run(&mut a, "ANALYZE t");
    let sql = "UPDATE t SET a = -a";
    kv.kv.clone().with_room_for(LEFT_BYTES + 1_000);
    let e = refused(&mut a, sql);
    assert_eq!((e.state.as_str(), kv.loads()), ("53100", 0));
    assert!(e.hint.as_deref().is_some_and(|hint| hint.contains("some thousands")), "{e:?}");
    assert!(!is_gated(&kv));
    // Compressed it may fit; and a DELETE makes room, and is not asked for a table's.
    run(&mut a, "INSERT INTO src SELECT g, 0 FROM generate_series(5001, 5010) g");
    kv.kv.clone().with_room_for(LEFT_BYTES + 1_000);
    run(&mut a, "DELETE FROM src WHERE a > 7");
    assert_eq!((kv.loads(), run(&mut a, "SELECT count(*) FROM src")), (0, vec!["7".to_owned()]));
    let row_bytes = 16;
    kv.kv.clone().with_room_for(LEFT_BYTES + 5_000 * row_bytes / 2);
    run(&mut a, sql);
    run(&mut a, sql);
    kv.loads();
    // Others take it meanwhile.
    kv.kv.clone().with_room_for(u64::MAX);
    let room = kv.kv.clone();
    kv.does(move || drop(room.clone().with_room_for(LEFT_BYTES - 1)));
    run(&mut a, "CREATE INDEX ON t (b, a)");
    kv.kv.clone().with_room_for(u64::MAX);
    kv.loads();
    assert_eq!(state_of(&mut a, sql), "53100");
    assert_eq!(kv.loads(), 1);
    kv.rests();
    assert!(!is_gated(&kv));
    assert_eq!(run(&mut a, "SELECT count(*), min(a) FROM t"), ["5000|1"]);
    kv.kv.clone().with_room_for(u64::MAX);
    run(&mut a, sql);
}

/// A store with conflicts, and a table there of 1,500 rows with an index, of which a transaction may change half.
fn conflicting(options: DatabaseOptions) -> (Session, Arc<Conflicts>) {
    let (kv, left) = (MemoryKv::new(), Arc::new(Conflicts::default()));
    let db = Database::open(Arc::new(Conflicting { kv: kv.clone(), left: left.clone() }), options).expect("open");
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (a int PRIMARY KEY, b int); CREATE INDEX ON t (b)");
    run(&mut a, "INSERT INTO t SELECT g, g FROM generate_series(1, 1500) g");
    kv.within(WRITES_MAX);
    (a, left)
}

/// Tried until there is one attempt left, which is the first to run out.
#[test]
fn the_last_attempt_counts_as_well() {
    for failed in [0, STATEMENT_ATTEMPTS_MAX - 1] {
        let (mut a, left) = conflicting(DatabaseOptions::default());
        left.locks.store(failed, Ordering::Relaxed);
        assert_eq!(state_of(&mut a, "UPDATE t SET b = b + 10000"), "00000", "after {failed}");
        assert_eq!(run(&mut a, "SELECT count(*) FROM t WHERE b > 10000"), ["1500"]);
    }
    let (mut a, left) = conflicting(DatabaseOptions::default());
    left.locks.store(STATEMENT_ATTEMPTS_MAX, Ordering::Relaxed);
    assert_eq!(state_of(&mut a, "UPDATE t SET b = b + 10000"), "40001");
}

/// Who comes first each time keeps it from running out: what has held nearly what it may hold to the last attempt is taken for what does not fit. What fits beside one busy row is not, be it half of that.
#[test]
fn what_is_met_by_writers_each_time_ends() {
    for isolation in ["read committed", "serializable"] {
        for (spared, pool_bytes, state) in [(700, 100_000, "00000"), (700, 200_000, "40001"), (7, 100_000, "40001")] {
            let options = DatabaseOptions { memory_pool: MemoryPool::new(pool_bytes), ..DatabaseOptions::default() };
            let (mut a, left) = conflicting(options);
            run(&mut a, &format!("SET default_transaction_isolation = '{isolation}'"));
            left.spared_locks.store(spared, Ordering::Relaxed);
            left.locks.store(usize::MAX, Ordering::Relaxed);
            assert_eq!(state_of(&mut a, "UPDATE t SET b = b + 10000"), state, "{isolation}, {spared} in {pool_bytes}");
            left.locks.store(0, Ordering::Relaxed);
            let changed = if state == "00000" { "1500" } else { "0" };
            assert_eq!(run(&mut a, "SELECT count(*) FROM t WHERE b > 10000"), [changed]);
        }
    }
}

/// A statement that fits by itself, and not beside what others hold, is refused as before: it does not write its table for their sake.
#[test]
fn what_others_hold_makes_nobody_write_a_table() {
    let (kv, pool) = (Beside::new(), MemoryPool::new(10 << 20));
    let options = DatabaseOptions { memory_pool: pool.clone(), ..DatabaseOptions::default() };
    let db = Database::open(Arc::new(kv.clone()), options).expect("open");
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    run(&mut a, "INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 1000) g");
    let sql = "UPDATE t SET a = a + 10000";
    // (No one gets the last quarter alone.)
    let others = [7 << 20, 5 << 19].map(|bytes| {
        let other = MemoryBudget::of(pool.clone(), usize::MAX);
        other.take(bytes).expect("it fits");
        other
    });
    let e = refused(&mut a, sql);
    assert_eq!((e.state.as_str(), kv.loads()), ("53200", 0));
    assert!(e.hint.as_deref().is_some_and(|hint| hint.contains("Other sessions")), "{e:?}");
    drop(others);
    run(&mut a, sql);
    assert_eq!(kv.loads(), 0, "it fits");
    // Nor where there is little left for all.
    pool.set_limit_bytes(1 << 20);
    let e = refused(&mut a, sql);
    assert_eq!((e.state.as_str(), kv.loads()), ("53200", 0), "{e:?}");
    assert!(e.hint.as_deref().is_some_and(|hint| hint.contains("Other sessions")), "{e:?}");
    // What there is by itself does not take it.
    let options = DatabaseOptions { memory_pool: MemoryPool::new(1 << 20), ..DatabaseOptions::default() };
    let db = Database::open(Arc::new(kv.clone()), options).expect("open");
    let mut a = session(&db);
    run(&mut a, sql);
    assert_eq!(kv.loads(), 1, "it does not fit");
    assert_eq!(run(&mut a, "SELECT count(*), min(a) FROM t"), ["1000|20001"]);
}

/// Who lowers what his statements may hold hears of that: no table is written anew for it.
#[test]
fn a_lowered_limit_makes_nobody_write_a_table() {
    let (kv, pool) = (Beside::new(), MemoryPool::new(10 << 20));
    let options = DatabaseOptions { memory_pool: pool, ..DatabaseOptions::default() };
    let db = Database::open(Arc::new(kv.clone()), options).expect("open");
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (a int PRIMARY KEY, b text)");
    run(&mut a, "INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 1000) g");
    run(&mut a, "SET timeball.query_memory_bytes = 500000");
    for sql in ["INSERT INTO t SELECT a + 10000, b FROM t", "UPDATE t SET b = t.b || 'y' FROM t o WHERE o.a = t.a"] {
        let e = refused(&mut a, sql);
        assert_eq!((e.state.as_str(), kv.loads()), ("53200", 0), "{sql}");
        assert!(e.hint.as_deref().is_some_and(|hint| hint.contains("raise timeball.query_memory_bytes")), "{e:?}");
    }
}

//! CREATE INDEX beside writers (decision 104).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::waits::until;
use super::{Rows, conflicting, open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{BeginOptions, Interrupt};
use sql::{Database, DatabaseOptions, Kv, KvError, Session, Startup, Transaction};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

pub(super) const ROWS: usize = 3000;
const VALUES: u64 = 40;
const ROUNDS: u64 = 12;

pub(super) fn fill(a: &mut Session) {
    run(a, "CREATE TABLE t (id int PRIMARY KEY, v int, u int NOT NULL)");
    run(a, &format!("INSERT INTO t SELECT i, i % {VALUES}, i FROM generate_series(1, {ROWS}) AS g (i)"));
}

/// By the index and without it.
fn compare(a: &mut Session) {
    run(a, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    let plan = run(a, "EXPLAIN SELECT id FROM t WHERE v = 1").join(" ");
    assert!(plan.contains("t_v_idx"), "{plan}");
    for value in 0..=VALUES {
        let by =
            |a: &mut Session, condition: &str| run(a, &format!("SELECT id, v FROM t WHERE {condition} ORDER BY id"));
        let (index, scan) = (by(a, &format!("v = {value}")), by(a, &format!("v + 0 = {value}")));
        assert_eq!(index, scan, "v = {value}");
    }
    assert_eq!(run(a, "SELECT count(*) FROM t WHERE v >= 0"), run(a, "SELECT count(*) FROM t WHERE v + 0 >= 0"));
    run(a, "COMMIT");
}

/// Chance that can be repeated.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
    /// A write of the table.
    pub(super) fn write(&mut self) -> String {
        let (id, v) = (1 + self.below(ROWS as u64 + 200), self.below(VALUES));
        match self.below(6) {
            0 => format!("DELETE FROM t WHERE id = {id}"),
            1 => format!("INSERT INTO t VALUES ({id}, {v}, {id}) ON CONFLICT (id) DO UPDATE SET v = excluded.v"),
            2 => format!("UPDATE t SET id = id + 10000, u = u + 10000 WHERE id = {id}"),
            3 => format!("UPDATE t SET v = NULL WHERE id = {id}"),
            _ => format!("UPDATE t SET v = {v} WHERE id = {id}"),
        }
    }
}

#[test]
fn an_index_is_made_beside_writers_and_is_whole() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    fill(&mut a);
    let stop = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (1..=3u64)
        .map(|number| {
            let (db, stop, written) = (db.clone(), stop.clone(), written.clone());
            thread::spawn(move || {
                let mut own = session(&db);
                let mut chance = Chance(number * 0x9e37_79b9);
                while !stop.load(Ordering::Relaxed) {
                    let (one, other) = (chance.write(), chance.write());
                    match chance.below(4) {
                        // A lone statement never hears of the change; nor does a block that is waited for, but for other writers.
                        0 => {
                            for sql in ["BEGIN ISOLATION LEVEL READ COMMITTED", &one, &other, "COMMIT"] {
                                let state = state_of(&mut own, sql);
                                assert!(
                                    ["00000", "23505", "40001", "40P01", "25P02"].contains(&state.as_str()),
                                    "{sql}: {state}"
                                );
                            }
                        }
                        _ => {
                            let state = state_of(&mut own, &one);
                            assert!(["00000", "23505"].contains(&state.as_str()), "{one}: {state}");
                        }
                    }
                    written.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for _ in 0..2 {
        // Each alone: of a text of several statements, which is a block, one transaction makes the index, and who writes may refuse it for ever.
        run(&mut a, "CREATE INDEX t_v_idx ON t (v)");
        run(&mut a, "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS t_v_idx ON t (v)");
        run(&mut a, "DROP INDEX t_v_idx");
        run(&mut a, "CREATE UNIQUE INDEX CONCURRENTLY t_u_idx ON t (u)");
        run(&mut a, "CREATE INDEX t_v_idx ON t (v)");
        compare(&mut a);
        assert_eq!(run(&mut a, "SELECT count(*) = count(DISTINCT u) FROM t"), ["t"]);
        run(&mut a, "DROP INDEX t_v_idx");
        run(&mut a, "DROP INDEX t_u_idx");
    }
    run(&mut a, "CREATE INDEX t_v_idx ON t (v)");
    stop.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().expect("no writer fails"));
    compare(&mut a);
    assert!(written.load(Ordering::Relaxed) > 50);
}

/// Somebody writes whenever a transaction begins beside the statement.
#[derive(Clone)]
pub(super) struct Meddled {
    pub(super) kv: MemoryKv,
    pub(super) by: Arc<Mutex<Option<(Session, Chance)>>>,
    /// Transactions that can still begin: then the process is as good as dead.
    pub(super) left: Arc<AtomicUsize>,
    /// Nobody writes.
    pub(super) idles: Arc<AtomicBool>,
    /// What is written.
    pub(super) write: fn(&mut Chance) -> String,
}
impl Meddled {
    pub(super) fn new() -> Meddled {
        Meddled::over(MemoryKv::new())
    }
    pub(super) fn over(kv: MemoryKv) -> Meddled {
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        Meddled { kv, by: Arc::default(), left, idles: Arc::default(), write: Chance::write }
    }
}
impl Kv for Meddled {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        if let Ok(mut by) = self.by.try_lock()
            && let Some((session, chance)) = by.as_mut()
        {
            let dying = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if dying.is_err() {
                return Err(KvError::ShuttingDown);
            }
            let writes = if self.idles.load(Ordering::Relaxed) { 0 } else { 4 };
            for _ in 0..writes {
                let sql = (self.write)(chance);
                let state = state_of(session, &sql);
                assert!(
                    ["00000", "23505", "23503", "23514", "42P10", "55P03", "22P02"].contains(&state.as_str()),
                    "{sql}: {state}"
                );
            }
        }
        self.kv.begin(options)
    }
    below!(load);
}

#[test]
fn an_index_is_whole_whatever_is_written_between_its_steps() {
    for seed in 1..=6u64 {
        let kv = Meddled::new();
        let db = open(kv.clone());
        let mut a = session(&db);
        fill(&mut a);
        *kv.by.lock().expect("lock") = Some((session(&db), Chance(seed * 0x9e37_79b9_7f4a)));
        run(&mut a, "CREATE INDEX t_v_idx ON t (v)");
        run(&mut a, "CREATE UNIQUE INDEX t_u_idx ON t (u)");
        *kv.by.lock().expect("lock") = None;
        compare(&mut a);
        let (by, without) = ("SELECT count(*) FROM t WHERE u > 0", "SELECT count(*) FROM t WHERE u + 0 > 0");
        assert_eq!(run(&mut a, by), run(&mut a, without), "seed {seed}");
        assert_eq!(state_of(&mut a, "INSERT INTO t SELECT 99999, 0, u FROM t LIMIT 1"), "23505");
    }
}

/// What is loaded was read after the version before had ended, whatever the session's consistency makes of the clock.
#[test]
fn an_index_is_whole_though_snapshots_lie_behind() {
    let (mut a, left) = conflicting();
    run(&mut a, "DROP TABLE t");
    fill(&mut a);
    left.behind.store(true, Ordering::Relaxed);
    run(&mut a, "CREATE INDEX t_v_idx ON t (v)");
    assert_eq!(state_of(&mut a, "ALTER TABLE t ADD CHECK (id < 1000)"), "23514");
    left.behind.store(false, Ordering::Relaxed);
    compare(&mut a);
}

#[test]
fn a_table_is_made_of_a_query_over_one_that_is_written() {
    let kv = Meddled::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    fill(&mut a);
    for (query, sum) in
        [("SELECT id, u - id AS none FROM t", "0|0"), ("SELECT id, u - id AS none FROM t WHERE id <= 9", "0|0")]
    {
        *kv.by.lock().expect("lock") = Some((session(&db), Chance(11)));
        run(&mut a, &format!("CREATE TABLE made AS {query}"));
        *kv.by.lock().expect("lock") = None;
        let found = run(&mut a, "SELECT sum(none), count(*) - count(DISTINCT id) FROM made");
        assert_eq!(found, [sum], "one snapshot: {query}");
        run(&mut a, "DROP TABLE made");
    }
}

#[test]
fn constraints_are_added_beside_writers() {
    let kv = Meddled::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    fill(&mut a);
    run(&mut a, "INSERT INTO t VALUES (700000, NULL, 700000); ALTER TABLE t ADD COLUMN w int DEFAULT 7");
    let mut beside = |sql: &str| {
        *kv.by.lock().expect("lock") = Some((session(&db), Chance(23)));
        let state = state_of(&mut a, sql);
        *kv.by.lock().expect("lock") = None;
        state
    };
    assert_eq!(beside("ALTER TABLE t ALTER COLUMN v SET NOT NULL"), "23502");
    assert_eq!(beside("ALTER TABLE t ADD CONSTRAINT small CHECK (id < 700000)"), "23514");
    assert_eq!(beside("ALTER TABLE t ADD UNIQUE (v)"), "23505");
    assert_eq!(beside("ALTER TABLE t ADD CONSTRAINT v CHECK (nothing > 0)"), "42703");
    // Of what failed nothing is left.
    assert_eq!(beside("INSERT INTO t VALUES (700001, NULL, 700001)"), "00000");
    assert_eq!(beside("ALTER TABLE t ALTER COLUMN u SET NOT NULL"), "00000");
    assert_eq!(beside("ALTER TABLE t ALTER COLUMN w SET NOT NULL"), "00000");
    assert_eq!(beside("ALTER TABLE t ADD CONSTRAINT small CHECK (v < 10000 AND v IS DISTINCT FROM -1)"), "00000");
    assert_eq!(beside("ALTER TABLE t ADD CONSTRAINT small CHECK (v < 10000)"), "42710");
    assert_eq!(beside("ALTER TABLE t ADD CONSTRAINT t_one UNIQUE (u)"), "00000");
    assert_eq!(beside("INSERT INTO t VALUES (700002, -1, 700002)"), "23514");
    assert_eq!(beside("INSERT INTO t VALUES (700003, 0, 700003, NULL)"), "23502");
    assert_eq!(beside("INSERT INTO t VALUES (700004, 0, 700000)"), "23505");
    let constraints = "SELECT conname, contype FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY 1";
    assert_eq!(run(&mut a, constraints), ["small|c", "t_one|u", "t_pkey|p"]);
}

/// Writers keep a condition before it is shown; a process that ends in between leaves nothing of it.
#[test]
fn what_a_crash_leaves_of_a_constraint_is_taken_back() {
    for steps in 0.. {
        let kv = Meddled::new();
        let db = open(kv.clone());
        let mut a = session(&db);
        fill(&mut a);
        *kv.by.lock().expect("lock") = Some((session(&db), Chance(5)));
        kv.left.store(steps, Ordering::Relaxed);
        let added = a.simple_query("ALTER TABLE t ADD CHECK (v < 1000)", &mut Rows::default()).is_ok();
        *kv.by.lock().expect("lock") = None;
        drop((a, db));
        let db = open(kv.kv.clone());
        let mut b = session(&db);
        while db.drain_garbage(&Interrupt::default()).expect("drain") {}
        let shown = run(&mut b, "SELECT count(*) FROM pg_constraint WHERE contype = 'c'") == ["1"];
        let kept = state_of(&mut b, "INSERT INTO t VALUES (800000, 1000, 800000)") == "23514";
        assert_eq!(shown, kept, "after {steps} transactions");
        assert!(shown || !added, "after {steps} transactions");
        if added {
            return;
        }
    }
}

/// Nothing half-done stays, wherever the process ends.
#[test]
fn what_a_crash_leaves_of_an_index_is_taken_back() {
    let mut made = 0;
    for steps in 0.. {
        let kv = Meddled::new();
        let db = open(kv.clone());
        let mut a = session(&db);
        fill(&mut a);
        let keys = kv.kv.live_keys();
        *kv.by.lock().expect("lock") = Some((session(&db), Chance(7)));
        kv.left.store(steps, Ordering::Relaxed);
        let done = a.simple_query("CREATE INDEX t_v_idx ON t (v)", &mut Rows::default()).is_ok();
        *kv.by.lock().expect("lock") = None;
        drop((a, db));
        // Another process, on what the first one left.
        let db = open(kv.kv.clone());
        let mut b = session(&db);
        run(&mut b, "INSERT INTO t VALUES (500000, 3, 500000); UPDATE t SET v = 4 WHERE id = 500000");
        while db.drain_garbage(&Interrupt::default()).expect("drain") {}
        let there = run(&mut b, "SELECT count(*) FROM pg_class WHERE relname = 't_v_idx'") == ["1"];
        assert!(there || !done, "after {steps} transactions");
        if there {
            made += 1;
        } else {
            let rows: usize = run(&mut b, "SELECT count(*) FROM t")[0].parse().expect("a number");
            let others = keys - ROWS;
            assert!(kv.kv.live_keys() <= rows + others + 2, "after {steps} transactions");
            run(&mut b, "CREATE INDEX t_v_idx ON t (v)");
        }
        compare(&mut b);
        if made > 1 {
            return;
        }
    }
}

#[test]
fn an_open_block_is_waited_for_and_hears_of_nothing() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    fill(&mut a);
    let mut serializable = session(&db);
    run(&mut serializable, "BEGIN; INSERT INTO t VALUES (900001, 7, 900001)");
    run(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 7 WHERE id = 5");
    let maker = thread::spawn(move || {
        run(&mut a, "CREATE INDEX t_v_idx ON t (v)");
        a
    });
    let mut asking = session(&db);
    let phase = "SELECT phase FROM pg_stat_progress_create_index";
    until(&mut asking, phase, "waiting for writers before build");
    // Other changes of the table wait, those of other tables do not.
    run(&mut asking, "CREATE TABLE other (id int); SET lock_timeout = '10ms'");
    assert_eq!(state_of(&mut asking, "ALTER TABLE t DROP COLUMN u"), "55P03");
    run(&mut b, "UPDATE t SET v = 8 WHERE id = 6; COMMIT");
    run(&mut serializable, "COMMIT");
    let mut a = maker.join().expect("the maker");
    compare(&mut a);
    run(&mut asking, "ALTER TABLE t DROP COLUMN u");
}

#[test]
fn an_index_that_is_cancelled_leaves_nothing() {
    let db = open(MemoryKv::new());
    let mut b = session(&db);
    fill(&mut b);
    let interrupt = Interrupt::default();
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    let mut a = Session::new(db.clone(), startup, interrupt.clone()).expect("session");
    run(&mut b, "BEGIN; UPDATE t SET v = 7 WHERE id = 5");
    let maker = thread::spawn(move || {
        let state = state_of(&mut a, "CREATE INDEX t_v_idx ON t (v)");
        (a, state)
    });
    let mut asking = session(&db);
    until(&mut asking, "SELECT count(*) FROM pg_stat_progress_create_index", "1");
    interrupt.raise();
    let (mut a, state) = maker.join().expect("the maker");
    assert_eq!(state, "57014");
    run(&mut b, "ROLLBACK");
    run(&mut a, "SET lock_timeout = '10ms'; CREATE INDEX t_v_idx ON t (v)");
    compare(&mut a);
    // Rows that share a key are found, whoever wrote them.
    assert_eq!(state_of(&mut a, "CREATE UNIQUE INDEX ON t (v)"), "23505");
    run(&mut a, "UPDATE t SET v = id; CREATE UNIQUE INDEX t_unique ON t (v)");
    assert_eq!(state_of(&mut a, "UPDATE t SET v = 1 WHERE id = 2"), "23505");
}

/// Rows that come to share a key while a unique index is made: the statement says so, or their writer is refused.
#[test]
fn keys_that_come_to_be_shared_meanwhile_are_found() {
    let kv = Meddled::new();
    let db: Arc<Database> = Database::open(Arc::new(kv.clone()), DatabaseOptions::default()).expect("open");
    let mut a = session(&db);
    let (mut refused, mut made) = (0, 0);
    for round in 0..ROUNDS {
        run(&mut a, "DROP TABLE IF EXISTS t");
        fill(&mut a);
        // The keys of few rows move about among themselves.
        *kv.by.lock().expect("lock") = Some((session(&db), Chance(round + 1)));
        let state = state_of(&mut a, "CREATE UNIQUE INDEX t_w_idx ON t (v, (id % 75)) WHERE id <= 10000");
        *kv.by.lock().expect("lock") = None;
        let shared = run(
            &mut a,
            "SELECT count(*) FROM (SELECT 1 FROM t WHERE id <= 10000 AND v IS NOT NULL GROUP BY v, id % 75 HAVING count(*) > 1) AS s",
        );
        match state.as_str() {
            "00000" => {
                assert_eq!(shared, ["0"], "round {round}");
                made += 1;
            }
            other => {
                assert_eq!(other, "23505", "round {round}");
                refused += 1;
            }
        }
    }
    assert!(refused + made == ROUNDS, "{refused} refused, {made} made");
}

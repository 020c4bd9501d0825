//! ALTER TABLE that reads all rows, beside writers (decision 216).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::online::{Chance, Meddled, ROWS, fill};
use super::waits::{FILLED, KEY_WAITS, LOCK_WAITS, until, until_state};
use super::{Rows, open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{BeginOptions, Interrupt, ScanRequest};
use sql::{Kv, Session, Startup};
use std::sync::atomic::Ordering;
use std::thread;

/// Whether writers of a table hold its version.
pub(super) fn is_gated(kv: &impl Kv) -> bool {
    records_have(kv, b"\"gated\"")
}

/// Whether a table is being changed.
pub(super) fn is_changed(kv: &impl Kv) -> bool {
    is_gated(kv)
        || records_have(kv, b"\"building\"")
        || records_have(kv, b"\"pending\"")
        || records_have(kv, b"\"filling\"")
}

/// What is read of the catalog's records themselves.
fn records_have(kv: &impl Kv, word: &[u8]) -> bool {
    let mut txn = kv.begin(&BeginOptions::default()).expect("begin");
    let relations = sql::catalog::key::index_span(sql::catalog::key::RELATIONS);
    let found = txn.scan(&ScanRequest { span: relations, reverse: false, limit: 1000 }).expect("scan");
    found.rows.iter().any(|(_, record)| record.windows(word.len()).any(|part| part == word))
}

/// Somebody writes before each transaction that begins beside the statement: whatever reads all rows while they may change never ends.
#[test]
fn what_reads_all_rows_ends_beside_writers() {
    let kv = Meddled::new();
    let db = open(kv.clone());
    let mut a = session(&db);
    fill(&mut a);
    run(&mut a, "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p SELECT generate_series(-10000, 20000)");
    let mut beside = |sql: &str| {
        let mut by = session(&db);
        // It is of the same thread: what it waits for does not come.
        run(&mut by, "SET lock_timeout = '1ms'");
        *kv.by.lock().expect("lock") = Some((by, Chance(23)));
        let state = state_of(&mut a, sql);
        *kv.by.lock().expect("lock") = None;
        assert!(!is_gated(&kv.kv), "{sql}");
        state
    };
    for sql in [
        "ALTER TABLE t ADD COLUMN r float8 NOT NULL DEFAULT random()",
        "ALTER TABLE t ADD COLUMN s serial, ADD COLUMN i int GENERATED ALWAYS AS IDENTITY",
        "ALTER TABLE t ADD COLUMN g int GENERATED ALWAYS AS (u + 1) STORED",
        "ALTER TABLE t ADD COLUMN o uuid DEFAULT gen_random_uuid() UNIQUE",
        "ALTER TABLE t ALTER COLUMN r TYPE text USING r || 'x'",
        "ALTER TABLE t ADD CONSTRAINT small CHECK (u < 100000), ADD CONSTRAINT one UNIQUE (u)",
        "ALTER TABLE t ADD CONSTRAINT points FOREIGN KEY (id) REFERENCES p",
        "ALTER TABLE t ADD CONSTRAINT later FOREIGN KEY (v) REFERENCES p NOT VALID",
        "ALTER TABLE t VALIDATE CONSTRAINT later",
        "ALTER TABLE t DROP CONSTRAINT t_pkey",
        "ALTER TABLE t ADD PRIMARY KEY (id)",
    ] {
        assert_eq!(beside(sql), "00000", "{sql}");
    }
    // Of what fails nothing is left.
    for (sql, state) in [
        ("ALTER TABLE t ALTER COLUMN r TYPE int USING r::int", "22P02"),
        (
            "ALTER TABLE t ADD CONSTRAINT none FOREIGN KEY (s) REFERENCES p (id), ADD COLUMN d int DEFAULT 1 / (random() - random())::int",
            "22012",
        ),
        ("ALTER TABLE t ADD COLUMN r int DEFAULT random()", "42701"),
        ("ALTER TABLE t ADD COLUMN q int REFERENCES nowhere", "42P01"),
    ] {
        assert_eq!(beside(sql), state, "{sql}");
    }
    let whole = "SELECT count(*) = count(DISTINCT s), count(*) = count(DISTINCT i), count(*) = count(DISTINCT o),
        bool_and(g = u + 1 AND r IS NOT NULL), count(*) > 2000 FROM t";
    assert_eq!(run(&mut a, whole), ["t|t|t|t|t"]);
    let constraints = "SELECT conname FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY 1";
    assert_eq!(run(&mut a, constraints), ["later", "one", "points", "small", "t_o_key", "t_pkey"]);
}

/// The control of the test above: where writers do not heed the version that is held, one after the other comes before the statement, and it begins anew each time.
#[test]
fn what_reads_all_rows_ends_because_writers_wait() {
    // Ten times what it takes.
    let transactions_max = 100;
    for (kv, expected) in [(MemoryKv::new(), "00000"), (MemoryKv::heedless(), "57P01")] {
        let kv = Meddled::over(kv);
        let db = open(kv.clone());
        let mut a = session(&db);
        fill(&mut a);
        let mut by = session(&db);
        run(&mut by, "SET lock_timeout = '1ms'");
        *kv.by.lock().expect("lock") = Some((by, Chance(23)));
        kv.left.store(transactions_max, Ordering::Relaxed);
        let state = state_of(&mut a, FILLED);
        *kv.by.lock().expect("lock") = None;
        assert_eq!(state, expected, "{} transactions were left", kv.left.load(Ordering::Relaxed));
    }
}

/// Waits until a change waits for those who have written.
fn until_waiting(asking: &mut Session) {
    until(asking, LOCK_WAITS, "1");
}

/// Waits until so many transactions wait for keys.
fn until_queued(asking: &mut Session, count: usize) {
    until(asking, KEY_WAITS, &count.to_string());
}

#[test]
fn who_has_written_is_waited_for_and_who_comes_then_waits() {
    let db = open(MemoryKv::new());
    let (mut a, mut before, mut beside, mut asking) = (session(&db), session(&db), session(&db), session(&db));
    fill(&mut a);
    run(&mut before, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 7 WHERE id = 5");
    let changing = thread::spawn(move || {
        run(&mut a, FILLED);
        a
    });
    until_waiting(&mut asking);
    // It waits for the block; nobody waits for it, the block least of all.
    run(&mut asking, "SET lock_timeout = '10ms'; UPDATE t SET v = 8 WHERE id = 6");
    run(&mut before, "UPDATE t SET v = 8 WHERE id = 7");
    run(&mut beside, "BEGIN; UPDATE t SET v = 9 WHERE id = 8");
    run(&mut before, "COMMIT");
    // Now it waits for the other, and whoever comes waits for it.
    until_state(&mut asking, "UPDATE t SET v = 8 WHERE id = 6", "55P03");
    assert_eq!(state_of(&mut asking, "INSERT INTO t VALUES (500000, 1, 500000)"), "55P03");
    run(&mut asking, "SELECT count(*) FROM t; RESET lock_timeout");
    run(&mut beside, "DELETE FROM t WHERE id = 9");
    let later = ["BEGIN ISOLATION LEVEL READ COMMITTED", "BEGIN ISOLATION LEVEL SERIALIZABLE", "SELECT 1"];
    let later = later.map(|begin| {
        let mut own = session(&db);
        thread::spawn(move || {
            for sql in [begin, "UPDATE t SET v = v + 1 WHERE id = 10", "COMMIT"] {
                run(&mut own, sql);
            }
        })
    });
    until_queued(&mut asking, 4);
    run(&mut beside, "COMMIT");
    later.into_iter().for_each(|later| later.join().expect("a writer"));
    let mut a = changing.join().expect("the change");
    assert_eq!(run(&mut a, "SELECT count(r), count(DISTINCT r) > 2000 FROM t"), [format!("{}|t", ROWS - 1)]);
    assert_eq!(
        run(&mut a, "SELECT id, v FROM t WHERE id IN (5, 6, 7, 8, 10) ORDER BY id"),
        ["5|7", "6|8", "7|8", "8|9", "10|13"]
    );
}

#[test]
fn a_change_that_is_cancelled_keeps_nobody_waiting() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let mut b = session(&db);
    fill(&mut b);
    let interrupt = Interrupt::default();
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    let mut a = Session::new(db.clone(), startup, interrupt.clone()).expect("session");
    // By the version before, and by the one that is held.
    for rounds in 0..2 {
        run(&mut b, "BEGIN; UPDATE t SET v = 7 WHERE id = 5");
        let changing = thread::spawn(move || {
            let state = state_of(&mut a, FILLED);
            (a, state)
        });
        let mut asking = session(&db);
        until_waiting(&mut asking);
        if rounds == 1 {
            run(&mut asking, "BEGIN; UPDATE t SET v = 7 WHERE id = 6");
            run(&mut b, "COMMIT");
            let mut other = session(&db);
            run(&mut other, "SET lock_timeout = '10ms'");
            until_state(&mut other, "UPDATE t SET v = 9 WHERE id = 7", "55P03");
        }
        interrupt.raise();
        let (left, state) = changing.join().expect("the change");
        assert_eq!(state, "57014");
        assert!(!is_gated(&kv));
        a = left;
        run(&mut asking, "UPDATE t SET v = 8 WHERE id = 8; COMMIT");
        run(&mut b, "COMMIT; SET lock_timeout = '10ms'; UPDATE t SET v = 8 WHERE id = 9");
    }
    assert_eq!(state_of(&mut a, "SELECT r FROM t"), "42703");
    run(&mut a, FILLED);
}

/// Nothing half-done stays, wherever the process ends.
#[test]
fn what_a_crash_leaves_of_a_change_is_taken_back() {
    for steps in 0.. {
        let kv = Meddled::new();
        let db = open(kv.clone());
        let mut a = session(&db);
        fill(&mut a);
        let keys = kv.kv.live_keys();
        let mut by = session(&db);
        run(&mut by, "SET lock_timeout = '1ms'");
        *kv.by.lock().expect("lock") = Some((by, Chance(5)));
        kv.left.store(steps, Ordering::Relaxed);
        let changed = a.simple_query(FILLED, &mut Rows::default()).is_ok();
        *kv.by.lock().expect("lock") = None;
        drop((a, db));
        let db = open(kv.kv.clone());
        let mut b = session(&db);
        // Before it is taken back nobody waits.
        run(&mut b, "SET lock_timeout = '1ms'; INSERT INTO t (id, v, u) VALUES (800000, 1, 800000)");
        while db.drain_garbage(&Interrupt::default()).expect("drain") {}
        assert!(!is_gated(&kv.kv), "after {steps} transactions");
        let there = state_of(&mut b, "SELECT r FROM t LIMIT 1") == "00000";
        assert!(there || !changed, "after {steps} transactions");
        let rows: usize = run(&mut b, "SELECT count(*) FROM t")[0].parse().expect("a number");
        assert!(kv.kv.live_keys() <= rows + (keys - ROWS) + 2, "after {steps} transactions");
        if there {
            assert_eq!(run(&mut b, "SELECT count(r) = count(*) FROM t"), ["t"]);
            return;
        }
        run(&mut b, FILLED);
    }
}

/// The time that its client has given a statement ends its waits, too. (Time passes here as it is looked at.)
#[test]
fn a_change_that_waits_ends_with_its_time() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    fill(&mut a);
    run(&mut b, "BEGIN; UPDATE t SET v = 7 WHERE id = 5");
    run(&mut a, "SET statement_timeout = '1ms'");
    assert_eq!(state_of(&mut a, FILLED), "57014");
    run(&mut b, "COMMIT");
    run(&mut a, "RESET statement_timeout");
    run(&mut a, FILLED);
}

/// Behind other statements of its block, too, a change waits for those who have written to its table; with one who waits for its block that is a deadlock.
#[test]
fn a_change_behind_other_statements_waits_for_writers() {
    let db = open(MemoryKv::new());
    let (mut a, mut b, mut asking) = (session(&db), session(&db), session(&db));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int); CREATE TABLE other (id int PRIMARY KEY, v int)");
    run(&mut a, "INSERT INTO t VALUES (1, 1); INSERT INTO other VALUES (1, 1)");
    let begin = "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO other VALUES (2, 2)";
    // Who ends is waited for, and commits.
    run(&mut b, "BEGIN; UPDATE t SET v = 2");
    run(&mut a, begin);
    let changing = thread::spawn(move || {
        run(&mut a, "ALTER TABLE t ADD COLUMN w int DEFAULT 5; INSERT INTO t VALUES (2, 2, 2)");
        a
    });
    until_waiting(&mut asking);
    run(&mut b, "INSERT INTO t VALUES (3, 3); COMMIT");
    let mut a = changing.join().expect("the change");
    run(&mut a, "COMMIT");
    assert_eq!(run(&mut a, "SELECT * FROM t ORDER BY id"), ["1|2|5", "2|2|2", "3|3|5"]);
    // Who waits for a row of the block is not waited for: one of the two must give way.
    run(&mut b, "BEGIN; UPDATE t SET v = 3");
    run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE other SET v = 3 WHERE id = 1");
    let writing = thread::spawn(move || {
        let states = ["UPDATE other SET v = 4 WHERE id = 1", "COMMIT"].map(|sql| state_of(&mut b, sql));
        (b, states)
    });
    until_queued(&mut asking, 1);
    assert_eq!(state_of(&mut a, "ALTER TABLE t DROP COLUMN w"), "40P01");
    run(&mut a, "ROLLBACK");
    let (_, states) = writing.join().expect("the writer");
    assert_eq!(states, ["00000"; 2]);
    assert_eq!(run(&mut a, "SELECT t.v, other.v FROM t, other WHERE t.id = 1 AND other.id = 1"), ["3|4"]);
    // Two that wait for each other so do not wait for ever.
    let mut b = session(&db);
    run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 5 WHERE id = 1");
    run(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE other SET v = 5 WHERE id = 1");
    let other = thread::spawn(move || ["ALTER TABLE t ADD COLUMN x int", "COMMIT"].map(|sql| state_of(&mut b, sql)));
    let own = ["ALTER TABLE other ADD COLUMN x int", "COMMIT"].map(|sql| state_of(&mut a, sql));
    let both = [own, other.join().expect("the other")];
    let done = both.iter().filter(|states| states.iter().all(|state| state == "00000")).count();
    assert_eq!(done, 1, "{both:?}");
}

//! Beside a table whose writers wait by a gate (decisions 216, 217): who else waits, for whom, and who does not.

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::exclusive::is_gated;
use super::online::{Chance, Meddled, fill};
use super::waits::{FILLED, KEY_WAITS, LOCK_WAITS, until, until_state};
use super::{Rows, open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use std::sync::atomic::Ordering;
use std::thread;

/// What runs by transactions of its own uses the tables that foreign keys lead to until it has ended, and not while its session is idle.
#[test]
fn a_change_that_has_ended_keeps_no_other_waiting() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    fill(&mut a);
    run(&mut a, "CREATE TABLE p (id int PRIMARY KEY); INSERT INTO p SELECT generate_series(0, 3000)");
    run(&mut b, "SET lock_timeout = '1ms'");
    for (number, (sql, state)) in [
        ("ALTER TABLE t ADD CONSTRAINT points FOREIGN KEY (v) REFERENCES p", "00000"),
        (FILLED, "00000"),
        ("ALTER TABLE t ADD CONSTRAINT positive CHECK (v >= 0)", "00000"),
        ("CREATE INDEX ON t (v)", "00000"),
        ("ALTER TABLE t ADD COLUMN broken int DEFAULT 1 / (random() - random())::int, ADD COLUMN z int", "22012"),
        ("ALTER TABLE t ADD CONSTRAINT negative CHECK (v < 0)", "23514"),
        ("ALTER TABLE p ADD COLUMN r float8 DEFAULT random(), ADD COLUMN z int", "00000"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(state_of(&mut a, sql), state, "{sql}");
        for table in ["p", "t"] {
            let change = format!("ALTER TABLE {table} ADD COLUMN x{number} int");
            assert_eq!(state_of(&mut b, &change), "00000", "{change} after {sql}");
        }
    }
}

/// What looks at the catalog.
const LOOKS: [&str; 4] = [
    "SELECT 't'::regclass::text, pg_table_is_visible('t'::regclass)",
    "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'c'::regclass",
    "SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass",
    "SELECT count(*) FROM information_schema.referential_constraints",
];

/// Before each of its transactions a process ends that changes a table. In one of them the gate stays closed: who only reads the catalog may do so.
#[test]
fn who_may_not_write_reads_the_catalog_beside_a_gate() {
    let mut gated = 0;
    for steps in 0..12 {
        let kv = Meddled::new();
        let db = open(kv.clone());
        let mut a = session(&db);
        fill(&mut a);
        run(
            &mut a,
            "ALTER TABLE t ADD UNIQUE (u); CREATE TABLE c (id int PRIMARY KEY, u int REFERENCES t (u) DEFERRABLE)",
        );
        let by = session(&db);
        kv.idles.store(true, Ordering::Relaxed);
        *kv.by.lock().expect("lock") = Some((by, Chance(5)));
        kv.left.store(steps, Ordering::Relaxed);
        let _ = state_of(&mut a, FILLED);
        *kv.by.lock().expect("lock") = None;
        gated += usize::from(is_gated(&kv.kv));
        drop((a, db));
        let db = open(kv.kv.clone());
        let mut b = session(&db);
        for begin in ["BEGIN READ ONLY", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"] {
            run(&mut b, begin);
            for look in LOOKS {
                assert_eq!(state_of(&mut b, look), "00000", "{begin}: {look}");
            }
            run(&mut b, "COMMIT");
        }
        // References are kept through it.
        for (sql, state) in [
            ("INSERT INTO c VALUES (1, 5)", "00000"),
            ("INSERT INTO c VALUES (2, 999999)", "23503"),
            ("DELETE FROM t WHERE u = 5", "23503"),
            ("BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO c VALUES (2, 999998)", "00000"),
            ("COMMIT", "23503"),
            (
                "BEGIN; SET CONSTRAINTS ALL DEFERRED; INSERT INTO c VALUES (3, 999997); UPDATE t SET u = 999997 WHERE u = 6; COMMIT",
                "00000",
            ),
        ] {
            assert_eq!(state_of(&mut b, sql), state, "{sql}");
        }
    }
    assert!(gated > 0);
}

/// A COPY that waits for a block at another table, to which its keys lead, has the gate of its own for nobody meanwhile: the block may come to it.
#[test]
fn who_copies_and_waits_for_a_block_holds_no_gate() {
    let mut gated = 0;
    for steps in 0..12 {
        let kv = Meddled::new();
        let db = open(kv.clone());
        let mut a = session(&db);
        run(&mut a, "CREATE TABLE p (id int PRIMARY KEY)");
        fill(&mut a);
        run(&mut a, "ALTER TABLE t ADD COLUMN p int REFERENCES p");
        let by = session(&db);
        kv.idles.store(true, Ordering::Relaxed);
        *kv.by.lock().expect("lock") = Some((by, Chance(5)));
        kv.left.store(steps, Ordering::Relaxed);
        let _ = state_of(&mut a, FILLED);
        *kv.by.lock().expect("lock") = None;
        if !is_gated(&kv.kv) {
            continue;
        }
        gated += 1;
        drop((a, db));
        let db = open(kv.kv.clone());
        let [mut b, mut w, mut asking] = [0; 3].map(|_| session(&db));
        run(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED; ALTER TABLE p ADD COLUMN x int");
        let copies = thread::spawn(move || {
            let mut out = Rows::default();
            let copied = w.simple_query("COPY t (id, v, u) FROM STDIN", &mut out);
            let copied = copied.and_then(|()| w.copy_data(b"1000000\t1\t1\n")).and_then(|()| w.copy_done(&mut out));
            copied.map_or_else(|e| e.state.as_str().to_owned(), |()| "00000".to_owned())
        });
        until(&mut asking, KEY_WAITS, "1");
        assert_eq!(state_of(&mut b, "ALTER TABLE t ADD COLUMN y int"), "00000", "{steps} steps");
        run(&mut b, "ROLLBACK");
        assert_eq!(copies.join().expect("the writer"), "00000", "{steps} steps");
    }
    assert!(gated > 0);
}

/// Who only looks waits for nobody, and nobody waits for him.
#[test]
fn who_looks_at_the_catalog_does_not_wait_and_is_not_waited_for() {
    let db = open(MemoryKv::new());
    let (mut a, mut before, mut beside, mut asking) = (session(&db), session(&db), session(&db), session(&db));
    fill(&mut a);
    run(&mut a, "ALTER TABLE t ADD UNIQUE (u)");
    run(&mut a, "CREATE TABLE c (id int PRIMARY KEY, u int REFERENCES t (u))");
    run(&mut before, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 7 WHERE id = 5");
    let changing = thread::spawn(move || {
        run(&mut a, FILLED);
        a
    });
    until(&mut asking, LOCK_WAITS, "1");
    // By the version that is held: the change takes it behind this.
    run(&mut beside, "BEGIN; UPDATE t SET v = 9 WHERE id = 8");
    run(&mut before, "COMMIT");
    run(&mut asking, "SET lock_timeout = '10ms'");
    until_state(&mut asking, "UPDATE t SET v = 8 WHERE id = 6", "55P03");
    for look in LOOKS {
        assert_eq!(state_of(&mut asking, look), "00000", "{look}");
    }
    assert_eq!(state_of(&mut asking, "UPDATE t SET v = 8 WHERE id = 6"), "55P03");
    run(&mut beside, "COMMIT");
    let mut a = changing.join().expect("the change");
    run(&mut before, "BEGIN ISOLATION LEVEL READ COMMITTED");
    LOOKS.iter().for_each(|look| drop(run(&mut before, look)));
    run(&mut a, "SET lock_timeout = '1ms'; ALTER TABLE t DROP COLUMN r");
}

/// What a client has done it finds wherever it goes on with its token.
#[test]
fn the_token_follows_what_runs_by_transactions_of_its_own() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    fill(&mut a);
    for (change, found) in [
        (FILLED, "SELECT count(r) FROM t AS OF SYSTEM TIME '{}'"),
        (
            "CREATE INDEX t_v ON t (v)",
            "SELECT 3000 * count(*) FROM pg_indexes AS OF SYSTEM TIME '{}' WHERE indexname = 't_v'",
        ),
        (
            "ALTER TABLE t ADD CONSTRAINT small CHECK (v < 10000)",
            "SELECT 3000 * count(*) FROM pg_constraint AS OF SYSTEM TIME '{}' WHERE conname = 'small'",
        ),
    ] {
        run(&mut a, change);
        let token = run(&mut a, "SHOW timeball.token").remove(0);
        assert_eq!(run(&mut a, &found.replace("{}", &token)), ["3000"], "{change}");
    }
}

/// Whoever writes waits at the gate, whatever the statement is called that does.
#[test]
fn whatever_writes_waits_at_a_gate() {
    let db = open(MemoryKv::new());
    let (mut a, mut before, mut beside, mut asking) = (session(&db), session(&db), session(&db), session(&db));
    fill(&mut a);
    run(
        &mut a,
        "CREATE TABLE p (id int PRIMARY KEY, v int); INSERT INTO p SELECT i, i FROM generate_series(0, 3000) AS g (i)",
    );
    run(&mut a, "ALTER TABLE t ADD FOREIGN KEY (v) REFERENCES p ON UPDATE CASCADE DEFERRABLE; CREATE TABLE c (u int)");
    run(&mut before, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 7 WHERE id = 5");
    run(&mut asking, "SET lock_timeout = '10ms'; PREPARE writes AS UPDATE t SET v = 8 WHERE id = 6");
    let changing = thread::spawn(move || {
        run(&mut a, FILLED);
        a
    });
    let mut looking = session(&db);
    until(&mut looking, LOCK_WAITS, "1");
    run(&mut beside, "BEGIN; UPDATE t SET v = 9 WHERE id = 8");
    run(&mut before, "COMMIT");
    until_state(&mut asking, "UPDATE t SET v = 8 WHERE id = 6", "55P03");
    for writes in [
        "EXECUTE writes",
        "EXPLAIN ANALYZE UPDATE t SET v = 8 WHERE id = 6",
        "EXPLAIN ANALYZE EXECUTE writes",
        "COPY (UPDATE t SET v = 8 WHERE id = 6 RETURNING v) TO STDOUT",
        "WITH w AS (DELETE FROM t WHERE id = 6 RETURNING v) SELECT * FROM w",
        "SELECT * FROM t WHERE id = 6 FOR UPDATE",
        "BEGIN; DECLARE x CURSOR FOR SELECT * FROM t WHERE id = 6 FOR UPDATE; FETCH x",
        "UPDATE p SET id = 10000 WHERE id = 6",
        "TRUNCATE t",
        "DROP TABLE t",
    ] {
        assert_eq!(state_of(&mut asking, writes), "55P03", "{writes}");
        run(&mut asking, "ROLLBACK");
    }
    // Who only reads, or only writes elsewhere, does not wait.
    for reads in ["EXPLAIN UPDATE t SET v = 8 WHERE id = 6", "SELECT count(*) FROM t", "INSERT INTO c VALUES (1)"] {
        assert_eq!(state_of(&mut asking, reads), "00000", "{reads}");
    }
    run(&mut beside, "COMMIT");
    let mut a = changing.join().expect("the change");
    assert_eq!(run(&mut a, "SELECT count(r) FROM t"), ["3000"]);
}

/// A change holds a table under one transaction, and waits under another: who waits for it behind the first is found in its way behind the second.
#[test]
fn a_deadlock_through_a_gate_is_found() {
    let db = open(MemoryKv::new());
    let (mut a, mut b, mut asking) = (session(&db), session(&db), session(&db));
    fill(&mut a);
    run(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED; CREATE SEQUENCE t_s_seq");
    let changing = thread::spawn(move || state_of(&mut a, "ALTER TABLE t ADD COLUMN s serial, ADD COLUMN z int"));
    // Behind the gate, for the name of the sequence that it makes.
    until(&mut asking, KEY_WAITS, "1");
    // It would wait for the gate, for ever.
    run(&mut b, "SET lock_timeout = '20s'");
    let written = state_of(&mut b, "INSERT INTO t VALUES (500000, 1, 500000)");
    run(&mut b, "ROLLBACK");
    let states = [written, changing.join().expect("the change")];
    assert!(states.iter().filter(|state| *state == "40P01").count() == 1, "{states:?}");
    assert!(states.iter().filter(|state| *state == "00000").count() == 1, "{states:?}");
    run(&mut b, "SET lock_timeout = '10ms'; INSERT INTO t VALUES (500001, 1, 500001)");
}

/// Two that each have written to one table, and come to the gate of the other's.
#[test]
fn a_deadlock_of_two_gates_is_found() {
    let db = open(MemoryKv::new());
    let (mut a, b, mut asking) = (session(&db), session(&db), session(&db));
    fill(&mut a);
    run(&mut a, "CREATE TABLE s (id int PRIMARY KEY, v int)");
    run(&mut a, "INSERT INTO s SELECT i, i FROM generate_series(1, 3000) AS g (i)");
    let writers = |id: u32| {
        ["t", "s"].map(|table| {
            let mut own = session(&db);
            run(&mut own, "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '20s'");
            run(&mut own, &format!("UPDATE {table} SET v = 7 WHERE id = {id}"));
            own
        })
    };
    let before = writers(5);
    let changing = [(a, "t"), (b, "s")].map(|(mut own, table)| {
        let sql = format!("ALTER TABLE {table} ADD COLUMN r float8 NOT NULL DEFAULT random(), ADD COLUMN z int");
        thread::spawn(move || run(&mut own, &sql))
    });
    until(&mut asking, LOCK_WAITS, "2");
    // Each holds the version of its table; behind it the change waits for that.
    let [mut first, mut second] = writers(6);
    before.into_iter().for_each(|mut own| drop(run(&mut own, "COMMIT")));
    until(&mut asking, KEY_WAITS, "2");
    let other =
        thread::spawn(move || ["UPDATE t SET v = 9 WHERE id = 7", "COMMIT"].map(|sql| state_of(&mut second, sql)));
    let own = ["UPDATE s SET v = 9 WHERE id = 7", "COMMIT"].map(|sql| state_of(&mut first, sql));
    let both = [own, other.join().expect("the other")];
    let count = |expected: &str| both.iter().filter(|states| states[0] == expected).count();
    assert_eq!((count("40P01"), count("00000")), (1, 1), "{both:?}");
    changing.into_iter().for_each(|change| drop(change.join().expect("the change")));
}

/// `lock_timeout` ends the wait of the change at the version, too; what a block has done before it came to the gate stays done.
#[test]
fn waits_at_a_gate_end_by_their_time() {
    let db = open(MemoryKv::new());
    let (mut a, mut beside, mut other, mut asking) = (session(&db), session(&db), session(&db), session(&db));
    fill(&mut a);
    run(&mut asking, "CREATE TABLE c (id int)");
    for (timeout, expected) in [("1s", "55P03"), ("0", "00000")] {
        run(&mut a, &format!("SET lock_timeout = '{timeout}'"));
        run(&mut beside, "BEGIN; UPDATE t SET v = 9 WHERE id = 8");
        let changing = thread::spawn(move || {
            let state = state_of(&mut a, FILLED);
            (a, state)
        });
        until(&mut asking, LOCK_WAITS, "1");
        run(&mut other, "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE t SET v = 9 WHERE id = 9");
        // The version before is not in use any more; that which is held is. (Time that passes as it is looked at ends no wait for a session, but one for a key.)
        run(&mut beside, "COMMIT");
        if expected == "00000" {
            until(&mut asking, KEY_WAITS, "1");
            // A block comes to the gate, hears that it would wait too long, and goes on without that.
            run(&mut asking, "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10ms'");
            run(&mut asking, "INSERT INTO c VALUES (1); SAVEPOINT before");
            assert_eq!(state_of(&mut asking, "DELETE FROM t WHERE id = 10"), "55P03");
            run(&mut asking, "ROLLBACK TO before; INSERT INTO c VALUES (2); COMMIT");
            assert_eq!(run(&mut asking, "SELECT count(*) FROM c"), ["2"]);
            run(&mut other, "ROLLBACK");
        }
        let state;
        (a, state) = changing.join().expect("the change");
        assert_eq!(state, expected);
        run(&mut other, "COMMIT");
    }
}

/// What stands between two statements of a block.
const THEN: [&str; 6] = [
    "",
    "SAVEPOINT s",
    "SAVEPOINT s; SELECT 1",
    "SAVEPOINT s; RELEASE s",
    "SAVEPOINT s; INSERT INTO c VALUES (2); ROLLBACK TO s",
    "SET LOCAL work_mem = '8MB'; SHOW work_mem",
];

/// A driver binds before it executes. What Bind has relied on is not what the repetition behind the gate goes by.
#[test]
fn what_is_bound_before_a_gate_runs_behind_it() {
    let db = open(MemoryKv::new());
    let (mut a, mut holding) = (session(&db), session(&db));
    fill(&mut a);
    run(&mut a, "CREATE TABLE c (u int)");
    let begin = "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO c VALUES (1)";
    for (round, then) in THEN.into_iter().enumerate() {
        let mut block = session(&db);
        run(&mut block, &format!("{begin}; {then}"));
        // With the token in its hands the change waits for this lock.
        run(&mut holding, "SELECT pg_advisory_lock(7)");
        let change = format!(
            "ALTER TABLE t ADD COLUMN r{round} bool DEFAULT (random() > 2 OR pg_advisory_lock_shared(7) IS NULL)"
        );
        let changing = thread::spawn(move || {
            let state = state_of(&mut a, &change);
            (a, state)
        });
        until(&mut holding, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "1");
        block.parse("", "UPDATE t SET v = $1 WHERE id = 6", &[]).expect("Parse");
        block.bind("", "", &[Some(b"60")], &[], &[]).expect("Bind");
        let executing = thread::spawn(move || {
            let done = block.execute("", 0, true, &mut Rows::default()).and_then(|_| block.sync());
            (done.map_err(|e| e.to_string()), state_of(&mut block, "COMMIT"))
        });
        until(&mut holding, KEY_WAITS, "2");
        run(&mut holding, "SELECT pg_advisory_unlock(7)");
        assert_eq!(executing.join().expect("a writer"), (Ok(()), "00000".into()), "{then}");
        let state;
        (a, state) = changing.join().expect("the change");
        assert_eq!(state, "00000", "{then}");
        run(&mut a, "SELECT pg_advisory_unlock_all()");
        let found = run(&mut a, &format!("SELECT (SELECT count(*) FROM c), r{round}, v FROM t WHERE id = 6"));
        assert_eq!(found, [format!("{}|f|60", round + 1)]);
        run(&mut a, "UPDATE t SET v = 6 WHERE id = 6");
    }
}

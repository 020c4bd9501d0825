//! Who would write by what an open block has changed waits until the block is over (decision 239).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::circles::{Node, aside};
use super::waits::{KEY_WAITS, LOCK_WAITS, until, until_state};
use super::{Rows, open, run, session, state_of};
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions, Session, Startup};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// Changes of `t`, and what the writer of it hears when the block has committed, if that is another table then.
const CHANGES: [(&str, &str); 16] = [
    ("ALTER TABLE t ADD COLUMN x int", "00000"),
    ("ALTER TABLE t ADD COLUMN x int NOT NULL DEFAULT 5", "00000"),
    ("ALTER TABLE t ADD COLUMN x float8 DEFAULT random()", "00000"),
    ("ALTER TABLE t DROP COLUMN u", "00000"),
    ("ALTER TABLE t RENAME COLUMN v TO w", "42703"),
    ("ALTER TABLE t RENAME TO tt", "42P01"),
    ("ALTER TABLE t ALTER COLUMN v SET DEFAULT 7", "00000"),
    ("ALTER TABLE t ALTER COLUMN v TYPE bigint", "00000"),
    ("ALTER TABLE t ALTER COLUMN v SET NOT NULL", "00000"),
    ("ALTER TABLE t ADD CHECK (v < 1000)", "00000"),
    ("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (u) REFERENCES p", "00000"),
    ("COMMENT ON TABLE t IS 'x'", "00000"),
    ("CREATE INDEX ON t (v)", "00000"),
    ("CREATE TABLE n (id int REFERENCES t)", "00000"),
    ("TRUNCATE t", "00000"),
    ("DROP TABLE t", "42P01"),
];

fn database() -> Arc<Database> {
    let db = open(MemoryKv::new());
    tables(&mut session(&db));
    db
}

fn tables(a: &mut Session) {
    run(
        a,
        "CREATE TABLE t (id int PRIMARY KEY, v int, u int); INSERT INTO t SELECT i, 50, i FROM generate_series(1, 9) AS g (i)",
    );
    run(a, "CREATE TABLE p (id int PRIMARY KEY, v int); INSERT INTO p SELECT generate_series(0, 99)");
    run(a, "CREATE TABLE o (id int PRIMARY KEY, v int); INSERT INTO o SELECT generate_series(0, 99)");
}

fn begun(session: &mut Session, level: &str) {
    run(session, &format!("BEGIN ISOLATION LEVEL {level}"));
}

/// Each change, first in its block or behind another statement, at each level, beside those who come then: nobody hears what PostgreSQL would not tell him.
#[test]
fn who_writes_behind_a_change_of_a_block_waits_for_its_end() {
    for level in LEVELS {
        for (number, (change, changed)) in CHANGES.into_iter().enumerate() {
            for (end, expected) in [("COMMIT", changed), ("ROLLBACK", "00000")] {
                let db = database();
                let [mut b, mut lone, mut first, mut behind, mut above, mut asking] = [0; 6].map(|_| session(&db));
                begun(&mut b, level);
                if number % 2 == 0 {
                    run(&mut b, "INSERT INTO o VALUES (100, 1)");
                }
                run(&mut b, change);
                run(&mut lone, "SET default_transaction_isolation = 'read committed'");
                begun(&mut first, "READ COMMITTED");
                begun(&mut behind, "READ COMMITTED");
                begun(&mut above, "SERIALIZABLE");
                run(&mut behind, "UPDATE o SET v = 1 WHERE id = 1");
                let write = |id: usize| format!("UPDATE t SET v = 70 WHERE id = {id}");
                let writers = [
                    aside(lone, &[&write(1)]),
                    aside(first, &[&write(2), "COMMIT"]),
                    aside(behind, &[&write(3), "UPDATE o SET v = 2 WHERE id = 2", "COMMIT"]),
                    aside(above, &[&write(4), "COMMIT"]),
                ];
                until(&mut asking, KEY_WAITS, "4");
                // Who reads goes on, and so does who writes to what has not changed.
                run(&mut asking, "SELECT count(*) FROM t; INSERT INTO o VALUES (101, 1)");
                assert_eq!(state_of(&mut b, end), "00000", "{change} at {level}");
                for writer in writers {
                    let (_, states) = writer.join().expect("a writer");
                    let heard = states.iter().find(|state| *state != "00000").map_or("00000", |state| state);
                    assert_eq!(heard, expected, "{change} at {level}, {end}: {states:?}");
                }
            }
        }
    }
}

/// The control of the test above.
#[test]
fn who_writes_behind_a_change_of_a_block_is_refused_where_nobody_is_kept_out() {
    let options = DatabaseOptions { keeps_out: false, ..DatabaseOptions::default() };
    let db = Database::open(Arc::new(MemoryKv::new()), options).expect("open");
    let [mut b, mut w] = [0; 2].map(|_| session(&db));
    tables(&mut b);
    for change in
        ["ALTER TABLE t ADD COLUMN x int", "ALTER TABLE t ALTER COLUMN v SET DEFAULT 7", "CREATE INDEX ON t (v)"]
    {
        begun(&mut b, "READ COMMITTED");
        run(&mut b, change);
        begun(&mut w, "READ COMMITTED");
        run(&mut w, "UPDATE t SET v = 70 WHERE id = 1");
        let states = [state_of(&mut b, "COMMIT"), state_of(&mut w, "COMMIT")];
        assert!(states.contains(&"40001".to_owned()), "{change}: {states:?}");
    }
}

/// Who goes by the name of a schema, too.
#[test]
fn who_goes_by_the_name_of_a_schema_waits() {
    let db = database();
    let [mut a, mut b, mut w, mut asking] = [0; 4].map(|_| session(&db));
    run(&mut a, "CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY, v int); INSERT INTO s.t VALUES (1, 1)");
    begun(&mut w, "READ COMMITTED");
    run(&mut w, "UPDATE s.t SET v = 2");
    // Alone, and in a block.
    let changing = aside(a, &["ALTER SCHEMA s RENAME TO r"]);
    until(&mut asking, LOCK_WAITS, "1");
    run(&mut w, "COMMIT");
    assert_eq!(changing.join().expect("the change").1, ["00000"]);
    run(&mut b, "BEGIN; ALTER SCHEMA r RENAME TO s");
    let writer = aside(w, &["UPDATE r.t SET v = 3", "UPDATE s.t SET v = 3"]);
    until(&mut asking, KEY_WAITS, "1");
    run(&mut asking, "UPDATE t SET v = 3");
    run(&mut b, "COMMIT");
    assert_eq!(writer.join().expect("the writer").1, ["42P01", "00000"]);
}

/// Who has written to the table before is waited for, at each level, first in the block and behind other statements; who comes meanwhile does not starve the change.
#[test]
fn who_has_written_before_is_waited_for() {
    for level in LEVELS {
        for first in ["", "; INSERT INTO o VALUES (100, 1)"] {
            let db = database();
            let [mut b, mut before, mut later, mut asking] = [0; 4].map(|_| session(&db));
            begun(&mut before, "READ COMMITTED");
            run(&mut before, "UPDATE t SET v = 1 WHERE id = 1");
            run(&mut b, &format!("BEGIN ISOLATION LEVEL {level}{first}"));
            let changing = aside(b, &["ALTER TABLE t ADD COLUMN x int", "ALTER TABLE p ADD COLUMN x int", "COMMIT"]);
            until(&mut asking, LOCK_WAITS, "1");
            begun(&mut later, "READ COMMITTED");
            run(&mut later, "UPDATE o SET v = 1 WHERE id = 1");
            let later = aside(later, &["UPDATE t SET v = 2 WHERE id = 2", "COMMIT"]);
            run(&mut before, "UPDATE t SET v = 1 WHERE id = 3; COMMIT");
            assert_eq!(changing.join().expect("the block").1, ["00000"; 3], "{level}{first}");
            assert_eq!(later.join().expect("the writer").1, ["00000"; 2], "{level}{first}");
            assert_eq!(run(&mut asking, "SELECT id, v, x FROM t WHERE id < 4 ORDER BY id"), ["1|1|", "2|2|", "3|1|"]);
        }
    }
}

/// What is undone keeps nobody waiting; nor does what makes nothing, or something new. Its own block goes on.
#[test]
fn what_is_undone_bars_nobody() {
    let db = database();
    let [mut b, mut w] = [0; 2].map(|_| session(&db));
    run(&mut w, "SET lock_timeout = '5ms'");
    begun(&mut b, "READ COMMITTED");
    run(&mut b, "SAVEPOINT s; ALTER TABLE t ADD COLUMN x int; UPDATE t SET x = 1 WHERE id = 1");
    assert_eq!(state_of(&mut w, "UPDATE t SET v = 7 WHERE id = 2"), "55P03");
    run(&mut b, "ROLLBACK TO s; ALTER TABLE p ADD COLUMN x int");
    run(&mut w, "UPDATE t SET v = 7 WHERE id = 2");
    assert_eq!(state_of(&mut w, "UPDATE p SET v = 7 WHERE id = 2"), "55P03");
    run(
        &mut b,
        "ALTER TABLE t ADD COLUMN y int; ALTER TABLE t ADD COLUMN z int; INSERT INTO t (id, z) VALUES (20, 1); CREATE VIEW e AS SELECT * FROM t",
    );
    assert_eq!(state_of(&mut w, "UPDATE t SET v = 7 WHERE id = 3"), "55P03");
    run(&mut b, "INSERT INTO t (id) SELECT id + 30 FROM e; COMMIT");
    run(&mut w, "UPDATE t SET v = 7 WHERE id = 3; UPDATE p SET v = 7 WHERE id = 2");
    run(
        &mut b,
        "BEGIN; CREATE TABLE IF NOT EXISTS t (id int); CREATE TABLE n (id int PRIMARY KEY); ALTER TABLE n ADD COLUMN m int; CREATE INDEX ON n (m)",
    );
    run(&mut w, "UPDATE t SET v = 8 WHERE id = 3");
    // Views and sequences have one version; the block that makes one anew goes by it.
    run(
        &mut b,
        "CREATE OR REPLACE VIEW e AS SELECT * FROM t WHERE v < 60; UPDATE o SET v = (SELECT count(*) FROM e) WHERE id = 3",
    );
    assert_eq!(state_of(&mut w, "UPDATE o SET v = (SELECT count(*) FROM e) WHERE id = 4"), "55P03");
    // A statement that fails ends its block, and so does who leaves.
    assert_eq!(state_of(&mut b, "ALTER TABLE t DROP COLUMN nothing"), "42703");
    run(&mut w, "UPDATE o SET v = (SELECT count(*) FROM e) WHERE id = 4");
    run(&mut b, "ROLLBACK; BEGIN; DROP TABLE t CASCADE");
    assert_eq!(state_of(&mut w, "UPDATE t SET v = 9 WHERE id = 3"), "55P03");
    drop(b);
    run(&mut w, "UPDATE t SET v = 9 WHERE id = 3");
}

/// All ways to write wait; and what ends a wait ends this one.
#[test]
fn whatever_writes_waits_and_a_wait_ends() {
    let db = database();
    let [mut b, mut w, mut asking] = [0; 3].map(|_| session(&db));
    run(&mut w, "PREPARE later AS UPDATE t SET v = $1 WHERE id = 5; EXECUTE later (1); SET lock_timeout = '5ms'");
    run(
        &mut asking,
        "CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t ON DELETE CASCADE); CREATE INDEX ON c (t)",
    );
    run(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED; ALTER TABLE t ADD COLUMN x int DEFAULT 5");
    for write in [
        "EXECUTE later (2)",
        "INSERT INTO t VALUES (1, 2, 3) ON CONFLICT (id) DO UPDATE SET v = 1",
        "INSERT INTO t VALUES (1, 2, 3) ON CONFLICT DO NOTHING",
        "DELETE FROM t WHERE id = 5",
        "SELECT * FROM t WHERE id = 5 FOR UPDATE",
        "SELECT * FROM t WHERE id = 5 FOR KEY SHARE",
        "WITH d AS (DELETE FROM t WHERE id = 5 RETURNING *) SELECT * FROM d",
        "EXPLAIN ANALYZE UPDATE t SET v = 1",
        "COPY (DELETE FROM t RETURNING *) TO STDOUT",
        "BEGIN ISOLATION LEVEL READ COMMITTED; DECLARE c CURSOR FOR SELECT * FROM t FOR UPDATE; FETCH c",
        "ROLLBACK; INSERT INTO c VALUES (1, 1)",
        "COPY t (id, v) FROM STDIN",
        "INSERT INTO o SELECT id + 200, v FROM t",
    ] {
        assert_eq!(state_of(&mut w, write), "55P03", "{write}");
    }
    run(&mut w, "SELECT * FROM t, c; RESET lock_timeout");
    let interrupt = Interrupt::default();
    let startup = Startup { user: "root".into(), database: "postgres".into(), ..Startup::default() };
    let mut other = Session::new(db.clone(), startup, interrupt.clone()).expect("session");
    let cancelled = thread::spawn(move || state_of(&mut other, "UPDATE t SET v = 1 WHERE id = 6"));
    until(&mut asking, KEY_WAITS, "1");
    interrupt.raise();
    assert_eq!(cancelled.join().expect("the writer"), "57014");
    let mut copying = session(&db);
    let copied = thread::spawn(move || {
        let mut out = Rows::default();
        copying.simple_query("COPY t (id, v) FROM STDIN", &mut out).expect("COPY");
        copying.copy_data(b"77\t7\n").and_then(|()| copying.copy_done(&mut out)).map_err(|e| e.to_string())
    });
    let prepared =
        aside(w, &["EXECUTE later (3)", "INSERT INTO t VALUES (1, 2, 3) ON CONFLICT (id) DO UPDATE SET v = 1"]);
    // A change that is a transaction waits, too.
    let changed = aside(session(&db), &["ALTER TABLE t ADD COLUMN y int"]);
    until(&mut asking, KEY_WAITS, "3");
    run(&mut b, "COMMIT");
    assert_eq!(copied.join().expect("the load"), Ok(()));
    assert_eq!(prepared.join().expect("the writer").1, ["00000"; 2]);
    assert_eq!(changed.join().expect("the change").1, ["00000"]);
    assert_eq!(run(&mut asking, "SELECT v, x, y FROM t WHERE id IN (1, 5, 77) ORDER BY id"), ["1|5|", "3|5|", "7|5|"]);
}

/// A block that waits for who waits for it is a deadlock, as it is for any two.
#[test]
fn circles_are_deadlocks() {
    for level in LEVELS {
        for (of_b, second) in [
            ("ALTER TABLE t ADD COLUMN x int", "UPDATE o SET v = 2 WHERE id = 1"),
            ("ALTER TABLE t ADD COLUMN x int", "ALTER TABLE o ADD COLUMN x int"),
            ("UPDATE t SET v = 2 WHERE id = 1", "ALTER TABLE o ADD COLUMN x int"),
        ] {
            let db = database();
            let [mut b, mut w, mut asking] = [0; 3].map(|_| session(&db));
            begun(&mut w, "READ COMMITTED");
            run(&mut w, "UPDATE o SET v = 1 WHERE id = 1");
            begun(&mut b, level);
            run(&mut b, of_b);
            let waiting = aside(w, &["UPDATE t SET v = 1 WHERE id = 1", "COMMIT"]);
            until(&mut asking, KEY_WAITS, "1");
            assert_eq!(state_of(&mut b, second), "40P01", "{of_b}; {second} at {level}");
            run(&mut b, "ROLLBACK");
            assert_eq!(waiting.join().expect("the writer").1, ["00000"; 2], "{of_b}; {second} at {level}");
        }
    }
}

/// Who waits has not yet written to the other tables of his statement: a block that changes these does not wait for him.
#[test]
fn who_waits_is_not_waited_for() {
    let db = database();
    let [mut b, mut w, mut above, mut asking] = [0; 4].map(|_| session(&db));
    run(&mut b, "CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t, p int REFERENCES p)");
    begun(&mut b, "READ COMMITTED");
    run(&mut b, "ALTER TABLE t ADD COLUMN x int");
    begun(&mut above, "SERIALIZABLE");
    run(&mut above, "UPDATE o SET v = 1 WHERE id = 1");
    let all =
        [aside(w, &["INSERT INTO c VALUES (1, 1, 1)"]), aside(above, &["INSERT INTO c VALUES (2, 2, 2)", "COMMIT"])];
    until(&mut asking, KEY_WAITS, "2");
    run(&mut b, "ALTER TABLE p ADD COLUMN x int; ALTER TABLE c ADD COLUMN x int; ROLLBACK");
    for writer in all {
        let (_, states) = writer.join().expect("a writer");
        assert!(states.iter().all(|state| state == "00000"), "{states:?}");
    }
    w = session(&db);
    assert_eq!(run(&mut w, "SELECT count(*) FROM c"), ["2"]);
}

/// Above READ COMMITTED who has read before does not see the table as it is by then; if that has not changed, he goes on.
#[test]
fn above_read_committed_who_has_read_before_is_refused_if_it_has_changed() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        for (end, expected) in [("ROLLBACK", ["00000", "00000"]), ("COMMIT", ["40001", "00000"])] {
            let db = database();
            let [mut b, mut w, mut asking] = [0; 3].map(|_| session(&db));
            run(&mut b, "BEGIN; ALTER TABLE t ADD COLUMN x int");
            begun(&mut w, level);
            run(&mut w, "SELECT * FROM o WHERE id = 1");
            let writer = aside(w, &["UPDATE t SET v = 1 WHERE id = 1", "COMMIT"]);
            until(&mut asking, KEY_WAITS, "1");
            run(&mut b, end);
            assert_eq!(writer.join().expect("the writer").1, expected, "{level}, {end}");
        }
    }
}

/// At all nodes; and if the block's is gone nobody waits.
#[test]
fn a_block_bars_at_other_nodes() {
    let nodes = Node::all(2);
    let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
    let mut a = session(&one);
    let [mut b, mut w, mut asking] = [0; 3].map(|_| session(&two));
    tables(&mut a);
    for end in ["COMMIT", "ROLLBACK"] {
        run(&mut a, "BEGIN; INSERT INTO o VALUES (200, 1); ALTER TABLE t ADD COLUMN x int");
        let writer = aside(w, &["UPDATE t SET v = 1 WHERE id = 1", "UPDATE t SET v = 2 WHERE id = 2"]);
        until(&mut asking, LOCK_WAITS, "1");
        run(&mut a, end);
        let states;
        (w, states) = writer.join().expect("the writer");
        assert_eq!(states, ["00000"; 2], "{end}");
        run(&mut a, "ALTER TABLE t DROP COLUMN IF EXISTS x; DELETE FROM o WHERE id = 200");
    }
    // Of the other node nobody hears any more.
    run(&mut b, "BEGIN; ALTER TABLE t ADD COLUMN x int");
    run(&mut a, "SET lock_timeout = '5ms'");
    assert_eq!(state_of(&mut a, "UPDATE t SET v = 3 WHERE id = 3"), "55P03");
    nodes[1].silence();
    drop(b);
    until_state(&mut a, "UPDATE t SET v = 3 WHERE id = 3", "00000");
}

/// Who waits for a row of the block is not waited for, and goes by what the table is behind it, whether the row has changed or not.
#[test]
fn who_waits_for_a_row_of_the_block_goes_by_what_is_then() {
    for held in ["UPDATE t SET v = 1 WHERE id = 1", "SELECT * FROM t WHERE id = 1 FOR UPDATE"] {
        for (first, how) in [
            ("SELECT 1", ""),
            ("UPDATE o SET v = 1 WHERE id = 1", ""),
            ("SELECT 1", "EXPLAIN ANALYZE "),
            ("UPDATE o SET v = 1 WHERE id = 1", "EXPLAIN ANALYZE "),
        ] {
            let db = database();
            let [mut b, mut w, mut asking] = [0; 3].map(|_| session(&db));
            begun(&mut b, "READ COMMITTED");
            run(&mut b, held);
            begun(&mut w, "READ COMMITTED");
            run(&mut w, first);
            let writer = aside(w, &[&format!("{how}UPDATE t SET v = 2 WHERE id = 1"), "COMMIT"]);
            until(&mut asking, KEY_WAITS, "1");
            run(&mut b, "ALTER TABLE t ADD COLUMN x int DEFAULT 5; COMMIT");
            assert_eq!(writer.join().expect("the writer").1, ["00000"; 2], "{held}, {first}, {how}");
            assert_eq!(run(&mut asking, "SELECT v, x FROM t WHERE id = 1"), ["2|5"]);
        }
    }
}

/// Words of a version that has ended are forgotten, though nobody asks for them any more.
#[test]
fn words_that_are_left_are_forgotten() {
    let nodes = Node::all(2);
    let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
    let (mut a, mut b) = (session(&one), session(&two));
    tables(&mut a);
    run(&mut b, "BEGIN; ALTER TABLE t ADD COLUMN x int");
    nodes[1].silence();
    drop(b);
    assert_eq!(one.open_barriers(), 2);
    run(&mut a, "ALTER TABLE t ADD COLUMN y int; ALTER TABLE t ADD COLUMN z int");
    while one.drain_garbage(&Interrupt::default()).expect("drain") {}
    assert_eq!(one.open_barriers(), 0);
}

/// The first change of a block gives its locks up where others have written: who stands at its barrier then does not keep it waiting.
#[test]
fn who_stood_at_a_barrier_that_was_given_up_is_not_in_the_way() {
    let nodes = Node::all(2);
    let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
    let (mut a, mut before) = (session(&one), session(&one));
    tables(&mut a);
    begun(&mut before, "READ COMMITTED");
    run(&mut before, "UPDATE t SET v = 1 WHERE id = 1");
    let writer = Arc::new(Mutex::new(None));
    let (db, into) = (two.clone(), writer.clone());
    *nodes[0].beside.lock().expect("lock") = Some(Box::new(move || {
        let [mut w, mut asking] = [0; 2].map(|_| session(&db));
        begun(&mut w, "READ COMMITTED");
        run(&mut w, "UPDATE o SET v = 1 WHERE id = 1");
        *into.lock().expect("lock") = Some(aside(w, &["UPDATE t SET v = 2 WHERE id = 2", "COMMIT"]));
        until(&mut asking, LOCK_WAITS, "1");
        // However long others take, no time passes.
    }));
    begun(&mut a, "READ COMMITTED");
    let look_us = nodes[0].look_us.clone();
    look_us.store(0, Ordering::Relaxed);
    let changing = aside(a, &["ALTER TABLE t ADD COLUMN x int DEFAULT 5", "COMMIT"]);
    let mut asking = session(&one);
    until(&mut asking, LOCK_WAITS, "1");
    run(&mut before, "COMMIT");
    // Time stands still: a wait for each other would be for good.
    assert_eq!(changing.join().expect("the block").1, ["00000"; 2]);
    look_us.store(1000, Ordering::Relaxed);
    let writer = writer.lock().expect("lock").take().expect("others were asked");
    assert_eq!(writer.join().expect("the writer").1, ["00000"; 2]);
    assert_eq!(run(&mut asking, "SELECT id, v, x FROM t WHERE id < 3 ORDER BY id"), ["1|1|5", "2|2|5"]);
}

/// Drivers have a statement parsed, bound, then executed, by messages of their own: what it is planned by before it runs it does not write by.
#[test]
fn who_was_told_of_a_statement_before_goes_by_what_is_when_it_runs() {
    for first in ["SELECT 1", "UPDATE o SET v = 1 WHERE id = 1"] {
        for bound in [false, true] {
            let db = database();
            let [mut b, mut w] = [0; 2].map(|_| session(&db));
            begun(&mut b, "READ COMMITTED");
            run(&mut b, "ALTER TABLE t ADD COLUMN x int DEFAULT 5");
            begun(&mut w, "READ COMMITTED");
            run(&mut w, first);
            w.parse("s", "UPDATE t SET v = 2 WHERE id = $1", &[]).expect("Parse");
            let bind = |w: &mut Session| w.bind("", "s", &[Some(b"1")], &[], &[]).expect("Bind");
            if bound {
                bind(&mut w);
            }
            run(&mut b, "COMMIT");
            if !bound {
                bind(&mut w);
            }
            w.execute("", 0, true, &mut Rows::default()).expect("Execute");
            w.sync().expect("Sync");
            assert_eq!(state_of(&mut w, "COMMIT"), "00000", "{first}, {bound}");
            assert_eq!(run(&mut b, "SELECT v, x FROM t WHERE id = 1"), ["2|5"]);
        }
    }
}

/// Whoever only asks how a statement would run has not written by it.
#[test]
fn who_has_only_asked_how_it_would_run_waits() {
    for (before, write) in [
        ("EXPLAIN UPDATE t SET v = 2 WHERE id = 1", "UPDATE t SET v = 2 WHERE id = 1"),
        ("SELECT 1", "EXECUTE later"),
        ("EXPLAIN EXECUTE later", "EXECUTE later"),
        ("UPDATE o SET v = 1 WHERE id = 1", "EXECUTE later"),
    ] {
        let db = database();
        let [mut b, mut w, mut asking] = [0; 3].map(|_| session(&db));
        run(&mut w, "PREPARE later AS UPDATE t SET v = 2 WHERE id = 1");
        begun(&mut b, "READ COMMITTED");
        run(&mut b, "ALTER TABLE t ADD COLUMN x int DEFAULT 5");
        begun(&mut w, "READ COMMITTED");
        run(&mut w, before);
        let writer = aside(w, &[write, "COMMIT"]);
        until(&mut asking, KEY_WAITS, "1");
        run(&mut b, "COMMIT");
        assert_eq!(writer.join().expect("the writer").1, ["00000"; 2], "{before}; {write}");
    }
}

/// A cursor that locks its rows waits when it is declared, and goes on behind it; from then on it is waited for.
#[test]
fn a_cursor_that_locks_waits_and_goes_on() {
    for level in LEVELS {
        for (end, first) in [("COMMIT", ""), ("ROLLBACK", ""), ("COMMIT", "; SELECT 1"), ("ROLLBACK", "; SELECT 1")] {
            let db = database();
            let [mut b, mut w, mut asking] = [0; 3].map(|_| session(&db));
            begun(&mut b, "READ COMMITTED");
            run(&mut b, "ALTER TABLE t ADD COLUMN x int DEFAULT 5");
            run(&mut w, &format!("BEGIN ISOLATION LEVEL {level}{first}"));
            let writer = aside(w, &["DECLARE c CURSOR FOR SELECT * FROM t WHERE id = 1 FOR UPDATE", "FETCH c"]);
            until(&mut asking, KEY_WAITS, "1");
            run(&mut b, end);
            let (mut w, states) = writer.join().expect("the writer");
            let is_refused = end == "COMMIT" && level != "READ COMMITTED" && !first.is_empty();
            let expected = if is_refused { ["40001", "25P02"] } else { ["00000", "00000"] };
            assert_eq!(states, expected, "{level}{first}, {end}");
            if is_refused {
                continue;
            }
            run(&mut w, "COMMIT");
            run(
                &mut w,
                &format!("BEGIN ISOLATION LEVEL {level}{first}; DECLARE c CURSOR FOR SELECT * FROM t FOR UPDATE"),
            );
            let changing = aside(b, &["BEGIN", "ALTER TABLE t ADD COLUMN y int", "COMMIT"]);
            until(&mut asking, LOCK_WAITS, "1");
            run(&mut w, "FETCH c; COMMIT");
            assert_eq!(changing.join().expect("the block").1, ["00000"; 3], "{level}{first}, {end}");
        }
    }
}

/// A statement that begins anew keeps the locks of the rows that it has tried; while it waits for a block it does not: the block may wait for who waits for these.
#[test]
fn who_waits_has_given_back_what_he_has_tried() {
    // The first change of a block waits with nothing, and others wait for its words; behind another statement they wait for its lock.
    for is_first in [false, true] {
        let nodes = Node::all(1);
        let db = open(nodes[0].clone());
        let [mut b, mut before, mut anew, mut third, mut asking] = [0; 5].map(|_| session(&db));
        tables(&mut b);
        begun(&mut before, "READ COMMITTED");
        run(&mut before, "UPDATE t SET v = 1 WHERE id = 2");
        begun(&mut anew, "READ COMMITTED");
        run(&mut anew, "SELECT 1");
        let anew = aside(anew, &["UPDATE t SET v = (SELECT v FROM o WHERE id = 7) WHERE id IN (1, 2)", "COMMIT"]);
        until(&mut asking, LOCK_WAITS, "1");
        begun(&mut third, "READ COMMITTED");
        run(&mut third, "UPDATE t SET v = 3 WHERE id = 3");
        let third = aside(third, &["UPDATE t SET v = 3 WHERE id = 1", "COMMIT"]);
        until(&mut asking, LOCK_WAITS, "2");
        begun(&mut b, "READ COMMITTED");
        if !is_first {
            run(&mut b, "UPDATE p SET v = 1 WHERE id = 1");
        }
        // However long others take, no time passes: a wait for each other would be for good.
        let look_us = nodes[0].look_us.swap(0, Ordering::Relaxed);
        let changing = aside(b, &["ALTER TABLE t ADD COLUMN x int DEFAULT 5", "COMMIT"]);
        until(&mut asking, LOCK_WAITS, "3");
        // What the second has read changes as well: he begins anew.
        run(&mut before, "ALTER TABLE o ADD COLUMN z int; UPDATE o SET v = 9 WHERE id = 7; COMMIT");
        assert_eq!(third.join().expect("the third").1, ["00000"; 2], "{is_first}");
        assert_eq!(changing.join().expect("the block").1, ["00000"; 2], "{is_first}");
        nodes[0].look_us.store(look_us, Ordering::Relaxed);
        assert_eq!(anew.join().expect("the second").1, ["00000"; 2], "{is_first}");
        let rows = run(&mut asking, "SELECT id, v, x FROM t WHERE id < 4 ORDER BY id");
        assert_eq!(rows, ["1|9|5", "2|9|5", "3|3|5"], "{is_first}");
    }
}

/// What statements before it have locked stays locked, while a cursor waits to be declared.
#[test]
fn a_cursor_that_waits_keeps_what_others_have_locked() {
    for before in
        ["SELECT 1; SELECT v FROM o WHERE id = 1 FOR UPDATE", "SAVEPOINT s; SELECT v FROM o WHERE id = 1 FOR UPDATE"]
    {
        let db = database();
        let [mut b, mut w, other, mut asking] = [0; 4].map(|_| session(&db));
        run(&mut asking, "UPDATE o SET v = 0");
        begun(&mut b, "READ COMMITTED");
        run(&mut b, "INSERT INTO p VALUES (100, 1); ALTER TABLE t ADD COLUMN x int");
        begun(&mut w, "READ COMMITTED");
        before.split("; ").for_each(|statement| drop(run(&mut w, statement)));
        let declaring = aside(w, &["DECLARE c CURSOR FOR SELECT * FROM t FOR UPDATE"]);
        until(&mut asking, KEY_WAITS, "1");
        let other = aside(other, &["UPDATE o SET v = v + 100 WHERE id = 1"]);
        until(&mut asking, KEY_WAITS, "2");
        run(&mut b, "COMMIT");
        let (mut w, states) = declaring.join().expect("the cursor");
        assert_eq!(states, ["00000"], "{before}");
        run(&mut w, "UPDATE o SET v = 1 WHERE id = 1; COMMIT");
        assert_eq!(other.join().expect("the other").1, ["00000"], "{before}");
        assert_eq!(run(&mut asking, "SELECT v FROM o WHERE id = 1"), ["101"], "{before}");
    }
}

/// EXPLAIN ANALYZE of a write has written.
#[test]
fn who_has_explained_and_analyzed_a_write_is_waited_for() {
    let db = database();
    let [mut w, b, mut asking] = [0; 3].map(|_| session(&db));
    begun(&mut w, "READ COMMITTED");
    run(&mut w, "EXPLAIN ANALYZE UPDATE t SET v = 1 WHERE id = 1");
    let changing = aside(b, &["BEGIN", "ALTER TABLE t ADD COLUMN x int DEFAULT 5", "COMMIT"]);
    until(&mut asking, LOCK_WAITS, "1");
    run(&mut w, "UPDATE t SET v = 1 WHERE id = 2; COMMIT");
    assert_eq!(changing.join().expect("the block").1, ["00000"; 3]);
    assert_eq!(run(&mut asking, "SELECT v, x FROM t WHERE id < 3 ORDER BY id"), ["1|5", "1|5"]);
}

/// Until somebody waits for a lock that a session has.
fn until_waited_for(asking: &mut Session, holder: &mut Session) {
    let pid = &run(holder, "SELECT pg_backend_pid()")[0];
    let waits = format!(
        "SELECT count(*) FROM pg_locks AS w JOIN pg_locks AS h USING (page, tuple) WHERE NOT w.granted AND h.granted AND h.pid = {pid}"
    );
    until(asking, &waits, "1");
}

/// Whoever waits for one block is not seen by another that bars something else of his statement meanwhile: he waits for that as well, at every level, whether he can begin anew or not.
#[test]
fn who_has_waited_for_one_block_waits_for_the_next() {
    for (first, write) in [
        ("BEGIN ISOLATION LEVEL READ COMMITTED", "INSERT INTO c VALUES (1, 1, 1, 1)"),
        ("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1", "INSERT INTO c VALUES (1, 1, 1, 1)"),
        ("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1", "EXPLAIN ANALYZE INSERT INTO c VALUES (1, 1, 1, 1)"),
        (
            "BEGIN ISOLATION LEVEL READ COMMITTED",
            "DECLARE cursor CURSOR FOR SELECT t.id FROM t, p, o WHERE t.id = 1 AND p.id = 1 AND o.id = 1 FOR UPDATE",
        ),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM c", "INSERT INTO c VALUES (1, 1, 1, 1)"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM c", "INSERT INTO c VALUES (1, 1, 1, 1)"),
    ] {
        let db = database();
        let [mut one, mut two, mut three, mut w, mut asking] = [0; 5].map(|_| session(&db));
        run(
            &mut asking,
            "CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t, p int REFERENCES p, o int REFERENCES o)",
        );
        run(&mut one, "BEGIN; ALTER TABLE t ADD COLUMN x int");
        run(&mut w, first);
        let writer = aside(w, &[write, "COMMIT"]);
        until_waited_for(&mut asking, &mut one);
        run(&mut two, "BEGIN; ALTER TABLE p ADD COLUMN x int");
        run(&mut one, "ROLLBACK");
        until_waited_for(&mut asking, &mut two);
        run(&mut three, "BEGIN; ALTER TABLE o ADD COLUMN x int");
        run(&mut two, "ROLLBACK");
        until_waited_for(&mut asking, &mut three);
        let end = if first.contains("COMMITTED") { "COMMIT" } else { "ROLLBACK" };
        run(&mut three, end);
        assert_eq!(writer.join().expect("the writer").1, ["00000"; 2], "{first}; {write}");
    }
}

/// Nor is he seen by a change that is its whole transaction.
#[test]
fn who_has_waited_for_a_block_waits_for_a_change() {
    let nodes = Node::all(2);
    let (one, two) = (open(nodes[0].clone()), open(nodes[1].clone()));
    let [mut a, mut first] = [0; 2].map(|_| session(&one));
    tables(&mut a);
    run(&mut a, "CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t, p int REFERENCES p, o int REFERENCES o)");
    // He comes to wait once more than he can begin anew for.
    run(&mut first, "BEGIN; ALTER TABLE t ADD COLUMN x int");
    let [mut second, mut w, mut asking] = [0; 3].map(|_| session(&two));
    begun(&mut w, "READ COMMITTED");
    run(&mut w, "SELECT 1");
    let writer = aside(w, &["INSERT INTO c VALUES (1, 1, 1, 1)"]);
    until(&mut asking, LOCK_WAITS, "1");
    run(&mut second, "BEGIN; ALTER TABLE o ADD COLUMN x int");
    run(&mut first, "ROLLBACK");
    let done = Arc::new(Mutex::new(None));
    let into = done.clone();
    // When the change has asked, and found nobody, he is let go, and has some turns to go on in.
    *nodes[0].beside.lock().expect("lock") = Some(Box::new(move || {
        run(&mut second, "ROLLBACK");
        for _ in 0..200 {
            if !writer.is_finished() {
                run(&mut asking, "SELECT count(*) FROM o");
            }
        }
        *into.lock().expect("lock") = Some(writer);
    }));
    let changed = aside(a, &["ALTER TABLE p ADD COLUMN x int"]);
    assert_eq!(changed.join().expect("the change").1, ["00000"]);
    let writer = done.lock().expect("lock").take().expect("others were asked");
    let (mut w, states) = writer.join().expect("the writer");
    assert_eq!((states, state_of(&mut w, "COMMIT")), (vec!["00000".to_owned()], "00000".to_owned()));
}

/// What a COPY of lines comes to.
fn copied(session: &mut Session, sql: &str, lines: &[u8]) -> String {
    let mut out = Rows::default();
    let copied = session.simple_query(sql, &mut out).and_then(|()| session.copy_data(lines));
    copied.and_then(|()| session.copy_done(&mut out)).map_or_else(|e| e.state.as_str().into(), |()| "00000".into())
}

/// Each change, beside who loads rows: first in his transaction, behind another statement, and alone.
#[test]
fn who_copies_behind_a_change_of_a_block_waits_for_its_end() {
    for (change, changed) in CHANGES {
        for (end, expected) in [("COMMIT", changed), ("ROLLBACK", "00000")] {
            let db = database();
            let [mut b, mut asking] = [0; 2].map(|_| session(&db));
            begun(&mut b, "READ COMMITTED");
            run(&mut b, change);
            let begins = [
                "SET default_transaction_isolation = 'read committed'",
                "BEGIN ISOLATION LEVEL READ COMMITTED",
                "BEGIN ISOLATION LEVEL READ COMMITTED; UPDATE o SET v = 1 WHERE id = 1",
                "BEGIN ISOLATION LEVEL SERIALIZABLE",
            ];
            let writers = begins.iter().enumerate().map(|(number, begin)| {
                let mut w = session(&db);
                run(&mut w, begin);
                let line = format!("{}\t{number}\t{number}\n", 100 + number);
                thread::spawn(move || {
                    let state = copied(&mut w, "COPY t (id, v, u) FROM STDIN", line.as_bytes());
                    (state_of(&mut w, "COMMIT"), state)
                })
            });
            let writers = Vec::from_iter(writers);
            until(&mut asking, KEY_WAITS, "4");
            assert_eq!(state_of(&mut b, end), "00000", "{change}");
            // The table, or the column that is named, may be gone.
            let gone = change == "ALTER TABLE t DROP COLUMN u" && end == "COMMIT";
            let expected = if gone { "42703" } else { expected };
            for writer in writers {
                let (ended, state) = writer.join().expect("a writer");
                assert_eq!((&state[..], &ended[..]), (expected, "00000"), "{change}, {end}");
            }
        }
    }
}

/// Rows that go out are locked as they are read: who has waited for one of a block's goes by what is then, and may write behind that.
#[test]
fn who_copies_what_he_locks_goes_by_what_is_then() {
    for held in ["UPDATE t SET v = 1 WHERE id = 1", "SELECT * FROM t WHERE id = 1 FOR UPDATE"] {
        for first in ["SELECT 1", "UPDATE o SET v = 1 WHERE id = 1"] {
            for mode in ["SHARE", "UPDATE"] {
                let db = database();
                let [mut b, mut w, mut asking] = [0; 3].map(|_| session(&db));
                begun(&mut b, "READ COMMITTED");
                run(&mut b, held);
                begun(&mut w, "READ COMMITTED");
                run(&mut w, first);
                let out = format!("COPY (SELECT * FROM t WHERE id = 1 FOR {mode}) TO STDOUT");
                let writer = aside(w, &[&out, "UPDATE t SET v = 2, x = 6 WHERE id = 1", "COMMIT"]);
                until(&mut asking, KEY_WAITS, "1");
                run(&mut b, "ALTER TABLE t ADD COLUMN x int DEFAULT 5; COMMIT");
                assert_eq!(writer.join().expect("the writer").1, ["00000"; 3], "{held}, {first}, {mode}");
                assert_eq!(run(&mut asking, "SELECT v, x FROM t WHERE id = 1"), ["2|6"]);
            }
        }
    }
}

/// While he stands at a barrier he is nobody's user, so what else he is to write by may end, and nobody says a word of it any more.
#[test]
fn what_has_ended_while_a_block_was_waited_for_is_gone_by_as_it_is() {
    for (waits, write) in [
        (2, "INSERT INTO c VALUES (1, 1, 1, 1)"),
        (1, "EXPLAIN ANALYZE INSERT INTO c VALUES (1, 1, 1, 1)"),
        (1, "COPY (INSERT INTO c VALUES (1, 1, 1, 1) RETURNING *) TO STDOUT"),
    ] {
        let db = database();
        let [mut one, mut two, mut w, mut asking] = [0; 4].map(|_| session(&db));
        run(
            &mut asking,
            "CREATE TABLE c (id int PRIMARY KEY, t int REFERENCES t, p int REFERENCES p, o int REFERENCES o)",
        );
        run(&mut one, "BEGIN; ALTER TABLE t ADD COLUMN x int");
        run(&mut w, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1");
        let writer = aside(w, &[write, "COMMIT"]);
        until_waited_for(&mut asking, &mut one);
        let mut last = one;
        if waits == 2 {
            run(&mut two, "BEGIN; ALTER TABLE p ADD COLUMN x int");
            run(&mut last, "ROLLBACK");
            until_waited_for(&mut asking, &mut two);
            last = two;
        }
        // Alone: it waits for nobody, and is over.
        run(&mut asking, "ALTER TABLE o ADD COLUMN x int");
        run(&mut last, "ROLLBACK");
        assert_eq!(writer.join().expect("the writer").1, ["00000"; 2], "{write}");
        assert_eq!(run(&mut asking, "SELECT * FROM c"), ["1|1|1|1"]);
    }
}

//! Unique keys and references that another open block decides about: whoever checks them waits for it (decisions 69 and 105).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::{Ordering, conflicting, open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::{Database, Session};
use std::sync::Arc;
use std::thread;

/// What a statement of `waiting` comes to that waits until `first` has ended.
fn waits(db: &Arc<Database>, mut waiting: Session, sql: &str, first: &mut Session, end: &str) -> (Session, String) {
    let sql = sql.to_string();
    let waiter = thread::spawn(move || {
        let state = state_of(&mut waiting, &sql);
        (waiting, state)
    });
    let mut asking = session(db);
    while run(&mut asking, "SELECT count(*) FROM pg_locks WHERE NOT granted") == ["0"] {
        assert!(!waiter.is_finished(), "it does not wait");
        thread::yield_now();
    }
    run(first, end);
    waiter.join().expect("the waiter")
}

fn tables(db: &Arc<Database>) -> Session {
    let mut a = session(db);
    run(
        &mut a,
        "CREATE TABLE p (id int PRIMARY KEY, k text UNIQUE); CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p)",
    );
    run(&mut a, "CREATE TABLE cc (id int PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE)");
    run(&mut a, "INSERT INTO p VALUES (1, 'one'), (2, 'two')");
    a
}

/// The tables, with numbers beside the keys.
fn numbered(db: &Arc<Database>) -> Session {
    let mut a = tables(db);
    run(&mut a, "ALTER TABLE p ADD COLUMN n int NOT NULL DEFAULT 0; CREATE TABLE q (i int); INSERT INTO q VALUES (1)");
    run(&mut a, "CREATE SEQUENCE s");
    a
}

const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

#[test]
fn a_key_that_an_open_block_has_inserted_is_waited_for() {
    for (write, error) in [
        ("INSERT INTO p VALUES (9, 'x')", "23505"),
        ("INSERT INTO p VALUES (3, 'nine')", "23505"),
        ("UPDATE p SET k = 'nine' WHERE id = 2", "23505"),
        ("UPDATE p SET id = 9 WHERE id = 2", "23505"),
        ("INSERT INTO p VALUES (9, 'x') ON CONFLICT DO NOTHING", "00000"),
        ("INSERT INTO p VALUES (9, 'x') ON CONFLICT (id) DO UPDATE SET k = 'both'", "00000"),
    ] {
        for (end, expected) in [("COMMIT", error), ("ROLLBACK", "00000")] {
            let db = open(MemoryKv::new());
            let (mut a, mut b) = (tables(&db), session(&db));
            run(&mut a, &format!("{BEGIN}; INSERT INTO p VALUES (9, 'nine')"));
            run(&mut b, &format!("{BEGIN}; SELECT count(*) FROM p"));
            let (mut b, state) = waits(&db, b, write, &mut a, end);
            assert_eq!(state, expected, "{write}; {end}");
            assert_eq!(state_of(&mut b, "COMMIT"), "00000", "{write}; {end}");
        }
    }
}

/// Outside of a block a statement waits as inside of one, and the block, which was first, commits.
#[test]
fn a_lone_statement_waits_for_keys_of_open_blocks() {
    for isolation in ["read committed", "serializable"] {
        for (write, error) in [
            ("INSERT INTO p VALUES (9, 'x')", "23505"),
            ("INSERT INTO p VALUES (3, 'nine')", "23505"),
            ("INSERT INTO p SELECT i, 'k' || i FROM generate_series(7, 12) i", "23505"),
            ("UPDATE p SET k = 'nine' WHERE id = 2", "23505"),
            ("UPDATE p SET id = 9 WHERE id = 2", "23505"),
            ("INSERT INTO p VALUES (9, 'x') ON CONFLICT DO NOTHING", "00000"),
        ] {
            for (end, expected) in [("COMMIT", error), ("ROLLBACK", "00000")] {
                let db = open(MemoryKv::new());
                let (mut a, mut b) = (tables(&db), session(&db));
                run(&mut b, &format!("SET default_transaction_isolation = '{isolation}'"));
                run(&mut a, &format!("{BEGIN}; INSERT INTO p VALUES (9, 'nine')"));
                let (mut b, state) = waits(&db, b, write, &mut a, end);
                assert_eq!(state, expected, "{isolation}: {write}; {end}");
                let nine = if end == "COMMIT" { "nine" } else { "none" };
                let found = "SELECT coalesce(max(k), 'none') FROM p WHERE id = 9 AND k = 'nine'";
                assert!(end == "ROLLBACK" || run(&mut b, found) == [nine], "{isolation}: {write}; {end}");
            }
        }
    }
}

/// A key that its row is about to lose is taken until that is certain.
#[test]
fn a_key_that_an_open_block_gives_up_is_waited_for() {
    let gone = [
        "DELETE FROM p WHERE id = 1",
        "UPDATE p SET k = 'other' WHERE id = 1",
        "UPDATE p SET id = 7, k = 'other' WHERE id = 1",
    ];
    for first in gone {
        for second in [
            "INSERT INTO p VALUES (3, 'one')",
            "UPDATE p SET k = 'one' WHERE id = 2",
            "UPDATE p SET id = 8, k = 'one' WHERE id = 2",
        ] {
            for begin in [BEGIN, "SET default_transaction_isolation = 'read committed'"] {
                for (end, expected) in [("COMMIT", "00000"), ("ROLLBACK", "23505")] {
                    let db = open(MemoryKv::new());
                    let (mut a, mut b) = (tables(&db), session(&db));
                    run(&mut a, &format!("{BEGIN}; {first}"));
                    run(&mut b, begin);
                    let (mut b, state) = waits(&db, b, second, &mut a, end);
                    assert_eq!(state, expected, "{first}; {second}; {end}");
                    assert_eq!(state_of(&mut b, "COMMIT"), "00000", "{first}; {second}; {end}");
                    assert_eq!(
                        run(&mut b, "SELECT count(*) FROM p WHERE k = 'one'"),
                        ["1"],
                        "{first}; {second}; {end}"
                    );
                }
            }
        }
    }
}

/// A child that is about to go keeps its parent until that is certain; so does one that an action would change.
#[test]
fn a_child_that_an_open_block_deletes_is_waited_for() {
    let (delete, change) = ("DELETE FROM p WHERE id = 1", "UPDATE p SET id = 7 WHERE id = 1");
    for (action, child, parent, committed, rolled_back) in [
        ("NO ACTION", "DELETE FROM ch", delete, "00000", "23503"),
        ("NO ACTION", "DELETE FROM ch", change, "00000", "23503"),
        ("RESTRICT", "DELETE FROM ch", delete, "00000", "23503"),
        ("CASCADE", "DELETE FROM ch", delete, "00000", "00000"),
        ("CASCADE", "UPDATE ch SET n = 1", delete, "00000", "00000"),
        ("CASCADE", "UPDATE ch SET p = 2", delete, "00000", "00000"),
        ("SET NULL", "UPDATE ch SET n = 1", delete, "00000", "00000"),
    ] {
        for (end, expected) in [("COMMIT", committed), ("ROLLBACK", rolled_back)] {
            let db = open(MemoryKv::new());
            let (mut a, mut b) = (tables(&db), session(&db));
            run(&mut a, &format!("CREATE TABLE ch (id int PRIMARY KEY, p int REFERENCES p ON DELETE {action}, n int)"));
            run(&mut a, "INSERT INTO ch VALUES (1, 1, 0)");
            run(&mut a, &format!("{BEGIN}; {child}"));
            run(&mut b, BEGIN);
            let (mut b, state) = waits(&db, b, parent, &mut a, end);
            let told = format!("{action}: {child}; {parent}; {end}");
            assert_eq!(state, expected, "{told}");
            assert_eq!(state_of(&mut b, "COMMIT"), "00000", "{told}");
            assert_eq!(run(&mut b, "SELECT count(*) FROM ch WHERE p NOT IN (SELECT id FROM p)"), ["0"], "{told}");
            if child.ends_with("n = 1") && action == "SET NULL" && end == "COMMIT" {
                assert_eq!(run(&mut b, "SELECT p IS NULL, n FROM ch"), ["t|1"], "{told}");
            }
            if child.ends_with("p = 2") && end == "COMMIT" {
                assert_eq!(run(&mut b, "SELECT p FROM ch"), ["2"], "who does not point at it any more stays");
            }
        }
    }
}

#[test]
fn a_reference_that_an_open_block_decides_about_is_waited_for() {
    let child = "INSERT INTO c VALUES (1, 1)";
    let parent = "DELETE FROM p WHERE id = 1";
    for (first, second, committed) in [
        (parent, child, "23503"),
        (child, parent, "23503"),
        (child, "UPDATE p SET id = 7 WHERE id = 1", "23503"),
        ("UPDATE p SET id = 7 WHERE id = 1", child, "23503"),
        ("INSERT INTO cc VALUES (1, 1)", parent, "00000"),
    ] {
        for (end, expected) in [("COMMIT", committed), ("ROLLBACK", "00000")] {
            let db = open(MemoryKv::new());
            let (mut a, mut b) = (tables(&db), session(&db));
            run(&mut a, &format!("{BEGIN}; {first}"));
            run(&mut b, &format!("{BEGIN}; SELECT count(*) FROM p"));
            let (mut b, state) = waits(&db, b, second, &mut a, end);
            assert_eq!(state, expected, "{first}; {second}; {end}");
            assert_eq!(state_of(&mut b, "COMMIT"), "00000", "{first}; {second}; {end}");
            let orphans = "SELECT count(*) FROM (SELECT p FROM c UNION ALL SELECT p FROM cc) AS s (p) WHERE p NOT IN (SELECT id FROM p)";
            assert_eq!(run(&mut b, orphans), ["0"], "{first}; {second}; {end}");
        }
    }
}

/// Keys go by what changes: who sets them to what they are stands beside whoever refers to the row, and who changes one waits, and sees what came
/// meanwhile.
#[test]
fn a_key_that_is_set_and_stays_keeps_nobody_waiting() {
    let stays = [
        "UPDATE p SET id = 1, k = 'one', n = 7 WHERE id = 1",
        "UPDATE p SET id = id, k = k, n = 7 WHERE k = 'one'",
        "UPDATE p SET id = $$1$$::int, n = 7 WHERE n = 0 AND id < 2",
        "UPDATE p SET id = CASE WHEN id = 2 THEN 9 ELSE id END, n = 7 WHERE id IN (1, 3)",
        "UPDATE p SET id = q.i, n = 7 FROM (VALUES (1)) AS q (i) WHERE p.id = q.i",
        "UPDATE p SET id = q.i, n = 7 FROM q WHERE p.id = 1 AND q.i = 1",
        "UPDATE p SET (id, n) = (SELECT min(i), 7 FROM q) WHERE id = 1",
        "WITH q (i) AS (SELECT 1 LIMIT 1) UPDATE p SET id = i, n = 7 FROM q WHERE p.id = i",
        "INSERT INTO p VALUES (1, 'x', 8) ON CONFLICT (id) DO UPDATE SET id = excluded.id, k = p.k, n = 7",
        "INSERT INTO p VALUES (5, 'one', 8) ON CONFLICT (k) DO UPDATE SET id = p.id, k = excluded.k, n = 7",
    ];
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        for sql in stays {
            let db = open(MemoryKv::new());
            let (mut a, mut b) = (numbered(&db), session(&db));
            run(&mut a, &format!("BEGIN ISOLATION LEVEL {isolation}; INSERT INTO c VALUES (1, 1)"));
            run(&mut b, &format!("SET lock_timeout = '1ms'; BEGIN ISOLATION LEVEL {isolation}"));
            assert_eq!(state_of(&mut b, sql), "00000", "{isolation}: {sql}");
            run(&mut b, "COMMIT");
            run(&mut a, "COMMIT");
            assert_eq!(run(&mut a, "SELECT n FROM p WHERE id = 1"), ["7"], "{isolation}: {sql}");
        }
    }
}

#[test]
fn a_key_that_changes_waits_for_who_refers_to_it() {
    let changes = [
        "UPDATE p SET id = 7, k = 'one' WHERE id = 1",
        "UPDATE p SET id = id + 6, n = 7 WHERE k = 'one'",
        "UPDATE p SET id = id + 6 WHERE n = 0 AND id < 2",
        "UPDATE p SET id = nextval('s') + 6 WHERE id = 1",
        "UPDATE p SET id = q.i FROM (VALUES (7)) AS q (i) WHERE p.id = 1",
        "UPDATE p SET id = q.i + 6 FROM q WHERE p.id = 1 AND q.i = 1",
        "UPDATE p SET (id, n) = (SELECT max(i) + 6, 7 FROM q) WHERE id = 1",
        "WITH q (i) AS (SELECT 7 LIMIT 1) UPDATE p SET id = i FROM q WHERE p.id = 1",
        "INSERT INTO p VALUES (1, 'x', 8) ON CONFLICT (id) DO UPDATE SET id = excluded.n",
        "INSERT INTO p VALUES (7, 'one', 8) ON CONFLICT (k) DO UPDATE SET id = excluded.id",
    ];
    for sql in changes {
        for (end, expected) in [("COMMIT", "23503"), ("ROLLBACK", "00000")] {
            let db = open(MemoryKv::new());
            let (mut a, mut b) = (numbered(&db), session(&db));
            run(&mut a, &format!("{BEGIN}; INSERT INTO c VALUES (1, 1)"));
            run(&mut b, &format!("{BEGIN}; SELECT count(*) FROM p"));
            let (mut b, state) = waits(&db, b, sql, &mut a, end);
            assert_eq!(state, expected, "{sql}; {end}");
            assert_eq!(state_of(&mut b, "COMMIT"), "00000", "{sql}; {end}");
            assert_eq!(run(&mut b, "SELECT count(*) FROM c WHERE p NOT IN (SELECT id FROM p)"), ["0"], "{sql}; {end}");
        }
    }
}

/// A row that another changes while it is waited for is computed again, and may need less than was asked for.
#[test]
fn a_key_that_turns_out_to_stay_stays() {
    let db = open(MemoryKv::new());
    let (mut a, b) = (numbered(&db), session(&db));
    run(&mut a, "UPDATE p SET n = 5; INSERT INTO c VALUES (1, 1)");
    run(&mut a, &format!("{BEGIN}; UPDATE p SET n = 0 WHERE id = 1"));
    let (mut b, state) = waits(&db, b, "UPDATE p SET id = id + n WHERE id = 1", &mut a, "COMMIT");
    assert_eq!(state, "00000");
    assert_eq!(run(&mut b, "SELECT id FROM p ORDER BY id"), ["1", "2"]);
}

/// Whoever seemed to leave the key alone waits a second time, for the reference that came meanwhile, and sees it.
#[test]
fn a_key_that_turns_out_to_change_waits_for_references_before_they_are_looked_for() {
    for sql in [
        "UPDATE p SET id = id + n WHERE id = 1",
        "UPDATE p SET id = id + n WHERE id < 2 AND n < 9",
        "UPDATE p SET id = id + n FROM (SELECT 1 AS i LIMIT 1) AS q WHERE p.id = q.i",
        "INSERT INTO p VALUES (1, 'x', 0) ON CONFLICT (id) DO UPDATE SET id = p.id + p.n",
        "INSERT INTO p VALUES (9, 'one', 0) ON CONFLICT (k) DO UPDATE SET id = p.id + p.n",
    ] {
        for (end, expected) in [("COMMIT", "23503"), ("ROLLBACK", "00000")] {
            let db = open(MemoryKv::new());
            let (mut a, mut b, mut refers) = (numbered(&db), session(&db), session(&db));
            run(&mut refers, &format!("{BEGIN}; INSERT INTO c VALUES (1, 1)"));
            run(&mut a, &format!("{BEGIN}; UPDATE p SET n = 5 WHERE id = 1"));
            run(&mut b, BEGIN);
            let statement = sql.to_string();
            let waiter = thread::spawn(move || {
                let state = state_of(&mut b, &statement);
                (b, state)
            });
            let mut asking = session(&db);
            let mut until_it_waits = |mode: &str| {
                let waits = format!("SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = '{mode}'");
                while run(&mut asking, &waits) == ["0"] {
                    assert!(!waiter.is_finished(), "{sql}: nobody waits for {mode}");
                    thread::yield_now();
                }
            };
            until_it_waits("ExclusiveLock");
            run(&mut a, "COMMIT");
            until_it_waits("AccessExclusiveLock");
            run(&mut refers, end);
            let (mut b, state) = waiter.join().expect("the waiter");
            assert_eq!(state, expected, "{sql}; {end}");
            assert_eq!(state_of(&mut b, "COMMIT"), "00000", "{sql}; {end}");
            assert_eq!(run(&mut b, "SELECT count(*) FROM c WHERE p NOT IN (SELECT id FROM p)"), ["0"], "{sql}; {end}");
        }
    }
}

/// Each way to set it inside a block, what takes it back, and its end.
#[test]
fn lock_timeout_holds_from_where_it_is_set() {
    let update = "UPDATE p SET k = 'b' WHERE id = 1";
    for (before, inside, waits_long) in [
        // Those that wait come first: who does not heed them does not wait for ever.
        ("SET lock_timeout = '1ms'", "SET LOCAL lock_timeout = 0", true),
        ("SET lock_timeout = '1ms'", "SET lock_timeout = 0", true),
        ("SET lock_timeout = '1ms'", "RESET ALL", true),
        ("SET lock_timeout = '1ms'", "SELECT set_config('lock_timeout', '0', true)", true),
        ("SET lock_timeout = 0", "SAVEPOINT s; SET LOCAL lock_timeout = '1ms'; ROLLBACK TO s", true),
        ("SET lock_timeout = 0", "SET lock_timeout = '1ms'", false),
        ("SET lock_timeout = 0", "SELECT 1; SET LOCAL lock_timeout = '1ms'", false),
        ("SET lock_timeout = 0", "SELECT set_config('lock_timeout', '1ms', true)", false),
        ("SET lock_timeout = '1ms'", "SAVEPOINT s; SET lock_timeout = 0; ROLLBACK TO s", false),
        ("BEGIN; SET LOCAL lock_timeout = 0; COMMIT; SET lock_timeout = '1ms'", "SELECT 1", false),
        ("SET lock_timeout = '1ms'; BEGIN; SET lock_timeout = 0; ROLLBACK", "SELECT 1", false),
        ("SET lock_timeout = '1ms'; BEGIN; SET LOCAL lock_timeout = 0; COMMIT", "SELECT 1", false),
    ] {
        let db = open(MemoryKv::new());
        let (mut a, mut b) = (tables(&db), session(&db));
        run(&mut a, "BEGIN; UPDATE p SET k = 'a' WHERE id = 1");
        run(&mut b, before);
        run(&mut b, &format!("{BEGIN}; {inside}"));
        if waits_long {
            let (mut b, state) = waits(&db, b, update, &mut a, "COMMIT");
            assert_eq!(state, "00000", "{before}: {inside}");
            run(&mut b, "COMMIT");
        } else {
            assert_eq!(state_of(&mut b, update), "55P03", "{before}: {inside}");
        }
    }
}

/// Whoever would do nothing, or change the row that is there, waits until it is certain that it stays there.
#[test]
fn a_key_on_its_way_out_is_waited_for_on_conflict() {
    let gone = ["DELETE FROM p WHERE id = 1", "UPDATE p SET k = 'other' WHERE id = 1"];
    for first in gone {
        for second in [
            "INSERT INTO p VALUES (3, 'one') ON CONFLICT DO NOTHING",
            "INSERT INTO p VALUES (3, 'one') ON CONFLICT (k) DO NOTHING",
            "INSERT INTO p VALUES (3, 'one') ON CONFLICT (k) DO UPDATE SET k = 'was there'",
        ] {
            for begin in [BEGIN, "SET default_transaction_isolation = 'read committed'"] {
                for (end, expected) in [("COMMIT", "1"), ("ROLLBACK", "0")] {
                    let db = open(MemoryKv::new());
                    let (mut a, mut b) = (tables(&db), session(&db));
                    run(&mut a, &format!("{BEGIN}; {first}"));
                    run(&mut b, begin);
                    let (mut b, state) = waits(&db, b, second, &mut a, end);
                    let told = format!("{begin}: {first}; {second}; {end}");
                    assert_eq!(state, "00000", "{told}");
                    assert_eq!(state_of(&mut b, "COMMIT"), "00000", "{told}");
                    assert_eq!(run(&mut b, "SELECT count(*) FROM p WHERE id = 3 AND k = 'one'"), [expected], "{told}");
                }
            }
        }
    }
}

/// A pipeline outside of a block is one transaction: its second statement keeps what the first has read.
#[test]
fn a_key_on_its_way_out_is_waited_for_within_a_pipeline() {
    for (first, second) in [
        ("DELETE FROM p WHERE id = 1", "INSERT INTO q VALUES (2); INSERT INTO p VALUES (3, 'one')"),
        ("UPDATE p SET k = 'other' WHERE id = 1", "INSERT INTO q VALUES (2); UPDATE p SET k = 'one' WHERE id = 2"),
        ("DELETE FROM p WHERE id = 1", "INSERT INTO q VALUES (2); INSERT INTO p VALUES (1, 'one')"),
    ] {
        for (end, expected) in [("COMMIT", "00000"), ("ROLLBACK", "23505")] {
            let db = open(MemoryKv::new());
            let (mut a, mut b) = (numbered(&db), session(&db));
            run(&mut b, "SET default_transaction_isolation = 'read committed'");
            run(&mut a, &format!("{BEGIN}; {first}"));
            let (_, state) = waits(&db, b, second, &mut a, end);
            assert_eq!(state, expected, "{first}; {second}; {end}");
        }
    }
}

/// A row that is only changed keeps its key: that it is taken is told at once.
#[test]
fn a_key_of_a_row_that_is_only_changed_is_taken() {
    for begin in [BEGIN, "SET default_transaction_isolation = 'read committed'"] {
        for (second, expected) in [
            ("INSERT INTO p VALUES (1, 'x')", "23505"),
            ("INSERT INTO p VALUES (3, 'one')", "23505"),
            ("INSERT INTO p VALUES (1, 'x') ON CONFLICT DO NOTHING", "00000"),
            ("INSERT INTO p VALUES (3, 'one') ON CONFLICT DO NOTHING", "00000"),
        ] {
            let db = open(MemoryKv::new());
            let (mut a, mut b) = (numbered(&db), session(&db));
            run(&mut a, &format!("{BEGIN}; UPDATE p SET n = 7 WHERE id = 1"));
            run(&mut b, &format!("SET lock_timeout = '1ms'; {begin}"));
            assert_eq!(state_of(&mut b, second), expected, "{begin}: {second}");
        }
    }
}

/// A statement that is its whole transaction and is refused to break a deadlock gives up its locks, and is repeated; any other is told.
#[test]
fn a_lone_statement_is_repeated_after_a_deadlock() {
    let (mut a, left) = conflicting();
    run(&mut a, "CREATE TABLE u (id int PRIMARY KEY, v int); INSERT INTO u VALUES (1, 1)");
    for isolation in ["read committed", "serializable"] {
        run(&mut a, &format!("SET default_transaction_isolation = '{isolation}'"));
        for lone in ["INSERT INTO u VALUES (2, 2), (3, 3) ON CONFLICT DO NOTHING", "UPDATE u SET v = v + 1"] {
            let begun = left.begun.load(Ordering::Relaxed);
            left.deadlocks.store(2, Ordering::Relaxed);
            assert_eq!(state_of(&mut a, lone), "00000", "{isolation}: {lone}");
            assert!(left.begun.load(Ordering::Relaxed) >= begun + 3, "{isolation}: {lone}: locks are given up");
            for several in [format!("BEGIN; {lone}"), format!("SELECT 1; {lone}")] {
                left.deadlocks.store(1, Ordering::Relaxed);
                assert_eq!(state_of(&mut a, &several), "40P01", "{isolation}: {several}");
                run(&mut a, "ROLLBACK");
            }
        }
        assert_eq!(run(&mut a, "DELETE FROM u WHERE id > 1 RETURNING v"), ["3", "4"], "{isolation}");
    }
}

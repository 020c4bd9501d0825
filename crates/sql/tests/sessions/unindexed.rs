//! Rows that refer to others without an index on the referring columns: who deletes the row that they refer to meets those, and no other (decision 231).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::{open, run, session, state_of};
use sql::Session;
use sql::transaction::memory::MemoryKv;
use std::thread;

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
const ACTIONS: [&str; 5] = ["NO ACTION", "RESTRICT", "CASCADE", "SET NULL", "NO ACTION DEFERRABLE INITIALLY DEFERRED"];
/// What takes the row away that others may refer to.
const GOES: [&str; 2] = ["DELETE FROM p WHERE id = 1", "UPDATE p SET id = 11 WHERE id = 1"];

/// Parents 1 and 2, and children of 2 only.
fn tables(a: &mut Session, action: &str) {
    let (of_delete, rest) =
        action.split_once(" DEFERRABLE").map_or((action, ""), |(action, _)| (action, "DEFERRABLE INITIALLY DEFERRED"));
    run(a, "CREATE TABLE p (id int PRIMARY KEY, n int); INSERT INTO p VALUES (1, 0), (2, 0), (3, 0)");
    run(
        a,
        &format!(
            "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p ON DELETE {of_delete} ON UPDATE {of_delete} {rest}, n int)"
        ),
    );
    run(a, "INSERT INTO c SELECT i, 2, 0 FROM generate_series(100, 130) AS i");
}

fn orphans(a: &mut Session) -> Vec<String> {
    run(a, "SELECT count(*) FROM c WHERE p IS NOT NULL AND p NOT IN (SELECT id FROM p)")
}

#[test]
fn who_refers_to_another_row_is_not_met() {
    for action in ACTIONS {
        for goes in GOES {
            for beside in [
                "INSERT INTO c VALUES (1, 2, 0)",
                "INSERT INTO c VALUES (1, NULL, 0)",
                "UPDATE c SET n = 1",
                "UPDATE c SET p = 3 WHERE id < 110",
                "DELETE FROM c WHERE id = 101",
            ] {
                let db = open(MemoryKv::new());
                let (mut a, mut b) = (session(&db), session(&db));
                tables(&mut a, action);
                let case = format!("{action}: {goes}; {beside}");
                run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED");
                assert_eq!(state_of(&mut a, goes), "00000", "{case}");
                run(&mut b, beside);
                assert_eq!(state_of(&mut a, "COMMIT"), "00000", "{case}");
                assert_eq!(orphans(&mut a), ["0"], "{case}");
            }
        }
    }
}

/// Above READ COMMITTED a block has looked at one state, whatever it took back of what it did then.
#[test]
fn a_look_that_is_taken_back_holds_the_snapshot() {
    for isolation in &LEVELS[1..] {
        for goes in GOES {
            for writes in [false, true] {
                let db = open(MemoryKv::new());
                let (mut a, mut b) = (session(&db), session(&db));
                tables(&mut a, "NO ACTION");
                run(&mut a, "CREATE TABLE x (id int PRIMARY KEY, n int); INSERT INTO x VALUES (1, 0), (2, 0)");
                run(&mut a, &format!("BEGIN ISOLATION LEVEL {isolation}; SAVEPOINT s; {goes}; ROLLBACK TO s"));
                run(&mut b, "INSERT INTO c VALUES (1, 1, 0); UPDATE x SET n = 1 WHERE id = 1");
                let mut came = vec![state_of(&mut a, "SELECT n FROM x WHERE id = 1 FOR UPDATE")];
                if writes {
                    came.push(state_of(&mut a, "UPDATE x SET n = 5 WHERE id = 2"));
                }
                came.push(state_of(&mut a, "COMMIT"));
                assert!(came.iter().any(|state| state == "40001"), "{isolation}, {goes}, {writes}: {came:?}");
            }
        }
    }
}

/// What a deferred check has told of a row at SERIALIZABLE is so until the commit.
#[test]
fn a_row_that_a_check_told_of_is_read() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (session(&db), session(&db));
    tables(&mut a, "NO ACTION DEFERRABLE INITIALLY DEFERRED");
    run(&mut a, "CREATE TABLE told (id int PRIMARY KEY); INSERT INTO c VALUES (1, 1, 0), (2, 1, 0)");
    run(
        &mut a,
        "BEGIN ISOLATION LEVEL SERIALIZABLE; DELETE FROM p WHERE id = 1; DELETE FROM c WHERE id = 1; SAVEPOINT s",
    );
    assert_eq!(state_of(&mut a, "SET CONSTRAINTS ALL IMMEDIATE"), "23503");
    run(&mut a, "ROLLBACK TO s; INSERT INTO p VALUES (1, 0); INSERT INTO told VALUES (1)");
    run(&mut b, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    assert_eq!(run(&mut b, "SELECT count(*) FROM told"), ["0"]);
    run(&mut b, "DELETE FROM c WHERE id = 2");
    let came = [state_of(&mut b, "COMMIT"), state_of(&mut a, "COMMIT")];
    assert!(came.iter().any(|state| state == "40001"), "{came:?}");
}

/// Nobody waits any more, as who led the table of locks was lost: one of the two hears of the other, or both hold together.
fn beside_lost_locks(kv: &MemoryKv, isolation: &str, action: &str, goes: &str, refers: &str) -> (String, Vec<String>) {
    let db = open(kv.clone());
    let (mut a, mut b) = (session(&db), session(&db));
    tables(&mut a, action);
    run(&mut a, &format!("BEGIN ISOLATION LEVEL {isolation}; {goes}"));
    kv.loses_locks();
    assert_eq!(state_of(&mut b, refers), "00000");
    let state = state_of(&mut a, "COMMIT");
    (state, orphans(&mut b))
}

const REFERS: [&str; 3] = [
    "INSERT INTO c VALUES (1, 1, 0)",
    "UPDATE c SET p = 1 WHERE id = 100",
    "INSERT INTO c SELECT 1, id, 0 FROM p WHERE id = 1",
];

#[test]
fn who_comes_to_refer_to_the_row_is_met_though_locks_are_lost() {
    for isolation in LEVELS {
        for action in ACTIONS {
            for (goes, refers) in GOES.iter().flat_map(|goes| REFERS.map(|refers| (goes, refers))) {
                let (state, orphans) = beside_lost_locks(&MemoryKv::new(), isolation, action, goes, refers);
                assert_eq!(
                    (&state[..], orphans),
                    ("40001", vec!["0".to_string()]),
                    "{isolation}, {action}: {goes}; {refers}"
                );
            }
        }
    }
}

/// One that deletes the row and puts it back, while another, which has read the old one, comes to refer to it.
fn put_back(kv: &MemoryKv, isolation: &str, action: &str, index: bool) -> (String, Vec<String>) {
    let db = open(kv.clone());
    let (mut a, mut b) = (session(&db), session(&db));
    tables(&mut a, action);
    if index {
        run(&mut a, "CREATE INDEX ON c (p)");
    }
    run(&mut a, &format!("BEGIN ISOLATION LEVEL {isolation}; DELETE FROM p WHERE id = 1"));
    kv.loses_locks();
    run(&mut b, &format!("BEGIN ISOLATION LEVEL {isolation}"));
    assert_eq!(run(&mut b, "SELECT n FROM p WHERE id = 1"), ["0"]);
    run(&mut b, "INSERT INTO c VALUES (1, 1, 0)");
    assert_eq!(state_of(&mut b, "COMMIT"), "00000");
    run(&mut a, "INSERT INTO p VALUES (1, 5)");
    let state = state_of(&mut a, "COMMIT");
    (state, run(&mut b, "SELECT n FROM p WHERE id = 1"))
}

/// What was done to those who referred to the row then was not done to the one who does now: no order of the two would leave him so.
#[test]
fn who_deletes_a_row_and_puts_it_back_hears_of_who_comes_to_refer_to_it() {
    for isolation in LEVELS {
        for action in ACTIONS {
            for index in [false, true] {
                let (state, row) = put_back(&MemoryKv::new(), isolation, action, index);
                assert_eq!((&state[..], row), ("40001", vec!["0".to_string()]), "{isolation}, {action}, {index}");
            }
        }
    }
    let (state, row) = put_back(&MemoryKv::unguarded(), LEVELS[0], "CASCADE", false);
    assert_eq!((&state[..], row), ("00000", vec!["5".to_string()]), "a control");
}

/// A row is changed, somebody comes to refer to it, and then it is deleted, by the same transaction: that goes by what is there when it is deleted.
#[test]
fn what_was_done_to_the_row_before_does_not_count() {
    for isolation in LEVELS {
        for action in ACTIONS {
            for index in [false, true] {
                let db = open(MemoryKv::new());
                let (mut a, mut b) = (session(&db), session(&db));
                tables(&mut a, action);
                if index {
                    run(&mut a, "CREATE INDEX ON c (p)");
                }
                run(&mut a, &format!("BEGIN ISOLATION LEVEL {isolation}; UPDATE p SET n = 1 WHERE id = 1"));
                run(&mut b, "INSERT INTO c VALUES (1, 1, 0)");
                let deleted = state_of(&mut a, GOES[0]);
                let committed = state_of(&mut a, "COMMIT");
                let came = [&deleted[..], &committed].into_iter().find(|state| *state != "00000").unwrap_or("00000");
                let expected = match (isolation, action) {
                    ("READ COMMITTED", "CASCADE" | "SET NULL") => "00000",
                    ("READ COMMITTED", _) => "23503",
                    // The snapshot is to stay where it is.
                    _ => "40001",
                };
                let case = format!("{isolation}, {action}, {index}");
                assert_eq!(came, expected, "{case}: {deleted}, {committed}");
                assert_eq!(orphans(&mut b), ["0"], "{case}");
            }
        }
    }
}

/// A control: below, keys are deleted whoever has referred to them since.
#[test]
fn who_is_not_told_of_references_leaves_orphans() {
    let (state, orphans) = beside_lost_locks(&MemoryKv::unguarded(), LEVELS[0], "NO ACTION", GOES[0], REFERS[0]);
    assert_eq!((&state[..], orphans), ("00000", vec!["1".to_string()]));
}

/// A row that is waited for may have another key by then, refer to another row, or be gone.
#[test]
fn what_becomes_of_a_row_that_is_waited_for_counts() {
    for begin in ["BEGIN ISOLATION LEVEL READ COMMITTED", "SET default_transaction_isolation = 'read committed'"] {
        for (action, goes, rows) in [
            ("CASCADE", GOES[0], [Some("0|0"), Some("3|1"), Some("0|0")]),
            ("CASCADE", GOES[1], [Some("11|1"), Some("3|1"), Some("0|0")]),
            ("SET NULL", GOES[0], [Some("0|1"), Some("3|1"), Some("0|0")]),
            ("NO ACTION", GOES[0], [None, Some("3|1"), Some("0|0")]),
            ("RESTRICT", GOES[0], [None, Some("3|1"), Some("0|0")]),
        ] {
            let changes =
                ["UPDATE c SET id = 9 WHERE id = 1", "UPDATE c SET p = 3 WHERE id = 1", "DELETE FROM c WHERE id = 1"];
            for (change, expected) in changes.into_iter().zip(rows) {
                if ["NO ACTION", "RESTRICT"].contains(&action) && change.contains("p = 3") {
                    // Who only looks stands beside who leaves the row's own key alone, as in PostgreSQL: 23503 at once.
                    continue;
                }
                let db = open(MemoryKv::new());
                let (mut a, mut b) = (session(&db), session(&db));
                tables(&mut a, action);
                run(&mut a, "DELETE FROM c; INSERT INTO c VALUES (1, 1, 0)");
                run(&mut a, &format!("BEGIN; {change}"));
                run(&mut b, begin);
                let waiter = thread::spawn(move || {
                    let state = state_of(&mut b, goes);
                    (b, state)
                });
                let mut asking = session(&db);
                while run(&mut asking, "SELECT count(*) FROM pg_locks WHERE NOT granted") == ["0"] {
                    assert!(!waiter.is_finished(), "it does not wait");
                    thread::yield_now();
                }
                run(&mut a, "COMMIT");
                let (mut b, state) = waiter.join().expect("the waiter");
                let case = format!("{begin}; {action}: {change}; {goes}");
                assert_eq!(state, if expected.is_some() { "00000" } else { "23503" }, "{case}");
                state_of(&mut b, "COMMIT");
                assert_eq!(orphans(&mut a), ["0"], "{case}");
                if let Some(expected) = expected {
                    let sums = run(&mut a, "SELECT coalesce(sum(p), 0), count(*) FROM c");
                    assert_eq!(sums, [expected], "{case}");
                }
            }
        }
    }
}

/// Keys of several columns, of other types than what they refer to, and tables that refer to themselves.
#[test]
fn keys_of_all_kinds_are_looked_for() {
    let db = open(MemoryKv::new());
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE p (a bigint, b text, k bigint UNIQUE, PRIMARY KEY (b, a))");
    run(&mut a, "INSERT INTO p VALUES (1, 'x', 5), (1, 'y', 6), (9000000000, 'x', 7000000000), (2, 'z', NULL)");
    run(
        &mut a,
        "CREATE TABLE c (id int, a int, b varchar, k int REFERENCES p (k), FOREIGN KEY (a, b) REFERENCES p (a, b))",
    );
    run(&mut a, "INSERT INTO c VALUES (1, 1, 'y', NULL), (2, NULL, NULL, 5)");
    for (goes, state) in [
        ("DELETE FROM p WHERE b = 'y'", "23503"),
        ("DELETE FROM p WHERE k = 5", "23503"),
        ("UPDATE p SET k = 8 WHERE k = 5", "23503"),
        ("UPDATE p SET a = 8 WHERE b = 'y'", "23503"),
        ("UPDATE p SET a = 8 WHERE k = 5", "00000"),
        ("DELETE FROM p WHERE a = 9000000000", "00000"),
        ("DELETE FROM p WHERE b = 'z'", "00000"),
    ] {
        assert_eq!(state_of(&mut a, goes), state, "{goes}");
    }
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, up int REFERENCES t)");
    run(&mut a, "INSERT INTO t VALUES (1, 1), (2, 1), (3, 2)");
    assert_eq!(state_of(&mut a, "DELETE FROM t WHERE id = 2"), "23503");
    assert_eq!(state_of(&mut a, "DELETE FROM t WHERE id IN (2, 3)"), "00000");
    assert_eq!(state_of(&mut a, "DELETE FROM t"), "00000");
}

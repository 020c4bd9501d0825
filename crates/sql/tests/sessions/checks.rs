//! Unique keys and references that another open block decides about: whoever checks them waits for it (decisions 69 and 105).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::{open, run, session, state_of};
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

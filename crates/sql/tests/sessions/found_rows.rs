//! FOR UPDATE of rows that a query found (decision 183): who waits, who is passed over, what is asked again.

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::{open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::{Database, Session};
use std::sync::Arc;
use std::thread;

/// No index leads from one table to the other.
const TAKE: &str = "SELECT a.id, a.v FROM a JOIN b USING (g) WHERE a.v < 100 ORDER BY a.id";

fn tables(db: &Arc<Database>) -> Session {
    let mut a = session(db);
    run(&mut a, "CREATE TABLE a (id int PRIMARY KEY, g int, v int); CREATE TABLE b (g int, w int)");
    run(
        &mut a,
        "INSERT INTO a SELECT i, i % 3, i FROM generate_series(1, 6) i; INSERT INTO b VALUES (0, 0), (1, 1), (2, 2)",
    );
    a
}

#[test]
fn rows_that_are_held_are_skipped_or_refused_and_limits_count_what_is_locked() {
    for level in ["SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"] {
        let db = open(MemoryKv::new());
        let (mut a, mut b) = (tables(&db), session(&db));
        for session in [&mut a, &mut b] {
            run(session, &format!("BEGIN ISOLATION LEVEL {level}"));
        }
        assert_eq!(run(&mut a, &format!("{TAKE} LIMIT 2 FOR UPDATE OF a")), ["1|1", "2|2"], "{level}");
        assert_eq!(run(&mut b, &format!("{TAKE} LIMIT 2 FOR UPDATE OF a SKIP LOCKED")), ["3|3", "4|4"], "{level}");
        let skipping = format!("{TAKE} LIMIT 1 OFFSET 1 FOR UPDATE OF a SKIP LOCKED");
        assert_eq!(run(&mut a, &skipping), ["2|2"], "{level}: its own are not held");
        assert_eq!(state_of(&mut b, "SELECT 1 FROM a JOIN b USING (g) FOR UPDATE NOWAIT"), "55P03", "{level}");
    }
}

/// Whether somebody comes to wait for a lock before `waiter` is done.
fn waits<T>(asking: &mut Session, waiter: &thread::JoinHandle<T>) -> bool {
    while run(asking, "SELECT count(*) FROM pg_locks WHERE NOT granted") == ["0"] {
        if waiter.is_finished() {
            return false;
        }
        thread::yield_now();
    }
    true
}

#[test]
fn what_has_changed_meanwhile_is_asked_again_or_refused() {
    for (level, expected) in [("READ COMMITTED", Ok(["1|10", "2|2"])), ("REPEATABLE READ", Err("40001"))] {
        let db = open(MemoryKv::new());
        let (mut a, mut b) = (tables(&db), session(&db));
        run(&mut a, "BEGIN; UPDATE a SET v = 10 WHERE id = 1; UPDATE a SET v = 200 WHERE id = 3");
        run(&mut b, &format!("BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM b"));
        let waiter = thread::spawn(move || match expected {
            Ok(_) => run(&mut b, &format!("{TAKE} LIMIT 2 FOR UPDATE OF a")),
            Err(_) => vec![state_of(&mut b, &format!("{TAKE} LIMIT 2 FOR UPDATE OF a"))],
        });
        assert!(waits(&mut session(&db), &waiter), "{level}: it does not wait");
        run(&mut a, "COMMIT");
        let came = waiter.join().expect("the waiter");
        assert_eq!(came, expected.map_or_else(|state| vec![state.to_string()], |rows| rows.map(String::from).to_vec()));
    }
}

/// The part that writes does not see itself, and tells its own tag.
#[test]
fn returning_of_queries_reads_what_was_before() {
    let db = open(MemoryKv::new());
    let mut a = tables(&db);
    let returned =
        run(&mut a, "DELETE FROM a WHERE id > 4 RETURNING id, (SELECT count(*) FROM a o WHERE o.id >= a.id)");
    assert_eq!(returned, ["5|2", "6|1"]);
    let mut out = super::Rows::default();
    a.simple_query("UPDATE a SET v = v WHERE id < 3 RETURNING (SELECT w FROM b WHERE b.g = a.g)", &mut out).unwrap();
    assert_eq!((out.rows, out.tags), (vec!["1".to_string(), "2".into()], vec!["UPDATE 2".to_string()]));
}

/// Rows that others hold are waited for in one run of the query, and asked again in one more.
#[test]
fn many_waits_are_one_repetition() {
    let db = open(MemoryKv::new());
    let (mut a, mut b) = (tables(&db), session(&db));
    run(&mut a, "CREATE SEQUENCE s");
    let mut holders: Vec<Session> = (0..5).map(|_| session(&db)).collect();
    for (id, holder) in (1..).zip(&mut holders) {
        run(holder, &format!("BEGIN; UPDATE a SET v = v + 1 WHERE id = {id}"));
    }
    run(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT count(*) FROM b");
    let waiter = thread::spawn(move || {
        let asked = TAKE.replace("WHERE", "WHERE nextval('s') > 0 AND");
        let mut found = run(&mut b, &format!("{asked} FOR UPDATE OF a"));
        found.extend(run(&mut b, "SELECT last_value FROM s"));
        found
    });
    for holder in &mut holders {
        waits(&mut a, &waiter);
        run(holder, "COMMIT");
    }
    let found = waiter.join().expect("the waiter");
    assert_eq!(found, ["1|2", "2|3", "3|4", "4|5", "5|6", "6|6", "12"]);
}

/// A row that is newer than what SKIP LOCKED reads, and is another one now, is not held afterwards.
#[test]
fn what_was_passed_over_is_not_held() {
    let db = open(MemoryKv::new());
    let (mut a, mut b, mut c) = (tables(&db), session(&db), session(&db));
    run(&mut a, "SELECT pg_advisory_lock(1)");
    run(&mut b, "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT count(*) FROM b");
    let waiter = thread::spawn(move || {
        let asked = TAKE.replace("WHERE", ", pg_advisory_xact_lock(1) l WHERE");
        let found = run(&mut b, &format!("{asked} LIMIT 1 FOR UPDATE OF a SKIP LOCKED"));
        (b, found)
    });
    assert!(waits(&mut c, &waiter));
    run(&mut c, "UPDATE a SET v = 200 WHERE id = 1");
    run(&mut a, "SELECT pg_advisory_unlock(1)");
    let (_b, found) = waiter.join().expect("the waiter");
    assert_eq!(found, ["2|2"]);
    assert_eq!(state_of(&mut a, "SELECT 1 FROM a WHERE id = 2 FOR UPDATE NOWAIT"), "55P03");
    assert_eq!(state_of(&mut a, "SELECT 1 FROM a WHERE id = 1 FOR UPDATE NOWAIT"), "00000");
}

//! What a session holds between two messages: memory of rows that wait, a load, a snapshot.

use super::watched::pass_a_millisecond;
use super::{Rows, open, run, session, state_of};
use sql::context::MemoryPool;
use sql::transaction::Interrupt;
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions, Executed};
use std::sync::Arc;

fn bounded() -> (Arc<Database>, Arc<MemoryPool>) {
    let pool = MemoryPool::new(64 << 20);
    let options =
        DatabaseOptions { query_memory_bytes: 8 << 20, memory_pool: pool.clone(), ..DatabaseOptions::default() };
    (Database::open(Arc::new(MemoryKv::new()), options).expect("open"), pool)
}

/// Rows of a thousand characters.
const LONG: &str = "SELECT repeat('x', 1000) FROM generate_series(1, ";

#[test]
fn cursors_held_over_a_commit_hold_their_memory() {
    let (db, pool) = bounded();
    let mut a = session(&db);
    for scroll in ["", "SCROLL"] {
        run(&mut a, &format!("BEGIN; DECLARE c {scroll} CURSOR WITH HOLD FOR {LONG} 4000); FETCH 10 FROM c; COMMIT"));
        assert!(pool.used_bytes() > 3_900_000, "{}", pool.used_bytes());
        assert_eq!(run(&mut a, "MOVE 3900 IN c; FETCH 50 FROM c").len(), 50);
        assert!(pool.used_bytes() > 3_900_000, "{}", pool.used_bytes());
        run(&mut a, "CLOSE c");
        assert_eq!(pool.used_bytes(), 0);
        // What is in the values counts.
        run(&mut a, &format!("BEGIN; DECLARE c {scroll} CURSOR WITH HOLD FOR {LONG} 20000)"));
        assert_eq!(state_of(&mut a, "COMMIT"), "53200");
        assert_eq!(state_of(&mut a, "FETCH FROM c"), "34000");
        assert_eq!(pool.used_bytes(), 0);
    }
}

#[test]
fn rows_of_returning_hold_their_memory_while_they_wait() {
    let (db, pool) = bounded();
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (v text)");
    let mut out = Rows::default();
    a.parse("", &format!("INSERT INTO t {LONG} 4000) RETURNING v"), &[]).expect("parse");
    a.bind("", "", &[], &[], &[]).expect("bind");
    assert_eq!(a.execute("", 10, false, &mut out).expect("execute"), Executed::Suspended);
    assert!(pool.used_bytes() > 3_900_000, "{}", pool.used_bytes());
    assert_eq!(a.execute("", 0, false, &mut out).expect("execute"), Executed::Complete);
    a.sync().expect("sync");
    assert_eq!((out.rows.len(), pool.used_bytes()), (4000, 0));
}

/// A cursor that was not declared SCROLL goes back as long as that is cheap, and is read to its end whatever its size.
#[test]
fn a_cursor_of_many_rows_forgets_those_that_it_has_given() {
    let (db, pool) = bounded();
    let mut a = session(&db);
    run(&mut a, &format!("BEGIN; DECLARE c CURSOR FOR {LONG} 20000)"));
    assert_eq!(run(&mut a, "FETCH 500 FROM c; FETCH BACKWARD 499 FROM c").len(), 999);
    assert_eq!(run(&mut a, "FETCH 9999 FROM c").len(), 9999);
    assert!(pool.used_bytes() < 3 << 20, "{}", pool.used_bytes());
    assert_eq!(run(&mut a, "FETCH ABSOLUTE 10001 FROM c; MOVE 100 IN c; FETCH RELATIVE 100 FROM c").len(), 2);
    assert_eq!(run(&mut a, "FETCH ALL FROM c").len(), 20_000 - 10_201);
    assert_eq!(state_of(&mut a, "FETCH PRIOR FROM c"), "55000");
    run(&mut a, &format!("ROLLBACK; BEGIN; DECLARE c CURSOR FOR {LONG} 20000)"));
    assert_eq!(state_of(&mut a, "FETCH LAST FROM c"), "55000");
    run(&mut a, &format!("ROLLBACK; BEGIN; DECLARE c CURSOR WITH HOLD FOR {LONG} 4000); FETCH 2000 FROM c; COMMIT"));
    assert_eq!(run(&mut a, "FETCH ALL FROM c").len(), 2000);
    run(&mut a, "CLOSE c");
    assert_eq!(pool.used_bytes(), 0);
}

/// Keys that nothing may point at in the end, and references that must find something, wait for the end of their statement.
#[test]
fn what_waits_for_the_end_of_a_statement_counts() {
    let (db, pool) = bounded();
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE p (id text PRIMARY KEY); CREATE TABLE c (id text REFERENCES p)");
    for part in 0..4 {
        let rows = format!("SELECT repeat('k', 1000) || i FROM generate_series({part}1000, {part}3999) i");
        run(&mut a, &format!("INSERT INTO p {rows}"));
    }
    assert_eq!(state_of(&mut a, "DELETE FROM p"), "53200");
    assert_eq!(state_of(&mut a, "INSERT INTO c SELECT id FROM p"), "53200");
    run(&mut a, "DELETE FROM p WHERE id < repeat('k', 1000) || '1'");
    assert_eq!(pool.used_bytes(), 0);
}

#[test]
fn a_load_whose_snapshot_has_grown_old_leaves_nothing() {
    for done in [false, true] {
        let kv = MemoryKv::new();
        let db = open(kv.clone());
        let mut a = session(&db);
        run(&mut a, "SET timeball.snapshot_age_max = '1ms'; BEGIN; CREATE TABLE t (a int)");
        let mut out = Rows::default();
        a.simple_query("COPY t FROM STDIN", &mut out).expect("copy");
        for i in 0..40_000 {
            a.copy_data(format!("{i}\n").as_bytes()).expect("row");
        }
        pass_a_millisecond(&db);
        assert!(a.give_up_old_snapshot());
        let ended = if done { a.copy_done(&mut out) } else { a.copy_data(b"1\n") };
        assert_eq!(ended.unwrap_err().state.as_str(), "72000");
        assert!(!a.in_copy() && out.tags.is_empty());
        run(&mut a, "ROLLBACK");
        while db.drain_garbage(&Interrupt::default()).expect("drain") {}
        assert!(kv.live_keys() < 20, "{}", kv.live_keys());
    }
}

#[test]
fn a_snapshot_that_a_lock_has_moved_up_is_young() {
    let kv = MemoryKv::new();
    let db = open(kv.clone());
    let (mut a, mut b) = (session(&db), session(&db));
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0); CREATE TABLE u (id int)");
    run(&mut a, "SET timeball.snapshot_age_max = '10s'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM u");
    run(&mut b, "UPDATE t SET v = 1");
    kv.advance_us(8_000_000);
    a.wait_for_client();
    assert!(a.snapshot_left_ms().is_some_and(|left| left <= 2_000), "{:?}", a.snapshot_left_ms());
    run(&mut a, "UPDATE t SET v = v + 1 WHERE id = 1");
    a.wait_for_client();
    assert!(a.snapshot_left_ms().is_some_and(|left| left > 9_000), "{:?}", a.snapshot_left_ms());
    assert_eq!(run(&mut a, "COMMIT; SELECT v FROM t"), ["2"]);
}

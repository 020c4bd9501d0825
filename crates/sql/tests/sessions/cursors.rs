//! Cursors see what there was at their DECLARE, whatever others commit before they are read (decision 150).

use super::{open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions};
use std::sync::Arc;

const ALL: &str = "SELECT id, v FROM t ORDER BY id";

#[test]
fn what_others_commit_after_a_declare_is_not_seen() {
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        for (before, how) in
            [("", ""), ("SELECT 1;", "NO SCROLL"), ("", "SCROLL"), ("SELECT count(*) FROM t;", ""), ("", "INSENSITIVE")]
        {
            let db = open(MemoryKv::new());
            let (mut a, mut b) = (session(&db), session(&db));
            run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0), (2, 0)");
            run(&mut a, &format!("BEGIN ISOLATION LEVEL {isolation}; {before} DECLARE c {how} CURSOR FOR {ALL}"));
            run(&mut b, "UPDATE t SET v = 7; DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (3, 0)");
            assert_eq!(run(&mut a, "FETCH c"), ["1|0"], "{isolation} {how}");
            let now: &[&str] = if isolation == "READ COMMITTED" { &["2|7", "3|0"] } else { &["1|0", "2|0"] };
            assert_eq!(run(&mut a, ALL), now, "{isolation} {how}");
            assert_eq!(run(&mut a, "SAVEPOINT s; FETCH ALL FROM c"), ["2|0"], "{isolation} {how}");
            // Others declared now have a snapshot of their own.
            assert_eq!(run(&mut a, &format!("DECLARE d CURSOR FOR {ALL}; FETCH ALL FROM d")), now, "{isolation} {how}");
            assert_eq!(state_of(&mut a, "COMMIT"), "00000", "{isolation} {how}");
        }
    }
}

#[test]
fn a_cursor_held_over_the_commit_is_of_its_declare() {
    for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
        let db = open(MemoryKv::new());
        let (mut a, mut b) = (session(&db), session(&db));
        run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 0), (2, 0)");
        run(&mut a, &format!("BEGIN ISOLATION LEVEL {isolation}; DECLARE c CURSOR WITH HOLD FOR {ALL}"));
        run(&mut b, "INSERT INTO t VALUES (3, 0)");
        run(&mut a, "INSERT INTO t VALUES (4, 0); COMMIT");
        assert_eq!(run(&mut a, "FETCH ALL FROM c; FETCH FIRST FROM c"), ["1|0", "2|0", "1|0"], "{isolation}");
        run(&mut a, "CLOSE c");
    }
}

/// What is read before it is asked for is held to the statement's memory; the transaction goes on.
#[test]
fn rows_read_before_a_write_are_bounded() {
    let options = DatabaseOptions { query_memory_bytes: 1 << 20, ..DatabaseOptions::default() };
    let pool = options.memory_pool.clone();
    let db = Database::open(Arc::new(MemoryKv::new()), options).expect("open");
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    run(
        &mut a,
        "BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT repeat('x', 1000) FROM generate_series(1, 4000); FETCH 5 FROM c",
    );
    run(&mut a, "DECLARE d CURSOR FOR SELECT repeat('x', 1000) FROM generate_series(1, 400)");
    run(&mut a, "INSERT INTO t VALUES (1, 0); SAVEPOINT s");
    assert!((300_000..3 << 20).contains(&pool.used_bytes()), "{}", pool.used_bytes());
    assert_eq!(state_of(&mut a, "FETCH c"), "53200");
    assert_eq!(run(&mut a, "ROLLBACK TO s; FETCH ALL FROM d").len(), 400);
    run(&mut a, "COMMIT");
    assert_eq!(pool.used_bytes(), 0);
    // Without a write in between it is read to its end.
    run(&mut a, "BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT repeat('x', 1000) FROM generate_series(1, 4000)");
    assert_eq!(run(&mut a, "FETCH 5 FROM c; FETCH ALL FROM c").len(), 4000);
}

//! Loads of fresh tables in any order of keys, past the log and through transactions: the same rows, entries and refusals.

use super::{Conflicting, Rows, open, session};
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions, Session, SqlError};
use std::sync::Arc;

/// More than is written in the main transaction.
const ROWS: usize = 9_000;

fn run(session: &mut Session, sql: &str) -> Result<Vec<String>, SqlError> {
    let mut out = Rows::default();
    session.simple_query(sql, &mut out).map(|()| out.rows)
}

/// Copies rows into a table that the same transaction creates, and commits.
fn copied(session: &mut Session, table: &str, rows: &[(usize, usize)]) -> Result<(), SqlError> {
    run(session, &format!("BEGIN; CREATE TABLE {table}")).expect("create");
    let name = table.split(' ').next().expect("a name");
    let done = (|| {
        run(session, &format!("COPY {name} (a, b) FROM STDIN"))?;
        rows.iter().try_for_each(|(a, b)| session.copy_data(format!("{a}\t{b}\n").as_bytes()))?;
        session.copy_done(&mut Rows::default())
    })();
    run(session, if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).expect("end");
    done
}

/// All numbers below [`ROWS`] once, in four orders; the second of each row is unique, too, in another order.
fn orders() -> [Vec<(usize, usize)>; 4] {
    let row = |a: usize| (a, a * 7919 % ROWS);
    let ascending: Vec<_> = (0..ROWS).map(row).collect();
    let descending: Vec<_> = (0..ROWS).rev().map(row).collect();
    let mixed: Vec<_> = (0..ROWS).map(|n| row(n * 4001 % ROWS)).collect();
    // In order at first: what was written already lies among what is sorted.
    let halves: Vec<_> = (0..ROWS).step_by(2).chain((1..ROWS).step_by(2)).map(row).collect();
    [ascending, descending, mixed, halves]
}

/// A database that takes loads past the log, and one that has no way for them.
fn kinds() -> [Arc<Database>; 2] {
    [open(MemoryKv::new()), open(Conflicting { kv: MemoryKv::new(), left: Arc::default() })]
}

#[test]
fn every_order_loads_the_same() {
    for db in kinds() {
        let mut session = session(&db);
        for (n, rows) in orders().into_iter().enumerate() {
            let table = format!("t{n}");
            copied(&mut session, &format!("{table} (a int PRIMARY KEY, b int UNIQUE, c text DEFAULT 'x')"), &rows)
                .expect("copy");
            let sums = format!("SELECT count(*), sum(a), sum(b), min(c) FROM {table}");
            let sum = ROWS * (ROWS - 1) / 2;
            assert_eq!(run(&mut session, &sums).expect("sums"), [format!("{ROWS}|{sum}|{sum}|x")], "order {n}");
            for a in [0, 1, 4_001, ROWS - 1] {
                let b = a * 7919 % ROWS;
                let by_b = run(&mut session, &format!("SELECT a FROM {table} WHERE b = {b}")).expect("by b");
                assert_eq!(by_b, [a.to_string()], "order {n}");
                let by_a = run(&mut session, &format!("SELECT b FROM {table} WHERE a = {a}")).expect("by a");
                assert_eq!(by_a, [b.to_string()], "order {n}");
            }
            let first = format!("SELECT a FROM {table} ORDER BY a LIMIT 3");
            assert_eq!(run(&mut session, &first).expect("first"), ["0", "1", "2"], "order {n}");
        }
    }
}

#[test]
fn a_key_that_is_there_twice_is_refused_wherever_it_stands() {
    for db in kinds() {
        let mut session = session(&db);
        for (n, rows) in orders().into_iter().enumerate() {
            for (from, to) in [(0, 1), (10, ROWS - 1), (ROWS - 2, 3), (ROWS / 2, ROWS / 2 - 1)] {
                let mut twice = rows.clone();
                // The same key in another row; then the same second column.
                twice.insert(to, (rows[from].0, ROWS + 1));
                let key = copied(&mut session, "t (a int PRIMARY KEY, b int UNIQUE)", &twice).expect_err("twice");
                assert_eq!(key.state.as_str(), "23505", "order {n}, {from} at {to}");
                assert_eq!(key.detail, Some(format!("Key (a)=({}) already exists.", rows[from].0)));
                twice[to] = (ROWS + 1, rows[from].1);
                let second = copied(&mut session, "t (a int PRIMARY KEY, b int UNIQUE)", &twice).expect_err("twice");
                assert_eq!(second.detail, Some(format!("Key (b)=({}) already exists.", rows[from].1)));
            }
        }
        assert!(run(&mut session, "SELECT * FROM t").is_err(), "nothing is left");
    }
}

#[test]
fn rows_without_a_key_and_entries_that_need_not_be_alone() {
    for db in kinds() {
        let mut session = session(&db);
        let rows: Vec<_> = (0..ROWS).map(|n| (n % 10, n * 7919 % 100)).collect();
        copied(&mut session, "t (a int, b int)", &rows).expect("copy");
        run(&mut session, "CREATE INDEX ON t (b); CREATE INDEX ON t (a) WHERE a > 7").expect("indexes");
        let counts = "SELECT count(*), count(*) FILTER (WHERE b = 3), count(*) FILTER (WHERE a = 8) FROM t";
        let expected = format!("{ROWS}|{}|{}", ROWS / 100, ROWS / 10);
        assert_eq!(run(&mut session, counts).expect("counts"), [expected]);
        let found = run(&mut session, "SELECT count(*) FROM t WHERE b = 3").expect("by index");
        assert_eq!(found, [(ROWS / 100).to_string()]);
    }
}

/// Copies rows into a table that is there.
fn copy(session: &mut Session, rows: impl Iterator<Item = usize>) -> Result<(), SqlError> {
    run(session, "COPY t FROM STDIN")?;
    for a in rows {
        session.copy_data(format!("{a}\t{a}\n").as_bytes())?;
    }
    session.copy_done(&mut Rows::default())
}

/// What the transaction has of the table itself is not overlooked.
#[test]
fn a_table_that_was_written_to_is_not_loaded() {
    const T: &str = "BEGIN; CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE)";
    for db in kinds() {
        let mut session = session(&db);
        for many in [10, ROWS] {
            for first in ["INSERT INTO t VALUES (1, 1)", "COPY"] {
                run(&mut session, T).expect("create");
                match first {
                    "COPY" => copy(&mut session, 0..many).expect("the first"),
                    insert => drop(run(&mut session, insert).expect("insert")),
                }
                let twice = copy(&mut session, 1..many).expect_err("it is there");
                assert_eq!(twice.state.as_str(), "23505", "{first}, {many}");
                run(&mut session, "ROLLBACK").expect("end");
            }
            run(&mut session, &format!("{T}; INSERT INTO t VALUES (1, 1); DELETE FROM t")).expect("create");
            copy(&mut session, 0..many).expect("nothing is there");
            run(&mut session, "COMMIT").expect("commit");
            let all = run(&mut session, "SELECT count(*), count(*) FILTER (WHERE a = 1) FROM t").expect("count");
            assert_eq!(all, [format!("{many}|1")]);
            run(&mut session, "DROP TABLE t").expect("drop");
            // Emptied, and not so after all.
            for last in [
                "INSERT INTO t VALUES (1, 1); SAVEPOINT s; TRUNCATE t",
                "SAVEPOINT r; INSERT INTO t VALUES (1, 1); SAVEPOINT s; TRUNCATE t; SAVEPOINT u",
            ] {
                run(&mut session, &format!("{T}; {last}; ROLLBACK TO s; RELEASE s")).expect("create");
                let there = copy(&mut session, 1..many).expect_err("it is there");
                assert_eq!(there.state.as_str(), "23505", "{many}");
                run(&mut session, "ROLLBACK").expect("end");
            }
            run(&mut session, &format!("{T}; COMMIT")).expect("create");
            copy(&mut session, 0..many).expect("rows");
            // Emptied it is new again.
            run(&mut session, "BEGIN; DELETE FROM t; TRUNCATE t").expect("truncate");
            copy(&mut session, 0..many).expect("nothing is there");
            run(&mut session, "COMMIT; SELECT count(*) FROM t").expect("commit");
            run(&mut session, "DROP TABLE t").expect("drop");
        }
    }
}

/// Rows of a load that failed half-way are not there when the transaction goes on behind it.
#[test]
fn half_a_load_is_not_left_by_a_savepoint() {
    // A chunk is as small as can be: some 35,000 rows.
    let options = DatabaseOptions { memory_bytes: Some(64 << 20), ..DatabaseOptions::default() };
    let db = Database::open(Arc::new(MemoryKv::new()), options).expect("open");
    let mut session = session(&db);
    run(&mut session, "BEGIN; CREATE TABLE t (a int PRIMARY KEY, b int); SAVEPOINT s").expect("create");
    copy(&mut session, (0..80_000).chain([0])).expect_err("the last one is there");
    run(&mut session, "ROLLBACK TO s").expect("back");
    copy(&mut session, 90_000..90_003).expect("others");
    run(&mut session, "COMMIT").expect("commit");
    assert_eq!(run(&mut session, "SELECT count(*), min(a) FROM t").expect("count"), ["3|90000"]);
}

//! Loads of fresh tables in any order of keys, past the log and through transactions: the same rows, entries and refusals.

use super::{Conflicting, Rows, open, session};
use sql::transaction::memory::MemoryKv;
use sql::{Database, Session, SqlError};
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

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

/// Messages behind which more has arrived are looked at together: whatever they are cut into, the stream is the same.
#[test]
fn a_stream_is_the_same_whatever_its_messages_are_cut_into() {
    let db = open(MemoryKv::new());
    let mut session = session(&db);
    let lines: String = (0..6_000).map(|a| format!("{a},\"one\ntwo {a}\"\n")).collect();
    for (n, (piece, parts)) in [(1, 2), (7, 5_000), (997, 40), (70_000, 3), (1 << 20, 1)].into_iter().enumerate() {
        run(&mut session, &format!("CREATE TABLE m{n} (a int PRIMARY KEY, b text)")).expect("create");
        run(&mut session, &format!("COPY m{n} FROM STDIN (FORMAT csv)")).expect("copy");
        let pieces: Vec<&[u8]> = lines.as_bytes().chunks(piece).collect();
        for (at, piece) in pieces.iter().enumerate() {
            let goes_on = at % parts != 0 && at + 1 < pieces.len();
            if goes_on { session.copy_part(piece) } else { session.copy_data(piece) }.expect("data");
        }
        let mut out = Rows::default();
        session.copy_done(&mut out).expect("done");
        assert_eq!(out.tags, ["COPY 6000"]);
        let sums = format!("SELECT count(*), sum(a), sum(length(b)) FROM m{n}");
        assert_eq!(run(&mut session, &sums).expect("sums"), ["6000|17997000|70890"], "pieces of {piece}");
    }
}

#[test]
fn an_error_comes_with_the_last_of_the_messages_that_were_looked_at_together() {
    let db = open(MemoryKv::new());
    let mut session = session(&db);
    run(&mut session, "CREATE TABLE t (a int)").expect("create");
    let begin = |session: &mut Session| run(session, "COPY t FROM STDIN").expect("copy");
    begin(&mut session);
    session.copy_part(b"1\n").expect("it is looked at later");
    session.copy_part(b"x\n").expect("it is looked at later");
    let error = session.copy_data(b"2\n").expect_err("no number");
    assert_eq!(error.state.as_str(), "22P02");
    assert!(error.detail.as_deref().is_some_and(|detail| detail.starts_with("COPY t, line 2")), "{error:?}");
    assert!(!session.in_copy());
    // However many come together, they are not held for long.
    begin(&mut session);
    session.copy_part(b"x\n").expect("it is looked at later");
    let failed = (0..100_000).find(|_| session.copy_part(b"1\n").is_err()).expect("no number");
    assert!(failed < 40_000, "{failed}");
    // What lies behind a long line is no part of it.
    run(&mut session, "CREATE TABLE long (a text)").expect("create");
    run(&mut session, "COPY long FROM STDIN").expect("copy");
    let line = vec![b'\\'; (64 << 20) - 30_000];
    session.copy_data(&line).expect("a part of a line");
    session.copy_part(b"\n").expect("its end");
    // It is looked at here: a value is smaller, but the line is not too long.
    let error = (0..10).find_map(|_| session.copy_part(&b"more\n".repeat(1_600)).err()).expect("too long for a value");
    assert!(!error.message.contains("of COPY is longer"), "{error:?}");
    // What the client takes back is looked at by nobody.
    begin(&mut session);
    session.copy_part(b"x\n").expect("it is looked at later");
    assert_eq!(session.copy_fail("changed my mind").state.as_str(), "57014");
    assert_eq!(run(&mut session, "SELECT count(*) FROM t").expect("count"), ["0"]);
}

//! COPY and INSERT .. SELECT of many rows beside others that write the same keys: whoever comes second waits (decision 244).

#![allow(clippy::disallowed_methods)] // sessions have threads of their own

use super::waits::{KEY_WAITS, until};
use super::{Rows, open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::{Database, DatabaseOptions, Session};
use std::sync::Arc;
use std::thread;

const ROWS: usize = 8000;
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// How many keys transactions have locked, each that has any.
const LOCKED: &str = "SELECT locked_keys FROM timeball_internal.transactions WHERE locked_keys > 0";

/// How many rows are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Copy,
    /// In no order.
    CopyBackwards,
    Insert,
}

const ALL: [How; 3] = [How::Copy, How::CopyBackwards, How::Insert];

/// By turns of a node that leads what it writes, and of another.
fn database(turn: usize) -> Arc<Database> {
    open(if turn.is_multiple_of(2) { MemoryKv::new() } else { MemoryKv::far() })
}

/// What a COPY of lines comes to.
fn copy(session: &mut Session, sql: &str, lines: &[u8]) -> String {
    let mut out = Rows::default();
    let copied = session.simple_query(sql, &mut out);
    let copied = copied.and_then(|()| lines.chunks(60_000).try_for_each(|some| session.copy_data(some)));
    copied.and_then(|()| session.copy_done(&mut out)).map_or_else(|e| e.state.as_str().into(), |()| "00000".into())
}

/// Two of three numbers up to [`ROWS`], and a key for each.
fn write(session: &mut Session, how: How) -> String {
    let mut numbers: Vec<usize> = (1..=ROWS).filter(|n| n % 3 > 0).collect();
    if how == How::CopyBackwards {
        numbers.reverse();
    }
    match how {
        How::Insert => state_of(
            session,
            &format!("INSERT INTO p SELECT i, 'k' || i FROM generate_series(1, {ROWS}) AS g (i) WHERE i % 3 > 0"),
        ),
        _ => {
            let lines: String = numbers.iter().map(|n| format!("{n}\tk{n}\n")).collect();
            copy(session, "COPY p FROM STDIN", lines.as_bytes())
        }
    }
}

fn tables(db: &Arc<Database>) -> Session {
    let mut a = session(db);
    run(
        &mut a,
        "CREATE TABLE p (id int PRIMARY KEY, k text UNIQUE); INSERT INTO p VALUES (0, 'k0'), (20000, 'k20000')",
    );
    a
}

/// Somebody has inserted one of the keys, the first or one in the middle, or gives it up, and has not ended.
#[test]
fn many_rows_wait_for_one_who_has_written_a_key() {
    let begins = [BEGIN, "BEGIN ISOLATION LEVEL SERIALIZABLE", "SET default_transaction_isolation = 'read committed'"];
    let cases = [
        ("SELECT 1", "INSERT INTO p VALUES (7000, 'x')", "23505", "00000"),
        ("SELECT 1", "INSERT INTO p VALUES (30000, 'k6998')", "23505", "00000"),
        ("SELECT 1", "INSERT INTO p VALUES (8000, 'x'), (1, 'y')", "23505", "00000"),
        ("INSERT INTO p VALUES (7000, 'x')", "DELETE FROM p WHERE id = 7000", "00000", "23505"),
        ("INSERT INTO p VALUES (30000, 'k6998')", "UPDATE p SET k = 'other' WHERE id = 30000", "00000", "23505"),
    ];
    let mut turn = 0;
    for (setup, first, commits, rolls_back) in cases {
        for (end, expected) in [("COMMIT", commits), ("ROLLBACK", rolls_back)] {
            for how in ALL {
                let begin = begins[(turn + turn / 3) % 3];
                let db = database(turn);
                turn += 1;
                let [mut a, mut b, mut asking] = [tables(&db), session(&db), session(&db)];
                run(&mut a, setup);
                run(&mut a, &format!("{BEGIN}; {first}"));
                run(&mut b, begin);
                let writer = thread::spawn(move || {
                    let state = write(&mut b, how);
                    (b, state)
                });
                until(&mut asking, KEY_WAITS, "1");
                run(&mut a, end);
                let (mut b, state) = writer.join().expect("the writer");
                let told = format!("{how:?}, {begin}; {first}; {end}");
                assert_eq!(state, expected, "{told}");
                if begin.starts_with("BEGIN") {
                    assert_eq!(state_of(&mut b, "COMMIT"), "00000", "{told}");
                }
                let found = run(&mut asking, "SELECT count(*) FROM p WHERE k LIKE 'k%' AND id BETWEEN 1 AND 8000");
                let all = if state == "00000" { ROWS - ROWS / 3 } else { 0 };
                assert_eq!(found, [all.to_string()], "{told}");
            }
        }
    }
}

/// Whoever has what a row of a group waits for (its key, or the row that has its key) goes on to write the key of a row behind it: nobody has that yet, as in PostgreSQL. It was a deadlock: all keys of the
/// group were locked.
#[test]
fn who_is_waited_for_writes_what_comes_behind_the_row_that_waits() {
    // Two rows of one group: the one that waits, and the first key behind it, in the order in which they come.
    let waits = |how| if how == How::CopyBackwards { (6998, 6997) } else { (6997, 6998) };
    let mut turn = 0;
    for (how, begin) in
        ALL.into_iter().flat_map(|how| [BEGIN, "BEGIN ISOLATION LEVEL SERIALIZABLE"].map(|it| (how, it)))
    {
        let (row, behind) = waits(how);
        let firsts = [
            ("SELECT 1".into(), format!("INSERT INTO p VALUES (30000, 'k{row}')"), "23505", "00000"),
            ("SELECT 1".into(), format!("INSERT INTO p VALUES ({row}, 'x')"), "23505", "00000"),
            (
                format!("INSERT INTO p VALUES (30000, 'k{row}')"),
                "DELETE FROM p WHERE id = 30000".into(),
                "00000",
                "23505",
            ),
        ];
        for (n, (setup, first, commits, rolls_back)) in firsts.into_iter().enumerate() {
            let second =
                [format!("INSERT INTO p VALUES ({behind}, 'y')"), format!("INSERT INTO p VALUES (40000, 'k{behind}')")];
            let (end, mut expected) = if turn % 3 == 0 { ("ROLLBACK", rolls_back) } else { ("COMMIT", commits) };
            let (db, second) = (database(turn), &second[turn % 2]);
            turn += 1;
            let [mut a, mut b, mut asking] = [tables(&db), session(&db), session(&db)];
            run(&mut a, &setup);
            run(&mut a, &format!("{BEGIN}; {first}"));
            run(&mut b, begin);
            let writer = thread::spawn(move || write(&mut b, how));
            until(&mut asking, KEY_WAITS, "1");
            let told = format!("{how:?}, {begin}; {first}; {second}; {end}");
            // Nobody else waits: it comes back while the writer stands there.
            assert_eq!(state_of(&mut a, second), "00000", "{told}");
            until(&mut asking, KEY_WAITS, "1");
            run(&mut a, end);
            // The row behind is a duplicate then.
            if n == 2 && end == "COMMIT" {
                expected = "23505";
            }
            assert_eq!(writer.join().expect("the writer"), expected, "{told}");
        }
    }
}

/// The control of the test above.
#[test]
fn who_is_waited_for_is_in_a_circle_where_groups_keep_their_keys() {
    let db = open(MemoryKv::grasping());
    let [mut a, mut b, mut asking] = [tables(&db), session(&db), session(&db)];
    run(&mut a, &format!("{BEGIN}; INSERT INTO p VALUES (30000, 'k6997')"));
    run(&mut b, BEGIN);
    let writer = thread::spawn(move || write(&mut b, How::Copy));
    until(&mut asking, KEY_WAITS, "1");
    let second = state_of(&mut a, "INSERT INTO p VALUES (6998, 'y')");
    drop(a);
    let states = [second, writer.join().expect("the writer")];
    assert!(states.contains(&"40P01".to_owned()), "{states:?}");
}

/// Every other row waits for somebody: each is written when its turn comes, and no key is left behind that nobody needs.
#[test]
fn many_rows_that_wait_come_one_by_one() {
    for turn in 0..2 {
        let db = database(turn);
        let [mut a, mut b, mut asking] = [tables(&db), session(&db), session(&db)];
        run(
            &mut a,
            &format!(
                "{BEGIN}; INSERT INTO p SELECT -i, 'k' || i FROM generate_series(1, 300) AS g (i) WHERE i % 2 = 0"
            ),
        );
        run(&mut b, BEGIN);
        let lines: String = (1..=300).map(|n| format!("{n}\tk{n}\n")).collect();
        let writer = thread::spawn(move || {
            let state = copy(&mut b, "COPY p FROM STDIN", lines.as_bytes());
            (b, state)
        });
        until(&mut asking, KEY_WAITS, "1");
        run(&mut a, "ROLLBACK");
        let (mut b, state) = writer.join().expect("the writer");
        assert_eq!(state, "00000");
        assert_eq!(run(&mut asking, LOCKED), ["600"]);
        run(&mut b, "COMMIT");
        assert_eq!(run(&mut asking, "SELECT count(*) FROM p WHERE id BETWEEN 1 AND 300 AND k = 'k' || id"), ["300"]);
    }
}

/// Many rows are written, and have not been committed: who writes one of their keys waits, and who writes between them does not, nor refuses them.
#[test]
fn many_rows_are_waited_for_and_not_refused_by_their_neighbours() {
    let mut turn = 0;
    for how in ALL {
        for second in ["INSERT INTO p VALUES (7000, 'x')", "INSERT INTO p VALUES (30000, 'k6998')"] {
            for (end, expected) in [("COMMIT", "23505"), ("ROLLBACK", "00000")] {
                let level = ["READ COMMITTED", "SERIALIZABLE"][turn / 2 % 2];
                let db = database(turn);
                turn += 1;
                let [mut a, mut b, mut asking] = [tables(&db), session(&db), session(&db)];
                run(&mut a, "SET default_transaction_isolation = 'read committed'");
                run(&mut b, &format!("BEGIN ISOLATION LEVEL {level}"));
                assert_eq!(write(&mut b, how), "00000");
                run(&mut a, "INSERT INTO p VALUES (6, 'six'), (6999, 'k6999'), (40000, 'k40000')");
                let waiting = thread::spawn(move || state_of(&mut a, second));
                until(&mut asking, KEY_WAITS, "1");
                let told = format!("{how:?}, {level}; {second}; {end}");
                assert_eq!(state_of(&mut b, end), "00000", "{told}");
                assert_eq!(waiting.join().expect("the writer"), expected, "{told}");
            }
        }
    }
}

/// What is there is told at once.
#[test]
fn a_key_that_is_there_is_a_duplicate_of_many_rows() {
    for (turn, how) in ALL.into_iter().enumerate() {
        for first in ["(7000, 'x')", "(30000, 'k6998')"] {
            let db = database(turn);
            let [mut a, mut b] = [tables(&db), session(&db)];
            run(&mut a, &format!("INSERT INTO p VALUES {first}"));
            assert_eq!(write(&mut b, how), "23505", "{how:?}, {first}");
        }
    }
    let db = open(MemoryKv::new());
    let mut a = tables(&db);
    let twice: String = (1..=ROWS).map(|n| format!("{n}\tk{}\n", n % 7000)).collect();
    assert_eq!(copy(&mut a, "COPY p FROM STDIN", twice.as_bytes()), "23505");
    assert_eq!(state_of(&mut a, "INSERT INTO p SELECT i % 7000 + 1, i FROM generate_series(1, 8000) i"), "23505");
    run(&mut a, "INSERT INTO p SELECT i, i FROM generate_series(1, 8000) i ON CONFLICT DO NOTHING");
    assert_eq!(run(&mut a, "SELECT count(*) FROM p"), ["8002"]);
}

/// Child rows beside the parent's end.
#[test]
fn many_rows_wait_for_who_deletes_what_they_refer_to() {
    let mut turn = 0;
    for (end, expected) in [("COMMIT", "23503"), ("ROLLBACK", "00000")] {
        for inserts in [false, true] {
            for begin in [BEGIN, "SET default_transaction_isolation = 'read committed'"] {
                {
                    let db = database(turn);
                    turn += 1;
                    let [mut a, mut b, mut asking] = [tables(&db), session(&db), session(&db)];
                    run(&mut a, "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p)");
                    run(&mut a, "INSERT INTO p VALUES (7, 'seven')");
                    run(&mut a, &format!("{BEGIN}; DELETE FROM p WHERE id = 7"));
                    run(&mut b, begin);
                    let parent = |n: usize| if n == 7000 { 7 } else { 0 };
                    let lines: String = (1..=ROWS).map(|n| format!("{n}\t{}\n", parent(n))).collect();
                    let writer = thread::spawn(move || match inserts {
                        true => state_of(
                            &mut b,
                            "INSERT INTO c SELECT i, CASE i WHEN 7000 THEN 7 ELSE 0 END FROM generate_series(1, 8000) i",
                        ),
                        false => copy(&mut b, "COPY c FROM STDIN", lines.as_bytes()),
                    });
                    until(&mut asking, KEY_WAITS, "1");
                    run(&mut a, end);
                    assert_eq!(writer.join().expect("the writer"), expected, "{end}, {begin}, INSERT: {inserts}");
                }
            }
        }
    }
}

/// And the other way round.
#[test]
fn who_deletes_waits_for_many_rows_that_refer_to_it() {
    for (end, expected) in [("COMMIT", "23503"), ("ROLLBACK", "00000")] {
        let db = open(MemoryKv::new());
        let [mut a, mut b, mut asking] = [tables(&db), session(&db), session(&db)];
        run(
            &mut a,
            "CREATE TABLE c (id int PRIMARY KEY, p int REFERENCES p); SET default_transaction_isolation = 'read committed'",
        );
        run(&mut b, BEGIN);
        let lines: String = (1..=ROWS).map(|n| format!("{n}\t20000\n")).collect();
        assert_eq!(copy(&mut b, "COPY c FROM STDIN", lines.as_bytes()), "00000");
        let deleting = thread::spawn(move || state_of(&mut a, "DELETE FROM p WHERE id = 20000"));
        until(&mut asking, KEY_WAITS, "1");
        run(&mut b, end);
        assert_eq!(deleting.join().expect("the other"), expected, "{end}");
    }
}

/// Beyond so many keys of a transaction (983,040, and fewer here) none is locked: who writes one of those does not wait, and who commits second is refused. Behind a savepoint those before it count.
#[test]
fn beyond_the_most_keys_none_is_locked() {
    const MAX: usize = 12_000;
    for kv in [MemoryKv::new(), MemoryKv::far()] {
        let options = DatabaseOptions { locked_keys_max: MAX, ..DatabaseOptions::default() };
        let db = Database::open(Arc::new(kv), options).expect("it opens");
        let [mut a, mut b] = [session(&db), session(&db)];
        run(&mut a, "CREATE TABLE p (id int PRIMARY KEY, k int UNIQUE)");
        run(&mut b, BEGIN);
        run(&mut b, "INSERT INTO p SELECT i, i FROM generate_series(1, 5000) i; SAVEPOINT s");
        for _ in 0..2 {
            run(&mut b, "INSERT INTO p SELECT i, i FROM generate_series(5001, 8000) i");
            assert_eq!(run(&mut a, LOCKED), [MAX.to_string()]);
            run(&mut b, "ROLLBACK TO s");
            assert_eq!(run(&mut a, LOCKED), ["10000"]);
        }
        run(&mut b, "INSERT INTO p SELECT i, i FROM generate_series(5001, 8000) i");
        run(&mut a, "SET default_transaction_isolation = 'read committed'; SET lock_timeout = '1ms'");
        assert_eq!(state_of(&mut a, "INSERT INTO p VALUES (5000, 5000)"), "55P03");
        assert_eq!(state_of(&mut a, "INSERT INTO p VALUES (8000, 8000)"), "00000");
        assert_eq!(state_of(&mut b, "COMMIT"), "23505");
        assert_eq!(run(&mut a, "SELECT count(*) FROM p"), ["1"]);
    }
}

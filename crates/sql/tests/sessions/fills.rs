//! INSERT .. SELECT into a table that is new in its transaction is loaded beside it (decision 225): the same rows and refusals, and nothing of it is left where the transaction does not commit.

use super::{Conflicting, Rows, open, run, session, state_of};
use sql::transaction::memory::MemoryKv;
use sql::transaction::{BeginOptions, Interrupt, Patience};
use sql::{Database, Kv, KvError, Session, Transaction};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More than is written in the main transaction.
const ROWS: usize = 9_000;
/// A table that is new, and what fills it.
const NEW: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE, c text DEFAULT 'x', d int GENERATED ALWAYS AS (a + 1) STORED)";
const FILL: &str = "INSERT INTO t (b, a) SELECT b, a FROM s ORDER BY b";

/// A source of so many rows, of which the second columns come in another order.
fn source(kv: impl Kv) -> (Arc<Database>, Session) {
    let db = open(kv);
    let mut a = session(&db);
    run(&mut a, "CREATE TABLE s (a int PRIMARY KEY, b int)");
    run(&mut a, &format!("INSERT INTO s SELECT i, i * 7919 % {ROWS} FROM generate_series(0, {}) AS g (i)", ROWS - 1));
    (db, a)
}

fn collect(db: &Database) {
    while db.drain_garbage(&Interrupt::default()).expect("drain") {}
}

#[test]
fn rows_are_loaded_and_seen() {
    let sum = ROWS * (ROWS - 1) / 2;
    for isolation in ["READ COMMITTED", "SERIALIZABLE"] {
        let kv = MemoryKv::new();
        let (_, mut a) = source(kv.clone());
        let before = kv.live_keys();
        run(&mut a, &NEW.replace("READ COMMITTED", isolation));
        assert_eq!(run(&mut a, FILL), Vec::<String>::new());
        assert!(kv.live_keys() >= before + 2 * ROWS, "beside the transaction");
        let sums = "SELECT count(*), sum(a), sum(b), sum(d), min(c) FROM t";
        let expected = format!("{ROWS}|{sum}|{sum}|{}|x", sum + ROWS);
        assert_eq!(run(&mut a, sums), [expected.as_str()], "{isolation}");
        run(&mut a, "COMMIT");
        assert_eq!(run(&mut a, sums), [expected], "{isolation}");
        assert_eq!(run(&mut a, &format!("SELECT a FROM t WHERE b = {}", 7919 * 17 % ROWS)), ["17"]);
    }
    // Where nothing goes past the log.
    let (_, mut a) = source(Conflicting { kv: MemoryKv::new(), left: Arc::default() });
    run(&mut a, &format!("{NEW}; {FILL}; COMMIT"));
    assert_eq!(run(&mut a, "SELECT count(*), sum(b) FROM t"), [format!("{ROWS}|{sum}")]);
}

/// What the transaction has in memory of the table, and what must be kept of the rows, keeps them in the transaction.
#[test]
fn what_is_not_loaded() {
    let kv = MemoryKv::new();
    let (_, mut a) = source(kv.clone());
    run(&mut a, "CREATE TABLE p (a int PRIMARY KEY); INSERT INTO p SELECT a FROM s");
    let plain = "CREATE TABLE t (a int PRIMARY KEY, b int UNIQUE)";
    let key = "CREATE TABLE t (a int PRIMARY KEY REFERENCES p, b int)";
    let read = "READ COMMITTED";
    for (isolation, table, fill, rows) in [
        (read, plain, "INSERT INTO t SELECT a, b FROM s RETURNING a", ROWS),
        (read, plain, "INSERT INTO t SELECT a, b FROM s ON CONFLICT DO NOTHING", ROWS),
        (read, plain, "INSERT INTO t SELECT a, b FROM s WHERE NOT EXISTS (SELECT FROM t WHERE t.a = s.a)", ROWS),
        (read, plain, "WITH w AS (DELETE FROM s WHERE a < 0 RETURNING a) INSERT INTO t SELECT a, b FROM s", ROWS),
        (read, key, "INSERT INTO t SELECT a, b FROM s", ROWS),
        (read, "SELECT", "CREATE TABLE t (a int, b int); SAVEPOINT x; INSERT INTO t SELECT a, b FROM s", ROWS),
        (read, plain, "INSERT INTO t VALUES (-1, -1); INSERT INTO t SELECT a, b FROM s", ROWS + 1),
        ("REPEATABLE READ", plain, "INSERT INTO t SELECT a, b FROM s", ROWS),
        (read, plain, "INSERT INTO t SELECT a, b FROM s WHERE a < 100", 100),
    ] {
        let before = kv.live_keys();
        run(&mut a, &format!("BEGIN ISOLATION LEVEL {isolation}; {table}; {fill}"));
        assert!(kv.live_keys() < before + 100, "{fill}");
        run(&mut a, "COMMIT");
        assert_eq!(run(&mut a, "SELECT count(*) FROM t"), [rows.to_string()], "{fill}");
        run(&mut a, "DROP TABLE t");
    }
}

/// The first statement is loaded, the next ones see what it wrote; emptied the table is new again.
#[test]
fn a_second_statement_sees_the_first() {
    let kv = MemoryKv::new();
    let (_, mut a) = source(kv.clone());
    for repeated in ["a", "a + 100000"] {
        run(&mut a, &format!("{NEW}; {FILL}"));
        let before = kv.live_keys();
        let state = state_of(&mut a, &format!("INSERT INTO t (a, b) SELECT {repeated}, {repeated} FROM s"));
        assert_eq!(state, if repeated == "a" { "23505" } else { "00000" });
        assert!(kv.live_keys() < before + 100);
        run(&mut a, "ROLLBACK");
    }
    run(
        &mut a,
        &format!("{NEW}; {FILL}; INSERT INTO t (a) VALUES (-1); TRUNCATE t; {FILL}; DELETE FROM t WHERE a < 10"),
    );
    run(&mut a, "COMMIT");
    assert_eq!(run(&mut a, "SELECT count(*), min(a) FROM t"), [format!("{}|10", ROWS - 10)]);
}

/// Indexes of a table that is new and empty keep it from nothing; what was read of it certified keeps it from being loaded, and what a savepoint brings back is not overlooked.
#[test]
fn what_the_transaction_has_read_of_the_table_is_no_conflict() {
    let kv = MemoryKv::new();
    let (_, mut a) = source(kv.clone());
    for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        for (behind, is_loaded) in [
            ("CREATE INDEX ON t (b); ALTER TABLE t ALTER COLUMN b SET NOT NULL, ADD CHECK (a >= 0)", true),
            ("SELECT count(*) FROM t", isolation == "READ COMMITTED"),
        ] {
            for copies in [false, true] {
                let before = kv.live_keys();
                run(&mut a, &NEW.replace("READ COMMITTED", isolation));
                run(&mut a, behind);
                match copies {
                    false => drop(run(&mut a, FILL)),
                    true => {
                        run(&mut a, "COPY t (a, b) FROM STDIN");
                        let rows = (0..ROWS).map(|a| format!("{a}\t{a}\n"));
                        rows.for_each(|row| a.copy_data(row.as_bytes()).expect("a row"));
                        a.copy_done(&mut Rows::default()).expect("COPY");
                    }
                }
                let is_loaded = is_loaded && (copies || isolation != "REPEATABLE READ");
                assert_eq!(kv.live_keys() > before + ROWS, is_loaded, "{behind}, {isolation}, {copies}");
                run(&mut a, "COMMIT");
                assert_eq!(run(&mut a, "SELECT count(*), min(a) FROM t"), [format!("{ROWS}|0")]);
                run(&mut a, "DROP TABLE t");
            }
        }
    }
    run(&mut a, "BEGIN; CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (7, 0)");
    run(&mut a, "SAVEPOINT x; TRUNCATE t; ROLLBACK TO x; RELEASE x");
    assert_eq!(state_of(&mut a, "INSERT INTO t SELECT a, b FROM s"), "23505");
    run(&mut a, "ROLLBACK");
}

#[test]
fn nothing_is_left_of_what_does_not_commit() {
    let kv = MemoryKv::new();
    let (db, mut a) = source(kv.clone());
    collect(&db);
    let before = kv.live_keys();
    // A key that is there twice: in what is written as it comes, and in what is sorted.
    for twice in ["b + CASE WHEN a = 8000 THEN 1 ELSE 0 END, a", "b, a % 8999"] {
        run(&mut a, NEW);
        assert_eq!(state_of(&mut a, &format!("INSERT INTO t (b, a) SELECT {twice} FROM s")), "23505", "{twice}");
        run(&mut a, "ROLLBACK");
        collect(&db);
        assert_eq!(kv.live_keys(), before, "{twice}");
    }
    for end in ["ROLLBACK", "SELECT 1 / 0; COMMIT"] {
        run(&mut a, &format!("{NEW}; {FILL}"));
        let _ = state_of(&mut a, end);
        let _ = state_of(&mut a, "ROLLBACK");
        collect(&db);
        assert_eq!(kv.live_keys(), before, "{end}");
    }
    // Back to before the table was there; it is made again, by the same name.
    run(&mut a, "BEGIN; SAVEPOINT s");
    run(&mut a, &NEW.replace("BEGIN ISOLATION LEVEL READ COMMITTED; ", ""));
    run(&mut a, &format!("{FILL}; ROLLBACK TO s; CREATE TABLE t (a int, b int); {FILL}; COMMIT"));
    assert_eq!(run(&mut a, "SELECT count(*) FROM t"), [ROWS.to_string()]);
    run(&mut a, "DROP TABLE t");
    collect(&db);
    assert_eq!(kv.live_keys(), before);
}

/// A node that fails at a load, or whose transactions can begin no more.
#[derive(Clone)]
struct Failing {
    kv: MemoryKv,
    /// Loads and transactions that still can be; beyond that the process is as good as dead.
    left: Arc<AtomicUsize>,
    /// Whether loads are refused, having been done, with what makes a statement begin anew.
    restarts: bool,
}

impl Failing {
    fn count(&self) -> Result<(), KvError> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| KvError::ShuttingDown)
    }
}

impl Kv for Failing {
    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Transaction>, KvError> {
        self.count()?;
        self.kv.begin(options)
    }
    below!();
    fn load(&self, rows: &[(bytes::Bytes, bytes::Bytes)], patience: &Patience) -> Result<bool, KvError> {
        if !self.restarts {
            self.count()?;
        }
        match self.kv.load(rows, patience) {
            Ok(_) if self.restarts => Err(KvError::Restart { reason: "it is to begin anew".into(), key: None }),
            done => done,
        }
    }
}

/// Wherever a process dies: the next one takes back what it has loaded.
#[test]
fn nothing_is_left_by_a_process_that_died() {
    let (kv, mut left_behind) = (MemoryKv::new(), 0);
    let left = Arc::new(AtomicUsize::new(usize::MAX));
    let (db, mut a) = source(Failing { kv: kv.clone(), left: left.clone(), restarts: false });
    collect(&db);
    let before = kv.live_keys();
    for steps in 0.. {
        run(&mut a, NEW);
        left.store(steps, Ordering::Relaxed);
        let filled = state_of(&mut a, FILL);
        left.store(0, Ordering::Relaxed);
        std::mem::forget(a);
        left_behind += usize::from(kv.live_keys() > before + 1_000);
        left.store(usize::MAX, Ordering::Relaxed);
        let next = open(kv.clone());
        collect(&next);
        assert_eq!(kv.live_keys(), before, "after {steps}: {filled}");
        assert_eq!(state_of(&mut session(&next), "SELECT FROM t"), "42P01");
        if filled == "00000" {
            break;
        }
        a = session(&db);
    }
    assert!(left_behind > 1, "{left_behind}");
}

/// At READ COMMITTED a statement is repeated within its block; not where half of it lies in the table already.
#[test]
fn half_a_load_is_not_repeated() {
    let kv = MemoryKv::new();
    let (db, mut a) = source(Failing { kv: kv.clone(), left: Arc::new(AtomicUsize::new(usize::MAX)), restarts: true });
    collect(&db);
    let before = kv.live_keys();
    run(&mut a, "BEGIN ISOLATION LEVEL READ COMMITTED; CREATE TABLE t (a int, b int)");
    assert_eq!(state_of(&mut a, "INSERT INTO t SELECT a, b FROM s"), "40001");
    run(&mut a, "ROLLBACK");
    collect(&db);
    assert_eq!(kv.live_keys(), before);
}
